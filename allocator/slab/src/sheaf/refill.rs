//! Refills: objects out of slabs into sheaves, towards the caller.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::partial::{self, Taker};
use super::purpose::Purpose;
use super::state::Sheafed;
use super::words::Sheaf;
use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::Caller;
use crate::local::Local;
use crate::source::PageSource;

/// A sheaf in hand while pages are taken and objects are made by code that may panic. When this is
/// dropped, the sheaf goes to the barn.
struct InHand<'a, 'm, C: Caller, S: PageSource, L: Local, K: RawLock, P: Purpose> {
    sheaves: &'a Sheafed<'m, S, L, K, P>,
    backend: &'a Backend<'m, S, L>,
    info: &'a CacheInfo,
    sheaf: Sheaf,
    caller: PhantomData<fn() -> C>,
}

impl<C: Caller, S: PageSource, L: Local, K: RawLock, P: Purpose> InHand<'_, '_, C, S, L, K, P> {
    fn keep(self) -> Sheaf {
        let kept = ManuallyDrop::new(self);
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        unsafe { Sheaf::at(kept.sheaf.address()) }
    }
}

impl<C: Caller, S: PageSource, L: Local, K: RawLock, P: Purpose> Drop
    for InHand<'_, '_, C, S, L, K, P>
{
    fn drop(&mut self) {
        // SAFETY: `sheaf-in-one-place`: it leaves here, and this is not used any more.
        let sheaf = unsafe { Sheaf::at(self.sheaf.address()) };
        self.sheaves
            .to_barn::<C>(self.backend, self.info, sheaf, false);
    }
}

impl<'m, S: PageSource, L: Local, K: RawLock, P: Purpose> Sheafed<'m, S, L, K, P> {
    /// Fills `sheaf` from the partial list of `node`, and makes slabs where that has too little.
    /// Each slab made brings at least one object, so there are never more of them than a sheaf has
    /// places. Returns true if the sheaf has something.
    pub(super) fn fill<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: usize,
        sheaf: &Sheaf,
        cpu: usize,
    ) -> bool {
        let homes = backend.homes_for(info);
        let taker = homes.map(|homes| Taker::new(homes, cpu, self.rows.rows()));
        let from = |depot: &Depot| partial::fill(depot, &backend.pages, info, sheaf, taker);
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
        if sheaf.is_empty() && taker.is_some() {
            // There are no pages. What others are at home on serves too.
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, node);
            partial::fill(&depot, &backend.pages, info, sheaf, None);
        }
        !sheaf.is_empty()
    }

    /// Returns a full sheaf in exchange for an empty one, or fills the empty one.
    pub(super) fn full_sheaf<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        empty: Option<Sheaf>,
        cpu: usize,
    ) -> Option<Sheaf> {
        let node = backend.node_here();
        let homes = backend.homes_for(info);
        // What was away where it was freed serves where its last object is at home.
        let serves = |full: &Sheaf| match homes {
            Some(homes) if full.was_away() => {
                let last = backend.pages.page_at(full.last());
                last.is_none_or(|page| homes.is_on(page, cpu))
            }
            _ => true,
        };
        let taken = {
            let _inside = backend.inside::<C>();
            let depot = self.depot(backend, info.id, node);
            depot.exchanges.misses.add(1);
            match depot.take_full(serves) {
                Some(full) if serves(&full) => {
                    // Another CPU may have filled it, and this one's allocations come next.
                    full.fetch(info.geometry.capacity as usize);
                    if let Some(empty) = empty {
                        depot.put_empty(empty);
                    }
                    return Some(full);
                }
                // It goes back into slabs first, whose pages may move here.
                Some(away) => {
                    if let Some(empty) = empty {
                        depot.put_empty(empty);
                    }
                    Some(away)
                }
                None => empty.or_else(|| depot.take_empty()),
            }
        };
        let sheaf = match taken {
            Some(sheaf) => sheaf,
            None => self.new_sheaf(backend, info)?,
        };
        let in_hand = InHand::<C, S, L, K, P> {
            sheaves: self,
            backend,
            info,
            sheaf,
            caller: PhantomData,
        };
        self.empty_out::<C>(backend, info, &in_hand.sheaf);
        let filled = self.fill::<C>(backend, info, node, &in_hand.sheaf, cpu);
        filled.then(|| in_hand.keep())
    }
}
