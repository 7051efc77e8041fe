//! The bitmap store, rule by rule: where a request is served from, what it falls back on, every
//! order whole and in parts, given frames, ranges, isolation, contiguous ranges, what is refused,
//! what it costs in memory, and what it tells of itself.
//!
//! Most zones here have no stashes, so that what is free is in the store; some tests use the store
//! by itself.

#![cfg(not(loom))]

mod support;

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use brickyard::bitmap::Bitmap;
use brickyard::block::Use;
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{
    ContiguousRequest, Migrate, Migration, Need, NoHooks, Reclaim, alloc_contiguous, offline,
};
use brickyard::stats::{BuddyInfo, UnusableText};
use brickyard::sync::{AtomicU64, Exclusive};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Frame, FrameRange, FreeError, MigrateType, Mobility,
    OneCpu, Order, RangeError, Request, Zone, ZoneKind, ZonePlan,
};

use MigrateType::{Movable, Reclaimable, Unmovable};
use support::{
    Bricks, Cpus, Dice, MOVABLE, Owned, RECLAIMABLE, Seen, UNMOVABLE, blocks_of, exhausted, frame,
    free, free_of, give, linux, request, seen, small, sound, state, take, take_all,
};

type Plain = Bricks<Exclusive>;

/// A zone by `plan` without stashes and without memory.
fn empty(plan: &ZonePlan, cpus: &'static Cpus) -> Plain {
    support::empty(&ZonePlan { cpus: 0, ..*plan }, cpus)
}

/// The same with all of its span free.
fn full(plan: &ZonePlan, cpus: &'static Cpus) -> Plain {
    support::full(&ZonePlan { cpus: 0, ..*plan }, cpus)
}

/// Frames in a page block of the plan `linux`.
const BLOCK: usize = 512;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// So many page blocks of order 9, all free.
fn blocks(count: usize) -> Plain {
    full(&linux(count * BLOCK), Cpus::new())
}

/// The same, each in use as one block of this mobility.
fn in_use(count: usize, mobility: Mobility) -> Plain {
    let zone = blocks(count);
    for block in 0..count {
        let taken = zone.alloc_at(frame(block * BLOCK), &request(9, mobility));
        assert_eq!(taken, Ok(()));
    }
    // Their kind is what a request for all of a block makes it.
    for block in 0..count {
        assert_eq!(state(&zone, frame(block * BLOCK)).kind, mobility.into());
    }
    zone
}

/// The same, with so many frames free at the start of some blocks.
fn in_use_but(count: usize, mobility: Mobility, free: &[(usize, usize)]) -> Plain {
    let zone = in_use(count, mobility);
    for &(block, frames) in free {
        let start = block * BLOCK;
        assert_eq!(zone.free_range(range(start, start + frames)), Ok(()));
    }
    sound(&zone);
    zone
}

