//! Other sizes for memory that is in use: how large it is, and `realloc`'s slow path. (Its fast one
//! is [`quick_reallocate`](crate::quick_reallocate).)

use core::ptr::NonNull;

use crate::fast_path::quick_free;
use crate::instance::built;
use crate::request::alloc;
use crate::slow_path::free_slow_under_locks;

/// Returns the usable bytes of `memory`; 0 for null. This is `malloc_usable_size`.
#[must_use]
pub fn usable_size(memory: *mut u8) -> usize {
    match (NonNull::new(memory), built()) {
        (Some(memory), Some(heap)) => heap.ways.usable_size(heap, memory),
        _ => 0,
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
    let mut more = bytes;
    if let (Some(heap), Some(place)) = (built(), NonNull::new(memory)) {
        // SAFETY: passed on.
        if let Some(resized) = unsafe { heap.ways.resize(heap, place, had, bytes) } {
            return resized.as_ptr();
        }
        more = heap.ways.with_room_to_grow(had, bytes);
    }
    // SAFETY: passed on.
    unsafe { copied(memory, had, bytes, more) }
}

/// Moves memory of `had` bytes into new memory of `more` bytes, or of `bytes` bytes at least. If
/// there is none, it stays if it is large enough, and else returns null.
///
/// # Safety
/// The conditions of [`reallocate`].
unsafe fn copied(memory: *mut u8, had: usize, bytes: usize, more: usize) -> *mut u8 {
    let mut new = alloc(more);
    if new.is_null() && more > bytes {
        new = alloc(bytes);
    }
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
