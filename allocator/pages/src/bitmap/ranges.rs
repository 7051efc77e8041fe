//! Administration: adding, removing, reserving and isolating ranges of any alignment. O(frames of
//! the range). An operation is a sequence of steps, each on one page block. Steps of all operations
//! are serialized by the zone's lock, which a value of `step` holds; requests, frees and other
//! operations go on between and beside them.
//!
//! Frames that are to leave are first taken, as a request would take them. Then no other CPU has
//! anything to do with them, and their bits can be written one after the other.

use brickyard_sync::Ordering;

use super::search::Wanted;
use super::state::BlockState;
use super::word::WORD_FRAMES;
use super::{Bitmap, Borrower, MOST_WORDS, Masks, frames_in};
use crate::block::Use;
use crate::isolation::ISOLATED_MOST;
use crate::{FrameRange, MigrateType, RangeError};

/// What a caller hands to a call of [`Bitmap`] that holds a value for each of its steps, if nothing
/// need be held.
pub const AT_ONCE: fn() = || ();

/// What frames were that become memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Was {
    /// They were no memory, nor reserved.
    Absent,
    /// They were reserved.
    Reserved,
}

/// What becomes of frames that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// They are no longer memory. Reserved frames become absent, too.
    Absent,
    /// They become reserved.
    Reserved,
}

