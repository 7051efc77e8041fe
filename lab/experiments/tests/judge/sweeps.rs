//! The same comparison under other assumptions.

use brickyard_experiments::document::{Statistic, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::Better;

use super::{data, document, figure, swept};

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

#[test]
fn a_sweep_decides_what_one_assumed_machine_cannot() {
    let base: (&str, &[f64], &[f64]) = ("", &[10.0], &[20.0]);
    let large: (&str, &[f64], &[f64]) = ("memory-2", &[10.0], &[30.0]);
    for (small, published, expected) in [
        (15.0, 2.0, Verdict::Same),
        (15.0, 50.0, Verdict::DirectionOnly),
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
    for kind in [Method::Replayed, Method::Simulated] {
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

/// Of replays in a few phases the mean is what counts: the figure itself shows how much they vary.
#[test]
fn members_that_are_replayed_count_by_their_means() {
    let own: (&str, &[f64], &[f64]) = ("", &[10.0; 5], &[19.0, 20.0, 21.0, 20.0, 20.5]);
    for (new, expected) in [
        ([12.0, 40.0], Verdict::Same),
        ([8.0, 11.0], Verdict::Depends),
    ] {
        let data = swept(Method::Replayed, &[own, ("a", &[10.0; 2], &new)]);
        let figure = figure(Statistic::Mean, Some(2.0)).swept(&["a"]);
        let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
        assert_eq!(judgement.verdict, Some(expected), "{new:?}");
        assert!(judgement.interval.is_some());
    }
    // The figure itself has an interval over its phases, and may be undecided.
    let own: (&str, &[f64], &[f64]) = ("", &[10.0; 5], &[2.0, 60.0, 5.0, 50.0, 9.0]);
    let data = swept(Method::Replayed, &[own, ("a", &[10.0; 2], &[5.0, 20.0])]);
    let figure = figure(Statistic::Mean, Some(2.0)).swept(&["a"]);
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    assert!(matches!(
        judgement.verdict,
        Some(Verdict::Undecided | Verdict::Depends)
    ));
}

/// A machine that has nothing at all under one assumption was varied all the same.
#[test]
fn a_member_with_a_zero_has_a_direction() {
    let base: (&str, &[f64], &[f64]) = ("", &[10.0], &[20.0]);
    for (old, new, expected, ends) in [
        (0.0, 5.0, Verdict::DirectionOnly, (2.0, f64::INFINITY)),
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
