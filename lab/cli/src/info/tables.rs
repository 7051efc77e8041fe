//! Sections of rows, printed as tables for people, or as CSV or JSON for programs.
//!
//! CSV has a line per figure: `section,row,column,value`, where `row` is the row's names. JSON has
//! a list of rows per section. Both have whole numbers of frames and nanoseconds; tables round.

use brickyard_results::{Cell, Format, Listing, cells, printable};
use serde_json::{Map, json};

/// A section of the output.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its name in CSV and JSON.
    pub(crate) key: &'static str,
    /// The heading of its table.
    pub(crate) title: String,
    /// How many of the first columns are the names of a row.
    names: usize,
    pub(crate) listing: Listing,
    /// Lines printed in place of the table, if there are any.
    pub(crate) instead: Vec<String>,
    /// Lines printed below the table.
    pub(crate) notes: Vec<String>,
}

impl Section {
    /// Creates a section: `names` are the columns that identify a row, `columns` the others, with
    /// spaces between them.
    pub(crate) fn new(
        key: &'static str,
        title: impl Into<String>,
        names: &str,
        columns: &str,
        rows: impl IntoIterator<Item: Into<Vec<Cell>>>,
    ) -> Self {
        let mut listing = Listing::new(&format!("{names} {columns}"));
        rows.into_iter().for_each(|row| listing.push(row));
        Self {
            key,
            title: title.into(),
            names: names.split(' ').count(),
            listing,
            instead: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the table, with a line below it.
    fn table(&self) -> String {
        let lines = match (self.instead.is_empty(), self.listing.rows.is_empty()) {
            (true, false) => self.listing.lines(),
            (_, true) if self.notes.is_empty() => return String::new(),
            _ => Vec::new(),
        };
        let below = self.instead.iter().chain(&self.notes);
        let below = below.map(|line| format!("  {}", printable(line)));
        let title = [self.title.clone()].into_iter();
        title
            .chain(lines)
            .chain(below)
            .collect::<Vec<_>>()
            .join("\n")
            + "\n\n"
    }

    /// Returns a row for each figure.
    fn figures(&self) -> impl Iterator<Item = [Cell; 4]> {
        let key = self.key;
        self.listing.rows.iter().flat_map(move |row| {
            let names: Vec<String> = row[..self.names].iter().map(Cell::field).collect();
            let names = names.join("/");
            let figures = row.iter().zip(&self.listing.columns).skip(self.names);
            let figures = figures.filter(|(cell, _)| !cell.value().is_null());
            figures.map(move |(cell, column)| {
                cells![key, names.as_str(), column.as_str(), cell.value().clone()]
            })
        })
    }
}

/// Returns `sections` as a text.
pub(crate) fn text(sections: &[Section], format: Format) -> String {
    match format {
        Format::Table => sections.iter().map(Section::table).collect(),
        Format::Csv => {
            let mut listing = Listing::new("section row column value");
            let figures = sections.iter().flat_map(Section::figures);
            figures.for_each(|figure| listing.push(figure));
            listing.csv()
        }
        Format::Json => {
            let rows = |section: &Section| (section.key.to_owned(), json!(section.listing));
            format!("{:#}\n", json!(Map::from_iter(sections.iter().map(rows))))
        }
    }
}

/// Returns a time as text in the largest unit of which it has at least one.
pub(crate) fn time(nanos: u64) -> String {
    let value = nanos as f64;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}
