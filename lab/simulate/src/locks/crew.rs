//! A crew at work: each duty a task of the machine, on an allocator that was just built.

use core::cell::Cell as Counter;

use brickyard::node::Node;
use brickyard::sync::{LockLog, timed};
use brickyard_classics::LabZone;
use brickyard_classics::bulk::MeterReading;
use brickyard_machine::{Affinity, Ended, Failure, Setup, here};

use super::load::{Crew, Duty};
use super::{Cell, Plan};
use crate::build::{Job, SharedPages};
use crate::instructions;
use crate::platform::Simulated;
use crate::tasks::{Counts, Runner};

/// A crew, and where it works.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtWork<'r> {
    pub(super) plan: &'r Plan,
    pub(super) cell: &'r Cell<'r>,
    pub(super) crew: &'r Crew,
}

/// What the machine and the allocator say of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) ended: Ended,
    pub(super) counts: Counts,
    /// All holds of all locks, and none of what was before or after.
    pub(super) log: LockLog,
    /// Of all zones.
    pub(super) meters: Vec<MeterReading>,
}

impl Job for AtWork<'_> {
    type Output = Result<Done, Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        pieces: &[SharedPages],
    ) -> Self::Output {
        let Self { plan, cell, crew } = self;
        let runner = Runner::new(core::slice::from_ref(node));
        let next = Counter::new(0);
        let mut machine = SharedPages::machine(
            Setup {
                instructions_per_access: instructions::per_access(plan.configuration),
                ..Setup::new(plan.profile, cell.cpus, cell.seed)
            },
            pieces,
        );
        for (number, duty) in crew.duties.iter().enumerate() {
            let (runner, next) = (&runner, &next);
            let name = format!("{} {number}", cell.load.name());
            machine.task(name, Affinity::Any, move || {
                here::sleep(plan.profile.cycles(duty.begins_ns));
                attend(duty, crew, next, runner);
            });
        }
        let (ended, log) = timed(|| machine.run());
        let zones = node.zones().iter();
        Ok(Done {
            ended: ended?,
            counts: runner.counts(),
            log,
            meters: zones.map(|zone| zone.meter()).collect(),
        })
    }
}

/// Does a task's own jobs, or takes from the pool until it is empty.
fn attend<Z: LabZone>(duty: &Duty, crew: &Crew, next: &Counter<usize>, runner: &Runner<'_, Z>) {
    for job in &duty.jobs {
        runner.run(job);
    }
    if !duty.jobs.is_empty() {
        return;
    }
    while let Some(job) = crew.pool.get(next.get()) {
        next.set(next.get() + 1);
        runner.run(job);
    }
}
