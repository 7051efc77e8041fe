//! The known mistakes of the source documents are not repeated: one or more tests for each.
//!
//! The numbers: 1 is Porter's leak of the zone lock (2007), 4 are the claim test and the test of a
//! block's end in the list-based patches as posted (v28, 2007), 5 are the bugs of the magazine
//! patches (2013). Two mistakes have no code here: 2, the number of attempts of the 2005 test (275,
//! not 160), concerns the lab's protocol; 3, batches of one page too many, concerns the benchmark,
//! and the command line's tests cover it.

use crate::classics::support;

use core::cell::Cell;
use core::mem::MaybeUninit;

use brickyard::block::Use;
use brickyard::node::{Node, Nodes};
use brickyard::pressure::{ContiguousRequest, Migrate, Migration, NoHooks, alloc_contiguous};
use brickyard::sync::{Exclusive, Shared};
use brickyard::{
    AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Platform, RangeError, Request,
    ZoneKind, ZonePlan,
};
use brickyard_designs::classics::bulk::{BulkPolicy, Timing, Tuning};
use brickyard_designs::classics::front::{Direct, Front};
use brickyard_designs::classics::store::grouping::{NoGrouping, TwoKinds};
use brickyard_designs::classics::{LabPlan, LabZone, Magazine2013, Placed, Planned};

use MigrateType::{Isolate, Movable, Unmovable};
use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, UNMOVABLE, ZoneLock, assert_no_lock_held, blocks_of,
    exhausted, frame, free, free_of, full, list_of, request, seen, small, sound, take_all, usage,
};

// ---- 1: the zone lock, not released when the store ran empty in the middle of a batch ----

const POLICIES: [BulkPolicy; 3] = [
    BulkPolicy::Hold,
    BulkPolicy::ReleaseEachPage,
    BulkPolicy::YieldWhenContended,
];

/// Checks a zone of ten frames, fewer than any batch: the refill of the first request empties the
/// store.
fn refills_from_too_little<F>(bulk: BulkPolicy)
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let plan = LabPlan {
        tuning: Tuning {
            bulk,
            timing: Timing::Off,
        },
        ..small(10)
    };
    let zone: Parts<NoGrouping, F> = full(&plan, Cpus::new());
    let first = zone.alloc(&MOVABLE).expect("the first of ten");
    assert_no_lock_held();
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 9));
    // The zone can be locked, and still works.
    let rest = take_all(&zone, Mobility::Movable);
    assert_eq!(rest.len(), 9);
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
    sound(&zone);
    for held in rest {
        free(&zone, held, 0);
    }
    free(&zone, first, 0);
    zone.drain();
    assert!(zone.alloc(&request(3, Mobility::Movable)).is_ok());
    sound(&zone);
}

#[test]
fn the_zone_lock_is_released_when_a_refill_of_a_cpus_list_empties_the_store() {
    for bulk in POLICIES {
        refills_from_too_little::<Lists<Exclusive>>(bulk);
        refills_from_too_little::<Lists<Shared>>(bulk);
    }
}

#[test]
fn the_zone_lock_is_released_when_a_refill_of_a_magazine_empties_the_store() {
    for bulk in POLICIES {
        refills_from_too_little::<Mags>(bulk);
    }
}

#[test]
fn the_zone_lock_is_released_when_a_contended_refill_empties_the_store() {
    for bulk in POLICIES {
        ZoneLock::while_contended(|| {
            refills_from_too_little::<Lists<Shared>>(bulk);
            refills_from_too_little::<Mags>(bulk);
        });
    }
}

#[test]
fn the_zone_lock_is_released_when_a_refill_finds_nothing_at_all() {
    for bulk in POLICIES {
        let plan = LabPlan {
            tuning: Tuning {
                bulk,
                timing: Timing::On,
            },
            ..small(10)
        };
        let zone: Parts<NoGrouping, Lists<Exclusive>> = support::empty(&plan, Cpus::new());
        assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
        assert_no_lock_held();
        assert_eq!(zone.add(plan.span), Ok(10));
        assert!(zone.alloc(&MOVABLE).is_ok());
        sound(&zone);
    }
}

// ---- 4: the list-based patches as posted ----

type Grouped = Parts<Blocks, Direct>;

/// Makes a zone of `frames` frames in page blocks of 64, all movable and in use.
fn in_use(frames: usize) -> Grouped {
    let zone = full(&small(frames), Cpus::new());
    assert_eq!(take_all(&zone, Mobility::Movable).len(), frames);
    zone
}

