//! What a run is asked for and cannot be: nothing went wrong, it was asked for wrongly.

use std::path::PathBuf;

use thiserror::Error;

/// What is wrong, and what to ask for instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No cell has this name, or it is named twice.
    #[error(
        "there is no cell `{0}`, or it is named twice; `brickyard reproduce --list-cells --full` lists them"
    )]
    NoCell(String),
    /// A folder has one seed.
    #[error(
        "the cells of {} were run with seed {theirs}, not {asked}: give --seed {theirs}, or another folder by --output",
        folder.display()
    )]
    OtherSeed {
        /// The folder.
        folder: PathBuf,
        /// That of its cells.
        theirs: u64,
        /// That of this run.
        asked: u64,
    },
    /// A folder has one whole run at a time.
    #[error(
        "another `brickyard reproduce` is at work in {}: wait for its end, or give another folder by --output",
        .0.display()
    )]
    Busy(PathBuf),
    /// Cells need traces.
    #[error("there is no folder {}: --traces DIR says where the traces are", .0.display())]
    NoTraces(PathBuf),
}
