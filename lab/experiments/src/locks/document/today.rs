//! The same workloads under today's allocators, measurements that the paper does not have, and the
//! findings.

use super::words;
use super::{EXPERIMENT, METATM, XEON, key};
use brickyard_pictures::plot::Scale;

use crate::data::Key;
use crate::document::{Among, Finding, Outcome, Piece, Plot, Table};
use crate::documents::build::{
    PrintedMeans, Row, Today, axis, curve, curve_over_names, directions, finding, gmean, mean,
    names, summary, times, word,
};

/// The five lock policies, the baseline first.
const POLICIES: [&str; 5] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
];
/// The policies, and whole allocators on the same work.
const TODAY: [&str; 8] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
    "list-2007",
    "magazine-2013",
    "brickyard",
];
/// The workloads on the simulator.
const WORKLOADS: [&str; 7] = [
    "find", "pmake", "dpunish", "bonnie", "mab", "config", "kernel",
];
/// Those of the real machine's tables.
const ON_REAL: [&str; 6] = ["mab", "config", "objdump", "kernel-full", "kernel", "dd"];
/// Those that are repeated with computing that evicts no line.
const KEPT: [&str; 3] = ["mab", "objdump", "dd"];
const CPUS: [u32; 3] = [8, 16, 32];

pub(super) fn today() -> Vec<Table> {
    let policies = Today::gains(EXPERIMENT, &POLICIES);
    let whole = Today::gains(EXPERIMENT, &TODAY);
    let mut times = Vec::new();
    for workload in WORKLOADS {
        times.extend(CPUS.map(|cpus| {
            let head = format!("{workload}, {cpus} CPUs, ms");
            let of = format!("{workload} cpus-{cpus}");
            Row::new(head, METATM, of, "time").scaled(1000.0)
        }));
    }
    let on_real = ON_REAL.map(|workload| {
        let head = format!("{workload}, 8 CPUs, ms");
        Row::new(head, XEON, format!("{workload} cpus-8"), "time").scaled(1000.0)
    });
    let waits = WORKLOADS.iter().flat_map(|workload| {
        [
            ("CPUs waiting, %", "waiting"),
            ("wait p50, ns", "wait-p50"),
            ("wait p99, ns", "wait-p99"),
            ("wait p99.9, ns", "wait-p99.9"),
            ("hold p50, ns", "hold-p50"),
            ("hold p99.9, ns", "hold-p99.9"),
        ]
        .map(|(head, metric)| {
            let head = format!("{workload}: {head}");
            let decimals = if metric == "waiting" { 2 } else { 0 };
            Row::new(head, METATM, format!("{workload} cpus-32"), metric).decimals(decimals)
        })
    });
    let on_lock = ON_REAL.map(|workload| {
        let head = format!("{workload}: waiting or holding, %");
        Row::new(head, XEON, format!("{workload} cpus-8"), "locked").decimals(3)
    });
    let kept = KEPT.iter().flat_map(|workload| {
        [("evicts", ""), ("keeps", " kept-lines")].map(|(word, suffix)| {
            let head = format!("{workload}, computing {word} lines, ms");
            let of = format!("{workload} cpus-8{suffix}");
            Row::new(head, XEON, of, "time").scaled(1000.0).decimals(3)
        })
    });
    let patch = Today::gains(EXPERIMENT, &["hold", "release"]);
    let bursts = [1, 2].map(|threads| {
        let head = format!("bursts, {threads} threads, us a burst");
        Row::new(head, "host", format!("bursts threads-{threads}"), "time").decimals(2)
    });
    vec![
        whole.table(
            "locks-today",
            "The same workloads under the five policies and today's allocators (simulated)",
            words::TODAY,
            times,
        ),
        whole.table(
            "locks-today-real",
            "The same on the real machine of the document (simulated)",
            words::TODAY_REAL,
            on_real.into(),
        ),
        policies.table(
            "locks-waits",
            "Not in the document: waits and holds, on 32 CPUs (simulated)",
            words::WAITS,
            waits.collect(),
        ),
        policies.table(
            "locks-bound",
            "Not in the document: the time at the lock on the real machine (simulated)",
            words::BOUND,
            on_lock.into(),
        ),
        patch.table(
            "locks-evicted",
            "Not in the document: with and without eviction by computing (simulated)",
            words::EVICTED,
            kept.collect(),
        ),
        policies.table(
            "locks-threads",
            "The five policies with real threads",
            words::THREADS,
            bursts.into(),
        ),
    ]
}

