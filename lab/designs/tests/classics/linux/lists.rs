//! The lists of a page set: which block lies where, what is taken first and what leaves first.

use super::*;

/// Takes single frames of a type, at these places, into use and puts them into the page set; they
/// do not count as freed.
fn stock(zone: &Zone, range: core::ops::Range<usize>, mobility: Mobility) {
    for at in range {
        take_at(zone, at, 0, mobility);
        assert!(zone.stock(frame(at), Order::ZERO));
    }
}

// ---- taking ----

#[test]
fn blocks_are_taken_in_the_order_in_which_they_were_fetched() {
    let (zone, _) = z::<V6_12>();
    let first = take(&zone, &MOVABLE);
    assert_eq!(zone.cached_frames(), 62);
    let rest: Vec<usize> = (0..62).map(|_| take(&zone, &MOVABLE)).collect();
    assert_eq!(rest, (first + 1..first + 63).collect::<Vec<_>>());
    assert_eq!(zone.cached_frames(), 0);
}

#[test]
fn the_block_freed_last_is_taken_first() {
    let (zone, _) = z::<V6_12>();
    let taken: Vec<usize> = (0..10).map(|_| take(&zone, &MOVABLE)).collect();
    give(&zone, taken[3], 0);
    give(&zone, taken[8], 0);
    assert_eq!(
        [(); 2].map(|()| take(&zone, &MOVABLE)),
        [taken[8], taken[3]]
    );
}

/// Test 7, at work.
#[test]
fn the_refills_of_a_zone_double() {
    let (zone, _) = z::<V6_12>();
    let mut sizes = Vec::new();
    while sizes.len() < 7 {
        let misses = zone.cached_frames() == 0;
        take(&zone, &MOVABLE);
        if misses {
            sizes.push(zone.cached_frames() + 1);
        }
    }
    assert_eq!(sizes, [63, 126, 252, 504, 1008, 2016, 2016]);
}

#[test]
fn each_free_halves_the_next_refill_of_a_zone() {
    for (frees, expected) in [(0, 1008), (1, 252), (3, 63)] {
        let (zone, _) = z::<V6_12>();
        let mut misses = 0;
        loop {
            let miss = zone.cached_frames() == 0;
            let at = take(&zone, &MOVABLE);
            misses += u32::from(miss);
            if miss && misses == 5 {
                assert_eq!(zone.cached_frames() + 1, expected);
                break;
            }
            if misses == 4 && zone.cached_frames() == 100 {
                for _ in 0..frees {
                    give(&zone, at, 0);
                    assert_eq!(take(&zone, &MOVABLE), at);
                }
            }
        }
    }
}

#[test]
fn there_is_a_list_for_each_type_and_small_order() {
    for order in 0..=3 {
        let (zone, _) = z::<V6_12>();
        // Each misses, though the page set holds blocks of the two others.
        for mobility in Mobility::ALL {
            let before = zone.cached_frames();
            take(&zone, &request(order, mobility));
            assert!(zone.cached_frames() > before, "{order} {mobility:?}");
        }
        sound(&zone);
    }
}

#[test]
fn unmovable_and_reclaimable_huge_pages_share_a_list() {
    let (zone, _) = z::<V6_12>();
    take(&zone, &request(9, Mobility::Unmovable));
    assert_eq!(zone.cached_frames(), BLOCK);
    // A miss of its own.
    take(&zone, &request(9, Mobility::Movable));
    assert_eq!(zone.cached_frames(), 2 * BLOCK);
    take(&zone, &request(9, Mobility::Reclaimable));
    assert_eq!(zone.cached_frames(), BLOCK);
}

/// Test 13, at work.
#[test]
fn a_miss_fetches_blocks_for_a_batch() {
    for (order, blocks) in [(1, 31), (2, 15), (3, 7), (9, 2)] {
        let (zone, _) = z::<V6_12>();
        take(&zone, &request(order, Mobility::Movable));
        assert_eq!(zone.cached_frames(), (blocks - 1) << order);
    }
}

#[test]
fn other_orders_go_past_the_page_sets() {
    let (zone, _) = z::<V6_12>();
    for order in [4, 5, 6, 7, 8, 10] {
        let at = take(&zone, &request(order, Mobility::Movable));
        assert_eq!(zone.cached_frames(), 0, "{order}");
        give(&zone, at, order);
        assert_eq!(zone.cached_frames(), 0, "{order}");
    }
}

