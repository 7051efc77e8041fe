//! Taking from open blocks: which block, which frames of it, and how they become the taker's.

use brickyard_sync::Ordering;

use super::index::{End, GRADES, Index, Set};
use super::state::{BlockState, Mode};
use super::wide::Isolated;
use super::word::{self, WORD_FRAMES, WORD_ORDER};
use super::{Attempt, Bitmap, CALL_INS, Claimed, Kept, Loan, MOST_WORDS, TRIES};
use crate::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

/// What is wanted of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) kind: MigrateType,
    /// Every frame lies below this place.
    pub(super) limit: Option<usize>,
}

impl Bitmap<'_> {
    /// The request's limit, if it cuts into the span.
    pub(super) fn limit_of(&self, request: &Request) -> Option<Frame> {
        request.limit.filter(|&limit| limit < self.span.end)
    }

    pub(super) fn wanted(&self, request: &Request) -> Wanted {
        let limit = self.limit_of(request);
        Wanted {
            kind: request.mobility.into(),
            limit: limit.map(|limit| limit.number().saturating_sub(self.base)),
        }
    }

    /// Takes a block smaller than a page block.
    pub(super) fn take_narrow(&self, request: &Request) -> Option<Frame> {
        let order = request.order.get();
        let wanted = self.wanted(request);
        let offset = self.take_best(order, wanted, |block| self.take_run(block, order, wanted))?;
        Some(self.frame_at(offset))
    }

    /// Takes up to `most` single frames and hands them to `each`, as the place of a word and bits
    /// of it. Returns how many: all that were asked for, or all that could be had.
    pub(crate) fn take_singles(
        &self,
        request: &Request,
        most: usize,
        loan: Loan,
        mut each: impl FnMut(usize, u64),
    ) -> usize {
        let wanted = self.wanted(request);
        let mut taken = 0;
        while taken < most {
            let attempt = |block| self.take_bits(block, most - taken, wanted, loan, &mut each);
            let more = self.take_near(loan, wanted, attempt);
            let Some(frames) = more else {
                break;
            };
            taken += frames;
        }
        taken
    }

    /// As [`Bitmap::take_singles`], from one block, where more of its mobility is left: the one
    /// that a CPU took from last.
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
        let wanted = Wanted { kind, limit: None };
        match self.take_bits(block, most, wanted, Loan::None, &mut each) {
            Attempt::Got(frames) => frames,
            Attempt::Lost | Attempt::Nothing => 0,
        }
    }

    // ---- which block ----

    /// Tries blocks, the best first, until one serves. `None` where none does, or others were
    /// faster in each of [`TRIES`] passes.
    pub(super) fn take_best<T>(
        &self,
        order: u8,
        wanted: Wanted,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let mut call_ins = CALL_INS;
        for _ in 0..TRIES {
            if self.totals.free.is_nothing() {
                return None;
            }
            let mut lost = false;
            for set in self.own_sets(order, wanted.kind) {
                if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut lost) {
                    return Some(got);
                }
            }
            if call_ins > 0 && self.call_in_loans() {
                call_ins -= 1;
                continue;
            }
            for set in self.foreign_sets(order, wanted.kind) {
                if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut lost) {
                    return Some(got);
                }
            }
            if !lost {
                break;
            }
        }
        self.try_any(order, wanted, attempt)
    }

    /// The sets in which a block may serve without harm, the best first: those of its mobility by
    /// fullness or by the least run that suffices, then blocks that are free as a whole.
    fn own_sets(&self, order: u8, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        let own = (0..self.steps(order)).map(move |step| self.step(order, kind, step));
        own.chain([Index::WHOLE])
    }

    /// The sets of single frames of a mobility, the fullest blocks first.
    pub(super) fn graded_sets(&self, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        (0..GRADES).map(move |grade| self.index.of_grade(kind, grade))
    }

    /// Those of others. There, a request that may not be moved looks for the emptiest block, to
    /// claim it and so to stay among its own kind; one that can be moved does no harm where it is
    /// and takes the fullest.
    fn foreign_sets(&self, order: u8, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        let others = match kind {
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            _ => [MigrateType::Reclaimable, MigrateType::Movable],
        };
        let steps = self.steps(order);
        (0..steps).flat_map(move |step| {
            let step = match kind {
                MigrateType::Movable => step,
                _ => steps - 1 - step,
            };
            others.map(|other| self.step(order, other, step))
        })
    }

    /// How many sets of one mobility may serve.
    fn steps(&self, order: u8) -> usize {
        if order == 0 {
            GRADES
        } else {
            usize::from(self.block_order - order)
        }
    }

    fn step(&self, order: u8, kind: MigrateType, step: usize) -> Set {
        match order {
            0 => self.index.of_grade(kind, step),
            _ => self.index.of_run(kind, order + step as u8),
        }
    }

    /// The end that a request's blocks are looked for from. Below a limit, the low one.
    pub(super) const fn end_for(wanted: Wanted) -> End {
        match wanted.kind {
            MigrateType::Movable if wanted.limit.is_none() => End::High,
            _ => End::Low,
        }
    }

    /// Tries the blocks of one set.
    pub(super) fn try_set<T>(
        &self,
        set: Set,
        wanted: Wanted,
        attempt: &mut impl FnMut(usize) -> Attempt<T>,
        lost: &mut bool,
    ) -> Option<T> {
        let end = Self::end_for(wanted);
        let last = self.states.len() + self.phase - 1;
        let mut from = match end {
            End::Low => self.phase,
            End::High => last,
        };
        while let Some(position) = self.index.find(set, from, end) {
            let block = position - self.phase;
            if wanted
                .limit
                .is_some_and(|limit| block << self.block_order >= limit)
            {
                return None;
            }
            match attempt(block) {
                Attempt::Got(got) => return Some(got),
                Attempt::Lost => *lost = true,
                Attempt::Nothing if !self.belongs(set, block) => self.take_out_of(set, block),
                Attempt::Nothing => self.correct_run(block),
            }
            from = match end {
                End::Low if position < last => position + 1,
                End::High if position > self.phase => position - 1,
                _ => return None,
            };
        }
        None
    }

    /// A block has not the run that its state names, or not where it is wanted: a free has looked
    /// at bits that were promised already.
    fn correct_run(&self, block: usize) {
        self.change(block, |state| {
            let known = state.is_open() && (1..self.block_frames()).contains(&state.count());
            let run = self.largest_run(block, |word| self.free_bits(word));
            (known && run != state.run()).then(|| state.with_free(state.count(), run))
        });
    }

    /// Looks at the blocks themselves. All of them for a single frame, if the total says that there
    /// is one, and while something is isolated, since blocks that are so in part are in no set;
    /// else those that are lent again already.
    fn try_any<T>(
        &self,
        order: u8,
        wanted: Wanted,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let mut taken = |block| match attempt(block) {
            Attempt::Got(got) => Some(got),
            Attempt::Lost | Attempt::Nothing => None,
        };
        let mut below = self.blocks_below(wanted);
        if order == 0 || self.isolation.any() {
            below.find_map(taken)
        } else {
            let mut lent = self.lent_blocks().filter(|block| below.contains(block));
            lent.find_map(&mut taken)
        }
    }

    /// The blocks that something wanted may lie in, as far as its limit tells.
    fn blocks_below(&self, wanted: Wanted) -> core::ops::Range<usize> {
        let limit = wanted.limit.unwrap_or(usize::MAX);
        0..limit.div_ceil(self.block_frames()).min(self.states.len())
    }

    // ---- which frames ----

    /// The free frames of a word that may be had.
    fn visible(&self, word: usize, wanted: Wanted) -> u64 {
        self.free_bits(word) & self.eligible(word, wanted)
    }

    /// The frames of a word that may be had if they are free.
    fn eligible(&self, word: usize, wanted: Wanted) -> u64 {
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

    /// The frames of a word that are isolated.
    pub(super) fn isolated_bits(&self, word: usize) -> u64 {
        let block = word >> (self.block_order - WORD_ORDER);
        let in_block = word - self.first_word(block);
        let ranges = self.isolation.ranges();
        ranges.fold(0, |bits, range| {
            let clipped = range.intersection(self.span);
            bits | self.masks_of(block, clipped)[in_block]
        })
    }

    /// Opens a block that is free as a whole. `false` if somebody else was faster.
    pub(super) fn open(&self, block: usize, old: BlockState) -> bool {
        debug_assert_eq!(old.mode(), Mode::Free);
        // Until its words are written nobody can take from it, and a free of anything in it is a
        // double free. The sets follow when it is open.
        let emptied = old.with_mode(Mode::Changing).with_free(0, 0).unmixed();
        if !self.replace(block, old, emptied) {
            return false;
        }
        let first = self.first_word(block);
        for word in first..first + self.block_words() {
            // Relaxed: every frame of it is this caller's until the count is raised, which
            // publishes these.
            self.inner[word].store(0, Ordering::Relaxed);
            self.free[word].store(!0, Ordering::Relaxed);
        }
        let opened = self.change(block, |state| {
            debug_assert_eq!(state.mode(), Mode::Changing, "one-owner");
            Some(
                state
                    .with_mode(Mode::Open)
                    .with_free(self.block_frames(), self.block_order),
            )
        });
        // All the while it has been in the set of whole blocks. It was isolated meanwhile? Then it
        // belongs there no more, and whoever isolated it saw it in no set.
        if opened.is_some_and(|(_, new)| new.is_isolated()) {
            self.take_out_of(Index::WHOLE, block);
        }
        true
    }

    /// The state that a request is served from, the block opened if need be; or why not.
    fn opened<T>(&self, block: usize, frames: usize) -> Result<BlockState, Attempt<T>> {
        let mut state = self.state(block);
        if state.mode() == Mode::Free {
            if !self.open(block, state) {
                return Err(Attempt::Lost);
            }
            state = self.state(block);
        }
        if !state.is_open() || state.count() < frames {
            return Err(Attempt::Nothing);
        }
        Ok(state)
    }

    /// Whose the block is after `wanted` was served from it, and what that was. A request that
    /// cannot be moved makes a movable block its own: it is spoilt for huge pages until then, and
    /// the next such request shall spoil no other.
    fn claim(&self, old: BlockState, wanted: Wanted) -> (BlockState, Option<Claimed>) {
        let whole = old.count() == self.block_frames();
        if whole || old.kind() == wanted.kind {
            return (old.with_kind(wanted.kind), None);
        }
        let spoils = wanted.kind != MigrateType::Movable && old.kind() == MigrateType::Movable;
        let claims = spoils || old.count() >= self.block_frames() / 2;
        match claims {
            true => (old.with_kind(wanted.kind), Some(Claimed::Yes)),
            false => (old, Some(Claimed::No)),
        }
    }

    /// Takes a run of `order` from a block, which is opened if need be. Gives its place.
    pub(super) fn take_run(&self, block: usize, order: u8, wanted: Wanted) -> Attempt<usize> {
        let frames = 1 << order;
        let old = match self.opened(block, frames) {
            Ok(state) => state,
            Err(attempt) => return attempt,
        };
        let Some(offset) = self.find_run(block, order, wanted) else {
            return Attempt::Nothing;
        };
        let (first, words, bits) = Self::bits_of(offset, order);
        let count = old.count() - frames;
        let run = self.run_without(block, old.run(), count, |word| {
            let taken = if (first..first + words).contains(&word) {
                bits
            } else {
                0
            };
            self.free_bits(word) & !taken
        });
        let (claimed, fallback) = self.claim(old, wanted);
        let mut new = claimed.with_free(count, run);
        if wanted.kind != MigrateType::Movable {
            for word in first..first + words {
                new = new.with_mixed(self.eighths(word));
            }
        }
        if order > 0 {
            new = new.with_joined(true);
        }
        if !self.change_once(block, old, new) {
            return Attempt::Lost;
        }
        // From here on so many frames of the block are promised to this caller.
        if let Err(freed) = self.clear_free(first, words, bits) {
            self.return_promise(block, frames, freed);
            return Attempt::Lost;
        }
        self.join(offset, order);
        self.totals.free.remove(block, frames);
        self.count_fallback(fallback);
        Attempt::Got(offset)
    }

    /// Takes up to `most` frames from a block, as bits of its words.
    fn take_bits(
        &self,
        block: usize,
        most: usize,
        wanted: Wanted,
        loan: Loan,
        each: &mut impl FnMut(usize, u64),
    ) -> Attempt<usize> {
        let old = match self.opened(block, 1) {
            Ok(state) => state,
            Err(attempt) => return attempt,
        };
        let first = self.first_word(block);
        let mut masks = [0_u64; MOST_WORDS];
        let mut left = most.min(old.count()) as u32;
        let mut mixed = 0;
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            if left == 0 {
                break;
            }
            let bits = self.visible(first + i, wanted);
            let there = bits.count_ones();
            *mask = if there <= left {
                bits
            } else {
                word::lowest(bits, left)
            };
            left -= there.min(left);
            if *mask != 0 {
                mixed |= self.eighths(first + i);
            }
        }
        let promised = most.min(old.count()) - left as usize;
        if promised == 0 {
            return Attempt::Nothing;
        }
        let count = old.count() - promised;
        let run = self.run_without(block, old.run(), count, |word| {
            self.free_bits(word) & !masks[word - first]
        });
        let (claimed, fallback) = self.claim(old, wanted);
        let mut new = claimed.with_free(count, run);
        if wanted.kind != MigrateType::Movable {
            new = new.with_mixed(mixed);
        }
        if loan != Loan::None && new.kind() == wanted.kind {
            new = new.with_lent(true);
        }
        if !self.change_once(block, old, new) {
            return Attempt::Lost;
        }
        let mut taken = 0;
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            if *mask != 0 {
                // Acquire: pairs with the release of who freed them. Release: who sees them gone
                // sees what was written before, see `Moves`.
                *mask &= self.free[first + i].fetch_and(!*mask, Ordering::AcqRel);
                taken += mask.count_ones() as usize;
            }
        }
        if taken < promised {
            // Others took a part of what was seen. If they took all, the caller will not hear of
            // this block, so that a loan made above would be nobody's.
            let orphan = taken == 0 && new.is_lent() && !old.is_lent();
            let loan = if orphan { Kept::No } else { Kept::Yes };
            self.take_back(block, promised - taken, loan);
        }
        self.totals.free.remove(block, taken);
        // After the last atomic instruction, which would wait for all that is written here.
        for (i, &mask) in masks[..self.block_words()].iter().enumerate() {
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

    /// Where a run of `order` lies in an open block: in the smallest larger run of the first word
    /// that has one and is not whole; of whole words, in the one whose neighbours are worth least.
    fn find_run(&self, block: usize, order: u8, wanted: Wanted) -> Option<usize> {
        let first = self.first_word(block);
        let mut whole = 0_u64;
        for i in 0..self.block_words() {
            let bits = self.visible(first + i, wanted);
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

    /// The words of the run of `order` at `offset`: the first, how many, and the run's bits in
    /// each.
    pub(super) const fn bits_of(offset: usize, order: u8) -> (usize, usize, u64) {
        let first = offset / WORD_FRAMES;
        if order >= WORD_ORDER {
            return (first, 1 << (order - WORD_ORDER), !0);
        }
        (first, 1, word::run(order) << (offset % WORD_FRAMES))
    }

    /// Takes `bits` out of each of some words, all of them or none. Fails with as many as somebody
    /// has freed meanwhile though he did not own them.
    fn clear_free(&self, first: usize, words: usize, bits: u64) -> Result<(), usize> {
        for word in first..first + words {
            if !self.clear_bits(word, bits) {
                return Err((first..word)
                    .map(|taken| self.put_bits_back(taken, bits))
                    .sum());
            }
        }
        Ok(())
    }

    /// Puts bits back that the caller has taken. Every one is its own, so nobody else can have set
    /// one, save by a free of what was not his. Returns how many were.
    fn put_bits_back(&self, word: usize, bits: u64) -> usize {
        // Release: as a free.
        let before = self.free[word].fetch_or(bits, Ordering::Release);
        (before & bits).count_ones() as usize
    }

    /// Takes a promise back, of which a bad free has counted `freed` frames already.
    fn return_promise(&self, block: usize, frames: usize, freed: usize) {
        if freed > 0 {
            self.totals.free.remove(block, freed);
        }
        self.take_back(block, frames - freed, Kept::Yes);
    }

    /// Takes `bits` out of a word, all of them or none; none, too, where others came between
    /// [`TRIES`] times.
    pub(super) fn clear_bits(&self, word: usize, bits: u64) -> bool {
        let mut seen = self.free_bits(word);
        for _ in 0..TRIES {
            if seen & bits != bits {
                break;
            }
            // As in `take_bits`.
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

    /// Makes the frames at `offset`, which are the caller's, one block of `order`.
    pub(super) fn join(&self, offset: usize, order: u8) {
        if order == 0 {
            return;
        }
        let (first, words, bits) = Self::bits_of(offset, order);
        for word in first..first + words {
            let head = if word == first {
                1 << (offset % WORD_FRAMES)
            } else {
                0
            };
            // Relaxed: the frames are this caller's, and who frees them has them from it.
            self.inner[word].fetch_or(bits & !head, Ordering::Relaxed);
        }
    }

    // ---- given places ----

    /// Takes exactly the frames of `masks` from a block, all or none, isolated ones included; none,
    /// too, where others came between [`TRIES`] times.
    pub(super) fn take_masks(&self, block: usize, masks: &[u64; MOST_WORDS]) -> bool {
        let first = self.first_word(block);
        let frames: usize = masks.iter().map(|mask| mask.count_ones() as usize).sum();
        let promised = (0..TRIES).find_map(|_| {
            let old = match self.opened::<()>(block, frames) {
                Ok(state) => state,
                Err(Attempt::Lost) => return None,
                Err(_) => return Some(false),
            };
            let there = |i: usize| self.free_bits(first + i) & masks[i] == masks[i];
            if !(0..self.block_words()).all(there) {
                return Some(false);
            }
            let count = old.count() - frames;
            let run = self.run_without(block, old.run(), count, |word| {
                self.free_bits(word) & !masks[word - first]
            });
            self.change_once(block, old, old.with_free(count, run))
                .then_some(true)
        });
        if promised != Some(true) {
            return false;
        }
        for i in 0..self.block_words() {
            if masks[i] != 0 && !self.clear_bits(first + i, masks[i]) {
                let taken = masks[..i].iter().enumerate();
                let freed = taken
                    .map(|(j, &mask)| self.put_bits_back(first + j, mask))
                    .sum();
                self.return_promise(block, frames, freed);
                return false;
            }
        }
        self.totals.free.remove(block, frames);
        true
    }

    /// May a request that found nothing be refused, or is something on its way that it may have?
    pub fn may_refuse(&self, request: &Request) -> bool {
        if request.order > Order::ZERO {
            return true;
        }
        if self.totals.free.is_nothing() {
            return true;
        }
        if self.limit_of(request).is_none() && !self.isolation.any() {
            return false;
        }
        // The total counts what this request may not have. So every block is looked at that it
        // might be served from. If one has changed meanwhile, a frame may have been freed behind
        // this look by who then took one ahead of it.
        let wanted = self.wanted(request);
        let before = self.states_below(wanted);
        let something = self.blocks_below(wanted).any(|block| {
            let first = self.first_word(block);
            let mut words = first..first + self.block_words();
            match self.state(block).mode() {
                Mode::Huge => false,
                Mode::Free | Mode::Changing => words.any(|word| self.eligible(word, wanted) != 0),
                Mode::Open => words.any(|word| self.visible(word, wanted) != 0),
            }
        });
        !something && self.states_below(wanted) == before
    }

    /// The states of all blocks that something wanted may lie in, as one number: another one once
    /// any of them has changed, since each change counts up a state's version.
    fn states_below(&self, wanted: Wanted) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let states = self.blocks_below(wanted).map(|block| self.state(block));
        states.fold(0, |sum, state| {
            (sum ^ state.to_bits()).wrapping_mul(ODD).rotate_left(23)
        })
    }

    /// Takes exactly the block of `request`'s order at `frame`.
    ///
    /// # Errors
    /// [`RangeError`](crate::RangeError) where a part of it is not free, or is isolated.
    pub fn take_at(&self, frame: Frame, request: &Request) -> Result<(), crate::RangeError> {
        use crate::RangeError;
        let order = request.order;
        let range = FrameRange::of_block(frame, order);
        if order > self.max_order || !frame.is_aligned(order) {
            return Err(RangeError::Malformed);
        }
        // Near the end of all numbers a range comes out short.
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
        if !self.take_masks(block, &self.masks_of(block, range)) {
            return false;
        }
        self.now_in_use(block, offset, order, kind);
        true
    }

    /// The frames at `offset` are the caller's, and become a block of `order` and mobility `kind`.
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
        self.join(offset, order);
    }

    /// Can a free block of this order serve this request, be it of another mobility?
    pub fn can_serve(&self, request: &Request) -> bool {
        if request.order > self.max_order {
            return false;
        }
        let wanted = self.wanted(request);
        if request.order.get() >= self.block_order {
            return self.find_blocks(request.order.get(), wanted).is_some();
        }
        let order = request.order.get();
        let look = |block: usize| {
            let state = self.state(block);
            let whole = state.mode() == Mode::Free;
            let below = wanted.limit.unwrap_or(usize::MAX);
            let fits = whole && (block << self.block_order) + request.order.frames() <= below;
            let open = state.is_open() && state.count() >= request.order.frames();
            if fits || open && self.find_run(block, order, wanted).is_some() {
                Attempt::Got(())
            } else {
                Attempt::Nothing
            }
        };
        let mut lost = false;
        let own = self.own_sets(order, wanted.kind);
        let mut sets = own.chain(self.foreign_sets(order, wanted.kind));
        sets.any(|set| {
            self.try_set(set, wanted, &mut { look }, &mut lost)
                .is_some()
        }) || self
            .lent_blocks()
            .any(|block| look(block) != Attempt::Nothing)
    }

    /// The lists of mobilities that there are.
    pub(super) const KINDS: [Mobility; 3] = Mobility::ALL;
}
