//! What a CPU finds in its stash, how large that is, what it is filled with.

use super::*;

// ---- hits ----

#[test]
fn a_frame_that_is_freed_is_handed_out_again_the_last_one_first() {
    let zone: Own = zone(4096);
    let held = take(&zone, 20, Mobility::Movable);
    give(&zone, &held);
    let again = take(&zone, 20, Mobility::Movable);
    assert!(again.iter().eq(held.iter().rev()));
}

#[test]
fn each_cpu_has_a_stash_of_its_own() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let mut freed = Vec::new();
    for cpu in 0..4 {
        cpus.switch_to(cpu);
        freed.push(use_one(&zone, &MOVABLE));
    }
    // In another order, each finds its own.
    for cpu in [2, 0, 3, 1] {
        cpus.switch_to(cpu);
        assert_eq!(zone.alloc(&MOVABLE), Ok(freed[cpu]));
    }
    assert_eq!(cpus.interruptions(), 0);
    sound(&zone);
}

#[test]
fn a_frame_freed_on_another_cpu_stays_there() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let page = take(&zone, 1, Mobility::Movable)[0];
    cpus.switch_to(1);
    free(&zone, page, 0);
    assert_eq!(zone.alloc(&MOVABLE), Ok(page));
}

#[test]
fn a_cpu_without_a_slot_goes_to_the_store() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(4096, cpus);
    cpus.switch_to(4);
    for order in [0, 1, 9] {
        use_one(&zone, &request(order, Mobility::Movable));
        assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
    }
    let some = take_bulk(&zone, &MOVABLE, 20);
    assert_eq!(zone.free_bulk(&some), Ok(()));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
}

#[test]
fn a_request_with_a_limit_goes_to_the_store() {
    let zone: Own = zone(4096);
    use_one(&zone, &MOVABLE);
    let cached = zone.cached_frames();
    let low = zone.alloc(&MOVABLE.below(frame(4000))).unwrap();
    assert!(low < frame(4000));
    assert_eq!(zone.cached_frames(), cached);
}

#[test]
fn a_freed_frame_goes_to_the_array_of_the_mobility_of_its_neighbourhood() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let pages = [UNMOVABLE, MOVABLE, RECLAIMABLE];
    let held = pages.map(|page| zone.alloc(&page).unwrap());
    // Freed on a CPU that has taken nothing, in any order, each comes back to its like.
    cpus.switch_to(1);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        for i in order {
            free(&zone, held[i], 0);
        }
        assert_eq!(pages.map(|page| zone.alloc(&page).unwrap()), held);
    }
    sound(&zone);
}

#[test]
fn a_movable_frame_among_unmovable_ones_is_handed_out_where_it_does_no_harm() {
    // The only block is unmovable, and 100 frames of it are; a movable one that is left falls back
    // on it.
    let cpus = Cpus::new();
    let zone: Own = zone_on(512, cpus);
    let unmovable = in_interrupt(cpus, || take(&zone, 100, Mobility::Unmovable));
    let movable = take_past(&zone, cpus, 412);
    let word = unmovable[99].align_down(Order::new(6));
    let is_near = |at: &Frame| at.align_down(Order::new(6)) == word;
    let neighbour = movable.into_iter().find(is_near);
    let neighbour = neighbour.expect("a movable frame in the same word");
    free(&zone, neighbour, 0);
    let cached = zone.cached_frames();
    assert_eq!(cached, 1);
    // An unmovable request hits, and gets it.
    assert_eq!(zone.alloc(&UNMOVABLE), Ok(neighbour));
    assert_eq!(zone.cached_frames(), 0);
}

// ---- sizes ----

#[test]
fn it_starts_small_and_doubles_whenever_it_runs_empty() {
    for mobility in Mobility::ALL {
        let zone: Own = zone(64 * 512);
        // Half of the limit each time: 64, 128, ... up to what is fetched at a time.
        let mut half = 32;
        for _ in 0..9 {
            let cached = zone.cached_frames();
            take(&zone, 1, mobility);
            assert_eq!((cached, zone.cached_frames()), (0, half - 1));
            take(&zone, half - 1, mobility);
            half = (half * 2).min(320);
        }
        assert_eq!(zone.cached_frames(), 0);
        sound(&zone);
    }
}

#[test]
fn it_is_small_again_after_a_drain() {
    let zone: Own = zone(64 * 512);
    take(&zone, 3000, Mobility::Movable);
    let cached = zone.cached_frames();
    assert_eq!(zone.drain(), cached);
    assert_eq!(zone.cached_frames(), 0);
    take(&zone, 1, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 31);
    take(&zone, 32, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 63);
    sound(&zone);
}

