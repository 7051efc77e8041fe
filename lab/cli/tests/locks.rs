//! `bench locks` as a user runs it: its table, its rows, what the policies imply on any machine,
//! and its errors.

use std::process::{Command, Output};

use serde_json::Value;

const COLUMNS: [&str; 5] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
];

fn locks(more: &[&str]) -> Output {
    let quick = [
        "bench",
        "locks",
        "--samples",
        "2",
        "--bursts",
        "16",
        "--memory",
        "16M",
    ];
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(quick)
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The document of a run that must succeed.
fn document(more: &[&str]) -> Value {
    let out = locks(&[&["--format", "json"], more].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The samples of one row.
fn samples(document: &Value, column: &str, workload: &str, metric: &str) -> Vec<f64> {
    let rows = document["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| {
        row["config"] == column && row["workload"] == workload && row["metric"] == metric
    });
    let row = row.unwrap_or_else(|| panic!("no row {column} / {workload} / {metric}"));
    let samples = row["samples"].as_array().unwrap();
    samples
        .iter()
        .map(|sample| sample.as_f64().unwrap())
        .collect()
}

/// The text with each number replaced by a 9, and single spaces.
fn form(table: &str) -> String {
    let mut form = String::new();
    for line in table.lines() {
        let words = line.split_whitespace().map(|word| {
            let number = word.trim_end_matches(['*', '.', ',', ';']).parse::<f64>();
            number.map_or(word, |_| "9")
        });
        form += &words.collect::<Vec<_>>().join(" ");
        form.push('\n');
    }
    form
}

#[test]
fn the_table_has_the_form_of_2007() {
    let out = locks(&["--threads", "1"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let table = form(&text(&out.stdout));
    let expected = "\
locks, each column against the one before
hold release ticket ticket+yield ticket+yield+own-line
bursts-128 threads-1 9 9 9 9 9
deviation 9 9 9 9 9
9 % interval 9 9 9 9 9
speedup - 9 9 9 9
holds 9 9 9 9 9
wait-p50 9 9 9 9 9
wait-p99 9 9 9 9 9
wait-p99.9 9 9 9 9 9
hold-p50 9 9 9 9 9
hold-p99 9 9 9 9 9
hold-p99.9 9 9 9 9 9
taken 9 9 9 9 9
taken-deviation 9 9 9 9 9
taken-order 9 9 9 9 9
taken-order-deviation 9 9 9 9 9
given 9 9 9 9 9
given-deviation 9 9 9 9 9
given-order 9 9 9 9 9
given-order-deviation 9 9 9 9 9
fairness 9 9 9 9 9

Speedup: mean of the column before / mean; above 9 is better.
9 % interval: mean +- 9 deviation / sqrt(n), as in 9 by Student's t 9 times as wide for 9
No star is possible: with 9 pairs p is at least 9 by Wilcoxon's signed-rank test; take 9 or more.
";
    assert!(table.starts_with(expected), "{table}");
}

#[test]
fn rows_have_their_samples_and_the_steps_between_them() {
    let document = document(&["--threads", "3"]);
    assert_eq!(document["experiment"], "locks");
    let rows = document["rows"].as_array().unwrap();
    // Three numbers of threads, 17 metrics, five columns.
    assert_eq!(rows.len(), 3 * 17 * 5);
    for threads in [1, 2, 3] {
        let workload = format!("bursts-128 threads-{threads}");
        for column in COLUMNS {
            let of = |metric| samples(&document, column, &workload, metric);
            assert!(of("time").iter().all(|&us| us > 0.0));
            let least = 1.0 / f64::from(threads);
            // Room for rounding: the index is a quotient.
            let allowed = least - 1e-9..=1.0 + 1e-9;
            assert!(of("fairness").iter().all(|index| allowed.contains(index)));
            for names in [
                ["wait-p50", "wait-p99", "wait-p99.9"],
                ["hold-p50", "hold-p99", "hold-p99.9"],
            ] {
                let [p50, p99, p999] = names.map(of);
                assert!(p50[0] <= p99[0] && p99[0] <= p999[0]);
            }
        }
    }
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3 * 17 * 4);
    assert_eq!(steps[0]["config"], "release");
    assert_eq!(steps[0]["before"], "hold");
    assert_eq!(steps[0]["metric"], "time");
    assert!(steps[0]["speedup"].as_f64().unwrap() > 0.0);
    // Two pairs cannot be significant.
    assert!(steps.iter().all(|step| step["significant"] == false));
    assert!(steps.iter().all(|step| step["p"].as_f64().unwrap() >= 0.5));
}

#[test]
fn bulks_are_the_same_for_every_lock_and_holds_are_not() {
    let document = document(&["--threads", "1"]);
    let of = |column, metric| samples(&document, column, "bursts-128 threads-1", metric);
    for metric in ["taken", "taken-deviation", "taken-order", "given"] {
        for column in &COLUMNS[1..] {
            assert_eq!(of(column, metric), of("hold", metric), "{column} {metric}");
        }
    }
    let taken = of("hold", "taken")[0];
    assert!(taken > 6.0 && taken < 7.0, "{taken} pages a bulk of 7");
    // One block of order 1 per burst, among some 18 bulks of order 0.
    let order = of("hold", "taken-order")[0];
    assert!(order > 0.03 && order < 0.1, "{order}");
    // With `release` each page allocated and freed has a hold of its own; otherwise one hold serves
    // seven. Nobody waits, so no lock is yielded.
    let (hold, release) = (of("hold", "holds")[0], of("release", "holds")[0]);
    assert!(
        hold < 0.4 && release > 1.0 && release < 2.0,
        "{hold} {release}"
    );
    for column in &COLUMNS[2..] {
        assert_eq!(of(column, "holds"), of("hold", "holds"), "{column}");
    }
}

#[test]
fn columns_are_the_named_ones_in_their_order() {
    let columns = "ticket,ticket+yield,hold";
    let document = document(&["--threads", "1", "--columns", columns, "--batch", "31"]);
    let before: Vec<_> = document["steps"].as_array().unwrap()[..2]
        .iter()
        .map(|step| {
            (
                step["before"].as_str().unwrap(),
                step["config"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        before,
        [("ticket", "ticket+yield"), ("ticket+yield", "hold")]
    );
    // With lists that hold 186 pages a burst of 128 rarely reaches the store.
    let taken = samples(&document, "hold", "bursts-128 threads-1 batch-31", "taken");
    assert!(taken[0] >= 1.0 && taken[0] <= 31.0);
}

#[test]
fn csv_has_the_steps_in_columns() {
    let csv = text(&locks(&["--threads", "1", "--format", "csv"]).stdout);
    assert!(csv.starts_with(
        "config,workload,metric,unit,better,n,mean,stddev,ci95,median,min,max,last,interval95,before,speedup,p,pairs,significant\n"
    ));
    assert!(csv.contains("\nrelease,bursts-128 threads-1,time,us/burst,lower,2,"));
    assert_eq!(csv.lines().count(), 1 + 17 * 5);
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 11] = [
        (&["--columns", "hold,hold"], "twice"),
        (&["--columns", "spin"], "ticket+yield+own-line"),
        (&["--threads", "0"], "at least 1"),
        (&["--batch", "0"], "at least 1"),
        (&["--burst", "0"], "at least 1"),
        (&["--high", "3"], "at least as much"),
        (&["--order", "11"], "0..=10"),
        (&["--burst", "4096"], "give at least"),
        (&["--threads", "1000"], "give at least"),
        (&["--compute", "1000000000000"], "at most"),
        (&["--format", "xml"], "json"),
    ];
    for (arguments, hint) in cases {
        let out = locks(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
        assert!(out.stdout.is_empty());
    }
    let out = locks(&["--output", "/nonexistent/results.csv"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn help_has_every_option() {
    let help = text(&locks(&["--help"]).stdout);
    for option in [
        "--columns",
        "--threads",
        "--batch",
        "--high",
        "--burst",
        "--order",
        "--compute",
        "--bursts",
        "--memory",
        "--samples",
        "--seed",
        "--format",
        "--output",
    ] {
        assert!(help.contains(option), "{option} is missing from:\n{help}");
    }
}
