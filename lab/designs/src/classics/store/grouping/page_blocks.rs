//! Grouping by mobility in page blocks (Gorman 2007, the list-based patches; as merged, v30, where
//! the versions differ).
//!
//! Each block of huge-page size has a type. A page is freed to the list of its block's type. When a
//! request's own list is empty, the largest free block of another type is split, with types in a
//! fixed order of preference. If that block is large, or the request is reclaimable, all free pages
//! of its page block move to the lists of the request's type; and if they are at least half of the
//! page block, the page block itself takes that type.
//!
//! Two mistakes of v28 are not repeated: free *pages* are counted, not free chunks times the size
//! of the largest; and of a page block cut by the zone's edge, the part in the zone is moved.
//!
//! A fallback changes a block's type only if at least half of a block's pages moved, or the whole
//! block was free. Invariant `set-aside-counted`: `set_aside` is the number of page blocks of type
//! `HighAtomic`.

use brickyard::sync::{AtomicU32, Ordering};

use super::{Grouping, Regrouped};
use crate::classics::store::buddy::Buddy;
use crate::classics::store::{Claimed, Fallback, Taken};
use brickyard::block::Use;
use brickyard::check::Violation;
use brickyard::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

use MigrateType::{HighAtomic as High, Movable, Reclaimable, Unmovable};

/// The record of one page block: 4 bytes. All blocks are movable at first; requests of other types
/// have to claim them.
#[derive(Debug)]
pub struct BlockRecord {
    // Atomic, because a front reads the type of a block without the zone's lock. A stale value puts
    // a page on a list that is no longer its block's, which the next free corrects.
    kind: AtomicU32,
}

impl BlockRecord {
    /// Makes the record of a movable block.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            kind: AtomicU32::new(Movable as u32),
        }
    }
}

impl Default for BlockRecord {
    fn default() -> Self {
        Self::new()
    }
}

/// How blocks for atomic requests of order 1 and up are provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HighAtomic {
    /// Such requests have a type of their own, which claims blocks as the others do (v28 of 2007).
    #[default]
    OwnType,
    /// When such a request is served, its page block is set aside, up to one hundredth of the zone
    /// and a block (Linux since 4.4); under pressure it is given back.
    SetAside,
}

/// Page blocks with types.
#[derive(Debug)]
pub struct PageBlocks<'m> {
    order: Order,
    first_block: usize,
    records: &'m [BlockRecord],
    high_atomic: HighAtomic,
    // 1 while the zone is large enough to be grouped. Atomic, because fronts read it without the
    // lock.
    enabled: AtomicU32,
    // Blocks of type `HighAtomic`; written under the zone's lock, read by anyone.
    set_aside: AtomicU32,
    // How often such a block was given back; likewise.
    unreserved: AtomicU32,
}

/// Number of types that claim blocks: a zone with fewer blocks is not grouped.
const TYPES: usize = 4;

impl<'m> PageBlocks<'m> {
    /// Returns how many records a span needs.
    #[must_use]
    pub const fn blocks_in(span: FrameRange, order: Order) -> usize {
        if span.is_empty() {
            return 0;
        }
        ((span.end.number() - 1) >> order.get()) - (span.start.number() >> order.get()) + 1
    }

    /// Makes blocks of `order` over `span`, all movable.
    ///
    /// # Panics
    /// If there are fewer records than [`PageBlocks::blocks_in`] returns.
    #[must_use]
    pub const fn new(
        span: FrameRange,
        order: Order,
        records: &'m [BlockRecord],
        high_atomic: HighAtomic,
    ) -> Self {
        assert!(
            records.len() >= Self::blocks_in(span, order),
            "a record for each page block"
        );
        Self {
            order,
            first_block: span.start.number() >> order.get(),
            records,
            high_atomic,
            enabled: AtomicU32::new(0),
            set_aside: AtomicU32::new(0),
            unreserved: AtomicU32::new(0),
        }
    }

    /// Returns true if the zone is large enough to be grouped.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: a flag that only administration changes.
        self.enabled.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn record(&self, frame: Frame) -> &BlockRecord {
        &self.records[(frame.number() >> self.order.get()) - self.first_block]
    }

