//! `malloc` and its family over Brickyard's heap, as a library to be loaded before others:
//! `LD_PRELOAD=libbrickyard_malloc.so PROGRAM`.
//!
//! | function | standard |
//! |---|---|
//! | `malloc`, `calloc`, `realloc`, `free`, `aligned_alloc` | C |
//! | `free_sized`, `free_aligned_sized` | C23 |
//! | `posix_memalign`, `reallocarray` | POSIX |
//! | `memalign`, `valloc`, `pvalloc`, `cfree`, `malloc_usable_size`, `malloc_trim` | the C library's own |
//! | `mallinfo`, `mallinfo2`, `malloc_stats`, `malloc_info`, `mallopt` | the C library's own: `mallinfo.rs` |
//! | `__libc_malloc`, `__libc_free` and the like | the C library's other names: `aliases.rs` |
//! | `vfork` | POSIX of 2001: `vfork.rs` |
//! | `dlopen` | POSIX: `deepbind.rs` |
//! | `setrlimit`, `prlimit`, `mlockall` | POSIX, the C library's own: `limits.rs` |
//! | `operator new` and `operator delete`, in all forms | C++: `cplusplus.rs` |
//! | `memcpy`, `memmove` | C: `memcpy.rs`, in a library that is built hardened for x86-64 |
//! | `brickyard_stats`, `brickyard_profile`, `brickyard_arena_new` and the like | this library's: `mallinfo.rs`, `arenas.rs` |
//!
//! On exhaustion they return null and set `errno` to `ENOMEM`; for invalid alignments, to `EINVAL`.
//! A success leaves `errno` alone. A bad free (of memory that was never allocated, or is free
//! already), where it is noticed, ends the process with a line on standard error.
//!
//! **Not for unloading**: the loader must not unload the library, since every thread's restartable
//! sequences and the destructors of threads refer to it. `LD_PRELOAD` never does.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use core::alloc::Layout;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use brickyard_arena::page_bytes;
use brickyard_heap as heap;

mod aliases;
mod arenas;
mod cplusplus;
mod deepbind;
mod limits;
mod mallinfo;
#[cfg(all(brickyard_hardened, target_arch = "x86_64"))]
mod memcpy;

#[cfg(not(target_arch = "x86_64"))]
#[path = "portable.rs"]
mod hits;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod hits;
#[cfg(target_arch = "x86_64")]
mod loader;
mod vfork;

pub use arenas::{
    brickyard_arena_alloc, brickyard_arena_bytes, brickyard_arena_free, brickyard_arena_new,
    brickyard_arena_reset,
};
pub use deepbind::dlopen;
pub use hits::{free, malloc};
pub use limits::{mlockall, prlimit, prlimit64, setrlimit, setrlimit64};
pub use mallinfo::{
    Mallinfo, Mallinfo2, brickyard_profile, brickyard_stats, mallinfo, mallinfo2, malloc_info,
    malloc_stats, mallopt,
};
pub use vfork::vfork;

/// Alignments up to this are kept by every request.
const ALIGN: usize = 16;

fn set_errno(error: c_int) {
    // SAFETY: the C library's own word of this thread.
    unsafe { *libc::__errno_location() = error };
}

/// Sets `errno` and returns null, for a function that found no memory.
#[cold]
fn exhausted() -> *mut c_void {
    set_errno(libc::ENOMEM);
    null_mut()
}

#[inline(always)]
fn or_exhausted(memory: *mut u8) -> *mut c_void {
    if memory.is_null() {
        return exhausted();
    }
    memory.cast()
}

#[cold]
#[inline(never)]
extern "C" fn slow(bytes: usize) -> *mut c_void {
    or_exhausted(heap::allocate(bytes))
}

/// Frees `memory` of `bytes` bytes; the hardened heap compares the size with what was asked for.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(memory: *mut c_void, bytes: usize) {
    heap::check_size(memory.cast(), bytes);
    // SAFETY: passed on.
    unsafe { free(memory) };
}

/// Frees `memory` of `bytes` bytes; the alignment is not needed.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(memory: *mut c_void, _align: usize, bytes: usize) {
    heap::check_size(memory.cast(), bytes);
    // SAFETY: passed on.
    unsafe { free(memory) };
}

/// Frees `memory`: the old name of [`free`].
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(memory: *mut c_void) {
    // SAFETY: passed on.
    unsafe { free(memory) };
}

/// Allocates `count` times `bytes` bytes, all zero.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(bytes) => or_exhausted(heap::allocate_zeroed(bytes)),
        None => exhausted(),
    }
}

/// Allocates `bytes` bytes with the contents of `memory`. As in the C library, null for `memory`
/// makes it a `malloc`, and 0 bytes make it a free.
///
/// # Safety
/// The conditions of [`free`], unless it returns null for more than 0 bytes: then `memory` is as it
/// was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes > 0 {
        // SAFETY: passed on.
        let new = unsafe { heap::quick_reallocate(memory.cast(), bytes) };
        if !new.is_null() {
            return new.cast();
        }
    }
    if memory.is_null() {
        return malloc(bytes);
    }
    if bytes == 0 {
        // SAFETY: passed on.
        unsafe { free(memory) };
        return null_mut();
    }
    // SAFETY: passed on.
    or_exhausted(unsafe { heap::reallocate(memory.cast(), bytes) })
}

/// Does [`realloc`] to `count` times `bytes` bytes.
///
/// # Safety
/// The conditions of [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    memory: *mut c_void,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: passed on.
        Some(bytes) => unsafe { realloc(memory, bytes) },
        None => exhausted(),
    }
}

/// Allocates memory at a multiple of `align`, a power of two.
fn aligned(align: usize, bytes: usize) -> *mut u8 {
    if align <= ALIGN {
        return heap::alloc(bytes);
    }
    match Layout::from_size_align(bytes, align) {
        Ok(layout) => heap::alloc_aligned(layout),
        Err(_) => null_mut(),
    }
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    or_exhausted(aligned(align, bytes))
}

/// Returns `bytes` bytes at a multiple of `align`, which is rounded up to a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    match align.max(1).checked_next_power_of_two() {
        Some(align) => aligned_alloc(align, bytes),
        None => {
            set_errno(libc::EINVAL);
            null_mut()
        }
    }
}

/// Allocates `bytes` bytes at a multiple of `align` and stores their address in `memory`. Returns 0
/// or an error number. `errno` stays as it is.
///
/// # Safety
/// `memory` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    memory: *mut *mut c_void,
    align: usize,
    bytes: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let given = aligned(align, bytes);
    if given.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { memory.write(given.cast()) };
    0
}

/// Allocates `bytes` bytes at a multiple of the page size.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
    aligned_alloc(page_bytes(), bytes)
}

/// Returns `bytes` bytes, rounded up to pages, at the start of a page.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(page_bytes()) {
        Some(bytes) => valloc(bytes),
        None => exhausted(),
    }
}

/// Returns the usable bytes of `memory`: at least as many as were asked for; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(memory: *mut c_void) -> usize {
    heap::usable_size(memory.cast())
}

/// Gives free memory back to the system. Returns 1 if there was any. `pad` is not used.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(heap::trim())
}
