//! Objects as the loops have them: a shape, an object that is freed once, and the hand that
//! allocates and frees them.
//!
//! A hand writes an object's size into its first word. So each object is touched, as programs do,
//! and the thread that frees it can read its size.

use core::alloc::Layout;
use core::hint::black_box;
use core::ptr::NonNull;
use std::alloc::handle_alloc_error;

use super::heap::{Content, HeapHandle};
use brickyard_run::Random;

/// The layout of an object in the loops. Invariant `room-for-a-word`: it has room for a word, and
/// the alignment of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape(Layout);

impl Shape {
    /// The smallest size of an object.
    pub const LEAST: u32 = 16;

    /// Returns the shape of objects of so many bytes, at least [`LEAST`](Self::LEAST).
    pub const fn of(bytes: u32) -> Self {
        let bytes = if bytes < Self::LEAST {
            Self::LEAST
        } else {
            bytes
        };
        match Layout::from_size_align(bytes as usize, 8) {
            Ok(layout) => Self(layout),
            Err(_) => panic!("32 bits of bytes are a layout"),
        }
    }

    /// Returns a random shape of `from` to `to` bytes. Both are multiples of 16, and so are all
    /// sizes, which are equally probable.
    #[inline]
    pub fn any(random: &mut Random, from: u32, to: u32) -> Self {
        let shapes = (to - from) as usize / 16 + 1;
        Self::of(from + 16 * random.below(shapes) as u32)
    }

    /// Returns the bytes of an object.
    pub const fn bytes(self) -> usize {
        self.0.size()
    }
}

/// An object in use. It is not `Copy`. Invariant `given-back-once`: its owner may free it, and does
/// not have it after that.
#[derive(Debug)]
#[repr(transparent)]
pub struct Object(NonNull<u8>);

// SAFETY: an object is memory with a single owner.
unsafe impl Send for Object {}

impl Object {
    /// Returns its address, to be passed on; [`from_raw`](Self::from_raw) makes it an object again.
    pub const fn into_raw(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Returns the object at an address; `None` for null.
    ///
    /// # Safety
    /// The address is null, or came from [`into_raw`](Self::into_raw) and is made an object only
    /// once.
    pub unsafe fn from_raw(address: *mut u8) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    /// Returns the shape that it was allocated with.
    ///
    /// # Safety
    /// It was taken from a [`Hand`], and its first word was not written since.
    pub unsafe fn shape(&self) -> Shape {
        // SAFETY: `room-for-a-word`; the hand wrote the size there.
        let bytes = unsafe { self.0.cast::<usize>().read() };
        Shape::of(bytes as u32)
    }
}

/// A heap's handle, as the loops use it.
#[derive(Debug)]
pub struct Hand<H>(H);

impl<H: HeapHandle> Hand<H> {
    /// Returns the hand of this handle.
    pub const fn new(handle: H) -> Self {
        Self(handle)
    }

    /// Allocates an object, and writes its size into its first word. Aborts the process if there is
    /// no memory.
    #[inline(always)]
    pub fn take(&mut self, shape: Shape, content: Content) -> Object {
        let object = self.take_untouched(shape, content);
        // SAFETY: `room-for-a-word`.
        unsafe { object.0.cast::<usize>().write(shape.bytes()) };
        black_box(object)
    }

    /// Allocates an object without touching it.
    #[inline(always)]
    pub fn take_untouched(&mut self, shape: Shape, content: Content) -> Object {
        // SAFETY: `room-for-a-word`.
        let object = unsafe { self.0.alloc(shape.0, content) };
        // The compiler must not know that it came from `malloc`: it could remove a pair with
        // nothing in between.
        match NonNull::new(black_box(object)) {
            Some(object) => Object(object),
            None => handle_alloc_error(shape.0),
        }
    }

    /// Frees an object.
    ///
    /// # Safety
    /// It was taken from a hand of the same heap with this shape.
    #[inline(always)]
    pub unsafe fn give(&mut self, object: Object, shape: Shape) {
        // SAFETY: the caller's promise, and `given-back-once`.
        unsafe { self.0.free(object.into_raw(), shape.0) };
    }

    /// Frees an object by the size in its first word.
    ///
    /// # Safety
    /// It was taken, and touched, by a hand of the same heap, and its first word was not written
    /// since.
    #[inline(always)]
    pub unsafe fn give_as_it_says(&mut self, object: Object) {
        // SAFETY: the caller's promise.
        unsafe {
            let shape = object.shape();
            self.give(object, shape);
        }
    }
}

/// Returns an empty table with room for so many objects, all of it resident, so that filling it
/// takes no memory.
pub fn table(places: usize) -> Vec<Option<Object>> {
    // Written one by one: zeroes from the system would not be resident.
    let mut table: Vec<Option<Object>> = (0..places).map(|_| black_box(None)).collect();
    table.clear();
    table
}
