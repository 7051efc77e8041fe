//! Sentences with computed figures in them, and how many directions of a document came out.

use core::fmt::Write as _;

use super::Report;
use super::figure::{self, shown};
use super::markup::Prose;
use crate::document::{Among, Document, Finding, Outcome, Piece};
use crate::judge::Verdict;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Whole,
    Brief,
}

/// How many directions came out in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Directions {
    pub(super) same: usize,
    pub(super) opposite: usize,
    pub(super) noise: usize,
}

impl Directions {
    /// Those of a document.
    pub(super) fn of(report: &Report<'_>, document: &Document, among: Among) -> Self {
        let mut counts = Self::default();
        for figure in document.directions(among) {
            let judgement = (report.judged)(figure);
            match judgement.and_then(|judgement| judgement.verdict) {
                Some(Verdict::Same) => counts.same += 1,
                Some(Verdict::Opposite) => counts.opposite += 1,
                Some(Verdict::WithinNoise) => counts.noise += 1,
                None => {}
            }
        }
        counts
    }

    /// All that were judged.
    pub(super) const fn all(self) -> usize {
        self.same + self.opposite + self.noise
    }

    /// Together with others.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            opposite: self.opposite + other.opposite,
            noise: self.noise + other.noise,
        }
    }

    const fn count(self, outcome: Outcome) -> usize {
        match outcome {
            Outcome::Any => self.all(),
            Outcome::Same => self.same,
            Outcome::Opposite => self.opposite,
            Outcome::WithinNoise => self.noise,
        }
    }

    /// The three counts with their marks; in brief the words are for screen readers only.
    pub(super) fn write(self, length: Length, out: &mut String) {
        let class_of_words = match length {
            Length::Whole => "",
            Length::Brief => " class=\"unseen\"",
        };
        out.push_str("<ul class=\"counts\">");
        for (count, verdict, words) in [
            (self.same, Verdict::Same, "same"),
            (self.opposite, Verdict::Opposite, "opposite"),
            (self.noise, Verdict::WithinNoise, "within noise"),
        ] {
            let (sign, class) = figure::sign(verdict);
            let _ = write!(
                out,
                "<li class=\"verdict {class}\"><span aria-hidden=\"true\">{sign}</span> <b>{count}</b><span{class_of_words}> {words}</span></li>"
            );
        }
        out.push_str("</ul>");
    }
}

/// A finding as HTML. None if one of its figures cannot be computed.
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
                let chosen = word.chosen(judgement.value);
                figure::write_word(&word.figure, &judgement, chosen, &mut out);
            }
            Piece::Directions(outcome, among) => {
                let counts = Directions::of(report, document, *among);
                if counts.all() == 0 {
                    return None;
                }
                let _ = write!(out, "{}", counts.count(*outcome));
            }
        }
    }
    Some(out)
}
