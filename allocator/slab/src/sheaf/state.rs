//! The state of the design: a row of words per CPU, and a depot per cache and node.

use core::marker::PhantomData;
use core::ptr::{NonNull, from_ref};

use brickyard_sync::{AtomicUsize, Held, Locked, RawLock, TicketLock, prefetch_to_write};

use super::depot::Depot;
use super::purpose::{Kernel, Purpose};
use crate::backend::Backend;
use crate::layout::CacheId;
use crate::local::Local;
use crate::rows::Rows;
use crate::source::PageSource;

/// The parts of a row, each with a word per cache. The number of a cache is the column of its
/// `main`.
pub(super) const MAIN: usize = 0;
pub(super) const SPARE: usize = 1;
/// Objects of other nodes, and of pages that are at home on other CPUs. Used only with more than
/// one node, or with homes.
pub(super) const AWAY: usize = 2;

/// A function type, so that it is `Send` and `Sync` whatever its types are.
type Of<S, L, P> = fn() -> (S, L, P);

/// A depot and its lock, in cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Guarded<K>(pub(super) Locked<K, Depot>);

/// The default design: arrays of free objects ("sheaves"), so that a hit touches no object; bitmaps
/// beside the slabs. Its state lies in the caller's memory. `P` says for whom the slabs are
/// ([`Purpose`]).
#[derive(Debug)]
pub struct Sheafed<'m, S, L, K = TicketLock, P = Kernel> {
    pub(super) rows: Rows<'m>,
    /// The value of each CPU's `main` of each cache at the last trim: cache by cache, CPU by CPU.
    pub(super) seen: &'m [AtomicUsize],
    /// The number of words in a part of a row.
    pub(super) numbers: usize,
    /// All caches' depots: cache by cache, node by node.
    pub(super) depots: &'m [Guarded<K>],
    pub(super) nodes: usize,
    /// The number of parts of a row that are used.
    pub(super) parts: usize,
    pub(super) over: PhantomData<Of<S, L, P>>,
}

impl<'m, S: PageSource, L: Local, K: RawLock, P: Purpose> Sheafed<'m, S, L, K, P> {
    /// Returns all CPUs' rows, for a custom fast path. The number of a cache is the column of its
    /// `main`. The rows stay with these slabs (`rows-of-one-system`).
    #[must_use]
    pub const fn rows(&self) -> &Rows<'m> {
        &self.rows
    }

    /// Returns the column of a cache's objects that are away from home, for a custom fast path. It
    /// takes objects as that of `main` does, and gives none.
    #[must_use]
    pub fn away(&self, cache: CacheId) -> usize {
        self.column(cache, AWAY)
    }

    #[inline(always)]
    pub(super) fn column(&self, cache: CacheId, which: usize) -> usize {
        which * self.numbers + usize::from(cache)
    }

    /// Returns true if an object of the cache with this handle goes into the sheaf of those that
    /// are away from home: it is of another node's memory, or its page is at home on another CPU.
    #[inline]
    pub(super) fn is_away(
        &self,
        backend: &Backend<'m, S, L>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        if self.nodes > 1 && backend.node_of(object) != backend.node_here() {
            return true;
        }
        let info = backend.info(handle as CacheId);
        let homes = info.and_then(|info| backend.homes_for(info));
        homes.is_some_and(|homes| {
            let page = backend.pages.page_of(object);
            page.is_some_and(|page| !homes.is_on(page, backend.local.cpu()))
        })
    }

    /// Fetches the cache line of a depot that will be locked soon.
    #[inline]
    pub(super) fn fetch_depot(&self, cache: CacheId, node: usize) {
        let index = usize::from(cache) * self.nodes + node;
        prefetch_to_write(from_ref(&self.depots[index]).addr());
    }

    #[inline]
    pub(super) fn depot(
        &self,
        backend: &Backend<'m, S, L>,
        cache: CacheId,
        node: usize,
    ) -> Held<'_, K, Depot> {
        let index = usize::from(cache) * self.nodes + node;
        self.depots[index].0.lock(|| backend.relax())
    }
}

/// Rows and depots are words; what they point at is memory of the source. So the state is shared as
/// it is.
const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<Sheafed<'static, *const u8, *const u8>>();
};

#[cfg(test)]
mod tests {
    use core::ptr::from_ref;

    use super::*;

    #[test]
    fn an_exchange_of_sheaves_changes_one_cache_line() {
        let depot = Guarded::<TicketLock>(Locked::new(Depot::default()));
        let lock_first = from_ref(depot.0.unlocked()).addr() - from_ref(&depot).addr();
        assert!(lock_first + Depot::EXCHANGED <= 64, "{lock_first}");
    }
}
