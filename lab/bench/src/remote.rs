//! Pages that one thread allocates and another frees: threads work in pairs, a giver and a taker.
//!
//! The giver only allocates batches, and the taker only frees them, both at the same time. So every
//! page must get from the CPU that frees it back to the CPU that allocates it. A batch is handed
//! over as a copy of its frame numbers, two of which circulate, and waiting for one spins. Handing
//! over and waiting are not timed: the clock runs while a batch is allocated, and while it is
//! freed, minus the cost of reading the clock. `alloc` is the giver's time per page, `free` the
//! taker's, `total` their sum: the cost of a page for both CPUs together.

use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Instant;

use brickyard::{Frame, Platform};
use brickyard_measure::threads::Threads;

use super::batch::{Batch, Sample, Short};
use super::schedule::Workload;
use super::subject::{Handle, Subject};
use brickyard_measure::clock::{Laps, ns_of_the_clock};
use brickyard_run::together;

/// The most batches in transit from one giver to its taker.
const UNDER_WAY: usize = 2;

/// The least number of timed batches.
const LEAST_TIMED: u64 = 2;

/// Whether a batch is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    WarmUp,
    Timed,
}

/// A batch as it is handed over.
#[derive(Debug)]
struct Parcel {
    frames: Vec<Frame>,
    stage: Stage,
}

/// Takes one sample of a workload: the mean over its pairs of threads.
pub(crate) fn sample_of_pairs<S: Subject>(
    subject: &S,
    workload: &Workload,
    least: Duration,
) -> Result<Sample, Short> {
    Sample::mean(together(workload.threads / 2, |_| {
        sample_of_pair(subject, workload, least)
    }))
}

/// Takes the sample of one pair: the calling thread gives, and a thread that it starts takes.
fn sample_of_pair<S: Subject>(
    subject: &S,
    workload: &Workload,
    least: Duration,
) -> Result<Sample, Short> {
    let (full, filled) = channel();
    let (empty, emptied) = channel();
    thread::scope(|scope| {
        // Boxed: starting a thread is much code, and would be compiled for each kind of subject.
        let take_all: Box<dyn FnOnce() -> f64 + Send + '_> = Box::new(move || {
            let mut batch = Batch::new(subject.handle(workload.order), workload);
            let spent = take(&mut batch, &filled, &empty);
            batch.handle.settle();
            spent
        });
        let taker = scope.spawn(take_all);
        let mut batch = Batch::new(subject.handle(workload.order), workload);
        let given = give(&mut batch, full, &emptied, least);
        // All pages are freed once the taker ends.
        let taken = taker.join().unwrap_or_else(|panic| resume_unwind(panic));
        batch.handle.settle();
        let (spent, batches) = given?;
        let pages = batches as f64 * workload.batch as f64;
        let alloc = spent / pages;
        let free = taken / pages;
        Ok(Sample {
            alloc,
            free,
            total: alloc + free,
        })
    })
}

/// Allocates batches and hands them over until the time is up. Returns the time of allocating the
/// timed batches, in ns, and their number.
fn give<H: Handle>(
    batch: &mut Batch<H>,
    full: Sender<Parcel>,
    emptied: &Receiver<Vec<Frame>>,
    least: Duration,
) -> Result<(f64, u64), Short> {
    let clock = ns_of_the_clock();
    let (mut spent, mut timed) = (Laps::default(), 0);
    let mut new = UNDER_WAY;
    let begun = Instant::now();
    while timed < LEAST_TIMED || begun.elapsed() < least + least / 4 {
        let stage = if begun.elapsed() < least / 4 {
            Stage::WarmUp
        } else {
            Stage::Timed
        };
        let mut frames = if new > 0 {
            new -= 1;
            vec![Frame::new(0); batch.frames.len()]
        } else {
            // The taker has ended only if it has panicked.
            next(emptied).ok_or(Short)?
        };
        let before = Instant::now();
        batch.alloc_half()?;
        let took = before.elapsed();
        frames.copy_from_slice(&batch.frames);
        if stage == Stage::Timed {
            spent.add(took);
            timed += 1;
        }
        full.send(Parcel { frames, stage }).map_err(|_| Short)?;
    }
    Ok((spent.ns(clock), timed))
}

/// Frees the batches that are handed over until the giver ends. Returns the time of freeing the
/// timed batches, in ns.
fn take<H: Handle>(
    batch: &mut Batch<H>,
    filled: &Receiver<Parcel>,
    empty: &Sender<Vec<Frame>>,
) -> f64 {
    let clock = ns_of_the_clock();
    let mut spent = Laps::default();
    while let Some(Parcel { frames, stage }) = next(filled) {
        batch.frames.copy_from_slice(&frames);
        let before = Instant::now();
        batch.free_half();
        let took = before.elapsed();
        if stage == Stage::Timed {
            spent.add(took);
        }
        // The giver does not receive them any more once its time is up.
        let _ = empty.send(frames);
    }
    spent.ns(clock)
}

/// Receives the next item; `None` if the sender has ended. Spins, and yields the CPU after a while.
fn next<T>(from: &Receiver<T>) -> Option<T> {
    loop {
        match from.try_recv() {
            Ok(it) => return Some(it),
            Err(TryRecvError::Empty) => Threads.relax(),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
}
