//! How requests of the older designs wait for each other: for blocks that another gave back from
//! those set aside, and for visitors of their lists. Also plans of caches that are refused.

use core::cell::Cell;
use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes};
use brickyard::sync::{PATIENCE, Shared, Slot};
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, InterruptState, MigrateType, Mobility, OneCpu, Order,
    PlanError, Platform, Request, ZoneKind, ZonePlan,
};
use brickyard_designs::classics::bulk::Tuning;
use brickyard_designs::classics::front::{CpuLists, ListSizes, PerCpuLists};
use brickyard_designs::classics::store::buddy::Buddy;
use brickyard_designs::classics::store::frames::{FrameRecord, FrameTable};
use brickyard_designs::classics::store::grouping::{HighAtomic, NoGrouping};
use brickyard_designs::classics::{LabPlan, LabZone, List2007, Magazine2013, Planned, Vanilla};

use crate::meanwhile;

use meanwhile::{CPU, Here, LOOKS, OTHER, PAGE};

type List = List2007<'static, Here, Shared>;

// ---- blocks set aside ----

/// Makes a zone with `reserves` blocks of 64 frames set aside for atomic requests, each with `free`
/// free frames; all other frames are in use. Also returns the blocks.
fn with_reserves(reserves: usize, free: usize) -> (&'static List, Vec<FrameRange>) {
    // A hundredth of the zone may be set aside, and a block.
    let span = FrameRange::new(0, 6400 * reserves);
    let plan = LabPlan {
        high_atomic: HighAtomic::SetAside,
        ..LabPlan::of(ZonePlan {
            max_order: Order::new(6),
            page_block_order: Order::new(6),
            ..ZonePlan::new(ZoneKind::Normal, span, 4)
        })
    };
    let memory = vec![MaybeUninit::uninit(); List::checked_bytes_for(&plan).unwrap()].leak();
    let zone = List::by(&plan, Here, memory).unwrap();
    let zone: &'static List = Box::leak(Box::new(zone));
    zone.add(plan.span).unwrap();
    CPU.set(0);
    let kind = |frame| zone.block_of(frame).map(|(_, state)| state.kind);
    let pair = Request::new(Order::new(1), Mobility::Unmovable).atomic();
    let is_reserved = |block: &FrameRange| kind(block.start) == Some(MigrateType::HighAtomic);
    let blocks = plan.span.start.number() / 64..plan.span.end.number() / 64;
    let blocks: Vec<_> = blocks
        .map(|block| FrameRange::new(64 * block, 64 * block + 64))
        .collect();
    let mut held = Vec::new();
    while zone.snapshot(0).blocks[MigrateType::HighAtomic.index()] < reserves {
        held.push(zone.alloc(&pair).unwrap());
    }
    for pair in held {
        zone.free(pair, Order::new(1)).unwrap();
    }
    let reserved: Vec<_> = blocks.into_iter().filter(is_reserved).collect();
    (0..plan.span.len() - 64 * reserves).for_each(|_| assert!(zone.alloc(&PAGE).is_ok()));
    for block in &reserved {
        for at in block.start.number()..block.end.number() - free {
            zone.alloc_at(Frame::new(at), &PAGE).unwrap();
        }
    }
    assert_eq!(
        (zone.free_frames(), zone.cached_frames()),
        (free * reserves, 0)
    );
    (zone, reserved)
}

/// Checks that `request` is served whenever, during it, others do `work`.
fn is_served_whenever<Z: Copy + 'static>(
    scene: impl Fn() -> (Z, Request),
    alloc: impl Fn(Z, &Request) -> Result<Frame, AllocError>,
    work: impl Fn(Z, &Request) + Copy + 'static,
) {
    let mut ran = 0;
    for moment in 0..64 {
        let (zone, request) = scene();
        OTHER.set(Some((moment, Box::new(move || work(zone, &request)))));
        let answer = alloc(zone, &request);
        ran += u32::from(OTHER.take().is_none());
        assert!(
            answer.is_ok(),
            "{answer:?}, the others before step {moment}"
        );
    }
    assert!(ran > 5, "{ran}");
}

