//! The order of zones and nodes: which zone serves a request, down to which mark, what is held back
//! from which requests, and the errors of failures.
//!
//! Zones here have no front unless a test is about one, so that all free frames are in the store.

use crate::classics::support;

use core::cell::Cell;

use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::sync::Exclusive;
use brickyard::watermark::{Access, Marks, reserved_mark};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Context, Frame, FrameRange, FreeError, MigrateType,
    Mobility, Order, Request, ZoneKind, ZonePlan,
};
use brickyard_designs::classics::front::Direct;
use brickyard_designs::classics::store::grouping::{HighAtomic, NoGrouping};
use brickyard_designs::classics::{LabPlan, LabZone};

use support::{
    Blocks, Cpus, Lists, MOVABLE, Parts, RECLAIMABLE, UNMOVABLE, blocks_of, empty, exhausted,
    frame, free, full, request, small, sound, take, take_all,
};

type Plain = Parts<NoGrouping, Direct>;

/// Makes a zone of a kind with all of `start..end` free.
fn zone(kind: ZoneKind, start: usize, end: usize) -> Plain {
    let plan = LabPlan::of(ZonePlan {
        kind,
        span: FrameRange::new(start, end),
        ..small(0).zone
    });
    full(&plan, Cpus::new())
}

const fn marks(min: usize, low: usize, high: usize) -> Marks {
    Marks { min, low, high }
}

/// Allocates until a request fails. Returns the zones that served, as runs: the zone's start and
/// the number of requests.
fn served<Z: AnyZone>(nodes: &Nodes<'_, Z>, from: usize, request: &Request) -> Vec<(Frame, usize)> {
    let mut runs: Vec<(Frame, usize)> = Vec::new();
    while let Ok(got) = nodes.alloc(from, request) {
        let zone = nodes.zone_of(got).expect("a zone");
        let start = zone.span().start;
        match runs.last_mut() {
            Some((last, n)) if *last == start => *n += 1,
            _ => runs.push((start, 1)),
        }
    }
    runs
}

/// Returns the runs as plain numbers: the zone's start, and the number of requests it served.
fn numbers(runs: &[(Frame, usize)]) -> Vec<(usize, usize)> {
    runs.iter().map(|(at, n)| (at.number(), *n)).collect()
}

// ---- the order of zones ----

/// Makes all five kinds of zone, 64 frames each, lowest first: they start at 0, 64, 128, 192 and
/// 256.
fn five_zones() -> [Plain; 5] {
    let mut start = 0;
    ZoneKind::ALL.map(|kind| {
        let made = zone(kind, start, start + 64);
        start += 64;
        made
    })
}

#[test]
fn a_movable_request_goes_from_the_highest_zone_to_the_lowest() {
    let zones = five_zones();
    let node = [Node::new(0, &zones)];
    let runs = served(&Nodes::new(&node), 0, &MOVABLE);
    assert_eq!(
        numbers(&runs),
        [(256, 64), (192, 64), (128, 64), (64, 64), (0, 64)]
    );
}

#[test]
fn other_requests_go_from_normal_memory_down() {
    for page in [UNMOVABLE, RECLAIMABLE] {
        let zones = five_zones();
        let node = [Node::new(0, &zones)];
        let runs = served(&Nodes::new(&node), 0, &page);
        assert_eq!(numbers(&runs), [(128, 64), (64, 64), (0, 64)]);
    }
}

#[test]
fn the_movable_zone_is_for_movable_requests_only() {
    // Whatever the request's other properties.
    for page in [UNMOVABLE, RECLAIMABLE] {
        let raised = Request {
            highest: ZoneKind::Movable,
            ..page
        };
        for request in [raised, page.from_zones_up_to(ZoneKind::Movable)] {
            let zones = five_zones();
            let node = [Node::new(0, &zones)];
            let runs = served(&Nodes::new(&node), 0, &request);
            assert_eq!(numbers(&runs), [(192, 64), (128, 64), (64, 64), (0, 64)]);
            assert_eq!(zones[4].free_frames(), 64);
        }
    }
}

