//! Every schedule of two or three threads in a tiny bitmap store, alone, behind a zone, and behind stashes, as loom explores them.
//!
//! What is proved, for these sizes, within the preemption bounds given below and for every outcome that the memory orderings allow:
//!
//! - `one-owner`: a frame never has two owners, and an owner sees what the owner before wrote to the page, whether frames go by bits,
//!   by whole words or by the states of their blocks;
//! - nothing is lost: what nobody owns in the end is counted, lies in the right sets, can be taken, and merges;
//! - whoever is refused was so for a reason: what it wanted was not there, or the other had it;
//! - nobody waits for anybody in the store: a thread that could go on for ever while another stands still is reported by loom,
//!   as a model with too many branches;
//! - `order-0-succeeds`, through the zone, where frames are promised, opened, put back or on their way out of a stash.
//!
//! The last section plants bugs in those who use the store, and expects to hear of them. Those planted in the store itself need a copy of it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard --test loom_bitmap -- --nocapture` prints how many schedules each model had.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::Cell;
use core::mem::{MaybeUninit, align_of, size_of};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use brickyard::design::{Brickyard, LockFree};
use brickyard::front::{Direct, Front, StashSizes};
use brickyard::store::bitmap::Bitmap;
use brickyard::store::{Census, Store};
use brickyard::sync::{AtomicU32, AtomicU64, GuardedU32, SlotAccess, TicketLock, place};
use brickyard::zone::{Placed, Zone, ZonePlan};
use brickyard::{
    Frame, FrameRange, FreeError, Mobility, Order, Platform, RangeError, Request, ZoneKind,
};
use loom::thread::{self, JoinHandle};

// ---- the platform ----

/// How often a thread looks in vain before loom stops trying other schedules for what follows: a look in vain changes nothing, so what
/// happens after many is what happens after one. The store never looks in vain, only the zone's last resort does.
const LOOKS: usize = 1;

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static LOOKED: Cell<usize> = Cell::new(0);
}

/// Each modelled thread runs on the CPU that it says.
#[derive(Debug, Clone, Copy)]
struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn relax(&self) {
        let looked = LOOKED.with(|looked| looked.replace(looked.get() + 1));
        if looked >= LOOKS {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

fn move_to(cpu: usize) {
    CPU.with(|own| own.set(cpu));
}

/// Models run on at most so many CPUs.
const CPUS: usize = 3;

/// The stack of a modelled thread, in words: stashes are large where each of their words is a model of one.
const STACK: usize = 1 << 16;

/// Starts a thread on `cpu`.
fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let other = thread::Builder::new().stack_size(STACK);
    let other = other.spawn(move || {
        move_to(cpu);
        work()
    });
    other.unwrap()
}

/// Does one thing here and another on CPU 1, at the same time.
fn both<A, B: Send + 'static>(
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    let other = on_cpu(1, there);
    let ours = here();
    (ours, other.join().unwrap())
}

// ---- the machine ----

/// What a model runs on: a store by itself, or a zone with one.
trait Machine: Sized + Sync + 'static {
    fn bytes(plan: &ZonePlan) -> usize;
    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self;
    fn add(&self, range: FrameRange);
    fn take(&self, request: &Request) -> Option<Frame>;
    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;
    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize;
    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError>;
    fn give_singles(&self, frames: &[Frame]);
    fn check(&self) -> Census;
    fn free_frames(&self) -> usize;

    /// Brings what caches hold back to the store.
    fn drain(&self) {}

    /// Goes through every atomic word that [`Machine::check`] leaves out.
    fn touch(&self) {}
}

type Bare = Bitmap<'static>;
type Behind<F> = Zone<LockFree<'static, F, TicketLock, Modelled>>;
type Bricks = Behind<Direct>;
type Stashed = Zone<Brickyard<'static, Modelled, Lent>>;

/// As [`Shared`](brickyard::sync::Shared), with a compare-and-swap in place of its exchange. Loom does not know that the 1 which a vain exchange puts in the place of a 1
/// comes before the 0 of who goes out, and would let the slot be full for ever.
#[derive(Debug)]
struct Lent(AtomicU32);

impl Lent {
    fn go_in(&self, mut relax: impl FnMut()) {
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        while self.0.compare_exchange(0, 1, acquire, relaxed).is_err() {
            relax();
        }
    }
}