#[test]
fn a_request_halves_what_counts_as_freed_in_a_row() {
    for (requests, left) in [(0, 180), (1, 91)] {
        let (zone, _) = z::<V6_12>();
        stock(&zone, 0..141 + requests, Mobility::Movable);
        for at in 1000..1180 {
            take_at(&zone, at, 0, Mobility::Movable);
            give(&zone, at, 0);
            if at == 1177 && requests > 0 {
                take(&zone, &MOVABLE);
            }
        }
        // Without a request all 180; else half of 178, and two.
        assert_eq!(zone.cached_frames(), 321 - left);
    }
}

#[test]
fn many_at_once_go_on_counting_frees_in_a_row() {
    let (zone, _) = z::<V6_12>();
    stock(&zone, 0..220, Mobility::Movable);
    for at in 1000..1100 {
        take_at(&zone, at, 0, Mobility::Movable);
        give(&zone, at, 0);
    }
    let mut out = [frame(0); 50];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut out), Ok(50));
    assert_eq!(zone.cached_frames(), 270);
    for &at in &out {
        give(&zone, at.number(), 0);
    }
    take_at(&zone, 1200, 0, Mobility::Movable);
    give(&zone, 1200, 0);
    // 151 freed in a row. A request would have halved that.
    assert_eq!(zone.cached_frames(), 321 - 151);
}

// ---- freeing ----

#[test]
fn a_block_lies_on_the_list_of_its_page_block() {
    let zone = full_zone(16);
    zone.dedicate(frame(0), Mobility::Unmovable);
    give(&zone, 7, 0);
    let search = search(&zone, 0, Unmov, Rights::NONE);
    assert_eq!(way(&search), None);
    assert_eq!(take(&zone, &UNMOVABLE), 7);
}

#[test]
fn a_drained_block_takes_the_type_that_its_page_block_has_by_then() {
    let zone = full_zone(16);
    give(&zone, 7, 0);
    zone.dedicate(frame(0), Mobility::Unmovable);
    assert_eq!(zone.drain(), 1);
    assert_eq!(list_of(&zone, frame(7)), Unmov);
}

/// Test 9, at work.
#[test]
fn the_drains_of_a_zone_grow() {
    let (zone, _) = z::<V6_12>();
    let frames: Vec<usize> = (0..12_000).map(|_| take_direct(&zone, &MOVABLE)).collect();
    assert_eq!(drains(&zone, &frames, 0)[..5], [258, 321, 642, 1284, 2016]);
}

/// Frees blocks; returns how many frames each drain took.
fn drains<V: Version>(zone: &Zone<V>, blocks: &[usize], order: u8) -> Vec<usize> {
    let mut drains = Vec::new();
    for &at in blocks {
        let before = zone.cached_frames() + (1 << order);
        give(zone, at, order);
        drains.extend(Some(before - zone.cached_frames()).filter(|&left| left > 0));
    }
    sound(zone);
    drains
}

/// Test 10, at work.
#[test]
fn background_reclaim_keeps_the_page_sets_of_a_zone_small() {
    let (zone, _) = z::<V6_12>();
    let frames: Vec<usize> = (0..1000).map(|_| take_direct(&zone, &MOVABLE)).collect();
    zone.set_reclaiming(true);
    assert_eq!(drains(&zone, &frames, 0), [189; 4]);
}

/// Test 12, at work.
#[test]
fn the_bursts_of_a_zone() {
    fn of<V: Version>() -> Vec<usize> {
        let (zone, _) = z::<V>();
        let three = request(3, Mobility::Movable);
        let blocks: Vec<usize> = (0..31).map(|_| take_direct(&zone, &three)).collect();
        drains(&zone, &blocks, 3)
    }
    assert_eq!(of::<V6_12>()[..3], [72, 8, 8]);
    assert_eq!(of::<V6_18>(), [232, 8, 8]);
}

/// Test 14, at work.
#[test]
fn an_idle_page_set_of_a_zone_shrinks() {
    let (zone, cpus) = z::<V6_12>();
    cpus.switch_to(2);
    zone.set_cache_limit(8192);
    stock(&zone, 0..8000, Mobility::Movable);
    let tick = || {
        zone.tick();
        zone.cached_frames()
    };
    assert_eq!([(); 4].map(|()| tick()), [7168, 6272, 5488, 4802]);
    // Only this CPU's.
    cpus.switch_to(0);
    assert_eq!(tick(), 4802);
}

#[test]
fn an_idle_page_set_loses_a_batch_at_each_hold_of_the_lock() {
    let (zone, _) = z::<V6_12>();
    zone.set_cache_limit(8192);
    stock(&zone, 0..8000, Mobility::Movable);
    // 832 frames, 63 at a time.
    let (holds, ()) = ZoneLock::holds_during(|| zone.tick());
    assert_eq!(holds, 14);
}

