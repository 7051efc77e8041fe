//! Long runs side by side, one a core, with one progress for all. Who asks for an end has them end
//! at their next good place; what is done is kept.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use crate::progress::Progress;
use crate::stop;

/// How far one run is.
#[derive(Debug)]
pub struct Follow<'a> {
    all: &'a dyn Progress,
    seen: u64,
}

impl<'a> Follow<'a> {
    /// One for a part of the run, which shows nothing and may still be told to end.
    #[must_use]
    pub fn quiet(&self) -> Follow<'a> {
        Follow {
            all: self.all,
            seen: u64::MAX,
        }
    }

    /// The run has done `done` of its units. False: it is to end.
    pub fn goes_on(&mut self, done: u64) -> bool {
        self.all.advance(done.saturating_sub(self.seen));
        self.seen = self.seen.max(done);
        !stop::asked()
    }
}

/// How many runs there are at once where nobody says.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, core::num::NonZero::get)
}

/// Runs `work` for each of `runs` places, on as many threads as there are cores but no more than
/// `threads`. What they report to their [`Follow`] goes to `progress`.
pub fn run<T: Send>(
    progress: &dyn Progress,
    runs: usize,
    threads: Option<usize>,
    work: impl Fn(usize, Follow<'_>) -> T + Sync,
) -> Vec<T> {
    let threads = threads.unwrap_or_else(cores).min(runs).max(1);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // Relaxed: a counter alone; the scope's end publishes what is done.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= runs || stop::asked() {
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
