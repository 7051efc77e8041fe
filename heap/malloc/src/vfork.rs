//! `vfork`, around which the heap takes care of itself: its children allocate, although they may not.
//!
//! The child returns first, and uses the stack of its caller. So the return address stays in a
//! register, which each of the two has for itself, until the system call is over.

use core::arch::naked_asm;
use core::ffi::c_int;

use brickyard_heap as heap;

use super::set_errno;

/// `-4095`: results of system calls from here on, as unsigned numbers, are errors.
const FIRST_ERROR: isize = -4095;

extern "C" fn failed(error: c_int) -> c_int {
    set_errno(error);
    -1
}

extern "C" fn before() -> u32 {
    heap::before_vfork()
}

extern "C" fn after(before: u32) {
    heap::after_vfork(before);
}

/// Makes a child process that uses the memory of its parent, whose thread goes on when the child has
/// ended or has become another program.
///
/// # Safety
/// Whoever calls it must not return from its own function in the child.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn vfork() -> c_int {
    naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "mov esi, eax",
        "pop rdi",
        "mov eax, {vfork}",
        "syscall",
        "push rdi",
        "test eax, eax",
        "jnz 2f",
        "ret",
        "2:",
        "push rax",
        "mov edi, esi",
        "call {after}",
        "pop rax",
        "cmp rax, {first_error}",
        "jae 3f",
        "ret",
        "3:",
        "mov edi, eax",
        "neg edi",
        "jmp {failed}",
        before = sym before,
        after = sym after,
        failed = sym failed,
        vfork = const libc::SYS_vfork,
        first_error = const FIRST_ERROR,
    )
}

/// See above.
///
/// # Safety
/// Whoever calls it must not return from its own function in the child.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn vfork() -> c_int {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {before}",
        "ldp x29, x30, [sp], #16",
        "mov w9, w0",
        "mov x0, #{flags}",
        "mov x1, #0",
        "mov x2, #0",
        "mov x3, #0",
        "mov x4, #0",
        "mov x8, #{clone}",
        "svc #0",
        "cbnz x0, 2f",
        "ret",
        "2:",
        "stp x0, x30, [sp, #-16]!",
        "mov w0, w9",
        "bl {after}",
        "ldp x0, x30, [sp], #16",
        "cmn x0, #{first_error}",
        "b.cs 3f",
        "ret",
        "3:",
        "neg w0, w0",
        "b {failed}",
        before = sym before,
        after = sym after,
        failed = sym failed,
        flags = const libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
        clone = const libc::SYS_clone,
        first_error = const -FIRST_ERROR,
    )
}
