//! Flushes: sheaves into the barn, and their objects into slabs, away from the caller.

use core::ptr::NonNull;

use brickyard_sync::RawLock;

use super::partial;
use super::purpose::Purpose;
use super::state::{AWAY, SPARE, Sheafed};
use super::words::Sheaf;
use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::Caller;
use crate::error::FreeFault;
use crate::local::{Local, Pushed};
use crate::object_checks;
use crate::slab_list::Gone;
use crate::source::PageSource;

/// A free that finds that the barn has too much empties so many sheaves of it, beside its own.
const RELIEF: usize = 3;

impl<'m, S: PageSource, L: Local, K: RawLock, P: Purpose> Sheafed<'m, S, L, K, P> {
    /// Puts a sheaf into the barn of the nearest node, and notes whether its objects were away from
    /// home. What is too much for the barn goes into the slabs.
    pub(super) fn to_barn<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        sheaf: Sheaf,
        was_away: bool,
    ) {
        let surplus = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, backend.node_here());
            if sheaf.is_empty() {
                depot.put_empty(sheaf);
                depot.surplus_empty()
            } else if depot.has_room::<P>(info) {
                depot.put_full(sheaf, was_away);
                None
            } else {
                Some(sheaf)
            }
        };
        if let Some(sheaf) = surplus {
            self.give_up::<C>(backend, info, sheaf);
        }
    }

    /// Puts a sheaf into this CPU's spare if that is free, or else into the barn.
    pub(super) fn keep_as_spare<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        sheaf: Sheaf,
    ) {
        let column = self.column(info.id, SPARE);
        let (cpu, spare) = backend.local.read::<C>(&self.rows, column);
        if spare == 0 && self.detach::<C>(backend, cpu, column, 0, sheaf.top()) {
            return;
        }
        self.to_barn::<C>(backend, info, sheaf, false);
    }

    /// Puts all that a sheaf holds into slabs, and frees the sheaf's own memory.
    pub(super) fn give_up<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        sheaf: Sheaf,
    ) {
        self.empty_out::<C>(backend, info, &sheaf);
        self.drop_sheaf(backend, sheaf);
    }

    /// Empties a few sheaves of a barn that has too much.
    #[cold]
    fn relieve<C: Caller>(&self, backend: &Backend<'m, S, L>, info: &CacheInfo, node: usize) {
        for _ in 0..RELIEF {
            let surplus = {
                let _inside = backend.inside::<C>();
                self.depot(backend, info.id, node).take_surplus::<P>(info)
            };
            let Some(surplus) = surplus else {
                return;
            };
            self.give_up::<C>(backend, info, surplus);
        }
    }

    /// Puts all that a sheaf holds back into slabs.
    pub(super) fn empty_out<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        sheaf: &Sheaf,
    ) {
        while let Some(first) = sheaf.pop() {
            let node = backend.node_of(backend.pointer(first));
            let mut gone = Gone::default();
            let mut refused = None;
            {
                let _inside = backend.inside::<C>();
                let depot = self.depot(backend, info.id, node);
                depot.counts.flushes.add(1);
                let mut object = Some(first);
                while let Some(address) = object.take() {
                    let pointer = backend.pointer(address);
                    if backend.node_of(pointer) != node {
                        // It belongs to the next round.
                        sheaf.push(address);
                        break;
                    }
                    let given = match backend.find(info, pointer) {
                        Ok((head, index)) => {
                            partial::give(&depot, &backend.pages, info, head, index, &mut gone)
                        }
                        Err(fault) => {
                            depot.counts.refused.add(1);
                            Err(fault)
                        }
                    };
                    if let Err(fault) = given {
                        refused = Some((pointer, fault));
                    }
                    object = sheaf.pop();
                }
            }
            gone.each(&backend.pages, |head| backend.give_pages(info, head));
            // One per round is reported, as an example of all that are counted.
            if let Some((object, fault)) = refused {
                object_checks::refuse_late(backend, self, info, object, fault);
            }
        }
    }

    /// Returns an empty sheaf: the spare if that is one, else another in exchange for it. `check`
    /// runs under the lock of the node's depot, which is taken once for both. `Ok(None)`: no
    /// memory.
    ///
    /// # Errors
    /// What `check` says. The spare is back in the row then.
    pub(super) fn empty_sheaf<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: usize,
        mut spare: Option<Sheaf>,
        check: impl FnOnce() -> Result<(), FreeFault>,
    ) -> Result<Option<Sheaf>, FreeFault> {
        let mut is_crowded = false;
        let checked = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, node);
            let checked = check();
            if checked.is_ok() && !spare.as_ref().is_some_and(Sheaf::is_empty) {
                depot.exchanges.free_misses.add(1);
                // Where there is no room, the spare is emptied below.
                if spare.is_none() || depot.has_room::<P>(info) {
                    if let Some(cold) = spare.take() {
                        depot.put_full(cold, false);
                    }
                    spare = depot.take_empty();
                }
                is_crowded = depot.is_crowded::<P>(info);
            }
            checked
        };
        if let Err(fault) = checked {
            if let Some(spare) = spare {
                self.keep_as_spare::<C>(backend, info, spare);
            }
            return Err(fault);
        }
        if is_crowded {
            self.relieve::<C>(backend, info, node);
        }
        match spare {
            Some(sheaf) => {
                // Another CPU may have emptied it, and its frees come next.
                sheaf.fetch_to_write(info.geometry.capacity as usize);
                self.empty_out::<C>(backend, info, &sheaf);
                Ok(Some(sheaf))
            }
            None => Ok(self.new_sheaf(backend, info)),
        }
    }

    /// Puts an object of another node, or of a page that is at home on another CPU, into a sheaf
    /// for such objects. When it is full it goes to the barn, or, with several nodes, what it holds
    /// into its slabs.
    pub(super) fn put_away<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let column = self.column(info.id, AWAY);
        // SAFETY: `top-in-sheaf` holds of `AWAY` too; and by the caller's promise.
        match unsafe { backend.local.push::<C>(&self.rows, column, object) } {
            Pushed::Done => return Ok(()),
            Pushed::Twice => return Err(FreeFault::DoubleFree),
            Pushed::Full => self.check_out::<C>(backend, info, object)?,
        }
        let (cpu, top) = backend.local.read::<C>(&self.rows, column);
        let here = backend.node_here();
        let fresh = self.empty_sheaf::<C>(backend, info, here, None, || Ok(()))?;
        let Some(fresh) = fresh else {
            return self.give_single::<C>(backend, info, object);
        };
        fresh.push(object.as_ptr().expose_provenance());
        if self.detach::<C>(backend, cpu, column, top, fresh.top()) {
            // SAFETY: taken out of the row just now.
            if let Some(full) = unsafe { Sheaf::of_row(top) } {
                self.count_remote::<C>(backend, info, &full);
                if self.nodes > 1 {
                    self.empty_out::<C>(backend, info, &full);
                }
                self.to_barn::<C>(backend, info, full, true);
            }
        } else {
            self.empty_out::<C>(backend, info, &fresh);
            self.to_barn::<C>(backend, info, fresh, false);
        }
        Ok(())
    }

    /// Sends back the objects of other nodes, and of pages that are at home on other CPUs, that
    /// this CPU has gathered.
    pub(super) fn send_away<C: Caller>(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) {
        if self.parts <= AWAY {
            return;
        }
        if let Some(away) = self.close::<C>(backend, self.column(info.id, AWAY)) {
            self.count_remote::<C>(backend, info, &away);
            self.give_up::<C>(backend, info, away);
        }
    }

    /// Counts the objects of other nodes or CPUs in a sheaf that is about to be emptied.
    fn count_remote<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        sheaf: &Sheaf,
    ) {
        let objects = info.geometry.capacity as usize - sheaf.room();
        let _inside = backend.inside::<C>();
        let depot = self.depot(backend, info.id, backend.node_here());
        depot.counts.remote_frees.add(objects as u64);
    }
}
