//! Gorman 2013: the cost of a page with per-CPU lists and with magazines (`pagealloc`).

use core::ops::RangeInclusive;
use std::sync::LazyLock;

use brickyard_pictures::plot::Scale;
use brickyard_results::Better;
use brickyard_workload::printed::rows;

use crate::data::Key;
use crate::document::{Document, Finding, Mistake, Plot, Table};
use crate::documents::build::{
    PrintedMeans, Row, Today, axis, curve, curve_over_names, directions, finding, gmean, names,
    printed_speedup, summary,
};
use crate::documents::magazines;

/// What was timed, the batch, `vanilla`, `magazine`, and the gain in percent.
type Printed = (&'static str, u32, &'static str, &'static str, &'static str);

/// The 45 lines of the table of 2013, in its order.
static LINES: LazyLock<Vec<Printed>> = LazyLock::new(|| {
    let rows = rows(include_str!("document/printed.csv")).into_iter();
    rows.map(|[what, batch, vanilla, magazine, gain]| {
        let batch = batch.parse().expect("a number of pages");
        (what, batch, vanilla, magazine, gain)
    })
    .collect()
});

const EXPERIMENT: &str = "pagealloc";
const METATM: &str = "metatm-2007";
/// The document's baseline (Linux 3.9), its proposal, then the others.
const CONFIGS: [&str; 7] = [
    "list-2007",
    "magazine-2013",
    "vanilla",
    "two-kinds-2005",
    "zone-2007",
    "combined-2007",
    "brickyard",
];
const STORMS: [&str; 4] = ["list-2007", "magazine-2013", "vanilla", "brickyard"];
const STORM_CPUS: [u32; 3] = [1, 8, 32];
const DRAINED: [&str; 3] = ["list-2007", "magazine-2013", "brickyard"];
const DRAINED_CPUS: [u32; 4] = [1, 4, 8, 32];
const PERCENTILES: [&str; 4] = ["alloc-p50", "alloc-p90", "alloc-p99", "alloc-p99.9"];
/// The batch of the document's one bad sample: by its own figures 666 cycles between neighbours of
/// 427 and 342.
const BAD_SAMPLE: u32 = 8;
/// The largest batch that fits into the lists of the document's kernel, 186 pages.
const FITS: u32 = 128;

const ASKED: &str = "Linux keeps lists of free pages for each CPU, which must be drained by interrupting that CPU. Can two lists that all CPUs share, each behind a spinlock (\"magazines\"), replace them? A benchmark allocates a batch of pages and frees it, and counts cycles per page. \
    The document says: magazines cost 3 to 17 % more for batches of up to 128 pages (except for one bad sample) and 9 to 18 % less from 256 pages on. Here `list-2007` stands in for its baseline, Linux 3.9: per-CPU lists, and grouping by mobility, as there.";

const CLAIMED: &str = "Magazines that all CPUs share cost 3 to 17 % more than per-CPU lists for batches of up to 128 pages, and 9 to 18 % less from 256 on.";

const DECIDES: &str = "Timed on this host, in rounds: the interval of the ratio. A busy host leaves much of it undecided.";

const TABLE: &str = "Timed on this host: one thread allocates and frees a batch of single pages, with the library's own per-CPU lists (`list-2007`, with the lists of Linux 3.9: 31 and 186 pages) and magazines. The document has cycles inside a kernel, with a profiler running; here it is nanoseconds in a process, \
    without a kernel's checks. A process has no interrupts to mask, so each mask saves and restores the processor's flags as a kernel's does (all of `pushf; cli; popf` but `cli`, which a process may not execute): lists pay that at each allocation and each free, magazines only at the zone lock. So gains can be compared, cycles cannot. The two mistakes of its benchmark are not repeated. The crossover of lists and magazines is at batches larger than the lists. Which of the two is cheaper below it is a matter of a mask against an atomic instruction, and so of the processor: a table below has both designs without the masks. Batches of 8 are not judged: the published figures of the baseline there are one bad sample. The totals are the sums of the lines of allocations and frees, so the 42 directions that are judged are not all independent.";

