//! Student's paired t test: whether two means differ, from runs made in pairs (same seed, or one
//! right after the other).
//!
//! It assumes differences that are nearly normal, and can reach 5 % with as few as two pairs. From
//! six pairs on [`SignedRank`](crate::SignedRank) can reach it too, and assumes less.

use crate::Summary;
use crate::welch::two_sided;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairedT {
    /// The mean difference in standard errors: positive where the first is larger.
    pub t: f64,
    /// The degrees of freedom: one less than the pairs.
    pub df: f64,
    /// The two-sided p.
    pub p: f64,
}

impl PairedT {
    /// Tests `a` against `b`; the samples at the same index are a pair. Costs a sort.
    ///
    /// `None` where the two differ in length, below two pairs, where a difference is not finite,
    /// and where all differences are the same: they have no scatter.
    ///
    /// ```
    /// use brickyard_results::PairedT;
    /// let test = PairedT::of(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
    /// assert!((test.t - 12.0_f64.sqrt()).abs() < 1e-12 && test.df == 2.0);
    /// assert!((test.p - 0.074_180).abs() < 1e-6);
    /// ```
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len() != b.len() {
            return None;
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        let summary = Summary::of(&differences).ok()?;
        let t = summary.mean()? / (summary.stddev()? / (summary.n() as f64).sqrt());
        let df = (summary.n() - 1) as f64;
        let varies = summary.min() != summary.max();
        (varies && t.is_finite()).then(|| Self {
            t,
            df,
            p: two_sided(t, df),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_test_give_none() {
        assert_eq!(PairedT::of(&[], &[]), None);
        assert_eq!(PairedT::of(&[1.0], &[2.0]), None);
        assert_eq!(PairedT::of(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(PairedT::of(&[1.0, 2.0], &[2.0, 3.0]), None);
        assert_eq!(PairedT::of(&[1.0, f64::NAN], &[2.0, 2.0]), None);
        assert_eq!(PairedT::of(&[1.0, f64::INFINITY], &[2.0, 2.0]), None);
    }

    #[test]
    fn pairs_that_agree_count_however_far_the_runs_scatter() {
        let before = [10.0, 20.0, 30.0, 40.0];
        let after = [9.0, 19.1, 28.9, 39.0];
        let test = PairedT::of(&after, &before).unwrap();
        assert!(test.t < 0.0 && test.p < 0.001);
        assert_eq!(PairedT::of(&before, &after).unwrap().p, test.p);
    }
}
