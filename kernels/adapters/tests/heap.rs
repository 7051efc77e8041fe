//! The heap with memory of its own.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use brickyard::{FrameRange, InterruptState, OneCpu, Platform};
use brickyard_adapters::{HeapError, HeapPlan, KernelHeap};
use brickyard_arena::Threads;

use crate::support::{Dice, Held, leaked};

const PAGE: usize = 4096;

/// A heap that one thread uses, not built yet.
fn vacant() -> &'static KernelHeap<OneCpu> {
    // SAFETY: the test's one thread uses it, and no interrupt.
    Box::leak(Box::new(unsafe { KernelHeap::new(OneCpu) }))
}

/// The same with so much memory, at an odd address.
fn built(bytes: usize) -> &'static KernelHeap<OneCpu> {
    let heap = vacant();
    let memory = &mut leaked(bytes + 77, PAGE)[77..];
    assert_eq!(heap.init(&HeapPlan::new(1), memory), Ok(()));
    heap
}

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

fn take<P: Platform>(heap: &KernelHeap<P>, layout: Layout, stamp: u8) -> Held {
    // SAFETY: no layout here is empty.
    Held::new(unsafe { heap.alloc(layout) }, layout, stamp)
}

fn give<P: Platform>(heap: &KernelHeap<P>, held: Held) {
    held.check(held.layout.size());
    // SAFETY: it is this caller's, taken with this layout.
    unsafe { heap.dealloc(held.pointer(), held.layout) };
}

/// Everything is free again, and every invariant of the zone holds.
fn at_rest<P: Platform>(heap: &'static KernelHeap<P>) {
    let slabs = heap.slabs().unwrap();
    slabs.drain();
    slabs.shrink();
    // The slabs' own sheaves lie in their first cache.
    let out: u64 = slabs.numbers().skip(1).map(|cache| cache.out).sum();
    assert_eq!(out, 0);
    // SAFETY: nothing is freed to it.
    let zone = unsafe { heap.zone() }.unwrap();
    zone.drain();
    let census = zone.check().unwrap();
    let numbers = heap.numbers();
    assert_eq!((numbers.free, numbers.refused), (census.free, 0));
    let first = slabs.numbers().next().unwrap();
    let sheaves = first.slabs * first.pages_per_slab;
    assert_eq!(census.allocated, sheaves as usize, "{numbers:?}");
}

#[test]
fn all_sizes_and_alignments_keep_their_contents_and_come_back() {
    let heap = built(24 << 20);
    let mut dice = Dice::new(3);
    let mut held: Vec<Held> = Vec::new();
    for step in 0..40_000_usize {
        let stamp = step as u8;
        match dice.below(8) {
            0..4 if held.len() < 300 => {
                let bytes = match dice.below(16) {
                    0 => 1 + dice.below(200_000),
                    1..4 => 1 + dice.below(40_000),
                    _ => 1 + dice.below(2000),
                };
                let shifts = dice.one_of(&[8, 8, 8, 16]);
                let align = 1 << dice.below(shifts);
                held.push(take(heap, layout(bytes, align), stamp));
            }
            4 if !held.is_empty() => {
                let old = held.swap_remove(dice.below(held.len()));
                let bytes = 1 + dice.below(2 * old.layout.size() + 64);
                old.check(old.layout.size());
                // SAFETY: it is this caller's, taken with this layout; the new size is not 0.
                let new = unsafe { heap.realloc(old.pointer(), old.layout, bytes) };
                assert!(!new.is_null());
                let kept = Held {
                    at: new.expose_provenance(),
                    ..old
                };
                kept.check(bytes.min(old.layout.size()));
                held.push(Held::new(new, layout(bytes, old.layout.align()), stamp));
            }
            5 => {
                let size = layout(1 + dice.below(50_000), 8);
                // SAFETY: the layout is not empty.
                let zeroed = unsafe { heap.alloc_zeroed(size) };
                let zeros = Held {
                    at: zeroed.expose_provenance(),
                    layout: size,
                    stamp: 0,
                };
                zeros.check(size.size());
                held.push(Held::new(zeroed, size, stamp));
            }
            _ if !held.is_empty() => {
                let old = held.swap_remove(dice.below(held.len()));
                give(heap, old);
            }
            _ => {}
        }
        if held.len() >= 300 {
            held.drain(..100).for_each(|old| give(heap, old));
        }
    }
    held.into_iter().for_each(|old| give(heap, old));
    at_rest(heap);
}

