//! A small SMP kernel that lives on Brickyard. It starts every CPU, takes the memory map from the
//! firmware, makes a zone of it, and lets preemptible tasks that move from CPU to CPU, and nested
//! interrupts, allocate and free. Each frame is claimed in an ownership oracle and stamped in its
//! own memory. Prints PASS, and ends QEMU with exit code 0, if nothing went wrong.

#![no_std]
#![no_main]

mod arch;
mod console;
mod cpu;
#[cfg(target_arch = "riscv64")]
mod device_tree;
mod errand;
mod memory_map;
mod metadata;
mod objects;
mod platform;
mod report;
mod round;
mod scheduler;
mod settings;
mod slab_pages;
mod system;
mod task;
mod workers;

use core::fmt;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brickyard::sync::{Exclusive, Shared};

use arch::Verdict;
use console::println;
use memory_map::MemoryMap;
use metadata::MetadataRoom;
use settings::Settings;

/// What the firmware tells.
#[derive(Clone, Copy)]
pub struct Boot {
    /// Memory, and what of it is in use.
    pub map: MemoryMap,
    /// The CPUs.
    pub cpus: usize,
    /// The command line.
    pub settings: Settings,
}

/// Called by the architecture on the boot CPU, which is CPU 0 and set up, with interrupts masked.
pub fn kernel(mut boot: Boot) -> ! {
    let settings = boot.settings;
    println!(
        "metal: {}, {} CPUs, seed {}",
        arch::NAME,
        boot.cpus,
        settings.seed
    );
    for (from, to) in boot.map.memory.iter() {
        println!("  memory   {from:#012x}..{to:#012x}");
    }
    for (from, to) in boot.map.reserved.iter() {
        println!("  reserved {from:#012x}..{to:#012x}");
    }
    let bytes = system::bytes::<Shared>(&boot).max(system::bytes::<Exclusive>(&boot));
    let address = match boot.map.carve(bytes) {
        Ok(Some(address)) => address,
        Ok(None) => fail(format_args!("no room for {bytes} bytes of metadata")),
        Err(why) => fail(format_args!("{why}")),
    };
    println!("  metadata {address:#012x}, {bytes} bytes");
    arch::start_others(boot.cpus);
    errand::go_online();
    while cpu::all(boot.cpus).any(|cpu| !cpu.online.load(Ordering::Acquire)) {
        arch::relax();
    }

    let begin = arch::ticks();
    let mut rounds = 0;
    loop {
        // Each pair of rounds has another seed, and so other sizes of stashes.
        let seed = settings.seed.wrapping_add(rounds / 2 * 0x1_0000_0001);
        // Relaxed: for messages.
        SEED.store(settings.seed, Ordering::Relaxed);
        ROUND.store(rounds + 1, Ordering::Relaxed);
        // SAFETY: carved out of the map; whatever was made here in the round before is not used any
        // more, since its tasks are gone and its interrupts' work has ended.
        let mut room = unsafe { MetadataRoom::new(address, bytes) };
        match (settings.slots, rounds % 2) {
            (1, _) | (0, 0) => round::run::<Exclusive>(&boot, &mut room, rounds + 1, seed),
            _ => round::run::<Shared>(&boot, &mut room, rounds + 1, seed),
        }
        rounds += 1;
        let seconds = (arch::ticks() - begin) / arch::ticks_per_second();
        let enough = match settings.seconds {
            0 => rounds >= settings.rounds,
            most => seconds >= most,
        };
        if enough {
            println!("PASS: {rounds} rounds in {seconds} s of the machine's clock");
            arch::exit(Verdict::Pass)
        }
    }
}

/// The seed.
static SEED: AtomicU64 = AtomicU64::new(0);
/// The round that runs, from 1.
static ROUND: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicBool = AtomicBool::new(false);

/// Says what was found, and ends the machine with another exit code than 0. Only the first one to
/// fail says so.
pub fn fail(what: fmt::Arguments<'_>) -> ! {
    arch::irq_disable();
    if FAILED.swap(true, Ordering::Relaxed) {
        loop {
            core::hint::spin_loop();
        }
    }
    let (seed, round) = (SEED.load(Ordering::Relaxed), ROUND.load(Ordering::Relaxed));
    println!("FAIL: seed {seed}, round {round}: {what}");
    arch::exit(Verdict::Fail)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    fail(format_args!("{info}"))
}
