//! Hits only, for valgrind to count: an object is allocated and freed again, each in a function of
//! its own that is never inlined, so that the instructions of either can be selected by name. The
//! cost of such a function itself is counted with a heap that does nothing.

use core::alloc::Layout;

use super::work::SlabWork;
use brickyard_measure::objects::heap::{Content, Heap, HeapHandle};
use brickyard_measure::objects::object::{Hand, Object, Shape};
use brickyard_measure::objects::taken::Taken;

/// The names for valgrind: parts of the symbols of the two functions.
pub(crate) const SIDES: [(&str, &str); 2] = [("alloc", "counted_alloc"), ("free", "counted_free")];

/// Objects that stay allocated: a heap has more to do when the last object of a page is freed.
const HELD: usize = 100;

/// Does as many hits as the batch says, for valgrind to count.
pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> Taken {
    let mut hand = Hand::new(heap.handle());
    let shape = work.shape();
    let held: Vec<Object> = (0..HELD)
        .map(|_| hand.take_untouched(shape, Content::Any))
        .collect();
    let hits = work.batch;
    if work.size == SIZES[0] {
        of_size::<{ SIZES[0] }, _>(&mut hand, hits);
    } else {
        of_size::<{ SIZES[1] }, _>(&mut hand, hits);
    }
    for object in held {
        // SAFETY: it was taken from this hand with this shape.
        unsafe { hand.give(object, shape) };
    }
    Taken::default()
}

/// The sizes that can be counted; constants, as in a program that knows its types.
pub(crate) const SIZES: [u32; 2] = [64, 1216];

fn of_size<const BYTES: u32, H: HeapHandle>(hand: &mut Hand<H>, hits: usize) {
    for _ in 0..hits {
        let object = counted_alloc::<BYTES, H>(hand);
        counted_free::<BYTES, H>(hand, object);
    }
}

#[inline(never)]
fn counted_alloc<const BYTES: u32, H: HeapHandle>(hand: &mut Hand<H>) -> Object {
    hand.take_untouched(const { Shape::of(BYTES) }, Content::Any)
}

#[inline(never)]
fn counted_free<const BYTES: u32, H: HeapHandle>(hand: &mut Hand<H>, object: Object) {
    // SAFETY: it was taken by the line before with this shape.
    unsafe { hand.give(object, const { Shape::of(BYTES) }) };
}

/// A heap that has one object and does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nothing;

/// The object.
#[derive(Debug)]
pub(crate) struct OneObject(Box<[u64; 4096 / 8]>);

impl Heap for Nothing {
    type Handle<'h> = OneObject;

    fn handle(&self) -> OneObject {
        OneObject(Box::new([0; 4096 / 8]))
    }
}

// SAFETY: the counted sizes fit into the object, and no zeroed object is requested.
unsafe impl HeapHandle for OneObject {
    #[inline(always)]
    unsafe fn alloc(&mut self, _layout: Layout, _content: Content) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    #[inline(always)]
    unsafe fn free(&mut self, _object: *mut u8, _layout: Layout) {}
}
