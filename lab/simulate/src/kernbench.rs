//! A kernel build: a pool of workers, some for each CPU, that take compile jobs until all are done,
//! as `make -j` does.
//!
//! The jobs are those of a recorded build ([`brickyard_workload::jobs`]), repeated from the first
//! where more are requested than were recorded. A job's computing is user time, and so is what the
//! recorded kernel did between two events, as a trace does not distinguish them. System time is the
//! allocator, switches and ticks. Pages that an exit frees are freed in lists, which are derived
//! from the recording ([`jobs`](brickyard_workload::jobs)). What a job leaves behind is page cache
//! ([`Runner`]).

use core::cell::Cell;

use brickyard::node::Node;
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Affinity, Ended, Failure};
use brickyard_workload::jobs::Job as Compile;

use crate::build::{Blueprint, Job, SharedPages};
use crate::platform::Simulated;
use crate::setting::{RunError, Setting};
use crate::tasks::{Counts, Runner};

/// A build.
#[derive(Debug, Clone, Copy)]
pub struct Kernbench<'j> {
    /// The recorded jobs, which are repeated. Not empty.
    pub recorded: &'j [Compile],
    /// How many jobs are run in all.
    pub jobs: usize,
    /// How many run at once: make's `-j`.
    pub workers: usize,
}

/// The result of a build, in seconds of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BuildRun {
    /// User time, of all CPUs.
    pub user: f64,
    /// System time, of all CPUs.
    pub system: f64,
    /// From the beginning to the end.
    pub elapsed: f64,
    /// What happened to the requests.
    pub counts: Counts,
}

impl BuildRun {
    /// Returns how many CPUs were busy on average, in percent of one CPU.
    #[must_use]
    pub fn cpu_percent(&self) -> f64 {
        (self.user + self.system) * 100.0 / self.elapsed
    }
}

impl Kernbench<'_> {
    /// Returns the frames that a machine needs for it: twice what the largest job holds at once,
    /// for each worker, and some for caches.
    #[must_use]
    pub fn frames_needed(&self, cpus: usize) -> usize {
        let largest = self
            .recorded
            .iter()
            .map(Compile::most_held)
            .max()
            .unwrap_or(0);
        let held = largest.saturating_mul(2).saturating_mul(self.workers);
        held.saturating_add(cpus.saturating_mul(2048))
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`RunError`] for an impossible machine, and where a run fails.
    pub fn run(&self, setting: &Setting) -> Result<BuildRun, RunError> {
        self.run_on(setting, &setting.blueprint())
    }

    /// Runs it on another allocator than the setting's, such as one with a given zone for movable
    /// pages ([`Setting::blueprint_of`]). Its slots are exclusive and its locks ticket locks.
    ///
    /// # Errors
    /// Those of [`Kernbench::run`].
    pub fn run_on(&self, setting: &Setting, blueprint: &Blueprint) -> Result<BuildRun, RunError> {
        setting.check(self.frames_needed(setting.cpus))?;
        let pool = Pool {
            build: *self,
            setting: *setting,
        };
        let (ended, counts) = blueprint
            .run(pool)
            .map_err(|failure| setting.failed(failure))?;
        let sum = |of: fn(&brickyard_machine::CpuTimes) -> u64| {
            setting.seconds(ended.cpus.iter().map(of).sum())
        };
        Ok(BuildRun {
            user: sum(|cpu| cpu.user),
            system: sum(|cpu| cpu.system + cpu.interrupts),
            elapsed: setting.seconds(ended.cycles),
            counts,
        })
    }
}

/// One build on one machine.
struct Pool<'j> {
    build: Kernbench<'j>,
    setting: Setting,
}

impl Job for Pool<'_> {
    type Output = Result<(Ended, Counts), Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let Kernbench {
            recorded,
            jobs,
            workers,
        } = self.build;
        let runner = Runner::new(core::slice::from_ref(node));
        let next = Cell::new(0);
        let mut machine = SharedPages::machine(self.setting.machine(), shared);
        for worker in 0..workers.min(jobs) {
            let (runner, next) = (&runner, &next);
            machine.task(format!("make {worker}"), Affinity::Any, move || {
                while next.get() < jobs {
                    let job = next.replace(next.get() + 1);
                    runner.run(&recorded[job % recorded.len()]);
                }
            });
        }
        let ended = machine.run()?;
        Ok((ended, runner.counts()))
    }
}