#[test]
fn pages_are_as_many_as_are_needed_and_no_more() {
    let heap = built(16 << 20);
    let free = heap.numbers().free;
    for pages in [9, 10, 17, 100, 129, 513] {
        let many = take(heap, layout(pages * PAGE - 5, 8), 1);
        assert_eq!(heap.numbers().free, free - pages);
        give(heap, many);
        assert_eq!(heap.numbers().free, free);
    }
    for align in [1 << 13, 1 << 16, 1 << 20, 1 << 21] {
        let small = take(heap, layout(100, align), 2);
        assert_eq!(heap.numbers().free, free - 1, "{align}");
        give(heap, small);
    }
    at_rest(heap);
}

#[test]
fn a_realloc_moves_only_what_has_to_move() {
    let heap = built(8 << 20);
    let free = heap.numbers().free;
    let realloc = |held: Held, bytes| {
        // SAFETY: it is this caller's, taken with its layout; the size is not 0.
        let new = unsafe { heap.realloc(held.pointer(), held.layout, bytes) };
        let moved = new.addr() != held.at;
        let kept = Held {
            at: new.expose_provenance(),
            layout: layout(bytes, held.layout.align()),
            ..held
        };
        kept.check(bytes.min(held.layout.size()));
        (kept, moved)
    };
    // Pages become fewer where they lie, and the rest is free at once.
    let many = take(heap, layout(100 * PAGE, 8), 5);
    let (fewer, moved) = realloc(many, 33 * PAGE + 1);
    assert_eq!((moved, heap.numbers().free), (false, free - 34));
    let (same, moved) = realloc(fewer, 34 * PAGE);
    assert_eq!((moved, heap.numbers().free), (false, free - 34));
    let same = Held::new(same.pointer(), same.layout, 6);
    // They move to become more.
    let (more, moved) = realloc(same, 60 * PAGE);
    assert_eq!((moved, heap.numbers().free), (true, free - 60));
    // SAFETY: it is this caller's, taken with this layout.
    unsafe { heap.dealloc(more.pointer(), more.layout) };
    // An object stays within its size.
    let object = take(heap, layout(1000, 8), 7);
    let (object, moved) = realloc(object, 1024);
    assert!(!moved);
    let object = Held::new(object.pointer(), object.layout, 8);
    let (object, moved) = realloc(object, 1025);
    assert!(moved);
    // SAFETY: it is this caller's, taken with this layout.
    unsafe { heap.dealloc(object.pointer(), object.layout) };
    at_rest(heap);
}

#[test]
fn an_exhausted_heap_refuses_and_serves_again_after_a_free() {
    let heap = built(4 << 20);
    for size in [layout(1 << 16, 8), layout(PAGE, PAGE), layout(40, 8)] {
        let mut held = Vec::new();
        loop {
            // SAFETY: the layout is not empty.
            let at = unsafe { heap.alloc(size) };
            if at.is_null() {
                break;
            }
            held.push(Held::new(at, size, held.len() as u8));
        }
        let least = 3 << 20;
        assert!(held.len() * size.size() > least, "{} {size:?}", held.len());
        // SAFETY: the layout is not empty.
        assert!(unsafe { heap.alloc(size) }.is_null());
        give(heap, held.swap_remove(held.len() / 2));
        held.push(take(heap, size, 9));
        held.into_iter().for_each(|old| give(heap, old));
        // What lies in queues now does not keep the next size from having as much.
    }
    at_rest(heap);
    // More than there will ever be.
    for bytes in [5 << 20, 2 << 30, isize::MAX as usize - PAGE] {
        // SAFETY: the layout is not empty.
        assert!(unsafe { heap.alloc(layout(bytes, 8)) }.is_null());
    }
    // SAFETY: the layout is not empty.
    assert!(unsafe { heap.alloc(layout(8, 1 << 40)) }.is_null());
}

