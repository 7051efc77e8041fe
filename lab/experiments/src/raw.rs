//! Measurements as they are stored: one value in each row, with its key.
//!
//! Everything that a report shows is computed from such rows, and can be traced back to them.
//! Nothing that is computed from several rows is stored. (What one turn measures as a difference,
//! such as the part of zeroing in an allocation, is a row: its two sides are stored nowhere else.)

use brickyard_results::{Better, Host};
use brickyard_run::named;
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
    /// Which run or round, from 1. Rows of one run under two configurations are a pair: they have
    /// the same seed, or are of the same round.
    pub run: u32,
    /// The time of a point of a series, in seconds of the machine; none for a single value. Several
    /// rows of a cell at one time are a step, in their order.
    pub at: Option<f64>,
    /// The value.
    pub value: f64,
}

named! {
    /// How the rows of a cell were obtained.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Method {
        /// With the simulated multiprocessor: the same on every host with the same build of the
        /// program.
        Simulated => "simulated",
        /// With a replayed trace, in which nothing is timed: the same on every host with the same
        /// build of the program.
        Replayed => "replayed",
        /// With the host's clock: different on every host, and noisy.
        Timed => "timed",
    }
}

/// The rounds of a timed cell in a sitting: a full run has two, before all other cells and after
/// them. A later round is of the second.
pub const SITTING: u32 = 8;

impl Method {
    /// Returns true if the same cell with the same seed, run by the same build of the program,
    /// gives the same rows everywhere.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Timed)
    }
}

/// The rows of one cell, the smallest piece of an experiment that is run by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellRows {
    /// The cell, such as `locks.metatm-2007.find-8.hold.1`. Its first word is the experiment.
    pub cell: String,
    /// How they were obtained.
    pub kind: Method,
    /// The seed of all random choices: that of the first run of the experiment.
    pub seed: u64,
    /// The host it was run on; [`Host::unknown`] if the file of the rows does not have it.
    pub host: Host,
    /// Which build of the program ran it, and with which traces; empty if unknown. Two builds may
    /// give different rows for the same cell.
    pub program: String,
    /// The rows.
    pub rows: Vec<Raw>,
}

impl CellRows {
    /// Returns the experiment that the cell belongs to.
    #[must_use]
    pub fn experiment(&self) -> &str {
        experiment_of(&self.cell)
    }
}

/// Returns the experiment that a cell of this name belongs to: everything before the first dot.
#[must_use]
pub fn experiment_of(cell: &str) -> &str {
    cell.split_once('.')
        .map_or(cell, |(experiment, _)| experiment)
}

/// Rows and cells for tests, which change what matters to them.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Better, CellRows, Host, Method, Raw};

    /// A row of the first run.
    pub(crate) fn row() -> Raw {
        Raw {
            machine: "host".to_owned(),
            workload: "w".to_owned(),
            config: "c".to_owned(),
            metric: "m".to_owned(),
            unit: "s".to_owned(),
            better: Better::Lower,
            run: 1,
            at: None,
            value: 1.0,
        }
    }

    /// A cell of these rows.
    pub(crate) fn cell(name: &str, kind: Method, rows: Vec<Raw>) -> CellRows {
        CellRows {
            cell: name.to_owned(),
            kind,
            seed: 1,
            host: Host::unknown(),
            program: String::new(),
            rows,
        }
    }
}
