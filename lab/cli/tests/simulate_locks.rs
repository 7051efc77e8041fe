//! `simulate locks` as a user runs it: its exact tables, since a simulation gives the same on every
//! host, and its errors. The expected tables are in `tests/simulate_locks/`; `BRICKYARD_BLESS=1`
//! rewrites them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const COLUMNS: [&str; 5] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
];

/// Runs the command in the directory of the traces.
fn locks(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(["simulate", "locks"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the output of a run that must succeed.
fn printed(arguments: &[&str]) -> String {
    let out = locks(arguments);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    text(&out.stdout)
}

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/simulate_locks")
        .join(name);
    if std::env::var_os("BRICKYARD_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs");
}

#[test]
fn a_storm_is_the_same_on_every_host() {
    let storm = [
        "--workload",
        "storm",
        "--cpus",
        "1,4",
        "--events",
        "512",
        "--runs",
        "6",
    ];
    let table = printed(&storm);
    golden("storm.txt", &table);
    // The same, however many runs are done at once.
    assert_eq!(printed(&[&storm[..], &["--jobs", "1"]].concat()), table);
}

#[test]
fn a_recorded_command_is_the_same_on_every_host() {
    let recorded = [
        "--workload",
        "bonnie,dd",
        "--cpus",
        "2",
        "--events",
        "60",
        "--runs",
        "2",
        "--columns",
        "hold,release",
    ];
    golden("recorded.txt", &printed(&recorded));
    golden(
        "recorded.csv",
        &printed(&[&recorded[..], &["--format", "csv"]].concat()),
    );
}

#[test]
fn rows_have_their_samples_and_the_steps_between_them() {
    let document = printed(&[
        "--workload",
        "storm",
        "--cpus",
        "2",
        "--events",
        "300",
        "--runs",
        "3",
        "--format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let rows = document["rows"].as_array().unwrap();
    // 23 metrics, five columns.
    assert_eq!(rows.len(), 23 * 5);
    assert!(rows.iter().all(|row| row["n"] == 3));
    let times: Vec<_> = rows.iter().filter(|row| row["metric"] == "time").collect();
    let columns: Vec<_> = times.iter().map(|row| &row["config"]).collect();
    assert_eq!(columns, COLUMNS);
    assert_eq!(document["host"]["cpu"], "metatm-2007");
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 23 * 4);
    assert_eq!(steps[0]["before"], "hold");
    assert!(steps.iter().all(|step| step["significant"] == false));
}

#[test]
fn the_published_differences_are_compared_with_the_measured_ones() {
    let out = locks(&[
        "--workload",
        "mab,objdump",
        "--cpus",
        "8",
        "--events",
        "20",
        "--runs",
        "1",
        "--published",
    ]);
    assert_eq!(out.status.code(), Some(0));
    let printed = text(&out.stderr);
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("200"))
        .collect();
    // MAB: one simulated, one of 2007, three of 2008; objdump: one and three.
    assert_eq!(lines.len(), 9, "{printed}");
    // One run shows nothing, and the ticket locks of the whole kernel are not modelled.
    for line in &lines {
        let all_locks = line.contains("ticket over hold");
        let expected = if all_locks {
            "not testable"
        } else {
            "within noise"
        };
        assert!(line.ends_with(expected), "{line}");
    }
    let own_line = lines.iter().find(|line| line.contains("own-line over"));
    assert!(own_line.unwrap().contains("0.969*"), "{printed}");
}

#[test]
fn other_machines_and_designs_can_be_chosen() {
    let table = printed(&[
        "--workload",
        "storm",
        "--profile",
        "xeon-x5355",
        "--config",
        "magazine-2013",
        "--cpus",
        "3",
        "--events",
        "128",
        "--runs",
        "1",
        "--columns",
        "ticket",
        "--memory",
        "64M",
    ]);
    let title = "locks of magazine-2013 on xeon-x5355, lists of 31 and 186, the first 128 events";
    assert!(table.starts_with(title), "{table}");
}

#[test]
fn misuse_exits_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 14] = [
        (&["--workload", "quake"], "find, pmake"),
        (&["--workload", "dd,dd"], "twice"),
        (&["--columns", "hold,hold"], "twice"),
        (&["--columns", "spin"], "ticket+yield+own-line"),
        (&["--cpus", "0"], "1 to 256"),
        (&["--cpus", "257"], "1 to 256"),
        (&["--cpus", "8,8"], "twice"),
        (&["--profile", "cray"], "metatm-2007"),
        (&["--config", "slob"], "vanilla"),
        (&["--runs", "0"], "at least 1"),
        (&["--events", "0"], "`all`"),
        (&["--high", "3"], "at least as much"),
        (&["--memory", "1M"], "at least 16M"),
        (&["--format", "xml"], "json"),
    ];
    for (arguments, hint) in cases {
        let out = locks(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?}:\n{error}");
        assert!(out.stdout.is_empty());
    }
    let out = locks(&["--workload", "dd", "--traces", "nowhere"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("--traces"));
}
