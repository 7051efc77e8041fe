//! Planted faults: platforms that lie, and kernels that break the rules. The test finds each. Where
//! the library's own assertions notice first, that counts as found.

use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::rc::Rc;

use brickyard::sync::{Exclusive, SlotAccess};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_boot_test::{Contents, Finding, TaskPlan, Worker};

use crate::machine::{self, Machine, ThreadTest, Truth};

/// What a run came to.
#[derive(Debug)]
enum Outcome {
    Passed,
    Found(Finding),
    Asserted,
}

/// Runs one worker, with `hook` in the middle of its operations, and the checks at the end.
fn run<A: SlotAccess + 'static>(
    truth: Truth,
    seed: u64,
    hook: impl FnOnce(ThreadTest<A>) -> Box<dyn FnMut() -> Result<(), Finding>>,
) -> Outcome {
    let (test, frames) = machine::test::<A>(Machine(truth), 1);
    let found = Rc::new(RefCell::new(None));
    let (mut hook, inside) = (hook(test), Rc::clone(&found));
    machine::set_hook(Some(Box::new(move || {
        if let Err(finding) = hook() {
            inside.borrow_mut().get_or_insert(finding);
        }
    })));
    let mut bulk = [Frame::new(0); 320];
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut worker = Worker::new(test, TaskPlan::new(seed));
        for _ in 0..4000 {
            worker.step(&mut bulk)?;
        }
        worker.finish()?;
        machine::set_hook(None);
        test.conclude(frames)
    }));
    machine::set_hook(None);
    let inside = found.borrow_mut().take();
    match (inside, done) {
        (Some(finding), _) | (None, Ok(Err(finding))) => Outcome::Found(finding),
        (None, Err(_)) => Outcome::Asserted,
        (None, Ok(Ok(_))) => Outcome::Passed,
    }
}

/// An interrupt.
fn interrupt<A: SlotAccess + 'static>(
    test: ThreadTest<A>,
) -> Box<dyn FnMut() -> Result<(), Finding>> {
    let mut seed = 0;
    Box::new(move || {
        seed += 1;
        test.interrupt(seed).map(|_| ())
    })
}

#[test]
fn interrupts_that_are_known_to_be_some_are_no_finding() {
    for seed in 0..5 {
        let outcome = run::<Exclusive>(Truth::Interrupt, seed, interrupt);
        assert!(matches!(outcome, Outcome::Passed), "{seed}: {outcome:?}");
    }
}

#[test]
fn interrupts_that_say_they_are_tasks_are_found() {
    for seed in 0..5 {
        let outcome = run::<Exclusive>(Truth::Task, seed, interrupt);
        assert!(!matches!(outcome, Outcome::Passed), "{seed} passed");
    }
}

#[test]
fn pins_that_do_not_hold_are_found() {
    for seed in 0..5 {
        // Another task of the same CPU goes on while the first is pinned.
        let outcome = run::<Exclusive>(Truth::Task, seed, |test| {
            let mut other = Worker::new(test, TaskPlan::new(seed).task(2));
            let mut bulk = vec![Frame::new(0); 320];
            Box::new(move || other.step(&mut bulk).map(|_| ()))
        });
        // (That the other task still owns something at the end is none of it.)
        let missed = match outcome {
            Outcome::Passed => true,
            Outcome::Found(Finding::StillOwned { owner, .. }) => owner.task() == 2,
            Outcome::Found(_) | Outcome::Asserted => false,
        };
        assert!(!missed, "{seed} passed");
    }
}

#[test]
fn a_frame_freed_twice_is_found() {
    let (test, _) = machine::test::<Exclusive>(Machine(Truth::Task), 1);
    let mut worker = Worker::new(test, TaskPlan::new(3));
    let mut bulk = [Frame::new(0); 320];
    let found = (0..2000).find_map(|step| {
        let stolen = Frame::new(20 + step);
        // Somebody frees what is not theirs.
        if test.oracle.owner_of(stolen).is_some() {
            let _ = test.zone.free(stolen, Order::ZERO);
        }
        worker.step(&mut bulk).err()
    });
    assert!(
        matches!(
            found,
            Some(Finding::TwoOwners { .. } | Finding::FreeRefused { .. })
        ),
        "{found:?}"
    );
    assert!(test.oracle.is_stopped());
    assert_eq!(worker.step(&mut bulk), Ok(false));
}

#[test]
fn overwritten_memory_is_found() {
    let (test, _) = machine::test::<Exclusive>(Machine(Truth::Task), 1);
    let mut worker = Worker::new(test, TaskPlan::new(4));
    let mut bulk = [Frame::new(0); 320];
    let found = (0..4000).find_map(|step| {
        test.contents.write(Frame::new(20 + step), 1, 7);
        worker.step(&mut bulk).err()
    });
    assert!(
        matches!(
            found,
            Some(Finding::Overwritten {
                word: 1,
                found: 7,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn lost_memory_is_found() {
    let (test, frames) = machine::test::<Exclusive>(Machine(Truth::Task), 1);
    test.zone.alloc(&Request::page(Mobility::Movable)).unwrap();
    assert_eq!(
        test.conclude(frames),
        Err(Finding::Lost {
            expected: frames,
            managed: frames,
            found: frames - 1
        })
    );
}

#[test]
fn memory_that_was_never_added_is_found() {
    let (test, frames) = machine::test::<Exclusive>(Machine(Truth::Task), 1);
    test.zone
        .add(brickyard::FrameRange::new(3000, 3001))
        .unwrap();
    let found = test.conclude(frames).unwrap_err();
    assert!(matches!(found, Finding::Lost { found, .. } if found == frames + 1));
}
