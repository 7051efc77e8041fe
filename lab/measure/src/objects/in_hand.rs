//! Objects in hand, with a check that every byte is as the owner left it.
//!
//! Each owner has its own pattern: eight bytes, different in each place. It fills its object with
//! it, and checks every byte before the free.
//!
//! Invariant `in-hand`: an [`InHand`] is made of an object just allocated, and is consumed when the
//! object is freed; so its bytes belong to its owner alone, all of them can be read and written,
//! and no reference to them lives longer than one call here.

use core::fmt;
use core::ptr::NonNull;
use core::slice;

/// The bytes that an owner writes into its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern(u64);

impl Pattern {
    /// Returns the pattern of the `n`-th owner.
    #[must_use]
    pub const fn of(n: u64) -> Self {
        // Odd numbers times a large odd number: no two owners have the same pattern, and few of
        // their bytes are equal.
        Self((2 * n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    const fn word(self, place: usize) -> [u8; 8] {
        self.0
            .wrapping_add((place as u64).wrapping_mul(0x0101_0307_1f3d_0b25))
            .to_ne_bytes()
    }

    /// Fills `bytes` with it.
    pub fn fill(self, bytes: &mut [u8]) {
        for (place, chunk) in bytes.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.word(place)[..chunk.len()]);
        }
    }

    /// Returns the index of the first byte that differs from the pattern.
    #[must_use]
    pub fn fault(self, bytes: &[u8]) -> Option<usize> {
        let chunks = bytes.chunks(8).enumerate();
        let bad = chunks
            .filter(|(place, chunk)| **chunk != self.word(*place)[..chunk.len()])
            .map(|(place, _)| place * 8)
            .next()?;
        (bad..bytes.len()).find(|&at| bytes[at] != self.word(at / 8)[at % 8])
    }
}

/// An object with an owner: its bytes belong to the owner alone, from the allocation to the free.
#[must_use = "an object that is dropped is lost"]
pub struct InHand {
    start: NonNull<u8>,
    bytes: usize,
    pattern: Pattern,
}

// SAFETY: `in-hand`: it owns the object as a `Box` does.
unsafe impl Send for InHand {}

impl fmt::Debug for InHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}+{}", self.start, self.bytes)
    }
}

impl InHand {
    /// Takes over an object just allocated.
    ///
    /// # Safety
    /// The `bytes` bytes from `start` on belong to the caller alone, can be read and written, and
    /// are initialized, until the object is freed.
    pub unsafe fn of(start: NonNull<u8>, bytes: usize) -> Self {
        let pattern = Pattern(0);
        Self {
            start,
            bytes,
            pattern,
        }
    }

    /// Returns the pointer to its start.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Returns the address `by` bytes after its start, to be passed to a free but not accessed.
    #[must_use]
    pub fn inside(&self, by: usize) -> NonNull<u8> {
        self.start.map_addr(|address| address.saturating_add(by))
    }

    /// Returns its size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn all(&self) -> &[u8] {
        // SAFETY: `in-hand`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: `in-hand`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Fills it with the owner's pattern.
    pub fn fill(&mut self, pattern: Pattern) {
        self.pattern = pattern;
        pattern.fill(self.all_mut());
    }

    /// Checks every byte.
    ///
    /// # Panics
    /// If one is not as the owner left it.
    pub fn check(&self) {
        self.check_against(self.pattern);
    }

    /// Checks every byte against another pattern than the owner's.
    ///
    /// # Panics
    /// If one differs from the pattern.
    pub fn check_against(&self, pattern: Pattern) {
        if let Some(at) = pattern.fault(self.all()) {
            let found = self.all()[at];
            panic!("{self:?}: byte {at} was changed while the object was in use, to {found:#04x}");
        }
    }

    /// Checks that the first `bytes` bytes are zero.
    ///
    /// # Panics
    /// If one is not.
    pub fn check_zero(&self, bytes: usize) {
        let other = self.all()[..bytes].iter().position(|&byte| byte != 0);
        assert_eq!(other, None, "{self:?} should be zero");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found() {
        for bytes in [1, 7, 8, 9, 31, 64] {
            let mut memory = vec![0_u8; bytes];
            let pattern = Pattern::of(7);
            pattern.fill(&mut memory);
            assert_eq!(pattern.fault(&memory), None);
            assert!(Pattern::of(8).fault(&memory).is_some());
            for at in 0..bytes {
                memory[at] ^= 0x10;
                assert_eq!(pattern.fault(&memory), Some(at));
                memory[at] ^= 0x10;
            }
        }
    }
}
