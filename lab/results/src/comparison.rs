//! A document's rows side by side: one line per metric of a workload, one column per configuration,
//! each compared with the first column or with the one before it.
//!
//! **Against the first**, as in mmtests' `Compare.pm`: the gain in percent, positive is better
//! whichever way the metric goes. A difference is significant when the intervals mean +- 1.96 *
//! stddev of the two sides do not overlap. The deviation is that of the samples and not of their
//! mean, so the rule is much stricter than a t test: it is met where single runs tell the two apart,
//! and more runs do not make that easier. Values are arithmetic means, of rates too, as in the
//! tables of 2013.
//!
//! **Against the one before**, as in Porter's tables of 2007: what each change adds to the one
//! before. For lower-is-better metrics speedup is the mean before divided by the mean now, for
//! higher-is-better ones the mean now divided by the mean before, so above 1 is always better.
//! (Porter divided the same way for both: in his hdparm row, in MB/s, below 1 is better.) The
//! interval is Porter's too: 1.96 * stddev / sqrt(n) to either side of the mean. His figures show
//! the formula: .049 for a deviation of .05 of 4 runs, .052 for .103 of 15, 5.417 for 6.180 of 5.
//! For so few runs it is too narrow: by Student's t, which [`Summary::ci95`](crate::Summary::ci95)
//! uses, it is 1.62 times as wide for 4 and 1.09 times for 15. The star is the signed-rank test of
//! the two rows' samples, which must be in pairs: samples at the same index have the same seed, or
//! were taken in the same round. Each step is tested by itself; of many that change nothing, one in
//! twenty has a star by chance.

use std::collections::HashMap;

use crate::statistics::{INTERVAL_DEVIATIONS, SIGNIFICANT_P, SignedRank};
use crate::{Better, Metric, Results, Row};

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

/// What each column is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Against {
    /// The first column, as in mmtests.
    #[default]
    First,
    /// The column before it, as in Porter's tables of 2007.
    Before,
}

/// A document's rows, side by side.
///
/// ```
/// use brickyard_results::{Against, Comparison, Host, Metric, Results, Row};
/// const TIME: Metric = Metric::lower("time", "s");
/// let mut results = Results::new("locks", Host::unknown());
/// results.push(Row::new("hold", "pmake", TIME, vec![2.6, 2.7])?)?;
/// results.push(Row::new("release", "pmake", TIME, vec![2.5, 2.5])?)?;
/// let comparison = Comparison::new(&results, Against::Before);
/// let release = comparison.lines[0].cells[1];
/// assert_eq!(release.and_then(|cell| cell.speedup()), Some(2.65 / 2.5));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<'a> {
    /// The configurations, in the order of their first rows.
    pub configs: Vec<&'a str>,
    /// The lines, in the order of their first rows.
    pub lines: Vec<ComparedMetric<'a>>,
}

/// One metric of one workload, under every configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMetric<'a> {
    /// What the configurations were made to do.
    pub workload: &'a str,
    /// What was counted.
    pub metric: Metric<'a>,
    /// One row per configuration, in the order of [`Comparison::configs`]. `None` where a
    /// configuration has no such row.
    pub cells: Vec<Option<ComparedRow<'a>>>,
}

/// A row, and the one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedRow<'a> {
    /// The row.
    pub row: &'a Row,
    /// What it is compared with: for the first column of [`Against::First`] itself. `None` for the
    /// first of [`Against::Before`], and where that configuration has no such row.
    pub base: Option<&'a Row>,
}

impl<'a> Comparison<'a> {
    /// Lays the rows of `results` side by side. Linear in rows times configurations.
    #[must_use]
    pub fn new(results: &'a Results, against: Against) -> Self {
        let configs = results.configs();
        let column: HashMap<&str, usize> = configs
            .iter()
            .zip(0..)
            .map(|(name, i)| (*name, i))
            .collect();
        let mut line_of: HashMap<(&str, &str), usize> = HashMap::new();
        let mut lines: Vec<(&'a Row, Vec<Option<&'a Row>>)> = Vec::new();
        for row in results.rows() {
            let line = *line_of
                .entry((row.workload(), row.metric().name))
                .or_insert_with(|| {
                    lines.push((row, vec![None; configs.len()]));
                    lines.len() - 1
                });
            lines[line].1[column[row.config()]] = Some(row);
        }
        let base = |rows: &[Option<&'a Row>], column: usize| match against {
            Against::First => rows[0],
            Against::Before => column.checked_sub(1).and_then(|before| rows[before]),
        };
        let lines = lines.iter().map(|(first, rows)| ComparedMetric {
            workload: first.workload(),
            metric: first.metric(),
            cells: rows
                .iter()
                .enumerate()
                .map(|(column, &row)| {
                    let base = base(rows, column);
                    row.map(|row| ComparedRow { row, base })
                })
                .collect(),
        });
        Self {
            lines: lines.collect(),
            configs,
        }
    }

