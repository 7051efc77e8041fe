//! Every order, parts of a block, limits, spans of any alignment.

use super::*;

// ---- every order ----

#[test]
fn every_order_up_to_a_gigabyte_can_be_taken_is_aligned_and_comes_back_whole() {
    let zone: Plain = full(&gigabytes(), Cpus::new());
    for mobility in Mobility::ALL {
        for order in 0..=18 {
            let block = zone.alloc(&request(order, mobility)).unwrap();
            assert!(block.is_aligned(Order::new(order)));
            assert_eq!(zone.free_frames(), (3 << 18) - (1 << order));
            let (first, state) = zone.block_of(block.plus((1 << order) - 1)).unwrap();
            let found = (first, state.usage, state.order, state.kind);
            let expected = (block, Use::Allocated, Order::new(order), mobility.into());
            assert_eq!(found, expected);
            free(&zone, block, order);
            assert_eq!(zone.free_counts().by_order[18], 3, "order {order}");
        }
        let all = take_all_of(&zone, 18, mobility);
        assert_eq!(all.len(), 3);
        for block in all {
            free(&zone, block, 18);
        }
    }
    assert_eq!(sound(&zone).free, 3 << 18);
}

#[test]
fn all_orders_live_side_by_side_without_sharing_a_frame() {
    let plan = gigabytes();
    let zone: Plain = full(&plan, Cpus::new());
    let mut owned = Owned::none_of(plan.span);
    let mut held = Vec::new();
    for mobility in Mobility::ALL {
        // Of 2^18 + ... + 1 frames there is room for one in each gigabyte but for the gigabyte
        // itself.
        for order in 0..=17 {
            let block = zone.alloc(&request(order, mobility)).unwrap();
            owned.take(block, order);
            held.push((block, order));
        }
    }
    let census = sound(&zone);
    assert_eq!(census.allocated, 3 * ((1 << 18) - 1));
    assert_eq!(census.allocated, owned.count());
    for place in Dice::new(1).shuffled(held.len()) {
        let (block, order) = held[place];
        free(&zone, block, order);
    }
    assert_eq!(zone.free_counts().by_order[18], 3);
    sound(&zone);
}

#[test]
fn the_only_free_group_is_found_wherever_it_is() {
    for order in [9, 10, 13, 15, 16, 17] {
        let zone: Plain = full(&gigabytes(), Cpus::new());
        let size = 1 << order;
        let held = take_all_of(&zone, order, Mobility::Unmovable);
        assert_eq!(held.len() * size, 3 << 18);
        let last = held.len() - 1;
        for n in [0, 1, held.len() / 2, last - 1, last] {
            let at = frame(n * size);
            free(&zone, at, order);
            for mobility in Mobility::ALL {
                assert_eq!(zone.alloc(&request(order, mobility)), Ok(at), "{order}");
                let more = zone.alloc(&request(order, mobility));
                assert_eq!(more, Err(exhausted(0, 0)));
                free(&zone, at, order);
            }
            assert_eq!(zone.alloc(&request(order, Mobility::Movable)), Ok(at));
        }
        sound(&zone);
    }
}

#[test]
fn free_blocks_that_are_neighbours_but_no_aligned_group_do_not_serve_a_wider_order() {
    let zone = in_use(8, Mobility::Movable);
    // 1 and 2 are adjacent, 4 and 6 are not, and none is a pair.
    for block in [1, 2, 4, 6] {
        free(&zone, frame(block * BLOCK), 9);
    }
    let wide = request(10, Mobility::Movable);
    let why = fragmented(10, 4 * BLOCK);
    assert_eq!(zone.alloc(&wide), Err(why));
    free(&zone, frame(7 * BLOCK), 9);
    assert_eq!(zone.alloc(&wide), Ok(frame(6 * BLOCK)));
    sound(&zone);
}

// ---- parts of a block ----

/// A zone of just one block of `order` (or of a page block, where that is more), which is held.
fn held_as_one(order: u8) -> Plain {
    let zone: Plain = full(&linux(1 << order.max(9)), Cpus::new());
    let wanted = request(order, Mobility::Movable);
    assert_eq!(zone.alloc_at(frame(0), &wanted), Ok(()));
    // What is left is held too, so that nothing else can serve.
    take_all_of(&zone, order, Mobility::Movable);
    assert_eq!(zone.free_frames(), 0);
    zone
}

