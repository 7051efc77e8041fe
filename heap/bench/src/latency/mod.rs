//! `latency`: how long single allocations and frees take under several malloc libraries that
//! are preloaded, in the worst case too.
//!
//! | file | contents |
//! |---|---|
//! | `process.rs` | a turn: a process that runs the load for a given time |
//! | `results.rs` | the rows |
//!
//! The load, and what is timed, are those of `brickyard-heap-loads` (`latency/`). The libraries
//! take turns, in processes of their own; a round is a turn of each.

mod process;
mod results;

use core::time::Duration;
use std::path::PathBuf;

use anyhow::bail;
use brickyard_results::Results;

use crate::programs::library::{Bound, Library};
use crate::programs::process::{Runner, Scratch};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;
use process::ProcessReport;

pub use results::{OPERATIONS, split_workload};

/// What is measured, for how long, and how often.
#[derive(Debug)]
pub struct Latency<'a> {
    /// The columns.
    pub libraries: &'a [Library],
    /// How many threads run the load: a process for each number.
    pub threads: &'a [usize],
    /// How long a process runs the load.
    pub time: Duration,
    /// How many processes of each.
    pub rounds: usize,
    /// The small program with the load: see [`loads_program`](crate::programs::loads_program).
    pub loads: PathBuf,
}

/// The samples of a library with a number of threads: what each of its processes has told.
#[derive(Debug)]
pub(crate) struct LibrarySamples {
    pub(crate) library: usize,
    pub(crate) threads: usize,
    pub(crate) turns: Vec<ProcessReport>,
}

impl Latency<'_> {
    /// Measures, and returns the results as rows, and how many libraries have failed. If it is
    /// interrupted, the rows are of what was done until then, and say so.
    ///
    /// # Errors
    /// A library is not what the load's malloc belongs to; nothing was measured.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<(Results, usize)> {
        let scratch = Scratch::new()?;
        let runner = Runner {
            loads: &self.loads,
            folder: scratch.path(),
            settle: Duration::ZERO,
        };
        let libraries = self.libraries.iter().map(|one| one.bind(&runner));
        let libraries: Vec<Bound> = libraries.collect::<anyhow::Result<_>>()?;
        let mut taken: Vec<LibrarySamples> = Vec::new();
        for &threads in self.threads {
            taken.extend((0..libraries.len()).map(|library| LibrarySamples {
                library,
                threads,
                turns: Vec::new(),
            }));
        }
        let mut failed = vec![false; taken.len()];
        progress.begin((taken.len() * self.rounds) as u64 * process::steps(self.time));
        'rounds: for round in 0..self.rounds {
            for place in 0..taken.len() {
                // The first one changes from round to round.
                let whose = (place + round) % taken.len();
                let of = &mut taken[whose];
                let library = &libraries[of.library];
                progress.at(&format!("{}, threads-{}", library.name, of.threads));
                let turn = if failed[whose] {
                    progress.advance(process::steps(self.time));
                    continue;
                } else {
                    ProcessReport::take(&runner, library, of.threads, self.time, progress)
                };
                match turn {
                    Ok(turn) => of.turns.push(turn),
                    Err(_) if interrupt::asked() => (),
                    Err(error) => {
                        failed[whose] = true;
                        let name = &library.name;
                        progress.warn(&format!("{name}, threads-{}: {error:#}", of.threads));
                    }
                }
                if interrupt::asked() {
                    break 'rounds;
                }
            }
        }
        progress.end();
        let mut results = results::results(&libraries, &taken)?;
        if interrupt::asked() {
            results.mark_interrupted();
            if results.rows().is_empty() {
                bail!("interrupted before anything was measured");
            }
        }
        Ok((results, failed.into_iter().filter(|&failed| failed).count()))
    }
}
