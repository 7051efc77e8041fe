//! Compaction, its deferral, and places that cannot become free.

use super::*;

// ---- compaction ----

#[test]
fn compaction_frees_a_block_and_loses_no_page() {
    let zones = [scattered(256)];
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let block = nodes.alloc(0, &request(5, Mobility::Unmovable)).unwrap();
    assert!(block.is_aligned(Order::new(5)));
    assert_eq!(owner.pages.borrow().len(), 128);
    owner.owns_what_is_in_use();
    assert_eq!(owner.reclaims.get(), 0);
    // Pages moved from the low end to the high end, each once.
    let moves = owner.moves.borrow();
    assert!(!moves.is_empty());
    assert!(moves.iter().all(|(from, to)| from < to));
    assert!(moves.is_sorted_by(|one, next| one.0 < next.0 && one.1 > next.1));
}

#[test]
fn all_of_a_zone_is_compacted_to_its_high_end() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    assert_eq!((compacted.why, compacted.caught), (Why::Complete, None));
    // The even pages of the lower half moved to the odd places of the upper half.
    assert_eq!((compacted.moved, compacted.stuck), (128, 0));
    assert_eq!(zone.free_counts().by_order[7], 2);
    assert_eq!(zone.free_frames(), 256);
    owner.owns_what_is_in_use();
}

#[test]
fn a_zone_with_compaction_off_is_not_compacted() {
    let zones = [scattered(256)];
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::PLAIN);
    assert!(nodes.alloc(0, &request(5, Mobility::Movable)).is_err());
    assert_eq!((owner.asked(), owner.reclaims.get()), (0, 1));
}

#[test]
fn places_that_cannot_become_free_are_left_alone() {
    let zone = in_use(256);
    for at in (0..256).step_by(4) {
        free(&zone, frame(at + 1), 0);
        free(&zone, frame(at + 3), 0);
    }
    // One page of the first and of the second place of 32 frames is unmovable.
    for at in [0, 32] {
        free(&zone, frame(at), 0);
        assert_eq!(zone.alloc_at(frame(at), &UNMOVABLE), Ok(()));
    }
    let owner = Owner::of(&zone);
    let compacted = zone.compact(&request(5, Mobility::Movable), &owner);
    assert_eq!(compacted.why, Why::Succeeded);
    // So the third is cleared: its 16 pages are moved, and none of the first two.
    assert_eq!((compacted.moved, compacted.stuck), (16, 0));
    let moves = owner.moves.borrow().clone();
    assert!(
        moves
            .iter()
            .all(|(from, _)| (64..96).contains(&from.number()))
    );
    assert_eq!(compacted.caught, Some(frame(64)));
    free(&zone, frame(64), 5);
    owner.owns_what_is_in_use();
}

#[test]
fn free_places_are_searched_in_movable_blocks_only() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    // The two highest page blocks are unmovable, and mostly free.
    let block = zone.alloc_at(frame(384), &request(7, Mobility::Movable));
    assert_eq!(block, Ok(()));
    take_all(&zone, Mobility::Movable);
    free(&zone, frame(384), 7);
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert!(page >= frame(384));
    for at in (1..384).step_by(2) {
        free(&zone, frame(at), 0);
    }
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    assert_eq!(compacted.moved, 96);
    let targets = owner.moves.borrow().iter().map(|(_, to)| *to).max();
    assert_eq!(targets, Some(frame(383)));
    owner.owns_what_is_in_use();
}

#[test]
fn blocks_are_moved_whole() {
    let zone = plain(256);
    for at in (0..256).step_by(8) {
        let pair = request(1, Mobility::Movable);
        assert_eq!(zone.alloc_at(frame(at), &pair), Ok(()));
    }
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    // 64 frames fit into the upper quarter, where 16 were already.
    assert!(compacted.moved >= 48, "{compacted:?}");
    assert_eq!(zone.free_counts().by_order[7], 1);
    owner.owns_what_is_in_use();
}

