//! The library in processes that open and close other libraries, and beside programs that are
//! linked statically.
//!
//! The programs and the library that they open are `libraries.c`, compiled here by the machine's C
//! compiler; where there is none, the tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{compiled_by, library};

/// The program and the library that it opens, compiled once.
fn compiled() -> Option<&'static (PathBuf, PathBuf)> {
    static BOTH: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let both = BOTH.get_or_init(|| {
        let words = ["-DPLUGIN", "-shared", "-fPIC"];
        let plugin = compiled_by("CC", "libraries.c", "libraries-plugin.so", &words, &[])?;
        let program = compiled_by("CC", "libraries.c", "libraries", &[], &[])?;
        Some((program, plugin))
    });
    both.as_ref()
}

fn preloaded(program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    let command = command.args(words).env("LD_PRELOAD", library());
    command.output().unwrap()
}

#[track_caller]
fn opens(how: &str) -> Option<Output> {
    let (program, plugin) = compiled()?;
    Some(preloaded(program, &[how, plugin.to_str().unwrap()]))
}

#[track_caller]
fn passes(output: &Output) {
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}{}", output.status);
}

/// What it names each process has to load: the unwinder's library is half of what a start costs, the
/// C library's mathematics alone are a third of a MiB.
#[test]
fn it_needs_the_c_library_and_no_other() {
    // Where the unwinder is no part of it.
    let unwinder = if cfg!(brickyard_unwinds) {
        ""
    } else {
        "libgcc_s.so.1"
    };
    let bytes = std::fs::read(library()).unwrap();
    let names = bytes.split(|&byte| byte == 0);
    let names = names.filter_map(|name| core::str::from_utf8(name).ok());
    let foreign: Vec<_> = names
        .filter(|name| name.starts_with("lib") && name.contains(".so."))
        .filter(|name| !name.starts_with("libbrickyard_malloc."))
        .filter(|name| !["libc.so.6", unwinder].contains(name))
        .filter(|name| !name.starts_with("libstdc++") && !name.starts_with("libc++"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn memory_crosses_the_border_of_libraries_that_come_and_go() {
    if let Some(output) = opens("open") {
        passes(&output);
    }
}

#[test]
fn memory_crosses_the_border_of_libraries_that_ask_for_their_own_order() {
    for how in ["deep", "cross"] {
        if let Some(output) = opens(how) {
            passes(&output);
        }
    }
}

/// The C library ends threads by the unwinder, which the program has not loaded.
#[test]
fn threads_that_end_early_clean_up() {
    let Some((program, _)) = compiled() else {
        return;
    };
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries-%p.heap");
    for (name, value) in [
        ("BRICKYARD_ROWS", "thread"),
        ("BRICKYARD_HARDEN", "1"),
        ("BRICKYARD_SAMPLE", "1"),
        ("BRICKYARD_PROFILE", profile.to_str().unwrap()),
    ] {
        let mut command = Command::new(program);
        let command = command.arg("threads").env("LD_PRELOAD", library());
        passes(&command.env(name, value).output().unwrap());
    }
}

#[test]
fn a_library_that_is_linked_with_it_is_bound_to_it_in_any_case() {
    let path = library();
    let words = ["-DPLUGIN", "-shared", "-fPIC", "-Wl,--no-as-needed"];
    let last = ["-xnone", path.to_str().unwrap()];
    let name = "libraries-linked.so";
    let (Some(plugin), Some((program, _))) = (
        compiled_by("CC", "libraries.c", name, &words, &last),
        compiled(),
    ) else {
        return;
    };
    let plugin = plugin.to_str().unwrap();
    passes(&preloaded(program, &["cross", plugin]));
    // It brings the heap along, by the name that it was given, and that stays when it goes.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries-named");
    let named = folder.join("libbrickyard_malloc.so.0");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&path, named).unwrap();
    let mut command = Command::new(program);
    let command = command.args(["along", plugin]);
    passes(&command.env("LD_LIBRARY_PATH", folder).output().unwrap());
}

/// A debugger's core dump has all of them, also addresses that are only reserved.
#[test]
fn mappings_that_core_dumps_have_are_as_large_as_what_is_usable() {
    for harden in ["0", "1"] {
        let mut command = Command::new("cat");
        let command = command.arg("/proc/self/smaps").env("LD_PRELOAD", library());
        let output = command.env("BRICKYARD_HARDEN", harden).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (mut dumped, mut all, mut size) = (0, 0, 0);
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("Size:") => size = words.next().unwrap().parse::<usize>().unwrap(),
                Some("VmFlags:") if !words.any(|flag| flag == "dd") => dumped += size,
                Some("VmFlags:") => all += size,
                _ => {}
            }
        }
        // In KiB: the span, and what is usable of it, with the program.
        assert!(
            all > 30 << 20 && dumped < 96 << 10,
            "{dumped} {all}: {text}"
        );
    }
}

#[test]
fn a_statically_linked_program_keeps_its_own() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let asked = Command::new(compiler)
        .arg("-print-file-name=libc.a")
        .output();
    if !asked.is_ok_and(|output| output.stdout.starts_with(b"/")) {
        return println!("skipped: no static C library");
    }
    let words = ["-DSTATIC", "-static"];
    let Some(program) = compiled_by("CC", "libraries.c", "libraries-static", &words, &[]) else {
        return;
    };
    let output = preloaded(&program, &[]);
    passes(&output);
    assert_eq!(output.stdout, b"done\n");
}
