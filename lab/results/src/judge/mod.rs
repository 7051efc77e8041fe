//! The one judge. The samples of two sides go in ([`Sides`]); their difference comes out, with its
//! interval ([`Difference`]) and a test of it ([`Test`]), of which many are corrected together by
//! [`holm`](crate::holm()). What may be said of a difference is then a question of where the interval
//! lies: against a threshold in `brickyard compare` ([`Rules`]; there that of the difference of the
//! means, which samples of zero have too), against what a document published in `brickyard
//! reproduce`, against a record with `--expect`.
//!
//! | file | what it holds |
//! |---|---|
//! | `pair.rs` | the rows of two documents, matched, and which of their samples are compared |
//! | `runs.rs` | several runs of one build as one side |
//! | `regression.rs` | [`Rules`] and [`Verdict`]: whether a row got worse |

mod pair;
mod regression;
mod runs;

use crate::Better;
use crate::statistics::{
    Interval, RatioInterval, Runs, SignedRank, Student, Summary, ratio_interval, smallest_p,
};

pub use pair::{Chosen, Matched, Pair, common_runs, row_name};
pub use regression::{Judged, Judgements, Rules, Timed, Verdict};
pub use runs::as_samples;

/// Why rows cannot be put side by side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// A row cannot be made of its samples.
    #[error(transparent)]
    Row(#[from] crate::RowError),
    /// A row is there twice, or contradicts another.
    #[error(transparent)]
    Results(#[from] crate::ResultsError),
}

/// The samples of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides<'s> {
    /// Those of the side in question.
    pub now: &'s [f64],
    /// Those that it is compared with.
    pub before: &'s [f64],
    /// Which direction is better; if neither is, differences count upwards.
    pub better: Better,
    /// Whether they are in pairs.
    pub runs: Runs,
    /// Whether nothing in them is left to chance: then there is no interval and nothing to test, as
    /// the value itself counts.
    pub is_exact: bool,
}

/// By how much two sides differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// How many times better the mean is: above 1 is better, whichever way the metric goes; 0 or
    /// infinite if one side is zero, and 1 if both are. `None` if a side is below zero, or has no
    /// samples.
    pub ratio: Option<f64>,
    /// The same if both sides are above zero.
    pub speedup: Option<f64>,
    /// The 95 % interval of the ratio; `None` of exact sides, and where there are too few samples or
    /// one has no ratio.
    pub interval: Option<RatioInterval>,
    // Whether the ratio is known without an interval.
    is_certain: bool,
}

/// A test of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// Its name.
    pub by: &'static str,
    /// Its two-sided p.
    pub p: f64,
}

impl Sides<'_> {
    /// Returns the difference. Costs as much as [`ratio_interval`].
    #[must_use]
    pub fn difference(&self) -> Difference {
        let (over, under) = self.directed();
        let means = mean(over).zip(mean(under));
        let ratio = means.and_then(|(over, under)| match over == under {
            true => Some(1.0),
            false => (over >= 0.0 && under >= 0.0).then_some(over / under),
        });
        let is_positive = means.is_some_and(|(over, under)| over > 0.0 && under > 0.0);
        // A zero decides the direction if no sample of the other side is zero.
        let is = |zero: bool| {
            let mut sides = [self.now, self.before].into_iter();
            sides.any(|side| side.iter().all(|&it| (it == 0.0) == zero))
        };
        let has_zero = ratio.is_some_and(|ratio| ratio == 0.0 || ratio.is_infinite());
        Difference {
            ratio,
            speedup: ratio.filter(|_| is_positive),
            interval: match self.is_exact {
                true => None,
                false => ratio_interval(over, under, self.runs),
            },
            is_certain: self.is_exact || has_zero && is(true) && is(false),
        }
    }

    /// Returns the sides in the order in which their ratio is above 1 if `now` is better.
    const fn directed(&self) -> (&[f64], &[f64]) {
        match self.better {
            Better::Lower => (self.before, self.now),
            Better::Higher | Better::Neither => (self.now, self.before),
        }
    }

    /// Returns the test that fits the samples: of pairs the signed-rank test, if with so many of them
    /// it can reach `level`, else Student's of the differences; of independent samples Welch's. `None`
    /// of exact sides, and of too few samples.
    #[must_use]
    pub fn test(&self, level: f64) -> Option<Test> {
        let (now, before) = (self.now, self.before);
        if self.is_exact || now.len() < 2 || before.len() < 2 {
            return None;
        }
        let by = |by, p: f64| Test { by, p };
        match self.runs {
            Runs::Paired if smallest_p(now.len()) < level => {
                SignedRank::of(before, now).map(|test| by("signed-rank", test.p))
            }
            Runs::Paired => Student::of_pairs(now, before).map(|test| by("paired-t", test.p)),
            Runs::Independent => Student::of_sides(now, before).map(|test| by("welch", test.p)),
        }
    }
}

