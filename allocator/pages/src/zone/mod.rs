//! A zone: a store, its lock and a front, with the zone's watermarks.
//!
//! It may be used alone: an embedder with one kind of memory and no reclaim needs no more. [`Nodes`](crate::node::Nodes) puts several in order.
//! [`ZonePlan`] builds one in memory found at run time. Every part can also be made in a constant, so that a kernel has its zone from the first instruction on:
//!
//! ```
//! use brickyard::bulk::Tuning;
//! use brickyard::design::Brickyard;
//! use brickyard::front::{CpuStash, Stash, StashSizes};
//! use brickyard::store::bitmap::Bitmap;
//! use brickyard::sync::{AtomicU64, Shared, Slot};
//! use brickyard::zone::Zone;
//! use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, ZoneKind};
//!
//! const SPAN: FrameRange = FrameRange::new(0, 8192);
//! const MAX: Order = Order::DEFAULT_MAX;
//! const COUNT: usize = Bitmap::words(SPAN, MAX, Order::HUGE);
//! static WORDS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
//! static SLOTS: [Slot<Shared, CpuStash>; 4] = [const { Slot::new(CpuStash::new()) }; 4];
//! static ZONE: Zone<Brickyard<'static, OneCpu, Shared>> = Zone::new(
//!     ZoneKind::Normal,
//!     OneCpu,
//!     Bitmap::new(SPAN, MAX, Order::HUGE, &WORDS),
//!     Stash::new(&SLOTS, StashSizes::DEFAULT),
//!     Tuning::LINUX,
//! );
//!
//! ZONE.add(FrameRange::new(160, 8000))?;
//! let page = ZONE.alloc(&Request::page(Mobility::Movable))?;
//! ZONE.free(page, Order::ZERO)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Invariant `order-0-succeeds`: a request for order 0 fails only if no frame was free that it may have, caches and
//! frames on their way between a front and the store included. The exceptions:
//!
//! - requests in an interrupt, which wait for nobody, leave other CPUs' caches alone, and of stashes their own, too;
//! - atomic requests where slots are exclusive, which may interrupt no other CPU;
//! - CPUs with exclusive slots on which the platform cannot [run](crate::Platform::run_on) anything;
//! - frames that somebody has in hand who stands still: on their way, promised, of a block that he is opening, in a shared
//!   slot that he is in;
//! - requests with a limit inside the zone, and all while something is isolated: frames of a larger block that is being
//!   given up or opened at that moment;
//! - a request that has looked everywhere [`LOOKS_MOST`] times, while each time frames came or went; where what is free is
//!   below a mark, [`LOOKS_BELOW_A_MARK`] times.
//!
//! **Bounds.** A request asks the front and the store, and as a last resort looks everywhere at most [`LOOKS_MOST`] times:
//! each look visits every cache once, searches the store once, which has its own bound, see
//! [`bitmap`](crate::store::bitmap), and waits for frames that somebody has in hand, with a look at what the store says now
//! and then. Orders above 0 and interrupts look once. Whatever others do, it then goes on to compaction and reclaim (by
//! [`Nodes`](crate::node::Nodes), which does all of this in each zone, and again after each reclaim that helped) or is
//! refused; only where another request has meanwhile given back a block that was set aside it looks as often once more
//! before. All these looks together wait for others [`WAITS_MOST`](crate::front::patience::WAITS_MOST) calls of
//! [`Platform::relax`](crate::Platform::relax) at most, and [`PATIENCE`](brickyard_sync::PATIENCE) for any one CPU's cache;
//! who has let the request wait in vain is not waited for, or asked to run anything, again. Besides, it waits that long
//! for its own CPU's cache, each time it asks it. By a design with a lock, the waits for that lock come on top.

mod deferral;
mod layout;
mod scanners;
pub mod watermark;

pub use layout::{Placed, Units, ZonePlan};

use core::fmt;

use brickyard_sync::{AtomicUsize, Ordering};

use crate::bulk::{Backing, MeterReading, StoreGuard, Tuning};
use crate::check::Violation;
use crate::design::Design;
use crate::error::BulkFreeError;
use crate::front::patience::Patience;
use crate::front::{Front, Reach, Returned};
use crate::stats::{FreeCounts, ZoneSnapshot};
use crate::store::{Census, Store};
use crate::{
    AllocError, Context, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError,
    Request, ZoneKind,
};
use deferral::Deferral;
use scanners::Scanners;
use watermark::Marks;

