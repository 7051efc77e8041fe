//! The report: one HTML page with the summary, each document's plots and tables, the player, and
//! all raw rows.
//!
//! Nothing is fetched and nothing is written, and no script runs but the page's own and the
//! player's, as this version writes them: the page forbids itself all else ([`policy`]). All text,
//! tables and plots are in the HTML and are read without JavaScript; a script adds a dialog with
//! the raw rows of a figure, what they were tested for, and the commands that repeat them. Whatever
//! comes from outside is escaped where it is written.
//!
//! Invariant `traceable`: every measured figure is an element of class `figure`, with the places of
//! its rows in `data-rows` (as [`Data::row`] counts them, and the lines of `rows.csv` below its
//! head), the statistic in `data-statistic`, how many of the rows are its own samples in `data-n`
//! (the rest is what it is held against; of a geometric mean it is the number of pairs of samples)
//! and the number to the last bit in `data-value`, which is shown as `data-scale` times that where
//! there is one. A test walks all of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `markup` | escaping, and code in prose |
//! | `figure` | a figure's element, the mark of its verdict |
//! | `finding` | sentences with figures in them; how many directions came out |
//! | `summary` | the first screen |
//! | `part` | a document's part |
//! | `table`, `plots` | tables, and plots with theirs |
//! | `raw_part` | how to read the files and repeat the run |
//! | `embedded` | all rows as JSON, for the script |
//! | `page.html`, `style.css`, `*.js` | the frame, the look, the keys in tables, the dialog, the self-test (`#selftest`) |

mod embedded;
mod figure;
mod finding;
mod markup;
mod part;
mod plots;
mod raw_part;
mod summary;
mod table;

use core::fmt;
use std::io::{self, Write};

use brickyard_report::markup::{fill, script};
use brickyard_report::pagetypes::html;
use brickyard_report::policy;

use crate::data::Data;
use crate::document::{Document, Figure, Finding};
use crate::judge::Judgement;
use markup::Escaped;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPTS: [&str; 6] = [
    include_str!("rows.js"),
    include_str!("tables.js"),
    include_str!("dialog.js"),
    include_str!("copy.js"),
    include_str!("players.js"),
    include_str!("selftest.js"),
];

/// All that a report is made of.
pub struct Report<'r> {
    /// The documents, in the order of their parts.
    pub documents: &'r [Document],
    /// All rows.
    pub data: &'r Data,
    /// What a figure came to. None where its rows are not there.
    pub judged: &'r dyn Fn(&Figure) -> Option<Judgement>,
    /// The command that made the run.
    pub command: String,
    /// The command that repeats the cell of this name.
    pub cell_command: &'r dyn Fn(&str) -> String,
    /// What a reader must know before believing a number, such as a noisy host; a sentence each.
    pub warnings: Vec<String>,
    /// Pages with a player.
    pub pages: Vec<Embedded>,
    /// When the run was made.
    pub date: String,
    /// Of which version.
    pub version: String,
    /// Cells that failed or were not run.
    pub missing: Vec<Missing>,
    /// Who wins by how much, above the summary's table. Its counts of directions are those of the
    /// first document.
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

/// A cell that the report lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub cell: String,
    /// Why it has no rows, such as what it failed by.
    pub why: String,
}

/// A page with a player, which the report holds in a frame of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedded {
    /// The experiment in whose part it stands.
    pub experiment: String,
    /// What is to be seen.
    pub title: String,
    /// Where the same page lies as a file, seen from the report, such as `pages/elm3b245.html`.
    pub file: String,
    /// The whole page.
    pub html: String,
}

/// Writes the page. Costs memory in proportion to it, and a call of [`Report::judged`] or two for
/// each figure.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let script = script(&SCRIPTS);
    fill(PAGE, out, |marker, out| match marker {
        "style" => {
            out.write_all(brickyard_report::plot::STYLE.as_bytes())?;
            out.write_all(STYLE.as_bytes())
        }
        "summary" => out.write_all(summary::of(report).as_bytes()),
        "links" => out.write_all(links(report).as_bytes()),
        "parts" => {
            let mut parts = report.documents.iter();
            parts.try_for_each(|document| out.write_all(part::of(report, document).as_bytes()))
        }
        "raw" => out.write_all(raw_part::of(report).as_bytes()),
        "rows" => embedded::write(report, out),
        "policy" => out.write_all(policy::of(&[&script, &html::script()]).as_bytes()),
        "script" => out.write_all(script.as_bytes()),
        other => unreachable!("the page has no marker {other}"),
    })
}

/// The way to each part.
fn links(report: &Report<'_>) -> String {
    let link = |document: &Document| {
        let name = Escaped(document.experiment);
        format!("<a href=\"#{name}\">{name}</a>")
    };
    report.documents.iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_ends_its_own_element() {
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
