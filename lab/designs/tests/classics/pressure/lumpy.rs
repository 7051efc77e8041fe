//! Lumpy reclaim.

use super::*;

/// An LRU of which the page at `oldest` is next, and the pages that `busy` names cannot be evicted.
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

fn none_busy(_: Frame) -> bool {
    false
}

/// Checks lumpy reclaim with front `F`, to which the freed pages go first.
fn frees_the_block_around_the_oldest_page<F>()
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zones: [Parts<NoGrouping, F>; 1] = [full(&small(256), Cpus::new())];
    take_all(&zones[0], Mobility::Movable);
    let lru = Lru::new(&zones[0], 101, none_busy);
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
fn lumpy_reclaim_frees_the_block_around_the_oldest_page() {
    frees_the_block_around_the_oldest_page::<Direct>();
    frees_the_block_around_the_oldest_page::<Lists<Shared>>();
    frees_the_block_around_the_oldest_page::<Lists<Exclusive>>();
    frees_the_block_around_the_oldest_page::<Mags>();
}

#[test]
fn lumpy_reclaim_skips_pages_it_cannot_evict() {
    let zones = [in_use(256)];
    let lru = Lru::new(&zones[0], 101, |at| at == frame(99));
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &lru, SlowPath::LUMPY_2007);
    assert!(nodes.alloc(0, &request(4, Mobility::Movable)).is_err());
    // All of the block but one page is free. The second round freed nothing, and plain reclaim was
    // called.
    assert_eq!(zones[0].free_frames(), 15);
    assert_eq!(usage(&zones[0], frame(99)), Use::Allocated);
    assert_eq!(lru.evicted.borrow().len(), 2 * 16);
    assert_eq!(lru.calls.get(), 1);
}

#[test]
fn lumpy_reclaim_ends_at_the_end_of_the_zone() {
    let zones = [in_use(100)];
    let lru = Lru::new(&zones[0], 98, none_busy);
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
        let lru = Lru::new(&zones[0], 10, none_busy);
        let node = [Node::new(0, &zones)];
        let nodes = Nodes::with_hooks(&node, &lru, slow_path);
        assert!(nodes.alloc(0, &MOVABLE).is_err());
        assert!(lru.evicted.borrow().is_empty());
        assert_eq!(lru.calls.get(), 1);
    }
}
