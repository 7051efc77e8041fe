//! Threads that do the same thing at the same time, and how long they all take.
//!
//! A sample is the median of a few repeats. In each, every thread warms up with an eighth of its
//! steps, waits for all the others, and does its steps; the time is from when the first began to
//! when the last was done, or, by the other clock, what all of them spent on a CPU. How many steps
//! fill the time that a sample is given is found out first, which warms up too.

use core::time::Duration;
use std::sync::{Barrier, Mutex, PoisonError};

use crate::choice::choices;
use crate::clock::Span;
use crate::side_by_side::cores;
use crate::together::together;

/// How often a sample is repeated.
const REPEATS: u32 = 5;

choices! {
    /// What time is measured.
    pub enum Clock {
        /// That of the wall: all that delays a thread counts, other programs too.
        Wall = "wall",
        /// What threads spend on a CPU: other programs do not count, nor does waiting asleep for a
        /// lock.
        Cpu = "cpu",
    }
}

/// What a crowd spent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// From the first one's beginning to the last one's end.
    pub(crate) wall: Duration,
    /// All of them together on a CPU.
    cpu: Duration,
}

/// What a step of one thread took, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// As a thread sees it, by the clock on the wall: where there are more threads than CPUs, its
    /// waiting for a CPU is in it.
    pub(crate) seen: f64,
    /// On a CPU.
    pub(crate) cpu: f64,
}

impl Step {
    /// What it cost a CPU, by this clock. Threads beyond the CPUs wait for each other, which is not
    /// counted.
    pub(crate) fn cost(&self, clock: Clock, threads: usize) -> f64 {
        let cpus = cores();
        match clock {
            Clock::Wall => self.seen * cpus.min(threads) as f64 / threads as f64,
            Clock::Cpu => self.cpu,
        }
    }
}

/// What a thread is told: how many steps, and when to begin.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    steps: u64,
    start: &'a Barrier,
    spans: &'a Mutex<Vec<Span>>,
}

impl Pace<'_> {
    /// Calls `work` with the number of steps to do, twice: to warm up, and, once all threads are
    /// there, to measure.
    pub(crate) fn run(&self, mut work: impl FnMut(u64)) {
        work(self.steps / 8 + 1);
        self.start.wait();
        let span = Span::of(|| work(self.steps));
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push(span);
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

/// What a step of one of so many threads costs a CPU, in ns, by this clock: see [`step`].
pub(crate) fn ns_a_step(
    threads: usize,
    need: Need,
    (least, clock): (Duration, Clock),
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> f64 {
    step(threads, need, least, thread).cost(clock, threads)
}

/// What a step of one of so many threads takes: by either clock the median of several repeats.
/// `thread` is run on each thread with its number, and does its steps by [`Pace::run`]. A single
/// thread is the one that calls this. `least` is the time that one CPU is given for all repeats.
pub(crate) fn step(
    threads: usize,
    need: Need,
    least: Duration,
    thread: impl Fn(usize, &Pace<'_>) + Sync,
) -> Step {
    let share = least / REPEATS;
    let steps = match need {
        // One thread alone is found out about more surely than many that wait for each other to be
        // scheduled.
        Need::Nobody => steps_in(share, 1, |steps| time(1, steps, &thread).wall),
        // To begin with, enough steps for what the threads wait for each other to be little of it.
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
    Step {
        seen: median(|spent| spent.wall),
        cpu: median(|spent| spent.cpu) / threads as f64,
    }
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
pub(crate) fn time(threads: usize, steps: u64, thread: impl Fn(usize, &Pace<'_>) + Sync) -> Spent {
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