#[test]
fn many_small_free_chunks_beside_a_large_one_do_not_claim_the_block() {
    // 21 chunks, of which the largest has order 3: v28 counted 21 * 8 pages and claimed. They are
    // 28 pages of 64.
    let zone = in_use(8 * 64);
    for page in FrameRange::new(64, 72).frames() {
        free(&zone, page, 0);
    }
    for single in (73..113).step_by(2) {
        free(&zone, frame(single), 0);
    }
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(page, frame(64));
    assert_eq!(blocks_of(&zone, Unmovable), 0);
    // They are moved, chunk by chunk.
    assert_eq!(free_of(&zone, Unmovable), 27);
    sound(&zone);
}

#[test]
fn one_large_chunk_claims_the_block_by_its_pages() {
    // One chunk of order 5: half of the block.
    let zone = in_use(8 * 64);
    for page in FrameRange::new(64, 96).frames() {
        free(&zone, page, 0);
    }
    zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!(blocks_of(&zone, Unmovable), 1);
}

/// Frees the first half of the block at `first` and one page more, takes an unmovable page from it,
/// and checks that the free pages moved and the block is claimed.
fn moves_and_claims(zone: &Grouped, first: usize) {
    for page in FrameRange::new(first, first + 32).frames() {
        free(zone, page, 0);
    }
    free(zone, frame(first + 40), 0);
    let page = zone.alloc(&UNMOVABLE).expect("a free frame");
    assert_eq!(page, frame(first));
    assert_eq!(list_of(zone, frame(first + 40)), Unmovable);
    assert_eq!(free_of(zone, Unmovable), 32);
    assert_eq!(blocks_of(zone, Unmovable), 1);
    sound(zone);
}

#[test]
fn the_last_block_of_a_zone_is_moved() {
    moves_and_claims(&in_use(8 * 64), 7 * 64);
}

#[test]
fn the_last_block_of_a_zone_that_abuts_another_zone_is_moved() {
    let above = LabPlan::of(ZonePlan {
        kind: ZoneKind::Movable,
        span: FrameRange::new(8 * 64, 16 * 64),
        ..small(0).zone
    });
    let zones: [Grouped; 2] = [in_use(8 * 64), full(&above, Cpus::new())];
    let node = [Node::new(0, &zones)];
    moves_and_claims(&zones[0], 7 * 64);
    // Nothing of the other zone has moved.
    assert_eq!(zones[1].snapshot(0).blocks, [0, 8, 0, 0, 0]);
    assert_eq!(free_of(&zones[1], Movable), 8 * 64);
    assert!(Nodes::new(&node).check().is_ok());
}

#[test]
fn of_a_last_block_cut_by_the_zones_end_the_part_in_the_zone_is_moved() {
    moves_and_claims(&in_use(7 * 64 + 41), 7 * 64);
}

#[test]
fn of_a_first_block_cut_by_the_zones_start_the_part_in_the_zone_is_moved() {
    let plan = LabPlan::of(ZonePlan {
        span: FrameRange::new(20, 8 * 64),
        ..small(0).zone
    });
    let zone: Grouped = full(&plan, Cpus::new());
    take_all(&zone, Mobility::Movable);
    for page in FrameRange::new(20, 52).frames() {
        free(&zone, page, 0);
    }
    zone.alloc(&UNMOVABLE).unwrap();
    // 32 pages: half of a whole block.
    assert_eq!(blocks_of(&zone, Unmovable), 1);
    assert_eq!(free_of(&zone, Unmovable), 31);
    sound(&zone);
}

// ---- 5: the magazine patches ----

type Magazined = Parts<Blocks, Mags>;

/// Makes a zone of 64 page blocks whose two magazines hold frames of all three kinds.
fn with_filled_magazines(cpus: &'static Cpus) -> Magazined {
    let zone: Magazined = full(&small(64 * 64), cpus);
    let mut held = Vec::new();
    for mobility in Mobility::ALL {
        held.extend(core::iter::repeat_with(|| zone.alloc(&Request::page(mobility))).take(20));
    }
    for (i, page) in held.into_iter().enumerate() {
        cpus.switch_to(i % 4);
        free(&zone, page.expect("memory enough"), 0);
    }
    cpus.switch_to(0);
    sound(&zone);
    zone
}

