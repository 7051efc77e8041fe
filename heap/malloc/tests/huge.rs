//! Huge pages under the real library: none by default, asked for, not wanted, and disabled by the
//! process.
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

/// Runs the program with the library, and returns the KiB of huge pages and of all memory; `None`
/// without a compiler.
fn runs(words: &[&str], variables: &[(&str, &str)]) -> Option<(usize, usize)> {
    let library = library();
    let preloaded = [("LD_PRELOAD", library.to_str().unwrap())];
    runs_without(words, &[&preloaded, variables].concat())
}

/// Runs the program with the C library's own heap.
fn runs_without(words: &[&str], variables: &[(&str, &str)]) -> Option<(usize, usize)> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| compiled_by("CC", "huge.c", "huge", &[], &[]));
    let mut command = Command::new(program.as_deref()?);
    let command = command.args(words).envs(variables.iter().copied());
    let output = command.output().unwrap();
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

/// Whether all memory is huge pages, asked for or not.
fn is_usual() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|text| text.contains("[always]"))
}

#[test]
fn what_is_not_used_is_no_memory_unless_huge_pages_are_asked_for() {
    if is_usual() {
        println!("skipped: all memory is huge pages");
        return;
    }
    // Buffers, small and large, arenas, and the dictionary of a compressor with nothing to do.
    for words in [
        ["sparse", "4000", "256", "256"],
        ["sparse", "16000", "64", "64"],
        ["sparse", "100", "16384", "2048"],
        ["sparse", "1", "65536", "32768"],
    ] {
        let Some((_, usual)) = runs_without(&words, &[]) else {
            return;
        };
        let (huge, all) = runs(&words, &[]).unwrap();
        assert_eq!(huge, 0, "{words:?}");
        // The library itself has up to 1 MiB.
        let most = usual * 13 / 10 + 1024;
        assert!(
            all <= most,
            "{words:?}: {all} KiB, {usual} by the C library"
        );
    }
}

#[test]
fn what_is_much_is_huge_pages_if_they_are_wanted() {
    let Some((huge, all)) = runs(&["fills"], &[("BRICKYARD_HUGE", "1")]) else {
        return;
    };
    // 192 MiB of objects, and 64.
    assert!(all >= 256 << 10, "{all} KiB");
    match withheld() {
        Some(reason) => println!("skipped: {reason}"),
        None if huge == 0 => println!("skipped: no huge page is free, or the process has none"),
        None => assert!(huge >= 2048, "{huge} KiB"),
    }
    let (wanted, hardened) = (("BRICKYARD_HUGE", "1"), ("BRICKYARD_HARDEN", "1"));
    for variables in [&[("BRICKYARD_HUGE", "0")][..], &[wanted, hardened], &[]] {
        let (huge, _) = runs(&["fills"], variables).unwrap();
        if is_usual() && variables.len() != 1 {
            println!("skipped: all memory is huge pages");
            continue;
        }
        assert_eq!(huge, 0, "{variables:?}");
    }
}

#[test]
fn a_process_that_disables_them_later_has_none() {
    let wanted = [("BRICKYARD_HUGE", "1")];
    let Some((huge, all)) = runs(&["disabled", "fills"], &wanted) else {
        return;
    };
    assert_eq!(huge, 0);
    assert!(all < 300 << 10, "{all} KiB");
}
