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
            Piece::Word(word) => Some(word.chosen(&judged(&word.figure)?)),
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
    /// Returns the word for the judgement of its figure. A speedup whose interval contains 1 shows
    /// no difference; nor does one whose samples do not show how much it varies, unless it is
    /// large. If there may be a difference all the same, the words say so.
    #[must_use]
    pub fn chosen(&self, found: &Judgement) -> String {
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
        if found.value > 1.0 + margin {
            self.above.to_owned()
        } else if found.value < 1.0 - margin {
            self.below.to_owned()
        } else if is_sure {
            self.between.to_owned()
        } else {
            format!("{} (as far as this run can tell)", self.between)
        }
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
