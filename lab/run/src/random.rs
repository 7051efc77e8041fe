//! Random numbers that are the same in every run, for the measured loops, which need them at a
//! nanosecond each. Recorded figures (`bench fragmentation`, the picture of `render`) depend on
//! them.

use crate::Dice;

/// Marsaglia's xorshift with 64 bits.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates the generator of this seed; the numbers of adjacent seeds are unrelated.
    pub const fn new(seed: u64) -> Self {
        // Not 0, which xorshift maps to itself.
        Self(Dice::new(seed).next() | 1)
    }

    /// Returns a number below `end`, which must not be 0.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    /// Shuffles `items` by the algorithm of Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