#[test]
fn a_free_to_a_stash_that_was_never_used_leaves_it_small() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let page = take_past(&zone, cpus, 1)[0];
    free(&zone, page, 0);
    assert_eq!(zone.alloc(&MOVABLE), Ok(page));
    // It has run neither empty nor full before: the first limit is 64.
    take(&zone, 1, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 31);
}

#[test]
fn a_full_array_gives_its_colder_three_quarters_back() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let held = take_past(&zone, cpus, MOST + 1);
    give(&zone, &held[..MOST]);
    assert_eq!(zone.cached_frames(), MOST);
    free(&zone, held[MOST], 0);
    assert_eq!(zone.cached_frames(), MOST / 4 + 1);
    let (cold, warm) = held.split_at(MOST / 4 * 3);
    assert!(cold.iter().all(|&at| usage(&zone, at) == Use::Free));
    assert!(warm.iter().all(|&at| usage(&zone, at) == Use::Allocated));
    sound(&zone);
    // And what is left comes out last in, first out.
    let again = take(&zone, warm.len(), Mobility::Movable);
    assert!(again.iter().eq(warm.iter().rev()));
}

#[test]
fn frees_in_any_order_never_exceed_its_bounds() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let mut dice = Dice::new(4);
    let held = take_past(&zone, cpus, 20_000);
    for place in dice.shuffled(held.len()) {
        free(&zone, held[place], 0);
        // In an array of movable frames, and in that of sparse page blocks.
        assert!(zone.cached_frames() <= MOST + SPARSES);
    }
    assert_eq!(zone.free_frames() + zone.cached_frames(), 64 * 512);
    sound(&zone);
    zone.drain();
    assert_eq!(sound(&zone).free, 64 * 512);
    assert_eq!(zone.free_counts().by_order[10], 32);
}

#[test]
fn sizes_can_be_chosen_and_are_kept() {
    let stash = StashSizes {
        singles: 10,
        small: 3,
        huge: 2,
        ..StashSizes::LARGEST
    };
    let zone: Own = sized(64 * 512, stash);
    let held = take(&zone, 500, Mobility::Movable);
    assert!(zone.cached_frames() <= 10);
    for at in held {
        free(&zone, at, 0);
        assert!(zone.cached_frames() <= 10);
    }
    zone.drain();
    for (order, most) in [(1, 3), (3, 3), (9, 2)] {
        for at in take_of(&zone, 20, order, Mobility::Movable) {
            free(&zone, at, order);
            assert!(zone.cached_frames() <= most << order, "order {order}");
        }
        assert!(zone.cached_frames() > 0);
        zone.drain();
    }
    assert_eq!(sound(&zone).free, 64 * 512);
}

#[test]
fn a_stash_of_size_zero_keeps_nothing() {
    let stash = StashSizes {
        singles: 0,
        small: 0,
        huge: 0,
        ..StashSizes::LARGEST
    };
    let zone: Own = sized(8192, stash);
    for order in [0, 1, 2, 3, 9] {
        let held = take_of(&zone, 3, order, Mobility::Movable);
        give_all(&zone, &held, order);
        assert_eq!(zone.cached_frames(), 0, "order {order}");
        sound(&zone);
    }
}

#[test]
fn sizes_above_what_there_is_room_for_are_cut() {
    let stash = StashSizes {
        singles: usize::MAX,
        small: usize::MAX,
        huge: usize::MAX,
        ..StashSizes::LARGEST
    };
    let zone: Own = sized(64 * 512, stash);
    let held = take(&zone, 2 * MOST, Mobility::Movable);
    for at in held {
        free(&zone, at, 0);
        assert!(zone.cached_frames() <= MOST);
    }
    sound(&zone);
}

// ---- what it is filled with ----

#[test]
fn the_first_refill_of_a_cpu_comes_from_the_fullest_block() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(6 * 512, cpus);
    for block in 0..6 {
        let taken = zone.alloc_at(frame(block * 512), &request(9, Mobility::Movable));
        assert_eq!(taken, Ok(()));
    }
    for (block, frames) in [(0, 400), (2, 40), (4, 200)] {
        let start = block * 512;
        assert_eq!(zone.free_range(range(start, start + frames)), Ok(()));
    }
    let emptiest: Vec<Frame> = range(0, 400).frames().collect();
    for cpu in 0..3 {
        cpus.switch_to(cpu);
        let at = zone.alloc(&MOVABLE).unwrap();
        assert!(at.number() / 512 > 0, "CPU {cpu}");
        assert_eq!(count_free(&zone, &emptiest), 400, "CPU {cpu}");
    }
    sound(&zone);
}

