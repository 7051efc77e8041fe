//! A zone of an older design: a store under a lock, a front, and the zone's watermarks.
//!
//! **A request.** Above order 0, or with a limit inside the zone, it goes to the store under the
//! zone lock; else the front gives its hottest frame, or on a miss refills itself under the zone
//! lock, by the lock policy. **A free.** A single frame stays in the front, which gives cold frames
//! back above its limit; anything else goes to the store under the zone lock, is merged, and may go
//! straight to a request that compacts ([`bulk`](crate::classics::bulk)).
//!
//! The bounds of [`brickyard::zone`] hold here too, plus the waits for the zone lock.

use core::fmt;

use brickyard::block::{Census, FreeTable, State};
use brickyard::check::Violation;
use brickyard::patience::{Look, Looks, Patience, Reach};
use brickyard::pressure::{Compacted, CompactionState, Migrate, Why, compact_for};
use brickyard::watermark::{Mark, Watermarks, above_mark};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Context, Frame, FrameRange, FreeError, MigrateType,
    Mobility, Order, Platform, RangeError, Request, Shape, ZoneKind,
};

use crate::classics::bulk::{Backing, MeterReading, StoreGuard, Tuning};
use crate::classics::front::{Front, Returned};
use crate::classics::lab_zone::LabZone;
use crate::classics::lock::LabLock;
use crate::classics::store::buddy::Buddy;
use crate::classics::store::frames::FrameRecord;
use crate::classics::store::grouping::Grouping;

/// Returns the fragmentation index, in thousandths, above which a failure is reported as
/// fragmentation: half of the most the index can be at this order. With all free memory in single
/// frames the index is 1000 - 1000 / 2^order, so from order 4 on the threshold is nearly Linux's
/// `extfrag_threshold` of 500.
const fn fragmented_above(order: Order) -> i32 {
    (1000 - (1000 >> order.get())) / 2
}

/// A zone of memory: a buddy store with grouping `G` under lock `L` on platform `P`, with front
/// `F`.
pub struct Zone<'m, G, F, L: LabLock, P> {
    kind: ZoneKind,
    pub(crate) front: F,
    compaction: CompactionState,
    pub(crate) backing: Backing<'m, G, L, P>,
}

impl<'m, G: Grouping, F: Front<G, L, P>, L: LabLock, P: Platform> Zone<'m, G, F, L, P> {
    /// Makes a zone with no memory yet (see [`AnyZone::add`]) and no watermarks.
    #[must_use]
    pub fn of(kind: ZoneKind, platform: P, store: Buddy<'m, G>, front: F, tuning: Tuning) -> Self {
        Self {
            kind,
            front,
            compaction: CompactionState::new(),
            backing: Backing::new(platform, store, tuning),
        }
    }

