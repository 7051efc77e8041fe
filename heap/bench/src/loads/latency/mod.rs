//! How long single operations take, in the worst case too: a mixed load for a given time, of which
//! each `malloc`, each first write to the memory, and each `free` is timed by itself.
//!
//! | file | contents |
//! |---|---|
//! | `mix.rs` | the load |
//! | `record.rs` | the times of one thread |
//! | `histogram.rs` | times by their number |
//! | `usage.rs` | what the system counts |
//!
//! All memory of the measurement itself is made before, by the same `malloc`.

mod histogram;
#[allow(unsafe_code, reason = "it is memory")]
mod mix;
mod record;
#[allow(unsafe_code, reason = "it asks the system by calls of the C library")]
pub(crate) mod usage;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, Write};
use std::thread;
use std::time::Instant;

use brickyard_measure::ticks::Ticks;
use histogram::Histogram;
use mix::{Mix, Shared};
use record::{NOTHING, Record, TIMED, Times, timed};
use usage::{Usage, is_abandoned, memory_kib};

/// A block by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// Up to 32 KiB.
    Small,
    /// Up to 2 MiB.
    Medium,
    /// More.
    Large,
}

impl BlockKind {
    const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    /// The allocation.
    Malloc,
    /// The first write to each page.
    Touch,
    Free,
}

impl Timed {
    const ALL: [Self; 3] = [Self::Malloc, Self::Touch, Self::Free];

    const fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Touch => "touch",
            Self::Free => "free",
        }
    }
}

/// The percentiles, with their names.
pub const PERCENTILES: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

/// The largest time, and the largest while the thread kept its CPU.
pub const MAXIMA: [&str; 2] = ["max", "max-undisturbed"];

/// What is told of the whole process.
pub const OF_THE_PROCESS: [&str; 6] = [
    "operations",
    "seconds",
    "peak",
    "minor-faults",
    "major-faults",
    "preempted",
];

/// Allocations of each thread before any is timed: they fill its tables.
const BEFORE: u64 = 1 << 18;

/// Returns the names of what is timed, in the order of the report.
#[must_use]
pub fn timed_names() -> Vec<String> {
    told().into_iter().map(|(name, _)| name).collect()
}

/// Returns what is told: a name, and which of the times belong to it.
fn told() -> Vec<(String, Vec<usize>)> {
    let of_all_kinds = Timed::ALL.map(|step| {
        let all = BlockKind::ALL.map(|kind| timed(kind, step));
        (step.name().to_owned(), all.to_vec())
    });
    let of_a_kind = BlockKind::ALL.into_iter().flat_map(|kind| {
        [Timed::Malloc, Timed::Free].map(|step| {
            let name = format!("{}-{}", kind.name(), step.name());
            (name, vec![timed(kind, step)])
        })
    });
    let nothing = ("nothing".to_owned(), vec![NOTHING]);
    let told = of_all_kinds.into_iter().chain(of_a_kind);
    told.chain([nothing]).collect()
}

/// Runs the load with so many threads for so long, and writes what was found: lines of a name and a
/// value, times in ns. Ends early if standard input is a pipe that is closed at its other end.
///
/// # Errors
/// `out` cannot be written, or the processor has no time stamp counter.
pub(crate) fn run(threads: usize, time: Duration, out: &mut impl Write) -> io::Result<()> {
    let Some(ticks) = Ticks::new() else {
        let why = "single operations can be timed on x86-64 only";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    };
    let shared = (threads > 1).then(Shared::new);
    let stop = AtomicBool::new(false);
    let begun = (Instant::now(), ticks.now(), Usage::of_this_process());
    let work = |thread: usize| one(thread, ticks, time, shared.as_ref(), &stop);
    // A single thread is this one, so that the process has no other.
    let done: Vec<ThreadRecord> = if threads == 1 {
        vec![work(0)]
    } else {
        thread::scope(|scope| {
            let work = &work;
            let all: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || work(thread)))
                .collect();
            let joined = all.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    };
    let a_tick = begun.0.elapsed().as_nanos() as f64 / ticks.now().wrapping_sub(begun.1) as f64;
    report(&done, begun.2, a_tick, out)
}

/// What a thread has done.
#[derive(Debug)]
struct ThreadRecord {
    times: Vec<Times>,
    allocations: u64,
    time: Duration,
    /// The counts of the process when the thread began to measure.
    begun: Usage,
    /// And when it had ended, with its blocks still live.
    ended: Usage,
}

