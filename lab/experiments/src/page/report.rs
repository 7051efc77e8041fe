//! Everything that goes into a report.

use core::fmt;

use crate::data::Data;
use crate::document::{Document, Figure, Finding};
use crate::judge::Judgement;
use crate::record::Behind;

/// Everything that goes into a report.
pub struct Report<'r> {
    /// The documents, in the order of their sections.
    pub documents: &'r [Document],
    /// All rows, those that the record adds included.
    pub data: &'r Data,
    /// What the record adds.
    pub behind: &'r Behind,
    /// Returns the judgement of a figure; none if its rows are missing.
    pub judged: &'r dyn Fn(&Figure) -> Option<Judgement>,
    /// The command that made the run.
    pub command: String,
    /// Returns the command that repeats the cell of this name.
    pub cell_command: &'r dyn Fn(&str) -> String,
    /// What a reader must know before trusting a number, such as a noisy host; one sentence each.
    pub warnings: Vec<String>,
    /// Pages with a player.
    pub pages: Vec<Embedded>,
    /// The date of the report.
    pub date: String,
    /// The version of the program.
    pub version: String,
    /// Cells that failed or were not run.
    pub missing: Vec<Missing>,
    /// The finding above the summary's table: who wins by how much. If it counts directions, they
    /// are those of the first document.
    pub winner: Option<Finding>,
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("documents", &self.documents.len())
            .field("rows", &self.data.len())
            .field("pages", &self.pages.len())
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// A cell that is missing from the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub cell: String,
    /// Why it has no rows, such as its error.
    pub why: String,
}

/// A page with a player, which the report holds in a frame of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedded {
    /// The experiment in whose section it is shown.
    pub experiment: String,
    /// What it shows.
    pub title: String,
    /// The path of the same page as a file, relative to the report, such as `pages/elm3b245.html`.
    pub file: String,
    /// The whole page.
    pub html: String,
}
