//! Cells of the experiments on locks, page allocation, page faults, builds and slabs, run by name
//! as on a cluster: they have the rows that the documents refer to, and an exact cell gives the
//! same rows each time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_experiments::store::Folder;
use brickyard_results::Better;

/// Runs these cells with `seed`; returns their rows.
fn run(cells: &[&str], seed: &str) -> Vec<CellRows> {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(["reproduce", "--cell", &cells.join(",")])
        .args(["--seed", seed, "--output", folder.path().to_str().unwrap()])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{message}");
    let folder = Folder::new(folder.path());
    cells
        .iter()
        .map(|cell| folder.read(cell).unwrap())
        .collect()
}

/// Runs one cell; returns its rows.
fn rows(cell: &str, kind: Method) -> Vec<Raw> {
    let ran = run(&[cell], "1").pop().unwrap();
    assert_eq!(ran.kind, kind, "{cell}");
    for row in &ran.rows {
        assert!(row.value.is_finite(), "{cell}: {row:?}");
        assert_eq!((row.run, row.at), (1, None), "{cell}");
    }
    ran.rows
}

/// Machine, metric, unit and direction of a row.
type Measure<'r> = (&'r str, &'r str, &'r str, Better);

fn measure(row: &Raw) -> Measure<'_> {
    (&row.machine, &row.metric, &row.unit, row.better)
}

/// Groups rows by workload and configuration.
fn by_config(rows: &[Raw]) -> BTreeMap<(&str, &str), Vec<Measure<'_>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        let of = (row.workload.as_str(), row.config.as_str());
        all.entry(of).or_default().push(measure(row));
    }
    all
}

/// Returns metrics of one machine for which lower is better.
fn lower<'r>(machine: &'r str, metrics: &[(&'r str, &'r str)]) -> Vec<Measure<'r>> {
    let measure = |&(metric, unit): &(&'r str, &'r str)| (machine, metric, unit, Better::Lower);
    metrics.iter().map(measure).collect()
}

const WAITS: [(&str, &str); 8] = [
    ("time", "s"),
    ("waiting", "%"),
    ("locked", "%"),
    ("wait-p50", "ns"),
    ("wait-p99", "ns"),
    ("wait-p99.9", "ns"),
    ("hold-p50", "ns"),
    ("hold-p99.9", "ns"),
];

const BULKS: [(&str, &str); 8] = [
    ("take-pages", "pages"),
    ("take-pages-sd", "pages"),
    ("take-order", "order"),
    ("take-order-sd", "order"),
    ("give-blocks", "blocks"),
    ("give-blocks-sd", "blocks"),
    ("give-order", "order"),
    ("give-order-sd", "order"),
];

