//! How a stash is filled from the store, and how it gives back its surplus: single frames by whole
//! words.

use brickyard_sync::SlotAccess;

use super::cpu::{Array, CpuStash, SMALL, SMALL_ORDERS};
use super::{Backing, Stash};
use crate::bitmap::{Bitmap, Borrows, SPARSE, Sorter};
use crate::{Mobility, Order, Platform, Request};

/// The most single frames fetched at a time: what the slowest requests wait for.
const FETCH_MOST: u32 = 320;

/// Fewer frames of sparse page blocks stay where they are: to sort them would cost more than it
/// brings.
const SPARSE_LEAST: u32 = 16;

impl<A: SlotAccess> Stash<'_, A> {
    /// Returns the most frames that leave the store at a time.
    pub(crate) fn most_fetched(&self, store: &Bitmap<'_>) -> usize {
        let blocks = self.sizes.huge * store.page_block_order().frames();
        blocks.max(FETCH_MOST as usize).max(SMALL << SMALL_ORDERS)
    }

    /// Fills an empty array for `request`, as far as the store has `room` for frames: single frames
    /// to half of the limit, or by as much as is fetched at a time, larger blocks to the limit.
    /// Takes one block; `Some(None)` if the store has none. `None` if the store has still to be
    /// asked for the one block that is requested.
    #[cold]
    #[inline(never)]
    pub(super) fn refill<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        array: Array<'_>,
        request: &Request,
        room: usize,
    ) -> Option<Option<u32>> {
        let Array {
            order,
            place,
            stack,
        } = array;
        debug_assert_eq!(stack.len(), 0, "`cached-once`: filled from the start");
        let room = room >> order.get();
        let of_place = |entry: u32| backing.store.mobility_of_single(entry as usize) == Some(place);
        if room == 0 {
            // What lies here passed the watermark.
            let here = (order == Order::ZERO).then(|| own.sparse.take_last(of_place));
            return here.flatten().map(Some);
        }
        if order == Order::ZERO && own.sparse.len() >= SPARSE_LEAST {
            // The store chooses the fullest block when it knows what is free.
            let sparse = own.array(order, order, SPARSE)?;
            self.give_coldest(backing, own, sparse, sparse.stack.len());
        }
        if order == Order::ZERO && stack.limit() == 0 {
            self.raise(backing, own, array);
        }
        // Of the limit before this.
        let half = stack.limit().div_ceil(2);
        self.raise(backing, own, array);
        let wanted = match order {
            Order::ZERO => half.min(FETCH_MOST),
            _ => stack.limit(),
        };
        let wanted = room.min(wanted as usize);
        if wanted == 0 {
            return None;
        }
        // The blocks leave the store before they arrive in the stash.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let mut len = 0;
        let each = |offset: usize| {
            stack.entry(len).set(offset as u32);
            len += 1;
        };
        if order == Order::ZERO {
            len = self.fetch(&backing.store, own, array, request, wanted);
        } else if backing.store.is_page_block(order) {
            let taken = backing
                .store
                .take_page_blocks(request.mobility.into(), wanted, each);
            if taken == 0 {
                return None;
            }
        } else {
            backing.store.take_runs(request, wanted, each);
        }
        stack.set_len(len);
        match stack.pop() {
            // The store has nothing. A stash of others' would have to be drained.
            None if order == Order::ZERO => Some(own.sparse.take_last(of_place)),
            popped => Some(popped),
        }
    }

    /// Fetches so many single frames into an empty array. Returns how many came.
    #[inline(never)]
    fn fetch(
        &self,
        store: &Bitmap<'_>,
        own: &CpuStash,
        Array { place, stack, .. }: Array<'_>,
        request: &Request,
        wanted: usize,
    ) -> u32 {
        let kind = request.mobility.into();
        let blocks = &own.blocks[place];
        let mut len = 0;
        let mut keep = |offset: usize, bits| len = stack.write_word(len, offset as u32, bits);
        let mut taken = 0;
        while taken < wanted
            && let Some(block) = blocks.fullest(store, kind)
        {
            let more = store.take_singles_from(block, kind, wanted - taken, &mut keep);
            if more == 0 {
                // Other CPUs were faster, or a part of it is being isolated now: try elsewhere.
                break;
            }
            taken += more;
        }
        if taken < wanted {
            let loan = blocks.loan(store, kind, self.slots.len());
            let mut adopted = None;
            store.take_singles(request, wanted - taken, loan, |offset, bits| {
                let block = store.block_at(offset);
                if adopted != Some(block) {
                    blocks.adopt(store, kind, block);
                    adopted = Some(block);
                }
                keep(offset, bits);
            });
        }
        len
    }

    /// Makes room in a full array: raises its limit if there is room for that, and otherwise gives
    /// back the colder three quarters. There is none in an array that may hold nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        array: Array<'_>,
    ) {
        self.raise(backing, own, array);
        let len = array.stack.len();
        if array.stack.is_full() && len > 0 {
            let stays = if array.place == SPARSE { 0 } else { len / 4 };
            self.give_coldest(backing, own, array, len - stays);
        }
    }

    /// Gives back the first `leaving` blocks of an array.
    pub(super) fn give_coldest<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        array: Array<'_>,
        leaving: u32,
    ) {
        // The blocks leave the stash before they are in the store.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let Array { order, place, .. } = array;
        let store = &backing.store;
        match order {
            Order::ZERO if place != SPARSE => {
                let kind = Mobility::ALL[place].into();
                let mut borrowing = own.blocks[place].borrowing(store, kind);
                backing.give(array, leaving, &own.sorter, &mut borrowing);
            }
            _ => backing.give(array, leaving, &own.sorter, &mut ()),
        }
        array.stack.shift(leaving);
    }
}

impl<P> Backing<'_, P> {
    /// Gives the first `leaving` blocks of an array to the store. Page blocks of single frames may
    /// come on loan to whoever `borrows`.
    pub(super) fn give(
        &self,
        Array { order, stack, .. }: Array<'_>,
        leaving: u32,
        sorter: &Sorter,
        borrows: &mut impl Borrows,
    ) {
        let (store, cold) = (&self.store, stack.first(leaving));
        if order == Order::ZERO {
            return store.give_cached(cold, sorter, borrows);
        }
        let offsets = cold.iter().map(|entry| entry.get() as usize);
        match store.is_page_block(order) {
            true => store.give_page_blocks(offsets),
            false => store.give_runs(order, offsets),
        }
    }
}
