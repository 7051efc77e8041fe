//! Properties for any samples: signs, ranges, and that a document is read back as it was written.

use brickyard_results::{
    Against, Better, Comparison, Format, Gmean, Host, Metric, Results, Row, Summary, TableOptions,
    gain_percent, parse_json,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Any finite number, down to the smallest and up to the largest.
fn finite() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

fn better() -> impl Strategy<Value = Better> {
    prop_oneof![Just(Better::Higher), Just(Better::Lower)]
}

/// A document of one workload and metric under the configurations `base` and `new`.
fn two(better: Better, base: Vec<f64>, new: Vec<f64>) -> Results {
    let metric = Metric {
        name: "m",
        unit: "u",
        better,
    };
    let mut results = Results::new("two", Host::unknown());
    for (config, samples) in [("base", base), ("new", new)] {
        let row = Row::new(config, "w", metric, samples).expect("samples are finite");
        results.push(row).expect("rows are distinct");
    }
    results
}

proptest! {
    #[test]
    fn statistics_are_finite_and_means_lie_within_the_samples(samples in vec(finite(), 1..40)) {
        let summary = Summary::of(&samples).expect("samples are finite");
        let (min, max) = (summary.min().expect("n > 0"), summary.max().expect("n > 0"));
        for mean in [summary.mean(), summary.median()].into_iter().flatten() {
            prop_assert!(min <= mean && mean <= max);
        }
        for width in [summary.stddev(), summary.ci95(), summary.variation_percent()].into_iter().flatten() {
            prop_assert!(width.is_finite() && width >= 0.0);
        }
    }

    #[test]
    fn the_order_of_samples_does_not_matter(mut samples in vec(finite(), 0..40)) {
        let before = Summary::of(&samples);
        samples.reverse();
        prop_assert_eq!(before, Summary::of(&samples));
    }

    #[test]
    fn positive_is_better(new in -1e9..1e9_f64, base in prop_oneof![Just(0.0), -1e9..1e9_f64]) {
        let higher = gain_percent(Better::Higher, new, base);
        prop_assert_eq!(higher > 0.0, new > base);
        prop_assert_eq!(higher < 0.0, new < base);
        let lower = gain_percent(Better::Lower, new, base);
        prop_assert_eq!(lower > 0.0, new < base);
        prop_assert_eq!(lower < 0.0, new > base);
    }

    #[test]
    fn positive_values_gain_by_the_formulas_of_mmtests(new in 1e-3..1e9_f64, base in 1e-3..1e9_f64) {
        let near = |got: f64, formula: f64| (got - formula).abs() <= 1e-9 * (100.0 + formula.abs());
        prop_assert!(near(gain_percent(Better::Higher, new, base), new * 100.0 / base - 100.0));
        prop_assert!(near(gain_percent(Better::Lower, new, base), 100.0 - new * 100.0 / base));
    }

    #[test]
    fn significance_is_symmetric(
        better in better(), base in vec(-1e6..1e6_f64, 0..6), new in vec(-1e6..1e6_f64, 0..6),
    ) {
        let verdict = |a: &[f64], b: &[f64]| {
            let results = two(better, a.to_vec(), b.to_vec());
            let comparison = Comparison::new(&results, Against::First);
            comparison.lines[0].cells[1].expect("the row exists").is_apart()
        };
        let there = verdict(&base, &new);
        prop_assert_eq!(there, verdict(&new, &base));
        prop_assert_eq!(there.is_none(), base.len() < 2 || new.len() < 2);
    }

    #[test]
    fn the_geometric_mean_of_one_line_is_its_ratio(better in better(), base in 1e-3..1e6_f64, new in 1e-3..1e6_f64) {
        let gmean = Gmean::of(better, [(better, new, base)]).expect("one ratio");
        let gain = gain_percent(better, new, base);
        prop_assert!((gmean.ratio - new / base).abs() <= 1e-9 * gmean.ratio);
        prop_assert!((gmean.gain_percent - gain).abs() <= 1e-6 * (100.0 + gain.abs()));
    }

    #[test]
    fn what_is_written_is_read_back_to_the_last_bit(
        samples in vec(finite(), 0..20), better in better(), config in ".*", workload in ".*", unit in ".*",
    ) {
        let metric = Metric { name: "m", unit: &unit, better };
        let mut results = Results::new("round trip", Host::unknown());
        results.push(Row::new(config, workload, metric, samples).expect("samples are finite")).expect("one row");
        let text = results.text(Format::Json, &TableOptions::default());
        let read = parse_json(&text).expect("our own document");
        prop_assert_eq!(read, results);
    }
}
