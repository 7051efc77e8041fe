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
use brickyard_run::named;
use brickyard_trace::{PageUse, StateRun};

use crate::compaction::{CpuList, Frames, Request};
use crate::look::{Look, ZoneLook};
use crate::movability::Judge;
use crate::pinned::Pinned;
use crate::spans::own_runs;
use crate::zoneinfo::{ZoneInfo, counter};

/// Above this order compaction begins only above the low watermark, and not above the min one.
const COSTLY_ORDER: u8 = 3;

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

named! {
    /// A way to ask for blocks, or to make them first: the one with the least side effects first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Way {
        /// Without help: only what is free.
        Now => "now",
        /// With direct compaction and reclaim, as `nr_hugepages` asks.
        Asking => "pool",
        /// After `echo 1 > /proc/sys/vm/compact_memory`.
        Compacted => "compacted",
        /// After `sync`, then `drop_caches`, then `compact_memory`.
        Dropped => "dropped",
    }
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
    /// References by which devices and the kernel hold pages of processes in their places, of all
    /// kinds: one page may have several. Larger than `pinned` where `VmPin` does not tell, as of
    /// devices that are passed through. 0 if the kernel does not count them.
    pub references: u64,
    /// Pages in per-CPU lists.
    pub idle: u64,
    /// Free pages that are set aside for requests that must not wait.
    pub set_aside: u64,
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
    /// kernel's free lists have no blocks of this order. Takes some passes over the frames: about
    /// two seconds for 32 GiB.
    #[must_use]
    pub fn new(look: &Look, order: Order, pinned: &Pinned) -> Option<Self> {
        let highest = look.zones.iter().map(|zone| zone.max_order).max()?;
        if look.runs.is_empty() || order > highest {
            return None;
        }
        let block_order = look.page_block_order.get();
        let judge = Judge::new(&look.runs, block_order, look.unevictable);
        let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
        let mut forecasts = Self::default();
        for (zone, info) in look.zones.iter().zip(&infos) {
            let runs = own_runs(&look.runs, info, &infos);
            let mut frames = Frames::of_zone(&runs, info, block_order, &judge);
            frames.pin(pinned.frames.iter().copied());
            let limit = Limit::of(&runs, info, order);
            let set_aside = SetAside::of(look, info, order);
            let obstacles = &mut forecasts.obstacles;
            obstacles.set_aside = obstacles.set_aside.saturating_add(set_aside.pages);
            obstacles.uninitialised += limit.uninitialised << order.get();
            obstacles.modified_large += frames.modified_large();
            let idle = zone.info.idle_in_pagesets();
            obstacles.idle = obstacles.idle.saturating_add(idle);
            let trial = Trial {
                frames,
                zone,
                limit,
                set_aside,
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
        let value = |name| counter(&infos, name).unwrap_or(0);
        let [acquired, released] = ["nr_foll_pin_acquired", "nr_foll_pin_released"].map(value);
        forecasts.obstacles.references = acquired.saturating_sub(released);
        Some(forecasts)
    }
}

/// Returns how many blocks of this order a request would get now, by the lists alone: every user
/// may read those. Memory that the kernel does not manage yet is not counted.
#[must_use]
pub fn now(look: &Look, order: Order) -> u64 {
    let of_zone = |zone: &ZoneLook| {
        let limit = Limit::of(&[], &zone.info, order);
        let set_aside = SetAside::of(look, &zone.info, order);
        let free = zone.counts.suitable(order) as u64;
        set_aside.usable(&limit, free, zone.info.free)
    };
    look.zones.iter().map(of_zone).sum()
}

/// Free memory of a zone that is set aside for atomic requests: other requests neither get it nor
/// may count it, until reclaim finds nothing more.
#[derive(Debug, Clone, Copy, Default)]
struct SetAside {
    blocks: u64,
    pages: u64,
}

impl SetAside {
    /// By pagetypeinfo, which only root may read; nothing without it.
    fn of(look: &Look, zone: &ZoneInfo, order: Order) -> Self {
        let rows = look.page_types.iter().flat_map(|types| &types.free);
        let rows = rows.filter(|row| {
            (row.node, row.zone.as_str(), row.kind.as_str())
                == (zone.node, &zone.name, "HighAtomic")
        });
        let mut set_aside = Self::default();
        for row in rows {
            let counts = row.free.iter().map(|count| count.at_least());
            for (own, count) in (0..64_u32).zip(counts) {
                let pages = count.saturating_mul(1 << own.min(62));
                set_aside.pages = set_aside.pages.saturating_add(pages);
                if own >= u32::from(order.get()) {
                    let blocks = count.saturating_mul(1 << (own - u32::from(order.get())).min(62));
                    set_aside.blocks = set_aside.blocks.saturating_add(blocks);
                }
            }
        }
        set_aside
    }

    /// Returns how many of so many free blocks a request gets, without what is set aside.
    fn usable(&self, limit: &Limit, blocks: u64, free: u64) -> u64 {
        let blocks = blocks.saturating_sub(self.blocks);
        limit.usable(blocks, free.saturating_sub(self.pages))
    }
}

/// One zone, on which every way is tried.
struct Trial<'a> {
    frames: Frames,
    zone: &'a ZoneLook,
    limit: Limit,
    set_aside: SetAside,
}

