//! Searches and waits of a request end, whatever others do and wherever they stand still, and
//! nothing is lost on the way.
//!
//! The threads here are CPUs by a number of their own. A thread that stands still does so in a call
//! of the platform or of a hook, which is where one can be made to; the simulator stops CPUs at any
//! access (`explore --stop`).
#![cfg(not(loom))]

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::panic::catch_unwind;
use std::thread;

use brickyard::block::Use;
use brickyard::node::{Nodes, SlowPath};
use brickyard::patience::{LOOKS_MOST, WAITS_MOST};
use brickyard::pressure::{
    ContiguousRequest, Migrate, Migration, NoHooks, Reclaim, alloc_contiguous, offline,
};
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::watermark::Marks;
use brickyard::{
    AllocError, AnyZone, Context, Frame, FrameRange, InterruptState, Mobility, Order, Platform,
    RangeError, Request, Zone,
};

use crate::{meanwhile, support, threads};

use meanwhile::{ALWAYS, Here, LOOKS, OTHER};
use support::{Cpus, Hooks, give, hooked_node, lasting, set_marks, take, use_one, with_slots};
use threads::{CPU, IS_SHUT, Numbered, Visited, WAITED, WAITED_MOST};

type Bricks<P, A> = Zone<'static, P, A>;

const PAGE: Request = Request::page(Mobility::Movable);
const HUGE: Request = Request::new(Order::HUGE, Mobility::Movable);

// ---- one CPU, several tasks ----

thread_local! {
    static PINNED: Cell<u32> = const { Cell::new(0) };
}

/// One CPU, on which another task runs at a chosen moment at which nobody is pinned.
#[derive(Debug, Clone, Copy)]
struct Preempted;

impl Platform for Preempted {
    fn cpu(&self) -> usize {
        meanwhile::CPU.get()
    }

    fn pin(&self) -> usize {
        PINNED.set(PINNED.get() + 1);
        meanwhile::CPU.get()
    }

    fn unpin(&self) {
        PINNED.set(PINNED.get() - 1);
        if PINNED.get() > 0 {
            return;
        }
        if let Some(task) = meanwhile::due() {
            task();
        }
    }

    fn run_on(&self, _cpu: usize, work: &mut dyn FnMut()) -> bool {
        work();
        true
    }
}

/// What another task of the CPU frees between any two pinned sections of a request stays there.
#[test]
fn page_blocks_that_another_task_frees_in_between_are_kept() {
    for moment in 0..8 {
        for moves in [false, true] {
            page_blocks_freed_at(moment, moves);
        }
    }
}

fn page_blocks_freed_at(moment: usize, moves: bool) {
    const BLOCKS: usize = 64;
    let zone = lasting::<_, Exclusive>(BLOCKS * 512, 2, Preempted);
    meanwhile::CPU.set(0);
    let theirs: Vec<Frame> = (0..6).map(|_| zone.alloc(&HUGE).unwrap()).collect();
    drain_on(zone, 2);
    assert_eq!(zone.free_frames(), (BLOCKS - 6) * 512);
    OTHER.set(Some((
        moment,
        Box::new(move || {
            // The requester may find itself on the other CPU, where the blocks lie.
            meanwhile::CPU.set(usize::from(moves));
            for frame in theirs {
                zone.free(frame, Order::HUGE).unwrap();
            }
        }),
    )));
    while OTHER.with_borrow(Option::is_some) {
        use_one(zone, &HUGE);
    }
    drain_on(zone, 2);
    assert_eq!(zone.check().unwrap().free, BLOCKS * 512);
}

fn drain_on<A: SlotAccess>(zone: &Bricks<Preempted, A>, cpus: usize) {
    for cpu in 0..cpus {
        meanwhile::CPU.set(cpu);
        zone.drain();
    }
    meanwhile::CPU.set(0);
}

// ---- loans ----

/// A zone of which the CPU has blocks on loan, and what `away` and `back` do with each whole block
/// that lies in no cache.
fn lent_blocks_leave_and_return(
    away: impl Fn(&Bricks<Preempted, Exclusive>, FrameRange) -> Result<usize, RangeError>,
    back: impl Fn(&Bricks<Preempted, Exclusive>, FrameRange) -> Result<usize, RangeError>,
) {
    let zone = lasting::<_, Exclusive>(64 * 512, 1, Preempted);
    give(zone, &take(zone, 6000, Mobility::Movable));
    zone.check().unwrap();
    let mut moved = 0;
    for block in 0..64 {
        let range = FrameRange::at(Frame::new(block * 512), 512);
        let in_use = |frame: Frame| zone.block_of(frame).unwrap().1.usage == Use::Allocated;
        if range.frames().any(in_use) || away(zone, range).is_err() {
            continue;
        }
        zone.check().unwrap();
        assert_eq!(back(zone, range), Ok(512));
        zone.check().unwrap();
        moved += 1;
    }
    assert!(moved > 50, "{moved}");
}

