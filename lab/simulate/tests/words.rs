//! How many words the bitmap store reads to find a group of page blocks, and a node before it
//! refuses a request: the machine counts every access to a shared word. A bound that is stated
//! holds for small and for large memory.

use brickyard::bitmap::{Bitmap, SetAside};
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::patience::Patience;
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::sync::Exclusive;
use brickyard::sync::{AtomicU8, AtomicU64};
use brickyard::watermark::{Mark, Marks};
use brickyard::{
    AnyZone, Context, Frame, FrameRange, MigrateType, Mobility, OneCpu, Order, Request, Zone,
    ZoneKind, ZonePlan,
};
use brickyard_machine::{Affinity, Machine, Profile, Setup};

/// Frames of 4 KiB.
const GIB: usize = 1 << 18;
/// Frames of a page block.
const BLOCK: usize = 512;

/// The words of a store, kept while it is in use.
struct Memory {
    words: Vec<AtomicU64>,
    classes: Vec<AtomicU8>,
    frames: usize,
}

impl Memory {
    fn new(frames: usize) -> Self {
        let span = FrameRange::new(0, frames);
        let words = Bitmap::words(span, Order::MAX, Order::HUGE);
        let classes = Bitmap::classes(span, Order::HUGE);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            classes: (0..classes).map(|_| AtomicU8::new(0)).collect(),
            frames,
        }
    }

    /// A store whose page blocks are memory as `memory` says of their numbers.
    fn store(&self, memory: impl Fn(usize) -> bool) -> Bitmap<'_> {
        let span = FrameRange::new(0, self.frames);
        let store = Bitmap::new(span, Order::MAX, Order::HUGE, &self.words, &self.classes);
        for block in (0..self.frames / BLOCK).filter(|&block| memory(block)) {
            let block = FrameRange::at(Frame::new(block * BLOCK), BLOCK);
            store.add(block).unwrap();
        }
        store
    }
}

/// The result of some work on a store, and its accesses to the words of the store.
fn accesses<R: Copy>(work: impl Fn() -> R) -> (R, u64) {
    let profile = Profile::by_name("metatm-2007").unwrap();
    let mut machine = Machine::new(Setup::new(profile, 1, 1));
    let result = core::cell::Cell::new(None);
    machine.task("works", Affinity::Any, || result.set(Some(work())));
    let ended = machine.run().unwrap();
    (result.get().unwrap(), ended.accesses)
}

const fn request(order: u8, mobility: Mobility) -> Request {
    Request::new(Order::new(order), mobility)
}

/// Both ends of the search.
const BOTH: [Mobility; 2] = [Mobility::Unmovable, Mobility::Movable];

/// From 8 GiB to 1 TiB.
const SIZES: [usize; 3] = [8, 64, 1024];

/// Up to one root, and the number of loans.
const MISS: u64 = 3 + 1;

/// Up to the root, down again, and a leaf.
const FOUND: u64 = 6;

#[test]
fn a_group_is_missed_in_few_words_though_every_other_page_block_is_free() {
    for gib in SIZES {
        let memory = Memory::new(gib * GIB);
        let store = memory.store(|block| block % 2 == 1);
        for mobility in BOTH {
            for order in 10..=18 {
                let (found, words) = accesses(|| store.take(&request(order, mobility)));
                assert_eq!(found, None);
                assert!(words <= MISS, "{gib} GiB, order {order}: {words}");
            }
        }
    }
}

#[test]
fn the_only_group_is_found_in_few_words_at_either_end() {
    for gib in SIZES {
        for group in [1, 2, 6, 7, 9] {
            let memory = Memory::new(gib * GIB);
            let (blocks, size) = (memory.frames / BLOCK, 1 << group);
            let order = 9 + group as u8;
            let first = if group % 2 == 0 { 0 } else { blocks - size };
            let inside = move |block: usize| (first..first + size).contains(&block);
            // Besides the group, one half of every other.
            let odd_half = |block: usize| block / (size / 2) % 2 == 1;
            let store = memory.store(|block| inside(block) || odd_half(block));
            // A group of full leaves is looked for in one word for each 64 of them.
            let rows = if group > 6 {
                2 * blocks.div_ceil(4096)
            } else {
                0
            };
            let most = FOUND + rows as u64;
            for mobility in BOTH {
                let (found, words) = accesses(|| store.can_serve(&request(order, mobility)));
                assert!(found && words <= most, "{gib} GiB, order {order}: {words}");
                let at = store.take(&request(order, mobility)).unwrap();
                assert_eq!(at, Frame::new(first * BLOCK));
                let (found, words) = accesses(|| store.can_serve(&request(order, mobility)));
                assert!(!found && words <= most, "{gib} GiB, order {order}: {words}");
                store.give(at, Order::new(order)).unwrap();
            }
        }
    }
}

/// What a request reads and writes to call in a loan: 8 states and their bits, the sets that the
/// block goes back to, and the groups once more.
const CALLED_IN: u64 = 80;

