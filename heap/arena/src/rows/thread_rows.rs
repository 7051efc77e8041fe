//! A row a thread, where the system has no restartable sequences.
//!
//! A thread takes the lowest free number when it first misses, and gives it back when it ends, by a destructor of the C library's (`pthread_key_create`): nothing here
//! allocates. Number 0 is nobody's: threads that have no number (yet, or any longer, or because all are taken) find a row in which there is never anything.
//!
//! Invariant `one-owner`: a number's row is used by the thread that took the number, from then until it gives it back; or, while no thread has it, by one visitor.
//! Both are a bit that is set by acquiring and cleared by releasing.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use brickyard::Platform;

use super::area::Stage;
use super::rseq::{keeping_errno, nanoseconds};
use super::{ThreadArea, own_offset};

/// Threads as rows: see [`ThreadRows::ROWS`] for how many.
///
/// As a [`Platform`], a thread's number is its CPU. It waits by spinning and then letting others run. A signal handler that uses a row which its own thread was just using
/// finds it as it was, and what the handler did is lost: as with every allocator, handlers must not allocate here.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRows {
    area: isize,
}

const WORDS: usize = ThreadRows::ROWS / 64;

struct Numbers {
    /// A bit a number: a thread has it, or it is visited.
    taken: [AtomicU64; WORDS],
    /// A bit a number: it is visited.
    visited: [AtomicU64; WORDS],
    /// The key whose destructor gives numbers back, plus 1; 0 before there is one.
    key: AtomicU32,
}

static NUMBERS: Numbers = Numbers {
    taken: [const { AtomicU64::new(0) }; WORDS],
    visited: [const { AtomicU64::new(0) }; WORDS],
    key: AtomicU32::new(0),
};

const fn place(number: usize) -> (usize, u64) {
    (number / 64, 1 << (number % 64))
}

impl Numbers {
    /// The lowest free number; `None` if there is none.
    fn take(&self) -> Option<usize> {
        for (index, word) in self.taken.iter().enumerate() {
            // Number 0 is nobody's.
            let never = u64::from(index == 0);
            // Relaxed: a first guess.
            let mut seen = word.load(Ordering::Relaxed);
            while seen | never != u64::MAX {
                let bit = 1 << (seen | never).trailing_ones();
                // Acquire: pairs with the release of `give` by who had the number before.
                seen = word.fetch_or(bit, Ordering::Acquire);
                if seen & bit == 0 {
                    return Some(index * 64 + bit.trailing_zeros() as usize);
                }
            }
        }
        None
    }

    /// Takes this number, if it is free.
    fn take_exactly(&self, number: usize) -> bool {
        let (word, bit) = place(number);
        // Acquire: as in `take`.
        self.taken[word].fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    fn give(&self, number: usize) {
        let (word, bit) = place(number);
        // Release: pairs with the acquire of whoever takes the number next.
        self.taken[word].fetch_and(!bit, Ordering::Release);
    }

    /// The key, made once. `None` where the process has no key left: threads then go without rows.
    fn key(&self) -> Option<libc::pthread_key_t> {
        // Relaxed, here and below: a number whose meaning the C library guards.
        let known = self.key.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known - 1);
        }
        let mut key = 0;
        // SAFETY: `key` can be written, and `thread_ends` lives as long as the program (a library that holds this code must not be unloaded).
        if unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } != 0 {
            return None;
        }
        let made = self
            .key
            .compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed);
        match made {
            Ok(_) => Some(key),
            Err(other) => {
                // SAFETY: made above, and nobody has been told of it.
                unsafe { libc::pthread_key_delete(key) };
                Some(other - 1)
            }
        }
    }
}

/// Called by the C library at the end of a thread that has a number.
unsafe extern "C" fn thread_ends(_: *mut c_void) {
    let area = ThreadArea::of_this_thread();
    area.stage.set(Stage::Ended);
    let number = area.row.replace(0) as usize;
    if number != 0 {
        NUMBERS.give(number);
    }
}

/// A visit takes microseconds. Whoever waits longer than this for one to end goes without.
const WAIT_NANOSECONDS_MAX: u64 = 1_000_000_000;

/// The caller's turn to look whether a number can be visited, as long as this lives.
struct Turn {
    number: usize,
}

impl Turn {
    /// `None` if another visitor does not end in time.
    fn at(number: usize) -> Option<Self> {
        let (word, bit) = place(number);
        let mut begun = None;
        // Acquire: pairs with the release in `drop`, of the visitor before.
        while NUMBERS.visited[word].fetch_or(bit, Ordering::Acquire) & bit != 0 {
            // Not "no" at once: what the other visitor fetches may be just what the caller looks
            // for.
            let now = nanoseconds();
            if now.saturating_sub(*begun.get_or_insert(now)) >= WAIT_NANOSECONDS_MAX {
                return None;
            }
            ThreadArea::relax();
        }
        Some(Self { number })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (word, bit) = place(self.number);
        // Release: pairs with the acquire of the next visitor.
        NUMBERS.visited[word].fetch_and(!bit, Ordering::Release);
    }
}

/// The calling thread goes by a number that no thread has, as long as this lives: sequences look
/// nowhere else.
struct Visit {
    turn: Turn,
    /// What it went by before.
    own: u32,
}

impl Visit {
    /// `None` if a thread has the number.
    fn begin(turn: Turn) -> Option<Self> {
        if !NUMBERS.take_exactly(turn.number) {
            return None;
        }
        let row = &ThreadArea::of_this_thread().row;
        let own = row.replace(turn.number as u32);
        Some(Self { turn, own })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        ThreadArea::of_this_thread().row.set(self.own);
        NUMBERS.give(self.turn.number);
    }
}