#[test]
fn a_lent_block_that_leaves_and_returns_is_lent_no_more() {
    lent_blocks_leave_and_return(Zone::remove, Zone::add);
    lent_blocks_leave_and_return(Zone::reserve, Zone::unreserve);
}

// ---- contexts ----

/// No request that may not sleep interrupts another CPU, whatever it asks for.
#[test]
fn who_may_not_sleep_interrupts_no_other_cpu() {
    let platform = Cpus::new();
    let zone = lasting::<_, Exclusive>(1024, 2, platform);
    let cached = use_one(zone, &PAGE);
    platform.switch_to(1);
    for context in [Context::Atomic, Context::Interrupt] {
        let page = PAGE.in_context(context);
        let before = platform.interruptions();
        assert!(zone.alloc_at(cached, &page).is_err());
        let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&page).ok()).collect();
        assert!(zone.alloc(&HUGE.in_context(context)).is_err());
        let mut more = [cached; 300];
        assert!(zone.alloc_bulk(&page, &mut more).is_err());
        assert_eq!(platform.interruptions(), before, "{context:?}");
        give(zone, &all);
        zone.drain();
        // So that something lies on the other CPU again.
        platform.switch_to(0);
        use_one(zone, &PAGE);
        platform.switch_to(1);
    }
    let before = platform.interruptions();
    let sleeping = zone.alloc_at(cached, &PAGE);
    assert!(sleeping.is_ok() || platform.interruptions() > before);
}

// ---- others go on ----

/// Nothing is ever freed by reclaim, or moved.
fn vain() -> Hooks {
    Hooks::new(Some(0), None)
}

/// So often a request may wait a little: in all its looks together, before reclaim and after.
const WAITS_OF_A_REQUEST: u32 = WAITS_MOST;

/// Asks while other CPUs go on taking and giving `batch` pages by `churn`. Fails where that waits
/// more often than it may.
fn ask_beside<Z: AnyZone<Platform = Numbered>, H: Reclaim + Migrate + Sync, R: Send>(
    nodes: &Nodes<'_, Z, H>,
    cpus: usize,
    (churn, batch): (Request, usize),
    ask: impl FnOnce() -> R + Send,
) -> R {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for cpu in 1..cpus {
            let stop = &stop;
            scope.spawn(move || {
                CPU.set(cpu);
                let mut held = Vec::new();
                while !stop.load(Relaxed) {
                    held.extend((0..batch).filter_map(|_| nodes.alloc(0, &churn).ok()));
                    for frame in held.drain(..) {
                        nodes.free(frame, Order::ZERO).unwrap();
                    }
                }
            });
        }
        let asked = scope.spawn(|| {
            CPU.set(0);
            WAITED_MOST.set(WAITS_OF_A_REQUEST);
            ask()
        });
        let answer = asked.join();
        stop.store(true, Relaxed);
        answer.unwrap()
    })
}

fn below_the_mark<A: SlotAccess>() {
    const FRAMES: usize = 64 * 512;
    let zone = lasting::<_, A>(FRAMES, 4, Numbered);
    let hooks = vain();
    let nodes = hooked_node(core::slice::from_ref(zone), hooks, SlowPath::MODERN);
    let marks = Marks {
        min: 30_000,
        low: 31_000,
        high: 32_000,
    };
    set_marks(zone, marks);
    // 20000 are free: below min for who may sleep, above what is left of it for who may not.
    let atomic = PAGE.atomic();
    let held = (0..FRAMES - 20_000).map(|_| nodes.alloc(0, &atomic).unwrap());
    assert_eq!(held.count(), FRAMES - 20_000);
    zone.drain();
    let answer = ask_beside(&nodes, 4, (atomic, 1), || nodes.alloc(0, &PAGE));
    // What it may find in its own stash has passed the mark.
    assert!(answer.is_ok() || hooks.asked() > 0, "{answer:?}");
}

#[test]
fn a_request_below_its_mark_reaches_reclaim_while_others_go_on() {
    below_the_mark::<Shared>();
    below_the_mark::<Exclusive>();
}

