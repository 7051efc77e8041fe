//! Many seeds on several threads of the host, and the first that fails.
//!
//! Threads draw seeds in rising order. Once one has failed, no later one begins, and all earlier
//! ones are run to their end. So the seed that is reported is the lowest that fails, whichever
//! thread was faster.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Case;
use super::covered::Covered;
use super::log::Log;
use super::shrink::{Shrunk, shrink};
use super::system::{Fault, System};

/// Which cases are run, and how.
#[derive(Clone)]
pub struct SeedPlan<'p> {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Threads of the host, at least 1.
    pub threads: usize,
    /// Returns the case of a seed.
    pub case: &'p (dyn Fn(u64) -> Case + Sync),
    /// Called after each run, with the number of runs so far.
    pub progress: &'p (dyn Fn(u64) + Sync),
    /// Called before each run; returns true to end the exploration.
    pub stop: &'p (dyn Fn() -> bool + Sync),
}

impl<'p> SeedPlan<'p> {
    /// These seeds on one thread, each with the case that it chooses.
    #[must_use]
    pub fn new(seeds: Range<u64>) -> Self {
        Self {
            seeds,
            threads: 1,
            case: &Case::of,
            progress: &|_| {},
            stop: &|| false,
        }
    }
}

impl core::fmt::Debug for SeedPlan<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SeedPlan")
            .field("seeds", &self.seeds)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// The result of an exploration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explored {
    /// Cases run.
    pub runs: u64,
    /// What happened in those that did not fail.
    pub covered: Covered,
    /// The lowest seed that failed.
    pub failed: Option<Failed>,
}

/// A case that fails, and a smaller one that fails in the same way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failed {
    /// The case as it was found.
    pub case: Case,
    /// How it failed.
    pub fault: Fault,
    /// The smaller one.
    pub shrunk: Shrunk,
}

/// Runs `system` on the cases of `plan` until one fails. Costs some 10 ms of CPU time per seed, and
/// a few hundred more runs to shrink a case that fails.
pub fn explore(system: &impl System, plan: &SeedPlan<'_>) -> Explored {
    let next = AtomicU64::new(plan.seeds.start);
    let runs = AtomicU64::new(0);
    let first: Mutex<Option<(u64, Fault)>> = Mutex::new(None);
    let covered = Mutex::new(Covered::default());
    // Relaxed throughout: these are only numbers; the locks publish the rest.
    let worker = || {
        let mut sum = Covered::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let failed = first.lock().unwrap_or_else(PoisonError::into_inner);
            let is_late = failed.as_ref().is_some_and(|(first, _)| seed > *first);
            drop(failed);
            if seed >= plan.seeds.end || is_late || (plan.stop)() {
                break;
            }
            let outcome = system.run(&(plan.case)(seed), &Log::new());
            (plan.progress)(runs.fetch_add(1, Ordering::Relaxed) + 1);
            match outcome {
                Ok(covered) => sum.add(&covered),
                Err(fault) => {
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.as_ref().is_none_or(|(first, _)| seed < *first) {
                        *first = Some((seed, fault));
                    }
                }
            }
        }
        covered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(&sum);
    };
    thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(worker);
        }
    });
    let failed = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Explored {
        runs: runs.into_inner(),
        covered: covered.into_inner().unwrap_or_else(PoisonError::into_inner),
        failed: failed.map(|(seed, fault)| {
            let case = (plan.case)(seed);
            Failed {
                case,
                shrunk: shrink(system, &case, &fault, plan.stop),
                fault,
            }
        }),
    }
}
