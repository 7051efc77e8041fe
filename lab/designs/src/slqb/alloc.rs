//! The slow path of allocation: from a list, then a new slab, then other nodes.
//!
//! **CPUs of memoryless nodes.** A new slab goes to the list of the CPU or node whose memory it is.
//! A CPU whose own node has no memory would then make a new slab for each object, since none ever
//! comes to its own list (one of the reasons why SLQB stalled). So a CPU that got its last
//! slab from another node tries that node's list before it requests another slab; and since it
//! requests pages near itself first, it returns to its own list as soon as its node has memory.

use core::ptr::NonNull;

use brickyard_slab::{Caller, PageSource};
use brickyard_sync::RawLock;

use super::links::FreePointers;
use super::lists::HeldList;
use super::queue::Links;
use super::slow_path::SlowPath;
use crate::slab_designs::Pins;

/// Where a new slab should be, and its colour.
#[derive(Debug, Clone, Copy)]
struct SlabRequest {
    node: usize,
    colour: u32,
}

impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers>
    SlowPath<'_, 'm, S, L, K, F>
{
    /// Returns an object, in the memory of the node that is named, else near the caller, if there
    /// is some.
    pub(super) fn alloc<C: Caller>(&mut self, wanted: Option<usize>) -> Option<NonNull<u8>> {
        if let Some(node) = wanted {
            return self.alloc_on::<C>(node);
        }
        let request = match self.near::<C>() {
            Ok(object) => return Some(self.backend().pointer(object)),
            Err(request) => request,
        };
        self.new_slab_or_elsewhere::<C>(request)
    }

    /// Returns an object, in the memory of `node` if there is some.
    fn alloc_on<C: Caller>(&mut self, node: usize) -> Option<NonNull<u8>> {
        let backend = self.backend();
        let found = {
            let inside = backend.inside::<C>();
            match self.cpu(inside.cpu) {
                // The CPU's own node, wherever its last slab came from.
                Some((_, held)) if backend.node_of_cpu(inside.cpu) == node => {
                    held.own.counts.misses.add(1);
                    let object = self.served_by(held);
                    Some(object.ok_or_else(|| self.slab_request(held, node)))
                }
                _ => self.served_by_node(node),
            }
        };
        match found {
            Some(Ok(object)) => Some(backend.pointer(object)),
            Some(Err(request)) => self.new_slab_or_elsewhere::<C>(request),
            // There is no such node.
            None => self.alloc::<C>(None),
        }
    }

    fn new_slab_or_elsewhere<C: Caller>(&mut self, request: SlabRequest) -> Option<NonNull<u8>> {
        let object = self
            .grow::<C>(request)
            .or_else(|| self.served_by_any_node::<C>(request.node))?;
        Some(self.backend().pointer(object))
    }

    /// Takes an object from the list of the caller's CPU, or of its node. If there is none, returns
    /// the request for a new slab.
    fn near<C: Caller>(&mut self) -> Result<usize, SlabRequest> {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        let node = backend.node_of_cpu(inside.cpu);
        let Some((state, held)) = self.cpu(inside.cpu) else {
            let found = self.served_by_node(node);
            return found.unwrap_or(Err(SlabRequest { node, colour: 0 }));
        };
        held.own.counts.misses.add(1);
        if let Some(object) = self.served_by(held) {
            return Ok(object);
        }
        if let Some(away) = (state.outgoing.away.get() as usize).checked_sub(1) {
            let found = self.with_node(away, |path, held| path.served_by(held));
            if let Some(object) = found.flatten() {
                return Ok(object);
            }
        }
        Err(self.slab_request(held, node))
    }

    /// Takes an object from a node's list. If there is none, returns the request for a new slab;
    /// `None` if there is no such node.
    fn served_by_node(&mut self, node: usize) -> Option<Result<usize, SlabRequest>> {
        self.with_node(node, |path, held| {
            held.own.counts.misses.add(1);
            match path.served_by(held) {
                Some(object) => Ok(object),
                None => Err(path.slab_request(held, node)),
            }
        })
    }

    /// Takes an object of a list: from its LIFO, from its incoming queue if a batch waits there, or
    /// from a partial slab.
    fn served_by(&mut self, held: HeldList<'_, K>) -> Option<usize> {
        let (backend, links) = (self.backend(), self.links);
        if held.own.lifo.count() == 0 && Self::has_batch_waiting(held) {
            self.claim(held);
            // A queue is above the mark only if several CPUs sent at the same moment.
            if held.own.lifo.count() > self.marks.high {
                self.flush(held, self.marks.batch);
            }
        }
        let broken = &mut self.broken;
        if let Some(object) = held.own.lifo.change(|lifo| lifo.pop(&links, broken)) {
            return Some(object);
        }
        held.list.slabs(|| backend.relax()).take(links, broken)
    }

    /// Returns the request for a new slab near `node`, with the next colour of the list in hand.
    fn slab_request(&self, held: HeldList<'_, K>, node: usize) -> SlabRequest {
        let backend = self.backend();
        let slabs = held.list.slabs(|| backend.relax());
        SlabRequest {
            node,
            colour: slabs.next_colour(self.info().geometry.colours),
        }
    }

    /// Makes a new slab, for the list of the CPU or node whose memory it is; returns an object of
    /// it.
    fn grow<C: Caller>(&mut self, request: SlabRequest) -> Option<usize> {
        let backend = self.backend();
        let pages = backend.take_pages::<C>(self.info(), request.node)?;
        let first = backend.pages.address_of(pages.head());
        let colour = request.colour * self.info().geometry.colour_step;
        self.make(first + colour as usize);
        let node = backend.node_of(backend.pointer(first));

        let inside = backend.inside::<C>();
        let here = self.cpu(inside.cpu);
        if let Some((state, held)) = here {
            let is_near = backend.node_of_cpu(inside.cpu) == node;
            // Each node has a state in memory, so there are far fewer than 2^32.
            let away = if is_near { 0 } else { node as u32 + 1 };
            state.outgoing.away.set(away);
            if is_near {
                return self.add_slab(held, pages.keep(), colour);
            }
        }
        let object = self.with_node(node, |path, held| path.add_slab(held, pages.keep(), colour));
        debug_assert!(object.is_some(), "a page of node {node}");
        object.flatten()
    }

    /// Constructs the objects of a new slab, which no list has yet, and links them in address
    /// order.
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

    /// Adds a slab to a list and takes an object of it under one hold of the lock, so that no other
    /// CPU empties the slab first.
    fn add_slab(&mut self, held: HeldList<'_, K>, head: usize, colour: u32) -> Option<usize> {
        let (backend, links) = (self.backend(), self.links);
        let slabs = held.list.slabs(|| backend.relax());
        slabs.add_slab(links, held.owner, head, colour);
        slabs.take(links, &mut self.broken)
    }

    /// Takes an object from any node's list, starting with node `first`.
    fn served_by_any_node<C: Caller>(&mut self, first: usize) -> Option<usize> {
        let backend = self.backend();
        let _inside = backend.inside::<C>();
        let nodes = backend.nodes();
        (first..nodes).chain(0..first.min(nodes)).find_map(|node| {
            let found = self.with_node(node, |path, held| path.served_by(held));
            found.flatten()
        })
    }
}
