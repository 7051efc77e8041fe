//! Requests that a run cannot carry out: nothing failed, the command line is wrong.

use std::path::PathBuf;

use thiserror::Error;

/// What is wrong with the request, and what to give instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No experiment has this name.
    #[error("there is no experiment `{0}`; `brickyard run` lists them")]
    NoExperiment(String),
    /// A parameter has a value that it cannot have.
    #[error("{0}")]
    Setting(String),
    /// No cell has this name, or it is named twice.
    #[error(
        "there is no cell `{0}`, or it is named twice; `brickyard reproduce --list-cells --full` lists them"
    )]
    NoCell(String),
    /// All cells of a folder have the same seed.
    #[error(
        "the cells of {} were run with seed {found}, not {requested}: give --seed {found}, or another folder with --output",
        folder.display()
    )]
    OtherSeed {
        /// The folder.
        folder: PathBuf,
        /// The seed of its cells.
        found: u64,
        /// The seed of this run.
        requested: u64,
    },
    /// A folder has one whole run at a time.
    #[error(
        "another `brickyard reproduce` is running in {}: wait until it ends, or give another folder with --output",
        .0.display()
    )]
    Busy(PathBuf),
    /// Cells need traces, and there is no such folder.
    #[error("there is no folder {}: give the folder of the traces with --traces DIR", .0.display())]
    NoTraces(PathBuf),
}
