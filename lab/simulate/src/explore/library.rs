//! The real allocator as a system: a case's allocator on a case's machine, with its tasks.

use core::array;

use brickyard::node::Node;
use brickyard::sync::Shared;
use brickyard_designs::classics::LabZone;
use brickyard_machine::Affinity;

use super::case::{Case, Marks, Mode};
use super::covered::{Covered, Event};
use super::log::Log;
use super::starve::starve;
use super::system::{Fault, System};
use super::worker::Worker;
use super::world::{SharedWords, World};
use crate::barrier::Barrier;
use crate::build::{Job, MachineLock, OwnPages, SharedPages, Slots};
use crate::lock::LockKind;
use crate::platform::Simulated;

/// Quiet moments between the operations of a run, at which every invariant is checked.
const MOMENTS: usize = 5;

/// The unchanged allocator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Library;

impl System for Library {
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault> {
        let slots = case.slots;
        let (mut blueprint, run) = (case.blueprint(), CaseRun { case, slots, log });
        match slots {
            Slots::Exclusive => blueprint.run(run),
            Slots::Shared => {
                blueprint.locks = LockKind::TEST_AND_SET;
                blueprint.with::<Shared, MachineLock, _>(run)
            }
        }
    }
}

/// The allocator with another lock, such as a faulty one.
///
/// All zones and magazines have it. Each CPU enters only its own slots, whatever the case has chosen.
#[derive(Debug, Clone, Copy)]
pub struct WithLock(pub LockKind);

impl System for WithLock {
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault> {
        let slots = Slots::Exclusive;
        let mut blueprint = case.blueprint();
        blueprint.locks = self.0;
        blueprint.run(CaseRun { case, slots, log })
    }
}

struct CaseRun<'r> {
    case: &'r Case,
    slots: Slots,
    log: &'r Log,
}

impl Job for CaseRun<'_> {
    type Output = Result<Covered, Fault>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let Self { case, slots, log } = self;
        if case.mode == Mode::Starve {
            return starve(node, shared, case, log);
        }
        let words = OwnPages::new(SharedWords::new());
        let world = World::new(node, case, slots, log, &words);
        world.prefill();
        if case.marks == Marks::On {
            world.nodes().set_min_free_kbytes(64, 4096);
        }
        let between: [Barrier; MOMENTS] = array::from_fn(|_| Barrier::new(case.tasks));
        let end = Barrier::new(case.tasks);
        let mut machine = SharedPages::machine(case.setup(), shared);
        words.shared_pages().map(&mut machine);
        world.frames.map(&mut machine);
        let (world, between, end) = (&world, &between, &end);
        for number in 1..=case.tasks as u32 {
            machine.task(format!("task {number}"), Affinity::Any, move || {
                Worker::new(world, number).work(between, end);
            });
        }
        machine.task("background reclaim", Affinity::Any, || {
            world.reclaim_in_background();
        });
        if let Some(cycles) = case.interrupt_cycles() {
            machine.interrupts(cycles, || world.interrupt());
        }
        let ended = machine.run()?;
        let counts = &world.counts;
        counts.count(Event::Runs);
        counts.add(Event::Accesses, ended.accesses);
        counts.add(Event::Switches, ended.switches);
        counts.add(Event::Stops, ended.stops);
        let free = world.span().len();
        match world.free_prefill() {
            Ok(census) if census.free == free => Ok(counts.covered()),
            Ok(census) => Err(Fault::After(format!(
                "{free} frames should be free, but the census is {census:?}"
            ))),
            Err(why) => Err(Fault::After(why)),
        }
    }
}
