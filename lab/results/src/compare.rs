//! Every configuration against the first: gain and significance, by the rules of mmtests'
//! `Compare.pm`.
//!
//! The first configuration is the baseline, and a positive gain is always better, whichever way the
//! metric goes. A difference is significant when the intervals mean +- 1.96 * stddev of the two
//! sides do not overlap. The deviation is that of the samples and not of their mean, so the rule is
//! much stricter than a t test: it is met where single runs tell the two apart, and more runs do
//! not make that easier.
//!
//! Values are arithmetic means, of rates too, as in the tables of 2013 and in the document's
//! `mean`; today's mmtests uses harmonic means of rates:
//! [`Summary::harmonic_mean`](crate::Summary::harmonic_mean).

use crate::grid::Grid;
use crate::{Better, Results, Row};

/// Half the width of the significance rule's interval, in deviations: the normal distribution's
/// 0.975 quantile.
pub const INTERVAL_DEVIATIONS: f64 = 1.959_963_984_540_054;

/// The gain where the baseline is zero and the new value better. It is arbitrary, and the one of
/// mmtests; so is [`LOSS_FROM_ZERO_PERCENT`].
const GAIN_FROM_ZERO_PERCENT: f64 = 100.0;

/// The gain where the baseline is zero and the new value worse.
const LOSS_FROM_ZERO_PERCENT: f64 = -99.0;

/// Returns the gain of `new` over `base` in percent: positive is better, equal is 0.
///
/// For higher-better metrics new * 100 / base - 100, for lower-better ones 100 - new * 100 / base
/// (`pdiff` and `pndiff` of mmtests). From a base of zero there is no percentage: 100 stands for
/// better and -99 for worse, as in mmtests. Unlike mmtests, a rate that falls to zero is -100 and
/// not 0, and the sign is right for negative values too. NaN where neither direction is better.
///
/// ```
/// use brickyard_results::{Better, gain_percent};
/// assert_eq!(gain_percent(Better::Higher, 150.0, 100.0), 50.0);
/// assert_eq!(gain_percent(Better::Lower, 150.0, 100.0), -50.0);
/// ```
pub fn gain_percent(better: Better, new: f64, base: f64) -> f64 {
    let improvement = match better {
        Better::Higher => new - base,
        Better::Lower => base - new,
        Better::Neither => return f64::NAN,
    };
    if improvement == 0.0 {
        0.0
    } else if base != 0.0 {
        improvement * 100.0 / base.abs()
    } else if improvement > 0.0 {
        GAIN_FROM_ZERO_PERCENT
    } else {
        LOSS_FROM_ZERO_PERCENT
    }
}

/// Whether a cell differs from the baseline by more than the scatter of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Significance {
    /// The two intervals do not overlap.
    Significant,
    /// They overlap.
    NotSignificant,
    /// One side has fewer than two samples, or the cell is the baseline itself.
    Untested,
}

/// One configuration's cell of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The number of samples.
    pub n: usize,
    /// Their mean, in the line's unit. `None` without samples.
    pub mean: Option<f64>,
    /// Their standard deviation, in the line's unit. `None` below two samples.
    pub stddev: Option<f64>,
    /// The mean's gain over the baseline's. `None` where either is missing, and where neither
    /// direction is better.
    pub gain_percent: Option<f64>,
    /// The deviation's gain over the baseline's; lower is better, whichever direction of the metric
    /// is. `None` where neither direction of the metric is better.
    pub stddev_gain_percent: Option<f64>,
    /// Whether the means differ significantly.
    pub significance: Significance,
}

/// A document's rows, side by side; the first configuration is the baseline.
pub type Comparison<'a> = Grid<'a, Cell>;

impl<'a> Comparison<'a> {
    /// Lays the rows of `results` side by side. Linear in rows times configurations.
    #[must_use]
    pub fn new(results: &'a Results) -> Self {
        Self::of(results, cells)
    }
}

/// Makes the cells of a line of the grid.
fn cells(rows: &[Option<&Row>]) -> Vec<Option<Cell>> {
    let baseline = rows.first().copied().flatten();
    let of = |(column, row): (usize, &Option<&Row>)| {
        let significance = |row| match baseline {
            Some(base) if column > 0 => significance(row, base),
            _ => Significance::Untested,
        };
        row.map(|row| cell(row, baseline, significance(row)))
    };
    rows.iter().enumerate().map(of).collect()
}

/// Compares a row with the baseline's row, if the baseline has one.
fn cell(row: &Row, baseline: Option<&Row>, significance: Significance) -> Cell {
    let gain = |better, new: Option<f64>, base: Option<f64>| {
        let gain = gain_percent(better, new?, base?);
        gain.is_finite().then_some(gain)
    };
    let (new, base) = (row.summary(), baseline.map(Row::summary));
    let better = row.metric().better;
    let of_deviations = match better {
        Better::Neither => Better::Neither,
        Better::Higher | Better::Lower => Better::Lower,
    };
    Cell {
        n: new.n(),
        mean: new.mean(),
        stddev: new.stddev(),
        gain_percent: gain(better, new.mean(), base.and_then(|base| base.mean())),
        stddev_gain_percent: gain(
            of_deviations,
            new.stddev(),
            base.and_then(|base| base.stddev()),
        ),
        significance,
    }
}

