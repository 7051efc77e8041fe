//! What the fast paths read, and the fast paths.
//!
//! **The fast path** is a comparison with the largest general size, a byte of a table, and a
//! restartable sequence on the CPU's row. A free also compares the home of the page with the CPU,
//! and puts what is away from home into a sheaf from which nothing is taken here. It has no call,
//! no lock, no atomic instruction, and no thread-local memory of its own. Before the heap is built,
//! the largest size is "none" and the span has no pages. So every first call takes the slow path,
//! which builds the heap. The fast path needs no check for it.
//!
//! Invariant `built-before-seen`: `limit` and `granules` are written last, by releasing stores, and
//! read first, by acquiring loads. So a thread that sees them above 0 sees the other fields of
//! [`Fast`] in their final state. They are 0 again while a `vfork` lasts (`vfork.rs`).

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use brickyard_arena::rows::{is_alone, number, pop, push, rows_given_up};
use brickyard_slab::sizes::STEP;
use brickyard_slab::sizes::process::{CLASSES, MAX_GENERAL, SINGLE_ABOVE, SIZES, class_of};
use brickyard_slab::{Homes, Pushed};

/// The number of the smallest general size's cache. 0 is "none", and 1 is the cache of sheaves.
pub(crate) const FIRST_GENERAL: u8 = 2;

/// log2 of the size of the pages that have a byte each.
pub const PAGE_SHIFT: u32 = 12;

/// log2 of the bytes that all memory of the heap is a multiple of.
pub const GRANULE_SHIFT: u32 = STEP.trailing_zeros();

/// The distance from a cache's column to that of its objects that are away from home: of pages of
/// which objects were last taken for another CPU.
pub const AWAY: usize = 2 * (SIZES.len() + FIRST_GENERAL as usize);

/// Homes matter for caches below this.
pub const AWAY_BELOW: usize = {
    let mut class = 0;
    while SIZES[class] < Homes::STRIDE_BELOW {
        class += 1;
    }
    FIRST_GENERAL as usize + class
};

/// The column of a request's cache. The index is the request's size in steps of 16 bytes, rounded
/// up.
type Columns = [u8; MAX_GENERAL / STEP + 1];

const fn columns() -> Columns {
    let mut columns = [0; MAX_GENERAL / STEP + 1];
    // None for no bytes: they are not a slab's (`zero_sized.rs`).
    let mut steps = 1;
    while steps < columns.len() {
        columns[steps] = CLASSES[steps] + FIRST_GENERAL;
        steps += 1;
    }
    columns
}

/// Returns the number of the cache that serves `layout`, if a slab does. Slabs keep alignments up
/// to a page, whatever is checked.
#[inline(always)]
pub(crate) const fn cache_of(layout: Layout) -> Option<u8> {
    if layout.align() > 1 << PAGE_SHIFT {
        return None;
    }
    match class_of(layout) {
        Some(class) => Some(FIRST_GENERAL + class as u8),
        None => None,
    }
}

/// Memory of at most so many bytes may be freed by its layout alone: it is of the cache that serves
/// the layout. What is larger may be pages instead (zeros, or where there is no object), and is
/// freed by what its page says.
pub(crate) const BY_LAYOUT: usize = SINGLE_ABOVE;

/// Returns the number of the cache of which memory for `layout` is surely.
#[inline(always)]
pub(crate) const fn cache_by_layout(layout: Layout) -> Option<u8> {
    if layout.size() > BY_LAYOUT {
        return None;
    }
    cache_of(layout)
}

