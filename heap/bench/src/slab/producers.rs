//! Eight producers and one thread that reclaims. Each producer has a table of live objects of 16 to
//! 1024 bytes. A step allocates an object, puts it at a random index, and sends the object that was
//! there to the reclaiming thread, which only frees. So no object is freed by the thread that
//! allocated it, and a producer's memory is returned at another thread's pace.
//!
//! `rate` is millions of objects per second through all of it: one operation is an allocation and
//! its free. The parent process reads the peak of resident memory.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brickyard::Platform;
use brickyard_arena::Threads;

use super::mark::mark;
use super::ring::{Receiver, Ring, Sender};
use super::work::SlabWork;
use brickyard_measure::objects::crowd::time;
use brickyard_measure::objects::heap::{Content, Heap, HeapHandle};
use brickyard_measure::objects::object::{Hand, Object, Shape, table};
use brickyard_measure::objects::taken::Taken;
use brickyard_run::Random;

/// The number of producers.
const PRODUCERS: usize = 8;

/// The smallest and the largest of the sizes.
const SIZES: (u32, u32) = (16, 1024);

/// How often every object is replaced.
const REPLACED: usize = 24;

/// The state of a producer.
#[derive(Debug)]
struct Desk<'r> {
    live: Vec<Option<Object>>,
    sender: Sender<'r>,
}

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> anyhow::Result<Taken> {
    let mean = (SIZES.0 + SIZES.1) as usize / 2;
    let places = (work.live / PRODUCERS / mean).max(1);
    let mut rings: Vec<Ring> = (0..PRODUCERS).map(|_| Ring::new()).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = rings.iter_mut().map(Ring::ends).unzip();
    let desk = |sender| {
        let live = table(places);
        Mutex::new(Desk { live, sender })
    };
    let desks: Vec<_> = senders.into_iter().map(desk).collect();
    let receivers = Mutex::new(receivers);
    let done = AtomicUsize::new(0);
    mark("before")?;
    let steps = (places * REPLACED) as u64;
    let spent = time(PRODUCERS + 1, steps, |thread, pace| {
        let mut hand = Hand::new(heap.handle());
        // `time` calls twice. The first call, the warm-up, only fills the tables; nothing is
        // reclaimed.
        let mut calls = 0;
        if let Some(desk) = desks.get(thread) {
            let mut desk = of_this_thread(desk);
            let mut random = Random::new(thread as u64);
            pace.run(|steps| {
                calls += 1;
                if calls == 1 {
                    fill(&mut hand, &mut desk.live, places, &mut random);
                } else {
                    produce(&mut hand, &mut desk, steps, &mut random);
                    // Release pairs with the acquire of `reclaim`: all objects were sent before.
                    done.fetch_add(1, Ordering::Release);
                }
            });
        } else {
            let mut receivers = of_this_thread(&receivers);
            pace.run(|_| {
                calls += 1;
                if calls == 2 {
                    reclaim(&mut hand, &mut receivers, &done);
                }
            });
        }
    });
    mark("after")?;
    let mut hand = Hand::new(heap.handle());
    let tables = desks
        .iter()
        .map(|desk| core::mem::take(&mut of_this_thread(desk).live));
    for object in tables.flatten().flatten() {
        // SAFETY: a producer took it from a hand of the same heap and did not change its first
        // word.
        unsafe { hand.give_as_it_says(object) };
    }
    let mut taken = Taken::default();
    let operations = (PRODUCERS as u64 * steps) as f64;
    taken.push(
        "rate",
        operations / spent.wall.as_secs_f64().max(1e-9) / 1e6,
    );
    Ok(taken)
}

/// Locks what only one thread uses while it runs, so the lock is free.
fn of_this_thread<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fill<H: HeapHandle>(
    hand: &mut Hand<H>,
    live: &mut Vec<Option<Object>>,
    places: usize,
    random: &mut Random,
) {
    live.extend((0..places).map(|_| {
        let shape = Shape::any(random, SIZES.0, SIZES.1);
        Some(hand.take(shape, Content::Any))
    }));
}

fn produce<H: HeapHandle>(
    hand: &mut Hand<H>,
    desk: &mut Desk<'_>,
    steps: u64,
    random: &mut Random,
) {
    let places = desk.live.len();
    for _ in 0..steps {
        let new = hand.take(Shape::any(random, SIZES.0, SIZES.1), Content::Any);
        if let Some(old) = desk.live[random.below(places)].replace(new) {
            desk.sender.send(old);
        }
    }
}

/// Frees what is received from the rings until every producer is done and nothing is left.
fn reclaim<H: HeapHandle>(hand: &mut Hand<H>, receivers: &mut [Receiver<'_>], done: &AtomicUsize) {
    loop {
        // Acquire pairs with the release of the producers. Read before the rings are, so that what
        // was sent until then is found.
        let last = done.load(Ordering::Acquire) == PRODUCERS;
        let mut found = 0;
        for receiver in &mut *receivers {
            while let Some(object) = receiver.try_receive() {
                found += 1;
                // SAFETY: a producer took it from a hand of the same heap and did not change its
                // first word.
                unsafe { hand.give_as_it_says(object) };
            }
        }
        if found == 0 {
            if last {
                return;
            }
            Threads.relax();
        }
    }
}
