//! How long one request waits for others in all, and how often it asks: whoever stands still costs it that once, not at each of its looks.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use brickyard::bulk::Tuning;
use brickyard::design::{Brickyard, List2007, Magazine2013};
use brickyard::front::patience::WAITS_MOST;
use brickyard::front::{CpuStash, Stash, StashSizes};
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{ContiguousRequest, Migrate, Migration, Need, Reclaim, alloc_contiguous};
use brickyard::store::bitmap::Bitmap;
use brickyard::store::grouping::HighAtomic;
use brickyard::sync::{AtomicU64 as Word, Exclusive, PATIENCE, Shared, Slot, SlotAccess};
use brickyard::zone::watermark::Marks;
use brickyard::zone::{Zone, ZonePlan};
use brickyard::{
    Frame, FrameRange, InterruptState, MigrateType, Mobility, OneCpu, Order, PlanError, Platform,
    Request, ZoneKind,
};

const PAGE: Request = Request::page(Mobility::Movable);

/// Waits for one who stands still, and a few thousand for looks that find something on its way.
const FEW: u64 = 2 * PATIENCE as u64;

/// What another CPU does before the n-th pin or mask from here on.
type Meanwhile = (usize, Box<dyn FnOnce()>);

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static LOOKS: Cell<u64> = const { Cell::new(0) };
    static OTHER: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
}

/// Lets the other CPU do what it does now, if it is time.
fn meanwhile() {
    let due = OTHER.with_borrow_mut(|other| match other {
        Some((0, _)) => other.take(),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    if let Some((_, work)) = due {
        let here = CPU.get();
        work();
        CPU.set(here);
    }
}

#[derive(Debug, Clone, Copy)]
struct Here;
impl Platform for Here {
    fn cpu(&self) -> usize {
        CPU.get()
    }
    fn pin(&self) -> usize {
        meanwhile();
        CPU.get()
    }
    fn mask_interrupts(&self) -> InterruptState {
        meanwhile();
        InterruptState(0)
    }
    fn relax(&self) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

fn zone<A: SlotAccess>(
    frames: usize,
    cpus: usize,
) -> &'static mut Zone<Brickyard<'static, Here, A>> {
    let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, frames), cpus);
    let memory = vec![MaybeUninit::uninit(); Brickyard::<Here, A>::bytes(&plan)].leak();
    let zone = Brickyard::<Here, A>::zone(&plan, Here, memory).unwrap();
    zone.add(plan.span).unwrap();
    Box::leak(Box::new(zone))
}

#[test]
fn below_a_mark_what_was_freed_to_a_cache_meanwhile_is_not_asked() {
    let mut refused = Vec::new();
    for moment in 0..8 {
        let zone: &'static Zone<_> = zone::<Shared>(1024, 3);
        let node = [Node::new(0, core::slice::from_ref(zone))];
        let nodes = Nodes::new(&node);
        CPU.set(0);
        let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&PAGE).ok()).collect();
        for &frame in &all[..3] {
            zone.free(frame, Order::ZERO).unwrap();
        }
        zone.drain();
        CPU.set(2);
        zone.free(all[3], Order::ZERO).unwrap();
        CPU.set(0);
        assert_eq!((zone.free_frames(), zone.cached_frames()), (3, 1));
        // An atomic request must leave 3: one frame is its to have, all the time.
        zone.set_watermarks(
            Marks {
                min: 8,
                low: 8,
                high: 8,
            },
            [0; ZoneKind::COUNT],
        );
        let mine = all[4];
        OTHER.set(Some((
            moment,
            Box::new(move || {
                CPU.set(1);
                zone.free(mine, Order::ZERO).unwrap();
                CPU.set(2);
                assert_eq!(zone.cached_frames(), 2);
                zone.alloc(&PAGE).unwrap();
                assert_eq!((zone.free_frames(), zone.cached_frames()), (3, 1));
            }),
        )));
        let answer = nodes.alloc(0, &PAGE.atomic());
        let ran = OTHER.take().is_none();
        if ran && answer.is_err() {
            refused.push((moment, answer, LOOKS.get()));
            assert!(nodes.alloc(0, &PAGE.atomic()).is_ok());
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

// ---- what is set aside ----

/// A zone with so many blocks of 64 frames set aside for atomic requests, in each of which so many frames are free; all
/// else is in use. The blocks, too.
fn with_reserves(
    reserves: usize,
    free: usize,
) -> (
    &'static Zone<List2007<'static, Here, Shared>>,
    Vec<FrameRange>,
) {
    let plan = ZonePlan {
        max_order: Order::new(6),
        page_block_order: Order::new(6),
        high_atomic: HighAtomic::SetAside,
        // A hundredth of the zone may be set aside, and a block.
        ..ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 6400 * reserves), 4)
    };
    let memory = vec![MaybeUninit::uninit(); List2007::<Here, Shared>::bytes(&plan)].leak();
    let zone = List2007::<Here, Shared>::zone(&plan, Here, memory).unwrap();
    let zone: &'static Zone<_> = Box::leak(Box::new(zone));
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

/// Asks for `request` while others do `work` at every moment of it; it is served each time.
fn is_served_whenever<Z: Copy + 'static>(
    scene: impl Fn() -> (Z, Request),
    alloc: impl Fn(Z, &Request) -> Result<Frame, brickyard::AllocError>,
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

/// All that is free is set aside for atomic requests. Another request gives it back, after this one has looked everywhere else.
#[test]
fn what_another_gave_back_from_the_reserve_is_taken() {
    is_served_whenever(
        || (with_reserves(1, 64).0, PAGE),
        Zone::alloc,
        |zone, request| {
            CPU.set(1);
            zone.alloc(request).unwrap();
        },
    );
}

/// The same, while another block stays set aside that lies above the request's limit.
#[test]
fn what_another_gave_back_is_taken_also_where_something_stays() {
    is_served_whenever(
        || {
            let (zone, reserved) = with_reserves(2, 64);
            (zone, PAGE.below(reserved[1].start))
        },
        Zone::alloc,
        |zone, request| {
            CPU.set(1);
            zone.alloc(request).unwrap();
        },
    );
}

/// The same, and what was given back lies in other CPUs' lists before this request comes to it.
#[test]
fn what_another_gave_back_is_found_in_a_list_of_another_cpu() {
    let others = |zone: &'static Zone<_>, request: &Request| {
        for cpu in [1, 2] {
            CPU.set(cpu);
            zone.alloc(request).unwrap();
        }
    };
    is_served_whenever(|| (with_reserves(1, 8).0, PAGE), Zone::alloc, others);
    let nodes = |zone: &'static Zone<List2007<'static, Here, Shared>>, request: &Request| {
        let node = [Node::new(0, core::slice::from_ref(zone))];
        Nodes::new(&node).alloc(0, request)
    };
    is_served_whenever(|| (with_reserves(1, 8).0, PAGE), nodes, others);
}

