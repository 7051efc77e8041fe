//! The mapping from values to positions along an axis.
//!
//! Invariant `within`: for all finite values, [`Extent::part`] is a number from 0 to 1.

use super::Scale;

/// Values are clamped to this, so that sums and differences stay finite.
const HUGE: f64 = 1e290;

/// Values that differ by less than this, relative to the larger, count as the same.
const ALIKE: f64 = 1e-11;

/// Values below this count as zero.
const TINY: f64 = 1e-290;

/// The margin at an end of the axis that is not zero, as a fraction of the range.
const FREE: f64 = 0.05;

/// The range of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Extent {
    /// The least and the greatest value.
    Linear(f64, f64),
    /// The base-10 logarithms of both.
    Log(f64, f64),
    /// The number of names.
    Names(usize),
}

/// How an axis ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// With a margin, and at zero if the values come near it.
    Margin,
    /// At the least and the greatest value.
    Exact,
}

impl Extent {
    /// Returns the range of an axis for these values, which are finite.
    pub(super) fn of(scale: &Scale, values: impl Iterator<Item = f64> + Clone, ends: Ends) -> Self {
        match scale {
            Scale::Names(names) if ends == Ends::Exact => Self::Names(names.len().max(1)),
            Scale::Log => Self::log(values.filter(|&value| value > TINY), ends),
            Scale::Linear | Scale::Names(_) => Self::linear(values, ends),
        }
    }

    fn linear(values: impl Iterator<Item = f64>, ends: Ends) -> Self {
        let Some((low, high)) = both_ends(values) else {
            return Self::Linear(0.0, 1.0);
        };
        let size = low.abs().max(high.abs());
        if size < TINY {
            return Self::Linear(0.0, 1.0);
        }
        let (mut low, mut high) = if high - low < size * ALIKE {
            (low - size / 2.0, high + size / 2.0)
        } else {
            (low, high)
        };
        if ends == Ends::Margin {
            if low > 0.0 && low <= high / 2.0 {
                low = 0.0;
            } else if low != 0.0 {
                low -= (high - low) * FREE;
            }
            high += (high - low) * FREE;
        }
        Self::Linear(low, high)
    }

    fn log(values: impl Iterator<Item = f64>, ends: Ends) -> Self {
        let Some((low, high)) = both_ends(values) else {
            return Self::Log(0.0, 1.0);
        };
        let (mut low, mut high) = (low.log10(), high.log10());
        if high - low < 1e-6 {
            (low, high) = (low - 0.3, high + 0.3);
        }
        if ends == Ends::Margin {
            let free = (high - low) * FREE;
            (low, high) = (low - free, high + free);
        }
        Self::Log(low, high)
    }

    /// Returns the position of a finite value: 0 at the low end of the axis, 1 at the high end.
    pub(super) fn part(self, value: f64) -> f64 {
        let part = match self {
            Self::Linear(low, high) => (value.clamp(-HUGE, HUGE) - low) / (high - low),
            Self::Log(low, high) if value > TINY => (value.log10() - low) / (high - low),
            Self::Log(..) => 0.0,
            Self::Names(count) => (value + 0.5) / count as f64,
        };
        part.clamp(0.0, 1.0)
    }

    /// Returns true if the value is zero or less on a logarithmic axis: it has no position there.
    pub(super) fn is_below(self, value: f64) -> bool {
        matches!(self, Self::Log(..)) && value <= TINY
    }

    /// Returns true if the axis begins at zero.
    pub(super) fn begins_at_zero(self) -> bool {
        matches!(self, Self::Linear(low, _) if low == 0.0)
    }
}

/// Returns the smallest and the largest value, clamped to [`HUGE`].
fn both_ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .map(|value| value.clamp(-HUGE, HUGE))
        .fold(None, |ends, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(values: &[f64]) -> Extent {
        Extent::of(&Scale::Linear, values.iter().copied(), Ends::Margin)
    }

    #[test]
    fn an_axis_that_comes_near_zero_begins_there() {
        assert!(linear(&[4.0, 10.0]).begins_at_zero());
        assert!(!linear(&[9.0, 10.0]).begins_at_zero());
        assert!(linear(&[0.0]).begins_at_zero());
    }

    #[test]
    fn the_middle_value_is_in_the_middle() {
        let exact = Extent::of(&Scale::Linear, [2.0, 6.0].into_iter(), Ends::Exact);
        assert_eq!(exact.part(4.0), 0.5);
        let log = Extent::of(&Scale::Log, [1.0, 100.0].into_iter(), Ends::Exact);
        assert_eq!(log.part(10.0), 0.5);
        assert_eq!(log.part(-3.0), 0.0);
        assert!(log.is_below(0.0) && !log.is_below(0.5));
    }
}