    /// Returns the store without taking its lock: for its constants, and for hints.
    pub(crate) const fn unlocked(&self) -> &Buddy<'m, G> {
        self.backing.unlocked()
    }

    pub(crate) fn lock(&self) -> StoreGuard<'_, 'm, G, L, P> {
        self.backing.lock()
    }

    /// Takes a block from the front or the store, without draining other caches.
    fn try_alloc(&self, request: &Request) -> Option<Frame> {
        if self.front.serves(request.order) && !self.is_limited(request) {
            return self.front.take(&self.backing, request);
        }
        let guard = self.lock();
        let frame = guard.take(request)?.frame;
        if request.is_high_atomic() {
            guard.reserve_high_atomic(frame, self.high_atomic_cap());
        }
        Some(frame)
    }

    /// Returns true if the request's limit is inside or below this zone.
    pub(crate) fn is_limited(&self, request: &Request) -> bool {
        request.limit.is_some_and(|limit| limit < self.span().end)
    }

    /// Returns the most frames to set aside for atomic requests.
    pub(crate) fn high_atomic_cap(&self) -> usize {
        let store = self.unlocked();
        store.grouping().most_set_aside(store.managed_frames())
    }

    /// Returns true if the zone would stay above the mark.
    fn admits(&self, request: &Request, mark: Mark) -> bool {
        self.admits_with(request, mark, self.unlocked().set_aside_frames())
    }

    /// Returns true if the zone would stay above the mark with `set_aside` free frames kept for
    /// other requests.
    fn admits_with(&self, request: &Request, mark: Mark, set_aside: usize) -> bool {
        let floor = self.backing.watermarks().floor(request, mark);
        let free = free_for(request, self.unlocked().free_frames(), set_aside);
        above_mark(free, request, floor)
    }

    /// Drains and tries again, see [`Looks`]. Takes a block only while `admitted` returns true:
    /// frames drained from caches may lift the zone above its mark.
    fn take_drained(
        &self,
        request: &Request,
        patience: &Patience,
        admitted: impl Fn() -> bool,
    ) -> Option<Frame> {
        if request.order > self.max_order() {
            return None;
        }
        let reach = Reach::of(request.context, self.platform());
        let mut looks = Looks::new(request.order, reach, patience);
        loop {
            let look = self.look(request, reach, patience, &admitted);
            if let Look::Found(frame) = look {
                return Some(frame);
            }
            let number = looks.again(look)?;
            let arrived = || self.backing.moves().settled().is_some();
            patience.wait_for_moves(number, self.platform(), arrived);
        }
    }

    /// Drains the caches into the store, and takes a block for `request` there.
    fn look(
        &self,
        request: &Request,
        reach: Reach,
        patience: &Patience,
        admitted: &impl Fn() -> bool,
    ) -> Look {
        let arrivals = self.front.arrivals();
        let settled = self.backing.moves().settled();
        let drained = self.front.drain(&self.backing, reach, patience);
        // Decided under the lock, where the counters are exact: a free page that changes its list
        // is on none for a moment.
        let guard = self.lock();
        let admitted = admitted();
        let taken = admitted.then(|| guard.take(request)).flatten();
        drop(guard);
        if let Some(taken) = taken {
            return Look::Found(taken.frame);
        }
        let moves = self.backing.moves();
        // Another CPU may have freed a frame to a cache already searched, and then taken one not
        // yet found.
        let all_seen = drained.left_out == 0
            && settled.is_some_and(|started| moves.still(started))
            && self.front.arrivals() == arrivals;
        let below_a_mark = !admitted && self.backing.watermarks().hold_back_from(request);
        match (all_seen, below_a_mark) {
            // The zone is below its mark even with all cached frames. Reclaim has to help.
            (true, true) => Look::Nothing,
            (false, true) => Look::UnsettledBelowAMark,
            (true, false) if drained.frames == 0 => Look::Nothing,
            (_, false) => Look::Unsettled,
        }
    }

    /// Gives back blocks set aside for atomic requests, as long as these can serve the request, and
    /// takes a block once `admitted` allows it for the number of frames that stay set aside.
    ///
    /// One hold of the zone lock, with at most a round for each block set aside: a hundredth of the
    /// zone's blocks, and one more.
    fn spend_reserve(&self, request: &Request, admitted: impl Fn(usize) -> bool) -> Option<Frame> {
        let guard = self.lock();
        if !admitted(0) {
            // Too little even if all of it were given back.
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

    /// Serves a request refused everywhere else from blocks set aside, see `spend_reserve`. If such
    /// blocks were ever given back, the request may have looked too early, since their frames can
    /// be in a cache by now: it drains the caches once more.
    fn take_set_aside(
        &self,
        request: &Request,
        patience: &Patience,
        admitted: impl Fn(usize) -> bool,
    ) -> Option<Frame> {
        self.spend_reserve(request, &admitted).or_else(|| {
            let ever_spent = self.unlocked().unreserved() > 0;
            let admitted = || admitted(self.unlocked().set_aside_frames());
            let look = || self.take_drained(request, patience, admitted);
            ever_spent.then(look).flatten()
        })
    }
}

/// Returns how many of `free` frames the request may have, if `set_aside` are kept for atomic
/// requests.
const fn free_for(request: &Request, free: usize, set_aside: usize) -> usize {
    match request.context {
        Context::MaySleep => free.saturating_sub(set_aside),
        Context::Atomic | Context::Interrupt => free,
    }
}

impl<G: Grouping, F: Front<G, L, P>, L: LabLock, P: Platform> AnyZone for Zone<'_, G, F, L, P> {
    type Platform = P;

    fn platform(&self) -> &P {
        self.backing.platform()
    }

    #[inline]
    fn kind(&self) -> ZoneKind {
        self.kind
    }

    #[inline]
    fn span(&self) -> FrameRange {
        self.unlocked().span()
    }

    fn shape(&self) -> Shape {
        let store = self.unlocked();
        Shape {
            kind: self.kind,
            span: store.span(),
            max_order: store.max_order(),
            page_block_order: store.page_block_order(),
        }
    }

    fn watermarks(&self) -> &Watermarks {
        self.backing.watermarks()
    }

    fn compaction(&self) -> &CompactionState {
        &self.compaction
    }

    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        let patience = &Patience::new();
        self.try_alloc(request)
            .or_else(|| self.take_drained(request, patience, || true))
            .or_else(|| self.take_set_aside(request, patience, |_| true))
            .ok_or_else(|| self.why_not(request))
    }

    fn alloc_above(&self, request: &Request, mark: Mark) -> Option<Frame> {
        self.admits(request, mark)
            .then(|| self.try_alloc(request))
            .flatten()
    }

    fn alloc_drained(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.take_drained(request, patience, || self.admits(request, mark))
    }

    fn alloc_set_aside(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.take_set_aside(request, patience, |set_aside| {
            self.admits_with(request, mark, set_aside)
        })
    }

    fn alloc_uncached(&self, request: &Request) -> Option<Frame> {
        self.lock().take(request).map(|taken| taken.frame)
    }

    fn alloc_batch(&self, request: &Request, out: &mut [Frame]) -> usize {
        let floor = self.backing.watermarks().floor(request, Mark::Low);
        let kept = floor.saturating_add(self.unlocked().set_aside_frames());
        match self.free_frames() > kept.saturating_add(out.len()) {
            true => LabZone::alloc_bulk(self, request, out).unwrap_or(0),
            false => 0,
        }
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.lock().take_at(frame, request)
    }

    fn why_not(&self, request: &Request) -> AllocError {
        let (order, max) = (request.order, self.max_order());
        if order > max {
            return AllocError::OrderTooLarge { order, max };
        }
        if let Some(limit) = request.limit
            && self.is_limited(request)
        {
            return AllocError::LimitUnsatisfiable { limit };
        }
        let counts = self.free_counts();
        let free = counts.free_frames();
        let index = counts.fragmentation_index(order);
        if order > Order::ZERO && index > fragmented_above(order) {
            let index = Some(index as u16);
            return AllocError::Fragmented { order, free, index };
        }
        let cached = self.cached_frames();
        AllocError::Exhausted { free, cached }
    }

    /// Frees a block. With lists and magazines, a double free by two CPUs at the same moment may go
    /// undetected.
    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        let served = self.front.serves(order);
        if served && self.front.give(&self.backing, frame, order) == Returned::Kept {
            return Ok(());
        }
        self.free_uncached(frame, order)
    }

    fn free_uncached(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.lock().give(frame, order).map(|_| ())
    }

    /// Stays inside the front for as many as it takes. Where the front does not serve the caller,
    /// uses the zone lock, by the bulk policy.
    fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        let mut freed = 0;
        while freed < frames.len() {
            let rest = &frames[freed..];
            let (given, error) = if self.front.serves_here(&self.backing) {
                let kept = self.front.give_many(&self.backing, rest);
                match rest.get(kept) {
                    None => (kept, None),
                    // A frame that the front does not keep goes to the store, which may refuse it.
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

    fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        if !self.span().covers(range) {
            return Err(FreeError::NotOwned);
        }
        self.lock().give_range(range)
    }

    fn drain_with(&self, patience: &Patience) -> usize {
        let reach = Reach::of(Context::MaySleep, self.platform());
        self.front.drain(&self.backing, reach, patience).frames
    }

    fn isolate(&self, range: FrameRange) -> Result<(), RangeError> {
        self.lock().isolate(range)
    }

    fn unisolate(&self, range: FrameRange) {
        self.lock().unisolate(range);
    }

    fn take_isolated(&self, range: FrameRange, mobility: Mobility) -> Result<(), RangeError> {
        self.lock().take_isolated(range, mobility.into())
    }

    fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.lock().add(range)
    }

    fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.after_a_drain(|store| store.reserve(range))
    }

    fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.lock().unreserve(range)
    }

    fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.after_a_drain(|store| store.remove(range))
    }

    fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        self.lock().block_of(frame)
    }

    fn has(&self, frame: Frame) -> bool {
        self.unlocked().block_of(frame).is_some()
    }

    fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        let store = self.lock();
        match store.is_isolated(frame) {
            true => Some(MigrateType::Isolate),
            false => store.block_type(frame),
        }
    }

    fn free_frames(&self) -> usize {
        self.unlocked().free_frames()
    }

    fn cached_frames(&self) -> usize {
        self.front.cached(&self.backing)
    }

    fn free_frames_for(&self, request: &Request) -> usize {
        free_for(
            request,
            self.free_frames(),
            self.unlocked().set_aside_frames(),
        )
    }

    fn managed_frames(&self) -> usize {
        self.unlocked().managed_frames()
    }

    fn can_serve(&self, request: &Request) -> bool {
        self.lock().can_serve(request)
    }

    fn free_table(&self) -> FreeTable {
        self.lock().free_table()
    }

    /// Compacts for `request`, with the zone's capture slot armed: the first block that becomes
    /// free and is large enough goes straight to the request, whichever CPU freed its last page.
    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted {
        let Some(armed) = Armed::new(&self.backing, request) else {
            return compact_for(self, request, hooks, || false);
        };
        let mut result = compact_for(self, request, hooks, || armed.has_caught());
        result.caught = armed.disarm();
        if result.caught.is_some() {
            result.why = Why::Succeeded;
        }
        result
    }

    fn check(&self) -> Result<Census, Violation> {
        let census = self.lock().check()?;
        let cached = self.front.check(&self.backing)?;
        Violation::unless_equal("cached-once", "frames in caches", census.cached, cached)?;
        Ok(census)
    }
}

