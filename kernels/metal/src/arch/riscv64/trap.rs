//! Traps: every interrupt and exception, on the stack that is in use. The registers go there; the
//! scheduler may go on with those of another task.

use core::arch::{asm, global_asm};

use crate::scheduler::{self, InterruptKind, Switch};
use crate::task;

/// `sie`: timer and software interrupts.
pub const TIMER_AND_SOFTWARE: usize = 1 << 5 | 1 << 1;

/// `sstatus` of a new task: supervisor mode, with interrupts allowed.
const NEW_STATUS: usize = 1 << 8 | 1 << 5;

/// The bytes of the saved registers: 31 words, and one for alignment.
const FRAME: usize = 256;
// The words of a frame that a new task needs.
const A0: usize = 7;
const SEPC: usize = 29;
const SSTATUS: usize = 30;

global_asm!(
    ".macro each_register operation",
    "\\operation ra, 0(sp)",
    "\\operation gp, 8(sp)",
    "\\operation t0, 16(sp)",
    "\\operation t1, 24(sp)",
    "\\operation t2, 32(sp)",
    "\\operation s0, 40(sp)",
    "\\operation s1, 48(sp)",
    "\\operation a0, 56(sp)",
    "\\operation a1, 64(sp)",
    "\\operation a2, 72(sp)",
    "\\operation a3, 80(sp)",
    "\\operation a4, 88(sp)",
    "\\operation a5, 96(sp)",
    "\\operation a6, 104(sp)",
    "\\operation a7, 112(sp)",
    "\\operation s2, 120(sp)",
    "\\operation s3, 128(sp)",
    "\\operation s4, 136(sp)",
    "\\operation s5, 144(sp)",
    "\\operation s6, 152(sp)",
    "\\operation s7, 160(sp)",
    "\\operation s8, 168(sp)",
    "\\operation s9, 176(sp)",
    "\\operation s10, 184(sp)",
    "\\operation s11, 192(sp)",
    "\\operation t3, 200(sp)",
    "\\operation t4, 208(sp)",
    "\\operation t5, 216(sp)",
    "\\operation t6, 224(sp)",
    ".endm",
    ".balign 4",
    ".globl _trap",
    "_trap:",
    "addi sp, sp, -{frame}",
    "each_register sd",
    "csrr t0, sepc",
    "csrr t1, sstatus",
    "sd t0, 232(sp)",
    "sd t1, 240(sp)",
    "mv a0, sp",
    "call {trap}",
    "mv sp, a0",
    "beqz a1, 1f",
    "mv a0, a1",
    "call {leave}",
    "1: ld t0, 232(sp)",
    "ld t1, 240(sp)",
    "csrw sepc, t0",
    "csrw sstatus, t1",
    "each_register ld",
    "addi sp, sp, {frame}",
    "sret",
    frame = const FRAME,
    trap = sym trap,
    leave = sym task::leave,
);

unsafe extern "C" {
    fn _trap();
}

/// Returns the address of the trap handler.
pub fn entry() -> usize {
    _trap as *const () as usize
}

/// Writes the first registers of a task to the top of its stack, and returns where they are.
pub fn new_frame(top: usize, entry: extern "C" fn(usize) -> !, argument: usize) -> usize {
    let frame = top - FRAME;
    let words = core::ptr::with_exposed_provenance_mut::<usize>(frame);
    // SAFETY: the stack is nobody's yet.
    unsafe {
        words.add(A0).write(argument);
        words.add(SEPC).write(entry as *const () as usize);
        words.add(SSTATUS).write(NEW_STATUS);
    }
    frame
}

extern "C" fn trap(frame: usize) -> Switch {
    let (cause, value, at): (usize, usize, usize);
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "csrr {}, scause",
            "csrr {}, stval",
            "csrr {}, sepc",
            out(reg) cause,
            out(reg) value,
            out(reg) at,
            options(nostack)
        );
    }
    const INTERRUPT: usize = 1 << 63;
    match cause ^ INTERRUPT {
        5 => scheduler::interrupt(frame, InterruptKind::Timer),
        1 => {
            // SAFETY: acknowledges the interrupt.
            unsafe { asm!("csrci sip, 2", options(nostack)) };
            scheduler::interrupt(frame, InterruptKind::Poke)
        }
        _ => panic!("trap {cause:#x} at {at:#x}, value {value:#x}"),
    }
}
