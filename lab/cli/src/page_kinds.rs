//! Maps what a host reports of its frames to the colours of the picture of 2007. Only this module
//! depends on both.
//!
//! `/proc/kpageflags` reports uses, the picture shows mobilities. Where the flags do not decide:
//!
//! - **Locked memory** is movable if compaction may move it (`vm.compact_unevictable_allowed`),
//!   else unmovable.
//! - **Explicit huge pages** are movable: the kernel migrates them as a whole.
//! - **Slabs** have no flag for whether they can be reclaimed. All of them get the kind that most
//!   slab memory of the host has, by `nr_slab_reclaimable` and `nr_slab_unreclaimable`; without
//!   those counters, unmovable.
//! - **Frames in use without a flag** are per-CPU, as in the picture of 2007, where they are single
//!   frames in a stretch shorter than a page block. Longer stretches and compound pages are the
//!   kernel's own (a balloon has millions in a row): unmovable. So the colour of per-CPU pages is
//!   an upper bound; single frames of kernel memory have it too.

use brickyard_host::Unevictable;
use brickyard_host::blocks::BlockUse;
use brickyard_host::movability::{Judge, Movability};
use brickyard_host::zoneinfo::{ZoneInfo, counter};
use brickyard_pictures::pagetypes::{PageKind, Plan, ZoneSpan};
use brickyard_trace::{PageUse, StateRun};

/// The kinds of the frames of one reading of page states.
#[derive(Debug)]
pub(crate) struct PageKinds<'a> {
    runs: &'a [StateRun],
    judge: Judge,
    slabs: PageKind,
}

impl<'a> PageKinds<'a> {
    /// Prepares the kinds of these runs (in order of frames) of a host with these zones.
    pub(crate) fn new(
        runs: &'a [StateRun],
        zones: &[ZoneInfo],
        page_block_order: u8,
        unevictable: Unevictable,
    ) -> Self {
        Self {
            runs,
            judge: Judge::new(runs, page_block_order, unevictable),
            slabs: slab_kind(zones),
        }
    }

    /// Returns the kind of the frames of one of the runs.
    pub(crate) fn of(&self, run: &StateRun) -> PageKind {
        match self.judge.of(run) {
            Movability::Absent => PageKind::Absent,
            Movability::Free => PageKind::Free,
            Movability::Perhaps => PageKind::PerCpu,
            Movability::Huge => PageKind::Movable,
            Movability::Movable if run.state.writeback => PageKind::UnderReclaim,
            Movability::Movable => PageKind::Movable,
            Movability::Stuck if run.state.usage == PageUse::Slab => self.slabs,
            Movability::Stuck => PageKind::Unmovable,
        }
    }

    /// Returns the kind of every frame of `zones`, zone after zone. Frames that are in no run are
    /// [`PageKind::Absent`]. Takes a byte per frame.
    pub(crate) fn of_zones(&self, zones: &[ZoneInfo]) -> Vec<PageKind> {
        let frames = zones.iter().map(|zone| zone.spanned as usize).sum();
        let mut kinds = Vec::with_capacity(frames);
        for zone in zones {
            let end = zone.end_pfn();
            let first = self
                .runs
                .partition_point(|run| run_end(run) <= zone.start_pfn);
            let mut next = zone.start_pfn;
            for run in self.runs[first..].iter().take_while(|run| run.frame < end) {
                push(&mut kinds, run.frame.saturating_sub(next), PageKind::Absent);
                next = next.max(run.frame);
                let until = run_end(run).min(end);
                push(&mut kinds, until.saturating_sub(next), self.of(run));
                next = next.max(until);
            }
            push(&mut kinds, end - next, PageKind::Absent);
        }
        kinds
    }
}

/// Returns the layout of a picture of `zones`: a box is a block of the highest order.
pub(crate) fn plan(zones: &[ZoneInfo], max_order: u8, huge_order: u8, frame_bytes: u32) -> Plan {
    let spans = zones.iter().map(|zone| ZoneSpan {
        name: zone_name(zone, zones),
        start: zone.start_pfn,
        frames: zone.spanned,
    });
    Plan {
        zones: spans.collect(),
        box_order: max_order.max(huge_order),
        huge_order,
        frame_bytes,
    }
}

/// Returns the printed name of a zone: its name alone where there is one node.
pub(crate) fn zone_name(zone: &ZoneInfo, zones: &[ZoneInfo]) -> String {
    if zones.iter().all(|other| other.node == zone.node) {
        zone.name.clone()
    } else {
        format!("node {} {}", zone.node, zone.name)
    }
}

