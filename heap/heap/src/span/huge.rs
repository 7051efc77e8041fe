//! Blocks of a span that come as huge pages (`huge.rs` of the heap): the first touch of one of its
//! pages gives memory to all 512. The first bytes of a span are small pages in any case, unless the
//! system makes all memory of huge ones: a small program would use one of them for little.
//!
//! A page that comes with others makes them **idle**: they are free, and have memory. Runs look for
//! idle pages first (`reuse.rs`), and what is idle has limits (`surplus.rs`), with two differences:
//!
//! - To give back a part of a huge page divides it. What is needed there again comes as small
//!   pages, with a fault each, and the kernel's own thread that makes huge pages of small ones
//!   (khugepaged) might undo it. So huge pages go back whole, as far as limits allow.
//! - The idle pages of a huge page that is partly in use are **bound**. An eighth of what is in use
//!   may be, or 16 MiB. A page that would bind more as it comes is made one of small pages first.
//!   If frees bind more, those are divided of which a quarter or more is idle; in a heap at rest,
//!   those of which a sixteenth is.
//!
//! A huge page that was divided is a block of small pages, until all of it is free and given back.
//! The kernel is told so (`MADV_NOHUGEPAGE`), for a limited number of them, since each may need two
//! more mappings. What is given back of it no longer counts as the process's memory at once; the
//! kernel has it when it next looks for memory (deferred splitting).
//!
//! For each group of 512 pages a word has the number of its idle pages, and whether it was divided.
//!
//! Invariant `huge-from-the-start`: whether a page is behind `from` is settled before a zone
//! has it. So what `bound` and `whole` count of a group is always what its word says.

use core::ops::Range;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use brickyard::{Context, Frame, Mobility, Order};

use crate::huge::{Huge, huge};
use crate::surplus;

use super::Span;
use super::layout::GROUP;

/// So many of a span's first bytes are small pages, where huge ones have to be asked for.
const SMALL_BYTES: usize = 32 << 20;

/// So many are in any case.
const FEW_BYTES: usize = 2 << 20;

/// Of a huge page that is divided, one part in so many is idle.
const SPARSE_PART: usize = 4;

/// In a heap at rest, one part in so many: fewer pages are not worth it.
const REST_PART: usize = 16;

/// The kernel is told of so many divided blocks: a process may have 65,530 mappings.
const TOLD: usize = 8192;

/// If no block could be divided, it is tried again when so many pages more or less are bound.
const MORE_BOUND: usize = 4 * GROUP;

/// The bit of a group's word that says that its pages come one by one.
const IS_DIVIDED: u16 = 1 << 15;

/// The bit that says that the kernel was told so.
const IS_TOLD: u16 = 1 << 14;

const _: () = assert!((GROUP as u16) < IS_TOLD);

/// What is counted of huge pages.
#[derive(Debug)]
pub(super) struct HugeCounts {
    /// From this page on memory comes in huge pages.
    from: AtomicUsize,
    /// Idle pages of those that are partly in use.
    bound: AtomicUsize,
    /// Idle pages of those that are not.
    whole: AtomicUsize,
    /// The number of blocks that the kernel was told to make of small pages.
    told: AtomicUsize,
    /// So much was bound when none could be divided; 0: that is not so.
    tried_at: AtomicUsize,
}

/// What the word of a group says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// Its pages come one by one.
    Small,
    /// They come together; so many of them are idle.
    Huge(usize),
}

impl HugeCounts {
    pub(super) const fn new() -> Self {
        Self {
            from: AtomicUsize::new(usize::MAX),
            bound: AtomicUsize::new(0),
            whole: AtomicUsize::new(0),
            told: AtomicUsize::new(0),
            tried_at: AtomicUsize::new(0),
        }
    }

    // Relaxed, in all of this file. `from` and what a group is made of at first are written before
    // its zone has it (`huge-from-the-start`), and who owns pages has acquired that through the
    // zone; others take both for hints. Counters are kept exact by changes of single words; while
    // another thread is between two of them, they may wrap around, below nothing.

    /// Returns true if any memory comes in huge pages.
    pub(super) fn are_any(&self) -> bool {
        self.from.load(Ordering::Relaxed) != usize::MAX
    }

    /// Returns the idle pages of huge ones that are partly in use.
    pub(super) fn bound(&self) -> usize {
        at_least_none(self.bound.load(Ordering::Relaxed))
    }

    /// Returns the idle pages of huge ones that are free.
    pub(super) fn whole(&self) -> usize {
        at_least_none(self.whole.load(Ordering::Relaxed))
    }

    #[cfg(test)]
    pub(super) fn told(&self) -> usize {
        self.told.load(Ordering::Relaxed)
    }

