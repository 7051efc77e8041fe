//! All rows as compact JSON in the page: each text once, and rows as numbers in the order of
//! [`Data::row`](crate::data::Data::row).

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use brickyard_pictures::markup::escape_json;
use serde::Serialize;

use super::figure::ROW;
use super::report::Report;
use crate::document::Statistic;
use crate::record;

/// What the script reads.
#[derive(Serialize)]
struct Embedded {
    /// The statistics by name: their description, and which of their numbers are better.
    statistics: BTreeMap<&'static str, (&'static str, Option<&'static str>)>,
    hosts: Vec<String>,
    /// Name, kind, seed, host, command. The seed is text: it may exceed the exact integers of
    /// JavaScript.
    cells: Vec<(String, &'static str, String, usize, String)>,
    /// Machine, workload, configuration, metric, unit, better.
    keys: Vec<[String; 6]>,
    rows: Vec<EmbeddedRow>,
}

/// A row: key, cell, run, value, and its time if it is a point of a series.
#[derive(Serialize)]
#[serde(untagged)]
enum EmbeddedRow {
    Sample(usize, usize, u32, f64),
    Point(usize, usize, u32, f64, f64),
}

/// Numbers given to values, in the order in which they first occur.
struct Words<W> {
    all: Vec<W>,
    known: HashMap<W, usize>,
}

impl<W: Clone + Eq + core::hash::Hash> Words<W> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn number(&mut self, word: W) -> usize {
        if let Some(&number) = self.known.get(&word) {
            return number;
        }
        self.all.push(word.clone());
        self.known.insert(word, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Writes the JSON as the content of a script element.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let json = serde_json::to_string(&embedded(report))?;
    out.write_all(escape_json(&json).as_bytes())
}

fn embedded(report: &Report<'_>) -> Embedded {
    let mut hosts = Words::new();
    let cells = report.data.cells().iter().map(|cell| {
        let command = (report.cell_command)(&cell.cell);
        let host = match report.behind.has(&cell.cell) {
            true => format!("recorded on {}: {}", record::DATE, cell.host),
            false => cell.host.to_string(),
        };
        let host = hosts.number(host);
        let seed = cell.seed.to_string();
        (cell.cell.clone(), cell.kind.name(), seed, host, command)
    });
    let cells: Vec<_> = cells.collect();
    let mut keys = Words::new();
    let mut rows = Vec::with_capacity(report.data.len());
    for (number, cell) in report.data.cells().iter().enumerate() {
        for raw in &cell.rows {
            let better = raw.better.name().to_owned();
            let words = [
                &raw.machine,
                &raw.workload,
                &raw.config,
                &raw.metric,
                &raw.unit,
            ];
            let [machine, workload, config, metric, unit] = words.map(String::clone);
            let key = keys.number([machine, workload, config, metric, unit, better]);
            rows.push(match raw.at {
                None => EmbeddedRow::Sample(key, number, raw.run, raw.value),
                Some(at) => EmbeddedRow::Point(key, number, raw.run, raw.value, at),
            });
        }
    }
    Embedded {
        statistics: statistics(),
        hosts: hosts.all,
        cells,
        keys: keys.all,
        rows,
    }
}

fn statistics() -> BTreeMap<&'static str, (&'static str, Option<&'static str>)> {
    let all = Statistic::ALL.into_iter();
    let all = all.map(|statistic| (statistic.name(), (statistic.words(), statistic.better())));
    all.chain([(ROW.0, (ROW.1, None))]).collect()
}
