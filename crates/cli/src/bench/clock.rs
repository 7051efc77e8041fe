//! What reading the clock costs; and the other clock, a thread's own.

use core::time::Duration;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

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

/// What the calling thread has spent on a CPU since it began.
pub(crate) fn cpu_of_this_thread() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}
