//! `brickyard reproduce` as used by a person and by a cluster: cells by name, a run that is
//! interrupted and resumed, a report whose every number follows from existing rows.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use brickyard_experiments::data::Data;
use brickyard_experiments::documents;
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_experiments::store::{Folder, read_rows};
use serde_json::Value;

use crate::command::{self, printed, text};

fn command(arguments: &[&str]) -> Command {
    command::command(&[&["reproduce"], arguments].concat())
}

fn reproduce(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn done(arguments: &[&str]) -> String {
    printed(&reproduce(arguments))
}

fn refused(code: i32, arguments: &[&str]) -> String {
    command::refused(code, &reproduce(arguments))
}

/// Not the default, so that printed commands must have it.
const TRACES: &str = "./traces";

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
    // By their rough costs, two cores run it within two minutes.
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
fn lists_have_the_command_of_each_cell() {
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
    let command = format!(",brickyard reproduce --cell {CELL} --seed 7 --output here");
    assert!(line.ends_with(&command), "{line}");
    assert!(lines.all(|line| line.starts_with("locks.")));
}

#[test]
fn a_cell_is_one_file_and_gives_the_same_bytes_again() {
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
    assert_eq!((read.kind, read.seed), (Method::Simulated, 1));
    assert!(!one.join("report.html").exists());
    // Another seed is other work, and refused in a folder that already has one.
    let other = ["--cell", CELL, "--seed", "2", "--output"];
    let message = refused(2, &[&other[..], &[place(&two)]].concat());
    assert!(message.contains("were run with seed 1, not 2"), "{message}");
    let three = folder.path().join("three");
    done(&[&other[..], &[place(&three)]].concat());
    assert_ne!(Folder::new(&three).read(CELL).unwrap().rows, read.rows);
}

#[test]
fn wrong_requests_are_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let here = place(folder.path());
    let message = refused(2, &["--cell", "locks.none", "-o", here]);
    assert!(
        message.contains("there is no cell `locks.none`"),
        "{message}"
    );
    assert!(message.contains("--list-cells"), "{message}");
    refused(2, &["--only", "nothing", "-o", here]);
    refused(2, &["--quick", "--full", "-o", here]);
    refused(2, &["--cell", CELL, "--resume", "-o", here]);
    refused(2, &["--jobs", "0", "-o", here]);
    let message = refused(2, &["--expect", "/nowhere/rows.parquet", "-o", here]);
    assert!(
        message.contains("cannot read /nowhere/rows.parquet"),
        "{message}"
    );
    for asked in [&["--cell", CELL][..], &["--only", "kernbench"]] {
        let message = refused(2, &[asked, &["--traces", "/nowhere", "-o", here]].concat());
        assert!(
            message.contains("no folder /nowhere: give the folder of the traces with --traces DIR"),
            "{message}"
        );
    }
    let message = refused(1, &["--cell", CELL, "--traces", here, "-o", here]);
    assert!(
        message.contains("give the folder of the traces with --traces DIR"),
        "{message}"
    );
    let message = refused(1, &["--cell", CELL, "-o", "/proc/none"]);
    assert!(message.contains("/proc/none"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_with_cells_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let here = place(folder.path());
    done(&["--cell", CELL, "-o", here]);
    let message = refused(2, &["--only", "locks", "-o", here]);
    assert!(
        message.contains("has 1 cell of an earlier run: resume it with --resume"),
        "{message}"
    );
    // Another cell may be added; and a named cell may be run again, even if its file is damaged.
    done(&["--cell", PARTNER, "-o", here]);
    let folder = Folder::new(folder.path());
    let first = folder.read(CELL).unwrap();
    fs::write(folder.cell(CELL), "no longer").unwrap();
    assert!(folder.read(CELL).is_err());
    done(&["--cell", CELL, "-o", here]);
    assert_eq!(folder.read(CELL).unwrap(), first);
}

/// Runs a printed command in a shell.
fn pasted(printed: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_brickyard");
    let line = printed.trim();
    let words = line.strip_prefix("brickyard ").unwrap();
    let words = words.replace("&& brickyard ", &format!("&& '{program}' "));
    Command::new("sh")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(["-c", &format!("'{program}' {words}")])
        .output()
        .unwrap()
}

/// Runs a small experiment until its first cell is done, and presses Ctrl-C.
fn interrupted(here: &Path) -> Output {
    let options = ["--full", "--only", "kernbench", "--seed", "3"];
    let others = ["--jobs", "1", "--traces", TRACES, "-o", place(here)];
    ended_by_ctrl_c(&[&options[..], &others].concat(), here)
}

/// Starts a run, and sends Ctrl-C when the first cell of `kernbench` is done.
fn ended_by_ctrl_c(options: &[&str], here: &Path) -> Output {
    let child = command(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
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

/// Returns the command that an interrupted run prints.
fn hint(message: &str) -> &str {
    let (_, after) = message.split_once("interrupted: ").unwrap();
    after.lines().nth(1).unwrap()
}

/// Returns the arguments that resume a run of [`interrupted`], with these options.
fn kernbench<'a>(here: &'a Path, options: &[&'a str]) -> Vec<&'a str> {
    let all = ["--full", "--only", "kernbench", "--seed", "3", "--resume"];
    [&all[..], &["-o", place(here)], options].concat()
}

fn listed(here: &Path, options: &[&str]) -> Vec<String> {
    let options = [&["--list-cells"], options].concat();
    let printed = done(&kernbench(here, &options));
    printed.lines().map(str::to_owned).collect()
}

fn modified(here: &Path, cell: &str) -> std::time::SystemTime {
    let file = fs::metadata(Folder::new(here).cell(cell)).unwrap();
    file.modified().unwrap()
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn an_interrupted_run_keeps_what_is_done_and_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let output = interrupted(here);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let first = Folder::new(here).cells().unwrap();
    assert!(!first.is_empty());
    assert!(
        fs::read_to_string(here.join("report.html"))
            .unwrap()
            .contains("not run: the run was interrupted")
    );
    let kept = modified(here, &first[0]);
    let mut all: Vec<String> = done(&["--full", "--only", "kernbench", "--list-cells"])
        .lines()
        .map(str::to_owned)
        .collect();
    all.sort_unstable();
    let mut both = [listed(here, &[]), first.clone()].concat();
    both.sort_unstable();
    assert_eq!(both, all, "what is left and what is done is all");

    // The printed command resumes exactly this run.
    let hint = hint(&message);
    for option in ["--full --only kernbench --resume --seed 3", "--jobs 1"] {
        assert!(hint.contains(option), "{hint}");
    }
    assert!(hint.contains(&format!("--traces {TRACES}")), "{hint}");
    let output = pasted(hint);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout).lines().last(),
        Some(place(&here.join("report.html")))
    );
    assert_eq!(Folder::new(here).cells().unwrap(), all);
    assert_eq!(listed(here, &[]), [""; 0]);
    assert_eq!(
        modified(here, &first[0]),
        kept,
        "what was done was run again"
    );

    every_number_follows_from_existing_rows(here);
    a_run_can_be_compared_with_its_rows(here);
    outdated_cells_are_run_again(here, &first[0]);
    unknown_cells_are_left_out(here, &first[0]);
    the_report_covers_all_of_the_folder(here);
}

/// Computes the figures of the files again from the rows.
fn every_number_follows_from_existing_rows(here: &Path) {
    let rows = read_rows(&here.join("rows.parquet")).unwrap();
    let data = Data::new(rows).unwrap();
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

    // A document for `compare` that disagrees with its samples would be refused.
    let results = brickyard_results::read_json(&here.join("results.json")).unwrap();
    assert!(
        results
            .rows()
            .iter()
            .all(|row| row.workload().starts_with("kernbench "))
    );
}

/// A run does not differ from its own rows, and differs from changed ones.
fn a_run_can_be_compared_with_its_rows(here: &Path) {
    let rows = here.join("rows.parquet");
    let output = reproduce(&kernbench(here, &["--expect", place(&rows)]));
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("figures are as expected"), "{message}");
    let counted = "simulated and replayed figures, 0 timed ones; not compared: 0 of other runs";
    assert!(message.contains(counted), "{message}");

    let mut cells = read_rows(&rows).unwrap();
    for raw in cells.iter_mut().flat_map(|cell| &mut cell.rows) {
        if raw.config == "brickyard" {
            raw.value *= 1.2;
        }
    }
    let other = here.join("other.parquet");
    let changed = Data::new(cells).unwrap();
    brickyard_experiments::store::write_rows(&other, &changed).unwrap();
    let expecting = kernbench(here, &["--expect", place(&other)]);
    let message = refused(1, &expecting);
    assert!(
        message.contains("differ from the expected ones by more than is allowed"),
        "{message}"
    );
    assert!(message.contains("is expected"), "{message}");
    // A reader that closes the pipe does not change the result.
    let closed = command(&expecting)
        .stdout(closed_pipe())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(text(&closed.stderr), message);
    assert_eq!(closed.status.code(), Some(1));
    let closed_both = command(&kernbench(here, &[]))
        .stdout(closed_pipe())
        .stderr(closed_pipe())
        .status()
        .unwrap();
    assert_eq!(closed_both.code(), Some(0));
}

/// Returns the writing end of a pipe whose reading end is closed.
fn closed_pipe() -> io::PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer
}

/// Cells of another build, damaged ones, and those of other traces are run again.
fn outdated_cells_are_run_again(here: &Path, cell: &str) {
    let folder = Folder::new(here);
    let good = folder.read(cell).unwrap();
    assert!(good.program.contains(", traces "), "{}", good.program);
    for (program, why) in [
        (
            "0.0.1",
            "1 cell was run by another build of the program, and is run again",
        ),
        (
            "",
            "1 cell was run by another build of the program, and is run again",
        ),
    ] {
        let mut of_another = good.clone();
        of_another.program = program.to_owned();
        of_another.rows[0].value *= 2.0;
        folder.write(&of_another).unwrap();
        assert_eq!(listed(here, &[]), [cell]);
        let message = text(&reproduce(&kernbench(here, &[])).stderr);
        assert!(message.contains(why), "{message}");
        assert!(!message.contains("several builds"), "{message}");
        assert_eq!(folder.read(cell).unwrap(), good);
    }
    fs::write(folder.cell(cell), "no longer").unwrap();
    let message = text(&reproduce(&kernbench(here, &[])).stderr);
    assert!(message.contains("1 cell was damaged ("), "{message}");
    assert_eq!(folder.read(cell).unwrap(), good);

    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("other.parquet"), "other work").unwrap();
    let left = listed(here, &["--traces", place(other.path())]);
    assert_eq!(left, {
        let all = done(&["--only", "kernbench", "--list-cells"]);
        all.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    // Without traces the cells count as up to date, and the report is made.
    done(&kernbench(here, &["--traces", "/nowhere"]));
}

/// A cell that only an earlier build had would give a second row for the same run.
fn unknown_cells_are_left_out(here: &Path, cell: &str) {
    let folder = Folder::new(here);
    let before = fs::read(here.join("rows.csv")).unwrap();
    let mut gone = folder.read(cell).unwrap();
    gone.cell = "kernbench.gone.1".to_owned();
    folder.write(&gone).unwrap();
    let output = reproduce(&kernbench(here, &[]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let line = "Left out: 1 cell of the folder that this build of the program does not have, the first: kernbench.gone.1.";
    assert!(text(&output.stderr).contains(line));
    let page = fs::read_to_string(here.join("report.html")).unwrap();
    assert!(page.contains(line));
    assert_eq!(fs::read(here.join("rows.csv")).unwrap(), before);
    fs::remove_file(folder.cell("kernbench.gone.1")).unwrap();
}

/// Whatever is requested, no finished part is dropped, and the page has the command that runs all
/// of it.
fn the_report_covers_all_of_the_folder(here: &Path) {
    let other = "pft.i7-2013.cpus-2.brickyard.1";
    done(&["--cell", other, "--seed", "3", "-o", place(here)]);
    // A cell of another build that is not requested now is kept, with a warning.
    let folder = Folder::new(here);
    let mut kept = folder.read(other).unwrap();
    kept.program = "0.0.1".to_owned();
    folder.write(&kept).unwrap();
    let output = reproduce(&kernbench(here, &[]));
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("several builds"), "{message}");
    assert!(message.contains("1 cell of 0.0.1"), "{message}");
    assert!(
        message.contains("The folder has parts of a larger run"),
        "{message}"
    );
    let page = fs::read_to_string(here.join("report.html")).unwrap();
    assert!(page.contains("1 cell of 0.0.1"));
    assert!(page.contains(
        "brickyard reproduce --quick --only pft,kernbench --seed 3 --output again-seed-3<"
    ));
    // A missing cell is run into this folder, an existing one is repeated in another.
    let lacking = "pft.i7-2013.cpus-1.list-2007.1";
    assert!(!folder.cells().unwrap().contains(&lacking.to_owned()));
    assert!(page.contains(&format!("--seed 3 --output {}<", place(here))));
    assert!(page.contains("--seed 3 --output again-seed-3-cells"));
    let rows = fs::read_to_string(here.join("rows.csv")).unwrap();
    assert!(rows.contains(other));
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_failure_before_ctrl_c_is_reported_at_once_and_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).unwrap();
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/kernel.parquet");
    fs::copy(kernel, traces.join("kernel.parquet")).unwrap();
    let here = folder.path().join("run");
    let options = ["--only", "kernbench,mobility", "--jobs", "1"];
    let output = ended_by_ctrl_c(
        &[
            &options[..],
            &["--traces", place(&traces), "-o", place(&here)],
        ]
        .concat(),
        &here,
    );
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let failed = "brickyard: mobility.elm3b245.pictures: cannot use";
    let ended = "interrupted: ";
    assert!(
        message.find(failed).unwrap() < message.find(ended).unwrap(),
        "{message}"
    );
    assert_eq!(
        message.matches("mobility.elm3b245.pictures").count(),
        1,
        "{message}"
    );
    assert!(message.contains(" failed; interrupted: "), "{message}");
    let page = fs::read_to_string(here.join("report.html")).unwrap();
    assert!(page.contains("walk.parquet; give the folder of the traces"));
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_folder_has_one_run_at_a_time_and_a_host_one_timed_cell() {
    let place_of_all = tempfile::tempdir().unwrap();
    let here = place_of_all.path();
    let locked = |name: &str| {
        let file = fs::File::create(here.join(name)).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        file
    };
    let folder = locked(".lock");
    let message = refused(2, &["--only", "kernbench", "-o", place(here)]);
    assert!(
        message.contains("another `brickyard reproduce` is running in"),
        "{message}"
    );
    // Single cells may come from many processes.
    done(&["--cell", CELL, "-o", place(here)]);
    drop(folder);

    let host = locked("brickyard-timed.lock");
    let timed = "pagealloc.host.batches.1";
    let mut child = command(&["--cell", timed, "-o", place(here)])
        .env("TMPDIR", here)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut message = String::new();
    let mut stderr = io::BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut message).unwrap();
    assert!(
        message.starts_with("waiting: another brickyard is timing something"),
        "{message}"
    );
    assert!(!Folder::new(here).cell(timed).exists());
    drop(host);
    assert!(child.wait().unwrap().success());
    assert!(Folder::new(here).cell(timed).exists());
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

/// Each timed cell has what others took of the CPUs meanwhile, beside its own rows.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn timed_cells_are_processes_of_their_own_on_a_host_that_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let printed = done(&["--only", "pagealloc", "-o", place(here)]);
    assert!(printed.contains("It was timed in one sitting"), "{printed}");
    let rows = read_rows(&here.join("rows.parquet")).unwrap();
    let timed = rows.iter().filter(|cell| cell.kind.name() == "timed");
    let mut count = 0;
    for cell in timed {
        let taken = cell
            .rows
            .iter()
            .filter(|row| row.metric == "taken-by-others");
        let taken: Vec<f64> = taken.map(|row| row.value).collect();
        assert!(
            matches!(taken[..], [taken] if taken >= 0.0),
            "{}: {taken:?}",
            cell.cell
        );
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

/// Rows of an earlier run become a report with its verdicts, and nothing is run.
#[test]
fn a_report_is_made_of_recorded_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (run, report) = (folder.path().join("run"), folder.path().join("report"));
    for cell in [CELL, PARTNER] {
        done(&["--cell", cell, "-o", place(&run)]);
    }
    let recorded = folder.path().join("rows.parquet");
    let cells = [CELL, PARTNER].map(|cell| Folder::new(&run).read(cell).unwrap());
    let data = Data::new(cells.to_vec()).unwrap();
    brickyard_experiments::store::write_rows(&recorded, &data).unwrap();
    let printed = done(&["--from", place(&recorded), "-o", place(&report)]);
    assert!(printed.contains("How long to hold the zone lock (Porter 2007, locks)"));
    assert!(!printed.contains("(kernbench)"), "{printed}");
    assert!(
        printed.trim_end().ends_with("report/report.html"),
        "{printed}"
    );
    // Two cells of a quick run are not all of it, so the recorded run does not stand behind them.
    assert!(
        printed.contains("Nothing of the recorded run stands behind locks, since"),
        "{printed}"
    );
    assert!(printed.contains(" is missing: "), "{printed}");
    let again = Data::new(read_rows(&report.join("rows.parquet")).unwrap()).unwrap();
    assert_eq!(again.len(), data.len());
    assert!(!report.join("raw").exists());
    let figures = fs::read_to_string(report.join("figures.csv")).unwrap();
    assert!(figures.lines().next().unwrap().contains(",verdict,"));
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    assert!(
        page.contains("has no rows of it"),
        "the missing cells are named"
    );
    // A folder with cells is no place for it, nor can it be combined with a run.
    let message = refused(2, &["--from", place(&recorded), "-o", place(&run)]);
    assert!(
        message.contains("has 2 cells of an earlier run"),
        "{message}"
    );
    refused(
        2,
        &["--from", place(&recorded), "--full", "-o", place(&report)],
    );
    let message = refused(
        2,
        &["--from", "/nowhere/rows.parquet", "-o", place(&report)],
    );
    assert!(
        message.contains("--from: cannot read /nowhere/rows.parquet"),
        "{message}"
    );
}

/// The rules of the verdicts are in the help, in the words of the report.
#[test]
fn the_help_has_the_rules() {
    let help = done(&["--help"]);
    for rule in [
        brickyard_experiments::judge::SIGN_RULE,
        brickyard_experiments::judge::SIZE_RULE,
        brickyard_experiments::judge::SWEEP_RULE,
        brickyard_experiments::judge::NONE_RULE,
        brickyard_experiments::judge::ZERO_RULE,
        brickyard_experiments::directions::ANSWER_RULE,
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&help).contains(&words(rule)), "{rule}");
    }
}
