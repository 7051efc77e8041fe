//! `simulate storm`, `pft` and `kernbench` as a user runs them: their exact tables, since a
//! simulation gives the same on every host, and their errors. The expected tables are in
//! `tests/simulate/`; `BRICKYARD_BLESS=1` rewrites them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command in the directory of the traces.
fn simulate(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .arg("simulate")
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the output of a run that must succeed.
fn printed(arguments: &[&str]) -> String {
    let out = simulate(arguments);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    text(&out.stdout)
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let text = printed(&[arguments, &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["host"]["kernel"], "none (simulated)");
    json["rows"].as_array().unwrap().clone()
}

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/simulate")
        .join(name);
    if std::env::var_os("BRICKYARD_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} differs:\n{found}", path.display());
}

const STORM: [&str; 9] = [
    "storm",
    "--cpus",
    "1,4",
    "--pages",
    "400",
    "--runs",
    "2",
    "--shape",
    "hot,remote",
];

const PFT: [&str; 7] = ["pft", "--cpus", "1,4", "--touched", "8M", "--runs", "2"];

const KERNBENCH: [&str; 7] = ["kernbench", "--cpus", "2", "--compiles", "4", "--runs", "2"];

#[test]
fn the_same_command_gives_the_same_table_on_every_host() {
    for (name, arguments) in [
        ("storm.txt", &STORM[..]),
        ("pft.txt", &PFT),
        ("kernbench.txt", &KERNBENCH),
    ] {
        let table = printed(arguments);
        golden(name, &table);
        // The same, however many runs are done at once.
        let alone = printed(&[arguments, &["--jobs", "1"]].concat());
        assert_eq!(alone, table);
        let other = printed(&[arguments, &["--seed", "77"]].concat());
        assert_ne!(other, table);
    }
}

#[test]
fn other_programs_read_all_samples() {
    let rows = rows(&[&STORM[..], &["--unit", "memory-latencies"]].concat());
    // Two shapes, two numbers of CPUs, three configurations; two rates, eight latencies, four
    // figures of traffic and waits.
    assert_eq!(rows.len(), 2 * 2 * 3 * (2 + 8 + 4));
    assert!(
        rows.iter()
            .all(|row| row["n"] == 2 && row["ci95"].is_number())
    );
    let of = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    assert_eq!(of("alloc p99.9")["unit"], "memory latencies");
    assert_eq!(of("speed-up")["mean"], 1.0);
    let csv = printed(&[&PFT[..], &["--format", "csv"]].concat());
    assert!(csv.contains("brickyard,threads-4,faults/sec,"), "{csv}");
}

#[test]
fn rows_of_pft_are_those_of_the_real_threads() {
    let rows = rows(&PFT);
    let bench: Value = {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = Command::new(env!("CARGO_BIN_EXE_brickyard"))
            .args(["bench", "pft", "--threads", "1", "--samples", "1"])
            .args(["--passes", "1", "--memory", "32M", "--format", "json"])
            .current_dir(root)
            .output()
            .unwrap();
        serde_json::from_str(&text(&out.stdout)).unwrap()
    };
    let names = |rows: &[Value]| -> Vec<(Value, Value, Value)> {
        // Lines that move between CPUs can only be counted in simulated caches.
        let of_one = rows
            .iter()
            .filter(|row| row["workload"] == "threads-1" && row["metric"] != "lines/fault");
        let name = |row: &Value| {
            let field = |name: &str| row[name].clone();
            (field("config"), field("metric"), field("unit"))
        };
        of_one.map(name).collect()
    };
    assert_eq!(names(&rows), names(bench["rows"].as_array().unwrap()));
}

#[test]
fn misuse_exits_with_2_and_names_the_fix() {
    for (arguments, fix) in [
        (&["storm", "--cpus", "0"][..], "1 to 256"),
        (&["pft", "--cpus", "300"], "1 to 256"),
        (&["storm", "--cpus", "8,8"], "--cpus names a value twice"),
        (
            &["pft", "--config", "vanilla,vanilla"],
            "--config names a value twice",
        ),
        (
            &["storm", "--shape", "hot,hot"],
            "--shape names a value twice",
        ),
        (&["storm", "--shape", "wet"], "hot, deep and remote"),
        (&["storm", "--config", "linux"], "list-2007"),
        (&["pft", "--profile", "cray"], "metatm-2007"),
        (&["storm", "--unit", "hours"], "memory-latencies"),
        (&["storm", "--runs", "0"], "--runs must be at least 1"),
        (&["storm", "--pages", "0"], "--pages must be at least 1"),
        (&["pft", "--jobs", "0"], "--jobs must be at least 1"),
        (
            &["storm", "--shape", "deep", "--memory", "64M"],
            "give at least 1012M",
        ),
        (&["pft", "--memory", "400M"], "give at least"),
        (&["pft", "--touched", "4K"], "give at least"),
        (&["kernbench", "--workload", "find"], "kernel and pmake"),
        (
            &["kernbench", "--compiles", "0"],
            "--compiles must be at least 1",
        ),
        (&["kernbench", "--memory", "16M"], "give at least"),
    ] {
        let out = simulate(arguments);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(fix), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        assert_eq!(text(&out.stdout), "");
    }
}

#[test]
fn failures_exit_with_1() {
    let out = simulate(&["kernbench", "--traces", "/nowhere"]);
    assert_eq!(out.status.code(), Some(1));
    let error = text(&out.stderr);
    assert!(error.contains("with --traces DIR"), "{error}");
    let out = simulate(&["storm", "-o", "/nowhere/else"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn explore_has_modes_and_a_replay_names_its_mode() {
    for mode in ["mixed", "stop", "starve"] {
        let run = |arguments: &[&str]| {
            printed(&[&["explore", "--mode", mode, "--cpus", "3"], arguments].concat())
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
    let help = printed(&["explore", "--help"]);
    for option in ["--mode", "--memory", "--sizes"] {
        assert!(help.contains(option), "{option}:\n{help}");
    }
    let none = simulate(&["explore", "--seeds", "0"]);
    assert_eq!(none.status.code(), Some(2));
    // Refused before any work: so many seeds would never end.
    let endless = u64::MAX.to_string();
    let nowhere = simulate(&["explore", "--seeds", &endless, "-o", "/no/such/folder/x"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let wrong = simulate(&["explore", "--mode", "calm"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("the values are mixed, stop, starve"));
}
