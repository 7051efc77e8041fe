//! The serial line and the device that ends the machine, at the addresses that QEMU's `virt` has.

use super::super::Verdict;
use super::wait;

/// Writes a byte to the serial line (a 16550).
pub fn put(byte: u8) {
    let uart = core::ptr::with_exposed_provenance_mut::<u8>(0x1000_0000);
    // Invariant `virt-devices`: the kernel runs on this machine only, and these addresses
    // are device registers there.
    // SAFETY: by `virt-devices`.
    unsafe {
        while uart.add(5).read_volatile() & 0x20 == 0 {}
        uart.write_volatile(byte);
    }
}

/// Ends QEMU with exit code 0, or 1.
pub fn exit(end: Verdict) -> ! {
    let word: u32 = match end {
        Verdict::Pass => 0x5555,
        Verdict::Fail => 1 << 16 | 0x3333,
    };
    let device = core::ptr::with_exposed_provenance_mut::<u32>(0x10_0000);
    // SAFETY: `virt-devices`.
    unsafe { device.write_volatile(word) };
    loop {
        wait();
    }
}