impl<G: Grouping, F: Front<G, L, P>, L: LabLock, P: Platform> LabZone for Zone<'_, G, F, L, P> {
    const DISTINGUISHES_CACHED: bool = true;

    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        let request = &request.single();
        let through_front = self.front.serves_here(&self.backing);
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

    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        match self.take_at(frame, request) {
            Err(RangeError::Busy { .. }) => {
                let reach = Reach::of(request.context, self.platform());
                self.front.drain(&self.backing, reach, &Patience::new());
                self.take_at(frame, request)
            }
            other => other,
        }
    }

    fn dedicate(&self, frame: Frame, mobility: Mobility) {
        self.lock().dedicate(frame, mobility);
    }

    fn frame_records(&self) -> &[FrameRecord] {
        self.unlocked().table().records()
    }

    fn refused_late(&self) -> usize {
        0
    }

    fn meter(&self) -> MeterReading {
        self.backing.reading()
    }
}

impl<'m, G: Grouping, F: Front<G, L, P>, L: LabLock, P: Platform> Zone<'m, G, F, L, P> {
    /// Does `work`; if frames are busy, drains the caches, which may hold them, and does it once
    /// more.
    fn after_a_drain<R>(
        &self,
        work: impl Fn(&Buddy<'_, G>) -> Result<R, RangeError>,
    ) -> Result<R, RangeError> {
        let first = work(&self.lock());
        match first {
            Err(RangeError::Busy { .. }) => {
                self.drain();
                work(&self.lock())
            }
            other => other,
        }
    }
}

/// Keeps the zone's capture slot armed until dropped. If a hook panics, a caught block is freed.
struct Armed<'z, 'm, G: Grouping, L: LabLock, P: Platform> {
    backing: &'z Backing<'m, G, L, P>,
    order: Order,
}

impl<'z, 'm, G: Grouping, L: LabLock, P: Platform> Armed<'z, 'm, G, L, P> {
    /// Arms the slot; `None` if another task has it.
    fn new(backing: &'z Backing<'m, G, L, P>, request: &Request) -> Option<Self> {
        let armed = backing.lock().capture().arm(request);
        armed
            .then_some(request.order)
            .map(|order| Self { backing, order })
    }

