//! Measured zeros, which have no ratio.

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{Figure, Statistic, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::Better;

use super::{data, figure};

/// A side without any has a direction, though not a ratio.
#[test]
fn a_figure_that_is_zero_has_a_direction() {
    for (kind, old, new, expected) in [
        (
            Method::Simulated,
            [5.0, 5.0],
            [0.0, 0.0],
            Some(Verdict::Opposite),
        ),
        (
            Method::Simulated,
            [0.0, 0.0],
            [5.0, 5.0],
            Some(Verdict::DirectionOnly),
        ),
        (
            Method::Simulated,
            [0.0, 0.0],
            [0.0, 0.0],
            Some(Verdict::NoEffect),
        ),
        (
            Method::Simulated,
            [5.0, 6.0],
            [0.0, 0.0],
            Some(Verdict::Opposite),
        ),
        // It is zero at times.
        (
            Method::Simulated,
            [5.0, 0.0],
            [0.0, 0.0],
            Some(Verdict::Undecided),
        ),
    ] {
        let data = data(kind, Better::Higher, &[("old", &old), ("new", &new)]);
        let judgement = Judge::new(&[], &data)
            .judge(&figure(Statistic::Mean, Some(2.0)))
            .unwrap();
        assert_eq!(judgement.verdict, expected, "{kind} {old:?} {new:?}");
        assert_eq!(judgement.speedup, None);
    }
}

/// The documents print them as whole numbers: less than half a one counts as half a one.
#[test]
fn no_huge_page_counts_as_half_a_unit() {
    let huge = |values: &[(&str, f64)]| {
        let cells = values.iter().map(|&(config, value)| {
            let of_one = data(Method::Replayed, Better::Higher, &[(config, &[value])]);
            let mut cell = of_one.cells()[0].clone();
            for row in &mut cell.rows {
                row.metric = "huge-pages".to_owned();
            }
            cell
        });
        Data::new(cells.collect()).unwrap()
    };
    let key = |config| Key::new("x", "m", "w", config, "huge-pages");
    for (old, new, expected) in [
        (0.0, 5.0, 10.0),
        (0.2, 5.0, 10.0),
        (5.0, 0.0, 0.1),
        (0.0, 0.0, 1.0),
        (2.0, 5.0, 2.5),
    ] {
        let data = huge(&[("old", old), ("new", new)]);
        let judge = Judge::new(&[], &data);
        let speedup = Figure::compared(Statistic::Speedup, key("new"), key("old"));
        assert_eq!(judge.judge(&speedup).unwrap().value, expected);
        let mean = Figure::mean(key("new")).against(key("old"));
        let judgement = judge.judge(&mean).unwrap();
        assert_eq!((judgement.value, judgement.speedup), (new, Some(expected)));
        let of_several = Figure::gmean(vec![key("new")], vec![key("old")]);
        let found = judge.judge(&of_several).unwrap().value;
        assert!((found - expected).abs() < 1e-12, "{found}");
    }
}
