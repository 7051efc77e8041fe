//! The model kernel, rule by rule: which pages are written before they are freed, which stay, what
//! the shrinker frees, and where pages are after they moved; and its records: splits, LRU lists,
//! mixed page blocks.

use std::collections::{BTreeMap, VecDeque};

use brickyard::node::{Node, Nodes};
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{Activity, Eviction, Migrate, Migration, Need, Reclaim};
use brickyard::{Frame, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::LabZone;
use brickyard_workload::build::{Job, build};
use brickyard_workload::kernel::{Freed, WRITE_NANOSECONDS};
use brickyard_workload::mixing::{BlockContents, Mixed};
use brickyard_workload::pages::{Age, Block, Location, PageId, Pages, Role, mark};
use brickyard_workload::{Kernel, Machine, Processor, Rules, Swap};
use proptest::collection::vec;
use proptest::prelude::*;

const PAGES: usize = 4096;

/// Runs a test with every configuration: `|kernel, plain, nodes|`, where only `nodes` has the
/// kernel's hooks, on 8 MiB.
macro_rules! on_every_design {
    ($(#[$meta:meta])* fn $name:ident($swap:expr) |$kernel:ident, $plain:ident, $nodes:ident| $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            struct Test;

            impl Job for Test {
                type Output = ();

                fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) {
                    let $plain = Nodes::new(nodes);
                    $plain.set_min_free_kbytes(128, 4096);
                    let zones = $plain.zones().count();
                    let pages = Pages::new(Frame::new(0), 2048, zones, PAGES, Order::HUGE);
                    let rules = Rules { swap: $swap, ..Rules::TODAY };
                    let $kernel = Kernel::new(Nodes::new(nodes), pages, rules);
                    let $nodes = Nodes::with_hooks(nodes, &$kernel, rules.slow_path);
                    $body
                    both_ways(&$kernel);
                    let census = $plain.check().unwrap();
                    assert_eq!(census.allocated as u64, $kernel.look(Pages::in_use));
                }
            }

            for config in Configuration::ALL {
                let machine = Machine::sized(8 << 20, 2, 4096).unwrap();
                build(config, &machine, Test).unwrap();
            }
        }
    };
}

/// Checks invariant `both-ways`, and that no two blocks overlap.
fn both_ways<Z: LabZone>(kernel: &Kernel<'_, Z>) {
    kernel.look(|pages| {
        let blocks: Vec<Block> = pages.blocks().collect();
        for pair in blocks.windows(2) {
            let end = pair[0].frame.plus(pair[0].order.frames());
            assert!(end <= pair[1].frame, "{pair:?}");
        }
        let by_page: BTreeMap<PageId, Frame> = blocks
            .iter()
            .map(|block| (block.page, block.frame))
            .collect();
        for page in (0..PAGES as u32).map(PageId) {
            match pages.location(page) {
                Location::At(frame) => assert_eq!(by_page.get(&page), Some(&frame)),
                _ => assert_eq!(by_page.get(&page), None),
            }
        }
    });
}

fn need(frames: usize) -> Need {
    Need {
        frames,
        order: Order::ZERO,
        highest: ZoneKind::Movable,
    }
}

/// Takes blocks of these pages, one after another.
fn take<Z: LabZone>(
    kernel: &Kernel<'_, Z>,
    plain: &Nodes<'_, Z>,
    pages: core::ops::Range<u32>,
    order: Order,
    role: Role,
    marks: u8,
) -> Vec<Frame> {
    let request = Request::new(order, role.mobility());
    let blocks = pages.step_by(order.frames());
    blocks
        .map(|page| {
            let frame = plain.alloc(0, &request).unwrap();
            kernel.own(frame, order, role, marks, PageId(page));
            frame
        })
        .collect()
}

/// Returns how many of these pages are still in memory.
fn there<Z: LabZone>(kernel: &Kernel<'_, Z>, pages: core::ops::Range<u32>) -> usize {
    let is_there =
        |&page: &u32| kernel.look(|pages| matches!(pages.location(PageId(page)), Location::At(_)));
    pages.filter(is_there).count()
}

