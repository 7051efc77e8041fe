//! `brickyard reproduce` as a user and as a cluster drive it: cells by name, a run that is interrupted and goes on, a report whose every number is made of rows that are there.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use brickyard_reproduce::data::Data;
use brickyard_reproduce::documents;
use brickyard_reproduce::judge::Judge;
use brickyard_reproduce::raw::Kind;
use brickyard_reproduce::store::{Folder, read_rows};
use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard"));
    // The traces are at the root of the workspace.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.arg("reproduce").args(arguments);
    command
}

fn reproduce(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a run that must succeed prints.
fn done(arguments: &[&str]) -> String {
    let output = reproduce(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// What a run says that must fail so.
fn refused(code: i32, arguments: &[&str]) -> String {
    let output = reproduce(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// A cell that takes the simulator a moment.
const CELL: &str = "locks.metatm-2007.find-8.hold.1";
const PARTNER: &str = "locks.metatm-2007.find-8.release.1";

fn place(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn a_quick_run_is_a_part_of_a_full_one() {
    let names = |scale| -> BTreeSet<String> {
        let listed = done(&[scale, "--list-cells"]);
        listed.lines().map(str::to_owned).collect()
    };
    let (quick, full) = (names("--quick"), names("--full"));
    assert!(quick.is_subset(&full));
    assert!(quick.len() < full.len());
    assert!(quick.contains(CELL));
    for experiment in [
        "locks",
        "pagealloc",
        "pft",
        "kernbench",
        "two-kinds",
        "slab",
        "mobility",
    ] {
        let begin = format!("{experiment}.");
        assert!(
            quick.iter().any(|name| name.starts_with(&begin)),
            "{experiment}"
        );
    }
    // By their rough costs, two cores have it within two minutes.
    let listed: Value = serde_json::from_str(&done(&["--list-cells", "--format", "json"])).unwrap();
    let (mut timed, mut exact) = (0.0, 0.0);
    for cell in listed.as_array().unwrap() {
        let seconds = cell["seconds"].as_f64().unwrap();
        let sum = if cell["kind"] == "timed" {
            &mut timed
        } else {
            &mut exact
        };
        *sum += seconds;
    }
    assert!(timed + exact / 2.0 < 120.0, "{timed} and {exact} s");
}

#[test]
fn lists_say_how_a_cell_is_run() {
    let csv = done(&[
        "--only",
        "locks",
        "--list-cells",
        "--format",
        "csv",
        "--seed",
        "7",
        "-o",
        "here",
    ]);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("cell,kind,seconds,command"));
    let line = lines.find(|line| line.starts_with(CELL)).unwrap();
    let command = format!("\"brickyard reproduce --cell {CELL} --seed 7 --output here\"");
    assert!(line.ends_with(&command), "{line}");
    assert!(lines.all(|line| line.starts_with("locks.")));
}

#[test]
fn a_cell_is_one_file_and_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    for place in [&one, &two] {
        done(&["--cell", CELL, "--output", place.to_str().unwrap()]);
    }
    let file = |place: &Path| {
        place
            .join("raw/experiment=locks")
            .join(format!("{CELL}.parquet"))
    };
    assert_eq!(fs::read(file(&one)).unwrap(), fs::read(file(&two)).unwrap());
    let read = Folder::new(&one).read(CELL).unwrap();
    assert_eq!((read.kind, read.seed), (Kind::Simulated, 1));
    assert!(!one.join("report.html").exists());
    // Another seed is other work, and not for a folder that has one already.
    let other = ["--cell", CELL, "--seed", "2", "--output"];
    let said = refused(2, &[&other[..], &[place(&two)]].concat());
    assert!(said.contains("were run with seed 1, not 2"), "{said}");
    let three = folder.path().join("three");
    done(&[&other[..], &[place(&three)]].concat());
    assert_ne!(Folder::new(&three).read(CELL).unwrap().rows, read.rows);
}

#[test]
fn what_is_asked_for_wrongly_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let here = place(folder.path());
    let said = refused(2, &["--cell", "locks.none", "-o", here]);
    assert!(said.contains("there is no cell `locks.none`"), "{said}");
    assert!(said.contains("--list-cells"), "{said}");
    refused(2, &["--only", "nothing", "-o", here]);
    refused(2, &["--quick", "--full", "-o", here]);
    refused(2, &["--cell", CELL, "--resume", "-o", here]);
    refused(2, &["--jobs", "0", "-o", here]);
    let said = refused(1, &["--expect", "/nowhere/rows.parquet", "-o", here]);
    assert!(said.contains("cannot read /nowhere/rows.parquet"), "{said}");
    let said = refused(1, &["--cell", CELL, "--traces", here, "-o", here]);
    assert!(
        said.contains("--traces DIR says where the traces are"),
        "{said}"
    );
    let said = refused(1, &["--cell", CELL, "-o", "/proc/none"]);
    assert!(said.contains("/proc/none"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_with_cells_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let here = place(folder.path());
    done(&["--cell", CELL, "-o", here]);
    let said = refused(2, &["--only", "locks", "-o", here]);
    assert!(
        said.contains("has 1 cell of an earlier run: --resume goes on"),
        "{said}"
    );
    // Another cell may come beside it; and by its name it may be run again, whatever became of its file.
    done(&["--cell", PARTNER, "-o", here]);
    let folder = Folder::new(folder.path());
    let first = folder.read(CELL).unwrap();
    fs::write(folder.cell(CELL), "no longer").unwrap();
    assert!(folder.read(CELL).is_err());
    done(&["--cell", CELL, "-o", here]);
    assert_eq!(folder.read(CELL).unwrap(), first);
}

/// Runs a small experiment until its first cell is done, and presses Ctrl-C.
fn interrupted(here: &Path) -> Output {
    let mut child = command(&["--only", "kernbench", "--jobs", "1", "-o", place(here)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partition = here.join("raw/experiment=kernbench");
    let is_done = || {
        let entries = fs::read_dir(&partition).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .into_iter()
            .any(|name| !name.to_string_lossy().starts_with('.'))
    };
    let begun = Instant::now();
    while !is_done()
        && begun.elapsed() < Duration::from_secs(300)
        && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_run_keeps_what_is_done_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let output = interrupted(here);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--resume --output"), "{said}");
    let first = Folder::new(here).cells().unwrap();
    assert!(!first.is_empty());
    assert!(
        fs::read_to_string(here.join("report.html"))
            .unwrap()
            .contains("not run: the run was interrupted")
    );
    let kept = fs::metadata(Folder::new(here).cell(&first[0]))
        .unwrap()
        .modified()
        .unwrap();

    let printed = done(&["--only", "kernbench", "--resume", "-o", place(here)]);
    assert_eq!(
        printed.lines().last(),
        Some(place(&here.join("report.html")))
    );
    let listed = done(&["--only", "kernbench", "--list-cells"]);
    let mut all: Vec<&str> = listed.lines().collect();
    all.sort_unstable();
    assert_eq!(Folder::new(here).cells().unwrap(), all);
    let now = fs::metadata(Folder::new(here).cell(&first[0]))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(now, kept, "what was done was run again");

    every_number_is_made_of_rows_that_are_there(here);
    it_can_be_expected_again(here);
}

/// Walks the figures of the files and of the page back to the rows.
fn every_number_is_made_of_rows_that_are_there(here: &Path) {
    let rows = read_rows(&here.join("rows.parquet")).unwrap();
    let data = Data::new(rows);
    let folder = Folder::new(here);
    let cells: Vec<_> = folder
        .cells()
        .unwrap()
        .iter()
        .map(|cell| folder.read(cell).unwrap())
        .collect();
    let of_cells: usize = cells.iter().map(|cell| cell.rows.len()).sum();
    assert_eq!(data.len(), of_cells);

    let documents = documents::all();
    let judge = Judge::new(&documents, &data);
    let mut csv = csv_lines(&here.join("figures.csv"));
    let head = csv.remove(0);
    let column = |name: &str| head.iter().position(|other| other == name).unwrap();
    let stated: Vec<f64> = csv
        .iter()
        .filter_map(|line| line[column("value")].parse().ok())
        .collect();
    let kernbench = documents
        .iter()
        .filter(|document| document.experiment == "kernbench");
    let tables = kernbench.flat_map(|document| document.tables.iter().chain(&document.today));
    let figures = tables
        .flat_map(|table| &table.lines)
        .flat_map(|line| line.cells.iter().flatten());
    let judged: Vec<f64> = figures
        .filter_map(|figure| Some(judge.judge(figure)?.value))
        .collect();
    assert!(judged.len() > 20, "{} figures", judged.len());
    assert_eq!(stated, judged);

    // What `compare` reads agrees with its samples, or it would be refused.
    let results = brickyard_report::read_json(&here.join("results.json")).unwrap();
    assert!(
        results
            .rows()
            .iter()
            .all(|row| row.workload().starts_with("kernbench "))
    );
}

/// A run is as itself, and is not as another.
fn it_can_be_expected_again(here: &Path) {
    let rows = here.join("rows.parquet");
    let same = [
        "--only",
        "kernbench",
        "--resume",
        "-o",
        place(here),
        "--expect",
        place(&rows),
    ];
    let output = reproduce(&same);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("figures are as expected"), "{said}");

    let mut cells = read_rows(&rows).unwrap();
    for raw in cells.iter_mut().flat_map(|cell| &mut cell.rows) {
        if raw.config == "brickyard" {
            raw.value *= 1.2;
        }
    }
    let other = here.join("other.parquet");
    brickyard_reproduce::store::write_rows(&other, &Data::new(cells)).unwrap();
    let said = refused(
        1,
        &[
            "--only",
            "kernbench",
            "--resume",
            "-o",
            place(here),
            "--expect",
            place(&other),
        ],
    );
    assert!(
        said.contains("differ from those expected by more than they may"),
        "{said}"
    );
    assert!(said.contains("is expected"), "{said}");
}

fn csv_lines(path: &PathBuf) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_path(path)
        .unwrap();
    reader
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect()
}
