//! How the slow path ends: what is given back at last, and who looks once more.

use super::slow::{Hooks, MAY_FAIL, ONCE, USUAL};
use super::*;

use core::cell::Cell;

use brickyard::node::SlowPath;

/// Makes a zone of 512 page blocks of which some are set aside, each with two free frames.
fn with_aside(blocks: usize) -> [Zone; 1] {
    let zone = calm();
    let marks = Marks {
        min: 0,
        low: 300_000,
        high: 300_000,
    };
    set_marks(&zone, marks);
    let zones = [zone];
    for block in 0..blocks {
        release(&zones[0], block * BLOCK, 1);
        let pair = request(1, Mobility::Unmovable).atomic();
        assert_eq!(alloc(&zones, &pair), Some(block * BLOCK));
    }
    for block in 0..blocks {
        release(&zones[0], block * BLOCK, 1);
    }
    assert_eq!(blocks_of(&zones[0], High), blocks);
    zones
}

/// Asks for a frame where some page blocks are set aside; returns whether it got one, and how many
/// are left.
fn spend(blocks: usize, reports: usize, flags: GfpFlags) -> (bool, usize) {
    let zones = with_aside(blocks);
    let hooks = Hooks::reporting(&zones[0], reports);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let taken = Zone::alloc_from(&nodes, 0, &MOVABLE, flags);
    (taken.is_ok(), blocks_of(&zones[0], High))
}

#[test]
fn progress_without_a_block_gives_back_what_is_set_aside() {
    assert_eq!(spend(3, 1, ONCE), (true, 2));
    // But for the last, and not without progress.
    assert_eq!(spend(1, 1, ONCE), (false, 1));
    assert_eq!(spend(3, 0, ONCE), (false, 3));
}

#[test]
fn at_the_end_all_that_is_set_aside_is_given_back() {
    assert_eq!(spend(1, 0, USUAL), (true, 0));
    assert_eq!(spend(3, 0, USUAL), (true, 2));
}

/// Frees a block of one zone when it is first asked to move a page of the other, which is compacted
/// last.
struct FreesElsewhere<'z> {
    zones: &'z [Zone; 2],
    has_freed: Cell<bool>,
}

impl Reclaim for FreesElsewhere<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

impl Migrate for FreesElsewhere<'_> {
    fn migrate(&self, from: Frame, _: Order, _: Frame) -> Migration {
        if self.zones[0].has(from) && !self.has_freed.replace(true) {
            release(&self.zones[1], 16 * BLOCK, 5);
        }
        Migration::Later
    }
}

#[test]
fn all_zones_are_tried_after_compaction_whichever_was_compacted() {
    for flags in [ONCE, MAY_FAIL] {
        let zones = [(ZoneKind::Dma32, 0), (ZoneKind::Normal, 16 * BLOCK)].map(|(kind, start)| {
            let mut part = plan(0);
            part.zone.kind = kind;
            part.zone.span = FrameRange::new(start, start + 16 * BLOCK);
            let zone = free_zone_of(&part, Cpus::new());
            fill(&zone, Mobility::Movable);
            for at in (start + 4096..start + 8192).step_by(2) {
                release(&zone, at, 0);
                hand_over(&zone, at + 1..at + 2, Mobility::Movable);
            }
            zone
        });
        let hooks = FreesElsewhere {
            zones: &zones,
            has_freed: Cell::new(false),
        };
        let node = [Node::new(0, &zones)];
        let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
        let wanted = request(2, Mobility::Movable);
        let taken = Zone::alloc_from(&nodes, 0, &wanted, flags);
        assert!(hooks.has_freed.get());
        assert!(taken.is_ok(), "{flags:?}");
    }
}

#[test]
fn what_must_not_fail_may_go_below_the_min_mark_at_last() {
    let always = GfpFlags {
        retry: Retry::Always,
        ..USUAL
    };
    for (flags, served) in [(USUAL, false), (always, true)] {
        let (zone, _) = z::<V6_12>();
        fill(&zone, Mobility::Movable);
        for at in 0..513 {
            release(&zone, 2 * at, 0);
        }
        assert_eq!(alloc_in(&[zone], &MOVABLE, flags).is_some(), served);
    }
}
