//! Lookups: what a frame is used for, by its words and its block's state. The answers are hints
//! while other CPUs are at work.

use brickyard_sync::Ordering;

use super::Bitmap;
use super::state::BlockMode;
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use crate::block::{FreeTable, State, Use};
use crate::{Frame, FrameRange, FreeError, MigrateType, Order, RangeError};

impl Bitmap<'_> {
    pub(super) fn inner_bits(&self, word: usize) -> u64 {
        // Acquire: pairs with the release in `clear_inner`. A CPU that sees one cut of a block sees
        // those made before.
        self.inner[word].load(Ordering::Acquire)
    }

    pub(super) fn memory_bits(&self, word: usize) -> u64 {
        // Acquire: pairs with the release by which frames become memory, see `inner_memory`.
        self.memory[word].load(Ordering::Acquire)
    }

    /// Returns the frames of a word that continue the block before them. Frames that are not memory
    /// do not, whatever their bit says: it says that they are reserved.
    ///
    /// Frames leave memory before they are marked as reserved, and are unmarked before they come
    /// back. So of two readings of each, in turn, one tells that a frame is no memory or not
    /// marked, unless it leaves a second time in between; and then the state of its page block has
    /// changed.
    pub(super) fn inner_memory(&self, word: usize) -> u64 {
        let first = self.memory_bits(word) & self.inner_bits(word);
        first & self.memory_bits(word) & self.inner_bits(word)
    }

    pub(super) fn is_memory(&self, offset: usize) -> bool {
        self.memory_bits(offset / WORD_FRAMES) >> (offset % WORD_FRAMES) & 1 != 0
    }

    /// Returns true if the frame at `offset` continues the block before it. Frames that are not
    /// memory do not.
    fn is_inner(&self, offset: usize) -> bool {
        self.inner_memory(offset / WORD_FRAMES) >> (offset % WORD_FRAMES) & 1 != 0
    }

    /// Returns the start and the order of the block in use that a frame of an open block lies in.
    pub(super) fn block_around(&self, offset: usize) -> (usize, u8) {
        // Other CPUs that free parts of the block cut it meanwhile, at most once for each order.
        // What is seen then may not contain the frame.
        for _ in 0..=self.block_order {
            let (head, order) = self.block_seen(offset);
            if offset < head + (1 << order) {
                return (head, order);
            }
        }
        (offset, 0)
    }

    fn block_seen(&self, offset: usize) -> (usize, u8) {
        let starts = (0..=self.block_order).map(|order| offset >> order << order);
        let head = { starts }.find(|&start| !self.is_inner(start));
        let head = head.unwrap_or(offset);
        let mut order = 0;
        // A block of order n has an inner frame at `head` + 2^i for each i below n, and the frame
        // after the block is not inner.
        while order < self.block_order
            && head >> order & 1 == 0
            && self.is_inner(head + (1 << order))
        {
            order += 1;
        }
        (head, order)
    }

    /// Returns the block that contains `frame`: its first frame, use, order and type.
    pub fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        if !self.span.contains(frame) {
            return None;
        }
        let offset = self.offset(frame);
        let block = self.block_at(offset);
        let state = self.state(block);
        let first = self.start_of(block);
        match state.mode() {
            BlockMode::Huge => {
                let (head, group) = self.group_of(block);
                let head = self.start_of(head);
                let order = self.order_of_group(group);
                Some((head, State::new(Use::Allocated, order, state.kind())))
            }
            BlockMode::Free | BlockMode::Changing => {
                Some(self.free_around(frame, first, self.block_order, state.shown_kind()))
            }
            BlockMode::Open if !self.is_memory(offset) => {
                let reserved = self.inner_bits(offset / WORD_FRAMES) >> (offset % WORD_FRAMES) & 1;
                let state = State::new(Use::Reserved, Order::ZERO, MigrateType::Unmovable);
                (reserved != 0).then_some((frame, state))
            }
            BlockMode::Open
                if self.free_bits(offset / WORD_FRAMES) >> (offset % WORD_FRAMES) & 1 != 0 =>
            {
                let order = self.free_order(block, offset);
                let first = frame.align_down(Order::new(order));
                Some(self.free_around(frame, first, order, state.shown_kind()))
            }
            BlockMode::Open => {
                let (head, order) = self.block_around(offset);
                let state = State::new(Use::Allocated, Order::new(order), self.mobility_of(offset));
                Some((self.frame_at(head), state))
            }
        }
    }

    /// Returns the free block of `order` at `first`, or the part of it around `frame` that no edge
    /// of an isolated range cuts.
    fn free_around(
        &self,
        frame: Frame,
        first: Frame,
        order: u8,
        kind: MigrateType,
    ) -> (Frame, State) {
        // Page blocks may be larger than the highest order.
        let order = order.min(self.max_order.get());
        let first = if order < self.block_order {
            frame.align_down(Order::new(order))
        } else {
            first
        };
        if !self.isolation.any() {
            return (first, State::new(Use::Free, Order::new(order), kind));
        }
        let cut = |order: &u8| {
            let order = Order::new(*order);
            !self
                .isolation
                .cuts(FrameRange::of_block(frame.align_down(order), order))
        };
        let order = (0..=order).rev().find(cut).map_or(Order::ZERO, Order::new);
        let kind = if self.isolation.contains(frame) {
            MigrateType::Isolate
        } else {
            kind
        };
        (frame.align_down(order), State::new(Use::Free, order, kind))
    }

    /// Returns the order of the largest aligned run of free frames in an open block that contains
    /// the frame at `offset`.
    fn free_order(&self, block: usize, offset: usize) -> u8 {
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        let bits = self.free_bits(place);
        let holds = |&order: &u8| word::starts(bits, order) >> (bit >> order << order) & 1 != 0;
        let order = (0..=WORD_ORDER).rev().find(holds).unwrap_or(0);
        if order < WORD_ORDER {
            return order;
        }
        let first = self.first_word(block);
        let whole = (0..self.block_words()).filter(|i| self.free_bits(first + i) == !0);
        let whole = whole.fold(0_u64, |mask, i| mask | 1 << i);
        let in_block = place - first;
        let holds =
            |&order: &u8| word::starts(whole, order) >> (in_block >> order << order) & 1 != 0;
        let words = (0..=self.block_order - WORD_ORDER).rev().find(holds);
        WORD_ORDER + words.unwrap_or(0)
    }

    /// Checks that all frames of `range` are in use.
    ///
    /// # Errors
    /// The error that a free of the first frame not in use would return.
    pub fn check_in_use(&self, range: FrameRange) -> Result<(), FreeError> {
        self.all(range, |usage| match usage {
            Some(Use::Allocated) => Ok(()),
            Some(Use::Free | Use::Cached) => Err(FreeError::DoubleFree),
            Some(Use::Reserved | Use::Inner) | None => Err(FreeError::NotOwned),
        })
        .map_err(|(_, error)| error)
    }

    /// Checks that all of the range is free, as far as can be seen.
    pub(super) fn all_free(&self, range: FrameRange) -> Result<(), RangeError> {
        self.all(range, |usage| match usage {
            Some(Use::Free) => Ok(()),
            other => Err(other),
        })
        .map_err(|(frame, usage)| match usage {
            None => RangeError::Absent { frame },
            Some(_) => RangeError::Busy { frame },
        })
    }

    /// Passes every block and every run of the range to `judge`. Returns the first frame that it
    /// rejects, and its verdict.
    pub(super) fn all<E>(
        &self,
        range: FrameRange,
        judge: impl Fn(Option<Use>) -> Result<(), E>,
    ) -> Result<(), (Frame, E)> {
        let mut at = range.start;
        while at < range.end {
            let found = self.block_of(at);
            judge(found.map(|(_, state)| state.usage)).map_err(|error| (at, error))?;
            at = found.map_or(at.plus(1), |(first, state)| {
                first.plus(state.order.frames())
            });
        }
        Ok(())
    }

    /// Returns the free blocks by order and type, as a buddy store would have merged them. O(span).
    pub fn free_table(&self) -> FreeTable {
        let mut table = [[0; MigrateType::COUNT]; Order::COUNT];
        self.count_free(&mut table);
        table
    }

    /// Adds the free blocks to a table: see [`Bitmap::free_table`].
    #[inline(never)]
    fn count_free(&self, table: &mut FreeTable) {
        let mut block = 0;
        while block < self.states.len() {
            let state = self.state(block);
            let whole = state.count() == self.block_frames() && state.mode() != BlockMode::Huge;
            if whole && !state.is_isolated() && self.block_order <= self.max_order.get() {
                let group = self.free_group(block);
                table[(self.block_order + group) as usize][state.shown_kind().index()] += 1;
                block += 1 << group;
                continue;
            }
            if state.mode() == BlockMode::Free || state.is_open() {
                self.count_in(block, state.shown_kind(), table);
            }
            block += 1;
        }
    }

    /// Returns the order, in blocks, of the largest aligned group of blocks that starts here and is
    /// free as a whole. A block that is set aside is in no group.
    fn free_group(&self, block: usize) -> u8 {
        if self.state(block).is_aside() {
            return 0;
        }
        let most = self.max_order.get().saturating_sub(self.block_order);
        let is_whole = |block: usize| {
            let state = self.states.get(block).map(|_| self.state(block));
            state.is_some_and(|state| {
                let whole = state.count() == self.block_frames();
                whole && state.mode() != BlockMode::Huge && !state.is_kept()
            })
        };
        let mut group = 0;
        while group < most && (block + self.phase) >> group & 1 == 0 {
            let more = 1 << group;
            if !(block + more..block + 2 * more).all(is_whole) {
                break;
            }
            group += 1;
        }
        group
    }

    /// Counts the free runs of one block.
    fn count_in(&self, block: usize, kind: MigrateType, table: &mut FreeTable) {
        let range = self.frames_of(block).intersection(self.span);
        let mut at = range.start;
        while at < range.end {
            let Some((first, found)) = self.block_of(at) else {
                at = at.plus(1);
                continue;
            };
            if found.usage == Use::Free {
                let kind = match found.kind {
                    MigrateType::Isolate => MigrateType::Isolate,
                    _ => kind,
                };
                table[found.order.index()][kind.index()] += 1;
            }
            at = first.plus(found.order.frames());
        }
    }
}
