//! The plain heap: misses, runs of pages, large blocks, alignments, and frees that are no hits.

use core::alloc::Layout;
use core::panic::Location;
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_slab::sizes::STEP;
use brickyard_slab::sizes::process::{CLASSES, MAX_GENERAL, SIZES};

use crate::fast_path::{BY_LAYOUT, FIRST_GENERAL, cache_of, hit_slowly, put_slowly};
use crate::gate::Inside;
use crate::instance::{Freed, Heap, INSTANCE, Ways, enter};
use crate::maintenance::{self, MayStart};
use crate::sampling::{self, Look, Sampled};
use crate::span::{Contents, RUN_BYTES_MAX};
use crate::{closed_gate, complaints, perturb, zero_sized};

/// Its ways. They look at each request that is sampled, and fill memory where that is wanted.
pub(crate) struct Plain;

impl Ways for Plain {
    fn allocate(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        from(heap, layout, Wants::Memory).map(|(memory, _)| memory)
    }

    fn allocate_zeros(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        let bytes = layout.size();
        match from(heap, layout, Wants::Zeros) {
            Some((memory, Contents::Anything)) => {
                // SAFETY: the memory has so many bytes, and is this caller's, both.
                unsafe {
                    // What is no larger than a run may be guarded, in a page with what is beside
                    // it.
                    if bytes <= RUN_BYTES_MAX || heap.span.contains(memory.as_ptr()) {
                        memory.write_bytes(0, bytes);
                    } else {
                        INSTANCE.large.clear(memory, bytes);
                    }
                }
                Some(memory)
            }
            Some((memory, Contents::Zeros)) => Some(memory),
            None => None,
        }
    }

    /// It is of the cache that serves the layout, if there is one. So it waits as long as another
    /// thread forks, and cannot do without the gate (`closed_gate.rs`).
    fn allocate_by_layout(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        match look(layout, Wants::Memory) {
            Look::Served(object) => Some(object),
            look => {
                let inside = INSTANCE.gate.enter(heap.cpus.cpu());
                let given = from_store(heap, inside, (&layout, Wants::Memory), look);
                given.map(|(memory, _)| memory)
            }
        }
    }

