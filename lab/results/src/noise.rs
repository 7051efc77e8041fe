//! A warning when samples vary too much for their mean to be trusted, as hyperfine prints it.
//!
//! A row is noisy when its coefficient of variation is above a limit. The table does not show that
//! (a missing star only means that a difference is not significant), so there is a warning for the
//! error stream, one sentence with the worst rows first.

use crate::{Results, Row, SampleKind};

/// The coefficient of variation, in percent, above which a row is noisy.
pub const NOISE_LIMIT_PERCENT: f64 = 10.0;

/// The number of rows that the warning names; the others it only counts.
const NAMED_ROWS_MAX: usize = 3;

/// A row whose samples vary too much.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Noisy<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its coefficient of variation, in percent of its mean.
    pub variation_percent: f64,
}

/// Returns the rows that vary by more than `limit_percent` of their mean, the worst first.
///
/// Rows of fewer than two samples, and rows whose mean is zero, have no coefficient of variation
/// and are never noisy; nor are exact rows, whose samples differ by the work alone.
pub fn noisy_rows(results: &Results, limit_percent: f64) -> Vec<Noisy<'_>> {
    let mut noisy: Vec<Noisy<'_>> = results
        .rows()
        .iter()
        .filter(|row| row.kind() != Some(SampleKind::Exact))
        .filter_map(|row| {
            let variation_percent = row.summary().variation_percent()?;
            (variation_percent > limit_percent).then_some(Noisy {
                row,
                variation_percent,
            })
        })
        .collect();
    noisy.sort_by(|a, b| b.variation_percent.total_cmp(&a.variation_percent));
    noisy
}

/// Returns the warning for `results`, one line without a newline, or `None` where no row varies by
/// more than [`NOISE_LIMIT_PERCENT`].
///
/// ```
/// use brickyard_results::{Better, Host, Metric, Results, Row, noise_warning};
/// const TIME: Metric = Metric { name: "time", unit: "s", better: Better::Lower };
/// let mut results = Results::new("kernbench", Host::unknown());
/// results.push(Row::new("vanilla", "build", TIME, vec![90.0, 100.0, 140.0])?)?;
/// assert_eq!(
///     noise_warning(&results).unwrap(),
///     "1 of 1 rows vary by more than 10 %: vanilla / build / time (24.1 %). \
///      Run again on a quiet machine, or take more samples."
/// );
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn noise_warning(results: &Results) -> Option<String> {
    let noisy = noisy_rows(results, NOISE_LIMIT_PERCENT);
    if noisy.is_empty() {
        return None;
    }
    let mut named: Vec<String> = noisy
        .iter()
        .take(NAMED_ROWS_MAX)
        .map(|noisy| format!("{} ({:.1} %)", noisy.row.name(), noisy.variation_percent))
        .collect();
    if noisy.len() > NAMED_ROWS_MAX {
        named.push(format!("and {} more", noisy.len() - NAMED_ROWS_MAX));
    }
    Some(format!(
        "{} of {} rows vary by more than {NOISE_LIMIT_PERCENT} %: {}. \
         Run again on a quiet machine, or take more samples.",
        noisy.len(),
        results.rows().len(),
        named.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Metric};

    const TIME: Metric<'static> = Metric::lower("time", "s");

    fn results(rows: &[&[f64]]) -> Results {
        let mut results = Results::new("test", Host::unknown());
        for (i, samples) in rows.iter().enumerate() {
            results
                .push(Row::new("c", i.to_string(), TIME, samples.to_vec()).unwrap())
                .unwrap();
        }
        results
    }

    #[test]
    fn quiet_single_and_missing_samples_give_no_warning() {
        // Deviation 10 of a mean of 100 is the limit, and not above it.
        assert_eq!(
            noise_warning(&results(&[
                &[90.0, 100.0, 110.0],
                &[5.0],
                &[],
                &[-1.0, 1.0]
            ])),
            None
        );
    }

    #[test]
    fn the_worst_come_first_and_the_many_are_counted() {
        let results = results(&[
            &[80.0, 120.0],
            &[100.0, 100.0],
            &[50.0, 150.0],
            &[70.0, 130.0],
            &[85.0, 115.0],
        ]);
        assert_eq!(
            noise_warning(&results).unwrap(),
            "4 of 5 rows vary by more than 10 %: c / 2 / time (70.7 %), c / 3 / time (42.4 %), \
             c / 0 / time (28.3 %), and 1 more. Run again on a quiet machine, or take more samples."
        );
    }
}
