//! Memory that ends as a whole: pieces are cut from chunks of the heap, one behind the other, and
//! freed all at once.
//!
//! A piece costs an addition and a comparison, and has no neighbours' slack. Chunks grow with what
//! there is, from 1 KiB to 2 MiB, so they come from slabs, then as runs of pages. Of each the bytes
//! that the heap has rounded up are used too. A request that is larger gets a chunk of its own.
//!
//! Invariant `chunks-are-its-own`: each chunk in the list came from the heap, is in the list once,
//! and begins with its [`Chunk`]. None is freed while a piece of it is borrowed: that needs `&mut`.
//!
//! Invariant `rest-is-free`: the bytes from `next` to `end` belong to one of the chunks, or there
//! are none. Nobody has them.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};

use crate::object::NoMemory;
use crate::request::{alloc, free};
use crate::resize::usable_size;
use crate::span::RUN_BYTES_MAX;

/// The least bytes of a chunk.
const CHUNK_BYTES_MIN: usize = 1 << 10;

/// What every chunk is aligned to.
const CHUNK_ALIGN: usize = 16;

/// The head of a chunk.
#[repr(align(16))]
struct Chunk {
    /// The chunk that was made before it.
    older: Option<NonNull<Chunk>>,
    /// Its bytes, with this head.
    bytes: usize,
}

/// Memory for values that end together: of one request, one frame, one file that is parsed.
///
/// It is for one thread at a time. Values in it are **not dropped**: what they own elsewhere stays
/// there. (With the feature `allocator-api2` collections can lie in it, by `&Bump`; those drop what
/// they hold.)
///
/// ```
/// use brickyard_heap::Bump;
///
/// let mut bump = Bump::new();
/// for line in ["alpha 1", "beta 2"] {
///     let words = bump.copy(line.as_bytes()).ok_or("no memory")?;
///     words.make_ascii_uppercase();
///     let number = bump.alloc(words.len())?;
///     assert!(*number > 5);
///     // All of it ends here; its memory serves the next line.
///     bump.reset();
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Bump {
    /// The first free byte.
    next: Cell<*mut u8>,
    /// The first byte behind the free ones.
    end: Cell<*mut u8>,
    /// The newest chunk.
    chunks: Cell<Option<NonNull<Chunk>>>,
    /// The bytes of all chunks.
    bytes: Cell<usize>,
}

// SAFETY: `chunks-are-its-own`, and any thread may free what another has allocated. Values in it
// are not touched again once it is sent, since each was borrowed.
unsafe impl Send for Bump {}

impl Default for Bump {
    fn default() -> Self {
        Self::new()
    }
}

