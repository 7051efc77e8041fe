//! A document in any of its formats.

use brickyard_run::named;

use crate::csv::csv;
use crate::json::json;
use crate::table::table;
use crate::{Results, TableOptions};

named! {
    /// The formats that a document can be written in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub enum Format {
        /// A text table for people, against the first configuration.
        #[default]
        Table => "table",
        /// One line per row, for spreadsheets and data frames.
        Csv => "csv",
        /// The whole document with its samples, which can be read back.
        Json => "json",
    }
}

impl Results {
    /// Returns the document as `format`. CSV and JSON use only `against` of the `options`.
    #[must_use]
    pub fn text(&self, format: Format, options: &TableOptions<'_>) -> String {
        match format {
            Format::Table => table(self, options),
            Format::Csv => csv(self, options.against),
            Format::Json => json(self, options.against),
        }
    }
}
