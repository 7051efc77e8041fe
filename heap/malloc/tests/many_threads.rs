//! The library among many threads: thousands at once, with a row a CPU and with a row a thread, and
//! forks while threads come and go.
//!
//! The program is `many_threads.c`, compiled here by the machine's C compiler; where there is none, the
//! tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use support::{compiled_by, library};

/// Runs the program, compiled once, and returns what it says; `None` without a compiler.
#[track_caller]
fn runs(words: &[&str], rows: &str) -> Option<String> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program =
        PROGRAM.get_or_init(|| compiled_by("CC", "many_threads.c", "many_threads", &[], &[]));
    let mut command = Command::new(program.as_deref()?);
    let command = command.args(words).env("LD_PRELOAD", library());
    // What is measured is what is cached: with huge pages memory counts that was never touched.
    command.env("BRICKYARD_HUGE", "0");
    let output = command.env("BRICKYARD_ROWS", rows).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}{}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Memory of a process with `threads` threads, in bytes: what lies in the slots, queues of free
/// objects of a few CPUs or of at most 255 threads, and 16 KiB for each thread and its stack.
const fn bound(threads: usize) -> usize {
    (160 << 20) + threads * (16 << 10)
}

#[test]
fn five_thousand_threads_at_once_take_no_more_than_their_stacks() {
    for rows in ["cpu", "thread"] {
        let Some(said) = runs(&["at once", "5000"], rows) else {
            return;
        };
        let numbers: Vec<usize> = said
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        let &[threads, bytes] = &numbers[..] else {
            panic!("{said}")
        };
        if threads < 5000 {
            println!("no more than {threads} threads can be had here");
        }
        assert!(
            bytes < bound(threads),
            "{rows}: {threads} threads, {bytes} bytes"
        );
    }
}

#[test]
fn children_made_while_threads_come_and_go_use_the_heap() {
    for rows in ["cpu", "thread"] {
        runs(&["forks"], rows);
    }
}

/// The heap is built by the first request. Later ones need few pages of stack.
#[test]
fn a_thread_with_the_smallest_stack_may_find_nothing_at_hand() {
    for rows in ["cpu", "thread"] {
        runs(&["small"], rows);
    }
}
