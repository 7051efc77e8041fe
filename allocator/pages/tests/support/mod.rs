//! What the rule tests share: several CPUs on one thread, zones in leaked memory, looks into a
//! zone.
//!
//! The tests of the zones of other make use it too.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod contiguous;
pub(crate) mod contract;
pub(crate) mod owner;

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use brickyard::bitmap::Bitmap;
use brickyard::block::{Census, State, Use};
use brickyard::check::Violation;
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::stash::{CpuStash, Stash, StashSizes};
use brickyard::stats::ZoneSnapshot;
use brickyard::sync::{AtomicU8, AtomicU64 as Word, Slot, SlotAccess};
use brickyard::watermark::Marks;
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, InterruptState, MigrateType, Mobility, Order, Platform,
    Request, Zone, ZoneKind, ZonePlan,
};

// ---- the platform ----

/// A machine of several CPUs of which one runs at a time.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    cpu: AtomicUsize,
    interrupt: AtomicBool,
    masked: AtomicUsize,
    masks: AtomicUsize,
    pinned: AtomicUsize,
    interruptions: AtomicUsize,
    waits: AtomicUsize,
    out_of_reach: AtomicBool,
    reached_by_interrupt: AtomicBool,
    clock: AtomicU64,
}

// One thread uses all of it, so every access can be relaxed.
const ONE_THREAD: Ordering = Ordering::Relaxed;

/// How often one test may wait: with one thread nobody else ever ends a wait.
const PATIENCE: usize = 10_000;

impl Cpus {
    /// CPU 0 runs, outside any interrupt. It lives as long as the test process.
    pub(crate) fn new() -> &'static Self {
        Box::leak(Box::default())
    }

    /// From now on `cpu` runs.
    pub(crate) fn switch_to(&self, cpu: usize) {
        self.cpu.store(cpu, ONE_THREAD);
    }

    /// From now on the running CPU is in an interrupt, or no longer.
    pub(crate) fn set_interrupt(&self, interrupt: bool) {
        self.interrupt.store(interrupt, ONE_THREAD);
    }

    /// From now on no other CPU can be made to run anything.
    pub(crate) fn put_others_out_of_reach(&self) {
        self.out_of_reach.store(true, ONE_THREAD);
    }

    /// From now on what a CPU is made to run for another runs there in an interrupt.
    pub(crate) fn reach_others_by_interrupt(&self) {
        self.reached_by_interrupt.store(true, ONE_THREAD);
    }

    /// How often interrupts were masked.
    pub(crate) fn masks(&self) -> usize {
        self.masks.load(ONE_THREAD)
    }

    /// How often somebody waited for another CPU.
    pub(crate) fn waits(&self) -> usize {
        self.waits.load(ONE_THREAD)
    }

    /// How often a CPU was interrupted to run something for another.
    pub(crate) fn interruptions(&self) -> usize {
        self.interruptions.load(ONE_THREAD)
    }

    /// How often the clock was read: it goes on by one tick at each reading.
    pub(crate) fn clock_readings(&self) -> u64 {
        self.clock.load(ONE_THREAD)
    }

    /// Nothing is masked and nobody pinned?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.masked.load(ONE_THREAD) == 0 && self.pinned.load(ONE_THREAD) == 0
    }
}

impl Platform for Cpus {
    fn cpu(&self) -> usize {
        self.cpu.load(ONE_THREAD)
    }

    fn pin(&self) -> usize {
        self.pinned.fetch_add(1, ONE_THREAD);
        self.cpu()
    }

    fn unpin(&self) {
        self.pinned.fetch_sub(1, ONE_THREAD);
    }

    fn in_interrupt(&self) -> bool {
        self.interrupt.load(ONE_THREAD)
    }

    fn mask_interrupts(&self) -> InterruptState {
        self.masks.fetch_add(1, ONE_THREAD);
        InterruptState(self.masked.fetch_add(1, ONE_THREAD))
    }

