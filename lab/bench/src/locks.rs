//! `bench locks`: the experiment of 2007 on how long to hold the zone lock for a bulk of pages,
//! with real threads of this host.
//!
//! Each column changes one thing of the column before: the lock is released after each page, it
//! becomes a ticket lock (held for the whole bulk), it is released when another thread waits, it
//! gets its own cache line. The zone is that of Linux 2.6 (`vanilla`): a buddy store behind per-CPU
//! lists of the sizes that the highest zone of the paper's machine had (7 and 42). `bursts.rs` has
//! what the threads do.
//!
//! Columns take turns in every round, at each number of threads, and all runs of a round have the
//! same seed, so they are pairs, and the signed-rank test applies. Every run is made twice. The
//! first measures the time, and how much each bulk moved; the second reads the clock at the lock,
//! which makes each hold longer, and measures the times of waiting and holding.

use core::time::Duration;

use brickyard_classics::bulk::{LockReading, MeterReading, Timing};
use brickyard_report::{Host, Metric, Results, Row};
use brickyard_simulate::locks::Column;

use super::bursts::{Got, Load, USUAL};
use super::zone2007::Zone2007;
use brickyard_measure::turns::{Round, Turns};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// The time of a burst, which the other metrics explain.
pub const TIME: Metric<'static> = Metric::lower("time", "us/burst");

/// The result of one turn.
#[derive(Debug, Clone, Copy)]
struct Taken {
    got: Got,
    counted: MeterReading,
    timed: MeterReading,
}

/// What is measured, at what load, and how often.
#[derive(Debug)]
pub struct Locks<'a> {
    /// The columns.
    pub columns: &'a [Column],
    /// The zone of every run.
    pub zone: Zone2007,
    /// What every thread does. `threads` is the most of them: measured with 1, 2, 4 … threads. The
    /// first round has this seed, the second the next.
    pub load: Load,
    /// Runs of each column.
    pub samples: usize,
}

impl Locks<'_> {
    /// Measures, and returns the results as rows. If interrupted, the rows of the larger numbers of
    /// threads are missing.
    ///
    /// # Errors
    /// The zone has too few pages, or the run is interrupted before the first round is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<Results> {
        let mut results = Results::new("locks", Host::read());
        for threads in numbers_up_to(self.load.threads) {
            match self.measure(threads, progress) {
                Ok(taken) => self.push(&mut results, threads, &taken)?,
                // The rows measured before are kept.
                Err(_) if interrupt::asked() && !results.rows().is_empty() => break,
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        Ok(results)
    }

    /// Returns the results of every round of every column, with so many threads.
    fn measure(&self, threads: usize, progress: &dyn Progress) -> anyhow::Result<Vec<Vec<Taken>>> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name()).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            lasting: Duration::ZERO,
            steps: 1,
            progress,
        };
        turns.take(|whose, round, step| {
            let (bursts, number) = match round {
                Round::WarmUp => (self.load.bursts.min(WARM_UP_BURSTS), 0),
                Round::Measured(number) => (self.load.bursts, number as u64),
            };
            let load = Load {
                threads,
                bursts,
                seed: self.load.seed.wrapping_add(number),
                ..self.load
            };
            let column = self.columns[whose];
            let (got, counted) = self.zone.run(column, &load, Timing::Off)?;
            let (_, timed) = self.zone.run(column, &load, Timing::On)?;
            step();
            Ok(Taken {
                got,
                counted,
                timed,
            })
        })
    }

    /// Adds the rows of one number of threads.
    fn push(
        &self,
        results: &mut Results,
        threads: usize,
        taken: &[Vec<Taken>],
    ) -> anyhow::Result<()> {
        let workload = self.name(threads);
        // Every burst allocates its pages and its block; the warm-up is included.
        let load = self.load;
        let bursts = (load.bursts + load.bursts / 8 + 1) as f64;
        let pages = bursts * threads as f64 * (load.pages + load.order.frames()) as f64;
        let per_burst = 1e6 / load.bursts as f64;
        let figures = |taken: &Taken| taken.figures(per_burst, pages);
        let of_column = |taken: &Vec<Taken>| taken.iter().map(figures).collect();
        let columns: Vec<Vec<_>> = taken.iter().map(of_column).collect();
        for place in 0..FIGURES {
            for (&column, taken) in self.columns.iter().zip(&columns) {
                let (metric, _) = taken[0][place];
                let samples = taken.iter().map(|figures| figures[place].1).collect();
                let row = Row::new(column.name(), &workload, metric, samples)?;
                results.push(row.timed())?;
            }
        }
        Ok(())
    }

    /// Returns the workload's name, with the parameters that are not the defaults.
    fn name(&self, threads: usize) -> String {
        let (load, lists) = (self.load, self.zone.lists);
        let mut name = format!("bursts-{} threads-{threads}", load.pages);
        for (option, value, default) in [
            ("batch", lists.batch, Zone2007::BATCH),
            ("high", lists.high, 6 * lists.batch),
            (
                "order",
                usize::from(load.order.get()),
                usize::from(USUAL.order.get()),
            ),
            ("compute", load.compute, USUAL.compute),
        ] {
            if value != default {
                name += &format!(" {option}-{value}");
            }
        }
        name
    }
}

/// Bursts of a run that only warms up.
const WARM_UP_BURSTS: u64 = 100;

/// Returns 1, 2, 4 … and finally `most`.
fn numbers_up_to(most: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|shift| 1 << shift);
    powers
        .take_while(move |&power| power < most)
        .chain(core::iter::once(most))
}

/// The number of figures of a turn.
const FIGURES: usize = 17;

impl Taken {
    /// Returns its figures in the order of their lines: the time, then what explains it.
    fn figures(&self, us_per_burst: f64, pages: f64) -> [(Metric<'static>, f64); FIGURES] {
        let (wait, hold) = (&self.timed.wait, &self.timed.hold);
        let (taken, given) = (&self.counted.taken, &self.counted.given);
        let (lower, higher) = (Metric::lower, Metric::higher);
        let ns = |name, of: &LockReading, percent| {
            (lower(name, "ns"), of.histogram.percentile(percent) as f64)
        };
        let order = |name, value| (lower(name, "order"), value);
        let holds = hold.moments.n as f64 / pages;
        [
            (TIME, self.got.wall.as_secs_f64() * us_per_burst),
            (lower("holds", "times/page"), holds),
            ns("wait-p50", wait, 50.0),
            ns("wait-p99", wait, 99.0),
            ns("wait-p99.9", wait, 99.9),
            ns("hold-p50", hold, 50.0),
            ns("hold-p99", hold, 99.0),
            ns("hold-p99.9", hold, 99.9),
            (higher("taken", PAGES), taken.count.mean()),
            (lower("taken-deviation", PAGES), taken.count.deviation()),
            order("taken-order", taken.order.mean()),
            order("taken-order-deviation", taken.order.deviation()),
            (higher("given", BLOCKS), given.count.mean()),
            (lower("given-deviation", BLOCKS), given.count.deviation()),
            order("given-order", given.order.mean()),
            order("given-order-deviation", given.order.deviation()),
            (higher("fairness", "of 1"), self.got.fairness),
        ]
    }
}

const PAGES: &str = "pages/bulk";
const BLOCKS: &str = "blocks/bulk";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_numbers_end_with_the_most() {
        let up_to = |most| numbers_up_to(most).collect::<Vec<_>>();
        assert_eq!(up_to(1), [1]);
        assert_eq!(up_to(2), [1, 2]);
        assert_eq!(up_to(6), [1, 2, 4, 6]);
        assert_eq!(up_to(8), [1, 2, 4, 8]);
    }
}
