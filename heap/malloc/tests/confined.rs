//! What the library does in programs that are confined: with limits of addresses and of data, with
//! filters of system calls, in a small control group, and with the rights of another user. A
//! request that fails returns null with `ENOMEM`; nothing ends the program.
//!
//! The program is `confined.c`, compiled here by the machine's C compiler. What the machine does
//! not have, or this user may not do, is said and skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{compiled_by, library};

/// The program, compiled once.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| compiled_by("CC", "confined.c", "confined", &[], &[]));
    program.as_deref()
}

#[track_caller]
fn passes(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}{}", output.status);
    print!("{said}");
}

#[track_caller]
fn runs(words: &[&str], settings: &[(&str, &str)]) {
    let Some(program) = program() else { return };
    let mut command = Command::new(program);
    let command = command.args(words).env("LD_PRELOAD", library());
    passes(&command.envs(settings.iter().copied()).output().unwrap());
}

const ROWS: [&[(&str, &str)]; 2] = [&[], &[("BRICKYARD_ROWS", "thread")]];

// The last two words: MiB that objects of each size must be able to have, and those at which the
// program stops asking.

#[test]
fn under_a_limit_of_addresses_objects_get_half_of_it() {
    runs(&["limited", "addresses", "24", "early", "4", "64"], &[]);
    runs(&["limited", "addresses", "64", "early", "24", "128"], &[]);
    runs(
        &["limited", "addresses", "150", "early", "50", "256"],
        ROWS[1],
    );
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn whatever_the_limit_the_heap_takes_what_fits() {
    // With rows of threads, which take 16 MiB, just not beside the span that was first reserved.
    for limit in ["70", "74", "76", "80", "84", "140"] {
        runs(
            &["limited", "addresses", limit, "early", "20", "64"],
            ROWS[1],
        );
    }
    // What a span has is whole zones of a gibibyte.
    let span = [("BRICKYARD_SPAN", "95")];
    for (limit, least) in [("2200", "1200"), ("4400", "1700")] {
        runs(
            &["limited", "addresses", limit, "early", least, "2600"],
            &span,
        );
    }
}

#[test]
fn freed_large_blocks_are_given_back_before_small_ones_are_refused() {
    runs(&["limited data, spares"], &[]);
}

#[test]
fn locked_memory_is_what_is_used_and_freed_memory_goes_back_beside_it() {
    let alone = [("BRICKYARD_BACKGROUND", "0")];
    runs(&["locked and freed"], &alone);
    runs(&["locked"], &[("BRICKYARD_SPAN", "4")]);
    let hardened = [("BRICKYARD_HARDEN", "1"), ("BRICKYARD_SPAN", "4")];
    runs(&["locked"], &hardened);
}

#[test]
fn where_the_span_is_full_what_is_at_hand_stays_there() {
    runs(&["full span"], &[("BRICKYARD_SPAN", "1")]);
}

#[test]
fn what_realloc_cuts_off_goes_back() {
    runs(&["shrinks"], &[]);
}

#[test]
fn a_thread_of_real_time_does_not_keep_others_from_what_it_waits_for() {
    runs(&["real time"], &[]);
    runs(&["starts the background"], &[]);
}

#[test]
fn under_a_limit_of_addresses_that_comes_late_objects_get_most_of_it() {
    runs(&["limited", "addresses", "64", "late", "32", "128"], &[]);
    runs(&["limited", "addresses", "600", "late", "500", "700"], &[]);
    let span = [("BRICKYARD_SPAN", "1")];
    runs(
        &["limited", "addresses", "2000", "late", "100", "128"],
        &span,
    );
}

#[test]
fn under_a_limit_of_data_objects_get_most_of_it_early_and_late() {
    for when in ["early", "late"] {
        runs(&["limited", "data", "64", when, "44", "128"], &[]);
        runs(&["limited", "data", "150", when, "110", "256"], ROWS[1]);
    }
}

#[test]
fn a_process_of_one_thread_makes_few_kinds_of_calls() {
    for settings in ROWS {
        runs(&["filtered", "everything else"], settings);
    }
}

#[test]
fn it_goes_on_where_calls_are_refused() {
    for call in ["madvise", "mprotect", "mremap", "munmap"] {
        runs(&["filtered", "refused", call], &[]);
    }
}

#[test]
fn it_goes_on_without_a_background_thread_and_without_going_to_other_cpus() {
    runs(&["filtered", "refused", "threads"], &[]);
    runs(&["filtered", "refused", "affinity"], &[]);
}

#[test]
fn the_background_thread_does_nothing_that_a_filter_may_end_the_process_for() {
    runs(&["filtered", "threads"], &[]);
    runs(&["filtered", "affinity"], &[]);
}

/// A directory of its own for a test, which is removed afterwards.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let name = format!("brickyard-confined-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).unwrap();
        // Other users look into it.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Somebody without rights.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: a plain call.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("skipped: for root only");
    }
    root
}

