//! What is known of each page of the span: whose slab it is part of, in a byte; and a record of 64
//! bytes for each slab, at its first page.
//!
//! Both lie in the embedder's memory, beside the pages: objects are packed without a header, and
//! nothing here is lost when a program writes past the end of an object. A record is guarded by the
//! lock of the list that owns the slab. Zero means no slab, so memory that is zero already need not
//! be written.

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

use brickyard_sync::{AtomicU8, GuardedU32, GuardedU64, Ordering, Zeroable, place, place_zeroed};

use crate::layout::CacheId;
use crate::source::PageSource;

/// What is known of a slab. A line of a CPU's cache to itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SlabRecord {
    /// Which of its objects are free, a bit each. A design that knows otherwise has these words for
    /// what it keeps of a slab.
    pub free: [GuardedU64; 4],
    /// The slab that the page is part of: how many pages before this one it begins.
    pub(crate) back: GuardedU32,
    /// Objects that are not in the slab: in use, or in queues.
    pub out: GuardedU32,
    /// Links of the list of slabs that have free objects: page number + 1, 0 at the end.
    pub(crate) next: GuardedU32,
    pub(crate) prev: GuardedU32,
    /// Where the first object begins, in bytes from the slab's start.
    pub(crate) colour: GuardedU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SlabRecord>() == 64);

// SAFETY: words alone; zero is a value of each.
unsafe impl Zeroable for SlabRecord {
    const ZERO: Self = Self {
        free: [const { GuardedU64::new(0) }; 4],
        back: GuardedU32::new(0),
        out: GuardedU32::new(0),
        next: GuardedU32::new(0),
        prev: GuardedU32::new(0),
        colour: GuardedU32::new(0),
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

/// Memory for the tables of pages that is zero throughout, as fresh mappings are: none of it is
/// touched before it is needed.
#[derive(Debug)]
pub struct Tables<'m>(&'m mut [MaybeUninit<u8>]);

impl<'m> Tables<'m> {
    /// Bytes for the tables of `pages` pages: 65 a page, and some for alignment. `usize::MAX` if
    /// they are more than can be.
    #[must_use]
    pub const fn bytes(pages: usize) -> usize {
        let tables = pages.saturating_mul(size_of::<SlabRecord>() + size_of::<AtomicU8>());
        tables.saturating_add(align_of::<SlabRecord>() + align_of::<AtomicU8>() - 1)
    }

    /// Memory that is zero.
    ///
    /// # Safety
    /// Every byte of it is 0. (Nobody else can change that any more: it is borrowed for good.)
    #[must_use]
    pub const unsafe fn zeroed(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }
}

impl<'m> Pages<'m> {
    /// Tables in memory of any content, and what is left of it.
    pub(crate) fn in_memory(
        source: &impl PageSource,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<(Self, &'m mut [MaybeUninit<u8>])> {
        let (records, rest) = place(memory, source.pages(), || SlabRecord::ZERO)?;
        let (ids, rest) = place(rest, source.pages(), || AtomicU8::new(0))?;
        Some((Self::of(source, records, ids), rest))
    }

    /// Tables in memory that is zero.
    pub(crate) fn in_tables(source: &impl PageSource, tables: Tables<'m>) -> Option<Self> {
        // SAFETY: both calls: `Tables::zeroed` had the promise that it is zero.
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

    /// The address of a page, by number.
    #[inline]
    #[must_use]
    pub const fn address_of(&self, page: usize) -> usize {
        self.caches.start + (page << self.caches.page_shift)
    }

    /// The first page of the slab that a page is part of.
    #[inline]
    pub(crate) fn head_of(&self, page: usize) -> usize {
        page - self.records[page].back.get() as usize
    }

    /// What is known of the slab that begins at a page.
    #[inline]
    #[must_use]
    pub fn record(&self, page: usize) -> &'m SlabRecord {
        &self.records[page]
    }

    /// The pages from `head` on are a slab of `cache`. Its owner is written already.
    pub(crate) fn begin(&self, head: usize, pages: usize, cache: CacheId) {
        for back in 0..pages {
            self.records[head + back].back.set(back as u32);
            // Release: pairs with the acquire in `begins`. Others have an object of the slab; see
            // `cache_of`.
            self.ids[head + back].store(cache, Ordering::Release);
        }
    }

    /// Does a slab of `cache` begin at this page? For who has no object of it: so long as it does
    /// not hold the lock that the slab would go under, the answer is out of date at once.
    #[must_use]
    pub fn begins(&self, page: usize, cache: CacheId) -> bool {
        // Acquire: pairs with the release in `begin`, so that the record is the slab's.
        self.ids[page].load(Ordering::Acquire) == cache && self.head_of(page) == page
    }

    /// The pages from `head` on are a slab no longer.
    pub(crate) fn end(&self, head: usize, pages: usize) {
        for id in &self.ids[head..head + pages] {
            // Relaxed: the source orders this before whoever has the pages next.
            id.store(0, Ordering::Relaxed);
        }
    }
}

impl PageCaches<'_> {
    /// The caches of the pages, a byte each for [`PageCaches::count`] pages, 0 where there is no
    /// slab: for a fast path of one's own, which reads them.
    #[must_use]
    pub const fn ids(&self) -> *const AtomicU8 {
        self.ids.as_ptr()
    }

    /// Pages of the span.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.ids.len()
    }

    /// The address of the first page.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// The page that an address lies in, by number; `None` outside the span.
    #[inline]
    #[must_use]
    pub fn page_of(&self, address: NonNull<u8>) -> Option<usize> {
        // An address below the start wraps to a page far above.
        let page = address.addr().get().wrapping_sub(self.start) >> self.page_shift;
        (page < self.ids.len()).then_some(page)
    }

    /// Which cache an address belongs to; 0 if it lies in no slab.
    #[inline]
    #[must_use]
    pub fn cache_of(&self, address: NonNull<u8>) -> CacheId {
        match self.page_of(address) {
            // Relaxed: whoever frees an object has it from the cache, by ways that carry this
            // along.
            Some(page) => self.ids[page].load(Ordering::Relaxed),
            None => 0,
        }
    }
}
