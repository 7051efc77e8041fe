//! Administration: adding, removing, reserving and isolating ranges of any alignment. O(frames of
//! the range). Operations are serialized by the zone's lock; requests and frees go on meanwhile.
//!
//! Frames that are to leave are first taken, as a request would take them. Then no other CPU has
//! anything to do with them, and their bits can be written one after the other.

use brickyard_sync::Ordering;

use super::state::{BlockState, Mode};
use super::{Bitmap, Borrower, MOST_WORDS, Masks, frames_in};
use crate::block::Use;
use crate::{FrameRange, MigrateType, RangeError};

/// What becomes of frames that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
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

    /// Leaves in `masks` the frames that are not memory, and are reserved or not, as `reserved`
    /// says. In place: masks are large for a kernel's stack.
    fn leave_not_memory(&self, block: usize, masks: &mut Masks, reserved: bool) {
        let first = self.first_word(block);
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            let inner = self.inner_bits(first + i);
            let wanted = if reserved { inner } else { !inner };
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
    /// [`RangeError::OutsideSpan`].
    pub fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.make_memory(range, false)
    }

    /// Frees all reserved frames of `range`. Returns their number.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    pub fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.make_memory(range, true)
    }

    /// Frees all frames of the range that are not memory: the reserved or the absent ones, as
    /// `reserved` says.
    fn make_memory(&self, range: FrameRange, reserved: bool) -> Result<usize, RangeError> {
        self.within_span(range)?;
        let mut made = 0;
        for block in self.blocks_of(range) {
            if self.state(block).is_solid() {
                continue;
            }
            let mut masks = [0; MOST_WORDS];
            self.write_masks(&mut masks, block, range);
            self.leave_not_memory(block, &mut masks, reserved);
            let frames = frames_in(&masks);
            if frames > 0 {
                self.make_free(block, &masks, frames);
                made += frames;
            }
        }
        // Relaxed: a hint for all but administration.
        self.totals.managed.fetch_add(made, Ordering::Relaxed);
        Ok(made)
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
            self.count_isolated(FrameRange::at(
                self.frame_at(block << self.block_order),
                frames,
            ));
            self.change(block, |state| {
                let kind = state.with_kind(MigrateType::Movable).with_solid(true);
                Some(self.free_as_a_whole(kind))
            });
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
    /// [`RangeError::Busy`] with the first frame that is neither free nor reserved. Nothing has
    /// changed then.
    pub fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Absent)
    }

    /// Keeps all free frames of `range` from being handed out. Returns how many became reserved.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use. Nothing has changed then.
    pub fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Reserved)
    }

    /// Checks that no frame of the range is in use; fails with the first that is.
    fn busy_in(&self, range: FrameRange) -> Result<(), RangeError> {
        let mut at = range.start;
        while at < range.end {
            let found = self.block_of(at);
            if found.is_some_and(|(_, state)| state.usage == Use::Allocated) {
                return Err(RangeError::Busy { frame: at });
            }
            at = found.map_or(at.plus(1), |(first, state)| {
                first.plus(state.order.frames())
            });
        }
        Ok(())
    }

    /// Takes all free frames of the range. The other frames must not be memory; otherwise nothing
    /// changes.
    #[inline(never)]
    fn take_all_free(&self, range: FrameRange) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.busy_in(range)?;
        for block in self.blocks_of(range) {
            let mut masks = [0; MOST_WORDS];
            self.write_masks(&mut masks, block, range);
            self.leave_memory(block, &mut masks);
            if frames_in(&masks) == 0 || self.take_masks(block, &masks) {
                continue;
            }
            for taken in self.blocks_of(range).take_while(|&taken| taken < block) {
                self.write_masks(&mut masks, taken, range);
                self.leave_memory(taken, &mut masks);
                self.give_masks(taken, &masks, frames_in(&masks), Borrower::Nobody);
            }
            let clipped = FrameRange::at(self.frame_at(block << self.block_order), 1);
            let frame = clipped.start.max(range.start);
            return Err(self
                .busy_in(range)
                .err()
                .unwrap_or(RangeError::Busy { frame }));
        }
        Ok(())
    }

    fn leave(&self, range: FrameRange, leaves: Leaves) -> Result<usize, RangeError> {
        self.take_all_free(range)?;
        let (mut left, mut unmanaged) = (0, 0);
        for block in self.blocks_of(range) {
            let (managed, gone) = self.leave_block(block, range, leaves);
            unmanaged += managed;
            left += gone;
        }
        // Relaxed: as in `make_memory`.
        self.totals.managed.fetch_sub(unmanaged, Ordering::Relaxed);
        self.recount_isolated();
        Ok(left)
    }

    /// Writes into a block's words that the frames of `range` have left it. Returns how many of
    /// them were managed, and how many have left.
    #[inline(never)]
    fn leave_block(&self, block: usize, range: FrameRange, leaves: Leaves) -> (usize, usize) {
        let (mut memory, mut reserved) = ([0; MOST_WORDS], [0; MOST_WORDS]);
        self.write_masks(&mut memory, block, range);
        self.write_masks(&mut reserved, block, range);
        self.leave_memory(block, &mut memory);
        self.leave_not_memory(block, &mut reserved, true);
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

    /// Isolates `range`: from now on nothing is handed out from it, and what is freed there stays
    /// there.
    ///
    /// # Errors
    /// As [`Isolation::begin`](crate::isolation::Isolation::begin).
    pub fn isolate(&self, range: FrameRange) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.isolation.begin(range)?;
        for block in self.blocks_of(range) {
            self.change(block, |state| Some(state.with_isolated(true)));
            self.end_class_for_all(block);
        }
        self.recount_isolated();
        Ok(())
    }

    /// Ends the isolation of exactly `range`. Does nothing if it is not isolated.
    pub fn unisolate(&self, range: FrameRange) {
        if !self.isolation.end(range) {
            return;
        }
        for block in self.blocks_of(range) {
            let start = self.frame_at(block << self.block_order);
            let still = self
                .isolation
                .overlaps(FrameRange::at(start, self.block_frames()));
            self.change(block, |state| Some(state.with_isolated(still)));
        }
        self.recount_isolated();
    }

    /// Counts anew how many free frames are isolated.
    fn recount_isolated(&self) {
        let mut isolated = 0;
        if self.isolation.any() {
            for range in self
                .isolation
                .ranges()
                .map(|range| range.intersection(self.span))
            {
                for block in self.blocks_of(range) {
                    let mut masks = [0; MOST_WORDS];
                    self.write_masks(&mut masks, block, range);
                    isolated += self.free_of(block, &masks);
                }
            }
        }
        // Relaxed: a hint.
        self.totals.isolated.store(isolated, Ordering::Relaxed);
    }

    /// Returns how many of the frames of `masks` are free.
    fn free_of(&self, block: usize, masks: &Masks) -> usize {
        match self.state(block).mode() {
            Mode::Free | Mode::Changing => frames_in(masks),
            Mode::Huge => 0,
            Mode::Open => {
                let first = self.first_word(block);
                let free = |i: usize| (self.free_bits(first + i) & masks[i]).count_ones() as usize;
                (0..self.block_words()).map(free).sum()
            }
        }
    }

    /// Takes all of `range`, which must be isolated and wholly free, as blocks in use.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free. Nothing has changed then.
    pub fn take_isolated(&self, range: FrameRange, kind: MigrateType) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.all_free(range)?;
        for (frame, order) in range.blocks(self.max_order) {
            if self.take_place(self.offset(frame), order.get(), kind) {
                continue;
            }
            let before = FrameRange {
                end: frame,
                ..range
            };
            for (taken, order) in before.blocks(self.max_order) {
                let given = self.give_block(self.offset(taken), order);
                debug_assert_eq!(given, Ok(()), "one-owner");
            }
            self.recount_isolated();
            self.all_free(range)?;
            return Err(RangeError::Busy { frame });
        }
        self.recount_isolated();
        Ok(())
    }
}