/// The page blocks that frames lie in, as runs: the block, and how many frames in a row.
fn runs_of(frames: &[Frame]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in frames {
        let block = at.number() / BLOCK;
        match runs.last_mut() {
            Some((last, run)) if *last == block => *run += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

/// Blocks of an order until there are no more.
fn take_all_of<Z: AnyZone>(zone: &Z, order: u8, mobility: Mobility) -> Vec<Frame> {
    core::iter::from_fn(|| zone.alloc(&request(order, mobility)).ok()).collect()
}

/// Free blocks by order, up to order 10.
fn by_order<Z: AnyZone>(zone: &Z) -> [usize; 11] {
    let counts = zone.free_counts().by_order;
    assert!(counts[11..].iter().all(|&blocks| blocks == 0));
    core::array::from_fn(|order| counts[order])
}

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
    let zone = in_use_but(5, Mobility::Movable, &free);
    assert_eq!(
        runs_of(&take(&zone, 300, Mobility::Movable)),
        [(3, 100), (2, 100), (1, 100)]
    );
    let zone = in_use_but(5, Mobility::Unmovable, &free);
    assert_eq!(
        runs_of(&take(&zone, 300, Mobility::Unmovable)),
        [(1, 100), (2, 100), (3, 100)]
    );
}

#[test]
fn many_frames_at_once_come_from_the_same_blocks_as_one_by_one() {
    let free = [(1, 300), (2, 10), (3, 100), (4, BLOCK)];
    let zone = in_use_but(6, Mobility::Unmovable, &free);
    let mut held = [Frame::new(0); 922];
    assert_eq!(zone.alloc_bulk(&UNMOVABLE, &mut held), Ok(922));
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
        assert_eq!(
            zone.alloc(&request(3, mobility)),
            Err(AllocError::Fragmented {
                order: Order::new(3),
                free: 100,
                index: None
            })
        );
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
                assert_eq!(zone.alloc(&Request::page(wanted)), Err(exhausted(0)));
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
        let free_now = 66;
        let why = zone.alloc(&wanted).unwrap_err();
        let fragmented = AllocError::Fragmented {
            order: Order::new(order),
            free: free_now,
            index: None,
        };
        let expected = if Order::new(order).frames() > free_now {
            exhausted(free_now)
        } else {
            fragmented
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
            "{frames}: its free frames are of its kind"
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

// ---- every order ----

/// 3 GiB in frames of 4 KiB, orders up to 1 GiB: metadata only.
fn gigabytes() -> ZonePlan {
    ZonePlan {
        max_order: Order::MAX,
        ..linux(3 << 18)
    }
}

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
fn an_order_above_the_highest_is_refused_as_such() {
    let zone = blocks(4);
    let too_large = AllocError::OrderTooLarge {
        order: Order::new(11),
        max: Order::new(10),
    };
    assert_eq!(zone.alloc(&request(11, Mobility::Movable)), Err(too_large));
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
                assert_eq!(more, Err(exhausted(0)));
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
    let why = AllocError::Fragmented {
        order: Order::new(10),
        free: 4 * BLOCK,
        index: None,
    };
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
fn a_block_is_freed_in_parts_of_different_sizes() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let order = dice.one_of(&[5, 6, 7, 8, 9, 10]);
        let mut whole = vec![(0, order)];
        let mut parts = Vec::new();
        while let Some((at, size)) = whole.pop() {
            if size > 0 && dice.below(6) < 5 && parts.len() + whole.len() < 200 {
                whole.extend([(at, size - 1), (at + (1 << (size - 1)), size - 1)]);
            } else {
                parts.push((at, size));
            }
        }
        let zone: Plain = full(&linux(1 << order.max(9)), Cpus::new());
        zone.alloc_at(frame(0), &request(order, Mobility::Movable))
            .unwrap();
        let rest = range(1 << order, 1 << order.max(9));
        if !rest.is_empty() {
            assert_eq!(zone.reserve(rest), Ok(rest.len()));
        }
        let mut freed = 0;
        for place in dice.shuffled(parts.len()) {
            let (at, size) = parts[place];
            free(&zone, frame(at), size);
            freed += 1 << size;
            assert_eq!(sound(&zone).free, freed, "seed {seed}");
        }
        is_one_again(&zone, order);
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
        free(
            &zone,
            hole.buddy(Order::new(order)).align_down(Order::new(order)),
            order,
        );
        sound(&zone);
    }
    assert_eq!(zone.free_counts().by_order[18], 3);
}

#[test]
fn what_is_left_of_a_block_is_the_largest_parts_that_there_can_be() {
    let zone = held_as_one(10);
    free(&zone, frame(700), 2);
    for (at, order) in [(0, 9), (512, 7), (640, 5), (672, 4), (688, 3), (696, 2)] {
        let (first, state) = zone.block_of(frame(at)).unwrap();
        let found = (first, state.usage, state.order);
        assert_eq!(found, (frame(at), Use::Allocated, Order::new(order)));
    }
    for (at, order) in [(704, 6), (768, 8)] {
        let (first, state) = zone.block_of(frame(at)).unwrap();
        let found = (first, state.usage, state.order);
        assert_eq!(found, (frame(at), Use::Allocated, Order::new(order)));
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
        assert_eq!(zone.alloc(&wanted), Err(exhausted(0)));
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
        let plan = ZonePlan {
            span: range(start, start + len),
            ..linux(0)
        };
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
                for at in held {
                    free(&zone, at, order);
                }
                assert_eq!(sound(&zone).free, len);
            }
        }
    }
}

#[test]
fn a_span_that_begins_inside_a_gigabyte_has_just_the_gigabytes_that_it_covers() {
    let start = (5 << 18) + 300 * BLOCK + 17;
    let plan = ZonePlan {
        span: range(start, start + (2 << 18)),
        max_order: Order::MAX,
        ..linux(0)
    };
    let zone: Plain = full(&plan, Cpus::new());
    let gigabyte = request(18, Mobility::Movable);
    assert_eq!(zone.alloc(&gigabyte), Ok(frame(6 << 18)));
    assert!(zone.alloc(&gigabyte).is_err());
    // 300 blocks into it and a part of one: of 256 blocks none is left before, one behind.
    assert_eq!(
        zone.alloc(&request(17, Mobility::Unmovable)),
        Ok(frame(7 << 18))
    );
    sound(&zone);
    free(&zone, frame(6 << 18), 18);
    free(&zone, frame(7 << 18), 17);
    assert_eq!(sound(&zone).free, 2 << 18);
}

#[test]
fn frames_of_the_first_block_that_lie_before_the_span_are_nobodys() {
    let plan = ZonePlan {
        span: range(100, 1000),
        ..linux(0)
    };
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

// ---- a given frame ----

#[test]
fn a_given_block_is_taken_from_free_open_and_grouped_blocks() {
    let mut dice = Dice::new(3);
    for order in 0..=10 {
        for mobility in Mobility::ALL {
            let zone = blocks(4);
            // In a block that is free as a whole; then, with a frame beside it in use, in an open
            // one.
            for _ in 0..2 {
                let places = (4 * BLOCK) >> order;
                let at = frame((dice.below(places)) << order);
                let wanted = request(order, mobility);
                let taken = zone.alloc_at(at, &wanted);
                match taken {
                    Ok(()) => {
                        let (first, found) = zone.block_of(at).unwrap();
                        let found = (first, found.usage, found.order);
                        assert_eq!(found, (at, Use::Allocated, Order::new(order)));
                        sound(&zone);
                        let busy = Err(RangeError::Busy { frame: at });
                        assert_eq!(zone.alloc_at(at, &wanted), busy);
                    }
                    Err(why) => panic!("{at} of order {order}: {why}"),
                }
                free(&zone, at, order);
                // Something in use where the next one will not be asked for.
                let other = if at.number() < BLOCK {
                    4 * BLOCK - 1
                } else {
                    0
                };
                if order < 9 && zone.block_of(frame(other)).unwrap().1.usage == Use::Free {
                    assert_eq!(zone.alloc_at(frame(other), &MOVABLE), Ok(()));
                    free(&zone, frame(other), 0);
                }
            }
            assert_eq!(by_order(&zone)[10], 2);
        }
    }
}

#[test]
fn a_given_block_that_is_not_all_free_names_the_first_frame_in_use_and_changes_nothing() {
    let zone = blocks(4);
    assert_eq!(zone.alloc_at(frame(1700), &MOVABLE), Ok(()));
    let before = seen(&zone);
    let at = |at, order| zone.alloc_at(frame(at), &request(order, Mobility::Movable));
    let busy = |at| Err(RangeError::Busy { frame: frame(at) });
    assert_eq!(at(1700, 0), busy(1700));
    assert_eq!(at(1696, 3), busy(1700));
    assert_eq!(at(1664, 7), busy(1700));
    assert_eq!(at(1536, 9), busy(1700));
    assert_eq!(at(1024, 10), busy(1700));
    assert_eq!(seen(&zone), before);
    // Inside a huge block it is the first frame asked for.
    assert_eq!(at(0, 10), Ok(()));
    let before = seen(&zone);
    assert_eq!(at(0, 0), busy(0));
    assert_eq!(at(77, 0), busy(77));
    assert_eq!(at(600, 3), busy(600));
    assert_eq!(at(512, 9), busy(512));
    assert_eq!(at(0, 10), busy(0));
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_given_block_that_makes_no_sense_is_malformed_outside_or_absent() {
    let span = range(0, 1000);
    let zone: Plain = empty(&linux(1000), Cpus::new());
    assert_eq!(zone.add(range(0, 600)), Ok(600));
    let before = seen(&zone);
    let at = |at, order| zone.alloc_at(frame(at), &request(order, Mobility::Movable));
    assert_eq!(at(1, 1), Err(RangeError::Malformed));
    assert_eq!(at(256, 9), Err(RangeError::Malformed));
    assert_eq!(at(0, 11), Err(RangeError::Malformed));
    assert_eq!(at(992, 4), Err(RangeError::OutsideSpan { span }));
    assert_eq!(at(1024, 9), Err(RangeError::OutsideSpan { span }));
    let absent = |at| Err(RangeError::Absent { frame: frame(at) });
    assert_eq!(at(600, 0), absent(600));
    assert_eq!(at(596, 2), Ok(()));
    free(&zone, frame(596), 2);
    assert_eq!(at(592, 4), absent(600));
    assert_eq!(at(512, 8), absent(600));
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_given_frame_is_taken_without_the_zones_lock() {
    // Lock-free for every operation that is not administration, and this is none: a compacting task
    // takes its places so. Whoever administers has interrupts masked.
    let cpus = Cpus::new();
    let zone: Plain = full(&linux(2048), cpus);
    let masks = cpus.masks();
    assert_eq!(zone.alloc_at(frame(5), &MOVABLE), Ok(()));
    assert_eq!(cpus.masks(), masks);
}

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
    let mut many = [Frame::new(0); 700];
    assert_eq!(zone.alloc_bulk(&UNMOVABLE, &mut many), Ok(700));
    assert_eq!(zone.free_bulk(&many), Ok(()));
    let block = zone.alloc(&request(9, Mobility::Movable)).unwrap();
    assert_eq!(
        zone.free_range(FrameRange::of_block(block, Order::new(9))),
        Ok(())
    );
    let all = take_all(&zone, Mobility::Movable);
    assert!(zone.alloc(&MOVABLE).is_err());
    assert!(zone.free(frame(9999), Order::ZERO).is_err());
    give(&zone, &all);
    assert_eq!(zone.free_counts().free_frames(), 4096);
    assert_eq!(zone.snapshot(0).blocks[Movable.index()], 8);
    zone.drain();
    assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
}

// ---- ranges ----

#[test]
fn a_range_of_odd_alignment_becomes_the_fewest_aligned_blocks() {
    let plan = ZonePlan {
        span: range(3, 1003),
        ..linux(0)
    };
    let zone: Plain = empty(&plan, Cpus::new());
    assert_eq!(zone.add(range(5, 77)), Ok(72));
    // 5; 6; 8; 16; 32; 64; 72; 76.
    assert_eq!(by_order(&zone)[..7], [2, 1, 1, 2, 1, 1, 0]);
    assert_eq!((zone.free_frames(), zone.managed_frames()), (72, 72));
    assert_eq!(zone.add(range(70, 90)), Ok(13));
    assert_eq!(zone.add(range(5, 90)), Ok(0));
    sound(&zone);
    assert_eq!(zone.add(plan.span), Ok(1000 - 85));
    // 3; 4; 8; 16; ... 256; 512 and 768 up to 1003.
    assert_eq!(by_order(&zone), [2, 1, 1, 2, 1, 2, 2, 2, 2, 0, 0]);
    sound(&zone);
    assert_eq!(zone.remove(plan.span), Ok(1000));
    assert_eq!(zone.managed_frames(), 0);
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0)));
    sound(&zone);
}