    /// Returns all rows of a document, each with what it is compared with, in the order of the
    /// document.
    pub(crate) fn in_order_of(&self, results: &'a Results) -> Vec<ComparedRow<'a>> {
        let cells = self.lines.iter().flat_map(|line| &line.cells).flatten();
        let of: HashMap<*const Row, ComparedRow<'a>> = cells
            .map(|cell| (core::ptr::from_ref(cell.row), *cell))
            .collect();
        let rows = results.rows().iter();
        rows.map(|row| of[&core::ptr::from_ref(row)]).collect()
    }
}

impl ComparedRow<'_> {
    /// Returns the mean's gain over the baseline's. `None` where either is missing, and where
    /// neither direction is better.
    #[must_use]
    pub fn gain_percent(&self) -> Option<f64> {
        let mean = |row: &Row| row.summary().mean();
        gain(self.row.metric().better, mean(self.row)?, mean(self.base?)?)
    }

    /// Returns the deviation's gain over the baseline's; lower is better, whichever direction of
    /// the metric is. `None` where neither direction of the metric is better.
    #[must_use]
    pub fn stddev_gain_percent(&self) -> Option<f64> {
        let better = match self.row.metric().better {
            Better::Neither => Better::Neither,
            Better::Higher | Better::Lower => Better::Lower,
        };
        let stddev = |row: &Row| row.summary().stddev();
        gain(better, stddev(self.row)?, stddev(self.base?)?)
    }

    /// Returns true if the intervals mean +- 1.96 stddev of the two do not overlap (mmtests). `None`
    /// if one side has fewer than two samples, or the row is the baseline itself.
    #[must_use]
    pub fn is_apart(&self) -> Option<bool> {
        let base = self.base.filter(|base| !core::ptr::eq(*base, self.row))?;
        let interval = |row: &Row| {
            let mean = row.summary().mean()?;
            let reach = INTERVAL_DEVIATIONS * row.summary().stddev()?;
            Some((mean - reach, mean + reach))
        };
        let (new, base) = (interval(self.row)?, interval(base)?);
        Some(new.0 > base.1 || base.0 > new.1)
    }

    /// Returns half the width of the mean's 95 % interval by the normal distribution, in the
    /// metric's unit. `None` below two samples.
    #[must_use]
    pub fn interval95(&self) -> Option<f64> {
        let summary = self.row.summary();
        let stddev = summary.stddev()?;
        Some(INTERVAL_DEVIATIONS * stddev / (summary.n() as f64).sqrt())
    }

    /// Returns the ratio of the means: above 1 is better, whichever direction of the metric is
    /// better. `None` where a mean is missing or zero, and where neither direction is better.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        let (now, then) = (self.row.summary().mean()?, self.base?.summary().mean()?);
        let (over, under) = match self.row.metric().better {
            Better::Lower => (then, now),
            Better::Higher => (now, then),
            Better::Neither => return None,
        };
        let speedup = over / under;
        (speedup.is_finite() && over != 0.0).then_some(speedup)
    }

    /// Returns the signed-rank test of the samples in pairs. `None` where they are not in pairs.
    #[must_use]
    pub fn signed_rank(&self) -> Option<SignedRank> {
        let (now, before) = (self.row.samples(), self.base?.samples());
        let test = SignedRank::of(before, now)?;
        Some(test).filter(|_| !now.is_empty())
    }

    /// Returns true if that test earns a star.
    #[must_use]
    pub fn has_star(&self) -> bool {
        self.signed_rank()
            .is_some_and(|test| test.p < SIGNIFICANT_P)
    }
}

