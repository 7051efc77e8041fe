//! The figures for other programs: CSV and JSON. Without `--every` each sample is a row, as in the
//! files; with it, each span: of a figure the median, the least and the most, of a total how much
//! it grew.

use std::borrow::Cow;

use brickyard_results::{Cell, Listing};
use brickyard_serve::history::figures::{FIGURES, Unit};
use brickyard_serve::history::spans::{Range, spans};
use brickyard_serve::history::{HistoryError, time_of};
use serde_json::{Map, Value, json};

use super::Shown;
use super::time::exact;

/// A figure of a row.
type Figure = (Cow<'static, str>, Value);

/// Returns the rows of these hosts as CSV.
pub(super) fn csv(hosts: &[Shown<'_>]) -> String {
    let mut listing = Listing::default();
    for shown in hosts {
        let host = ("host".into(), json!(shown.last().host));
        for row in rows(shown) {
            let row = [host.clone()]
                .into_iter()
                .chain(row.into_iter().flat_map(flat));
            let (columns, cells): (Vec<_>, Vec<Cell>) =
                row.map(|(name, value)| (name, value.into())).unzip();
            listing.push(cells);
            if listing.columns.is_empty() {
                listing.columns = columns.into_iter().map(Cow::into_owned).collect();
            }
        }
    }
    listing.csv()
}

/// Returns a figure in fields of CSV: of a range, a field for each part.
fn flat((name, value): Figure) -> Vec<Figure> {
    let Value::Object(mut range) = value else {
        return vec![(name, value)];
    };
    let mut part = |part: &str| range.remove(part).unwrap_or_default();
    let ends = ["least", "most"].map(|end| (format!("{name}_{end}").into(), part(end)));
    [(name, part("median"))].into_iter().chain(ends).collect()
}

/// Returns these hosts as a JSON document.
pub(super) fn json(hosts: &[Shown<'_>], one_in: u64, faults: &[HistoryError]) -> Value {
    let object = |row: Vec<Figure>| {
        let row = row.into_iter();
        Map::from_iter(row.map(|(name, value)| (name.into_owned(), value)))
    };
    let host = |shown: &Shown<'_>| {
        let last = shown.last();
        json!({
            "host": last.host,
            "kernel": last.kernel,
            "every_seconds": shown.every.map(|every| every as f64 / 1000.0),
            "rows": rows(shown).map(object).collect::<Vec<_>>(),
        })
    };
    let hosts: Vec<Value> = hosts.iter().map(host).collect();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    json!({ "one_in": one_in, "hosts": hosts, "left_out": faults })
}

/// Returns the figures of each row, by name.
fn rows<'a>(shown: &'a Shown<'_>) -> Box<dyn Iterator<Item = Vec<Figure>> + 'a> {
    let head = |time| ("time".into(), exact(time_of(time)).into());
    let name = |place: usize| FIGURES[place].name.into();
    let Some(every) = shown.every else {
        return Box::new(shown.rows.iter().map(move |row| {
            let value = |place: usize| number(row.figures.get(place).copied().flatten());
            let figures = shown.places.iter();
            let figures = figures.map(|&place| (name(place), value(place)));
            [head(row.time)].into_iter().chain(figures).collect()
        }));
    };
    let spans = spans(shown.rows, every, shown.places).into_iter();
    Box::new(spans.map(move |span| {
        let samples = ("samples".into(), span.samples.into());
        let figures = shown.places.iter().zip(&span.figures);
        let figures = figures.map(|(&place, range)| {
            let of = |part: fn(Range) -> f64| number(range.map(part));
            let median = of(|range| range.median);
            let value = match FIGURES[place].unit {
                Unit::Total => median,
                _ => json!({
                    "least": of(|range| range.least),
                    "median": median,
                    "most": of(|range| range.most),
                }),
            };
            (name(place), value)
        });
        [head(span.start), samples]
            .into_iter()
            .chain(figures)
            .collect()
    }))
}

/// Whole numbers without a fraction; `null` for what is unknown.
fn number(value: Option<f64>) -> Value {
    match value {
        Some(value) if value.fract() == 0.0 && (0.0..9e15).contains(&value) => {
            (value as u64).into()
        }
        other => other.into(),
    }
}
