//! What a folder has of earlier runs: the cells that count, and those that do not, with the reason.
//!
//! Invariant `own-build`: a requested cell is kept only if this build ran it, with the same traces.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::Context as _;

use crate::raw::CellRows;
use crate::store::{Folder, ReadError};

use super::cell::Cell;
use super::plan::{all_cells, counted};
use super::program;
use super::traces::Traces;
use crate::refusal::Refusal;

/// The cells of a folder. Reading them reads every file.
#[derive(Debug)]
pub struct Finished {
    /// Those that can be read.
    pub cells: Vec<CellRows>,
    /// Those that cannot, with the reason.
    pub damaged: BTreeMap<String, String>,
    /// The names of those that this build does not have. Their files are not read.
    pub unknown: Vec<String>,
}

impl Finished {
    /// Reads the cells of a folder.
    ///
    /// # Errors
    /// If the folder cannot be listed; [`Refusal`] if a cell was run with another seed.
    pub fn read(folder: &Folder, seed: u64) -> anyhow::Result<Self> {
        let plan = all_cells();
        let known: HashSet<&str> = plan.iter().map(|cell| cell.name.as_str()).collect();
        let mut kept = Self {
            cells: Vec::new(),
            damaged: BTreeMap::new(),
            unknown: Vec::new(),
        };
        for name in names(folder)? {
            if !known.contains(name.as_str()) {
                kept.unknown.push(name);
                continue;
            }
            match folder.read(&name) {
                Ok(cell) => {
                    same_seed(folder, &cell, seed)?;
                    kept.cells.push(cell);
                }
                Err(error) => {
                    kept.damaged.insert(name, why(&error));
                }
            }
        }
        Ok(kept)
    }

    /// Returns those of `cells` that are still to be run, and a line for each reason why some are
    /// run again.
    pub fn left(&self, cells: Vec<Cell>, traces: &Traces) -> (Vec<Cell>, Vec<String>) {
        let done: HashMap<&str, &CellRows> = self
            .cells
            .iter()
            .map(|cell| (cell.cell.as_str(), cell))
            .collect();
        let mut again: BTreeMap<String, usize> = BTreeMap::new();
        let mut left = Vec::new();
        for cell in cells {
            let name = cell.name.as_str();
            let reason = if let Some(done) = done.get(name) {
                let Some(outdated) = program::outdated(&done.program, &cell, traces) else {
                    continue;
                };
                Some(format!("run {outdated}"))
            } else {
                let damaged = self.damaged.get(name);
                damaged.map(|why| format!("damaged ({why})"))
            };
            if let Some(reason) = reason {
                *again.entry(reason).or_default() += 1;
            }
            left.push(cell);
        }
        let line = |(reason, count): (&String, &usize)| {
            let (was, is) = if *count == 1 {
                ("was", "is")
            } else {
                ("were", "are")
            };
            format!("{} {was} {reason}, and {is} run again", counted(*count))
        };
        (left, again.iter().map(line).collect())
    }

    /// Returns a sentence on the cells that this build does not have, if there are any.
    pub fn left_out(&self) -> Option<String> {
        let first = self.unknown.first()?;
        Some(format!(
            "Left out: {} of the folder that this build of the program does not have, the first: {first}.",
            counted(self.unknown.len())
        ))
    }

    /// Returns the names of those that can be read.
    pub fn names(&self) -> BTreeSet<&str> {
        self.cells.iter().map(|cell| cell.cell.as_str()).collect()
    }

    /// Returns the names of those that cannot.
    pub fn damaged_names(&self) -> impl Iterator<Item = &str> {
        self.damaged.keys().map(String::as_str)
    }
}

/// Returns the names of all cells of a folder.
pub fn names(folder: &Folder) -> anyhow::Result<Vec<String>> {
    folder.cells().with_context(|| {
        format!(
            "cannot list {}; give another folder with --output",
            folder.path().display()
        )
    })
}

/// Checks that a cell of a folder has this seed: all cells of a folder have the same one.
pub fn same_seed(folder: &Folder, cell: &CellRows, seed: u64) -> Result<(), Refusal> {
    if cell.seed == seed {
        return Ok(());
    }
    Err(Refusal::OtherSeed {
        folder: folder.path().to_owned(),
        found: cell.seed,
        requested: seed,
    })
}

/// Returns the reason without the advice, since the cell is run again anyway.
fn why(error: &ReadError) -> String {
    match error {
        ReadError::Damaged { why, .. } | ReadError::NoRows { why, .. } => why.clone(),
        ReadError::Io { source, .. } => source.to_string(),
    }
}
