//! The stash, rule by rule: what a CPU finds in its own, how large it is, what goes back and when,
//! who else reaches a frame in it, that no interrupt ever meets it, and what it notices of a bad
//! free.

#![cfg(not(loom))]

mod support;

use core::cell::RefCell;

use brickyard::block::Use;
use brickyard::node::{Node, Nodes};
use brickyard::pressure::{ContiguousRequest, Migrate, Migration, NoHooks, alloc_contiguous};
use brickyard::stash::StashSizes;
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::watermark::Marks;
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Context, Frame, FrameRange, FreeError, Mobility, Order,
    Request, ZoneKind, ZonePlan,
};

use support::{
    Bricks, Cpus, Dice, MOVABLE, Owned, RECLAIMABLE, UNMOVABLE, count_free, exhausted, frame, free,
    full, give, linux, request, seen, sound, take, take_all, usage,
};

/// Slots that only their owner reaches.
type Own = Bricks<Exclusive>;
/// Slots that anybody reaches.
type Lent = Bricks<Shared>;

/// Most single frames of a mobility.
const MOST: usize = StashSizes::DEFAULT.singles;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// So many frames in page blocks of order 9, for four CPUs, all free.
fn zone_on<A: SlotAccess + 'static>(frames: usize, cpus: &'static Cpus) -> Bricks<A> {
    let plan = ZonePlan {
        cpus: 4,
        ..linux(frames)
    };
    full(&plan, cpus)
}

fn zone<A: SlotAccess + 'static>(frames: usize) -> Bricks<A> {
    zone_on(frames, Cpus::new())
}

/// As many frames, with stashes of these sizes.
fn sized<A: SlotAccess + 'static>(frames: usize, stash: StashSizes) -> Bricks<A> {
    full(
        &ZonePlan {
            stash,
            ..linux(frames)
        },
        Cpus::new(),
    )
}

/// Straight to the store, as an interrupt does.
fn in_interrupt<R>(cpus: &Cpus, work: impl FnOnce() -> R) -> R {
    cpus.set_interrupt(true);
    let result = work();
    cpus.set_interrupt(false);
    result
}

/// Single frames that no stash has seen.
fn take_past<A: SlotAccess + 'static>(zone: &Bricks<A>, cpus: &Cpus, frames: usize) -> Vec<Frame> {
    let cached = zone.cached_frames();
    let held = in_interrupt(cpus, || take(zone, frames, Mobility::Movable));
    assert_eq!(zone.cached_frames(), cached);
    held
}

// ---- hits ----

#[test]
fn a_frame_that_is_freed_is_handed_out_again_the_last_one_first() {
    let zone: Own = zone(4096);
    let held = take(&zone, 20, Mobility::Movable);
    give(&zone, &held);
    let again = take(&zone, 20, Mobility::Movable);
    assert!(again.iter().eq(held.iter().rev()));
}

#[test]
fn each_cpu_has_a_stash_of_its_own() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let mut freed = Vec::new();
    for cpu in 0..4 {
        cpus.switch_to(cpu);
        let page = take(&zone, 1, Mobility::Movable)[0];
        free(&zone, page, 0);
        freed.push(page);
    }
    // In another order, each finds its own.
    for cpu in [2, 0, 3, 1] {
        cpus.switch_to(cpu);
        assert_eq!(zone.alloc(&MOVABLE), Ok(freed[cpu]));
    }
    assert_eq!(cpus.interruptions(), 0);
    sound(&zone);
}

#[test]
fn a_frame_freed_on_another_cpu_stays_there() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let page = take(&zone, 1, Mobility::Movable)[0];
    cpus.switch_to(1);
    free(&zone, page, 0);
    assert_eq!(zone.alloc(&MOVABLE), Ok(page));
}

#[test]
fn a_cpu_without_a_slot_goes_to_the_store() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(4096, cpus);
    cpus.switch_to(4);
    for order in [0, 1, 9] {
        let block = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        free(&zone, block, order);
        assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
    }
    let mut some = [Frame::new(0); 20];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut some), Ok(20));
    assert_eq!(zone.free_bulk(&some), Ok(()));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
}

#[test]
fn a_request_with_a_limit_goes_to_the_store() {
    let zone: Own = zone(4096);
    let page = take(&zone, 1, Mobility::Movable)[0];
    free(&zone, page, 0);
    let cached = zone.cached_frames();
    let low = zone.alloc(&MOVABLE.below(frame(4000))).unwrap();
    assert!(low < frame(4000));
    assert_eq!(zone.cached_frames(), cached);
}

#[test]
fn a_freed_frame_goes_to_the_array_of_the_mobility_of_its_neighbourhood() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let pages = [UNMOVABLE, MOVABLE, RECLAIMABLE];
    let held = pages.map(|page| zone.alloc(&page).unwrap());
    // Freed on a CPU that has taken nothing, in any order, each comes back to its like.
    cpus.switch_to(1);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        for i in order {
            free(&zone, held[i], 0);
        }
        assert_eq!(pages.map(|page| zone.alloc(&page).unwrap()), held);
    }
    sound(&zone);
}

#[test]
fn a_movable_frame_among_unmovable_ones_is_handed_out_where_it_does_no_harm() {
    // The only block is unmovable, and 100 frames of it are; a movable one that is left falls back
    // on it.
    let cpus = Cpus::new();
    let zone: Own = zone_on(512, cpus);
    let unmovable = in_interrupt(cpus, || take(&zone, 100, Mobility::Unmovable));
    let movable = take_past(&zone, cpus, 412);
    let neighbour = movable
        .iter()
        .find(|at| at.align_down(Order::new(6)) == unmovable[99].align_down(Order::new(6)));
    let neighbour = *neighbour.expect("a movable frame in the same word");
    free(&zone, neighbour, 0);
    let cached = zone.cached_frames();
    assert_eq!(cached, 1);
    // An unmovable request hits, and gets it.
    assert_eq!(zone.alloc(&UNMOVABLE), Ok(neighbour));
    assert_eq!(zone.cached_frames(), 0);
}

