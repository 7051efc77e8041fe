//! The bitmap store, the default: one bit per frame says that it is free. The store is lock-free.
//!
//! # How it works
//!
//! **Words.** There are three bits per frame, in three planes of 64-bit words.
//!
//! - `free`: the frame is available.
//! - `inner`: the frame continues the block in use that the frame before it belongs to. So a frame
//!   in use without this bit is the first of its block, and single frames come and go without a
//!   write here.
//! - `memory`: the frame is memory of the zone. Without this bit, `inner` says reserved, else
//!   absent.
//!
//! **States.** A page block has a word of state (`state.rs`). It holds how many frames are free and
//! not promised, the largest run of them, and the mobility that the block is for. A block is *open*
//! if its words tell what is free. Otherwise it is *free* or *huge* as a whole, and goes from one
//! to the other by one compare-and-swap. While a CPU writes its words on the way to or from open,
//! the block is *changing*: nothing can be taken from it, and what is freed into it is refused.
//!
//! **Classes.** A page block also has a byte that says what a free of a single frame must know
//! (`class.rs`).
//!
//! **Promises.** A CPU that wants frames first lowers the block's count by their number. Only then
//! does it take them out of its words. A CPU that frees first puts them into the words, and then
//! raises the count. So a count that says "all" means that all bits are there and no CPU has a
//! claim to any. The block can then be taken as a whole by its state alone, without a look at its
//! words. A promise cannot be kept if other CPUs took the run that was seen. The count is then
//! raised again and the search goes on; those other CPUs have made progress meanwhile.
//!
//! **The summary.** Sets of blocks (`summary.rs`) by mobility and fullness, and by mobility and
//! largest run. They let a request find the fullest block that serves it in a bounded number of
//! steps. So do bits for each 64 blocks that say whether they have an aligned group of blocks that
//! are free as a whole. Every change of a state is followed by the changes of sets that it
//! requires.
//!
//! **Loans** (`loans.rs`). A block that a CPU's stash fetches from is in no set meanwhile. So the
//! CPU's own traffic with it writes no word that other CPUs write. The block is not private: a CPU
//! that finds nothing else calls all loans in.
//!
//! **The reserve** (`reserve.rs`). Up to 32 page blocks are set aside for atomic requests above
//! order 0, and are in no set.
//!
//! **The total.** A counter (`totals.rs`), raised before frames become free and lowered after they
//! were taken. While it says 0, nothing is free. Only then is a request for one frame refused
//! (`order-0-succeeds`). While frames are in transit, it says more than is free. It leaves out page
//! blocks that have an isolated frame, as their states say (`transition.rs`). What is free beside
//! isolated frames lies in the at most eight page blocks where an isolated range begins or ends;
//! they are asked themselves.
//!
//! A request goes to the fullest block of its mobility that can serve it. Next it opens a block
//! that is free as a whole: the lowest for unmovable and reclaimable requests, the highest for
//! movable ones. Last, it falls back on a block of another mobility. That block becomes the
//! requester's if at least half of it is free, or if it was movable and is spoilt by a request that
//! is not.
//!
//! Administration (adding and removing ranges, isolation) is serialized by the zone's lock. It
//! meets requests as they meet each other.
//!
//! **Bounds.** A search makes at most `TRIES` (64) passes over its sets, and tries each of their
//! blocks once per pass. (One for several single frames tries a block up to `TRIES` times, while
//! other CPUs take what was promised to it.) It makes another pass only because other CPUs were
//! faster. It calls loans in at most `CALL_INS` (2) times, and then looks at the lent blocks
//! themselves. Taking bits out of a word is also retried at most `TRIES` times. A group of up to 64
//! page blocks is found, or found to be missing, in 6 words of the summary, however large the
//! memory is; a larger one in 2 words for each 4096 page blocks of it (`summary.rs`). A look at
//! what is set aside reads at most 32 words and as many states.
//!
//! Some work must not be left undone: a free, a promise taken back, a set that has to follow its
//! block. Each of these is a change of one word, retried until no other CPU changes the word
//! meanwhile. Every failed try is another CPU's success. Nothing here waits for another CPU.
//!
//! A CPU that stands still keeps from others only what it has in hand: frames that it has promised
//! itself; a page block while it opens it, sets it aside or gives it up; and, above order 0, a
//! block whose state it has changed until it has moved the block to its sets. If it stands still
//! while it sets or clears a bit for the first or the last of several blocks (`trees.rs`), these
//! blocks are hidden with it, also from orders above 0 only, and until it goes on.
//!
//! # Invariants
//!
//! - Invariant `counted`: a block's count is the number of its free bits, less promises made and
//!   frees not yet counted. So "all" means that all bits are there and no CPU has a claim.
//! - Invariant `run-known`: no run of free frames in a block is larger than its state says. If the
//!   largest is smaller, the first request that finds out corrects the state.
//! - Invariant `indexed`: a block is in exactly the sets that its state requires.
//! - Invariant `whole-blocks`: blocks are aligned, and each ends where the next begins.
//! - Invariant `one-owner`: a frame is free in its word, or is in no word and has one owner.
//!
//! The last one always holds, the others while no CPU is at work.
//!
//! Other allocators serve wide orders by taking bits of several words, and putting them back if one
//! is missing. They hand out a frame twice if what they put back was no longer theirs. Here a word
//! is taken whole or not at all, and a whole word belongs to its taker, who alone can put it back.

