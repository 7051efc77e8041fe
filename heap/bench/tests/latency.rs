//! `brickyard-heap latency` as a user runs it.

use core::time::Duration;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn command(more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard-heap"));
    command.args(["latency", "--library", "glibc"]);
    command.args(more);
    command
}

fn latency(more: &[&str]) -> Output {
    command(more).output().unwrap()
}

const FEW: [&str; 6] = ["--seconds", "0.3", "--rounds", "2", "--threads", "1,2"];

/// Says that there is nothing to test on this processor.
fn has_a_counter() -> bool {
    let has = cfg!(target_arch = "x86_64");
    if !has {
        println!("skipped: single operations can be timed on x86-64 only");
    }
    has
}

fn rows(out: &Output) -> Vec<(String, Vec<f64>)> {
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(results["experiment"], "latency");
    let row = |row: &Value| {
        let part = |of: &str| row[of].as_str().unwrap().to_owned();
        assert_eq!(part("config"), "glibc");
        let samples = row["samples"].as_array().unwrap();
        let samples = samples.iter().map(|sample| sample.as_f64().unwrap());
        (
            format!("{} {}", part("workload"), part("metric")),
            samples.collect(),
        )
    };
    results["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect()
}

#[test]
fn latency_has_rows_for_each_number_of_threads() {
    if !has_a_counter() {
        return;
    }
    let out = latency(&[&FEW[..], &["--format", "json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let rows = rows(&out);
    let samples = |name: &str| {
        let row = rows.iter().find(|(of, _)| of == name);
        row.map(|(_, samples)| samples.clone()).unwrap_or_default()
    };
    for threads in ["threads-1", "threads-2"] {
        for name in [
            "malloc",
            "touch",
            "free",
            "small-malloc",
            "small-free",
            "nothing",
        ] {
            let of = |metric: &str| samples(&format!("{name} {threads} {metric}"));
            let (half, most) = (of("p50"), of("max"));
            // On a busy machine there may be none.
            let undisturbed = of("max-undisturbed");
            assert!(
                undisturbed.len() <= 2 && (half.len(), most.len()) == (2, 2),
                "{name}"
            );
            assert!(
                undisturbed
                    .iter()
                    .all(|each| most.iter().any(|most| each <= most))
            );
            for round in 0..2 {
                assert!(
                    half[round] <= most[round] && most[round] > 0.0,
                    "{name} {threads}"
                );
            }
        }
        let of = |metric: &str| samples(&format!("process {threads} {metric}"));
        assert!(of("operations").iter().all(|&each| each > 0.0));
        assert!(of("peak").iter().all(|&each| each > 10.0));
        for metric in ["minor-faults", "major-faults", "preempted"] {
            assert!(of(metric).iter().all(|&each| each >= 0.0) && of(metric).len() == 2);
        }
    }
}

#[test]
fn latency_has_a_table_of_percentiles() {
    if !has_a_counter() {
        return;
    }
    let out = latency(&["--seconds", "0.2", "--rounds", "1", "--threads", "1"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    for part in [
        "threads-1",
        "p50",
        "max-undisturbed",
        "large-free",
        "nothing",
        "minor-faults",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(!table.contains("Interrupted"), "{table}");
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    if !has_a_counter() {
        return;
    }
    let mut long = command(&["--seconds", "600", "--threads", "1", "--format", "json"]);
    let long = long
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Long enough to have begun, on a busy machine too; if it is not, the next signal ends it.
    let begun = Instant::now();
    let is_measuring = || {
        let listed = Command::new("ps")
            .args(["--ppid", &long.id().to_string(), "-o", "args="])
            .output();
        listed.is_ok_and(|listed| text(&listed.stdout).contains("latency 1 600"))
    };
    while !is_measuring() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(Duration::from_secs(2));
    let mut kill = Command::new("kill");
    assert!(
        kill.args(["-INT", &long.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let out = long.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let rows = rows(&out);
    assert!(rows.iter().any(|(name, _)| name == "malloc threads-1 p50"));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(results["interrupted"], true);
}

#[test]
fn wrong_usage_of_latency_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 6] = [
        (&["--threads", "0"], "at least 1"),
        (&["--threads", "2,2"], "twice"),
        (&["--threads", "1000"], "at most 256"),
        (&["--seconds", "0"], "from 0.1"),
        (&["--rounds", "0"], "at least 1"),
        (&["--loads", "/no/such"], "brickyard-heap-loads"),
    ];
    for (arguments, fix) in cases {
        let out = latency(arguments);
        let why = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {why}");
        assert!(why.contains(fix), "{arguments:?}: {why}");
    }
}
