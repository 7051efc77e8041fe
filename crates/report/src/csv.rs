//! The document as CSV: one line a row, for spreadsheets and data frames.
//!
//! A number that the samples do not give is an empty field. Quoting is that of RFC 4180; numbers are the shortest that
//! read back as the same. The samples themselves are in the JSON only.

use std::io::{self, Write};

use ::csv::Writer;

use crate::{Results, Row};

/// The columns, in order.
const COLUMNS: [&str; 12] = [
    "config", "workload", "metric", "unit", "better", "n", "mean", "stddev", "ci95", "median",
    "min", "max",
];

/// Writes `results` as CSV, a head and then one line a row in the order of the rows. Values are in the row's unit; `ci95`
/// is half the width of the mean's 95 % confidence interval.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(results: &Results, out: impl Write) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for row in results.rows() {
        writer.write_record(fields(row))?;
    }
    writer.flush()
}

/// A row's fields, in the order of the columns.
fn fields(row: &Row) -> [String; 12] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
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
    ]
}
