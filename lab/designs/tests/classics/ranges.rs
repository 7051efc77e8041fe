//! Ranges are added and removed with any alignment; any aligned part of a block can be freed; and a
//! free of anything else is refused and changes nothing, with every front.

use crate::classics::support;

use brickyard::block::Use;
use brickyard::sync::{Exclusive, Shared};
use brickyard::{
    AnyZone, BulkFreeError, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError,
    ZonePlan,
};
use brickyard_designs::classics::front::{Direct, Front};
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{LabPlan, LabZone, Placed};

use MigrateType::Unmovable;
use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, Seen, UNMOVABLE, ZoneLock, empty, exhausted, frame,
    free, free_of, full, give, request, seen, small, sound, take_all,
};

type Plain = Parts<NoGrouping, Direct>;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// Makes a zone without memory that has records for `span`.
fn spanning<F>(span: FrameRange) -> Parts<NoGrouping, F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let plan = LabPlan::of(ZonePlan {
        span,
        ..small(0).zone
    });
    empty(&plan, Cpus::new())
}

/// Returns the number of free blocks by order.
fn blocks(zone: &Plain) -> [usize; 8] {
    let counts = zone.free_counts().by_order;
    core::array::from_fn(|order| counts[order])
}

// ---- memory is added ----

#[test]
fn a_range_of_odd_alignment_becomes_the_fewest_aligned_blocks() {
    let zone: Plain = spanning(range(3, 1003));
    assert_eq!(zone.add(range(5, 77)), Ok(72));
    // 5; 6; 8; 16; 32; 64; 72; 76.
    assert_eq!(blocks(&zone), [2, 1, 1, 2, 1, 1, 0, 0]);
    assert_eq!((zone.free_frames(), zone.managed_frames()), (72, 72));
    sound(&zone);
}

#[test]
fn a_range_that_overlaps_adds_what_is_new_and_merges() {
    let zone: Plain = spanning(range(3, 1003));
    assert_eq!(zone.add(range(5, 77)), Ok(72));
    assert_eq!(zone.add(range(70, 90)), Ok(13));
    assert_eq!(zone.add(range(5, 90)), Ok(0));
    assert_eq!(zone.add(range(3, 128)), Ok(40));
    // 3; 4; 8; 16; 32; 64..128.
    assert_eq!(blocks(&zone), [1, 0, 1, 1, 1, 1, 1, 0]);
    sound(&zone);
}

#[test]
fn frame_after_frame_in_any_order_makes_one_block() {
    let zone: Plain = spanning(range(0, 128));
    // 37 and 128 have no common divisor: every frame once.
    for i in 0..128 {
        let at = i * 37 % 128;
        assert_eq!(zone.add(range(at, at + 1)), Ok(1));
    }
    assert_eq!(blocks(&zone), [0, 0, 0, 0, 0, 0, 0, 1]);
    sound(&zone);
}

#[test]
fn a_range_outside_the_span_is_refused() {
    let span = range(3, 1003);
    let zone: Plain = spanning(span);
    let outside = Err(RangeError::OutsideSpan { span });
    for bad in [range(0, 10), range(1000, 1004), range(2000, 2001)] {
        assert_eq!(zone.add(bad), outside);
        assert_eq!(zone.remove(bad), outside);
        assert_eq!(zone.reserve(bad), outside);
        assert_eq!(zone.unreserve(bad), outside);
    }
    assert_eq!(zone.managed_frames(), 0);
    assert_eq!(zone.add(span), Ok(1000));
}

#[test]
fn a_zone_can_begin_at_any_frame_number() {
    let start = (1 << 40) + 5;
    let span = range(start, start + 1000);
    let zone: Plain = spanning(span);
    assert_eq!(zone.add(span), Ok(1000));
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 1000);
    assert!(held.iter().all(|&at| span.contains(at)));
    give(&zone, &held);
    assert_eq!(zone.remove(span), Ok(1000));
    sound(&zone);
}

