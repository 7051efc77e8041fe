//! Isolation; what takes no lock.

use super::*;

#[test]
fn requests_frees_and_looks_take_no_lock_and_mask_nothing() {
    let cpus = Cpus::new();
    let zone: Plain = full(&linux(4096), cpus);
    let masks = cpus.masks();
    for order in 0..=10 {
        let block = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        assert!(zone.block_of(block).is_some());
        free(&zone, block, order);
        let low = zone.alloc(&request(order, Mobility::Unmovable).below(frame(3000)));
        free(&zone, low.unwrap(), order);
    }
    let many = take_bulk(&zone, &UNMOVABLE, 700);
    assert_eq!(zone.free_bulk(&many), Ok(()));
    let block = zone.alloc(&request(9, Mobility::Movable)).unwrap();
    let block = FrameRange::of_block(block, Order::HUGE);
    assert_eq!(zone.free_range(block), Ok(()));
    // A compacting task takes its places so.
    assert_eq!(zone.alloc_at(frame(5), &MOVABLE), Ok(()));
    free(&zone, frame(5), 0);
    let all = take_all(&zone, Mobility::Movable);
    assert!(zone.alloc(&MOVABLE).is_err());
    assert!(zone.free(frame(9999), Order::ZERO).is_err());
    give(&zone, &all);
    assert_eq!(zone.free_counts().free_frames(), 4096);
    assert_eq!(zone.snapshot(0).blocks[Movable.index()], 8);
    zone.drain();
    assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
}

#[test]
fn memory_that_is_added_to_a_block_in_use_is_of_its_kind() {
    let zone = blocks(4);
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert!(page < frame(256));
    assert_eq!(zone.remove(range(256, 512)), Ok(256));
    assert_eq!(free_of(&zone, Unmovable), 255);
    assert_eq!(zone.add(range(256, 512)), Ok(256));
    assert_eq!(free_of(&zone, Unmovable), 511);
    sound(&zone);
}

// ---- isolation ----

/// A store of 4 page blocks of order 9, all free.
fn four_blocks() -> Bitmap<'static> {
    let store = bitmap(range(0, 4 * BLOCK), 10, 9);
    assert_eq!(store.add(range(0, 4 * BLOCK)), Ok(4 * BLOCK));
    store
}

/// Single frames of a store until there are no more.
fn drain_store(store: &Bitmap<'_>, wanted: &Request) -> Vec<Frame> {
    core::iter::from_fn(|| store.take(wanted)).collect()
}

#[test]
fn nothing_is_handed_out_from_isolated_parts_and_all_else_is() {
    let isolated = range(300, 900);
    for mobility in Mobility::ALL {
        for order in 0..=10 {
            let store = four_blocks();
            assert_eq!(store.isolate(isolated, &AT_ONCE), Ok(()));
            assert_eq!(store.free_frames(), 4 * BLOCK - 600);
            let held = drain_store(&store, &request(order, mobility));
            let size = Order::new(order).frames();
            let outside = |first: &usize| {
                let block = range(first * size, (first + 1) * size);
                block.intersection(isolated).is_empty()
            };
            let expected = (0..4 * BLOCK / size).filter(outside).count();
            assert_eq!(held.len(), expected, "order {order}, {mobility:?}");
            for &at in &held {
                let block = FrameRange::of_block(at, Order::new(order));
                assert!(block.intersection(isolated).is_empty(), "{at}");
            }
            let census = store.check().unwrap();
            assert_eq!(
                (census.isolated, census.allocated),
                (600, held.len() * size)
            );
            store.unisolate(isolated, &AT_ONCE);
            assert_eq!(store.check().unwrap().isolated, 0);
            let rest = drain_store(&store, &MOVABLE);
            assert_eq!(rest.len(), 4 * BLOCK - held.len() * size);
        }
    }
}

#[test]
fn many_frames_at_once_leave_isolated_parts_alone_too() {
    let store = four_blocks();
    assert_eq!(store.isolate(range(10, 2000), &AT_ONCE), Ok(()));
    let mut out = [Frame::new(0); 100];
    assert_eq!(store.take_frames(&UNMOVABLE, &mut out), 58);
    let inside = |at: &&Frame| range(10, 2000).contains(**at);
    assert_eq!(out[..58].iter().find(inside), None);
    store.check().unwrap();
}

