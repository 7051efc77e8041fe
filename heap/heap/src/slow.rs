//! Everything that is not a hit: misses, runs of pages, large blocks, alignments.

use core::alloc::Layout;
use core::panic::Location;
use core::ptr::{NonNull, null_mut};

use brickyard::Platform;

use super::build::{Heap, INSTANCE, built, heap};
use super::life::{self, MayStart};
use super::sampled::{self, Look, MayWalk, sampled};
use super::{BY_LAYOUT, FIRST_GENERAL, beside, cache_of, hit, nothing, perturb, put, quick};
use crate::beside::Freed;
use crate::gate::Inside;
use crate::hardened::hardened;
use crate::span::{Contents, RUN_BYTES_MAX};

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// Any memory.
    Memory,
    /// Memory that holds zeros, if there is some: above [`BY_LAYOUT`] pages, and no object. New
    /// pages hold zeros as they are, and of those that a program does not touch nothing is ever
    /// memory.
    Zeros,
}

impl Wants {
    /// Returns the cache of which an object for `layout` is wanted, if there is one.
    fn cache(self, layout: Layout) -> Option<u8> {
        cache_of(layout).filter(|_| self == Self::Memory || layout.size() <= BY_LAYOUT)
    }
}

/// Returns the caller to record where callers are tracked: the heap itself, since it cannot tell
/// who called.
fn caller() -> &'static Location<'static> {
    Location::caller()
}

/// Enters the gate; `None` if a fork takes long, for which see `beside.rs`.
pub(super) fn enter(heap: &Heap) -> Option<Inside<'static>> {
    INSTANCE.gate.try_enter(heap.cpus.cpu())
}

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
        return match sampled.look(layout, cache_of(layout)) {
            Look::Served(object) => object.as_ptr(),
            look => allocate_looked_at(heap, layout, look),
        };
    }
    if let (Some(hardened), Some(heap)) = (hardened(), built()) {
        let layout = Layout::from_size_align(bytes, 16).ok();
        return or_null(layout.and_then(|layout| hardened.allocate(heap, layout)));
    }
    // A heap comes first: without one nothing can be freed.
    if bytes == 0
        && heap().is_ok()
        && hardened().is_none()
        && let Some(memory) = nothing::allocate()
    {
        return memory.as_ptr();
    }
    match Layout::from_size_align(bytes, 16) {
        Ok(layout) => allocate_aligned(layout),
        Err(_) => null_mut(),
    }
}

/// Allocates memory for `layout` by the slow path; null if there is none. Any alignment is kept.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate_aligned(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    if let Some(hardened) = hardened() {
        return or_null(hardened.allocate(heap, layout));
    }
    let given = from(heap, layout, Wants::Memory);
    or_null(given.map(|(memory, _)| memory))
}

/// As [`allocate_aligned`], for a request that has been counted.
#[cold]
#[inline(never)]
fn allocate_looked_at(heap: &'static Heap, layout: Layout, look: Look) -> *mut u8 {
    let given = from_store(heap, (layout, Wants::Memory), look);
    or_null(given.map(|(memory, _)| memory))
}

/// As [`allocate`], for the unwinder, which may hold a lock that finding out who called needs: what
/// it asks for is never sampled.
#[cold]
#[must_use]
pub fn allocate_for_unwinder(bytes: usize) -> *mut u8 {
    match (built(), Layout::from_size_align(bytes, 16)) {
        (Some(heap), Ok(layout)) if hardened().is_none() => {
            allocate_looked_at(heap, layout, Look::Passes)
        }
        _ => allocate(bytes),
    }
}

/// Allocates memory for `layout`, of [`BY_LAYOUT`] bytes at most, by the slow path, for callers
/// that free it by that layout: it is of the cache that serves the layout, if there is one. So it
/// waits as long as another thread forks, and cannot do without the gate (`beside.rs`).
#[cold]
#[inline(never)]
pub(super) fn allocate_by_layout(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    if let Some(hardened) = hardened() {
        return or_null(hardened.allocate(heap, layout));
    }
    let look = look(layout, Wants::Memory);
    if let Look::Served(object) = look {
        return object.as_ptr();
    }
    let given = {
        let _inside = INSTANCE.gate.enter(heap.cpus.cpu());
        slow_sampled(heap, (&layout, Wants::Memory), look)
    };
    beside::free_what_waits(heap);
    life::has_grown(heap);
    sampled::after(look);
    or_null(given.map(|(memory, _)| memory))
}

/// Counts a request, where requests are counted for a profile.
#[inline]
fn look(layout: Layout, wants: Wants) -> Look {
    match sampled() {
        Some(sampled) => sampled.look(layout, wants.cache(layout)),
        None => Look::Passes,
    }
}

