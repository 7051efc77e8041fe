//! Other orders, and many frames at once.

use super::*;

// ---- other orders ----

#[test]
fn small_orders_are_fetched_and_kept_up_to_16_at_a_time() {
    for order in 1..=5 {
        let zone: Own = zone(8192);
        let take = |count| take_of(&zone, count, order, Mobility::Movable);
        let held = take(17);
        // They come from one word, in rising order: of order 3 it has 8.
        let fetched = 16.min(64 >> order);
        for pair in held[..fetched.min(8)].windows(2) {
            assert_eq!(pair[1], pair[0].plus(1 << order), "order {order}");
        }
        let mut kept = 17_usize.next_multiple_of(fetched) - 17;
        assert_eq!(zone.cached_frames(), kept << order);
        for &at in &held {
            // A full array gives back its colder three quarters.
            kept = if kept == 16 { 5 } else { kept + 1 };
            free(&zone, at, order);
            assert_eq!(zone.cached_frames(), kept << order);
            sound(&zone);
        }
        assert_eq!(usage(&zone, held[0]), Use::Free);
        // The last comes first.
        let again = take(kept.min(8));
        assert!(again.iter().eq(held.iter().rev().take(again.len())));
        zone.drain();
        for at in again.into_iter().rev() {
            free(&zone, at, order);
        }
        zone.drain();
        assert_eq!(sound(&zone).free, 8192);
    }
}

#[test]
fn each_small_order_and_mobility_has_an_array_of_its_own() {
    let zone: Own = zone(16 * 512);
    let mut held = Vec::new();
    for mobility in Mobility::ALL {
        for order in 1..=5 {
            let at = zone.alloc(&request(order, mobility)).unwrap();
            held.push((at, order, mobility));
        }
    }
    // Each array was fetched for by itself, and the arrays keep what is left.
    let left = zone.cached_frames();
    for &(at, order, _) in &held {
        free(&zone, at, order);
    }
    assert_eq!(zone.cached_frames(), left + 3 * (2 + 4 + 8 + 16 + 32));
    for &(at, order, mobility) in &held {
        assert_eq!(zone.alloc(&request(order, mobility)), Ok(at));
    }
    assert_eq!(zone.cached_frames(), left);
}

/// Small blocks that are fetched among frames in use are those that are free, each once, and whole
/// words remain whole.
#[test]
fn what_is_fetched_of_a_small_order_is_free_and_nobody_elses() {
    for order in 1..=5 {
        for seed in 0..20 {
            let zone: Own = zone(8 * 512);
            let mut dice = Dice::new(seed);
            let mut owned = Owned::none_of(zone.span());
            let all = take_all(&zone, Mobility::Movable);
            for place in dice.shuffled(all.len()).into_iter().take(3000) {
                free(&zone, all[place], 0);
            }
            zone.drain();
            for &at in &all {
                if usage(&zone, at) == Use::Allocated {
                    owned.take(at, 0);
                }
            }
            let runs = zone.free_counts().suitable(Order::new(order));
            let mut held = Vec::new();
            while let Ok(at) = zone.alloc(&request(order, Mobility::Movable)) {
                owned.take(at, order);
                held.push(at);
            }
            assert_eq!(held.len(), runs, "order {order}, seed {seed}");
            sound(&zone);
            for place in dice.shuffled(held.len()) {
                owned.give(held[place], order);
                free(&zone, held[place], order);
                sound(&zone);
            }
            zone.drain();
            assert_eq!(zone.free_counts().suitable(Order::new(order)), runs);
        }
    }
}

/// A second free of a small block in a stash is refused when it comes to the store, once.
#[test]
fn a_small_block_that_was_freed_twice_is_counted_late() {
    for order in 1..=5_u8 {
        let zone: Own = zone(8192);
        let held = take_of(&zone, 8, order, Mobility::Movable);
        for at in [held[0], held[1], held[0]] {
            assert_eq!(zone.free(at, Order::new(order)), Ok(()));
        }
        zone.drain();
        assert_eq!(zone.refused_late(), 1 << order);
        // Nor does one that was freed in parts meanwhile come back twice.
        free(&zone, held[2], order);
        zone.free(held[2], Order::ZERO).unwrap();
        zone.drain();
        assert!(zone.refused_late() > 1 << order);
        give_all(&zone, &held[3..], order);
        zone.drain();
        assert!(zone.free_frames() <= 8192);
    }
}

