//! Events while an operation runs: interrupts, other tasks, moves to another CPU. Also frees that
//! must be refused.

use core::alloc::Layout;
use core::ptr::NonNull;

use brickyard_slab::FreeFault;
use brickyard_slab::sizes::process::SINGLE_ABOVE;

use super::case::{Driven, SlabKind};
use super::constructed::CONSTRUCTED;
use super::cpus::Moment;
use super::drive::{Driver, Slot};
use super::model::Origin;
use super::operation::{Bad, CPUS, SLOTS};
use super::pages::PAGE;

/// The most nested events.
const DEPTH: u32 = 2;

/// Memory outside every span of pages.
static OUTSIDE: u64 = 0;

impl<'m, D> Driver<'_, 'm, D>
where
    D: Driven<'m>,
{
    fn roll(&self, sides: usize) -> usize {
        // A linear congruence; its upper bits are random enough for dice.
        let next = self.dice.get().wrapping_mul(6_364_136_223_846_793_005);
        let next = next.wrapping_add(1_442_695_040_888_963_407);
        self.dice.set(next);
        (next >> 33) as usize % sides
    }

    /// Perhaps runs an event, at random.
    pub(super) fn event(&self, moment: Moment) {
        let every = self.case.event_every;
        if every == 0 || self.quiet.get() || self.depth.get() >= DEPTH || self.roll(every) > 0 {
            return;
        }
        self.depth.set(self.depth.get() + 1);
        self.count(|driven| &mut driven.events);
        if moment == Moment::Pinned || self.roll(2) == 0 {
            self.interrupt();
        } else {
            self.other_task(moment);
        }
        self.depth.set(self.depth.get() - 1);
    }

    /// Runs an interrupt, which allocates and frees.
    fn interrupt(&self) {
        self.cpus.set_interrupt(true);
        for _ in 0..=self.roll(3) {
            self.small_step();
        }
        self.cpus.set_interrupt(false);
    }

    /// Runs another task, on this CPU or another, while the caller waits; perhaps moves the caller
    /// to another CPU.
    fn other_task(&self, moment: Moment) {
        let here = self.cpus.here();
        if self.roll(2) == 0 {
            self.cpus.switch_to(self.roll(CPUS));
        }
        for _ in 0..=self.roll(3) {
            match self.roll(24) {
                0 => self.slabs.trim(),
                1 => self.slabs.drain(),
                2 => self.slabs.shrink(),
                _ => self.small_step(),
            }
        }
        if moment == Moment::Free && self.roll(4) == 0 {
            self.count(|driven| &mut driven.moves);
            self.cpus.switch_to(self.roll(CPUS));
        } else {
            self.cpus.switch_to(here);
        }
    }

    fn small_step(&self) {
        match self.roll(8) {
            0..=2 => self.alloc(self.roll(SLOTS)),
            3 => {
                let layout = Layout::array::<u8>(self.roll(400));
                self.alloc_general(layout.unwrap_or(Layout::new::<u64>()));
            }
            _ => self.free(self.roll(1 << 16)),
        }
    }

    /// Returns an address outside the span.
    pub(super) fn outside(&self) -> NonNull<u8> {
        NonNull::from(&OUTSIDE).cast()
    }

    /// Returns how often the queues of a cache's CPUs were flushed so far, into slabs and to other
    /// lists.
    fn flushes(&self, of: &Slot<'_, 'm, D>) -> (u64, u64) {
        let sent = D::flushes_to_others(self.slabs, of.cache.id());
        (of.cache.numbers().flushes, sent)
    }

    /// Returns true if an object just freed is where a second free of it looks. `slqb-2008` may
    /// have sent it on at once, as it does from a CPU without a row and with a full batch; then a
    /// second free is not detected.
    fn is_where_it_was_put(&self, of: &Slot<'_, 'm, D>, before: (u64, u64)) -> bool {
        let stays = self.cpus.here() < self.case.cpus && before == self.flushes(of);
        stays || self.case.kind.is_sheafed() || !of.checks.is_empty()
    }

    /// Frees something that must not be freed, where the library guarantees detection: in a checked
    /// cache; on a CPU without queues, where every free takes the slow path; everywhere in a design
    /// that always checks; and everywhere for the object freed just before.
    pub(super) fn free_bad(&self, n: usize, bad: Bad) {
        let slot = n % SLOTS;
        let Some(of) = self.slot(slot) else { return };
        if self.is_misplaced(of.cache.users()) {
            return;
        }
        let looks = self.case.finds_objects() || self.cpus.here() >= self.case.cpus;
        if bad != Bad::Again && of.checks.is_empty() && !looks {
            return;
        }
        let ours = |from| from == Origin::Slot(slot);
        let (target, right): (_, fn(FreeFault) -> bool) = match bad {
            Bad::Again => {
                let taken = self.model.borrow_mut().take(n, ours);
                let Some(mut live) = taken else { return };
                let start = live.object.start();
                if of.constructed {
                    live.object.fill(CONSTRUCTED);
                }
                let moved = self.flushes(&of);
                assert_eq!(of.cache.free(live.object), Ok(()));
                if !self.is_where_it_was_put(&of, moved) {
                    return;
                }
                // If it was the last object, its slab is gone.
                (Some(start), |fault| {
                    matches!(fault, FreeFault::DoubleFree | FreeFault::NotASlab)
                })
            }
            Bad::Outside => (Some(self.outside()), |fault| fault == FreeFault::NotASlab),
            Bad::NoSlab => (self.pages.free_page(), |fault| fault == FreeFault::NotASlab),
            Bad::Inside(by) => {
                let model = self.model.borrow();
                let live = model.nth(n, ours).filter(|live| live.object.bytes() > 1);
                let Some(live) = live else { return };
                let start = live.object.start();
                let at = live.object.inside(1 + by % (live.object.bytes() - 1));
                let is_alone = self.case.kind == SlabKind::SheafedOfHeap
                    && live.object.bytes() > SINGLE_ABOVE
                    && start.addr().get() / PAGE != at.addr().get() / PAGE;
                // A slab of one object may mark its first page only: the others are nobody's.
                match is_alone {
                    true => (Some(at), |fault| {
                        matches!(fault, FreeFault::OffGrid | FreeFault::NotASlab)
                    }),
                    false => (Some(at), |fault| fault == FreeFault::OffGrid),
                }
            }
            Bad::Foreign => {
                let model = self.model.borrow();
                let live = model.nth(n, |from| from != Origin::Slot(slot));
                (live.map(|live| live.object.start()), |fault| {
                    matches!(fault, FreeFault::WrongCache { .. })
                })
            }
        };
        let Some(target) = target else { return };
        let done = of.cache.free_anything(target);
        let Err(fault) = done else {
            panic!(
                "{bad:?} was accepted as a good free: {:?}",
                of.cache.numbers()
            );
        };
        assert!(right(fault), "{bad:?}: {fault:?}");
        self.count(|driven| &mut driven.bad_frees);
    }
}
