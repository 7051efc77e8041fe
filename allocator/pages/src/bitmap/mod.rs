//! The bitmap store, the default: one bit a frame says that it is free, and nobody ever waits for
//! anybody.
//!
//! # How it works
//!
//! **Words.** Three bits a frame, in three planes of 64-bit words. `free`: to be had. `inner`: goes
//! on with the block in use that the frame before it belongs to; so a frame in use without it is
//! the first of its block, and single frames come and go without a write here. `memory`: memory of
//! the zone; without it, `inner` says reserved, else absent.
//!
//! **States.** A page block has a word of state (`state.rs`): how many frames are free and promised
//! to nobody, the largest run of them, the mobility it is for. It is *open* (the words tell), or
//! *free* or *huge* as a whole, and then goes from one to the other by one compare-and-swap. While
//! a CPU writes its words on the way to or from open it is *changing*: nothing can be taken from
//! it, and what is freed into it is refused.
//!
//! **Promises.** Who wants frames first lowers the block's count by as many, and only then takes
//! them out of its words; who frees, first puts them into the words and then raises the count. So a
//! count that says "all" means that all bits are there and nobody has a claim to any: the block can
//! be taken as a whole by its state alone, though its words were never looked at. Where a promise
//! cannot be kept, because others took the run that was seen, the count is raised again and the
//! search goes on; others have got on meanwhile.
//!
//! **The summary.** Sets of blocks (`index.rs`) by mobility and fullness, and by mobility and
//! largest run, so that the fullest block that serves a request is found in a bounded number of
//! steps. Every change of a state is followed by the changes of sets that it asks for.
//!
//! **Loans** (`lend.rs`). A block that a CPU's stash fetches from is in no set while that lasts, so
//! that the CPU's own traffic with it writes no word that others write. It is nobody's own: whoever
//! finds nothing else calls all loans in.
//!
//! **The total.** A counter (`totals.rs`), raised before frames become free and lowered after they
//! were taken: while it says 0, nothing is free. A request for one frame is refused only then
//! (`order-0-succeeds`); while frames are on their way it says more.
//!
//! A request goes to the fullest block of its mobility that can serve it, then opens a block that
//! is free as a whole (unmovable and reclaimable ones the lowest, movable ones the highest), then
//! falls back on a block of another mobility. That becomes the requester's if at least half of it
//! is free, or if it was movable and is spoilt by a request that is not.
//!
//! Administration (ranges that come and go, isolation) is one at a time, by the zone's lock; it
//! meets requests as they meet each other.
//!
//! **Bounds.** A search passes over its sets at most `TRIES` (64) times, each block of them once a
//! pass, and goes round again only because others were faster; it calls loans in at most `CALL_INS`
//! (2) times, and then looks at the lent blocks themselves. A try to take bits out of a word is
//! made again at most as often. What must not be left undone (a free, a promise taken back, a set
//! that has to follow its block) is a change of one word, tried until nobody comes between: each
//! try in vain is another's success. Nothing here waits for anybody. A CPU that stands still keeps
//! from others what it has in hand: frames that it has promised itself, a page block while it opens
//! it, and, above order 0, a block whose state it has changed until it has moved it to its sets.
//!
//! # Invariants
//!
//! - Invariant `counted`: a block's count is the number of its free bits, less promises made and
//!   frees not yet counted. So "all" means that all bits are there and nobody has a claim.
//! - Invariant `run-known`: no run of free frames in a block is larger than its state says; should
//!   it be smaller, the first request that finds out puts it right.
//! - Invariant `indexed`: a block is in exactly the sets that its state asks for.
//! - Invariant `whole-blocks`: blocks are aligned, and each ends where the next begins.
//! - Invariant `one-owner`: a frame is free in its word, or in no word and owned by one.
//!
//! The last holds always, the others where nobody is at work.
//!
//! The wide orders of others (bits over several words, taken back if one is missing) hand out a
//! frame twice when what is taken back was no longer one's own. Here a word is taken whole or not
//! at all, and a whole word belongs to its taker, who alone can put it back.