    #[inline]
    pub(crate) fn kind(&self, frame: Frame) -> MigrateType {
        // Relaxed: see `BlockRecord::kind`.
        MigrateType::from_bits(self.record(frame).kind.load(Ordering::Relaxed))
    }

    /// Sets the type of every page block that `range` overlaps, and keeps the count of blocks set
    /// aside.
    pub(crate) fn set_kind(&self, range: FrameRange, kind: MigrateType) {
        let mut set_aside = self.set_aside();
        let mut at = range.start;
        while at < range.end {
            set_aside -= usize::from(self.kind(at) == High);
            set_aside += usize::from(kind == High);
            // Relaxed: as in `kind`.
            self.record(at).kind.store(kind as u32, Ordering::Relaxed);
            at = at.align_down(self.order).plus(self.order.frames());
        }
        // Relaxed: written under the zone's lock only; readers take it as a hint.
        self.set_aside.store(set_aside as u32, Ordering::Relaxed);
    }

    pub(crate) fn set_aside(&self) -> usize {
        // Relaxed: as above.
        self.set_aside.load(Ordering::Relaxed) as usize
    }

    /// Returns the part of `frame`'s page block that is in the store.
    pub(crate) fn block_around<G: Grouping>(
        &self,
        buddy: &Buddy<'_, G>,
        frame: Frame,
    ) -> FrameRange {
        FrameRange::of_block(frame.align_down(self.order), self.order).intersection(buddy.span())
    }

    /// Returns the largest free block that a request of type `wanted` may split. Blocks for atomic
    /// requests come last, except for unmovable requests; with [`HighAtomic::SetAside`] they are
    /// never split.
    fn victim(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<(Frame, Order, MigrateType)> {
        let search = |spare_high: bool| {
            order.up_to(buddy.max_order()).rev().find_map(|order| {
                self.fallbacks(wanted)
                    .iter()
                    .filter(|&&kind| kind != High || !spare_high)
                    .find_map(|&kind| Some((buddy.first_of(order, kind)?, order, kind)))
            })
        };
        match self.high_atomic {
            HighAtomic::OwnType => search(wanted != Unmovable).or_else(|| search(false)),
            HighAtomic::SetAside => search(true),
        }
    }
}

impl Grouping for PageBlocks<'_> {
    fn page_block_order(&self) -> Option<Order> {
        Some(self.order)
    }

    #[inline]
    fn type_of(&self, request: &Request) -> MigrateType {
        match self.high_atomic {
            HighAtomic::OwnType if request.is_high_atomic() => High,
            _ => request.mobility.into(),
        }
    }

    #[inline]
    fn list_for(&self, wanted: MigrateType) -> MigrateType {
        if self.is_enabled() { wanted } else { Unmovable }
    }

    #[inline]
    fn list_on_free(&self, frame: Frame, _recorded: MigrateType) -> MigrateType {
        if self.is_enabled() {
            self.kind(frame)
        } else {
            Unmovable
        }
    }

