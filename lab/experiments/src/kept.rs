//! What a folder has of earlier runs: the cells that count, and those that do not, each with why.
//!
//! Invariant `own-build`: a cell that is asked for is kept only if this build ran it, by the traces
//! at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::Context as _;

use crate::raw::CellRows;
use crate::store::{Folder, ReadError};

use super::cell::Cell;
use super::plan::{Plan, counted};
use super::program;
use super::traces::Traces;
use crate::refusal::Refusal;

/// The cells of a folder, read. Costs reading all of it.
#[derive(Debug)]
pub struct Kept {
    /// Those that can be read.
    pub cells: Vec<CellRows>,
    /// Those that cannot, with why.
    pub damaged: BTreeMap<String, String>,
    /// Those that this build has not, by name. Nobody looks into them.
    pub unknown: Vec<String>,
}

impl Kept {
    /// Reads them.
    ///
    /// # Errors
    /// Where the folder cannot be looked into, and [`Refusal`] where a cell was run with another
    /// seed.
    pub fn read(folder: &Folder, seed: u64) -> anyhow::Result<Self> {
        let plan = Plan::all().cells;
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

    /// Those of `cells` that are still to be run, and a line for each reason why some are run
    /// again.
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

    /// A sentence on cells that this build has not.
    pub fn left_out(&self) -> Option<String> {
        let first = self.unknown.first()?;
        Some(format!(
            "Left out: {} of the folder that this build of the program does not have; the first is {first}.",
            counted(self.unknown.len())
        ))
    }

    /// The names of those that can be read.
    pub fn names(&self) -> BTreeSet<&str> {
        self.cells.iter().map(|cell| cell.cell.as_str()).collect()
    }

    /// The names of those that cannot.
    pub fn damaged_names(&self) -> impl Iterator<Item = &str> {
        self.damaged.keys().map(String::as_str)
    }
}

/// The names of all cells of a folder.
pub fn names(folder: &Folder) -> anyhow::Result<Vec<String>> {
    folder.cells().with_context(|| {
        format!(
            "cannot look into {}; give another --output",
            folder.path().display()
        )
    })
}

/// A folder has one seed.
pub fn same_seed(folder: &Folder, cell: &CellRows, seed: u64) -> Result<(), Refusal> {
    if cell.seed == seed {
        return Ok(());
    }
    Err(Refusal::OtherSeed {
        folder: folder.path().to_owned(),
        theirs: cell.seed,
        asked: seed,
    })
}

/// Without the advice to delete it, which nobody needs who runs it again.
fn why(error: &ReadError) -> String {
    match error {
        ReadError::Damaged { why, .. } | ReadError::NoRows { why, .. } => why.clone(),
        ReadError::Io { source, .. } => source.to_string(),
    }
}
