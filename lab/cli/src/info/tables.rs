//! Sections of rows, printed as tables for people, or as CSV or JSON for programs.
//!
//! CSV has a line per figure: `section,row,column,value`, where `row` is the row's names. JSON has
//! a list of rows per section. Both have whole numbers of frames and nanoseconds; tables round.

use std::io::{self, Write};

use brickyard_results::{Column, Columns};
use serde_json::{Map, Value, json};

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Table,
    Csv,
    Json,
}

/// A field of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    /// A name that identifies the row.
    Name(String),
    /// A value that is text.
    Words(String),
    /// A count.
    Count(u64),
    /// Nanoseconds.
    Nanos(u64),
    /// A fraction in thousandths.
    Thousandths(i32),
    /// No value.
    Nothing,
}

/// A section of the output.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its name in CSV and JSON.
    pub(crate) key: &'static str,
    /// The heading of its table.
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Field>>,
    /// Lines printed in place of the table, if there are any.
    pub(crate) instead: Vec<String>,
    /// Lines printed below the table.
    pub(crate) notes: Vec<String>,
}

impl Section {
    /// Creates a section without rows; the names of `columns` have spaces between them.
    pub(crate) fn new(key: &'static str, title: impl Into<String>, columns: &str) -> Self {
        Self {
            key,
            title: title.into(),
            columns: columns.split(' ').map(str::to_owned).collect(),
            rows: Vec::new(),
            instead: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Writes `sections`.
pub(crate) fn write(sections: &[Section], form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Table => sections.iter().try_for_each(|section| table(section, out)),
        Form::Csv => csv(sections, out),
        Form::Json => writeln!(out, "{:#}", json(sections)),
    }
}

fn table(section: &Section, out: &mut dyn Write) -> io::Result<()> {
    if section.rows.is_empty() && section.notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", section.title)?;
    if section.instead.is_empty() && !section.rows.is_empty() {
        rows(section, out)?;
    }
    for line in section.instead.iter().chain(&section.notes) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

fn rows(section: &Section, out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| row.iter().map(Field::text).collect())
        .collect();
    let headless = section.columns.iter().all(String::is_empty);
    let columns = (0..section.columns.len()).map(|column| {
        let first = section.rows.first().and_then(|row| row.get(column));
        let column = match first {
            Some(Field::Name(_) | Field::Words(_)) => Column::left(),
            _ => Column::right(),
        };
        column.after(2)
    });
    let head = (!headless).then(|| section.columns.clone());
    let lines: Vec<Vec<String>> = head.into_iter().chain(cells).collect();
    let lines = Columns::new(columns).lines(&lines);
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

impl Field {
    fn text(&self) -> String {
        match self {
            // Text of a trace may contain terminal escape sequences.
            Self::Name(text) | Self::Words(text) => text.chars().flat_map(visible).collect(),
            Self::Count(count) => count.to_string(),
            Self::Nanos(nanos) => time(*nanos),
            Self::Thousandths(value) => format!("{:.3}", f64::from(*value) / 1000.0),
            Self::Nothing => "-".to_owned(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Name(text) | Self::Words(text) => json!(text),
            Self::Count(number) | Self::Nanos(number) => json!(number),
            Self::Thousandths(value) => json!(f64::from(*value) / 1000.0),
            Self::Nothing => Value::Null,
        }
    }
}

/// Returns a character as it is, or as an escape if a terminal would act on it.
pub(crate) fn visible(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
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

fn csv(sections: &[Section], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "section,row,column,value")?;
    for section in sections {
        for row in &section.rows {
            let names = row.iter().filter_map(|cell| match cell {
                Field::Name(name) => Some(name.as_str()),
                _ => None,
            });
            let names: Vec<&str> = names.collect();
            let names = quoted(&names.join("/"));
            for (cell, column) in row.iter().zip(&section.columns) {
                let value = match cell {
                    Field::Name(_) | Field::Nothing => continue,
                    Field::Words(text) => quoted(text),
                    cell => cell.value().to_string(),
                };
                writeln!(out, "{},{names},{},{value}", section.key, quoted(column))?;
            }
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(sections: &[Section]) -> Value {
    let sections = sections.iter().map(|section| {
        let rows = section.rows.iter().map(|row| {
            let cells = section.columns.iter().zip(row);
            let row: Map<String, Value> = cells
                .map(|(column, cell)| (column.clone(), cell.value()))
                .collect();
            Value::Object(row)
        });
        (section.key.to_owned(), Value::Array(rows.collect()))
    });
    Value::Object(sections.collect())
}
