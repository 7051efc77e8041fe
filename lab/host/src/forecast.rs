//! How many blocks the kernel would really give, and what would help most.
//!
//! [`outlook`](crate::outlook) has bounds: no more than that is possible. Here the kernel's own
//! steps are run on a copy of what was read ([`compaction`](crate::compaction)), with what makes it
//! stop early: watermarks, pages in per-CPU lists, pinned pages, and large pages of modified files,
//! at which it gives up a whole pass. Of these, the places of the last two change from moment to
//! moment on a host that works, so a forecast is an interval.
//!
//! What cannot be read, so that outcomes differ: by how many passes compaction is deferred, which
//! blocks it skips because it looked there before, and which CPU's lists its pages go to.

use core::ops::Add;

use brickyard::Order;
use brickyard_trace::StateRun;

use crate::compaction::{Frames, Request};
use crate::look::{Look, ZoneLook};
use crate::movability::Judge;
use crate::pinned::Pinned;
use crate::zoneinfo::{ZoneInfo, counter};

/// Passes that one request of a huge-page pool makes before it fails: one that does not wait, and
/// two that do.
const PASSES: u32 = 3;

/// A number with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forecast {
    /// At least, if the kernel gives up at once.
    pub low: u64,
    /// By the kernel's rules on what was read.
    pub likely: u64,
    /// At most, if it does not give up, and finds room.
    pub high: u64,
}

impl Add for Forecast {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            likely: self.likely.saturating_add(other.likely),
            high: self.high.saturating_add(other.high),
        }
    }
}

/// A way to ask for blocks, or to make them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// Without help: only what is free.
    Now,
    /// With direct compaction and reclaim, as `nr_hugepages` asks.
    Asking,
    /// After `echo 1 > /proc/sys/vm/compact_memory`.
    Compacted,
    /// After `sync`, then `drop_caches`, then `compact_memory`.
    Dropped,
}

impl Way {
    /// All ways, the one with the least side effects first.
    pub const ALL: [Self; 4] = [Self::Now, Self::Asking, Self::Compacted, Self::Dropped];
}

/// What stands in the way of larger blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Obstacles {
    /// Large pages of modified files, at which compaction gives up.
    pub modified_large: u64,
    /// Pages that are pinned.
    pub pinned: u64,
    /// Those of them whose place is known.
    pub located: u64,
    /// Pages in per-CPU lists.
    pub idle: u64,
    /// Memory that the kernel has not begun to manage yet, in pages.
    pub uninitialised: u64,
}

/// What a way costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Pages that are moved, at some 2 to 4 us each.
    pub moved: u64,
    /// Pages of the page cache that are dropped, and read again when they are needed.
    pub dropped: u64,
}

/// The forecasts for one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forecasts {
    by_way: [Forecast; Way::ALL.len()],
    cost: [Cost; Way::ALL.len()],
    /// What stands in the way.
    pub obstacles: Obstacles,
}

impl Forecasts {
    /// Returns the forecast of a way.
    #[must_use]
    pub fn of(&self, way: Way) -> Forecast {
        self.by_way[way as usize]
    }

    /// Returns what a way costs.
    #[must_use]
    pub fn cost(&self, way: Way) -> Cost {
        self.cost[way as usize]
    }

    /// Returns the way that gives most; of several that differ by less than one in twenty, the
    /// first of: now, compacting (whose outcome is known better than that of asking), asking,
    /// dropping caches.
    #[must_use]
    pub fn best(&self) -> Way {
        let most = self.by_way.iter().map(|one| one.likely).max().unwrap_or(0);
        let enough = |way: &Way| self.of(*way).likely >= most - most / 20;
        let ways = [Way::Now, Way::Compacted, Way::Asking, Way::Dropped];
        ways.into_iter().find(enough).unwrap_or(Way::Now)
    }

    /// Makes the forecasts for blocks of this order; `None` if the frames were not read, or the
    /// kernel's free lists have no blocks of this order. Takes some passes over the frames: about two
    /// seconds for 32 GiB.
    #[must_use]
    pub fn new(look: &Look, order: Order, pinned: &Pinned) -> Option<Self> {
        let highest = look.zones.iter().map(|zone| zone.max_order).max()?;
        if look.runs.is_empty() || order > highest {
            return None;
        }
        let block_order = look.page_block_order.get();
        let judge = Judge::new(&look.runs, block_order, look.unevictable);
        let cached = Cached::of(look);
        let mut forecasts = Self::default();
        for zone in &look.zones {
            let mut frames = Frames::of_zone(&look.runs, &zone.info, block_order, &judge);
            frames.pin(pinned.frames.iter().copied());
            let limit = Limit::of(&look.runs, &zone.info, order);
            let obstacles = &mut forecasts.obstacles;
            obstacles.uninitialised += limit.uninitialised << order.get();
            obstacles.modified_large += frames.modified_large();
            let idle = zone.info.idle_in_pagesets();
            obstacles.idle = obstacles.idle.saturating_add(idle);
            let trial = Trial {
                frames,
                zone,
                limit,
                cached,
            };
            for way in Way::ALL {
                let (forecast, cost) = trial.forecast(way);
                let sum = &mut forecasts.by_way[way as usize];
                *sum = *sum + forecast;
                let sum = &mut forecasts.cost[way as usize];
                sum.moved += cost.moved;
                sum.dropped += cost.dropped;
            }
        }
        forecasts.obstacles.pinned = pinned.pages();
        forecasts.obstacles.located = pinned.frames.len() as u64;
        Some(forecasts)
    }
}