/// The data of the fast paths. It is constant once the heap is built. It is public for fast paths
/// in assembly, which know its fields by their offsets.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fast {
    /// The offset of a thread's area from the thread pointer.
    pub(crate) area: AtomicIsize,
    /// The CPUs' rows, 64 KiB apart.
    pub(crate) rows: AtomicPtr<AtomicUsize>,
    /// The fast path serves sizes below this; 0 before the heap is built.
    pub(crate) limit: AtomicUsize,
    /// The start of the span.
    pub(crate) start: AtomicUsize,
    /// The number of its steps of 16 bytes; 0 before the heap is built. What is freed is a multiple
    /// of them: its offset, rotated so that the lower four bits come first, is below this.
    pub(crate) granules: AtomicUsize,
    /// The caches of its pages, a byte each.
    pub(crate) ids: AtomicPtr<AtomicU8>,
    /// The homes of its pages, a byte each; null where pages are larger than [`PAGE_SHIFT`] says,
    /// and in the hardened heap.
    pub(crate) homes: AtomicPtr<AtomicU8>,
    /// A byte that is not 0 while the process has one thread.
    pub(crate) alone: AtomicPtr<AtomicU8>,
    /// The columns lie here so that one address serves for everything.
    columns: Columns,
}

impl Fast {
    /// The offset of each field, in bytes.
    pub const AREA: usize = offset_of!(Self, area);
    /// See [`Fast::AREA`].
    pub const ROWS: usize = offset_of!(Self, rows);
    /// See [`Fast::AREA`].
    pub const LIMIT: usize = offset_of!(Self, limit);
    /// See [`Fast::AREA`].
    pub const START: usize = offset_of!(Self, start);
    /// See [`Fast::AREA`].
    pub const GRANULES: usize = offset_of!(Self, granules);
    /// See [`Fast::AREA`].
    pub const IDS: usize = offset_of!(Self, ids);
    /// See [`Fast::AREA`].
    pub const HOMES: usize = offset_of!(Self, homes);
    /// See [`Fast::AREA`].
    pub const ALONE: usize = offset_of!(Self, alone);
    /// See [`Fast::AREA`].
    pub const COLUMNS: usize = offset_of!(Self, columns);
}

/// The heap's own.
pub static FAST: Fast = Fast {
    area: AtomicIsize::new(0),
    rows: AtomicPtr::new(null_mut()),
    limit: AtomicUsize::new(0),
    start: AtomicUsize::new(0),
    granules: AtomicUsize::new(0),
    ids: AtomicPtr::new(null_mut()),
    homes: AtomicPtr::new(null_mut()),
    alone: AtomicPtr::new(null_mut()),
    columns: columns(),
};

/// Takes the last object of this CPU's sheaf in `column`; null if it has none.
///
/// # Safety
/// The heap is built, and `column` is the number of a general size's cache, or 0.
#[inline(always)]
pub(crate) unsafe fn hit(column: usize) -> *mut u8 {
    // Relaxed: `built-before-seen`.
    let area = FAST.area.load(Ordering::Relaxed);
    let rows = FAST.rows.load(Ordering::Relaxed);
    // SAFETY: the heap's rows are made for the area's numbers, and are as far apart as `pop`
    // requires. Their words are tops (`top-in-sheaf`).
    unsafe { pop(area, (rows, ()), column) }
}

/// Does [`hit`] for slow paths, which a thread without a row takes too: null for that.
///
/// # Safety
/// The conditions of [`hit`].
#[inline(always)]
pub(crate) unsafe fn hit_slowly(column: usize) -> *mut u8 {
    if rows_given_up() > 0 {
        return null_mut();
    }
    // SAFETY: passed on.
    unsafe { hit(column) }
}

/// Does [`put`] for slow paths: false for a thread without a row.
///
/// # Safety
/// The conditions of [`put`].
#[inline(always)]
pub(crate) unsafe fn put_slowly(column: usize, object: *mut u8) -> bool {
    // SAFETY: passed on.
    rows_given_up() == 0 && unsafe { put(column, object) }
}

/// Returns the distance to the column that takes an object of the cache in `column` here: [`AWAY`]
/// if its page is at home on another CPU and the process has several threads, and else 0. Every
/// free by a fast path asks this, so that a second free of an object meets the first.
///
/// # Safety
/// The conditions of [`put`].
#[inline(always)]
pub(crate) unsafe fn away(column: usize, object: *mut u8) -> usize {
    // Relaxed, all: `built-before-seen`; and a home is a hint.
    let homes = FAST.homes.load(Ordering::Relaxed);
    if column >= AWAY_BELOW || homes.is_null() {
        return 0;
    }
    let start = FAST.start.load(Ordering::Relaxed);
    let page = object.addr().wrapping_sub(start) >> PAGE_SHIFT;
    // SAFETY: an object is in the span, each page of which has a byte.
    let home = unsafe { (*homes.add(page)).load(Ordering::Relaxed) };
    // SAFETY: the area is that of the heap's CPUs.
    let here = unsafe { number(FAST.area.load(Ordering::Relaxed)) };
    if home == here as u8 || is_alone() {
        0
    } else {
        AWAY
    }
}

