//! What enters a page set besides whole blocks, and what goes past it.

use super::*;

use core::cell::RefCell;

use brickyard::sync::{RawLock, Shared, TicketLock};
use brickyard_designs::classics::Contended;

// ---- parts ----

#[test]
fn a_part_of_a_block_goes_to_the_page_set() {
    let zone = full_zone(512);
    give(&zone, 5, 0);
    give(&zone, 8, 3);
    assert_eq!(zone.cached_frames(), 9);
    assert!(is_cached(&zone, 5) && is_cached(&zone, 8));
    assert_eq!(take(&zone, &MOVABLE), 5);
    assert_eq!(take(&zone, &request(3, Mobility::Movable)), 8);
    // What is no order with a list does not.
    give(&zone, 64, 6);
    assert_eq!(zone.cached_frames(), 0);
    sound(&zone);
}

#[test]
fn a_free_of_a_part_halves_the_next_refill_once() {
    let (zone, _) = z::<V6_12>();
    let miss = || {
        while zone.cached_frames() > 0 {
            take(&zone, &MOVABLE);
        }
        take(&zone, &MOVABLE);
        zone.cached_frames() + 1
    };
    assert_eq!([(); 4].map(|()| miss()), [63, 126, 252, 504]);
    take_at(&zone, 500 * BLOCK, 4, Mobility::Movable);
    give(&zone, 500 * BLOCK + 3, 0);
    // Four doublings, halved to two.
    assert_eq!(miss(), 252);
}

// ---- past the page sets ----

#[test]
fn what_is_isolated_does_not_enter_a_page_set() {
    let (zone, _) = z::<V6_12>();
    let miss = || {
        while zone.cached_frames() > 0 {
            take(&zone, &MOVABLE);
        }
        take(&zone, &MOVABLE);
        zone.cached_frames() + 1
    };
    assert_eq!([(); 4].map(|()| miss()), [63, 126, 252, 504]);
    let block = FrameRange::new(500 * BLOCK, 501 * BLOCK);
    let blocks = [(500 * BLOCK + 3, 0), (500 * BLOCK + 8, 3)];
    for (at, order) in blocks {
        take_at(&zone, at, order, Mobility::Movable);
    }
    assert_eq!(zone.isolate(block), Ok(()));
    for (at, order) in blocks {
        give(&zone, at, order);
        assert_eq!(list_of(&zone, frame(at)), MigrateType::Isolate);
    }
    zone.unisolate(block);
    // And the page set has not noticed: four doublings, not one.
    assert_eq!(miss(), 1008);
    sound(&zone);
}

#[test]
fn pages_set_aside_lie_on_the_movable_lists() {
    for order in [0, 3, 9] {
        let (zone, _) = z::<V6_12>();
        let zones = [zone];
        let zone = &zones[0];
        let wanted = request(if order == 9 { 9 } else { 1 }, Mobility::Unmovable).atomic();
        set_marks(
            zone,
            Marks {
                low: 300_000,
                high: 300_000,
                min: 10,
            },
        );
        let at = alloc(&zones, &wanted).expect("a block");
        assert_eq!(zone.block_type(frame(at)), Some(High));
        zone.drain();
        let inside = if order == 9 { at } else { at & !511 | 256 };
        if order < 9 {
            take_at(zone, inside, order, Mobility::Unmovable);
        }
        give(zone, inside, order);
        assert!(is_cached(zone, inside));
        let other = take(zone, &request(order, Mobility::Unmovable));
        assert_ne!(other, inside, "{order}");
        zone.check().expect("every invariant");
        assert_eq!(
            take(zone, &request(order, Mobility::Movable)),
            inside,
            "{order}"
        );
    }
}

#[test]
fn a_cpu_without_a_page_set_does_without() {
    let (zone, cpus) = z::<V6_12>();
    cpus.switch_to(4);
    let at = take(&zone, &MOVABLE);
    assert_eq!(zone.cached_frames(), 0);
    give(&zone, at, 0);
    assert_eq!(usage(&zone, frame(at)), Use::Free);
}

thread_local! {
    // Called by the next taker of a lock, before it has it.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A lock before which something else may happen on the same thread.
#[derive(Debug)]
struct Interrupted(TicketLock);

// SAFETY: every call is forwarded to a lock that keeps the contract; what happens before does not
// change that.
unsafe impl RawLock for Interrupted {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        if let Some(meanwhile) = MEANWHILE.take() {
            meanwhile();
        }
        self.0.lock(relax);
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this lock, and the lock inside is the same one.
        unsafe { self.0.unlock() }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl Contended for Interrupted {
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

#[test]
fn who_finds_the_page_set_entered_goes_to_the_zone() {
    type Met = Zone<V6_12, Shared, Interrupted>;
    let zone: &Met = Box::leak(Box::new(made(&plan(16), Cpus::new())));
    assert_eq!(zone.add(zone.span()), Ok(16 * BLOCK));
    let spare = zone.alloc_uncached(&MOVABLE).expect("a frame");
    MEANWHILE.set(Some(Box::new(move || {
        // The refill is inside the page set, and about to take the zone lock.
        let at = zone.alloc(&MOVABLE).expect("a frame");
        assert_eq!(usage(zone, at), Use::Allocated);
        assert_eq!(zone.free(at, Order::ZERO), Ok(()));
        assert_eq!(zone.free(spare, Order::ZERO), Ok(()));
        assert_eq!([at, spare].map(|at| usage(zone, at)), [Use::Free; 2]);
        assert_eq!(zone.cached_frames(), 0);
    })));
    let at = zone.alloc(&MOVABLE).expect("a frame");
    assert!(MEANWHILE.take().is_none(), "it has happened");
    assert_eq!(zone.free(at, Order::ZERO), Ok(()));
    assert_eq!(usage(zone, at), Use::Cached);
    sound(zone);
}
