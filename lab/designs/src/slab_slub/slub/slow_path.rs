//! The slow paths of SLUB: a new slab for a CPU, and objects freed into slabs.
//!
//! **Lock order**: a slab's lock, then the lock of a node's list. The other way round a slab's lock
//! is only tried.

use core::ptr::NonNull;

use crate::slab_designs::Pins;
use brickyard_slab::design::{Backend, CacheInfo, Gone};
use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::{Held, Ordering, RawLock};

use super::parameters::partial_least;
use super::record::{HeldSlab, Links};
use super::{CpuState, NodeState, Slub2008};
use crate::slab_slub::slab_list::{ListEnd, SlabChain};

/// One call on the slow path.
#[derive(Debug)]
pub(super) struct SlowPath<'a, 'm, S, L, K> {
    slub: &'a Slub2008<'m, S, L, K>,
    backend: &'a Backend<'m, S, L>,
    info: &'a CacheInfo,
    links: Links,
    gone: Gone,
}

impl<'a, 'm, S: PageSource + 'm, L: Pins + 'm, K: RawLock> SlowPath<'a, 'm, S, L, K> {
    /// Does `work`, then gives back the pages of empty slabs.
    pub(super) fn run<R>(
        slub: &'a Slub2008<'m, S, L, K>,
        backend: &'a Backend<'m, S, L>,
        info: &'a CacheInfo,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mut path = Self {
            slub,
            backend,
            info,
            links: Links::of(info),
            gone: Gone::default(),
        };
        let done = work(&mut path);
        path.gone
            .each(&backend.pages, |head| backend.give_pages(info, head));
        done
    }

    /// Returns the CPU's state. Checked caches are used without: the record of which objects are
    /// free is then in the slabs alone.
    fn cpu(&self, cpu: usize) -> Option<&'a CpuState> {
        let state = self.slub.states.cpu(cpu, self.info.id);
        state.filter(|_| !self.info.is_checked())
    }

    fn node_of(&self, head: usize) -> Option<&'m NodeState<K>> {
        self.slub.states.node(self.home(head), self.info.id)
    }

    /// Returns the node that a page belongs to.
    fn home(&self, head: usize) -> usize {
        let first = self.backend.pages.address_of(head);
        self.backend.node_of(self.backend.pointer(first))
    }

    fn partial(&self, node: &'m NodeState<K>) -> Held<'m, K, SlabChain> {
        node.partial.lock(|| self.backend.relax())
    }

    fn lock(&self, head: usize) -> HeldSlab<'m> {
        HeldSlab::lock(&self.backend.pages, head, || self.backend.relax())
    }

    /// Returns an object: of `wanted`'s memory if a node is named, else near the caller; of any
    /// memory if there is none there.
    pub(super) fn alloc<C: Caller>(&mut self, wanted: Option<usize>) -> Option<NonNull<u8>> {
        let backend = self.backend;
        let wanted = wanted.filter(|&node| node < backend.nodes());
        let node = {
            let inside = backend.inside::<C>();
            let node = wanted.unwrap_or_else(|| backend.node_of_cpu(inside.cpu));
            let cpu = self.cpu(inside.cpu);
            if let Some(cpu) = cpu {
                cpu.counts.misses.add(1);
                if wanted.is_some() && cpu.slab().is_some_and(|head| self.home(head) != node) {
                    self.leave(cpu);
                }
            }
            let object = self.served(cpu, node);
            let object = object.or_else(|| match wanted {
                None => self.spare(node),
                Some(_) => None,
            });
            if let Some(object) = object {
                return Some(backend.pointer(object));
            }
            node
        };
        let object = self
            .grow::<C>(Some(node))
            .or_else(|| {
                let _inside = backend.inside::<C>();
                (0..backend.nodes()).find_map(|node| self.single(node, 0))
            })
            .or_else(|| match backend.nodes() {
                1 => None,
                _ => self.grow::<C>(None),
            });
        Some(backend.pointer(object?))
    }

    /// Takes an object: of the CPU's slab, into which others may have freed some; or of the next
    /// partial slab of the node, which becomes the CPU's.
    fn served(&mut self, cpu: Option<&CpuState>, node: usize) -> Option<usize> {
        let Some(cpu) = cpu else {
            return self.single(node, 0);
        };
        // An interrupt may have filled it since the fast path looked.
        if let Some(object) = cpu.pop() {
            return Some(object);
        }
        if let Some(head) = cpu.slab() {
            let slab = self.lock(head);
            if slab.first() != 0 {
                self.fetch(cpu, &slab);
                return cpu.pop();
            }
            drop(slab);
            self.leave(cpu);
        }
        let slab = self.next_partial(node, 0)?;
        slab.set_frozen(true);
        cpu.set_slab(slab.head());
        self.fetch(cpu, &slab);
        cpu.pop()
    }

    /// Moves all free objects of the CPU's slab to its chain.
    fn fetch(&self, cpu: &CpuState, slab: &HeldSlab<'_>) {
        let objects = self.info.geometry.objects;
        cpu.set_chain(slab.first(), objects - slab.out());
        cpu.counts.filled.add(u64::from(objects - slab.out()));
        slab.set_first(0);
        slab.set_out(objects);
    }

    /// Takes a partial slab off a node's list, if there are more than `least`, and locks it.
    fn next_partial(&self, node: usize, least: u32) -> Option<HeldSlab<'m>> {
        let pages = &self.backend.pages;
        let state = self.slub.states.node(node, self.info.id)?;
        let partial = self.partial(state);
        if partial.count() <= least {
            return None;
        }
        let mut at = partial.first();
        while let Some(head) = at {
            if let Some(slab) = HeldSlab::try_lock(pages, head) {
                partial.remove(pages, head);
                return Some(slab);
            }
            at = partial.after(pages, head);
        }
        None
    }

    /// Takes one object of a partial slab, for a caller that keeps no slab.
    fn single(&mut self, node: usize, least: u32) -> Option<usize> {
        let slab = self.next_partial(node, least)?;
        let object = slab.first();
        slab.set_first(self.links.next(object));
        slab.set_out(slab.out() + 1);
        if slab.first() != 0 {
            self.list(&slab, ListEnd::Front);
        }
        Some(object)
    }

    /// Takes an object of another node that has more partial slabs than it keeps. (Linux does so
    /// nearly always, by dice, and makes the slab the CPU's own.)
    fn spare(&mut self, not: usize) -> Option<usize> {
        let least = partial_least(self.info.geometry.stride as usize);
        let mut others = (0..self.backend.nodes()).filter(|&node| node != not);
        others.find_map(|node| self.single(node, least))
    }

    /// Puts a slab that is not frozen on its node's list.
    fn list(&self, slab: &HeldSlab<'_>, end: ListEnd) {
        if let Some(node) = self.node_of(slab.head()) {
            self.partial(node)
                .add(&self.backend.pages, slab.head(), end);
        }
    }

    /// Ends an empty slab that is on no list.
    fn end(&mut self, slab: &HeldSlab<'_>) {
        let (pages, head) = (&self.backend.pages, slab.head());
        pages.end(head, self.info.geometry.order.frames());
        if let Some(node) = self.node_of(head) {
            // Relaxed: a count.
            node.slabs_gone.fetch_add(1, Ordering::Relaxed);
        }
        self.gone.push(pages, head);
    }

    /// Gives up the CPU's slab, with what is in its chain. It goes to the front of the node's list
    /// if the chain had objects, since these are in the CPU's cache. An empty slab ends if the node
    /// has enough partial ones.
    fn leave(&mut self, cpu: &CpuState) {
        let Some(head) = cpu.slab() else { return };
        let slab = self.lock(head);
        let mut end = ListEnd::Back;
        while let Some(object) = cpu.pop_by(self.links) {
            slab.push(self.links, object);
            cpu.counts.flushed.add(1);
            end = ListEnd::Front;
        }
        cpu.clear();
        cpu.counts.flushes.add(1);
        slab.set_frozen(false);
        let least = partial_least(self.info.geometry.stride as usize);
        let Some(node) = self.node_of(head) else {
            return;
        };
        if slab.out() > 0 {
            if slab.first() != 0 {
                self.list(&slab, end);
            }
        } else if self.partial(node).count() < least {
            self.list(&slab, ListEnd::Back);
        } else {
            self.end(&slab);
        }
    }

    /// Makes a slab, which becomes the CPU's, and takes an object of it.
    fn grow<C: Caller>(&mut self, node: Option<usize>) -> Option<usize> {
        let (backend, info) = (self.backend, self.info);
        let (stride, objects) = (info.geometry.stride as usize, info.geometry.objects);
        let pages = backend.take_pages_of::<C>(info, node)?;
        let first = backend.pages.address_of(pages.head());
        backend.make_objects(info, first);
        for index in 0..objects as usize {
            let next = (index + 1 < objects as usize).then_some(first + (index + 1) * stride);
            self.links
                .set_next(first + index * stride, next.unwrap_or(0));
        }
        let inside = backend.inside::<C>();
        let cpu = self.cpu(inside.cpu);
        if let Some(cpu) = cpu {
            // Another task may have got one while the pages were taken.
            self.leave(cpu);
        }
        let head = pages.keep();
        let slab = self.lock(head);
        backend
            .pages
            .begin(head, info.geometry.order.frames(), info.id);
        backend.pages.record(head).colour.set(0);
        slab.set_frozen(cpu.is_some());
        slab.set_first(first);
        slab.set_out(0);
        if let Some(node) = self.node_of(head) {
            // Relaxed: a count.
            node.slabs_new.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(cpu) = cpu {
            cpu.set_slab(head);
            self.fetch(cpu, &slab);
            return cpu.pop();
        }
        slab.set_first(self.links.next(first));
        slab.set_out(1);
        if slab.first() != 0 {
            self.list(&slab, ListEnd::Front);
        }
        Some(first)
    }

    /// Frees an object of the slab at page `head`, which is not the CPU's. The slab ends with its
    /// last object.
    pub(super) fn free_into(&mut self, head: usize, object: usize) -> Result<(), FreeFault> {
        let slab = self.lock(head);
        let before = slab.first();
        if before == object || slab.out() == 0 {
            return Err(FreeFault::DoubleFree);
        }
        slab.push(self.links, object);
        if slab.is_frozen() {
            return Ok(());
        }
        if slab.out() == 0 {
            if before != 0
                && let Some(node) = self.node_of(head)
            {
                self.partial(node).remove(&self.backend.pages, head);
            }
            self.end(&slab);
        } else if before == 0 {
            self.list(&slab, ListEnd::Back);
        }
        Ok(())
    }

    /// Frees an object that the fast path refused.
    pub(super) fn free<C: Caller>(&mut self, object: NonNull<u8>) -> Result<(), FreeFault> {
        let backend = self.backend;
        let (head, _) = backend.find(self.info, object)?;
        let address = object.as_ptr().expose_provenance();
        let inside = backend.inside::<C>();
        let cpu = self.cpu(inside.cpu);
        if let Some(cpu) = cpu
            && cpu.slab() == Some(head)
        {
            if cpu.first() == address {
                return Err(FreeFault::DoubleFree);
            }
            cpu.push(self.links, address);
            return Ok(());
        }
        self.free_into(head, address)
    }

    /// Gives up the slab of this CPU.
    pub(super) fn drain<C: Caller>(&mut self) {
        let inside = self.backend.inside::<C>();
        if let Some(cpu) = self.cpu(inside.cpu) {
            self.leave(cpu);
        }
    }

    /// Ends all empty slabs on the nodes' lists. Begins again where a slab's lock was held, so that
    /// none is left: a cache may be about to be destroyed.
    pub(super) fn shrink<C: Caller>(&mut self) {
        for node in 0..self.backend.nodes() {
            while !self.shrink_node::<C>(node) {
                self.backend.relax();
            }
        }
    }

    /// Ends the empty slabs on a node's list whose locks are free. Returns true if all were.
    fn shrink_node<C: Caller>(&mut self, node: usize) -> bool {
        let pages = &self.backend.pages;
        let _inside = self.backend.inside::<C>();
        let Some(state) = self.slub.states.node(node, self.info.id) else {
            return true;
        };
        let partial = self.partial(state);
        let mut all = true;
        let mut at = partial.first();
        while let Some(head) = at {
            at = partial.after(pages, head);
            match HeldSlab::try_lock(pages, head) {
                Some(slab) if slab.out() == 0 => {
                    partial.remove(pages, head);
                    self.end(&slab);
                }
                Some(_) => {}
                None => all = false,
            }
        }
        all
    }
}