#[test]
fn a_full_drain_unlocks_each_magazine_once() {
    // Patch 22 unlocked twice; the locks here would panic.
    let zone = with_filled_magazines(Cpus::new());
    let cached = zone.cached_frames();
    assert!(cached > 60);
    assert_eq!(zone.drain(), cached);
    assert_no_lock_held();
    assert_eq!(zone.cached_frames(), 0);
    assert_eq!(zone.free_frames(), 64 * 64);
    // And once more, with empty magazines.
    assert_eq!(zone.drain(), 0);
    sound(&zone);
}

#[test]
fn isolation_does_not_drain_under_the_zone_lock() {
    // Patch 22 called the drain, which takes the zone lock, with the zone lock held; the locks here
    // would panic.
    let zone = with_filled_magazines(Cpus::new());
    let request = ContiguousRequest::new(100, zone.span());
    let range = alloc_contiguous(&zone, &request, &NoHooks).unwrap();
    assert_eq!(range.len(), 100);
    assert_eq!(zone.cached_frames(), 0);
    assert_eq!(zone.free_range(range), Ok(()));
    sound(&zone);
}

#[test]
fn isolation_ends_with_real_locks_too() {
    // Ticket locks, on a platform that panics after many waits.
    let plan = small(64 * 64);
    let mut memory =
        vec![MaybeUninit::uninit(); Magazine2013::<&Cpus>::checked_bytes_for(&plan).unwrap()];
    let zone = Magazine2013::<&Cpus>::by(&plan, Cpus::new(), &mut memory).unwrap();
    assert_eq!(zone.add(plan.span), Ok(64 * 64));
    let page = zone.alloc(&MOVABLE).unwrap();
    free(&zone, page, 0);
    assert!(zone.cached_frames() > 0);
    let request = ContiguousRequest::new(100, zone.span());
    assert!(alloc_contiguous(&zone, &request, &NoHooks).is_ok());
    assert_eq!(zone.check().map(|census| census.isolated), Ok(0));
}

/// Checks that nothing of `range` is isolated: its free frames can be allocated, and frames freed
/// there may be cached.
fn is_not_isolated<Z: LabZone>(zone: &Z, range: FrameRange) {
    let census = sound(zone);
    assert_eq!(census.isolated, 0);
    assert_eq!(blocks_of(zone, Isolate), 0);
    assert_eq!(free_of(zone, Isolate), 0);
    zone.drain();
    for page in range.frames().filter(|&at| usage(zone, at) == Use::Free) {
        assert_eq!(
            zone.alloc_at(page, &MOVABLE),
            Ok(()),
            "{page} can be allocated"
        );
        let cached = zone.cached_frames();
        free(zone, page, 0);
        assert_eq!(zone.cached_frames(), cached + 1, "{page} can be cached");
        zone.drain();
    }
}

#[test]
fn nothing_stays_isolated_after_a_success() {
    let zone = with_filled_magazines(Cpus::new());
    let request = ContiguousRequest::new(100, FrameRange::new(1000, 1200));
    let range = alloc_contiguous(&zone, &request, &NoHooks).unwrap();
    assert_eq!(zone.free_range(range), Ok(()));
    is_not_isolated(&zone, FrameRange::new(990, 1210));
}

#[test]
fn nothing_stays_isolated_after_a_failure() {
    // Patch 4 set the flag on the way back, too. Here one page cannot be moved.
    let zone = with_filled_magazines(Cpus::new());
    assert_eq!(zone.alloc_at(frame(1050), &MOVABLE), Ok(()));
    let before = seen(&zone).1;
    let request = ContiguousRequest::new(100, FrameRange::new(1000, 1100));
    let refused = alloc_contiguous(&zone, &request, &NoHooks);
    let busy = RangeError::Busy { frame: frame(1050) };
    assert_eq!(refused, Err(busy));
    let after = seen(&zone).1;
    assert_eq!(before.free + before.cached, after.free + after.cached);
    is_not_isolated(&zone, FrameRange::new(990, 1110));
}

/// Frees a page of the range being cleared while it is isolated, and records where it went.
struct FreesInside<'z, Z: LabZone> {
    zone: &'z Z,
    page: Frame,
    asked: Cell<bool>,
}

impl<Z: LabZone> Migrate for FreesInside<'_, Z> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        if self.asked.replace(true) {
            return Migration::Later;
        }
        let cached = self.zone.cached_frames();
        free(self.zone, self.page, 0);
        // In a cache it would be lost to the range; it goes straight to the store, to a list that
        // serves no requests.
        assert_eq!(self.zone.cached_frames(), cached);
        assert_eq!(list_of(self.zone, self.page), Isolate);
        let taken = self.zone.alloc_at(self.page, &MOVABLE);
        assert_eq!(taken, Err(RangeError::Isolated));
        Migration::Later
    }
}

