//! What `check` reports: the first invariant that does not hold, and where.

use core::error::Error;
use core::fmt;

use crate::Frame;

/// An invariant that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name, as defined in the file that keeps the invariant.
    pub invariant: &'static str,
    /// What was found.
    pub found: &'static str,
    /// A frame that shows it, if there is one.
    pub frame: Option<Frame>,
    /// The expected number and the number found, if the invariant is about numbers.
    pub numbers: Option<(usize, usize)>,
}

impl Violation {
    /// Reports that the invariant does not hold at this frame.
    #[must_use]
    pub const fn at(invariant: &'static str, found: &'static str, frame: Frame) -> Self {
        Self {
            invariant,
            found,
            frame: Some(frame),
            numbers: None,
        }
    }

    /// Returns an error unless the two numbers are equal.
    ///
    /// # Errors
    /// The violation, with both numbers.
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