#[test]
fn a_simulated_lock_has_its_times_and_waits_and_bulks() {
    let hold = rows("locks.metatm-2007.find-8.hold.1", Method::Simulated);
    let of_hold = by_config(&hold);
    let mut expected = lower("metatm-2007", &WAITS);
    let bulks = lower("metatm-2007", &BULKS).into_iter();
    // The size of a bulk says nothing about the quality of a lock.
    expected
        .extend(bulks.map(|(machine, metric, unit, _)| (machine, metric, unit, Better::Neither)));
    assert_eq!(of_hold, [(("find cpus-8", "hold"), expected)].into());
    // The paper's lists: seven pages per bulk, all of them single.
    let value = |metric: &str| hold.iter().find(|row| row.metric == metric).unwrap().value;
    assert!((6.9..7.1).contains(&value("take-pages")));
    assert!(value("take-order") < 0.1);
    assert!(value("time") > 0.2);

    let own_line = "locks.xeon-x5355.objdump-8.ticket+yield+own-line.1";
    let own_line = rows(own_line, Method::Simulated);
    let config = ("objdump cpus-8", "ticket+yield+own-line");
    let expected = lower("xeon-x5355", &WAITS);
    assert_eq!(by_config(&own_line), [(config, expected)].into());

    for (machine, workload) in [("metatm-2007", "find"), ("xeon-x5355", "objdump")] {
        let cell = format!("locks.{machine}.{workload}-8.brickyard.1");
        let today = rows(&cell, Method::Simulated);
        let expected = lower(machine, &WAITS[..1]);
        let workload = format!("{workload} cpus-8");
        assert_eq!(
            by_config(&today),
            [((workload.as_str(), "brickyard"), expected)].into()
        );
    }

    let kept = rows("locks.xeon-x5355.dd-8-kept.hold.1", Method::Simulated);
    assert!(
        kept.iter()
            .all(|row| row.workload == "dd cpus-8 kept-lines")
    );
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_round_of_locks_has_all_columns_for_one_thread_and_two() {
    let rows = rows("locks.host.bursts.1", Method::Timed);
    let expected = lower("host", &[("time", "us/burst")]);
    let workloads = ["bursts threads-1", "bursts threads-2"];
    let columns = [
        "hold",
        "release",
        "ticket",
        "ticket+yield",
        "ticket+yield+own-line",
    ];
    let all = workloads
        .into_iter()
        .flat_map(|workload| columns.map(|column| ((workload, column), expected.clone())));
    assert_eq!(by_config(&rows), all.collect());
    assert!(rows.iter().all(|row| row.value > 0.0));
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_round_of_batches_has_all_configurations() {
    let rows = rows("pagealloc.host.batches.1", Method::Timed);
    let unit = "ns/page";
    let expected = lower("host", &[("alloc", unit), ("free", unit), ("total", unit)]);
    let configurations = [
        "list-2007",
        "magazine-2013",
        "vanilla",
        "two-kinds-2005",
        "zone-2007",
        "combined-2007",
        "brickyard",
    ];
    let workloads: Vec<String> = (0..15)
        .map(|power| format!("order-0 batch-{}", 1 << power))
        .collect();
    let found = by_config(&rows);
    // The two designs of the document once more, where masks cost nothing.
    let of_document = &configurations[..2];
    assert_eq!(
        found.len(),
        workloads.len() * (configurations.len() + of_document.len())
    );
    for workload in &workloads {
        for configuration in configurations {
            assert_eq!(found[&(workload.as_str(), configuration)], expected);
        }
        let unmasked = format!("{workload} unmasked");
        for configuration in of_document {
            assert_eq!(found[&(unmasked.as_str(), *configuration)], expected);
        }
    }
    let total = |row: &&Raw| row.metric == "total";
    assert!(rows.iter().filter(total).all(|row| row.value > 0.0));
}

#[test]
fn a_storm_has_percentiles_and_throughput() {
    let cell = "pagealloc.metatm-2007.storm-1.vanilla.1";
    let rows = rows(cell, Method::Simulated);
    let mut expected = lower(
        "metatm-2007",
        &[
            ("alloc-p50", "cycles"),
            ("alloc-p90", "cycles"),
            ("alloc-p99", "cycles"),
            ("alloc-p99.9", "cycles"),
        ],
    );
    expected.insert(0, ("metatm-2007", "throughput", "pages/s", Better::Higher));
    assert_eq!(
        by_config(&rows),
        [(("storm cpus-1", "vanilla"), expected)].into()
    );
    let latencies: Vec<f64> = rows[1..].iter().map(|row| row.value).collect();
    assert!(latencies.is_sorted());
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn page_faults_are_counted_by_cpu_time_and_by_time() {
    let expected = |machine| {
        ["faults/cpu", "faults/sec"].map(|metric| (machine, metric, "faults/s", Better::Higher))
    };
    let simulated = rows("pft.i7-2013.cpus-2.brickyard.1", Method::Simulated);
    let of_two = ("cpus-2", "brickyard");
    let mut of_simulated = expected("i7-2013").to_vec();
    of_simulated.push(("i7-2013", "lines/fault", "lines", Better::Lower));
    assert_eq!(by_config(&simulated), [(of_two, of_simulated)].into());
    // Two CPUs handle more faults per second, but not more per second of CPU time.
    assert!(simulated[1].value > simulated[0].value);

    let timed = rows("pft.host.threads.1", Method::Timed);
    let configurations = ["list-2007", "magazine-2013", "vanilla", "brickyard"];
    let all = ["threads-1", "threads-2"].into_iter().flat_map(|threads| {
        configurations.map(|config| ((threads, config), expected("host").to_vec()))
    });
    let unmasked = ["threads-1 unmasked", "threads-2 unmasked"].into_iter();
    let of_document = ["list-2007", "magazine-2013"];
    let unmasked = unmasked.flat_map(|threads| {
        of_document.map(|config| ((threads, config), expected("host").to_vec()))
    });
    assert_eq!(by_config(&timed), all.chain(unmasked).collect());
}

#[test]
fn a_build_has_its_times() {
    let rows = rows("kernbench.i7-2013.build-8.brickyard.1", Method::Simulated);
    let mut expected = lower(
        "i7-2013",
        &[("user", "s"), ("system", "s"), ("elapsed", "s")],
    );
    expected.push(("i7-2013", "cpu", "%", Better::Higher));
    assert_eq!(
        by_config(&rows),
        [(("build cpus-8", "brickyard"), expected)].into()
    );
    let [user, system, elapsed, cpu] = [0, 1, 2, 3].map(|place: usize| rows[place].value);
    assert!((cpu - (user + system) * 100.0 / elapsed).abs() < 1e-6);
    assert!(user > system);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_round_of_slabs_has_each_heap_alone_and_with_eight_tasks() {
    let rows = rows("slab.host.heaps.1", Method::Timed);
    let mut socket = vec![("pair", "ns"), ("cpu", "ns"), ("zeroing", "ns")];
    let mut tail = Vec::new();
    // Only x86-64 has these flags and this time stamp counter.
    if cfg!(target_arch = "x86_64") {
        socket.push(("masking", "ns"));
        tail = ["p99.9", "p99.99"]
            .map(|metric| (metric, "cycles"))
            .to_vec();
    } else {
        println!("skipped: masking and tail size-64, which only x86-64 has");
    }
    socket.push(("rest", "ns"));
    let mut expected = BTreeMap::new();
    for heap in ["slqb-2008", "brickyard-pinned", "system"] {
        for workload in ["socket threads-1", "socket threads-8"] {
            expected.insert((workload, heap), lower("host", &socket));
        }
        if !tail.is_empty() {
            expected.insert(("tail size-64", heap), lower("host", &tail));
        }
    }
    assert_eq!(by_config(&rows), expected);
    // The parts add up to the whole.
    for of_task in rows.chunk_by(|a, b| (&a.workload, &a.config) == (&b.workload, &b.config)) {
        let value = |metric: &str| {
            let row = of_task.iter().find(|row| row.metric == metric);
            row.map(|row| row.value)
        };
        if let (Some(cpu), Some(zeroing), Some(rest)) =
            (value("cpu"), value("zeroing"), value("rest"))
        {
            assert!((cpu - zeroing - rest).abs() < 1e-6, "{of_task:?}");
        }
    }
}

#[test]
fn exact_cells_give_the_same_rows_each_time_and_others_with_another_seed() {
    let cells = [
        "locks.metatm-2007.find-8.ticket+yield.1",
        "locks.metatm-2007.find-8.magazine-2013.1",
        "pagealloc.metatm-2007.storm-1.list-2007.1",
        "pft.i7-2013.cpus-2.vanilla.1",
        "kernbench.i7-2013.build-8.brickyard.1",
    ];
    let rows =
        |ran: Vec<CellRows>| -> Vec<Vec<Raw>> { ran.into_iter().map(|cell| cell.rows).collect() };
    let first = rows(run(&cells, "1"));
    assert_eq!(rows(run(&cells, "1")), first);
    let other = rows(run(&cells, "2"));
    let changed: BTreeSet<&str> = cells
        .into_iter()
        .zip(first.iter().zip(&other))
        .filter_map(|(cell, (first, other))| (first != other).then_some(cell))
        .collect();
    assert!(changed.contains(cells[0]), "{changed:?}");
    assert!(changed.contains(cells[2]), "{changed:?}");
}

/// Run 1 of seed 2 is run 2 of seed 1: a run depends on its seed alone, not on its number.
#[test]
fn a_run_is_its_seed() {
    let second = run(&["locks.metatm-2007.find-8.hold.2"], "1");
    let first = run(&["locks.metatm-2007.find-8.hold.1"], "2");
    let values = |ran: &[CellRows]| -> Vec<f64> {
        let rows = ran.iter().flat_map(|cell| &cell.rows);
        rows.map(|row| row.value).collect()
    };
    assert_eq!(values(&first), values(&second));
}
