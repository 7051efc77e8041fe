//! Metadata, page blocks of every order, statistics, nodes, dedicated blocks.

use super::*;

// ---- metadata ----

/// 64 GiB in frames of 4 KiB.
const LARGE: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1 << 24), 8);

#[test]
fn metadata_is_at_most_a_ten_thousandth_of_memory() {
    let most = (64_usize << 30) / 10_000;
    let words = Bitmap::words(LARGE.span, LARGE.max_order, LARGE.page_block_order);
    assert!(words * 8 <= most, "{} of {most} bytes", words * 8);
    let alone = Zone::<OneCpu>::bytes(&ZonePlan { cpus: 0, ..LARGE });
    assert!(alone <= most);
    // As the module says: three bits a frame, 8 bytes a page block, 43 bits a page block for the
    // summary.
    let told = (1 << 24) * 3 / 8 + (1 << 15) * 8 + (1 << 15) * 43 / 8;
    assert!(words * 8 - told < told / 100, "{} told {told}", words * 8);
    // With orders up to 1 GiB it is less than half a KiB more, to find groups of page blocks by.
    let gigabytes = Bitmap::words(LARGE.span, Order::MAX, Order::HUGE);
    assert!(gigabytes > words && (gigabytes - words) * 8 < 512);
}

#[test]
fn each_cpu_costs_15_kib_more() {
    let with = |cpus| Zone::<OneCpu>::bytes(&ZonePlan { cpus, ..LARGE });
    let stash = with(8) - with(7);
    assert_eq!(with(8) - with(0), 8 * stash);
    assert!(stash <= 15 << 10, "{stash} bytes");
    // 64 GiB and 4 CPUs: still at most a ten-thousandth.
    assert!(with(4) <= (64 << 30) / 10_000);
}

#[test]
fn too_little_memory_is_refused_and_just_enough_is_enough() {
    let plan = ZonePlan {
        cpus: 0,
        ..linux(2048)
    };
    let bytes = Zone::<OneCpu>::bytes(&plan);
    // What may have to be skipped before the first line of words, and before the first slot, if
    // there were any.
    let too_little = bytes - 64 - 128;
    for (supplied, enough) in [(0, false), (100, false), (too_little, false), (bytes, true)] {
        let mut memory = vec![core::mem::MaybeUninit::uninit(); supplied];
        let zone = Zone::<OneCpu>::new(&plan, OneCpu, &mut memory);
        assert_eq!(zone.is_ok(), enough, "{supplied} of {bytes}");
    }
}

// ---- page blocks of every order ----

#[test]
fn page_blocks_may_be_larger_than_the_highest_order() {
    // Page blocks of order 11, as of 32 MiB in frames of 16 KiB, with Linux's highest order of 10;
    // and an embedder without large orders.
    for (max_order, block_order) in [(10, 11), (8, 9), (3, 9), (0, 6)] {
        let plan = ZonePlan {
            max_order: Order::new(max_order),
            page_block_order: Order::new(block_order),
            ..linux(4 << block_order)
        };
        let zone: Plain = full(&plan, Cpus::new());
        let told = &zone.free_counts().by_order[max_order as usize + 1..];
        assert!(told.iter().all(|&blocks| blocks == 0), "order {max_order}");
        let too_large = too_large(block_order, max_order);
        let refused = zone.alloc(&request(block_order, Mobility::Movable));
        assert_eq!(refused, Err(too_large));
    }
}

#[test]
fn other_orders_of_page_blocks_become_the_nearest() {
    for (wanted, order) in [(0, 6), (5, 6), (6, 6), (9, 9), (11, 11), (12, 11), (18, 11)] {
        assert_eq!(Bitmap::block_order(Order::new(wanted)), Order::new(order));
        let store = bitmap(range(0, 100), 10, wanted);
        assert_eq!(store.page_block_order(), Order::new(order));
    }
}

// ---- statistics ----