/// Applies mmtests' rule: significant unless the intervals of the two rows overlap.
fn significance(row: &Row, baseline: &Row) -> Significance {
    let (Some(new), Some(base)) = (interval(row), interval(baseline)) else {
        return Significance::Untested;
    };
    if new.0 > base.1 || base.0 > new.1 {
        Significance::Significant
    } else {
        Significance::NotSignificant
    }
}

/// Returns mean - 1.96 * stddev and mean + 1.96 * stddev. `None` below two samples.
fn interval(row: &Row) -> Option<(f64, f64)> {
    let mean = row.summary().mean()?;
    let reach = INTERVAL_DEVIATIONS * row.summary().stddev()?;
    Some((mean - reach, mean + reach))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Metric};

    const RATE: Metric<'static> = Metric::higher("rate", "ops/s");

    fn results(rows: &[(&str, &str, &[f64])]) -> Results {
        let mut results = Results::new("test", Host::unknown());
        for (config, workload, samples) in rows {
            results
                .push(Row::new(*config, *workload, RATE, samples.to_vec()).unwrap())
                .unwrap();
        }
        results
    }

    fn second_cell(base: &[f64], new: &[f64]) -> Cell {
        let results = results(&[("base", "w", base), ("new", "w", new)]);
        Comparison::new(&results).lines()[0].cells[1].unwrap()
    }

    /// Gains as printed in the tables of 2013: cycles are lower-better, faults a second
    /// higher-better.
    #[test]
    fn gains_of_the_published_tables() {
        for (better, base, new, printed) in [
            (Better::Lower, 671.11, 734.11, "-9.39"),
            (Better::Lower, 666.33, 381.67, "42.72"),
            (Better::Higher, 819_914.93, 735_264.48, "-10.32"),
            (Better::Higher, 938_245.71, 939_198.40, "0.10"),
            // A deviation, from 12.14 to 50.04: published as -312.18 of unrounded numbers.
            (Better::Lower, 12.14, 50.04, "-312.19"),
        ] {
            assert_eq!(format!("{:.2}", gain_percent(better, new, base)), printed);
        }
    }

    #[test]
    fn gains_at_zero() {
        assert_eq!(gain_percent(Better::Higher, 0.0, 0.0), 0.0);
        assert_eq!(gain_percent(Better::Higher, 3.0, 0.0), 100.0);
        assert_eq!(gain_percent(Better::Lower, 3.0, 0.0), -99.0);
        assert_eq!(gain_percent(Better::Lower, 0.0, 3.0), 100.0);
        assert_eq!(gain_percent(Better::Higher, 0.0, 3.0), -100.0);
    }

    #[test]
    fn significant_where_the_intervals_do_not_overlap() {
        // Deviations 1 and 1: the intervals reach 1.96 to either side, so they overlap up to a
        // distance of 3.92.
        assert_eq!(
            second_cell(&[9.0, 10.0, 11.0], &[13.0, 14.0, 15.0]).significance,
            Significance::Significant
        );
        assert_eq!(
            second_cell(&[13.0, 14.0, 15.0], &[9.0, 10.0, 11.0]).significance,
            Significance::Significant
        );
        let near = second_cell(&[9.0, 10.0, 11.0], &[12.9, 13.9, 14.9]);
        assert_eq!(near.significance, Significance::NotSignificant);
        // Without scatter, any difference is significant.
        assert_eq!(
            second_cell(&[5.0, 5.0], &[6.0, 6.0]).significance,
            Significance::Significant
        );
        assert_eq!(
            second_cell(&[5.0, 5.0], &[5.0, 5.0]).significance,
            Significance::NotSignificant
        );
        // The scatter of a single sample is unknown.
        assert_eq!(
            second_cell(&[5.0], &[6.0, 6.0]).significance,
            Significance::Untested
        );
        assert_eq!(
            second_cell(&[5.0, 5.0], &[6.0]).significance,
            Significance::Untested
        );
    }

    #[test]
    fn deviations_are_lower_better_even_of_rates() {
        let cell = second_cell(&[9.0, 10.0, 11.0], &[18.0, 20.0, 22.0]);
        assert_eq!(
            (cell.gain_percent, cell.stddev_gain_percent),
            (Some(100.0), Some(-100.0))
        );
    }

    #[test]
    fn a_metric_without_a_better_direction_has_no_gain() {
        assert!(gain_percent(Better::Neither, 3.0, 2.0).is_nan());
        let neither = Metric::new(RATE.name, RATE.unit, Better::Neither);
        let mut results = Results::new("test", Host::unknown());
        for (config, samples) in [("base", [1.0, 2.0]), ("new", [3.0, 5.0])] {
            let row = Row::new(config, "w", neither, samples.to_vec()).unwrap();
            results.push(row).unwrap();
        }
        let cell = Comparison::new(&results).lines()[0].cells[1].unwrap();
        assert_eq!(
            (cell.mean, cell.gain_percent, cell.stddev_gain_percent),
            (Some(4.0), None, None)
        );
    }

    #[test]
    fn missing_rows_give_no_cell() {
        let results = results(&[
            ("base", "v", &[1.0]),
            ("new", "w", &[2.0]),
            ("new", "v", &[]),
        ]);
        let comparison = Comparison::new(&results);
        let [v, w] = comparison.lines() else {
            panic!("two lines")
        };
        assert_eq!((v.workload, w.workload), ("v", "w"));
        assert_eq!(v.cells[1].unwrap().gain_percent, None);
        assert_eq!(w.cells[0], None);
        assert_eq!(
            (w.cells[1].unwrap().mean, w.cells[1].unwrap().gain_percent),
            (Some(2.0), None)
        );
    }
}
