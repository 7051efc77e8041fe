//! What is explored: something that a case can be run on, and how that ends.

use core::fmt;

use brickyard_machine::Failure;

use super::covered::Covered;
use super::{Case, Log};

/// Something that tasks of a simulated machine use, and that must stand every schedule.
pub trait System: Sync {
    /// Runs `case` from beginning to end, and notes in `log` what is done.
    ///
    /// # Errors
    /// What went wrong. The same case goes wrong in the same way each time.
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault>;
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The run did not come to its end.
    Run(Failure),
    /// It did, and left something behind that is not right.
    After(String),
}

impl Fault {
    /// Is it of the same kind?
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Run(a), Self::Run(b)) => {
                core::mem::discriminant(a) == core::mem::discriminant(b)
            }
            (Self::After(_), Self::After(_)) => true,
            _ => false,
        }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Run(failure)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(failure) => failure.fmt(f),
            Self::After(what) => write!(f, "after all had ended: {what}"),
        }
    }
}

impl core::error::Error for Fault {}