#[test]
fn a_setuid_program_ignores_the_environment() {
    if !is_root() {
        return;
    }
    let directory = Directory::new();
    let linked_with = directory.0.join("libbrickyard_malloc.so.0");
    fs::copy(library(), &linked_with).unwrap();
    let path = format!("-Wl,-rpath,{}", directory.0.display());
    let words = ["-Wl,--no-as-needed", &path];
    let last = ["-xnone", linked_with.to_str().unwrap()];
    let Some(linked) = compiled_by("CC", "confined.c", "confined-linked", &words, &last) else {
        return;
    };
    let (plain, settings) = (
        program().unwrap(),
        [
            ("BRICKYARD_DEBUG", "no such check"),
            ("BRICKYARD_STATS", "json"),
            ("BRICKYARD_HARDEN", "1"),
        ],
    );
    let run = |program: &Path, mode: u32| {
        let copy = directory.0.join("setuid");
        fs::copy(program, &copy).unwrap();
        chown(&copy, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(&copy);
        let command = command.arg("tells").env("LD_PRELOAD", &linked_with);
        let output = command.envs(settings).output().unwrap();
        passes(&output);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    // As it is without the bit: preloaded, hardened (the size is to the byte), and with JSON.
    let (said, told) = run(plain, 0o755);
    assert_eq!(said, "secure=0 usable=5 library=1\n");
    assert!(told.starts_with('{'), "{told}");
    let (said, told) = run(plain, 0o4755);
    if said.starts_with("secure=0") {
        return println!("skipped: no setuid programs in {}", directory.0.display());
    }
    assert!(said.ends_with("library=0\n"), "preloaded by a path: {said}");
    assert!(!told.contains("brickyard"), "{told}");
    let (said, told) = run(&linked, 0o4755);
    assert_eq!(said, "secure=1 usable=16 library=1\n");
    assert!(
        !told.is_empty() && !told.starts_with('{') && !told.contains("BRICKYARD"),
        "{told}"
    );
}

/// Makes a control group for memory, in either version; `None` if it cannot be had.
fn group() -> Option<(PathBuf, &'static str)> {
    let name = format!("brickyard-{}", std::process::id());
    for (root, file) in [
        ("/sys/fs/cgroup", "memory.max"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ] {
        let group = Path::new(root).join(&name);
        if fs::create_dir(&group).is_ok() {
            if group.join(file).exists() {
                return Some((group, file));
            }
            let _ = fs::remove_dir(&group);
        }
    }
    None
}

#[test]
fn in_a_small_control_group_freed_memory_serves_again() {
    let Some(program) = program() else { return };
    let Some((group, file)) = is_root().then(group).flatten() else {
        return println!("skipped: no control group for memory");
    };
    // What follows holds 200 MB for a moment, five times.
    fs::write(group.join(file), "230000000").unwrap();
    let mut command = Command::new(program);
    command.arg("gives back").env("LD_PRELOAD", library());
    let procs = std::ffi::CString::new(group.join("cgroup.procs").to_str().unwrap()).unwrap();
    // SAFETY: the child calls only what may be called between a fork and an exec.
    unsafe {
        command.pre_exec(move || {
            let file = libc::open(procs.as_ptr(), libc::O_WRONLY);
            let done = libc::write(file, c"0".as_ptr().cast(), 1);
            if done == 1 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    let output = command.output();
    fs::remove_dir(&group).unwrap();
    passes(&output.unwrap());
}