#[test]
fn pages_that_cannot_be_moved_stay_and_nothing_is_lost() {
    for answer in [Migration::Later, Migration::Never, Migration::Unknown] {
        let zone = scattered(256);
        let before = seen(&zone).1;
        let owner = Owner::returning(&zone, answer);
        let compacted = compact_all(&zone, &owner);
        assert_eq!((compacted.moved, compacted.why), (0, Why::Complete));
        assert_eq!(compacted.stuck, owner.asked());
        // Each page was requested once, and one free place was used for all.
        let moves = owner.moves.borrow();
        assert!(moves.is_sorted_by(|one, next| one.0 < next.0));
        assert!(moves.iter().all(|(_, to)| *to == moves[0].1));
        assert_eq!(seen(&zone).1, before, "{answer:?}");
        owner.owns_what_is_in_use();
    }
}

#[test]
fn a_page_no_longer_needed_is_freed_with_its_new_place() {
    let zone = scattered(256);
    let owner = Owner::returning(&zone, Migration::NotNeeded);
    let compacted = compact_all(&zone, &owner);
    let given_up = owner.asked();
    assert_eq!(compacted.moved + compacted.stuck, 0);
    assert!(given_up > 100);
    assert_eq!(zone.free_frames(), 128 + given_up);
    sound(&zone);
}

/// Returns how compaction of a zone of 512 frames for `order` ends when nothing can be moved and
/// only `free_blocks` of `size` are free.
fn end_of(order: u8, free_blocks: usize, size: u8, marks: Marks) -> Why {
    let zone = in_use(512);
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
    let frames = Order::new(size).frames();
    for n in 0..free_blocks {
        // Never two buddies.
        let first = frame(2 * frames * n);
        assert_eq!(zone.free_range(FrameRange::at(first, frames)), Ok(()));
    }
    zone.compact(&request(order, Mobility::Movable), &NoHooks)
        .why
}

const NO_MARKS: Marks = Marks {
    min: 0,
    low: 0,
    high: 0,
};

#[test]
fn compaction_needs_twice_the_block_free_above_the_min_mark() {
    assert_eq!(end_of(3, 16, 0, NO_MARKS), Why::TooLittleFree);
    assert_eq!(end_of(3, 17, 0, NO_MARKS), Why::Complete);
    let marks = Marks {
        min: 10,
        low: 60,
        high: 100,
    };
    assert_eq!(end_of(3, 26, 0, marks), Why::TooLittleFree);
    assert_eq!(end_of(3, 27, 0, marks), Why::Complete);
    // Above order 3 it is the low mark.
    assert_eq!(end_of(4, 92, 0, marks), Why::TooLittleFree);
    assert_eq!(end_of(4, 93, 0, marks), Why::Complete);
}

#[test]
fn a_lack_of_memory_is_not_compacted_above_order_3() {
    // Five blocks of half the size: 1000 - (1000 + 2500) / 5 = 300.
    assert_eq!(end_of(4, 5, 3, NO_MARKS), Why::NotFragmented);
    // Seven of them: 1000 - 4500 / 7 = 358.
    assert_eq!(end_of(4, 7, 3, NO_MARKS), Why::NotFragmented);
    // Nine blocks of a quarter: 1000 - (1000 + 2250) / 9 = 639.
    assert_eq!(end_of(4, 9, 2, NO_MARKS), Why::Complete);
    // Up to order 3 compaction is tried whatever the index.
    assert_eq!(end_of(3, 5, 2, NO_MARKS), Why::Complete);
}

#[test]
fn an_index_of_500_is_lack_and_501_is_not() {
    // For a request of 16 frames, 125 blocks of 8 and these of 4 and 2.
    let ends = |fours: usize, twos: usize| {
        let zone = in_use(4096);
        let sizes = [(125, 8), (fours, 4), (twos, 2)];
        let sizes = sizes
            .iter()
            .flat_map(|&(n, size)| core::iter::repeat_n(size, n));
        for (n, size) in sizes.enumerate() {
            let part = FrameRange::at(frame(16 * n), size);
            assert_eq!(zone.free_range(part), Ok(()));
        }
        let index = zone.free_counts().fragmentation_index(Order::new(4));
        let asked = request(4, Mobility::Movable);
        (index, zone.compact(&asked, &NoHooks).why)
    };
    // 1016 frames: 1000 - (1000 + 63500) / 129 = 1000 - 500. 1014 frames: 1000 - (1000 + 63375) /
    // 129 = 1000 - 499.
    assert_eq!(ends(4, 0), (500, Why::NotFragmented));
    assert_eq!(ends(3, 1), (501, Why::Complete));
}

