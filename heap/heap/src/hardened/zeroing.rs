//! Whether memory is zero, and making it so: of short pieces without a loop or a call, by wide
//! words from both ends that may overlap in the middle.

use core::ptr::NonNull;
use core::slice;

/// Longer pieces take a loop.
pub(super) const SHORT: usize = 128;

/// Returns true if so many bytes are zero.
///
/// # Safety
/// They can be read, nobody writes them meanwhile, and they are aligned like a word. They are a
/// multiple of eight, and not none.
#[inline(always)]
pub(super) unsafe fn is_zero(memory: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise, throughout: N is at most the bytes.
    unsafe {
        match bytes {
            ..16 => memory.cast::<u64>().read() == 0,
            16..=32 => ends_are_zero::<2>(memory, bytes),
            33..=64 => ends_are_zero::<4>(memory, bytes),
            65..=SHORT => ends_are_zero::<8>(memory, bytes),
            _ => is_long_zero(memory, bytes),
        }
    }
}

/// # Safety
/// The conditions of [`is_zero`], with N words at least.
#[inline(always)]
unsafe fn ends_are_zero<const N: usize>(memory: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    let (first, last) = unsafe {
        let last = memory.add(bytes - N * size_of::<u64>());
        (
            memory.cast::<[u64; N]>().read(),
            last.cast::<[u64; N]>().read(),
        )
    };
    let pairs = first.iter().zip(&last);
    pairs.fold(0, |all, (a, b)| all | a | b) == 0
}

/// # Safety
/// The conditions of [`is_zero`].
#[inline(never)]
unsafe fn is_long_zero(memory: NonNull<u8>, bytes: usize) -> bool {
    let (first, words) = (memory.as_ptr().cast::<u64>(), bytes / size_of::<u64>());
    // SAFETY: the caller's promise.
    let words = unsafe { slice::from_raw_parts(first, words) };
    // Words side by side and no branch, which compilers turn into wide loads.
    let (pieces, rest) = words.as_chunks::<8>();
    let mut all = [0_u64; 8];
    for piece in pieces {
        for (all, word) in all.iter_mut().zip(piece) {
            *all |= word;
        }
    }
    all.iter().chain(rest).fold(0, |all, word| all | word) == 0
}

/// Makes so many bytes zero.
///
/// # Safety
/// They are the caller's, and aligned like a word. They are a multiple of eight, and not none.
#[inline(always)]
pub(super) unsafe fn clear(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise, throughout: N is at most the bytes.
    unsafe {
        match bytes {
            ..16 => memory.cast::<u64>().write(0),
            16..=32 => clear_ends::<2>(memory, bytes),
            33..=64 => clear_ends::<4>(memory, bytes),
            65..=SHORT => clear_ends::<8>(memory, bytes),
            _ => memory.write_bytes(0, bytes),
        }
    }
}

/// # Safety
/// The conditions of [`clear`], with N words at least.
#[inline(always)]
unsafe fn clear_ends<const N: usize>(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let last = memory.add(bytes - N * size_of::<u64>());
        memory.cast::<[u64; N]>().write([0; N]);
        last.cast::<[u64; N]>().write([0; N]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_looked_at_and_no_other_is_changed() {
        for words in 1..60 {
            for at in 0..words {
                let mut memory = [0_u64; 64];
                memory[words] = 7;
                memory[at] = 1 << (at % 64);
                let first = NonNull::from(&mut memory).cast();
                // SAFETY: so many words of this test's own.
                unsafe {
                    assert!(!is_zero(first, words * 8), "{words}: {at}");
                    clear(first, words * 8);
                    assert!(is_zero(first, words * 8));
                }
                assert_eq!(memory[words], 7);
            }
        }
    }
}
