//! The slow paths of a free: onto the LIFO, with a batch flushed; to another node; straight into
//! the slab. Also trims and drains.

use core::ptr::NonNull;

use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::RawLock;

use super::links::FreePointers;
use super::lists::{CpuState, HeldList};
use super::queue::ObjectList;
use super::slabs::owner_of;
use super::slow_path::SlowPath;
use crate::slab_designs::Pins;

impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers>
    SlowPath<'_, 'm, S, L, K, F>
{
    /// Frees an object that the fast path refused.
    pub(super) fn free<C: Caller>(&mut self, object: NonNull<u8>) -> Result<(), FreeFault> {
        let backend = self.backend();
        let (head, _) = backend.find(self.info(), object)?;
        let address = object.as_ptr().expose_provenance();
        // `owner-while-out`: the object is out.
        let owner = owner_of(backend.pages.record(head)).get() as u32;
        let inside = backend.inside::<C>();
        let node = backend.node_of_cpu(inside.cpu);
        let Some((state, held)) = self.cpu(inside.cpu) else {
            self.with_node(node, |_, held| held.own.counts.free_misses.add(1));
            return self.free_without_row(owner, address);
        };
        if self.info().is_checked() {
            self.put(owner, address)?;
        } else if backend.node_of(object) == node {
            self.push(held, address)?;
        } else {
            self.free_remote(state, owner, address)?;
        }
        held.own.counts.free_misses.add(1);
        Ok(())
    }

    /// Frees an object on a CPU beyond the plan, which has no outgoing queue.
    fn free_without_row(&mut self, owner: u32, object: usize) -> Result<(), FreeFault> {
        if self.info().is_checked() {
            return self.put(owner, object);
        }
        self.send(owner, ObjectList::one(&self.links, object));
        Ok(())
    }

    /// Puts an object on the LIFO, whichever list owns its slab; above the high-water mark, flushes
    /// a batch.
    fn push(&mut self, held: HeldList<'_, K>, object: usize) -> Result<(), FreeFault> {
        let links = self.links;
        if held.own.lifo.head() == object {
            return Err(FreeFault::DoubleFree);
        }
        held.own.lifo.change(|lifo| lifo.push(&links, object));
        if held.own.lifo.count() > self.marks.high {
            self.flush(held, self.marks.batch);
        }
        Ok(())
    }

    /// Frees an object of another node's memory, through the outgoing queue.
    fn free_remote(
        &mut self,
        state: &CpuState<K>,
        owner: u32,
        object: usize,
    ) -> Result<(), FreeFault> {
        let last = state.outgoing.queue.list();
        if last.count > 0 && last.tail == object {
            return Err(FreeFault::DoubleFree);
        }
        state.outgoing.counts.remote_frees.add(1);
        self.send_later(&state.outgoing, owner, object);
        Ok(())
    }

    /// Puts an object straight into its slab.
    fn put(&mut self, owner: u32, object: usize) -> Result<(), FreeFault> {
        let backend = self.backend();
        let list = self.slqb.list(owner, self.info().id);
        let (list, _) = list.ok_or(FreeFault::NotASlab)?;
        let slabs = list.slabs(|| backend.relax());
        slabs.put(self.links, owner, object, &mut self.gone)
    }

    /// Does what a CPU should do every few seconds: claims its incoming queue, flushes a batch at
    /// most, and sends its outgoing queue; then claims and flushes the list of its node too, or of
    /// the node that gave it its last slab.
    pub(super) fn trim<C: Caller>(&mut self) {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        let mut node = backend.node_of_cpu(inside.cpu);
        if let Some((state, held)) = self.cpu(inside.cpu) {
            self.claim(held);
            self.flush(held, self.marks.batch);
            self.flush_outgoing(&state.outgoing);
            if let Some(away) = (state.outgoing.away.get() as usize).checked_sub(1) {
                node = away;
            }
        }
        self.with_node(node, |path, held| {
            path.claim(held);
            path.flush(held, path.marks.batch);
        });
    }

    /// Gives back all objects in this CPU's queues.
    pub(super) fn drain<C: Caller>(&mut self) {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        if let Some((state, held)) = self.cpu(inside.cpu) {
            self.claim(held);
            self.flush(held, u32::MAX);
            self.flush_outgoing(&state.outgoing);
        }
    }

    /// Puts all objects in incoming queues, every CPU's, into their slabs; and gives back all
    /// objects of the nodes' lists.
    pub(super) fn shrink<C: Caller>(&mut self) {
        let backend = self.backend();
        for cpu in 0..self.slqb.states.cpus() {
            let _inside = backend.inside::<C>();
            let owner = cpu as u32;
            if let Some((list, check)) = self.slqb.list(owner, self.info().id) {
                let waiting = list.incoming.claim(check, || backend.relax());
                self.put_all(owner, waiting);
            }
        }
        for node in 0..backend.nodes() {
            let _inside = backend.inside::<C>();
            self.with_node(node, |path, held| {
                path.claim(held);
                path.flush(held, u32::MAX);
            });
        }
    }
}
