//! What is promised of requests to zones and nodes beside what they get: the reason of a refusal,
//! what a refusal costs others, what passes the watermarks, and how long one waits in all.

use core::cell::{Cell, RefCell};

use brickyard::node::SlowPath;
use brickyard::patience::WAITS_MOST;
use brickyard::pressure::{ContiguousRequest, Migration, NoHooks, alloc_contiguous, offline};
use brickyard::stats::PageTypeInfo;
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::watermark;
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, MigrateType, Mobility, OneCpu, Order, Platform,
    RangeError, Request, Zone, ZoneKind, ZonePlan,
};

use crate::{support, threads};

use support::{
    Cpus, Hooks, all_at, count_free, empty, exhausted, full, give, hooked_node, one_node, request,
    set_marks, take_all, too_large, use_one,
};
use threads::{CPU, INSIDE_UNTIL, Numbered, Visited, WAITED};

const PAGE: Request = Request::page(Mobility::Movable);

const fn order(order: u8) -> Request {
    request(order, Mobility::Movable)
}

fn zone_of<P: Platform, A: SlotAccess>(
    kind: ZoneKind,
    span: FrameRange,
    cpus: usize,
    platform: P,
) -> Zone<'static, P, A> {
    full(&ZonePlan::new(kind, span, cpus), platform)
}

fn of_one_cpu(frames: usize) -> Zone<'static, OneCpu> {
    zone_of(ZoneKind::Normal, FrameRange::new(0, frames), 1, OneCpu)
}

// ---- the reason of a refusal ----

#[test]
fn a_request_that_a_mark_stops_is_not_told_of_fragments() {
    let zones = [of_one_cpu(4096)];
    let nodes = one_node(&zones);
    set_marks(&zones[0], all_at(4096));
    for request in [PAGE, order(3), order(9), order(10)] {
        assert_eq!(nodes.alloc(0, &request), Err(exhausted(4096, 0)));
    }
    // Enough is free, and nothing is in the way but pieces.
    set_marks(&zones[0], all_at(0));
    let all = take_all(&zones[0], Mobility::Movable);
    let odd: Vec<Frame> = all.into_iter().filter(|at| at.number() % 2 == 1).collect();
    give(&zones[0], &odd);
    for request in [order(3), order(9), order(10)] {
        let why = nodes.alloc(0, &request);
        assert!(matches!(why, Err(AllocError::Fragmented { .. })), "{why:?}");
    }
}

// ---- what a hopeless request costs others ----

#[test]
fn a_request_that_no_free_memory_could_serve_disturbs_nobody() {
    let span = FrameRange::new(512, 16 * 512);
    let cpus = Cpus::new();
    let zone = zone_of::<_, Exclusive>(ZoneKind::Normal, span, 8, cpus);
    for cpu in 0..8 {
        cpus.switch_to(cpu);
        use_one(&zone, &PAGE);
    }
    let cached = zone.cached_frames();
    let too_large = too_large(11, 10);
    assert_eq!(zone.alloc(&order(11)), Err(too_large));
    // No frame of the zone lies below the limit; no block that begins in it ends below the limit.
    for request in [
        PAGE.below(span.start),
        order(10).below(Frame::new(2 * 512)),
        order(3).below(Frame::new(519)),
    ] {
        let limit = request.limit.unwrap();
        let refused = Err(AllocError::LimitUnsatisfiable { limit });
        assert_eq!(zone.alloc(&request), refused);
    }
    assert_eq!((zone.cached_frames(), cpus.interruptions()), (cached, 0));
    // One that could be served asks the others.
    assert_eq!(zone.alloc(&order(3).below(Frame::new(520))), Ok(span.start));
    while zone.alloc(&order(10)).is_ok() {}
    assert!(cpus.interruptions() > 0);
}

// ---- what texts count ----

