//! Page sets: the per-CPU lists of Linux since 6.7, which set their own size.
//!
//! A CPU has fourteen lists in each zone: three types for each order from 0 to 3, and two for the
//! order of a page block, one of them for movable blocks. Together they hold up to `high` frames.
//! That mark moves between two limits: up with each refill and with frees in a row, down while
//! background reclaim works, while the zone is below its high mark, and slowly with time. A refill
//! doubles with each miss in a row, and a drain takes as many frames as were freed since.
//!
//! A CPU that finds its page set entered by another does without it.

use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::platform::MaskGuard;
use brickyard::sync::{AtomicU32, GuardedU32, Ordering, Slot, SlotAccess};
use brickyard::{Frame, MigrateType, Order, Platform, Request};

use super::blocks::{Blocks, Mode};
use super::marks;
use super::rights::Rights;
use crate::classics::bulk::{Backing, StoreGuard};
use crate::classics::front::slots::{self, Wait};
use crate::classics::front::{Front, Returned};
use crate::classics::lock::LabLock;
use crate::classics::store::buddy::Buddy;
use crate::classics::store::frames::{FrameList, FrameTable};
use crate::classics::store::wrong;
use crate::classics::zone::Zone;
use brickyard::block::{State, Use};

/// The highest order with lists for each type (`PAGE_ALLOC_COSTLY_ORDER`).
const SMALL_MOST: Order = Order::new(3);

/// The types that have lists of their own.
const TYPES: usize = 3;

/// Three for each small order, and two for whole page blocks.
const LISTS: usize = TYPES * (SMALL_MOST.index() + 1) + 2;

/// The largest refill and drain: a batch times two to this (`CONFIG_PCP_BATCH_SCALE_MAX`).
const SCALE_MOST: u32 = 5;

/// A zone of the older designs, with page blocks and page sets of Linux.
pub(super) type BaseZone<'m, A, L, P> = Zone<'m, Blocks<'m>, Pagesets<'m, A>, L, P>;

/// What differs between versions in a page set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// A burst of frees begins with a batch of frames freed (6.12).
    AfterABatch,
    /// It begins with a batch and half of the least size (6.18).
    AfterHalfTheLeast,
}

impl Burst {
    /// Returns the number of frames freed in a row from which on frees of several frames are a
    /// burst.
    const fn begins(self, sizes: &Sizes) -> usize {
        match self {
            Self::AfterABatch => sizes.batch,
            Self::AfterHalfTheLeast => sizes.batch + sizes.high_least / 2,
        }
    }
}

/// The limits of a page set, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// The frames of the smallest refill and drain.
    pub batch: usize,
    /// The least value of `high`.
    pub high_least: usize,
    /// The largest.
    pub high_most: usize,
}

impl Sizes {
    /// Returns the limits for a zone of `managed` frames with this low mark, on a node with `cpus`
    /// CPUs.
    ///
    /// ```
    /// use brickyard_designs::classics::linux::Sizes;
    /// let sizes = Sizes::of(262_144, 1286, 4);
    /// assert_eq!((sizes.batch, sizes.high_least, sizes.high_most), (63, 321, 8192));
    /// ```
    #[must_use]
    pub const fn of(managed: usize, low_mark: usize, cpus: usize) -> Self {
        let cpus = if cpus == 0 { 1 } else { cpus };
        let share = managed / 4096;
        let base = match share {
            0 => 1,
            1..64 => share,
            _ => 64,
        };
        let power = 1 << (base + base / 2).ilog2();
        let batch = if power > 1 { power - 1 } else { 1 };
        let (least, most) = (low_mark / cpus, managed / 8 / cpus);
        let floor = 4 * batch;
        let high_least = if least > floor { least } else { floor };
        let high_most = if most > floor { most } else { floor };
        Self {
            batch,
            high_least,
            // `clamp` of the two: the largest is not below the least.
            high_most: if high_most > high_least {
                high_most
            } else {
                high_least
            },
        }
    }

    const fn is_fixed(&self) -> bool {
        self.high_least == self.high_most
    }

    const fn largest(&self) -> usize {
        self.batch << SCALE_MOST
    }
}

/// Returns true for the orders whose frees may be a burst.
fn is_small(order: Order) -> bool {
    order > Order::ZERO && order <= SMALL_MOST
}