/// Returns how many frames of a block are of each kind, by [`PageKind::index`]; `slabs` is from
/// [`slab_kind`].
pub(crate) fn block_kinds(block: &BlockUse, slabs: PageKind) -> [u32; PageKind::COUNT] {
    let slab = match slabs {
        PageKind::Reclaimable => block.of_use(PageUse::Slab),
        _ => 0,
    };
    let movable = block.movable + block.of_use(PageUse::Huge);
    let mut frames = [0; PageKind::COUNT];
    frames[PageKind::Absent.index()] = block.of_use(PageUse::Hole);
    frames[PageKind::Free.index()] = block.of_use(PageUse::Free);
    frames[PageKind::Movable.index()] = movable.saturating_sub(block.writeback);
    frames[PageKind::UnderReclaim.index()] = block.writeback.min(movable);
    frames[PageKind::Reclaimable.index()] = slab;
    frames[PageKind::Unmovable.index()] = block.stuck.saturating_sub(slab);
    frames[PageKind::PerCpu.index()] = block.perhaps;
    frames
}

/// Returns the kind of most slab memory.
pub(crate) fn slab_kind(zones: &[ZoneInfo]) -> PageKind {
    let reclaimable = counter(zones, "nr_slab_reclaimable").unwrap_or(0);
    let unmovable = counter(zones, "nr_slab_unreclaimable").unwrap_or(0);
    if reclaimable > unmovable {
        PageKind::Reclaimable
    } else {
        PageKind::Unmovable
    }
}

fn run_end(run: &StateRun) -> u64 {
    run.frame.saturating_add(run.frames)
}

fn push(kinds: &mut Vec<PageKind>, frames: u64, kind: PageKind) {
    kinds.resize(kinds.len() + frames as usize, kind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_trace::PageState;

    fn run(frame: u64, frames: u64, usage: PageUse) -> StateRun {
        StateRun {
            time: 0,
            frame,
            frames,
            order: 0,
            state: PageState::of(usage),
        }
    }

    fn zone(start_pfn: u64, spanned: u64, slabs: [u64; 2]) -> ZoneInfo {
        let [reclaimable, unreclaimable] = slabs;
        ZoneInfo {
            name: "Normal".into(),
            start_pfn,
            spanned,
            node_stats: vec![
                ("nr_slab_reclaimable".into(), reclaimable),
                ("nr_slab_unreclaimable".into(), unreclaimable),
            ],
            ..ZoneInfo::default()
        }
    }

    #[test]
    fn every_use_has_a_kind() {
        let mut runs: Vec<_> = (0..)
            .zip(PageUse::ALL)
            .map(|(frame, usage)| run(frame, 1, usage))
            .collect();
        runs.push(run(9, 8, PageUse::Untold));
        runs[5].state.writeback = true;
        let zones = [zone(0, 18, [2, 1])];
        let kinds = PageKinds::new(&runs, &zones, 3, Unevictable::Moves);
        let mut expected = vec![
            PageKind::Absent,
            PageKind::Unmovable,
            PageKind::Free,
            PageKind::PerCpu,
            PageKind::Movable,
            PageKind::UnderReclaim,
            PageKind::Reclaimable,
            PageKind::Unmovable,
            PageKind::Movable,
        ];
        expected.extend([PageKind::Unmovable; 8]);
        expected.push(PageKind::Absent);
        assert_eq!(kinds.of_zones(&zones), expected);
        let unmovable = [zone(0, 18, [1, 1])];
        let kinds = PageKinds::new(&runs, &unmovable, 3, Unevictable::Moves);
        assert_eq!(kinds.of(&runs[6]), PageKind::Unmovable);
    }

    #[test]
    fn locked_memory_goes_by_what_compaction_does() {
        let mut runs = [run(0, 1, PageUse::Anonymous)];
        runs[0].state.unevictable = true;
        let of = |unevictable| PageKinds::new(&runs, &[], 9, unevictable).of(&runs[0]);
        assert_eq!(of(Unevictable::Moves), PageKind::Movable);
        assert_eq!(of(Unevictable::Stays), PageKind::Unmovable);
    }

    #[test]
    fn zones_come_one_after_another_each_as_long_as_it_spans() {
        let runs = [run(2, 4, PageUse::Free), run(8, 10, PageUse::Anonymous)];
        let zones = [zone(0, 5, [0, 0]), zone(5, 5, [0, 0])];
        let kinds = PageKinds::new(&runs, &zones, 9, Unevictable::Moves).of_zones(&zones);
        let letters: String = kinds.iter().map(|kind| kind.letter()).collect();
        assert_eq!(letters, "--FFFF--MM");
        let plan = plan(&zones, 10, 9, 4096);
        assert_eq!(
            (plan.zones.len(), plan.frames(), plan.box_order),
            (2, 10, 10)
        );
    }

    #[test]
    fn nodes_are_named_where_there_are_several() {
        let mut zones = [zone(0, 5, [0, 0]), zone(5, 5, [0, 0])];
        assert_eq!(zone_name(&zones[1], &zones), "Normal");
        zones[1].node = 1;
        assert_eq!(zone_name(&zones[1], &zones), "node 1 Normal");
    }
}
