//! The first request of a process builds the heap, and takes little stack all the same: it may come
//! on that of a coroutine.
//!
//! The program is `stack.c`, compiled here by the machine's C compiler; where there is none, the
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

/// The most bytes: in a build for use, and in one that checks itself, whose values are moved.
const MOST: usize = if cfg!(debug_assertions) { 24 } else { 8 } << 10;

#[test]
fn the_first_request_takes_little_stack() {
    let Some(program) = compiled_by("CC", "stack.c", "stack", &[], &[]) else {
        return;
    };
    let profile = concat!(env!("CARGO_TARGET_TMPDIR"), "/stack-profile");
    let settings = [
        ("BRICKYARD_ROWS", "cpu"),
        ("BRICKYARD_ROWS", "thread"),
        ("BRICKYARD_HUGE", "1"),
        ("BRICKYARD_HARDEN", "1"),
        ("BRICKYARD_DEBUG", "FZPU"),
        ("BRICKYARD_SAMPLE", "1"),
        ("BRICKYARD_PROFILE", profile),
    ];
    for (name, value) in settings {
        for word in ["small", "run", "large", "aligned", "resized"] {
            let mut command = Command::new(&program);
            let command = command.arg(word).env("LD_PRELOAD", library());
            let output = command.env(name, value).output().unwrap();
            assert!(output.status.success(), "{name} {word}: {output:?}");
            let said = String::from_utf8(output.stdout).unwrap();
            let bytes: usize = said.trim().parse().unwrap();
            assert!(bytes > 500 && bytes <= MOST, "{name} {word}: {bytes} bytes");
        }
    }
}
