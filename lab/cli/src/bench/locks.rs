//! `brickyard bench locks`: the experiment of 2007, how long to hold the zone lock for a bulk of pages, with real threads of this host.
//!
//! Each column changes one thing of the column before: the lock is released after each page, it becomes a ticket lock (held for the whole bulk), it is given up when
//! somebody waits, it gets its own cache line. The zone is that of Linux 2.6 (`vanilla`): a buddy store behind per-CPU lists of the sizes that the highest zone of the
//! paper's machine had (7 and 42). What the threads do: `bursts.rs`.
//!
//! Columns take turns in every round, at each number of threads, and all runs of a round have the same seed: so they are pairs, and the signed-rank test may be applied. Every run is made twice.
//! The first tells the time, and how much each bulk moved; the second reads the clock at the lock, which makes each hold longer, and tells how long it was waited for and held.

use std::thread;

use brickyard::Order;
use brickyard::bulk::{LockReading, MeterReading, Timing};
use brickyard::front::ListSizes;
use brickyard_report::{Better, Host, Metric, Results, Row};
use brickyard_simulate::locks::Column;
use clap::Args;

use super::bursts::{Got, Load, USUAL};
use super::machine::FRAME_BYTES;
use super::turns::{Round, Turns};
use super::zone2007::Zone2007;
use crate::amount::{bytes_text, zone_bytes};
use crate::interrupt;
use crate::misuse::{Misuse, has_twice};
use crate::output::Output;

/// The options of `brickyard bench locks`.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// The columns, each held against the one before it: hold, release, ticket, ticket+yield, ticket+yield+own-line. [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Vec<Column>,
    /// The most threads; it is measured with 1, 2, 4 … of them. [default: as many as there are CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Pages that a per-CPU list fetches and gives back at once. The default is that of the paper's machine.
    #[arg(long, default_value_t = Zone2007::BATCH, value_name = "PAGES")]
    batch: usize,
    /// Pages at which it gives some back. [default: six batches]
    #[arg(long, value_name = "PAGES")]
    high: Option<usize>,
    /// Single pages of a burst.
    #[arg(long, default_value_t = USUAL.pages, value_name = "PAGES")]
    burst: usize,
    /// The order of the one block that a burst has besides.
    #[arg(long, default_value_t = USUAL.order.get(), value_name = "ORDER", value_parser = clap::value_parser!(u8).range(0..=10))]
    order: u8,
    /// Multiplications that a thread makes between two bursts, on the average; about a nanosecond each.
    #[arg(long, default_value_t = USUAL.compute, value_name = "N")]
    compute: usize,
    /// Bursts of each thread in a run.
    #[arg(long, default_value_t = USUAL.bursts, value_name = "N")]
    bursts: u64,
    /// The memory of the zone (its metadata only is real).
    #[arg(long, default_value = "128M", value_parser = zone_bytes, value_name = "BYTES")]
    memory: usize,
    /// Runs of each column: fewer than six pairs can have no star.
    #[arg(long, default_value_t = 15, value_name = "N")]
    samples: usize,
    /// Where the random numbers begin: round 1 has this seed, round 2 the next.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

/// Longer computing would not come to an end.
const MOST_COMPUTE: usize = 1_000_000_000;

const TIME: Metric<'static> = Metric {
    name: "time",
    unit: "us/burst",
    better: Better::Lower,
};

/// What came out of one turn.
#[derive(Debug, Clone, Copy)]
struct Taken {
    got: Got,
    counted: MeterReading,
    timed: MeterReading,
}