mod alloc;
mod bulk;
mod check;
mod class;
mod free;
mod large_blocks;
mod loans;
mod lookup;
mod ranges;
mod reserve;
mod search;
mod state;
mod summary;
mod totals;
mod transition;
mod trees;
mod word;

use brickyard_sync::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::isolation::Isolation;
use crate::{
    FRAMES_MOST, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, PlanError, Request,
};
pub(crate) use class::SPARSE;
pub(crate) use free::Sorter;
pub(crate) use loans::{Borrower, Borrows, Loan};
pub use ranges::AT_ONCE;
pub(crate) use ranges::{Leaves, Was};
use reserve::Reserve;
pub use reserve::SetAside;
use summary::Index;
use totals::{NEIGHBOURS, Total};
use trees::Trees;
use word::{WORD_FRAMES, WORD_ORDER};

/// The most words that a block has.
const MOST_WORDS: usize = 1 << (Bitmap::BLOCK_ORDERS.1.get() - WORD_ORDER);

/// Some of the frames of a block, as a mask for each of its words.
type Masks = [u64; MOST_WORDS];

/// Returns the number of frames in masks.
fn frames_in(masks: &Masks) -> usize {
    masks.iter().map(|mask| mask.count_ones() as usize).sum()
}

/// A lock-free store over caller-supplied words.
///
/// Metadata: three bits per frame, 9 bytes per page block, and the summary, 43 bits per block of
/// 512 frames. That is 0.0098 % of memory in frames of 4 KiB.
#[derive(Debug)]
pub struct Bitmap<'m> {
    span: FrameRange,
    max_order: Order,
    // The order of a page block.
    block_order: u8,
    // The frame that the first block starts at. The span may start inside that block.
    base: usize,
    // The position of the first block among those of the largest order, so that what is aligned for
    // the index is aligned for all.
    phase: usize,
    // Per word of frames, see the module.
    free: &'m [AtomicU64],
    inner: &'m [AtomicU64],
    memory: &'m [AtomicU64],
    // Per block: a `BlockState`, and what a free must know.
    states: &'m [AtomicU64],
    classes: &'m [AtomicU8],
    index: Index<'m>,
    // The cache lines of states in which a block is on loan.
    lent: Trees<'m>,
    isolation: Isolation,
    // Beside it, since all three are seldom written.
    reserve: Reserve,
    // The ranges that are being removed or reserved, kept as isolated ones are.
    leaving: Isolation,
    totals: Totals,
}

