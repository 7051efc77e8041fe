//! A row per thread, where the system has no restartable sequences.
//!
//! Rows follow the numbers of [`Threads`]: number *n* has row *n* + 1. Row 0 belongs to nobody and
//! never holds anything. It is used by threads whose number is too high, and by threads that have
//! no number (yet, or any longer, or because all are taken).

use brickyard::Platform;

use crate::Threads;
use crate::thread_local::{ThreadArea, own_offset};

/// Threads as rows: see [`ThreadRows::ROWS`] for how many.
///
/// For this [`Platform`] a thread's row is its CPU, and everything else is that of [`Threads`]. A
/// signal handler that uses a row in the middle of its own thread's use finds it as it was, and
/// what the handler did is lost. So handlers must not allocate here, as with every allocator.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRows {
    area: isize,
}

impl ThreadRows {
    /// The number of rows that there have to be, the empty one included. So one thread less than
    /// that can have a row at a time.
    pub const ROWS: usize = crate::thread_local::ROWS;

    /// Makes the value; it serves every thread of this process.
    #[must_use]
    pub fn new() -> Self {
        Self { area: own_offset() }
    }

    /// Returns the offset of the area from the thread pointer, which [`pop`](super::pop) needs.
    #[must_use]
    pub const fn area(&self) -> isize {
        self.area
    }

    /// Returns the row of the calling thread, which takes a number now if it never did. `None` if
    /// it has no row.
    #[inline]
    pub(crate) fn row(&self) -> Option<usize> {
        let _ = Threads.cpu();
        let row = ThreadArea::of_this_thread().row();
        (row != 0).then_some(row)
    }
}

impl Default for ThreadRows {
    fn default() -> Self {
        Self::new()
    }
}

impl Platform for ThreadRows {
    /// Returns the row of the thread; `usize::MAX` if it has none.
    #[inline]
    fn cpu(&self) -> usize {
        self.row().unwrap_or(usize::MAX)
    }

    fn relax(&self) {
        Threads.relax();
    }

    /// Runs `work` by [`Threads`], for the number of the row.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        (1..Self::ROWS).contains(&cpu) && Threads.run_on(cpu - 1, work)
    }

    fn ticks(&self) -> u64 {
        Threads.ticks()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;
    use crate::threads::tests::alone;

    #[test]
    fn numbers_are_one_threads_and_visited_only_without_one() {
        let _alone = alone();
        let rows = ThreadRows::new();
        let mine = rows.row().unwrap();
        assert_eq!(rows.cpu(), mine);
        let barrier = Barrier::new(2);
        let (to, from) = channel();
        thread::scope(|scope| {
            let barrier = &barrier;
            let thread = scope.spawn(move || {
                to.send(ThreadRows::new().row().unwrap()).unwrap();
                barrier.wait();
            });
            let other = from.recv().unwrap();
            assert_ne!(other, mine);
            assert!(!rows.run_on(other, &mut || panic!("its thread runs")));
            barrier.wait();
            thread.join().unwrap();
            let mut seen = None;
            assert!(rows.run_on(other, &mut || seen = rows.row()));
            assert_eq!(seen, Some(other));
        });
        assert_eq!(rows.row(), Some(mine));
        for never in [0, ThreadRows::ROWS, usize::MAX] {
            assert!(!rows.run_on(never, &mut || panic!("nobody's")));
        }
    }

    #[test]
    fn a_visitor_without_a_number_gets_one_and_keeps_it() {
        let _alone = alone();
        let rows = ThreadRows::new();
        let visitor = move || {
            let mut visited = 0;
            for cpu in 1..ThreadRows::ROWS {
                let mut seen = None;
                if rows.run_on(cpu, &mut || seen = rows.row()) {
                    assert_eq!(seen, Some(cpu));
                    visited += 1;
                }
            }
            assert!(visited > 0);
            rows.row()
        };
        assert!(thread::spawn(visitor).join().unwrap().is_some());
    }

    #[test]
    fn more_threads_than_rows_go_without() {
        let _alone = alone();
        const THREADS: usize = ThreadRows::ROWS + 8;
        let barrier = Barrier::new(THREADS);
        let numbers: Vec<Option<usize>> = thread::scope(|scope| {
            let number = || {
                let number = ThreadRows::new().row();
                barrier.wait();
                number
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut had: Vec<usize> = numbers.iter().copied().flatten().collect();
        // A thread of another test may just be ending.
        assert!(had.len() < ThreadRows::ROWS && had.len() > ThreadRows::ROWS / 2);
        let count = had.len();
        had.sort_unstable();
        had.dedup();
        assert_eq!(had.len(), count);
        assert!(!had.contains(&0));
    }
}
