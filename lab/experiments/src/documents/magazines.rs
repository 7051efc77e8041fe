//! What the three experiments of 2013 share: one mail, one table head.

use super::build::{self, columns, directed, heads};
use crate::data::Key;
use crate::document::{Claim, Figure, Head, PrintedSpeedup, Statistic, TableLine};

pub(crate) const SOURCE: &str =
    "Mel Gorman, \"[RFC PATCH 00/22] Per-cpu page allocator replacement prototype\", 8 May 2013";

/// Returns the head of its tables: the baseline, and the proposal with its gain.
pub(crate) fn head() -> Vec<Vec<Head>> {
    vec![
        heads(&[("3.9.0", 1), ("3.9.0", 2)]),
        columns(&["vanilla", "magazine", "gain"]),
    ]
}

/// Returns a line of means: of the baseline, of the proposal, and the gain with its direction, if
/// it has one.
pub(crate) fn line(
    head: String,
    [before, now]: [Key; 2],
    [vanilla, magazine, gain]: [&'static str; 3],
    speedup: Option<PrintedSpeedup>,
    decimals: usize,
) -> TableLine {
    let of_gain = Figure::compared(Statistic::Gain, now.clone(), before.clone()).printed(gain);
    let mean = |key, text| Figure::mean(key).printed(text).decimals(decimals);
    let of_gain = directed(of_gain, speedup, Claim::Untested);
    let cells = [mean(before, vanilla), mean(now, magazine), of_gain];
    build::line(head, cells.map(Some).into())
}
