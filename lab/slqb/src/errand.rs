//! One trip on the slow path: what it needs at hand, and what is done when it is over and no lock
//! is held any more.
//!
//! **Lock order**: a node's list lock, then one page lock or one incoming queue's lock; never two
//! of these. A CPU's own part needs no lock, but the caller pinned, and masked where interrupts use
//! the cache ([`Inside`]); so it comes before all locks. Pages are taken and given, constructors
//! and reports called, outside all of it.

use brickyard_slab::design::{Backend, CacheInfo, Gone, overwritten, refuse_late};
use brickyard_slab::{Caller, FreeFault, PageSource};
use brickyard_sync::{Held, Ordering, RawLock};

use super::links::{FreePointers, ObjectLinks, link_of};
use super::lists::{At, CpuState, NodeState, Outgoing, Own};
use super::queue::{Broken, ObjectList};
use super::shape::Marks;
use super::slabs::owner_of;
use super::state::{Pins, Slqb2008};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Errand<'a, 'm, S, L, K, F> {
    pub(super) slqb: &'a Slqb2008<'m, S, L, K, F>,
    pub(super) links: ObjectLinks<'a, 'm, S, L, F>,
    pub(super) marks: Marks,
    pub(super) gone: Gone,
    pub(super) broken: Broken,
    /// A free that turned out bad on the way into the slab: the last one, as an example of all that
    /// are counted.
    pub(super) refused: Option<(usize, FreeFault)>,
}