    fn restore_interrupts(&self, found: InterruptState) {
        let masked = self.masked.fetch_sub(1, ONE_THREAD);
        assert_eq!(masked, found.0 + 1, "interrupts restored out of order");
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        if self.out_of_reach.load(ONE_THREAD) {
            return false;
        }
        assert_no_lock_held();
        self.interruptions.fetch_add(1, ONE_THREAD);
        let here = self.cpu.swap(cpu, ONE_THREAD);
        let by_interrupt = self.reached_by_interrupt.load(ONE_THREAD);
        let interrupt = self.interrupt.swap(by_interrupt, ONE_THREAD);
        work();
        self.interrupt.store(interrupt, ONE_THREAD);
        self.cpu.store(here, ONE_THREAD);
        true
    }

    fn relax(&self) {
        let waits = self.waits.fetch_add(1, ONE_THREAD);
        assert!(
            waits < PATIENCE,
            "one thread waits for nobody: a lock was not given up"
        );
    }

    /// The clock is read at the zone's lock only, and there interrupts are masked.
    fn ticks(&self) -> u64 {
        assert!(self.masked.load(ONE_THREAD) > 0, "interrupts at a lock");
        self.clock.fetch_add(1, ONE_THREAD)
    }
}

// ---- locks ----

thread_local! {
    /// How many locks that count themselves are held. A test runs on a thread of its own, so tests
    /// do not see each other.
    pub(crate) static LOCKS_HELD: Cell<usize> = const { Cell::new(0) };
}

/// No lock that counts itself is held on this thread.
pub(crate) fn assert_no_lock_held() {
    assert_eq!(LOCKS_HELD.get(), 0, "locks held");
}

// ---- zones ----

/// A zone of the default design.
pub(crate) type Bricks<A> = Zone<'static, &'static Cpus, A>;

/// Orders up to 7 and page blocks of order 6, small enough to count by hand, with two CPUs. Half a
/// block's order is 3.
pub(crate) const fn small(frames: usize) -> ZonePlan {
    ZonePlan {
        max_order: Order::new(7),
        page_block_order: Order::new(6),
        ..linux(frames)
    }
}

/// The orders and page blocks of Linux; stashes that may hold more than their share of so little.
pub(crate) const fn linux(frames: usize) -> ZonePlan {
    linux_at(0, frames)
}

/// The same from one frame to another.
pub(crate) const fn linux_at(start: usize, end: usize) -> ZonePlan {
    ZonePlan {
        stash: StashSizes::LARGEST,
        ..ZonePlan::new(ZoneKind::Normal, FrameRange::new(start, end), 2)
    }
}

/// So much memory as lives as long as the test process.
pub(crate) fn leaked(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    vec![MaybeUninit::uninit(); bytes].leak()
}

/// What lives as long as the test process.
pub(crate) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A zone by `plan` without memory.
pub(crate) fn empty<P: Platform, A: SlotAccess>(
    plan: &ZonePlan,
    platform: P,
) -> Zone<'static, P, A> {
    let memory = leaked(Zone::<P, A>::bytes(plan));
    Zone::new(plan, platform, memory).expect("as much memory as it asks for")
}

/// The same with all of its span free.
pub(crate) fn full<P: Platform, A: SlotAccess>(
    plan: &ZonePlan,
    platform: P,
) -> Zone<'static, P, A> {
    let zone = empty(plan, platform);
    assert_eq!(zone.add(plan.span), Ok(plan.span.len()));
    zone
}

/// So many frames by the plan `linux` for so many CPUs, all free; it lives as long as the test
/// process.
pub(crate) fn lasting<P: Platform, A: SlotAccess>(
    frames: usize,
    cpus: usize,
    platform: P,
) -> &'static Zone<'static, P, A> {
    let plan = ZonePlan {
        cpus,
        ..linux(frames)
    };
    kept(full(&plan, platform))
}

