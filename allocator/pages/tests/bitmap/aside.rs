//! What is set aside for atomic requests above order 0: when, for whom, and until when.

use brickyard::bitmap::SetAside;
use brickyard::patience::Patience;
use brickyard::watermark::{Mark, Marks};

use super::*;

use MigrateType::HighAtomic;

/// Frames in a page block of the plan `small`.
const FEW: usize = 64;

/// A plan by which so many page blocks of all may be set aside.
const fn of_all(blocks: usize, plan: ZonePlan) -> ZonePlan {
    let set_aside = SetAside {
        percent: 100,
        blocks,
    };
    ZonePlan { set_aside, ..plan }
}

/// So many small page blocks, of which as many may be set aside.
fn zone(blocks: usize, aside: usize) -> Plain {
    full(&of_all(aside, small(blocks * FEW)), Cpus::new())
}

/// An atomic request.
const fn atomic(order: u8) -> Request {
    request(order, Mobility::Unmovable).atomic()
}

/// So many frames stay free of requests that may sleep.
fn keep(zone: &Plain, frames: usize) {
    set_marks(zone, all_at(frames));
}

fn at_min(zone: &Plain, request: &Request) -> Option<Frame> {
    zone.alloc_above(request, Mark::Min)
}

/// The last resort of a node.
fn at_last(zone: &Plain, request: &Request) -> Option<Frame> {
    zone.alloc_set_aside(request, Mark::Min, &Patience::new())
}

fn aside<A: brickyard::sync::SlotAccess>(zone: &Bricks<A>) -> usize {
    blocks_of(zone, HighAtomic)
}

#[test]
fn a_block_is_set_aside_by_who_had_to_go_below_the_low_mark() {
    let zone = zone(8, 8);
    keep(&zone, 10);
    for mark in [Mark::First, Mark::FirstApart, Mark::Apart, Mark::Low] {
        zone.alloc_above(&atomic(2), mark).unwrap();
    }
    // Nor by a single frame, one who may sleep, or one who wants a page block or more.
    at_min(&zone, &atomic(0)).unwrap();
    at_min(&zone, &request(2, Mobility::Unmovable)).unwrap();
    at_min(&zone, &atomic(6)).unwrap();
    at_min(&zone, &atomic(7)).unwrap();
    assert_eq!(aside(&zone), 0);
    let at = at_min(&zone, &atomic(2)).unwrap();
    assert_eq!(zone.block_type(at), Some(HighAtomic));
    assert_eq!(aside(&zone), 1);
    sound(&zone);
    // In an interrupt, too; what is left of the first block comes first.
    for _ in 0..FEW {
        let interrupt = atomic(3).in_context(Context::Interrupt);
        at_min(&zone, &interrupt).unwrap();
        if aside(&zone) == 2 {
            assert!(free_of(&zone, HighAtomic) > FEW / 2);
            sound(&zone);
            return;
        }
    }
    panic!("nothing more was set aside");
}

#[test]
fn no_more_is_set_aside_than_the_plan_says() {
    for most in [0, 1, 3] {
        let zone = zone(8, most);
        let mut runs = 0;
        while at_min(&zone, &atomic(3)).is_some() {
            runs += 1;
            assert!(aside(&zone) <= most);
        }
        assert_eq!((runs, aside(&zone)), (8 * FEW / 8, most));
        sound(&zone);
    }
    // One percent, from 51,200 frames on.
    for (frames, blocks) in [(51_199, 0), (51_200, 1)] {
        let zone = full(&linux(frames), Cpus::new());
        at_min(&zone, &atomic(2)).unwrap();
        assert_eq!(aside(&zone), blocks);
    }
}