const TODAY: &str = "Nanoseconds per page on this host, with masks of interrupts that cost what they cost a kernel, and the gain over `list-2007` (positive is better). All configurations took turns in each round.";

const UNMASKED: &str = "The totals again, where masking interrupts costs nothing, as it does in a process. The difference to the tables above is what masks cost, and so how much of the comparison depends on them.";

const STORM: &str = "All CPUs of the simulated machine of 2007 allocate and free pages and do nothing else. Cycles that a single allocation took, and pages per second of all CPUs together. No document has figures for it: a mean hides the slowest allocations.";

const DRAINS: &str = "The first reason that the mail gives: \"IPI overhead for global drains\". It has no figure for it. All CPUs of the simulated machine of 2007 fault in pages and free them again, and one more drains all caches every millisecond. Per-CPU lists interrupt each CPU that holds pages, one after the other (Linux interrupts all and then waits, so its drain ends earlier and disturbs the others as much); magazines and the zone are locked. `brickyard` does as lists do, as a task on each CPU; the table below has its other way, which interrupts nobody. \
    Lost are the cycles that all other CPUs together take longer for the same work, for each drain: the interruption, refills after it, and that the pages of a refill are not in the CPU's cache as its own were. So a design loses more where its caches keep more of a CPU's own pages. The simulated machine charges two task switches for a call to another CPU, 4,000 cycles, more than the entry and exit of an interrupt.";

const LENT: &str = "`brickyard` with slots that have a lock of their own: a drainer enters them while their CPU goes on, and that CPU waits if it wants to enter meanwhile. Each entry of the own CPU then has an atomic instruction.";

fn drains(cpus: u32, lent: &str, config: &str, metric: &str) -> Key {
    let workload = format!("drains cpus-{cpus}{lent}");
    Key::new(EXPERIMENT, METATM, &workload, config, metric)
}

/// Returns the lines of the table of drains.
fn drain_rows() -> Vec<Row> {
    let of = |cpus: u32| {
        let metrics = [
            ("a drain, cycles", "drain"),
            ("lost by the others for each drain, cycles", "lost"),
            ("allocation, p99.9 with drains, cycles", "alloc-p99.9"),
            ("allocation, p99.9 without, cycles", "alloc-p99.9-undrained"),
        ];
        metrics.map(|(words, metric)| {
            let workload = format!("drains cpus-{cpus}");
            Row::new(format!("{cpus} CPUs: {words}"), METATM, workload, metric).decimals(0)
        })
    };
    DRAINED_CPUS.into_iter().flat_map(of).collect()
}

/// Returns the lines of drains that enter the slots of other CPUs.
fn lent_rows() -> Vec<Row> {
    let of = |cpus: u32| {
        [("a drain", "drain"), ("lost by the others", "lost")].map(|(words, metric)| {
            let workload = format!("drains cpus-{cpus} lent");
            let head = format!("{cpus} CPUs, slots lent: {words}, cycles");
            Row::new(head, METATM, workload, metric).decimals(0)
        })
    };
    DRAINED_CPUS.into_iter().flat_map(of).collect()
}

fn key(what: &str, batch: u32, config: &str) -> Key {
    let workload = format!("order-0 batch-{batch}");
    Key::new(EXPERIMENT, "host", &workload, config, what)
}

fn storm(cpus: u32, config: &str, metric: &str) -> Key {
    let workload = format!("storm cpus-{cpus}");
    Key::new(EXPERIMENT, METATM, &workload, config, metric)
}

pub(crate) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "Magazines or per-CPU lists: the cost of a page",
        source: magazines::SOURCE,
        by: "Gorman 2013",
        asked: ASKED,
        claimed: CLAIMED,
        decides: DECIDES,
        findings: findings(),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables: vec![table()],
        today: today(),
        plots: plots(),
    }
}

fn table() -> Table {
    let lines = LINES.iter().map(|&(what, batch, vanilla, magazine, gain)| {
        let keys = ["list-2007", "magazine-2013"].map(|config| key(what, batch, config));
        let speedup = printed_speedup(Better::Lower, vanilla, magazine);
        let speedup = speedup.filter(|_| batch != BAD_SAMPLE);
        let head = format!("order-0 {what}-{batch}");
        magazines::line(head, keys, [vanilla, magazine, gain], speedup, 2)
    });
    Table {
        id: "pagealloc-2013".to_owned(),
        title: "pagealloc (published: cycles per page; measured: ns per page)".to_owned(),
        about: TABLE.to_owned(),
        head: magazines::head(),
        lines: lines.collect(),
    }
}

