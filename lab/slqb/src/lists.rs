//! What a CPU, and what a node, has of a cache.
//!
//! | lines of 64 bytes | of a CPU | of a node |
//! |---|---|---|
//! | 3 | the CPU's own: LIFO, check flag, counts; outgoing queue | the list lock, and behind it LIFO, check flag, counts |
//! | 2 | the page lock, and behind it partial slabs, counts | the same |
//! | 1 | the incoming queue and its lock | the same |
//!
//! So 384 bytes a cache for each CPU and each node (with a lock of 8 bytes), and `384 * (CPUs +
//! nodes) * (planned caches + 2)` in all: linear in each.

use brickyard_slab::{CacheNumbers, counts};
use brickyard_sync::{AtomicU32, GuardedU32, GuardedU64, Held, Locked, Ordering, RawLock};

use super::queue::{Chain, Incoming, ObjectList};
use super::slabs::SlabList;

/// What is counted of a cache beside [`CacheNumbers`]. Sums over all CPUs and nodes, of slightly
/// different moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlqbNumbers {
    /// Objects in the queues that were taken.
    pub claimed: u64,
    /// Objects among the flushed ones that were of other lists' slabs.
    pub flushed_remote: u64,
    /// Times that a CPU sent off what it had for another list.
    pub outgoing_flushes: u64,
    /// Objects sent off so.
    pub outgoing_flushed: u64,
    /// Slabs without a free object that got one back.
    pub slabs_partial: u64,
    /// Free objects left out for good, since somebody wrote over the links between them.
    pub lost: u64,
}

/// What only the CPU touches, pinned and, where interrupts use the cache, masked; of a node's list,
/// what the list lock guards.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Own {
    pub(super) lifo: Chain,
    /// With so many objects in it no more are pushed without a look: the high-water mark, or 0
    /// where every free takes the slow path.
    pub(super) limit: GuardedU32,
    /// Where objects have their links.
    pub(super) link: GuardedU32,
    /// The check flag: does a batch wait in the incoming queue? (`flag-follows-queue`)
    pub(super) check: AtomicU32,
    /// Allocations served by the LIFO at once.
    pub(super) hits: GuardedU64,
    /// Objects freed to the LIFO at once.
    pub(super) free_hits: GuardedU64,
    pub(super) counts: Counts,
    pub(super) more: MoreCounts,
}

counts! {
    /// What happened so far. Guarded as [`Own`] is.
    Counts for CacheNumbers {
        /// Allocations on the slow path.
        misses,
        /// Frees on the slow path.
        free_misses,
        claims,
        flushes,
        flushed,
    }
}

counts! {
    /// The same, of this design alone.
    MoreCounts for SlqbNumbers { claimed, flushed_remote, }
}

counts! {
    /// What happened to an outgoing queue so far. Guarded as [`Own`] is.
    OutgoingCounts for CacheNumbers {
        /// Objects that went into the queue, or straight to their list.
        remote_frees,
    }
}

counts! {
    /// The same, of this design alone.
    MoreOutgoing for SlqbNumbers { outgoing_flushes, outgoing_flushed, }
}

impl Own {
    /// A cache's begin.
    pub(super) fn begin(&self, limit: u32, link: usize) {
        self.lifo.set(ObjectList::EMPTY);
        self.limit.set(limit);
        self.link.set(link as u32);
        // Relaxed: nobody uses the cache yet.
        self.check.store(0, Ordering::Relaxed);
        self.hits.set(0);
        self.free_hits.set(0);
        self.counts.begin();
        self.more.begin();
    }

    pub(super) fn add_to(&self, numbers: &mut CacheNumbers, more: &mut SlqbNumbers) {
        let both = [
            (&mut numbers.hits, &self.hits),
            (&mut numbers.free_hits, &self.free_hits),
        ];
        for (sum, count) in both {
            *sum = Some(sum.unwrap_or(0) + count.get());
        }
        numbers.queued += u64::from(self.lifo.count());
        self.counts.add_to(numbers);
        self.more.add_to(more);
    }
}

/// A CPU's outgoing queue: objects of one list's slabs, on their way there. Guarded as [`Own`] is.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Outgoing {
    pub(super) queue: Chain,
    /// The list that they go to.
    pub(super) to: GuardedU32,
    /// The node, plus 1, that gave this CPU its last slab, if that was not its own: see `alloc.rs`.
    pub(super) away: GuardedU32,
    pub(super) counts: OutgoingCounts,
    pub(super) more: MoreOutgoing,
}

impl Outgoing {
    pub(super) fn begin(&self) {
        self.queue.set(ObjectList::EMPTY);
        self.away.set(0);
        self.counts.begin();
        self.more.begin();
    }

    pub(super) fn add_to(&self, numbers: &mut CacheNumbers, more: &mut SlqbNumbers) {
        numbers.queued += u64::from(self.queue.count());
        self.counts.add_to(numbers);
        self.more.add_to(more);
    }
}

/// What other CPUs reach of a CPU's or a node's list.
#[derive(Debug)]
#[repr(C)]
pub(super) struct List<K> {
    /// Behind the page lock.
    pub(super) slabs: Line<Locked<K, SlabList>>,
    pub(super) incoming: Incoming<K>,
}

/// In lines of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line<T>(pub(super) T);

impl<K: RawLock> List<K> {
    fn new() -> Self {
        Self {
            slabs: Line(Locked::new(SlabList::default())),
            incoming: Incoming::default(),
        }
    }

    /// The page lock, taken.
    pub(super) fn slabs(&self, relax: impl FnMut()) -> Held<'_, K, SlabList> {
        self.slabs.0.lock(relax)
    }

    pub(super) fn add_to(
        &self,
        (numbers, more): (&mut CacheNumbers, &mut SlqbNumbers),
        relax: impl FnMut(),
    ) {
        numbers.queued += u64::from(self.incoming.waiting());
        self.slabs(relax).add_to(numbers, more);
    }
}

/// What a CPU has of a cache.
#[derive(Debug)]
#[repr(C)]
pub(super) struct CpuState<K> {
    pub(super) own: Own,
    pub(super) outgoing: Outgoing,
    pub(super) list: List<K>,
}

/// What a node has of a cache.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NodeState<K> {
    /// Behind the list lock.
    pub(super) own: Line<Locked<K, Own>>,
    pub(super) list: List<K>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    use brickyard_sync::TicketLock;
    assert!(size_of::<CpuState<TicketLock>>() == 384);
    assert!(size_of::<NodeState<TicketLock>>() == 384);
};

impl<K: RawLock> CpuState<K> {
    pub(super) fn new() -> Self {
        Self {
            own: Own::default(),
            outgoing: Outgoing::default(),
            list: List::new(),
        }
    }
}

impl<K: RawLock> NodeState<K> {
    pub(super) fn new() -> Self {
        Self {
            own: Line(Locked::new(Own::default())),
            list: List::new(),
        }
    }
}

/// A list that the caller is in: its own CPU's, or a node's whose list lock it holds.
#[derive(Debug)]
pub(super) struct At<'a, K> {
    pub(super) own: &'a Own,
    /// A CPU's only.
    pub(super) outgoing: Option<&'a Outgoing>,
    pub(super) list: &'a List<K>,
    /// Its number: see `Slqb::list`.
    pub(super) owner: u32,
}

impl<K> Clone for At<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for At<'_, K> {}
