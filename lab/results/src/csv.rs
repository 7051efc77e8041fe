//! The document as CSV: one line a row, for spreadsheets and data frames.
//!
//! A statistic that the samples do not define is an empty field. Quoting follows RFC 4180; numbers
//! are the shortest that read back as the same. Of the samples, CSV has only the last; JSON has
//! all. What is to be known of the figures stands above the header, in lines that begin with `# `.

use std::io::{self, Write};

use ::csv::{Writer, WriterBuilder};

use crate::{Results, Row, StepCell, Steps};

/// The columns, in order.
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

/// Writes `results` as CSV: a header, then one line per row in the order of the rows. Values are in
/// the row's unit; `ci95` is half the width of the mean's 95 % confidence interval; `last` is the
/// last sample, which is the state at the end if the samples follow a run.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(results: &Results, mut out: impl Write) -> io::Result<()> {
    write_comments(results, &mut out)?;
    let mut writer = writer(out);
    writer.write_record(COLUMNS)?;
    for row in results.rows() {
        writer.write_record(fields(row))?;
    }
    writer.flush()
}

/// Writes `results` as CSV with the figures of [`Steps`] in additional columns: `interval95` as in
/// 2007, `before` (the configuration that this one is compared with), `speedup` over it, `p` of the
/// signed-rank test, the number of `pairs` that differ, and whether the difference is
/// `significant`. Lines are in the order of the rows.
///
/// # Errors
/// Those of `out`.
pub fn write_steps_csv(results: &Results, mut out: impl Write) -> io::Result<()> {
    write_comments(results, &mut out)?;
    let steps = Steps::new(results);
    let mut writer = writer(out);
    writer.write_record(COLUMNS.iter().chain(&STEP_COLUMNS))?;
    for row in results.rows() {
        let (before, cell) = steps.of_row(row);
        let fields = fields(row).into_iter();
        writer.write_record(fields.chain(step_fields(before, cell)))?;
    }
    writer.flush()
}

/// Makes the writer of the rows. A field with a `#` in it is quoted: readers that skip comments
/// would skip the rest of the line, or the whole of it.
fn writer<W: Write>(out: W) -> Writer<W> {
    WriterBuilder::new().comment(Some(b'#')).from_writer(out)
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

/// Formats a cell's step, in the order of the columns.
fn step_fields(before: Option<&str>, cell: Option<StepCell>) -> [String; 6] {
    let step = cell.and_then(|cell| cell.step);
    let test = step.and_then(|step| step.test);
    [
        number(cell.and_then(|cell| cell.interval95)),
        before.unwrap_or_default().into(),
        number(step.and_then(|step| step.speedup)),
        number(test.map(|test| test.p)),
        test.map_or_else(String::new, |test| test.pairs.to_string()),
        test.and(step)
            .map_or_else(String::new, |step| step.is_significant().to_string()),
    ]
}

/// Formats a number; an empty field for `None`.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Formats a row's fields, in the order of the columns.
fn fields(row: &Row) -> [String; 13] {
    let (metric, summary) = (row.metric(), row.summary());
    [
        row.config().into(),
        row.workload().into(),
        metric.name.into(),
        metric.unit.into(),
        metric.better.name().into(),
        summary.n().to_string(),
        number(summary.mean()),
        number(summary.stddev()),
        number(summary.ci95()),
        number(summary.median()),
        number(summary.min()),
        number(summary.max()),
        number(row.samples().last().copied()),
    ]
}