/// A store by itself.
pub(crate) fn bitmap(span: FrameRange, max: Order, block: Order) -> Bitmap<'static> {
    let words = (0..Bitmap::words(span, max, block)).map(|_| Word::new(0));
    let classes = (0..Bitmap::classes(span, block)).map(|_| AtomicU8::new(0));
    let (words, classes): (Vec<_>, Vec<_>) = (words.collect(), classes.collect());
    Bitmap::new(span, max, block, words.leak(), classes.leak())
}

/// The slots of a zone's stash.
pub(crate) type Slots<A> = &'static [Slot<A, CpuStash>];

/// A zone of so many frames, all free, with two slots that the test may go into itself.
pub(crate) fn with_slots<P: Platform, A: SlotAccess>(
    frames: usize,
    platform: P,
) -> (Zone<'static, P, A>, Slots<A>) {
    let span = FrameRange::new(0, frames);
    let slots: Vec<_> = (0..2).map(|_| Slot::new(CpuStash::new())).collect();
    let slots: Slots<A> = slots.leak();
    let store = bitmap(span, Order::DEFAULT_MAX, Order::HUGE);
    let stash = Stash::new(slots, StashSizes::LARGEST);
    let zone = Zone::of(ZoneKind::Normal, platform, store, stash);
    assert_eq!(zone.add(span), Ok(frames));
    (zone, slots)
}

/// These zones as the only node.
pub(crate) fn one_node<Z: AnyZone>(zones: &[Z]) -> Nodes<'_, Z> {
    Nodes::new(Box::leak(Box::new([Node::new(0, zones)])))
}

/// The same with hooks.
pub(crate) fn hooked_node<Z: AnyZone, H: Reclaim + Migrate>(
    zones: &[Z],
    hooks: H,
    slow_path: SlowPath,
) -> Nodes<'_, Z, H> {
    Nodes::with_hooks(Box::leak(Box::new([Node::new(0, zones)])), hooks, slow_path)
}

/// The same mark for all.
pub(crate) const fn all_at(mark: usize) -> Marks {
    let (min, low, high) = (mark, mark, mark);
    Marks { min, low, high }
}

/// From now on a zone has these marks, and nothing is held back from any kind of request.
pub(crate) fn set_marks<Z: AnyZone>(zone: &Z, marks: Marks) {
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
}

// ---- hooks ----

/// Hooks that give the same answer each time, and count how often they are asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hooks {
    /// What is freed at each call, if that is ever tried.
    frees: Option<usize>,
    /// What becomes of a block that is to be moved, if that is ever tried.
    moves: Option<Migration>,
    asked: &'static AtomicUsize,
}

impl Hooks {
    pub(crate) fn new(frees: Option<usize>, moves: Option<Migration>) -> Self {
        let asked = kept(AtomicUsize::new(0));
        Self {
            frees,
            moves,
            asked,
        }
    }

    /// How often they were asked to free or to move something.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(ONE_THREAD)
    }
}

impl Reclaim for Hooks {
    fn reclaims(&self) -> bool {
        self.frees.is_some()
    }

    fn reclaim(&self, _: &Need) -> usize {
        self.asked.fetch_add(1, ONE_THREAD);
        self.frees.unwrap_or(0)
    }
}

impl Migrate for Hooks {
    fn moves(&self) -> bool {
        self.moves.is_some()
    }

    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        self.asked.fetch_add(1, ONE_THREAD);
        self.moves.unwrap_or(Migration::Unknown)
    }
}

// ---- chance ----

/// Numbers that look random, the same in every run.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// The numbers below `count` in some order.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}

/// Who has which frame, known independently of the allocator: panics where one is handed out twice.
#[derive(Debug)]
pub(crate) struct Owned {
    span: FrameRange,
    taken: Vec<bool>,
}

