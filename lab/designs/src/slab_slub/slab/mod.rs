//! SLAB of Linux 2.6.28: state, fast paths and the design for slabs.

#![allow(unsafe_code, reason = "the contract with slabs")]

mod array;
mod indices;
mod lists;
mod parameters;
mod slow_path;

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::slab_designs::{CacheStates, Pins, by_slow_path};
use brickyard_slab::design::{Backend, BackendOf, CacheInfo, Footprint, Inside, Whereabouts};
use brickyard_slab::geometry::{Geometry, ShapeError};
use brickyard_slab::{
    CacheId, CacheNumbers, Caller, Everywhere, FreeFault, PageSource, Rows, SlabDesign, SlabPlan,
};
use brickyard_sync::{RawLock, TicketLock};
use indices::Indices;
use lists::{CpuState, Limits, NodeState};
use parameters::ALIEN;
use slow_path::SlowPath;

/// SLAB of Linux 2.6.28: see the [crate]. Its state is in the caller's memory. Every CPU has room
/// for the longest array, and every node for eight alien arrays, whatever the objects' size; see
/// [`Slab2008::linux_bytes`].
#[derive(Debug)]
pub struct Slab2008<'m, S, L, K = TicketLock> {
    states: CacheStates<'m, CpuState, NodeState<K>>,
    over: PhantomData<fn() -> (S, L)>,
}

impl<'m, S: PageSource, L: Pins, K> Slab2008<'m, S, L, K> {
    /// Returns how many CPUs with arrays are nearest to a node.
    fn cpus_of(&self, backend: &Backend<'m, S, L>, node: usize) -> u32 {
        let near = |&cpu: &usize| backend.node_of_cpu(cpu) == node;
        (0..self.states.cpus()).filter(near).count() as u32
    }

    /// Returns the bytes that Linux allocates for the arrays of a cache with objects of `size`
    /// bytes: a head of 24 bytes and 8 bytes for each entry of a CPU's array, of a node's shared
    /// one (which there is on more than one CPU), and of an array for each ordered pair of nodes;
    /// and 128 bytes for a node's lists.
    #[must_use]
    pub const fn linux_bytes(size: usize, page_bytes: usize, cpus: usize, nodes: usize) -> usize {
        const HEAD: usize = 24;
        const LISTS: usize = 128;
        const fn array(entries: usize) -> usize {
            HEAD + 8 * entries
        }
        let own = array(parameters::limit_of(size, page_bytes) as usize);
        let shared = match parameters::shared_of(size, page_bytes, cpus) {
            0 => 0,
            entries => array(entries as usize),
        };
        let aliens = nodes * (nodes - 1) * array(ALIEN);
        cpus * own + nodes * (LISTS + shared) + aliens
    }
}

// SAFETY: an object popped from an array or a slab's indices is in neither from then on, and was
// put there by the caller that freed it. `slab-on-one-list`: pages go back when all indices are in
// their slab and it is on no list; `look` holds the lock under which that happens. `open` resets
// all arrays of a cache's number; `shrink` and `drain` leave them empty.
unsafe impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock> SlabDesign<'m>
    for Slab2008<'m, S, L, K>
{
    type Source = S;
    type Local = L;

    const NAME: &'static str = "slab-2008";

    const FOOTPRINT: Footprint = CacheStates::<'m, CpuState, NodeState<K>>::FOOTPRINT;

    fn new(
        plan: &SlabPlan,
        _: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        Some(Self {
            states: CacheStates::new(plan, memory, CpuState::new, NodeState::new)?,
            over: PhantomData,
        })
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        parameters::shape(size, align, page_bytes)
    }

    fn open(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
        let limits = Limits::of(info, 1 << backend.source.page_shift(), self.states.cpus());
        let _inside = backend.inside::<Everywhere>();
        for state in self.states.each_cpu(info.id) {
            state.begin(limits.array);
        }
        for node in 0..backend.nodes() {
            let Some(state) = self.states.node(node, info.id) else {
                continue;
            };
            let cpus = self.cpus_of(backend, node);
            let lists = state.lists.0.lock(|| backend.relax());
            lists.begin(info, limits, cpus);
            drop(lists);
            for alien in &state.aliens {
                alien.0.lock(|| backend.relax()).begin(limits.alien);
            }
        }
    }

    #[inline(always)]
    fn hit<C: Caller>(&self, backend: &BackendOf<'m, Self>, handle: usize) -> Option<NonNull<u8>> {
        let inside = backend.inside::<C>();
        let object = self
            .states
            .cpu(inside.cpu, handle as CacheId)?
            .array
            .pop()?;
        Some(backend.pointer(object))
    }

    #[inline(always)]
    unsafe fn put<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        let address = object.as_ptr().expose_provenance();
        let inside = backend.inside::<C>();
        let Some(state) = self.states.cpu(inside.cpu, handle as CacheId) else {
            return false;
        };
        if backend.nodes() > 1 && backend.node_of(object) != backend.node_of_cpu(inside.cpu) {
            return false;
        }
        state.array.try_push(address)
    }

    by_slow_path!(SlowPath::run);

    fn trim<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
        SlowPath::run(self, backend, info, SlowPath::trim::<C>);
    }

    fn numbers(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo, numbers: &mut CacheNumbers) {
        for state in self.states.each_cpu(info.id) {
            // Other CPUs' counts, as of this moment.
            numbers.queued += u64::from(state.array.avail());
            state.counts.add_to(numbers);
        }
        for state in self.states.each_node(info.id) {
            let _inside = Inside::new::<Everywhere>(&backend.local);
            state.lists.0.lock(|| backend.relax()).add_to(numbers);
            for alien in &state.aliens {
                let alien = alien.0.lock(|| backend.relax());
                numbers.queued += u64::from(alien.avail());
            }
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
        let first = backend.pointer(backend.pages.address_of(head));
        let state = self.states.node(backend.node_of(first), info.id)?;
        let _inside = backend.inside::<Everywhere>();
        let _lists = state.lists.0.lock(|| backend.relax());
        if !backend.pages.begins(head, info.id) {
            return None;
        }
        let whereabouts = match Indices::of(backend, info, head).has(index as u32) {
            true => Whereabouts::InSlab,
            false => Whereabouts::Out,
        };
        Some(look(backend.place_of(info, head, index), whereabouts))
    }
}