// ---- sizes ----

#[test]
fn it_starts_small_and_doubles_whenever_it_runs_empty() {
    for mobility in Mobility::ALL {
        let zone: Own = zone(64 * 512);
        // Half of the limit each time: 64, 128, ... up to what is fetched at a time.
        let mut half = 32;
        for _ in 0..9 {
            let cached = zone.cached_frames();
            take(&zone, 1, mobility);
            assert_eq!((cached, zone.cached_frames()), (0, half - 1));
            take(&zone, half - 1, mobility);
            half = (half * 2).min(320);
        }
        assert_eq!(zone.cached_frames(), 0);
        sound(&zone);
    }
}

#[test]
fn it_is_small_again_after_a_drain() {
    let zone: Own = zone(64 * 512);
    take(&zone, 3000, Mobility::Movable);
    let cached = zone.cached_frames();
    assert_eq!(zone.drain(), cached);
    assert_eq!(zone.cached_frames(), 0);
    take(&zone, 1, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 31);
    take(&zone, 32, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 63);
    sound(&zone);
}

#[test]
fn a_free_to_a_stash_that_was_never_used_leaves_it_small() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let page = take_past(&zone, cpus, 1)[0];
    free(&zone, page, 0);
    assert_eq!(zone.alloc(&MOVABLE), Ok(page));
    // It has run neither empty nor full before: the first limit is 64.
    take(&zone, 1, Mobility::Movable);
    assert_eq!(zone.cached_frames(), 31);
}

#[test]
fn a_full_array_gives_its_colder_three_quarters_back() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let held = take_past(&zone, cpus, MOST + 1);
    give(&zone, &held[..MOST]);
    assert_eq!(zone.cached_frames(), MOST);
    free(&zone, held[MOST], 0);
    assert_eq!(zone.cached_frames(), MOST / 4 + 1);
    let (cold, warm) = held.split_at(MOST / 4 * 3);
    assert!(cold.iter().all(|&at| usage(&zone, at) == Use::Free));
    assert!(warm.iter().all(|&at| usage(&zone, at) == Use::Allocated));
    sound(&zone);
    // And what is left comes out last in, first out.
    let again = take(&zone, warm.len(), Mobility::Movable);
    assert!(again.iter().eq(warm.iter().rev()));
}

#[test]
fn frees_in_any_order_never_exceed_its_bounds() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(64 * 512, cpus);
    let mut dice = Dice::new(4);
    let held = take_past(&zone, cpus, 20_000);
    for place in dice.shuffled(held.len()) {
        free(&zone, held[place], 0);
        assert!(zone.cached_frames() <= MOST);
    }
    assert_eq!(zone.free_frames() + zone.cached_frames(), 64 * 512);
    sound(&zone);
    zone.drain();
    assert_eq!(sound(&zone).free, 64 * 512);
    assert_eq!(zone.free_counts().by_order[10], 32);
}

#[test]
fn sizes_can_be_chosen_and_are_kept() {
    let stash = StashSizes {
        singles: 10,
        small: 3,
        huge: 2,
    };
    let zone: Own = sized(64 * 512, stash);
    let held = take(&zone, 500, Mobility::Movable);
    assert!(zone.cached_frames() <= 10);
    for at in held {
        free(&zone, at, 0);
        assert!(zone.cached_frames() <= 10);
    }
    zone.drain();
    for (order, most) in [(1, 3), (3, 3), (9, 2)] {
        let held: Vec<_> = (0..20)
            .map(|_| zone.alloc(&request(order, Mobility::Movable)).unwrap())
            .collect();
        for at in held {
            free(&zone, at, order);
            assert!(zone.cached_frames() <= most << order, "order {order}");
        }
        assert!(zone.cached_frames() > 0);
        zone.drain();
    }
    assert_eq!(sound(&zone).free, 64 * 512);
}

#[test]
fn a_stash_of_size_zero_keeps_nothing_but_a_frame() {
    let stash = StashSizes {
        singles: 0,
        small: 0,
        huge: 0,
    };
    let zone: Own = sized(8192, stash);
    for order in [0, 1, 2, 3, 9] {
        let held: Vec<_> = (0..3)
            .map(|_| zone.alloc(&request(order, Mobility::Movable)).unwrap())
            .collect();
        for at in held {
            free(&zone, at, order);
        }
        assert!(zone.cached_frames() <= 1, "order {order}");
        sound(&zone);
    }
}

#[test]
fn sizes_above_what_there_is_room_for_are_cut() {
    let stash = StashSizes {
        singles: usize::MAX,
        small: usize::MAX,
        huge: usize::MAX,
    };
    let zone: Own = sized(64 * 512, stash);
    let held = take(&zone, 2 * MOST, Mobility::Movable);
    for at in held {
        free(&zone, at, 0);
        assert!(zone.cached_frames() <= MOST);
    }
    sound(&zone);
}

// ---- what it is filled with ----

#[test]
fn the_first_refill_of_a_cpu_comes_from_the_fullest_block() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(6 * 512, cpus);
    for block in 0..6 {
        let taken = zone.alloc_at(frame(block * 512), &request(9, Mobility::Movable));
        assert_eq!(taken, Ok(()));
    }
    for (block, frames) in [(0, 400), (2, 40), (4, 200)] {
        let start = block * 512;
        assert_eq!(zone.free_range(range(start, start + frames)), Ok(()));
    }
    let emptiest: Vec<Frame> = range(0, 400).frames().collect();
    for cpu in 0..3 {
        cpus.switch_to(cpu);
        let at = zone.alloc(&MOVABLE).unwrap();
        assert!(at.number() / 512 > 0, "CPU {cpu}");
        assert_eq!(count_free(&zone, &emptiest), 400, "CPU {cpu}");
    }
    sound(&zone);
}

