//! What a request gets from the free lists: its own, a claim, a theft.

use super::*;

/// Makes a zone of 16 page blocks in use by movable pages, in whose first page block the first
/// frames are movable and in use, so many are free, and the rest is unmovable and in use.
fn mixed(movable: usize, free: usize) -> Zone {
    let zone = full_zone(16);
    hand_over(&zone, movable..BLOCK - free, Mobility::Unmovable);
    for at in BLOCK - free..BLOCK {
        release(&zone, at, 0);
    }
    assert_eq!(zone.free_frames(), free);
    zone
}

/// Makes a zone of 16 page blocks in use, with the last so many frames of the first page block free
/// and the rest of it in use by unmovable pages. The page block is of this type.
fn typed(kind: Mobility, free: usize) -> Zone {
    let zone = mixed(0, free);
    zone.dedicate(frame(0), kind);
    zone
}

// ---- its own lists ----

#[test]
fn the_smallest_block_of_its_own_type_comes_first() {
    let zone = full_zone(16);
    release(&zone, 0, 5);
    release(&zone, 1024, 3);
    release(&zone, 2048, 4);
    let search = search(&zone, 2, Mov, Rights::NONE);
    assert_eq!(way(&search), Some((Way::Own, 1024)));
    assert_eq!(take_direct(&zone, &request(2, Mobility::Movable)), 1024);
    // Its low part; the upper half stays.
    assert_eq!(take_direct(&zone, &request(2, Mobility::Movable)), 1028);
}

// ---- whole page blocks ----

/// Test 20.
#[test]
fn a_whole_page_block_is_claimed_with_all_that_it_covers() {
    let zone = full_zone(16);
    release(&zone, 4 * BLOCK, 10);
    assert_eq!(take_direct(&zone, &UNMOVABLE), 4 * BLOCK);
    let types = [4, 5].map(|block| zone.block_type(frame(block * BLOCK)));
    assert_eq!(types, [Some(Unmov); 2]);
    assert_eq!(
        free_by_order(&zone, Unmov),
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    );
    assert_eq!(free_by_order(&zone, Mov), [0; 11]);
    assert_eq!(zone.boost(), 0);
}

#[test]
fn the_largest_block_is_claimed_whatever_its_type() {
    let zone = full_zone(16);
    zone.dedicate(frame(2 * BLOCK), Mobility::Reclaimable);
    release(&zone, 2 * BLOCK, 9);
    release(&zone, 4 * BLOCK, 10);
    // Reclaimable comes first for unmovable requests, but size before that.
    let found = search(&zone, 0, Unmov, Rights::NONE);
    assert_eq!(way(&found), Some((Way::ClaimWhole, 4 * BLOCK)));
    // Of one size, the type decides.
    release(&zone, 6 * BLOCK, 9);
    take_at(&zone, 4 * BLOCK, 10, Mobility::Movable);
    let found = search(&zone, 0, Unmov, Rights::NONE);
    assert_eq!(way(&found), Some((Way::ClaimWhole, 2 * BLOCK)));
}

#[test]
fn each_type_falls_back_in_its_own_order() {
    let first = |wanted: MigrateType, held: [Mobility; 2]| {
        let zone = full_zone(16);
        for (block, mobility) in held.into_iter().enumerate() {
            zone.dedicate(frame(block * BLOCK), mobility);
            release(&zone, block * BLOCK + 64, 5);
        }
        let table = zone.with_store(|store, blocks| {
            let mode = Mode::Steal;
            blocks.search(store, Order::ZERO, wanted, Rights::NONE, mode)
        });
        way(&table)
    };
    use Mobility::{Movable, Reclaimable, Unmovable};
    // The second of the two, wherever it lies, is what the sheet names first.
    assert_eq!(
        first(Unmov, [Movable, Reclaimable]),
        Some((Way::Steal, BLOCK + 64))
    );
    assert_eq!(
        first(Mov, [Unmovable, Reclaimable]),
        Some((Way::Steal, BLOCK + 64))
    );
    assert_eq!(
        first(Recl, [Movable, Unmovable]),
        Some((Way::Steal, BLOCK + 64))
    );
}

// ---- parts ----

/// Test 17.
#[test]
fn a_page_block_is_claimed_if_half_of_it_is_free_or_alike() {
    // 100 movable, 212 unmovable, 200 free.
    let zone = mixed(100, 200);
    let found = search(&zone, 0, Unmov, Rights::WAKES);
    assert_eq!(
        (found.boosts, found.found.map(|found| found.way)),
        (1, Some(Way::ClaimPart))
    );
    // The largest is found, the smallest taken: 312-319.
    assert_eq!(way(&found), Some((Way::ClaimPart, 384)));
    assert_eq!(take_direct(&zone, &UNMOVABLE), 312);
    assert_eq!(zone.block_type(frame(0)), Some(Unmov));
    assert_eq!(free_of(&zone, Unmov), 199);
    assert_eq!(free_of(&zone, Mov), 0);
    sound(&zone);
}

