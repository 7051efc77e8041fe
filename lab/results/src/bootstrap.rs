//! The bootstrap: confidence intervals of a mean, or of a ratio of two means, without an assumption
//! on the distribution of the samples.
//!
//! The samples are resampled with replacement [`RESAMPLES`] times; the scatter of the statistic
//! over the resamples estimates its scatter over repetitions of the experiment. Two 95 % intervals
//! are computed: from the 2.5 % to the 97.5 % percentile, and the same with both ends moved for
//! bias and skew ("bias-corrected and accelerated", BCa, Efron 1987), by the rules of
//! `scipy.stats.bootstrap`. The same samples and seed give the same interval on every machine.
//!
//! A resample holds only values that were measured, so with fewer than about ten samples the
//! intervals are too narrow (for five normal samples they contain the true mean some 85 times of
//! 100), and [`Summary::ci95`](crate::Summary::ci95) is better.

use brickyard_run::Dice;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::summary::UPPER_PROBABILITY;

/// The number of resamples.
pub const RESAMPLES: usize = 9_999;

/// The standard normal distribution's 0.975 quantile.
const UPPER_QUANTILE: f64 = crate::INTERVAL_DEVIATIONS;

/// Statistics closer than this share of the range of all resamples count as equal: rounding.
const ROUNDING: f64 = 1e-9;

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end, not below the lower one.
    pub high: f64,
}

/// Both 95 % intervals of a statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// From the 2.5 % to the 97.5 % percentile.
    pub percentile: Interval,
    /// The same, corrected for bias and skew.
    pub bca: Interval,
}

impl Bootstrap {
    /// Computes the intervals of the mean, in the samples' unit.
    ///
    /// `None` below two samples, or with one that is not finite. Samples that are all the same give
    /// an interval of that one point. Costs [`RESAMPLES`] sums of all samples, and a sort.
    pub fn of_mean(samples: &[f64], seed: u64) -> Option<Self> {
        if samples.len() < 2 {
            return None;
        }
        let left_out = || leave_one_out(samples).collect();
        of(seed, mean(samples.iter()), &[left_out()], |dice| {
            mean(draw(dice, samples))
        })
    }

    /// Computes the intervals of the ratio mean(`now`) / mean(`before`) of independent samples.
    ///
    /// `None` below two samples of either, with one that is not finite, and where the mean of
    /// `before` differs in sign between resamples or is 0: the ratio then has no bounds. Costs as
    /// much as [`Self::of_mean`] of both together.
    pub fn of_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Self> {
        if now.len() < 2 || before.len() < 2 {
            return None;
        }
        let (over, under) = (mean(now.iter()), mean(before.iter()));
        let left_out = [
            leave_one_out(now).map(|over| over / under).collect(),
            leave_one_out(before).map(|under| over / under).collect(),
        ];
        of(seed, over / under, &left_out, |dice| {
            let over = mean(draw(dice, now));
            ratio(over, mean(draw(dice, before)), under)
        })
    }

    /// Computes the intervals of the ratio mean(`now`) / mean(`before`) of samples in pairs (same
    /// seed, or one right after the other). Whole pairs are resampled, so scatter that both samples
    /// of a pair share does not widen the interval.
    ///
    /// `None` as [`Self::of_ratio`], and where the two differ in length. Costs the same.
    pub fn of_paired_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Self> {
        if now.len() < 2 || now.len() != before.len() {
            return None;
        }
        let (over, under) = (mean(now.iter()), mean(before.iter()));
        let both = leave_one_out(now).zip(leave_one_out(before));
        let left_out = both.map(|(over, under)| over / under).collect();
        of(seed, over / under, &[left_out], |dice| {
            let drawn: Vec<usize> = (0..now.len())
                .map(|_| dice.below(now.len() as u64) as usize)
                .collect();
            let over = mean(drawn.iter().map(|&pair| &now[pair]));
            ratio(over, mean(drawn.iter().map(|&pair| &before[pair])), under)
        })
    }
}

/// The 95 % interval of the mean, BCa: [`Bootstrap::of_mean`].
///
/// ```
/// use brickyard_results::bootstrap_mean;
/// let samples = [10.0, 12.0, 9.0, 11.0, 10.0, 13.0];
/// let interval = bootstrap_mean(&samples, 1).unwrap();
/// assert!(9.0 < interval.low && interval.low < 10.8 && 10.8 < interval.high && interval.high < 13.0);
/// assert_eq!(bootstrap_mean(&samples, 1), Some(interval));
/// ```
pub fn bootstrap_mean(samples: &[f64], seed: u64) -> Option<Interval> {
    Bootstrap::of_mean(samples, seed).map(|both| both.bca)
}

