//! The page allocator's part of page faults, with threads of this host. Each round is a cell: every
//! configuration has a turn in it with each number of threads, and the two of the document another
//! one, in which masks of interrupts cost nothing.

use crate::raw::Raw;

use brickyard_bench::faults::Faults;
use brickyard_bench::pft::turn;
use brickyard_measure::memory::Memory;

use super::{FAULTS_CPU, FAULTS_SEC};
use crate::cell::Cell;
use crate::cells::configs::{MaskedConfiguration, OF_2013};
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// The memory that pages are allocated from, all of it resident: less than in `brickyard bench
/// pft`, so that a round is short.
const MEMORY: usize = 128 << 20;

/// How often a turn allocates and frees three quarters of it.
const PASSES: usize = 8;

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "pft.host.threads",
        quick: MIN_ROUNDS,
        seconds: 1.2,
        work: rows,
    };
    timed.cells()
}

fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let memory = Memory::new(MEMORY)?;
    let mut rows = Vec::new();
    for threads in THREADS {
        let faults = Faults {
            memory: &memory,
            threads,
            pages: memory.frames().len() / 4 * 3,
            passes: PASSES,
        };
        let workload = format!("threads-{threads}");
        let compared = MaskedConfiguration::each(&OF_2013);
        let spent = round.turns(&workload, 1, &compared, |config| {
            turn(config.configuration, config.masking, faults)
        })?;
        for (config, spent) in spent {
            let workload = config.workload(&workload);
            let template = round.template(&workload, config.configuration.name());
            rows.push(template.row(&FAULTS_CPU, spent.faults_per_cpu_second()));
            rows.push(template.row(&FAULTS_SEC, spent.faults_per_second()));
        }
    }
    Ok(rows)
}
