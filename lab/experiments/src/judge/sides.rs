//! The two sides of a comparison: the runs that both have, and the tests of their difference.

use std::collections::BTreeSet;

use brickyard_results::{Better, PairedT, RatioInterval, Runs, SignedRank, Welch, ratio_interval};

use super::statistic::mean;
use super::verdict::Range;
use crate::data::{Data, Key, Samples};
use crate::raw::Method;

/// The fewest pairs with which the signed-rank test can reach 5 %.
pub const PAIRS_LEAST: usize = 6;

/// The metric that the documents print as whole numbers, in pages or in percent of memory.
const WHOLE: &str = "huge-pages";

/// What a smaller measured number of this metric counts as where a ratio is taken, since a 0 has
/// none: half a unit of print.
const HALF_UNIT: f64 = 0.5;

/// The samples of a figure, and those that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sides<'d> {
    pub(super) of: Samples<'d>,
    pub(super) against: Samples<'d>,
    pub(super) runs: Runs,
    // What a smaller value counts as where a ratio is taken.
    least: f64,
}

impl<'d> Sides<'d> {
    /// Returns both sides reduced to the runs that both have; all runs, if they have none in
    /// common. None if one has no rows.
    pub(super) fn of_keys(data: &'d Data, of: &Key, against: &Key) -> Option<Self> {
        let least = match of.metric == WHOLE {
            true => HALF_UNIT,
            false => 0.0,
        };
        Some(Self::new(data.samples(of)?, data.samples(against)?, least))
    }

    fn new(of: Samples<'d>, against: Samples<'d>, least: f64) -> Self {
        let runs = |side: &Samples<'_>| side.runs.iter().copied().collect::<BTreeSet<u32>>();
        let common: BTreeSet<u32> = runs(&of).intersection(&runs(&against)).copied().collect();
        if common.is_empty() {
            return Self {
                of,
                against,
                runs: Runs::Independent,
                least,
            };
        }
        Self {
            of: only(of, &common),
            against: only(against, &common),
            runs: Runs::Paired,
            least,
        }
    }

    /// Returns the values of both sides as they count where a ratio is taken.
    pub(super) fn counted(&self) -> [Vec<f64>; 2] {
        [&self.of, &self.against].map(|side| {
            let values = side.values.iter();
            match self.least > 0.0 {
                true => values.map(|value| value.max(self.least)).collect(),
                false => values.copied().collect(),
            }
        })
    }

    /// Returns true if these are the same samples, so that a test of one is a test of the other.
    pub(super) fn is_same_test(&self, other: &Self) -> bool {
        let same = |a: &Samples<'_>, b: &Samples<'_>| {
            let rows = a.rows == b.rows;
            let values = a.kind.is_exact() && b.kind.is_exact() && a.values == b.values;
            (rows || values) && a.runs == b.runs && a.better == b.better
        };
        same(&self.of, &other.of) && same(&self.against, &other.against)
    }

    /// Returns how many times better the mean is; none if that of one side is not above zero.
    pub(super) fn speedup(&self) -> Option<f64> {
        let [now, before] = self.counted();
        speedup(self.of.better, mean(&now)?, mean(&before)?)
    }

    /// The same, for a direction, which there is even if a side is zero: then it is 0 or infinite,
    /// and 1 if both are. None if a side is below zero.
    pub(super) fn ratio(&self) -> Option<f64> {
        let [now, before] = self.counted().map(|values| mean(&values));
        let (now, before) = (now?, before?);
        let (top, bottom) = match self.of.better {
            Better::Higher => (now, before),
            Better::Lower => (before, now),
            Better::Neither => return None,
        };
        match top == bottom {
            true => Some(1.0),
            false => (top >= 0.0 && bottom >= 0.0).then(|| top / bottom),
        }
    }

    /// Returns the ratio as both ends of a range if it is known without an interval: the samples do
    /// not vary, or those of one side are all zero and none of the other is.
    pub(super) fn exact_range(&self) -> Option<Range> {
        let ratio = self.ratio()?;
        let all = |zero: bool| {
            let sides = [&self.of, &self.against].into_iter();
            let mut sides = sides.map(|side| side.values.iter().all(|&it| (it == 0.0) == zero));
            sides.any(|holds| holds)
        };
        let is_zero = ratio == 0.0 || ratio.is_infinite();
        (self.is_constant() || is_zero && all(true) && all(false)).then_some((ratio, ratio))
    }

    /// Returns true if neither side varies.
    pub(super) fn is_constant(&self) -> bool {
        self.of.is_constant() && self.against.is_constant()
    }

    /// Returns true if a side was replayed on a machine whose parameters are assumed.
    pub(super) fn is_assumed(&self) -> bool {
        self.of.kind == Method::Replayed || self.against.kind == Method::Replayed
    }

    /// Returns the 95 % interval of the speedup.
    pub(super) fn interval(&self) -> Option<RatioInterval> {
        // If lower is better, the ratio is inverted.
        let [now, before] = self.counted();
        let (top, bottom) = match self.of.better {
            Better::Higher => (now, before),
            Better::Lower => (before, now),
            Better::Neither => return None,
        };
        ratio_interval(&top, &bottom, self.runs)
    }

    /// Returns the p of the test that fits the samples; none if they do not vary.
    pub(super) fn p(&self) -> Option<f64> {
        if self.is_constant() {
            return None;
        }
        let (now, before) = (&self.of.values, &self.against.values);
        match self.runs {
            Runs::Paired if now.len() >= PAIRS_LEAST => {
                SignedRank::of(before, now).ok().map(|test| test.p)
            }
            Runs::Paired => PairedT::of(now, before).map(|test| test.p),
            Runs::Independent => Welch::of(now, before).map(|test| test.p),
        }
    }
}

/// Returns the samples of these runs.
fn only<'d>(side: Samples<'d>, runs: &BTreeSet<u32>) -> Samples<'d> {
    let wanted: Vec<usize> = (0..side.runs.len())
        .filter(|&place| runs.contains(&side.runs[place]))
        .collect();
    Samples {
        runs: wanted.iter().map(|&place| side.runs[place]).collect(),
        values: wanted.iter().map(|&place| side.values[place]).collect(),
        rows: wanted.iter().map(|&place| side.rows[place]).collect(),
        ..side
    }
}

/// Returns how many times better `now` is: above 1 is better, whichever way the metric goes. None
/// if one side is not above zero, or if neither way is better.
pub(super) fn speedup(better: Better, now: f64, before: f64) -> Option<f64> {
    if now <= 0.0 || before <= 0.0 {
        return None;
    }
    match better {
        Better::Higher => Some(now / before),
        Better::Lower => Some(before / now),
        Better::Neither => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_above_one_either_way() {
        assert_eq!(speedup(Better::Lower, 2.0, 3.0), Some(1.5));
        assert_eq!(speedup(Better::Higher, 3.0, 2.0), Some(1.5));
        assert_eq!(speedup(Better::Higher, 3.0, 0.0), None);
        assert_eq!(speedup(Better::Lower, 0.0, 3.0), None);
    }
}
