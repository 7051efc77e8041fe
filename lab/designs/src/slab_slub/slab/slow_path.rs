//! The slow paths of SLAB: refill, flush, alien arrays, trims.
//!
//! **Lock order**: an alien array's lock, then a node's list lock. A CPU's array needs none: the
//! caller is pinned, with interrupts masked.

use core::ptr::NonNull;

use crate::slab_designs::Pins;
use brickyard_slab::design::{Backend, CacheInfo, Gone};
use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::{Held, RawLock};

use super::Slab2008;
use super::array::Array;
use super::lists::{CpuState, Lists};
use super::parameters::{ALIEN, ARRAY_MOST, COLD_BATCH, batch_of};

/// One call on the slow path.
#[derive(Debug)]
pub(super) struct SlowPath<'a, 'm, S, L, K> {
    slab: &'a Slab2008<'m, S, L, K>,
    backend: &'a Backend<'m, S, L>,
    info: &'a CacheInfo,
    gone: Gone,
}

impl<'a, 'm, S: PageSource + 'm, L: Pins + 'm, K: RawLock> SlowPath<'a, 'm, S, L, K> {
    /// Does `work`, then gives back the pages of empty slabs.
    pub(super) fn run<R>(
        slab: &'a Slab2008<'m, S, L, K>,
        backend: &'a Backend<'m, S, L>,
        info: &'a CacheInfo,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mut path = Self {
            slab,
            backend,
            info,
            gone: Gone::default(),
        };
        let done = work(&mut path);
        path.gone
            .each(&backend.pages, |head| backend.give_pages(info, head));
        done
    }

    /// Takes a node's list lock.
    fn lists(&self, node: usize) -> Option<Held<'a, K, Lists>> {
        let state = self.slab.states.node(node, self.info.id)?;
        Some(state.lists.0.lock(|| self.backend.relax()))
    }

    fn cpu(&self, cpu: usize) -> Option<&'a CpuState> {
        self.slab.states.cpu(cpu, self.info.id)
    }

    /// Returns an object: of `wanted`'s memory if a node is named, else near the caller; of any
    /// memory if there is none there.
    pub(super) fn alloc<C: Caller>(&mut self, wanted: Option<usize>) -> Option<NonNull<u8>> {
        let backend = self.backend;
        let wanted = wanted.filter(|&node| node < backend.nodes());
        let (node, colour) = {
            let inside = backend.inside::<C>();
            let node = wanted.unwrap_or_else(|| backend.node_of_cpu(inside.cpu));
            if let Some(state) = self.cpu(inside.cpu) {
                state.counts.misses.add(1);
            }
            let lists = self.lists(node)?;
            if let Some(object) = self.served(inside.cpu, node, &lists) {
                return Some(backend.pointer(object));
            }
            (node, lists.next_colour(self.info))
        };
        let object = self
            .grow::<C>(Some(node), colour)
            .or_else(|| self.elsewhere::<C>(node))
            .or_else(|| match backend.nodes() {
                1 => None,
                _ => self.grow::<C>(None, colour),
            });
        Some(backend.pointer(object?))
    }

    /// Takes an object of a node's lists, through the CPU's array if the node is its own.
    fn served(&self, cpu: usize, node: usize, lists: &Lists) -> Option<usize> {
        let (backend, info) = (self.backend, self.info);
        let own = backend.node_of_cpu(cpu) == node;
        let array = self.cpu(cpu).map(|state| &state.array);
        if let Some(array) = array.filter(|array| own && array.limit() > 0) {
            if array.avail() == 0 {
                let batch = match (batch_of(array.limit()), array.touched.get()) {
                    (batch, 0) => batch.min(COLD_BATCH),
                    (batch, _) => batch,
                };
                if !lists.claim(array, batch) {
                    lists.take(backend, info, batch, |object| array.push(object));
                }
            }
            return array.pop();
        }
        let mut taken = None;
        lists.take(backend, info, 1, |object| taken = Some(object));
        taken
    }

    /// Makes a slab, for the node whose memory it is, and takes an object under the same hold of
    /// the lock.
    fn grow<C: Caller>(&self, node: Option<usize>, colour: u32) -> Option<usize> {
        let (backend, info) = (self.backend, self.info);
        let pages = backend.take_pages_of::<C>(info, node)?;
        let first = backend.pages.address_of(pages.head());
        backend.make_objects(info, first + colour as usize);
        let node = backend.node_of(backend.pointer(first));
        let inside = backend.inside::<C>();
        let lists = self.lists(node)?;
        lists.add_slab(backend, info, pages.keep(), colour);
        self.served(inside.cpu, node, &lists)
    }

    /// Takes a free object of another node than `not`.
    fn elsewhere<C: Caller>(&self, not: usize) -> Option<usize> {
        let _inside = self.backend.inside::<C>();
        let others = (0..self.backend.nodes()).filter(|&node| node != not);
        others.into_iter().find_map(|node| {
            let mut taken = None;
            let lists = self.lists(node)?;
            lists.take(self.backend, self.info, 1, |object| taken = Some(object));
            taken
        })
    }

    /// Frees an object that the fast path refused.
    pub(super) fn free<C: Caller>(&mut self, object: NonNull<u8>) -> Result<(), FreeFault> {
        let backend = self.backend;
        backend.find(self.info, object)?;
        let address = object.as_ptr().expose_provenance();
        let home = backend.node_of(object);
        let inside = backend.inside::<C>();
        let near = backend.node_of_cpu(inside.cpu);
        let state = self.cpu(inside.cpu);
        if let Some(state) = state.filter(|state| state.array.limit() > 0) {
            if home == near {
                self.push(&state.array, near, address)?;
            } else {
                self.free_alien(near, home, address)?;
                state.counts.remote_frees.add(1);
            }
        } else {
            let lists = self.lists(home).ok_or(FreeFault::NotASlab)?;
            lists.put(backend, self.info, address, &mut self.gone)?;
        }
        if let Some(state) = state {
            state.counts.free_misses.add(1);
        }
        Ok(())
    }

    /// Adds an object to the CPU's array, which is flushed first if it is full.
    fn push(
        &mut self,
        array: &Array<ARRAY_MOST>,
        node: usize,
        object: usize,
    ) -> Result<(), FreeFault> {
        if array.newest() == Some(object) {
            return Err(FreeFault::DoubleFree);
        }
        if array.avail() == array.limit()
            && let Some(lists) = self.lists(node)
        {
            let batch = batch_of(array.limit());
            // If some fit into the shared array, that is all that is flushed.
            if lists.store(array, batch) == 0 {
                let objects = (0..batch).map_while(|_| array.pop_oldest());
                lists.put_all(self.backend, self.info, objects, &mut self.gone);
            }
        }
        array.push(object);
        Ok(())
    }

    /// Frees an object of another node's memory.
    fn free_alien(&mut self, near: usize, home: usize, object: usize) -> Result<(), FreeFault> {
        let backend = self.backend;
        let state = self.slab.states.node(near, self.info.id);
        let alien = state.and_then(|state| state.aliens.get(home));
        if let Some(alien) = alien {
            let alien = alien.0.lock(|| backend.relax());
            if alien.limit() > 0 {
                if alien.newest() == Some(object) {
                    return Err(FreeFault::DoubleFree);
                }
                if alien.avail() == alien.limit() {
                    self.drain_alien(&alien, home);
                }
                alien.push(object);
                return Ok(());
            }
        }
        let lists = self.lists(home).ok_or(FreeFault::NotASlab)?;
        lists.put(backend, self.info, object, &mut self.gone)
    }

    /// Sends the objects of an alien array home: to the shared array there, and the oldest, which
    /// do not fit, into their slabs.
    fn drain_alien(&mut self, alien: &Array<ALIEN>, home: usize) {
        if alien.avail() > 0
            && let Some(lists) = self.lists(home)
        {
            lists.receive(alien);
            let objects = core::iter::from_fn(|| alien.pop_oldest());
            lists.put_all(self.backend, self.info, objects, &mut self.gone);
        }
    }

    /// Does what a CPU does every two seconds: sends home the objects of one of its node's alien
    /// arrays, gives back a part of its own array if it was not used since the last time, and in
    /// every second turn a part of what its node has.
    pub(super) fn trim<C: Caller>(&mut self) {
        let backend = self.backend;
        let inside = backend.inside::<C>();
        let node = backend.node_of_cpu(inside.cpu);
        let Some(state) = self.cpu(inside.cpu) else {
            return;
        };
        let home = state.reaped.get() as usize % backend.nodes();
        state.reaped.set((home as u32 + 1) % backend.nodes() as u32);
        self.send_home(node, home);
        let idle = state.array.idle();
        let cpus = self.slab.cpus_of(backend, node);
        if let Some(lists) = self.lists(node) {
            if idle > 0 {
                let objects = (0..idle).map_while(|_| state.array.pop_oldest());
                lists.put_all(backend, self.info, objects, &mut self.gone);
            }
            lists.trim(backend, self.info, cpus, &mut self.gone);
        }
    }

    /// Drains the alien array of `node` for the memory of `home`.
    fn send_home(&mut self, node: usize, home: usize) {
        let backend = self.backend;
        let state = self.slab.states.node(node, self.info.id);
        if let Some(alien) = state.and_then(|state| state.aliens.get(home)) {
            let alien = alien.0.lock(|| backend.relax());
            self.drain_alien(&alien, home);
        }
    }

    /// Gives back all objects of this CPU's array.
    pub(super) fn drain<C: Caller>(&mut self) {
        let backend = self.backend;
        let inside = backend.inside::<C>();
        let Some(state) = self.cpu(inside.cpu) else {
            return;
        };
        if state.array.avail() > 0
            && let Some(lists) = self.lists(backend.node_of_cpu(inside.cpu))
        {
            let objects = core::iter::from_fn(|| state.array.pop_oldest());
            lists.put_all(backend, self.info, objects, &mut self.gone);
        }
    }

    /// Gives back all objects of arrays that CPUs share, and all empty slabs.
    pub(super) fn shrink<C: Caller>(&mut self) {
        let backend = self.backend;
        for node in 0..backend.nodes() {
            let _inside = backend.inside::<C>();
            for home in 0..backend.nodes() {
                self.send_home(node, home);
            }
        }
        for node in 0..backend.nodes() {
            let _inside = backend.inside::<C>();
            if let Some(lists) = self.lists(node) {
                let objects = core::iter::from_fn(|| lists.shared.pop_oldest());
                lists.put_all(backend, self.info, objects, &mut self.gone);
                lists.give_free(backend, self.info, u32::MAX, &mut self.gone);
            }
        }
    }
}
