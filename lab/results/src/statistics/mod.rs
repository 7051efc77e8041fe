//! Statistics of samples, and tests of two sides, each against SciPy's figures in
//! `tests/scipy.rs`.
//!
//! | file | what it holds |
//! |---|---|
//! | `summary.rs` | [`Summary`]: mean, deviation, confidence interval of samples |
//! | `signed_rank.rs` | [`SignedRank`]: Wilcoxon's test of paired runs |
//! | `rank_sum.rs` | [`RankSum`]: the test of Wilcoxon, Mann and Whitney of independent runs |
//! | `student.rs` | [`Student`]: t tests of pairs and of independent runs, for few samples |
//! | `bootstrap.rs` | intervals of a ratio of means, of any statistics |
//! | `ratio_interval.rs` | [`ratio_interval`]: the interval of a ratio, by a method that suits the number of samples |
//! | `median.rs` | [`MedianInterval`]: the interval of a median |
//! | `holm.rs` | [`holm()`]: p corrected for many tests at once |

mod bootstrap;
mod holm;
mod median;
mod rank_sum;
mod ratio_interval;
mod signed_rank;
mod student;
mod summary;

pub use bootstrap::{bootstrap_each, bootstrap_paired_ratio, bootstrap_ratio};
pub use holm::holm;
pub use median::MedianInterval;
pub use rank_sum::{EXACT_SMALLER_MAX, RankSum};
pub use ratio_interval::{BOOTSTRAP_LEAST, IntervalMethod, RatioInterval, Runs, ratio_interval};
pub use signed_rank::{SignedRank, smallest_p};
pub use student::{Student, difference95};
pub(crate) use summary::t_quantile;
pub use summary::{NotFinite, Summary};

/// Half the width of a 95 % interval, in deviations: the normal distribution's 0.975 quantile.
pub const INTERVAL_DEVIATIONS: f64 = 1.959_963_984_540_054;

/// A difference is significant where p is below this.
pub const SIGNIFICANT_P: f64 = 0.05;

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end, not below the lower one.
    pub high: f64,
}

impl Interval {
    /// The interval that is one point.
    #[must_use]
    pub const fn point(at: f64) -> Self {
        Self { low: at, high: at }
    }

    /// Returns true if all of it is in `band`.
    #[must_use]
    pub fn is_within(self, band: Self) -> bool {
        band.low <= self.low && self.high <= band.high
    }

    /// Returns true if none of it is in `band`.
    #[must_use]
    pub fn is_outside(self, band: Self) -> bool {
        self.high < band.low || band.high < self.low
    }

    /// Returns the interval with `map` made of both its ends, in their order.
    #[must_use]
    pub fn map(self, map: impl Fn(f64) -> f64) -> Self {
        let (one, other) = (map(self.low), map(self.high));
        Self {
            low: one.min(other),
            high: one.max(other),
        }
    }
}

/// How p was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// By counting all outcomes.
    Exact,
    /// By the normal distribution, corrected for ties and continuity.
    Normal,
}
