//! The document as CSV: one line a row, for spreadsheets and data frames.
//!
//! A statistic that the samples do not define is an empty field. Quoting follows RFC 4180; numbers
//! are the shortest that read back as the same. Of the samples, CSV has only the last, which is the
//! state at the end if the samples follow a run; JSON has all. What is to be known of the figures
//! stands above the header, in lines that begin with `# `.

use std::io::{self, Write};

use ::csv::WriterBuilder;

use crate::comparison::ComparedRow;
use crate::{Against, Comparison, Results, Row};

/// The columns, in order. `ci95` is half the width of the mean's 95 % confidence interval.
const COLUMNS: [&str; 13] = [
    "config", "workload", "metric", "unit", "better", "n", "mean", "stddev", "ci95", "median",
    "min", "max", "last",
];

/// The columns added where each configuration is compared with the one before.
const STEP_COLUMNS: [&str; 6] = [
    "interval95",
    "before",
    "speedup",
    "p",
    "pairs",
    "significant",
];

/// Writes `results` as CSV: a header, then one line per row in the order of the rows.
pub(crate) fn write_csv(
    results: &Results,
    against: Against,
    out: &mut impl Write,
) -> io::Result<()> {
    write_comments(results, out)?;
    // A field with a `#` in it is quoted: readers that skip comments would skip the rest of the
    // line, or the whole of it.
    let mut writer = WriterBuilder::new().comment(Some(b'#')).from_writer(out);
    let more: &[&str] = match against {
        Against::First => &[],
        Against::Before => &STEP_COLUMNS,
    };
    writer.write_record(COLUMNS.iter().chain(more))?;
    for cell in Comparison::new(results, against).in_order_of(results) {
        let mut record = fields(cell.row);
        if against == Against::Before {
            record.extend(step_fields(cell));
        }
        writer.write_record(record)?;
    }
    writer.flush()
}

/// Writes what is to be known of the figures.
fn write_comments(results: &Results, out: &mut impl Write) -> io::Result<()> {
    let interrupted = results
        .is_interrupted()
        .then_some("interrupted: the figures are of what was done until then");
    let lines = results.about().iter().chain(results.notes());
    for text in lines.map(String::as_str).chain(interrupted) {
        // Some readers end a line at any of the two.
        for line in text.split(['\r', '\n']).filter(|line| !line.is_empty()) {
            writeln!(out, "# {line}")?;
        }
    }
    Ok(())
}

/// Formats what a row is compared with, in the order of the columns.
fn step_fields(cell: ComparedRow<'_>) -> [String; 6] {
    let test = cell.signed_rank();
    [
        text(cell.interval95()),
        text(cell.base.map(Row::config)),
        text(cell.speedup()),
        text(test.map(|test| test.p)),
        text(test.map(|test| test.pairs)),
        text(test.map(|_| cell.has_star())),
    ]
}

/// Formats a value; an empty field for `None`.
fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Formats a row's fields, in the order of the columns.
fn fields(row: &Row) -> Vec<String> {
    let (metric, summary) = (row.metric(), row.summary());
    let words = [
        row.config(),
        row.workload(),
        metric.name,
        metric.unit,
        metric.better.name(),
    ];
    let numbers = [
        summary.mean(),
        summary.stddev(),
        summary.ci95(),
        summary.median(),
        summary.min(),
        summary.max(),
        row.samples().last().copied(),
    ];
    let mut fields: Vec<String> = words.map(str::to_owned).into();
    fields.push(summary.n().to_string());
    fields.extend(numbers.map(text));
    fields
}
