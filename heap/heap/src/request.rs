//! The requests of programs: the fast paths, and what they do where these miss.

use core::alloc::Layout;
use core::ptr::null_mut;

use brickyard_slab::sizes::process::SIZES;

use crate::fast_path::{FIRST_GENERAL, cache_of, column_of, hit, is_open, quick, quick_free};
use crate::plain::stays;
use crate::slow_path::{allocate, allocate_aligned, free_slow, free_slow_under_locks};

/// Allocates `bytes` bytes, aligned to 16; null if there is no memory.
#[inline(always)]
#[must_use]
pub fn alloc(bytes: usize) -> *mut u8 {
    let memory = quick(bytes);
    if memory.is_null() {
        return allocate(bytes);
    }
    memory
}

/// Allocates memory for `layout`; null if there is none. Any alignment is kept.
#[inline]
#[must_use]
pub fn alloc_aligned(layout: Layout) -> *mut u8 {
    if let Some(column) = cache_of(layout)
        && is_open()
    {
        // SAFETY: the heap is built, and the column is a general size's.
        let object = unsafe { hit(usize::from(column)) };
        if !object.is_null() {
            return object;
        }
    }
    allocate_aligned(layout)
}

/// Does [`reallocate`](crate::reallocate) if memory and size are of general sizes, and this CPU has
/// what is needed at hand. Otherwise returns null, and the caller has to use
/// [`reallocate`](crate::reallocate).
///
/// # Safety
/// The conditions of [`reallocate`](crate::reallocate), but `memory` may be null.
#[inline(always)]
#[must_use]
pub unsafe fn quick_reallocate(memory: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: passed on.
    let column = unsafe { column_of(memory) };
    let class = column.and_then(|column| column.checked_sub(usize::from(FIRST_GENERAL)));
    let Some(&had) = class.and_then(|class| SIZES.get(class)) else {
        return null_mut();
    };
    let had = had as usize;
    // As `reallocate` does.
    if stays(had, bytes) {
        return memory;
    }
    let new = quick(bytes);
    if !new.is_null() {
        // SAFETY: both have at least so many bytes, and are apart; the old one is not used any
        // more.
        unsafe {
            new.copy_from_nonoverlapping(memory, had.min(bytes));
            if !quick_free(memory) {
                free_slow_under_locks(memory);
            }
        }
    }
    new
}

/// Takes memory back. Null is ignored.
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
