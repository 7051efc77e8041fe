//! The first instructions of each CPU, and what the firmware tells.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{PER_SECOND, sbi, trap, wait};
use crate::arch::CPUS;
use crate::cpu;
use crate::device_tree::{self, MAGIC, Malformed};
use crate::task::STACK;
use crate::{Boot, errand, fail, settings};

#[repr(align(4096))]
struct Stacks(#[allow(dead_code, reason = "reached by address")] UnsafeCell<[[u8; STACK]; CPUS]>);
// SAFETY: each stack is its CPU's.
unsafe impl Sync for Stacks {}
static BOOT_STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; CPUS]));

// `_start`: the first hart, with its number in a0 and the address of the device tree in a1. Clears
// the static variables, and takes the first stack. `_start_other`: any other hart, with its number
// in a0 and its index in a1.
global_asm!(
    ".section .text.entry, \"ax\"",
    ".globl _start",
    "_start:",
    "la t0, __bss_start",
    "la t1, __bss_end",
    "1: bgeu t0, t1, 2f",
    "sd zero, 0(t0)",
    "addi t0, t0, 8",
    "j 1b",
    "2: la sp, {stacks}",
    "li t0, {stack}",
    "add sp, sp, t0",
    "call {first}",
    ".globl _start_other",
    "_start_other:",
    "la sp, {stacks}",
    "addi t1, a1, 1",
    "slli t0, t1, {stack_shift}",
    "add sp, sp, t0",
    "call {other}",
    ".text",
    stacks = sym BOOT_STACKS,
    stack = const STACK,
    stack_shift = const STACK.trailing_zeros(),
    first = sym first,
    other = sym other,
);

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    fn _start_other();
}

/// What the hardware calls each CPU.
static HARTS: [AtomicUsize; CPUS] = [const { AtomicUsize::new(0) }; CPUS];

/// Points the CPU to its words and to the trap handler. Interrupts stay masked.
fn set_up(id: usize, hart: usize) {
    let cpu = cpu::cpu(id);
    cpu.init(id, hart);
    // SAFETY: `cpu-register` begins to hold here; the trap handler is one.
    unsafe {
        asm!(
            "mv tp, {cpu}",
            "csrw stvec, {trap}",
            "csrs sie, {which}",
            cpu = in(reg) cpu,
            trap = in(reg) trap::entry(),
            which = in(reg) trap::TIMER_AND_SOFTWARE,
            options(nostack)
        );
    }
}

extern "C" fn other(hart: usize, id: usize) -> ! {
    set_up(id, hart);
    errand::go_online();
    loop {
        wait();
    }
}

/// Starts the CPUs from 1 to `cpus`.
pub fn start_others(cpus: usize) {
    for (id, hart) in HARTS.iter().enumerate().take(cpus).skip(1) {
        // Relaxed: written by this CPU.
        let hart = hart.load(Ordering::Relaxed);
        let error = sbi::start_hart(hart, _start_other as *const () as usize, id);
        if error != 0 {
            fail(format_args!(
                "hart {hart} does not start: SBI error {error}"
            ));
        }
    }
}

extern "C" fn first(hart: usize, tree: *const u8) -> ! {
    set_up(0, hart);
    match read_tree(tree, hart) {
        Ok(boot) => crate::kernel(boot),
        Err(why) => fail(format_args!("{why}")),
    }
}

/// The largest device tree that is read.
const TREE_MOST: usize = 4 << 20;

/// Reads what the firmware tells.
fn read_tree(tree: *const u8, own: usize) -> Result<Boot, Malformed> {
    if tree.is_null() || !tree.addr().is_multiple_of(8) {
        return Err(Malformed::Magic(0));
    }
    // SAFETY: the firmware's promise is an address of memory. If it is none, the trap says so.
    let head = unsafe { [tree.cast::<u32>().read(), tree.cast::<u32>().add(1).read()] };
    let [magic, size] = head.map(u32::from_be);
    if magic != MAGIC {
        return Err(Malformed::Magic(magic));
    }
    if size as usize > TREE_MOST {
        return Err(Malformed::Short);
    }
    // SAFETY: the magic number is there, so this is a tree of its own size. Nobody writes to it.
    let bytes = unsafe { core::slice::from_raw_parts(tree, size as usize) };
    let found = device_tree::read(bytes)?;
    let mut map = found.map;
    let image = (&raw const __image_start).addr();
    let image_bytes = (&raw const __image_end).addr() - image;
    map.reserved.push(image, image_bytes)?;
    map.reserved.push(tree.addr(), bytes.len())?;
    if let Some(ticks) = found.ticks_per_second {
        // Relaxed: before the other CPUs start.
        PER_SECOND.store(ticks.max(1_000_000) as u64, Ordering::Relaxed);
    }
    let mut cpus = 1;
    for &hart in found.cpus().iter().filter(|&&hart| hart != own) {
        if let Some(place) = HARTS.get(cpus) {
            place.store(hart, Ordering::Relaxed);
            cpus += 1;
        }
    }
    match settings::read(found.arguments) {
        Ok(settings) => Ok(Boot {
            map,
            cpus,
            settings,
        }),
        Err(unknown) => fail(format_args!("{unknown}")),
    }
}