#[test]
fn frees_that_are_noticed_are_counted_and_change_nothing() {
    let heap = built(4 << 20);
    let pages = take(heap, layout(20 * PAGE, 8), 1);
    let free = heap.numbers().free;
    let again = || {
        // SAFETY: not sound to use in any other way; the test holds nothing else.
        unsafe { heap.dealloc(pages.pointer(), pages.layout) };
        (heap.numbers().free, heap.refused())
    };
    assert_eq!(again(), (free + 20, 0));
    assert_eq!(again(), (free + 20, 1));
    let larger = take(heap, layout(9 * PAGE, 8), 2);
    // A wrong size: more than it has.
    // SAFETY: as above.
    unsafe { heap.dealloc(larger.pointer(), layout(500 * PAGE, 8)) };
    assert_eq!(heap.refused(), 2);
    larger.check(9 * PAGE);
    let object = take(heap, layout(64, 8), 3);
    // SAFETY: as above: the object freed last.
    unsafe {
        heap.dealloc(object.pointer(), object.layout);
        heap.dealloc(object.pointer(), object.layout);
    }
    assert_eq!(heap.refused(), 3);
    // Memory of nobody.
    let mut other = [0_u64; 8];
    // SAFETY: as above: the heap compares addresses.
    unsafe { heap.dealloc(other.as_mut_ptr().cast(), layout(40 * PAGE, 8)) };
    assert_eq!(heap.refused(), 4);
    give(heap, larger);
    // SAFETY: nothing is freed to it.
    let census = unsafe { heap.zone() }.unwrap().check().unwrap();
    assert!(census.free > 0);
}

#[test]
fn before_it_is_built_a_heap_has_nothing_and_it_is_built_once() {
    let heap = vacant();
    // SAFETY: the layout is not empty.
    assert!(unsafe { heap.alloc(layout(8, 8)) }.is_null());
    assert!(heap.slabs().is_none());
    assert_eq!(heap.add(leaked(PAGE, PAGE)), Err(HeapError::NotBuilt));
    assert_eq!(heap.numbers().pages, 0);
    let plan = HeapPlan::new(1);
    assert_eq!(heap.init(&plan, leaked(1 << 20, PAGE)), Ok(()));
    let again = heap.init(&plan, leaked(1 << 20, PAGE));
    assert_eq!(again, Err(HeapError::Built));
    give(heap, take(heap, layout(8, 8), 1));
    at_rest(heap);
}

#[test]
fn memory_that_is_too_small_says_what_would_suffice_at_any_address() {
    let plan = HeapPlan::new(3);
    let Err(HeapError::TooSmall { needed }) = vacant().init(&plan, leaked(PAGE, PAGE)) else {
        panic!("a page is too small");
    };
    for skip in [0, 1, 64, 2049, 4095] {
        let heap = vacant();
        // Longer memory needs more for its own pages, which the error has counted in part.
        let memory = &mut leaked(needed + 2 * PAGE + skip, PAGE)[skip..];
        assert_eq!(heap.init(&plan, memory), Ok(()), "{skip}");
        assert!(heap.numbers().pages >= 1);
    }
    let text = HeapError::TooSmall { needed }.to_string();
    assert!(text.contains(&needed.to_string()) && text.contains("plan fewer CPUs"));
    for bytes in [0, 1, 100] {
        let heap = vacant();
        let memory = &mut leaked(PAGE, PAGE)[..bytes];
        assert!(heap.init(&plan, memory).is_err(), "{bytes}");
        assert!(heap.slabs().is_none());
    }
}

#[test]
fn what_a_heap_keeps_for_itself_is_what_its_documentation_says() {
    for cpus in [0, 1, 2, 16] {
        let plan = HeapPlan::new(cpus);
        let Err(HeapError::TooSmall { needed }) = vacant().init(&plan, leaked(PAGE, PAGE)) else {
            panic!("a page is too small");
        };
        // Two pages are for the heap, and what alignment takes.
        assert!(
            needed - 2 * PAGE <= (30 + 17 * cpus) << 10,
            "{cpus}: {needed}"
        );
        let heap = vacant();
        assert_eq!(heap.init(&plan, leaked(64 << 20, PAGE)), Ok(()));
        let all = 64 << 8;
        let kept = (all - heap.numbers().pages) * PAGE;
        assert!(kept <= needed + all * 66, "{cpus}: {kept}");
    }
}

