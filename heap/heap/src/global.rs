//! The heap as Rust's global allocator.

use core::alloc::{GlobalAlloc, Layout};

use crate::fast_path::{BY_LAYOUT, cache_by_layout, hit, is_open, put};
use crate::request::{alloc_aligned, free};
use crate::resize::reallocate;
use crate::slow_path::{allocate_by_layout, allocate_zeroed_aligned, free_slow};

/// The heap of the process, for `#[global_allocator]`.
///
/// A free knows its layout, and so, up to 32 KiB, the cache of its size: it reads no table. Where
/// sizes are constants, so is the column in the row.
///
/// ```
/// #[global_allocator]
/// static HEAP: brickyard_heap::Global = brickyard_heap::Global;
///
/// let numbers: Vec<u64> = (0..1000).collect();
/// assert_eq!(numbers.iter().sum::<u64>(), 499_500);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Global;

// SAFETY: the heap's memory belongs to its caller alone until it is freed. It has at least the
// layout's size, and is a multiple of its alignment. Nothing here unwinds.
unsafe impl GlobalAlloc for Global {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > BY_LAYOUT {
            return alloc_aligned(layout);
        }
        if let Some(column) = cache_by_layout(layout)
            && is_open()
        {
            // SAFETY: the heap is built, and the column is a general size's.
            let object = unsafe { hit(usize::from(column)) };
            if !object.is_null() {
                return object;
            }
        }
        allocate_by_layout(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // Also what was allocated while fast paths were closed is of the layout's cache.
        if layout.size() > BY_LAYOUT {
            // SAFETY: passed on.
            return unsafe { free(memory) };
        }
        if let Some(column) = cache_by_layout(layout)
            && is_open()
        {
            // SAFETY: the heap is built. The memory was allocated with this layout, so it is of
            // this cache. The rest is the caller's promise.
            if unsafe { put(usize::from(column), memory) } {
                return;
            }
        }
        // SAFETY: passed on.
        unsafe { free_slow(memory) };
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes`, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let (had, wants) = (cache_by_layout(layout), cache_by_layout(wanted));
        if had == wants && had.is_some() && is_open() {
            return memory;
        }
        if is_open() && layout.size() > BY_LAYOUT && bytes > BY_LAYOUT && layout.align() <= 4096 {
            // SAFETY: passed on; both begin at multiples of 4 KiB, and stay so.
            return unsafe { reallocate(memory, bytes) };
        }
        // SAFETY: passed on.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            new
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > BY_LAYOUT {
            return allocate_zeroed_aligned(layout);
        }
        // SAFETY: passed on.
        let memory = unsafe { self.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: the memory has so many bytes, and is this caller's.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }
}
