//! Every schedule of a few threads on the locks and on a shared slot, as loom explores them.
//!
//! What is proved, for these small numbers of threads and rounds and for every outcome that the
//! memory orderings allow: one at a time is inside; who comes after sees what was written before; a
//! waiter is let in by a ticket lock that is given up for it. The guarded words report any access
//! that nothing ordered, so no model has to look for races itself. The last section breaks locks on
//! purpose, and expects loom to say so.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard-sync --test loom -- --nocapture`
//! prints how many schedules each model had.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::Cell;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::Arc;

use brickyard_sync::{
    AtomicU32, Exclusive, GuardedU64, Locked, OnceSlot, RawLock, Shared, Slot, TestAndSetLock,
    TicketLock,
};
use loom::thread;

std::thread_local! {
    // Do threads that are started go first? Of the model that runs on this thread of the system:
    // loom's threads are coroutines of it.
    static SWAPPED: Cell<bool> = const { Cell::new(false) };
}

/// Loom remembers one last access a word, so that a thread which reads before it writes hides what
/// another read there before. So each model runs twice: with whoever starts a thread going on
/// first, and with that thread first.
fn go_second() {
    if SWAPPED.get() {
        thread::yield_now();
    }
}

/// Starts a thread with a share of what all threads have.
fn start_with<V: 'static, T: 'static>(
    shared: &Arc<V>,
    work: impl FnOnce(&V) -> T + 'static,
) -> thread::JoinHandle<T> {
    let shared = Arc::clone(shared);
    let other = thread::spawn(move || work(&shared));
    go_second();
    other
}

/// Runs `model` in every schedule; with a bound, in those where running threads are interrupted no
/// more often than that. `LOOM_MAX_PREEMPTIONS` takes the place of the bound.
fn explore(name: &str, bound: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let model = Arc::new(model);
    let mut most = 0;
    for swapped in [false, true] {
        SWAPPED.set(swapped);
        let schedules = Arc::new(AtomicUsize::new(0));
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(bound);
        let counted = Arc::clone(&schedules);
        let model = Arc::clone(&model);
        builder.check(move || {
            // Relaxed: a word outside the model, of one system thread.
            counted.fetch_add(1, Relaxed);
            model();
        });
        let schedules = schedules.load(Relaxed);
        let bound = builder.preemption_bound;
        let turn = if swapped { ", swapped" } else { "" };
        println!("{name}{turn}: {schedules} schedules, preemption bound {bound:?}");
        most = most.max(schedules);
    }
    assert!(most > 1, "{name}: one schedule proves nothing");
}

/// How often a waiter looks before loom stops trying other schedules for what follows.
///
/// Two waiters could look in turn for ever while a third thread holds the lock. A look in vain
/// changes nothing, so what happens after many is what happens after one; the second is there to be
/// sure.
const LOOKS: usize = 2;

/// What to do while waiting: let others run, [`LOOKS`] times in every possible way.
fn waiting() -> impl FnMut() {
    let mut looks = 0;
    move || {
        looks += 1;
        if looks > LOOKS {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

/// How often something was seen in one model, over all its schedules.
#[derive(Debug)]
struct Seen(AtomicUsize);

impl Seen {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self(AtomicUsize::new(0))))
    }

    fn note(&self) {
        // Relaxed: a word outside the model, of one system thread.
        self.0.fetch_add(1, Relaxed);
    }

    fn ever(&self) -> bool {
        self.0.load(Relaxed) > 0
    }
}

/// A counter behind a lock, all its atomic words touched.
fn counter<L: RawLock + 'static>() -> Arc<Locked<L, GuardedU64>> {
    let counter = Arc::new(Locked::<L, _>::new(GuardedU64::new(0)));
    assert!(!counter.is_locked());
    counter
}

fn add_one<L: RawLock>(counter: &Locked<L, GuardedU64>) {
    let held = counter.lock(waiting());
    held.set(held.get() + 1);
}

// ---- mutual exclusion ----

fn excludes<L: RawLock + 'static>(threads: u64, rounds: u64) {
    let counter = counter::<L>();
    let work = move |counter: &Locked<L, GuardedU64>| {
        for _ in 0..rounds {
            add_one(counter);
        }
    };
    let others: Vec<_> = (1..threads).map(|_| start_with(&counter, work)).collect();
    work(&counter);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(counter.lock(waiting()).get(), threads * rounds);
    assert!(!counter.is_locked());
}

#[test]
fn ticket_lock_excludes() {
    explore("ticket, 2 x 2", None, || excludes::<TicketLock>(2, 2));
    explore("ticket, 3 x 1", None, || excludes::<TicketLock>(3, 1));
}

#[test]
fn test_and_set_lock_excludes() {
    explore("test-and-set, 2 x 2", None, || {
        excludes::<TestAndSetLock>(2, 2);
    });
    // A waiter writes the word that it looks at, twice, so three threads have too many schedules to
    // try them all.
    explore("test-and-set, 3 x 1", Some(3), || {
        excludes::<TestAndSetLock>(3, 1);
    });
}

