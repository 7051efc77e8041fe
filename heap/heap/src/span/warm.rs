//! Warm pages: blocks and runs that were freed a moment ago, as they were, for the next request of
//! their length. They save the zones' work, and faults, since they have memory.
//!
//! A list for each length of runs, and for each order of blocks, in a table with a word per page.
//! They are behind one lock. Whoever finds it held goes to the zones, so nobody waits. What is warm
//! counts as idle. It goes to the zones before idle pages go back to the system, before a request
//! is refused, and once a second.
//!
//! Invariant `warm-owned`: a block or run in a list belongs to nobody else, from when it is put in
//! until it is taken out, and its idle bits are clear.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard::sync::{Held, Locked, TestAndSetLock};
use brickyard::{Frame, FrameRange};
use brickyard_arena::Threads;

use super::{RUN_BYTES_MAX, Span};

/// A run may be longer than asked for, by one part in so many.
const SLACK_PART: usize = 8;

/// The most pages of a run, where pages are smallest.
const PAGES: usize = RUN_BYTES_MAX >> 12;

/// The orders of blocks.
const ORDERS: usize = PAGES.ilog2() as usize + 1;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Warm {
    lock: Locked<TestAndSetLock, ()>,
    lists: UnsafeCell<Lists>,
    /// Pages of all lists.
    pages: AtomicUsize,
}

/// Lists by their first page, plus 1; 0 ends a list.
#[derive(Debug)]
struct Lists {
    /// By the number of pages, less 1.
    runs: [u32; PAGES],
    /// By order.
    blocks: [u32; ORDERS],
    /// Which lists of runs have any.
    some: [u64; PAGES / 64],
}

// SAFETY: only a holder of the lock uses the lists.
unsafe impl Sync for Warm {}

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Pages of a slab: a block.
    Block,
    /// A run.
    Run,
}

impl Lists {
    const fn list(&mut self, kind: Kind, pages: usize) -> &mut u32 {
        match kind {
            Kind::Block => &mut self.blocks[pages.trailing_zeros() as usize],
            Kind::Run => &mut self.runs[pages - 1],
        }
    }

    /// Returns the least length of runs that there are, of `from` pages up to `to`.
    fn least(&self, from: usize, to: usize) -> Option<usize> {
        let (first, last) = (from - 1, to.min(PAGES) - 1);
        (first / 64..=last / 64).find_map(|word| {
            let below = if word == first / 64 { first % 64 } else { 0 };
            let bits = self.some[word] & (!0 << below);
            let found = word * 64 + bits.trailing_zeros() as usize;
            (bits != 0 && found <= last).then_some(found + 1)
        })
    }
}

impl Warm {
    pub(super) const fn new() -> Self {
        Self {
            lock: Locked::new(()),
            lists: UnsafeCell::new(Lists {
                runs: [0; PAGES],
                blocks: [0; ORDERS],
                some: [0; PAGES / 64],
            }),
            pages: AtomicUsize::new(0),
        }
    }

    /// Returns the word that counts pages.
    pub(super) const fn count(&self) -> &AtomicUsize {
        &self.pages
    }

    /// Returns the number of pages. A hint while others are at work.
    pub(super) fn pages(&self) -> usize {
        // Relaxed: a hint.
        self.pages.load(Ordering::Relaxed)
    }
}

impl Span {
    /// The page, plus 1, that follows in the list of a warm page.
    fn next_warm(&self, page: usize) -> &AtomicU32 {
        let word = self.tables.at(self.layout.warm_at).cast::<AtomicU32>();
        // SAFETY: the tables have such a word for each page, initially zero.
        unsafe { word.add(page).as_ref() }
    }

