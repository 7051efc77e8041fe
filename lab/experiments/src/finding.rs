//! Findings as sentences.

use brickyard_results::Interval;
use brickyard_results::judge::mean;

use crate::directions::{Directions, Judged};
use crate::document::{Document, Figure, Finding, Piece, Statistic, Word};
use crate::judge::{Judgement, NONE};
use crate::numbers::shown;

impl Finding {
    /// Returns the sentence, for a terminal; none if one of its figures cannot be computed.
    #[must_use]
    pub fn plain(&self, judged: Judged<'_>, document: &Document) -> Option<String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Figure(figure) => Some(shown(figure, &judged(figure)?)),
            Piece::PrintedMean(figures, decimals) => printed_mean(figures, *decimals, judged),
            Piece::Word(word) => Some(word.chosen(&judged(&word.figure)?, judged)),
            Piece::Range(figures) => Some(range(figures, judged)),
            Piece::Directions(outcome, among) => {
                let counts = Directions::of(judged, document, *among);
                (counts.all() > 0).then(|| counts.count(*outcome).to_string())
            }
        });
        let sentence: Option<String> = pieces.collect();
        Some(sentence? + &self.incomplete(judged))
    }

    /// Returns the note after the sentence if its geometric means lack some of their keys, as in a
    /// quick or an interrupted run; else nothing.
    pub(crate) fn incomplete(&self, judged: Judged<'_>) -> String {
        let mut parts: Vec<String> = Vec::new();
        for piece in &self.pieces {
            if let Piece::Figure(figure) = piece
                && figure.statistic == Statistic::GmeanSpeedup
                && let Some(judgement) = judged(figure)
                && judgement.n < figure.of.len()
            {
                let part = format!("{} of {}", judgement.n, figure.of.len());
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
        }
        if parts.is_empty() {
            return String::new();
        }
        format!(
            " (A full run has more: here means are over {}.)",
            parts.join(" and ")
        )
    }
}

/// How far from 1 a speedup must be for words to call it a difference, if its samples do not show
/// how much it varies (one run of a method that varies, or of an assumed machine).
const UNKNOWN_SPREAD: f64 = 0.1;

impl Word {
    /// Returns the word for the judgement of its figure, if no other assumption chooses another one.
    #[must_use]
    pub fn chosen(&self, found: &Judgement, judged: Judged<'_>) -> String {
        let own = self.by_itself(found);
        let others = self.swept.iter().filter_map(judged);
        let mut others = others.map(|other| self.of_value(other.value, self.margin));
        match others.any(|other| !own.starts_with(other)) {
            true => "depends on an assumption".to_owned(),
            false => own,
        }
    }

    /// Returns the word for a number, with the distance from 1 that counts as no difference.
    fn of_value(&self, value: f64, margin: f64) -> &'static str {
        if value > 1.0 + margin {
            self.above
        } else if value < 1.0 - margin {
            self.below
        } else {
            self.between
        }
    }

    /// Returns the word without other assumptions. A speedup whose interval contains 1 shows no
    /// difference; nor does one whose samples do not show how much it varies, unless it is large. If
    /// there may be a difference all the same, the words say so.
    fn by_itself(&self, found: &Judgement) -> String {
        let (margin, is_sure) = match found.interval {
            Some(found) if !found.ends.is_outside(Interval::point(1.0)) => {
                let none = Interval {
                    low: 1.0 - NONE,
                    high: 1.0 + NONE,
                };
                (f64::INFINITY, found.ends.is_within(none))
            }
            None if !found.constant || found.assumed => (self.margin.max(UNKNOWN_SPREAD), false),
            _ => (self.margin, true),
        };
        match self.of_value(found.value, margin) {
            word if is_sure || word != self.between => word.to_owned(),
            between => format!("{between} (as far as this run can tell)"),
        }
    }
}

/// What follows the ends of a range, and what stands in its place if this run lacks one.
pub(crate) const OVER_ALL: &str = " over the assumptions that were varied";
pub(crate) const NOT_VARIED: &str = "assumptions not varied in this run";

/// Returns those of these figures with the lowest and the highest number; none if one is missing.
pub(crate) fn ends<'f>(
    figures: &'f [Figure],
    judged: Judged<'_>,
) -> Option<[(&'f Figure, Judgement); 2]> {
    let found = figures.iter().map(|figure| Some((figure, judged(figure)?)));
    let mut found: Vec<(&Figure, Judgement)> = found.collect::<Option<_>>()?;
    found.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    Some([found.first()?.clone(), found.pop()?])
}

fn range(figures: &[Figure], judged: Judged<'_>) -> String {
    match ends(figures, judged) {
        Some(ends) => {
            let [low, high] = ends.map(|(figure, judgement)| shown(figure, &judgement));
            format!("{low} to {high}{OVER_ALL}")
        }
        None => NOT_VARIED.to_owned(),
    }
}

/// Returns the geometric mean of the published speedups of those figures that were measured; none
/// if none was.
pub(crate) fn printed_mean(
    figures: &[Figure],
    decimals: usize,
    judged: Judged<'_>,
) -> Option<String> {
    let measured = figures.iter().filter(|figure| judged(figure).is_some());
    let logarithms = measured.filter_map(|figure| Some(figure.published?.speedup?.ln()));
    let mean = mean(&logarithms.collect::<Vec<f64>>())?.exp();
    Some(format!("{mean:.decimals$}"))
}
