//! `run storm`, `pft`, `kernbench`, `slab`, `scarce` and `fragmentation` as a user runs them: the
//! exact tables of simulated ones, since a simulation gives the same on every host; what is true of
//! the others on any host; and their errors. The expected tables are in `tests/experiments/`;
//! `BRICKYARD_BLESS=1` rewrites them. And `explore`.

use std::fs;
use std::path::Path;
use std::process::Output;

use brickyard_designs::classics::Configuration;
use serde_json::Value;

use crate::command::{golden, printed, text, with_set as brickyard};

fn run(words: &[&str]) -> Output {
    brickyard(&[&["run"], words].concat())
}

fn rows(words: &[&str]) -> Vec<Value> {
    let text = printed(&run(&[words, &["--format", "json"]].concat()));
    let json: Value = serde_json::from_str(&text).unwrap();
    json["rows"].as_array().unwrap().clone()
}

const STORM: [&str; 6] = [
    "storm",
    "cpus=1,4",
    "pages=400",
    "shape=hot,remote",
    "--runs",
    "2",
];

const PFT: [&str; 5] = ["pft", "cpus=1,4", "touched=8M", "--runs", "2"];

const SLAB: [&str; 6] = [
    "slab",
    "load=socket,remote,memory",
    "cpus=2",
    "files=at-once",
    "--runs",
    "2",
];

/// All machines of a run have the same memory, that of the largest.
const KERNBENCH: [&str; 5] = ["kernbench", "cpus=2,16", "compiles=4", "--runs", "2"];

#[test]
fn the_same_command_gives_the_same_table_on_every_host() {
    for (name, words) in [
        ("storm.txt", &STORM[..]),
        ("pft.txt", &PFT),
        ("kernbench.txt", &KERNBENCH),
        ("slab.txt", &SLAB),
    ] {
        let table = printed(&run(words));
        golden(&format!("experiments/{name}"), &table);
        let other = printed(&run(&[words, &["--seed", "77"]].concat()));
        assert_ne!(other, table);
    }
    // The same, however many runs are done at once.
    let alone = printed(&run(&[&STORM[..], &["--jobs", "1"]].concat()));
    golden("experiments/storm.txt", &alone);
}

#[test]
fn other_programs_read_all_samples() {
    let rows = rows(&[&STORM[..], &["unit=memory-latencies"]].concat());
    // Two shapes, two numbers of CPUs, three configurations; a rate, eight latencies, four figures
    // of traffic and waits.
    assert_eq!(rows.len(), 2 * 2 * 3 * (1 + 8 + 4));
    assert!(
        rows.iter()
            .all(|row| row["n"] == 2 && row["ci95"].is_number())
    );
    let of = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    assert_eq!(of("alloc-p99.9")["unit"], "memory latencies");
    let csv = printed(&run(&[&PFT[..], &["--format", "csv"]].concat()));
    assert!(csv.contains("brickyard,cpus-4,faults/sec,"), "{csv}");
}

