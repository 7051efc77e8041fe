//! The heap as Rust's global allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard::sync::RawLock;

use super::KernelHeap;
use crate::Frames;

// SAFETY: the heap's memory belongs to its caller alone until it is freed: an object of a slab, or
// pages that the zone handed out (`heap-frames`). It has at least the layout's size, and is a
// multiple of its alignment. Nothing here unwinds.
unsafe impl<P: Platform, K: RawLock, F: Frames> GlobalAlloc for KernelHeap<P, K, F> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.system().and_then(|system| system.alloc(layout)) {
            Some(memory) => memory.as_ptr(),
            None => core::ptr::null_mut(),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if let (Some(system), Some(memory)) = (self.system(), NonNull::new(memory)) {
            // SAFETY: the caller's promise.
            unsafe { system.free(memory, layout) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else {
            return core::ptr::null_mut();
        };
        if let (Some(system), Some(memory)) = (self.system(), NonNull::new(memory))
            // SAFETY: the caller's promise; what lies behind `bytes` is given up by this call.
            && unsafe { system.resize(memory, layout, wanted) }
        {
            return memory.as_ptr();
        }
        // SAFETY: the caller promises that `bytes` is not 0; the memory has as many bytes as are
        // copied, the new one too, and they do not overlap; the old one is given up by this call.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}