#[test]
fn page_blocks_without_memory_are_of_no_type() {
    let zone = zone_of::<_, Exclusive>(ZoneKind::Normal, FrameRange::new(0, 512), 1, OneCpu);
    let movable = zone.snapshot(0).blocks[MigrateType::Movable.index()];
    assert_eq!(movable, 1, "all of it is memory");
    let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 64 * 512), 1);
    let zone: Zone<'_, OneCpu> = empty(&plan, OneCpu);
    // Three page blocks and one frame of a fourth are memory; one of them goes, one is reserved.
    zone.add(FrameRange::new(0, 3 * 512)).unwrap();
    zone.add(FrameRange::new(40 * 512 + 77, 40 * 512 + 78))
        .unwrap();
    assert_eq!(zone.remove(FrameRange::new(1024, 1536)), Ok(512));
    assert_eq!(zone.reserve(FrameRange::new(512, 1024)), Ok(512));
    let snapshot = zone.snapshot(0);
    let mut expected = [0; MigrateType::COUNT];
    expected[MigrateType::Movable.index()] = 3;
    assert_eq!(snapshot.blocks, expected, "{}", PageTypeInfo(&[snapshot]));
    let types = [0, 512, 1024, 40 * 512, 50 * 512].map(|at| zone.block_type(Frame::new(at)));
    let movable = Some(MigrateType::Movable);
    assert_eq!(types, [movable, movable, None, movable, None]);
}

#[test]
fn a_frame_of_no_bytes_sets_no_marks() {
    assert_eq!(watermark::frames_of_kbytes(1024, 0), 0);
    let zones = [of_one_cpu(4096)];
    set_marks(&zones[0], all_at(7));
    one_node(&zones).set_min_free_kbytes(1024, 0);
    assert_eq!(zones[0].watermarks().marks(), all_at(7));
}

// ---- how long one waits in all ----

#[test]
fn one_budget_of_waits_is_for_all_zones_and_all_slots_of_a_request() {
    // Hooks each time that it has freed something.
    let hopeful = Hooks::new(Some(1), None);
    for count in [1, 3] {
        let kinds = [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal];
        let zones: Vec<_> = (0..count)
            .map(|i| {
                let span = FrameRange::new(i * 4096, i * 4096 + 4096);
                let zone = zone_of::<_, Visited>(kinds[i], span, 2, Numbered);
                // Something lies in the stashes of both CPUs.
                for cpu in [1, 0] {
                    CPU.set(cpu);
                    use_one(&zone, &PAGE);
                }
                while zone.alloc_uncached(&PAGE).is_some() {}
                assert!(zone.cached_frames() > 1);
                zone
            })
            .collect();
        let nodes = hooked_node(&zones[..], hopeful, SlowPath::MODERN);
        INSIDE_UNTIL.set(u32::MAX);
        for request in [PAGE, PAGE.atomic(), order(0), order(3), order(9)] {
            WAITED.set(0);
            assert!(nodes.alloc(0, &request).is_err());
            let waits = WAITED.get();
            assert!(waits <= WAITS_MOST, "{count} zones: {waits}");
            // A CPU that stands still has been waited for.
            assert!(waits >= 8192, "{count} zones: {waits}");
        }
        // Neither does a free wait for who is in the way: it goes to the store.
        WAITED.set(0);
        let frame = zones[0].span().start;
        let in_use = |at: &Frame| zones[0].free(*at, Order::ZERO).is_ok();
        assert!(zones[0].span().frames().any(|at| in_use(&at)), "{frame}");
        assert_eq!(WAITED.get(), 0);
        INSIDE_UNTIL.set(0);
    }
}

#[test]
fn looks_end_whatever_they_see() {
    use brickyard::patience::{LOOKS_BELOW_A_MARK, LOOKS_MOST, Look, Looks, Patience, Reach};
    let looks_at = |order: u8, reach, look| {
        let patience = Patience::new();
        let mut looks = Looks::new(Order::new(order), reach, &patience);
        let more = (1..1000).take_while(|&number| looks.again(look) == Some(number));
        1 + more.count() as u32
    };
    for reach in [Reach::Locks, Reach::All] {
        assert_eq!(looks_at(0, reach, Look::Unsettled), LOOKS_MOST);
        let below = looks_at(0, reach, Look::UnsettledBelowAMark);
        assert_eq!(below, LOOKS_BELOW_A_MARK);
        assert_eq!(looks_at(0, reach, Look::Nothing), 1);
        assert_eq!(looks_at(3, reach, Look::Unsettled), 1);
    }
    assert_eq!(looks_at(0, Reach::Own, Look::Unsettled), 1);
}

