//! What each pair of rows says.
//!
//! Where all samples of a side are the same, on both sides, the result is exact (simulated, replayed, counted): any difference counts, and there is nothing to
//! test. Else the means are held against each other by Welch's test, and p is corrected by Holm for all pairs that are tested. A difference that is significant
//! and greater than the threshold makes a row better or worse. A row that is not worse is the same only if a loss greater than the threshold can be ruled out:
//! by the 95 % interval of the difference. The very same samples on both sides are the same, however much they scatter.

use core::fmt;

use brickyard_report::{
    Better, Gmean, GmeanCell, Host, Interval, RankSum, RatioInterval, Results, Row, Runs, Welch,
    cliffs_delta, gain_percent, hedges_g, holm, ratio_interval,
};

use super::sides::{Pair, Sides};
use crate::progress;

/// Means of exact results that differ by less than this, relative to the larger, are the same: the last digits of another machine's arithmetic.
const EXACTLY: f64 = 1e-9;

/// The rules that rows are judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge {
    /// The level of significance.
    pub(super) alpha: f64,
    /// A loss or gain must be greater than this, in percent, to make a row worse or better.
    pub(super) threshold_percent: f64,
    /// How much is worked out.
    pub(super) depth: Depth,
}

/// How much is worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Depth {
    /// What a narrow table shows.
    Table,
    /// Also effect sizes and the interval of the ratio, which takes 9,999 resamples a row of ten samples or more.
    Full,
}

/// How a pair was tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Test {
    /// Nothing varies: the difference is what it is.
    Exact,
    /// By Welch's test.
    Welch {
        /// Its p.
        p: f64,
        /// The same after Holm's correction.
        p_holm: f64,
    },
    /// Not at all: too few samples.
    None,
}

/// What a pair says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A gain that is significant and greater than the threshold.
    Better,
    /// Such a loss.
    Worse,
    /// No such loss, surely.
    Same,
    /// There may be one: the samples scatter too much, or are too few.
    Unclear,
}

impl Verdict {
    pub(super) const ALL: [Self; 4] = [Self::Worse, Self::Better, Self::Same, Self::Unclear];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A pair, judged.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) pair: &'a Pair<'a>,
    /// Positive is better. `None` where a side has no samples.
    pub(super) gain_percent: Option<f64>,
    pub(super) test: Test,
    pub(super) significant: bool,
    pub(super) verdict: Verdict,
    /// The gains that the 95 % interval of the difference reaches to: the worst, and the best.
    pub(super) gain_interval: Option<Interval>,
    pub(super) full: Option<Full>,
}

/// The figures that only [`Depth::Full`] has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full {
    /// The 95 % interval of B / A.
    pub(super) ratio: Option<RatioInterval>,
    /// Hedges' g: positive is better.
    pub(super) hedges_g: Option<f64>,
    /// Cliff's delta: positive is better.
    pub(super) cliffs_delta: Option<f64>,
    /// p of the rank-sum test, not corrected: a second opinion beside Welch's, which wild samples cannot carry away. Of rows that are tested.
    pub(super) rank_sum_p: Option<f64>,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) alpha: f64,
    pub(super) threshold_percent: f64,
    pub(super) depth: Depth,
    pub(super) rows: Vec<Judged<'a>>,
    /// How many pairs p is corrected for.
    pub(super) tests: usize,
    /// Which way of the ratios is better, and their geometric mean. `None` where no row gives a ratio.
    pub(super) gmean: Option<(Better, GmeanCell)>,
}

impl Comparison<'_> {
    /// How many rows were judged so.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let of_verdict = self.rows.iter().filter(|row| row.verdict == verdict);
        of_verdict.count()
    }
}

impl Judge {
    /// Judges every pair.
    pub(super) fn compare<'a>(&self, sides: &'a Sides<'_>) -> Comparison<'a> {
        let tests = tests(&sides.pairs);
        let bar = progress::bar(sides.pairs.len() as u64, "{wide_bar} {pos}/{len} rows");
        let judged = sides.pairs.iter().zip(&tests).map(|(pair, test)| {
            bar.inc(1);
            self.judged(pair, *test)
        });
        let rows = judged.collect();
        bar.finish_and_clear();
        let tested = tests
            .iter()
            .filter(|test| matches!(test, Test::Welch { .. }));
        Comparison {
            alpha: self.alpha,
            threshold_percent: self.threshold_percent,
            depth: self.depth,
            rows,
            tests: tested.count(),
            gmean: gmean(&sides.pairs),
        }
    }

