//! The 95 % interval of a ratio of two sides, by a method that suits the number of samples.
//!
//! From [`BOOTSTRAP_LEAST`] samples per side on, it is the BCa bootstrap of the ratio of the means
//! (`bootstrap.rs`). With fewer samples the bootstrap is far too narrow, since a resample has only
//! measured values: for two pairs it never reaches beyond their two ratios. There it is Student's t
//! interval of logarithms, turned back into a ratio: of the logarithm of each pair's ratio, or, for
//! independent samples, Welch's interval of the difference of the mean logarithms. That is an
//! interval of the ratio of the geometric means, which for samples that scatter by some percent is
//! close to the ratio of the means.

use brickyard_run::named;

use super::{Interval, Summary, bootstrap_paired_ratio, bootstrap_ratio, difference95};

/// The fewest samples per side for which the bootstrap is used.
pub const BOOTSTRAP_LEAST: usize = 10;

/// The bootstrap's seed, fixed so that the same samples give the same interval.
const SEED: u64 = 2007;

/// Whether the samples of two sides are in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Runs {
    /// Samples at the same index are a pair: of the same seed, or the same round.
    Paired,
    /// Each sample is an independent run.
    Independent,
}

named! {
    /// The method by which an interval was computed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum IntervalMethod {
        /// Student's t interval of logarithms.
        LogRatios => "t of log ratios",
        /// The BCa bootstrap.
        Bootstrap => "bootstrap",
    }
}

impl IntervalMethod {
    /// Returns the method for these numbers of samples of the two sides.
    pub const fn of_counts(now: usize, before: usize) -> Self {
        if now < BOOTSTRAP_LEAST || before < BOOTSTRAP_LEAST {
            Self::LogRatios
        } else {
            Self::Bootstrap
        }
    }
}

/// The interval of a ratio, and the method by which it was computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The interval.
    pub ends: Interval,
    /// How it was computed.
    pub method: IntervalMethod,
}

/// Computes the 95 % interval of `now` / `before`.
///
/// `None` below two samples of either, where one is not finite, for pairs of different lengths, and
/// where there is no ratio: with few samples if one is not above 0, with many if the mean of
/// `before` may be 0. Costs as much as [`bootstrap_ratio`] from [`BOOTSTRAP_LEAST`] samples
/// on, else a sort.
///
/// ```
/// use brickyard_results::{Runs, ratio_interval};
/// let (before, now) = ([10.0, 20.0, 30.0], [11.0, 21.0, 32.0]);
/// let interval = ratio_interval(&now, &before, Runs::Paired).unwrap();
/// assert_eq!(interval.method.name(), "t of log ratios");
/// // Three pairs are few, so it is wide.
/// assert!(interval.ends.low < 1.02 && interval.ends.high > 1.1);
/// ```
pub fn ratio_interval(now: &[f64], before: &[f64], runs: Runs) -> Option<RatioInterval> {
    let method = IntervalMethod::of_counts(now.len(), before.len());
    let ends = match (method, runs) {
        (IntervalMethod::Bootstrap, Runs::Paired) => bootstrap_paired_ratio(now, before, SEED)?,
        (IntervalMethod::Bootstrap, Runs::Independent) => bootstrap_ratio(now, before, SEED)?,
        (IntervalMethod::LogRatios, Runs::Paired) => of_pairs(now, before)?,
        (IntervalMethod::LogRatios, Runs::Independent) => of_sides(now, before)?,
    };
    let is_finite = ends.low.is_finite() && ends.high.is_finite();
    is_finite.then_some(RatioInterval { ends, method })
}

/// Computes the interval from the logarithm of each pair's ratio.
fn of_pairs(now: &[f64], before: &[f64]) -> Option<Interval> {
    if now.len() != before.len() {
        return None;
    }
    let (now, before) = (logarithms(now)?, logarithms(before)?);
    let ratios: Vec<f64> = now
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect();
    let summary = Summary::of(&ratios).ok()?;
    let (middle, reach) = (summary.mean()?, summary.ci95()?);
    Some(
        Interval {
            low: middle - reach,
            high: middle + reach,
        }
        .map(f64::exp),
    )
}