#[test]
fn holes_are_never_handed_out() {
    let zone: Plain = spanning(range(0, 256));
    let ranges = [range(1, 60), range(64, 65), range(67, 200), range(255, 256)];
    for part in ranges {
        assert_eq!(zone.add(part), Ok(part.len()));
    }
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 59 + 1 + 133 + 1);
    let in_a_range = |at: &Frame| ranges.iter().any(|range| range.contains(*at));
    assert!(held.iter().all(in_a_range));
    // Nor does a merge cross one: 61..64 and 65..67 are no memory.
    give(&zone, &held);
    assert_eq!(zone.block_of(frame(62)), None);
    assert_eq!(zone.block_of(frame(65)), None);
    sound(&zone);
}

// ---- memory is removed ----

#[test]
fn a_part_of_odd_alignment_is_removed_and_the_rest_stays_free() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.remove(range(13, 50)), Ok(37));
    // 0; 8; 12; 50; 52; 56; 64.
    assert_eq!(blocks(&zone), [1, 1, 2, 2, 0, 0, 1, 0]);
    assert_eq!((zone.free_frames(), zone.managed_frames()), (91, 91));
    sound(&zone);
    assert_eq!(zone.free(frame(20), Order::ZERO), Err(FreeError::NotOwned));
    assert_eq!(zone.add(range(13, 50)), Ok(37));
    assert_eq!(blocks(&zone), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn absent_frames_are_not_removed() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(10, 20)), Ok(10));
    assert_eq!(zone.add(range(30, 40)), Ok(10));
    assert_eq!(zone.remove(range(15, 35)), Ok(10));
    assert_eq!(zone.remove(range(15, 35)), Ok(0));
    assert_eq!(zone.remove(range(0, 128)), Ok(10));
    assert_eq!(zone.managed_frames(), 0);
    sound(&zone);
}

#[test]
fn memory_in_use_is_not_removed_and_the_first_such_frame_is_named() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    for at in [70, 40] {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let before = seen(&zone);
    let busy = |at| Err(RangeError::Busy { frame: frame(at) });
    assert_eq!(zone.remove(range(0, 128)), busy(40));
    assert_eq!(zone.remove(range(41, 128)), busy(70));
    assert_eq!(zone.reserve(range(3, 99)), busy(40));
    assert_eq!(seen(&zone), before);
    // Inside a block in use it is the first frame of the range.
    assert_eq!(
        zone.alloc_at(frame(96), &request(4, Mobility::Movable)),
        Ok(())
    );
    assert_eq!(zone.remove(range(99, 128)), busy(99));
}

/// Checks with front `F` that frames in a cache can be removed and reserved.
fn cached_frames_do_not_block_ranges<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone: Parts<NoGrouping, F> = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    let fill = || {
        let page = zone.alloc(&MOVABLE).expect("memory enough");
        free(&zone, page, 0);
        assert!(zone.cached_frames() > 0);
    };
    fill();
    assert_eq!(zone.reserve(range(0, 64)), Ok(64));
    assert_eq!(zone.unreserve(range(0, 64)), Ok(64));
    fill();
    assert_eq!(zone.remove(range(0, 128)), Ok(128));
    sound(&zone);
}

#[test]
fn memory_in_caches_is_removed_and_reserved() {
    cached_frames_do_not_block_ranges::<Lists<Exclusive>>();
    cached_frames_do_not_block_ranges::<Lists<Shared>>();
    cached_frames_do_not_block_ranges::<Mags>();
}

// ---- memory is reserved ----

#[test]
fn reservations_overlap_and_count_each_frame_once() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 100)), Ok(100));
    assert_eq!(zone.reserve(range(10, 30)), Ok(20));
    assert_eq!(zone.reserve(range(25, 45)), Ok(15));
    // A reservation may include frames that are no memory.
    assert_eq!(zone.reserve(range(90, 128)), Ok(10));
    assert_eq!(zone.managed_frames(), 55);
    assert_eq!(zone.check().map(|census| census.reserved), Ok(45));
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 55);
    let reserved = |at: &&Frame| range(10, 45).contains(**at) || **at >= frame(90);
    assert_eq!(held.iter().find(reserved), None);
}

