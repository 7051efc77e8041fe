//! Where a free block goes: which end of which list, and what merges.

use super::*;

/// Makes a zone of 16 page blocks in use by single frames; the frame at 4096 is free, alone on its
/// list.
fn with_a_free_frame() -> Zone {
    let zone = full_zone(16);
    release(&zone, 4096, 0);
    zone
}

/// Frees a single frame; returns true if it is at the head of its list.
fn goes_to_the_head(zone: &Zone, at: usize) -> bool {
    release(zone, at, 0);
    assert_eq!(usage(zone, frame(at)), Use::Free);
    take_direct(zone, &MOVABLE) == at
}

/// Test 23.
#[test]
fn a_block_that_will_soon_merge_goes_to_the_tail() {
    // Its parent is 2-3, whose buddy is 0-1.
    assert!(goes_to_the_head(&with_a_free_frame(), 2));
    let zone = with_a_free_frame();
    release(&zone, 0, 1);
    assert!(!goes_to_the_head(&zone, 2));
}

#[test]
fn only_a_free_buddy_of_exactly_the_next_order_counts() {
    // 0 is free alone.
    let zone = with_a_free_frame();
    release(&zone, 0, 0);
    assert!(goes_to_the_head(&zone, 2));
    // 4-5 is the buddy of 6-7, not of 2-3; and as a part of 4-7 it is no block of its own.
    let zone = with_a_free_frame();
    release(&zone, 4, 2);
    assert!(goes_to_the_head(&zone, 2));
    // The other way round: the parent is 0-1.
    let zone = with_a_free_frame();
    release(&zone, 2, 1);
    assert!(!goes_to_the_head(&zone, 1));
}

#[test]
fn the_buddy_of_the_merged_block_counts() {
    let zone = full_zone(16);
    release(&zone, 4096, 1);
    release(&zone, 4, 2);
    release(&zone, 1, 0);
    // 0 and 1 merge; the parent is 0-3, whose buddy is 4-7.
    release(&zone, 0, 0);
    assert_eq!(take_direct(&zone, &request(1, Mobility::Movable)), 4096);
}

#[test]
fn from_the_second_highest_order_on_blocks_go_to_the_head() {
    let zone = full_zone(16);
    // Order 9: what it would merge to is of the highest order, even if that had a free buddy.
    release(&zone, 8 * BLOCK, 9);
    release(&zone, 2 * BLOCK, 10);
    release(&zone, 0, 9);
    assert_eq!(take_direct(&zone, &request(9, Mobility::Movable)), 0);
    // Order 8, and the buddy of its page block is free.
    let zone = full_zone(16);
    release(&zone, 4 * BLOCK, 8);
    release(&zone, BLOCK, 9);
    release(&zone, 0, 8);
    assert_eq!(
        take_direct(&zone, &request(8, Mobility::Movable)),
        4 * BLOCK
    );
}

#[test]
fn memory_that_is_added_goes_to_the_tail() {
    let zone: Zone = made(&plan(16), Cpus::new());
    let whole = zone.span();
    assert_eq!(zone.add(FrameRange::new(0, 8 * BLOCK)), Ok(8 * BLOCK));
    assert_eq!(
        zone.add(FrameRange::new(8 * BLOCK, whole.len())),
        Ok(8 * BLOCK)
    );
    let most = request(10, Mobility::Movable);
    let taken = [(); 8].map(|()| take_direct(&zone, &most) / BLOCK);
    assert_eq!(taken, [0, 2, 4, 6, 8, 10, 12, 14]);
}

#[test]
fn what_was_isolated_goes_back_to_the_tail() {
    let zone = free_zone(16);
    let block = FrameRange::new(0, 2 * BLOCK);
    assert_eq!(zone.isolate(block), Ok(()));
    zone.unisolate(block);
    let most = request(10, Mobility::Movable);
    let taken = [(); 8].map(|()| take_direct(&zone, &most) / BLOCK);
    assert_eq!(taken, [2, 4, 6, 8, 10, 12, 14, 0]);
}

// ---- blocks larger than a page block ----

#[test]
fn each_page_block_of_the_highest_order_goes_by_its_own_type() {
    let zone = free_zone_with_aside();
    // Two page blocks in use as one: the first movable, the second set aside.
    take_at(&zone, 2 * BLOCK, 10, Mobility::Movable);
    release(&zone, 2 * BLOCK, 10);
    assert_eq!(free_by_order(&zone, High)[9], 1);
    assert_eq!(list_of(&zone, frame(2 * BLOCK)), Mov);
    assert_eq!(list_of(&zone, frame(3 * BLOCK)), High);
    sound(&zone);
}

/// Makes a zone of 512 page blocks, all free, of which the one at 3 is set aside.
fn free_zone_with_aside() -> Zone {
    let zone = free_zone(512);
    fill(&zone, Mobility::Movable);
    release(&zone, 3 * BLOCK, 1);
    let zones = [zone];
    set_marks(
        &zones[0],
        Marks {
            min: 0,
            low: 300_000,
            high: 300_000,
        },
    );
    let at = alloc(&zones, &request(1, Mobility::Unmovable).atomic());
    assert_eq!(at, Some(3 * BLOCK));
    let [zone] = zones;
    assert_eq!(zone.block_type(frame(3 * BLOCK)), Some(High));
    set_marks(
        &zone,
        Marks {
            min: 0,
            low: 0,
            high: 0,
        },
    );
    release(&zone, 3 * BLOCK, 1);
    for at in (0..512).filter(|&at| at != 3) {
        release(&zone, at * BLOCK, 9);
    }
    release(&zone, 3 * BLOCK + 2, 1);
    for order in 2..9 {
        release(&zone, 3 * BLOCK + (1 << order), order);
    }
    sound(&zone);
    zone
}

#[test]
fn what_is_set_aside_does_not_merge_with_other_page_blocks() {
    let zone = free_zone_with_aside();
    assert_eq!(free_by_order(&zone, High)[9], 1);
    assert_eq!(free_by_order(&zone, Mov)[9..], [1, 255]);
}

#[test]
fn page_blocks_that_merge_take_the_type_of_the_one_freed_last() {
    for (last, expected) in [(0, Unmov), (1, Recl)] {
        let zone = full_zone(16);
        zone.dedicate(frame(0), Mobility::Unmovable);
        zone.dedicate(frame(BLOCK), Mobility::Reclaimable);
        release(&zone, (1 - last) * BLOCK, 9);
        release(&zone, last * BLOCK, 9);
        assert_eq!(free_by_order(&zone, expected)[10], 1);
        let types = [0, BLOCK].map(|at| zone.block_type(frame(at)));
        assert_eq!(types, [Some(expected); 2]);
        sound(&zone);
    }
}

#[test]
fn below_a_page_block_merging_changes_no_type() {
    let zone = full_zone(16);
    zone.dedicate(frame(0), Mobility::Unmovable);
    release(&zone, 0, 8);
    release(&zone, 256, 8);
    assert_eq!(zone.block_type(frame(0)), Some(Unmov));
    assert_eq!(zone.block_type(frame(BLOCK)), Some(Mov));
    assert_eq!(free_by_order(&zone, Unmov)[9], 1);
}
