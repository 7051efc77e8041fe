//! A process that only waits gets rid of what it has freed, even if it got no thread for a while.
//!
//! The programs are `idle.c` and `thread_refused.c`, compiled here by the machine's C compiler; where there
//! is none, the tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::process::Command;

use support::{compiled_by, library};

fn runs(source: &str, name: &str, words: &[&str]) {
    let Some(program) = compiled_by("CC", source, name, words, &[]) else {
        return;
    };
    let mut command = Command::new(program);
    let output = command.env("LD_PRELOAD", library()).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}{}", output.status);
}

#[test]
fn what_was_freed_goes_back_though_no_other_thread_ever_asked_for_memory() {
    runs("idle.c", "idle", &[]);
}

#[test]
fn a_thread_that_was_refused_is_asked_for_again() {
    // So that the library finds the program's `pthread_create`.
    runs("thread_refused.c", "thread_refused", &["-rdynamic"]);
}
