//! What a zone of any design does with ranges, given frames, parts of blocks and bad frees: one
//! suite for the default and for all others.
//!
//! Each test is told how to make a zone by a plan, without memory.

use brickyard::pressure::{ContiguousRequest, NoHooks, alloc_contiguous};
use brickyard::{BulkFreeError, FreeError, RangeError};

use super::*;

/// All tests for one design, of which this expression makes zones.
macro_rules! keeps_the_contract {
    ($make:expr) => {
        contract::each_test! {
            $make; contract;
            a_given_block_that_is_not_all_free_names_the_first_frame_in_use_and_changes_nothing
            a_given_block_that_makes_no_sense_is_malformed_outside_or_absent
            a_block_is_taken_exactly_where_it_is_requested
            a_range_of_odd_alignment_becomes_the_fewest_aligned_blocks
            frame_after_frame_in_any_order_makes_one_block
            a_zone_can_begin_at_any_frame_number
            holes_are_never_handed_out_and_nothing_merges_over_them
            a_range_outside_the_span_is_refused
            a_part_of_odd_alignment_is_removed_and_the_rest_stays_free
            absent_frames_are_not_removed
            memory_in_use_is_not_removed_or_reserved_and_the_first_such_frame_is_named
            reservations_overlap_count_each_frame_once_and_are_given_up_in_parts
            reserved_memory_is_removed_and_added_again
            any_aligned_part_of_a_block_is_freed_and_the_rest_stays_in_use
            a_range_from_the_middle_of_one_block_to_the_middle_of_another_is_freed
            a_range_that_is_not_all_in_use_is_refused_as_a_whole
            a_free_of_what_is_not_its_own_is_refused
            a_free_of_what_is_free_is_refused
            a_free_of_more_than_was_taken_is_refused_and_the_right_order_named
            a_free_of_a_misaligned_part_is_refused
            after_every_refusal_the_right_frees_go_through
            a_list_of_frames_is_freed_up_to_the_first_bad_one
            a_frame_that_is_in_a_list_twice_is_freed_once
            a_list_among_blocks_of_several_frames_is_freed_as_one_by_one
        }
    };
}

/// A test of each of these names.
macro_rules! each_test {
    ($make:expr; $module:ident; $($name:ident)*) => {$(
        #[test]
        fn $name() {
            $module::$name($make);
        }
    )*};
}

pub(crate) use {each_test, keeps_the_contract};

/// Makes a zone without memory by a plan.
pub(crate) type Make<Z> = fn(&ZonePlan) -> Z;

pub(crate) const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// So many page blocks of order 9, all free.
fn blocks<Z: AnyZone>(make: Make<Z>, count: usize) -> Z {
    let plan = linux(count * 512);
    let zone = make(&plan);
    assert_eq!(zone.add(plan.span), Ok(plan.span.len()));
    zone
}

/// Takes a given block, wherever it is free.
pub(crate) fn taken_at<Z: AnyZone>(
    zone: &Z,
    at: Frame,
    request: &Request,
) -> Result<(), RangeError> {
    zone.drain();
    zone.take_at(at, request)
}

/// How many frames are free, in the store and in caches.
fn free_in<Z: AnyZone>(zone: &Z) -> usize {
    let census = sound(zone);
    census.free + census.cached
}

/// Free blocks by order, when nothing is in a cache.
fn merged<Z: AnyZone>(zone: &Z) -> [usize; 11] {
    zone.drain();
    by_order(zone)
}

// ---- a given frame ----

pub(crate) fn a_given_block_that_is_not_all_free_names_the_first_frame_in_use_and_changes_nothing<
    Z: AnyZone,
