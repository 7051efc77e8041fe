//! Functions that the compiler itself calls and that a kernel must supply: copying and setting
//! memory, and the name of the unwinder, which nothing here ever uses. They work byte by byte and
//! volatile, so that the compiler cannot turn the loops into calls of themselves.

/// # Safety
/// Both areas have `bytes` bytes and do not overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    for i in 0..bytes {
        // SAFETY: both areas have `bytes` bytes.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) }
    }
    to
}

/// # Safety
/// The area has `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    for i in 0..bytes {
        // SAFETY: the area has `bytes` bytes.
        unsafe { to.add(i).write_volatile(byte as u8) }
    }
    to
}

/// # Safety
/// Both areas have `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    let forwards = to.cast_const() <= from;
    for i in 0..bytes {
        let i = if forwards { i } else { bytes - 1 - i };
        // SAFETY: both areas have `bytes` bytes. The direction keeps what is still to be read.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) }
    }
    to
}

/// # Safety
/// Both areas have `bytes` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for i in 0..bytes {
        // SAFETY: both areas have `bytes` bytes.
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

/// The prebuilt `core` refers to this symbol, though a program that aborts never calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
