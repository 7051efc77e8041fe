//! From a figure to its number, and to what may be said of its direction.
//!
//! Three things are told apart, because readers mix them up:
//! - the **interval** of the speedup, by the bootstrap: of pairs where runs are pairs (the same seed, or the same round), else of both sides. It decides the verdict.
//! - **p**: the test of the documents, Wilcoxon's signed-rank test, where there are six pairs or more (fewer cannot reach 5 %); else Welch's t test, on as few as two samples.
//! - **p after Holm**: the same, corrected for all directions of the same document that are judged. A star stands only for this one.
//!
//! A verdict compares directions, nothing more. "Within noise" is also said of a difference that is real, since simulated runs with one seed do the same work, but less than a
//! tenth of what was published: what moved the published figure was then something else. A replayed trace is one exact run: its sign counts.

use core::cell::RefCell;
use std::collections::HashMap;

use brickyard_report::{
    Better, INTERVAL_DEVIATIONS, SignedRank, Summary, Welch, bootstrap_paired_ratio,
    bootstrap_ratio, gain_percent, hedges_g, holm,
};
use serde::Serialize;

use crate::data::{Data, Key, Samples};
use crate::document::{Document, Figure, Judged, Statistic};

/// The fewest pairs with which the signed-rank test can reach 5 %.
pub const PAIRS_LEAST: usize = 6;

/// The part of a published difference below which a measured one is none.
pub const NEGLIGIBLE: f64 = 0.1;

/// A difference below this, as a part of the whole, is none where the document published none.
const NONE_PUBLISHED: f64 = 0.005;

/// The seed of all resampling: the same rows give the same interval.
const SEED: u64 = 2007;

/// How a measured direction compares with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same direction.
    Same,
    /// The other one.
    Opposite,
    /// The samples do not tell which, or the difference is negligible.
    WithinNoise,
}

impl Verdict {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Same, Self::Opposite, Self::WithinNoise];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::WithinNoise => "within noise",
        }
    }
}

/// What a figure came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The number, before it is scaled for show.
    pub value: f64,
    /// Its unit: that of the samples, `times`, or `%`.
    pub unit: String,
    /// The rows that it is made of, as places of [`Data::row`]; those of `of` first.
    pub rows: Vec<usize>,
    /// How many samples of `of`.
    pub n: usize,
    /// How many times better than `against`; above 1 is better.
    pub speedup: Option<f64>,
    /// The 95 % interval of `speedup`.
    pub interval: Option<(f64, f64)>,
    /// Hedges' g of the two: above 0 is better.
    pub effect: Option<f64>,
    /// Of the test that the module tells of.
    pub p: Option<f64>,
    /// The same after Holm's correction.
    pub p_holm: Option<f64>,
    /// How the direction compares. None where it is not judged.
    pub verdict: Option<Verdict>,
}

impl Judgement {
    /// The star: is p below 5 % after the correction?
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < 0.05)
    }
}

/// What two sets of samples are held together for.
type Pair = (Vec<Key>, Vec<Key>);

/// Judges the figures of documents by the rows that there are.
#[derive(Debug)]
pub struct Judge<'d> {
    data: &'d Data,
    adjusted: HashMap<Pair, f64>,
    // Resampling is the costly part, and one pair of sides stands in several figures.
    intervals: RefCell<HashMap<Pair, Option<(f64, f64)>>>,
}

impl<'d> Judge<'d> {
    /// A judge by these rows. Tests every direction of `documents` once, for the correction.
    #[must_use]
    pub fn new(documents: &[Document], data: &'d Data) -> Self {
        let mut judge = Self {
            data,
            adjusted: HashMap::new(),
            intervals: RefCell::default(),
        };
        for document in documents {
            let mut tested: Vec<(Pair, f64)> = Vec::new();
            for figure in document.figures() {
                let pair = (figure.of.clone(), figure.against.clone());
                if figure.judged == Judged::No || tested.iter().any(|(known, _)| *known == pair) {
                    continue;
                }
                let p = judge
                    .two(figure)
                    .and_then(|(of, against)| p_of(&of, &against));
                tested.extend(p.map(|p| (pair, p)));
            }
            let adjusted = holm(&tested.iter().map(|&(_, p)| p).collect::<Vec<_>>());
            let pairs = tested.into_iter().map(|(pair, _)| pair);
            judge.adjusted.extend(pairs.zip(adjusted));
        }
        judge
    }

