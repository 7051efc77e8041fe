//! Which pages are moved.

use super::*;

#[test]
fn pages_are_gathered_32_at_a_time_and_moved_from_the_highest_down() {
    let zone = zone_of(8);
    // 48 pages in the first page block; nothing free there that a search of lists would find.
    put(&zone, (0..BLOCK).filter(|at| at % 4 != 3), &MOVABLE);
    put(&zone, (1..8).flat_map(halves), &UNMOVABLE);
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 6, Mobility::Unmovable, Priority::SyncLight);
    assert_eq!((compacted.why, compacted.moved), (Why::Succeeded, 48));
    let calls = owner.calls.borrow();
    let asked = |calls: &[Call]| calls.iter().all(|call| matches!(call, Call::CanMove(_)));
    let rounds = [(0, 32), (64, 16)];
    for (begin, pages) in rounds {
        assert!(asked(&calls[begin..begin + pages]));
        let moves = &calls[begin + pages..begin + 2 * pages];
        let from: Vec<usize> = moves
            .iter()
            .map(|call| match call {
                Call::Move(from, _) => *from,
                Call::CanMove(at) => panic!("asked about {at}"),
            })
            .collect();
        assert!(from.is_sorted_by(|one, next| one > next), "{from:?}");
    }
    assert_eq!(calls.len(), 96);
    drop(calls);
    assert_eq!(compacted.caught, Some(frame(0)));
    owner.has_all(&[]);
}

#[test]
fn blocks_of_the_wanted_order_or_of_a_page_block_and_pinned_ones_stay() {
    let zone = zone_of(8);
    put_block(&zone, 0, 3, Mobility::Movable);
    put_block(&zone, 8, 2, Mobility::Movable);
    put(&zone, [12, 13, 15], &MOVABLE);
    put_block(&zone, 64, 6, Mobility::Movable);
    put(&zone, (128..256).step_by(2), &UNMOVABLE);
    put(&zone, (256..512).step_by(2), &UNMOVABLE);
    put(&zone, 16..64, &UNMOVABLE);
    let owner = Owner::pinning(&zone, [13]);
    let compacted = compact(&owner, 3, Mobility::Movable, Priority::SyncLight);
    assert_eq!(compacted.why, Why::Complete);
    let from: Vec<usize> = owner.moves().iter().map(|one| one.0).collect();
    // There is no place of 4 frames for the block at 8: it stays too.
    assert_eq!(from, [15, 12]);
    assert_eq!(compacted.stuck, 4);
    assert!(!owner.take_asked().contains(&0));
    owner.has_all(&[]);
}

#[test]
fn without_waiting_a_part_is_left_at_its_first_page_that_stays() {
    let build = || {
        let zone = zone_of(8);
        put(&zone, (65..512).step_by(2), &UNMOVABLE);
        put(
            &zone,
            (0..64).filter(|at| at % 2 == 0 && *at != 8),
            &MOVABLE,
        );
        // In the first place of 16 frames, and at the very end of the third.
        put(&zone, [8, 47], &UNMOVABLE);
        zone
    };
    let zone = build();
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 4, Mobility::Movable, Priority::Async);
    // The second is cleared; the third gets no further than its last page, the fourth is cleared
    // too, since the page block is finished.
    let from: BTreeSet<usize> = owner.moves().iter().map(|one| one.0).collect();
    let expected: BTreeSet<usize> = (16..32).step_by(2).collect();
    assert_eq!(from, expected);
    assert_eq!(compacted.caught, Some(frame(16)));
    owner.has_all(&[frame(16)]);
    // One that may wait moves all that moves, as far as it gets in a round.
    let zone = build();
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 4, Mobility::Movable, Priority::SyncLight);
    let from: BTreeSet<usize> = owner.moves().iter().map(|one| one.0).collect();
    assert_eq!(from.len(), 31);
    assert_eq!(compacted.why, Why::Succeeded);
}

#[test]
fn without_waiting_only_page_blocks_of_the_own_type_are_cleared() {
    for (mobility, priority, moved) in [
        (Mobility::Unmovable, Priority::Async, 0),
        (Mobility::Movable, Priority::Async, 32),
        (Mobility::Unmovable, Priority::SyncLight, 32),
    ] {
        let zone = zone_of(8);
        put(&zone, halves(0), &MOVABLE);
        put(&zone, (65..512).step_by(2), &UNMOVABLE);
        let owner = Owner::of(&zone);
        let compacted = compact(&owner, 6, mobility, priority);
        assert_eq!(compacted.moved, moved, "{mobility:?} {priority:?}");
    }
}

#[test]
fn what_was_passed_over_is_not_looked_at_again_until_the_scanners_meet() {
    let zone = zone_of(16);
    // One block in use, which is passed over; then it is freed.
    put_block(&zone, 0, 6, Mobility::Movable);
    put(&zone, (65..1024).step_by(2), &MOVABLE);
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    assert!(compacted.caught.is_some());
    assert!(!zone.skips(frame(0)));
    zone.free_uncached(frame(0), Order::new(6)).unwrap();
    put(&zone, (1..64).step_by(2), &MOVABLE);
    owner.take_asked();
    compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    let asked = owner.take_asked();
    assert!(asked.iter().all(|&at| at >= 64), "{asked:?}");
    assert!(!asked.is_empty());
}