fn today() -> Vec<Table> {
    let batches = LINES.iter().map(|&(what, batch, ..)| {
        let workload = format!("order-0 batch-{batch}");
        Row::new(
            format!("order-0 {what}-{batch}, ns"),
            "host",
            workload,
            what,
        )
        .decimals(2)
    });
    let storms = STORM_CPUS.iter().flat_map(|cpus| {
        let workload = format!("storm cpus-{cpus}");
        let latency = PERCENTILES.map(|metric| {
            let words = metric.replace("alloc-", "allocation, ");
            let head = format!("{cpus} CPUs: {words}, cycles");
            Row::new(head, METATM, workload.clone(), metric).decimals(0)
        });
        let rate = Row::new(
            format!("{cpus} CPUs: millions of pages/s"),
            METATM,
            workload.clone(),
            "throughput",
        );
        latency
            .into_iter()
            .chain([rate.decimals(2).scaled(1e-6)])
            .collect::<Vec<_>>()
    });
    let all = Today::gains(EXPERIMENT, &CONFIGS);
    let few = Today::gains(EXPERIMENT, &STORMS);
    let of_document = Today::gains(EXPERIMENT, &CONFIGS[..2]);
    let drained = Today::gains(EXPERIMENT, &DRAINED);
    let lent = Today::gains(EXPERIMENT, &["brickyard"]);
    let unmasked = self::batches().map(|batch| {
        let head = format!("order-0 total-{batch}, ns");
        let workload = format!("order-0 batch-{batch} unmasked");
        Row::new(head, "host", workload, "total").decimals(2)
    });
    vec![
        all.table(
            "pagealloc-today",
            "pagealloc, every configuration",
            TODAY,
            batches.collect(),
        ),
        of_document.table(
            "pagealloc-unmasked",
            "pagealloc with masks that cost nothing",
            UNMASKED,
            unmasked.collect(),
        ),
        few.table(
            "pagealloc-storm",
            "When all CPUs allocate at once (simulated)",
            STORM,
            storms.collect(),
        ),
        drained.table(
            "pagealloc-drains",
            "What a global drain costs (simulated)",
            DRAINS,
            drain_rows(),
        ),
        lent.table(
            "pagealloc-drains-lent",
            "The same with slots that a drainer may enter (simulated)",
            LENT,
            lent_rows(),
        ),
    ]
}

/// Returns the batches, ascending.
fn batches() -> impl Iterator<Item = u32> {
    let totals = LINES.iter().filter(|(what, ..)| *what == "total");
    totals.map(|&(_, batch, ..)| batch)
}

/// Returns the keys of an allocation with its free, of all batches.
pub(crate) fn all_batches(config: &str) -> Vec<Key> {
    batches().map(|batch| key("total", batch, config)).collect()
}

fn plots() -> Vec<Plot> {
    let over_batches = CONFIGS.map(|config| {
        let points = batches().map(|batch| (f64::from(batch), key("total", batch, config)));
        curve(config, points.collect())
    });
    let latency = |cpus: u32| Plot {
        id: format!("pagealloc-latency-{cpus}"),
        title: format!(
            "How long one allocation takes when {cpus} CPUs allocate at once (simulated)"
        ),
        about: "The median, and the slowest of ten, of a hundred and of a thousand allocations."
            .to_owned(),
        x: names("of all allocations", &["median", "p90", "p99", "p99.9"]),
        y: axis("cycles", Scale::Log),
        curves: STORMS
            .map(|config| {
                curve_over_names(
                    config,
                    PERCENTILES.map(|metric| storm(cpus, config, metric)),
                )
            })
            .into(),
    };
    let throughput = STORMS.map(|config| {
        let at = |cpus| (f64::from(cpus), storm(cpus, config, "throughput"));
        curve(config, STORM_CPUS.map(at).into())
    });
    vec![
        Plot {
            id: "pagealloc-batch".to_owned(),
            title: "An allocation and its free, over the size of the batch".to_owned(),
            about: "Between 128 and 256 pages a batch no longer fits into per-CPU lists of 186."
                .to_owned(),
            x: axis("pages in a batch", Scale::Log),
            y: axis("ns per page, allocation and free", Scale::Log),
            curves: over_batches.into(),
        },
        latency(8),
        latency(32),
        Plot {
            id: "pagealloc-throughput".to_owned(),
            title: "Pages per second when all CPUs allocate at once (simulated)".to_owned(),
            about: "A flat curve means that CPUs wait for each other.".to_owned(),
            x: axis("CPUs", Scale::Log),
            y: axis("pages per second", Scale::Log),
            curves: throughput.into(),
        },
    ]
}