#[test]
fn a_part_of_a_reservation_is_ended() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.reserve(range(8, 120)), Ok(112));
    assert_eq!(zone.unreserve(range(50, 60)), Ok(10));
    assert_eq!(zone.unreserve(range(50, 60)), Ok(0));
    assert_eq!(zone.free_frames(), 26);
    sound(&zone);
    assert_eq!(zone.unreserve(range(0, 128)), Ok(102));
    assert_eq!(blocks(&zone), [0, 0, 0, 0, 0, 0, 0, 1]);
    sound(&zone);
}

#[test]
fn reserved_memory_is_removed_and_added_again() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.reserve(range(30, 50)), Ok(20));
    assert_eq!(zone.add(range(0, 128)), Ok(0), "reserved is memory");
    assert_eq!(zone.remove(range(40, 60)), Ok(20));
    assert_eq!(zone.managed_frames(), 98);
    assert_eq!(zone.add(range(40, 60)), Ok(20));
    assert_eq!(zone.managed_frames(), 118);
    assert_eq!(zone.unreserve(range(0, 128)), Ok(10));
    sound(&zone);
}

// ---- blocks at given frames ----

#[test]
fn a_block_is_taken_exactly_where_it_is_requested() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(
        zone.alloc_at(frame(40), &request(3, Mobility::Movable)),
        Ok(())
    );
    assert_eq!(zone.free_frames(), 120);
    // 0; 32; 48; 64.
    assert_eq!(blocks(&zone), [0, 0, 0, 1, 1, 1, 1, 0]);
    free(&zone, frame(40), 3);
    assert_eq!(blocks(&zone), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn an_impossible_block_is_malformed_or_outside() {
    let span = range(0, 100);
    let zone: Plain = spanning(span);
    assert_eq!(zone.add(span), Ok(100));
    let before = seen(&zone);
    let at = |at, order| zone.alloc_at(frame(at), &request(order, Mobility::Movable));
    assert_eq!(at(1, 1), Err(RangeError::Malformed));
    assert_eq!(at(0, 8), Err(RangeError::Malformed));
    assert_eq!(at(96, 3), Err(RangeError::OutsideSpan { span }));
    assert_eq!(at(200, 0), Err(RangeError::OutsideSpan { span }));
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_block_in_use_is_busy() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.alloc_at(frame(33), &MOVABLE), Ok(()));
    let before = seen(&zone);
    let busy = Err(RangeError::Busy { frame: frame(33) });
    assert_eq!(zone.alloc_at(frame(33), &UNMOVABLE), busy);
    assert_eq!(
        zone.alloc_at(frame(32), &request(1, Mobility::Movable)),
        busy
    );
    assert_eq!(seen(&zone), before);
}

#[test]
fn the_first_frame_in_use_is_named_whatever_free_blocks_precede_it() {
    // 0..8, 8..12 are free, 12 is in use.
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.alloc_at(frame(12), &MOVABLE), Ok(()));
    let busy = Err(RangeError::Busy { frame: frame(12) });
    assert_eq!(
        zone.alloc_at(frame(0), &request(4, Mobility::Movable)),
        busy
    );
}

#[test]
fn a_block_that_begins_or_ends_in_a_hole_is_absent() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(8, 24)), Ok(16));
    let absent = |at| Err(RangeError::Absent { frame: frame(at) });
    let at = |at, order| zone.alloc_at(frame(at), &request(order, Mobility::Movable));
    assert_eq!(at(0, 3), absent(0));
    assert_eq!(at(0, 4), absent(0));
    // The first half is free, the second is no memory.
    assert_eq!(at(16, 4), absent(24));
}

