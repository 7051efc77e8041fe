//! The bootstrap: confidence intervals of a ratio of two means, or of any statistics, without an
//! assumption on the distribution of the samples.
//!
//! The samples are resampled with replacement [`RESAMPLES`] times; the scatter of the statistic
//! over the resamples estimates its scatter over repetitions of the experiment. The 95 % interval
//! of a ratio is that from the 2.5 % to the 97.5 % percentile with both ends moved for bias and skew
//! ("bias-corrected and accelerated", BCa, Efron 1987), by the rules of `scipy.stats.bootstrap`.
//! The same samples and seed give the same interval on every machine.
//!
//! A resample holds only values that were measured, so with fewer than about ten samples the
//! intervals are too narrow: [`ratio_interval`](crate::ratio_interval) has another method for them.

use brickyard_run::Dice;
use statrs::distribution::{ContinuousCDF, Normal};

use super::summary::UPPER_PROBABILITY;
use super::{INTERVAL_DEVIATIONS, Interval};

/// The number of resamples.
const RESAMPLES: usize = 9_999;

/// Statistics closer than this share of the range of all resamples count as equal: rounding.
const ROUNDING: f64 = 1e-9;

/// Computes the 95 % interval of the ratio mean(`now`) / mean(`before`) of independent samples.
///
/// `None` below two samples of either, with one that is not finite, and where the mean of `before`
/// differs in sign between resamples or is 0: the ratio then has no bounds. Costs [`RESAMPLES`] sums
/// of all samples, and a sort.
pub fn bootstrap_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Interval> {
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

/// Computes the same of samples in pairs (same seed, or one right after the other). Whole pairs are
/// resampled, so scatter that both samples of a pair share does not widen the interval. `None` also
/// where the two differ in length.
pub fn bootstrap_paired_ratio(now: &[f64], before: &[f64], seed: u64) -> Option<Interval> {
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

/// Computes the interval of a statistic: `measured` is its value for the samples, `drawn` computes
/// it for a new resample, and `left_out` has its values for each side with one sample left out.
fn of(
    seed: u64,
    measured: f64,
    left_out: &[Vec<f64>],
    drawn: impl Fn(&mut Dice) -> f64,
) -> Option<Interval> {
    let mut dice = Dice::new(seed);
    let mut statistics = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        statistics.push(Some(drawn(&mut dice)).filter(|drawn| drawn.is_finite())?);
    }
    statistics.sort_by(f64::total_cmp);
    let (low, high) = moved(&statistics, measured, left_out)
        .unwrap_or((1.0 - UPPER_PROBABILITY, UPPER_PROBABILITY));
    Some(between(&statistics, low, high))
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
    let (low, high) = (end(-INTERVAL_DEVIATIONS)?, end(INTERVAL_DEVIATIONS)?);
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

    #[test]
    fn samples_without_a_ratio_have_no_interval() {
        let now = [1.0, 2.0, 3.0];
        for before in [
            &[1.0][..],
            &[1.0, f64::NAN, 2.0],
            &[1.0, f64::INFINITY, 2.0],
            // The base may be zero.
            &[0.0, 0.0, 1.0],
            &[-1.0, 3.0, -1.0],
            &[0.0; 3],
        ] {
            assert_eq!(bootstrap_ratio(&now, before, 1), None, "{before:?}");
            assert_eq!(bootstrap_paired_ratio(&now, before, 1), None, "{before:?}");
        }
        assert_eq!(bootstrap_ratio(&[1.0], &now, 1), None);
        assert_eq!(bootstrap_paired_ratio(&now[..2], &now, 1), None);
        // Below zero is as good as above.
        assert!(bootstrap_ratio(&now, &[-1.0, -2.0, -3.0], 1).is_some());
    }

    #[test]
    fn samples_that_do_not_vary_give_a_point() {
        let point = |at| Some(Interval::point(at));
        assert_eq!(bootstrap_ratio(&[3.0; 4], &[2.0; 9], 1), point(1.5));
        let paired = bootstrap_paired_ratio(&[0.3; 3], &[0.1; 3], 1);
        assert_eq!(paired, point(0.3 / 0.1));
    }

    #[test]
    fn several_statistics_of_one_resample_have_their_percentiles() {
        let samples: Vec<f64> = (0..30).map(|i| f64::from(i * 37 % 101)).collect();
        let both = bootstrap_each(3, |dice| {
            let mean = mean(draw(dice, &samples));
            vec![mean, -mean]
        });
        let [mean, negated] = both.unwrap()[..] else {
            panic!("two statistics are drawn");
        };
        assert!((negated.low + mean.high).abs() < 1e-9);
        assert!((negated.high + mean.low).abs() < 1e-9);
        assert_eq!(bootstrap_each(3, |_| vec![1.0, f64::NAN]), None);
        assert_eq!(bootstrap_each(3, |_| vec![]), Some(vec![]));
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
    fn the_unit_does_not_matter_and_a_seed_gives_the_same_again() {
        let now = [1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 2.0];
        let before = [2.5, 7.5, 12.5, 17.5, 3.5, 8.5, 13.5];
        let plain = bootstrap_paired_ratio(&now, &before, 5).unwrap();
        assert_eq!(bootstrap_paired_ratio(&now, &before, 5), Some(plain));
        assert_ne!(bootstrap_paired_ratio(&now, &before, 6), Some(plain));
        for unit in [1e-12, 1e-3, 3.7e9] {
            let [now, before] = [now, before].map(|of| of.map(|sample| sample * unit));
            let scaled = bootstrap_paired_ratio(&now, &before, 5).unwrap();
            let off = [scaled.low - plain.low, scaled.high - plain.high];
            assert!(off.iter().all(|off| off.abs() < 1e-9), "{unit}: {scaled:?}");
        }
    }
}
