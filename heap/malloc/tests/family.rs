//! The library as C programs meet it: preloaded, loaded late, with a row a CPU and a row a thread;
//! what a bad free is told.
//!
//! The program is `family.c`, compiled here by the machine's C compiler; where there is none, the
//! tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{compiled_by, library};

/// The program, compiled once.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    // `mallinfo` is there, though nobody should use it any more.
    let words = ["-Wno-deprecated-declarations"];
    let program = PROGRAM.get_or_init(|| compiled_by("CC", "family.c", "family", &words, &[]));
    program.as_deref()
}

fn preloaded(words: &[&str], settings: &[(&str, &str)]) -> Option<Output> {
    let output = Command::new(program()?)
        .args(words)
        .env("LD_PRELOAD", library())
        .envs(settings.iter().copied())
        .output();
    Some(output.unwrap())
}

fn passes(settings: &[(&str, &str)]) {
    passes_as(&[], settings);
}

/// Without the checks that mostly wait.
fn passes_quickly(settings: &[(&str, &str)]) {
    passes_as(&["quickly"], settings);
}

fn passes_as(words: &[&str], settings: &[(&str, &str)]) {
    let Some(output) = preloaded(words, settings) else {
        return;
    };
    let (said, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{wrong}{}", output.status);
    assert_eq!(said.lines().count(), 21, "{said}");
}

#[test]
fn preloaded_with_a_row_a_cpu() {
    passes_quickly(&[]);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn preloaded_with_the_checks_that_wait() {
    passes(&[]);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn preloaded_with_a_row_a_thread() {
    passes(&[("BRICKYARD_ROWS", "thread")]);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn preloaded_with_few_addresses() {
    passes_quickly(&[("BRICKYARD_SPAN", "1")]);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn preloaded_with_a_profile_and_with_guarded_memory() {
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("family.heap");
    let profile = ("BRICKYARD_PROFILE", profile.to_str().unwrap());
    passes_quickly(&[
        profile,
        ("BRICKYARD_PROFILE_PERIOD", "20000"),
        ("BRICKYARD_SAMPLE", "3"),
    ]);
}

#[test]
fn loaded_late() {
    let Some(program) = program() else { return };
    let status = Command::new(program)
        .arg("late")
        .arg(library())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn bad_frees_are_told_and_end_the_program() {
    for (how, told) in [
        ("twice", "bad free: freed twice"),
        ("foreign", "free of what was not allocated"),
        ("run", "free of what was not allocated, or is free already"),
        ("inside", "free of what was not allocated"),
        ("pages inside an object", "free of what was not allocated"),
        ("unaligned", "no object begins there"),
        ("eight inside", "no object begins there"),
        ("interleaved, later", "double free"),
        ("sixteen inside, later", "found late"),
        ("no bytes twice", "freed twice"),
    ] {
        let Some(output) = preloaded(&["bad", how], &[]) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{how}");
        assert!(wrong.contains(told), "{how}: {wrong}");
    }
}

#[test]
fn accesses_to_no_bytes_and_far_from_a_small_program_s_memory_are_faults() {
    for how in ["no bytes", "no bytes, zeroed", "far behind", "far before"] {
        let Some(output) = preloaded(&["traps", how], &[]) else {
            return;
        };
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{how}");
    }
}

#[test]
fn checks_name_the_cache_and_what_was_done() {
    for (how, told) in [
        ("twice", "freed twice"),
        ("overflow", "written behind an object's end"),
        ("after", "use after free"),
    ] {
        let settings = [("BRICKYARD_DEBUG", "FZPU,general-64")];
        let Some(output) = preloaded(&["bad", how], &settings) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(wrong.contains("general-64"), "{how}: {wrong}");
        assert!(wrong.contains(told), "{how}: {wrong}");
    }
    let Some(output) = preloaded(&["bad", "none"], &[("BRICKYARD_DEBUG", "X,y")]) else {
        return;
    };
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && wrong.contains("BRICKYARD_DEBUG"),
        "{wrong}"
    );
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn programs_run_with_every_check() {
    passes_quickly(&[("BRICKYARD_DEBUG", "FZPU")]);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_hardened_heap_does_all_that_the_plain_one_does() {
    passes_quickly(&[("BRICKYARD_HARDEN", "1")]);
    let Some(output) = preloaded(&["hardened"], &[("BRICKYARD_HARDEN", "1")]) else {
        return;
    };
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
}

#[test]
fn the_hardened_heap_finds_every_mistake_at_once() {
    for (how, told) in [
        ("twice", "freed twice"),
        ("interleaved", "freed twice"),
        ("run", "freed twice"),
        ("run interleaved", "freed twice"),
        ("large twice", "not allocated, or is free already"),
        ("foreign", "not allocated"),
        ("static", "not allocated"),
        ("unaligned", "not aligned"),
        ("sixteen inside", "an address inside"),
        ("inside a run", "an address inside"),
        ("inside a large", "not allocated"),
        ("overflow", "written behind the end"),
        ("one behind", "written behind the end"),
        ("a zero behind", "written behind the end"),
        ("one behind a run", "written behind the end"),
        ("one behind a large", "written behind the end"),
        ("behind, by realloc", "written behind the end"),
        ("one before", "written before the beginning"),
        ("one before a run", "written before the beginning"),
        ("after, and reused", "written to after it was freed"),
        ("the size of free memory", "not in use"),
    ] {
        let Some(output) = preloaded(&["bad", how], &[("BRICKYARD_HARDEN", "1")]) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGABRT),
            "{how}: {wrong}"
        );
        assert!(wrong.contains(told), "{how}: {wrong}");
    }
    for how in [
        "no bytes",
        "no bytes, zeroed",
        "far behind",
        "far before",
        "a freed run",
        "a freed large block",
        "behind a large block",
    ] {
        let Some(output) = preloaded(&["traps", how], &[("BRICKYARD_HARDEN", "1")]) else {
            return;
        };
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{how}");
    }
}

#[test]
fn new_and_freed_memory_hold_what_is_asked_for() {
    let Some(output) = preloaded(&["perturbed"], &[]) else {
        return;
    };
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
}