// ---- what passes the watermarks ----

/// Every page is moved to where it is told, and none freed.
fn moves() -> Hooks {
    Hooks::new(None, Some(Migration::Moved))
}

/// A zone with so many frames free, all at its end, of which so many are above its marks. All that
/// is in use are single movable pages and halves of pairs.
fn above_by(free: usize, above: usize) -> [Zone<'static, OneCpu>; 1] {
    let zone = of_one_cpu(8192);
    let used = FrameRange::new(0, 8192 - free);
    zone.alloc_range_at(used, &PAGE).unwrap();
    let frames = used.frames().filter(|frame| frame.number() % 2 == 0);
    let held: Vec<Frame> = frames.collect();
    for &frame in &held {
        zone.free_uncached(frame, Order::ZERO).unwrap();
    }
    for &frame in &held {
        zone.take_at(frame, &PAGE).unwrap();
    }
    set_marks(&zone, all_at(free - above));
    assert_eq!(zone.free_frames(), free);
    [zone]
}

/// The list of docs/book/zones.md: nothing else that is asked of nodes takes a frame that a mark
/// holds back.
#[test]
fn what_passes_the_marks_is_on_a_list() {
    let anywhere = FrameRange::new(0, 8192);
    for above in [0, 5, 100] {
        let zones = above_by(2048, above);
        let nodes = hooked_node(&zones, moves(), SlowPath::MODERN);
        let mark = 2048 - above;
        let zone = &zones[0];
        // All that requests to nodes take, in any order, ends at the mark.
        let mut held: Vec<FrameRange> = Vec::new();
        for block in [10, 9, 5, 3, 1, 0].map(order) {
            let got = nodes.alloc(0, &block);
            held.extend(got.map(|at| FrameRange::of_block(at, block.order)));
            assert!(zone.free_frames() >= mark);
        }
        held.extend(nodes.alloc_range(0, &PAGE, above + 1));
        assert!(zone.free_frames() >= mark);
        let wanted = ContiguousRequest::new(above + 1, anywhere);
        let refused = nodes.alloc_contiguous(0, &wanted);
        let too_little = matches!(refused, Err(RangeError::TooLittleFree { .. }));
        assert!(too_little, "{refused:?}");
        let mut many = vec![Frame::new(0); 300];
        let got = nodes.alloc_bulk(0, &PAGE, &mut many).unwrap_or(0);
        held.extend(many[..got].iter().map(|&at| FrameRange::at(at, 1)));
        assert_eq!(zone.free_frames() + zone.cached_frames(), mark, "{above}");
        // Adjacent frames, to the last above the mark: free ones, and such as are to be cleared.
        for range in held.drain(..) {
            nodes.free_range(range).unwrap();
        }
        nodes.drain();
        if above > 0 {
            for within in [anywhere, FrameRange::new(0, 4096)] {
                let mut wanted = ContiguousRequest::new(above, within);
                wanted.mobility = Mobility::Movable;
                let got = nodes.alloc_contiguous(0, &wanted).unwrap();
                assert!(within.covers(got) && zone.free_frames() == mark);
                zone.free_range(got).unwrap();
            }
        }
        // An atomic request goes below the min mark, to three eighths of it.
        let atomic: Vec<Frame> =
            core::iter::from_fn(|| nodes.alloc(0, &PAGE.atomic()).ok()).collect();
        let floor = mark - mark / 2 - (mark - mark / 2) / 4;
        assert_eq!(zone.free_frames() + zone.cached_frames(), floor);
        // The places that pages are moved to are asked for like any other.
        let cleared = offline(zone, FrameRange::new(0, 512), &moves());
        let busy = matches!(cleared, Err(RangeError::Busy { .. }));
        assert!(busy, "{cleared:?}");
        for frame in atomic {
            zone.free_uncached(frame, Order::ZERO).unwrap();
        }
        nodes.drain();

        // The list. A zone that is asked by itself.
        zone.alloc(&PAGE).unwrap();
        zone.alloc(&order(3)).unwrap();
        zone.alloc_range(&PAGE, 5).unwrap();
        assert_eq!(zone.alloc_bulk(&PAGE, &mut many), Ok(300));
        assert!(zone.free_frames() < mark);
        zone.drain();
        let is_free = |at: &Frame| zone.block_of(*at).is_some() && count_free(zone, &[*at]) == 1;
        let free: Vec<Frame> = (0..8192).map(Frame::new).filter(is_free).collect();
        zone.alloc_at(free[0], &PAGE).unwrap();
        zone.alloc_range_at(FrameRange::at(free[100], 1), &PAGE)
            .unwrap();
        // What lies in a stash had passed the mark when it was fetched.
        zone.free(free[0], Order::ZERO).unwrap();
        assert_eq!(nodes.alloc(0, &PAGE), Ok(free[0]));
        // Memory that is taken from the zone itself.
        let last = *free.last().unwrap();
        assert_eq!(zone.reserve(FrameRange::at(last, 1)), Ok(1));
        assert_eq!(zone.remove(FrameRange::at(last, 1)), Ok(1));
        let before = Frame::new(last.number() - 1);
        assert_eq!(offline(zone, FrameRange::at(before, 1), &moves()), Ok(1));
        assert!(zone.free_frames() < mark);
        zone.check().unwrap();
    }
}

