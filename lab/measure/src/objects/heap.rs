//! What the measured loops allocate from. The loops are compiled for each implementation, so that a
//! fast path that can be inlined into a program is inlined here too.

use core::alloc::{GlobalAlloc, Layout};

/// The requested content of a new object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Any content.
    Any,
    /// Zeroes.
    Zeroed,
}

/// A heap that threads share.
pub trait Heap: Sync {
    /// One thread's access to it.
    type Handle<'h>: HeapHandle
    where
        Self: 'h;

    /// Returns the calling thread's access to the heap.
    fn handle(&self) -> Self::Handle<'_>;
}

/// One thread's access to a heap.
///
/// # Safety
/// What [`alloc`](Self::alloc) returns can be read and written within its layout, is aligned as the
/// layout says, and is zeroed if requested.
pub unsafe trait HeapHandle {
    /// Allocates an object; null if there is no memory.
    ///
    /// # Safety
    /// The size of the layout is not 0.
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8;

    /// Frees an object.
    ///
    /// # Safety
    /// A handle of this heap allocated the object with this layout, and it is not used any more.
    unsafe fn free(&mut self, object: *mut u8, layout: Layout);
}

// SAFETY: all objects come from the handle it refers to, which promises the same.
unsafe impl<H: HeapHandle> HeapHandle for &mut H {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).alloc(layout, content) }
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).free(object, layout) };
    }
}

/// A global allocator as a heap, called directly: it gets the layout, also at the free.
#[derive(Debug, Clone, Copy, Default)]
pub struct Global<G>(pub G);

/// A thread's access to a global allocator: the allocator itself.
#[derive(Debug)]
pub struct GlobalHandle<'h, G>(&'h G);

impl<G: GlobalAlloc + Sync> Heap for Global<G> {
    type Handle<'h>
        = GlobalHandle<'h, G>
    where
        Self: 'h;

    #[inline]
    fn handle(&self) -> GlobalHandle<'_, G> {
        GlobalHandle(&self.0)
    }
}

// SAFETY: a `GlobalAlloc` promises the same.
unsafe impl<G: GlobalAlloc> HeapHandle for GlobalHandle<'_, G> {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        match content {
            // SAFETY: the caller promises that the size of the layout is not 0.
            Content::Any => unsafe { self.0.alloc(layout) },
            // SAFETY: as above.
            Content::Zeroed => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that it was allocated here with this layout, and is not used
        // any more.
        unsafe { self.0.dealloc(object, layout) };
    }
}