impl Difference {
    /// Returns what the ratio is known to be between: its interval, or the ratio itself if the sides
    /// are exact, or one is all zero and the other nowhere. `None` if the samples are too few.
    #[must_use]
    pub fn range(&self) -> Option<Interval> {
        let point = self.ratio.filter(|_| self.is_certain).map(Interval::point);
        point.or(self.interval.map(|found| found.ends))
    }
}

/// Returns the mean; `None` if there are no samples, or if one is not a number.
#[must_use]
pub fn mean(samples: &[f64]) -> Option<f64> {
    Summary::of(samples).ok()?.mean()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sides<'s>(now: &'s [f64], before: &'s [f64], better: Better) -> Sides<'s> {
        Sides {
            now,
            before,
            better,
            runs: Runs::Paired,
            is_exact: false,
        }
    }

    #[test]
    fn better_is_above_one_either_way() {
        let ratio = |now, before, better| sides(&[now], &[before], better).difference().ratio;
        assert_eq!(ratio(2.0, 3.0, Better::Lower), Some(1.5));
        assert_eq!(ratio(3.0, 2.0, Better::Higher), Some(1.5));
        assert_eq!(ratio(3.0, 0.0, Better::Higher), Some(f64::INFINITY));
        assert_eq!(ratio(0.0, 0.0, Better::Higher), Some(1.0));
        assert_eq!(ratio(-1.0, 2.0, Better::Higher), None);
    }

    #[test]
    fn a_range_is_the_interval_or_of_certain_sides_the_ratio() {
        let (now, before) = ([2.0, 3.0, 4.0], [5.0, 6.0, 9.0]);
        let varying = sides(&now, &before, Better::Lower);
        let found = varying.difference();
        assert_eq!(found.range(), found.interval.map(|found| found.ends));
        let exact = Sides {
            is_exact: true,
            ..varying
        };
        let found = exact.difference();
        assert_eq!((found.interval, exact.test(0.05)), (None, None));
        assert_eq!(found.range(), found.ratio.map(Interval::point));
        let zero = sides(&[0.0; 3], &before, Better::Higher).difference();
        assert_eq!(zero.range(), Some(Interval::point(0.0)));
        let some_zero = sides(&[0.0; 3], &[1.0, 0.0, 2.0], Better::Higher).difference();
        assert_eq!(some_zero.range(), None);
    }

    #[test]
    fn the_signed_rank_test_is_taken_if_it_can_reach_the_level() {
        let (now, before) = (
            [1.0, 2.0, 3.0, 4.0, 5.5, 6.5],
            [7.0, 8.0, 9.0, 11.0, 10.0, 12.0],
        );
        let by = |n: usize, runs, level| {
            let sides = Sides {
                runs,
                ..sides(&now[..n], &before[..n], Better::Lower)
            };
            sides.test(level).map(|test| test.by)
        };
        assert_eq!(by(6, Runs::Paired, 0.05), Some("signed-rank"));
        assert_eq!(by(6, Runs::Paired, 0.01), Some("paired-t"));
        assert_eq!(by(5, Runs::Paired, 0.05), Some("paired-t"));
        assert_eq!(by(6, Runs::Independent, 0.05), Some("welch"));
        assert_eq!(by(1, Runs::Independent, 0.05), None);
    }
}
