//! What a zone can be at most, and that memory beyond it is several zones of one kind.
//!
//! Nothing here builds a zone of terabytes: a plan is judged before any of its memory is touched.
//! On machines of 32 bits the compiler does that, since bytes run out before frames do.

#![cfg(not(loom))]
#![cfg_attr(
    target_pointer_width = "32",
    allow(
        unused_imports,
        dead_code,
        reason = "some tests need numbers of 64 bits"
    )
)]

use core::mem::MaybeUninit;

use crate::support;

use brickyard::bitmap::Bitmap;
use brickyard::node::{Node, Nodes};
use brickyard::pressure::ContiguousRequest;
use brickyard::stats::{BuddyInfo, PageTypeInfo, ZoneSnapshot};
use brickyard::sync::{Exclusive, Zeros};
use brickyard::watermark::{self, Marks};
use brickyard::{
    AnyZone, FRAMES_MOST, Frame, FrameRange, OneCpu, Order, PlanError, RangeError, Zone, ZoneKind,
    ZonePlan,
};

use support::{
    Bricks, Cpus, MOVABLE, UNMOVABLE, empty, exhausted, frame, full, give, one_node, request,
    small, take_all,
};

use ZoneKind::{Dma, Movable, Normal};

// ---- plans ----

fn plan(frames: usize) -> ZonePlan {
    ZonePlan::new(Normal, FrameRange::new(0, frames), 1)
}

/// 2^30 frames have 390 MiB of bits.
#[cfg(target_pointer_width = "32")]
const _: () = {
    const PLAN: ZonePlan = ZonePlan::new(Normal, FrameRange::new(0, 1 << 30), 1);
    let bits = Zone::<OneCpu>::checked_bytes(&PLAN);
    assert!(matches!(bits, Ok(bytes) if bytes > 3 << 27 && bytes < 1 << 29));
    const ALL: ZonePlan = ZonePlan::new(Normal, FrameRange::new(0, usize::MAX), 1);
    let bits = Zone::<OneCpu>::checked_bytes(&ALL);
    assert!(matches!(bits, Err(PlanError::TooManyFrames { .. })));
};

#[test]
fn the_most_page_blocks_have_a_store_and_one_more_has_none() {
    // Words of 64 frames: 2^24 of them are 2^30 frames, far below the most.
    let least = Order::new(6);
    let words = |span| Bitmap::checked_words(span, least, least);
    assert!(words(FrameRange::new(0, Bitmap::BLOCKS_MOST << 6)).is_ok());
    // Wherever they begin.
    assert!(words(FrameRange::at(Frame::new(64 * 3), Bitmap::BLOCKS_MOST << 6)).is_ok());
    let most = Bitmap::BLOCKS_MOST;
    let blocks = most + 1;
    let refused = PlanError::TooManyBlocks { blocks, most };
    let over = FrameRange::new(0, (most << 6) + 1);
    assert_eq!(words(over), Err(refused));
    // A block of the highest order may begin before the span, and its blocks count.
    let most_frames = FrameRange::at(Frame::new(64 * 3), most << 6);
    let words = Bitmap::checked_words(most_frames, Order::new(8), least);
    let blocks = most + 3;
    assert_eq!(words, Err(PlanError::TooManyBlocks { blocks, most }));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn errors_name_the_limit_and_what_to_do() {
    let text = |frames| {
        let bytes = Zone::<OneCpu>::checked_bytes(&plan(frames));
        bytes.expect_err("too large").to_string()
    };
    assert_eq!(
        text(1 << 33),
        "a zone spans at most 4294967294 frames, and here 8589934592: give the rest to one more \
         zone of the node"
    );
    let (blocks, most) = (16_777_217, 16_777_216);
    assert_eq!(
        PlanError::TooManyBlocks { blocks, most }.to_string(),
        "a zone has at most 16777216 page blocks, and here 16777217: use larger page blocks, or \
         give the rest to one more zone of the node"
    );
    assert!(PlanError::TooManyBytes.to_string().contains("plan fewer"));
    let (supplied, needed) = (1, 2);
    assert_eq!(
        PlanError::TooLittleMemory { supplied, needed }.to_string(),
        "the zone's metadata needs 2 bytes, 1 were supplied: `Zone::bytes(&plan)` is the size"
    );
}

#[test]
fn a_zone_on_zeros_or_in_a_place_is_one_as_any() {
    let plan = plan(4096);
    let needed = Zone::<OneCpu>::bytes(&plan);
    let on_zeros = |memory| {
        // SAFETY: the memory below is zero.
        Zone::<OneCpu>::on_zeros(&plan, OneCpu, unsafe { Zeros::new(memory) })
    };
    let used = |zone: &Zone<'_, OneCpu>| {
        zone.add(FrameRange::new(0, 1024)).unwrap();
        let frames = take_all(zone, MOVABLE.mobility);
        assert_eq!(frames.len(), 1024);
        give(zone, &frames);
        (frames, zone.free_frames())
    };
    let mut memory = vec![MaybeUninit::new(0); needed];
    let found = used(&on_zeros(&mut memory).unwrap());
    let mut other = vec![MaybeUninit::new(0xa5); needed];
    assert_eq!(found, used(&Zone::new(&plan, OneCpu, &mut other).unwrap()));
    let mut place = MaybeUninit::uninit();
    let mut memory_of_it = vec![MaybeUninit::new(0xa5); needed];
    let zone = Zone::new_in(&mut place, &plan, OneCpu, &mut memory_of_it).unwrap();
    assert_eq!(found, used(zone));
    let supplied = needed / 2;
    let mut memory = vec![MaybeUninit::new(0); supplied];
    let too_little = PlanError::TooLittleMemory { supplied, needed };
    assert_eq!(on_zeros(&mut memory).err(), Some(too_little));
    let mut place = MaybeUninit::<Zone<'_, OneCpu>>::uninit();
    let refused = Zone::new_in(&mut place, &plan, OneCpu, &mut memory).err();
    assert_eq!(refused, Some(too_little));
}