// SAFETY: whoever turned the word from 0 to 1 is inside, and only `leave` turns it back.
unsafe impl SlotAccess for Lent {
    const EMPTY: Self = Self(AtomicU32::new(0));
    const LENDS: bool = true;

    fn enter(&self, relax: impl FnMut()) {
        self.go_in(relax);
    }

    fn visit(&self, relax: impl FnMut()) -> bool {
        self.go_in(relax);
        true
    }

    unsafe fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Machine for Bare {
    fn bytes(plan: &ZonePlan) -> usize {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        words * size_of::<AtomicU64>() + align_of::<AtomicU64>() - 1
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        let (words, _) = place(memory, words, || AtomicU64::new(0)).unwrap();
        Self::new(plan.span, plan.max_order, plan.page_block_order, words)
    }

    fn add(&self, range: FrameRange) {
        Store::add(self, range).unwrap();
    }

    fn take(&self, request: &Request) -> Option<Frame> {
        Store::take(self, request).map(|taken| taken.frame)
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        Store::take_at(self, frame, request)
    }

    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        self.take_frames(request, out)
    }

    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        Store::give(self, frame, order).map(|_| ())
    }

    fn give_singles(&self, frames: &[Frame]) {
        assert_eq!(self.give_frames(frames), (frames.len(), None));
    }

    fn check(&self) -> Census {
        Store::check(self).unwrap()
    }

    fn free_frames(&self) -> usize {
        Store::free_frames(self)
    }

    fn touch(&self) {
        self.fallbacks();
        let _ = self.refused_late();
    }
}

impl<F> Machine for Behind<F>
where
    F: Front<Bitmap<'static>, TicketLock, Modelled> + Placed<'static> + 'static,
{
    fn bytes(plan: &ZonePlan) -> usize {
        LockFree::<F, TicketLock, Modelled>::bytes(plan)
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        LockFree::zone(plan, Modelled, memory).unwrap()
    }

    fn add(&self, range: FrameRange) {
        Zone::add(self, range).unwrap();
    }

    fn take(&self, request: &Request) -> Option<Frame> {
        self.alloc(request).ok()
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.alloc_at(frame, request)
    }

    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        self.alloc_bulk(request, out).unwrap_or(0)
    }

    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.free(frame, order)
    }

    fn give_singles(&self, frames: &[Frame]) {
        self.free_bulk(frames).unwrap();
    }

    fn check(&self) -> Census {
        Zone::check(self).unwrap()
    }

    fn free_frames(&self) -> usize {
        Zone::free_frames(self)
    }

    fn drain(&self) {
        Zone::drain(self);
    }

    fn touch(&self) {
        // What a stash is reached by, on each CPU that has one.
        for cpu in 0..CPUS {
            move_to(cpu);
            if let Some(frame) = self.take(&request(0)) {
                self.give(frame, Order::ZERO).unwrap();
            }
            self.drain();
        }
        move_to(0);
        // What reads every count there is: a request that nothing can serve.
        assert!(
            self.alloc(&Request::new(Order::MAX, Mobility::Movable))
                .is_err()
        );
        let _ = self.meter();
    }
}

/// What is free at first.
#[derive(Debug, Clone, Copy)]
enum Free {
    All,
    /// These frames, of open blocks.
    Only(&'static [FrameRange]),
}

/// A machine of so many page blocks, and what is free in it.
#[derive(Debug, Clone, Copy)]
struct Setting {
    blocks: usize,
    block_order: u8,
    max_order: u8,
    // Only so many blocks, from the lowest on, are memory.
    memory: usize,
    // So many CPUs have stashes.
    cpus: usize,
    free: Free,
}

impl Setting {
    /// Page blocks of one word each.
    const fn blocks(blocks: usize, free: Free) -> Self {
        Self {
            blocks,
            block_order: 6,
            max_order: 5 + blocks as u8,
            memory: blocks,
            cpus: 2,
            free,
        }
    }

    /// One page block of one word.
    const fn word(free: &'static [FrameRange]) -> Self {
        Self::blocks(1, Free::Only(free))
    }

    /// One page block of four words.
    const fn four_words(free: Free) -> Self {
        Self {
            block_order: 8,
            max_order: 8,
            ..Self::blocks(1, free)
        }
    }

