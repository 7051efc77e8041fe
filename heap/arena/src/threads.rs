//! The platform of a process: each thread is a CPU, there are no interrupts, waiting threads let others run.

use core::cell::Cell;
use core::ops::DerefMut;
use core::time::Duration;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use brickyard::Platform;

/// Threads as CPUs. Numbers are counted over the whole process, from 0: a thread gets the lowest free one when it first asks, and keeps it until it
/// ends.
///
/// So a thread never leaves its "CPU", and pinning and masking cost nothing. A zone planned for as many CPUs as threads run at a time serves each
/// from a slot of its own; threads with higher numbers go straight to the store. Asking for the number costs a read of thread-local memory and a
/// comparison.
///
/// **When a thread ends**, its number is free again, and what its slots hold stays there: the next thread with this number finds it. Until there is
/// one, whoever may sleep and finds nothing elsewhere empties the slot, since [`Platform::run_on`] runs work here for a number that no thread has.
/// Only what lies in the exclusive slot of a thread that *still runs* cannot be fetched by others; take shared slots where that matters, or let
/// threads drain before they rest. A thread has ended when it is joined; the end of a [`thread::scope`] alone may come a little earlier. A thread
/// that allocates or frees while its thread-local values are destroyed may have given its number back already: it goes straight to the store.
///
/// A thread waits by spinning a little and then letting others run, so that a fair lock with more threads than cores still moves on. The clock counts
/// nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

/// Which numbers are whose. Invariant `one-owner`: a thread uses a number's slots only between taking and giving back the number, both under this
/// lock; so all that was done with a slot before is visible to whoever takes its number next.
static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
    in_use: Vec::new(),
    visited: Vec::new(),
});

struct Numbers {
    /// The numbers that threads have, and those that are visited: bit `n % 64` of word `n / 64`.
    in_use: Vec<u64>,
    /// Numbers without a thread that another thread uses for a moment.
    visited: Vec<usize>,
}

impl Numbers {
    fn locked() -> impl DerefMut<Target = Self> {
        // No change of the numbers panics midway.
        let guard = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(sanitizer = "thread")]
        let guard = crate::sanitizer::Told::of(guard);
        guard
    }

    fn take_lowest(&mut self) -> usize {
        let free = self.in_use.iter().position(|word| *word != u64::MAX);
        let word = free.unwrap_or_else(|| {
            self.in_use.push(0);
            self.in_use.len() - 1
        });
        let bit = self.in_use[word].trailing_ones() as usize;
        self.in_use[word] |= 1 << bit;
        word * 64 + bit
    }

    fn give_back(&mut self, number: usize) {
        self.in_use[number / 64] &= !(1 << (number % 64));
    }
}

thread_local! {
    // The number, or `UNKNOWN` before the first use. Read on every request, so without a destructor.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    // Gives the number back when the thread ends.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
    // Spins since this thread last let others run.
    static SPINS: Cell<u32> = const { Cell::new(0) };
}

/// The number of a thread that has not asked yet.
const UNKNOWN: usize = usize::MAX;

/// The number of a thread that is ending: no CPU has it, so no slot.
const ENDED: usize = usize::MAX - 1;

/// A number that is given back when this is dropped.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        // What this thread still allocates or frees while it ends goes straight to the store.
        NUMBER.set(ENDED);
        Numbers::locked().give_back(self.0);
    }
}

#[cold]
fn first_use() -> usize {
    let number = Numbers::locked().take_lowest();
    NUMBER.set(number);
    LEASE.set(Some(Lease(number)));
    number
}

/// A number without a thread, kept from all threads as long as this lives.
struct Visit(usize);

/// Whether a number can be visited.
enum Visitable {
    Now(Visit),
    /// Somebody else visits it.
    Later,
    /// A running thread has it, or none ever had.
    Never,
}

impl Visit {
    fn of(number: usize) -> Visitable {
        let mut numbers = Numbers::locked();
        if numbers.visited.contains(&number) {
            return Visitable::Later;
        }
        let bit = 1 << (number % 64);
        match numbers.in_use.get_mut(number / 64) {
            Some(word) if *word & bit == 0 => *word |= bit,
            _ => return Visitable::Never,
        }
        numbers.visited.push(number);
        Visitable::Now(Self(number))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut numbers = Numbers::locked();
        numbers.visited.retain(|&number| number != self.0);
        numbers.give_back(self.0);
    }
}

/// A visit takes microseconds. Whoever waits longer than this for one to end goes without.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Spins before a waiting thread lets others run.
const SPINS_BEFORE_YIELD: u32 = 64;

impl Platform for Threads {
    #[inline]
    fn cpu(&self) -> usize {
        match NUMBER.get() {
            UNKNOWN => first_use(),
            number => number,
        }
    }

    fn relax(&self) {
        let spins = SPINS.get() + 1;
        if spins < SPINS_BEFORE_YIELD {
            SPINS.set(spins);
            core::hint::spin_loop();
        } else {
            SPINS.set(0);
            thread::yield_now();
        }
    }

