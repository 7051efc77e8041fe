//! When memory is short or in pieces: how the hooks are called and how often, lumpy reclaim,
//! compaction with its deferral and its capture, contiguous ranges, and memory taken offline. What
//! fails is undone.

#![cfg(not(loom))]

mod support;

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use brickyard::block::Use;
use brickyard::node::{Compaction, Lumpy, Node, Nodes, SlowPath};
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{
    Activity, ContiguousRequest, Eviction, Migrate, Migration, Need, NoHooks, Reclaim, Why,
    alloc_contiguous, offline,
};
use brickyard::sync::{Exclusive, Shared};
use brickyard::watermark::Marks;
use brickyard::{
    AllocError, AnyZone, Context, Frame, FrameRange, FreeError, Mobility, Order, Platform,
    RangeError, Request, ZoneKind,
};
use brickyard_classics::front::{Direct, Front};
use brickyard_classics::store::grouping::{Grouping, NoGrouping, TwoKinds};
use brickyard_classics::{LabZone, Placed};

use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, UNMOVABLE, ZoneLock, assert_no_lock_held, exhausted,
    frame, free, full, linux, request, seen, small, sound, state, take_all, usage,
};

type Plain = Parts<NoGrouping, Direct>;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// A zone of so many frames with orders up to 7, all free.
fn plain(frames: usize) -> Plain {
    full(&small(frames), Cpus::new())
}

/// The same, all in use as single movable pages.
fn in_use(frames: usize) -> Plain {
    let zone = plain(frames);
    assert_eq!(take_all(&zone, Mobility::Movable).len(), frames);
    zone
}

/// The same, with every second page freed.
fn scattered(frames: usize) -> Plain {
    let zone = in_use(frames);
    for at in (1..frames).step_by(2) {
        free(&zone, frame(at), 0);
    }
    zone
}

// ---- an embedder ----

/// The owner of all movable pages of a zone. It moves them, and answers in another way where it is
/// told to.
struct Owner<'z, Z: AnyZone> {
    zone: &'z Z,
    pages: RefCell<BTreeMap<Frame, Order>>,
    answer: Option<Migration>,
    moves: RefCell<Vec<(Frame, Frame)>>,
    reclaims: Cell<usize>,
}

impl<'z, Z: AnyZone<Platform = &'static Cpus>> Owner<'z, Z> {
    /// Every movable block in use is its own.
    fn of(zone: &'z Z) -> Self {
        let mut pages = BTreeMap::new();
        for at in zone.span().frames() {
            let block = zone.block_of(at).filter(|(first, _)| *first == at);
            if let Some((first, state)) = block
                && state.usage == Use::Allocated
                && state.kind == Mobility::Movable.into()
            {
                pages.insert(first, state.order);
            }
        }
        Self {
            zone,
            pages: RefCell::new(pages),
            answer: None,
            moves: RefCell::new(Vec::new()),
            reclaims: Cell::new(0),
        }
    }

    /// The same, which always answers this and does nothing.
    fn saying(zone: &'z Z, answer: Migration) -> Self {
        Self {
            answer: Some(answer),
            ..Self::of(zone)
        }
    }

    /// How often it was asked to move something.
    fn asked(&self) -> usize {
        self.moves.borrow().len()
    }

    /// Each of its pages is in use where it thinks it is, and no other movable block is.
    fn owns_what_is_in_use(&self) {
        sound(self.zone);
        let now = Self::of(self.zone);
        assert_eq!(*self.pages.borrow(), *now.pages.borrow());
    }
}

/// The hook's caller holds no lock and has masked nothing.
fn assert_quiet<Z: AnyZone<Platform = &'static Cpus>>(zone: &Z) {
    assert_no_lock_held();
    assert!(zone.platform().is_at_rest(), "masked or pinned in a hook");
}

impl<Z: AnyZone<Platform = &'static Cpus>> Migrate for Owner<'_, Z> {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        assert_quiet(self.zone);
        self.moves.borrow_mut().push((from, to));
        // The new place is allocated already.
        let place = state(self.zone, to);
        assert_eq!((place.usage, place.order), (Use::Allocated, order));
        if let Some(answer) = self.answer {
            return answer;
        }
        let mut pages = self.pages.borrow_mut();
        match pages.remove(&from) {
            Some(own) => {
                assert_eq!(own, order);
                pages.insert(to, order);
                Migration::Moved
            }
            None => Migration::Unknown,
        }
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Reclaim for Owner<'_, Z> {
    fn reclaim(&self, _: &Need) -> usize {
        assert_quiet(self.zone);
        self.reclaims.set(self.reclaims.get() + 1);
        0
    }
}

// ---- how the hooks are called ----

/// Uses the zone inside each hook, and counts their calls: wake, reclaim, migrate, oldest, evict.
struct Busybody<'z, Z: AnyZone> {
    zone: &'z Z,
    calls: [Cell<usize>; 5],
}

impl<Z: AnyZone<Platform = &'static Cpus>> Busybody<'_, Z> {
    fn called(&self, hook: usize) {
        assert_quiet(self.zone);
        self.calls[hook].set(self.calls[hook].get() + 1);
        // With a lock held this would hang: the strict locks panic.
        if let Ok(page) = self.zone.alloc(&UNMOVABLE) {
            free(self.zone, page, 0);
        }
        self.zone.drain();
        assert_quiet(self.zone);
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Reclaim for Busybody<'_, Z> {
    fn reclaim(&self, _: &Need) -> usize {
        self.called(1);
        0
    }

    fn oldest(&self, _: FrameRange) -> Option<(Frame, Activity)> {
        self.called(3);
        Some((frame(100), Activity::Inactive))
    }

    fn evict(&self, _: Frame, _: Activity) -> Eviction {
        self.called(4);
        Eviction::Busy
    }

    fn wake(&self, _: &Need) {
        self.called(0);
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Migrate for Busybody<'_, Z> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        self.called(2);
        Migration::Later
    }
}

/// Every way into the hooks, on a zone of 256 frames with front `F`, every second frame of it in
/// use.
fn hooks_are_called_freely<F>()
where
    F: Front<Blocks, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zones: [Parts<Blocks, F>; 1] = [full(&small(256), Cpus::new())];
    let zone = &zones[0];
    for at in take_all(zone, Mobility::Movable) {
        if at.number() % 2 == 1 {
            free(zone, at, 0);
        }
    }
    let hooks = Busybody {
        zone,
        calls: [const { Cell::new(0) }; 5],
    };
    let node = [Node::new(0, &zones)];
    let everything = SlowPath {
        lumpy: Lumpy::On,
        compaction: Compaction::On,
    };
    let nodes = Nodes::with_hooks(&node, &hooks, everything);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_err());
    let calls = hooks.calls.each_ref().map(Cell::get);
    assert!(calls.iter().all(|&n| n > 0), "each was called: {calls:?}");
    // Those that are called by themselves.
    let migrations = || hooks.calls[2].get();
    let before = migrations();
    compact_all(zone, &hooks);
    let after_compaction = migrations();
    assert!(after_compaction > before);
    let contiguous = ContiguousRequest::new(10, zone.span());
    assert!(alloc_contiguous(zone, &contiguous, &hooks).is_err());
    let after_contiguous = migrations();
    assert!(after_contiguous > after_compaction);
    assert!(offline(zone, range(0, 10), &hooks).is_err());
    assert!(migrations() > after_contiguous);
    let census = sound(zone);
    assert_eq!((census.allocated, census.isolated), (128, 0));
}