/// Test 18.
#[test]
fn less_than_half_of_a_page_block_is_not_claimed() {
    // 300 movable, 112 unmovable, 100 free: 412-415, 416-447, 448-511.
    let zone = mixed(300, 100);
    // Every order that the block has is tried: 6, 5 and 2.
    let found = search(&zone, 0, Unmov, Rights::WAKES);
    assert_eq!((found.boosts, way(&found)), (3, Some((Way::Steal, 412))));
    assert_eq!(take_direct(&zone, &UNMOVABLE), 412);
    assert_eq!(zone.block_type(frame(0)), Some(Mov));
    // The rest stays where it was.
    assert_eq!(free_of(&zone, Mov), 99);
}

#[test]
fn exactly_half_is_enough() {
    for (free, expected) in [(128, Way::ClaimPart), (127, Way::Steal)] {
        // 256 movable, 128 and a few unmovable: the alike and the free are `128 + 128`.
        let zone = mixed(if free == 128 { 256 } else { 257 }, free);
        let found = search(&zone, 0, Unmov, Rights::NONE);
        assert_eq!(found.found.map(|found| found.way), Some(expected), "{free}");
    }
}

#[test]
fn for_a_movable_request_movable_pages_are_alike() {
    // 300 movable, 112 unmovable, 100 free, in an unmovable page block.
    let zone = mixed(300, 100);
    zone.dedicate(frame(0), Mobility::Unmovable);
    let found = search(&zone, 0, Mov, Rights::NONE);
    assert_eq!(way(&found), Some((Way::ClaimPart, 448)));
    // 100 movable are too few: 200 in all. Orders 6 and 5 are tried, 2 is not worth it.
    let zone = mixed(100, 100);
    zone.dedicate(frame(0), Mobility::Unmovable);
    let found = search(&zone, 0, Mov, Rights::NONE);
    assert_eq!((found.boosts, way(&found)), (2, Some((Way::Steal, 412))));
}

#[test]
fn what_is_in_a_page_block_that_is_not_movable_is_not_alike() {
    // Nothing movable at all: for a reclaimable request 255 free frames decide alone.
    let zone = typed(Mobility::Unmovable, 255);
    let found = search(&zone, 0, Recl, Rights::NONE);
    assert_eq!(found.found.map(|found| found.way), Some(Way::Steal));
    let zone = typed(Mobility::Unmovable, 256);
    let found = search(&zone, 0, Recl, Rights::NONE);
    assert_eq!(found.found.map(|found| found.way), Some(Way::ClaimPart));
}

#[test]
fn frames_in_page_sets_are_neither_free_nor_movable() {
    // 100 free, 156 movable for a movable request: just enough.
    for cached in [false, true] {
        let zone = mixed(156, 100);
        zone.dedicate(frame(0), Mobility::Unmovable);
        if cached {
            hand_over(&zone, 0..1, Mobility::Movable);
            assert!(zone.stock(frame(0), Order::ZERO));
        }
        let found = search(&zone, 0, Mov, Rights::NONE)
            .found
            .map(|found| found.way);
        let expected = if cached { Way::Steal } else { Way::ClaimPart };
        assert_eq!(found, Some(expected));
    }
}

/// Test 19.
#[test]
fn a_movable_request_does_not_claim_for_little() {
    let zone = typed(Mobility::Unmovable, 0);
    release(&zone, 8, 3);
    release(&zone, 64, 2);
    let found = search(&zone, 0, Mov, Rights::NONE);
    assert_eq!((found.boosts, way(&found)), (0, Some((Way::Steal, 64))));
    // Of an order of half a page block's, rounded down, it tries.
    release(&zone, 128, 4);
    let found = search(&zone, 0, Mov, Rights::NONE);
    assert_eq!((found.boosts, way(&found)), (1, Some((Way::Steal, 64))));
}

#[test]
fn a_claim_looks_at_the_first_type_of_each_order_only() {
    // An unmovable request finds a reclaimable block of order 5 in a full page block, and does not
    // look at the movable one of order 5, whose page block is half free. Of order 4 it would.
    let zone = full_zone(16);
    zone.dedicate(frame(0), Mobility::Reclaimable);
    release(&zone, 64, 5);
    for part in (BLOCK..2 * BLOCK).step_by(64) {
        release(&zone, part, 5);
    }
    let found = search(&zone, 0, Unmov, Rights::NONE);
    assert_eq!((found.boosts, way(&found)), (1, Some((Way::Steal, 64))));
    release(&zone, BLOCK + 32, 4);
    let found = search(&zone, 0, Unmov, Rights::NONE);
    assert_eq!(
        (found.boosts, way(&found)),
        (2, Some((Way::ClaimPart, BLOCK + 32)))
    );
}

