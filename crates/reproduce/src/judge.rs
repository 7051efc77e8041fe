//! From a figure to its number, and to what may be said of its direction.
//!
//! Three things are told apart, because readers mix them up:
//! - the **interval** of the speedup: below ten samples a side by Student's t of the logarithms, from ten on by the bootstrap ([`ratio_interval`]); of pairs where runs are pairs
//!   (the same seed, or the same round), else of both sides. It decides the verdict.
//! - **p**: of six pairs or more the test of the documents, Wilcoxon's signed-rank test (fewer cannot reach 5 %); of two to five pairs the paired t test; of what is not in pairs
//!   Welch's t test.
//! - **p after Holm**: the same, corrected for all directions of the same document that are judged; in today's tables, for all comparisons of the document's tables of today.
//!   A star stands only for this one.
//!
//! Simulated and replayed samples that do not vary on either side ([`CONSTANT`]) are one exact run: there is nothing to test and no interval, and the sign counts.
//!
//! A verdict compares directions, nothing more. "Within noise" is also said of a difference that is real, since simulated runs with one seed do the same work, but less than a
//! tenth of what was published: what moved the published figure was then something else. Where a document published a difference below 1 % ([`NONE`]), and does not call it
//! significant, it published none: then the whole interval (of one exact run: the value) must lie within 1 % for "no difference in either", and wholly outside for "opposite".

use core::cell::RefCell;
use std::collections::HashMap;

use brickyard_report::{
    Better, INTERVAL_DEVIATIONS, IntervalMethod, PairedT, Runs, SignedRank, Summary, Welch,
    gain_percent, hedges_g, holm, ratio_interval,
};
use serde::Serialize;

use crate::data::{Data, Key, Samples};
use crate::document::{Claim, Document, Figure, Judged, Published, Statistic};

/// The fewest pairs with which the signed-rank test can reach 5 %.
pub const PAIRS_LEAST: usize = 6;

/// The part of a published difference below which a measured one is none.
pub const NEGLIGIBLE: f64 = 0.1;

/// A published difference below this, as a part of the whole, is none, unless the document calls it significant; and so is a measured one beside it.
pub const NONE: f64 = 0.01;

/// Exact samples whose span is not more than this part of the largest are one exact run.
pub const CONSTANT: f64 = 1e-6;

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
    /// No difference was published, and there is none.
    NoDifference,
}

impl Verdict {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self::Same,
        Self::Opposite,
        Self::WithinNoise,
        Self::NoDifference,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::WithinNoise => "within noise",
            Self::NoDifference => "no difference in either",
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
    /// The 95 % interval of `speedup`; none of one exact run. [`interval_by`](Self::interval_by) says how it was found.
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

    /// How the interval was found, in words; none where there is none. `rows` has one row a sample, so it tells how many each side has.
    #[must_use]
    pub fn interval_by(&self) -> Option<&'static str> {
        let against = self.rows.len().saturating_sub(self.n);
        self.interval
            .map(|_| IntervalMethod::of_counts(self.n, against).name())
    }
}

/// What two sets of samples are held together for.
type Pair = (Vec<Key>, Vec<Key>);

/// Judges the figures of documents by the rows that there are.
#[derive(Debug)]
pub struct Judge<'d> {
    data: &'d Data,
    // p after Holm's correction: of the directions that are judged, and of the comparisons of today's tables.
    judged: HashMap<Pair, f64>,
    today: HashMap<Pair, f64>,
    // Resampling is the costly part, and one pair of sides stands in several figures.
    intervals: RefCell<HashMap<Pair, Option<(f64, f64)>>>,
}