#[test]
fn free_blocks_are_counted_as_a_buddy_store_would_have_merged_them() {
    let zone = in_use(4, Mobility::Movable);
    for part in [
        range(0, 3),
        range(5, 6),
        range(8, 16),
        range(100, 300),
        range(1024, 2048),
    ] {
        assert_eq!(zone.free_range(part), Ok(()));
    }
    // 0, 2; 5; 8; 100, 104, 112, 128, 256, 288, 296; 1024.
    assert_eq!(by_order(&zone), [2, 1, 2, 3, 1, 1, 0, 1, 0, 0, 1]);
    let snapshot = zone.snapshot(3);
    assert_eq!((snapshot.node, snapshot.zone), (3, ZoneKind::Normal));
    assert_eq!(snapshot.max_order, Order::new(10));
    assert_eq!(snapshot.blocks[Movable.index()], 4);
    assert_eq!(
        BuddyInfo(&[snapshot]).to_string(),
        "Node 3, zone   Normal      2      1      2      3      1      1      0      1      0      0      1 \n"
    );
    let counts = zone.free_counts();
    assert_eq!(counts.free_frames(), 3 + 1 + 8 + 200 + 1024);
    assert_eq!(snapshot.counts(), counts);
    // Of 1236 frames 212 are in blocks below order 9, 212 - 128 below order 7.
    assert_eq!(counts.unusable_index(Order::HUGE), 212 * 1000 / 1236);
    assert_eq!(counts.unusable_index(Order::new(7)), 84 * 1000 / 1236);
    let text = UnusableText(counts.unusable_index(Order::HUGE)).to_string();
    assert_eq!(text, "0.171 ");
    assert_eq!(counts.suitable(Order::HUGE), 2);
}

#[test]
fn free_blocks_are_counted_by_the_mobility_of_their_page_blocks() {
    let zone = blocks(6);
    zone.alloc(&UNMOVABLE).unwrap();
    zone.alloc(&RECLAIMABLE).unwrap();
    zone.alloc(&MOVABLE).unwrap();
    for kind in [Unmovable, Reclaimable] {
        assert_eq!((free_of(&zone, kind), blocks_of(&zone, kind)), (511, 1));
    }
    assert_eq!(
        (free_of(&zone, Movable), blocks_of(&zone, Movable)),
        (4 * 512 - 1, 4)
    );
    let by_type = zone.snapshot(0).free;
    for by_type in &by_type[..9] {
        for kind in [Unmovable, Reclaimable, Movable] {
            assert_eq!(by_type[kind.index()], 1);
        }
    }
    // 2 and 3 are a pair, 4 is alone.
    let movable = |order: usize| by_type[order][Movable.index()];
    assert_eq!((movable(9), movable(10)), (1, 1));
}

#[test]
fn a_failure_tells_full_from_fragmented() {
    let zone = in_use(4, Mobility::Movable);
    for at in (0..600).step_by(2) {
        free(&zone, frame(at), 0);
    }
    let refused = |order| zone.alloc(&request(order, Mobility::Movable));
    assert_eq!(refused(1), Err(fragmented(1, 300)));
    assert_eq!(refused(8), Err(fragmented(8, 300)));
    // 512 frames cannot be had of 300 in any arrangement.
    assert_eq!(refused(9), Err(exhausted(300, 0)));
    // All in single frames: 1000 - (1000 + 300000 / 256) / 300 = 993.
    assert_eq!(zone.free_counts().fragmentation_index(Order::new(8)), 993);
}

#[test]
fn the_census_counts_every_frame_once() {
    let zone: Plain = empty(&small(1000), Cpus::new());
    assert_eq!(zone.add(range(50, 950)), Ok(900));
    assert_eq!(zone.reserve(range(100, 130)), Ok(30));
    let held = take(&zone, 70, Mobility::Unmovable);
    let census = sound(&zone);
    assert_eq!(
        (census.free, census.allocated, census.reserved),
        (800, 70, 30)
    );
    assert_eq!((census.cached, census.isolated), (0, 0));
    assert_eq!((zone.managed_frames(), zone.cached_frames()), (870, 0));
    let distinct: BTreeSet<Frame> = held.iter().copied().collect();
    assert_eq!(distinct.len(), 70);
}