#[test]
fn every_hook_is_called_with_no_lock_held_and_nothing_masked() {
    hooks_are_called_freely::<Direct>();
    hooks_are_called_freely::<Lists<Exclusive>>();
    hooks_are_called_freely::<Lists<Shared>>();
    hooks_are_called_freely::<Mags>();
}

#[test]
fn a_request_that_may_not_sleep_wakes_and_calls_nothing_else() {
    for context in [Context::Atomic, Context::Interrupt] {
        let zones = [scattered(256)];
        let hooks = Busybody {
            zone: &zones[0],
            calls: [const { Cell::new(0) }; 5],
        };
        let node = [Node::new(0, &zones)];
        let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
        let asked = request(3, Mobility::Movable).in_context(context);
        assert!(nodes.alloc(0, &asked).is_err());
        let calls = hooks.calls.each_ref().map(Cell::get);
        assert_eq!(calls, [1, 0, 0, 0, 0]);
    }
}

/// The calls of each hook for a request that no zone can ever serve.
fn calls_for(impossible: &Request) -> [usize; 5] {
    let zones = [scattered(256)];
    let hooks = Busybody {
        zone: &zones[0],
        calls: [const { Cell::new(0) }; 5],
    };
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    assert!(nodes.alloc(0, impossible).is_err());
    hooks.calls.each_ref().map(Cell::get)
}

#[test]
fn nothing_is_reclaimed_for_an_order_that_no_zone_ever_holds() {
    let [_, reclaim, migrate, ..] = calls_for(&request(8, Mobility::Movable));
    assert_eq!((reclaim, migrate), (0, 0));
}

#[test]
fn nothing_is_reclaimed_for_a_request_that_no_zone_may_serve() {
    let nowhere = MOVABLE.below(frame(0));
    let [_, reclaim, migrate, ..] = calls_for(&nowhere);
    assert_eq!((reclaim, migrate), (0, 0));
}

#[test]
fn reclaim_is_told_what_is_needed() {
    struct Told(RefCell<Vec<Need>>);
    impl Reclaim for Told {
        fn reclaim(&self, need: &Need) -> usize {
            self.0.borrow_mut().push(*need);
            0
        }
        fn wake(&self, need: &Need) {
            self.0.borrow_mut().push(*need);
        }
    }
    impl Migrate for Told {
        fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
            Migration::Unknown
        }
    }
    let zones = [in_use(64)];
    let node = [Node::new(0, &zones)];
    let told = Told(RefCell::default());
    let nodes = Nodes::with_hooks(&node, &told, SlowPath::MODERN);
    assert!(nodes.alloc(0, &request(3, Mobility::Unmovable)).is_err());
    let need = Need {
        frames: 8,
        order: Order::new(3),
        highest: ZoneKind::Normal,
    };
    assert_eq!(*told.0.borrow(), [need, need]);
}

// ---- how often ----

/// Says that it freed `freed` pages at each call, and frees `really` of the zone's pages.
struct Reclaimer<'z> {
    zone: &'z Plain,
    freed: usize,
    really: usize,
    calls: Cell<usize>,
    evictions: Cell<usize>,
}

impl<'z> Reclaimer<'z> {
    const fn new(zone: &'z Plain, freed: usize, really: usize) -> Self {
        Self {
            zone,
            freed,
            really,
            calls: Cell::new(0),
            evictions: Cell::new(0),
        }
    }
}

impl Reclaim for Reclaimer<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        self.calls.set(self.calls.get() + 1);
        let in_use = |at: &Frame| usage(self.zone, *at) == Use::Allocated;
        let frames = self.zone.span().frames().filter(in_use);
        for at in frames.take(self.really).collect::<Vec<_>>() {
            free(self.zone, at, 0);
        }
        self.freed
    }

    fn oldest(&self, _: FrameRange) -> Option<(Frame, Activity)> {
        Some((frame(8), Activity::Inactive))
    }

    /// Says yes, and frees nothing.
    fn evict(&self, _: Frame, _: Activity) -> Eviction {
        self.evictions.set(self.evictions.get() + 1);
        Eviction::Freed
    }
}

impl Migrate for Reclaimer<'_> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Unknown
    }
}

/// The answer to a request of `order` on a zone of 64 frames in use, and how often pages were
/// reclaimed for it.
fn reclaimed_for(order: u8, freed: usize, really: usize) -> (Result<Frame, AllocError>, usize) {
    let zones = [in_use(64)];
    let hooks = Reclaimer::new(&zones[0], freed, really);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::PLAIN);
    let answer = nodes.alloc(0, &request(order, Mobility::Movable));
    sound(&zones[0]);
    (answer, hooks.calls.get())
}

#[test]
fn reclaim_that_frees_nothing_is_called_once() {
    assert_eq!(reclaimed_for(0, 0, 0), (Err(exhausted(0)), 1));
}

#[test]
fn reclaim_that_only_says_that_it_freed_something_is_called_16_times() {
    assert_eq!(reclaimed_for(0, 1, 0), (Err(exhausted(0)), 16));
    assert_eq!(reclaimed_for(3, 1, 0), (Err(exhausted(0)), 16));
}

#[test]
fn reclaim_is_called_until_the_request_is_served_and_no_more() {
    assert_eq!(reclaimed_for(0, 1, 1), (Ok(frame(0)), 1));
    // One page at a time, from the low end: eight make a block.
    assert_eq!(reclaimed_for(3, 1, 1), (Ok(frame(0)), 8));
    // A block of 32 would need 32 calls.
    let (answer, calls) = reclaimed_for(5, 1, 1);
    assert_eq!(answer, Err(exhausted(16)));
    assert_eq!(calls, 16);
}