impl Trial<'_> {
    fn forecast(&self, way: Way) -> (Forecast, Cost) {
        let now = self.now();
        let nothing = Made::default();
        let (likely, high) = match way {
            Way::Now => (
                Made {
                    blocks: now,
                    ..nothing
                },
                now,
            ),
            // At most, the kernel reclaims the page cache before it compacts.
            Way::Asking => (
                self.asking(self.frames.clone()),
                self.asking(self.dropped()).blocks,
            ),
            Way::Compacted => {
                let mut written = self.frames.clone();
                written.sync();
                (
                    self.compacted(self.frames.clone(), self.list()),
                    self.most(written),
                )
            }
            Way::Dropped => {
                let frames = self.dropped();
                let dropped = frames.free().saturating_sub(self.frames.free());
                let made = self.compacted(frames.clone(), self.list());
                (Made { dropped, ..made }, self.most(frames))
            }
        };
        let forecast = Forecast {
            low: now.min(likely.blocks),
            likely: likely.blocks,
            high: high.max(likely.blocks),
        };
        let Made { moved, dropped, .. } = likely;
        (forecast, Cost { moved, dropped })
    }

    /// Returns the blocks at most: if per-CPU lists are drained and stay empty.
    fn most(&self, mut frames: Frames) -> u64 {
        frames.drain(self.listed());
        self.compacted(frames, CpuList::default()).blocks
    }

    fn now(&self) -> u64 {
        let free = self.zone.counts.suitable(self.limit.order) as u64;
        self.set_aside
            .usable(&self.limit, free, self.zone.info.free)
    }

    /// Returns what a pool gets.
    fn asking(&self, mut frames: Frames) -> Made {
        frames.drain(self.listed());
        let order = self.limit.order.get();
        if order > frames.block_order() {
            // The kernel compacts by page blocks; that two of them come free together is chance.
            let free = frames.free_blocks(order);
            return Made {
                blocks: self.limit.usable(free, frames.free()),
                ..Made::default()
            };
        }
        let free = frames.take_free(self.limit.room(frames.free()), order);
        let pass = frames.compact_for(&Request {
            order,
            blocks: u64::MAX,
            reserve: self.limit.to_begin,
            attempts: PASSES,
        });
        Made {
            blocks: self.limit.with_more_to_come(free + pass.taken),
            moved: pass.moved,
            dropped: pass.reclaimed,
        }
    }

    /// Returns what there is after a pass over the zone by a CPU with such a list.
    fn compacted(&self, mut frames: Frames, list: CpuList) -> Made {
        let pass = frames.compact(list);
        let blocks = frames.free_blocks(self.limit.order.get());
        Made {
            blocks: self.set_aside.usable(&self.limit, blocks, frames.free()),
            moved: pass.moved,
            dropped: 0,
        }
    }

    fn dropped(&self) -> Frames {
        let mut frames = self.frames.clone();
        frames.sync();
        frames.drop_clean();
        frames
    }

    /// Returns the list of the CPU that compacts. Which one that is is not known: it is taken for
    /// one of those whose lists are long.
    fn list(&self) -> CpuList {
        let sets = self.zone.info.pagesets.iter().map(|set| CpuList {
            count: set.count,
            high: set.high.max(set.count).min(self.zone.info.managed),
        });
        sets.max_by_key(|list| list.high).unwrap_or_default()
    }

    /// Returns the pages in per-CPU lists.
    fn listed(&self) -> u64 {
        self.zone.info.idle_in_pagesets()
    }
}

