//! The binary as a user runs it: what it prints, in which format, and its exit codes.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use brickyard_designs::classics::Configuration;
use serde_json::Value;

use crate::command::{brickyard, text};

/// A run that ends at once.
const QUICK: [&str; 12] = [
    "run",
    "pagealloc",
    "--runs",
    "2",
    "--set",
    "sample-us=20",
    "--set",
    "memory=64M",
    "--set",
    "orders=0,9",
    "--set",
    "max-batch=4",
];

fn quick(more: &[&str]) -> Output {
    brickyard(&[&QUICK, more].concat())
}

/// A table with each number replaced by a 9, to compare its layout.
fn form(table: &str) -> String {
    let mut form = String::new();
    let mut in_number = false;
    for c in table.chars() {
        let number = c.is_ascii_digit();
        if number && !in_number {
            form.push('9');
        } else if !number {
            form.push(c);
        }
        in_number = number;
    }
    form
}

#[test]
fn help_lists_every_command_and_option() {
    let help = brickyard(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    for command in brickyard_cli::command().get_subcommands() {
        let line = format!("\n  {} ", command.get_name());
        let lines = help.matches(&line).count();
        assert_eq!(
            lines,
            usize::from(!command.is_hide_set()),
            "{line} in:\n{help}"
        );
    }
    let help = text(&brickyard(&["help", "pagealloc"]).stdout);
    for parameter in [
        "config",
        "orders",
        "max-batch",
        "threads",
        "sample-us",
        "memory",
        "mobility",
        "free",
        "api",
        "fill",
        "level",
        "slots",
        "lock",
        "bulk",
        "masking",
    ] {
        let line = format!("\n  {parameter} = ");
        assert!(help.contains(&line), "{parameter} is missing from:\n{help}");
    }
    assert!(help.contains("fetch-add") && help.contains("array-stack"));
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_fix() {
    let cases: [(&[&str], &str); 14] = [
        (&["run", "pagealloc", "--set", "config=nonesuch"], "vanilla"),
        (
            &["run", "pagealloc", "--set", "config=nonesuch"],
            "fetch-add, array-stack",
        ),
        (&["run", "pagealloc", "--set", "free=never"], "remote"),
        (&["run", "pagealloc", "--set", "api=double"], "bulk"),
        (&["run", "pagealloc", "--set", "level=cpu"], "zone"),
        (&["run", "pagealloc", "--set", "fill=100"], "0 to 99"),
        (&["run", "pagealloc", "--set", "rows=some"], "all or goals"),
        (
            &["run", "pagealloc", "--set", "peers=yes"],
            "in the folder `peers`",
        ),
        (
            &["run", "pagealloc", "--set", "measure=heat"],
            "time or instructions",
        ),
        (
            &[
                "run",
                "pagealloc",
                "--set",
                "measure=instructions",
                "--set",
                "memory=1M",
            ],
            "give at least 256M",
        ),
        (&["run", "pagealloc", "--set", "orders=4-1"], "write 1-4"),
        (&["run", "pagealloc", "--set", "memory=much"], "512M"),
        (&["run", "pagealloc", "--format", "xml"], "json"),
        (&["nonesuch"], "--help"),
    ];
    for (arguments, hint) in cases {
        let out = brickyard(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn options_that_do_not_fit_together_end_with_2_and_name_the_fix() {
    let cases: [(&[&str], &str); 9] = [
        (
            &["--set", "level=zone", "--set", "lock=test-and-set"],
            "leave one of the two out",
        ),
        (
            &["--set", "memory=1M", "--set", "max-batch=16384"],
            "give at least",
        ),
        (&["--set", "api=bulk", "--set", "orders=9"], "add order 0"),
        (
            &["--set", "free=remote", "--set", "threads=3"],
            "even number of threads",
        ),
        (&["--set", "fill=99", "--set", "orders=9"], "a lower fill"),
        (&["--set", "fill=50,50"], "twice"),
        (&["--set", "config=vanilla,vanilla"], "twice"),
        (&["--set", "threads=0"], "at least 1"),
        (&["--set", "threads=1,1"], "twice"),
    ];
    for (arguments, hint) in cases {
        let out = quick_with(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        let error = text(&out.stderr);
        assert!(error.contains(hint), "{arguments:?} says:\n{error}");
    }
}

#[test]
fn what_cannot_be_done_ends_with_1_before_anything_is_measured() {
    let out = quick_with(&["--output", "/nonexistent/results.csv"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("cannot write"),
        "{}",
        text(&out.stderr)
    );
    assert!(out.stdout.is_empty());
}

/// The quick run, with these options replaced or added.
fn quick_with(arguments: &[&str]) -> Output {
    let mut all = QUICK.to_vec();
    let name = |value: &str| value.split_once('=').map(|(name, _)| name.to_owned());
    for pair in arguments.chunks(2) {
        let same = |value: &&str| match pair[0] {
            "--set" => name(value) == name(pair[1]),
            _ => false,
        };
        match all.iter().position(same) {
            Some(at) => all[at] = pair[1],
            None => all.extend(pair.iter().copied()),
        }
    }
    brickyard(&all)
}

#[test]
fn json_has_the_rows_and_the_samples_behind_them() {
    let out = quick(&[
        "--format",
        "json",
        "--set",
        "config=list-2007,magazine-2013",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(
        results["experiment"]
            .as_str()
            .unwrap()
            .starts_with("pagealloc on host")
    );
    assert!(results["host"]["kernel"].is_string());
    let rows = results["rows"].as_array().unwrap();
    // Two orders, three batches each, one and two threads, three metrics, two configurations.
    assert_eq!(rows.len(), 2 * 3 * 2 * 3 * 2);
    for row in rows {
        assert_eq!(row["unit"], "ns/page");
        assert_eq!(row["better"], "lower");
        assert_eq!(row["n"], 2);
        let samples: Vec<f64> = row["samples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|&ns| ns > 0.0), "{row}");
        let mean = row["mean"].as_f64().unwrap();
        assert!((mean - (samples[0] + samples[1]) / 2.0).abs() < 1e-6 * mean);
        assert!(row["stddev"].is_number() && row["ci95"].is_number());
    }
    let workloads: Vec<&str> = rows
        .iter()
        .map(|row| row["workload"].as_str().unwrap())
        .collect();
    assert!(workloads.contains(&"order-0 batch-4"));
    assert!(workloads.contains(&"order-9 batch-1 threads-2"));
}

#[test]
fn alloc_and_free_add_up_to_total() {
    let out = quick(&[
        "--format",
        "json",
        "--set",
        "config=vanilla",
        "--set",
        "threads=1",
    ]);
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let mean = |workload: &str, metric: &str| {
        let row = rows
            .iter()
            .find(|row| row["workload"] == workload && row["metric"] == metric);
        row.unwrap()["mean"].as_f64().unwrap()
    };
    for batch in [1, 2, 4] {
        let workload = format!("order-0 batch-{batch}");
        let parts = mean(&workload, "alloc") + mean(&workload, "free");
        let total = mean(&workload, "total");
        assert!(
            (parts - total).abs() < 1e-6 * total,
            "{workload}: {parts} and {total}"
        );
    }
}

#[test]
fn workloads_say_what_is_special_about_them() {
    let out = quick(&[
        "--format",
        "csv",
        "--set",
        "config=vanilla",
        "--set",
        "slots=shared",
        "--set",
        "free=random",
        "--set",
        "threads=2",
        "--set",
        "lock=test-and-set-own-line",
        "--set",
        "bulk=yield",
        "--set",
        "mobility=movable",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let csv = text(&out.stdout);
    assert!(csv.starts_with(
        "config,workload,metric,unit,better,n,mean,stddev,ci95,median,min,max,last\n"
    ));
    assert!(csv.contains(
        "vanilla,order-0 batch-4 threads-2 shared random-free mobility-movable \
         lock-test-and-set-own-line bulk-yield,total,ns/page,lower,2,"
    ));
}

#[test]
fn the_table_has_the_form_of_2013() {
    let mut arguments = vec![
        "--set",
        "orders=0",
        "--set",
        "threads=1",
        "--set",
        "config=list-2007,magazine-2013",
    ];
    arguments.push("--no-deviation");
    let out = quick_with(&arguments);
    let table = text(&out.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("pagealloc on host, config="));
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["list-2007", "magazine-2013"]
    );
    let heads: Vec<&str> = lines[2..11].iter().map(|line| line[..21].trim()).collect();
    assert_eq!(heads[0], "order-0 batch-1 alloc");
    assert_eq!(heads[8], "total");
    // The gain of the baseline is 0.
    assert!(form(lines[2]).contains("9.9 (   9.9%)"), "{}", lines[2]);
}

#[test]
fn results_go_to_a_file_when_asked() {
    let path = std::env::temp_dir().join(format!("brickyard-cli-{}.json", std::process::id()));
    let out = quick(&[
        "--format",
        "json",
        "--set",
        "config=vanilla",
        "--output",
        path.to_str().unwrap(),
    ]);
    assert_eq!(out.status.code(), Some(0));
    assert!(out.stdout.is_empty());
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        written["experiment"]
            .as_str()
            .unwrap()
            .starts_with("pagealloc on host")
    );
}

#[test]
fn results_that_cannot_be_written_are_printed() {
    // A device that is always full.
    let out = quick(&[
        "--format",
        "csv",
        "--set",
        "config=vanilla",
        "--output",
        "/dev/full",
    ]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("/dev/full"),
        "{}",
        text(&out.stderr)
    );
    assert!(
        text(&out.stdout).starts_with("config,workload"),
        "the results are lost"
    );
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(QUICK)
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

/// `timeout -s INT` sends its signal twice, at nearly the same time.
#[test]
fn two_signals_at_once_are_one_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("counts.txt");
    let child = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(["explore", "--seeds", "1000000", "--output"])
        .arg(&counts)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for wait in [1500, 20] {
        std::thread::sleep(core::time::Duration::from_millis(wait));
        let id = child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status();
        assert!(killed.unwrap().success());
    }
    let out = child.wait_with_output().unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{error}");
    assert!(error.contains("interrupted after"), "{error}");
    assert!(counts.exists());
}

/// What a run says that is interrupted after `seconds`.
fn interrupted_after(seconds: u64, run: &str) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .args(run.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(core::time::Duration::from_secs(seconds));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_run_keeps_the_rounds_that_are_done() {
    // The run may have to wait for other tests that time something, however long they take.
    let run = "run pagealloc --runs 65536 --format json --set sample-us=20 --set memory=64M \
               --set orders=0 --set max-batch=1 --set threads=1 --set config=vanilla";
    let out = (0..8)
        .map(|tries| interrupted_after(1 << tries, run))
        .find(|out| !text(&out.stderr).contains("before the first run was done"))
        .unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{error}");
    assert!(error.contains("interrupted"), "{error}");
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(results["rows"][0]["n"].as_u64().unwrap() > 0);
}

/// A run that is not timed has no rows of what was done in part.
#[test]
fn what_was_interrupted_in_the_middle_is_no_result() {
    for run in [
        "run gigabytes --runs 1 --set memory=8G --set swings=1000 --set config=brickyard",
        "run fragmentation --runs 1 --set rounds=1000000 --set config=brickyard",
    ] {
        let out = interrupted_after(1, run);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{run}: {error}");
        assert!(error.contains("before the first run was done"), "{error}");
        assert_eq!(text(&out.stdout), "", "{run}");
    }
}

/// The rows of the JSON of a run that must succeed.
fn rows(out: &Output) -> Vec<Value> {
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let results: Value = serde_json::from_slice(&out.stdout).unwrap();
    results["rows"].as_array().unwrap().clone()
}

/// The mean of one row.
fn mean(rows: &[Value], config: &str, workload: &str, metric: &str) -> f64 {
    let row = rows.iter().find(|row| {
        row["config"] == config && row["workload"] == workload && row["metric"] == metric
    });
    let row = row.unwrap_or_else(|| panic!("no row {config} / {workload} / {metric}"));
    row["mean"].as_f64().unwrap()
}

fn workloads_of(rows: &[Value], config: &str) -> Vec<String> {
    let of = rows
        .iter()
        .filter(|row| row["config"] == config && row["metric"] == "total");
    of.map(|row| row["workload"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn yardsticks_are_in_the_same_table() {
    let config = "list-2007,fetch-add,array-stack";
    let rows = rows(&quick(&[
        "--format",
        "json",
        "--set",
        &format!("config={config}"),
    ]));
    for name in config.split(',') {
        assert_eq!(workloads_of(&rows, name), workloads_of(&rows, "list-2007"));
        assert!(mean(&rows, name, "order-0 batch-4", "total") > 0.0);
    }
}

#[test]
fn options_with_several_values_are_combined() {
    let rows = rows(&quick_with(&[
        "--format",
        "json",
        "--set",
        "config=list-2007",
        "--set",
        "orders=0",
        "--set",
        "threads=1,2",
        "--set",
        "api=single,bulk",
        "--set",
        "free=same,random,remote",
        "--set",
        "fill=0,50",
        "--set",
        "level=node,zone",
        "--set",
        "slots=exclusive,shared",
        "--set",
        "max-batch=2",
    ]));
    let workloads = workloads_of(&rows, "list-2007");
    // Two batches; remote frees need pairs of threads, so they have rows with two threads only.
    assert_eq!(workloads.len(), 2 * (2 * 3 + 2 * 2) * 2 * 2 * 2);
    for workload in [
        "order-0 batch-1",
        "order-0 batch-2 threads-2 remote-free",
        "order-0 batch-2 threads-2 shared remote-free api-bulk fill-50 level-zone",
        "order-0 batch-1 random-free api-bulk level-zone",
    ] {
        assert!(workloads.contains(&workload.to_owned()), "{workload}");
    }
}

#[test]
fn remote_frees_cost_what_both_sides_do() {
    let rows = rows(&quick_with(&[
        "--format",
        "json",
        "--set",
        "config=vanilla,magazine-2013,fetch-add,array-stack",
        "--set",
        "orders=0,9",
        "--set",
        "threads=2,4",
        "--set",
        "free=remote",
        "--set",
        "memory=256M",
    ]));
    // Each thread has a stack of its own, so there is nothing to measure.
    assert_eq!(workloads_of(&rows, "array-stack"), [""; 0]);
    for config in ["vanilla", "magazine-2013"] {
        let workload = "order-0 batch-4 threads-4 remote-free";
        let [alloc, free, total] =
            ["alloc", "free", "total"].map(|metric| mean(&rows, config, workload, metric));
        assert!(alloc > 0.0 && free > 0.0, "{config}: {alloc} and {free}");
        assert!((alloc + free - total).abs() < 1e-6 * total);
        assert!(
            workloads_of(&rows, config).contains(&"order-9 batch-1 threads-2 remote-free".into())
        );
    }
}

#[test]
fn what_does_not_fit_into_the_free_memory_is_left_out_with_a_warning() {
    // 64 MiB with 1 % free are 163 pages.
    let out = quick_with(&[
        "--format",
        "json",
        "--set",
        "config=list-2007",
        "--set",
        "threads=1",
        "--set",
        "fill=99",
        "--set",
        "orders=0",
        "--set",
        "max-batch=1024",
    ]);
    let error = text(&out.stderr);
    assert!(error.contains("fill 99 leaves 652K"), "{error}");
    let workloads = workloads_of(&rows(&out), "list-2007");
    assert_eq!(workloads.len(), 7, "{workloads:?}");
    assert_eq!(workloads[6], "order-0 batch-64 fill-99");

    // Where half of the pages are taken at random, single pages are free, but no huge block.
    let out = quick_with(&[
        "--format",
        "json",
        "--set",
        "config=list-2007",
        "--set",
        "threads=1",
        "--set",
        "fill=50",
    ]);
    let error = text(&out.stderr);
    assert!(
        error.contains("list-2007 had too few free blocks for order-9 batch-1 fill-50"),
        "{error}"
    );
    assert_eq!(workloads_of(&rows(&out), "list-2007").len(), 3);
}

#[test]
fn each_goal_has_its_rows() {
    let out = brickyard(&[
        "run",
        "pagealloc",
        "--set",
        "rows=goals",
        "--runs",
        "1",
        "--set",
        "sample-us=1",
        "--format",
        "json",
        "--set",
        "config=list-2007,fetch-add",
    ]);
    let workloads = workloads_of(&rows(&out), "list-2007");
    for goal in [
        "order-0 batch-16384 random-free",
        "order-0 batch-64 api-bulk",
        "order-0 batch-64 threads-2 remote-free",
        "order-0 batch-64 fill-99",
        "order-0 batch-64 shared",
        "order-9 batch-8",
    ] {
        assert!(workloads.contains(&goal.to_owned()), "{goal} is missing");
    }
}

#[test]
fn configs_are_listed_in_every_format() {
    let table = text(&brickyard(&["help", "designs"]).stdout);
    for name in Configuration::ALL.map(Configuration::name) {
        assert!(table.contains(name), "{name} is missing from:\n{table}");
    }
    let json: Value =
        serde_json::from_slice(&brickyard(&["help", "designs", "--format", "json"]).stdout)
            .unwrap();
    assert_eq!(json.as_array().unwrap().len(), Configuration::ALL.len());
    let csv = text(&brickyard(&["help", "designs", "--format", "csv"]).stdout);
    assert_eq!(csv.lines().count(), Configuration::ALL.len() + 1);
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let out = brickyard(&["help", "completions", shell]);
        assert_eq!(out.status.code(), Some(0));
        assert!(text(&out.stdout).contains("fidelity"), "{shell}");
    }
}

#[test]
fn manual_pages_are_those_of_help() {
    let page = brickyard(&["help", "man", "replay"]);
    assert_eq!(page.status.code(), Some(0));
    let page = text(&page.stdout);
    assert!(page.contains("brickyard\\-replay"), "{page}");
    assert!(page.contains("slow\\-path"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    let all = brickyard(&["help", "man", "--output", path.to_str().unwrap()]);
    assert_eq!(all.status.code(), Some(0), "{}", text(&all.stderr));
    assert!(path.join("brickyard.1").exists());
    assert!(path.join("brickyard-explore.1").exists());
    let unknown = brickyard(&["help", "man", "help", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there are designs"));
}

#[test]
fn old_names_of_commands_say_the_new_one() {
    for (old, new) in [
        ("bench locks --threads 2", "`brickyard run locks --on host`"),
        ("simulate locks", "`brickyard run locks`"),
        ("simulate storm", "`brickyard run storm`"),
        ("bench pft --threads 1", "`brickyard run pft --on host`"),
        ("bench scarce", "`brickyard run scarce`"),
        ("simulate --help", "`brickyard explore`"),
        ("help antifrag", "`brickyard run mobility`"),
        ("bench pagealloc --goals", "`brickyard run pagealloc`"),
    ] {
        let words: Vec<&str> = old.split(' ').collect();
        let output = brickyard(&words);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{old}: {why}");
        assert!(why.contains(new), "{old}: {why}");
    }
}

#[test]
fn help_has_the_commands_and_the_experiments() {
    let list = text(&brickyard(&["run"]).stdout);
    assert!(
        list.contains("locks") && list.contains("brickyard help NAME"),
        "{list}"
    );
    let locks = text(&brickyard(&["help", "locks"]).stdout);
    for part in [
        "(--on host)",
        "cpus = 8,16,32",
        "bursts = 1000",
        "--set PARAMETER=VALUE",
    ] {
        assert!(locks.contains(part), "{part} is missing from:\n{locks}");
    }
    let replay = text(&brickyard(&["help", "replay"]).stdout);
    assert!(replay.contains("Usage: brickyard replay"), "{replay}");
    let unknown = brickyard(&["help", "quake"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("snapshot"));
}

#[test]
fn more_memory_than_a_zone_has_is_refused_with_the_limit() {
    for command in [
        &["run", "pagealloc", "--set", "memory=16T"][..],
        &["replay", "no-such-trace", "--memory", "16T"],
    ] {
        let output = brickyard(command);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {why}");
        assert!(
            why.contains("one zone has at most 4294967294 frames") && why.contains("16383G"),
            "{command:?}: {why}"
        );
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn instructions_of_a_page_are_counted() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return;
    }
    let csv = text(
        &brickyard(&[
            "run",
            "pagealloc",
            "--set",
            "measure=instructions",
            "--set",
            "config=fetch-add,brickyard",
            "--set",
            "level=zone",
            "--set",
            "max-batch=64",
            "--format",
            "csv",
        ])
        .stdout,
    );
    let mean = |of: &str| -> f64 {
        let line = csv.lines().find(|line| line.starts_with(of));
        let line = line.unwrap_or_else(|| panic!("no {of} in:\n{csv}"));
        line.split(',').nth(6).unwrap().parse().unwrap()
    };
    // The yardstick's allocation is a few instructions, some hundred if they are not optimised;
    // ours is more.
    let yardstick = mean("fetch-add,order-0 batch-64 level-zone,alloc,instructions,lower,1,");
    assert!((1.0..=200.0).contains(&yardstick), "{csv}");
    assert!(
        mean("brickyard,order-0 batch-64 level-zone,alloc,") > yardstick,
        "{csv}"
    );
    let sides = ["alloc", "free"]
        .map(|side| mean(&format!("brickyard,order-0 batch-1 level-zone,{side},")));
    let pair = mean("brickyard,order-0 batch-1 level-zone,pair,");
    assert_eq!(sides.iter().sum::<f64>(), pair, "{csv}");
}

#[test]
fn commands_that_are_elsewhere_say_what_to_run() {
    for (command, instead) in [
        (
            &["bench", "programs", "--quick"][..],
            "brickyard-heap programs",
        ),
        (&["bench", "latency"], "brickyard-heap latency"),
        (
            &["bench", "slab", "--config", "system"],
            "brickyard-heap slab",
        ),
        (&["heap", "profile", "a.heap"], "pprof"),
        (&["heap", "4711"], "pprof"),
    ] {
        let out = brickyard(command);
        let why = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command:?}: {why}");
        assert!(why.contains(instead), "{command:?}: {why}");
    }
}
