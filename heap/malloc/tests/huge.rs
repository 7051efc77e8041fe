//! Huge pages under the real library: asked for, not wanted, and disabled by the process.
//!
//! The program is `huge.c`, compiled here by the machine's C compiler. Where there is none, or
//! where the system gives no huge pages, the tests say so and are skipped.

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

/// Runs the program, and returns the KiB of huge pages and of all memory; `None` without a
/// compiler.
fn runs(words: &[&str], variables: &[(&str, &str)]) -> Option<(usize, usize)> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| compiled_by("CC", "huge.c", "huge", &[], &[]));
    let mut command = Command::new(program.as_deref()?);
    let command = command.args(words).env("LD_PRELOAD", library());
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}{}", output.status);
    let said = String::from_utf8(output.stdout).unwrap();
    let (huge, all) = said.trim().split_once(' ').unwrap();
    Some((huge.parse().unwrap(), all.parse().unwrap()))
}

/// Why this machine gives no huge pages to who asks, if it gives none.
fn withheld() -> Option<&'static str> {
    let choice = |name| {
        let file = format!("/sys/kernel/mm/transparent_hugepage/{name}");
        std::fs::read_to_string(file).unwrap_or_default()
    };
    let of_size = choice("hugepages-2048kB/enabled");
    let chosen = match of_size.contains("[inherit]") || of_size.is_empty() {
        true => choice("enabled"),
        false => of_size,
    };
    let are_any = chosen.contains("[madvise]") || chosen.contains("[always]");
    (!are_any).then_some("the system gives no huge pages")
}

#[test]
fn what_is_much_is_huge_pages_unless_they_are_unwanted() {
    let Some((huge, all)) = runs(&["fills"], &[]) else {
        return;
    };
    // 192 MiB of objects, and 64.
    assert!(all >= 256 << 10, "{all} KiB");
    match withheld() {
        Some(reason) => println!("skipped: {reason}"),
        None if huge == 0 => println!("skipped: no huge page is free, or the process has none"),
        None => assert!(huge >= 2048, "{huge} KiB"),
    }
    for variables in [("BRICKYARD_HUGE", "0"), ("BRICKYARD_HARDEN", "1")] {
        let (huge, _) = runs(&["fills"], &[variables]).unwrap();
        let is_usual = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .is_ok_and(|text| text.contains("[always]"));
        if is_usual && variables.0 == "BRICKYARD_HARDEN" {
            println!("skipped: all memory is huge pages");
            continue;
        }
        assert_eq!(huge, 0, "{variables:?}");
    }
}

#[test]
fn a_process_that_disables_them_later_has_none() {
    let Some((huge, all)) = runs(&["disabled", "fills"], &[]) else {
        return;
    };
    assert_eq!(huge, 0);
    assert!(all < 300 << 10, "{all} KiB");
}