>(
    make: Make<Z>,
) {
    let zone = blocks(make, 4);
    assert_eq!(taken_at(&zone, frame(1700), &MOVABLE), Ok(()));
    let before = seen(&zone);
    let at = |at, order| taken_at(&zone, frame(at), &request(order, Mobility::Movable));
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

pub(crate) fn a_given_block_that_makes_no_sense_is_malformed_outside_or_absent<Z: AnyZone>(
    make: Make<Z>,
) {
    let span = range(0, 1000);
    let zone = make(&linux(1000));
    assert_eq!(zone.add(range(0, 600)), Ok(600));
    let before = seen(&zone);
    let at = |at, order| taken_at(&zone, frame(at), &request(order, Mobility::Movable));
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

pub(crate) fn a_block_is_taken_exactly_where_it_is_requested<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux_at(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    let taken = taken_at(&zone, frame(40), &request(3, Mobility::Movable));
    assert_eq!(taken, Ok(()));
    assert_eq!(free_in(&zone), 120);
    // 0; 32; 48; 64.
    assert_eq!(merged(&zone)[..8], [0, 0, 0, 1, 1, 1, 1, 0]);
    free(&zone, frame(40), 3);
    assert_eq!(merged(&zone)[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
}

// ---- memory comes and goes ----

pub(crate) fn a_range_of_odd_alignment_becomes_the_fewest_aligned_blocks<Z: AnyZone>(
    make: Make<Z>,
) {
    let plan = linux_at(3, 1003);
    let zone = make(&plan);
    assert_eq!(zone.add(range(5, 77)), Ok(72));
    // 5; 6; 8; 16; 32; 64; 72; 76.
    assert_eq!(merged(&zone)[..7], [2, 1, 1, 2, 1, 1, 0]);
    assert_eq!((free_in(&zone), zone.managed_frames()), (72, 72));
    assert_eq!(zone.add(range(70, 90)), Ok(13));
    assert_eq!(zone.add(range(5, 90)), Ok(0));
    sound(&zone);
    assert_eq!(zone.add(plan.span), Ok(1000 - 85));
    // 3; 4; 8; 16; ... 256; 512 and 768 up to 1003.
    assert_eq!(merged(&zone), [2, 1, 1, 2, 1, 2, 2, 2, 2, 0, 0]);
    sound(&zone);
    assert_eq!(zone.remove(plan.span), Ok(1000));
    assert_eq!(zone.managed_frames(), 0);
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
    sound(&zone);
}

pub(crate) fn frame_after_frame_in_any_order_makes_one_block<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux_at(0, 128));
    // 37 and 128 have no common divisor: every frame once.
    for i in 0..128 {
        let at = i * 37 % 128;
        assert_eq!(zone.add(range(at, at + 1)), Ok(1));
    }
    assert_eq!(merged(&zone)[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
    sound(&zone);
}

pub(crate) fn a_zone_can_begin_at_any_frame_number<Z: AnyZone>(make: Make<Z>) {
    let start = (1 << 40) + 5;
    let span = range(start, start + 1000);
    let zone = make(&linux_at(start, start + 1000));
    assert_eq!(zone.add(span), Ok(1000));
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 1000);
    assert!(held.iter().all(|&at| span.contains(at)));
    give(&zone, &held);
    assert_eq!(zone.remove(span), Ok(1000));
    sound(&zone);
}

pub(crate) fn holes_are_never_handed_out_and_nothing_merges_over_them<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux(2048));
    let ranges = [(1, 60), (64, 65), (67, 600), (1024, 2047)].map(|(from, to)| range(from, to));
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
        let refused = zone.free(frame(hole), Order::ZERO);
        assert_eq!(refused, Err(FreeError::NotOwned));
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
        assert_eq!(free_in(&zone), held.len());
    }
}

pub(crate) fn a_range_outside_the_span_is_refused<Z: AnyZone>(make: Make<Z>) {
    let plan = linux_at(3, 1003);
    let zone = make(&plan);
    let outside = Err(RangeError::OutsideSpan { span: plan.span });
    for bad in [range(0, 10), range(1000, 1004), range(2000, 2001)] {
        assert_eq!(zone.add(bad), outside);
        assert_eq!(zone.remove(bad), outside);
        assert_eq!(zone.reserve(bad), outside);
        assert_eq!(zone.unreserve(bad), outside);
    }
    assert_eq!(zone.managed_frames(), 0);
}

