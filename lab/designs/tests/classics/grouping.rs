//! The rules of grouping, each as in the documents: two kinds of page (Gorman 2005), page blocks by
//! mobility (Gorman 2007, the merged form), and the reserve for atomic requests (Linux 4.4).
//!
//! Zones here have no front, so that each request takes one block from the store.

use crate::classics::support;

use brickyard::block::Use;
use brickyard::sync::Exclusive;
use brickyard::{AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Request, ZonePlan};
use brickyard_designs::classics::front::Direct;
use brickyard_designs::classics::store::grouping::{HighAtomic, NoGrouping, TwoKinds};
use brickyard_designs::classics::{LabPlan, LabZone};

use MigrateType::{HighAtomic as High, Isolate, Movable, Reclaimable, Unmovable};
use support::{
    Blocks, Cpus, Dice, Lists, MOVABLE, Parts, RECLAIMABLE, UNMOVABLE, blocks_of, empty, exhausted,
    frame, free, free_of, full, linux, list_of, request, small, sound, take_all, usage,
};

// ---- 2005: two kinds ----

type Kinds = Parts<TwoKinds, Direct>;

/// Makes a zone of 4096 frames with no memory but these ranges, all of it easy.
fn kinds_with(ranges: &[(usize, usize)]) -> Kinds {
    let zone = empty(&linux(4096), Cpus::new());
    for &(start, end) in ranges {
        assert_eq!(zone.add(FrameRange::new(start, end)), Ok(end - start));
    }
    zone
}

fn take_at(zone: &Kinds, at: usize, mobility: Mobility) {
    assert_eq!(zone.alloc_at(frame(at), &Request::page(mobility)), Ok(()));
}

#[test]
fn the_kind_is_read_before_the_merge_and_the_page_freed_last_decides() {
    for (first, last, kind) in [
        (Mobility::Movable, Mobility::Unmovable, Unmovable),
        (Mobility::Unmovable, Mobility::Movable, Movable),
    ] {
        for (freed_first, freed_last) in [(0, 1), (1, 0)] {
            let zone = kinds_with(&[(0, 2)]);
            take_at(&zone, freed_first, first);
            take_at(&zone, freed_last, last);
            free(&zone, frame(freed_first), 0);
            assert_eq!(list_of(&zone, frame(freed_first)), first.into());
            free(&zone, frame(freed_last), 0);
            assert_eq!(zone.snapshot(0).free[1][kind.index()], 1);
            assert_eq!(free_of(&zone, kind), 2);
            sound(&zone);
        }
    }
}

#[test]
fn a_large_merge_goes_to_the_list_of_the_page_freed_last() {
    // 31 easy frames and one kernel frame make one block, a kernel block.
    let zone = kinds_with(&[(0, 32)]);
    take_at(&zone, 7, Mobility::Unmovable);
    assert_eq!(free_of(&zone, Movable), 31);
    free(&zone, frame(7), 0);
    assert_eq!(zone.snapshot(0).free[5][Unmovable.index()], 1);
}

#[test]
fn a_block_of_many_pages_has_the_kind_of_its_head() {
    let zone = kinds_with(&[(0, 16)]);
    let block = zone.alloc(&request(3, Mobility::Unmovable)).unwrap();
    // A part freed separately has it too.
    free(&zone, block.plus(4), 2);
    assert_eq!(list_of(&zone, block.plus(4)), Unmovable);
}

#[test]
fn reclaimable_pages_are_kernel_pages() {
    let zone = kinds_with(&[(0, 64)]);
    let page = zone.alloc(&RECLAIMABLE).unwrap();
    free(&zone, page, 0);
    assert_eq!(free_of(&zone, Unmovable), 64);
}

#[test]
fn the_requests_own_list_gives_its_smallest_block_and_keeps_the_rest() {
    let zone = kinds_with(&[(0, 4), (64, 128)]);
    let page = zone.alloc(&MOVABLE).unwrap();
    assert_eq!(page, frame(0));
    assert_eq!(free_of(&zone, Movable), 67);
    assert_eq!(zone.meter().fallbacks, 0);
}

