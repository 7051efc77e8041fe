//! How long until the next sample: a number for each CPU, counted down, which is drawn anew when it
//! is used up. So the gaps are those of a Poisson process, whatever pattern the requests have.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::io;

use brickyard_arena::Region;

/// CPUs beyond so many share.
const WORDS: usize = 64;

/// In a cache line of its own.
#[repr(align(128))]
struct Word(AtomicI64);

/// See the [module](self).
pub(crate) struct Countdown {
    /// The mean of the gaps.
    mean: u64,
    words: &'static [Word; WORDS],
    random: AtomicU64,
}

impl Countdown {
    /// Returns one with gaps of `mean` on average, 1 at least. Its words are in a mapping for ever:
    /// they are large for a stack.
    pub(crate) fn new(mean: u64, seed: u64) -> io::Result<Self> {
        let words = Region::map_for_ever(size_of::<[Word; WORDS]>())?;
        // SAFETY: the mapping has room for them, begins with a page, is zero, and is this caller's.
        let words = unsafe { &*words.as_ptr().cast::<[Word; WORDS]>() };
        let this = Self {
            mean: mean.max(1),
            words,
            random: AtomicU64::new(seed),
        };
        for word in this.words {
            word.0.store(this.gap(), Ordering::Relaxed);
        }
        Ok(this)
    }

    /// Returns the mean of the gaps.
    pub(crate) const fn mean(&self) -> u64 {
        self.mean
    }

    /// Counts. Returns true if a sample is due.
    #[inline]
    pub(crate) fn is_due(&self, cpu: usize, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let word = &self.words[cpu % WORDS].0;
        // Relaxed, all: a number on which nothing else depends. No read-modify-write, which would
        // be most of the cost: a thread that is moved to another CPU in between loses counts of
        // others.
        let left = word.load(Ordering::Relaxed);
        if left > count {
            word.store(left - count, Ordering::Relaxed);
            return false;
        }
        word.store(self.gap(), Ordering::Relaxed);
        true
    }

    /// Draws a gap: exponentially distributed, 1 at least, and always 1 where that is the mean.
    #[cold]
    fn gap(&self) -> i64 {
        if self.mean == 1 {
            return 1;
        }
        let uniform = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        // The logarithm of a number above 0, at most 1.
        let gap = -logarithm(1.0 - uniform) * self.mean as f64;
        (gap as i64).max(1)
    }

    /// Draws 64 bits.
    pub(crate) fn draw(&self) -> u64 {
        // A counter, whose values are mixed as SplitMix64 does it.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.random.fetch_add(STEP, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// Returns the natural logarithm of a normal number above 0. The C library's is in a library of its
/// own, which each process would have to load for this: a third of a MiB.
fn logarithm(number: f64) -> f64 {
    const FRACTION: u32 = 52;
    const BIAS: i64 = 1023;
    let bits = number.to_bits();
    let one = 1.0_f64.to_bits();
    // The number is 2 to the power of `exponent` times `rest`, which is at least 1 and below 2.
    let exponent = (bits >> FRACTION) as i64 - BIAS;
    let rest = f64::from_bits(bits & ((1 << FRACTION) - 1) | one);
    // ln rest = 2 artanh z, and z is at most a third: so twenty odd powers are all that counts.
    let z = (rest - 1.0) / (rest + 1.0);
    let powers = (0..20).rev();
    let sum = powers.fold(0.0, |sum, power| {
        sum * z * z + 1.0 / f64::from(2 * power + 1)
    });
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * z * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_c_library() {
        let countdown = Countdown::new(2, 5).unwrap();
        for _ in 0..100_000 {
            let number = 1.0 - (countdown.draw() >> 11) as f64 / (1_u64 << 53) as f64;
            for number in [number, number * number * 1e-5, number * 1e9] {
                let (found, expected) = (logarithm(number), number.ln());
                let error = (found - expected).abs();
                assert!(
                    error <= 1e-14 * expected.abs().max(1.0),
                    "{number}: {found}"
                );
            }
        }
        assert_eq!(logarithm(1.0), 0.0);
        let least = 1.0 / (1_u64 << 53) as f64;
        assert_eq!(logarithm(least), -53.0 * core::f64::consts::LN_2);
    }

    #[test]
    fn gaps_have_the_mean_that_is_asked_for() {
        for (mean, step) in [(1000_u64, 1_usize), (100_000, 64), (512 << 10, 100_000)] {
            let countdown = Countdown::new(mean, 7).unwrap();
            let steps = 4_000_000;
            let due = (0..steps).filter(|_| countdown.is_due(3, step)).count();
            // A step is sampled with this probability: the chance that a gap ends in it.
            let ratio = step as f64 / mean as f64;
            let expected = steps as f64 * (1.0 - (-ratio).exp());
            let found = due as f64 / expected;
            assert!((0.9..1.1).contains(&found), "{mean} by {step}: {found}");
        }
    }

    #[test]
    fn every_request_is_due_where_the_mean_is_one() {
        let countdown = Countdown::new(0, 1).unwrap();
        let due = (0..1000).filter(|&cpu| countdown.is_due(cpu, 64)).count();
        assert_eq!(due, 1000);
        assert!(countdown.is_due(0, usize::MAX));
    }
}