#[test]
fn a_block_in_a_cache_is_taken_too() {
    let zone: Parts<NoGrouping, Mags> = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    let page = zone.alloc(&MOVABLE).unwrap();
    free(&zone, page, 0);
    assert_eq!(zone.cached_frames(), 128);
    assert_eq!(
        zone.alloc_at(frame(64), &request(6, Mobility::Movable)),
        Ok(())
    );
    sound(&zone);
}

// ---- parts of a block ----

#[test]
fn any_aligned_part_of_a_block_is_freed_and_the_rest_stays_in_use() {
    for order in 0..=5 {
        let part = Order::new(order);
        for n in 0..32 / part.frames() {
            let zone: Plain = spanning(range(0, 32));
            assert_eq!(zone.add(range(0, 32)), Ok(32));
            let block = zone.alloc(&request(5, Mobility::Movable)).unwrap();
            let first = block.plus(n * part.frames());
            free(&zone, first, order);
            let census = sound(&zone);
            assert_eq!(
                (census.free, census.allocated),
                (part.frames(), 32 - part.frames())
            );
            // The rest can be freed frame by frame, and merges to the block again.
            for at in FrameRange::of_block(block, Order::new(5)).frames() {
                let freed = FrameRange::of_block(first, part).contains(at);
                let expected = if freed {
                    Err(FreeError::DoubleFree)
                } else {
                    Ok(())
                };
                assert_eq!(zone.free(at, Order::ZERO), expected);
            }
            assert_eq!(blocks(&zone)[5], 1);
            sound(&zone);
        }
    }
}

#[test]
fn a_range_of_blocks_is_freed_from_the_middle_of_one_to_the_middle_of_another() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    for (at, order) in [(0, 5), (32, 0), (33, 0), (34, 1), (36, 2), (40, 3), (48, 4)] {
        let request = request(order, Mobility::Movable);
        assert_eq!(zone.alloc_at(frame(at), &request), Ok(()));
    }
    assert_eq!(zone.free_range(range(13, 55)), Ok(()));
    let census = sound(&zone);
    assert_eq!((census.free, census.allocated), (64 + 42, 13 + 9));
    assert_eq!(zone.free_range(range(0, 13)), Ok(()));
    assert_eq!(zone.free_range(range(55, 64)), Ok(()));
    assert_eq!(zone.free_range(range(20, 20)), Ok(()));
    assert_eq!(blocks(&zone)[7], 1);
}

#[test]
fn a_range_that_is_not_all_in_use_is_refused_as_a_whole() {
    let zone: Plain = spanning(range(0, 128));
    assert_eq!(zone.add(range(0, 100)), Ok(100));
    assert_eq!(zone.reserve(range(90, 100)), Ok(10));
    take_all(&zone, Mobility::Movable);
    free(&zone, frame(40), 0);
    let before = seen(&zone);
    assert_eq!(zone.free_range(range(30, 50)), Err(FreeError::DoubleFree));
    assert_eq!(zone.free_range(range(80, 95)), Err(FreeError::NotOwned));
    assert_eq!(zone.free_range(range(100, 101)), Err(FreeError::NotOwned));
    assert_eq!(zone.free_range(range(50, 200)), Err(FreeError::NotOwned));
    assert_eq!(zone.free_range(range(200, 300)), Err(FreeError::NotOwned));
    assert_eq!(seen(&zone), before);
    assert_eq!(zone.free_range(range(41, 90)), Ok(()));
    sound(&zone);
}

// ---- bad frees ----

/// A zone with front `F` that has frames in every state.
struct Mixed<F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    zone: Parts<NoGrouping, F>,
    // In use: a block of order 4 and two single frames.
    block: Frame,
    single: Frame,
    other: Frame,
    // The frame freed last: in the front, if that keeps frames.
    freed: Frame,
}