/// Returns how many blocks of this order a request would get now, by the lists alone: every user
/// may read those. Memory that the kernel does not manage yet is not counted.
#[must_use]
pub fn now(look: &Look, order: Order) -> u64 {
    let of_zone = |zone: &ZoneLook| {
        let limit = Limit::of(&[], &zone.info, order);
        limit.usable(zone.counts.suitable(order) as u64, zone.info.free)
    };
    look.zones.iter().map(of_zone).sum()
}

/// How much of the page cache processes have mapped or is shared memory, so that dropping does not
/// free it.
#[derive(Debug, Clone, Copy)]
struct Cached {
    kept: u64,
    all: u64,
}

impl Cached {
    fn of(look: &Look) -> Self {
        let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
        let value = |name| counter(&infos, name).unwrap_or(0);
        let all = value("nr_file_pages");
        let kept = value("nr_mapped").saturating_add(value("nr_shmem"));
        Self {
            kept: kept.min(all),
            all,
        }
    }
}

/// One zone, on which every way is tried.
struct Trial<'a> {
    frames: Frames,
    zone: &'a ZoneLook,
    limit: Limit,
    cached: Cached,
}

impl Trial<'_> {
    fn forecast(&self, way: Way) -> (Forecast, Cost) {
        let now = self.now();
        let mut dropped = 0;
        let ((likely, moved), (high, _)) = match way {
            Way::Now => ((now, 0), (now, 0)),
            // At most, the kernel reclaims the page cache while it looks for room.
            Way::Asking => (
                self.asking(self.frames.clone()),
                self.asking(self.dropped()),
            ),
            Way::Compacted => {
                let mut written = self.frames.clone();
                written.sync();
                self.likely_and_most(self.frames.clone(), written)
            }
            Way::Dropped => {
                let frames = self.dropped();
                dropped = frames.free().saturating_sub(self.frames.free());
                self.likely_and_most(frames.clone(), frames)
            }
        };
        let forecast = Forecast {
            low: now.min(likely),
            likely,
            high: high.max(likely),
        };
        (forecast, Cost { moved, dropped })
    }

    /// Compacts some frames, and others whose per-CPU lists were drained.
    fn likely_and_most(&self, likely: Frames, mut most: Frames) -> ((u64, u64), (u64, u64)) {
        most.drain(self.listed());
        (self.compacted(likely), self.compacted(most))
    }

    fn now(&self) -> u64 {
        let free = self.zone.counts.suitable(self.limit.order) as u64;
        self.limit.usable(free, self.zone.info.free)
    }

    /// Returns the blocks that a pool gets, and the pages that are moved for them.
    fn asking(&self, mut frames: Frames) -> (u64, u64) {
        frames.drain(self.listed());
        let order = self.limit.order.get();
        if order > frames.block_order() {
            // The kernel compacts by page blocks; that two of them come free together is chance.
            let free = frames.free_blocks(order);
            return (self.limit.usable(free, frames.free()), 0);
        }
        let free = frames.take_free(self.limit.room(frames.free()), order);
        let pass = frames.compact_for(&Request {
            order,
            blocks: u64::MAX,
            reserve: self.limit.reserve,
            attempts: PASSES,
        });
        (free + self.limit.uninitialised + pass.taken, pass.moved)
    }

    /// Returns the blocks after a pass over the zone, and the pages that were moved.
    fn compacted(&self, mut frames: Frames) -> (u64, u64) {
        let cpus = self.zone.info.pagesets.len().max(1) as u64;
        let listed = (self.listed() / cpus).min(self.zone.info.managed);
        let pass = frames.compact(listed);
        let blocks = frames.free_blocks(self.limit.order.get());
        (self.limit.usable(blocks, frames.free()), pass.moved)
    }

    fn dropped(&self) -> Frames {
        let mut frames = self.frames.clone();
        frames.sync();
        frames.drop_clean(self.cached.kept, self.cached.all);
        frames
    }

    /// Returns the pages in per-CPU lists.
    fn listed(&self) -> u64 {
        self.zone.info.idle_in_pagesets()
    }
}

/// What a zone gives of its free memory.
struct Limit {
    /// Pages that a request leaves: the min watermark, and what the zone keeps for requests that
    /// only it can serve.
    reserve: u64,
    order: Order,
    /// Blocks that the kernel has not begun to manage.
    uninitialised: u64,
}

impl Limit {
    fn of(runs: &[StateRun], zone: &ZoneInfo, order: Order) -> Self {
        let kept = zone.protection.iter().max().copied().unwrap_or(0);
        Self {
            reserve: zone.min.saturating_add(kept),
            order,
            uninitialised: uninitialised(runs, zone, order),
        }
    }

    /// Returns how many blocks fit into what may be taken of so many free pages.
    fn room(&self, free: u64) -> u64 {
        free.saturating_sub(self.reserve) >> self.order.get()
    }

    /// Returns how many of so many free blocks a request gets.
    fn usable(&self, blocks: u64, free: u64) -> u64 {
        blocks
            .min(self.room(free))
            .saturating_add(self.uninitialised)
    }
}

/// The least stretch that counts as memory which is not managed yet: kernels begin to manage a
/// section at a time, 128 MiB in frames of 4 KiB.
const SECTION: u64 = 1 << 15;

/// Returns the blocks of memory that is present but not managed yet: whole ones without any flag.
/// Kernels that initialise memory when it is first needed begin with most of it so.
fn uninitialised(runs: &[StateRun], zone: &ZoneInfo, order: Order) -> u64 {
    let missing = zone.present.saturating_sub(zone.managed) >> order.get();
    let stretches = crate::untold::long_stretches(runs, SECTION);
    let inside = stretches.iter().map(|stretch| {
        let start = stretch.start.max(zone.start_pfn).div_ceil(1 << order.get());
        (stretch.end.min(zone.end_pfn()) >> order.get()).saturating_sub(start)
    });
    inside.sum::<u64>().min(missing)
}
