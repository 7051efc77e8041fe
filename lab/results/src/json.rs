//! The document as JSON, written and read back.
//!
//! This is the form in which results are kept: only it holds the samples. A document that is read
//! is checked like one that is built (`row.rs`, `results.rs`), so a file edited by hand cannot
//! state a mean that its samples do not have.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::comparison::ComparedRow;
use crate::{Against, Comparison, Results};

/// Why a file of results cannot be read: `Display` names the file, `source` what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened, or is not UTF-8.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is not a document of results.
    #[error("{} is not a results document", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
}

/// Writes `results` as indented JSON with a newline at the end. Against the column before it has an
/// additional list, `steps`: for each row that has one before it the figures of the comparison, with
/// the names of the CSV's columns. [`read_json`] ignores the list.
pub(crate) fn write_json(
    results: &Results,
    against: Against,
    out: &mut impl Write,
) -> io::Result<()> {
    let comparison = Comparison::new(results, against);
    let steps = || {
        let cells = comparison.in_order_of(results).into_iter();
        cells.filter_map(Step::of).collect()
    };
    let document = Document {
        results,
        steps: (against == Against::Before).then(steps),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The document, with its steps if it has some.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    results: &'a Results,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step<'a>>>,
}

/// A row against the one before it.
#[derive(Serialize)]
struct Step<'a> {
    config: &'a str,
    before: &'a str,
    workload: &'a str,
    metric: &'a str,
    interval95: Option<f64>,
    speedup: Option<f64>,
    p: Option<f64>,
    pairs: Option<usize>,
    significant: Option<bool>,
}

impl<'a> Step<'a> {
    /// `None` for a row without one before it.
    fn of(cell: ComparedRow<'a>) -> Option<Self> {
        let test = cell.signed_rank();
        Some(Self {
            config: cell.row.config(),
            before: cell.base?.config(),
            workload: cell.row.workload(),
            metric: cell.row.metric().name,
            interval95: cell.interval95(),
            speedup: cell.speedup(),
            p: test.map(|test| test.p),
            pairs: test.map(|test| test.pairs),
            significant: test.map(|_| cell.has_star()),
        })
    }
}

/// Parses the text of a document.
///
/// # Errors
/// Text that is not JSON, a field that is missing or of another type, a sample that is not a
/// number, a statistic that does not follow from the samples, or rows that contradict one another
/// ([`ResultsError`](crate::ResultsError)); with line and column.
///
/// ```
/// let text = r#"{"experiment": "empty", "host": {}, "rows": []}"#;
/// assert_eq!(brickyard_results::parse_json(text)?.experiment(), "empty");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn parse_json(text: &str) -> Result<Results, serde_json::Error> {
    serde_json::from_str(text)
}

/// Reads a document from a file.
///
/// # Errors
/// [`ReadError`] names the file, and what is wrong with it.
pub fn read_json(path: &Path) -> Result<Results, ReadError> {
    let text = fs::read_to_string(path).map_err(|source| ReadError::File {
        path: path.into(),
        source,
    })?;
    parse_json(&text).map_err(|source| ReadError::Document {
        path: path.into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::error::Error;

    #[test]
    fn errors_name_the_file_and_what_is_wrong() {
        let missing = read_json(Path::new("no-such-results.json")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read no-such-results.json");
        assert!(missing.source().is_some());

        let source = parse_json(r#"{"experiment": "x", "host": {}}"#).unwrap_err();
        let path = "r.json".into();
        let wrong = ReadError::Document { path, source };
        assert_eq!(wrong.to_string(), "r.json is not a results document");
        assert_eq!(
            wrong.source().unwrap().to_string(),
            "missing field `rows` at line 1 column 31"
        );
    }

    #[test]
    fn a_row_given_twice_is_refused() {
        let row = r#"{"config":"a","workload":"w","metric":"m","unit":"s","better":"lower","samples":[1]}"#;
        let text = format!(r#"{{"experiment": "x", "host": {{}}, "rows": [{row}, {row}]}}"#);
        let refused = parse_json(&text).unwrap_err().to_string();
        assert!(
            refused.starts_with("a / w / m: this row exists already"),
            "{refused}"
        );
    }
}