/// What a page set takes for granted in one call.
#[derive(Debug, Clone, Copy)]
struct Now {
    sizes: Sizes,
    below_high: bool,
    reclaiming: bool,
}

/// The lists of one CPU in one zone.
#[derive(Debug, Default)]
pub struct Pageset {
    lists: [FrameList; LISTS],
    // Frames on the lists. Written by whoever is inside, read by others before they enter.
    count: AtomicU32,
    // How many blocks were ever freed to it, modulo 2^32. Likewise.
    freed: AtomicU32,
    high: GuardedU32,
    // The next refill is a batch, doubled so many times.
    doublings: GuardedU32,
    // Frames freed in a row; halved by each request.
    free_count: GuardedU32,
    // 1 if the last free was of a block of order 1 to 3.
    freed_small: GuardedU32,
}

impl Pageset {
    fn len(&self) -> usize {
        // Relaxed: exact inside, else a hint.
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of frames, for a drainer that skips an empty page set: skipping it must
    /// order the drainer as if it had been inside.
    fn peek_len(&self) -> usize {
        // Acquire: pairs with the release in `set_len`.
        self.count.load(Ordering::Acquire) as usize
    }

    fn set_len(&self, frames: usize) {
        // Release: pairs with the acquire in `peek_len`.
        self.count.store(frames as u32, Ordering::Release);
    }

    /// Returns the frames that it may hold now.
    fn high(&self) -> usize {
        self.high.get() as usize
    }

    fn set_high(&self, high: usize, sizes: &Sizes) -> usize {
        let high = high.clamp(sizes.high_least, sizes.high_most);
        self.high.set(high as u32);
        high
    }

    /// Takes the hottest block of a list, for a request of type `wanted`.
    fn pop(&self, table: &FrameTable<'_>, list: usize, wanted: MigrateType) -> Option<Frame> {
        let frame = self.lists[list].pop_front(table)?;
        let order = table.state(frame).order;
        self.set_len(self.len() - order.frames());
        table.set_state(frame, State::new(Use::Allocated, order, wanted));
        Some(frame)
    }

    /// Returns how many blocks a refill fetches, and adapts.
    fn next_refill(&self, order: Order, now: &Now) -> usize {
        let sizes = &now.sizes;
        let mut high = self.set_high(self.high(), sizes);
        if high < sizes.batch {
            return 1;
        }
        let single = order == Order::ZERO;
        let wanted = match single {
            true => sizes.batch << self.doublings.get(),
            false => sizes.batch,
        };
        if !sizes.is_fixed() && !now.below_high {
            high = self.set_high(high + wanted, sizes);
        }
        let mut frames = wanted;
        if single {
            let room = high.saturating_sub(self.len() + sizes.batch);
            let room = room.max(sizes.batch);
            if wanted <= room && self.doublings.get() < SCALE_MOST {
                self.doublings.set(self.doublings.get() + 1);
            }
            frames = wanted.min(room);
        }
        match frames {
            0 | 1 => 1,
            _ => (frames >> order.get()).max(2),
        }
    }

    /// Returns true if a free of this order, as the next, is in a burst of frees of several frames.
    fn is_in_burst(&self, order: Order, burst_from: usize) -> bool {
        let free_count = self.free_count.get() as usize;
        is_small(order) && free_count >= burst_from && self.freed_small.get() == 1
    }

    /// Notes a free, and returns how many frames are to leave.
    fn next_drain(&self, order: Order, now: &Now, burst_from: usize) -> usize {
        let sizes = &now.sizes;
        let free_count = self.free_count.get() as usize;
        let burst = self.is_in_burst(order, burst_from);
        self.freed_small.set(u32::from(is_small(order)));
        let free_count = match free_count < sizes.largest() {
            true => free_count + order.frames(),
            false => free_count,
        };
        self.free_count.set(free_count as u32);
        let threshold = self.threshold(now, burst, free_count);
        let held = self.len();
        if held < threshold {
            return 0;
        }
        if burst {
            return held.min(sizes.largest());
        }
        self.leaving(sizes, threshold)
    }

    /// Returns the number of frames from which on some leave, and adapts.
    fn threshold(&self, now: &Now, burst: bool, free_count: usize) -> usize {
        let sizes = &now.sizes;
        let high = self.set_high(self.high(), sizes);
        if high == 0 {
            return 0;
        }
        let lower = |by: usize| self.set_high(high.saturating_sub(by), sizes);
        if burst {
            lower(sizes.largest());
            return 0;
        }
        if now.reclaiming {
            return lower(free_count.max(sizes.batch)).min(sizes.batch * 4);
        }
        if sizes.is_fixed() {
            return high;
        }
        if now.below_high {
            lower(free_count.max(sizes.batch));
            return self.len().max(sizes.high_least);
        }
        let needed = free_count + sizes.batch;
        if self.len() >= high && high < needed {
            self.set_high(needed, sizes);
        }
        high
    }

    /// Returns how many frames leave by the threshold that was reached, other than in a burst.
    fn leaving(&self, sizes: &Sizes, threshold: usize) -> usize {
        if threshold < sizes.batch {
            return 1;
        }
        // `threshold - batch` may be below the batch.
        let most = threshold - sizes.batch;
        let free_count = self.free_count.get() as usize;
        free_count.max(sizes.batch).min(most.max(sizes.batch))
    }

    /// Returns how many frames would leave if the page set had just become full, other than in a
    /// burst.
    fn leaving_if_full(&self, now: &Now) -> usize {
        let sizes = &now.sizes;
        let high = self.high().clamp(sizes.high_least, sizes.high_most);
        let threshold = match now {
            Now {
                reclaiming: true, ..
            } => high.min(sizes.batch * 4),
            Now {
                below_high: true, ..
            } if !sizes.is_fixed() => self.len().max(sizes.high_least),
            _ => high,
        };
        self.leaving(sizes, threshold)
    }

    /// Lets time pass, about a second. Returns how many frames are to leave.
    fn decay(&self, sizes: &Sizes) -> usize {
        let mut high = self.high();
        if high > sizes.high_least {
            high = (high - high / 8)
                .max(self.len().saturating_sub(sizes.largest()))
                .max(sizes.high_least);
            self.high.set(high as u32);
        }
        self.len().saturating_sub(high.max(sizes.high_least))
    }

    fn check(&self, table: &FrameTable<'_>) -> Result<usize, Violation> {
        let mut frames = 0;
        for list in &self.lists {
            if let Some(frame) = list.broken_at(table) {
                return wrong("cached-once", "links that do not meet", frame);
            }
            for frame in list.iter(table) {
                let state = table.state(frame);
                if state.usage != Use::Cached {
                    return wrong("cached-once", "a block that is not cached", frame);
                }
                frames += state.order.frames();
            }
        }
        Violation::unless_equal("cached-once", "frames in a page set", frames, self.len())?;
        Ok(frames)
    }
}

/// A page set without frames: how one would go on, step by step. For a lab that follows a recorded
/// host and asks at each step what would come next.
#[derive(Debug)]
pub struct Course {
    own: Pageset,
    burst: Burst,
}

impl Course {
    /// Makes the page set of a CPU that has just started.
    #[must_use]
    pub fn new(burst: Burst) -> Self {
        Self {
            own: Pageset::default(),
            burst,
        }
    }

