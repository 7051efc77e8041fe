//! When a compaction ends, and what the task catches.

use super::*;

/// Does the work of another CPU at the first move, which fails.
struct Meanwhile<'z, F> {
    zone: &'z Linux,
    work: F,
    calls: RefCell<usize>,
}

impl<F: Fn(&Linux)> Migrate for Meanwhile<'_, F> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        assert_no_lock_held();
        *self.calls.borrow_mut() += 1;
        if *self.calls.borrow() == 1 {
            self.zone.platform().switch_to(1);
            (self.work)(self.zone);
            self.zone.platform().switch_to(0);
        }
        Migration::Later
    }
}

/// Makes a zone of 8 page blocks of which every second page is movable.
fn scattered() -> Linux {
    let zone = zone_of(8);
    put(&zone, (0..8).flat_map(halves), &MOVABLE);
    zone
}

#[test]
fn nothing_is_moved_if_a_block_is_free() {
    let zone = scattered();
    for at in (32..64).step_by(2) {
        zone.free_uncached(frame(at), Order::ZERO).unwrap();
    }
    let owner = Owner::of(&zone);
    for priority in [Priority::Async, Priority::SyncLight, Priority::SyncFull] {
        let compacted = compact(&owner, 5, Mobility::Unmovable, priority);
        assert_eq!((compacted.why, compacted.moved), (Why::Succeeded, 0));
    }
}

#[test]
fn the_block_is_caught_by_the_last_free_that_completes_it() {
    let zone = scattered();
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 4, Mobility::Movable, Priority::SyncLight);
    assert_eq!(compacted.why, Why::Succeeded);
    // The round of 32 pages goes on; of the four blocks that become free, the first is caught.
    assert_eq!(compacted.caught, Some(frame(48)));
    let caught = state(&zone, frame(48));
    let expected = (Use::Allocated, Order::new(4), MigrateType::Movable);
    assert_eq!((caught.usage, caught.order, caught.kind), expected);
    assert_eq!(usage(&zone, frame(0)), Use::Free);
    owner.has_all(&[frame(48)]);
}

#[test]
fn the_highest_order_is_never_caught_but_free() {
    let zone = zone_of(16);
    put(&zone, (0..16).flat_map(halves), &MOVABLE);
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 7, Mobility::Movable, Priority::SyncLight);
    assert_eq!((compacted.why, compacted.caught), (Why::Succeeded, None));
    assert_eq!(zone.free_counts().by_order[7], 1);
    owner.has_all(&[]);
}

#[test]
fn what_is_begun_is_finished_to_the_end_of_the_page_block() {
    // An unmovable request catches nothing small in movable page blocks, so it ends at the start of
    // the next page block: with all of the first one free, though a part was enough. That takes two
    // rounds.
    let zone = zone_of(8);
    put(&zone, (0..BLOCK).filter(|at| at % 4 != 3), &MOVABLE);
    put(&zone, (1..8).flat_map(halves), &UNMOVABLE);
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 3, Mobility::Unmovable, Priority::SyncLight);
    assert_eq!((compacted.why, compacted.caught), (Why::Succeeded, None));
    assert_eq!(compacted.moved, 48);
    assert_eq!(zone.free_counts().by_order[6], 1);
}

#[test]
fn what_lies_in_the_page_set_of_this_cpu_completes_a_block_too() {
    let zone = scattered();
    put(&zone, [1], &MOVABLE);
    zone.free(frame(1), Order::ZERO).unwrap();
    assert_eq!(usage(&zone, frame(1)), Use::Cached);
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    // The page set is emptied when the page block is behind the scanner: that catches nothing.
    assert_eq!((compacted.why, compacted.caught), (Why::Succeeded, None));
    assert_eq!((compacted.moved, zone.cached_frames()), (32, 0));
    assert_eq!(zone.free_counts().by_order[6], 1);
}

#[test]
fn a_block_of_another_type_counts_only_if_a_request_would_claim_it() {
    // A free block in an unmovable page block helps a movable request from half the order of a page
    // block on: 3. For others it counts always.
    for (order, mobility, expected) in [
        (2, Mobility::Movable, Why::Complete),
        (3, Mobility::Movable, Why::Succeeded),
        (2, Mobility::Reclaimable, Why::Succeeded),
    ] {
        let zone = zone_of(8);
        let is_free = |at: usize| at % 2 == 1 || (40..40 + (1 << order)).contains(&at);
        put(&zone, (0..512).filter(|&at| !is_free(at)), &UNMOVABLE);
        for block in 0..8 {
            dedicate(&zone, block, Mobility::Unmovable);
        }
        // With a limit, so that the test of the marks beforehand does not count.
        let asked = request(order, mobility).below(frame(500));
        let compacted = zone.compact_with(&asked, Priority::SyncLight, &Owner::of(&zone));
        assert_eq!((compacted.why, compacted.caught), (expected, None));
    }
}

