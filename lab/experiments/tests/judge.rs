//! Every statistic of a figure against values computed by hand; intervals, tests and their
//! correction on made-up rows.

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::directions::Directions;
use brickyard_experiments::document::{
    Among, Claim, Document, Figure, Finding, Judged, Line, Piece, Published, ShownIn, Statistic,
    Table,
};
use brickyard_experiments::judge::{Judge, Verdict};
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_report::{Better, Host, PairedT, Summary, Welch};

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
        mistakes: &[],
        tables: Vec::new(),
        today: Vec::new(),
        plots: Vec::new(),
    }
}

#[test]
fn each_statistic_has_the_value_of_its_definition() {
    let data = data(
        Method::Timed,
        Better::Lower,
        &[("old", &[4.0, 5.0, 6.0]), ("new", &[1.0, 2.0, 6.0])],
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
        (vec![0, 1, 2, 3, 4, 5], 3, "s")
    );
}

#[test]
fn what_was_not_measured_has_no_number() {
    let data = data(Method::Timed, Better::Lower, &[("new", &[1.0])]);
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
        (Better::Lower, 1.1, Verdict::Same),
        (Better::Lower, 0.95, Verdict::Opposite),
        (Better::Higher, 0.95, Verdict::OtherSize),
        (Better::Higher, 1.05, Verdict::Opposite),
        // Less than a tenth does not count.
        (Better::Lower, 3.0, Verdict::WithinNoise),
    ] {
        let data = data(Method::Timed, better, &[("old", &old), ("new", &new)]);
        let figure = figure(Statistic::Speedup, Some(published));
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{better} {published}");
        // Seven pairs, all of one sign: 2 of 128 ways.
        assert_eq!(judgement.p, Some(2.0 / 128.0));
        assert_eq!(judgement.p_holm, judgement.p);
        assert!(judgement.is_significant());
        assert_eq!(judgement.effect.unwrap() > 0.0, better == Better::Lower);
        assert_eq!(judgement.interval_by, Some("t of log ratios"));
    }
}

#[test]
fn a_few_pairs_are_judged_by_student() {
    // Both have grown, but two pairs are too few to be sure.
    let data = data(
        Method::Timed,
        Better::Higher,
        &[("old", &[10.0, 20.0]), ("new", &[10.5, 22.5])],
    );
    let figure = figure(Statistic::Speedup, Some(1.1));
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    let (low, high) = judgement.interval.unwrap();
    assert!(low < 1.0 && high > 1.1);
    assert_eq!(judgement.verdict, Some(Verdict::WithinNoise));
    let p = PairedT::of(&[10.5, 22.5], &[10.0, 20.0]).map(|test| test.p);
    assert_eq!(judgement.p, p);
}

#[test]
fn from_ten_samples_on_the_interval_is_bootstrapped() {
    let old: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i * 3 % 10)).collect();
    let new: Vec<f64> = old.iter().rev().map(|value| value * 1.2).collect();
    let data = data(
        Method::Timed,
        Better::Higher,
        &[("old", &old), ("new", &new)],
    );
    let figure = figure(Statistic::Speedup, Some(1.1));
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    assert_eq!(judgement.interval_by, Some("bootstrap"));
    assert_eq!(judgement.verdict, Some(Verdict::Same));
}

#[test]
fn exact_samples_that_do_not_vary_are_one_run() {
    // Seven pairs, all of one sign; but they are the same run seven times.
    let (old, new) = ([2.0; 7], [1.9, 1.9, 1.9, 1.9, 1.9, 1.9, 1.900_000_001]);
    for (kind, exact) in [(Method::Simulated, true), (Method::Timed, false)] {
        let data = data(kind, Better::Lower, &[("old", &old), ("new", &new)]);
        let figure = figure(Statistic::Speedup, Some(1.5));
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.p.is_none(), exact);
        assert_eq!(judgement.p_holm.is_none(), exact);
        assert_eq!(judgement.interval.is_none(), exact);
        assert_eq!(judgement.effect.is_none(), exact);
        assert_eq!(judgement.verdict, Some(Verdict::OtherSize));
    }
}

#[test]
fn if_no_difference_was_published_a_large_one_is_only_here() {
    for (kind, new, expected) in [
        (Method::Simulated, [2.01; 3], Verdict::NoDifference),
        (Method::Simulated, [2.1; 3], Verdict::OnlyHere),
        (Method::Timed, [2.01, 2.0, 1.99], Verdict::Unclear),
        (Method::Timed, [2.001, 2.0, 1.999], Verdict::NoDifference),
    ] {
        let data = data(kind, Better::Lower, &[("old", &[2.0; 3]), ("new", &new)]);
        let judge = Judge::new(&[], &data);
        let judgement = judge.judge(&figure(Statistic::Gain, Some(1.002))).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{kind} {new:?}");
    }
}