fn gain(better: Better, new: f64, base: f64) -> Option<f64> {
    let gain = gain_percent(better, new, base);
    gain.is_finite().then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;

    const RATE: Metric<'static> = Metric::higher("rate", "ops/s");
    const TIME: Metric<'static> = Metric::lower("time", "s");

    fn results(metric: Metric<'_>, rows: &[(&str, &str, &[f64])]) -> Results {
        let mut results = Results::new("test", Host::unknown());
        for (config, workload, samples) in rows {
            let row = Row::new(*config, *workload, metric, samples.to_vec());
            results.push(row.unwrap()).unwrap();
        }
        results
    }

    /// Makes `check` of the second of two rows.
    fn second<T>(
        metric: Metric<'_>,
        base: &[f64],
        new: &[f64],
        against: Against,
        check: impl Fn(ComparedRow<'_>) -> T,
    ) -> T {
        let results = results(metric, &[("base", "w", base), ("new", "w", new)]);
        check(Comparison::new(&results, against).lines[0].cells[1].unwrap())
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
        assert!(gain_percent(Better::Neither, 3.0, 2.0).is_nan());
    }

    #[test]
    fn significant_where_the_intervals_do_not_overlap() {
        for (base, new, expected) in [
            // Deviations 1 and 1: the intervals reach 1.96 to either side, so they overlap up to a
            // distance of 3.92.
            (&[9.0, 10.0, 11.0][..], &[13.0, 14.0, 15.0][..], Some(true)),
            (&[13.0, 14.0, 15.0], &[9.0, 10.0, 11.0], Some(true)),
            (&[9.0, 10.0, 11.0], &[12.9, 13.9, 14.9], Some(false)),
            // Without scatter, any difference is significant.
            (&[5.0, 5.0], &[6.0, 6.0], Some(true)),
            (&[5.0, 5.0], &[5.0, 5.0], Some(false)),
            // The scatter of a single sample is unknown.
            (&[5.0], &[6.0, 6.0], None),
            (&[5.0, 5.0], &[6.0], None),
        ] {
            let found = second(RATE, base, new, Against::First, |cell| cell.is_apart());
            assert_eq!(found, expected, "{base:?} {new:?}");
        }
    }

    #[test]
    fn deviations_are_lower_better_even_of_rates_and_nothing_is_without_a_direction() {
        let gains = |cell: ComparedRow<'_>| (cell.gain_percent(), cell.stddev_gain_percent());
        let (base, new) = ([9.0, 10.0, 11.0], [18.0, 20.0, 22.0]);
        let of_rates = second(RATE, &base, &new, Against::First, gains);
        assert_eq!(of_rates, (Some(100.0), Some(-100.0)));
        let neither = Metric::new(RATE.name, RATE.unit, Better::Neither);
        let of_neither = second(neither, &base, &new, Against::First, gains);
        assert_eq!(of_neither, (None, None));
    }

    #[test]
    fn missing_rows_give_no_cell() {
        let rows: [(&str, &str, &[f64]); 3] = [
            ("base", "v", &[1.0]),
            ("new", "w", &[2.0]),
            ("new", "v", &[]),
        ];
        let results = results(RATE, &rows);
        for against in [Against::First, Against::Before] {
            let comparison = Comparison::new(&results, against);
            let [v, w] = comparison.lines.as_slice() else {
                panic!("two lines")
            };
            assert_eq!((v.workload, w.workload), ("v", "w"));
            assert_eq!(v.cells[1].unwrap().gain_percent(), None);
            assert_eq!(w.cells[0], None);
            assert_eq!(w.cells[1].unwrap().base, None);
        }
    }

    /// Deviations and intervals as Porter printed them, of 4, 15 and 5 runs.
    #[test]
    fn intervals_are_those_of_2007() {
        for (n, deviation, printed) in [
            (4, 0.05, "0.049"),
            (4, 0.174, "0.171"),
            (15, 0.103, "0.052"),
            (15, 5.861, "2.966"),
            (5, 6.180, "5.417"),
            (5, 4.416, "3.871"),
        ] {
            // Half above, half below, and one in the middle where they are odd.
            let away = deviation * ((n - 1) as f64 / (n - n % 2) as f64).sqrt();
            let sample = |i: i32| match i {
                _ if n % 2 == 1 && i == n - 1 => 10.0,
                _ if i % 2 == 0 => 10.0 + away,
                _ => 10.0 - away,
            };
            let samples: Vec<f64> = (0..n).map(sample).collect();
            let results = results(TIME, &[("unmod", "w", &samples)]);
            let cell = Comparison::new(&results, Against::Before).lines[0].cells[0].unwrap();
            assert_eq!(format!("{:.3}", cell.interval95().unwrap()), printed);
            assert_eq!(cell.base, None);
        }
    }

    /// Means and speedups of MAB on real hardware: each over the column before.
    #[test]
    fn speedups_are_those_of_2007() {
        let rows: [(&str, &str, &[f64]); 4] = [
            ("unmod", "mab", &[3.139]),
            ("ts", "mab", &[3.239]),
            ("ts+opt", "mab", &[3.190]),
            ("ts+opt+cl", "mab", &[3.291]),
        ];
        let results = results(TIME, &rows);
        let comparison = Comparison::new(&results, Against::Before);
        let cells = comparison.lines[0].cells[1..].iter().flatten();
        let speedups: Vec<String> = cells
            .map(|cell| format!("{:.3}", cell.speedup().unwrap()))
            .collect();
        assert_eq!(speedups, ["0.969", "1.015", "0.969"]);
        let speedup = |cell: ComparedRow<'_>| cell.speedup();
        assert_eq!(
            second(RATE, &[2.0], &[3.0], Against::Before, speedup),
            Some(1.5)
        );
        // From 1 to 0 there is no ratio.
        assert_eq!(second(TIME, &[1.0], &[0.0], Against::Before, speedup), None);
    }

    #[test]
    fn a_star_needs_pairs_and_enough_of_them() {
        let star = |before: &[f64], now: &[f64]| {
            second(TIME, before, now, Against::Before, |cell| cell.has_star())
        };
        let before: Vec<f64> = (0..6).map(|i| 10.0 + f64::from(i)).collect();
        let now: Vec<f64> = before.iter().map(|x| x * 0.99).collect();
        assert!(star(&before, &now));
        // Five pairs are not enough, however clear their differences are.
        assert!(!star(&before[..5], &now[..5]));
        // The same samples in another order are other pairs.
        let turned: Vec<f64> = now.iter().rev().copied().collect();
        assert!(!star(&before, &turned));
        let test = |cell: ComparedRow<'_>| cell.signed_rank();
        assert_eq!(
            second(TIME, &before, &now[..5], Against::Before, test),
            None
        );
        assert_eq!(second(TIME, &[], &[], Against::Before, test), None);
    }
}
