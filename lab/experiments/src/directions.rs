//! Counts of a document's directions by how they compare with the measured ones.

use crate::document::{Among, Document, Figure, Outcome};
use crate::judge::{Judgement, Verdict};

/// Returns the judgement of a figure; none if its rows are missing.
pub type Judged<'j> = &'j dyn Fn(&Figure) -> Option<Judgement>;

/// How many directions had each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directions {
    /// The direction of the document, and its size.
    pub same: usize,
    /// The direction of the document, and another size.
    pub other_size: usize,
    /// The opposite direction.
    pub opposite: usize,
    /// The samples cannot decide, or the difference is negligible.
    pub noise: usize,
    /// Not the same under all assumptions.
    pub depends: usize,
    /// It hangs on assumptions that were not varied.
    pub not_swept: usize,
    /// No difference was published, and there is none. These and the next two are no directions,
    /// and not counted by [`all`](Self::all).
    pub none: usize,
    /// No difference was published, and there is one.
    pub only_here: usize,
    /// No difference was published, and the samples cannot decide.
    pub unclear: usize,
    /// What would cause the published difference is not modelled. No directions either.
    pub not_testable: usize,
    /// Claims that the document's own figure does not fulfil. No directions either.
    pub contradicted: usize,
    /// Those of `same` and `other_size` that remain after the correction for many comparisons: p is
    /// below 5 % after it, or there is nothing to test.
    pub same_corrected: usize,
    /// Those of `opposite` that remain after it.
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
            let corrected = usize::from(judgement.remains());
            match judgement.verdict {
                Some(Verdict::Same) => {
                    counts.same += 1;
                    counts.same_corrected += corrected;
                }
                Some(Verdict::OtherSize) => {
                    counts.other_size += 1;
                    counts.same_corrected += corrected;
                }
                Some(Verdict::Opposite) => {
                    counts.opposite += 1;
                    counts.opposite_corrected += corrected;
                }
                Some(Verdict::WithinNoise) => counts.noise += 1,
                Some(Verdict::Depends) => counts.depends += 1,
                Some(Verdict::NotSwept) => counts.not_swept += 1,
                Some(Verdict::NoDifference) => counts.none += 1,
                Some(Verdict::OnlyHere) => counts.only_here += 1,
                Some(Verdict::Unclear) => counts.unclear += 1,
                Some(Verdict::NotTestable) => counts.not_testable += 1,
                Some(Verdict::Contradicted) => counts.contradicted += 1,
                None => {}
            }
        }
        counts
    }

    /// Returns the number of all that were judged and had a direction to compare.
    #[must_use]
    pub const fn all(self) -> usize {
        self.same_direction() + self.opposite + self.noise + self.depends + self.not_swept
    }

    /// Returns the number of those with the direction of the document, whatever their size.
    #[must_use]
    pub const fn same_direction(self) -> usize {
        self.same + self.other_size
    }

    /// Returns whether the document's claims came out, in a word; none if nothing was judged.
    ///
    /// [`ANSWER_RULE`] is the rule.
    #[must_use]
    pub const fn answer(self) -> Option<Answer> {
        let all = self.all();
        let came_out = self.same_direction();
        let did_not = self.opposite + self.noise;
        if all == 0 {
            return if self.not_testable > 0 {
                Some(Answer::NotTestable)
            } else {
                None
            };
        }
        Some(if came_out + self.opposite == 0 {
            Answer::Undecided
        } else if 4 * came_out >= 3 * all {
            Answer::Yes
        } else if 4 * did_not >= 3 * all {
            Answer::No
        } else if 2 * (self.depends + self.not_swept) > all {
            Answer::Undecided
        } else {
            Answer::Partly
        })
    }

    /// Returns the number of all for which no difference was published.
    #[must_use]
    pub const fn none_published(self) -> usize {
        self.none + self.only_here + self.unclear
    }

    /// Returns the number of all that are not counted among the directions.
    #[must_use]
    pub const fn beside(self) -> usize {
        self.none_published() + self.not_testable + self.contradicted
    }

    /// Returns the sum of these counts and others.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            other_size: self.other_size + other.other_size,
            opposite: self.opposite + other.opposite,
            noise: self.noise + other.noise,
            depends: self.depends + other.depends,
            not_swept: self.not_swept + other.not_swept,
            none: self.none + other.none,
            only_here: self.only_here + other.only_here,
            unclear: self.unclear + other.unclear,
            not_testable: self.not_testable + other.not_testable,
            contradicted: self.contradicted + other.contradicted,
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
            Outcome::OtherSize => self.other_size,
            Outcome::SameDirection => self.same_direction(),
            Outcome::Opposite => self.opposite,
            Outcome::WithinNoise => self.noise,
            Outcome::Undecided => self.depends + self.not_swept,
            Outcome::SameCorrected => self.same_corrected,
            Outcome::OppositeCorrected => self.opposite_corrected,
        }
    }
}