#[test]
fn frames_outside_the_span_are_refused_however_far_away() {
    // The first block starts below the span, and neither is at 0.
    let mut plan = linux(4 * BLOCK);
    plan.span = range(10 * BLOCK + 7, 14 * BLOCK);
    let zone = full(&plan, Cpus::new());
    let far = [
        0,
        5,
        10 * BLOCK - 1,
        10 * BLOCK + 6,
        14 * BLOCK,
        usize::MAX - 1,
        usize::MAX,
    ];
    for at in far.map(frame) {
        for order in [0, 1, 3, 9, 10, 18] {
            let order = Order::new(order);
            let refused = zone.free(at, order);
            assert_eq!(refused, Err(FreeError::NotOwned), "{at} {order}");
            let taken = zone.alloc_at(at, &Request::new(order, Mobility::Movable));
            assert!(taken.is_err(), "{at} {order}");
        }
        let error = FreeError::NotOwned;
        let refused = BulkFreeError { freed: 0, error };
        assert_eq!(zone.free_bulk(&[at]), Err(refused));
        assert_eq!(zone.free_bulk(&[at; 300]), Err(refused));
    }
    sound(&zone);
}

// ---- page blocks dedicated by whoever knows better ----

#[test]
fn a_dedicated_block_has_that_type_and_serves_that_mobility_first() {
    for from in Mobility::ALL {
        for to in Mobility::ALL.into_iter().filter(|&to| to != from) {
            let zone = in_use_but(6, from, &[(1, 100), (3, 100), (4, 100)]);
            zone.dedicate(frame(3 * BLOCK + 200), to);
            sound(&zone);
            let types: Vec<MigrateType> = (0..6)
                .map(|block| state(&zone, frame(block * BLOCK)).kind)
                .collect();
            for (block, &kind) in types.iter().enumerate() {
                let own = if block == 3 { to } else { from };
                assert_eq!(kind, own.into(), "block {block}: {from:?} to {to:?}");
            }
            assert_eq!(zone.snapshot(0).blocks[MigrateType::from(to).index()], 1);
            // All that is free in it, before anything else is.
            let served = take(&zone, 100, to);
            assert_eq!(runs_of(&served), [(3, 100)], "{from:?} to {to:?}");
            assert_eq!(zone.fallbacks(), (0, 0));
            // And those that it was for do not come here while they have blocks of their own.
            give(&zone, &served[..50]);
            let others = take(&zone, 200, from);
            assert!(others.iter().all(|at| at.number() / BLOCK != 3), "{from:?}");
            sound(&zone);
        }
    }
}

#[test]
fn a_bitmap_block_that_is_wholly_free_or_outside_is_left_alone() {
    let zone = in_use_but(3, Mobility::Unmovable, &[(1, BLOCK)]);
    let before = seen(&zone);
    for mobility in Mobility::ALL {
        zone.dedicate(frame(BLOCK + 7), mobility);
        zone.dedicate(frame(3 * BLOCK), mobility);
        zone.dedicate(frame(usize::MAX), mobility);
    }
    assert_eq!(seen(&zone), before);
    sound(&zone);
}

// ---- apart before mixed ----

/// Two zones of four page blocks each. The upper one has room among movable frames only.
fn with_movable_room(lower_has_room: bool) -> [Plain; 2] {
    let plan = |kind, from: usize| ZonePlan {
        kind,
        span: FrameRange::new(from, from + 2048),
        ..linux(2048)
    };
    let low: Plain = full(&plan(ZoneKind::Dma32, 0), Cpus::new());
    let high: Plain = full(&plan(ZoneKind::Normal, 2048), Cpus::new());
    let mut held = take_all(&high, Mobility::Movable);
    assert_eq!(held.len(), 2048);
    held.retain(|frame| frame.number() % 512 < 100);
    give(&high, &held);
    if !lower_has_room {
        take_all(&low, Mobility::Movable);
    }
    [low, high]
}

#[test]
fn another_zone_is_asked_before_a_page_block_is_mixed() {
    for order in [0, 3] {
        for lower_has_room in [true, false] {
            let zones = with_movable_room(lower_has_room);
            let nodes = one_node(&zones);
            let at = nodes.alloc(0, &request(order, Mobility::Unmovable));
            let at = at.unwrap_or_else(|why| panic!("order {order}: {why:?}"));
            assert_eq!(zones[0].span().contains(at), lower_has_room, "{at} {order}");
            let (mixing, claims) = zones[1].fallbacks();
            assert_eq!(mixing + claims, u64::from(!lower_has_room));
            // Movable frames stay where they are.
            let movable = nodes.alloc(0, &MOVABLE).unwrap();
            assert!(zones[1].span().contains(movable), "{movable}");
        }
    }
}
