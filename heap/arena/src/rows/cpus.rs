//! A row per CPU or a row per thread, as one type: chosen once, for rows at any place and any
//! distance.
//!
//! A heap's own code is a little shorter, since it knows its rows.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_slab::{Caller, Local, Pushed, Rows};

use super::{Rseq, ThreadRows, is_alone, pop_shifted, push_shifted, replace};
use crate::thread_local::{failures, set_failures};

/// A thread that has failed so often to change a word of its row goes without a row as many times.
/// A debugger may be stepping through it, which interrupts each sequence: then loops over changes
/// that fail end, and slabs take their ways that need no row.
const FAILURES: usize = 16;

/// Counts a failure, or a time without a row.
#[cold]
#[inline(never)]
fn count() {
    let failures = failures();
    if failures < 2 * FAILURES {
        set_failures((failures + 1) % (2 * FAILURES));
    }
}

/// The way in which this process reaches its rows: the [`Local`] of slabs in user space.
#[derive(Debug, Clone, Copy)]
pub enum Cpus {
    /// A row per CPU. A thread can be moved at any moment.
    PerCpu(Rseq),
    /// A row per thread, which the thread never leaves.
    PerThread(ThreadRows),
}

macro_rules! either {
    ($self:expr, $cpus:ident => $call:expr) => {
        match $self {
            Cpus::PerCpu($cpus) => $call,
            Cpus::PerThread($cpus) => $call,
        }
    };
}

impl Cpus {
    /// Uses a row per CPU if the system has restartable sequences, else a row per thread.
    #[must_use]
    pub fn registered() -> Self {
        Rseq::registered().map_or_else(Self::threads, Self::PerCpu)
    }

    /// Uses a row per thread.
    #[must_use]
    pub fn threads() -> Self {
        Self::PerThread(ThreadRows::new())
    }

    /// Returns how many rows there have to be.
    #[must_use]
    pub const fn rows(&self) -> usize {
        match self {
            Self::PerCpu(rseq) => rseq.cpus(),
            Self::PerThread(_) => ThreadRows::ROWS,
        }
    }

    /// Returns the offset of a thread's area from the thread pointer.
    #[must_use]
    pub const fn area(&self) -> isize {
        either!(self, cpus => cpus.area())
    }

    /// Returns where the rows lie and how far apart, if every number has a row: sequences do not
    /// check.
    #[inline(always)]
    fn place(&self, rows: &Rows<'_>) -> Option<(*const AtomicUsize, u32)> {
        (rows.rows() >= self.rows()).then(|| (rows.start(), rows.row_shift()))
    }
}

impl Platform for Cpus {
    #[inline]
    fn cpu(&self) -> usize {
        either!(self, cpus => cpus.cpu())
    }

    fn relax(&self) {
        either!(self, cpus => cpus.relax());
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        either!(self, cpus => cpus.run_on(cpu, work))
    }

    fn ticks(&self) -> u64 {
        either!(self, cpus => cpus.ticks())
    }

    /// Returns the thread, by the system's number.
    fn task(&self) -> u64 {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        thread.get().unsigned_abs().into()
    }
}

// SAFETY: `one-store` and `row-of-its-own` are the trait's conditions. All users of one kind of
// rows use the same sequences. `place` keeps them from rows that are not there.
unsafe impl Local for Cpus {
    #[inline(always)]
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
        let place = self.place(rows)?;
        // SAFETY: there is a row for every number. `top-in-sheaf`, the library's own invariant,
        // says what its words are.
        NonNull::new(unsafe { pop_shifted(self.area(), place, column) })
    }

    #[inline(always)]
    unsafe fn push<C: Caller>(
        &self,
        rows: &Rows<'_>,
        column: usize,
        object: NonNull<u8>,
    ) -> Pushed {
        let Some(place) = self.place(rows) else {
            return Pushed::Full;
        };
        let _ = object.as_ptr().expose_provenance();
        // SAFETY: as in `pop`.
        unsafe { push_shifted(self.area(), place, column, object.as_ptr()) }
    }

    fn is_alone(&self) -> bool {
        is_alone()
    }

    #[inline]
    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize) {
        if failures() >= FAILURES {
            count();
            return (usize::MAX, 0);
        }
        let cpu = self.cpu();
        // Relaxed: it may be another CPU's by now, and is compared again before it is changed.
        // SAFETY: a word of the rows, which are there as long as this view of them.
        let word = rows.place(cpu, column).map(|word| unsafe { &*word });
        (cpu, word.map_or(0, |word| word.load(Ordering::Relaxed)))
    }

    #[inline]
    unsafe fn replace<C: Caller>(
        &self,
        rows: &Rows<'_>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        let Some(word) = rows.place(cpu, column) else {
            return false;
        };
        // SAFETY: the word is in the row of `cpu`, and is there as long as this view of the rows.
        let done = unsafe { replace(self.area(), cpu as u32, &*word, expected, new) };
        if !done {
            count();
        }
        done
    }
}
