//! While one frame is free, order 0 succeeds; what administration finds in stashes.

use super::*;

// ---- while one frame is free, order 0 succeeds ----

/// All is in use but one frame, which lies in the stash of CPU 1, in the array of this mobility.
fn last_frame_in_a_stash<A: SlotAccess + 'static>(
    cpus: &'static Cpus,
    mobility: Mobility,
) -> (Bricks<A>, Frame) {
    let zone = zone_on(1024, cpus);
    cpus.switch_to(1);
    let held = in_interrupt(cpus, || take_all(&zone, mobility));
    assert_eq!(held.len(), 1024);
    free(&zone, held[500], 0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 1));
    (zone, held[500])
}

/// What a request is told that may not drain the stash with the last frame.
const OUT_OF_REACH: AllocError = AllocError::Exhausted { free: 0, cached: 1 };

/// It is found from this CPU, whatever array it lies in, with so many interruptions.
fn is_found<A: SlotAccess + 'static>(cpu: usize, page: fn(Mobility) -> Request, asked: usize) {
    for mobility in Mobility::ALL {
        for page in Mobility::ALL.map(page) {
            let cpus = Cpus::new();
            let (zone, last): (Bricks<A>, _) = last_frame_in_a_stash(cpus, mobility);
            cpus.switch_to(cpu);
            assert_eq!(zone.alloc(&page), Ok(last));
            assert_eq!(cpus.interruptions(), asked);
            // A CPU that holds nothing is left in peace.
            assert_eq!(zone.alloc(&page), Err(exhausted(0, 0)));
            assert_eq!(cpus.interruptions(), asked);
            sound(&zone);
        }
    }
}

#[test]
fn the_last_frame_is_found_in_another_cpus_stash_by_visiting_it() {
    is_found::<Shared>(0, Request::page, 0);
    is_found::<Shared>(0, |wanted| Request::page(wanted).atomic(), 0);
}

#[test]
fn the_last_frame_is_found_in_another_cpus_stash_by_running_there() {
    is_found::<Exclusive>(0, Request::page, 1);
}

#[test]
fn the_last_frame_is_found_in_the_own_stash_whatever_array_it_lies_in() {
    is_found::<Exclusive>(1, |wanted| Request::page(wanted).atomic(), 0);
}

#[test]
fn the_last_frame_is_found_inside_a_larger_block_in_a_stash() {
    for order in [1, 2, 3, 9] {
        let cpus = Cpus::new();
        let zone: Lent = zone_on(1024, cpus);
        cpus.switch_to(2);
        let block = in_interrupt(cpus, || zone.alloc(&request(order, Mobility::Movable))).unwrap();
        take_all(&zone, Mobility::Movable);
        free(&zone, block, order);
        assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 1 << order));
        cpus.switch_to(0);
        assert!(zone.alloc(&UNMOVABLE).is_ok(), "order {order}");
        assert_eq!(take_all(&zone, Mobility::Movable).len(), (1 << order) - 1);
        sound(&zone);
    }
}

#[test]
fn larger_orders_are_served_from_other_cpus_stashes_too() {
    let cpus = Cpus::new();
    let zone: Lent = zone_on(1024, cpus);
    let held = take(&zone, 1024, Mobility::Movable);
    for (i, at) in held.into_iter().enumerate() {
        cpus.switch_to(i % 4);
        free(&zone, at, 0);
    }
    assert!(zone.cached_frames() > 0);
    for order in [10, 9, 3] {
        cpus.switch_to(1);
        let block = zone.alloc(&request(order, Mobility::Unmovable)).unwrap();
        cpus.switch_to(2);
        free(&zone, block, order);
    }
    sound(&zone);
}

#[test]
fn an_interrupt_does_not_get_what_lies_in_stashes() {
    fn holds<A: SlotAccess + 'static>() {
        for cpu in [0, 1] {
            let cpus = Cpus::new();
            let (zone, last): (Bricks<A>, _) = last_frame_in_a_stash(cpus, Mobility::Movable);
            cpus.switch_to(cpu);
            for page in [MOVABLE, MOVABLE.in_context(Context::Interrupt)] {
                let refused = in_interrupt(cpus, || zone.alloc(&page));
                assert_eq!(refused, Err(OUT_OF_REACH));
            }
            assert_eq!(zone.cached_frames(), 1);
            assert_eq!((cpus.interruptions(), cpus.waits()), (0, 0));
            assert_eq!(zone.alloc(&MOVABLE), Ok(last));
        }
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn an_atomic_request_interrupts_no_other_cpu() {
    let cpus = Cpus::new();
    let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, Mobility::Movable);
    cpus.switch_to(0);
    assert_eq!(zone.alloc(&MOVABLE.atomic()), Err(OUT_OF_REACH));
    assert_eq!((cpus.interruptions(), zone.cached_frames()), (0, 1));
    assert_eq!(zone.alloc(&MOVABLE), Ok(last));
}

