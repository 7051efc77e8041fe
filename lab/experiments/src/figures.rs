//! All figures of all tables as CSV: what was published, what was measured, and how the directions
//! compare.
//!
//! `value` is as the rows have it. What is to be held against `published` is `value` times `scale`,
//! which `shown` has as the page's tables do.

use std::path::Path;

use crate::document::{Document, Figure, Table};
use crate::judge::Judge;
use crate::shown::in_cell;
use crate::store::{WriteError, write_records};

/// The columns.
const HEAD: [&str; 27] = [
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
    "against_machine",
    "against_workload",
    "against_metric",
    "published",
    "published_speedup",
    "value",
    "unit",
    "scale",
    "shown",
    "n",
    "speedup",
    "speedup_low95",
    "speedup_high95",
    "hedges_g",
    "p",
    "p_holm",
    "verdict",
];

/// Writes them, a line a figure; a figure of which nothing was measured has only what was
/// published.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_csv(path: &Path, documents: &[Document], judge: &Judge<'_>) -> Result<(), WriteError> {
    let mut records = vec![HEAD.map(str::to_owned).to_vec()];
    for document in documents {
        for table in document.tables.iter().chain(&document.today) {
            for line in &table.lines {
                for (column, figure) in line.cells.iter().enumerate() {
                    if let Some(figure) = figure {
                        let name = column_name(table, column);
                        let place = [document.experiment, &table.id, &line.head, &name];
                        records.push(record(place, figure, judge).to_vec());
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

/// A word for each column of [`HEAD`].
fn record(
    [experiment, table, line, column]: [&str; 4],
    figure: &Figure,
    judge: &Judge<'_>,
) -> [String; HEAD.len()] {
    let judgement = judge.judge(figure);
    let told = judgement.as_ref();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let interval = told.and_then(|told| told.interval);
    let (of, against) = (figure.of.first(), figure.against.first());
    let word = |word: Option<&String>| word.cloned().unwrap_or_default();
    let verdict = told.and_then(|told| told.verdict);
    [
        experiment.to_owned(),
        table.to_owned(),
        line.to_owned(),
        column.to_owned(),
        figure.statistic.name().to_owned(),
        word(of.map(|key| &key.machine)),
        word(of.map(|key| &key.workload)),
        word(of.map(|key| &key.config)),
        word(of.map(|key| &key.metric)),
        word(against.map(|key| &key.config)),
        word(against.map(|key| &key.machine)),
        word(against.map(|key| &key.workload)),
        word(against.map(|key| &key.metric)),
        figure
            .published
            .map(|it| it.text.to_owned())
            .unwrap_or_default(),
        number(figure.published.and_then(|it| it.speedup)),
        number(told.map(|told| told.value)),
        told.map(|told| told.unit.clone()).unwrap_or_default(),
        number(told.map(|_| figure.scale)),
        told.map(|told| in_cell(figure, told)).unwrap_or_default(),
        told.map(|told| told.n.to_string()).unwrap_or_default(),
        number(told.and_then(|told| told.speedup)),
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        number(told.and_then(|told| told.effect)),
        number(told.and_then(|told| told.p)),
        number(told.and_then(|told| told.p_holm)),
        verdict
            .map(|verdict| verdict.name().to_owned())
            .unwrap_or_default(),
    ]
}
