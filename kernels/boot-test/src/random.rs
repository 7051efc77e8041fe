//! Random numbers from a seed: SplitMix64 (Steele, Lea and Flood 2014). One word of state, and
//! every seed is a good one.

/// A generator that is determined by its seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Returns a generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number. Each of the 2^64 is equally likely.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Draws a number below `limit`, or 0 if that is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        match limit {
            0 => 0,
            limit => self.draw() % limit,
        }
    }

    /// Returns true once in `times` draws, on average.
    pub const fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Mixes the bits of a word: every bit of the result depends on all of `word`.
#[must_use]
pub(crate) const fn mix(word: u64) -> u64 {
    let mut z = word;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
