//! Threads that do the same thing at the same time, and how long they all take.
//!
//! A sample is the median of a few repeats. In each, every thread warms up with an eighth of its steps, waits for all the others, and does its steps; the time is
//! from when the first began to when the last was done. How many steps fill the time that a sample is given is found out first, which warms up too.

use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// How often a sample is repeated.
const REPEATS: u32 = 5;

/// What a thread is told: how many steps, and when to begin.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    steps: u64,
    start: &'a Barrier,
    span: &'a Mutex<Option<(Instant, Instant)>>,
}

impl Pace<'_> {
    /// Calls `work` with the number of steps to do, twice: to warm up, and, once all threads are there, to measure.
    pub(crate) fn run(&self, mut work: impl FnMut(u64)) {
        work(self.steps / 8 + 1);
        self.start.wait();
        let begun = Instant::now();
        work(self.steps);
        let done = Instant::now();
        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = span.unwrap_or((begun, done));
        *span = Some((first.min(begun), last.max(done)));
    }
}

/// Can a thread do its steps while the others are not there?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It can.
    Nobody,
    /// It waits for them.
    Others,
}

/// The time, in ns, that each of the steps took that every thread did: the median of several repeats. `thread` is run on each thread with its number, and does its
/// steps by [`Pace::run`]. A single thread is the one that calls this. `least` is the time that one CPU is given for all repeats.
pub(crate) fn ns_a_step(
    threads: usize,
    need: Need,
    least: Duration,
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> f64 {
    let share = least / REPEATS;
    let steps = match need {
        // One thread alone is found out about more surely than many that wait for each other to be scheduled.
        Need::Nobody => steps_in(share, 1, |steps| time(1, steps, &thread)),
        // To begin with, enough steps for what the threads wait for each other to be little of it.
        Need::Others => steps_in(share, 1024, |steps| time(threads, steps, &thread)),
    };
    let mut repeats: Vec<f64> = (0..REPEATS)
        .map(|_| time(threads, steps, &thread).as_nanos() as f64 / steps as f64)
        .collect();
    repeats.sort_by(f64::total_cmp);
    repeats[repeats.len() / 2]
}

/// How many steps fill the time, if `begin` of them do not.
fn steps_in(share: Duration, begin: u64, time: impl Fn(u64) -> Duration) -> u64 {
    let mut steps = begin;
    for _ in 0..MOST_DOUBLINGS {
        // The shortest of three: another may have been interrupted.
        let spent = (0..3).map(|_| time(steps)).min().unwrap_or(share);
        if spent >= share / 8 {
            let per_step = spent.as_nanos().max(1) as f64 / steps as f64;
            return ((share.as_nanos() as f64 / per_step) as u64).max(1);
        }
        steps *= 2;
    }
    steps
}

/// A step that cost nothing at all would otherwise never fill the time.
const MOST_DOUBLINGS: u32 = 40;

/// The time of so many steps on all threads at once.
pub(crate) fn time(
    threads: usize,
    steps: u64,
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> Duration {
    let start = Barrier::new(threads);
    let span = Mutex::new(None);
    let pace = Pace {
        steps,
        start: &start,
        span: &span,
    };
    if threads == 1 {
        thread(0, &pace);
    } else {
        let (thread, pace) = (&thread, &pace);
        thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|number| scope.spawn(move || thread(number, pace)))
                .collect();
            for one in all {
                one.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
    }
    let span = span.into_inner().unwrap_or_else(PoisonError::into_inner);
    span.map_or(Duration::ZERO, |(first, last)| last - first)
}

/// What a step of one of so many threads costs a CPU, where each step took so many ns: threads beyond the CPUs wait for each other.
pub(crate) fn cost_to_a_cpu(threads: usize, ns: f64) -> f64 {
    let cpus = thread::available_parallelism().map_or(1, core::num::NonZero::get);
    ns * cpus.min(threads) as f64 / threads as f64
}
