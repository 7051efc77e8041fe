//! The figures for other programs: CSV and JSON. Without `--every` each sample is a row, as in the
//! files; with it, each span: of a figure the median, the least and the most, of a total how much
//! it grew.

use brickyard_serve::history::HistoryError;
use brickyard_serve::history::figures::{FIGURES, HostRow, Unit};
use brickyard_serve::history::spans::{Range, spans};
use serde_json::{Map, Value, json};

use super::Shown;
use super::time::exact;
use brickyard_serve::history::time_of;

/// Returns the rows of these hosts as CSV.
pub(super) fn csv(hosts: &[Shown<'_>]) -> String {
    let Some(first) = hosts.first() else {
        return String::new();
    };
    let mut text = "host,time".to_owned();
    if first.every.is_some() {
        text += ",samples";
    }
    for &place in first.places {
        let name = FIGURES[place].name;
        text += &format!(",{name}");
        if first.every.is_some() && !is_total(place) {
            text += &format!(",{name}_least,{name}_most");
        }
    }
    text.push('\n');
    for shown in hosts {
        let host = quoted(&shown.last().host);
        match shown.every {
            None => {
                for row in shown.rows {
                    let values = shown.places.iter().map(|&place| number(value(row, place)));
                    line(&mut text, &host, row.time, values);
                }
            }
            Some(every) => {
                for span in spans(shown.rows, every, shown.places) {
                    let ranges = shown.places.iter().zip(&span.figures);
                    let values = ranges.flat_map(|(&place, range)| {
                        let of = |part: fn(Range) -> f64| number(range.map(part));
                        let mut values = vec![of(|range| range.median)];
                        if !is_total(place) {
                            values.extend([of(|range| range.least), of(|range| range.most)]);
                        }
                        values
                    });
                    let samples = core::iter::once(span.samples.to_string());
                    line(&mut text, &host, span.start, samples.chain(values));
                }
            }
        }
    }
    text
}

fn line(text: &mut String, host: &str, time: u64, values: impl Iterator<Item = String>) {
    text.push_str(host);
    text.push(',');
    text.push_str(&exact(time_of(time)));
    for value in values {
        text.push(',');
        text.push_str(&value);
    }
    text.push('\n');
}

/// Returns these hosts as a JSON document.
pub(super) fn json(hosts: &[Shown<'_>], one_in: u64, faults: &[HistoryError]) -> Value {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|shown| {
            let last = shown.last();
            json!({
                "host": last.host,
                "kernel": last.kernel,
                "every_seconds": shown.every.map(|every| every as f64 / 1000.0),
                "rows": rows(shown),
            })
        })
        .collect();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    json!({ "one_in": one_in, "hosts": hosts, "left_out": faults })
}

fn rows(shown: &Shown<'_>) -> Vec<Value> {
    let head = |time| {
        let mut row = Map::new();
        row.insert("time".to_owned(), exact(time_of(time)).into());
        row
    };
    let name = |place: usize| FIGURES[place].name.to_owned();
    let Some(every) = shown.every else {
        let row = |row: &HostRow| {
            let mut object = head(row.time);
            for &place in shown.places {
                object.insert(name(place), number_of(value(row, place)));
            }
            object.into()
        };
        return shown.rows.iter().map(row).collect();
    };
    let spans = spans(shown.rows, every, shown.places);
    let row = |span: &brickyard_serve::history::spans::Span| {
        let mut object = head(span.start);
        object.insert("samples".to_owned(), span.samples.into());
        for (&place, range) in shown.places.iter().zip(&span.figures) {
            let of = |part: fn(Range) -> f64| number_of(range.map(part));
            let median = of(|range| range.median);
            let value = if is_total(place) {
                median
            } else {
                json!({
                    "least": of(|range| range.least),
                    "median": median,
                    "most": of(|range| range.most),
                })
            };
            object.insert(name(place), value);
        }
        object.into()
    };
    spans.iter().map(row).collect()
}

fn is_total(place: usize) -> bool {
    FIGURES[place].unit == Unit::Total
}

fn value(row: &HostRow, place: usize) -> Option<f64> {
    let value = row.figures.get(place).copied().flatten();
    value.filter(|value| value.is_finite())
}

/// Formats a figure; nothing for one that is unknown.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Whole numbers without a fraction.
fn number_of(value: Option<f64>) -> Value {
    match value {
        Some(value) if value.fract() == 0.0 && (0.0..9e15).contains(&value) => {
            (value as u64).into()
        }
        other => other.into(),
    }
}

/// Quotes a text for a field of CSV.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
