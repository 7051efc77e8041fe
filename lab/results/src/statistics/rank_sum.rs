//! The rank-sum test of Wilcoxon, Mann and Whitney: whether one of two independent sides tends to
//! be larger. It needs only an order, so outliers have little weight. For runs in pairs, see
//! [`SignedRank`](crate::SignedRank).
//!
//! U counts the pairs, one sample of each side, in which the first side's is larger; equal ones
//! count half. The two-sided p is the chance of a U at least as far from the middle if neither side
//! tends to be larger. The rules are the defaults of `scipy.stats.mannwhitneyu`: exact, by counting
//! all orders, where no two samples are equal and one side has at most [`EXACT_SMALLER_MAX`]; else
//! by the normal distribution, its variance corrected for ties and U for continuity.
//!
//! So an exact p is never below 2 / (n + m choose n): three samples against three cannot be
//! significant at 5 %.

use statrs::function::erf::erfc;

use super::Distribution;

/// The largest number of samples of the smaller side for which p is exact.
pub const EXACT_SMALLER_MAX: usize = 8;

/// The largest number of samples of the larger side for which p is exact: with more, the counts of
/// all orders would not fit 128 bits.
const EXACT_LARGER_MAX: usize = 10_000;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RankSum {
    /// The pairs in which the first side's sample is larger, equal ones counted half.
    pub u: f64,
    /// The two-sided p.
    pub p: f64,
    /// How p was computed.
    pub distribution: Distribution,
}

impl RankSum {
    /// Tests `a` against `b`. `None` where one of them has no samples or one that is not a number.
    ///
    /// Costs a sort of all, and for an exact p at most some 8 additions per pair.
    ///
    /// ```
    /// use brickyard_results::RankSum;
    /// let test = RankSum::of(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
    /// assert_eq!((test.u, test.p), (0.0, 2.0 / 70.0));
    /// ```
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|sample| sample.is_nan()) {
            return None;
        }
        let ranked = Ranked::of(a, b);
        let pairs = a.len() as u128 * b.len() as u128;
        // Twice U is a whole number, also with ties.
        let smaller = ranked.doubled_u.min(2 * pairs - ranked.doubled_u);
        let (few, many) = (a.len().min(b.len()), a.len().max(b.len()));
        let exact = few <= EXACT_SMALLER_MAX && many <= EXACT_LARGER_MAX && !ranked.has_ties;
        let (p, distribution) = if exact {
            (exact_p(few, many, smaller / 2), Distribution::Exact)
        } else {
            (ranked.normal_p(pairs, smaller), Distribution::Normal)
        };
        Some(Self {
            u: ranked.doubled_u as f64 / 2.0,
            p,
            distribution,
        })
    }
}

/// Counts that the test takes from the order of all samples.
struct Ranked {
    /// Twice the U of the first side.
    doubled_u: u128,
    /// Whether any two samples are equal.
    has_ties: bool,
    /// The sum of t^3 - t over all runs of t equal samples.
    tied: f64,
    /// The number of samples of both sides.
    n: f64,
}

impl Ranked {
    fn of(a: &[f64], b: &[f64]) -> Self {
        let first = a.iter().map(|&sample| (sample, true));
        let mut all: Vec<_> = first
            .chain(b.iter().map(|&sample| (sample, false)))
            .collect();
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        let (mut doubled_u, mut tied, mut has_ties, mut below) = (0, 0.0, false, 0);
        for run in all.chunk_by(|x, y| x.0 == y.0) {
            let of_first = run.iter().filter(|(_, first)| *first).count() as u128;
            let of_second = run.len() as u128 - of_first;
            doubled_u += of_first * (2 * below + of_second);
            below += of_second;
            has_ties |= run.len() > 1;
            tied += (run.len() as f64).powi(3) - run.len() as f64;
        }
        Self {
            doubled_u,
            has_ties,
            tied,
            n: all.len() as f64,
        }
    }

    /// Computes p by the normal distribution, for the smaller of the two doubled U.
    fn normal_p(&self, pairs: u128, smaller: u128) -> f64 {
        let n = self.n;
        let variance = pairs as f64 / 12.0 * (n + 1.0 - self.tied / (n * (n - 1.0)));
        // Half a pair towards the middle, but not past it.
        let distance = ((pairs - smaller) as f64 / 2.0 - 0.5).max(0.0);
        if distance == 0.0 || variance <= 0.0 {
            return 1.0;
        }
        erfc(distance / (2.0 * variance).sqrt()).min(1.0)
    }
}

