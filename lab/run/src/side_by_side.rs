//! Long runs in parallel, one per core, with one progress for all. An interrupt ends them at their
//! next safe point; what is done is kept.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use crate::interrupt;
use crate::progress::Progress;

/// The progress of one run.
#[derive(Debug)]
pub struct Follow<'a> {
    all: &'a dyn Progress,
    seen: u64,
}

impl<'a> Follow<'a> {
    /// Returns a `Follow` for a part of the run: it reports no progress, but is still interrupted.
    #[must_use]
    pub fn quiet(&self) -> Follow<'a> {
        Follow {
            all: self.all,
            seen: u64::MAX,
        }
    }

    /// Returns a `Follow` for one more run of the same work: it counts its units from 0.
    #[must_use]
    pub fn another(&self) -> Follow<'a> {
        Follow {
            all: self.all,
            seen: 0,
        }
    }

    /// Reports that the run has done `done` of its units; returns false if it must end.
    pub fn goes_on(&mut self, done: u64) -> bool {
        self.all.advance(done.saturating_sub(self.seen));
        self.seen = self.seen.max(done);
        !interrupt::asked()
    }
}

/// Returns the number of CPUs, the default number of parallel runs.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, core::num::NonZero::get)
}

/// Runs `work` for each number below `runs`, on `threads` threads or as many as there are cores.
/// What the runs report to their [`Follow`] goes to `progress`. Returns the results in order.
pub fn run<T: Send>(
    progress: &dyn Progress,
    runs: usize,
    threads: Option<usize>,
    work: impl Fn(usize, Follow<'_>) -> T + Sync,
) -> Vec<T> {
    run_all(progress, runs, threads, &work)
}

// Not generic in the work: starting threads is much code, and would be compiled for each of them.
fn run_all<T: Send>(
    progress: &dyn Progress,
    runs: usize,
    threads: Option<usize>,
    work: &(dyn Fn(usize, Follow<'_>) -> T + Sync),
) -> Vec<T> {
    let threads = threads.unwrap_or_else(cores).min(runs).max(1);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // Relaxed: only a counter; the end of the scope publishes the results.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= runs || interrupt::asked() {
                        return;
                    }
                    let follow = Follow {
                        all: progress,
                        seen: 0,
                    };
                    let out = work(place, follow);
                    if let Ok(mut done) = done.lock() {
                        done.push((place, out));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|&(place, _)| place);
    done.into_iter().map(|(_, out)| out).collect()
}
