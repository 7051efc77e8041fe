//! All figures of all tables as CSV: what was published, what was measured, and how the directions
//! compare.
//!
//! `value` is in the unit of the rows. To compare it with `published`, multiply it by `scale`;
//! `shown` is that product, formatted as in the tables of the page.

use std::path::Path;

use crate::document::{Document, Figure, Table};
use crate::judge::Judge;
use crate::shown::in_cell;
use crate::store::{WriteError, write_records};

/// The columns.
const HEAD: [&str; 28] = [
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
    "not_testable_because",
];

/// Writes them, one line for each figure; a figure for which nothing was measured has only its
/// published columns.
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

/// Returns the name of a column: the texts of its head, from top to bottom.
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

/// Returns the field for each column of [`HEAD`].
fn record(
    [experiment, table, line, column]: [&str; 4],
    figure: &Figure,
    judge: &Judge<'_>,
) -> [String; HEAD.len()] {
    let judgement = judge.judge(figure);
    let judged = judgement.as_ref();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let interval = judged.and_then(|judged| judged.interval);
    let (of, against) = (figure.of.first(), figure.against.first());
    let word = |word: Option<&String>| word.cloned().unwrap_or_default();
    let verdict = judged.and_then(|judged| judged.verdict);
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
        number(judged.map(|judged| judged.value)),
        judged.map(|judged| judged.unit.clone()).unwrap_or_default(),
        number(judged.map(|_| figure.scale)),
        judged
            .map(|judged| in_cell(figure, judged))
            .unwrap_or_default(),
        judged
            .map(|judged| judged.n.to_string())
            .unwrap_or_default(),
        number(judged.and_then(|judged| judged.speedup)),
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        number(judged.and_then(|judged| judged.effect)),
        number(judged.and_then(|judged| judged.p)),
        number(judged.and_then(|judged| judged.p_holm)),
        verdict
            .map(|verdict| verdict.name().to_owned())
            .unwrap_or_default(),
        figure.why_not_testable().unwrap_or_default().to_owned(),
    ]
}
