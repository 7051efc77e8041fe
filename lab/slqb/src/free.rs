//! The slow ways back: onto the LIFO and a batch of it further, to another node, straight into the
//! slab; trims and drains.

use core::ptr::NonNull;

use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::RawLock;

use super::errand::Errand;
use super::links::FreePointers;
use super::lists::{At, CpuState};
use super::queue::ObjectList;
use super::slabs::owner_of;
use super::state::Pins;

impl<'m, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers> Errand<'_, 'm, S, L, K, F> {
    /// Takes back an object that the fast way did not.
    pub(super) fn free<C: Caller>(&mut self, object: NonNull<u8>) -> Result<(), FreeFault> {
        let backend = self.backend();
        let (head, _) = backend.find(self.info(), object)?;
        let address = object.as_ptr().expose_provenance();
        // `owner-while-out`: the object is out.
        let owner = owner_of(backend.pages.record(head)).get() as u32;
        let inside = backend.inside::<C>();
        let node = backend.node_of_cpu(inside.cpu);
        let Some((state, at)) = self.cpu(inside.cpu) else {
            self.with_node(node, |_, at| at.own.counts.free_misses.add(1));
            return self.free_without_row(owner, address);
        };
        if self.info().is_checked() {
            self.put(owner, address)?;
        } else if backend.node_of(object) == node {
            self.push(at, address)?;
        } else {
            self.free_remote(state, owner, address)?;
        }
        at.own.counts.free_misses.add(1);
        Ok(())
    }

    /// A CPU without a row has no queue to gather objects in.
    fn free_without_row(&mut self, owner: u32, object: usize) -> Result<(), FreeFault> {
        if self.info().is_checked() {
            return self.put(owner, object);
        }
        self.send(owner, ObjectList::one(&self.links, object));
        Ok(())
    }

    /// Puts an object on the LIFO, whoever owns its slab; above the high-water mark a batch goes.
    fn push(&mut self, at: At<'_, K>, object: usize) -> Result<(), FreeFault> {
        let links = self.links;
        if at.own.lifo.head() == object {
            return Err(FreeFault::DoubleFree);
        }
        at.own.lifo.change(|lifo| lifo.push(&links, object));
        if at.own.lifo.count() > self.marks.high {
            self.flush(at, self.marks.batch);
        }
        Ok(())
    }

    /// An object of another node's memory.
    fn free_remote(
        &mut self,
        state: &CpuState<K>,
        owner: u32,
        object: usize,
    ) -> Result<(), FreeFault> {
        let last = state.outgoing.queue.run();
        if last.count > 0 && last.tail == object {
            return Err(FreeFault::DoubleFree);
        }
        state.outgoing.counts.remote_frees.add(1);
        self.send_later(&state.outgoing, owner, object);
        Ok(())
    }

    /// Straight into the slab.
    fn put(&mut self, owner: u32, object: usize) -> Result<(), FreeFault> {
        let backend = self.backend();
        let list = self.slqb.list(owner, self.info().id);
        let (list, _) = list.ok_or(FreeFault::NotASlab)?;
        let slabs = list.slabs(|| backend.relax());
        slabs.put(self.links, owner, object, &mut self.gone)
    }

    /// What a CPU does every few seconds: its queues claimed and flushed, a batch at most; its
    /// node's list too.
    pub(super) fn trim<C: Caller>(&mut self) {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        let mut node = backend.node_of_cpu(inside.cpu);
        if let Some((state, at)) = self.cpu(inside.cpu) {
            self.claim(at);
            self.flush(at, self.marks.batch);
            self.flush_outgoing(&state.outgoing);
            if let Some(away) = (state.outgoing.away.get() as usize).checked_sub(1) {
                node = away;
            }
        }
        self.with_node(node, |errand, at| {
            errand.claim(at);
            errand.flush(at, errand.marks.batch);
        });
    }

    /// All that this CPU's queues hold goes back.
    pub(super) fn drain<C: Caller>(&mut self) {
        let backend = self.backend();
        let inside = backend.inside::<C>();
        if let Some((state, at)) = self.cpu(inside.cpu) {
            self.claim(at);
            self.flush(at, u32::MAX);
            self.flush_outgoing(&state.outgoing);
        }
    }

    /// All that waits in incoming queues goes into the slabs, any CPU's; and all that the nodes'
    /// lists hold.
    pub(super) fn shrink<C: Caller>(&mut self) {
        let backend = self.backend();
        for cpu in 0..self.slqb.cpus() {
            let _inside = backend.inside::<C>();
            let owner = cpu as u32;
            if let Some((list, check)) = self.slqb.list(owner, self.info().id) {
                let waiting = list.incoming.claim(check, || backend.relax());
                self.put_all(owner, waiting);
            }
        }
        for node in 0..backend.nodes() {
            let _inside = backend.inside::<C>();
            self.with_node(node, |errand, at| {
                errand.claim(at);
                errand.flush(at, u32::MAX);
            });
        }
    }
}
