//! Computes the value of a figure, and what can be concluded about its direction.
//!
//! Two sides are compared over the runs that both have (the same seeds, or the same rounds): if one
//! side had more runs, in a quick or an interrupted run, it did other work in the extra ones. Only
//! sides without a common run are treated as independent. Their difference, its interval and its
//! test are those of [`brickyard_results::judge`]; here they meet what a document published.
//!
//! Three quantities are distinguished, because they are easily confused:
//! - the **interval** of the speedup decides the verdict. That of a geometric mean over several keys
//!   is Student's t of each run's mean logarithm.
//! - **p**: with six pairs or more by the documents' own test, Wilcoxon's signed-rank test (fewer
//!   cannot reach 5 %).
//! - **p after Holm**: the same, corrected for all judged directions of the same document; in
//!   today's tables, for all comparisons of the document's tables of today. Tests of the very same
//!   samples count as one. Only this one earns an asterisk.
//!
//! Several simulated samples that do not vary on either side
//! ([`CONSTANT`](crate::data::CONSTANT)) have no interval and nothing to test: their value counts.
//! One simulated run decides nothing: another seed may give another result.
//!
//! **Sign.** "Same" and "opposite" need the whole interval on one side of 1, and a difference that
//! is no less than a tenth ([`NEGLIGIBLE`]) of the published one (of its logarithm): a smaller one
//! may be real, since simulated runs with one seed do the same work, but something else then moved
//! the published figure. All else is "no effect" if the interval excludes half of what was
//! published, and "undecided" if it does not.
//!
//! **Size.** A difference of the published direction has the published size if the logarithm of its
//! value is between half and twice the published one ([`SIZE`]); otherwise the verdict is "direction
//! only". The published logarithm is any that the printed figures allow, as they are rounded
//! ([`Published::rounding`]).
//!
//! **Zeros** have no ratio. Of huge pages, which the documents print as whole numbers, a measured
//! number below half a unit counts as half a unit. Of other metrics a zero on one side decides the
//! direction if no sample of the other side is zero, with a ratio of 0 or infinity; a geometric
//! mean with such a zero is none.
//!
//! **Assumptions.** Where a figure hangs on what its document does not say, it has a sweep: the
//! same comparison under other assumptions ([`Figure::swept`]). Then a direction counts only if
//! every member has it, otherwise the verdict is "depends on an assumption" (and the one without
//! another assumption is kept beside it); it has the published size only if its own value and those
//! of more than half of all members have it. Of members that are replayed, in few phases, the mean
//! counts; of others the interval. A replay is a run of a machine whose parameters are assumed, so
//! it decides nothing without a sweep, in however many phases it is repeated. If a run lacks rows
//! of a sweep, no sweep is shown, and the verdict is "assumption not varied".
//!
//! **Sittings.** A full run times its cells twice, before all others and after them. A direction
//! counts only if each sitting has it by its own interval, and is undecided otherwise, as it is in a
//! run of one sitting.
//!
//! **None published.** If a document published a difference below 1 % ([`NONE`]) that it does not
//! call significant, or one that it calls noise itself, it counts as having published none: then
//! the whole interval (of constant samples: the value) must be within 1 %, or within what the
//! document calls noise, for "no difference in either", and wholly outside for "a difference here
//! alone"; under all assumptions. These are no directions, and are counted separately. So is a
//! direction whose cause is not modelled: it is "not testable", whatever was measured, and in no
//! family of tests.
//!
//! **Claims** that a value is at least so large ([`Claim::AtLeast`](crate::document::Claim)), and
//! that nothing is harmed, so that a speedup is no more than 1 % below 1, are
//! "same" if the whole interval of the mean is, "opposite" if none of it is. They are judged only
//! where the document's own figure fulfils them; elsewhere its own table contradicts it.
//!
//! | file | what it holds |
//! |---|---|
//! | `sides` | two sides: their common runs, interval and p |
//! | `statistic` | the value of a statistic |
//! | `gmean` | the geometric mean over several keys, and its interval |
//! | `sweep` | the same comparison under other assumptions |
//! | `verdict` | how a measured direction compares with the published one |

mod gmean;
mod sides;
mod statistic;
mod sweep;
mod verdict;

use core::cell::RefCell;
use std::collections::HashMap;

use brickyard_results::judge::Difference;
use brickyard_results::{Interval, RatioInterval, SIGNIFICANT_P, holm};

use crate::data::{Data, Key, Samples};
use crate::document::{Document, Figure, Judged, Published, Statistic, Verdict};
use crate::raw::Method;
use sides::Sides;
use verdict::{Number, Swept};

