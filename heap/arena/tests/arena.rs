//! Zones over real memory: every frame has its own page, whoever allocates it on whichever thread.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use core::ptr::NonNull;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use brickyard::stash::StashSizes;
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::zone::{Zone, ZonePlan};
use brickyard::{Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind};
use brickyard_arena::{Arena, Huge, MapPlan, Mapped, PartError, Release, page_bytes};

type Bricks<'a, A> = Zone<'a, &'a Arena, A>;

/// Numbers of threads are the process's: one test at a time, so that none takes a number that
/// another one's thread has just left.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn arena(frames: usize) -> Arena {
    Arena::new(MapPlan::new(frames * page_bytes()).map().unwrap())
}

/// The words of a page.
fn words(arena: &Arena, frame: Frame) -> NonNull<[usize]> {
    let first = arena.address(frame).unwrap().cast();
    NonNull::slice_from_raw_parts(first, arena.page_bytes() / size_of::<usize>())
}

/// Writes into every word of every page of a block whose it is.
fn mark(arena: &Arena, first: Frame, order: Order, owner: usize) {
    for frame in FrameRange::of_block(first, order).frames() {
        // SAFETY: the caller has allocated the block, so nobody else uses its pages; the arena can
        // be written throughout.
        let words = unsafe { words(arena, frame).as_mut() };
        words.fill(owner << 48 | frame.number());
    }
}

/// Is it still all there?
fn is_marked(arena: &Arena, first: Frame, order: Order, owner: usize) -> bool {
    FrameRange::of_block(first, order).frames().all(|frame| {
        // SAFETY: as in `mark`, which has initialised it.
        let words = unsafe { words(arena, frame).as_ref() };
        words.iter().all(|&w| w == owner << 48 | frame.number())
    })
}

/// Next of a fixed sequence of numbers.
fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Waits for the ends of threads: a scope alone waits for their work, but not until they have given
/// their numbers back.
fn join_all<'s>(threads: impl Iterator<Item = ScopedJoinHandle<'s, ()>>) {
    // All are started before the first is waited for.
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

/// Threads allocate blocks of all orders, mark every page, and look at all they hold before they
/// free it.
fn no_page_is_two_owners<'a, A: SlotAccess + Sync>(
    arena: &'a Arena,
    zone: &Zone<'_, &'a Arena, A>,
) {
    zone.add(arena.frames()).unwrap();
    let threads = 4;
    thread::scope(|scope| {
        let work = |owner: usize| {
            move || {
                let mut state = owner as u64;
                let mut held: Vec<(Frame, Order)> = Vec::new();
                for _ in 0..4000 {
                    let order = [0, 0, 0, 0, 1, 2, 3, 9][next(&mut state) % 8];
                    let order = Order::new(order);
                    let mobility = [Mobility::Movable, Mobility::Unmovable][next(&mut state) % 2];
                    if next(&mut state) % 5 < 3
                        && let Ok(first) = zone.alloc(&Request::new(order, mobility))
                    {
                        assert!(first.is_aligned(order));
                        let address = arena.address(first).unwrap().addr().get();
                        assert!(address.is_multiple_of(order.frames() * page_bytes()));
                        mark(arena, first, order, owner);
                        held.push((first, order));
                    } else if !held.is_empty() {
                        let (first, order) = held.swap_remove(next(&mut state) % held.len());
                        assert!(is_marked(arena, first, order, owner), "{first} of {order}");
                        zone.free(first, order).unwrap();
                    }
                }
                for (first, order) in held {
                    assert!(is_marked(arena, first, order, owner), "{first} of {order}");
                    zone.free(first, order).unwrap();
                }
            }
        };
        join_all((1..=threads).map(|owner| scope.spawn(work(owner))));
    });
    zone.check().unwrap();
    zone.drain();
    assert_eq!(
        zone.cached_frames(),
        0,
        "ended threads' slots can be emptied"
    );
    assert_eq!(zone.free_frames(), arena.frames().len());
}

#[test]
fn no_page_has_two_owners_with_exclusive_slots() {
    let _alone = alone();
    let arena = arena(8192);
    // Fewer slots than threads: some go straight to the store.
    let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 3);
    let mut metadata = Mapped::new(Bricks::<Exclusive>::bytes(&plan)).unwrap();
    let zone = Bricks::<Exclusive>::new(&plan, &arena, metadata.as_uninit()).unwrap();
    no_page_is_two_owners(&arena, &zone);
}

#[test]
fn no_page_has_two_owners_with_shared_slots() {
    let _alone = alone();
    let arena = arena(8192);
    let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 64);
    let mut metadata = Mapped::new(Bricks::<Shared>::bytes(&plan)).unwrap();
    let zone = Bricks::<Shared>::new(&plan, &arena, metadata.as_uninit()).unwrap();
    no_page_is_two_owners(&arena, &zone);
}

#[test]
fn no_page_has_two_owners_without_slots() {
    let _alone = alone();
    let arena = arena(8192);
    let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 0);
    let mut metadata = Mapped::new(Bricks::<Exclusive>::bytes(&plan)).unwrap();
    let zone = Bricks::<Exclusive>::new(&plan, &arena, metadata.as_uninit()).unwrap();
    no_page_is_two_owners(&arena, &zone);
}

