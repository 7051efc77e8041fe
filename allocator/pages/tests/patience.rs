//! How long one request waits for others in all, and how often it asks: whoever stands still costs
//! it that once, not at each of its looks.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use brickyard::bitmap::Bitmap;
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::patience::WAITS_MOST;
use brickyard::pressure::{ContiguousRequest, Migrate, Migration, Need, Reclaim, alloc_contiguous};
use brickyard::stash::{CpuStash, Stash, StashSizes};
use brickyard::sync::{AtomicU8, AtomicU64 as Word, Exclusive, PATIENCE, Shared, Slot, SlotAccess};
use brickyard::watermark::Marks;
use brickyard::{
    AnyZone, Frame, FrameRange, Mobility, Order, Platform, Request, Zone, ZoneKind, ZonePlan,
};

use crate::meanwhile;

use meanwhile::{CPU, Here, LOOKS, OTHER, PAGE};

/// Waits for one who stands still, and a few thousand for looks that find something on its way.
const FEW: u64 = 2 * PATIENCE as u64;

fn zone<A: SlotAccess>(frames: usize, cpus: usize) -> &'static Zone<'static, Here, A> {
    let mut plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, frames), cpus);
    // More than a share of so little.
    plan.stash = StashSizes::LARGEST;
    let memory = vec![MaybeUninit::uninit(); Zone::<Here, A>::bytes(&plan)].leak();
    let zone = Zone::new(&plan, Here, memory).unwrap();
    zone.add(plan.span).unwrap();
    Box::leak(Box::new(zone))
}

#[test]
fn below_a_mark_what_was_freed_to_a_cache_meanwhile_is_not_asked() {
    let mut refused = Vec::new();
    for moment in 0..8 {
        let zone = zone::<Shared>(1024, 3);
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
        zone.watermarks().set(
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
                if zone.cached_frames() == 0 {
                    // The request has it in the store already, and must find it there.
                    return;
                }
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
        let zone = zone::<Shared>(frames, 1);
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
        // Each of the pages in use stays, in each of five passes over the only range it is tried
        // in.
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
    let classes = 0..Bitmap::classes(SPAN, Order::HUGE);
    let classes: Vec<_> = classes.map(|_| AtomicU8::new(0)).collect();
    let slots: Vec<Slot<Shared, CpuStash>> = (0..2).map(|_| Slot::new(CpuStash::new())).collect();
    let zones = [Zone::<Here, Shared>::of(
        ZoneKind::Normal,
        Here,
        Bitmap::new(SPAN, Order::DEFAULT_MAX, Order::HUGE, &words, &classes),
        Stash::new(&slots, StashSizes::LARGEST),
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

#[test]
fn a_mark_near_the_largest_number() {
    CPU.set(0);
    let zone = zone::<Exclusive>(1024, 1);
    let node = [Node::new(0, core::slice::from_ref(zone))];
    let hooks = Later::default();
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let most = usize::MAX;
    zone.watermarks().set(
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
    static CHURN: Cell<Option<&'static Zone<'static, There>>> = const { Cell::new(None) };
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
    let memory = vec![MaybeUninit::uninit(); Zone::<There>::bytes(&plan)].leak();
    let zone: &'static _ = Box::leak(Box::new(Zone::<There>::new(&plan, There, memory).unwrap()));
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