/// The 95 % interval of mean(`now`) / mean(`before`), BCa, for independent samples:
/// [`Bootstrap::of_ratio`].
pub fn bootstrap_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Interval> {
    Bootstrap::of_ratio(now, before, seed).map(|both| both.bca)
}

/// The 95 % interval of mean(`now`) / mean(`before`), BCa, for samples in pairs:
/// [`Bootstrap::of_paired_ratio`].
pub fn bootstrap_paired_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Interval> {
    Bootstrap::of_paired_ratio(now, before, seed).map(|both| both.bca)
}

/// The 95 % intervals, from percentile to percentile, of several statistics of the same resamples.
/// `drawn` draws one, and returns the statistics in their order. `None` if one is not finite. Costs
/// [`RESAMPLES`] calls of `drawn`, and a sort for each statistic.
///
/// ```
/// use brickyard_results::bootstrap_each;
/// let samples = [10.0, 12.0, 9.0, 11.0, 10.0, 13.0];
/// let both = bootstrap_each(1, |dice| {
///     let drawn = [(); 6].map(|()| samples[dice.below(6) as usize]);
///     vec![drawn.iter().sum::<f64>() / 6.0, drawn.iter().copied().fold(0.0, f64::max)]
/// });
/// let [mean, most] = both.unwrap()[..] else { panic!() };
/// assert!(mean.low < 10.8 && 10.8 < mean.high && most.low > mean.low && most.high == 13.0);
/// ```
pub fn bootstrap_each(
    seed: u64,
    mut drawn: impl FnMut(&mut Dice) -> Vec<f64>,
) -> Option<Vec<Interval>> {
    let mut dice = Dice::new(seed);
    let mut statistics: Vec<Vec<f64>> = Vec::new();
    for _ in 0..RESAMPLES {
        let values = drawn(&mut dice);
        statistics.resize_with(values.len(), Vec::new);
        for (all, value) in statistics.iter_mut().zip(values) {
            all.push(Some(value).filter(|value| value.is_finite())?);
        }
    }
    let interval = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        between(&all, 1.0 - UPPER_PROBABILITY, UPPER_PROBABILITY)
    };
    Some(statistics.into_iter().map(interval).collect())
}

/// Computes the intervals of a statistic: `measured` is its value for the samples, `drawn` computes
/// it for a new resample, and `left_out` has its values for each side with one sample left out.
fn of(
    seed: u64,
    measured: f64,
    left_out: &[Vec<f64>],
    drawn: impl Fn(&mut Dice) -> f64,
) -> Option<Bootstrap> {
    let mut dice = Dice::new(seed);
    let mut statistics = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        statistics.push(Some(drawn(&mut dice)).filter(|drawn| drawn.is_finite())?);
    }
    statistics.sort_by(f64::total_cmp);
    let percentile = between(&statistics, 1.0 - UPPER_PROBABILITY, UPPER_PROBABILITY);
    let bca = moved(&statistics, measured, left_out)
        .map_or(percentile, |(low, high)| between(&statistics, low, high));
    Some(Bootstrap { percentile, bca })
}

/// Returns the probabilities of both ends, corrected for bias and skew. `None` where there is no
/// correction: nothing varies, or all resamples lie on one side of the measured value.
fn moved(sorted: &[f64], measured: f64, left_out: &[Vec<f64>]) -> Option<(f64, f64)> {
    // The same samples in another order must count as equal, though their sum may round
    // differently.
    let slack = ROUNDING * (sorted.last()? - sorted.first()?);
    let below = sorted.partition_point(|drawn| *drawn < measured - slack);
    let not_above = sorted.partition_point(|drawn| *drawn <= measured + slack);
    let share = (below + not_above) as f64 / (2 * sorted.len()) as f64;
    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share);
    let acceleration = acceleration(left_out);
    let end = |quantile: f64| {
        let from = bias + quantile;
        let probability = normal.cdf(bias + from / (1.0 - acceleration * from));
        probability.is_finite().then_some(probability)
    };
    if !bias.is_finite() {
        return None;
    }
    let (low, high) = (end(-UPPER_QUANTILE)?, end(UPPER_QUANTILE)?);
    Some((low.min(high), low.max(high)))
}

