//! Schedules in which a request for one frame is told that nothing is there, though something is
//! all the while; and others that were suspected.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard --test loom loom_order_0 --
//! --nocapture`
#![cfg(loom)]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use brickyard::bitmap::Bitmap;
use brickyard::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, SlotAccess, place};
use brickyard::{Frame, FrameRange, Mobility, Order, Platform, Request, Zone, ZoneKind, ZonePlan};
use loom::thread;

const PAGE: Request = Request::page(Mobility::Movable);
const WORD: Order = Order::new(6);
const STACK: usize = 1 << 16;

/// Runs `model` in every schedule in which running threads are interrupted no more often than
/// `bound` says.
fn explore(name: &str, bound: usize, model: impl Fn() + Clone + Sync + Send + 'static) {
    let schedules = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&schedules);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(bound));
    builder.max_branches = 1_000_000;
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        let first = thread::Builder::new().stack_size(STACK);
        first.spawn(model.clone()).unwrap().join().unwrap();
    });
    println!("{name}: {} schedules", schedules.load(Relaxed));
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .unwrap()
}

/// Page blocks of one word each, all free.
fn store(blocks: usize) -> &'static Bitmap<'static> {
    let span = FrameRange::new(0, blocks * 64);
    let max = Order::new(6);
    let words = Bitmap::words(span, max, WORD);
    let classes = Bitmap::classes(span, WORD);
    let bytes = words * size_of::<AtomicU64>() + classes * size_of::<AtomicU8>() + 128;
    let memory = Box::leak(vec![MaybeUninit::<u8>::uninit(); bytes].into_boxed_slice());
    let (words, rest) = place(memory, words, || AtomicU64::new(0)).unwrap();
    let (classes, _) = place(rest, classes, || AtomicU8::new(0)).unwrap();
    let store = Box::leak(Box::new(Bitmap::new(span, max, WORD, words, classes)));
    store.add(span).unwrap();
    touch(store);
    store
}

/// Every word, before threads start: to loom the first access is a write.
fn touch(store: &Bitmap<'_>) {
    store.check().unwrap();
    let _ = (store.fallbacks(), store.refused_late());
}

/// What a look everywhere asks of the store: a frame, else whether something is on its way.
fn falsely_refused(store: &Bitmap<'_>, request: &Request) -> bool {
    store.take(request).is_none() && store.may_refuse(request)
}

/// Two frames of a block are not isolated, and two requests ask for one each, while the block is
/// free as a whole. The one that finds the other opening it may not be told that nothing is there.
#[test]
fn a_block_that_is_isolated_in_part_and_being_opened_is_not_nothing() {
    explore("opened beside an isolated range", 2, || {
        let store = store(1);
        store.isolate(FrameRange::new(0, 62)).unwrap();
        touch(store);
        let other = spawn(|| falsely_refused(store, &PAGE));
        let refused = falsely_refused(store, &PAGE);
        assert!(!refused, "two frames for two");
        assert!(!other.join().unwrap(), "two frames for two");
    });
}

/// A store of so many blocks in which one of two frames is free all the while: the other thread
/// frees its own, in the first block, before it takes the other, in the second. Meanwhile this one
/// asks whether `request` may be refused.
fn beside_a_frame_that_moves(blocks: usize, isolated: Option<FrameRange>, request: &Request) {
    let store = store(blocks);
    let block = Request::new(WORD, Mobility::Movable);
    for first in [0, 64] {
        store.take_at(Frame::new(first), &block).unwrap();
    }
    if let Some(range) = isolated {
        store.isolate(range).unwrap();
        touch(store);
    }
    store.give(Frame::new(64), Order::ZERO).unwrap();
    let other = spawn(|| {
        store.give(Frame::new(0), Order::ZERO).unwrap();
        store.take_at(Frame::new(64), &PAGE).unwrap();
    });
    let refused = store.may_refuse(request);
    other.join().unwrap();
    assert!(!refused, "at every moment one of two frames was free");
}