#[test]
fn the_other_kind_gives_its_largest_block() {
    // Even if there is a block of just the right size.
    let zone = kinds_with(&[(0, 4), (9, 10), (256, 512), (64, 128)]);
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(page, frame(256));
    assert_eq!(zone.meter().fallbacks, 1);
}

/// Returns the frames on the kernel lists, and on the easy ones, after one kernel page was split
/// off one easy block.
fn remainders(order: u8) -> (usize, usize) {
    let frames = Order::new(order).frames();
    let zone = kinds_with(&[(frames, 2 * frames)]);
    zone.alloc(&UNMOVABLE).expect("memory");
    sound(&zone);
    (free_of(&zone, Unmovable), free_of(&zone, Movable))
}

#[test]
fn the_remainder_changes_kind_from_order_5_up() {
    for order in 5..=10 {
        assert_eq!(remainders(order), ((1 << order) - 1, 0), "order {order}");
    }
}

#[test]
fn the_remainder_keeps_its_kind_below_order_5() {
    for order in 1..=4 {
        assert_eq!(remainders(order), (0, (1 << order) - 1), "order {order}");
    }
}

#[test]
fn easy_requests_fall_back_on_kernel_pages_by_the_same_rule() {
    for (order, changes) in [(4, false), (5, true)] {
        let frames = Order::new(order).frames();
        let zone = kinds_with(&[(0, frames)]);
        let block = zone.alloc(&request(order, Mobility::Unmovable)).unwrap();
        free(&zone, block, order);
        assert_eq!(free_of(&zone, Unmovable), frames);
        zone.alloc(&MOVABLE).unwrap();
        let expected = if changes { Movable } else { Unmovable };
        assert_eq!(free_of(&zone, expected), frames - 1, "order {order}");
    }
}

#[test]
fn a_whole_block_broken_by_the_other_kind_mixes_nothing() {
    // All the rest of it changes kind, so the page blocks in it hold pages of one kind.
    let zone = kinds_with(&[(0, 1024)]);
    zone.alloc(&UNMOVABLE).unwrap();
    let meter = zone.meter();
    assert_eq!((meter.fallbacks, meter.mixing), (1, 0));
}

// ---- 2007: page blocks ----

type Grouped = Parts<Blocks, Direct>;

/// Returns a plan of `blocks` page blocks of 64 frames, and no larger blocks.
const fn one_block_at_most(blocks: usize) -> LabPlan {
    LabPlan::of(ZonePlan {
        max_order: Order::new(6),
        ..small(blocks * 64).zone
    })
}

/// A zone of eight page blocks of 64 frames, one of each type and the others movable, wholly in
/// use. Freed parts of a block stay on the list of its type.
struct Occupied {
    zone: Grouped,
    unmovable: Frame,
    reclaimable: Frame,
    movable: Frame,
    high: Frame,
}

const OCCUPIED: [usize; 5] = [1, 5, 1, 1, 0];

impl Occupied {
    fn new() -> Self {
        let zone = full(&one_block_at_most(8), Cpus::new());
        let block = |request: Request| zone.alloc(&request).expect("a free block");
        let unmovable = block(request(6, Mobility::Unmovable));
        let reclaimable = block(request(6, Mobility::Reclaimable));
        let high = block(request(6, Mobility::Unmovable).atomic());
        let movable = block(request(6, Mobility::Movable));
        take_all(&zone, Mobility::Movable);
        let occupied = Self {
            zone,
            unmovable,
            reclaimable,
            movable,
            high,
        };
        // By number: unmovable, movable, reclaimable, for atomic requests, isolated.
        assert_eq!(occupied.blocks(), OCCUPIED);
        assert_eq!(occupied.zone.free_frames(), 0);
        occupied
    }

    /// Returns the page block of a type.
    fn block(&self, kind: MigrateType) -> Frame {
        match kind {
            Unmovable => self.unmovable,
            Reclaimable => self.reclaimable,
            High => self.high,
            Movable | Isolate => self.movable,
        }
    }

    /// Frees the part of the block of `kind` at `offset`.
    fn free_part(&self, kind: MigrateType, offset: usize, order: u8) {
        let part = self.block(kind).plus(offset);
        // Movable pages were taken one by one, the blocks as a whole: a range is freed either way.
        let range = FrameRange::of_block(part, Order::new(order));
        assert_eq!(self.zone.free_range(range), Ok(()));
        assert_eq!(list_of(&self.zone, part), kind);
    }

