//! A socket's objects on this host, alone and with eight tasks at once: where their time goes, and
//! how long the slowest allocations take. Each round is a cell: every heap has its turns in it,
//! each in a process of its own.
//!
//! `pair` is the wall-clock time of an allocation and a free: with eight tasks on fewer CPUs it
//! includes the wait for a CPU, for all heaps alike. `cpu` is the same in CPU time. `zeroing` and
//! `rest` are the parts of `cpu`; `masking` would come on top.

use std::collections::HashMap;

use brickyard_results::Metric;

use crate::raw::Raw;

use crate::cell::Cell;
use crate::cells::rows::RowTemplate;
use crate::cells::timed::{Round, TimedExperiment};
use brickyard_bench::slab::{Loop, Turn};
use brickyard_measure::objects::socket::{CPU, SEEN};

const HEAPS: [&str; 3] = ["slqb-2008", "brickyard-pinned", "system"];

/// Rounds of a quick run; nothing published is judged by them.
const QUICK_ROUNDS: u32 = 4;

/// Roughly how many microseconds a sample of `socket` takes; there are three in a turn. Eight tasks
/// on two CPUs take four times as long.
const SOCKET_US: u64 = 10_000;

/// The same for `tail`: a sample then has 100,000 allocations, of which ten are slower than the
/// last percentile.
const TAIL_US: u64 = 20_000;

/// What a turn does.
#[derive(Debug)]
struct Task {
    workload: &'static str,
    of: Loop,
    threads: usize,
    sample_us: u64,
    metrics: &'static [TurnMetric],
}

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

const TASKS: [Task; 3] = [
    Task {
        workload: "socket threads-1",
        of: Loop::Socket,
        threads: 1,
        sample_us: SOCKET_US,
        metrics: &SOCKET,
    },
    Task {
        workload: "socket threads-8",
        of: Loop::Socket,
        threads: 8,
        sample_us: SOCKET_US,
        metrics: &SOCKET,
    },
    Task {
        workload: "tail size-64",
        of: Loop::Tail,
        threads: 1,
        sample_us: TAIL_US,
        metrics: &TAIL,
    },
];

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "slab.host.heaps",
        quick: QUICK_ROUNDS,
        seconds: 2.3,
        work: rows,
    };
    timed.cells()
}

/// Runs each heap once on each task.
fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let mut rows = Vec::new();
    for task in &TASKS {
        let turns = round.turns(task.workload, 1, &HEAPS, |heap| {
            let turn = Turn {
                heap,
                of: task.of,
                threads: task.threads,
                sample_us: task.sample_us,
            };
            turn.in_a_process()
        })?;
        for (heap, values) in turns {
            let template = round.template(task.workload, heap);
            rows.extend(turn_rows(&template, task, &values));
        }
    }
    Ok(rows)
}

/// Returns the rows of a turn, without those that this machine cannot measure (masking and the time
/// stamp counter are measured on x86-64 only).
fn turn_rows(template: &RowTemplate<'_>, task: &Task, values: &HashMap<String, f64>) -> Vec<Raw> {
    let row = |(metric, name): &TurnMetric| {
        let value = values.get(*name)?;
        Some(template.row(metric, *value))
    };
    task.metrics.iter().filter_map(row).collect()
}
