//! A row a CPU where the system has restartable sequences, a row a thread where not, as one type: chosen once, when the heap is built.

use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_arena::rows::{Rseq, ThreadRows};
use brickyard_slab::{Caller, Local, Pushed, Rows};

/// How this process reaches its rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cpus {
    PerCpu(Rseq),
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
    /// Restartable sequences, if they can be had and are wanted.
    pub(super) fn choose(wanted: RowsFor) -> Self {
        match (wanted, Rseq::registered()) {
            (RowsFor::Cpus, Some(rseq)) => Self::PerCpu(rseq),
            _ => Self::PerThread(ThreadRows::new()),
        }
    }

    /// Rows that there are to be.
    pub(super) const fn rows(&self) -> usize {
        match self {
            Self::PerCpu(rseq) => rseq.cpus(),
            Self::PerThread(_) => ThreadRows::ROWS,
        }
    }

    /// Where a thread's area is.
    pub(super) const fn area(&self) -> isize {
        either!(self, cpus => cpus.area())
    }
}

/// What rows are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsFor {
    Cpus,
    Threads,
}

impl Platform for Cpus {
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

    /// The thread, by the system's number.
    fn task(&self) -> u64 {
        rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
            .into()
    }
}

// SAFETY: each call is passed on to one that keeps the contract, the same one always.
unsafe impl Local for Cpus {
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
        // SAFETY: passed on.
        unsafe { either!(self, cpus => cpus.pop::<C>(rows, column)) }
    }

    unsafe fn push<C: Caller>(
        &self,
        rows: &Rows<'_>,
        column: usize,
        object: NonNull<u8>,
    ) -> Pushed {
        // SAFETY: passed on.
        unsafe { either!(self, cpus => cpus.push::<C>(rows, column, object)) }
    }

    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize) {
        either!(self, cpus => cpus.read::<C>(rows, column))
    }

    unsafe fn replace<C: Caller>(
        &self,
        rows: &Rows<'_>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { either!(self, cpus => cpus.replace::<C>(rows, cpu, column, expected, new)) }
    }
}