/// Checks with front `F` that a page freed into an isolated range stays there, and is an ordinary
/// page again afterwards.
fn isolated_pages_bypass_the_front<F>()
where
    F: Front<Blocks, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone: Parts<Blocks, F> = full(&small(8 * 64), Cpus::new());
    for at in [100, 120] {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let hooks = FreesInside {
        zone: &zone,
        page: frame(120),
        asked: Cell::new(false),
    };
    let request = ContiguousRequest::new(64, FrameRange::new(64, 128));
    let refused = alloc_contiguous(&zone, &request, &hooks);
    assert!(hooks.asked.get());
    assert_eq!(refused, Err(RangeError::Busy { frame: frame(100) }));
    is_not_isolated(&zone, FrameRange::new(64, 128));
}

#[test]
fn pages_freed_into_an_isolated_range_bypass_every_front() {
    isolated_pages_bypass_the_front::<Mags>();
    isolated_pages_bypass_the_front::<Lists<Exclusive>>();
    isolated_pages_bypass_the_front::<Lists<Shared>>();
}

#[test]
fn every_list_of_every_magazine_starts_empty_and_whole() {
    // Patch 11 ran past the end of the array when it made the lists.
    for magazines in 1..=5 {
        let plan = LabPlan {
            magazines,
            ..small(64 * 64)
        };
        let cpus = Cpus::new();
        let zone: Magazined = full(&plan, cpus);
        assert_eq!(sound(&zone).cached, 0);
        for cpu in 0..2 * magazines {
            cpus.switch_to(cpu);
            for mobility in Mobility::ALL {
                let page = zone.alloc(&Request::page(mobility)).unwrap();
                sound(&zone);
                free(&zone, page, 0);
                sound(&zone);
            }
        }
        zone.drain();
        assert_eq!(zone.free_frames(), 64 * 64);
    }
}

/// Checks that a request that finds nothing changes nothing: no state is written for a missing page
/// (2005, v21).
fn a_failed_request_changes_nothing<Z: LabZone>(zone: &Z) {
    let held = take_all(zone, Mobility::Movable);
    zone.drain();
    let before = seen(zone);
    for mobility in Mobility::ALL {
        for order in [0, 1, 4] {
            assert_eq!(zone.alloc(&request(order, mobility)), Err(exhausted(0, 0)));
            let atomic = request(order, mobility).atomic();
            assert_eq!(zone.alloc(&atomic), Err(exhausted(0, 0)));
            assert_eq!(seen(zone), before);
        }
    }
    for page in held {
        free(zone, page, 0);
    }
    zone.drain();
    // Every page still has the kind that it was taken with.
    assert_eq!(free_of(zone, Movable), before.1.allocated);
}

#[test]
fn a_request_that_finds_no_page_writes_no_record() {
    let cpus = Cpus::new();
    a_failed_request_changes_nothing(&full::<TwoKinds, Direct, ZoneLock>(&small(512), cpus));
    a_failed_request_changes_nothing(&full::<TwoKinds, Lists<Shared>, ZoneLock>(
        &small(512),
        cpus,
    ));
    a_failed_request_changes_nothing(&full::<Blocks, Lists<Exclusive>, ZoneLock>(
        &small(512),
        cpus,
    ));
    a_failed_request_changes_nothing(&full::<Blocks, Mags, ZoneLock>(&small(512), cpus));
}

#[test]
fn a_freed_page_goes_to_the_list_of_its_block_whatever_type_was_requested_before() {
    // Patch 20 shadowed the type. A movable page out of an unmovable block is freed to the
    // unmovable list of the magazine.
    let zone: Magazined = full(&small(8 * 64), Cpus::new());
    let kept = zone.alloc(&UNMOVABLE).unwrap();
    let page = kept.buddy(Order::ZERO);
    zone.drain();
    assert_eq!(list_of(&zone, page), Unmovable);
    assert_eq!(zone.alloc_at(page, &MOVABLE), Ok(()));
    free(&zone, page, 0);
    assert_eq!(zone.cached_frames(), 1);
    let (holds, unmovable) = ZoneLock::holds_during(|| zone.alloc(&UNMOVABLE));
    assert_eq!((holds, unmovable), (0, Ok(page)));
    assert!(zone.platform().is_at_rest() && !zone.platform().in_interrupt());
}