mod change;
mod check;
mod give;
mod index;
mod lend;
mod look;
mod ranges;
mod state;
mod take;
mod totals;
mod wide;
mod word;

use brickyard_sync::{AtomicU64, AtomicUsize, Ordering};

use crate::isolation::Isolation;
use crate::{
    FRAMES_MOST, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, PlanError, Request,
};
use index::Index;
pub(crate) use lend::{Borrower, Borrows, Loan};
use totals::Total;
use word::{WORD_FRAMES, WORD_ORDER};

/// A block has at most so many words.
const MOST_WORDS: usize = 1 << (Bitmap::BLOCK_ORDERS.1.get() - WORD_ORDER);

/// For each word of a block, some of its frames.
type Masks = [u64; MOST_WORDS];

/// A lock-free store over caller-supplied words.
///
/// Metadata: three bits a frame, 8 bytes a page block, and the summary, 43 bits a block of 512
/// frames: 0.0098 % of memory in frames of 4 KiB.
#[derive(Debug)]
pub struct Bitmap<'m> {
    span: FrameRange,
    max_order: Order,
    // The order of a page block.
    block_order: u8,
    // The frame that the first block starts at; the span may start inside it.
    base: usize,
    // Where the first block lies among those of the largest order, so that what is aligned for the
    // index is aligned for all.
    phase: usize,
    // Per word of frames, see the module.
    free: &'m [AtomicU64],
    inner: &'m [AtomicU64],
    memory: &'m [AtomicU64],
    // Per block: a `BlockState`.
    states: &'m [AtomicU64],
    index: Index<'m>,
    isolation: Isolation,
    totals: Totals,
}

/// The words that every miss of a front writes, apart from those that are only read.
#[derive(Debug)]
#[repr(align(128))]
struct Totals {
    // Frames free or on their way from or to the words, isolated ones included.
    free: Total,
    // About as many of these are isolated.
    isolated: AtomicUsize,
    managed: AtomicUsize,
    // By what a request fell back on, and whether it claimed the block.
    mixed: AtomicUsize,
    claimed: AtomicUsize,
    // Frames that a cache gave back though they were free.
    refused_late: AtomicUsize,
    // Blocks that are lent.
    lent: AtomicUsize,
}

/// How often a request tries again because others came between, in each search and at each word:
/// then it has been unlucky for long enough, and goes on to the next means.
const TRIES: usize = 64;

/// How often a search calls all loans in: each time costs a look at every page block.
const CALL_INS: usize = 2;

/// Whether a request that fell back on a page block of another mobility made it its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    /// The block keeps its mobility: from now on it is mixed.
    No,
    /// The block is the requester's from now on.
    Yes,
}

/// Does a block stay on loan?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// As it is.
    Yes,
    /// No: nobody would know that he has it.
    No,
}

/// What came of raising a block's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raised {
    Counted,
    /// The same, and the block is lent to whoever frees, and was not.
    Lent,
    /// These frames were no longer in use.
    Refused,
}

/// What came of a try to take from one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt<T> {
    Got(T),
    /// Somebody else was faster.
    Lost,
    /// It has not what is wanted.
    Nothing,
}

impl<'m> Bitmap<'m> {
    /// The least and the highest order of a page block: a word, and 32 of them (huge pages of 32
    /// MiB in frames of 16 KiB).
    pub const BLOCK_ORDERS: (Order, Order) = (Order::new(WORD_ORDER), Order::new(11));

    /// The order of page blocks that is used where `wanted` is asked for.
    #[must_use]
    pub const fn block_order(wanted: Order) -> Order {
        let (least, most) = Self::BLOCK_ORDERS;
        if wanted.get() < least.get() {
            least
        } else if wanted.get() > most.get() {
            most
        } else {
            wanted
        }
    }

