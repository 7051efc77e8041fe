//! Which free pages may have memory, and how it goes back to the system.
//!
//! Invariant `idle-bit`: the bit of a page is set if the page is free and has been in use since its
//! memory was last given back. It is clear while the page is in use. It is set before the page
//! becomes free, and cleared after it has been taken. So a thread that takes free pages to release
//! them can rely on the bits of the pages that it gets; it does not get the others. A free page
//! whose bit is clear is zero: it has never been touched, or its memory has been given back since.
//!
//! A thread that releases takes free blocks for a moment, a few at a time, exactly where the bits
//! say that they lie (`Zone::alloc_at`). A lost race costs nothing. A request that finds nothing
//! meanwhile waits for that thread (`Span::find_behind_release`).

use core::sync::atomic::{AtomicU64, Ordering};

use brickyard::{Context, Frame, Mobility, Order, Platform};
use brickyard_arena::{Release, Threads};

use super::{Contents, RUN_BYTES_MAX, Span};
use crate::surplus;

/// The bytes that are given back by age at a time.
const PIECE_BYTES: usize = 16 << 20;

/// The pages of a word of bits.
const WORD: usize = 64;

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
struct Held<'s> {
    span: &'s Span,
    first: usize,
    pages: usize,
    /// The number of pages that were idle.
    idle: usize,
    blocks: [(u32, u8); Held::BLOCKS],
    count: usize,
    released: usize,
}