#[test]
fn loans_are_called_in_without_a_look_at_every_page_block() {
    for gib in SIZES {
        let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, gib * GIB), 1);
        let bytes = Zone::<OneCpu, Exclusive>::bytes(&plan);
        let mut memory = vec![core::mem::MaybeUninit::uninit(); bytes];
        let zone = Zone::<OneCpu, Exclusive>::new(&plan, OneCpu, &mut memory).unwrap();
        for block in (1..gib * GIB / BLOCK).step_by(2) {
            let block = FrameRange::at(Frame::new(block * BLOCK), BLOCK);
            zone.add(block).unwrap();
        }
        // The stash has a page block on loan from now on.
        zone.alloc(&request(0, Mobility::Movable)).unwrap();
        let pair = request(10, Mobility::Movable);
        let (found, words) = accesses(|| zone.alloc_uncached(&pair));
        assert_eq!(found, None);
        assert!(MISS < words && words <= CALLED_IN, "{gib} GiB: {words}");
        let (found, words) = accesses(|| zone.alloc_uncached(&pair));
        assert_eq!(found, None);
        assert!(words <= MISS, "{gib} GiB, no loans: {words}");
    }
}

/// What a look at a full reserve reads: each slot and the state of the block that it names, and how
/// many they are.
const ASIDE: u64 = 2 * 32 + 1;

/// A zone without stashes, all of it free, of which so many page blocks may be set aside. It lives
/// as long as the test process.
fn zone_with_reserve(gib: usize, blocks: usize) -> Zone<'static, OneCpu, Exclusive> {
    let plan = ZonePlan {
        set_aside: SetAside { percent: 1, blocks },
        ..ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, gib * GIB), 0)
    };
    let bytes = Zone::<OneCpu, Exclusive>::bytes(&plan);
    let memory = vec![core::mem::MaybeUninit::uninit(); bytes].leak();
    let zone = Zone::new(&plan, OneCpu, memory).unwrap();
    zone.add(plan.span).unwrap();
    zone
}

/// The words that a request of a zone without a free frame reads, if `blocks` page blocks are set
/// aside in it: one that may have them, and one for which nothing is left but to give them up.
fn words_of_a_full_zone(gib: usize, blocks: usize) -> [u64; 2] {
    let zone = zone_with_reserve(gib, blocks);
    let half = request(8, Mobility::Unmovable).atomic();
    while zone.alloc_above(&half, Mark::Min).is_some() {}
    let aside = (0..gib * GIB).step_by(BLOCK).map(Frame::new);
    let aside = aside.filter(|&at| zone.block_type(at) == Some(MigrateType::HighAtomic));
    assert_eq!((zone.free_frames(), aside.count()), (0, blocks));
    let (taken, may_have) = accesses(|| zone.alloc_above(&half, Mark::Min));
    assert_eq!(taken, None);
    let single = request(0, Mobility::Unmovable);
    let last = || zone.alloc_set_aside(&single, Mark::Min, &Patience::new());
    let (taken, gives_up) = accesses(last);
    assert_eq!(taken, None);
    zone.check().unwrap();
    [may_have, gives_up]
}

#[test]
fn a_look_at_what_is_set_aside_reads_so_many_words_in_any_zone() {
    for gib in [8, 64] {
        let without = words_of_a_full_zone(gib, 0);
        let with = words_of_a_full_zone(gib, 32);
        let more: [u64; 2] = core::array::from_fn(|i| with[i] - without[i]);
        // No slot is looked at while none names a block.
        assert!(
            (ASIDE - 1..=ASIDE).contains(&more[0]),
            "{gib} GiB: {more:?}"
        );
        // Two looks for something that would serve, and each block is given up in a few words.
        assert!(more[1] <= 3 * ASIDE + 32 * 10, "{gib} GiB: {more:?}");
        println!("{gib} GiB: {without:?} {with:?}");
    }
}

/// Hooks that free and move nothing, but do not say so in advance.
struct Idle;

impl Reclaim for Idle {
    fn reclaim(&self, _need: &Need) -> usize {
        0
    }
}

impl Migrate for Idle {
    fn moves(&self) -> bool {
        false
    }

    fn migrate(&self, _from: Frame, _order: Order, _to: Frame) -> Migration {
        Migration::Unknown
    }
}

/// What a request of order 3 reads before it is refused, in a zone of any size: the roots of all
/// sets, for each mark and after the caches were drained; what they hold; and the parts of counts.
const REFUSED: u64 = 498;

