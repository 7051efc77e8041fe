//! What is timed is timed in two sittings, which must agree.

use brickyard_experiments::document::{Statistic, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::{Method, SITTING};
use brickyard_results::Better;

use super::{data, figure};

/// Returns the verdict on a side of these ratios, a sitting each, and whether there was only one.
fn judged(published: f64, sittings: &[[f64; SITTING as usize]]) -> (Option<Verdict>, bool) {
    let ratios: Vec<f64> = sittings.iter().flatten().copied().collect();
    let old: Vec<f64> = (1..=ratios.len()).map(|run| 10.0 + run as f64).collect();
    let new: Vec<f64> = old.iter().zip(&ratios).map(|(old, by)| old * by).collect();
    let data = data(
        Method::Timed,
        Better::Higher,
        &[("old", &old), ("new", &new)],
    );
    let figure = figure(Statistic::Speedup, Some(published));
    let judgement = Judge::new(&[], &data).judge(&figure).unwrap();
    (judgement.verdict, judgement.once)
}

/// Ratios about this one.
fn about(ratio: f64) -> [f64; SITTING as usize] {
    let near = [0.99, 1.01, 1.0, 1.005, 0.995, 1.002, 0.998, 1.0];
    near.map(|by| by * ratio)
}

#[test]
fn a_timed_direction_counts_if_both_sittings_have_it() {
    let noisy = [0.5, 2.0, 0.7, 1.5, 1.1, 0.6, 1.9, 1.2];
    for (published, sittings, expected) in [
        (1.3, [about(1.3), about(1.25)], Verdict::Same),
        (1.3, [about(1.3), about(1.6)], Verdict::Same),
        (1.3, [about(0.8), about(0.7)], Verdict::Opposite),
        // Together they have the direction, and one of them has it not.
        (1.3, [about(1.6), about(0.97)], Verdict::Undecided),
        (1.3, [about(1.6), noisy], Verdict::Undecided),
        (1.3, [about(1.0), about(1.001)], Verdict::NoEffect),
        // None was published.
        (1.0, [about(1.3), about(1.2)], Verdict::OnlyHere),
        (1.0, [about(1.3), about(0.8)], Verdict::Unclear),
    ] {
        let found = judged(published, &sittings);
        assert_eq!(found, (Some(expected), false), "{published} {sittings:?}");
    }
}

#[test]
fn one_sitting_decides_nothing() {
    assert_eq!(judged(1.3, &[about(1.3)]), (Some(Verdict::Undecided), true));
    assert_eq!(judged(1.0, &[about(1.3)]), (Some(Verdict::Unclear), true));
}