impl ThreadRows {
    /// Rows that there are to be, the empty one included: so many threads less one have one at a time.
    pub const ROWS: usize = 256;

    /// The way for every thread of this process.
    #[must_use]
    pub fn new() -> Self {
        Self { area: own_offset() }
    }

    /// Where the area is, from the thread pointer on: what [`pop`](super::pop) wants to know.
    #[must_use]
    pub const fn area(&self) -> isize {
        self.area
    }

    /// The number of the calling thread, which takes one now if it never did; `None` if it has none.
    pub(crate) fn number(&self) -> Option<usize> {
        let area = ThreadArea::of_this_thread();
        if area.stage.get() == Stage::New {
            self.first_use(area);
        }
        let number = area.row.get() as usize;
        (number != 0).then_some(number)
    }

    #[cold]
    fn first_use(&self, area: &ThreadArea) {
        // First, since what follows may allocate and come here again.
        area.stage.set(Stage::Asked);
        let Some(key) = NUMBERS.key() else {
            return;
        };
        let Some(number) = NUMBERS.take() else {
            return;
        };
        area.row.set(number as u32);
        // Any value but null makes the C library call the destructor.
        let value = core::ptr::without_provenance(number);
        // SAFETY: `key` was made by `pthread_key_create` and is never deleted.
        let kept = keeping_errno(|| unsafe { libc::pthread_setspecific(key, value) });
        if kept != 0 {
            area.row.set(0);
            NUMBERS.give(number);
        }
    }

    /// In a child process, just after `fork`: all numbers but the caller's own are free.
    ///
    /// # Safety
    /// The calling thread is the only one of its process.
    pub unsafe fn forget_other_threads(self) {
        let own = ThreadArea::of_this_thread().row.get() as usize;
        for index in 0..WORDS {
            let (word, bit) = place(own);
            let kept = if own != 0 && word == index { bit } else { 0 };
            // Relaxed: there is no other thread.
            NUMBERS.taken[index].store(kept, Ordering::Relaxed);
            NUMBERS.visited[index].store(0, Ordering::Relaxed);
        }
    }
}

impl Default for ThreadRows {
    fn default() -> Self {
        Self::new()
    }
}

impl Platform for ThreadRows {
    /// The number of the thread; `usize::MAX` if it has none.
    fn cpu(&self) -> usize {
        self.number().unwrap_or(usize::MAX)
    }

    fn relax(&self) {
        ThreadArea::relax();
    }

    /// Runs `work` here, if `cpu` is the caller's own number or one that no thread has. No thread
    /// takes the number meanwhile. False for the number of another thread: only that one reaches
    /// its row; and for a number that others visit for a second on end: somebody stands still
    /// there, or waits for what the caller has. `work` may panic, and must not fork.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        if cpu == 0 || cpu >= Self::ROWS {
            return false;
        }
        // First of all, since `work` may ask for it: a number taken in there would be lost.
        let _ = self.number();
        if ThreadArea::of_this_thread().row.get() as usize == cpu {
            work();
            return true;
        }
        let Some(_visit) = Turn::at(cpu).and_then(Visit::begin) else {
            return false;
        };
        work();
        true
    }

    fn ticks(&self) -> u64 {
        nanoseconds()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn numbers_are_one_threads_and_visited_only_without_one() {
        let rows = ThreadRows::new();
        let mine = rows.number().unwrap();
        assert_eq!(rows.cpu(), mine);
        let barrier = Barrier::new(2);
        let (to, from) = channel();
        thread::scope(|scope| {
            let barrier = &barrier;
            let thread = scope.spawn(move || {
                to.send(ThreadRows::new().number().unwrap()).unwrap();
                barrier.wait();
            });
            let other = from.recv().unwrap();
            assert_ne!(other, mine);
            assert!(!rows.run_on(other, &mut || panic!("its thread runs")));
            barrier.wait();
            thread.join().unwrap();
            // Other tests' threads may have taken it by now.
            let mut seen = None;
            if rows.run_on(other, &mut || seen = rows.number()) {
                assert_eq!(seen, Some(other));
            }
        });
        assert_eq!(rows.number(), Some(mine));
        for never in [0, ThreadRows::ROWS, usize::MAX] {
            assert!(!rows.run_on(never, &mut || panic!("nobody's")));
        }
    }

    #[test]
    fn a_visitor_without_a_number_gets_one_and_keeps_it() {
        let rows = ThreadRows::new();
        let visitor = move || {
            let mut visited = 0;
            for cpu in 1..ThreadRows::ROWS {
                let mut seen = None;
                if rows.run_on(cpu, &mut || seen = rows.number()) {
                    assert_eq!(seen, Some(cpu));
                    visited += 1;
                }
            }
            assert!(visited > 0);
            rows.number()
        };
        // Another test may have all numbers for a moment.
        let found = (0..100).find_map(|_| thread::spawn(visitor).join().unwrap());
        assert!(found.is_some());
    }

    #[test]
    fn more_threads_than_rows_go_without() {
        const THREADS: usize = ThreadRows::ROWS + 8;
        let barrier = Barrier::new(THREADS);
        let numbers: Vec<Option<usize>> = thread::scope(|scope| {
            let number = || {
                let number = ThreadRows::new().number();
                barrier.wait();
                number
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut had: Vec<usize> = numbers.iter().copied().flatten().collect();
        assert!(had.len() < ThreadRows::ROWS && had.len() > ThreadRows::ROWS / 2);
        let count = had.len();
        had.sort_unstable();
        had.dedup();
        assert_eq!(had.len(), count);
        assert!(!had.contains(&0));
    }
}
