//! A zone of Linux 6.12 or 6.18: the store, lock and drains of the older designs, with its own
//! grouping, page sets and tests of marks.
//!
//! Used as a zone alone, or through [`Nodes::alloc`](brickyard::node::Nodes::alloc), it finds a
//! single frame wherever one is, like every design. [`LabZone::alloc_from`] does what Linux does,
//! which leaves what lies in the page sets of other CPUs alone until reclaim has failed.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use brickyard::block::{Census, FreeTable, State};
use brickyard::check::Violation;
use brickyard::patience::Patience;
use brickyard::pressure::{self, Compacted, Migrate};
use brickyard::sync::{AtomicU32, Slot, SlotAccess, place};
use brickyard::watermark::{Mark, Watermarks};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Frame, FrameRange, FreeError, MigrateType, Mobility, Order,
    PlanError, Platform, RangeError, Request, Shape, ZoneKind,
};

use super::blocks::Blocks;
use super::compact::aim::Priority;
use super::compact::{self, CompactionState};
use super::marks::{self, Level};
use super::pageset::{BaseZone, Burst, Pageset, Pagesets, take_direct};
use super::rights::Rights;
use crate::classics::front::{Front, Returned};
use crate::classics::lab_zone::LabZone;
use crate::classics::lock::LabLock;
use crate::classics::plan::{LabPlan, Placed, Planned, bytes_of};
use crate::classics::store::grouping::{BlockRecord, PageBlocks};

/// A version of Linux.
pub trait Version: Sync + 'static {
    /// When a burst of frees begins.
    const BURST: Burst;
}

/// Linux 6.12.
#[derive(Debug, Clone, Copy)]
pub enum V6_12 {}

/// Linux 6.18.
#[derive(Debug, Clone, Copy)]
pub enum V6_18 {}

impl Version for V6_12 {
    const BURST: Burst = Burst::AfterABatch;
}

impl Version for V6_18 {
    const BURST: Burst = Burst::AfterHalfTheLeast;
}

/// A zone of Linux, version `V`, with page sets accessed by `A` and lock `L`.
pub struct Zone<'m, V, A, L: LabLock, P> {
    pub(super) inner: BaseZone<'m, A, L, P>,
    pub(super) compaction: CompactionState<'m>,
    defrag_mode: bool,
    version: PhantomData<fn() -> V>,
}

impl<'m, V: Version, A: SlotAccess, L: LabLock, P: Platform> Zone<'m, V, A, L, P> {
    /// Takes a block with these rights, whatever stays free.
    pub(super) fn take(&self, request: &Request, rights: Rights) -> Option<Frame> {
        let BaseZone { front, backing, .. } = &self.inner;
        let listed = Front::<Blocks<'m>, L, P>::serves(front, request.order);
        let limited = self.inner.is_limited(request);
        if listed
            && !limited
            && let Some(frame) = front.take_as(backing, request, rights)
        {
            return Some(frame);
        }
        let guard = self.inner.lock();
        let frame = match limited {
            true => guard.take(request).map(|taken| taken.frame),
            false => take_direct(&guard, request, rights),
        }?;
        Some(frame)
    }

    pub(super) fn admits(&self, request: &Request, level: Level, rights: Rights) -> bool {
        marks::admits(&self.inner.backing, request, level, rights)
    }

    /// Returns true, once, after the boost was raised by a request that wakes background reclaim.
    pub(super) fn take_wake(&self) -> bool {
        self.blocks().condition().take_wake()
    }

    /// Sets the page blocks of a block that was got by right of [`Rights::HIGH_ATOMIC`] aside.
    pub(super) fn set_aside(&self, frame: Frame, order: Order) {
        let most = self.inner.high_atomic_cap();
        let guard = self.inner.lock();
        guard.grouping().set_aside(&guard, frame, order, most);
    }

    /// Gives back one page block that is set aside. Returns false if none was.
    pub(super) fn unreserve(&self, wanted: Mobility, forced: bool) -> bool {
        let guard = self.inner.lock();
        guard.grouping().unreserve(&guard, wanted.into(), forced)
    }

    /// Compacts for a request with these rights, as thoroughly as the priority says.
    pub(super) fn compact_as(
        &self,
        request: &Request,
        priority: Priority,
        rights: Rights,
        hooks: &impl Migrate,
    ) -> Compacted {
        let Self {
            inner, compaction, ..
        } = self;
        compact::for_request(inner, compaction, request, rights, priority, hooks)
    }

