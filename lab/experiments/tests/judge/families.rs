//! Which tests are corrected together.

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{Claim, Document, Figure, Statistic, Table, TableLine};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_results::Better;

use super::{data, document, figure, key, two_workloads};

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
        lines: vec![TableLine {
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
