//! Geometric means of several ratios, measured and printed, and the sentences with them.

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{Claim, Figure, Finding, Piece, ShownIn, Statistic};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::{IntervalMethod, Summary};

use super::{document, two_workloads};

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
    let found = judgement.interval.unwrap();
    let (low, high) = (found.ends.low, found.ends.high);
    assert!((low.ln() - (middle - reach)).abs() < 1e-9);
    assert!((high.ln() - (middle + reach)).abs() < 1e-9);
    assert_eq!(found.method, IntervalMethod::LogRatios);
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
