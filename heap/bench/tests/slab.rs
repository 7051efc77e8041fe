//! `brickyard-heap slab` as a user runs it: what it prints, what it leaves out and why, and its
//! exit codes.

use std::process::{Command, Output};

use serde_json::Value;

fn brickyard(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brickyard-heap"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `slab` with little to do.
fn slab(more: &[&str]) -> Output {
    let quick = ["slab", "--samples", "2", "--sample-us", "200"];
    brickyard(&[&quick, more].concat())
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn slab_has_a_row_for_each_workload_and_heap() {
    let out = slab(&[
        "--config",
        "system,floor,floor-dynamic",
        "--workload",
        "socket,local,remote,swap,tail",
        "--threads",
        "1,2",
        "--max-batch",
        "2",
        "--size",
        "48,1216",
        "--format",
        "json",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(results["experiment"], "slab");
    let rows = results["rows"].as_array().unwrap();
    for config in ["system", "floor", "floor-dynamic"] {
        // The samples of a row, wherever its threads ran.
        let samples = |workload: &str, metric: &str| -> usize {
            let of_row = |row: &&Value| {
                row["config"] == config
                    && row["workload"].as_str().unwrap().starts_with(workload)
                    && row["metric"] == metric
            };
            let n = rows.iter().filter(of_row).map(|row| row["n"].as_u64());
            n.map(Option::unwrap).sum::<u64>() as usize
        };
        for (workload, metric) in [
            ("socket threads-1", "pair"),
            ("socket threads-2", "zeroing"),
            ("socket threads-2", "rest"),
            ("local batch-1 size-48", "pair"),
            ("local batch-2 size-1216", "pair"),
            ("remote size-48", "object"),
            ("swap threads-2 size-1216", "swap"),
        ] {
            assert_eq!(
                samples(workload, metric),
                2,
                "{config}: {workload} {metric}"
            );
        }
        if cfg!(target_arch = "x86_64") {
            assert_eq!(samples("socket threads-1", "masking"), 2, "{config}");
            assert_eq!(samples("tail size-48", "p99.99"), 2, "{config}");
        }
        // One thread has no partner to swap with.
        assert_eq!(samples("swap threads-1", "swap"), 0, "{config}");
    }
}

#[test]
fn slab_measures_the_memory_of_each_heap() {
    let out = slab(&[
        "--config",
        "system,floor",
        "--workload",
        "producers,refill,giveback",
        "--live",
        "8M",
        "--rest",
        "0.1",
        "--format",
        "json",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mean = |metric: &str| {
        let mut rows = results["rows"].as_array().unwrap().iter();
        rows.find(|row| row["metric"] == metric).unwrap()["mean"]
            .as_f64()
            .unwrap()
    };
    // At least the live memory is resident.
    assert!(mean("peak") > 7.0 && mean("refilled") > 8.0);
    assert!(mean("rate") > 0.0);
    assert!(mean("at-rest") <= 100.0);
    // Fixed buffers have no memory to measure.
    assert!(!text(&out.stdout).contains("floor"));
}

#[test]
fn a_preloaded_library_is_measured() {
    let library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    if !std::path::Path::new(library).exists() {
        println!("skipped: {library} is not installed");
        return;
    }
    let mine = format!("mine={library}");
    let out = slab(&[
        "--config",
        "system,jemalloc.so",
        "--preload",
        &mine,
        "--workload",
        "local",
        "--max-batch",
        "1",
        "--format",
        "csv",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let csv = text(&out.stdout);
    for column in ["system", "jemalloc.so", "mine.so"] {
        let row = format!("{column},local batch-1 size-64,pair,ns,lower,2,");
        assert!(csv.contains(&row), "no {row} in:\n{csv}");
    }
}

#[test]
fn a_library_that_the_loader_ignores_has_no_row_and_is_an_error() {
    // A file that is not a library.
    let path = std::env::temp_dir().join(format!("brickyard-no-library-{}", std::process::id()));
    std::fs::write(&path, "text").unwrap();
    let mine = format!("mine={}", path.display());
    let out = slab(&[
        "--config",
        "floor",
        "--preload",
        &mine,
        "--workload",
        "local",
        "--max-batch",
        "1",
        "--format",
        "csv",
    ]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(out.status.code(), Some(1));
    let error = text(&out.stderr);
    assert!(
        error.contains("mine.so, local batch-1") && error.contains("did not load"),
        "{error}"
    );
    // The other rows are not lost.
    let csv = text(&out.stdout);
    assert!(
        csv.contains("floor,local") && !csv.contains("mine"),
        "{csv}"
    );
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 15] = [
        (&["--config", "nonesuch"], "system, floor"),
        (&["--config", "nonesuch.so"], "jemalloc.so"),
        (&["--config", "system,system"], "twice"),
        (&["--preload", "nonesuch"], "write NAME=PATH"),
        (
            &["--preload", "mine=/nonexistent.so"],
            "give the path of a shared library",
        ),
        (&["--preload", "=/bin/sh"], "cannot be the name of a column"),
        (&["--workload", "nothing"], "refill"),
        (
            &["--workload", "swap", "--threads", "1"],
            "add 2 to --threads",
        ),
        (&["--threads", "2,2"], "twice"),
        (&["--threads", "0"], "at least 1"),
        (&["--size", "8"], "16..=32768"),
        (
            &["--workload", "refill", "--live", "1K"],
            "give at least 1M",
        ),
        (
            &["--workload", "refill", "--live", "900T"],
            "give a --live of at most",
        ),
        (&["--rest", "-1"], "--rest"),
        (&["--instructions", "--size", "64"], "cannot be used with"),
    ];
    for (arguments, hint) in cases {
        let out = brickyard(&[&["slab"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
        assert!(out.stdout.is_empty());
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn instructions_of_a_hit_are_counted() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return;
    }
    let count = || {
        let out = brickyard(&[
            "bench",
            "slab",
            "--instructions",
            "--config",
            "system,floor",
            "--format",
            "csv",
        ]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let csv = count();
    for row in [
        "hits size-64,alloc",
        "hits size-64,free",
        "hits size-1216,alloc",
    ] {
        let row = format!("system,{row},instructions,lower,1,");
        assert!(csv.contains(&row), "no {row} in:\n{csv}");
    }
    // Returning a fixed buffer is a few instructions, freeing it about none.
    let floor = csv
        .lines()
        .find(|line| line.starts_with("floor,hits size-64,free"));
    let mean: f64 = floor.unwrap().split(',').nth(6).unwrap().parse().unwrap();
    assert!((-2.0..=2.0).contains(&mean), "{csv}");
}
