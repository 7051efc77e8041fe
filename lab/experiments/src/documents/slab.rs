//! Dumazet 2008: `socketallocbench` on Piggin's SLQB, and where its time goes.

mod words;

use brickyard_report::plot::Scale;
use brickyard_workload::printed::rows;

use super::build::{
    Row, Today, axis, columns, curve_over_names, directions, finding, gmean, heads, line, mean,
    names, summary, times, word,
};
use crate::data::Key;
use crate::document::{Claim, Document, Figure, Finding, Piece, Plot, Statistic, Table};

const EXPERIMENT: &str = "slab";
pub(super) const SLQB: &str = "slqb-2008";
/// The heap that the document is about, then the others.
const HEAPS: [&str; 4] = ["slqb-2008", "system", "brickyard-pinned", "brickyard"];
const PERCENTILES: [&str; 2] = ["p99.9", "p99.99"];

fn socket(threads: u32, heap: &str, metric: &str) -> Key {
    let workload = format!("socket threads-{threads}");
    Key::new(EXPERIMENT, "host", &workload, heap, metric)
}

/// Returns the key of the CPU time of a socket's objects, with one task.
pub(super) fn alone(heap: &str) -> Vec<Key> {
    vec![socket(1, heap, "cpu")]
}

fn tail(heap: &str, metric: &str) -> Key {
    Key::new(EXPERIMENT, "host", "tail size-64", heap, metric)
}

pub(super) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "SLQB, and where an allocation's time goes",
        source: "Eric Dumazet, \"Re: [rfc][patch] SLQB slab allocator\", 12 December 2008, on Nick Piggin's patch",
        by: "Dumazet 2008",
        asked: words::ASKED,
        claimed: words::CLAIMED,
        decides: words::DECIDES,
        findings: findings(),
        mistakes: &words::MISTAKES,
        tables: vec![time(), parts(), instructions(), symbols()],
        today: today(),
        plots: plots(),
    }
}

fn time() -> Table {
    let alone = socket(1, SLQB, "pair");
    let eight = socket(8, SLQB, "pair");
    // Eight tasks share the CPUs of this host, so wall-clock time shows how many CPUs it has: the
    // direction is judged by CPU time.
    let cpu = Figure::mean(socket(8, SLQB, "cpu")).against(socket(1, SLQB, "cpu"));
    let cpu = cpu.printed("1.669").judged(1.285 / 1.669, Claim::Untested);
    Table {
        id: "slab-time".to_owned(),
        title: "time ./socketallocbench (published: seconds; measured: ns for an allocation and its free)".to_owned(),
        about: words::TIME.to_owned(),
        head: vec![columns(&["real", "user (not modelled)", "sys (not modelled)", "CPU time of one task (user + sys, over the tasks)"])],
        lines: vec![
            line(
                "alone",
                vec![
                    Some(Figure::mean(alone).printed("1.300")),
                    Some(Figure::not_modelled("0.078")),
                    Some(Figure::not_modelled("1.207")),
                    Some(Figure::mean(socket(1, SLQB, "cpu")).printed("1.285")),
                ],
            ),
            line(
                "-n 8",
                vec![
                    Some(Figure::mean(eight).printed("1.686")),
                    Some(Figure::not_modelled("0.614")),
                    Some(Figure::not_modelled("12.737")),
                    Some(cpu),
                ],
            ),
        ],
    }
}

fn parts() -> Table {
    let share = |metric| {
        Figure::compared(
            Statistic::Share,
            socket(1, SLQB, metric),
            socket(1, SLQB, "cpu"),
        )
        .decimals(1)
    };
    let of = |head, samples, printed, metric| {
        let cells = vec![
            Some(Figure::not_modelled(samples)),
            Some(share(metric).printed(printed)),
        ];
        line(head, cells)
    };
    Table {
        id: "slab-parts".to_owned(),
        title: "Inside kmem_cache_alloc: where its samples fall".to_owned(),
        about: words::PARTS.to_owned(),
        head: vec![columns(&["samples (added up)", "% of kmem_cache_alloc"])],
        lines: vec![
            of("zeroing the object (rep stos)", "74845", "53.2", "zeroing"),
            of(
                "masking interrupts (pushf, cli, popf, and the instruction after each)",
                "39998",
                "28.4",
                "masking",
            ),
            of("the rest", "25816", "18.4", "rest"),
        ],
    }
}

fn instructions() -> Table {
    let lines = rows(include_str!("slab/instructions.csv")).into_iter();
    let lines = lines.map(|[samples, percent, address, text, part]| {
        let cells = [samples, percent].map(|text| Some(Figure::not_modelled(text)));
        // Zeroing: `rep stos`. Masking: `pushf`, `cli`, `popf`, and the instruction after each,
        // where the samples of a slow one fall.
        let part = match part {
            "rest" => String::new(),
            part => format!(": {part}"),
        };
        line(format!("{address} {text}{part}"), cells.into())
    });
    Table {
        id: "slab-instructions".to_owned(),
        title: "kmem_cache_alloc, the instructions that have samples".to_owned(),
        about: words::INSTRUCTIONS.to_owned(),
        head: vec![columns(&["samples", "% of all"])],
        lines: lines.collect(),
    }
}