// ---- other orders ----

#[test]
fn small_orders_are_kept_up_to_16_and_the_last_comes_first() {
    for order in 1..=3 {
        let zone: Own = zone(8192);
        let take = || zone.alloc(&request(order, Mobility::Movable)).unwrap();
        let held: Vec<_> = (0..17).map(|_| take()).collect();
        for (i, &at) in held.iter().enumerate() {
            free(&zone, at, order);
            let kept = (i + 1).min(16);
            assert_eq!(zone.cached_frames(), kept << order);
        }
        assert_eq!(usage(&zone, held[16]), Use::Free);
        sound(&zone);
        let again: Vec<_> = (0..16).map(|_| take()).collect();
        assert!(again.iter().eq(held[..16].iter().rev()));
        assert_eq!(zone.cached_frames(), 0);
        sound(&zone);
    }
}

#[test]
fn each_small_order_and_mobility_has_an_array_of_its_own() {
    let zone: Own = zone(16 * 512);
    let mut held = Vec::new();
    for mobility in Mobility::ALL {
        for order in 1..=3 {
            let at = zone.alloc(&request(order, mobility)).unwrap();
            held.push((at, order, mobility));
        }
    }
    for &(at, order, _) in &held {
        free(&zone, at, order);
    }
    assert_eq!(zone.cached_frames(), 3 * (2 + 4 + 8));
    for &(at, order, mobility) in &held {
        assert_eq!(zone.alloc(&request(order, mobility)), Ok(at));
    }
    assert_eq!(zone.cached_frames(), 0);
}

#[test]
fn orders_that_have_no_array_go_to_the_store() {
    let zone: Own = zone(16 * 512);
    for order in [4, 5, 6, 7, 8, 10] {
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        free(&zone, at, order);
        assert_eq!((zone.free_frames(), zone.cached_frames()), (16 * 512, 0));
    }
}

#[test]
fn page_blocks_are_kept_up_to_8_and_the_last_comes_first() {
    for block_order in [6, 9] {
        let plan = ZonePlan {
            page_block_order: Order::new(block_order),
            ..linux(64 << block_order)
        };
        let zone: Own = full(&plan, Cpus::new());
        let take = || {
            zone.alloc(&request(block_order, Mobility::Unmovable))
                .unwrap()
        };
        let held: Vec<_> = (0..20).map(|_| take()).collect();
        zone.drain();
        let cached = |blocks| assert_eq!(zone.cached_frames(), blocks << block_order);
        for (i, &at) in held[..8].iter().enumerate() {
            free(&zone, at, block_order);
            cached(i + 1);
        }
        let again: Vec<_> = (0..8).map(|_| take()).collect();
        assert!(again.iter().eq(held[..8].iter().rev()));
        cached(0);
        for at in held {
            free(&zone, at, block_order);
            assert!(zone.cached_frames() <= 8 << block_order);
        }
        assert!(zone.cached_frames() > 0);
        sound(&zone);
        zone.drain();
        assert_eq!(sound(&zone).free, 64 << block_order);
        assert_eq!(zone.free_counts().suitable(Order::new(block_order)), 64);
    }
}

#[test]
fn the_last_page_blocks_of_a_zone_are_all_to_be_had() {
    for blocks in 1..=9 {
        let zone: Own = zone(blocks * 512);
        let huge = request(9, Mobility::Movable);
        let held: Vec<_> = core::iter::from_fn(|| zone.alloc(&huge).ok()).collect();
        assert_eq!(held.len(), blocks);
        assert_eq!(zone.alloc(&huge), Err(exhausted(0)));
        for at in held {
            free(&zone, at, 9);
        }
        // What lies in the stash serves other orders and mobilities too: it is drained before a
        // refusal.
        assert_eq!(take_all(&zone, Mobility::Unmovable).len(), blocks * 512);
        sound(&zone);
    }
}

#[test]
fn a_part_of_a_larger_block_goes_to_the_store() {
    let zone: Own = zone(8192);
    for (order, part) in [(3, 0), (3, 1), (2, 1), (9, 0), (9, 3), (4, 3), (10, 9)] {
        let block = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        zone.drain();
        free(&zone, block, part);
        assert_eq!(zone.cached_frames(), 0, "{part} of {order}");
        assert_eq!(usage(&zone, block), Use::Free);
        let size = 1 << part;
        let rest = FrameRange::new(block.number() + size, block.number() + (1 << order));
        assert_eq!(zone.free_range(rest), Ok(()));
        assert_eq!(sound(&zone).free, 8192);
    }
}

#[test]
fn an_order_above_the_highest_is_refused_even_where_it_is_that_of_page_blocks() {
    let plan = ZonePlan {
        page_block_order: Order::new(11),
        ..linux(8 << 11)
    };
    let zone: Own = full(&plan, Cpus::new());
    let too_large = AllocError::OrderTooLarge {
        order: Order::new(11),
        max: Order::new(10),
    };
    let refused = zone.alloc(&request(11, Mobility::Movable));
    assert_eq!(refused, Err(too_large));
}

// ---- many at once ----

#[test]
fn a_batch_that_the_stash_holds_goes_through_it() {
    let zone: Own = zone(64 * 512);
    let mut frames = [Frame::new(0); 16];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Ok(16));
    assert_eq!(zone.cached_frames(), 16);
    assert_eq!(zone.free_bulk(&frames), Ok(()));
    assert_eq!(zone.cached_frames(), 32);
    let again = take(&zone, 16, Mobility::Movable);
    assert!(again.iter().eq(frames.iter().rev()));
}

