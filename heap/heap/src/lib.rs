//! The heap of a process: general sizes on slabs, runs of pages, large blocks; one for the whole
//! process.
//!
//! | bytes | where from | found again by |
//! |---|---|---|
//! | up to 32 KiB | a slab of the general size ([`SIZES`](brickyard_slab::sizes::SIZES)) | the byte of its page |
//! | up to 2 MiB | a run of pages of the same span | a word of its first page |
//! | above | a mapping of its own | a table |
//!
//! | file | what it holds |
//! |---|---|
//! | `lib.rs` | what the fast paths read, and the fast paths |
//! | `build.rs` | the heap built at its first use, by whoever comes first |
//! | `slow.rs` | all that is not a hit |
//! | `span/` | the pages of slabs and runs, and what of them goes back to the system |
//! | `large.rs` | mappings of their own |
//! | `life.rs`, `gate.rs`, `background.rs` | fork; what the background thread does, and that thread |
//! | `global.rs` | [`Global`], for `#[global_allocator]` |
//!
//! **The fast path** is a comparison with the largest general size, a byte of a table, and a
//! restartable sequence on the CPU's row: no call, no lock, no atomic instruction, no thread-local
//! memory of its own. Before the heap is built the largest size is "none" and the span has no
//! pages, so every first call takes the slow path, which builds it. The fast path never asks.
//!
//! Invariant `built-before-seen`: `limit` and `pages` are written last, by releasing stores, and
//! read first, by acquiring loads; so who sees them above 0 sees the rest of [`Fast`] as it stays.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod background;
mod build;
mod gate;
mod global;
mod large;
mod life;
mod slow;
mod span;

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use brickyard_arena::rows::{pop, push};
use brickyard_slab::Pushed;
use brickyard_slab::sizes::{CLASSES, MAX_GENERAL, STEP, class_of};

pub use brickyard_slab::sheaf::SHEAF_BYTES;
pub use build::HeapError;
pub use global::Global;
pub use slow::{
    Statistics, allocate, allocate_aligned, allocate_zeroed, free_slow, free_slow_under_locks,
    reallocate, statistics, trim, usable_size,
};
pub use span::{Contents, RUN_BYTES_MAX, SPAN_BYTES, Span};

/// The number of the cache of the smallest general size: behind "none" and the cache of sheaves.
const FIRST_GENERAL: u8 = 2;

/// log2 of the size of the pages that have a byte each.
pub const PAGE_SHIFT: u32 = 12;

/// The column of a request's cache, by its size in steps of 16 bytes, rounded up.
type Columns = [u8; MAX_GENERAL / STEP + 1];

const fn columns() -> Columns {
    let mut columns = [0; MAX_GENERAL / STEP + 1];
    let mut steps = 0;
    while steps < columns.len() {
        columns[steps] = CLASSES[steps] + FIRST_GENERAL;
        steps += 1;
    }
    columns
}

/// The number of the cache that serves `layout`, if a slab does. Slabs keep alignments up to a
/// page, whatever is checked.
#[inline(always)]
const fn cache_of(layout: Layout) -> Option<u8> {
    if layout.align() > 1 << PAGE_SHIFT {
        return None;
    }
    match class_of(layout) {
        Some(class) => Some(FIRST_GENERAL + class as u8),
        None => None,
    }
}

/// What the fast paths read; constant once the heap is built. In the open for fast paths in
/// assembly, which know its fields by their offsets.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fast {
    /// Where a thread's area is, from the thread pointer on.
    area: AtomicIsize,
    /// The rows, 64 KiB apart.
    rows: AtomicPtr<AtomicUsize>,
    /// The fast path serves smaller sizes; 0 before the heap is built.
    limit: AtomicUsize,
    /// Where the span begins.
    start: AtomicUsize,
    /// Its pages; 0 before the heap is built.
    pages: AtomicUsize,
    /// The caches of its pages, a byte each.
    ids: AtomicPtr<AtomicU8>,
    /// Here, so that one address serves for all.
    columns: Columns,
}

impl Fast {
    /// Where each field is, in bytes: as `struct` says them.
    pub const AREA: usize = offset_of!(Self, area);
    /// See [`Fast::AREA`].
    pub const ROWS: usize = offset_of!(Self, rows);
    /// See [`Fast::AREA`].
    pub const LIMIT: usize = offset_of!(Self, limit);
    /// See [`Fast::AREA`].
    pub const START: usize = offset_of!(Self, start);
    /// See [`Fast::AREA`].
    pub const PAGES: usize = offset_of!(Self, pages);
    /// See [`Fast::AREA`].
    pub const IDS: usize = offset_of!(Self, ids);
    /// See [`Fast::AREA`].
    pub const COLUMNS: usize = offset_of!(Self, columns);
}