impl Locks {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let columns = if self.columns.is_empty() {
            &Column::ALL[..]
        } else {
            &self.columns
        };
        let cpus = thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let most = self.threads.unwrap_or(cpus);
        self.validate(most)?;
        self.output.check()?;
        if most > cpus {
            eprintln!(
                "brickyard: {most} threads on {cpus} CPUs: waiting for the lock is then also waiting for a CPU; give --threads {cpus} to measure the lock alone"
            );
        }
        interrupt::watch()?;
        let mut results = Results::new("locks", Host::read());
        for threads in numbers_up_to(most) {
            match self.measure(columns, threads) {
                Ok(taken) => self.push(&mut results, columns, threads, &taken)?,
                // What was measured until then is kept.
                Err(_) if interrupt::asked() && !results.rows().is_empty() => break,
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        self.output.emit_steps(&results, &|workload, metric| {
            if metric == TIME.name {
                workload.into()
            } else {
                format!("  {metric}")
            }
        })
    }

    /// Options that each make sense, but not so.
    fn validate(&self, threads: usize) -> Result<(), Misuse> {
        if has_twice(&self.columns) {
            return Err(Misuse::new("--columns names a value twice"));
        }
        for (option, value) in [
            ("threads", threads),
            ("samples", self.samples),
            ("batch", self.batch),
            ("burst", self.burst),
            ("bursts", self.bursts.min(1) as usize),
        ] {
            if value == 0 {
                return Err(Misuse::new(format!("--{option} must be at least 1")));
            }
        }
        if self.compute > MOST_COMPUTE {
            let most = format!("--compute must be at most {MOST_COMPUTE}");
            return Err(Misuse::new(most));
        }
        if self.high() < self.batch {
            return Err(Misuse::new(format!(
                "--high {} is below --batch {}; give at least as much",
                self.high(),
                self.batch
            )));
        }
        // What all threads hold at once, twice: blocks of higher order are to be had too.
        let held = self.burst.saturating_add(self.high());
        let needed = held
            .saturating_add(1 << self.order)
            .saturating_mul(2 * threads)
            .saturating_mul(FRAME_BYTES)
            .checked_next_multiple_of(1 << 20)
            .unwrap_or(usize::MAX);
        if self.memory < needed.max(LEAST_MEMORY) {
            return Err(Misuse::new(format!(
                "--memory {} is too small for {threads} threads with such bursts; give at least {}, or a smaller --burst",
                bytes_text(self.memory),
                bytes_text(needed.max(LEAST_MEMORY))
            )));
        }
        Ok(())
    }

    const fn high(&self) -> usize {
        match self.high {
            Some(high) => high,
            None => self.batch.saturating_mul(6),
        }
    }

    /// What came out of every round of every column, with so many threads.
    fn measure(&self, columns: &[Column], threads: usize) -> anyhow::Result<Vec<Vec<Taken>>> {
        let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            steps: 1,
        };
        turns.take(|whose, round, step| {
            let (bursts, number) = match round {
                Round::WarmUp => (self.bursts.min(WARM_UP_BURSTS), 0),
                Round::Measured(number) => (self.bursts, number as u64),
            };
            let load = Load {
                threads,
                bursts,
                pages: self.burst,
                order: Order::new(self.order),
                compute: self.compute,
                seed: self.seed.wrapping_add(number),
            };
            let column = columns[whose];
            let zone = self.zone();
            let (got, counted) = zone.run(column, &load, Timing::Off)?;
            let (_, timed) = zone.run(column, &load, Timing::On)?;
            step();
            Ok(Taken {
                got,
                counted,
                timed,
            })
        })
    }

    const fn zone(&self) -> Zone2007 {
        Zone2007 {
            frames: self.memory / FRAME_BYTES,
            lists: ListSizes {
                batch: self.batch,
                high: self.high(),
            },
        }
    }

    /// The rows of one number of threads.
    fn push(
        &self,
        results: &mut Results,
        columns: &[Column],
        threads: usize,
        taken: &[Vec<Taken>],
    ) -> anyhow::Result<()> {
        let workload = self.name(threads);
        // Every burst takes its pages and its block, and the warm-up counts.
        let bursts = (self.bursts + self.bursts / 8 + 1) as f64;
        let pages = bursts * threads as f64 * (self.burst + (1 << self.order)) as f64;
        let per_burst = 1e6 / self.bursts as f64;
        for (metric, value) in metrics(per_burst, pages) {
            for (&column, taken) in columns.iter().zip(taken) {
                let samples = taken.iter().map(&value).collect();
                let row = Row::new(column.name(), &workload, metric, samples)?;
                results.push(row.timed())?;
            }
        }
        Ok(())
    }