#[test]
#[should_panic(expected = "a zone spans at most 2^32 - 2 frames")]
fn bytes_of_a_plan_that_is_no_constant_panic_by_name() {
    let _ = Zone::<OneCpu>::bytes(&plan(FRAMES_MOST + 1));
}

#[test]
#[should_panic(expected = "a zone has at most 2^24 page blocks")]
fn words_of_too_many_blocks_panic_by_name() {
    let span = FrameRange::new(0, (Bitmap::BLOCKS_MOST << 6) + 1);
    let _ = Bitmap::words(span, Order::new(6), Order::new(6));
}

#[test]
#[should_panic(expected = "a zone spans at most 2^32 - 2 frames")]
fn a_bitmap_of_too_many_frames_panics_by_name() {
    let span = FrameRange::new(0, FRAMES_MOST + 1);
    let _ = Bitmap::new(span, Order::DEFAULT_MAX, Order::HUGE, &[], &[]);
}

// ---- several zones of one kind ----

type Plain = Bricks<Exclusive>;

/// A zone without stashes.
fn plan_of(kind: ZoneKind, (start, end): (usize, usize)) -> ZonePlan {
    let mut plan = small(0);
    (plan.kind, plan.span, plan.cpus) = (kind, FrameRange::new(start, end), 0);
    plan
}

fn plain(kind: ZoneKind, start: usize, end: usize) -> Plain {
    full(&plan_of(kind, (start, end)), Cpus::new())
}

/// Zones of these kinds with so many frames each, one behind the other.
fn row<const N: usize>(zones: [(ZoneKind, usize); N]) -> [Plain; N] {
    let mut start = 0;
    zones.map(|(kind, frames)| {
        let made = plain(kind, start, start + frames);
        start += frames;
        made
    })
}

#[test]
fn requests_go_from_the_last_zone_of_a_kind_to_the_first_and_on_to_lower_kinds() {
    let zones = row([(Dma, 64), (Normal, 128), (Normal, 192), (Movable, 64)]);
    let nodes = one_node(&zones);
    let mut order = Vec::new();
    while let Ok(got) = nodes.alloc(0, &UNMOVABLE) {
        let start = nodes.zone_of(got).map(|zone| zone.span().start.number());
        if order.last() != Some(&start) {
            order.push(start);
        }
    }
    assert_eq!(order, [Some(192), Some(64), Some(0)]);
    assert_eq!(nodes.alloc(0, &UNMOVABLE), Err(exhausted(0, 0)));
    assert_eq!(zones[3].free_frames(), 64);
}

