//! Every statistic of a figure, worked out by hand; intervals, tests and their correction on rows made for it.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use brickyard_report::{Better, Host};
use brickyard_reproduce::data::{Data, Key};
use brickyard_reproduce::document::{
    Claim, Document, Figure, Finding, Judged, Piece, Place, Published, Statistic,
};
use brickyard_reproduce::judge::{Judge, Verdict};
use brickyard_reproduce::raw::{CellRows, Kind, Raw};

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

fn data(kind: Kind, better: Better, columns: &[(&str, &[f64])]) -> Data {
    let cell = |(config, values): &(&str, &[f64])| CellRows {
        cell: format!("x.{config}"),
        kind,
        seed: 1,
        host: Host::unknown(),
        rows: rows(config, better, values),
    };
    Data::new(columns.iter().map(cell).collect())
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
            claim: Claim::Untested,
        }),
        judged: if published.is_some() {
            Judged::Yes
        } else {
            Judged::No
        },
        decimals: 2,
        scale: 1.0,
    }
}

fn document(figures: &[Figure]) -> Document {
    let pieces = figures.iter().cloned().map(Piece::Figure).collect();
    Document {
        experiment: "x",
        title: "",
        source: "",
        asked: "",
        findings: vec![Finding {
            pieces,
            place: Place::Document,
        }],
        mistakes: &[],
        tables: Vec::new(),
        today: Vec::new(),
        plots: Vec::new(),
    }
}

#[test]
fn each_statistic_is_what_its_name_says() {
    let data = data(
        Kind::Timed,
        Better::Lower,
        &[("old", &[4.0, 6.0]), ("new", &[1.0, 2.0, 6.0])],
    );
    let judge = Judge::new(&[], &data);
    let value = |statistic| judge.judge(&figure(statistic, None)).unwrap().value;
    assert_eq!(value(Statistic::Mean), 3.0);
    assert_eq!(value(Statistic::Median), 2.0);
    assert_eq!(value(Statistic::Min), 1.0);
    assert_eq!(value(Statistic::Max), 6.0);
    assert_eq!(value(Statistic::Range), 5.0);
    assert_eq!(value(Statistic::StdDev), 7.0_f64.sqrt());
    let interval = 1.959_963_984_540_054 * (7.0_f64 / 3.0).sqrt();
    assert!((value(Statistic::Interval95) - interval).abs() < 1e-12);
    assert_eq!(value(Statistic::Speedup), 5.0 / 3.0);
    assert_eq!(value(Statistic::Gain), 40.0);
    assert_eq!(value(Statistic::Difference), -2.0);
    assert_eq!(value(Statistic::DifferencePercent), -40.0);
    assert_eq!(value(Statistic::Share), 60.0);
    assert!((value(Statistic::GmeanSpeedup) - 5.0 / 3.0).abs() < 1e-12);
    let mean = judge.judge(&figure(Statistic::Mean, None)).unwrap();
    // Cells are sorted by name, so the rows of `new` come first.
    assert_eq!(
        (mean.rows, mean.n, mean.unit.as_str()),
        (vec![0, 1, 2, 3, 4], 3, "s")
    );
}

#[test]
fn what_was_not_measured_has_no_number() {
    let data = data(Kind::Timed, Better::Lower, &[("new", &[1.0])]);
    let judge = Judge::new(&[], &data);
    assert!(judge.judge(&figure(Statistic::Speedup, None)).is_none());
    assert!(judge.judge(&figure(Statistic::StdDev, None)).is_none());
    assert!(
        judge
            .judge(&figure(Statistic::GmeanSpeedup, None))
            .is_none()
    );
    assert_eq!(
        judge.judge(&figure(Statistic::Mean, None)).unwrap().value,
        1.0
    );
}

#[test]
fn a_direction_is_judged_by_the_interval_of_pairs() {
    // Runs differ by far more than the two sides do, and each pair agrees.
    let old = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0];
    let new: Vec<f64> = old.iter().map(|value| value * 0.9).collect();
    for (better, published, expected) in [
        (Better::Lower, 1.05, Verdict::Same),
        (Better::Lower, 0.95, Verdict::Opposite),
        (Better::Higher, 0.95, Verdict::Same),
        (Better::Higher, 1.05, Verdict::Opposite),
        // A tenth is the least that counts.
        (Better::Lower, 3.0, Verdict::WithinNoise),
    ] {
        let data = data(Kind::Timed, better, &[("old", &old), ("new", &new)]);
        let figure = figure(Statistic::Speedup, Some(published));
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{better} {published}");
        // Seven pairs, all of one sign: 2 of 128 ways.
        assert_eq!(judgement.p, Some(2.0 / 128.0));
        assert_eq!(judgement.p_holm, judgement.p);
        assert!(judgement.is_significant());
        assert_eq!(judgement.effect.unwrap() > 0.0, better == Better::Lower);
    }
}

#[test]
fn many_directions_are_corrected_together() {
    let old = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    let new = [9.0, 9.5, 10.0, 10.5, 11.0, 11.5];
    let mut cells = data(Kind::Timed, Better::Lower, &[("old", &old), ("new", &new)])
        .cells()
        .to_vec();
    let other = |cell: &CellRows, machine: &str| CellRows {
        cell: format!("{}.{machine}", cell.cell),
        rows: cell
            .rows
            .iter()
            .map(|raw| Raw {
                machine: machine.to_owned(),
                ..raw.clone()
            })
            .collect(),
        ..cell.clone()
    };
    cells.extend(cells.clone().iter().map(|cell| other(cell, "n")));
    let data = Data::new(cells);
    let first = figure(Statistic::Speedup, Some(1.1));
    let mut second = first.clone();
    for key in second.of.iter_mut().chain(&mut second.against) {
        key.machine = "n".to_owned();
    }
    // The same two sides by another statistic are the same test.
    let again = Figure {
        statistic: Statistic::Gain,
        ..first.clone()
    };
    let judge = Judge::new(&[document(&[first.clone(), second, again])], &data);
    let judgement = judge.judge(&first).unwrap();
    assert_eq!(judgement.p, Some(2.0 / 64.0));
    assert_eq!(judgement.p_holm, Some(4.0 / 64.0));
    assert!(!judgement.is_significant());
}

#[test]
fn one_exact_run_counts_and_one_timed_run_does_not() {
    for (kind, expected) in [
        (Kind::Replayed, Verdict::Same),
        (Kind::Timed, Verdict::WithinNoise),
    ] {
        let data = data(kind, Better::Lower, &[("old", &[2.0]), ("new", &[1.0])]);
        let figure = figure(Statistic::Speedup, Some(1.5));
        let judge = Judge::new(&[], &data);
        assert_eq!(judge.judge(&figure).unwrap().verdict, Some(expected));
    }
}