    /// Notes that a request for `order` got its block here after a compaction.
    pub(super) fn was_compacted_for(&self, order: Order) {
        self.compaction.served(order);
    }

    pub(super) const fn defrag_mode(&self) -> bool {
        self.defrag_mode
    }

    pub(super) const fn blocks(&self) -> &Blocks<'m> {
        self.inner.unlocked().grouping()
    }

    /// Calls `with` with the store and how it is grouped, under the zone lock: for a caller that
    /// asks what a request would get.
    pub fn with_store<R>(
        &self,
        with: impl FnOnce(&crate::classics::store::buddy::Buddy<'m, Blocks<'m>>, &Blocks<'m>) -> R,
    ) -> R {
        let guard = self.inner.lock();
        with(&guard, guard.grouping())
    }

    /// Compacts for `request` as thoroughly as `priority` says.
    pub fn compact_with(
        &self,
        request: &Request,
        priority: Priority,
        hooks: &impl Migrate,
    ) -> Compacted {
        self.compact_as(request, priority, Rights::of(request), hooks)
    }

    /// Returns true if compaction skips the page block of `frame`, which is in the zone's span,
    /// until what it remembers is cleared.
    #[must_use]
    pub fn skips(&self, frame: Frame) -> bool {
        self.compaction.is_skipped(frame)
    }

    /// Returns by how many frames the marks are raised for a while.
    #[must_use]
    pub fn boost(&self) -> usize {
        self.blocks().condition().boost()
    }
}

impl<V: Version, A: SlotAccess, L: LabLock, P: Platform> AnyZone for Zone<'_, V, A, L, P> {
    type Platform = P;

    fn platform(&self) -> &P {
        self.inner.platform()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    #[inline]
    fn kind(&self) -> ZoneKind {
        self.inner.kind()
    }

    #[inline]
    fn span(&self) -> FrameRange {
        self.inner.span()
    }

    fn watermarks(&self) -> &Watermarks {
        self.inner.watermarks()
    }

    fn compaction(&self) -> &pressure::CompactionState {
        self.inner.compaction()
    }

    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        self.inner.alloc(request)
    }

    fn alloc_above(&self, request: &Request, mark: Mark) -> Option<Frame> {
        let rights = match mark {
            Mark::FirstApart | Mark::Apart => Rights::WAKES.and(Rights::KEEPS_APART),
            Mark::First | Mark::Low => Rights::WAKES,
            Mark::Min => Rights::of(request),
        };
        let admitted = self.admits(request, Level::from(mark), rights);
        let frame = admitted.then(|| self.take(request, rights)).flatten()?;
        if rights.any(Rights::HIGH_ATOMIC) {
            self.set_aside(frame, request.order);
        }
        Some(frame)
    }

    fn alloc_drained(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.inner.alloc_drained(request, mark, patience)
    }

    fn alloc_set_aside(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.inner.alloc_set_aside(request, mark, patience)
    }

    fn alloc_uncached(&self, request: &Request) -> Option<Frame> {
        self.inner.alloc_uncached(request)
    }

    fn alloc_batch(&self, request: &Request, out: &mut [Frame]) -> usize {
        match marks::admits_many(&self.inner.backing, request, out.len()) {
            true => self.inner.alloc_bulk(request, out).unwrap_or(0),
            false => 0,
        }
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.inner.take_at(frame, request)
    }

    fn why_not(&self, request: &Request) -> AllocError {
        self.inner.why_not(request)
    }

    /// Frees a block. A part of a larger block in use is cut off first, and then goes to the page
    /// set like a block of its size.
    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        let BaseZone { front, backing, .. } = &self.inner;
        if !Front::<Blocks<'_>, L, P>::serves(front, order) {
            return self.inner.free_uncached(frame, order);
        }
        if front.give(backing, frame, order) == Returned::Kept {
            return Ok(());
        }
        let guard = self.inner.lock();
        let is_part = guard
            .block_of(frame)
            .is_some_and(|(_, state)| state.order > order && !guard.is_isolated(frame));
        if is_part {
            guard.cut(frame, order)?;
            drop(guard);
            if front.give(backing, frame, order) == Returned::Kept {
                return Ok(());
            }
            return self.inner.free_uncached(frame, order);
        }
        guard.give(frame, order).map(|_| ())
    }

    fn free_uncached(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.inner.free_uncached(frame, order)
    }

    fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        self.inner.free_bulk(frames)
    }

    fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.inner.free_range(range)
    }

    fn drain_with(&self, patience: &Patience) -> usize {
        self.inner.drain_with(patience)
    }

    fn isolate(&self, range: FrameRange) -> Result<(), RangeError> {
        self.inner.isolate(range)
    }

    fn unisolate(&self, range: FrameRange) {
        self.inner.unisolate(range);
    }

    fn take_isolated(&self, range: FrameRange, mobility: Mobility) -> Result<(), RangeError> {
        self.inner.take_isolated(range, mobility)
    }

    fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.inner.add(range)
    }

    fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.inner.reserve(range)
    }

    fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        AnyZone::unreserve(&self.inner, range)
    }

    fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.inner.remove(range)
    }

    fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        self.inner.block_of(frame)
    }

    fn has(&self, frame: Frame) -> bool {
        self.inner.has(frame)
    }

    fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        self.inner.block_type(frame)
    }

    fn free_frames(&self) -> usize {
        self.inner.free_frames()
    }

    fn cached_frames(&self) -> usize {
        self.inner.cached_frames()
    }

    fn free_frames_for(&self, request: &Request) -> usize {
        self.inner.free_frames_for(request)
    }

    fn managed_frames(&self) -> usize {
        self.inner.managed_frames()
    }

    fn can_serve(&self, request: &Request) -> bool {
        self.inner.can_serve(request)
    }

    fn free_table(&self) -> FreeTable {
        self.inner.free_table()
    }

    /// Compacts for `request` with [`Priority::SyncLight`]. A block that becomes free by this
    /// task's own frees is caught for it.
    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted {
        self.compact_as(request, Priority::SyncLight, Rights::of(request), hooks)
    }

    fn check(&self) -> Result<Census, Violation> {
        self.inner.check()
    }
}