// ---- trying ----

/// One thread only tries, the other waits; both outcomes of the try occur, and a success excludes
/// like any other.
fn tries<L: RawLock + 'static>(name: &str) {
    let (got, refused) = (Seen::new(), Seen::new());
    explore(name, None, move || {
        let counter = counter::<L>();
        let other = start_with(&counter, add_one);
        let mut expected = 1;
        for _ in 0..2 {
            match counter.try_lock() {
                Some(held) => {
                    assert!(counter.is_locked());
                    held.set(held.get() + 1);
                    expected += 1;
                    got.note();
                }
                None => refused.note(),
            }
        }
        other.join().unwrap();
        let held = counter.try_lock().expect("nobody holds the lock");
        assert_eq!(held.get(), expected);
        assert!(counter.try_lock().is_none(), "it is held");
    });
    assert!(got.ever() && refused.ever(), "{got:?} {refused:?}");
}

#[test]
fn a_try_excludes_or_is_refused() {
    tries::<TicketLock>("ticket, try against lock");
    tries::<TestAndSetLock>("test-and-set, try against lock");
}

// ---- contention ----

/// The holder may see the waiter or miss it; alone, it never sees one.
fn waiter_is_seen_or_missed<L: RawLock + 'static>(name: &str, is_contended: fn(&L) -> bool) {
    let (seen, missed) = (Seen::new(), Seen::new());
    explore(name, None, move || {
        let counter = counter::<L>();
        let held = counter.lock(waiting());
        assert!(!is_contended(held.raw()), "nobody waits yet");
        let other = start_with(&counter, add_one);
        // The second look, after an explicit switch: loom by itself does not interrupt a thread
        // before a load that another thread's exchange could precede, if that thread has loaded the
        // word before.
        let at_once = is_contended(held.raw());
        thread::yield_now();
        if at_once || is_contended(held.raw()) {
            seen.note();
        } else {
            missed.note();
        }
        held.set(held.get() + 1);
        drop(held);
        other.join().unwrap();
        let held = counter.lock(waiting());
        assert!(!is_contended(held.raw()));
        assert_eq!(held.get(), 2);
    });
    assert!(seen.ever() && missed.ever(), "{seen:?} {missed:?}");
}

#[test]
fn a_waiter_is_seen_or_missed() {
    waiter_is_seen_or_missed("ticket, contention", TicketLock::is_contended);
    waiter_is_seen_or_missed("test-and-set, contention", TestAndSetLock::is_contended);
}

/// What "yield when contended" rests on: the holder that gives a contended ticket lock up gets it
/// back after the waiter.
#[test]
fn a_ticket_lock_given_up_goes_to_the_waiter_that_was_seen() {
    let yielded = Seen::new();
    explore("ticket, yield to a waiter", None, move || {
        let counter = counter::<TicketLock>();
        let held = counter.lock(waiting());
        let other = start_with(&counter, add_one);
        let waits = held.raw().is_contended();
        drop(held);
        let held = counter.lock(waiting());
        if waits {
            assert_eq!(held.get(), 1, "the waiter that was seen went first");
            yielded.note();
        }
        drop(held);
        other.join().unwrap();
    });
    assert!(yielded.ever());
}

// ---- slots ----

#[test]
fn a_shared_slot_lets_its_owner_or_a_visitor_in() {
    explore("shared slot, owner 2 x, visitor 1 x", None, || {
        let slot = Arc::new(Slot::<Shared, _>::new(GuardedU64::new(0)));
        drop(slot.enter(|| unreachable!("nobody is inside")).unwrap());
        let visitor = start_with(&slot, |slot| {
            let inside = slot.visit(waiting()).expect("a shared slot lends");
            inside.set(inside.get() + 1);
        });
        for _ in 0..2 {
            let inside = slot.enter(waiting()).expect("nobody stands still");
            inside.set(inside.get() + 1);
        }
        visitor.join().unwrap();
        assert_eq!(slot.enter(waiting()).unwrap().get(), 3);
    });
}

#[test]
fn an_exclusive_slot_lets_no_visitor_in() {
    explore("exclusive slot, owner and visitor", None, || {
        let slot = Arc::new(Slot::<Exclusive, _>::new(GuardedU64::new(0)));
        let visitor = start_with(&slot, |slot| assert!(slot.visit(waiting()).is_none()));
        let inside = slot.enter(waiting()).unwrap();
        inside.set(inside.get() + 1);
        drop(inside);
        visitor.join().unwrap();
        assert_eq!(slot.enter(waiting()).unwrap().get(), 1);
    });
}

// ---- a place for one value ----

/// A place, and a word that belongs to whoever has put a value in.
fn place() -> Arc<(OnceSlot<u64>, GuardedU64)> {
    let place = Arc::new((OnceSlot::new(), GuardedU64::new(0)));
    assert_eq!(place.0.get(), None);
    assert_eq!(place.1.get(), 0);
    place
}