/// The work of one thread.
fn one(
    thread: usize,
    ticks: Ticks,
    time: Duration,
    shared: Option<&Shared>,
    stop: &AtomicBool,
) -> ThreadRecord {
    let mut mix = Mix::new(77 + thread as u64, shared);
    let mut record = Record::new(ticks);
    for _ in 0..BEFORE {
        mix.step(&mut record);
        record.commit_if_full();
    }
    record.forget();
    let (begun, usage) = (Instant::now(), Usage::of_this_process());
    let before = mix.allocations();
    loop {
        mix.step(&mut record);
        if !record.commit_if_full() {
            continue;
        }
        if thread == 0 && is_abandoned() {
            // Relaxed, both: the flag publishes nothing else.
            stop.store(true, Ordering::Relaxed);
        }
        if begun.elapsed() >= time || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    ThreadRecord {
        time: begun.elapsed(),
        allocations: mix.allocations() - before,
        begun: usage,
        ended: Usage::of_this_process(),
        times: record.into_times(),
    }
}

fn report(
    done: &[ThreadRecord],
    start: Usage,
    a_tick: f64,
    out: &mut impl Write,
) -> io::Result<()> {
    // From the last that began to the last that ended: what fills the tables is not counted.
    let latest = |of: fn(&ThreadRecord) -> Usage| {
        let all = done.iter().map(of);
        all.max_by_key(|usage| usage.minor_faults).unwrap_or(start)
    };
    let usage = latest(|of| of.ended).since(latest(|of| of.begun));
    let seconds = done.iter().map(|of| of.time).max().unwrap_or_default();
    let operations = done.iter().map(|of| of.allocations).sum::<u64>();
    let values = [
        operations as f64,
        seconds.as_secs_f64(),
        memory_kib("VmHWM").unwrap_or(0) as f64 / 1024.0,
        usage.minor_faults as f64,
        usage.major_faults as f64,
        usage.preempted as f64,
    ];
    for (name, value) in OF_THE_PROCESS.into_iter().zip(values) {
        writeln!(out, "{name} {value}")?;
    }
    for (name, which) in told() {
        let times = merged(done, &which);
        for (metric, ticks) in figures(&times) {
            writeln!(out, "{name}/{metric} {:.1}", ticks as f64 * a_tick)?;
        }
    }
    Ok(())
}

/// Adds up the times of all threads.
fn merged(done: &[ThreadRecord], which: &[usize]) -> Times {
    let mut sum = Times {
        all: Histogram::new(),
        undisturbed: None,
    };
    for of in done {
        debug_assert_eq!(of.times.len(), TIMED, "each thread times the same");
        for &timed in which {
            let times = &of.times[timed];
            sum.all.merge(&times.all);
            sum.undisturbed = sum.undisturbed.max(times.undisturbed);
        }
    }
    sum
}

/// Returns the metrics that there are enough times for.
fn figures(times: &Times) -> Vec<(&'static str, u64)> {
    let Some(max) = times.all.max() else {
        return Vec::new();
    };
    let percentiles = PERCENTILES.into_iter();
    let percentiles =
        percentiles.filter_map(|(name, percent)| Some((name, times.all.percentile(percent)?)));
    let maxima = MAXIMA.into_iter().zip([Some(max), times.undisturbed]);
    let maxima = maxima.filter_map(|(name, max)| Some((name, max?)));
    percentiles.chain(maxima).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(threads: usize) -> Vec<(String, f64)> {
        let mut out = Vec::new();
        run(threads, Duration::from_millis(300), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = |line: &str| {
            let (name, value) = line.split_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn everything_is_told_once() {
        if Ticks::new().is_none() {
            println!("skipped: this processor has no time stamp counter");
            return;
        }
        for threads in [1, 2] {
            let lines = lines(threads);
            let value = |of: &str| lines.iter().find(|(name, _)| name == of).map(|line| line.1);
            let mut names: Vec<_> = lines.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), lines.len());
            assert!(value("operations") > Some(1000.0) && value("peak") > Some(1.0));
            for name in ["malloc", "touch", "small-free", "medium-malloc", "nothing"] {
                let of = |metric: &str| value(&format!("{name}/{metric}"));
                let [half, undisturbed, max] = ["p50", "max-undisturbed", "max"].map(of);
                assert!(
                    half <= max && undisturbed <= max && max > Some(0.0),
                    "{name}"
                );
            }
        }
    }
}