    const fn blocks_in(span: FrameRange, block_order: u8) -> usize {
        if span.is_empty() {
            return 1;
        }
        ((span.end.number() - 1) >> block_order) - (span.start.number() >> block_order) + 1
    }

    /// Where the block that the span starts in lies among those of the largest order.
    const fn phase_of(span: FrameRange, max_order: Order, block_order: u8) -> usize {
        let groups = max_order.get().saturating_sub(block_order);
        (span.start.number() >> block_order) & ((1 << groups) - 1)
    }

    /// The most page blocks of a store: what four levels of the summary have room for. Those before
    /// the first one count too, up to where a block of the highest order may start.
    pub const BLOCKS_MOST: usize = 1 << 24;

    /// How many words [`Bitmap::new`] needs for a span.
    ///
    /// # Panics
    /// Where [`Bitmap::checked_words`] says that no store is that large; in a constant, that is an
    /// error of the compiler.
    #[must_use]
    pub const fn words(span: FrameRange, max_order: Order, page_block_order: Order) -> usize {
        match Self::checked_words(span, max_order, page_block_order) {
            Ok(words) => words,
            Err(why) => why.refuse(),
        }
    }

    /// The same, for a span that is known at run time only.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`] above [`FRAMES_MOST`], counted from the start of the first page
    /// block; [`PlanError::TooManyBlocks`] above [`Bitmap::BLOCKS_MOST`].
    pub const fn checked_words(
        span: FrameRange,
        max_order: Order,
        page_block_order: Order,
    ) -> Result<usize, PlanError> {
        let block_order = Self::block_order(page_block_order).get();
        let before = span.start.number() & ((1 << block_order) - 1);
        let frames = span.len().saturating_add(before);
        if !span.is_empty() && frames > FRAMES_MOST {
            let most = FRAMES_MOST;
            return Err(PlanError::TooManyFrames { frames, most });
        }
        let blocks = Self::blocks_in(span, block_order);
        let positions = blocks + Self::phase_of(span, max_order, block_order);
        if positions > Self::BLOCKS_MOST {
            return Err(PlanError::TooManyBlocks {
                blocks: positions,
                most: Self::BLOCKS_MOST,
            });
        }
        Ok(3 * (blocks << (block_order - WORD_ORDER))
            + blocks
            + Index::words_for(positions, block_order))
    }

    /// An empty store over `words`, all of which are zero: nothing is memory yet, see
    /// [`Bitmap::add`]. Page blocks have the [order nearest](Bitmap::block_order) to
    /// `page_block_order`.
    ///
    /// # Panics
    /// With fewer words than [`Bitmap::words`] says, and where that panics.
    #[must_use]
    pub const fn new(
        span: FrameRange,
        max_order: Order,
        page_block_order: Order,
        words: &'m [AtomicU64],
    ) -> Self {
        assert!(
            words.len() >= Self::words(span, max_order, page_block_order),
            "as many words as `Bitmap::words` says"
        );
        let block_order = Self::block_order(page_block_order).get();
        let base = (span.start.number() >> block_order) << block_order;
        let blocks = Self::blocks_in(span, block_order);
        let phase = Self::phase_of(span, max_order, block_order);
        let plane = blocks << (block_order - WORD_ORDER);
        let (free, rest) = words.split_at(plane);
        let (inner, rest) = rest.split_at(plane);
        let (memory, rest) = rest.split_at(plane);
        let (states, rest) = rest.split_at(blocks);
        Self {
            span,
            max_order,
            block_order,
            base,
            phase,
            free,
            inner,
            memory,
            states,
            index: Index::new(blocks + phase, block_order, rest),
            isolation: Isolation::new(base),
            totals: Totals {
                free: Total::new(span.len()),
                isolated: AtomicUsize::new(0),
                managed: AtomicUsize::new(0),
                mixed: AtomicUsize::new(0),
                claimed: AtomicUsize::new(0),
                refused_late: AtomicUsize::new(0),
                lent: AtomicUsize::new(0),
            },
        }
    }

