//! Frees: which are refused, and how frames become free.

use brickyard_sync::{GuardedU32, Ordering, Scratch};

use super::state::{BlockMode, BlockState};
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use super::{Bitmap, Borrower, Borrows, MOST_WORDS, Masks, SPARSE, TRIES, frames_in};
use crate::{Frame, FreeError, MigrateType, Mobility, Order};

/// The number of frames sorted by block at a time.
const CHUNK: usize = 768;

/// Where they are sorted: it is too large for a kernel's stack.
pub(crate) type Sorter = Scratch<CHUNK>;

/// Runs of fewer frames in one block are worth sorting.
const IN_A_ROW: usize = 16;

/// The number of chains that frames are sorted into, by the number of their block.
const CHAINS: usize = 64;

/// Frames of a block that come back from a cache.
#[derive(Debug, Clone, Copy, Default)]
struct Came {
    frames: usize,
    /// How many of them had come before.
    twice: usize,
}

/// The outcome of a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeOutcome {
    /// The number of frames that were already free.
    pub(super) refused: usize,
    /// True if this free put the block on loan to the CPU that frees.
    pub(super) lent: bool,
}

/// Returns true if the frames begin with a whole word of them, in rising order.
fn is_word(frames: &[Frame]) -> bool {
    let Some(frames) = frames.first_chunk::<WORD_FRAMES>() else {
        return false;
    };
    // Without an early exit, so that several are compared at once.
    let first = frames[0].number();
    let wrong = |wrong: usize, (i, frame): (usize, &Frame)| wrong | (frame.number() ^ (first + i));
    frames.iter().enumerate().fold(0, wrong) == 0
}

/// Returns the bits of the first positions that lie in one word, and how many they are.
fn word_of(positions: &[GuardedU32]) -> (u64, usize) {
    let first = positions[0].get();
    if first.is_multiple_of(u64::BITS)
        && let Some(positions) = positions.first_chunk::<WORD_FRAMES>()
    {
        // Tests for a whole word in rising order, as it was handed out. There is no early exit,
        // which would cost more than it saves.
        let wrong = |wrong: u32, (at, bit): (&GuardedU32, u32)| wrong | (at.get() ^ (first + bit));
        if positions.iter().zip(0..).fold(0, wrong) == 0 {
            return (!0, WORD_FRAMES);
        }
    }
    let (mut bits, mut count) = (0, 0);
    for position in positions {
        // Less than a word from its start, else outside it.
        let bit = position.get().wrapping_sub(first & !(u64::BITS - 1));
        if bit >= u64::BITS {
            break;
        }
        bits |= 1 << bit;
        count += 1;
    }
    (bits, count)
}

