//! Whether a row got worse: two documents compared row by row.
//!
//! For exact rows the gain is that of the means, and any difference is significant. Others are
//! tested, with p corrected by Holm for all pairs that are. A significant difference greater than
//! the threshold makes a row better or worse; a row that is not worse is the same only if a loss
//! greater than the threshold can be ruled out by the 95 % interval of the difference.
//!
//! The samples of a timed row are rounds of one run, and runs of one build differ by more than
//! their rounds. So timed rows have their own threshold, which bounds the ratio of the greater mean
//! to the smaller, for times and rates alike.

use brickyard_run::named;

use super::Test;
use super::pair::Pair;
use crate::statistics::{
    Interval, RankSum, RatioInterval, SIGNIFICANT_P, difference95, holm, ratio_interval,
};
use crate::{Better, Gmean, SampleKind, gain_percent};

/// Exact values that differ by at most this, relative to the larger, are the same: rounding on
/// another machine.
const TOLERANCE: f64 = 1e-9;

/// The rules that rows are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The level of significance.
    pub alpha: f64,
    /// A loss or gain must be greater than this, in percent, to make a row worse or better.
    pub threshold_percent: f64,
    /// What the samples of timed rows are, and their threshold.
    pub timed: Timed,
}

/// What the samples of a timed row are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timed {
    /// Rounds of one run. One mean must be above the other by more than the threshold to make a row
    /// worse or better.
    Rounds {
        /// In percent of the smaller mean.
        threshold_percent: f64,
    },
    /// Each sample is the mean of a run. They are judged like all others.
    Runs,
}

named! {
    /// The verdict on a pair.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Verdict {
        /// A significant loss greater than the threshold.
        Worse => "worse",
        /// A significant gain greater than the threshold.
        Better => "better",
        /// A significant difference without a percentage: from 0, or where neither direction is
        /// better.
        Changed => "changed",
        /// A loss greater than the threshold is ruled out.
        Same => "same",
        /// It is not ruled out: the samples scatter too much, or are too few.
        Unclear => "unclear",
    }
}

/// A pair and its verdict.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judged<'a> {
    /// The pair.
    pub pair: &'a Pair,
    /// The gain of the mean in percent: positive is better. `None` from 0, of a metric of which
    /// neither direction is better, and without samples.
    pub gain_percent: Option<f64>,
    /// The 95 % interval of the gain of a row that is not exact.
    pub gain_interval: Option<Interval>,
    /// The test, and its p after Holm's correction. `None` of exact rows and of too few samples.
    pub test: Option<(Test, f64)>,
    /// Whether the sides differ.
    pub significant: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// All pairs with their verdicts.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judgements<'a> {
    /// The rules.
    pub rules: Rules,
    /// The pairs, in the order of the baseline.
    pub rows: Vec<Judged<'a>>,
    /// The number of tests that p is corrected for.
    pub tests: usize,
    /// The geometric mean of the ratios B / A.
    pub gmean: Option<Gmean>,
}

impl Judged<'_> {
    /// Returns the 95 % interval of B / A, which takes part in no verdict; of an exact row that over
    /// the pairs. Costs as much as [`ratio_interval`].
    #[must_use]
    pub fn ratio(&self) -> Option<RatioInterval> {
        let sides = self.pair.sides();
        ratio_interval(sides.now, sides.before, sides.runs)
    }

    /// Returns true if any difference of the sides counts: both have samples, and there is nothing to
    /// test.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let sides = self.pair.sides();
        sides.is_exact && !sides.now.is_empty() && !sides.before.is_empty()
    }

    /// Returns p of the rank-sum test of a row that Welch's test was made of: a second opinion where
    /// there are outliers. It takes part in no verdict.
    #[must_use]
    pub fn p_rank_sum(&self) -> Option<f64> {
        self.test.filter(|(test, _)| test.by == "welch")?;
        let sides = self.pair.sides();
        RankSum::of(sides.now, sides.before).map(|test| test.p)
    }
}