// ---- hooks ----

#[derive(Default)]
struct Later(AtomicU64);
impl Migrate for &Later {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        self.0.fetch_add(1, Relaxed);
        Migration::Later
    }
}
impl Reclaim for &Later {
    fn reclaim(&self, _: &Need) -> usize {
        1
    }
}

#[test]
fn a_page_that_stays_is_asked_about_in_one_range() {
    CPU.set(0);
    for frames in [1024, 2048, 4096] {
        let zone: &'static Zone<_> = zone::<Shared>(frames, 1);
        let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&PAGE).ok()).collect();
        for &frame in all.iter().filter(|frame| frame.number() % 2 == 1) {
            zone.free(frame, Order::ZERO).unwrap();
        }
        zone.drain();
        let hooks = Later::default();
        let request = ContiguousRequest::new(64, FrameRange::new(0, frames));
        let answer = alloc_contiguous(zone, &request, &&hooks);
        let calls = hooks.0.load(Relaxed);
        zone.check().unwrap();
        // Each of the pages in use stays, in each of five passes over the only range it is tried in.
        let most = 5 * frames as u64 / 2;
        assert!(answer.is_err() && calls > 0);
        assert!(
            calls <= most,
            "{calls} calls for {} pages in use",
            frames / 2
        );
    }
}

#[test]
fn who_stands_still_is_waited_for_once() {
    const SPAN: FrameRange = FrameRange::new(0, 1024);
    let words = Bitmap::words(SPAN, Order::DEFAULT_MAX, Order::HUGE);
    let words: Vec<Word> = (0..words).map(|_| Word::new(0)).collect();
    let slots: Vec<Slot<Shared, CpuStash>> = (0..2).map(|_| Slot::new(CpuStash::new())).collect();
    let zones = [Zone::<Brickyard<'_, Here, Shared>>::new(
        ZoneKind::Normal,
        Here,
        Bitmap::new(SPAN, Order::DEFAULT_MAX, Order::HUGE, &words),
        Stash::new(&slots, StashSizes::DEFAULT),
        Tuning::LINUX,
    )];
    let zone = &zones[0];
    zone.add(SPAN).unwrap();
    CPU.set(0);
    let mut all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&PAGE).ok()).collect();
    CPU.set(1);
    zone.free(all.pop().unwrap(), Order::ZERO).unwrap();
    // Somebody stands still in the slot of CPU 1.
    core::mem::forget(slots[1].visit(|| ()).unwrap());
    CPU.set(0);
    LOOKS.set(0);
    assert!(zone.alloc(&PAGE).is_err());
    assert!(LOOKS.get() <= FEW, "{} waits of a zone", LOOKS.get());
    let node = [Node::new(0, &zones)];
    let hooks = Later::default();
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    LOOKS.set(0);
    assert!(nodes.alloc(0, &PAGE).is_err());
    assert!(
        LOOKS.get() <= u64::from(WAITS_MOST),
        "{} waits, while reclaim helps",
        LOOKS.get()
    );
    CPU.set(1);
    LOOKS.set(0);
    zone.free_bulk(&all[..255]).unwrap();
    assert!(
        LOOKS.get() <= FEW,
        "{} waits of a bulk free on that CPU",
        LOOKS.get()
    );
    let mut out = [Frame::new(0); 255];
    LOOKS.set(0);
    assert_eq!(zone.alloc_bulk(&PAGE, &mut out), Ok(255));
    assert!(
        LOOKS.get() <= FEW,
        "{} waits of a bulk request there",
        LOOKS.get()
    );
}