#[test]
fn what_is_freed_in_an_isolated_range_stays_there() {
    let store = four_blocks();
    let wide = request(10, Mobility::Movable);
    assert_eq!(store.take_at(frame(0), &wide), Ok(()));
    assert_eq!(store.isolate(range(100, 1000), &AT_ONCE), Ok(()));
    // A single frame, a page block, and the rest in parts.
    assert!(store.give(frame(200), Order::ZERO).is_ok());
    assert_eq!(store.free_frames(), 1024);
    assert!(store.give(frame(512), Order::HUGE).is_ok());
    // Of the second block 24 frames are not isolated.
    assert_eq!(store.free_frames(), 1024 + 24);
    assert_eq!(store.check().unwrap().isolated, 1 + 488);
    let held = drain_store(&store, &MOVABLE);
    assert_eq!(held.len(), 1024 + 24);
    for at in (0..512).filter(|&at| at != 200) {
        assert!(store.give(frame(at), Order::ZERO).is_ok());
    }
    assert_eq!(drain_store(&store, &UNMOVABLE).len(), 100);
    assert_eq!(store.check().unwrap().isolated, 900);
    store.unisolate(range(100, 1000), &AT_ONCE);
    assert_eq!(drain_store(&store, &UNMOVABLE).len(), 900);
    store.check().unwrap();
}

#[test]
fn memory_that_is_added_to_an_isolated_range_is_isolated() {
    // A part of a page block, then whole ones; added, and given up by a reservation.
    for part in [range(100, 200), range(0, 512), range(300, 2000)] {
        let store = bitmap(range(0, 4 * BLOCK), 10, 9);
        assert_eq!(store.isolate(range(0, 4 * BLOCK), &AT_ONCE), Ok(()));
        assert_eq!(store.add(part), Ok(part.len()));
        assert_eq!(store.free_frames(), 0, "{part:?}");
        assert_eq!(store.check().map(|census| census.isolated), Ok(part.len()));
        assert_eq!(store.reserve(part), Ok(part.len()));
        assert_eq!(store.unreserve(part), Ok(part.len()));
        assert_eq!(store.free_frames(), 0, "{part:?}");
        assert_eq!(store.take(&MOVABLE), None);
        store.unisolate(range(0, 4 * BLOCK), &AT_ONCE);
        assert_eq!(store.free_frames(), part.len());
        store.check().unwrap();
    }
}

#[test]
fn four_ranges_are_isolated_at_a_time_and_none_overlaps_another() {
    let store = four_blocks();
    let isolated = Err(RangeError::Isolated);
    let isolate = |part| store.isolate(part, &AT_ONCE);
    assert_eq!(isolate(range(5, 5)), Err(RangeError::Malformed));
    for n in 0..4 {
        let part = range(n * 100, n * 100 + 50);
        assert_eq!(isolate(part), Ok(()));
        assert_eq!(isolate(range(n * 100 + 49, n * 100 + 60)), isolated);
        assert!(store.is_isolated(part.start));
        assert!(!store.is_isolated(part.end));
    }
    let fifth = isolate(range(1000, 1001));
    assert_eq!(fifth, Err(RangeError::TooManyIsolated));
    assert_eq!(store.take_at(frame(149), &MOVABLE), isolated);
    assert_eq!(store.take_at(frame(150), &MOVABLE), Ok(()));
    // Only exactly what was isolated ends.
    store.unisolate(range(100, 149), &AT_ONCE);
    assert!(store.is_isolated(frame(149)));
    store.unisolate(range(100, 150), &AT_ONCE);
    assert!(!store.is_isolated(frame(149)));
    assert_eq!(isolate(range(1000, 1001)), Ok(()));
    store.check().unwrap();
}

#[test]
fn an_isolated_range_is_taken_whole_or_not_at_all() {
    let store = four_blocks();
    let part = range(300, 1900);
    assert_eq!(store.take_at(frame(1700), &MOVABLE), Ok(()));
    assert_eq!(store.isolate(part, &AT_ONCE), Ok(()));
    let before = (store.check(), store.free_table());
    let busy = Err(RangeError::Busy { frame: frame(1700) });
    assert_eq!(store.take_isolated(part, Unmovable, &AT_ONCE), busy);
    assert_eq!((store.check(), store.free_table()), before);
    assert!(store.give(frame(1700), Order::ZERO).is_ok());
    assert_eq!(store.take_isolated(part, Unmovable, &AT_ONCE), Ok(()));
    let census = store.check().unwrap();
    assert_eq!((census.allocated, census.isolated), (1600, 0));
    store.unisolate(part, &AT_ONCE);
    assert_eq!(store.check_in_use(part), Ok(()));
    let more = store.check_in_use(range(299, 1900));
    assert_eq!(more, Err(FreeError::DoubleFree));
    assert_eq!(drain_store(&store, &MOVABLE).len(), 4 * BLOCK - 1600);
}

#[test]
fn the_only_free_frame_is_found_beside_an_isolated_part_of_its_block() {
    for mobility in Mobility::ALL {
        let store = four_blocks();
        drain_store(&store, &UNMOVABLE);
        assert_eq!(store.isolate(range(600, 700), &AT_ONCE), Ok(()));
        for at in [590, 650, 655] {
            assert!(store.give(frame(at), Order::ZERO).is_ok());
        }
        let wanted = Request::page(mobility);
        assert_eq!(drain_store(&store, &wanted), [frame(590)]);
        assert_eq!(store.check().unwrap().isolated, 2);
    }
}
