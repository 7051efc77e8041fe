//! The tests of marks: who may go how low, and what a zone below its high mark remembers.

use super::*;

/// Makes Z with exactly so many frames free, in blocks as large as possible.
fn with_free(frames: usize) -> [Zone; 1] {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    for (at, order) in FrameRange::new(0, frames).blocks(zone.max_order()) {
        release(&zone, at.number(), order.get());
    }
    assert_eq!(zone.free_frames(), frames);
    [zone]
}

/// Checks that a request is served with so many free frames, and not with one less.
fn needs(frames: usize, request: &Request, flags: GfpFlags) {
    assert_eq!(alloc_in(&with_free(frames - 1), request, flags), None);
    assert!(alloc_in(&with_free(frames), request, flags).is_some());
}

const PLAIN: GfpFlags = GfpFlags {
    high: false,
    wakes: true,
    reclaims: true,
    retry: Retry::Usual,
};

const URGENT: GfpFlags = GfpFlags {
    high: true,
    ..PLAIN
};

/// Test 15.
#[test]
fn how_low_single_frames_may_go() {
    needs(1025, &MOVABLE, PLAIN);
    needs(513, &MOVABLE, URGENT);
    needs(385, &MOVABLE.atomic(), GfpFlags::of(&MOVABLE.atomic()));
    // What cannot wait and is not urgent lowers nothing.
    let patient = GfpFlags {
        reclaims: false,
        ..PLAIN
    };
    needs(1025, &MOVABLE.atomic(), patient);
    assert_eq!(Rights::OOM.lowered(1024), 512);
}

#[test]
fn what_is_taken_off_a_mark_is_rounded_down() {
    let all = Rights::MIN_RESERVE.and(Rights::NON_BLOCK);
    // 1025 - 512 = 513, 513 - 128 = 385.
    assert_eq!(Rights::MIN_RESERVE.lowered(1025), 513);
    assert_eq!(all.lowered(1025), 385);
    assert_eq!(Rights::NON_BLOCK.lowered(1025), 1025);
    assert_eq!(all.and(Rights::OOM).lowered(1025), 193);
}

/// Test 16.
#[test]
fn a_block_needs_what_it_takes_and_a_block_of_its_size() {
    needs(1028, &request(2, Mobility::Movable), PLAIN);
    // Much is free, but in pieces.
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    for at in (0..8000).step_by(4) {
        release(&zone, at, 1);
    }
    let zones = [zone];
    assert_eq!(
        alloc_in(&zones, &request(2, Mobility::Movable), PLAIN),
        None
    );
    release(&zones[0], 9000, 2);
    assert_eq!(
        alloc_in(&zones, &request(2, Mobility::Movable), PLAIN),
        Some(9000)
    );
}

#[test]
fn what_a_zone_holds_back_counts() {
    let held_back = |against: ZoneKind| {
        let zones = with_free(1300);
        let mut reserve = [0; ZoneKind::COUNT];
        reserve[against.index()] = 300;
        zones[0].watermarks().set(MARKS, reserve);
        alloc_in(&zones, &MOVABLE, PLAIN)
    };
    assert_eq!(held_back(ZoneKind::Movable), None);
    assert!(held_back(ZoneKind::Normal).is_some());
}

/// Takes a frame of another type as often; each try to claim boosts once.
fn boost(zone: &Zone, times: usize) {
    refuse_one(zone);
    for block in 100..100 + times {
        release(zone, block * BLOCK, 0);
        take_direct(zone, &UNMOVABLE);
    }
    assert_eq!(zone.boost(), times * BLOCK);
}

/// As [`needs`], in a zone that is boosted once.
fn needs_boosted(frames: usize, order: u8, flags: GfpFlags) {
    let served = [1, 0].map(|less| {
        let (zone, _) = z::<V6_12>();
        fill(&zone, Mobility::Movable);
        boost(&zone, 1);
        for (at, order) in FrameRange::new(0, frames - less).blocks(zone.max_order()) {
            release(&zone, at.number(), order.get());
        }
        alloc_in(&[zone], &request(order, Mobility::Movable), flags).is_some()
    });
    assert_eq!(served, [false, true]);
}

#[test]
fn a_boost_raises_the_marks() {
    needs_boosted(1024 + 512 + 1, 0, PLAIN);
    // Half of both.
    needs_boosted(512 + 256 + 2, 1, URGENT);
}

#[test]
fn single_frames_that_others_wait_for_do_without_the_boost() {
    needs_boosted(513, 0, URGENT);
}

#[test]
fn frames_set_aside_do_not_count_for_others() {
    let (zone, _) = z::<V6_12>();
    fill(&zone, Mobility::Movable);
    set_marks(
        &zone,
        Marks {
            min: 0,
            low: 3000,
            high: 3000,
        },
    );
    release(&zone, 0, 9);
    let zones = [zone];
    let at = alloc(&zones, &request(1, Mobility::Unmovable).atomic()).expect("two frames");
    let zone = &zones[0];
    assert_eq!(zone.block_type(frame(at)), Some(High));
    zone.drain();
    let aside = free_of(zone, High);
    assert!(aside > 400);
    release(zone, 4 * BLOCK, 6);
    assert_eq!(zone.free_frames(), aside + 64);
    set_marks(
        zone,
        Marks {
            min: 64,
            low: 3000,
            high: 3000,
        },
    );
    assert_eq!(
        alloc_in(
            &zones,
            &MOVABLE,
            GfpFlags {
                retry: Retry::Never,
                ..PLAIN
            }
        ),
        None
    );
    // Any of these rights is enough, whatever they lower.
    assert!(
        alloc_in(
            &zones,
            &MOVABLE,
            GfpFlags {
                retry: Retry::Never,
                ..URGENT
            }
        )
        .is_some()
    );
}

