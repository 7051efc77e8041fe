//! Student's t tests: whether two means differ, from runs in pairs (same seed, or one right after
//! the other), or, after Welch, from independent samples of possibly different variance.
//!
//! They assume differences, or means, that are nearly normal, and can reach 5 % with as few as two
//! samples of a side. The rank tests assume less, but need six pairs, or four samples of each side.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use super::summary::UPPER_PROBABILITY;
use super::{Interval, Summary};

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Student {
    /// The difference of the means in standard errors: positive where the first is larger.
    pub t: f64,
    /// The degrees of freedom; of independent samples by Welch and Satterthwaite.
    pub df: f64,
    /// The two-sided p.
    pub p: f64,
}

impl Student {
    /// Tests `a` against `b`; the samples at the same index are a pair. Costs a sort.
    ///
    /// `None` where the two differ in length, below two pairs, where a difference is not finite,
    /// and where all differences are the same: they have no scatter.
    ///
    /// ```
    /// use brickyard_results::Student;
    /// let test = Student::of_pairs(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
    /// assert!((test.t - 12.0_f64.sqrt()).abs() < 1e-12 && test.df == 2.0);
    /// assert!((test.p - 0.074_180).abs() < 1e-6);
    /// ```
    pub fn of_pairs(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len() != b.len() {
            return None;
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        let summary = Summary::of(&differences).ok()?;
        let t = summary.mean()? / (summary.stddev()? / (summary.n() as f64).sqrt());
        let varies = summary.min() != summary.max();
        Self::at(t, (summary.n() - 1) as f64).filter(|_| varies)
    }

    /// Tests independent samples, `a` against `b`. Costs a sort of each.
    ///
    /// `None` where one of them has fewer than two samples or one that is not finite, and where
    /// neither varies: without scatter there is nothing to test.
    ///
    /// ```
    /// use brickyard_results::Student;
    /// let test = Student::of_sides(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]).unwrap();
    /// assert!((test.df - 4.0).abs() < 1e-12 && (test.t + 1.5_f64.sqrt()).abs() < 1e-12);
    /// assert!((test.p - 0.287_864).abs() < 1e-6);
    /// ```
    pub fn of_sides(a: &[f64], b: &[f64]) -> Option<Self> {
        let parts = Parts::of(a, b)?;
        Self::at(parts.difference / parts.error, parts.df)
    }

    fn at(t: f64, df: f64) -> Option<Self> {
        let p = two_sided(t, df);
        (t.is_finite() && df.is_finite()).then_some(Self { t, df, p })
    }
}

/// Computes the 95 % interval of mean(`a`) - mean(`b`) of independent samples: it does not contain 0
/// where p is below 0.05. `None` where [`Student::of_sides`] has no test.
pub fn difference95(a: &[f64], b: &[f64]) -> Option<Interval> {
    let parts = Parts::of(a, b)?;
    let student = StudentsT::new(0.0, 1.0, parts.df).ok()?;
    let reach = student.inverse_cdf(UPPER_PROBABILITY) * parts.error;
    let (low, high) = (parts.difference - reach, parts.difference + reach);
    (low.is_finite() && high.is_finite()).then_some(Interval { low, high })
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
fn two_sided(t: f64, df: f64) -> f64 {
    if !(t.is_finite() && df.is_finite()) {
        return f64::NAN;
    }
    let inside = df / t.mul_add(t, df);
    beta_reg(df / 2.0, 0.5, inside).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_test_give_none() {
        for (a, b) in [
            (&[][..], &[][..]),
            (&[1.0], &[2.0]),
            (&[1.0], &[1.0, 2.0]),
            (&[1.0, f64::INFINITY], &[2.0, 2.0]),
            (&[1.0, f64::NAN], &[2.0, 2.0]),
            (&[1.0, 1.0], &[2.0, 2.0]),
            (&[f64::MAX, -f64::MAX], &[2.0, 3.0]),
        ] {
            assert_eq!(Student::of_sides(a, b), None, "{a:?} {b:?}");
            assert_eq!(Student::of_pairs(a, b), None, "{a:?} {b:?}");
            assert_eq!(difference95(a, b), None, "{a:?} {b:?}");
        }
        assert_eq!(Student::of_pairs(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(Student::of_pairs(&[1.0, 2.0], &[2.0, 3.0]), None);
    }

    #[test]
    fn pairs_that_agree_count_however_far_the_runs_scatter() {
        let before = [10.0, 20.0, 30.0, 40.0];
        let after = [9.0, 19.1, 28.9, 39.0];
        let test = Student::of_pairs(&after, &before).unwrap();
        assert!(test.t < 0.0 && test.p < 0.001);
        assert_eq!(Student::of_pairs(&before, &after).unwrap().p, test.p);
    }

    #[test]
    fn one_side_may_be_constant() {
        let test = Student::of_sides(&[5.0; 4], &[1.0, 2.0, 3.0]).unwrap();
        assert!((test.df - 2.0).abs() < 1e-12);
        assert!(test.t > 0.0 && test.p < 0.05);
    }

    #[test]
    fn very_large_and_very_small_samples_are_tested() {
        let far = Student::of_sides(&[1e150, 1.1e150], &[-1e150, -1.1e150]).unwrap();
        assert!(far.t > 0.0 && far.p > 0.0 && far.p < 0.05);
        let small = Student::of_sides(&[1e-150, 2e-150], &[7e-150, 8e-150]).unwrap();
        assert!((small.df - 2.0).abs() < 1e-9 && small.p < 0.05);
        let same = Student::of_sides(&[1.0, 2.0], &[1.0, 2.0]).unwrap();
        assert_eq!((same.t, same.p), (0.0, 1.0));
        assert_eq!(two_sided(f64::MAX, 5.0), 0.0);
    }
}
