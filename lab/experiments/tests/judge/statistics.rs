//! Every statistic against values computed by hand.

use brickyard_experiments::document::Statistic;
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::Better;

use super::{data, figure};

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