impl Bitmap<'_> {
    /// Takes back any aligned part of a block in use.
    pub(super) fn give_block(&self, offset: usize, order: Order) -> Result<(), FreeError> {
        let block = self.block_at(offset);
        // The block is open or huge, and huge at most once. While the caller owns a part of it, it
        // can become open, and nothing else. If it keeps changing, the caller owns nothing in it.
        for _ in 0..TRIES {
            match self.state(block).mode() {
                BlockMode::Free | BlockMode::Changing => return Err(FreeError::DoubleFree),
                BlockMode::Open => return self.give_narrow(offset, order),
                BlockMode::Huge => {
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
        Err(FreeError::DoubleFree)
    }

    /// Takes back any aligned part of a block in use, in an open page block.
    fn give_narrow(&self, offset: usize, order: Order) -> Result<(), FreeError> {
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        if !self.is_memory(offset) {
            return Err(FreeError::NotOwned);
        }
        if self.free_bits(place) >> bit & 1 != 0 {
            return Err(FreeError::DoubleFree);
        }
        // Most frees are of a whole block, which is quicker to see.
        let (head, joined) = match self.is_block_in_use(offset, order) {
            true => (offset, order.get()),
            false => self.block_around(offset),
        };
        let allocated = Order::new(joined);
        if order > allocated || !self.frame_at(offset).is_aligned(order) {
            return Err(FreeError::WrongOrder { allocated });
        }
        if !self.state(self.block_at(offset)).is_open() {
            // While the caller owns a part of the block, it stays open. So it was free, and another
            // CPU has just taken it as a whole and written what was read above.
            return Err(FreeError::DoubleFree);
        }
        if joined > 0 {
            self.cut_out(head, joined, offset, order.get());
        }
        let block = self.block_at(offset);
        let (first, words, bits) = Self::bits_of(offset, order.get());
        let mut masks = [0; MOST_WORDS];
        let in_block = first - self.first_word(block);
        masks[in_block..in_block + words].fill(bits);
        let frames = order.frames();
        match self
            .give_masks(block, &masks, frames, Borrower::Nobody)
            .refused
        {
            0 => Ok(()),
            // Another CPU frees the same frames at this moment.
            _ => Err(FreeError::DoubleFree),
        }
    }

    /// Frees single frames of an open block: those of `all`, which are so many. Returns how many
    /// were already free, which are left as they are, and whether this call put the block on loan.
    pub(super) fn give_masks(
        &self,
        block: usize,
        all: &Masks,
        frames: usize,
        borrower: Borrower,
    ) -> FreeOutcome {
        let first = self.first_word(block);
        let masks = &all[..self.block_words()];
        debug_assert_eq!(frames, frames_in(all), "`counted`: no more and no less");
        self.totals.free.add(block, frames);
        let mut refused = 0;
        for (i, &mask) in masks.iter().enumerate() {
            if mask != 0 {
                // Release: pairs with the acquire of the next taker.
                let twice = mask & self.free[first + i].fetch_or(mask, Ordering::AcqRel);
                if twice != 0 {
                    refused += twice.count_ones() as usize;
                }
            }
        }
        if refused > 0 {
            self.totals.free.remove(block, refused);
        }
        let freed = frames - refused;
        if freed == 0 {
            return FreeOutcome {
                refused,
                lent: false,
            };
        }
        let raised = self.raise(block, freed, all, borrower);
        if let Some((_, now)) = raised {
            self.follow_sparse(block, now, freed);
        } else {
            // Two CPUs have freed the same frames at the same moment, and a third has taken their
            // block as a whole in between. The CPU that next opens the block overwrites what was
            // set here.
            self.totals.free.remove(block, freed);
            refused = frames;
        }
        FreeOutcome {
            refused,
            lent: raised.is_some_and(|(old, new)| new.is_lent() && !old.is_lent()),
        }
    }

    /// Returns the number of a frame's mobility if the frame is a block of order 0 in use, and the
    /// class of its page block says so, which is not sparse. This is what can be seen without owning
    /// the frame; a front checks it before it keeps the frame. Returns `None` for a position outside
    /// all blocks.
    #[inline(always)]
    pub(crate) fn mobility_of_plain_single(&self, offset: usize) -> Option<usize> {
        let word = self.free.get(offset / WORD_FRAMES)?;
        // Acquire: pairs with the release in `write_as_one`, for a bad free; the class is read
        // after it. The bit of a frame that the caller owns does not change.
        let free = word.load(Ordering::Acquire) >> (offset % WORD_FRAMES) & 1 != 0;
        let mobility = self.class_at(offset)?;
        (!free).then_some(mobility)
    }

    /// Does the same for a frame of a sparse page block.
    pub(crate) fn mobility_of_sparse_single(&self, offset: usize) -> Option<usize> {
        let word = self.free.get(offset / WORD_FRAMES)?;
        // Acquire: as above.
        let free = word.load(Ordering::Acquire) >> (offset % WORD_FRAMES) & 1 != 0;
        let mobility = self.sparse_class_at(offset)?;
        (!free).then_some(mobility)
    }

    /// Returns the place of what is freed in a frame's page block, if the frame is a block of order
    /// 0 in use, and the class of the page block says so: the number of its mobility, or
    /// [`SPARSE`].
    fn place_of_plain_single(&self, offset: usize) -> Option<usize> {
        let sparse = || self.mobility_of_sparse_single(offset).map(|_| SPARSE);
        self.mobility_of_plain_single(offset).or_else(sparse)
    }

    /// Returns how many frames from the first on lie in one word, each once, and are single frames
    /// in use as the class of their page block says. Also returns their place, as
    /// [`Self::place_of_plain_single`] does.
    pub(crate) fn run_of_plain_singles(&self, frames: &[Frame]) -> (usize, usize) {
        let first = frames.first().map(|&first| self.offset(first));
        let Some((offset, place)) =
            first.and_then(|offset| Some((offset, self.place_of_plain_single(offset)?)))
        else {
            return (0, 0);
        };
        let start = self.frame_at(offset & !(WORD_FRAMES - 1)).number();
        let (mut bits, mut run) = (0_u64, 0);
        for frame in frames {
            let bit = frame.number().wrapping_sub(start);
            if bit >= WORD_FRAMES || bits >> bit & 1 != 0 {
                break;
            }
            bits |= 1 << bit;
            run += 1;
        }
        // Relaxed: as in `mobility_of_plain_single`.
        let free = self.free[offset / WORD_FRAMES].load(Ordering::Relaxed);
        if free & bits != 0 {
            // One of them is already free: handle them one by one.
            run = 1;
        }
        (run, place)
    }

    /// Returns the place of a frame, as [`Self::place_of_plain_single`] does, if the frame is a
    /// block of order 0 in use, in any page block in which nothing is isolated.
    pub(crate) fn place_of_single(&self, offset: usize) -> Option<usize> {
        if let Some(place) = self.place_of_plain_single(offset) {
            return Some(place);
        }
        if let Some(mobility) = self.mobility_by_state(offset) {
            return Some(mobility);
        }
        let frame = Frame::new(self.base.wrapping_add(offset));
        let inside = self.span.contains(frame);
        let single =
            inside && self.is_block_in_use(offset, Order::ZERO) && !self.is_isolated_near(offset);
        let mobility = single.then(|| self.mobility_of(offset).index());
        mobility.filter(|&mobility| mobility < Mobility::ALL.len())
    }

    /// Returns the number of the mobility of a frame, if it is a block of order 0 in use.
    pub(crate) fn mobility_of_single(&self, offset: usize) -> Option<usize> {
        let sparse = self.mobility_of_sparse_single(offset);
        sparse.or_else(|| self.place_of_single(offset))
    }

    /// Returns the number of a frame's mobility if the frame is a block of order 0 in use, as the
    /// state of the page block and the word of the frame say.
    fn mobility_by_state(&self, offset: usize) -> Option<usize> {
        // Relaxed, three times: the caller claims to own the frame. If it does, the parts of the
        // state that are read here do not change, nor do the bits of the frame.
        let state = self.states.get(self.block_at(offset))?;
        let state = BlockState::from_bits(state.load(Ordering::Relaxed));
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        let free = self.free[place].load(Ordering::Relaxed) >> bit & 1 != 0;
        // It continues no block, nor does the next frame: as in `singles_in_use`.
        let joined = || self.inner[place].load(Ordering::Relaxed) >> bit & 0b11 != 0;
        if free || !state.is_all_memory() || state.is_joined() && joined() {
            return None;
        }
        Some(state.mobility_in(self.eighth(offset)))
    }

    /// Returns the number of the mobility of the block of exactly `order`, smaller than a word,
    /// that begins at `offset` and is in use, if its page block is all memory and nothing in it is
    /// isolated. `None` says nothing; also for a position outside all page blocks. (`small-told`,
    /// see `check.rs`.)
    #[inline(always)]
    pub(crate) fn mobility_of_small(&self, offset: usize, order: Order) -> Option<usize> {
        debug_assert!((1..WORD_ORDER).contains(&order.get()));
        // Relaxed, three times: as in `mobility_by_state`.
        let state = self.states.get(self.block_at(offset))?;
        let state = BlockState::from_bits(state.load(Ordering::Relaxed));
        let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
        let all = word::run(order.get());
        let free = self.free[place].load(Ordering::Relaxed) >> bit & all;
        // The block begins here, continues to its end, and the frame after it is no part of it. A
        // block that ends with the word begins at no multiple of a larger order.
        let inner = self.inner[place].load(Ordering::Relaxed) >> bit;
        let after = 1_u64 << order.frames();
        let whole = inner & (all | after) == all & !1;
        let aligned = bit & (order.frames() - 1) == 0;
        let found = state.is_all_memory() && state.is_joined() && free == 0 && whole && aligned;
        found.then(|| state.mobility_in(self.eighth(offset)))
    }

    /// Returns true if the frame is the first of a block of exactly `order` in use, which would be
    /// lost if the answer were wrongly no: looks again if the page block has changed meanwhile.
    pub(super) fn is_surely_block_in_use(&self, offset: usize, order: Order) -> bool {
        let block = self.block_at(offset);
        if (1..WORD_ORDER).contains(&order.get()) && self.mobility_of_small(offset, order).is_some()
        {
            return true;
        }
        for _ in 0..TRIES {
            let before = self.state(block);
            if self.is_block_in_use(offset, order) {
                return true;
            }
            if self.state(block) == before {
                break;
            }
        }
        false
    }

    /// Returns true if the frame is the first of a block of exactly `order` in use.
    pub(crate) fn is_block_in_use(&self, offset: usize, order: Order) -> bool {
        let state = self.state(self.block_at(offset));
        match state.mode() {
            BlockMode::Free | BlockMode::Changing => false,
            BlockMode::Huge => {
                let (head, group) = self.group_of(self.block_at(offset));
                offset == head << self.block_order && self.order_of_group(group) == order
            }
            BlockMode::Open => {
                let (place, bit) = (offset / WORD_FRAMES, offset % WORD_FRAMES);
                if !self.is_memory(offset) || self.free_bits(place) >> bit & 1 != 0 {
                    return false;
                }
                if order.get() >= WORD_ORDER {
                    return self.block_around(offset) == (offset, order.get());
                }
                // The block begins here, continues to its end, and the frame after it is no part
                // of it. A block that ends with the word begins at no multiple of a larger order.
                let inner = self.inner_memory(place) >> bit;
                let rest = word::run(order.get()) & !1;
                let after = 1_u64 << order.frames();
                bit.is_multiple_of(order.frames()) && inner & (rest | 1 | after) == rest
            }
        }
    }

    /// Returns the mobility of a block in use, so that a front can keep it with others of its kind.
    pub(crate) fn mobility_of(&self, offset: usize) -> MigrateType {
        let state = self.state(self.block_at(offset));
        match state.mode() {
            BlockMode::Huge | BlockMode::Free | BlockMode::Changing => state.kind(),
            BlockMode::Open => {
                MigrateType::from_bits(state.mobility_in(self.eighth(offset)) as u32)
            }
        }
    }

    /// Returns true if anything is isolated in the block of this frame.
    #[inline]
    pub(crate) fn is_isolated_near(&self, offset: usize) -> bool {
        self.state(self.block_at(offset)).is_isolated()
    }

    /// Takes back single frames that a front held, by their positions. Frames that turn out
    /// to be already free are left alone, and counted.
    ///
    /// Many frames in a row of one block cost one change of each of its words and one of its
    /// state. The rest is sorted by block first.
    ///
    /// Before each block, `borrows` is asked whether the CPU has room for one more block to fetch
    /// from. It is told each block that is lent to the CPU.
    pub(crate) fn give_cached(
        &self,
        positions: &[GuardedU32],
        sorter: &Sorter,
        borrows: &mut impl Borrows,
    ) {
        let given = self.give_in_order(positions, borrows);
        for chunk in positions[given..].chunks(CHUNK) {
            self.give_chunk(chunk, sorter, borrows);
        }
    }

    /// Frees frames from the first on, block by block, until only few in a row lie in one block.
    /// Returns the number freed.
    #[inline(never)]
    fn give_in_order(&self, positions: &[GuardedU32], borrows: &mut impl Borrows) -> usize {
        let mut given = 0;
        while let Some(first) = positions.get(given) {
            let block = self.block_at(first.get() as usize);
            let mut masks = [0; MOST_WORDS];
            let mut came = Came::default();
            let mut rest = &positions[given..];
            while let Some(next) = rest.first()
                && self.block_at(next.get() as usize) == block
            {
                let word = next.get() as usize / WORD_FRAMES;
                let mask = &mut masks[word & (self.block_words() - 1)];
                let (bits, count) = word_of(rest);
                let new = (bits & !*mask).count_ones() as usize;
                came.frames += count;
                came.twice += count - new;
                *mask |= bits;
                rest = &rest[count..];
            }
            if !rest.is_empty() && came.frames < IN_A_ROW {
                break;
            }
            self.give_back_singles(block, &mut masks, came, borrows);
            given += came.frames;
        }
        given
    }

    /// Counts frames that a cache gave back although they were not its own.
    pub(crate) fn refuse_late(&self, frames: usize) {
        // Relaxed: statistics.
        self.totals
            .refused_late
            .fetch_add(frames, Ordering::Relaxed);
    }

    /// Sorts frames by block and frees them block by block: one change of each word and each state.
    #[inline(never)]
    fn give_chunk(&self, positions: &[GuardedU32], next: &Sorter, borrows: &mut impl Borrows) {
        const END: u16 = u16::MAX;
        let mut heads = [END; CHAINS];
        let offset_of = |i: u16| positions[i as usize].get() as usize;
        let block_of = |i: u16| self.block_at(offset_of(i));
        for i in (0..positions.len() as u16).rev() {
            let chain = block_of(i) % CHAINS;
            next.set(i as usize, heads[chain]);
            heads[chain] = i;
        }
        #[allow(
            clippy::needless_range_loop,
            reason = "an iterator over the heads would be a copy of them on the stack"
        )]
        for chain in 0..CHAINS {
            let mut first = heads[chain];
            // Each turn frees one block's frames and leaves those of other blocks in the chain.
            while first != END {
                let block = block_of(first);
                let mut masks = [0; MOST_WORDS];
                let mut came = Came::default();
                let mut others = END;
                let mut i = first;
                while i != END {
                    let after = next.get(i as usize);
                    let offset = offset_of(i);
                    if self.block_at(offset) == block {
                        let in_block = offset & (self.block_frames() - 1);
                        let mask = &mut masks[in_block / WORD_FRAMES];
                        let bit = 1 << (in_block % WORD_FRAMES);
                        came.frames += 1;
                        came.twice += usize::from(*mask & bit != 0);
                        *mask |= bit;
                    } else {
                        next.set(i as usize, others);
                        others = i;
                    }
                    i = after;
                }
                self.give_back_singles(block, &mut masks, came, borrows);
                first = others;
            }
        }
    }

    /// Frees those frames of `masks` that are single frames in use, and counts the others, plus
    /// those that came twice.
    fn give_back_singles(
        &self,
        block: usize,
        masks: &mut Masks,
        came: Came,
        borrows: &mut impl Borrows,
    ) {
        let mut refused = came.twice;
        let state = self.state(block);
        if !state.is_plain() {
            // A bad free may have gone through a cache.
            for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
                let good = match state.is_open() {
                    true => self.singles_in_use(self.first_word(block) + i, *mask),
                    false => 0,
                };
                let mut rest = *mask & !good;
                while rest != 0 {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let offset = (self.first_word(block) + i) * WORD_FRAMES + bit;
                    if !self.is_surely_block_in_use(offset, Order::ZERO) {
                        *mask &= !(1 << bit);
                        refused += 1;
                    }
                }
            }
        }
        let good = came.frames - refused;
        let given = self.give_masks(block, masks, good, borrows.borrower());
        if given.lent {
            borrows.lent(block);
        }
        refused += given.refused;
        if refused > 0 {
            self.refuse_late(refused);
        }
    }

    /// Takes back single frames in use, up to the first that is refused. Returns the number taken
    /// back, and why it stopped.
    pub fn give_frames(&self, frames: &[Frame]) -> (usize, Option<FreeError>) {
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

    /// Returns those frames of a word of an open block that are single frames in use: as
    /// [`Bitmap::is_block_in_use`], for all of `mask` at once.
    fn singles_in_use(&self, word: usize, mask: u64) -> u64 {
        if mask == 0 {
            return 0;
        }
        let used = mask & self.memory_bits(word) & !self.free_bits(word);
        // The frame continues no block, nor does the next one. None begins at the last bit of a
        // word, which is at no multiple of a larger order.
        let inner = self.inner_memory(word);
        used & !inner & !(inner >> 1)
    }

    /// Frees the frames at the start of a list that lie in one open block, nothing of which is
    /// isolated, and are good. Returns how many; 0 if they are not such a simple case.
    fn give_run(&self, frames: &[Frame]) -> usize {
        let Some(&first) = frames.first().filter(|&&first| self.span.contains(first)) else {
            return 0;
        };
        let block = self.block_at(self.offset(first));
        let state = self.state(block);
        if !state.is_open() || state.is_isolated() {
            return 0;
        }
        let start = self.start_of(block).number();
        let mut masks = [0; MOST_WORDS];
        let mut run = 0;
        while let Some(frame) = frames.get(run) {
            let in_block = frame.number().wrapping_sub(start);
            if in_block >= self.block_frames() {
                break;
            }
            let mask = &mut masks[in_block / WORD_FRAMES];
            if *mask == 0 && in_block % WORD_FRAMES == 0 && is_word(&frames[run..]) {
                *mask = !0;
                run += WORD_FRAMES;
                continue;
            }
            let bit = 1 << (in_block % WORD_FRAMES);
            if *mask & bit != 0 {
                break;
            }
            *mask |= bit;
            run += 1;
        }
        let words = self.first_word(block)..self.first_word(block) + self.block_words();
        let mut words = words.zip(&masks);
        let bad = match state.is_plain() {
            true => words.any(|(word, &mask)| self.free_bits(word) & mask != 0),
            // If it is not open any more, the caller owns nothing in it: as in `give_narrow`.
            false => {
                words.any(|(word, &mask)| self.singles_in_use(word, mask) != mask)
                    || !self.state(block).is_open()
            }
        };
        if bad {
            return 0;
        }
        // Frames counted as refused here are being freed by another CPU at this moment.
        let refused = self
            .give_masks(block, &masks, run, Borrower::Nobody)
            .refused;
        if refused > 0 {
            self.refuse_late(refused);
        }
        run
    }

    /// Clears the `inner` bits of the part of a block in use that is about to be freed, and cuts
    /// the rest into blocks of their own.
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

    pub(super) fn clear_inner(&self, offset: usize, bits: u64) {
        // Release: pairs with the acquire in `inner_bits` of a CPU that frees another part of the
        // block at this moment.
        self.inner[offset / WORD_FRAMES].fetch_and(!bits, Ordering::Release);
    }
}
