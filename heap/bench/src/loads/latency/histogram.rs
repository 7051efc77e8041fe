//! Times by their number: 32 buckets for each doubling, so that a bucket is 3 % wide at most. The
//! largest is kept as it is. All memory is made, and written, before.

/// The bits of a value that tell its bucket, but for the first.
const BITS: u32 = 5;

/// The buckets of a doubling.
const OF_A_DOUBLING: usize = 1 << BITS;

/// Those of values below 64 hold one value each; there are as many for each doubling from there on.
const BUCKETS: usize = OF_A_DOUBLING * (u64::BITS - BITS + 1) as usize;

/// A percentile has to have so many values beyond it.
const BEYOND: f64 = 10.0;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        // Ones, then zeros: memory that was never written would be mapped while it is measured.
        let mut counts = vec![1; BUCKETS];
        counts.fill(0);
        Self {
            counts,
            count: 0,
            max: 0,
        }
    }

    pub(super) fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Returns the largest value; `None` if there is none.
    pub(super) fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns a percentile, rounded up to its bucket; `None` if there are too few values beyond.
    pub(super) fn percentile(&self, percent: f64) -> Option<u64> {
        let beyond = self.count as f64 * (1.0 - percent / 100.0);
        // A little less: a percentage has no exact fraction.
        if beyond < BEYOND - 1e-6 {
            return None;
        }
        let wanted = self.count as f64 - beyond;
        let mut seen = 0;
        let found = self.counts.iter().position(|&count| {
            seen += count;
            seen as f64 >= wanted
        });
        found.map(|bucket| last(bucket).min(self.max))
    }
}

/// Returns the bucket of a value.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    shift as usize * OF_A_DOUBLING + (value >> shift) as usize
}

/// Returns the largest value of a bucket.
fn last(bucket: usize) -> u64 {
    let shift = (bucket / OF_A_DOUBLING).saturating_sub(1);
    let first = (bucket - shift * OF_A_DOUBLING) as u64;
    (first << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_narrow_and_buckets_are_in_order() {
        let mut before = None;
        for bits in 0..u64::BITS {
            let least = 1 << bits;
            for value in [least, least | least >> 1, least | (least - 1)] {
                let (of, last) = (bucket(value), last(bucket(value)));
                assert!(of < BUCKETS && last >= value && last - value <= value / 32);
                assert!(before <= Some(of), "{value}");
                before = Some(of);
                assert_eq!(bucket(last), of);
                assert!(last == u64::MAX || bucket(last + 1) == of + 1);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut all = Histogram::new();
        let mut other = Histogram::new();
        for value in 1..=10_000_u64 {
            let to = if value.is_multiple_of(3) {
                &mut other
            } else {
                &mut all
            };
            to.add(value * 7);
        }
        all.merge(&other);
        for percent in [50.0, 99.0, 99.9] {
            let exact = 700.0 * percent;
            let found = all.percentile(percent).unwrap() as f64;
            assert!((exact..=exact * 1.04).contains(&found), "{percent} {found}");
        }
        // Only one is beyond.
        assert_eq!(all.percentile(99.99), None);
        assert_eq!(all.max(), Some(70_000));
        assert_eq!(Histogram::new().max(), None);
    }
}