/// Returns a sixth of the skew of the statistic, from each sample's influence on it (jackknife).
fn acceleration(left_out: &[Vec<f64>]) -> f64 {
    let (mut cubes, mut squares) = (0.0, 0.0);
    for of_side in left_out {
        let n = of_side.len() as f64;
        let middle = mean(of_side.iter());
        let influence = of_side
            .iter()
            .map(|without| (n - 1.0) / n * (middle - without));
        for influence in influence {
            cubes += influence.powi(3);
            squares += influence.powi(2);
        }
    }
    let skew = cubes / (6.0 * squares.powf(1.5));
    if skew.is_finite() { skew } else { 0.0 }
}

/// Returns the percentiles at two probabilities, interpolated linearly between samples.
fn between(sorted: &[f64], low: f64, high: f64) -> Interval {
    let last = sorted.len() - 1;
    let at = |probability: f64| {
        let place = probability * last as f64;
        let (lower, upper) = (place.floor() as usize, place.ceil() as usize);
        let (lower, upper) = (sorted[lower.min(last)], sorted[upper.min(last)]);
        lower + (upper - lower) * place.fract()
    };
    Interval {
        low: at(low),
        high: at(high),
    }
}

/// Computes the mean relative to the first sample, so that the mean of equal samples is their value
/// to the last bit.
fn mean<'a>(mut samples: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let n = samples.len() as f64;
    let Some(&first) = samples.next() else {
        return f64::NAN;
    };
    first + samples.map(|sample| sample - first).sum::<f64>() / n
}

/// Returns the means with each sample left out in turn.
fn leave_one_out(samples: &[f64]) -> impl Iterator<Item = f64> {
    let (whole, others) = (mean(samples.iter()), (samples.len() - 1) as f64);
    samples
        .iter()
        .map(move |sample| whole + (whole - sample) / others)
}

/// Returns `over` / `under`, or NaN unless `under` has the sign of `should`.
fn ratio(over: f64, under: f64, should: f64) -> f64 {
    if under * should.signum() > 0.0 {
        over / under
    } else {
        f64::NAN
    }
}

