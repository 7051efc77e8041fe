//! Counts of a document's directions by how they compare with the measured ones.

use crate::document::{Among, Document, Figure, Outcome};
use crate::judge::{Judgement, Verdict};

/// Returns the judgement of a figure; none if its rows are missing.
pub type Judged<'j> = &'j dyn Fn(&Figure) -> Option<Judgement>;

/// How many directions had each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directions {
    /// The direction of the document.
    pub same: usize,
    /// The opposite direction.
    pub opposite: usize,
    /// The samples cannot decide, or the difference is negligible.
    pub noise: usize,
    /// No difference was published, and there is none. These and the next two are no directions,
    /// and not counted by [`all`](Self::all).
    pub none: usize,
    /// No difference was published, and there is one.
    pub only_here: usize,
    /// No difference was published, and the samples cannot decide.
    pub unclear: usize,
    /// What would cause the published difference is not modelled. No directions either.
    pub not_testable: usize,
    /// Those of `same` that remain significant after the correction for many comparisons: p is
    /// below 5 % after it, or the difference is exact.
    pub same_corrected: usize,
    /// Those of `opposite` that remain significant after it.
    pub opposite_corrected: usize,
}

impl Directions {
    /// Counts those of a document that could be judged.
    #[must_use]
    pub fn of(judged: Judged<'_>, document: &Document, among: Among) -> Self {
        let mut counts = Self::default();
        for figure in document.directions(among) {
            let Some(judgement) = judged(figure) else {
                continue;
            };
            let corrected = usize::from(judgement.exact || judgement.is_significant());
            match judgement.verdict {
                Some(Verdict::Same) => {
                    counts.same += 1;
                    counts.same_corrected += corrected;
                }
                Some(Verdict::Opposite) => {
                    counts.opposite += 1;
                    counts.opposite_corrected += corrected;
                }
                Some(Verdict::WithinNoise) => counts.noise += 1,
                Some(Verdict::NoDifference) => counts.none += 1,
                Some(Verdict::OnlyHere) => counts.only_here += 1,
                Some(Verdict::Unclear) => counts.unclear += 1,
                Some(Verdict::NotTestable) => counts.not_testable += 1,
                None => {}
            }
        }
        counts
    }

    /// Returns the number of all that were judged and had a direction to compare.
    #[must_use]
    pub const fn all(self) -> usize {
        self.same + self.opposite + self.noise
    }

    /// Returns the number of all for which no difference was published.
    #[must_use]
    pub const fn none_published(self) -> usize {
        self.none + self.only_here + self.unclear
    }

    /// Returns the sum of these counts and others.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            opposite: self.opposite + other.opposite,
            noise: self.noise + other.noise,
            none: self.none + other.none,
            only_here: self.only_here + other.only_here,
            unclear: self.unclear + other.unclear,
            not_testable: self.not_testable + other.not_testable,
            same_corrected: self.same_corrected + other.same_corrected,
            opposite_corrected: self.opposite_corrected + other.opposite_corrected,
        }
    }

    /// Returns the number of those with this outcome.
    #[must_use]
    pub const fn count(self, outcome: Outcome) -> usize {
        match outcome {
            Outcome::Any => self.all(),
            Outcome::Same => self.same,
            Outcome::Opposite => self.opposite,
            Outcome::WithinNoise => self.noise,
            Outcome::SameCorrected => self.same_corrected,
            Outcome::OppositeCorrected => self.opposite_corrected,
        }
    }
}