/// All of the block at 0 has come back: it is one free block, and can be taken whole.
fn is_one_again(zone: &Plain, order: u8) {
    assert_eq!(sound(zone).free, 1 << order);
    let counts = zone.free_counts();
    assert_eq!((counts.blocks(), counts.by_order[order as usize]), (1, 1));
    let (first, state) = zone.block_of(frame((1 << order) - 1)).expect("memory");
    // What is free is told page block by page block.
    let told = Order::new(order.min(9));
    let free = (frame((1 << order) - 1).align_down(told), Use::Free, told);
    assert_eq!((first, state.usage, state.order), free);
    let whole = zone.alloc(&request(order, Mobility::Unmovable));
    assert_eq!(whole, Ok(frame(0)));
}

#[test]
fn a_block_is_freed_in_parts_of_any_size_in_any_order_and_merges() {
    let mut dice = Dice::new(8);
    for order in [8_u8, 9, 10] {
        for part in 0..=order {
            let parts = 1 << (order - part);
            let rising: Vec<usize> = (0..parts).collect();
            let falling = rising.iter().rev().copied().collect();
            for places in [rising, falling, dice.shuffled(parts)] {
                let zone = held_as_one(order);
                for (freed, &place) in places.iter().enumerate() {
                    let at = frame(place << part);
                    free(&zone, at, part);
                    if freed % 29 == 0 {
                        assert_eq!(sound(&zone).free, (freed + 1) << part);
                    }
                    // Once.
                    let again = zone.free(at, Order::new(part));
                    assert_eq!(again, Err(FreeError::DoubleFree));
                }
                is_one_again(&zone, order);
            }
        }
    }
}

#[test]
fn a_gigabyte_is_freed_in_parts() {
    let zone: Plain = full(&gigabytes(), Cpus::new());
    let mut dice = Dice::new(18);
    let wanted = request(18, Mobility::Movable);
    for part in [9, 10, 12, 15, 16, 17] {
        let block = zone.alloc(&wanted).unwrap();
        for place in dice.shuffled(1 << (18 - part)) {
            free(&zone, block.plus(place << part), part);
        }
        assert_eq!(zone.free_counts().by_order[18], 3, "part {part}");
        sound(&zone);
    }
    // One frame out of the middle: each half, quarter, ... without it can be freed as what it is.
    let block = zone.alloc(&wanted).unwrap();
    let hole = block.plus(5 * BLOCK + 17);
    free(&zone, hole, 0);
    for order in 0..18 {
        let part = hole.buddy(Order::new(order)).align_down(Order::new(order));
        free(&zone, part, order);
        sound(&zone);
    }
    assert_eq!(zone.free_counts().by_order[18], 3);
}

#[test]
fn what_is_left_of_a_block_is_the_largest_parts_that_there_can_be() {
    let zone = held_as_one(10);
    free(&zone, frame(700), 2);
    let below = [(0, 9), (512, 7), (640, 5), (672, 4), (688, 3), (696, 2)];
    for (at, order) in below.into_iter().chain([(704, 6), (768, 8)]) {
        assert_in_use(&zone, frame(at), order);
    }
    sound(&zone);
}

// ---- limits ----

#[test]
fn a_limited_request_lies_below_its_limit_and_gets_all_that_does() {
    let limits = [0, 1, 63, 64, 65, 100, 511, 512, 513, 1000, 1024, 2048, 3000];
    for order in 0..=10 {
        for limit in limits {
            for mobility in Mobility::ALL {
                let zone = blocks(8);
                let wanted = request(order, mobility).below(frame(limit));
                let held: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&wanted).ok()).collect();
                assert_eq!(held.len(), limit >> order, "{order} below {limit}");
                let end = |at: &Frame| at.plus(1 << order) <= frame(limit);
                assert!(held.iter().all(end), "{order} below {limit}");
                let limit = frame(limit);
                let refused = Err(AllocError::LimitUnsatisfiable { limit });
                assert_eq!(zone.alloc(&wanted), refused);
                sound(&zone);
            }
        }
    }
}

