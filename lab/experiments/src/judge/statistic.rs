//! The value of a statistic.

use brickyard_results::judge::mean;
use brickyard_results::{Better, INTERVAL_DEVIATIONS, Summary, gain_percent};

use crate::data::Samples;
use crate::document::Statistic;

/// Returns the value of a statistic. Those that compare need `against`.
pub(super) fn of(
    statistic: Statistic,
    of: &Samples<'_>,
    against: Option<&Samples<'_>>,
) -> Option<f64> {
    let summary = Summary::of(&of.values).ok()?;
    let both = || Some((summary.mean()?, mean(&against?.values)?));
    // A percentage needs a baseline above 0.
    let percent = || both().filter(|&(_, whole)| whole > 0.0);
    let gain = |better, part: fn(&Summary) -> Option<f64>| {
        let before = part(&Summary::of(&against?.values).ok()?)?;
        let gain = gain_percent(better, part(&summary)?, before);
        (before > 0.0 && gain.is_finite()).then_some(gain)
    };
    let range = |summary: &Summary| Some(summary.max()? - summary.min()?);
    match statistic {
        Statistic::Mean => summary.mean(),
        Statistic::Median => summary.median(),
        Statistic::Min => summary.min(),
        Statistic::Max => summary.max(),
        Statistic::Range => range(&summary),
        Statistic::StdDev => summary.stddev(),
        Statistic::Interval95 => {
            let root = (summary.n() as f64).sqrt();
            Some(INTERVAL_DEVIATIONS * summary.stddev()? / root)
        }
        Statistic::Gain => gain(of.better, Summary::mean),
        Statistic::GainMin => gain(of.better, Summary::min),
        Statistic::GainMax => gain(of.better, Summary::max),
        Statistic::GainStdDev => gain(Better::Lower, Summary::stddev),
        Statistic::GainRange => gain(Better::Lower, range),
        Statistic::Difference => both().map(|(now, before)| now - before),
        Statistic::DifferencePercent => {
            percent().map(|(now, before)| (now - before) * 100.0 / before)
        }
        Statistic::Share => percent().map(|(part, whole)| part * 100.0 / whole),
        // Those of two sides know what a zero counts as.
        Statistic::Speedup | Statistic::GmeanSpeedup | Statistic::WorstSpeedup => None,
    }
}
