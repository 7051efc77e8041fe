//! `/proc/iomem`: the address ranges of memory. Users other than root see zeros instead of
//! addresses.
//!
//! Needed beside kpageflags: old kernels set a flag for a frame without memory; newer ones (6.17
//! and later) set none, as for some memory in use.

use core::ops::Range;

use crate::ParseError;
use crate::lines::Lines;

/// Returns the ranges of addresses that are `System RAM`, sorted and disjoint; none for users other
/// than root.
///
/// # Errors
/// If a range of RAM is not in the form `00100000-bfffffff : System RAM`.
pub fn parse(text: &str) -> Result<Vec<Range<u64>>, ParseError> {
    let mut lines = Lines::new("iomem", text);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    while let Some(line) = lines.next() {
        let Some((addresses, name)) = line.split_once(" : ") else {
            continue;
        };
        // Hot-added memory is `System RAM (virtio_mem)`, below the device that it comes from.
        if !name.trim_start().starts_with("System RAM") {
            continue;
        }
        let range = addresses.trim().split_once('-').and_then(|(first, last)| {
            let first = u64::from_str_radix(first, 16).ok()?;
            let last = u64::from_str_radix(last, 16).ok()?;
            Some(first..last.checked_add(1)?)
        });
        let range = range.ok_or_else(|| lines.error("expected two addresses before the colon"))?;
        // Users other than root see 0-0.
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