/// How fragmented memory must be, in thousandths of the index, for a failure to be called fragmentation: half of what the index can be at
/// this order. With all that is free in single frames it is 1000 - 1000 / 2^order, so from order 4 on this is nearly Linux's `extfrag_threshold` of 500.
const fn fragmented_above(order: Order) -> i32 {
    (1000 - (1000 >> order.get())) / 2
}

/// How often a request for one frame looks everywhere at most: see the [module](self).
pub const LOOKS_MOST: u32 = 64;

/// How often a request does so that may not have what is free, since that is below a mark: frames on their way may lift the
/// zone above it, but no more than so many times is reclaim put off.
pub const LOOKS_BELOW_A_MARK: u32 = 4;

/// What a look everywhere has found.
enum Look {
    Found(Frame),
    /// Nothing that the request may have was free all the while.
    Nothing,
    /// Nothing; but frames came and went meanwhile, or somebody has some in hand.
    Unsettled,
    /// The same, and what is free is below a mark.
    UnsettledBelowAMark,
}

/// The guard of a zone's store.
pub(crate) type Guard<'z, D> =
    StoreGuard<'z, <D as Design>::Store, <D as Design>::Lock, <D as Design>::Platform>;

/// A zone of memory.
pub struct Zone<D: Design> {
    kind: ZoneKind,
    front: D::Front,
    // Written by administration, read by every request.
    marks: [AtomicUsize; 3],
    reserve: [AtomicUsize; ZoneKind::COUNT],
    pub(crate) deferral: Deferral,
    pub(crate) scanners: Scanners,
    backing: Backing<D::Store, D::Lock, D::Platform>,
}

impl<D: Design> Zone<D> {
    /// A zone with no memory yet (see [`Zone::add`]) and no watermarks.
    #[must_use]
    pub const fn new(
        kind: ZoneKind,
        platform: D::Platform,
        store: D::Store,
        front: D::Front,
        tuning: Tuning,
    ) -> Self {
        Self {
            kind,
            front,
            marks: [const { AtomicUsize::new(0) }; 3],
            reserve: [const { AtomicUsize::new(0) }; ZoneKind::COUNT],
            deferral: Deferral::new(),
            scanners: Scanners::new(),
            backing: Backing::new(platform, store, tuning),
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ZoneKind {
        self.kind
    }

    /// The platform it runs on.
    #[must_use]
    pub const fn platform(&self) -> &D::Platform {
        self.backing.platform()
    }

    /// The frames that it has records for; not all of them need be memory.
    #[must_use]
    pub fn span(&self) -> FrameRange {
        self.backing.unlocked().span()
    }

    /// The highest order it hands out.
    #[must_use]
    pub fn max_order(&self) -> Order {
        self.backing.unlocked().max_order()
    }

    pub(crate) const fn backing(&self) -> &Backing<D::Store, D::Lock, D::Platform> {
        &self.backing
    }

    pub(crate) fn lock(&self) -> Guard<'_, D> {
        self.backing.lock()
    }

    pub(crate) fn administer(&self) -> Guard<'_, D> {
        self.backing.administer()
    }

    // ---- requests ----

