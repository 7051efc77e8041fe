//! What can be explored: a system that cases are run on, and how a run fails.

use core::fmt;

use brickyard_machine::Failure;

use super::covered::Covered;
use super::{Case, Log};

/// A system that tasks of a simulated machine use, and that must be correct in every schedule.
pub trait System: Sync {
    /// Runs `case` from beginning to end, and records in `log` what is done.
    ///
    /// # Errors
    /// [`Fault`] where the run fails. The same case fails in the same way each time.
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault>;
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The run did not complete.
    Run(Failure),
    /// The run completed, but its final state is wrong.
    After(String),
}

impl Fault {
    /// Whether both are faults of the same kind.
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
            Self::After(what) => write!(f, "after all tasks had ended: {what}"),
        }
    }
}

impl core::error::Error for Fault {}