    /// Accounts that the idle pages of a huge one have changed from `was` to `is`.
    fn change(&self, was: usize, is: usize) {
        let in_both = |idle: usize| if idle == GROUP { [0, idle] } else { [idle, 0] };
        let words = [&self.bound, &self.whole];
        for ((word, was), is) in words.into_iter().zip(in_both(was)).zip(in_both(is)) {
            if was != is {
                let _ = word.fetch_add(is.wrapping_sub(was), Ordering::Relaxed);
            }
        }
    }
}

/// Reads a number that may have wrapped around as none.
const fn at_least_none(pages: usize) -> usize {
    if pages > isize::MAX as usize {
        0
    } else {
        pages
    }
}

/// Calls `each` for every group in which these pages lie, with their number.
fn by_groups(page: usize, pages: usize, mut each: impl FnMut(usize, usize)) {
    let (mut at, end) = (page, page + pages);
    while at < end {
        let group = at / GROUP;
        let upto = end.min((group + 1) * GROUP);
        each(group, upto - at);
        at = upto;
    }
}

impl Span {
    /// Returns true if a page came in a huge one at first.
    pub(super) fn is_from_huge(&self, page: usize) -> bool {
        page >= self.counts.huge.from.load(Ordering::Relaxed)
    }

    fn word_of(&self, group: usize) -> &AtomicU16 {
        let word = self.tables.at(self.layout.idle_in_at).cast::<AtomicU16>();
        // SAFETY: the tables have such a word for each group, initially zero: no page was idle.
        unsafe { word.add(group).as_ref() }
    }

    /// Returns what the block of a page is made of.
    pub(super) fn block_of(&self, page: usize) -> Block {
        if !self.is_from_huge(page) {
            return Block::Small;
        }
        match self.word_of(page / GROUP).load(Ordering::Relaxed) {
            word if word & IS_DIVIDED != 0 => Block::Small,
            idle => Block::Huge(usize::from(idle)),
        }
    }

    fn huge(&self) -> Huge {
        self.huge.unwrap_or_else(huge)
    }

    /// Asks for huge pages for what a zone is about to get, if there are any. The lock of those
    /// that make the span grow must be held.
    pub(super) fn want_huge(&self, pages: &Range<usize>) {
        let shift = self.layout.page_shift;
        let part = pages.start << shift..pages.end << shift;
        let is_huge = match self.huge() {
            Huge::Never => false,
            Huge::Unwanted => {
                // Whatever the system says to that, it is memory.
                let _ = self.region.want_huge(part, false);
                false
            }
            Huge::Asked => part.start >= SMALL_BYTES && self.region.want_huge(part, true).is_ok(),
            // They are asked for all the same, so that it is all one mapping again when some of
            // them were small for a while. (So the system may compact memory for one when it is
            // touched, as `defrag` beside that file says.)
            Huge::Usual => part.start >= FEW_BYTES && self.region.want_huge(part, true).is_ok(),
        };
        let from = &self.counts.huge.from;
        if is_huge {
            let _ = from.fetch_min(pages.start, Ordering::Relaxed);
        } else if self.counts.huge.are_any() {
            for group in pages.start / GROUP..pages.end.div_ceil(GROUP) {
                self.word_of(group).store(IS_DIVIDED, Ordering::Relaxed);
            }
        }
    }

    /// Called when pages have been taken that had no memory: the first touch of one of them gives
    /// it to the rest of their huge page. If so much may be bound, marks that as idle, block by
    /// block, where all of a block is free; otherwise makes it one of small pages. Takes up to 18
    /// blocks for a moment, one after the other, unless another thread gives memory back: then what
    /// came does not count until it has been in use.
    pub(super) fn came_with_others(&self, page: usize, pages: usize) {
        let first = page / GROUP * GROUP;
        // `None` where it is more than one.
        let Some(behind) = (first + GROUP).checked_sub(page + pages) else {
            return;
        };
        if self.block_of(page) == Block::Small {
            return;
        }
        // As others who hold free pages for a moment: see `find_behind_release`.
        let Some(_held) = self.counts.releasing.try_lock() else {
            return;
        };
        let rest = GROUP - pages;
        let is_new = self.block_of(page) == Block::Huge(0);
        let may_come = self.huge() != Huge::Never && self.may_be_bound(rest);
        if is_new && rest > 0 && !may_come && self.divide(first) {
            return;
        }
        let (mut at, mut left) = (page + pages, behind);
        while left > 0 {
            let order = at.trailing_zeros().min(left.ilog2());
            self.mark_free_as_idle(at, order);
            at += 1 << order;
            left -= 1 << order;
        }
        let (mut at, mut left) = (page, page - first);
        while left > 0 {
            let order = at.trailing_zeros().min(left.ilog2());
            at -= 1 << order;
            left -= 1 << order;
            self.mark_free_as_idle(at, order);
        }
    }

