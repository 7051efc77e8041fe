//! A process that only waits gets rid of what it has freed.
//!
//! The program is `idle.c`, compiled here by the machine's C compiler; where there is none, the
//! test says so and is skipped.

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::process::Command;

use support::{compiled_by, library};

#[test]
fn what_was_freed_goes_back_though_no_other_thread_ever_asked_for_memory() {
    let Some(program) = compiled_by("CC", "idle.c", "idle", &[], &[]) else {
        return;
    };
    let mut command = Command::new(program);
    let output = command.env("LD_PRELOAD", library()).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}{}", output.status);
}