#[test]
fn a_movable_request_that_may_not_use_high_memory_does_not_reach_the_movable_zone() {
    let zones = five_zones();
    let node = [Node::new(0, &zones)];
    let low = MOVABLE.from_zones_up_to(ZoneKind::Normal);
    let runs = served(&Nodes::new(&node), 0, &low);
    assert_eq!(numbers(&runs), [(128, 64), (64, 64), (0, 64)]);
}

#[test]
fn a_request_for_dma_memory_is_served_from_that_alone() {
    let zones = five_zones();
    let node = [Node::new(0, &zones)];
    let dma = UNMOVABLE.from_zones_up_to(ZoneKind::Dma);
    let runs = served(&Nodes::new(&node), 0, &dma);
    assert_eq!(numbers(&runs), [(0, 64)]);
}

// ---- the order of nodes ----

/// Makes three nodes of one zone of 64 frames each, which start at 0, 64 and 128.
fn three_zones() -> [[Plain; 1]; 3] {
    [0, 64, 128].map(|start| [zone(ZoneKind::Normal, start, start + 64)])
}

#[test]
fn nodes_follow_in_a_ring_from_the_requested_one() {
    for (from, order) in [
        (0, [0, 64, 128]),
        (1, [64, 128, 0]),
        (2, [128, 0, 64]),
        // No such node: starting at the first.
        (9, [0, 64, 128]),
    ] {
        let zones = three_zones();
        let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
        let runs = served(&Nodes::new(&nodes), from, &MOVABLE);
        assert_eq!(numbers(&runs), order.map(|start| (start, 64)), "{from}");
    }
}

#[test]
fn all_zones_of_a_node_come_before_the_next_node() {
    let near = [zone(ZoneKind::Dma, 0, 64), zone(ZoneKind::Normal, 64, 128)];
    let far = [zone(ZoneKind::Normal, 128, 192)];
    let nodes = [Node::new(0, &near), Node::new(1, &far)];
    let runs = served(&Nodes::new(&nodes), 0, &UNMOVABLE);
    assert_eq!(numbers(&runs), [(64, 64), (0, 64), (128, 64)]);
}

#[test]
fn the_next_node_is_used_before_a_node_goes_below_its_low_mark() {
    let zones = three_zones();
    for [zone] in &zones[..2] {
        zone.watermarks()
            .set(marks(10, 20, 30), [0; ZoneKind::COUNT]);
    }
    let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
    let runs = served(&Nodes::new(&nodes), 0, &MOVABLE);
    // Down to the low marks, node by node; then down to the min marks.
    assert_eq!(
        numbers(&runs),
        [(0, 44), (64, 44), (128, 64), (0, 10), (64, 10)]
    );
}

#[test]
fn every_zone_is_freed_to_by_its_frames() {
    let zones = three_zones();
    let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
    let nodes = Nodes::new(&nodes);
    let held: Vec<Frame> = core::iter::from_fn(|| nodes.alloc(1, &MOVABLE).ok()).collect();
    assert_eq!(held.len(), 192);
    // A bulk over all three, and one frame of no zone.
    let mut mixed = held[..150].to_vec();
    mixed.push(frame(192));
    let error = BulkFreeError {
        freed: 150,
        error: FreeError::NotOwned,
    };
    assert_eq!(nodes.free_bulk(&mixed), Err(error));
    for &at in &held[150..] {
        assert_eq!(nodes.free(at, Order::ZERO), Ok(()));
    }
    assert_eq!(
        nodes.free(frame(192), Order::ZERO),
        Err(FreeError::NotOwned)
    );
    assert!(zones.iter().all(|[zone]| zone.free_frames() == 64));
    assert!(nodes.check().is_ok());
}

/// Makes a zone with records for all of 0..256 and these ranges as memory.
fn with_holes(ranges: &[(usize, usize)]) -> [Plain; 1] {
    let zone: Plain = empty(&small(256), Cpus::new());
    for &(start, end) in ranges {
        assert_eq!(zone.add(FrameRange::new(start, end)), Ok(end - start));
    }
    [zone]
}