#[test]
fn a_percentage_of_zero_has_no_value() {
    for old in [[0.0, 0.0], [-1.0, -2.0]] {
        let data = data(
            Method::Timed,
            Better::Lower,
            &[("old", &old), ("new", &[1.0, 2.0])],
        );
        let judge = Judge::new(&[], &data);
        for statistic in [
            Statistic::Gain,
            Statistic::GainMin,
            Statistic::GainMax,
            Statistic::DifferencePercent,
            Statistic::Share,
        ] {
            let figure = figure(statistic, None);
            assert_eq!(judge.judge(&figure), None, "{statistic:?} {old:?}");
        }
        assert!(judge.judge(&figure(Statistic::Difference, None)).is_some());
    }
}

#[test]
fn many_directions_are_corrected_together() {
    let old = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    let new = [9.0, 9.5, 10.0, 10.5, 11.0, 11.5];
    let mut cells = data(
        Method::Timed,
        Better::Lower,
        &[("old", &old), ("new", &new)],
    )
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
    let data = Data::new(cells).unwrap();
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
fn the_tables_of_today_are_a_family_of_their_own() {
    let old = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    let [new, third] = [0.9, 0.8].map(|times| old.map(|value| value * times));
    let data = data(
        Method::Timed,
        Better::Lower,
        &[("old", &old), ("new", &new), ("third", &third)],
    );
    let judged = figure(Statistic::Speedup, Some(1.1));
    let of = |config, statistic| Figure {
        of: vec![key(config)],
        ..figure(statistic, None)
    };
    let cells = [
        of("new", Statistic::Gain),
        of("new", Statistic::Speedup),
        of("third", Statistic::Gain),
        of("third", Statistic::Mean),
    ];
    let today = Table {
        id: String::new(),
        title: String::new(),
        about: String::new(),
        head: Vec::new(),
        lines: vec![Line {
            head: String::new(),
            cells: cells.iter().cloned().map(Some).collect(),
        }],
    };
    let document = Document {
        today: vec![today],
        ..document(core::slice::from_ref(&judged))
    };
    let judge = Judge::new(&[document], &data);
    let p_holm = |figure| judge.judge(figure).unwrap().p_holm;
    assert_eq!(p_holm(&judged), Some(2.0 / 64.0));
    // Two comparisons, in whatever form they are shown.
    assert_eq!(p_holm(&cells[0]), Some(4.0 / 64.0));
    assert_eq!(p_holm(&cells[1]), Some(4.0 / 64.0));
    assert_eq!(p_holm(&cells[2]), Some(4.0 / 64.0));
    assert_eq!(p_holm(&cells[3]), None);
}

#[test]
fn one_run_decides_nothing() {
    for (kind, expected) in [
        // It would be the same again, but its machine is assumed.
        (Method::Replayed, Some(Verdict::NotSwept)),
        // Another seed may give another.
        (Method::Simulated, None),
        (Method::Timed, None),
    ] {
        let data = data(kind, Better::Lower, &[("old", &[2.0]), ("new", &[1.0])]);
        let figure = figure(Statistic::Speedup, Some(1.5));
        let judge = Judge::new(&[], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.verdict, expected);
        assert_eq!(judgement.assumed, kind == Method::Replayed);
    }
}

/// Several runs of an assumed machine have an interval, and it is still the same machine.
#[test]
fn an_assumed_machine_decides_nothing_however_often_it_is_run() {
    let (old, new) = ([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]);
    let data = data(
        Method::Replayed,
        Better::Lower,
        &[("old", &old), ("new", &new)],
    );
    let judgement = Judge::new(&[], &data)
        .judge(&figure(Statistic::Speedup, Some(1.5)))
        .unwrap();
    assert!(judgement.interval.is_some() && !judgement.constant);
    assert_eq!(judgement.verdict, Some(Verdict::NotSwept));
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

#[test]
fn a_sweep_decides_what_one_assumed_machine_cannot() {
    let base: (&str, &[f64], &[f64]) = ("", &[10.0], &[20.0]);
    let large: (&str, &[f64], &[f64]) = ("memory-2", &[10.0], &[30.0]);
    for (small, published, expected) in [
        (15.0, 2.0, Verdict::Same),
        (15.0, 50.0, Verdict::OtherSize),
        (15.0, 0.5, Verdict::Opposite),
        (9.0, 2.0, Verdict::Depends),
        (10.0, 2.0, Verdict::Depends),
    ] {
        let data = swept(
            Method::Replayed,
            &[base, ("memory-1", &[10.0], &[small]), large],
        );
        let figure = figure(Statistic::Mean, Some(published)).swept(&["memory-1", "memory-2"]);
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{small} {published}");
        assert!(judgement.remains() && judgement.p.is_none());
        let sweep = judgement.sweep.unwrap();
        assert_eq!(sweep.members, 3);
        let ends =
            [&sweep.lowest, &sweep.highest].map(|end| (end.label.as_str(), end.value, end.n));
        assert_eq!(ends, [("memory-1", small / 10.0, 1), ("memory-2", 3.0, 1)]);
        // The rows of its own side come first.
        let values = sweep
            .lowest
            .rows
            .iter()
            .map(|&row| data.row(row).unwrap().1.value);
        assert_eq!(values.collect::<Vec<_>>(), [small, 10.0]);
        assert_eq!(judgement.value, 20.0);
    }
}

/// The figure itself is a member, and may be the lowest or the highest.
#[test]
fn a_figure_is_a_member_of_its_sweep() {
    let data = swept(
        Method::Replayed,
        &[("", &[10.0], &[20.0]), ("a", &[10.0], &[30.0])],
    );
    let figure = figure(Statistic::Mean, Some(2.0)).swept(&["a"]);
    let sweep = Judge::new(&[], &data)
        .judge(&figure)
        .unwrap()
        .sweep
        .unwrap();
    assert_eq!(sweep.lowest.label, "as in the table");
    assert_eq!((sweep.members, sweep.lowest.value), (2, 2.0));
}

/// As in a quick run.
#[test]
fn a_sweep_with_missing_rows_is_not_shown() {
    for kind in [Method::Replayed, Method::Simulated, Method::Timed] {
        let data = swept(
            kind,
            &[
                ("", &[10.0, 10.0], &[20.0, 20.5]),
                ("a", &[10.0, 10.0], &[20.0, 20.5]),
            ],
        );
        let figure = figure(Statistic::Mean, Some(2.0)).swept(&["a", "b"]);
        let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(Verdict::NotSwept), "{kind}");
        assert_eq!(judgement.sweep, None);
    }
}

/// Each member has its own interval, and a member that cannot decide has not the direction.
#[test]
fn members_with_several_runs_have_intervals() {
    let clear: (&[f64], &[f64]) = (&[10.0, 11.0, 12.0], &[12.0, 13.3, 14.3]);
    for (new, expected) in [
        (&[12.2, 13.0, 14.5], Verdict::Same),
        (&[9.0, 13.0, 12.4], Verdict::Depends),
    ] {
        let members = [("", clear.0, clear.1), ("a", clear.0, &new[..])];
        let data = swept(Method::Simulated, &members);
        let figure = figure(Statistic::Gain, Some(1.2)).swept(&["a"]);
        let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected));
    }
}

