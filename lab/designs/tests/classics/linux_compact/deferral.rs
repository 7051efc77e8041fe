//! When compaction is not tried, what it remembers, and when it forgets that.

use super::*;

/// Makes a zone of which every second page stays, so that no block above order 0 can become free.
fn hopeless() -> Linux {
    let zone = zone_of(8);
    put(&zone, (0..8).flat_map(halves), &UNMOVABLE);
    zone
}

fn why(zone: &Linux, order: u8, priority: Priority) -> Why {
    compact(&Owner::of(zone), order, Mobility::Movable, priority).why
}

/// Returns how many tries are deferred before one is not.
fn deferred(zone: &Linux) -> usize {
    let tries = (0..1000).take_while(|_| why(zone, 5, Priority::SyncLight) == Why::Deferred);
    tries.count()
}

#[test]
fn after_n_failures_in_a_row_two_to_the_n_less_one_tries_are_deferred() {
    // Number 25: 1, 2 and 7 failures defer 1, 3 and 63 tries.
    let zone = hopeless();
    let pauses: Vec<usize> = (0..8).map(|_| deferred(&zone)).collect();
    assert_eq!(pauses, [0, 1, 3, 7, 15, 31, 63, 63]);
}

#[test]
fn failures_without_waiting_defer_nothing() {
    let zone = hopeless();
    for _ in 0..5 {
        assert_eq!(why(&zone, 5, Priority::Async), Why::Complete);
    }
    assert_eq!(why(&zone, 5, Priority::SyncLight), Why::Complete);
    // But they are deferred like others.
    assert_eq!(why(&zone, 5, Priority::Async), Why::Deferred);
}

#[test]
fn only_orders_that_failed_and_larger_ones_are_deferred_and_the_most_thorough_never() {
    let zone = hopeless();
    assert_eq!(why(&zone, 4, Priority::SyncFull), Why::Complete);
    assert_eq!(why(&zone, 4, Priority::SyncFull), Why::Complete);
    assert_eq!(why(&zone, 3, Priority::Async), Why::Complete);
    assert_eq!(why(&zone, 5, Priority::SyncLight), Why::Deferred);
}

#[test]
fn a_request_that_got_its_block_ends_the_deferral() {
    let zones = [hopeless()];
    for _ in 0..3 {
        let _ = deferred(&zones[0]);
    }
    assert_eq!(why(&zones[0], 5, Priority::SyncLight), Why::Deferred);
    // Now half of the pages can be moved, as the most thorough finds out.
    for at in halves(0).chain(halves(1)) {
        zones[0].free_uncached(frame(at), Order::ZERO).unwrap();
    }
    put(&zones[0], halves(0).chain(halves(1)), &MOVABLE);
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let small = request(3, Mobility::Movable);
    let block = Linux::alloc_from(&nodes, 0, &small, GfpFlags::of(&small));
    assert!(block.is_ok(), "{block:?}");
    // It was a smaller order that succeeded: the larger one is considered anew.
    assert_eq!(deferred(&zones[0]), 0);
}

#[test]
fn too_little_free_memory_is_not_compacted() {
    // Above order 3 the low mark counts, up to it the min mark; and twice the block.
    for (order, floor) in [(3, 20 + 16), (4, 50 + 32)] {
        for more in [0, 1] {
            let zone = zone_of(8);
            let marks = Marks {
                min: 20,
                low: 50,
                high: 60,
            };
            zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
            let free = floor + more;
            put(&zone, (0..512).filter(|at| at % 2 == 0), &UNMOVABLE);
            put(
                &zone,
                (0..512).filter(|at| at % 2 == 1).skip(free),
                &UNMOVABLE,
            );
            let expected = match more {
                0 => Why::TooLittleFree,
                _ => Why::Complete,
            };
            assert_eq!(why(&zone, order, Priority::SyncLight), expected);
        }
    }
}

#[test]
fn what_other_requests_are_kept_from_counts_as_lacking() {
    let zone = hopeless();
    let mut reserve = [0; ZoneKind::COUNT];
    reserve[ZoneKind::Movable as usize] = 256 - 64;
    zone.watermarks().set(Marks::default(), reserve);
    let owner = Owner::of(&zone);
    let mut asked = request(5, Mobility::Movable);
    asked.highest = ZoneKind::Movable;
    let compacted = zone.compact_with(&asked, Priority::SyncLight, &owner);
    assert_eq!(compacted.why, Why::TooLittleFree);
}

#[test]
fn lack_of_memory_is_not_fragmentation_above_order_3() {
    // In blocks of 32 and one of 1: index 1000 - (1000 + 129 * 1000 / 64) / 5 = 397; with 32 single
    // frames more it is 1000 - (1000 + 161 * 1000 / 64) / 37 = 905.
    for (singles, expected) in [(1, Why::NotFragmented), (33, Why::Complete)] {
        let zone = zone_of(8);
        let is_free = |at: usize| match at {
            0..256 => at % 64 < 32,
            _ => at.is_multiple_of(2) && at < 256 + 2 * singles,
        };
        put(&zone, (0..512).filter(|&at| !is_free(at)), &UNMOVABLE);
        assert_eq!(why(&zone, 6, Priority::SyncLight), expected);
    }
}

