//! The five columns with real threads of this host. Each round is a cell; `bench::bursts` has what
//! the threads do.
//!
//! Every run with other settings than the reproduction's is made twice. The first measures the
//! time, and how much each bulk moved; the second reads the clock at the lock, which makes each
//! hold longer, and measures the times of waiting and holding.

use brickyard::Order;
use brickyard_bench::bursts::{Got, Load, USUAL};
use brickyard_bench::zone2007::Zone2007;
use brickyard_designs::classics::bulk::{BulkReading, LockReading, MeterReading, Timing};
use brickyard_designs::classics::front::ListSizes;
use brickyard_measure::memory::FRAME_BYTES;
use brickyard_results::{Metric, bytes_text, counted};
use brickyard_run::side_by_side::cores;
use brickyard_simulate::locks::Column;

use super::simulated::{COLUMNS, bulk_figures, lists};
use crate::cell::Cell;
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};
use crate::experiment::Parameter;
use crate::raw::Raw;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// Bursts of a thread in a run of the reproduction, so that a round is short. The time is given per
/// burst.
const BURSTS: u64 = 400;

const TIME: Metric<'static> = Metric::lower("time", "us/burst");

/// What can be set on this host.
pub(super) const PARAMETERS: &[Parameter] = &[
    COLUMNS,
    Parameter::new(
        "threads",
        "auto",
        "numbers of threads that run at once; auto: 1, 2, 4 ... and one for each CPU",
    ),
    Parameter::new(
        "batch",
        "7",
        "pages that a per-CPU list fetches and returns at once: of the paper's machine",
    ),
    Parameter::new(
        "high",
        "auto",
        "pages at which a list returns a batch; auto: six batches",
    ),
    Parameter::new("burst", "128", "single pages that a burst allocates"),
    Parameter::new(
        "order",
        "1",
        "order of the one block that a burst allocates besides, 0 to 10",
    ),
    Parameter::new(
        "compute",
        "2000",
        "multiplications between two bursts, on average; about a nanosecond each",
    ),
    Parameter::new("bursts", "1000", "bursts of a thread in a run"),
    Parameter::new(
        "memory",
        "128M",
        "memory of the zone; only its metadata is real",
    ),
];

/// The most computing that still ends in reasonable time.
const MOST_COMPUTE: usize = 1_000_000_000;

/// A smaller zone does not have a block of the highest order for each of a few threads.
const LEAST_MEMORY: usize = 16 << 20;

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "locks.host.bursts",
        quick: MIN_ROUNDS,
        seconds: 0.45,
        work: rows,
    };
    timed.cells()
}

/// Runs each column once with each number of threads.
fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let zone = Zone2007::usual();
    let mut rows = Vec::new();
    for threads in THREADS {
        let load = Load {
            threads,
            bursts: BURSTS,
            seed: round.seed(),
            ..USUAL
        };
        let workload = format!("bursts threads-{threads}");
        let got = round.turns(&workload, 1, &Column::ALL, |column| {
            zone.run(column, &load, Timing::Off)
        })?;
        for (column, (got, _)) in got {
            let us = got.wall.as_secs_f64() * 1e6 / load.bursts as f64;
            rows.push(round.template(&workload, column.name()).row(&TIME, us));
        }
    }
    Ok(rows)
}

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let columns = settings.list::<Column>("columns")?;
    let threads = settings.threads("threads", || numbers_up_to(cores()).collect())?;
    let load = load(settings)?;
    let (batch, high) = lists(settings, Zone2007::BATCH)?;
    let memory = settings.bytes("memory")?;
    let zone = Zone2007 {
        frames: memory / FRAME_BYTES,
        lists: ListSizes { batch, high },
    };
    for &threads in &threads {
        has_room(&zone, &Load { threads, ..load }, memory)?;
    }
    let suffix = settings.suffix(&["batch", "high", "order", "compute", "memory"]);
    let timed = TimedExperiment {
        name: "locks.host.bursts",
        quick: 0,
        seconds: 2.0 * 0.45 / 400.0 * load.bursts as f64,
        work: move |mut round: Round<'_>| {
            let mut rows = Vec::new();
            for &threads in &threads {
                let seed = round.seed();
                let load = Load {
                    threads,
                    seed,
                    ..load
                };
                let workload = format!("bursts-{} threads-{threads}{suffix}", load.pages);
                let taken = round.turns(&workload, 1, &columns, |column| {
                    let (got, counted) = zone.run(column, &load, Timing::Off)?;
                    let (_, timed) = zone.run(column, &load, Timing::On)?;
                    Ok(Taken {
                        got,
                        counted,
                        timed,
                    })
                })?;
                for (column, taken) in taken.in_order_of(&columns) {
                    let template = round.template(&workload, column.name());
                    let figures = taken.figures(&load);
                    rows.extend(figures.map(|(metric, value)| template.row(&metric, value)));
                }
            }
            Ok(rows)
        },
    };
    Ok(timed.rounds(settings.runs))
}