impl<'a, 'm, S: PageSource + 'm, L: Pins + 'm, K: RawLock, F: FreePointers>
    Errand<'a, 'm, S, L, K, F>
{
    /// Does `work`, then gives pages back and reports, if there is cause.
    pub(super) fn run<C: Caller, R>(
        slqb: &'a Slqb2008<'m, S, L, K, F>,
        backend: &'a Backend<'m, S, L>,
        info: &'a CacheInfo,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mut errand = Self {
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
        let done = work(&mut errand);
        errand
            .gone
            .each(&backend.pages, |head| backend.give_pages(info, head));
        if errand.broken != Broken::default() || errand.refused.is_some() {
            errand.tell::<C>();
        }
        done
    }

    #[cold]
    fn tell<C: Caller>(&self) {
        let (backend, info, broken) = (self.backend(), self.info(), self.broken);
        if let Some((object, fault)) = self.refused {
            refuse_late(backend, self.slqb, info, backend.pointer(object), fault);
        }
        if broken == Broken::default() {
            return;
        }
        if let Some(node) = self.slqb.node(0, info.id) {
            let _inside = backend.inside::<C>();
            let slabs = node.list.slabs(|| backend.relax());
            slabs.more.lost.add(u64::from(broken.lost));
        }
        let told = ("link of a free object written over", broken.lost);
        overwritten(backend, info, broken.at, told);
    }

    pub(super) const fn backend(&self) -> &'a Backend<'m, S, L> {
        self.links.backend
    }

    pub(super) const fn info(&self) -> &'a CacheInfo {
        self.links.info
    }

    /// What the CPU has, if it has a row.
    pub(super) fn cpu(&self, cpu: usize) -> Option<(&'a CpuState<K>, At<'a, K>)> {
        let state = self.slqb.cpu(cpu, self.info().id)?;
        let at = At {
            own: &state.own,
            outgoing: Some(&state.outgoing),
            list: &state.list,
            owner: cpu as u32,
        };
        Some((state, at))
    }

    /// What a node has, with its list lock held.
    pub(super) fn with_node<R>(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut Self, At<'_, K>) -> R,
    ) -> Option<R> {
        let backend = self.backend();
        let state: &'a NodeState<K> = self.slqb.node(node, self.info().id)?;
        let own: Held<'_, K, Own> = state.own.0.lock(|| backend.relax());
        let at = At {
            own: &own,
            outgoing: None,
            list: &state.list,
            owner: self.slqb.node_owner(node),
        };
        Some(work(self, at))
    }

    /// Takes all that waits in the list's incoming queue, and puts it behind its LIFO.
    pub(super) fn claim(&mut self, at: At<'_, K>) {
        let (backend, links) = (self.backend(), self.links);
        let claimed = at.list.incoming.claim(&at.own.check, || backend.relax());
        if claimed.count > 0 {
            at.own.counts.claims.add(1);
            at.own.more.claimed.add(u64::from(claimed.count));
            at.own.lifo.change(|lifo| lifo.append(&links, claimed));
        }
    }

    /// Gives back objects from the head of the list's LIFO, at most `most`: those of its own slabs
    /// to these, with the page lock held over runs of them, the others on their way.
    pub(super) fn flush(&mut self, at: At<'_, K>, most: u32) {
        let backend = self.backend();
        let mut run = at.own.lifo.take();
        let many = run.count.min(most);
        if many == 0 {
            return;
        }
        let links = self.links;
        let mut held = None;
        let mut remote = 0;
        let mut done = 0;
        for _ in 0..many {
            let Some(object) = run.pop(&links, &mut self.broken) else {
                break;
            };
            done += 1;
            match self.owner_of(object) {
                Some(owner) if owner != at.owner => {
                    held = None;
                    remote += 1;
                    match at.outgoing {
                        Some(outgoing) => self.send_later(outgoing, owner, object),
                        None => self.send(owner, ObjectList::one(&links, object)),
                    }
                }
                // Without an owner it is no object, which `put` counts.
                _ => {
                    let slabs = held.get_or_insert_with(|| at.list.slabs(|| backend.relax()));
                    let put = slabs.put(links, at.owner, object, &mut self.gone);
                    self.note(object, put);
                }
            }
        }
        drop(held);
        at.own.lifo.set(run);
        let counts = &at.own.counts;
        counts.flushes.add(1);
        counts.flushed.add(done);
        at.own.more.flushed_remote.add(remote);
    }

    fn note(&mut self, object: usize, put: Result<(), FreeFault>) {
        if let Err(fault) = put {
            self.refused = Some((object, fault));
        }
    }

    /// The list that owns the slab of an object in hand (`owner-while-out`).
    pub(super) fn owner_of(&self, object: usize) -> Option<u32> {
        let backend = self.backend();
        let found = backend.find(self.info(), backend.pointer(object));
        Some(owner_of(backend.pages.record(found.ok()?.0)).get() as u32)
    }

    /// Puts an object into the outgoing queue, which goes to one list at a time.
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

    /// Sends the outgoing queue to where it goes.
    pub(super) fn flush_outgoing(&mut self, outgoing: &Outgoing) {
        let run = outgoing.queue.take();
        if run.count > 0 {
            outgoing.more.outgoing_flushes.add(1);
            outgoing.more.outgoing_flushed.add(u64::from(run.count));
            self.send(outgoing.to.get(), run);
        }
    }

    /// Sends objects to the list that owns their slabs: into its incoming queue, or, where more
    /// than half of the high-water mark waits there already, straight into the slabs.
    pub(super) fn send(&mut self, owner: u32, run: ObjectList) {
        let backend = self.backend();
        let Some((list, check)) = self.slqb.list(owner, self.info().id) else {
            debug_assert!(false, "no list {owner}");
            return;
        };
        if list.incoming.waiting() > self.marks.high / 2 {
            self.put_all(owner, run);
        } else {
            let batch = self.marks.batch;
            list.incoming
                .receive(&self.links, run, batch, check, || backend.relax());
        }
    }

    /// Puts objects into slabs of one list.
    pub(super) fn put_all(&mut self, owner: u32, mut run: ObjectList) {
        let (backend, links) = (self.backend(), self.links);
        let Some((list, _)) = self.slqb.list(owner, self.info().id) else {
            return;
        };
        let slabs = list.slabs(|| backend.relax());
        while let Some(object) = run.pop(&links, &mut self.broken) {
            let put = slabs.put(links, owner, object, &mut self.gone);
            self.note(object, put);
        }
    }

    /// Does a batch wait in the list's incoming queue?
    pub(super) fn has_batch_waiting(at: At<'_, K>) -> bool {
        // Relaxed: a hint; who acts on it takes the queue's lock.
        at.own.check.load(Ordering::Relaxed) != 0
    }
}
