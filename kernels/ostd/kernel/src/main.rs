//! A small OSTD kernel on Brickyard's frames. Every CPU takes pages, segments of any length and
//! heap objects, writes to all of them, finds what it wrote, and gives them back whole or in parts;
//! timer interrupts take and give pages meanwhile. At the end every invariant holds. It prints
//! PASS, and ends QEMU with 33; anything else is a failure.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use brickyard_ostd::{Frames, Metadata, blocks, words};
use ostd::cpu::{CpuId, num_cpus};
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{FrameAllocOptions, HasPaddr, HasSize, PAGE_SIZE, Segment, Split, VmIo};
use ostd::power::{ExitCode, poweroff};
use ostd::prelude::*;

/// For memory below 5 GiB, and one CPU less than there may be: the last one has no stash.
static METADATA: Metadata<{ words(5) }, { blocks(5) }, 3> = Metadata::new();

#[ostd::global_frame_allocator]
static FRAMES: Frames = Frames::new(&METADATA);

#[ostd::global_heap_allocator]
static HEAP: osdk_heap_allocator::HeapAllocator = osdk_heap_allocator::HeapAllocator;

#[ostd::global_heap_allocator_slot_map]
const fn slot_of(layout: Layout) -> Option<ostd::mm::heap::SlotInfo> {
    osdk_heap_allocator::type_from_layout(layout)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("FAIL: {}", info);
    poweroff(ExitCode::Failure);
}

const STEPS: usize = 4000;

static DONE: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicU64 = AtomicU64::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
/// Interrupts leave the allocator alone.
static QUIET: AtomicBool = AtomicBool::new(false);
/// The number of interrupts that may be using it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

#[ostd::main]
fn main() {
    println!("{} CPUs, {:?}", num_cpus(), FRAMES.numbers());
    contract();
    ostd::timer::register_callback_on_cpu(in_interrupt);
    ostd::boot::smp::register_ap_entry(|| {
        ostd::timer::register_callback_on_cpu(in_interrupt);
        work();
        loop {
            core::hint::spin_loop();
        }
    });
    work();
    // Acquire: pairs with the release at the end of `work`.
    while DONE.load(Ordering::Acquire) < num_cpus() {
        core::hint::spin_loop();
    }
    // Nobody may be using the allocator while it is checked.
    // SeqCst: either an interrupt sees this, or this CPU sees that it is inside.
    QUIET.store(true, Ordering::SeqCst);
    while INSIDE.load(Ordering::SeqCst) > 0 {
        core::hint::spin_loop();
    }
    let interrupts = INTERRUPTS.load(Ordering::Relaxed);
    let pages = PAGES.load(Ordering::Relaxed);
    let census = FRAMES.check();
    println!(
        "{} pages, {} pages in interrupts, {:?}",
        pages,
        interrupts,
        FRAMES.numbers()
    );
    println!("{:?}", census);
    let fine = census.is_ok() && interrupts > 0 && pages > 10_000;
    println!("{}", if fine { "PASS" } else { "FAIL" });
    poweroff(if fine {
        ExitCode::Success
    } else {
        ExitCode::Failure
    });
}

/// What OSTD's contract asks of the allocator, seen from outside, while nobody else runs.
fn contract() {
    let page = |frames| Layout::from_size_align(frames * PAGE_SIZE, PAGE_SIZE);
    let free = || FRAMES.numbers().free + FRAMES.numbers().cached;
    let before = free();
    let layout = page(5).expect("five pages");
    let five = FRAMES.alloc(layout).expect("five pages are free");
    assert_eq!(free(), before - 5, "the rest of the block is free");
    // In two parts, the last one first.
    FRAMES.dealloc(five + 3 * PAGE_SIZE, 2 * PAGE_SIZE);
    FRAMES.dealloc(five, 3 * PAGE_SIZE);
    assert_eq!(free(), before);
    // Once more: refused, with a line in the log.
    FRAMES.dealloc(five, 5 * PAGE_SIZE);
    assert_eq!(free(), before);
    let aligned = Layout::from_size_align(PAGE_SIZE, 64 * PAGE_SIZE).expect("a page");
    let one = FRAMES.alloc(aligned).expect("a page is free");
    assert_eq!((one % (64 * PAGE_SIZE), free()), (0, before - 1));
    FRAMES.dealloc(one, PAGE_SIZE);
    assert_eq!(free(), before);
    // More than there is, and more than there can be.
    let all = page(before + 1).expect("less than the address space");
    assert_eq!(FRAMES.alloc(all), None);
    assert_eq!(FRAMES.alloc(page(1 << 19).expect("2 GiB")), None);
}

fn in_interrupt() {
    // SeqCst: pairs with what `main` does before the check.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    if !QUIET.load(Ordering::SeqCst)
        && let Ok(frame) = FrameAllocOptions::new().zeroed(false).alloc_frame()
    {
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
        drop(frame);
    }
    // SeqCst: as above; what this interrupt did to the allocator comes before the check.
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

/// Numbers that look random, others on each CPU.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// A segment, and what is written at both ends of each of its pages.
struct Stamped(Segment<()>, u64);

impl Stamped {
    fn new(pages: usize, stamp: u64) -> Option<Self> {
        let segment = FrameAllocOptions::new().zeroed(false).alloc_segment(pages);
        let segment = segment.ok()?;
        for at in Self::places(&segment) {
            segment
                .write_val(at, &stamp)
                .expect("memory of the segment");
        }
        PAGES.fetch_add(pages as u64, Ordering::Relaxed);
        Some(Self(segment, stamp))
    }

    fn places(segment: &Segment<()>) -> impl Iterator<Item = usize> {
        let pages = (0..segment.size()).step_by(PAGE_SIZE);
        pages.flat_map(|page| [page, page + PAGE_SIZE - 8])
    }

    /// Finds what was written, and gives it back: whole, or in two parts.
    fn give(self, parts: usize) {
        let Self(segment, stamp) = self;
        for at in Self::places(&segment) {
            let found: u64 = segment.read_val(at).expect("memory of the segment");
            assert_eq!(
                found,
                stamp,
                "{:#x} has a second owner",
                segment.paddr() + at
            );
        }
        let pages = segment.size() / PAGE_SIZE;
        if parts > 1 && pages > 1 {
            let (low, high) = segment.split(pages / 2 * PAGE_SIZE);
            drop(high);
            drop(low);
        }
    }
}

fn work() {
    let id = u32::from(CpuId::current_racy()) as usize;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(id as u64 + 1) | 1);
    let mut held: Vec<Stamped> = Vec::new();
    let mut objects: Vec<Box<[u8]>> = Vec::new();
    for step in 0..STEPS {
        match dice.below(8) {
            0..3 if held.len() < 64 => {
                let pages = match dice.below(32) {
                    0 => 1 + dice.below(700),
                    1..8 => 1 + dice.below(16),
                    _ => 1,
                };
                held.extend(Stamped::new(pages, (id << 32 | step) as u64));
            }
            3..6 if !held.is_empty() => {
                let old = held.swap_remove(dice.below(held.len()));
                old.give(1 + dice.below(2));
            }
            6 => objects.push(alloc::vec![id as u8; 1 + dice.below(9000)].into_boxed_slice()),
            _ if !objects.is_empty() => {
                let old = objects.swap_remove(dice.below(objects.len()));
                assert!(
                    old.iter().all(|&byte| byte == id as u8),
                    "an object has a second owner"
                );
            }
            _ => {}
        }
    }
    held.into_iter().for_each(|old| old.give(1));
    drop(objects);
    // Release: pairs with the acquire in `main`.
    DONE.fetch_add(1, Ordering::Release);
}