/// With a front, what a CPU has at hand in the last zone goes first, and the others serve when that
/// zone has nothing.
#[test]
fn the_fronts_of_all_zones_of_a_kind_serve() {
    let stashed = |start: usize| -> Bricks<Exclusive> {
        let plan = plan_of(Normal, (start, start + 1024));
        full(&ZonePlan { cpus: 2, ..plan }, Cpus::new())
    };
    let zones = [stashed(0), stashed(1024), stashed(2048)];
    let nodes = one_node(&zones);
    let got: Vec<Frame> = core::iter::from_fn(|| nodes.alloc(0, &MOVABLE).ok()).collect();
    assert_eq!(got.len(), 3 * 1024);
    // The last zone first. What lies in the stash of a zone whose store is empty comes last.
    let place = |page: &Frame| page.number() / 1024;
    assert!(got[..1024].iter().all(|page| place(page) == 2));
    let each = [0, 1, 2].map(|zone| got.iter().filter(|&page| place(page) == zone).count());
    assert_eq!(each, [1024; 3]);
    // What is freed lies in the stash of its own zone, and is had again from there.
    let lowest = *got.iter().min().expect("frames");
    assert_eq!(nodes.free(lowest, Order::ZERO), Ok(()));
    assert_eq!(zones[0].cached_frames() + zones[0].free_frames(), 1);
    assert_eq!(nodes.alloc(0, &MOVABLE), Ok(lowest));
    for page in got {
        assert_eq!(nodes.free(page, Order::ZERO), Ok(()));
    }
    nodes.drain();
    assert_eq!(nodes.check().map(|census| census.free), Ok(3 * 1024));
}

fn sum_of(zones: &[Plain], of: impl Fn(&Plain) -> Marks) -> Marks {
    let marks = zones.iter().map(of);
    marks.fold(Marks::default(), |sum, marks| Marks {
        min: sum.min + marks.min,
        low: sum.low + marks.low,
        high: sum.high + marks.high,
    })
}

#[test]
fn marks_and_reserves_of_a_kind_are_those_of_one_zone_of_all_its_memory() {
    for kind in [Normal, Movable] {
        for parts in [[640, 1280, 64], [64, 64, 1856], [661, 662, 661]] {
            let all = parts.iter().sum();
            let whole = row([(Dma, 1024), (kind, all), (Movable, 512)]);
            let [a, b, c] = parts;
            let several = row([(Dma, 1024), (kind, a), (kind, b), (kind, c), (Movable, 512)]);
            for kbytes in [0, 1024, 2047] {
                for zones in [&whole[..], &several] {
                    one_node(zones).set_min_free_kbytes(kbytes, 4096);
                }
                // Where the kind is Movable, the last zone is one of them too.
                let of_kind = |zones: &[Plain]| match kind {
                    Movable => sum_of(&zones[1..], |zone| zone.watermarks().marks()),
                    _ => sum_of(&zones[1..zones.len() - 1], |zone| zone.watermarks().marks()),
                };
                assert_eq!(of_kind(&several), of_kind(&whole), "{parts:?} {kbytes}");
                for highest in ZoneKind::ALL {
                    let reserve = |zone: &Plain| zone.watermarks().reserve_against(highest);
                    let held = |zones: &[Plain]| zones.iter().map(reserve).sum::<usize>();
                    assert_eq!(held(&several[1..4]), held(&whole[1..2]), "{highest:?}");
                    assert_eq!(held(&several[..1]), held(&whole[..1]), "{highest:?}");
                }
                for zone in &several {
                    let Marks { min, low, high } = zone.watermarks().marks();
                    assert!(min <= low && low <= high);
                }
            }
        }
    }
}

#[test]
fn each_zone_of_a_kind_has_the_share_of_its_memory() {
    // 2048 kB are 512 frames for 6144 of low memory: 85 for the 1024, 170 and 256 for the others.
    let zones = row([(Dma, 1024), (Normal, 2048), (Normal, 3072), (Movable, 3200)]);
    one_node(&zones).set_min_free_kbytes(2048, 4096);
    let min = zones.each_ref().map(|zone| zone.watermarks().marks().min);
    assert_eq!(min, [85, 170, 256, 32]);
    // 5120 / 256 for DMA; 3200 / 32 for Normal, 40 of it for the smaller.
    let against = |zone: usize| zones[zone].watermarks().reserve_against(Movable);
    assert_eq!([0, 1, 2, 3].map(against), [8320 / 256, 40, 60, 0]);
    assert_eq!(zones[1].watermarks().reserve_against(Normal), 0);
    assert_eq!(zones[2].watermarks().reserve_against(Normal), 0);
}

