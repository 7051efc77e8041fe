//! Welch's t test: whether two means differ, from independent samples of possibly different
//! variance.
//!
//! It assumes that the means are nearly normal, which holds for a dozen samples without outliers.
//! With outliers, use [`RankSum`](crate::RankSum).

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use crate::summary::UPPER_PROBABILITY;
use crate::{Interval, Summary};

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Welch {
    /// The difference of the means in standard errors: positive where the first is larger.
    pub t: f64,
    /// The degrees of freedom by Welch and Satterthwaite.
    pub df: f64,
    /// The two-sided p.
    pub p: f64,
}

impl Welch {
    /// Tests `a` against `b`. Costs a sort of each.
    ///
    /// `None` where one of them has fewer than two samples or one that is not finite, and where
    /// neither varies: without scatter there is nothing to test.
    ///
    /// ```
    /// use brickyard_results::Welch;
    /// let test = Welch::of(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]).unwrap();
    /// assert!((test.df - 4.0).abs() < 1e-12 && (test.t + 1.5_f64.sqrt()).abs() < 1e-12);
    /// assert!((test.p - 0.287_864).abs() < 1e-6);
    /// ```
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let parts = Parts::of(a, b)?;
        let (t, df) = (parts.difference / parts.error, parts.df);
        (t.is_finite() && df.is_finite()).then(|| Self {
            t,
            df,
            p: two_sided(t, df),
        })
    }

    /// Computes the 95 % interval of mean(`a`) - mean(`b`) that belongs to the test: it does not
    /// contain 0 where p is below 0.05.
    ///
    /// `None` where [`Self::of`] has no test. Costs the same.
    ///
    /// ```
    /// use brickyard_results::Welch;
    /// let interval = Welch::difference95(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]).unwrap();
    /// assert!((interval.low + 3.267).abs() < 1e-3 && (interval.high - 1.267).abs() < 1e-3);
    /// ```
    pub fn difference95(a: &[f64], b: &[f64]) -> Option<Interval> {
        let parts = Parts::of(a, b)?;
        let student = StudentsT::new(0.0, 1.0, parts.df).ok()?;
        let reach = student.inverse_cdf(UPPER_PROBABILITY) * parts.error;
        let (low, high) = (parts.difference - reach, parts.difference + reach);
        (low.is_finite() && high.is_finite()).then_some(Interval { low, high })
    }
}

/// What the test and the interval are computed from.
struct Parts {
    /// The difference of the means.
    difference: f64,
    /// Its standard error, which is not 0.
    error: f64,
    /// The degrees of freedom.
    df: f64,
}

impl Parts {
    fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (Summary::of(a).ok()?, Summary::of(b).ok()?);
        let error = |of: &Summary| Some(of.stddev()? / (of.n() as f64).sqrt());
        let (error_a, error_b) = (error(&a)?, error(&b)?);
        let error = error_a.hypot(error_b);
        // As shares of the whole error: the fourth power of a small error alone would be 0.
        let part = |of_side: f64, of: &Summary| (of_side / error).powi(4) / (of.n() - 1) as f64;
        Some(Self {
            difference: a.mean()? - b.mean()?,
            error,
            df: 1.0 / (part(error_a, &a) + part(error_b, &b)),
        })
        .filter(|_| error > 0.0)
    }
}

/// Returns the chance of a t at least as far from 0, by the incomplete beta function, which keeps
/// its precision in the tail.
pub(crate) fn two_sided(t: f64, df: f64) -> f64 {
    let inside = df / t.mul_add(t, df);
    beta_reg(df / 2.0, 0.5, inside).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_test_give_none() {
        assert_eq!(Welch::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Welch::of(&[], &[]), None);
        assert_eq!(Welch::of(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(Welch::of(&[1.0, f64::INFINITY], &[2.0, 2.0]), None);
        assert_eq!(Welch::of(&[f64::MAX, -f64::MAX], &[2.0, 3.0]), None);
        assert_eq!(Welch::difference95(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(Welch::difference95(&[1.0], &[2.0, 3.0]), None);
    }

    #[test]
    fn one_side_may_be_constant() {
        let test = Welch::of(&[5.0; 4], &[1.0, 2.0, 3.0]).unwrap();
        assert!((test.df - 2.0).abs() < 1e-12);
        assert!(test.t > 0.0 && test.p < 0.05);
    }

    #[test]
    fn very_large_and_very_small_samples_are_tested() {
        let far = Welch::of(&[1e150, 1.1e150], &[-1e150, -1.1e150]).unwrap();
        assert!(far.t > 0.0 && far.p > 0.0 && far.p < 0.05);
        let small = Welch::of(&[1e-150, 2e-150], &[7e-150, 8e-150]).unwrap();
        assert!((small.df - 2.0).abs() < 1e-9 && small.p < 0.05);
        let same = Welch::of(&[1.0, 2.0], &[1.0, 2.0]).unwrap();
        assert_eq!((same.t, same.p), (0.0, 1.0));
        assert_eq!(two_sided(f64::MAX, 5.0), 0.0);
    }
}
