//! Blocks of the size of a page block and up, managed only by the states of page blocks. Where they
//! are is found by the summary, in a bounded number of words (`summary.rs`).
//!
//! A block of several page blocks is in use as a *group*: all of them are huge, and all but the
//! first are tails. As with the `inner` bits of frames, tails are only ever cleared while the group
//! is in use. So several CPUs can free parts of it at once. A part is freed from its last block to
//! its first, so that a block never lies before tails that are not its own.

use brickyard_sync::Ordering;

use super::search::Wanted;
use super::state::{BlockMode, BlockState};
use super::summary::{End, Index};
use super::trees::FANOUT;
use super::{Attempt, Bitmap, CALL_INS, Luck, TRIES};
use crate::{Frame, FreeError, MigrateType, Order, Request};

/// Whether a block that is isolated or set aside may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolated {
    /// It may not: for requests.
    Not,
    /// It may: for the caller that isolated it, which checks the whole range itself.
    Too,
}

impl Bitmap<'_> {
    /// Takes a page block or an aligned group of them.
    pub(super) fn take_wide(&self, request: &Request) -> Option<Frame> {
        let order = request.order.get();
        let wanted = self.wanted(request);
        if order == self.block_order && wanted.limit.is_none() {
            return self.take_one_block(wanted);
        }
        let blocks = 1 << (order - self.block_order);
        let mut call_ins = CALL_INS;
        for _ in 0..TRIES {
            let Some(block) = self.find_blocks(order, wanted) else {
                if call_ins > 0 && self.call_in_loans() {
                    call_ins -= 1;
                    continue;
                }
                return None;
            };
            if self.take_blocks(block, blocks, wanted.kind, Isolated::Not) {
                return Some(self.start_of(block));
            }
        }
        None
    }

    /// Takes any page block that is free as a whole: one in the set, or one that is on loan
    /// although nothing in it is in use.
    fn take_one_block(&self, wanted: Wanted) -> Option<Frame> {
        let mut attempt =
            |block: usize| match self.take_whole(block, wanted.kind, false, Isolated::Not) {
                Some(_) => Attempt::Got(block),
                // Not free as a whole, so it has no place in the set. The CPU that changed it may
                // stand still before it says so there.
                None => Attempt::Nothing,
            };
        let mut from_set =
            || self.try_set(Index::WHOLE, wanted, &mut attempt, &mut Luck::default());
        let block = from_set().or_else(|| self.call_in_loans().then(&mut from_set).flatten());
        let block = block.or_else(|| {
            // It may be on loan again by now.
            let mut lent = self.lent_blocks();
            lent.find(|&block| {
                let taken = self.take_whole(block, wanted.kind, false, Isolated::Not);
                taken.is_some()
            })
        })?;
        self.totals.free.remove(block, self.block_frames());
        Some(self.start_of(block))
    }

    /// Finds an aligned group of blocks that are free as a whole and lie below the limit, or one
    /// such block. For the words that it reads, see [`Index::find_group`].
    pub(super) fn find_blocks(&self, order: u8, wanted: Wanted) -> Option<usize> {
        let group = order - self.block_order;
        let end = Self::end_for(wanted);
        let position = match (group, end) {
            (0, End::Low) => self.index.find(Index::WHOLE, 0, end),
            (0, End::High) => {
                let last = self.states.len() + self.phase - 1;
                self.index.find(Index::WHOLE, last, end)
            }
            _ => self.index.find_group(group, end),
        }?;
        let first = position - self.phase;
        // With a limit the search goes upwards, so there is nothing below the limit after this.
        let end = (first + (1 << group)) << self.block_order;
        (end <= wanted.limit.unwrap_or(usize::MAX)).then_some(first)
    }

    /// Takes adjacent blocks, all of them or none.
    pub(super) fn take_blocks(
        &self,
        first: usize,
        blocks: usize,
        kind: MigrateType,
        isolated: Isolated,
    ) -> bool {
        // The frames taken that the total counts.
        let mut counted = 0;
        for block in first..first + blocks {
            if let Some(old) = self.take_whole(block, kind, block > first, isolated) {
                counted += usize::from(!old.is_isolated()) << self.block_order;
                continue;
            }
            if !self.belongs(Index::WHOLE, block) {
                self.take_out_of(Index::WHOLE, block);
            }
            // These blocks are this caller's. From the last to the first, as in `give_wide`.
            for taken in (first..block).rev() {
                self.totals.free.add(taken, self.block_frames());
                self.free_whole(taken);
            }
            self.totals.free.remove(first, counted);
            return false;
        }
        self.totals.free.remove(first, counted);
        true
    }

    /// Takes a block that is free as a whole. Returns the state that it was in, or `None` if it is
    /// not free as a whole.
    fn take_whole(
        &self,
        block: usize,
        kind: MigrateType,
        tail: bool,
        isolated: Isolated,
    ) -> Option<BlockState> {
        let (old, new) = self.claim_whole(block, kind, tail, isolated)?;
        self.moved(block, old, new);
        Some(old)
    }

    /// Takes a block that is free as a whole, and leaves its sets to the caller. Returns the old
    /// and the new state.
    fn claim_whole(
        &self,
        block: usize,
        kind: MigrateType,
        tail: bool,
        isolated: Isolated,
    ) -> Option<(BlockState, BlockState)> {
        let huge = |state: BlockState| state.taken_whole(kind, tail);
        for _ in 0..TRIES {
            let old = self.state(block);
            let spared = old.is_kept() && isolated == Isolated::Not;
            if old.count() != self.block_frames() || spared {
                return None;
            }
            if old.mode() == BlockMode::Free {
                if self.replace(block, old, huge(old)) {
                    return Some((old, huge(old)));
                }
                continue;
            }
            // The block is open. First, no other CPU may touch its words any more.
            if self.replace(
                block,
                old,
                old.with_mode(BlockMode::Changing).with_free(0, 0),
            ) {
                self.write_as_one(block);
                loop {
                    let changing = self.state(block);
                    if self.replace(block, changing, huge(changing)) {
                        self.loan_changed(block, changing, huge(changing));
                        return Some((old, huge(changing)));
                    }
                }
            }
        }
        None
    }

    /// Takes up to `most` page blocks that lie near each other, and hands the position of each to
    /// `each`. Returns the number taken. All of them cost one change of the summary and of the
    /// total.
    pub(crate) fn take_page_blocks(
        &self,
        kind: MigrateType,
        most: usize,
        mut each: impl FnMut(usize),
    ) -> usize {
        let end = Self::end_for(Wanted::of(kind));
        let last = (self.states.len() + self.phase - 1) / FANOUT;
        let from = if end == End::Low { 0 } else { last };
        let Some(leaf) = self.index.next_leaf(Index::WHOLE, from, end) else {
            return 0;
        };
        let mut there = self.index.leaf(Index::WHOLE, leaf);
        let (mut gone, mut taken) = (0_u64, 0);
        while there != 0 && taken < most {
            let bit = match end {
                End::Low => there.trailing_zeros(),
                End::High => there.ilog2(),
            };
            there &= !(1 << bit);
            let block = leaf * FANOUT + bit as usize - self.phase;
            if self
                .claim_whole(block, kind, false, Isolated::Not)
                .is_some()
            {
                gone |= 1 << bit;
                taken += 1;
                each(block << self.block_order);
            }
        }
        if gone != 0 {
            self.index.remove_bits(Index::WHOLE, leaf, gone);
            self.for_blocks(leaf, gone, |block| {
                // It may have come back meanwhile.
                if self.belongs(Index::WHOLE, block) {
                    self.put_into(Index::WHOLE, block);
                }
            });
        }
        let near = (leaf * FANOUT).saturating_sub(self.phase);
        self.totals.free.remove(near, taken << self.block_order);
        taken
    }

    /// Takes back page blocks that a front held, by their positions. Counts those that are not in
    /// use.
    #[inline(never)]
    pub(crate) fn give_page_blocks(&self, offsets: impl ExactSizeIterator<Item = usize>) {
        let frames = self.block_frames();
        let (mut leaf, mut back) = (0, 0_u64);
        let (mut near, mut refused, mut isolated) = (None, 0, 0);
        let count = offsets.len();
        for offset in offsets {
            let block = self.block_at(offset);
            if near.is_none() {
                // Before any of them is free.
                self.totals.free.add(block, count * frames);
                near = Some(block);
            }
            let state = self.state(block);
            if state.mode() != BlockMode::Huge || state.is_tail() {
                refused += frames;
                continue;
            }
            if !self.replace(block, state, self.free_as_a_whole(state)) {
                // It is being isolated, for example, or it came back twice.
                if !self.free_whole(block) {
                    refused += frames;
                }
                continue;
            }
            isolated += usize::from(state.is_isolated()) << self.block_order;
            let position = block + self.phase;
            if position / FANOUT != leaf {
                self.put_bits_into_whole(leaf, back);
                (leaf, back) = (position / FANOUT, 0);
            }
            back |= 1 << (position % FANOUT);
        }
        self.put_bits_into_whole(leaf, back);
        if let Some(near) = near
            && refused + isolated > 0
        {
            self.totals.free.remove(near, refused + isolated);
            self.refuse_late(refused);
        }
    }

    fn put_bits_into_whole(&self, leaf: usize, bits: u64) {
        if bits == 0 {
            return;
        }
        self.index.insert_bits(Index::WHOLE, leaf, bits);
        self.for_blocks(leaf, bits, |block| {
            // It may have been taken again meanwhile, or be isolated.
            if !self.belongs(Index::WHOLE, block) {
                self.take_out_of(Index::WHOLE, block);
            }
        });
    }

    /// Calls `each` with the blocks of some bits of a leaf.
    fn for_blocks(&self, leaf: usize, bits: u64, each: impl Fn(usize)) {
        let mut rest = bits;
        while rest != 0 {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            each(leaf * FANOUT + bit - self.phase);
        }
    }

    /// Writes the words of a block, which must be the caller's, as those of one block in use.
    pub(super) fn write_as_one(&self, block: usize) {
        // Before the words: a CPU that reads them for a bad free, and then the class, finds none.
        self.end_class(block);
        let first = self.first_word(block);
        for word in first..first + self.block_words() {
            let head = u64::from(word == first);
            // Release: a CPU that reads this for a bad free sees that the block is no longer open.
            // The change of state that follows, or whatever hands the block on, publishes the rest:
            // every frame of the block is the caller's.
            self.free[word].store(0, Ordering::Release);
            self.inner[word].store(!head, Ordering::Release);
        }
    }

    /// Frees a huge block, which must be the caller's, and which the total has been told of.
    /// Returns false if the block is not huge.
    fn free_whole(&self, block: usize) -> bool {
        let freed = self.change(block, |state| {
            let free = state.with_mode(BlockMode::Free).with_tail(false);
            let full = free.with_free(self.block_frames(), self.block_order);
            (state.mode() == BlockMode::Huge).then_some(full)
        });
        if let Some((_, now)) = freed {
            self.uncount_isolated(block, now, self.block_frames());
        }
        freed.is_some()
    }

    /// Returns the number of the mobility of the page block at `offset`, if that is a block in use
    /// of exactly that size and nothing in it is isolated. `None` for a position outside all
    /// blocks.
    #[inline(always)]
    pub(crate) fn mobility_of_page_block(&self, offset: usize) -> Option<usize> {
        let block = self.block_at(offset);
        // Relaxed, twice: the caller claims to own the block. If it does, the parts of both states
        // that are read here do not change.
        let state = self.states.get(block)?.load(Ordering::Relaxed);
        let state = BlockState::from_bits(state);
        if !state.is_head() || offset & (self.block_frames() - 1) != 0 {
            return None;
        }
        // A larger group that begins here also has the other block of this pair.
        let after = self.states.get(block + 1).filter(|_| self.is_even(block));
        if after.is_some_and(|after| BlockState::from_bits(after.load(Ordering::Relaxed)).is_tail())
        {
            return None;
        }
        Some(state.kind_number())
    }

    /// Returns true if the block is the first of an aligned pair.
    const fn is_even(&self, block: usize) -> bool {
        (block + self.phase) & 1 == 0
    }

    /// Returns the group that a huge block belongs to: its first block, and its order in blocks.
    pub(super) fn group_of(&self, block: usize) -> (usize, u8) {
        // Other CPUs that free parts of the group cut it meanwhile, at most once for each order.
        // What is seen then may not contain the block.
        for _ in 0..=self.max_order.get() {
            let (head, order) = self.group_seen(block);
            if block < head + (1 << order) {
                return (head, order);
            }
        }
        (block, 0)
    }

    fn group_seen(&self, block: usize) -> (usize, u8) {
        let tail = |block: usize| {
            let state = self.states.get(block).map(|_| self.state(block));
            state.is_some_and(|s| s.mode() == BlockMode::Huge && s.is_tail())
        };
        let most = self.max_order.get().saturating_sub(self.block_order);
        let position = block + self.phase;
        let starts = (0..=most).map(|order| position >> order << order);
        let head = starts
            .filter_map(|start| start.checked_sub(self.phase))
            .find(|&start| !tail(start))
            .unwrap_or(block);
        let mut order = 0;
        while order < most && (head + self.phase) >> order & 1 == 0 && tail(head + (1 << order)) {
            order += 1;
        }
        (head, order)
    }

    /// Cuts the group at `head` so that the part of 2^`part_order` blocks at `part` stands alone.
    /// The rest becomes groups of their own.
    fn cut_group(&self, head: usize, order: u8, part: usize, part_order: u8) {
        let (mut from, mut size) = (head, order);
        while size > part_order {
            size -= 1;
            let upper = from + (1 << size);
            self.change(upper, |state| {
                state.is_tail().then_some(state.with_tail(false))
            });
            if part >= upper {
                from = upper;
            }
        }
    }

    /// Frees 2^`order` frames, a page block or more, of the group that the block at `offset`
    /// belongs to.
    pub(super) fn give_wide(&self, offset: usize, order: u8) -> Result<(), FreeError> {
        let block = self.block_at(offset);
        let (head, group) = self.group_of(block);
        let part_order = order - self.block_order;
        self.cut_group(head, group, block, part_order);
        let blocks = 1 << part_order;
        self.totals.free.add(block, blocks << self.block_order);
        // From the last to the first: whoever takes the first must not find the others behind it.
        for left in (0..blocks).rev() {
            if !self.free_whole(block + left) {
                // Another CPU frees the same block at this moment.
                let rest = (left + 1) << self.block_order;
                self.totals.free.remove(block, rest);
                return Err(FreeError::DoubleFree);
            }
        }
        Ok(())
    }

    /// Opens a huge block, all of it in use as one block, so that smaller parts of it can be freed.
    pub(super) fn unfold(&self, block: usize) {
        let (head, group) = self.group_of(block);
        self.cut_group(head, group, block, 0);
        self.change(block, |state| {
            // Its words have said all the while that it is one block in use.
            let open = state.with_mode(BlockMode::Open).with_joined(true);
            let mixed = if state.kind() == MigrateType::Movable {
                0
            } else {
                !0
            };
            (state.mode() == BlockMode::Huge).then_some(open.with_mixed(mixed))
        });
    }

    /// Returns the order of a group of page blocks.
    pub(super) const fn order_of_group(&self, group: u8) -> Order {
        Order::new(self.block_order + group)
    }

    /// Returns the state of a block that has just become free as a whole.
    pub(super) const fn free_as_a_whole(&self, state: BlockState) -> BlockState {
        state.freed_whole(self.block_frames(), self.block_order)
    }
}