#[test]
fn a_claim_about_a_value_needs_no_other_side() {
    let of = |kind, value: &[f64]| data(kind, Better::Higher, &[("new", value)]);
    let claim = || Figure::mean(key("new")).at_least(40, "at least 40");
    for (kind, values, expected) in [
        (Method::Simulated, &[40.0, 40.0][..], Some(Verdict::Same)),
        (Method::Simulated, &[39.0, 39.0], Some(Verdict::Opposite)),
        (Method::Timed, &[39.0, 42.0], Some(Verdict::WithinNoise)),
        (Method::Timed, &[39.0], None),
        (Method::Replayed, &[50.0], Some(Verdict::NotSwept)),
    ] {
        let data = of(kind, values);
        let judgement = Judge::new(&[], &data).judge(&claim()).unwrap();
        assert_eq!(judgement.verdict, expected, "{kind} {values:?}");
        assert_eq!(judgement.speedup, None);
    }
    // Under other assumptions.
    let data = swept(
        Method::Replayed,
        &[("", &[1.0], &[50.0]), ("a", &[1.0], &[30.0])],
    );
    let judgement = Judge::new(&[], &data)
        .judge(&claim().swept(&["a"]))
        .unwrap();
    assert_eq!(judgement.verdict, Some(Verdict::Depends));
    let sweep = judgement.sweep.unwrap();
    assert_eq!((sweep.lowest.value, sweep.highest.value), (30.0, 50.0));
}

