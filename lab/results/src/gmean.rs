//! One number for a whole configuration: the geometric mean of its ratios to the baseline.
//!
//! This is the `Gmean` line of mmtests: ratios new / base of the means, and base / new where a
//! line's better direction is not the table's. It differs from mmtests in two points. A line that a
//! configuration lacks counts as 1 there, and a ratio with a zero as 0.00001; here both are left
//! out, and the cell has the number of lines it was made from. Zero on both sides is a ratio of 1.
//! Lines whose metric has no better direction are left out.

use crate::compare::gain_percent;
use crate::{Better, Comparison};

/// The geometric means of all configurations of a comparison.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gmean {
    /// The better direction of the ratios: that of the first line that has one.
    pub better: Better,
    /// One cell per configuration. `None` where no line gives a ratio.
    pub cells: Vec<Option<GmeanCell>>,
}

/// One configuration's geometric mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GmeanCell {
    /// The geometric mean of the ratios to the baseline; 1 is no difference.
    pub ratio: f64,
    /// Its gain over 1: positive is better.
    pub gain_percent: f64,
    /// How many lines gave a ratio.
    pub lines: usize,
}

impl Gmean {
    /// Computes the geometric means over all lines of `comparison` whose metric has a better
    /// direction. `None` if there are no such lines.
    ///
    /// ```
    /// use brickyard_results::{Better, Comparison, Gmean, Host, Metric, Results, Row};
    /// const TIME: Metric = Metric { name: "time", unit: "s", better: Better::Lower };
    /// let mut results = Results::new("example", Host::unknown());
    /// for (config, workload, seconds) in [("a", "v", 1.0), ("a", "w", 1.0), ("b", "v", 2.0), ("b", "w", 8.0)] {
    ///     results.push(Row::new(config, workload, TIME, vec![seconds])?)?;
    /// }
    /// let gmean = Gmean::of(&Comparison::new(&results)).unwrap();
    /// assert!((gmean.cells[1].unwrap().ratio - 4.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn of(comparison: &Comparison<'_>) -> Option<Self> {
        let mut directions = comparison.lines().iter().map(|line| line.metric.better);
        let better = directions.find(|better| *better != Better::Neither)?;
        let cells = (0..comparison.configs().len())
            .map(|config| cell(comparison, config, better))
            .collect();
        Some(Self { better, cells })
    }
}

/// Computes the geometric mean of one configuration's ratios.
fn cell(comparison: &Comparison<'_>, config: usize, better: Better) -> Option<GmeanCell> {
    let mean_of = |cells: &[Option<crate::Cell>], config: usize| cells.get(config).copied()??.mean;
    let logarithms: Vec<f64> = comparison
        .lines()
        .iter()
        .filter_map(|line| {
            let ratio = ratio(mean_of(&line.cells, config)?, mean_of(&line.cells, 0)?)?;
            match line.metric.better {
                Better::Neither => None,
                same if same == better => Some(ratio.ln()),
                _ => Some(-ratio.ln()),
            }
        })
        .collect();
    let lines = logarithms.len();
    if lines == 0 {
        return None;
    }
    let ratio = (logarithms.iter().sum::<f64>() / lines as f64).exp();
    Some(GmeanCell {
        ratio,
        gain_percent: gain_percent(better, ratio, 1.0),
        lines,
    })
}

/// Returns the ratio of two values; `None` where there is none to take the logarithm of.
fn ratio(new: f64, base: f64) -> Option<f64> {
    if new == base {
        return Some(1.0);
    }
    let ratio = new / base;
    (new > 0.0 && base > 0.0 && ratio.is_normal()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Metric, Results, Row};

    const TIME: Metric<'static> = Metric::lower("time", "s");
    const RATE: Metric<'static> = Metric::higher("rate", "ops/s");

    /// The second configuration's cell of rows (workload, metric, base, new).
    fn gmean(rows: &[(&str, Metric<'_>, f64, f64)]) -> Option<GmeanCell> {
        let mut results = Results::new("test", Host::unknown());
        for (workload, metric, base, new) in rows {
            results
                .push(Row::new("base", *workload, *metric, vec![*base]).unwrap())
                .unwrap();
            results
                .push(Row::new("new", *workload, *metric, vec![*new]).unwrap())
                .unwrap();
        }
        let gmean = Gmean::of(&Comparison::new(&results)).unwrap();
        if let Some(base) = gmean.cells[0] {
            assert_eq!((base.ratio, base.gain_percent), (1.0, 0.0));
        }
        gmean.cells[1]
    }

    #[test]
    fn a_line_of_the_other_direction_is_inverted() {
        // Half the time and twice the rate are both a time ratio of 1/2.
        let cell = gmean(&[("v", TIME, 4.0, 2.0), ("v", RATE, 3.0, 6.0)]).unwrap();
        assert!((cell.ratio - 0.5).abs() < 1e-12 && (cell.gain_percent - 50.0).abs() < 1e-9);
        assert_eq!(cell.lines, 2);
        // The rate comes first and sets the direction: 2.
        let cell = gmean(&[("v", RATE, 3.0, 6.0), ("v", TIME, 4.0, 2.0)]).unwrap();
        assert!((cell.ratio - 2.0).abs() < 1e-12 && (cell.gain_percent - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_with_a_zero_is_left_out() {
        let cell = gmean(&[
            ("v", RATE, 0.0, 6.0),
            ("w", RATE, 1.0, 4.0),
            ("x", RATE, 5.0, 0.0),
        ])
        .unwrap();
        assert!((cell.ratio - 4.0).abs() < 1e-12);
        assert_eq!(cell.lines, 1);
        assert_eq!(gmean(&[("v", RATE, 0.0, 6.0)]), None);
        assert_eq!(gmean(&[("v", RATE, 0.0, 0.0)]).unwrap().ratio, 1.0);
    }

    #[test]
    fn metrics_without_a_better_direction_are_left_out() {
        let size = Metric::new(TIME.name, TIME.unit, Better::Neither);
        let cell = gmean(&[("u", size, 1.0, 50.0), ("v", RATE, 3.0, 6.0)]).unwrap();
        assert!((cell.ratio - 2.0).abs() < 1e-12 && (cell.gain_percent - 100.0).abs() < 1e-9);
        assert_eq!(cell.lines, 1);
        let row = Row::new("base", "u", size, vec![1.0]).unwrap();
        let mut results = Results::new("test", Host::unknown());
        results.push(row).unwrap();
        assert_eq!(Gmean::of(&Comparison::new(&results)), None);
    }

    #[test]
    fn no_lines_have_no_geometric_mean() {
        assert_eq!(
            Gmean::of(&Comparison::new(&Results::new("test", Host::unknown()))),
            None
        );
    }
}
