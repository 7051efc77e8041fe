//! The platform of a process: each thread is a CPU, there are no interrupts, and waiting threads
//! let others run, and then sleep for moments.
//!
//! This is the one place where threads are numbered; [`ThreadRows`](crate::rows::ThreadRows) use
//! the same numbers. Nothing here allocates or takes a lock.
//!
//! Invariant `number-of-one`: a number's slots, and its row, are used by the thread that took the
//! number, from then until it gives it back. While no thread has the number, they are used by one
//! visitor, which goes by that number meanwhile. Both are a bit that is set by acquiring and
//! cleared by releasing. So all that was done with a slot before is visible to the next holder of
//! its number.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use brickyard::Platform;

use crate::errno::keeping_errno;
use crate::thread_local::{self, UNKNOWN};

/// Threads as CPUs. Numbers are counted over the whole process, from 0. A thread gets the lowest
/// free one when it first asks, and keeps it until it ends.
///
/// So a thread never leaves its "CPU", and pinning and masking cost nothing. A zone planned for as
/// many CPUs as threads run at a time serves each from a slot of its own. Threads with higher
/// numbers go straight to the store. So do threads that have no number because [`Threads::MOST`]
/// others have one. Asking for the number costs a read of thread-local memory and a comparison.
///
/// **When a thread ends**, its number is free again, and what its slots hold stays there: the next
/// thread with this number finds it. Until there is one, a caller that may sleep and finds nothing
/// elsewhere empties the slot, since [`Platform::run_on`] runs work on the calling thread for a
/// number that no thread has. Only what lies in the exclusive slot of a thread that *still runs*
/// cannot be fetched by others. Use shared slots where that matters, or let threads drain before
/// they rest. A thread has ended when it is joined; the end of a [`thread::scope`] alone may come a
/// little earlier. A thread that allocates or frees in the last of its destructors may have given
/// its number back already: it goes straight to the store.
///
/// A thread waits by spinning a little and then letting others run. So a fair lock with more
/// threads than cores still makes progress. The clock counts nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

const WORDS: usize = Threads::MOST / 64;

/// A bit per number: a thread has it, or it is visited.
static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// A bit per number: a visitor is there, or checks whether it can be.
static VISITED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Numbers below this have been had by a thread at some time.
static HAD: AtomicUsize = AtomicUsize::new(0);

/// The number of a thread that has none, since all are taken or it is ending. No CPU has it, and so
/// no slot.
const NONE: usize = usize::MAX - 1;

const fn place(number: usize) -> (usize, u64) {
    (number / 64, 1 << (number % 64))
}

/// Takes the lowest free number.
fn take() -> Option<usize> {
    for (index, word) in TAKEN.iter().enumerate() {
        // Relaxed: a first guess.
        let mut seen = word.load(Ordering::Relaxed);
        while seen != u64::MAX {
            let bit = 1 << seen.trailing_ones();
            // Acquire: pairs with the release of `give` by the last holder of the number.
            seen = word.fetch_or(bit, Ordering::Acquire);
            if seen & bit == 0 {
                let number = index * 64 + bit.trailing_zeros() as usize;
                // Relaxed: a caller that wants what is in its slots knows of the thread.
                HAD.fetch_max(number + 1, Ordering::Relaxed);
                return Some(number);
            }
        }
    }
    None
}

fn give(number: usize) {
    let (word, bit) = place(number);
    // Release: pairs with the acquire of the next holder of the number.
    TAKEN[word].fetch_and(!bit, Ordering::Release);
}

#[cold]
fn first_use() -> usize {
    // First, since what follows may allocate and come here again.
    let known = thread_local::go_by(NONE);
    if known != UNKNOWN {
        // A signal handler has asked since the caller looked. A second number would lose the first.
        thread_local::go_by(known);
        return known;
    }
    if thread_local::tell_the_end(ended)
        && let Some(number) = take()
    {
        thread_local::go_by(number);
    }
    thread_local::number()
}