#[test]
fn every_configuration_and_the_yardstick_clear_all_their_pages() {
    let mut names = Configuration::ALL.map(Configuration::name).to_vec();
    names.push("array-stack");
    // Three threads, so that their shares are not all equal.
    let config = format!("config={}", names.join(","));
    let words = ["pft", "--on", "host", "--runs", "2", &config];
    let rows = rows(&[&words[..], &["passes=1", "threads=1,3", "memory=48M"]].concat());
    assert_eq!(rows.len(), 2 * 3 * names.len());
    for row in rows {
        assert_eq!(row["better"], "higher");
        assert_eq!(row["n"], 2);
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
}

#[test]
fn every_heap_has_the_times_of_sockets_and_its_tail() {
    let words = ["slab", "--on", "host", "threads=1,3", "sample-us=50"];
    let rows = rows(&[&words[..], &["--runs", "2"]].concat());
    // The processor's flags and its time stamp counter are measured on x86-64 only.
    let of_heap = if cfg!(target_arch = "x86_64") {
        2 * 5 + 2
    } else {
        2 * 4
    };
    assert_eq!(rows.len(), 3 * of_heap);
    let configs: Vec<&Value> = rows[..3].iter().map(|row| &row["config"]).collect();
    assert_eq!(configs, ["slqb-2008", "brickyard-pinned", "system"]);
    for row in rows.iter().filter(|row| row["metric"] == "pair") {
        assert_eq!(row["n"], 2);
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
}

#[test]
fn scarce_has_every_row_for_every_size() {
    let rows = rows(&[
        "scarce",
        "config=vanilla,list-2007,combined-2007",
        "memory=16M,64M",
        "level=node,zone",
        "sample-us=20",
        "mobility=movable",
        "--runs",
        "2",
    ]);
    assert_eq!(rows.len(), 5 * 2 * 2 * 3);
    for row in &rows {
        assert_eq!(row["unit"], "ns/request");
        assert_eq!(row["n"], 2);
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
    for workload in [
        "order-0 none-free memory-16M mobility-movable",
        "order-9 one-free memory-64M level-zone mobility-movable",
        "order-3 scattered memory-64M mobility-movable",
    ] {
        assert!(rows.iter().any(|row| row["workload"] == workload));
    }
}

#[test]
fn gigabytes_counts_no_fewer_than_the_least_and_repeats_by_its_seed() {
    let run = || {
        rows(&[
            "gigabytes",
            "memory=4G",
            "swings=1",
            "config=brickyard,vanilla",
            "--runs",
            "1",
        ])
    };
    let first = run();
    assert_eq!(first.len(), 2 * (5 + 5 + 1));
    for row in &first {
        let value = row["mean"].as_f64().unwrap();
        match row["metric"].as_str().unwrap() {
            "tainted-to-least" | "tainted-blocks-to-least" => assert!(value >= 1.0, "{row}"),
            "tainted" => assert!((1.0..=4.0).contains(&value), "{row}"),
            "movable" => assert!((0.0..=3.0).contains(&value), "{row}"),
            _ => assert!(value >= 0.0, "{row}"),
        }
    }
    assert_eq!(run(), first);
}

#[test]
fn fragmentation_has_every_configuration_and_repeats_by_its_seed() {
    let run = |seed: &str| {
        rows(&[
            "fragmentation",
            "memory=32M",
            "rounds=3",
            "batch=round",
            "threads=1,2",
            "--runs",
            "2",
            "--seed",
            seed,
        ])
    };
    let first = run("1");
    let configs: Vec<&str> = first
        .iter()
        .map(|row| row["config"].as_str().unwrap())
        .collect();
    let all = Configuration::ALL.map(Configuration::name);
    assert_eq!(configs, [all, all].concat());
    for (place, row) in first.iter().enumerate() {
        assert_eq!(row["unit"], "percent");
        assert_eq!(row["better"], "higher");
        let threads = 1 + place / all.len();
        assert_eq!(
            row["workload"],
            format!("half-taken rounds-3 memory-32M batch-round threads-{threads}")
        );
        for sample in row["samples"].as_array().unwrap() {
            assert!((0.0..=100.0).contains(&sample.as_f64().unwrap()), "{row}");
        }
    }
    let samples =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["samples"].clone()).collect() };
    assert_eq!(samples(&first), samples(&run("1")));
    // The second sample's seed is the next one.
    let second = run("2");
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first["samples"][1], second["samples"][0]);
    }
}

/// The protocol on a small machine, with little load.
const PROTOCOL: [&str; 9] = [
    "two-kinds",
    "--traces",
    "lab/cli/tests/replay",
    "reclaim=compaction",
    "tree=1M",
    "gap=0.2",
    "settle=0.2",
    "config=vanilla,brickyard",
    "memory=0.5",
];

