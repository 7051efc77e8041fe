//! Which pages are free, which of these may have memory, and how it goes back to the system.
//!
//! Invariant `idle-bit`: the bit of a page is set if the page is free and has been in use since its
//! memory was last given back. It is clear while the page is in use. It is set before the page
//! becomes free, and cleared after it has been taken. So a thread that takes free pages to release
//! them can rely on the bits of the pages that it gets; it does not get the others. A free page
//! whose bit is clear is zero: it has never been written, or its memory has been given back since.
//!
//! A second bit says where runs are looked for (`reuse.rs`): in what has been in use, or lies
//! beside a run in the block that it was cut from. It is set and cleared in the same way, but stays
//! when memory is given back.
//!
//! Memory goes back from the end of the span on, since runs are looked for from its beginning on.
//!
//! A thread that releases takes free blocks for a moment, a few at a time, exactly where the bits
//! say that they lie (`Zone::alloc_at`). A lost race costs nothing. A request that finds nothing
//! meanwhile waits for that thread (`Span::find_behind_release`).
//!
//! To give a page back takes a third of a microsecond, and to have it again two. So a request or a
//! free gives back some dozens of pages at most, and the next ones go on; a free that leaves far
//! too much idle gives twice as many as it has freed.

use core::sync::atomic::{AtomicU64, Ordering};

use brickyard::{Context, Frame, Mobility, Order, Platform};
use brickyard_arena::{Release, Threads};

use crate::huge::{Huge, huge};
use crate::surplus;

use super::layout::WORD;
use super::{Contents, RUN_BYTES_MAX, Span};

/// The bytes that the background thread gives back at a time.
const PIECE_BYTES: usize = 16 << 20;

/// In passing, a thread looks at so many blocks of 2 MiB for what it gives back.
const BLOCKS_A_STEP: usize = 4096;

/// And gives one warm page in so many to the zones.
const COOLED_PART: usize = 8;

/// But so many pages at most.
const COOLED_MOST: usize = 2048;

/// A request or a free releases so many pages, in one piece, if it releases any: a call of the
/// system for each would cost more than the pages.
const LEAST_COST: usize = 64;

/// A call costs as much as so many pages.
const PAGES_A_CALL: usize = 4;

/// Frees give back twice as much as they free where the idle bytes exceed what is allowed by more
/// than one part in so many.
const FAR_PART: usize = 8;

/// It looks at so many blocks of 2 MiB at most.
const BLOCKS_SEARCHED: usize = 512;

/// How much is released.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// So many bytes stay idle.
    enough: usize,
    /// At most so many pages are released, or a few more. A call of the system counts as
    /// [`PAGES_A_CALL`].
    cost: usize,
    /// At most so many blocks of 2 MiB are looked at.
    blocks: usize,
}

impl Limit {
    /// All, but for so many bytes.
    const fn all_but(enough: usize) -> Self {
        Self {
            enough,
            cost: usize::MAX,
            blocks: usize::MAX,
        }
    }
}

/// What is known of so many pages as a word has bits.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Bits {
    /// Those that are free and may have memory.
    pub(super) idle: AtomicU64,
    /// Those that are free, as far as runs are looked for in them.
    pub(super) free: AtomicU64,
}

/// Returns the mask of bits `from..to` of a word.
const fn bits_of(from: usize, to: usize) -> u64 {
    let below = if to == WORD { !0 } else { (1 << to) - 1 };
    below & !((1 << from) - 1)
}

/// Calls `each` for every word in which these pages have bits, with the mask of the bits.
fn by_words(page: usize, pages: usize, mut each: impl FnMut(usize, u64)) {
    let end = page + pages;
    let mut at = page;
    while at < end {
        let word = at / WORD;
        let upto = end.min((word + 1) * WORD);
        each(word, bits_of(at % WORD, upto - word * WORD));
        at = upto;
    }
}

/// Consecutive free blocks that are held for a moment.
struct HeldPages<'s> {
    span: &'s Span,
    first: usize,
    pages: usize,
    /// The number of pages that were idle.
    idle: usize,
    blocks: [(u32, u8); HeldPages::BLOCKS],
    count: usize,
    released: usize,
    /// How many calls of the system were made.
    calls: usize,
}

impl<'s> HeldPages<'s> {
    const BLOCKS: usize = 32;
    /// At most so many pages are held at once.
    const PAGES: usize = 1024;