impl Bump {
    /// Makes one without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            chunks: Cell::new(None),
            bytes: Cell::new(0),
        }
    }

    /// Moves `value` in. It is not dropped there.
    ///
    /// # Errors
    /// [`NoMemory`], with the value.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "each call returns other memory")]
    pub fn alloc<T>(&self, value: T) -> Result<&mut T, NoMemory<T>> {
        let Some(memory) = self.memory(Layout::new::<T>()) else {
            return Err(NoMemory(value));
        };
        let mut memory = memory.cast::<T>();
        // SAFETY: the piece is of the type's layout, and nobody else has it while `self` is
        // borrowed.
        unsafe {
            memory.write(value);
            Ok(memory.as_mut())
        }
    }

    /// Copies a slice in; `None` if there is no memory.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "each call returns other memory")]
    pub fn copy<T: Copy>(&self, of: &[T]) -> Option<&mut [T]> {
        let memory = self.memory(Layout::for_value(of))?.cast::<T>();
        // SAFETY: the piece has room for so many values, and is apart from `of`, which was there
        // before. Nobody else has it while `self` is borrowed.
        unsafe {
            memory.copy_from_nonoverlapping(NonNull::from(of).cast(), of.len());
            Some(NonNull::slice_from_raw_parts(memory, of.len()).as_mut())
        }
    }

    /// Allocates memory for `layout`, which is the caller's until [`Bump::reset`] or the end;
    /// `None` if there is none. For 0 bytes the pointer is not to be read or written.
    #[inline]
    pub fn memory(&self, layout: Layout) -> Option<NonNull<u8>> {
        let next = self.next.get();
        let padding = next.addr().wrapping_neg() & (layout.align() - 1);
        let room = self.end.get().addr() - next.addr();
        if padding <= room && layout.size() <= room - padding && !next.is_null() {
            let memory = next.wrapping_add(padding);
            self.next.set(memory.wrapping_add(layout.size()));
            return NonNull::new(memory);
        }
        self.memory_of_new_chunk(layout)
    }

    #[cold]
    #[inline(never)]
    fn memory_of_new_chunk(&self, layout: Layout) -> Option<NonNull<u8>> {
        // At most so much lies between the head and the piece.
        let padding = layout.align().saturating_sub(CHUNK_ALIGN);
        let least = (size_of::<Chunk>() + padding).checked_add(layout.size())?;
        let usual = self.bytes.get().clamp(CHUNK_BYTES_MIN, RUN_BYTES_MAX);
        let mut memory = alloc(usual.max(least));
        if memory.is_null() && least < usual {
            memory = alloc(least);
        }
        let chunk = NonNull::new(memory)?.cast::<Chunk>();
        let bytes = usable_size(memory);
        debug_assert!(
            bytes >= least,
            "a chunk of {bytes} bytes instead of {least}"
        );
        let older = self.chunks.get();
        // SAFETY: the memory was just allocated, with room for the head, and aligned to 16.
        unsafe { chunk.write(Chunk { older, bytes }) };
        // `chunks-are-its-own`.
        self.chunks.set(Some(chunk));
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        // The piece is cut off first; then the larger rest is the one to go on with.
        let (next, end) = (
            memory.wrapping_add(size_of::<Chunk>()),
            memory.wrapping_add(bytes),
        );
        let piece = next.wrapping_add(next.addr().wrapping_neg() & (layout.align() - 1));
        let rest = piece.wrapping_add(layout.size());
        // `rest-is-free`.
        if end.addr() - rest.addr() >= self.end.get().addr() - self.next.get().addr() {
            self.next.set(rest);
            self.end.set(end);
        }
        NonNull::new(piece)
    }

    /// Takes a piece back if it is the last one, so that the next can have its place.
    ///
    /// # Safety
    /// The piece came from this, with so many bytes, and nobody uses it any more.
    #[cfg(feature = "allocator-api2")]
    #[inline]
    pub(super) unsafe fn give_back(&self, memory: NonNull<u8>, bytes: usize) {
        if memory.as_ptr().wrapping_add(bytes) == self.next.get() {
            self.next.set(memory.as_ptr());
        }
    }

    /// Resizes a piece where it is. False if there is no room.
    ///
    /// # Safety
    /// The piece came from this, with `old` bytes, and nobody uses those above `new` any more.
    #[cfg(feature = "allocator-api2")]
    #[inline]
    pub(super) unsafe fn resize(&self, memory: NonNull<u8>, old: usize, new: usize) -> bool {
        let is_last = memory.as_ptr().wrapping_add(old) == self.next.get();
        let fits = new <= old || (is_last && new <= self.end.get().addr() - memory.addr().get());
        if fits && is_last {
            self.next.set(memory.as_ptr().wrapping_add(new));
        }
        fits
    }

    /// Returns the bytes of all its chunks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Ends all that is in it. The newest chunk stays for what follows, unless it has more than
    /// 2 MiB; the others are freed.
    pub fn reset(&mut self) {
        let Some(newest) = self.chunks.take() else {
            return;
        };
        // SAFETY: `chunks-are-its-own`, and no piece is borrowed, as this has the only reference.
        unsafe {
            let bytes = newest.as_ref().bytes;
            free_chunks(newest.as_ref().older);
            if bytes > RUN_BYTES_MAX {
                free(newest.as_ptr().cast());
                // It has no chunk by now, so there is nothing to drop twice.
                *self = Self::new();
                return;
            }
            newest.write(Chunk { older: None, bytes });
            let memory = newest.as_ptr().cast::<u8>();
            self.chunks.set(Some(newest));
            self.bytes.set(bytes);
            self.next.set(memory.wrapping_add(size_of::<Chunk>()));
            self.end.set(memory.wrapping_add(bytes));
        }
    }
}

/// Frees a chunk and all older ones.
///
/// # Safety
/// They came from the heap, and nobody uses them or a piece of them any more.
unsafe fn free_chunks(mut chunk: Option<NonNull<Chunk>>) {
    while let Some(one) = chunk {
        // SAFETY: passed on; each begins with its head.
        unsafe {
            let older = one.as_ref().older;
            free(one.as_ptr().cast());
            chunk = older;
        }
    }
}

impl Drop for Bump {
    fn drop(&mut self) {
        // SAFETY: `chunks-are-its-own`, and no piece is borrowed any more.
        unsafe { free_chunks(self.chunks.take()) };
    }
}
