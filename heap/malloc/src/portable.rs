//! The fast paths of `malloc` and `free`, and of C++'s `new` and `delete`, in Rust.

use core::arch::naked_asm;
use core::ffi::c_void;

use brickyard_heap as heap;

use super::cplusplus::{Nothrow, here, new_or_null_slow, new_slow};
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

#[inline(always)]
unsafe fn give_back(memory: *mut c_void) {
    // SAFETY: passed on, both.
    unsafe {
        if !heap::quick_free(memory.cast()) {
            // Nothing tells whether the loader called.
            heap::free_slow_under_locks(memory.cast());
        }
    }
}

/// Takes memory back. Null is ignored.
///
/// # Safety
/// It came from this library and was not freed since, or is null. Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: passed on.
    unsafe { give_back(memory) };
}

/// `operator new(size_t)`: a [`malloc`] whose misses end in C++'s way.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(super) extern "C-unwind" fn _Znwm(bytes: usize) -> *mut c_void {
    naked_asm!(here!("_Znwm"), "b {}", sym new)
}

extern "C-unwind" fn new(bytes: usize) -> *mut c_void {
    let memory = heap::quick(bytes);
    if memory.is_null() {
        return new_slow(bytes);
    }
    memory.cast()
}

/// The way of `operator new` that throws nothing; it is told so by a second argument.
pub(super) extern "C" fn new_or_null(bytes: usize, tag: Nothrow) -> *mut c_void {
    let memory = heap::quick(bytes);
    if memory.is_null() {
        return new_or_null_slow(bytes, tag);
    }
    memory.cast()
}

/// `operator delete(void*)`.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn _ZdlPv(memory: *mut c_void) {
    naked_asm!(here!("_ZdlPv"), "b {}", sym free)
}

/// `operator delete(void*, align_val_t)`.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn _ZdlPvSt11align_val_t(memory: *mut c_void, _align: usize) {
    // SAFETY: passed on.
    unsafe { give_back(memory) };
}
