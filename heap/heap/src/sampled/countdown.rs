//! How long until the next sample: a number for each CPU, counted down, which is drawn anew when it
//! is used up. So the gaps are those of a Poisson process, whatever pattern the requests have.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// CPUs beyond so many share.
const WORDS: usize = 64;

/// In a cache line of its own.
#[repr(align(128))]
struct Word(AtomicI64);

/// See the [module](self).
pub(super) struct Countdown {
    /// The mean of the gaps.
    mean: u64,
    words: [Word; WORDS],
    random: AtomicU64,
}

impl Countdown {
    /// Returns one with gaps of `mean` on average, 1 at least.
    pub(super) fn new(mean: u64, seed: u64) -> Self {
        let this = Self {
            mean: mean.max(1),
            words: [const { Word(AtomicI64::new(0)) }; WORDS],
            random: AtomicU64::new(seed),
        };
        for word in &this.words {
            word.0.store(this.gap(), Ordering::Relaxed);
        }
        this
    }

    /// Returns the mean of the gaps.
    pub(super) const fn mean(&self) -> u64 {
        self.mean
    }

    /// Counts. Returns true if a sample is due.
    #[inline]
    pub(super) fn is_due(&self, cpu: usize, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let word = &self.words[cpu % WORDS].0;
        // Relaxed, all: a number on which nothing else depends. No read-modify-write, which would be
        // most of the cost: a thread that is moved to another CPU in between loses counts of others.
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
        let gap = -(1.0 - uniform).ln() * self.mean as f64;
        (gap as i64).max(1)
    }

    /// Draws 64 bits.
    pub(super) fn draw(&self) -> u64 {
        // A counter, whose values are mixed as SplitMix64 does it.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.random.fetch_add(STEP, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_that_is_asked_for() {
        for (mean, step) in [(1000_u64, 1_usize), (100_000, 64), (512 << 10, 100_000)] {
            let countdown = Countdown::new(mean, 7);
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
        let countdown = Countdown::new(0, 1);
        let due = (0..1000).filter(|&cpu| countdown.is_due(cpu, 64)).count();
        assert_eq!(due, 1000);
        assert!(countdown.is_due(0, usize::MAX));
    }
}