    /// Returns how many page blocks there are of each type.
    fn blocks(&self) -> [usize; 5] {
        self.zone.snapshot(0).blocks
    }

    /// Returns the type of the block that a request is served from.
    fn served_from(&self, request: &Request) -> MigrateType {
        let page = self.zone.alloc(request).expect("something is free");
        let block = page.align_down(Order::new(6));
        let kinds = [Unmovable, Reclaimable, Movable, High];
        let found = kinds.into_iter().find(|&kind| self.block(kind) == block);
        sound(&self.zone);
        found.expect("one of the four blocks")
    }
}

/// Returns the type that a request is served from when small blocks of one size are free on the
/// lists of `types`.
fn served_among(request: &Request, types: &[MigrateType]) -> MigrateType {
    let occupied = Occupied::new();
    for &kind in types {
        occupied.free_part(kind, 0, 2);
    }
    occupied.served_from(request)
}

#[test]
fn unmovable_requests_try_reclaimable_then_movable_then_atomic_blocks() {
    let request = UNMOVABLE;
    let among = |types: &[_]| served_among(&request, types);
    assert_eq!(among(&[High, Movable, Reclaimable]), Reclaimable);
    assert_eq!(among(&[High, Movable]), Movable);
    assert_eq!(among(&[High]), High);
}

#[test]
fn reclaimable_requests_try_unmovable_then_movable_then_atomic_blocks() {
    let request = RECLAIMABLE;
    let among = |types: &[_]| served_among(&request, types);
    assert_eq!(among(&[High, Movable, Unmovable]), Unmovable);
    assert_eq!(among(&[High, Movable]), Movable);
    assert_eq!(among(&[High]), High);
}

#[test]
fn movable_requests_try_reclaimable_then_unmovable_then_atomic_blocks() {
    let request = MOVABLE;
    let among = |types: &[_]| served_among(&request, types);
    assert_eq!(among(&[High, Unmovable, Reclaimable]), Reclaimable);
    assert_eq!(among(&[High, Unmovable]), Unmovable);
    assert_eq!(among(&[High]), High);
}

#[test]
fn atomic_requests_of_order_1_try_reclaimable_then_unmovable_then_movable_blocks() {
    let request = request(1, Mobility::Movable).atomic();
    let among = |types: &[_]| served_among(&request, types);
    assert_eq!(among(&[Movable, Unmovable, Reclaimable]), Reclaimable);
    assert_eq!(among(&[Movable, Unmovable]), Unmovable);
    assert_eq!(among(&[Movable]), Movable);
}

#[test]
fn atomic_requests_of_order_1_have_a_type_of_their_own() {
    let atomic = request(1, Mobility::Movable).atomic();
    let every = &[Unmovable, Reclaimable, Movable, High];
    assert_eq!(served_among(&atomic, every), High);
    // Requests for order 0 do not, nor do requests that may sleep.
    let single = MOVABLE.atomic();
    assert_eq!(served_among(&single, every), Movable);
    let sleeps = request(1, Mobility::Unmovable);
    assert_eq!(served_among(&sleeps, every), Unmovable);
}

#[test]
fn the_requests_own_list_comes_before_any_larger_block() {
    let occupied = Occupied::new();
    occupied.free_part(Movable, 0, 5);
    occupied.free_part(Unmovable, 0, 0);
    let request = UNMOVABLE;
    assert_eq!(occupied.served_from(&request), Unmovable);
    assert_eq!(occupied.served_from(&request), Movable);
}

#[test]
fn the_largest_block_is_split_whatever_its_type() {
    let occupied = Occupied::new();
    occupied.free_part(Reclaimable, 0, 1);
    occupied.free_part(Movable, 0, 2);
    let request = UNMOVABLE;
    assert_eq!(occupied.served_from(&request), Movable);
}

#[test]
fn blocks_for_atomic_requests_are_spared_however_large_they_are() {
    for (mobility, other) in [
        (Mobility::Movable, Unmovable),
        (Mobility::Reclaimable, Movable),
    ] {
        let occupied = Occupied::new();
        occupied.free_part(High, 0, 5);
        occupied.free_part(other, 0, 0);
        let request = Request::page(mobility);
        assert_eq!(occupied.served_from(&request), other);
        // On the second pass they are split.
        assert_eq!(occupied.served_from(&request), High);
    }
}

