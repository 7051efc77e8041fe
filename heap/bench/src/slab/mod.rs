//! `slab`: heaps for small objects, ours and others, in one run.
//!
//! | file | contents |
//! |---|---|
//! | `work.rs` | the workloads, their metrics, the names of their rows |
//! | `contestant.rs` | what can be compared, by name |
//! | `baseline.rs`, `preload.rs` | two yardsticks; libraries found on this machine |
//! | `local.rs`, `remote.rs`, `swap.rs` | workloads that measure time, beside those of `brickyard-measure` |
//! | `producers.rs`, `refill.rs`, `giveback.rs` | workloads that measure memory |
//! | `hits.rs`, `instructions.rs` | instructions of a hit, counted by valgrind |
//! | `ring.rs`, `cpu_distance.rs` | passing objects between threads, and how far apart these are |
//! | `turn.rs`, `mark.rs` | a turn, in a process of its own, and how that reports its state |
//! | `process.rs` | starting that process, and measuring its resident memory |
//! | `results.rs` | the rows |
//!
//! Each turn is a process of its own, and the contestants take turns at each workload. A turn warms
//! up before it measures, and takes the median of five repeats; a row has a sample per round.

#[allow(unsafe_code, reason = "it allocates memory")]
pub mod baseline;
pub mod contestant;
mod cpu_distance;
#[allow(unsafe_code, reason = "it frees objects")]
mod giveback;
#[allow(unsafe_code, reason = "it frees objects")]
mod hits;
pub mod instructions;
#[allow(unsafe_code, reason = "it frees objects")]
mod local;
mod mark;
pub mod preload;
mod process;
#[allow(unsafe_code, reason = "it frees objects")]
mod producers;
#[allow(unsafe_code, reason = "it frees objects")]
mod refill;
#[allow(unsafe_code, reason = "it frees objects")]
mod remote;
mod results;
#[allow(unsafe_code, reason = "it passes objects as addresses")]
mod ring;
#[allow(unsafe_code, reason = "it passes objects as addresses")]
mod swap;
pub mod turn;
pub mod work;

use core::cell::RefCell;
use core::time::Duration;

use brickyard_results::Results;

use brickyard_measure::turns::{Round, Turns};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;
use contestant::Contestant;
use results::TurnResult;
use work::SlabWork;

/// The time of a sample while warming up, in microseconds.
const WARM_UP_US: u64 = 1000;

/// What is measured, at what workloads, and how often.
#[derive(Debug)]
pub struct Slab<'a> {
    /// The columns.
    pub contestants: &'a [Contestant],
    /// The rows.
    pub works: &'a [SlabWork],
    /// How long `giveback` leaves the process idle, for memory to be returned.
    pub rest: Duration,
    /// Samples of each row.
    pub samples: usize,
}

impl Slab<'_> {
    /// Measures, and returns the results as rows, and how many rows are missing because a
    /// contestant failed.
    ///
    /// # Errors
    /// The run is interrupted before the first round is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<(Results, usize)> {
        let mut taken = Vec::new();
        let mut failed = 0;
        for work in self.works {
            match self.measure(work, progress, &mut failed) {
                Ok(of_work) => taken.push(of_work),
                // The rows measured before are kept.
                Err(_) if interrupt::asked() && !taken.is_empty() => break,
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        let results = results::results(self.contestants, self.works, &taken)?;
        Ok((results, failed))
    }

    /// Returns the results of every turn at one workload: a vector for each contestant, with an
    /// entry per round, `None` where it takes no part. A contestant that fails is reported,
    /// counted, and not tried again.
    fn measure(
        &self,
        work: &SlabWork,
        progress: &dyn Progress,
        failed: &mut usize,
    ) -> anyhow::Result<Vec<Vec<Option<TurnResult>>>> {
        let names: Vec<&str> = self
            .contestants
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            lasting: Duration::ZERO,
            steps: 1,
            progress,
        };
        let failing = RefCell::new(Vec::new());
        let taken = turns.take(|whose, round, step| {
            let contestant = &self.contestants[whose];
            let is_out = !contestant.takes_part_in(work.workload);
            let measured = if is_out || failing.borrow().contains(&whose) {
                Ok(None)
            } else {
                self.turn(contestant, work, round)
            };
            step();
            Ok(measured.unwrap_or_else(|error| {
                if !interrupt::asked() {
                    failing.borrow_mut().push(whose);
                    progress.warn(&format!("{}, {work}: {error:#}", contestant.name));
                }
                None
            }))
        });
        *failed += failing.borrow().len();
        taken
    }

    fn turn(
        &self,
        contestant: &Contestant,
        work: &SlabWork,
        round: Round,
    ) -> anyhow::Result<Option<TurnResult>> {
        // Turns share nothing that could be warmed up, except the files of the program and its
        // libraries. Memory workloads do not need even that.
        let sample_us = match round {
            Round::WarmUp if work.workload.is_about_memory() => return Ok(None),
            Round::WarmUp => work.sample_us.min(WARM_UP_US),
            Round::Measured(_) => work.sample_us,
        };
        let work = SlabWork { sample_us, ..*work };
        let output = process::run(contestant, &work, self.rest)?;
        Ok(Some(TurnResult::of(work.workload, &output)))
    }
}