pub(super) fn plots() -> Vec<Plot> {
    let over_cpus = |workload: &str| Plot {
        id: format!("locks-{workload}-over-cpus"),
        title: format!("`{workload}` over CPUs, by policy and allocator"),
        about: words::PLOT_CPUS.to_owned(),
        x: axis("CPUs", Scale::Log),
        y: axis("time, s of the simulated machine", Scale::Linear),
        curves: TODAY
            .map(|config| {
                let at = |cpus| (f64::from(cpus), key(METATM, workload, cpus, config, "time"));
                curve(config, CPUS.map(at).into())
            })
            .into(),
    };
    let waits = POLICIES.map(|config| {
        let metrics = ["wait-p50", "wait-p99", "wait-p99.9"];
        curve_over_names(
            config,
            metrics.map(|metric| key(METATM, "config", 32, config, metric)),
        )
    });
    let waiting = POLICIES.map(|config| {
        curve_over_names(
            config,
            WORKLOADS.map(|workload| key(METATM, workload, 8, config, "waiting")),
        )
    });
    vec![
        over_cpus("config"),
        over_cpus("bonnie"),
        Plot {
            id: "locks-wait".to_owned(),
            title: "How long a CPU waits for the lock: `config` on 32 CPUs".to_owned(),
            about: words::PLOT_WAIT.to_owned(),
            x: names("of all waits", &["median", "p99", "p99.9"]),
            y: axis("wait, ns", Scale::Log),
            curves: waits.into(),
        },
        Plot {
            id: "locks-waiting".to_owned(),
            title: "Time all CPUs wait for the lock, on 8 CPUs".to_owned(),
            about: words::PLOT_WAITING.to_owned(),
            x: names("workload", &WORKLOADS),
            y: axis("waiting, % of busy time", Scale::Log),
            curves: waiting.into(),
        },
    ]
}

/// Returns the keys of all workloads on all machines and numbers of CPUs.
fn all(config: &str) -> Vec<Key> {
    let mut keys = on_simulator(config);
    keys.extend(ON_REAL.map(|workload| key(XEON, workload, 8, config, "time")));
    keys
}

/// Returns the keys of all workloads on the simulator.
fn on_simulator(config: &str) -> Vec<Key> {
    let of = |workload| CPUS.map(|cpus| key(METATM, workload, cpus, config, "time"));
    WORKLOADS.into_iter().flat_map(of).collect()
}

pub(super) fn findings() -> Vec<Finding> {
    let words = [
        "faster than with the lock held for a whole bulk",
        "slower than with the lock held for a whole bulk",
        "as fast as with the lock held for a whole bulk",
    ];
    let tables = super::tables();
    let [release_mean, release_printed] = PrintedMeans::of(&tables, &all("release")).means(3);
    let [yield_mean, yield_printed] = PrintedMeans::of(&tables, &all("ticket+yield")).means(3);
    let wait = |workload, config, metric| mean(key(METATM, workload, 32, config, metric), 0);
    let config_on_32 = |of, against| {
        let key = |config| key(METATM, "config", 32, config, "time");
        times(key(of), key(against), 3)
    };
    vec![
        summary(
            "If the kernel releases the zone lock after each page, programs are {}: {} times the speed. A ticket lock that is released when another CPU waits gives {} times the speed of one that is held (simulated, geometric mean). The largest effect is on `config` on 32 CPUs: {} times the speed if the lock is released after each page, where 1.005 was printed, and {} times with a ticket lock that yields. Directions with an asterisk that are the same here, whatever their size: {} of {}.",
            [
                word(all("release"), all("hold"), words),
                gmean(all("release"), all("hold"), 3),
                gmean(all("ticket+yield"), all("ticket"), 3),
                config_on_32("release", "hold"),
                config_on_32("ticket+yield", "ticket"),
                Piece::Directions(Outcome::SameDirection, Among::Significant),
                Piece::Directions(Outcome::Any, Among::Significant),
            ],
        ),
        finding(
            "Over the lines that have a published speedup, releasing the lock after each page gives {} times the speed of holding it (published: {}), and a ticket lock that is released when another CPU waits {} times that of one that is held (published: {}; geometric means).",
            [release_mean, release_printed, yield_mean, yield_printed],
        ),
        finding(
            "`brickyard`, whose store has no lock, runs the same programs at {} times the speed of the document's unchanged allocator (simulated time).",
            [gmean(on_simulator("brickyard"), on_simulator("hold"), 3)],
        ),
        finding(
            "The author expected small requests to wait less for large ones. In `pmake` on 32 CPUs one wait in a hundred is longer than {} ns if the lock is held for a bulk, and longer than {} ns if it is released after each page, which gives {} times the speed.",
            [
                wait("pmake", "hold", "wait-p99"),
                wait("pmake", "release", "wait-p99"),
                times(
                    key(METATM, "pmake", 32, "release", "time"),
                    key(METATM, "pmake", 32, "hold", "time"),
                    3,
                ),
            ],
        ),
        finding(
            "In `config` on 32 CPUs the CPUs spend {} % of their time waiting if the lock is held, and {} % if it is released after each page, which gives {} times the speed. One wait in a thousand is longer than {} ns with a test-and-set lock that is held, and longer than {} ns with a ticket lock that is held.",
            [
                mean(key(METATM, "config", 32, "hold", "waiting"), 2),
                mean(key(METATM, "config", 32, "release", "waiting"), 2),
                times(
                    key(METATM, "config", 32, "release", "time"),
                    key(METATM, "config", 32, "hold", "time"),
                    3,
                ),
                wait("config", "hold", "wait-p99.9"),
                wait("config", "ticket", "wait-p99.9"),
            ],
        ),
        directions(),
    ]
}
