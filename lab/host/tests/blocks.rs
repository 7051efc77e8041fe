//! Page blocks, the blocks that could be allocated, and why not more.

use brickyard::Order;
use brickyard::stats::FreeCounts;
use brickyard_host::Unevictable;
use brickyard_host::blocks::{self, BlockKind, BlockSummary};
use brickyard_host::look::{Depth, Look};
use brickyard_host::movability::{Judge, Movability};
use brickyard_host::outlook::{self, Outlook, Verdict};
use brickyard_host::unflagged::{contains, long_stretches};
use brickyard_host::zoneinfo::{PageSet, ZoneInfo};
use brickyard_host::{Host, HostError};
use brickyard_trace::{PageState, PageUse, StateRun};
use proptest::prelude::*;

/// Blocks of eight frames keep the tests readable.
const BLOCK: u8 = 3;

/// Adjacent runs from frame 0, of single frames.
fn runs(of: &[(PageUse, u64)]) -> Vec<StateRun> {
    let mut frame = 0;
    let run = |&(usage, frames): &(PageUse, u64)| {
        let run = StateRun {
            time: 0,
            frame,
            frames,
            order: 0,
            state: PageState::of(usage),
        };
        frame += frames;
        run
    };
    of.iter().map(run).collect()
}

fn zone(start_pfn: u64, spanned: u64) -> ZoneInfo {
    ZoneInfo {
        name: "Normal".into(),
        start_pfn,
        spanned,
        present: spanned,
        managed: spanned,
        ..ZoneInfo::default()
    }
}

fn judge(runs: &[StateRun]) -> Judge {
    Judge::new(runs, BLOCK, Unevictable::Moves)
}

use PageUse::{Anonymous, File, Free, Hole, Huge, PageTable, Reserved, Slab, Untold};

#[test]
fn each_kind_of_block() {
    let runs = runs(&[
        (Hole, 8),
        (Free, 8),
        (Huge, 8),
        (File, 3),
        (Free, 5),
        (Anonymous, 7),
        (Untold, 1),
        (File, 7),
        (Slab, 1),
        (PageTable, 4),
        (Free, 4),
        (Reserved, 8),
        // A whole block and more without a flag: the kernel's own.
        (Untold, 9),
        (File, 7),
    ]);
    let blocks = blocks::of_zone(&runs, &zone(0, 80), BLOCK, &judge(&runs));
    let kinds: Vec<_> = blocks.iter().map(|block| block.kind()).collect();
    let expected = [
        BlockKind::Absent,
        BlockKind::Free,
        BlockKind::Huge,
        BlockKind::Movable,
        BlockKind::Perhaps,
        BlockKind::Mixed,
        BlockKind::Unmovable,
        BlockKind::Unmovable,
        BlockKind::Unmovable,
        BlockKind::Mixed,
    ];
    assert_eq!(kinds, expected);
    let summary = BlockSummary::of(&blocks);
    assert_eq!(
        (summary.mixed, summary.mixed_by_few, summary.unmovable),
        (2, 2, 3)
    );
    let held = |usage: PageUse| summary.in_mixed[usage as usize];
    assert_eq!((held(File), held(Slab), held(Untold)), (14, 1, 1));
}

#[test]
fn a_zone_may_begin_and_end_within_a_block() {
    let runs = runs(&[(Free, 40)]);
    let blocks = blocks::of_zone(&runs, &zone(5, 14), BLOCK, &judge(&runs));
    let frames: Vec<_> = blocks
        .iter()
        .map(|block| (block.frame, block.of_use(Free), block.of_use(Hole)))
        .collect();
    assert_eq!(frames, [(0, 3, 5), (8, 8, 0), (16, 3, 5)]);
    assert_eq!(
        blocks[0].kind(),
        BlockKind::Unmovable,
        "no huge page fits in it"
    );
}

#[test]
fn stretches_without_a_flag() {
    let mut runs = runs(&[
        (Untold, 4),
        (Untold, 4),
        (Free, 1),
        (Untold, 7),
        (File, 1),
        (Untold, 8),
    ]);
    runs[1].time = 9;
    let long = long_stretches(&runs, 8);
    assert_eq!(long, [0..8, 17..25]);
    let inside = [0, 7, 8, 12, 16, 17, 24, 25].map(|frame| contains(&long, frame));
    assert_eq!(inside, [true, true, false, false, false, true, true, false]);
    let compound = StateRun {
        order: 1,
        ..runs[3]
    };
    assert_eq!(judge(&runs).of(&compound), Movability::Stuck);
    assert_eq!(judge(&runs).of(&runs[3]), Movability::Perhaps);
    assert_eq!(judge(&runs).of(&runs[5]), Movability::Stuck);
}

#[test]
fn locked_memory_moves_unless_the_host_says_no() {
    let mut runs = runs(&[(Anonymous, 8)]);
    runs[0].state.unevictable = true;
    assert_eq!(judge(&runs).of(&runs[0]), Movability::Movable);
    let stays = Judge::new(&runs, BLOCK, Unevictable::Stays);
    assert_eq!(stays.of(&runs[0]), Movability::Stuck);
}