#[test]
fn others_do_without_it_and_it_counts_for_them_as_gone() {
    let zone = zone(4, 1);
    let at = at_min(&zone, &atomic(2)).unwrap();
    let kept = free_of(&zone, HighAtomic);
    assert_eq!(kept, FEW - 4);
    keep(&zone, 16);
    let mut taken = 0;
    while let Some(page) = at_min(&zone, &MOVABLE) {
        assert_ne!(zone.block_type(page), Some(HighAtomic));
        taken += 1;
    }
    // The mark stays free outside the block.
    assert_eq!(taken, 3 * FEW - 16);
    assert_eq!(zone.free_frames(), kept + 16);
    assert_eq!(zone.free_frames_for(&MOVABLE), 16);
    assert_eq!(zone.free_frames_for(&atomic(0)), kept + 16);
    // Down to the mark, and then all of the block, whatever is wanted of it.
    let mut runs = 0;
    while let Some(run) = at_min(&zone, &atomic(1)) {
        assert!(zone.block_type(run) == Some(HighAtomic) || runs > kept / 2 - 1);
        runs += 1;
    }
    assert!(runs >= kept / 2, "{runs}");
    assert_eq!(zone.block_type(at), Some(HighAtomic));
    sound(&zone);
}

#[test]
fn before_a_request_fails_what_could_serve_it_is_given_up() {
    let zone = zone(4, 2);
    // Two blocks aside: one with runs of order 3 left, one with no more than order 1.
    let runs: Vec<Frame> = (0..8).map(|_| at_min(&zone, &atomic(3)).unwrap()).collect();
    let other = at_min(&zone, &atomic(3)).unwrap();
    assert_eq!(aside(&zone), 2);
    free(&zone, runs[0], 1);
    let rest = take_all_of_sleeping(&zone);
    assert_eq!((rest.len(), aside(&zone)), (2 * FEW, 2));
    // A run that neither has; then one that one of them has; then single frames, one block at a
    // time and that with frames first.
    assert_eq!(at_last(&zone, &request(6, Mobility::Movable)), None);
    assert_eq!(aside(&zone), 2);
    let run = at_last(&zone, &request(3, Mobility::Movable)).unwrap();
    let block = |at: Frame| at.number() / FEW;
    assert_eq!((block(run), aside(&zone)), (block(other), 1));
    let rest = take_all_of_sleeping(&zone);
    assert_eq!(rest.len(), FEW - 16);
    for wanted in [Some(block(runs[0])), Some(block(runs[0])), None] {
        let page = at_last(&zone, &RECLAIMABLE);
        assert_eq!((page.map(block), aside(&zone)), (wanted, 0));
    }
    sound(&zone);
}

#[test]
fn nothing_is_given_up_for_who_would_be_below_the_mark_even_so() {
    let zone = zone(4, 1);
    at_min(&zone, &atomic(3)).unwrap();
    keep(&zone, FEW + 8);
    let rest = take_all_of_sleeping(&zone);
    assert_eq!(rest.len(), 2 * FEW - 8);
    assert_eq!(zone.free_frames(), FEW + 8 + FEW - 8);
    // One more than the mark and a run are free in all.
    let (page, run) = (MOVABLE, request(6, Mobility::Movable));
    keep(&zone, 2 * FEW - 63);
    assert_eq!(at_last(&zone, &run), None);
    keep(&zone, 2 * FEW);
    assert_eq!(at_last(&zone, &page), None);
    assert_eq!(aside(&zone), 1);
    keep(&zone, 2 * FEW - 1);
    assert!(at_last(&zone, &page).is_some());
    assert_eq!(aside(&zone), 0);
    sound(&zone);
}

/// Single frames for who may sleep, until there are no more outside what is set aside.
fn take_all_of_sleeping(zone: &Plain) -> Vec<Frame> {
    core::iter::from_fn(|| at_min(zone, &MOVABLE)).collect()
}

