//! Taking from open blocks: which frames, and how they become the taker's. Which block is the
//! matter of `search.rs`.

use brickyard_sync::Ordering;

use super::large_blocks::Isolated;
use super::search::{Aside, Wanted};
use super::state::{BlockMode, BlockState};
use super::summary::Index;
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use super::{Attempt, Bitmap, Claimed, Loan, LoanKept, MOST_WORDS, Masks, TRIES};
use crate::isolation::Isolation;
use crate::{Frame, FrameRange, MigrateType, Request};

impl Bitmap<'_> {
    /// Takes a block smaller than a page block.
    pub(super) fn take_narrow(&self, request: &Request) -> Option<Frame> {
        let order = request.order.get();
        let wanted = self.wanted(request);
        let offset = self.take_best(order, wanted, |block| self.take_run(block, order, wanted))?;
        Some(self.frame_at(offset))
    }

    /// Takes up to `most` single frames. Hands them to `each`, as the position of a word and bits
    /// of that word. Returns the number taken. They are fewer if the blocks of the request's own
    /// mobility, and those that are free as a whole, have no more: other mobilities are fallen back
    /// on only for a request that gets nothing else.
    pub(crate) fn take_singles(
        &self,
        request: &Request,
        most: usize,
        loan: Loan,
        mut each: impl FnMut(usize, u64),
    ) -> usize {
        let wanted = self.wanted(request);
        let mut taken = 0;
        let attempt = |block| {
            let before = taken;
            for _ in 0..TRIES {
                match self.take_bits(block, most - taken, wanted, loan, &mut each) {
                    Attempt::Got(frames) => taken += frames,
                    Attempt::Lost if taken > before => {}
                    Attempt::Nothing if taken > before => break,
                    nothing => return nothing,
                }
                if taken == most {
                    return Attempt::Got(taken);
                }
                // What others got of a promise made here is in the block's count again.
                if self.state(block).count() == 0 {
                    break;
                }
            }
            Attempt::More
        };
        if most > 0 {
            self.take_near(loan, wanted, attempt);
        }
        taken
    }

    /// Takes up to `most` single frames from one block, the one that a CPU took from last, if it is
    /// still of this mobility. Hands them to `each`, and returns their number.
    pub(crate) fn take_singles_from(
        &self,
        block: usize,
        kind: MigrateType,
        most: usize,
        mut each: impl FnMut(usize, u64),
    ) -> usize {
        if block >= self.states.len() {
            return 0;
        }
        let state = self.state(block);
        if state.kind() != kind || !state.is_open() || state.is_isolated() {
            return 0;
        }
        let wanted = Wanted::of(kind);
        match self.take_bits(block, most, wanted, Loan::None, &mut each) {
            Attempt::Got(frames) => frames,
            Attempt::More | Attempt::Lost | Attempt::Nothing => 0,
        }
    }

    /// Returns the free frames of a word, in a block in this state, that the request may have.
    #[inline(always)]
    pub(super) fn visible(&self, word: usize, state: BlockState, wanted: Wanted) -> u64 {
        let bits = self.free_bits(word);
        // If a part of the block is isolated after its state was read, the promise that is about to
        // be made fails.
        match wanted.limit.is_none() && !state.is_isolated() {
            true => bits,
            false => bits & self.eligible(word, wanted),
        }
    }

    /// Returns the frames of a word that the request may have if they are free.
    pub(super) fn eligible(&self, word: usize, wanted: Wanted) -> u64 {
        let mut bits = !0;
        let first = word * WORD_FRAMES;
        if let Some(limit) = wanted.limit {
            let below = limit.saturating_sub(first);
            if below < WORD_FRAMES {
                bits &= !(!0 << below);
            }
        }
        if self.isolation.any() {
            bits &= !self.isolated_bits(word);
        }
        bits
    }

    /// Returns the isolated frames of a word.
    pub(super) fn isolated_bits(&self, word: usize) -> u64 {
        self.bits_in(&self.isolation, word)
    }

    /// Returns the frames of a word that lie in one of these ranges.
    pub(super) fn bits_in(&self, ranges: &Isolation, word: usize) -> u64 {
        let ranges = ranges.ranges();
        ranges.fold(0, |bits, range| {
            bits | self.mask_of(word, range.intersection(self.span))
        })
    }

    /// Opens a block that is free as a whole, or opens an open one anew, for single frames of
    /// `kind`. Returns false if another CPU was faster.
    pub(super) fn open(&self, block: usize, old: BlockState, kind: MigrateType) -> bool {
        debug_assert_eq!(old.count(), self.block_frames(), "all of it is free");
        // Until its words are written nothing can be taken from the block, and a free of anything
        // in it is a double free. The sets follow when it is open.
        let emptied = old.with_mode(BlockMode::Changing).with_free(0, 0).unmixed();
        if !self.replace(block, old, emptied) {
            return false;
        }
        let first = self.first_word(block);
        for word in first..first + self.block_words() {
            // Relaxed: every frame of the block is this caller's until the count is raised, which
            // publishes these stores.
            self.inner[word].store(0, Ordering::Relaxed);
            self.free[word].store(!0, Ordering::Relaxed);
        }
        self.begin_class(block, kind);
        self.count_promised(block, old, self.block_frames());
        let opened = self.change(block, |state| {
            debug_assert_eq!(state.mode(), BlockMode::Changing, "one-owner");
            if state.is_isolated() {
                // Before the block is open, and anybody can own a frame of it.
                self.end_class(block);
            }
            Some(
                state
                    .with_mode(BlockMode::Open)
                    .with_free(self.block_frames(), self.block_order),
            )
        });
        // The block has been in the set of whole blocks all the while. If it was isolated
        // meanwhile, it no longer belongs there, and the CPU that isolated it saw it in no set.
        if let Some((_, new)) = opened.filter(|(_, new)| new.is_isolated()) {
            self.uncount_isolated(block, new, self.block_frames());
            self.take_out_of(Index::WHOLE, block);
        }
        true
    }

    /// Returns the state from which `wanted` is served, after opening the block if necessary; or
    /// the reason why it cannot be.
    pub(super) fn opened<T>(
        &self,
        block: usize,
        frames: usize,
        wanted: Wanted,
    ) -> Result<BlockState, Attempt<T>> {
        let mut state = self.state(block);
        if state.is_aside() && wanted.aside == Aside::Not {
            return Err(Attempt::Nothing);
        }
        let kind = wanted.kind;
        if state.count() == self.block_frames() {
            // If nothing in an open block is in use, its class may be one of past use. An isolated
            // block has no class, and is its owner's.
            let ready = state.is_open() && (state.is_isolated() || self.has_class(block, kind));
            if !ready && !self.open(block, state, kind) {
                return Err(Attempt::Lost);
            }
            state = self.state(block);
        }
        if !state.is_open() || state.count() < frames {
            return Err(Attempt::Nothing);
        }
        Ok(state)
    }

    /// Returns the block's state after it has served `wanted`, and whether the block was claimed. A
    /// request that cannot be moved claims a movable block: its frames spoil the block for huge
    /// pages, and the next such request should not spoil another. A block that is set aside is for
    /// atomic requests of any mobility, and keeps its own.
    pub(super) fn claim(&self, old: BlockState, wanted: Wanted) -> (BlockState, Option<Claimed>) {
        let whole = old.count() == self.block_frames();
        if whole || old.kind() == wanted.kind {
            return (old.with_kind(wanted.kind), None);
        }
        if old.is_aside() {
            return (old, None);
        }
        let spoils = wanted.kind != MigrateType::Movable && old.kind() == MigrateType::Movable;
        let claims = spoils || old.count() >= self.block_frames() / 2;
        match claims {
            true => (old.with_kind(wanted.kind), Some(Claimed::Yes)),
            false => (old, Some(Claimed::No)),
        }
    }

    // ---- promises ----

    /// Promises the caller `frames` frames that it has seen free in an open block, as `mask` says
    /// of each of its words: replaces the state `old` by one without them, in which the block is as
    /// in `claimed`. Returns the new state, or `None` if another CPU was faster. From then on, that
    /// many frames of the block are the caller's to take, and nobody can take it as a whole.
    #[inline]
    pub(super) fn promise(
        &self,
        block: usize,
        old: BlockState,
        claimed: BlockState,
        mask: impl Fn(usize) -> u64,
        frames: usize,
        kind: MigrateType,
    ) -> Option<BlockState> {
        let first = self.first_word(block);
        let count = old.count() - frames;
        let run = self.run_without(block, old.run(), count, |word| {
            self.free_bits(word) & !mask(word - first)
        });
        let mut new = claimed.with_free(count, run);
        if kind != MigrateType::Movable {
            for i in (0..self.block_words()).filter(|&i| mask(i) != 0) {
                new = new.with_mixed(self.eighths(first + i));
            }
        }
        self.change_once(block, old, new).then_some(new)
    }

    /// Takes the runs of `order` that `masks` are made of, each of them or not, after a promise
    /// that changed `old` into `new`. Leaves in `masks` what was taken, and takes the promise of
    /// the rest back. Returns the number of frames taken.
    pub(super) fn take_promised(
        &self,
        block: usize,
        (old, new): (BlockState, BlockState),
        masks: &mut [u64],
        order: u8,
    ) -> usize {
        let first = self.first_word(block);
        let promised = old.count() - new.count();
        let (mut taken, mut freed) = (promised, 0);
        for (i, mask) in masks.iter_mut().enumerate() {
            if *mask == 0 {
                continue;
            }
            // Acquire: pairs with the release of the CPU that freed them. Release: a CPU that sees
            // them gone sees what was written before, see `Moves`.
            let there = *mask & self.free[first + i].fetch_and(!*mask, Ordering::AcqRel);
            if there != *mask {
                // Other CPUs took a part of what was seen.
                let got = word::runs_from(word::starts(there, order), order);
                if there != got {
                    freed += self.put_bits_back(first + i, there & !got);
                }
                taken -= (*mask & !got).count_ones() as usize;
                *mask = got;
            }
        }
        if taken < promised {
            // If they took all, the caller will not learn of this block, so that no CPU would have
            // a loan made by this promise.
            let orphan = taken == 0 && new.is_lent() && !old.is_lent();
            let loan = if orphan { LoanKept::No } else { LoanKept::Yes };
            self.return_promise(block, old, promised - taken, freed, loan);
        }
        self.uncount(block, old, taken);
        taken
    }

    /// Takes all the frames that were promised by a change of `old`, or none. Also takes none if
    /// other CPUs changed one of the words meanwhile [`TRIES`] times.
    fn take_all_promised(
        &self,
        block: usize,
        old: BlockState,
        mask: impl Fn(usize) -> u64,
        frames: usize,
    ) -> bool {
        let first = self.first_word(block);
        let words = |end| (0..end).filter(|&i| mask(i) != 0);
        for i in words(self.block_words()) {
            if !self.clear_bits(first + i, mask(i)) {
                let put_back = |j| self.put_bits_back(first + j, mask(j));
                let freed = words(i).map(put_back).sum();
                self.return_promise(block, old, frames, freed, LoanKept::Yes);
                return false;
            }
        }
        self.uncount(block, old, frames);
        true
    }

    /// Puts back bits that the caller has taken. The caller owns all of them, so only a bad free by
    /// another CPU can have set one. Returns how many were set.
    fn put_bits_back(&self, word: usize, bits: u64) -> usize {
        // Release: as a free.
        let before = self.free[word].fetch_or(bits, Ordering::Release);
        (before & bits).count_ones() as usize
    }

    /// Takes a promise back that was made by a change of the state `promised`, and of which a bad
    /// free has already counted `freed` frames.
    fn return_promise(
        &self,
        block: usize,
        promised: BlockState,
        frames: usize,
        freed: usize,
        loan: LoanKept,
    ) {
        if freed > 0 {
            self.uncount(block, promised, freed);
        }
        self.take_back(block, promised, frames - freed, loan);
    }

    /// Takes `bits` out of a word, all of them or none. Also takes none if other CPUs changed the
    /// word meanwhile [`TRIES`] times.
    fn clear_bits(&self, word: usize, bits: u64) -> bool {
        let mut seen = self.free_bits(word);
        for _ in 0..TRIES {
            if seen & bits != bits {
                break;
            }
            // As in `take_promised`.
            match self.free[word].compare_exchange(
                seen,
                seen & !bits,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    // ---- what is wanted ----

    /// Takes a run of `order` from a block, which is opened if necessary. Returns the run's
    /// position.
    pub(super) fn take_run(&self, block: usize, order: u8, wanted: Wanted) -> Attempt<usize> {
        let old = match self.opened(block, 1 << order, wanted) {
            Ok(state) => state,
            Err(attempt) => return attempt,
        };
        let visible = |word| self.visible(word, old, wanted);
        let Some(offset) = self.find_run(block, order, visible) else {
            return Attempt::Nothing;
        };
        let (first, words, bits) = Self::bits_of(offset, order);
        let first = first - self.first_word(block);
        let mask = |i: usize| match (first..first + words).contains(&i) {
            true => bits,
            false => 0,
        };
        let (claimed, fallback) = self.claim(old, wanted);
        let claimed = claimed.with_joined(claimed.is_joined() || order > 0);
        let frames = 1 << order;
        let promised = self.promise(block, old, claimed, mask, frames, wanted.kind);
        if promised.is_none() || !self.take_all_promised(block, old, mask, frames) {
            return Attempt::Lost;
        }
        self.mark_in_use(block, offset, order, wanted.kind);
        self.count_fallback(fallback);
        Attempt::Got(offset)
    }

    /// Takes up to `most` frames from a block, as bits of its words.
    #[inline(never)]
    fn take_bits(
        &self,
        block: usize,
        most: usize,
        wanted: Wanted,
        loan: Loan,
        each: &mut impl FnMut(usize, u64),
    ) -> Attempt<usize> {
        let old = match self.opened(block, 1, wanted) {
            Ok(state) => state,
            Err(attempt) => return attempt,
        };
        let first = self.first_word(block);
        let mut masks = [0_u64; MOST_WORDS];
        let masks = &mut masks[..self.block_words()];
        let most = most.min(old.count()) as u32;
        let mut left = most;
        for (i, mask) in masks.iter_mut().enumerate() {
            if left == 0 {
                break;
            }
            let bits = self.visible(first + i, old, wanted);
            if bits == 0 {
                continue;
            }
            let there = bits.count_ones();
            *mask = if there <= left {
                bits
            } else {
                word::lowest(bits, left)
            };
            left -= there.min(left);
        }
        if left == most {
            return Attempt::Nothing;
        }
        let (mut claimed, fallback) = self.claim(old, wanted);
        if loan != Loan::None && claimed.kind() == wanted.kind {
            claimed = claimed.with_lent(true);
        }
        let frames = (most - left) as usize;
        let mask = |i: usize| masks[i];
        let Some(new) = self.promise(block, old, claimed, mask, frames, wanted.kind) else {
            return Attempt::Lost;
        };
        let taken = self.take_promised(block, (old, new), masks, 0);
        self.keep_class(block, wanted.kind);
        // After the last atomic instruction, which would wait for all that is written here.
        for (i, &mask) in masks.iter().enumerate() {
            if mask != 0 {
                each((first + i) * WORD_FRAMES, mask);
            }
        }
        if taken == 0 {
            return Attempt::Lost;
        }
        self.count_fallback(fallback);
        Attempt::Got(taken)
    }

    /// Finds a run of `order` in a block. `free_bits` gives the free frames of a word. Prefers the
    /// first word that is partly free and has such a run, and there the smallest run that is large
    /// enough. Among wholly free words, it prefers the one whose neighbours are worth least.
    pub(super) fn find_run(
        &self,
        block: usize,
        order: u8,
        free_bits: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let first = self.first_word(block);
        let mut whole = 0_u64;
        for i in 0..self.block_words() {
            let bits = free_bits(first + i);
            if bits == !0 {
                whole |= 1 << i;
            } else if order < WORD_ORDER
                && let Some(bit) = word::best_fit(bits, order)
            {
                return Some((first + i) * WORD_FRAMES + bit as usize);
            }
        }
        let word = word::best_fit(whole, order.saturating_sub(WORD_ORDER))?;
        Some((first + word as usize) * WORD_FRAMES)
    }

    /// Returns the words of the run of `order` at `offset`: the first, how many, and the run's bits
    /// in each.
    pub(super) const fn bits_of(offset: usize, order: u8) -> (usize, usize, u64) {
        let first = offset / WORD_FRAMES;
        if order >= WORD_ORDER {
            return (first, 1 << (order - WORD_ORDER), !0);
        }
        (first, 1, word::run(order) << (offset % WORD_FRAMES))
    }

    /// Makes the frames at `offset`, which must be the caller's, one block of `order` and `kind`.
    fn mark_in_use(&self, block: usize, offset: usize, order: u8, kind: MigrateType) {
        match order {
            0 => self.keep_class(block, kind),
            _ => {
                self.end_class(block);
                self.join(offset, order);
            }
        }
    }

    /// Joins the frames at `offset`, which must be the caller's, to one block of `order`, 1 or
    /// more.
    fn join(&self, offset: usize, order: u8) {
        let (first, words, bits) = Self::bits_of(offset, order);
        for word in first..first + words {
            let head = if word == first {
                1 << (offset % WORD_FRAMES)
            } else {
                0
            };
            // Relaxed: the frames are this caller's, and a CPU that frees them has them from it.
            self.inner[word].fetch_or(bits & !head, Ordering::Relaxed);
        }
    }

    // ---- given places ----

    /// Takes exactly the frames of `masks` from a block, all or none, including isolated ones and
    /// those set aside. Also takes none if other CPUs changed the block meanwhile [`TRIES`] times.
    pub(super) fn take_masks(&self, block: usize, masks: &Masks) -> bool {
        let first = self.first_word(block);
        let masks = &masks[..self.block_words()];
        let frames = masks.iter().map(|mask| mask.count_ones() as usize).sum();
        let movable = MigrateType::Movable;
        let wanted = Wanted {
            aside: Aside::Too,
            ..Wanted::of(movable)
        };
        for _ in 0..TRIES {
            let old = match self.opened::<()>(block, frames, wanted) {
                Ok(state) => state,
                Err(Attempt::Lost) => continue,
                Err(_) => return false,
            };
            let mut words = masks.iter().enumerate();
            if !words.all(|(i, &mask)| self.free_bits(first + i) & mask == mask) {
                return false;
            }
            let mask = |i: usize| masks[i];
            let promised = self.promise(block, old, old, mask, frames, movable);
            if promised.is_some() {
                return self.take_all_promised(block, old, mask, frames);
            }
        }
        false
    }

    /// Takes exactly the block of `request`'s order at `frame`.
    ///
    /// # Errors
    /// [`RangeError`](crate::RangeError) if a part of it is not free, or is isolated.
    pub fn take_at(&self, frame: Frame, request: &Request) -> Result<(), crate::RangeError> {
        use crate::RangeError;
        let order = request.order;
        let range = FrameRange::of_block(frame, order);
        if order > self.max_order || !frame.is_aligned(order) {
            return Err(RangeError::Malformed);
        }
        // Near the highest frame number, a range comes out short.
        if !self.span.covers(range) || range.len() < order.frames() {
            return Err(RangeError::OutsideSpan { span: self.span });
        }
        if self.isolation.overlaps(range) {
            return Err(RangeError::Isolated);
        }
        self.all_free(range)?;
        if self.take_place(self.offset(frame), order.get(), request.mobility.into()) {
            return Ok(());
        }
        self.all_free(range)?;
        Err(RangeError::Busy { frame })
    }

    /// Takes the block of `order` at `offset`, isolated or not, if all of it is free.
    pub(super) fn take_place(&self, offset: usize, order: u8, kind: MigrateType) -> bool {
        let block = self.block_at(offset);
        if order >= self.block_order {
            let blocks = 1 << (order - self.block_order);
            return self.take_blocks(block, blocks, kind, Isolated::Too);
        }
        let range = FrameRange::at(self.frame_at(offset), 1 << order);
        let mut masks = [0; MOST_WORDS];
        self.write_masks(&mut masks, block, range);
        if !self.take_masks(block, &masks) {
            return false;
        }
        self.now_in_use(block, offset, order, kind);
        true
    }

    /// Makes the frames at `offset`, which must be the caller's, a block of `order` and mobility
    /// `kind`.
    fn now_in_use(&self, block: usize, offset: usize, order: u8, kind: MigrateType) {
        let (first, words, _) = Self::bits_of(offset, order);
        self.change(block, |state| {
            let mut new = state;
            if order > 0 {
                new = new.with_joined(true);
            }
            if kind != MigrateType::Movable {
                for word in first..first + words {
                    new = new.with_mixed(self.eighths(word));
                }
            }
            (new != state).then_some(new)
        });
        self.mark_in_use(block, offset, order, kind);
    }
}
