//! `brickyard compare` as a user and a CI job run it: what it prints, and its exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::text;

/// Documents in a folder in which the command runs, so that the paths that it prints are the same
/// everywhere.
struct Folder(TempDir);

impl Folder {
    /// A folder with `a.json` and `b.json`.
    fn of(a: &Value, b: &Value) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("a.json", &a.to_string());
        folder.write("b.json", &b.to_string());
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs `brickyard compare`.
    fn run(&self, arguments: &[&str]) -> Output {
        compare(self.0.path(), arguments)
    }

    /// Runs it on `a.json` and `b.json`.
    fn both(&self, options: &[&str]) -> Output {
        self.run(&[&["a.json", "b.json"], options].concat())
    }
}

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brickyard"))
        .current_dir(folder)
        .arg("compare")
        .args(arguments)
        .output()
        .unwrap()
}

/// The exit code, and what was printed to standard output and standard error.
fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output.status.code(), out, err)
}

/// A document of these rows.
fn document(rows: Vec<Value>) -> Value {
    let host = json!({"kernel": "6.18.2", "cpu": "Some CPU", "cpus": 2, "memory_bytes": 8_589_934_592_u64});
    json!({"experiment": "demo", "host": host, "rows": rows})
}

/// A row where lower is better.
fn time(config: &str, workload: &str, samples: &[f64]) -> Value {
    json!({"config": config, "workload": workload, "metric": "time", "unit": "ns", "better": "lower", "samples": samples})
}

/// A row where higher is better.
fn rate(config: &str, workload: &str, samples: &[f64]) -> Value {
    json!({"config": config, "workload": workload, "metric": "rate", "unit": "ops/s", "better": "higher", "samples": samples})
}

/// Eight samples around a mean, one per mille of it apart.
fn round(mean: f64) -> Vec<f64> {
    let off = [-4.0, 3.0, -2.0, 1.0, 0.0, 2.0, -1.0, 1.0];
    off.iter().map(|off| mean + mean * off / 1000.0).collect()
}

/// A baseline with every kind of row, and a document to compare with it.
fn every_kind() -> [Value; 2] {
    let a = vec![
        time("x", "slower", &round(100.0)),
        time("x", "faster", &round(100.0)),
        time("x", "alike", &round(0.123)),
        time("x", "a little slower", &round(100.0)),
        time("x", "noisy", &[70.0, 130.0, 95.0, 105.0]),
        rate("x", "exact", &[500.0]),
        rate("x", "exact and alike", &[7.0, 7.0]),
        rate("x", "never got that far", &[]),
        rate("x", "gone", &[1.0]),
    ];
    let b = vec![
        rate("x", "new", &[1.0]),
        time("x", "slower", &round(110.0)),
        time("x", "faster", &round(80.0)),
        time("x", "alike", &round(0.123)),
        time("x", "a little slower", &round(101.0)),
        time("x", "noisy", &[75.0, 140.0, 99.0, 110.0]),
        rate("x", "exact", &[505.0]),
        rate("x", "exact and alike", &[7.0, 7.0, 7.0]),
        rate("x", "never got that far", &[3.0]),
    ];
    [document(a), document(b)]
}

const TABLE: &str = "\
demo
A: a.json (baseline)
B: b.json

                               unit              A                 B (gain)
x / slower / time              ns           100.00        110.00 * -10.00%*  worse
x / faster / time              ns           100.00         80.00 *  20.00%*  better
x / alike / time               ns           0.1230        0.1230 (   0.00%)
x / a little slower / time     ns           100.00        101.00 *  -1.00%*
x / noisy / time               ns           100.00        106.00 (  -6.00%)  unclear
x / exact / rate               ops/s        500.00        505.00 *   1.00%*
x / exact and alike / rate     ops/s         7.000         7.000 (   0.00%)
x / never got that far / rate  ops/s           n/a         3.000 (     n/a)  unclear
Gmean of B / A                                1.00          0.99 (   0.99%)

