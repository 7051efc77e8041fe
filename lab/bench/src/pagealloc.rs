//! `bench pagealloc`: the table of the magazine patches of 2013.
//!
//! A sample allocates a batch of pages and frees it, repeatedly for at least a millisecond. `total`
//! is the time of that loop, with no clock inside. A second loop with a clock around each half,
//! minus the clock's own cost, gives the shares of `alloc` and `free` in `total`. Its shares are
//! used, not its times, which a clock in so short a loop inflates. All figures are ns per page (per
//! block above order 0) for one thread. Pages that another thread frees are measured differently,
//! see `remote.rs`.
//!
//! Configurations, yardsticks and peers take turns in every round, and all have the same loop and
//! the same batch.
//!
//! The original ran batch + 1 pages per sample and divided by batch, and carried sums over from one
//! sample to the next; neither is done here.

use core::time::Duration;

use brickyard_report::{Host, Metric, Results, Row};

use super::batch::Sample;
use super::conditions::Conditions;
use super::contestant::Contestant;
use super::rounds::{Pace, Rounds, Taken};
use super::schedule::Workload;
use brickyard_measure::turns::{Round, Turns};
use brickyard_run::progress::Progress;

/// What is measured, at what workloads, and how often.
#[derive(Debug)]
pub struct PageAlloc<'a> {
    /// The columns.
    pub contestants: &'a [Contestant],
    /// The rows; those of one setting are adjacent.
    pub workloads: &'a [Workload],
    /// The machine, and the mobility of the requests.
    pub conditions: Conditions,
    /// Samples of each row.
    pub samples: usize,
    /// The least time of a sample's loop.
    pub least: Duration,
}

const METRICS: [&str; 3] = ["alloc", "free", "total"];

fn metric_of(sample: &Sample, name: &str) -> f64 {
    match name {
        "alloc" => sample.alloc,
        "free" => sample.free,
        _ => sample.total,
    }
}

const NS_PER_PAGE: &str = "ns/page";

impl PageAlloc<'_> {
    /// Measures, and returns the results as rows.
    ///
    /// # Errors
    /// A contestant cannot be built, or the run is interrupted before the first round is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<Results> {
        let taken = self.measure(progress)?;
        let results = self.results(&taken)?;
        for (contestant, taken) in self.contestants.iter().zip(&taken) {
            self.warn_of_missing_rows(contestant, taken, progress);
        }
        Ok(results)
    }

    /// Returns the results of every turn of every contestant.
    fn measure(&self, progress: &dyn Progress) -> anyhow::Result<Vec<Vec<Taken>>> {
        let names: Vec<_> = self.contestants.iter().map(Contestant::name).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            lasting: Duration::ZERO,
            steps: self.workloads.len(),
            progress,
        };
        turns.take(|whose, round, step| {
            // Only the first workload warms up.
            let part = match round {
                Round::WarmUp => &self.workloads[..1],
                Round::Measured(_) => self.workloads,
            };
            let mut all = Taken::default();
            for workloads in part.chunk_by(|a, b| a.setting == b.setting) {
                let rounds = Rounds {
                    workloads,
                    pace: Pace::Sample(self.least),
                    step,
                };
                all.0
                    .extend(self.conditions.turn(&self.contestants[whose], &rounds)?.0);
            }
            Ok(all)
        })
    }

    fn results(&self, taken: &[Vec<Taken>]) -> anyhow::Result<Results> {
        let mut results = Results::new("pagealloc", Host::read());
        let mut begin = 0;
        for block in self.workloads.chunk_by(Workload::is_like) {
            for name in METRICS {
                let metric = Metric::lower(name, NS_PER_PAGE);
                for (place, workload) in (begin..).zip(block) {
                    for (contestant, taken) in self.contestants.iter().zip(taken) {
                        let value = |taken: &Taken| {
                            let sample = taken.0.get(place).copied().flatten();
                            sample.map(|sample| metric_of(&sample, name))
                        };
                        let values: Option<Vec<f64>> = taken.iter().map(value).collect();
                        if let Some(values) = values {
                            let name = self.conditions.name(workload);
                            let row = Row::new(contestant.name(), name, metric, values)?;
                            results.push(row.timed())?;
                        }
                    }
                }
            }
            begin += block.len();
        }
        Ok(results)
    }

    /// Warns of the rows that a contestant lacks for lack of memory. Yardsticks have no memory.
    fn warn_of_missing_rows(
        &self,
        contestant: &Contestant,
        taken: &[Taken],
        progress: &dyn Progress,
    ) {
        if matches!(contestant, Contestant::Yardstick(_)) {
            return;
        }
        let is_hole = |place: usize| {
            let has = |taken: &Taken| taken.0.get(place).is_some_and(Option::is_some);
            !taken.iter().all(has)
        };
        let holes = self
            .workloads
            .iter()
            .enumerate()
            .filter(|(i, _)| is_hole(*i));
        let holes: Vec<_> = holes
            .map(|(_, workload)| self.conditions.name(workload))
            .collect();
        if !holes.is_empty() {
            progress.warn(&format!(
                "{} had too few free blocks for: {}",
                contestant.name(),
                holes.join(", ")
            ));
        }
    }
}
