//! Quiet moments: all tasks wait, and one checks every invariant. They come a few times in a run,
//! and once at its end.

use brickyard::block::Census;
use brickyard::sync::Ordering;
use brickyard::{Context, FreeError, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_machine::current;

use super::covered::Event;
use super::frames::{Owner, wrong};
use super::log::{About, Who};
use super::world::World;

/// Cycles between two checks whether interrupts and background reclaim are idle.
const REST_CYCLES: u64 = 2_000;

impl<Z: LabZone> World<'_, Z> {
    /// Does `work` while nothing else uses the allocator. All other tasks must wait.
    pub(crate) fn quietly(&self, work: impl FnOnce(&Self)) {
        self.quiet.set(true);
        while self.at_work.get() > 0 {
            current::sleep(REST_CYCLES);
        }
        // As `stop_machine` does: each CPU publishes what it did, and afterwards sees what was done
        // meanwhile.
        self.on_all_cpus(Ordering::Release);
        // Acquire: pairs with the releases of all CPUs.
        self.words.passed.load(Ordering::Acquire);
        work(self);
        // Release: pairs with the acquires of all CPUs.
        self.words.passed.fetch_add(1, Ordering::Release);
        self.on_all_cpus(Ordering::Acquire);
        self.quiet.set(false);
    }

    fn on_all_cpus(&self, order: Ordering) {
        for cpu in 0..self.case.cpus {
            let mut pass = || {
                self.words.passed.fetch_add(1, order);
            };
            if !current::run_on(cpu, &mut pass) {
                wrong(format!("the remote call to CPU {cpu} was refused"));
            }
        }
    }

    /// Checks every invariant, and that exactly the frames with an owner are in use.
    pub(crate) fn check(&self) -> Census {
        self.log.note(Who::Hook, "checks", About::Nothing);
        self.counts.count(Event::Checks);
        let census = match self.nodes().check() {
            Ok(census) => census,
            Err(violation) => wrong(violation.to_string()),
        };
        let (allocated, absent) = self.frames.in_use();
        if census.isolated > 0 && self.away.borrow().is_empty() {
            wrong(format!("{} frames are isolated", census.isolated));
        }
        let frames = self.span().len() - absent;
        let counted = census.free + census.isolated + census.cached + census.allocated;
        if census.allocated != allocated || counted != frames {
            wrong(format!(
                "{allocated} of {frames} frames are in use, but the allocator's census is {census:?}"
            ));
        }
        census
    }

    /// Frees all that no task owns, drains the caches, and checks every invariant.
    pub(crate) fn clear(&self) {
        while let Some((frame, order)) = self.cache.nth(0) {
            if self.evict_page(frame, Who::Hook) == 0 {
                wrong(format!("the page at {frame}, order {order}, stays locked"));
            }
        }
        loop {
            let block = self.handed_over.borrow_mut().pop_front();
            let Some((frame, order)) = block else { break };
            self.frames.lock(frame);
            self.frames.unlock(frame);
            self.give(frame, order, Who::Hook, Owner::Handover);
        }
        for (cpu, held) in self.of_interrupts.iter().enumerate() {
            for (frame, order) in held.take() {
                self.give(frame, order, Who::Hook, Owner::Interrupt(cpu as u32));
            }
        }
        if let Some((frame, owner)) = self.frames.owned() {
            wrong(format!("frame {frame} is still owned by {owner:?}"));
        }
        self.nodes().drain();
        let census = self.check();
        if census.cached > 0 {
            wrong(format!(
                "{} frames are in caches after a drain",
                census.cached
            ));
        }
        let late: usize = self
            .node
            .zones()
            .iter()
            .map(|zone| zone.refused_late())
            .sum();
        if late > 0 {
            wrong(format!(
                "{late} double frees were counted, but there were none"
            ));
        }
        self.free_twice();
    }

    /// Checks that a second free is refused once the frame is in the store, in every design.
    fn free_twice(&self) {
        let request = Request::page(Mobility::Movable).in_context(Context::Atomic);
        let owner = Owner::Transient;
        let Some(frame) = self.take(&request, Who::Hook, owner) else {
            return;
        };
        self.give(frame, Order::ZERO, Who::Hook, owner);
        self.nodes().drain();
        let answer = self.nodes().free(frame, Order::ZERO);
        if answer != Err(FreeError::DoubleFree) {
            wrong(format!("a second free of {frame} was answered {answer:?}"));
        }
        self.counts.count(Event::BadFrees);
        self.check();
    }
}
