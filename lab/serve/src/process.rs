//! What this process takes: CPU time, memory, and when it began.

use core::time::Duration;
use std::fs;
use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

use crate::sampler::duration;

/// Returns the CPU time of this process, of all its threads.
pub(crate) fn cpu() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns its resident memory in bytes; 0 if it cannot be read.
pub(crate) fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages
        .unwrap_or(0)
        .saturating_mul(rustix::param::page_size() as u64)
}

/// Returns the seconds since 1970; 0 before.
pub(crate) fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