/// A machine that has nothing at all under one assumption was varied all the same.
#[test]
fn a_member_with_a_zero_has_a_direction() {
    let base: (&str, &[f64], &[f64]) = ("", &[10.0], &[20.0]);
    for (old, new, expected, ends) in [
        (0.0, 5.0, Verdict::Same, (2.0, f64::INFINITY)),
        (5.0, 0.0, Verdict::Depends, (0.0, 2.0)),
        (0.0, 0.0, Verdict::Depends, (1.0, 2.0)),
    ] {
        let data = swept(Method::Replayed, &[base, ("a", &[old], &[new])]);
        let figure = figure(Statistic::Gain, Some(2.0)).swept(&["a"]);
        let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{old} {new}");
        let sweep = judgement.sweep.unwrap();
        assert_eq!((sweep.lowest.value, sweep.highest.value), ends);
    }
}

/// Runs are paired by their number, even if one side has more of them.
#[test]
fn only_common_runs_are_compared() {
    let old: Vec<f64> = (1..=15).map(f64::from).collect();
    let new: Vec<f64> = old[..5].iter().map(|value| value * 1.01).collect();
    let data = data(
        Method::Simulated,
        Better::Higher,
        &[("old", &old), ("new", &new)],
    );
    let figure = figure(Statistic::Speedup, Some(1.02));
    let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
    let judgement = judge.judge(&figure).unwrap();
    assert!((judgement.value - 1.01).abs() < 1e-12);
    assert_eq!((judgement.n, judgement.rows.len()), (5, 10));
    assert_eq!(judgement.verdict, Some(Verdict::Same));
    let (low, high) = judgement.interval.unwrap();
    assert!(low > 1.009 && high < 1.011);
    assert!(judgement.is_significant());
}