#[test]
fn holes_are_never_handed_out_and_nothing_merges_over_them() {
    let zone: Plain = empty(&linux(2048), Cpus::new());
    let ranges = [
        range(1, 60),
        range(64, 65),
        range(67, 600),
        range(1024, 2047),
    ];
    for part in ranges {
        assert_eq!(zone.add(part), Ok(part.len()));
    }
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 59 + 1 + 533 + 1023);
    let in_a_range = |at: &Frame| ranges.iter().any(|range| range.contains(*at));
    assert!(held.iter().all(in_a_range));
    give(&zone, &held);
    for hole in [0, 60, 63, 65, 66, 600, 1023, 2047] {
        assert_eq!(zone.block_of(frame(hole)), None);
        assert_eq!(
            zone.free(frame(hole), Order::ZERO),
            Err(FreeError::NotOwned)
        );
    }
    for order in 0..=10 {
        for at in take_all_of(&zone, order, Mobility::Movable) {
            let block = FrameRange::of_block(at, Order::new(order));
            assert!(ranges.iter().any(|range| range.covers(block)), "{at}");
        }
        assert_eq!(zone.remove(range(0, 0)), Ok(0));
        sound(&zone);
        for part in ranges {
            for at in part.frames() {
                // What of it is in use; the rest is refused.
                let _ = zone.free(at, Order::ZERO);
            }
        }
        assert_eq!(sound(&zone).free, held.len());
    }
}

#[test]
fn reservations_overlap_count_each_frame_once_and_are_given_up_in_parts() {
    let zone: Plain = empty(&linux(2048), Cpus::new());
    assert_eq!(zone.add(range(0, 1500)), Ok(1500));
    assert_eq!(zone.reserve(range(10, 530)), Ok(520));
    assert_eq!(zone.reserve(range(500, 1045)), Ok(515));
    // A reservation may reach over what is no memory.
    assert_eq!(zone.reserve(range(1490, 2048)), Ok(10));
    assert_eq!(zone.managed_frames(), 1500 - 1045);
    assert_eq!(sound(&zone).reserved, 1045);
    let held = take_all(&zone, Mobility::Unmovable);
    assert_eq!(held.len(), 455);
    let reserved = |at: &&Frame| range(10, 1045).contains(**at) || **at >= frame(1490);
    assert_eq!(held.iter().find(reserved), None);
    give(&zone, &held);
    assert_eq!(zone.add(range(0, 1500)), Ok(0), "reserved is memory");
    assert_eq!(zone.unreserve(range(512, 1024)), Ok(512));
    assert_eq!(zone.unreserve(range(512, 1024)), Ok(0));
    assert_eq!(by_order(&zone)[9], 1);
    sound(&zone);
    assert_eq!(zone.remove(range(0, 100)), Ok(100));
    assert_eq!(zone.unreserve(range(0, 2048)), Ok(1045 - 512 - 90));
    assert_eq!(sound(&zone).free, 1400);
}

#[test]
fn memory_in_use_is_not_removed_or_reserved_and_the_first_such_frame_is_named() {
    let zone = blocks(4);
    for at in [700, 400] {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let wide = request(9, Mobility::Movable);
    assert_eq!(zone.alloc_at(frame(1536), &wide), Ok(()));
    let before = seen(&zone);
    let busy = |at| Err(RangeError::Busy { frame: frame(at) });
    assert_eq!(zone.remove(range(0, 2048)), busy(400));
    assert_eq!(zone.remove(range(401, 2048)), busy(700));
    assert_eq!(zone.reserve(range(3, 999)), busy(400));
    assert_eq!(zone.reserve(range(701, 1600)), busy(1536));
    assert_eq!(zone.remove(range(1600, 1601)), busy(1600));
    assert_eq!(seen(&zone), before);
    assert_eq!(zone.remove(range(701, 1536)), Ok(835));
    sound(&zone);
}

#[test]
fn a_range_outside_the_span_is_refused() {
    let span = range(3, 1003);
    let plan = ZonePlan { span, ..linux(0) };
    let zone: Plain = empty(&plan, Cpus::new());
    let outside = Err(RangeError::OutsideSpan { span });
    for bad in [range(0, 10), range(1000, 1004), range(2000, 2001)] {
        assert_eq!(zone.add(bad), outside);
        assert_eq!(zone.remove(bad), outside);
        assert_eq!(zone.reserve(bad), outside);
        assert_eq!(zone.unreserve(bad), outside);
    }
    assert_eq!(zone.managed_frames(), 0);
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

#[test]
fn memory_is_movable_at_first() {
    let zone = blocks(4);
    assert_eq!(free_of(&zone, Movable), 2048);
    assert_eq!(blocks_of(&zone, Movable), 4);
}

// ---- stores by themselves ----

fn leaked_words(words: usize) -> &'static [AtomicU64] {
    (0..words)
        .map(|_| AtomicU64::new(0))
        .collect::<Vec<_>>()
        .leak()
}

/// A store by itself.
fn bitmap(span: FrameRange, max_order: u8, block_order: u8) -> Bitmap<'static> {
    let (max, block) = (Order::new(max_order), Order::new(block_order));
    let words = leaked_words(Bitmap::words(span, max, block));
    Bitmap::new(span, max, block, words)
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
            assert_eq!(store.isolate(isolated), Ok(()));
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
            store.unisolate(isolated);
            assert_eq!(store.check().unwrap().isolated, 0);
            let rest = drain_store(&store, &MOVABLE);
            assert_eq!(rest.len(), 4 * BLOCK - held.len() * size);
        }
    }
}

#[test]
fn many_frames_at_once_leave_isolated_parts_alone_too() {
    let store = four_blocks();
    assert_eq!(store.isolate(range(10, 2000)), Ok(()));
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
    assert_eq!(store.isolate(range(100, 1000)), Ok(()));
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
    store.unisolate(range(100, 1000));
    assert_eq!(drain_store(&store, &UNMOVABLE).len(), 900);
    store.check().unwrap();
}

#[test]
fn memory_that_is_added_to_an_isolated_range_is_isolated() {
    // A part of a page block, then whole ones; added, and given up by a reservation.
    for part in [range(100, 200), range(0, 512), range(300, 2000)] {
        let store = bitmap(range(0, 4 * BLOCK), 10, 9);
        assert_eq!(store.isolate(range(0, 4 * BLOCK)), Ok(()));
        assert_eq!(store.add(part), Ok(part.len()));
        assert_eq!(store.free_frames(), 0, "{part:?}");
        assert_eq!(store.check().map(|census| census.isolated), Ok(part.len()));
        assert_eq!(store.reserve(part), Ok(part.len()));
        assert_eq!(store.unreserve(part), Ok(part.len()));
        assert_eq!(store.free_frames(), 0, "{part:?}");
        assert_eq!(store.take(&MOVABLE), None);
        store.unisolate(range(0, 4 * BLOCK));
        assert_eq!(store.free_frames(), part.len());
        store.check().unwrap();
    }
}

