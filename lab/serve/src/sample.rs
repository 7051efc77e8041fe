//! What is known of the host at one time: [`Sample`], which metrics, the history and the page are
//! made of, and [`Reading`], the newest pass over all frames.

use core::time::Duration;
use std::sync::Arc;
use std::time::SystemTime;

use brickyard::Order;
use brickyard_host::blocks::{BlockKind, BlockSummary};
use brickyard_host::counters::Counters;
use brickyard_host::forecast::{self, Forecasts};
use brickyard_host::look::Look;
use brickyard_host::pagetypeinfo::PageTypes;

use crate::frames::{BlockRun, FrameMap};

/// Returns the order of a region of 1 GiB, a gigantic page, in frames of this size.
#[must_use]
pub fn gigantic_order(frame_bytes: u32) -> u8 {
    30_u32.saturating_sub(frame_bytes.max(1).ilog2()) as u8
}

/// The host at one time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sample {
    /// Its lists and zones: what every user may read. It has no runs and no page blocks; those are
    /// in `reading`.
    pub look: Look,
    /// `/proc/vmstat`; empty if it could not be read.
    pub counters: Counters,
    /// Memory that could be had without swapping, in bytes; `None` if the kernel does not tell.
    pub available: Option<u64>,
    /// Huge pages of the kernel's pool (`nr_hugepages`) that nobody uses; `None` if the kernel does
    /// not tell, or if the pool's are of another size.
    pub pool_free: Option<u64>,
    /// pagetypeinfo, which is read more seldom.
    pub page_types: Option<Arc<PageTypes>>,
    /// The newest complete pass over all frames.
    pub reading: Option<Arc<Reading>>,
    /// How much of the next pass is done, 0 to 1; `None` if frames cannot be read.
    pub progress: Option<f64>,
    /// Fallbacks by process; `None` if they are not traced.
    pub fallbacks: Option<Arc<Vec<Fallbacks>>>,
    /// Fallbacks that were not counted, since the kernel's buffers were full.
    pub fallbacks_lost: u64,
    /// What is read, and why what is not.
    pub sources: Vec<Source>,
    /// What watching costs.
    pub cost: Cost,
}

/// The result of a pass over all frames.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
    /// When it ended.
    pub time: SystemTime,
    /// How long it took: its first frames are that much older.
    pub took: Duration,
    /// The order of a page block.
    pub block_order: Order,
    /// Page blocks by what is in them. Zones may come and go, so they need not be those of a
    /// sample.
    pub zones: Vec<ZoneBlocks>,
    /// Frames by use.
    pub by_use: Vec<(&'static str, u64)>,
    /// The forecasts for huge pages; `None` if the kernel's lists have no blocks of that order.
    pub forecasts: Option<Forecasts>,
    /// Pages that processes have pinned; `None` where they are hidden.
    pub pinned: Option<u64>,
    /// Regions of 1 GiB.
    pub gigantic: Gigantic,
    /// What is in each page block, in order.
    pub blocks: Vec<BlockRun>,
    /// What each frame is used for.
    pub frames: FrameMap,
}

/// The page blocks of a zone.
#[derive(Debug, Clone)]
pub struct ZoneBlocks {
    /// The zone's node.
    pub node: u32,
    /// The zone's name.
    pub zone: String,
    /// Its page blocks.
    pub blocks: BlockSummary,
}

/// Aligned regions of 1 GiB within zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gigantic {
    /// Those that are free.
    pub free: u64,
    /// Those without immovable pages, the free ones included; at most as many as the free memory
    /// would fill, since what is in them has to go somewhere.
    pub emptiable: u64,
    /// Those without immovable pages, whatever room there is for what is in them: the bound of
    /// [`Self::emptiable`] if memory is freed.
    pub movable: u64,
}

/// Requests that fell back on memory of another mobility, since the service began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallbacks {
    /// The name of the task.
    pub process: String,
    /// What it asked for.
    pub mobility: String,
    /// The type of the block that it got memory from.
    pub from: String,
    /// How often.
    pub count: u64,
}

