//! `slqb-2008`: Nick Piggin's queued slab allocator, as it was designed in 2008 and 2009. Free
//! objects are linked through themselves.
//!
//! A **CPU** has, for each cache: a LIFO of free objects in its own node's memory, whichever list
//! owns their slabs; partial slabs, guarded by a page lock; a queue of remotely freed objects,
//! which other CPUs fill, with a lock of its own, and a check flag, which is set when a batch waits
//! there; and an outgoing queue of objects that all go to one list. A **node** has the same under a
//! list lock, without an outgoing queue, for requests that name it, for CPUs beyond the plan, and
//! for CPUs whose own node has no memory. A slab belongs to one list for its whole life.
//!
//! | | |
//! |---|---|
//! | batch (freebatch) | `max(4 * page / size, min(256, 64 * page / size))`, at least 1 |
//! | high-water mark (hiwater) | four batches |
//! | slabs | order 0, or else 1, if at most a quarter is wasted; else the smallest order that holds an object |
//!
//! **Allocation**: the LIFO's head ([`SlabDesign::hit`]); else, if the check flag is set, the whole
//! incoming queue is appended to the LIFO, and a batch is flushed if the LIFO is then above the
//! mark; else one object of a partial slab; else a new slab, linked in address order starting at
//! its colour, for the list of the CPU or node whose memory it is; else objects from other nodes'
//! lists.
//!
//! **Free**: an object of the CPU's node goes onto its LIFO. Above the mark a batch is flushed from
//! the head: objects of the list's own slabs go back into them, the others to the outgoing queue.
//! An object of another node goes to the outgoing queue, which is sent when it holds a batch, or
//! when its destination changes: it is appended to the destination's incoming queue, or put
//! straight into slabs if more than half the mark already waits there. The pages of a slab are
//! given back as soon as its last object is back. Fewer objects than a batch stay in an incoming
//! queue until the next trim, and a request that finds no memory does not look there: the original
//! design has this property too.
//!
//! **Checks.** A free checks that an object of the cache begins at the address, since the link is
//! written there (1.5 ns on a 2.6 GHz Zen 5 core). A double free is detected if nothing else was
//! freed to the same place since. Links are encoded ([`FreePointers`]); an overwritten one is
//! reported ([`Finding`](brickyard_slab::Finding)), and the objects behind it are left out for good
//! ([`SlqbNumbers::lost`]). A hit checks only that the next address is in a slab of the cache; code
//! that walks a list checks that an object begins there. Objects of checked caches are in no queue:
//! each operation goes to a slab. Where an object's bytes have to last while it is free (a
//! constructor's, poison), the link takes 8 or 16 bytes more per object.
//!
//! | file | what it holds |
//! |---|---|
//! | `queue.rs` | linked objects, and the queue between CPUs |
//! | `links.rs` | links in objects |
//! | `slabs.rs` | slabs under a page lock |
//! | `lists.rs` | the state of a cache on a CPU and on a node, its size, and its counters |
//! | `state.rs` | that state for all caches |
//! | `slow_path.rs` | the slow path: lock order, claims, flushes |
//! | `alloc.rs`, `free.rs` | the slow paths of allocation and free |
//! | `parameters.rs` | the design's constants |
//! | `mod.rs` | the fast paths and the [`SlabDesign`] implementation |
//!
//! It is a [`SlabDesign`] of [`brickyard_slab`]: the page source and all features of caches are
//! that library's.
//!
//! It cannot be used where callers are not kept on their CPU ([`Pins`]), with restartable sequences
//! for instance:
//! ```
//! # use brickyard_slab::{Local, PageSource, Pinned, SlabDesign};
//! # use brickyard_designs::slqb::{Pins, Slqb2008};
//! # fn is_a_design<'m, D: SlabDesign<'m>>() {}
//! fn pinned<'m, S: PageSource + 'm, L: Pins + 'm>() {
//!     is_a_design::<Slqb2008<'m, S, L>>();
//! }
//! ```
//! ```compile_fail,E0277
//! # use brickyard_slab::{Local, PageSource, Pinned, SlabDesign};
//! # use brickyard_designs::slqb::{Pins, Slqb2008};
//! # fn is_a_design<'m, D: SlabDesign<'m>>() {}
//! fn unpinned<'m, S: PageSource + 'm, L: Local + 'm>() {
//!     is_a_design::<Slqb2008<'m, S, L>>();
//! }
//! ```

