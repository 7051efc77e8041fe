//! How many directions of a document came out in which way; and a finding in plain words.

use crate::document::{Among, Document, Figure, Finding, Outcome, Piece};
use crate::judge::{Judgement, Verdict};
use crate::page::figure::shown;

/// What a figure came to; none where its rows are not there.
pub type Judged<'j> = &'j dyn Fn(&Figure) -> Option<Judgement>;

/// How many directions came out in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directions {
    /// As the document has it.
    pub same: usize,
    /// The other way.
    pub opposite: usize,
    /// The samples do not tell, or the difference is negligible.
    pub noise: usize,
    /// No difference was published, and there is none. These are no directions, and not among [`all`](Self::all).
    pub none: usize,
}

impl Directions {
    /// Those of a document that could be judged.
    #[must_use]
    pub fn of(judged: Judged<'_>, document: &Document, among: Among) -> Self {
        let mut counts = Self::default();
        for figure in document.directions(among) {
            match judged(figure).and_then(|judgement| judgement.verdict) {
                Some(Verdict::Same) => counts.same += 1,
                Some(Verdict::Opposite) => counts.opposite += 1,
                Some(Verdict::WithinNoise) => counts.noise += 1,
                Some(Verdict::NoDifference) => counts.none += 1,
                None => {}
            }
        }
        counts
    }

    /// All that were judged and had a direction to compare.
    #[must_use]
    pub const fn all(self) -> usize {
        self.same + self.opposite + self.noise
    }

    /// Together with others.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            opposite: self.opposite + other.opposite,
            noise: self.noise + other.noise,
            none: self.none + other.none,
        }
    }

    /// Those that came out so.
    #[must_use]
    pub const fn count(self, outcome: Outcome) -> usize {
        match outcome {
            Outcome::Any => self.all(),
            Outcome::Same => self.same,
            Outcome::Opposite => self.opposite,
            Outcome::WithinNoise => self.noise,
        }
    }
}

impl Finding {
    /// The sentence, for a terminal. None if one of its figures cannot be computed.
    #[must_use]
    pub fn plain(&self, judged: Judged<'_>, document: &Document) -> Option<String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Figure(figure) => Some(shown(figure, &judged(figure)?)),
            Piece::Word(word) => {
                let judgement = judged(&word.figure)?;
                Some(word.chosen(judgement.value, judgement.interval).to_owned())
            }
            Piece::Directions(outcome, among) => {
                let counts = Directions::of(judged, document, *among);
                (counts.all() > 0).then(|| counts.count(*outcome).to_string())
            }
        });
        pieces.collect()
    }
}