#[test]
fn nodes_whose_memory_interleaves_are_freed_to_by_their_frames() {
    let near = with_holes(&[(0, 64), (128, 192)]);
    let far = with_holes(&[(64, 128), (192, 250)]);
    let nodes = [Node::new(0, &near), Node::new(1, &far)];
    let nodes = Nodes::new(&nodes);
    let held: Vec<Frame> = core::iter::from_fn(|| nodes.alloc(0, &MOVABLE).ok()).collect();
    assert_eq!(held.len(), 250);
    let (one_by_one, at_once) = held.split_at(100);
    for &at in one_by_one {
        assert_eq!(nodes.free(at, Order::ZERO), Ok(()));
    }
    assert_eq!(nodes.free_bulk(at_once), Ok(()));
    assert_eq!((near[0].free_frames(), far[0].free_frames()), (128, 122));
    // A hole of both belongs to none.
    assert_eq!(
        nodes.free(frame(251), Order::ZERO),
        Err(FreeError::NotOwned)
    );
    assert!(nodes.check().is_ok());
}

// ---- address limits ----

#[test]
fn every_frame_lies_below_the_limit() {
    let zones = five_zones();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let below = MOVABLE.below(frame(150));
    let mut got = Vec::new();
    while let Ok(at) = nodes.alloc(0, &below) {
        got.push(at);
    }
    assert_eq!(got.len(), 150);
    assert!(got.iter().all(|&at| at < frame(150)));
    // The zone that contains the limit comes first, as the highest that may serve.
    assert!(got[..22].iter().all(|&at| at >= frame(128)));
}

#[test]
fn a_block_across_the_limit_gives_the_part_below_it() {
    let zones = [zone(ZoneKind::Normal, 0, 128)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    // One free block of 128 frames; blocks of 16 fit below 50 three times.
    let request = request(4, Mobility::Movable).below(frame(50));
    let got: Vec<_> = core::iter::from_fn(|| nodes.alloc(0, &request).ok()).collect();
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|&at| at.plus(16) <= frame(50)));
    let limit = frame(50);
    assert_eq!(
        nodes.alloc(0, &request),
        Err(AllocError::LimitUnsatisfiable { limit })
    );
    sound(&zones[0]);
}

#[test]
fn a_frame_below_the_limit_is_found_in_a_list_of_another_cpu() {
    let cpus = Cpus::new();
    let zones: [Parts<NoGrouping, Lists<Exclusive>>; 1] = [full(&small(256), cpus)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let held = take_all(&zones[0], Mobility::Movable);
    assert_eq!(held.len(), 256);
    cpus.switch_to(1);
    free(&zones[0], frame(200), 0);
    free(&zones[0], frame(20), 0);
    cpus.switch_to(0);
    let below = UNMOVABLE.below(frame(100));
    assert_eq!(nodes.alloc(0, &below), Ok(frame(20)));
    assert!(nodes.alloc(0, &below).is_err());
    assert_eq!(nodes.alloc(0, &UNMOVABLE), Ok(frame(200)));
}

// ---- watermarks ----

/// Makes a zone of 256 frames with marks of 16, 32 and 48.
fn marked() -> [Plain; 1] {
    let zone = zone(ZoneKind::Normal, 0, 256);
    zone.watermarks()
        .set(marks(16, 32, 48), [0; ZoneKind::COUNT]);
    [zone]
}

/// Returns how many frames are left when requests of this kind fail.
fn left_by(zones: &[Plain; 1], request: &Request) -> usize {
    let node = [Node::new(0, zones)];
    let nodes = Nodes::new(&node);
    while nodes.alloc(0, request).is_ok() {}
    zones[0].free_frames()
}

#[test]
fn a_request_that_may_sleep_leaves_the_min_mark() {
    assert_eq!(left_by(&marked(), &MOVABLE), 16);
}

#[test]
fn an_atomic_request_goes_five_eighths_below_the_min_mark() {
    // 16, minus half, minus a quarter of the rest: 6.
    assert_eq!(left_by(&marked(), &MOVABLE.atomic()), 6);
    let interrupt = MOVABLE.in_context(Context::Interrupt);
    assert_eq!(left_by(&marked(), &interrupt), 6);
}

#[test]
fn what_is_left_of_the_mark_is_rounded_up() {
    // Linux's arithmetic: the part subtracted is rounded down.
    for (mark, high, atomic) in [(16, 8, 6), (17, 9, 7), (1, 1, 1), (0, 0, 0), (100, 50, 38)] {
        assert_eq!(reserved_mark(mark, Access::Ordinary), mark);
        assert_eq!(reserved_mark(mark, Access::High), high);
        assert_eq!(reserved_mark(mark, Access::Victim), high);
        assert_eq!(reserved_mark(mark, Access::Atomic), atomic);
    }
}

#[test]
fn all_frames_of_a_block_but_one_count_as_taken() {
    // Blocks of four: served while free - 3 > 16.
    assert_eq!(left_by(&marked(), &request(2, Mobility::Movable)), 16);
    let zones = marked();
    zones[0].alloc(&MOVABLE).unwrap();
    // 255, 251 and so on to 19: 19 - 3 is not above 16.
    assert_eq!(left_by(&zones, &request(2, Mobility::Movable)), 19);
}

#[test]
fn a_zone_has_no_marks_by_default() {
    let [zone] = marked();
    assert_eq!(take_all(&zone, Mobility::Movable).len(), 256);
}

/// Counts the calls of each hook, and does nothing.
#[derive(Default)]
struct Counts {
    woken: Cell<usize>,
    reclaimed: Cell<usize>,
}

impl Reclaim for Counts {
    fn reclaim(&self, _: &Need) -> usize {
        self.reclaimed.set(self.reclaimed.get() + 1);
        0
    }

    fn wake(&self, _: &Need) {
        self.woken.set(self.woken.get() + 1);
    }
}

impl Migrate for Counts {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Unknown
    }
}

