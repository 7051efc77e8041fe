//! The documents' keys use only names that the cells' rows have.

use std::collections::BTreeSet;

use brickyard_experiments::data::Key;
use brickyard_experiments::document::{Piece, Word};
use brickyard_experiments::documents;
use brickyard_experiments::winner::winner;
use brickyard_workload::antifrag::{MOMENTS, MinFree};

const POLICIES: [&str; 5] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
];
const ALL: [&str; 7] = [
    "vanilla",
    "two-kinds-2005",
    "list-2007",
    "zone-2007",
    "combined-2007",
    "magazine-2013",
    "brickyard",
];
const FOUR: [&str; 4] = ["list-2007", "magazine-2013", "vanilla", "brickyard"];
/// The configurations of the rendering test.
const OF_2005: [&str; 4] = ["vanilla", "two-kinds-2005", "list-2007", "brickyard"];
const HEAPS: [&str; 3] = ["slqb-2008", "brickyard-pinned", "system"];
/// The designs of slabs that are simulated.
const DESIGNS: [&str; 4] = ["slqb-2008", "slab-2008", "slub-2008", "brickyard-slab"];
/// Under which the proposed side of a comparison of times is swept.
const INSTRUCTIONS: [&str; 2] = ["instructions-fewer", "instructions-more"];
const MACHINES: [&str; 5] = ["bl6-13", "elm3b14", "elm3b245", "gekko-lp1", "gekko-lp4"];

/// The kernels of 2007, and the default.
const KERNELS: [&str; 5] = [
    "vanilla",
    "list-2007",
    "zone-2007",
    "combined-2007",
    "brickyard",
];

/// All keys that the rows of cells may have, as far as a document can refer to them.
struct KnownKeys(BTreeSet<Key>);

impl KnownKeys {
    fn add(
        &mut self,
        experiment: &str,
        machines: &[&str],
        workloads: &[String],
        configs: &[&str],
        metrics: &[&str],
    ) {
        for machine in machines {
            for workload in workloads {
                for config in configs {
                    for metric in metrics {
                        let key = Key::new(experiment, machine, workload, config, metric);
                        self.0.insert(key);
                    }
                }
            }
        }
    }
}

fn numbered(word: &str, numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|n| format!("{word}-{n}")).collect()
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

fn locks(into: &mut KnownKeys) {
    let tasks = [
        "find", "pmake", "dpunish", "bonnie", "mab", "config", "kernel",
    ];
    let all: Vec<String> = tasks
        .iter()
        .flat_map(|task| numbered(&format!("{task} cpus"), &[8, 16, 32]))
        .collect();
    let waits = [
        "time",
        "waiting",
        "locked",
        "wait-p50",
        "wait-p99",
        "wait-p99.9",
        "hold-p50",
        "hold-p99.9",
    ];
    let bulks = [
        "take-pages",
        "take-pages-sd",
        "take-order",
        "take-order-sd",
        "give-blocks",
        "give-blocks-sd",
        "give-order",
        "give-order-sd",
    ];
    into.add("locks", &["metatm-2007"], &all, &POLICIES, &waits);
    into.add("locks", &["metatm-2007"], &all, &["hold"], &bulks);
    let today = ["list-2007", "magazine-2013", "brickyard"];
    into.add("locks", &["metatm-2007"], &all, &today, &["time"]);
    let on_real = words(&[
        "mab cpus-8",
        "config cpus-8",
        "objdump cpus-8",
        "kernel-full cpus-8",
        "kernel cpus-8",
        "dd cpus-8",
    ]);
    into.add("locks", &["xeon-x5355"], &on_real, &POLICIES, &waits);
    let kept = words(&[
        "mab cpus-8 kept-lines",
        "objdump cpus-8 kept-lines",
        "dd cpus-8 kept-lines",
    ]);
    into.add(
        "locks",
        &["xeon-x5355"],
        &kept,
        &["hold", "release"],
        &waits,
    );
    into.add("locks", &["xeon-x5355"], &on_real, &today, &["time"]);
    let bursts = numbered("bursts threads", &[1, 2]);
    into.add("locks", &["host"], &bursts, &POLICIES, &["time"]);
}