/// Puts an object on this CPU's sheaf in `column`, or on that of what is away from home. False if
/// it has to take the slow path.
///
/// # Safety
/// The conditions of [`hit`]. The object is one of that cache, or of any cache if the column is
/// closed (0). It was not freed since it was handed out, and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn put(column: usize, object: *mut u8) -> bool {
    // SAFETY: passed on, both; where there are homes, caches have both columns.
    unsafe { put_in(column + away(column, object), object) }
}

/// Puts an object on this CPU's sheaf in `column`, in a heap whose pages have no homes. False if it
/// has to take the slow path.
///
/// # Safety
/// The conditions of [`put`].
#[inline(always)]
pub(crate) unsafe fn put_in(column: usize, object: *mut u8) -> bool {
    // Relaxed: `built-before-seen`.
    let area = FAST.area.load(Ordering::Relaxed);
    let rows = FAST.rows.load(Ordering::Relaxed);
    // SAFETY: as in `hit`.
    unsafe { push(area, (rows, ()), column, object) == Pushed::Done }
}

/// Returns true if the heap is built, and is not the hardened one: its fast paths are open.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    // Acquire: `built-before-seen`.
    FAST.limit.load(Ordering::Acquire) != 0
}

/// Allocates `bytes` bytes, aligned to 16, if this CPU has a free object at hand. Otherwise returns
/// null, and the caller has to use [`allocate`](crate::allocate).
#[inline(always)]
#[must_use]
pub fn quick(bytes: usize) -> *mut u8 {
    // Acquire: `built-before-seen`.
    if bytes >= FAST.limit.load(Ordering::Acquire) {
        return null_mut();
    }
    // SAFETY: a size below `limit` is at most the largest general size, so the index is in the
    // table.
    let column = unsafe {
        *FAST
            .columns
            .get_unchecked((bytes + (STEP - 1)) >> STEP.trailing_zeros())
    };
    // SAFETY: the heap is built (`built-before-seen`).
    unsafe { hit(usize::from(column)) }
}

/// Takes memory back if this CPU has room for it at hand. Otherwise returns false, and the caller
/// has to use [`free_slow`](crate::free_slow).
///
/// # Safety
/// It came from this heap and was not freed since, or it is null. If this returns true, nobody uses
/// it any more.
#[inline(always)]
pub unsafe fn quick_free(memory: *mut u8) -> bool {
    // SAFETY: passed on.
    let Some(column) = (unsafe { column_of(memory) }) else {
        return false;
    };
    // SAFETY: the heap is built. The rest is the caller's promise.
    unsafe { put(column, memory) }
}

/// Returns the number of the cache that memory is an object of, or 0 for a run of pages. `None`: it
/// is not of the span, or not a multiple of 16 bytes, or the fast paths are closed.
///
/// # Safety
/// It came from this heap and was not freed since, or it is null.
#[inline(always)]
pub(crate) unsafe fn column_of(memory: *mut u8) -> Option<usize> {
    // Relaxed: the start changes only while there are no pages.
    let offset = memory
        .addr()
        .wrapping_sub(FAST.start.load(Ordering::Relaxed));
    let granule = offset.rotate_right(GRANULE_SHIFT);
    // Acquire: `built-before-seen`.
    if granule >= FAST.granules.load(Ordering::Acquire) {
        return None;
    }
    let page = granule >> (PAGE_SHIFT - GRANULE_SHIFT);
    let ids = FAST.ids.load(Ordering::Relaxed).cast::<u8>();
    // SAFETY: the page is one of the span's, each of which has a byte. Nothing writes it while an
    // object of its slab is in use, as this one is. So a plain load reads it.
    Some(usize::from(unsafe { ids.add(page).read() }))
}