// ---- below the high mark ----

/// Takes single frames as Linux does until so many refills have happened; returns their sizes.
fn refills(zones: &[Zone; 1], count: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    while sizes.len() < count {
        let misses = zones[0].cached_frames() == 0;
        assert!(alloc(zones, &MOVABLE).is_some());
        if misses {
            sizes.push(zones[0].cached_frames() + 1);
        }
    }
    sizes
}

const ABOVE_ALL: Marks = Marks {
    min: 0,
    low: 1286,
    high: 300_000,
};

/// Test 8, at work.
#[test]
fn refills_below_the_high_mark() {
    let (zone, _) = z::<V6_12>();
    set_marks(&zone, ABOVE_ALL);
    assert_eq!(refills(&[zone], 5), [63, 126, 252, 258, 258]);
}

#[test]
fn requests_above_the_high_mark_do_not_end_it() {
    let (zone, _) = z::<V6_12>();
    set_marks(&zone, ABOVE_ALL);
    let zones = [zone];
    assert_eq!(refills(&zones, 1), [63]);
    set_marks(&zones[0], MARKS);
    assert_eq!(refills(&zones, 4), [126, 252, 258, 258]);
}

#[test]
fn lack_of_a_large_block_counts_as_below() {
    let (zone, _) = z::<V6_12>();
    for block in 0..512 {
        take_at(&zone, block * BLOCK, 0, Mobility::Movable);
    }
    let zones = [zone];
    assert_eq!(alloc(&zones, &request(9, Mobility::Movable)), None);
    assert_eq!(refills(&zones, 5), [63, 126, 252, 258, 258]);
}

/// Frees single frames; returns how many frames the page set held before each drain, and how many
/// left.
fn drains(zone: &Zone, frames: core::ops::Range<usize>) -> Vec<(usize, usize)> {
    let mut drains = Vec::new();
    for at in frames {
        take_at(zone, at, 0, Mobility::Movable);
        let held = zone.cached_frames() + 1;
        give(zone, at, 0);
        drains.extend(Some((held, held - zone.cached_frames())).filter(|&(_, left)| left > 0));
    }
    drains
}

/// Returns Z after a request has found it below its high mark, with empty page sets.
fn below_high() -> [Zone; 1] {
    let (zone, _) = z::<V6_12>();
    set_marks(&zone, ABOVE_ALL);
    let zones = [zone];
    alloc(&zones, &request(4, Mobility::Movable)).expect("a block");
    zones
}

/// Test 11, at work.
#[test]
fn drains_below_the_high_mark() {
    let zones = below_high();
    assert_eq!(drains(&zones[0], 1000..2000), [(321, 258); 3]);
}

#[test]
fn a_drain_that_finds_the_zone_above_its_high_mark_ends_it() {
    let zones = below_high();
    set_marks(&zones[0], MARKS);
    let drains = drains(&zones[0], 1000..3000);
    assert_eq!(drains[..3], [(321, 258), (321, 258), (642, 579)]);
}

#[test]
fn a_drain_that_finds_the_zone_at_its_high_mark_does_not() {
    for (short, expected) in [(0, (321, 258)), (1, (642, 579))] {
        let zones = below_high();
        let zone = &zones[0];
        for at in 1000..1321 {
            take_at(zone, at, 0, Mobility::Movable);
        }
        let free = zone.free_frames();
        // The drain brings 258 frames back.
        let high = free + 258 - short;
        set_marks(zone, Marks { high, ..MARKS });
        for at in 1000..1321 {
            give(zone, at, 0);
        }
        assert_eq!(zone.free_frames(), free + 258);
        let next = drains(zone, 2000..3500);
        assert_eq!(next[1], expected, "{short}");
    }
}

// ---- many at once ----

#[test]
fn many_at_once_come_from_a_zone_that_stays_above_its_low_mark() {
    let many = |frames: usize, boosted: usize| {
        let (zone, _) = z::<V6_12>();
        fill(&zone, Mobility::Movable);
        if boosted > 0 {
            boost(&zone, boosted);
        }
        for (at, order) in FrameRange::new(0, frames).blocks(zone.max_order()) {
            release(&zone, at.number(), order.get());
        }
        let mut out = [frame(0); 100];
        zone.alloc_batch(&MOVABLE, &mut out)
    };
    assert_eq!(many(1386, 0), 0);
    assert_eq!(many(1387, 0), 100);
    assert_eq!(many(1387 + 511, 1), 0);
    assert_eq!(many(1387 + 512, 1), 100);
}