#[test]
fn a_zone_by_itself_gives_it_up_too() {
    for page in [MOVABLE, UNMOVABLE, RECLAIMABLE, MOVABLE.atomic()] {
        let zone = zone(4, 4);
        for _ in 0..3 {
            at_min(&zone, &atomic(5)).unwrap();
        }
        assert_eq!(aside(&zone), 2);
        let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&page).ok()).collect();
        assert_eq!((all.len(), aside(&zone)), (4 * FEW - 96, 0));
        sound(&zone);
    }
    // An atomic request takes what is set aside before caches are drained, and sets aside where
    // they had to be.
    let zone = zone(1, 1);
    let run = zone.alloc(&atomic(2)).unwrap();
    assert_eq!(aside(&zone), 0);
    at_min(&zone, &atomic(2)).unwrap();
    assert_eq!(aside(&zone), 1);
    zone.alloc(&atomic(2)).unwrap();
    assert_eq!(aside(&zone), 1);
    free(&zone, run, 2);
    sound(&zone);
}

#[test]
fn who_had_caches_drained_sets_the_block_aside_and_finds_what_came_back() {
    let plan = of_all(1, small(2 * FEW));
    let cpus = Cpus::new();
    let zone: Bricks<brickyard::sync::Shared> = support::full(&plan, cpus);
    let all = take_all(&zone, Mobility::Unmovable);
    assert_eq!(all.len(), 2 * FEW);
    // Eight frames of one block lie in the stash.
    let back = |run: Frame| (0..8).for_each(|i| free(&zone, run.plus(i), 0));
    back(frame(0));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 8));
    let run = zone.alloc(&atomic(2)).unwrap();
    assert_eq!((zone.block_type(run), aside(&zone)), (Some(HighAtomic), 1));
    // What comes back to the block by way of the stash is found in the block once that is drained.
    back(frame(8));
    assert_eq!(zone.free_frames(), 4);
    let wide = zone.alloc(&atomic(3)).unwrap();
    assert_eq!((wide, aside(&zone)), (frame(8), 1));
    // What is set aside comes before what caches hold.
    back(frame(16));
    let (cached, rest) = (zone.cached_frames(), zone.alloc(&atomic(2)).unwrap());
    assert_eq!((rest.number() / 8, zone.cached_frames()), (0, cached));
    sound(&zone);
}

#[test]
fn what_is_set_aside_is_claimed_by_nobody() {
    let zone = zone(2, 1);
    let at = at_min(&zone, &request(3, Mobility::Movable).atomic()).unwrap();
    let before = zone.fallbacks();
    // Other mobilities take from it, and mix nothing.
    for mobility in Mobility::ALL {
        let run = at_min(&zone, &request(3, mobility).atomic()).unwrap();
        assert_eq!(zone.block_type(run), Some(HighAtomic));
    }
    assert_eq!(zone.fallbacks(), before);
    // Given up, it is as it was.
    let order = Order::new(6);
    zone.alloc(&request(6, Mobility::Movable)).unwrap();
    zone.alloc(&MOVABLE).unwrap();
    assert_eq!(zone.block_type(at.align_down(order)), Some(Movable));
    sound(&zone);
}

#[test]
fn a_block_whose_frames_all_come_back_stays_aside() {
    let zone = zone(2, 1);
    let at = at_min(&zone, &atomic(3)).unwrap();
    free(&zone, at, 3);
    assert_eq!((aside(&zone), free_of(&zone, HighAtomic)), (1, FEW));
    // One page block is to be had, the other kept; and no pair.
    assert_eq!(at_min(&zone, &request(7, Mobility::Movable)), None);
    let other = at_min(&zone, &request(6, Mobility::Movable)).unwrap();
    assert_eq!(at_min(&zone, &request(6, Mobility::Movable)), None);
    // What is asked for next has another mobility, and finds the block as it was.
    let again = at_min(&zone, &request(3, Mobility::Movable).atomic()).unwrap();
    assert_eq!(
        (zone.block_type(again), aside(&zone)),
        (Some(HighAtomic), 1)
    );
    sound(&zone);
    free(&zone, again, 3);
    sound(&zone);
    let last = at_last(&zone, &request(6, Mobility::Movable)).unwrap();
    assert_ne!(last, other);
    assert_eq!(aside(&zone), 0);
    free(&zone, last, 6);
    free(&zone, other, 6);
    sound(&zone);
    assert!(zone.alloc(&request(7, Mobility::Movable)).is_ok());
}

