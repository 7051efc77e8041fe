//! Every schedule of two or three threads on a tiny zone, as loom explores them: magazines, per-CPU
//! lists, drains, bulk policies.
//!
//! Proved, for these sizes, within the preemption bounds given below and for every outcome that the
//! memory orderings allow:
//!
//! - a frame never has two owners, and an owner reads what the owner before wrote to the page;
//! - words guarded by a lock or a slot are accessed by one thread at a time (loom reports any
//!   unordered access to a guarded word);
//! - nothing is lost: after a drain all frames are free, and every invariant of the zone holds;
//! - `order-0-succeeds`: a request is refused only if no frame was free, wherever other CPUs hold
//!   or move them;
//! - every hold of a lock ends, on each path of each bulk policy.
//!
//! The last section breaks locks and slots on purpose, and expects loom to report it.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use brickyard::sync::{AtomicU32, Exclusive, GuardedU32, RawLock, Shared, TicketLock};
use brickyard::{
    AnyZone, Context, Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind,
};
use brickyard_designs::classics::bulk::{Batch, BulkPolicy};
use brickyard_designs::classics::front::{
    Direct, ListSizes, MagazineSizes, Magazines, PerCpuLists,
};
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{Contended, LabPlan, LabZone, Linux618, Planned, Zone};
use loom::sync::atomic::AtomicBool;
use loom::thread::{self, JoinHandle};

// ---- the machine ----

/// How often a thread retries before loom abandons the schedule.
///
/// Two threads that wait for a third could retry in turn forever. A failed retry changes nothing,
/// so the behaviour after many is that after one. More than one, because a thread waits for several
/// locks.
const MAX_RETRIES: usize = 4;

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static IN_INTERRUPT: Cell<bool> = Cell::new(false);
    static RETRIES: Cell<usize> = Cell::new(0);
}

/// Each modelled thread runs on the CPU that it sets with [`move_to`].
#[derive(Debug, Clone, Copy)]
struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn in_interrupt(&self) -> bool {
        IN_INTERRUPT.with(Cell::get)
    }

    fn relax(&self) {
        let retries = RETRIES.with(|retries| retries.replace(retries.get() + 1));
        if retries >= MAX_RETRIES {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

fn move_to(cpu: usize) {
    CPU.with(|own| own.set(cpu));
}

/// Starts a thread on `cpu`.
fn on_cpu<T: 'static>(cpu: usize, work: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    let other = thread::spawn(move || {
        move_to(cpu);
        work()
    });
    go_second();
    other
}

type Behind<F, L = TicketLock> = Zone<'static, NoGrouping, F, L, Modelled>;
type Bare = Behind<Direct>;
type Magazined = Behind<Magazines<'static, TicketLock>>;
type Listed = Behind<PerCpuLists<'static, Shared>>;
/// A batch of these is one frame, and a page set holds up to four.
type Paged = Linux618<'static, Modelled, Shared>;

/// A zone that the modelled threads can use.
trait Built: Planned<'static, Platform = Modelled> + 'static {}

impl<Z: Planned<'static, Platform = Modelled> + 'static> Built for Z {}

/// Returns a plan of two or four frames, with blocks of up to two, and caches that fill and empty
/// all the time.
const fn plan(frames: usize) -> LabPlan {
    let batch = Batch { least: 1, most: 2 };
    let mut plan = LabPlan::new(ZoneKind::Normal, FrameRange::new(0, frames), 3);
    plan.zone.max_order = Order::new(1);
    plan.zone.page_block_order = Order::new(1);
    plan.magazines = 1;
    plan.lists = ListSizes { batch: 1, high: 2 };
    plan.magazine = MagazineSizes {
        limit: 2,
        refill: batch,
        drain: batch,
    };
    plan
}

const PAGE: Request = Request::page(Mobility::Movable);

/// The zone of one run of a model, and the threads' record of its frames.
struct World<Z: AnyZone> {
    zone: Z,
    // By frame: whether it has an owner. Two owners at once are detected here.
    owned: Vec<AtomicBool>,
    // By frame, the page itself: an owner that does not read what the one before wrote is detected
    // here.
    pages: Vec<GuardedU32>,
}

