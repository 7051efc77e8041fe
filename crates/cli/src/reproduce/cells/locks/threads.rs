//! The five columns with real threads of this host, by the load that `brickyard bench locks` has where nothing else is said. Each round is a cell.

use anyhow::bail;
use brickyard::bulk::Timing;
use brickyard_report::{Better, Metric};
use brickyard_reproduce::raw::{Kind, Raw};

use crate::bench::bursts::{Load, USUAL};
use crate::bench::zone2007::{Column, Zone2007};
use crate::reproduce::cell::{Cell, Context, Scale};
use crate::reproduce::cells::rows::{HOST, Of};

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// Rounds, and how many of them are quick: what a signed-rank test needs to say something.
const ROUNDS: u32 = 15;
const QUICK_ROUNDS: u32 = 6;

/// Bursts of a thread in a run: fewer than `bench locks` has, so that a round is short. The time is told by the burst.
const BURSTS: u64 = 400;

/// Those of a run that only warms up.
const WARM_UP_BURSTS: u64 = 50;

const TIME: Metric<'static> = Metric {
    name: "time",
    unit: "us/burst",
    better: Better::Lower,
};

pub(super) fn cells() -> Vec<Cell> {
    (1..=ROUNDS).map(cell).collect()
}

fn cell(round: u32) -> Cell {
    Cell {
        name: format!("locks.host.bursts.{round}"),
        kind: Kind::Timed,
        scale: if round <= QUICK_ROUNDS {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds: 0.4,
        work: Box::new(move |context| Ok(rows(context, round)?.into())),
    }
}

/// Each column once, at each number of threads; another one begins in each round.
fn rows(mut context: Context<'_>, round: u32) -> anyhow::Result<Vec<Raw>> {
    let zone = Zone2007::usual();
    let columns = Column::ALL;
    let mut rows = Vec::new();
    for threads in THREADS {
        let load = Load {
            threads,
            bursts: BURSTS,
            seed: context.seed_of(round),
            ..USUAL
        };
        let warm_up = Load {
            bursts: WARM_UP_BURSTS,
            ..load
        };
        zone.run(columns[0], &warm_up, Timing::Off)?;
        for turn in 0..columns.len() {
            if !context.follow.goes_on(0) {
                bail!("interrupted");
            }
            let column = columns[(turn + round as usize) % columns.len()];
            let (got, _) = zone.run(column, &load, Timing::Off)?;
            let of = Of {
                machine: HOST,
                workload: &format!("bursts threads-{threads}"),
                config: &column.name(),
                run: round,
            };
            let us = got.wall.as_secs_f64() * 1e6 / load.bursts as f64;
            rows.push(of.row(&TIME, us));
        }
    }
    Ok(rows)
}
