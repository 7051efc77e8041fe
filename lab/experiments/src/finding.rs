//! Findings as sentences.

use brickyard_results::judge::mean;

use crate::directions::{Directions, Judged};
use crate::document::{Document, Figure, Finding, Piece, Statistic};
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