impl Owned {
    /// Nobody has any.
    pub(crate) fn none_of(span: FrameRange) -> Self {
        let taken = vec![false; span.len()];
        Self { span, taken }
    }

    fn set(&mut self, at: Frame, order: u8, taken: bool) {
        let block = FrameRange::of_block(at, Order::new(order));
        assert!(self.span.covers(block), "{at} order {order} is outside");
        assert!(at.is_aligned(Order::new(order)), "{at} order {order}");
        let first = at.number() - self.span.start.number();
        for slot in &mut self.taken[first..first + block.len()] {
            assert_ne!(*slot, taken, "{at} order {order} has two owners, or none");
            *slot = taken;
        }
    }

    /// A block was handed out.
    pub(crate) fn take(&mut self, at: Frame, order: u8) {
        self.set(at, order, true);
    }

    /// A block is about to be freed.
    pub(crate) fn give(&mut self, at: Frame, order: u8) {
        self.set(at, order, false);
    }

    /// How many frames are owned.
    pub(crate) fn count(&self) -> usize {
        self.taken.iter().filter(|&&taken| taken).count()
    }
}

// ---- requests ----

/// A request by the number of its order.
pub(crate) const fn request(order: u8, mobility: Mobility) -> Request {
    Request::new(Order::new(order), mobility)
}

/// A frame by its number.
pub(crate) const fn frame(number: usize) -> Frame {
    Frame::new(number)
}

/// One frame that may be moved.
pub(crate) const MOVABLE: Request = Request::page(Mobility::Movable);
/// One frame that stays.
pub(crate) const UNMOVABLE: Request = Request::page(Mobility::Unmovable);
/// One frame that can be given back.
pub(crate) const RECLAIMABLE: Request = Request::page(Mobility::Reclaimable);

/// So many single frames.
pub(crate) fn take<Z: AnyZone>(zone: &Z, frames: usize, mobility: Mobility) -> Vec<Frame> {
    take_of(zone, frames, 0, mobility)
}

/// So many blocks of an order.
pub(crate) fn take_of<Z: AnyZone>(zone: &Z, count: usize, order: u8, kind: Mobility) -> Vec<Frame> {
    let take = || zone.alloc(&request(order, kind)).expect("memory enough");
    core::iter::repeat_with(take).take(count).collect()
}

/// Takes a block and frees it: it lies in the stash of the CPU then, if that keeps such blocks.
pub(crate) fn use_one<Z: AnyZone>(zone: &Z, request: &Request) -> Frame {
    let at = zone.alloc(request).expect("memory enough");
    free(zone, at, request.order.get());
    at
}

/// Frees single frames one by one.
pub(crate) fn give<Z: AnyZone>(zone: &Z, frames: &[Frame]) {
    give_all(zone, frames, 0);
}

/// Frees blocks of one order, one by one.
pub(crate) fn give_all<Z: AnyZone>(zone: &Z, blocks: &[Frame], order: u8) {
    blocks.iter().for_each(|&at| free(zone, at, order));
}

/// Frees blocks of the orders that are said of each.
pub(crate) fn give_held<Z: AnyZone>(zone: &Z, held: &[(Frame, u8)]) {
    held.iter().for_each(|&(at, order)| free(zone, at, order));
}

/// So many single frames in one request.
pub(crate) fn take_bulk<A: SlotAccess>(
    zone: &Bricks<A>,
    page: &Request,
    frames: usize,
) -> Vec<Frame> {
    let mut taken = vec![Frame::new(0); frames];
    assert_eq!(zone.alloc_bulk(page, &mut taken), Ok(frames));
    taken
}

/// Single frames until there are no more.
pub(crate) fn take_all<Z: AnyZone>(zone: &Z, mobility: Mobility) -> Vec<Frame> {
    core::iter::from_fn(|| zone.alloc(&Request::page(mobility)).ok()).collect()
}