#[test]
fn a_pair_is_whole_again_once_its_half_is_given_up() {
    let zone = zone(2, 1);
    let at = at_min(&zone, &atomic(3)).unwrap();
    free(&zone, at, 3);
    assert!(zone.alloc(&request(7, Mobility::Movable)).is_ok());
    assert_eq!(aside(&zone), 0);
    sound(&zone);
}

#[test]
fn a_stash_does_not_fetch_from_its_block_once_that_is_set_aside() {
    let plan = of_all(1, small(2 * FEW));
    let zone: Plain = support::full(&plan, Cpus::new());
    // The stash has a block on loan, which is called in and set aside.
    let page = zone.alloc(&UNMOVABLE).unwrap();
    let other = zone.alloc(&request(6, Mobility::Unmovable)).unwrap();
    let at = at_min(&zone, &atomic(2)).unwrap();
    assert_eq!(at.number() / FEW, page.number() / FEW);
    assert_eq!(zone.block_type(page), Some(HighAtomic));
    sound(&zone);
    free(&zone, other, 6);
    zone.drain();
    // It fetches elsewhere, and what comes back to the block is kept.
    let pages: Vec<Frame> = (0..FEW).map(|_| zone.alloc(&UNMOVABLE).unwrap()).collect();
    let is_aside = |at: &Frame| zone.block_type(*at) == Some(HighAtomic);
    assert!(!pages.iter().any(is_aside));
    give(&zone, &pages);
    free(&zone, page, 0);
    zone.drain();
    assert_eq!((aside(&zone), free_of(&zone, HighAtomic)), (1, FEW - 4));
    sound(&zone);
    free(&zone, at, 2);
    zone.drain();
    assert_eq!(sound(&zone).free, 2 * FEW);
}

#[test]
fn administration_takes_what_is_set_aside() {
    let block = range(0, FEW);
    let aside_at_0 = || {
        let zone = zone(4, 1);
        let at = at_min(&zone, &atomic(3)).unwrap();
        assert_eq!(at, frame(0));
        free(&zone, at, 3);
        zone
    };
    // A frame, and all of it as one block.
    let zone = aside_at_0();
    assert_eq!(zone.alloc_at(frame(5), &MOVABLE), Ok(()));
    assert_eq!(aside(&zone), 1);
    free(&zone, frame(5), 0);
    let all = request(6, Mobility::Movable);
    assert_eq!(zone.alloc_at(frame(0), &all), Ok(()));
    assert_eq!(aside(&zone), 0);
    sound(&zone);
    free(&zone, frame(0), 6);
    // The slot that named it serves again.
    at_min(&zone, &atomic(3)).unwrap();
    assert_eq!(aside(&zone), 1);
    sound(&zone);
    // It is isolated, and taken or not.
    let zone = aside_at_0();
    zone.isolate(block).unwrap();
    assert_eq!(zone.block_type(frame(0)), Some(MigrateType::Isolate));
    let outside = at_min(&zone, &atomic(3)).unwrap();
    assert!(!block.contains(outside));
    assert_eq!(zone.free_frames_for(&MOVABLE), 3 * FEW - 8);
    sound(&zone);
    zone.unisolate(block);
    assert_eq!(aside(&zone), 1);
    zone.isolate(block).unwrap();
    zone.take_isolated(block, Mobility::Movable).unwrap();
    zone.unisolate(block);
    assert_eq!(aside(&zone), 0);
    sound(&zone);
    // While something else is isolated, requests look at all blocks, and pass it by.
    let zone = aside_at_0();
    zone.isolate(range(3 * FEW, 4 * FEW)).unwrap();
    let all = take_all_of_sleeping(&zone);
    assert!(all.iter().all(|&at| !block.contains(at)));
    assert_eq!(all.len(), 2 * FEW);
    zone.unisolate(range(3 * FEW, 4 * FEW));
    // It leaves, and comes back as any other.
    let zone = aside_at_0();
    assert_eq!(zone.remove(block), Ok(FEW));
    sound(&zone);
    assert_eq!(zone.add(block), Ok(FEW));
    let census = sound(&zone);
    assert_eq!(census.free, 4 * FEW);
    let all = take_all(&zone, Mobility::Movable);
    assert_eq!(all.len(), 4 * FEW);
}