    const fn plan(self) -> ZonePlan {
        let frames = self.blocks << self.block_order;
        let span = FrameRange::new(0, frames);
        let mut plan = ZonePlan::new(ZoneKind::Normal, span, self.cpus);
        plan.max_order = Order::new(self.max_order);
        plan.page_block_order = Order::new(self.block_order);
        plan.stash = StashSizes {
            singles: 2,
            small: 1,
            huge: 1,
        };
        plan
    }
}

/// One frame.
const fn one(frame: usize) -> FrameRange {
    FrameRange::new(frame, frame + 1)
}

const fn request(order: u8) -> Request {
    Request::new(Order::new(order), Mobility::Movable)
}

/// The machine of one run of a model, and what the threads know of its frames.
struct World<M> {
    machine: M,
    // Frame by frame: has it an owner? Two owners at once are caught here. No words of the model, so that they order nothing and cost nothing.
    owned: Vec<AtomicBool>,
    // Frame by frame, the page itself: an owner that does not see what the one before wrote is caught here.
    pages: Vec<GuardedU32>,
}

impl<M: Machine> World<M> {
    fn new(setting: Setting, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let plan = setting.plan();
        let frames = plan.span.len();
        let world = Self {
            machine: M::build(&plan, memory),
            owned: (0..frames).map(|_| AtomicBool::new(false)).collect(),
            pages: (0..frames).map(|_| GuardedU32::new(0)).collect(),
        };
        let there = FrameRange::new(0, setting.memory << setting.block_order);
        world.machine.add(there);
        for absent in there.end.number()..frames {
            world.owned[absent].store(true, Ordering::Relaxed);
        }
        if let Free::Only(free) = setting.free {
            let all = world.take_many(there.len());
            assert_eq!(all.len(), there.len());
            let mut given = Vec::new();
            for frame in all {
                if free.iter().any(|range| range.contains(frame)) {
                    world.disown(frame);
                    given.push(frame);
                }
            }
            world.machine.give_singles(&given);
        }
        world.machine.touch();
        world.machine.check();
        world
    }

    /// Nobody else may own a frame of what was taken.
    fn own(&self, first: Frame, order: Order) {
        for frame in FrameRange::of_block(first, order).frames() {
            let owned = self.owned[frame.number()].swap(true, Ordering::Relaxed);
            assert!(!owned, "{frame} has two owners");
            self.write_to(frame);
        }
    }

    fn write_to(&self, frame: Frame) {
        let page = &self.pages[frame.number()];
        page.set(page.get() + 1);
    }

    fn disown(&self, frame: Frame) {
        self.write_to(frame);
        self.owned[frame.number()].store(false, Ordering::Relaxed);
    }

    /// A block, if there is one.
    fn take(&self, order: u8) -> Option<Frame> {
        let first = self.machine.take(&request(order))?;
        self.own(first, Order::new(order));
        Some(first)
    }

    /// The block at `frame`, if it is free.
    fn take_at(&self, frame: usize, order: u8) -> Option<Frame> {
        let first = Frame::new(frame);
        self.machine.take_at(first, &request(order)).ok()?;
        self.own(first, Order::new(order));
        Some(first)
    }

    /// Single frames, up to so many.
    fn take_many(&self, most: usize) -> Vec<Frame> {
        let mut taken = vec![Frame::new(0); most];
        let count = self.machine.take_singles(&request(0), &mut taken);
        taken.truncate(count);
        for &frame in &taken {
            self.own(frame, Order::ZERO);
        }
        taken
    }

    fn give(&self, first: Frame, order: u8) {
        self.give_at(first.number(), order);
    }

    /// Gives a block, or a part of one, that the caller owns.
    fn give_at(&self, first: usize, order: u8) {
        let (first, order) = (Frame::new(first), Order::new(order));
        for frame in FrameRange::of_block(first, order).frames() {
            self.disown(frame);
        }
        assert_eq!(self.machine.give(first, order), Ok(()));
    }

    /// Frees a single frame, whoever owns it.
    fn free(&self, frame: Frame) -> Result<(), FreeError> {
        self.machine.give(frame, Order::ZERO)
    }

    fn check(&self) -> Census {
        self.machine.check()
    }

    /// How many frames nobody owns.
    fn unowned(&self) -> usize {
        let unowned = |owned: &&AtomicBool| !owned.load(Ordering::Relaxed);
        self.owned.iter().filter(unowned).count()
    }

