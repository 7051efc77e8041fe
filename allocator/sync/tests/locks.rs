//! Real threads on each lock: no increment of a plain counter may be lost, and contention must be
//! seen.
#![cfg(not(loom))]

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brickyard_sync::{
    Exclusive, GuardedU64, Locked, PATIENCE, RawLock, Shared, Slot, TestAndSetLock, TicketLock,
};

const THREADS: u64 = 4;
const ROUNDS: u64 = 20_000;

fn counts_every_increment<L: RawLock + Send>() {
    let counter = Locked::<L, _>::new(GuardedU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let held = if round % 8 == 0 {
                        counter.try_lock()
                    } else {
                        None
                    };
                    let held = held.unwrap_or_else(|| counter.lock(thread::yield_now));
                    held.set(held.get() + 1);
                }
            });
        }
    });
    assert_eq!(counter.lock(thread::yield_now).get(), THREADS * ROUNDS);
    assert!(!counter.is_locked());
}

#[test]
fn ticket_lock_excludes() {
    counts_every_increment::<TicketLock>();
}

#[test]
fn test_and_set_lock_excludes() {
    counts_every_increment::<TestAndSetLock>();
}

#[cfg(feature = "lock_api")]
#[test]
fn lock_api_adapter_excludes() {
    counts_every_increment::<brickyard_sync::LockApi<spin::Mutex<()>>>();
}

fn waiter_is_seen<L: RawLock + Send>(is_contended: fn(&L) -> bool) {
    let lock = Locked::<L, _>::new(());
    let through = AtomicBool::new(false);
    thread::scope(|scope| {
        let held = lock.lock(thread::yield_now);
        assert!(lock.is_locked());
        assert!(!is_contended(held.raw()), "nobody waits yet");
        assert!(lock.try_lock().is_none());
        scope.spawn(|| {
            let _held = lock.lock(thread::yield_now);
            through.store(true, Ordering::Relaxed);
        });
        while !is_contended(held.raw()) {
            thread::yield_now();
        }
        assert!(!through.load(Ordering::Relaxed));
        drop(held);
    });
    assert!(through.load(Ordering::Relaxed));
}

#[test]
fn waiters_are_seen() {
    waiter_is_seen(TicketLock::is_contended);
    waiter_is_seen(TestAndSetLock::is_contended);
}

/// Whoever stands still in a slot is waited for so often, and no longer; who is out in time is
/// waited for.
#[test]
fn a_slot_is_waited_for_a_bounded_time() {
    let slot = Slot::<Shared, _>::new(GuardedU64::new(1));
    let inside = slot.visit(|| ()).unwrap();
    for enter in [true, false] {
        let mut looks = 0;
        let look = || {
            looks += 1;
            assert!(looks <= PATIENCE, "it waits without end");
        };
        let other = match enter {
            true => slot.enter(look),
            false => slot.visit(look),
        };
        assert!(other.is_none());
        assert_eq!(looks, PATIENCE);
    }
    let mut inside = Some(inside);
    let own = slot.enter(|| drop(inside.take()));
    assert_eq!(own.unwrap().get(), 1);
    // Who was kept out has left nothing behind.
    assert!(slot.enter(|| unreachable!("nobody is inside")).is_some());
}

#[test]
fn a_shared_slot_lends_and_an_exclusive_one_does_not() {
    let shared = Slot::<Shared, _>::new(GuardedU64::new(1));
    let nobody = || unreachable!("nobody is inside");
    shared.enter(nobody).unwrap().set(2);
    let visitor = shared.visit(nobody).unwrap();
    assert_eq!(visitor.get(), 2);
    drop(visitor);
    let exclusive = Slot::<Exclusive, _>::new(GuardedU64::new(1));
    exclusive.enter(|| ()).unwrap().set(3);
    assert!(exclusive.visit(|| ()).is_none());
    assert_eq!(align_of_val(&exclusive), 128);
}
