//! Memory that ends as a whole, for C: [`Bump`] by pointer. Declared in `brickyard_malloc.h`.
//!
//! Invariant `whole-arena`: a pointer that [`brickyard_arena_new`] has returned is that of an
//! object with a [`Bump`], until [`brickyard_arena_free`] takes it. It is used by one thread at a
//! time, so a reference to it is the only one.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use brickyard_heap::{Bump, Object};

use super::{ALIGN, exhausted, set_errno};

/// Makes an arena without memory. Null, and `errno` is `ENOMEM`, if there is none for it.
#[unsafe(no_mangle)]
pub extern "C" fn brickyard_arena_new() -> *mut Bump {
    match Object::new(Bump::new()) {
        Ok(arena) => arena.into_raw().as_ptr(),
        Err(_) => exhausted().cast(),
    }
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two; 0 stands for 16. Null if there
/// is no memory (`errno` is `ENOMEM`), or for another alignment (`EINVAL`).
///
/// # Safety
/// `arena` is an arena (`whole-arena`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brickyard_arena_alloc(
    arena: *mut Bump,
    bytes: usize,
    align: usize,
) -> *mut c_void {
    let align = if align == 0 { ALIGN } else { align };
    if !align.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    let Ok(layout) = Layout::from_size_align(bytes, align) else {
        return exhausted();
    };
    // SAFETY: `whole-arena`.
    match unsafe { &*arena }.memory(layout) {
        Some(memory) => memory.as_ptr().cast(),
        None => exhausted(),
    }
}

/// Ends all that was allocated in the arena, which serves on.
///
/// # Safety
/// `arena` is an arena (`whole-arena`). Nobody uses what was allocated in it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brickyard_arena_reset(arena: *mut Bump) {
    // SAFETY: `whole-arena`, and the caller's promise.
    unsafe { &mut *arena }.reset();
}

/// Returns the bytes that the arena has from the heap.
///
/// # Safety
/// `arena` is an arena (`whole-arena`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brickyard_arena_bytes(arena: *const Bump) -> usize {
    // SAFETY: `whole-arena`.
    unsafe { &*arena }.bytes()
}

/// Ends the arena and all that was allocated in it. Null is ignored.
///
/// # Safety
/// The conditions of [`brickyard_arena_reset`], or null. Nobody uses the arena any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brickyard_arena_free(arena: *mut Bump) {
    if let Some(arena) = NonNull::new(arena) {
        // SAFETY: `whole-arena`, which ends here.
        drop(unsafe { Object::from_raw(arena) });
    }
}
