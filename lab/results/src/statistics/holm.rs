//! Holm's correction for many tests at once. Of a hundred rows that do not differ, five are
//! significant at 5 % by chance; the correction (1979) keeps the chance of even one such row among
//! all of them below the level, and is never less powerful than Bonferroni's.

/// Returns the p of each test corrected for their number, in the same order, to be compared with
/// the level. The smallest of m is multiplied by m, the next by m - 1, and so on; none is less than
/// one before it, and none above 1.
///
/// A NaN is no test: it stays as it is and is not counted. Costs a sort.
///
/// ```
/// assert_eq!(brickyard_results::holm(&[0.03, 0.01, 0.04]), [0.06, 0.03, 0.06]);
/// ```
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut tests: Vec<usize> = (0..p.len()).filter(|&test| !p[test].is_nan()).collect();
    tests.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = p.to_vec();
    let mut least = 0.0_f64;
    for (done, &test) in tests.iter().enumerate() {
        let left = (tests.len() - done) as f64;
        least = (p[test] * left).clamp(least, 1.0);
        corrected[test] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_one_stay_as_they_are() {
        assert_eq!(holm(&[]), [0.0; 0]);
        assert_eq!(holm(&[0.2]), [0.2]);
    }

    #[test]
    fn a_nan_is_not_counted() {
        let corrected = holm(&[f64::NAN, 0.25, 0.125]);
        assert!(corrected[0].is_nan());
        assert_eq!(corrected[1..], [0.25, 0.25]);
    }

    #[test]
    fn none_is_above_one_or_below_a_smaller_one() {
        assert_eq!(holm(&[0.9, 0.8, 0.7]), [1.0; 3]);
        assert_eq!(holm(&[0.0, 0.0]), [0.0; 2]);
        let corrected = holm(&[0.0625, 0.03125, 0.0625, 0.5]);
        assert_eq!(corrected, [0.1875, 0.125, 0.1875, 0.5]);
    }
}
