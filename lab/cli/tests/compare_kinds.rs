//! `brickyard compare` of rows that say how their samples were made: exact rows pair by pair, timed
//! rows with a tolerance for the difference between runs.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `brickyard compare` on documents with these rows, named 0.json, 1.json and so on.
fn compare(documents: &[&[Value]], options: &[&str]) -> Output {
    let folder = TempDir::new().unwrap();
    for (number, rows) in documents.iter().enumerate() {
        let document = json!({"experiment": "demo", "host": {}, "rows": rows});
        let path = folder.path().join(format!("{number}.json"));
        fs::write(path, document.to_string()).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .current_dir(folder.path())
        .args(["compare", "0.json", "1.json"])
        .args(options)
        .output()
        .unwrap()
}

/// Compares two rows; returns the exit code, and the row of the JSON.
fn judged(a: Value, b: Value, options: &[&str]) -> (Option<i32>, Value) {
    let options = [&["--format", "json"], options].concat();
    let output = compare(&[&[a], &[b]], &options);
    (output.status.code(), first_row(&output))
}

fn first_row(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["rows"][0].clone()
}

fn of_kind(kind: &str, better: &str, samples: &[f64]) -> Value {
    json!({"config": "x", "workload": "w", "metric": "m", "unit": "u", "better": better, "kind": kind, "samples": samples})
}

fn exact(samples: &[f64]) -> Value {
    of_kind("exact", "lower", samples)
}

fn timed(samples: &[f64]) -> Value {
    of_kind("timed", "lower", samples)
}

fn of_runs(mut row: Value, runs: &[u32]) -> Value {
    row["runs"] = json!(runs);
    row
}

/// Six rounds around a mean, one percent of it apart.
fn rounds(mean: f64) -> Vec<f64> {
    let off = [-2.0, 1.0, 0.0, 2.0, -1.0, 0.0];
    off.iter().map(|off| mean + mean * off / 100.0).collect()
}

/// Seeds that scatter by 3 %, each 10 % slower: a loss of the code, which no test on unpaired
/// samples would find.
#[test]
fn exact_rows_are_compared_pair_by_pair() {
    let (a, b) = ([100.0, 101.0, 103.0], [110.0, 111.1, 113.3]);
    let (code, row) = judged(exact(&a), exact(&b), &[]);
    assert_eq!(
        (code, &row["verdict"], &row["test"]),
        (Some(1), &json!("worse"), &json!("exact"))
    );
    assert!((row["gain_percent"].as_f64().unwrap() + 10.0).abs() < 1e-9);
    // One seed that is 1 % slower is a change, but no loss of more than 2 %.
    let (code, row) = judged(exact(&a), exact(&[100.0, 102.0, 103.0]), &[]);
    assert_eq!(
        (code, &row["verdict"], &row["significant"]),
        (Some(0), &json!("same"), &json!(true))
    );
    // The last digits may differ by the machine's arithmetic.
    let (_, row) = judged(exact(&a), exact(&[100.0, 101.0 + 1e-9, 103.0]), &[]);
    assert_eq!(row["significant"], json!(false));
}

#[test]
fn only_runs_that_both_have_are_compared() {
    let a = of_runs(exact(&[100.0, 500.0, 102.0]), &[1, 2, 3]);
    let b = of_runs(exact(&[100.0, 102.0, 900.0]), &[1, 3, 4]);
    let output = compare(&[core::slice::from_ref(&a), &[b]], &["--format", "json"]);
    let row = first_row(&output);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        (&row["verdict"], &row["n_a"], &row["mean_a"]),
        (&json!("same"), &json!(2), &json!(101.0))
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("only the runs that both have"), "{text}");

    let other = of_runs(exact(&[7.0]), &[9]);
    let (code, row) = judged(a, other, &[]);
    assert_eq!(
        (code, &row["verdict"], &row["gain_percent"]),
        (Some(0), &json!("unclear"), &Value::Null)
    );
}

/// Two runs of one build may differ this much: the rounds of each agree well, and the means are
/// 60 % apart.
#[test]
fn a_timed_row_of_one_run_must_be_beyond_what_runs_differ_by() {
    let (a, b) = (timed(&rounds(100.0)), timed(&rounds(160.0)));
    let (code, row) = judged(a.clone(), b.clone(), &[]);
    assert_eq!(
        (code, &row["verdict"], &row["significant"]),
        (Some(0), &json!("same"), &json!(true))
    );
    let (code, row) = judged(a.clone(), timed(&rounds(210.0)), &[]);
    assert_eq!((code, &row["verdict"]), (Some(1), &json!("worse")));
    let (code, row) = judged(a.clone(), b.clone(), &["--timed-threshold", "50"]);
    assert_eq!((code, &row["verdict"]), (Some(1), &json!("worse")));
    let (code, row) = judged(b, a.clone(), &["--timed-threshold", "50"]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("better")));
    // The general threshold applies to these rows too.
    let worse = timed(&rounds(210.0));
    let (code, _) = judged(a, worse, &["--threshold", "150"]);
    assert_eq!(code, Some(0));
}

