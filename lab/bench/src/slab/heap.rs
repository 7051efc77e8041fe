//! What the measured loops allocate from. The loops are compiled for each implementation, so a fast
//! path that can be inlined into a program is inlined here too.

use core::alloc::{GlobalAlloc, Layout};

/// What an object is to hold when it is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Anything.
    Any,
    /// Zeroes.
    Zeroed,
}

/// A heap that threads share.
pub trait Heap: Sync {
    /// How one thread reaches it.
    type Handle<'h>: HeapHandle
    where
        Self: 'h;

    /// The calling thread's way to the heap.
    fn handle(&self) -> Self::Handle<'_>;
}

/// One thread's way to a heap.
///
/// # Safety
/// What [`alloc`](Self::alloc) gives can be read and written as far as its layout reaches, is
/// aligned as the layout says, and is zeroed where that is asked for.
pub unsafe trait HeapHandle {
    /// An object; null where there is no memory.
    ///
    /// # Safety
    /// The layout has a size.
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8;

    /// Takes back an object.
    ///
    /// # Safety
    /// A handle of this heap gave the object with this layout, and nobody uses it any more.
    unsafe fn free(&mut self, object: *mut u8, layout: Layout);
}

// SAFETY: all comes from the handle behind it, which promises the same.
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

/// A global allocator as a heap, called directly: the layout is known to it, also at the free.
#[derive(Debug, Clone, Copy, Default)]
pub struct Global<G>(pub G);

/// A thread's way to a global allocator: the allocator.
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
            // SAFETY: the caller promises that the layout has a size.
            Content::Any => unsafe { self.0.alloc(layout) },
            // SAFETY: as above.
            Content::Zeroed => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that it came from here with this layout, and is not used any
        // more.
        unsafe { self.0.dealloc(object, layout) };
    }
}
