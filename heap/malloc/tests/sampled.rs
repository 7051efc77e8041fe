//! What is sampled: heap profiles, against a program whose memory is known; mistakes with guarded
//! memory, each of which has to be found; and programs without mistakes, in which nothing may be.
//!
//! The program is `sampled.c`, compiled here by the machine's C compiler; where there is none, the
//! tests say so and are skipped.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{compiled_by, library};

/// The program, compiled once.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let words = [
        "-g",
        "-rdynamic",
        "-Wno-array-bounds",
        "-Wno-use-after-free",
    ];
    let program = PROGRAM.get_or_init(|| compiled_by("CC", "sampled.c", "sampled", &words, &[]));
    program.as_deref()
}

fn run(words: &[&str], settings: &[(&str, &str)]) -> Option<Output> {
    let output = Command::new(program()?)
        .args(words)
        .env("LD_PRELOAD", library())
        .envs(settings.iter().copied())
        .output();
    Some(output.unwrap())
}

/// A file of its own, which is not there.
fn file(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&file);
    file
}

/// A line of a profile: samples and bytes, in use and of all requests, and how many addresses.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    live: [f64; 2],
    all: [f64; 2],
    depth: usize,
}

impl Line {
    fn parse(line: &str) -> Self {
        let (amounts, addresses) = line.split_once('@').unwrap();
        let numbers: Vec<f64> = amounts
            .split(|end: char| !end.is_ascii_digit())
            .filter(|digits| !digits.is_empty())
            .map(|digits| digits.parse().unwrap())
            .collect();
        Self {
            live: [numbers[0], numbers[1]],
            all: [numbers[2], numbers[3]],
            depth: addresses.split_whitespace().count(),
        }
    }
}

/// A profile: its period, and its lines.
struct Profile {
    period: f64,
    total: Line,
    lines: Vec<Line>,
}

impl Profile {
    fn parse(text: &str) -> Self {
        let (stacks, maps) = text.split_once("\n\nMAPPED_LIBRARIES:\n").unwrap();
        assert!(maps.contains("/sampled"), "{maps}");
        let mut lines = stacks.lines();
        let first = lines.next().unwrap();
        let total = Line::parse(first.strip_prefix("heap profile:").unwrap());
        let (_, period) = first.split_once("@ heap_v2/").unwrap();
        Self {
            period: period.parse().unwrap(),
            total,
            lines: lines.map(Line::parse).collect(),
        }
    }

    /// Estimated bytes of the requests whose mean size is near `bytes`, in use and all.
    fn estimate(&self, bytes: f64) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for line in &self.lines {
            let mean = line.all[1] / line.all[0];
            if (0.9..1.1).contains(&(mean / bytes)) {
                let scale = 1.0 / (1.0 - (-mean / self.period).exp());
                sums[0] += line.live[1] * scale;
                sums[1] += line.all[1] * scale;
            }
        }
        sums
    }
}

/// Checks a profile against what `sampled.c` does.
fn is_true(profile: &Profile) {
    let sum = |of: fn(&Line) -> f64| profile.lines.iter().map(of).sum::<f64>();
    assert_eq!(sum(|line| line.live[1]), profile.total.live[1]);
    assert_eq!(sum(|line| line.all[1]), profile.total.all[1]);
    let near = |estimate: f64, truth: f64| {
        let ratio = estimate / truth;
        assert!(
            (0.7..1.4).contains(&ratio),
            "{estimate} in place of {truth}"
        );
    };
    let [live, all] = profile.estimate(400.0);
    near(live, 50_000.0 * 400.0);
    near(all, 50_000.0 * 400.0);
    let [live, all] = profile.estimate(200.0);
    near(all, 400_000.0 * 200.0);
    assert!(live < 1e6, "{live}");
    // The first is in the profile with certainty, as it is after it has grown.
    let [live, all] = profile.estimate(f64::from(20 << 20));
    assert_eq!((live, all), (0.0, f64::from(20 << 20)));
    assert_eq!(
        profile.estimate(f64::from(50 << 20)),
        [f64::from(50 << 20); 2]
    );
    // `asks`, `keeps`, `all`, `profile`, `main`, and who called that; in a thread fewer.
    let deep = profile.lines.iter().filter(|line| line.depth >= 4);
    assert!(deep.count() >= 2);
}

