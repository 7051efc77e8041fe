//! Every statistic of a figure against values computed by hand; intervals, tests and their
//! correction on made-up rows.

mod claims;
mod directions;
mod families;
mod means;
mod sittings;
mod statistics;
mod sweeps;
mod worst;
mod zeros;

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{
    Claim, Document, Figure, Finding, Judged, Piece, Published, ShownIn, Statistic, Table,
    TableLine,
};
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_results::{Better, Host};

fn rows(config: &str, better: Better, values: &[f64]) -> Vec<Raw> {
    (1..)
        .zip(values)
        .map(|(run, &value)| Raw {
            machine: "m".to_owned(),
            workload: "w".to_owned(),
            config: config.to_owned(),
            metric: "time".to_owned(),
            unit: "s".to_owned(),
            better,
            run,
            at: None,
            value,
        })
        .collect()
}

fn data(kind: Method, better: Better, columns: &[(&str, &[f64])]) -> Data {
    let cell = |(config, values): &(&str, &[f64])| CellRows {
        cell: format!("x.{config}"),
        kind,
        seed: 1,
        host: Host::unknown(),
        program: String::new(),
        rows: rows(config, better, values),
    };
    Data::new(columns.iter().map(cell).collect()).unwrap()
}

fn key(config: &str) -> Key {
    Key::new("x", "m", "w", config, "time")
}

fn figure(statistic: Statistic, published: Option<f64>) -> Figure {
    Figure {
        statistic,
        of: vec![key("new")],
        against: vec![key("old")],
        published: published.map(|speedup| Published {
            text: "",
            speedup: Some(speedup),
            rounding: None,
            claim: Claim::Untested,
        }),
        judged: if published.is_some() {
            Judged::Yes
        } else {
            Judged::No
        },
        swept: Vec::new(),
        decimals: 2,
        scale: 1.0,
    }
}

fn table(cells: &[Figure]) -> Table {
    Table {
        id: String::new(),
        title: String::new(),
        about: String::new(),
        head: Vec::new(),
        lines: vec![TableLine {
            head: String::new(),
            cells: cells.iter().cloned().map(Some).collect(),
        }],
    }
}

fn document(figures: &[Figure]) -> Document {
    let pieces = figures.iter().cloned().map(Piece::Figure).collect();
    Document {
        experiment: "x",
        title: "",
        source: "",
        by: "",
        asked: "",
        claimed: "",
        decides: "",
        findings: vec![Finding {
            pieces,
            shown: ShownIn::Document,
        }],
        mistakes: Vec::new(),
        tables: Vec::new(),
        today: Vec::new(),
        plots: Vec::new(),
    }
}

/// Returns the rows of both sides as they are, and under other assumptions.
fn swept(kind: Method, members: &[(&str, &[f64], &[f64])]) -> Data {
    let mut cells = Vec::new();
    for (assumption, old, new) in members {
        let of_one = data(kind, Better::Higher, &[("old", old), ("new", new)]);
        let workload = match *assumption {
            "" => "w".to_owned(),
            assumption => format!("w {assumption}"),
        };
        cells.extend(of_one.cells().iter().map(|cell| {
            let rows = cell.rows.iter().map(|raw| Raw {
                workload: workload.clone(),
                ..raw.clone()
            });
            CellRows {
                cell: format!("{}.{assumption}", cell.cell),
                rows: rows.collect(),
                ..cell.clone()
            }
        }));
    }
    Data::new(cells).unwrap()
}

/// Returns rows of two configurations under the workloads `a` and `b`; in each run `new` is some
/// times `old`.
fn two_workloads(kind: Method, times: [&[f64]; 2]) -> Data {
    let mut cells = Vec::new();
    for (workload, times) in ["a", "b"].into_iter().zip(times) {
        let old: Vec<f64> = (1..=times.len()).map(|run| run as f64).collect();
        let new: Vec<f64> = old.iter().zip(times).map(|(old, by)| old * by).collect();
        let of_one = data(kind, Better::Higher, &[("old", &old), ("new", &new)]);
        cells.extend(of_one.cells().iter().map(|cell| {
            CellRows {
                cell: format!("{}.{workload}", cell.cell),
                rows: cell
                    .rows
                    .iter()
                    .map(|raw| Raw {
                        workload: workload.to_owned(),
                        ..raw.clone()
                    })
                    .collect(),
                ..cell.clone()
            }
        }));
    }
    Data::new(cells).unwrap()
}
