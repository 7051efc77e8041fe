//! Devices that are reached by ports: the serial line, the old interrupt controllers, QEMU's own.

use core::arch::asm;

use super::super::Verdict;
use super::{irq_disable, wait};

/// Writes a byte to a port.
pub fn out8(port: u16, value: u8) {
    // SAFETY: a device's port, which reaches no memory.
    unsafe {
        asm!(
            "out dx, al",
            in("dx") port,
            in("al") value,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Writes two bytes to a port.
pub fn out16(port: u16, value: u16) {
    // SAFETY: as in `out8`.
    unsafe {
        asm!(
            "out dx, ax",
            in("dx") port,
            in("ax") value,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Reads a byte from a port.
pub fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: as in `out8`.
    unsafe {
        asm!(
            "in al, dx",
            in("dx") port,
            out("al") value,
            options(nomem, nostack, preserves_flags)
        );
    }
    value
}

/// Writes a byte to the first serial line.
pub fn put(byte: u8) {
    while in8(0x3fd) & 0x20 == 0 {}
    out8(0x3f8, byte);
}

/// Masks all of the old interrupt controllers.
pub fn silence_old_controllers() {
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
}

/// Returns how many CPUs QEMU has, by its configuration device.
pub fn cpus() -> usize {
    const NUMBER_OF_CPUS: u16 = 5;
    out16(0x510, NUMBER_OF_CPUS);
    usize::from(in8(0x511)) | usize::from(in8(0x511)) << 8
}

/// Ends QEMU: with exit code 0 by switching the machine off, or with 3 by `isa-debug-exit` at port
/// 0xf4.
pub fn exit(end: Verdict) -> ! {
    match end {
        // The q35 machine's power management: sleep state 5.
        Verdict::Pass => out16(0x604, 0x2000),
        Verdict::Fail => out8(0xf4, 1),
    }
    loop {
        irq_disable();
        wait();
    }
}