/// Whether the claims of a document came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Most of its directions are the same.
    Yes,
    /// Some are, and some are not.
    Partly,
    /// Most are not.
    No,
    /// None is decided, or most depend on assumptions.
    Undecided,
    /// None can be tested.
    NotTestable,
}

/// The rule of [`Directions::answer`], as it is printed in the report.
pub const ANSWER_RULE: &str = "\"Yes\": at least three quarters of the document's directions that were judged are the same here, whatever their size. \"No\": at least three quarters are opposite or within noise, and at least one is the same or opposite. \"Undecided\": none is the same or opposite, or more than half depend on assumptions. \"Partly\": all else.";

impl Answer {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Yes,
        Self::Partly,
        Self::No,
        Self::Undecided,
        Self::NotTestable,
    ];

    /// Returns it as a word or two.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Partly => "partly",
            Self::No => "no",
            Self::Undecided => "undecided",
            Self::NotTestable => "cannot be tested here",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_follows_from_the_counts() {
        let none = Directions::default();
        let of = |same, other_size, opposite, noise, depends, not_swept| Directions {
            same,
            other_size,
            opposite,
            noise,
            depends,
            not_swept,
            ..none
        };
        for (counts, expected) in [
            (none, None),
            (Directions { none: 3, ..none }, None),
            (
                Directions {
                    not_testable: 1,
                    ..none
                },
                Some(Answer::NotTestable),
            ),
            (of(2, 1, 1, 0, 0, 0), Some(Answer::Yes)),
            (of(2, 1, 1, 1, 0, 0), Some(Answer::Partly)),
            (of(1, 0, 1, 2, 0, 0), Some(Answer::No)),
            (of(1, 1, 1, 2, 0, 0), Some(Answer::Partly)),
            (of(0, 0, 0, 4, 0, 0), Some(Answer::Undecided)),
            (of(0, 0, 0, 0, 2, 2), Some(Answer::Undecided)),
            (of(1, 0, 0, 0, 1, 0), Some(Answer::Partly)),
            (of(1, 0, 0, 0, 1, 1), Some(Answer::Undecided)),
            (of(0, 1, 0, 0, 0, 0), Some(Answer::Yes)),
            (of(0, 0, 1, 0, 0, 0), Some(Answer::No)),
        ] {
            assert_eq!(counts.answer(), expected, "{counts:?}");
        }
    }

    #[test]
    fn sums_and_counts_leave_nothing_out() {
        let one = Directions {
            same: 1,
            other_size: 2,
            opposite: 3,
            noise: 4,
            depends: 5,
            not_swept: 6,
            none: 7,
            only_here: 8,
            unclear: 9,
            not_testable: 10,
            same_corrected: 11,
            opposite_corrected: 12,
            contradicted: 13,
        };
        assert_eq!((one.all(), one.none_published()), (21, 24));
        assert_eq!(one.beside(), 24 + 10 + 13);
        let two = one.and(one);
        assert_eq!((two.all(), two.none_published()), (42, 48));
        assert_eq!(
            (two.not_testable, two.same_corrected, two.opposite_corrected),
            (20, 22, 24)
        );
        assert_eq!(two.contradicted, 26);
        for (outcome, count) in [
            (Outcome::Any, 21),
            (Outcome::Same, 1),
            (Outcome::OtherSize, 2),
            (Outcome::SameDirection, 3),
            (Outcome::Opposite, 3),
            (Outcome::WithinNoise, 4),
            (Outcome::Undecided, 11),
            (Outcome::SameCorrected, 11),
            (Outcome::OppositeCorrected, 12),
        ] {
            assert_eq!(one.count(outcome), count, "{outcome:?}");
        }
    }
}
