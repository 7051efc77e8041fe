//! The smallest of several speedups, and the claim that none is a loss.

use brickyard_experiments::document::{Claim, Figure, Statistic, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::Better;

use super::{data, document, key};

/// A figure of two pairs, `a` over `b` and `c` over `d`.
fn worst() -> Figure {
    let figure = Figure {
        statistic: Statistic::WorstSpeedup,
        ..Figure::gmean(vec![key("a"), key("c")], vec![key("b"), key("d")])
    };
    figure.printed("no harm").judged(1.0, Claim::NoHarm)
}

fn judged(sides: &[(&str, &[f64])]) -> (f64, Option<Verdict>, bool) {
    let data = data(Method::Simulated, Better::Lower, sides);
    let figure = worst();
    let judge = Judge::new(&[document(core::slice::from_ref(&figure))], &data);
    let judgement = judge.judge(&figure).unwrap();
    (judgement.value, judgement.verdict, judgement.remains())
}

#[test]
fn no_pair_may_be_slower() {
    let even: &[f64] = &[1.0, 1.001, 0.999];
    let wide: &[f64] = &[0.95, 1.0, 1.05];
    let slow: &[f64] = &[1.1, 1.101, 1.099];
    let little: &[f64] = &[1.004, 1.005, 1.003];
    for (second, expected) in [
        (even, Verdict::Same),
        (little, Verdict::Same),
        (slow, Verdict::Opposite),
        // One that is not known well leaves it undecided, even if it is not the smallest.
        (wide, Verdict::Undecided),
    ] {
        let sides = [("a", even), ("b", even), ("c", second), ("d", even)];
        let (_, verdict, remains) = judged(&sides);
        assert_eq!(verdict, Some(expected), "{second:?}");
        assert!(!remains, "it is in no family of tests");
    }
    let (value, verdict, _) = judged(&[("a", wide), ("b", even), ("c", slow), ("d", even)]);
    assert_eq!(verdict, Some(Verdict::Opposite));
    assert!((value - 1.0 / 1.1).abs() < 1e-9, "{value}");
}

/// As in a quick or an interrupted run: the missing pair may be the one that harms.
#[test]
fn a_missing_pair_leaves_no_verdict() {
    let even: &[f64] = &[1.0, 1.001, 0.999];
    let (value, verdict, _) = judged(&[("a", even), ("b", even), ("c", even)]);
    assert_eq!((value, verdict), (1.0, None));
}

/// The ratio of the means and that of the pairs may point to different sides.
#[test]
fn a_value_on_the_other_side_of_its_interval_decides_nothing() {
    let of: &[f64] = &[1.2, 1.2, 1.2, 1.2, 1.2, 90.0];
    let against: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 100.0];
    let data = data(
        Method::Timed,
        Better::Higher,
        &[("new", of), ("old", against)],
    );
    let judgement = Judge::new(&[], &data)
        .judge(&super::figure(Statistic::Speedup, Some(1.1)))
        .unwrap();
    let ends = judgement.interval.unwrap().ends;
    assert!(
        ends.low > 1.0 && judgement.value < 1.0,
        "{ends:?} {}",
        judgement.value
    );
    assert_eq!(judgement.verdict, Some(Verdict::Undecided));
}
