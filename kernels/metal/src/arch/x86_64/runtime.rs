//! What the compiler itself calls, and the name of the unwinder, which the prebuilt `core` of the
//! host's target refers to and nothing here uses.

use core::arch::asm;

/// # Safety
/// Both areas have `bytes` bytes and do not overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: as for the caller.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
    to
}

/// # Safety
/// The area has `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: as for the caller.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") bytes => _,
            inout("rdi") to => _,
            in("al") byte as u8,
            options(nostack, preserves_flags)
        );
    }
    to
}

/// # Safety
/// Both areas have `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= bytes {
        // SAFETY: as for the caller. Upwards, no byte is overwritten before it is read.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: as for the caller, and downwards the same holds. The direction is restored.
    unsafe {
        asm!(
            "std",
            "rep movsb",
            "cld",
            inout("rcx") bytes => _,
            inout("rdi") to.wrapping_add(bytes).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(bytes).wrapping_sub(1) => _,
            options(nostack)
        );
    }
    to
}

/// # Safety
/// Both areas have `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for i in 0..bytes {
        // Volatile, so that the loop does not become a call of this function.
        // SAFETY: as for the caller.
        let (a, b) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

/// # Safety
/// Both areas have `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: as for the caller.
    unsafe { memcmp(a, b, bytes) }
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