impl<F> Mixed<F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    /// Makes a zone with records for 8..520, memory at 16..500, a hole at 100..120, and reserved
    /// frames at 200..210.
    fn new() -> Self {
        let zone = spanning(range(8, 520));
        assert_eq!(zone.add(range(16, 500)), Ok(484));
        assert_eq!(zone.remove(range(100, 120)), Ok(20));
        assert_eq!(zone.reserve(range(200, 210)), Ok(10));
        let block = zone.alloc(&request(4, Mobility::Movable));
        let single = || zone.alloc(&MOVABLE).expect("memory enough");
        let (one, other, freed) = (single(), single(), single());
        free(&zone, freed, 0);
        Self {
            block: block.expect("memory enough"),
            single: one,
            other,
            freed,
            zone,
        }
    }

    /// Checks that these frees are refused with this error, and change nothing.
    fn refuses(&self, bad: &[(Frame, u8)], why: FreeError) {
        for &(at, order) in bad {
            let before: Seen = seen(&self.zone);
            let answer = self.zone.free(at, Order::new(order));
            assert_eq!(answer, Err(why), "{at}, order {order}");
            assert_eq!(seen(&self.zone), before, "{at}, order {order}");
        }
    }

    /// Returns a frame that is free in the store, in a block of 4 or more.
    fn free_in_store(&self) -> Frame {
        let free = |at: &Frame| {
            let block = self.zone.block_of(*at);
            block.is_some_and(|(_, state)| state.usage == Use::Free && state.order.get() >= 2)
        };
        range(300, 500).frames().find(free).expect("a free frame")
    }
}

fn refuses_what_is_not_its_own<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let mixed = Mixed::<F>::new();
    // Below and above the records; with a record, but never memory; removed; reserved.
    let outside = [0, 7, 520, 1 << 40, usize::MAX];
    let inside = [8, 15, 510, 519, 100, 110, 119, 200, 205, 209];
    for at in outside.into_iter().chain(inside) {
        mixed.refuses(&[(frame(at), 0)], FreeError::NotOwned);
    }
    mixed.refuses(&[(frame(112), 3), (frame(8), 3)], FreeError::NotOwned);
}

fn refuses_what_is_free<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let mixed = Mixed::<F>::new();
    let free = mixed.free_in_store();
    let twice = [
        (mixed.freed, 0),
        (free, 0),
        (free.align_down(Order::new(2)), 2),
    ];
    mixed.refuses(&twice, FreeError::DoubleFree);
    // A block freed as a whole.
    assert_eq!(mixed.zone.free(mixed.block, Order::new(4)), Ok(()));
    let twice = [(mixed.block, 4), (mixed.block, 0), (mixed.block.plus(8), 3)];
    mixed.refuses(&twice, FreeError::DoubleFree);
}

fn refuses_a_wrong_order<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let mixed = Mixed::<F>::new();
    let block = mixed.block;
    let of_block = FreeError::WrongOrder {
        allocated: Order::new(4),
    };
    let larger = [(block, 5), (block, 7), (block.plus(8), 4)];
    mixed.refuses(&larger, of_block);
    let misaligned = [(block.plus(1), 1), (block.plus(4), 3), (block.plus(15), 2)];
    mixed.refuses(&misaligned, of_block);
    let of_single = FreeError::WrongOrder {
        allocated: Order::ZERO,
    };
    mixed.refuses(&[(mixed.single, 1), (mixed.single, 7)], of_single);
    // And then the right frees.
    assert_eq!(mixed.zone.free(mixed.single, Order::ZERO), Ok(()));
    assert_eq!(mixed.zone.free(block, Order::new(4)), Ok(()));
    sound(&mixed.zone);
}

