//! The memory that this machine has at hand.

use std::fs;

/// Returns the available memory of this machine in bytes; `None` if unknown.
#[must_use]
pub fn available() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().trim_end_matches(" kB").parse().ok()?;
    kib.checked_mul(1024)
}