// ---- sparse page blocks ----

/// Half of the memory is in use, frames anywhere. Each round a tenth of that is freed and as many
/// are allocated, in batches that a stash holds. So frames gather in few page blocks only if those
/// that are freed in sparse ones are not the next to be handed out.
#[test]
fn what_is_freed_in_sparse_page_blocks_serves_after_fuller_ones() {
    for batch in [1, 64, 512] {
        let zone: Own = zone(64 * 512);
        let mut dice = Dice::new(5);
        let all = take_all(&zone, Mobility::Movable);
        let mut held: Vec<Frame> = dice
            .shuffled(all.len())
            .into_iter()
            .map(|at| all[at])
            .collect();
        for page in held.drain(all.len() / 2..) {
            free(&zone, page, 0);
        }
        for _ in 0..150 * (all.len() / 20 / batch).max(1) {
            for _ in 0..batch {
                let page = held.swap_remove(dice.below(held.len()));
                free(&zone, page, 0);
            }
            held.extend(take(&zone, batch, Mobility::Movable));
        }
        sound(&zone);
        zone.drain();
        let whole = zone.free_counts().suitable(Order::HUGE);
        assert!(whole >= 30, "{whole} of 32 page blocks, batches of {batch}");
    }
}

/// Single frames of a page block of which all but so many were freed behind all stashes, and how
/// many at a time.
fn mostly_freed(zone: &Own, cpus: &Cpus, left: usize, at_once: usize) -> Vec<Frame> {
    let mut held = take_past(zone, cpus, 512);
    let gone = held.split_off(left);
    in_interrupt(cpus, || {
        for some in gone.chunks(at_once) {
            assert_eq!(zone.free_bulk(some), Ok(()));
        }
    });
    held
}

/// What a CPU has just fetched from serves it again, however much of that is free; so does a page
/// block of which much was freed in one go.
#[test]
fn what_is_freed_where_a_cpu_fetches_from_serves_at_once() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    mostly_freed(&zone, cpus, 100, 1);
    let mut page = take(&zone, 1, Mobility::Movable)[0];
    let cached = zone.cached_frames();
    for _ in 0..100 {
        free(&zone, page, 0);
        let again = take(&zone, 1, Mobility::Movable)[0];
        assert_eq!((again, zone.cached_frames()), (page, cached));
        page = again;
    }

    let zone: Own = zone_on(64 * 512, cpus);
    let held = mostly_freed(&zone, cpus, 128, 64);
    free(&zone, held[0], 0);
    assert_eq!(zone.alloc(&MOVABLE), Ok(held[0]));
}

/// The free that makes room in a full array makes the frame's own page block sparse.
#[test]
fn a_frame_that_was_freed_last_is_known_though_its_page_block_becomes_sparse() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(4 * 512, cpus);
    // All there is: no page block goes on loan.
    let held = take_past(&zone, cpus, 4 * 512);
    let last = held[0];
    give(&zone, &held[1..=MOST]);
    assert_eq!(zone.cached_frames(), MOST);
    free(&zone, last, 0);
    assert!(zone.cached_frames() < MOST);
    let again = zone.free(last, Order::ZERO);
    assert_eq!(again, Err(FreeError::DoubleFree));
    sound(&zone);
}

/// A small block that is taken from its page block, or frames that others free there, change the
/// array that the frame would go to.
#[test]
fn a_frame_that_was_freed_last_is_known_in_whichever_array_it_lies() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let held = take_past(&zone, cpus, 512);
    let (rest, others) = held.split_at(256);
    for &page in others {
        in_interrupt(cpus, || free(&zone, page, 0));
    }
    free(&zone, rest[0], 0);
    zone.alloc(&request(3, Mobility::Movable)).unwrap();
    let again = zone.free(rest[0], Order::ZERO);
    assert_eq!(again, Err(FreeError::DoubleFree));

    let zone: Own = zone_on(64 * 512, cpus);
    let held = take_past(&zone, cpus, 512);
    for &page in &held[..160] {
        in_interrupt(cpus, || free(&zone, page, 0));
    }
    free(&zone, held[300], 0);
    in_interrupt(cpus, || free(&zone, held[301], 0));
    let again = zone.free(held[300], Order::ZERO);
    assert_eq!(again, Err(FreeError::DoubleFree));
}
