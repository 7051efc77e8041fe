//! What is noticed of a bad free, at once and late.

use super::*;

// ---- what is noticed of a bad free ----

#[test]
fn what_is_free_in_the_store_never_allocated_or_reserved_is_refused_at_once() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = full(&linux_at(100, 5000), cpus);
        assert_eq!(zone.remove(range(1000, 1100)), Ok(100));
        assert_eq!(zone.reserve(range(2000, 2100)), Ok(100));
        // Something is in each array.
        for order in [0, 1, 2, 3, 9] {
            use_one(&zone, &request(order, Mobility::Movable));
        }
        // A movable request opens blocks from the high end.
        for (at, order, error) in [
            (150, 0, FreeError::DoubleFree),
            (152, 3, FreeError::DoubleFree),
            (512, 9, FreeError::DoubleFree),
            (0, 0, FreeError::NotOwned),
            (99, 0, FreeError::NotOwned),
            (1050, 0, FreeError::NotOwned),
            (1056, 3, FreeError::NotOwned),
            (2050, 0, FreeError::NotOwned),
            (2048, 1, FreeError::NotOwned),
            (5000, 0, FreeError::NotOwned),
            (5119, 0, FreeError::NotOwned),
            (1 << 33, 0, FreeError::NotOwned),
            (1 << 33, 9, FreeError::NotOwned),
            (1 << 40 | 150, 0, FreeError::NotOwned),
            (usize::MAX, 0, FreeError::NotOwned),
        ] {
            let before = seen(&zone);
            let refused = zone.free(frame(at), Order::new(order));
            assert_eq!(refused, Err(error), "{at}, order {order}");
            assert_eq!(seen(&zone), before, "{at}, order {order}");
        }
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn the_frame_freed_just_before_is_refused_at_once() {
    for order in [0, 1, 2, 3, 9] {
        let zone: Own = zone(8192);
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        let other = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        for at in [at, other] {
            free(&zone, at, order);
            let before = seen(&zone);
            for _ in 0..3 {
                let again = zone.free(at, Order::new(order));
                assert_eq!(again, Err(FreeError::DoubleFree), "order {order}");
            }
            assert_eq!(seen(&zone), before);
        }
        assert_eq!(zone.alloc(&request(order, Mobility::Movable)), Ok(other));
        assert_eq!(zone.alloc(&request(order, Mobility::Movable)), Ok(at));
    }
}

#[test]
fn a_wrong_order_is_refused_at_once_and_the_right_one_named() {
    let zone: Own = zone(16 * 512);
    for order in [0, 1, 2, 3, 5, 9, 10] {
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        let before = seen(&zone);
        let allocated = Order::new(order);
        let wrong = Err(FreeError::WrongOrder { allocated });
        for more in order + 1..=11 {
            assert_eq!(zone.free(at, Order::new(more)), wrong, "{more} for {order}");
        }
        for less in 1..order {
            let misaligned = at.plus(1 << (less - 1));
            assert_eq!(zone.free(misaligned, Order::new(less)), wrong);
        }
        assert_eq!(seen(&zone), before);
        free(&zone, at, order);
    }
}

// ---- frees that are found out late ----

/// Frees a block that the stash is to keep, whoever owns it.
fn keeps(zone: &Own, at: Frame, order: u8) {
    let cached = zone.cached_frames();
    free(zone, at, order);
    assert!(zone.cached_frames() > cached, "{at} {order}");
}

/// Everything goes back to the store; how many frames of it were refused there.
fn refused_by_a_drain(zone: &Own) -> usize {
    let before = zone.refused_late();
    zone.drain();
    zone.refused_late() - before
}

fn is_all_free(zone: &Own) {
    assert_eq!(sound(zone).free, zone.span().len());
}

/// A movable block, and nothing in any stash.
fn only_this(zone: &Own, order: u8) -> Frame {
    let at = zone.alloc(&request(order, Mobility::Movable));
    assert_eq!(refused_by_a_drain(zone), 0);
    at.expect("enough")
}

