//! The barn: full and empty sheaves that wait for any CPU. All of it is behind the depot's lock.

use brickyard_sync::{GuardedU32, GuardedU64, prefetch_to_write};

use super::purpose::Purpose;
use super::words::Sheaf;
use crate::cache_info::CacheInfo;
use crate::counts;
use crate::geometry::Geometry;
use crate::slab_list::OwnedSlabs;
use crate::statistics::CacheNumbers;

/// So many full sheaves are looked at for one that serves as it is.
const LOOKS: usize = 4;
/// The most empty sheaves that are kept.
const EMPTIES: u32 = 8;

/// The state behind a depot's lock.
///
/// All that a CPU changes when it exchanges a sheaf is in the cache line of the lock, which lies
/// before this. Where one CPU allocates and another frees, that line moves once for each sheaf, and
/// no other line of the depot moves at all.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Depot {
    full: GuardedU64,
    empty: GuardedU64,
    pub(super) fulls: GuardedU32,
    empties: GuardedU32,
    /// Objects that the full sheaves hold less than they could.
    pub(super) lacking: GuardedU64,
    pub(super) exchanges: Exchanges,
    // From here on only what is needed for slabs.
    /// Slabs of which no object was ever taken. Another CPU's frees served the caller that made
    /// them.
    pub(super) untouched: GuardedU32,
    /// How many objects were in use when the barn was emptied for sparse slabs; 0: it was not since
    /// they became so.
    emptied: GuardedU64,
    pub(super) slabs: OwnedSlabs,
    pub(super) counts: Counts,
}

counts! {
    /// Events so far that need no slab. (Those in which a full sheaf was put into the barn are not
    /// counted: there are as many as claims, and one for each full sheaf there.)
    Exchanges for CacheNumbers {
        /// Allocations that a CPU could not serve.
        misses,
        /// Frees that a CPU had no room for.
        free_misses,
        /// Full sheaves taken from the barn.
        claims,
    }
}

counts! {
    /// Other events so far.
    Counts for CacheNumbers {
        /// Objects freed on a CPU of another node, or away from their page's home.
        remote_frees,
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
struct List<'d> {
    first: &'d GuardedU64,
    count: &'d GuardedU32,
}

impl List<'_> {
    fn push(&self, sheaf: Sheaf, was_away: bool) {
        sheaf.set_link(self.first.get() as usize, was_away);
        self.first.set(sheaf.address() as u64);
        self.count.set(self.count.get() + 1);
    }

    fn pop(&self) -> Option<Sheaf> {
        let first = self.first.get() as usize;
        if first == 0 {
            return None;
        }
        // Its first line will be written too. Otherwise it would come twice: once to be read below,
        // and once more to be written.
        prefetch_to_write(first);
        // SAFETY: `sheaf-in-one-place`: it was in this list, whose lock is held, and leaves it
        // here.
        let sheaf = unsafe { Sheaf::at(first) };
        self.first.set(sheaf.link() as u64);
        self.count.set(self.count.get() - 1);
        Some(sheaf)
    }

    /// Takes the first sheaf that serves the caller, if there is one among the first.
    fn pop_if(&self, serves: impl Fn(&Sheaf) -> bool) -> Option<Sheaf> {
        let mut before: Option<Sheaf> = None;
        let mut next = self.first.get() as usize;
        for _ in 0..LOOKS {
            if next == 0 {
                return None;
            }
            // As in `pop`: nearly always this one is taken.
            prefetch_to_write(next);
            // SAFETY: `sheaf-in-one-place`: it is in this list, whose lock is held. The value for
            // one that stays is not used any more when this ends.
            let sheaf = unsafe { Sheaf::at(next) };
            if serves(&sheaf) {
                match before {
                    Some(before) => before.set_link(sheaf.link(), before.was_away()),
                    None => self.first.set(sheaf.link() as u64),
                }
                self.count.set(self.count.get() - 1);
                return Some(sheaf);
            }
            next = sheaf.link();
            before = Some(sheaf);
        }
        None
    }
}

impl Depot {
    /// The bytes from the begin that an exchange of sheaves may change.
    #[cfg(test)]
    pub(super) const EXCHANGED: usize = core::mem::offset_of!(Self, untouched);

    /// Called when another cache gets this depot; the last one has given back all that it had.
    pub(super) fn begin(&self) {
        self.slabs.begin();
        self.emptied.set(0);
        self.exchanges.begin();
        self.counts.begin();
    }

