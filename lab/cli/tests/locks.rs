//! `run locks` as a user runs it: simulated, whose tables are the same on every host; on this host,
//! what the policies imply on any machine; and its errors. The expected tables are in
//! `tests/locks/`; `BRICKYARD_BLESS=1` rewrites them.

use std::process::Output;

use serde_json::Value;

use crate::command::{golden, printed, text, with_set};

const COLUMNS: [&str; 5] = [
    "hold",
    "release",
    "ticket",
    "ticket+yield",
    "ticket+yield+own-line",
];

/// Runs the experiment. Words with `=` are parameters.
fn locks(words: &[&str]) -> Output {
    with_set(&[&["run", "locks"], words].concat())
}

/// The same with a quick load on this host.
fn on_host(words: &[&str]) -> Output {
    let quick = ["--on", "host", "--runs", "2", "bursts=16", "memory=16M"];
    locks(&[&quick, words].concat())
}

fn document(out: &Output) -> Value {
    serde_json::from_str(&printed(out)).unwrap()
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
fn a_storm_is_the_same_on_every_host() {
    let storm = ["workload=storm", "cpus=1,4", "events=512", "--runs", "6"];
    let table = printed(&locks(&storm));
    golden("locks/storm.txt", &table);
    // The same, however many runs are done at once.
    let one = locks(&[&storm[..], &["--jobs", "1"]].concat());
    assert_eq!(printed(&one), table);
}

#[test]
fn a_recorded_command_is_the_same_on_every_host() {
    let recorded = [
        "workload=bonnie,dd",
        "cpus=2",
        "events=60",
        "columns=hold,release",
        "--runs",
        "2",
    ];
    golden("locks/recorded.txt", &printed(&locks(&recorded)));
    let csv = locks(&[&recorded[..], &["--format", "csv"]].concat());
    golden("locks/recorded.csv", &printed(&csv));
}

#[test]
fn rows_have_their_samples_and_the_steps_between_them() {
    let words = [
        "workload=storm",
        "cpus=2",
        "events=300",
        "--runs",
        "3",
        "--format",
        "json",
    ];
    let document = document(&locks(&words));
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
fn other_machines_and_designs_can_be_chosen() {
    let words = [
        "--on",
        "xeon-x5355",
        "workload=storm",
        "config=magazine-2013",
        "cpus=3",
        "events=128",
        "columns=ticket",
        "memory=64M",
        "--runs",
        "1",
    ];
    let table = printed(&locks(&words));
    assert!(
        table.starts_with("locks on xeon-x5355, columns=ticket"),
        "{table}"
    );
    let row = "storm cpus-3 events-128 memory-64M";
    assert!(table.contains(row), "{table}");
}

#[test]
fn the_table_of_this_host_has_the_form_of_2007() {
    let table = form(&printed(&on_host(&["threads=1"])));
    let expected = "\
locks on host, bursts=16, memory=16M, threads=1, each column against the one before
hold release ticket ticket+yield ticket+yield+own-line
bursts-128 threads-1 memory-16M time 9 9 9 9 9
deviation 9 9 9 9 9
9 % interval 9 9 9 9 9
speedup - 9 9 9 9
wait-p50 9 9 9 9 9
";
    assert!(table.starts_with(expected), "{table}");
    let end = "
Speedup: mean of the column before / mean; above 9 is better.
9 % interval: mean +- 9 deviation / sqrt(n), as in 9 by Student's t 9 times as wide for 9
No star is possible: with 9 pairs p is at least 9 by Wilcoxon's signed-rank test; take 9 or more.
";
    assert!(table.contains(end), "{table}");
}

#[test]
fn figures_of_this_host_are_plausible() {
    let document = document(&on_host(&["threads=1,2,3", "--format", "json"]));
    let rows = document["rows"].as_array().unwrap();
    // Three numbers of threads, 17 metrics, five columns.
    assert_eq!(rows.len(), 3 * 17 * 5);
    for threads in [1, 2, 3] {
        let workload = format!("bursts-128 threads-{threads} memory-16M");
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
    // Two pairs cannot be significant.
    assert!(steps.iter().all(|step| step["significant"] == false));
}

#[test]
fn bulks_are_the_same_for_every_lock_and_holds_are_not() {
    let document = document(&on_host(&["threads=1", "--format", "json"]));
    let workload = "bursts-128 threads-1 memory-16M";
    let of = |column, metric| samples(&document, column, workload, metric);
    for metric in ["take-pages", "take-pages-sd", "take-order", "give-blocks"] {
        for column in &COLUMNS[1..] {
            assert_eq!(of(column, metric), of("hold", metric), "{column} {metric}");
        }
    }
    let taken = of("hold", "take-pages")[0];
    assert!(taken > 6.0 && taken < 7.0, "{taken} pages a bulk of 7");
    // One block of order 1 per burst, among some 18 bulks of order 0.
    let order = of("hold", "take-order")[0];
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
    let columns = "columns=ticket,ticket+yield,hold";
    let words = ["threads=1", columns, "batch=31", "--format", "json"];
    let document = document(&on_host(&words));
    let steps = &document["steps"].as_array().unwrap()[..2];
    let steps = steps.iter().map(|step| (&step["before"], &step["config"]));
    let steps: Vec<_> = steps
        .map(|(before, now)| (before.as_str().unwrap(), now.as_str().unwrap()))
        .collect();
    assert_eq!(
        steps,
        [("ticket", "ticket+yield"), ("ticket+yield", "hold")]
    );
    // With lists that hold 186 pages a burst of 128 rarely reaches the store.
    let workload = "bursts-128 threads-1 batch-31 memory-16M";
    let taken = samples(&document, "hold", workload, "take-pages");
    assert!(taken[0] >= 1.0 && taken[0] <= 31.0);
}

#[test]
fn misuse_exits_with_2_and_names_the_fix() {
    let simulated: [(&[&str], &str); 17] = [
        (&["workload=quake"], "find, pmake"),
        (&["workload=dd,dd"], "twice"),
        (&["columns=hold,hold"], "twice"),
        (&["columns=spin"], "ticket+yield+own-line"),
        (&["cpus=0"], "at least 1"),
        (&["cpus=257"], "1 to 256"),
        (&["cpus=8,8"], "twice"),
        (&["cpus=8", "cpus=16"], "twice"),
        (&["--on", "cray"], "metatm-2007"),
        (&["config=slob"], "vanilla"),
        (&["--runs", "0"], "at least 1"),
        (&["events=0"], "at least 1"),
        (&["high=3"], "at least as much"),
        (&["memory=1M"], "at least 16M"),
        (&["keep-lines=maybe"], "yes or no"),
        (&["threads=2"], "workload, cpus"),
        (&["--format", "xml"], "json"),
    ];
    let host: [(&[&str], &str); 11] = [
        (&["columns=spin"], "ticket+yield+own-line"),
        (&["threads=0"], "at least 1"),
        (&["batch=0"], "at least 1"),
        (&["burst=0"], "at least 1"),
        (&["high=3"], "at least as much"),
        (&["order=11"], "0 to 10"),
        (&["burst=4096"], "give at least"),
        (&["threads=1000"], "give at least"),
        (&["threads=9223372036854775808"], "at most"),
        (&["compute=1000000000000"], "at most"),
        (&["cpus=8"], "columns, threads"),
    ];
    let simulated = simulated.map(|(words, hint)| (locks(words), words, hint));
    let host = host.map(|(words, hint)| (on_host(words), words, hint));
    for (out, words, hint) in simulated.into_iter().chain(host) {
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}:\n{error}");
        assert!(error.contains(hint), "{words:?}:\n{error}");
        assert!(out.stdout.is_empty());
    }
    let out = locks(&["workload=dd", "--traces", "nowhere"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--traces"));
    let out = on_host(&["--output", "/nonexistent/results.csv"]);
    assert_eq!(out.status.code(), Some(1));
}
