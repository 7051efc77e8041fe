//! The stacks of what is sampled: whole, through all kinds of frames; and of coroutines, whose
//! outermost frame may return to anything, as far as they go.
//!
//! The program is `frames.cpp`, compiled here by the machine's C++ compiler; where there is none,
//! the tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{compiled_by, library};

/// What a coroutine returns to: nothing, nowhere, data, and a function whose frame would begin
/// where there is no memory, or right above the stack.
const RETURNS_TO: [&str; 8] = [
    "0",
    "deadbeefcafe",
    "10",
    "ffffffffffffffff",
    "7fffffffffff",
    "data",
    "framed",
    "above",
];

fn run(words: &[&str], settings: &[(&str, &str)]) -> Option<Output> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let words_of_compiler = ["-std=c++17", "-fno-optimize-sibling-calls"];
    let program =
        PROGRAM.get_or_init(|| compiled_by("CXX", "frames.cpp", "frames", &words_of_compiler, &[]));
    let mut command = Command::new(program.as_deref()?);
    let command = command.args(words).env("LD_PRELOAD", library());
    Some(command.envs(settings.iter().copied()).output().unwrap())
}

/// Runs it with a profile of every request, which it reads itself.
#[track_caller]
fn is_whole(words: &[&str]) {
    let profile = concat!(env!("CARGO_TARGET_TMPDIR"), "/frames.heap");
    let settings = [
        ("BRICKYARD_PROFILE", profile),
        ("BRICKYARD_PROFILE_PERIOD", "1"),
    ];
    if let Some(output) = run(words, &settings) {
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{words:?}: {wrong}{}",
            output.status
        );
        println!("{said}");
    }
}

#[test]
fn stacks_are_whole_through_frames_of_all_kinds() {
    is_whole(&["nested"]);
}

/// On aarch64 the system's own code stands behind a handler, and not always with a table.
#[test]
#[cfg(target_arch = "x86_64")]
fn stacks_are_whole_through_a_signals_frame() {
    is_whole(&["signal"]);
}

#[test]
fn a_coroutine_may_return_to_anything() {
    for returns_to in RETURNS_TO {
        is_whole(&["coroutine", returns_to]);
        for every in ["1", "7"] {
            let words = ["coroutine", returns_to];
            let Some(output) = run(&words, &[("BRICKYARD_SAMPLE", every)]) else {
                return;
            };
            let wrong = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{returns_to}: {wrong}");
        }
    }
}

#[test]
fn a_mistake_of_a_coroutine_is_told_with_all_stacks() {
    for returns_to in RETURNS_TO {
        let words = ["misuse", returns_to];
        let Some(output) = run(&words, &[("BRICKYARD_SAMPLE", "1")]) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{wrong}");
        assert!(wrong.contains("use after free"), "{wrong}");
        let stacks: Vec<&str> = wrong.split(", by thread").skip(1).collect();
        assert_eq!(stacks.len(), 3, "{wrong}");
        for stack in stacks {
            let first = stack.lines().nth(1).unwrap();
            assert!(first.contains("/frames+0x"), "{returns_to}: {wrong}");
        }
    }
}

#[test]
fn stacks_are_whole_under_filters_that_end_who_reads_memory_by_the_system() {
    is_whole(&["filtered"]);
    is_whole(&["refused"]);
}