#[test]
fn four_ranges_are_isolated_at_a_time_and_none_overlaps_another() {
    let store = four_blocks();
    let isolated = Err(RangeError::Isolated);
    assert_eq!(store.isolate(range(5, 5)), Err(RangeError::Malformed));
    for n in 0..4 {
        let part = range(n * 100, n * 100 + 50);
        assert_eq!(store.isolate(part), Ok(()));
        assert_eq!(store.isolate(range(n * 100 + 49, n * 100 + 60)), isolated);
        assert!(store.is_isolated(part.start));
        assert!(!store.is_isolated(part.end));
    }
    assert_eq!(store.isolate(range(1000, 1001)), isolated);
    assert_eq!(store.take_at(frame(149), &MOVABLE), isolated);
    assert_eq!(store.take_at(frame(150), &MOVABLE), Ok(()));
    // Only exactly what was isolated ends.
    store.unisolate(range(100, 149));
    assert!(store.is_isolated(frame(149)));
    store.unisolate(range(100, 150));
    assert!(!store.is_isolated(frame(149)));
    assert_eq!(store.isolate(range(1000, 1001)), Ok(()));
    store.check().unwrap();
}

#[test]
fn an_isolated_range_is_taken_whole_or_not_at_all() {
    let store = four_blocks();
    let part = range(300, 1900);
    assert_eq!(store.take_at(frame(1700), &MOVABLE), Ok(()));
    assert_eq!(store.isolate(part), Ok(()));
    let before = (store.check(), store.free_table());
    let busy = Err(RangeError::Busy { frame: frame(1700) });
    assert_eq!(store.take_isolated(part, Unmovable), busy);
    assert_eq!((store.check(), store.free_table()), before);
    assert!(store.give(frame(1700), Order::ZERO).is_ok());
    assert_eq!(store.take_isolated(part, Unmovable), Ok(()));
    let census = store.check().unwrap();
    assert_eq!((census.allocated, census.isolated), (1600, 0));
    store.unisolate(part);
    assert_eq!(store.check_in_use(part), Ok(()));
    assert_eq!(
        store.check_in_use(range(299, 1900)),
        Err(FreeError::DoubleFree)
    );
    assert_eq!(drain_store(&store, &MOVABLE).len(), 4 * BLOCK - 1600);
}

#[test]
fn the_only_free_frame_is_found_beside_an_isolated_part_of_its_block() {
    for mobility in Mobility::ALL {
        let store = four_blocks();
        drain_store(&store, &UNMOVABLE);
        assert_eq!(store.isolate(range(600, 700)), Ok(()));
        for at in [590, 650, 655] {
            assert!(store.give(frame(at), Order::ZERO).is_ok());
        }
        let wanted = Request::page(mobility);
        assert_eq!(drain_store(&store, &wanted), [frame(590)]);
        assert_eq!(store.check().unwrap().isolated, 2);
    }
}

// ---- contiguous ranges and memory that goes offline ----

/// The owner of all movable blocks in use: moves what it is asked to move.
struct Owner {
    cpus: &'static Cpus,
    pages: RefCell<BTreeMap<Frame, Order>>,
}

impl Owner {
    fn of(zone: &Plain) -> Self {
        let mut pages = BTreeMap::new();
        for at in zone.span().frames() {
            if let Some((first, state)) = zone.block_of(at)
                && first == at
                && state.usage == Use::Allocated
                && state.kind == Movable
            {
                pages.insert(first, state.order);
            }
        }
        Self {
            cpus: zone.platform(),
            pages: RefCell::new(pages),
        }
    }

    /// Its pages are all in use, each as one block.
    fn has_what_it_has(&self, zone: &Plain) {
        for (&at, &order) in &*self.pages.borrow() {
            let (first, state) = zone.block_of(at).expect("memory");
            let found = (first, state.usage, state.order);
            assert_eq!(found, (at, Use::Allocated, order));
        }
        sound(zone);
    }
}

impl Migrate for Owner {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        assert!(self.cpus.is_at_rest());
        let mut pages = self.pages.borrow_mut();
        match pages.remove(&from) {
            Some(own) => {
                assert_eq!(own, order);
                pages.insert(to, order);
                Migration::Moved
            }
            None => Migration::Unknown,
        }
    }
}

impl Reclaim for Owner {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

/// A zone of so many page blocks in which movable blocks of all small orders are scattered, about
/// half of it.
fn scattered(count: usize, seed: u64) -> (Plain, Owner) {
    let zone = blocks(count);
    let mut dice = Dice::new(seed);
    let mut held = Vec::new();
    while zone.free_frames() > 0 {
        let order = dice.one_of(&[0, 0, 0, 1, 2, 3, 5]);
        if let Ok(at) = zone.alloc(&request(order, Mobility::Movable)) {
            held.push((at, order));
        }
    }
    for place in dice.shuffled(held.len()).into_iter().step_by(2) {
        let (at, order) = held[place];
        free(&zone, at, order);
    }
    let owner = Owner::of(&zone);
    owner.has_what_it_has(&zone);
    (zone, owner)
}

#[test]
fn a_contiguous_range_is_cleared_by_moving_and_freed_in_parts() {
    for (seed, frames) in [(1, 100), (2, 700), (3, 1024), (4, 1500)] {
        let (zone, owner) = scattered(8, seed);
        let before = sound(&zone);
        let wanted = ContiguousRequest::new(frames, zone.span()).aligned(4);
        let got = alloc_contiguous(&zone, &wanted, &owner).unwrap();
        assert_eq!((got.len(), got.start.number() % 4), (frames, 0));
        owner.has_what_it_has(&zone);
        let census = sound(&zone);
        assert_eq!(census.allocated, before.allocated + frames);
        assert_eq!(census.isolated, 0);
        let inside = |at: &&Frame| got.contains(**at);
        assert_eq!(owner.pages.borrow().keys().find(inside), None);
        let middle = got.start.plus(frames / 3);
        let (one, two) = (
            FrameRange { end: middle, ..got },
            FrameRange {
                start: middle,
                ..got
            },
        );
        assert_eq!(zone.free_range(two), Ok(()));
        assert_eq!(zone.free_range(two), Err(FreeError::DoubleFree));
        assert_eq!(zone.free_range(one), Ok(()));
        assert_eq!(sound(&zone), before);
    }
}

#[test]
fn a_free_place_for_a_contiguous_range_is_found_without_moving_anything() {
    let zone = in_use_but(8, Mobility::Unmovable, &[(2, 300), (4, BLOCK), (5, 200)]);
    let wanted = |frames| ContiguousRequest::new(frames, range(0, 8 * BLOCK));
    let got = alloc_contiguous(&zone, &wanted(400), &NoHooks);
    assert_eq!(got, Ok(range(2048, 2448)));
    let got = alloc_contiguous(&zone, &wanted(312), &NoHooks);
    assert_eq!(got, Ok(range(2448, 2760)));
    let refused = alloc_contiguous(&zone, &wanted(301), &NoHooks);
    assert!(matches!(refused, Err(RangeError::Busy { .. })));
    let got = alloc_contiguous(&zone, &wanted(300), &NoHooks);
    assert_eq!(got, Ok(range(1024, 1324)));
    assert_eq!(sound(&zone).free, 0);
}

#[test]
fn a_contiguous_range_that_something_unmovable_blocks_is_refused_and_stays_usable() {
    let zone = blocks(4);
    for block in 0..4 {
        let taken = zone.alloc_at(frame(block * BLOCK + 200), &UNMOVABLE);
        assert_eq!(taken, Ok(()));
    }
    let before = seen(&zone);
    let wanted = ContiguousRequest::new(600, zone.span());
    let refused = alloc_contiguous(&zone, &wanted, &NoHooks);
    assert!(matches!(refused, Err(RangeError::Busy { .. })));
    assert_eq!(seen(&zone), before);
}

#[test]
fn memory_goes_offline_with_holes_and_all_and_comes_back() {
    let (zone, owner) = scattered(8, 9);
    let before = sound(&zone);
    let part = range(700, 1700);
    assert_eq!(offline(&zone, part, &owner), Ok(1000));
    owner.has_what_it_has(&zone);
    assert_eq!(zone.managed_frames(), 8 * BLOCK - 1000);
    assert!(part.frames().all(|at| zone.block_of(at).is_none()));
    assert_eq!(zone.free(frame(800), Order::ZERO), Err(FreeError::NotOwned));
    // Once more, with what is gone in the middle of it.
    assert_eq!(offline(&zone, range(600, 1800), &owner), Ok(200));
    owner.has_what_it_has(&zone);
    assert_eq!(zone.add(range(600, 1800)), Ok(1200));
    assert_eq!(sound(&zone).free, before.free);
    let busy = offline(&zone, zone.span(), &NoHooks);
    assert!(matches!(busy, Err(RangeError::Busy { .. })));
    assert_eq!(sound(&zone).isolated, 0);
}

#[test]
fn compaction_and_the_slow_path_bring_huge_blocks_together() {
    let (zone, owner) = scattered(8, 5);
    compact_all(&zone, &owner);
    owner.has_what_it_has(&zone);
    let whole = zone.free_counts().suitable(Order::HUGE);
    assert!(
        whole >= 3,
        "about half of 8 blocks is free, and {whole} are"
    );
    // And on the way of a request.
    let (zone, owner) = scattered(8, 6);
    let zones = [zone];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, owner, SlowPath::MODERN);
    let huge = nodes.alloc(0, &request(9, Mobility::Movable)).unwrap();
    assert!(huge.is_aligned(Order::HUGE));
    nodes.hooks().has_what_it_has(&zones[0]);
}