/// Sides without a common run are compared over all their runs.
#[test]
fn sides_without_a_common_run_are_independent() {
    let mut cells = data(
        Method::Timed,
        Better::Higher,
        &[("old", &[1.0, 1.1, 0.9]), ("new", &[2.0, 2.1, 1.9])],
    )
    .cells()
    .to_vec();
    for row in &mut cells[0].rows {
        row.run += 10;
    }
    let data = Data::new(cells).unwrap();
    let judgement = Judge::new(&[], &data)
        .judge(&figure(Statistic::Speedup, None))
        .unwrap();
    let welch = Welch::of(&[2.0, 2.1, 1.9], &[1.0, 1.1, 0.9]).map(|test| test.p);
    assert_eq!(judgement.p, welch);
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

fn gmean_of_two() -> Figure {
    let keys = |config| ["a", "b"].map(|workload| Key::new("x", "m", workload, config, "time"));
    Figure::gmean(keys("new").to_vec(), keys("old").to_vec())
}

#[test]
fn the_interval_of_a_geometric_mean_is_that_over_the_runs() {
    // The geometric means of the single runs are 2, 2.2 and 1.8.
    let data = two_workloads(Method::Timed, [&[4.0, 4.0, 4.0], &[1.0, 1.21, 0.81]]);
    let judgement = Judge::new(&[], &data).judge(&gmean_of_two()).unwrap();
    let logarithms = [2.0_f64, 2.2, 1.8].map(f64::ln);
    let summary = Summary::of(&logarithms).unwrap();
    let (middle, reach) = (summary.mean().unwrap(), summary.ci95().unwrap());
    let (low, high) = judgement.interval.unwrap();
    assert!((low.ln() - (middle - reach)).abs() < 1e-9);
    assert!((high.ln() - (middle + reach)).abs() < 1e-9);
    assert_eq!(judgement.interval_by, Some("t of log ratios"));
    assert!(!judgement.constant && !judgement.assumed);
}

#[test]
fn a_geometric_mean_of_constant_samples_has_no_interval() {
    let data = two_workloads(Method::Replayed, [&[4.0], &[1.0]]);
    let judgement = Judge::new(&[], &data).judge(&gmean_of_two()).unwrap();
    assert_eq!((judgement.value, judgement.n), (2.0, 2));
    assert!(judgement.constant && judgement.assumed && judgement.interval.is_none());
    // One simulated run each: it may vary, and has no interval.
    let data = two_workloads(Method::Simulated, [&[4.0], &[1.0]]);
    let judgement = Judge::new(&[], &data).judge(&gmean_of_two()).unwrap();
    assert!(!judgement.constant && judgement.interval.is_none());
}

#[test]
fn a_geometric_mean_with_a_zero_in_it_is_none() {
    let data = two_workloads(Method::Replayed, [&[4.0], &[0.0]]);
    assert_eq!(Judge::new(&[], &data).judge(&gmean_of_two()), None);
}

#[test]
fn the_same_samples_under_two_names_are_one_test() {
    let times: &[f64] = &[1.1, 1.2, 1.1, 1.3, 1.1, 1.2];
    for (kind, tests) in [(Method::Simulated, 1.0), (Method::Timed, 2.0)] {
        let data = two_workloads(kind, [times, times]);
        let of = |workload: &str| {
            let key = |config| Key::new("x", "m", workload, config, "time");
            Figure::new(Statistic::Speedup, key("new"))
                .against(key("old"))
                .printed("1.1")
                .judged(1.1, Claim::Untested)
        };
        let judge = Judge::new(&[document(&[of("a"), of("b")])], &data);
        for workload in ["a", "b"] {
            let judgement = judge.judge(&of(workload)).unwrap();
            assert_eq!(judgement.p, Some(2.0 / 64.0));
            assert_eq!(judgement.p_holm, Some(tests * 2.0 / 64.0), "{kind}");
        }
    }
}

/// Whatever is measured: it is in no family of tests, and counted apart from the directions.
#[test]
fn a_direction_whose_cause_is_missing_is_not_testable() {
    let times: &[f64] = &[1.1, 1.2, 1.1, 1.3, 1.1, 1.2];
    let data = data(
        Method::Simulated,
        Better::Lower,
        &[
            (
                "old",
                &times.iter().map(|time| 2.0 * time).collect::<Vec<_>>(),
            ),
            ("new", times),
        ],
    );
    let judged = figure(Statistic::Speedup, Some(1.1)).not_testable("no such part");
    let mut document = document(&[]);
    document.tables = vec![Table {
        id: String::new(),
        title: String::new(),
        about: String::new(),
        head: Vec::new(),
        lines: vec![Line {
            head: String::new(),
            cells: vec![Some(judged.clone())],
        }],
    }];
    let judge = Judge::new(core::slice::from_ref(&document), &data);
    let judgement = judge.judge(&judged).unwrap();
    assert_eq!(judgement.verdict, Some(Verdict::NotTestable));
    assert!(judgement.p_holm.is_none() && judgement.speedup.is_some());
    let counts = Directions::of(&|figure| judge.judge(figure), &document, Among::All);
    assert_eq!((counts.all(), counts.none_published()), (0, 0));
    assert_eq!(counts.not_testable, 1);
    // A figure that is only shown has no direction to test.
    let shown = figure(Statistic::Mean, None);
    assert_eq!(shown.clone().not_testable("no such part"), shown);
}

/// What is printed is averaged over the lines that were measured.
#[test]
fn a_printed_mean_is_over_the_measured_lines() {
    let data = two_workloads(Method::Replayed, [&[4.0], &[1.0]]);
    let mut cells = data.cells().to_vec();
    cells.retain(|cell| !cell.cell.ends_with(".b"));
    let part = Data::new(cells).unwrap();
    let of = |workload: &str, text, speedup| {
        let key = |config| Key::new("x", "m", workload, config, "time");
        Figure::compared(Statistic::Gain, key("new"), key("old"))
            .printed(text)
            .judged(speedup, Claim::Untested)
    };
    let figures = vec![of("a", "4", 4.0), of("b", "9", 9.0)];
    for (data, expected) in [
        (&data, Some("6.0 times")),
        (&part, Some("4.0 times")),
        (&Data::default(), None),
    ] {
        let judge = Judge::new(&[], data);
        let finding = Finding {
            pieces: vec![
                Piece::PrintedMean(figures.clone(), 1),
                Piece::Text(" times".to_owned()),
            ],
            shown: ShownIn::Document,
        };
        let message = finding.plain(&|figure| judge.judge(figure), &document(&[]));
        assert_eq!(message.as_deref(), expected);
    }
}

#[test]
fn a_sentence_notes_that_its_means_lack_keys() {
    let data = two_workloads(Method::Replayed, [&[4.0], &[1.0]]);
    let mut cells = data.cells().to_vec();
    cells.retain(|cell| !cell.cell.ends_with(".b"));
    for (data, expected) in [
        (&data, "2.00 times."),
        (
            &Data::new(cells).unwrap(),
            "4.00 times. (A full run has more: here means are over 1 of 2.)",
        ),
    ] {
        let judge = Judge::new(&[], data);
        let finding = Finding {
            pieces: vec![
                Piece::Figure(gmean_of_two()),
                Piece::Text(" times.".to_owned()),
            ],
            shown: ShownIn::Document,
        };
        let message = finding.plain(&|figure| judge.judge(figure), &document(&[]));
        assert_eq!(message.as_deref(), Some(expected));
    }
}
