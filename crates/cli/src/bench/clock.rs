//! What reading the clock costs.

use core::time::Duration;
use std::time::Instant;

/// What two readings of the clock, one behind the other, differ by: the median of many.
pub(crate) fn cost_of_the_clock() -> Duration {
    let mut costs: Vec<Duration> = (0..101)
        .map(|_| {
            let begun = Instant::now();
            begun.elapsed()
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