fn load(settings: &Settings<'_>) -> Result<Load, Refusal> {
    let order: u8 = settings.one("order")?;
    if order > 10 {
        return Err(wrong("order", "give one of 0 to 10"));
    }
    let compute = settings.one("compute")?;
    if compute > MOST_COMPUTE {
        return Err(wrong(
            "compute",
            format_args!("it must be at most {MOST_COMPUTE}"),
        ));
    }
    Ok(Load {
        bursts: settings.count("bursts")? as u64,
        pages: settings.count("burst")?,
        order: Order::new(order),
        compute,
        ..USUAL
    })
}

/// Fails if the zone has too little memory for the load.
fn has_room(zone: &Zone2007, load: &Load, memory: usize) -> Result<(), Refusal> {
    // Twice what all threads hold at once, so that blocks of higher order are available too.
    let held = load.pages.saturating_add(zone.lists.high);
    let needed = held
        .saturating_add(load.order.frames())
        .saturating_mul(2 * load.threads)
        .saturating_mul(FRAME_BYTES)
        .checked_next_multiple_of(1 << 20)
        .unwrap_or(usize::MAX)
        .max(LEAST_MEMORY);
    if memory >= needed {
        return Ok(());
    }
    Err(wrong(
        "memory",
        format_args!(
            "{} is too small for {} with such bursts; give at least {}, or a smaller burst",
            bytes_text(memory),
            counted(load.threads, "thread", "threads"),
            bytes_text(needed)
        ),
    ))
}

/// Returns 1, 2, 4 … and finally `most`.
fn numbers_up_to(most: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|shift| 1 << shift);
    powers
        .take_while(move |&power| power < most)
        .chain(core::iter::once(most))
}

/// The result of one turn.
#[derive(Debug, Clone, Copy)]
struct Taken {
    got: Got,
    counted: MeterReading,
    timed: MeterReading,
}

impl Taken {
    /// Returns its figures in the order of their lines: the time, then what explains it.
    fn figures(&self, load: &Load) -> impl Iterator<Item = (Metric<'static>, f64)> {
        let (wait, hold) = (&self.timed.wait, &self.timed.hold);
        let lower = Metric::lower;
        let ns = |name, of: &LockReading, percent| {
            (lower(name, "ns"), of.histogram.percentile(percent) as f64)
        };
        // Every burst allocates its pages and its block; the warm-up is included.
        let bursts = (load.bursts + load.bursts / 8 + 1) as f64;
        let pages = bursts * load.threads as f64 * (load.pages + load.order.frames()) as f64;
        let us = self.got.wall.as_secs_f64() * 1e6 / load.bursts as f64;
        let bulk = |bulk: &BulkReading| {
            [
                bulk.count.mean(),
                bulk.count.deviation(),
                bulk.order.mean(),
                bulk.order.deviation(),
            ]
        };
        let bulks = bulk_figures([&self.counted.taken, &self.counted.given].map(bulk));
        let first = [
            (TIME, us),
            ns("wait-p50", wait, 50.0),
            ns("wait-p99", wait, 99.0),
            ns("wait-p99.9", wait, 99.9),
            ns("hold-p50", hold, 50.0),
            ns("hold-p99", hold, 99.0),
            ns("hold-p99.9", hold, 99.9),
            (lower("holds", "times/page"), hold.moments.n as f64 / pages),
            (Metric::higher("fairness", "of 1"), self.got.fairness),
        ];
        first.into_iter().chain(bulks)
    }
}