impl<'s> Held<'s> {
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
        }
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
        // Locked memory stays, and so do its bits.
        if done.is_ok() {
            self.released += self.span.no_longer_idle(self.first, self.pages);
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
    fn idle_word(&self, word: usize) -> &AtomicU64 {
        let first = self.tables.at(self.layout.idle_at).cast::<AtomicU64>();
        // SAFETY: the tables have a bit for each page, initially zero.
        unsafe { first.add(word).as_ref() }
    }

    /// Accounts pages in use that are about to become free.
    pub(super) fn now_idle(&self, page: usize, pages: usize) {
        self.mark_idle(page, pages);
        let _ = self.counts.in_use.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Accounts pages that are about to become free, and were not in use.
    pub(super) fn mark_idle(&self, page: usize, pages: usize) {
        by_words(page, pages, |word, mask| {
            // Relaxed, here and below: the zone decides whether a page is free. A thread that gets
            // it from the zone sees this store too.
            let _ = self.idle_word(word).fetch_or(mask, Ordering::Relaxed);
        });
        let _ = self.counts.idle.fetch_add(pages, Ordering::Relaxed);
    }

    /// Accounts pages that have just been taken. Returns what is in them.
    pub(super) fn now_in_use(&self, page: usize, pages: usize) -> Contents {
        let idle = self.no_longer_idle(page, pages);
        self.more_in_use(pages);
        if idle == 0 {
            Contents::Zeros
        } else {
            Contents::Anything
        }
    }

    /// Counts pages that have just been taken.
    pub(super) fn more_in_use(&self, pages: usize) {
        let in_use = self.counts.in_use.fetch_add(pages, Ordering::Relaxed) + pages;
        if in_use > self.counts.most.load(Ordering::Relaxed) {
            let _ = self.counts.most.fetch_max(in_use, Ordering::Relaxed);
        }
    }

    /// Clears the bits of pages that the caller owns. Returns how many were set.
    fn no_longer_idle(&self, page: usize, pages: usize) -> usize {
        let mut idle = 0;
        by_words(page, pages, |word, mask| {
            let bits = self.idle_word(word);
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
        let pages = self.counts.idle.load(Ordering::Relaxed) + self.warm.pages();
        pages.min(self.layout.pages) << self.layout.page_shift
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
        self.release(Order::ZERO, 0)
    }

    /// Does one round of giving memory back. To be called about once a second. It releases all that
    /// is idle if pages have neither come nor gone since the last round, else half of it. So what
    /// is idle for ten seconds shrinks to a thousandth. It works in pieces of 16 MiB, at most as many
    /// as `pieces`. Each is done under the guard that `enter` returns, so that nobody waits long for
    /// the guard. Returns true if anything was released.
    pub(crate) fn release_by_age<G>(&self, pieces: usize, enter: impl Fn() -> Option<G>) -> bool {
        let (in_use, idle) = (self.bytes_in_use(), self.idle_bytes());
        // Relaxed: a hint, of what will be in use from now on.
        self.counts
            .most
            .store(in_use >> self.layout.page_shift, Ordering::Relaxed);
        // Relaxed: only this thread uses it, and it is a hint.
        let last = self
            .counts
            .last_round
            .swap(in_use ^ idle, Ordering::Relaxed);
        let enough = if last == in_use ^ idle { 0 } else { idle / 2 };
        let enough = enough.max(self.kept_idle());
        if let Some(_inside) = enter() {
            self.cool();
        }
        let mut released = 0;
        for _ in 0..pieces {
            let piece = self.idle_bytes().saturating_sub(PIECE_BYTES).max(enough);
            // None: not now.
            let Some(_inside) = enter() else {
                break;
            };
            let step = {
                let _held = self.counts.releasing.lock(|| Threads.relax());
                self.release(Order::ZERO, piece)
            };
            released += step;
            if step == 0 || self.idle_bytes() <= enough {
                break;
            }
        }
        released > 0
    }

    /// Returns the bytes that may be idle while others are freed.
    pub(super) fn allowed_idle(&self) -> usize {
        // Relaxed: a hint.
        let most = self.counts.most.load(Ordering::Relaxed) << self.layout.page_shift;
        surplus::allowed(self.bytes_in_use(), most).max(self.kept_idle())
    }

    /// Gives memory back if too much is idle: the largest pieces first.
    pub(super) fn release_surplus(&self) {
        if self.idle_bytes() <= self.allowed_idle() {
            return;
        }
        let Some(_held) = self.counts.releasing.try_lock() else {
            return;
        };
        // A quarter less than is allowed, so that the next freed page does not exceed it again.
        let enough = self.allowed_idle() / 4 * 3;
        self.cool();
        let _ = self.release(self.largest(), enough);
        if self.idle_bytes() > enough {
            let _ = self.release(Order::ZERO, enough);
        }
    }

    /// Gives memory back if pages that had none were taken though too much is idle: in pieces that
    /// did not serve.
    pub(super) fn release_if_grown(&self, contents: Contents) {
        if contents == Contents::Zeros {
            self.release_surplus();
        }
    }

    fn largest(&self) -> Order {
        let pages = RUN_BYTES_MAX >> self.layout.page_shift;
        Order::new(pages.trailing_zeros() as u8)
    }

    /// Goes once around the span, from where the last call ended. Releases idle blocks of at least
    /// order `least`, until no more than `enough` bytes are idle. The lock must be held.
    fn release(&self, least: Order, enough: usize) -> usize {
        let block = self.largest().frames();
        // Relaxed: changed under the lock only. What is added to the span meanwhile was never in
        // use.
        let blocks = self.grown.load(Ordering::Relaxed).div_ceil(block);
        let cursor = self.counts.cursor.load(Ordering::Relaxed);
        let mut held = Held::new(self);
        for step in 0..blocks {
            // The held pages are as good as released.
            let held_bytes = held.idle << self.layout.page_shift;
            if self.idle_bytes().saturating_sub(held_bytes) <= enough {
                break;
            }
            let at = (cursor + step) % blocks;
            self.counts.cursor.store(at, Ordering::Relaxed);
            self.release_block(at * block, least, &mut held);
        }
        held.let_go();
        held.released << self.layout.page_shift
    }

    /// Releases what is idle in a block of the largest order.
    fn release_block(&self, page: usize, least: Order, held: &mut Held<'_>) {
        let pages = self.largest().frames();
        let mut idle = 0;
        by_words(page, pages, |word, mask| {
            idle += (self.idle_word(word).load(Ordering::Relaxed) & mask).count_ones() as usize;
        });
        // All of it, if at least half of it is idle and none of it in use.
        if idle == 0 || idle * 2 >= pages && held.take((page, self.largest().get()), idle) {
            return;
        }
        if least > Order::ZERO {
            return;
        }
        by_words(page, pages, |word, mask| {
            let mut bits = self.idle_word(word).load(Ordering::Relaxed) & mask;
            while bits != 0 {
                let from = bits.trailing_zeros();
                let run = (bits >> from).trailing_ones();
                // The largest block that begins here and is aligned to its size.
                let aligned = if from == 0 { 6 } else { from.trailing_zeros() };
                let order = aligned.min(run.ilog2());
                let at = word * WORD + from as usize;
                // If one of its pages was taken in between, it is left for the next time.
                let _ = held.take((at, order as u8), 1 << order);
                bits &= !bits_of(from as usize, from as usize + (1 << order));
            }
        });
    }
}