impl Judgements<'_> {
    /// Returns the number of rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let of_verdict = self.rows.iter().filter(|row| row.verdict == verdict);
        of_verdict.count()
    }
}

impl Rules {
    /// Judges every pair; `each` is called before each of them.
    pub fn compare<'a>(&self, pairs: &'a [Pair], mut each: impl FnMut()) -> Judgements<'a> {
        let tests = self.tests(pairs);
        let judged = pairs.iter().zip(&tests).map(|(pair, test)| {
            each();
            self.judged(pair, *test)
        });
        let mut directions = pairs.iter().map(Pair::better);
        let better = directions.find(|better| *better != Better::Neither);
        let means = pairs.iter().filter_map(|pair| {
            let (a, b) = pair.means()?;
            Some((pair.better(), b, a))
        });
        Judgements {
            rules: *self,
            rows: judged.collect(),
            tests: tests.iter().flatten().count(),
            gmean: better.and_then(|better| Gmean::of(better, means)),
        }
    }

    /// Tests each pair, and corrects p for all that can be tested.
    fn tests(&self, pairs: &[Pair]) -> Vec<Option<(Test, f64)>> {
        let tests: Vec<_> = pairs.iter().map(test).collect();
        let p = tests
            .iter()
            .map(|test| test.map_or(f64::NAN, |test| test.p));
        let corrected = holm(&p.collect::<Vec<_>>()).into_iter();
        tests
            .into_iter()
            .zip(corrected)
            .map(|(test, p_holm)| Some((test?, p_holm)))
            .collect()
    }

    fn judged<'a>(&self, pair: &'a Pair, test: Option<(Test, f64)>) -> Judged<'a> {
        let sides = pair.sides();
        let (a, b) = (sides.before, sides.now);
        let significant = match test {
            Some((_, p_holm)) => p_holm < self.alpha,
            None => sides.is_exact && has_changed(pair),
        };
        let gain_percent = pair.means().and_then(|(a, b)| gain(pair.better(), b, a));
        let gain_interval = gain_interval(pair);
        let worst = match sides.is_exact {
            true => gain_percent,
            false => gain_interval.map(|gain| gain.low),
        };
        let allowed = self.allowed(pair);
        let verdict = match gain_percent {
            _ if !a.is_empty() && a == b => Verdict::Same,
            Some(gain) if significant && gain > allowed.high => Verdict::Better,
            Some(gain) if significant && gain < allowed.low => Verdict::Worse,
            None if significant => Verdict::Changed,
            None if pair.better() == Better::Neither => Verdict::Same,
            _ if worst.is_some_and(|worst| worst >= allowed.low) => Verdict::Same,
            _ => Verdict::Unclear,
        };
        Judged {
            pair,
            gain_percent,
            gain_interval,
            test,
            significant,
            verdict,
        }
    }

    /// Returns the range of gains that make a pair neither better nor worse.
    fn allowed(&self, pair: &Pair) -> Interval {
        let (most, least) = match (pair.kind, self.timed) {
            (Some(SampleKind::Timed), Timed::Rounds { threshold_percent }) => {
                // Seen from the greater mean, the same difference is a smaller percentage.
                let below = 100.0 * threshold_percent / (100.0 + threshold_percent);
                (threshold_percent, below)
            }
            _ => (self.threshold_percent, self.threshold_percent),
        };
        let (low, high) = match pair.better() {
            Better::Higher => (-least, most),
            Better::Lower | Better::Neither => (-most, least),
        };
        Interval { low, high }
    }
}

