//! Ranges, parts of blocks and bad frees: the contract of all zones, with every front; and what is
//! in a front is in nobody's way.

use brickyard::sync::{Exclusive, Shared};
use brickyard::{AnyZone, FrameRange, FreeError, MigrateType, Mobility, Order, ZonePlan};
use brickyard_designs::classics::front::{Direct, Front};
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{LabPlan, Placed};

use crate::classics::support;

use MigrateType::Unmovable;
use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, UNMOVABLE, ZoneLock, contract, empty, exhausted,
    free, free_of, full, small, sound, take_all,
};

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// Makes a zone with front `F` by a plan, without memory.
fn by<F>(plan: &ZonePlan) -> Parts<NoGrouping, F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    empty(&LabPlan::of(*plan), Cpus::new())
}

mod without_a_front {
    use super::*;

    contract::keeps_the_contract!(by::<Direct>);
}

mod with_exclusive_lists {
    use super::*;

    contract::keeps_the_contract!(by::<Lists<Exclusive>>);
}

mod with_shared_lists {
    use super::*;

    contract::keeps_the_contract!(by::<Lists<Shared>>);
}

mod with_magazines {
    use super::*;

    contract::keeps_the_contract!(by::<Mags>);
}

/// Checks with front `F` that frames in a cache can be removed and reserved.
fn cached_frames_do_not_block_ranges<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone: Parts<NoGrouping, F> = full(&small(128), Cpus::new());
    let fill = || {
        let page = zone.alloc(&MOVABLE).expect("memory enough");
        free(&zone, page, 0);
        assert!(zone.cached_frames() > 0);
    };
    fill();
    assert_eq!(zone.reserve(range(0, 64)), Ok(64));
    assert_eq!(zone.unreserve(range(0, 64)), Ok(64));
    fill();
    assert_eq!(zone.remove(range(0, 128)), Ok(128));
    sound(&zone);
}

#[test]
fn memory_in_caches_is_removed_and_reserved() {
    cached_frames_do_not_block_ranges::<Lists<Exclusive>>();
    cached_frames_do_not_block_ranges::<Lists<Shared>>();
    cached_frames_do_not_block_ranges::<Mags>();
}

#[test]
fn a_front_keeps_the_frames_that_a_bad_free_named() {
    // A second free of a cached frame does not move it: it is handed out once.
    let zone: Parts<NoGrouping, Lists<Exclusive>> = full(&small(64), Cpus::new());
    let page = zone.alloc(&MOVABLE).unwrap();
    free(&zone, page, 0);
    assert_eq!(zone.free(page, Order::ZERO), Err(FreeError::DoubleFree));
    let mut held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 64);
    held.sort();
    held.dedup();
    assert_eq!(held.len(), 64);
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
}

#[test]
fn memory_added_to_a_claimed_block_is_of_its_type() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let page = zone.alloc(&UNMOVABLE).unwrap();
    let block = page.align_down(Order::new(6));
    let part = range(block.number() + 32, block.number() + 64);
    let before = free_of(&zone, Unmovable);
    assert_eq!(zone.remove(part), Ok(32));
    assert_eq!(free_of(&zone, Unmovable), before - 32);
    assert_eq!(zone.add(part), Ok(32));
    assert_eq!(free_of(&zone, Unmovable), before);
    sound(&zone);
}