mod alloc;
mod free;
mod links;
mod lists;
mod parameters;
pub mod queue;
mod slabs;
mod slow_path;
mod state;

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard_slab::design::{BackendOf, CacheInfo, Footprint, Inside, Whereabouts};
use brickyard_slab::geometry::{Geometry, ShapeError};
use brickyard_slab::sizes::{MAX_GENERAL, aligned, name_of};
use brickyard_slab::{
    CacheId, CacheNumbers, CacheSpec, Caller, Everywhere, FreeFault, PageSource, Rows, SlabDesign,
    SlabPlan,
};
use brickyard_sync::RawLock;
use links::{Encoding, ObjectLinks, link_of};
use lists::{CpuState, NodeState};
use parameters::order_for;
use slabs::owner_of;
use slow_path::SlowPath;

pub use links::{Encoded, FreePointers, Plain};
pub use parameters::{Marks, POWERS};
pub use slabs::SlqbNumbers;
pub use state::Slqb2008;

pub use crate::slab_designs::Pins;
use crate::slab_designs::{CacheStates, by_slow_path, bytes_for_link};

impl<S, L: Pins, K: RawLock, F> Slqb2008<'_, S, L, K, F> {
    /// Returns this design's counters of a cache. `local` is
    /// [`Slabs::local`](brickyard_slab::Slabs::local) of the same slabs. Takes the locks of each
    /// CPU's and node's list in turn.
    #[must_use]
    pub fn counts(&self, local: &L, cache: CacheId) -> SlqbNumbers {
        let mut more = SlqbNumbers::default();
        self.add_up(local, cache, (&mut CacheNumbers::default(), &mut more));
        more
    }

    fn add_up(
        &self,
        local: &L,
        cache: CacheId,
        (numbers, more): (&mut CacheNumbers, &mut SlqbNumbers),
    ) {
        for state in self.states.each_cpu(cache) {
            // Other CPUs' counts, as of this moment.
            state.own.add_to(numbers, more);
            state.outgoing.add_to(numbers, more);
            let _inside = Inside::new::<Everywhere>(local);
            state.list.add_to((numbers, more), || local.relax());
        }
        for state in self.states.each_node(cache) {
            let _inside = Inside::new::<Everywhere>(local);
            state.own.0.lock(|| local.relax()).add_to(numbers, more);
            state.list.add_to((numbers, more), || local.relax());
        }
    }
}