#[test]
fn a_batch_larger_than_the_stash_goes_straight_to_the_store() {
    let zone: Own = zone(64 * 512);
    for mobility in Mobility::ALL {
        take(&zone, 1, mobility);
        let cached = zone.cached_frames();
        let mut frames = vec![Frame::new(0); MOST + 1];
        let free_before = zone.free_frames();
        let page = Request::page(mobility);
        assert_eq!(zone.alloc_bulk(&page, &mut frames), Ok(MOST + 1));
        assert_eq!(zone.cached_frames(), cached);
        assert_eq!(zone.free_frames(), free_before - (MOST + 1));
        sound(&zone);
        assert_eq!(zone.free_bulk(&frames), Ok(()));
        assert_eq!(zone.cached_frames(), cached);
        assert_eq!(zone.free_frames(), free_before);
        sound(&zone);
    }
}

#[test]
fn a_batch_takes_and_gives_whole_words() {
    // From memory that is free as a whole: each word is handed out as it is.
    let zone: Own = zone(64 * 512);
    let mut frames = vec![Frame::new(0); 2048];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Ok(2048));
    for word in frames.chunks(64) {
        assert!(word[0].is_aligned(Order::new(6)));
        assert!(word.windows(2).all(|pair| pair[0].plus(1) == pair[1]));
    }
}

#[test]
fn a_batch_gets_what_lies_in_every_stash_too() {
    let cpus = Cpus::new();
    let zone: Lent = zone_on(2048, cpus);
    for cpu in 1..4 {
        cpus.switch_to(cpu);
        take(&zone, 1, Mobility::Unmovable);
    }
    let there = zone.free_frames() + zone.cached_frames();
    assert!(zone.cached_frames() > 0);
    cpus.switch_to(0);
    let mut frames = vec![Frame::new(0); 2048];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Ok(there));
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Err(exhausted(0)));
    sound(&zone);
}

#[test]
fn a_batch_is_freed_up_to_the_first_bad_frame() {
    let zone: Own = zone(8192);
    for len in [10, 1000] {
        for (bad, error) in [
            (frame(9000), FreeError::NotOwned),
            (zone.span().start, FreeError::DoubleFree),
        ] {
            let mut list = vec![Frame::new(0); len];
            assert_eq!(zone.alloc_bulk(&MOVABLE, &mut list), Ok(len));
            let before = zone.free_frames() + zone.cached_frames();
            list.insert(len / 2, bad);
            let freed = len / 2;
            assert_eq!(zone.free_bulk(&list), Err(BulkFreeError { freed, error }));
            assert_eq!(zone.free_frames() + zone.cached_frames(), before + freed);
            assert_eq!(zone.free_bulk(&list[freed + 1..]), Ok(()));
            sound(&zone);
        }
    }
}

#[test]
fn a_batch_that_names_a_frame_twice_in_a_row_is_refused_at_the_second() {
    let zone: Own = zone(8192);
    let held = take(&zone, 40, Mobility::Movable);
    for place in [1, 20, 39] {
        let mut list = held[..place].to_vec();
        list.push(held[place - 1]);
        let (freed, error) = (place, FreeError::DoubleFree);
        let refused = zone.free_bulk(&list);
        assert_eq!(refused, Err(BulkFreeError { freed, error }));
        // And the frame freed last by a batch.
        let again = zone.free_bulk(&list[place..]);
        assert_eq!(again, Err(BulkFreeError { freed: 0, error }));
        sound(&zone);
        assert_eq!(take(&zone, place, Mobility::Movable).len(), place);
    }
}

#[test]
fn each_frame_of_a_batch_goes_to_the_array_of_its_mobility() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let lists = Mobility::ALL.map(|mobility| in_interrupt(cpus, || take(&zone, 10, mobility)));
    let mixed: Vec<Frame> = (0..30).map(|i| lists[i % 3][i / 3]).collect();
    assert_eq!(zone.free_bulk(&mixed), Ok(()));
    assert_eq!(zone.cached_frames(), 30);
    for (mobility, list) in Mobility::ALL.into_iter().zip(lists) {
        let again = take(&zone, 10, mobility);
        assert!(again.iter().eq(list.iter().rev()), "{mobility:?}");
    }
    sound(&zone);
}

// ---- interrupts ----

#[test]
fn an_interrupt_touches_no_stash_takes_no_lock_and_waits_for_nothing() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(8192, cpus);
        for order in [0, 1, 2, 3, 9] {
            // Something lies in the stash already.
            let block = zone.alloc(&request(order, Mobility::Movable)).unwrap();
            free(&zone, block, order);
            let (free_before, cached) = (zone.free_frames(), zone.cached_frames());
            let masks = cpus.masks();
            in_interrupt(cpus, || {
                let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
                let size = 1 << order;
                assert_eq!(zone.free_frames(), free_before - size);
                assert_eq!(zone.cached_frames(), cached);
                free(&zone, at, order);
                let mut some = [Frame::new(0); 10];
                assert_eq!(zone.alloc_bulk(&MOVABLE, &mut some), Ok(10));
                assert_eq!(zone.cached_frames(), cached);
                assert_eq!(zone.free_bulk(&some), Ok(()));
                assert_eq!(zone.drain(), 0);
            });
            assert_eq!(
                (zone.free_frames(), zone.cached_frames()),
                (free_before, cached)
            );
            assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
        }
        sound(&zone);
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn an_interrupt_frees_what_was_taken_outside_and_the_other_way_round() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let held = take(&zone, 50, Mobility::Movable);
    let free_before = zone.free_frames();
    in_interrupt(cpus, || give(&zone, &held));
    assert_eq!(zone.free_frames(), free_before + 50);
    let held = take_past(&zone, cpus, 50);
    give(&zone, &held);
    assert_eq!(sound(&zone).allocated, 0);
}

type Hook = Box<dyn FnMut()>;

