//! Page blocks set aside for requests that cannot wait: how many, who gets them, and how they are
//! given back.

use super::*;

use brickyard_designs::classics::store::grouping::Grouping;

/// The marks of a zone that nothing passes at first, and everything in the slow path.
const SLOW: Marks = Marks {
    min: 0,
    low: 300_000,
    high: 300_000,
};

/// Two frames for a request that cannot wait.
fn pair() -> Request {
    request(1, Mobility::Unmovable).atomic()
}

/// Makes Z with these marks and all of it in use, but for one block at the start of each of the
/// first page blocks.
fn with_blocks(blocks: usize, order: u8) -> [Zone; 1] {
    let zone = calm();
    for block in 0..blocks {
        release(&zone, block * BLOCK, order);
    }
    set_marks(&zone, SLOW);
    [zone]
}

/// Sets the page block at `block` aside, of which one block is free. That block is free afterwards
/// too.
fn set_aside(zones: &[Zone; 1], block: usize, order: u8) {
    release(&zones[0], block * BLOCK, order);
    assert_eq!(alloc(zones, &pair()), Some(block * BLOCK));
    zones[0].drain();
    release(&zones[0], block * BLOCK, 1);
    assert_eq!(zones[0].block_type(frame(block * BLOCK)), Some(High));
}

/// Test 22.
#[test]
fn a_hundredth_is_set_aside_in_whole_page_blocks() {
    let most = |managed| free_zone(4).with_store(|_, blocks| blocks.most_set_aside(managed));
    assert_eq!(most(51_199), 0);
    assert_eq!(most(51_200), 512);
    assert_eq!(most(1_000_000), 10_240);
}

#[test]
fn a_page_block_is_set_aside_in_the_slow_path_only() {
    let zones = with_blocks(1, 8);
    set_marks(
        &zones[0],
        Marks {
            min: 0,
            low: 0,
            high: 0,
        },
    );
    assert!(alloc(&zones, &pair()).is_some());
    assert_eq!(blocks_of(&zones[0], High), 0);
    set_marks(&zones[0], SLOW);
    assert!(alloc(&zones, &pair()).is_some());
    assert_eq!(blocks_of(&zones[0], High), 1);
    sound(&zones[0]);
}

#[test]
fn only_requests_with_the_right_set_a_page_block_aside() {
    // Single frames, and what may wait.
    for wanted in [UNMOVABLE.atomic(), request(1, Mobility::Unmovable)] {
        let zones = with_blocks(1, 5);
        assert!(alloc(&zones, &wanted).is_some());
        assert_eq!(blocks_of(&zones[0], High), 0);
    }
    // And what cannot wait but is not urgent.
    let zones = with_blocks(1, 5);
    let flags = GfpFlags {
        high: false,
        ..GfpFlags::of(&pair())
    };
    assert!(alloc_in(&zones, &pair(), flags).is_some());
    assert_eq!(blocks_of(&zones[0], High), 0);
}

#[test]
fn so_many_page_blocks_are_set_aside_and_no_more() {
    let zones = with_blocks(0, 0);
    for block in 0..8 {
        release(&zones[0], block * BLOCK, 1);
        assert_eq!(alloc(&zones, &pair()), Some(block * BLOCK));
    }
    // 2622 frames, rounded up to 3072.
    assert_eq!(blocks_of(&zones[0], High), 6);
    assert_eq!(zones[0].block_type(frame(5 * BLOCK)), Some(High));
    sound(&zones[0]);
}

#[test]
fn the_free_blocks_of_a_page_block_are_set_aside_with_it() {
    let zones = with_blocks(1, 5);
    assert_eq!(alloc(&zones, &pair()), Some(0));
    let zone = &zones[0];
    zone.drain();
    assert_eq!(zone.free_frames(), 30);
    assert_eq!(free_of(zone, High), 30);
}

#[test]
fn all_page_blocks_of_a_large_block_are_set_aside() {
    let zones = with_blocks(0, 0);
    release(&zones[0], 0, 10);
    let two = request(10, Mobility::Unmovable).atomic();
    assert_eq!(alloc(&zones, &two), Some(0));
    let types = [0, BLOCK].map(|at| zones[0].block_type(frame(at)));
    assert_eq!(types, [Some(High); 2]);
    sound(&zones[0]);
}