#[test]
fn frees_of_others_are_not_caught() {
    let zone = scattered();
    for at in (128..144).step_by(2) {
        zone.free_uncached(frame(at), Order::ZERO).unwrap();
    }
    put_block(&zone, 128, 4, Mobility::Movable);
    let hook = Meanwhile {
        zone: &zone,
        work: |zone: &Linux| zone.free_uncached(frame(128), Order::new(4)).unwrap(),
        calls: RefCell::new(0),
    };
    let asked = request(4, Mobility::Movable);
    let compacted = zone.compact_with(&asked, Priority::SyncLight, &hook);
    assert_eq!(compacted.caught, None);
    // It is free, which ends the compaction too.
    assert_eq!(compacted.why, Why::Succeeded);
    assert_eq!(usage(&zone, frame(128)), Use::Free);
    assert!(*hook.calls.borrow() > 1, "until the end of the page block");
    sound(&zone);
}

#[test]
fn small_parts_of_movable_page_blocks_are_caught_for_movable_requests_only() {
    for (mobility, order, caught) in [
        (Mobility::Movable, 5, true),
        (Mobility::Unmovable, 5, false),
        (Mobility::Reclaimable, 5, false),
        (Mobility::Unmovable, 6, true),
    ] {
        let zone = scattered();
        let owner = Owner::of(&zone);
        let compacted = compact(&owner, order, mobility, Priority::SyncLight);
        assert_eq!(compacted.caught.is_some(), caught, "{mobility:?} {order}");
        // The page block keeps its type.
        assert_eq!(zone.block_type(frame(0)), Some(MigrateType::Movable));
        if caught {
            assert_eq!(
                state(&zone, compacted.caught.unwrap()).kind,
                mobility.into()
            );
        }
        let foreign = usize::from(caught && mobility != Mobility::Movable);
        assert_eq!(zone.meter().mixing, foreign as _);
    }
}

#[test]
fn nothing_in_an_isolated_range_is_caught() {
    let zone = scattered();
    zone.isolate(FrameRange::new(0, 64)).unwrap();
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 5, Mobility::Movable, Priority::SyncLight);
    assert!(
        compacted.caught.is_some_and(|at| at >= frame(64)),
        "{compacted:?}"
    );
    zone.unisolate(FrameRange::new(0, 64));
    owner.has_all(compacted.caught.as_slice());
}

#[test]
fn a_block_above_the_limit_does_not_count() {
    // Below the limit nothing moves.
    let zone = zone_of(8);
    put(&zone, halves(0), &UNMOVABLE);
    put(&zone, (1..8).flat_map(halves), &MOVABLE);
    let owner = Owner::of(&zone);
    let asked = request(5, Mobility::Movable).below(frame(64));
    let compacted = zone.compact_with(&asked, Priority::SyncLight, &owner);
    assert_eq!((compacted.why, compacted.caught), (Why::Complete, None));
    assert!(compacted.moved > 0);
    owner.has_all(&[]);
    // Above the limit one is free.
    let zone = scattered();
    for at in (480..512).step_by(2) {
        zone.free_uncached(frame(at), Order::ZERO).unwrap();
    }
    let owner = Owner::of(&zone);
    let compacted = zone.compact_with(&asked, Priority::SyncLight, &owner);
    let caught = compacted.caught.expect("below the limit");
    assert!(caught.number() + 32 <= 64);
    owner.has_all(&[caught]);
}

#[test]
fn pages_that_cannot_be_moved_now_stay_where_they_are() {
    let zone = scattered();
    let owner = Owner::answering(&zone, [(10, Migration::Later), (20, Migration::Never)]);
    let compacted = compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    // The first page block does not become free; the next does.
    assert_eq!(compacted.caught, Some(frame(64)));
    assert_eq!(compacted.stuck, 2);
    owner.has_all(&[frame(64)]);
}

#[test]
fn a_request_goes_through_all_priorities() {
    // Only the most thorough helps: all places are in unmovable page blocks.
    let zones = [zone_of(8)];
    let zone = &zones[0];
    put(zone, halves(0), &MOVABLE);
    put(zone, (0..64).filter(|at| at % 2 == 1).skip(4), &MOVABLE);
    put(zone, (1..8).flat_map(halves), &UNMOVABLE);
    for block in 1..8 {
        dedicate(zone, block, Mobility::Unmovable);
    }
    let owner = Owner::of(zone);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let alloc = |order, retry| {
        let asked = request(order, Mobility::Movable);
        let flags = GfpFlags {
            retry,
            ..GfpFlags::of(&asked)
        };
        Linux::alloc_from(&nodes, 0, &asked, flags)
    };
    // Above order 3 it is not used, nor for one that does not retry.
    assert!(alloc(4, Retry::UntilUseless).is_err());
    assert!(alloc(2, Retry::Never).is_err());
    assert_eq!(owner.moves().len(), 0);
    let block = alloc(2, Retry::Usual).expect("by the most thorough");
    assert!(!owner.moves().is_empty());
    owner.has_all(&[block]);
}

#[test]
fn generic_nodes_use_it_too() {
    let zones = [scattered()];
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let block = nodes.alloc(0, &request(6, Mobility::Unmovable)).unwrap();
    assert_eq!(owner.moves().len(), 32);
    owner.has_all(&[]);
    assert_eq!(state(&zones[0], block).kind, MigrateType::Unmovable);
}
