//! Rust's global allocator in a kernel: `Box`, `Vec` and maps out of memory that the kernel gives
//! to a [`KernelHeap`], here a static array. Everything that this program allocates, its standard
//! library included, comes from there.
//!
//! Run it with `cargo run -p brickyard-adapters --features heap --example kernel_heap`.

// The C library calls `main` before any Rust code has run: as the boot loader calls a kernel.
#![no_main]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use std::collections::BTreeMap;

use brickyard::{InterruptState, Platform};
use brickyard_adapters::{HeapPlan, KernelHeap};

/// What a kernel tells the allocator. Here: one CPU, and interrupts that exist only on paper.
struct Kernel;

impl Platform for Kernel {
    fn cpu(&self) -> usize {
        0 // read it from the per-CPU register
    }
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(0) // save the flags, then `cli`
    }
    fn restore_interrupts(&self, _found: InterruptState) {} // restore the flags
}

// SAFETY: this program has one thread, and no interrupt comes to it.
#[global_allocator]
static HEAP: KernelHeap<Kernel> = unsafe { KernelHeap::new(Kernel) };

const BYTES: usize = 8 << 20;

/// What the firmware calls memory.
struct Memory(UnsafeCell<[MaybeUninit<u8>; BYTES]>);

// SAFETY: `main` borrows it once, for ever.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([MaybeUninit::uninit(); BYTES]));

/// Returns 0 if all went as it should.
// SAFETY: the C library calls it once, by this name, with whatever arguments.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    // SAFETY: nobody else borrows it, and `main` is called once.
    let memory = unsafe { &mut *MEMORY.0.get() };
    if HEAP.init(&HeapPlan::new(1), memory).is_err() {
        return 1;
    }
    let before = HEAP.numbers();

    let squares: BTreeMap<usize, String> = (0..5000).map(|i| (i, format!("{}", i * i))).collect();
    let large = vec![7_u8; 1 << 20];
    let is_square = |(i, text): (&usize, &String)| text.parse() == Ok(i * i);
    let kept = squares.iter().all(is_square) && large.iter().all(|&byte| byte == 7);
    let used = before.free - HEAP.numbers().free;
    println!("{} of {} pages in use", used, before.pages);
    let right = kept && used > 256; // the vector alone has so many
    drop((squares, large));

    if let Some(slabs) = HEAP.slabs() {
        // A cache of one's own, and what each cache holds.
        for cache in slabs.numbers().filter(|cache| cache.out > 0) {
            println!(
                "{:>14}: {} slabs, {} free in queues",
                cache.name, cache.slabs, cache.queued
            );
        }
    }
    i32::from(!right || HEAP.refused() != 0)
}