    /// Sets how many frames it holds.
    pub fn set_count(&self, frames: usize) {
        self.own.set_len(frames);
    }

    /// Returns how many frames it holds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.own.len()
    }

    /// Sets how many frames it may hold.
    pub fn set_high(&self, frames: usize) {
        self.own.high.set(frames as u32);
    }

    /// Returns how many frames it may hold.
    #[must_use]
    pub fn high(&self) -> usize {
        self.own.high()
    }

    /// Notes a request.
    pub fn request(&self) {
        self.own.free_count.set(self.own.free_count.get() >> 1);
    }

    /// Returns how many blocks a refill would fetch.
    pub fn refill(&self, order: Order, sizes: &Sizes, below_high: bool) -> usize {
        let now = Now {
            sizes: *sizes,
            below_high,
            reclaiming: false,
        };
        self.own.next_refill(order, &now)
    }

    /// Returns true if a free of this order, as the next, is in a burst of frees.
    #[must_use]
    pub fn is_in_burst(&self, order: Order, sizes: &Sizes) -> bool {
        self.own.is_in_burst(order, self.burst.begins(sizes))
    }

    /// Returns how many frames would leave, at least, if the frees so far had filled the page set:
    /// for a lab that sees frames leave, and does not know exactly how many there were. A burst of
    /// frees of several frames is none of this.
    #[must_use]
    pub fn leaving_if_full(&self, sizes: &Sizes, below_high: bool, reclaiming: bool) -> usize {
        let now = Now {
            sizes: *sizes,
            below_high,
            reclaiming,
        };
        self.own.leaving_if_full(&now)
    }

