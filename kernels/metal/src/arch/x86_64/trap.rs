//! Interrupts and exceptions. An interrupt enters on the CPU's entry stack with interrupts masked,
//! copies what the CPU pushed to the interrupted stack, below what code may keep there, and goes on
//! there: so the entry stack is free again before interrupts are allowed.

use core::arch::{asm, global_asm};

use super::apic;
use crate::scheduler::{self, InterruptKind, Switch};
use crate::task;

/// The segment of code.
pub const CODE: u64 = 0x18;
/// The segment of data.
const DATA: u64 = 0x10;
/// The bytes below a stack pointer that code may use (System V ABI).
const RED_ZONE: usize = 128;
/// The bytes of `fxsave`.
const SSE: usize = 512;
/// The words that follow: fifteen registers, and five that the CPU pushed.
const WORDS: usize = 20;
// The words that a new task needs.
const RDI: usize = 8;
const RIP: usize = 15;
const CS: usize = 16;
const FLAGS: usize = 17;
const RSP: usize = 18;
const SS: usize = 19;

global_asm!(
    r#"
    .macro interrupt name, kind
    .globl \name
\name:
    pushq %rax
    pushq %rcx
    movq 40(%rsp), %rax
    subq ${red_zone}, %rax
    andq $-16, %rax
    movq 48(%rsp), %rcx
    movq %rcx, -8(%rax)
    movq 40(%rsp), %rcx
    movq %rcx, -16(%rax)
    movq 32(%rsp), %rcx
    movq %rcx, -24(%rax)
    movq 24(%rsp), %rcx
    movq %rcx, -32(%rax)
    movq 16(%rsp), %rcx
    movq %rcx, -40(%rax)
    movq 8(%rsp), %rcx
    movq %rcx, -48(%rax)
    movq (%rsp), %rcx
    movq %rcx, -56(%rax)
    leaq -56(%rax), %rsp
    movl $\kind, %ecx
    jmp interrupt_common
    .endm
    interrupt _interrupt_timer, {timer}
    interrupt _interrupt_poke, {poke}
interrupt_common:
    pushq %rdx
    pushq %rbx
    pushq %rbp
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq ${sse}, %rsp
    fxsave64 (%rsp)
    cld
    movq %rsp, %rdi
    movl %ecx, %esi
    call {trap}
    movq %rax, %rsp
    testq %rdx, %rdx
    jz 1f
    movq %rdx, %rdi
    call {leave}
1:  fxrstor64 (%rsp)
    addq ${sse}, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rbp
    popq %rbx
    popq %rdx
    popq %rcx
    popq %rax
    iretq

    .balign 16
    .globl _exceptions
_exceptions:
    .set vector, 0
    .rept 32
    .balign 16
    movl $vector, %edi
    jmp exception_common
    .set vector, vector + 1
    .endr
exception_common:
    movq %rsp, %rsi
    andq $-16, %rsp
    call {exception}
    .balign 16
    .globl _spurious
_spurious:
    iretq
    "#,
    red_zone = const RED_ZONE,
    sse = const SSE,
    timer = const InterruptKind::Timer as usize,
    poke = const InterruptKind::Poke as usize,
    trap = sym trap,
    leave = sym task::leave,
    exception = sym exception,
    options(att_syntax),
);

unsafe extern "C" {
    static _exceptions: u8;
    fn _interrupt_timer();
    fn _interrupt_poke();
    fn _spurious();
}

/// Returns the address of an exception's entry: each has 16 bytes.
pub fn exception_entry(vector: usize) -> usize {
    (&raw const _exceptions).addr() + 16 * vector
}

/// Returns the address of the timer's entry.
pub fn timer_entry() -> usize {
    _interrupt_timer as *const () as usize
}

/// Returns the address of the entry of interrupts from other CPUs.
pub fn poke_entry() -> usize {
    _interrupt_poke as *const () as usize
}

/// Returns the address of the entry that does nothing.
pub fn spurious_entry() -> usize {
    _spurious as *const () as usize
}

/// Writes the first registers of a task to the top of its stack, and returns where they are.
pub fn new_frame(top: usize, entry: extern "C" fn(usize) -> !, argument: usize) -> usize {
    const CONTROL_OF_FLOATS: u16 = 0x37f;
    const CONTROL_OF_SSE: u32 = 0x1f80;
    let frame = top - RED_ZONE - WORDS * size_of::<u64>() - SSE;
    let sse = core::ptr::with_exposed_provenance_mut::<u8>(frame);
    // SAFETY: the stack is nobody's yet. Its top is a multiple of 16, and so is the frame.
    unsafe {
        sse.cast::<u16>().write(CONTROL_OF_FLOATS);
        sse.add(24).cast::<u32>().write(CONTROL_OF_SSE);
        let words = sse.add(SSE).cast::<u64>();
        words.add(RDI).write(argument as u64);
        words.add(RIP).write(entry as *const () as u64);
        words.add(CS).write(CODE);
        words.add(FLAGS).write(0x202);
        // As after a call.
        words.add(RSP).write(top as u64 - 8);
        words.add(SS).write(DATA);
    }
    frame
}

extern "C" fn trap(frame: usize, kind: usize) -> Switch {
    // Interrupts stay masked until the scheduler allows them.
    apic::end_of_interrupt();
    let kind = match kind {
        kind if kind == InterruptKind::Timer as usize => InterruptKind::Timer,
        _ => InterruptKind::Poke,
    };
    scheduler::interrupt(frame, kind)
}

extern "C" fn exception(vector: usize, stack: *const usize) -> ! {
    // SAFETY: at least three words are on the entry stack.
    let words = [0, 1, 2].map(|i| unsafe { stack.add(i).read() });
    let address: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) }
    panic!("exception {vector}: {words:x?}, address {address:#x}")
}
