//! The C library's other names of its functions.
//!
//! The C library exports them too, and some programs call them. What they returned would be foreign
//! to [`free`], so they have to be this library's.

use core::ffi::{c_int, c_void};

use super::{
    calloc, cfree, free, malloc, memalign, posix_memalign, pvalloc, realloc, reallocarray, valloc,
};

/// [`malloc`], by a name that the C library has for itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __libc_malloc(bytes: usize) -> *mut c_void {
    malloc(bytes)
}

/// [`free`], by a name that the C library has for itself.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_free(memory: *mut c_void) {
    // SAFETY: passed on.
    unsafe { free(memory) };
}

/// [`free`], by a name that the C library has for itself.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_cfree(memory: *mut c_void) {
    // SAFETY: passed on.
    unsafe { cfree(memory) };
}

/// [`calloc`], by a name that the C library has for itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void {
    calloc(count, bytes)
}

/// [`realloc`], by a name that the C library has for itself.
///
/// # Safety
/// The conditions of [`realloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { realloc(memory, bytes) }
}

/// [`reallocarray`], by a name that the C library has for itself.
///
/// # Safety
/// The conditions of [`realloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_reallocarray(
    memory: *mut c_void,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { reallocarray(memory, count, bytes) }
}

/// [`memalign`], by a name that the C library has for itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void {
    memalign(align, bytes)
}

/// [`valloc`], by a name that the C library has for itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __libc_valloc(bytes: usize) -> *mut c_void {
    valloc(bytes)
}

/// [`pvalloc`], by a name that the C library has for itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __libc_pvalloc(bytes: usize) -> *mut c_void {
    pvalloc(bytes)
}

/// [`posix_memalign`], by a name that the C library has for itself.
///
/// # Safety
/// The conditions of [`posix_memalign`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __posix_memalign(
    memory: *mut *mut c_void,
    align: usize,
    bytes: usize,
) -> c_int {
    // SAFETY: passed on.
    unsafe { posix_memalign(memory, align, bytes) }
}