    /// Notes a free, and returns how many frames would leave: at least so many, in whole blocks.
    pub fn free(&self, order: Order, sizes: &Sizes, below_high: bool, reclaiming: bool) -> usize {
        self.own.doublings.set(self.own.doublings.get() >> 1);
        self.own.set_len(self.own.len() + order.frames());
        let now = Now {
            sizes: *sizes,
            below_high,
            reclaiming,
        };
        self.own.next_drain(order, &now, self.burst.begins(sizes))
    }

    /// Lets a second pass, and returns how many frames would leave.
    pub fn tick(&self, sizes: &Sizes) -> usize {
        self.own.decay(sizes)
    }
}

/// The page sets of one zone, over slots in the embedder's memory, one for each CPU. A CPU without
/// a slot goes straight to the store.
#[derive(Debug)]
pub struct Pagesets<'m, A> {
    slots: &'m [Slot<A, Pageset>],
    huge: Order,
    burst: Burst,
}

impl<'m, A: SlotAccess> Pagesets<'m, A> {
    /// Makes page sets for the CPUs `0..slots.len()`, with lists for page blocks of order `huge`.
    #[must_use]
    pub const fn new(slots: &'m [Slot<A, Pageset>], huge: Order, burst: Burst) -> Self {
        Self { slots, huge, burst }
    }

    /// Sets when a burst of frees begins.
    pub(crate) const fn set_burst(&mut self, burst: Burst) {
        self.burst = burst;
    }

    /// Returns true if there are lists for blocks of this order.
    #[inline]
    fn lists(&self, order: Order) -> bool {
        order <= SMALL_MOST || order == self.huge
    }

    /// Returns the list of a type and an order.
    fn list_of(&self, order: Order, kind: MigrateType) -> usize {
        let kind = match kind {
            MigrateType::Unmovable => 0,
            MigrateType::Reclaimable => 2,
            // Pages of blocks set aside for atomic requests lie among the movable ones.
            MigrateType::Movable | MigrateType::HighAtomic | MigrateType::Isolate => 1,
        };
        match order > SMALL_MOST {
            true => LISTS - 1 - usize::from(kind != 1),
            false => TYPES * order.index() + kind,
        }
    }

    fn now<L: LabLock, P: Platform>(&self, backing: &Backing<'_, Blocks<'_>, L, P>) -> Now {
        let store = backing.unlocked();
        let condition = store.grouping().condition();
        let low = backing.watermarks().marks().low;
        Now {
            sizes: Sizes::of(store.managed_frames(), low, self.slots.len()),
            below_high: condition.is_below_high(),
            reclaiming: condition.is_reclaiming(),
        }
    }

    fn with_own<P: Platform, R>(
        &self,
        platform: &P,
        with: impl FnOnce(&Pageset) -> R,
    ) -> Option<R> {
        slots::with_own(self.slots, platform, Wait::Never, with)
    }

