//! `brickyard fidelity` as a user runs it, on a small trace of the repository. The expected table
//! is in `tests/fidelity/`; `BRICKYARD_BLESS=1` rewrites it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::process::Output;

use serde_json::Value;

use crate::command::{self, brickyard, text};

const DD: &str = "traces/dd.parquet";

/// Two designs, and two draws.
const SMALL: [&str; 5] = [
    "fidelity",
    "--config",
    "linux-6.18,brickyard",
    "--draws",
    "2",
];

fn fidelity(more: &[&str]) -> Output {
    brickyard(&[&SMALL, more].concat())
}

fn printed(more: &[&str]) -> String {
    command::printed(&fidelity(more))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn ends_are_compared_with_the_hosts() {
    let found = printed(&[DD]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity/dd.txt");
    if std::env::var_os("BRICKYARD_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(found == expected, "{} differs:\n{found}", path.display());
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn programs_read_what_the_table_says() {
    let json: Value = serde_json::from_str(&printed(&[DD, "--format", "json"])).unwrap();
    let table = printed(&[DD]);
    let notes = json["notes"].as_array().unwrap();
    assert!(!notes.is_empty());
    for note in notes {
        assert!(table.contains(note.as_str().unwrap()), "{note}");
    }
    let csv = printed(&[DD, "--format", "csv"]);
    assert!(csv.contains("by order and type"), "{csv}");
}

#[test]
fn a_page_has_every_figure_and_fetches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // A name from outside is text, whatever it holds.
    let trace = folder.path().join("<img src=x>&{{tables}}.parquet");
    fs::copy(root().join(DD), &trace).unwrap();
    let page = folder.path().join("page.html");
    let (trace, page) = (trace.to_str().unwrap(), page.to_str().unwrap());
    let table = printed(&[trace, "--page", page]);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("&lt;img src=x&gt;&amp;{{tables}}.parquet"),
        "{page}"
    );
    for wrong in ["<img", "<script", "http:", "https:", "@import", "url("] {
        assert!(!page.contains(wrong), "{wrong} in {page}");
    }
    assert!(page.contains("script-src 'none'"), "{page}");

    // All figures of the table, line by line.
    let cells = |text: &str| format!("<td>{text}</td>");
    let mut lines = 0;
    for line in table.lines().filter(|line| line.starts_with("  ")) {
        let (label, figures) = line.trim_start().split_once("   ").unwrap();
        let row = page
            .lines()
            .find(|row| row.contains(&format!("{}</th><td>", label.trim_end())));
        let row = row.unwrap_or_else(|| panic!("no row of {label}"));
        for figure in figures
            .split_whitespace()
            .filter(|text| text.parse::<f64>().is_ok())
        {
            assert!(row.contains(&cells(figure)), "{figure} of {label} in {row}");
        }
        lines += 1;
    }
    assert!(lines > 8, "{table}");

    // A plot of all types and one of movable blocks at least, with the curves of all columns.
    assert!(page.matches("<svg class=\"plot\"").count() >= 2);
    for curve in ["the host", "as the start", "linux-6.18", "brickyard"] {
        assert!(
            page.contains(&format!("<th scope=\"col\">{curve}</th>")),
            "{curve}"
        );
        assert!(page.contains(&format!(">{curve}</text>")), "{curve}");
    }
}

/// The rules are the same in the replay and in the replay of it, so most of its error is gone: but
/// not what depends on when in a second page sets shrink, nor that of a design whose caches no
/// trace of a Linux host tells of.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn what_the_trace_cannot_tell_is_measured() {
    let text = printed(&[DD, "--untold", "--format", "csv"]);
    let of = |label: &str, config: &str| -> f64 {
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.comment(Some(b'#')).from_reader(text.as_bytes());
        let mut rows = reader.records().map(Result::unwrap);
        let row = rows.find(|row| &row[0] == config && &row[2] == label);
        let row = row.unwrap_or_else(|| panic!("no {label} of {config} in {text}"));
        row[row.len() - 1].parse().unwrap()
    };
    assert!(
        of("by order and type, untold", "linux-6.18") < 2.0,
        "{text}"
    );
    assert!(of("by order and type, untold", "brickyard") > 0.0, "{text}");
    assert!(!printed(&[DD]).contains("untold"));
}

/// Where the results cannot be written, they are printed, and the page is written all the same.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_page_is_written_where_the_results_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let output = fidelity(&[DD, "-o", "/dev/full", "--page", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stdout).contains("by order and type"),
        "{output:?}"
    );
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("by order and type")
    );
}

#[test]
fn wrong_input_is_refused_before_any_work() {
    let refused = |more: &[&str], code: i32, fix: &str| {
        let output = fidelity(more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(fix) && !said.contains("panicked"), "{said}");
        assert_eq!(text(&output.stdout), "", "{more:?}");
    };
    refused(
        &[DD, "--page", "/nowhere/page.html"],
        1,
        "/nowhere/page.html",
    );
    refused(&[DD, "--draws", "0", "--draws", "1"], 2, "--draws");
    refused(&["/nowhere.parquet"], 1, "/nowhere.parquet");

    // A page is not written over a trace or results.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.parquet");
    fs::copy(root().join(DD), &copy).unwrap();
    let copy = copy.to_str().unwrap();
    refused(&[copy, "--page", copy], 2, "--page");
    assert_eq!(fs::read(copy).unwrap(), fs::read(root().join(DD)).unwrap());
    let both = folder.path().join("both");
    let both = both.to_str().unwrap();
    refused(&[DD, "-o", both, "--page", both], 2, "--page");

    // What has no state of its host cannot be compared with it.
    let folder = tempfile::tempdir().unwrap();
    let (script, trace) = (folder.path().join("lines"), folder.path().join("t.parquet"));
    let line = "bash-1234 [001] ..... 12.345678: mm_page_alloc: page=0x12 pfn=0x12 order=0 \
                migratetype=1 gfp_flags=GFP_KERNEL\n";
    fs::write(&script, line).unwrap();
    let mut import = Command::new(env!("CARGO_BIN_EXE_brickyard"));
    import.arg("import").arg(&script).arg("-o").arg(&trace);
    let imported = import.output().unwrap();
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    refused(&[trace.to_str().unwrap()], 2, "pagetypeinfo");
}
