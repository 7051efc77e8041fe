//! A finding in plain words.

use crate::directions::{Directions, Judged};
use crate::document::{Document, Figure, Finding, Piece, Statistic};
use crate::judge::Judgement;
use crate::shown::shown;

impl Finding {
    /// The sentence, for a terminal. None if one of its figures cannot be computed.
    #[must_use]
    pub fn plain(&self, judged: Judged<'_>, document: &Document) -> Option<String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Figure(figure) => {
                let judgement = judged(figure)?;
                Some(shown(figure, &judgement) + &of_how_many(figure, &judgement))
            }
            Piece::Word(word) => Some(word.chosen(&judged(&word.figure)?).to_owned()),
            Piece::Directions(outcome, among) => {
                let counts = Directions::of(judged, document, *among);
                (counts.all() > 0).then(|| counts.count(*outcome).to_string())
            }
        });
        pieces.collect()
    }
}

/// What stands behind a geometric mean in a sentence where not all that it is to be of was run; else nothing.
pub(crate) fn of_how_many(figure: &Figure, judgement: &Judgement) -> String {
    let all = figure.of.len();
    if figure.statistic == Statistic::GmeanSpeedup && judgement.n < all {
        format!(" (over {} of {all})", judgement.n)
    } else {
        String::new()
    }
}
