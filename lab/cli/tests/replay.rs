//! `brickyard replay` as a user runs it, on the small traces of the
//! repository. The expected tables are in `tests/replay/`, without the section of times;
//! `BRICKYARD_BLESS=1` rewrites them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use brickyard_designs::classics::Configuration;
use serde_json::Value;

use crate::command::{self, brickyard, command, golden, text};

const DD: &str = "traces/dd.parquet";
const WALK: &str = "traces/walk.parquet";

fn printed(arguments: &[&str]) -> String {
    command::printed(&brickyard(arguments))
}

/// Returns the error message of a run that must fail with this exit code and print nothing.
fn refused(arguments: &[&str], code: i32) -> String {
    let output = brickyard(arguments);
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    command::refused(code, &output)
}

/// The table without its section of times, and with `T` for the two in the sentence at its end.
fn timeless(table: &str) -> String {
    const TAKEN: &str = "allocation would have taken ";
    let (before, from) = table.split_once("\ntime  ").unwrap();
    let (_, after) = from.split_once("\n\n").unwrap();
    let Some((said, times)) = after.split_once(TAKEN) else {
        return format!("{before}\n{after}");
    };
    let (times, rest) = times.split_once(" (median)").unwrap();
    let (ours, theirs) = times.split_once(" ns instead of ").unwrap();
    for time in [ours, theirs] {
        assert!(time.parse::<u32>().is_ok_and(|ns| ns > 0), "{times}");
    }
    format!("{before}\n{said}{TAKEN}T ns instead of T (median){rest}")
}

// ---- replay ----

#[test]
fn the_recorded_host_is_replayed_through_every_configuration() {
    let table = printed(&["replay", DD]);
    for config in Configuration::ALL {
        assert!(
            table.contains(config.name()),
            "{config} is missing from:\n{table}"
        );
    }
    golden("replay/dd.txt", &timeless(&table));
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_smaller_machine_has_to_reclaim() {
    let small = [
        "replay",
        WALK,
        "--memory",
        "64M",
        "--config",
        "vanilla,brickyard",
    ];
    let table = printed(&small);
    assert!(table.contains("64M (16384 frames)"), "{table}");
    golden("replay/walk-64m.txt", &timeless(&table));
    // One at a time, the result is the same.
    let alone = printed(&[&small[..], &["--jobs", "1"]].concat());
    assert_eq!(timeless(&alone), timeless(&table));
    // Other ways of reclaim give other figures.
    for way in [
        &["--slow-path", "plain"][..],
        &["--slow-path", "lumpy"],
        &["--swap"],
    ] {
        let other = printed(&[&small[..], way].concat());
        assert_ne!(timeless(&other), timeless(&table), "{way:?}");
    }
}

/// Every design fails an equal number of single pages if only those are asked for: what a design
/// with more order-2 blocks in use lacks at order 0 is what those hold.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn without_larger_blocks_order_0_fails_as_often_as_with_lists() {
    let failed = |options: &[&str]| {
        let sides = [
            "replay",
            WALK,
            "--memory",
            "128M",
            "--config",
            "brickyard,list-2007",
        ];
        let table = printed(&[&sides[..], options].concat());
        let line = table.lines().find(|line| line.contains("order 0 failed"));
        let numbers = line.unwrap().split_whitespace().skip(3);
        (
            numbers
                .map(|text| text.parse::<u64>().unwrap())
                .collect::<Vec<_>>(),
            table,
        )
    };
    let (all, _) = failed(&[]);
    assert_ne!(all[0], all[1]);
    let (single, table) = failed(&["--max-order", "0"]);
    assert!(table.contains("requests above order 0"), "{table}");
    assert!(single[0] > 1000 && single[0] == single[1], "{single:?}");
}

/// Figures by configuration, section and label: the number of samples, their mean, and the last one
/// where it is known. Without times, which differ from run to run.
type Figures = BTreeMap<(String, String, String), (u64, f64, Option<f64>)>;

