//! The barn: full and empty sheaves that wait for any CPU. All of it is behind the depot's lock.

use brickyard_sync::{GuardedU32, GuardedU64};

use super::words::Sheaf;
use crate::cache_info::CacheInfo;
use crate::counts;
use crate::numbers::CacheNumbers;
use crate::owned::OwnedSlabs;

/// The most bytes of objects that the full sheaves of a barn hold ...
const LOAD: usize = 1 << 20;
/// ... but so many full sheaves are allowed in any case.
const FEW: u32 = 4;
/// The most empty sheaves that are kept.
const EMPTIES: u32 = 8;

/// The state behind a depot's lock.
#[derive(Debug, Default)]
pub(super) struct Depot {
    full: List,
    /// Objects that the full sheaves hold less than they could.
    lacking: GuardedU64,
    empty: List,
    /// Slabs of which no object was ever taken. Another CPU's frees served the caller that made
    /// them.
    pub(super) untouched: GuardedU32,
    pub(super) slabs: OwnedSlabs,
    pub(super) counts: Counts,
}

counts! {
    /// Events so far.
    Counts for CacheNumbers {
        /// Allocations that a CPU could not serve.
        misses,
        /// Frees that a CPU had no room for.
        free_misses,
        /// Objects freed on a CPU of another node.
        remote_frees,
        /// Full sheaves taken from the barn.
        claims,
        /// Full sheaves put into it.
        stored,
        /// Sheaves, or parts of them, put back into slabs.
        flushes,
        /// Objects put back into slabs.
        flushed,
        /// Objects taken out of slabs.
        filled,
        slabs_new,
        slabs_gone,
        /// Frees that turned out bad when they reached the slab.
        refused,
    }
}

/// A list of sheaves, last in, first out: the warmest comes first.
#[derive(Debug, Default)]
struct List {
    first: GuardedU64,
    count: GuardedU32,
}

impl List {
    fn push(&self, sheaf: Sheaf) {
        sheaf.set_link(self.first.get() as usize);
        self.first.set(sheaf.address() as u64);
        self.count.set(self.count.get() + 1);
    }

    fn pop(&self) -> Option<Sheaf> {
        let first = self.first.get() as usize;
        if first == 0 {
            return None;
        }
        // SAFETY: `sheaf-in-one-place`: it was in this list, whose lock is held, and leaves it
        // here.
        let sheaf = unsafe { Sheaf::at(first) };
        self.first.set(sheaf.link() as u64);
        self.count.set(self.count.get() - 1);
        Some(sheaf)
    }
}

impl Depot {
    /// Called when another cache gets this depot; the last one has given back all that it had.
    pub(super) fn begin(&self) {
        self.slabs.begin();
        self.counts.begin();
    }

    pub(super) fn take_full(&self) -> Option<Sheaf> {
        let sheaf = self.full.pop()?;
        self.counts.claims.add(1);
        self.lacking.add((sheaf.room() as u64).wrapping_neg());
        Some(sheaf)
    }

    pub(super) fn put_full(&self, sheaf: Sheaf) {
        self.counts.stored.add(1);
        self.lacking.add(sheaf.room() as u64);
        self.full.push(sheaf);
    }

    /// Returns true if another full sheaf may be kept.
    pub(super) fn has_room(&self, info: &CacheInfo) -> bool {
        let load = (info.geometry.capacity * info.geometry.stride) as usize;
        let limit = (LOAD / load) as u32;
        self.full.count.get() < limit.max(FEW)
    }

    pub(super) fn take_empty(&self) -> Option<Sheaf> {
        self.empty.pop()
    }

    pub(super) fn put_empty(&self, sheaf: Sheaf) {
        self.empty.push(sheaf);
    }

    /// Takes an empty sheaf, if there are more than are kept.
    pub(super) fn surplus_empty(&self) -> Option<Sheaf> {
        (self.empty.count.get() > EMPTIES)
            .then(|| self.empty.pop())
            .flatten()
    }

    pub(super) fn add_to(&self, info: &CacheInfo, numbers: &mut CacheNumbers) {
        self.slabs.add_to(numbers);
        self.counts.add_to(numbers);
        let held = u64::from(self.full.count.get() * info.geometry.capacity);
        numbers.queued += held - self.lacking.get();
    }
}
