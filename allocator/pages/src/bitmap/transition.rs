//! How the state of a page block changes, and how the sets follow it.
//!
//! There are three ways. Each replaces the whole word by compare-and-swap, and counts a loan that
//! begins. They differ in what follows:
//!
//! | way | tries | what follows | who calls it |
//! |---|---|---|---|
//! | `replace` | one | nothing | who takes all of a block, or frees several blocks together |
//! | `change_once` | one | sets and loans | who promises itself frames, or ends isolation |
//! | `change` | to the end | sets and loans | frees, ends of promises and of opening, marks |
//!
//! By mode: a promise, its end and a free of single frames change an open block; a free as a whole
//! changes a huge one; who takes all of a block changes a free or an open one, to huge or to
//! changing; only who made a block changing changes its mode again. Marks (isolated, aside, solid,
//! kind) change in any mode.
//!
//! Only `change` retries, and who takes a block that it has made changing, each time after another
//! CPU's change of this block.

use brickyard_sync::Ordering;

use super::state::BlockState;
use super::summary::{Index, Set};
use super::word::{self, WORD_ORDER};
use super::{Bitmap, Borrower, LoanKept, Masks};

impl Bitmap<'_> {
    #[inline]
    pub(super) fn state(&self, block: usize) -> BlockState {
        // Acquire: pairs with the release of every change. A CPU that sees a count sees the bits
        // that it counts.
        BlockState::from_bits(self.states[block].load(Ordering::Acquire))
    }

    /// Replaces the state `old` by `new`, if `old` is still the state. The caller must update the
    /// sets.
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
            // The exchange failed, so the block was not lent.
            self.uncount_loan(old, new);
        }
        changed.is_ok()
    }

    /// Replaces the state `old` by `new`, if `old` is still the state, and moves the block to the
    /// sets that it now belongs to.
    pub(super) fn change_once(&self, block: usize, old: BlockState, new: BlockState) -> bool {
        let changed = self.replace(block, old, new);
        if changed {
            self.moved(block, old, new);
            self.loan_changed(block, old, new);
        }
        changed
    }

    /// Changes the state by `next`, and retries until no other CPU changes it meanwhile. Returns
    /// the old and the new state, or `None` if `next` returns `None`.
    ///
    /// Each failed try is another CPU's change of this block, so some CPU makes progress, and no
    /// CPU that stands still is waited for. This serves what must not be left undone: frees, and
    /// promises that are taken back.
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

    // ---- the total ----
    //
    // The total counts what is free in the blocks that have no isolated frame. Whether a block has
    // one is read off the state that a compare-and-swap replaces, which is the one that also counts
    // the frames. So each frame is in the total or not as its block's state says, whatever else
    // happens meanwhile. `never-too-little`: whoever makes frames free adds them to the total
    // before, and subtracts them again if the state turns out to be isolated.

    /// Subtracts frames that were promised by a change of this state, and have been taken.
    #[inline]
    pub(super) fn uncount(&self, block: usize, promised: BlockState, frames: usize) {
        if !promised.is_isolated() {
            self.totals.free.remove(block, frames);
        }
    }

    /// Adds frames that were promised by a change of this state, and are about to be free again.
    pub(super) fn count_promised(&self, block: usize, promised: BlockState, frames: usize) {
        if promised.is_isolated() {
            self.totals.free.add(block, frames);
        }
    }

    /// Subtracts frames that have become free, if their block has an isolated frame.
    #[inline]
    pub(super) fn uncount_isolated(&self, block: usize, now: BlockState, frames: usize) {
        if now.is_isolated() {
            self.totals.free.remove(block, frames);
        }
    }

    /// Raises the count, and so frees the frames whose bits have just been set in the words of
    /// `masks`, and which the total has been told of. The block is lent to the CPU that frees them
    /// if `loan` says so. Returns the old and the new state, or `None` if the frames were no longer
    /// in use.
    ///
    /// A block that contains frames in use is open, and has room for them in its count. If that is
    /// not so, the frames have been freed twice, and the block was taken as a whole after the first
    /// free.
    pub(super) fn raise(
        &self,
        block: usize,
        frames: usize,
        masks: &Masks,
        loan: Borrower,
    ) -> Option<(BlockState, BlockState)> {
        let raised = self.change(block, |state| {
            let count = state.count() + frames;
            if !state.is_open() || count > self.block_frames() {
                return None;
            }
            if count == self.block_frames() {
                // Nothing in the block is in use, so nothing is mixed or joined.
                return Some(state.with_free(count, self.block_order).unmixed());
            }
            // `run-known`: frames that were free before and still are form no larger run than the
            // state says. The exception is a count of 0: other CPUs may then have taken these very
            // frames, and what is counted here is theirs, elsewhere.
            let run = match state.count() {
                0 => self.largest_run(block, |word| self.free_bits(word)),
                _ => self.run_with(block, state.run(), masks),
            };
            Some(loan.take(state.with_free(count, run)))
        })?;
        self.uncount_isolated(block, raised.1, frames);
        Some(raised)
    }

    /// Takes back a promise of `frames` frames, made by a change of the state `promised`. Also ends
    /// the block's loan unless `loan` keeps it: a loan that came of this promise alone must end.
    pub(super) fn take_back(
        &self,
        block: usize,
        promised: BlockState,
        frames: usize,
        loan: LoanKept,
    ) {
        self.count_promised(block, promised, frames);
        let changed = self.change(block, |state| {
            let count = state.count() + frames;
            debug_assert!(count <= self.block_frames(), "counted");
            let run = self.largest_run(block, |word| self.free_bits(word));
            let raised = state.with_free(count, run);
            let raised = raised.with_lent(state.is_lent() && loan == LoanKept::Yes);
            let whole = count == self.block_frames();
            Some(if whole { raised.unmixed() } else { raised })
        });
        if let Some((_, now)) = changed {
            self.uncount_isolated(block, now, frames);
        }
    }

    /// Returns the words of a block whose frames are all free, one bit each. `free_bits` gives the
    /// free frames of a word.
    pub(super) fn whole_words(&self, block: usize, free_bits: impl Fn(usize) -> u64) -> u64 {
        let first = self.first_word(block);
        let whole = (0..self.block_words()).map(|i| u64::from(free_bits(first + i) == !0) << i);
        whole.fold(0, |words, word| words | word)
    }

    /// Returns the order of the largest run of whole words.
    pub(super) fn run_of_words(&self, whole: u64) -> u8 {
        // Bits may be set before they are counted, and then make a block look free as a whole.
        (WORD_ORDER + word::largest(whole, 0)).min(self.block_order - 1)
    }

    /// Returns the order of the largest run of an open block that has free frames.
    pub(super) fn largest_run(&self, block: usize, free_bits: impl Fn(usize) -> u64) -> u8 {
        let first = self.first_word(block);
        let (mut whole, mut run) = (0_u64, 0);
        for i in 0..self.block_words() {
            match free_bits(first + i) {
                0 => {}
                u64::MAX => whole |= 1 << i,
                bits => run = word::largest(bits, run),
            }
        }
        match whole {
            0 => run,
            _ => self.run_of_words(whole),
        }
    }

    /// Returns the order of the largest run of an open block, if it was `known` until the bits in
    /// the words of `masks` were set.
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

    /// Returns the order of the largest run of an open block, if it was `known` until bits were
    /// taken. `free_bits` gives what is left. Returns 0 if nothing is left.
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
        // Acquire: pairs with the release by which a free sets bits. The taker of a frame comes
        // after the CPU that freed it.
        self.free[word].load(Ordering::Acquire)
    }

    // ---- the summary ----

    /// Moves a block, whose state has just been changed from `old` to `new`, to the sets that it
    /// now belongs to.
    #[inline(always)]
    pub(super) fn moved(&self, block: usize, old: BlockState, new: BlockState) {
        let [graded, run] = self.index.sets_of(old);
        let [graded_now, run_now] = self.index.sets_of(new);
        if graded != graded_now || run != run_now {
            self.move_between(block, &[(graded, graded_now), (run, run_now)], new);
        }
    }

    /// Moves a block out of some sets and into others.
    #[inline(never)]
    fn move_between(&self, block: usize, moves: &[(Option<Set>, Option<Set>); 2], new: BlockState) {
        let position = block + self.phase;
        for &(was, is) in moves {
            if was == is {
                continue;
            }
            if let Some(set) = is {
                self.index.insert(set, position);
            }
            if let Some(set) = was {
                self.index.remove(set, position);
            }
        }
        if self.state(block) == new.next_version() {
            return;
        }
        // The block has moved on meanwhile. The CPU that moved it may have changed these sets
        // before they were changed here.
        for &(was, is) in moves {
            self.settle(was, block);
            self.settle(is, block);
        }
    }

    /// Puts a block into a set or takes it out, as it belongs.
    fn settle(&self, set: Option<Set>, block: usize) {
        match set {
            Some(set) if self.belongs(set, block) => self.put_into(set, block),
            Some(set) => self.take_out_of(set, block),
            None => {}
        }
    }

    #[inline]
    pub(super) fn belongs(&self, set: Set, block: usize) -> bool {
        let state = self.state(block);
        match set == Index::WHOLE {
            true => state.is_whole(self.block_frames()),
            false => self.index.sets_of(state).contains(&Some(set)),
        }
    }

    pub(super) fn put_into(&self, set: Set, block: usize) {
        loop {
            self.index.insert(set, block + self.phase);
            if self.belongs(set, block) {
                return;
            }
            // The block has moved on meanwhile. The CPU that moved it may have cleared the bit
            // before it was set here.
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
