//! The pages of a heap: one reservation of addresses, managed by this library's own page allocator.
//!
//! Addresses cost nothing, so many are reserved at once. One subtraction then tells whether an
//! address is in the span. The span is divided into **zones** of 1 GiB, each a lock-free bitmap
//! store. A zone's metadata is built when the zones before it cannot serve. The zone gets its
//! memory in steps, small ones at first, so a small program touches little of it. Only what zones
//! have got, and what the tables hold of it, can be written (`mprotect`). The rest counts neither
//! where memory is counted strictly nor towards a limit of data (`RLIMIT_DATA`).
//!
//! A block is a power of two of pages. A **run** is any number of pages up to 2 MiB: it takes the
//! smallest block that holds it, and the tail is freed again at once.
//!
//! **Idle pages** are free but may have memory, since they have been in use. Each page has two
//! bits: for that, and for being free (`idle.rs`). [`Span::release_idle`] gives them back to the system. A caller that frees,
//! or takes others, does so too, when they are more than `surplus.rs` allows.
//!
//! Pages that were freed a moment ago are **warm** (`warm.rs`): they serve the next request of
//! their length as they are. A run that finds none is looked for in free pages side by side, idle
//! ones rather than others (`reuse.rs`).
//!
//! Invariant `in-span`: what a zone hands out is a page of the span, by number. The pages of zone
//! `z` begin at `z` times its length. The region and the tables live as long as the span, and all
//! references to them are inside it.

mod idle;
mod layout;
mod limit;
mod reuse;
mod runs;
mod warm;
mod zones;

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;

use brickyard::sync::{Locked, TestAndSetLock};
use brickyard::{Context, Frame, Mobility, Order, Platform, Request, ZoneKind};
use brickyard_arena::rows::Cpus;
use brickyard_arena::{MapError, Region, Threads, page_bytes};
use brickyard_slab::{PageAsk, PageSource};

pub(crate) use layout::Layout;
use warm::{Warm, WarmKind};

/// The longest run of pages, in bytes, and the largest block: 2 MiB.
pub const RUN_BYTES_MAX: usize = 2 << 20;

/// The least and the usual length of a span, in bytes.
pub const SPAN_BYTES: (usize, usize) = (4 << 20, 256 << 30);

/// The largest length of a span, in bytes: 16 TiB less one zone.
const SPAN_BYTES_MAX: usize = ZONES * ZONE_BYTES;

/// Slabs can number its pages, even with the smallest pages of a system, 4 KiB.
const _: () = assert!(SPAN_BYTES_MAX >> 12 <= brickyard_slab::MAX_PAGES);

/// The span's start is a multiple of this.
const SPAN_ALIGN: usize = 4 << 20;

const ZONE_BYTES: usize = 1 << 30;

/// The most zones of a span: 16 TiB would be one page of 4 KiB more than slabs can number.
const ZONES: usize = (16 << 10) - 1;

/// The contents of memory that has just been allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Whatever its last user left.
    Anything,
    /// Zeros; the memory has not been touched.
    Zeros,
}

/// Pages of a heap, as a source of slabs and as runs: one reservation of addresses, managed by this
/// library's page allocator in zones of 1 GiB.
///
/// [`Span::release_idle`] gives free pages that have memory back to the system. A caller that frees
/// does so too, a little at a time, when they are more than an eighth of what is in use, and more
/// than 16 MiB. Half of what is in use, or 32 MiB, may stay on top, if as much was in use lately.
pub struct Span {
    region: Region,
    /// Zones with their metadata, then two bits per page, then a length per page, then a warm one's
    /// next, then a word per group of pages.
    tables: Region,
    /// The tables of the slabs in it, if there are any.
    slab_tables: Option<Region>,
    layout: Layout,
    /// The number of zones that are built.
    zones: AtomicUsize,
    /// The number of pages that zones have got.
    grown: AtomicUsize,
    /// The number of pages that have addresses: all, until some are given up.
    limit: AtomicUsize,
    /// Is told of each change of it.
    limited: Option<fn(usize)>,
    growing: Locked<TestAndSetLock, ()>,
    counts: Counts,
    warm: Warm,
    /// Which CPU a caller is on; `None`: all share a shelf of warm pages.
    cpus: Option<Cpus>,
    /// What is added to its pages, where the heap is the hardened one. None are warm then.
    guard: Option<&'static dyn Guard>,
}

