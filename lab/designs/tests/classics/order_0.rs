//! A request for one frame is refused only if nothing is free that it may have: for the older
//! designs, while other threads are preempted inside lists, and with frames in transit to a
//! magazine.
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use core::time::Duration;
use std::thread;

use brickyard::node::{Node, Nodes};
use brickyard::sync::{Shared, TicketLock};
use brickyard::watermark::Marks;
use brickyard::{AnyZone, FrameRange, Platform, ZoneKind};
use brickyard_designs::classics::front::PerCpuLists;
use brickyard_designs::classics::store::grouping::PageBlocks;
use brickyard_designs::classics::{LabPlan, Magazine2013, Planned, Zone};

use crate::classics::stopping;
use crate::threads;

use stopping::{Stopping, stop_at_the_next};
use threads::{
    InInterrupt, Numbered, PAGE, TWELVE, Visited, more_frames_than_users, waits_of_an_interrupt,
};

// ---- below a mark, with frames in transit ----

static STOPPED: AtomicBool = AtomicBool::new(false);
static WAITS: AtomicU64 = AtomicU64::new(0);
const GOES_ON: u64 = 100;

/// Stops until others have waited for a while.
fn wait_for_others() {
    STOPPED.store(true, SeqCst);
    while WAITS.load(SeqCst) < GOES_ON {
        thread::yield_now();
    }
}

struct Waits;

impl Platform for Waits {
    fn cpu(&self) -> usize {
        0
    }

    fn relax(&self) {
        // Who has waited long enough for the other to go on lets it, however busy the host is.
        if WAITS.fetch_add(1, SeqCst) < GOES_ON {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// All frames but a few are in transit to a magazine. Once they have arrived the zone is far above
/// its mark, so a request waits for them, with a mark or without.
#[test]
fn a_request_with_a_mark_waits_for_frames_in_transit() {
    const PLAN: LabPlan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 300), 1);
    type Stopped<'m> = Magazine2013<'m, Waits, Stopping>;
    let mut memory = vec![MaybeUninit::uninit(); Stopped::checked_bytes_for(&PLAN).unwrap()];
    let zones = [Stopped::by(&PLAN, Waits, &mut memory).unwrap()];
    zones[0].add(PLAN.span).unwrap();
    let marks = Marks {
        min: 4,
        low: 5,
        high: 6,
    };
    zones[0].watermarks().set(marks, [0; ZoneKind::COUNT]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let answer = thread::scope(|threads| {
        let refilling = threads.spawn(|| {
            stop_at_the_next(wait_for_others);
            nodes.alloc(0, &PAGE)
        });
        while !STOPPED.load(SeqCst) {
            thread::yield_now();
        }
        let answer = nodes.alloc(0, &PAGE);
        let waits = WAITS.swap(GOES_ON, SeqCst);
        refilling.join().unwrap().unwrap();
        (answer, waits)
    });
    // A request that waits finds all but one of them free in the magazine.
    nodes.drain();
    assert!(zones[0].free_frames() >= 298, "{zones:?}");
    assert!(answer.0.is_ok(), "{answer:?}: refused without a wait");
}

// ---- another CPU is inside a CPU's lists ----

#[test]
fn an_interrupt_does_not_wait_for_a_visitor_of_its_cpus_lists() {
    type Lists<'m> = Zone<'m, PageBlocks<'m>, PerCpuLists<'m, Visited>, TicketLock, InInterrupt>;
    let plan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
    let mut memory = vec![MaybeUninit::uninit(); Lists::checked_bytes_for(&plan).unwrap()];
    let zone = Lists::by(&plan, InInterrupt, &mut memory).unwrap();
    zone.add(TWELVE).unwrap();
    assert_eq!(waits_of_an_interrupt(&zone), 0);
}

#[test]
fn no_request_is_refused_with_shared_lists_and_more_frames_than_users() {
    type Lists<'m> = Zone<'m, PageBlocks<'m>, PerCpuLists<'m, Shared>, TicketLock, Numbered>;
    let plan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 4);
    let mut memory = vec![MaybeUninit::uninit(); Lists::checked_bytes_for(&plan).unwrap()];
    let zone = Lists::by(&plan, Numbered, &mut memory).unwrap();
    zone.add(TWELVE).unwrap();
    more_frames_than_users(&zone);
}

/// Requests wait for magazines at their locks.
#[test]
fn no_request_is_refused_with_magazines_and_more_frames_than_users() {
    type Mags<'m> = Magazine2013<'m, Numbered>;
    let plan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 4);
    let mut memory = vec![MaybeUninit::uninit(); Mags::checked_bytes_for(&plan).unwrap()];
    let zone = Mags::by(&plan, Numbered, &mut memory).unwrap();
    zone.add(TWELVE).unwrap();
    more_frames_than_users(&zone);
}