// ---- reclaim ----

on_every_design! {
    fn a_clean_page_is_freed_at_once_and_a_dirty_one_is_written_first(Swap::Off)
    |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..200, Order::ZERO, Role::File, 0);
        let freed = kernel.reclaim(&need(64));
        assert!(freed >= 64);
        let clean = kernel.pressure();
        assert_eq!((clean.direct, clean.files), (freed as u64, freed as u64));
        assert_eq!((clean.written, clean.waited, clean.direct_calls), (0, 0, 1));
        kernel.drop_caches();
        let clean = kernel.pressure();
        take(&kernel, &plain, 1000..1200, Order::ZERO, Role::File, mark::DIRTY);
        let freed = kernel.reclaim(&need(64));
        assert!(freed >= 64);
        let dirty = kernel.pressure();
        assert_eq!(dirty.written, freed as u64);
        // The clock stands still here, so every write is waited for.
        assert_eq!(dirty.waited, freed as u64 * WRITE_NANOSECONDS);
        assert_eq!(dirty.files - clean.files, freed as u64);
        // They are reclaimed, so the trace's own frees of them are dropped.
        assert_eq!(there(&kernel, 1000..1200), 200 - freed);
        let outcomes = (1000..1200).map(|page| kernel.give(PageId(page), Order::ZERO));
        let dropped = outcomes.filter(|&freed| freed == Freed::WasReclaimed).count();
        assert_eq!(dropped, freed);
    }
}

on_every_design! {
    fn background_reclaim_writes_one_page_after_another(Swap::Off)
    |kernel, plain, _nodes| {
        let request = Request::page(Mobility::Movable);
        let frames = core::iter::from_fn(|| plain.alloc(0, &request).ok());
        let all = frames.enumerate().map(|(page, frame)| {
            let page = PageId(page as u32);
            kernel.own(frame, Order::ZERO, Role::File, mark::DIRTY, page);
        });
        let all = all.count();
        let below_high = plain.zones().any(|zone| zone.free_frames() < zone.watermarks().marks().high);
        assert!(below_high, "the zone is too large for this test");
        kernel.wake(&need(1));
        assert!(kernel.is_woken());
        kernel.run_background();
        assert_eq!(there(&kernel, 0..2048), all, "none is freed before it is written");
        let writing = kernel.look(|pages| {
            pages.blocks().filter(|block| block.marks & mark::WRITEBACK != 0).count()
        });
        assert!(writing >= 32, "{writing}");
        for n in 0..=writing as u64 {
            kernel.set_time(n * WRITE_NANOSECONDS);
            assert_eq!(there(&kernel, 0..2048), all - n as usize);
            let pressure = kernel.pressure();
            assert_eq!((pressure.written, pressure.background), (n, n));
            assert_eq!((pressure.waited, pressure.direct), (0, 0), "no request waits");
        }
        // A page that is freed while it is written is freed once.
        kernel.run_background();
        let begun = kernel.look(|pages| {
            pages.blocks().find(|block| block.marks & mark::WRITEBACK != 0)
        });
        if let Some(block) = begun {
            assert_eq!(kernel.give(block.page, Order::ZERO), Freed::Whole);
        }
        kernel.set_time(u64::MAX);
    }
}

on_every_design! {
    fn pages_of_processes_stay_without_swap(Swap::Off) |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..100, Order::ZERO, Role::Anonymous, 0);
        assert_eq!(kernel.reclaim(&need(64)), 0);
        let frame = kernel.look(|pages| pages.location(PageId(3)));
        let Location::At(frame) = frame else { panic!("page 3 is in memory") };
        assert_eq!(kernel.evict(frame, Activity::Inactive), Eviction::Unsuitable);
        assert_eq!(there(&kernel, 0..100), 100);
    }
}