/// Called when the calling thread ends.
unsafe extern "C" fn ended(_: *mut c_void) {
    // What it still allocates or frees goes straight to the store.
    let number = thread_local::go_by(NONE);
    if number < NONE {
        give(number);
    }
}

/// A visit takes microseconds. A visitor that waits longer than this for another one gives up.
const WAIT_NANOSECONDS_MAX: u64 = 1_000_000_000;

/// The number of spins before a waiting thread lets others run.
const SPINS_BEFORE_YIELD: u32 = 64;

/// The number of spins before it sleeps instead: a thread of real time that yields lets only those
/// of its own priority run, and who holds what it waits for may be none.
const SPINS_BEFORE_SLEEP: u32 = 16 * SPINS_BEFORE_YIELD;

/// How long it sleeps.
const SLEEP_NANOSECONDS: i64 = 50_000;

/// Sleeps for a moment, by a call that the C library makes for every lock: where calls are
/// filtered, it is allowed.
#[cold]
fn sleep() {
    static NOTHING: AtomicU32 = AtomicU32::new(0);
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: SLEEP_NANOSECONDS as _,
    };
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word that is always there and always 0, which nobody wakes, and a time that lives
    // through the call.
    keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_futex, NOTHING.as_ptr(), wait, 0, &raw const time)
    });
}

/// The caller's turn to check whether a number can be visited, as long as this lives.
struct VisitorTurn {
    number: usize,
}

impl VisitorTurn {
    /// Takes the turn. `None` if another visitor does not end in time.
    fn at(number: usize) -> Option<Self> {
        let (word, bit) = place(number);
        let mut begun = None;
        // Acquire: pairs with the release in `drop` of the visitor before.
        while VISITED[word].fetch_or(bit, Ordering::Acquire) & bit != 0 {
            // It does not give up at once: the other visitor may fetch just what the caller looks
            // for.
            let now = Threads.ticks();
            if now.saturating_sub(*begun.get_or_insert(now)) >= WAIT_NANOSECONDS_MAX {
                return None;
            }
            Threads.relax();
        }
        Some(Self { number })
    }
}

impl Drop for VisitorTurn {
    fn drop(&mut self) {
        let (word, bit) = place(self.number);
        // Release: pairs with the acquire of the next visitor.
        VISITED[word].fetch_and(!bit, Ordering::Release);
    }
}

/// The calling thread goes by a number that no thread has, as long as this lives.
struct Visit {
    turn: VisitorTurn,
    /// The number that it went by before.
    own: usize,
}

impl Visit {
    /// Begins a visit. `None` if a thread has the number.
    fn begin(turn: VisitorTurn) -> Option<Self> {
        let (word, bit) = place(turn.number);
        // Acquire: as in `take`.
        if TAKEN[word].fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return None;
        }
        let own = thread_local::go_by(turn.number);
        Some(Self { turn, own })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        thread_local::go_by(self.own);
        give(self.turn.number);
    }
}

impl Threads {
    /// The most threads that have a number at a time.
    pub const MOST: usize = 8192;

    /// Frees all numbers but the caller's own. Called in a child process, just after `fork`.
    ///
    /// # Safety
    /// The calling thread is the only one of its process. Nobody goes on to use what other threads
    /// may have left half done: rows are consistent at any moment, slots of a zone are not.
    pub unsafe fn forget_others(self) {
        let own = thread_local::number();
        for index in 0..WORDS {
            let (word, bit) = place(own);
            let kept = if word == index { bit } else { 0 };
            // Relaxed: there is no other thread.
            TAKEN[index].store(kept, Ordering::Relaxed);
            VISITED[index].store(0, Ordering::Relaxed);
        }
    }
}

impl Platform for Threads {
    #[inline]
    fn cpu(&self) -> usize {
        match thread_local::number() {
            UNKNOWN => first_use(),
            number => number,
        }
    }