/// As [`slow`], for a request that may be sampled.
#[inline]
fn slow_sampled(
    heap: &'static Heap,
    (layout, wants): (&Layout, Wants),
    look: Look,
) -> Option<(NonNull<u8>, Contents)> {
    match sampled() {
        Some(sampled) => sampled.serve(heap, (layout, look), || slow(heap, *layout, wants)),
        None => slow(heap, *layout, wants),
    }
}

fn from(heap: &'static Heap, layout: Layout, wants: Wants) -> Option<(NonNull<u8>, Contents)> {
    match look(layout, wants) {
        Look::Served(object) => Some((object, Contents::Anything)),
        look => from_store(heap, (layout, wants), look),
    }
}

fn from_store(
    heap: &'static Heap,
    (layout, wants): (Layout, Wants),
    look: Look,
) -> Option<(NonNull<u8>, Contents)> {
    let Some(inside) = enter(heap) else {
        return beside::allocate(heap, layout);
    };
    let given = slow_sampled(heap, (&layout, wants), look);
    drop(inside);
    beside::free_what_waits(heap);
    life::has_grown(heap);
    sampled::after(look);
    if let Some((memory, _)) = given
        && perturb::has_closed()
    {
        perturb::on_alloc(memory, layout.size());
        return Some((memory, Contents::Anything));
    }
    given
}

fn slow(heap: &'static Heap, layout: Layout, wants: Wants) -> Option<(NonNull<u8>, Contents)> {
    if let Some(cache) = wants.cache(layout) {
        if perturb::has_closed()
            // SAFETY: the heap is built, and the number is a general size's.
            && let Some(object) = NonNull::new(unsafe { hit(usize::from(cache)) })
        {
            return Some((object, Contents::Anything));
        }
        let mut object = heap.general.alloc_slow(cache, caller());
        if layout.size() <= BY_LAYOUT {
            if object.is_err() && give_all_back(heap) {
                object = heap.general.alloc_slow(cache, caller());
            }
            // Its free goes by the layout: nothing else will do.
            return object.ok().map(|object| (object, Contents::Anything));
        }
        if let Ok(object) = object {
            return Some((object, Contents::Anything));
        }
    }
    let pages = alloc_pages(heap, layout);
    if pages.is_some() || layout.size() > RUN_BYTES_MAX || !give_all_back(heap) {
        return pages;
    }
    alloc_pages(heap, layout)
}

/// Allocates memory that is no object: a run of the span's pages, or a mapping where there is no
/// room in the span.
fn alloc_pages(heap: &Heap, layout: Layout) -> Option<(NonNull<u8>, Contents)> {
    let (bytes, align) = (layout.size().max(1), layout.align());
    let run = heap.span.take_run_for(bytes, align);
    run.or_else(|| INSTANCE.large.alloc(bytes, align))
}

