//! The last resort of a request: every cache that can be reached is drained, and what is set aside
//! for atomic requests is given up. The zone's promise to single frames (`order-0-succeeds`) and
//! the bounds are stated in the [module above](super).

use brickyard_sync::SlotAccess;

use super::Zone;
use crate::patience::{Look, Patience, Reach, look_everywhere};
use crate::zones::AnyZone;
use crate::{Frame, Order, Platform, Request};

impl<P: Platform, A: SlotAccess> Zone<'_, P, A> {
    /// Drains and tries again, see [`look_everywhere`].
    #[inline(never)]
    pub(super) fn take_drained(
        &self,
        request: &Request,
        patience: &Patience,
        admitted: impl Fn() -> bool,
    ) -> Option<Frame> {
        let reach = Reach::of(request.context, self.platform());
        let taken = look_everywhere(
            request.order,
            reach,
            || {
                // What is set aside is given up only after this, so that one need not look as often
                // as before a refusal.
                let kept = self.store().keeps_something();
                self.look(request, reach, patience, kept, &admitted)
            },
            |look| self.wait_for_others(request, look, patience),
        )?;
        self.store().set_aside(taken, request);
        Some(taken)
    }

    /// Takes a block for `request` from what is set aside for others, which is given up for it:
    /// first what could serve it, block by block; then the rest, if that lifts the zone above the
    /// mark. No block is given up unless all of them `would_help` against the mark. A single frame
    /// is then looked for everywhere once more, since it may lie in a cache by now.
    ///
    /// At most 32 blocks are given up one by one. Each look everywhere gives up as many if other
    /// CPUs set more aside.
    #[inline(never)]
    pub(super) fn take_given_up(
        &self,
        request: &Request,
        patience: &Patience,
        would_help: impl Fn() -> bool,
        admitted: impl Fn() -> bool,
    ) -> Option<Frame> {
        let store = self.store();
        if !store.ever_had_aside() {
            return None;
        }
        let mut slot = 0;
        while would_help()
            && let Some(next) = store.give_up_for(request, slot)
        {
            if admitted()
                && let Some(frame) = store.take(request)
            {
                return Some(frame);
            }
            slot = next;
        }
        if request.order > Order::ZERO {
            let lifts = would_help() && !admitted() && store.can_serve(request);
            if lifts {
                store.give_up_all();
            }
            return (lifts && admitted()).then(|| store.take(request)).flatten();
        }
        let give_up = || {
            if !would_help() {
                return;
            }
            // With a limit, what lies above it need not be given up, unless against the mark.
            let mut slot = Some(0);
            while let Some(from) = slot {
                slot = store.give_up_for(request, from);
            }
            if request.limit.is_none() || !admitted() {
                store.give_up_all();
            }
        };
        let reach = Reach::of(request.context, self.platform());
        look_everywhere(
            request.order,
            reach,
            || {
                self.look(request, reach, patience, false, &|| {
                    give_up();
                    admitted()
                })
            },
            |look| self.wait_for_others(request, look, patience),
        )
    }

    /// Drains the caches to the store, and takes a block for `request` there. If something is
    /// `kept` for others, nothing says whether that was all that is free, and a look that has seen
    /// everything is enough.
    #[inline(never)]
    fn look(
        &self,
        request: &Request,
        reach: Reach,
        patience: &Patience,
        kept: bool,
        admitted: &impl Fn() -> bool,
    ) -> Look {
        let moves = &self.backing.moves;
        let arrivals = self.stash.arrivals();
        let settled = moves.settled();
        let drained = self.stash.drain(&self.backing, reach, patience);
        let admitted = admitted();
        let take = || {
            let store = self.store();
            store.take(request).or_else(|| store.take_aside(request))
        };
        if admitted && let Some(frame) = take() {
            return Look::Found(frame);
        }
        let all_seen =
            || drained.left_out == 0 && settled.is_some_and(|started| moves.still(started));
        let nothing_was_freed = || self.stash.arrivals() == arrivals;
        if !admitted && self.watermarks.hold_back_from(request) {
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
            && (kept || self.store().may_refuse(request))
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
        let activity = || {
            let moves = self.backing.moves.started();
            [self.stash.arrivals(), moves, self.store().free_frames()]
        };
        let before = activity();
        let arrived = || {
            self.backing.moves.settled().is_some()
                && (activity() != before
                    || self.store().may_refuse(request)
                    || self.store().can_serve(request))
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
