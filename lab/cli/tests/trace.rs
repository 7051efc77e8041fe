//! `brickyard import` and `brickyard info` as a user runs them. The expected output is in
//! `tests/trace/`; `BRICKYARD_BLESS=1` rewrites it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brickyard::{MigrateType, Order};
use brickyard_trace::{
    Event, Flags, Header, HostTexts, Lost, NameId, PageState, PageUse, StateRun, Trace, What, file,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{brickyard, golden, text};

/// A minute of a host with two tasks.
fn trace() -> Trace {
    let movable = |flags| What::Alloc {
        mobility: MigrateType::Movable,
        flags,
    };
    let slab = What::Alloc {
        mobility: MigrateType::Unmovable,
        flags: 0xcc0,
    };
    let fallback = What::Fallback {
        mobility: MigrateType::Unmovable,
        from_order: Order::new(3),
        from: MigrateType::Movable,
        claimed: false,
    };
    let failure = What::Failure {
        mobility: MigrateType::Movable,
        flags: 0x140cca,
    };
    let mut events = Vec::new();
    let mut push = |time, what, frame, order, name: u32| {
        let (pid, cpu) = (
            100 + i32::try_from(name).unwrap(),
            u16::try_from(name).unwrap(),
        );
        let order = Order::new(order);
        events.push(Event {
            time,
            frame,
            what,
            pid,
            name: NameId(name),
            cpu,
            order,
        });
    };
    push(0, movable(0x140cca), 4096, 0, 0);
    push(1_500, movable(0x140cca), 4608, 9, 0);
    push(2_000_000, fallback, 4104, 0, 1);
    push(2_000_100, slab, 4104, 0, 1);
    push(3_000_000_000, What::Free, 4096, 0, 0);
    push(4_000_000_000, What::Free, 4700, 2, 0);
    push(4_000_000_000, What::Free, 5120, 0, 1);
    push(5_000_000_000, What::Free, 9000, 0, 1);
    push(6_000_000_000, slab, 4104, 0, 1);
    push(60_000_000_000, failure, 0, 10, 0);
    let run = |frame, frames, usage| StateRun {
        time: 0,
        frame,
        frames,
        order: 0,
        state: PageState::of(usage),
    };
    let texts = |free: &str| {
        HostTexts {
        zoneinfo: "Node 0, zone   Normal\n  pages free     4000\n        min      1\n        low      2\n        high     3\n        spanned  8192\n        present  8192\n        managed  8000\n  start_pfn:           4096\n".to_owned(),
        buddyinfo: format!("Node 0, zone   Normal {free}\n"),
        ..HostTexts::default()
    }
    };
    Trace {
        header: Header {
            source: "tracefs".to_owned(),
            kernel: "6.12.3".to_owned(),
            machine: "x86_64".to_owned(),
            command: "make -j2".to_owned(),
            began: 1_735_689_599,
            duration: 60_000_000_000,
            cpus: 2,
            frame_bytes: 4096,
            page_block_order: 9,
            flags: Flags::canonical(),
            start: texts("4 2 1 0 0 0 0 0 0 3 1"),
            end: texts("9 5 0 0 0 0 0 0 0 1 0"),
            lost: vec![Lost { cpu: 1, events: 12 }],
            ..Header::default()
        },
        names: vec!["cc1".to_owned(), "evil\u{1b}[2J,\"x\"".to_owned()],
        start: vec![
            run(4096, 1024, PageUse::Free),
            run(5120, 100, PageUse::Anonymous),
            run(5220, 7068, PageUse::Free),
        ],
        events,
        end: vec![run(4096, 8, PageUse::Free), run(4104, 1, PageUse::Slab)],
    }
}

fn written(trace: &Trace) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    file::write(&path, trace).unwrap();
    (folder, path)
}