/// The period: so that there are thousands of samples.
const PERIOD: (&str, &str) = ("BRICKYARD_PROFILE_PERIOD", "20000");

/// So that every request is a sample.
const EVERY: (&str, &str) = ("BRICKYARD_PROFILE_PERIOD", "1");

#[test]
fn a_profile_tells_who_asked_for_how_much_and_what_is_in_use() {
    for how in ["end", "thread", "signal"] {
        let file = file(&format!("{how}.heap"));
        let settings = [
            ("BRICKYARD_PROFILE", file.to_str().unwrap()),
            ("BRICKYARD_PROFILE_SIGNAL", "USR2"),
            PERIOD,
        ];
        let Some(output) = run(&["profile", how], &settings) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && wrong.is_empty(),
            "{how}: {wrong}"
        );
        let profile = Profile::parse(&fs::read_to_string(&file).unwrap());
        assert_eq!(profile.period, 20_000.0);
        is_true(&profile);
    }
}

#[test]
fn a_signal_to_several_threads_writes_whole_profiles() {
    let file = file("signals.heap");
    let settings = [
        ("BRICKYARD_PROFILE", file.to_str().unwrap()),
        ("BRICKYARD_PROFILE_SIGNAL", "USR2"),
        ("BRICKYARD_PROFILE_PERIOD", "1000"),
    ];
    let Some(output) = run(&["profile", "signals"], &settings) else {
        return;
    };
    // Two that write at once take each other's file away, which is told.
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && wrong.is_empty(), "{wrong}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(Profile::parse(&text).estimate(400.0)[0] > 1e7);
}

/// A program as it is without the library: it ends by the signal.
#[test]
fn handlers_that_are_passed_on_or_taken_away_are_called_as_often_as_without_the_heap() {
    for which in ["chain", "away", "reset"] {
        let Some(output) = run(&["handlers", which], &[("BRICKYARD_SAMPLE", "1")]) else {
            return;
        };
        let signal = output.status.signal();
        assert_eq!(signal, Some(libc::SIGSEGV), "{which}: {}", output.status);
    }
}

/// What is no file stays what it is: a device, a pipe that nobody reads, a link.
#[test]
fn a_profile_takes_no_name_of_what_is_no_file() {
    let (pipe, link) = (file("pipe"), file("link"));
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    for other in [&pipe, &link] {
        let before = fs::symlink_metadata(other).unwrap().file_type();
        let settings = [("BRICKYARD_PROFILE", other.to_str().unwrap()), EVERY];
        let Some(output) = run(&["mistake", "none"], &settings) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {wrong}", output.status);
        assert!(wrong.contains("that is there, and no file"), "{wrong}");
        assert_eq!(fs::symlink_metadata(other).unwrap().file_type(), before);
    }
}

#[test]
fn nobody_waits_for_the_reader_of_a_profile() {
    let file = file("reader.heap");
    let settings = [("BRICKYARD_PROFILE", file.to_str().unwrap()), EVERY];
    let Some(output) = run(&["reader"], &settings) else {
        return;
    };
    assert!(output.status.success(), "{}", output.status);
}

#[test]
fn what_an_unwinder_asks_for_under_its_lock_is_sampled_without_waiting() {
    let file = file("registers.heap");
    for settings in [
        vec![("BRICKYARD_PROFILE", file.to_str().unwrap()), EVERY],
        vec![("BRICKYARD_SAMPLE", "1")],
    ] {
        let Some(output) = run(&["registers"], &settings) else {
            return;
        };
        assert!(output.status.success(), "{}", output.status);
    }
}

#[test]
fn what_is_noted_takes_no_more_pages_than_it_needs() {
    let file = file("shapes.heap");
    let (plain, counted) = (vec![], vec![("BRICKYARD_SAMPLE", "1000000000")]);
    let sampled = vec![("BRICKYARD_PROFILE", file.to_str().unwrap()), EVERY];
    for (what, settings) in [
        ("zeros", &plain),
        ("zeros", &counted),
        ("aligned", &plain),
        ("aligned", &sampled),
    ] {
        let Some(output) = run(&[what], settings) else {
            return;
        };
        assert!(output.status.success(), "{settings:?}: {}", output.status);
    }
}

