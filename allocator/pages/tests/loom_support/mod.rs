//! What the models of the bitmap store share: a platform, machines, a world that knows who owns
//! which frame, and the runs in every schedule.
//!
//! Loom 0.7.2 remembers one last access a word. A thread that reads a word before it writes it
//! hides what another read there before, and the schedules in which that read comes later are not
//! tried. So each model of two threads runs twice, once with either of them first ([`both`]), and a
//! model that has one schedule alone fails.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard --test loom loom_nodes -- --nocapture`
//! runs the models of one file, and prints how many schedules each had.
//! `BRICKYARD_LOOM_MORE=1` adds one to each preemption bound and runs what is left out else
//! (hours); a negative number takes that off, down to one (-9, as the gate has it: a minute).
//! `LOOM_MAX_PREEMPTIONS` takes the place of all bounds.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod machine;
pub(crate) mod platform;
pub(crate) mod world;

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use loom::thread;

pub(crate) use machine::*;
pub(crate) use platform::*;
pub(crate) use world::*;

/// Which of two threads is started by the other, and so comes second as long as nobody is
/// interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    AsWritten,
    Swapped,
}

std::thread_local! {
    // Of the model that runs on this thread of the system: loom's threads are coroutines of it.
    static TURN: Cell<Turn> = const { Cell::new(Turn::AsWritten) };
    static PAIRED: Cell<bool> = const { Cell::new(false) };
}

/// Does one thing on CPU 0 and another on CPU 1, at the same time.
pub(crate) fn both<A: Send + 'static, B: Send + 'static>(
    here: impl FnOnce() -> A + Send + 'static,
    there: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    both_on([0, 1], here, there)
}

/// The same on these CPUs; on the same one they are two tasks of it.
pub(crate) fn both_on<A: Send + 'static, B: Send + 'static>(
    cpus: [usize; 2],
    here: impl FnOnce() -> A + Send + 'static,
    there: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    PAIRED.set(true);
    match TURN.get() {
        Turn::AsWritten => {
            let other = on_cpu(cpus[1], there);
            move_to(cpus[0]);
            let ours = here();
            (ours, other.join().unwrap())
        }
        Turn::Swapped => {
            let other = on_cpu(cpus[0], here);
            move_to(cpus[1]);
            let theirs = there();
            move_to(cpus[0]);
            (other.join().unwrap(), theirs)
        }
    }
}

/// What is added to each preemption bound. Models that run for long are left out unless it is
/// above 0.
pub(crate) fn more() -> isize {
    let more = std::env::var("BRICKYARD_LOOM_MORE").ok();
    more.map_or(0, |more| more.parse().expect("a number"))
}

/// Runs `model` on a new machine in every schedule; with a bound, in those where running threads
/// are interrupted no more often than that. What a lower bound leaves out are schedules in which
/// threads are interrupted more often, not longer.
pub(crate) fn explore<M: Machine>(
    name: &str,
    bound: impl Into<Option<usize>>,
    setting: Setting,
    model: impl Fn(&'static World<M>) + Clone + Sync + Send + 'static,
) {
    explore_in(name, bound, setting.looks, move || {
        in_new_world(setting, &model);
    });
}

/// The same with a model that makes its own machine.
pub(crate) fn explore_in(
    name: &str,
    bound: impl Into<Option<usize>>,
    looks: Looks,
    model: impl Fn() + Clone + Sync + Send + 'static,
) {
    let bound = bound.into();
    let bound = bound.map(|bound| bound.saturating_add_signed(more()).max(bound.min(1)));
    PAIRED.set(false);
    let mut most = schedules(name, bound, looks, Turn::AsWritten, model.clone());
    if PAIRED.get() {
        most = most.max(schedules(name, bound, looks, Turn::Swapped, model));
    }
    assert!(most > 1, "{name}: one schedule proves nothing");
}

fn schedules(
    name: &str,
    bound: Option<usize>,
    looks: Looks,
    turn: Turn,
    model: impl Fn() + Clone + Sync + Send + 'static,
) -> usize {
    let start = Instant::now();
    TURN.set(turn);
    LOOKS.set(looks);
    let schedules = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(bound);
    builder.max_branches = 2_000_000;
    let counted = Arc::clone(&schedules);
    builder.check(move || {
        // Relaxed: a word outside the model, of one system thread.
        counted.fetch_add(1, Ordering::Relaxed);
        let first = thread::Builder::new().stack_size(STACK);
        first.spawn(model.clone()).unwrap().join().unwrap();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    let bound = builder.preemption_bound;
    let turn = match turn {
        Turn::AsWritten => "",
        Turn::Swapped => ", swapped",
    };
    println!(
        "{name}{turn}: {schedules} schedules, preemption bound {bound:?}, {:?}",
        start.elapsed()
    );
    schedules
}

fn in_new_world<M: Machine>(setting: Setting, model: impl Fn(&'static World<M>)) {
    let bytes = M::bytes(&setting.plan());
    let memory: Box<[MaybeUninit<u8>]> = vec![MaybeUninit::uninit(); bytes].into();
    let memory = Box::into_raw(memory);
    // SAFETY: made above, not shared yet, and given back below, after the machine in it.
    let world = World::<M>::new(setting, unsafe { &mut *memory });
    let world = Box::into_raw(Box::new(world));
    {
        // SAFETY: made above, and given back below; a model joins its threads before it returns.
        let world = unsafe { &*world };
        model(world);
        world.finish();
    }
    // SAFETY: both come from `Box::into_raw`; the threads that shared them are gone, and the
    // machine goes before its memory.
    unsafe {
        drop(Box::from_raw(world));
        drop(Box::from_raw(memory));
    }
}