#[test]
fn a_limit_behind_the_zone_is_none() {
    for limit in [8 * BLOCK, 8 * BLOCK + 1, usize::MAX] {
        let zone = blocks(8);
        let wanted = MOVABLE.below(frame(limit));
        // From the high end, as without it.
        let at = zone.alloc(&wanted).unwrap();
        assert_eq!(at.number() / BLOCK, 7);
        take_all(&zone, Mobility::Movable);
        assert_eq!(zone.alloc(&wanted), Err(exhausted(0, 0)));
    }
}

#[test]
fn a_limit_is_kept_in_blocks_that_others_have_used() {
    // Every second frame of 0..1024 is free.
    let zone = blocks(4);
    take_all(&zone, Mobility::Movable);
    for at in (0..1024).step_by(2) {
        free(&zone, frame(at), 0);
    }
    let mut bulk = [Frame::new(0); 400];
    let wanted = UNMOVABLE.below(frame(700));
    assert_eq!(zone.alloc_bulk(&wanted, &mut bulk), Ok(350));
    assert!(bulk[..350].iter().all(|&at| at < frame(700)));
    sound(&zone);
    assert_eq!(take_all(&zone, Mobility::Unmovable).len(), 512 - 350);
}

// ---- spans of any alignment ----

#[test]
fn a_span_begins_and_ends_in_the_middle_of_blocks_and_groups() {
    let far = (1 << 40) + 3 * 1024 + 700;
    for (start, len) in [
        (1, 900),
        (63, 2),
        (700, 5000),
        (513, 511),
        (1500, 3000),
        (far, 4321),
    ] {
        let plan = linux_at(start, start + len);
        for order in 0..=10 {
            let size = 1 << order;
            let first = start.next_multiple_of(size);
            let there = (start + len).saturating_sub(first) / size;
            for mobility in Mobility::ALL {
                let zone: Plain = full(&plan, Cpus::new());
                let mut owned = Owned::none_of(plan.span);
                let held = take_all_of(&zone, order, mobility);
                assert_eq!(held.len(), there, "order {order} of {len} from {start}");
                for &at in &held {
                    owned.take(at, order);
                }
                sound(&zone);
                give_all(&zone, &held, order);
                assert_eq!(sound(&zone).free, len);
            }
        }
    }
}

#[test]
fn a_span_that_begins_inside_a_gigabyte_has_just_the_gigabytes_that_it_covers() {
    let start = (5 << 18) + 300 * BLOCK + 17;
    let plan = ZonePlan {
        max_order: Order::MAX,
        ..linux_at(start, start + (2 << 18))
    };
    let zone: Plain = full(&plan, Cpus::new());
    let gigabyte = request(18, Mobility::Movable);
    assert_eq!(zone.alloc(&gigabyte), Ok(frame(6 << 18)));
    assert!(zone.alloc(&gigabyte).is_err());
    // 300 blocks into it and a part of one: of 256 blocks none is left before, one behind.
    let half = request(17, Mobility::Unmovable);
    assert_eq!(zone.alloc(&half), Ok(frame(7 << 18)));
    sound(&zone);
    free(&zone, frame(6 << 18), 18);
    free(&zone, frame(7 << 18), 17);
    assert_eq!(sound(&zone).free, 2 << 18);
}

#[test]
fn frames_of_the_first_block_that_lie_before_the_span_are_nobodys() {
    let plan = linux_at(100, 1000);
    let zone: Plain = full(&plan, Cpus::new());
    let before = seen(&zone);
    for at in [0, 99, 1000, 1023, 1024, 5000, 1 << 50] {
        assert_eq!(zone.free(frame(at), Order::ZERO), Err(FreeError::NotOwned));
        assert_eq!(zone.block_of(frame(at)), None);
        assert!(!zone.has(frame(at)));
        let outside = Err(RangeError::OutsideSpan { span: plan.span });
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), outside);
    }
    assert_eq!(seen(&zone), before);
}