#[test]
fn orders_that_have_no_array_go_to_the_store() {
    let zone: Own = zone(16 * 512);
    for order in [6, 7, 8, 10] {
        use_one(&zone, &request(order, Mobility::Movable));
        assert_eq!((zone.free_frames(), zone.cached_frames()), (16 * 512, 0));
    }
}

#[test]
fn page_blocks_are_kept_up_to_8_and_the_last_comes_first() {
    for block_order in [6, 9] {
        let plan = ZonePlan {
            page_block_order: Order::new(block_order),
            ..linux(64 << block_order)
        };
        let zone: Own = full(&plan, Cpus::new());
        let take = |count| take_of(&zone, count, block_order, Mobility::Unmovable);
        let held = take(20);
        zone.drain();
        let cached = |blocks| assert_eq!(zone.cached_frames(), blocks << block_order);
        for (i, &at) in held[..8].iter().enumerate() {
            free(&zone, at, block_order);
            cached(i + 1);
        }
        let again = take(8);
        assert!(again.iter().eq(held[..8].iter().rev()));
        cached(0);
        for at in held {
            free(&zone, at, block_order);
            assert!(zone.cached_frames() <= 8 << block_order);
        }
        assert!(zone.cached_frames() > 0);
        sound(&zone);
        zone.drain();
        assert_eq!(sound(&zone).free, 64 << block_order);
        assert_eq!(zone.free_counts().suitable(Order::new(block_order)), 64);
    }
}

#[test]
fn the_last_page_blocks_of_a_zone_are_all_to_be_had() {
    for blocks in 1..=9 {
        let zone: Own = zone(blocks * 512);
        let huge = request(9, Mobility::Movable);
        let held: Vec<_> = core::iter::from_fn(|| zone.alloc(&huge).ok()).collect();
        assert_eq!(held.len(), blocks);
        assert_eq!(zone.alloc(&huge), Err(exhausted(0, 0)));
        give_all(&zone, &held, 9);
        // What lies in the stash serves other orders and mobilities too: it is drained before a
        // refusal.
        assert_eq!(take_all(&zone, Mobility::Unmovable).len(), blocks * 512);
        sound(&zone);
    }
}

#[test]
fn a_part_of_a_larger_block_goes_to_the_store() {
    let zone: Own = zone(8192);
    for (order, part) in [(3, 0), (3, 1), (2, 1), (9, 0), (9, 3), (4, 3), (10, 9)] {
        let block = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        zone.drain();
        // The array of such parts has room from now on.
        use_one(&zone, &request(part, Mobility::Movable));
        let cached = zone.cached_frames();
        free(&zone, block, part);
        assert_eq!(zone.cached_frames(), cached, "{part} of {order}");
        assert_eq!(usage(&zone, block), Use::Free);
        let size = 1 << part;
        let rest = FrameRange::new(block.number() + size, block.number() + (1 << order));
        assert_eq!(zone.free_range(rest), Ok(()));
        zone.drain();
        assert_eq!(sound(&zone).free, 8192);
    }
}

// ---- many at once ----

#[test]
fn a_batch_that_the_stash_holds_goes_through_it() {
    let zone: Own = zone(64 * 512);
    let frames = take_bulk(&zone, &MOVABLE, 16);
    assert_eq!(zone.cached_frames(), 16);
    assert_eq!(zone.free_bulk(&frames), Ok(()));
    assert_eq!(zone.cached_frames(), 32);
    let again = take(&zone, 16, Mobility::Movable);
    assert!(again.iter().eq(frames.iter().rev()));
}

#[test]
fn a_batch_larger_than_the_stash_goes_straight_to_the_store() {
    let zone: Own = zone(64 * 512);
    for mobility in Mobility::ALL {
        take(&zone, 1, mobility);
        let cached = zone.cached_frames();
        let mut frames = vec![Frame::new(0); MOST + 1];
        let free_before = zone.free_frames();
        let page = Request::page(mobility);
        assert_eq!(zone.alloc_bulk(&page, &mut frames), Ok(MOST + 1));
        assert_eq!(zone.cached_frames(), cached);
        assert_eq!(zone.free_frames(), free_before - (MOST + 1));
        sound(&zone);
        assert_eq!(zone.free_bulk(&frames), Ok(()));
        assert_eq!(zone.cached_frames(), cached);
        assert_eq!(zone.free_frames(), free_before);
        sound(&zone);
    }
}

