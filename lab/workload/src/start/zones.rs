//! The zones of a host, as its texts count them: frames in the lists of CPUs, free blocks, page
//! blocks, and frames that are not managed.

use std::collections::HashSet;

use brickyard::{MigrateType, Order};
use brickyard_host::pagetypeinfo::{self, FreeOfType, PageTypes};
use brickyard_host::zoneinfo::{self, PageSet, ZoneInfo};
use brickyard_trace::record::decode::type_named;
use brickyard_trace::{Event, PageUse, StateRun, Trace, What};

use crate::fidelity::bounded;

/// A zone of the host.
pub(super) struct Zone {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Frames in the list of each CPU, when the texts were read.
    counted: Vec<u64>,
    meanwhile: Meanwhile,
    /// Frames that each may hold.
    pub(super) highs: Vec<u64>,
    /// Page blocks that are not movable, by type; `None` where that is unknown.
    pub(super) blocks: Option<[u64; MigrateType::COUNT]>,
    /// Free blocks smaller than a page block, by type and order.
    pub(super) free: [[i64; Order::COUNT]; MigrateType::COUNT],
}

/// What the lists of CPUs have lost between the page states and the texts, which are read later.
struct Meanwhile {
    /// When the texts were read; 0 where that is unknown, and nothing is counted.
    texts_read: u64,
    block_order: u8,
    // By CPU: the frames that the list has lost.
    lost: Vec<i64>,
    // By CPU: the frame that came off a list of the zone last.
    came: Vec<Option<u64>>,
}

impl Meanwhile {
    fn new(trace: &Trace, cpus: usize) -> Self {
        Self {
            texts_read: trace.header.start.time,
            block_order: trace.header.page_block_order,
            lost: vec![0; cpus],
            came: vec![None; cpus],
        }
    }

    /// Takes the next event of a frame of the zone.
    fn event(&mut self, event: &Event) {
        let is_listed =
            event.order.index() < super::LIST_ORDERS || event.order.get() == self.block_order;
        let cpu = usize::from(event.cpu);
        if cpu >= self.lost.len() || !is_listed {
            return;
        }
        let frames = event.order.frames() as i64;
        self.lost[cpu] += match event.what {
            What::Alloc { .. } | What::Drained { .. } => frames,
            What::Free | What::Taken { .. } => -frames,
            // Where a part of a page block is claimed, the frame has come already.
            What::Fallback { .. } if self.came[cpu] != Some(event.frame) => -frames,
            _ => 0,
        };
        self.came[cpu] = matches!(event.what, What::Taken { .. }).then_some(event.frame);
    }
}

impl Zone {
    /// Takes the next event.
    pub(super) fn event(&mut self, event: &Event) {
        let until = self.meanwhile.texts_read;
        let inside = (self.from..self.to).contains(&event.frame);
        if until > 0 && event.time <= until && inside && event.what.has_frames() {
            self.meanwhile.event(event);
        }
    }

    /// Returns how many frames lay in the list of each CPU when the page states were read: what the
    /// lists have lost from then until the texts were read lay in them.
    pub(super) fn counts(&self) -> Vec<u64> {
        let own = self.counted.iter().zip(&self.meanwhile.lost);
        own.map(|(count, &lost)| count.saturating_add_signed(lost))
            .collect()
    }
}

/// Returns the runs of page states that are no memory of the allocator, by the index of each:
/// frames that exist, but that the kernel has not initialised yet, or has taken out for a balloon.
/// They look like kernel memory without a flag. A zone with fewer managed frames than its states
/// show has them in its longest runs of such frames.
pub(crate) fn unmanaged(trace: &Trace) -> HashSet<usize> {
    let zones = zoneinfo::parse(&trace.header.start.zoneinfo).unwrap_or_default();
    let is_memory = |run: &StateRun| !matches!(run.state.usage, PageUse::Hole | PageUse::Reserved);
    let mut left_out = HashSet::new();
    for zone in zones.iter().filter(|zone| zone.managed > 0) {
        let inside = |run: &StateRun| zone.start_pfn <= run.frame && run.frame < zone.end_pfn();
        let runs = trace.start.iter().enumerate();
        let runs = runs.filter(|(_, run)| inside(run) && is_memory(run));
        let frames = runs.clone().map(|(_, run)| run.frames);
        let shown = frames.fold(0, u64::saturating_add);
        let mut excess = shown.saturating_sub(zone.managed);
        let block = Order::DEFAULT_MAX.frames() as u64;
        let untold = |run: &StateRun| run.state.usage == PageUse::Untold && run.frames >= block;
        let mut long: Vec<(u64, usize)> = runs
            .filter(|(_, run)| untold(run))
            .map(|(place, run)| (run.frames, place))
            .collect();
        long.sort_unstable_by(|one, other| other.cmp(one));
        for (frames, place) in long {
            if frames <= excess {
                excess -= frames;
                left_out.insert(place);
            }
        }
    }
    left_out
}

/// Returns the zones of the host, with what its texts count in them. No count is taken to be larger
/// than the number of `pages`.
pub(super) fn zones_of(trace: &Trace, pages: u64) -> Vec<Zone> {
    let texts = &trace.header.start;
    let zones = zoneinfo::parse(&texts.zoneinfo).unwrap_or_default();
    let types = pagetypeinfo::parse(&texts.pagetypeinfo).unwrap_or_default();
    let cpus = usize::from(trace.header.cpus.max(1));
    let populated = zones.iter().filter(|zone| zone.is_populated());
    populated
        .map(|zone| {
            let sets = pagesets(zone, cpus);
            Zone {
                from: zone.start_pfn,
                to: zone.end_pfn(),
                counted: sets.iter().map(|set| set.count.min(pages)).collect(),
                meanwhile: Meanwhile::new(trace, cpus),
                highs: sets.iter().map(|set| set.high).collect(),
                blocks: blocks_of(&types, zone),
                free: free_of(&types, zone),
            }
        })
        .collect()
}

/// Returns the page set of each CPU; an empty one where the text has none.
fn pagesets(zone: &ZoneInfo, cpus: usize) -> Vec<PageSet> {
    let mut own = vec![PageSet::default(); cpus];
    for set in &zone.pagesets {
        if let Some(own) = own.get_mut(set.cpu as usize) {
            *own = *set;
        }
    }
    own
}

fn blocks_of(types: &PageTypes, zone: &ZoneInfo) -> Option<[u64; MigrateType::COUNT]> {
    let mut zones = types.blocks.iter();
    let own = zones.find(|own| own.node == zone.node && own.zone == zone.name)?;
    let mut counts = [0; MigrateType::COUNT];
    for (name, blocks) in &own.blocks {
        counts[type_named(name).index()] += bounded(*blocks) as u64;
    }
    Some(counts)
}

fn free_of(types: &PageTypes, zone: &ZoneInfo) -> [[i64; Order::COUNT]; MigrateType::COUNT] {
    let mut free = [[0; Order::COUNT]; MigrateType::COUNT];
    let own = |row: &&FreeOfType| row.node == zone.node && row.zone == zone.name;
    for row in types.free.iter().filter(own) {
        let counts = &mut free[type_named(&row.kind).index()];
        for (sum, count) in counts.iter_mut().zip(&row.free) {
            *sum += bounded(count.at_least()) as i64;
        }
    }
    free
}