#[test]
fn background_reclaim_is_woken_below_the_low_mark_and_not_before() {
    let zones = marked();
    let node = [Node::new(0, &zones)];
    let counts = Counts::default();
    let nodes = Nodes::with_hooks(&node, &counts, SlowPath::PLAIN);
    while zones[0].free_frames() > 32 {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(counts.woken.get(), 0);
    }
    for woken in 1..=16 {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(counts.woken.get(), woken);
    }
    // Above the min mark no request waits for reclaim.
    assert_eq!(counts.reclaimed.get(), 0);
    assert!(nodes.alloc(0, &MOVABLE).is_err());
    assert_eq!(counts.reclaimed.get(), 1);
    // And one that may not sleep never does.
    while nodes.alloc(0, &MOVABLE.atomic()).is_ok() {}
    assert_eq!(counts.reclaimed.get(), 1);
}

#[test]
fn min_free_kbytes_sets_each_zones_share() {
    // 2048 kB are 512 frames for 5120 frames of low memory: 102 and 409 of them. A quarter of each
    // is the gap.
    let zones = [
        zone(ZoneKind::Dma, 0, 1024),
        zone(ZoneKind::Normal, 1024, 5120),
        zone(ZoneKind::Movable, 5120, 7168),
    ];
    let node = [Node::new(0, &zones)];
    Nodes::new(&node).set_min_free_kbytes(2048, 4096);
    let marks_of = [0, 1, 2].map(|i: usize| zones[i].watermarks().marks());
    assert_eq!(marks_of[0], marks(102, 127, 152));
    assert_eq!(marks_of[1], marks(409, 511, 613));
    // 2048 / 1024 is below the least of 32; its share would be 204.
    assert_eq!(marks_of[2], marks(32, 83, 134));
}