impl<'d> Judge<'d> {
    /// A judge by these rows. Tests every direction of `documents`, and every comparison of their tables of today, once, for the correction.
    #[must_use]
    pub fn new(documents: &[Document], data: &'d Data) -> Self {
        let mut judge = Self {
            data,
            judged: HashMap::new(),
            today: HashMap::new(),
            intervals: RefCell::default(),
        };
        for document in documents {
            let judged = document.figures();
            let judged = judge.family(judged.filter(|figure| figure.judged == Judged::Yes));
            judge.judged.extend(judged);
            let lines = document.today.iter().flat_map(|table| &table.lines);
            let today = lines.flat_map(|line| line.cells.iter().flatten());
            let today = judge.family(today.filter(|figure| is_compared_today(figure)));
            judge.today.extend(today);
        }
        judge
    }

    /// The p of these figures, corrected for one another. Two figures of the same two sides are one test.
    fn family<'f>(&self, figures: impl Iterator<Item = &'f Figure>) -> Vec<(Pair, f64)> {
        let mut tested: Vec<(Pair, f64)> = Vec::new();
        for figure in figures {
            let pair = (figure.of.clone(), figure.against.clone());
            if tested.iter().any(|(known, _)| *known == pair) {
                continue;
            }
            let p = self
                .two(figure)
                .and_then(|(of, against)| p_of(&of, &against));
            tested.extend(p.map(|p| (pair, p)));
        }
        let adjusted = holm(&tested.iter().map(|&(_, p)| p).collect::<Vec<_>>());
        let pairs = tested.into_iter().map(|(pair, _)| pair);
        pairs.zip(adjusted).collect()
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
            statistic if statistic.is_percent() => "%",
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
        let exact = is_one_exact_run(of, against);
        if !exact {
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
        }
        // A figure is in one family at most, and only its p is corrected.
        if figure.judged == Judged::Yes {
            out.p_holm = self.judged.get(&pair).copied();
            out.verdict = figure.published.zip(out.speedup).and_then(|(said, found)| {
                let range = if exact {
                    Some((found, found))
                } else {
                    out.interval
                };
                verdict(said, found, range)
            });
        } else if is_compared_today(figure) {
            out.p_holm = self.today.get(&pair).copied();
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

/// Is a figure, if it stands in a table of today, one of those whose p is corrected there?
fn is_compared_today(figure: &Figure) -> bool {
    figure.judged == Judged::No
        && !figure.against.is_empty()
        && matches!(figure.statistic, Statistic::Gain | Statistic::Speedup)
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
    // Of what is not above 0 there are no percent.
    let percent = || both().filter(|&(_, whole)| whole > 0.0);
    let gain = |better, part: fn(&Summary) -> Option<f64>| {
        let before = part(&Summary::of(&against?.values).ok()?)?;
        (before > 0.0).then_some(gain_percent(better, part(&summary)?, before))
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
        Statistic::Gain => gain(of.better, Summary::mean),
        Statistic::GainMin => gain(of.better, Summary::min),
        Statistic::GainMax => gain(of.better, Summary::max),
        Statistic::GainStdDev => gain(Better::Lower, Summary::stddev),
        Statistic::GainRange => gain(Better::Lower, range),
        Statistic::Difference => both().map(|(now, before)| now - before),
        Statistic::DifferencePercent => {
            percent().map(|(now, before)| (now - before) * 100.0 / before)
        }
        Statistic::Share => percent().map(|(part, whole)| part * 100.0 / whole),
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
fn runs_of(of: &Samples<'_>, against: &Samples<'_>) -> Runs {
    if of.runs == against.runs {
        Runs::Paired
    } else {
        Runs::Independent
    }
}

/// Are both sides exact, and does neither vary?
fn is_one_exact_run(of: &Samples<'_>, against: &Samples<'_>) -> bool {
    [of, against].into_iter().all(|side| {
        let values = || side.values.iter().copied();
        let (low, high) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        );
        side.kind.is_exact() && high - low <= CONSTANT * low.abs().max(high.abs())
    })
}

/// The 95 % interval of the speedup.
fn interval(of: &Samples<'_>, against: &Samples<'_>) -> Option<(f64, f64)> {
    // Better, when lower, is the other way up.
    let (top, bottom) = match of.better {
        Better::Higher => (&of.values, &against.values),
        Better::Lower => (&against.values, &of.values),
    };
    let found = ratio_interval(top, bottom, runs_of(of, against))?;
    Some((found.low, found.high))
}

/// p of the test that fits. None of one exact run.
fn p_of(of: &Samples<'_>, against: &Samples<'_>) -> Option<f64> {
    if is_one_exact_run(of, against) {
        return None;
    }
    let (now, before) = (&of.values, &against.values);
    match runs_of(of, against) {
        Runs::Paired if now.len() >= PAIRS_LEAST => {
            SignedRank::of(before, now).ok().map(|test| test.p)
        }
        Runs::Paired => PairedT::of(now, before).map(|test| test.p),
        Runs::Independent => Welch::of(now, before).map(|test| test.p),
    }
}

/// Compares directions. `range` is where the measured speedup lies: its interval, or of one exact run itself; none where the samples do not say. None where no direction
/// was published.
fn verdict(said: Published, measured: f64, range: Option<(f64, f64)>) -> Option<Verdict> {
    let published = said.speedup? - 1.0;
    let found = measured - 1.0;
    let Some((low, high)) = range else {
        return Some(Verdict::WithinNoise);
    };
    if published.abs() < NONE && said.claim != Claim::Significant {
        return Some(if 1.0 - NONE <= low && high <= 1.0 + NONE {
            Verdict::NoDifference
        } else if high < 1.0 - NONE || low > 1.0 + NONE {
            Verdict::Opposite
        } else {
            Verdict::WithinNoise
        });
    }
    let noise = (low <= 1.0 && 1.0 <= high) || found == 0.0;
    Some(if noise || found.abs() < NEGLIGIBLE * published.abs() {
        Verdict::WithinNoise
    } else if (found > 0.0) == (published > 0.0) {
        Verdict::Same
    } else {
        Verdict::Opposite
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_compares_directions() {
        use Claim::{Noise, Significant, Untested};
        use Verdict::{NoDifference, Opposite, Same, WithinNoise};
        let clear = Some((1.02, 1.05));
        let exactly = |speedup| Some((speedup, speedup));
        for (published, claim, measured, range, expected) in [
            (1.02, Untested, 1.03, clear, Same),
            (0.98, Untested, 1.03, clear, Opposite),
            (1.02, Untested, 1.03, Some((0.99, 1.07)), WithinNoise),
            // A tenth of what was published is the least that counts.
            (1.50, Untested, 1.03, clear, WithinNoise),
            (1.02, Untested, 1.0, exactly(1.0), WithinNoise),
            // One run each: exact or nothing.
            (1.02, Untested, 1.03, exactly(1.03), Same),
            (0.98, Untested, 1.0021, exactly(1.0021), Opposite),
            (1.02, Untested, 1.03, None, WithinNoise),
            (1.0, Untested, 1.0, None, WithinNoise),
            // None published: it is to lie within 1 %, wholly.
            (1.0, Untested, 1.001, Some((0.995, 1.005)), NoDifference),
            (1.009, Noise, 1.001, Some((1.0005, 1.002)), NoDifference),
            (0.991, Untested, 1.0, Some((0.9, 1.2)), WithinNoise),
            (1.0, Untested, 1.009, Some((1.005, 1.02)), WithinNoise),
            (1.0, Untested, 1.03, clear, Opposite),
            (1.005, Untested, 1.03, clear, Opposite),
            (1.0, Untested, 0.97, Some((0.96, 0.98)), Opposite),
            (1.0, Untested, 1.009, exactly(1.009), NoDifference),
            (1.0, Untested, 1.02, exactly(1.02), Opposite),
            // Small, but called significant: a direction as any other.
            (1.005, Significant, 1.03, clear, Same),
            (0.995, Significant, 1.03, clear, Opposite),
        ] {
            let said = Published {
                text: "",
                speedup: Some(published),
                claim,
            };
            let found = verdict(said, measured, range);
            let case = format!("{published} {claim:?} {measured} {range:?}");
            assert_eq!(found, Some(expected), "{case}");
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