/// No look finds everything at rest, and the request ends all the same.
#[test]
fn a_request_ends_though_others_free_something_in_each_of_its_looks() {
    let zone = lasting::<_, Shared>(64 * 512, 2, Here);
    let hooks = vain();
    let nodes = hooked_node(core::slice::from_ref(zone), hooks, SlowPath::MODERN);
    let limit = Frame::new(512);
    let low = PAGE.below(limit);
    meanwhile::CPU.set(0);
    while nodes.alloc(0, &low).is_ok() {}
    let before = hooks.asked();
    for (request, looks) in [(low, LOOKS_MOST), (low.in_context(Context::Interrupt), 1)] {
        LOOKS.set(0);
        ALWAYS.set(Some(Box::new(|| {
            meanwhile::CPU.set(1);
            use_one(zone, &PAGE);
        })));
        let answer = nodes.alloc(0, &request);
        ALWAYS.set(None);
        assert_eq!(answer, Err(AllocError::LimitUnsatisfiable { limit }));
        // It has waited between any two looks, and no look was the last word.
        assert!(LOOKS.get() >= u64::from(looks) - 1, "{}", LOOKS.get());
        assert!(LOOKS.get() <= u64::from(WAITS_OF_A_REQUEST));
    }
    assert!(hooks.asked() > before);
}

#[test]
fn a_request_with_a_limit_is_refused_while_others_go_on_above_it() {
    let zone = lasting::<_, Shared>(256 * 512, 4, Numbered);
    let hooks = vain();
    let nodes = hooked_node(core::slice::from_ref(zone), hooks, SlowPath::MODERN);
    let limit = Frame::new(512);
    let low = PAGE.below(limit);
    let below = core::iter::from_fn(|| zone.alloc(&low).ok()).count();
    assert_eq!(below, limit.number());
    let answer = ask_beside(&nodes, 4, (PAGE, 2000), || nodes.alloc(0, &low));
    assert_eq!(answer, Err(AllocError::LimitUnsatisfiable { limit }));
    assert!(hooks.asked() > 0);
}

#[test]
fn a_pair_of_page_blocks_is_refused_while_others_go_on_in_single_ones() {
    const BLOCKS: usize = 1024;
    let zone = lasting::<_, Shared>(BLOCKS * 512, 4, Numbered);
    let hooks = vain();
    let nodes = hooked_node(core::slice::from_ref(zone), hooks, SlowPath::PLAIN);
    for block in (0..BLOCKS).step_by(2) {
        zone.alloc_at(Frame::new(block * 512), &HUGE).unwrap();
    }
    let pair = Request::new(Order::new(10), Mobility::Movable);
    let answer = ask_beside(&nodes, 4, (PAGE, 6000), || nodes.alloc(0, &pair));
    assert!(answer.is_err());
    assert!(hooks.asked() > 0);
}

// ---- somebody stands still ----

thread_local! {
    // Where the slot lies that somebody stands still in.
    static STUCK: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The owner of a slot does without it, and everybody else without what lies in it; nothing is lost
/// by that.
#[test]
fn a_slot_that_somebody_stands_still_in_is_done_without() {
    const FRAMES: usize = 1024;
    let (zone, slots) = with_slots::<_, Visited>(FRAMES, Numbered);
    CPU.set(0);
    use_one(&zone, &PAGE);
    let cached = zone.cached_frames();
    assert!(cached > 0);
    IS_SHUT.set(|_, at| STUCK.get() == Some(at));
    // The access is the first thing in a slot, or near it: found by where it is asked.
    let place = core::ptr::from_ref(&slots[0]).addr();
    let within = place..place + size_of_val(&slots[0]);
    STUCK.set(within.into_iter().find(|&at| {
        STUCK.set(Some(at));
        slots[0].visit(|| ()).is_none()
    }));
    assert!(STUCK.get().is_some());
    for cpu in [0, 1] {
        CPU.set(cpu);
        WAITED.set(0);
        // One by one, then all that is left, then one more in vain.
        let mut held = vec![Frame::new(0); FRAMES];
        let one_by_one = 20;
        for slot in &mut held[..one_by_one] {
            *slot = zone.alloc(&PAGE).unwrap();
        }
        let more = zone.alloc_bulk(&PAGE, &mut held[one_by_one..]).unwrap();
        held.truncate(one_by_one + more);
        assert!(held.len() >= FRAMES - cached - usize::from(cpu == 0));
        // The one in vain has waited, and nobody else has.
        assert!(WAITED.get() <= WAITS_OF_A_REQUEST, "{}", WAITED.get());
        zone.free_bulk(&held).unwrap();
        zone.drain();
    }
    STUCK.set(None);
    zone.drain();
    CPU.set(0);
    zone.drain();
    assert_eq!(zone.check().unwrap().free, FRAMES);
}

// ---- hooks that panic ----

/// Panics when it is to move something.
#[derive(Debug)]
struct Panics;

impl Migrate for Panics {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        panic!("the hook's own");
    }
}

