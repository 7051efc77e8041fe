//! `bench pft` as a user runs it: its table, its rows, and its errors.

use std::process::{Command, Output};

use brickyard_designs::classics::Configuration;
use serde_json::Value;

fn pft(more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(["bench", "pft", "--samples", "2"])
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_table_has_the_form_of_mmtests() {
    let out = pft(&["--threads", "2", "--memory", "32M", "--no-deviation"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["pft"]);
    assert_eq!(lines[1], ["vanilla", "magazine-2013", "brickyard"]);
    let heads: Vec<&str> = lines[2..8].iter().map(|line| line[0]).collect();
    assert_eq!(
        heads,
        [
            "faults/cpu-1",
            "faults/cpu-2",
            "faults/sec-1",
            "faults/sec-2",
            "frees/cpu-1",
            "frees/cpu-2"
        ]
    );
    // The gain of the baseline is 0.
    assert_eq!(lines[2][2..4], ["(", "0.00%)"]);
}

#[test]
fn every_configuration_and_the_yardstick_clear_all_their_pages() {
    let mut names = Configuration::ALL.map(Configuration::name).to_vec();
    names.push("array-stack");
    // Three threads, so that their shares are not all equal.
    let config = names.join(",");
    let arguments = [
        "--passes",
        "1",
        "--threads",
        "3",
        "--memory",
        "48M",
        "--format",
        "json",
        "--config",
        &config,
    ];
    let out = pft(&arguments);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 3 * names.len());
    for row in rows {
        assert_eq!(row["better"], "higher");
        assert_eq!(row["n"], 2);
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 8] = [
        (&["--config", "nonesuch"], "magazine-2013"),
        (&["--config", "nonesuch"], "array-stack"),
        (&["--config", "vanilla,vanilla"], "twice"),
        (&["--threads", "0"], "at least 1"),
        (&["--passes", "0"], "at least 1"),
        (&["--threads", "2", "--memory", "31M"], "give at least 32M"),
        (&["--memory", "1000T"], "give at most 16383G"),
        (&["--format", "xml"], "json"),
    ];
    for (arguments, hint) in cases {
        let out = pft(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn help_has_every_option() {
    let help = text(&pft(&["--help"]).stdout);
    for option in [
        "--config",
        "--threads",
        "--memory",
        "--passes",
        "--samples",
        "--format",
        "--output",
    ] {
        assert!(help.contains(option), "{option} is missing from:\n{help}");
    }
}
