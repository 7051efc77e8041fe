//! Towards the caller: objects out of slabs into sheaves.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::partial;
use super::state::Sheafed;
use super::words::Sheaf;
use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::Caller;
use crate::local::Local;
use crate::source::PageSource;

/// A sheaf in hand while pages are taken and objects are made by code that may panic. When this is
/// dropped, the sheaf goes to the barn.
struct InHand<'a, 'm, C: Caller, S: PageSource, L: Local, K: RawLock> {
    sheaves: &'a Sheafed<'m, S, L, K>,
    backend: &'a Backend<'m, S, L>,
    info: &'a CacheInfo,
    sheaf: Sheaf,
    caller: PhantomData<fn() -> C>,
}

impl<C: Caller, S: PageSource, L: Local, K: RawLock> InHand<'_, '_, C, S, L, K> {
    fn keep(self) -> Sheaf {
        let kept = ManuallyDrop::new(self);
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        unsafe { Sheaf::at(kept.sheaf.address()) }
    }
}

impl<C: Caller, S: PageSource, L: Local, K: RawLock> Drop for InHand<'_, '_, C, S, L, K> {
    fn drop(&mut self) {
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        let sheaf = unsafe { Sheaf::at(self.sheaf.address()) };
        self.sheaves.to_barn::<C>(self.backend, self.info, sheaf);
    }
}

impl<'m, S: PageSource, L: Local, K: RawLock> Sheafed<'m, S, L, K> {
    /// Fills `sheaf` from the partial list of `node`, and makes slabs where that has too little.
    /// Each slab made brings at least one object, so there are never more of them than a sheaf has
    /// places. Returns true if the sheaf has something.
    pub(super) fn fill<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: usize,
        sheaf: &Sheaf,
    ) -> bool {
        let from = |depot: &Depot| partial::fill(depot, &backend.pages, info, sheaf);
        let slabs = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, node);
            from(&depot);
            depot.slabs.count()
        };
        // A large cache grows by an eighth at a time, a small one by a slab.
        let mut left = (slabs / 8).max(u32::from(sheaf.is_empty()));
        while left > 0
            && !sheaf.is_full()
            && self.grow::<C, _>(backend, info, Some(node), from).is_some()
        {
            left -= 1;
        }
        !sheaf.is_empty()
    }

    /// Returns a full sheaf in exchange for an empty one, or fills the empty one.
    pub(super) fn full_sheaf<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        empty: Option<Sheaf>,
    ) -> Option<Sheaf> {
        let node = backend.node_here();
        let empty = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, node);
            depot.exchanges.misses.add(1);
            if let Some(full) = depot.take_full() {
                // Another CPU may have filled it, and this one's allocations come next.
                full.fetch(info.geometry.capacity as usize);
                if let Some(empty) = empty {
                    depot.put_empty(empty);
                }
                return Some(full);
            }
            empty.or_else(|| depot.take_empty())
        };
        let sheaf = match empty {
            Some(sheaf) => sheaf,
            None => self.new_sheaf(backend, info)?,
        };
        let in_hand = InHand::<C, S, L, K> {
            sheaves: self,
            backend,
            info,
            sheaf,
            caller: PhantomData,
        };
        let filled = self.fill::<C>(backend, info, node, &in_hand.sheaf);
        filled.then(|| in_hand.keep())
    }
}