    const fn new(span: &'s Span) -> Self {
        Self {
            span,
            first: 0,
            pages: 0,
            idle: 0,
            blocks: [(0, 0); Self::BLOCKS],
            count: 0,
            released: 0,
            calls: 0,
        }
    }

    /// Returns what this takes, in pages.
    const fn cost(&self) -> usize {
        let calls = self.calls + (self.count > 0) as usize;
        self.released + self.idle + calls * PAGES_A_CALL
    }

    /// Takes the free block at `page`, of which `idle` pages are idle. False if it is no longer
    /// free.
    fn take(&mut self, (page, order): (usize, u8), idle: usize) -> bool {
        let order = Order::new(order);
        let is_full = self.count == Self::BLOCKS || self.pages + order.frames() > Self::PAGES;
        if is_full || self.first + self.pages != page {
            self.let_go();
        }
        let request = Span::request(order, Mobility::Movable, Context::MaySleep);
        if self
            .span
            .zone_of(page)
            .alloc_at(Frame::new(page), &request)
            .is_err()
        {
            return false;
        }
        if self.count == 0 {
            self.first = page;
            self.pages = 0;
        }
        self.blocks[self.count] = (page as u32, order.get());
        self.count += 1;
        self.pages += order.frames();
        self.idle += idle;
        true
    }

    /// Gives the memory of what is held back to the system, and the pages to their zones.
    fn let_go(&mut self) {
        if self.count == 0 {
            return;
        }
        let shift = self.span.layout.page_shift;
        let part = self.first << shift..(self.first + self.pages) << shift;
        // SAFETY: these pages belong to this caller for the moment, and nobody has anything in
        // them.
        let done = unsafe { self.span.region.release(part, Release::Now) };
        self.calls += 1;
        if done.is_ok() {
            self.released += self.span.no_longer_idle(self.first, self.pages);
        } else {
            // Locked memory stays (on Linux before 5.18), and so do its bits. Who comes next goes
            // on before it.
            let before = (self.first / self.span.largest().frames()).saturating_sub(1);
            self.span.counts.cursor.store(before, Ordering::Relaxed);
        }
        for &(page, order) in &self.blocks[..self.count] {
            let page = page as usize;
            let freed = self
                .span
                .zone_of(page)
                .free(Frame::new(page), Order::new(order));
            debug_assert!(freed.is_ok(), "taken a moment ago: {freed:?}");
        }
        self.count = 0;
        self.pages = 0;
        self.idle = 0;
    }
}

impl Span {
    /// Returns what is known of the pages of a word.
    pub(super) fn bits(&self, word: usize) -> &Bits {
        let first = self.tables.at(self.layout.bits_at).cast::<Bits>();
        // SAFETY: the tables have two bits for each page, initially zero.
        unsafe { first.add(word).as_ref() }
    }

    /// Returns how many of these pages are idle. A hint, as they are others'.
    pub(super) fn idle_among(&self, page: usize, pages: usize) -> usize {
        let mut idle = 0;
        by_words(page, pages, |word, mask| {
            // Relaxed: a hint.
            let bits = self.bits(word).idle.load(Ordering::Relaxed);
            idle += (bits & mask).count_ones() as usize;
        });
        idle
    }