    /// The workload's name, with those options that differ from the defaults.
    fn name(&self, threads: usize) -> String {
        let mut name = format!("bursts-{} threads-{threads}", self.burst);
        for (option, value, default) in [
            ("batch", self.batch, Zone2007::BATCH),
            ("high", self.high(), 6 * self.batch),
            (
                "order",
                usize::from(self.order),
                usize::from(USUAL.order.get()),
            ),
            ("compute", self.compute, USUAL.compute),
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

/// A zone below this has not one block of the highest order for each of a few threads.
const LEAST_MEMORY: usize = 16 << 20;

/// 1, 2, 4 … and at last `most`.
fn numbers_up_to(most: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|shift| 1 << shift);
    powers
        .take_while(move |&power| power < most)
        .chain(core::iter::once(most))
}

/// How a sample of a metric comes of what a turn gave.
type Value = Box<dyn Fn(&Taken) -> f64>;

/// The metrics in the order of their lines: the time, then what explains it.
fn metrics(us_per_burst: f64, pages: f64) -> Vec<(Metric<'static>, Value)> {
    let metric = |name, unit, better| Metric { name, unit, better };
    let (lower, higher) = (Better::Lower, Better::Higher);
    let time = move |taken: &Taken| taken.got.wall.as_secs_f64() * us_per_burst;
    let holds = move |taken: &Taken| taken.timed.hold.moments.n as f64 / pages;
    let mut metrics: Vec<(Metric<'static>, Value)> = vec![
        (TIME, Box::new(time)),
        (metric("holds", "times/page", lower), Box::new(holds)),
    ];
    let wait = |taken: &Taken| taken.timed.wait;
    let hold = |taken: &Taken| taken.timed.hold;
    for (names, of) in [
        (
            ["wait-p50", "wait-p99", "wait-p99.9"],
            wait as fn(&Taken) -> LockReading,
        ),
        (["hold-p50", "hold-p99", "hold-p99.9"], hold),
    ] {
        for (name, percent) in names.into_iter().zip([50.0, 99.0, 99.9]) {
            let value = move |taken: &Taken| of(taken).histogram.percentile(percent) as f64;
            metrics.push((metric(name, "ns", lower), Box::new(value)));
        }
    }
    type Of = fn(&Taken) -> f64;
    let bulks: [(Metric<'_>, Of); 8] = [
        (metric("taken", "pages/bulk", higher), |taken| {
            taken.counted.taken.count.mean()
        }),
        (metric("taken-deviation", "pages/bulk", lower), |taken| {
            taken.counted.taken.count.deviation()
        }),
        (metric("taken-order", "order", lower), |taken| {
            taken.counted.taken.order.mean()
        }),
        (metric("taken-order-deviation", "order", lower), |taken| {
            taken.counted.taken.order.deviation()
        }),
        (metric("given", "pages/bulk", higher), |taken| {
            taken.counted.given.count.mean()
        }),
        (metric("given-deviation", "pages/bulk", lower), |taken| {
            taken.counted.given.count.deviation()
        }),
        (metric("given-order", "order", lower), |taken| {
            taken.counted.given.order.mean()
        }),
        (metric("given-order-deviation", "order", lower), |taken| {
            taken.counted.given.order.deviation()
        }),
    ];
    for (metric, of) in bulks {
        metrics.push((metric, Box::new(of)));
    }
    let fairness = |taken: &Taken| taken.got.fairness;
    metrics.push((metric("fairness", "of 1", higher), Box::new(fairness)));
    metrics
}

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
