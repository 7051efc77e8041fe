//! SLUB of Linux 2.6.28: state, fast paths and the design for slabs.

#![allow(unsafe_code, reason = "the contract with slabs")]

mod parameters;
mod record;
mod slow_path;

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::slab_designs::{CacheStates, Pins, by_slow_path, bytes_for_link};
use brickyard_slab::design::{BackendOf, CacheInfo, Footprint, Inside, Whereabouts};
use brickyard_slab::geometry::{Geometry, ShapeError};
use brickyard_slab::{
    CacheId, CacheNumbers, CacheSpec, Caller, Everywhere, FreeFault, PageSource, Rows, SlabDesign,
    SlabPlan, counts,
};
use brickyard_sync::{AtomicU64, GuardedU32, GuardedU64, Locked, Ordering, RawLock, TicketLock};
use record::{HeldSlab, Links};
use slow_path::SlowPath;

use crate::slab_slub::slab_list::SlabChain;

/// SLUB of Linux 2.6.28: see the [crate]. Its state is in the caller's memory, a cache line per
/// cache for each CPU and each node.
#[derive(Debug)]
pub struct Slub2008<'m, S, L, K = TicketLock> {
    states: CacheStates<'m, CpuState, NodeState<K>>,
    over: PhantomData<fn() -> (S, L)>,
}

/// A CPU's part of a cache: only the CPU touches it, pinned, with interrupts masked.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct CpuState {
    /// The CPU's slab, as page number + 1; 0 if it has none.
    slab: GuardedU32,
    /// Objects in the chain.
    count: GuardedU32,
    /// The chain's first object; 0 if there is none.
    first: GuardedU64,
    /// Offset of the link in an object.
    link: GuardedU32,
    counts: CpuCounts,
}

counts! {
    /// Counters of a CPU.
    CpuCounts for CacheNumbers { misses, filled, flushes, flushed, }
}

/// What a node has of a cache.
#[derive(Debug)]
#[repr(C, align(64))]
struct NodeState<K> {
    /// Slabs with free objects that are no CPU's.
    partial: Locked<K, SlabChain>,
    slabs_new: AtomicU64,
    slabs_gone: AtomicU64,
}

impl CpuState {
    fn begin(&self, links: Links) {
        self.clear();
        self.link.set(links.0 as u32);
        self.counts.begin();
    }

    /// Gives up slab and chain, which is empty.
    fn clear(&self) {
        self.slab.set(0);
        self.set_chain(0, 0);
    }

    #[inline(always)]
    fn slab(&self) -> Option<usize> {
        (self.slab.get() as usize).checked_sub(1)
    }

    fn set_slab(&self, head: usize) {
        self.slab.set(head as u32 + 1);
    }

    #[inline(always)]
    fn first(&self) -> usize {
        self.first.get() as usize
    }

    fn set_chain(&self, first: usize, count: u32) {
        self.first.set(first as u64);
        self.count.set(count);
    }

    #[inline(always)]
    fn pop(&self) -> Option<usize> {
        self.pop_by(Links(self.link.get() as usize))
    }

    #[inline(always)]
    fn pop_by(&self, links: Links) -> Option<usize> {
        let object = self.first();
        if object == 0 {
            return None;
        }
        self.set_chain(links.next(object), self.count.get() - 1);
        Some(object)
    }

    #[inline(always)]
    fn push(&self, links: Links, object: usize) {
        links.set_next(object, self.first());
        self.set_chain(object, self.count.get() + 1);
    }
}

impl<K: RawLock> NodeState<K> {
    fn new() -> Self {
        Self {
            partial: Locked::new(SlabChain::default()),
            slabs_new: AtomicU64::new(0),
            slabs_gone: AtomicU64::new(0),
        }
    }
}