impl<'m> Placed<'m> for Blocks<'m> {
    type Unit = BlockRecord;

    fn units(plan: &LabPlan) -> usize {
        PageBlocks::units(plan)
    }

    fn unit() -> BlockRecord {
        BlockRecord::new()
    }

    fn over(plan: &LabPlan, records: &'m [BlockRecord]) -> Self {
        let zone = &plan.zone;
        Self::new(
            zone.span,
            zone.page_block_order,
            records,
            plan.linux.boost_factor,
        )
    }
}

impl<'m, A: SlotAccess> Placed<'m> for Pagesets<'m, A> {
    type Unit = Slot<A, Pageset>;

    fn units(plan: &LabPlan) -> usize {
        plan.zone.cpus
    }

    fn unit() -> Self::Unit {
        Slot::new(Pageset::default())
    }

    fn over(plan: &LabPlan, slots: &'m [Self::Unit]) -> Self {
        Self::new(slots, plan.zone.page_block_order, Burst::AfterABatch)
    }
}

impl<'m, V: Version, A: SlotAccess, L: LabLock, P: Platform> Planned<'m> for Zone<'m, V, A, L, P> {
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError> {
        let inner = BaseZone::<'m, A, L, P>::checked_bytes_for(plan)?;
        let words = CompactionState::words_for(plan.zone.span, plan.zone.page_block_order);
        let skips = bytes_of::<AtomicU32>(words);
        skips
            .and_then(|bytes| inner.checked_add(bytes))
            .ok_or(PlanError::TooManyBytes)
    }

    fn by(
        plan: &LabPlan,
        platform: P,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError> {
        let needed = Self::checked_bytes_for(plan)?;
        let supplied = memory.len();
        if supplied < needed {
            return Err(PlanError::TooLittleMemory { supplied, needed });
        }
        let (span, order) = (plan.zone.span, plan.zone.page_block_order);
        let words = CompactionState::words_for(span, order);
        let (skips, rest) = place(memory, words, AtomicU32::default)
            .ok_or(PlanError::TooLittleMemory { supplied, needed })?;
        let mut inner = BaseZone::by(plan, platform, rest)?;
        inner.front.set_burst(V::BURST);
        Ok(Self {
            inner,
            compaction: CompactionState::new(span, order, skips),
            defrag_mode: plan.linux.defrag_mode,
            version: PhantomData,
        })
    }
}

impl<V: Version, A: SlotAccess, L: LabLock, P: Platform> fmt::Debug for Zone<'_, V, A, L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
