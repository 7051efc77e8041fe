//! `brickyard history` as a user runs it, on histories of small hosts that are made here.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::synthetic::{Block, SyntheticHost};
use brickyard_serve::history::Store;
use brickyard_serve::sample::{Cost, Sample};
use serde_json::Value;

use crate::command::{brickyard, golden, printed as out, text as written};

/// 2026-11-27 05:00:00 UTC.
const BEGIN: u64 = 1_795_755_600;

fn at(minute: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(BEGIN + minute * 60)
}

/// An empty folder, as text too.
fn folder(name: &str) -> (PathBuf, String) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("history")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let text = folder.to_str().unwrap().to_owned();
    (folder, text)
}

/// Adds a sample every ten minutes from one minute to another, of a host of 64 page blocks of which
/// ever more are mixed.
fn add(history: &Path, name: &str, minutes: core::ops::Range<u64>) {
    let (root, _) = folder(&format!(
        "of-{name}-{}",
        history.file_name().unwrap().display()
    ));
    let mut store = Store::open(history, name, 1 << 40).unwrap();
    for minute in minutes.step_by(10) {
        let mixed = usize::try_from(minute / 20).unwrap();
        let mut blocks = vec![Block::Mixed; mixed];
        blocks.resize(64, Block::Free);
        let mut made = SyntheticHost::new(name, blocks);
        made.vmstat = format!("compact_stall {}\nthp_fault_fallback 1\n", 3 + minute);
        made.time = Some(at(minute));
        let mut sample = Sample::of(&made.write(&root).unwrap()).unwrap();
        sample.cost = Cost::default();
        store.add(&sample, |_, _| {}).unwrap();
    }
    store.flush().unwrap();
}

fn history(arguments: &[&str]) -> Output {
    brickyard(&[&["history"], arguments].concat())
}

fn errors(output: &Output) -> String {
    written(&output.stderr)
}

const TIMES: [&str; 4] = [
    "--from",
    "2026-11-27T05:00:00Z",
    "--to",
    "2026-11-27T09:00:00Z",
];

fn of(folder: &str, more: &[&str]) -> Output {
    history(&[&[folder], &TIMES[..], more].concat())
}

#[test]
fn a_history_in_every_format() {
    let (path, text) = folder("formats");
    add(&path, "web", 0..190);
    golden("history/history.txt", &out(&of(&text, &["--every", "1h"])));
    let few = ["--columns", "huge_free,compaction_stalls,available_bytes"];
    let with = |more: &[&str]| out(&of(&text, &[&few[..], more].concat()));
    golden(
        "history/spans.csv",
        &with(&["--every", "1h", "--format", "csv"]),
    );
    golden(
        "history/spans.json",
        &with(&["--every", "1h", "--format", "json"]),
    );
    let samples = with(&["--format", "csv"]);
    assert_eq!(samples.lines().count(), 1 + 19);
    assert_eq!(
        samples.lines().nth(1),
        Some("web,2026-11-27T05:00:00.000Z,63,3,")
    );
    let json: Value = serde_json::from_str(&with(&["--format", "json"])).unwrap();
    let last = &json["hosts"][0]["rows"][18];
    assert_eq!(
        (&last["huge_free"], &last["compaction_stalls"]),
        (&54.into(), &183.into())
    );
    assert_eq!(last["available_bytes"], Value::Null);
    let all = out(&of(&text, &["--columns", "all", "--format", "csv"]));
    assert!(all.lines().next().unwrap().contains(",gigantic_movable,"));
}

#[test]
fn a_page_has_plots_and_the_picture() {
    let (path, text) = folder("page");
    add(&path, "web", 0..190);
    let page = path.join("page.html");
    out(&of(&text, &["-o", page.to_str().unwrap()]));
    let shown = fs::read_to_string(&page).unwrap();
    for part in [
        "<h1>The memory of web over time</h1>",
        "Huge pages that would come",
        "data:image/png;base64,iVBOR",
        "64 page blocks of order 9",
        "data-curve=\"blocks_mixed\"",
        "script-src 'none'",
    ] {
        assert!(shown.contains(part), "{part}");
    }
    assert!(
        !shown.contains("<script") && !shown.contains("://"),
        "it fetches nothing"
    );
    // One plot a figure if they are named.
    out(&of(
        &text,
        &[
            "--columns",
            "huge_free,blocks_mixed",
            "-o",
            page.to_str().unwrap(),
        ],
    ));
    assert_eq!(
        fs::read_to_string(&page).unwrap().matches("<svg ").count(),
        2
    );
}

#[test]
fn a_folder_of_many_hosts_has_a_line_a_host() {
    let (path, text) = folder("many");
    add(&path, "web", 0..60);
    add(&path, "db-1", 60..120);
    golden(
        "history/many.txt",
        &out(&of(&text, &["--columns", "huge_free,blocks_mixed"])),
    );
    assert!(out(&of(&text, &["--host", "db-1"])).starts_with("db-1, Linux 6.18.0-made: 6 samples"));
    let csv = out(&of(&text, &["--columns", "huge_free", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 1 + 12);
    let wrong = of(&text, &["--host", "mail"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        errors(&wrong).contains("the folder has db-1, web"),
        "{}",
        errors(&wrong)
    );
    let page = of(&text, &["-o", "page.html"]);
    assert!(
        errors(&page).contains("-o shows one host"),
        "{}",
        errors(&page)
    );
}

#[test]
fn what_cannot_be_shown_is_said() {
    let (path, text) = folder("errors");
    let fails = |arguments: &[&str], code: i32, part: &str| {
        let output = history(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(errors(&output).contains(part), "{}", errors(&output));
    };
    let none = format!("{text}/none");
    fails(
        &[&none],
        1,
        &format!("there is no such folder; `brickyard serve --history {none}` writes"),
    );
    fails(
        &[&text],
        1,
        &format!("no history; `brickyard serve --history {text}` writes one"),
    );
    add(&path, "web", 0..190);
    let later = ["--from", "2026-12-01", "--to", "2026-12-02"];
    fails(
        &[&[text.as_str()], &later[..]].concat(),
        1,
        "the files begin at 2026-11-27 05:00",
    );
    fails(
        &[&text, "--columns", "huge"],
        2,
        "there are frame_bytes, huge_order",
    );
    fails(
        &[&text, "--from", "2h", "--to", "3h"],
        2,
        "--from is not before --to",
    );
    fails(&[&text, "--from", "tomorrow"], 2, "such as 2h or 7d");
    fails(&[&text, "-o", "page.png"], 2, "ends in .html");
    // A damaged file is named, and the others are shown.
    let damaged = path.join("hosts/web-20261127T060000Z.parquet");
    fs::write(&damaged, "PAR1").unwrap();
    let output = of(&text, &[]);
    assert!(out(&output).starts_with("web, Linux 6.18.0-made: 13 samples"));
    assert!(
        errors(&output).contains(damaged.to_str().unwrap()),
        "{}",
        errors(&output)
    );
}
