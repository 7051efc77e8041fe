//! Support for the rule tests of the classic designs: a lock that detects misuse, and zones of
//! these designs in leaked memory. Support for tests of any zone comes from the default's tests.

#![allow(dead_code, reason = "each test binary uses a part of it")]

#[path = "../../../../../allocator/pages/tests/support/mod.rs"]
pub(crate) mod any_zone;

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

pub(crate) use any_zone::*;
use brickyard::AnyZone;
use brickyard::sync::RawLock;
use brickyard_designs::classics::front::{Front, Magazines, PerCpuLists};
use brickyard_designs::classics::store::grouping::{Grouping, PageBlocks};
use brickyard_designs::classics::{Contended, LabLock, LabPlan, Placed, Planned, Zone};

// ---- the lock ----

/// Counters and settings of all locks of one class on a test's thread.
#[derive(Debug)]
struct Watch {
    held: Cell<usize>,
    holds: Cell<usize>,
    nested: Cell<usize>,
    contended: Cell<bool>,
    refusals: Cell<usize>,
}

impl Watch {
    const fn new() -> Self {
        Self {
            held: Cell::new(0),
            holds: Cell::new(0),
            nested: Cell::new(0),
            contended: Cell::new(false),
            refusals: Cell::new(0),
        }
    }
}

thread_local! {
    // A test runs on a thread of its own, so tests do not see each other.
    static WATCHES: [Watch; 2] = const { [Watch::new(), Watch::new()] };
}

const ZONES: usize = 0;
const MAGAZINES: usize = 1;

/// A lock for one thread: it panics where a real one would hang, when it is released twice, and
/// when a magazine's lock is taken under the zone's. It counts its holds, and reports contention,
/// or fails a try, as the test sets.
#[derive(Debug)]
pub(crate) struct Strict<const CLASS: usize> {
    taken: AtomicBool,
}

/// The lock of a zone.
pub(crate) type ZoneLock = Strict<ZONES>;
/// The lock of a magazine.
pub(crate) type MagazineLock = Strict<MAGAZINES>;

impl<const CLASS: usize> Strict<CLASS> {
    fn was_taken() {
        WATCHES.with(|watches| {
            let zone_first = CLASS == MAGAZINES && watches[ZONES].held.get() > 0;
            assert!(!zone_first, "lock order: a magazine under the zone's lock");
            let watch = &watches[CLASS];
            if CLASS == ZONES && watches[MAGAZINES].held.get() > 0 {
                watch.nested.set(watch.nested.get() + 1);
            }
            watch.held.set(watch.held.get() + 1);
            LOCKS_HELD.set(LOCKS_HELD.get() + 1);
            watch.holds.set(watch.holds.get() + 1);
        });
    }

    /// Returns how often a zone's lock was taken under a magazine's.
    pub(crate) fn nested() -> usize {
        WATCHES.with(|watches| watches[CLASS].nested.get())
    }

    /// Returns how many locks of this class are held.
    pub(crate) fn held() -> usize {
        WATCHES.with(|watches| watches[CLASS].held.get())
    }

    /// Runs `work`; returns how often a lock of this class was taken meanwhile, and the result.
    pub(crate) fn holds_during<R>(work: impl FnOnce() -> R) -> (usize, R) {
        let holds = || WATCHES.with(|watches| watches[CLASS].holds.get());
        let before = holds();
        let result = work();
        (holds() - before, result)
    }

    /// Runs `work` while every lock of this class reports that another CPU waits for it.
    pub(crate) fn while_contended<R>(work: impl FnOnce() -> R) -> R {
        let set = |contended| WATCHES.with(|watches| watches[CLASS].contended.set(contended));
        set(true);
        let result = work();
        set(false);
        result
    }

    /// Makes the next `times` tries to take a lock of this class fail; a call that waits still gets
    /// it.
    pub(crate) fn refuse_tries(times: usize) {
        WATCHES.with(|watches| watches[CLASS].refusals.set(times));
    }
}

// SAFETY: a caller comes out of `lock` or a true `try_lock` only after its own swap turned `taken`
// from false to true, and only `unlock` turns it back; acquire and release order what happens in
// between.
unsafe impl<const CLASS: usize> RawLock for Strict<CLASS> {
    const UNLOCKED: Self = Self {
        taken: AtomicBool::new(false),
    };

    fn lock(&self, _relax: impl FnMut()) {
        // Acquire: pairs with the release in `unlock`.
        let taken = self.taken.swap(true, Ordering::Acquire);
        assert!(!taken, "deadlock: the lock is held already");
        Self::was_taken();
    }

    fn try_lock(&self) -> bool {
        let refused = WATCHES.with(|watches| {
            let left = watches[CLASS].refusals.get();
            watches[CLASS].refusals.set(left.saturating_sub(1));
            left > 0
        });
        // Acquire: as above.
        if refused || self.taken.swap(true, Ordering::Acquire) {
            return false;
        }
        Self::was_taken();
        true
    }

    unsafe fn unlock(&self) {
        // Release: pairs with the acquire in `lock` and `try_lock`.
        let taken = self.taken.swap(false, Ordering::Release);
        assert!(taken, "unlocked twice");
        WATCHES.with(|watches| {
            let watch = &watches[CLASS];
            watch.held.set(watch.held.get() - 1);
            LOCKS_HELD.set(LOCKS_HELD.get() - 1);
        });
    }

    fn is_locked(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}

impl<const CLASS: usize> Contended for Strict<CLASS> {
    fn is_contended(&self) -> bool {
        WATCHES.with(|watches| watches[CLASS].contended.get())
    }
}

// ---- zones ----

/// Page blocks, their records leaked.
pub(crate) type Blocks = PageBlocks<'static>;
/// Per-CPU lists, their slots leaked.
pub(crate) type Lists<A> = PerCpuLists<'static, A>;
/// Magazines, leaked, with locks that detect misuse.
pub(crate) type Mags = Magazines<'static, MagazineLock>;
/// A zone of these parts with a strict lock.
pub(crate) type Parts<G, F, L = ZoneLock> = Zone<'static, G, F, L, &'static Cpus>;

/// Returns a plan with orders up to 7 and page blocks of order 6, small enough to count by hand,
/// with two CPUs. Half a block's order is 3.
pub(crate) const fn small(frames: usize) -> LabPlan {
    LabPlan::of(any_zone::small(frames))
}

/// Returns a plan with the orders and page blocks of Linux.
pub(crate) const fn linux(frames: usize) -> LabPlan {
    LabPlan::of(any_zone::linux(frames))
}

/// Makes a zone by `plan` without memory.
pub(crate) fn empty<G, F, L>(plan: &LabPlan, cpus: &'static Cpus) -> Parts<G, F, L>
where
    G: Grouping + Placed<'static>,
    F: Front<G, L, &'static Cpus> + Placed<'static>,
    L: LabLock,
{
    let bytes = Parts::<G, F, L>::checked_bytes_for(plan).expect("a plan within the limits");
    let memory = leaked(bytes);
    Zone::by(plan, cpus, memory).expect("as much memory as it needs")
}

/// Makes a zone by `plan` with all of its span free.
pub(crate) fn full<G, F, L>(plan: &LabPlan, cpus: &'static Cpus) -> Parts<G, F, L>
where
    G: Grouping + Placed<'static>,
    F: Front<G, L, &'static Cpus> + Placed<'static>,
    L: LabLock,
{
    let zone = empty(plan, cpus);
    assert_eq!(zone.add(plan.span), Ok(plan.span.len()));
    zone
}