fn symbols() -> Table {
    let lines = rows(include_str!("slab/symbols.csv")).into_iter();
    let lines = lines.map(|[cells @ .., symbol]: [&str; 5]| {
        let cells: [&str; 4] = cells;
        let cells = cells.map(|text| Some(Figure::not_modelled(text)));
        line(symbol, cells.into())
    });
    Table {
        id: "slab-symbols".to_owned(),
        title: "Profile of the whole kernel, by symbol (not modelled)".to_owned(),
        about: words::SYMBOLS.to_owned(),
        head: vec![columns(&["samples", "cum. samples", "%", "cum. %"])],
        lines: lines.collect(),
    }
}

fn today() -> Vec<Table> {
    let today = Today {
        experiment: EXPERIMENT,
        configs: &HEAPS,
        beside: Statistic::Gain,
    };
    let rows = [1, 8].into_iter().flat_map(|threads| {
        [
            ("wall clock, ns per pair", "pair"),
            ("CPU time of one task, ns per pair", "cpu"),
            ("zeroing, ns of it", "zeroing"),
            ("the rest, ns", "rest"),
            ("masking would add, ns", "masking"),
        ]
        .map(|(head, metric)| {
            let workload = format!("socket threads-{threads}");
            let tasks = if threads == 1 { "alone" } else { "8 tasks" };
            Row::new(format!("{tasks}: {head}"), "host", workload, metric).decimals(2)
        })
    });
    vec![
        today.table(
            "slab-today",
            "A socket's objects, every heap",
            words::TODAY,
            rows.collect(),
        ),
        tails(),
    ]
}

/// Returns the table of the slowest calls of each round. One round in which the host was busy with
/// something else would dominate a mean, so it has the median and the largest over the rounds.
fn tails() -> Table {
    let columns = HEAPS.map(|_| [("median", 1), ("largest", 1)]).concat();
    let lines = PERCENTILES.map(|metric| {
        let cells = HEAPS.into_iter().flat_map(|heap| {
            [Statistic::Median, Statistic::Max]
                .map(|statistic| Some(Figure::new(statistic, tail(heap, metric)).decimals(0)))
        });
        line(format!("{metric}, cycles"), cells.collect())
    });
    Table {
        id: "slab-tail".to_owned(),
        title: "The slowest calls: objects of 64 bytes".to_owned(),
        about: words::TAIL.to_owned(),
        head: vec![heads(&HEAPS.map(|heap| (heap, 2))), heads(&columns)],
        lines: lines.into(),
    }
}

fn plots() -> Vec<Plot> {
    let pairs = HEAPS
        .map(|heap| curve_over_names(heap, [1, 8].map(|threads| socket(threads, heap, "cpu"))));
    vec![Plot {
        id: "slab-pair".to_owned(),
        title: "A socket's objects: an allocation and its free".to_owned(),
        about: "CPU time of one task, alone and together with seven others.".to_owned(),
        x: names("tasks", &["alone", "8 tasks"]),
        y: axis("ns per pair", Scale::Linear),
        curves: pairs.into(),
    }]
}

fn findings() -> Vec<Finding> {
    let share = |metric| {
        Piece::Figure(
            Figure::compared(
                Statistic::Share,
                socket(1, SLQB, metric),
                socket(1, SLQB, "cpu"),
            )
            .decimals(0),
        )
    };
    let slowest = |heap: &str| {
        Piece::Figure(Figure::new(Statistic::Median, tail(heap, "p99.99")).decimals(0))
    };
    let cpu = |threads, heap: &str| vec![socket(threads, heap, "cpu")];
    let words = ["faster than alone", "slower than alone", "as fast as alone"];
    vec![
        summary(
            "In the rebuilt SLQB zeroing takes {} % of an allocation and its free, and masking interrupts would add {} % on top (CPU time on this host; published: 53 and 28 % of the allocation alone). A socket's objects take {} ns per pair with SLQB and {} with `brickyard`, {} times the speed.",
            [
                share("zeroing"),
                share("masking"),
                mean(socket(1, SLQB, "cpu"), 1),
                mean(socket(1, "brickyard", "cpu"), 1),
                times(socket(1, "brickyard", "cpu"), socket(1, SLQB, "cpu"), 2),
            ],
        ),
        finding(
            "With SLQB each of eight tasks is {}: {} times the speed (published: 0.77 times); with `brickyard` it has {} times (CPU time of a task on this host, whose CPUs the eight share).",
            [
                word(cpu(8, SLQB), cpu(1, SLQB), words),
                gmean(cpu(8, SLQB), cpu(1, SLQB), 2),
                gmean(cpu(8, "brickyard"), cpu(1, "brickyard"), 2),
            ],
        ),
        finding(
            "In the median round one allocation in ten thousand takes {} cycles or more with SLQB and {} with `brickyard`.",
            [slowest(SLQB), slowest("brickyard")],
        ),
        directions(),
    ]
}