impl Bitmap<'_> {
    fn within_span(&self, range: FrameRange) -> Result<(), RangeError> {
        if self.span.covers(range) {
            return Ok(());
        }
        Err(RangeError::OutsideSpan { span: self.span })
    }

    /// Leaves in `masks` the frames that are not memory, but this. In place: masks are large for a
    /// kernel's stack.
    fn leave_not_memory(&self, block: usize, masks: &mut Masks, was: Was) {
        let first = self.first_word(block);
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            let inner = self.inner_bits(first + i);
            let wanted = match was {
                Was::Absent => !inner,
                Was::Reserved => inner,
            };
            if *mask != 0 {
                *mask &= !self.memory_bits(first + i) & wanted;
            }
        }
    }

    /// Leaves in `masks` the frames that are memory.
    fn leave_memory(&self, block: usize, masks: &mut Masks) {
        let first = self.first_word(block);
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            *mask &= self.memory_bits(first + i);
        }
    }

    /// Makes all frames of `range` free that are not yet memory of this store. Returns their
    /// number.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`]; [`RangeError::Busy`] with the first frame that another caller
    /// is removing or reserving at this moment. The page blocks before its own are done then.
    pub fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.make_memory(range, Was::Absent, &AT_ONCE)
    }

    /// Frees all reserved frames of `range`. Returns their number.
    ///
    /// # Errors
    /// The errors of [`Bitmap::add`].
    pub fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.make_memory(range, Was::Reserved, &AT_ONCE)
    }

    /// Frees all frames of the range that are not memory, but this.
    pub(crate) fn make_memory<G>(
        &self,
        range: FrameRange,
        was: Was,
        step: &impl Fn() -> G,
    ) -> Result<usize, RangeError> {
        self.within_span(range)?;
        let mut made = 0;
        for block in self.blocks_of(range) {
            let _step = step();
            if self.state(block).is_solid() {
                continue;
            }
            let mut masks = [0; MOST_WORDS];
            self.write_masks(&mut masks, block, range);
            self.leave_not_memory(block, &mut masks, was);
            let frames = frames_in(&masks);
            if frames > 0 {
                self.none_is_leaving(block, &masks)?;
                // Relaxed: a hint for all but administration.
                self.totals.managed.fetch_add(frames, Ordering::Relaxed);
                self.make_free(block, &masks, frames);
                made += frames;
            }
        }
        Ok(made)
    }

    /// Checks that no frame of `masks` lies in a range that is leaving.
    #[inline(never)]
    fn none_is_leaving(&self, block: usize, masks: &Masks) -> Result<(), RangeError> {
        if !self.leaving.any() {
            return Ok(());
        }
        let first = self.first_word(block);
        let mut words = (first..first + self.block_words()).zip(masks);
        let leaving = words.find_map(|(word, mask)| {
            let bits = mask & self.bits_in(&self.leaving, word);
            (bits != 0).then(|| self.frame_at(word * WORD_FRAMES + bits.trailing_zeros() as usize))
        });
        match leaving {
            Some(frame) => Err(RangeError::Busy { frame }),
            None => Ok(()),
        }
    }

    fn make_free(&self, block: usize, masks: &Masks, frames: usize) {
        let words = self.first_word(block)..self.first_word(block) + self.block_words();
        let nothing_yet = words.clone().all(|word| self.memory_bits(word) == 0);
        for (word, mask) in words.clone().zip(masks) {
            // Relaxed: no caller has these frames; what makes them free publishes this. Release:
            // pairs with the acquire in `memory_bits`, for `inner_memory`.
            self.inner[word].fetch_and(!mask, Ordering::Relaxed);
            self.memory[word].fetch_or(*mask, Ordering::Release);
        }
        let solid = words.clone().all(|word| self.memory_bits(word) == !0);
        if frames == self.block_frames() {
            self.write_as_one(block);
            self.totals.free.add(block, frames);
            let freed = self.change(block, |state| {
                let kind = state.with_kind(MigrateType::Movable).with_solid(true);
                Some(self.free_as_a_whole(kind))
            });
            if let Some((_, now)) = freed {
                self.uncount_isolated(block, now, frames);
            }
            return;
        }
        self.change(block, |state| {
            // All blocks are movable at first. A request for anything else must claim one.
            let new = if nothing_yet {
                state.with_kind(MigrateType::Movable)
            } else {
                state
            };
            Some(new.with_solid(solid))
        });
        let refused = self
            .give_masks(block, masks, frames, Borrower::Nobody)
            .refused;
        debug_assert_eq!(refused, 0, "one-owner");
    }

    /// Removes all frames of `range`, including reserved ones. Returns their number.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is neither free nor reserved, or that another
    /// caller is removing or reserving at this moment; [`RangeError::TooManyIsolated`] while four
    /// others are at that. Nothing has changed then.
    pub fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Absent, &AT_ONCE, &AT_ONCE)
    }

    /// Keeps all free frames of `range` from being handed out. Returns how many became reserved.
    /// Frames that are no memory yet are not: add them first.
    ///
    /// # Errors
    /// The errors of [`Bitmap::remove`].
    pub fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Reserved, &AT_ONCE, &AT_ONCE)
    }

    /// Checks that no frame of the range is in use; fails with the first that is.
    fn busy_in(&self, range: FrameRange) -> Result<(), RangeError> {
        self.all(range, |usage| match usage {
            Some(Use::Allocated) => Err(()),
            _ => Ok(()),
        })
        .map_err(|(frame, ())| RangeError::Busy { frame })
    }

    /// Takes all free frames of the range. The other frames must not be memory; otherwise nothing
    /// changes.
    #[inline(never)]
    fn take_all_free<G>(&self, range: FrameRange, pin: &impl Fn() -> G) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.busy_in(range)?;
        for block in self.blocks_of(range) {
            let pinned = pin();
            let mut masks = [0; MOST_WORDS];
            self.write_masks(&mut masks, block, range);
            self.leave_memory(block, &mut masks);
            if frames_in(&masks) == 0 || self.take_masks(block, &masks) {
                continue;
            }
            drop(pinned);
            for taken in self.blocks_of(range).take_while(|&taken| taken < block) {
                let _pinned = pin();
                self.write_masks(&mut masks, taken, range);
                self.leave_memory(taken, &mut masks);
                self.give_masks(taken, &masks, frames_in(&masks), Borrower::Nobody);
            }
            let frame = self.frames_of(block).start.max(range.start);
            return Err(self
                .busy_in(range)
                .err()
                .unwrap_or(RangeError::Busy { frame }));
        }
        Ok(())
    }

    /// Takes all frames of the range out of the memory of the store. They are first taken, with a
    /// value of `pin` for each page block. Meanwhile nobody makes other frames of the range memory:
    /// these would be mistaken for those taken.
    ///
    /// # Errors
    /// Those of [`Bitmap::remove`].
    pub(crate) fn leave<G, H>(
        &self,
        range: FrameRange,
        leaves: Leaves,
        pin: &impl Fn() -> H,
        step: &impl Fn() -> G,
    ) -> Result<usize, RangeError> {
        self.within_span(range)?;
        if range.is_empty() {
            return Ok(0);
        }
        {
            let _step = step();
            self.begin_to_leave(range)?;
        }
        if let Err(why) = self.take_all_free(range, pin) {
            let _step = step();
            self.leaving.end(range);
            return Err(why);
        }
        let (mut left, blocks) = (0, self.blocks_of(range));
        for block in blocks.clone() {
            let _step = step();
            let (managed, gone) = self.leave_block(block, range, leaves);
            // Relaxed: as in `make_memory`.
            self.totals.managed.fetch_sub(managed, Ordering::Relaxed);
            left += gone;
            if block + 1 == blocks.end {
                self.leaving.end(range);
            }
        }
        Ok(left)
    }

    /// Declares that a range is leaving.
    fn begin_to_leave(&self, range: FrameRange) -> Result<(), RangeError> {
        self.leaving.begin(range).map_err(|why| {
            let others = self.leaving.ranges().map(|other| other.intersection(range));
            let first = others
                .filter(|other| !other.is_empty())
                .map(|other| other.start);
            first.min().map_or(why, |frame| RangeError::Busy { frame })
        })
    }

    /// Writes into a block's words that the frames of `range` have left it. Returns how many of
    /// them were managed, and how many have left.
    #[inline(never)]
    fn leave_block(&self, block: usize, range: FrameRange, leaves: Leaves) -> (usize, usize) {
        let (mut memory, mut reserved) = ([0; MOST_WORDS], [0; MOST_WORDS]);
        self.write_masks(&mut memory, block, range);
        self.write_masks(&mut reserved, block, range);
        self.leave_memory(block, &mut memory);
        self.leave_not_memory(block, &mut reserved, Was::Reserved);
        let managed = frames_in(&memory);
        if managed > 0 {
            let less = |state: BlockState| state.with_solid(false).with_aside(false);
            self.change(block, |state| Some(less(state)));
            self.end_class(block);
        }
        let first = self.first_word(block);
        for i in 0..self.block_words() {
            // Relaxed: frames that this caller has taken, or that are not memory.
            self.memory[first + i].fetch_and(!memory[i], Ordering::Relaxed);
            match leaves {
                Leaves::Absent => {
                    let gone = memory[i] | reserved[i];
                    self.inner[first + i].fetch_and(!gone, Ordering::Relaxed);
                }
                Leaves::Reserved => {
                    // Release: pairs with the acquire in `inner_bits`, for `inner_memory`.
                    self.inner[first + i].fetch_or(memory[i], Ordering::Release);
                }
            }
        }
        match leaves {
            Leaves::Absent => (managed, managed + frames_in(&reserved)),
            Leaves::Reserved => (managed, managed),
        }
    }

    /// Isolates `range`: from the return on the store hands nothing out from it, and what is freed
    /// there stays there. Holds a value of `step` for each page block.
    ///
    /// # Errors
    /// The errors of [`Isolation::begin`](crate::isolation::Isolation::begin).
    pub fn isolate<G>(&self, range: FrameRange, step: &impl Fn() -> G) -> Result<(), RangeError> {
        self.within_span(range)?;
        {
            let _step = step();
            self.isolation.begin(range)?;
        }
        for block in self.blocks_of(range) {
            let _step = step();
            if !self.isolation.has(range) {
                // Another caller has ended it meanwhile.
                break;
            }
            self.mark_block(block);
        }
        Ok(())
    }

    /// Marks a page block as isolated. What is free in it leaves the total, as the state says that
    /// this replaces.
    fn mark_block(&self, block: usize) {
        let marked = self.change(block, |state| {
            (!state.is_isolated()).then(|| state.with_isolated(true))
        });
        if let Some((old, _)) = marked {
            self.totals.free.remove(block, old.count());
        }
        self.end_class_for_all(block);
    }

    /// Ends the isolation of exactly `range`. Does nothing if it is not isolated. Holds a value of
    /// `step` for each page block.
    pub fn unisolate<G>(&self, range: FrameRange, step: &impl Fn() -> G) {
        {
            let _step = step();
            if !self.isolation.has(range) {
                return;
            }
            // While the range is known as isolated: what is free beside it is found by its ends
            // ([`Bitmap::partly_isolated`]), or else in the sets.
            for block in self.ends_of(range) {
                self.unmark_block(block, range);
            }
            self.isolation.end(range);
        }
        for block in self.blocks_of(range) {
            let _step = step();
            self.unmark_block(block, FrameRange::default());
        }
    }

    /// Unmarks a page block, unless an isolated range other than `ended` overlaps it.
    fn unmark_block(&self, block: usize, ended: FrameRange) {
        let frames = self.frames_of(block);
        let mut ranges = self.isolation.ranges();
        if ranges.any(|range| range != ended && !range.intersection(frames).is_empty()) {
            return;
        }
        loop {
            let old = self.state(block);
            if !old.is_isolated() {
                return;
            }
            // `never-too-little`.
            self.totals.free.add(block, old.count());
            if self.change_once(block, old, old.with_isolated(false)) {
                return;
            }
            self.totals.free.remove(block, old.count());
        }
    }

    /// Returns the first and the last page block of a range.
    fn ends_of(&self, range: FrameRange) -> [usize; 2] {
        let blocks = self.blocks_of(range);
        [blocks.start, blocks.end - 1]
    }

    /// Returns the page blocks that may have frames beside isolated ones, each once: those where an
    /// isolated range begins or ends. They are in no set, and not in the total.
    pub(super) fn partly_isolated(&self) -> impl Iterator<Item = usize> + use<'_> {
        let mut ends = [usize::MAX; 2 * ISOLATED_MOST];
        if self.isolation.any() {
            let ranges = self.isolation.ranges().filter(|range| !range.is_empty());
            for (pair, range) in ends.chunks_exact_mut(2).zip(ranges) {
                pair.copy_from_slice(&self.ends_of(range));
            }
        }
        (0..ends.len()).filter_map(move |i| {
            let (end, before) = (ends[i], &ends[..i]);
            (end != usize::MAX && !before.contains(&end) && self.state(end).is_isolated())
                .then_some(end)
        })
    }

    /// Returns how many frames are free beside isolated ones. A hint. Reads nothing while nothing
    /// is isolated, else at most eight page blocks.
    pub(super) fn free_beside_isolated(&self) -> usize {
        let all = Wanted::of(MigrateType::Movable);
        let free = |block| {
            self.there(block, all)
                .map(|bits| bits.count_ones() as usize)
        };
        self.partly_isolated().flat_map(free).sum()
    }

    /// Takes all of `range`, which must be isolated and wholly free, as blocks in use. Holds a
    /// value of `pin` for each.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free. Nothing has changed then.
    pub fn take_isolated<G>(
        &self,
        range: FrameRange,
        kind: MigrateType,
        pin: &impl Fn() -> G,
    ) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.all_free(range)?;
        for (frame, order) in range.blocks(self.max_order) {
            let pinned = pin();
            if self.take_place(self.offset(frame), order.get(), kind) {
                continue;
            }
            drop(pinned);
            let before = FrameRange {
                end: frame,
                ..range
            };
            for (taken, order) in before.blocks(self.max_order) {
                let _pinned = pin();
                let given = self.give_block(self.offset(taken), order);
                debug_assert_eq!(given, Ok(()), "one-owner");
            }
            self.all_free(range)?;
            return Err(RangeError::Busy { frame });
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::LoanKept;
    use super::super::reserve::tests::store;
    use super::*;
    use crate::{Mobility, Order, Request};

    /// Frames are promised, and given back after isolation has begun or ended meanwhile: they are
    /// counted as their block is then.
    #[test]
    fn a_promise_is_counted_as_its_block_is_when_it_ends() {
        let all = FrameRange::new(0, 64);
        for (before, after) in [(false, false), (false, true), (true, false), (true, true)] {
            let store = store(1);
            // So the block is open.
            let page = store.take(&Request::page(Mobility::Movable)).unwrap();
            store.give(page, Order::ZERO).unwrap();
            if before {
                store.isolate(all, &AT_ONCE).unwrap();
            }
            let promised = store.state(0);
            let mask = |word: usize| if word == 0 { 0b1111 } else { 0 };
            let four = store.promise(0, promised, promised, mask, 4, MigrateType::Movable);
            assert!(four.is_some());
            match (before, after) {
                (false, true) => store.isolate(all, &AT_ONCE).unwrap(),
                (true, false) => store.unisolate(all, &AT_ONCE),
                _ => {}
            }
            store.take_back(0, promised, 4, LoanKept::Yes);
            store.check().unwrap();
            assert_eq!(store.free_frames(), if after { 0 } else { 64 });
        }
    }
}