#[test]
fn the_last_pages_that_reclaim_freed_are_looked_at() {
    // It frees and says nothing of it: the request is tried once more all the same.
    assert_eq!(reclaimed_for(0, 0, 1), (Ok(frame(0)), 1));
}

#[test]
fn lumpy_reclaim_that_only_says_that_it_freed_something_ends_too() {
    let zones = [in_use(64)];
    let hooks = Reclaimer::new(&zones[0], 1, 0);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::LUMPY_2007);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_err());
    assert_eq!(hooks.evictions.get(), 16 * 8);
    assert_eq!(hooks.calls.get(), 0);
}

// ---- lumpy reclaim ----

/// Pages of which the one at `oldest` is next, and those that `busy` names cannot be had.
struct Lru<'z, Z: AnyZone> {
    zone: &'z Z,
    oldest: Frame,
    busy: fn(Frame) -> bool,
    evicted: RefCell<Vec<Frame>>,
    calls: Cell<usize>,
}

impl<'z, Z: AnyZone> Lru<'z, Z> {
    const fn new(zone: &'z Z, oldest: usize, busy: fn(Frame) -> bool) -> Self {
        Self {
            zone,
            oldest: frame(oldest),
            busy,
            evicted: RefCell::new(Vec::new()),
            calls: Cell::new(0),
        }
    }
}

impl<Z: AnyZone> Reclaim for Lru<'_, Z> {
    fn reclaim(&self, _: &Need) -> usize {
        self.calls.set(self.calls.get() + 1);
        0
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        assert_eq!(zone, self.zone.span());
        Some((self.oldest, Activity::Inactive))
    }

    fn evict(&self, at: Frame, activity: Activity) -> Eviction {
        assert_eq!(activity, Activity::Inactive);
        self.evicted.borrow_mut().push(at);
        if (self.busy)(at) {
            return Eviction::Busy;
        }
        match self.zone.free(at, Order::ZERO) {
            Ok(()) => Eviction::Freed,
            Err(_) => Eviction::Unsuitable,
        }
    }
}

impl<Z: AnyZone> Migrate for Lru<'_, Z> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        panic!("lumpy reclaim moves nothing");
    }
}

fn nobody(_: Frame) -> bool {
    false
}

/// With front `F`, which the freed pages go to first.
fn frees_the_block_round_the_oldest_page<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zones: [Parts<NoGrouping, F>; 1] = [full(&small(256), Cpus::new())];
    take_all(&zones[0], Mobility::Movable);
    let lru = Lru::new(&zones[0], 101, nobody);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &lru, SlowPath::LUMPY_2007);
    let block = nodes.alloc(0, &request(4, Mobility::Movable));
    assert_eq!(block, Ok(frame(96)));
    // The 16 pages of the aligned block, and no others.
    let evicted: Vec<Frame> = range(96, 112).frames().collect();
    assert_eq!(*lru.evicted.borrow(), evicted);
    assert_eq!(lru.calls.get(), 0);
    sound(&zones[0]);
}

#[test]
fn lumpy_reclaim_frees_the_block_round_the_oldest_page() {
    frees_the_block_round_the_oldest_page::<Direct>();
    frees_the_block_round_the_oldest_page::<Lists<Shared>>();
    frees_the_block_round_the_oldest_page::<Lists<Exclusive>>();
    frees_the_block_round_the_oldest_page::<Mags>();
}

#[test]
fn lumpy_reclaim_passes_over_what_it_cannot_have() {
    let zones = [in_use(256)];
    let lru = Lru::new(&zones[0], 101, |at| at == frame(99));
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &lru, SlowPath::LUMPY_2007);
    assert!(nodes.alloc(0, &request(4, Mobility::Movable)).is_err());
    // All of the block but one page is free. The second round freed nothing, and plain reclaim was
    // asked.
    assert_eq!(zones[0].free_frames(), 15);
    assert_eq!(usage(&zones[0], frame(99)), Use::Allocated);
    assert_eq!(lru.evicted.borrow().len(), 2 * 16);
    assert_eq!(lru.calls.get(), 1);
}

#[test]
fn lumpy_reclaim_ends_at_the_end_of_the_zone() {
    let zones = [in_use(100)];
    let lru = Lru::new(&zones[0], 98, nobody);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &lru, SlowPath::LUMPY_2007);
    assert!(nodes.alloc(0, &request(4, Mobility::Movable)).is_err());
    let evicted = lru.evicted.borrow();
    assert!(evicted.iter().all(|&at| range(96, 100).contains(at)));
}

#[test]
fn single_pages_are_reclaimed_where_they_are() {
    for slow_path in [SlowPath::LUMPY_2007, SlowPath::PLAIN, SlowPath::MODERN] {
        let zones = [in_use(64)];
        let lru = Lru::new(&zones[0], 10, nobody);
        let node = [Node::new(0, &zones)];
        let nodes = Nodes::with_hooks(&node, &lru, slow_path);
        assert!(nodes.alloc(0, &MOVABLE).is_err());
        assert!(lru.evicted.borrow().is_empty());
        assert_eq!(lru.calls.get(), 1);
    }
}

// ---- compaction ----

#[test]
fn compaction_frees_a_block_and_loses_no_page() {
    let zones = [scattered(256)];
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let block = nodes.alloc(0, &request(5, Mobility::Unmovable)).unwrap();
    assert!(block.is_aligned(Order::new(5)));
    assert_eq!(owner.pages.borrow().len(), 128);
    owner.owns_what_is_in_use();
    assert_eq!(owner.reclaims.get(), 0);
    // Pages went up, from the low end to the high end, each once.
    let moves = owner.moves.borrow();
    assert!(!moves.is_empty());
    assert!(moves.iter().all(|(from, to)| from < to));
    assert!(moves.is_sorted_by(|one, next| one.0 < next.0 && one.1 > next.1));
}

#[test]
fn all_of_a_zone_is_compacted_to_its_high_end() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    assert_eq!((compacted.why, compacted.caught), (Why::Complete, None));
    // The even pages of the lower half went to the odd places of the upper half.
    assert_eq!((compacted.moved, compacted.stuck), (128, 0));
    assert_eq!(zone.free_counts().by_order[7], 2);
    assert_eq!(zone.free_frames(), 256);
    owner.owns_what_is_in_use();
}