/// The words that every request changes that goes to the zones.
#[derive(Debug)]
#[repr(align(128))]
struct Counts {
    /// Pages in use, and warm ones.
    in_use: AtomicUsize,
    /// The most pages that were in use since the last [`Span::begin_round`].
    most: AtomicUsize,
    /// Pages that are free and may have memory.
    idle: AtomicUsize,
    /// Idle bytes that are kept, whatever their age.
    kept_idle: AtomicUsize,
    /// The group from which on a run of idle pages is looked for.
    reused: AtomicUsize,
    /// Held by a caller that gives memory back.
    releasing: Locked<TestAndSetLock, ()>,
    /// The block at which the last such call stopped.
    cursor: AtomicUsize,
    /// The bytes in use and idle at the last [`Span::begin_round`], folded into a word.
    last_round: AtomicUsize,
    /// Bytes that stay idle in this round, and those that are still to be given back in it: none
    /// when it is over.
    stays: AtomicUsize,
    due: AtomicUsize,
}

/// What the hardened heap adds to the pages of its span.
pub(crate) trait Guard: Sync {
    /// Makes what belongs to a part of the span writable, in bytes from its start; the part begins
    /// where the last one ended. False if the system refuses.
    fn commit(&self, part: Range<usize>) -> bool;

    /// Gives up what belongs to a part of the span whose addresses are about to be given up.
    fn give_up(&self, part: Range<usize>);

    /// Gets it back. False if others have those addresses, or if the system refuses.
    fn regain(&self, part: Range<usize>) -> bool;

    /// Makes pages ready for a slab.
    ///
    /// # Safety
    /// They are whole pages of the span, and the caller's.
    unsafe fn prepare(&self, first: NonNull<u8>, bytes: usize, contents: Contents);
}

/// Reserved addresses of a span and of its tables.
#[derive(Debug)]
pub(crate) struct Reserved {
    region: Region,
    tables: Region,
    pub(crate) layout: Layout,
}

impl Reserved {
    /// Reserves them as [`Span::reserve`] says.
    pub(crate) fn new(bytes: usize) -> Result<Self, MapError> {
        let (least, _) = SPAN_BYTES;
        let mut bytes = bytes.clamp(least, SPAN_BYTES_MAX).next_multiple_of(least);
        if bytes > ZONE_BYTES {
            bytes = bytes.next_multiple_of(ZONE_BYTES);
        }
        loop {
            match Self::of(bytes) {
                Ok(reserved) => return Ok(reserved),
                Err(_) if bytes > least => bytes = half_of(bytes),
                Err(source) => return Err(MapError::Refused { bytes, source }),
            }
        }
    }

    fn of(bytes: usize) -> io::Result<Self> {
        let layout = Layout::new(bytes, page_bytes());
        Ok(Self {
            region: Region::map_addresses(bytes, SPAN_ALIGN)?.not_in_dumps(),
            tables: Region::map_zeros(layout.table_bytes, 1)?.not_in_dumps(),
            layout,
        })
    }

    /// Returns where the span will begin.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.region.start()
    }

    /// Returns the length of the span in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

impl Span {
    /// Reserves a span of `bytes` bytes, rounded up to a multiple of 4 MiB, or of 1 GiB if that is
    /// more than 1 GiB. If the system does not give as much (`ulimit -v`, or `2` in
    /// `/proc/sys/vm/overcommit_memory`), it reserves half of that, or a quarter, and so on, down
    /// to 4 MiB. Makes some system calls.
    ///
    /// # Errors
    /// [`MapError::Refused`], if not even 4 MiB can be had.
    pub fn reserve(bytes: usize) -> Result<Self, MapError> {
        let mut place = MaybeUninit::uninit();
        Self::build_in(&mut place, Reserved::new(bytes)?, None, None, None, None);
        // SAFETY: just built there.
        Ok(unsafe { place.assume_init() })
    }