    /// Marks a block as idle, if all of it is free.
    fn mark_free_as_idle(&self, page: usize, order: u32) {
        let (frame, order) = (Frame::new(page), Order::new(order as u8));
        let request = Self::request(order, Mobility::Movable, Context::Atomic);
        if self.zone_of(page).alloc_at(frame, &request).is_err() {
            return;
        }
        // Some may be marked already.
        let _ = self.no_longer_idle(page, order.frames());
        self.mark_idle(page, order.frames());
        let freed = self.zone_of(page).free(frame, order);
        debug_assert!(freed.is_ok(), "taken a moment ago: {freed:?}");
    }

    /// Accounts pages whose idle bits have been set.
    pub(super) fn more_idle_in(&self, page: usize, pages: usize) {
        by_groups(page, pages, |group, pages| {
            if !self.is_from_huge(group * GROUP) {
                return;
            }
            let was = self
                .word_of(group)
                .fetch_add(pages as u16, Ordering::Relaxed);
            if was & IS_DIVIDED == 0 {
                let was = usize::from(was);
                self.counts.huge.change(was, was + pages);
            }
        });
    }

    /// Accounts pages of a group whose idle bits have been cleared.
    pub(super) fn fewer_idle_in(&self, page: usize, pages: usize) {
        if !self.is_from_huge(page) {
            return;
        }
        let word = self.word_of(page / GROUP);
        let was = word.fetch_sub(pages as u16, Ordering::Relaxed);
        if was & IS_DIVIDED == 0 {
            let was = usize::from(was);
            self.counts.huge.change(was, was - pages);
        }
    }

    /// Makes a block of small pages of a huge one. False if the kernel was not told so: then it may
    /// make a huge page of it all the same. The lock of those that release must be held.
    pub(super) fn divide(&self, page: usize) -> bool {
        let group = page / GROUP;
        let word = self.word_of(group);
        let was = word.fetch_or(IS_DIVIDED, Ordering::Relaxed);
        if was & IS_DIVIDED != 0 {
            return was & IS_TOLD != 0;
        }
        let counts = &self.counts.huge;
        counts.change(usize::from(was), 0);
        if self.huge() == Huge::Never {
            // There are none any more.
            return true;
        }
        // Changed under the lock only.
        let told = counts.told.load(Ordering::Relaxed);
        if told >= TOLD || self.region.want_huge(self.bytes_of(group), false).is_err() {
            return false;
        }
        counts.told.store(told + 1, Ordering::Relaxed);
        let _ = word.fetch_or(IS_TOLD, Ordering::Relaxed);
        true
    }

    /// Makes blocks that were divided huge pages again: of pages that have been given back, and
    /// belong to the caller for the moment. The lock of those that release must be held.
    pub(super) fn unite(&self, page: usize, pages: usize) {
        for group in page.div_ceil(GROUP)..(page + pages) / GROUP {
            if !self.is_from_huge(group * GROUP) {
                continue;
            }
            let word = self.word_of(group);
            let was = word.load(Ordering::Relaxed);
            if was & IS_DIVIDED == 0 {
                continue;
            }
            // If that is refused, or if there are none any more, they go on coming one by one.
            if self.huge() == Huge::Never
                || self.region.want_huge(self.bytes_of(group), true).is_err()
            {
                continue;
            }
            if was & IS_TOLD != 0 {
                let told = &self.counts.huge.told;
                told.store(told.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
            }
            let was = word.fetch_and(!(IS_DIVIDED | IS_TOLD), Ordering::Relaxed);
            let idle = was & !(IS_DIVIDED | IS_TOLD);
            self.counts.huge.change(0, usize::from(idle));
        }
    }

    fn bytes_of(&self, group: usize) -> Range<usize> {
        let shift = self.layout.page_shift;
        (group * GROUP) << shift..((group + 1) * GROUP) << shift
    }

    /// Returns true if so many pages more may be bound.
    fn may_be_bound(&self, pages: usize) -> bool {
        let shift = self.layout.page_shift;
        let least = surplus::least(self.counted_pages() << shift);
        (self.counts.huge.bound() + pages) << shift <= least
    }

    /// Returns true if so much is bound that huge pages have to be divided, unless none could be a
    /// moment ago, when about as much was bound.
    pub(super) fn is_much_bound(&self) -> bool {
        let (bound, tried_at) = (
            self.counts.huge.bound(),
            self.counts.huge.tried_at.load(Ordering::Relaxed),
        );
        !self.may_be_bound(0) && (tried_at == 0 || bound.abs_diff(tried_at) >= MORE_BOUND)
    }

    /// Notes that nothing could be divided; `false`: it may be tried again.
    pub(super) fn nothing_to_divide(&self, is_so: bool) {
        let at = match is_so {
            true => self.counts.huge.bound().max(1),
            false => 0,
        };
        self.counts.huge.tried_at.store(at, Ordering::Relaxed);
    }

    /// Returns true if a block with so many idle pages is divided, in a heap at rest or not.
    pub(super) const fn is_sparse(idle: usize, is_at_rest: bool) -> bool {
        let part = if is_at_rest { REST_PART } else { SPARSE_PART };
        idle < GROUP && idle * part >= GROUP
    }
}
