//! The slow path: the state of one call, and the work put off until it holds no lock any more.
//!
//! **Lock order**: a node's list lock, then one page lock or one incoming queue's lock; never two
//! of these. A CPU's own part needs no lock: the caller is pinned, with interrupts masked where
//! they use the cache ([`Inside`](brickyard_slab::design::Inside)); so it comes before all locks.
//! Outside of all this, pages are taken and given, and constructors and reports are called.

use brickyard_slab::design::{Backend, CacheInfo, Gone, overwritten, refuse_late};
use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::{Held, Ordering, RawLock};

use super::links::{FreePointers, ObjectLinks, link_of};
use super::lists::{CpuState, HeldList, NodeState, Outgoing, OwnPart};
use super::parameters::Marks;
use super::queue::{Broken, ObjectList};
use super::slabs::owner_of;
use super::state::Slqb2008;
use crate::slab_designs::Pins;

/// One call on the slow path.
#[derive(Debug)]
pub(super) struct SlowPath<'a, 'm, S, L, K, F> {
    pub(super) slqb: &'a Slqb2008<'m, S, L, K, F>,
    pub(super) links: ObjectLinks<'a, 'm, S, L, F>,
    pub(super) marks: Marks,
    pub(super) gone: Gone,
    pub(super) broken: Broken,
    /// The last bad free found on the way into a slab, as an example: all of them are counted.
    pub(super) refused: Option<(usize, FreeFault)>,
}