    const fn full(&self) -> List<'_> {
        List {
            first: &self.full,
            count: &self.fulls,
        }
    }

    const fn empty(&self) -> List<'_> {
        List {
            first: &self.empty,
            count: &self.empties,
        }
    }

    /// Takes a full sheaf, preferably one that serves the caller as it is.
    pub(super) fn take_full(&self, serves: impl Fn(&Sheaf) -> bool) -> Option<Sheaf> {
        let sheaf = self.full().pop_if(serves).or_else(|| self.full().pop())?;
        self.exchanges.claims.add(1);
        self.lacking.add((sheaf.room() as u64).wrapping_neg());
        Some(sheaf)
    }

    pub(super) fn put_full(&self, sheaf: Sheaf, was_away: bool) {
        self.lacking.add(sheaf.room() as u64);
        self.full().push(sheaf, was_away);
    }

    /// Returns true if another full sheaf may be kept.
    pub(super) fn has_room<P: Purpose>(&self, info: &CacheInfo) -> bool {
        let limits = P::barn(&info.geometry);
        let load = u64::from(info.geometry.capacity) * u64::from(info.geometry.stride);
        let fulls = self.fulls.get();
        fulls < limits.sheaves || (u64::from(fulls) + 1) * load <= limits.bytes
    }

    /// Returns true if the barn is to be emptied, down to [`Purpose::KEPT`] sheaves: most of the
    /// slabs is free, and the objects in the barn, which lie scattered, may keep each of them from
    /// being given back. That is so when slabs [are sparse](Purpose::is_sparse), and again each
    /// time that half of what is in use has been freed. In between the barn may fill: what is in
    /// use keeps most slabs that there are then, so to empty the barn each time would be of no use.
    pub(super) fn is_crowded<P: Purpose>(&self, info: &CacheInfo) -> bool {
        if self.fulls.get() <= P::KEPT {
            return false;
        }
        let Geometry {
            objects, stride, ..
        } = info.geometry;
        let all = u64::from(self.slabs.count()) * u64::from(objects);
        let out = self.slabs.out.get();
        let (in_use, emptied) = (self.in_use(out, info), self.emptied.get());
        if !P::is_sparse(all, out, in_use, u64::from(stride)) {
            if emptied != 0 {
                self.emptied.set(0);
            }
            return false;
        }
        emptied == 0 || in_use < emptied / 2
    }

    /// Returns how many of the objects that are not in slabs are not in the barn either.
    fn in_use(&self, out: u64, info: &CacheInfo) -> u64 {
        out.saturating_sub(self.in_barn(info))
    }

    /// Takes a full sheaf out of a barn that [is to be emptied](Depot::is_crowded).
    pub(super) fn take_surplus<P: Purpose>(&self, info: &CacheInfo) -> Option<Sheaf> {
        if !self.is_crowded::<P>(info) {
            return None;
        }
        let sheaf = self.take_full(|_| true);
        if self.fulls.get() <= P::KEPT {
            // 0 says that it was not.
            let in_use = self.in_use(self.slabs.out.get(), info);
            self.emptied.set(in_use.max(1));
        }
        sheaf
    }

    pub(super) fn take_empty(&self) -> Option<Sheaf> {
        self.empty().pop()
    }

    pub(super) fn put_empty(&self, sheaf: Sheaf) {
        self.empty().push(sheaf, false);
    }

    /// Takes an empty sheaf, if there are more than are kept.
    pub(super) fn surplus_empty(&self) -> Option<Sheaf> {
        (self.empties.get() > EMPTIES)
            .then(|| self.empty().pop())
            .flatten()
    }

    /// Returns how many sheaves lie here.
    pub(super) fn sheaves(&self) -> u32 {
        self.fulls.get() + self.empties.get()
    }

    pub(super) fn add_to(&self, info: &CacheInfo, numbers: &mut CacheNumbers) {
        self.slabs.add_to(numbers);
        self.exchanges.add_to(numbers);
        self.counts.add_to(numbers);
        numbers.stored += self.exchanges.claims.get() + u64::from(self.fulls.get());
        numbers.queued += self.in_barn(info);
    }

    /// Returns how many objects the full sheaves hold.
    pub(super) fn in_barn(&self, info: &CacheInfo) -> u64 {
        u64::from(self.fulls.get() * info.geometry.capacity) - self.lacking.get()
    }
}