#[test]
fn info_in_every_format() {
    let (_folder, path) = written(&trace());
    let path = path.to_str().unwrap();
    for (form, name) in [
        ("table", "trace/info.txt"),
        ("csv", "trace/info.csv"),
        ("json", "trace/info.json"),
    ] {
        let output = brickyard(&["info", path, "--format", form, "--spans", "6"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        golden(name, &text(&output.stdout));
    }
}

#[test]
fn one_thing_is_not_a_plural() {
    let (_folder, path) = written(&trace());
    let printed = |spans| {
        let output = brickyard(&["info", path.to_str().unwrap(), "--spans", spans]);
        text(&output.stdout)
    };
    assert!(printed("1").contains("1 span of "), "{}", printed("1"));
    assert!(printed("2").contains("2 spans of "), "{}", printed("2"));

    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["text", "trace"].map(|name| folder.path().join(name));
    fs::write(&from, "bash-1 [000] 1.5: mm_page_free: pfn=0x1 order=0\n").unwrap();
    let output = brickyard(&["import", from.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(
        said.contains(": 1 event in ") && said.contains("(0 allocations, 1 free, 0 failures"),
        "{said}"
    );
}

#[test]
fn escape_sequences_in_a_trace_are_not_printed() {
    let (_folder, path) = written(&trace());
    let output = brickyard(&["info", path.to_str().unwrap()]);
    assert!(!output.stdout.contains(&0x1b));
    assert!(text(&output.stdout).contains("evil\\u{1b}"));
}

#[test]
fn json_is_json_and_csv_has_as_many_fields_as_its_header() {
    let (_folder, path) = written(&trace());
    let path = path.to_str().unwrap();
    let json = brickyard(&["info", path, "--format", "json", "--top", "1"]).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["processes"].as_array().unwrap().len(), 1);
    assert_eq!(json["oddities"][2]["events"], 1);
    let csv = text(&brickyard(&["info", path, "--format", "csv"]).stdout);
    for line in csv.lines().filter(|line| !line.contains('"')) {
        assert_eq!(line.split(',').count(), 4, "{line}");
    }
}

#[test]
fn an_empty_trace_has_a_summary_too() {
    let (_folder, path) = written(&Trace::default());
    for form in ["table", "csv", "json"] {
        let output = brickyard(&["info", path.to_str().unwrap(), "--format", form]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn malformed_host_texts_are_noted() {
    let mut trace = trace();
    trace.header.start.buddyinfo = "Node 0, zone Normal 18446744073709551615 1\n".to_owned();
    trace.header.end.buddyinfo = "Node 0, zone Normal x\n".to_owned();
    let (_folder, path) = written(&trace);
    let output = brickyard(&["info", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(
        table.contains("buddyinfo at the start has an impossible amount of memory"),
        "{table}"
    );
    assert!(
        table.contains("buddyinfo at the end cannot be read"),
        "{table}"
    );
}

#[test]
fn a_file_that_is_not_a_trace_is_refused_with_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let cases: [(&[u8], &str); 4] = [
        (
            b"bash-1 [000] 1.5: mm_page_free: pfn=0x1 order=0\n",
            "brickyard import",
        ),
        (&[0x28, 0xb5, 0x2f, 0xfd, 1], "brickyard import"),
        (b"PAR1 and so on", "truncated"),
        (b"\x7fELF\x01\x02", "not a trace file"),
    ];
    for (bytes, hint) in cases {
        fs::write(&path, bytes).unwrap();
        let output = brickyard(&["info", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(
            error.contains(hint) && error.contains(path.to_str().unwrap()),
            "{error}"
        );
    }
    assert_eq!(brickyard(&["info", "/no/such/file"]).status.code(), Some(1));
    assert_eq!(brickyard(&["info"]).status.code(), Some(2));
    assert_eq!(
        brickyard(&["info", "x", "--spans", "0"]).status.code(),
        Some(2)
    );
}

#[test]
fn info_is_quiet_on_a_closed_pipe() {
    let (_folder, path) = written(&trace());
    let mut child = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args([
            "info",
            path.to_str().unwrap(),
            "--format",
            "csv",
            "--spans",
            "100000",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
}

const LINES: &str = "\
  cc1-7     [000] ..... 9.000001: mm_page_alloc: page=1 pfn=0x1000 order=0 migratetype=1 gfp_flags=GFP_KERNEL
CPU:0 [LOST 5 EVENTS]
  cc1-7     [000] ..... 9.000003: mm_page_free: page=1 pfn=0x1000 order=0
  cc1-7     [000] ..... 9.000004: mm_page_free: page=1 order=0
";

#[test]
fn text_is_imported_from_a_file_and_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (
        folder.path().join("in.txt"),
        folder.path().join("out.parquet"),
    );
    fs::write(&input, LINES).unwrap();
    let paths = (input.to_str().unwrap(), output.to_str().unwrap());
    let done = brickyard(&["import", paths.0, "-o", paths.1]);
    let told = text(&done.stderr);
    assert!(done.status.success(), "{told}");
    assert!(
        told.contains("2 events in 0.000 s (1 allocation, 1 free,"),
        "{told}"
    );
    assert!(told.contains("the tracer lost 5 events"), "{told}");
    assert!(told.contains("line 4: it has no pfn="), "{told}");
    let from_file = file::read(&output).unwrap();
    assert_eq!(from_file.header.lost, [Lost { cpu: 0, events: 5 }]);
    assert_eq!(from_file.events[1].time, 2000);

    let mut child = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(["import", "-o", paths.1])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(LINES.as_bytes())
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(file::read(&output).unwrap(), from_file);
}

#[test]
fn flags_get_the_kernels_numbers_from_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, format, output) = (place("in"), place("format"), place("out"));
    fs::write(&input, LINES).unwrap();
    fs::write(
        &format,
        r#"print fmt: __print_flags(f, "|", {(unsigned long)0x4u, "GFP_KERNEL"})"#,
    )
    .unwrap();
    let done = brickyard(&[
        "import",
        &input,
        "-o",
        &output,
        "--alloc-format",
        &format,
        "--kernel",
        "3.2",
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let trace = file::read(Path::new(&output)).unwrap();
    assert_eq!(
        trace.events[0].what,
        What::Alloc {
            mobility: MigrateType::Reclaimable,
            flags: 4
        }
    );
    assert_eq!(trace.header.formats.len(), 1);
    assert_eq!(
        brickyard(&["import", &input, "-o", &output, "--alloc-format", &input])
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn an_import_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, "nothing of interest\n").unwrap();
    let done = brickyard(&[
        "import",
        input.to_str().unwrap(),
        "-o",
        output.to_str().unwrap(),
    ]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("mm_page_alloc"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(
        brickyard(&["import", input.to_str().unwrap()])
            .status
            .code(),
        Some(2)
    );
    let nowhere = brickyard(&["import", input.to_str().unwrap(), "-o", "/no/such/folder/x"]);
    assert_eq!(nowhere.status.code(), Some(1));
}
