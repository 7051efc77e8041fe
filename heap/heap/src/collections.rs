//! The heap as the allocator of single collections and boxes, by the trait of `allocator-api2`. It
//! need not be the program's global allocator for that.
//!
//! ```
//! use allocator_api2::boxed::Box;
//! use allocator_api2::vec::Vec;
//! use brickyard_heap::Global;
//!
//! let mut numbers = Vec::new_in(Global);
//! numbers.extend(0..1000_u64);
//! let one = Box::try_new_in(numbers[999], Global)?;
//! assert_eq!(*one, 999);
//! # Ok::<(), allocator_api2::alloc::AllocError>(())
//! ```
//!
//! For single values there is [`Object`](super::Object).
//!
//! A list in memory that ends as a whole lies in a [`Bump`]:
//!
//! ```
//! use allocator_api2::vec::Vec;
//! use brickyard_heap::Bump;
//!
//! let bump = Bump::new();
//! let mut numbers = Vec::new_in(&bump);
//! numbers.extend(0..1000_u64);
//! assert!(bump.bytes() >= 8000);
//! ```

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, without_provenance_mut};

use allocator_api2::alloc::{AllocError, Allocator};

use crate::bump::Bump;
use crate::global::Global;

/// Makes a block of what the heap returned.
#[inline(always)]
fn block(memory: *mut u8, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    let memory = NonNull::new(memory).ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
}

/// Makes a block of 0 bytes: a multiple of the alignment that was never allocated.
#[inline(always)]
fn nothing(layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    block(without_provenance_mut(layout.align()), layout)
}

/// Clears what a block has behind the size of `old`.
///
/// # Safety
/// The block is the caller's, and is no smaller.
#[inline]
unsafe fn zeroed_behind(block: NonNull<[u8]>, old: Layout) -> NonNull<[u8]> {
    // SAFETY: the caller's promise.
    unsafe {
        let tail = block.cast::<u8>().add(old.size());
        tail.write_bytes(0, block.len() - old.size());
    }
    block
}

/// Resizes a block, and moves it if need be.
///
/// # Safety
/// The block is the caller's, and of the layout `old`. One of the two is no larger than the other.
#[inline]
unsafe fn resize(
    memory: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() != 0 && new.size() != 0 && old.align() == new.align() {
        // SAFETY: the block is the heap's, and of this layout; the new size is one of a layout with
        // the same alignment, and is not 0.
        let resized = unsafe { Global.realloc(memory.as_ptr(), old, new.size()) };
        return block(resized, new);
    }
    let moved = Global.allocate(new)?;
    // SAFETY: both blocks have so many bytes, and are apart. The old one is the caller's, who does
    // not use it any more.
    unsafe {
        let bytes = old.size().min(new.size());
        moved.cast::<u8>().copy_from_nonoverlapping(memory, bytes);
        Global.deallocate(memory, old);
    }
    Ok(moved)
}

/// The three methods of an [`Allocator`] that resize, by one function.
macro_rules! resizes_by {
    (|$this:ident, $memory:ident, $old:ident, $new:ident| $resized:expr) => {
        #[inline]
        unsafe fn grow(
            &self,
            $memory: NonNull<u8>,
            $old: Layout,
            $new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            debug_assert!(
                $new.size() >= $old.size(),
                "{:?} cannot grow to {:?}",
                $old,
                $new
            );
            let $this = self;
            // SAFETY: passed on.
            unsafe { $resized }
        }

        #[inline]
        unsafe fn grow_zeroed(
            &self,
            $memory: NonNull<u8>,
            $old: Layout,
            $new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: passed on.
            unsafe { Ok(zeroed_behind(self.grow($memory, $old, $new)?, $old)) }
        }

        #[inline]
        unsafe fn shrink(
            &self,
            $memory: NonNull<u8>,
            $old: Layout,
            $new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            debug_assert!(
                $new.size() <= $old.size(),
                "{:?} cannot shrink to {:?}",
                $old,
                $new
            );
            let $this = self;
            // SAFETY: passed on.
            unsafe { $resized }
        }
    };
}

// SAFETY: the heap's memory belongs to its caller alone until it is freed, is as large and aligned
// as requested, and stays where it is: the heap is the process's, and every `Global` is the same.
// What was allocated with a layout is freed or resized with that layout, since the size returned is
// the one requested.
unsafe impl Allocator for Global {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return nothing(layout);
        }
        // SAFETY: the size is not 0.
        block(unsafe { self.alloc(layout) }, layout)
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return nothing(layout);
        }
        // SAFETY: the size is not 0.
        block(unsafe { self.alloc_zeroed(layout) }, layout)
    }

    #[inline]
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: passed on: it was allocated above, with this layout.
            unsafe { self.dealloc(memory.as_ptr(), layout) };
        }
    }

    resizes_by!(|_global, memory, old, new| resize(memory, old, new));
}

// SAFETY: a piece belongs to its caller alone until the `Bump` is reset or ends, for which nobody
// may have a reference to it, as this one is. All copies of the reference are the same allocator.
unsafe impl Allocator for &Bump {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = self.memory(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { self.give_back(memory, layout.size()) };
    }

    resizes_by!(|bump, memory, old, new| resize_in(bump, memory, old, new));
}

/// Resizes a piece of a [`Bump`], in place if it can stay.
///
/// # Safety
/// The piece is the caller's, and of the layout `old`.
#[inline]
unsafe fn resize_in(
    bump: &Bump,
    memory: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    let is_aligned = memory.addr().get().is_multiple_of(new.align());
    // SAFETY: passed on: what is cut off is not used any more.
    if is_aligned && unsafe { bump.resize(memory, old.size(), new.size()) } {
        return Ok(NonNull::slice_from_raw_parts(memory, new.size()));
    }
    let moved = bump.allocate(new)?;
    // SAFETY: both pieces have so many bytes, and are apart.
    unsafe {
        let bytes = old.size().min(new.size());
        moved.cast::<u8>().copy_from_nonoverlapping(memory, bytes);
    }
    Ok(moved)
}
