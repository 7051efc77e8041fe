//! Threads as the CPUs of a zone, for measurements and tests in a process.
//!
//! Invariant `cpu-of-one-thread`: a number is `THREAD` from when a thread takes it until it ends,
//! or `VISIT` while another thread runs work for it. Both are set by acquiring, and left by
//! releasing. So a CPU's slots are used by one thread at a time, and all that was done with a slot
//! before is visible to the next who has its number.

use core::cell::Cell;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard::Platform;
use rustix::time::{ClockId, clock_gettime};

use crate::own_number::{self, UNKNOWN};

/// Threads as CPUs. A thread has the lowest free number from its first use of it until it ends,
/// when it is joined. Waiting threads spin a little and then let others run. The clock counts
/// nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

/// The most threads that have a number at a time.
const MOST: usize = 1024;

/// Who uses a number.
const NOBODY: u8 = 0;
const THREAD: u8 = 1;
const VISIT: u8 = 2;

static USES: [AtomicU8; MOST] = [const { AtomicU8::new(NOBODY) }; MOST];

/// Numbers below this have been had by a thread at some time.
static HAD: AtomicUsize = AtomicUsize::new(0);

/// The number of a thread that has none, since all are taken or it is ending. No CPU has it.
const NONE: usize = usize::MAX - 1;

thread_local! {
    static SPINS: Cell<u32> = const { Cell::new(0) };
    static OWN: Own = Own::take();
}

/// Takes a number that nobody has. Returns who has it otherwise.
fn take(number: usize, by: u8) -> Result<u8, u8> {
    // Acquire: pairs with the release of `give`. Relaxed: nothing was taken.
    USES[number].compare_exchange(NOBODY, by, Ordering::Acquire, Ordering::Relaxed)
}

fn give(number: usize) {
    // Release: pairs with the acquire of `take`.
    USES[number].store(NOBODY, Ordering::Release);
}

/// The number of a thread, until it ends.
#[derive(Debug)]
struct Own(usize);

impl Own {
    fn take() -> Self {
        let number = (0..MOST).find(|&number| take(number, THREAD).is_ok());
        let number = number.unwrap_or(NONE);
        if number != NONE {
            // Relaxed: whoever wants what is in its slots knows of the thread.
            HAD.fetch_max(number + 1, Ordering::Relaxed);
        }
        Self(number)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own_number::set(NONE);
        if self.0 != NONE {
            give(self.0);
        }
    }
}

/// The calling thread goes by another number, as long as this lives.
#[derive(Debug)]
struct Visit {
    number: usize,
    own: usize,
}

impl Drop for Visit {
    fn drop(&mut self) {
        own_number::set(self.own);
        give(self.number);
    }
}

/// A visit takes microseconds. Who waits for longer than this gives up.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often a thread spins before it lets others run.
const SPINS_BEFORE_YIELD: u32 = 64;

#[cold]
fn first_use() -> usize {
    let number = OWN.try_with(|own| own.0).unwrap_or(NONE);
    own_number::set(number);
    number
}

impl Visit {
    /// Begins a visit; `None` if the number is a running thread's, or no thread ever had it.
    fn begin(number: usize, own: usize) -> Option<Self> {
        // Relaxed: as in `Own::take`.
        if number >= HAD.load(Ordering::Relaxed) {
            return None;
        }
        let begun = Instant::now();
        while let Err(by) = take(number, VISIT) {
            // It does not give up at once: the other visitor may fetch just what it looks for.
            if by == THREAD || begun.elapsed() > WAIT_MAX {
                return None;
            }
            Threads.relax();
        }
        own_number::set(number);
        Some(Self { number, own })
    }
}

impl Platform for Threads {
    #[inline]
    fn cpu(&self) -> usize {
        match own_number::get() {
            UNKNOWN => first_use(),
            number => number,
        }
    }

    fn relax(&self) {
        let spun = SPINS.get().wrapping_add(1);
        SPINS.set(spun);
        if spun.is_multiple_of(SPINS_BEFORE_YIELD) {
            thread::yield_now();
        } else {
            core::hint::spin_loop();
        }
    }

    /// Runs `work` on the calling thread if `cpu` is its own number or that of a thread that has
    /// ended; waits for another thread that does the same.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let own = self.cpu();
        let visit = (own != cpu).then(|| Visit::begin(cpu, own));
        if matches!(visit, Some(None)) {
            return false;
        }
        work();
        true
    }

    fn ticks(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Numbers belong to the process, so one test runs at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs as many threads at a time. Returns their numbers.
    fn numbers(threads: usize) -> Vec<usize> {
        let barrier = Barrier::new(threads);
        brickyard_run::together(threads, |_| {
            let number = Threads.cpu();
            barrier.wait();
            number
        })
    }

    #[test]
    fn a_number_is_one_threads_and_is_used_again() {
        let _alone = alone();
        let mine = Threads.cpu();
        let mut all = numbers(3);
        all.sort_unstable();
        let again = {
            let mut again = numbers(3);
            again.sort_unstable();
            again
        };
        assert_eq!(all, again, "the lowest free ones");
        all.dedup();
        assert!(all.len() == 3 && !all.contains(&mine), "{all:?}");
        assert_eq!(Threads.cpu(), mine);
    }

    #[test]
    fn work_runs_here_for_the_own_number_and_for_ended_threads() {
        let _alone = alone();
        let mine = Threads.cpu();
        let mut runs = 0;
        assert!(Threads.run_on(mine, &mut || runs += 1));
        let (to, from) = std::sync::mpsc::channel();
        let barrier = Barrier::new(2);
        let ended = thread::scope(|scope| {
            let (to, barrier) = (to.clone(), &barrier);
            let thread = scope.spawn(move || {
                to.send(Threads.cpu()).unwrap();
                barrier.wait();
            });
            let number = from.recv().unwrap();
            assert!(!Threads.run_on(number, &mut || runs += 1), "it runs");
            barrier.wait();
            thread.join().unwrap();
            number
        });
        assert!(Threads.run_on(ended, &mut || {
            runs += 1;
            assert_eq!(Threads.cpu(), ended);
            assert!(!numbers(16).contains(&ended));
        }));
        assert!(numbers(16).contains(&ended));
        assert!(!Threads.run_on(1 << 40, &mut || runs += 1));
        assert!(!Threads.run_on(NONE, &mut || runs += 1));
        assert_eq!((runs, Threads.cpu()), (2, mine));
    }

    #[test]
    fn visits_to_one_number_are_one_after_the_other() {
        let _alone = alone();
        let (ended, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _own = Threads.cpu();
                    barrier.wait();
                    barrier.wait();
                    for _ in 0..1000 {
                        // Relaxed: the barrier orders it, and the lock the visits.
                        assert!(Threads.run_on(ended.load(Ordering::Relaxed), &mut || {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                            assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                        }));
                    }
                });
            }
            barrier.wait();
            let number = thread::spawn(|| Threads.cpu()).join().unwrap();
            ended.store(number, Ordering::Relaxed);
            barrier.wait();
        });
    }
}