#[test]
fn the_texts_tell_of_it() {
    let zone = zone(2, 1);
    let at = at_min(&zone, &atomic(3)).unwrap();
    let snapshot = zone.snapshot(0);
    assert_eq!(snapshot.blocks[HighAtomic.index()], 1);
    // Of a block of order 6, the run of order 3 is gone: orders 3, 4 and 5 are left.
    let runs: Vec<usize> = (0..=7)
        .map(|order| snapshot.free[order][HighAtomic.index()])
        .collect();
    assert_eq!(runs, [0, 0, 0, 1, 1, 1, 0, 0]);
    // All of the block is free: one block of order 6, though the other one of its pair is free too.
    free(&zone, at, 3);
    let snapshot = zone.snapshot(0);
    assert_eq!(snapshot.free[6][HighAtomic.index()], 1);
    assert_eq!(snapshot.free[6].iter().sum::<usize>(), 2);
    assert_eq!(snapshot.free[7].iter().sum::<usize>(), 0);
}

#[test]
fn whatever_is_asked_of_it_nothing_is_lost() {
    for seed in 1..60 {
        let mut dice = Dice::new(seed);
        let (blocks, most) = (2 + dice.below(6), 1 + dice.below(4));
        let zone = zone(blocks, most);
        keep(&zone, dice.below(40));
        let mut owned = Owned::none_of(range(0, blocks * FEW));
        let mut held: Vec<(Frame, u8)> = Vec::new();
        let mut ever = 0;
        for _ in 0..600 {
            if dice.below(5) < 2 && !held.is_empty() {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                // A part of it, or all.
                let part = dice.below(usize::from(order) + 1) as u8;
                for piece in 0..1 << (order - part) {
                    let piece = frame(at.number() + (piece << part));
                    owned.give(piece, part);
                    free(&zone, piece, part);
                }
                continue;
            }
            let mobility = dice.one_of(&Mobility::ALL);
            let order = dice.one_of(&[0, 0, 0, 1, 2, 3, 5, 6, 7]);
            let wanted = request(order, mobility);
            let wanted = match dice.below(3) {
                0 => wanted.atomic(),
                1 => wanted.in_context(Context::Interrupt),
                _ => wanted,
            };
            let entitled = wanted.context != Context::MaySleep && (1..6).contains(&order);
            let kinds: Vec<_> = (0..blocks)
                .map(|block| zone.block_type(frame(block * FEW)))
                .collect();
            let mark = dice.one_of(&[Mark::First, Mark::Low, Mark::Min, Mark::Min]);
            let last = dice.below(10) == 0;
            let taken = match last {
                true => at_last(&zone, &wanted),
                false => zone.alloc_above(&wanted, mark),
            };
            if let Some(at) = taken {
                owned.take(at, order);
                held.push((at, order));
                let kind = kinds[at.number() / FEW];
                assert!(
                    kind != Some(HighAtomic) || last || entitled && mark == Mark::Min,
                    "{wanted:?} at {mark:?} took what is set aside"
                );
            }
            assert!(aside(&zone) <= most);
            ever = ever.max(aside(&zone));
            let census = sound(&zone);
            assert_eq!(census.allocated, owned.count());
        }
        assert!(ever > 0, "seed {seed}");
        keep(&zone, 0);
        let rest = take_all(&zone, Mobility::Movable);
        assert_eq!(rest.len() + owned.count(), blocks * FEW, "seed {seed}");
    }
}