/// The words that every miss of a front writes, apart from those that are only read.
#[derive(Debug)]
#[repr(align(128))]
struct Totals {
    // Frames that are free, or in transit from or to the words, in page blocks that have no
    // isolated frame.
    free: Total,
    managed: AtomicUsize,
    // Requests that fell back on another mobility, by whether they claimed the block.
    mixed: AtomicUsize,
    claimed: AtomicUsize,
    // Frames that a cache gave back although they were free.
    refused_late: AtomicUsize,
    // Blocks that are on loan.
    lent: AtomicUsize,
}

/// How often a request tries again because of other CPUs, in each search and at each word. After so
/// much bad luck it goes on to the next step.
const TRIES: usize = 64;

/// How often a search calls all loans in. Each time costs a look at eight page blocks for each
/// loan.
const CALL_INS: usize = 2;

/// Whether a request that fell back on a page block of another mobility claimed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    /// The block keeps its mobility, and is mixed from now on.
    No,
    /// The block is the requester's from now on.
    Yes,
}

/// Whether a block stays on loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoanKept {
    /// If it is on loan, it stays so.
    Yes,
    /// It does not: no CPU would know that it has the loan.
    No,
}

/// The outcome of trying to take from one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt<T> {
    Got(T),
    /// The block gave all that it had, and more is wanted.
    More,
    /// Another CPU was faster.
    Lost,
    /// The block lacks what is wanted.
    Nothing,
}

/// What happened to the attempts of a search that have not got all that is wanted.
#[derive(Debug, Clone, Copy, Default)]
struct Luck {
    /// Something was got.
    more: bool,
    /// Something was lost to another CPU.
    lost: bool,
    /// Whatever is got is enough.
    content: bool,
}

impl<'m> Bitmap<'m> {
    /// The lowest and the highest order of a page block: one word, and 32 words (huge pages of 32
    /// MiB in frames of 16 KiB).
    pub const BLOCK_ORDERS: (Order, Order) = (Order::new(WORD_ORDER), Order::new(11));

    /// Returns the order of page blocks that is used if `wanted` is requested.
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

    /// Returns the order, in page blocks, of the largest group of page blocks.
    const fn groups_of(max_order: Order, block_order: u8) -> u8 {
        max_order.get().saturating_sub(block_order)
    }

    /// Returns the position of the span's first block among those of the largest order.
    const fn phase_of(span: FrameRange, max_order: Order, block_order: u8) -> usize {
        let groups = Self::groups_of(max_order, block_order);
        (span.start.number() >> block_order) & ((1 << groups) - 1)
    }

    /// The most page blocks of a store: what four levels of the summary have room for. Blocks
    /// before the first one count too, back to where a block of the highest order may start.
    pub const BLOCKS_MOST: usize = 1 << 24;

    /// Returns the number of words that [`Bitmap::new`] needs for a span.
    ///
    /// # Panics
    /// Panics if [`Bitmap::checked_words`] says that no store is that large. In a constant, that is
    /// a compile error.
    #[must_use]
    pub const fn words(span: FrameRange, max_order: Order, page_block_order: Order) -> usize {
        match Self::checked_words(span, max_order, page_block_order) {
            Ok(words) => words,
            Err(why) => why.refuse(),
        }
    }