    /// Accounts pages in use, or warm ones, that are about to become free.
    pub(super) fn now_idle(&self, page: usize, pages: usize) {
        self.mark_idle(page, pages);
        let _ = self.counts.in_use.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Accounts pages that are about to become free, and were not in use.
    pub(super) fn mark_idle(&self, page: usize, pages: usize) {
        by_words(page, pages, |word, mask| {
            // Relaxed, here and below: the zone decides whether a page is free, and a thread that
            // gets it from the zone sees this store too.
            let _ = self.bits(word).idle.fetch_or(mask, Ordering::Relaxed);
        });
        self.mark_free(page, pages);
        let _ = self.counts.idle.fetch_add(pages, Ordering::Relaxed);
    }

    /// Lets runs be looked for in pages that are about to become free.
    pub(super) fn mark_free(&self, page: usize, pages: usize) {
        by_words(page, pages, |word, mask| {
            // SeqCst: before the word of the group is read (`no-longer-run`).
            let _ = self.bits(word).free.fetch_or(mask, Ordering::SeqCst);
        });
        self.may_serve(page, pages);
    }

    /// Accounts pages that have just been taken. Returns what is in them.
    pub(super) fn now_in_use(&self, page: usize, pages: usize) -> Contents {
        let idle = self.no_longer_idle(page, pages);
        by_words(page, pages, |word, mask| {
            let free = &self.bits(word).free;
            if free.load(Ordering::Relaxed) & mask != 0 {
                let _ = free.fetch_and(!mask, Ordering::Relaxed);
            }
        });
        self.more_in_use(pages);
        if idle == 0 {
            Contents::Zeros
        } else {
            Contents::Anything
        }
    }

    /// Counts pages that have just been taken.
    pub(super) fn more_in_use(&self, pages: usize) {
        let _ = self.counts.in_use.fetch_add(pages, Ordering::Relaxed);
        self.note_most();
    }

    /// Notes that so many pages are in use as never before in this round, if it is so.
    pub(super) fn note_most(&self) {
        let in_use = self.counted_pages().saturating_sub(self.warm.pages());
        if in_use > self.most_pages() {
            let _ = self.counts.most.fetch_max(in_use, Ordering::Relaxed);
        }
    }

    /// Returns the pages in use, and warm ones.
    pub(super) fn counted_pages(&self) -> usize {
        // Relaxed, here and below: a hint.
        self.counts.in_use.load(Ordering::Relaxed)
    }

    /// Returns the most pages that were in use since the round began.
    pub(super) fn most_pages(&self) -> usize {
        self.counts.most.load(Ordering::Relaxed)
    }

    /// Clears the bits of pages that the caller owns. Returns how many were set.
    pub(super) fn no_longer_idle(&self, page: usize, pages: usize) -> usize {
        let mut idle = 0;
        by_words(page, pages, |word, mask| {
            let bits = &self.bits(word).idle;
            if bits.load(Ordering::Relaxed) & mask != 0 {
                let was = bits.fetch_and(!mask, Ordering::Relaxed);
                idle += (was & mask).count_ones() as usize;
            }
        });
        if idle > 0 {
            let _ = self.counts.idle.fetch_sub(idle, Ordering::Relaxed);
        }
        idle
    }

    /// Returns the bytes that are free and may have memory. A hint while others are at work.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        // Relaxed: a hint. It may be read between the two changes that a page makes on its way.
        let pages = self.idle_pages() + self.warm.pages();
        pages.min(self.layout.pages) << self.layout.page_shift
    }

    /// Returns how many pages are free in zones and may have memory.
    pub(super) fn idle_pages(&self) -> usize {
        // Relaxed: a hint.
        self.counts.idle.load(Ordering::Relaxed)
    }

    /// Keeps so many idle bytes, whatever their age; at first none. [`Span::release_idle`] gives
    /// them back all the same.
    pub fn keep_idle(&self, bytes: usize) {
        // Relaxed: a hint.
        self.counts.kept_idle.store(bytes, Ordering::Relaxed);
    }

    fn kept_idle(&self) -> usize {
        self.counts.kept_idle.load(Ordering::Relaxed)
    }

    /// Gives the memory of all idle pages back to the system. Returns the number of bytes. Takes
    /// some tenths of a microsecond per page, and a system call for each piece of free memory.
    /// Others can allocate and free meanwhile.
    pub fn release_idle(&self) -> usize {
        let _held = self.counts.releasing.lock(|| Threads.relax());
        self.cool_all();
        self.release_all_but(0)
    }

    /// Begins a round of giving memory back, as is done about once a second: decides what stays
    /// idle. That is none if pages have neither come nor gone since the last round, else half. So
    /// what is idle for ten seconds shrinks to a thousandth. The rest is **due**, but no more than
    /// `most_due` bytes. Until it has been given back, it does not count as idle for those that
    /// give back what exceeds a limit.
    pub(crate) fn begin_round(&self, most_due: usize) {
        let (in_use, idle) = (self.bytes_in_use(), self.idle_bytes());
        // Relaxed: a hint, of what will be in use from now on.
        self.counts
            .most
            .store(in_use >> self.layout.page_shift, Ordering::Relaxed);
        // Relaxed, all: hints. Seldom does more than one thread look after the heap at once.
        let last = self
            .counts
            .last_round
            .swap(in_use ^ idle, Ordering::Relaxed);
        let is_at_rest = last == in_use ^ idle;
        let stays = if is_at_rest { 0 } else { idle / 2 };
        let stays = stays.max(self.kept_idle());
        self.counts.stays.store(stays, Ordering::Relaxed);
        let due = idle.saturating_sub(stays).min(most_due);
        self.counts.due.store(due, Ordering::Relaxed);
    }

