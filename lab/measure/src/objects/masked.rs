//! A heap each of whose calls saves and restores the processor's flags, as a kernel does that keeps
//! interrupts out of its allocator.
//!
//! What of that a process can execute is in [`flags`](crate::flags).

use core::alloc::Layout;

use super::heap::{Content, HeapHandle};
use crate::flags::{restore, save};

/// A thread's access to a heap, masked. It exists only on x86-64.
#[derive(Debug)]
pub struct Masked<H>(H);

impl<H: HeapHandle> Masked<H> {
    /// Masks a heap; `None` on other processors.
    pub fn new(handle: H) -> Option<Self> {
        crate::flags::SAVED.then_some(Self(handle))
    }
}

// SAFETY: all objects come from the heap it wraps, which promises the same.
unsafe impl<H: HeapHandle> HeapHandle for Masked<H> {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        // A kernel would zero outside of the masked section where its heap allows that; this
        // interface cannot.
        let flags = save();
        // SAFETY: the caller's promise is the same.
        let object = unsafe { self.0.alloc(layout, content) };
        restore(flags);
        object
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, layout: Layout) {
        let flags = save();
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.free(object, layout) };
        restore(flags);
    }
}