    /// Runs `work` here if `cpu` is the caller's own number or one whose thread has ended; no new
    /// thread gets the number meanwhile (it gets a higher one, and keeps it). Says no for threads
    /// that run, and for numbers that no thread ever had: their slots are empty; and for a number
    /// that others visit for a second on end: somebody stands still there, or waits for what the
    /// caller has, or is the caller. `work` may panic.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        if NUMBER.get() == cpu && cpu < ENDED {
            work();
            return true;
        }
        let mut begun = None;
        loop {
            match Visit::of(cpu) {
                Visitable::Now(_visit) => {
                    // The lock of the numbers is free again: `work` may wait for a thread that is just asking for one.
                    work();
                    return true;
                }
                // Not "no" at once: what the other visitor fetches may be just what the caller looks for.
                Visitable::Later => {
                    if begun.get_or_insert_with(Instant::now).elapsed() >= WAIT_MAX {
                        return false;
                    }
                    self.relax();
                }
                Visitable::Never => return false,
            }
        }
    }

    fn ticks(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Barrier;

    use super::*;

    /// Numbers are the process's: one test at a time.
    fn alone() -> std::sync::MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_number_is_one_threads_and_is_used_again() {
        let _alone = alone();
        let mine = Threads.cpu();
        assert_eq!(Threads.cpu(), mine);
        let other = thread::spawn(|| Threads.cpu()).join().unwrap();
        assert_ne!(other, mine);
        // The thread has ended: the next one gets the lowest free number again.
        let barrier = Barrier::new(3);
        let number = || {
            let number = Threads.cpu();
            barrier.wait();
            number
        };
        let together: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut distinct = together.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 3, "{together:?}");
        assert!(!together.contains(&mine));
    }

    #[test]
    fn a_thread_that_ends_has_no_slot_any_more() {
        let _alone = alone();
        struct AtTheEnd(std::sync::mpsc::Sender<usize>);
        impl Drop for AtTheEnd {
            fn drop(&mut self) {
                self.0.send(Threads.cpu()).unwrap();
            }
        }
        thread_local!(static LATE: Cell<Option<AtTheEnd>> = const { Cell::new(None) });
        let (to, from) = std::sync::mpsc::channel();
        thread::spawn(move || {
            // Set before the number is drawn, so dropped after it is given back, or before: both are sound.
            LATE.set(Some(AtTheEnd(to)));
            Threads.cpu()
        })
        .join()
        .unwrap();
        let late = from.recv().unwrap();
        assert!(late == ENDED || late < 1 << 20, "{late}");
    }

    #[test]
    fn the_clock_goes_on() {
        let _alone = alone();
        let before = Threads.ticks();
        Threads.relax();
        assert!(Threads.ticks() >= before);
    }

    #[test]
    fn work_runs_here_for_the_own_number_and_for_ended_threads() {
        let _alone = alone();
        let mine = Threads.cpu();
        let mut runs = 0;
        assert!(Threads.run_on(mine, &mut || runs += 1));

        // A running thread has its number to itself.
        let barrier = Barrier::new(2);
        let ended = thread::scope(|scope| {
            let (to, from) = std::sync::mpsc::channel();
            let barrier = &barrier;
            let thread = scope.spawn(move || {
                to.send(Threads.cpu()).unwrap();
                barrier.wait();
            });
            let number = from.recv().unwrap();
            assert!(!Threads.run_on(number, &mut || runs += 1));
            barrier.wait();
            thread.join().unwrap();
            number
        });

        // When it has ended, others can run for it, and no new thread has the number meanwhile.
        let fresh = || {
            let barrier = Barrier::new(16);
            thread::scope(|scope| {
                let number = || {
                    let number = Threads.cpu();
                    barrier.wait();
                    number
                };
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(number)).collect();
                let numbers = threads.into_iter().map(|t| t.join().unwrap());
                numbers.collect::<Vec<_>>()
            })
        };
        assert!(Threads.run_on(ended, &mut || {
            runs += 1;
            assert_eq!(Threads.cpu(), mine);
            assert!(!fresh().contains(&ended));
        }));
        assert!(fresh().contains(&ended));
        assert_eq!(runs, 2);

        for never in [1 << 40, ENDED, UNKNOWN] {
            assert!(!Threads.run_on(never, &mut || runs += 1));
        }
        assert_eq!(runs, 2);
    }

    #[test]
    fn visits_to_one_number_are_one_after_the_other() {
        let _alone = alone();
        let ended = thread::spawn(|| Threads.cpu()).join().unwrap();
        let inside = AtomicUsize::new(0);
        // Visitors need no number themselves, so none of them takes this one.
        let visit = || {
            for _ in 0..1000 {
                assert!(Threads.run_on(ended, &mut || {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                }));
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(visit)).collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
    }
}
