//! Which block serves a request, and what it falls back on.

use super::*;

// ---- which block serves ----

#[test]
fn unmovable_and_reclaimable_requests_grow_from_the_low_end_and_movable_ones_from_the_high_end() {
    for order in [0, 3, 6, 7, 8] {
        let zone = blocks(8);
        let block_of = |mobility| {
            let at = zone.alloc(&request(order, mobility)).unwrap();
            at.number() / BLOCK
        };
        assert_eq!(block_of(Mobility::Unmovable), 0, "order {order}");
        assert_eq!(block_of(Mobility::Movable), 7, "order {order}");
        assert_eq!(block_of(Mobility::Reclaimable), 1, "order {order}");
        // Each stays where it is.
        assert_eq!(block_of(Mobility::Movable), 7, "order {order}");
        assert_eq!(block_of(Mobility::Unmovable), 0, "order {order}");
        assert_eq!(block_of(Mobility::Reclaimable), 1, "order {order}");
        sound(&zone);
    }
}

#[test]
fn whole_blocks_and_groups_come_from_the_same_ends() {
    for order in [9, 10] {
        let zone = blocks(8);
        let group = 1 << (order - 9);
        let block_of = |mobility| {
            let at = zone.alloc(&request(order, mobility)).unwrap();
            at.number() / BLOCK
        };
        assert_eq!(block_of(Mobility::Unmovable), 0);
        assert_eq!(block_of(Mobility::Movable), 8 - group);
        assert_eq!(block_of(Mobility::Reclaimable), group);
        assert_eq!(block_of(Mobility::Movable), 8 - 2 * group);
    }
}

#[test]
fn the_ends_meet_block_by_block_and_each_block_serves_one_mobility() {
    let zone = blocks(8);
    let mut owner = [None; 8];
    for _ in 0..BLOCK {
        for (mobility, times) in [
            (Mobility::Unmovable, 2),
            (Mobility::Movable, 4),
            (Mobility::Reclaimable, 2),
        ] {
            for at in take(&zone, times, mobility) {
                let owner = owner[at.number() / BLOCK].get_or_insert(mobility);
                assert_eq!(*owner, mobility, "{at}");
            }
        }
    }
    assert_eq!(zone.free_frames(), 0);
    assert_eq!(owner[4..], [Some(Mobility::Movable); 4]);
    assert_eq!(zone.fallbacks(), (0, 0));
    sound(&zone);
}

#[test]
fn the_fullest_block_serves_and_one_that_is_free_as_a_whole_is_opened_last() {
    let free = [(1, 300), (2, 10), (3, 100), (4, BLOCK)];
    for mobility in Mobility::ALL {
        let zone = in_use_but(6, mobility, &free);
        let held = take(&zone, 10 + 100 + 300 + BLOCK, mobility);
        let expected = [(2, 10), (3, 100), (1, 300), (4, BLOCK)];
        assert_eq!(runs_of(&held), expected, "{mobility:?}");
        assert_eq!(zone.fallbacks(), (0, 0));
        sound(&zone);
    }
}

#[test]
fn of_equally_full_blocks_the_one_nearest_to_the_end_of_its_mobility_serves() {
    let free = [(1, 100), (2, 100), (3, 100)];
    let falling = [(3, 100), (2, 100), (1, 100)];
    for (mobility, runs) in [(Mobility::Movable, falling), (Mobility::Unmovable, free)] {
        let zone = in_use_but(5, mobility, &free);
        assert_eq!(runs_of(&take(&zone, 300, mobility)), runs);
    }
}

#[test]
fn many_frames_at_once_come_from_the_same_blocks_as_one_by_one() {
    let free = [(1, 300), (2, 10), (3, 100), (4, BLOCK)];
    let zone = in_use_but(6, Mobility::Unmovable, &free);
    let held = take_bulk(&zone, &UNMOVABLE, 922);
    assert_eq!(runs_of(&held), [(2, 10), (3, 100), (1, 300), (4, BLOCK)]);
    sound(&zone);
    assert_eq!(zone.free_bulk(&held), Ok(()));
    sound(&zone);
}