impl<'a, 'm, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers>
    SlowPath<'a, 'm, S, L, K, F>
{
    /// Does `work`, then gives back the pages of empty slabs, and reports bad frees and broken
    /// links.
    pub(super) fn run<C: Caller, R>(
        slqb: &'a Slqb2008<'m, S, L, K, F>,
        backend: &'a Backend<'m, S, L>,
        info: &'a CacheInfo,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mut path = Self {
            slqb,
            links: ObjectLinks {
                backend,
                info,
                link: link_of(info),
                encoding: slqb.encoding,
            },
            marks: Marks::of(&info.geometry, 1 << backend.source.page_shift()),
            gone: Gone::default(),
            broken: Broken::default(),
            refused: None,
        };
        let done = work(&mut path);
        path.gone
            .each(&backend.pages, |head| backend.give_pages(info, head));
        if path.broken != Broken::default() || path.refused.is_some() {
            path.report::<C>();
        }
        done
    }

    #[cold]
    fn report<C: Caller>(&self) {
        let (backend, info, broken) = (self.backend(), self.info(), self.broken);
        if let Some((object, fault)) = self.refused {
            refuse_late(backend, self.slqb, info, backend.pointer(object), fault);
        }
        if broken == Broken::default() {
            return;
        }
        if let Some(node) = self.slqb.states.node(0, info.id) {
            let _inside = backend.inside::<C>();
            let slabs = node.list.slabs(|| backend.relax());
            slabs.more.lost.add(u64::from(broken.lost));
        }
        let broken_link = ("link of a free object written over", broken.lost);
        overwritten(backend, info, broken.at, broken_link);
    }

    pub(super) const fn backend(&self) -> &'a Backend<'m, S, L> {
        self.links.backend
    }

    pub(super) const fn info(&self) -> &'a CacheInfo {
        self.links.info
    }

    /// Returns the state of the CPU, on which the caller is pinned; `None` for a CPU beyond the
    /// plan.
    pub(super) fn cpu(&self, cpu: usize) -> Option<(&'a CpuState<K>, HeldList<'a, K>)> {
        let state = self.slqb.states.cpu(cpu, self.info().id)?;
        let held = HeldList {
            own: &state.own,
            outgoing: Some(&state.outgoing),
            list: &state.list,
            owner: cpu as u32,
        };
        Some((state, held))
    }

    /// Calls `work` with a node's list lock held; `None` if there is no such node.
    pub(super) fn with_node<R>(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut Self, HeldList<'_, K>) -> R,
    ) -> Option<R> {
        let backend = self.backend();
        let state: &'a NodeState<K> = self.slqb.states.node(node, self.info().id)?;
        let own: Held<'_, K, OwnPart> = state.own.0.lock(|| backend.relax());
        let held = HeldList {
            own: &own,
            outgoing: None,
            list: &state.list,
            owner: self.slqb.node_owner(node),
        };
        Some(work(self, held))
    }

    /// Takes the list's whole incoming queue, and appends it to the LIFO.
    pub(super) fn claim(&mut self, held: HeldList<'_, K>) {
        let (backend, links) = (self.backend(), self.links);
        let claimed = held
            .list
            .incoming
            .claim(&held.own.check, || backend.relax());
        if claimed.count > 0 {
            held.own.counts.claims.add(1);
            held.own.more.claimed.add(u64::from(claimed.count));
            held.own.lifo.change(|lifo| lifo.append(&links, claimed));
        }
    }

    /// Gives back objects from the head of the list's LIFO, at most `most`: objects of its own
    /// slabs go back into them, with the page lock held over consecutive ones; the others are sent
    /// to their owners.
    pub(super) fn flush(&mut self, held: HeldList<'_, K>, most: u32) {
        let backend = self.backend();
        let mut list = held.own.lifo.take();
        let many = list.count.min(most);
        if many == 0 {
            return;
        }
        let links = self.links;
        let mut locked = None;
        let mut remote = 0;
        let mut done = 0;
        for _ in 0..many {
            let Some(object) = list.pop(&links, &mut self.broken) else {
                break;
            };
            done += 1;
            match self.owner_of(object) {
                Some(owner) if owner != held.owner => {
                    locked = None;
                    remote += 1;
                    match held.outgoing {
                        Some(outgoing) => self.send_later(outgoing, owner, object),
                        None => self.send(owner, ObjectList::one(&links, object)),
                    }
                }
                // Without an owner it is no object, which `put` counts.
                _ => {
                    let slabs = locked.get_or_insert_with(|| held.list.slabs(|| backend.relax()));
                    let put = slabs.put(links, held.owner, object, &mut self.gone);
                    self.note(object, put);
                }
            }
        }
        drop(locked);
        held.own.lifo.set(list);
        let counts = &held.own.counts;
        counts.flushes.add(1);
        counts.flushed.add(done);
        held.own.more.flushed_remote.add(remote);
    }

    fn note(&mut self, object: usize, put: Result<(), FreeFault>) {
        if let Err(fault) = put {
            self.refused = Some((object, fault));
        }
    }

    /// Returns the list that owns the slab of an object in hand (`owner-while-out`).
    pub(super) fn owner_of(&self, object: usize) -> Option<u32> {
        let backend = self.backend();
        let found = backend.find(self.info(), backend.pointer(object));
        Some(owner_of(backend.pages.record(found.ok()?.0)).get() as u32)
    }

    /// Puts an object into the outgoing queue, which has one destination at a time.
    pub(super) fn send_later(&mut self, outgoing: &Outgoing, owner: u32, object: usize) {
        if outgoing.to.get() != owner {
            self.flush_outgoing(outgoing);
            outgoing.to.set(owner);
        }
        let links = self.links;
        let one = ObjectList::one(&links, object);
        outgoing.queue.change(|queue| queue.append(&links, one));
        if outgoing.queue.count() >= self.marks.batch {
            self.flush_outgoing(outgoing);
        }
    }

    /// Sends the outgoing queue to its destination.
    pub(super) fn flush_outgoing(&mut self, outgoing: &Outgoing) {
        let list = outgoing.queue.take();
        if list.count > 0 {
            outgoing.more.outgoing_flushes.add(1);
            outgoing.more.outgoing_flushed.add(u64::from(list.count));
            self.send(outgoing.to.get(), list);
        }
    }

    /// Sends objects to the list that owns their slabs: into its incoming queue, or straight into
    /// the slabs if more than half of the high-water mark already waits there.
    pub(super) fn send(&mut self, owner: u32, objects: ObjectList) {
        let backend = self.backend();
        let Some((list, check)) = self.slqb.list(owner, self.info().id) else {
            debug_assert!(false, "no list {owner}");
            return;
        };
        if list.incoming.waiting() > self.marks.high / 2 {
            self.put_all(owner, objects);
        } else {
            let batch = self.marks.batch;
            list.incoming
                .receive(&self.links, objects, batch, check, || backend.relax());
        }
    }

    /// Puts objects of one list's slabs back into these.
    pub(super) fn put_all(&mut self, owner: u32, mut objects: ObjectList) {
        let (backend, links) = (self.backend(), self.links);
        let Some((list, _)) = self.slqb.list(owner, self.info().id) else {
            return;
        };
        let slabs = list.slabs(|| backend.relax());
        while let Some(object) = objects.pop(&links, &mut self.broken) {
            let put = slabs.put(links, owner, object, &mut self.gone);
            self.note(object, put);
        }
    }

    /// Returns true if a batch waits in the list's incoming queue.
    pub(super) fn has_batch_waiting(held: HeldList<'_, K>) -> bool {
        // Relaxed: a hint; a caller that acts on it takes the queue's lock.
        held.own.check.load(Ordering::Relaxed) != 0
    }
}
