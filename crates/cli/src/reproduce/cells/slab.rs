//! `slab`, the experiment of 2008: a socket's objects, alone and with eight tasks at once, where their time goes, and how long the slowest allocations take. Each round is a cell: every heap has
//! its turns in it, each in a process of its own. What a turn is, is that of `brickyard bench slab`.
//!
//! `pair` is an allocation and a free as a task sees them by the clock on the wall: with eight tasks on fewer CPUs its waiting for a CPU is in it, alike for all heaps. `cpu` is the same on a CPU. `zeroing`
//! and `rest` are what `cpu` is made of; `masking` would come on top.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use brickyard_report::{Better, Metric};
use brickyard_reproduce::raw::{Kind, Raw};

use crate::bench::slab::crowd::Clock;
use crate::bench::slab::objects::Shape;
use crate::bench::slab::socket::{CPU, SEEN};
use crate::bench::slab::turn;
use crate::bench::slab::work::{Work, Workload};
use crate::reproduce::cell::{Cell, Context, Scale};
use crate::reproduce::cells::rows::{HOST, Of};

const HEAPS: [&str; 4] = ["slqb-2008", "brickyard-pinned", "brickyard", "system"];

/// Rounds, and how many of them are quick: what a signed-rank test needs to say something.
const ROUNDS: u32 = 15;
const QUICK_ROUNDS: u32 = 6;

/// The time that a sample of `socket` takes about, in microseconds; there are three in a turn. Eight tasks on two CPUs take four times as long.
const SOCKET_US: u64 = 10_000;

/// The same for `tail`: a stretch then has 100,000 allocations, of which ten are slower than the last percentile.
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
    (lower("pair", "ns"), SEEN),
    (lower("cpu", "ns"), CPU),
    (lower("zeroing", "ns"), "zeroing"),
    (lower("masking", "ns"), "masking"),
    (lower("rest", "ns"), "rest"),
];

const TAIL: [Told; 4] = [
    (lower("p50", "cycles"), "p50"),
    (lower("p99", "cycles"), "p99"),
    (lower("p99.9", "cycles"), "p99.9"),
    (lower("p99.99", "cycles"), "p99.99"),
];

const fn lower(name: &'static str, unit: &'static str) -> Metric<'static> {
    Metric {
        name,
        unit,
        better: Better::Lower,
    }
}

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
    (1..=ROUNDS).map(cell).collect()
}

fn cell(round: u32) -> Cell {
    Cell {
        name: format!("slab.host.heaps.{round}"),
        kind: Kind::Timed,
        scale: if round <= QUICK_ROUNDS {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds: 1.5,
        work: Box::new(move |context| Ok(rows(context, round)?.into())),
    }
}

/// Each heap once at each task; another one begins in each round. A new process has nothing that could be warmed up, but the files of the program, which have been read when this runs.
fn rows(mut context: Context<'_>, round: u32) -> anyhow::Result<Vec<Raw>> {
    let mut rows = Vec::new();
    for task in &TASKS {
        for place in 0..HEAPS.len() {
            if !context.follow.goes_on(0) {
                bail!("interrupted");
            }
            let heap = HEAPS[(place + round as usize) % HEAPS.len()];
            let said =
                turn(heap, &task.work).with_context(|| format!("{heap}, {}", task.workload))?;
            let of = Of {
                machine: HOST,
                workload: task.workload,
                config: heap,
                run: round,
            };
            rows.extend(told(&of, task, &said));
        }
    }
    Ok(rows)
}

/// The rows of a turn: none of what this machine cannot tell (masking and the time stamp counter are those of x86-64).
fn told(of: &Of<'_>, task: &Task, said: &HashMap<String, f64>) -> Vec<Raw> {
    let row = |(metric, name): &Told| said.get(*name).map(|&value| of.row(metric, value));
    task.metrics.iter().filter_map(row).collect()
}
