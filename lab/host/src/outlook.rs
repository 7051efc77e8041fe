//! How many blocks of an order could be allocated now and after compaction, and if none, why.
//!
//! Two things limit compaction: the blocks without immovable frames, and the free memory that pages
//! are moved to. The numbers here are upper bounds by those two; the kernel stays below them, since
//! it gives up early and cannot move pages that are pinned.

use brickyard::Order;
use brickyard::stats::FreeCounts;
use brickyard_trace::{PageUse, StateRun};

use crate::movability::{Judge, Movability};
use crate::zoneinfo::ZoneInfo;

/// Above this fragmentation index the kernel blames fragmentation for a failure, and compacts
/// (`vm.extfrag_threshold`, in thousandths).
pub const FRAGMENTED_ABOVE: i32 = 500;

/// Whether a request would succeed, and if not, what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It succeeds: there is a free block, and enough memory above the watermark.
    Succeeds,
    /// Too little memory is free: reclaim helps, compaction does not.
    Lack,
    /// Enough memory is free, but in blocks that are too small: compaction helps.
    Fragmented,
}

/// Returns whether a movable request of this order would succeed in this zone, down to its min
/// watermark plus the zone's largest protection.
#[must_use]
pub fn verdict(zone: &ZoneInfo, counts: &FreeCounts, order: Order) -> Verdict {
    let kept = zone.protection.iter().max().copied().unwrap_or(0);
    let needed = zone.min.saturating_add(kept);
    let left = (counts.free_frames() as u64).saturating_sub((1 << order.get()) - 1);
    if left <= needed {
        Verdict::Lack
    } else if counts.suitable(order) > 0 {
        Verdict::Succeeds
    } else if counts.fragmentation_index(order) > FRAGMENTED_ABOVE {
        Verdict::Fragmented
    } else {
        Verdict::Lack
    }
}

/// How many blocks of one order a zone could provide. Each number is at least the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outlook {
    /// Free now.
    pub now: u64,
    /// Upper bound after compaction, if no frame without a flag can be moved.
    pub compacted: u64,
    /// Upper bound after compaction, if single frames without a flag are in per-CPU lists and those
    /// are drained.
    pub drained: u64,
    /// Upper bound if also all cached pages of files are dropped.
    pub reclaimed: u64,
}

/// Returns the outlook of `zone` by order, up to `highest`. `runs` must be in order of frames.
/// Makes one pass over the zone's runs.
#[must_use]
pub fn of_zone(
    runs: &[StateRun],
    zone: &ZoneInfo,
    counts: &FreeCounts,
    highest: Order,
    judge: &Judge,
) -> Vec<Outlook> {
    let mut certain = Stretches::new(highest);
    let mut possible = Stretches::new(highest);
    let (mut free, mut perhaps, mut dropped) = (0, 0, 0);
    let first = runs.partition_point(|run| run.frame.saturating_add(run.frames) <= zone.start_pfn);
    for run in runs[first..]
        .iter()
        .take_while(|run| run.frame < zone.end_pfn())
    {
        let start = run.frame.max(zone.start_pfn);
        let end = run.frame.saturating_add(run.frames).min(zone.end_pfn());
        let movability = judge.of(run);
        match movability {
            Movability::Free => free += end - start,
            Movability::Perhaps => perhaps += end - start,
            Movability::Movable if run.state.usage == PageUse::File && !run.state.unevictable => {
                dropped += end - start;
            }
            _ => {}
        }
        let clear = matches!(movability, Movability::Free | Movability::Movable);
        let maybe = clear || movability == Movability::Perhaps;
        certain.add(start, end, clear);
        possible.add(start, end, maybe);
    }
    let drained = free + perhaps.min(zone.idle_in_pagesets());
    let certain = certain.finish();
    let possible = possible.finish();
    Order::ZERO
        .up_to(highest)
        .map(|order| {
            let (certain, possible) = (certain[order.index()], possible[order.index()]);
            let bound = |blocks: u64, frames: u64| blocks.min(frames >> order.get());
            // The counts were read at a different time than the runs.
            let now = counts.suitable(order) as u64;
            let compacted = bound(certain, free).max(now);
            let drained_bound = bound(possible, drained).max(compacted);
            Outlook {
                now,
                compacted,
                drained: drained_bound,
                reclaimed: bound(possible, drained + dropped).max(drained_bound),
            }
        })
        .collect()
}

/// Counts the aligned blocks of each order within stretches of clear frames.
struct Stretches {
    start: u64,
    end: u64,
    blocks: Vec<u64>,
}

impl Stretches {
    fn new(highest: Order) -> Self {
        Self {
            start: 0,
            end: 0,
            blocks: vec![0; highest.index() + 1],
        }
    }

    fn add(&mut self, start: u64, end: u64, clear: bool) {
        if clear && start == self.end {
            self.end = end;
            return;
        }
        self.close();
        if clear {
            (self.start, self.end) = (start, end);
        }
    }

    fn close(&mut self) {
        for (order, blocks) in self.blocks.iter_mut().enumerate() {
            let first = self.start.div_ceil(1 << order);
            *blocks += (self.end >> order).saturating_sub(first);
        }
        (self.start, self.end) = (0, 0);
    }

    fn finish(mut self) -> Vec<u64> {
        self.close();
        self.blocks
    }
}