#[test]
fn a_page_block_that_is_partly_outside_is_not_set_aside() {
    let mut partly = plan(512);
    partly.zone.span = FrameRange::new(256, 512 * BLOCK);
    let zone: Zone = free_zone_of(&partly, Cpus::new());
    fill(&zone, Mobility::Movable);
    release(&zone, 256, 4);
    set_marks(&zone, SLOW);
    let zones = [zone];
    assert_eq!(alloc(&zones, &pair()), Some(256));
    assert_eq!(blocks_of(&zones[0], High), 0);
}

// ---- who gets it ----

#[test]
fn those_with_the_right_take_what_is_set_aside_first() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 6);
    // There are others.
    release(&zones[0], 4 * BLOCK, 10);
    let direct = request(4, Mobility::Movable).atomic();
    assert_eq!(alloc(&zones, &direct), Some(0));
    // What goes through a page set turns to it only if that has nothing.
    let taken = alloc(&zones, &request(1, Mobility::Movable).atomic());
    assert_eq!(taken, Some(4 * BLOCK));
}

#[test]
fn what_cannot_wait_takes_what_is_set_aside_last() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 3);
    release(&zones[0], 4 * BLOCK, 0);
    let waits_not = GfpFlags {
        high: false,
        ..GfpFlags::of(&UNMOVABLE.atomic())
    };
    let taken = || alloc_in(&zones, &UNMOVABLE.atomic(), waits_not);
    assert_eq!(taken(), Some(4 * BLOCK));
    assert!(taken().is_some_and(|at| at < 8));
    // The rest stays set aside.
    assert_eq!(free_of(&zones[0], High), 7);
    assert_eq!(zones[0].cached_frames(), 0);
}

#[test]
fn others_do_not_get_what_is_set_aside() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 3);
    let once = GfpFlags {
        retry: Retry::Never,
        ..GfpFlags::of(&UNMOVABLE)
    };
    for high in [false, true] {
        let flags = GfpFlags { high, ..once };
        assert_eq!(alloc_in(&zones, &UNMOVABLE, flags), None);
    }
    let found = search(&zones[0], 0, Unmov, Rights::HIGH_ATOMIC.and(Rights::OOM));
    assert_eq!(found.found, None);
}

#[test]
fn victims_take_what_is_set_aside_last() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 3);
    let direct = |rights| {
        let found = zones[0]
            .with_store(|store, blocks| blocks.search_direct(store, Order::ZERO, Unmov, rights));
        found.found.map(|found: Choice| found.way)
    };
    assert_eq!(direct(Rights::OOM), Some(Way::SetAside));
    assert_eq!(direct(Rights::NON_BLOCK), Some(Way::SetAside));
    assert_eq!(direct(Rights::MIN_RESERVE), None);
    release(&zones[0], 4 * BLOCK, 0);
    assert_eq!(direct(Rights::OOM), Some(Way::Steal));
    assert_eq!(direct(Rights::HIGH_ATOMIC), Some(Way::SetAside));
}

// ---- giving it back ----

/// Gives one page block back for a request of this mobility, by force.
fn give_back(zone: &Zone, mobility: Mobility) -> bool {
    let wanted = Request::page(mobility);
    zone.with_store(|store, blocks| blocks.unreserve_high_atomic(store, &wanted))
}

#[test]
fn the_page_block_of_the_smallest_block_is_given_back() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 5);
    set_aside(&zones, 1, 6);
    let zone = &zones[0];
    // Of the first, one small block is free too: it is the smallest of all.
    release(zone, 128, 2);
    assert!(give_back(zone, Mobility::Reclaimable));
    let types = [0, BLOCK].map(|at| zone.block_type(frame(at)));
    assert_eq!(types, [Some(Recl), Some(High)]);
    assert_eq!((free_of(zone, Recl), free_of(zone, High)), (36, 64));
    assert!(give_back(zone, Mobility::Unmovable));
    assert!(!give_back(zone, Mobility::Unmovable));
    assert_eq!(blocks_of(zone, High), 0);
    sound(zone);
}

#[test]
fn what_is_given_back_goes_to_the_tails() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 2);
    let zone = &zones[0];
    release(zone, 8, 2);
    release(zone, 4 * BLOCK, 2);
    assert!(give_back(zone, Mobility::Movable));
    let four = request(2, Mobility::Movable);
    let taken = [(); 3].map(|()| take_direct(zone, &four));
    assert_eq!(taken, [4 * BLOCK, 0, 8]);
}

#[test]
fn what_was_given_back_is_counted() {
    let zones = with_blocks(0, 0);
    set_aside(&zones, 0, 2);
    let count = || zones[0].with_store(|store, _| store.unreserved());
    assert_eq!(count(), 0);
    assert!(give_back(&zones[0], Mobility::Movable));
    assert_eq!(count(), 1);
}
