//! Measurements at the zone lock: how much each bulk operation moved, how often a request fell back
//! on another type's list, and, if enabled, how long the lock was waited for and held.
//!
//! Porter's tables give mean and deviation of the count and order of a bulk operation; the sums
//! here are what these need. The count is what his figures allow: out of the store in pages that
//! were requested, so that a block of order n counts 2^n; into the store in blocks, which is the
//! argument `count` of his `free_pages_bulk()`. (Blocks of an order above 0 bypass the lists and
//! are operations of their own. Counted as 1 each, no mean could exceed the batch of 7; his are up
//! to 7.21. And the free of 3 % of single blocks, each 1, gives exactly his 6.82 with a deviation
//! of 1.01.) All words are guarded by the zone lock itself, so measuring shares no further cache
//! lines.

use brickyard::sync::{GuardedU32, GuardedU64};

use crate::classics::store::{Claimed, Fallback};
use brickyard::Order;

/// Whether lock times are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// No: the clock is not read.
    #[default]
    Off,
    /// Yes: the platform's clock is read three times for each hold.
    On,
}

/// Number, sum and sum of squares of some values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// Number of values.
    pub n: u64,
    /// Their sum.
    pub sum: u64,
    /// The sum of their squares.
    pub squares: u128,
    /// The largest value.
    pub max: u64,
}

impl Moments {
    /// Returns the mean; 0 if there are no values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.n == 0 {
            return 0.0;
        }
        self.sum as f64 / self.n as f64
    }

    /// Returns the standard deviation of the sample; 0 if there are fewer than two values.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.n < 2 {
            return 0.0;
        }
        let variance = (self.squares as f64 - self.sum as f64 * self.mean()) / (self.n - 1) as f64;
        square_root(variance.max(0.0))
    }
}

/// Returns the square root, by Newton's method: `core` has none.
fn square_root(x: f64) -> f64 {
    let mut root = if x > 1.0 { x } else { 1.0 };
    for _ in 0..64 {
        let next = 0.5 * (root + x / root);
        if next >= root {
            break;
        }
        root = next;
    }
    if x == 0.0 { 0.0 } else { root }
}

/// A bucket for each number of bits that a value can have. The last also has those of 64 bits.
const BUCKETS: usize = u64::BITS as usize;

/// Returns the bucket of a value.
fn bucket_of(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// Number of values by power of two: bucket 0 counts zeros, bucket n values of 2^(n-1) up to 2^n -
/// 1, the last also all above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram(pub [u64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Histogram {
    /// Returns an upper bound of the percentile, or 0 if there are no values. It is at most twice
    /// too high; in the last bucket, four times.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let all: u64 = self.0.iter().sum();
        let wanted = all as f64 * percent / 100.0;
        let mut seen = 0;
        for (bucket, &n) in self.0.iter().enumerate() {
            seen += n;
            if n > 0 && seen as f64 >= wanted {
                return match bucket == BUCKETS - 1 {
                    true => u64::MAX,
                    false => (1 << bucket) - 1,
                };
            }
        }
        0
    }
}

/// Bulk operations in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BulkReading {
    /// What each moved: out of the store pages, into the store blocks.
    pub count: Moments,
    /// The order of each.
    pub order: Moments,
}

/// Wait or hold times at the lock, in ticks of the platform's clock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct LockReading {
    /// Their sums.
    pub moments: Moments,
    /// Their number by power of two.
    pub histogram: Histogram,
}

/// The measurements of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct MeterReading {
    /// Bulk operations out of the store.
    pub taken: BulkReading,
    /// Bulk operations into the store.
    pub given: BulkReading,
    /// Times waiting for the lock; empty with [`Timing::Off`].
    pub wait: LockReading,
    /// Times holding it; empty with [`Timing::Off`].
    pub hold: LockReading,
    /// Requests served from another type's list.
    pub fallbacks: u64,
    /// Fallbacks that split a block without claiming the page block: each has mixed a page block.
    pub mixing: u64,
    /// Fallbacks that claimed a page block.
    pub claims: u64,
}

/// [`Moments`] while they are summed.
#[derive(Debug, Default)]
struct Sums {
    n: GuardedU64,
    sum: GuardedU64,
    // 128 bits, low half first: 64 would overflow after some seconds of lock time in cycles.
    squares: [GuardedU64; 2],
    max: GuardedU64,
}

impl Sums {
    fn add(&self, value: u64) {
        self.n.set(self.n.get() + 1);
        self.sum.set(self.sum.get().wrapping_add(value));
        let squares = self.squares() + u128::from(value) * u128::from(value);
        self.squares[0].set(squares as u64);
        self.squares[1].set((squares >> 64) as u64);
        self.max.set(self.max.get().max(value));
    }

