//! Contiguous ranges, memory that goes offline, what hooks say cannot be moved.

use super::*;
use support::owner::Owner;
use support::{contiguous, kept};

contiguous::clears_ranges!(|plan| empty(plan, Cpus::new()));

// ---- contiguous ranges and memory that goes offline ----

/// A zone of so many page blocks in which movable blocks of all small orders are scattered, about
/// half of it.
fn scattered(count: usize, seed: u64) -> (&'static [Plain; 1], Owner<'static, Plain>) {
    let zones = kept([blocks(count)]);
    let [zone] = zones;
    let mut dice = Dice::new(seed);
    let mut held = Vec::new();
    while zone.free_frames() > 0 {
        let order = dice.one_of(&[0, 0, 0, 1, 2, 3, 5]);
        if let Ok(at) = zone.alloc(&request(order, Mobility::Movable)) {
            held.push((at, order));
        }
    }
    for place in dice.shuffled(held.len()).into_iter().step_by(2) {
        let (at, order) = held[place];
        free(zone, at, order);
    }
    let owner = Owner::of(zone);
    owner.has_what_it_has();
    (zones, owner)
}

#[test]
fn a_contiguous_range_is_cleared_by_moving_and_freed_in_parts() {
    for (seed, frames) in [(1, 100), (2, 700), (3, 1024), (4, 1500)] {
        let ([zone], owner) = scattered(8, seed);
        let before = sound(zone);
        let wanted = ContiguousRequest::new(frames, zone.span()).aligned(4);
        let got = alloc_contiguous(zone, &wanted, &owner).unwrap();
        assert_eq!((got.len(), got.start.number() % 4), (frames, 0));
        owner.has_what_it_has();
        let census = sound(zone);
        assert_eq!(census.allocated, before.allocated + frames);
        assert_eq!(census.isolated, 0);
        let inside = |at: &&Frame| got.contains(**at);
        assert_eq!(owner.pages.borrow().keys().find(inside), None);
        let middle = got.start.plus(frames / 3);
        let [start, middle, end] = [got.start, middle, got.end].map(Frame::number);
        let (one, two) = (range(start, middle), range(middle, end));
        assert_eq!(zone.free_range(two), Ok(()));
        assert_eq!(zone.free_range(two), Err(FreeError::DoubleFree));
        assert_eq!(zone.free_range(one), Ok(()));
        assert_eq!(sound(zone), before);
    }
}

#[test]
fn a_free_place_for_a_contiguous_range_is_found_without_moving_anything() {
    let zone = in_use_but(8, Mobility::Unmovable, &[(2, 300), (4, BLOCK), (5, 200)]);
    let wanted = |frames| ContiguousRequest::new(frames, range(0, 8 * BLOCK));
    let got = alloc_contiguous(&zone, &wanted(400), &NoHooks);
    assert_eq!(got, Ok(range(2048, 2448)));
    let got = alloc_contiguous(&zone, &wanted(312), &NoHooks);
    assert_eq!(got, Ok(range(2448, 2760)));
    let refused = alloc_contiguous(&zone, &wanted(301), &NoHooks);
    assert!(matches!(refused, Err(RangeError::Busy { .. })));
    let got = alloc_contiguous(&zone, &wanted(300), &NoHooks);
    assert_eq!(got, Ok(range(1024, 1324)));
    assert_eq!(sound(&zone).free, 0);
}

#[test]
fn compaction_and_the_slow_path_bring_huge_blocks_together() {
    let ([zone], owner) = scattered(8, 5);
    compact_all(zone, &owner);
    owner.has_what_it_has();
    let whole = zone.free_counts().suitable(Order::HUGE);
    assert!(
        whole >= 3,
        "about half of 8 blocks is free, and {whole} are"
    );
    // And on the way of a request.
    let (zones, owner) = scattered(8, 6);
    let nodes = hooked_node(zones, owner, SlowPath::MODERN);
    let huge = nodes.alloc(0, &request(9, Mobility::Movable)).unwrap();
    assert!(huge.is_aligned(Order::HUGE));
    nodes.hooks().has_what_it_has();
}

