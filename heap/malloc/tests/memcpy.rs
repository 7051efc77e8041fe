//! The library as it is when it is built hardened: its `memcpy` and `memmove` copy as they should,
//! and end the program where memory is not in use, or too short.
//!
//! It is built here, in a directory of its own. The program is `memcpy.c`, compiled by the
//! machine's C compiler; where there is none, the test says so and is skipped.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "the other tests use the rest")]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::compiled_by;

fn hardened_library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hardened");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--package", "brickyard-malloc", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("BRICKYARD_HARDENED", "1")
        // What cargo or a sanitizer has set for the test is not for it.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    target.join("debug/libbrickyard_malloc.so")
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn copies_stay_within_memory_in_use() {
    let options = ["-fno-builtin", "-U_FORTIFY_SOURCE", "-Wno-nonnull"];
    let Some(program) = compiled_by("CC", "memcpy.c", "memcpy", &options, &[]) else {
        return;
    };
    let library = hardened_library();
    let run = |words: &[String]| -> Output {
        let mut command = Command::new(&program);
        command
            .args(words)
            .env("LD_PRELOAD", &library)
            .output()
            .unwrap()
    };
    let fine = run(&[]);
    let said = String::from_utf8_lossy(&fine.stderr);
    assert!(fine.status.success() && fine.stdout == b"fine\n", "{said}");
    let mut found = 0;
    for number in 0.. {
        let ended = run(&[number.to_string()]);
        if ended.stdout.is_empty() {
            break;
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let signal = ended.status.signal();
        let is_told = said.contains("brickyard: a copy to or from memory that is not in use");
        let is_told = is_told || said.contains("brickyard: written behind");
        assert!(
            signal == Some(libc::SIGABRT) && is_told,
            "{number}: {signal:?} {said}"
        );
        found += 1;
    }
    assert_eq!(found, 40);
}
