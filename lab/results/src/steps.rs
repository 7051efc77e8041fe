//! Each configuration against the one before it, as in Porter's tables of 2007: what each change
//! adds to the one before.
//!
//! For lower-is-better metrics speedup is the mean before divided by the mean now, for
//! higher-is-better ones the mean now divided by the mean before, so above 1 is always better.
//! (Porter divided the same way for both: in his hdparm row, in MB/s, below 1 is better.)
//!
//! The interval is Porter's too: 1.96 * stddev / sqrt(n) to either side of the mean, by the normal
//! distribution. His figures show the formula: .049 for a deviation of .05 of 4 runs, .052 for .103
//! of 15, 5.417 for 6.180 of 5. For so few runs it is too narrow: by Student's t, which
//! [`Summary::ci95`](crate::Summary::ci95) uses, it is 1.62 times as wide for 4 and 1.09 times for
//! 15.
//!
//! The star marks significance by the signed-rank test (`signed_rank.rs`) of the two rows' samples,
//! which must be in pairs: samples at the same index have the same seed, or were taken in the same
//! round. Each step is tested by itself; of many steps that change nothing, one in twenty has a
//! star by chance.

use crate::grid::{Grid, Line};
use crate::{Better, INTERVAL_DEVIATIONS, Results, Row, SignedRank};

/// A step is significant where p is below this.
pub const SIGNIFICANT_P: f64 = 0.05;

/// A configuration against the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The ratio of the means: above 1 is better, whichever direction of the metric is better.
    /// `None` where a mean is missing or zero, and where neither direction is better.
    pub speedup: Option<f64>,
    /// The test of the two rows' samples in pairs. `None` where they are not in pairs.
    pub test: Option<SignedRank>,
}

impl Step {
    /// Returns true if the step has a star: p is below [`SIGNIFICANT_P`].
    pub fn is_significant(&self) -> bool {
        self.test.is_some_and(|test| test.p < SIGNIFICANT_P)
    }
}

/// One configuration's cell of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepCell {
    /// The number of samples.
    pub n: usize,
    /// Their mean, in the line's unit. `None` without samples.
    pub mean: Option<f64>,
    /// Their standard deviation, in the line's unit. `None` below two samples.
    pub stddev: Option<f64>,
    /// Half the width of the mean's 95 % interval by the normal distribution, in the line's unit.
    /// `None` below two samples.
    pub interval95: Option<f64>,
    /// The step from the configuration before. `None` for the first configuration, and where the
    /// one before has no such row.
    pub step: Option<Step>,
}

/// A document's rows side by side, each configuration compared with the one before.
///
/// ```
/// use brickyard_results::{Better, Host, Metric, Results, Row, Steps};
/// const TIME: Metric = Metric { name: "time", unit: "s", better: Better::Lower };
/// let mut results = Results::new("locks", Host::unknown());
/// results.push(Row::new("hold", "pmake", TIME, vec![2.6, 2.7])?)?;
/// results.push(Row::new("release", "pmake", TIME, vec![2.5, 2.5])?)?;
/// let steps = Steps::new(&results);
/// let release = steps.lines()[0].cells[1].and_then(|cell| cell.step);
/// assert_eq!(release.and_then(|step| step.speedup), Some(2.65 / 2.5));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub type Steps<'a> = Grid<'a, StepCell>;

impl<'a> Steps<'a> {
    /// Lays the rows of `results` side by side. Linear in rows times configurations, plus a test
    /// per cell.
    #[must_use]
    pub fn new(results: &'a Results) -> Self {
        Self::of(results, |rows| {
            let before = core::iter::once(None).chain(rows.iter().copied());
            let cells = rows.iter().zip(before);
            cells
                .map(|(row, before)| row.map(|row| cell(row, before)))
                .collect()
        })
    }

    /// Returns the cell of a row of the document, and the configuration that it is compared with:
    /// `None` for the first, and where the one before has no such row. Linear in the lines.
    pub fn of_row(&self, row: &Row) -> (Option<&'a str>, Option<StepCell>) {
        let here = |line: &&Line<'_, StepCell>| {
            line.workload == row.workload() && line.metric.name == row.metric().name
        };
        let column = self
            .configs()
            .iter()
            .position(|&config| config == row.config());
        let line = self.lines().iter().find(here);
        let Some((line, column)) = line.zip(column) else {
            return (None, None);
        };
        let cell = line.cells[column];
        let has_step = cell.is_some_and(|cell| cell.step.is_some());
        let before = column.checked_sub(1).filter(|_| has_step);
        (before.map(|before| self.configs()[before]), cell)
    }
}

fn cell(row: &Row, before: Option<&Row>) -> StepCell {
    let summary = row.summary();
    let interval = |stddev: f64| INTERVAL_DEVIATIONS * stddev / (summary.n() as f64).sqrt();
    StepCell {
        n: summary.n(),
        mean: summary.mean(),
        stddev: summary.stddev(),
        interval95: summary.stddev().map(interval),
        step: before.map(|before| step(row, before)),
    }
}

