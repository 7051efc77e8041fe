//! Sentences with computed figures in them, and the counts of a document's directions.

use core::fmt::Write as _;

use super::Report;
use super::figure;
use super::markup::Prose;
use crate::directions::Directions;
use crate::document::{Document, Finding, Piece};
use crate::judge::Verdict;
use crate::shown::shown;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Whole,
    Brief,
}

/// Writes the counts with their marks; in brief form the words are for screen readers only. Those
/// for which no difference was published, and those that cannot be tested, are counted separately,
/// and left out if zero.
pub(super) fn write_counts(counts: Directions, length: Length, out: &mut String) {
    let class_of_words = match length {
        Length::Whole => "",
        Length::Brief => " class=\"unseen\"",
    };
    out.push_str("<ul class=\"counts\">");
    let all = [
        (counts.same, Verdict::Same, Some(counts.same_corrected)),
        (
            counts.opposite,
            Verdict::Opposite,
            Some(counts.opposite_corrected),
        ),
        (counts.noise, Verdict::WithinNoise, None),
        (counts.none, Verdict::NoDifference, None),
        (counts.only_here, Verdict::OnlyHere, None),
        (counts.unclear, Verdict::Unclear, None),
        (counts.not_testable, Verdict::NotTestable, None),
    ];
    for (count, verdict, left) in all {
        let is_apart = matches!(
            verdict,
            Verdict::NoDifference | Verdict::OnlyHere | Verdict::Unclear | Verdict::NotTestable
        );
        if is_apart && count == 0 {
            continue;
        }
        let (sign, class) = figure::sign(verdict);
        let _ = write!(
            out,
            "<li class=\"verdict {class}\"><span aria-hidden=\"true\">{sign}</span> <b>{count}</b><span{class_of_words}> {}",
            verdict.name()
        );
        // Those that remain significant after correction for the number of comparisons.
        if let (Length::Whole, Some(left), 1..) = (length, left, count) {
            let _ = write!(out, " (corrected: {left})");
        }
        out.push_str("</span></li>");
    }
    out.push_str("</ul>");
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
            Piece::Word(word) => {
                let judgement = (report.judged)(&word.figure)?;
                let chosen = word.chosen(&judgement);
                figure::write_word(&word.figure, &judgement, &chosen, &mut out);
            }
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