on_every_design! {
    fn pages_of_processes_are_written_where_there_is_swap(Swap::On) |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..400, Order::ZERO, Role::Anonymous, 0);
        let freed = kernel.reclaim(&need(64)) as u64;
        assert!(freed >= 64);
        let pressure = kernel.pressure();
        assert_eq!((pressure.anonymous, pressure.written), (freed, freed));
        assert_eq!(there(&kernel, 0..400), 400 - freed as usize);
    }
}

on_every_design! {
    fn locked_pages_are_on_no_list_and_never_reclaimed(Swap::On) |kernel, plain, _nodes| {
        for role in [Role::File, Role::Anonymous] {
            let from = role as u32 * 100;
            take(&kernel, &plain, from..from + 50, Order::ZERO, role, mark::LOCKED);
            take(&kernel, &plain, from + 50..from + 100, Order::ZERO, role, mark::LOCKED | mark::ACTIVE);
        }
        for zone in 0..plain.zones().count() {
            for age in [Age::InactiveFile, Age::ActiveFile, Age::InactiveAnonymous, Age::ActiveAnonymous] {
                assert_eq!(kernel.look(|pages| pages.frames_on(zone, age)), 0);
            }
        }
        for zone in plain.zones() {
            assert_eq!(kernel.oldest(zone.span()), None);
        }
        assert_eq!(kernel.reclaim(&need(64)), 0);
        assert_eq!(kernel.drop_caches(), 0);
        let frames: Vec<Frame> = kernel.look(|pages| pages.blocks().map(|block| block.frame).collect());
        for frame in frames {
            for activity in [Activity::Inactive, Activity::Active] {
                assert_eq!(kernel.evict(frame, activity), Eviction::Unsuitable);
            }
        }
        assert_eq!(there(&kernel, 0..PAGES as u32), 200);
    }
}

on_every_design! {
    fn one_slab_in_four_is_empty_and_always_the_same_ones(Swap::Off) |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..800, Order::ZERO, Role::SlabReclaimable, 0);
        let mut freed = 0;
        for _ in 0..200 {
            freed += kernel.reclaim(&need(32));
        }
        assert!((150..250).contains(&freed), "{freed} of 800");
        assert_eq!(kernel.pressure().slabs, freed as u64);
        assert_eq!(kernel.drop_caches(), 0, "the shrinker has scanned all slabs");
        assert_eq!(there(&kernel, 0..800), 800 - freed);
        // Unreclaimable slabs are not scanned.
        take(&kernel, &plain, 1000..1100, Order::ZERO, Role::Slab, 0);
        assert_eq!(kernel.reclaim(&need(32)), 0);
        assert_eq!(there(&kernel, 1000..1100), 100);
    }
}

on_every_design! {
    fn lumpy_reclaim_takes_pages_of_the_requested_activity(Swap::Off) |kernel, plain, _nodes| {
        let idle = take(&kernel, &plain, 0..2, Order::ZERO, Role::File, 0);
        let active = take(&kernel, &plain, 2..3, Order::ZERO, Role::File, mark::ACTIVE)[0];
        let dirty = take(&kernel, &plain, 3..4, Order::ZERO, Role::File, mark::DIRTY)[0];
        let large = take(&kernel, &plain, 4..8, Order::new(2), Role::File, 0)[0];
        let tables = take(&kernel, &plain, 8..9, Order::ZERO, Role::PageTable, 0)[0];
        let evict = |frame, activity| kernel.evict(frame, activity);
        assert_eq!(evict(idle[0], Activity::Active), Eviction::Unsuitable);
        assert_eq!(evict(idle[0], Activity::Inactive), Eviction::Freed);
        assert_eq!(evict(idle[0], Activity::Inactive), Eviction::Unsuitable, "free by now");
        assert_eq!(evict(active, Activity::Inactive), Eviction::Unsuitable);
        assert_eq!(evict(active, Activity::Active), Eviction::Deactivated);
        assert_eq!(evict(active, Activity::Inactive), Eviction::Freed);
        assert_eq!(evict(dirty, Activity::Inactive), Eviction::Freed);
        assert_eq!(evict(large, Activity::Inactive), Eviction::Unsuitable);
        assert_eq!(evict(tables, Activity::Inactive), Eviction::Unsuitable);
        let pressure = kernel.pressure();
        assert_eq!((pressure.lumpy, pressure.written, pressure.waited), (3, 1, WRITE_NANOSECONDS));
        assert_eq!(kernel.give(PageId(0), Order::ZERO), Freed::WasReclaimed);
        assert_eq!(kernel.give(PageId(0), Order::ZERO), Freed::Unknown);
    }
}