#[test]
fn min_free_kbytes_of_any_size_is_taken() {
    // More than there is: no request succeeds any more, and nothing overflows.
    let zones = [zone(ZoneKind::Normal, 0, 256)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    nodes.set_min_free_kbytes(usize::MAX, 4096);
    assert_eq!(nodes.alloc(0, &MOVABLE), Err(exhausted(256, 0)));
}

// ---- the reserves of lower zones ----

/// Makes a node with 1000 frames for DMA, 5120 of normal memory and 2560 of movable memory, with
/// the reserves of Linux and no min mark.
fn reserving() -> [Plain; 3] {
    let zones = [
        zone(ZoneKind::Dma, 0, 1000),
        zone(ZoneKind::Normal, 1024, 6144),
        zone(ZoneKind::Movable, 6144, 8704),
    ];
    let node = [Node::new(0, &zones)];
    Nodes::new(&node).set_min_free_kbytes(0, 4096);
    zones
}

#[test]
fn lower_zones_hold_back_a_part_of_the_size_of_higher_ones() {
    let zones = reserving();
    let against = |zone: usize, highest| zones[zone].watermarks().reserve_against(highest);
    // 5120 / 256 and 7680 / 256; 2560 / 32.
    assert_eq!(against(0, ZoneKind::Dma), 0);
    assert_eq!(against(0, ZoneKind::Normal), 20);
    assert_eq!(against(0, ZoneKind::Movable), 30);
    assert_eq!(against(1, ZoneKind::Normal), 0);
    assert_eq!(against(1, ZoneKind::Movable), 80);
    assert_eq!(against(2, ZoneKind::Movable), 0);
}

#[test]
fn requests_for_higher_zones_leave_the_reserve_of_the_lower_ones() {
    let zones = reserving();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    while nodes.alloc(0, &MOVABLE).is_ok() {}
    // The movable zone has a min mark of its own: 2560 / 1024, at least 32.
    let left = [0, 1, 2].map(|i: usize| zones[i].free_frames());
    assert_eq!(left, [30, 80, 32]);
    while nodes.alloc(0, &UNMOVABLE).is_ok() {}
    let left = [0, 1, 2].map(|i: usize| zones[i].free_frames());
    assert_eq!(left, [20, 0, 32]);
    while nodes
        .alloc(0, &UNMOVABLE.from_zones_up_to(ZoneKind::Dma))
        .is_ok()
    {}
    assert_eq!(zones[0].free_frames(), 0);
}

#[test]
fn atomic_requests_leave_the_reserve_too() {
    let zones = reserving();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    while nodes.alloc(0, &UNMOVABLE.atomic()).is_ok() {}
    assert_eq!(zones[0].free_frames(), 20);
}

// ---- blocks set aside for atomic requests ----

type Grouped = Parts<Blocks, Direct>;

/// Makes a zone of eight page blocks of 64 frames that starts at `start`.
fn grouped(start: usize, high_atomic: HighAtomic) -> Grouped {
    let plan = LabPlan {
        high_atomic,
        ..LabPlan::of(ZonePlan {
            span: FrameRange::new(start, start + 512),
            max_order: Order::new(6),
            ..small(0).zone
        })
    };
    full(&plan, Cpus::new())
}

/// Makes a zone of 512 frames of which one block, wholly free, is set aside.
fn with_a_reserve(start: usize) -> Grouped {
    let zone = grouped(start, HighAtomic::SetAside);
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    free(&zone, pair.expect("enough memory"), 1);
    assert_eq!(blocks_of(&zone, MigrateType::HighAtomic), 1);
    zone
}

#[test]
fn what_is_set_aside_does_not_count_for_ordinary_requests() {
    let near = [with_a_reserve(0)];
    let far = [grouped(512, HighAtomic::SetAside)];
    near[0]
        .watermarks()
        .set(marks(10, 10, 10), [0; ZoneKind::COUNT]);
    let nodes = [Node::new(0, &near), Node::new(1, &far)];
    let nodes = Nodes::new(&nodes);
    for _ in 0..448 - 10 {
        assert!(nodes.alloc(0, &MOVABLE).is_ok_and(|at| at < frame(512)));
    }
    // 74 frames are free, 64 of them set aside: the next frame comes from the other node.
    assert!(nodes.alloc(0, &MOVABLE).is_ok_and(|at| at >= frame(512)));
    // For an atomic request they count.
    let atomic = MOVABLE.atomic();
    assert!(nodes.alloc(0, &atomic).is_ok_and(|at| at < frame(512)));
}

#[test]
fn what_is_set_aside_is_given_back_when_no_node_has_anything_else() {
    let near = [with_a_reserve(0)];
    let far = [grouped(512, HighAtomic::SetAside)];
    let nodes = [Node::new(0, &near), Node::new(1, &far)];
    let nodes = Nodes::new(&nodes);
    for _ in 0..1024 - 64 {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(blocks_of(&near[0], MigrateType::HighAtomic), 1);
    }
    for _ in 0..64 {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(blocks_of(&near[0], MigrateType::HighAtomic), 0);
    }
    assert_eq!(nodes.alloc(0, &MOVABLE), Err(exhausted(0, 0)));
}

/// Every second frame of the block set aside is in use, so that it has no larger free block; all
/// other memory is free, and the zone is at its mark.
#[test]
fn what_is_set_aside_and_of_no_use_does_not_lift_a_request_above_the_mark() {
    let zones = [with_a_reserve(0)];
    let zone = &zones[0];
    let kind = |at: usize| zone.block_of(frame(at)).map(|(_, state)| state.kind);
    let in_reserve: Vec<usize> = (0..512)
        .filter(|&at| kind(at) == Some(MigrateType::HighAtomic))
        .collect();
    assert_eq!(in_reserve.len(), 64);
    for &at in in_reserve.iter().step_by(2) {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    assert_eq!(zone.free_frames(), 448 + 32);
    zone.watermarks()
        .set(marks(448, 448, 448), [0; ZoneKind::COUNT]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_err());
    assert_eq!(zone.free_frames(), 448 + 32);
}

/// Two blocks are set aside. One would serve the request, but then the zone is below its mark: the
/// frames that stay set aside in the other do not count.
#[test]
fn what_stays_set_aside_does_not_lift_a_request_above_the_mark() {
    // One hundredth of the zone and a block may be set aside.
    let plan = LabPlan {
        high_atomic: HighAtomic::SetAside,
        ..LabPlan::of(ZonePlan {
            span: FrameRange::new(0, 12800),
            max_order: Order::new(6),
            ..small(0).zone
        })
    };
    let zones: [Grouped; 1] = [full(&plan, Cpus::new())];
    let zone = &zones[0];
    let pair = request(1, Mobility::Unmovable).atomic();
    let mut pairs = Vec::new();
    while blocks_of(zone, MigrateType::HighAtomic) < 2 {
        pairs.push(zone.alloc(&pair).expect("enough memory"));
    }
    pairs.into_iter().for_each(|pair| free(zone, pair, 1));
    let is_set_aside = |at: usize| {
        zone.block_of(frame(at)).map(|(_, state)| state.kind) == Some(MigrateType::HighAtomic)
    };
    let set_aside: Vec<usize> = (0..12800).filter(|&at| is_set_aside(at)).collect();
    take(zone, 12800 - 128, Mobility::Movable);
    for &at in set_aside[64..].iter().step_by(2) {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    assert_eq!(zone.free_frames(), 64 + 32);
    zone.watermarks()
        .set(marks(80, 80, 80), [0; ZoneKind::COUNT]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_err());
    assert_eq!(zone.free_frames(), 64 + 32);
    // Without the frames of the other it is served.
    zone.watermarks()
        .set(marks(50, 50, 50), [0; ZoneKind::COUNT]);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_ok());
}

#[test]
fn many_frames_at_once_leave_what_is_set_aside_alone_while_another_node_has_memory() {
    let near = [with_a_reserve(0)];
    let far = [grouped(512, HighAtomic::SetAside)];
    let nodes = [Node::new(0, &near), Node::new(1, &far)];
    let nodes = Nodes::new(&nodes);
    take(&near[0], 400, Mobility::Movable);
    // 112 frames are free in the near zone, 64 of them set aside.
    let mut out = [Frame::new(0); 100];
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(100));
    assert_eq!(blocks_of(&near[0], MigrateType::HighAtomic), 1);
}

#[test]
fn an_order_above_the_highest_leaves_what_is_set_aside_alone() {
    let zones = [with_a_reserve(0)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    assert!(nodes.alloc(0, &request(7, Mobility::Movable)).is_err());
    assert_eq!(blocks_of(&zones[0], MigrateType::HighAtomic), 1);
}

// ---- many at once ----

#[test]
fn many_frames_come_from_the_first_zone_that_stays_above_its_low_mark() {
    // Served by the near zone while it has more than low + n free frames.
    for (count, near_serves) in [(223, true), (224, false)] {
        let near = marked();
        let far = [zone(ZoneKind::Normal, 256, 512)];
        let nodes = [Node::new(0, &near), Node::new(1, &far)];
        let nodes = Nodes::new(&nodes);
        let mut out = vec![frame(0); count];
        assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(count));
        let near_ones = out.iter().filter(|&&at| at < frame(256)).count();
        assert_eq!(near_ones, if near_serves { count } else { 0 });
    }
}

#[test]
fn a_batch_that_no_zone_can_serve_comes_one_by_one() {
    let zones = three_zones();
    let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
    let nodes = Nodes::new(&nodes);
    let mut out = [frame(0); 150];
    assert_eq!(nodes.alloc_bulk(2, &MOVABLE, &mut out), Ok(150));
    let mut distinct = out.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 150);
    // As many as there are, and then the error.
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(42));
    assert_eq!(
        nodes.alloc_bulk(0, &MOVABLE, &mut out),
        Err(exhausted(0, 0))
    );
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut []), Ok(0));
}