    /// Takes a block inside the page set, after a refill if its list is empty.
    fn take_inside<L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, Blocks<'_>, L, P>,
        own: &Pageset,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
    ) -> Option<Frame> {
        let store = backing.unlocked();
        let list = self.list_of(order, store.list_for(wanted));
        if own.lists[list].is_empty() {
            self.refill(backing, own, list, order, wanted, rights);
        }
        own.pop(store.table(), list, wanted)
    }

    /// Fetches blocks for one list, in one hold of the zone lock. The one that was fetched first is
    /// the first to be taken.
    fn refill<L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, Blocks<'_>, L, P>,
        own: &Pageset,
        list: usize,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
    ) {
        let most = own.next_refill(order, &self.now(backing));
        let masked = MaskGuard::new(backing.platform());
        let guard = backing.lock_masked(&masked);
        let (store, blocks) = (&*guard, guard.grouping());
        let mut mode = Mode::Normal;
        let mut taken = 0;
        // The frames arrive in the lists while the slot is still held, so no search can miss them
        // in transit.
        let _transit = backing.moves().begin(0);
        while taken < most
            && let Some(one) = blocks.take(store, order, wanted, rights, &mut mode)
        {
            guard.count(Some(one));
            let cached = State::new(Use::Cached, order, wanted);
            store.table().set_state(one.frame, cached);
            own.lists[list].push_back(store.table(), one.frame);
            own.set_len(own.len() + order.frames());
            taken += 1;
        }
        guard.meter().took(taken, order);
    }

    /// Takes a block for a caller with these rights. `None` if the store has none, or another CPU
    /// is in the page set.
    pub(crate) fn take_as<L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, Blocks<'_>, L, P>,
        request: &Request,
        rights: Rights,
    ) -> Option<Frame> {
        let wanted = request.mobility.into();
        let taken = self.with_own(backing.platform(), |own| {
            own.free_count.set(own.free_count.get() >> 1);
            self.take_inside(backing, own, request.order, wanted, rights)
        });
        taken.flatten()
    }

    /// Keeps a freed block, if it is one that may be kept: a block in use of an order that has
    /// lists, and not isolated. Returns its list.
    fn keep(
        &self,
        store: &Buddy<'_, Blocks<'_>>,
        own: &Pageset,
        frame: Frame,
        order: Order,
    ) -> Option<usize> {
        let state = store.table().state(frame);
        let whole = state.usage == Use::Allocated && state.order == order;
        if !whole || store.is_isolated(frame) {
            return None;
        }
        let list = self.list_of(order, store.list_on_free(frame, state.kind));
        let cached = State {
            usage: Use::Cached,
            ..state
        };
        store.table().set_state(frame, cached);
        own.lists[list].push_front(store.table(), frame);
        own.set_len(own.len() + order.frames());
        // Relaxed: only whoever is inside writes it.
        let freed = own.freed.load(Ordering::Relaxed).wrapping_add(1);
        // Release: pairs with the acquire in `arrivals`; a CPU that reads the number also finds the
        // block.
        own.freed.store(freed, Ordering::Release);
        Some(list)
    }

    /// Keeps a freed block, and gives others back to the store if there are too many.
    fn give_inside<L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, Blocks<'_>, L, P>,
        own: &Pageset,
        frame: Frame,
        order: Order,
    ) -> Returned {
        let Some(list) = self.keep(backing.unlocked(), own, frame, order) else {
            return Returned::ToStore;
        };
        own.doublings.set(own.doublings.get() >> 1);
        let now = self.now(backing);
        let leaving = own.next_drain(order, &now, self.burst.begins(&now.sizes));
        if leaving > 0 {
            Self::give_back(backing, own, list, leaving);
            let condition = backing.unlocked().grouping().condition();
            if now.below_high && marks::is_above_high(backing) {
                condition.set_below_high(false);
            }
        }
        Returned::Kept
    }

    /// Gives blocks back to the store in one hold of the zone lock, until at least so many frames
    /// have left: all of one list from its cold end, then those of the next. Returns how many
    /// frames left.
    fn give_back<L: LabLock, P: Platform>(
        backing: &Backing<'_, Blocks<'_>, L, P>,
        own: &Pageset,
        from: usize,
        least: usize,
    ) -> usize {
        if least == 0 || own.len() == 0 {
            return 0;
        }
        let _transit = backing.moves().begin(0);
        let masked = MaskGuard::new(backing.platform());
        let guard = backing.lock_masked(&masked);
        let mut left = 0;
        let (mut list, mut blocks) = (from, 0);
        while left < least && own.len() > 0 {
            match own.lists[list].pop_back(guard.table()) {
                None => list = (list + 1) % LISTS,
                Some(frame) => {
                    let frames = guard.table().state(frame).order.frames();
                    own.set_len(own.len() - frames);
                    guard.give_cached(frame);
                    left += frames;
                    blocks += 1;
                }
            }
        }
        guard.meter().gave(blocks, Order::ZERO);
        left
    }

    /// Lets time pass on this CPU, about a second: the page set shrinks, a batch at a time.
    pub(crate) fn tick<L: LabLock, P: Platform>(&self, backing: &Backing<'_, Blocks<'_>, L, P>) {
        self.with_own(backing.platform(), |own| {
            let sizes = self.now(backing).sizes;
            let mut leaving = own.decay(&sizes);
            while leaving > 0 {
                let left = Self::give_back(backing, own, 0, leaving.min(sizes.batch));
                leaving = leaving.saturating_sub(left.max(1));
            }
        });
    }

    /// Puts a block that is in use into this CPU's page set as it is, for a caller that takes over
    /// memory in use. Returns false if it may not be kept.
    pub(crate) fn stock<L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, Blocks<'_>, L, P>,
        frame: Frame,
        order: Order,
    ) -> bool {
        if !self.lists(order) {
            return false;
        }
        let kept = self.with_own(backing.platform(), |own| {
            self.keep(backing.unlocked(), own, frame, order)
        });
        kept.flatten().is_some()
    }

    /// Sets the number of frames that this CPU's page set may hold now.
    pub(crate) fn set_high<P: Platform>(&self, platform: &P, high: usize) {
        self.with_own(platform, |own| own.high.set(high as u32));
    }
}