impl<Z: Built> World<Z> {
    /// Makes a zone with all its memory free, every atomic word of it accessed once.
    fn new(plan: &LabPlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let frames = plan.span.len();
        let world = Self {
            zone: Z::by(plan, Modelled, memory).unwrap(),
            owned: (0..frames).map(|_| AtomicBool::new(false)).collect(),
            pages: (0..frames).map(|_| GuardedU32::new(0)).collect(),
        };
        world.zone.add(plan.span).unwrap();
        // Caches are filled and emptied, and a request that cannot be served goes through every lock
        // and every count.
        let all: Vec<_> = (0..frames).map(|_| world.take()).collect();
        assert_eq!(world.try_take(&PAGE), None);
        for frame in all {
            world.give(frame);
        }
        world.zone.drain();
        world
    }

    /// Takes a block, if there is one; checks that no frame of it has another owner.
    fn try_take(&self, request: &Request) -> Option<Frame> {
        let first = self.zone.alloc(request).ok()?;
        for frame in FrameRange::of_block(first, request.order).frames() {
            // Relaxed: the test must not add an ordering that the allocator lacks.
            let taken = self.owned[frame.number()].swap(true, Ordering::Relaxed);
            assert!(!taken, "{frame} has two owners");
            self.write_to(frame);
        }
        Some(first)
    }

    /// Takes a frame; there must be one.
    fn take(&self) -> Frame {
        self.try_take(&PAGE)
            .expect("order-0-succeeds: a frame is free")
    }

    fn write_to(&self, frame: Frame) {
        let page = &self.pages[frame.number()];
        page.set(page.get() + 1);
    }

    fn disown(&self, frame: Frame) {
        self.write_to(frame);
        // Relaxed: as above.
        self.owned[frame.number()].store(false, Ordering::Relaxed);
    }

    fn give_block(&self, first: Frame, order: Order) {
        for frame in FrameRange::of_block(first, order).frames() {
            self.disown(frame);
        }
        self.zone.free(first, order).unwrap();
    }

    fn give(&self, frame: Frame) {
        self.give_block(frame, Order::ZERO);
    }

    fn take_and_give(&self) {
        let frame = self.take();
        self.give(frame);
    }

    /// Puts so many frames into the caches of the caller's CPU.
    fn cache_some(&self, frames: usize) {
        let taken: Vec<_> = (0..frames).map(|_| self.take()).collect();
        for frame in taken {
            self.give(frame);
        }
    }

    /// Puts all frames into the caches of the caller's CPU.
    fn cache_all(&self) {
        self.cache_some(self.owned.len());
        assert_eq!(self.zone.free_frames(), 0, "the caches are too small");
    }

    /// Checks, when everything was freed, that nothing is lost, in transit or held.
    fn finish(&self) {
        let frames = self.owned.len();
        self.zone.drain();
        let census = self.zone.check().unwrap();
        assert_eq!(census.free, frames, "{census:?}");
        assert_eq!(self.zone.free_frames(), frames);
        let all: Vec<_> = (0..frames).map(|_| self.take()).collect();
        // This would wait forever for a move that had not ended.
        assert_eq!(self.try_take(&PAGE), None);
        for frame in all {
            self.disown(frame);
        }
    }
}

std::thread_local! {
    // Whether a started thread runs before its starter, for the model on this system thread: loom's
    // threads are coroutines of it.
    static SWAPPED: Cell<bool> = const { Cell::new(false) };
}

/// Yields to a new thread in the second run of a model. Loom remembers one last access per word, so
/// that a thread which reads before it writes hides another thread's earlier read. So each model
/// runs twice: with the starter of a thread going on first, and with the new thread first.
fn go_second() {
    if SWAPPED.get() {
        thread::yield_now();
    }
}

/// Models with more schedules than this have three threads, and run in one order only.
const MANY: usize = 50_000;

