//! Other sizes for memory that is in use: how large it is, and `realloc`'s slow path. (Its fast one
//! is [`quick_reallocate`](super::quick_reallocate).)

use core::ptr::NonNull;

use brickyard_slab::sizes::STEP;
use brickyard_slab::sizes::process::{CLASSES, MAX_GENERAL, SIZES};

use super::build::{INSTANCE, built};
use super::life::{self, MayStart};
use super::sampled::{self, sampled};
use super::slow::{enter, free_slow_under_locks};
use super::{BY_LAYOUT, FIRST_GENERAL, alloc, nothing, quick_free};
use crate::hardened::hardened;
use crate::span::RUN_BYTES_MAX;

/// Returns the usable bytes of `memory`; 0 for null. This is `malloc_usable_size`.
#[must_use]
pub fn usable_size(memory: *mut u8) -> usize {
    let (Some(memory), Some(heap)) = (NonNull::new(memory), built()) else {
        return 0;
    };
    if let Some(hardened) = hardened() {
        return hardened.usable_size(heap, memory);
    }
    if let Some(guarded) = sampled().and_then(|sampled| sampled.guarding(memory)) {
        return guarded.usable_size(memory);
    }
    if !heap.span.contains(memory.as_ptr()) && nothing::contains(memory) {
        return 0;
    }
    match heap.slabs.pages().cache_of(memory) {
        cache if cache >= FIRST_GENERAL => SIZES[usize::from(cache - FIRST_GENERAL)] as usize,
        _ => match heap.span.run_at(memory) {
            Some(pages) => pages * heap.span.page_bytes(),
            // Whether inside or not: it only looks.
            None => {
                let _inside = enter(heap);
                INSTANCE.large.bytes_at(memory).unwrap_or(0)
            }
        },
    }
}

/// Allocates `bytes` bytes with the contents of `memory`, as far as they fit. Null if there is no
/// memory; `memory` is then as it was. This is `realloc`, without its special cases.
///
/// # Safety
/// `memory` came from this heap, is not null, and was not freed since. Nobody uses it afterwards,
/// unless this returns null.
#[must_use]
pub unsafe fn reallocate(memory: *mut u8, bytes: usize) -> *mut u8 {
    let had = usable_size(memory);
    if let Some(hardened) = hardened() {
        if let Some((heap, place)) = built().zip(NonNull::new(memory))
            // SAFETY: passed on.
            && let Some(resized) = unsafe { hardened.resize(heap, place, bytes) }
        {
            return resized.as_ptr();
        }
        // SAFETY: passed on.
        return unsafe { copied(memory, had, bytes) };
    }
    if stays(had, bytes) {
        sampled::stays(memory, bytes);
        return memory;
    }
    if had > BY_LAYOUT
        // SAFETY: passed on.
        && let Some(resized) = unsafe { resize_pages(memory, bytes) }
    {
        return resized;
    }
    // SAFETY: passed on.
    unsafe { copied(memory, had, bytes) }
}

/// Returns true if memory of `had` bytes stays where it is for `bytes`: no more than half of what
/// has at most 32 KiB would be wasted, a quarter of what has at most 128, or an eighth of more; or
/// nothing smaller would be found.
#[inline(always)]
pub(super) fn stays(had: usize, bytes: usize) -> bool {
    let part = if had <= BY_LAYOUT {
        2
    } else if had <= MAX_GENERAL {
        4
    } else {
        8
    };
    bytes <= had && (had - bytes <= had / part || size_of_class(bytes) == had)
}

/// Moves memory of `had` bytes into new memory of `bytes` bytes. If there is none, it stays if it
/// is large enough, and else returns null.
///
/// # Safety
/// As [`reallocate`].
unsafe fn copied(memory: *mut u8, had: usize, bytes: usize) -> *mut u8 {
    let new = alloc(bytes);
    if new.is_null() {
        return if bytes <= had { memory } else { new };
    }
    // SAFETY: both have at least so many bytes, and are apart; the old one is not used any more.
    unsafe {
        new.copy_from_nonoverlapping(memory, had.min(bytes));
        // The request above may have started a thread, if one is needed.
        if !quick_free(memory) {
            free_slow_under_locks(memory);
        }
    }
    new
}

/// Returns the bytes that a request of a general size gets.
#[inline]
pub(super) fn size_of_class(bytes: usize) -> usize {
    SIZES[usize::from(CLASSES[bytes.min(MAX_GENERAL).div_ceil(STEP)])] as usize
}

/// Resizes a run or a large block without copying, if that can be done.
#[cold]
unsafe fn resize_pages(memory: *mut u8, bytes: usize) -> Option<*mut u8> {
    let (memory, heap) = (NonNull::new(memory)?, built()?);
    let inside = enter(heap)?;
    if heap.slabs.pages().cache_of(memory) >= FIRST_GENERAL {
        // The pages of an object are its slab's.
        return None;
    }
    if let Some(pages) = heap.span.run_at(memory) {
        let fewer = bytes.div_ceil(heap.span.page_bytes());
        // SAFETY: passed on: nobody uses the tail.
        let cut = bytes > BY_LAYOUT && fewer < pages && unsafe { heap.span.cut_run(memory, fewer) };
        drop(inside);
        if cut {
            sampled::stays(memory.as_ptr(), bytes);
            life::has_shrunk(heap, MayStart::Thread);
        }
        return cut.then_some(memory.as_ptr());
    }
    if bytes <= RUN_BYTES_MAX {
        return None;
    }
    // SAFETY: passed on.
    let resize = || unsafe { INSTANCE.large.resize(memory, bytes) };
    let resized = match sampled() {
        Some(sampled) => sampled.resizing(memory, bytes, resize),
        None => resize(),
    };
    resized.map(NonNull::as_ptr)
}
