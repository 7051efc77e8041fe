//! The last resort of a request: every cache that can be reached is drained, and what is set aside
//! for atomic requests is given up. The zone's promise to single frames (`order-0-succeeds`) and
//! the bounds are stated in the [module above](super).

use brickyard_sync::SlotAccess;

use super::Zone;
use crate::bitmap::Bitmap;
use crate::patience::{Look, Looks, Patience, Reach};
use crate::zones::AnyZone;
use crate::{Frame, Order, Platform, Request};

/// What becomes of what is set aside for others, in a look at all of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reserve {
    /// It stays set aside.
    Kept,
    /// What could serve the request is given up.
    GivenUp,
}

impl<P: Platform, A: SlotAccess> Zone<'_, P, A> {
    /// Returns true if some block of the span could serve the request, were all of the zone free.
    fn could_serve(&self, request: &Request) -> bool {
        let (span, frames) = (self.span(), request.order.frames());
        let end = request.limit.map_or(span.end, |limit| limit.min(span.end));
        let first = span.start.number().checked_next_multiple_of(frames);
        request.order <= self.max_order()
            && first.is_some_and(|first| first.saturating_add(frames) <= end.number())
    }

    /// Drains every cache within reach, and takes a block if `floor` frames stay free, until a look
    /// settles whether there is one: see [`Looks`].
    #[inline(never)]
    pub(super) fn take_drained(
        &self,
        request: &Request,
        floor: usize,
        patience: &Patience,
    ) -> Option<Frame> {
        // Nobody is disturbed in vain.
        if !self.could_serve(request) {
            return None;
        }
        let taken = self.look_everywhere(request, floor, Reserve::Kept, patience)?;
        self.pinned(|store| store.set_aside(taken, request));
        Some(taken)
    }

    /// Takes a block for `request` from what is set aside for others, which is given up for it:
    /// first what could serve it, block by block; then the rest, if that lifts the zone above
    /// `floor`. No block is given up unless all of them would help against the floor. A single
    /// frame is then looked for everywhere once more, since it may lie in a cache by now.
    ///
    /// At most 32 blocks are given up one by one. Each look everywhere gives up as many if other
    /// CPUs set more aside.
    #[inline(never)]
    pub(super) fn take_given_up(
        &self,
        request: &Request,
        floor: usize,
        patience: &Patience,
    ) -> Option<Frame> {
        let store = self.store();
        // Nothing is given up in vain.
        if !store.ever_had_aside() || !self.could_serve(request) {
            return None;
        }
        let mut slot = 0;
        while self.would_help(request, floor)
            && let Some(next) = self.pinned(|store| store.give_up_for(request, slot))
        {
            if self.admits(request, floor)
                && let Some(frame) = self.pinned(|store| store.take(request))
            {
                return Some(frame);
            }
            slot = next;
        }
        if request.order == Order::ZERO {
            return self.look_everywhere(request, floor, Reserve::GivenUp, patience);
        }
        let lifts = self.would_help(request, floor)
            && !self.admits(request, floor)
            && self.can_serve(request);
        if lifts {
            self.pinned(Bitmap::give_up_all);
        }
        match lifts && self.admits(request, floor) {
            true => self.pinned(|store| store.take(request)),
            false => None,
        }
    }

    /// Returns true if the zone would stay above `floor` if all that is set aside were given up.
    fn would_help(&self, request: &Request, floor: usize) -> bool {
        // Without a floor there is nothing to be lifted above.
        floor == 0 || self.free_frames().saturating_sub(floor) >= request.order.frames()
    }

    /// Gives up all that is set aside and could serve a single frame, and the rest if that is
    /// needed against the floor.
    fn give_up(&self, request: &Request, floor: usize) {
        if !self.would_help(request, floor) {
            return;
        }
        let mut slot = Some(0);
        while let Some(from) = slot {
            slot = self.pinned(|store| store.give_up_for(request, from));
        }
        // With a limit, what lies above it need not be given up, unless against the mark.
        if request.limit.is_none() || !self.admits(request, floor) {
            self.pinned(Bitmap::give_up_all);
        }
    }

    fn look_everywhere(
        &self,
        request: &Request,
        floor: usize,
        reserve: Reserve,
        patience: &Patience,
    ) -> Option<Frame> {
        let reach = Reach::of(request.context, self.platform());
        let mut looks = Looks::new(request.order, reach, patience);
        loop {
            let look = self.look(request, floor, reserve, reach, patience);
            if let Look::Found(frame) = look {
                return Some(frame);
            }
            // At most `LOOKS_MOST` times.
            let number = looks.again(look)?;
            self.wait_for_others(request, number, patience);
        }
    }

    /// Drains the caches to the store, and takes a block for `request` there.
    #[inline(never)]
    fn look(
        &self,
        request: &Request,
        floor: usize,
        reserve: Reserve,
        reach: Reach,
        patience: &Patience,
    ) -> Look {
        let store = self.store();
        // If something stays set aside, nothing says whether that was all that is free, and a look
        // that has seen everything is enough. What is set aside is given up only after this, so one
        // need not look as often as before a refusal.
        let kept = reserve == Reserve::Kept && store.keeps_something();
        let moves = &self.backing.moves;
        let arrivals = self.stash.arrivals();
        let settled = moves.settled();
        let drained = self.stash.drain(&self.backing, reach, patience);
        if reserve == Reserve::GivenUp {
            self.give_up(request, floor);
        }
        let admitted = self.admits(request, floor);
        let take =
            || self.pinned(|store| store.take(request).or_else(|| store.take_aside(request)));
        if admitted && let Some(frame) = take() {
            return Look::Found(frame);
        }
        let all_seen =
            || drained.left_out == 0 && settled.is_some_and(|started| moves.still(started));
        let nothing_was_freed = || self.stash.arrivals() == arrivals;
        if !admitted {
            // Even with all that the caches held, the zone is below its mark. That is a case for
            // reclaim.
            return match all_seen() && nothing_was_freed() {
                true => Look::Nothing,
                false => Look::UnsettledBelowAMark,
            };
        }
        // A frame may have been freed to a cache that this look had already passed, by a CPU that
        // then took a frame which this look had still to find.
        let nothing_came = drained.frames == 0
            && (kept || store.may_refuse(request))
            && nothing_was_freed()
            // Checked last: the store has been searched since.
            && all_seen();
        match nothing_came {
            true => Look::Nothing,
            false => Look::Unsettled,
        }
    }

    /// Waits for other CPUs, at least `least` times, until frames in transit have arrived. Also
    /// waits until what other CPUs have in hand in the store is available, or other CPUs have done
    /// something. Gives up when the CPU that has the frames in hand evidently stands still.
    #[inline(never)]
    fn wait_for_others(&self, request: &Request, least: u32, patience: &Patience) {
        let activity = || (self.activity(), self.backing.moves.started());
        let before = activity();
        let arrived = || {
            self.backing.moves.settled().is_some()
                && (activity() != before
                    || self.store().may_refuse(request)
                    || self.can_serve(request))
        };
        patience.wait_for_moves(least, self.platform(), arrived);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;
    use core::mem::MaybeUninit;
    use std::boxed::Box;

    use super::*;
    use crate::{FrameRange, Mobility, ZoneKind, ZonePlan};

    std::thread_local! {
        static ZONE: Cell<Option<&'static Zone<'static, Slow>>> = const { Cell::new(None) };
        static WAITS: Cell<u32> = const { Cell::new(0) };
    }

    /// Another CPU goes on while this one waits.
    #[derive(Debug)]
    struct Slow;

    impl Platform for Slow {
        fn cpu(&self) -> usize {
            0
        }

        fn relax(&self) {
            WAITS.set(WAITS.get() + 1);
            if WAITS.get() == 1
                && let Some(zone) = ZONE.get()
            {
                zone.store().end_to_open(0);
            }
        }
    }

    /// One CPU opens the only block, and is done as soon as anybody waits for it. Another is about
    /// to set the first block of all aside, and has counted it, but named no slot.
    #[test]
    fn a_frame_is_found_while_the_first_block_is_about_to_be_set_aside() {
        for names in [false, true] {
            let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 512), 0);
            let bytes = Zone::<Slow>::bytes(&plan);
            let memory = std::vec![MaybeUninit::uninit(); bytes];
            let zone = Zone::<Slow>::new(&plan, Slow, Box::leak(memory.into_boxed_slice()));
            let zone: &'static Zone<'static, Slow> =
                Box::leak(Box::new(zone.expect("memory enough")));
            zone.add(plan.span).expect("inside the span");
            zone.store().begin_to_open(0);
            if names {
                zone.store().count_a_slot();
            }
            ZONE.set(Some(zone));
            WAITS.set(0);
            let page = zone.alloc(&Request::page(Mobility::Movable));
            assert!(
                page.is_ok(),
                "order-0-succeeds, {names}: {page:?}, waits: {}",
                WAITS.get()
            );
        }
    }
}