thread_local! {
    // What comes as an interrupt whenever somebody goes into a slot or out of it.
    static INTERRUPT: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn interrupt() {
    // None while it runs: the interrupt itself is not interrupted.
    let hook = INTERRUPT.with(|hook| hook.borrow_mut().take());
    if let Some(mut hook) = hook {
        hook();
        INTERRUPT.with(|place| place.replace(Some(hook)));
    }
}

/// Slots that only their owner reaches, and is interrupted in.
#[derive(Debug)]
struct Interrupted;

// SAFETY: `try_visit` never lets anyone in, and two `try_enter`s of one slot cannot overlap by the
// trait's own condition.
unsafe impl SlotAccess for Interrupted {
    const EMPTY: Self = Self;
    const LENDS: bool = false;

    fn try_enter(&self) -> bool {
        interrupt();
        true
    }

    fn try_visit(&self) -> bool {
        false
    }

    unsafe fn leave(&self) {
        interrupt();
    }
}

/// Slots that anybody reaches, and is interrupted in. It hangs where anybody waits for a slot.
#[derive(Debug)]
struct LentAndInterrupted(Shared);

// SAFETY: each call is passed on to slots that keep the contract.
unsafe impl SlotAccess for LentAndInterrupted {
    const EMPTY: Self = Self(Shared::EMPTY);
    const LENDS: bool = true;

    fn try_enter(&self) -> bool {
        self.0.try_enter() && {
            interrupt();
            true
        }
    }

    fn try_visit(&self) -> bool {
        self.0.try_visit() && {
            interrupt();
            true
        }
    }

    unsafe fn leave(&self) {
        interrupt();
        // SAFETY: the caller is inside, and the slot inside is the same one.
        unsafe { self.0.leave() }
    }
}

/// Random work on four CPUs, in which an interrupt that takes and frees comes whenever somebody has
/// gone into a slot or is about to leave it.
fn works_with_interrupts_in_the_middle<A: SlotAccess + 'static>(seed: u64) {
    let cpus = Cpus::new();
    let zone: &'static Bricks<A> = Box::leak(Box::new(zone_on(4096, cpus)));
    let owned = std::rc::Rc::new(RefCell::new(Owned::none_of(zone.span())));
    let orders = [0, 0, 0, 1, 2, 3, 5, 9];
    let hook: Hook = {
        let owned = owned.clone();
        let mut dice = Dice::new(seed + 1000);
        let mut held: Vec<(Frame, u8)> = Vec::new();
        Box::new(move || {
            cpus.set_interrupt(true);
            let cached = zone.cached_frames();
            let order = dice.one_of(&orders);
            if held.len() < 10 {
                let wanted = request(order, dice.one_of(&Mobility::ALL));
                if let Ok(at) = zone.alloc(&wanted.in_context(Context::Interrupt)) {
                    owned.borrow_mut().take(at, order);
                    held.push((at, order));
                }
            } else {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                owned.borrow_mut().give(at, order);
                free(zone, at, order);
            }
            if dice.below(10) == 0 {
                assert_eq!(zone.drain(), 0);
            }
            assert_eq!(zone.cached_frames(), cached, "an interrupt met a stash");
            cpus.set_interrupt(false);
        })
    };
    INTERRUPT.with(|place| place.replace(Some(hook)));
    let mut dice = Dice::new(seed);
    let mut held: Vec<(Frame, u8)> = Vec::new();
    for _ in 0..3000 {
        cpus.switch_to(dice.below(4));
        let order = dice.one_of(&orders);
        match dice.below(20) {
            0..10 => {
                let wanted = request(order, dice.one_of(&Mobility::ALL));
                if let Ok(at) = zone.alloc(&wanted) {
                    owned.borrow_mut().take(at, order);
                    held.push((at, order));
                }
            }
            10 => {
                let mut some = vec![Frame::new(0); dice.one_of(&[5, 40, 200])];
                let taken = zone.alloc_bulk(&UNMOVABLE, &mut some).unwrap_or(0);
                for &at in &some[..taken] {
                    owned.borrow_mut().take(at, 0);
                }
                for &at in &some[..taken] {
                    owned.borrow_mut().give(at, 0);
                }
                assert_eq!(zone.free_bulk(&some[..taken]), Ok(()));
            }
            11 if dice.below(10) == 0 => drop(zone.drain()),
            _ if !held.is_empty() => {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                owned.borrow_mut().give(at, order);
                free(zone, at, order);
            }
            _ => {}
        }
    }
    INTERRUPT.with(|place| place.replace(None));
    let census = sound(zone);
    assert_eq!(census.allocated, owned.borrow().count());
    assert_eq!(cpus.waits(), 0);
}

#[test]
fn an_interrupt_in_the_middle_of_a_stash_harms_nothing() {
    for seed in 0..4 {
        works_with_interrupts_in_the_middle::<Interrupted>(seed);
        works_with_interrupts_in_the_middle::<LentAndInterrupted>(seed);
    }
}

#[test]
fn requests_and_frees_never_mask_interrupts_or_take_the_zones_lock() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(16 * 512, cpus);
        let masks = cpus.masks();
        let mut dice = Dice::new(77);
        let mut held = Vec::new();
        for _ in 0..5000 {
            cpus.switch_to(dice.below(4));
            let order = dice.one_of(&[0, 0, 0, 0, 1, 3, 4, 9, 10]);
            let wanted = request(order, dice.one_of(&Mobility::ALL));
            if dice.below(2) == 0 {
                held.extend(zone.alloc(&wanted).map(|at| (at, order)));
            } else if let Some((at, order)) = held.pop() {
                free(&zone, at, order);
            }
        }
        for mobility in Mobility::ALL {
            let mut some = vec![Frame::new(0); 600];
            let page = Request::page(mobility);
            let taken = zone.alloc_bulk(&page, &mut some).unwrap_or(0);
            assert_eq!(zone.free_bulk(&some[..taken]), Ok(()));
        }
        // Up to the last frame, refusals and drains.
        take_all(&zone, Mobility::Movable);
        assert!(zone.alloc(&UNMOVABLE).is_err());
        assert!(zone.free(frame(1 << 30), Order::ZERO).is_err());
        zone.drain();
        // Whoever administers has interrupts masked.
        assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
        assert!(cpus.is_at_rest());
        sound(&zone);
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

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