#[test]
fn a_range_from_the_middle_of_one_block_to_the_middle_of_another_is_freed() {
    let zone = blocks(4);
    for (at, order) in [
        (0, 10),
        (1024, 0),
        (1025, 0),
        (1026, 1),
        (1028, 8),
        (1536, 9),
    ] {
        let at = frame(at).align_down(Order::new(order));
        assert_eq!(
            zone.alloc_at(at, &request(order, Mobility::Movable))
                .is_ok(),
            order != 8
        );
    }
    let rest = alloc_contiguous(
        &zone,
        &ContiguousRequest::new(508, range(1028, 1536)),
        &NoHooks,
    );
    assert_eq!(rest, Ok(range(1028, 1536)));
    assert_eq!(zone.free_frames(), 0);
    assert_eq!(zone.free_range(range(300, 1700)), Ok(()));
    assert_eq!(sound(&zone).free, 1400);
    let before = seen(&zone);
    assert_eq!(zone.free_range(range(200, 301)), Err(FreeError::DoubleFree));
    assert_eq!(zone.free_range(range(1900, 2049)), Err(FreeError::NotOwned));
    assert_eq!(seen(&zone), before);
    assert_eq!(zone.free_range(range(0, 300)), Ok(()));
    assert_eq!(zone.free_range(range(1700, 2048)), Ok(()));
    assert_eq!(by_order(&zone)[10], 2);
}

// ---- frees that are refused ----

/// A zone that has something of everything. It begins in the middle of a block.
struct Mixed {
    zone: Plain,
}

impl Mixed {
    /// Records for 100..5200, memory at 200..5000, a hole at 300..320, reserved frames at 400..410.
    /// In use: two single frames at 600 and 601, a block of order 4 at 640, one of order 8 at 768,
    /// a huge one at 1024, a group of order 10 at 2048 of which frames 2200 and 2600..2608 have
    /// been freed, and one at 3072.
    fn new() -> Self {
        let plan = ZonePlan {
            span: range(100, 5200),
            ..linux(0)
        };
        let zone: Plain = empty(&plan, Cpus::new());
        assert_eq!(zone.add(range(200, 5000)), Ok(4800));
        assert_eq!(zone.remove(range(300, 320)), Ok(20));
        assert_eq!(zone.reserve(range(400, 410)), Ok(10));
        for (at, order) in [
            (600, 0),
            (601, 0),
            (640, 4),
            (768, 8),
            (1024, 9),
            (2048, 10),
            (3072, 10),
        ] {
            let taken = zone.alloc_at(frame(at), &request(order, Mobility::Movable));
            assert_eq!(taken, Ok(()));
        }
        free(&zone, frame(2200), 0);
        free(&zone, frame(2600), 3);
        Self { zone }
    }

    /// Refused for this reason, and everything is as before.
    fn refuses(&self, bad: &[(usize, u8)], why: FreeError) {
        for &(at, order) in bad {
            let before: Seen = seen(&self.zone);
            let answer = self.zone.free(frame(at), Order::new(order));
            assert_eq!(answer, Err(why), "{at}, order {order}");
            assert_eq!(seen(&self.zone), before, "{at}, order {order}");
        }
    }

    fn refuses_order(&self, allocated: u8, bad: &[(usize, u8)]) {
        let allocated = Order::new(allocated);
        self.refuses(bad, FreeError::WrongOrder { allocated });
    }
}

#[test]
fn a_free_of_what_is_not_its_own_is_refused() {
    let mixed = Mixed::new();
    let outside = [0, 99, 5200, 5631, 1 << 40, usize::MAX];
    let inside = [100, 199, 5000, 5199, 300, 310, 319, 400, 405, 409];
    for at in outside.into_iter().chain(inside) {
        mixed.refuses(&[(at, 0)], FreeError::NotOwned);
    }
    mixed.refuses(
        &[(304, 3), (400, 3), (128, 3), (1 << 20, 9)],
        FreeError::NotOwned,
    );
}

#[test]
fn a_free_of_what_is_free_is_refused() {
    let mixed = Mixed::new();
    let twice = [
        (200, 0),
        (602, 0),
        (1600, 5),
        (1536, 9),
        (4096, 9),
        (2200, 0),
        (2600, 3),
        (2607, 0),
    ];
    mixed.refuses(&twice, FreeError::DoubleFree);
    for (at, order) in [(600, 0), (640, 4), (768, 8), (1024, 9), (3072, 10)] {
        free(&mixed.zone, frame(at), order);
        let again = [(at, order), (at, 0), (at + (1 << order) - 1, 0)];
        mixed.refuses(&again, FreeError::DoubleFree);
    }
}

#[test]
fn a_free_of_more_than_was_taken_is_refused_and_the_right_order_named() {
    let mixed = Mixed::new();
    mixed.refuses_order(0, &[(600, 1), (600, 3), (601, 1), (600, 9), (601, 10)]);
    mixed.refuses_order(4, &[(640, 5), (640, 6), (640, 9)]);
    mixed.refuses_order(8, &[(768, 9), (768, 10), (1000, 9)]);
    mixed.refuses_order(9, &[(1024, 10), (1024, 18), (1535, 10)]);
    mixed.refuses_order(10, &[(3072, 11), (3584, 18)]);
    // What is left of the torn group: 2048..2176 is of order 7, 2201 single; 2608..2624 of order 4.
    mixed.refuses_order(7, &[(2048, 10), (2048, 9), (2048, 8)]);
    mixed.refuses_order(0, &[(2201, 1), (2201, 9)]);
    mixed.refuses_order(4, &[(2608, 5)]);
    mixed.refuses_order(8, &[(2816, 9), (2816, 10)]);
}

