//! Geometric means of the ratios of several lines, each ratio to the best library of its line.
//!
//! Their intervals are a bootstrap: rounds are drawn again, with replacement, those of a line for
//! all of its libraries alike, since these took turns in them; the medians, the best of each line
//! and the means are computed anew. The best of several is best by luck too, the more the fewer
//! rounds there are, so an interval may lie above its mean.

use brickyard_results::{Interval, Summary, bootstrap_each};
use brickyard_run::Dice;

/// The samples of a line, all above 0: for each library its rounds.
pub(super) type TaskLine<'r> = Vec<&'r [f64]>;

/// The seed of the draws: the same samples have the same intervals.
const SEED: u64 = 1;

/// A geometric mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    /// Of the ratios of the medians.
    pub(super) ratio: f64,
    /// Where 95 % of the means of drawn rounds are; none with one round.
    pub(super) interval: Option<Interval>,
}

/// Returns the mean of each library, by the medians. All lines have the same libraries.
pub(super) fn means(lines: &[TaskLine<'_>]) -> Vec<Mean> {
    let several = lines.iter().any(|line| rounds(line) > 1);
    let intervals = several.then(|| {
        bootstrap_each(SEED, |dice| {
            let drawn: Vec<_> = lines.iter().map(|line| draw(line, dice)).collect();
            of(&drawn, |samples| median(samples))
        })
    });
    let intervals = intervals.flatten().unwrap_or_default();
    let of_library = |(library, ratio)| Mean {
        ratio,
        interval: intervals.get(library).copied(),
    };
    let ratios = of(lines, |samples| median(samples)).into_iter();
    ratios.enumerate().map(of_library).collect()
}

/// Returns the mean of each library, by its fastest rounds.
pub(super) fn fastest(lines: &[TaskLine<'_>]) -> Vec<f64> {
    of(lines, |samples| least(samples))
}

/// Returns the geometric mean of each library over all lines, of the ratios of what `value` makes
/// of its rounds to the smallest of the line.
fn of<S>(lines: &[Vec<S>], value: impl Fn(&S) -> f64) -> Vec<f64> {
    let libraries = lines.first().map_or(0, Vec::len);
    let mut sums = vec![0.0; libraries];
    for line in lines {
        let values: Vec<f64> = line.iter().map(&value).collect();
        let best = least(&values);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += (value / best).ln();
        }
    }
    let mean = |sum: f64| (sum / lines.len() as f64).exp();
    sums.into_iter().map(mean).collect()
}

/// Returns how many rounds all libraries of a line have.
fn rounds(line: &TaskLine<'_>) -> usize {
    line.iter().map(|samples| samples.len()).min().unwrap_or(0)
}

/// Draws as many rounds as there are, the same for all libraries.
fn draw(line: &TaskLine<'_>, dice: &mut Dice) -> Vec<Vec<f64>> {
    let rounds = rounds(line);
    let drawn: Vec<usize> = (0..rounds)
        .map(|_| dice.below(rounds as u64) as usize)
        .collect();
    let of_library = |samples: &&[f64]| drawn.iter().map(|&round| samples[round]).collect();
    line.iter().map(of_library).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(samples: &[f64]) -> f64 {
    let summary = Summary::of(samples).ok();
    summary.and_then(|all| all.median()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slows_a_whole_round_does_not_widen_the_interval() {
        // The second library takes twice as long; some rounds take ten times as long for both.
        let first = [1.0, 10.0, 1.0, 10.0, 1.0, 10.0];
        let second = first.map(|time| 2.0 * time);
        let both = means(&[vec![&first, &second]]);
        for (mean, ratio) in both.iter().zip([1.0, 2.0]) {
            let interval = mean.interval.unwrap();
            assert_eq!([mean.ratio, interval.low, interval.high], [ratio; 3]);
        }
    }

    #[test]
    fn what_slows_single_runs_widens_it_and_leaves_the_fastest_alone() {
        let first = [1.0, 1.5, 1.0, 1.0, 1.5];
        let second = [3.0, 2.0, 2.0, 3.0, 2.0];
        let lines = [vec![first.as_slice(), &second]];
        let both = means(&lines);
        assert_eq!((both[0].ratio, both[1].ratio), (1.0, 2.0));
        let interval = both[1].interval.unwrap();
        assert!(interval.low < 2.0 && interval.high > 2.0, "{interval:?}");
        assert_eq!(fastest(&lines), [1.0, 2.0]);
    }

    #[test]
    fn a_mean_is_of_all_lines_and_one_round_has_no_interval() {
        let lines: [TaskLine<'_>; 2] = [vec![&[1.0], &[4.0]], vec![&[4.0], &[4.0]]];
        let alone = |ratio| Mean {
            ratio,
            interval: None,
        };
        assert_eq!(means(&lines), [alone(1.0), alone(2.0)]);
        assert_eq!(means(&[]), []);
    }
}