#[test]
fn claimed_blocks_go_to_the_tails_in_order_of_address() {
    let zone = full_zone(16);
    // An unmovable page block with one free frame.
    zone.dedicate(frame(8 * BLOCK), Mobility::Unmovable);
    release(&zone, 8 * BLOCK, 0);
    // And a movable one with every second frame free, and one more.
    for at in (0..BLOCK).step_by(2) {
        release(&zone, at, 0);
    }
    release(&zone, 5, 0);
    assert_eq!(free_by_order(&zone, Mov)[..2], [255, 1]);
    let taken = take_direct(&zone, &request(1, Mobility::Unmovable));
    assert_eq!((taken, zone.block_type(frame(0))), (4, Some(Unmov)));
    let taken = [(); 5].map(|()| take_direct(&zone, &UNMOVABLE));
    assert_eq!(taken, [8 * BLOCK, 0, 2, 6, 8]);
}

#[test]
fn a_page_block_that_is_partly_outside_is_not_claimed() {
    let mut partly = plan(16);
    partly.zone.span = FrameRange::new(100, 16 * BLOCK);
    let zone: Zone = free_zone_of(&partly, Cpus::new());
    fill(&zone, Mobility::Movable);
    release(&zone, 128, 7);
    release(&zone, 256, 8);
    let found = search(&zone, 0, Unmov, Rights::WAKES);
    assert_eq!((found.boosts, way(&found)), (2, Some((Way::Steal, 128))));
}

#[test]
fn a_small_zone_is_not_grouped() {
    let zone = free_zone(3);
    assert_eq!(zone.block_type(frame(0)), None);
    let found = search(&zone, 0, Mov, Rights::NONE);
    assert_eq!(found.found.map(|found| found.way), Some(Way::Own));
    assert!(free_zone(4).block_type(frame(0)).is_some());
}

// ---- keeping apart ----

#[test]
fn a_request_that_keeps_apart_claims_whole_page_blocks_only() {
    let zone = typed(Mobility::Reclaimable, 300);
    let found = search(&zone, 0, Unmov, Rights::KEEPS_APART);
    assert_eq!((found.boosts, way(&found)), (0, None));
    release(&zone, 2 * BLOCK, 9);
    let found = search(&zone, 0, Unmov, Rights::KEEPS_APART);
    assert_eq!(way(&found), Some((Way::ClaimWhole, 2 * BLOCK)));
    // For an order above that, a claim is one of that order at least.
    let found = search(&zone, 10, Unmov, Rights::KEEPS_APART);
    assert_eq!(way(&found), None);
}

// ---- theft ----

#[test]
fn a_theft_takes_the_smallest_and_leaves_the_rest() {
    let zone = typed(Mobility::Unmovable, 0);
    release(&zone, 8, 3);
    release(&zone, 64, 2);
    zone.alloc_uncached(&MOVABLE).expect("a frame");
    assert_eq!(zone.block_type(frame(0)), Some(Unmov));
    assert_eq!(free_by_order(&zone, Unmov)[..4], [1, 1, 0, 1]);
    assert_eq!(zone.boost(), 0);
}

#[test]
fn nothing_is_stolen_from_what_is_set_aside_or_isolated() {
    let zone = full_zone(16);
    release(&zone, 64, 5);
    assert_eq!(zone.isolate(FrameRange::new(0, BLOCK)), Ok(()));
    for wanted in [Mov, Unmov, Recl] {
        assert_eq!(way(&search(&zone, 0, wanted, Rights::OOM)), None);
    }
}

// ---- reports of free page blocks ----

#[test]
fn free_page_blocks_that_are_reported_become_movable() {
    let blocks = 128;
    let zone = full_zone(blocks);
    zone.dedicate(frame(0), Mobility::Unmovable);
    zone.dedicate(frame(2 * BLOCK), Mobility::Reclaimable);
    zone.dedicate(frame(3 * BLOCK), Mobility::Reclaimable);
    zone.dedicate(frame(4 * BLOCK), Mobility::Unmovable);
    release(&zone, 0, 9);
    release(&zone, 2 * BLOCK, 10);
    release(&zone, 4 * BLOCK, 8);
    // Too little is free.
    assert_eq!(zone.report_free(), 0);
    assert_eq!(free_by_order(&zone, Unmov)[9], 1);
    for block in (64..blocks).step_by(2) {
        release(&zone, block * BLOCK, 10);
    }
    // The one of order 10 is of two page blocks.
    assert_eq!(zone.report_free(), 3 * BLOCK);
    let types = [0, 2, 3].map(|block| zone.block_type(frame(block * BLOCK)));
    assert_eq!(types, [Some(Mov); 3]);
    assert_eq!(
        (
            free_by_order(&zone, Unmov)[9],
            free_by_order(&zone, Recl)[10]
        ),
        (0, 0)
    );
    // What is smaller than a page block is not reported.
    assert_eq!(free_by_order(&zone, Unmov)[8], 1);
    // The next unmovable request claims one again.
    let found = search(&zone, 9, Unmov, Rights::NONE);
    assert_eq!(found.found.map(|found| found.way), Some(Way::ClaimWhole));
    assert_eq!(zone.report_free(), 0);
    assert!(zone.check().is_ok());
}
