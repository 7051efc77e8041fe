//! Giving back: what is refused, and how frames become free.

use brickyard_sync::Ordering;

use super::state::{BlockState, Mode};
use super::word::WORD_FRAMES;
use super::{Bitmap, MOST_WORDS, Masks};
use crate::store::Store;
use crate::{Frame, FrameRange, FreeError, MigrateType, Order};

/// Frames that are sorted by block at a time.
const CHUNK: usize = 256;

/// Chains of frames that are sorted into, by the number of their block.
const CHAINS: usize = 64;

impl Bitmap<'_> {
    /// Takes back any aligned part of a block in use.
    pub(super) fn give_block(&self, offset: usize, order: Order) -> Result<(), FreeError> {
        let block = self.block_at(offset);
        loop {
            match self.state(block).mode() {
                Mode::Free => return Err(FreeError::DoubleFree),
                Mode::Open => return self.give_narrow(offset, order),
                Mode::Huge => {
                    let allocated = self.order_of_group(self.group_of(block).1);
                    if order > allocated || !self.frame_at(offset).is_aligned(order) {
                        return Err(FreeError::WrongOrder { allocated });
                    }
                    if order.get() >= self.block_order {
                        return self.give_wide(offset, order.get());
                    }
                    self.unfold(block);
                }
            }
        }
    }

    /// The same, in an open block.
    fn give_narrow(&self, offset: usize, order: Order) -> Result<(), FreeError> {
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        if !self.is_memory(offset) {
            return Err(FreeError::NotOwned);
        }
        if self.free_bits(place) >> bit & 1 != 0 {
            return Err(FreeError::DoubleFree);
        }
        let (head, joined) = self.block_around(offset);
        let allocated = Order::new(joined);
        if order > allocated || !self.frame_at(offset).is_aligned(order) {
            return Err(FreeError::WrongOrder { allocated });
        }
        if joined > 0 {
            self.cut_out(head, joined, offset, order.get());
        }
        let block = self.block_at(offset);
        let (first, words, bits) = Self::bits_of(offset, order.get());
        let mut masks = [0; MOST_WORDS];
        for word in first..first + words {
            masks[word - self.first_word(block)] = bits;
        }
        match self.give_masks(block, &masks) {
            0 => Ok(()),
            // Somebody frees the same frames at this moment.
            _ => Err(FreeError::DoubleFree),
        }
    }

    /// Frees single frames of an open block. Returns how many were free already, which nothing is done about.
    pub(super) fn give_masks(&self, block: usize, masks: &Masks) -> usize {
        let first = self.first_word(block);
        let masks = &masks[..self.block_words()];
        let frames: usize = masks.iter().map(|mask| mask.count_ones() as usize).sum();
        // Relaxed: before the frames are free; the release below publishes it together with them.
        self.totals.free.fetch_add(frames, Ordering::Relaxed);
        let mut refused = 0;
        for (i, &mask) in masks.iter().enumerate() {
            if mask != 0 {
                // Release: pairs with the acquire of the next taker.
                let before = self.free[first + i].fetch_or(mask, Ordering::AcqRel);
                refused += (before & mask).count_ones() as usize;
            }
        }
        if refused > 0 {
            self.took(refused);
        }
        if self.isolation.any() {
            for (i, &mask) in masks.iter().enumerate() {
                let isolated = mask & self.isolated_bits(first + i);
                self.add_isolated(isolated.count_ones() as usize);
            }
        }
        if frames > refused {
            self.raise(block, frames - refused);
        }
        refused
    }

    /// The mobility of a frame that is, as far as can be seen without being its owner, a block of order 0 in use, and not near an isolated range. What a front asks
    /// before it keeps it.
    #[inline]
    pub(crate) fn single_in_use(&self, offset: usize) -> Option<MigrateType> {
        let state = self.state(self.block_at(offset));
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        // Relaxed: the caller says that it owns the frame; if it does, the bit does not change.
        let free = self.free[place].load(Ordering::Relaxed) >> bit & 1 != 0;
        if free || !state.is_plain() && (state.is_isolated() || !self.is_single_in_use(offset)) {
            return None;
        }
        Some(self.mobility_in(state, place))
    }

    /// Is the frame a block of order 0 in use?
    fn is_single_in_use(&self, offset: usize) -> bool {
        self.is_block_in_use(offset, Order::ZERO)
    }

    /// Is the frame the first of a block of exactly `order` in use?
    pub(crate) fn is_block_in_use(&self, offset: usize, order: Order) -> bool {
        let state = self.state(self.block_at(offset));
        match state.mode() {
            Mode::Free => false,
            Mode::Huge => {
                let (head, group) = self.group_of(self.block_at(offset));
                offset == head << self.block_order && self.order_of_group(group) == order
            }
            Mode::Open => {
                let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
                self.is_memory(offset)
                    && self.free_bits(place) >> bit & 1 == 0
                    && self.block_around(offset) == (offset, order.get())
            }
        }
    }

    /// The mobility of a frame in use, so that a front can keep it among its like: movable where nothing else is near, else that of its block, or unmovable.
    pub(crate) fn mobility_of(&self, offset: usize) -> MigrateType {
        self.mobility_in(self.state(self.block_at(offset)), offset / WORD_FRAMES)
    }

    /// The same in a block of this state, for a frame of a word.
    #[inline]
    fn mobility_in(&self, state: BlockState, word: usize) -> MigrateType {
        let kind = state.kind();
        match state.mode() {
            Mode::Huge | Mode::Free => kind,
            Mode::Open if !state.is_mixed(self.eighth(word)) => MigrateType::Movable,
            Mode::Open if kind == MigrateType::Movable => MigrateType::Unmovable,
            Mode::Open => kind,
        }
    }

    /// Is anything isolated in the block of this frame?
    #[inline]
    pub(crate) fn is_isolated_near(&self, offset: usize) -> bool {
        self.state(self.block_at(offset)).is_isolated()
    }

    /// Takes back single frames that a front held, in any order. What turns out to be free already is left alone, and counted.
    pub(crate) fn give_cached(&self, offsets: impl Iterator<Item = usize>) {
        let mut chunk = [0_u32; CHUNK];
        let mut held = 0;
        for offset in offsets {
            chunk[held] = offset as u32;
            held += 1;
            if held == CHUNK {
                self.give_chunk(&chunk);
                held = 0;
            }
        }
        self.give_chunk(&chunk[..held]);
    }

    /// A cache gave back frames that were not its own.
    pub(crate) fn refuse_late(&self, frames: usize) {
        // Relaxed: statistics.
        self.totals
            .refused_late
            .fetch_add(frames, Ordering::Relaxed);
    }

    /// Sorts frames by block and frees them block by block: one change of each word and each state.
    fn give_chunk(&self, offsets: &[u32]) {
        const END: u16 = u16::MAX;
        let mut heads = [END; CHAINS];
        let mut next = [END; CHUNK];
        let block_of = |i: u16| self.block_at(offsets[i as usize] as usize);
        for i in (0..offsets.len() as u16).rev() {
            let chain = block_of(i) % CHAINS;
            next[i as usize] = heads[chain];
            heads[chain] = i;
        }
        for mut first in heads {
            // Each turn frees one block's frames and leaves those of others in the chain.
            while first != END {
                let block = block_of(first);
                let mut masks = [0; MOST_WORDS];
                let mut twice = 0;
                let mut others = END;
                let mut i = first;
                while i != END {
                    let after = next[i as usize];
                    if block_of(i) == block {
                        let in_block = offsets[i as usize] as usize & (self.block_frames() - 1);
                        let mask = &mut masks[in_block / WORD_FRAMES];
                        let bit = 1 << (in_block % WORD_FRAMES);
                        twice += usize::from(*mask & bit != 0);
                        *mask |= bit;
                    } else {
                        next[i as usize] = others;
                        others = i;
                    }
                    i = after;
                }
                let refused = twice + self.give_singles_in(block, masks);
                if refused > 0 {
                    self.refuse_late(refused);
                }
                first = others;
            }
        }
    }

    /// Frees what of `masks` is single frames in use; returns how many are not.
    fn give_singles_in(&self, block: usize, mut masks: Masks) -> usize {
        let mut refused = 0;
        if !self.state(block).is_plain() {
            // A bad free may have gone through a cache.
            for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
                let mut rest = *mask;
                while rest != 0 {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let offset = (self.first_word(block) + i) * WORD_FRAMES + bit;
                    if !self.is_single_in_use(offset) {
                        *mask &= !(1 << bit);
                        refused += 1;
                    }
                }
            }
        }
        refused + self.give_masks(block, &masks)
    }

    /// See [`Store::give_frames`].
    pub(super) fn give_many(&self, frames: &[Frame]) -> (usize, Option<FreeError>) {
        let mut given = 0;
        while let Some(&first) = frames.get(given) {
            let run = self.give_run(&frames[given..]);
            given += run;
            if run == 0 {
                match self.give(first, Order::ZERO) {
                    Ok(_) => given += 1,
                    Err(error) => return (given, Some(error)),
                }
            }
        }
        (given, None)
    }

    /// Frees the frames at the start of a list that lie in one plain block and are good. Returns how many; none where the first is anything but simple.
    fn give_run(&self, frames: &[Frame]) -> usize {
        let Some(&first) = frames.first().filter(|&&first| self.span.contains(first)) else {
            return 0;
        };
        let block = self.block_at(self.offset(first));
        if !self.state(block).is_plain() {
            return 0;
        }
        let start = self.frame_at(block << self.block_order).number();
        let mut masks = [0; MOST_WORDS];
        let mut run = 0;
        for frame in frames {
            let in_block = frame.number().wrapping_sub(start);
            if in_block >= self.block_frames() {
                break;
            }
            let mask = &mut masks[in_block / WORD_FRAMES];
            let bit = 1 << (in_block % WORD_FRAMES);
            if *mask & bit != 0 {
                break;
            }
            *mask |= bit;
            run += 1;
        }
        let words = self.first_word(block)..self.first_word(block) + self.block_words();
        let bad = words
            .zip(&masks)
            .any(|(word, &mask)| self.free_bits(word) & mask != 0);
        if bad {
            return 0;
        }
        self.give_masks(block, &masks);
        run
    }

    /// Clears the `inner` bits of the part of a block in use that is about to be freed, and cuts the rest into blocks of their own.
    fn cut_out(&self, head: usize, order: u8, part: usize, part_order: u8) {
        let (mut from, mut size) = (head, order);
        while size > part_order {
            size -= 1;
            let upper = from + (1 << size);
            self.clear_inner(upper, 1 << (upper % WORD_FRAMES));
            if part >= upper {
                from = upper;
            }
        }
        let (first, words, bits) = Self::bits_of(part, part_order);
        for word in first..first + words {
            self.clear_inner(word * WORD_FRAMES, bits);
        }
    }

    fn clear_inner(&self, offset: usize, bits: u64) {
        // Relaxed: bits of the caller's own block; the release that frees the part publishes them.
        self.inner[offset / WORD_FRAMES].fetch_and(!bits, Ordering::Relaxed);
    }

    /// Frames that are about to be freed into isolated ranges are not to be had.
    pub(super) fn count_isolated(&self, range: FrameRange) {
        if self.isolation.any() {
            let inside = self
                .isolation
                .ranges()
                .map(|isolated| isolated.intersection(range).len());
            self.add_isolated(inside.sum());
        }
    }

    fn add_isolated(&self, frames: usize) {
        // Relaxed: a hint.
        self.totals.isolated.fetch_add(frames, Ordering::Relaxed);
    }
}