#[test]
fn a_free_of_a_misaligned_part_is_refused() {
    let mixed = Mixed::new();
    mixed.refuses_order(4, &[(641, 1), (644, 3), (655, 2), (648, 4)]);
    mixed.refuses_order(8, &[(769, 1), (768 + 64, 7), (768 + 128, 8)]);
    mixed.refuses_order(9, &[(1025, 1), (1024 + 64, 7), (1024 + 256, 9), (1535, 5)]);
    mixed.refuses_order(
        10,
        &[(3073, 1), (3072 + 256, 9), (3072 + 512, 10), (4095, 8)],
    );
}

#[test]
fn after_every_refusal_the_right_frees_go_through() {
    let mixed = Mixed::new();
    for (at, order) in [
        (600, 0),
        (601, 0),
        (640, 4),
        (768, 8),
        (1024, 9),
        (3072, 10),
    ] {
        free(&mixed.zone, frame(at), order);
    }
    let rest = [range(2048, 2200), range(2201, 2600), range(2608, 3072)];
    for part in rest {
        assert_eq!(mixed.zone.free_range(part), Ok(()));
    }
    let census = sound(&mixed.zone);
    assert_eq!((census.free, census.allocated), (4800 - 30, 0));
}

#[test]
fn a_list_of_frames_is_freed_up_to_the_first_bad_one() {
    for through in [1, 100, 600] {
        for (bad, error) in [
            (310, FreeError::NotOwned),
            (405, FreeError::NotOwned),
            (1 << 30, FreeError::NotOwned),
            (4500, FreeError::DoubleFree),
        ] {
            let mixed = Mixed::new();
            let zone = &mixed.zone;
            // Order 0, from three blocks: not 4500, which stays free.
            let mut list: Vec<Frame> = range(1536, 2048).frames().collect();
            list.extend(range(4096, 4400).frames());
            for &at in &list {
                assert_eq!(zone.alloc_at(at, &MOVABLE), Ok(()));
            }
            let free_before = zone.free_frames();
            list.insert(through, frame(bad));
            let freed = through;
            assert_eq!(zone.free_bulk(&list), Err(BulkFreeError { freed, error }));
            assert_eq!(sound(zone).free, free_before + freed);
            assert_eq!(zone.free_bulk(&list[freed + 1..]), Ok(()));
            // Each twice.
            let error = FreeError::DoubleFree;
            let freed = 0;
            assert_eq!(
                zone.free_bulk(&list[..1]),
                Err(BulkFreeError { freed, error })
            );
            sound(zone);
        }
    }
}

#[test]
fn a_frame_that_is_in_a_list_twice_is_freed_once() {
    let zone = blocks(2);
    let mut list = take(&zone, 700, Mobility::Movable);
    list.push(list[3]);
    list.push(list[4]);
    let error = FreeError::DoubleFree;
    let refused = BulkFreeError { freed: 700, error };
    assert_eq!(zone.free_bulk(&list), Err(refused));
    assert_eq!(sound(&zone).free, 1024);
}

// ---- metadata ----

/// 64 GiB in frames of 4 KiB.
const LARGE: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1 << 24), 8);

#[test]
fn metadata_is_at_most_a_ten_thousandth_of_memory() {
    let most = (64_usize << 30) / 10_000;
    let words = Bitmap::words(LARGE.span, LARGE.max_order, LARGE.page_block_order);
    assert!(words * 8 <= most, "{} of {most} bytes", words * 8);
    let alone = Zone::<OneCpu>::bytes(&ZonePlan { cpus: 0, ..LARGE });
    assert!(alone <= most);
    // As the module says: three bits a frame, 8 bytes a page block, 43 bits a page block for the
    // summary.
    let told = (1 << 24) * 3 / 8 + (1 << 15) * 8 + (1 << 15) * 43 / 8;
    assert!(words * 8 - told < told / 100, "{} told {told}", words * 8);
    // With orders up to 1 GiB it is no more.
    let gigabytes = Bitmap::words(LARGE.span, Order::MAX, Order::HUGE);
    assert_eq!(gigabytes, words);
}

#[test]
fn each_cpu_costs_13_kib_more() {
    let with = |cpus| Zone::<OneCpu>::bytes(&ZonePlan { cpus, ..LARGE });
    let stash = with(8) - with(7);
    assert_eq!(with(8) - with(0), 8 * stash);
    assert!(stash <= (13 << 10) + 128, "{stash} bytes");
    // 64 GiB and 8 CPUs: still at most a ten-thousandth.
    assert!(with(8) <= (64 << 30) / 10_000);
}

#[test]
fn too_little_memory_is_refused_and_just_enough_is_enough() {
    let plan = ZonePlan {
        cpus: 0,
        ..linux(2048)
    };
    let bytes = Zone::<OneCpu>::bytes(&plan);
    // What may have to be skipped before the first line of words, and before the first slot, if
    // there were any.
    let too_little = bytes - 64 - 128;
    for (supplied, enough) in [(0, false), (100, false), (too_little, false), (bytes, true)] {
        let mut memory = vec![core::mem::MaybeUninit::uninit(); supplied];
        let zone = Zone::<OneCpu>::new(&plan, OneCpu, &mut memory);
        assert_eq!(zone.is_ok(), enough, "{supplied} of {bytes}");
    }
}

// ---- page blocks of every order ----

/// Random requests and frees, whole and in parts, each followed by a test of every invariant. No
/// frame has two owners.
fn random_work(plan: &ZonePlan, steps: usize, seed: u64) {
    let zone: Plain = full(plan, Cpus::new());
    let mut dice = Dice::new(seed);
    let mut owned = Owned::none_of(plan.span);
    let mut held: Vec<(Frame, u8)> = Vec::new();
    let max = plan.max_order.get();
    for _ in 0..steps {
        let fill = owned.count() * 4 < plan.span.len() * 3;
        if held.is_empty() || dice.below(10) < if fill { 6 } else { 3 } {
            let highest = dice_order(&mut dice, max);
            let order = dice.below(highest + 1) as u8;
            let wanted = request(order, dice.one_of(&Mobility::ALL));
            if let Ok(at) = zone.alloc(&wanted) {
                owned.take(at, order);
                held.push((at, order));
            } else {
                assert_eq!(zone.free_counts().suitable(Order::new(order)), 0);
            }
        } else {
            let (at, order) = held.swap_remove(dice.below(held.len()));
            let part = order - dice.below(order as usize + 1).min(2) as u8;
            let places = 1 << (order - part);
            let given = dice.below(places);
            for place in 0..places {
                let at = at.plus(place << part);
                if place == given {
                    owned.give(at, part);
                    free(&zone, at, part);
                } else {
                    held.push((at, part));
                }
            }
        }
        let census = sound(&zone);
        assert_eq!(census.allocated, owned.count());
        assert_eq!(zone.free_frames(), plan.span.len() - owned.count());
    }
    for (at, order) in held {
        free(&zone, at, order);
    }
    let whole: Plain = full(plan, Cpus::new());
    assert_eq!(sound(&zone).free, plan.span.len());
    assert_eq!(zone.free_counts(), whole.free_counts());
}

