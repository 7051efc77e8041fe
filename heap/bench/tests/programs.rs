//! `brickyard-heap programs` as a user runs it, and the small program with the loads that it
//! starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const LOADS: &str = env!("CARGO_BIN_EXE_brickyard-heap-loads");

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `programs` with little to do.
fn command(more: &[&str]) -> Command {
    let mut all = vec!["programs", "--quick"];
    if !more.contains(&"--rounds") {
        all.extend(["--rounds", "2"]);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard-heap"));
    command.args(all).args(more);
    command
}

fn programs(more: &[&str]) -> Output {
    command(more).output().unwrap()
}

fn loads(arguments: &[&str]) -> Output {
    Command::new(LOADS).args(arguments).output().unwrap()
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn programs_has_a_row_for_each_load_and_metric() {
    let out = programs(&[
        "--library",
        "glibc",
        "--load",
        "alloc-test,refill",
        "--threads",
        "2",
        "--format",
        "json",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(results["experiment"], "programs");
    let rows = results["rows"].as_array().unwrap();
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            let part = |of: &str| row[of].as_str().unwrap().to_owned();
            assert_eq!(
                (row["n"].as_u64(), part("config")),
                (Some(2), "glibc".into())
            );
            format!("{} {}", part("workload"), part("metric"))
        })
        .collect();
    let expected = [
        "alloc-test threads-1 time",
        "alloc-test threads-1 cpu",
        "alloc-test threads-1 peak",
        "alloc-test threads-2 time",
        "alloc-test threads-2 cpu",
        "alloc-test threads-2 peak",
        "refill time",
        "refill cpu",
        "refill peak",
        "refill over-live",
    ];
    assert_eq!(names, expected);
    // A quarter of 192 MiB is live.
    let peak = rows
        .iter()
        .find(|row| row["metric"] == "peak" && row["workload"] == "refill");
    let peak = peak.unwrap()["mean"].as_f64().unwrap();
    assert!((48.0..480.0).contains(&peak), "{peak}");
}

#[test]
fn starts_are_measured_each_by_itself() {
    let few = ["--library", "glibc", "--load", "start-true,start-sh"];
    let out = programs(&[&few[..], &["--format", "csv"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let csv = text(&out.stdout);
    for metric in [
        "start-time,µs",
        "start-cpu,µs",
        "start-faults,faults",
        "peak,MiB",
    ] {
        for program in ["true", "sh"] {
            let row = format!("glibc,start-{program},{metric},lower,2,");
            assert!(csv.contains(&row), "{row}: {csv}");
        }
    }
    assert!(!csv.contains("start-true,time"), "{csv}");
}

#[test]
fn a_load_tells_what_it_keeps_when_it_idles() {
    let few = ["--library", "glibc", "--load", "larson", "--settle", "0.2"];
    let out = programs(&[&few[..], &["--format", "json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let mean = |metric: &str| {
        let row = rows.iter().find(|row| row["metric"] == metric);
        row.unwrap()["mean"].as_f64().unwrap()
    };
    assert!(mean("settled") > 0.5 && mean("settled") <= mean("peak"));
}

#[test]
fn programs_has_a_table_and_a_document_for_compare() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    let file = file.to_str().unwrap();
    let few = ["--library", "glibc", "--load", "cfrac"];
    let table = programs(&few);
    let table = text(&table.stdout);
    assert!(
        table.contains("time, s") && table.contains("peak, MiB") && table.contains("cfrac"),
        "{table}"
    );
    let json = programs(&[&few[..], &["--format", "json", "--output", file]].concat());
    assert_eq!(json.status.code(), Some(0), "{}", text(&json.stderr));
    // `brickyard compare` reads it like this.
    let read = brickyard_results::read_json(Path::new(file)).unwrap();
    assert_eq!(
        (read.experiment(), read.configs()),
        ("programs", vec!["glibc"])
    );
    assert!(read.rows().iter().any(|row| row.workload() == "cfrac"));
}

#[test]
fn a_library_that_malloc_does_not_belong_to_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.so");
    fs::write(&file, "text").unwrap();
    let mine = file.to_str().unwrap();
    let out = programs(&["--library", mine, "--load", "cfrac"]);
    assert_eq!(out.status.code(), Some(1));
    let why = text(&out.stderr);
    assert!(
        why.contains("mine: malloc belongs to") && why.contains("give a shared library"),
        "{why}"
    );
}

#[test]
fn a_real_program_runs_with_its_malloc_bound() {
    if !Path::new("/usr/bin/sqlite3").exists() {
        println!("skipped: sqlite3 is not installed");
        return;
    }
    let few = ["--library", "glibc", "--load", "sqlite", "--format", "csv"];
    let out = programs(&few);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let csv = text(&out.stdout);
    assert!(csv.contains("glibc,sqlite,peak,MiB,lower,2,"), "{csv}");
}

#[test]
fn a_suite_whose_files_are_not_there_is_skipped_with_the_fix() {
    let mut command = command(&["--library", "glibc", "--load", "node-suite"]);
    let out = command.env("NODE_BENCHMARKS", "/no/such").output().unwrap();
    let why = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{why}");
    let fix = match why.contains("node is not installed") {
        true => "Debian's nodejs",
        false => "NODE_BENCHMARKS is not the whole path of the folder `benchmark`",
    };
    assert!(
        why.contains("node-suite is skipped: ") && why.contains(fix),
        "{why}"
    );
}

/// Compiles a malloc library of this C text; `None` without a compiler.
fn library(folder: &Path, c: &str) -> Option<PathBuf> {
    let (source, library) = (folder.join("mine.c"), folder.join("libmine.so"));
    fs::write(&source, c).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-fno-builtin", "-o"]);
    let done = compiler.arg(&library).arg(&source).output();
    match done {
        Ok(done) if done.status.success() => Some(library),
        _ => {
            println!("skipped: there is no C compiler");
            None
        }
    }
}

/// A library whose malloc gives a live block of 64 bytes again, once in a thousand times.
const WRONG: &str = "
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static void *last;
static int count;
void *malloc(size_t bytes) {
    if (bytes == 64 && ++count % 1000 == 0) return last;
    void *block = __libc_malloc(bytes);
    if (bytes == 64) last = block;
    return block;
}
void free(void *block) {}
void *calloc(size_t count, size_t bytes) { return __libc_calloc(count, bytes); }
void *realloc(void *block, size_t bytes) { return __libc_realloc(block, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) { return 12; }
";

#[test]
fn a_malloc_that_gives_a_block_twice_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let Some(wrong) = library(folder.path(), WRONG) else {
        return;
    };
    let wrong = format!("wrong={}", wrong.display());
    let out = programs(&[
        "--library",
        "glibc",
        "--library",
        &wrong,
        "--load",
        "glibc-simple",
        "--format",
        "csv",
    ]);
    assert_eq!(out.status.code(), Some(1));
    let why = text(&out.stderr);
    assert!(
        why.contains("wrong, glibc-simple: it exited with 1")
            && why.contains("lost what was written"),
        "{why}"
    );
    // The other rows are not lost.
    let csv = text(&out.stdout);
    assert!(
        csv.contains("glibc,glibc-simple,time,") && !csv.contains("wrong,"),
        "{csv}"
    );
}

#[test]
fn wrong_usage_of_programs_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 9] = [
        (&["--library", "nonesuch"], "write NAME=PATH"),
        (
            &["--library", "/no/such.so"],
            "give the path of a shared library",
        ),
        (&["--load", "nonesuch"], "larson"),
        (&["--load", "larson,larson"], "twice"),
        (&["--threads", "0"], "at least 1"),
        (&["--threads", "5000"], "at most 4096"),
        (&["--rounds", "0"], "at least 1"),
        (&["--settle", "-1"], "from 0.1 to 600"),
        (
            &["--library", "glibc", "--loads", "/no/such"],
            "brickyard-heap-loads",
        ),
    ];
    for (arguments, fix) in cases {
        let out = programs(arguments);
        let why = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {why}");
        assert!(why.contains(fix), "{arguments:?}: {why}");
    }
}

#[test]
fn the_program_with_the_loads_tells_what_it_did() {
    let out = loads(&["xmalloc", "2", "0.001"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let lines = text(&out.stdout);
    let value = |name: &str| {
        let mut lines = lines.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .to_owned()
    };
    assert_eq!(value("malloc "), value("c-library "));
    assert_eq!(value("operations "), "12288");
    for (arguments, why) in [
        (&[][..], "no load is named"),
        (&["nonesuch"], "loads: alloc-test"),
        (&["larson", "0"], "is not a number of threads"),
        (&["larson", "2", "-1"], "is not a scale"),
        (&["larson", "2", "1", "1", "1"], "too many"),
        (&["larson", "2", "1", "-1"], "is not a number of seconds"),
        (&["measure", "-"], "measure needs a program"),
        (&["starts", "-", "2"], "starts needs a number and a program"),
        (&["starts", "-", "0", "true"], "is not a number of times"),
        (&["latency", "2"], "latency needs threads and seconds"),
        (&["latency", "0", "1"], "is not a number of threads"),
    ] {
        let out = loads(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&out.stderr).contains(why),
            "{arguments:?}: {}",
            text(&out.stderr)
        );
    }
}

#[test]
fn a_program_is_measured_with_its_output_and_code() {
    let out = loads(&["measure", "-", "sh", "-c", "printf text; exit 3"]);
    assert_eq!(out.status.code(), Some(3));
    let lines = text(&out.stdout);
    let (said, measured) = lines.split_once('\n').unwrap();
    assert_eq!(said, "text");
    assert!(measured.starts_with("measured "), "{measured}");
    assert_eq!(loads(&["measure", "-", "/no/such"]).status.code(), Some(1));
}