    // ---- places ----

    /// The frame's place, counted from the start of the first block.
    #[inline]
    pub(crate) const fn offset(&self, frame: Frame) -> usize {
        // A frame below the first block gets a place behind the last.
        frame.number().wrapping_sub(self.base)
    }

    #[inline]
    pub(crate) const fn frame_at(&self, offset: usize) -> Frame {
        Frame::new(self.base + offset)
    }

    #[inline]
    pub(crate) const fn block_at(&self, offset: usize) -> usize {
        offset >> self.block_order
    }

    /// Frames in a block.
    const fn block_frames(&self) -> usize {
        1 << self.block_order
    }

    /// Words in a block.
    const fn block_words(&self) -> usize {
        1 << (self.block_order - WORD_ORDER)
    }

    /// The number of the first word of a block.
    const fn first_word(&self, block: usize) -> usize {
        block << (self.block_order - WORD_ORDER)
    }

    /// The eighth of its block that a frame lies in.
    #[inline]
    const fn eighth(&self, offset: usize) -> usize {
        offset >> (self.block_order - 3) & 7
    }

    /// The eighths of its block that a word covers, a bit each.
    const fn eighths(&self, word: usize) -> u8 {
        let first = self.eighth(word * WORD_FRAMES);
        let last = self.eighth(word * WORD_FRAMES + WORD_FRAMES - 1);
        (!0_u8 >> (7 - (last - first))) << first
    }

    /// The frames of a range, clipped to a block, as masks of its words.
    fn masks_of(&self, block: usize, range: FrameRange) -> Masks {
        let mut masks = [0; MOST_WORDS];
        let first = self.frame_at(block << self.block_order);
        let clipped = range.intersection(FrameRange::at(first, self.block_frames()));
        if clipped.is_empty() {
            return masks;
        }
        let from = clipped.start.number() - first.number();
        let to = clipped.end.number() - first.number();
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            let start = from.saturating_sub(i * WORD_FRAMES).min(WORD_FRAMES);
            let end = to.saturating_sub(i * WORD_FRAMES).min(WORD_FRAMES);
            if start < end {
                *mask = (!0 >> (WORD_FRAMES - (end - start))) << start;
            }
        }
        masks
    }

    /// The blocks that a range touches.
    fn blocks_of(&self, range: FrameRange) -> core::ops::Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let last = range.end.number() - 1 - self.base;
        self.block_at(self.offset(range.start))..self.block_at(last) + 1
    }
}