#[test]
fn unmovable_requests_do_not_spare_blocks_for_atomic_requests() {
    let occupied = Occupied::new();
    occupied.free_part(High, 0, 2);
    occupied.free_part(Reclaimable, 0, 1);
    let request = UNMOVABLE;
    assert_eq!(occupied.served_from(&request), High);
}

/// Splits a free part of the movable block for `mobility`. Returns the lists of a free frame of
/// that part, and of one elsewhere in the same block.
fn lists_after(mobility: Mobility, order: u8) -> (MigrateType, MigrateType) {
    let occupied = Occupied::new();
    occupied.free_part(Movable, 0, order);
    occupied.free_part(Movable, 32, 0);
    let taken = occupied
        .zone
        .alloc(&Request::page(mobility))
        .expect("a free frame");
    assert_eq!(taken, occupied.movable);
    assert_eq!(occupied.blocks(), OCCUPIED);
    let rest = list_of(&occupied.zone, taken.plus(1));
    (rest, list_of(&occupied.zone, occupied.movable.plus(32)))
}

#[test]
fn free_pages_move_when_the_block_found_has_half_the_page_blocks_order() {
    assert_eq!(
        lists_after(Mobility::Unmovable, 3),
        (Unmovable, Unmovable),
        "order 3 of 6"
    );
}

#[test]
fn free_pages_stay_below_half_the_page_blocks_order() {
    assert_eq!(
        lists_after(Mobility::Unmovable, 2),
        (Movable, Movable),
        "order 2 of 6"
    );
}

#[test]
fn free_pages_move_for_a_reclaimable_request_whatever_was_found() {
    let moved = (Reclaimable, Reclaimable);
    assert_eq!(lists_after(Mobility::Reclaimable, 1), moved);
    assert_eq!(lists_after(Mobility::Reclaimable, 3), moved);
}

#[test]
fn the_block_is_claimed_when_exactly_half_of_it_moved() {
    // 16 + 8 + 4 + 2 + 1 frames, and one more.
    let occupied = Occupied::new();
    for (offset, order) in [(0, 4), (32, 3), (48, 2), (56, 1), (60, 0), (62, 0)] {
        occupied.free_part(Movable, offset, order);
    }
    let zone = &occupied.zone;
    zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(occupied.blocks(), [2, 4, 1, 1, 0]);
    let meter = zone.meter();
    // A page in use in a claimed block is freed to the new type's list.
    free(zone, occupied.movable.plus(63), 0);
    assert_eq!(free_of(zone, Unmovable), 32);
    assert_eq!((meter.mixing, meter.claims), (0, meter.fallbacks));
}

#[test]
fn the_block_is_not_claimed_when_one_page_less_than_half_of_it_moved() {
    let occupied = Occupied::new();
    for (offset, order) in [(0, 4), (32, 3), (48, 2), (56, 1), (60, 0)] {
        occupied.free_part(Movable, offset, order);
    }
    let zone = &occupied.zone;
    zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(occupied.blocks(), OCCUPIED);
    assert_eq!(zone.meter().mixing, 1);
    // The pages that moved have the request's type anyway, and pages freed later go to the block's
    // own list.
    assert_eq!(free_of(zone, Unmovable), 30);
    free(zone, occupied.movable.plus(62), 0);
    assert_eq!(list_of(zone, occupied.movable.plus(62)), Movable);
}

#[test]
fn a_block_for_atomic_requests_gives_its_pages_and_keeps_its_type() {
    let occupied = Occupied::new();
    occupied.free_part(High, 0, 5);
    let zone = &occupied.zone;
    zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(occupied.blocks(), OCCUPIED);
    assert_eq!(free_of(zone, Unmovable), 31);
}

#[test]
fn a_whole_free_block_is_claimed() {
    let occupied = Occupied::new();
    occupied.free_part(Movable, 0, 6);
    let zone = &occupied.zone;
    zone.alloc(&request(1, Mobility::Unmovable)).unwrap();
    assert_eq!(occupied.blocks(), [2, 4, 1, 1, 0]);
    assert_eq!(free_of(zone, Unmovable), 62);
}

