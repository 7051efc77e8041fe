//! Warm pages: blocks and runs that were freed a moment ago, as they were, for the next request of
//! their length. They save the zones' work, and faults, since they have memory.
//!
//! They lie on **shelves**, of which a thread uses the one of its CPU: so threads on different CPUs
//! seldom change the same cache line. A request that finds nothing on its own shelf looks at the
//! others. A shelf has a list for each order of blocks, and for runs eight for each doubling of the
//! length, in a table with a word per page. It is behind one lock. Requests and frees that find it
//! held go on. What is warm goes to the zones before a request is refused, where the zones have too
//! little that can go back to the system, and by age (`maintenance.rs`), in small portions.
//!
//! What is warm counts as idle, but the word that counts pages in use holds it too, so that pages
//! come and go without a change of it: who reads that word subtracts what is warm.
//!
//! Invariant `warm-owned`: a block or run in a list belongs to nobody else, from when it is put in
//! until it is taken out, and its idle bits are clear.

use core::cell::UnsafeCell;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use brickyard::sync::{Held, Locked, TestAndSetLock};
use brickyard::{Frame, FrameRange, Platform};
use brickyard_arena::Threads;

use super::{RUN_BYTES_MAX, Span};

/// A run may be longer than asked for, by one part in so many. The lengths of a list differ by less
/// than that.
const SLACK_PART: usize = 8;

/// The most pages of a run, where pages are smallest.
const PAGES: usize = RUN_BYTES_MAX >> 12;

/// The orders of blocks.
const ORDERS: usize = PAGES.ilog2() as usize + 1;

/// The lists of runs.
const LENGTHS: usize = list_of(PAGES) + 1;

/// Their bits fit into a word.
const _: () = assert!(LENGTHS <= 64);

/// Long runs serve others better where they lie beside free pages: so a shelf has at most so many of
/// so many pages or more, one in a list.
const LONG: (u32, usize) = (4, 36);

/// They have lists of their own.
const _: () = assert!(list_of(LONG.1) > list_of(LONG.1 - 1));

/// CPUs beyond that share them.
const SHELVES: usize = 8;

/// The most blocks or runs that go to the zones at a time, and the pages from which on no more do.
const PORTION: (usize, usize) = (64, 256);

/// Whenever a shelf has so many pages more, what is warm is counted exactly.
const COUNTED: usize = 256;