fn refuses_an_order_above_the_highest_for_the_same_reasons<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    // An order above the zone's highest, 7, has no error of its own: the error is that of the
    // frame.
    let mixed = Mixed::<F>::new();
    for order in [8, 18] {
        mixed.refuses(
            &[(frame(0), order), (frame(110), order)],
            FreeError::NotOwned,
        );
        mixed.refuses(&[(mixed.freed, order)], FreeError::DoubleFree);
        let allocated = Order::new(4);
        mixed.refuses(&[(mixed.block, order)], FreeError::WrongOrder { allocated });
    }
}

fn refuses_in_a_list<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    for (bad, why) in [
        (frame(110), FreeError::NotOwned),
        (frame(600), FreeError::NotOwned),
        (frame(205), FreeError::NotOwned),
    ] {
        let mixed = Mixed::<F>::new();
        let free = mixed.zone.free_frames() + mixed.zone.cached_frames();
        let list = [mixed.single, bad, mixed.other];
        let refused = BulkFreeError {
            freed: 1,
            error: why,
        };
        assert_eq!(mixed.zone.free_bulk(&list), Err(refused));
        let census = sound(&mixed.zone);
        assert_eq!(census.free + census.cached, free + 1);
        // The frame after it is still in use.
        assert_eq!(mixed.zone.free_bulk(&[mixed.other]), Ok(()));
    }
    // The same frame twice, and one freed before.
    let mixed = Mixed::<F>::new();
    let twice = |freed| {
        let error = FreeError::DoubleFree;
        Err(BulkFreeError { freed, error })
    };
    let list = [mixed.single, mixed.other, mixed.single];
    assert_eq!(mixed.zone.free_bulk(&list), twice(2));
    let before = seen(&mixed.zone);
    assert_eq!(mixed.zone.free_bulk(&[mixed.freed]), twice(0));
    assert_eq!(mixed.zone.free_bulk(&[]), Ok(()));
    assert_eq!(seen(&mixed.zone), before);
}

/// Defines a test of each kind of bad free for one front.
macro_rules! bad_frees {
    ($front:ident: $type:ty) => {
        mod $front {
            use super::*;

            #[test]
            fn refuses_what_is_not_its_own() {
                super::refuses_what_is_not_its_own::<$type>();
            }

            #[test]
            fn refuses_what_is_free() {
                super::refuses_what_is_free::<$type>();
            }

            #[test]
            fn refuses_a_wrong_order() {
                super::refuses_a_wrong_order::<$type>();
            }

            #[test]
            fn refuses_an_order_above_the_highest_for_the_same_reasons() {
                super::refuses_an_order_above_the_highest_for_the_same_reasons::<$type>();
            }

            #[test]
            fn refuses_in_a_list() {
                super::refuses_in_a_list::<$type>();
            }
        }
    };
}

bad_frees!(without_a_front: Direct);
bad_frees!(with_exclusive_lists: Lists<Exclusive>);
bad_frees!(with_shared_lists: Lists<Shared>);
bad_frees!(with_magazines: Mags);

#[test]
fn a_front_keeps_the_frames_that_a_bad_free_named() {
    // A second free of a cached frame does not move it: it is handed out once.
    let zone: Parts<NoGrouping, Lists<Exclusive>> = full(&small(64), Cpus::new());
    let page = zone.alloc(&MOVABLE).unwrap();
    free(&zone, page, 0);
    assert_eq!(zone.free(page, Order::ZERO), Err(FreeError::DoubleFree));
    let mut held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 64);
    held.sort();
    held.dedup();
    assert_eq!(held.len(), 64);
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
}

#[test]
fn memory_added_to_a_claimed_block_is_of_its_type() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let page = zone.alloc(&UNMOVABLE).unwrap();
    let block = page.align_down(Order::new(6));
    let part = range(block.number() + 32, block.number() + 64);
    let before = free_of(&zone, Unmovable);
    assert_eq!(zone.remove(part), Ok(32));
    assert_eq!(free_of(&zone, Unmovable), before - 32);
    assert_eq!(zone.add(part), Ok(32));
    assert_eq!(free_of(&zone, Unmovable), before);
    sound(&zone);
}
