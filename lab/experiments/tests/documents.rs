//! The five documents as data: well formed, consistent with what was printed, and made of the keys
//! that the cells' rows have.

mod keys;
mod mistakes;
mod printed;
mod shape;

use brickyard_experiments::document::{Document, Table};
use brickyard_experiments::documents;

/// Returns the document of an experiment.
fn document(experiment: &str) -> Document {
    let mut all = documents::all().into_iter();
    all.find(|one| one.experiment == experiment).unwrap()
}

/// Returns a table by its id.
fn table(id: &str) -> Table {
    let mut tables = documents::all().into_iter().flat_map(|one| one.tables);
    tables.find(|one| one.id == id).unwrap()
}

/// Returns the printed text of a cell; empty if nothing is printed.
fn text(table: &Table, line: usize, column: usize) -> &'static str {
    let cell = table.lines[line].cells[column].as_ref();
    cell.and_then(|figure| figure.published)
        .map_or("", |published| published.text)
}

/// A printed number as the interval of values that round to it.
#[derive(Debug, Clone, Copy)]
struct Rounded {
    low: f64,
    high: f64,
}

impl Rounded {
    fn of(text: &str) -> Option<Self> {
        let value = brickyard_experiments::document::number(text)?;
        let bare = text.trim_end_matches(['*', '%', ')']);
        let digits = bare.split_once('.').map_or(0, |(_, digits)| digits.len());
        let half = 0.5 * 10_f64.powi(-i32::try_from(digits).unwrap()) + 1e-9;
        Some(Self {
            low: value - half,
            high: value + half,
        })
    }

    /// Returns the interval of a function that is monotonic in both values.
    fn with(self, other: Self, make: impl Fn(f64, f64) -> f64) -> Self {
        let corners = [
            make(self.low, other.low),
            make(self.low, other.high),
            make(self.high, other.low),
            make(self.high, other.high),
        ];
        Self {
            low: corners.into_iter().fold(f64::INFINITY, f64::min),
            high: corners.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Returns true if both may be the same number.
    fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}
