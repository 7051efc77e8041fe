//! Several small blocks at a time, for a stash: one change of a page block's state serves all of
//! them, and one change of each of its words.

use brickyard_sync::Ordering;

use super::search::Wanted;
use super::state::BlockState;
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use super::{Attempt, Bitmap, Borrower, MOST_WORDS};
use crate::{MigrateType, Order, Request};

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
        let frames = 1 << order;
        let old = match self.opened(block, frames, wanted) {
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
        let first = self.first_word(block);
        let free_bits = |word| self.visible(word, old, wanted);
        let chosen = self.choose_runs(block, order, most, free_bits);
        if chosen.blocks == 0 {
            return Attempt::Nothing;
        }
        let promised = chosen.blocks << order;
        let count = old.count() - promised;
        let run = self.run_without(block, old.run(), count, |word| {
            self.free_bits(word) & !chosen.masks[word - first]
        });
        let (claimed, fallback) = self.claim(old, wanted);
        let mut new = claimed.with_free(count, run).with_joined(true);
        let words = chosen.masks[..self.block_words()].iter().enumerate();
        // From the top down, so that a stash hands them out in rising order.
        let words = words.rev().filter(|&(_, &mask)| mask != 0);
        if wanted.kind != MigrateType::Movable {
            let mixed = |all, (i, _)| all | self.eighths(first + i);
            new = new.with_mixed(words.clone().fold(0, mixed));
        }
        if !self.change_once(block, old, new) {
            return Attempt::Lost;
        }
        self.end_class(block);
        let mut taken = 0;
        for (i, &mask) in words {
            let got = self.take_whole_runs(block, old, first + i, mask, order);
            taken += got.count_ones() as usize;
            let inner = Self::runs_from(got, order) & !got;
            // Relaxed: as in `join`.
            self.inner[first + i].fetch_or(inner, Ordering::Relaxed);
            let mut heads = got;
            while heads != 0 {
                let bit = heads.ilog2();
                each((first + i) * WORD_FRAMES + bit as usize);
                heads &= !(1 << bit);
            }
        }
        if taken == 0 {
            return Attempt::Lost;
        }
        self.uncount(block, old, taken << order);
        self.count_fallback(fallback);
        Attempt::Got(taken)
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

    /// Takes the runs of `order` that make up `mask` out of a word, each of them or not. Returns
    /// the first bit of each run taken. For the others the promise is taken back.
    fn take_whole_runs(
        &self,
        block: usize,
        promised: BlockState,
        word: usize,
        mask: u64,
        order: u8,
    ) -> u64 {
        let frames = 1 << order;
        let starts = word::starts(mask, order);
        // Acquire, release: as in `take_bits`.
        let taken = mask & self.free[word].fetch_and(!mask, Ordering::AcqRel);
        if taken == mask {
            return starts;
        }
        // Other CPUs took a part of what was seen.
        let got = word::starts(taken, order);
        let freed = match taken & !Self::runs_from(got, order) {
            0 => 0,
            rest => self.put_bits_back(word, rest),
        };
        let lost = (starts.count_ones() - got.count_ones()) as usize * frames;
        self.return_promise(block, promised, lost, freed);
        got
    }

    /// Returns the bits of the runs of `order` that start at these bits.
    const fn runs_from(starts: u64, order: u8) -> u64 {
        // The runs do not overlap, so nothing is carried.
        starts.wrapping_mul(word::run(order))
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