pub(crate) fn a_part_of_odd_alignment_is_removed_and_the_rest_stays_free<Z: AnyZone>(
    make: Make<Z>,
) {
    let zone = make(&linux_at(0, 128));
    assert_eq!(zone.add(range(0, 128)), Ok(128));
    assert_eq!(zone.remove(range(13, 50)), Ok(37));
    // 0; 8; 12; 50; 52; 56; 64.
    assert_eq!(merged(&zone)[..8], [1, 1, 2, 2, 0, 0, 1, 0]);
    assert_eq!((free_in(&zone), zone.managed_frames()), (91, 91));
    sound(&zone);
    assert_eq!(zone.free(frame(20), Order::ZERO), Err(FreeError::NotOwned));
    assert_eq!(zone.add(range(13, 50)), Ok(37));
    assert_eq!(merged(&zone)[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
}

pub(crate) fn absent_frames_are_not_removed<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux_at(0, 128));
    assert_eq!(zone.add(range(10, 20)), Ok(10));
    assert_eq!(zone.add(range(30, 40)), Ok(10));
    assert_eq!(zone.remove(range(15, 35)), Ok(10));
    assert_eq!(zone.remove(range(15, 35)), Ok(0));
    assert_eq!(zone.remove(range(0, 128)), Ok(10));
    assert_eq!(zone.managed_frames(), 0);
    sound(&zone);
}

pub(crate) fn memory_in_use_is_not_removed_or_reserved_and_the_first_such_frame_is_named<
    Z: AnyZone,
>(
    make: Make<Z>,
) {
    let zone = blocks(make, 4);
    for at in [700, 400] {
        assert_eq!(taken_at(&zone, frame(at), &MOVABLE), Ok(()));
    }
    let wide = request(9, Mobility::Movable);
    assert_eq!(taken_at(&zone, frame(1536), &wide), Ok(()));
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

// ---- memory is reserved ----

pub(crate) fn reservations_overlap_count_each_frame_once_and_are_given_up_in_parts<Z: AnyZone>(
    make: Make<Z>,
) {
    let zone = make(&linux(2048));
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
    assert_eq!(merged(&zone)[9], 1);
    sound(&zone);
    assert_eq!(zone.remove(range(0, 100)), Ok(100));
    assert_eq!(zone.unreserve(range(0, 2048)), Ok(1045 - 512 - 90));
    assert_eq!(free_in(&zone), 1400);
}

pub(crate) fn reserved_memory_is_removed_and_added_again<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux_at(0, 128));
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

// ---- parts of blocks, and several, are freed ----

