//! Where pages are moved to.

use super::*;

/// Makes a zone with 8 pages to move at its start, of which all else is in use but for free blocks
/// at these frames, with their orders; and but for 64 frames in the unmovable page blocks 1 and 2,
/// so that enough is free.
fn with_places(blocks: usize, places: &[(usize, u8)]) -> Linux {
    let zone = zone_of(blocks);
    let is_free = |at: usize| {
        let holds = |&(first, order): &(usize, u8)| (first..first + (1 << order)).contains(&at);
        places.iter().any(holds)
    };
    put(&zone, 0..8, &MOVABLE);
    put(&zone, 8..BLOCK, &UNMOVABLE);
    put(&zone, (1..3).flat_map(halves), &UNMOVABLE);
    let rest = 3 * BLOCK..blocks * BLOCK;
    put(&zone, rest.filter(|&at| !is_free(at)), &UNMOVABLE);
    dedicate(&zone, 1, Mobility::Unmovable);
    dedicate(&zone, 2, Mobility::Unmovable);
    zone
}

fn places_of(zone: &Linux, order: u8, priority: Priority) -> (Compacted, Vec<usize>) {
    let owner = Owner::of(zone);
    let compacted = compact(&owner, order, Mobility::Movable, priority);
    owner.has_all(compacted.caught.as_slice());
    let to = owner.moves().iter().map(|one| one.1).collect();
    (compacted, to)
}

#[test]
fn places_come_from_the_lists_if_they_are_in_the_top_quarter() {
    // 16 page blocks, so the top quarter begins at 704.
    for (low, high) in [(600, 900), (900, 600)] {
        let zone = with_places(16, &[(low, 2), (high, 2), (1000, 0), (1002, 0), (1004, 0)]);
        let (compacted, to) = places_of(&zone, 3, Priority::SyncLight);
        assert_eq!(compacted.caught, Some(frame(0)));
        // The largest first, and there the one in the top quarter; it is split.
        assert_eq!(to[..4], [900, 901, 902, 903]);
    }
}

#[test]
fn a_place_stays_whole_as_long_as_it_is_not_needed() {
    let zone = with_places(16, &[(1000, 3), (968, 3)]);
    let (compacted, to) = places_of(&zone, 4, Priority::SyncLight);
    assert_eq!(compacted.why, Why::Complete);
    // One of them is enough.
    let used: BTreeSet<usize> = to.iter().map(|at| at / 8).collect();
    assert_eq!((to.len(), used.len()), (8, 1));
    let free = zone.free_counts().by_order;
    // The one left, and where the pages were.
    assert_eq!(free[3], 2);
}

#[test]
fn below_the_top_quarter_the_highest_of_the_top_half_is_taken() {
    let zone = with_places(16, &[(560, 3), (624, 3), (592, 3)]);
    let (_, to) = places_of(&zone, 4, Priority::SyncLight);
    assert_eq!(to.iter().min(), Some(&624));
}

#[test]
fn places_below_are_found_by_the_scan_downwards() {
    // From the middle, 512, on. The distance has doubled three times at page block 5, so that only
    // every eighth frame is looked at; from then on each.
    let zone = with_places(16, &[(320, 2), (332, 0), (257, 1), (261, 0), (193, 0)]);
    let (compacted, to) = places_of(&zone, 3, Priority::SyncLight);
    let to: BTreeSet<usize> = to.into_iter().collect();
    assert_eq!(to, [193, 257, 258, 261, 320, 321, 322, 323].into());
    assert_eq!(compacted.caught, Some(frame(0)));
}

#[test]
fn places_are_in_movable_page_blocks_only_unless_all_else_failed() {
    let build = || {
        let zone = with_places(16, &[(328, 3), (392, 3)]);
        dedicate(&zone, 5, Mobility::Unmovable);
        dedicate(&zone, 6, Mobility::Unmovable);
        zone
    };
    let (compacted, to) = places_of(&build(), 4, Priority::SyncLight);
    assert_eq!((compacted.moved, to.len()), (0, 0));
    let (compacted, to) = places_of(&build(), 4, Priority::SyncFull);
    assert_eq!(compacted.moved, 8);
    assert_eq!(to[0], 392);
}

#[test]
fn a_page_block_that_begins_with_what_is_wanted_is_no_target() {
    // The only place is a whole page block; but the request needs a block below frame 64. Half a
    // page block behind a page is a place.
    for (place, moved) in [((192, 6), 0), ((224, 5), 8)] {
        let zone = with_places(8, &[place]);
        let owner = Owner::of(&zone);
        let asked = request(4, Mobility::Movable).below(frame(64));
        let compacted = zone.compact_with(&asked, Priority::SyncLight, &owner);
        assert_eq!((compacted.moved, compacted.caught), (moved, None));
        owner.has_all(&[]);
    }
}