#[test]
fn memory_is_added_within_the_span_that_was_planned() {
    let all = leaked(16 << 20, PAGE);
    let start = all.as_ptr().addr() / PAGE;
    let span = FrameRange::new(start, start + (8 << 8));
    let (early, late) = all.split_at_mut(1 << 20);
    let (late, beyond) = late.split_at_mut(7 << 20);
    let heap = vacant();
    let plan = HeapPlan::new(1).spanning(span);
    assert_eq!(heap.init(&plan, early), Ok(()));
    let before = heap.numbers().pages;
    // Two pages are cut at the ends.
    assert_eq!(heap.add(&mut late[1..(2 << 20) - 1]), Ok(512 - 2));
    assert_eq!(heap.numbers().pages, before + 510);
    let memory = FrameRange::new(start + (8 << 8), start + (16 << 8));
    let outside = HeapError::Outside { memory, span };
    assert_eq!(heap.add(beyond), Err(outside));
    assert!(outside.to_string().contains("`spanning`"));
    assert_eq!(heap.add(leaked(100, PAGE)), Ok(0));
    let large = take(heap, layout(200 * PAGE, 8), 4);
    give(heap, large);
    at_rest(heap);
}

#[test]
fn threads_as_cpus_pass_memory_on_and_every_byte_has_one_owner() {
    // SAFETY: a thread keeps its number and so its CPU, and there are no interrupts.
    let heap: &'static KernelHeap<Threads> =
        Box::leak(Box::new(unsafe { KernelHeap::new(Threads) }));
    let plan = HeapPlan::new(16);
    assert_eq!(heap.init(&plan, leaked(64 << 20, PAGE)), Ok(()));
    let (to, from): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<Held>()).unzip();
    thread::scope(|scope| {
        for (number, inbox) in from.into_iter().enumerate() {
            let next = to[(number + 1) % 4].clone();
            scope.spawn(move || {
                let mut dice = Dice::new(number as u64 + 1);
                let mut held = Vec::new();
                for step in 0..20_000_usize {
                    let bytes = match dice.below(20) {
                        0 => 1 + dice.below(100_000),
                        _ => 1 + dice.below(3000),
                    };
                    let stamp = (step * 4 + number) as u8;
                    held.push(take(heap, layout(bytes, 16), stamp));
                    let old = held.swap_remove(dice.below(held.len()));
                    match dice.below(3) {
                        0 => next.send(old).unwrap_or(()),
                        1 => give(heap, old),
                        _ => held.push(old),
                    }
                    inbox.try_iter().for_each(|old| give(heap, old));
                    if held.len() > 100 {
                        held.drain(..).for_each(|old| give(heap, old));
                    }
                }
                held.into_iter().for_each(|old| give(heap, old));
                drop(next);
                // Others are not done yet: what they still send is freed here.
                inbox.iter().for_each(|old| give(heap, old));
                // A thread's queues stay with its number.
                heap.slabs().unwrap().drain();
            });
        }
        drop(to);
    });
    at_rest(heap);
}

/// One CPU that an interrupt may come to at any time.
#[derive(Debug, Default)]
struct Interrupted {
    interrupt: AtomicBool,
    masked: AtomicBool,
}

impl Platform for Interrupted {
    fn cpu(&self) -> usize {
        0
    }

    fn in_interrupt(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(self.masked.swap(true, Ordering::Relaxed).into())
    }

    fn restore_interrupts(&self, found: InterruptState) {
        self.masked.store(found.0 == 1, Ordering::Relaxed);
    }
}

#[test]
fn interrupts_allocate_and_free_too() {
    // SAFETY: one thread; an interrupt here comes between two calls only.
    let heap: &'static KernelHeap<Interrupted> =
        Box::leak(Box::new(unsafe { KernelHeap::new(Interrupted::default()) }));
    assert_eq!(heap.init(&HeapPlan::new(1), leaked(8 << 20, PAGE)), Ok(()));
    let mut held = Vec::new();
    for step in 0..2000 {
        let interrupt = step % 3 == 0;
        heap.platform()
            .interrupt
            .store(interrupt, Ordering::Relaxed);
        let bytes = [24, 300, 5000, 70_000][step % 4];
        held.push(take(heap, layout(bytes, 8), step as u8));
        if held.len() > 40 {
            give(heap, held.swap_remove(step % 40));
        }
        assert!(!heap.platform().masked.load(Ordering::Relaxed));
    }
    held.into_iter().for_each(|old| give(heap, old));
    heap.platform().interrupt.store(false, Ordering::Relaxed);
    at_rest(heap);
}