#[test]
fn the_last_frame_is_found_in_another_cpus_stash_by_visiting_it() {
    for mobility in Mobility::ALL {
        for wanted in Mobility::ALL {
            for page in [Request::page(wanted), Request::page(wanted).atomic()] {
                let cpus = Cpus::new();
                let (zone, last): (Lent, _) = last_frame_in_a_stash(cpus, mobility);
                cpus.switch_to(0);
                assert_eq!(zone.alloc(&page), Ok(last));
                assert_eq!(cpus.interruptions(), 0);
                assert_eq!(zone.alloc(&page), Err(exhausted(0)));
                sound(&zone);
            }
        }
    }
}

#[test]
fn the_last_frame_is_found_in_another_cpus_stash_by_running_there() {
    for mobility in Mobility::ALL {
        for wanted in Mobility::ALL {
            let cpus = Cpus::new();
            let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, mobility);
            cpus.switch_to(0);
            assert_eq!(zone.alloc(&Request::page(wanted)), Ok(last));
            assert_eq!(cpus.interruptions(), 1);
            // A CPU that holds nothing is left in peace.
            assert_eq!(zone.alloc(&Request::page(wanted)), Err(exhausted(0)));
            assert_eq!(cpus.interruptions(), 1);
            sound(&zone);
        }
    }
}

#[test]
fn the_last_frame_is_found_in_the_own_stash_whatever_array_it_lies_in() {
    for mobility in Mobility::ALL {
        for wanted in Mobility::ALL {
            let cpus = Cpus::new();
            let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, mobility);
            let page = Request::page(wanted).atomic();
            assert_eq!(zone.alloc(&page), Ok(last));
            assert_eq!(cpus.interruptions(), 0);
        }
    }
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
                assert_eq!(refused, Err(exhausted(0)));
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
    assert_eq!(zone.alloc(&MOVABLE.atomic()), Err(exhausted(0)));
    assert_eq!((cpus.interruptions(), zone.cached_frames()), (0, 1));
    assert_eq!(zone.alloc(&MOVABLE), Ok(last));
}

#[test]
fn what_runs_on_the_owner_in_an_interrupt_does_not_touch_its_stash() {
    let cpus = Cpus::new();
    let (zone, last): (Own, _) = last_frame_in_a_stash(cpus, Mobility::Movable);
    cpus.switch_to(0);
    cpus.reach_others_by_interrupt();
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0)));
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
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0)));
    cpus.switch_to(1);
    assert_eq!(zone.alloc(&MOVABLE), Ok(last));
}

#[test]
fn every_frame_of_a_zone_is_had_by_one_cpu_however_the_others_filled_their_stashes() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(8 * 512, cpus);
        let mut dice = Dice::new(5);
        for _ in 0..3 {
            let mut held = Vec::new();
            for _ in 0..300 {
                cpus.switch_to(dice.below(4));
                let order = dice.one_of(&[0, 0, 1, 2, 3]);
                let wanted = request(order, dice.one_of(&Mobility::ALL));
                held.push((zone.alloc(&wanted).unwrap(), order));
            }
            for (at, order) in held {
                cpus.switch_to(dice.below(4));
                free(&zone, at, order);
            }
            assert!(zone.cached_frames() > 0);
            cpus.switch_to(0);
            let all = take_all(&zone, dice.one_of(&Mobility::ALL));
            assert_eq!(all.len(), 8 * 512);
            sound(&zone);
            give(&zone, &all);
        }
    }
    holds::<Exclusive>();
    holds::<Shared>();
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
                    let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
                    free(&zone, at, order);
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
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let first = nodes.alloc(0, &MOVABLE).unwrap();
    let cached = zones[0].cached_frames();
    assert!(cached > 0);
    // More than there is.
    let marks = Marks {
        min: 5000,
        low: 6000,
        high: 7000,
    };
    zones[0].watermarks().set(marks, [0; ZoneKind::COUNT]);
    let free_before = zones[0].free_frames();
    for left in (0..cached).rev() {
        assert!(nodes.alloc(0, &MOVABLE).is_ok());
        assert_eq!(zones[0].cached_frames(), left);
    }
    assert_eq!(zones[0].free_frames(), free_before);
    let refused = Err(AllocError::Exhausted { free: free_before });
    assert_eq!(nodes.alloc(0, &MOVABLE), refused);
    assert_eq!(nodes.alloc(0, &UNMOVABLE), refused);
    assert!(nodes.alloc(0, &request(1, Mobility::Movable)).is_err());
    // What is freed can be had again.
    assert_eq!(nodes.free(first, Order::ZERO), Ok(()));
    assert_eq!(nodes.alloc(0, &MOVABLE), Ok(first));
    assert_eq!(zones[0].free_frames(), free_before);
    assert!(nodes.check().is_ok());
}

/// Nothing can be moved.
struct Stuck;

impl Migrate for Stuck {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Never
    }
}