/// Small orders more often than large ones.
fn dice_order(dice: &mut Dice, max: u8) -> usize {
    let max = max as usize;
    dice.one_of(&[0, 0, 3.min(max), 6.min(max), max])
}

#[test]
fn page_blocks_of_every_order_from_6_to_11_work() {
    for block_order in 6..=11 {
        let plan = ZonePlan {
            max_order: Order::new(block_order + 2),
            page_block_order: Order::new(block_order),
            ..linux(8 << block_order)
        };
        let zone: Plain = full(&plan, Cpus::new());
        assert_eq!(zone.snapshot(0).page_block_order, Order::new(block_order));
        random_work(&plan, 400, u64::from(block_order));
        // Cut at both ends.
        let cut = ZonePlan {
            span: range(37, (5 << block_order) + 11),
            ..plan
        };
        random_work(&cut, 300, u64::from(block_order));
    }
}

#[test]
fn page_blocks_of_every_order_work_where_the_highest_order_is_theirs() {
    for block_order in 6..=11 {
        let plan = ZonePlan {
            max_order: Order::new(block_order),
            page_block_order: Order::new(block_order),
            ..linux(4 << block_order)
        };
        random_work(&plan, 300, u64::from(block_order));
    }
}

#[test]
fn page_blocks_may_be_larger_than_the_highest_order() {
    // Page blocks of order 11, as of 32 MiB in frames of 16 KiB, with Linux's highest order of 10;
    // and an embedder without large orders.
    for (max_order, block_order) in [(10, 11), (8, 9), (3, 9), (0, 6)] {
        let plan = ZonePlan {
            max_order: Order::new(max_order),
            page_block_order: Order::new(block_order),
            ..linux(4 << block_order)
        };
        random_work(&plan, 200, u64::from(block_order));
        let zone: Plain = full(&plan, Cpus::new());
        let told = &zone.free_counts().by_order[max_order as usize + 1..];
        assert!(told.iter().all(|&blocks| blocks == 0), "order {max_order}");
        let too_large = AllocError::OrderTooLarge {
            order: Order::new(block_order),
            max: Order::new(max_order),
        };
        let refused = zone.alloc(&request(block_order, Mobility::Movable));
        assert_eq!(refused, Err(too_large));
    }
}

#[test]
fn other_orders_of_page_blocks_become_the_nearest() {
    for (wanted, order) in [(0, 6), (5, 6), (6, 6), (9, 9), (11, 11), (12, 11), (18, 11)] {
        assert_eq!(Bitmap::block_order(Order::new(wanted)), Order::new(order));
        let store = bitmap(range(0, 100), 10, wanted);
        assert_eq!(store.page_block_order(), Order::new(order));
    }
}

// ---- statistics ----

#[test]
fn free_blocks_are_counted_as_a_buddy_store_would_have_merged_them() {
    let zone = in_use(4, Mobility::Movable);
    for part in [
        range(0, 3),
        range(5, 6),
        range(8, 16),
        range(100, 300),
        range(1024, 2048),
    ] {
        assert_eq!(zone.free_range(part), Ok(()));
    }
    // 0, 2; 5; 8; 100, 104, 112, 128, 256, 288, 296; 1024.
    assert_eq!(by_order(&zone), [2, 1, 2, 3, 1, 1, 0, 1, 0, 0, 1]);
    let snapshot = zone.snapshot(3);
    assert_eq!((snapshot.node, snapshot.zone), (3, ZoneKind::Normal));
    assert_eq!(snapshot.max_order, Order::new(10));
    assert_eq!(snapshot.blocks[Movable.index()], 4);
    assert_eq!(
        BuddyInfo(&[snapshot]).to_string(),
        "Node 3, zone   Normal      2      1      2      3      1      1      0      1      0      0      1 \n"
    );
    let counts = zone.free_counts();
    assert_eq!(counts.free_frames(), 3 + 1 + 8 + 200 + 1024);
    assert_eq!(snapshot.counts(), counts);
    // Of 1236 frames 212 are in blocks below order 9, 212 - 128 below order 7.
    assert_eq!(counts.unusable_index(Order::HUGE), 212 * 1000 / 1236);
    assert_eq!(counts.unusable_index(Order::new(7)), 84 * 1000 / 1236);
    assert_eq!(
        UnusableText(counts.unusable_index(Order::HUGE)).to_string(),
        "0.171 "
    );
    assert_eq!(counts.suitable(Order::HUGE), 2);
}

#[test]
fn free_blocks_are_counted_by_the_mobility_of_their_page_blocks() {
    let zone = blocks(6);
    zone.alloc(&UNMOVABLE).unwrap();
    zone.alloc(&RECLAIMABLE).unwrap();
    zone.alloc(&MOVABLE).unwrap();
    for kind in [Unmovable, Reclaimable] {
        assert_eq!((free_of(&zone, kind), blocks_of(&zone, kind)), (511, 1));
    }
    assert_eq!(
        (free_of(&zone, Movable), blocks_of(&zone, Movable)),
        (4 * 512 - 1, 4)
    );
    let by_type = zone.snapshot(0).free;
    for by_type in &by_type[..9] {
        for kind in [Unmovable, Reclaimable, Movable] {
            assert_eq!(by_type[kind.index()], 1);
        }
    }
    // 2 and 3 are a pair, 4 is alone.
    let movable = |order: usize| by_type[order][Movable.index()];
    assert_eq!((movable(9), movable(10)), (1, 1));
}

#[test]
fn a_failure_tells_full_from_fragmented() {
    let zone = in_use(4, Mobility::Movable);
    for at in (0..600).step_by(2) {
        free(&zone, frame(at), 0);
    }
    let refused = |order| zone.alloc(&request(order, Mobility::Movable));
    let fragmented = |order| {
        let (order, free) = (Order::new(order), 300);
        Err(AllocError::Fragmented {
            order,
            free,
            index: None,
        })
    };
    assert_eq!(refused(1), fragmented(1));
    assert_eq!(refused(8), fragmented(8));
    // 512 frames cannot be had of 300 in any arrangement.
    assert_eq!(refused(9), Err(exhausted(300)));
    // All in single frames: 1000 - (1000 + 300000 / 256) / 300 = 993.
    assert_eq!(zone.free_counts().fragmentation_index(Order::new(8)), 993);
}

#[test]
fn the_census_counts_every_frame_once() {
    let zone: Plain = empty(&small(1000), Cpus::new());
    assert_eq!(zone.add(range(50, 950)), Ok(900));
    assert_eq!(zone.reserve(range(100, 130)), Ok(30));
    let held = take(&zone, 70, Mobility::Unmovable);
    let census = sound(&zone);
    assert_eq!(
        (census.free, census.allocated, census.reserved),
        (800, 70, 30)
    );
    assert_eq!((census.cached, census.isolated), (0, 0));
    assert_eq!((zone.managed_frames(), zone.cached_frames()), (870, 0));
    let distinct: BTreeSet<Frame> = held.iter().copied().collect();
    assert_eq!(distinct.len(), 70);
}

// ---- nodes ----

