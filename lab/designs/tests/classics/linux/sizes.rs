//! The sizes of zones and page sets, computed from memory and CPUs.

use super::*;

use brickyard::watermark::{LOWMEM_RESERVE_RATIO, SCALE_FACTOR, lowmem_reserve, zone_marks};
use brickyard::watermark::{frames_of_kbytes, min_free_kbytes};

/// The zones of a host with 2 CPUs: DMA, DMA32 and Normal, in frames.
const HOST: [usize; 3] = [3840, 772_915, 557_056];

/// Test 1.
#[test]
fn a_batch_is_a_4096th_and_a_half_less_than_a_power_of_two() {
    let sizes = [3840, 8192, 16_384, 65_536, 131_072, 176_127, 176_128];
    let batches = sizes.map(|managed| Sizes::of(managed, 0, 1).batch);
    assert_eq!(batches, [1, 1, 3, 15, 31, 31, 63]);
}

/// Test 2.
#[test]
fn the_marks_of_a_host() {
    let lowmem = HOST.iter().sum();
    let free = frames_of_kbytes(67_584, 4096);
    let marks =
        HOST.map(|managed| zone_marks(ZoneKind::Normal, managed, lowmem, free, SCALE_FACTOR));
    assert_eq!(marks.map(|marks| marks.min), [48, 9790, 7056]);
    assert_eq!(marks.map(|marks| marks.low), [60, 12_237, 8820]);
    assert_eq!(marks.map(|marks| marks.high), [72, 14_684, 10_584]);
}

/// Test 3.
#[test]
fn the_limits_of_the_page_sets_of_a_host() {
    let sizes = Sizes::of(HOST[1], 12_237, 2);
    assert_eq!((sizes.high_least, sizes.high_most), (6118, 48_307));
    let sizes = Sizes::of(HOST[0], 60, 2);
    assert_eq!((sizes.high_least, sizes.high_most), (30, 240));
}

#[test]
fn a_page_set_may_hold_four_batches_at_least() {
    let sizes = Sizes::of(262_144, 100, 4);
    assert_eq!((sizes.batch, sizes.high_least), (63, 252));
    let sizes = Sizes::of(262_144, 1286, 1000);
    assert_eq!((sizes.high_least, sizes.high_most), (252, 252));
}

#[test]
fn the_page_sets_of_z() {
    assert_eq!(Sizes::of(262_144, 1286, 4), SIZES);
}

/// Test 4.
#[test]
fn what_the_zones_of_a_host_hold_back() {
    let managed = [HOST[0], HOST[1], HOST[2], 0, 0];
    let reserve = lowmem_reserve(&managed, &LOWMEM_RESERVE_RATIO);
    assert_eq!(reserve[0][1..3], [3019, 5195]);
    assert_eq!(reserve[1][1..3], [0, 2176]);
}

/// Test 5.
#[test]
fn the_reserve_grows_with_the_root_of_memory() {
    let gib = [1, 16, 1024].map(|gib: usize| min_free_kbytes(gib << 20));
    assert_eq!(gib, [4096, 16_384, 131_072]);
}

/// Test 6.
#[test]
fn huge_pages_raise_the_reserve() {
    let raised = |zones, lowmem| linux::min_free_for_huge_pages(zones, Order::HUGE, lowmem);
    let much = 1 << 30;
    assert_eq!(raised(3, much), frames_of_kbytes(67_584, 4096));
    assert_eq!(raised(2, much), frames_of_kbytes(45_056, 4096));
    // At most a twentieth of the memory.
    assert_eq!(raised(3, 100_000), 5000);
}