fn step(row: &Row, before: &Row) -> Step {
    let speedup = |now: f64, then: f64| {
        let (over, under) = match row.metric().better {
            Better::Lower => (then, now),
            Better::Higher => (now, then),
            Better::Neither => return None,
        };
        let speedup = over / under;
        (speedup.is_finite() && over != 0.0).then_some(speedup)
    };
    let means = row.summary().mean().zip(before.summary().mean());
    let test = SignedRank::of(before.samples(), row.samples()).ok();
    Step {
        speedup: means.and_then(|(now, then)| speedup(now, then)),
        test: test.filter(|_| means.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Metric};

    const TIME: Metric<'static> = Metric::lower("time", "s");

    fn results(metric: Metric<'_>, rows: &[(&str, &[f64])]) -> Results {
        let mut results = Results::new("test", Host::unknown());
        for (config, samples) in rows {
            let row = Row::new(*config, "w", metric, samples.to_vec()).unwrap();
            results.push(row).unwrap();
        }
        results
    }

    /// Returns `n` samples of this mean and this deviation.
    fn samples(n: usize, mean: f64, deviation: f64) -> Vec<f64> {
        // Half above, half below, and one in the middle where they are odd.
        let away = deviation * ((n - 1) as f64 / (n - n % 2) as f64).sqrt();
        let sign = |i: usize| match i {
            _ if n % 2 == 1 && i == n - 1 => 0.0,
            _ if i.is_multiple_of(2) => 1.0,
            _ => -1.0,
        };
        (0..n).map(|i| mean + away * sign(i)).collect()
    }

    /// Deviations and intervals as Porter printed them, of 4, 15 and 5 runs.
    #[test]
    fn intervals_are_those_of_2007() {
        for (n, deviation, printed) in [
            (4, 0.05, "0.049"),
            (4, 0.096, "0.094"),
            (4, 0.110, "0.108"),
            (4, 0.174, "0.171"),
            (15, 0.103, "0.052"),
            (15, 0.178, "0.090"),
            (15, 5.861, "2.966"),
            (15, 3.397, "1.719"),
            (5, 6.180, "5.417"),
            (5, 4.416, "3.871"),
        ] {
            let of = samples(n, 10.0, deviation);
            let results = results(TIME, &[("unmod", &of)]);
            let cell = Steps::new(&results).lines()[0].cells[0].unwrap();
            assert_eq!(format!("{:.3}", cell.interval95.unwrap()), printed);
            assert_eq!(cell.step, None);
        }
    }

    /// Means and speedups of MAB on real hardware: each over the column before.
    #[test]
    fn speedups_are_those_of_2007() {
        let means = [
            ("unmod", 3.139),
            ("ts", 3.239),
            ("ts+opt", 3.190),
            ("ts+opt+cl", 3.291),
        ];
        let of = means.map(|(config, mean)| (config, samples(15, mean, 0.17)));
        let rows: Vec<(&str, &[f64])> = of.iter().map(|(c, s)| (*c, s.as_slice())).collect();
        let results = results(TIME, &rows);
        let steps = Steps::new(&results);
        let speedup = |cell: &Option<StepCell>| cell.unwrap().step.unwrap().speedup.unwrap();
        let speedups: Vec<String> = steps.lines()[0].cells[1..]
            .iter()
            .map(|cell| format!("{:.3}", speedup(cell)))
            .collect();
        assert_eq!(speedups, ["0.969", "1.015", "0.969"]);
    }

    #[test]
    fn a_higher_rate_is_a_speedup() {
        let rate = Metric::higher(TIME.name, TIME.unit);
        let results = results(rate, &[("a", &[2.0, 2.0]), ("b", &[3.0, 3.0])]);
        let step = Steps::new(&results).lines()[0].cells[1].unwrap().step;
        assert_eq!(step.unwrap().speedup, Some(1.5));
    }

    #[test]
    fn a_star_needs_pairs_and_enough_of_them() {
        let second = |before: &[f64], now: &[f64]| {
            let results = results(TIME, &[("before", before), ("now", now)]);
            Steps::new(&results).lines()[0].cells[1]
                .unwrap()
                .step
                .unwrap()
        };
        let before: Vec<f64> = (0..6).map(|i| 10.0 + f64::from(i)).collect();
        let now: Vec<f64> = before.iter().map(|x| x * 0.99).collect();
        assert!(second(&before, &now).is_significant());
        // Five pairs are not enough, however clear their differences are.
        assert!(!second(&before[..5], &now[..5]).is_significant());
        // The same samples in another order are other pairs.
        let turned: Vec<f64> = now.iter().rev().copied().collect();
        assert!(!second(&before, &turned).is_significant());
        assert_eq!(second(&before, &now[..5]).test, None);
        assert_eq!(second(&[], &[]).test, None);
    }

    #[test]
    fn a_row_without_one_before_it_has_no_step() {
        let mut results = results(TIME, &[("a", &[1.0]), ("c", &[0.0])]);
        let only = Row::new("b", "other", TIME, vec![1.0]).unwrap();
        results.push(only).unwrap();
        let steps = Steps::new(&results);
        assert_eq!(steps.configs(), ["a", "c", "b"]);
        // From 1 to 0 there is no ratio.
        let step = steps.lines()[0].cells[1].unwrap().step.unwrap();
        assert_eq!(step.speedup, None);
        assert_eq!(steps.lines()[0].cells[2], None);
        assert_eq!(steps.lines()[1].cells[2].unwrap().step, None);
    }
}
