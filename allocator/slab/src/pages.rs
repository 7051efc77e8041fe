//! The tables of pages. For each page of the span, a byte says whose slab it is part of (of a slab
//! of a single large object, the first page's alone). A record of 64 bytes at a slab's first page
//! describes the slab.
//!
//! Both lie in the embedder's memory, beside the pages. So objects are packed without a header, and
//! nothing here is lost when a program writes past the end of an object. A record is guarded by the
//! lock of the list that owns the slab. Zero means no slab, so memory that is zero already need not
//! be written.

use core::mem::MaybeUninit;
use core::ops::{Deref, Range};
use core::ptr::NonNull;

use brickyard_sync::{
    AtomicU8, AtomicU32, GuardedU32, GuardedU64, Ordering, Zeroable, place, place_zeroed,
};

use crate::layout::CacheId;
use crate::source::PageSource;

/// The record of a slab. It has a cache line to itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SlabRecord {
    /// Which of its objects are free, a bit each. A design that records this in another way can use
    /// these words for its own data of a slab.
    pub free: [GuardedU64; 4],
    /// The number of pages before this one at which its slab begins, where the page is marked.
    pub(crate) back: GuardedU32,
    /// Objects that are not in the slab: in use, or in queues.
    pub out: GuardedU32,
    /// Links of the list that the slab is on, such as that of slabs with free objects: page number
    /// + 1, 0 at the end.
    pub next: GuardedU32,
    /// See [`SlabRecord::next`].
    pub prev: GuardedU32,
    /// The offset of the first object from the slab's start, in bytes.
    pub colour: GuardedU32,
    /// The lock of this slab alone, in designs that have one: 0 when it is free. The default has
    /// none.
    pub lock: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SlabRecord>() == 64);

// SAFETY: it consists of words; zero is a value of each.
unsafe impl Zeroable for SlabRecord {
    const ZERO: Self = Self {
        free: [const { GuardedU64::new(0) }; 4],
        back: GuardedU32::new(0),
        out: GuardedU32::new(0),
        next: GuardedU32::new(0),
        prev: GuardedU32::new(0),
        colour: GuardedU32::new(0),
        lock: AtomicU32::new(0),
    };
}

/// Which cache each page belongs to.
#[derive(Debug)]
pub struct PageCaches<'m> {
    ids: &'m [AtomicU8],
    start: usize,
    page_shift: u32,
}

/// The tables of all pages: for designs.
#[derive(Debug)]
pub struct Pages<'m> {
    caches: PageCaches<'m>,
    records: &'m [SlabRecord],
}

impl<'m> Deref for Pages<'m> {
    type Target = PageCaches<'m>;

    #[inline(always)]
    fn deref(&self) -> &PageCaches<'m> {
        &self.caches
    }
}

/// Memory for the tables of pages that is zero throughout, as fresh mappings are. None of it is
/// touched before it is needed.
#[derive(Debug)]
pub struct Tables<'m>(&'m mut [MaybeUninit<u8>]);

impl<'m> Tables<'m> {
    /// Returns the bytes for the tables of `pages` pages: 65 per page, and some for alignment.
    /// `usize::MAX` if the number is too large for a `usize`.
    #[must_use]
    pub const fn bytes(pages: usize) -> usize {
        let tables = pages.saturating_mul(size_of::<SlabRecord>() + size_of::<AtomicU8>());
        tables.saturating_add(align_of::<SlabRecord>() + align_of::<AtomicU8>() - 1)
    }

    /// Returns which bytes of the tables of `pages` pages are those of the pages `of`, if the
    /// memory begins at a multiple of 64. No others are written when the source hands out those
    /// pages.
    #[must_use]
    pub const fn parts(pages: usize, of: &Range<usize>) -> [Range<usize>; 2] {
        let record = size_of::<SlabRecord>();
        let ids = pages * record;
        [
            of.start * record..of.end * record,
            ids + of.start..ids + of.end,
        ]
    }

    /// Wraps memory that is zero.
    ///
    /// # Safety
    /// Every byte of it is 0. (Nobody else can change that any more: it is borrowed for good.) The
    /// [parts](Self::parts) of a page can be written before the source hands the page out.
    #[must_use]
    pub const unsafe fn zeroed(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }
}