#[test]
fn many_frames_at_once_leave_the_min_mark() {
    let zones = marked();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let mut out = [frame(0); 256];
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(240));
    assert_eq!(zones[0].free_frames(), 16);
}

#[test]
fn many_frames_below_a_limit_all_lie_below_it() {
    let zones = [zone(ZoneKind::Normal, 0, 256)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let mut out = [frame(0); 100];
    let below = MOVABLE.below(frame(60));
    assert_eq!(nodes.alloc_bulk(0, &below, &mut out), Ok(60));
    assert!(out[..60].iter().all(|&at| at < frame(60)));
}

// ---- errors ----

#[test]
fn full_memory_is_exhausted_whatever_the_order() {
    let zones = three_zones();
    let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
    let nodes = Nodes::new(&nodes);
    while nodes.alloc(0, &MOVABLE).is_ok() {}
    for order in 0..=7 {
        let asked = request(order, Mobility::Unmovable);
        assert_eq!(nodes.alloc(0, &asked), Err(exhausted(0, 0)));
    }
}

#[test]
fn memory_behind_a_mark_is_exhausted_and_counted() {
    let zones = marked();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    while nodes.alloc(0, &MOVABLE).is_ok() {}
    assert_eq!(nodes.alloc(0, &MOVABLE), Err(exhausted(16, 0)));
}

/// Frees every second frame in use.
fn scatter(zone: &Plain) {
    let mut held = take_all(zone, Mobility::Movable);
    held.sort();
    for &at in held.iter().step_by(2) {
        free(zone, at, 0);
    }
}

#[test]
fn memory_in_single_frames_is_fragmented_with_its_index() {
    let zones = [zone(ZoneKind::Normal, 0, 64)];
    scatter(&zones[0]);
    let node = [Node::new(0, &zones)];
    // 32 blocks, 32 frames: 1000 - (1000 + 32000 / 16) / 32 = 1000 - 93.
    let fragmented = AllocError::Fragmented {
        order: Order::new(4),
        free: 32,
        index: Some(907),
    };
    let asked = request(4, Mobility::Unmovable);
    assert_eq!(Nodes::new(&node).alloc(0, &asked), Err(fragmented));
    assert_eq!(zones[0].alloc(&asked), Err(fragmented));
}

#[test]
fn a_pair_that_fails_with_half_of_memory_free_fails_for_fragmentation() {
    // "Enough memory is free, but in pieces too small": 128 single frames for a request of two.
    let zones = [zone(ZoneKind::Normal, 0, 256)];
    scatter(&zones[0]);
    let node = [Node::new(0, &zones)];
    let why = Nodes::new(&node).alloc(0, &request(1, Mobility::Unmovable));
    assert!(matches!(why, Err(AllocError::Fragmented { .. })), "{why:?}");
}

#[test]
fn too_few_frames_in_few_pieces_are_exhausted() {
    // Two single frames for a request of 64: 1000 - (1000 + 2000 / 64) / 2 = 485: lack of memory
    // rather than fragmentation.
    let zones = [zone(ZoneKind::Normal, 0, 128)];
    take_all(&zones[0], Mobility::Movable);
    free(&zones[0], frame(10), 0);
    free(&zones[0], frame(80), 0);
    let node = [Node::new(0, &zones)];
    let why = Nodes::new(&node).alloc(0, &request(6, Mobility::Unmovable));
    assert_eq!(why, Err(exhausted(2, 0)));
}

#[test]
fn the_error_is_that_of_the_zone_with_the_most_free_memory() {
    let zones = [zone(ZoneKind::Dma, 0, 64), zone(ZoneKind::Normal, 64, 192)];
    take_all(&zones[0], Mobility::Movable);
    scatter(&zones[1]);
    let node = [Node::new(0, &zones)];
    // 64 single frames: 1000 - (1000 + 64000 / 16) / 64 = 1000 - 78.
    let fragmented = AllocError::Fragmented {
        order: Order::new(4),
        free: 64,
        index: Some(922),
    };
    let asked = request(4, Mobility::Unmovable);
    assert_eq!(Nodes::new(&node).alloc(0, &asked), Err(fragmented));
}

#[test]
fn nothing_below_the_limit_is_unsatisfiable() {
    let zones = five_zones();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let limit = frame(10);
    let below = MOVABLE.below(limit);
    for _ in 0..10 {
        assert!(nodes.alloc(0, &below).is_ok());
    }
    let unsatisfiable = Err(AllocError::LimitUnsatisfiable { limit });
    assert_eq!(nodes.alloc(0, &below), unsatisfiable);
    // Too large for the memory below, although none of it is in use.
    let large = request(4, Mobility::Movable).below(limit);
    assert_eq!(nodes.alloc(0, &large), unsatisfiable);
    // No zone is below it at all.
    let limit = frame(0);
    let nowhere = MOVABLE.below(limit);
    let unsatisfiable = Err(AllocError::LimitUnsatisfiable { limit });
    assert_eq!(nodes.alloc(0, &nowhere), unsatisfiable);
}

#[test]
fn an_order_above_the_highest_is_too_large() {
    let zones = three_zones();
    let nodes: Vec<_> = zones.iter().map(|zone| Node::new(0, zone)).collect();
    let nodes = Nodes::new(&nodes);
    let (order, max) = (Order::new(8), Order::new(7));
    let too_large = Err(AllocError::OrderTooLarge { order, max });
    let asked = request(8, Mobility::Movable);
    assert_eq!(nodes.alloc(0, &asked), too_large);
    assert_eq!(nodes.alloc(0, &asked.below(frame(10))), too_large);
    assert_eq!(nodes.alloc(0, &asked.atomic()), too_large);
    assert_eq!(zones[0][0].alloc(&asked), too_large);
    assert_eq!(nodes.check().map(|census| census.free), Ok(192));
}

#[test]
fn the_highest_order_is_that_of_the_zones_that_may_serve() {
    let plan = LabPlan::of(ZonePlan {
        kind: ZoneKind::Movable,
        span: FrameRange::new(64, 128),
        ..small(0).zone
    });
    let low = LabPlan::of(ZonePlan {
        kind: ZoneKind::Normal,
        span: FrameRange::new(0, 64),
        max_order: Order::new(3),
        page_block_order: Order::new(3),
        ..small(0).zone
    });
    let cpus = Cpus::new();
    let zones: [Plain; 2] = [full(&low, cpus), full(&plan, cpus)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let order = Order::new(4);
    let max = Order::new(3);
    let asked = request(4, Mobility::Unmovable);
    assert_eq!(
        nodes.alloc(0, &asked),
        Err(AllocError::OrderTooLarge { order, max })
    );
    assert!(nodes.alloc(0, &request(4, Mobility::Movable)).is_ok());
}

#[test]
fn a_request_that_no_zone_may_serve_is_exhausted() {
    let zones = [zone(ZoneKind::Movable, 0, 64)];
    let node = [Node::new(0, &zones)];
    assert_eq!(Nodes::new(&node).alloc(0, &UNMOVABLE), Err(exhausted(0, 0)));
    assert_eq!(zones[0].free_frames(), 64);
}

#[test]
fn zones_of_a_node_are_in_rising_order() {
    let zones = [zone(ZoneKind::Normal, 0, 64), zone(ZoneKind::Dma, 64, 128)];
    let node = [Node::new(0, &zones)];
    let found = Nodes::new(&node)
        .check()
        .expect_err("a lower kind behind a higher one");
    assert!(found.to_string().contains("kinds-in-order"), "{found}");
}