/// How many atomic runs of order 3 were asked for, in bursts, and how many of them were refused.
/// The machine's memory is full of single frames, of which as many are dropped at random as others
/// need. Between two bursts, single frames for who cannot wait take most of what the min mark
/// keeps.
fn refused_runs(set_aside: SetAside) -> (usize, usize) {
    const FRAMES: usize = 1 << 16;
    let plan = ZonePlan {
        set_aside,
        ..linux(FRAMES)
    };
    let zone = full(&plan, Cpus::new());
    let marks = Marks {
        min: 256,
        low: 320,
        high: 384,
    };
    set_marks(&zone, marks);
    let mut dice = Dice::new(7);
    let mut pages: Vec<Frame> = Vec::new();
    let (mut asked, mut refused) = (0, 0);
    for burst in 0..200 {
        // Others fill what is free, and from the first time on drop old pages for new ones.
        for _ in 0..if burst == 0 { FRAMES } else { 2_000 } {
            if let Some(page) = zone.alloc_above(&MOVABLE, Mark::Low) {
                pages.push(page);
                continue;
            }
            for _ in 0..8 {
                let page = pages.swap_remove(dice.below(pages.len()));
                free(&zone, page, 0);
            }
        }
        if burst > 0 {
            let urgent = UNMOVABLE.atomic();
            pages.extend((0..200).filter_map(|_| at_min(&zone, &urgent)));
        }
        let run = atomic(3);
        let taken: Vec<Frame> = (0..16)
            .filter_map(|_| {
                let first = zone.alloc_above(&run, Mark::First);
                first.or_else(|| at_min(&zone, &run))
            })
            .collect();
        asked += 16;
        refused += 16 - taken.len();
        taken.iter().for_each(|&at| free(&zone, at, 3));
    }
    sound(&zone);
    (asked, refused)
}

#[test]
fn bursts_of_atomic_runs_are_served_once_some_were() {
    let (asked, without) = refused_runs(SetAside::NONE);
    let (_, with) = refused_runs(SetAside::DEFAULT);
    println!("of {asked} runs {without} were refused, and {with} with what is set aside");
    assert!(without > asked / 4, "the machine is in pieces: {without}");
    assert!(with < without / 20, "{with} of {without}");
}

/// A block is taken as a whole by administration while a slot names it, comes back, and is set aside
/// again: it counts once, and as many others may be set aside as before.
#[test]
fn a_block_that_is_set_aside_again_is_counted_once() {
    let zone = zone(6, 2);
    let block = |at: Frame| at.number() / FEW;
    let run = || at_min(&zone, &atomic(3));
    let first = run().unwrap();
    let mut others = core::iter::from_fn(run).skip_while(|&at| block(at) == block(first));
    let second = others.next().unwrap();
    assert_eq!(aside(&zone), 2);
    // The second one comes free and is taken as a whole: its slot stays.
    free(&zone, second, 3);
    let second = frame(block(second) * FEW);
    let whole = request(6, Mobility::Unmovable);
    assert_eq!(zone.alloc_at(second, &whole), Ok(()));
    assert_eq!(aside(&zone), 1);
    // The first one is given up.
    let rest = take_all_of_sleeping(&zone);
    assert_eq!(rest.len(), 4 * FEW);
    free(&zone, first, 3);
    at_last(&zone, &MOVABLE).unwrap();
    assert_eq!(aside(&zone), 0);
    take_all_of_sleeping(&zone);
    // The second one is free again, and is set aside again.
    free(&zone, second, 6);
    assert_eq!(run().map(block), Some(block(second)));
    assert_eq!((aside(&zone), zone.free_frames()), (1, FEW - 8));
    // Twenty frames come free elsewhere.
    give(&zone, &rest[..20]);
    assert_eq!(zone.free_frames(), FEW - 8 + 20);
    assert_eq!(zone.free_frames_for(&MOVABLE), 20);
    keep(&zone, 10);
    let page = at_min(&zone, &MOVABLE);
    assert!(page.is_some(), "20 are free, 10 are kept");
    // All of the rest comes free.
    give(&zone, &rest[20..]);
    for _ in 0..8 {
        at_min(&zone, &atomic(5));
    }
    assert_eq!(aside(&zone), 2);
}

