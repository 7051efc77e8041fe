//! A PC that QEMU starts directly (PVH). `gs` points to the CPU's words. The kernel runs at its own
//! physical addresses; all memory is mapped once more at [`direct_map`], as in a kernel that does
//! not.
//!
//! It is compiled for the host's own target, whose prebuilt `core` keeps values below the stack
//! pointer and in SSE registers. So every interrupt enters on a stack of its own, goes on below
//! those values, and saves these registers.

mod apic;
mod boot;
mod clock;
mod ports;
mod runtime;
mod tables;
mod trap;

use core::arch::asm;

use crate::cpu::{Cpu, THIS};

pub use apic::{arm_timer, poke};
pub use boot::start_others;
pub use clock::{ticks, ticks_per_second};
pub use ports::{exit, put};
pub use trap::new_frame;

/// The name.
pub const NAME: &str = "x86_64";

/// The flag that allows interrupts.
const INTERRUPTS: usize = 0x200;

/// Reads a word of the running CPU by one instruction.
#[inline(always)]
pub fn cpu_word<const OFFSET: usize>() -> usize {
    let word;
    // Invariant `cpu-words`: `gs` points to the CPU's words, and `OFFSET` is one of them.
    // SAFETY: by `cpu-words`.
    unsafe {
        asm!(
            "mov {}, gs:[{offset}]",
            out(reg) word,
            offset = const OFFSET,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Returns the running CPU, for callers that cannot be moved.
pub fn this_cpu() -> &'static Cpu {
    // SAFETY: `cpu-words`; the word is the address of the words, which are static.
    unsafe { &*core::ptr::with_exposed_provenance(cpu_word::<THIS>()) }
}

/// Returns true if interrupts are allowed.
#[inline(always)]
pub fn irqs_on() -> bool {
    let flags: usize;
    // SAFETY: reads the flags by way of the stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) }
    flags & INTERRUPTS != 0
}

/// Allows interrupts.
pub fn irq_enable() {
    // SAFETY: the interrupt table is set up.
    unsafe { asm!("sti", options(nostack)) }
}

/// Masks interrupts.
pub fn irq_disable() {
    // SAFETY: takes away no more than that.
    unsafe { asm!("cli", options(nostack)) }
}

/// Masks interrupts, and returns whether they were allowed.
#[inline]
pub fn irq_save() -> bool {
    let on = irqs_on();
    irq_disable();
    on
}

/// Restores what [`irq_save`] returned.
#[inline]
pub fn irq_restore(on: bool) {
    if on {
        irq_enable();
    }
}

/// Waits for an interrupt.
pub fn wait() {
    // SAFETY: no more than that.
    unsafe { asm!("hlt", options(nostack)) }
}

/// Waits a little for another CPU.
pub fn relax() {
    core::hint::spin_loop();
}

/// Where all physical memory is mapped: the first address of the upper half.
const DIRECT_MAP: usize = 0xffff_8000_0000_0000;

/// Returns where the memory at a physical address is reached. The first 512 GiB are mapped.
#[inline(always)]
pub fn direct_map(address: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(DIRECT_MAP + address)
}