#[test]
fn a_whole_free_block_for_atomic_requests_is_claimed_too() {
    let occupied = Occupied::new();
    occupied.free_part(High, 0, 6);
    let request = MOVABLE;
    occupied.zone.alloc(&request).unwrap();
    assert_eq!(occupied.blocks(), [1, 6, 1, 0, 0]);
}

#[test]
fn a_free_block_over_two_page_blocks_claims_both() {
    let zone: Grouped = full(&small(8 * 64), Cpus::new());
    zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(blocks_of(&zone, Unmovable), 2);
    assert_eq!(free_of(&zone, Unmovable), 127);
    let meter = zone.meter();
    assert_eq!((meter.fallbacks, meter.claims, meter.mixing), (1, 1, 0));
}

#[test]
fn every_block_is_movable_at_first() {
    let zone: Grouped = full(&small(8 * 64), Cpus::new());
    assert_eq!(zone.snapshot(0).blocks, [0, 8, 0, 0, 0]);
    assert_eq!(free_of(&zone, Movable), 8 * 64);
}

#[test]
fn a_page_is_freed_to_the_list_of_its_blocks_type_whatever_it_was_taken_for() {
    let occupied = Occupied::new();
    occupied.free_part(Movable, 0, 0);
    // An unmovable page in the movable block: it is freed to the movable list.
    let request = UNMOVABLE;
    let page = occupied.zone.alloc(&request).unwrap();
    assert_eq!(page, occupied.movable);
    free(&occupied.zone, page, 0);
    assert_eq!(list_of(&occupied.zone, page), Movable);
}

#[test]
fn a_zone_of_fewer_than_four_page_blocks_is_not_grouped() {
    let zone: Grouped = empty(&small(8 * 64), Cpus::new());
    assert_eq!(zone.add(FrameRange::new(0, 4 * 64 - 1)), Ok(255));
    assert_eq!(free_of(&zone, Unmovable), 255);
    assert_eq!(zone.snapshot(0).blocks, [0; 5]);
    // All requests are served from one list, and none counts as a fallback.
    for mobility in Mobility::ALL {
        zone.alloc(&Request::page(mobility)).unwrap();
    }
    zone.alloc(&request(1, Mobility::Movable).atomic()).unwrap();
    assert_eq!(zone.meter().fallbacks, 0);
    assert_eq!(free_of(&zone, Unmovable), 250);
    sound(&zone);
}

#[test]
fn grouping_switches_on_with_the_fourth_block_and_off_again() {
    let zone: Grouped = empty(&small(8 * 64), Cpus::new());
    assert_eq!(zone.add(FrameRange::new(0, 255)), Ok(255));
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(zone.add(FrameRange::new(255, 256)), Ok(1));
    // The free frames are on the lists of their blocks, which are movable.
    assert_eq!(free_of(&zone, Movable), 255);
    assert_eq!(blocks_of(&zone, Movable), 8);
    sound(&zone);
    free(&zone, page, 0);
    assert_eq!(zone.remove(FrameRange::new(0, 1)), Ok(1));
    assert_eq!(free_of(&zone, Unmovable), 255);
    assert_eq!(zone.snapshot(0).blocks, [0; 5]);
    sound(&zone);
}

#[test]
fn reserved_frames_do_not_count_towards_the_fourth_block() {
    let zone: Grouped = full(&small(4 * 64), Cpus::new());
    assert_eq!(blocks_of(&zone, Movable), 4);
    assert_eq!(zone.reserve(FrameRange::new(9, 10)), Ok(1));
    assert_eq!(zone.snapshot(0).blocks, [0; 5]);
    assert_eq!(zone.unreserve(FrameRange::new(9, 10)), Ok(1));
    assert_eq!(blocks_of(&zone, Movable), 4);
    assert_eq!(free_of(&zone, Movable), 256);
}

