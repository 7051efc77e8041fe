//! Real threads on each lock: no increment of a plain counter may be lost, and contention must be seen.
#![cfg(not(loom))]

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brickyard_sync::{
    Exclusive, GuardedU64, Locked, OwnLine, RawLock, Shared, Slot, TestAndSetLock, TicketLock,
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
    assert!(!counter.is_contended());
}

#[test]
fn ticket_lock_excludes() {
    counts_every_increment::<TicketLock>();
}

#[test]
fn test_and_set_lock_excludes() {
    counts_every_increment::<TestAndSetLock>();
}

#[test]
fn own_line_lock_excludes_and_has_its_line() {
    counts_every_increment::<OwnLine<TicketLock>>();
    assert_eq!(size_of::<OwnLine<TicketLock>>(), 64);
}

#[cfg(feature = "lock_api")]
#[test]
fn lock_api_adapter_excludes() {
    counts_every_increment::<brickyard_sync::LockApi<spin::Mutex<()>>>();
}

fn waiter_is_seen<L: RawLock + Send>() {
    let lock = Locked::<L, _>::new(());
    let through = AtomicBool::new(false);
    thread::scope(|scope| {
        let held = lock.lock(thread::yield_now);
        assert!(lock.is_locked());
        assert!(!held.is_contended(), "nobody waits yet");
        assert!(lock.try_lock().is_none());
        scope.spawn(|| {
            let _held = lock.lock(thread::yield_now);
            through.store(true, Ordering::Relaxed);
        });
        while !held.is_contended() {
            thread::yield_now();
        }
        assert!(!through.load(Ordering::Relaxed));
        drop(held);
    });
    assert!(through.load(Ordering::Relaxed));
}

#[test]
fn waiters_are_seen() {
    waiter_is_seen::<TicketLock>();
    waiter_is_seen::<TestAndSetLock>();
    waiter_is_seen::<OwnLine<TestAndSetLock>>();
}

#[test]
fn a_shared_slot_lends_and_an_exclusive_one_does_not() {
    let shared = Slot::<Shared, _>::new(GuardedU64::new(1));
    shared.enter(|| unreachable!("nobody is inside")).set(2);
    let visitor = shared.visit(|| unreachable!("nobody is inside")).unwrap();
    assert_eq!(visitor.get(), 2);
    drop(visitor);
    let exclusive = Slot::<Exclusive, _>::new(GuardedU64::new(1));
    exclusive.enter(|| ()).set(3);
    assert!(exclusive.visit(|| ()).is_none());
    assert_eq!(align_of_val(&exclusive), 128);
}
