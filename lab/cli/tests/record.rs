//! `brickyard record` as a user runs it: what it refuses, what it records where this machine allows
//! it, and that it does not change the host's tracing settings.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Instant;

use brickyard_trace::record::Tracefs;
use brickyard_trace::summary::{Options, Summary};
use brickyard_trace::{Event, Trace, What, file};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::command::text;

/// The kernel's tracing files, if there are any.
fn tracefs() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<Tracefs>> = LazyLock::new(|| Tracefs::find().ok());
    FOUND.as_ref().map(Tracefs::path)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard"));
    command.arg("record").args(arguments);
    command
}

fn brickyard(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Returns true if nothing can be recorded here, and prints why.
fn cannot_record() -> bool {
    let missing = if !geteuid().is_root() {
        "recording needs root"
    } else if !tracefs().is_some_and(|path| path.join("events/kmem/mm_page_alloc").exists()) {
        "this kernel has no tracefs with kmem events"
    } else if !Path::new("/proc/kpageflags").exists() {
        "this kernel has no /proc/kpageflags"
    } else {
        return false;
    };
    println!("skipped: {missing}");
    true
}

/// The host's own tracing settings, the mounts of its tracing files, and the priority of this
/// session, which a recording raises for a moment.
fn settings() -> Vec<(PathBuf, String)> {
    let files = [
        "tracing_on",
        "current_tracer",
        "buffer_size_kb",
        "set_event",
        "trace_clock",
        "trace_options",
        "events/kmem/enable",
        "events/task/enable",
    ];
    let files = files.map(|file| tracefs().unwrap().join(file));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        (path, text)
    };
    let mut settings: Vec<_> = files.into_iter().map(read).collect();
    let (_, mounts) = read("/proc/self/mounts".into());
    let mounts = mounts.lines().filter(|line| line.contains("tracefs"));
    settings.push(("mounts".into(), mounts.collect()));
    settings.push(read("/proc/self/autogroup".into()));
    settings
}

/// The tracing instances of a process.
fn instances(pid: u32) -> Vec<String> {
    let own = format!("brickyard-{pid}");
    let entries = fs::read_dir(tracefs().unwrap().join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| *name == own).collect()
}