/// Blocks of an order until there are no more.
pub(crate) fn take_all_of<Z: AnyZone>(zone: &Z, order: u8, mobility: Mobility) -> Vec<Frame> {
    core::iter::from_fn(|| zone.alloc(&request(order, mobility)).ok()).collect()
}

/// Frees the block of the order with this number.
pub(crate) fn free<Z: AnyZone>(zone: &Z, at: Frame, order: u8) {
    assert_eq!(zone.free(at, Order::new(order)), Ok(()), "{at} {order}");
}

// ---- looks into a zone ----

/// What the block is that `at` lies in.
pub(crate) fn state<Z: AnyZone>(zone: &Z, at: Frame) -> State {
    zone.block_of(at).expect("memory of the zone").1
}

/// All of a block is in use as one.
pub(crate) fn assert_in_use<Z: AnyZone>(zone: &Z, at: Frame, order: u8) {
    let (first, state) = zone.block_of(at).expect("memory of the zone");
    let found = (first, state.usage, state.order);
    assert_eq!(found, (at, Use::Allocated, Order::new(order)));
}

/// What `at` is used for.
pub(crate) fn usage<Z: AnyZone>(zone: &Z, at: Frame) -> Use {
    state(zone, at).usage
}

/// How many of `frames` lie in the store, free.
pub(crate) fn count_free<Z: AnyZone>(zone: &Z, frames: &[Frame]) -> usize {
    let free = frames.iter().filter(|&&at| usage(zone, at) == Use::Free);
    free.count()
}

/// The list that `at` is on.
pub(crate) fn list_of<Z: AnyZone>(zone: &Z, at: Frame) -> MigrateType {
    let state = state(zone, at);
    assert_eq!(state.usage, Use::Free, "{at} is not free");
    state.kind
}

/// Free frames on the lists of a type.
pub(crate) fn free_of<Z: AnyZone>(zone: &Z, kind: MigrateType) -> usize {
    let by_order = zone.snapshot(0).free;
    let frames = by_order.iter().enumerate();
    frames.map(|(order, by)| by[kind.index()] << order).sum()
}

/// Free blocks by order, up to order 10.
pub(crate) fn by_order<Z: AnyZone>(zone: &Z) -> [usize; 11] {
    let counts = zone.free_counts().by_order;
    assert!(counts[11..].iter().all(|&blocks| blocks == 0));
    core::array::from_fn(|order| counts[order])
}

/// Page blocks of a type.
pub(crate) fn blocks_of<Z: AnyZone>(zone: &Z, kind: MigrateType) -> usize {
    zone.snapshot(0).blocks[kind.index()]
}

/// All that can be seen of a zone.
pub(crate) type Seen = (ZoneSnapshot, Census, usize, usize);

/// All that can be seen of a zone, after a test of every invariant.
pub(crate) fn seen<Z: AnyZone>(zone: &Z) -> Seen {
    let census = sound(zone);
    let (free, cached) = (zone.free_frames(), zone.cached_frames());
    assert_eq!((free, cached), (census.free, census.cached));
    (zone.snapshot(0), census, free, cached)
}

/// Every invariant holds and no lock is held.
pub(crate) fn sound<Z: AnyZone>(zone: &Z) -> Census {
    assert_no_lock_held();
    let census: Result<Census, Violation> = zone.check();
    census.expect("every invariant")
}

/// Memory was lacking: so much was free, and so much in caches.
pub(crate) const fn exhausted(free: usize, cached: usize) -> AllocError {
    AllocError::Exhausted { free, cached }
}

/// So much was free, and in no block of this order.
pub(crate) const fn fragmented(order: u8, free: usize) -> AllocError {
    let (order, index) = (Order::new(order), None);
    AllocError::Fragmented { order, free, index }
}

/// No zone has blocks of this order.
pub(crate) const fn too_large(order: u8, max: u8) -> AllocError {
    let (order, max) = (Order::new(order), Order::new(max));
    AllocError::OrderTooLarge { order, max }
}