#[test]
fn movable_requests_leave_the_reserve_of_all_zones_of_a_kind_together() {
    let zones = row([(Normal, 2048), (Normal, 3072), (Movable, 2560)]);
    let nodes = one_node(&zones);
    nodes.set_min_free_kbytes(0, 4096);
    while nodes.alloc(0, &MOVABLE).is_ok() {}
    // 2560 / 32 = 80 in all, as 5120 frames in one zone would leave.
    let left = zones.each_ref().map(Zone::free_frames);
    assert_eq!(left, [32, 48, 32]);
    while nodes.alloc(0, &UNMOVABLE).is_ok() {}
    assert_eq!(zones.each_ref().map(Zone::free_frames), [0, 0, 32]);
}

#[test]
fn an_empty_zone_of_a_kind_changes_nothing_for_the_other() {
    let zones = row([(Normal, 1024), (Normal, 1024)]);
    let taken = zones[1].remove(zones[1].span());
    assert_eq!(taken, Ok(1024));
    let nodes = one_node(&zones);
    nodes.set_min_free_kbytes(1024, 4096);
    let alone = watermark::zone_marks(Normal, 1024, 1024, 256, watermark::SCALE_FACTOR);
    assert_eq!(zones[0].watermarks().marks(), alone);
    assert_eq!(zones[1].watermarks().marks(), Marks::default());
    let got = nodes.alloc(0, &UNMOVABLE);
    assert!(got.is_ok_and(|frame| zones[0].span().contains(frame)));
}

#[test]
fn each_frame_is_freed_to_its_own_zone_of_the_kind() {
    let zones = row([(Normal, 256), (Normal, 256)]);
    let nodes = one_node(&zones);
    let mut all: Vec<Frame> = core::iter::from_fn(|| nodes.alloc(0, &MOVABLE).ok()).collect();
    assert_eq!(all.len(), 512);
    // Both zones in turn, so that runs are one frame long.
    all.sort_unstable();
    let (low, high) = all.split_at(256);
    let mixed: Vec<Frame> = low.iter().zip(high).flat_map(|(&a, &b)| [a, b]).collect();
    assert_eq!(nodes.free_bulk(&mixed), Ok(()));
    assert_eq!(zones.each_ref().map(Zone::free_frames), [256, 256]);
    assert_eq!(nodes.check().map(|census| census.free), Ok(512));
    // The block on either side of the border is whole, and none crosses it.
    let block = request(7, MOVABLE.mobility);
    let blocks: Vec<_> = core::iter::from_fn(|| nodes.alloc(0, &block).ok()).collect();
    assert_eq!(blocks.len(), 4);
    assert!(blocks.contains(&frame(128)) && blocks.contains(&frame(256)));
    assert_eq!(nodes.free(frame(128), Order::new(7)), Ok(()));
    let across = FrameRange::new(128, 384);
    assert!(nodes.free_range(across).is_err());
}

#[test]
fn many_frames_at_once_come_from_one_zone_of_the_kind_and_then_from_the_other() {
    let zones = row([(Normal, 256), (Normal, 256)]);
    let nodes = one_node(&zones);
    let mut out = [Frame::default(); 200];
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(200));
    assert!(out.iter().all(|&got| zones[1].span().contains(got)));
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(200));
    assert!(out.iter().all(|&got| zones[0].span().contains(got)));
    // Neither has so many any more, and together they have fewer.
    assert_eq!(nodes.alloc_bulk(0, &MOVABLE, &mut out), Ok(112));
    assert_eq!(zones.each_ref().map(Zone::free_frames), [0, 0]);
}

/// So many frames of either zone.
const fn contiguous(frames: usize) -> ContiguousRequest {
    ContiguousRequest::new(frames, FrameRange::new(0, 512))
}

#[test]
fn a_contiguous_range_lies_in_one_zone_of_the_kind() {
    let zones = row([(Normal, 256), (Normal, 256)]);
    let nodes = one_node(&zones);
    let first = nodes.alloc_contiguous(0, &contiguous(200));
    let second = nodes.alloc_contiguous(0, &contiguous(200));
    let inside = |range: Result<FrameRange, RangeError>, zone: usize| {
        range.is_ok_and(|range| range.len() == 200 && zones[zone].span().covers(range))
    };
    let inside = inside(first, 1) && inside(second, 0);
    assert!(inside, "{first:?} {second:?}");
    // 56 frames are left in each, so that 100 can be had nowhere; nor 300 of an empty node.
    assert!(nodes.alloc_contiguous(0, &contiguous(100)).is_err());
    assert_eq!(nodes.free_range(first.expect("a range")), Ok(()));
    assert_eq!(nodes.free_range(second.expect("a range")), Ok(()));
    assert!(nodes.alloc_contiguous(0, &contiguous(300)).is_err());
    assert_eq!(nodes.check().map(|census| census.free), Ok(512));
}