/// Another CPU, which wants the same while a page is being moved.
struct Rival<'z> {
    owner: Owner<'z, Plain>,
    zone: &'z Plain,
    got: Cell<usize>,
}

impl Migrate for Rival<'_> {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        if self.zone.alloc(&request(9, Mobility::Movable)).is_ok() {
            self.got.set(self.got.get() + 1);
        }
        self.owner.migrate(from, order, to)
    }
}

impl Reclaim for Rival<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

#[test]
fn what_compaction_has_gathered_goes_to_the_request_that_it_was_gathered_for() {
    for seed in 6..12 {
        let (zones, owner) = scattered(8, seed);
        let rival = Rival {
            owner,
            zone: &zones[0],
            got: Cell::new(0),
        };
        let nodes = hooked_node(zones, rival, SlowPath::MODERN);
        let huge = nodes.alloc(0, &request(9, Mobility::Movable));
        assert!(huge.is_ok(), "seed {seed}: {huge:?}");
        assert_eq!(nodes.hooks().got.get(), 0, "seed {seed}");
        sound(&zones[0]);
    }
}

// ---- what a hook says cannot be moved ----

/// Moves everything but what lies in one place, and remembers what it was asked.
struct Chooser {
    stays: Option<Frame>,
    asked: RefCell<BTreeSet<Frame>>,
    moved: RefCell<Vec<(Frame, Frame)>>,
}

impl Chooser {
    fn but(stays: Option<Frame>) -> Self {
        Self {
            stays,
            asked: RefCell::default(),
            moved: RefCell::default(),
        }
    }
}

impl Migrate for Chooser {
    fn can_move(&self, at: Frame, _: Order) -> bool {
        self.asked.borrow_mut().insert(at);
        self.stays != Some(at)
    }

    fn migrate(&self, from: Frame, _: Order, to: Frame) -> Migration {
        self.moved.borrow_mut().push((from, to));
        Migration::Moved
    }
}

#[test]
fn compaction_leaves_a_whole_place_alone_where_a_hook_says_that_one_page_stays() {
    // Single pages, all movable as far as the store knows: the low blocks nearly empty, the high
    // ones nearly full.
    let scattered = || {
        let zone = blocks(4);
        let pages = take_all(&zone, Mobility::Movable);
        let keeps = |at: &Frame| {
            let (block, place) = (at.number() / BLOCK, at.number() % BLOCK);
            if block < 2 {
                place % 16 == 5
            } else {
                place % 4 != 0
            }
        };
        let freed: Vec<Frame> = pages.into_iter().filter(|at| !keeps(at)).collect();
        give(&zone, &freed);
        zone
    };
    let in_place = |at: Frame| range(0, BLOCK).contains(at);
    let own = |zone: &Plain| {
        let used = |at: &usize| state(zone, frame(*at)).usage == Use::Allocated;
        (0..BLOCK).filter(used).collect::<Vec<_>>()
    };
    let zone = scattered();
    let all = Chooser::but(None);
    assert_eq!(own(&zone).len(), 32);
    assert!(compact_all(&zone, &all).moved >= 64);
    assert_eq!(own(&zone), [0; 0], "nothing stays");
    sound(&zone);

    let zone = scattered();
    let before = own(&zone);
    let stays = frame(BLOCK - 11);
    assert!(before.contains(&stays.number()));
    let one = Chooser::but(Some(stays));
    let done = compact_all(&zone, &one);
    assert!(one.asked.borrow().contains(&stays));
    assert_eq!(own(&zone), before, "its whole place is untouched");
    let moved = one.moved.borrow();
    assert!(moved.iter().all(|&(from, _)| !in_place(from)));
    assert_eq!((done.moved, done.stuck), (moved.len(), 0));
    // The place beside it is free.
    let beside = frame(BLOCK);
    assert_eq!(state(&zone, beside).usage, Use::Free);
    let from_beside = |(from, _): &&(Frame, Frame)| range(BLOCK, 2 * BLOCK).contains(*from);
    assert!(moved.iter().filter(from_beside).count() >= 32);
    sound(&zone);
}