#[test]
fn a_mark_of_everything_does_not_overflow() {
    let zone = zone(4, 1);
    at_min(&zone, &atomic(2)).unwrap();
    keep(&zone, usize::MAX);
    assert_eq!(at_min(&zone, &MOVABLE), None);
}

#[test]
fn a_partly_isolated_block_that_is_aside_is_not_counted() {
    let zone = zone(4, 1);
    let at = at_min(&zone, &atomic(3)).unwrap();
    let block = at.number() / FEW * FEW;
    keep(&zone, 16);
    // One of its frames is isolated: all others still are no one's but atomic requests'.
    zone.isolate(range(block + 60, block + 61)).unwrap();
    let mut outside = 0;
    while let Some(page) = at_min(&zone, &MOVABLE) {
        assert_ne!(page.number() / FEW, block / FEW);
        outside += 1;
    }
    assert_eq!(outside, 3 * FEW - 16);
}

#[test]
fn nothing_is_given_up_for_a_run_that_is_refused_below_the_mark() {
    let zone = zone(4, 2);
    for _ in 0..3 {
        at_min(&zone, &atomic(5)).unwrap();
    }
    assert_eq!(aside(&zone), 2);
    // Below the mark of anybody: who is entitled, who is not.
    keep(&zone, 100 * FEW);
    for wanted in [atomic(3), MOVABLE, request(3, Mobility::Movable)] {
        let found = (at_last(&zone, &wanted), aside(&zone));
        assert_eq!(found, (None, 2), "{wanted:?}, which it could not serve");
    }
}

#[test]
fn nothing_is_given_up_above_the_limit() {
    let zone = zone(4, 1);
    let at = at_min(&zone, &request(3, Mobility::Movable).atomic()).unwrap();
    let block = at.number() / FEW;
    assert!(block > 0);
    // All below is taken.
    for below in 0..block {
        zone.alloc_at(frame(below * FEW), &request(6, Mobility::Movable))
            .unwrap();
    }
    let wanted = MOVABLE.below(frame(block * FEW));
    assert_eq!(at_last(&zone, &wanted), None);
    assert_eq!(aside(&zone), 1);
}

#[test]
fn nothing_is_given_up_for_a_pair_of_which_the_other_half_is_in_use() {
    let zone = zone(2, 1);
    let at = at_min(&zone, &atomic(3)).unwrap();
    free(&zone, at, 3);
    at_min(&zone, &request(6, Mobility::Movable)).unwrap();
    assert_eq!(at_last(&zone, &request(7, Mobility::Movable)), None);
    assert_eq!(aside(&zone), 1);
}