#[test]
fn a_run_comes_from_the_block_whose_largest_run_is_the_least_that_serves() {
    for mobility in Mobility::ALL {
        // Runs of order 8, 3 and 5, and a block of single frames that does not serve at all.
        let zone = in_use_but(6, mobility, &[(1, 256), (2, 8), (3, 32)]);
        for single in (0..200).step_by(2) {
            free(&zone, frame(4 * BLOCK + single), 0);
        }
        let held = take_all_of(&zone, 3, mobility);
        assert_eq!(runs_of(&held), [(2, 1), (3, 4), (1, 32)], "{mobility:?}");
        assert_eq!(zone.alloc(&request(3, mobility)), Err(fragmented(3, 100)));
        sound(&zone);
    }
}

#[test]
fn inside_a_word_the_smallest_run_is_broken() {
    for mobility in Mobility::ALL {
        // Runs of order 4, 3 and 2.
        let zone = in_use(1, mobility);
        for (start, end) in [(0, 16), (24, 32), (36, 40)] {
            assert_eq!(zone.free_range(range(start, end)), Ok(()));
        }
        let served = |order| zone.alloc(&request(order, mobility)).unwrap().number();
        assert_eq!(served(1), 36);
        assert_eq!(served(0), 38);
        assert_eq!(served(0), 39);
        // The run of order 3 is broken before that of order 4, and what is left of it before it
        // again.
        assert_eq!(served(1), 24);
        assert_eq!(served(2), 28);
        assert_eq!(served(0), 26);
        assert_eq!(served(0), 27);
        assert_eq!(served(3), 0);
        assert_eq!(served(3), 8);
        assert_eq!(zone.free_frames(), 0);
        sound(&zone);
    }
}

#[test]
fn over_words_the_smallest_run_is_broken() {
    let zone = in_use(1, Mobility::Unmovable);
    // Of order 8 and of order 7.
    assert_eq!(zone.free_range(range(0, 256)), Ok(()));
    assert_eq!(zone.free_range(range(384, 512)), Ok(()));
    let served = |order| {
        let block = zone.alloc(&request(order, Mobility::Unmovable));
        block.unwrap().number()
    };
    assert_eq!(served(7), 384);
    assert_eq!(served(7), 0);
    assert_eq!(served(7), 128);
}

#[test]
fn a_run_is_broken_before_a_block_is_opened() {
    for order in 0..=8 {
        let zone = in_use_but(4, Mobility::Movable, &[(1, 256), (2, BLOCK)]);
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        assert_eq!(at.number() / BLOCK, 1, "order {order}");
    }
}

#[test]
fn the_only_free_frame_is_found_wherever_it_is_and_whatever_its_block_is_for() {
    for mobility in Mobility::ALL {
        let zone = in_use(70, mobility);
        for at in [0, 1, 63, 64, 511, 512, 40 * BLOCK + 77, 70 * BLOCK - 1] {
            free(&zone, frame(at), 0);
            for wanted in Mobility::ALL {
                assert_eq!(zone.alloc(&Request::page(wanted)), Ok(frame(at)));
                assert_eq!(zone.alloc(&Request::page(wanted)), Err(exhausted(0, 0)));
                free(&zone, frame(at), 0);
            }
            assert_eq!(zone.alloc(&MOVABLE), Ok(frame(at)));
        }
        sound(&zone);
    }
}

#[test]
fn the_only_run_is_found_among_single_frames_all_over_memory() {
    for order in 1..=8 {
        let zone = in_use(66, Mobility::Movable);
        for block in 0..66 {
            free(&zone, frame(block * BLOCK + 3), 0);
        }
        let wanted = request(order, Mobility::Unmovable);
        let why = zone.alloc(&wanted).unwrap_err();
        let expected = match order {
            7.. => exhausted(66, 0),
            _ => fragmented(order, 66),
        };
        assert_eq!(why, expected);
        let run = frame(33 * BLOCK + 256);
        free(&zone, run, order);
        assert_eq!(zone.alloc(&wanted), Ok(run), "order {order}");
        sound(&zone);
    }
}

// ---- fallback ----

