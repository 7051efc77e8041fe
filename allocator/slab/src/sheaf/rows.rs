//! Sheaves in and out of a CPU's row, each by one store.

use brickyard_sync::{Ordering, RawLock};

use super::purpose::Purpose;
use super::state::{MAIN, SPARE, Sheafed};
use super::words::{Sheaf, closed, in_sheaf};
use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::Caller;
use crate::local::Local;
use crate::source::PageSource;

impl<'m, S: PageSource, L: Local, K: RawLock, P: Purpose> Sheafed<'m, S, L, K, P> {
    /// Replaces what `column` of this CPU's row holds by `new`, if it is `expected`. Returns true
    /// if it did; the caller then owns the old value.
    pub(super) fn detach<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        // SAFETY: `sheaf-in-one-place`: the callers here put in 0, `closed`, or the top of a sheaf
        // in hand. If this succeeds, they let go of that sheaf.
        unsafe {
            backend
                .local
                .replace::<C>(&self.rows, cpu, column, expected, new)
        }
    }

    /// Takes the spare sheaf of this CPU out of the row.
    pub(super) fn take_spare<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
    ) -> Option<Sheaf> {
        let column = self.column(info.id, SPARE);
        let (cpu, spare) = backend.local.read::<C>(&self.rows, column);
        if spare == 0 || !self.detach::<C>(backend, cpu, column, spare, 0) {
            return None;
        }
        // SAFETY: taken out of the row just now.
        unsafe { Sheaf::of_row(spare) }
    }

    /// Gives `main`, the empty sheaf with `top`, a few objects of `full`, which stays the spare.
    /// Exchanged as a whole, the two would be exchanged back by as few frees, again and again where
    /// a program comes and goes over the end of a sheaf.
    pub(super) fn share<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        (cpu, top): (usize, usize),
        full: Sheaf,
    ) {
        let column = self.column(info.id, MAIN);
        if self.detach::<C>(backend, cpu, column, top, closed()) {
            // SAFETY: taken out of the row just now.
            if let Some(main) = unsafe { Sheaf::of_row(top) } {
                full.give_some(&main);
                if !self.detach::<C>(backend, cpu, column, closed(), main.top()) {
                    self.to_barn::<C>(backend, info, main, false);
                }
            }
        }
        self.keep_as_spare::<C>(backend, info, full);
    }

    /// Returns how many objects lie in all CPUs' rows: an estimate, since the CPUs go on.
    pub(super) fn queued(&self, info: &CacheInfo) -> u64 {
        let capacity = info.geometry.capacity as usize;
        self.held(info).map(|top| in_sheaf(top, capacity)).sum()
    }

    /// Returns the tops of all sheaves that CPUs' rows have of a cache, empty ones too.
    pub(super) fn held(&self, info: &CacheInfo) -> impl Iterator<Item = usize> {
        let words = (0..self.rows.rows()).flat_map(move |cpu| {
            let columns = (0..self.parts).map(move |part| self.column(info.id, part));
            columns.filter_map(move |column| self.rows.word(cpu, column))
        });
        let closed = closed();
        // Relaxed: an estimate. Only the word is used; the sheaf is not looked at, since it may
        // belong to somebody else by now.
        let tops = words.map(|word| word.load(Ordering::Relaxed));
        tops.filter(move |&top| top != 0 && top != closed)
    }

    /// Takes the sheaf out of `column` of this CPU's row and leaves the row closed.
    pub(super) fn close<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        column: usize,
    ) -> Option<Sheaf> {
        // Repeats only if the caller has moved to another CPU meanwhile, or somebody here has used
        // the row.
        loop {
            let (cpu, top) = backend.local.read::<C>(&self.rows, column);
            if top == 0 || top == closed() {
                return None;
            }
            if self.detach::<C>(backend, cpu, column, top, closed()) {
                // SAFETY: taken out of the row just now.
                return unsafe { Sheaf::of_row(top) };
            }
        }
    }
}