    /// What a figure came to. None where its rows are not there, or do not give such a number.
    #[must_use]
    pub fn judge(&self, figure: &Figure) -> Option<Judgement> {
        if figure.statistic == Statistic::GmeanSpeedup {
            return self.gmean(figure);
        }
        let of = self.data.samples(figure.of.first()?)?;
        let two = self.two(figure);
        let value = value(
            figure.statistic,
            &of,
            two.as_ref().map(|(_, against)| against),
        )?;
        let unit = match figure.statistic {
            Statistic::Speedup | Statistic::GmeanSpeedup => "times",
            Statistic::Gain
            | Statistic::GainMin
            | Statistic::GainMax
            | Statistic::GainStdDev
            | Statistic::GainRange
            | Statistic::DifferencePercent
            | Statistic::Share => "%",
            _ => of.unit,
        };
        let mut judgement = Judgement {
            value,
            unit: unit.to_owned(),
            rows: of.rows.clone(),
            n: of.values.len(),
            speedup: None,
            interval: None,
            effect: None,
            p: None,
            p_holm: None,
            verdict: None,
        };
        if let Some((of, against)) = &two {
            judgement.rows.extend(&against.rows);
            self.compare(figure, of, against, &mut judgement);
        }
        Some(judgement)
    }

    /// Fills in what a comparison says.
    fn compare(
        &self,
        figure: &Figure,
        of: &Samples<'d>,
        against: &Samples<'d>,
        out: &mut Judgement,
    ) {
        if figure.statistic.is_of_scatter() {
            return;
        }
        let (Some(now), Some(before)) = (mean(&of.values), mean(&against.values)) else {
            return;
        };
        out.speedup = speedup(of.better, now, before);
        let pair = (figure.of.clone(), figure.against.clone());
        out.interval = *self
            .intervals
            .borrow_mut()
            .entry(pair.clone())
            .or_insert_with(|| interval(of, against));
        out.effect = hedges_g(&of.values, &against.values).map(|g| match of.better {
            Better::Higher => g,
            Better::Lower => -g,
        });
        out.p = p_of(of, against);
        if figure.judged == Judged::Yes {
            // Only these are in the family that is corrected for.
            out.p_holm = self.adjusted.get(&pair).copied();
            let published = figure.published.and_then(|published| published.speedup);
            out.verdict = published.zip(out.speedup).map(|(published, measured)| {
                verdict(published, measured, out.interval, of.kind.is_exact())
            });
        }
    }

    /// Both sides of a figure that has two.
    fn two(&self, figure: &Figure) -> Option<(Samples<'d>, Samples<'d>)> {
        let of = self.data.samples(figure.of.first()?)?;
        let against = self.data.samples(figure.against.first()?)?;
        Some((of, against))
    }

    /// The geometric mean over those keys of which both sides are there.
    fn gmean(&self, figure: &Figure) -> Option<Judgement> {
        let (mut logarithms, mut rows) = (Vec::new(), Vec::new());
        for (of, against) in figure.of.iter().zip(&figure.against) {
            let (Some(of), Some(against)) = (self.data.samples(of), self.data.samples(against))
            else {
                continue;
            };
            let Some(times) = speedup(of.better, mean(&of.values)?, mean(&against.values)?) else {
                continue;
            };
            logarithms.push(times.ln());
            rows.extend(of.rows.iter().chain(&against.rows));
        }
        let value = mean(&logarithms)?.exp();
        Some(Judgement {
            value,
            unit: "times".to_owned(),
            rows,
            n: logarithms.len(),
            speedup: Some(value),
            interval: None,
            effect: None,
            p: None,
            p_holm: None,
            verdict: None,
        })
    }
}

/// The mean. None of none, and of what is no number.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    Summary::of(values).ok()?.mean()
}

/// The number of a statistic. `against` is needed by those that compare.
fn value(statistic: Statistic, of: &Samples<'_>, against: Option<&Samples<'_>>) -> Option<f64> {
    let summary = Summary::of(&of.values).ok()?;
    let both = || Some((summary.mean()?, mean(&against?.values)?));
    let gain = |better, part: fn(&Summary) -> Option<f64>| {
        let before = Summary::of(&against?.values).ok()?;
        Some(gain_percent(better, part(&summary)?, part(&before)?))
    };
    let range = |summary: &Summary| Some(summary.max()? - summary.min()?);
    match statistic {
        Statistic::Mean => summary.mean(),
        Statistic::Median => summary.median(),
        Statistic::Min => summary.min(),
        Statistic::Max => summary.max(),
        Statistic::Range => range(&summary),
        Statistic::StdDev => summary.stddev(),
        Statistic::Interval95 => {
            let root = (summary.n() as f64).sqrt();
            Some(INTERVAL_DEVIATIONS * summary.stddev()? / root)
        }
        Statistic::Speedup => both().and_then(|(now, before)| speedup(of.better, now, before)),
        Statistic::Gain => both().map(|(now, before)| gain_percent(of.better, now, before)),
        Statistic::GainMin => gain(of.better, Summary::min),
        Statistic::GainMax => gain(of.better, Summary::max),
        Statistic::GainStdDev => gain(Better::Lower, Summary::stddev),
        Statistic::GainRange => gain(Better::Lower, range),
        Statistic::Difference => both().map(|(now, before)| now - before),
        Statistic::DifferencePercent => both()
            .filter(|&(_, before)| before != 0.0)
            .map(|(now, before)| (now - before) * 100.0 / before.abs()),
        Statistic::Share => both()
            .filter(|&(_, whole)| whole != 0.0)
            .map(|(part, whole)| part * 100.0 / whole),
        Statistic::GmeanSpeedup => None,
    }
}

