//! What can come out for a direction, and which outcomes a sentence counts.

/// How a measured direction compares with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The same direction, and a size within [`SIZE`](crate::judge::SIZE).
    Same,
    /// The same direction, but a smaller or a larger difference than that.
    DirectionOnly,
    /// The opposite direction.
    Opposite,
    /// No difference, or one so small that the published one is excluded.
    NoEffect,
    /// The samples cannot decide.
    Undecided,
    /// Some members of the sweep have another direction, or none.
    Depends,
    /// It hangs on assumptions that this run did not vary.
    NotSwept,
    /// No difference was published, and there is none.
    NoDifference,
    /// No difference was published, and there is one.
    OnlyHere,
    /// No difference was published, and the samples cannot decide whether there is one.
    Unclear,
    /// What would cause the published difference is not modelled.
    NotTestable,
    /// A claim that the document's own figure does not fulfil.
    Contradicted,
}

impl Verdict {
    /// All of them, in their order: seven for published directions, three for figures without one,
    /// [`NotTestable`](Self::NotTestable), and [`Contradicted`](Self::Contradicted).
    pub const ALL: [Self; 12] = [
        Self::Same,
        Self::DirectionOnly,
        Self::Opposite,
        Self::NoEffect,
        Self::Undecided,
        Self::Depends,
        Self::NotSwept,
        Self::NoDifference,
        Self::OnlyHere,
        Self::Unclear,
        Self::NotTestable,
        Self::Contradicted,
    ];

    /// Returns true if it is one on a published direction, not on a figure without one.
    #[must_use]
    pub const fn is_of_direction(self) -> bool {
        (self as usize) < Self::NoDifference as usize
    }

    /// Returns its name in pages and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::DirectionOnly => "direction only",
            Self::Opposite => "opposite",
            Self::NoEffect => "no effect",
            Self::Undecided => "undecided",
            Self::Depends => "depends on an assumption",
            Self::NotSwept => "assumption not varied",
            Self::NoDifference => "no difference in either",
            Self::OnlyHere => "a difference here alone",
            Self::Unclear => "none published, unclear here",
            Self::NotTestable => "not testable",
            Self::Contradicted => "contradicted by its own table",
        }
    }
}

/// The outcome of a direction, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Any outcome: all that were measured.
    Any,
    /// This verdict.
    Is(Verdict),
    /// The direction of the document, whatever the size.
    SameDirection,
    /// The samples cannot decide, or it depends on an assumption, or on one that was not varied.
    Undecided,
    /// The direction of the document, significant after the correction for many comparisons.
    SameCorrected,
    /// The opposite direction, significant after that correction.
    OppositeCorrected,
}

/// Which directions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// All that are judged.
    All,
    /// Those that the document calls significant by its own test.
    Significant,
}