    fn relax(&self) {
        thread_local::spins(|spins| {
            let spun = spins.get() + 1;
            spins.set(spun);
            if !spun.is_multiple_of(SPINS_BEFORE_YIELD) {
                core::hint::spin_loop();
            } else if spun < SPINS_BEFORE_SLEEP {
                keeping_errno(thread::yield_now);
            } else {
                spins.set(0);
                sleep();
            }
        });
    }

    /// Runs `work` on the calling thread if `cpu` is the caller's own number or one that no thread
    /// has. The caller goes by that number meanwhile, and no thread gets it (new ones get a higher
    /// one, and keep it).
    ///
    /// Returns false for the number of another thread; for one that no thread ever had, whose slots
    /// are empty; and for one that others visit for a whole second: a visitor is stuck there, or
    /// waits for what the caller holds. `work` may panic, and must not fork.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        // First of all, since `work` may ask for it: a number taken in there would be lost.
        let own = self.cpu();
        // Relaxed: as in `take`.
        if cpu >= HAD.load(Ordering::Relaxed) {
            return false;
        }
        let _visit = if own == cpu {
            None
        } else {
            match VisitorTurn::at(cpu).and_then(Visit::begin) {
                None => return false,
                visit => visit,
            }
        };
        work();
        true
    }

    fn ticks(&self) -> u64 {
        thread_local::nanoseconds()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use core::cell::Cell;
    use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Numbers belong to the process, so one test runs at a time.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
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
    fn who_asks_in_the_middle_of_asking_loses_no_number() {
        let _alone = alone();
        let asks = || {
            // As a handler does between the check of the code that it interrupted and what follows.
            let handlers = Threads.cpu();
            [handlers, first_use(), Threads.cpu()]
        };
        let [handlers, own, later] = thread::spawn(asks).join().unwrap();
        assert_eq!([own, later], [handlers; 2]);
        assert!(Threads.run_on(handlers, &mut || ()), "lost with its thread");
    }

    #[test]
    fn a_number_more_than_there_are_is_none() {
        let _alone = alone();
        let mine = Threads.cpu();
        let mut taken = Vec::new();
        // Threads of tests before may be ending, and give their numbers back meanwhile.
        let none = (0..100).any(|_| {
            taken.extend(core::iter::from_fn(take));
            let other = thread::spawn(|| [Threads.cpu(), Threads.cpu()]);
            other.join().unwrap() == [NONE; 2]
        });
        taken.iter().for_each(|&number| give(number));
        assert!(none, "a thread got a number that there is not");
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "one was had twice");
        assert!(!taken.contains(&mine) && taken.last() < Some(&Threads::MOST));
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
            // Set before the number is drawn, so dropped after it is given back, or before: both
            // are sound.
            LATE.set(Some(AtTheEnd(to)));
            Threads.cpu()
        })
        .join()
        .unwrap();
        let late = from.recv().unwrap();
        assert!(late == NONE || late < 1 << 20, "{late}");
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
            assert_eq!(Threads.cpu(), ended);
            assert!(!fresh().contains(&ended));
        }));
        assert!(fresh().contains(&ended));
        assert_eq!((runs, Threads.cpu()), (2, mine));

        for never in [Threads::MOST, 1 << 40, NONE, UNKNOWN] {
            assert!(!Threads.run_on(never, &mut || runs += 1));
        }
        assert_eq!(runs, 2);
    }

    #[test]
    fn visits_to_one_number_are_one_after_the_other() {
        let _alone = alone();
        let (ended, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let barrier = Barrier::new(4);
        let visit = || {
            // All visitors have numbers of their own before there is a number without a thread.
            let _own = Threads.cpu();
            barrier.wait();
            barrier.wait();
            for _ in 0..1000 {
                assert!(Threads.run_on(ended.load(Ordering::Relaxed), &mut || {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                }));
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(visit)).collect();
            barrier.wait();
            let number = thread::spawn(|| Threads.cpu()).join().unwrap();
            ended.store(number, Ordering::Relaxed);
            barrier.wait();
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
    }
}