impl<'m> Pages<'m> {
    /// Makes tables in memory of any content. Returns them and the rest of the memory.
    pub(crate) fn in_memory(
        source: &impl PageSource,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<(Self, &'m mut [MaybeUninit<u8>])> {
        let (records, rest) = place(memory, source.pages(), || SlabRecord::ZERO)?;
        let (ids, rest) = place(rest, source.pages(), || AtomicU8::new(0))?;
        Some((Self::of(source, records, ids), rest))
    }

    /// Makes tables in memory that is zero.
    pub(crate) fn in_tables(source: &impl PageSource, tables: Tables<'m>) -> Option<Self> {
        // SAFETY: both calls: the caller of `Tables::zeroed` promised that it is zero.
        let (records, ids) = unsafe {
            let (records, rest) = place_zeroed(tables.0, source.pages())?;
            let (ids, _) = place_zeroed(rest, source.pages())?;
            (records, ids)
        };
        Some(Self::of(source, records, ids))
    }

    fn of(source: &impl PageSource, records: &'m [SlabRecord], ids: &'m [AtomicU8]) -> Self {
        Self {
            caches: PageCaches {
                ids,
                start: source.start().addr().get(),
                page_shift: source.page_shift(),
            },
            records,
        }
    }

    /// Returns the address of a page, by number.
    #[inline]
    #[must_use]
    pub const fn address_of(&self, page: usize) -> usize {
        self.caches.start + (page << self.caches.page_shift)
    }

    /// Returns the first page of the slab that a page is part of.
    #[inline]
    pub(crate) fn head_of(&self, page: usize) -> usize {
        page - self.records[page].back.get() as usize
    }

    /// Returns the record of the slab that begins at a page.
    #[inline]
    #[must_use]
    pub fn record(&self, page: usize) -> &'m SlabRecord {
        &self.records[page]
    }

    /// Returns the address of the first place of the slab that begins at a page.
    #[inline]
    pub(crate) fn first_of(&self, head: usize) -> usize {
        self.address_of(head) + self.record(head).colour.get() as usize
    }

    /// Makes so many pages from `head` on a slab of `cache`.
    pub fn begin(&self, head: usize, pages: usize, cache: CacheId) {
        for back in 0..pages {
            self.records[head + back].back.set(back as u32);
            // Release: pairs with the acquire in `begins`. Holders of an object of the slab need no
            // ordering; see `cache_of`.
            self.ids[head + back].store(cache, Ordering::Release);
        }
    }

    /// Returns true if a slab of `cache` begins at this page. For callers that hold no object of
    /// it. Unless the caller holds the lock that the slab belongs to, the answer is out of date at
    /// once.
    #[must_use]
    pub fn begins(&self, page: usize, cache: CacheId) -> bool {
        // Acquire: pairs with the release in `begin`, so that the record is the slab's.
        self.ids[page].load(Ordering::Acquire) == cache && self.head_of(page) == page
    }

    /// The pages from `head` on are a slab no longer.
    pub fn end(&self, head: usize, pages: usize) {
        for id in &self.ids[head..head + pages] {
            // Relaxed: the source orders this before the next user of the pages.
            id.store(0, Ordering::Relaxed);
        }
    }
}

impl PageCaches<'_> {
    /// Returns the caches of the pages, for a custom fast path to read: a byte for each of
    /// [`PageCaches::count`] pages, 0 where there is no slab, and behind the
    /// [marked](crate::geometry::Geometry::marked) pages of one.
    #[must_use]
    pub const fn ids(&self) -> *const AtomicU8 {
        self.ids.as_ptr()
    }

    /// Returns the number of pages of the span.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the address of the first page.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Returns the page that an address lies in, by number; `None` outside the span.
    #[inline]
    #[must_use]
    pub fn page_of(&self, address: NonNull<u8>) -> Option<usize> {
        self.page_at(address.addr().get())
    }

    /// Returns the page of an address that is given as a number ([`PageCaches::page_of`]).
    #[inline]
    pub(crate) fn page_at(&self, address: usize) -> Option<usize> {
        // An address below the start wraps to a page far above.
        let page = address.wrapping_sub(self.start) >> self.page_shift;
        (page < self.ids.len()).then_some(page)
    }

    /// Returns which cache an address belongs to; 0 if it lies in no slab, or not in the
    /// [marked](crate::geometry::Geometry::marked) pages of one.
    #[inline]
    #[must_use]
    pub fn cache_of(&self, address: NonNull<u8>) -> CacheId {
        match self.page_of(address) {
            // Relaxed: a caller that frees an object got it from the cache, in ways that carry this
            // store along.
            Some(page) => self.ids[page].load(Ordering::Relaxed),
            None => 0,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_end_with_the_tables() {
        const PAGES: usize = 1000;
        let mut ends = [0, PAGES * 64];
        for (start, end) in [(0, 1), (1, 64), (64, 64), (64, 999), (999, PAGES)] {
            let parts = Tables::parts(PAGES, &(start..end));
            for (part, behind) in parts.into_iter().zip(&mut ends) {
                assert_eq!(part.start, *behind);
                *behind = part.end;
            }
        }
        assert_eq!(ends, [PAGES * 64, PAGES * 65]);
        assert!(ends[1] <= Tables::bytes(PAGES));
    }
}
