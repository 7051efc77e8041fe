//! All figures of all tables as CSV: what was published, what was measured, and how the directions compare.

use std::path::Path;

use crate::document::{Document, Figure, Statistic, Table};
use crate::judge::Judge;
use crate::store::{WriteError, write_records};

/// The columns.
const HEAD: [&str; 21] = [
    "experiment",
    "table",
    "line",
    "column",
    "statistic",
    "machine",
    "workload",
    "config",
    "metric",
    "against",
    "published",
    "published_speedup",
    "value",
    "unit",
    "n",
    "speedup",
    "speedup_low95",
    "speedup_high95",
    "hedges_g",
    "p",
    "p_holm",
];

/// Writes them, a line a figure; a figure of which nothing was measured has only what was published.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_csv(path: &Path, documents: &[Document], judge: &Judge<'_>) -> Result<(), WriteError> {
    let head = HEAD.iter().copied().chain(["verdict"]).map(str::to_owned);
    let mut records = vec![head.collect()];
    for document in documents {
        for table in document.tables.iter().chain(&document.today) {
            for line in &table.lines {
                for (column, figure) in line.cells.iter().enumerate() {
                    if let Some(figure) = figure {
                        let name = column_name(table, column);
                        let place = [document.experiment, &table.id, &line.head, &name];
                        records.push(record(place, figure, judge));
                    }
                }
            }
        }
    }
    write_records(path, &records)
}

/// What the head says of a column, from above downward.
#[must_use]
pub fn column_name(table: &Table, column: usize) -> String {
    let mut words = Vec::new();
    for row in &table.head {
        let mut end = 0;
        let cell = row.iter().find(|cell| {
            end += cell.span;
            end > column
        });
        words.extend(
            cell.map(|cell| cell.text.as_str())
                .filter(|text| !text.is_empty()),
        );
    }
    words.join(" ")
}

fn record(place: [&str; 4], figure: &Figure, judge: &Judge<'_>) -> Vec<String> {
    let judgement = judge.judge(figure);
    let told = judgement.as_ref();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let interval = told.and_then(|told| told.interval);
    let of = figure.of.first();
    let word = |word: Option<&String>| word.cloned().unwrap_or_default();
    let mut record: Vec<String> = place.map(str::to_owned).to_vec();
    record.extend([
        name(figure.statistic).to_owned(),
        word(of.map(|key| &key.machine)),
        word(of.map(|key| &key.workload)),
        word(of.map(|key| &key.config)),
        word(of.map(|key| &key.metric)),
        word(figure.against.first().map(|key| &key.config)),
        figure
            .published
            .map(|it| it.text.to_owned())
            .unwrap_or_default(),
        number(figure.published.and_then(|it| it.speedup)),
        number(told.map(|told| told.value)),
        told.map(|told| told.unit.clone()).unwrap_or_default(),
        told.map(|told| told.n.to_string()).unwrap_or_default(),
        number(told.and_then(|told| told.speedup)),
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        number(told.and_then(|told| told.effect)),
        number(told.and_then(|told| told.p)),
        number(told.and_then(|told| told.p_holm)),
        told.and_then(|told| told.verdict)
            .map(|verdict| verdict.name().to_owned())
            .unwrap_or_default(),
    ]);
    record
}

/// A statistic's name, as files and pages have it.
#[must_use]
pub const fn name(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => "mean",
        Statistic::Median => "median",
        Statistic::Min => "min",
        Statistic::Max => "max",
        Statistic::Range => "range",
        Statistic::StdDev => "standard deviation",
        Statistic::Interval95 => "95 % interval, half of it",
        Statistic::Speedup => "speedup",
        Statistic::Gain => "gain",
        Statistic::GainMin => "gain of the min",
        Statistic::GainMax => "gain of the max",
        Statistic::GainStdDev => "gain of the standard deviation",
        Statistic::GainRange => "gain of the range",
        Statistic::Difference => "difference",
        Statistic::DifferencePercent => "difference in percent",
        Statistic::Share => "share",
        Statistic::GmeanSpeedup => "geometric mean of speedups",
    }
}
