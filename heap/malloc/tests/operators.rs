//! C++'s operators as programs meet them: in all forms, without memory, with some of them replaced,
//! and in a process whose C++ library only a part of it can see. Beside them: what the library's
//! own header declares.
//!
//! The programs are `operators.cpp`, `operators.c` and `extensions.c`, compiled here by the machine's
//! compilers; where there is none, the tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{compiled_by, library};

fn compiled(source: &str, name: &str, words: &[&str]) -> Option<PathBuf> {
    let variable = if source.ends_with(".c") { "CC" } else { "CXX" };
    compiled_by(variable, source, name, words, &[])
}

fn preloaded(program: &Path, words: &[&Path], settings: &[(&str, &str)]) -> Output {
    Command::new(program)
        .args(words)
        .env("LD_PRELOAD", library())
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

#[track_caller]
fn passes(output: &Output, lines: usize) {
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}{}", output.status);
    assert_eq!(said.lines().count(), lines, "{said}");
}

#[test]
fn every_form_serves_and_fails_as_the_standard_says() {
    let Some(program) = compiled("operators.cpp", "operators", &["-std=c++17"]) else {
        return;
    };
    for settings in [
        &[][..],
        &[("BRICKYARD_ROWS", "thread")],
        &[("BRICKYARD_DEBUG", "FZPU")],
        &[("BRICKYARD_HARDEN", "1")],
    ] {
        passes(&preloaded(&program, &[], settings), 7);
    }
}

#[test]
fn the_hardened_heap_compares_sizes() {
    let Some(program) = compiled("operators.cpp", "operators-sizes", &["-std=c++17"]) else {
        return;
    };
    for form in ["one", "many", "large", "free_sized"] {
        let form = [Path::new(form)];
        passes(&preloaded(&program, &form, &[("BRICKYARD_HARDEN", "0")]), 0);
        let output = preloaded(&program, &form, &[("BRICKYARD_HARDEN", "1")]);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{form:?}");
        assert!(wrong.contains("with another size"), "{form:?}: {wrong}");
    }
}

#[test]
fn what_the_header_declares_is_there_in_c_and_c_plus_plus() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let (header, library) = (format!("-I{}", header.display()), library());
    let library = library.to_str().unwrap();
    for (variable, standard, name) in [
        ("CC", &["-std=c11"][..], "own-c"),
        ("CXX", &["-xc++", "-std=c++11"], "own-cpp"),
    ] {
        // What follows the source is the library itself.
        let words = [&["-Wextra", "-pedantic", &header], standard].concat();
        let Some(program) =
            compiled_by(variable, "extensions.c", name, &words, &["-xnone", library])
        else {
            continue;
        };
        let output = preloaded(&program, &[], &[]);
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{wrong}{}", output.status);
        assert!(!said.is_empty(), "brickyard_stats prints nothing");
    }
}

#[test]
fn what_the_program_replaces_serves_the_forms_that_it_leaves_out() {
    let words = ["-std=c++17", "-DREPLACED"];
    if let Some(program) = compiled("operators.cpp", "operators-replaced", &words) {
        passes(&preloaded(&program, &[], &[]), 1);
        // Its sizes are its own affair.
        passes(&preloaded(&program, &[], &[("BRICKYARD_HARDEN", "1")]), 1);
    }
}

#[test]
fn a_plugin_catches_what_is_thrown_in_a_c_program() {
    let words = ["-std=c++17", "-DPLUGIN", "-shared", "-fPIC"];
    let (Some(plugin), Some(program)) = (
        compiled("operators.cpp", "operators-plugin.so", &words),
        compiled("operators.c", "operators-c", &[]),
    ) else {
        return;
    };
    passes(&preloaded(&program, &[&plugin], &[]), 0);
}

#[test]
fn without_a_c_plus_plus_library_it_says_so() {
    let Some(program) = compiled("operators.c", "operators-none", &[]) else {
        return;
    };
    let output = preloaded(&program, &[], &[]);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_none(), "{}: {wrong}", output.status);
    assert!(
        wrong.contains("no C++ library to throw std::bad_alloc"),
        "{wrong}"
    );
}

/// The 8 forms of `new` and 12 of `delete`, as the Itanium ABI names them on machines of 64 bits.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for array in ["w", "a"] {
        for align in ["", "St11align_val_t"] {
            for nothrow in ["", "RKSt9nothrow_t"] {
                names.push(format!("_Zn{array}m{align}{nothrow}"));
            }
        }
    }
    for array in ["l", "a"] {
        for align in ["", "St11align_val_t"] {
            names.push(format!("_Zd{array}Pv{align}"));
            names.push(format!("_Zd{array}Pvm{align}"));
            names.push(format!("_Zd{array}Pv{align}RKSt9nothrow_t"));
        }
    }
    names
}

/// An exception is another unwinder's where the library contains one. None of the library's frames
/// that it passes has anything to do (`nothing-to-drop`), and so none has code that asks about the
/// exception: it would ask the library's unwinder.
#[test]
fn frames_that_exceptions_pass_have_no_code_for_them() {
    let ask = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        let output = command
            .args(words)
            .arg(library())
            .env("LC_ALL", "C")
            .output();
        let text = output.map(|output| String::from_utf8(output.stdout).unwrap());
        text.map_err(|error| println!("skipped: no {program}: {error}"))
    };
    let frames = ask("readelf", &["--debug-dump=frames"]);
    let (Ok(frames), Ok(names)) = (frames, ask("nm", &["--defined-only"])) else {
        return;
    };
    // Whether those that follow have such code; and the addresses of functions that have.
    let (mut origins, mut with_code) = (Vec::new(), Vec::new());
    for line in frames.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match &words[..] {
            [at, _, _, "CIE"] => origins.push((*at, false)),
            ["Augmentation:", how] => origins.last_mut().unwrap().1 = how.contains('P'),
            [_, _, _, "FDE", origin, addresses] => {
                let origin = origin.strip_prefix("cie=").unwrap();
                if origins.contains(&(origin, true)) {
                    let both = addresses.strip_prefix("pc=").unwrap().split_once("..");
                    let both = both.map(|(from, to)| [from, to].map(address));
                    with_code.push(both.unwrap());
                }
            }
            _ => {}
        }
    }
    assert!(!with_code.is_empty(), "{frames}");
    let passed = |name: &str| {
        // Or a handler for faults that throws.
        if name.contains("5fault8on_fault") {
            return true;
        }
        let ours = name.contains("cplusplus");
        let last = [
            "8new_slow",
            "11new_aligned",
            "16new_aligned_slow",
            "9make_room",
            "5throw",
        ];
        ours && last.iter().any(|last| name.contains(last))
    };
    let mut found = 0;
    for line in names.lines() {
        let Some((at, name)) = line.split_once(' ').filter(|(_, name)| passed(name)) else {
            continue;
        };
        let at = address(at);
        let has_code = with_code.iter().any(|&[from, to]| (from..to).contains(&at));
        assert!(!has_code, "{name}");
        found += 1;
    }
    assert!(found >= 3, "{names}");
}

fn address(digits: &str) -> usize {
    usize::from_str_radix(digits, 16).unwrap()
}

#[test]
fn every_name_is_exported() {
    let output = match Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
    {
        Ok(output) => output,
        Err(error) => return println!("skipped: no nm: {error}"),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(names().len(), 20);
    for name in names() {
        assert!(
            exported.contains(&name.as_str()),
            "{name} is not exported: {text}"
        );
    }
    let inner = exported.iter().find(|name| name.starts_with("here"));
    assert_eq!(inner, None, "a name of the library's own is exported");
}
