//! A box in the heap, whatever the program's global allocator is.
//!
//! **What it is for.** `Box` asks the global allocator by a function that takes size and alignment
//! as arguments. Here the size's cache, and so its column in the CPU's row, is evaluated at compile
//! time: a hit reads no table, and is the restartable sequence with a constant. Nothing is counted
//! for it. (A value above 32 KiB is allocated and freed as by `malloc`.) Types of one size share a
//! cache, so there is none to make or to name: what one type has freed, another uses.
//!
//! For values without a size of their own (slices, trait objects), and for collections, there is
//! [`Global`](super::Global) with the feature `allocator-api2`. A box of that crate is a hit too,
//! but reads the table of sizes unless the program is optimised as a whole (`lto`), and leaves the
//! memory of a value whose drop panics.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::fast_path::{BY_LAYOUT, cache_by_layout, hit, is_open, put};
use crate::request::{alloc_aligned, free};
use crate::slow_path::{allocate_by_layout, free_slow};

/// A value in an object of the heap. Dropping this drops the value and gives its memory back, also
/// if the value's drop panics. It can be sent and shared as the value itself can.
///
/// Invariant `holds-its-value`: from construction to drop the memory holds a value and belongs to
/// this object alone. It came from the heap, of the cache for `T` if there is one. (A value of 0
/// bytes has no memory.)
///
/// ```
/// use brickyard_heap::Object;
///
/// struct Session {
///     user: u32,
///     buffer: [u8; 500],
/// }
///
/// let mut session = Object::new(Session { user: 7, buffer: [0; 500] })?;
/// session.buffer[0] = 1;
/// assert_eq!(session.user, 7);
/// # Ok::<(), brickyard_heap::NoMemory<Session>>(())
/// ```
pub struct Object<T> {
    memory: NonNull<T>,
    /// It owns a value.
    of: PhantomData<T>,
}

// SAFETY: `holds-its-value`, as a box does. The heap can be used by any thread, and takes memory
// back from any.
unsafe impl<T: Send> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Object<T> {}

/// There was no memory for a value; here it is again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoMemory<T>(pub T);

impl<T> fmt::Debug for NoMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoMemory")
    }
}

impl<T> fmt::Display for NoMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for a value of {} bytes", size_of::<T>())
    }
}

impl<T> core::error::Error for NoMemory<T> {}

/// Gives an object's memory back when it is dropped.
struct FreeOnDrop<T>(NonNull<T>);

impl<T> Drop for FreeOnDrop<T> {
    #[inline(always)]
    fn drop(&mut self) {
        let memory = self.0.as_ptr().cast::<u8>();
        if size_of::<T>() == 0 {
            return;
        }
        if size_of::<T>() > BY_LAYOUT {
            // SAFETY: `holds-its-value`: memory was allocated, and nobody uses it any more.
            return unsafe { free(memory) };
        }
        // Where it is open now it was so when the memory was allocated: it is never closed again.
        if let Some(column) = Object::<T>::CACHE
            && is_open()
        {
            // SAFETY: `holds-its-value`: memory was allocated, so the heap is built, and it is of
            // this cache. Nobody uses it any more.
            if unsafe { put(usize::from(column), memory) } {
                return;
            }
        }
        // SAFETY: as above.
        unsafe { free_slow(memory) };
    }
}

impl<T> Object<T> {
    /// The cache that serves the type, if one surely does.
    const CACHE: Option<u8> = cache_by_layout(Layout::new::<T>());

    /// Moves `value` into an object of its own. Costs a hit of the heap in the usual case.
    ///
    /// # Errors
    /// [`NoMemory`], with the value.
    #[inline]
    pub fn new(value: T) -> Result<Self, NoMemory<T>> {
        let Some(memory) = Self::memory() else {
            return Err(NoMemory(value));
        };
        // SAFETY: the memory is large enough for a `T`, aligned for it, and this caller's.
        unsafe { memory.write(value) };
        Ok(Self {
            memory,
            of: PhantomData,
        })
    }

    /// Allocates memory for a value.
    #[inline(always)]
    fn memory() -> Option<NonNull<T>> {
        if size_of::<T>() == 0 {
            return Some(NonNull::dangling());
        }
        if size_of::<T>() > BY_LAYOUT {
            return NonNull::new(alloc_aligned(Layout::new::<T>())).map(NonNull::cast);
        }
        if let Some(column) = Self::CACHE
            && is_open()
        {
            // SAFETY: the heap is built, and the column is a general size's.
            let memory = NonNull::new(unsafe { hit(usize::from(column)) });
            if memory.is_some() {
                return memory.map(NonNull::cast);
            }
        }
        NonNull::new(allocate_by_layout(Layout::new::<T>())).map(NonNull::cast)
    }

    /// Moves the value out and gives the memory back.
    #[inline]
    #[must_use]
    pub fn into_inner(self) -> T {
        let memory = self.into_raw();
        let _memory = FreeOnDrop(memory);
        // SAFETY: `holds-its-value`, which ends here: the value moves out, and is not dropped
        // there.
        unsafe { memory.read() }
    }

    /// Returns the memory, with the value in it, for an interface that keeps a pointer. It stays in
    /// use until [`Object::from_raw`] makes it an object again.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).memory
    }

    /// Makes memory an object again.
    ///
    /// # Safety
    /// It came from [`Object::into_raw`] of the same type, holds a value, and nobody else uses it
    /// or makes an object of it.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(memory: NonNull<T>) -> Self {
        Self {
            memory,
            of: PhantomData,
        }
    }
}

impl<T> Deref for Object<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `holds-its-value`.
        unsafe { self.memory.as_ref() }
    }
}

impl<T> DerefMut for Object<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `holds-its-value`.
        unsafe { self.memory.as_mut() }
    }
}

impl<T> Drop for Object<T> {
    #[inline]
    fn drop(&mut self) {
        // Also if the value's drop panics.
        let _memory = FreeOnDrop(self.memory);
        // SAFETY: `holds-its-value`, which ends here.
        unsafe { self.memory.drop_in_place() };
    }
}

impl<T: fmt::Debug> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
