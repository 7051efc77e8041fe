//! Requests that find the gate of the slow paths closed for long, as while a thread forks: they are
//! served without passing it.
//!
//! A thread that forks waits for locks of the C library, and whoever holds those may be waiting for
//! memory. So a request that has waited at the gate for long does without entering: it takes no
//! lock that a thread inside takes, and leaves nothing behind that a child process could not use,
//! at any moment that the fork may choose.
//!
//! - Memory of up to 2 MiB is a run of whole pages, whatever the size. The zones of the span are
//!   lock-free: a thread that the child does not have, in the middle of a request, costs the child
//!   a block at most.
//! - Larger memory is a mapping of its own, listed beside the table of large blocks, which has room
//!   for 64. Where they are taken, a request waits for ten seconds more.
//! - Freed memory waits in a list, which grows by one compare-and-swap. The next request that has
//!   entered frees it.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::complaints::complain;
use crate::instance::{Freed, Heap, INSTANCE, enter};
use crate::span::{Contents, RUN_BYTES_MAX};

/// Allocates memory for `layout`; `None` if there is none that can be had like this.
#[cold]
pub(super) fn allocate(heap: &Heap, layout: Layout) -> Option<(NonNull<u8>, Contents)> {
    let (bytes, align) = (layout.size().max(1), layout.align());
    if bytes <= RUN_BYTES_MAX && align <= RUN_BYTES_MAX {
        let pages = |bytes: usize| bytes.div_ceil(heap.span.page_bytes());
        // A run is aligned to the power of two that holds it.
        let run = heap
            .span
            .take_run_without_locks(pages(bytes).max(pages(align)));
        if run.is_some() {
            return run;
        }
    }
    allocate_large(heap, layout)
}

/// Allocates a mapping of its own, however small it is.
#[cold]
pub(super) fn allocate_large(heap: &Heap, layout: Layout) -> Option<(NonNull<u8>, Contents)> {
    let (bytes, align) = (layout.size().max(1), layout.align());
    for _ in 0..TRIES {
        if let Some(block) = INSTANCE.large.alloc_beside(bytes, align) {
            return Some((block, Contents::Zeros));
        }
        if let Some(_inside) = enter(heap) {
            return INSTANCE.large.alloc(bytes, align);
        }
    }
    None
}

/// So often a request that finds no room beside waits at the gate again: for ten seconds.
const TRIES: usize = 500;

/// Freed memory that waits. Each piece holds the address of the next in its first word; the
/// smallest has two.
static WAITS: AtomicPtr<Waiting> = AtomicPtr::new(null_mut());

struct Waiting {
    next: *mut Waiting,
}

/// Takes memory back. Whether it is the heap's to take shows when it is freed.
///
/// # Safety
/// The conditions of [`free_slow`](super::free_slow).
#[cold]
pub(super) unsafe fn free(heap: &Heap, memory: NonNull<u8>) -> Freed {
    // SAFETY: passed on.
    if unsafe { INSTANCE.large.free_beside(memory) } {
        return Freed::Waits;
    }
    let is_ours = heap.span.contains(memory.as_ptr()) || INSTANCE.large.bytes_at(memory).is_some();
    if !is_ours {
        complain("free of what was not allocated, or is free already", memory);
    }
    // SAFETY: passed on.
    unsafe { put(memory) };
    Freed::Waits
}

/// Puts freed memory into the list.
///
/// # Safety
/// It is the heap's, and nobody uses it any more.
unsafe fn put(memory: NonNull<u8>) {
    let waiting = memory.cast::<Waiting>();
    // Relaxed, both: what counts is the compare-and-swap.
    let mut next = WAITS.load(Ordering::Relaxed);
    loop {
        // SAFETY: the caller's promise: it is the heap's, and nobody uses it any more. Every piece
        // of the heap has sixteen bytes at least, and is aligned to them.
        unsafe { waiting.write(Waiting { next }) };
        // Release: pairs with the acquire in `free_all`.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        match WAITS.compare_exchange_weak(next, waiting.as_ptr(), success, failure) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

/// Frees what waits. To be called outside the gate, by a thread that was inside.
#[inline]
pub(super) fn free_what_waits(heap: &'static Heap) {
    // Relaxed: a hint.
    if !WAITS.load(Ordering::Relaxed).is_null() {
        free_all(heap);
    }
}

#[cold]
fn free_all(heap: &'static Heap) {
    // Acquire: pairs with the release in `put`.
    let mut first = WAITS.swap(null_mut(), Ordering::Acquire);
    let mut may_enter = true;
    while let Some(waiting) = NonNull::new(first) {
        // SAFETY: written by `put`, and this thread alone has taken the list. The caller of `free`
        // has promised the rest.
        unsafe {
            first = waiting.read().next;
            if may_enter {
                // Where the next fork takes long, the others wait again.
                may_enter = heap.ways.free(heap, waiting.cast()) != Freed::Waits;
            } else {
                put(waiting.cast());
            }
        }
    }
}
