//! Everything that is not a hit: it builds the heap if there is none, and passes the request on to
//! the heap's ways.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};

use crate::build::heap;
use crate::fast_path::{BY_LAYOUT, quick};
use crate::instance::{Freed, INSTANCE, built, enter};
use crate::maintenance::{self, MayStart};
use crate::perturb::fill_with;
use crate::sampling::sampled;
use crate::{closed_gate, complaints, plain, zero_sized};

fn or_null(memory: Option<NonNull<u8>>) -> *mut u8 {
    memory.map_or(null_mut(), NonNull::as_ptr)
}

/// Allocates `bytes` bytes by the slow path, aligned to 16; null if there is no memory.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate(bytes: usize) -> *mut u8 {
    if let (Some(sampled), Some(heap)) = (sampled(), built())
        && let Ok(layout) = Layout::from_size_align(bytes, 16)
    {
        return or_null(plain::allocate_counted(heap, sampled, layout));
    }
    // A heap comes first: without one nothing can be freed.
    let (Ok(layout), Ok(heap)) = (Layout::from_size_align(bytes, 16), heap()) else {
        return null_mut();
    };
    if bytes == 0
        && !heap.is_hardened
        && let Some(memory) = zero_sized::allocate()
    {
        return memory.as_ptr();
    }
    or_null(heap.ways.allocate(heap, layout))
}

/// Allocates memory for `layout` by the slow path; null if there is none. Any alignment is kept.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate_aligned(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    or_null(heap.ways.allocate(heap, layout))
}

/// Allocates memory for `layout`, of [`BY_LAYOUT`] bytes at most, by the slow path, for callers
/// that free it by that layout: it is of the cache that serves the layout, if there is one. So it
/// waits as long as another thread forks, and cannot do without the gate (`closed_gate.rs`).
#[cold]
#[inline(never)]
pub(super) fn allocate_by_layout(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    or_null(heap.ways.allocate_by_layout(heap, layout))
}

/// Allocates `bytes` zeros, aligned to 16; null if there is no memory. This is `calloc`.
#[inline]
#[must_use]
pub fn allocate_zeroed(bytes: usize) -> *mut u8 {
    let object = match bytes <= BY_LAYOUT {
        true => quick(bytes),
        false => null_mut(),
    };
    if object.is_null() {
        return allocate_zeroed_slowly(bytes);
    }
    // SAFETY: the object has so many bytes, and is this caller's.
    unsafe { object.write_bytes(0, bytes) };
    object
}

#[cold]
#[inline(never)]
fn allocate_zeroed_slowly(bytes: usize) -> *mut u8 {
    match Layout::from_size_align(bytes, 16) {
        Ok(_) if bytes == 0 => allocate(0),
        Ok(layout) => allocate_zeroed_aligned(layout),
        Err(_) => null_mut(),
    }
}

/// Allocates zeros for `layout` by the slow path; null if there is no memory.
#[cold]
#[inline(never)]
pub(super) fn allocate_zeroed_aligned(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    or_null(heap.ways.allocate_zeros(heap, layout))
}

/// Takes memory back by the slow path. Null is ignored. Memory that is not the heap's is reported,
/// and the process is aborted, since nothing could go on from there.
///
/// # Safety
/// If it points into memory that this heap has handed out, it is the pointer that was handed out,
/// was not freed since, and nobody uses it any more.
#[cold]
#[inline(never)]
pub unsafe fn free_slow(memory: *mut u8) {
    // SAFETY: passed on.
    unsafe { take_back(memory, MayStart::Thread) }
}

/// Takes memory back without starting the background thread: for callers that hold locks of the C
/// library that a new thread needs, since its loader frees memory under them.
///
/// # Safety
/// The conditions of [`free_slow`].
#[cold]
#[inline(never)]
pub unsafe fn free_slow_under_locks(memory: *mut u8) {
    // SAFETY: passed on.
    unsafe { take_back(memory, MayStart::Nothing) }
}

unsafe fn take_back(memory: *mut u8, may: MayStart) {
    let Some(memory) = NonNull::new(memory) else {
        return;
    };
    let Some(heap) = built() else {
        complaints::complain("free of memory that was never allocated", memory);
    };
    // SAFETY: passed on.
    if unsafe { heap.ways.free(heap, memory) } == Freed::Inside {
        closed_gate::free_what_waits(heap);
        maintenance::has_shrunk(heap, may);
    }
}

/// Gives back what is free: queues of this CPU, queues that CPUs share, and idle pages. Returns
/// true if idle pages went back; false also if another thread forks meanwhile, and takes long. This
/// is `malloc_trim`.
pub fn trim() -> bool {
    built().is_some_and(|heap| {
        let Some(_inside) = enter(heap) else {
            return false;
        };
        heap.ways.free_what_waits(heap);
        heap.slabs.drain();
        heap.slabs.shrink();
        INSTANCE.large.release_idle() + heap.span.release_idle() > 0
    })
}

/// Fills freed memory with `byte` from now on, and new memory with its complement; 0 ends that.
/// False if there is no heap, or if it is the hardened one, whose memory is zero.
pub fn perturb(byte: u8) -> bool {
    let is_plain = heap().is_ok_and(|heap| !heap.is_hardened);
    if is_plain {
        fill_with(byte);
    }
    is_plain
}

/// Keeps so many idle bytes for the program, whatever their age; at first none. [`trim`] gives them
/// back all the same. False if there is no heap.
pub fn keep_idle(bytes: usize) -> bool {
    heap().is_ok_and(|heap| {
        heap.span.keep_idle(bytes);
        true
    })
}