#[test]
fn a_zone_with_compaction_off_is_not_compacted() {
    let zones = [scattered(256)];
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::PLAIN);
    assert!(nodes.alloc(0, &request(5, Mobility::Movable)).is_err());
    assert_eq!((owner.asked(), owner.reclaims.get()), (0, 1));
}

#[test]
fn what_cannot_become_free_is_left_alone() {
    let zone = in_use(256);
    for at in (0..256).step_by(4) {
        free(&zone, frame(at + 1), 0);
        free(&zone, frame(at + 3), 0);
    }
    // One page of the first and of the second place of 32 frames is unmovable.
    for at in [0, 32] {
        free(&zone, frame(at), 0);
        assert_eq!(zone.alloc_at(frame(at), &UNMOVABLE), Ok(()));
    }
    let owner = Owner::of(&zone);
    let compacted = zone.compact(&request(5, Mobility::Movable), &owner);
    assert_eq!(compacted.why, Why::Succeeded);
    // So the third is made free: its 16 pages go, and nothing is taken from the first two.
    assert_eq!((compacted.moved, compacted.stuck), (16, 0));
    let moves = owner.moves.borrow().clone();
    assert!(
        moves
            .iter()
            .all(|(from, _)| (64..96).contains(&from.number()))
    );
    assert_eq!(compacted.caught, Some(frame(64)));
    free(&zone, frame(64), 5);
    owner.owns_what_is_in_use();
}

#[test]
fn free_places_are_looked_for_in_movable_blocks_only() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    // The two highest page blocks are unmovable, and mostly free.
    let block = zone.alloc_at(frame(384), &request(7, Mobility::Movable));
    assert_eq!(block, Ok(()));
    take_all(&zone, Mobility::Movable);
    free(&zone, frame(384), 7);
    let page = zone.alloc(&UNMOVABLE).unwrap();
    assert!(page >= frame(384));
    for at in (1..384).step_by(2) {
        free(&zone, frame(at), 0);
    }
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    assert_eq!(compacted.moved, 96);
    let targets = owner.moves.borrow().iter().map(|(_, to)| *to).max();
    assert_eq!(targets, Some(frame(383)));
    owner.owns_what_is_in_use();
}

#[test]
fn blocks_are_moved_whole() {
    let zone = plain(256);
    for at in (0..256).step_by(8) {
        let pair = request(1, Mobility::Movable);
        assert_eq!(zone.alloc_at(frame(at), &pair), Ok(()));
    }
    let owner = Owner::of(&zone);
    let compacted = compact_all(&zone, &owner);
    // 64 frames fit into the upper quarter, where 16 were already.
    assert!(compacted.moved >= 48, "{compacted:?}");
    assert_eq!(zone.free_counts().by_order[7], 1);
    owner.owns_what_is_in_use();
}

#[test]
fn what_cannot_be_moved_stays_and_nothing_is_lost() {
    for answer in [Migration::Later, Migration::Never, Migration::Unknown] {
        let zone = scattered(256);
        let before = seen(&zone).1;
        let owner = Owner::saying(&zone, answer);
        let compacted = compact_all(&zone, &owner);
        assert_eq!((compacted.moved, compacted.why), (0, Why::Complete));
        assert_eq!(compacted.stuck, owner.asked());
        // Each page was asked for once, and the one free place served for all.
        let moves = owner.moves.borrow();
        assert!(moves.is_sorted_by(|one, next| one.0 < next.0));
        assert!(moves.iter().all(|(_, to)| *to == moves[0].1));
        assert_eq!(seen(&zone).1, before, "{answer:?}");
        owner.owns_what_is_in_use();
    }
}

#[test]
fn a_page_that_nobody_needs_any_more_is_freed_with_its_new_place() {
    let zone = scattered(256);
    let owner = Owner::saying(&zone, Migration::NotNeeded);
    let compacted = compact_all(&zone, &owner);
    let given_up = owner.asked();
    assert_eq!(compacted.moved + compacted.stuck, 0);
    assert!(given_up > 100);
    assert_eq!(zone.free_frames(), 128 + given_up);
    sound(&zone);
}

/// How compaction of a zone of 512 frames for `order` ends when nothing can be moved and only
/// `free_blocks` of `size` are free.
fn end_of(order: u8, free_blocks: usize, size: u8, marks: Marks) -> Why {
    let zone = in_use(512);
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
    let frames = Order::new(size).frames();
    for n in 0..free_blocks {
        // Never two buddies.
        let first = frame(2 * frames * n);
        assert_eq!(zone.free_range(FrameRange::at(first, frames)), Ok(()));
    }
    zone.compact(&request(order, Mobility::Movable), &NoHooks)
        .why
}

const NO_MARKS: Marks = Marks {
    min: 0,
    low: 0,
    high: 0,
};

#[test]
fn compaction_needs_twice_the_block_free_above_the_min_mark() {
    assert_eq!(end_of(3, 16, 0, NO_MARKS), Why::TooLittleFree);
    assert_eq!(end_of(3, 17, 0, NO_MARKS), Why::Complete);
    let marks = Marks {
        min: 10,
        low: 60,
        high: 100,
    };
    assert_eq!(end_of(3, 26, 0, marks), Why::TooLittleFree);
    assert_eq!(end_of(3, 27, 0, marks), Why::Complete);
    // Above order 3 it is the low mark.
    assert_eq!(end_of(4, 92, 0, marks), Why::TooLittleFree);
    assert_eq!(end_of(4, 93, 0, marks), Why::Complete);
}

#[test]
fn lack_of_memory_is_not_compacted_away_above_order_3() {
    // Five blocks of half the size: 1000 - (1000 + 2500) / 5 = 300.
    assert_eq!(end_of(4, 5, 3, NO_MARKS), Why::NotFragmented);
    // Seven of them: 1000 - 4500 / 7 = 358.
    assert_eq!(end_of(4, 7, 3, NO_MARKS), Why::NotFragmented);
    // Nine blocks of a quarter: 1000 - (1000 + 2250) / 9 = 639.
    assert_eq!(end_of(4, 9, 2, NO_MARKS), Why::Complete);
    // Up to order 3 it is tried whatever the index.
    assert_eq!(end_of(3, 5, 2, NO_MARKS), Why::Complete);
}

