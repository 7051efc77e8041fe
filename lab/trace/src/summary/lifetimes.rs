//! How long blocks lived: percentiles of all lives, none left out.

/// Lives of blocks, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lifetimes {
    sorted: Vec<u64>,
}

impl Lifetimes {
    /// Of these lives, in any order.
    #[must_use]
    pub fn new(mut lives: Vec<u64>) -> Self {
        lives.sort_unstable();
        Self { sorted: lives }
    }

    /// How many lives.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The life that `percent` of all are not longer than: the smallest one with that property.
    /// None without lives.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let rank = (self.sorted.len() as u128 * u128::from(percent.min(100))).div_ceil(100);
        let last = self.sorted.len().checked_sub(1)?;
        let place = usize::try_from(rank).map_or(last, |rank| rank.saturating_sub(1));
        self.sorted.get(place.min(last)).copied()
    }

    /// The longest life.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Lifetimes;

    #[test]
    fn percentiles_are_lives_that_were_lived() {
        let lives = Lifetimes::new((1..=200).rev().collect());
        assert_eq!(lives.percentile(50), Some(100));
        assert_eq!(lives.percentile(99), Some(198));
        assert_eq!(lives.percentile(100), Some(200));
        assert_eq!(lives.percentile(0), Some(1));
        assert_eq!(lives.max(), Some(200));
        assert_eq!(Lifetimes::new(vec![7]).percentile(50), Some(7));
        assert_eq!(Lifetimes::default().percentile(50), None);
    }
}