/// Runs `model` on a new zone in every schedule; with a bound, in those with at most that many
/// preemptions. `LOOM_MAX_PREEMPTIONS` overrides the bound.
///
/// The bounds in this file are the highest that let the whole of it run in two minutes; a lower one
/// leaves out schedules with more preemptions, not longer ones.
fn explore<Z: Built>(
    name: &str,
    bound: impl Into<Option<usize>>,
    plan: LabPlan,
    model: impl Fn(&'static World<Z>) + Clone + Sync + Send + 'static,
) {
    let bound = bound.into();
    let mut most = 0;
    for swapped in [false, true] {
        SWAPPED.set(swapped);
        let start = std::time::Instant::now();
        let schedules = Arc::new(AtomicUsize::new(0));
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(bound);
        builder.max_branches = 20_000;
        let counted = Arc::clone(&schedules);
        let model = model.clone();
        builder.check(move || {
            // Relaxed: a word outside the model, of one system thread.
            counted.fetch_add(1, Ordering::Relaxed);
            let model = model.clone();
            // A zone is large, and the stack on which loom runs this closure is not. In words.
            let first = thread::Builder::new().stack_size(1 << 15);
            let first = first.spawn(move || in_new_world(&plan, model));
            first.unwrap().join().unwrap();
        });
        let schedules = schedules.load(Ordering::Relaxed);
        let bound = builder.preemption_bound;
        let turn = if swapped { ", swapped" } else { "" };
        println!(
            "{name}{turn}: {schedules} schedules, preemption bound {bound:?} {:?}",
            start.elapsed()
        );
        most = most.max(schedules);
        if most > MANY {
            break;
        }
    }
    assert!(most > 1, "{name}: one schedule proves nothing");
}

fn in_new_world<Z: Built>(plan: &LabPlan, model: impl Fn(&'static World<Z>)) {
    let memory: Box<[MaybeUninit<u8>]> =
        vec![MaybeUninit::uninit(); Z::checked_bytes_for(plan).unwrap()].into();
    let memory = Box::into_raw(memory);
    // SAFETY: made above, not shared yet, and given back below, after the zone in it.
    let world = World::<Z>::new(plan, unsafe { &mut *memory });
    let world = Box::into_raw(Box::new(world));
    {
        // SAFETY: made above, and given back below; a model joins its threads before it returns.
        let world = unsafe { &*world };
        model(world);
        world.finish();
    }
    // SAFETY: both come from `Box::into_raw`; the threads that shared them are gone, and the zone
    // goes before its memory.
    unsafe {
        drop(Box::from_raw(world));
        drop(Box::from_raw(memory));
    }
}

// ---- one owner at a time ----

/// Returns a model in which the caller on CPU 0 and a thread on `cpu` each take a frame and free
/// it.
fn two_users<Z: Built>(cpu: usize) -> impl Fn(&'static World<Z>) + Clone + Sync + Send {
    move |world| {
        let other = on_cpu(cpu, || world.take_and_give());
        world.take_and_give();
        other.join().unwrap();
    }
}

/// As [`plan`], with two magazines: CPUs 0 and 1 prefer the first, 2 and 3 the second.
const fn two_magazines(frames: usize) -> LabPlan {
    let mut plan = plan(frames);
    plan.magazines = 2;
    plan
}

#[test]
fn one_owner_straight_from_the_zone() {
    explore::<Bare>("direct", None, plan(4), two_users(1));
}

#[test]
fn one_owner_behind_magazines() {
    explore::<Magazined>("one magazine", 2, plan(4), two_users(1));
    explore::<Magazined>("two magazines", 2, two_magazines(4), two_users(2));
}

#[test]
fn one_owner_behind_cpu_lists() {
    explore::<Listed>("CPU lists", None, plan(4), two_users(1));
}

#[test]
fn one_owner_behind_page_sets() {
    explore::<Paged>("page sets", 3, plan(4), two_users(1));
    // Both on one CPU, as a thread and an interrupt: who finds the page set entered goes past it.
    explore::<Paged>("page set, entered twice", 3, plan(4), two_users(0));
}

/// Splits and merges blocks of two next to frames that the caches take and give back.
fn blocks_beside_pages<Z: Built>(name: &str, bound: Option<usize>) {
    explore::<Z>(name, bound, plan(4), |world| {
        let other = on_cpu(1, || world.take_and_give());
        let pair = Order::new(1);
        if let Some(first) = world.try_take(&Request::new(pair, Mobility::Movable)) {
            world.give_block(first, pair);
        }
        other.join().unwrap();
    });
}

#[test]
fn blocks_beside_pages_have_one_owner() {
    blocks_beside_pages::<Magazined>("magazine, blocks", Some(3));
    blocks_beside_pages::<Listed>("CPU lists, blocks", None);
    blocks_beside_pages::<Paged>("page sets, blocks", Some(3));
}

/// An interrupt takes and frees without waiting for a magazine.
#[test]
fn interrupts_bypass_the_magazines() {
    explore::<Magazined>("magazine, interrupt", 3, plan(4), |world| {
        let interrupt = on_cpu(1, || {
            IN_INTERRUPT.with(|inside| inside.set(true));
            if let Some(frame) = world.try_take(&PAGE.in_context(Context::Interrupt)) {
                world.give(frame);
            }
        });
        world.take_and_give();
        interrupt.join().unwrap();
    });
}

/// Exclusive lists share nothing: no other CPU's drain or request accesses them.
#[test]
fn exclusive_lists_are_left_alone() {
    type Own = Behind<PerCpuLists<'static, Exclusive>>;
    explore::<Own>("exclusive CPU lists", 2, plan(4), |world| {
        let other = on_cpu(1, || {
            world.take_and_give();
            world.zone.drain();
        });
        world.take_and_give();
        world.zone.drain();
        other.join().unwrap();
    });
}

// ---- drains ----

/// As [`plan`], with two frames, and caches that hold both.
const fn two_frames() -> LabPlan {
    let mut plan = plan(2);
    plan.lists = ListSizes { batch: 2, high: 3 };
    plan.magazine.limit = 3;
    plan
}

/// Drains while another thread takes the drained frames, frees into the drained cache, or drains it
/// too.
fn drained_meanwhile<Z: Built>(name: &str, bound: Option<usize>, plan: LabPlan) {
    let against = |what| format!("{name}, drain against {what}");
    explore::<Z>(&against("allocation"), bound, plan, |world| {
        world.cache_all();
        let drain = on_cpu(1, || world.zone.drain());
        let frame = world.take();
        drain.join().unwrap();
        world.give(frame);
    });
    explore::<Z>(&against("free"), bound, plan, |world| {
        let frame = world.take();
        let drain = on_cpu(1, || world.zone.drain());
        world.give(frame);
        drain.join().unwrap();
    });
    explore::<Z>(&against("drain"), bound, plan, |world| {
        world.cache_all();
        let drain = on_cpu(1, || world.zone.drain());
        let drained = world.zone.drain() + drain.join().unwrap();
        assert_eq!(drained, 2, "each frame was drained once");
    });
}

#[test]
fn drains_lose_nothing() {
    drained_meanwhile::<Magazined>("one magazine", Some(3), two_frames());
    let mut two = two_frames();
    two.magazines = 2;
    drained_meanwhile::<Magazined>("two magazines", Some(3), two);
    drained_meanwhile::<Listed>("CPU lists", Some(3), two_frames());
    drained_meanwhile::<Paged>("page sets", Some(3), two_frames());
}

/// The owner refills its page set, pops and pushes while another CPU drains it.
#[test]
fn a_page_set_is_refilled_while_it_is_drained() {
    explore::<Paged>("page set, refill against drain", 3, plan(4), |world| {
        let drain = on_cpu(1, || world.zone.drain());
        let (first, second) = (world.take(), world.take());
        world.give(first);
        drain.join().unwrap();
        world.give(second);
    });
    explore::<Paged>(
        "page set, a part freed against drain",
        3,
        plan(4),
        |world| {
            let pair = Request::new(Order::new(1), Mobility::Movable);
            let first = world.try_take(&pair).unwrap();
            let drain = on_cpu(1, || world.zone.drain());
            world.give(first.plus(1));
            world.give(first);
            drain.join().unwrap();
        },
    );
    explore::<Paged>("page set, time passes against drain", 3, plan(4), |world| {
        world.cache_some(3);
        let drain = on_cpu(1, || world.zone.drain());
        world.zone.tick();
        drain.join().unwrap();
    });
}

// ---- order-0-succeeds ----

/// Two frames, two threads with at most one each: `World::take` fails the model if a request is
/// refused.
#[test]
fn a_frame_free_anywhere_is_found_behind_magazines() {
    let two = two_magazines(2);
    explore::<Magazined>("one magazine, two frames", 2, plan(2), two_users(1));
    explore::<Magazined>("two magazines, two frames", 2, two, two_users(2));
    explore::<Magazined>("two magazines, both in one", 2, two_frames(), |world| {
        world.cache_all();
        two_users(2)(world);
    });
}

#[test]
fn a_frame_free_anywhere_is_found_behind_cpu_lists() {
    explore::<Listed>("CPU lists, two frames", 3, two_frames(), two_users(1));
    explore::<Listed>("CPU lists, both in one", 3, two_frames(), |world| {
        world.cache_all();
        two_users(1)(world);
    });
    explore::<Listed>("CPU lists, both elsewhere", 2, two_frames(), |world| {
        world.cache_all();
        move_to(2);
        two_users(1)(world);
    });
}

#[test]
fn a_frame_free_anywhere_is_found_behind_page_sets() {
    explore::<Paged>("page sets, two frames", 3, two_frames(), two_users(1));
    explore::<Paged>(
        "page set, entered twice, two frames",
        3,
        two_frames(),
        two_users(0),
    );
    explore::<Paged>("page sets, both in one", 3, two_frames(), |world| {
        world.cache_all();
        two_users(1)(world);
    });
    explore::<Paged>("page sets, both elsewhere", 2, two_frames(), |world| {
        world.cache_all();
        move_to(2);
        two_users(1)(world);
    });
}

/// As above, while a third thread drains.
fn found_in_a_drain<Z: Built>(name: &str, bound: usize, plan: LabPlan) {
    explore::<Z>(name, bound, plan, |world| {
        world.cache_all();
        let drain = on_cpu(2, || world.zone.drain());
        two_users(1)(world);
        drain.join().unwrap();
    });
}

#[test]
fn a_frame_free_anywhere_is_found_in_a_drain() {
    found_in_a_drain::<Magazined>("magazine, two users and a drain", 1, two_frames());
    found_in_a_drain::<Listed>("CPU lists, two users and a drain", 1, two_frames());
    found_in_a_drain::<Paged>("page sets, two users and a drain", 1, two_frames());
}

/// One frame is free at any time, but not always the same: a thread frees its frame to a cache that
/// the other has already searched, and takes, on another CPU, the one that the other has not found
/// yet.
#[test]
fn a_frame_freed_to_a_cache_already_searched_is_found() {
    explore::<Listed>(
        "CPU lists, a user that migrates",
        3,
        two_frames(),
        |world| {
            move_to(1);
            let (ours, cached) = (world.take(), world.take());
            world.give(cached);
            let migrant = on_cpu(0, move || {
                world.give(ours);
                move_to(1);
                world.take()
            });
            move_to(2);
            let frame = world.take();
            world.give(frame);
            world.give(migrant.join().unwrap());
        },
    );
    explore::<Magazined>(
        "magazine, a user that passes it by",
        4,
        two_frames(),
        |world| {
            let (ours, cached) = (world.take(), world.take());
            world.give(cached);
            let interrupted = on_cpu(0, move || {
                world.zone.drain();
                world.give(ours);
                world.try_take(&PAGE.in_context(Context::Interrupt))
            });
            let frame = world.take();
            world.give(frame);
            if let Some(frame) = interrupted.join().unwrap() {
                world.give(frame);
            }
        },
    );
}

// ---- bulk ----

std::thread_local! {
    // For this test, whose modelled threads are all one system thread: how often a holder saw no
    // waiter, or a waiter.
    static WAITERS_SEEN: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

/// A ticket lock that counts whether its holders see waiters.
#[derive(Debug)]
struct Watched(TicketLock);

// SAFETY: each call is forwarded to a lock that keeps the contract.
unsafe impl RawLock for Watched {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this lock, and the lock inside is the same one.
        unsafe { self.0.unlock() }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl Contended for Watched {
    fn is_contended(&self) -> bool {
        let contended = self.0.is_contended();
        WAITERS_SEEN.with(|seen| {
            let [alone, waiters] = seen.get();
            seen.set(if contended {
                [alone, waiters + 1]
            } else {
                [alone + 1, waiters]
            });
        });
        contended
    }
}

/// Checks that holders saw both contention and none.
fn both_were_seen() {
    let [alone, waiters] = WAITERS_SEEN.replace([0; 2]);
    assert!(alone > 0 && waiters > 0, "{alone} {waiters}");
}

/// A magazine whose refill and drain end early with contention: frames not moved are not lost.
#[test]
fn batches_ended_by_contention_lose_nothing() {
    let eager = Batch { least: 0, most: 3 };
    let mut plan = plan(4);
    plan.magazine = MagazineSizes {
        limit: 3,
        refill: eager,
        drain: eager,
    };
    type ZoneWatched = Behind<Magazines<'static, TicketLock>, Watched>;
    explore::<ZoneWatched>("refill watched", 2, plan, two_users(1));
    both_were_seen();
    type MagazineWatched = Behind<Magazines<'static, Watched>>;
    explore::<MagazineWatched>("drain watched", 2, plan, |world| {
        let frames = [world.take(), world.take(), world.take()];
        let other = on_cpu(1, || world.take_and_give());
        for frame in frames {
            world.disown(frame);
        }
        world.zone.free_bulk(&frames).unwrap();
        other.join().unwrap();
    });
    both_were_seen();
}

const POLICIES: [BulkPolicy; 3] = [
    BulkPolicy::Hold,
    BulkPolicy::ReleaseEachPage,
    BulkPolicy::YieldWhenContended,
];

/// Returns a plan with batches of two under a policy.
fn two_at_once(frames: usize, policy: BulkPolicy) -> LabPlan {
    let mut plan = plan(frames);
    plan.lists = ListSizes { batch: 2, high: 2 };
    plan.magazine.refill = Batch::exactly(2);
    plan.magazine.drain = Batch::exactly(2);
    plan.tuning.bulk = policy;
    plan
}

#[test]
fn every_policy_keeps_its_pages() {
    type WatchedLists = Behind<PerCpuLists<'static, Shared>, Watched>;
    type WatchedMagazine = Behind<Magazines<'static, TicketLock>, Watched>;
    for policy in POLICIES {
        let plan = two_at_once(4, policy);
        explore::<WatchedLists>(&format!("CPU lists, {policy:?}"), 3, plan, two_users(1));
        explore::<WatchedMagazine>(&format!("magazine, {policy:?}"), 2, plan, two_users(1));
        if policy == BulkPolicy::YieldWhenContended {
            both_were_seen();
        }
    }
}

/// The store has one frame of the two that a batch wants, so it runs empty in the middle, for one
/// thread or both; each hold of the lock ends all the same. (The posted patch of 2007 returned with
/// the lock held.)
#[test]
fn the_lock_is_released_where_the_store_runs_empty() {
    fn either_or_both<Z: Built>(name: &str, bound: usize, policy: BulkPolicy) {
        let name = format!("{name}, {policy:?}, store runs empty");
        explore::<Z>(&name, bound, two_at_once(1, policy), |world| {
            let other = on_cpu(1, || {
                let frame = world.try_take(&PAGE);
                frame.map(|frame| world.give(frame)).is_some()
            });
            let frame = world.try_take(&PAGE);
            let ours = frame.map(|frame| world.give(frame)).is_some();
            let theirs = other.join().unwrap();
            assert!(ours || theirs, "no thread got the only frame");
            // The next caller finds the lock free.
            world.take_and_give();
        });
    }
    for policy in POLICIES {
        either_or_both::<Listed>("CPU lists", 2, policy);
        either_or_both::<Magazined>("magazine", 2, policy);
    }
}

// ---- bugs that must be found ----

/// A lock that excludes, but does not publish what was written under it to the next holder.
#[derive(Debug)]
struct Unpublished(AtomicU32);

// SAFETY: it admits one holder at a time. The models below must find that it does not publish, on
// words for which a race is a report and not undefined behaviour.
unsafe impl RawLock for Unpublished {
    const UNLOCKED: Self = Self(AtomicU32::new(0));

    fn lock(&self, mut relax: impl FnMut()) {
        while !self.try_lock() {
            relax();
        }
    }

    fn try_lock(&self) -> bool {
        // Relaxed: the mistake.
        let (all, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        self.0.compare_exchange(0, 1, all, relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        // Relaxed: the mistake.
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Contended for Unpublished {
    fn is_contended(&self) -> bool {
        false
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_zone_lock_that_does_not_publish_is_found() {
    explore::<Behind<Direct, Unpublished>>("broken zone lock", 2, plan(4), two_users(1));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_magazine_lock_that_does_not_publish_is_found() {
    type Broken = Behind<Magazines<'static, Unpublished>>;
    explore::<Broken>("broken magazine lock", 2, plan(4), two_users(1));
}

/// Two threads that both run as CPU 0.
#[test]
#[should_panic(expected = "Causality violation")]
fn two_threads_on_one_exclusive_cpu_are_found() {
    type Own = Behind<PerCpuLists<'static, Exclusive>>;
    explore::<Own>("two on one CPU", 2, plan(4), two_users(0));
}
