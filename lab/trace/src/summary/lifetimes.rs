//! How long blocks lived: percentiles over all lifetimes.
//!
//! They are exact as long as all lifetimes of a summary are few enough to be kept, and to within a
//! thousandth otherwise: then the lifetimes of the largest class are counted in buckets, and so on.

/// Lifetimes that all classes of a summary keep together: 128 MiB.
pub(super) const KEPT_MOST: usize = 1 << 24;

/// Lifetimes of blocks, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetimes(Lives);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Lives {
    /// Each one: in rising order, once they are all there.
    Each(Vec<u64>),
    /// How many there are in each bucket, and the longest.
    Counted(Box<Buckets>),
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self(Lives::Each(Vec::new()))
    }
}

impl Lifetimes {
    /// Creates it from lifetimes in any order.
    #[must_use]
    pub fn new(mut lifetimes: Vec<u64>) -> Self {
        lifetimes.sort_unstable();
        Self(Lives::Each(lifetimes))
    }

    /// Adds one.
    #[inline]
    pub(super) fn push(&mut self, lifetime: u64) {
        match &mut self.0 {
            Lives::Each(each) => each.push(lifetime),
            Lives::Counted(buckets) => buckets.add(lifetime),
        }
    }

    /// Returns how many are kept one by one.
    pub(super) const fn kept(&self) -> usize {
        match &self.0 {
            Lives::Each(each) => each.len(),
            Lives::Counted(_) => 0,
        }
    }

    /// Counts them in buckets from now on, instead of keeping each.
    pub(super) fn count_only(&mut self) {
        if let Lives::Each(each) = &self.0 {
            let mut buckets = Box::<Buckets>::default();
            each.iter().for_each(|&lifetime| buckets.add(lifetime));
            self.0 = Lives::Counted(buckets);
        }
    }

    /// Puts them in order, after the last was added.
    pub(super) fn sorted(mut self) -> Self {
        if let Lives::Each(each) = &mut self.0 {
            each.sort_unstable();
        }
        self
    }

    /// Returns how many lifetimes there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.0 {
            Lives::Each(each) => each.len(),
            Lives::Counted(buckets) => usize::try_from(buckets.all).unwrap_or(usize::MAX),
        }
    }

    /// Returns the shortest lifetime that at least `percent` of all do not exceed (the nearest
    /// rank); where they were only counted, at most a thousandth more. `None` if there are none.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let rank = (self.count() as u128 * u128::from(percent.min(100))).div_ceil(100);
        match &self.0 {
            Lives::Each(each) => {
                let last = each.len().checked_sub(1)?;
                let place = usize::try_from(rank).map_or(last, |rank| rank.saturating_sub(1));
                each.get(place.min(last)).copied()
            }
            Lives::Counted(buckets) => buckets.at(rank.max(1)),
        }
    }

    /// Returns the longest lifetime.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        match &self.0 {
            Lives::Each(each) => each.last().copied(),
            Lives::Counted(buckets) => (buckets.all > 0).then_some(buckets.max),
        }
    }
}

/// Bits of a lifetime that its bucket distinguishes.
const BITS: u32 = 11;

/// Counts by the highest [`BITS`] bits. Shorter lifetimes have a bucket each.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Buckets {
    counts: Vec<u64>,
    all: u64,
    max: u64,
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            counts: vec![0; Self::of(u64::MAX) + 1],
            all: 0,
            max: 0,
        }
    }
}

impl Buckets {
    /// Returns the bucket of a lifetime.
    const fn of(lifetime: u64) -> usize {
        let lost = (u64::BITS - lifetime.leading_zeros()).saturating_sub(BITS);
        ((lost as usize) << (BITS - 1)) + (lifetime >> lost) as usize
    }

    /// Returns the longest lifetime of a bucket.
    const fn longest(bucket: usize) -> u64 {
        let lost = ((bucket >> (BITS - 1)) as u32).saturating_sub(1);
        let highest = (bucket - ((lost as usize) << (BITS - 1))) as u64;
        (highest << lost) + ((1 << lost) - 1)
    }

    #[inline]
    fn add(&mut self, lifetime: u64) {
        self.counts[Self::of(lifetime)] += 1;
        self.all += 1;
        self.max = self.max.max(lifetime);
    }

    /// Returns the lifetime of this rank, from 1.
    fn at(&self, rank: u128) -> Option<u64> {
        let mut below = 0_u128;
        let bucket = self.counts.iter().position(|&count| {
            below += u128::from(count);
            below >= rank
        })?;
        Some(Self::longest(bucket).min(self.max))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_lifetimes() {
        let lifetimes = Lifetimes::new((1..=200).rev().collect());
        assert_eq!(lifetimes.percentile(50), Some(100));
        assert_eq!(lifetimes.percentile(99), Some(198));
        assert_eq!(lifetimes.percentile(100), Some(200));
        assert_eq!(lifetimes.percentile(0), Some(1));
        assert_eq!(lifetimes.max(), Some(200));
        assert_eq!(Lifetimes::new(vec![7]).percentile(50), Some(7));
        assert_eq!(Lifetimes::default().percentile(50), None);
    }

    #[test]
    fn every_lifetime_is_in_a_bucket_that_ends_at_most_a_thousandth_later() {
        let edges =
            (0..64).flat_map(|bit| [-1, 0, 1].map(|by| (1_u64 << bit).wrapping_add_signed(by)));
        let mut all: Vec<u64> = edges.chain([u64::MAX]).collect();
        all.extend((0..100_000).map(|place| place * place * 31));
        all.sort_unstable();
        for &lifetime in &all {
            let longest = Buckets::longest(Buckets::of(lifetime));
            assert!(longest >= lifetime, "{lifetime}");
            assert!(longest - lifetime <= lifetime / 1000, "{lifetime}");
        }
        assert!(all.is_sorted_by_key(|&lifetime| Buckets::of(lifetime)));
    }

    #[test]
    fn counted_lifetimes_have_nearly_the_same_percentiles() {
        let all: Vec<u64> = (1..=10_000).map(|place: u64| place.pow(3)).collect();
        let each = Lifetimes::new(all.clone());
        let mut counted = Lifetimes::default();
        let (first, rest) = all.split_at(3000);
        first.iter().for_each(|&lifetime| counted.push(lifetime));
        assert_eq!(counted.kept(), 3000);
        counted.count_only();
        rest.iter().for_each(|&lifetime| counted.push(lifetime));
        let counted = counted.sorted();
        assert_eq!((counted.kept(), counted.count()), (0, 10_000));
        for percent in [0, 1, 50, 90, 99, 100] {
            let (near, exact) = (counted.percentile(percent), each.percentile(percent));
            let (near, exact) = (near.unwrap(), exact.unwrap());
            assert!(near >= exact && near - exact <= exact / 1000, "{percent} %");
        }
        assert_eq!(counted.max(), each.max());
        let mut none = Lifetimes::default();
        none.count_only();
        assert_eq!((none.percentile(50), none.max()), (None, None));
    }
}
