//! `slab`, the experiment of 2008: a socket's objects, alone and with eight tasks at once, where
//! their time goes, and how long the slowest allocations take. Each round is a cell: every heap has
//! its turns in it, each in a process of its own. What a turn is, is that of
//! `brickyard bench slab`.
//!
//! `pair` is an allocation and a free as a task sees them by the clock on the wall: with eight
//! tasks on fewer CPUs its waiting for a CPU is in it, alike for all heaps. `cpu` is the same on a
//! CPU. `zeroing` and `rest` are what `cpu` is made of; `masking` would come on top.

use std::collections::HashMap;

use brickyard_report::Metric;

use crate::raw::Raw;

use crate::cell::Cell;
use crate::cells::rows::Of;
use crate::cells::timed::{FEW, Round, Timed};
use brickyard_bench::slab::crowd::Clock;
use brickyard_bench::slab::objects::Shape;
use brickyard_bench::slab::socket::{CPU, SEEN};
use brickyard_bench::slab::turn;
use brickyard_bench::slab::work::{Work, Workload};

const HEAPS: [&str; 4] = ["slqb-2008", "brickyard-pinned", "brickyard", "system"];

/// The time that a sample of `socket` takes about, in microseconds; there are three in a turn.
/// Eight tasks on two CPUs take four times as long.
const SOCKET_US: u64 = 10_000;

/// The same for `tail`: a stretch then has 100,000 allocations, of which ten are slower than the
/// last percentile.
const TAIL_US: u64 = 20_000;

/// What a turn does.
#[derive(Debug)]
struct Task {
    workload: &'static str,
    work: Work,
    metrics: &'static [Told],
}

/// A metric, and what the turn's process calls it.
type Told = (Metric<'static>, &'static str);

const SOCKET: [Told; 5] = [
    (Metric::lower("pair", "ns"), SEEN),
    (Metric::lower("cpu", "ns"), CPU),
    (Metric::lower("zeroing", "ns"), "zeroing"),
    (Metric::lower("masking", "ns"), "masking"),
    (Metric::lower("rest", "ns"), "rest"),
];

/// Of the slow calls alone: what most of them take, also the slowest in a hundred, is less than a
/// step of the time stamp counter or two.
const TAIL: [Told; 2] = [
    (Metric::lower("p99.9", "cycles"), "p99.9"),
    (Metric::lower("p99.99", "cycles"), "p99.99"),
];

const fn work(workload: Workload, threads: usize, sample_us: u64) -> Work {
    Work {
        workload,
        threads,
        batch: 1,
        size: Shape::LEAST,
        live: workload.live(),
        sample_us,
        clock: Clock::Cpu,
    }
}

const TASKS: [Task; 3] = [
    Task {
        workload: "socket threads-1",
        work: work(Workload::Socket, 1, SOCKET_US),
        metrics: &SOCKET,
    },
    Task {
        workload: "socket threads-8",
        work: work(Workload::Socket, 8, SOCKET_US),
        metrics: &SOCKET,
    },
    Task {
        workload: "tail size-64",
        work: Work {
            size: 64,
            ..work(Workload::Tail, 1, TAIL_US)
        },
        metrics: &TAIL,
    },
];

pub(super) fn cells() -> Vec<Cell> {
    let timed = Timed {
        name: "slab.host.heaps",
        quick: FEW,
        seconds: 2.3,
        work: rows,
    };
    timed.cells()
}

/// Each heap once at each task.
fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let mut rows = Vec::new();
    for task in &TASKS {
        let said = round.turns(task.workload, 1, &HEAPS, |heap| turn(heap, &task.work))?;
        for (heap, said) in said {
            rows.extend(told(&round.of(task.workload, heap), task, &said));
        }
    }
    Ok(rows)
}

/// The rows of a turn: none of what this machine cannot tell (masking and the time stamp counter
/// are those of x86-64).
fn told(of: &Of<'_>, task: &Task, said: &HashMap<String, f64>) -> Vec<Raw> {
    let row = |(metric, name): &Told| said.get(*name).map(|&value| of.row(metric, value));
    task.metrics.iter().filter_map(row).collect()
}