    /// All threads have ended: what nobody owns is free, every invariant holds, and single requests find each of those frames and no others.
    fn finish(&self) {
        self.machine.drain();
        let free = self.unowned();
        let census = self.machine.check();
        assert_eq!(census.free, free, "{census:?}");
        assert_eq!(self.machine.free_frames(), free);
        for left in (0..free).rev() {
            assert!(self.take(0).is_some(), "one more of {left} that are free");
        }
        assert_eq!(self.take(0), None);
        self.machine.drain();
        self.machine.check();
    }
}

/// Runs `model` on a new machine in every schedule; with a bound, in those where running threads are interrupted no more often than that.
/// `LOOM_MAX_PREEMPTIONS` takes the place of the bound.
///
/// The bounds in this file are the highest that let the whole of it run in about three minutes; what a lower one leaves out are schedules in
/// which threads are interrupted more often, not longer.
fn explore<M: Machine>(
    name: &str,
    bound: impl Into<Option<usize>>,
    setting: Setting,
    model: impl Fn(&'static World<M>) + Clone + Sync + Send + 'static,
) {
    let start = std::time::Instant::now();
    let schedules = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(bound.into());
    builder.max_branches = 1_000_000;
    let counted = Arc::clone(&schedules);
    builder.check(move || {
        // Relaxed: a word outside the model, of one system thread.
        counted.fetch_add(1, Ordering::Relaxed);
        let model = model.clone();
        let first = thread::Builder::new().stack_size(STACK);
        let first = first.spawn(move || in_new_world(setting, model));
        first.unwrap().join().unwrap();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    let bound = builder.preemption_bound;
    println!(
        "{name}: {schedules} schedules, preemption bound {bound:?}, {:?}",
        start.elapsed()
    );
}

fn in_new_world<M: Machine>(setting: Setting, model: impl Fn(&'static World<M>)) {
    let bytes = M::bytes(&setting.plan());
    let memory: Box<[MaybeUninit<u8>]> = vec![MaybeUninit::uninit(); bytes].into();
    let memory = Box::into_raw(memory);
    // SAFETY: made above, not shared yet, and given back below, after the machine in it.
    let world = World::<M>::new(setting, unsafe { &mut *memory });
    let world = Box::into_raw(Box::new(world));
    {
        // SAFETY: made above, and given back below; a model joins its threads before it returns.
        let world = unsafe { &*world };
        model(world);
        world.finish();
    }
    // SAFETY: both come from `Box::into_raw`; the threads that shared them are gone, and the machine goes before its memory.
    unsafe {
        drop(Box::from_raw(world));
        drop(Box::from_raw(memory));
    }
}

// ---- words ----

/// Two singles for two: each gets one, though both see the same bit first. One for two: one gets it.
#[test]
fn a_single_frame_goes_to_one() {
    const TWO: Setting = Setting::word(&[one(5), one(9)]);
    explore::<Bare>("two singles for two", 5, TWO, |world| {
        let (ours, theirs) = both(|| world.take(0), || world.take(0));
        assert!(ours.is_some() && theirs.is_some());
    });
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Bare>("one single for two", 5, ONE, |world| {
        let (ours, theirs) = both(|| world.take(0), || world.take(0));
        assert!(ours.is_some() != theirs.is_some());
    });
}

/// A run of four and a single frame next to it: both are served. Only the run: it goes whole, or loses one frame to the other.
#[test]
fn a_run_is_taken_whole_or_not_at_all() {
    const BESIDE: Setting = Setting::word(&[FrameRange::new(4, 8), one(9)]);
    explore::<Bare>("a run, a single beside it", 5, BESIDE, |world| {
        let (run, single) = both(|| world.take(2), || world.take(0));
        assert!(run.is_some() && single.is_some());
    });
    explore::<Bare>("a run, a single out of it", 3, BESIDE, |world| {
        let (run, single) = both(|| world.take(2), || world.take_at(5, 0));
        assert!(run.is_some() != single.is_some());
    });
    const RUN: Setting = Setting::word(&[FrameRange::new(4, 8)]);
    explore::<Bare>("a run or a single of it", 5, RUN, |world| {
        let (run, single) = both(|| world.take(2), || world.take(0));
        assert!(run.is_some() != single.is_some());
    });
    explore::<Bare>("a run for two", 5, RUN, |world| {
        let (ours, theirs) = both(|| world.take(2), || world.take(2));
        assert!(ours.is_some() != theirs.is_some());
    });
}

/// Several bits at once against one of them: a part of a promise is kept, the rest goes back.
#[test]
fn several_at_once_take_what_is_left() {
    const THREE: Setting = Setting::word(&[one(5), one(9), one(20)]);
    explore::<Bare>("three at once, one single", 3, THREE, |world| {
        let (many, single) = both(|| world.take_many(3), || world.take(0));
        assert!(single.is_some() || many.len() == 3);
        assert!(many.len() >= 2);
    });
}

/// What one gives is taken by the other, who sees what was written in the page.
#[test]
fn a_page_is_seen_as_it_was_given() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a frame from hand to hand", 5, NONE, |world| {
        both(|| world.give_at(9, 0), || world.take(0));
    });
}

// ---- blocks as a whole ----

/// All but one frame are free; the last comes back while the block is wanted as a whole: it is taken with all its frames or not at all.
#[test]
fn a_block_is_claimed_when_its_last_frame_is_back() {
    const LAST: Setting = Setting::word(&[FrameRange::new(0, 63)]);
    explore::<Bare>("a block and its last frame", 5, LAST, |world| {
        let wanted = || world.take(6).or_else(|| world.take(6));
        let (block, ()) = both(wanted, || world.give_at(63, 0));
        if block.is_none() {
            let block = world.take(6);
            assert!(block.is_some(), "all of it is free by now");
        }
        world.give_at(0, 6);
        assert!(world.take(6).is_some());
        world.give_at(0, 6);
    });
}

/// A block that is free as a whole: one takes it whole, the other a frame of it. One of them gets it; the other is refused at most
/// because of that.
#[test]
fn a_block_goes_whole_or_in_pieces() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    explore::<Bricks>("a whole block or a frame of it", 3, WHOLE, |world| {
        let (block, single) = both(|| world.take(6), || world.take(0));
        assert!(block.is_some() != single.is_some());
    });
    // All free, but open.
    const OPEN: Setting = Setting::word(&[FrameRange::new(0, 64)]);
    explore::<Bricks>("an open block or a frame of it", 3, OPEN, |world| {
        let (block, single) = both(|| world.take(6), || world.take(0));
        assert!(block.is_some() != single.is_some());
    });
}

/// Two take a block that is free as a whole, whole: one gets it, and the other is told so at once.
#[test]
fn a_whole_block_goes_to_one() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    explore::<Bare>("a whole block for two", None, WHOLE, |world| {
        let (ours, theirs) = both(|| world.take(6), || world.take(6));
        assert!(ours.is_some() != theirs.is_some());
    });
}

