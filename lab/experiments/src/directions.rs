//! Counts of a document's directions by how they compare with the measured ones.

use crate::document::{Among, Document, Figure, Outcome, Verdict};
use crate::judge::Judgement;

/// Returns the judgement of a figure; none if its rows are missing.
pub type Judged<'j> = &'j dyn Fn(&Figure) -> Option<Judgement>;

/// How many directions had each verdict, and how many of these remain after the correction for many
/// comparisons: p is below 5 % after it, or there is nothing to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directions {
    counts: [usize; Verdict::ALL.len()],
    corrected: [usize; Verdict::ALL.len()],
    // Those timed in one sitting.
    once: usize,
}

impl Directions {
    /// Counts those of a document that could be judged.
    #[must_use]
    pub fn of(judged: Judged<'_>, document: &Document, among: Among) -> Self {
        let mut counts = Self::default();
        let directions = document.directions(among);
        for judgement in directions.filter_map(judged) {
            if let Some(verdict) = judgement.verdict {
                counts.counts[verdict as usize] += 1;
                counts.corrected[verdict as usize] += usize::from(judgement.remains());
                counts.once += usize::from(judgement.once && verdict.is_of_direction());
            }
        }
        counts
    }

    /// Returns the number of those with this verdict.
    #[must_use]
    pub const fn number(self, verdict: Verdict) -> usize {
        self.counts[verdict as usize]
    }

    fn sum(self, of: impl Fn(Verdict) -> bool) -> usize {
        let counted = Verdict::ALL.into_iter().filter(|&verdict| of(verdict));
        counted.map(|verdict| self.number(verdict)).sum()
    }

    /// Returns the number of all that were judged and had a direction to compare.
    #[must_use]
    pub fn all(self) -> usize {
        self.sum(Verdict::is_of_direction)
    }

    /// Returns the number of all that are not counted among the directions.
    #[must_use]
    pub fn beside(self) -> usize {
        self.sum(|verdict| !verdict.is_of_direction())
    }

    /// Returns the number of all for which no difference was published.
    #[must_use]
    pub const fn none_published(self) -> usize {
        self.number(Verdict::NoDifference)
            + self.number(Verdict::OnlyHere)
            + self.number(Verdict::Unclear)
    }

    /// Returns whether the document's claims came out, in a word; none if nothing was judged.
    ///
    /// [`ANSWER_RULE`] is the rule.
    #[must_use]
    pub fn answer(self) -> Option<Answer> {
        let all = self.all();
        let came_out = self.count(Outcome::SameDirection);
        let did_not = self.number(Verdict::Opposite) + self.number(Verdict::NoEffect);
        if all == 0 {
            return (self.number(Verdict::NotTestable) > 0).then_some(Answer::NotTestable);
        }
        Some(if 4 * came_out >= 3 * all && came_out > 1 {
            Answer::Yes
        } else if 4 * did_not >= 3 * all {
            Answer::No
        } else if came_out == 0 || all == 1 || 2 * self.count(Outcome::Undecided) > all {
            Answer::Undecided
        } else {
            Answer::Partly
        })
    }