#[test]
fn an_idle_page_set_loses_its_first_lists_first() {
    let (zone, _) = z::<V6_12>();
    take_at(&zone, 4 * BLOCK, 0, Mobility::Unmovable);
    zone.dedicate(frame(4 * BLOCK), Mobility::Unmovable);
    zone.set_cache_limit(400);
    stock(&zone, 4 * BLOCK + 1..4 * BLOCK + 31, Mobility::Unmovable);
    stock(&zone, 0..400, Mobility::Movable);
    zone.tick();
    // 400 - 50 stay.
    assert_eq!(zone.cached_frames(), 350);
    assert!((1..31).all(|at| !is_cached(&zone, 4 * BLOCK + at)));
    assert!((0..50).all(|at| !is_cached(&zone, at)));
    assert!((50..400).all(|at| is_cached(&zone, at)));
}

#[test]
fn a_drain_begins_where_was_freed_to_and_goes_round() {
    let (zone, _) = z::<V6_12>();
    take_at(&zone, 4 * BLOCK, 0, Mobility::Unmovable);
    zone.dedicate(frame(4 * BLOCK), Mobility::Unmovable);
    zone.set_cache_limit(1500);
    stock(&zone, 4 * BLOCK + 1..4 * BLOCK + 31, Mobility::Unmovable);
    stock(&zone, 0..400, Mobility::Movable);
    for at in 400..500 {
        take_at(&zone, at, 0, Mobility::Movable);
        give(&zone, at, 0);
    }
    let huge = [6 * BLOCK, 7 * BLOCK];
    for at in huge {
        take_at(&zone, at, 9, Mobility::Movable);
    }
    give(&zone, huge[0], 9);
    assert_eq!(zone.cached_frames(), 1042);
    give(&zone, huge[1], 9);
    // 1124 frames freed in a row: both huge pages, then 30 unmovable frames, then 70 movable ones,
    // the coldest.
    assert_eq!(zone.cached_frames(), 430);
    assert!(huge.iter().all(|&at| !is_cached(&zone, at)));
    assert!((1..31).all(|at| !is_cached(&zone, 4 * BLOCK + at)));
    assert!((0..70).all(|at| !is_cached(&zone, at)));
    assert!((70..500).all(|at| is_cached(&zone, at)));
    sound(&zone);
}

#[test]
fn a_drain_goes_on_with_the_next_list() {
    let (zone, _) = z::<V6_12>();
    zone.set_cache_limit(321);
    take_at(&zone, 4 * BLOCK, 0, Mobility::Unmovable);
    zone.dedicate(frame(4 * BLOCK), Mobility::Unmovable);
    stock(&zone, 4 * BLOCK + 1..4 * BLOCK + 31, Mobility::Unmovable);
    stock(&zone, 0..290, Mobility::Movable);
    take_at(&zone, 600, 1, Mobility::Movable);
    assert!(zone.stock(frame(600), Order::new(1)));
    take_at(&zone, 4 * BLOCK + 40, 0, Mobility::Unmovable);
    give(&zone, 4 * BLOCK + 40, 0);
    // A batch: 31 unmovable frames, the one just freed too, and 32 movable ones.
    assert_eq!(zone.cached_frames(), 323 - 63);
    assert!(!is_cached(&zone, 4 * BLOCK + 40));
    assert!((0..32).all(|at| !is_cached(&zone, at)));
    assert!(is_cached(&zone, 32) && is_cached(&zone, 600));
}

#[test]
fn a_drain_of_blocks_may_take_some_frames_more() {
    let (zone, _) = z::<V6_12>();
    zone.set_cache_limit(321);
    for at in 0..40 {
        take_at(&zone, 8 * at, 3, Mobility::Movable);
        assert!(zone.stock(frame(8 * at), Order::new(3)));
    }
    take_at(&zone, 320, 3, Mobility::Movable);
    give(&zone, 320, 3);
    // A batch is 63 frames, and eight blocks are 64.
    assert_eq!(zone.cached_frames(), 328 - 64);
    assert!((0..8).all(|at| !is_cached(&zone, 8 * at)));
}

#[test]
fn everything_is_drained_in_pieces() {
    let (zone, cpus) = z::<V6_12>();
    zone.set_cache_limit(8192);
    stock(&zone, 0..5000, Mobility::Movable);
    cpus.switch_to(1);
    let (holds, drained) = ZoneLock::holds_during(|| zone.drain());
    // 2016, 2016 and 968 frames; the other page sets hold nothing.
    assert_eq!((holds, drained), (3, 5000));
    assert_eq!(zone.cached_frames(), 0);
    sound(&zone);
}