/// Random work on four CPUs, with administration in between. After each step every invariant holds
/// and no frame has two owners.
fn random_work<A: SlotAccess + 'static>(seed: u64) {
    let cpus = Cpus::new();
    let span = range(300, 300 + 12 * 512);
    let plan = ZonePlan {
        span,
        cpus: 4,
        ..linux(0)
    };
    let zone: Bricks<A> = full(&plan, cpus);
    let mut dice = Dice::new(seed);
    let mut owned = Owned::none_of(span);
    let mut held: Vec<(Frame, u8)> = Vec::new();
    let mut reserved = Vec::new();
    let mut cleared = 0;
    for step in 0..1200 {
        // Half full, and as full as can be, by turns.
        let filling = step / 200 % 2 == 1 || owned.count() < span.len() / 2;
        cpus.switch_to(dice.below(4));
        cpus.set_interrupt(dice.below(10) == 0);
        let order = dice.one_of(&[0, 0, 0, 1, 2, 3, 5, 9, 9, 10]);
        let wanted = request(order, dice.one_of(&Mobility::ALL));
        match dice.below(24) {
            0..9 if filling => {
                if let Ok(at) = zone.alloc(&wanted) {
                    owned.take(at, order);
                    held.push((at, order));
                }
            }
            9 if filling => {
                let mut some = vec![Frame::new(0); dice.one_of(&[5, 63, 64, 700])];
                let taken = zone.alloc_bulk(&wanted, &mut some).unwrap_or(0);
                for &at in &some[..taken] {
                    owned.take(at, 0);
                }
                if dice.below(2) == 0 {
                    for &at in &some[..taken] {
                        owned.give(at, 0);
                    }
                    assert_eq!(zone.free_bulk(&some[..taken]), Ok(()));
                } else {
                    held.extend(some[..taken].iter().map(|&at| (at, 0)));
                }
            }
            10 => {
                cpus.set_interrupt(false);
                let frames = 1 + dice.one_of(&[5, 100, 600]);
                let start = span.start.number() + dice.below(span.len() - frames);
                let wanted = ContiguousRequest::new(frames, range(start, start + frames));
                if let Ok(got) = alloc_contiguous(&zone, &wanted, &Stuck) {
                    cleared += 1;
                    for (at, order) in got.blocks(Order::ZERO) {
                        owned.take(at, order.get());
                    }
                    for at in got.frames() {
                        owned.give(at, 0);
                    }
                    assert_eq!(zone.free_range(got), Ok(()));
                }
            }
            11 => {
                cpus.set_interrupt(false);
                let start = span.start.number() + dice.below(span.len() - 600);
                let part = range(start, start + 1 + dice.below(600));
                if zone.reserve(part).is_ok() {
                    reserved.push(part);
                }
            }
            12 => {
                for part in reserved.drain(..) {
                    assert!(zone.unreserve(part).is_ok());
                }
            }
            13 => drop(zone.drain()),
            _ if !held.is_empty() => {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                let part = if dice.below(4) == 0 { order / 2 } else { order };
                for place in 0..1 << (order - part) {
                    let at = at.plus(place << part);
                    owned.give(at, part);
                    free(&zone, at, part);
                }
            }
            _ => {}
        }
        cpus.set_interrupt(false);
        assert_eq!(sound(&zone).allocated, owned.count());
        assert!(zone.cached_frames() <= 4 * 3 * (MOST + 16 * 14 + 8 * 512));
    }
    assert!(cleared > 0, "no contiguous range was had");
    for part in reserved {
        assert!(zone.unreserve(part).is_ok());
    }
    for (at, order) in held {
        free(&zone, at, order);
    }
    zone.drain();
    let whole: Bricks<A> = full(&plan, cpus);
    assert_eq!(zone.free_counts(), whole.free_counts());
}

#[test]
fn random_work_on_several_cpus_breaks_nothing() {
    for seed in 0..6 {
        random_work::<Exclusive>(seed);
        random_work::<Shared>(seed);
    }
}

// ---- what is noticed of a bad free ----

#[test]
fn what_is_free_in_the_store_never_allocated_or_reserved_is_refused_at_once() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let plan = ZonePlan {
            span: range(100, 5000),
            ..linux(0)
        };
        let zone: Bricks<A> = full(&plan, cpus);
        assert_eq!(zone.remove(range(1000, 1100)), Ok(100));
        assert_eq!(zone.reserve(range(2000, 2100)), Ok(100));
        // Something is in each array.
        for order in [0, 1, 2, 3, 9] {
            let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
            free(&zone, at, order);
        }
        // A movable request opens blocks from the high end.
        for (at, order, error) in [
            (150, 0, FreeError::DoubleFree),
            (152, 3, FreeError::DoubleFree),
            (512, 9, FreeError::DoubleFree),
            (0, 0, FreeError::NotOwned),
            (99, 0, FreeError::NotOwned),
            (1050, 0, FreeError::NotOwned),
            (1056, 3, FreeError::NotOwned),
            (2050, 0, FreeError::NotOwned),
            (2048, 1, FreeError::NotOwned),
            (5000, 0, FreeError::NotOwned),
            (5119, 0, FreeError::NotOwned),
            (1 << 33, 0, FreeError::NotOwned),
            (1 << 33, 9, FreeError::NotOwned),
            (1 << 40 | 150, 0, FreeError::NotOwned),
            (usize::MAX, 0, FreeError::NotOwned),
        ] {
            let before = seen(&zone);
            let refused = zone.free(frame(at), Order::new(order));
            assert_eq!(refused, Err(error), "{at}, order {order}");
            assert_eq!(seen(&zone), before, "{at}, order {order}");
        }
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn the_frame_freed_just_before_is_refused_at_once() {
    for order in [0, 1, 2, 3, 9] {
        let zone: Own = zone(8192);
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        let other = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        for at in [at, other] {
            free(&zone, at, order);
            let before = seen(&zone);
            for _ in 0..3 {
                let again = zone.free(at, Order::new(order));
                assert_eq!(again, Err(FreeError::DoubleFree), "order {order}");
            }
            assert_eq!(seen(&zone), before);
        }
        assert_eq!(zone.alloc(&request(order, Mobility::Movable)), Ok(other));
        assert_eq!(zone.alloc(&request(order, Mobility::Movable)), Ok(at));
    }
}

#[test]
fn a_wrong_order_is_refused_at_once_and_the_right_one_named() {
    let zone: Own = zone(16 * 512);
    for order in [0, 1, 2, 3, 5, 9, 10] {
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        let before = seen(&zone);
        let allocated = Order::new(order);
        let wrong = Err(FreeError::WrongOrder { allocated });
        for more in order + 1..=11 {
            assert_eq!(zone.free(at, Order::new(more)), wrong, "{more} for {order}");
        }
        for less in 1..order {
            let misaligned = at.plus(1 << (less - 1));
            assert_eq!(zone.free(misaligned, Order::new(less)), wrong);
        }
        assert_eq!(seen(&zone), before);
        free(&zone, at, order);
    }
}

