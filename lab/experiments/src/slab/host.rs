//! A socket's objects on this host, alone and with eight tasks at once: where their time goes, and
//! how long the slowest allocations take. Each round is a cell: every heap has its turns in it,
//! each in a process of its own.
//!
//! `pair` is the wall-clock time of an allocation and a free: with eight tasks on fewer CPUs it
//! includes the wait for a CPU, for all heaps alike. `cpu` is the same in CPU time. `zeroing` and
//! `rest` are the parts of `cpu`; `masking` would come on top.

use brickyard_bench::slab::{HEAPS, Loop, MOST_THREADS, Turn};
use brickyard_measure::objects::socket::{CPU, SEEN};
use brickyard_results::Metric;

use crate::cell::Cell;
use crate::cells::timed::{Round, TimedExperiment};
use crate::experiment::Parameter;
use crate::raw::Raw;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// Rounds of a quick run; nothing published is judged by them.
const QUICK_ROUNDS: u32 = 4;

/// What can be set on this host.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "load",
        "socket,tail",
        "what is done with objects: socket, those of a socket; tail, the slowest allocations of 64 bytes, by one thread (x86-64)",
    ),
    Parameter::new(
        "config",
        "slqb-2008,brickyard-pinned,system",
        "heaps, the first is the baseline: SLQB, the library's slabs as a kernel has them, the C library's malloc",
    ),
    Parameter::new(
        "threads",
        "1,8",
        "numbers of threads that open sockets at once, 1 to 63",
    ),
    Parameter::new(
        "sample-us",
        "auto",
        "approximate time of a sample, in us, at most a second; auto: 10000 of a socket, of which there are three in a turn, 20000 of the tail, which has 100,000 allocations then",
    ),
];

/// Threads of the reproduction: the document's tasks.
const THREADS: [usize; 2] = [1, 8];

/// The longest sample: a tail of it has 25 million allocations, and each a number.
const MOST_SAMPLE_US: usize = 1_000_000;

/// A metric, and its name in the output of the turn's process.
type TurnMetric = (Metric<'static>, &'static str);

const SOCKET: [TurnMetric; 5] = [
    (Metric::lower("pair", "ns"), SEEN),
    (Metric::lower("cpu", "ns"), CPU),
    (Metric::lower("zeroing", "ns"), "zeroing"),
    (Metric::lower("masking", "ns"), "masking"),
    (Metric::lower("rest", "ns"), "rest"),
];

/// The slowest calls only: the median and even the 99th percentile are below one or two steps of
/// the time stamp counter.
const TAIL: [TurnMetric; 2] = [
    (Metric::lower("p99.9", "cycles"), "p99.9"),
    (Metric::lower("p99.99", "cycles"), "p99.99"),
];

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let at_most = |name, value, most| match value > most {
        true => Err(wrong(name, format_args!("it must be at most {most}"))),
        false => Ok(()),
    };
    let threads = settings.threads("threads", || THREADS.to_vec())?;
    for &threads in &threads {
        at_most("threads", threads, MOST_THREADS)?;
    }
    let mut turns = turns(&settings.list::<Loop>("load")?, &threads);
    if !settings.is_auto("sample-us") {
        let sample_us = settings.count("sample-us")?;
        at_most("sample-us", sample_us, MOST_SAMPLE_US)?;
        turns
            .iter_mut()
            .for_each(|turn| turn.sample_us = sample_us as u64);
    }
    let heaps = settings.named("config", &HEAPS, |name| name)?;
    Ok(timed(turns, heaps).rounds(settings.runs))
}

pub(super) fn cells() -> Vec<Cell> {
    timed(turns(&[Loop::Socket, Loop::Tail], &THREADS), HEAPS.to_vec()).cells()
}

/// Returns these loops, the sockets with each number of threads.
fn turns(loops: &[Loop], threads: &[usize]) -> Vec<Turn> {
    let turn = |of, threads, sample_us| Turn {
        of,
        threads,
        sample_us,
    };
    let of_loop = |of: &Loop| -> Vec<Turn> {
        match of {
            // Three samples. Eight tasks on two CPUs take four times as long.
            Loop::Socket => threads
                .iter()
                .map(|&threads| turn(*of, threads, 10_000))
                .collect(),
            // 100,000 allocations, of which ten are slower than the last percentile.
            Loop::Tail => vec![turn(*of, 1, 20_000)],
        }
    };
    loops.iter().flat_map(of_loop).collect()
}

/// Returns rounds in which each heap has each of these turns once.
fn timed(
    turns: Vec<Turn>,
    heaps: Vec<&'static str>,
) -> TimedExperiment<impl Fn(Round<'_>) -> anyhow::Result<Vec<Raw>> + Clone + Send + Sync + 'static>
{
    let of_threads = |turn: &Turn| turn.sample_us * turn.threads as u64;
    let sampled = turns.iter().map(of_threads).sum::<u64>() * heaps.len() as u64;
    TimedExperiment {
        name: "slab.host.heaps",
        quick: QUICK_ROUNDS,
        // Those of the reproduction sample for 0.33 s.
        seconds: 2.3 * (sampled as f64 / 330_000.0),
        work: move |mut round: Round<'_>| {
            let mut rows = Vec::new();
            for turn in &turns {
                let (workload, metrics) = match turn.of {
                    Loop::Socket => (format!("socket threads-{}", turn.threads), &SOCKET[..]),
                    Loop::Tail => ("tail size-64".to_owned(), &TAIL[..]),
                };
                let taken = round.turns(&workload, 1, &heaps, |heap| turn.in_a_process(heap))?;
                for (heap, values) in taken.in_order_of(&heaps) {
                    let template = round.template(&workload, heap);
                    // What this machine cannot measure is not there: masking and the time stamp
                    // counter are measured on x86-64 only.
                    rows.extend(metrics.iter().filter_map(|(metric, name)| {
                        Some(template.row(metric, *values.get(*name)?))
                    }));
                }
            }
            Ok(rows)
        },
    }
}
