//! Poison and red zones: bytes that are put where nobody may write, and checked later.
//!
//! The values are Linux's, so that they are known on sight: 6b in free objects with a5 at their
//! end, bb around free objects, cc around objects in use.

use core::ptr::NonNull;

/// A byte of a free object ...
pub(super) const POISON: u8 = 0x6b;
/// ... except its last one.
pub(super) const POISON_END: u8 = 0xa5;
/// A byte of a red zone around a free object.
pub(super) const ZONE_FREE: u8 = 0xbb;
/// A byte of a red zone around an object in use.
pub(super) const ZONE_USED: u8 = 0xcc;

const WORD: usize = size_of::<u64>();

/// Writes `bytes` bytes of one value.
///
/// # Safety
/// They are the caller's to write.
#[inline]
pub(super) unsafe fn fill(at: NonNull<u8>, bytes: usize, value: u8) {
    // SAFETY: the caller's promise.
    unsafe { at.write_bytes(value, bytes) };
}

/// Paints a free object.
///
/// # Safety
/// Its `bytes` bytes, at least one, are the caller's to write.
pub(super) unsafe fn poison(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        fill(at, bytes - 1, POISON);
        at.add(bytes - 1).write(POISON_END);
    }
}

/// Returns true if all of these bytes have this value. Compares word by word once the address is
/// aligned.
///
/// # Safety
/// They can be read, and have been written since their memory was allocated.
pub(super) unsafe fn is_all(at: NonNull<u8>, bytes: usize, value: u8) -> bool {
    let head = at.as_ptr().align_offset(WORD).min(bytes);
    let words = (bytes - head) / WORD;
    let pattern = u64::from_ne_bytes([value; WORD]);
    // SAFETY: all three parts lie in the bytes of the caller's promise; the words begin at a
    // multiple of a word.
    unsafe {
        let begin = at.add(head).cast::<u64>();
        let tail = head + words * WORD;
        let same = |from: usize, to: usize| (from..to).all(|i| at.add(i).read() == value);
        // No early exit in the loop, so that the compiler can compare several words at once.
        let mut unlike = 0;
        for i in 0..words {
            unlike |= begin.add(i).read() ^ pattern;
        }
        same(0, head) && unlike == 0 && same(tail, bytes)
    }
}

/// Returns true if a free object is as [`poison`] left it.
///
/// # Safety
/// The conditions of [`is_all`], of at least one byte.
pub(super) unsafe fn is_poisoned(at: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { is_all(at, bytes - 1, POISON) && at.add(bytes - 1).read() == POISON_END }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_any_byte_at_any_place() {
        let mut memory = [0_u8; 96];
        for begin in 0..9 {
            for bytes in [1, 2, 7, 8, 9, 15, 16, 17, 40, 64] {
                let at = NonNull::from(&mut memory).cast::<u8>();
                // SAFETY: all of it lies in `memory`.
                unsafe {
                    let at = at.add(begin);
                    fill(at, bytes, ZONE_USED);
                    assert!(is_all(at, bytes, ZONE_USED));
                    for wrong in 0..bytes {
                        at.add(wrong).write(ZONE_USED ^ 1);
                        assert!(!is_all(at, bytes, ZONE_USED), "{begin} {bytes} {wrong}");
                        at.add(wrong).write(ZONE_USED);
                    }
                    poison(at, bytes);
                    assert!(is_poisoned(at, bytes));
                    at.add(bytes - 1).write(POISON);
                    assert!(!is_poisoned(at, bytes));
                }
            }
        }
    }
}
