//! `bench slab`: heaps for small objects, ours and other people's, in one run.
//!
//! | file | what it holds |
//! |---|---|
//! | `work.rs` | which workloads there are, what they measure, what a row is called |
//! | `heap.rs`, `objects.rs` | what the loops allocate from, as two traits; objects as the loops have them |
//! | `contestant.rs` | who can be compared, by name |
//! | `ours.rs`, `floor.rs`, `masked.rs`, `preload.rs` | who stands behind those: our heaps, two yardsticks, a heap that masks, libraries found on this machine |
//! | `socket.rs`, `local.rs`, `remote.rs`, `swap.rs`, `tail.rs` | workloads about time |
//! | `producers.rs`, `refill.rs`, `giveback.rs` | workloads about memory |
//! | `hits.rs`, `instructions.rs` | instructions of a hit, counted by valgrind |
//! | `alternating.rs` | how much more one loop takes than another |
//! | `crowd.rs`, `ring.rs`, `link.rs` | threads at the same time, how objects pass between them, how far apart they are |
//! | `turn.rs`, `mark.rs` | a turn, in a process of its own, and how that says where it is |
//! | `process.rs`, `resident.rs` | starting that process, and what it has resident |
//! | `results.rs` | the rows |
//!
//! Each turn is a process of its own, and the contestants take turns at each workload. A turn warms
//! up before it measures, and takes the median of five repeats; a row has a sample a round.

mod alternating;
pub mod contestant;
pub mod crowd;
#[allow(unsafe_code, reason = "it hands out memory")]
pub mod floor;
#[allow(unsafe_code, reason = "it frees objects")]
mod giveback;
#[allow(unsafe_code, reason = "its contract is about memory")]
pub mod heap;
#[allow(unsafe_code, reason = "it frees objects")]
mod hits;
pub mod instructions;
mod link;
#[allow(unsafe_code, reason = "it frees objects")]
mod local;
mod mark;
#[allow(unsafe_code, reason = "it saves the processor's flags")]
mod masked;
#[allow(unsafe_code, reason = "it touches and frees objects")]
pub mod objects;
#[allow(unsafe_code, reason = "it frees objects")]
mod ours;
pub mod preload;
mod process;
#[allow(unsafe_code, reason = "it frees objects")]
mod producers;
#[allow(unsafe_code, reason = "it frees objects")]
mod refill;
#[allow(unsafe_code, reason = "it frees objects")]
mod remote;
pub mod resident;
mod results;
#[allow(unsafe_code, reason = "it hands objects over as addresses")]
mod ring;
#[allow(unsafe_code, reason = "it frees objects")]
pub mod socket;
#[allow(unsafe_code, reason = "it hands objects over as addresses")]
mod swap;
#[allow(
    unsafe_code,
    reason = "it frees objects and reads the time stamp counter"
)]
mod tail;
pub mod turn;
pub mod work;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::HashMap;

use anyhow::Context;
use brickyard_report::Results;

use crate::progress::Progress;
use crate::stop;
use crate::turns::{Round, Turns};
use contestant::Contestant;
use results::Measured;
use work::Work;

/// What is a sample's time while nothing counts, in microseconds.
const WARM_UP_US: u64 = 1000;

/// One turn of a heap of this library or of the system, in a process of its own: what it measured,
/// by name.
///
/// # Errors
/// Where nothing is called so, or its process fails.
pub fn turn(heap: &str, work: &Work) -> anyhow::Result<HashMap<String, f64>> {
    let known =
        contestant::heap(heap, &[]).with_context(|| format!("nothing is called {heap:?}"))?;
    let contestant = Contestant::heap(known.name());
    Ok(process::run(&contestant, work, Duration::ZERO)?.values)
}

/// Who is measured, at what, and how often.
#[derive(Debug)]
pub struct Slab<'a> {
    /// The columns.
    pub contestants: &'a [Contestant],
    /// The rows.
    pub works: &'a [Work],
    /// How long `giveback` waits for memory to come back while nothing of the process runs.
    pub rest: Duration,
    /// Samples of each row.
    pub samples: usize,
}

impl Slab<'_> {
    /// Measures, and makes rows of what came out; and says how many rows are not there because
    /// somebody failed.
    ///
    /// # Errors
    /// Where an end was asked for before the first round was complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<(Results, usize)> {
        let mut taken = Vec::new();
        let mut failed = 0;
        for work in self.works {
            match self.measure(work, progress, &mut failed) {
                Ok(of_work) => taken.push(of_work),
                // What was measured until then is kept.
                Err(_) if stop::asked() && !taken.is_empty() => break,
                Err(error) => return Err(error),
            }
            if stop::asked() {
                break;
            }
        }
        let results = results::results(self.contestants, self.works, &taken)?;
        Ok((results, failed))
    }

    /// What came out of every turn at one workload: a vector for each contestant, with an entry a
    /// round, none where it takes no part. A contestant that fails is told of, counted, and not
    /// tried again.
    fn measure(
        &self,
        work: &Work,
        progress: &dyn Progress,
        failed: &mut usize,
    ) -> anyhow::Result<Vec<Vec<Option<Measured>>>> {
        let names: Vec<&str> = self
            .contestants
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
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
                if !stop::asked() {
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
        work: &Work,
        round: Round,
    ) -> anyhow::Result<Option<Measured>> {
        // Turns share nothing that could be warmed up, but the files of the program and its
        // libraries. Memory needs not even that.
        let sample_us = match round {
            Round::WarmUp if work.workload.is_about_memory() => return Ok(None),
            Round::WarmUp => work.sample_us.min(WARM_UP_US),
            Round::Measured(_) => work.sample_us,
        };
        let work = Work { sample_us, ..*work };
        let said = process::run(contestant, &work, self.rest)?;
        Ok(Some(Measured::of(work.workload, &said)))
    }
}