    /// Does the rest of a round, in pieces of 16 MiB. Each is done under the guard that `enter`
    /// returns, so that nobody waits long for the guard. Returns true if anything was released.
    pub(crate) fn end_round<G>(&self, enter: impl Fn() -> Option<G>) -> bool {
        let piece = PIECE_BYTES >> self.layout.page_shift;
        for _ in 0..self.warm.pages().div_ceil(piece) {
            let Some(_inside) = enter() else { break };
            let _held = self.counts.releasing.lock(|| Threads.relax());
            if self.cool_some(piece) == 0 {
                break;
            }
        }
        let mut released = false;
        // None: not now.
        while let Some(_inside) = enter() {
            let _held = self.counts.releasing.lock(|| Threads.relax());
            if !self.release_step(PIECE_BYTES, usize::MAX) {
                break;
            }
            released = true;
        }
        // Relaxed: a hint.
        self.counts.due.store(0, Ordering::Relaxed);
        released
    }

    /// Does some of a round, for a caller that has other things to do: gives so many bytes of what
    /// is due back, or up to 2 MiB more, each MiB in some hundred microseconds; and gives as much
    /// of what is warm to the zones, or an eighth, 8 MiB at most, so that it can serve other
    /// requests. The caller is inside the gate. Waits for nobody.
    pub(crate) fn go_on_with_round(&self, bytes: usize) {
        let Some(_held) = self.counts.releasing.try_lock() else {
            return;
        };
        // Relaxed: a hint.
        let is_due = self.counts.due.load(Ordering::Relaxed) > 0;
        let wanted = if is_due { bytes } else { 0 } >> self.layout.page_shift;
        let eighth = self.warm.pages().div_ceil(COOLED_PART).min(COOLED_MOST);
        let _ = self.cool_some(wanted.max(eighth));
        if is_due {
            let _ = self.release_step(bytes, BLOCKS_A_STEP);
        }
    }

    /// Gives so many bytes of what is due in this round back at most, down to what stays, from so
    /// many blocks of 2 MiB at most. Returns true if it has given any; otherwise the round is over:
    /// the memory is locked, or others have taken it. The lock of those that release must be held.
    fn release_step(&self, bytes: usize, blocks: usize) -> bool {
        // Relaxed, all: as in `begin_round`.
        let stays = self.counts.stays.load(Ordering::Relaxed);
        let due = self.counts.due.load(Ordering::Relaxed);
        let idle = self.idle_bytes();
        let surplus = idle.saturating_sub(stays).min(due).min(bytes);
        let limit = Limit {
            blocks,
            ..Limit::all_but(idle - surplus)
        };
        let released = match surplus {
            0 => 0,
            _ => self.release(limit) << self.layout.page_shift,
        };
        let due = match released {
            0 => 0,
            _ => due.saturating_sub(released.max(surplus)),
        };
        self.counts.due.store(due, Ordering::Relaxed);
        released > 0
    }

    /// Returns the bytes that may be idle while others are freed.
    fn allowed_idle(&self) -> usize {
        let most = self.most_pages() << self.layout.page_shift;
        surplus::allowed(self.bytes_in_use(), most).max(self.kept_idle())
    }

    /// Returns how many pages may be idle, with warm ones counted as in use.
    pub(super) fn allowed_idle_pages(&self) -> usize {
        let shift = self.layout.page_shift;
        let [in_use, most] = [self.counted_pages(), self.most_pages()].map(|pages| pages << shift);
        surplus::allowed(in_use, most).max(self.kept_idle()) >> shift
    }

    /// Returns the idle bytes but for those that the round has yet to give back, and these.
    fn idle_and_due(&self) -> (usize, usize) {
        // Relaxed: a hint.
        let due = self.counts.due.load(Ordering::Relaxed);
        (self.idle_bytes().saturating_sub(due), due)
    }

    /// Returns true if so many bytes more may be idle while others are freed.
    pub(super) fn may_be_idle(&self, bytes: usize) -> bool {
        self.idle_and_due().0 + bytes <= self.allowed_idle()
    }