#[test]
fn what_runs_on_the_owner_in_an_interrupt_does_not_touch_its_stash() {
    let cpus = Cpus::new();
    let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, Mobility::Movable);
    cpus.switch_to(0);
    cpus.reach_others_by_interrupt();
    assert_eq!(zone.alloc(&MOVABLE), Err(OUT_OF_REACH));
    assert_eq!(zone.drain(), 0);
    assert_eq!(zone.cached_frames(), 1);
    assert!(cpus.interruptions() > 0);
    cpus.switch_to(1);
    assert_eq!(zone.alloc(&MOVABLE), Ok(last));
    sound(&zone);
}

#[test]
fn a_cpu_out_of_reach_keeps_what_it_has() {
    let cpus = Cpus::new();
    let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, Mobility::Movable);
    cpus.put_others_out_of_reach();
    cpus.switch_to(0);
    assert_eq!(zone.alloc(&MOVABLE), Err(OUT_OF_REACH));
    cpus.switch_to(1);
    assert_eq!(zone.alloc(&MOVABLE), Ok(last));
}

// ---- administration ----

#[test]
fn frames_in_stashes_are_in_nobodys_way() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(4096, cpus);
        let fill = || {
            for cpu in 0..4 {
                cpus.switch_to(cpu);
                for order in [0, 1, 2, 3, 9] {
                    use_one(&zone, &request(order, Mobility::Movable));
                }
            }
            assert!(zone.cached_frames() > 0);
        };
        fill();
        assert_eq!(zone.reserve(range(0, 4096)), Ok(4096));
        assert_eq!(zone.unreserve(range(0, 4096)), Ok(4096));
        fill();
        assert_eq!(zone.remove(range(100, 4000)), Ok(3900));
        assert_eq!(zone.add(range(100, 4000)), Ok(3900));
        fill();
        let wide = request(10, Mobility::Unmovable);
        for at in [0, 1024, 2048, 3072] {
            assert_eq!(zone.alloc_at(frame(at), &wide), Ok(()));
            free(&zone, frame(at), 10);
        }
        fill();
        let wanted = ContiguousRequest::new(4096, zone.span());
        let got = alloc_contiguous(&zone, &wanted, &NoHooks);
        assert_eq!(got, Ok(range(0, 4096)));
        assert_eq!(zone.free_range(range(0, 4096)), Ok(()));
        assert_eq!(sound(&zone).free, 4096);
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn cached_frames_are_served_below_the_mark_and_frames_of_the_store_are_not() {
    let cpus = Cpus::new();
    let zones = [zone_on::<Exclusive>(4096, cpus)];
    let nodes = one_node(&zones);
    let first = nodes.alloc(0, &MOVABLE).unwrap();
    let cached = zones[0].cached_frames();
    assert!(cached > 0);
    // More than there is.
    set_marks(&zones[0], all_at(5000));
    let free_before = zones[0].free_frames();
    for left in (0..cached).rev() {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(zones[0].cached_frames(), left);
    }
    assert_eq!(zones[0].free_frames(), free_before);
    let refused = Err(exhausted(free_before, 0));
    assert_eq!(nodes.alloc(0, &MOVABLE), refused);
    assert_eq!(nodes.alloc(0, &UNMOVABLE), refused);
    assert!(nodes.alloc(0, &request(1, Mobility::Movable)).is_err());
    // What is freed can be had again.
    assert_eq!(nodes.free(first, Order::ZERO), Ok(()));
    assert_eq!(nodes.alloc(0, &MOVABLE), Ok(first));
    assert_eq!(zones[0].free_frames(), free_before);
    assert!(nodes.check().is_ok());
}

/// Takes blocks of an order from a zone of eight page blocks until no more are to be had. Returns
/// how many came, and the least that was free in the store.
fn take_down_to<A: SlotAccess + 'static>(marks: Marks, request: &Request) -> (usize, usize) {
    let zones = [zone_on::<A>(8 * 512, Cpus::new())];
    set_marks(&zones[0], marks);
    let nodes = one_node(&zones);
    let (mut taken, mut least) = (0, usize::MAX);
    while nodes.alloc(0, request).is_ok() {
        taken += 1;
        least = least.min(zones[0].free_frames());
    }
    (taken, least)
}

