//! Several blocks in one refill, and the boost that tries to claim leave behind.

use super::*;

// ---- within a bulk ----

/// After a theft, what merges or is claimed no longer counts.
#[test]
fn after_a_theft_the_rest_of_a_refill_only_steals() {
    // Refills of four frames.
    let zone = full_zone(48);
    assert_eq!(Sizes::of(zone.managed_frames(), 0, 4).batch, 7);
    // An unmovable page block with 4 single frames, and movable blocks to claim.
    zone.dedicate(frame(0), Mobility::Unmovable);
    for at in [0, 2, 4, 6] {
        release(&zone, at, 0);
    }
    // Movable: none of its own. It does not claim for order 0, steals, and then goes on stealing
    // although nothing else has changed.
    let taken = take(&zone, &MOVABLE);
    assert_eq!(zone.cached_frames(), 3);
    assert_eq!(taken, 6);
    assert_eq!(zone.boost(), 0);

    // Unmovable, three frames in the page block of another type: each try to claim boosts once, and
    // after the first theft there is none.
    let zone = full_zone(48);
    set_marks(&zone, MARKS);
    refuse_one(&zone);
    for block in 0..5 {
        release(&zone, block * BLOCK, 0);
    }
    take(&zone, &UNMOVABLE);
    assert_eq!(zone.cached_frames(), 4);
    assert_eq!(zone.boost(), BLOCK);
    assert_eq!(blocks_of(&zone, Unmov), 0);
}

#[test]
fn a_refill_begins_with_its_own_lists_again() {
    let zone = full_zone(48);
    release(&zone, 0, 0);
    take(&zone, &UNMOVABLE);
    // A whole page block is free now: a refill that only stole would leave its type.
    release(&zone, 2 * BLOCK, 9);
    take(&zone, &UNMOVABLE);
    assert_eq!(zone.block_type(frame(2 * BLOCK)), Some(Unmov));
}

#[test]
fn after_a_claim_a_refill_goes_on_with_its_own_lists() {
    let zone = full_zone(48);
    release(&zone, 2 * BLOCK, 9);
    release(&zone, 0, 0);
    // All from the claimed page block, none stolen.
    let taken: Vec<usize> = (0..7).map(|_| take(&zone, &UNMOVABLE)).collect();
    assert_eq!(taken, (2 * BLOCK..2 * BLOCK + 7).collect::<Vec<_>>());
}

// ---- the boost ----

/// Test 21.
#[test]
fn each_try_to_claim_raises_the_boost_up_to_a_cap() {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    refuse_one(&zone);
    for (block, order) in [(0, 5), (1, 3), (2, 0)] {
        release(&zone, block * BLOCK, order);
    }
    let found = search(&zone, 0, Unmov, Rights::WAKES);
    assert_eq!(
        (found.boosts, way(&found)),
        (3, Some((Way::Steal, 2 * BLOCK)))
    );
    let boost = || {
        take_direct(&zone, &UNMOVABLE);
        zone.boost()
    };
    assert_eq!(boost(), 1536);
    // Two are left, and then one.
    assert_eq!(boost(), 2322);
    assert_eq!(zone.high_mark(), 1548 + 2322);
}

#[test]
fn the_fourth_and_the_fifth_boost() {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    refuse_one(&zone);
    // Five times a page block of which one frame is free: one try each.
    let boosts = [0, 1, 2, 3, 4, 5].map(|block| {
        release(&zone, block * BLOCK, 0);
        take_direct(&zone, &UNMOVABLE);
        zone.boost()
    });
    assert_eq!(boosts, [512, 1024, 1536, 2048, 2322, 2322]);
}

#[test]
fn a_boost_is_a_page_block_at_least() {
    let zone = full_zone(16);
    set_marks(
        &zone,
        Marks {
            min: 10,
            low: 12,
            high: 14,
        },
    );
    refuse_one(&zone);
    for block in 0..2 {
        release(&zone, block * BLOCK, 0);
        take_direct(&zone, &UNMOVABLE);
        assert_eq!(zone.boost(), 512);
    }
}

#[test]
fn a_zone_of_four_page_blocks_is_boosted() {
    // A smaller one has no types, so nothing is claimed.
    let zone = full_zone(4);
    release(&zone, 0, 0);
    take_direct(&zone, &UNMOVABLE);
    assert_eq!(zone.boost(), 512);
}

#[test]
fn a_factor_of_zero_means_no_boost() {
    let mut without = plan(16);
    without.linux.boost_factor = 0;
    let zone: Zone = free_zone_of(&without, Cpus::new());
    fill(&zone, Mobility::Movable);
    refuse_one(&zone);
    set_marks(&zone, MARKS);
    release(&zone, 0, 0);
    take_direct(&zone, &UNMOVABLE);
    assert_eq!(zone.boost(), 0);
}

#[test]
fn a_boost_goes_when_background_reclaim_has_worked_it_off() {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    refuse_one(&zone);
    let boost_once = |block| {
        release(&zone, block * BLOCK, 0);
        take_direct(&zone, &UNMOVABLE);
    };
    boost_once(0);
    boost_once(1);
    zone.set_reclaiming(true);
    // A boost that comes meanwhile stays.
    boost_once(2);
    assert_eq!(zone.boost(), 1536);
    zone.set_reclaiming(false);
    assert_eq!(zone.boost(), 512);
    zone.set_reclaiming(false);
    assert_eq!(zone.boost(), 512);
}

#[test]
fn new_marks_take_the_boost_away() {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    refuse_one(&zone);
    release(&zone, 0, 0);
    take_direct(&zone, &UNMOVABLE);
    assert_eq!(zone.boost(), 512);
    set_marks(
        &zone,
        Marks {
            high: 2000,
            ..MARKS
        },
    );
    let zones = [zone];
    assert_eq!(alloc(&zones, &MOVABLE), None);
    assert_eq!(zones[0].boost(), 0);
}
