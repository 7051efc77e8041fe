//! Two documents of results held against each other: which of their rows measure the same, and what
//! each such pair says.
//!
//! | file | what it holds |
//! |---|---|
//! | `pair.rs` | two rows, and which of their samples are held against each other |
//! | `several.rs` | several runs of one build as one side |
//! | `tested.rs` | how a pair is tested |
//! | `full.rs` | figures that decide nothing: effect sizes, geometric mean |
//!
//! Exact rows (`tested.rs`) are what they are: the gain is that of the means, and any difference
//! counts. Else the means are held against each other by Welch's test, with p corrected by Holm for
//! all pairs that are tested. A difference that counts and is greater than the threshold makes a
//! row better or worse; a row that is not worse is the same only if a loss greater than the
//! threshold can be ruled out, by the 95 % interval of the difference.
//!
//! The samples of a timed row are rounds of one run, and runs of one build differ by more than
//! their rounds. So it has a threshold of its own, which is for how many times one mean is the
//! other, alike for times and for rates.

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
pub enum VerdictError {
    /// A row cannot be made of its samples.
    #[error(transparent)]
    Row(#[from] crate::RowError),
    /// Two rows are one.
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
    /// Of timed rows one mean must be more than so many percent above the other.
    pub timed: Timed,
    /// How much is worked out.
    pub depth: Depth,
}

/// What the samples of a timed row are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timed {
    /// Rounds of one run. One mean must be more than so many percent above the other to make a row
    /// worse or better.
    Rounds {
        /// In percent.
        threshold_percent: f64,
    },
    /// Each the mean of a run. They are judged as all others.
    Runs,
}

/// How much is worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Depth {
    /// What a narrow table shows.
    Table,
    /// Also effect sizes and the interval of the ratio, which takes 9,999 resamples a row of ten
    /// samples or more.
    Full,
}

/// What a pair says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A gain that counts and is greater than the threshold.
    Better,
    /// Such a loss.
    Worse,
    /// It differs, and no percentage says by how much: from 0, or where neither way is better.
    Changed,
    /// No such loss, surely.
    Same,
    /// There may be one: the samples scatter too much, or are too few.
    Unclear,
}

impl Verdict {
    /// All of them, what matters most first.
    pub const ALL: [Self; 5] = [
        Self::Worse,
        Self::Better,
        Self::Changed,
        Self::Same,
        Self::Unclear,
    ];

    /// What it is called.
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

/// A pair, judged.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The rows.
    pub pair: &'a Pair,
    /// Positive is better. `None` where a side has no samples, where the baseline is 0 and the
    /// other is not, and where neither way is better.
    pub gain_percent: Option<f64>,
    /// How the pair was tested.
    pub test: Test,
    /// Do the sides differ, and surely?
    pub significant: bool,
    /// What it comes to.
    pub verdict: Verdict,
    /// The gains that the 95 % interval of the difference reaches to: the worst, and the best. Of
    /// what is tested.
    pub gain_interval: Option<Interval>,
    /// What takes longer to work out.
    pub full: Option<Full>,
}

/// All of it.
#[derive(Debug)]
pub struct Judgements<'a> {
    /// The rules.
    pub judge: Judge,
    /// In the order of the baseline.
    pub rows: Vec<Judged<'a>>,
    /// How many pairs p is corrected for.
    pub tests: usize,
    /// Which way of the ratios is better, and their geometric mean. `None` where no row gives a
    /// ratio.
    pub gmean: Option<(Better, GmeanCell)>,
}

impl Judgements<'_> {
    /// How many rows were judged so.
    pub fn count(&self, verdict: Verdict) -> usize {
        let of_verdict = self.rows.iter().filter(|row| row.verdict == verdict);
        of_verdict.count()
    }
}

impl Judge {
    /// Judges every pair; `each` is called before one is.
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

    /// The gains that make a pair neither better nor worse.
    fn allowed(&self, pair: &Pair) -> Interval {
        let (most, least) = match (pair.kind, self.timed) {
            (Some(SampleKind::Timed), Timed::Rounds { threshold_percent }) => {
                // So many percent above the other is fewer percent below.
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

/// The gain in percent, where there is one: not from 0, where any number would be arbitrary.
fn gain(better: Better, now: f64, base: f64) -> Option<f64> {
    let gain = gain_percent(better, now, base);
    (gain.is_finite() && (base != 0.0 || now == 0.0)).then_some(gain)
}

/// The gains that the 95 % interval of the difference reaches to.
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