/// Two open the same block: both get what they want of it.
#[test]
fn a_block_is_opened_once() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    explore::<Bricks>("a block opened by two", 2, WHOLE, |world| {
        let (ours, theirs) = both(|| world.take(0), || world.take(0));
        assert!(ours.is_some() && theirs.is_some());
    });
}

// ---- several words ----

/// Two whole words are wanted, and a frame of the second: each word goes one way, and what was taken of the first comes back.
#[test]
fn words_that_were_taken_in_vain_come_back() {
    // With as much beside them, so that both are promised what they want.
    const WORDS: Setting = Setting::four_words(Free::Only(&[
        FrameRange::new(0, 128),
        FrameRange::new(192, 256),
    ]));
    explore::<Bare>("two words, a frame of the second", 2, WORDS, |world| {
        let (words, single) = both(|| world.take(7), || world.take_at(70, 0));
        assert!(words.is_some() != single.is_some());
    });
    explore::<Bare>("two words, the second of them", 2, WORDS, |world| {
        let (words, word) = both(|| world.take(7), || world.take_at(64, 6));
        assert!(words.is_some() != word.is_some());
    });
}

/// As above, and who took the frame asks for any other: there is one at any time.
#[test]
fn a_single_frame_is_found_behind_an_undo() {
    const WORDS: Setting = Setting::four_words(Free::Only(&[FrameRange::new(0, 128), one(192)]));
    explore::<Bricks>("two words, a frame of them, another", 1, WORDS, |world| {
        let singles = || [world.take_at(70, 0), world.take(0)];
        let (words, singles) = both(|| world.take(7), singles);
        let [exact, any] = singles.map(|single| single.is_some());
        assert!(any, "order-0-succeeds");
        assert!(words.is_some() != exact);
    });
}

