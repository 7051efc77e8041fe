//! The ends of memory: a word at the end of each piece, and bytes behind what was asked for.
//!
//! The word's upper 48 bits are made of its address and a secret, so that nobody can guess them,
//! nor copy them from elsewhere. The lower 16 say how many bytes lie between what was asked for and
//! the word, and one more: so they are not zero, and nor is any first byte behind what was asked
//! for. The first eight of these hold a pattern; the others are zero. Up to 64 are checked.
//!
//! The upper bits stay as they are while the piece is free. So the piece behind it can check them
//! at any time: whoever writes before the beginning of a piece damages them.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::mistakes;

/// The bytes of the word.
pub(super) const END: usize = size_of::<u64>();

/// So many bytes behind what was asked for hold a pattern.
const PATTERN: usize = 8;

/// So many are checked, with the pattern and without the word.
const CHECKED: usize = 64;

/// Returns true if the last `bytes - PATTERN` of so many bytes are zero.
///
/// # Safety
/// So many bytes can be read, and nobody writes them meanwhile; they are [`PATTERN`] at least.
#[inline]
unsafe fn are_zero_behind_pattern(first: NonNull<u8>, bytes: usize) -> bool {
    // Eight bytes at a time from the end, and of the first eight those behind the pattern.
    let mut end = bytes;
    while end >= 2 * PATTERN {
        end -= PATTERN;
        // SAFETY: the caller's promise.
        if unsafe { first.add(end).cast::<u64>().read_unaligned() } != 0 {
            return false;
        }
    }
    // SAFETY: the caller's promise: `end` is PATTERN at least.
    let last = unsafe {
        first
            .add(end - PATTERN)
            .cast::<[u8; PATTERN]>()
            .read_unaligned()
    };
    // None, or those that lie last in memory.
    let behind = end - PATTERN;
    behind == 0 || u64::from_le_bytes(last) >> (64 - 8 * behind) == 0
}

/// See the [module](self).
pub(super) struct Canaries {
    secret: u64,
    /// The secret once more, for the upper bits of a product.
    mask: u64,
    /// The bytes behind what was asked for, none of which is zero.
    pattern: u64,
}

/// Returns a number that nobody can guess.
pub(super) fn secret() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: so many bytes can be written.
    let got =
        unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got != bytes.len() as isize {
        // Early at boot, or not allowed: what the system gave this process at its start.
        // SAFETY: the address of sixteen random bytes, if not 0.
        let given = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        let given = core::ptr::with_exposed_provenance::<[u8; 8]>(given);
        if !given.is_null() {
            // SAFETY: as above.
            bytes = unsafe { given.read_unaligned() };
        }
    }
    u64::from_ne_bytes(bytes) | 1
}

impl Canaries {
    pub(super) const fn new(secret: u64) -> Self {
        let mask = secret.rotate_left(32);
        let pattern = secret | 0x0101_0101_0101_0101;
        Self {
            secret,
            mask,
            pattern,
        }
    }