    unsafe fn free(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed {
        if !heap.span.contains(memory.as_ptr()) && zero_sized::free(memory) {
            return Freed::AtHand;
        }
        // SAFETY: passed on.
        if unsafe { sampling::free(memory, &memory) } {
            return Freed::AtHand;
        }
        if perturb::has_closed() {
            // SAFETY: passed on.
            unsafe { perturb::on_free(memory, || self.usable_size(heap, memory)) };
        }
        let Some(_inside) = enter(heap) else {
            // SAFETY: passed on.
            return unsafe { closed_gate::free(heap, memory) };
        };
        let cache = heap.cache_of(memory);
        if cache >= FIRST_GENERAL {
            // SAFETY: passed on: an object of that cache.
            if perturb::has_closed() && unsafe { put_slowly(usize::from(cache), memory.as_ptr()) } {
                return Freed::Inside;
            }
            // SAFETY: passed on.
            let freed = unsafe { heap.general.free_slow(cache, memory, caller()) };
            if freed.is_err() {
                complaints::complain("bad free: freed twice, or no object begins there", memory);
            }
        } else {
            sampling::freed(memory);
            // SAFETY: passed on, both.
            let freed = unsafe { heap.span.give_run(memory) || INSTANCE.large.free(memory) };
            if !freed {
                complaints::complain("free of what was not allocated, or is free already", memory);
            }
        }
        Freed::Inside
    }

    fn usable_size(&self, heap: &'static Heap, memory: NonNull<u8>) -> usize {
        if let Some(bytes) = sampling::usable_size(memory) {
            return bytes;
        }
        if !heap.span.contains(memory.as_ptr()) && zero_sized::contains(memory) {
            return 0;
        }
        match heap.cache_of(memory) {
            cache if cache >= FIRST_GENERAL => SIZES[usize::from(cache - FIRST_GENERAL)] as usize,
            _ => match heap.span.run_at(memory) {
                Some(pages) => pages * heap.span.page_bytes(),
                // Whether inside or not: it only looks.
                None => {
                    let _inside = enter(heap);
                    INSTANCE.large.bytes_at(memory).unwrap_or(0)
                }
            },
        }
    }

    unsafe fn resize(
        &self,
        heap: &'static Heap,
        memory: NonNull<u8>,
        had: usize,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        if stays(had, bytes) {
            sampling::stays(memory, bytes);
            return Some(memory);
        }
        if had <= BY_LAYOUT {
            return None;
        }
        // SAFETY: passed on.
        unsafe { resize_pages(heap, memory, bytes, self.with_room_to_grow(had, bytes)) }
    }

    /// What grows by little will grow again: an eighth more, so that a program that grows a piece
    /// of memory byte by byte moves it a few times for each doubling.
    fn with_room_to_grow(&self, had: usize, bytes: usize) -> usize {
        let more = had.saturating_add(had / GROWTH_PART);
        match had > BY_LAYOUT && bytes > had && bytes < more {
            true => more,
            false => bytes,
        }
    }
}

/// What grows gets one part in so many more than it had, at least.
const GROWTH_PART: usize = 8;

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

/// Allocates memory for `layout`, where requests are counted: by a short way if this CPU has an
/// object at hand.
#[inline]
pub(crate) fn allocate_counted(
    heap: &'static Heap,
    sampled: &Sampled,
    layout: Layout,
) -> Option<NonNull<u8>> {
    match sampling::look_at(sampled, layout, cache_of(layout)) {
        Look::Served(object) => Some(object),
        look => allocate_looked_at(heap, layout, look),
    }
}

#[cold]
#[inline(never)]
fn allocate_looked_at(heap: &'static Heap, layout: Layout, look: Look) -> Option<NonNull<u8>> {
    let given = from_gate(heap, (layout, Wants::Memory), look);
    given.map(|(memory, _)| memory)
}

/// Counts a request, where requests are counted.
#[inline(always)]
fn look(layout: Layout, wants: Wants) -> Look {
    sampling::look(layout, || wants.cache(layout))
}

fn from(heap: &'static Heap, layout: Layout, wants: Wants) -> Option<(NonNull<u8>, Contents)> {
    match look(layout, wants) {
        Look::Served(object) => Some((object, Contents::Anything)),
        look => from_gate(heap, (layout, wants), look),
    }
}

fn from_gate(
    heap: &'static Heap,
    (layout, wants): (Layout, Wants),
    look: Look,
) -> Option<(NonNull<u8>, Contents)> {
    let Some(inside) = enter(heap) else {
        return closed_gate::allocate(heap, layout);
    };
    let given = from_store(heap, inside, (&layout, wants), look);
    if let Some((memory, _)) = given
        && perturb::has_closed()
    {
        perturb::on_alloc(memory, layout.size());
        return Some((memory, Contents::Anything));
    }
    given
}

/// Serves a request that missed, inside the gate, and does what is left to do outside.
#[inline(always)]
fn from_store(
    heap: &'static Heap,
    inside: Inside<'_>,
    (layout, wants): (&Layout, Wants),
    look: Look,
) -> Option<(NonNull<u8>, Contents)> {
    let given = sampling::serve(heap, (layout, look), move || slow(heap, *layout, wants));
    drop(inside);
    closed_gate::free_what_waits(heap);
    maintenance::has_grown(heap);
    sampling::after(look);
    given
}

#[inline(never)]
fn slow(heap: &'static Heap, layout: Layout, wants: Wants) -> Option<(NonNull<u8>, Contents)> {
    if let Some(cache) = wants.cache(layout) {
        if perturb::has_closed()
            // SAFETY: the heap is built, and the number is a general size's.
            && let Some(object) = NonNull::new(unsafe { hit_slowly(usize::from(cache)) })
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

/// Returns true if memory of `had` bytes stays where it is for `bytes`: no more than half of what
/// has at most 32 KiB would be wasted, a quarter of what has at most 128, or an eighth of more; or
/// nothing smaller would be found.
#[inline(always)]
pub(crate) fn stays(had: usize, bytes: usize) -> bool {
    let part = if had <= BY_LAYOUT {
        2
    } else if had <= MAX_GENERAL {
        4
    } else {
        8
    };
    bytes <= had && (had - bytes <= had / part || size_of_class(bytes) == had)
}

/// Returns the bytes that a request of a general size gets.
#[inline]
pub(crate) fn size_of_class(bytes: usize) -> usize {
    SIZES[usize::from(CLASSES[bytes.min(MAX_GENERAL).div_ceil(STEP)])] as usize
}

/// Resizes a run or a large block without copying, if that can be done.
#[cold]
unsafe fn resize_pages(
    heap: &'static Heap,
    memory: NonNull<u8>,
    bytes: usize,
    more: usize,
) -> Option<NonNull<u8>> {
    let inside = enter(heap)?;
    if heap.cache_of(memory) >= FIRST_GENERAL {
        // The pages of an object are its slab's.
        return None;
    }
    if let Some(pages) = heap.span.run_at(memory) {
        let fewer = bytes.div_ceil(heap.span.page_bytes());
        // SAFETY: passed on: nobody uses the tail.
        let cut = bytes > BY_LAYOUT && fewer < pages && unsafe { heap.span.cut_run(memory, fewer) };
        drop(inside);
        if cut {
            sampling::stays(memory, bytes);
            maintenance::has_shrunk(heap, MayStart::Thread);
        }
        return cut.then_some(memory);
    }
    if bytes <= RUN_BYTES_MAX {
        return None;
    }
    // SAFETY: passed on, both.
    let resize = move || unsafe {
        let longer = (more > bytes).then(|| INSTANCE.large.resize(memory, more));
        longer
            .flatten()
            .or_else(|| INSTANCE.large.resize(memory, bytes))
    };
    sampling::resizing(memory, bytes, resize)
}