#[test]
fn without_addresses_for_what_is_noted_the_program_goes_on() {
    let Some(program) = program() else { return };
    let file = file("limited.heap");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 60000; exec \"$0\" mistake none"])
        .arg(program)
        .env("LD_PRELOAD", library())
        .env("BRICKYARD_PROFILE", &file)
        .env("BRICKYARD_SAMPLE", "10")
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
}

#[test]
fn a_program_asks_for_its_profile() {
    let none = file("asked.heap");
    let settings = [("BRICKYARD_PROFILE", none.to_str().unwrap()), PERIOD];
    let Some(output) = run(&["profile", "call"], &settings) else {
        return;
    };
    assert!(output.status.success(), "{}", output.status);
    is_true(&Profile::parse(&String::from_utf8(output.stdout).unwrap()));
    // Without a profile the call says so.
    let output = run(&["profile", "call"], &[]).unwrap();
    assert_eq!(output.status.code(), Some(61), "ENODATA");
}

#[test]
fn a_child_writes_a_file_of_its_own() {
    let pattern = file("child.%p.%n.heap");
    let settings = [("BRICKYARD_PROFILE", pattern.to_str().unwrap()), PERIOD];
    let folder = pattern.parent().unwrap();
    let found = || -> Vec<PathBuf> {
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            name.starts_with("child.") && name.ends_with(".1.heap") && !name.contains('%')
        };
        entries.filter(is_one).collect()
    };
    found()
        .iter()
        .for_each(|path| fs::remove_file(path).unwrap());
    let Some(output) = run(&["profile", "child"], &settings) else {
        return;
    };
    assert!(output.status.success(), "{}", output.status);
    let files = found();
    assert_eq!(files.len(), 2, "{files:?}");
    for path in files {
        is_true(&Profile::parse(&fs::read_to_string(path).unwrap()));
    }
}

