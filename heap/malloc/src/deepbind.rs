//! `dlopen`, which opens libraries without `RTLD_DEEPBIND`: with that a library finds the C
//! library's `malloc` and `free` before those that were preloaded, while functions and programs
//! that it exchanges memory with find these. (PHP opens its extensions like that.) With
//! `BRICKYARD_DEEPBIND=1` they are opened as they ask.
//!
//! The loader looks up who calls, by the return address: so the call is passed on by a jump.

use core::arch::{global_asm, naked_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use brickyard_arena::weak_address;
use brickyard_heap as heap;

/// The C library's; null before the first call.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What stays of the flags: once the function is known, what the environment says.
static STAY: AtomicI32 = AtomicI32::new(!libc::RTLD_DEEPBIND);

// Weak: a program that is linked statically needs none of this.
global_asm!(".weak dlsym");

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Returns the C library's function; null if it has none.
extern "C" fn next() -> *mut c_void {
    let dlsym = weak_address!("dlsym");
    if dlsym.is_null() {
        return null_mut();
    }
    // SAFETY: it is that function.
    let next = unsafe {
        let dlsym = core::mem::transmute::<*const u8, Dlsym>(dlsym);
        dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr())
    };
    if heap::switch(c"BRICKYARD_DEEPBIND") == Some(true) {
        STAY.store(!0, Ordering::Relaxed);
    }
    // Relaxed, both: the function was there before this library, and flags are flags.
    NEXT.store(next, Ordering::Relaxed);
    next
}

/// Opens a library, in the order of all others.
///
/// # Safety
/// `name` is null or a C string.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "mov rax, qword ptr [rip + {known}]",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {next}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 3f",
        "2:",
        "and esi, dword ptr [rip + {stay}]",
        "jmp rax",
        "3:",
        "ret",
        known = sym NEXT,
        next = sym next,
        stay = sym STAY,
    )
}

/// See above.
///
/// # Safety
/// `name` is null or a C string.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "adrp x16, {known}",
        "ldr x16, [x16, :lo12:{known}]",
        "cbnz x16, 2f",
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "bl {next}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "cbnz x16, 2f",
        "mov x0, #0",
        "ret",
        "2:",
        "adrp x17, {stay}",
        "ldr w17, [x17, :lo12:{stay}]",
        "and w1, w1, w17",
        "br x16",
        known = sym NEXT,
        next = sym next,
        stay = sym STAY,
    )
}