/// Returns the list of runs of so many pages.
const fn list_of(pages: usize) -> usize {
    if pages < SLACK_PART {
        return pages - 1;
    }
    let doubling = (pages.ilog2() - SLACK_PART.ilog2()) as usize;
    doubling * SLACK_PART + (pages >> doubling) - 1
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Warm {
    shelves: [Shelf; SHELVES],
    /// Shelves from here on were never used.
    used: AtomicUsize,
}

#[derive(Debug)]
#[repr(align(128))]
struct Shelf {
    lock: Locked<TestAndSetLock, ()>,
    /// Pages of all lists.
    pages: AtomicUsize,
    lists: UnsafeCell<Lists>,
}

/// Lists by their first page, plus 1; 0 ends a list.
#[derive(Debug)]
struct Lists {
    /// Which lists of runs have any.
    some: u64,
    runs: [u32; LENGTHS],
    /// By order.
    blocks: [u32; ORDERS],
}

// SAFETY: only a holder of the lock uses the lists.
unsafe impl Sync for Shelf {}

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum WarmKind {
    /// Pages of a slab: a block.
    Block,
    /// A run.
    Run,
}

impl Lists {
    const fn list(&mut self, kind: WarmKind, index: usize) -> &mut u32 {
        match kind {
            WarmKind::Block => &mut self.blocks[index],
            WarmKind::Run => &mut self.runs[index],
        }
    }
}

/// Returns the index of the list for so many pages.
const fn index_of(kind: WarmKind, pages: usize) -> usize {
    match kind {
        WarmKind::Block => pages.trailing_zeros() as usize,
        WarmKind::Run => list_of(pages),
    }
}

impl Shelf {
    const fn new() -> Self {
        Self {
            lock: Locked::new(()),
            pages: AtomicUsize::new(0),
            lists: UnsafeCell::new(Lists {
                some: 0,
                runs: [0; LENGTHS],
                blocks: [0; ORDERS],
            }),
        }
    }

    pub(super) fn pages(&self) -> usize {
        // Relaxed: a hint.
        self.pages.load(Ordering::Relaxed)
    }

    /// Changes the number of pages. The lock must be held.
    fn count(&self, more: usize, less: usize) {
        // Relaxed: changed behind the lock, and a hint for others.
        self.pages
            .store(self.pages() + more - less, Ordering::Relaxed);
    }
}

impl Warm {
    pub(super) const fn new() -> Self {
        Self {
            shelves: [const { Shelf::new() }; SHELVES],
            used: AtomicUsize::new(0),
        }
    }

    /// Returns the number of pages. A hint while others are at work.
    pub(super) fn pages(&self) -> usize {
        self.used_shelves().iter().map(Shelf::pages).sum()
    }

    fn used_shelves(&self) -> &[Shelf] {
        // Relaxed: a hint.
        &self.shelves[..self.used.load(Ordering::Relaxed)]
    }

    /// Returns the shelf for pages that a thread on `cpu` frees, and how many would be used with
    /// it.
    fn own(&self, cpu: usize) -> (&Shelf, usize) {
        let index = cpu % SHELVES;
        // Relaxed: a hint.
        let used = self.used.load(Ordering::Relaxed).max(index + 1);
        (&self.shelves[index], used)
    }

    /// Returns the shelves that are used, that of `cpu` first.
    fn from(&self, cpu: usize) -> impl Iterator<Item = &Shelf> {
        let used = self.used_shelves();
        let (before, rest) = used.split_at(used.len().min(cpu % SHELVES));
        rest.iter().chain(before)
    }
}

impl Span {
    /// The page, plus 1, that follows in the list of a warm block or run.
    fn next_warm(&self, page: usize) -> &AtomicU32 {
        let word = self.tables.at(self.layout.warm_at).cast::<AtomicU32>();
        // SAFETY: the tables have such a word for each page, initially zero.
        unsafe { word.add(page).as_ref() }
    }

    /// The number of pages of a warm run that has more than one: the word of its second page.
    fn warm_length(&self, page: usize) -> &AtomicU32 {
        self.next_warm(page + 1)
    }

    /// Returns how many pages the first of a list of runs has.
    fn length_of(&self, list: usize, page: usize) -> usize {
        match list {
            0 => 1,
            // Relaxed: behind the lock of the shelf.
            _ => self.warm_length(page).load(Ordering::Relaxed) as usize,
        }
    }

    pub(super) fn cpu(&self) -> usize {
        self.cpus.map_or(0, |cpus| cpus.cpu())
    }

    /// Keeps pages that have been freed. False if they have to go to the zones.
    pub(super) fn keep_warm(&self, kind: WarmKind, page: usize, pages: usize) -> bool {
        let (shelf, used) = self.warm.own(self.cpu());
        // Mostly as if the others held as much: so it reads no word that they change all the time.
        let own = shelf.pages();
        let warm = (own + pages) * used;
        let seems_allowed = self.idle_pages() + warm <= self.allowed_idle_pages();
        let is_counted = own / COUNTED != (own + pages) / COUNTED;
        if (is_counted || !seems_allowed) && !self.may_be_idle(pages << self.layout.page_shift) {
            return false;
        }
        let Some(_held) = shelf.lock.try_lock() else {
            return false;
        };
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *shelf.lists.get() };
        let index = index_of(kind, pages);
        if let WarmKind::Run = kind {
            let (most, from) = LONG;
            let long = lists.some & !0 << list_of(from);
            if pages >= from && (long.count_ones() >= most || long >> index & 1 != 0) {
                return false;
            }
            lists.some |= 1 << index;
        }
        let list = lists.list(kind, index);
        // Relaxed, here and below: behind the lock.
        self.next_warm(page).store(*list, Ordering::Relaxed);
        if pages > 1 {
            self.warm_length(page)
                .store(pages as u32, Ordering::Relaxed);
        }
        *list = page as u32 + 1;
        shelf.count(pages, 0);
        // Relaxed: a hint.
        if self.warm.used.load(Ordering::Relaxed) < used {
            let _ = self.warm.used.fetch_max(used, Ordering::Relaxed);
        }
        true
    }

    /// Takes a warm block or run of so many pages, or a run of a few more. Returns its first page
    /// and its pages. If that does not begin at a multiple of `align` pages, it stays.
    pub(super) fn take_warm(
        &self,
        kind: WarmKind,
        pages: usize,
        align: usize,
    ) -> Option<(usize, usize)> {
        let most = pages + pages / SLACK_PART;
        let cpu = self.cpu();
        let taken = self
            .warm
            .from(cpu)
            .find_map(|shelf| self.pop_warm(shelf, kind, pages..=most, align))?;
        let (shelf, used) = self.warm.own(cpu);
        // As if the others held as much, as in `keep_warm`.
        if self.counted_pages().saturating_sub(shelf.pages() * used) > self.most_pages() {
            self.note_most();
        }
        Some(taken)
    }

    /// Takes a warm run that is no shorter than `pages` pages, the shortest of a shelf or nearly
    /// so, and gives what it has more to its zone. Returns its first page, and `pages`.
    pub(super) fn split_warm(&self, pages: usize) -> Option<(usize, usize)> {
        let (page, taken) = self
            .warm
            .from(self.cpu())
            .find_map(|shelf| self.pop_warm(shelf, WarmKind::Run, pages..=PAGES, 1))?;
        if taken > pages {
            self.cool_pages(page + pages, taken - pages);
        }
        self.note_most();
        Some((page, pages))
    }

    /// Takes the first warm block of `pages` pages out of its list, or the first run of the first
    /// list that has one of so many.
    fn pop_warm(
        &self,
        shelf: &Shelf,
        kind: WarmKind,
        pages: RangeInclusive<usize>,
        align: usize,
    ) -> Option<(usize, usize)> {
        if shelf.pages() < *pages.start() {
            return None;
        }
        let _held = shelf.lock.try_lock()?;
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *shelf.lists.get() };
        let (index, page, pages) = match kind {
            WarmKind::Block => {
                let index = index_of(kind, *pages.start());
                let page = (lists.blocks[index] as usize).checked_sub(1)?;
                (index, page, *pages.start())
            }
            WarmKind::Run => self.shortest(lists, pages)?,
        };
        if !page.is_multiple_of(align) {
            return None;
        }
        let list = lists.list(kind, index);
        *list = self.next_warm(page).load(Ordering::Relaxed);
        if let (WarmKind::Run, 0) = (kind, *list) {
            lists.some &= !(1 << index);
        }
        shelf.count(0, pages);
        Some((page, pages))
    }

    /// Returns the first run of the first list whose first has so many pages: its list, its first
    /// page, and its pages.
    fn shortest(
        &self,
        lists: &Lists,
        pages: RangeInclusive<usize>,
    ) -> Option<(usize, usize, usize)> {
        let (least, most) = pages.into_inner();
        // The runs of the list before may be long enough too.
        let mut some = lists.some & (!0 << list_of(least));
        for _ in 0..2 {
            let index = some.trailing_zeros() as usize;
            let first = lists.runs.get(index)?;
            let page = *first as usize - 1;
            let length = self.length_of(index, page);
            if length > most {
                return None;
            }
            if length >= least {
                return Some((index, page, length));
            }
            some &= !(1 << index);
        }
        None
    }

    /// Gives so many warm pages to the zones, or all, or those of a portion more. Leaves out
    /// shelves that somebody holds. Returns how many it has given. While a portion is on its way,
    /// it is nowhere to be found: so the lock of those that release must be held (see
    /// [`Span::find_behind_release`]).
    pub(super) fn cool_some(&self, pages: usize) -> usize {
        let mut cooled = 0;
        for shelf in self.warm.from(self.cpu()) {
            while cooled < pages {
                let Some(held) = shelf.lock.try_lock() else {
                    break;
                };
                match self.cool_portion(shelf, held) {
                    0 => break,
                    portion => cooled += portion,
                }
            }
        }
        cooled
    }

    /// Gives all that is warm to the zones, but for what comes meanwhile. The lock of those that
    /// release must be held.
    pub(super) fn cool_all(&self) {
        for shelf in self.warm.used_shelves() {
            let mut left = shelf.pages();
            while left > 0 {
                let held = shelf.lock.lock(|| Threads.relax());
                match self.cool_portion(shelf, held) {
                    0 => break,
                    portion => left = left.saturating_sub(portion),
                }
            }
        }
    }

    /// Gives a portion of a shelf to the zones: of the shortest runs, or else of the largest
    /// blocks. Returns its pages, 0 if there are none.
    fn cool_portion(&self, shelf: &Shelf, held: Held<'_, TestAndSetLock, ()>) -> usize {
        // SAFETY: the lock is held.
        let lists = unsafe { &mut *shelf.lists.get() };
        let found = match lists.some {
            0 => {
                let order = lists.blocks.iter().rposition(|&first| first != 0);
                order.map(|order| (WarmKind::Block, order))
            }
            some => Some((WarmKind::Run, some.trailing_zeros() as usize)),
        };
        let Some((kind, index)) = found else {
            return 0;
        };
        let length = |page| match kind {
            WarmKind::Block => 1 << index,
            WarmKind::Run => self.length_of(index, page),
        };
        let list = lists.list(kind, index);
        let first = *list;
        let (mut next, mut count, mut pages) = (first, 0, 0);
        while let Some(page) = (next as usize).checked_sub(1)
            && count < PORTION.0
            && pages < PORTION.1
        {
            next = self.next_warm(page).load(Ordering::Relaxed);
            count += 1;
            pages += length(page);
        }
        *list = next;
        if let (WarmKind::Run, 0) = (kind, next) {
            lists.some &= !(1 << index);
        }
        shelf.count(0, pages);
        drop(held);
        // `warm-owned`: the portion is this caller's.
        next = first;
        for _ in 0..count {
            let page = next as usize - 1;
            next = self.next_warm(page).load(Ordering::Relaxed);
            self.cool_pages(page, length(page));
        }
        pages
    }

    /// Gives pages that were warm to their zone.
    fn cool_pages(&self, page: usize, pages: usize) {
        self.now_idle(page, pages);
        let freed = self
            .zone_of(page)
            .free_range(FrameRange::at(Frame::new(page), pages));
        debug_assert!(freed.is_ok(), "warm pages: {freed:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ascend_and_their_lengths_differ_by_less_than_the_slack() {
        let (mut first, mut list) = (1, 0);
        for pages in 1..=PAGES {
            let next = list_of(pages);
            assert!(next == list || next == list + 1, "{pages}");
            if next != list {
                (first, list) = (pages, next);
            }
            assert!(pages <= first + first / SLACK_PART);
            assert!(pages == first || pages - first < first.div_ceil(SLACK_PART));
        }
        assert_eq!(list, LENGTHS - 1);
    }
}
