//! Forecasts for a small host that is made here.

use std::path::PathBuf;

use crate::synthetic::{BLOCK, Block, SyntheticHost};
use brickyard::Order;
use brickyard_host::forecast::{self, Forecasts, Way};
use brickyard_host::look::{Depth, Look};
use brickyard_host::pinned::Pinned;
use brickyard_trace::PageUse;

/// Makes a host of these blocks, of which `missing` are not managed yet.
fn look(name: &str, blocks: &[Block], missing: usize) -> Look {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("forecast")
        .join(name);
    let mut made = SyntheticHost::new(name, blocks.to_vec());
    made.unmanaged = missing;
    let host = made.write(&root).unwrap();
    Look::at(&host, Depth::Everything, || 0, |_, _| {}).unwrap()
}

fn forecasts(look: &Look, pinned: &Pinned) -> [(u64, u64, u64); 4] {
    let of = Forecasts::new(look, Order::HUGE, pinned).unwrap();
    Way::ALL
        .map(|way| of.of(way))
        .map(|one| (one.low, one.likely, one.high))
}

#[test]
fn single_pages_are_moved_together() {
    let mut blocks = vec![Block::Single; 40];
    blocks.push(Block::EveryOther);
    let look = look("single", &blocks, 0);
    // All but the page beside the last block go into the 256 free frames there. A request also ends
    // with one block and the room for two that compaction begins with.
    assert_eq!(
        forecasts(&look, &Pinned::default()),
        [(0, 0, 0), (0, 39, 39), (0, 39, 39), (0, 39, 39)]
    );
    assert_eq!(forecast::now(&look, Order::HUGE), 0);
}

#[test]
fn pinned_pages_keep_their_blocks() {
    let mut blocks = vec![Block::Single; 40];
    blocks.push(Block::EveryOther);
    let look = look("pinned", &blocks, 0);
    let pinned = Pinned {
        frames: (0..30).map(|block| block * BLOCK as u64 + 100).collect(),
        ..Pinned::default()
    };
    let [_, pool, compacted, _] = forecasts(&look, &pinned);
    assert_eq!((pool.1, compacted.1), (9, 9));
}

#[test]
fn a_modified_large_page_is_told_and_written_by_sync() {
    let mut blocks = vec![Block::Modified; 8];
    blocks.extend([Block::Single; 16]);
    blocks.extend([Block::EveryOther; 2]);
    let look = look("modified", &blocks, 0);
    let of = Forecasts::new(&look, Order::HUGE, &Pinned::default()).unwrap();
    assert_eq!(of.obstacles.modified_large, 8);
    let compacted = of.of(Way::Compacted);
    assert_eq!(
        (compacted.low, compacted.likely),
        (0, 0),
        "it gives up at the first one"
    );
    assert!(compacted.high >= 16, "{compacted:?}");
    assert!(of.of(Way::Dropped).likely >= 16);
    assert_eq!(of.best(), Way::Dropped);
}

#[test]
fn pages_that_were_moved_stay_in_the_list_of_a_cpu() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("forecast/listed");
    let mut blocks = vec![Block::Single; 40];
    blocks.push(Block::EveryOther);
    let mut made = SyntheticHost::new("listed", blocks);
    made.list_high = 186;
    let host = made.write(&root).unwrap();
    let look = Look::at(&host, Depth::Everything, || 0, |_, _| {}).unwrap();
    let [_, pool, compacted, _] = forecasts(&look, &Pinned::default());
    // Each page that was moved keeps its block in pieces, until the list is drained.
    assert_eq!((pool.1, compacted.1, compacted.2), (39, 0, 39));
}

#[test]
fn free_memory_that_is_set_aside_is_not_to_be_had() {
    let mut some = look("aside", &[Block::Free; 8], 0);
    assert_eq!(forecast::now(&some, Order::HUGE), 7);
    let types = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10\nNode    0, zone   Normal, type    Unmovable      0      0      0      0      0      0      0      0      0      0      0\nNode    0, zone   Normal, type   HighAtomic      3      0      0      0      0      0      0      0      0      0      2\n\nNumber of blocks type     Unmovable   HighAtomic\nNode 0, zone   Normal            0            4\n";
    some.page_types = Some(brickyard_host::pagetypeinfo::parse(types).unwrap());
    // Four blocks are; of the four others one is the watermark's.
    assert_eq!(forecast::now(&some, Order::HUGE), 3);
    let of = Forecasts::new(&some, Order::HUGE, &Pinned::default()).unwrap();
    assert_eq!(of.obstacles.set_aside, 3 + 2048);
    assert_eq!(of.of(Way::Compacted).likely, 3);
}

