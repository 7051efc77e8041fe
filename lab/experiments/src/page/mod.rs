//! The report: one HTML page with the summary, each document's plots and tables, the player, and
//! all raw rows.
//!
//! The page fetches and stores nothing, and runs no script but its own and the player's, exactly as
//! this version writes them: its policy forbids everything else ([`policy`]). All text, tables and
//! plots are in the HTML and can be read without JavaScript; a script adds a dialog with the raw
//! rows of a figure, the results of its tests, and the commands that reproduce it. All text from
//! outside is escaped where it is written.
//!
//! Invariant `traceable`: every measured figure is an element of class `figure`, with the indices
//! of its rows in `data-rows` (also the lines of `rows.csv` below its head),
//! the statistic in `data-statistic`, how many of the rows are its own samples in `data-n` (the
//! others are those it is compared with; of a geometric mean it is the number of pairs of keys) and
//! the exact value in `data-value`, which is multiplied by `data-scale`, if there is one, to be
//! shown. A test checks all of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `report` | what goes into it |
//! | `markup` | escaping, and code in prose |
//! | `figure` | a figure's element, the mark of its verdict |
//! | `finding` | sentences with figures in them; the counts of directions |
//! | `summary` | the first screen |
//! | `part` | the section of a document |
//! | `table`, `plots` | tables; plots with their tables of points |
//! | `raw_part` | how to read the files and repeat the run |
//! | `embedded` | all rows as JSON, for the script |
//! | `page.html`, `style.css`, `*.js` | the frame, the style, the keys in tables, the dialog, the self-test (`#selftest`) |

mod embedded;
mod figure;
mod finding;
mod markup;
mod part;
mod plots;
mod raw_part;
mod report;
mod summary;
mod table;

use std::io::{self, Write};

use brickyard_pictures::markup::{fill, script};
use brickyard_pictures::pagetypes::html;
use brickyard_pictures::policy;

pub use report::{Embedded, Missing, Report};

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

/// Writes the page. Uses memory in proportion to its size, and calls [`Report::judged`] once or
/// twice for each figure.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let script = script(&SCRIPTS);
    fill(PAGE, out, |marker, out| match marker {
        "style" => {
            out.write_all(brickyard_pictures::plot::STYLE.as_bytes())?;
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

/// Returns the links to the sections.
fn links(report: &Report<'_>) -> String {
    report.documents.iter().map(summary::link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_contains_the_end_of_its_element() {
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
