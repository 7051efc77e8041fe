//! How a single direction is judged: by its runs, and the interval of their ratio.

use brickyard_experiments::data::Data;
use brickyard_experiments::directions::Directions;
use brickyard_experiments::document::{Among, Statistic, Table, TableLine, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::{Better, IntervalMethod, Student};

use super::{data, document, figure};

#[test]
fn a_direction_is_judged_by_the_interval_of_pairs() {
    // Runs differ by far more than the two sides do, and each pair agrees.
    let old = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0];
    let new: Vec<f64> = old.iter().map(|value| value * 0.9).collect();
    for (better, published, expected) in [
        (Better::Lower, 1.1, Verdict::Same),
        (Better::Lower, 0.95, Verdict::Opposite),
        (Better::Higher, 0.95, Verdict::DirectionOnly),
        (Better::Higher, 1.05, Verdict::Opposite),
        // Less than a tenth does not count.
        (Better::Lower, 3.0, Verdict::NoEffect),
    ] {
        let data = data(Method::Simulated, better, &[("old", &old), ("new", &new)]);
        let figure = figure(Statistic::Speedup, Some(published));
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{better} {published}");
        // Seven pairs, all of one sign: 2 of 128 ways.
        assert_eq!(judgement.p, Some(2.0 / 128.0));
        assert_eq!(judgement.p_holm, judgement.p);
        assert!(judgement.is_significant());
        let method = judgement.interval.map(|found| found.method);
        assert_eq!(method, Some(IntervalMethod::LogRatios));
    }
}

#[test]
fn a_few_pairs_are_judged_by_student() {
    // Both have grown, but two pairs are too few to be sure.
    let data = data(
        Method::Simulated,
        Better::Higher,
        &[("old", &[10.0, 20.0]), ("new", &[10.5, 22.5])],
    );
    let figure = figure(Statistic::Speedup, Some(1.1));
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    let ends = judgement.interval.unwrap().ends;
    assert!(ends.low < 1.0 && ends.high > 1.1);
    assert_eq!(judgement.verdict, Some(Verdict::Undecided));
    let p = Student::of_pairs(&[10.5, 22.5], &[10.0, 20.0]).map(|test| test.p);
    assert_eq!(judgement.p, p);
}

#[test]
fn from_ten_samples_on_the_interval_is_bootstrapped() {
    let old: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i * 3 % 10)).collect();
    let new: Vec<f64> = old.iter().rev().map(|value| value * 1.2).collect();
    let data = data(
        Method::Simulated,
        Better::Higher,
        &[("old", &old), ("new", &new)],
    );
    let figure = figure(Statistic::Speedup, Some(1.1));
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    let method = judgement.interval.map(|found| found.method);
    assert_eq!(method, Some(IntervalMethod::Bootstrap));
    assert_eq!(judgement.verdict, Some(Verdict::Same));
}

#[test]
fn exact_samples_that_do_not_vary_are_one_run() {
    // Seven pairs, all of one sign; but they are the same run seven times.
    let (old, new) = ([2.0; 7], [1.9, 1.9, 1.9, 1.9, 1.9, 1.9, 1.900_000_001]);
    for (kind, exact, expected) in [
        (Method::Simulated, true, Verdict::DirectionOnly),
        // In one sitting.
        (Method::Timed, false, Verdict::Undecided),
    ] {
        let data = data(kind, Better::Lower, &[("old", &old), ("new", &new)]);
        let figure = figure(Statistic::Speedup, Some(1.5));
        let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
        let judgement = judge.judge(&figure).unwrap();
        assert_eq!(judgement.p.is_none(), exact);
        assert_eq!(judgement.p_holm.is_none(), exact);
        assert_eq!(judgement.interval.is_none(), exact);
        assert_eq!(judgement.verdict, Some(expected));
    }
}

#[test]
fn if_no_difference_was_published_a_large_one_is_only_here() {
    for (kind, new, expected) in [
        (Method::Simulated, [2.01; 3], Verdict::NoDifference),
        (Method::Simulated, [2.1; 3], Verdict::OnlyHere),
        (Method::Simulated, [2.01, 2.0, 1.99], Verdict::Unclear),
        (
            Method::Simulated,
            [2.001, 2.0, 1.999],
            Verdict::NoDifference,
        ),
    ] {
        let data = data(kind, Better::Lower, &[("old", &[2.0; 3]), ("new", &new)]);
        let judge = Judge::new(&[], &data);
        let judgement = judge.judge(&figure(Statistic::Gain, Some(1.002))).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{kind} {new:?}");
    }
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
    let ends = judgement.interval.unwrap().ends;
    assert!(ends.low > 1.009 && ends.high < 1.011);
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
    let welch = Student::of_sides(&[2.0, 2.1, 1.9], &[1.0, 1.1, 0.9]).map(|test| test.p);
    assert_eq!(judgement.p, welch);
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
        lines: vec![TableLine {
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
    assert_eq!(counts.number(Verdict::NotTestable), 1);
    // A figure that is only shown has no direction to test.
    let shown = figure(Statistic::Mean, None);
    assert_eq!(shown.clone().not_testable("no such part"), shown);
}