#[test]
fn an_index_of_500_is_lack_and_501_is_not() {
    // For a request of 16 frames, 125 blocks of 8 and these of 4 and 2.
    let ends = |fours: usize, twos: usize| {
        let zone = in_use(4096);
        let sizes = [(125, 8), (fours, 4), (twos, 2)];
        let sizes = sizes
            .iter()
            .flat_map(|&(n, size)| core::iter::repeat_n(size, n));
        for (n, size) in sizes.enumerate() {
            let part = FrameRange::at(frame(16 * n), size);
            assert_eq!(zone.free_range(part), Ok(()));
        }
        let index = zone.free_counts().fragmentation_index(Order::new(4));
        let asked = request(4, Mobility::Movable);
        (index, zone.compact(&asked, &NoHooks).why)
    };
    // 1016 frames: 1000 - (1000 + 63500) / 129 = 1000 - 500. 1014 frames: 1000 - (1000 + 63375) /
    // 129 = 1000 - 499.
    assert_eq!(ends(4, 0), (500, Why::NotFragmented));
    assert_eq!(ends(3, 1), (501, Why::Complete));
}

#[test]
fn what_is_held_back_from_the_request_is_not_free_for_copies() {
    let zone = in_use(256);
    let mut reserve = [0; ZoneKind::COUNT];
    reserve[ZoneKind::Movable.index()] = 20;
    zone.watermarks().set(NO_MARKS, reserve);
    let asked = request(3, Mobility::Movable);
    for n in 0..36 {
        free(&zone, frame(2 * n), 0);
    }
    // 20 held back and twice 8 for the copies.
    let why = || zone.compact(&asked, &NoHooks).why;
    assert_eq!(why(), Why::TooLittleFree);
    free(&zone, frame(200), 0);
    assert_eq!(why(), Why::Complete);
}

/// Passes of compaction over a zone for one request of `order`, where nothing can be moved and
/// reclaim says that it frees something.
fn passes_for(order: u8) -> usize {
    struct Hopeful(Cell<usize>);
    impl Migrate for Hopeful {
        fn migrate(&self, from: Frame, _: Order, _: Frame) -> Migration {
            self.0.set(self.0.get() + usize::from(from == frame(0)));
            Migration::Later
        }
    }
    impl Reclaim for Hopeful {
        fn reclaim(&self, _: &Need) -> usize {
            1
        }
    }
    let zones = [scattered(256)];
    let hopeful = Hopeful(Cell::new(0));
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hopeful, SlowPath::MODERN);
    assert!(nodes.alloc(0, &request(order, Mobility::Movable)).is_err());
    hopeful.0.get()
}

#[test]
fn compaction_is_tried_16_times_up_to_order_3_and_4_times_above() {
    // Of 16 attempts the first, the third, the seventh and the fifteenth are not deferred; of 4 the
    // first and the third.
    assert_eq!(passes_for(3), 4);
    assert_eq!(passes_for(4), 2);
}

// ---- deferral ----

/// How often compaction for `order` is skipped before each of the next `attempts` attempts, where
/// nothing can be moved.
fn skips(zone: &Plain, order: u8, attempts: usize) -> Vec<usize> {
    let asked = request(order, Mobility::Movable);
    let next = || {
        let mut skipped = 0;
        while zone.compact(&asked, &NoHooks).why == Why::Deferred {
            skipped += 1;
        }
        skipped
    };
    core::iter::repeat_with(next).take(attempts).collect()
}

#[test]
fn deferral_doubles_with_each_failure_up_to_every_64th() {
    let zone = scattered(256);
    // Every attempt, every second, every fourth ... is made; the others are skipped.
    assert_eq!(skips(&zone, 3, 9), [0, 1, 3, 7, 15, 31, 63, 63, 63]);
}

#[test]
fn lower_orders_are_not_deferred_and_higher_ones_are() {
    let zone = scattered(256);
    let why = |order| {
        zone.compact(&request(order, Mobility::Movable), &NoHooks)
            .why
    };
    assert_eq!(why(4), Why::Complete);
    assert_eq!(why(5), Why::Deferred);
    assert_eq!(why(5), Why::Complete);
    assert_eq!(why(3), Why::Complete);
    // That failed, too: from now on order 3 waits.
    assert_eq!(why(3), Why::Deferred);
    assert_eq!(why(2), Why::Complete);
}

#[test]
fn a_success_ends_the_deferral() {
    let zone = scattered(256);
    assert_eq!(skips(&zone, 3, 4), [0, 1, 3, 7]);
    let owner = Owner::of(&zone);
    let asked = request(3, Mobility::Movable);
    let mut compacted = zone.compact(&asked, &owner);
    let mut skipped = 0;
    while compacted.why == Why::Deferred {
        skipped += 1;
        compacted = zone.compact(&asked, &owner);
    }
    assert_eq!((skipped, compacted.why), (15, Why::Succeeded));
    assert!(compacted.caught.is_some());
    // The next failure starts anew.
    take_all(&zone, Mobility::Movable);
    for at in (1..128).step_by(2) {
        free(&zone, frame(at), 0);
    }
    assert_eq!(skips(&zone, 3, 3), [0, 1, 3]);
}

#[test]
fn attempts_that_cannot_help_are_not_failures() {
    let zone = in_use(256);
    let asked = request(3, Mobility::Movable);
    for _ in 0..5 {
        let why = zone.compact(&asked, &NoHooks).why;
        assert_eq!(why, Why::TooLittleFree);
    }
    for at in (1..256).step_by(2) {
        free(&zone, frame(at), 0);
    }
    assert_eq!(skips(&zone, 3, 2), [0, 1]);
}

// ---- capture ----

/// What another CPU does while a request compacts: at the first call, and after that nothing.
struct Meanwhile<'z, Z: AnyZone, F> {
    zone: &'z Z,
    work: F,
    calls: Cell<usize>,
}

impl<'z, Z: AnyZone, F> Meanwhile<'z, Z, F> {
    const fn new(zone: &'z Z, work: F) -> Self {
        Self {
            zone,
            work,
            calls: Cell::new(0),
        }
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>, F: Fn(&Z)> Migrate for Meanwhile<'_, Z, F> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        if self.calls.replace(self.calls.get() + 1) == 0 {
            let platform = self.zone.platform();
            let here = platform.cpu();
            platform.switch_to(here + 1);
            (self.work)(self.zone);
            platform.switch_to(here);
        }
        Migration::Later
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>, F: Fn(&Z)> Reclaim for Meanwhile<'_, Z, F> {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

/// A zone of 256 frames, every second frame of it free but for an unmovable block of 16 at 128,
/// which another CPU owns.
fn with_a_foreign_block<G, F>() -> Parts<G, F>
where
    G: Grouping + Placed<'static>,
    F: Front<G, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone = full(&small(256), Cpus::new());
    let foreign = request(4, Mobility::Unmovable);
    assert_eq!(zone.alloc_at(frame(128), &foreign), Ok(()));
    for at in take_all(&zone, Mobility::Movable) {
        if at.number() % 2 == 1 {
            free(&zone, at, 0);
        }
    }
    zone.drain();
    zone
}