    /// Returns the number of words that [`Bitmap::new`] needs for a span that is known only at run
    /// time.
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
        let groups = Self::groups_of(max_order, block_order);
        Ok(3 * (blocks << (block_order - WORD_ORDER))
            + blocks
            + Index::words_for(positions, block_order, groups)
            + Trees::words_for(blocks.div_ceil(NEIGHBOURS), 1))
    }

    /// Returns the number of classes that [`Bitmap::new`] needs for a span: a byte for each page
    /// block.
    #[must_use]
    pub const fn classes(span: FrameRange, page_block_order: Order) -> usize {
        Self::blocks_in(span, Self::block_order(page_block_order).get())
    }

    /// Returns an empty store over `words` and `classes`, all of which must be zero. Nothing is
    /// memory yet, see [`Bitmap::add`]. Page blocks have the [order nearest](Bitmap::block_order)
    /// to `page_block_order`. The words should begin at the start of a cache line.
    ///
    /// # Panics
    /// Panics if there are fewer words than [`Bitmap::words`] says, or fewer classes than
    /// [`Bitmap::classes`] says, and if `words` panics.
    #[inline(always)]
    #[must_use]
    pub const fn new(
        span: FrameRange,
        max_order: Order,
        page_block_order: Order,
        words: &'m [AtomicU64],
        classes: &'m [AtomicU8],
    ) -> Self {
        assert!(
            words.len() >= Self::words(span, max_order, page_block_order),
            "as many words as `Bitmap::words` says"
        );
        assert!(
            classes.len() >= Self::classes(span, page_block_order),
            "as many classes as `Bitmap::classes` says"
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
        let (positions, groups) = (blocks + phase, Self::groups_of(max_order, block_order));
        let (sets, lent) = rest.split_at(Index::words_for(positions, block_order, groups));
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
            classes: classes.split_at(blocks).0,
            index: Index::new(positions, block_order, groups, sets),
            lent: Trees::new(blocks.div_ceil(NEIGHBOURS), 1, lent),
            isolation: Isolation::new(base),
            reserve: Reserve::new(),
            leaving: Isolation::new(base),
            totals: Totals {
                free: Total::new(span.len()),
                managed: AtomicUsize::new(0),
                mixed: AtomicUsize::new(0),
                claimed: AtomicUsize::new(0),
                refused_late: AtomicUsize::new(0),
                lent: AtomicUsize::new(0),
            },
        }
    }

    // ---- places ----

    /// Returns the frame's position, counted from the start of the first block.
    #[inline]
    pub(crate) const fn offset(&self, frame: Frame) -> usize {
        // A frame below the first block gets a position after the last.
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

    /// Returns a block's first frame.
    const fn start_of(&self, block: usize) -> Frame {
        self.frame_at(block << self.block_order)
    }

    /// Returns the frames of a block.
    const fn frames_of(&self, block: usize) -> FrameRange {
        FrameRange::at(self.start_of(block), self.block_frames())
    }

    /// Returns the number of frames in a block.
    const fn block_frames(&self) -> usize {
        1 << self.block_order
    }

    /// Returns the number of words in a block.
    const fn block_words(&self) -> usize {
        1 << (self.block_order - WORD_ORDER)
    }

    /// Returns the number of a block's first word.
    const fn first_word(&self, block: usize) -> usize {
        block << (self.block_order - WORD_ORDER)
    }

    /// Returns the eighth of its block that a frame lies in.
    #[inline]
    const fn eighth(&self, offset: usize) -> usize {
        offset >> (self.block_order - 3) & 7
    }

    /// Returns the eighths of its block that a word covers, one bit each.
    const fn eighths(&self, word: usize) -> u8 {
        let first = self.eighth(word * WORD_FRAMES);
        let last = self.eighth(word * WORD_FRAMES + WORD_FRAMES - 1);
        (!0_u8 >> (7 - (last - first))) << first
    }

    /// Writes the frames of a range, clipped to a block, as masks of its words. In place: masks are
    /// large for a kernel's stack, and a result would be copied.
    fn write_masks(&self, masks: &mut Masks, block: usize, range: FrameRange) {
        let word = self.first_word(block);
        for (i, mask) in masks[..self.block_words()].iter_mut().enumerate() {
            *mask = self.mask_of(word + i, range);
        }
    }

    /// Returns the frames of a range, clipped to a word, as a mask.
    fn mask_of(&self, word: usize, range: FrameRange) -> u64 {
        let first = self.frame_at(word * WORD_FRAMES).number();
        let start = range.start.number().saturating_sub(first).min(WORD_FRAMES);
        let end = range.end.number().saturating_sub(first).min(WORD_FRAMES);
        match start < end {
            true => (!0 >> (WORD_FRAMES - (end - start))) << start,
            false => 0,
        }
    }

    /// Returns the blocks that a range touches.
    fn blocks_of(&self, range: FrameRange) -> core::ops::Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let last = range.end.number() - 1 - self.base;
        self.block_at(self.offset(range.start))..self.block_at(last) + 1
    }
}