/// How many times better: above 1 is better, whichever way the metric goes. None where one side is not above zero.
fn speedup(better: Better, now: f64, before: f64) -> Option<f64> {
    if now <= 0.0 || before <= 0.0 {
        return None;
    }
    Some(match better {
        Better::Higher => now / before,
        Better::Lower => before / now,
    })
}

/// Are the samples pairs: the same runs on both sides?
fn are_pairs(of: &Samples<'_>, against: &Samples<'_>) -> bool {
    of.runs == against.runs
}

/// The 95 % interval of the speedup.
fn interval(of: &Samples<'_>, against: &Samples<'_>) -> Option<(f64, f64)> {
    // Better, when lower, is the other way up.
    let (top, bottom) = match of.better {
        Better::Higher => (&of.values, &against.values),
        Better::Lower => (&against.values, &of.values),
    };
    let found = if are_pairs(of, against) {
        bootstrap_paired_ratio(top, bottom, SEED)
    } else {
        bootstrap_ratio(top, bottom, SEED)
    }?;
    let (low, high) = (found.low, found.high);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// p of the test that fits.
fn p_of(of: &Samples<'_>, against: &Samples<'_>) -> Option<f64> {
    if are_pairs(of, against) && of.values.len() >= PAIRS_LEAST {
        return SignedRank::of(&against.values, &of.values)
            .ok()
            .map(|test| test.p);
    }
    Welch::of(&of.values, &against.values).map(|test| test.p)
}

/// Compares directions. Speedups: above 1 is better.
fn verdict(published: f64, measured: f64, interval: Option<(f64, f64)>, exact: bool) -> Verdict {
    let said = published - 1.0;
    let found = measured - 1.0;
    if said == 0.0 {
        let none = interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
        return if none || found.abs() < NONE_PUBLISHED {
            Verdict::Same
        } else {
            Verdict::Opposite
        };
    }
    let noise = match interval {
        Some((low, high)) => low <= 1.0 && 1.0 <= high,
        // One sample a side: of a run that is exact, the sign counts.
        None => !exact,
    };
    if noise || found == 0.0 || found.abs() < NEGLIGIBLE * said.abs() {
        Verdict::WithinNoise
    } else if (found > 0.0) == (said > 0.0) {
        Verdict::Same
    } else {
        Verdict::Opposite
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_compares_directions() {
        use Verdict::{Opposite, Same, WithinNoise};
        let clear = Some((1.01, 1.05));
        for (published, measured, interval, exact, expected) in [
            (1.02, 1.03, clear, false, Same),
            (0.98, 1.03, clear, false, Opposite),
            (1.02, 1.03, Some((0.99, 1.07)), false, WithinNoise),
            // A tenth of what was published is the least that counts.
            (1.50, 1.03, clear, true, WithinNoise),
            (1.02, 1.0, Some((1.0, 1.0)), true, WithinNoise),
            // One run each: exact or nothing.
            (1.02, 1.03, None, true, Same),
            (1.02, 1.03, None, false, WithinNoise),
            // Nothing published: nothing is to be found.
            (1.0, 1.001, clear, true, Same),
            (1.0, 1.03, Some((0.9, 1.2)), false, Same),
            (1.0, 1.03, clear, false, Opposite),
        ] {
            let found = verdict(published, measured, interval, exact);
            assert_eq!(
                found, expected,
                "{published} {measured} {interval:?} {exact}"
            );
        }
    }

    #[test]
    fn better_is_above_one_either_way() {
        assert_eq!(speedup(Better::Lower, 2.0, 3.0), Some(1.5));
        assert_eq!(speedup(Better::Higher, 3.0, 2.0), Some(1.5));
        assert_eq!(speedup(Better::Higher, 3.0, 0.0), None);
        assert_eq!(speedup(Better::Lower, 0.0, 3.0), None);
    }
}