/// A file or facility of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, such as `kpageflags`.
    pub name: &'static str,
    /// Why it is not read; `None` if it is.
    pub withheld: Option<String>,
}

/// What watching costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// CPU time of this process.
    pub cpu: Duration,
    /// Of one CPU, since the service began.
    pub share: f64,
    /// The share that sampling keeps to.
    pub budget: f64,
    /// Memory of this process, in bytes.
    pub resident: u64,
}

/// Returns the free huge pages of the pool, if they are of this order.
pub(crate) fn pool_free(meminfo: &Counters, look: &Look) -> Option<u64> {
    let bytes = u64::from(look.frame_bytes) << look.huge_order.get();
    let own = meminfo.get("Hugepagesize")?.checked_mul(1024)?;
    (own == bytes)
        .then(|| meminfo.get("HugePages_Free"))
        .flatten()
}

impl Sample {
    /// Returns the host's huge pages that would come now: of all users' knowledge, by the lists.
    #[must_use]
    pub fn huge_free(&self) -> u64 {
        forecast::now(&self.look, self.look.huge_order)
    }

    /// Returns the sum over zones of a figure in frames, in bytes.
    pub(crate) fn bytes(&self, of: impl Fn(&brickyard_host::look::ZoneLook) -> u64) -> u64 {
        let frames = self.look.zones.iter().map(of);
        frames.fold(0, u64::saturating_add) * u64::from(self.look.frame_bytes)
    }

    /// Returns free memory in bytes, that in per-CPU lists not included.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.bytes(|zone| zone.info.free)
    }

    /// Returns the memory that the kernel's allocator manages, in bytes.
    #[must_use]
    pub fn managed_bytes(&self) -> u64 {
        self.bytes(|zone| zone.info.managed)
    }

    /// Returns the free memory in per-CPU lists, in bytes.
    #[must_use]
    pub fn per_cpu_idle_bytes(&self) -> u64 {
        self.bytes(|zone| zone.info.idle_in_pagesets())
    }

    /// Returns the share of the free memory that is in blocks smaller than 2^`order` frames, 0 to
    /// 1; 0 if nothing is free.
    #[must_use]
    pub fn unusable(&self, order: Order) -> f64 {
        let zones = self.look.zones.iter();
        let free: usize = zones.clone().map(|zone| zone.counts.free_frames()).sum();
        let suited: usize = zones
            .map(|zone| zone.counts.suitable(order) << order.get())
            .sum();
        if free == 0 {
            return 0.0;
        }
        1.0 - suited.min(free) as f64 / free as f64
    }

    /// Returns the sum of the kernel's counters whose names begin so; `None` if it has none.
    #[must_use]
    pub fn counters_from(&self, prefix: &str) -> Option<u64> {
        let mut found = self
            .counters
            .0
            .iter()
            .filter(|(name, _)| name.starts_with(prefix));
        let first = found.next()?.1;
        Some(found.fold(first, |sum, (_, value)| sum.saturating_add(*value)))
    }
}

impl Reading {
    /// Returns the page blocks of a kind, in all zones.
    #[must_use]
    pub fn blocks_of(&self, kind: BlockKind) -> u64 {
        let zones = self.zones.iter();
        zones.map(|zone| count_of(&zone.blocks, kind)).sum()
    }
}

/// Returns the blocks of a kind.
#[must_use]
pub fn count_of(summary: &BlockSummary, kind: BlockKind) -> u64 {
    match kind {
        BlockKind::Absent => summary.absent,
        BlockKind::Free => summary.free,
        BlockKind::Huge => summary.huge,
        BlockKind::Movable => summary.movable,
        BlockKind::Perhaps => summary.perhaps,
        BlockKind::Mixed => summary.mixed,
        BlockKind::Unmovable => summary.unmovable,
    }
}