#[test]
fn an_unmovable_request_falls_back_on_the_emptiest_block_of_others() {
    for wanted in [UNMOVABLE, RECLAIMABLE] {
        let zone = in_use_but(6, Mobility::Movable, &[(1, 100), (2, 200), (3, 10)]);
        let at = zone.alloc(&wanted).unwrap();
        assert_eq!(at.number() / BLOCK, 2);
        // Less than half of it was free: it is mixed now, and the requester's, so that the next one
        // mixes no other.
        assert_eq!(blocks_of(&zone, Movable), 5);
        assert_eq!(zone.fallbacks(), (0, 1));
        assert_eq!(zone.alloc(&wanted).unwrap().number() / BLOCK, 2);
        assert_eq!(zone.fallbacks(), (0, 1));
        sound(&zone);
    }
}

#[test]
fn a_run_for_an_unmovable_request_comes_from_the_largest_run_of_others() {
    let zone = in_use_but(6, Mobility::Movable, &[(1, 16), (2, 128), (3, 8)]);
    let at = zone.alloc(&request(2, Mobility::Unmovable)).unwrap();
    assert_eq!(at.number() / BLOCK, 2);
    assert_eq!(zone.fallbacks(), (0, 1));
}

#[test]
fn a_movable_request_falls_back_on_the_fullest_block_of_others() {
    for mobility in [Mobility::Unmovable, Mobility::Reclaimable] {
        let zone = in_use_but(6, mobility, &[(1, 100), (2, 400), (3, 10)]);
        let held = take(&zone, 10, Mobility::Movable);
        assert_eq!(runs_of(&held), [(3, 10)]);
        assert_eq!(blocks_of(&zone, mobility.into()), 6);
        assert_eq!(zone.fallbacks(), (10, 0));
        sound(&zone);
    }
}

#[test]
fn a_movable_request_claims_a_block_from_half_free_on() {
    for (frames, claimed) in [(255, false), (256, true), (257, true), (511, true)] {
        let zone = in_use_but(3, Mobility::Unmovable, &[(1, frames)]);
        zone.alloc(&MOVABLE).unwrap();
        let kind = if claimed { Movable } else { Unmovable };
        assert_eq!(
            free_of(&zone, kind),
            frames - 1,
            "free frames are of its kind"
        );
        assert_eq!(blocks_of(&zone, Movable), usize::from(claimed));
        let counted = (u64::from(!claimed), u64::from(claimed));
        assert_eq!(zone.fallbacks(), counted);
        // A claimed block serves its new mobility without a fallback.
        zone.alloc(&MOVABLE).unwrap();
        let again = if claimed { (0, 1) } else { (2, 0) };
        assert_eq!(zone.fallbacks(), again);
        sound(&zone);
    }
}

#[test]
fn an_unmovable_request_claims_a_block_however_little_of_it_is_free() {
    for frames in [1, 2, 255, 256, 511] {
        let zone = in_use_but(3, Mobility::Movable, &[(1, frames)]);
        zone.alloc(&UNMOVABLE).unwrap();
        assert_eq!(blocks_of(&zone, Unmovable), 1);
        assert_eq!(zone.fallbacks(), (0, 1));
        sound(&zone);
    }
}

#[test]
fn a_block_that_is_free_as_a_whole_is_taken_before_a_fallback_and_is_none() {
    for mobility in Mobility::ALL {
        let zone = in_use_but(4, Mobility::Reclaimable, &[(2, BLOCK)]);
        let zone2 = in_use_but(4, Mobility::Movable, &[(1, 500), (2, BLOCK)]);
        for (zone, skip) in [(zone, Mobility::Reclaimable), (zone2, Mobility::Movable)] {
            if mobility == skip {
                continue;
            }
            let at = zone.alloc(&Request::page(mobility)).unwrap();
            assert_eq!(at.number() / BLOCK, 2);
            assert_eq!(zone.fallbacks(), (0, 0));
            assert_eq!(blocks_of(&zone, mobility.into()), 1);
        }
    }
}

#[test]
fn the_counters_of_fallbacks_add_up() {
    let zone = in_use_but(4, Mobility::Movable, &[(0, 300), (1, 100)]);
    // Claims the emptier one, uses it up, then the other.
    let held = take(&zone, 400, Mobility::Unmovable);
    assert_eq!(runs_of(&held), [(0, 300), (1, 100)]);
    assert_eq!(zone.fallbacks(), (0, 2));
    // Movable requests mix a block that is less than half free, each time anew.
    let zone = in_use_but(4, Mobility::Unmovable, &[(1, 100)]);
    take(&zone, 100, Mobility::Movable);
    assert_eq!(zone.fallbacks(), (100, 0));
}