// ---- frees that are found out late ----

/// Frees a block that the stash is to keep, whoever owns it.
fn keeps(zone: &Own, at: Frame, order: u8) {
    let cached = zone.cached_frames();
    free(zone, at, order);
    assert!(zone.cached_frames() > cached, "{at} {order}");
}

/// Everything goes back to the store; how many frames of it were refused there.
fn refused_by_a_drain(zone: &Own) -> usize {
    let before = zone.refused_late();
    zone.drain();
    zone.refused_late() - before
}

fn is_all_free(zone: &Own) {
    assert_eq!(sound(zone).free, zone.span().len());
}

/// A movable block, and nothing in any stash.
fn only_this(zone: &Own, order: u8) -> Frame {
    let at = zone.alloc(&request(order, Mobility::Movable));
    assert_eq!(refused_by_a_drain(zone), 0);
    at.expect("enough")
}

#[test]
fn a_second_free_of_a_frame_elsewhere_in_the_stash_is_refused_and_counted_at_the_store() {
    let zone: Own = zone(4096);
    let held = take(&zone, 10, Mobility::Movable);
    assert_eq!(refused_by_a_drain(&zone), 0);
    for &at in &held {
        keeps(&zone, at, 0);
    }
    // Not noticed now: another frame was freed in between.
    keeps(&zone, held[3], 0);
    keeps(&zone, held[7], 0);
    assert_eq!(zone.refused_late(), 0);
    assert_eq!(refused_by_a_drain(&zone), 2);
    is_all_free(&zone);
}

#[test]
fn a_second_free_on_another_cpu_is_refused_and_counted_at_the_store() {
    for order in [0, 1, 2, 3, 9] {
        let cpus = Cpus::new();
        let zone: Own = zone_on(16 * 512, cpus);
        let at = only_this(&zone, order);
        keeps(&zone, at, order);
        cpus.switch_to(1);
        keeps(&zone, at, order);
        // Frames are counted.
        assert_eq!(refused_by_a_drain(&zone), 1 << order, "order {order}");
        is_all_free(&zone);
    }
}

#[test]
fn a_second_free_is_refused_late_when_a_full_array_gives_back_too() {
    let zone: Own = zone(64 * 512);
    let mut held = vec![Frame::new(0); 2 * MOST];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut held), Ok(held.len()));
    assert_eq!(zone.cached_frames(), 0);
    let mut dice = Dice::new(9);
    for place in dice.shuffled(held.len()) {
        free(&zone, held[place], 0);
    }
    // Each once more that lies in the stash still; what is in the store again is refused at once.
    let kept = held
        .iter()
        .filter(|&&at| zone.free(at, Order::ZERO).is_ok());
    let kept = kept.count();
    zone.drain();
    assert!(kept > 0 && zone.refused_late() == kept, "{kept}");
    is_all_free(&zone);
}

#[test]
fn a_free_of_a_part_of_a_block_in_the_stash_is_found_out_at_the_store() {
    // The store cannot know that the block is free already, and takes the part. What is left of the
    // block then belongs to nobody; the store does not guess, and keeps it in use.
    for (order, part) in [(1, 0), (3, 0), (3, 2), (9, 0), (9, 3)] {
        let zone: Own = zone(16 * 512);
        let at = only_this(&zone, order);
        keeps(&zone, at, order);
        let (free_before, cached) = (zone.free_frames(), zone.cached_frames());
        free(&zone, at, part);
        assert_eq!(zone.free_frames(), free_before + (1 << part));
        assert_eq!(zone.cached_frames(), cached);
        assert!(refused_by_a_drain(&zone) > 0, "{part} of {order}");
        assert_eq!(sound(&zone).allocated, (1 << order) - (1 << part));
    }
}

#[test]
fn a_cached_frame_is_one_in_use_to_the_store() {
    let zone: Own = zone(4096);
    for order in [0, 1, 2, 3, 9] {
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        keeps(&zone, at, order);
        let (first, state) = zone.block_of(at).unwrap();
        let found = (first, state.usage, state.order);
        assert_eq!(found, (at, Use::Allocated, Order::new(order)));
        assert!(sound(&zone).cached >= 1 << order);
    }
    assert_eq!(refused_by_a_drain(&zone), 0);
    is_all_free(&zone);
}

#[test]
fn a_stash_keeps_nothing_of_a_block_that_is_isolated_in_part() {
    let zone: Own = zone(4096);
    for order in [0, 1, 2, 3, 9] {
        let at = only_this(&zone, order);
        let block = at.align_down(Order::HUGE).number();
        let part = range(block + 500, block + 510);
        assert_eq!(zone.isolate(part), Ok(()));
        free(&zone, at, order);
        assert_eq!(zone.cached_frames(), 0, "order {order}");
        zone.unisolate(part);
        is_all_free(&zone);
    }
}

#[test]
fn frames_outside_the_span_are_refused_however_far_away() {
    let zone: Bricks<Shared> = zone_on(4096, Cpus::new());
    let end = zone.span().end.number();
    for at in [end, end + 1, 1 << 40, usize::MAX - 1, usize::MAX].map(Frame::new) {
        for order in [0, 1, 3, 9].map(Order::new) {
            assert_eq!(
                zone.free(at, order),
                Err(FreeError::NotOwned),
                "{at} {order}"
            );
        }
        let error = FreeError::NotOwned;
        assert_eq!(
            zone.free_bulk(&[at; 20]),
            Err(BulkFreeError { freed: 0, error })
        );
    }
    assert_eq!(zone.check().err(), None);
}
