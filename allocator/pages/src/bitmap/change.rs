//! How the state of a page block changes, and how the sets follow it.

use brickyard_sync::Ordering;

use super::index::Set;
use super::state::BlockState;
use super::word::{self, WORD_ORDER};
use super::{Bitmap, Borrower, Kept, Masks, Raised};

impl Bitmap<'_> {
    #[inline]
    pub(super) fn state(&self, block: usize) -> BlockState {
        // Acquire: pairs with the release of every change: who sees a count sees the bits that it
        // counts.
        BlockState::from_bits(self.states[block].load(Ordering::Acquire))
    }

    /// Puts `new` in the place of `old`, if that is still the state. The sets are the caller's to
    /// change.
    pub(super) fn replace(&self, block: usize, old: BlockState, new: BlockState) -> bool {
        self.count_loan(old, new);
        // Release: pairs with `state`, for the bits set before. Acquire: a promise comes before
        // what is taken by it.
        let changed = self.states[block].compare_exchange(
            old.to_bits(),
            new.next_version().to_bits(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if changed.is_err() {
            // It was not lent.
            self.count_end_of_loan(new, old);
        }
        changed.is_ok()
    }

    /// The same, and moves the block to the sets that it now belongs to.
    pub(super) fn change_once(&self, block: usize, old: BlockState, new: BlockState) -> bool {
        let changed = self.replace(block, old, new);
        if changed {
            self.moved(block, old, new);
            self.count_end_of_loan(old, new);
        }
        changed
    }

    /// Changes the state by `next`, until nobody comes between. `None` where `next` will not; else
    /// what it was, and what it is.
    ///
    /// Each try in vain is another's change of this block, so somebody gets on, and nobody who
    /// stands still is waited for. It serves what cannot be left undone: frees, and promises that
    /// are taken back.
    pub(super) fn change(
        &self,
        block: usize,
        mut next: impl FnMut(BlockState) -> Option<BlockState>,
    ) -> Option<(BlockState, BlockState)> {
        loop {
            let old = self.state(block);
            let new = next(old)?;
            if self.change_once(block, old, new) {
                return Some((old, new));
            }
        }
    }

    /// Frees frames whose bits have just been set in the words of `masks`, by raising the count.
    /// The block is lent to whoever frees them if `loan` says so.
    ///
    /// A block that frames in use lie in is open, and has room for them in its count. Where that is
    /// not so they have been freed twice, and the block was taken as a whole after the first time.
    pub(super) fn raise(
        &self,
        block: usize,
        frames: usize,
        masks: &Masks,
        loan: Borrower,
    ) -> Raised {
        let changed = self.change(block, |state| {
            let count = state.count() + frames;
            if !state.is_open() || count > self.block_frames() {
                return None;
            }
            if count == self.block_frames() {
                // Nothing is in use in it, so nothing is mixed or joined.
                return Some(state.with_free(count, self.block_order).unmixed());
            }
            // `run-known`: what was free before and still is has no larger run than the state says,
            // but where the count was 0: then others may have taken these very frames, and what is
            // counted here is theirs, elsewhere.
            let run = match state.count() {
                0 => self.largest_run(block, |word| self.free_bits(word)),
                _ => self.run_with(block, state.run(), masks),
            };
            Some(loan.take(state.with_free(count, run)))
        });
        match changed {
            None => Raised::Refused,
            Some((old, new)) if new.is_lent() && !old.is_lent() => Raised::Lent,
            Some(_) => Raised::Counted,
        }
    }

    /// Takes a promise of so many frames back, and with it the loan of the block, if that came of
    /// the promise alone.
    pub(super) fn take_back(&self, block: usize, frames: usize, loan: Kept) {
        self.change(block, |state| {
            let count = state.count() + frames;
            debug_assert!(count <= self.block_frames(), "counted");
            let run = self.largest_run(block, |word| self.free_bits(word));
            let raised = state.with_free(count, run);
            let raised = raised.with_lent(state.is_lent() && loan == Kept::Yes);
            let whole = count == self.block_frames();
            Some(if whole { raised.unmixed() } else { raised })
        });
    }

    /// The words of a block all of whose frames are free, as `free_bits` tells them, a bit each.
    pub(super) fn whole_words(&self, block: usize, free_bits: impl Fn(usize) -> u64) -> u64 {
        let first = self.first_word(block);
        let whole = (0..self.block_words()).map(|i| u64::from(free_bits(first + i) == !0) << i);
        whole.fold(0, |words, word| words | word)
    }

    /// The order of the largest run of whole words.
    pub(super) fn run_of_words(&self, whole: u64) -> u8 {
        // Bits can be there before they are counted, and then make a block look free as a whole.
        (WORD_ORDER + word::largest(whole, 0)).min(self.block_order - 1)
    }

    /// The order of the largest run of an open block of which something is free.
    pub(super) fn largest_run(&self, block: usize, free_bits: impl Fn(usize) -> u64) -> u8 {
        let whole = self.whole_words(block, &free_bits);
        if whole != 0 {
            return self.run_of_words(whole);
        }
        let first = self.first_word(block);
        let words = first..first + self.block_words();
        let run = words.fold(0, |run, word| word::largest(free_bits(word), run));
        // Bits that came between the two looks may have made a block of one word look free as a
        // whole.
        run.min(self.block_order - 1)
    }

    /// The same, where it was `known` until the bits in the words of `masks` were set.
    pub(super) fn run_with(&self, block: usize, known: u8, masks: &Masks) -> u8 {
        let first = self.first_word(block);
        let mut run = known;
        for (i, &mask) in masks[..self.block_words()].iter().enumerate() {
            if mask == 0 {
                continue;
            }
            match self.free_bits(first + i) {
                u64::MAX => {
                    let whole = self.whole_words(block, |word| self.free_bits(word));
                    run = run.max(self.run_of_words(whole));
                }
                bits if run < WORD_ORDER => run = word::largest(bits, run),
                _ => {}
            }
        }
        run
    }

    /// The same, where it was `known` until bits were taken; `free_bits` says what is left. 0 of
    /// nothing.
    pub(super) fn run_without(
        &self,
        block: usize,
        known: u8,
        count: usize,
        free_bits: impl Fn(usize) -> u64,
    ) -> u8 {
        if count == 0 {
            return 0;
        }
        if known < WORD_ORDER {
            let first = self.first_word(block);
            let mut words = first..first + self.block_words();
            if words.any(|word| word::starts(free_bits(word), known) != 0) {
                return known;
            }
        }
        self.largest_run(block, free_bits)
    }

    #[inline]
    pub(super) fn free_bits(&self, word: usize) -> u64 {
        // Acquire: pairs with the release with which a free sets bits: who takes a frame comes
        // after who gave it.
        self.free[word].load(Ordering::Acquire)
    }

    // ---- the summary ----

    #[inline]
    pub(super) fn moved(&self, block: usize, old: BlockState, new: BlockState) {
        let (was, is) = (self.index.sets_of(old), self.index.sets_of(new));
        if was != is {
            self.move_between(block, was, is);
        }
    }

    pub(super) fn move_between(&self, block: usize, was: [Option<Set>; 2], is: [Option<Set>; 2]) {
        for (was, is) in was.into_iter().zip(is) {
            if was == is {
                continue;
            }
            if let Some(set) = is {
                self.put_into(set, block);
            }
            if let Some(set) = was {
                self.take_out_of(set, block);
            }
        }
    }

    pub(super) fn belongs(&self, set: Set, block: usize) -> bool {
        self.index.sets_of(self.state(block)).contains(&Some(set))
    }

    pub(super) fn put_into(&self, set: Set, block: usize) {
        loop {
            self.index.insert(set, block + self.phase);
            if self.belongs(set, block) {
                return;
            }
            // It has gone on meanwhile, and whoever moved it may have cleared the bit before it was
            // set.
            self.index.remove(set, block + self.phase);
            if !self.belongs(set, block) {
                return;
            }
        }
    }

    pub(super) fn take_out_of(&self, set: Set, block: usize) {
        self.index.remove(set, block + self.phase);
        if self.belongs(set, block) {
            self.put_into(set, block);
        }
    }
}