    /// Gives memory back if too much is idle, since so many pages have been freed: a little of it,
    /// so that no free takes long; where that does not suffice, twice as much as was freed, since
    /// what is allowed becomes less as well.
    pub(super) fn release_surplus(&self, freed: usize) {
        let allowed = self.allowed_idle();
        let far = allowed.saturating_add(allowed / FAR_PART);
        let cost = match self.idle_and_due().0 > far {
            true => LEAST_COST.max(2 * freed),
            false => LEAST_COST,
        };
        self.release_some(cost);
    }

    /// Gives memory back if too much is idle, as a request that has got so many pages: a little.
    /// More, where the pages had no memory: that costs more than to give as much back.
    pub(super) fn release_in_passing(&self, taken: usize, contents: Contents) {
        let cost = match contents {
            Contents::Zeros => LEAST_COST / 2 + taken / 4,
            Contents::Anything => LEAST_COST / 2,
        };
        self.release_some(cost);
    }

    fn release_some(&self, cost: usize) {
        if self.may_be_idle(0) {
            return;
        }
        let Some(_held) = self.counts.releasing.try_lock() else {
            return;
        };
        let (_, due) = self.idle_and_due();
        let limit = Limit {
            // A quarter less than is allowed, so that the next freed page does not exceed it again.
            enough: self.allowed_idle() / 4 * 3 + due,
            cost,
            blocks: BLOCKS_SEARCHED,
        };
        // What is warm may be all that there is.
        let _ = self.cool_some(cost.saturating_sub(self.idle_pages()));
        let _ = self.release(limit);
    }

    fn largest(&self) -> Order {
        let pages = RUN_BYTES_MAX >> self.layout.page_shift;
        Order::new(pages.trailing_zeros() as u8)
    }

    /// Goes around the span, once at most, downwards from where the last call ended, and releases
    /// idle pages within `limit`. Returns their number. The lock must be held.
    fn release(&self, limit: Limit) -> usize {
        let block = self.largest().frames();
        // Relaxed: changed under the lock only. What is added to the span meanwhile was never in
        // use.
        let blocks = self.grown.load(Ordering::Relaxed).div_ceil(block);
        let cursor = self.counts.cursor.load(Ordering::Relaxed);
        let mut held = HeldPages::new(self);
        for step in 0..blocks.min(limit.blocks) {
            let at = (cursor % blocks + blocks - step) % blocks;
            self.counts.cursor.store(at, Ordering::Relaxed);
            // The held pages are as good as released.
            let held_bytes = held.idle << self.layout.page_shift;
            let idle = self.idle_bytes().saturating_sub(held_bytes);
            if held.cost() >= limit.cost || idle <= limit.enough {
                break;
            }
            self.release_block(at * block, limit.cost, &mut held);
        }
        held.let_go();
        held.released
    }

    pub(super) fn release_all_but(&self, enough: usize) -> usize {
        self.release(Limit::all_but(enough)) << self.layout.page_shift
    }

    /// Releases what is idle in a block of the largest order, until that has cost so much.
    fn release_block(&self, page: usize, cost: usize, held: &mut HeldPages<'_>) {
        let pages = self.largest().frames();
        let idle = self.idle_among(page, pages);
        if idle == 0 {
            return;
        }
        // All of it, if at least half of it is idle and none of it in use. A huge page costs no
        // more than a few small ones, and what came with its first page was never marked.
        let is_huge = huge() != Huge::Never;
        let worth = if is_huge { idle } else { pages };
        if (idle * 2 >= pages || is_huge)
            && cost - held.cost() >= worth
            && held.take((page, self.largest().get()), idle)
        {
            return;
        }
        by_words(page, pages, |word, mask| {
            let mut bits = self.bits(word).idle.load(Ordering::Relaxed) & mask;
            while bits != 0 && held.cost() < cost {
                let from = bits.trailing_zeros();
                let run = (bits >> from).trailing_ones();
                // The largest block that begins here and is aligned to its size.
                let aligned = if from == 0 { 6 } else { from.trailing_zeros() };
                // Not much more than is wanted.
                let wanted = (cost - held.cost()).max(PAGES_A_CALL);
                let order = aligned.min(run.ilog2()).min(wanted.ilog2());
                let at = word * WORD + from as usize;
                // If one of its pages was taken in between, it is left for the next time.
                let _ = held.take((at, order as u8), 1 << order);
                bits &= !bits_of(from as usize, from as usize + (1 << order));
            }
        });
    }
}
