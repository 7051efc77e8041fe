//! What is measured, as it is kept: one value a row, with all that says what it is.
//!
//! Everything that a report shows is computed from such rows, and can be followed back to them.
//! Nothing that is made of several rows is stored. (What one turn measures by difference, as the
//! part of zeroing in an allocation, is a row: no other has its two sides.)

use core::fmt;
use core::str::FromStr;

use brickyard_report::{Better, Host};
use serde::{Deserialize, Serialize};

/// One measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Raw {
    /// The machine: a simulated profile, a machine of a document that was replayed, or `host`.
    pub machine: String,
    /// What was done there, such as `find cpus-8`.
    pub workload: String,
    /// The allocator, lock policy, or heap.
    pub config: String,
    /// What was counted.
    pub metric: String,
    /// The unit of `value`.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Which run or round, from 1. Rows of one run under two configurations are a pair: the same
    /// seed, or the same round.
    pub run: u32,
    /// Where along a series, in seconds of the machine; none for a value that stands for itself.
    /// Several rows of a cell at one place are a step, in their order.
    pub at: Option<f64>,
    /// The value.
    pub value: f64,
}

/// How the rows of a cell came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By the simulated multiprocessor: the same on every host, by the same build of the program.
    Simulated,
    /// By a replayed trace, in which nothing is timed: the same on every host, by the same build of
    /// the program.
    Replayed,
    /// By the host's clock: different on every host, and noisy.
    Timed,
}

impl Method {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Simulated, Self::Replayed, Self::Timed];

    /// As files and tables call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Replayed => "replayed",
            Self::Timed => "timed",
        }
    }

    /// Does the same cell with the same seed, run by the same build of the program, give the same
    /// rows everywhere?
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Timed)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no such kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a kind of cell is one of simulated, replayed, timed")]
pub struct UnknownKind;

impl FromStr for Method {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == name).ok_or(UnknownKind)
    }
}

/// What one cell gave: the smallest piece of an experiment that is run by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellRows {
    /// The cell, such as `locks.metatm-2007.find-8.hold.1`. Its first word is the experiment.
    pub cell: String,
    /// How it came about.
    pub kind: Method,
    /// The seed that all chance of the run came from: that of the first run of the experiment.
    pub seed: u64,
    /// Where it was run; [`Host::unknown`] where nobody knows, as of rows from a file that does not
    /// say it.
    pub host: Host,
    /// Which build of the program ran it, in its own words; empty where nobody knows. Two builds
    /// may give other rows for the same cell.
    pub program: String,
    /// What it gave.
    pub rows: Vec<Raw>,
}

impl CellRows {
    /// The experiment that the cell belongs to.
    #[must_use]
    pub fn experiment(&self) -> &str {
        experiment_of(&self.cell)
    }
}

/// The experiment that a cell of this name belongs to: all before the first dot.
#[must_use]
pub fn experiment_of(cell: &str) -> &str {
    cell.split_once('.')
        .map_or(cell, |(experiment, _)| experiment)
}
