//! `/proc/iomem`: where there is memory at all. Who is not root sees zeros instead of addresses.
//!
//! Needed beside kpageflags: for a frame without memory old kernels say so, newer ones (6.17 and
//! later) give no flag at all, as for memory in use of which nothing is told.

use core::ops::Range;

use crate::ParseError;
use crate::lines::Lines;

/// The ranges of addresses that are `System RAM`, in order and apart; none for who is not root.
///
/// # Errors
/// A range of RAM that is not in the form `00100000-bfffffff : System RAM`.
pub fn parse(text: &str) -> Result<Vec<Range<u64>>, ParseError> {
    let mut lines = Lines::new("iomem", text);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    while let Some(line) = lines.next() {
        let Some((addresses, name)) = line.split_once(" : ") else {
            continue;
        };
        // Added later, it is `System RAM (virtio_mem)` below the device that it comes from.
        if !name.trim_start().starts_with("System RAM") {
            continue;
        }
        let range = addresses.trim().split_once('-').and_then(|(first, last)| {
            let first = u64::from_str_radix(first, 16).ok()?;
            let last = u64::from_str_radix(last, 16).ok()?;
            Some(first..last.checked_add(1)?)
        });
        let range = range.ok_or_else(|| lines.wrong("two addresses expected before the colon"))?;
        // Zeros for who is not root: 0-0.
        if range.end - range.start.min(range.end) > 1 {
            ranges.push(range);
        }
    }
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, one| {
        let joined = next.start <= one.end;
        if joined {
            one.end = one.end.max(next.end);
        }
        joined
    });
    Ok(ranges)
}