#[test]
fn a_request_that_must_fail_is_tried_again_only_if_somebody_may_have_freed_something() {
    for gib in [1, 8] {
        let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, gib * GIB), 1);
        let bytes = Zone::<OneCpu, Exclusive>::bytes(&plan);
        let mut memory = vec![core::mem::MaybeUninit::uninit(); bytes];
        let zones = [Zone::<OneCpu, Exclusive>::new(&plan, OneCpu, &mut memory).unwrap()];
        zones[0].add(plan.span).unwrap();
        let node = [Node::new(0, &zones)];
        let nodes = Nodes::new(&node);
        let mut all = vec![Frame::new(0); gib * GIB];
        let single = request(0, Mobility::Movable);
        assert_eq!(nodes.alloc_bulk(0, &single, &mut all), Ok(all.len()));
        // Every other frame is free.
        all.sort_unstable();
        for pair in all.chunks(2) {
            nodes.free(pair[0], Order::ZERO).unwrap();
        }
        nodes.drain();
        let eight = request(3, Mobility::Movable);
        let (refused, words) = accesses(|| nodes.alloc(0, &eight).is_err());
        assert!(refused && words <= REFUSED, "{gib} GiB: {words}");
        let hooked = Nodes::with_hooks(&node, Idle, SlowPath::MODERN);
        let (refused, twice) = accesses(|| hooked.alloc(0, &eight).is_err());
        assert!(
            refused && twice > words * 3 / 2,
            "{gib} GiB: {words}, {twice}"
        );
    }
}

/// The words that a single frame costs that is there: a request that finds what it wants, in a zone
/// that is so many frames above its low mark.
fn words_of_a_frame_that_is_there(blocks: usize, above: usize) -> u64 {
    let zone = zone_with_reserve(8, blocks);
    let half = request(8, Mobility::Unmovable).atomic();
    for _ in 0..64 {
        zone.alloc_above(&half, Mark::Min).unwrap();
    }
    let low = zone.free_frames() - above;
    let marks = Marks {
        min: low / 2,
        low,
        high: low,
    };
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
    let single = request(0, Mobility::Movable);
    zone.alloc_above(&single, Mark::First).unwrap();
    let (taken, words) = accesses(|| zone.alloc_above(&single, Mark::First));
    assert!(taken.is_some());
    words
}

#[test]
fn a_request_that_finds_what_it_wants_pays_nothing_far_above_the_mark() {
    // Less than all that may be set aside, and more.
    for (above, most) in [(10_000, ASIDE), (40_000, 0)] {
        let without = words_of_a_frame_that_is_there(0, above);
        let with = words_of_a_frame_that_is_there(32, above);
        assert!(with <= without + most, "{above} above: {without}, {with}");
    }
}

/// A single frame for who cannot wait, in a zone where all that is free is set aside: not found, so
/// that another zone is asked. How many words are read?
#[test]
fn a_zone_with_nothing_but_its_reserve_is_passed_by() {
    let words = [8, 64].map(|gib| {
        let zone = zone_with_reserve(gib, 1);
        let half = request(8, Mobility::Unmovable).atomic();
        zone.alloc_above(&half, Mark::Min).unwrap();
        let wide = request(9, Mobility::Movable);
        while zone.alloc_above(&wide, Mark::First).is_some() {}
        assert_eq!(zone.free_frames(), 256);
        let single = request(0, Mobility::Movable).atomic();
        let (taken, words) = accesses(|| zone.alloc_above(&single, Mark::First));
        assert_eq!(taken, None);
        words
    });
    assert!(words[1] < 2 * words[0], "{words:?}");
}

/// The most words that a refused request reads while a range is isolated, in a zone of any size: for
/// each end of the range, in each of its looks, eight words of the page block there, each with the
/// four ranges that may be isolated.
const REFUSED_BESIDE_ISOLATION: u64 = 700;

/// The words that refused requests read in a full zone of which a range is isolated, or nothing: an
/// ordinary frame, one in an interrupt, and two adjacent frames.
fn words_beside_isolation(gib: usize, isolated: bool) -> [u64; 3] {
    let zone = zone_with_reserve(gib, 0);
    // An end inside a page block at either side; nothing is free beside the range.
    let range = FrameRange::new(BLOCK + 8, gib * GIB / 2 + 100);
    if isolated {
        zone.isolate(range).unwrap();
    }
    let wide = request(9, Mobility::Movable);
    while zone.alloc_above(&wide, Mark::First).is_some() {}
    let single = request(0, Mobility::Movable);
    while zone.alloc_above(&single, Mark::First).is_some() {}
    let all = if isolated { range.len() } else { 0 };
    assert_eq!(zone.free_frames(), 0);
    let words = [
        single,
        single.in_context(Context::Interrupt),
        request(1, Mobility::Movable),
    ]
    .map(|refused| {
        let (refused, words) = accesses(|| zone.alloc(&refused).is_err());
        assert!(refused);
        words
    });
    zone.unisolate(range);
    assert_eq!(zone.free_frames(), all);
    zone.check().unwrap();
    words
}

#[test]
fn a_refusal_looks_only_where_isolated_ranges_end_in_any_zone() {
    let [small, large] = [1, 8].map(|gib| {
        let without = words_beside_isolation(gib, false);
        let with = words_beside_isolation(gib, true);
        println!("{gib} GiB: {without:?} {with:?}");
        with
    });
    for (small, large) in small.into_iter().zip(large) {
        let most = REFUSED_BESIDE_ISOLATION;
        assert!(small <= most && large <= most, "{small}, {large}");
        // A look at each page block would read eight times as much.
        assert!(large <= 2 * small, "{small}, {large}");
    }
}
