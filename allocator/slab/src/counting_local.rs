//! A [`Local`] that counts what it does, for users that want to know hits.

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

use brickyard_sync::{AtomicU64, Ordering, place};

use crate::caller::Caller;
use crate::local::{Hits, Local, Pushed};
use crate::rows::Rows;

/// The columns that are counted: a cache's number is the column of its `main`.
const COLUMNS: usize = 256;

/// A CPU's counts of a cache.
#[derive(Debug)]
struct Counts {
    allocs: AtomicU64,
    frees: AtomicU64,
}

/// A [`Local`] that counts each hit, which [`CacheNumbers::hits`](crate::CacheNumbers::hits) then
/// reports. For one system of slabs.
///
/// Each hit then costs one more atomic addition, in a line of the CPU's own: about 5 ns, more than
/// the rest of the hit. So it is a type to choose, and not always there.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'m, L> {
    local: L,
    counts: &'m [Counts],
}

impl<'m, L> Counted<'m, L> {
    /// Returns the bytes of memory for `cpus` CPUs: 4 KiB each.
    #[must_use]
    pub const fn bytes(cpus: usize) -> usize {
        let counts = cpus.saturating_mul(COLUMNS * size_of::<Counts>());
        counts.saturating_add(align_of::<Counts>())
    }

    /// Counts what `local` does. `None` if the memory is less than [`Counted::bytes`].
    #[must_use]
    pub fn new(local: L, cpus: usize, memory: &'m mut [MaybeUninit<u8>]) -> Option<Self> {
        let zero = || Counts {
            allocs: AtomicU64::new(0),
            frees: AtomicU64::new(0),
        };
        let (counts, _) = place(memory, cpus.checked_mul(COLUMNS)?, zero)?;
        Some(Self { local, counts })
    }

    fn of(&self, cpu: usize, column: usize) -> Option<&'m Counts> {
        let index = cpu.checked_mul(COLUMNS)?.checked_add(column)?;
        (column < COLUMNS).then(|| self.counts.get(index))?
    }
}

impl<L> Deref for Counted<'_, L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.local
    }
}

brickyard::pass_on_platform!(self => self.local, impl<'m, L> for Counted<'m, L>);

// SAFETY: each call is passed on to one that keeps the contract. Counts are words of their own.
unsafe impl<L: Local> Local for Counted<'_, L> {
    #[inline]
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
        // SAFETY: passed on.
        let object = unsafe { self.local.pop::<C>(rows, column) }?;
        // The caller may have moved since. Then another CPU's count goes up, and the sum is still
        // right.
        if let Some(counts) = self.of(self.local.cpu(), column) {
            // Relaxed: a number that nothing depends on.
            counts.allocs.fetch_add(1, Ordering::Relaxed);
        }
        Some(object)
    }

    #[inline]
    unsafe fn push<C: Caller>(
        &self,
        rows: &Rows<'_>,
        column: usize,
        object: NonNull<u8>,
    ) -> Pushed {
        // SAFETY: passed on.
        let pushed = unsafe { self.local.push::<C>(rows, column, object) };
        if pushed == Pushed::Done
            && let Some(counts) = self.of(self.local.cpu(), column)
        {
            // Relaxed: see `pop`.
            counts.frees.fetch_add(1, Ordering::Relaxed);
        }
        pushed
    }

    #[inline]
    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize) {
        self.local.read::<C>(rows, column)
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
        // SAFETY: passed on.
        unsafe { self.local.replace::<C>(rows, cpu, column, expected, new) }
    }

    fn hits(&self, column: usize) -> Option<Hits> {
        let cpus = self.counts.len() / COLUMNS;
        let mut sum = Hits::default();
        for counts in (0..cpus).filter_map(|cpu| self.of(cpu, column)) {
            // Relaxed: see `pop`.
            sum.allocs += counts.allocs.load(Ordering::Relaxed);
            sum.frees += counts.frees.load(Ordering::Relaxed);
        }
        Some(sum)
    }

    fn forget_hits(&self, column: usize) {
        let cpus = self.counts.len() / COLUMNS;
        for counts in (0..cpus).filter_map(|cpu| self.of(cpu, column)) {
            // Relaxed: see `pop`.
            counts.allocs.store(0, Ordering::Relaxed);
            counts.frees.store(0, Ordering::Relaxed);
        }
    }
}