#[test]
fn a_batch_takes_and_gives_whole_words() {
    // From memory that is free as a whole: each word is handed out as it is.
    let zone: Own = zone(64 * 512);
    let frames = take_bulk(&zone, &MOVABLE, 2048);
    for word in frames.chunks(64) {
        assert!(word[0].is_aligned(Order::new(6)));
        assert!(word.windows(2).all(|pair| pair[0].plus(1) == pair[1]));
    }
}

#[test]
fn a_batch_gets_what_lies_in_every_stash_too() {
    let cpus = Cpus::new();
    let zone: Lent = zone_on(2048, cpus);
    for cpu in 1..4 {
        cpus.switch_to(cpu);
        take(&zone, 1, Mobility::Unmovable);
    }
    let there = zone.free_frames() + zone.cached_frames();
    assert!(zone.cached_frames() > 0);
    cpus.switch_to(0);
    let mut frames = vec![Frame::new(0); 2048];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Ok(there));
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Err(exhausted(0, 0)));
    sound(&zone);
}

#[test]
fn a_batch_is_freed_up_to_the_first_bad_frame() {
    let zone: Own = zone(8192);
    for len in [10, 1000] {
        for (bad, error) in [
            (frame(9000), FreeError::NotOwned),
            (zone.span().start, FreeError::DoubleFree),
        ] {
            let mut list = take_bulk(&zone, &MOVABLE, len);
            let before = zone.free_frames() + zone.cached_frames();
            list.insert(len / 2, bad);
            let freed = len / 2;
            assert_eq!(zone.free_bulk(&list), Err(BulkFreeError { freed, error }));
            assert_eq!(zone.free_frames() + zone.cached_frames(), before + freed);
            assert_eq!(zone.free_bulk(&list[freed + 1..]), Ok(()));
            sound(&zone);
        }
    }
}

#[test]
fn a_batch_that_names_a_frame_twice_in_a_row_is_refused_at_the_second() {
    let zone: Own = zone(8192);
    let held = take(&zone, 40, Mobility::Movable);
    for place in [1, 20, 39] {
        let mut list = held[..place].to_vec();
        list.push(held[place - 1]);
        let (freed, error) = (place, FreeError::DoubleFree);
        let refused = zone.free_bulk(&list);
        assert_eq!(refused, Err(BulkFreeError { freed, error }));
        // And the frame freed last by a batch.
        let again = zone.free_bulk(&list[place..]);
        assert_eq!(again, Err(BulkFreeError { freed: 0, error }));
        sound(&zone);
        assert_eq!(take(&zone, place, Mobility::Movable).len(), place);
    }
}

#[test]
fn each_frame_of_a_batch_goes_to_the_array_of_its_mobility() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let lists = Mobility::ALL.map(|mobility| in_interrupt(cpus, || take(&zone, 10, mobility)));
    let mixed: Vec<Frame> = (0..30).map(|i| lists[i % 3][i / 3]).collect();
    assert_eq!(zone.free_bulk(&mixed), Ok(()));
    assert_eq!(zone.cached_frames(), 30);
    for (mobility, list) in Mobility::ALL.into_iter().zip(lists) {
        let again = take(&zone, 10, mobility);
        assert!(again.iter().eq(list.iter().rev()), "{mobility:?}");
    }
    sound(&zone);
}

/// A quick count of the free frames, somewhat too low, is only good enough where it is more than
/// all that may be fetched.
#[test]
fn page_blocks_are_fetched_down_to_the_watermark_exactly() {
    for frames in [1 << 14, 1 << 18] {
        for blocks in 1..frames / 512 {
            let zone: Own = sized(frames, StashSizes::LARGEST);
            let low = frames - blocks * 512;
            set_marks(&zone, all_at(low));
            let huge = request(9, Mobility::Movable);
            let first = zone.alloc_above(&huge, Mark::Low).unwrap();
            let more = (blocks.min(8) - 1) * 512;
            assert_eq!(zone.cached_frames(), more, "{blocks} of {frames}");
            free(&zone, first, 9);
        }
    }
}
