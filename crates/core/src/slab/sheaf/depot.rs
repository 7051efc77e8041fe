//! The barn: full and empty sheaves that wait for any CPU. All of it behind the depot's lock.

use brickyard_sync::{GuardedU32, GuardedU64};

use super::super::kind::Kind;
use super::super::stats::CacheNumbers;
use super::words::Sheaf;

/// What the full sheaves of a barn hold at most, in bytes of objects ...
const LOAD: usize = 1 << 20;
/// ... and how many there are at least.
const FEW: u32 = 4;
/// Empty sheaves that are kept.
const EMPTIES: u32 = 8;

/// The state behind a depot's lock.
#[derive(Debug)]
pub(super) struct Depot {
    full: List,
    /// Objects that the full sheaves have less than they could hold.
    lacking: GuardedU64,
    empty: List,
    /// The first slab with free objects, as page number + 1.
    pub(super) partial: GuardedU32,
    pub(super) partials: GuardedU32,
    /// Slabs of which no object was ever taken: somebody else's frees served who made them.
    pub(super) untouched: GuardedU32,
    pub(super) slabs: GuardedU32,
    colour: GuardedU32,
    /// Objects that are not in their slabs.
    pub(super) out: GuardedU64,
    pub(super) counts: Counts,
}

/// What happened so far.
#[derive(Debug)]
pub(super) struct Counts {
    /// Allocations that a CPU could not serve.
    misses: GuardedU64,
    /// Frees that a CPU had no room for.
    free_misses: GuardedU64,
    /// Objects freed on a CPU of another node.
    remote_frees: GuardedU64,
    /// Full sheaves taken from the barn.
    claims: GuardedU64,
    /// Full sheaves put into it.
    stored: GuardedU64,
    /// Sheaves, or parts of them, put back into slabs.
    flushes: GuardedU64,
    /// Objects put back into slabs.
    pub(super) flushed: GuardedU64,
    /// Objects taken out of slabs.
    pub(super) filled: GuardedU64,
    pub(super) slabs_new: GuardedU64,
    pub(super) slabs_gone: GuardedU64,
    /// Frees that turned out bad when they reached the slab.
    pub(super) refused: GuardedU64,
}

/// A list of sheaves, last in, first out: the warmest first.
#[derive(Debug)]
struct List {
    first: GuardedU64,
    count: GuardedU32,
}

impl List {
    const fn new() -> Self {
        Self {
            first: GuardedU64::new(0),
            count: GuardedU32::new(0),
        }
    }

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
        // SAFETY: `sheaf-in-one-place`: it was in this list, whose lock is held, and leaves it here.
        let sheaf = unsafe { Sheaf::at(first) };
        self.first.set(sheaf.link() as u64);
        self.count.set(self.count.get() - 1);
        Some(sheaf)
    }
}

pub(super) fn add(word: &GuardedU64, more: u64) {
    word.set(word.get().wrapping_add(more));
}

impl Depot {
    pub(super) const fn new() -> Self {
        Self {
            full: List::new(),
            lacking: GuardedU64::new(0),
            empty: List::new(),
            partial: GuardedU32::new(0),
            partials: GuardedU32::new(0),
            untouched: GuardedU32::new(0),
            slabs: GuardedU32::new(0),
            colour: GuardedU32::new(0),
            out: GuardedU64::new(0),
            counts: Counts {
                misses: GuardedU64::new(0),
                free_misses: GuardedU64::new(0),
                remote_frees: GuardedU64::new(0),
                claims: GuardedU64::new(0),
                stored: GuardedU64::new(0),
                flushes: GuardedU64::new(0),
                flushed: GuardedU64::new(0),
                filled: GuardedU64::new(0),
                slabs_new: GuardedU64::new(0),
                slabs_gone: GuardedU64::new(0),
                refused: GuardedU64::new(0),
            },
        }
    }

    /// Another cache's, which has given back all that it had: it starts anew.
    pub(super) fn begin(&self) {
        debug_assert_eq!((self.slabs.get(), self.out.get()), (0, 0));
        self.colour.set(0);
        let Counts {
            misses,
            free_misses,
            remote_frees,
            claims,
            stored,
            flushes,
            flushed,
            filled,
            slabs_new,
            slabs_gone,
            refused,
        } = &self.counts;
        for count in [
            misses,
            free_misses,
            remote_frees,
            claims,
            stored,
            flushes,
            flushed,
            filled,
            slabs_new,
            slabs_gone,
            refused,
        ] {
            count.set(0);
        }
    }

    pub(super) fn take_full(&self) -> Option<Sheaf> {
        let sheaf = self.full.pop()?;
        add(&self.counts.claims, 1);
        add(&self.lacking, (sheaf.room() as u64).wrapping_neg());
        Some(sheaf)
    }

    pub(super) fn put_full(&self, sheaf: Sheaf) {
        add(&self.counts.stored, 1);
        add(&self.lacking, sheaf.room() as u64);
        self.full.push(sheaf);
    }

    /// May another full sheaf be kept?
    pub(super) fn has_room(&self, kind: &Kind) -> bool {
        let load = (kind.geometry.capacity * kind.geometry.stride) as usize;
        let limit = (LOAD / load) as u32;
        self.full.count.get() < limit.max(FEW)
    }

    pub(super) fn take_empty(&self) -> Option<Sheaf> {
        self.empty.pop()
    }

    pub(super) fn put_empty(&self, sheaf: Sheaf) {
        self.empty.push(sheaf);
    }

    /// An empty sheaf, if there are too many.
    pub(super) fn surplus_empty(&self) -> Option<Sheaf> {
        (self.empty.count.get() > EMPTIES)
            .then(|| self.empty.pop())
            .flatten()
    }

    pub(super) fn slabs(&self) -> u32 {
        self.slabs.get()
    }

    /// The colour of the next slab.
    pub(super) fn next_colour(&self, colours: u32) -> u32 {
        let colour = self.colour.get();
        self.colour.set((colour + 1) % colours);
        colour
    }

    pub(super) fn count_flush(&self) {
        add(&self.counts.flushes, 1);
    }

    pub(super) fn count_miss(&self) {
        add(&self.counts.misses, 1);
    }

    pub(super) fn count_free_miss(&self) {
        add(&self.counts.free_misses, 1);
    }

    pub(super) fn count_remote(&self, objects: usize) {
        add(&self.counts.remote_frees, objects as u64);
    }

    pub(super) fn count_refused(&self) {
        add(&self.counts.refused, 1);
    }

    pub(super) fn add_to(&self, kind: &Kind, numbers: &mut CacheNumbers) {
        let Counts {
            misses,
            free_misses,
            remote_frees,
            claims,
            stored,
            flushes,
            flushed,
            filled,
            slabs_new,
            slabs_gone,
            refused,
        } = &self.counts;
        numbers.slabs += u64::from(self.slabs.get());
        numbers.partial_slabs += u64::from(self.partials.get());
        numbers.out += self.out.get();
        let held = u64::from(self.full.count.get() * kind.geometry.capacity);
        numbers.queued += held - self.lacking.get();
        numbers.misses += misses.get();
        numbers.free_misses += free_misses.get();
        numbers.remote_frees += remote_frees.get();
        numbers.claims += claims.get();
        numbers.stored += stored.get();
        numbers.flushes += flushes.get();
        numbers.flushed += flushed.get();
        numbers.filled += filled.get();
        numbers.slabs_new += slabs_new.get();
        numbers.slabs_gone += slabs_gone.get();
        numbers.refused += refused.get();
    }
}