#[test]
fn a_page_block_that_was_scanned_is_skipped_until_background_reclaim_ends() {
    let zone = hopeless();
    // The lowest page block has movable pages that are pinned, and so has the second.
    for at in [2, BLOCK + 2] {
        zone.free_uncached(frame(at), Order::ZERO).unwrap();
        put(&zone, [at], &MOVABLE);
    }
    let owner = Owner::pinning(&zone, [2, BLOCK + 2]);
    let run = |priority| {
        compact(&owner, 5, Mobility::Unmovable, priority);
        owner.take_asked()
    };
    assert_eq!(run(Priority::SyncLight), [2, BLOCK + 2]);
    assert!(zone.skips(frame(0)) && zone.skips(frame(BLOCK)));
    // Deferred, then skipped.
    assert_eq!(run(Priority::SyncLight), []);
    assert_eq!(run(Priority::SyncLight), []);
    // The most thorough skips nothing.
    assert_eq!(run(Priority::SyncFull), [2, BLOCK + 2]);
    // The end of background reclaim clears the bits. What is done in the background then is
    // deferred.
    assert_eq!(behind(&owner, 5), 0);
    assert_eq!(owner.take_asked(), []);
    assert!(!zone.skips(frame(0)) && !zone.skips(frame(BLOCK)));
}

#[test]
fn the_end_of_background_reclaim_clears_nothing_unless_a_direct_compaction_has_met() {
    let zone = hopeless();
    let owner = Owner::of(&zone);
    // In the background: it fails, and skips the page blocks from then on.
    behind(&owner, 5);
    assert!(zone.skips(frame(0)));
    // So there is nothing to clear.
    behind(&owner, 5);
    assert!(zone.skips(frame(0)));
    assert_eq!(deferred(&zone), 0);
    behind(&owner, 3);
    assert!(!zone.skips(frame(448)));
}

#[test]
fn after_the_longest_pause_nothing_is_skipped() {
    let zone = hopeless();
    zone.free_uncached(frame(2), Order::ZERO).unwrap();
    put(&zone, [2], &MOVABLE);
    let owner = Owner::pinning(&zone, [2]);
    let mut asked = Vec::new();
    for failure in 0..9 {
        while compact(&owner, 5, Mobility::Unmovable, Priority::SyncLight).why == Why::Deferred {}
        asked.push((failure, owner.take_asked().len()));
    }
    // The first, and those after pauses of 63 tries: the 7th and later.
    let found: Vec<i32> = asked
        .iter()
        .filter(|one| one.1 > 0)
        .map(|one| one.0)
        .collect();
    assert_eq!(found, [0, 6, 7, 8]);
}

#[test]
fn the_background_task_drains_page_sets_when_it_fails_and_is_deferred() {
    let zone = hopeless();
    // A page in the page set of CPU 1.
    zone.platform().switch_to(1);
    zone.free(frame(2), Order::ZERO).unwrap();
    zone.platform().switch_to(0);
    assert_eq!(zone.cached_frames(), 1);
    let owner = Owner::of(&zone);
    behind(&owner, 5);
    assert_eq!(zone.cached_frames(), 0);
    assert_eq!(why(&zone, 5, Priority::SyncLight), Why::Deferred);
    owner.has_all(&[]);
}

#[test]
fn the_background_task_moves_pages_until_a_block_is_free() {
    let zone = zone_of(8);
    put(&zone, (0..8).flat_map(halves), &MOVABLE);
    let owner = Owner::of(&zone);
    let moved = behind(&owner, 6);
    assert_eq!((moved, owner.moves().len()), (32, 32));
    assert_eq!(zone.free_counts().by_order[6], 1);
    owner.has_all(&[]);
    // Nothing more to do.
    assert_eq!(behind(&owner, 6), 0);
    // Nothing for single frames.
    assert_eq!(behind(&owner, 0), 0);
}

#[test]
fn after_a_boost_the_background_task_frees_a_page_block() {
    let zone = zone_of(8);
    put(&zone, (0..8).flat_map(halves), &MOVABLE);
    let owner = Owner::of(&zone);
    // An unmovable page among movable ones: the marks rise.
    let page = zone.alloc_above(&UNMOVABLE, Mark::Low).unwrap();
    assert_eq!(zone.boost(), BLOCK);
    zone.free_uncached(page, Order::ZERO).unwrap();
    zone.set_reclaiming(true);
    zone.set_reclaiming(false);
    zone.drain();
    assert_eq!(zone.boost(), 0);
    assert!(behind(&owner, 0) > 0);
    assert_eq!(zone.free_counts().by_order[6], 1);
    owner.has_all(&[]);
}