#[test]
fn a_refill_stops_at_the_mark_however_small_that_is() {
    fn holds<A: SlotAccess + 'static>() {
        for (min, low) in [(1, 2), (40, 50), (100, 300), (1024, 1500)] {
            let high = low + 10;
            let marks = Marks { min, low, high };
            assert_eq!(take_down_to::<A>(marks, &MOVABLE), (4096 - min, min));
            // Whole page blocks: as many as leave the mark alone.
            let blocks = (4096 - min) / 512;
            let huge = request(9, Mobility::Movable);
            let (taken, least) = take_down_to::<A>(marks, &huge);
            assert_eq!((taken, least), (blocks, 4096 - blocks * 512));
        }
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn a_block_of_any_order_is_served_down_to_the_mark() {
    // However far the quick count of free frames may be off.
    let frames = 1 << 17;
    for order in 0..=16 {
        let plan = ZonePlan {
            max_order: Order::new(16),
            cpus: 4,
            ..linux(frames)
        };
        let zones: [Bricks<Exclusive>; 1] = [full(&plan, Cpus::new())];
        let mark = frames - (1 << order);
        set_marks(&zones[0], all_at(mark));
        let nodes = one_node(&zones);
        let block = request(order, Mobility::Movable);
        assert!(nodes.alloc(0, &block).is_ok(), "order {order}");
        assert!(nodes.alloc(0, &MOVABLE).is_err(), "order {order}");
    }
}

#[test]
fn a_batch_stops_at_the_mark_however_small_that_is() {
    // Through the stash, and straight from the store.
    for batch in [7, 100, 300, 5000] {
        let zones = [zone_on::<Exclusive>(4096, Cpus::new())];
        let (min, low, high) = (30, 40, 50);
        set_marks(&zones[0], Marks { min, low, high });
        let nodes = one_node(&zones);
        let mut out = vec![Frame::new(0); batch];
        let mut taken = 0;
        while let Ok(more) = nodes.alloc_bulk(0, &MOVABLE, &mut out) {
            taken += more;
            assert!(zones[0].free_frames() >= min, "batches of {batch}");
        }
        let found = (taken, zones[0].free_frames());
        assert_eq!(found, (4096 - min, min), "batches of {batch}");
    }
}

/// All refills of one batch together take no more than the zone has above its mark.
#[test]
fn the_refills_of_a_batch_stop_at_the_mark_together() {
    for above in 101..110 {
        let stash = StashSizes {
            singles: 16,
            ..StashSizes::LARGEST
        };
        let zone: Own = sized(4096, stash);
        let low = zone.free_frames() - above;
        let (min, high) = (low / 2, low);
        set_marks(&zone, Marks { min, low, high });
        assert_eq!(zone.alloc_batch(&MOVABLE, &mut [Frame::new(0); 100]), 100);
        assert!(zone.free_frames() >= low, "{above} frames above the mark");
    }
}

/// The count that is read without a walk may be tens of thousands of frames too low.
#[test]
fn a_batch_that_passes_the_mark_comes_at_once() {
    let zone = zone_on::<Exclusive>(1 << 18, Cpus::new());
    set_marks(&zone, all_at(178_000));
    let mut out = vec![Frame::new(0); 60_000];
    assert_eq!(zone.alloc_batch(&MOVABLE, &mut out), 60_000);
    // Of the rest, no whole batch passes the mark.
    assert_eq!(zone.alloc_batch(&MOVABLE, &mut out), 0);
    assert_eq!(zone.free_frames(), (1 << 18) - 60_000);
}

/// The last of them is of another mobility, and of a page block of which nothing is known.
#[test]
fn what_is_freed_in_sparse_page_blocks_can_be_had_again_below_the_mark() {
    let cpus = Cpus::new();
    let zones: [Own; 1] = [zone_on(64 * 512, cpus)];
    let nodes = one_node(&zones);
    let zone = &zones[0];
    let movable = take_past(zone, cpus, 512);
    let unmovable = in_interrupt(cpus, || take(zone, 512, Mobility::Unmovable));
    for &page in movable[256..].iter().chain(&unmovable[256..]) {
        in_interrupt(cpus, || free(zone, page, 0));
    }
    for page in [movable[0], movable[1], unmovable[0]] {
        free(zone, page, 0);
    }
    zone.alloc(&request(2, Mobility::Movable)).unwrap();
    let cached = zone.cached_frames();
    set_marks(zone, all_at(64 * 512));
    for page in [&MOVABLE, &UNMOVABLE, &MOVABLE] {
        nodes.alloc(0, page).unwrap();
    }
    assert_eq!(zone.cached_frames(), cached - 3);
}

/// The zone has what a request may take when it looks, and what others set aside when it fetches.
#[test]
fn a_batch_without_room_takes_what_lies_here_and_no_more() {
    let cpus = Cpus::new();
    let set_aside = SetAside {
        percent: 100,
        blocks: 1,
    };
    let plan = ZonePlan {
        cpus: 4,
        set_aside,
        ..linux(64 * 512)
    };
    let zones: [Own; 1] = [full(&plan, cpus)];
    let nodes = one_node(&zones);
    let zone = &zones[0];
    let held = take_past(zone, cpus, 512);
    for &page in &held[256..] {
        in_interrupt(cpus, || free(zone, page, 0));
    }
    set_marks(zone, all_at(10));
    let atomic = request(2, Mobility::Unmovable).atomic();
    zone.alloc_above(&atomic, Mark::Min).unwrap();
    for &page in &held[..5] {
        free(zone, page, 0);
    }
    let before = zone.free_frames();
    set_marks(zone, all_at(before - 300));
    let mut out = [Frame::new(0); 200];
    let _ = nodes.alloc_bulk(0, &MOVABLE, &mut out);
    assert!(zone.free_frames() >= before - 300);
}

/// With the store exhausted, what lies in the CPU's own stash serves first, of whatever array.
#[test]
fn nobody_is_interrupted_while_a_frame_of_a_sparse_page_block_lies_here() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(1024, cpus);
    let mut held = take_past(&zone, cpus, 1024);
    cpus.switch_to(2);
    free(&zone, held.pop().unwrap(), 0);
    cpus.switch_to(1);
    for page in held.drain(..256) {
        in_interrupt(cpus, || free(&zone, page, 0));
    }
    for page in held.drain(..7) {
        free(&zone, page, 0);
    }
    in_interrupt(cpus, || take_all(&zone, Mobility::Movable));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 8));
    let before = cpus.interruptions();
    take(&zone, 7, Mobility::Movable);
    assert_eq!(cpus.interruptions(), before);
    take(&zone, 1, Mobility::Movable);
    sound(&zone);
}