pub(crate) fn any_aligned_part_of_a_block_is_freed_and_the_rest_stays_in_use<Z: AnyZone>(
    make: Make<Z>,
) {
    for order in 0..=5 {
        let part = Order::new(order);
        for n in 0..32 / part.frames() {
            let zone = make(&linux_at(0, 32));
            assert_eq!(zone.add(range(0, 32)), Ok(32));
            let block = zone.alloc(&request(5, Mobility::Movable)).unwrap();
            let first = block.plus(n * part.frames());
            free(&zone, first, order);
            let allocated = sound(&zone).allocated;
            assert_eq!(
                (free_in(&zone), allocated),
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
            assert_eq!(merged(&zone)[5], 1);
            sound(&zone);
        }
    }
}

pub(crate) fn a_range_from_the_middle_of_one_block_to_the_middle_of_another_is_freed<Z: AnyZone>(
    make: Make<Z>,
) {
    let zone = blocks(make, 4);
    for (at, order) in [
        (0, 10),
        (1024, 0),
        (1025, 0),
        (1026, 1),
        (1028, 8),
        (1536, 9),
    ] {
        let at = frame(at).align_down(Order::new(order));
        let taken = taken_at(&zone, at, &request(order, Mobility::Movable));
        assert_eq!(taken.is_ok(), order != 8);
    }
    let rest = ContiguousRequest::new(508, range(1028, 1536));
    let rest = alloc_contiguous(&zone, &rest, &NoHooks);
    assert_eq!(rest, Ok(range(1028, 1536)));
    assert_eq!(free_in(&zone), 0);
    assert_eq!(zone.free_range(range(300, 1700)), Ok(()));
    assert_eq!(free_in(&zone), 1400);
    let before = seen(&zone);
    assert_eq!(zone.free_range(range(200, 301)), Err(FreeError::DoubleFree));
    assert_eq!(zone.free_range(range(1900, 2049)), Err(FreeError::NotOwned));
    assert_eq!(seen(&zone), before);
    assert_eq!(zone.free_range(range(20, 20)), Ok(()));
    assert_eq!(zone.free_range(range(0, 300)), Ok(()));
    assert_eq!(zone.free_range(range(1700, 2048)), Ok(()));
    assert_eq!(merged(&zone)[10], 2);
}

pub(crate) fn a_range_that_is_not_all_in_use_is_refused_as_a_whole<Z: AnyZone>(make: Make<Z>) {
    let zone = make(&linux_at(0, 128));
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

/// What is in use of a [`Mixed`] and has not been freed in part.
const WHOLE: [(usize, u8); 6] = [
    (600, 0),
    (601, 0),
    (640, 4),
    (768, 8),
    (1024, 9),
    (3072, 10),
];

/// A zone that has something of everything. It begins in the middle of a block.
struct Mixed<Z> {
    zone: Z,
}

impl<Z: AnyZone> Mixed<Z> {
    /// Records for 100..5200, memory at 200..5000, a hole at 300..320, reserved frames at 400..410.
    /// In use: two single frames at 600 and 601, a block of order 4 at 640, one of order 8 at 768,
    /// a huge one at 1024, a group of order 10 at 2048 of which frames 2200 and 2600..2608 have
    /// been freed, and one at 3072.
    fn new(make: Make<Z>) -> Self {
        let zone = make(&linux_at(100, 5200));
        assert_eq!(zone.add(range(200, 5000)), Ok(4800));
        assert_eq!(zone.remove(range(300, 320)), Ok(20));
        assert_eq!(zone.reserve(range(400, 410)), Ok(10));
        for (at, order) in WHOLE.into_iter().chain([(2048, 10)]) {
            let taken = taken_at(&zone, frame(at), &request(order, Mobility::Movable));
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

pub(crate) fn a_free_of_what_is_not_its_own_is_refused<Z: AnyZone>(make: Make<Z>) {
    let mixed = Mixed::new(make);
    let outside = [0, 99, 5200, 5631, 1 << 40, usize::MAX];
    let inside = [100, 199, 5000, 5199, 300, 310, 319, 400, 405, 409];
    for at in outside.into_iter().chain(inside) {
        mixed.refuses(&[(at, 0)], FreeError::NotOwned);
    }
    mixed.refuses(
        &[
            (304, 3),
            (400, 3),
            (128, 3),
            (1 << 20, 9),
            (0, 18),
            (310, 18),
        ],
        FreeError::NotOwned,
    );
}

pub(crate) fn a_free_of_what_is_free_is_refused<Z: AnyZone>(make: Make<Z>) {
    let mixed = Mixed::new(make);
    let twice = [
        (200, 0),
        (602, 0),
        (1600, 5),
        (1536, 9),
        (4096, 9),
        (2200, 0),
        (2600, 3),
        (2607, 0),
        // An order above the highest has no error of its own.
        (602, 18),
    ];
    mixed.refuses(&twice, FreeError::DoubleFree);
    for (at, order) in [(600, 0), (640, 4), (768, 8), (1024, 9), (3072, 10)] {
        free(&mixed.zone, frame(at), order);
        let again = [(at, order), (at, 0), (at + (1 << order) - 1, 0)];
        mixed.refuses(&again, FreeError::DoubleFree);
    }
}

pub(crate) fn a_free_of_more_than_was_taken_is_refused_and_the_right_order_named<Z: AnyZone>(
    make: Make<Z>,
) {
    let mixed = Mixed::new(make);
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

pub(crate) fn a_free_of_a_misaligned_part_is_refused<Z: AnyZone>(make: Make<Z>) {
    let mixed = Mixed::new(make);
    mixed.refuses_order(4, &[(641, 1), (644, 3), (655, 2), (648, 4)]);
    mixed.refuses_order(8, &[(769, 1), (768 + 64, 7), (768 + 128, 8)]);
    mixed.refuses_order(9, &[(1025, 1), (1024 + 64, 7), (1024 + 256, 9), (1535, 5)]);
    mixed.refuses_order(
        10,
        &[(3073, 1), (3072 + 256, 9), (3072 + 512, 10), (4095, 8)],
    );
}

pub(crate) fn after_every_refusal_the_right_frees_go_through<Z: AnyZone>(make: Make<Z>) {
    let mixed = Mixed::new(make);
    for (at, order) in WHOLE {
        free(&mixed.zone, frame(at), order);
    }
    let rest = [range(2048, 2200), range(2201, 2600), range(2608, 3072)];
    for part in rest {
        assert_eq!(mixed.zone.free_range(part), Ok(()));
    }
    assert_eq!(free_in(&mixed.zone), 4800 - 30);
    assert_eq!(sound(&mixed.zone).allocated, 0);
}

pub(crate) fn a_list_of_frames_is_freed_up_to_the_first_bad_one<Z: AnyZone>(make: Make<Z>) {
    for through in [1, 100, 600] {
        for (bad, error) in [
            (310, FreeError::NotOwned),
            (405, FreeError::NotOwned),
            (1 << 30, FreeError::NotOwned),
            (4500, FreeError::DoubleFree),
        ] {
            let mixed = Mixed::new(make);
            let zone = &mixed.zone;
            // Order 0, from three blocks: not 4500, which stays free.
            let mut list: Vec<Frame> = range(1536, 2048).frames().collect();
            list.extend(range(4096, 4400).frames());
            for &at in &list {
                assert_eq!(taken_at(zone, at, &MOVABLE), Ok(()));
            }
            let free_before = free_in(zone);
            list.insert(through, frame(bad));
            let freed = through;
            assert_eq!(zone.free_bulk(&list), Err(BulkFreeError { freed, error }));
            assert_eq!(free_in(zone), free_before + freed);
            assert_eq!(zone.free_bulk(&list[freed + 1..]), Ok(()));
            // Each twice.
            let (freed, error) = (0, FreeError::DoubleFree);
            let again = zone.free_bulk(&list[..1]);
            assert_eq!(again, Err(BulkFreeError { freed, error }));
            sound(zone);
        }
    }
}

pub(crate) fn a_frame_that_is_in_a_list_twice_is_freed_once<Z: AnyZone>(make: Make<Z>) {
    let zone = blocks(make, 2);
    let mut list = take(&zone, 700, Mobility::Movable);
    list.push(list[3]);
    list.push(list[4]);
    let error = FreeError::DoubleFree;
    let refused = BulkFreeError { freed: 700, error };
    assert_eq!(zone.free_bulk(&list), Err(refused));
    assert_eq!(zone.free_bulk(&[]), Ok(()));
    assert_eq!(free_in(&zone), 1024);
}

pub(crate) fn a_list_among_blocks_of_several_frames_is_freed_as_one_by_one<Z: AnyZone>(
    make: Make<Z>,
) {
    // Single frames around a block of order 3 and one of order 1, a hole, and free frames.
    let around = || {
        let zone = blocks(make, 2);
        assert_eq!(zone.remove(range(448, 450)), Ok(2));
        for (at, order) in [(72, 3), (126, 1)] {
            let taken = taken_at(&zone, frame(at), &request(order, Mobility::Movable));
            assert_eq!(taken, Ok(()));
        }
        for part in [
            range(0, 72),
            range(80, 126),
            range(128, 400),
            range(450, 900),
        ] {
            for at in part.frames() {
                assert_eq!(taken_at(&zone, at, &MOVABLE), Ok(()));
            }
        }
        zone
    };
    let singles: Vec<Frame> = [range(0, 72), range(80, 126), range(128, 400)]
        .into_iter()
        .flat_map(FrameRange::frames)
        .collect();
    // Between which of them: nothing, parts of blocks, what is free, in the hole, or listed
    // already.
    let odd = [72, 75, 79, 126, 127, 410, 448, 3].map(Some);
    for odd in odd.into_iter().chain([None]) {
        for place in [0, 1, 64, 100, singles.len()] {
            let mut list = singles.clone();
            if let Some(odd) = odd {
                list.insert(place, frame(odd));
            }
            let (bulk, single) = (around(), around());
            let refused = list.iter().enumerate().find_map(|(freed, &at)| {
                match single.free(at, Order::ZERO) {
                    Ok(()) => None,
                    Err(error) => Some(BulkFreeError { freed, error }),
                }
            });
            let answer = bulk.free_bulk(&list);
            assert_eq!(answer.err(), refused, "{odd:?} at {place}");
            assert_eq!(seen(&bulk), seen(&single), "{odd:?} at {place}");
            assert_eq!(sound(&bulk), sound(&single));
            let bad = odd.is_some_and(|odd| [410, 448, 3].contains(&odd));
            assert_eq!(refused.is_some(), bad, "{odd:?} at {place}");
        }
    }
}