pub use sweep::{Member, Sweep};
pub use verdict::{NEGLIGIBLE, NONE, NONE_RULE, SIGN_RULE, SIZE, SIZE_RULE, SWEEP_RULE, ZERO_RULE};

/// The computed value of a figure, and its comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The value, before it is scaled for display.
    pub value: f64,
    /// Its unit: that of the samples, `times`, or `%`.
    pub unit: String,
    /// The rows that it is computed from, as indices for [`Data::row`]; those of `of` first.
    pub rows: Vec<usize>,
    /// The number of samples of `of`; of a geometric mean, the number of keys.
    pub n: usize,
    /// How many times better than `against`; above 1 is better.
    pub speedup: Option<f64>,
    /// The 95 % interval of `speedup`; none if the samples do not vary, or are too few.
    pub interval: Option<RatioInterval>,
    /// Whether there is a direction, or a claim, whose samples do not vary.
    pub constant: bool,
    /// Whether a side was replayed on a machine whose parameters are assumed: then the figure
    /// decides nothing without a sweep.
    pub assumed: bool,
    /// The figure under other assumptions; none if it has none, or if this run lacks some of them.
    pub sweep: Option<Sweep>,
    /// The p of the test that the module documentation describes.
    pub p: Option<f64>,
    /// The same after Holm's correction.
    pub p_holm: Option<f64>,
    /// How the direction compares. None if it is not judged.
    pub verdict: Option<Verdict>,
    /// What the verdict would be without the other assumptions, if it depends on them.
    pub by_itself: Option<Verdict>,
    /// Whether it was timed in one sitting only, which decides nothing.
    pub once: bool,
}

impl Judgement {
    /// Returns true if p is below 5 % after the correction, which earns an asterisk.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < SIGNIFICANT_P)
    }

    /// Returns true if its direction remains after the correction for many comparisons: it is
    /// significant, or there is nothing to test, as its samples do not vary.
    #[must_use]
    pub fn remains(&self) -> bool {
        self.is_significant() || self.constant
    }

    /// Returns the judgement of a value that is compared with nothing.
    pub(crate) fn alone(value: f64, unit: &str, rows: Vec<usize>, n: usize) -> Self {
        Self {
            value,
            unit: unit.to_owned(),
            rows,
            n,
            speedup: None,
            interval: None,
            constant: false,
            assumed: false,
            sweep: None,
            p: None,
            p_holm: None,
            verdict: None,
            by_itself: None,
            once: false,
        }
    }
}

/// The keys of the two sides of a comparison.
type Pair = (Vec<Key>, Vec<Key>);

/// Computes the figures of documents from the rows of a run.
#[derive(Debug)]
pub struct Judge<'d> {
    data: &'d Data,
    // p after Holm's correction: of the judged directions, and of the comparisons in today's
    // tables.
    judged: HashMap<Pair, f64>,
    today: HashMap<Pair, f64>,
    // Resampling is the expensive part, and several figures have the same pair of sides.
    differences: RefCell<HashMap<Pair, Option<Difference>>>,
}

impl<'d> Judge<'d> {
    /// Returns a judge for these rows. Tests every direction of `documents`, and every comparison
    /// of their tables of today, once, for the correction.
    #[must_use]
    pub fn new(documents: &[Document], data: &'d Data) -> Self {
        let mut judge = Self {
            data,
            judged: HashMap::new(),
            today: HashMap::new(),
            differences: RefCell::default(),
        };
        for document in documents {
            let judged = document.figures();
            let judged =
                judge.family(judged.filter(|figure| {
                    figure.judged == Judged::Yes && !figure.statistic.is_of_pairs()
                }));
            judge.judged.extend(judged);
            let lines = document.today.iter().flat_map(|table| &table.lines);
            let today = lines.flat_map(|line| line.cells.iter().flatten());
            let today = judge.family(today.filter(|figure| is_compared_today(figure)));
            judge.today.extend(today);
        }
        judge
    }