8 rows: 1 worse, 1 better, 0 changed, 4 same, 2 unclear.
Means; positive gains are better. Stars: the sides differ: exact rows (the same work on both sides, or nothing varies) by any amount, others by Welch's test, p < 0.05 after Holm's correction for 5 tests.
worse, better: the difference is proven and more than 2 %. unclear: a loss of more than 2 % is neither proven nor ruled out.
Gmean: of 7 rows, lower is better; for metrics where higher is better, A / B is used.
Only in A (1): x / gone / rate.
Only in B (1): x / new / rate.
1 of 8 rows differ, and one side has a single sample, which is taken as exact, like those of a replay; a single timing looks the same. If they are timings, take more samples.
In 2 of 8 rows a loss above the threshold is neither proven nor ruled out (95 % interval of the gain): x / never got that far / rate (0 and 1 samples), x / noisy / time (-50.9 % to +38.9 %). Run again on a quiet machine, or take more samples.
";

#[test]
fn the_table_is_that_of_mmtests_with_a_verdict() {
    let [a, b] = every_kind();
    let (code, out, err) = outcome(&Folder::of(&a, &b).both(&[]));
    assert_eq!(out, TABLE);
    assert_eq!(
        err,
        "brickyard: 1 of 8 rows got worse by more than 2 %: x / slower / time (-10.00 %)\n"
    );
    assert_eq!(code, Some(1));
}

const STATISTICS: &str = "                               unit              A                 B (gain)       B / A, 95 %      p
x / slower / time              ns           100.00        110.00 * -10.00%*  1.0973 to 1.1027  1e-19  worse
x / faster / time              ns           100.00         80.00 *  20.00%*  0.7981 to 0.8019  9e-24  better
x / alike / time               ns           0.1230        0.1230 (   0.00%)  0.9976 to 1.0024  1.000
x / a little slower / time     ns           100.00        101.00 *  -1.00%*  1.0075 to 1.0125   1e-6
x / noisy / time               ns           100.00        106.00 (  -6.00%)  0.6779 to 1.6555  1.000  unclear
x / exact / rate               ops/s        500.00        505.00 *   1.00%*               n/a  exact
x / exact and alike / rate     ops/s         7.000         7.000 (   0.00%)  1.0000 to 1.0000  exact
x / never got that far / rate  ops/s           n/a         3.000 (     n/a)               n/a    n/a  unclear
Gmean of B / A                                1.00          0.99 (   0.99%)
";

#[test]
fn statistics_are_shown_when_asked_for() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    let (_, out, _) = outcome(&folder.both(&["--statistics", "--only", "e"]));
    let table: Vec<&str> = out.lines().skip(4).take(10).collect();
    assert_eq!(table.join("\n") + "\n", STATISTICS);
    // The same documents give the same output.
    let again = folder.both(&["--statistics", "--only", "e"]);
    assert_eq!(text(&again.stdout), out);
}

#[test]
fn json_and_csv_have_every_figure_of_a_row() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    let (code, out, _) = outcome(&folder.both(&["--format", "json"]));
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(&out).unwrap();
    let row = &json["rows"][0];
    assert_eq!(
        (&row["workload"], &row["verdict"]),
        (&json!("slower"), &json!("worse"))
    );
    assert!((row["gain_percent"].as_f64().unwrap() + 10.0).abs() < 1e-9);
    let figure = |name: &str| row[name].as_f64().unwrap();
    assert!((figure("ratio") - 1.1).abs() < 1e-9);
    assert!(figure("ratio_low") < 1.1 && figure("ratio_high") > 1.1);
    assert_eq!(row["ratio_by"], "t of log ratios");
    assert_eq!(row["test"], "welch");
    assert!(figure("p_rank_sum") < 0.001);
    assert!(figure("p") < figure("p_holm") && figure("p_holm") < 1e-6);
    let counts = json!({"better": 1, "worse": 1, "changed": 0, "same": 4, "unclear": 2});
    assert_eq!(json["counts"], counts);
    assert_eq!(json["tests"], 5);
    assert_eq!(json["only_in_a"], json!(["x / gone / rate"]));
    assert_eq!(json["only_in_b"], json!(["x / new / rate"]));
    assert_eq!(json["a"]["host"]["cpus"], 2);
    assert_eq!(json["rows"].as_array().unwrap().len(), 8);

    let (code, out, err) = outcome(&folder.both(&["--format", "csv"]));
    assert_eq!(code, Some(1));
    assert!(err.contains("Only in A (1): x / gone / rate."), "{err}");
    let mut lines = out.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let object = row.as_object().unwrap();
    assert_eq!(heads.len(), object.len());
    for (head, field) in heads.iter().zip(lines.next().unwrap().split(',')) {
        let expected = match &object[*head] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let number = |text: &str| text.parse::<f64>().ok();
        let same = expected == field || number(&expected).is_some_and(|n| Some(n) == number(field));
        assert!(same, "{head}: {expected} in JSON, {field} in CSV");
    }
    assert_eq!(lines.count(), 7);
}