    /// Returns why the answer is "undecided", if it is, in a sentence.
    #[must_use]
    pub fn why_undecided(self) -> Option<&'static str> {
        if self.answer() != Some(Answer::Undecided) {
            return None;
        }
        let [not_swept, depends, undecided] =
            [Verdict::NotSwept, Verdict::Depends, Verdict::Undecided].map(|it| self.number(it));
        Some(if self.once > 0 {
            "It was timed in one sitting, and a direction counts only if two agree: a full run has both."
        } else if not_swept > 0 {
            "Its assumptions were not varied in this run: a full run does that."
        } else if depends > undecided {
            "Most of it hangs on what the document does not say."
        } else if undecided > 0 {
            "Its samples vary more than what was published."
        } else {
            "A single direction is no answer."
        })
    }

    /// Returns the sum of these counts and others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for verdict in Verdict::ALL.map(|verdict| verdict as usize) {
            self.counts[verdict] += other.counts[verdict];
            self.corrected[verdict] += other.corrected[verdict];
        }
        self.once += other.once;
        self
    }

    /// Returns the number of those with this outcome.
    #[must_use]
    pub fn count(self, outcome: Outcome) -> usize {
        let corrected = |verdict| self.corrected[verdict as usize];
        match outcome {
            Outcome::Any => self.all(),
            Outcome::Is(verdict) => self.number(verdict),
            Outcome::SameDirection => {
                self.number(Verdict::Same) + self.number(Verdict::DirectionOnly)
            }
            Outcome::Undecided => self.sum(|verdict| {
                matches!(
                    verdict,
                    Verdict::Undecided | Verdict::Depends | Verdict::NotSwept
                )
            }),
            Outcome::SameCorrected => corrected(Verdict::Same) + corrected(Verdict::DirectionOnly),
            Outcome::OppositeCorrected => corrected(Verdict::Opposite),
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
    /// None is the same, one alone was judged, or most are undecided or depend on assumptions.
    Undecided,
    /// None can be tested.
    NotTestable,
}

/// The rule of [`Directions::answer`], as it is printed in the report.
pub const ANSWER_RULE: &str = "\"Yes\": at least three quarters of the document's directions that were judged, and at least two, are the same here, whatever their size. \"No\": at least three quarters are opposite or have no effect. \"Undecided\": none is the same, or only one was judged, or more than half are undecided or depend on assumptions. \"Partly\": all else.";

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

    /// Counts of the first verdicts, in their order.
    fn of<const N: usize>(counts: [usize; N]) -> Directions {
        let mut all = Directions::default();
        all.counts[..N].copy_from_slice(&counts);
        all
    }

    #[test]
    fn the_answer_follows_from_the_counts() {
        for (counts, expected) in [
            // Same, direction only, opposite, no effect, undecided, depends, not varied.
            (of([]), None),
            (of([0, 0, 0, 0, 0, 0, 0, 3]), None),
            (
                of([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                Some(Answer::NotTestable),
            ),
            (of([2, 1, 1, 0, 0, 0, 0]), Some(Answer::Yes)),
            (of([2, 1, 1, 1, 0, 0, 0]), Some(Answer::Partly)),
            (of([2, 1, 1, 0, 1, 0, 0]), Some(Answer::Partly)),
            (of([1, 0, 1, 2, 0, 0, 0]), Some(Answer::No)),
            (of([1, 1, 1, 2, 0, 0, 0]), Some(Answer::Partly)),
            (of([0, 0, 0, 4, 0, 0, 0]), Some(Answer::No)),
            (of([0, 0, 0, 0, 4, 0, 0]), Some(Answer::Undecided)),
            (of([0, 0, 0, 0, 0, 2, 2]), Some(Answer::Undecided)),
            (of([1, 0, 0, 0, 0, 1, 0]), Some(Answer::Partly)),
            (of([1, 0, 0, 0, 1, 1, 0]), Some(Answer::Undecided)),
            (of([0, 0, 0, 1, 1, 0, 0]), Some(Answer::Undecided)),
            // A single direction is no yes.
            (of([1, 0, 0, 0, 0, 0, 0]), Some(Answer::Undecided)),
            (of([0, 1, 0, 0, 0, 0, 0]), Some(Answer::Undecided)),
            (of([1, 1, 0, 0, 0, 0, 0]), Some(Answer::Yes)),
            (of([0, 0, 1, 0, 0, 0, 0]), Some(Answer::No)),
        ] {
            assert_eq!(counts.answer(), expected, "{counts:?}");
        }
    }

    #[test]
    fn an_undecided_answer_has_its_reason() {
        for (counts, why) in [
            (of([2, 1, 1]), None),
            (of([1]), Some("single direction")),
            (of([1, 0, 0, 0, 1, 1]), Some("vary more")),
            (of([1, 0, 0, 0, 1, 2]), Some("does not say")),
            (of([1, 0, 0, 0, 1, 2, 3]), Some("not varied")),
            (
                Directions {
                    once: 1,
                    ..of([0, 0, 0, 0, 2])
                },
                Some("one sitting"),
            ),
        ] {
            let found = counts.why_undecided();
            assert_eq!(found.is_some(), why.is_some(), "{counts:?}");
            assert!(found.is_none_or(|found| found.contains(why.unwrap_or(""))));
        }
    }

    #[test]
    fn sums_and_counts_leave_nothing_out() {
        let mut one = of([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        one.corrected = [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            (one.all(), one.none_published(), one.beside()),
            (28, 27, 50)
        );
        let two = one.and(one);
        assert_eq!((two.all(), two.beside()), (56, 100));
        for (outcome, count) in [
            (Outcome::Any, 28),
            (Outcome::Is(Verdict::Opposite), 3),
            (Outcome::SameDirection, 3),
            (Outcome::Undecided, 18),
            (Outcome::SameCorrected, 2),
            (Outcome::OppositeCorrected, 2),
        ] {
            assert_eq!(one.count(outcome), count, "{outcome:?}");
            assert_eq!(two.count(outcome), 2 * count, "{outcome:?}");
        }
    }
}
