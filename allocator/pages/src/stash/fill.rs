//! How a stash is filled from the store, and how it gives back its surplus: by whole words.

use brickyard_sync::SlotAccess;

use super::cpu::{CpuStash, HUGE, SMALL, SMALL_ORDERS, place_of};
use super::stack::Stack;
use super::{Backing, Stash};
use crate::bitmap::Bitmap;
use crate::{Frame, Mobility, Order, Platform, Request};

/// The most single frames fetched at a time: what the slowest requests wait for.
const FETCH_MOST: usize = 320;

impl<A: SlotAccess> Stash<'_, A> {
    /// Returns the most frames that leave the store at a time.
    pub(crate) fn most_fetched(&self, store: &Bitmap<'_>) -> usize {
        let blocks = self.sizes.huge * store.page_block_order().frames();
        blocks.max(FETCH_MOST).max(SMALL << SMALL_ORDERS)
    }

    /// As [`Stash::refill`], if the store has `room` for a frame.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_if<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        request: &Request,
        room: impl Fn() -> usize,
    ) -> Option<Frame> {
        let room = room();
        if room == 0 {
            return None;
        }
        let entry = self.refill(backing, own, request, room)?;
        Some(backing.store.frame_at(entry as usize))
    }

    /// Fills an empty array of single frames to half of its limit, or by as much as is fetched at a
    /// time, or as the store has `room` for. Takes one frame.
    fn refill<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        request: &Request,
        room: usize,
    ) -> Option<u32> {
        let kind = request.mobility.into();
        let place = place_of(kind);
        let stack = &own.singles[place];
        debug_assert_eq!(stack.len(), 0, "`cached-once`: filled from the start");
        if stack.limit() == 0 {
            self.grow(backing, own, stack);
        }
        let half = (stack.limit() / 2).max(1);
        self.grow(backing, own, stack);
        let wanted = half.min(stack.limit()) as usize;
        self.fetch(backing, own, request, wanted.min(FETCH_MOST).min(room))
    }

    /// Fetches so many single frames into an empty array. Takes one of them.
    #[inline(never)]
    fn fetch<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        request: &Request,
        wanted: usize,
    ) -> Option<u32> {
        let kind = request.mobility.into();
        let place = place_of(kind);
        let (stack, store) = (&own.singles[place], &backing.store);
        // The frames leave the store before they arrive in the stash.
        let _transit = backing.moves.begin(backing.platform.cpu());
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
        stack.set_len(len);
        stack.pop()
    }

    /// Makes room in a full array: doubles its limit if it may grow, and otherwise gives back the
    /// colder three quarters.
    #[cold]
    #[inline(never)]
    pub(super) fn flush<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        place: usize,
    ) {
        let stack = &own.singles[place];
        self.grow(backing, own, stack);
        if !stack.is_full() {
            return;
        }
        self.give_coldest(backing, own, place, (stack.len() * 3 / 4).max(1));
    }

    /// Gives back the first `leaving` single frames of an array.
    pub(super) fn give_coldest<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        place: usize,
        leaving: u32,
    ) {
        let stack = &own.singles[place];
        // The frames leave the stash before they are in the store.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let store = &backing.store;
        let kind = Mobility::ALL[place].into();
        let mut borrowing = own.blocks[place].borrowing(store, kind);
        store.give_cached(stack.first(leaving), &own.sorter, &mut borrowing);
        stack.shift(leaving);
    }

    /// Fetches page blocks into an empty array: all that it may hold, or as many as the store has
    /// `room` for. Takes one.
    pub(super) fn refill_huge<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        request: &Request,
        room: usize,
    ) -> Option<u32> {
        let kind = request.mobility.into();
        let stack = &own.huge[place_of(kind)];
        self.raise(backing, own, stack, request.order, self.sizes.huge);
        let limit = stack.limit() as usize;
        let wanted = limit.min(room / request.order.frames());
        if wanted == 0 {
            return None;
        }
        // The blocks leave the store before they arrive in the stash.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let mut len = 0;
        backing.store.take_page_blocks(kind, wanted, |offset| {
            stack.entry(len).set(offset as u32);
            len += 1;
        });
        stack.set_len(len);
        stack.pop()
    }

    /// Fetches blocks into an empty array of small blocks: all that it may hold, or as many as the
    /// store has `room` for. Takes one; `Some(None)` if there is none in the store. `None` if
    /// nothing was fetched, since the array may hold nothing, or there is no room.
    pub(super) fn refill_small<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        stack: &Stack<SMALL>,
        request: &Request,
        room: usize,
    ) -> Option<Option<u32>> {
        self.raise(backing, own, stack, request.order, self.sizes.small);
        let limit = stack.limit() as usize;
        let wanted = limit.min(room >> request.order.get());
        if wanted == 0 {
            return None;
        }
        // The blocks leave the store before they arrive in the stash.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let mut len = 0;
        backing.store.take_runs(request, wanted, |offset| {
            stack.entry(len).set(offset as u32);
            len += 1;
        });
        stack.set_len(len);
        Some(stack.pop())
    }

    /// Makes room in a full array of small blocks, as [`Stash::make_room_for_huge`] does.
    pub(super) fn make_room_for_small<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        stack: &Stack<SMALL>,
        order: Order,
    ) {
        self.raise(backing, own, stack, order, self.sizes.small);
        if stack.is_full() && stack.len() > 0 {
            self.give_coldest_small(backing, stack, order, (stack.len() * 3).div_ceil(4));
        }
    }

    /// Gives back the first `leaving` blocks of an array of small blocks.
    pub(super) fn give_coldest_small<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        stack: &Stack<SMALL>,
        order: Order,
        leaving: u32,
    ) {
        // The blocks leave the stash before they are in the store.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let cold = stack.entries().take(leaving as usize);
        let store = &backing.store;
        store.give_runs(order, cold.map(|entry| entry as usize));
        stack.shift(leaving);
    }

    /// Makes room in a full array of page blocks: it may hold more from now on, or gives back the
    /// colder three quarters. There is none if it may hold nothing.
    pub(super) fn make_room_for_huge<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        stack: &Stack<HUGE>,
        order: Order,
    ) {
        self.raise(backing, own, stack, order, self.sizes.huge);
        if stack.is_full() && stack.len() > 0 {
            self.give_coldest_blocks(backing, stack, (stack.len() * 3).div_ceil(4));
        }
    }

    /// Gives back the first `leaving` page blocks of an array.
    pub(super) fn give_coldest_blocks<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        stack: &Stack<HUGE>,
        leaving: u32,
    ) {
        // The blocks leave the stash before they are in the store.
        let _transit = backing.moves.begin(backing.platform.cpu());
        let cold = stack.entries().take(leaving as usize);
        let store = &backing.store;
        store.give_page_blocks(cold.map(|entry| entry as usize));
        stack.shift(leaving);
    }
}