    /// The upper bits of the word at an address.
    #[inline(always)]
    fn tag(&self, address: usize) -> u64 {
        let mixed = (address as u64 ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The product's upper bits depend on all of the factors' bits.
        (mixed ^ self.mask) & !0xffff
    }

    /// The word of a piece, as one that others may read meanwhile.
    unsafe fn word<'w>(memory: NonNull<u8>, size: usize) -> &'w AtomicU64 {
        // SAFETY: the caller's promise: the word lies in the piece, at a multiple of its size.
        unsafe { memory.add(size - END).cast().as_ref() }
    }

    /// Marks the end of `bytes` bytes in a piece of `size` bytes.
    ///
    /// # Safety
    /// The piece is the caller's, and has room for the word behind those bytes. Sizes are multiples
    /// of a word.
    #[inline(always)]
    pub(super) unsafe fn mark(&self, memory: NonNull<u8>, bytes: usize, size: usize) {
        let slack = size - END - bytes;
        // SAFETY: the caller's promise, both.
        unsafe {
            if slack >= PATTERN {
                let pattern = self.pattern.to_le_bytes();
                memory.add(bytes).cast().write_unaligned(pattern);
            } else if slack > 0 {
                // The last bytes of the eight before the word. (The word itself must never be
                // wrong, not even for a moment: the piece behind may check it.)
                let last = memory.add(size - END - PATTERN).cast::<[u8; PATTERN]>();
                let kept = u64::from_le_bytes(last.read()) & !(!0 << (64 - 8 * slack));
                let ends = kept | self.pattern << (64 - 8 * slack);
                last.write(ends.to_le_bytes());
            }
            let word = Self::word(memory, size);
            let tag = self.tag(core::ptr::from_ref(word).addr());
            // Never zero, by its lower bits.
            // Relaxed, here and below: who reads it as a neighbour looks at its upper bits only.
            word.store(tag | (slack as u64 + 1), Ordering::Relaxed);
        }
    }

    /// Returns the bytes that were asked for.
    ///
    /// # Safety
    /// A piece of `size` bytes that was marked begins there.
    pub(super) unsafe fn asked(&self, memory: NonNull<u8>, size: usize) -> usize {
        // SAFETY: the caller's promise.
        let word = unsafe { Self::word(memory, size) }.load(Ordering::Relaxed);
        let slack = (word & 0xffff) as usize;
        (size - END + 1).saturating_sub(slack)
    }

    /// Ends the process if the end of a piece was written over.
    ///
    /// # Safety
    /// The conditions of [`Canaries::asked`].
    #[inline(always)]
    pub(super) unsafe fn check(&self, memory: NonNull<u8>, size: usize) {
        // SAFETY: passed on.
        if !unsafe { self.is_whole(memory, size) } {
            mistakes::written_behind(memory);
        }
    }

    /// Returns true if the end of a piece is as it was marked.
    ///
    /// # Safety
    /// The conditions of [`Canaries::asked`].
    #[inline(always)]
    pub(super) unsafe fn is_whole(&self, memory: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, throughout.
        unsafe {
            let place = Self::word(memory, size);
            let word = place.load(Ordering::Relaxed);
            let tag = self.tag(core::ptr::from_ref(place).addr());
            // With another tag, or with nothing in the lower bits, it is more than any slack.
            let slack = (word ^ tag).wrapping_sub(1) as usize;
            if slack > size - END {
                return false;
            }
            if slack == 0 {
                return true;
            }
            if slack < PATTERN {
                let last = memory.add(size - END - PATTERN).cast::<[u8; PATTERN]>();
                let found = u64::from_le_bytes(last.read()) ^ self.pattern << (64 - 8 * slack);
                return found >> (64 - 8 * slack) == 0;
            }
            let behind = memory.add(size - END - slack);
            let wrong = u64::from_le_bytes(behind.cast().read_unaligned()) ^ self.pattern;
            wrong == 0 && (slack == PATTERN || are_zero_behind_pattern(behind, slack.min(CHECKED)))
        }
    }

    /// Ends the process if what lies just before a piece was written over: the word of the piece
    /// before it, or zeros where that was never in use.
    ///
    /// # Safety
    /// The word before it is memory of the span that nobody unmaps.
    #[inline(always)]
    pub(super) unsafe fn check_before(&self, memory: NonNull<u8>) {
        // SAFETY: the caller's promise; pieces are aligned to words.
        let place = unsafe { memory.sub(END).cast::<AtomicU64>().as_ref() };
        let word = place.load(Ordering::Relaxed);
        if word != 0 && word & !0xffff != self.tag(core::ptr::from_ref(place).addr()) {
            mistakes::written_before(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece, aligned like one.
    #[repr(align(16))]
    struct Piece([u8; 256]);

    #[test]
    fn a_change_of_any_byte_that_is_checked_is_seen() {
        let ends = Canaries::new(0x1234_5678_9abc_def1);
        let size = size_of::<Piece>();
        for bytes in 0..=size - END {
            let mut piece = Piece([0; 256]);
            let memory = NonNull::from(&mut piece.0).cast::<u8>();
            let checked = bytes + (size - END - bytes).min(CHECKED);
            // SAFETY: the piece is this test's, and used by this pointer alone.
            unsafe {
                ends.mark(memory, bytes, size);
                assert!(ends.is_whole(memory, size) && ends.asked(memory, size) == bytes);
                // The word's first two bytes say how many there are, and may say another number.
                for at in (bytes..checked).chain(size - END + 2..size) {
                    let byte = memory.add(at);
                    let was = byte.read();
                    byte.write(was ^ 0x10);
                    assert!(!ends.is_whole(memory, size), "{bytes}: byte {at}");
                    byte.write(was);
                }
                assert!(ends.is_whole(memory, size));
            }
        }
    }
}