#[test]
fn taking_a_place_leaves_the_min_mark_and_the_place_free() {
    for (more, moved) in [(8, 0), (9, 8)] {
        let zone = with_places(16, &[(1000, 3), (904, 2)]);
        let marks = Marks {
            min: zone.free_frames() - more,
            low: 0,
            high: 0,
        };
        zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
        let (compacted, to) = places_of(&zone, 4, Priority::SyncLight);
        assert_eq!((compacted.moved, to.len()), (moved, moved));
    }
}

#[test]
fn without_places_a_compaction_ends_and_defers_nothing() {
    let build = |more: usize| {
        let zone = zone_of(8);
        put(&zone, halves(0), &MOVABLE);
        put(&zone, (1..8).flat_map(halves), &UNMOVABLE);
        let marks = Marks {
            min: zone.free_frames() - more,
            low: 0,
            high: 0,
        };
        zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
        zone
    };
    let zone = build(1);
    for moved in [0, 0] {
        let (compacted, _) = places_of(&zone, 5, Priority::SyncLight);
        assert_eq!((compacted.why, compacted.moved), (Why::Complete, moved));
    }
    // The second found nothing left to try: that counts as a failure.
    let (compacted, _) = places_of(&zone, 5, Priority::SyncLight);
    assert_eq!(compacted.why, Why::Deferred);
    // One more free frame: one place may be taken.
    let (compacted, _) = places_of(&build(2), 5, Priority::SyncLight);
    assert!(compacted.moved > 0);
}

#[test]
fn a_place_of_half_a_page_block_makes_its_page_block_movable() {
    for (order, kind) in [(5, MigrateType::Movable), (4, MigrateType::Unmovable)] {
        // At the start of each page block, with a free frame of which nothing is needed.
        let places = [192, 256, 320, 384].map(|at| (at, order));
        let zone = with_places(16, &[&places[..], &[(430, 0)]].concat());
        for block in [3, 4, 5, 6] {
            dedicate(&zone, block, Mobility::Unmovable);
        }
        let (compacted, to) = places_of(&zone, order + 1, Priority::SyncFull);
        assert_eq!((compacted.moved, to[0]), (8, 384));
        assert_eq!(zone.block_type(frame(384)), Some(kind));
        // What else is free in it is on the lists of that type.
        let left = state(&zone, frame(430));
        assert_eq!((left.usage, left.kind), (Use::Free, kind));
        let other = zone.block_type(frame(320));
        assert_eq!(other, Some(MigrateType::Unmovable));
    }
}

#[test]
fn places_in_an_isolated_range_are_not_taken() {
    let zone = with_places(16, &[(1000, 2), (904, 2), (840, 2), (832, 2)]);
    zone.isolate(FrameRange::new(896, 1024)).unwrap();
    let (compacted, to) = places_of(&zone, 3, Priority::SyncFull);
    let to: BTreeSet<usize> = to.into_iter().collect();
    assert_eq!(to, (832..836).chain(840..844).collect());
    assert_eq!(compacted.caught, Some(frame(0)));
}

#[test]
fn a_place_that_was_not_used_is_the_next() {
    let zone = with_places(16, &[(1000, 3), (968, 3)]);
    let owner = Owner::answering(&zone, [(7, Migration::Later), (5, Migration::NotNeeded)]);
    let compacted = compact(&owner, 4, Mobility::Movable, Priority::SyncLight);
    let to: Vec<usize> = owner.moves().iter().map(|one| one.1 % 8).collect();
    assert_eq!(to, [0, 0, 1, 1, 2, 3, 4, 5]);
    assert_eq!((compacted.moved, compacted.stuck), (6, 1));
    owner.has_all(&[]);
}

#[test]
fn places_that_were_not_used_are_freed_when_a_hook_panics() {
    struct Panics;
    impl Migrate for Panics {
        fn migrate(&self, from: Frame, _: Order, _: Frame) -> Migration {
            assert_ne!(from, frame(5), "a hook that panics");
            Migration::Later
        }
    }
    let zone = with_places(16, &[(1000, 3), (904, 3)]);
    let free = zone.free_frames();
    let asked = request(4, Mobility::Movable);
    let work = || zone.compact_with(&asked, Priority::SyncLight, &Panics);
    let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(work));
    assert!(result.is_err());
    // One place stays in use.
    assert_eq!(sound(&zone).free, free - 1);
}
