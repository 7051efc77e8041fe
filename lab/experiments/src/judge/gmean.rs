//! The geometric mean of several speedups, and its interval.

use std::collections::BTreeSet;

use brickyard_results::judge::mean;
use brickyard_results::{Better, Interval, IntervalMethod, RatioInterval, Runs, Summary};

use super::sides::Sides;

/// Returns the geometric mean of the speedups of all these; none if one of them has no speedup, as
/// one of its sides is zero.
pub(super) fn of(all: &[Sides<'_>]) -> Option<f64> {
    let logarithms = all.iter().map(logarithm);
    Some(mean(&logarithms.collect::<Option<Vec<f64>>>()?)?.exp())
}

/// Returns its 95 % interval: Student's t over the geometric means of the single runs, of those
/// runs that all varying pairs of sides have. None if these are fewer than two.
pub(super) fn interval(all: &[Sides<'_>]) -> Option<RatioInterval> {
    let (constant, varying): (Vec<&Sides<'_>>, Vec<&Sides<'_>>) =
        all.iter().partition(|sides| sides.is_constant());
    let constant: f64 = constant
        .iter()
        .map(|sides| logarithm(sides))
        .sum::<Option<f64>>()?;
    let mut runs: Option<BTreeSet<u32>> = None;
    for sides in &varying {
        if sides.runs == Runs::Independent {
            return None;
        }
        let of = sides.of.runs.iter().copied();
        runs = Some(match runs {
            Some(runs) => of.filter(|run| runs.contains(run)).collect(),
            None => of.collect(),
        });
    }
    let of_run = |run: u32| {
        let logarithms = varying.iter().map(|sides| {
            let place = sides.of.runs.iter().position(|&other| other == run)?;
            let [now, before] = sides.counted().map(|values| values[place]);
            let (over, under) = match sides.of.better {
                Better::Higher => (now, before),
                Better::Lower => (before, now),
                Better::Neither => return None,
            };
            (over > 0.0 && under > 0.0).then(|| (over / under).ln())
        });
        let sum = logarithms.sum::<Option<f64>>()?;
        Some((constant + sum) / all.len() as f64)
    };
    let of_runs: Option<Vec<f64>> = runs?.into_iter().map(of_run).collect();
    let summary = Summary::of(&of_runs?).ok()?;
    let (middle, reach) = (summary.mean()?, summary.ci95()?);
    let ends = Interval {
        low: middle - reach,
        high: middle + reach,
    };
    Some(RatioInterval {
        ends: ends.map(f64::exp),
        method: IntervalMethod::LogRatios,
    })
}

fn logarithm(sides: &Sides<'_>) -> Option<f64> {
    Some(sides.difference()?.speedup?.ln())
}