#[test]
fn large_movable_requests_begin_where_much_is_free_in_the_lower_half() {
    let build = || {
        let zone = zone_of(8);
        for block in 0..8 {
            let free = |at: &usize| block == 2 && *at >= 2 * BLOCK + 48;
            put(&zone, halves(block).filter(|at| !free(at)), &MOVABLE);
        }
        zone
    };
    // The page block with a free block of order 4 comes first.
    let zone = build();
    let owner = Owner::of(&zone);
    let compacted = compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    assert_eq!((compacted.caught, compacted.moved), (Some(frame(128)), 24));
    owner.has_all(&[frame(128)]);
    // Not for other requests, nor for small ones, nor with the most thorough.
    for (order, mobility, priority) in [
        (6, Mobility::Unmovable, Priority::SyncLight),
        (6, Mobility::Movable, Priority::SyncFull),
    ] {
        let zone = build();
        let owner = Owner::of(&zone);
        let compacted = compact(&owner, order, mobility, priority);
        assert_eq!(
            compacted.caught,
            Some(frame(0)),
            "{mobility:?} {priority:?}"
        );
    }
    // For the background task too.
    let zone = build();
    let owner = Owner::of(&zone);
    assert_eq!(behind(&owner, 6), 24);
}

#[test]
fn a_search_of_the_free_lists_turns_them() {
    // 40 free blocks of order 4 in the top quarter, and something to move, though no place may be
    // taken: one search of each scanner.
    let zone = zone_of(128);
    put(&zone, halves(0), &MOVABLE);
    let is_free = |at: usize| (6144..6144 + 40 * 32).contains(&at) && at % 32 >= 16;
    let rest = BLOCK..128 * BLOCK;
    put(&zone, rest.filter(|&at| !is_free(at)), &UNMOVABLE);
    let before = order_of_list(&zone);
    assert_eq!(before.len(), 40);
    let marks = Marks {
        min: zone.free_frames(),
        low: 0,
        high: 0,
    };
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
    let compacted = compact(&Owner::of(&zone), 5, Mobility::Movable, Priority::SyncLight);
    assert_eq!((compacted.why, compacted.moved), (Why::Complete, 0));
    // The search for pages has seen 33 from the head; the one at which it stopped is the last then.
    // The search for places wants that one, which so becomes the first.
    let mut expected = before;
    expected.rotate_left(34);
    expected.rotate_right(1);
    assert_eq!(order_of_list(&zone), expected);
}

/// Returns the free movable blocks of order 4, in the order of their list.
fn order_of_list(zone: &Linux) -> Vec<Frame> {
    let request = request(4, Mobility::Movable);
    let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc_uncached(&request)).collect();
    // Freed from the last to the first, each to the head.
    for &block in all.iter().rev() {
        zone.free_uncached(block, Order::new(4)).unwrap();
    }
    all
}

#[test]
fn a_failed_page_keeps_its_page_block_from_being_chosen_again() {
    let zone = zone_of(8);
    put(&zone, (0..8).flat_map(halves), &MOVABLE);
    let owner = Owner::answering(&zone, (0..512).map(|at| (at, Migration::Later)));
    let compacted = compact(&owner, 6, Mobility::Movable, Priority::SyncLight);
    assert_eq!((compacted.why, compacted.moved), (Why::Complete, 0));
    // Each page was tried once.
    let from: Vec<usize> = owner.moves().iter().map(|one| one.0).collect();
    let once: BTreeSet<usize> = from.iter().copied().collect();
    assert_eq!(from.len(), once.len());
    assert_eq!(compacted.stuck, once.len());
    owner.has_all(&[]);
}

#[test]
fn the_next_compaction_goes_on_where_the_last_one_stopped() {
    let zone = zone_of(16);
    put(&zone, (1..1024).step_by(2), &MOVABLE);
    let owner = Owner::of(&zone);
    let run = |priority| {
        let compacted = compact(&owner, 6, Mobility::Movable, priority);
        (compacted.caught, owner.take_asked().first().copied())
    };
    assert_eq!(run(Priority::SyncLight), (Some(frame(0)), Some(1)));
    assert_eq!(run(Priority::SyncLight), (Some(frame(64)), Some(65)));
    assert_eq!(run(Priority::Async), (Some(frame(128)), Some(129)));
    // The most thorough begins at the start of the zone, where new pages are, which nobody knows.
    zone.free_uncached(frame(0), Order::new(6)).unwrap();
    put(&zone, (1..64).step_by(2), &MOVABLE);
    assert_eq!(run(Priority::SyncFull), (Some(frame(192)), Some(1)));
}
