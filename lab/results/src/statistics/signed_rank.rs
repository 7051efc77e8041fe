//! Wilcoxon's signed-rank test: whether two columns differ, from runs made in pairs (same seed, or
//! one right after the other).
//!
//! The differences of the pairs are ranked by size. If the columns do not differ, each difference
//! has either sign with equal chance, and the ranks of the positive ones sum up to about as much as
//! those of the negative ones. The two-sided p is the chance of sums at least as far apart.
//!
//! The rules, where textbooks differ:
//! - A pair without a difference is dropped (Wilcoxon's own rule, `zero_method="wilcox"` in SciPy),
//!   and so is not counted in the `n` of the test.
//! - Differences of the same size share the mean of their ranks.
//! - Up to [`EXACT_PAIRS_MAX`] pairs p is exact, with ties too: all 2^n ways to give signs to these
//!   ranks are counted. Above that, p is by the normal distribution, with the variance corrected
//!   for ties and the sum for continuity. (That approximation is wrong for few pairs: for five
//!   equal differences it gives 0.037, while 2 of the 32 ways are as extreme, which is 0.0625.)
//!
//! So p is never below [`smallest_p`], 2 / 2^n: with five pairs or fewer no difference, however
//! large, is significant at 5 %.

use statrs::function::erf::erfc;

use super::Distribution;

/// The largest number of differing pairs for which p is exact. It costs n^3 additions.
const EXACT_PAIRS_MAX: usize = 50;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SignedRank {
    /// The number of pairs that differ.
    pub pairs: usize,
    /// The number of equal pairs, which were dropped.
    pub equal: usize,
    /// The sum of the ranks of the pairs that grew from `before` to `after`.
    pub grown: f64,
    /// The sum of the ranks of the pairs that fell.
    pub fallen: f64,
    /// The two-sided p; 1 where no pair differs.
    pub p: f64,
    /// How p was computed.
    pub distribution: Distribution,
}

impl SignedRank {
    /// Tests `after` against `before`; the samples at the same index are a pair. `None` where the
    /// two differ in length, and where a difference is not a number.
    ///
    /// ```
    /// use brickyard_results::SignedRank;
    /// let before = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    /// let after = [9.0, 9.0, 9.0, 9.0, 9.0, 9.0];
    /// let test = SignedRank::of(&before, &after).unwrap();
    /// assert_eq!((test.pairs, test.fallen, test.p), (6, 21.0, 2.0 / 64.0));
    /// ```
    pub fn of(before: &[f64], after: &[f64]) -> Option<Self> {
        let mut differences: Vec<f64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        if before.len() != after.len() || differences.iter().any(|d| d.is_nan()) {
            return None;
        }
        differences.retain(|&difference| difference != 0.0);
        differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let equal = before.len() - differences.len();
        Some(Self::of_ranked(&differences, equal))
    }

    /// Tests differences that are sorted by size.
    fn of_ranked(differences: &[f64], equal: usize) -> Self {
        let pairs = differences.len();
        let ranks = doubled_ranks(differences);
        let all: u64 = ranks.iter().sum();
        let signs = ranks.iter().zip(differences);
        let grown: u64 = signs.filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
        let smaller = grown.min(all - grown);
        let (p, distribution) = if pairs <= EXACT_PAIRS_MAX {
            (exact_p(&ranks, smaller), Distribution::Exact)
        } else {
            (normal_p(differences, smaller), Distribution::Normal)
        };
        Self {
            pairs,
            equal,
            grown: grown as f64 / 2.0,
            fallen: (all - grown) as f64 / 2.0,
            p,
            distribution,
        }
    }
}

/// Returns the least p that `pairs` differing pairs can have: 2 / 2^n, and 1 for none.
pub fn smallest_p(pairs: usize) -> f64 {
    (2.0_f64).powf(1.0 - pairs as f64).min(1.0)
}

/// Returns the lengths of the runs of differences of the same size.
fn ties(differences: &[f64]) -> impl Iterator<Item = usize> {
    let runs = differences.chunk_by(|a, b| a.abs() == b.abs());
    runs.map(<[f64]>::len)
}

/// Returns twice the rank of each difference: a whole number even where ties share a mean rank.
fn doubled_ranks(differences: &[f64]) -> Vec<u64> {
    let mut ranks = Vec::with_capacity(differences.len());
    for run in ties(differences) {
        let (first, last) = (ranks.len() + 1, ranks.len() + run);
        ranks.extend(core::iter::repeat_n((first + last) as u64, run));
    }
    ranks
}

