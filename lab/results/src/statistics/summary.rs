//! The statistics of one row's samples.
//!
//! Names and rules are those of mmtests' `Stat.pm`, whose numbers appear on kernel mailing lists.
//! Two things differ. Where mmtests returns `NaN` (a deviation of one sample, any mean of none) the
//! result here is `None`, so no output ever holds a NaN. And its median is one element too low.
//!
//! Invariant `in-range`: min <= mean <= max. Rounding of the sum alone could break it (three times
//! 0.1 sums to more than 0.3), and samples that are all equal would then appear to vary.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability below the upper end of a two-sided 95 % interval.
pub(crate) const UPPER_PROBABILITY: f64 = 0.975;

/// The error for a sample that is infinite or not a number.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("samples[{index}] is {value}, not a finite number")]
#[non_exhaustive]
pub struct NotFinite {
    /// Its index among the samples, from 0.
    pub index: usize,
    /// Its value.
    pub value: f64,
}

/// The statistics of one vector of samples, in the samples' unit unless a method returns percent.
///
/// ```
/// let cycles = brickyard_results::Summary::of(&[4.0, 2.0, 6.0])?;
/// assert_eq!(cycles.mean(), Some(4.0));
/// assert_eq!(cycles.stddev(), Some(2.0));
/// assert_eq!(brickyard_results::Summary::of(&[4.0])?.stddev(), None);
/// # Ok::<(), brickyard_results::NotFinite>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    sorted: Vec<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
}

impl Summary {
    /// Computes the statistics of `samples`, of which there may be none. Costs a sort.
    ///
    /// # Errors
    /// [`NotFinite`] names the first sample that is infinite or not a number.
    pub fn of(samples: &[f64]) -> Result<Self, NotFinite> {
        if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
            return Err(NotFinite {
                index,
                value: samples[index],
            });
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = mean_of(&sorted);
        let stddev = mean.and_then(|mean| stddev_of(&sorted, mean));
        Ok(Self {
            sorted,
            mean,
            stddev,
        })
    }

    /// The number of samples.
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// The arithmetic mean (mmtests' `Amean`). `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// The smallest sample. `None` without samples.
    pub fn min(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    /// The largest sample. `None` without samples.
    pub fn max(&self) -> Option<f64> {
        self.sorted.last().copied()
    }

    /// The middle sample, or the mean of the two in the middle. `None` without samples.
    pub fn median(&self) -> Option<f64> {
        let upper = *self.sorted.get(self.n() / 2)?;
        if self.n() % 2 == 1 {
            return Some(upper);
        }
        let lower = *self.sorted.get(self.n() / 2 - 1)?;
        Some(f64::midpoint(lower, upper))
    }

    /// The standard deviation of the samples, over n - 1 (mmtests' `Stddev`). `None` below two
    /// samples.
    pub fn stddev(&self) -> Option<f64> {
        self.stddev
    }

    /// The coefficient of variation, 100 * stddev / |mean|, in percent (mmtests' `CoeffVar`).
    ///
    /// `None` below two samples, and where the mean is zero.
    pub fn variation_percent(&self) -> Option<f64> {
        let mean = self.mean.filter(|mean| *mean != 0.0)?;
        finite(100.0 * self.stddev? / mean.abs())
    }

    /// Half the width of the 95 % confidence interval of the mean, by Student's t with n - 1
    /// degrees of freedom: t(0.975, n - 1) * stddev / sqrt(n). `None` below two samples.
    pub fn ci95(&self) -> Option<f64> {
        let stddev = self.stddev?;
        let t = t_quantile(self.n().checked_sub(1)?)?;
        finite(t * (stddev / (self.n() as f64).sqrt()))
    }
}

/// Computes the mean of sorted samples.
fn mean_of(sorted: &[f64]) -> Option<f64> {
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let sum: f64 = sorted.iter().sum();
    // Invariant `in-range`.
    finite(sum / sorted.len() as f64).map(|mean| mean.clamp(min, max))
}

/// Computes the standard deviation. `None` below two samples.
fn stddev_of(samples: &[f64], mean: f64) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    finite((squares / (samples.len() - 1) as f64).sqrt())
}

/// Returns the 0.975 quantile of Student's t with `degrees` degrees of freedom. `None` at 0.
pub(crate) fn t_quantile(degrees: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, degrees as f64).ok()?;
    finite(student.inverse_cdf(UPPER_PROBABILITY))
}

/// Returns the value if it is finite; sums of samples near the limit of f64 overflow.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[f64]) -> Summary {
        Summary::of(samples).unwrap()
    }

    fn close(got: Option<f64>, expected: f64) {
        let got = got.unwrap();
        assert!(
            (got - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{got} is not {expected}"
        );
    }

    #[test]
    fn no_and_one_sample_leave_statistics_undefined() {
        let none = of(&[]);
        assert_eq!(none.n(), 0);
        assert_eq!(
            [none.mean(), none.min(), none.max(), none.median()],
            [None; 4]
        );
        let one = of(&[7.0]);
        assert_eq!(
            [one.mean(), one.min(), one.max(), one.median()],
            [Some(7.0); 4]
        );
        for few in [none, one] {
            let of_scatter = [few.stddev(), few.variation_percent(), few.ci95()];
            assert_eq!(of_scatter, [None; 3]);
        }
    }

    #[test]
    fn hand_computed() {
        // Sum 40, squared distances 9+1+1+1+0+0+4+16 = 32.
        let eight = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        close(eight.mean(), 5.0);
        close(eight.stddev(), (32.0_f64 / 7.0).sqrt());
        close(eight.median(), 4.5);
        close(
            eight.variation_percent(),
            100.0 * (32.0_f64 / 7.0).sqrt() / 5.0,
        );
        assert_eq!(of(&[3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(of(&[-1.0, 1.0]).variation_percent(), None);
    }

    #[test]
    fn t_quantiles_are_those_of_the_published_table() {
        for (degrees, published) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (9, 2.262),
            (14, 2.145),
            (29, 2.045),
            (120, 1.980),
            (1_000_000, 1.960),
        ] {
            let t = t_quantile(degrees).unwrap();
            assert!(
                (t - published).abs() < 5e-4,
                "{degrees} degrees: {t} is not {published}"
            );
        }
        assert_eq!(t_quantile(0), None);
    }

    #[test]
    fn confidence_interval_of_two_and_of_ten() {
        // stddev of 0 and 2 is sqrt 2; over sqrt 2 that is 1, so the half width is t itself.
        assert!((of(&[0.0, 2.0]).ci95().unwrap() - 12.706).abs() < 5e-4);
        // 1..=10: variance 55/6, so 2.262 * sqrt(55/60) = 2.166.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!((of(&ten).ci95().unwrap() - 2.262 * (55.0_f64 / 60.0).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn samples_that_are_not_finite_are_refused() {
        let refused = Summary::of(&[1.0, f64::NAN]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "samples[1] is NaN, not a finite number"
        );
        assert_eq!(Summary::of(&[f64::INFINITY]).unwrap_err().index, 0);
    }

    #[test]
    fn equal_samples_do_not_vary() {
        let same = of(&[0.1; 3]);
        assert_eq!(
            (same.mean(), same.stddev(), same.ci95()),
            (Some(0.1), Some(0.0), Some(0.0))
        );
    }
}