/// Returns twice the share of all orders of `few` and `many` samples whose U is at most `u`.
fn exact_p(few: usize, many: usize, u: u128) -> f64 {
    let most = u as usize;
    // orders[u]: in how many orders of i and `many` samples U is u. Their sum is (many + i choose
    // i), below 2^92. Its generating function is the product over i of (1 - x^(many + i)) / (1 -
    // x^i).
    let mut orders = vec![0_i128; most + 1];
    orders[0] = 1;
    let mut all = 1.0;
    for i in 1..=few {
        for at in (many + i..=most).rev() {
            orders[at] -= orders[at - many - i];
        }
        for at in i..=most {
            orders[at] += orders[at - i];
        }
        all *= (many + i) as f64 / i as f64;
    }
    let as_extreme: i128 = orders.iter().sum();
    (2.0 * as_extreme as f64 / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the U of every choice of `few` positions among `few + many`.
    fn tried(few: usize, many: usize) -> Vec<u32> {
        let n = few + many;
        let choices = (0_u32..1 << n).filter(|choice| choice.count_ones() as usize == few);
        let u = |choice: u32| {
            let places = (0..n).filter(|place| choice >> place & 1 == 1);
            places
                .map(|place| (!choice & ((1 << place) - 1)).count_ones())
                .sum()
        };
        choices.map(u).collect()
    }

    #[test]
    fn exact_p_is_that_of_enumerating_every_order() {
        for (few, many) in [(1, 1), (1, 5), (2, 3), (3, 3), (4, 7), (5, 5), (6, 8)] {
            let all = tried(few, many);
            for u in 0..=(few * many / 2) as u32 {
                let extreme = all.iter().filter(|&&other| other <= u).count();
                let p = (2.0 * extreme as f64 / all.len() as f64).min(1.0);
                let got = exact_p(few, many, u128::from(u));
                assert!(
                    (got - p).abs() < 1e-12,
                    "{few} {many} {u}: {got} is not {p}"
                );
            }
        }
    }

    /// The tables that textbooks print: the largest U that is significant, two-sided, at 5 %.
    #[test]
    fn critical_values_are_those_of_the_published_table() {
        for (few, many, critical) in [
            (4, 4, 0),
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (5, 8, 6),
            (3, 10, 3),
            (8, 20, 41),
        ] {
            assert!(exact_p(few, many, critical) <= 0.05, "{few} {many}");
            assert!(exact_p(few, many, critical + 1) > 0.05, "{few} {many}");
        }
    }

    #[test]
    fn the_largest_exact_test_counts_right() {
        let middle = (EXACT_SMALLER_MAX * EXACT_LARGER_MAX / 2) as u128;
        let p = exact_p(EXACT_SMALLER_MAX, EXACT_LARGER_MAX, middle);
        assert_eq!(p, 1.0);
        let below = exact_p(EXACT_SMALLER_MAX, EXACT_LARGER_MAX, middle - 1);
        assert!(below <= 1.0 && below > 0.999);
    }

    #[test]
    fn samples_that_cannot_be_ranked_give_none() {
        assert_eq!(RankSum::of(&[], &[1.0]), None);
        assert_eq!(RankSum::of(&[1.0], &[f64::NAN]), None);
    }

    #[test]
    fn equal_samples_have_p_1() {
        let same = RankSum::of(&[1.0; 20], &[1.0; 20]).unwrap();
        assert_eq!((same.u, same.p), (200.0, 1.0));
        assert_eq!(same.distribution, Distribution::Normal);
        // The two zeros are the same number.
        assert_eq!(RankSum::of(&[0.0], &[-0.0]).unwrap().u, 0.5);
    }

    #[test]
    fn changing_sides_changes_u_and_not_p() {
        let (a, b) = ([3.0, 1.0, 4.0, 1.5, 9.0], [2.0, 6.0, 5.0, 3.5]);
        let (forth, back) = (RankSum::of(&a, &b).unwrap(), RankSum::of(&b, &a).unwrap());
        assert_eq!((forth.u + back.u, forth.p), (20.0, back.p));
    }
}