// ---- groups ----

/// Two blocks are wanted as one, and one of them alone: both or one of them go, and what was taken in vain comes back whole.
#[test]
fn blocks_that_were_taken_in_vain_come_back() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    explore::<Bare>("two blocks, one of them", 3, PAIR, |world| {
        let (pair, block) = both(|| world.take(7), || world.take(6));
        assert!(pair.is_some() != block.is_some());
        match (pair, block) {
            (Some(pair), _) => world.give(pair, 7),
            (_, Some(block)) => world.give(block, 6),
            _ => {}
        }
        let pair = world.take(7).expect("both are back");
        world.give(pair, 7);
    });
    explore::<Bare>("two blocks, the lower one", 3, PAIR, |world| {
        let (pair, block) = both(|| world.take(7), || world.take_at(0, 6));
        assert!(pair.is_some() != block.is_some());
    });
}

/// As above, with a frame of one of them, through the zone: the frame is to be had unless both blocks went as one.
#[test]
fn a_group_goes_whole_or_in_pieces() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    explore::<Bricks>("two blocks, a frame of one", 2, PAIR, |world| {
        let (pair, single) = both(|| world.take(7), || world.take(0));
        assert!(pair.is_some() != single.is_some());
    });
}

// ---- the summary ----

/// A frame comes and another goes, so that the block leaves its sets, enters others, or both in turn: afterwards it is in exactly those it
/// belongs to (`check`), and the one free frame is found (`finish`).
#[test]
fn sets_follow_what_comes_and_goes() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("into the sets and out again", 5, NONE, |world| {
        both(|| world.give_at(9, 0), || world.take(0));
    });
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Bare>("out of the sets and in again", 5, ONE, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(9, 0));
        assert!(taken.is_some(), "one is free at any time");
    });
    // With the third frame it is in another grade, with its buddy in another set of runs.
    const TWO: Setting = Setting::word(&[one(4), one(20)]);
    explore::<Bare>("from set to set", 5, TWO, |world| {
        both(
            || world.take_at(4, 0),
            || {
                world.give_at(5, 0);
                world.give_at(21, 0);
            },
        );
    });
}

/// A thread that gives and takes against one that takes and gives: the block goes in and out more than once.
#[test]
fn sets_follow_what_goes_and_comes_back() {
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Bricks>("in, out, in", 2, ONE, |world| {
        let take_and_give = || {
            let frame = world.take(0);
            frame.map(|frame| world.give(frame, 0)).is_some()
        };
        let (ours, theirs) = both(take_and_give, take_and_give);
        assert!(ours || theirs);
    });
}

/// A summary of two levels, and two blocks that share a word of the lower one: the bit above is set as long as one of them is in the set.
#[test]
fn a_bit_above_stays_as_long_as_one_below() {
    const TWO: Setting = Setting {
        blocks: 65,
        max_order: 6,
        memory: 2,
        ..Setting::blocks(2, Free::Only(&[one(5)]))
    };
    explore::<Bare>("two levels, one out and one in", 5, TWO, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(70, 0));
        assert!(taken.is_some(), "one is free at any time");
        // A request for one frame would look at the blocks themselves in the end.
        let found = world.machine.can_serve(&request(0));
        assert!(found, "a bit above is missing");
    });
}

// ---- partial frees ----

/// What two parts of one block are, and who frees which.
#[derive(Debug, Clone, Copy)]
struct Parts {
    whole: u8,
    ours: (usize, u8),
    theirs: (usize, u8),
}

/// A block in use, two parts of which are freed at the same time: both frees are accepted, and where the parts are all of it, it can be taken again.
fn in_two_parts(name: &str, bound: usize, setting: Setting, parts: Parts) {
    explore::<Bare>(name, bound, setting, move |world| {
        let Parts {
            whole,
            ours,
            theirs,
        } = parts;
        let block = world.take(whole).unwrap().number();
        both(
            || world.give_at(block + ours.0, ours.1),
            move || world.give_at(block + theirs.0, theirs.1),
        );
        if ours.1 == theirs.1 {
            let again = world.take(whole).expect("all of it is free");
            world.give(again, whole);
        }
    });
}