    fn has_caught(&self) -> bool {
        self.backing.lock().capture().has_caught()
    }

    /// Disarms the slot; returns the block, if one was caught.
    fn disarm(self) -> Option<Frame> {
        let caught = self.backing.lock().capture().disarm();
        core::mem::forget(self);
        caught
    }
}

impl<G: Grouping, L: LabLock, P: Platform> Drop for Armed<'_, '_, G, L, P> {
    fn drop(&mut self) {
        if let Some(frame) = self.backing.lock().capture().disarm() {
            let given = self.backing.lock().give(frame, self.order);
            debug_assert!(given.is_ok(), "a block that was caught: {given:?}");
        }
    }
}

impl<G: Grouping, F: Front<G, L, P>, L: LabLock, P: Platform> fmt::Debug for Zone<'_, G, F, L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("kind", &self.kind)
            .field("span", &self.span())
            .field("free", &self.free_frames())
            .field("cached", &self.cached_frames())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use brickyard::{Mobility, Order};

    use super::*;

    #[test]
    fn high_atomic_frames_are_free_for_atomic_requests_only() {
        let block = Request::new(Order::new(3), Mobility::Unmovable);
        let page = Request::page(Mobility::Unmovable);
        for request in [block, page] {
            assert_eq!(free_for(&request, 130, 20), 110);
            // More set aside than free: the two numbers are read one after the other.
            assert_eq!(free_for(&request, 10, 20), 0);
            assert_eq!(free_for(&request.atomic(), 130, 20), 130);
            let interrupt = request.in_context(Context::Interrupt);
            assert_eq!(free_for(&interrupt, 130, 20), 130);
        }
    }
}