#[test]
fn frames_held_back_from_the_request_are_not_free_for_copies() {
    let zone = in_use(256);
    let mut reserve = [0; ZoneKind::COUNT];
    reserve[ZoneKind::Movable.index()] = 20;
    zone.watermarks().set(NO_MARKS, reserve);
    let asked = request(3, Mobility::Movable);
    for n in 0..36 {
        free(&zone, frame(2 * n), 0);
    }
    // 20 held back and twice 8 for the copies.
    let why = || zone.compact(&asked, &NoHooks).why;
    assert_eq!(why(), Why::TooLittleFree);
    free(&zone, frame(200), 0);
    assert_eq!(why(), Why::Complete);
}

/// Returns the number of passes of compaction over a zone for one request of `order`, where nothing
/// can be moved and reclaim reports that it frees something.
fn passes_for(order: u8) -> usize {
    struct Hopeful(Cell<usize>);
    impl Migrate for Hopeful {
        fn migrate(&self, from: Frame, _: Order, _: Frame) -> Migration {
            self.0.set(self.0.get() + usize::from(from == frame(0)));
            Migration::Later
        }
    }
    impl Reclaim for Hopeful {
        fn reclaim(&self, _: &Need) -> usize {
            1
        }
    }
    let zones = [scattered(256)];
    let hopeful = Hopeful(Cell::new(0));
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hopeful, SlowPath::MODERN);
    assert!(nodes.alloc(0, &request(order, Mobility::Movable)).is_err());
    hopeful.0.get()
}

#[test]
fn compaction_is_tried_16_times_up_to_order_3_and_4_times_above() {
    // Of 16 attempts the first, the third, the seventh and the fifteenth are not deferred; of 4 the
    // first and the third.
    assert_eq!(passes_for(3), 4);
    assert_eq!(passes_for(4), 2);
}

// ---- deferral ----

/// Returns how often compaction for `order` is skipped before each of the next `attempts` attempts,
/// where nothing can be moved.
fn skips(zone: &Plain, order: u8, attempts: usize) -> Vec<usize> {
    let asked = request(order, Mobility::Movable);
    let next = || {
        let mut skipped = 0;
        while zone.compact(&asked, &NoHooks).why == Why::Deferred {
            skipped += 1;
        }
        skipped
    };
    core::iter::repeat_with(next).take(attempts).collect()
}

#[test]
fn deferral_doubles_with_each_failure_up_to_every_64th() {
    let zone = scattered(256);
    // Every attempt, every second, every fourth ... is made; the others are skipped.
    assert_eq!(skips(&zone, 3, 9), [0, 1, 3, 7, 15, 31, 63, 63, 63]);
}

#[test]
fn lower_orders_are_not_deferred_and_higher_ones_are() {
    let zone = scattered(256);
    let why = |order| {
        zone.compact(&request(order, Mobility::Movable), &NoHooks)
            .why
    };
    assert_eq!(why(4), Why::Complete);
    assert_eq!(why(5), Why::Deferred);
    assert_eq!(why(5), Why::Complete);
    assert_eq!(why(3), Why::Complete);
    // That failed, too: from now on order 3 is deferred.
    assert_eq!(why(3), Why::Deferred);
    assert_eq!(why(2), Why::Complete);
}