/// All free memory is set aside for atomic requests. Another request gives it back, after this one
/// has looked everywhere else.
#[test]
fn what_another_gave_back_from_the_reserve_is_taken() {
    is_served_whenever(
        || (with_reserves(1, 64).0, PAGE),
        List::alloc,
        |zone, request| {
            CPU.set(1);
            zone.alloc(request).unwrap();
        },
    );
}

/// The same, while another block, above the request's limit, stays set aside.
#[test]
fn what_another_gave_back_is_taken_also_where_something_stays() {
    is_served_whenever(
        || {
            let (zone, reserved) = with_reserves(2, 64);
            (zone, PAGE.below(reserved[1].start))
        },
        List::alloc,
        |zone, request| {
            CPU.set(1);
            zone.alloc(request).unwrap();
        },
    );
}

/// The same, and the frames given back are in other CPUs' lists before this request gets to them.
#[test]
fn what_another_gave_back_is_found_in_a_list_of_another_cpu() {
    let others = |zone: &'static List, request: &Request| {
        for cpu in [1, 2] {
            CPU.set(cpu);
            zone.alloc(request).unwrap();
        }
    };
    is_served_whenever(|| (with_reserves(1, 8).0, PAGE), List::alloc, others);
    let nodes = |zone: &'static List, request: &Request| {
        let node = [Node::new(0, core::slice::from_ref(zone))];
        Nodes::new(&node).alloc(0, request)
    };
    is_served_whenever(|| (with_reserves(1, 8).0, PAGE), nodes, others);
}

// ---- limits ----

#[test]
fn a_plan_whose_caches_hold_nothing_is_refused() {
    let plan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
    let memory = || vec![MaybeUninit::uninit(); 1 << 20].leak();
    let none = LabPlan {
        magazines: 0,
        ..plan
    };
    let zone = Magazine2013::<OneCpu>::by(&none, OneCpu, memory());
    assert!(matches!(zone, Err(PlanError::CacheSizes(_))), "{zone:?}");
    let mut lists = plan;
    lists.lists.batch = 0;
    let zone = List2007::<OneCpu>::by(&lists, OneCpu, memory());
    assert!(matches!(zone, Err(PlanError::CacheSizes(_))), "{zone:?}");
}

// ---- masks and interrupts ----

thread_local! {
    static MASKED: Cell<usize> = const { Cell::new(0) };
}

/// `in_interrupt` as its documentation allows: true with interrupts masked.
#[derive(Debug, Clone, Copy)]
struct Masks;
impl Platform for Masks {
    fn cpu(&self) -> usize {
        CPU.get()
    }
    fn in_interrupt(&self) -> bool {
        MASKED.get() > 0
    }
    fn mask_interrupts(&self) -> InterruptState {
        MASKED.set(MASKED.get() + 1);
        InterruptState(0)
    }
    fn restore_interrupts(&self, _: InterruptState) {
        MASKED.set(MASKED.get() - 1);
    }
    fn relax(&self) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

#[test]
fn the_owner_of_lists_waits_for_a_visitor() {
    const SPAN: FrameRange = FrameRange::new(0, 1024);
    let records: Vec<FrameRecord> = (0..1024).map(|_| FrameRecord::default()).collect();
    let slots: Vec<Slot<Shared, CpuLists>> =
        (0..1).map(|_| Slot::new(CpuLists::default())).collect();
    let zone = Vanilla::<'_, Masks, Shared>::of(
        ZoneKind::Normal,
        Masks,
        Buddy::new(
            FrameTable::new(SPAN, &records),
            Order::DEFAULT_MAX,
            NoGrouping,
        ),
        PerCpuLists::new(&slots, ListSizes::LINUX_2013),
        Tuning::LINUX,
    );
    zone.add(SPAN).unwrap();
    CPU.set(0);
    zone.alloc(&PAGE).unwrap();
    let inside = slots[0].visit(|| ()).unwrap();
    LOOKS.set(0);
    zone.alloc(&PAGE).unwrap();
    assert_eq!(LOOKS.get(), u64::from(PATIENCE));
    drop(inside);
}