/// The room that a second free needs is made by giving back that very frame. The share is too small
/// for an array of sparse page blocks.
#[test]
fn a_second_free_that_makes_room_by_what_was_freed_is_refused() {
    let cpus = Cpus::new();
    let plan = ZonePlan {
        cpus: 1,
        stash: StashSizes::DEFAULT,
        ..linux(4096)
    };
    for is_sparse in [false, true] {
        let zone: Own = full(&plan, cpus);
        let held = take_past(&zone, cpus, 512);
        if is_sparse {
            for &page in &held[256..] {
                in_interrupt(cpus, || free(&zone, page, 0));
            }
        }
        let most = 4096 / 50;
        for &page in &held[..most] {
            free(&zone, page, 0);
        }
        assert_eq!(zone.cached_frames(), most);
        let again = zone.free(held[0], Order::ZERO);
        assert_eq!(again, Err(FreeError::DoubleFree), "sparse: {is_sparse}");
        sound(&zone);
    }
}

/// The same for blocks of two frames.
#[test]
fn a_second_free_of_a_small_block_that_makes_room_by_it_is_refused() {
    let zone: Own = zone(64 * 512);
    let pair = request(1, Mobility::Movable);
    let held: Vec<Frame> = (0..64).map(|_| zone.alloc(&pair).unwrap()).collect();
    let mut freed = 0;
    // Until it was full and went back, and then until it is full again.
    for more in [0, 11] {
        let mut before = zone.cached_frames();
        let end = held.len() - 12;
        while freed < end {
            free(&zone, held[freed], 1);
            freed += 1;
            let now = zone.cached_frames();
            if more == 0 && now < before || more > 0 && now == 2 * 16 {
                break;
            }
            before = now;
        }
    }
    let oldest = held
        .iter()
        .find(|&&page| zone.cached_frames() == 2 * 16 && usage(&zone, page) != Use::Free);
    let again = zone.free(*oldest.unwrap(), Order::new(1));
    assert_eq!(again, Err(FreeError::DoubleFree));
    sound(&zone);
}
