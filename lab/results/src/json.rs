//! The document as JSON, written and read back.
//!
//! This is the form in which results are kept: only it holds the samples. A document that is read
//! is checked like one that is built (`row.rs`, `results.rs`), so a file edited by hand cannot
//! state a mean that its samples do not have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::csv::fields;
use crate::{Against, Comparison, Listing, Results};

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

/// Returns `results` as indented JSON. Against the column before it has an additional list,
/// `steps`: for each row that has one before it the figures of the comparison, with the names of the
/// CSV's columns. [`read_json`] ignores the list.
pub(crate) fn json(results: &Results, against: Against) -> String {
    let comparison = Comparison::new(results, against);
    let steps = || {
        let rows = comparison.in_order_of(results).into_iter();
        let (row, [interval95, before, step @ ..]) = fields();
        let names = [row[0], before, row[1], row[2], interval95];
        Listing::of(
            rows.filter(|row| row.base.is_some()),
            &[&names[..], &step].concat(),
        )
    };
    let document = Document {
        results,
        steps: (against == Against::Before).then(steps),
    };
    let text = serde_json::to_string_pretty(&document);
    text.expect("its keys are text") + "\n"
}

/// The document, with its steps if it has some.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    results: &'a Results,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Listing>,
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