fn of_2013(into: &mut KnownKeys) {
    let batches: Vec<u32> = (0..=14).map(|power| 1 << power).collect();
    let batches = numbered("order-0 batch", &batches);
    let parts = ["alloc", "free", "total"];
    into.add("pagealloc", &["host"], &batches, &ALL, &parts);
    let of_document = ["list-2007", "magazine-2013"];
    let unmasked = |workloads: &[String]| -> Vec<String> {
        let of = |workload| format!("{workload} unmasked");
        workloads.iter().map(of).collect()
    };
    into.add(
        "pagealloc",
        &["host"],
        &unmasked(&batches),
        &of_document,
        &parts,
    );
    let drains = numbered("drains cpus", &[1, 4, 8, 32]);
    let lent: Vec<String> = drains.iter().map(|of| format!("{of} lent")).collect();
    let costs = ["drain", "lost", "alloc-p99.9", "alloc-p99.9-undrained"];
    let drained = ["list-2007", "magazine-2013", "brickyard"];
    into.add("pagealloc", &["metatm-2007"], &drains, &drained, &costs);
    into.add("pagealloc", &["metatm-2007"], &lent, &["brickyard"], &costs);
    let storms = numbered("storm cpus", &[1, 8, 32]);
    let latency = [
        "alloc-p50",
        "alloc-p90",
        "alloc-p99",
        "alloc-p99.9",
        "throughput",
    ];
    into.add("pagealloc", &["metatm-2007"], &storms, &FOUR, &latency);
    let rates = ["faults/cpu", "faults/sec"];
    let counted = ["faults/cpu", "faults/sec", "lines/fault"];
    let sizes = [2, 4, 8]
        .map(|cpus| [512, 2048, 8192, 32768].map(|pages| format!("cpus-{cpus} pages-{pages}")));
    into.add("pft", &["i7-2013"], &sizes.concat(), &of_document, &counted);
    let judged = [2, 3, 4, 5, 6, 7, 8]
        .map(|cpus| [2048, 8192].map(|pages| format!("cpus-{cpus} pages-{pages}")));
    into.add(
        "pft",
        &["i7-2013"],
        &judged.concat(),
        &of_document,
        &counted,
    );
    let under = |cpus: &[u32], names: &[&str]| -> Vec<String> {
        let cpus = numbered("cpus", cpus);
        let of = |cpus: &String| {
            names
                .iter()
                .map(|name| format!("{cpus} {name}"))
                .collect::<Vec<_>>()
        };
        cpus.iter().flat_map(of).collect()
    };
    let shared = under(&[5, 6, 7, 8], &["cores", "threads-140", "threads-180"]);
    let ahead = under(&[2, 3, 4, 5, 6, 7, 8], &["ahead"]);
    for assumed in [shared, ahead] {
        into.add("pft", &["i7-2013"], &assumed, &of_document, &counted);
    }
    let otherwise = under(&[2, 3, 4, 5, 6, 7, 8], &INSTRUCTIONS);
    let magazines = ["magazine-2013"];
    into.add("pft", &["i7-2013"], &otherwise, &magazines, &counted);
    let threads = numbered("threads", &[1, 2]);
    into.add("pft", &["host"], &unmasked(&threads), &of_document, &rates);
    let to_eight: Vec<u32> = (1..=8).collect();
    into.add(
        "pft",
        &["i7-2013"],
        &numbered("cpus", &to_eight),
        &FOUR,
        &counted,
    );
    let powers = numbered("cpus", &[1, 2, 4, 8, 16, 32]);
    into.add("pft", &["metatm-2007"], &powers, &FOUR, &counted);
    into.add("pft", &["host"], &threads, &FOUR, &rates);
    let build = words(&["build cpus-8"]);
    let times = ["user", "system", "elapsed", "cpu"];
    into.add("kernbench", &["i7-2013"], &build, &FOUR, &times);
    let build = counted_otherwise(&build);
    into.add("kernbench", &["i7-2013"], &build, &magazines, &times);
}

/// Returns the workloads with other counts of instructions.
fn counted_otherwise(workloads: &[String]) -> Vec<String> {
    let with = |workload: &String| INSTRUCTIONS.map(|name| format!("{workload} {name}"));
    workloads.iter().flat_map(with).collect()
}

/// Returns the workloads with each of these assumptions varied.
fn swept(workloads: &[String], assumptions: &[&str]) -> Vec<String> {
    let with = |workload: &String| {
        let of = |assumption: &&str| format!("{workload} sweep-{assumption}");
        assumptions.iter().map(of).collect::<Vec<_>>()
    };
    workloads.iter().flat_map(with).collect()
}

