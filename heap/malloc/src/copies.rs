//! `memcpy` and `memmove` that stay within the memory of the hardened heap. Only a library that was
//! built hardened has them: they cost every copy a look at the heap's tables.
//!
//! The copying is one instruction of the processor. A copy in Rust would call this `memcpy`.

use core::arch::asm;
use core::ffi::c_void;

use brickyard_heap as heap;

/// Copies `bytes` bytes. Ends the process with a line if memory of the heap is too short for that,
/// on either side, or is free.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    check(to, from, bytes);
    // SAFETY: passed on.
    unsafe { forwards(to, from, bytes) };
    to
}

/// As [`memcpy`], for memory that may overlap.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    check(to, from, bytes);
    // SAFETY: passed on; backwards if the start of the target lies in the source.
    unsafe {
        if to.addr().wrapping_sub(from.addr()) < bytes {
            backwards(to, from, bytes);
        } else {
            forwards(to, from, bytes);
        }
    }
    to
}

fn check(to: *mut c_void, from: *const c_void, bytes: usize) {
    heap::check_range(to.cast(), bytes);
    heap::check_range(from.cast_mut().cast(), bytes);
}

/// # Safety
/// As `memcpy` of C.
#[inline(always)]
unsafe fn forwards(to: *mut c_void, from: *const c_void, bytes: usize) {
    // SAFETY: the caller's promise. The direction flag is clear, as every function finds it.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As `memmove` of C, with more than no bytes.
unsafe fn backwards(to: *mut c_void, from: *const c_void, bytes: usize) {
    // SAFETY: the caller's promise. The direction flag is clear again afterwards.
    unsafe {
        asm!("std", "rep movsb", "cld",
            inout("rdi") to.wrapping_byte_add(bytes - 1) => _,
            inout("rsi") from.wrapping_byte_add(bytes - 1) => _,
            inout("rcx") bytes => _, options(nostack));
    }
}