/// Both lie below the limit.
#[test]
fn a_frame_below_a_limit_that_moves_is_not_nothing() {
    explore("moved below a limit", 2, || {
        beside_a_frame_that_moves(3, None, &PAGE.below(Frame::new(128)));
    });
}

/// The same for requests without a limit while some other range is isolated.
#[test]
fn a_frame_that_moves_beside_an_isolated_range_is_not_nothing() {
    explore("moved beside an isolated range", 2, || {
        beside_a_frame_that_moves(3, Some(FrameRange::new(128, 192)), &PAGE);
    });
}

/// Without either, the total is of one moment.
#[test]
fn a_frame_that_moves_is_not_nothing() {
    explore("moved", 4, || beside_a_frame_that_moves(2, None, &PAGE));
}

// ---- loans ----

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
}

/// Each modelled thread runs on the CPU that it says.
#[derive(Debug, Clone, Copy)]
struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn relax(&self) {
        loom::skip_branch();
        thread::yield_now();
    }
}

/// As `Shared`, with a word that loom can follow.
#[derive(Debug)]
struct Lent(AtomicU32);

// SAFETY: whoever turned the word from 0 to 1 is inside, and only `leave` turns it back.
unsafe impl SlotAccess for Lent {
    const EMPTY: Self = Self(AtomicU32::new(0));
    const LENDS: bool = true;

    fn try_enter(&self) -> bool {
        let taken = self.0.compare_exchange(0, 1, Ordering::Acquire, Relaxed);
        taken.is_ok()
    }

    fn try_visit(&self) -> bool {
        self.try_enter()
    }

    unsafe fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
}

type Stashed = Zone<'static, Modelled, Lent>;

/// Blocks of one word, one of which is free as a whole, so that loans are given, and this many
/// frames of the others.
fn stashed(frames: &[usize]) -> &'static Stashed {
    let mut plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 128), 2);
    plan.max_order = WORD;
    plan.page_block_order = WORD;
    plan.stash.singles = 2;
    plan.stash.small = 1;
    plan.stash.huge = 1;
    plan.stash.percent = 100;
    let bytes = Stashed::bytes(&plan);
    let memory = Box::leak(vec![MaybeUninit::uninit(); bytes].into_boxed_slice());
    let zone = Stashed::new(&plan, Modelled, memory).unwrap();
    zone.add(plan.span).unwrap();
    let block = Request::new(WORD, Mobility::Movable);
    zone.alloc_at(Frame::new(0), &block).unwrap();
    for &frame in frames {
        zone.free(Frame::new(frame), Order::ZERO).unwrap();
    }
    let zone = Box::leak(Box::new(zone));
    // Every word, before threads start: to loom the first access is a write.
    for cpu in [1, 0] {
        CPU.with(|own| own.set(cpu));
        let page = zone.alloc(&PAGE).unwrap();
        zone.free(page, Order::ZERO).unwrap();
        zone.drain();
        zone.check().unwrap();
    }
    assert!(
        zone.alloc(&Request::new(Order::MAX, Mobility::Movable))
            .is_err()
    );
    let _ = (zone.fallbacks(), zone.refused_late());
    zone
}

/// Two CPUs fetch from the same block at once: whoever has it on loan afterwards knows of it,
/// whatever was taken in vain.
#[test]
fn a_loan_is_somebodys_whoever_was_faster() {
    for frames in [&[5][..], &[5, 9]] {
        explore("two fetch from one block", 2, move || {
            let zone = stashed(frames);
            let other = spawn(|| {
                CPU.with(|cpu| cpu.set(1));
                zone.alloc(&PAGE).unwrap()
            });
            let ours = zone.alloc(&PAGE).unwrap();
            let theirs = other.join().unwrap();
            zone.check().unwrap();
            zone.free(ours, Order::ZERO).unwrap();
            CPU.with(|cpu| cpu.set(1));
            zone.free(theirs, Order::ZERO).unwrap();
            CPU.with(|cpu| cpu.set(0));
            zone.drain();
            zone.check().unwrap();
        });
    }
}