fn of_2005_and_2008(into: &mut KnownKeys) {
    let desktop = ["desktop-2005"];
    let moments = words(&["under load", "at rest"]);
    into.add("two-kinds", &desktop, &moments, &ALL, &["huge-pages"]);
    let varied = swept(&moments, &["gap-0.5", "tree-0.75", "nap-0"]);
    let of_document = ["vanilla", "two-kinds-2005", "brickyard"];
    into.add(
        "two-kinds",
        &desktop,
        &varied,
        &of_document,
        &["huge-pages"],
    );
    let jobs = words(&["extract", "build"]);
    into.add("two-kinds", &desktop, &jobs, &ALL, &["elapsed", "system"]);
    let jobs = counted_otherwise(&jobs);
    into.add(
        "two-kinds",
        &desktop,
        &jobs,
        &["two-kinds-2005"],
        &["elapsed"],
    );
    let tests = words(&["page_test", "brk_test"]);
    into.add("two-kinds", &["host"], &tests, &ALL, &["rate"]);
    let render = words(&["render"]);
    into.add(
        "two-kinds",
        &["host"],
        &render,
        &OF_2005,
        &["real", "user", "sys"],
    );
    let socket = numbered("socket threads", &[1, 8]);
    let parts = ["pair", "cpu", "zeroing", "masking", "rest"];
    into.add("slab", &["host"], &socket, &HEAPS, &parts);
    let machine = ["bl460c-g1"];
    let sockets = words(&[
        "socket cpus-1 at-once",
        "socket cpus-8 at-once",
        "socket cpus-1 deferred",
        "socket cpus-8 deferred",
        "socket cpus-1 deferred-4-ms",
        "socket cpus-8 deferred-4-ms",
        "socket cpus-1 deferred-10-ms",
        "socket cpus-8 deferred-10-ms",
    ]);
    let metrics = ["socket", "allocator", "lines"];
    into.add("slab", &machine, &sockets, &DESIGNS, &metrics);
    let varied = ["cpus-8 at-once", "cpus-8 deferred", "cpus-1 at-once"]
        .map(|of| [1, 2, 8].map(|many| format!("socket {of} instructions-{many}")));
    into.add("slab", &machine, &varied.concat(), &DESIGNS[..3], &metrics);
    let remote = words(&["remote cpus-8"]);
    into.add("slab", &machine, &remote, &DESIGNS, &["object", "lines"]);
    let machines = [1, 2, 4, 8, 16, 32].map(|cpus| (cpus, 1));
    let nodes = [(8, 2), (16, 4), (32, 8)];
    let kept: Vec<_> = machines
        .iter()
        .chain(&nodes)
        .map(|(cpus, nodes)| format!("memory cpus-{cpus} nodes-{nodes}"))
        .collect();
    let metrics = ["metadata", "kept", "queued", "trimmed"];
    into.add("slab", &machine, &kept, &DESIGNS, &metrics);
    let percentiles = ["p99.9", "p99.99"];
    into.add(
        "slab",
        &["host"],
        &words(&["tail size-64"]),
        &HEAPS,
        &percentiles,
    );
}

fn of_2007(into: &mut KnownKeys) {
    for moment in ["under load", "at rest"] {
        let ways = ["plain", "lumpy", "compaction"].map(|way| format!("{way} {moment}"));
        into.add("mobility", &MACHINES, &ways, &ALL, &["huge-pages"]);
        let assumptions = ["memory-0.9", "memory-1.1", "settle-0.5", "gap-0.5", "nap-0"];
        let varied = swept(&ways[..2], &assumptions);
        into.add("mobility", &MACHINES, &varied, &KERNELS, &["huge-pages"]);
        if moment == "at rest" {
            into.add("mobility", &MACHINES, &ways, &ALL, &["possible"]);
        }
    }
    let settings = MinFree::ALL.map(MinFree::name);
    let moments = settings.map(|setting| MOMENTS.map(|moment| format!("{setting}: {moment}")));
    into.add(
        "mobility",
        &["gekko-lp4-min-free"],
        &moments.concat(),
        &["vanilla"],
        &["huge-pages"],
    );
    let watched = ["elm3b245", "gekko-lp4"];
    into.add(
        "mobility",
        &watched,
        &words(&["plain"]),
        &ALL,
        &["huge-free", "mixed"],
    );
    let timed = [
        "vanilla",
        "list-2007",
        "zone-2007",
        "combined-2007",
        "brickyard",
    ];
    let (builds, times) = (words(&["kernbench"]), ["cpu-time", "elapsed"]);
    into.add("mobility", &MACHINES, &builds, &timed, &times);
    let builds = counted_otherwise(&builds);
    into.add("mobility", &MACHINES, &builds, &timed[1..4], &times);
}

#[test]
fn the_documents_use_only_keys_of_cells() {
    let mut known = KnownKeys(BTreeSet::new());
    locks(&mut known);
    of_2013(&mut known);
    of_2005_and_2008(&mut known);
    of_2007(&mut known);
    let unknown: Vec<_> = documents::keys().difference(&known.0).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// A document's figures are of its own experiment.
#[test]
fn no_document_refers_to_another() {
    for document in documents::all() {
        for figure in document.figures() {
            for key in figure.of.iter().chain(&figure.against) {
                assert_eq!(key.experiment, document.experiment);
            }
        }
    }
}

/// The sentence over all documents uses only keys that the documents use too, so that a full run
/// has them.
#[test]
fn the_winner_uses_only_keys_of_the_documents() {
    let keys = documents::keys();
    let winner = winner();
    let figures = winner.pieces.iter().filter_map(|piece| match piece {
        Piece::Figure(figure) | Piece::Word(Word { figure, .. }) => Some(figure),
        Piece::Text(_) | Piece::PrintedMean(..) | Piece::Directions(..) | Piece::Range(_) => None,
    });
    let mut checked = 0;
    for figure in figures {
        assert_eq!(figure.of.len(), figure.against.len());
        assert!(!figure.of.is_empty());
        for key in figure.of.iter().chain(&figure.against) {
            assert!(keys.contains(key), "{key:?}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}