/// Twice the time is half the rate.
#[test]
fn rates_have_the_same_tolerance_as_times() {
    let rate = |mean| of_kind("timed", "higher", &rounds(mean));
    let (code, row) = judged(rate(100.0), rate(55.0), &[]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("same")));
    let (code, row) = judged(rate(100.0), rate(45.0), &[]);
    assert_eq!((code, &row["verdict"]), (Some(1), &json!("worse")));
    let (code, row) = judged(rate(100.0), rate(190.0), &[]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("same")));
}

#[test]
fn a_timing_is_never_exact() {
    // A clock of whole cycles.
    let (code, row) = judged(timed(&[42.0; 5]), timed(&[43.0; 5]), &[]);
    assert_eq!(
        (code, &row["verdict"], &row["test"]),
        (Some(0), &json!("same"), &json!("constant"))
    );
    let (code, row) = judged(timed(&[42.0; 5]), timed(&[90.0; 5]), &[]);
    assert_eq!((code, &row["verdict"]), (Some(1), &json!("worse")));
    // The scatter of a single timing is unknown.
    let (code, row) = judged(timed(&[42.0]), timed(&[420.0]), &[]);
    assert_eq!(
        (code, &row["verdict"], &row["test"]),
        (Some(0), &json!("unclear"), &json!("none"))
    );
    let (code, row) = judged(timed(&[42.0]), exact(&[420.0]), &[]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("unclear")));
}

#[test]
fn each_of_several_runs_is_a_sample() {
    let run = |mean| vec![timed(&rounds(mean))];
    let a = [run(100.0), run(100.5), run(99.5)];
    let slower = [run(110.0), run(110.5), run(109.5)];
    let options = ["--again-a", "2.json", "--again-a", "3.json"];
    let more = ["--again-b", "4.json", "--again-b", "5.json"];
    let options = [&options[..], &more[..], &["--format", "json"]].concat();
    let several = |b: &[Vec<Value>; 3]| {
        let all = [&a[0], &b[0], &a[1], &a[2], &b[1], &b[2]];
        let all = all.map(Vec::as_slice);
        let output = compare(&all, &options);
        (output.status.code(), first_row(&output))
    };
    let (code, row) = several(&slower);
    assert_eq!(
        (code, &row["verdict"], &row["n_a"]),
        (Some(1), &json!("worse"), &json!(3))
    );
    // Rounds that agree prove nothing where the runs do not.
    let (code, row) = several(&[run(90.0), run(125.0), run(115.0)]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("unclear")));
    let output = compare(&[&a[0], &a[1]], &["--again-a", "0.json"]);
    assert_eq!(output.status.code(), Some(2));
    // The same run twice is refused.
    let twice = ["--again-a", "./0.json", "--again-b", "1.json"];
    let output = compare(&[&a[0], &a[1]], &twice);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is given twice for one side"), "{said}");
}

#[test]
fn from_zero_there_is_no_percentage() {
    let output = compare(&[&[exact(&[0.0])], &[exact(&[1.0])]], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("*  from 0*  changed"), "{text}");
    assert!(text.contains("x / w / m (0 to 1)"), "{text}");
    assert_eq!(output.status.code(), Some(0));
    let (code, row) = judged(exact(&[0.0]), exact(&[1.0]), &["--fail-on-changed"]);
    assert_eq!(
        (code, &row["verdict"], &row["gain_percent"]),
        (Some(1), &json!("changed"), &Value::Null)
    );
    let (code, row) = judged(exact(&[0.0]), exact(&[0.0]), &["--fail-on-changed"]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("same")));
    // A change to zero has a percentage.
    let (code, row) = judged(
        of_kind("exact", "higher", &[5.0]),
        of_kind("exact", "higher", &[0.0]),
        &[],
    );
    assert_eq!(
        (code, &row["verdict"], &row["gain_percent"]),
        (Some(1), &json!("worse"), &json!(-100.0))
    );
}

#[test]
fn where_neither_direction_is_better_nothing_is_worse() {
    let size = |samples: &[f64]| of_kind("exact", "neither", samples);
    let options = ["--format", "json"];
    let output = compare(&[&[size(&[7.0])], &[size(&[14.0])]], &options);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let row = &document["rows"][0];
    assert_eq!(
        (&row["verdict"], &row["gain_percent"], &row["better"]),
        (&json!("changed"), &Value::Null, &json!("neither"))
    );
    assert_eq!(document["gmean"], Value::Null);
    // In an older document, lower is better.
    let (code, row) = judged(exact(&[7.0]), size(&[14.0]), &[]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("changed")));
    let (code, row) = judged(exact(&[7.0]), size(&[7.0]), &[]);
    assert_eq!((code, &row["verdict"]), (Some(0), &json!("same")));
}

/// The rows that the subcommands print have the right kind.
#[test]
fn documents_say_how_their_samples_were_made() {
    for (arguments, kind) in [
        (
            &[
                "run",
                "fragmentation",
                "--set",
                "memory=64M",
                "--set",
                "rounds=1",
            ][..],
            "exact",
        ),
        (&["run", "scarce", "--set", "memory=64M"], "timed"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_brickyard"))
            .args(arguments)
            .args(["--format", "json"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert_eq!(first_row(&output)["kind"], kind);
    }
}
