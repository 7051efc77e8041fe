//! A heap each of whose calls saves and restores the processor's flags, as a kernel does that keeps
//! interrupts out of its allocator.
//!
//! A process may not mask interrupts (`cli` faults), so of `pushf; cli; ...; popf` only the first
//! and the last are executed. They are the expensive ones: Dumazet found that `popf` alone took a
//! fifth of the time of SLQB's allocation.

use core::alloc::Layout;

use super::heap::{Content, HeapHandle};

/// A thread's access to a heap, masked. It exists only on x86-64.
#[derive(Debug)]
pub(crate) struct Masked<H>(H);

impl<H: HeapHandle> Masked<H> {
    pub(crate) fn new(handle: H) -> Option<Self> {
        cfg!(target_arch = "x86_64").then_some(Self(handle))
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

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn save() -> u64 {
    let flags: u64;
    // SAFETY: a word is pushed and popped again; nothing else changes.
    unsafe { core::arch::asm!("pushfq", "pop {}", out(reg) flags) };
    flags
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn restore(flags: u64) {
    // SAFETY: a word is pushed and popped again; the flags become what they were at `save`.
    unsafe { core::arch::asm!("push {}", "popfq", in(reg) flags) };
}

#[cfg(not(target_arch = "x86_64"))]
fn save() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn restore(_flags: u64) {}