/// Returns the test of a pair: of the means, which the verdict is about. (A rank test is of something
/// else: one sample far away can put the mean on one side and the ranks on the other.) Where no
/// sample varies the clock is too coarse to show scatter: p is 0 if the means differ, and 1 if they
/// do not.
fn test(pair: &Pair) -> Option<Test> {
    if !pair.is_exact() && pair.does_not_vary() {
        let p = if has_changed(pair) { 0.0 } else { 1.0 };
        return Some(Test { by: "constant", p });
    }
    // Those of one row are in pairs only if they are exact, so this is Welch's at any level.
    pair.sides().test(SIGNIFICANT_P)
}

/// Returns true if samples differ, run by run if both sides have the same runs.
fn has_changed(pair: &Pair) -> bool {
    let differs = |(a, b): (f64, f64)| (a - b).abs() > TOLERANCE * a.abs().max(b.abs());
    match pair.kind {
        Some(SampleKind::Exact) => {
            let mut samples = pair.a.samples().iter().zip(pair.b.samples());
            samples.any(|(a, b)| differs((*a, *b)))
        }
        _ => pair.means().is_some_and(differs),
    }
}

/// Returns the gain in percent; `None` from a base of 0, where any number would be arbitrary.
fn gain(better: Better, now: f64, base: f64) -> Option<f64> {
    let gain = gain_percent(better, now, base);
    (gain.is_finite() && (base != 0.0 || now == 0.0)).then_some(gain)
}

/// Returns the 95 % interval of the difference of the means as gains: the worst, and the best.
fn gain_interval(pair: &Pair) -> Option<Interval> {
    if pair.is_exact() {
        return None;
    }
    let (a, b) = pair.means()?;
    let by = match pair.does_not_vary() {
        true => Interval::point(b - a),
        false => difference95(pair.b.samples(), pair.a.samples())?,
    };
    let gain = |by: f64| gain(pair.better(), a + by, a);
    let (one, other) = (gain(by.low)?, gain(by.high)?);
    Some(Interval {
        low: one.min(other),
        high: one.max(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::Row;

    const RULES: Rules = Rules {
        alpha: 0.05,
        threshold_percent: 2.0,
        timed: Timed::Rounds {
            threshold_percent: 100.0,
        },
    };

    fn timed(name: &str, a: &[f64], b: &[f64]) -> Pair {
        let row = |samples: &[f64]| {
            let metric = Metric::lower("time", "ns");
            Row::new("x", name, metric, samples.to_vec()).unwrap()
        };
        Pair {
            name: name.to_owned(),
            a: row(a),
            b: row(b),
            kind: Some(SampleKind::Timed),
            of: [a.len(), b.len()],
        }
    }

    fn verdicts(pairs: &[Pair]) -> Vec<Verdict> {
        let judged = RULES.compare(pairs, || {});
        judged.rows.iter().map(|row| row.verdict).collect()
    }

    /// One round far away decides the means, all others the ranks.
    #[test]
    fn a_difference_of_the_ranks_proves_none_of_the_means() {
        let a = [10.0, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 500.0];
        let b = [11.0, 11.1, 11.2, 11.3, 11.4, 11.5, 11.6, 11.7];
        let pairs = [timed("forth", &a, &b), timed("back", &b, &a)];
        assert_eq!(verdicts(&pairs), [Verdict::Unclear; 2]);
    }

    /// With many rows a loss must still be found, and more rows never prove more.
    #[test]
    fn other_rows_prove_nothing_and_hide_no_great_loss() {
        let base: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i * 7 % 10)).collect();
        let slow: Vec<f64> = base.iter().map(|x| 5.0 * x).collect();
        let mut pairs = vec![timed("slow", &base, &slow)];
        pairs.extend((0..400).map(|i| timed(&format!("alike {i}"), &base, &base[1..])));
        assert_eq!(verdicts(&pairs)[0], Verdict::Worse);
        let p = |pairs: &[Pair]| RULES.compare(pairs, || {}).rows[0].test.unwrap().1;
        assert!(p(&pairs[..1]) < p(&pairs[..2]) && p(&pairs[..2]) < p(&pairs));
    }
}
