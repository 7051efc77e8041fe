//! How long blocks lived: exact percentiles over all lifetimes.

/// Lifetimes of blocks, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lifetimes {
    sorted: Vec<u64>,
}

impl Lifetimes {
    /// Creates it from lifetimes in any order.
    #[must_use]
    pub fn new(mut lifetimes: Vec<u64>) -> Self {
        lifetimes.sort_unstable();
        Self { sorted: lifetimes }
    }

    /// Returns how many lifetimes there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the shortest lifetime that at least `percent` of all do not exceed (the nearest
    /// rank). `None` if there are none.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let rank = (self.sorted.len() as u128 * u128::from(percent.min(100))).div_ceil(100);
        let last = self.sorted.len().checked_sub(1)?;
        let place = usize::try_from(rank).map_or(last, |rank| rank.saturating_sub(1));
        self.sorted.get(place.min(last)).copied()
    }

    /// Returns the longest lifetime.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Lifetimes;

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
}
