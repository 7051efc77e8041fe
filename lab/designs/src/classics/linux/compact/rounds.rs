//! The rounds of a run: pages are gathered, and moved to places that are free, until the scanners
//! meet or a block is free.

use brickyard::patience::{Patience, Reach};
use brickyard::pressure::{Compacted, Migrate, Migration, Why};
use brickyard::sync::SlotAccess;
use brickyard::{Frame, MigrateType, Order, Platform};

use super::aim::{Aim, RunEnd, Worker};
use super::run::Run;
use crate::classics::front::Front;
use crate::classics::linux::blocks::Blocks;
use crate::classics::linux::pageset::BaseZone;
use crate::classics::lock::LabLock;
use crate::classics::store::grouping::Grouping;
use crate::classics::store::{Claimed, Fallback, Taken};

/// What became of a round of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundOutcome {
    AllMoved,
    SomeStuck,
    NoPlace,
}

impl<'m, A: SlotAccess, L: LabLock, P: Platform, H: Migrate> Run<'_, 'm, A, L, P, H> {
    pub(super) fn run(mut self) -> (RunEnd, Compacted) {
        let mut ended = self.pass();
        let catch = &self.catch;
        if let Some(highest) = self.held.release(&|so_far| catch.take(so_far)) {
            self.memory.target_returned(self.block_of(highest));
        }
        if let Some((frame, kind)) = self.catch.caught.get() {
            ended = RunEnd::Succeeded;
            self.result.caught = Some(frame);
            self.count_foreign(frame, kind);
        }
        if ended == RunEnd::Succeeded {
            self.result.why = Why::Succeeded;
        }
        (ended, self.result)
    }

    /// Counts a block that was caught although its page block is of another type.
    fn count_foreign(&self, frame: Frame, kind: MigrateType) {
        let guard = self.inner.lock();
        if kind != guard.list_for(self.aim.wanted) {
            let fallback = Some(Fallback {
                order: self.aim.order,
                from: kind,
                claimed: Claimed::No,
            });
            guard.count(Some(Taken { frame, fallback }));
        }
    }

    /// Lets the scanners run until one of the ends is reached. Each round moves a scanner on.
    fn pass(&mut self) -> RunEnd {
        // The page block that pages were moved from last, until all of its part of the wanted size
        // is behind the scanner.
        let mut last = None;
        // A page block that is to be finished, since a page of it was stuck, or it takes several
        // rounds.
        let mut unfinished = None;
        let mut in_step = self.worker.is_gentle() && self.memory.is_in_step();
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            let block = self.block_of(self.sources.at);
            let begun = !self.sources.at.is_aligned(self.block_order);
            self.sources.finishing = last == Some(block) || begun && unfinished == Some(block);
            if self.sources.finishing {
                unfinished = Some(block);
            }
            self.gather();
            if self.sources.round().is_empty() {
                if in_step {
                    self.memory.bring_in_step();
                }
            } else {
                in_step = false;
                let block = self.block_of(self.sources.last_scanned());
                last = Some(block);
                match self.move_round() {
                    RoundOutcome::AllMoved => {}
                    RoundOutcome::SomeStuck => {
                        if !self.worker.is_full() && !self.sources.finishing {
                            unfinished = Some(block);
                            if self.aim.order == self.block_order {
                                last = None;
                            }
                        }
                    }
                    RoundOutcome::NoPlace if self.have_met() => {}
                    RoundOutcome::NoPlace => return RunEnd::NoPlace,
                }
            }
            if self.catch.caught.get().is_some() {
                return RunEnd::Succeeded;
            }
            let place = self.sources.at.align_down(self.aim.order);
            if last.is_some_and(|block| block < place) {
                // What this CPU's page set holds of the place would keep it in pieces.
                let BaseZone { front, backing, .. } = self.inner;
                Front::<Blocks<'m>, L, P>::drain(front, backing, Reach::Own, &Patience::new());
                last = None;
            }
        }
    }

    /// Returns how the run ends, if it does so here.
    fn ended(&self) -> Option<RunEnd> {
        if self.have_met() {
            self.memory.reset_positions();
            if self.worker != Worker::Background {
                self.memory.set_met();
            }
            return Some(RunEnd::Met);
        }
        let at_a_start = self.sources.at.is_aligned(self.block_order);
        (at_a_start && self.has_block()).then_some(RunEnd::Succeeded)
    }

    /// Returns true if the scanners are in the same page block, or have passed each other.
    fn have_met(&self) -> bool {
        self.block_of(self.targets.at) <= self.block_of(self.sources.at)
    }

    /// Returns true if a block is free that the request can have: of its own type, or of one that
    /// it would claim.
    fn has_block(&self) -> bool {
        let Aim { order, wanted, .. } = self.aim;
        let store = self.inner.unlocked();
        let grouping = store.grouping();
        let own = store.list_for(wanted);
        let claimed = order.max(grouping.least_claim(wanted));
        let fallbacks = grouping.fallbacks(wanted);
        match self.aim.limit {
            None => {
                let has = |&kind: &MigrateType| grouping.has_block(kind, claimed);
                grouping.has_block(own, order) || fallbacks.iter().any(has)
            }
            Some(limit) => {
                let guard = self.inner.lock();
                let has = |&kind: &MigrateType| guard.below(kind, claimed, limit).is_some();
                guard.below(own, order, limit).is_some() || fallbacks.iter().any(has)
            }
        }
    }

    /// Moves the pages of a round, the highest first.
    fn move_round(&mut self) -> RoundOutcome {
        let mut outcome = RoundOutcome::AllMoved;
        self.targets.needed = self.sources.frames();
        while let Some((from, order)) = self.sources.pop() {
            let Some(to) = self.place_for(order) else {
                if order == Order::ZERO {
                    return RoundOutcome::NoPlace;
                }
                self.targets.needed -= order.frames();
                self.result.stuck += order.frames();
                outcome = RoundOutcome::SomeStuck;
                continue;
            };
            self.targets.needed -= order.frames();
            let answer = self.hooks.migrate(from, order, to);
            match answer {
                Migration::Moved => {
                    self.result.moved += order.frames();
                    self.free(from, order);
                }
                Migration::NotNeeded => {
                    self.held.put_back(to, order);
                    self.free(from, order);
                }
                Migration::Later | Migration::Never | Migration::Unknown => {
                    self.held.put_back(to, order);
                    self.result.stuck += order.frames();
                    outcome = RoundOutcome::SomeStuck;
                }
            }
        }
        outcome
    }

    /// Frees a place that was moved away from. It may complete the block that is wanted.
    fn free(&self, frame: Frame, order: Order) {
        let guard = self.inner.lock();
        let given = guard.give_or_keep(frame, order, &|so_far| self.catch.take(so_far));
        debug_assert!(given.is_ok(), "a hook gave up a block that was not its own");
    }
}
