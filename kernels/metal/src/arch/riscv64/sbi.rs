//! Calls of the firmware (RISC-V Supervisor Binary Interface 1.0): timers, interrupts between CPUs,
//! and their start.

use core::arch::asm;

const TIME: usize = 0x5449_4d45;
const IPI: usize = 0x0073_5049;
const HSM: usize = 0x0048_534d;

fn call(extension: usize, function: usize, arguments: [usize; 3]) -> isize {
    let error: isize;
    // SAFETY: the firmware keeps all registers but a0 and a1, and does what is asked of it.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") arguments[0] => error,
            inlateout("a1") arguments[1] => _,
            in("a2") arguments[2],
            in("a6") function,
            in("a7") extension,
        );
    }
    error
}

/// Sets this CPU's timer to interrupt it at a time.
pub fn set_timer(at: u64) {
    call(TIME, 0, [at as usize, 0, 0]);
}

/// Sends an interrupt to a hart.
pub fn send_ipi(hart: usize) {
    call(IPI, 0, [1, hart, 0]);
}

/// Starts a hart at `entry`, with its number in a0 and `argument` in a1. Returns an error, or 0.
pub fn start_hart(hart: usize, entry: usize, argument: usize) -> isize {
    call(HSM, 0, [hart, entry, argument])
}
