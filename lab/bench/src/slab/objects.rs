//! Objects as the loops have them: a shape, an object that is given back once, and the hand that
//! takes and gives them.
//!
//! A hand writes an object's size into its first word: so each is touched, as programs do, and says
//! itself how large it is to whoever frees it.

use core::alloc::Layout;
use core::hint::black_box;
use core::ptr::NonNull;
use std::alloc::handle_alloc_error;

use super::heap::{Content, HeapHandle};
use crate::random::Random;

/// The layout of an object in the loops. Invariant `room-for-a-word`: it has room for a word, and
/// the alignment of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape(Layout);

impl Shape {
    /// Objects are this large at least.
    pub const LEAST: u32 = 16;

    /// Objects of so many bytes, and of [`LEAST`](Self::LEAST) where that is fewer.
    pub(crate) const fn of(bytes: u32) -> Self {
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

    /// One of from `from` to `to` bytes, which are multiples of 16, as are all between, each
    /// equally often.
    #[inline]
    pub(crate) fn any(random: &mut Random, from: u32, to: u32) -> Self {
        let shapes = (to - from) as usize / 16 + 1;
        Self::of(from + 16 * random.below(shapes) as u32)
    }

    pub(crate) const fn bytes(self) -> usize {
        self.0.size()
    }
}

/// An object in use. Not to be copied. Invariant `given-back-once`: whoever has it may give it
/// back, and does not have it after that.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Object(NonNull<u8>);

// SAFETY: an object is memory of which whoever has it is the only owner.
unsafe impl Send for Object {}

impl Object {
    /// Its address, to be handed over; [`from_raw`](Self::from_raw) makes an object of it again.
    pub(crate) const fn into_raw(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// The object at an address; none at null.
    ///
    /// # Safety
    /// The address is null, or came from [`into_raw`](Self::into_raw) and is made an object of
    /// once.
    pub(crate) unsafe fn from_raw(address: *mut u8) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    /// The shape that it was taken with.
    ///
    /// # Safety
    /// It came out of a [`Hand`] and its first word was not written since.
    pub(crate) unsafe fn shape(&self) -> Shape {
        // SAFETY: `room-for-a-word`; the hand wrote the size there.
        let bytes = unsafe { self.0.cast::<usize>().read() };
        Shape::of(bytes as u32)
    }
}

/// A handle as the loops use it.
#[derive(Debug)]
pub(crate) struct Hand<H>(H);

impl<H: HeapHandle> Hand<H> {
    pub(crate) const fn new(handle: H) -> Self {
        Self(handle)
    }

    /// Takes an object, and writes its size into its first word. Ends the process where there is no
    /// memory.
    #[inline(always)]
    pub(crate) fn take(&mut self, shape: Shape, content: Content) -> Object {
        let object = self.take_untouched(shape, content);
        // SAFETY: `room-for-a-word`.
        unsafe { object.0.cast::<usize>().write(shape.bytes()) };
        black_box(object)
    }

    /// Takes an object as the heap gives it.
    #[inline(always)]
    pub(crate) fn take_untouched(&mut self, shape: Shape, content: Content) -> Object {
        // SAFETY: `room-for-a-word`.
        let object = unsafe { self.0.alloc(shape.0, content) };
        // Nobody is to know that it came from `malloc`: a pair that nothing happens between could
        // be left out.
        match NonNull::new(black_box(object)) {
            Some(object) => Object(object),
            None => handle_alloc_error(shape.0),
        }
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// It was taken from a hand of the same heap with this shape.
    #[inline(always)]
    pub(crate) unsafe fn give(&mut self, object: Object, shape: Shape) {
        // SAFETY: the caller's promise, and `given-back-once`.
        unsafe { self.0.free(object.into_raw(), shape.0) };
    }

    /// Gives back an object by the size that it says it has.
    ///
    /// # Safety
    /// It was taken, and touched, by a hand of the same heap, and its first word was not written
    /// since.
    #[inline(always)]
    pub(crate) unsafe fn give_as_it_says(&mut self, object: Object) {
        // SAFETY: the caller's promise.
        unsafe {
            let shape = object.shape();
            self.give(object, shape);
        }
    }
}

/// A table without entries that has room for so many, all of it resident, so that filling it takes
/// no memory.
pub(crate) fn table(places: usize) -> Vec<Option<Object>> {
    // Written one by one: zeroes from the system would not be resident.
    let mut table: Vec<Option<Object>> = (0..places).map(|_| black_box(None)).collect();
    table.clear();
    table
}
