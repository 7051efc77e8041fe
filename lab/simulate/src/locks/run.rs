//! One run on a machine: each planned task on an allocator that was just built.

use core::cell::Cell as Counter;

use brickyard::node::Node;
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::bulk::MeterReading;
use brickyard_machine::{Affinity, Ended, Failure, Setup, current};

use super::load::{TaskPlan, TaskSet};
use super::{Computing, LocksCase, LocksPlan, footprint};
use crate::build::{Job, SharedPages};
use crate::instructions;
use crate::platform::Simulated;
use crate::tasks::{Counts, Runner};
use crate::timed::{LockLog, timed};

/// A run: a cell of a plan, and its tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellRun<'r> {
    pub(super) plan: &'r LocksPlan,
    pub(super) cell: &'r LocksCase<'r>,
    pub(super) tasks: &'r TaskSet,
}

/// The output of a run.
#[derive(Debug)]
pub(super) struct RunOutput {
    pub(super) ended: Ended,
    pub(super) counts: Counts,
    /// The waits and holds of all locks, during the run only.
    pub(super) log: LockLog,
    /// The bulk meters, one per zone.
    pub(super) meters: Vec<MeterReading>,
}

impl Job for CellRun<'_> {
    type Output = Result<RunOutput, Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let Self { plan, cell, tasks } = self;
        let runner = Runner::new(core::slice::from_ref(node));
        let next = Counter::new(0);
        let mut machine = SharedPages::machine(
            Setup {
                instructions_per_thousand: instructions::per_thousand(plan.configuration),
                footprint: match plan.computing {
                    Computing::EvictsLines => Some(footprint::of(plan.profile)),
                    Computing::KeepsLines => None,
                },
                ..Setup::new(plan.profile, cell.cpus, cell.seed)
            },
            shared,
        );
        for (number, task) in tasks.plans.iter().enumerate() {
            let (runner, next) = (&runner, &next);
            let name = format!("{} {number}", cell.load.name());
            machine.task(name, Affinity::Any, move || {
                current::sleep(plan.profile.cycles(task.begins_ns));
                run_task(task, tasks, next, runner);
            });
        }
        let (ended, log) = timed(|| machine.run());
        let zones = node.zones().iter();
        Ok(RunOutput {
            ended: ended?,
            counts: runner.counts(),
            log,
            meters: zones.map(|zone| zone.meter()).collect(),
        })
    }
}

/// Runs a task's own jobs; one without jobs takes jobs from the pool until it is empty.
fn run_task<Z: LabZone>(
    task: &TaskPlan,
    tasks: &TaskSet,
    next: &Counter<usize>,
    runner: &Runner<'_, Z>,
) {
    for job in &task.jobs {
        runner.run(job);
    }
    if !task.jobs.is_empty() {
        return;
    }
    while let Some(job) = tasks.pool.get(next.get()) {
        next.set(next.get() + 1);
        runner.run(job);
    }
}
