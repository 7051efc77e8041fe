//! The platform of a process: each thread is a CPU, there are no interrupts, waiting threads let others run.

use core::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use brickyard::Platform;

/// Threads as CPUs. Numbers are counted over the whole process, from 0, and used again when a thread ends.
///
/// A thread waits by spinning a little and then letting others run, so that a fair lock with more threads than cores still moves on. The clock counts
/// nanoseconds. Another thread's exclusive slot cannot be entered: [`Platform::run_on`] says no, so pages that lie there are
/// lost to others until the owner drains; take shared slots where that matters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

/// The numbers in use: bit `n % 64` of word `n / 64`.
static IN_USE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

thread_local! {
    // The number, or `usize::MAX` before the first use. Read on every request, so without a destructor.
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    // Gives the number back when the thread ends.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
    // Spins since this thread last let others run.
    static SPINS: Cell<u32> = const { Cell::new(0) };
}

/// The number of a thread that is ending: no CPU has it, so no slot.
const ENDED: usize = usize::MAX - 1;

/// A number that is given back when this is dropped.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        // What this thread still allocates or frees while it ends goes straight to the store.
        NUMBER.set(ENDED);
        let mut words = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        words[self.0 / 64] &= !(1 << (self.0 % 64));
    }
}

#[cold]
fn first_use() -> usize {
    let mut words = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let word = match words.iter().position(|word| *word != u64::MAX) {
        Some(word) => word,
        None => {
            words.push(0);
            words.len() - 1
        }
    };
    let bit = words[word].trailing_ones() as usize;
    words[word] |= 1 << bit;
    let number = word * 64 + bit;
    NUMBER.set(number);
    LEASE.set(Some(Lease(number)));
    number
}

/// Spins before a waiting thread lets others run.
const SPINS_BEFORE_YIELD: u32 = 64;

impl Platform for Threads {
    #[inline]
    fn cpu(&self) -> usize {
        match NUMBER.get() {
            usize::MAX => first_use(),
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

    fn ticks(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_number_is_one_threads_and_is_used_again() {
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
        let before = Threads.ticks();
        Threads.relax();
        assert!(Threads.ticks() >= before);
    }
}