#[test]
fn a_profile_that_cannot_be_written_is_told_and_leaves_the_last_one() {
    let settings = [("BRICKYARD_PROFILE", "/nonexistent/a.heap"), PERIOD];
    let Some(output) = run(&["profile", "end"], &settings) else {
        return;
    };
    let wrong = String::from_utf8_lossy(&output.stderr);
    let told = "the profile cannot be written to /nonexistent/a.heap: error 2 of the system";
    assert!(output.status.success() && wrong.contains(told), "{wrong}");
    // A limit in place of a full disk; the signal that comes with it is ignored.
    let file = file("full.heap");
    fs::write(&file, "the last one").unwrap();
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" profile end";
    let output = Command::new("sh")
        .args(["-c", limited])
        .arg(program().unwrap())
        .env("LD_PRELOAD", library())
        .env("BRICKYARD_PROFILE", &file)
        .env("BRICKYARD_PROFILE_PERIOD", "1")
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(wrong.contains("error 27 of the system"), "EFBIG: {wrong}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "the last one");
    let part = PathBuf::from(format!("{}.part", file.display()));
    assert!(!part.exists());
}

#[test]
fn pprof_reads_it() {
    let file = file("pprof.heap");
    let settings = [("BRICKYARD_PROFILE", file.to_str().unwrap()), PERIOD];
    let Some(output) = run(&["profile", "end"], &settings) else {
        return;
    };
    assert!(output.status.success(), "{}", output.status);
    let mut tried = 0;
    let tools: [(&str, &[&str]); 3] = [
        ("google-pprof", &["--text", "--alloc_space"]),
        ("jeprof", &["--text", "--alloc_space"]),
        (
            "go",
            &["tool", "pprof", "-top", "-sample_index=alloc_space"],
        ),
    ];
    for (tool, words) in tools {
        let mut command = Command::new(tool);
        let output = command
            .args(words)
            .arg(program().unwrap())
            .arg(&file)
            .output();
        let Ok(output) = output else {
            println!("skipped: no {tool}");
            continue;
        };
        tried += 1;
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{tool}: {said}");
        // The function that asks, first of all.
        let is_row = |line: &&str| {
            let begin = line.trim_start();
            line.contains('%') && begin.starts_with(|first: char| first.is_ascii_digit())
        };
        let first = said.lines().find(is_row);
        assert!(
            first.is_some_and(|line| line.contains("asks")),
            "{tool}: {said}"
        );
        assert!(said.contains("grows"), "{tool}: {said}");
    }
    println!("{tried} tools read it");
    assert!(fs::metadata(&file).unwrap().len() > 0);
}

#[test]
fn mistakes_with_guarded_memory_are_found_with_all_stacks() {
    // On Linux a fault and an abort are signals of these numbers.
    let (fault, abort) = (Some(11), Some(6));
    for (how, told, signal, events) in [
        ("behind", "access behind its end", fault, "here allocated"),
        ("beside", "", None, "here allocated"),
        (
            "before",
            "access before its beginning",
            fault,
            "here allocated",
        ),
        (
            "inside",
            "free of an address that is not its beginning",
            abort,
            "here allocated",
        ),
        ("after", "use after free", fault, "here freed allocated"),
        ("twice", "double free", abort, "here freed allocated"),
    ] {
        let settings = [("BRICKYARD_SAMPLE", "1")];
        let Some(output) = run(&["mistake", how], &settings) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        if let Some(signal) = signal {
            assert_eq!(output.status.signal(), Some(signal), "{how}: {wrong}");
            assert!(wrong.contains(told), "{how}: {wrong}");
        } else {
            // By lot it lies at the end of its page, eight bytes before it, or at the beginning.
            assert_eq!(output.status.signal(), abort, "{how}: {wrong}");
            assert!(wrong.contains("write beside its memory"), "{how}: {wrong}");
        }
        assert!(wrong.contains("an object of 40 bytes"), "{how}: {wrong}");
        let found: Vec<&str> = ["here", "freed", "allocated"]
            .into_iter()
            .filter(|event| wrong.contains(&format!("  {event}, by thread")))
            .collect();
        assert_eq!(found.join(" "), events, "{how}: {wrong}");
        // Each stack has the program in it, and none begins in the library.
        let stacks: Vec<&str> = wrong.split(", by thread").skip(1).collect();
        for stack in stacks {
            let first = stack.lines().nth(1).unwrap();
            assert!(first.contains("/sampled+0x"), "{how}: {wrong}");
        }
    }
}

#[test]
fn other_faults_go_where_they_went() {
    let settings = [("BRICKYARD_SAMPLE", "1")];
    let Some(output) = run(&["fault"], &settings) else {
        return;
    };
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(wrong, "a handler of the program\n");
    assert_eq!(output.status.code(), Some(11));
    // Also where this heap's handler has taken its place since.
    let output = run(&["fault after"], &settings).unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(wrong, "a handler of the program\n");
    assert_eq!(output.status.code(), Some(11));
    let output = run(&["fault at once"], &settings).unwrap();
    assert_eq!(output.status.signal(), Some(11));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn wrong_settings_are_told() {
    let file = file("settings.heap");
    let file = file.to_str().unwrap();
    for (settings, told) in [
        (
            vec![("BRICKYARD_SAMPLE", "often")],
            "BRICKYARD_SAMPLE is a number",
        ),
        (
            vec![
                ("BRICKYARD_PROFILE", file),
                ("BRICKYARD_PROFILE_PERIOD", "0"),
            ],
            "BRICKYARD_PROFILE_PERIOD is a number of bytes above 0; 524288 is used",
        ),
        (
            vec![
                ("BRICKYARD_PROFILE", file),
                ("BRICKYARD_PROFILE_SIGNAL", "KILL"),
            ],
            "BRICKYARD_PROFILE_SIGNAL is USR1, USR2 or the number of a signal",
        ),
        (
            vec![("BRICKYARD_PROFILE", file), ("BRICKYARD_HARDEN", "1")],
            "BRICKYARD_PROFILE and BRICKYARD_SAMPLE are not used",
        ),
        (vec![("BRICKYARD_SPAN", "8G")], "BRICKYARD_SPAN is a number"),
        (vec![("BRICKYARD_SPAN", "0")], "BRICKYARD_SPAN is a number"),
        (vec![("BRICKYARD_ROWS", "cpus")], "BRICKYARD_ROWS is cpu or"),
        (
            vec![("BRICKYARD_HARDEN", "?")],
            "BRICKYARD_HARDEN is 1 or 0",
        ),
        (vec![("BRICKYARD_HUGE", "?")], "BRICKYARD_HUGE is 1 or 0"),
    ] {
        let Some(output) = run(&["mistake", "none"], &settings) else {
            return;
        };
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{settings:?}: {wrong}");
        assert!(wrong.contains(told), "{settings:?}: {wrong}");
    }
}