#[test]
fn the_protocol_runs_on_a_machine_of_its_document() {
    let folder = tempfile::tempdir().unwrap();
    // The load is a build and a walk; here both are a short recording.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["kernel", "walk"] {
        let to = folder.path().join(format!("{name}.parquet"));
        fs::copy(root.join("traces/dd.parquet"), to).unwrap();
    }
    let traces = folder.path().to_str().unwrap();
    let pages = folder.path().join("pages");
    let mut words = PROTOCOL;
    words[2] = traces;
    let rows = rows(&words);
    assert_eq!(rows.len(), 7 * 2);
    for config in ["vanilla", "brickyard"] {
        let of = |metric: &str| {
            let row = rows
                .iter()
                .find(|row| row["config"] == config && row["metric"] == metric);
            row.unwrap()["mean"].as_f64().unwrap()
        };
        assert!(of("at-rest") <= of("possible"), "{config}");
        assert!(of("under-load") >= 0.0 && of("mixed") >= 0.0);
    }
    let more = ["pictures=yes", "--pages", pages.to_str().unwrap()];
    let out = run(&[&words[..], &more].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let page = fs::read_to_string(pages.join("desktop-2005-compaction.html")).unwrap();
    assert!(page.contains("brickyard") && page.contains("vanilla"));
}

#[test]
fn misuse_exits_with_2_and_names_the_fix() {
    let host = ["pft", "--on", "host"];
    for (words, fix) in [
        (&["storm", "cpus=0"][..], "at least 1"),
        (&["pft", "cpus=300"], "1 to 256"),
        (&["storm", "cpus=8,8"], "cpus: 8 is there twice"),
        (&["pft", "config=vanilla,vanilla"], "vanilla is there twice"),
        (&["storm", "shape=hot,hot"], "hot is there twice"),
        (&["storm", "shape=wet"], "hot, deep, remote"),
        (&["storm", "config=linux"], "list-2007"),
        (&["pft", "--on", "cray"], "metatm-2007"),
        (&["storm", "--on", "host"], "only on simulated machines"),
        (&["scarce", "--on", "i7-2013"], "only on host"),
        (&["storm", "unit=hours"], "memory-latencies"),
        (&["locks", "config=linux-6.18"], "columns=hold,ticket"),
        (
            &["locks", "config=brickyard", "columns=release"],
            "columns=hold",
        ),
        (
            &["pagealloc", "config=linux-6.12", "bulk=yield"],
            "leave linux-6.12 out",
        ),
        (&["storm", "--runs", "0"], "--runs must be at least 1"),
        (&["storm", "pages=0"], "at least 1"),
        (&["storm", "memory=16T"], "16383G"),
        (&["pft", "--jobs", "0"], "--jobs must be at least 1"),
        (
            &["storm", "shape=deep", "memory=64M"],
            "give at least 1012M",
        ),
        (&["pft", "memory=400M"], "give at least"),
        (&["pft", "touched=4K"], "give at least"),
        (&["kernbench", "workload=find"], "kernel or pmake"),
        (&["kernbench", "compiles=0"], "at least 1"),
        (&["kernbench", "--traces", "/nowhere"], "with --traces DIR"),
        (&[&host[..], &["config=nonesuch"]].concat(), "array-stack"),
        (&[&host[..], &["threads=0"]].concat(), "at least 1"),
        (&[&host[..], &["passes=0"]].concat(), "at least 1"),
        (&[&host[..], &["masking=all"]].concat(), "nothing, flags"),
        (
            &[&host[..], &["threads=2", "memory=31M"]].concat(),
            "give at least 32M",
        ),
        (&["scarce", "config=nonesuch"], "vanilla"),
        (&["scarce", "memory=1M"], "give at least 16M"),
        (&["scarce", "memory=1G,1024M"], "twice"),
        (&["scarce", "level=cpu"], "node, zone"),
        (&["scarce", "mobility=none"], "unmovable"),
        (&["fragmentation", "memory=1M"], "give at least 16M"),
        (&["gigabytes", "memory=1G"], "1G is not from 4G to 8192G"),
        (&["gigabytes", "peak=7"], "more than `least`"),
        (
            &["fragmentation", "memory=16M", "threads=1024"],
            "too few pages for 1024",
        ),
        (&["gigabytes", "peak=490"], "more than a half to the cache"),
        (&["storm", "--runs", "4294967295"], "at most 65536"),
        (
            &["storm", "pages=18446744073709551615"],
            "at most 1000000000",
        ),
        (&["storm", "cpus="], "cpus: : cannot parse"),
        (&["fragmentation", "rounds=18446744073709551615"], "at most"),
        (&["fragmentation", "memory=1M"], "1M has too few"),
        (&["kernbench", "cpus=2", "memory=16M"], "give at least"),
        (&["mobility", "--runs", "3"], "it has one run"),
        (&["locks", "columns=spin"], "hold, release, ticket,"),
        (&["slab", "config=slob"], "slqb-2008, slab-2008,"),
        (&["slab", "load=remote", "cpus=1"], "2 at least"),
        (&["slab", "load=memory", "nodes=9"], "a CPU at least"),
        (&["slab", "instructions=0"], "at least 1"),
        (&["slab", "files=never"], "at-once, deferred,"),
        (&["slab", "--on", "host", "config=slob"], "system"),
        (&["slab", "--on", "host", "threads=64"], "at most 63"),
        (&["slab", "--on", "host", "sample-us=1000001"], "at most"),
        (&["slab", "--on", "host", "load=remote"], "socket, tail"),
        (&[&host[..], &["threads=1025"]].concat(), "at most 1024"),
        (
            &[&host[..], &["passes=18446744073709551615"]].concat(),
            "at most",
        ),
        (&["mobility", "--on", "toaster"], "gekko-lp4"),
        (&["two-kinds", "stretch=0"], "0.01 to 10000"),
        (&["two-kinds", "every=0"], "0.001 to 3600"),
        (&["two-kinds", "kernelcore=100"], "1 to 99"),
        (&["two-kinds", "reclaim=none"], "plain, lumpy, compaction"),
        (&["two-kinds", "tree=17G"], "at most 16G"),
        (&["quake"], "`brickyard run` lists them"),
        (&["storm", "--set", "pages"], "PARAMETER=VALUE"),
    ] {
        let out = run(words);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(fix), "{words:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        assert_eq!(text(&out.stdout), "");
    }
}