/// What a way makes of a zone.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    blocks: u64,
    moved: u64,
    dropped: u64,
}

/// What a zone gives of its free memory.
struct Limit {
    /// Pages that a request leaves: the min watermark, and what the zone keeps for requests that
    /// only it can serve.
    reserve: u64,
    /// Pages that must be free beside what compaction takes.
    to_begin: u64,
    order: Order,
    /// Blocks that the kernel has not begun to manage.
    uninitialised: u64,
    /// Blocks that it has not accepted from its host yet.
    unaccepted: u64,
}

impl Limit {
    fn of(runs: &[StateRun], zone: &ZoneInfo, order: Order) -> Self {
        let kept = zone.protection.iter().max().copied().unwrap_or(0);
        let watermark = if order.get() > COSTLY_ORDER {
            zone.low
        } else {
            zone.min
        };
        let unaccepted = zone.stats.iter().find(|(name, _)| name == "nr_unaccepted");
        let unaccepted = unaccepted.map_or(0, |&(_, pages)| pages >> order.get());
        Self {
            reserve: zone.min.saturating_add(kept),
            to_begin: watermark.saturating_add(kept),
            order,
            uninitialised: uninitialised(runs, zone, order),
            unaccepted,
        }
    }

    /// Returns how many blocks fit into what may be taken of so many free pages.
    fn room(&self, free: u64) -> u64 {
        free.saturating_sub(self.reserve) >> self.order.get()
    }

    /// Returns how many of so many free blocks a request gets.
    fn usable(&self, blocks: u64, free: u64) -> u64 {
        self.with_more_to_come(blocks.min(self.room(free)))
    }

    /// Adds the blocks that the kernel begins to manage, or accepts, when they are needed.
    fn with_more_to_come(&self, blocks: u64) -> u64 {
        blocks
            .saturating_add(self.uninitialised)
            .saturating_add(self.unaccepted)
    }
}

/// The least stretch that counts as memory which is not managed yet: kernels begin to manage a
/// section at a time, 128 MiB in frames of 4 KiB.
const SECTION: u64 = 1 << 15;

/// Returns the blocks of memory that is present but not managed yet: whole ones without any flag.
/// Kernels that initialise memory when it is first needed begin with most of it so.
fn uninitialised(runs: &[StateRun], zone: &ZoneInfo, order: Order) -> u64 {
    // What was withheld at boot is not managed either, and never will be.
    let inside = |run: &StateRun| {
        let end = run.frame.saturating_add(run.frames).min(zone.end_pfn());
        end.saturating_sub(run.frame.max(zone.start_pfn))
    };
    let reserved = runs
        .iter()
        .filter(|run| run.state.usage == PageUse::Reserved);
    let reserved: u64 = reserved.map(inside).sum();
    let missing = zone.present.saturating_sub(zone.managed);
    let missing = missing.saturating_sub(reserved) >> order.get();
    let stretches = crate::unflagged::long_stretches(runs, SECTION);
    let inside = stretches.iter().map(|stretch| {
        let start = stretch.start.max(zone.start_pfn).div_ceil(1 << order.get());
        (stretch.end.min(zone.end_pfn()) >> order.get()).saturating_sub(start)
    });
    inside.sum::<u64>().min(missing)
}