// ---- limits ----

#[test]
fn a_plan_whose_caches_hold_nothing_is_refused() {
    let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
    let memory = || vec![MaybeUninit::uninit(); 1 << 20].leak();
    let none = ZonePlan {
        magazines: 0,
        ..plan
    };
    let zone = Magazine2013::<OneCpu>::zone(&none, OneCpu, memory());
    assert!(matches!(zone, Err(PlanError::CacheSizes(_))), "{zone:?}");
    let mut lists = plan;
    lists.lists.batch = 0;
    let zone = List2007::<OneCpu>::zone(&lists, OneCpu, memory());
    assert!(matches!(zone, Err(PlanError::CacheSizes(_))), "{zone:?}");
}

#[test]
fn a_mark_near_the_largest_number() {
    CPU.set(0);
    let zone: &'static Zone<_> = zone::<Exclusive>(1024, 1);
    let node = [Node::new(0, core::slice::from_ref(zone))];
    let hooks = Later::default();
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let most = usize::MAX;
    zone.set_watermarks(
        Marks {
            min: most,
            low: most,
            high: most,
        },
        [0; ZoneKind::COUNT],
    );
    assert!(
        nodes
            .alloc(0, &Request::new(Order::new(4), Mobility::Movable))
            .is_err()
    );
}

// ---- others are asked again in each look ----

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static CHURN: Cell<Option<&'static Zone<Brickyard<'static, There, Exclusive>>>> = const { Cell::new(None) };
    static MASKED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug, Clone, Copy)]
struct There;
impl Platform for There {
    fn cpu(&self) -> usize {
        CPU.get()
    }
    fn pin(&self) -> usize {
        if let Some(zone) = CHURN.take() {
            let here = CPU.replace(2);
            let page = zone.alloc(&PAGE).unwrap();
            zone.free(page, Order::ZERO).unwrap();
            CPU.set(here);
            CHURN.set(Some(zone));
        }
        CPU.get()
    }
    // `Threads` waits for a second here, for a visitor that stands still.
    fn run_on(&self, cpu: usize, _: &mut dyn FnMut()) -> bool {
        ASKED.set(ASKED.get() + u64::from(cpu == 1));
        false
    }
}

#[test]
fn a_cpu_that_does_not_answer_is_asked_once() {
    let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 3);
    let memory = vec![MaybeUninit::uninit(); Brickyard::<There>::bytes(&plan)].leak();
    let zone: &'static _ = Box::leak(Box::new(
        Brickyard::<There>::zone(&plan, There, memory).unwrap(),
    ));
    zone.add(plan.span).unwrap();
    CPU.set(0);
    let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&PAGE).ok()).collect();
    for cpu in [1, 2] {
        CPU.set(cpu);
        zone.free(all[cpu], Order::ZERO).unwrap();
    }
    CPU.set(0);
    ASKED.set(0);
    CHURN.set(Some(zone));
    let answer = zone.alloc(&PAGE);
    CHURN.set(None);
    assert!(answer.is_err());
    assert_eq!(ASKED.get(), 1);
}

// ---- masks and interrupts ----

/// As its documentation has it: true with interrupts masked.
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
    use brickyard::design::Vanilla;
    use brickyard::front::{CpuLists, ListSizes, PerCpuLists};
    use brickyard::store::buddy::Buddy;
    use brickyard::store::frames::{FrameRecord, FrameTable};
    use brickyard::store::grouping::NoGrouping;
    const SPAN: FrameRange = FrameRange::new(0, 1024);
    let records: Vec<FrameRecord> = (0..1024).map(|_| FrameRecord::new()).collect();
    let slots: Vec<Slot<Shared, CpuLists>> = (0..1).map(|_| Slot::new(CpuLists::new())).collect();
    let zone = Zone::<Vanilla<'_, Masks, Shared>>::new(
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