#[test]
fn failures_exit_with_1() {
    let out = run(&["storm", "-o", "/nowhere/else"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn explore_has_modes_and_a_replay_names_its_mode() {
    for mode in ["mixed", "stop", "starve"] {
        let run = |arguments: &[&str]| {
            let explore = ["explore", "--mode", mode, "--cpus", "3"];
            printed(&brickyard(&[&explore, arguments].concat()))
        };
        let covered: Value =
            serde_json::from_str(&run(&["--seeds", "4", "--format", "json"])).unwrap();
        let counts = &covered["covered"];
        assert_eq!(counts["runs"], 4);
        let stops = counts["times a CPU stood still for long"].as_u64();
        assert_eq!(stops > Some(0), mode == "stop");
        let starved = counts["requests made while others go on for ever"].as_u64();
        assert_eq!(starved > Some(0), mode == "starve");
        let csv = run(&["--seeds", "2", "--format", "csv"]);
        assert!(csv.contains("\nsteps of a request at most,"), "{csv}");
        let replay = run(&["--replay", "3"]);
        assert!(replay.to_lowercase().contains(&format!("mode: {mode}")));
        assert_eq!(replay, run(&["--replay", "3"]));
    }
    let help = printed(&brickyard(&["explore", "--help"]));
    for option in ["--mode", "--memory", "--sizes"] {
        assert!(help.contains(option), "{option}:\n{help}");
    }
    let none = brickyard(&["explore", "--seeds", "0"]);
    assert_eq!(none.status.code(), Some(2));
    // Refused before any work: so many seeds would never end.
    let endless = u64::MAX.to_string();
    let nowhere = brickyard(&["explore", "--seeds", &endless, "-o", "/no/such/folder/x"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let wrong = brickyard(&["explore", "--mode", "calm"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("there are mixed, stop, starve"));
}