/// The last resort after a look that saw everything, as a node does it. In between, another CPU
/// frees a frame to its stash, and then takes all that was set aside: at every moment some frame is
/// free.
#[test]
fn a_frame_in_a_stash_is_found_at_last() {
    let plan = of_all(1, linux(2 * BLOCK));
    let cpus = Cpus::new();
    let zone: Bricks<brickyard::sync::Shared> = support::full(&plan, cpus);
    let at = zone.alloc_above(&atomic(8), Mark::Min).unwrap();
    assert_eq!(zone.block_type(at), Some(HighAtomic));
    let patience = &Patience::new();
    let pages: Vec<Frame> = core::iter::from_fn(|| {
        let taken = zone.alloc_above(&MOVABLE, Mark::Min);
        taken.or_else(|| zone.alloc_drained(&MOVABLE, Mark::Min, patience))
    })
    .collect();
    assert_eq!(pages.len(), BLOCK);
    assert_eq!(zone.free_frames(), BLOCK / 2);
    // This CPU's request has come so far.
    assert_eq!(zone.alloc_drained(&MOVABLE, Mark::Min, patience), None);
    cpus.switch_to(1);
    free(&zone, pages[0], 0);
    assert_eq!(zone.cached_frames(), 1);
    zone.alloc_above(&atomic(8), Mark::Min).unwrap();
    cpus.switch_to(0);
    let found = zone.alloc_set_aside(&MOVABLE, Mark::Min, patience);
    assert_eq!(found, Some(pages[0]), "order-0-succeeds");
}

/// Page blocks whose numbers differ by a multiple of 32 share a slot: one of them is set aside.
#[test]
fn of_blocks_that_share_a_slot_one_is_set_aside() {
    let zone = zone(64, 2);
    let wide = request(6, Mobility::Movable);
    for block in (0..64).filter(|block| block % 32 != 0) {
        zone.alloc_at(frame(block * FEW), &wide).unwrap();
    }
    for _ in 0..3 {
        at_min(&zone, &atomic(5)).unwrap();
    }
    assert_eq!(aside(&zone), 1);
    sound(&zone);
}

/// Of the block, only frames above the limit are free.
#[test]
fn nothing_is_given_up_where_the_limit_cuts_the_block() {
    let zone = zone(1, 1);
    zone.alloc_at(frame(0), &request(5, Mobility::Movable))
        .unwrap();
    at_min(&zone, &atomic(3)).unwrap();
    assert_eq!(aside(&zone), 1);
    assert_eq!(at_last(&zone, &MOVABLE.below(frame(32))), None);
    assert_eq!(aside(&zone), 1);
}

/// One block aside has the run, another has the frames that lift the zone above its mark.
#[test]
fn what_lifts_the_zone_above_its_mark_is_given_up_too() {
    let zone = zone(2, 2);
    for order in [5, 4, 3, 5] {
        at_min(&zone, &atomic(order)).unwrap();
    }
    assert_eq!(aside(&zone), 2);
    for at in (0..2 * FEW).map(frame) {
        let free = state(&zone, at);
        if at.number() % 2 == 0 && free.usage == Use::Free && at.number() >= FEW {
            zone.alloc_at(at, &MOVABLE).unwrap();
        }
    }
    assert_eq!(zone.free_frames(), 8 + 16);
    keep(&zone, 10);
    let wanted = request(3, Mobility::Unmovable);
    let taken = at_last(&zone, &wanted).or_else(|| at_last(&zone, &wanted));
    // 24 are free, 10 are kept, 8 are wanted and there is a run of 8.
    assert!(taken.is_some(), "{} aside", aside(&zone));
}

/// Page blocks of 64 frames, blocks of 8 at most: no order in between takes from what is set aside,
/// or has it given up.
#[test]
fn an_order_above_the_highest_gets_nothing_that_is_set_aside() {
    let plan = ZonePlan {
        max_order: Order::new(3),
        ..of_all(8, small(8 * FEW))
    };
    let zone: Plain = full(&plan, Cpus::new());
    at_min(&zone, &atomic(2)).unwrap();
    assert_eq!(aside(&zone), 1);
    for order in 4..8 {
        let too_large = Err(AllocError::OrderTooLarge {
            order: Order::new(order),
            max: plan.max_order,
        });
        for request in [atomic(order), request(order, Mobility::Movable)] {
            assert_eq!(at_min(&zone, &request), None);
            assert_eq!(zone.alloc(&request), too_large);
            assert_eq!(at_last(&zone, &request), None);
        }
    }
    assert_eq!(aside(&zone), 1, "given up in vain");
    sound(&zone);
}