/// Asks for a block of order 4, and once more after `work` was done by another CPU; how often the
/// hook was called.
fn asks_while<Z, F>(zones: &[Z; 1], request: &Request, work: F) -> (Option<Frame>, usize)
where
    Z: AnyZone<Platform = &'static Cpus>,
    F: Fn(&Z),
{
    let hooks = Meanwhile::new(&zones[0], work);
    let node = [Node::new(0, zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let answer = nodes.alloc(0, request).ok();
    sound(&zones[0]);
    (answer, hooks.calls.get())
}

#[test]
fn a_block_freed_by_another_cpu_meanwhile_goes_to_the_request_that_compacts() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = asks_while(&zones, &asked, |zone| {
        free(zone, frame(128), 4);
        // It is taken already: that CPU cannot have it back.
        assert_eq!(usage(zone, frame(128)), Use::Allocated);
        assert!(zone.alloc(&request(4, Mobility::Unmovable)).is_err());
    });
    assert_eq!(answer, Some(frame(128)));
    // And the compaction ends.
    assert_eq!(calls, 1);
    let block = state(&zones[0], frame(128));
    assert_eq!(
        (block.order, block.kind),
        (Order::new(4), Mobility::Movable.into())
    );
}

#[test]
fn a_block_that_the_last_page_from_a_cache_completes_is_caught() {
    let zones: [Parts<NoGrouping, Lists<Exclusive>>; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = asks_while(&zones, &asked, |zone| {
        // Frame by frame into that CPU's list, and from there back to the store.
        free(zone, frame(128), 3);
        for at in range(136, 144).frames() {
            free(zone, at, 0);
        }
        zone.drain();
    });
    assert_eq!((answer, calls), (Some(frame(128)), 1));
}

#[test]
fn a_smaller_block_is_not_caught_and_of_a_larger_one_as_much_as_was_asked_for() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(5, Mobility::Movable);
    let (answer, calls) = asks_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, None);
    assert!(calls > 1);
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(3, Mobility::Movable);
    let (answer, _) = asks_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, Some(frame(128)));
    assert_eq!(usage(&zones[0], frame(136)), Use::Free);
}

#[test]
fn a_caught_block_above_the_limit_is_given_back() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable).below(frame(100));
    let (answer, _) = asks_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, None);
    assert_eq!(usage(&zones[0], frame(128)), Use::Free);
}

/// A grouped zone of 512 frames that is in use but for every second page below 384. The page block
/// of 64 at 448 belongs to another CPU, is of the type that goes with `owned`, and was handed out
/// as a whole.
fn grouped_with_a_foreign_block(owned: &Request) -> [Parts<Blocks, Direct>; 1] {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let whole = Request {
        order: Order::new(7),
        ..MOVABLE
    };
    assert_eq!(zone.alloc_at(frame(0), &whole), Ok(()));
    assert_eq!(zone.alloc_at(frame(128), &whole), Ok(()));
    assert_eq!(zone.alloc_at(frame(256), &whole), Ok(()));
    // Only 384..512 is free: the request claims it, or has it already.
    let first = zone.alloc(&Request {
        order: Order::new(6),
        ..*owned
    });
    let second = zone.alloc(&Request {
        order: Order::new(6),
        ..*owned
    });
    let mut two = [first.expect("free"), second.expect("free")];
    two.sort();
    assert_eq!(two, [frame(384), frame(448)]);
    for at in (0..384).step_by(2) {
        free(&zone, frame(at), 0);
    }
    [zone]
}

#[test]
fn part_of_a_block_of_another_type_is_not_caught() {
    let zones = grouped_with_a_foreign_block(&UNMOVABLE);
    let asked = request(4, Mobility::Movable);
    let mut types = zones[0].snapshot(0).blocks;
    assert_eq!(types, [2, 6, 0, 0, 0]);
    let (answer, calls) = asks_while(&zones, &asked, |zone| {
        free(zone, frame(448), 4);
        assert_eq!(usage(zone, frame(448)), Use::Free);
        // Nobody else may have it either way, so that the request is not served from it by a
        // fallback.
        assert_eq!(
            zone.alloc_at(frame(448), &request(4, Mobility::Unmovable)),
            Ok(())
        );
    });
    assert!(answer.is_none_or(|at| at != frame(448)));
    assert!(calls > 1);
    types = zones[0].snapshot(0).blocks;
    assert_eq!(types, [2, 6, 0, 0, 0]);
}

#[test]
fn part_of_a_block_of_the_own_type_is_caught() {
    let zones = grouped_with_a_foreign_block(&MOVABLE);
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = asks_while(&zones, &asked, |zone| free(zone, frame(448), 4));
    assert_eq!((answer, calls), (Some(frame(448)), 1));
}

#[test]
fn a_whole_block_of_another_type_is_caught_and_claimed() {
    let zones = grouped_with_a_foreign_block(&UNMOVABLE);
    let asked = request(6, Mobility::Movable);
    let (answer, calls) = asks_while(&zones, &asked, |zone| free(zone, frame(448), 6));
    assert_eq!((answer, calls), (Some(frame(448)), 1));
    assert_eq!(zones[0].snapshot(0).blocks, [1, 7, 0, 0, 0]);
}

#[test]
fn nothing_is_caught_after_the_compaction() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    assert_eq!(asks_while(&zones, &asked, |_| ()).0, None);
    free(&zones[0], frame(128), 4);
    assert_eq!(usage(&zones[0], frame(128)), Use::Free);
    assert_eq!(zones[0].alloc(&asked), Ok(frame(128)));
}

