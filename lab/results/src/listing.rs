//! A list of rows with named columns: a table for people, CSV and JSON for programs.

use ::csv::WriterBuilder;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{Column, Columns, Format};

/// A field of a row: its value for programs, and as people read it.
#[derive(Debug, Clone)]
pub struct Cell {
    value: Value,
    text: Option<String>,
}

impl Cell {
    /// A value that people read as `text`.
    pub fn shown(value: impl Into<Value>, text: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            text: Some(text.into()),
        }
    }

    /// The value for programs: `null` if there is none.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The value as CSV has it: the shortest number that reads back as the same, nothing for
    /// `null`.
    #[must_use]
    pub fn field(&self) -> String {
        match &self.value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => number
                .as_f64()
                .map_or_else(String::new, |number| number.to_string()),
            other => other.to_string(),
        }
    }

    /// The value as people read it, without what a terminal would act on.
    fn text(&self) -> String {
        match (&self.text, &self.value) {
            (Some(text), _) => printable(text),
            (None, Value::Null) => "-".to_owned(),
            (None, _) => printable(&self.field()),
        }
    }
}

/// A value that people read as CSV has it, or as `-` if there is none.
impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        let (value, text) = (value.into(), None);
        Self { value, text }
    }
}

/// Returns a row of these values.
///
/// ```
/// let row = brickyard_results::cells!["a", 1, None::<f64>];
/// assert_eq!(row.map(|cell| cell.field()), ["a", "1", ""]);
/// ```
#[macro_export]
macro_rules! cells {
    ($($cell:expr),+ $(,)?) => { [$($crate::Cell::from($cell)),+] };
}

/// A column of a list of `T`: its name, and its cell of each.
pub type Field<'f, T> = (&'f str, &'f dyn Fn(&T) -> Cell);

/// Rows, each with a cell for every column.
///
/// ```
/// use brickyard_results::{Cell, Listing};
///
/// let listing = Listing::of([("a", 0.5), ("b", 2.0)], &[
///     ("name", &|of| of.0.into()),
///     ("share", &|of| Cell::shown(of.1, format!("{:.3}", of.1))),
/// ]);
/// assert_eq!(listing.lines(), ["  name  share", "  a     0.500", "  b     2.000"]);
/// assert_eq!(listing.csv(), "name,share\na,0.5\nb,2\n");
/// assert_eq!(serde_json::to_value(&listing)?[0]["share"], 0.5);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Listing {
    /// A list without rows; the names of `columns` have spaces between them.
    #[must_use]
    pub fn new(columns: &str) -> Self {
        let columns = columns.split_whitespace().map(str::to_owned);
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// The list of these, with a row for each.
    pub fn of<T>(all: impl IntoIterator<Item = T>, fields: &[Field<'_, T>]) -> Self {
        let row = |one: T| fields.iter().map(|(_, cell)| cell(&one)).collect();
        Self {
            columns: fields.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: all.into_iter().map(row).collect(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl Into<Vec<Cell>>) {
        self.rows.push(row.into());
    }

    /// Returns the list as `format`.
    #[must_use]
    pub fn text(&self, format: Format) -> String {
        match format {
            Format::Table => self.lines().join("\n") + "\n",
            Format::Csv => self.csv(),
            Format::Json => {
                let text = serde_json::to_string_pretty(self);
                text.expect("its keys are text") + "\n"
            }
        }
    }

    /// Returns the lines for people, the first with the names: text to the left, numbers to the
    /// right, by the first row.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let side = |place: usize| match self.rows.first().map(|row| &row[place].value) {
            Some(Value::String(_)) => Column::left().after(2),
            _ => Column::right().after(2),
        };
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().map(Cell::text).collect());
        let lines: Vec<Vec<String>> = [self.columns.clone()].into_iter().chain(rows).collect();
        Columns::new((0..self.columns.len()).map(side)).lines(&lines)
    }

    /// Returns the rows as CSV: a header, then a line for each. Quoting follows RFC 4180; a field
    /// with a `#` is quoted too, since readers that skip comments would skip the rest of the line.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut writer = WriterBuilder::new()
            .comment(Some(b'#'))
            .from_writer(Vec::new());
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().map(Cell::field).collect::<Vec<_>>());
        for row in [self.columns.clone()].into_iter().chain(rows) {
            writer
                .write_record(&row)
                .expect("rows are of one length, and memory takes them");
        }
        let written = writer.into_inner().expect("memory takes it");
        String::from_utf8(written).expect("it is made of text")
    }
}

/// As a list of objects, a row each.
impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Row<'a>(&'a [String], &'a [Cell]);
        impl Serialize for Row<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_map(self.0.iter().zip(self.1.iter().map(|cell| &cell.value)))
            }
        }
        to.collect_seq(self.rows.iter().map(|row| Row(&self.columns, row)))
    }
}

/// Returns a text that is safe to print: control characters, which would move a terminal's cursor
/// or ring its bell, are escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect()
}
