//! A warning when samples vary too much for their mean to be trusted, as hyperfine prints it.
//!
//! A row is noisy when its coefficient of variation is above a limit. The table does not show that
//! (a missing star only means that a difference is not significant), so there is a warning for the
//! error stream, one sentence with the worst rows first.

use crate::{Results, Row, SampleKind};

/// The coefficient of variation, in percent, above which a row is noisy.
const NOISE_LIMIT_PERCENT: f64 = 10.0;

/// The number of rows that the warning names; the others it only counts.
const NAMED_ROWS_MAX: usize = 3;

/// Returns the warning for `results`, one line without a newline, or `None` where no row varies by
/// more than 10 % of its mean.
///
/// Rows of fewer than two samples, and rows whose mean is zero, have no coefficient of variation
/// and are never noisy; nor are exact rows, whose samples differ by the work alone.
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
    let rows = results.rows().iter();
    let rows = rows.filter(|row| row.kind() != Some(SampleKind::Exact));
    let mut noisy: Vec<(&Row, f64)> = rows
        .filter_map(|row| Some((row, row.summary().variation_percent()?)))
        .filter(|(_, percent)| *percent > NOISE_LIMIT_PERCENT)
        .collect();
    if noisy.is_empty() {
        return None;
    }
    noisy.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut named: Vec<String> = noisy
        .iter()
        .take(NAMED_ROWS_MAX)
        .map(|(row, percent)| format!("{} ({percent:.1} %)", row.name()))
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
