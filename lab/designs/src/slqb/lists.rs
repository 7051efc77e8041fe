//! The state of a cache on a CPU, and on a node.
//!
//! | lines of 64 bytes | of a CPU | of a node |
//! |---|---|---|
//! | 3 | the CPU's own: LIFO, check flag, counts; outgoing queue | the list lock, and under it LIFO, check flag, counts |
//! | 2 | the page lock, and under it partial slabs, counts | the same |
//! | 1 | the incoming queue and its lock | the same |
//!
//! So 384 bytes a cache for each CPU and each node (with a lock of 8 bytes), and `384 * (CPUs +
//! nodes) * (planned caches + 2)` in all: linear in each.

use brickyard_slab::{CacheNumbers, counts};
use brickyard_sync::{AtomicU32, GuardedU32, GuardedU64, Held, Locked, Ordering, RawLock};

use crate::slab_designs::CacheLine;

use super::queue::{Chain, Incoming, ObjectList};
use super::slabs::{SlabList, SlqbNumbers};

/// The part of a list that only its CPU touches, pinned and, where interrupts use the cache, with
/// them masked; of a node's list, the part that the list lock guards.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct OwnPart {
    pub(super) lifo: Chain,
    /// With this many objects in the LIFO the fast path pushes no more: the high-water mark, or 0
    /// where every free takes the slow path.
    pub(super) limit: GuardedU32,
    /// Offset of the link in an object.
    pub(super) link: GuardedU32,
    /// The check flag, not 0 if a batch waits in the incoming queue (`flag-follows-queue`).
    pub(super) check: AtomicU32,
    /// Allocations served by the LIFO on the fast path.
    pub(super) hits: GuardedU64,
    /// Objects freed to the LIFO on the fast path.
    pub(super) free_hits: GuardedU64,
    pub(super) counts: Counts,
    pub(super) more: MoreCounts,
}

counts! {
    /// Counters of a list. Guarded as [`OwnPart`] is.
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
    /// Counters of an outgoing queue. Guarded as [`OwnPart`] is.
    OutgoingCounts for CacheNumbers {
        /// Objects that went into the queue, or straight to their list.
        remote_frees,
    }
}

counts! {
    /// The same, of this design alone.
    MoreOutgoing for SlqbNumbers { outgoing_flushes, outgoing_flushed, }
}

impl OwnPart {
    /// Resets it for a new cache.
    pub(super) fn begin(&self, limit: u32, link: usize) {
        self.lifo.set(ObjectList::EMPTY);
        self.limit.set(limit);
        self.link.set(link as u32);
        // Relaxed: the cache is not in use yet.
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

/// A CPU's outgoing queue: objects of one list's slabs, in transit to it. Guarded as [`OwnPart`]
/// is.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Outgoing {
    pub(super) queue: Chain,
    /// The list that they go to.
    pub(super) to: GuardedU32,
    /// The node of this CPU's last new slab, plus 1; 0 if it was the CPU's own: see `alloc.rs`.
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

/// The part of a CPU's or a node's list that other CPUs reach.
#[derive(Debug)]
#[repr(C)]
pub(super) struct List<K> {
    /// Guarded by the page lock.
    pub(super) slabs: CacheLine<Locked<K, SlabList>>,
    pub(super) incoming: Incoming<K>,
}

impl<K: RawLock> List<K> {
    fn new() -> Self {
        Self {
            slabs: CacheLine(Locked::new(SlabList::default())),
            incoming: Incoming::default(),
        }
    }

    /// Takes the page lock.
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

/// The state of a cache on a CPU.
#[derive(Debug)]
#[repr(C)]
pub(super) struct CpuState<K> {
    pub(super) own: OwnPart,
    pub(super) outgoing: Outgoing,
    pub(super) list: List<K>,
}

/// The state of a cache on a node.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NodeState<K> {
    /// Guarded by the list lock.
    pub(super) own: CacheLine<Locked<K, OwnPart>>,
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
            own: OwnPart::default(),
            outgoing: Outgoing::default(),
            list: List::new(),
        }
    }
}

impl<K: RawLock> NodeState<K> {
    pub(super) fn new() -> Self {
        Self {
            own: CacheLine(Locked::new(OwnPart::default())),
            list: List::new(),
        }
    }
}

/// A list whose [`OwnPart`] part the caller may use: its own CPU's, or a node's whose list lock it
/// holds.
#[derive(Debug)]
pub(super) struct HeldList<'a, K> {
    pub(super) own: &'a OwnPart,
    /// Only a CPU has one.
    pub(super) outgoing: Option<&'a Outgoing>,
    pub(super) list: &'a List<K>,
    /// Its number: see `Slqb2008::list`.
    pub(super) owner: u32,
}

impl<K> Clone for HeldList<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for HeldList<'_, K> {}
