//! All figures of all tables as CSV: what was published, what was measured, and how the directions
//! compare.
//!
//! `value` is in the unit of the rows. To compare it with `published`, multiply it by `scale`;
//! `shown` is that product, formatted as in the tables of the page.

use std::borrow::Cow;
use std::path::Path;

use crate::document::{Document, Figure, Table, Verdict};
use crate::judge::{Judge, Member};
use crate::numbers::in_cell;
use crate::store::{WriteError, write_records};

/// Writes them, one line for each figure; a figure for which nothing was measured has only its
/// published columns.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_csv(path: &Path, documents: &[Document], judge: &Judge<'_>) -> Result<(), WriteError> {
    let mut records: Vec<Vec<String>> = Vec::new();
    for document in documents {
        for (place, figure) in of(document) {
            let place = place.map(Cow::into_owned);
            let (names, fields): (Vec<&str>, Vec<String>) =
                record(document.experiment, &place, figure, judge)
                    .into_iter()
                    .unzip();
            if records.is_empty() {
                records.push(names.into_iter().map(str::to_owned).collect());
            }
            records.push(fields);
        }
    }
    write_records(path, &records)
}

/// Returns the figures of a document's tables, each with its table, line and column.
pub(crate) fn of(document: &Document) -> impl Iterator<Item = ([Cow<'_, str>; 3], &Figure)> {
    let tables = document.tables.iter().chain(&document.today);
    let lines = tables.flat_map(|table| table.lines.iter().map(move |line| (table, line)));
    lines.flat_map(|(table, line)| {
        let cells = line.cells.iter().enumerate();
        cells.filter_map(move |(column, figure)| {
            let column = column_name(table, column);
            let place = [
                table.id.as_str().into(),
                line.head.as_str().into(),
                column.into(),
            ];
            Some((place, figure.as_ref()?))
        })
    })
}

/// Returns the name of a column: the texts of its head, from top to bottom.
fn column_name(table: &Table, column: usize) -> String {
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

/// Returns the columns, each with its name.
fn record(
    experiment: &str,
    [table, line, column]: &[String; 3],
    figure: &Figure,
    judge: &Judge<'_>,
) -> Vec<(&'static str, String)> {
    let judgement = judge.judge(figure);
    let judged = judgement.as_ref();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let word = |word: Option<&str>| word.unwrap_or_default().to_owned();
    let (of, against) = (figure.of.first(), figure.against.first());
    let published = figure.published;
    let interval = judged.and_then(|judged| judged.interval);
    let sweep = judged.and_then(|judged| judged.sweep.as_ref());
    let end = |member: Option<&Member>| number(member.map(|member| member.value));
    let at = |member: Option<&Member>| word(member.map(|member| member.label.as_str()));
    let (lowest, highest) = (sweep.map(|it| &it.lowest), sweep.map(|it| &it.highest));
    vec![
        ("experiment", experiment.to_owned()),
        ("table", table.clone()),
        ("line", line.clone()),
        ("column", column.clone()),
        ("statistic", figure.statistic.name().to_owned()),
        ("machine", word(of.map(|key| key.machine.as_str()))),
        ("workload", word(of.map(|key| key.workload.as_str()))),
        ("config", word(of.map(|key| key.config.as_str()))),
        ("metric", word(of.map(|key| key.metric.as_str()))),
        ("against", word(against.map(|key| key.config.as_str()))),
        (
            "against_machine",
            word(against.map(|key| key.machine.as_str())),
        ),
        (
            "against_workload",
            word(against.map(|key| key.workload.as_str())),
        ),
        (
            "against_metric",
            word(against.map(|key| key.metric.as_str())),
        ),
        ("published", word(published.map(|it| it.text))),
        (
            "published_speedup",
            number(published.and_then(|it| it.speedup)),
        ),
        ("published_least", number(figure.least().map(f64::from))),
        ("value", number(judged.map(|judged| judged.value))),
        ("unit", word(judged.map(|judged| judged.unit.as_str()))),
        ("scale", number(judged.map(|_| figure.scale))),
        (
            "shown",
            judged
                .map(|judged| in_cell(figure, judged))
                .unwrap_or_default(),
        ),
        (
            "n",
            judged
                .map(|judged| judged.n.to_string())
                .unwrap_or_default(),
        ),
        ("speedup", number(judged.and_then(|judged| judged.speedup))),
        (
            "speedup_low95",
            number(interval.map(|found| found.ends.low)),
        ),
        (
            "speedup_high95",
            number(interval.map(|found| found.ends.high)),
        ),
        ("p", number(judged.and_then(|judged| judged.p))),
        ("p_holm", number(judged.and_then(|judged| judged.p_holm))),
        (
            "assumed",
            word(judged.filter(|judged| judged.assumed).map(|_| "yes")),
        ),
        (
            "sweep_members",
            sweep
                .map(|sweep| sweep.members.to_string())
                .unwrap_or_default(),
        ),
        ("sweep_low", end(lowest)),
        ("sweep_low_at", at(lowest)),
        ("sweep_high", end(highest)),
        ("sweep_high_at", at(highest)),
        (
            "verdict",
            word(judged.and_then(|judged| judged.verdict).map(Verdict::name)),
        ),
        (
            "verdict_by_itself",
            word(
                judged
                    .and_then(|judged| judged.by_itself)
                    .map(Verdict::name),
            ),
        ),
        ("not_testable_because", word(figure.why_not_testable())),
    ]
}