impl<'m, L: LabLock, P: Platform, A: SlotAccess> Front<Blocks<'m>, L, P> for Pagesets<'_, A> {
    #[inline]
    fn serves(&self, order: Order) -> bool {
        self.lists(order)
    }

    fn take(&self, backing: &Backing<'_, Blocks<'m>, L, P>, request: &Request) -> Option<Frame> {
        self.take_as(backing, request, Rights::of(request))
            .or_else(|| take_direct(&backing.lock(), request, Rights::of(request)))
    }

    /// One entry for all of them; frees in a row go on being counted.
    fn take_many(
        &self,
        backing: &Backing<'_, Blocks<'m>, L, P>,
        request: &Request,
        out: &mut [Frame],
    ) -> usize {
        let wanted = request.mobility.into();
        let rights = Rights::of(request);
        let taken = self.with_own(backing.platform(), |own| {
            let mut taken = 0;
            for slot in out {
                let Some(frame) = self.take_inside(backing, own, Order::ZERO, wanted, rights)
                else {
                    break;
                };
                *slot = frame;
                taken += 1;
            }
            taken
        });
        taken.unwrap_or(0)
    }

    fn give(
        &self,
        backing: &Backing<'_, Blocks<'m>, L, P>,
        frame: Frame,
        order: Order,
    ) -> Returned {
        self.with_own(backing.platform(), |own| {
            self.give_inside(backing, own, frame, order)
        })
        .unwrap_or(Returned::ToStore)
    }

    fn serves_here(&self, backing: &Backing<'_, Blocks<'m>, L, P>) -> bool {
        let platform = backing.platform();
        platform.cpu() < self.slots.len()
            && (!A::LENDS || self.with_own(platform, |_| ()).is_some())
    }

    fn drain(
        &self,
        backing: &Backing<'_, Blocks<'m>, L, P>,
        reach: Reach,
        patience: &Patience,
    ) -> Drained {
        let piece = self.now(backing).sizes.largest();
        let holds_nothing = |own: &Pageset| own.peek_len() == 0;
        let empty = |own: &Pageset| {
            let mut left = 0;
            while own.len() > 0 {
                left += Self::give_back(backing, own, 0, piece);
            }
            left
        };
        let platform = backing.platform();
        slots::drain(self.slots, platform, reach, patience, holds_nothing, empty)
    }

    fn arrivals(&self) -> usize {
        // Acquire: pairs with the release in `keep`.
        let freed = |slot: &Slot<A, Pageset>| slot.outside().freed.load(Ordering::Acquire) as usize;
        self.slots.iter().map(freed).fold(0, usize::wrapping_add)
    }

    fn cached(&self, _backing: &Backing<'_, Blocks<'m>, L, P>) -> usize {
        self.slots.iter().map(|slot| slot.outside().len()).sum()
    }

    fn check(&self, backing: &Backing<'_, Blocks<'m>, L, P>) -> Result<usize, Violation> {
        let table = backing.unlocked().table();
        let mut sets = self.slots.iter().map(|slot| slot.outside().check(table));
        sets.try_fold(0, |sum, frames| Ok(sum + frames?))
    }
}

/// Takes a block past the page sets, and counts it.
pub(crate) fn take_direct<L: LabLock, P: Platform>(
    guard: &StoreGuard<'_, '_, Blocks<'_>, L, P>,
    request: &Request,
    rights: Rights,
) -> Option<Frame> {
    let wanted = request.mobility.into();
    let taken = guard
        .grouping()
        .take_direct(guard, request.order, wanted, rights)?;
    guard.count(Some(taken));
    guard.meter().took(1, request.order);
    Some(taken.frame)
}
