//! One object at a time, without sheaves: out of a slab and back, with a new slab where none has a
//! free object. The memory of sheaves themselves is allocated and freed in this way too.

use core::ptr::NonNull;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::partial;
use super::purpose::Purpose;
use super::state::Sheafed;
use super::words::Sheaf;
use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::{Caller, Everywhere};
use crate::error::FreeFault;
use crate::layout::BOOT_CACHE;
use crate::local::Local;
use crate::source::PageSource;

impl<'m, S: PageSource, L: Local, K: RawLock, P: Purpose> Sheafed<'m, S, L, K, P> {
    /// Takes one object out of a slab, without sheaves.
    pub(super) fn single<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
    ) -> Option<NonNull<u8>> {
        self.single_on::<C>(backend, info, backend.node_here())
    }

    /// Takes one object out of a slab, preferably of the memory of `node`.
    pub(super) fn single_on<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: usize,
    ) -> Option<NonNull<u8>> {
        let one = |depot: &Depot| {
            let object = partial::take_one(depot, &backend.pages, info)?;
            depot.exchanges.misses.add(1);
            Some(backend.pointer(object))
        };
        let at_hand = {
            let _inside = backend.inside::<C>();
            one(&self.depot(backend, info.id, node))
        };
        let grown = |node| self.grow::<C, _>(backend, info, node, one).flatten();
        at_hand
            .or_else(|| grown(Some(node)))
            // First what is free on other nodes. Otherwise every request that comes here would take
            // another slab there.
            .or_else(|| self.single_elsewhere::<C>(backend, info, node))
            .or_else(|| (self.nodes > 1).then(|| grown(None)).flatten())
    }

    /// Takes one free object of another node.
    pub(super) fn single_elsewhere<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        not: usize,
    ) -> Option<NonNull<u8>> {
        let _inside = backend.inside::<C>();
        (0..self.nodes)
            .filter(|&node| node != not)
            .find_map(|node| {
                let depot = self.depot(backend, info.id, node);
                // What lies in the barn is free too.
                let object = match depot.take_full(|_| true) {
                    Some(sheaf) => {
                        let (object, was_away) = (sheaf.pop(), sheaf.was_away());
                        if sheaf.is_empty() {
                            depot.put_empty(sheaf);
                        } else {
                            depot.put_full(sheaf, was_away);
                        }
                        object
                    }
                    None => partial::take_one(&depot, &backend.pages, info),
                }?;
                depot.exchanges.misses.add(1);
                Some(backend.pointer(object))
            })
    }

    /// Makes another slab, of this node's memory or of any, in the depot of the node whose memory
    /// it is. `take` then takes from it before anybody else can. `None`: there are no pages.
    pub(super) fn grow<C: Caller, T>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: Option<usize>,
        take: impl FnOnce(&Depot) -> T,
    ) -> Option<T> {
        let pages = backend.take_pages_of::<C>(info, node)?;
        let first = backend.pages.address_of(pages.head());
        let owner = backend.node_of(backend.pointer(first));
        let colour = {
            let _inside = backend.inside::<C>();
            self.depot(backend, info.id, owner)
                .slabs
                .next_colour(info.geometry.colours)
        };
        let colour = colour * info.geometry.colour_step;
        backend.make_objects(info, first + colour as usize);
        if let Some(homes) = backend.homes_for(info) {
            let frames = usize::from(info.geometry.pages);
            homes.settle(pages.head(), frames, backend.local.cpu());
        }
        let _inside = backend.inside::<C>();
        let depot = self.depot(backend, info.id, owner);
        partial::begin(&depot, &backend.pages, info, pages.keep(), colour);
        Some(take(&depot))
    }

    /// Puts one object into its slab, without sheaves.
    pub(super) fn give_single<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        // Only what lies in a slab has a node. It is looked up again behind the lock, since a bad
        // free's slab may go meanwhile.
        backend.find(info, object)?;
        let empty = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, backend.node_of(object));
            let (head, index) = backend.find(info, object)?;
            depot.exchanges.free_misses.add(1);
            partial::give_one(&depot, &backend.pages, info, head, index)?
        };
        if let Some(head) = empty {
            backend.give_pages(info, head);
        }
        Ok(())
    }

    /// Checks behind the lock that an object is not free in its slab. If it is, this is a double
    /// free.
    pub(super) fn check_out<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let _inside = backend.inside::<C>();
        let _depot = self.depot(backend, info.id, backend.node_of(object));
        self.is_out(backend, info, object)
    }

    /// Checks that an object is in use ([`Sheafed::check_out`]), for holders of the lock of its
    /// node.
    pub(super) fn is_out(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let (head, index) = backend.find(info, object)?;
        if partial::is_free(&backend.pages, head, index) {
            return Err(FreeFault::DoubleFree);
        }
        Ok(())
    }

    /// Makes a sheaf for the cache. Its memory is from the cache of sheaves, which has no queues
    /// itself. So the two caches never need each other.
    pub(super) fn new_sheaf(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) -> Option<Sheaf> {
        let boot = backend.info(BOOT_CACHE)?;
        let memory = self.single::<Everywhere>(backend, boot)?;
        // SAFETY: an object of the cache of sheaves has a sheaf's size and alignment, and is this
        // caller's.
        Some(unsafe { Sheaf::make(memory, info.geometry.capacity as usize) })
    }

    /// Gives the memory of an empty sheaf back.
    pub(super) fn drop_sheaf(&self, backend: &Backend<'m, S, L>, sheaf: Sheaf) {
        if let Some(boot) = backend.info(BOOT_CACHE) {
            let memory = backend.pointer(sheaf.address());
            let given = self.give_single::<Everywhere>(backend, boot, memory);
            debug_assert!(given.is_ok(), "a sheaf: {given:?}");
        }
    }
}