    fn fallbacks(&self, wanted: MigrateType) -> &'static [MigrateType] {
        if !self.is_enabled() {
            return &[];
        }
        match wanted {
            Unmovable => &[Reclaimable, Movable, High],
            Reclaimable => &[Unmovable, Movable, High],
            Movable => &[Reclaimable, Unmovable, High],
            High => &[Reclaimable, Unmovable, Movable],
            MigrateType::Isolate => &[],
        }
    }

    fn fall_back(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken> {
        let (frame, found, from) = self.victim(buddy, order, wanted)?;
        let mut rest = from;
        let mut claimed = Claimed::No;
        if found >= self.order {
            // Whole page blocks: every one that the free block covers takes the request's type.
            self.set_kind(FrameRange::of_block(frame, found), wanted);
            (rest, claimed) = (wanted, Claimed::Yes);
        } else if found.index() >= self.order.index() / 2 || wanted == Reclaimable {
            let block = self.block_around(buddy, frame);
            let pages = buddy.move_free(block, wanted);
            if pages >= self.order.frames() / 2 && from != High {
                self.set_kind(block, wanted);
                claimed = Claimed::Yes;
            }
            rest = wanted;
        }
        let taken = buddy.break_into(frame, order, wanted, rest);
        let fallback = Some(Fallback {
            order: found,
            from,
            claimed,
        });
        Some(Taken { fallback, ..taken })
    }

    fn holds_back(&self, kind: MigrateType) -> bool {
        kind == High && self.high_atomic == HighAtomic::SetAside
    }

    /// Blocks set aside do not merge with others, so that their free frames can be counted (Linux's
    /// rule for all but ordinary types, from the size of a page block up).
    #[inline]
    fn may_merge(&self, first: Frame, buddy: Frame, order: Order) -> bool {
        order < self.order
            || self.high_atomic == HighAtomic::OwnType
            || (self.kind(first) != High && self.kind(buddy) != High)
    }

    fn claim(&self, blocks: FrameRange, wanted: MigrateType) {
        self.set_kind(blocks, wanted);
    }

    fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        self.is_enabled().then(|| self.kind(frame))
    }

    fn resized(&self, managed: usize) -> Regrouped {
        let enabled = u32::from(managed >= TYPES * self.order.frames());
        // Relaxed: written under the zone's lock; see `is_enabled`.
        if self.enabled.swap(enabled, Ordering::Relaxed) == enabled {
            Regrouped::No
        } else {
            Regrouped::Yes
        }
    }

    fn dedicate(&self, buddy: &Buddy<'_, Self>, frame: Frame, kind: Mobility) {
        let whole = buddy
            .table()
            .block_of(frame, buddy.max_order())
            .is_some_and(|(_, state)| state.usage == Use::Free && state.order >= self.order);
        if self.is_enabled() && self.kind(frame) != High && !whole {
            let block = self.block_around(buddy, frame);
            self.set_kind(block, kind.into());
            buddy.move_free(block, kind.into());
        }
    }

    fn reserve_high_atomic(&self, buddy: &Buddy<'_, Self>, frame: Frame, most_frames: usize) {
        let room = (self.set_aside() + 1) * self.order.frames() <= most_frames;
        let eligible = self.is_enabled() && self.kind(frame) != High;
        if self.high_atomic == HighAtomic::SetAside && room && eligible {
            let block = self.block_around(buddy, frame);
            self.set_kind(block, High);
            buddy.move_free(block, High);
        }
    }

    fn unreserve_high_atomic(&self, buddy: &Buddy<'_, Self>, request: &Request) -> bool {
        let order = request.order;
        let fitting = match buddy.limit_of(request) {
            Some(limit) => buddy.below(High, order, limit),
            None => buddy.largest(High, order).map(|(frame, _)| frame),
        };
        let Some(frame) = fitting.filter(|_| self.holds_back(High)) else {
            return false;
        };
        let block = self.block_around(buddy, frame);
        let kind = request.mobility.into();
        self.set_kind(block, kind);
        buddy.merge_again(block);
        self.count_unreserved();
        true
    }

    fn unreserved(&self) -> usize {
        // Relaxed: as in `count_unreserved`.
        self.unreserved.load(Ordering::Relaxed) as usize
    }

    fn check(&self, buddy: &Buddy<'_, Self>) -> Result<(), Violation> {
        self.check_set_aside(buddy.span())
    }
}

impl PageBlocks<'_> {
    /// Counts a page block that was given back.
    pub(crate) fn count_unreserved(&self) {
        // Relaxed: written under the zone lock, which a refused request has held after its last
        // look.
        let unreserved = self.unreserved.load(Ordering::Relaxed);
        self.unreserved
            .store(unreserved.wrapping_add(1), Ordering::Relaxed);
    }

    /// Checks the count of page blocks set aside.
    pub(crate) fn check_set_aside(&self, span: FrameRange) -> Result<(), Violation> {
        let blocks = Self::blocks_in(span, self.order);
        let high = self.records[..blocks]
            .iter()
            // Relaxed: as in `kind`.
            .filter(|record| record.kind.load(Ordering::Relaxed) == High as u32)
            .count();
        Violation::unless_equal(
            "set-aside-counted",
            "page blocks kept for atomic requests",
            high,
            self.set_aside(),
        )
    }
}
