//! The checks of a cache, as a set, and the letters that name its members.

use core::fmt;

/// A set of checks of a cache, beyond those that cost nothing. The [module](super) says what each
/// member finds and costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checks(u32);

impl Checks {
    /// No check.
    pub const NONE: Self = Self(0);
    /// Every free is checked before it is done: foreign objects, addresses between objects, double
    /// frees. All other checks include this.
    pub const FREES: Self = Self(1);
    /// Bytes before and behind each object are painted and checked.
    pub const RED_ZONES: Self = Self(1 << 1);
    /// Free objects are painted, and checked when they are handed out again. Objects with a
    /// constructor are not, since their state has to last.
    pub const POISON: Self = Self(1 << 2);
    /// Records who allocated and who freed each object last.
    pub const TRACK: Self = Self(1 << 3);
    /// All of them.
    pub const ALL: Self = Self(0b1111);

    /// Each member, and the letter that names it in a [`RuleText`](super::RuleText), as in Linux's
    /// `slub_debug`.
    pub(crate) const LETTERS: [(char, Self); 4] = [
        ('F', Self::FREES),
        ('Z', Self::RED_ZONES),
        ('P', Self::POISON),
        ('U', Self::TRACK),
    ];

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if it has all of `other`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Printed as letters, `-` for none: what [`RuleText`](super::RuleText) reads.
impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.is_empty() {
            return f.write_char('-');
        }
        for (letter, check) in Self::LETTERS {
            if self.has(check) {
                f.write_char(letter)?;
            }
        }
        Ok(())
    }
}