#[test]
fn what_an_ended_thread_left_is_had_by_others() {
    let _alone = alone();
    let arena = arena(256);
    let plan = ZonePlan {
        stash: StashSizes::LARGEST,
        ..ZonePlan::new(ZoneKind::Normal, arena.frames(), 64)
    };
    let mut metadata = Mapped::new(Bricks::<Exclusive>::bytes(&plan)).unwrap();
    let zone = Bricks::<Exclusive>::new(&plan, &arena, metadata.as_uninit()).unwrap();
    zone.add(arena.frames()).unwrap();
    let page = Request::page(Mobility::Movable);
    // Two threads at once, so that one at least is not the number that this thread may take.
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let work = || {
            let frame = zone.alloc(&page).unwrap();
            barrier.wait();
            zone.free(frame, Order::ZERO).unwrap();
        };
        join_all((0..2).map(|_| scope.spawn(work)));
    });
    assert!(zone.cached_frames() > 0);
    let all: Vec<Frame> = core::iter::from_fn(|| zone.alloc(&page).ok()).collect();
    assert_eq!(all.len(), 256);
    for frame in all {
        zone.free(frame, Order::ZERO).unwrap();
    }
    zone.check().unwrap();
}

#[test]
fn addresses_and_frames_are_each_others_inverse() {
    let _alone = alone();
    let arena = arena(100);
    let all = arena.frames();
    assert_eq!(all.len(), 100);
    let mut expected = arena.address(all.start).unwrap().addr().get();
    for frame in all.frames() {
        let address = arena.address(frame).unwrap();
        assert_eq!(address.addr().get(), expected);
        assert_eq!(address.addr().get(), frame.number() * page_bytes());
        for offset in [0, 1, page_bytes() - 1] {
            let byte = address.as_ptr().wrapping_add(offset);
            assert_eq!(arena.frame_of(byte), Some(frame));
        }
        expected += page_bytes();
    }
    for outside in [0, 1, all.start.number() - 1, all.end.number(), usize::MAX] {
        assert_eq!(arena.address(Frame::new(outside)), None);
    }
    assert_eq!(arena.frame_of(core::ptr::null()), None);
    let end = arena
        .address(all.start)
        .unwrap()
        .as_ptr()
        .wrapping_add(100 * page_bytes());
    assert_eq!(arena.frame_of(end), None);
}

#[test]
fn released_frames_are_zero_and_stay_usable() {
    let _alone = alone();
    let arena = arena(64);
    let block = FrameRange::at(arena.frames().start.plus(8), 8);
    mark(&arena, block.start, Order::new(3), 1);
    mark(&arena, block.end, Order::ZERO, 1);
    // SAFETY: this test alone uses the arena, and holds no reference into it.
    unsafe { arena.release(block, Release::Now).unwrap() };
    for frame in block.frames() {
        // SAFETY: as above; what was given back is zero.
        let words = unsafe { words(&arena, frame).as_ref() };
        assert!(words.iter().all(|&word| word == 0));
    }
    assert!(is_marked(&arena, block.end, Order::ZERO, 1));
    mark(&arena, block.start, Order::new(3), 2);
    assert!(is_marked(&arena, block.start, Order::new(3), 2));

    let beyond = FrameRange::at(arena.frames().end, 1);
    let across = FrameRange::at(arena.frames().start, 65);
    for range in [
        beyond,
        across,
        FrameRange::new(0, 1),
        FrameRange::new(0, usize::MAX),
    ] {
        // SAFETY: as above.
        let refused = unsafe { arena.release(range, Release::Now) };
        assert!(
            matches!(refused, Err(PartError::OutsideArena { .. })),
            "{refused:?}"
        );
        assert!(arena.commit(range).is_err());
    }
}

#[test]
fn an_arena_grows_and_shrinks_with_its_zone() {
    let _alone = alone();
    let bytes = 1 << 34; // 16 GiB of addresses
    let plan = MapPlan::new(bytes)
        .align_to(4 << 20)
        .huge(Huge::Transparent);
    // Where the kernel has no transparent huge pages, it grows without.
    let addresses = plan
        .reserve()
        .or_else(|_| plan.huge(Huge::No).reserve())
        .unwrap();
    let arena = Arena::growing(addresses);
    let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 64);
    let mut metadata = Mapped::new(Bricks::<Exclusive>::bytes(&plan)).unwrap();
    let zone = Bricks::<Exclusive>::new(&plan, &arena, metadata.as_uninit()).unwrap();
    let far = FrameRange::at(arena.frames().start.plus(1 << 20), 1024);
    arena.commit(far).unwrap();
    assert_eq!(zone.add(far), Ok(1024));
    for round in 1..=2 {
        let block = zone
            .alloc(&Request::new(Order::HUGE, Mobility::Movable))
            .unwrap();
        mark(&arena, block, Order::HUGE, round);
        assert!(is_marked(&arena, block, Order::HUGE, round));
        zone.free(block, Order::HUGE).unwrap();
        zone.drain();
        assert_eq!(zone.remove(far), Ok(1024));
        // SAFETY: the zone has forgotten these frames, and this test does not use them.
        unsafe { arena.withdraw(far).unwrap() };
        arena.commit(far).unwrap();
        // SAFETY: committed, and nobody else uses it.
        assert_eq!(unsafe { arena.address(block).unwrap().read() }, 0);
        assert_eq!(zone.add(far), Ok(1024));
    }
}
