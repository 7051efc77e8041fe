//! `memcpy` and `memmove` that stay within the memory of the hardened heap. Only a library that was
//! built hardened has them: they cost every copy a look at the heap's tables.
//!
//! The copying is by wide words, and by one instruction of the processor where it is long: a loop
//! in Rust, or a value of more than a word, might become a call of this `memcpy`.

use core::arch::asm;
use core::ffi::c_void;

use brickyard_heap as heap;

/// Longer pieces are copied by that instruction, or backwards by a loop.
const SHORT: usize = 64;

/// Copies `bytes` bytes. Ends the process with a line if memory of the heap is too short for that,
/// on either side, or is free.
///
/// # Safety
/// The two areas have `bytes` bytes each; those of `memcpy` do not overlap.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    check(to, from, bytes);
    // SAFETY: passed on.
    unsafe {
        if !is_copied_at_once(to.cast(), from.cast(), bytes) {
            forwards(to, from, bytes);
        }
    }
    to
}

/// Copies `bytes` bytes, also where the two areas overlap. Ends the process with a line if memory
/// of the heap is too short for that, on either side, or is free.
///
/// # Safety
/// The two areas have `bytes` bytes each; those of `memcpy` do not overlap.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    check(to, from, bytes);
    // SAFETY: passed on; backwards if the start of the target lies in the source.
    unsafe {
        if is_copied_at_once(to.cast(), from.cast(), bytes) {
            return to;
        }
        if to.addr().wrapping_sub(from.addr()) < bytes {
            backwards(to, from, bytes);
        } else {
            forwards(to, from, bytes);
        }
    }
    to
}

fn check(to: *mut c_void, from: *const c_void, bytes: usize) {
    heap::check_range(to.cast(), bytes);
    heap::check_range(from.cast_mut().cast(), bytes);
}

/// Copies what is short, by words from both ends that may overlap in the middle: all are read
/// before any is written. False, and nothing was done, if it is long.
///
/// # Safety
/// What C's `memmove` requires.
#[inline(always)]
unsafe fn is_copied_at_once(to: *mut u8, from: *const u8, bytes: usize) -> bool {
    // SAFETY: the caller's promise, throughout: one word of each kind is no more than the bytes,
    // and two (or four) are no fewer.
    unsafe {
        match bytes {
            0 => {}
            1 => to.write(from.read()),
            2..4 => both_ends::<u16>(to, from, bytes),
            4..8 => both_ends::<u32>(to, from, bytes),
            8..16 => both_ends::<u64>(to, from, bytes),
            16..33 => both_ends::<u128>(to, from, bytes),
            33..=SHORT => {
                let wide = |at: usize| from.add(at).cast::<u128>();
                let [third, last] = [bytes - 32, bytes - 16];
                let first_word = wide(0).read_unaligned();
                let second_word = wide(16).read_unaligned();
                let third_word = wide(third).read_unaligned();
                let last_word = wide(last).read_unaligned();
                to.cast::<u128>().write_unaligned(first_word);
                to.add(16).cast::<u128>().write_unaligned(second_word);
                to.add(third).cast::<u128>().write_unaligned(third_word);
                to.add(last).cast::<u128>().write_unaligned(last_word);
            }
            _ => return false,
        }
    }
    true
}

/// # Safety
/// What C's `memmove` requires, for the bytes of a `W` at least and of two at most.
#[inline(always)]
unsafe fn both_ends<W: Copy>(to: *mut u8, from: *const u8, bytes: usize) {
    let last = bytes - size_of::<W>();
    // SAFETY: the caller's promise.
    unsafe {
        let first_word = from.cast::<W>().read_unaligned();
        let last_word = from.add(last).cast::<W>().read_unaligned();
        to.cast::<W>().write_unaligned(first_word);
        to.add(last).cast::<W>().write_unaligned(last_word);
    }
}

/// # Safety
/// What C's `memcpy` requires.
#[inline(always)]
unsafe fn forwards(to: *mut c_void, from: *const c_void, bytes: usize) {
    // SAFETY: the caller's promise. The direction flag is clear, as every function finds it.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// What C's `memmove` requires, for more than [`SHORT`] bytes.
unsafe fn backwards(to: *mut c_void, from: *const c_void, bytes: usize) {
    let (to, from) = (to.cast::<u8>(), from.cast::<u8>());
    let mut left = bytes;
    // SAFETY: the caller's promise. Sixty-four bytes are read before they are written, the last
    // first; nothing behind them is read any more.
    unsafe {
        while left > SHORT {
            left -= SHORT;
            asm!(
                "movups {0}, xmmword ptr [{from}]",
                "movups {1}, xmmword ptr [{from} + 16]",
                "movups {2}, xmmword ptr [{from} + 32]",
                "movups {3}, xmmword ptr [{from} + 48]",
                "movups xmmword ptr [{to}], {0}",
                "movups xmmword ptr [{to} + 16], {1}",
                "movups xmmword ptr [{to} + 32], {2}",
                "movups xmmword ptr [{to} + 48], {3}",
                out(xmm_reg) _, out(xmm_reg) _, out(xmm_reg) _, out(xmm_reg) _,
                from = in(reg) from.add(left), to = in(reg) to.add(left),
                options(nostack, preserves_flags),
            );
        }
        let _ = is_copied_at_once(to, from, left);
    }
}