/// Frames below the reserve of a lower zone are for requests that cannot use a higher one.
#[test]
fn adjacent_frames_leave_the_reserve_of_a_lower_zone() {
    let low = zone_of(ZoneKind::Dma32, FrameRange::new(0, 4096), 1, OneCpu);
    let high = zone_of(ZoneKind::Normal, FrameRange::new(4096, 8192), 1, OneCpu);
    let zones: [Zone<'static, OneCpu>; 2] = [low, high];
    let nodes = one_node(&zones);
    let mut reserve = [0; ZoneKind::COUNT];
    reserve[ZoneKind::Normal.index()] = 4000;
    zones[0].watermarks().set(all_at(0), reserve);
    let within = zones[0].span();
    let mut wanted = ContiguousRequest::new(97, within);
    let too_little = Err(RangeError::TooLittleFree { free: 4096 });
    assert_eq!(nodes.alloc_contiguous(0, &wanted), too_little);
    // A caller that names the kind of zone, or the zone, may.
    wanted.highest = Some(ZoneKind::Dma32);
    assert_eq!(nodes.alloc_contiguous(0, &wanted).unwrap().len(), 97);
    wanted.highest = None;
    let got = alloc_contiguous(&zones[0], &wanted, &NoHooks);
    assert_eq!(got.unwrap().len(), 97);
    // The error is that of the first zone that has such a place.
    let wanted = ContiguousRequest::new(4096, FrameRange::new(0, 8192));
    set_marks(&zones[1], all_at(1));
    assert_eq!(nodes.alloc_contiguous(0, &wanted), too_little);
    let wanted = ContiguousRequest::new(4097, FrameRange::new(0, 8192));
    let outside = nodes.alloc_contiguous(0, &wanted);
    assert!(matches!(outside, Err(RangeError::OutsideSpan { .. })));
}

// ---- several at once ----

#[test]
fn adjacent_frames_that_are_free_are_had_while_others_clear_ranges() {
    let zone = of_one_cpu(64 * 512);
    // Four other CPUs are each clearing a small range: a hook waits for a disk.
    let cleared = [0, 1, 2, 3].map(|i| FrameRange::new(i * 512, i * 512 + 8));
    for range in cleared {
        zone.isolate(range).unwrap();
    }
    let wanted = ContiguousRequest::new(100, zone.span());
    let got = alloc_contiguous(&zone, &wanted, &NoHooks);
    // The first place without a frame of theirs.
    assert_eq!(got, Ok(FrameRange::new(8, 108)));
    zone.free_range(FrameRange::new(8, 108)).unwrap();
    // Where something is to be moved, it is told that others are at that.
    let in_the_way = Frame::new(50);
    zone.alloc_at(in_the_way, &PAGE).unwrap();
    let wanted = ContiguousRequest::new(100, FrameRange::new(8, 110));
    let busy = alloc_contiguous(&zone, &wanted, &moves());
    assert_eq!(busy, Err(RangeError::TooManyIsolated));
    zone.unisolate(cleared[2]);
    let got = alloc_contiguous(&zone, &wanted, &moves());
    assert_eq!(got, Ok(FrameRange::new(8, 108)));
    let over_theirs = ContiguousRequest::new(100, FrameRange::new(0, 107));
    let isolated = alloc_contiguous(&zone, &over_theirs, &NoHooks);
    assert!(isolated.is_err());
    cleared.iter().for_each(|&range| zone.unisolate(range));
    zone.check().unwrap();
}

// ---- a frame that goes from zone to zone ----

type Two = [Zone<'static, In, Shared>; 2];

thread_local! {
    static ZONES: Cell<Option<&'static Two>> = const { Cell::new(None) };
    // Frames of each zone in use by the other CPU, and the zone that has the free frame.
    static HELD: RefCell<[Vec<Frame>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
    static FREE_IN: Cell<usize> = const { Cell::new(0) };
    // How often the other CPU still moves.
    static MOVES: Cell<usize> = const { Cell::new(0) };
}

/// The platform of the zone with this number. Whoever is pinned there is about to look at it.
#[derive(Debug)]
struct In(usize);

impl Platform for In {
    fn cpu(&self) -> usize {
        // CPUs without stashes: all frees go straight to the store.
        99
    }

    fn pin(&self) -> usize {
        moves_away_from(self.0);
        99
    }
}

/// The other CPU frees a frame of the other zone, then takes the one of this.
fn moves_away_from(at: usize) {
    if MOVES.get() == 0 || FREE_IN.get() != at {
        return;
    }
    let left = MOVES.replace(0);
    let (zones, there) = (ZONES.get().unwrap(), 1 - at);
    let frame = HELD.with_borrow_mut(|held| held[there].pop()).unwrap();
    zones[there].free_uncached(frame, Order::ZERO).unwrap();
    let taken = zones[at].alloc_uncached(&PAGE).unwrap();
    HELD.with_borrow_mut(|held| held[at].push(taken));
    FREE_IN.set(there);
    MOVES.set(left - 1);
}

#[test]
fn a_frame_that_goes_from_zone_to_zone_is_found() {
    let half = |number: usize, kind| {
        let span = FrameRange::new(number * 512, number * 512 + 512);
        zone_of::<_, Shared>(kind, span, 2, In(number))
    };
    let zones: &Two = support::kept([half(0, ZoneKind::Dma32), half(1, ZoneKind::Normal)]);
    ZONES.set(Some(zones));
    for (number, zone) in zones.iter().enumerate() {
        let all = core::iter::from_fn(|| zone.alloc_uncached(&PAGE));
        HELD.with_borrow_mut(|held| held[number].extend(all));
    }
    // One frame of the second zone, which is asked first, is free.
    let frame = HELD.with_borrow_mut(|held| held[1].pop()).unwrap();
    zones[1].free_uncached(frame, Order::ZERO).unwrap();
    let nodes = one_node(&zones[..]);
    let mut refused = Vec::new();
    for moves in 0..=16 {
        FREE_IN.set(usize::from(zones[1].free_frames() > 0));
        MOVES.set(moves);
        let got = nodes.alloc(0, &PAGE);
        MOVES.set(0);
        match got {
            Ok(frame) => nodes.free(frame, Order::ZERO).unwrap(),
            Err(why) => refused.push((moves, why)),
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}