// ---- caches and ends ----

on_every_design! {
    fn dropping_caches_frees_only_files_and_empty_slabs(Swap::Off)
    |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..100, Order::ZERO, Role::File, 0);
        take(&kernel, &plain, 100..150, Order::ZERO, Role::File, mark::DIRTY | mark::ACTIVE);
        take(&kernel, &plain, 160..168, Order::new(3), Role::File, 0);
        for (from, role) in [(200, Role::Anonymous), (300, Role::PageTable), (400, Role::Slab), (500, Role::Kernel), (600, Role::Pinned)] {
            take(&kernel, &plain, from..from + 40, Order::ZERO, role, 0);
        }
        assert_eq!(kernel.drop_caches(), 158);
        assert_eq!(kernel.pressure().written, 50);
        assert_eq!(there(&kernel, 0..PAGES as u32), 200);
        assert_eq!(kernel.drop_caches(), 0);
    }
}

on_every_design! {
    fn ending_frees_the_selected_blocks(Swap::Off) |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..64, Order::ZERO, Role::Anonymous, 0);
        take(&kernel, &plain, 64..128, Order::new(4), Role::Kernel, 0);
        take(&kernel, &plain, 128..160, Order::ZERO, Role::File, 0);
        assert_eq!(kernel.end(|block| block.page < PageId(80)), 80);
        assert_eq!(there(&kernel, 0..80), 0);
        assert_eq!(kernel.end(|block| block.page < PageId(80)), 0);
        assert_eq!(kernel.give(PageId(7), Order::ZERO), Freed::Unknown, "freed, not reclaimed");
        assert_eq!(kernel.end(|_| true), 48 + 32);
        assert_eq!(kernel.look(Pages::in_use), 0);
    }
}

// ---- frees of a trace ----

on_every_design! {
    fn a_free_may_be_of_a_part_or_of_several(Swap::Off) |kernel, plain, nodes| {
        let block = take(&kernel, &plain, 0..16, Order::new(4), Role::Kernel, 0)[0];
        assert_eq!(kernel.give(PageId(5), Order::ZERO), Freed::Parts);
        let rest: Vec<(usize, u8)> = kernel.look(|pages| {
            let at = |block: Block| (block.frame.number(), block.order.get());
            pages.blocks().map(at).collect()
        });
        let first = block.number();
        assert_eq!(rest, [(first, 2), (first + 4, 0), (first + 6, 1), (first + 8, 3)]);
        assert_eq!(kernel.give(PageId(5), Order::ZERO), Freed::Unknown, "it is free");
        assert_eq!(kernel.give(PageId(8), Order::new(3)), Freed::Whole, "a whole block by now");
        // The remaining pages, with a hole in them.
        assert_eq!(kernel.give(PageId(0), Order::new(3)), Freed::Parts);
        assert_eq!(kernel.look(Pages::in_use), 0);
        // Several blocks, at any frames.
        take(&kernel, &plain, 32..40, Order::ZERO, Role::Anonymous, 0);
        take(&kernel, &plain, 40..48, Order::new(3), Role::Anonymous, 0);
        assert_eq!(kernel.give(PageId(32), Order::new(4)), Freed::Parts);
        assert_eq!(kernel.look(Pages::in_use), 0);
        // A failed request is recorded, so its free is recognised.
        let huge = Request::new(Order::new(11), Mobility::Unmovable);
        let refused = kernel.take(&nodes, 0, &huge, Role::Kernel, 0, PageId(2048));
        assert!(refused.is_err());
        assert_eq!(kernel.look(|pages| pages.location(PageId(2048))), Location::Refused);
        assert_eq!(kernel.give(PageId(2048), Order::new(11)), Freed::WasRefused);
        assert_eq!(kernel.give(PageId(2048), Order::new(11)), Freed::Unknown);
    }
}