fn findings() -> Vec<Finding> {
    let of = |config: &str, which: RangeInclusive<u32>| -> Vec<Key> {
        let chosen = batches().filter(|batch| which.contains(batch));
        chosen.map(|batch| key("total", batch, config)).collect()
    };
    // Whether a batch fits into the lists of the document's kernel. The bad sample is in no mean.
    let tables = [table()];
    let printed = |which| PrintedMeans::of(&tables, &of("magazine-2013", which));
    let fits = printed(0..=FITS);
    let exceeds = printed(FITS + 1..=u32::MAX);
    let [small_mean, small_printed] = fits.means(2);
    let [large_mean, large_printed] = exceeds.means(2);
    let unmasked = |keys: Vec<Key>| -> Vec<Key> {
        let unmasked = |key: Key| Key {
            workload: format!("{} unmasked", key.workload),
            ..key
        };
        keys.into_iter().map(unmasked).collect()
    };
    let small = [
        "cheaper than per-CPU lists",
        "more expensive than per-CPU lists",
        "as expensive as per-CPU lists",
    ];
    let large = ["cheaper", "more expensive", "as expensive"];
    let wait = |cpus, config| crate::documents::build::mean(storm(cpus, config, "alloc-p99.9"), 0);
    let tail = |cpus: u32| {
        let words = format!(
            "When {cpus} simulated CPUs allocate at once, one allocation in a thousand takes {{}} cycles or more with lists, {{}} with magazines and {{}} with `brickyard`."
        );
        finding(
            &words,
            ["list-2007", "magazine-2013", "brickyard"].map(|config| wait(cpus, config)),
        )
    };
    vec![
        summary(
            "For batches up to 128 pages, which fit into the lists, magazines are {}: {} times the speed (published: {}); from 256 pages on they are {}: {} times (published: {}). This host, one thread; geometric means.",
            [
                fits.word(small),
                small_mean,
                small_printed,
                exceeds.word(large),
                large_mean,
                large_printed,
            ],
        ),
        finding(
            "Where masking interrupts costs nothing, as in a process, it is {} times up to 128 pages and {} times from 256 on: so much of the comparison is what a mask costs on this processor.",
            [0..=FITS, FITS + 1..=u32::MAX].map(|which| {
                let of = |config| unmasked(of(config, which.clone()));
                gmean(of("magazine-2013"), of("list-2007"), 2)
            }),
        ),
        finding(
            "`brickyard` allocates and frees a page at {} times the speed of per-CPU lists and {} times that of magazines (time on this host, geometric mean over all batches).",
            [
                gmean(all_batches("brickyard"), all_batches("list-2007"), 2),
                gmean(all_batches("brickyard"), all_batches("magazine-2013"), 2),
            ],
        ),
        tail(8),
        tail(32),
        finding(
            "While 32 simulated CPUs fault in pages, a global drain takes {} cycles with lists and costs the other CPUs {}; with magazines {} and {}; with `brickyard` {} and {}, or {} and {} where a drainer may enter other CPUs' slots.",
            DRAINED
                .into_iter()
                .map(|config| ("", config))
                .chain([(" lent", "brickyard")])
                .flat_map(|(lent, config)| {
                    ["drain", "lost"].map(|metric| {
                        crate::documents::build::mean(drains(32, lent, config, metric), 0)
                    })
                }),
        ),
        directions(),
    ]
}