#[test]
fn a_node_keeps_a_zone_of_this_store_above_its_marks() {
    let zones = [blocks(4)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let marks = brickyard::watermark::Marks {
        min: 100,
        low: 200,
        high: 300,
    };
    zones[0].watermarks().set(marks, [0; ZoneKind::COUNT]);
    // Down to the min mark for those that may wait, below it for those that may not.
    let mut ordinary = 0;
    while nodes.alloc(0, &MOVABLE).is_ok() {
        ordinary += 1;
    }
    assert_eq!((ordinary, zones[0].free_frames()), (2048 - 100, 100));
    assert_eq!(nodes.alloc(0, &MOVABLE), Err(exhausted(100)));
    assert!(nodes.alloc(0, &MOVABLE.atomic()).is_ok());
    assert!(nodes.check().is_ok());
}

#[test]
fn frames_outside_the_span_are_refused_however_far_away() {
    // The first block starts below the span, and neither is at 0.
    let mut plan = linux(4 * BLOCK);
    plan.span = range(10 * BLOCK + 7, 14 * BLOCK);
    let zone = full(&plan, Cpus::new());
    let far = [
        0,
        5,
        10 * BLOCK - 1,
        10 * BLOCK + 6,
        14 * BLOCK,
        usize::MAX - 1,
        usize::MAX,
    ];
    for at in far.map(frame) {
        for order in [0, 1, 3, 9, 10, 18] {
            let order = Order::new(order);
            assert_eq!(
                zone.free(at, order),
                Err(FreeError::NotOwned),
                "{at} {order}"
            );
            assert!(
                zone.alloc_at(at, &Request::new(order, Mobility::Movable))
                    .is_err()
            );
        }
        let error = FreeError::NotOwned;
        let refused = BulkFreeError { freed: 0, error };
        assert_eq!(zone.free_bulk(&[at]), Err(refused));
        assert_eq!(zone.free_bulk(&[at; 300]), Err(refused));
    }
    sound(&zone);
}

// ---- page blocks dedicated by whoever knows better ----

#[test]
fn a_dedicated_block_has_that_type_and_serves_that_mobility_first() {
    for from in Mobility::ALL {
        for to in Mobility::ALL.into_iter().filter(|&to| to != from) {
            let zone = in_use_but(6, from, &[(1, 100), (3, 100), (4, 100)]);
            zone.dedicate(frame(3 * BLOCK + 200), to);
            sound(&zone);
            let types: Vec<MigrateType> = (0..6)
                .map(|block| state(&zone, frame(block * BLOCK)).kind)
                .collect();
            for (block, &kind) in types.iter().enumerate() {
                let own = if block == 3 { to } else { from };
                assert_eq!(kind, own.into(), "block {block}: {from:?} to {to:?}");
            }
            assert_eq!(zone.snapshot(0).blocks[MigrateType::from(to).index()], 1);
            // All that is free in it, before anything else is.
            let served = take(&zone, 100, to);
            assert_eq!(runs_of(&served), [(3, 100)], "{from:?} to {to:?}");
            assert_eq!(zone.fallbacks(), (0, 0));
            // And those that it was for do not come here while they have blocks of their own.
            give(&zone, &served[..50]);
            let others = take(&zone, 200, from);
            assert!(others.iter().all(|at| at.number() / BLOCK != 3), "{from:?}");
            sound(&zone);
        }
    }
}

#[test]
fn a_bitmap_block_that_is_wholly_free_or_outside_is_left_alone() {
    let zone = in_use_but(3, Mobility::Unmovable, &[(1, BLOCK)]);
    let before = seen(&zone);
    for mobility in Mobility::ALL {
        zone.dedicate(frame(BLOCK + 7), mobility);
        zone.dedicate(frame(3 * BLOCK), mobility);
        zone.dedicate(frame(usize::MAX), mobility);
    }
    assert_eq!(seen(&zone), before);
    sound(&zone);
}

#[test]
fn dedicating_bitmap_blocks_at_any_moment_breaks_nothing() {
    for seed in 0..10 {
        let mut dice = Dice::new(seed);
        let zone = blocks(6);
        let mut held: Vec<(Frame, u8)> = Vec::new();
        for _ in 0..400 {
            let mobility = dice.one_of(&Mobility::ALL);
            match dice.below(5) {
                0..2 => {
                    let order = dice.below(10) as u8;
                    let taken = zone.alloc(&request(order, mobility));
                    held.extend(taken.ok().map(|at| (at, order)));
                }
                2..4 if !held.is_empty() => {
                    let (at, order) = held.swap_remove(dice.below(held.len()));
                    free(&zone, at, order);
                }
                _ => zone.dedicate(frame(dice.below(6 * BLOCK)), mobility),
            }
            let used = held.iter().map(|&(_, order)| 1 << order).sum::<usize>();
            assert_eq!(sound(&zone).allocated, used, "seed {seed}");
        }
    }
}

// ---- what a hook says cannot be moved ----

/// Moves everything but what lies in one place, and remembers what it was asked.
struct Chooser {
    stays: Option<Frame>,
    asked: RefCell<BTreeSet<Frame>>,
    moved: RefCell<Vec<(Frame, Frame)>>,
}

impl Chooser {
    fn but(stays: Option<Frame>) -> Self {
        Self {
            stays,
            asked: RefCell::default(),
            moved: RefCell::default(),
        }
    }
}

impl Migrate for Chooser {
    fn can_move(&self, at: Frame, _: Order) -> bool {
        self.asked.borrow_mut().insert(at);
        self.stays != Some(at)
    }

    fn migrate(&self, from: Frame, _: Order, to: Frame) -> Migration {
        self.moved.borrow_mut().push((from, to));
        Migration::Moved
    }
}

#[test]
fn compaction_leaves_a_whole_place_alone_where_a_hook_says_that_one_page_stays() {
    // Single pages, all movable as far as the store knows: the low blocks nearly empty, the high
    // ones nearly full.
    let scattered = || {
        let zone = blocks(4);
        let pages = take_all(&zone, Mobility::Movable);
        let keeps = |at: &Frame| {
            let (block, place) = (at.number() / BLOCK, at.number() % BLOCK);
            if block < 2 {
                place % 16 == 5
            } else {
                place % 4 != 0
            }
        };
        let freed: Vec<Frame> = pages.into_iter().filter(|at| !keeps(at)).collect();
        give(&zone, &freed);
        zone
    };
    let in_place = |at: Frame| range(0, BLOCK).contains(at);
    let own = |zone: &Plain| {
        let used = |at: &usize| state(zone, frame(*at)).usage == Use::Allocated;
        (0..BLOCK).filter(used).collect::<Vec<_>>()
    };
    let zone = scattered();
    let all = Chooser::but(None);
    assert_eq!(own(&zone).len(), 32);
    assert!(compact_all(&zone, &all).moved >= 64);
    assert_eq!(own(&zone), [0; 0], "nothing stays");
    sound(&zone);

    let zone = scattered();
    let before = own(&zone);
    let stays = frame(BLOCK - 11);
    assert!(before.contains(&stays.number()));
    let one = Chooser::but(Some(stays));
    let done = compact_all(&zone, &one);
    assert!(one.asked.borrow().contains(&stays));
    assert_eq!(own(&zone), before, "its whole place is untouched");
    let moved = one.moved.borrow();
    assert!(moved.iter().all(|&(from, _)| !in_place(from)));
    assert_eq!((done.moved, done.stuck), (moved.len(), 0));
    // The place beside it is free.
    let beside = frame(BLOCK);
    assert_eq!(
        zone.block_of(beside).map(|(_, state)| state.usage),
        Some(Use::Free)
    );
    assert!(
        moved
            .iter()
            .filter(|(from, _)| range(BLOCK, 2 * BLOCK).contains(*from))
            .count()
            >= 32
    );
    sound(&zone);
}
