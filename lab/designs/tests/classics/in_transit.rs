//! Frames in transit between a magazine and the store are not lost to others: a request waits for
//! them, through a zone and through nodes. But the wait is bounded, since the CPU that moves them
//! may be stalled.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use brickyard::node::{Node, Nodes};
use brickyard::patience::LOOKS_MOST;
use brickyard::sync::PATIENCE;
use brickyard::{
    AnyZone, Context, Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind,
};
use brickyard_designs::classics::{LabPlan, Magazine2013, Planned};

use crate::classics::stopping;

use stopping::{Stopping, stop_at_the_next};

/// The state of one test: leaked, since the locks find it by thread.
#[derive(Debug)]
struct Scene {
    stopped: AtomicU64,
    /// The stopped thread continues once others have waited this often.
    patience: u64,
    waits: AtomicU64,
}

thread_local! {
    static SCENE: Cell<Option<&'static Scene>> = const { Cell::new(None) };
}

fn scene() -> &'static Scene {
    SCENE.get().expect("each thread of a test has its scene")
}

/// Stops until others have waited `patience` times.
fn wait_for_others() {
    scene().stopped.store(1, Ordering::SeqCst);
    while scene().waits.load(Ordering::SeqCst) < scene().patience {
        thread::yield_now();
    }
}

struct Machine;

impl Platform for Machine {
    fn cpu(&self) -> usize {
        0
    }

    fn relax(&self) {
        let waits = scene().waits.fetch_add(1, Ordering::SeqCst);
        if waits >= scene().patience {
            // The other may go on, and shall, however busy the host is.
            thread::sleep(Duration::from_micros(100));
        } else if scene().patience < u64::MAX {
            // If no thread will continue, yielding is useless.
            thread::yield_now();
        }
    }
}

const PLAN: LabPlan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 300), 1);
type Stopped<'m> = Magazine2013<'m, Machine, Stopping>;

/// Stops one thread with all frames taken from the store and not yet in a magazine, until others
/// have waited `patience` times. Returns what two requests get meanwhile, one through the nodes and
/// one through the zone, and how often they waited.
fn beside_a_stopped_refill(patience: u64) -> ([Option<Frame>; 2], u64) {
    let scene: &'static Scene = Box::leak(Box::new(Scene {
        stopped: AtomicU64::new(0),
        patience,
        waits: AtomicU64::new(0),
    }));
    SCENE.set(Some(scene));
    let mut memory = vec![MaybeUninit::uninit(); Stopped::checked_bytes_for(&PLAN).unwrap()];
    let zones = [Stopped::by(&PLAN, Machine, &mut memory).unwrap()];
    zones[0].add(PLAN.span).unwrap();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let page = Request::page(Mobility::Movable);
    let (first, others, waits) = thread::scope(|threads| {
        let refilling = threads.spawn(|| {
            SCENE.set(Some(scene));
            stop_at_the_next(wait_for_others);
            nodes.alloc(0, &page)
        });
        while scene.stopped.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        // No assertion here: a failure would wait for the other thread.
        let there = (zones[0].free_frames(), zones[0].cached_frames());
        // An interrupt does not wait.
        let interrupt = nodes.alloc(0, &page.in_context(Context::Interrupt));
        let before = (there, interrupt.ok(), scene.waits.load(Ordering::SeqCst));
        let others = [nodes.alloc(0, &page).ok(), zones[0].alloc(&page).ok()];
        let waits = scene.waits.load(Ordering::SeqCst);
        // Now it continues in any case.
        scene.waits.store(patience, Ordering::SeqCst);
        let first = refilling.join().unwrap().unwrap();
        assert_eq!(before, ((0, 0), None, 0));
        (first, others, waits)
    });
    let mut frames: Vec<Frame> = others.into_iter().flatten().chain([first]).collect();
    let taken = frames.len();
    frames.sort_unstable();
    frames.dedup();
    assert_eq!(frames.len(), taken);
    assert_eq!(nodes.check().unwrap().allocated, taken);
    // Nothing was lost in transit.
    for &frame in &frames {
        nodes.free(frame, Order::ZERO).unwrap();
    }
    nodes.drain();
    assert_eq!(nodes.check().unwrap().free, PLAN.span.len());
    (others, waits)
}

#[test]
fn a_request_waits_for_frames_in_transit() {
    let (others, waits) = beside_a_stopped_refill(100);
    assert!(others.iter().all(Option::is_some), "{others:?}");
    assert!(waits >= 100);
}

#[test]
fn a_request_does_not_wait_for_a_stalled_cpu() {
    let (others, waits) = beside_a_stopped_refill(u64::MAX);
    assert_eq!(others, [None, None]);
    // Through the nodes twice, before reclaim and after; through the zone once.
    assert!(waits <= 3 * u64::from(LOOKS_MOST * PATIENCE), "{waits}");
}
