//! Two documents of results compared: which of their rows measure the same, and the verdict on each
//! such pair.
//!
//! | file | what it holds |
//! |---|---|
//! | `pair.rs` | two rows, and which of their samples are compared |
//! | `several.rs` | several runs of one build as one side |
//! | `tested.rs` | the test of a pair |
//! | `full.rs` | figures with no part in the verdict: effect sizes, geometric mean |
//!
//! For exact rows (`tested.rs`) the gain is that of the means, and any difference is significant.
//! Otherwise the means are compared by Welch's test, with p corrected by Holm for all pairs that
//! are tested. A significant difference greater than the threshold makes a row better or worse; a
//! row that is not worse is the same only if a loss greater than the threshold can be ruled out by
//! the 95 % interval of the difference.
//!
//! The samples of a timed row are rounds of one run, and runs of one build differ by more than
//! their rounds. So timed rows have their own threshold, which bounds the ratio of the greater mean
//! to the smaller, for times and rates alike.

mod full;
mod pair;
mod several;
mod tested;

use core::fmt;

use crate::{Better, GmeanCell, Interval, SampleKind, Welch, gain_percent};

pub use full::Full;
pub use pair::{Chosen, Matched, Pair, row_name};
pub use several::as_samples;
pub use tested::{Exactly, Test};
use tested::{does_not_vary, tests};

/// Why rows cannot be put side by side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictError {
    /// A row cannot be made of its samples.
    #[error(transparent)]
    Row(#[from] crate::RowError),
    /// A row is there twice, or contradicts another.
    #[error(transparent)]
    Results(#[from] crate::ResultsError),
}

/// The rules that rows are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judge {
    /// The level of significance.
    pub alpha: f64,
    /// A loss or gain must be greater than this, in percent, to make a row worse or better.
    pub threshold_percent: f64,
    /// What the samples of timed rows are, and their threshold.
    pub timed: Timed,
    /// How much is computed.
    pub depth: Depth,
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

/// How much is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Depth {
    /// What a narrow table shows.
    Table,
    /// Also effect sizes and the interval of the ratio, which takes 9,999 resamples per row with
    /// ten samples or more.
    Full,
}

/// The verdict on a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A significant gain greater than the threshold.
    Better,
    /// A significant loss greater than the threshold.
    Worse,
    /// A significant difference without a percentage: from 0, or where neither direction is better.
    Changed,
    /// A loss greater than the threshold is ruled out.
    Same,
    /// It is not ruled out: the samples scatter too much, or are too few.
    Unclear,
}

impl Verdict {
    /// All verdicts, the most important first.
    pub const ALL: [Self; 5] = [
        Self::Worse,
        Self::Better,
        Self::Changed,
        Self::Same,
        Self::Unclear,
    ];

    /// The verdict's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
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

/// A pair and its verdict.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judged<'a> {
    /// The rows.
    pub pair: &'a Pair,
    /// The gain of the means; positive is better. `None` where a side has no samples, where the
    /// baseline is 0 and the other is not, and where neither direction is better.
    pub gain_percent: Option<f64>,
    /// How the pair was tested.
    pub test: Test,
    /// Whether the sides differ significantly.
    pub significant: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// The 95 % interval of the difference as gains: the worst, and the best. Only of pairs that
    /// are tested.
    pub gain_interval: Option<Interval>,
    /// Figures that take longer to compute, with [`Depth::Full`].
    pub full: Option<Full>,
}

/// The verdicts on all pairs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judgements<'a> {
    /// The rules.
    pub judge: Judge,
    /// The pairs, in the order of the baseline.
    pub rows: Vec<Judged<'a>>,
    /// The number of tests that p is corrected for.
    pub tests: usize,
    /// Which direction of the ratios is better, and their geometric mean. `None` where no row gives
    /// a ratio.
    pub gmean: Option<(Better, GmeanCell)>,
}

impl Judgements<'_> {
    /// Returns the number of rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let of_verdict = self.rows.iter().filter(|row| row.verdict == verdict);
        of_verdict.count()
    }
}

impl Judge {
    /// Judges every pair; `each` is called before each of them.
    pub fn compare<'a>(&self, pairs: &'a [Pair], mut each: impl FnMut()) -> Judgements<'a> {
        let tests = tests(pairs);
        let judged = pairs.iter().zip(&tests).map(|(pair, test)| {
            each();
            self.judged(pair, *test)
        });
        let rows = judged.collect();
        let tested = tests
            .iter()
            .filter(|test| matches!(test, Test::Welch { .. }));
        Judgements {
            judge: *self,
            rows,
            tests: tested.count(),
            gmean: full::gmean(pairs),
        }
    }

    fn judged<'a>(&self, pair: &'a Pair, test: Test) -> Judged<'a> {
        let significant = test.is_significant(self.alpha);
        let gain_percent = pair.means().and_then(|(a, b)| gain(pair.better(), b, a));
        let gain_interval = match test {
            Test::Welch { .. } => gain_interval(pair),
            Test::Exact(_) | Test::None => None,
        };
        let worst = match test {
            Test::Exact(_) => gain_percent,
            Test::Welch { .. } => gain_interval.map(|gain| gain.low),
            Test::None => None,
        };
        let allowed = self.allowed(pair);
        let (a, b) = (pair.a.samples(), pair.b.samples());
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
            test,
            significant,
            verdict,
            gain_interval,
            full: (self.depth == Depth::Full).then(|| full::of(pair, test)),
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

/// Returns the gain in percent; `None` from a base of 0, where any number would be arbitrary.
fn gain(better: Better, now: f64, base: f64) -> Option<f64> {
    let gain = gain_percent(better, now, base);
    (gain.is_finite() && (base != 0.0 || now == 0.0)).then_some(gain)
}

/// Returns the 95 % interval of the difference as gains.
fn gain_interval(pair: &Pair) -> Option<Interval> {
    let (a, b) = pair.means()?;
    let by = if does_not_vary(pair) {
        let by = b - a;
        Interval { low: by, high: by }
    } else {
        Welch::difference95(pair.b.samples(), pair.a.samples())?
    };
    let gain = |by: f64| gain(pair.better(), a + by, a);
    let (one, other) = (gain(by.low)?, gain(by.high)?);
    let (low, high) = (one.min(other), one.max(other));
    Some(Interval { low, high })
}