#[test]
fn a_second_free_of_a_frame_elsewhere_in_the_stash_is_refused_and_counted_at_the_store() {
    let zone: Own = zone(4096);
    let held = take(&zone, 10, Mobility::Movable);
    assert_eq!(refused_by_a_drain(&zone), 0);
    for &at in &held {
        keeps(&zone, at, 0);
    }
    // Not noticed now: another frame was freed in between.
    keeps(&zone, held[3], 0);
    keeps(&zone, held[7], 0);
    assert_eq!(zone.refused_late(), 0);
    assert_eq!(refused_by_a_drain(&zone), 2);
    is_all_free(&zone);
}

#[test]
fn a_second_free_on_another_cpu_is_refused_and_counted_at_the_store() {
    for order in [0, 1, 2, 3, 9] {
        let cpus = Cpus::new();
        let zone: Own = zone_on(16 * 512, cpus);
        let at = only_this(&zone, order);
        keeps(&zone, at, order);
        cpus.switch_to(1);
        keeps(&zone, at, order);
        // Frames are counted.
        assert_eq!(refused_by_a_drain(&zone), 1 << order, "order {order}");
        is_all_free(&zone);
    }
}

#[test]
fn a_second_free_is_refused_late_when_a_full_array_gives_back_too() {
    let zone: Own = zone(64 * 512);
    let held = take_bulk(&zone, &MOVABLE, 2 * MOST);
    assert_eq!(zone.cached_frames(), 0);
    let mut dice = Dice::new(9);
    for place in dice.shuffled(held.len()) {
        free(&zone, held[place], 0);
    }
    // Each once more that lies in the stash still; what is in the store again is refused at once.
    let is_kept = |at: &&Frame| zone.free(**at, Order::ZERO).is_ok();
    let kept = held.iter().filter(is_kept).count();
    zone.drain();
    assert!(kept > 0 && zone.refused_late() == kept, "{kept}");
    is_all_free(&zone);
}

#[test]
fn a_free_of_a_part_of_a_block_in_the_stash_is_found_out_at_the_store() {
    // The store cannot know that the block is free already, and takes the part. What is left of the
    // block then belongs to nobody; the store does not guess, and keeps it in use.
    for (order, part) in [(1, 0), (3, 0), (3, 2), (9, 0), (9, 3)] {
        let zone: Own = zone(16 * 512);
        let at = only_this(&zone, order);
        keeps(&zone, at, order);
        let (free_before, cached) = (zone.free_frames(), zone.cached_frames());
        free(&zone, at, part);
        assert_eq!(zone.free_frames(), free_before + (1 << part));
        assert_eq!(zone.cached_frames(), cached);
        assert!(refused_by_a_drain(&zone) > 0, "{part} of {order}");
        assert_eq!(sound(&zone).allocated, (1 << order) - (1 << part));
    }
}

#[test]
fn a_cached_frame_is_one_in_use_to_the_store() {
    let zone: Own = zone(4096);
    for order in [0, 1, 2, 3, 9] {
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        keeps(&zone, at, order);
        assert_in_use(&zone, at, order);
        assert!(sound(&zone).cached >= 1 << order);
    }
    assert_eq!(refused_by_a_drain(&zone), 0);
    is_all_free(&zone);
}

#[test]
fn a_stash_keeps_nothing_of_a_block_that_is_isolated_in_part() {
    let zone: Own = zone(4096);
    for order in [0, 1, 2, 3, 9] {
        let at = only_this(&zone, order);
        let block = at.align_down(Order::HUGE).number();
        let part = range(block + 500, block + 510);
        assert_eq!(zone.isolate(part), Ok(()));
        free(&zone, at, order);
        assert_eq!(zone.cached_frames(), 0, "order {order}");
        zone.unisolate(part);
        is_all_free(&zone);
    }
}

#[test]
fn frames_outside_the_span_are_refused_however_far_away() {
    let zone: Bricks<Shared> = zone_on(4096, Cpus::new());
    let end = zone.span().end.number();
    for at in [end, end + 1, 1 << 40, usize::MAX - 1, usize::MAX].map(Frame::new) {
        for order in [0, 1, 3, 9].map(Order::new) {
            let refused = zone.free(at, order);
            assert_eq!(refused, Err(FreeError::NotOwned), "{at} {order}");
        }
        let (freed, error) = (0, FreeError::NotOwned);
        let refused = zone.free_bulk(&[at; 20]);
        assert_eq!(refused, Err(BulkFreeError { freed, error }));
    }
    assert_eq!(zone.check().err(), None);
}