/// Computes the interval from the mean logarithms of both sides.
fn of_sides(now: &[f64], before: &[f64]) -> Option<Interval> {
    let (now, before) = (logarithms(now)?, logarithms(before)?);
    if let Some(found) = difference95(&now, &before) {
        return Some(found.map(f64::exp));
    }
    // Neither side varies: one point.
    let (now, before) = (Summary::of(&now).ok()?, Summary::of(&before).ok()?);
    let is_constant = |of: &Summary| of.n() > 1 && of.min() == of.max();
    let difference = now.mean()? - before.mean()?;
    (is_constant(&now) && is_constant(&before)).then(|| Interval::point(difference.exp()))
}

/// Returns the logarithms; `None` where a sample has none.
fn logarithms(samples: &[f64]) -> Option<Vec<f64>> {
    let of = |sample: &f64| (*sample > 0.0 && sample.is_finite()).then(|| sample.ln());
    samples.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_pairs_have_students_interval() {
        // Logarithms of the ratios: 0.1, 0.2, 0.3, so 0.2 and 4.3027 of 0.1 / sqrt(3).
        let before = [1.0, 10.0, 100.0];
        let now = [0.1_f64.exp(), 10.0 * 0.2_f64.exp(), 100.0 * 0.3_f64.exp()];
        let found = ratio_interval(&now, &before, Runs::Paired).unwrap();
        let reach = 4.302_652_729_911 * 0.1 / 3.0_f64.sqrt();
        assert!((found.ends.low.ln() - (0.2 - reach)).abs() < 1e-9);
        assert!((found.ends.high.ln() - (0.2 + reach)).abs() < 1e-9);
        assert_eq!(found.method, IntervalMethod::LogRatios);
        // The bootstrap does not reach beyond the measured ratios.
        let narrow = bootstrap_paired_ratio(&now, &before, 1).unwrap();
        assert!(found.ends.low < narrow.low && found.ends.high > narrow.high);
    }

    #[test]
    fn a_few_runs_that_are_not_pairs_have_welchs() {
        let (now, before) = ([2.0, 3.0, 4.0], [5.0, 6.0]);
        let found = ratio_interval(&now, &before, Runs::Independent).unwrap();
        let logs = |samples: &[f64]| samples.iter().map(|x: &f64| x.ln()).collect::<Vec<_>>();
        let expected = difference95(&logs(&now), &logs(&before)).unwrap();
        assert_eq!(
            (found.ends.low, found.ends.high),
            (expected.low.exp(), expected.high.exp())
        );
    }

    #[test]
    fn many_have_the_bootstrap() {
        let before: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i * 7 % 10)).collect();
        let now: Vec<f64> = before.iter().map(|x| x * 2.0).collect();
        for runs in [Runs::Paired, Runs::Independent] {
            let many = ratio_interval(&now, &before, runs).unwrap();
            assert_eq!(many.method, IntervalMethod::Bootstrap);
            let few = ratio_interval(&now[..9], &before[..9], runs).unwrap();
            assert_eq!(few.method, IntervalMethod::LogRatios);
        }
    }

    #[test]
    fn what_has_no_ratio_has_no_interval() {
        for runs in [Runs::Paired, Runs::Independent] {
            assert_eq!(ratio_interval(&[], &[], runs), None);
            assert_eq!(ratio_interval(&[1.0], &[2.0], runs), None);
            assert_eq!(ratio_interval(&[0.0, 1.0], &[2.0, 3.0], runs), None);
            assert_eq!(ratio_interval(&[2.0, 1.0], &[2.0, -3.0], runs), None);
            assert_eq!(ratio_interval(&[2.0, f64::NAN], &[2.0, 3.0], runs), None);
            let point = ratio_interval(&[4.0, 4.0], &[2.0, 2.0], runs).unwrap().ends;
            assert!((point.low - 2.0).abs() < 1e-12 && (point.high - 2.0).abs() < 1e-12);
        }
        assert_eq!(
            ratio_interval(&[1.0, 2.0], &[1.0, 2.0, 3.0], Runs::Paired),
            None
        );
    }
}