#[test]
fn a_hook_that_panics_leaves_nothing_isolated() {
    let zone = lasting::<_, Exclusive>(8 * 512, 1, Numbered);
    CPU.set(0);
    let page = zone.alloc(&PAGE).unwrap();
    zone.drain();
    let range = FrameRange::of_block(page.align_down(Order::HUGE), Order::HUGE);
    let wanted = ContiguousRequest::new(512, range);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    // More often than there are slots for isolated ranges.
    for _ in 0..6 {
        let offline = catch_unwind(AssertUnwindSafe(|| offline(zone, range, &Panics)));
        assert!(offline.is_err());
        let contiguous = AssertUnwindSafe(|| alloc_contiguous(zone, &wanted, &Panics));
        assert!(catch_unwind(contiguous).is_err());
    }
    std::panic::set_hook(hook);
    let census = zone.check().unwrap();
    // The page, and for each panic the place that it was to go to.
    assert_eq!((census.isolated, census.allocated), (0, 1 + 12));
    zone.free(page, Order::ZERO).unwrap();
    assert_eq!(offline(zone, range, &NoHooks), Ok(512));
}

// ---- one CPU, and how long its interrupts are masked ----

thread_local! {
    // How often interrupts were masked, and whether they are.
    static MASKED: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// One CPU whose interrupts are masked for one step at a time.
#[derive(Debug, Clone, Copy)]
struct Masked;

impl Platform for Masked {
    fn cpu(&self) -> usize {
        0
    }

    fn mask_interrupts(&self) -> InterruptState {
        let (times, masked) = MASKED.get();
        assert!(!masked, "one step at a time");
        MASKED.set((times + 1, true));
        InterruptState(0)
    }

    fn restore_interrupts(&self, _found: InterruptState) {
        let (times, masked) = MASKED.get();
        assert!(masked, "masked before");
        MASKED.set((times, false));
    }
}

/// An operation on a range masks interrupts once for each page block, and not all the while.
#[test]
fn interrupts_are_masked_for_a_page_block_at_a_time() {
    const BLOCKS: usize = 40;
    let zone: &Bricks<Masked, Exclusive> = lasting(BLOCKS * 512, 1, Masked);
    let all = zone.span();
    let inner = FrameRange::new(100, BLOCKS * 512 - 100);
    let steps = |what: &str, work: &dyn Fn()| {
        let (before, _) = MASKED.get();
        work();
        let (after, masked) = MASKED.get();
        assert!(!masked, "{what}");
        after - before
    };
    for range in [all, inner] {
        let all_of = |frames| assert_eq!(frames, Ok(range.len()));
        // One step more for the slot of an isolated range, or of one that leaves.
        let operations: [(&str, &dyn Fn(), usize); 6] = [
            ("isolate", &|| zone.isolate(range).unwrap(), BLOCKS + 1),
            ("unisolate", &|| zone.unisolate(range), BLOCKS + 1),
            ("reserve", &|| all_of(zone.reserve(range)), BLOCKS + 1),
            ("unreserve", &|| all_of(zone.unreserve(range)), BLOCKS),
            ("remove", &|| all_of(zone.remove(range)), BLOCKS + 1),
            ("add", &|| all_of(zone.add(range)), BLOCKS),
        ];
        for (what, work, expected) in operations {
            assert_eq!(steps(what, work), expected, "{what} {range:?}");
        }
        assert_eq!(zone.check().unwrap().free, BLOCKS * 512);
    }
    let wanted = ContiguousRequest::new(BLOCKS * 256, all);
    let taken = Cell::new(FrameRange::default());
    let contiguous = || taken.set(alloc_contiguous(zone, &wanted, &NoHooks).unwrap());
    let masked = steps("contiguous", &contiguous);
    assert!(masked <= 2 * (BLOCKS / 2 + 2), "{masked}");
    zone.free_range(taken.get()).unwrap();
    zone.check().unwrap();
}