/// Draws as many samples as there are, with replacement.
fn draw<'a>(dice: &mut Dice, samples: &'a [f64]) -> impl ExactSizeIterator<Item = &'a f64> {
    (0..samples.len()).map(|_| &samples[dice.below(samples.len() as u64) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: fn(f64) -> Option<Interval> = |at| Some(Interval { low: at, high: at });

    #[test]
    fn too_few_samples_have_no_interval() {
        assert_eq!(bootstrap_mean(&[], 1), None);
        assert_eq!(bootstrap_mean(&[1.0], 1), None);
        assert_eq!(bootstrap_ratio(&[1.0], &[1.0, 2.0], 1), None);
        assert_eq!(bootstrap_ratio(&[1.0, 2.0], &[1.0], 1), None);
        assert_eq!(bootstrap_paired_ratio(&[1.0], &[1.0], 1), None);
        assert_eq!(
            bootstrap_paired_ratio(&[1.0, 2.0], &[1.0, 2.0, 3.0], 1),
            None
        );
    }

    #[test]
    fn samples_that_do_not_vary_give_a_point() {
        assert_eq!(bootstrap_mean(&[0.1; 7], 1), POINT(0.1));
        assert_eq!(bootstrap_ratio(&[3.0; 4], &[2.0; 9], 1), POINT(1.5));
        assert_eq!(
            bootstrap_paired_ratio(&[0.3; 3], &[0.1; 3], 1),
            POINT(0.3 / 0.1)
        );
    }

    #[test]
    fn what_is_not_finite_has_no_interval() {
        assert_eq!(bootstrap_mean(&[1.0, f64::NAN, 2.0], 1), None);
        assert_eq!(bootstrap_mean(&[1.0, f64::INFINITY], 1), None);
        assert_eq!(bootstrap_mean(&[f64::MAX, -f64::MAX], 1), None);
        assert_eq!(bootstrap_ratio(&[1.0, f64::NAN], &[1.0, 2.0], 1), None);
    }

    #[test]
    fn one_of_several_statistics_has_the_percentiles_that_it_has_alone() {
        let samples: Vec<f64> = (0..30).map(|i| f64::from(i * 37 % 101)).collect();
        let alone = Bootstrap::of_mean(&samples, 3).unwrap().percentile;
        let both = bootstrap_each(3, |dice| {
            let mean = mean(draw(dice, &samples));
            vec![mean, -mean]
        });
        let [mean, negated] = both.unwrap()[..] else {
            panic!("two statistics are drawn");
        };
        assert_eq!(mean, alone);
        assert!((negated.low + alone.high).abs() < 1e-9);
        assert!((negated.high + alone.low).abs() < 1e-9);
        assert_eq!(bootstrap_each(3, |_| vec![1.0, f64::NAN]), None);
        assert_eq!(bootstrap_each(3, |_| vec![]), Some(vec![]));
    }

    #[test]
    fn a_base_that_may_be_zero_has_no_ratio() {
        let now = [1.0, 2.0, 3.0];
        assert_eq!(bootstrap_ratio(&now, &[0.0, 0.0, 1.0], 1), None);
        assert_eq!(bootstrap_ratio(&now, &[-1.0, 3.0, -1.0], 1), None);
        assert_eq!(bootstrap_ratio(&now, &[0.0; 3], 1), None);
        assert_eq!(bootstrap_paired_ratio(&now, &[0.0, 0.0, 1.0], 1), None);
        // Below zero is as good as above.
        assert!(bootstrap_ratio(&now, &[-1.0, -2.0, -3.0], 1).is_some());
    }

    #[test]
    fn what_pairs_share_does_not_widen_their_ratio() {
        let before: Vec<f64> = (1..=20).map(|i| f64::from(i * i)).collect();
        let now: Vec<f64> = before.iter().map(|sample| sample * 1.5).collect();
        let paired = bootstrap_paired_ratio(&now, &before, 7).unwrap();
        assert!((paired.low - 1.5).abs() < 1e-12 && (paired.high - 1.5).abs() < 1e-12);
        let free = bootstrap_ratio(&now, &before, 7).unwrap();
        assert!(free.low < 1.2 && free.high > 1.8, "{free:?}");
    }

    #[test]
    fn the_unit_does_not_matter() {
        let now = [1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 2.0];
        let before = [2.5, 7.5, 12.5, 17.5, 3.5, 8.5, 13.5];
        let plain = bootstrap_paired_ratio(&now, &before, 5).unwrap();
        for unit in [1e-12, 1e-3, 3.7e9] {
            let [now, before] = [now, before].map(|of| of.map(|sample| sample * unit));
            let scaled = bootstrap_paired_ratio(&now, &before, 5).unwrap();
            let off = (scaled.low - plain.low)
                .abs()
                .max((scaled.high - plain.high).abs());
            assert!(off < 1e-9, "{unit}: {scaled:?} is not {plain:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_and_another_seed_nearly() {
        let samples: Vec<f64> = (0..30).map(|i| f64::from(i * 37 % 101)).collect();
        let [one, again, other] = [1, 1, 2].map(|seed| bootstrap_mean(&samples, seed).unwrap());
        assert_eq!(one, again);
        assert!(one != other);
        assert!((one.low - other.low).abs() < 1.0 && (one.high - other.high).abs() < 1.0);
    }

    /// As the module's documentation claims: too narrow for few samples, right for many.
    #[test]
    fn intervals_hold_the_true_mean_about_as_often_as_they_say() {
        let held = |n: usize| {
            let mut dice = Dice::new(42);
            // Sums of twelve uniform numbers are near enough to normal ones.
            let mut sample = || {
                (0..12)
                    .map(|_| dice.below(1 << 20) as f64 + 0.5)
                    .sum::<f64>()
            };
            let mean = 6.0 * f64::from(1 << 20);
            let trials = 400;
            let hit = |seed| {
                let samples: Vec<f64> = (0..n).map(|_| sample()).collect();
                let interval = bootstrap_mean(&samples, seed).unwrap();
                interval.low <= mean && mean <= interval.high
            };
            let hits = (0..trials).map(hit).filter(|hit| *hit).count();
            hits as f64 / trials as f64
        };
        let (few, many) = (held(5), held(40));
        assert!((0.78..0.90).contains(&few), "{few}");
        assert!((0.915..0.975).contains(&many), "{many}");
    }
}