/// Two put a value in, one of them after a write that only the value publishes; a third looks. One
/// gets in, and who sees the published value sees the write.
#[test]
fn one_value_gets_into_a_place_and_brings_what_was_written_before() {
    let (seen, empty) = (Seen::new(), Seen::new());
    explore("once slot, two set, one looks", None, move || {
        let place = place();
        let first = start_with(&place, |place| {
            place.1.set(7);
            place.0.set(1).is_ok()
        });
        let second = start_with(&place, |place| place.0.set(2) == Ok(&2));
        match place.0.get() {
            Some(1) => {
                seen.note();
                assert_eq!(place.1.get(), 7);
            }
            Some(2) => {}
            None => empty.note(),
            Some(other) => panic!("nobody put {other} in"),
        }
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert!(first != second, "one of them gets in");
        assert_eq!(place.0.get(), Some(if first { &1 } else { &2 }));
    });
    assert!(seen.ever() && empty.ever());
}

/// One puts a value in, works with what goes with it, and empties the place; who comes next sees
/// that work done.
#[test]
fn a_place_that_was_emptied_is_taken_after_all_that_was_done_with_it() {
    let taken = Seen::new();
    explore("once slot, cleared and set", None, move || {
        let place = place();
        assert_eq!(place.0.set(1), Ok(&1));
        let next = start_with(&place, |place| {
            if place.0.set(2).is_err() {
                return;
            }
            taken.note();
            assert_eq!(place.1.get(), 7);
            place.1.set(8);
            assert_eq!(place.0.get(), Some(&2));
        });
        place.1.set(7);
        // SAFETY: the reference that `set` returned is gone.
        unsafe { place.0.clear() };
        next.join().unwrap();
        assert!(matches!(place.0.get(), None | Some(2)));
    });
    assert!(taken.ever());
}

// ---- what must be found ----

/// The plainest lock there is, right or wrong by how it is taken and given up.
macro_rules! plain {
    ($name:ident, $take:expr, $give:expr) => {
        struct $name(AtomicU32);

        // SAFETY: none for the wrong ones. They guard only words for which a race is a report and
        // not undefined behaviour: the models below are to find them.
        unsafe impl RawLock for $name {
            const UNLOCKED: Self = Self(AtomicU32::new(0));

            fn lock(&self, mut relax: impl FnMut()) {
                while !self.try_lock() {
                    relax();
                }
            }

            fn try_lock(&self) -> bool {
                let take: fn(&AtomicU32) -> bool = $take;
                take(&self.0)
            }

            unsafe fn unlock(&self) {
                self.0.store(0, $give);
            }

            fn is_locked(&self) -> bool {
                self.0.load(Relaxed) != 0
            }
        }
    };
}

fn exchanged(word: &AtomicU32, take: Ordering) -> bool {
    let taken = word.compare_exchange(0, 1, take, Relaxed);
    taken.is_ok()
}

/// Looks first and takes then, in two steps: two may look at the same time.
fn looked_and_taken(word: &AtomicU32) -> bool {
    let free = word.load(Acquire) == 0;
    if free {
        word.store(1, Relaxed);
    }
    free
}

plain!(Right, |word| exchanged(word, Acquire), Release);
plain!(RelaxedTake, |word| exchanged(word, Relaxed), Release);
plain!(RelaxedGive, |word| exchanged(word, Acquire), Relaxed);
plain!(LooksThenTakes, looked_and_taken, Release);

#[test]
fn the_plain_lock_is_right_with_the_right_orderings() {
    explore("plain, 2 x 2", None, || excludes::<Right>(2, 2));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_take_is_found() {
    explore("relaxed take", None, || excludes::<RelaxedTake>(2, 1));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_give_is_found() {
    explore("relaxed give", None, || excludes::<RelaxedGive>(2, 1));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_lock_that_lets_two_in_is_found() {
    explore("looks, then takes", None, || {
        excludes::<LooksThenTakes>(2, 1)
    });
}

/// Two threads that both take themselves for the owner.
#[test]
#[should_panic(expected = "Causality violation")]
fn two_owners_of_an_exclusive_slot_are_found() {
    explore("exclusive slot, two owners", None, || {
        let slot = Arc::new(Slot::<Exclusive, _>::new(GuardedU64::new(0)));
        let other = start_with(&slot, |slot| slot.enter(waiting()).unwrap().set(1));
        slot.enter(waiting()).unwrap().set(2);
        other.join().unwrap();
    });
}

/// A word that a model did not touch before its threads raced for it is reported, not passed over.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_forgotten_word_is_found() {
    explore("untouched word", None, || {
        let word = Arc::new(AtomicU32::new(0));
        let other = start_with(&word, |word| word.fetch_add(1, Relaxed));
        word.fetch_add(1, Relaxed);
        other.join().unwrap();
    });
}