on_every_design! {
    fn an_unaligned_free_frees_no_more_than_a_block(Swap::Off)
    |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..16, Order::new(4), Role::Kernel, 0);
        // No kernel frees like this; a damaged trace may.
        assert_eq!(kernel.give(PageId(6), Order::new(2)), Freed::Parts);
        both_ways(&kernel);
        assert_eq!(kernel.give(PageId(0), Order::new(4)), Freed::Parts);
        assert_eq!(kernel.look(Pages::in_use), 0);
    }
}

// ---- migration ----

on_every_design! {
    fn pages_are_found_after_they_have_moved(Swap::Off) |kernel, plain, _nodes| {
        take(&kernel, &plain, 0..800, Order::ZERO, Role::Anonymous, 0);
        take(&kernel, &plain, 800..832, Order::new(2), Role::File, mark::ACTIVE);
        for page in (0..800).filter(|page| page % 3 != 0) {
            assert_eq!(kernel.give(PageId(page), Order::ZERO), Freed::Whole);
        }
        let before: Vec<Location> = kernel.look(|pages| (0..832).map(|page| pages.location(PageId(page))).collect());
        let lists = |kernel: &Kernel<'_, Z>| {
            let zones = 0..plain.zones().count();
            let of = |zone| kernel.look(|pages| {
                [Age::ActiveFile, Age::InactiveAnonymous].map(|age| pages.frames_on(zone, age))
            });
            zones.map(of).collect::<Vec<_>>()
        };
        let (listed, used) = (lists(&kernel), kernel.look(Pages::in_use));
        let mut moved = 0;
        for zone in plain.zones() {
            moved += compact_all(zone, &&kernel).moved;
        }
        assert_eq!(kernel.pressure().moved, moved as u64);
        both_ways(&kernel);
        assert_eq!((lists(&kernel), kernel.look(Pages::in_use)), (listed, used));
        let after: Vec<Location> = kernel.look(|pages| (0..832).map(|page| pages.location(PageId(page))).collect());
        let elsewhere = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        assert!(elsewhere <= moved && (moved == 0) == (elsewhere == 0), "{moved} {elsewhere}");
        for page in (0..800).step_by(3) {
            assert_eq!(kernel.give(PageId(page), Order::ZERO), Freed::Whole);
        }
        for page in (800..832).step_by(4) {
            assert_eq!(kernel.give(PageId(page), Order::new(2)), Freed::Whole);
        }
        assert_eq!(kernel.look(Pages::in_use), 0);
    }
}

on_every_design! {
    fn only_what_moves_is_moved(Swap::Off) |kernel, plain, _nodes| {
        let order = Order::ZERO;
        let frame = |page, role, marks| take(&kernel, &plain, page..page + 1, order, role, marks)[0];
        let to = Frame::new(2047);
        for (page, role) in [(0, Role::PageTable), (1, Role::Slab), (2, Role::SlabReclaimable), (3, Role::Kernel), (4, Role::Pinned), (5, Role::Held)] {
            let at = frame(page, role, 0);
            assert!(!kernel.can_move(at, order), "{role:?}");
            assert_eq!(kernel.migrate(at, order, to), Migration::Never, "{role:?}");
        }
        let writing = frame(10, Role::File, mark::WRITEBACK);
        assert_eq!(kernel.migrate(writing, order, to), Migration::Later);
        let file = frame(11, Role::File, mark::LOCKED);
        assert!(kernel.can_move(file, order));
        assert_eq!(kernel.migrate(file, Order::new(1), to), Migration::Unknown, "another size");
        assert_eq!(kernel.migrate(to, order, file), Migration::Unknown, "nobody's");
        assert_eq!(kernel.pressure().moved, 0);
    }
}