#[test]
fn a_limit_is_kept_in_every_zone_of_the_kind() {
    let zones = row([(Normal, 256), (Normal, 256)]);
    let nodes = one_node(&zones);
    let below = MOVABLE.below(frame(300));
    for _ in 0..300 {
        let got = nodes.alloc(0, &below);
        assert!(got.is_ok_and(|got| got < frame(300)), "{got:?}");
    }
    assert!(nodes.alloc(0, &below).is_err());
    assert!(nodes.alloc(0, &MOVABLE).is_ok());
}

#[test]
fn the_texts_have_a_line_for_each_zone_of_a_kind() {
    let zones = row([(Normal, 128), (Normal, 256)]);
    let nodes = one_node(&zones);
    let snapshots: Vec<ZoneSnapshot> = nodes.snapshots().collect();
    assert_eq!(
        BuddyInfo(&snapshots).to_string(),
        "Node 0, zone   Normal      0      0      0      0      0      0      0      1 \n\
         Node 0, zone   Normal      0      0      0      0      0      0      0      2 \n"
    );
    let text = PageTypeInfo(&snapshots).to_string();
    assert_eq!(text.matches("zone   Normal, type      Movable").count(), 2);
    assert_eq!(text.matches("Number of blocks type").count(), 1);
}

#[test]
fn zones_of_a_kind_whose_spans_overlap_or_fall_are_told() {
    for spans in [[(256, 512), (0, 256)], [(0, 257), (256, 512)]] {
        let zones: [Plain; 2] = spans.map(|span| empty(&plan_of(Normal, span), Cpus::new()));
        let found = one_node(&zones).check().expect_err("wrong spans");
        assert!(found.to_string().contains("spans-in-order"), "{found}");
    }
    // Zones of several kinds lie as they will: a higher one may be below.
    let zones = [plain(Dma, 64, 128), plain(Normal, 0, 64)];
    assert!(one_node(&zones).check().is_ok());
}

#[test]
fn a_lower_kind_behind_two_of_a_kind_is_told() {
    let zones = row([(Normal, 64), (Normal, 64), (Dma, 64)]);
    let found = one_node(&zones).check().expect_err("a lower kind last");
    assert!(found.to_string().contains("kinds-in-order"), "{found}");
}

/// Two nodes whose memory alternates, with page blocks that both have a part of.
#[test]
fn a_free_reaches_the_zone_that_owns_the_frame_where_spans_interleave() {
    const OWNED: [[(usize, usize); 2]; 2] =
        [[(0, 1100), (2048, 3000)], [(1100, 2048), (3000, 4096)]];
    let zones = OWNED.map(|parts| {
        let plan = ZonePlan {
            cpus: 1,
            page_block_order: Order::HUGE,
            max_order: Order::DEFAULT_MAX,
            ..plan_of(Normal, (parts[0].0, parts[1].1))
        };
        let zone: Plain = empty(&plan, Cpus::new());
        for (start, end) in parts {
            let part = FrameRange::new(start, end);
            assert_eq!(zone.add(part), Ok(part.len()));
        }
        zone
    });
    let nodes = [Node::new(0, &zones[..1]), Node::new(1, &zones[1..])];
    let nodes = Nodes::new(&nodes);
    for round in 0..3 {
        let mut held: Vec<Frame> =
            core::iter::from_fn(|| nodes.alloc(round % 2, &MOVABLE).ok()).collect();
        assert_eq!(held.len(), 4096, "all of both");
        // Neighbours in memory are freed far from each other.
        held.sort_by_key(|frame| frame.number() * (2 * round + 1) * 1031 % 4093);
        for at in held {
            assert_eq!(nodes.free(at, Order::ZERO), Ok(()));
            let again = nodes.free(at, Order::ZERO);
            assert!(again.is_err(), "{at:?} was freed last");
        }
        for (zone, parts) in zones.iter().zip(OWNED) {
            let owned: usize = parts.iter().map(|(start, end)| end - start).sum();
            assert_eq!(zone.free_frames() + zone.cached_frames(), owned);
            let census = zone.check().expect("sound");
            assert_eq!((census.free + census.cached, census.allocated), (owned, 0));
        }
    }
    assert!(nodes.free(frame(4096), Order::ZERO).is_err());
    assert!(nodes.free(frame(usize::MAX), Order::ZERO).is_err());
}