fn of_json(text: &str) -> Figures {
    let json: Value = serde_json::from_str(text).unwrap();
    assert_eq!(json["experiment"], "replay");
    let mut figures = Figures::new();
    for row in json["rows"].as_array().unwrap() {
        let word = |name: &str| row[name].as_str().unwrap().to_owned();
        let samples = row["samples"].as_array().unwrap();
        let key = (word("config"), word("workload"), word("metric"));
        let mean = row["mean"].as_f64().unwrap();
        let last = samples.last().unwrap().as_f64();
        let twice = figures.insert(key, (samples.len() as u64, mean, last));
        assert!(twice.is_none(), "twice: {row}");
    }
    figures.retain(|(_, section, _), _| section != "time");
    figures
}

fn of_csv(text: &str) -> Figures {
    let mut lines = text.lines().filter(|line| !line.starts_with("# "));
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|&other| other == name).unwrap();
    let names = ["config", "workload", "metric", "n", "mean", "last"].map(column);
    let mut figures = Figures::new();
    for line in lines {
        let fields = fields(line);
        assert_eq!(fields.len(), head.len(), "{line}");
        let [config, workload, metric, n, mean, last] = names.map(|place| fields[place].clone());
        let figure = (n.parse().unwrap(), mean.parse().unwrap(), last.parse().ok());
        figures.insert((config, workload, metric), figure);
    }
    figures.retain(|(_, section, _), _| section != "time");
    figures
}