#[test]
fn what_was_withheld_at_boot_is_not_memory_that_is_still_to_come() {
    let blocks = [[Block::Free; 4].as_slice(), &[Block::Untold; 64]].concat();
    let mut some = look("reserved", &blocks, 64);
    let of = |look: &Look| Forecasts::new(look, Order::HUGE, &Pinned::default()).unwrap();
    assert_eq!(of(&some).obstacles.uninitialised, 64 * BLOCK as u64);
    for run in &mut some.runs {
        if run.state.usage == PageUse::Free {
            run.state.usage = PageUse::Reserved;
        }
    }
    assert_eq!(of(&some).obstacles.uninitialised, 60 * BLOCK as u64);
}

#[test]
fn the_page_cache_is_dropped_or_reclaimed() {
    let blocks = [[Block::Cached; 8].as_slice(), &[Block::Free; 2]].concat();
    let look = look("cached", &blocks, 0);
    let of = Forecasts::new(&look, Order::HUGE, &Pinned::default()).unwrap();
    // One of the two free blocks is the watermark's.
    assert_eq!(of.of(Way::Now).likely, 1);
    assert_eq!(of.of(Way::Dropped).likely, 9);
    assert_eq!(of.cost(Way::Dropped).dropped, 8 * BLOCK as u64);
    // A request reclaims some where it has no room to compact, and ends with the room that
    // compaction begins with.
    let asking = of.of(Way::Asking);
    assert!((6..=9).contains(&asking.likely), "{asking:?}");
    assert!(of.cost(Way::Asking).dropped > 5 * BLOCK as u64);
    assert_eq!(of.cost(Way::Compacted).dropped, 0);
}

#[test]
fn memory_that_is_not_managed_yet_counts_as_whole_blocks() {
    let blocks = [[Block::Free; 4].as_slice(), &[Block::Untold; 64]].concat();
    let with = look("unmanaged", &blocks, 64);
    let of = Forecasts::new(&with, Order::HUGE, &Pinned::default()).unwrap();
    assert_eq!(of.obstacles.uninitialised, 64 * BLOCK as u64);
    assert_eq!(of.of(Way::Now).likely, 3 + 64);
    // The same frames, managed: the kernel's own.
    let without = look("managed", &blocks, 0);
    let of = Forecasts::new(&without, Order::HUGE, &Pinned::default()).unwrap();
    assert_eq!(of.of(Way::Now).likely, 3);
}

#[test]
fn there_is_no_forecast_without_frames_or_for_larger_blocks_than_the_kernel_has() {
    let mut some = look("none", &[Block::Free; 2], 0);
    assert!(Forecasts::new(&some, Order::new(11), &Pinned::default()).is_none());
    assert!(Forecasts::new(&some, Order::new(10), &Pinned::default()).is_some());
    assert!(Forecasts::new(&some, Order::ZERO, &Pinned::default()).is_some());
    some.runs.clear();
    assert!(Forecasts::new(&some, Order::HUGE, &Pinned::default()).is_none());
}

#[test]
fn numbers_that_no_host_has_are_taken() {
    let mut some = look("hostile", &[Block::Free; 4], 0);
    let most = u64::MAX;
    let types = format!(
        "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1\nNode    0, zone   Normal, type   HighAtomic      {most}      {most}\n\nNumber of blocks type     HighAtomic\nNode 0, zone   Normal            4\n"
    );
    some.page_types = Some(brickyard_host::pagetypeinfo::parse(&types).unwrap());
    let zone = some.zones[0].clone();
    some.zones.push(zone);
    for zone in &mut some.zones {
        zone.info.stats.push(("nr_unaccepted".to_owned(), most));
    }
    for order in [Order::ZERO, Order::HUGE] {
        let of = Forecasts::new(&some, order, &Pinned::default()).unwrap();
        assert_eq!(of.obstacles.set_aside, most);
        assert!(of.of(Way::Asking).likely >= most >> order.get());
    }
}