#[test]
fn frames_that_were_cached_before_grouping_switched_off_are_found() {
    let zone: Parts<Blocks, Lists<Exclusive>> = full(&small(4 * 64), Cpus::new());
    let page = zone.alloc(&MOVABLE).unwrap();
    free(&zone, page, 0);
    let free = zone.free_frames();
    let last = zone
        .span()
        .frames()
        .rfind(|&at| usage(&zone, at) == Use::Free);
    let last = last.unwrap();
    assert_eq!(zone.reserve(FrameRange::at(last, 1)), Ok(1));
    assert_eq!(zone.snapshot(0).blocks, [0; 5]);
    assert_eq!((free, zone.cached_frames()), (4 * 64 - 31, 31));
    assert_eq!(take_all(&zone, Mobility::Movable).len(), 4 * 64 - 1);
    sound(&zone);
}

// ---- the reserve for atomic requests ----

/// Makes a zone of `blocks` page blocks that sets blocks aside.
fn setting_aside(blocks: usize) -> Grouped {
    let plan = LabPlan {
        high_atomic: HighAtomic::SetAside,
        ..one_block_at_most(blocks)
    };
    full(&plan, Cpus::new())
}

fn set_aside(zone: &Grouped) -> usize {
    blocks_of(zone, High)
}

#[test]
fn a_block_is_set_aside_once_an_atomic_request_of_order_1_was_served() {
    let zone = setting_aside(8);
    assert_eq!(set_aside(&zone), 0);
    let block = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    let block = block.unwrap();
    assert_eq!(set_aside(&zone), 1);
    // Its free frames are set aside, and so are frames freed into it.
    assert_eq!(free_of(&zone, High), 62);
    free(&zone, block, 1);
    assert_eq!(list_of(&zone, block), High);
    assert_eq!(free_of(&zone, High), 64);
    sound(&zone);
}

#[test]
fn nothing_is_set_aside_for_other_requests() {
    let zone = setting_aside(8);
    zone.alloc(&UNMOVABLE.atomic()).unwrap();
    zone.alloc(&request(3, Mobility::Unmovable)).unwrap();
    assert_eq!(set_aside(&zone), 0);
    // Nor for a request that fails.
    let held = take_all(&zone, Mobility::Movable);
    assert!(!held.is_empty());
    let failed = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    assert_eq!(failed, Err(exhausted(0, 0)));
    assert_eq!(set_aside(&zone), 0);
}

#[test]
fn at_most_a_hundredth_and_a_block_is_set_aside() {
    // 200 blocks: a hundredth is two, so three may be set aside; of 8 blocks, one.
    for (blocks, most) in [(200, 3), (8, 1)] {
        let zone = setting_aside(blocks);
        let mut seen = 0;
        for _ in 0..64 {
            zone.alloc(&request(3, Mobility::Unmovable).atomic())
                .unwrap();
            let now = set_aside(&zone);
            assert!(now == seen || now == seen + 1, "one at a time");
            seen = now;
        }
        assert_eq!(seen, most, "of {blocks}");
        sound(&zone);
    }
}

#[test]
fn a_second_block_is_set_aside_only_when_the_first_is_empty() {
    let zone = setting_aside(200);
    let pair = request(1, Mobility::Movable).atomic();
    for _ in 0..32 {
        zone.alloc(&pair).unwrap();
        assert_eq!(set_aside(&zone), 1);
    }
    zone.alloc(&pair).unwrap();
    assert_eq!(set_aside(&zone), 2);
}

#[test]
fn ordinary_requests_do_not_use_blocks_set_aside_until_nothing_else_is_free() {
    let zone = setting_aside(8);
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    free(&zone, pair.unwrap(), 1);
    let page = MOVABLE;
    for _ in 0..7 * 64 {
        zone.alloc(&page).unwrap();
        assert_eq!(free_of(&zone, High), 64);
    }
    // Under pressure the block is given back to the request, with all its free frames.
    zone.alloc(&page).unwrap();
    assert_eq!(set_aside(&zone), 0);
    assert_eq!(free_of(&zone, Movable), 63);
    sound(&zone);
}

#[test]
fn atomic_requests_of_order_0_use_blocks_set_aside_last() {
    let zone = setting_aside(8);
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    free(&zone, pair.unwrap(), 1);
    let atomic = UNMOVABLE.atomic();
    for _ in 0..7 * 64 {
        zone.alloc(&atomic).unwrap();
    }
    assert_eq!(free_of(&zone, High), 64);
    zone.alloc(&atomic).unwrap();
    // It was served from the block, which is still set aside.
    assert_eq!(free_of(&zone, High), 63);
    assert_eq!(set_aside(&zone), 1);
}