    /// Keeps pages that have been freed. False if they have to go to the zones.
    pub(super) fn keep_warm(&self, kind: Kind, page: usize, pages: usize) -> bool {
        if !self.may_be_idle(pages << self.layout.page_shift) {
            return false;
        }
        let Some(_held) = self.warm.lock.try_lock() else {
            return false;
        };
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *self.warm.lists.get() };
        if let Kind::Run = kind {
            lists.some[(pages - 1) / 64] |= 1 << ((pages - 1) % 64);
        }
        let list = lists.list(kind, pages);
        // Relaxed, here and below: behind the lock; the counts are hints.
        self.next_warm(page).store(*list, Ordering::Relaxed);
        *list = page as u32 + 1;
        let _ = self.warm.pages.fetch_add(pages, Ordering::Relaxed);
        let _ = self.counts.in_use.fetch_sub(pages, Ordering::Relaxed);
        true
    }

    /// Takes a warm block or run of so many pages, or a run of a few more. Returns its first page
    /// and its pages. If that does not begin at a multiple of `align` pages, it stays.
    pub(super) fn take_warm(
        &self,
        kind: Kind,
        pages: usize,
        align: usize,
    ) -> Option<(usize, usize)> {
        let taken = self.pop_warm(kind, pages, pages + pages / SLACK_PART, align)?;
        self.more_in_use(taken.1);
        Some(taken)
    }

    /// Takes the shortest warm run that is no shorter than `pages` pages, and gives what it has
    /// more to its zone. Returns its first page, and `pages`.
    pub(super) fn split_warm(&self, pages: usize) -> Option<(usize, usize)> {
        let (page, taken) = self.pop_warm(Kind::Run, pages, PAGES, 1)?;
        self.more_in_use(pages);
        if taken > pages {
            self.cool_pages(page + pages, taken - pages);
        }
        Some((page, pages))
    }

    /// Takes the first warm block of so many pages, or the first of the shortest runs of `pages` to
    /// `most` pages, out of its list.
    fn pop_warm(
        &self,
        kind: Kind,
        pages: usize,
        most: usize,
        align: usize,
    ) -> Option<(usize, usize)> {
        if self.warm.pages() == 0 {
            return None;
        }
        let _held = self.warm.lock.try_lock()?;
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *self.warm.lists.get() };
        let pages = match kind {
            Kind::Block => pages,
            Kind::Run => lists.least(pages, most)?,
        };
        let list = lists.list(kind, pages);
        let page = (*list as usize).checked_sub(1)?;
        if !page.is_multiple_of(align) {
            return None;
        }
        *list = self.next_warm(page).load(Ordering::Relaxed);
        if let (Kind::Run, 0) = (kind, *list) {
            lists.some[(pages - 1) / 64] &= !(1 << ((pages - 1) % 64));
        }
        let _ = self.warm.pages.fetch_sub(pages, Ordering::Relaxed);
        Some((page, pages))
    }

    /// Gives so many warm pages to the zones, or all, or those of one block or run more: the
    /// shortest runs first. Stops where somebody holds the lists.
    pub(super) fn cool_some(&self, pages: usize) {
        let mut cooled = 0;
        while cooled < pages {
            let taken = self.pop_warm(Kind::Run, 1, PAGES, 1).or_else(|| {
                let mut orders = (0..ORDERS).rev();
                orders.find_map(|order| self.pop_warm(Kind::Block, 1 << order, 0, 1))
            });
            let Some((page, pages)) = taken else {
                return;
            };
            self.cool_pages(page, pages);
            cooled += pages;
        }
    }

    /// Gives what is warm to the zones, as far as nobody holds the lists: a signal handler may have
    /// interrupted who does.
    pub(super) fn cool(&self) {
        self.cool_while(|| self.warm.lock.try_lock());
    }

    /// Gives all that is warm to the zones.
    pub(super) fn cool_all(&self) {
        self.cool_while(|| Some(self.warm.lock.lock(|| Threads.relax())));
    }

    /// Gives list after list to the zones, as long as `hold` takes the lock.
    fn cool_while<'s>(&'s self, hold: impl Fn() -> Option<Held<'s, TestAndSetLock, ()>>) {
        if self.warm.pages() == 0 {
            return;
        }
        for order in 0..ORDERS {
            let Some(held) = hold() else {
                return;
            };
            self.cool_list(Kind::Block, 1 << order, held);
        }
        while let Some(held) = hold() {
            // SAFETY: the lock is held.
            let length = unsafe { &*self.warm.lists.get() }.least(1, PAGES);
            let Some(pages) = length else {
                return;
            };
            self.cool_list(Kind::Run, pages, held);
        }
    }

    fn cool_list(&self, kind: Kind, pages: usize, held: Held<'_, TestAndSetLock, ()>) {
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *self.warm.lists.get() };
        if let Kind::Run = kind {
            lists.some[(pages - 1) / 64] &= !(1 << ((pages - 1) % 64));
        }
        let mut next = core::mem::take(lists.list(kind, pages));
        drop(held);
        // `warm-owned`: what was in the list is this caller's.
        while let Some(page) = (next as usize).checked_sub(1) {
            next = self.next_warm(page).load(Ordering::Relaxed);
            let _ = self.warm.pages.fetch_sub(pages, Ordering::Relaxed);
            self.cool_pages(page, pages);
        }
    }

    /// Gives pages that were warm to their zone.
    fn cool_pages(&self, page: usize, pages: usize) {
        self.mark_idle(page, pages);
        let freed = self
            .zone_of(page)
            .free_range(FrameRange::at(Frame::new(page), pages));
        debug_assert!(freed.is_ok(), "warm pages: {freed:?}");
    }
}
