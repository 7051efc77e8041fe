//! How the hooks are called, and how often.

use super::*;

// ---- how the hooks are called ----

/// Uses the zone inside each hook, and counts the calls: wake, reclaim, migrate, oldest, evict.
struct UsesZone<'z, Z: AnyZone> {
    zone: &'z Z,
    calls: [Cell<usize>; 5],
}

impl<Z: AnyZone<Platform = &'static Cpus>> UsesZone<'_, Z> {
    fn called(&self, hook: usize) {
        assert_nothing_held(self.zone);
        self.calls[hook].set(self.calls[hook].get() + 1);
        // With a lock held this would hang, and the strict locks panic.
        if let Ok(page) = self.zone.alloc(&UNMOVABLE) {
            free(self.zone, page, 0);
        }
        self.zone.drain();
        assert_nothing_held(self.zone);
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Reclaim for UsesZone<'_, Z> {
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

impl<Z: AnyZone<Platform = &'static Cpus>> Migrate for UsesZone<'_, Z> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        self.called(2);
        Migration::Later
    }
}

/// Runs everything that calls hooks, on a zone of 256 frames with front `F`, every second frame of
/// it in use.
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
    let hooks = UsesZone {
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
    // Operations that call hooks directly.
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
        let hooks = UsesZone {
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

/// Returns the calls of each hook for a request that no zone can ever serve.
fn calls_for(impossible: &Request) -> [usize; 5] {
    let zones = [scattered(256)];
    let hooks = UsesZone {
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
    struct Recorder(RefCell<Vec<Need>>);
    impl Reclaim for Recorder {
        fn reclaim(&self, need: &Need) -> usize {
            self.0.borrow_mut().push(*need);
            0
        }
        fn wake(&self, need: &Need) {
            self.0.borrow_mut().push(*need);
        }
    }
    impl Migrate for Recorder {
        fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
            Migration::Unknown
        }
    }
    let zones = [in_use(64)];
    let node = [Node::new(0, &zones)];
    let recorder = Recorder(RefCell::default());
    let nodes = Nodes::with_hooks(&node, &recorder, SlowPath::MODERN);
    assert!(nodes.alloc(0, &request(3, Mobility::Unmovable)).is_err());
    let need = Need {
        frames: 8,
        order: Order::new(3),
        highest: ZoneKind::Normal,
    };
    assert_eq!(*recorder.0.borrow(), [need, need]);
}

// ---- how often ----

/// Reports `freed` freed pages at each call, and frees `really` of the zone's pages.
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

    /// Reports success, and frees nothing.
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

/// Returns the result of a request of `order` on a zone of 64 frames in use, and how often reclaim
/// was called for it.
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
    assert_eq!(reclaimed_for(0, 0, 0), (Err(exhausted(0, 0)), 1));
}

#[test]
fn reclaim_that_only_reports_freed_pages_is_called_16_times() {
    assert_eq!(reclaimed_for(0, 1, 0), (Err(exhausted(0, 0)), 16));
    assert_eq!(reclaimed_for(3, 1, 0), (Err(exhausted(0, 0)), 16));
}

#[test]
fn reclaim_is_called_until_the_request_is_served_and_no_more() {
    assert_eq!(reclaimed_for(0, 1, 1), (Ok(frame(0)), 1));
    // One page at a time, from the low end: eight make a block.
    assert_eq!(reclaimed_for(3, 1, 1), (Ok(frame(0)), 8));
    // A block of 32 would need 32 calls.
    let (answer, calls) = reclaimed_for(5, 1, 1);
    assert_eq!(answer, Err(exhausted(16, 0)));
    assert_eq!(calls, 16);
}

#[test]
fn the_last_pages_that_reclaim_freed_are_tried() {
    // It frees pages without reporting them: the request is tried once more anyway.
    assert_eq!(reclaimed_for(0, 0, 1), (Ok(frame(0)), 1));
}

#[test]
fn lumpy_reclaim_that_only_reports_freed_pages_ends_too() {
    let zones = [in_use(64)];
    let hooks = Reclaimer::new(&zones[0], 1, 0);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::LUMPY_2007);
    assert!(nodes.alloc(0, &request(3, Mobility::Movable)).is_err());
    assert_eq!(hooks.evictions.get(), 16 * 8);
    assert_eq!(hooks.calls.get(), 0);
}