/// Checks that `request` is refused and changes nothing, although a block is set aside.
fn is_refused_and_changes_nothing(request: &Request) {
    let zone = setting_aside(8);
    let atomic = zone.alloc(&support::request(1, Mobility::Unmovable).atomic());
    assert!(atomic.is_ok());
    let before = zone.snapshot(0);
    assert!(zone.alloc(request).is_err());
    assert_eq!(zone.snapshot(0).blocks, before.blocks);
    assert_eq!(zone.snapshot(0), before);
}

#[test]
fn an_order_above_the_highest_changes_no_block_set_aside() {
    is_refused_and_changes_nothing(&request(7, Mobility::Movable));
}

#[test]
fn a_limit_with_no_memory_below_it_changes_no_block_set_aside() {
    is_refused_and_changes_nothing(&MOVABLE.below(frame(0)));
}

#[test]
fn a_request_with_a_limit_has_a_block_set_aside_given_back() {
    // Below the limit only the block set aside is free: it is given back, not used while set aside.
    let zone = setting_aside(8);
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    let pair = pair.unwrap();
    free(&zone, pair, 1);
    let block = FrameRange::of_block(pair.align_down(Order::new(6)), Order::new(6));
    for at in FrameRange::new(0, block.start.number()).frames() {
        assert_eq!(zone.alloc_at(at, &UNMOVABLE), Ok(()));
    }
    let below = MOVABLE.below(block.end);
    assert!(zone.alloc(&below).is_ok_and(|at| block.contains(at)));
    assert_eq!((set_aside(&zone), free_of(&zone, High)), (0, 0));
    sound(&zone);
}

#[test]
fn a_block_that_is_set_aside_does_not_merge_with_an_ordinary_one() {
    // Free blocks of page-block size and above merge only if both are of ordinary types.
    let plan = LabPlan {
        high_atomic: HighAtomic::SetAside,
        ..small(8 * 64)
    };
    let zone: Grouped = full(&plan, Cpus::new());
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    let pair = pair.unwrap();
    let neighbour = pair.align_down(Order::new(6)).buddy(Order::new(6));
    free(&zone, pair, 1);
    assert_eq!(
        free_of(&zone, High),
        64,
        "only its own frames are set aside"
    );
    // Nor when the page freed last is in the neighbour block.
    let at = UNMOVABLE;
    assert_eq!(zone.alloc_at(neighbour, &at), Ok(()));
    free(&zone, neighbour, 0);
    assert_eq!(
        free_of(&zone, High),
        64,
        "its own frames are still set aside"
    );
    sound(&zone);
}

#[test]
fn blocks_given_back_can_be_set_aside_again() {
    let zone = setting_aside(8);
    let atomic = request(1, Mobility::Unmovable).atomic();
    let first = zone.alloc(&atomic).unwrap();
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(set_aside(&zone), 0);
    for page in held {
        free(&zone, page, 0);
    }
    free(&zone, first, 1);
    zone.alloc(&atomic).unwrap();
    assert_eq!(set_aside(&zone), 1);
    assert_eq!(zone.check().map(|census| census.free), Ok(8 * 64 - 2));
}

// ---- page blocks dedicated by the caller ----