/// Inside a word: a block of four frames.
#[test]
fn a_small_block_is_freed_in_two_parts() {
    const FOUR: Setting = Setting::word(&[FrameRange::new(4, 8)]);
    let parts = |ours, theirs| Parts {
        whole: 2,
        ours,
        theirs,
    };
    in_two_parts("halves of four frames", 3, FOUR, parts((0, 1), (2, 1)));
    in_two_parts("a half and the last frame", 3, FOUR, parts((0, 1), (3, 0)));
    in_two_parts("the first frame and a half", 3, FOUR, parts((0, 0), (2, 1)));
}

/// A page block, which has to be opened first.
#[test]
fn a_page_block_is_freed_in_two_parts() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    let parts = |ours, theirs| Parts {
        whole: 6,
        ours,
        theirs,
    };
    in_two_parts("halves of a page block", 1, WHOLE, parts((0, 5), (32, 5)));
    in_two_parts("a half and a frame", 1, WHOLE, parts((0, 5), (63, 0)));
}

/// Blocks of several words, in parts of a word and more.
#[test]
fn words_are_freed_in_two_parts() {
    const WHOLE: Setting = Setting::four_words(Free::All);
    let parts = |whole, ours, theirs| Parts {
        whole,
        ours,
        theirs,
    };
    in_two_parts("halves of two words", 2, WHOLE, parts(7, (0, 6), (64, 6)));
    in_two_parts("a half and a word", 1, WHOLE, parts(8, (0, 7), (192, 6)));
}

/// Groups of page blocks, in parts of a block and more, and less.
#[test]
fn a_group_is_freed_in_two_parts() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    const FOUR: Setting = Setting {
        blocks: 4,
        max_order: 8,
        memory: 4,
        ..PAIR
    };
    let parts = |whole, ours, theirs| Parts {
        whole,
        ours,
        theirs,
    };
    in_two_parts("halves of two blocks", 5, PAIR, parts(7, (0, 6), (64, 6)));
    in_two_parts("halves of four blocks", 3, FOUR, parts(8, (0, 7), (128, 7)));
    in_two_parts(
        "two blocks and the last",
        3,
        FOUR,
        parts(8, (0, 7), (192, 6)),
    );
    in_two_parts(
        "a block and half a block",
        2,
        PAIR,
        parts(7, (0, 6), (96, 5)),
    );
}

// ---- double frees ----

/// A frame that two free at the same time: one succeeds, the other is told, and it is free once.
#[test]
fn a_frame_is_freed_once() {
    const NONE: Setting = Setting::word(&[one(20)]);
    explore::<Bare>("a frame freed twice at once", None, NONE, |world| {
        let frame = Frame::new(9);
        world.disown(frame);
        let free = move || world.free(frame);
        let (ours, theirs) = both(free, free);
        assert!(ours.is_ok() != theirs.is_ok(), "{ours:?} {theirs:?}");
        assert_eq!(ours.and(theirs), Err(FreeError::DoubleFree));
    });
}

/// A frame of a block that is free as a whole, freed by who does not own it while another opens the block: it is refused at every moment.
#[test]
fn a_block_that_is_opened_refuses_bad_frees() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    explore::<Bare>("a block opened, and a bad free", 3, WHOLE, |world| {
        let (taken, freed) = both(|| world.take(0), move || world.free(Frame::new(40)));
        assert!(taken.is_some());
        assert_eq!(freed, Err(FreeError::DoubleFree));
    });
}

// ---- over-estimated runs ----

/// A free that looks at bits promised already may call a run larger than it is: afterwards a request for such a run is refused, and what
/// remains is known exactly.
#[test]
fn a_run_that_is_none_is_found_out() {
    const BUDDY: Setting = Setting::word(&[one(8)]);
    explore::<Bare>("a run of a promised bit", 5, BUDDY, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(9, 0));
        assert!(taken.is_some(), "one is free at any time");
        world.check();
        assert_eq!(world.take(1), None, "one frame is no pair");
        world.check();
        assert_eq!(world.take(1), None);
        world.give(taken.unwrap(), 0);
        if world.unowned() == 2 && taken == Some(Frame::new(8)) {
            let pair = world.take(1).expect("both are free");
            world.give(pair, 1);
        }
    });
}

// ---- stashes ----

