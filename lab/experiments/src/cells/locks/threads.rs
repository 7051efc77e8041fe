//! The five columns with real threads of this host, under the default load of `brickyard bench
//! locks`. Each round is a cell.

use brickyard_designs::classics::bulk::Timing;
use brickyard_report::Metric;
use brickyard_simulate::locks::Column;

use crate::raw::Raw;

use crate::cell::Cell;
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};
use brickyard_bench::bursts::{Load, USUAL};
use brickyard_bench::zone2007::Zone2007;

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// Bursts of a thread in a run: fewer than in `bench locks`, so that a round is short. The time is
/// given per burst.
const BURSTS: u64 = 400;

const TIME: Metric<'static> = Metric::lower("time", "us/burst");

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