/// Gives back what lies in this CPU's queues, in those that CPUs share, and in freed large blocks,
/// before a request is refused: a limit may count it. Returns true if there may be memory now.
#[cold]
fn give_all_back(heap: &Heap) -> bool {
    heap.slabs.drain();
    heap.slabs.shrink();
    INSTANCE.large.release_idle() + heap.span.idle_bytes() > 0
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

/// Allocates zeros for `layout`, which is not empty, by the slow path; null if there is no memory.
#[cold]
#[inline(never)]
pub(super) fn allocate_zeroed_aligned(layout: Layout) -> *mut u8 {
    let Ok(heap) = heap() else {
        return null_mut();
    };
    if let Some(hardened) = hardened() {
        return or_null(hardened.allocate(heap, layout));
    }
    let bytes = layout.size();
    match from(heap, layout, Wants::Zeros) {
        Some((memory, Contents::Anything)) => {
            // SAFETY: as in `allocate_zeroed`, both.
            unsafe {
                // What is no larger than a run may be guarded, in a page with what is beside it.
                if bytes <= RUN_BYTES_MAX || heap.span.contains(memory.as_ptr()) {
                    memory.write_bytes(0, bytes);
                } else {
                    INSTANCE.large.clear(memory, bytes);
                }
            }
            memory.as_ptr()
        }
        Some((memory, Contents::Zeros)) => memory.as_ptr(),
        None => null_mut(),
    }
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
    unsafe { take_back(memory, MayStart::Thread, MayWalk::Stack) }
}

/// As [`free_slow`], but starts no background thread. For callers that hold locks of the C library
/// that a new thread needs: its loader frees memory under them.
///
/// # Safety
/// As [`free_slow`].
#[cold]
#[inline(never)]
pub unsafe fn free_slow_under_locks(memory: *mut u8) {
    // SAFETY: passed on.
    unsafe { take_back(memory, MayStart::Nothing, MayWalk::Stack) }
}

/// As [`free_slow_under_locks`], for the unwinder, which may hold a lock that finding out who
/// called needs.
///
/// # Safety
/// As [`free_slow`](super::free_slow).
#[cold]
pub unsafe fn free_for_unwinder(memory: *mut u8) {
    // SAFETY: passed on.
    unsafe { take_back(memory, MayStart::Nothing, MayWalk::Nothing) }
}

unsafe fn take_back(memory: *mut u8, may: MayStart, walk: MayWalk) {
    let Some(memory) = NonNull::new(memory) else {
        return;
    };
    let Some(heap) = built() else {
        life::complain("free of memory that was never allocated", memory);
    };
    // SAFETY: passed on.
    if unsafe { take_back_one(heap, memory, walk) } == Freed::Inside {
        beside::free_what_waits(heap);
        life::has_shrunk(heap, may);
    }
}

/// Takes memory back, and nothing else.
///
/// # Safety
/// As [`free_slow`].
pub(super) unsafe fn take_back_one(
    heap: &'static Heap,
    memory: NonNull<u8>,
    walk: MayWalk,
) -> Freed {
    if let Some(hardened) = hardened() {
        // SAFETY: passed on.
        return unsafe { hardened.free(heap, memory) };
    }
    if !heap.span.contains(memory.as_ptr()) && nothing::free(memory) {
        return Freed::AtHand;
    }
    let sampled = sampled();
    if let Some(guarded) = sampled.and_then(|sampled| sampled.guarding(memory)) {
        let inside = enter(heap).filter(|_| walk == MayWalk::Stack);
        // SAFETY: passed on.
        unsafe { guarded.free(memory, inside.as_ref(), &memory) };
        return Freed::AtHand;
    }
    if perturb::has_closed() {
        // SAFETY: passed on.
        unsafe { perturb::on_free(memory) };
    }
    let Some(_inside) = enter(heap) else {
        // SAFETY: passed on.
        return unsafe { beside::free(heap, memory) };
    };
    let cache = heap.slabs.pages().cache_of(memory);
    if cache >= FIRST_GENERAL {
        // SAFETY: passed on: an object of that cache.
        if perturb::has_closed() && unsafe { put(usize::from(cache), memory.as_ptr()) } {
            return Freed::Inside;
        }
        // SAFETY: passed on.
        let freed = unsafe { heap.general.free_slow(cache, memory, caller()) };
        if freed.is_err() {
            life::complain("bad free: freed twice, or no object begins there", memory);
        }
    } else {
        if let Some(sampled) = sampled {
            sampled.freed(memory);
        }
        // SAFETY: passed on, both.
        let freed = unsafe { heap.span.give_run(memory) || INSTANCE.large.free(memory) };
        if !freed {
            life::complain("free of what was not allocated, or is free already", memory);
        }
    }
    Freed::Inside
}

/// Gives back what is free: queues of this CPU, queues that CPUs share, and idle pages. Returns
/// true if idle pages went back; false also if another thread forks meanwhile, and takes long. This
/// is `malloc_trim`.
pub fn trim() -> bool {
    built().is_some_and(|heap| {
        let Some(_inside) = enter(heap) else {
            return false;
        };
        if let Some(hardened) = hardened() {
            hardened.free_what_waits(heap);
        }
        heap.slabs.drain();
        heap.slabs.shrink();
        INSTANCE.large.release_idle() + heap.span.release_idle() > 0
    })
}

/// Ends the process with a line if so many bytes from an address on are not all in use by one
/// piece, as far as the hardened heap can tell. Says nothing on a plain heap, and of addresses
/// elsewhere.
#[inline]
pub fn check_range(memory: *mut u8, bytes: usize) {
    if bytes > 0
        && let (Some(hardened), Some(heap)) = (hardened(), built())
        && let Some(memory) = NonNull::new(memory)
    {
        hardened.check_range(heap, memory, bytes);
    }
}

/// Ends the process with a line if memory of the hardened heap is in use, and more or less than
/// `bytes` bytes were asked for. Says nothing on a plain heap, and of other addresses: who frees
/// them will.
#[inline]
pub fn check_size(memory: *mut u8, bytes: usize) {
    if let (Some(hardened), Some(heap)) = (hardened(), built())
        && let Some(memory) = NonNull::new(memory)
    {
        hardened.check_size(heap, memory, bytes);
    }
}

/// Keeps so many idle bytes for the program, whatever their age; at first none. [`trim`] gives them
/// back all the same. False if there is no heap.
pub fn keep_idle(bytes: usize) -> bool {
    heap().is_ok_and(|heap| {
        heap.span.keep_idle(bytes);
        true
    })
}