/// The only frame lies in a CPU's stash, or is given to it while another CPU looks for one: found, or in use when the other looked.
#[test]
fn the_last_frame_is_found_in_a_stash() {
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Stashed>("the last frame, in a stash", 2, ONE, |world| {
        let frame = world.take(0).unwrap();
        world.give(frame, 0);
        assert_eq!(world.machine.cached_frames(), 1);
        let frame = on_cpu(1, || world.take(0)).join().unwrap();
        world.give(frame.expect("order-0-succeeds"), 0);
    });
    explore::<Stashed>("the last frame, given meanwhile", 5, ONE, |world| {
        let frame = world.take(0).unwrap();
        let ((), found) = both(|| world.give(frame, 0), || world.take(0));
        if found.is_none() {
            assert!(world.take(0).is_some());
        }
    });
}

/// Two frames, two CPUs with at most one each: nobody is refused, wherever the frames lie.
#[test]
fn a_frame_free_anywhere_is_found() {
    const TWO: Setting = Setting::word(&[one(5), one(20)]);
    let take_and_give = |world: &World<Stashed>| {
        let frame = world.take(0).expect("order-0-succeeds");
        world.give(frame, 0);
    };
    explore::<Stashed>("stashes, two users", 2, TWO, move |world| {
        both(|| take_and_give(world), move || take_and_give(world));
    });
    explore::<Stashed>("stashes, both frames in one", 2, TWO, move |world| {
        let frames = [world.take(0).unwrap(), world.take(0).unwrap()];
        for frame in frames {
            world.give(frame, 0);
        }
        assert_eq!(world.machine.cached_frames(), 2);
        both(|| take_and_give(world), move || take_and_give(world));
    });
}

/// A stash that is filled and flushed, against one that looks for its only frame in it: a frame is free all the while, now in the store, now in the stash.
#[test]
fn a_frame_is_found_on_its_way() {
    const TWO: Setting = Setting::word(&[one(5), one(20)]);
    const THREE: Setting = Setting::word(&[one(5), one(9), one(20)]);
    explore::<Stashed>("the last frame, flushed meanwhile", 2, THREE, |world| {
        let ours = [0; 3].map(|order| world.take(order).unwrap());
        // Two fill the stash; with the third it gives one back.
        world.give(ours[0], 0);
        world.give(ours[1], 0);
        let other = on_cpu(1, || world.take(0));
        world.give(ours[2], 0);
        let frame = other.join().unwrap().expect("order-0-succeeds");
        world.give(frame, 0);
    });
    explore::<Stashed>("the last frame, fetched meanwhile", 2, TWO, |world| {
        // One CPU fetches one of two; the other is there for whoever comes.
        let other = on_cpu(1, || world.take(0));
        let ours = world.take(0);
        assert!(ours.is_some(), "order-0-succeeds");
        assert!(other.join().unwrap().is_some(), "order-0-succeeds");
    });
}

/// One frame free at any time, but not the same one: a user frees its frame where the other has looked already, and takes, on another
/// CPU, the one that the other has yet to find.
#[test]
fn a_frame_freed_behind_ones_back_is_found() {
    const TWO: Setting = Setting {
        cpus: CPUS,
        ..Setting::word(&[one(5), one(20)])
    };
    explore::<Stashed>("stashes, a user that migrates", 2, TWO, |world| {
        move_to(1);
        let (ours, cached) = (world.take(0).unwrap(), world.take(0).unwrap());
        world.give(cached, 0);
        let migrant = on_cpu(0, move || {
            world.give(ours, 0);
            move_to(1);
            world.take(0).expect("order-0-succeeds")
        });
        move_to(2);
        let frame = world.take(0).expect("order-0-succeeds");
        world.give(frame, 0);
        let frame = migrant.join().unwrap();
        world.give(frame, 0);
    });
}

// ---- what must be found ----

/// A thread that frees what it no longer owns while another takes it: the frame that both think theirs has two owners.
#[test]
#[should_panic(expected = "has two owners")]
fn a_frame_used_after_its_free_is_found() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a frame kept after its free", 2, NONE, |world| {
        both(
            || {
                // The mistake: it is given first and disowned later.
                world.free(Frame::new(9)).unwrap();
                thread::yield_now();
                world.disown(Frame::new(9));
            },
            || world.take(0),
        );
    });
}

/// A page written after its free.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_page_written_after_its_free_is_found() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a page written after its free", 2, NONE, |world| {
        both(
            || {
                world.give_at(9, 0);
                // The mistake.
                world.write_to(Frame::new(9));
            },
            || world.take(0),
        );
    });
}
