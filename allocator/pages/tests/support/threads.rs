//! Threads as CPUs, slots that a visitor stays inside, and what both are asked for: of zones of
//! every make with caches per CPU.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard::sync::{Shared, SlotAccess};
use brickyard::{AnyZone, Context, FrameRange, Mobility, Order, Platform, Request};

pub(crate) const PAGE: Request = Request::page(Mobility::Movable);

/// So many frames are more than four users have.
pub(crate) const TWELVE: FrameRange = FrameRange::new(0, 12);

thread_local! {
    /// The CPU that this thread is.
    pub(crate) static CPU: Cell<usize> = const { Cell::new(0) };
    /// How often somebody who wanted into a slot has waited.
    pub(crate) static WAITED: Cell<u32> = const { Cell::new(0) };
    /// How often at most.
    pub(crate) static WAITED_MOST: Cell<u32> = const { Cell::new(u32::MAX) };
    /// Up to how many waits somebody is inside a slot.
    pub(crate) static INSIDE_UNTIL: Cell<u32> = const { Cell::new(0) };
    /// Whether the slot at an address is shut for its owner, or for a visitor.
    pub(crate) static IS_SHUT: Cell<fn(Comes, usize) -> bool> = const { Cell::new(visited) };
}

/// Threads as CPUs, by a number that each has set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered;

impl Platform for Numbered {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    /// Waits like a thread: a while by spinning, then by letting others run.
    fn relax(&self) {
        WAITED.set(WAITED.get() + 1);
        assert!(WAITED.get() <= WAITED_MOST.get(), "it waits without end");
        match WAITED.get() % 64 {
            0 => thread::yield_now(),
            _ => brickyard::sync::spin_hint(),
        }
    }
}

/// Who comes to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    Owner,
    Visitor,
}

/// A visitor is inside of each slot, for its owner too.
fn visited(_: Comes, _: usize) -> bool {
    WAITED.get() < INSIDE_UNTIL.get()
}

/// A slot that is shut when the test says so.
#[derive(Debug)]
pub(crate) struct Visited(Shared);

// SAFETY: each call is passed on to slots that keep the contract; more is refused than they refuse.
unsafe impl SlotAccess for Visited {
    const EMPTY: Self = Self(Shared::EMPTY);
    const LENDS: bool = true;

    fn try_enter(&self) -> bool {
        !IS_SHUT.get()(Comes::Owner, core::ptr::from_ref(self).addr()) && self.0.try_enter()
    }

    fn try_visit(&self) -> bool {
        !IS_SHUT.get()(Comes::Visitor, core::ptr::from_ref(self).addr()) && self.0.try_visit()
    }

    unsafe fn leave(&self) {
        // SAFETY: the caller is inside, and the slot inside is the same one.
        unsafe { self.0.leave() }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct InInterrupt;

impl Platform for InInterrupt {
    fn cpu(&self) -> usize {
        0
    }

    fn in_interrupt(&self) -> bool {
        true
    }

    fn relax(&self) {
        WAITED.set(WAITED.get() + 1);
    }
}

/// How often an interrupt waits for the visitor of its CPU's slot, when it asks for a page and
/// frees it.
pub(crate) fn waits_of_an_interrupt(zone: &impl AnyZone) -> u32 {
    CPU.set(0);
    WAITED.set(0);
    INSIDE_UNTIL.set(u32::MAX);
    let page = zone.alloc(&PAGE.in_context(Context::Interrupt)).unwrap();
    zone.free(page, Order::ZERO).unwrap();
    while zone.alloc(&PAGE.in_context(Context::Interrupt)).is_ok() {}
    INSIDE_UNTIL.set(0);
    WAITED.get()
}

/// Each of four CPUs has at most one frame at a time, and there are more frames than CPUs: nobody
/// is ever refused, though threads are preempted inside their slots, for longer than a thousand
/// pauses of a CPU.
pub(crate) fn more_frames_than_users(zone: &impl AnyZone<Platform = Numbered>) {
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let user = |cpu: usize| {
        CPU.set(cpu);
        let (mut served, mut refused) = (0, 0);
        while start.elapsed() < Duration::from_secs(4) && !stop.load(SeqCst) {
            match zone.alloc(&PAGE) {
                Ok(page) => {
                    served += 1;
                    zone.free(page, Order::ZERO).unwrap();
                }
                Err(_) => {
                    refused += 1;
                    stop.store(true, SeqCst);
                }
            }
        }
        (served, refused)
    };
    let counts: Vec<(u64, u64)> = thread::scope(|scope| {
        let user = &user;
        let users: Vec<_> = (0..4).map(|cpu| scope.spawn(move || user(cpu))).collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    });
    let after = start.elapsed();
    let refused = counts.iter().any(|&(_, refused)| refused > 0);
    assert!(!refused, "served and refused: {counts:?}, {after:?}");
}
