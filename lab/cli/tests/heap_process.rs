//! `brickyard heap PID`: it prints what the process itself would, and says why if it cannot.

use core::time::Duration;
use std::io::{BufRead as _, BufReader};
use std::process::{self, Child, Command, Output, Stdio};
use std::thread;

use brickyard_heap::{Format, Object, Statistics, alloc, statistics};
use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard"));
    command.arg("heap").args(arguments);
    command
}

fn heap(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the standard output about this process; `None`, with the reason printed, if the system
/// lets no process read another.
fn about_this(more: &[&str]) -> Option<String> {
    let pid = process::id().to_string();
    let out = heap(&[&[pid.as_str()], more].concat());
    let error = text(&out.stderr);
    if error.contains("may not be read") {
        println!("skipped: {error}");
        return None;
    }
    assert_eq!(out.status.code(), Some(0), "{error}");
    Some(text(&out.stdout))
}

/// Returns the sum of a figure's lines.
fn sum(csv: &str, figure: &str) -> usize {
    let fields = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let of = fields.filter(|fields| fields[1] == figure);
    of.map(|fields| fields[3].parse::<usize>().unwrap()).sum()
}

/// A program that is ended with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// One test, since what another thread allocates meanwhile would differ.
#[test]
fn a_process_is_shown_as_it_would_show_itself() {
    let mut held: Vec<_> = (0..3000)
        .map(|_| Object::new([0_u64; 80]).unwrap())
        .collect();
    held.truncate(2000);
    // For ever.
    assert!(!alloc(100 << 10).is_null() && !alloc(3 << 20).is_null());
    let inside: Statistics = statistics();
    let Some(json) = about_this(&["--format", "json"]) else {
        return;
    };
    assert_eq!(json, inside.text(Format::Json).to_string());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["held"], inside.held());
    let csv = about_this(&["--format", "csv"]).unwrap();
    assert_eq!(sum(&csv, "held_bytes"), inside.held());
    assert_eq!(
        sum(&csv, "in_use"),
        inside.sizes.iter().map(|of| of.in_use).sum::<usize>()
    );
    assert_eq!(
        sum(&csv, "slab_bytes") < inside.slabs,
        inside.queued() > 0,
        "with the queues' own"
    );
    let parts = [
        "objects_bytes",
        "runs_bytes",
        "large_bytes",
        "queued_bytes",
        "free_in_slabs_bytes",
        "idle_bytes",
    ];
    let parts = parts.map(|part| sum(&csv, part));
    assert_eq!(parts.iter().sum::<usize>(), inside.held());
    let table = about_this(&[]).unwrap();
    assert!(
        table.starts_with(&format!("process {} (", process::id())),
        "{table}"
    );
    let sizes = table
        .lines()
        .skip_while(|line| !line.contains("in use  cached"));
    assert_eq!(
        sizes.skip(1).count(),
        inside.sizes.iter().filter(|of| of.slabs > 0).count()
    );
    drop(held);
    a_heap_that_is_not_used_yet_is_told_apart_from_none();
}

/// The command itself has a heap, for its benchmarks; here it shows that of this process.
fn a_heap_that_is_not_used_yet_is_told_apart_from_none() {
    let pid = process::id().to_string();
    let mut shows = command(&[&pid, "--every", "3600", "--format", "json"]);
    let shows = shows.stdout(Stdio::piped()).spawn().unwrap();
    let mut shows = Running(shows);
    // It runs once it has shown something.
    let mut line = String::new();
    let out = BufReader::new(shows.0.stdout.take().unwrap());
    let _ = { out }.read_line(&mut line).unwrap();
    assert!(line.contains("\"held\":"), "{line}");
    let pid = shows.0.id().to_string();
    let out = heap(&[&pid]);
    assert_eq!(out.status.code(), Some(1));
    let error = text(&out.stderr);
    assert!(
        error.contains("(brickyard): it has not used its heap yet"),
        "{error}"
    );
    // It is gone, and its parent has not asked for its end yet.
    shows.0.kill().unwrap();
    for _ in 0..200 {
        let error = text(&heap(&[&pid]).stderr);
        if error.contains("it has ended") {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("process {pid}: {:?}", heap(&[&pid]));
}

#[test]
fn what_cannot_be_shown_is_explained() {
    let sleeps = Command::new("sleep")
        .arg("100")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let sleeps = Running(sleeps);
    let sleeps = sleeps.0.id().to_string();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["4194305"], 1, "there is no process 4194305"),
        (
            &[&sleeps],
            1,
            "(sleep) has no Brickyard heap: start it with LD_PRELOAD",
        ),
        (&[&sleeps, "--every", "0"], 2, "give 0.1 to 86400 seconds"),
        (&[&sleeps, "--format", "xml"], 2, "json"),
        (&["0"], 2, "0 is not in"),
        (&["server"], 2, "invalid value 'server'"),
        (&[], 2, "Usage: brickyard heap"),
    ];
    for (arguments, code, hint) in cases {
        let out = heap(arguments);
        let error = text(&out.stderr);
        if error.contains("may not be read") {
            println!("skipped: {error}");
            continue;
        }
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
        assert!(out.stdout.is_empty());
    }
}
