//! Page faults with threads of this host, as far as the page allocator goes. Each round is a cell: every configuration has a turn in it at each number of threads.

use anyhow::bail;
use brickyard::Configuration;
use brickyard_reproduce::raw::{Kind, Raw};

use super::{FAULTS_CPU, FAULTS_SEC};
use crate::bench::faults::Faults;
use crate::bench::pft::{real_memory, turn};
use crate::reproduce::cell::{Cell, Context, Scale};
use crate::reproduce::cells::rows::{HOST, Of};

/// Who is compared, the baseline of 2013 first.
const CONFIGURATIONS: [Configuration; 4] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Vanilla,
    Configuration::Brickyard,
];

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// Rounds, and how many of them are quick: what a signed-rank test needs to say something.
const ROUNDS: u32 = 15;
const QUICK_ROUNDS: u32 = 6;

/// The memory that pages are taken from, all of it real: less than `brickyard bench pft` has, so that a round is short.
const MEMORY: usize = 128 << 20;

/// How often a turn takes and gives back three quarters of it.
const PASSES: usize = 8;

pub(super) fn cells() -> Vec<Cell> {
    (1..=ROUNDS).map(cell).collect()
}

fn cell(round: u32) -> Cell {
    Cell {
        name: format!("pft.host.threads.{round}"),
        kind: Kind::Timed,
        scale: if round <= QUICK_ROUNDS {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds: 0.7,
        work: Box::new(move |context| Ok(rows(context, round)?.into())),
    }
}

fn rows(mut context: Context<'_>, round: u32) -> anyhow::Result<Vec<Raw>> {
    let arena = real_memory(MEMORY)?;
    let mut rows = Vec::new();
    for threads in THREADS {
        let faults = Faults {
            arena: &arena,
            threads,
            pages: arena.frames().len() / 4 * 3,
            passes: PASSES,
        };
        let warm_up = Faults {
            passes: 1,
            ..faults
        };
        turn(CONFIGURATIONS[0], warm_up)?;
        for place in 0..CONFIGURATIONS.len() {
            if !context.follow.goes_on(0) {
                bail!("interrupted");
            }
            let configuration = CONFIGURATIONS[(place + round as usize) % CONFIGURATIONS.len()];
            let spent = turn(configuration, faults)?;
            let of = Of {
                machine: HOST,
                workload: &format!("threads-{threads}"),
                config: configuration.name(),
                run: round,
            };
            rows.push(of.row(&FAULTS_CPU, spent.faults_per_cpu_second()));
            rows.push(of.row(&FAULTS_SEC, spent.faults_per_second()));
        }
    }
    Ok(rows)
}
