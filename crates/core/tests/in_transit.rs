//! Frames on their way between a magazine and the store are not lost to others: a request waits for them, through a zone and through nodes.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use brickyard::design::Magazine2013;
use brickyard::node::{Node, Nodes};
use brickyard::sync::{RawLock, TicketLock};
use brickyard::zone::ZonePlan;
use brickyard::{Context, Frame, FrameRange, Mobility, Platform, Request, ZoneKind};

thread_local! {
    /// Does this thread stop at the next magazine that it tries?
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

static STOPPED: AtomicBool = AtomicBool::new(false);
static GO_ON: AtomicBool = AtomicBool::new(false);

/// A ticket lock at which a thread can be stopped before it takes it.
struct Stopping(TicketLock);

// SAFETY: all is passed on to a lock that keeps the contract; stopping before taking it changes nothing.
unsafe impl RawLock for Stopping {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
    }

    fn try_lock(&self) -> bool {
        if STOPS.take() {
            STOPPED.store(true, Ordering::SeqCst);
            while !GO_ON.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this lock, and the lock inside is the same one.
        unsafe { self.0.unlock() }
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

struct Machine;

impl Platform for Machine {
    fn cpu(&self) -> usize {
        0
    }

    fn relax(&self) {
        thread::yield_now();
    }
}

const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 300), 1);
type Stopped<'m> = Magazine2013<'m, Machine, Stopping>;

/// One thread is stopped with all frames taken from the store and not yet in a magazine. Another one's request must not fail for that.
#[test]
fn a_request_waits_for_frames_that_are_on_their_way() {
    let mut memory = vec![MaybeUninit::uninit(); Stopped::bytes(&PLAN)];
    let zones = [Stopped::zone(&PLAN, Machine, &mut memory).unwrap()];
    zones[0].add(PLAN.span).unwrap();
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let page = Request::page(Mobility::Movable);
    thread::scope(|scope| {
        let refilling = scope.spawn(|| {
            STOPS.set(true);
            nodes.alloc(0, &page)
        });
        while !STOPPED.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        assert_eq!((zones[0].free_frames(), zones[0].cached_frames()), (0, 0));
        // An interrupt waits for nobody.
        assert!(
            nodes
                .alloc(0, &page.in_context(Context::Interrupt))
                .is_err()
        );
        let waiting: Vec<thread::ScopedJoinHandle<'_, Result<Frame, _>>> = vec![
            scope.spawn(|| nodes.alloc(0, &page)),
            scope.spawn(|| zones[0].alloc(&page)),
        ];
        thread::sleep(Duration::from_millis(20));
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        GO_ON.store(true, Ordering::SeqCst);
        let first = refilling.join().unwrap().unwrap();
        let mut frames = vec![first];
        frames.extend(
            waiting
                .into_iter()
                .map(|thread| thread.join().unwrap().unwrap()),
        );
        frames.sort_unstable();
        frames.dedup();
        assert_eq!(frames.len(), 3);
    });
    assert_eq!(nodes.check().unwrap().allocated, 3);
}