/// A folder of its own for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("brickyard-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> String {
        self.0.join("trace.parquet").to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn has_name(trace: &Trace, name: &str) -> bool {
    let mut events = trace.events.iter();
    events.any(|event| trace.name(event.name) == name)
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = Folder::new("wrong");
    let file = folder.file();
    let wrong: [(&[&str], &str); 8] = [
        (&[], "--output"),
        (&["-o", &file], "nothing to record"),
        (&["-o", &file, "--seconds", "0"], "above 0"),
        (&["-o", &file, "--seconds", "-1"], "seconds"),
        (&["-o", &file, "--buffer", "much", "true"], "--buffer"),
        (&["-o", &file, "--buffer", "1K", "true"], "at least 8K"),
        (
            &["-o", &file, "--events", "zones,all", "true"],
            "`all`; there are zones, batched",
        ),
        (&["-o", &file, "--events", "", "true"], "there is no group"),
    ];
    for (arguments, why) in wrong {
        let run = brickyard(arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        let error = text(&run.stderr);
        assert!(error.contains(why), "{arguments:?} says {error}");
    }
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn a_missing_command_is_reported_before_anything_begins() {
    let folder = Folder::new("no-command");
    let run = brickyard(&["-o", &folder.file(), "no-such-command-anywhere"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("command not found: no-such-command-anywhere"));
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn without_root_the_error_names_the_fix() {
    if !geteuid().is_root() {
        let run = brickyard(&["-o", &Folder::new("user").file(), "true"]);
        assert_eq!(run.status.code(), Some(1));
        assert!(text(&run.stderr).contains("sudo"), "{run:?}");
        return;
    }
    // As root: as another user, if possible.
    let folder = Folder::new("user");
    let binary = folder.0.join("brickyard");
    fs::copy(env!("CARGO_BIN_EXE_brickyard"), &binary).unwrap();
    let run = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["record", "-o", "/tmp/brickyard-of-nobody.parquet", "true"])
        .output();
    match run {
        Ok(run) if text(&run.stderr).contains("brickyard:") => {
            assert_eq!(run.status.code(), Some(1), "{run:?}");
            assert!(text(&run.stderr).contains("sudo"), "{run:?}");
        }
        other => println!("skipped: cannot become another user: {other:?}"),
    }
}

#[test]
fn a_missing_folder_is_reported() {
    let run = brickyard(&["-o", "/no-such-folder/trace.parquet", "true"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("/no-such-folder"), "{run:?}");
}

/// One test for all recordings, so that they do not run in parallel and see each other's settings.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn recordings_are_whole_and_leave_nothing_behind() {
    if cannot_record() {
        return;
    }
    let before = settings();
    a_command_is_recorded();
    the_groups_that_are_named_are_recorded();
    a_time_is_recorded();
    a_failed_command_is_a_good_recording();
    a_full_disk_ends_the_recording_and_not_the_command();
    a_full_destination_leaves_the_trace_beside_the_spool();
    what_lies_beside_the_spool_stays_there();
    a_trace_written_at_the_second_attempt_is_where_it_should_be();
    for signal in [Signal::INT, Signal::TERM] {
        a_signal_keeps_the_recording(signal);
    }
    two_signals_discard_the_recording();
    the_instance_of_a_killed_recording_is_removed_by_the_next();
    assert_eq!(settings(), before);
}

fn a_command_is_recorded() {
    let folder = Folder::new("command");
    let zeros = folder.0.join("zeros");
    let of = format!("of={}", zeros.display());
    let words = ["dd", "if=/dev/zero", &of, "bs=16k", "count=1024"];
    let file = folder.file();
    let run = brickyard(&[&["-o", &file, "--"], &words[..]].concat());
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let said = text(&run.stderr);
    assert!(
        said.contains("recorded ") && said.contains("lost: nothing"),
        "{said}"
    );

    let trace = file::read(Path::new(&file)).unwrap();
    let header = &trace.header;
    assert_eq!(header.source, "tracefs");
    assert_eq!(header.command, words.join(" "));
    assert_eq!(header.lost, []);
    assert!(header.began > 1_700_000_000 && header.duration > 0 && header.cpus > 0);
    assert!(header.flags.mask("__GFP_ZERO") != 0);
    assert!(
        header
            .formats
            .iter()
            .any(|(name, text)| name == "mm_page_free" && text.contains("pfn"))
    );
    assert!(header.start.zoneinfo.contains("spanned") && header.end.vmstat.contains("pgfree"));
    assert!(header.page_block_order > 0);

    // Every page of the file was allocated by the process that wrote it.
    let frames: usize = trace
        .events
        .iter()
        .filter(|event| matches!(event.what, What::Alloc { .. }) && trace.name(event.name) == "dd")
        .map(|event| event.order.frames())
        .sum();
    assert!(frames >= (16 << 20) / 4096, "{frames}");

    // The texts lie between the states, and the header says how those were read.
    let (start, end) = (header.start_states, header.end_states);
    assert!(start.began < start.ended && end.began < end.ended && end.ended <= header.duration);
    let first = [header.start.time, header.start.times.zoneinfo];
    let last = [header.end.times.vmstat, header.end.times.pagetypeinfo];
    let times = [&[start.ended][..], &first, &last, &[end.began]].concat();
    assert!(times.is_sorted(), "{times:?}");
    assert!(said.contains("page states at the start: read in"), "{said}");
    let taken = |event: &&Event| matches!(event.what, What::Taken { .. });
    assert!(trace.events.iter().filter(taken).count() > 0);

    // The runs of states do not overlap, and all of the start are older than those of the end.
    for states in [&trace.start, &trace.end] {
        assert!(!states.is_empty());
        assert!(states.is_sorted_by(|a, b| a.frame + a.frames <= b.frame));
    }
    let last = trace.start.iter().map(|run| run.time).max().unwrap();
    let first = trace.end.iter().map(|run| run.time).min().unwrap();
    assert!(last <= first && first <= header.duration);
    assert!(trace.events.is_sorted_by_key(|event| event.time));
    assert_eq!(
        folder.names().len(),
        2,
        "the trace and the zeros: {:?}",
        folder.names()
    );
}

fn the_groups_that_are_named_are_recorded() {
    let folder = Folder::new("groups");
    let file = folder.file();
    // More pages than the lists of a CPU hold, whatever is in them when the command starts.
    let script = "dd if=/dev/zero of=/dev/null bs=128M count=1; ls / > /dev/null";
    let kinds = |groups: &str| {
        let run = brickyard(&["-o", &file, "--events", groups, "sh", "-c", script]);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        assert!(!text(&run.stderr).contains("malformed"), "{run:?}");
        let trace = file::read(Path::new(&file)).unwrap();
        Summary::of(&trace, &Options::default()).kinds
    };
    let none = kinds("none");
    assert!(none.allocs > 0 && none.frees > 0);
    assert_eq!(none.taken + none.drained + none.repeats + none.steps, 0);
    let all = kinds("reclaim,compaction,batched,zones");
    assert!(all.taken > 0 && all.repeats > 0, "{all:?}");
    // What repeats a free is not one: there are never more.
    assert!(all.repeats <= all.frees, "{all:?}");
    let zones = kinds("zones");
    assert!(
        zones.taken > 0 && zones.repeats + zones.steps == 0,
        "{zones:?}"
    );
}

fn a_time_is_recorded() {
    let folder = Folder::new("time");
    let file = folder.file();
    let run = brickyard(&["-o", &file, "--seconds", "0.2", "--spool", "/tmp"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let trace = file::read(Path::new(&file)).unwrap();
    assert!(trace.header.duration >= 200_000_000);
    assert_eq!(trace.header.command, "");

    // A command that takes longer is ended.
    let began = Instant::now();
    let run = brickyard(&["-o", &file, "--seconds", "0.2", "sleep", "600"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(text(&run.stderr).contains("ended by signal 15"), "{run:?}");
    assert!(began.elapsed() < Duration::from_secs(300));
    assert!(has_name(&file::read(Path::new(&file)).unwrap(), "sleep"));
}

fn a_failed_command_is_a_good_recording() {
    let folder = Folder::new("failed");
    let file = folder.file();
    let run = brickyard(&["-o", &file, "--", "sh", "-c", "exit 3"]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(
        text(&run.stderr).contains("failed with exit code 3"),
        "{run:?}"
    );
    let trace = file::read(Path::new(&file)).unwrap();
    assert_eq!(trace.header.command, "sh -c 'exit 3'");
    assert!(has_name(&trace, "sh"));

    // One that a signal ended has the exit code that a shell gives it.
    let run = brickyard(&["-o", &file, "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(run.status.code(), Some(128 + 9), "{run:?}");
    assert!(text(&run.stderr).contains("ended by signal 9"), "{run:?}");
    let trace = file::read(Path::new(&file)).unwrap();
    assert_eq!(trace.header.command, "sh -c 'kill -9 $$'");
}

/// `brickyard record` where a file system of 16 MiB is mounted at `small`, for it alone: less than
/// a recording leaves free, and enough for the page states of memory in any state.
fn beside_a_small_disk(small: &Path) -> Command {
    let script = "mount -t tmpfs -o size=16M tmpfs \"$0\" || exit 77; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(small);
    command.arg(env!("CARGO_BIN_EXE_brickyard")).arg("record");
    command
}

fn a_full_disk_ends_the_recording_and_not_the_command() {
    let folder = Folder::new("full");
    let small = folder.0.join("small");
    fs::create_dir(&small).unwrap();
    let file = folder.file();
    // A file system smaller than the room that a recording leaves free.
    let record = |arguments: &[&str]| {
        let mut command = beside_a_small_disk(&small);
        command.args(["-o", &file, "--spool"]).arg(&small);
        command.args(arguments).output()
    };
    let script = "sleep 2; exit 3";
    let run = match record(&["--", "sh", "-c", script]) {
        Ok(run) if text(&run.stderr).contains("recorded ") => run,
        other => {
            println!("skipped: no small file system can be mounted: {other:?}");
            return;
        }
    };
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert!(said.contains("the command continues"), "{said}");
    assert!(said.contains("failed with exit code 3"), "{said}");

    // The command has no more time than it was given.
    for seconds in ["0.000001", "0.5"] {
        let run = record(&["--seconds", seconds, "sleep", "600"]).unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{said}");
        assert!(said.contains("the disk is nearly full"), "{said}");
        assert!(said.contains("ended by signal 15"), "{said}");
    }
}

fn a_full_destination_leaves_the_trace_beside_the_spool() {
    let folder = Folder::new("destination");
    let small = folder.0.join("small");
    fs::create_dir(&small).unwrap();
    let file = small.join("trace.parquet");
    // The command fills the file system of the destination.
    let fill = format!("cat /dev/zero > {}/zeros; sleep 1", small.display());
    let run = beside_a_small_disk(&small)
        .arg("-o")
        .arg(&file)
        .arg("--spool")
        .arg(&folder.0)
        .args(["--", "sh", "-c", &fill])
        .output();
    let run = match run {
        Ok(run) if text(&run.stderr).contains("brickyard: ") => run,
        other => {
            println!("skipped: no small file system can be mounted: {other:?}");
            return;
        }
    };
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left"), "{said}");
    let kept = folder.0.join("trace.parquet");
    let told = format!("the trace is in {} instead", kept.display());
    assert!(said.contains(&told), "{said}");
    assert!(file::read(&kept).unwrap().events.len() > 100, "{said}");
}

/// The command makes a folder where the trace should be.
fn what_lies_beside_the_spool_stays_there() {
    let folder = Folder::new("taken");
    let other = folder.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(folder.file(), "of somebody else").unwrap();
    let file = other.join("trace.parquet");
    let place = file.to_str().unwrap();
    let spool = folder.0.to_str().unwrap();
    let run = brickyard(&["-o", place, "--spool", spool, "--", "mkdir", place]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert_eq!(
        fs::read_to_string(folder.file()).unwrap(),
        "of somebody else"
    );
    let names = folder.names();
    let kept = names.iter().find(|name| name.ends_with("-trace.parquet"));
    let kept = folder.0.join(kept.unwrap());
    assert!(said.contains(&kept.display().to_string()), "{said}");
    assert!(!file::read(&kept).unwrap().events.is_empty(), "{said}");
}

/// The command makes the folder anew, which is that of the trace and of the spool. The unfinished
/// trace is gone with the old one.
fn a_trace_written_at_the_second_attempt_is_where_it_should_be() {
    let folder = Folder::new("anew");
    let both = folder.0.join("both");
    fs::create_dir(&both).unwrap();
    let file = both.join("trace.parquet");
    let (place, spool) = (file.to_str().unwrap(), both.to_str().unwrap());
    let anew = format!("rm -r {spool}; mkdir {spool}");
    let run = brickyard(&["-o", place, "--spool", spool, "--", "sh", "-c", &anew]);
    let said = text(&run.stderr);
    assert!(!file::read(&file).unwrap().events.is_empty(), "{said}");
    assert!(!said.contains("instead"), "{said}");
    assert_eq!(run.status.code(), Some(0), "{said}");
}

/// Starts a recording of a long command, and waits until the command runs.
fn started(folder: &Folder) -> (std::process::Child, Pid) {
    let mark = folder.0.join("mark");
    let script = format!(
        "echo $$ > {0}.part; mv {0}.part {0}; exec sleep 600",
        mark.display()
    );
    let file = folder.file();
    let child = command(&["-o", &file, "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !mark.exists() {
        thread::sleep(Duration::from_millis(10));
    }
    let pid = fs::read_to_string(&mark).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    fs::remove_file(mark).unwrap();
    assert_eq!(instances(child.id()).len(), 1);
    (child, pid)
}

fn a_signal_keeps_the_recording(signal: Signal) {
    let folder = Folder::new("signal");
    let (child, _) = started(&folder);
    let pid = child.id();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(text(&run.stderr).contains("ended by a signal"), "{run:?}");
    assert_eq!(instances(pid), Vec::<String>::new());
    let trace = file::read(Path::new(&folder.file())).unwrap();
    assert!(!trace.end.is_empty() && !trace.header.end.vmstat.is_empty());
    assert!(has_name(&trace, "sleep"));
    assert_eq!(folder.names(), ["trace.parquet"]);
}

fn two_signals_discard_the_recording() {
    let folder = Folder::new("twice");
    let (child, _) = started(&folder);
    let pid = child.id();
    // Two pending signals of one kind are merged, so these differ.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(text(&run.stderr).contains("discarded"), "{run:?}");
    assert_eq!(instances(pid), Vec::<String>::new());
    assert_eq!(folder.names(), Vec::<String>::new());
}

fn the_instance_of_a_killed_recording_is_removed_by_the_next() {
    let folder = Folder::new("killed");
    let (mut child, command) = started(&folder);
    let pid = child.id();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    kill_process(command, Signal::KILL).unwrap();
    assert_eq!(instances(pid).len(), 1, "no process was left to remove it");
    let run = brickyard(&["-o", &folder.file(), "true"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert_eq!(instances(pid), Vec::<String>::new());
}