/// Returns twice the share of all subsets of the ranks that sum up to at most `smaller`.
fn exact_p(ranks: &[u64], smaller: u64) -> f64 {
    let most = smaller as usize;
    // ways[s]: the number of subsets of the ranks so far that sum up to s. At most 2^50, which an
    // f64 holds exactly.
    let mut ways = vec![0_u64; most + 1];
    ways[0] = 1;
    for rank in ranks.iter().map(|&rank| rank as usize) {
        for sum in (rank..=most).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let as_extreme: u64 = ways.iter().sum();
    (as_extreme as f64 * smallest_p(ranks.len())).min(1.0)
}

/// Computes the same by the normal distribution.
fn normal_p(differences: &[f64], smaller: u64) -> f64 {
    let n = differences.len() as f64;
    let mean = n * (n + 1.0) / 4.0;
    let shared: f64 = ties(differences)
        .map(|run| (run as f64).powi(3) - run as f64)
        .sum();
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - shared / 48.0;
    // Half a rank towards the mean, but not past it.
    let distance = (mean - smaller as f64 / 2.0 - 0.5).max(0.0);
    erfc(distance / (2.0 * variance).sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests these differences.
    fn of(differences: &[f64]) -> SignedRank {
        SignedRank::of(&vec![0.0; differences.len()], differences).unwrap()
    }

    /// Tests the differences 1..=n, with negative ones chosen so that their ranks sum to `fallen`.
    fn with_fallen(n: usize, fallen: u64) -> SignedRank {
        let mut left = fallen;
        let mut differences: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
        for difference in differences.iter_mut().rev() {
            if *difference as u64 <= left {
                left -= *difference as u64;
                *difference = -*difference;
            }
        }
        assert_eq!(left, 0, "no ranks of 1..={n} sum up to {fallen}");
        of(&differences)
    }

    /// The critical values that every textbook prints: the largest smaller sum that is significant,
    /// two-sided, at 5 % and at 1 %.
    #[test]
    fn critical_values_are_those_of_the_published_table() {
        let five = [
            (6, 0),
            (7, 2),
            (8, 3),
            (9, 5),
            (10, 8),
            (11, 10),
            (12, 13),
            (13, 17),
            (14, 21),
            (15, 25),
            (16, 29),
            (17, 34),
            (18, 40),
            (19, 46),
            (20, 52),
            (25, 89),
            (30, 137),
        ];
        let one = [
            (8, 0),
            (9, 1),
            (10, 3),
            (11, 5),
            (12, 7),
            (13, 9),
            (14, 12),
            (15, 15),
            (16, 19),
            (17, 23),
            (18, 27),
            (19, 32),
            (20, 37),
            (25, 68),
            (30, 109),
        ];
        let at = |level: f64, table: &[(usize, u64)]| {
            for &(n, critical) in table {
                let at = with_fallen(n, critical);
                assert_eq!(at.distribution, Distribution::Exact);
                assert!(at.p <= level, "{n} pairs, {critical}: {}", at.p);
                let above = with_fallen(n, critical + 1).p;
                assert!(above > level, "{n} pairs, {critical} + 1: {above}");
            }
        };
        at(0.05, &five);
        at(0.01, &one);
    }

    /// Expected figures by `scipy.stats.wilcoxon` 1.17.1.
    #[test]
    fn p_is_that_of_scipy() {
        let close = |differences: &[f64], smaller: f64, p: f64, distribution| {
            let test = of(differences);
            assert_eq!(test.grown.min(test.fallen), smaller);
            assert_eq!(test.distribution, distribution);
            assert!((test.p / p - 1.0).abs() < 1e-9, "{} is not {p}", test.p);
        };
        // Darwin's maize, crossed against self-fertilised.
        let maize = [
            6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0,
            75.0,
        ];
        close(&maize, 24.0, 0.041259765625, Distribution::Exact);
        // Ties and zeros, by PermutationMethod(n_resamples=inf), which counts all ways.
        let tied = [
            1.0, 1.0, -1.0, 2.0, 2.0, 3.0, 0.0, 3.0, -3.0, 4.0, 5.0, 0.0, 5.0,
        ];
        close(&tied, 9.0, 0.03515625, Distribution::Exact);
        assert_eq!((of(&tied).pairs, of(&tied).equal), (11, 2));
        // The most pairs that are counted exactly, 50; every third is negative.
        let sign = |i: i32| if i % 3 == 0 { -1.0 } else { 1.0 };
        let fifty: Vec<f64> = (0..50).map(|i| f64::from(i + 1) * sign(i)).collect();
        close(&fifty, 425.0, 0.03996834652842374, Distribution::Exact);
        // More of them, with ties: method="asymptotic", correction=True.
        let sixty: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 101 - 45)).collect();
        close(&sixty, 763.5, 0.26628823437850624, Distribution::Normal);
        let many: Vec<f64> = (0..80).map(|i| f64::from(i * 7 % 13 - 5)).collect();
        close(&many, 995.0, 0.03416078792969351, Distribution::Normal);
        assert_eq!((of(&many).pairs, of(&many).equal), (74, 6));
    }

    #[test]
    fn few_pairs_are_never_significant() {
        for (n, p) in [(0, 1.0), (1, 1.0), (4, 0.125), (5, 0.0625), (6, 0.03125)] {
            assert_eq!(smallest_p(n), p);
            assert_eq!(with_fallen(n, 0).p, p);
            // Ties make no difference: these are all of the same size.
            assert_eq!(of(&vec![2.0; n]).p, p);
        }
        assert_eq!(of(&[0.0; 4]).equal, 4);
        assert_eq!(of(&[0.0; 4]).p, 1.0);
    }

    #[test]
    fn the_sign_and_the_order_of_the_pairs_do_not_matter() {
        let forth = of(&[3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.0]);
        let back = of(&[-2.0, -9.0, 5.0, -1.5, -4.0, 1.0, -3.0]);
        assert_eq!((forth.p, forth.grown), (back.p, back.fallen));
        // Equal sums have p = 1.
        assert_eq!(of(&[1.0, -2.0, -3.0, 4.0]).p, 1.0);
        let alternating: Vec<f64> = (0..64)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        assert_eq!(of(&alternating).p, 1.0);
    }

    #[test]
    fn samples_not_in_pairs_have_no_test() {
        assert_eq!(SignedRank::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(SignedRank::of(&[1.0, 2.0], &[1.0, f64::NAN]), None);
    }
}
