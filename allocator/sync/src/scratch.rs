//! Scratch memory: numbers that one call writes and reads again, and that mean nothing afterwards.

use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};

/// `N` numbers for the call that has this memory to itself: a stack frame's worth of room for one
/// that may not take so much of the stack. The caller holds what guards it. A caller that breaks
/// the rule reads numbers that others wrote; it never causes undefined behaviour.
///
/// Nothing is passed through it from one call to another. So loom need not watch it, and a
/// simulated machine charges for it no more than for a stack.
pub struct Scratch<const N: usize>([AtomicU16; N]);

impl<const N: usize> Scratch<N> {
    /// Returns scratch memory. All of it is 0.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU16::new(0) }; N])
    }

    /// Returns the number at `place`.
    ///
    /// # Panics
    /// Panics if `place` is `N` or more.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, place: usize) -> u16 {
        // Relaxed: the caller wrote it itself.
        self.0[place].load(Ordering::Relaxed)
    }

    /// Writes the number at `place`.
    ///
    /// # Panics
    /// Panics if `place` is `N` or more.
    #[inline(always)]
    pub fn set(&self, place: usize, number: u16) {
        // Relaxed: only the caller reads it.
        self.0[place].store(number, Ordering::Relaxed);
    }
}

impl<const N: usize> Default for Scratch<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Scratch<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_written_last() {
        let scratch = Scratch::<3>::new();
        scratch.set(1, 7);
        scratch.set(2, 8);
        scratch.set(1, 9);
        assert_eq!([0, 1, 2].map(|place| scratch.get(place)), [0, 9, 8]);
    }
}