    /// Builds a span of reserved addresses where it stays, since it is large for a stack: with the
    /// tables of the slabs that will be in it, from [`Region::map_zeros`], if there will be any.
    /// They become writable as it grows.
    #[inline(never)]
    pub(crate) fn build_in<'p>(
        place: &'p mut MaybeUninit<Self>,
        reserved: Reserved,
        slab_tables: Option<Region>,
        cpus: Option<Cpus>,
        guard: Option<&'static dyn Guard>,
        limited: Option<fn(usize)>,
    ) -> &'p mut Self {
        place.write(Self {
            region: reserved.region,
            tables: reserved.tables,
            slab_tables,
            layout: reserved.layout,
            limit: AtomicUsize::new(reserved.layout.pages),
            limited,
            zones: AtomicUsize::new(0),
            grown: AtomicUsize::new(0),
            growing: Locked::new(()),
            counts: Counts {
                in_use: AtomicUsize::new(0),
                most: AtomicUsize::new(0),
                idle: AtomicUsize::new(0),
                kept_idle: AtomicUsize::new(0),
                reused: AtomicUsize::new(0),
                releasing: Locked::new(()),
                cursor: AtomicUsize::new(0),
                last_round: AtomicUsize::new(0),
                stays: AtomicUsize::new(0),
                due: AtomicUsize::new(0),
            },
            warm: Warm::new(),
            cpus,
            guard,
        })
    }

    /// Lets callers on different CPUs keep pages that were freed a moment ago in different places.
    #[must_use]
    pub fn with_cpus(self, cpus: Cpus) -> Self {
        Self {
            cpus: Some(cpus),
            ..self
        }
    }

    /// Returns the size of a page, in bytes.
    #[must_use]
    pub const fn page_bytes(&self) -> usize {
        1 << self.layout.page_shift
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layout.pages << self.layout.page_shift
    }

    /// Returns the bytes that zones have got so far: no more were ever in use.
    #[must_use]
    pub fn usable_bytes(&self) -> usize {
        // Relaxed: a hint.
        self.grown.load(Ordering::Relaxed) << self.layout.page_shift
    }

    /// Returns the bytes in use. A hint while others are at work.
    #[must_use]
    pub fn bytes_in_use(&self) -> usize {
        let pages = self.counted_pages().saturating_sub(self.warm.pages());
        pages << self.layout.page_shift
    }

    /// Returns true if an address lies in the span.
    #[inline]
    #[must_use]
    pub fn contains(&self, byte: *const u8) -> bool {
        byte.addr().wrapping_sub(self.region.start().addr().get())
            < self.limit() << self.layout.page_shift
    }

    fn page_of(&self, byte: NonNull<u8>) -> usize {
        let offset = byte.addr().get() - self.region.start().addr().get();
        offset >> self.layout.page_shift
    }

    fn address_of(&self, page: usize) -> NonNull<u8> {
        self.region.at(page << self.layout.page_shift)
    }

    // ---- requests ----

    /// Finds a free block and returns its first page. It is not accounted yet.
    fn find(&self, request: &Request) -> Option<usize> {
        loop {
            // Relaxed: a hint of whether another thread has grown the span since.
            let grown = self.grown.load(Ordering::Relaxed);
            for index in 0..self.zones() {
                let zone = self.zone(index);
                if zone.free_frames() >= request.order.frames()
                    && let Ok(frame) = zone.alloc(request)
                {
                    return Some(frame.number());
                }
            }
            let more = {
                let _held = self.growing.lock(|| Threads.relax());
                self.grown.load(Ordering::Relaxed) != grown || self.grow()
            };
            if !more {
                return self.find_behind_release(request);
            }
        }
    }

    /// Searches again under the lock of the threads that give memory back. These hold some free
    /// pages for a moment, so a request must not be refused before they are done.
    #[cold]
    fn find_behind_release(&self, request: &Request) -> Option<usize> {
        let _held = self.counts.releasing.lock(|| Threads.relax());
        self.cool_all();
        let found = (0..self.zones()).find_map(|index| self.zone(index).alloc(request).ok());
        Some(found?.number())
    }

    fn request(order: Order, mobility: Mobility, context: Context) -> Request {
        Request::new(order, mobility)
            .from_zones_up_to(ZoneKind::Normal)
            .in_context(context)
    }

    fn take_block(
        &self,
        order: Order,
        mobility: Mobility,
        context: Context,
    ) -> Option<NonNull<u8>> {
        if order.frames() > RUN_BYTES_MAX >> self.layout.page_shift {
            return None;
        }
        if self.guard.is_none()
            && mobility == Mobility::Unmovable
            && let Some((page, _)) = self.take_warm(WarmKind::Block, order.frames(), order.frames())
        {
            return Some(self.address_of(page));
        }
        let page = self.find(&Self::request(order, mobility, context))?;
        let contents = self.now_in_use(page, order.frames());
        if contents == Contents::Zeros {
            self.release_in_passing(order.frames(), contents);
        }
        let first = self.address_of(page);
        if let Some(guard) = self.guard {
            // SAFETY: just taken, whole pages.
            unsafe { guard.prepare(first, order.frames() << self.layout.page_shift, contents) };
        }
        Some(first)
    }
}