    /// A block for `request`. On a miss of everything else, every cache that can be reached is drained first.
    ///
    /// Cost: what a hit of the front costs; else one hold of the zone lock, or, where the store is lock-free, a few atomic instructions.
    ///
    /// # Errors
    /// Why it could not be served. No frame has changed hands then, though caches may have been drained.
    #[inline]
    pub fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        match self.hit(request) {
            Some(frame) => Ok(frame),
            None => self.alloc_slowly(request),
        }
    }

    #[inline(never)]
    fn alloc_slowly(&self, request: &Request) -> Result<Frame, AllocError> {
        let patience = &Patience::new();
        let drained = || self.last_resort(request, patience, || true);
        let spent = self.reserves_spent();
        self.try_alloc(request)
            .or_else(drained)
            .or_else(|| self.spend_reserve(request, |_| true))
            .or_else(|| (self.reserves_spent() != spent).then(drained).flatten())
            .ok_or_else(|| self.why_not(request))
    }

    /// A block for `request` if the front or the store has one at hand.
    pub(crate) fn try_alloc(&self, request: &Request) -> Option<Frame> {
        if self.front_serves(request.order) && !self.is_limited(request) {
            return self.front.take(&self.backing, request);
        }
        let guard = self.lock();
        let frame = guard.take(request)?.frame;
        if request.is_high_atomic() {
            guard.reserve_high_atomic(frame, self.high_atomic_cap());
        }
        Some(frame)
    }

    /// A block that lies in the caller's cache here and now. Nothing is asked about watermarks: what lies in a cache is not counted as free, and was fetched while the mark
    /// allowed it.
    #[inline(always)]
    pub(crate) fn hit(&self, request: &Request) -> Option<Frame> {
        if request.limit.is_some() {
            return None;
        }
        self.front.hit(&self.backing, request)
    }

    #[inline]
    fn front_serves(&self, order: Order) -> bool {
        let store = self.backing.unlocked();
        let huge = store.page_block_order();
        order == Order::ZERO || order <= store.max_order() && self.front.serves(order, huge)
    }

    /// Does the request's limit cut into this zone?
    fn is_limited(&self, request: &Request) -> bool {
        request.limit.is_some_and(|limit| limit < self.span().end)
    }

    /// One hundredth of the zone and a page block (Linux 4.4).
    fn high_atomic_cap(&self) -> usize {
        let store = self.backing.unlocked();
        store.managed_frames() / 100 + store.page_block_order().frames()
    }

    /// Drains and tries again, until it succeeds, or nothing was free all the while it looked (`order-0-succeeds`), but
    /// [`LOOKS_MOST`] times at most. It takes only what `admitted` allows: frames that come out of a cache may lift the
    /// zone above its mark; if they do not, that is all that can be done here.
    ///
    /// It waits for others as long as there is `patience`, which is one for all zones and tries of a request.
    pub(crate) fn last_resort(
        &self,
        request: &Request,
        patience: &Patience,
        admitted: impl Fn() -> bool,
    ) -> Option<Frame> {
        let reach = Reach::of(request.context, self.platform());
        let looks = match request.order {
            Order::ZERO if reach != Reach::Own => LOOKS_MOST,
            _ => 1,
        };
        let mut below_a_mark = 0;
        for look in 1..=looks {
            match self.look_everywhere(request, reach, patience, &admitted) {
                Look::Found(frame) => return Some(frame),
                Look::Nothing => return None,
                Look::Unsettled => {}
                Look::UnsettledBelowAMark => {
                    below_a_mark += 1;
                    if below_a_mark == LOOKS_BELOW_A_MARK {
                        return None;
                    }
                }
            }
            if look < looks {
                self.wait_for_others(request, look, patience);
            }
        }
        None
    }

    /// Waits a little, at `least` so often, until frames that are on their way have arrived, and what somebody has in hand in
    /// the store is to be had, or others have done something; or until it is clear that whoever has them stands still.
    fn wait_for_others(&self, request: &Request, least: u32, patience: &Patience) {
        let store = self.backing.unlocked();
        let before = self.activity();
        let goes_on = || {
            !D::Store::LOCK_FREE
                || self.activity() != before
                || store.may_refuse(request)
                || store.can_serve(request)
        };
        let arrived = || self.backing.moves().settled().is_some() && goes_on();
        patience.wait_for_moves(least, self.platform(), arrived);
    }

    /// What changes where anybody does anything: frees to caches, moves, and what is free.
    fn activity(&self) -> [usize; 3] {
        let store = self.backing.unlocked();
        [
            self.front.arrivals(),
            self.backing.moves().started(),
            store.free_frames(),
        ]
    }

    /// Is something kept here that this request may not have, by a mark or a reserve?
    fn holds_back_from(&self, request: &Request) -> bool {
        self.watermarks().min > 0 || self.reserve_against(request.highest) > 0
    }

    /// Brings what caches hold to the store, and takes what `request` wants there.
    fn look_everywhere(
        &self,
        request: &Request,
        reach: Reach,
        patience: &Patience,
        admitted: impl Fn() -> bool,
    ) -> Look {
        let arrivals = self.front.arrivals();
        let settled = self.backing.moves().settled();
        let drained = self.front.drain(&self.backing, reach, patience);
        // Judged under the lock, where the counters are exact: a free page that changes its list is on none for a moment.
        let guard = self.lock();
        let admitted = admitted();
        let taken = admitted.then(|| guard.take(request)).flatten();
        drop(guard);
        if let Some(taken) = taken {
            return Look::Found(taken.frame);
        }
        let moves = self.backing.moves();
        let all_seen = drained.left_out == 0 && settled.is_some_and(|started| moves.still(started));
        if !admitted && self.holds_back_from(request) {
            // With all that the caches had the zone is below its mark. That is for reclaim to mend.
            return match all_seen && self.front.arrivals() == arrivals {
                true => Look::Nothing,
                false => Look::UnsettledBelowAMark,
            };
        }
        // A frame may have been freed to a cache that was looked at already, by someone who then took one that was still
        // to be found.
        let nothing_came = drained.frames == 0
            && self.backing.unlocked().may_refuse(request)
            && self.front.arrivals() == arrivals
            // Asked once more: the store was looked at since.
            && all_seen
            && settled.is_some_and(|started| moves.still(started));
        match nothing_came {
            true => Look::Nothing,
            false => Look::Unsettled,
        }
    }

    /// Gives blocks that are set aside for atomic requests back, as long as they serve the request, and takes what it wants
    /// where `admitted` allows it with so many frames that stay set aside.
    ///
    /// One hold of the zone lock, with a round for each block that is set aside: a hundredth of the zone's blocks, and one
    /// more.
    pub(crate) fn spend_reserve(
        &self,
        request: &Request,
        admitted: impl Fn(usize) -> bool,
    ) -> Option<Frame> {
        if D::Store::LOCK_FREE {
            // It sets nothing aside.
            return None;
        }
        let guard = self.lock();
        if !admitted(0) {
            // Not even if all of it were given back.
            return None;
        }
        while guard.unreserve_high_atomic(request) {
            let taken = admitted(guard.set_aside_frames()).then(|| guard.take(request));
            if let Some(taken) = taken.flatten() {
                return Some(taken.frame);
            }
        }
        None
    }

    /// How often something was given back that was set aside for atomic requests. Who was refused while it changed may
    /// have looked too early: it can lie in a cache by now.
    pub(crate) fn reserves_spent(&self) -> usize {
        self.backing.unlocked().unreserved()
    }

    /// Why `request` cannot be served now: by the fragmentation index, whether memory is full or in pieces.
    #[must_use]
    pub fn why_not(&self, request: &Request) -> AllocError {
        let order = request.order;
        let max = self.max_order();
        if order > max {
            return AllocError::OrderTooLarge { order, max };
        }
        if let Some(limit) = request.limit
            && self.is_limited(request)
        {
            return AllocError::LimitUnsatisfiable { limit };
        }
        if D::Store::LOCK_FREE {
            // Counting all free blocks would cost a look at each. Enough is free, and yet there is no block: that can be said at once.
            let free = self.free_frames();
            return match order {
                Order::ZERO => AllocError::Exhausted { free },
                _ if free < order.frames() => AllocError::Exhausted { free },
                _ => AllocError::Fragmented {
                    order,
                    free,
                    index: None,
                },
            };
        }
        let counts = self.free_counts();
        let free = counts.free_frames();
        let index = counts.fragmentation_index(order);
        if order > Order::ZERO && index > fragmented_above(order) {
            let index = Some(index as u16);
            return AllocError::Fragmented { order, free, index };
        }
        AllocError::Exhausted { free }
    }

    /// Fills `out` with single frames of `request`'s mobility, context and limit, as many as can be had. Returns how many.
    ///
    /// # Errors
    /// Why none could be had.
    pub fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        let request = &request.single();
        let through_front = self.front.holds(out.len()) && self.front.serves_here(&self.backing);
        let mut taken = if self.is_limited(request) || !through_front {
            self.backing.take_singles(request, out)
        } else {
            self.front.take_many(&self.backing, request, out)
        };
        while let Some(slot) = out.get_mut(taken) {
            match self.alloc(request) {
                Ok(frame) => *slot = frame,
                Err(why) if taken == 0 => return Err(why),
                Err(_) => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// The block of `request`'s order that starts exactly at `frame`. Where it lies in a cache, the caches are drained as
    /// far as the request's context allows.
    ///
    /// # Errors
    /// [`RangeError::Busy`] where a part is in use (or others came between each time it was tried), [`RangeError::Absent`] or [`RangeError::OutsideSpan`] where it is no memory of this zone,
    /// [`RangeError::Isolated`] where it is isolated, [`RangeError::Malformed`] for a misaligned frame or too high an order; nothing has changed then.
    pub fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        let first = self.lock().take_at(frame, request);
        match first {
            Err(RangeError::Busy { .. }) => {
                let reach = Reach::of(request.context, self.platform());
                self.front.drain(&self.backing, reach, &Patience::new());
                self.lock().take_at(frame, request)
            }
            other => other,
        }
    }

    // ---- frees ----

    /// Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one.
    ///
    /// # Errors
    /// A free of anything else is refused and changes nothing. What the store alone keeps is always noticed. Behind lists and magazines, a frame that two CPUs free
    /// at the same moment may be missed. Behind a [stash](crate::front::Stash), so may a second free of a frame that lies in one, unless it is the one freed last.
    #[inline]
    pub fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if order == Order::ZERO && self.front.keep(&self.backing, frame) {
            return Ok(());
        }
        self.free_otherwise(frame, order)
    }

    #[inline(never)]
    fn free_otherwise(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if !self.front_serves(order) {
            return self.free_to_store(frame, order);
        }
        match self.front.give(&self.backing, frame, order) {
            Returned::Kept => Ok(()),
            Returned::FreeAlready => Err(FreeError::DoubleFree),
            Returned::ToStore => self.free_to_store(frame, order),
        }
    }

    fn free_to_store(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.lock().give(frame, order).map(|_| ())
    }

    /// Takes back single frames: holds the front over as many as it takes, or the zone lock (by the bulk policy) where the front serves nobody.
    ///
    /// # Errors
    /// At the first bad one: its place and what is wrong with it. Those before it are freed; it and those behind it are not.
    pub fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        let mut freed = 0;
        while freed < frames.len() {
            let rest = &frames[freed..];
            let through_front =
                self.front.holds(rest.len()) && self.front.serves_here(&self.backing);
            let (given, error) = if through_front {
                let kept = self.front.give_many(&self.backing, rest);
                match rest.get(kept) {
                    None => (kept, None),
                    // What the front does not keep is a case for the store, or for nobody.
                    Some(&frame) => match self.free(frame, Order::ZERO) {
                        Ok(()) => (kept + 1, None),
                        Err(error) => (kept, Some(error)),
                    },
                }
            } else {
                self.backing.give_singles(rest)
            };
            freed += given;
            if let Some(error) = error {
                return Err(BulkFreeError { freed, error });
            }
        }
        Ok(())
    }

    /// Takes back a range of any size, such as [`alloc_contiguous`](crate::pressure::alloc_contiguous) gives.
    ///
    /// # Errors
    /// What a free of the first frame would be refused with that is not in use; nothing has changed then.
    pub fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        if !self.span().covers(range) {
            return Err(FreeError::NotOwned);
        }
        self.lock().give_range(range)
    }

    // ---- administration ----

    /// Makes `range` memory of the zone; what of it is memory already stays as it is. Returns how many frames are new. O(frames).
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    pub fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.administer().add(range)
    }

    /// Forgets all of `range`, which nobody may be using. Returns how many frames it had. O(frames).
    ///
    /// # Errors
    /// [`RangeError::Busy`]; nothing has changed then.
    pub fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.after_a_drain(|store| store.remove(range))
    }

    /// Keeps all free frames of `range` from being handed out; reservations may overlap. Returns how many frames that were. O(frames).
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use; nothing has changed then.
    pub fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.after_a_drain(|store| store.reserve(range))
    }

    /// Frees what is reserved of `range`. Returns how many frames that were. O(frames).
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    pub fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.administer().unreserve(range)
    }

    /// Tries; if frames are in the way, drains the caches, among which they may be, and tries once more.
    fn after_a_drain<R>(
        &self,
        work: impl Fn(&D::Store) -> Result<R, RangeError>,
    ) -> Result<R, RangeError> {
        let first = work(&self.administer());
        match first {
            Err(RangeError::Busy { .. }) => {
                self.drain();
                work(&self.administer())
            }
            other => other,
        }
    }

    /// Gives the frames of every cache that can be reached back to the store. Returns how many. For callers that may sleep; in an interrupt it reaches
    /// the own CPU's lists alone.
    pub fn drain(&self) -> usize {
        let reach = Reach::of(Context::MaySleep, self.platform());
        self.front
            .drain(&self.backing, reach, &Patience::new())
            .frames
    }

    // ---- watermarks ----

    /// Sets the marks, and what is held back from requests that could also use higher zones, by their highest kind. In frames.
    pub fn set_watermarks(&self, marks: Marks, reserve: [usize; ZoneKind::COUNT]) {
        // Relaxed: limits that take effect soon; no other access depends on them.
        for (cell, mark) in self.marks.iter().zip([marks.min, marks.low, marks.high]) {
            cell.store(mark, Ordering::Relaxed);
        }
        for (cell, frames) in self.reserve.iter().zip(reserve) {
            cell.store(frames, Ordering::Relaxed);
        }
    }

    /// The marks, in frames.
    #[must_use]
    pub fn watermarks(&self) -> Marks {
        // Relaxed: as above.
        let [min, low, high] = [0, 1, 2].map(|i| self.marks[i].load(Ordering::Relaxed));
        Marks { min, low, high }
    }

    /// What is held back here from requests whose highest zone is `highest`, in frames.
    #[must_use]
    pub fn reserve_against(&self, highest: ZoneKind) -> usize {
        // Relaxed: as above.
        self.reserve[highest.index()].load(Ordering::Relaxed)
    }

    // ---- numbers ----

    /// Frames free in the store. A hint while others use the zone.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.backing.unlocked().free_frames()
    }

    /// Frames free in the front's caches. A hint while others use the zone.
    #[must_use]
    pub fn cached_frames(&self) -> usize {
        self.front.cached(&self.backing)
    }

    /// Frames under management: all that were added, less those reserved.
    #[must_use]
    pub fn managed_frames(&self) -> usize {
        self.backing.unlocked().managed_frames()
    }

    /// Is `frame` memory of this zone? A look at its records, without the lock.
    #[must_use]
    pub fn has(&self, frame: Frame) -> bool {
        self.backing.unlocked().block_of(frame).is_some()
    }

    /// The block that `frame` lies in, as the store sees it now.
    #[must_use]
    pub fn block_of(&self, frame: Frame) -> Option<(Frame, crate::store::frames::State)> {
        self.lock().block_of(frame)
    }

    /// The page block of `frame` is for pages of this mobility from now on: for an embedder that takes over memory in use, and
    /// knows what most of a block is. The bitmap store goes on to take what is in use in it for movable, unless it was asked
    /// for as something else; hooks say better. Does nothing where blocks have no types, where the block is free as a whole, and where it is kept for atomic requests.
    pub fn dedicate(&self, frame: Frame, kind: Mobility) {
        self.administer().dedicate(frame, kind);
    }

    /// Frames that came back from caches although they were free: double frees that could not be noticed at once, see [`Stash`](crate::front::Stash).
    #[must_use]
    pub fn refused_late(&self) -> usize {
        self.backing.unlocked().refused_late()
    }

    /// What was measured at the zone lock.
    #[must_use]
    pub fn meter(&self) -> MeterReading {
        self.backing.reading()
    }

    /// Free blocks by order and type, and page blocks by type, for the text of buddyinfo and pagetypeinfo. O(page blocks), under
    /// the zone lock.
    #[must_use]
    pub fn snapshot(&self, node: u32) -> ZoneSnapshot {
        let guard = self.lock();
        let block_order = guard.page_block_order();
        let mut snapshot = ZoneSnapshot {
            node,
            zone: self.kind,
            max_order: guard.max_order(),
            page_block_order: block_order,
            free: guard.free_table(),
            blocks: [0; MigrateType::COUNT],
        };
        let span = guard.span();
        let mut at = span.start;
        while at < span.end {
            let kind = if guard.is_isolated(at) {
                Some(MigrateType::Isolate)
            } else {
                guard.block_type(at)
            };
            if let Some(kind) = kind {
                snapshot.blocks[kind.index()] += 1;
            }
            at = at.align_down(block_order).plus(block_order.frames());
        }
        snapshot
    }

    /// Free blocks by order that can be had: of all types but isolated ones. O(orders), under the zone lock.
    #[must_use]
    pub fn free_counts(&self) -> FreeCounts {
        let table = self.lock().free_table();
        let isolated = MigrateType::Isolate.index();
        FreeCounts {
            by_order: table.map(|blocks| blocks.iter().sum::<usize>() - blocks[isolated]),
        }
    }

    /// Tests every invariant of the zone. O(span). Nobody else may be using it.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        let mut census = self.administer().check()?;
        let cached = self.front.check(&self.backing)?;
        if !D::Store::MARKS_CACHED {
            // To the store they are in use; that each of them is, the front has tested.
            census.allocated = census.allocated.saturating_sub(cached);
            census.cached = cached;
        }
        Violation::unless_equal("cached-once", "frames in caches", census.cached, cached)?;
        Ok(census)
    }
}

impl<D: Design> fmt::Debug for Zone<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("kind", &self.kind)
            .field("span", &self.span())
            .field("free", &self.free_frames())
            .field("cached", &self.cached_frames())
            .finish_non_exhaustive()
    }
}