#[test]
fn a_success_ends_the_deferral() {
    let zone = scattered(256);
    assert_eq!(skips(&zone, 3, 4), [0, 1, 3, 7]);
    let owner = Owner::of(&zone);
    let asked = request(3, Mobility::Movable);
    let mut compacted = zone.compact(&asked, &owner);
    let mut skipped = 0;
    while compacted.why == Why::Deferred {
        skipped += 1;
        compacted = zone.compact(&asked, &owner);
    }
    assert_eq!((skipped, compacted.why), (15, Why::Succeeded));
    assert!(compacted.caught.is_some());
    // The next failure starts again from the beginning.
    take_all(&zone, Mobility::Movable);
    for at in (1..128).step_by(2) {
        free(&zone, frame(at), 0);
    }
    assert_eq!(skips(&zone, 3, 3), [0, 1, 3]);
}

#[test]
fn attempts_that_cannot_succeed_are_not_failures() {
    let zone = in_use(256);
    let asked = request(3, Mobility::Movable);
    for _ in 0..5 {
        let why = zone.compact(&asked, &NoHooks).why;
        assert_eq!(why, Why::TooLittleFree);
    }
    for at in (1..256).step_by(2) {
        free(&zone, frame(at), 0);
    }
    assert_eq!(skips(&zone, 3, 2), [0, 1]);
}

// ---- places that cannot become free ----

#[test]
fn compaction_skips_places_with_a_page_that_cannot_be_moved() {
    // Places of 128 frames, the largest block: in the first, one page in 8 is in use and the last
    // one stays; in the second they can all be moved.
    let zone = plain(512);
    for block in 0..2 {
        for place in (7..128).step_by(8) {
            let stays = (block, place) == (0, 127);
            let request = if stays { &UNMOVABLE } else { &MOVABLE };
            assert_eq!(zone.alloc_at(frame(block * 128 + place), request), Ok(()));
        }
    }
    let owner = Owner::of(&zone);
    let done = compact_all(&zone, &owner);
    assert_eq!((done.moved, done.stuck), (16, 0));
    let from: Vec<usize> = owner
        .moves
        .borrow()
        .iter()
        .map(|(from, _)| from.number())
        .collect();
    assert_eq!(from, (135..256).step_by(8).collect::<Vec<_>>());
    assert_eq!(state(&zone, frame(128)).usage, Use::Free);
    assert_eq!(state(&zone, frame(7)).usage, Use::Allocated);
    owner.owns_what_is_in_use();
}

#[test]
fn a_place_that_uses_up_the_looks_of_one_hold_is_gathered_in_the_next() {
    // 1024 looks: 512 that end at a page that stays, and 512 at pages that all move.
    let zone: Plain = full(&linux(8 * 512), Cpus::new());
    for at in 0..1024 {
        let request = if at == 511 { &UNMOVABLE } else { &MOVABLE };
        assert_eq!(zone.alloc_at(frame(at), request), Ok(()));
    }
    let owner = Owner::of(&zone);
    let done = compact_all(&zone, &owner);
    assert_eq!((done.moved, done.stuck), (512, 0));
    assert_eq!(state(&zone, frame(512)).usage, Use::Free);
    owner.owns_what_is_in_use();
}

#[test]
fn compaction_continues_where_it_stopped_and_restarts_if_that_frees_nothing() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let wanted = request(5, Mobility::Movable);
    let first = zone.compact(&wanted, &owner);
    assert_eq!((first.why, first.caught), (Why::Succeeded, Some(frame(0))));
    let asked = owner.moves.borrow().len();
    let second = zone.compact(&wanted, &owner);
    assert_eq!(
        (second.why, second.caught),
        (Why::Succeeded, Some(frame(32)))
    );
    // No page below the first place was requested again.
    let moves = owner.moves.borrow()[asked..].to_vec();
    assert!(moves.iter().all(|(from, _)| from.number() >= 32));
    // Until nothing is left between the scanners; then frames freed behind them are found.
    let mut caught = vec![frame(0), frame(32)];
    while let Some(place) = zone.compact(&wanted, &owner).caught {
        caught.push(place);
    }
    assert!(caught.len() < 9, "half of the memory is free: 8 places");
    for place in caught {
        free(&zone, place, 5);
    }
    owner.owns_what_is_in_use();
}
