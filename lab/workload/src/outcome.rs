//! What came of a replay.

use std::collections::BTreeMap;

use brickyard::block::Census;
use brickyard::stats::FreeCounts;
use brickyard::{Mobility, Order};

use crate::kernel::Pressure;

/// Requests of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfOrder {
    /// Asked for.
    pub asked: u64,
    /// Not served.
    pub failed: u64,
}

/// Frees, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frees {
    /// A block as it was taken.
    pub whole: u64,
    /// Parts of blocks, or several at once.
    pub parts: u64,
    /// Dropped: the model kernel had reclaimed the page before.
    pub reclaimed: u64,
    /// Dropped: the page was never served.
    pub refused: u64,
    /// Dropped: nobody knows the page; it was taken before the trace began, or its allocation was
    /// lost.
    pub unknown: u64,
}

impl Frees {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.whole + self.parts + self.reclaimed + self.refused + self.unknown
    }
}

/// Memory at one moment of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// Frames free in the stores.
    pub free: usize,
    /// Frames idle in caches.
    pub cached: usize,
    /// Huge pages that could be had at once.
    pub huge: usize,
    /// The unusable index at the huge order, in thousandths.
    pub unusable: u32,
    /// Page blocks with pages of more than one mobility.
    pub mixed: u64,
}

/// Who mixed page blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mixer {
    /// The task's name.
    pub name: String,
    /// What it brought into a block of another mobility.
    pub mobility: &'static str,
    /// The order of the request.
    pub order: Order,
}

/// Huge pages that can be had at the end, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HugePages {
    /// As it is.
    pub now: usize,
    /// With the caches of CPUs drained.
    pub drained: usize,
    /// With page cache and empty slabs freed as well; dirty pages are written first.
    pub reclaimed: usize,
    /// And compacted.
    pub compacted: usize,
    /// Frames that compaction moved.
    pub moved: usize,
    /// Frames that it could not move.
    pub stuck: usize,
    /// What the pages that cannot move leave possible: huge pages without any of them.
    pub possible: usize,
}

/// What came of replaying a trace with one configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Requests, by order.
    pub requests: Vec<OfOrder>,
    /// Frees.
    pub frees: Frees,
    /// Allocations of pages that were in use already: a free in between was lost. The old page is
    /// freed then.
    pub double: u64,
    /// Pages that were in a CPU's cache when the trace began, though their state did not tell.
    pub from_caches: u64,
    /// Blocks of the start that could not be put in their place.
    pub unplaced: u64,
    /// Requests that were served from memory of another mobility.
    pub fallbacks: u64,
    /// Of those, the ones that broke into a block without making it theirs.
    pub mixing: u64,
    /// And the ones that made it theirs.
    pub claims: u64,
    /// Who brought a second mobility into a page block, how often.
    pub mixers: BTreeMap<Mixer, u64>,
    /// Memory over time.
    pub samples: Vec<Sample>,
    /// Free blocks by order at the end.
    pub free: FreeCounts,
    /// Huge pages at the end.
    pub huge: HugePages,
    /// Frames idle in caches at the end.
    pub idle: usize,
    /// What happened under pressure.
    pub pressure: Pressure,
    /// All frames at the end, after the invariants were checked.
    pub census: Census,
    /// Frames that the model kernel has in use at the end; the same as the census's.
    pub in_use: u64,
    /// Nanoseconds of an allocation, from every 64th: median, and what 99 in 100 stay below.
    pub alloc_ns: (f64, f64),
    /// Of a free.
    pub free_ns: (f64, f64),
    /// Steps replayed.
    pub steps: u64,
    /// Seconds of the steps alone, measurements at the end left out.
    pub seconds: f64,
    /// Was it ended before the trace did?
    pub interrupted: bool,
}

impl Outcome {
    /// Requests asked for and not served, of all orders.
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
