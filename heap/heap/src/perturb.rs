//! `mallopt(M_PERTURB)`: new memory holds one value, freed memory another, so that what a program
//! does by accident with either shows.
//!
//! It may be set at any time. The fast paths are closed then, for good: every request takes the
//! slow path, which fills memory. All orders are relaxed: these are settings, on which no memory
//! depends.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::vfork::close_for_good;

static IS_ON: AtomicBool = AtomicBool::new(false);
static BYTE: AtomicU8 = AtomicU8::new(0);

/// Closes the fast paths, and fills freed memory with `byte` from now on, and new memory with its
/// complement; 0 ends that.
pub(crate) fn fill_with(byte: u8) {
    if byte != 0 {
        // Requests of other threads that begin now may still be served as before.
        close_for_good(|| IS_ON.store(true, Ordering::Relaxed));
    }
    BYTE.store(byte, Ordering::Relaxed);
}

/// Returns true if the fast paths have been closed, so that the slow path has to look at the queues
/// of this CPU itself.
#[inline]
pub(super) fn has_closed() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Fills new memory, if that is wanted.
#[inline]
pub(super) fn on_alloc(memory: NonNull<u8>, bytes: usize) {
    let byte = BYTE.load(Ordering::Relaxed);
    if byte != 0 {
        // SAFETY: the memory has so many bytes, and its caller has not got it yet.
        unsafe { memory.write_bytes(!byte, bytes) };
    }
}

/// Fills memory that is about to be freed, if that is wanted.
///
/// # Safety
/// It is the heap's, has so many usable bytes, and nobody uses it any more.
#[inline]
pub(super) unsafe fn on_free(memory: NonNull<u8>, usable: impl FnOnce() -> usize) {
    let byte = BYTE.load(Ordering::Relaxed);
    if byte != 0 {
        // SAFETY: the caller's promise; 0 bytes where nothing begins there.
        unsafe { memory.write_bytes(byte, usable()) };
    }
}