// SAFETY: an object popped from a chain or a slab is in neither from then on, and was put there by
// the caller that freed it. `slab-under-its-lock`: pages go back when all objects are in their slab
// and it is neither frozen nor on a list; `look` holds its lock. `open` resets all CPUs' parts of a
// cache's number; objects of a CPU's chain count as out.
unsafe impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock> SlabDesign<'m>
    for Slub2008<'m, S, L, K>
{
    type Source = S;
    type Local = L;

    const NAME: &'static str = "slub-2008";

    const FOOTPRINT: Footprint = CacheStates::<'m, CpuState, NodeState<K>>::FOOTPRINT;

    fn new(
        plan: &SlabPlan,
        _: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        Some(Self {
            states: CacheStates::new(plan, memory, CpuState::default, NodeState::new)?,
            over: PhantomData,
        })
    }

    fn tail_of(spec: &CacheSpec) -> usize {
        bytes_for_link(spec)
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        parameters::shape(size, align, page_bytes)
    }

    fn open(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
        let _inside = backend.inside::<Everywhere>();
        for state in self.states.each_cpu(info.id) {
            state.begin(Links::of(info));
        }
        for state in self.states.each_node(info.id) {
            // Relaxed: nobody uses the cache yet.
            state.slabs_new.store(0, Ordering::Relaxed);
            state.slabs_gone.store(0, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn hit<C: Caller>(&self, backend: &BackendOf<'m, Self>, handle: usize) -> Option<NonNull<u8>> {
        let inside = backend.inside::<C>();
        let object = self.states.cpu(inside.cpu, handle as CacheId)?.pop()?;
        Some(backend.pointer(object))
    }

    #[inline(always)]
    unsafe fn put<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        let cache = handle as CacheId;
        // A link is about to be written: there must be an object.
        let Some(info) = backend.info(cache) else {
            return false;
        };
        let Ok((head, _)) = backend.find(info, object) else {
            return false;
        };
        let address = object.as_ptr().expose_provenance();
        let inside = backend.inside::<C>();
        let Some(state) = self.states.cpu(inside.cpu, cache) else {
            return false;
        };
        if state.slab() != Some(head) || state.first() == address {
            return false;
        }
        state.push(Links(state.link.get() as usize), address);
        true
    }

    by_slow_path!(SlowPath::run);

    /// Does nothing: SLUB has no periodic work.
    fn trim<C: Caller>(&self, _: &BackendOf<'m, Self>, _: &CacheInfo) {}

    /// Looks at the pages of the source until it has seen all slabs: what is out of a slab is
    /// counted in the slab alone.
    fn numbers(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo, numbers: &mut CacheNumbers) {
        for state in self.states.each_cpu(info.id) {
            // Other CPUs' counts, as of this moment.
            numbers.queued += u64::from(state.count.get());
            state.counts.add_to(numbers);
        }
        for state in self.states.each_node(info.id) {
            let _inside = Inside::new::<Everywhere>(&backend.local);
            let partial = state.partial.lock(|| backend.relax());
            numbers.partial_slabs += u64::from(partial.count());
            // Relaxed, both: counts.
            let (new, gone) = (&state.slabs_new, &state.slabs_gone);
            let gone = gone.load(Ordering::Relaxed);
            let new = new.load(Ordering::Relaxed);
            numbers.slabs_new += new;
            numbers.slabs_gone += gone;
            numbers.slabs += new.saturating_sub(gone);
        }
        let mut left = numbers.slabs;
        let mut head = 0;
        while left > 0 && head < backend.pages.count() {
            if !backend.pages.begins(head, info.id) {
                head += 1;
                continue;
            }
            let _inside = Inside::new::<Everywhere>(&backend.local);
            let slab = HeldSlab::lock(&backend.pages, head, || backend.relax());
            if backend.pages.begins(head, info.id) {
                numbers.out += u64::from(slab.out());
            }
            left -= 1;
            head += info.geometry.order.frames();
        }
    }

    fn look<R>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R> {
        let _inside = backend.inside::<Everywhere>();
        let slab = HeldSlab::lock(&backend.pages, head, || backend.relax());
        if !backend.pages.begins(head, info.id) {
            return None;
        }
        let place = backend.place_of(info, head, index);
        let whereabouts = match slab.has(Links::of(info), place.addr().get()) {
            true => Whereabouts::InSlab,
            false => Whereabouts::Out,
        };
        Some(look(place, whereabouts))
    }
}
