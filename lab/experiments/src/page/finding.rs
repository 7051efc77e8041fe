//! Sentences with computed figures in them, and the counts of a document's directions.

use core::fmt::Write as _;

use super::figure;
use super::markup::Prose;
use super::report::Report;
use crate::directions::Directions;
use crate::document::{Document, Figure, Finding, Outcome, Piece, Verdict};
use crate::finding::{NOT_VARIED, OVER_ALL, ends, printed_mean};
use crate::judge::Judgement;
use crate::numbers::shown;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// The first three verdicts even if there are none of them, and how many remain after the
    /// correction.
    Whole,
    /// Only what there is.
    Brief,
}

/// Writes the counts with their marks. Those for which no difference was published, and those that
/// cannot be tested, are no directions, and come last.
pub(super) fn write_counts(counts: Directions, length: Length, out: &mut String) {
    out.push_str("<ul class=\"counts\">");
    for (place, verdict) in Verdict::ALL.into_iter().enumerate() {
        let count = counts.number(verdict);
        if count == 0 && (length == Length::Brief || place > 3) {
            continue;
        }
        let (sign, class) = figure::sign(verdict);
        let _ = write!(
            out,
            "<li class=\"verdict {class}\"><span aria-hidden=\"true\">{sign}</span> <b>{count}</b> {}</li>",
            verdict.name()
        );
    }
    out.push_str("</ul>");
    if length == Length::Whole
        && counts.count(Outcome::SameDirection) + counts.number(Verdict::Opposite) > 0
    {
        let _ = write!(
            out,
            "<p>After Holm's correction {} of the same direction and {} opposite ones remain.</p>",
            counts.count(Outcome::SameCorrected),
            counts.count(Outcome::OppositeCorrected)
        );
    }
}

/// Returns a finding as HTML; none if one of its figures cannot be computed.
pub(super) fn of(report: &Report<'_>, document: &Document, finding: &Finding) -> Option<String> {
    let mut out = String::new();
    for piece in &finding.pieces {
        match piece {
            Piece::Text(text) => {
                let _ = write!(out, "{}", Prose(text));
            }
            Piece::Figure(figure) => {
                let judgement = (report.judged)(figure)?;
                figure::write_link(figure, &judgement, &shown(figure, &judgement), &mut out);
            }
            Piece::PrintedMean(figures, decimals) => {
                out.push_str(&printed_mean(figures, *decimals, report.judged)?);
            }
            Piece::Word(word) => {
                let judgement = (report.judged)(&word.figure)?;
                let chosen = word.chosen(&judgement, report.judged);
                figure::write_word(&word.figure, &judgement, &chosen, &mut out);
            }
            Piece::Range(figures) => match ends(figures, report.judged) {
                Some([low, high]) => {
                    let write = |(figure, judgement): (&Figure, Judgement), out: &mut String| {
                        figure::write_link(figure, &judgement, &shown(figure, &judgement), out);
                    };
                    write(low, &mut out);
                    out.push_str(" to ");
                    write(high, &mut out);
                    out.push_str(OVER_ALL);
                }
                None => out.push_str(NOT_VARIED),
            },
            Piece::Directions(outcome, among) => {
                let counts = Directions::of(report.judged, document, *among);
                if counts.all() == 0 {
                    return None;
                }
                let _ = write!(out, "{}", counts.count(*outcome));
            }
        }
    }
    out.push_str(&finding.incomplete(report.judged));
    Some(out)
}