/// Returns half of so many bytes: whole zones if that is more than one, and else what a span can
/// be.
fn half_of(bytes: usize) -> usize {
    let half = bytes / 2;
    if half > ZONE_BYTES {
        half / ZONE_BYTES * ZONE_BYTES
    } else {
        half.next_multiple_of(SPAN_BYTES.0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span")
            .field("start", &self.region.start())
            .field("bytes", &self.bytes())
            .field("in_use", &self.bytes_in_use())
            .field("idle", &self.idle_bytes())
            .finish_non_exhaustive()
    }
}

// SAFETY: `in-span`: zones hand out each page to one owner, in blocks aligned to their size by
// number, and runs, which are parts of such blocks, by whole pages. The span's start is aligned to
// the largest block. What zones have got can be read and written.
unsafe impl PageSource for Span {
    fn start(&self) -> NonNull<u8> {
        self.region.start()
    }

    fn pages(&self) -> usize {
        self.layout.pages
    }

    fn page_shift(&self) -> u32 {
        self.layout.page_shift
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        if ask.node.is_some_and(|node| node != 0) {
            return None;
        }
        self.take_block(ask.order, ask.mobility, ask.context)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let page = self.page_of(first);
        if self.guard.is_none() && self.keep_warm(WarmKind::Block, page, order.frames()) {
            return;
        }
        self.now_idle(page, order.frames());
        let given = self.zone_of(page).free(Frame::new(page), order);
        debug_assert!(given.is_ok(), "pages of a slab: {given:?}");
        self.release_surplus(order.frames());
    }

    fn take_part(&self, ask: PageAsk, pages: usize) -> Option<NonNull<u8>> {
        if ask.node.is_some_and(|node| node != 0) {
            return None;
        }
        if pages == ask.order.frames() {
            return self.take(ask);
        }
        // The hardened heap prepares pages of slabs, and has runs for such objects.
        debug_assert!(self.guard.is_none());
        // A warm run may be longer, by an eighth at most. To cut it would cost more than it saves:
        // its tail would seldom serve anybody.
        self.take_run(pages).map(|(first, _)| first)
    }

    unsafe fn give_part(&self, first: NonNull<u8>, order: Order, pages: usize) {
        if pages == order.frames() {
            // SAFETY: passed on: taken as a block.
            return unsafe { self.give(first, order) };
        }
        // SAFETY: passed on: taken as a run.
        let given = unsafe { self.give_run(first) };
        debug_assert!(given, "pages of a slab are a run");
    }
}

// SAFETY: as above: it is the same span.
unsafe impl PageSource for &Span {
    fn start(&self) -> NonNull<u8> {
        (**self).start()
    }

    fn pages(&self) -> usize {
        (**self).pages()
    }

    fn page_shift(&self) -> u32 {
        (**self).page_shift()
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        (**self).take(ask)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        // SAFETY: passed on.
        unsafe { (**self).give(first, order) }
    }

    fn take_part(&self, ask: PageAsk, pages: usize) -> Option<NonNull<u8>> {
        (**self).take_part(ask, pages)
    }

    unsafe fn give_part(&self, first: NonNull<u8>, order: Order, pages: usize) {
        // SAFETY: passed on.
        unsafe { (**self).give_part(first, order, pages) }
    }
}

#[cfg(test)]
mod tests;