/// The fields of a line of CSV, quoted or not.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn csv_and_json_have_the_same_figures_as_the_table() {
    let run = [
        "replay",
        DD,
        "--memory",
        "256M",
        "--config",
        "list-2007,brickyard",
        "--every",
        "0.2",
    ];
    let form = |form| printed(&[&run[..], &["--format", form]].concat());
    let (json, csv) = (of_json(&form("json")), of_csv(&form("csv")));
    assert!(json.len() > 100, "{}", json.len());
    assert!(json.keys().eq(csv.keys()));
    for (key, (n, mean, last)) in &json {
        let (other_n, other_mean, other_last) = csv[key];
        assert_eq!((*n, *last), (other_n, other_last), "{key:?}");
        let near = (mean - other_mean).abs() <= mean.abs() * 1e-3;
        assert!(near, "{key:?}: {mean} and {other_mean}");
    }
    let several = json.values().filter(|(n, ..)| *n > 3).count();
    assert!(several >= 10, "no figure over time: {several}");
    // The last sample is what the table shows.
    let table = form("table");
    let mut section = "";
    let mut lines = 0;
    for line in table.lines() {
        let is_head = !line.starts_with(' ') && line.ends_with("brickyard");
        if is_head {
            section = line.split("  ").next().unwrap();
        }
        let Some(label) = line.strip_prefix("  ").filter(|_| section != "time") else {
            continue;
        };
        let found = json.iter().find(|((subject, case, metric), _)| {
            let metric = format!("{metric}  ");
            subject == "brickyard" && section.starts_with(case) && label.starts_with(&metric)
        });
        let (_, &(.., last)) = found.unwrap_or_else(|| panic!("{section}: {line}"));
        let last = last.unwrap();
        let shown = label
            .split_whitespace()
            .filter_map(|word| word.parse::<f64>().ok());
        assert!(
            shown.into_iter().any(|shown| (shown - last).abs() < 0.001),
            "{line}: {last}"
        );
        lines += 1;
    }
    assert!(lines > 15, "{lines}");
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn csv_and_json_say_what_the_table_says_around_its_figures() {
    let run = ["replay", WALK, "--memory", "64M", "--config", "brickyard"];
    let form = |form| printed(&[&run[..], &["--format", form]].concat());
    let (table, json, csv) = (form("table"), form("json"), form("csv"));
    let json: Value = serde_json::from_str(&json).unwrap();
    let lines = |name: &str| {
        let lines = json[name].as_array().unwrap().iter();
        lines
            .map(|line| line.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (about, notes) = (lines("about"), lines("notes"));
    assert!(about[0].starts_with(WALK) && !notes.is_empty(), "{json}");
    for line in about.iter().chain(&notes) {
        assert!(table.lines().any(|other| other == line), "{line}");
        assert!(
            csv.lines().any(|other| other == format!("# {line}")),
            "{line}"
        );
    }
    assert_eq!(json.get("interrupted"), None);
}

#[test]
fn an_interrupted_replay_says_so_and_keeps_what_was_done() {
    let run = [
        "replay",
        "traces/archive.parquet",
        "--memory",
        "64M",
        "--jobs",
        "1",
    ];
    let child = command(&[&run[..], &["--format", "json"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(core::time::Duration::from_millis(1500));
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("interrupted"), "{error}");
    if !out.is_empty() {
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json["interrupted"], true);
        let notes = json["notes"].as_array().unwrap();
        assert!(
            notes
                .iter()
                .any(|note| note.as_str().unwrap().starts_with("Interrupted: "))
        );
    }
}

#[test]
fn a_run_that_cannot_begin_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, out) = (path("page.html"), path("out.csv"));
    let absent = path("absent.parquet");
    let error = refused(&["replay", &absent, "--html", &html, "-o", &out], 1);
    assert!(error.contains("absent.parquet"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn pictures_are_written_to_the_given_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, png, out) = (path("page.html"), path("png"), path("out.csv"));
    let configs = ["vanilla", "zone-2007", "brickyard"];
    let run = [
        "replay", DD, "--memory", "64M", "--every", "0.5", "--config",
    ];
    let where_to = [
        "--html", &html, "--png", &png, "-o", &out, "--format", "csv",
    ];
    let named = configs.join(",");
    let output = brickyard(&[&run[..], &[&named], &where_to[..]].concat());
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(text(&output.stdout), "");
    assert!(told.contains(&html), "{told}");
    assert!(!of_csv(&fs::read_to_string(&out).unwrap()).is_empty());
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    for config in configs {
        assert!(page.contains(config), "{config}");
        let pictures: Vec<_> = fs::read_dir(Path::new(&png).join(config))
            .unwrap()
            .collect();
        assert!(pictures.len() > 1, "{config}");
        for picture in pictures {
            let picture = fs::read(picture.unwrap().path()).unwrap();
            assert_eq!(&picture[..8], b"\x89PNG\r\n\x1a\n");
        }
    }
}

#[test]
fn wrong_traces_and_options_are_refused() {
    let error = refused(&["replay", "traces/none.parquet"], 1);
    assert!(error.contains("traces/none.parquet"), "{error}");
    let error = refused(&["replay", "traces/README.md"], 1);
    assert!(error.contains("traces/README.md"), "{error}");
    let error = refused(&["replay", DD, "--memory", "1K"], 1);
    assert!(
        error.contains("1024 bytes") && error.contains("at least 8388608"),
        "{error}"
    );
    for (wrong, says) in [
        (&["--config", "nonsense"][..], "nonsense"),
        (&["--config", "vanilla,vanilla"], "twice"),
        (&["--every", "0"], "--every"),
        (&["--every", "nan"], "--every"),
        (&["--every", "-1"], "-1"),
        (&["--jobs", "0"], "--jobs"),
        (&["--max-order", "99"], "--max-order"),
        (&["--memory", "much"], "512M"),
        (&["--slow-path", "magic"], "magic"),
        (&["--format", "xml"], "xml"),
    ] {
        let error = refused(&[&["replay", DD], wrong].concat(), 2);
        assert!(error.contains(says), "{wrong:?}: {error}");
    }
    refused(&["replay"], 2);
    // If the results cannot be written, nothing is run.
    for wrong in ["-o", "--html"] {
        let error = refused(&["replay", DD, wrong, "/nowhere/at/all"], 1);
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}

#[test]
fn an_imported_trace_has_no_machine_and_the_error_names_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imported.parquet");
    let text = "lab/trace/tests/data/perf-script-callchains.txt";
    let path = path.to_str().unwrap();
    let imported = brickyard(&["import", text, "-o", path]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    let error = refused(&["replay", path], 1);
    assert!(error.contains("--memory"), "{error}");
    let table = printed(&["replay", path, "--memory", "16M", "--config", "brickyard"]);
    assert!(table.contains("empty at first"), "{table}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let run = ["replay", DD, "--memory", "64M", "--config", "brickyard"];
    let mut child = command(&run)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut error = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut error)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(
        !error.contains("panicked") && !error.contains("roken pipe"),
        "{error}"
    );
}
