//! Forecasts for a small host that is made here.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::path::PathBuf;

use brickyard::Order;
use brickyard_host::Host;
use brickyard_host::forecast::{self, Forecasts, Way};
use brickyard_host::look::{Depth, Look};
use brickyard_host::pinned::Pinned;

const LRU: u64 = 1 << 5;
const DIRTY: u64 = 1 << 4;
const BUDDY: u64 = 1 << 10;
const ANON: u64 = 1 << 12 | LRU;
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
const BLOCK: usize = 512;

/// What is in a block.
#[derive(Clone, Copy)]
enum Block {
    Free,
    /// One anonymous page, the rest free.
    Single,
    /// One anonymous page in two frames.
    EveryOther,
    /// A large page of a modified file, the rest free.
    Modified,
    /// Clean pages of files.
    Cached,
    /// Nothing has a flag.
    Untold,
}

fn words(block: Block) -> Vec<u64> {
    let mut words = vec![BUDDY; BLOCK];
    match block {
        Block::Free => {}
        Block::Single => words[100] = ANON,
        Block::EveryOther => words.iter_mut().step_by(2).for_each(|word| *word = ANON),
        Block::Modified => {
            words[8] = LRU | DIRTY | HEAD;
            words[9..16].fill(LRU | DIRTY | TAIL);
        }
        Block::Cached => words.fill(LRU),
        Block::Untold => words.fill(0),
    }
    words
}

/// Makes a host of these blocks, of which `missing` are not managed yet.
fn look(name: &str, blocks: &[Block], missing: usize) -> Look {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("forecast")
        .join(name);
    let write = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let words: Vec<u64> = blocks.iter().flat_map(|&block| words(block)).collect();
    let free = words.iter().filter(|&&word| word == BUDDY).count();
    let whole = blocks
        .iter()
        .filter(|block| matches!(block, Block::Free))
        .count();
    let (present, managed) = (words.len(), words.len() - missing * BLOCK);
    let zoneinfo = format!(
        "Node 0, zone   Normal\n  pages free     {free}\n        min      20\n        low      30\n        high     40\n        spanned  {present}\n        present  {present}\n        managed  {managed}\n        protection: (0, 0)\n      nr_file_pages 0\n  pagesets\n    cpu: 0\n              count: 0\n              high:  186\n              batch: 31\n  start_pfn:           0\n"
    );
    write("proc/zoneinfo", zoneinfo.as_bytes());
    let single = free - whole * BLOCK;
    let buddyinfo = format!("Node 0, zone   Normal {single} 0 0 0 0 0 0 0 0 {whole} 0 \n");
    write("proc/buddyinfo", buddyinfo.as_bytes());
    write(
        "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
        b"2097152\n",
    );
    write(
        "proc/pagetypeinfo",
        b"Page block order: 9\nPages per block:  512\n",
    );
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    write("proc/kpageflags", &bytes);
    Look::at(&Host::at(&root), Depth::Everything, || 0, |_, _| {}).unwrap()
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
fn the_page_cache_is_dropped_for_one_way_only() {
    let blocks = [[Block::Cached; 8].as_slice(), &[Block::Free; 2]].concat();
    let look = look("cached", &blocks, 0);
    let of = Forecasts::new(&look, Order::HUGE, &Pinned::default()).unwrap();
    // One of the two free blocks is the watermark's.
    assert_eq!(of.of(Way::Now).likely, 1);
    assert_eq!(of.of(Way::Dropped).likely, 9);
    assert_eq!(of.cost(Way::Dropped).dropped, 8 * BLOCK as u64);
    assert_eq!(of.cost(Way::Asking).dropped, 0);
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
