//! The local APIC: each CPU's timer, interrupts between CPUs, and their start.

use super::{irq_restore, irq_save};
use crate::cpu::Cpu;

/// The interrupt of the timer.
pub const TIMER: u8 = 0x40;
/// The interrupt from another CPU.
pub const POKE: u8 = 0x41;
/// Interrupts that went away before they were taken.
pub const SPURIOUS: u8 = 0xff;

const ID: usize = 0x20;
const END_OF_INTERRUPT: usize = 0xb0;
const SPURIOUS_VECTOR: usize = 0xf0;
const COMMAND: usize = 0x300;
const COMMAND_TARGET: usize = 0x310;
const TIMER_VECTOR: usize = 0x320;
const TIMER_COUNT: usize = 0x380;
const TIMER_NOW: usize = 0x390;
const TIMER_DIVIDER: usize = 0x3e0;

/// The counts of the timer in a microsecond: QEMU's runs at 1 GHz.
const PER_MICROSECOND: u64 = 1000;

fn register(offset: usize) -> *mut u32 {
    core::ptr::with_exposed_provenance_mut(0xfee0_0000 + offset)
}

fn read(offset: usize) -> u32 {
    // Invariant `apic-registers`: a register of this CPU's own APIC, mapped at its address.
    // SAFETY: by `apic-registers`.
    unsafe { register(offset).read_volatile() }
}

fn write(offset: usize, value: u32) {
    // SAFETY: `apic-registers`.
    unsafe { register(offset).write_volatile(value) }
}

/// Switches this CPU's APIC on. Returns its number.
pub fn set_up() -> usize {
    write(SPURIOUS_VECTOR, 1 << 8 | u32::from(SPURIOUS));
    // Each count is one.
    write(TIMER_DIVIDER, 0b1011);
    write(TIMER_VECTOR, u32::from(TIMER));
    (read(ID) >> 24) as usize
}

/// Has the CPU's timer interrupt it once, after so many microseconds.
pub fn arm_timer(microseconds: u64) {
    write(TIMER_COUNT, (microseconds * PER_MICROSECOND) as u32);
}

/// Waits by the timer, with interrupts masked.
pub fn wait(microseconds: u64) {
    write(TIMER_VECTOR, 1 << 16 | u32::from(TIMER));
    arm_timer(microseconds);
    while read(TIMER_NOW) != 0 {
        core::hint::spin_loop();
    }
    write(TIMER_VECTOR, u32::from(TIMER));
}

/// Ends an interrupt: others may come, as soon as the CPU allows them.
pub fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

/// Interrupts a CPU.
pub fn poke(cpu: &Cpu) {
    // Both registers by the same CPU, and no other command in between.
    let found = irq_save();
    while read(COMMAND) & 1 << 12 != 0 {}
    write(COMMAND_TARGET, (cpu.hardware.get() as u32) << 24);
    write(COMMAND, 1 << 14 | u32::from(POKE));
    irq_restore(found);
}

/// Starts all other CPUs at the page with this number, in real mode.
pub fn start_all(page: u8) {
    const ALL_BUT_THIS: u32 = 0b11 << 18 | 1 << 14;
    const INIT: u32 = 0b101 << 8;
    const STARTUP: u32 = 0b110 << 8;
    write(COMMAND, ALL_BUT_THIS | INIT);
    wait(10_000);
    for _ in 0..2 {
        write(COMMAND, ALL_BUT_THIS | STARTUP | u32::from(page));
        wait(1000);
    }
}