impl Bitmap<'_> {
    /// Returns the frames that the store has bits for.
    #[inline]
    #[must_use]
    pub const fn span(&self) -> FrameRange {
        self.span
    }

    /// Returns the highest order that the store hands out.
    #[inline]
    #[must_use]
    pub const fn max_order(&self) -> Order {
        self.max_order
    }

    /// Returns the order of a page block.
    #[inline]
    #[must_use]
    pub const fn page_block_order(&self) -> Order {
        Order::new(self.block_order)
    }

    /// Returns true if blocks of this order are page blocks.
    #[inline]
    pub(crate) const fn is_page_block(&self, order: Order) -> bool {
        order.get() == self.block_order
    }

    /// Returns the number of frames that are free and available. A hint.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.totals.free.frames() + self.free_beside_isolated()
    }

    /// Returns a number that is unchanged if nothing has become free or been taken meanwhile.
    pub(crate) fn changes(&self) -> usize {
        self.totals.free.changes() as usize
    }

    /// Returns the number of free frames, or somewhat less where counting would cost: the number
    /// that watermarks are compared with.
    #[must_use]
    pub fn free_frames_at_least(&self) -> usize {
        self.totals.free.frames_at_least()
    }

    /// Returns the number of managed frames: all that were added, less those reserved. A hint.
    #[must_use]
    pub fn managed_frames(&self) -> usize {
        // Relaxed: a hint.
        self.totals.managed.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that fell back on a page block of another mobility: first
    /// those that did not claim the block, then those that did.
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

    /// Returns the number of frames that came back from caches but were already free: double frees
    /// that could not be noticed at once.
    #[must_use]
    pub fn refused_late(&self) -> usize {
        // Relaxed: statistics.
        self.totals.refused_late.load(Ordering::Relaxed)
    }

    /// Returns the mobility of the page block that contains `frame`; `HighAtomic` if it is set
    /// aside, and `Isolate` in an isolated range. A page block of which nothing is memory or
    /// reserved has none.
    #[must_use]
    pub fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        if !self.span.contains(frame) {
            return None;
        }
        let block = self.block_at(self.offset(frame));
        let state = self.state(block);
        let first = self.first_word(block);
        let mut words = first..first + self.block_words();
        let exists = |word: usize| self.memory_bits(word) | self.inner_bits(word) != 0;
        (state.is_solid() || words.any(exists)).then(|| match self.isolation.contains(frame) {
            true => MigrateType::Isolate,
            false => state.shown_kind(),
        })
    }

    /// Dedicates the page block of `frame` to this mobility. Does nothing if the block is free as a
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

    /// Returns true if `frame` lies in an isolated range. A hint.
    #[must_use]
    pub fn is_isolated(&self, frame: Frame) -> bool {
        self.isolation.contains(frame)
    }

    /// Takes a block for `request`, within its limit. For cost and bounds, see the [module](self).
    #[inline(never)]
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

    /// Fills `out` with as many single frames as are available without taking from blocks of other
    /// mobilities, or else with some of those. Returns the number of frames taken; 0 if there are
    /// none.
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
    /// A free of anything else is refused and changes nothing.
    pub fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if !self.span.contains(frame) {
            return Err(FreeError::NotOwned);
        }
        self.give_block(self.offset(frame), order)
    }

    /// Takes back a range of blocks in use. Holds a value of `pin` for each block.
    ///
    /// # Errors
    /// The error that a free of the first frame not in use would return. Nothing has changed then.
    pub fn give_range<G>(&self, range: FrameRange, pin: &impl Fn() -> G) -> Result<(), FreeError> {
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
                let _pinned = pin();
                self.give(frame, order)?;
            }
        }
        Ok(())
    }
}
