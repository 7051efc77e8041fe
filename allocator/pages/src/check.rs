//! What `check` reports: the first invariant that does not hold, and where.

use core::error::Error;
use core::fmt;

use crate::Frame;

/// An invariant that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, by the name that the file which owns it defines it by.
    pub invariant: &'static str,
    /// What was found.
    pub found: &'static str,
    /// A frame that shows it, where there is one.
    pub frame: Option<Frame>,
    /// The number that was expected, and the one found, where it is about numbers.
    pub numbers: Option<(usize, usize)>,
}

impl Violation {
    /// It does not hold at this frame.
    #[must_use]
    pub const fn at(invariant: &'static str, found: &'static str, frame: Frame) -> Self {
        Self {
            invariant,
            found,
            frame: Some(frame),
            numbers: None,
        }
    }

    /// An error unless the two are equal.
    ///
    /// # Errors
    /// That one, with both numbers.
    pub fn unless_equal(
        invariant: &'static str,
        found: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), Self> {
        if expected == actual {
            return Ok(());
        }
        Err(Self {
            invariant,
            found,
            frame: None,
            numbers: Some((expected, actual)),
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.found)?;
        if let Some(frame) = self.frame {
            write!(f, " at frame {frame}")?;
        }
        if let Some((expected, actual)) = self.numbers {
            write!(f, " (expected {expected}, found {actual})")?;
        }
        Ok(())
    }
}

impl Error for Violation {}
