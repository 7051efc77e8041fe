//! Threads that do the same work at the same time, and the time they all take.
//!
//! A sample is the median of a few repeats. In each, every thread warms up with an eighth of its
//! steps, waits for all the others, and does its steps. The time is from the first start to the
//! last end, or, by the other clock, the CPU time of all threads. The number of steps that takes
//! the time of a sample is measured first, which warms up too.

use core::time::Duration;
use std::sync::{Barrier, Mutex, PoisonError};

use crate::clock::Span;
use brickyard_run::named;
use brickyard_run::side_by_side::cores;
use brickyard_run::together;

/// How often a sample is repeated.
const REPEATS: u32 = 5;

named! {
    /// The clock of a measurement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Clock {
        /// Wall time: everything that delays a thread counts, other programs too.
        Wall => "wall",
        /// CPU time: other programs do not count, nor does sleeping while waiting for a lock.
        Cpu => "cpu",
    }
}

/// The time of a crowd of threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// From the first start to the last end.
    pub wall: Duration,
    /// The CPU time of all threads.
    cpu: Duration,
}

/// The time of a step of one thread, in ns.
#[derive(Debug, Clone, Copy)]
pub struct WorkStep {
    /// The wall time of a thread: with more threads than CPUs, it includes waiting for a CPU.
    pub seen: f64,
    /// The CPU time.
    pub cpu: f64,
}

impl WorkStep {
    /// Returns the cost of a step to a CPU, by this clock. With more threads than CPUs, waiting for
    /// a CPU is not counted.
    pub fn cost(&self, clock: Clock, threads: usize) -> f64 {
        let cpus = cores();
        match clock {
            Clock::Wall => self.seen * cpus.min(threads) as f64 / threads as f64,
            Clock::Cpu => self.cpu,
        }
    }
}

/// What a thread gets: how many steps, and when to begin.
#[derive(Debug)]
pub struct Pace<'a> {
    steps: u64,
    start: &'a Barrier,
    spans: &'a Mutex<Vec<Span>>,
}

impl Pace<'_> {
    /// Calls `work` with the number of steps to do, twice: to warm up, and, once all threads have
    /// arrived, to measure.
    pub fn run(&self, mut work: impl FnMut(u64)) {
        work(self.steps / 8 + 1);
        self.start.wait();
        let span = Span::of(|| work(self.steps));
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push(span);
    }
}

/// Whether a thread can do its steps without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It can.
    Nobody,
    /// It waits for the others.
    Others,
}

/// Returns the cost to a CPU of a step of one of so many threads, in ns, by this clock: see
/// [`step`].
pub fn ns_a_step(
    threads: usize,
    need: Need,
    (least, clock): (Duration, Clock),
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> f64 {
    step(threads, need, least, thread).cost(clock, threads)
}

/// Returns the time of a step of one of so many threads: by either clock the median of several
/// repeats. `thread` is run on each thread with its number, and does its steps by [`Pace::run`]. A
/// single thread is the calling one. `least` is the time of all repeats on one CPU.
pub fn step(
    threads: usize,
    need: Need,
    least: Duration,
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> WorkStep {
    let share = least / REPEATS;
    let steps = match need {
        // A single thread gives a better estimate than many that wait for each other to be
        // scheduled.
        Need::Nobody => steps_in(share, 1, |steps| time(1, steps, &thread).wall),
        // Begin with enough steps to make the threads' waiting for each other a small part.
        Need::Others => steps_in(share, 1024, |steps| time(threads, steps, &thread).wall),
    };
    let repeats: Vec<Spent> = (0..REPEATS)
        .map(|_| time(threads, steps, &thread))
        .collect();
    let median = |of: fn(&Spent) -> Duration| {
        let mut times: Vec<Duration> = repeats.iter().map(of).collect();
        times.sort_unstable();
        times[times.len() / 2].as_nanos() as f64 / steps as f64
    };
    WorkStep {
        seen: median(|spent| spent.wall),
        cpu: median(|spent| spent.cpu) / threads as f64,
    }
}

/// Returns how many steps take the time `share`, beginning with `begin` steps.
fn steps_in(share: Duration, begin: u64, time: impl Fn(u64) -> Duration) -> u64 {
    let mut steps = begin;
    for _ in 0..MOST_DOUBLINGS {
        // The shortest of three, since any of them may have been interrupted.
        let spent = (0..3).map(|_| time(steps)).min().unwrap_or(share);
        if spent >= share / 8 {
            let per_step = spent.as_nanos().max(1) as f64 / steps as f64;
            return ((share.as_nanos() as f64 / per_step) as u64).max(1);
        }
        steps *= 2;
    }
    steps
}

/// A limit for steps that take no time at all.
const MOST_DOUBLINGS: u32 = 40;

/// Returns the time of so many steps on all threads in parallel.
pub fn time(threads: usize, steps: u64, thread: impl Fn(usize, &Pace<'_>) + Sync) -> Spent {
    let start = Barrier::new(threads);
    let spans = Mutex::new(Vec::with_capacity(threads));
    let pace = Pace {
        steps,
        start: &start,
        spans: &spans,
    };
    if threads == 1 {
        thread(0, &pace);
    } else {
        together(threads, |number| thread(number, &pace));
    }
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    Spent {
        wall: Span::wall(spans.iter().copied()),
        cpu: spans.iter().map(|span| span.cpu).sum(),
    }
}
