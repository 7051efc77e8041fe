//! The zones of a host, as its texts count them: frames in the lists of CPUs, free blocks, page blocks,
//! and frames that are not managed.

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
    /// Frames in the list of each CPU.
    pub(super) counts: Vec<u64>,
    /// Frames that each may hold.
    pub(super) highs: Vec<u64>,
    /// Page blocks that are not movable, by type; `None` where that is unknown.
    pub(super) blocks: Option<[u64; MigrateType::COUNT]>,
    /// Free blocks smaller than a page block, by type and order.
    pub(super) free: [[i64; Order::COUNT]; MigrateType::COUNT],
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
            let counts = sets.iter().map(|set| set.count.min(pages)).collect();
            Zone {
                from: zone.start_pfn,
                to: zone.end_pfn(),
                counts: counts_at_states(trace, zone, counts),
                highs: sets.iter().map(|set| set.high).collect(),
                blocks: blocks_of(&types, zone),
                free: free_of(&types, zone),
            }
        })
        .collect()
}

/// Returns how many frames lay in the list of each CPU when the page states were read: the texts
/// were read later, and the events until then show what the lists lost meanwhile. Where it is unknown
/// when they were read, they count as they are.
fn counts_at_states(trace: &Trace, zone: &ZoneInfo, counts: Vec<u64>) -> Vec<u64> {
    let texts_read = trace.header.start.time;
    if texts_read == 0 {
        return counts;
    }
    let inside = |frame: u64| (zone.start_pfn..zone.end_pfn()).contains(&frame);
    let is_listed = |event: &Event| {
        event.order.index() < super::LIST_ORDERS
            || event.order.get() == trace.header.page_block_order
    };
    let mut lost = vec![0_i64; counts.len()];
    // By CPU: the frame that came off a list of the zone last.
    let mut came = vec![None; counts.len()];
    let early = trace
        .events
        .iter()
        .take_while(|event| event.time <= texts_read);
    for event in early.filter(|event| event.what.has_frames() && inside(event.frame)) {
        let cpu = usize::from(event.cpu);
        if cpu >= counts.len() || !is_listed(event) {
            continue;
        }
        let frames = event.order.frames() as i64;
        lost[cpu] += match event.what {
            What::Alloc { .. } | What::Drained { .. } => frames,
            What::Free | What::Taken { .. } => -frames,
            // Where a part of a page block is claimed, the frame has come already.
            What::Fallback { .. } if came[cpu] != Some(event.frame) => -frames,
            _ => 0,
        };
        came[cpu] = matches!(event.what, What::Taken { .. }).then_some(event.frame);
    }
    let own = counts.iter().zip(lost);
    own.map(|(count, lost)| count.saturating_add_signed(lost))
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