    fn judged<'a>(&self, pair: &'a Pair<'a>, test: Test) -> Judged<'a> {
        let (a, b) = (pair.a.summary().mean(), pair.b.summary().mean());
        let better = pair.a.metric().better;
        let gain = |now: f64| Some(gain_percent(better, now, a?)).filter(|gain| gain.is_finite());
        let gain_percent = b.and_then(gain);
        let significant = match test {
            Test::Exact => gain_percent != Some(0.0) && !exactly_same(a, b),
            Test::Welch { p_holm, .. } => p_holm < self.alpha,
            Test::None => false,
        };
        let difference = Welch::difference95(pair.b.samples(), pair.a.samples());
        let gain_interval = difference.and_then(|by| {
            let (one, other) = (gain(a? + by.low)?, gain(a? + by.high)?);
            let (low, high) = (one.min(other), one.max(other));
            Some(Interval { low, high })
        });
        let worst = match test {
            Test::Exact => gain_percent,
            Test::Welch { .. } => gain_interval.map(|gain| gain.low),
            Test::None => None,
        };
        let threshold = self.threshold_percent;
        let identical = !pair.a.samples().is_empty() && pair.a.samples() == pair.b.samples();
        let verdict = match gain_percent {
            _ if identical => Verdict::Same,
            Some(gain) if significant && gain > threshold => Verdict::Better,
            Some(gain) if significant && gain < -threshold => Verdict::Worse,
            _ if worst.is_some_and(|worst| worst >= -threshold) => Verdict::Same,
            _ => Verdict::Unclear,
        };
        Judged {
            pair,
            gain_percent,
            test,
            significant,
            verdict,
            gain_interval,
            full: (self.depth == Depth::Full).then(|| full(pair, test)),
        }
    }
}

/// The figures that take longer.
fn full(pair: &Pair<'_>, test: Test) -> Full {
    let (a, b) = (pair.a.samples(), pair.b.samples());
    let sign = match pair.a.metric().better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
    };
    Full {
        ratio: ratio_interval(b, a, Runs::Independent),
        // No zero with a sign.
        hedges_g: hedges_g(b, a).map(|g| sign * g + 0.0),
        cliffs_delta: cliffs_delta(b, a).map(|delta| sign * delta + 0.0),
        rank_sum_p: match test {
            Test::Welch { .. } => RankSum::of(b, a).map(|test| test.p),
            Test::Exact | Test::None => None,
        },
    }
}

/// How each pair is tested, and with which outcome.
fn tests(pairs: &[Pair<'_>]) -> Vec<Test> {
    let p: Vec<f64> = pairs
        .iter()
        .map(|pair| {
            let test = Welch::of(pair.b.samples(), pair.a.samples());
            test.map_or(f64::NAN, |test| test.p)
        })
        .collect();
    let corrected = holm(&p);
    let test = |((pair, p), p_holm): ((&Pair<'_>, f64), f64)| {
        if is_constant(pair.a) && is_constant(pair.b) {
            Test::Exact
        } else if p.is_nan() {
            Test::None
        } else {
            Test::Welch { p, p_holm }
        }
    };
    pairs.iter().zip(p).zip(corrected).map(test).collect()
}

/// Has the row samples, and are they all the same?
fn is_constant(row: &Row) -> bool {
    let summary = row.summary();
    summary.n() > 0 && summary.min() == summary.max()
}

/// Are these the same but for the last digits?
fn exactly_same(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= EXACTLY * a.abs().max(b.abs()),
        _ => false,
    }
}

/// The geometric mean of all ratios, by the rules of the tables.
fn gmean(pairs: &[Pair<'_>]) -> Option<(Better, GmeanCell)> {
    let mut results = Results::new("both", Host::unknown());
    for (number, pair) in pairs.iter().enumerate() {
        for (config, row) in [("a", pair.a), ("b", pair.b)] {
            // The number stands for the workload: no two pairs can be taken for one.
            let row = Row::new(
                config,
                number.to_string(),
                row.metric(),
                row.samples().to_vec(),
            );
            results.push(row.ok()?).ok()?;
        }
    }
    let gmean = Gmean::of(&brickyard_report::Comparison::new(&results))?;
    let of_b = *gmean.cells.get(1)?;
    Some((gmean.better, of_b?))
}
