//! `brickyard heap profile`: the table and its other formats, the files that it writes, and what it
//! says of a profile that it cannot read.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Two programs' worth of stacks, whose binaries are on no machine: places stand for names.
const PROFILE: &str = include_str!("heap/server.heap");

fn brickyard(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .current_dir(folder)
        .arg("heap")
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns a folder with the profile in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.heap"), PROFILE).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the standard output of a run that must succeed.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let out = brickyard(folder, arguments);
    assert_eq!(
        out.status.code(),
        Some(0),
        "{arguments:?}: {}",
        text(&out.stderr)
    );
    text(&out.stdout)
}

#[test]
fn the_table_lists_who_allocated_most() {
    let folder = folder();
    let own = done(folder.path(), &["profile", "server.heap"]);
    assert_eq!(own, include_str!("heap/own.txt"));
    let options = [
        "profile",
        "server.heap",
        "--cumulative",
        "--space",
        "all",
        "--top",
        "2",
    ];
    let cumulative = done(folder.path(), &options);
    assert_eq!(cumulative, include_str!("heap/cumulative.txt"));
}

#[test]
fn csv_and_json_have_the_same_numbers() {
    let folder = folder();
    let csv = done(
        folder.path(),
        &["profile", "server.heap", "--format", "csv"],
    );
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let json = done(
        folder.path(),
        &["profile", "server.heap", "--format", "json"],
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    let sites = json["sites"].as_array().unwrap();
    assert_eq!(sites.len(), rows.len());
    let mut sum = 0;
    for (site, row) in sites.iter().zip(&rows) {
        assert_eq!(site["function"], row[4]);
        assert_eq!(site["own"]["bytes"].to_string(), row[0]);
        assert_eq!(site["own"]["objects"].to_string(), row[1]);
        sum += site["own"]["bytes"].as_u64().unwrap();
    }
    assert_eq!(json["total"]["bytes"], sum);
    assert_eq!(json["period_bytes"], 524_288);
    assert_eq!(json["samples"], 7);
    assert_eq!(json["notes"].as_array().unwrap().len(), 2);
}

#[test]
fn the_files_that_are_asked_for_are_written() {
    let folder = folder();
    let options = [
        "--flame", "f.html", "--pprof", "p.pb.gz", "--folded", "s.txt",
    ];
    let options = [&["profile", "server.heap"], &options[..]].concat();
    let out = brickyard(folder.path(), &options);
    assert_eq!(out.status.code(), Some(0));
    let told = text(&out.stderr);
    for what in [
        "flame graph written to f.html",
        "profile written to p.pb.gz",
        "stacks written to s.txt",
    ] {
        assert!(told.contains(what), "{told}");
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let stacks = text(&read("s.txt"));
    assert_eq!(stacks, include_str!("heap/stacks.txt"));
    let page = text(&read("f.html"));
    assert!(page.contains("<title>Heap: server.heap</title>"));
    assert!(page.contains("\"server+0x22c2\""), "{page}");
    let mut profile = Vec::new();
    let zipped = read("p.pb.gz");
    let _ = flate2::read::GzDecoder::new(&zipped[..])
        .read_to_end(&mut profile)
        .unwrap();
    let has = |text: &str| {
        profile
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(has("inuse_space") && has("alloc_space") && has("server+0x22c2"));
}

#[test]
fn errors_name_the_line_and_the_fix() {
    let folder = folder();
    let file = |name: &str, contents: &str| fs::write(folder.path().join(name), contents).unwrap();
    file(
        "bad.heap",
        "heap profile: 1: 1 [1: 1] @ heap_v2/1\n1: 5 [1: 5] 0x5\n",
    );
    file(
        "live.heap",
        "heap profile: 1: 1 [0: 0] @ heap_v2/1\n1: 5 [0: 0] @ 0x5\n",
    );
    let cases: [(&[&str], i32, &str); 5] = [
        (
            &["profile", "bad.heap"],
            1,
            "bad.heap: line 2: `@` is expected at `0x5`",
        ),
        (&["profile", "gone.heap"], 1, "cannot read gone.heap"),
        (
            &["profile", "live.heap", "--space", "all"],
            2,
            "leave out --space all",
        ),
        (
            &["profile", "live.heap", "--flame", "no/f.html"],
            1,
            "cannot write no/f.html",
        ),
        (&["profile", "live.heap", "--space", "dead"], 2, "live, all"),
    ];
    for (arguments, code, hint) in cases {
        let out = brickyard(folder.path(), arguments);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}");
        assert!(out.stdout.is_empty(), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
    }
}
