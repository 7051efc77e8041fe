//! `malloc` and `free` where they are hits, in Rust.

use core::ffi::c_void;

use brickyard_heap as heap;

use super::slow;

/// Memory for `bytes` bytes, aligned to 16.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let memory = heap::quick(bytes);
    if memory.is_null() {
        return slow(bytes);
    }
    memory.cast()
}

/// Takes memory back; null is nothing.
///
/// # Safety
/// It came from this library and was not freed since, or is null; nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: passed on, both.
    unsafe {
        if !heap::quick_free(memory.cast()) {
            // Nothing says whether the loader called.
            heap::free_slow_under_locks(memory.cast());
        }
    }
}
