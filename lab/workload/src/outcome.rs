//! The results of a replay.

use std::collections::BTreeMap;

use brickyard::block::{Census, FreeTable};
use brickyard::stats::FreeCounts;
use brickyard::{MigrateType, Mobility, Order, ZoneKind};

use crate::kernel::Pressure;

/// Requests of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OfOrder {
    /// The number of requests.
    pub asked: u64,
    /// The number that failed.
    pub failed: u64,
}

/// Frees, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Frees {
    /// Of a block as it was taken.
    pub whole: u64,
    /// Of parts of blocks, or of several blocks at once.
    pub parts: u64,
    /// Dropped: the model kernel had reclaimed the page.
    pub reclaimed: u64,
    /// Dropped: the page's allocation had failed.
    pub refused: u64,
    /// Dropped: the page is unknown; it was allocated before the trace began, or the event of its
    /// allocation was lost.
    pub unknown: u64,
}

impl Frees {
    /// The number of all frees.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.whole + self.parts + self.reclaimed + self.refused + self.unknown
    }
}

/// Memory at one moment of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// Free frames in the stores.
    pub free: usize,
    /// Free frames in caches.
    pub cached: usize,
    /// Free huge pages in the stores.
    pub huge: usize,
    /// The unusable index at the huge order, in thousandths.
    pub unusable: u32,
    /// Page blocks with pages of more than one mobility.
    pub mixed: u64,
}

/// A source of mixed page blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Mixer {
    /// The task's name.
    pub name: String,
    /// The mobility of its request, served in a block of another mobility.
    pub mobility: &'static str,
    /// The order of the request.
    pub order: Order,
}

/// Free huge pages at the end, after each of several steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HugePages {
    /// At the end of the replay.
    pub now: usize,
    /// After the caches of CPUs were drained.
    pub drained: usize,
    /// After page cache and empty slabs were freed; dirty pages are written first.
    pub reclaimed: usize,
    /// After compaction.
    pub compacted: usize,
    /// Frames that compaction moved.
    pub moved: usize,
    /// Frames that compaction could not move.
    pub stuck: usize,
    /// The most that the immovable pages leave possible: huge pages without any of them, less those
    /// that the movable pages need.
    pub possible: usize,
}

/// A zone at the end of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneEnd {
    /// Its node.
    pub node: u32,
    /// Its kind.
    pub kind: ZoneKind,
    /// Its free blocks, by order and type.
    pub free: FreeTable,
    /// Its page blocks, by type; those in which the zone has no memory are not counted.
    pub blocks: [usize; MigrateType::COUNT],
    /// Free frames in caches.
    pub cached: usize,
}

/// The results of replaying a trace with one configuration.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Requests, by order.
    pub requests: Vec<OfOrder>,
    /// Frees.
    pub frees: Frees,
    /// Allocations of pages that were in use already: the event of a free was lost. The old page is
    /// freed then.
    pub double: u64,
    /// Pages that must have been in a CPU's cache when the trace began, though their recorded state
    /// does not show it.
    pub from_caches: u64,
    /// Blocks in use at the start that could not be placed at their frames.
    pub unplaced: u64,
    /// Requests that were served from memory of another mobility.
    pub fallbacks: u64,
    /// Of those, the ones that left the page block's mobility as it was.
    pub mixing: u64,
    /// Of those, the ones that claimed the page block for their mobility.
    pub claims: u64,
    /// The sources of mixed page blocks, with their counts.
    pub mixers: BTreeMap<Mixer, u64>,
    /// Memory over time.
    pub samples: Vec<Sample>,
    /// Free blocks by order at the end.
    pub free: FreeCounts,
    /// Free blocks and page blocks of each zone when the host's were read at the end.
    pub zones: Vec<ZoneEnd>,
    /// Huge pages at the end.
    pub huge: HugePages,
    /// Free frames in caches at the end.
    pub idle: usize,
    /// Counts of reclaim and compaction.
    pub pressure: Pressure,
    /// All frames at the end, from the check of the invariants.
    pub census: Census,
    /// Frames that the model kernel has in use at the end; the same as the census's.
    pub in_use: u64,
    /// Nanoseconds of an allocation, from every 64th: median and 99th percentile. `None` if there
    /// were fewer.
    pub alloc_ns: Option<(f64, f64)>,
    /// The same of a free.
    pub free_ns: Option<(f64, f64)>,
    /// The number of steps replayed.
    pub steps: u64,
    /// Seconds of the steps alone, without samples and the measurements at the end.
    pub seconds: f64,
    /// Whether the watcher ended the replay early.
    pub interrupted: bool,
}

impl Outcome {
    /// Returns the sum of requests over all orders.
    #[must_use]
    pub fn all_requests(&self) -> OfOrder {
        self.requests
            .iter()
            .fold(OfOrder::default(), |sum, of| OfOrder {
                asked: sum.asked + of.asked,
                failed: sum.failed + of.failed,
            })
    }
}

pub(crate) const fn mobility_name(mobility: Mobility) -> &'static str {
    match mobility {
        Mobility::Unmovable => "unmovable",
        Mobility::Movable => "movable",
        Mobility::Reclaimable => "reclaimable",
    }
}
