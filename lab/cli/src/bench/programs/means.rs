//! Geometric means of the ratios of several lines, each ratio to the best library of its line.
//!
//! Their intervals are a bootstrap: rounds are drawn again, with replacement, those of a line for
//! all of its libraries alike, since these took turns in them; the medians, the best of each line
//! and the means are computed anew. The best of several is best by luck too, the more the fewer
//! rounds there are, so an interval may lie above its mean.

use brickyard_machine::Dice;
use brickyard_report::Summary;

/// The samples of a line: for each library its rounds.
pub(super) type Line<'r> = Vec<&'r [f64]>;

/// So many times the rounds are drawn.
const RESAMPLES: usize = 2000;

/// The part of the means that is left out at each end of an interval.
const BEYOND: f64 = 0.025;

/// The seed of the draws: the same samples have the same intervals.
const SEED: u64 = 1;

/// A geometric mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    /// Of the ratios of the medians.
    pub(super) ratio: f64,
    /// Where 95 % of the means of drawn rounds are; none with one round.
    pub(super) interval: Option<(f64, f64)>,
}

/// Returns the mean of each library, by the medians. All lines have the same libraries.
pub(super) fn means(lines: &[Line<'_>]) -> Vec<Mean> {
    let ratios = of(lines, median);
    let rounds = lines.iter().map(|line| rounds(line)).max().unwrap_or(0);
    if rounds < 2 {
        let alone = |ratio| Mean {
            ratio,
            interval: None,
        };
        return ratios.into_iter().map(alone).collect();
    }
    let mut dice = Dice::new(SEED);
    let drawn: Vec<Vec<f64>> = (0..RESAMPLES)
        .map(|_| {
            let again: Vec<Vec<Vec<f64>>> =
                lines.iter().map(|line| draw(line, &mut dice)).collect();
            let again = again.iter().map(|line| line.iter().map(Vec::as_slice));
            of(&again.map(Iterator::collect).collect::<Vec<_>>(), median)
        })
        .collect();
    let mean = |(library, ratio)| {
        let mut all: Vec<f64> = drawn.iter().map(|means| means[library]).collect();
        all.sort_by(f64::total_cmp);
        let last = all.len() - 1;
        let beyond = (all.len() as f64 * BEYOND) as usize;
        Mean {
            ratio,
            interval: Some((all[beyond], all[last - beyond])),
        }
    };
    ratios.into_iter().enumerate().map(mean).collect()
}

/// Returns the mean of each library, by its fastest rounds.
pub(super) fn fastest(lines: &[Line<'_>]) -> Vec<f64> {
    of(lines, |samples| {
        samples.iter().copied().fold(f64::INFINITY, f64::min)
    })
}

/// Returns the geometric mean of each library over all lines, of the ratios of what `value` makes
/// of its rounds to the smallest of the line.
fn of(lines: &[Line<'_>], value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let libraries = lines.first().map_or(0, Vec::len);
    let mut sums = vec![0.0; libraries];
    for line in lines {
        let values: Vec<f64> = line.iter().map(|samples| value(samples)).collect();
        let best = values.iter().copied().fold(f64::INFINITY, f64::min);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += (value / best).ln();
        }
    }
    let mean = |sum: f64| (sum / lines.len() as f64).exp();
    sums.into_iter().map(mean).collect()
}

/// Returns how many rounds all libraries of a line have.
fn rounds(line: &Line<'_>) -> usize {
    line.iter().map(|samples| samples.len()).min().unwrap_or(0)
}

/// Draws as many rounds as there are, the same for all libraries.
fn draw(line: &Line<'_>, dice: &mut Dice) -> Vec<Vec<f64>> {
    let rounds = rounds(line);
    let drawn: Vec<usize> = (0..rounds)
        .map(|_| dice.below(rounds as u64) as usize)
        .collect();
    let of_library = |samples: &&[f64]| drawn.iter().map(|&round| samples[round]).collect();
    line.iter().map(of_library).collect()
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
        assert_eq!(both[0].interval, Some((1.0, 1.0)));
        assert_eq!((both[1].ratio, both[1].interval), (2.0, Some((2.0, 2.0))));
    }

    #[test]
    fn what_slows_single_runs_widens_it_and_leaves_the_fastest_alone() {
        let first = [1.0, 1.5, 1.0, 1.0, 1.5];
        let second = [3.0, 2.0, 2.0, 3.0, 2.0];
        let lines = [vec![first.as_slice(), &second]];
        let both = means(&lines);
        assert_eq!((both[0].ratio, both[1].ratio), (1.0, 2.0));
        let (low, high) = both[1].interval.unwrap();
        assert!(low < 2.0 && high > 2.0, "{low} to {high}");
        assert_eq!(fastest(&lines), [1.0, 2.0]);
    }

    #[test]
    fn a_mean_is_of_all_lines_and_one_round_has_no_interval() {
        let lines: [Line<'_>; 2] = [vec![&[1.0], &[4.0]], vec![&[4.0], &[4.0]]];
        let alone = |ratio| Mean {
            ratio,
            interval: None,
        };
        assert_eq!(means(&lines), [alone(1.0), alone(2.0)]);
        assert_eq!(means(&[]), []);
    }
}