#[test]
fn the_same_document_twice_is_no_change() {
    let [a, _] = every_kind();
    let folder = Folder::of(&a, &a);
    let (code, out, err) = outcome(&folder.both(&["--threshold", "0"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(!out.contains('*') && !out.contains("Only in"), "{out}");
}

#[test]
fn an_interrupted_run_is_named() {
    let whole = document(vec![time("one", "work", &round(10.0))]);
    let mut part = whole.clone();
    part["interrupted"] = json!(true);
    let (code, _, said) = outcome(&Folder::of(&whole, &part).both(&[]));
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("b.json is of a run that was interrupted"),
        "{said}"
    );
    assert!(!said.contains("a.json"), "{said}");
}

#[test]
fn the_very_same_samples_are_the_same_however_they_scatter() {
    let document = document(vec![time("x", "wild", &[1.0, 50.0, 2000.0])]);
    let folder = Folder::of(&document, &document);
    let (code, out, _) = outcome(&folder.both(&[]));
    assert_eq!(code, Some(0));
    assert!(
        !out.contains("x / wild / time (") && out.contains("1 same, 0 unclear"),
        "{out}"
    );
}

#[test]
fn missing_rows_can_be_a_failure() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    let (code, out, err) = outcome(&folder.both(&["--complete"]));
    assert_eq!((code, out.as_str()), (Some(2), TABLE));
    assert!(
        err.contains("lacks rows of the baseline (1): x / gone / rate"),
        "{err}"
    );
    assert!(err.contains("1 of 8 rows got worse"), "{err}");
    // Rows that `--only` excludes are not missing, and more rows in B do no harm.
    let (code, _, err) = outcome(&folder.both(&["--complete", "--only", "alike"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (code, ..) = outcome(&folder.both(&["--complete", "--only", "faster", "--only", "new"]));
    assert_eq!(code, Some(0));
}

#[test]
fn the_threshold_and_the_level_decide() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    let code = |options: &[&str]| folder.both(options).status.code();
    assert_eq!(code(&["--threshold", "10.5"]), Some(0));
    assert_eq!(code(&["--threshold", "9.5"]), Some(1));
    assert_eq!(code(&["--alpha", "1e-30"]), Some(0));
    // Below the default threshold, but proven.
    let little = ["--only", "a little"];
    assert_eq!(code(&little), Some(0));
    assert_eq!(
        code(&[&little[..], &["--threshold", "0.5"]].concat()),
        Some(1)
    );
    // Exact rows need no test; any difference counts.
    let (exact, back) = (Folder::of(&b, &a), ["--only", "exact"]);
    assert_eq!(exact.both(&back).status.code(), Some(0));
    let strict = exact.both(&[&back[..], &["--threshold", "0"]].concat());
    assert_eq!(strict.status.code(), Some(1));
}

#[test]
fn many_tests_are_corrected_for() {
    // One row of forty differs at a p of about 0.01, which chance alone would explain.
    let samples = |shift: f64| [9.0, 10.0, 11.0, 10.5, 9.5, 10.0].map(|sample| sample + shift);
    let rows = |shift: f64| {
        let others = (0..39).map(|row| time("x", &format!("row {row}"), &samples(0.0)));
        let mut rows: Vec<Value> = others.collect();
        rows.push(time("x", "the one", &samples(shift)));
        document(rows)
    };
    let folder = Folder::of(&rows(0.0), &rows(1.3));
    assert_eq!(folder.both(&[]).status.code(), Some(0));
    let alone = folder.both(&["--only", "the one"]);
    assert_eq!(alone.status.code(), Some(1), "{}", text(&alone.stdout));
}

#[test]
fn two_configurations_of_one_document_are_compared() {
    let rows = vec![
        time("old", "w", &round(100.0)),
        time("new", "w", &round(50.0)),
        time("new", "v", &round(1.0)),
    ];
    let folder = Folder::of(&document(rows.clone()), &document(rows));
    let options = |a, b| folder.run(&["a.json", "a.json", "--config-a", a, "--config-b", b]);
    let (code, out, _) = outcome(&options("old", "new"));
    assert_eq!(code, Some(0));
    assert!(
        out.contains("A: a.json, old (baseline)\nB: a.json, new\n"),
        "{out}"
    );
    assert!(out.contains("50.00 *  50.00%*  better"), "{out}");
    assert!(out.contains("Only in B (1): v / time."), "{out}");
    assert_eq!(options("new", "old").status.code(), Some(1));
}

#[test]
fn a_folder_stands_for_its_results() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    fs::create_dir(folder.path("run")).unwrap();
    fs::copy(folder.path("a.json"), folder.path("run/results.json")).unwrap();
    let (code, out, _) = outcome(&folder.run(&["run", "a.json"]));
    assert_eq!(code, Some(0));
    assert!(out.contains("A: run/results.json (baseline)"), "{out}");
}

#[test]
fn different_hosts_and_experiments_are_noted() {
    let [a, mut b] = every_kind();
    b["experiment"] = json!("other");
    b["host"]["cpu"] = json!("Another CPU");
    let (_, out, _) = outcome(&Folder::of(&a, &b).both(&[]));
    assert!(
        out.contains("The experiments differ: demo in A, other in B."),
        "{out}"
    );
    assert!(
        out.contains("The hosts differ: kernel 6.18.2, CPU Some CPU"),
        "{out}"
    );
}

/// Each case has the words of the error that say what to do.
#[test]
fn what_cannot_be_compared_ends_with_2_and_names_the_fix() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    folder.write("text.json", "alloc 12.5\n");
    folder.write("rows.json", r#"{"experiment": "e", "host": {}, "rows": 5}"#);
    folder.write("empty.json", &document(vec![]).to_string());
    folder.write(
        "other.json",
        &document(vec![time("y", "w", &[1.0])]).to_string(),
    );
    let in_cycles = a
        .to_string()
        .replace(r#""unit":"ns""#, r#""unit":"cycles""#);
    folder.write("cycles.json", &in_cycles);
    let upside_down = a.to_string().replace("lower", "higher");
    folder.write("upside.json", &upside_down);
    let lying = a
        .to_string()
        .replacen(r#""unit":"ns""#, r#""mean":1.0,"unit":"ns""#, 1);
    folder.write("lying.json", &lying);
    fs::write(folder.path("bytes.json"), [0xff, 0xfe, 0x00]).unwrap();
    let cases: [(&[&str], &str); 20] = [
        (&["a.json"], "<B>"),
        (&["a.json", "nonesuch.json"], "cannot read nonesuch.json"),
        (&["nonesuch.json", "b.json"], "--format json -o FILE"),
        (&["a.json", "."], "cannot read ./results.json"),
        (
            &["a.json", "text.json"],
            "text.json is not a results document",
        ),
        (
            &["a.json", "rows.json"],
            "rows.json is not a results document",
        ),
        (&["a.json", "bytes.json"], "--format json -o FILE"),
        (
            &["a.json", "lying.json"],
            "`mean` is 1, but the 8 samples give",
        ),
        (&["a.json", "empty.json"], "the second none"),
        (&["a.json", "other.json"], "--config-a and --config-b"),
        (
            &["a.json", "cycles.json"],
            "a.json has it in ns, lower is better, cycles.json in cycles, lower is better",
        ),
        (&["a.json", "upside.json"], "exclude such rows with --only"),
        (
            &["a.json", "b.json", "--only", "nothing so"],
            "give another text to --only",
        ),
        (&["a.json", "b.json", "--config-a", "x"], "--config-b"),
        (
            &["a.json", "b.json", "--config-a", "z", "--config-b", "x"],
            "no configuration `z`; it has x",
        ),
        (&["a.json", "b.json", "--threshold", "-1"], "0 or more"),
        (&["a.json", "b.json", "--threshold", "NaN"], "0 or more"),
        (&["a.json", "b.json", "--alpha", "1"], "between 0 and 1"),
        (&["a.json", "b.json", "--format", "xml"], "table, csv, json"),
        (
            &["a.json", "b.json", "-o", "b.json"],
            "give --output another name",
        ),
    ];
    for (arguments, fix) in cases {
        let (code, out, err) = outcome(&folder.run(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(fix), "{arguments:?}: {err}");
        assert!(
            out.is_empty() && !err.contains("panicked"),
            "{arguments:?}: {err}"
        );
    }
    // The compared document is unchanged.
    assert_eq!(
        fs::read_to_string(folder.path("b.json")).unwrap(),
        b.to_string()
    );
}

#[test]
fn other_units_can_be_left_out() {
    let [a, _] = every_kind();
    let in_cycles = a
        .to_string()
        .replace(r#""unit":"ns""#, r#""unit":"cycles""#);
    let folder = Folder::of(&a, &serde_json::from_str(&in_cycles).unwrap());
    assert_eq!(folder.both(&["--only", "rate"]).status.code(), Some(0));
}

#[test]
fn hostile_numbers_and_names_do_no_harm() {
    let end = f64::MAX;
    let a = vec![
        time("x", "huge", &[end, end, -end]),
        time("x", "tiny", &[5e-324, 1e-323]),
        time("x", "zero", &[0.0, 0.0]),
        time("x", "from zero", &[0.0, 0.0]),
        time("x", "below zero", &[-1.0, -2.0, -3.0]),
        time("x\u{1b}[2J\u{7}", "a,\"quoted\"\nline", &[1.0]),
        time("", "", &[1.0, 2.0]),
    ];
    let mut b = a.clone();
    b[3] = time("x", "from zero", &[1.0, 2.0]);
    b[4] = time("x", "below zero", &[-3.0, -4.0, -5.0]);
    let folder = Folder::of(&document(a), &document(b));
    for format in ["table", "csv", "json"] {
        let (code, out, err) = outcome(&folder.both(&["--statistics", "--format", format]));
        assert!(matches!(code, Some(0 | 1)), "{format}: {err}");
        assert!(
            !err.contains("panicked") && !err.contains('\u{1b}'),
            "{err}"
        );
        if format == "json" {
            let json: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(json["rows"].as_array().unwrap().len(), 7);
        } else if format == "table" {
            assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out}");
            assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
        } else {
            assert!(out.contains("\"a,\"\"quoted\"\"\nline\""), "{out}");
        }
    }
}

#[test]
fn the_output_goes_to_the_given_file() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    let (code, out, err) = outcome(&folder.both(&["-o", "table.txt"]));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("got worse"), "{err}");
    assert_eq!(fs::read_to_string(folder.path("table.txt")).unwrap(), TABLE);
    let (code, out, err) = outcome(&folder.both(&["-o", "no/such/folder.txt"]));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("cannot write no/such/folder.txt"), "{err}");
}

/// A pipe that closes early is not a failure, and does not hide one.
#[test]
fn a_closed_pipe_does_not_change_the_verdict() {
    let [a, b] = every_kind();
    let folder = Folder::of(&a, &b);
    for (files, code) in [(["a.json", "b.json"], 1), (["a.json", "a.json"], 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard"));
        command
            .current_dir(folder.0.path())
            .arg("compare")
            .args(files);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let err = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{err}");
        assert!(!err.contains("pipe"), "{err}");
    }
}