// ---- the records ----

/// 64 frames from 1024 on in page blocks of 16, one zone.
fn records() -> Pages {
    Pages::new(Frame::new(1024), 64, 1, 64, Order::new(4))
}

fn block(at: usize, order: u8, role: Role) -> Block {
    Block {
        frame: Frame::new(1024 + at),
        order: Order::new(order),
        role,
        marks: 0,
        page: PageId(at as u32),
        zone: 0,
    }
}

#[test]
fn a_split_keeps_every_page_at_its_frame_and_its_marks() {
    let mut pages = records();
    let whole = Block {
        marks: mark::ACTIVE | mark::DIRTY,
        ..block(16, 4, Role::File)
    };
    pages.insert(whole);
    pages.split(whole.frame, Frame::new(1024 + 22), Order::new(1));
    let parts: Vec<(usize, u8)> = pages
        .blocks()
        .map(|part| (part.frame.number() - 1024, part.order.get()))
        .collect();
    assert_eq!(parts, [(16, 2), (20, 1), (22, 1), (24, 3)]);
    for part in pages.blocks() {
        assert_eq!(part.page.0 as usize, part.frame.number() - 1024);
        assert_eq!((part.role, part.marks), (Role::File, whole.marks));
    }
    assert_eq!(
        (pages.in_use(), pages.frames_on(0, Age::ActiveFile)),
        (16, 16)
    );
    assert_eq!(
        pages.location_around(PageId(27)),
        Some((PageId(24), Location::At(Frame::new(1024 + 24))))
    );
    // Splitting a free frame does nothing, nor does splitting a block of that size.
    pages.split(Frame::new(1024), Frame::new(1024), Order::ZERO);
    pages.split(Frame::new(1024 + 22), Frame::new(1024 + 22), Order::new(1));
    assert_eq!(pages.blocks().count(), 4);
}

#[test]
fn a_page_taken_twice_belongs_to_the_later_block() {
    let mut pages = records();
    let (old, new) = (block(0, 2, Role::Kernel), block(8, 0, Role::Kernel));
    pages.insert(old);
    pages.insert(Block {
        page: PageId(0),
        ..new
    });
    assert_eq!(pages.location(PageId(0)), Location::At(new.frame));
    assert_eq!(pages.block(old.frame).unwrap().page, PageId::NONE);
    pages.remove(old.frame);
    assert_eq!(pages.location(PageId(0)), Location::At(new.frame));
}

#[test]
fn a_page_block_is_mixed_while_it_holds_two_mobilities() {
    let mut pages = records();
    pages.insert(block(0, 0, Role::Anonymous));
    assert_eq!((pages.mixing().mixed(), pages.take_last_mixed()), (0, None));
    pages.insert(block(1, 0, Role::Slab));
    let contents = BlockContents { frames: [0, 1, 0] };
    let mixed = Mixed {
        block: Frame::new(1024),
        newcomer: Mobility::Unmovable,
        contents,
    };
    assert_eq!(
        (pages.mixing().mixed(), pages.take_last_mixed()),
        (1, Some(mixed))
    );
    assert_eq!(pages.take_last_mixed(), None, "it is returned once");
    // A third mobility does not count again, nor does another block of the same one.
    pages.insert(block(2, 1, Role::SlabReclaimable));
    pages.insert(block(4, 2, Role::PageTable));
    assert_eq!((pages.mixing().mixed(), pages.take_last_mixed()), (1, None));
    // A block larger than a page block: each page block is of one mobility.
    pages.insert(block(32, 5, Role::File));
    assert_eq!(pages.mixing().mixed(), 1);
    let held: Vec<[u32; 3]> = pages
        .mixing()
        .blocks()
        .map(|(_, held)| held.frames)
        .collect();
    assert_eq!(held, [[5, 1, 2], [0, 0, 0], [0, 16, 0], [0, 16, 0]]);
    let firsts: Vec<usize> = pages.mixing().blocks().map(|(at, _)| at.number()).collect();
    assert_eq!(firsts, [1024, 1040, 1056, 1072]);
    for at in [1, 2, 4] {
        assert_eq!(pages.mixing().mixed(), 1);
        pages.remove(Frame::new(1024 + at)).unwrap();
    }
    assert_eq!(pages.mixing().mixed(), 0);
}

