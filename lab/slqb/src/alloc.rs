//! The slow way to an object: what a list has, then a new slab, then other nodes.
//!
//! **CPUs of memoryless nodes.** A new slab goes to the list of whoever's memory it is. A CPU whose
//! own node has no memory would so make a slab for each object, since none ever comes to its own
//! list (one of the reasons why SLQB stalled). So a CPU that got its last slab from another node
//! asks that node's list before it asks for a slab again; and since it asks for a slab near itself
//! first, it is at home again as soon as its node has memory.

use core::ptr::NonNull;

use brickyard_slab::{Caller, PageSource};
use brickyard_sync::RawLock;

use super::errand::Errand;
use super::links::FreePointers;
use super::lists::At;
use super::queue::Links;
use super::state::Pins;

/// What a new slab is asked for.
#[derive(Debug, Clone, Copy)]
struct Wish {
    node: usize,
    colour: u32,
}

impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers> Errand<'_, 'm, S, L, K, F> {
    /// An object, of memory near the caller if there is some.
    pub(super) fn alloc<C: Caller>(&mut self) -> Option<NonNull<u8>> {
        let wish = match self.near::<C>() {
            Ok(object) => return Some(self.backend().pointer(object)),
            Err(wish) => wish,
        };
        self.new_slab_or_elsewhere::<C>(wish)
    }

    /// An object, of the memory of `node` if there is some.
    pub(super) fn alloc_on<C: Caller>(&mut self, node: usize) -> Option<NonNull<u8>> {
        let backend = self.backend();
        let found = {
            let inside = backend.inside::<C>();
            match self.cpu(inside.cpu) {
                // Its own node, wherever its last slab came from.
                Some((_, at)) if backend.node_of_cpu(inside.cpu) == node => {
                    at.own.counts.misses.add(1);
                    let object = self.served_by(at);
                    Some(object.ok_or_else(|| self.wish(at, node)))
                }
                _ => self.served_by_node(node),
            }
        };
        match found {
            Some(Ok(object)) => Some(backend.pointer(object)),
            Some(Err(wish)) => self.new_slab_or_elsewhere::<C>(wish),
            // There is no such node.
            None => self.alloc::<C>(),
        }
    }

    fn new_slab_or_elsewhere<C: Caller>(&mut self, wish: Wish) -> Option<NonNull<u8>> {
        let object = self
            .grow::<C>(wish)
            .or_else(|| self.served_by_any_node::<C>(wish.node))?;
        Some(self.backend().pointer(object))
    }

    /// What the caller's CPU, or its node, has; or what a new slab should be.
    fn near<C: Caller>(&mut self) -> Result<usize, Wish> {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        let node = backend.node_of_cpu(inside.cpu);
        let Some((state, at)) = self.cpu(inside.cpu) else {
            let found = self.served_by_node(node);
            return found.unwrap_or(Err(Wish { node, colour: 0 }));
        };
        at.own.counts.misses.add(1);
        if let Some(object) = self.served_by(at) {
            return Ok(object);
        }
        if let Some(away) = (state.outgoing.away.get() as usize).checked_sub(1) {
            let found = self.with_node(away, |errand, at| errand.served_by(at));
            if let Some(object) = found.flatten() {
                return Ok(object);
            }
        }
        Err(self.wish(at, node))
    }

    /// What the list of a node has; or what a new slab should be. `None` if there is no such node.
    fn served_by_node(&mut self, node: usize) -> Option<Result<usize, Wish>> {
        self.with_node(node, |errand, at| {
            at.own.counts.misses.add(1);
            match errand.served_by(at) {
                Some(object) => Ok(object),
                None => Err(errand.wish(at, node)),
            }
        })
    }

    /// An object that a list has: from its LIFO, from what it has been sent if that is a batch, or
    /// from a partial slab.
    fn served_by(&mut self, at: At<'_, K>) -> Option<usize> {
        let (backend, links) = (self.backend(), self.links);
        if at.own.lifo.count() == 0 && Self::has_batch_waiting(at) {
            self.claim(at);
            // A queue is above the mark only where several CPUs sent at the same moment.
            if at.own.lifo.count() > self.marks.high {
                self.flush(at, self.marks.batch);
            }
        }
        let broken = &mut self.broken;
        if let Some(object) = at.own.lifo.change(|lifo| lifo.pop(&links, broken)) {
            return Some(object);
        }
        at.list.slabs(|| backend.relax()).take(links, broken)
    }

    /// What a new slab for a list should be, near `node`. The colour is the list's that asked.
    fn wish(&self, at: At<'_, K>, node: usize) -> Wish {
        let backend = self.backend();
        let slabs = at.list.slabs(|| backend.relax());
        Wish {
            node,
            colour: slabs.next_colour(self.info().geometry.colours),
        }
    }

    /// A new slab, for the list of the CPU or node whose memory it is; an object of it.
    fn grow<C: Caller>(&mut self, wish: Wish) -> Option<usize> {
        let backend = self.backend();
        let pages = backend.take_pages::<C>(self.info(), wish.node)?;
        let first = backend.pages.address_of(pages.head());
        let colour = wish.colour * self.info().geometry.colour_step;
        self.make(first + colour as usize);
        let node = backend.node_of(backend.pointer(first));

        let inside = backend.inside::<C>();
        let here = self.cpu(inside.cpu);
        if let Some((state, at)) = here {
            let is_near = backend.node_of_cpu(inside.cpu) == node;
            // The source's nodes are as many as bytes have room for, far below 2^32.
            let away = if is_near { 0 } else { node as u32 + 1 };
            state.outgoing.away.set(away);
            if is_near {
                return self.add_slab(at, pages.keep(), colour);
            }
        }
        let object = self.with_node(node, |errand, at| errand.add_slab(at, pages.keep(), colour));
        debug_assert!(object.is_some(), "a page of node {node}");
        object.flatten()
    }

    /// Constructs and links the objects of a new slab, which nobody knows of yet, in the order of
    /// their addresses.
    fn make(&self, first: usize) {
        let (backend, info, links) = (self.backend(), self.info(), self.links);
        let stride = info.geometry.stride as usize;
        let objects = info.geometry.objects as usize;
        backend.make_objects(info, first);
        for index in 1..objects {
            links.set_next(first + (index - 1) * stride, first + index * stride);
        }
        links.set_next(first + (objects - 1) * stride, 0);
    }

    /// The list gets a slab, and gives an object of it, so that nobody else comes between.
    fn add_slab(&mut self, at: At<'_, K>, head: usize, colour: u32) -> Option<usize> {
        let (backend, links) = (self.backend(), self.links);
        let slabs = at.list.slabs(|| backend.relax());
        slabs.add_slab(links, at.owner, head, colour);
        slabs.take(links, &mut self.broken)
    }

    /// What the lists of nodes have, `first` asked first.
    fn served_by_any_node<C: Caller>(&mut self, first: usize) -> Option<usize> {
        let backend = self.backend();
        let _inside = backend.inside::<C>();
        let nodes = backend.nodes();
        (first..nodes).chain(0..first.min(nodes)).find_map(|node| {
            let found = self.with_node(node, |errand, at| errand.served_by(at));
            found.flatten()
        })
    }
}
