//! Several small blocks at a time, for a stash: one change of a page block's state serves all of
//! them, and one change of each of its words.

use brickyard_sync::Ordering;

use super::search::Wanted;
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use super::{Attempt, Bitmap, Borrower, MOST_WORDS};
use crate::{Order, Request};

/// Small blocks of one order, chosen in a page block.
#[derive(Debug)]
struct Chosen {
    masks: [u64; MOST_WORDS],
    blocks: usize,
}

impl Bitmap<'_> {
    /// Takes up to `most` blocks of `request`'s order, which is smaller than a word, and hands the
    /// position of each to `each`. They come from one page block, the best for the request. Returns
    /// the number taken; 0 if there are none.
    pub(crate) fn take_runs(
        &self,
        request: &Request,
        most: usize,
        mut each: impl FnMut(usize),
    ) -> usize {
        let order = request.order.get();
        debug_assert!((1..WORD_ORDER).contains(&order));
        let wanted = self.wanted(request);
        let attempt = |block| self.take_runs_from(block, order, most, wanted, &mut each);
        self.take_best(order, wanted, attempt).unwrap_or(0)
    }

    fn take_runs_from(
        &self,
        block: usize,
        order: u8,
        most: usize,
        wanted: Wanted,
        each: &mut impl FnMut(usize),
    ) -> Attempt<usize> {
        let old = match self.opened(block, 1 << order, wanted) {
            Ok(state) => state,
            Err(attempt) => return attempt,
        };
        let foreign = old.kind() != wanted.kind && old.count() < self.block_frames();
        // No more than is needed is put among others.
        let most = if foreign {
            1
        } else {
            most.min(old.count() >> order)
        };
        let visible = |word| self.visible(word, old, wanted);
        let mut chosen = self.choose_runs(block, order, most, visible);
        if chosen.blocks == 0 {
            return Attempt::Nothing;
        }
        let masks = &mut chosen.masks[..self.block_words()];
        let (claimed, fallback) = self.claim(old, wanted);
        let claimed = claimed.with_joined(true);
        let frames = chosen.blocks << order;
        let mask = |i: usize| masks[i];
        let Some(new) = self.promise(block, old, claimed, mask, frames, wanted.kind) else {
            return Attempt::Lost;
        };
        self.end_class(block);
        let taken = self.take_promised(block, (old, new), masks, order);
        if taken == 0 {
            return Attempt::Lost;
        }
        let first = self.first_word(block);
        // From the top down, so that a stash hands them out in rising order.
        for (i, &got) in masks.iter().enumerate().rev().filter(|&(_, &got)| got != 0) {
            let mut heads = word::starts(got, order);
            // Relaxed: as in `join`.
            self.inner[first + i].fetch_or(got & !heads, Ordering::Relaxed);
            while heads != 0 {
                let bit = heads.ilog2();
                each((first + i) * WORD_FRAMES + bit as usize);
                heads &= !(1 << bit);
            }
        }
        self.count_fallback(fallback);
        Attempt::Got(taken >> order)
    }

    /// Chooses up to `most` runs of `order` among the free frames of a page block: those of words
    /// that are partly free, so that whole words remain; else those of one whole word.
    fn choose_runs(
        &self,
        block: usize,
        order: u8,
        most: usize,
        free_bits: impl Fn(usize) -> u64,
    ) -> Chosen {
        let mut chosen = Chosen {
            masks: [0; MOST_WORDS],
            blocks: 0,
        };
        let first = self.first_word(block);
        let mut whole = 0_u64;
        for i in 0..self.block_words() {
            match free_bits(first + i) {
                0 => {}
                u64::MAX => whole |= 1 << i,
                bits => chosen.take(i, bits, order, most),
            }
        }
        if chosen.blocks == 0
            && let Some(word) = word::best_fit(whole, 0)
        {
            chosen.take(word as usize, !0, order, most);
        }
        chosen
    }

    /// Takes back small blocks of `order` that a front held, by their positions. Those that turn
    /// out not to be blocks in use of this order are left alone, and counted.
    #[inline(never)]
    pub(crate) fn give_runs(&self, order: Order, offsets: impl Iterator<Item = usize>) {
        let frames = order.frames();
        let mut offsets = offsets.peekable();
        while let Some(&offset) = offsets.peek() {
            let block = self.block_at(offset);
            let first = self.first_word(block);
            let mut masks = [0_u64; MOST_WORDS];
            let (mut good, mut refused) = (0, 0);
            while let Some(offset) = offsets.next_if(|&next| self.block_at(next) == block) {
                let (_, _, bits) = Self::bits_of(offset, order.get());
                let mask = &mut masks[offset / WORD_FRAMES - first];
                if *mask & bits != 0 || !self.is_surely_block_in_use(offset, order) {
                    refused += frames;
                    continue;
                }
                *mask |= bits;
                good += frames;
            }
            for (i, &mask) in masks[..self.block_words()].iter().enumerate() {
                if mask != 0 {
                    self.clear_inner((first + i) * WORD_FRAMES, mask);
                }
            }
            if good > 0 {
                refused += self
                    .give_masks(block, &masks, good, Borrower::Nobody)
                    .refused;
            }
            if refused > 0 {
                self.refuse_late(refused);
            }
        }
    }
}

impl Chosen {
    /// Adds runs of `order` of a word's free frames, while there are fewer than `most`: the
    /// smallest first, so that larger ones stay whole.
    fn take(&mut self, word: usize, free: u64, order: u8, most: usize) {
        if free == u64::MAX && self.masks[word] == 0 {
            // The same as one after the other, since each is the smallest that is left.
            let runs = (most - self.blocks).min(WORD_FRAMES >> order);
            self.masks[word] = match runs << order {
                0 => 0,
                frames => u64::MAX >> (WORD_FRAMES - frames),
            };
            self.blocks += runs;
            return;
        }
        while self.blocks < most
            && let Some(bit) = word::best_fit(free & !self.masks[word], order)
        {
            self.masks[word] |= word::run(order) << bit;
            self.blocks += 1;
        }
    }
}