#[test]
fn a_dedicated_block_changes_its_type_and_the_list_of_its_free_frames() {
    for (from, to) in [
        (Movable, Mobility::Unmovable),
        (Movable, Mobility::Reclaimable),
        (Unmovable, Mobility::Movable),
        (Reclaimable, Mobility::Unmovable),
    ] {
        let occupied = Occupied::new();
        occupied.free_part(from, 0, 3);
        occupied.free_part(from, 20, 2);
        occupied.free_part(from, 63, 0);
        let (zone, block) = (&occupied.zone, occupied.block(from));
        let (of_from, of_to) = (blocks_of(zone, from), blocks_of(zone, to.into()));
        // Any frame of it selects it, in use or free.
        zone.dedicate(block.plus(40), to);
        sound(zone);
        assert_eq!(blocks_of(zone, from), of_from - 1);
        assert_eq!(blocks_of(zone, to.into()), of_to + 1);
        assert_eq!((free_of(zone, from), free_of(zone, to.into())), (0, 13));
        for at in [0, 20, 63] {
            assert_eq!(list_of(zone, block.plus(at)), to.into());
        }
        // Frames freed in it later go there too, and requests are served from there without a
        // fallback.
        assert_eq!(
            zone.free_range(FrameRange::of_block(block.plus(8), Order::new(3))),
            Ok(())
        );
        assert_eq!(list_of(zone, block.plus(8)), to.into());
        let fallbacks = zone.meter().fallbacks;
        let page = zone.alloc(&Request::page(to)).unwrap();
        assert_eq!(page.align_down(Order::new(6)), block);
        assert_eq!(zone.meter().fallbacks, fallbacks);
        sound(zone);
    }
}

#[test]
fn a_block_wholly_in_use_is_dedicated_and_keeps_its_type_when_freed_in_parts() {
    let occupied = Occupied::new();
    let (zone, block) = (&occupied.zone, occupied.unmovable);
    zone.dedicate(block, Mobility::Movable);
    sound(zone);
    assert_eq!(blocks_of(zone, Unmovable), 0);
    assert_eq!(
        zone.free_range(FrameRange::of_block(block, Order::new(2))),
        Ok(())
    );
    assert_eq!(list_of(zone, block), Movable);
    sound(zone);
}

#[test]
fn blocks_that_are_free_and_blocks_for_atomic_requests_are_left_alone() {
    let occupied = Occupied::new();
    let zone = &occupied.zone;
    occupied.free_part(High, 0, 3);
    occupied.free_part(Movable, 0, 6);
    let before = seen_blocks(zone);
    for block in [occupied.high, occupied.movable] {
        for mobility in Mobility::ALL {
            zone.dedicate(block, mobility);
            zone.dedicate(block.plus(63), mobility);
        }
    }
    // Outside the zone it does nothing.
    zone.dedicate(zone.span().end, Mobility::Unmovable);
    zone.dedicate(frame(usize::MAX), Mobility::Unmovable);
    assert_eq!(seen_blocks(zone), before);
    sound(zone);
}

fn seen_blocks(zone: &Grouped) -> ([usize; 5], [usize; 5]) {
    let kinds = [Unmovable, Movable, Reclaimable, High, Isolate];
    (
        zone.snapshot(0).blocks,
        kinds.map(|kind| free_of(zone, kind)),
    )
}

#[test]
fn where_blocks_have_no_types_there_is_nothing_to_dedicate() {
    let plain: Parts<NoGrouping, Direct> = full(&small(512), Cpus::new());
    let kinds: Kinds = full(&linux(4096), Cpus::new());
    let page = plain.alloc(&MOVABLE).unwrap();
    let easy = kinds.alloc(&MOVABLE).unwrap();
    let before = (plain.snapshot(0), kinds.snapshot(0));
    for mobility in Mobility::ALL {
        plain.dedicate(page, mobility);
        kinds.dedicate(easy, mobility);
    }
    assert_eq!((plain.snapshot(0), kinds.snapshot(0)), before);
    sound(&plain);
    sound(&kinds);
}

#[test]
fn dedicating_blocks_at_any_moment_breaks_nothing() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let zone: Grouped = full(&small(512), Cpus::new());
        let mut held: Vec<(Frame, u8)> = Vec::new();
        for _ in 0..400 {
            let mobility = dice.one_of(&Mobility::ALL);
            match dice.below(5) {
                0..2 => {
                    let order = dice.below(7) as u8;
                    let taken = zone.alloc(&request(order, mobility));
                    held.extend(taken.ok().map(|at| (at, order)));
                }
                2..4 if !held.is_empty() => {
                    let (at, order) = held.swap_remove(dice.below(held.len()));
                    free(&zone, at, order);
                }
                _ => zone.dedicate(frame(dice.below(512)), mobility),
            }
            let used = held.iter().map(|&(_, order)| 1 << order).sum::<usize>();
            assert_eq!(sound(&zone).allocated, used, "seed {seed}");
        }
    }
}
