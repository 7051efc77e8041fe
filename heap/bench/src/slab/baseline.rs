//! Two yardsticks: heaps that only return fixed buffers, so that a loop with them has only its own
//! cost: zeroing, touching, counting, handing over.
//!
//! `floor` is inlined into the loop, as a `#[global_allocator]` may be. `floor-dynamic` is called
//! like the malloc family: three functions whose addresses the loop loads at run time, and for
//! which the size is not a constant. Neither has more than one object of a size at a time, so the
//! memory workloads have no row for them.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::hint::black_box;

use brickyard_measure::objects::heap::{Content, Heap, HeapHandle};

/// The largest object that fits into a buffer.
pub const MOST_BYTES: u32 = 32 << 10;

/// Four buffers: the four sizes of a socket have one each, since their binary logarithms differ in
/// the last two bits. Invariant `buffer-of-a-size`: buffer `i` begins at offset `i` times
/// [`STRIDE`], and has [`MOST_BYTES`] and one cache line more.
#[derive(Debug)]
#[repr(align(4096))]
struct Buffers(UnsafeCell<[u8; BYTES]>);

/// The offset between buffers: one cache line more than [`MOST_BYTES`], so that they do not all map
/// to the same lines of the cache.
const STRIDE: usize = MOST_BYTES as usize + 64;
const BYTES: usize = 4 * STRIDE;

impl Buffers {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; BYTES]))
    }

    #[inline(always)]
    fn of(&self, bytes: usize) -> *mut u8 {
        let which = (bytes.max(1).ilog2() & 3) as usize;
        // The result is always the start of one of the four.
        self.0.get().cast::<u8>().wrapping_add(which * STRIDE)
    }
}

/// The inlined yardstick.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor;

/// A thread's buffers.
#[derive(Debug)]
pub(crate) struct FloorHandle(Box<Buffers>);

impl Heap for Floor {
    type Handle<'h> = FloorHandle;

    fn handle(&self) -> FloorHandle {
        FloorHandle(Box::new(Buffers::new()))
    }
}

// SAFETY: `buffer-of-a-size`, and the options allow no larger object; 4096 is a multiple of every
// requested alignment.
unsafe impl HeapHandle for FloorHandle {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        let object = self.0.of(layout.size());
        if content == Content::Zeroed {
            // SAFETY: `buffer-of-a-size`.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    #[inline(always)]
    unsafe fn free(&mut self, _object: *mut u8, _layout: Layout) {}
}

/// The yardstick that is called through addresses known only at run time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloorDynamic;

thread_local! {
    static OF_THREAD: Buffers = const { Buffers::new() };
}

extern "C" fn fixed_malloc(bytes: usize) -> *mut u8 {
    OF_THREAD.with(|buffers| buffers.of(bytes))
}

extern "C" fn fixed_calloc(count: usize, bytes: usize) -> *mut u8 {
    let object = fixed_malloc(count * bytes);
    // SAFETY: `buffer-of-a-size`, and the thread is the only one to use its buffers.
    unsafe { object.write_bytes(0, count * bytes) };
    object
}

extern "C" fn fixed_free(_object: *mut u8) {}

/// Three functions, as a program's table of dynamic symbols has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbols {
    malloc: extern "C" fn(usize) -> *mut u8,
    calloc: extern "C" fn(usize, usize) -> *mut u8,
    free: extern "C" fn(*mut u8),
}

impl Heap for FloorDynamic {
    type Handle<'h> = Symbols;

    fn handle(&self) -> Symbols {
        black_box(Symbols {
            malloc: fixed_malloc,
            calloc: fixed_calloc,
            free: fixed_free,
        })
    }
}

// SAFETY: as for `floor`.
unsafe impl HeapHandle for Symbols {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        match content {
            Content::Any => (self.malloc)(layout.size()),
            Content::Zeroed => (self.calloc)(layout.size(), 1),
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, _layout: Layout) {
        (self.free)(object);
    }
}