#[test]
fn the_majority_decides_and_in_a_tie_the_more_movable() {
    let most = |unmovable, movable, reclaimable| {
        let frames = [unmovable, movable, reclaimable];
        BlockContents { frames }.majority()
    };
    assert_eq!(most(0, 0, 0), None);
    assert_eq!(most(3, 2, 2), Some(Mobility::Unmovable));
    assert_eq!(most(2, 3, 2), Some(Mobility::Movable));
    assert_eq!(most(2, 2, 3), Some(Mobility::Reclaimable));
    assert_eq!(most(2, 2, 2), Some(Mobility::Movable));
    assert_eq!(most(0, 1, 1), Some(Mobility::Movable));
    assert_eq!(most(1, 0, 0), Some(Mobility::Unmovable));
    assert!(BlockContents::default().is_empty() && !BlockContents::default().is_mixed());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares LRU lists with plain queues.
    #[test]
    fn lists_are_first_in_first_out(operations in vec((0..6_u8, 0..64_usize), 1..200)) {
        let mut pages = records();
        let mut queues: [VecDeque<usize>; 2] = Default::default();
        for (operation, at) in operations {
            let frame = Frame::new(1024 + at);
            let held = pages.block(frame);
            let on = |marks: u8| usize::from(marks & mark::ACTIVE != 0);
            let leave = |queues: &mut [VecDeque<usize>; 2]| {
                queues.iter_mut().for_each(|queue| queue.retain(|&other| other != at));
            };
            match (operation, held) {
                (0..=2, None) => {
                    let marks = if operation == 0 { mark::ACTIVE } else { 0 };
                    pages.insert(Block { marks, ..block(at, 0, Role::File) });
                    queues[on(marks)].push_back(at);
                }
                (0, Some(held)) => {
                    pages.mark(frame, mark::ACTIVE, 0);
                    if held.marks & (mark::ACTIVE | mark::LOCKED) == 0 {
                        leave(&mut queues);
                        queues[1].push_back(at);
                    }
                }
                (1, Some(held)) => {
                    pages.mark(frame, 0, mark::ACTIVE);
                    if held.marks & (mark::ACTIVE | mark::LOCKED) == mark::ACTIVE {
                        leave(&mut queues);
                        queues[0].push_back(at);
                    }
                }
                (2, Some(_)) => {
                    pages.mark(frame, mark::LOCKED, 0);
                    leave(&mut queues);
                }
                (3, Some(held)) => {
                    pages.mark(frame, mark::DIRTY, mark::LOCKED);
                    if held.marks & mark::LOCKED != 0 {
                        queues[on(held.marks)].push_back(at);
                    }
                }
                (4, Some(held)) => {
                    pages.rotate(frame);
                    if held.marks & mark::LOCKED == 0 {
                        leave(&mut queues);
                        queues[on(held.marks)].push_back(at);
                    }
                }
                (5, Some(_)) => {
                    pages.remove(frame).unwrap();
                    leave(&mut queues);
                }
                _ => {}
            }
            for (queue, age) in queues.iter().zip([Age::InactiveFile, Age::ActiveFile]) {
                prop_assert_eq!(pages.frames_on(0, age), queue.len() as u64);
                let oldest = pages.oldest(0, age).map(|block| block.frame.number() - 1024);
                prop_assert_eq!(oldest, queue.front().copied());
            }
        }
    }
}