    /// Returns the p of these figures, corrected for their number. Figures of the very same samples
    /// are one test.
    fn family<'f>(&self, figures: impl Iterator<Item = &'f Figure>) -> HashMap<Pair, f64> {
        let mut tests: Vec<(Sides<'_>, f64)> = Vec::new();
        let mut of_pair: HashMap<Pair, usize> = HashMap::new();
        for figure in figures {
            let pair = (figure.of.clone(), figure.against.clone());
            let Some(sides) = self.sides(figure) else {
                continue;
            };
            let Some(p) = sides.p() else { continue };
            let known = tests
                .iter()
                .position(|(other, _)| other.is_same_test(&sides));
            let place = known.unwrap_or_else(|| {
                tests.push((sides, p));
                tests.len() - 1
            });
            of_pair.insert(pair, place);
        }
        let adjusted = holm(&tests.iter().map(|&(_, p)| p).collect::<Vec<_>>());
        let pairs = of_pair.into_iter();
        pairs.map(|(pair, place)| (pair, adjusted[place])).collect()
    }

    /// Returns the judgement of a figure; none if its rows are missing or the statistic is
    /// undefined for them.
    #[must_use]
    pub fn judge(&self, figure: &Figure) -> Option<Judgement> {
        if figure.statistic == Statistic::GmeanSpeedup {
            return self.gmean(figure);
        }
        if figure.statistic == Statistic::WorstSpeedup {
            return self.worst(figure);
        }
        let Some(sides) = self.sides(figure) else {
            let of = self.data.samples(figure.of.first()?)?;
            let value = statistic::of(figure.statistic, &of, None)?;
            let mut judgement = alone(figure.statistic, value, &of);
            self.check_claim(figure, &of, &mut judgement);
            return Some(judgement);
        };
        let pair = (figure.of.clone(), figure.against.clone());
        let mut differences = self.differences.borrow_mut();
        let difference = differences.entry(pair.clone());
        let difference = *difference.or_insert_with(|| sides.difference());
        let value = match figure.statistic {
            Statistic::Speedup => difference?.speedup,
            statistic => statistic::of(statistic, &sides.of, Some(&sides.against)),
        }?;
        let mut judgement = alone(figure.statistic, value, &sides.of);
        judgement.rows.extend(&sides.against.rows);
        if !figure.statistic.is_of_scatter() {
            self.compare(figure, &pair, &sides, difference, &mut judgement);
        }
        Some(judgement)
    }

    /// Fills in the comparison.
    fn compare(
        &self,
        figure: &Figure,
        pair: &Pair,
        sides: &Sides<'_>,
        difference: Option<Difference>,
        out: &mut Judgement,
    ) {
        out.speedup = difference.and_then(|found| found.speedup);
        out.interval = difference.and_then(|found| found.interval);
        out.constant = sides.is_constant() && difference.is_some_and(|it| it.ratio.is_some());
        out.assumed = sides.is_assumed();
        out.p = sides.p();
        // A figure is in one family at most, and only its p is corrected.
        if figure.why_not_testable().is_some() {
            out.verdict = Some(Verdict::NotTestable);
        } else if figure.judged == Judged::Yes {
            out.p_holm = self.judged.get(pair).copied();
            if let Some(found) = difference {
                self.decide(figure, sides, &found, out);
            }
        } else if is_compared_today(figure) {
            out.p_holm = self.today.get(pair).copied();
        }
    }

    /// Sets the verdict on a judged direction, and its sweep. One run of something that varies
    /// decides nothing.
    fn decide(
        &self,
        figure: &Figure,
        sides: &Sides<'_>,
        difference: &Difference,
        out: &mut Judgement,
    ) {
        let of_several = out.constant || out.n >= 2;
        let own = Member::itself(sides, difference).filter(|_| of_several);
        let (Some(published), Some(own)) = (figure.published, own) else {
            return;
        };
        if sides.is_timed() {
            let sittings = sides.sittings();
            out.once = sittings.is_empty();
            let numbers = sittings.iter().filter_map(|sitting| {
                let member = Member::itself(sitting, &sitting.difference()?)?;
                Some(member.number())
            });
            let sittings = Swept::Sittings(numbers.collect());
            let found = verdict::of(published, own.number(), &sittings);
            out.verdict = found.map(|(verdict, _)| verdict);
        } else {
            self.set_verdict(figure, published, &own, out);
        }
    }

    fn set_verdict(
        &self,
        figure: &Figure,
        published: Published,
        own: &Member,
        out: &mut Judgement,
    ) {
        let swept = self.sweep(figure, own, out);
        if let Some((verdict, itself)) = verdict::of(published, own.number(), &swept) {
            (out.verdict, out.by_itself) = (Some(verdict), itself);
        }
    }

    /// Sets sweep and verdict of a claim about a value; does nothing to other figures.
    fn check_claim(&self, figure: &Figure, of: &Samples<'_>, out: &mut Judgement) {
        let claim = figure.published.filter(|_| figure.least().is_some());
        let (Some(published), Some(own)) = (claim, Member::itself_alone(of)) else {
            return;
        };
        out.constant = of.is_constant();
        out.assumed = of.kind == Method::Replayed;
        if figure.why_not_testable().is_some() {
            out.verdict = Some(Verdict::NotTestable);
        } else if figure.judged == Judged::Contradicted {
            out.verdict = Some(Verdict::Contradicted);
        } else if figure.judged == Judged::Yes && (out.constant || out.n > 1) {
            self.set_verdict(figure, published, &own, out);
        }
    }

    /// Sets the sweep of a figure that is itself `own`; returns the ranges of its other members.
    fn sweep(&self, figure: &Figure, own: &Member, out: &mut Judgement) -> Swept {
        if figure.swept.is_empty() && !out.assumed {
            return Swept::NotNeeded;
        }
        let Some((sweep, others)) = Sweep::of(own, figure, self.data) else {
            return Swept::Lacking;
        };
        out.sweep = Some(sweep);
        Swept::Over(others.iter().map(Member::number).collect())
    }

    /// Returns both sides of a figure that has two.
    fn sides(&self, figure: &Figure) -> Option<Sides<'d>> {
        Sides::of_keys(self.data, figure.of.first()?, figure.against.first()?)
    }

    /// Returns the smallest of the speedups of a figure, with the rows of that one. The smallest of
    /// what they truly are is between the smallest low and the smallest high end of all intervals;
    /// it is judged only if no pair is missing, and is in no family of tests.
    fn worst(&self, figure: &Figure) -> Option<Judgement> {
        let pairs = figure.of.iter().zip(&figure.against);
        let pairs = pairs.filter_map(|(of, against)| {
            let sides = Sides::of_keys(self.data, of, against)?;
            let difference = sides.difference()?;
            Some((difference.speedup?, difference, sides))
        });
        let pairs: Vec<(f64, Difference, Sides<'_>)> = pairs.collect();
        let (value, difference, sides) = pairs
            .iter()
            .min_by(|one, other| one.0.total_cmp(&other.0))?;
        let mut judgement = alone(figure.statistic, *value, &sides.of);
        judgement.rows.extend(&sides.against.rows);
        judgement.speedup = Some(*value);
        judgement.interval = difference.interval;
        let ranges = pairs.iter().map(|(_, difference, _)| difference.range());
        let range = ranges.reduce(|one, other| {
            let (one, other) = (one?, other?);
            Some(Interval {
                low: one.low.min(other.low),
                high: one.high.min(other.high),
            })
        });
        if figure.judged == Judged::Yes && pairs.len() == figure.of.len() {
            let number = Number {
                value: *value,
                range: range.flatten(),
            };
            let verdict = verdict::of(figure.published?, number, &Swept::NotNeeded);
            judgement.verdict = verdict.map(|(verdict, _)| verdict);
        }
        Some(judgement)
    }

    /// Returns the geometric mean over those keys for which both sides have rows; none if one of
    /// them has no ratio.
    fn gmean(&self, figure: &Figure) -> Option<Judgement> {
        let pairs = figure.of.iter().zip(&figure.against);
        let there = pairs.filter_map(|(of, against)| Sides::of_keys(self.data, of, against));
        let there: Vec<Sides<'_>> = there.collect();
        let value = gmean::of(&there)?;
        let rows = there.iter().flat_map(|sides| {
            let (of, against) = (&sides.of.rows, &sides.against.rows);
            of.iter().chain(against).copied()
        });
        let mut judgement = Judgement::alone(value, "times", rows.collect(), there.len());
        judgement.speedup = Some(value);
        judgement.constant = there.iter().all(Sides::is_constant);
        judgement.assumed = there.iter().any(Sides::is_assumed);
        if !judgement.constant {
            judgement.interval = gmean::interval(&there);
        }
        Some(judgement)
    }
}

/// Returns the judgement of one side by itself.
fn alone(statistic: Statistic, value: f64, of: &Samples<'_>) -> Judgement {
    let unit = match statistic {
        Statistic::Speedup | Statistic::GmeanSpeedup | Statistic::WorstSpeedup => "times",
        statistic if statistic.is_percent() => "%",
        _ => of.unit,
    };
    Judgement::alone(value, unit, of.rows.clone(), of.values.len())
}

/// Returns true if the p of a figure in a table of today is corrected.
fn is_compared_today(figure: &Figure) -> bool {
    figure.judged == Judged::No
        && !figure.against.is_empty()
        && matches!(figure.statistic, Statistic::Gain | Statistic::Speedup)
}