#[allow(unsafe_code, reason = "typed caches write into what is handed out")]
// SAFETY: `list-in-one-place`: an object popped from a list is in no list from then on; it was an
// object of the cache when it was pushed, and links are followed only to objects of the cache.
// `partial-list`: pages go back with the last object, and the page lock is held where a slab ends
// and during `look`'s callback. `open` resets all queues of a cache number.
unsafe impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers> SlabDesign<'m>
    for Slqb2008<'m, S, L, K, F>
{
    type Source = S;
    type Local = L;

    const NAME: &'static str = "slqb-2008";
    const SIZES: &'static [u32] = &POWERS;

    const FOOTPRINT: Footprint = CacheStates::<'m, CpuState<K>, NodeState<K>>::FOOTPRINT;

    fn new(
        plan: &SlabPlan,
        _: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        let at = memory.as_ptr().addr();
        Some(Self {
            states: CacheStates::new(plan, memory, CpuState::new, NodeState::new)?,
            encoding: Encoding::of(at),
            over: PhantomData,
        })
    }

    #[inline]
    fn class_of(layout: Layout) -> Option<usize> {
        if layout.size() > MAX_GENERAL || layout.align() > MAX_GENERAL {
            return None;
        }
        let mut class = 0;
        while (POWERS[class] as usize) < layout.size() {
            class += 1;
        }
        aligned(&POWERS, class, layout.align())
    }

    fn size_name(size: u32) -> &'static str {
        match size {
            8 => "general-8",
            _ => name_of(size),
        }
    }

    fn tail_of(spec: &CacheSpec) -> usize {
        bytes_for_link(spec)
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        let rules = (size_of::<usize>(), usize::MAX);
        let order = |stride| order_for(stride, page_bytes);
        Geometry::by(size, align, page_bytes, rules, order)
    }

    fn open(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
        let link = link_of(info);
        debug_assert!(link.is_multiple_of(size_of::<usize>()), "links are aligned");
        let limit = if info.is_checked() {
            0
        } else {
            Marks::of(&info.geometry, 1 << backend.source.page_shift()).high
        };
        let _inside = backend.inside::<Everywhere>();
        for state in self.states.each_cpu(info.id) {
            state.own.begin(limit, link);
            state.outgoing.begin();
            state.list.slabs(|| backend.relax()).begin();
        }
        for state in self.states.each_node(info.id) {
            state.own.0.lock(|| backend.relax()).begin(limit, link);
            state.list.slabs(|| backend.relax()).begin();
        }
    }

    #[inline(always)]
    fn hit<C: Caller>(&self, backend: &BackendOf<'m, Self>, handle: usize) -> Option<NonNull<u8>> {
        let inside = backend.inside::<C>();
        let cache = handle as CacheId;
        let own = &self.states.cpu(inside.cpu, cache)?.own;
        let object = own.lifo.head();
        if object == 0 {
            return None;
        }
        // SAFETY: `link-is-ours`: the objects in this CPU's LIFO belong to the caller.
        let next = unsafe { self.encoding.read(object + own.link.get() as usize) };
        let left = own.lifo.count() - 1;
        let in_cache = |next: usize| {
            let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(next));
            let found = pointer.map(|pointer| backend.pages.cache_of(pointer));
            found == Some(cache) && next.is_multiple_of(size_of::<usize>())
        };
        if !queue::is_plausible(left, next, in_cache) {
            // The slow path finds it again, and reports it.
            return None;
        }
        own.lifo.set_front(next, left);
        own.hits.add(1);
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
        if backend.find(info, object).is_err() {
            return false;
        }
        let address = object.as_ptr().expose_provenance();
        let inside = backend.inside::<C>();
        let Some(state) = self.states.cpu(inside.cpu, cache) else {
            return false;
        };
        let own = &state.own;
        let mut lifo = own.lifo.list();
        if lifo.count >= own.limit.get() || lifo.head == address {
            return false;
        }
        if backend.nodes() > 1 && backend.node_of(object) != backend.node_of_cpu(inside.cpu) {
            return false;
        }
        let links = ObjectLinks {
            backend,
            info,
            link: own.link.get() as usize,
            encoding: self.encoding,
        };
        lifo.push(&links, address);
        own.lifo.set(lifo);
        own.free_hits.add(1);
        true
    }

    by_slow_path!(SlowPath::run::<C, _>);

    fn trim<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
        SlowPath::run::<C, _>(self, backend, info, SlowPath::trim::<C>);
    }

    fn numbers(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo, numbers: &mut CacheNumbers) {
        let more = &mut SlqbNumbers::default();
        self.add_up(&backend.local, info.id, (numbers, more));
    }

    fn look<R>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R> {
        let record = backend.pages.record(head);
        let owner = owner_of(record).get();
        let (list, _) = self.list(owner as u32, info.id)?;
        let links = ObjectLinks {
            backend,
            info,
            link: link_of(info),
            encoding: self.encoding,
        };
        let _inside = backend.inside::<Everywhere>();
        let slabs = list.slabs(|| backend.relax());
        // `owner-before-cache`: under the lock, a slab of the cache with this owner is this list's,
        // and it cannot end under any other lock.
        if !backend.pages.begins(head, info.id) || owner_of(record).get() != owner {
            return None;
        }
        let place = backend.place_of(info, head, index);
        let whereabouts = if slabs.has(links, head, place.addr().get()) {
            Whereabouts::InSlab
        } else {
            Whereabouts::Out
        };
        Some(look(place, whereabouts))
    }
}