    fn squares(&self) -> u128 {
        u128::from(self.squares[0].get()) | u128::from(self.squares[1].get()) << 64
    }

    fn reading(&self) -> Moments {
        Moments {
            n: self.n.get(),
            sum: self.sum.get(),
            squares: self.squares(),
            max: self.max.get(),
        }
    }
}

#[derive(Debug, Default)]
struct BulkSums {
    count: Sums,
    order: Sums,
}

impl BulkSums {
    fn reading(&self) -> BulkReading {
        BulkReading {
            count: self.count.reading(),
            order: self.order.reading(),
        }
    }
}

#[derive(Debug)]
struct Times {
    sums: Sums,
    // Half as wide as other sums, so that they take no more of the zone than 32 wide
    // ones: simulated results depend on where the words of a zone lie.
    buckets: [GuardedU32; BUCKETS],
}

impl Default for Times {
    fn default() -> Self {
        Self {
            sums: Sums::default(),
            buckets: core::array::from_fn(|_| GuardedU32::default()),
        }
    }
}

impl Times {
    fn add(&self, ticks: u64) {
        self.sums.add(ticks);
        let bucket = &self.buckets[bucket_of(ticks)];
        bucket.set(bucket.get().saturating_add(1));
    }

    fn reading(&self) -> LockReading {
        let mut histogram = Histogram::default();
        for (to, from) in histogram.0.iter_mut().zip(&self.buckets) {
            *to = u64::from(from.get());
        }
        LockReading {
            moments: self.sums.reading(),
            histogram,
        }
    }
}

/// The measurements of one zone.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    taken: BulkSums,
    given: BulkSums,
    wait: Times,
    hold: Times,
    fallbacks: GuardedU64,
    mixing: GuardedU64,
    claims: GuardedU64,
}

impl Meter {
    /// Counts a bulk operation out of the store, of `blocks` blocks.
    pub(crate) fn took(&self, blocks: usize, order: Order) {
        if blocks > 0 {
            self.taken.count.add((blocks * order.frames()) as u64);
            self.taken.order.add(u64::from(order.get()));
        }
    }

    /// Counts a bulk operation into the store, of `blocks` blocks.
    pub(crate) fn gave(&self, blocks: usize, order: Order) {
        if blocks > 0 {
            self.given.count.add(blocks as u64);
            self.given.order.add(u64::from(order.get()));
        }
    }

    pub(super) fn waited(&self, ticks: u64) {
        self.wait.add(ticks);
    }

    pub(super) fn held(&self, ticks: u64) {
        self.hold.add(ticks);
    }

    pub(super) fn fell_back(&self, fallback: Fallback) {
        let counter = match fallback.claimed {
            Claimed::Yes => &self.claims,
            Claimed::No => &self.mixing,
        };
        counter.set(counter.get() + 1);
        self.fallbacks.set(self.fallbacks.get() + 1);
    }

    pub(super) fn reading(&self) -> MeterReading {
        MeterReading {
            taken: self.taken.reading(),
            given: self.given.reading(),
            wait: self.wait.reading(),
            hold: self.hold.reading(),
            fallbacks: self.fallbacks.get(),
            mixing: self.mixing.get(),
            claims: self.claims.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the median of a histogram of this one value.
    fn median_of(value: u64) -> u64 {
        let times = Times::default();
        times.add(value);
        times.reading().histogram.percentile(50.0)
    }

    #[test]
    fn a_percentile_is_an_upper_bound_at_every_size() {
        assert_eq!(Histogram::default().percentile(50.0), 0);
        assert_eq!(median_of(0), 0);
        assert_eq!(median_of(1), 1);
        for bits in 1..62 {
            let first_above = 1 << bits;
            assert_eq!(median_of(first_above - 1), first_above - 1);
            assert_eq!(median_of(first_above), 2 * first_above - 1);
        }
        assert_eq!(median_of((1 << 62) - 1), (1 << 62) - 1);
        for value in [1 << 62, 1 << 63, u64::MAX] {
            assert_eq!(median_of(value), u64::MAX);
        }
    }

    #[test]
    fn a_percentile_counts_all_values() {
        let times = Times::default();
        for value in [1, 3, u64::from(u32::MAX), 1 << 40] {
            times.add(value);
        }
        let histogram = times.reading().histogram;
        assert_eq!(histogram.percentile(50.0), 3);
        assert_eq!(histogram.percentile(75.0), u64::from(u32::MAX));
        assert_eq!(histogram.percentile(100.0), (1 << 41) - 1);
    }
}