/// The heap's own.
pub static FAST: Fast = Fast {
    area: AtomicIsize::new(0),
    rows: AtomicPtr::new(null_mut()),
    limit: AtomicUsize::new(0),
    start: AtomicUsize::new(0),
    pages: AtomicUsize::new(0),
    ids: AtomicPtr::new(null_mut()),
    columns: columns(),
};

/// The last object of this CPU's sheaf in `column`; null if it has none.
///
/// # Safety
/// The heap is built, and `column` is the number of a general size's cache, or 0.
#[inline(always)]
unsafe fn hit(column: usize) -> *mut u8 {
    // Relaxed: `built-before-seen`.
    let area = FAST.area.load(Ordering::Relaxed);
    let rows = FAST.rows.load(Ordering::Relaxed);
    // SAFETY: the heap's rows are made for the area's numbers, as far apart as `pop` wants them;
    // their words are tops (`top-in-sheaf`).
    unsafe { pop(area, (rows, ()), column) }
}

/// Puts an object on this CPU's sheaf in `column`; false if it has to go another way.
///
/// # Safety
/// As [`hit`]; the object is one of that cache, or of any where the column is closed (0), was not
/// freed since it was handed out, and nobody uses it any more.
#[inline(always)]
unsafe fn put(column: usize, object: *mut u8) -> bool {
    // Relaxed: `built-before-seen`.
    let area = FAST.area.load(Ordering::Relaxed);
    let rows = FAST.rows.load(Ordering::Relaxed);
    // SAFETY: as in `hit`.
    unsafe { push(area, (rows, ()), column, object) == Pushed::Done }
}

/// Memory for `bytes` bytes, aligned to 16, if this CPU has some at hand; else null, and
/// [`allocate`] is to be asked.
#[inline(always)]
#[must_use]
pub fn quick(bytes: usize) -> *mut u8 {
    // Acquire: `built-before-seen`.
    if bytes >= FAST.limit.load(Ordering::Acquire) {
        return null_mut();
    }
    // SAFETY: below `limit` is at most the largest general size, so the index is in the table.
    let column = unsafe {
        *FAST
            .columns
            .get_unchecked((bytes + (STEP - 1)) >> STEP.trailing_zeros())
    };
    // SAFETY: the heap is built (`built-before-seen`).
    unsafe { hit(usize::from(column)) }
}

/// Memory for `bytes` bytes, aligned to 16; null if there is none.
#[inline(always)]
#[must_use]
pub fn alloc(bytes: usize) -> *mut u8 {
    let memory = quick(bytes);
    if memory.is_null() {
        return allocate(bytes);
    }
    memory
}

/// Takes memory back, if this CPU has room for it at hand; else false, and [`free_slow`] is to be
/// asked.
///
/// # Safety
/// It came from this heap and was not freed since, or is null; if this returns true, nobody uses it
/// any more.
#[inline(always)]
pub unsafe fn quick_free(memory: *mut u8) -> bool {
    // Relaxed: the start may be another only while there are no pages.
    let offset = memory
        .addr()
        .wrapping_sub(FAST.start.load(Ordering::Relaxed));
    let page = offset >> PAGE_SHIFT;
    // Acquire: `built-before-seen`.
    if page >= FAST.pages.load(Ordering::Acquire) {
        return false;
    }
    let ids = FAST.ids.load(Ordering::Relaxed).cast::<u8>();
    // SAFETY: the page is one of the span's, each of which has a byte. It is not written while an
    // object of its slab is in use, as this one is, so a plain load reads it.
    let column = unsafe { ids.add(page).read() };
    // SAFETY: the heap is built; the byte is the number of a cache, or 0, whose column is closed;
    // the caller's promise.
    unsafe { put(usize::from(column), memory) }
}

/// Takes memory back; null is nothing.
///
/// # Safety
/// It came from this heap and was not freed since, and nobody uses it any more.
#[inline(always)]
pub unsafe fn free(memory: *mut u8) {
    // SAFETY: passed on, both.
    unsafe {
        if !quick_free(memory) {
            free_slow(memory);
        }
    }
}

#[cfg(test)]
mod tests;