#[test]
fn compaction_for_a_request_with_a_limit_clears_below_the_limit() {
    // All below 128 is in use, all above is free: moving the pages up makes room for a block of 64
    // below 128.
    let zones = [plain(512)];
    for at in 0..128 {
        assert_eq!(zones[0].alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let below = request(6, Mobility::Unmovable).below(frame(128));
    let block = nodes.alloc(0, &below);
    assert!(block.is_ok(), "{block:?} after {} moves", owner.asked());
    owner.owns_what_is_in_use();
}

// ---- contiguous ranges ----

#[test]
fn a_contiguous_range_keeps_its_alignment_and_its_boundary() {
    for (frames, align, boundary, within, expected) in [
        (100, 1, 0, range(0, 512), range(0, 100)),
        (100, 1, 0, range(7, 512), range(7, 107)),
        (100, 64, 0, range(7, 512), range(64, 164)),
        // 64..164 crosses 128.
        (100, 64, 128, range(7, 512), range(128, 228)),
        (100, 1, 128, range(7, 512), range(7, 107)),
        (100, 1, 128, range(29, 512), range(128, 228)),
        (100, 4, 128, range(25, 512), range(28, 128)),
        (128, 1, 128, range(1, 512), range(128, 256)),
        // An alignment above the boundary.
        (10, 256, 16, range(1, 512), range(256, 266)),
        (1, 1, 1, range(300, 512), range(300, 301)),
    ] {
        let zone = plain(512);
        let request = ContiguousRequest::new(frames, within)
            .aligned(align)
            .not_across(boundary);
        let got = alloc_contiguous(&zone, &request, &NoHooks);
        assert_eq!(got, Ok(expected), "{request:?}");
        assert_eq!(zone.free_frames(), 512 - frames);
        sound(&zone);
        assert_eq!(zone.free_range(expected), Ok(()));
        assert_eq!(zone.free_counts().by_order[7], 4);
    }
}

#[test]
fn a_contiguous_request_that_makes_no_sense_is_malformed() {
    let zone = plain(512);
    let of = |frames| ContiguousRequest::new(frames, zone.span());
    for bad in [
        of(0),
        of(10).aligned(0),
        of(10).aligned(3),
        of(10).not_across(24),
        of(10).not_across(8),
    ] {
        let refused = alloc_contiguous(&zone, &bad, &NoHooks);
        assert_eq!(refused, Err(RangeError::Malformed), "{bad:?}");
    }
    let span = zone.span();
    for outside in [ContiguousRequest::new(10, range(512, 600)), of(513)] {
        let refused = alloc_contiguous(&zone, &outside, &NoHooks);
        assert_eq!(refused, Err(RangeError::OutsideSpan { span }));
    }
    sound(&zone);
}

#[test]
fn a_place_that_is_free_is_taken_before_one_that_must_be_cleared() {
    let zone = plain(512);
    for at in 0..200 {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::of(&zone);
    let request = ContiguousRequest::new(100, zone.span());
    assert_eq!(
        alloc_contiguous(&zone, &request, &owner),
        Ok(range(200, 300))
    );
    assert_eq!(owner.asked(), 0);
}

#[test]
fn movable_pages_are_moved_out_of_a_contiguous_range() {
    let zone = scattered(512);
    // An unmovable page in the lowest place.
    free(&zone, frame(50), 0);
    assert_eq!(zone.alloc_at(frame(50), &UNMOVABLE), Ok(()));
    let owner = Owner::of(&zone);
    let mut request = ContiguousRequest::new(70, range(0, 256));
    request.mobility = Mobility::Unmovable;
    let got = alloc_contiguous(&zone, &request, &owner).unwrap();
    assert_eq!(got, range(51, 121), "behind the page that stays");
    assert_eq!(owner.asked(), 35);
    // Nothing was moved into it.
    assert!(
        owner
            .moves
            .borrow()
            .iter()
            .all(|(_, to)| !got.contains(*to))
    );
    owner.owns_what_is_in_use();
    assert!(got.frames().all(|at| usage(&zone, at) == Use::Allocated));
    // It is given back in parts of any size.
    assert_eq!(zone.free_range(range(51, 80)), Ok(()));
    assert_eq!(zone.free_range(range(80, 121)), Ok(()));
    sound(&zone);
}

#[test]
fn a_block_over_the_edge_of_the_range_is_moved_whole() {
    let zone = plain(512);
    let block = request(4, Mobility::Movable);
    for at in [48, 96] {
        assert_eq!(zone.alloc_at(frame(at), &block), Ok(()));
    }
    let owner = Owner::of(&zone);
    let wanted = range(60, 100);
    let request = ContiguousRequest::new(40, wanted);
    assert_eq!(alloc_contiguous(&zone, &request, &owner), Ok(wanted));
    assert_eq!(owner.asked(), 2);
    owner.owns_what_is_in_use();
    // The parts outside the range are free.
    assert_eq!(usage(&zone, frame(50)), Use::Free);
    assert_eq!(usage(&zone, frame(105)), Use::Free);
}

#[test]
fn a_failed_contiguous_request_is_undone() {
    for answer in [Migration::Later, Migration::Never, Migration::Unknown] {
        let zone = scattered(256);
        let before = seen(&zone);
        let owner = Owner::saying(&zone, answer);
        let request = ContiguousRequest::new(40, range(50, 90));
        let refused = alloc_contiguous(&zone, &request, &owner);
        assert_eq!(refused, Err(RangeError::Busy { frame: frame(50) }));
        assert_eq!(seen(&zone), before, "{answer:?}");
        owner.owns_what_is_in_use();
    }
}

#[test]
fn a_page_that_cannot_be_moved_now_is_asked_for_five_times() {
    let zone = plain(256);
    for at in [60, 70] {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::saying(&zone, Migration::Later);
    let request = ContiguousRequest::new(40, range(50, 90));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(owner.asked(), 2 * 5);
}

#[test]
fn a_failed_contiguous_request_leaves_grouped_memory_as_it_was() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let unmovable = zone.alloc(&UNMOVABLE).unwrap();
    let stuck = unmovable.buddy(Order::new(5));
    assert_eq!(zone.alloc_at(stuck, &MOVABLE), Ok(()));
    let before = seen(&zone);
    // Over both page blocks of the unmovable page, and movable ones next to them.
    let owner = Owner::saying(&zone, Migration::Later);
    let start = unmovable.align_down(Order::new(7)).number() + 1;
    let request = ContiguousRequest::new(126, range(start, start + 126));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_failed_contiguous_request_leaves_both_kinds_of_2005_as_they_were() {
    let zone: Parts<TwoKinds, Direct> = full(&small(512), Cpus::new());
    assert_eq!(zone.alloc_at(frame(60), &MOVABLE), Ok(()));
    let before = seen(&zone);
    let owner = Owner::saying(&zone, Migration::Later);
    let request = ContiguousRequest::new(40, range(50, 90));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_contiguous_range_lies_in_no_hole_and_takes_nothing_reserved() {
    let zone: Plain = support::empty(&small(512), Cpus::new());
    for part in [range(0, 60), range(61, 200), range(210, 512)] {
        assert_eq!(zone.add(part), Ok(part.len()));
    }
    assert_eq!(zone.reserve(range(250, 251)), Ok(1));
    let request = ContiguousRequest::new(100, zone.span());
    assert_eq!(
        alloc_contiguous(&zone, &request, &NoHooks),
        Ok(range(61, 161))
    );
    assert_eq!(
        alloc_contiguous(&zone, &request, &NoHooks),
        Ok(range(251, 351))
    );
    sound(&zone);
}

// ---- memory taken offline ----

#[test]
fn offline_moves_the_pages_out_and_takes_the_memory() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let gone = range(101, 170);
    assert_eq!(offline(&zone, gone, &owner), Ok(69));
    assert_eq!(zone.managed_frames(), 512 - 69);
    owner.owns_what_is_in_use();
    assert_eq!(owner.pages.borrow().len(), 256);
    assert!(gone.frames().all(|at| zone.block_of(at).is_none()));
    assert_eq!(zone.free(frame(120), Order::ZERO), Err(FreeError::NotOwned));
    // And online again.
    assert_eq!(zone.add(gone), Ok(69));
    assert_eq!(zone.managed_frames(), 512);
    sound(&zone);
}

#[test]
fn offline_takes_ranges_with_holes_and_reserved_frames() {
    let zone = plain(512);
    assert_eq!(zone.remove(range(100, 120)), Ok(20));
    assert_eq!(zone.reserve(range(130, 140)), Ok(10));
    assert_eq!(offline(&zone, range(90, 150), &NoHooks), Ok(40));
    assert_eq!(zone.managed_frames(), 512 - 60);
    sound(&zone);
}

#[test]
fn a_failed_offline_is_undone() {
    let zone = scattered(512);
    assert_eq!(zone.alloc_at(frame(155), &UNMOVABLE), Ok(()));
    let before = seen(&zone);
    let owner = Owner::saying(&zone, Migration::Later);
    let busy = |at| Err(RangeError::Busy { frame: frame(at) });
    assert_eq!(offline(&zone, range(155, 156), &owner), busy(155));
    assert_eq!(offline(&zone, range(101, 150), &owner), busy(102));
    assert!(offline(&zone, range(101, 170), &owner).is_err());
    let span = zone.span();
    let outside = offline(&zone, range(500, 513), &owner);
    assert_eq!(outside, Err(RangeError::OutsideSpan { span }));
    assert_eq!(seen(&zone), before);
    // Nothing is isolated: the same range can be tried again, and what is free of it can be had.
    assert_eq!(offline(&zone, range(101, 150), &owner), busy(102));
    assert_eq!(zone.alloc_at(frame(151), &MOVABLE), Ok(()));
}

#[test]
fn a_failed_offline_names_the_first_frame_that_could_not_be_freed() {
    // 102 and others cannot be moved now; 155, behind them, never.
    let zone = scattered(512);
    assert_eq!(zone.alloc_at(frame(155), &UNMOVABLE), Ok(()));
    let owner = Owner::saying(&zone, Migration::Later);
    let busy = Err(RangeError::Busy { frame: frame(102) });
    assert_eq!(offline(&zone, range(101, 170), &owner), busy);
}

#[test]
fn offline_reaches_frames_that_lie_in_caches() {
    let zone: Parts<Blocks, Mags> = full(&small(512), Cpus::new());
    for mobility in Mobility::ALL {
        let page = zone.alloc(&Request::page(mobility)).unwrap();
        free(&zone, page, 0);
    }
    assert!(zone.cached_frames() > 0);
    assert_eq!(offline(&zone, range(0, 512), &NoHooks), Ok(512));
    assert_eq!((zone.managed_frames(), zone.free_frames()), (0, 0));
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0)));
    sound(&zone);
}

// ---- places that cannot become free ----

#[test]
fn compaction_passes_over_places_with_a_page_that_cannot_be_moved() {
    // Places of 128 frames, the largest block: in the first, one page in 8 is in use and the last
    // one stays; in the second they all move.
    let zone = plain(512);
    for block in 0..2 {
        for place in (7..128).step_by(8) {
            let stays = (block, place) == (0, 127);
            let request = if stays { &UNMOVABLE } else { &MOVABLE };
            assert_eq!(zone.alloc_at(frame(block * 128 + place), request), Ok(()));
        }
    }
    let owner = Owner::of(&zone);
    let done = compact_all(&zone, &owner);
    assert_eq!((done.moved, done.stuck), (16, 0));
    let from: Vec<usize> = owner
        .moves
        .borrow()
        .iter()
        .map(|(from, _)| from.number())
        .collect();
    assert_eq!(from, (135..256).step_by(8).collect::<Vec<_>>());
    assert_eq!(state(&zone, frame(128)).usage, Use::Free);
    assert_eq!(state(&zone, frame(7)).usage, Use::Allocated);
    owner.owns_what_is_in_use();
}

#[test]
fn a_place_that_takes_all_the_looks_of_one_hold_is_gathered_from_in_the_next() {
    // 1024 looks: 512 that end at a page that stays, and 512 at pages that all move.
    let zone: Plain = full(&linux(8 * 512), Cpus::new());
    for at in 0..1024 {
        let request = if at == 511 { &UNMOVABLE } else { &MOVABLE };
        assert_eq!(zone.alloc_at(frame(at), request), Ok(()));
    }
    let owner = Owner::of(&zone);
    let done = compact_all(&zone, &owner);
    assert_eq!((done.moved, done.stuck), (512, 0));
    assert_eq!(state(&zone, frame(512)).usage, Use::Free);
    owner.owns_what_is_in_use();
}

#[test]
fn compaction_goes_on_where_it_stood_and_begins_anew_where_that_gives_nothing() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let wanted = request(5, Mobility::Movable);
    let first = zone.compact(&wanted, &owner);
    assert_eq!((first.why, first.caught), (Why::Succeeded, Some(frame(0))));
    let asked = owner.moves.borrow().len();
    let second = zone.compact(&wanted, &owner);
    assert_eq!(
        (second.why, second.caught),
        (Why::Succeeded, Some(frame(32)))
    );
    // Nothing below the first place was asked for again.
    let moves = owner.moves.borrow()[asked..].to_vec();
    assert!(moves.iter().all(|(from, _)| from.number() >= 32));
    // Until nothing is left between the scanners; then what has come free behind them is found.
    let mut caught = vec![frame(0), frame(32)];
    while let Some(place) = zone.compact(&wanted, &owner).caught {
        caught.push(place);
    }
    assert!(caught.len() < 9, "half of the memory is free: 8 places");
    for place in caught {
        free(&zone, place, 5);
    }
    owner.owns_what_is_in_use();
}