#[test]
fn the_outlook_is_bounded_by_blocks_and_by_free_memory() {
    let runs = runs(&[
        // One free block, two that compaction could empty, one with a page that may be free in a
        // per-CPU list, one with an immovable page.
        (Free, 8),
        (File, 4),
        (Free, 4),
        (Anonymous, 5),
        (Free, 3),
        (Anonymous, 4),
        (Untold, 1),
        (Free, 3),
        (Slab, 1),
        (Free, 7),
    ]);
    let mut zone = zone(0, 40);
    zone.pagesets = vec![PageSet {
        count: 1,
        ..PageSet::default()
    }];
    let mut counts = FreeCounts::default();
    counts.by_order[3] = 1;
    let highest = Order::new(4);
    let by_order = outlook::of_zone(&runs, &zone, &counts, highest, &judge(&runs));
    assert_eq!(by_order.len(), 5);
    // 25 free frames are three blocks; three blocks are certain to have no immovable frame, and
    // four may have none.
    let blocks = Outlook {
        now: 1,
        compacted: 3,
        drained: 3,
        reclaimed: 3,
    };
    assert_eq!(
        by_order[3],
        Outlook {
            reclaimed: 3,
            ..blocks
        },
        "26 + 4 frames are still three"
    );
    // Pairs of blocks: frames 0..16 have no immovable frame, 16..32 only one that may be.
    assert_eq!(
        by_order[4],
        Outlook {
            now: 0,
            compacted: 1,
            drained: 1,
            reclaimed: 1
        }
    );
}

#[test]
fn lack_and_fragmentation_are_distinguished() {
    let mut zone = zone(0, 4096);
    zone.min = 100;
    zone.protection = vec![0, 50, 50];
    let counts = |of: &[(usize, usize)]| {
        let mut counts = FreeCounts::default();
        for &(order, blocks) in of {
            counts.by_order[order] = blocks;
        }
        counts
    };
    let judged = |of: &[(usize, usize)]| outlook::verdict(&zone, &counts(of), Order::HUGE);
    assert_eq!(judged(&[(9, 2)]), Verdict::Succeeds);
    // 1024 - 511 is above 150; 512 + 149 - 511 = 150 is not.
    assert_eq!(judged(&[(9, 1), (0, 149)]), Verdict::Lack);
    assert_eq!(judged(&[(9, 1), (0, 150)]), Verdict::Succeeds);
    assert_eq!(judged(&[(0, 2000)]), Verdict::Fragmented);
    assert_eq!(judged(&[(8, 3)]), Verdict::Lack, "index 167");
    assert_eq!(judged(&[]), Verdict::Lack);
}

proptest! {
    /// On any memory: each frame of the zone is in one block, and each number of the outlook is at
    /// least the previous one.
    #[test]
    fn blocks_and_outlook_of_any_memory(
        parts in prop::collection::vec((0..9_usize, 1..40_u64, any::<bool>()), 0..60),
        start in 0..300_u64,
        spanned in 1..500_u64,
        order in 0..6_u8,
    ) {
        let uses: Vec<_> = parts.iter().map(|&(usage, frames, _)| (PageUse::ALL[usage], frames)).collect();
        let mut runs = runs(&uses);
        for (run, part) in runs.iter_mut().zip(&parts) {
            run.state.unevictable = part.2;
        }
        let zone = zone(start, spanned);
        let judge = Judge::new(&runs, order, Unevictable::Stays);
        let blocks = blocks::of_zone(&runs, &zone, order, &judge);
        for block in &blocks {
            prop_assert_eq!(block.by_use.iter().sum::<u32>(), 1 << order);
        }
        let in_zone = |usage: PageUse| -> u64 {
            let within = runs.iter().filter(|run| run.state.usage == usage);
            within.map(|run| (run.frame + run.frames).min(start + spanned).saturating_sub(run.frame.max(start))).sum()
        };
        for usage in PageUse::ALL.into_iter().filter(|&usage| usage != Hole) {
            let in_blocks: u64 = blocks.iter().map(|block| u64::from(block.of_use(usage))).sum();
            prop_assert_eq!(in_blocks, in_zone(usage));
        }
        let none = FreeCounts::default();
        let by_order = outlook::of_zone(&runs, &zone, &none, Order::new(order), &judge);
        for one in &by_order {
            prop_assert!(one.now <= one.compacted && one.compacted <= one.drained && one.drained <= one.reclaimed);
        }
        // The blocks without immovable frames.
        let last = by_order.last().unwrap();
        let clear = blocks.iter().filter(|block| {
            let stuck = block.stuck + block.perhaps + block.of_use(Hole) + block.of_use(Huge);
            stuck == 0
        });
        let free = in_zone(Free) >> order;
        prop_assert_eq!(last.compacted, free.min(clear.count() as u64));
    }
}

#[test]
fn a_look_at_a_recorded_host_without_frames() {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let host = Host::at(&root.join("tests/recorded/linux-6.18"));
    let look = Look::at(&host, Depth::Everything, || 0, |_, _| {}).unwrap();
    assert_eq!(
        (look.huge_order, look.page_block_order),
        (Order::HUGE, Order::HUGE)
    );
    assert_eq!(look.zones.len(), 3);
    assert!(look.zones.iter().all(|zone| zone.blocks.is_empty()));
    assert!(look.page_types.is_some());
    assert!(matches!(look.withheld[..], [HostError::Absent { .. }]));
    // DMA has 3840 free frames, all withheld from requests that other zones could serve.
    let verdicts: Vec<_> = look
        .zones
        .iter()
        .map(|zone| zone.verdict(Order::HUGE))
        .collect();
    assert_eq!(
        verdicts,
        [Verdict::Lack, Verdict::Succeeds, Verdict::Succeeds]
    );
}

#[test]
fn a_look_at_this_host() {
    let look = Look::at(&Host::here(), Depth::Everything, || 0, |_, _| {}).unwrap();
    if let [why, ..] = &look.withheld[..] {
        println!("skipped: {why}");
        return;
    }
    for zone in &look.zones {
        let frames = zone.blocks.len() as u64 * look.page_block_order.frames() as u64;
        assert!(frames >= zone.info.spanned, "{}", zone.info.name);
        let summary = BlockSummary::of(&zone.blocks);
        println!("{}: {summary:?}\n{:?}", zone.info.name, zone.outlook.last());
    }
}
