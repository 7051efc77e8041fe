//! The fast paths of `malloc` and `free`, in Rust.

use core::ffi::c_void;

use brickyard_heap as heap;

use super::slow;

/// Allocates `bytes` bytes, aligned to 16.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let memory = heap::quick(bytes);
    if memory.is_null() {
        return slow(bytes);
    }
    memory.cast()
}

/// Takes memory back. Null is ignored.
///
/// # Safety
/// It came from this library and was not freed since, or is null. Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: passed on, both.
    unsafe {
        if !heap::quick_free(memory.cast()) {
            // Nothing tells whether the loader called.
            heap::free_slow_under_locks(memory.cast());
        }
    }
}
