//! Towards the caller: objects out of slabs into sheaves, and slabs out of pages.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::words::Sheaf;
use super::{Sheaves, shelf};
use crate::BOOT_CACHE;
use crate::debug;
use crate::design::SlabDesign;
use crate::ground::Ground;
use crate::kind::Kind;
use crate::local::{Caller, Everywhere};

/// A sheaf in hand while pages are taken and objects made, by code that may panic: it goes to the
/// barn when this is dropped.
struct InHand<'a, 'm, C: Caller, D: SlabDesign<'m>, K: RawLock> {
    sheaves: &'a Sheaves<'m, K>,
    ground: &'a Ground<'m, D>,
    kind: &'a Kind,
    sheaf: Sheaf,
    caller: PhantomData<fn() -> C>,
}

impl<'m, C: Caller, D: SlabDesign<'m>, K: RawLock> InHand<'_, 'm, C, D, K> {
    fn keep(self) -> Sheaf {
        let kept = ManuallyDrop::new(self);
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        unsafe { Sheaf::at(kept.sheaf.address()) }
    }
}

impl<'m, C: Caller, D: SlabDesign<'m>, K: RawLock> Drop for InHand<'_, 'm, C, D, K> {
    fn drop(&mut self) {
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        let sheaf = unsafe { Sheaf::at(self.sheaf.address()) };
        self.sheaves.to_barn::<C, D>(self.ground, self.kind, sheaf);
    }
}

impl<'m, K: RawLock> Sheaves<'m, K> {
    /// One object out of a slab, past all sheaves.
    pub(super) fn single<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
    ) -> Option<NonNull<u8>> {
        self.single_on::<C, D>(ground, kind, ground.node_here())
    }

    /// The same, best of this node's memory.
    pub(super) fn single_on<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        node: usize,
    ) -> Option<NonNull<u8>> {
        let one = |depot: &Depot| {
            let object = shelf::take_one(depot, &ground.pages, kind)?;
            depot.count_miss();
            Some(ground.pointer(object))
        };
        let at_hand = {
            let _inside = ground.inside::<C>();
            one(&self.depot(ground, kind.id, node))
        };
        let grown = |node| self.grow::<C, D, _>(ground, kind, node, one).flatten();
        at_hand
            .or_else(|| grown(Some(node)))
            // What is free elsewhere first: else every request that comes here would take another slab there.
            .or_else(|| self.single_elsewhere::<C, D>(ground, kind, node))
            .or_else(|| (self.nodes > 1).then(|| grown(None)).flatten())
    }

    /// One object out of a slab of another node.
    pub(super) fn single_elsewhere<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
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

    /// Another slab, of this node's memory or of any, for the depot of the node whose memory it is. What `take` takes of
    /// it then, nobody else has taken before. `None`: there are no pages.
    pub(super) fn grow<C: Caller, D: SlabDesign<'m>, T>(
        &self,
        ground: &Ground<'m, D>,
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
        if let Some(constructor) = kind.spec.constructor {
            for index in 0..kind.geometry.objects {
                let at = first + (colour + index * kind.geometry.stride) as usize + kind.before;
                constructor(ground.pointer(at));
            }
        }
        debug::new_slab(ground, kind, first + colour as usize);
        let _inside = ground.inside::<C>();
        let depot = self.depot(ground, kind.id, owner);
        shelf::begin(&depot, &ground.pages, kind, pages.keep(), colour);
        Some(take(&depot))
    }

    /// Fills `sheaf` from the shelf of `node`, growing it where it has too little: each slab made brings an object at
    /// least, so there are never more of them than a sheaf has places. True if it has something.
    pub(super) fn fill<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        node: usize,
        sheaf: &Sheaf,
    ) -> bool {
        let from = |depot: &Depot| shelf::fill(depot, &ground.pages, kind, sheaf);
        let slabs = {
            let _inside = ground.inside::<C>();
            let depot = self.depot(ground, kind.id, node);
            from(&depot);
            depot.slabs.count()
        };
        // A large cache grows by an eighth at a time, a small one by a slab.
        let mut left = (slabs / 8).max(u32::from(sheaf.is_empty()));
        while left > 0
            && !sheaf.is_full()
            && self
                .grow::<C, D, _>(ground, kind, Some(node), from)
                .is_some()
        {
            left -= 1;
        }
        !sheaf.is_empty()
    }

    /// A full sheaf in exchange for an empty one, or an empty one filled.
    pub(super) fn full_sheaf<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        empty: Option<Sheaf>,
    ) -> Option<Sheaf> {
        let node = ground.node_here();
        let empty = {
            let _inside = ground.inside::<C>();
            let depot = self.depot(ground, kind.id, node);
            depot.count_miss();
            if let Some(full) = depot.take_full() {
                if let Some(empty) = empty {
                    depot.put_empty(empty);
                }
                return Some(full);
            }
            empty.or_else(|| depot.take_empty())
        };
        let sheaf = match empty {
            Some(sheaf) => sheaf,
            None => self.new_sheaf(ground, kind)?,
        };
        let in_hand = InHand::<C, D, K> {
            sheaves: self,
            ground,
            kind,
            sheaf,
            caller: PhantomData,
        };
        let filled = self.fill::<C, D>(ground, kind, node, &in_hand.sheaf);
        filled.then(|| in_hand.keep())
    }

    /// Memory for a sheaf of `kind`: from the cache of sheaves, which has no queues itself, so that the two never need each other.
    pub(super) fn new_sheaf<D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
    ) -> Option<Sheaf> {
        let boot = ground.kind(BOOT_CACHE)?;
        let memory = self.single::<Everywhere, D>(ground, boot)?;
        // SAFETY: an object of the cache of sheaves has a sheaf's size and alignment, and is this caller's.
        Some(unsafe { Sheaf::make(memory, kind.geometry.capacity as usize) })
    }
}