impl Bitmap<'_> {
    /// The frames that it has bits for.
    #[inline]
    #[must_use]
    pub const fn span(&self) -> FrameRange {
        self.span
    }

    /// The highest order that it hands out.
    #[inline]
    #[must_use]
    pub const fn max_order(&self) -> Order {
        self.max_order
    }

    /// The order of a page block.
    #[inline]
    #[must_use]
    pub const fn page_block_order(&self) -> Order {
        Order::new(self.block_order)
    }

    /// Frames free and to be had. A hint.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        let free = self.totals.free.frames();
        free.saturating_sub(self.isolated_frames())
    }

    /// As many, or somewhat fewer where counting would cost: what a watermark is held against.
    #[must_use]
    pub fn free_frames_at_least(&self) -> usize {
        let free = self.totals.free.frames_at_least();
        free.saturating_sub(self.isolated_frames())
    }

    /// About how many free frames are isolated; exactly none where nothing is. A free that saw a
    /// range isolated may count its frames after the range has been counted anew, so the counter
    /// alone may say too much for good.
    fn isolated_frames(&self) -> usize {
        if self.isolation.any() {
            // Relaxed: a hint.
            self.totals.isolated.load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Frames that it manages: all that were added, less those reserved. A hint.
    #[must_use]
    pub fn managed_frames(&self) -> usize {
        // Relaxed: a hint.
        self.totals.managed.load(Ordering::Relaxed)
    }

    /// Requests that fell back on a page block of another mobility: without claiming it, and
    /// claiming it.
    #[must_use]
    pub fn fallbacks(&self) -> (u64, u64) {
        // Relaxed: statistics.
        let [mixed, claimed] = [&self.totals.mixed, &self.totals.claimed]
            .map(|counter| counter.load(Ordering::Relaxed));
        (mixed as u64, claimed as u64)
    }

    fn count_fallback(&self, fallback: Option<Claimed>) {
        let counter = match fallback {
            None => return,
            Some(Claimed::No) => &self.totals.mixed,
            Some(Claimed::Yes) => &self.totals.claimed,
        };
        // Relaxed: statistics.
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How many frames came back from caches that were free already: double frees that could not
    /// be noticed at once.
    #[must_use]
    pub fn refused_late(&self) -> usize {
        // Relaxed: statistics.
        self.totals.refused_late.load(Ordering::Relaxed)
    }

    /// The mobility of the page block that `frame` lies in; `Isolate` in an isolated range.
    #[must_use]
    pub fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        if !self.span.contains(frame) {
            return None;
        }
        Some(match self.isolation.contains(frame) {
            true => MigrateType::Isolate,
            false => self.state(self.block_at(self.offset(frame))).kind(),
        })
    }

    /// The page block of `frame` is for this mobility from now on; nothing where it is free as a
    /// whole.
    pub fn dedicate(&self, frame: Frame, mobility: Mobility) {
        if self.span.contains(frame) {
            let block = self.block_at(self.offset(frame));
            self.change(block, |state| {
                let other = state.is_open() && state.kind() != mobility.into();
                other.then(|| state.with_kind(mobility.into()))
            });
        }
    }

    /// Is `frame` in an isolated range? A hint.
    #[must_use]
    pub fn is_isolated(&self, frame: Frame) -> bool {
        self.isolation.contains(frame)
    }

    /// Takes a block for `request`, whose limit is honoured. The cost and the bounds are in the
    /// [module](self).
    pub fn take(&self, request: &Request) -> Option<Frame> {
        if request.order > self.max_order {
            return None;
        }
        if request.order.get() >= self.block_order {
            self.take_wide(request)
        } else {
            self.take_narrow(request)
        }
    }

    /// Fills `out` with single frames, as many as can be had. Returns how many.
    pub fn take_frames(&self, request: &Request, out: &mut [Frame]) -> usize {
        let mut taken = 0;
        self.take_singles(request, out.len(), Loan::None, |offset, mut bits| {
            if bits == !0 {
                let first = self.base + offset;
                for (i, slot) in out[taken..][..WORD_FRAMES].iter_mut().enumerate() {
                    *slot = Frame::new(first + i);
                }
                taken += WORD_FRAMES;
                return;
            }
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                out[taken] = self.frame_at(offset + bit);
                taken += 1;
                bits &= bits - 1;
            }
        });
        taken
    }

    /// Takes back any aligned part of a block in use.
    ///
    /// # Errors
    /// Anything else is refused and changes nothing.
    pub fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if !self.span.contains(frame) {
            return Err(FreeError::NotOwned);
        }
        self.give_block(self.offset(frame), order)
    }

    /// Takes back a range of blocks in use.
    ///
    /// # Errors
    /// What a free of the first frame would be refused with that is not in use; nothing has changed
    /// then.
    pub fn give_range(&self, range: FrameRange) -> Result<(), FreeError> {
        if !self.span.covers(range) {
            return Err(FreeError::NotOwned);
        }
        self.check_in_use(range)?;
        let mut at = range.start;
        while at < range.end
            && let Some((first, state)) = self.block_of(at)
        {
            let block = FrameRange::of_block(first, state.order);
            let part = FrameRange { start: at, ..range };
            at = block.end;
            for (frame, order) in part.intersection(block).blocks(state.order) {
                self.give(frame, order)?;
            }
        }
        Ok(())
    }
}
