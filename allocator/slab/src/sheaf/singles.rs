//! One object at a time, past all sheaves: out of a slab and back, a new slab where none has any.
//! So are sheaves themselves had, and so they go back.

use core::ptr::NonNull;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::shelf;
use super::state::Sheafed;
use super::words::Sheaf;
use crate::caller::{Caller, Everywhere};
use crate::error::FreeFault;
use crate::ground::Ground;
use crate::kind::Kind;
use crate::layout::BOOT_CACHE;
use crate::local::Local;
use crate::source::PageSource;

impl<'m, S: PageSource, L: Local, K: RawLock> Sheafed<'m, S, L, K> {
    /// One object out of a slab, past all sheaves.
    pub(super) fn single<C: Caller>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
    ) -> Option<NonNull<u8>> {
        self.single_on::<C>(ground, kind, ground.node_here())
    }

    /// The same, best of this node's memory.
    pub(super) fn single_on<C: Caller>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
        node: usize,
    ) -> Option<NonNull<u8>> {
        let one = |depot: &Depot| {
            let object = shelf::take_one(depot, &ground.pages, kind)?;
            depot.counts.misses.add(1);
            Some(ground.pointer(object))
        };
        let at_hand = {
            let _inside = ground.inside::<C>();
            one(&self.depot(ground, kind.id, node))
        };
        let grown = |node| self.grow::<C, _>(ground, kind, node, one).flatten();
        at_hand
            .or_else(|| grown(Some(node)))
            // What is free elsewhere first: else every request that comes here would take another
            // slab there.
            .or_else(|| self.single_elsewhere::<C>(ground, kind, node))
            .or_else(|| (self.nodes > 1).then(|| grown(None)).flatten())
    }

    /// One object out of a slab of another node.
    pub(super) fn single_elsewhere<C: Caller>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
        not: usize,
    ) -> Option<NonNull<u8>> {
        let _inside = ground.inside::<C>();
        (0..self.nodes)
            .filter(|&node| node != not)
            .find_map(|node| {
                let depot = self.depot(ground, kind.id, node);
                // What lies in the barn is free too.
                if let Some(sheaf) = depot.take_full() {
                    let object = sheaf.pop();
                    if sheaf.is_empty() {
                        depot.put_empty(sheaf);
                    } else {
                        depot.put_full(sheaf);
                    }
                    return object.map(|object| ground.pointer(object));
                }
                let object = shelf::take_one(&depot, &ground.pages, kind)?;
                Some(ground.pointer(object))
            })
    }

    /// Another slab, of this node's memory or of any, for the depot of the node whose memory it is.
    /// What `take` takes of it then, nobody else has taken before. `None`: there are no pages.
    pub(super) fn grow<C: Caller, T>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
        node: Option<usize>,
        take: impl FnOnce(&Depot) -> T,
    ) -> Option<T> {
        let pages = ground.take_pages_of::<C>(kind, node)?;
        let first = ground.pages.address_of(pages.head());
        let owner = ground.node_of(ground.pointer(first));
        let colour = {
            let _inside = ground.inside::<C>();
            self.depot(ground, kind.id, owner)
                .slabs
                .next_colour(kind.geometry.colours)
        };
        let colour = colour * kind.geometry.colour_step;
        ground.make_objects(kind, first + colour as usize);
        let _inside = ground.inside::<C>();
        let depot = self.depot(ground, kind.id, owner);
        shelf::begin(&depot, &ground.pages, kind, pages.keep(), colour);
        Some(take(&depot))
    }

    /// One object into its slab, past all sheaves.
    pub(super) fn give_single<C: Caller>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        // Only what lies in a slab has a node; and behind the lock it is looked at again, since a
        // bad free's slab may go meanwhile.
        ground.find(kind, object)?;
        let empty = {
            let _inside = ground.inside::<C>();
            let depot = self.depot(ground, kind.id, ground.node_of(object));
            let (head, index) = ground.find(kind, object)?;
            depot.counts.free_misses.add(1);
            shelf::give_one(&depot, &ground.pages, kind, head, index)?
        };
        if let Some(head) = empty {
            ground.give_pages(kind, head);
        }
        Ok(())
    }

    /// Looks behind the lock whether an object is free in its slab: then it is freed twice.
    pub(super) fn check_out<C: Caller>(
        &self,
        ground: &Ground<'m, S, L>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let _inside = ground.inside::<C>();
        let _depot = self.depot(ground, kind.id, ground.node_of(object));
        let (head, index) = ground.find(kind, object)?;
        if shelf::is_free(&ground.pages, head, index) {
            return Err(FreeFault::DoubleFree);
        }
        Ok(())
    }

    /// Memory for a sheaf of `kind`: from the cache of sheaves, which has no queues itself, so that
    /// the two never need each other.
    pub(super) fn new_sheaf(&self, ground: &Ground<'m, S, L>, kind: &Kind) -> Option<Sheaf> {
        let boot = ground.kind(BOOT_CACHE)?;
        let memory = self.single::<Everywhere>(ground, boot)?;
        // SAFETY: an object of the cache of sheaves has a sheaf's size and alignment, and is this
        // caller's.
        Some(unsafe { Sheaf::make(memory, kind.geometry.capacity as usize) })
    }

    /// The memory of an empty sheaf goes back.
    pub(super) fn drop_sheaf(&self, ground: &Ground<'m, S, L>, sheaf: Sheaf) {
        if let Some(boot) = ground.kind(BOOT_CACHE) {
            let memory = ground.pointer(sheaf.address());
            let given = self.give_single::<Everywhere>(ground, boot, memory);
            debug_assert!(given.is_ok(), "a sheaf: {given:?}");
        }
    }
}
