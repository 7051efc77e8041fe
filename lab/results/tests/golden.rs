//! The three formats of a document, compared with golden files: text that people paste into mails
//! and that other programs parse must not change unnoticed.
//! `BRICKYARD_BLESS=1 cargo test -p brickyard-results` rewrites the files.

use std::fs;
use std::path::Path;

use brickyard_results::{
    Against, Better, Deviation, Format, Host, Metric, Results, Row, TableOptions, parse_json,
};

const ALLOC: Metric<'static> = Metric {
    name: "alloc",
    unit: "cycles",
    better: Better::Lower,
};
const FREE: Metric<'static> = Metric {
    name: "free",
    unit: "cycles",
    better: Better::Lower,
};
const FAULTS: Metric<'static> = Metric {
    name: "faults",
    unit: "faults/s",
    better: Better::Higher,
};

fn host() -> Host {
    Host {
        kernel: "3.9.0".into(),
        cpu: "Example CPU".into(),
        cpus: Some(8),
        memory_bytes: Some(8 << 30),
    }
}

fn results(experiment: &str, rows: &[(&str, &str, Metric<'_>, &[f64])]) -> Results {
    let mut results = Results::new(experiment, host());
    for (config, workload, metric, samples) in rows {
        let row =
            Row::new(*config, *workload, *metric, samples.to_vec()).expect("samples are finite");
        results.push(row).expect("rows are distinct");
    }
    results
}

/// Two batches of two configurations: a clear loss, a clear gain, and a difference within the
/// scatter.
fn pagealloc() -> Results {
    results(
        "pagealloc",
        &[
            ("vanilla", "order-0 batch-1", ALLOC, &[670.0, 671.0, 672.0]),
            ("magazine", "order-0 batch-1", ALLOC, &[733.0, 734.0, 735.0]),
            ("vanilla", "order-0 batch-8", ALLOC, &[666.0, 667.0, 668.0]),
            ("magazine", "order-0 batch-8", ALLOC, &[380.0, 381.0, 382.0]),
            ("vanilla", "order-0 batch-1", FREE, &[300.0, 357.0, 414.0]),
            ("magazine", "order-0 batch-1", FREE, &[430.0, 458.0, 486.0]),
        ],
    )
}

/// Both directions, missing rows, a zero baseline, single samples, names that CSV must quote.
fn mixed() -> Results {
    results(
        "mixed, \"quoted\"",
        &[
            ("base, with comma", "pft 1", FAULTS, &[953_441.5]),
            ("base, with comma", "pft 2", FAULTS, &[0.0, 0.0]),
            ("base, with comma", "said \"twice\"", ALLOC, &[]),
            (
                "a configuration with a very long name",
                "pft 1",
                FAULTS,
                &[1_906_883.0],
            ),
            (
                "a configuration with a very long name",
                "pft 2",
                FAULTS,
                &[1.0, 3.0],
            ),
            ("third", "pft 1", FAULTS, &[476_720.75, 476_720.75]),
            ("third", "said \"twice\"", ALLOC, &[0.1, 0.25]),
            ("third", "only here", ALLOC, &[4.0]),
        ],
    )
}

/// Lock policies on two loads, in `runs` runs: a clear gain, a difference within the scatter, a
/// single run without an interval, a missing row.
fn locks(runs: usize) -> Results {
    const TIME: Metric<'static> = Metric {
        name: "time",
        unit: "s",
        better: Better::Lower,
    };
    const WAIT: Metric<'static> = Metric {
        name: "wait-p99",
        unit: "ns",
        better: Better::Lower,
    };
    let scatter = [0.0, 0.03, -0.02, 0.01, -0.03, 0.02];
    let around = |mean: f64| -> Vec<f64> {
        let scatter = scatter[..runs].iter();
        scatter.map(|away| mean * (1.0 + away)).collect()
    };
    // The same distances, with the opposite sign in every second run.
    let crossing = |mean: f64| -> Vec<f64> {
        let turned = |(i, sample)| {
            if i % 2 == 0 {
                sample
            } else {
                mean * 2.0 - sample
            }
        };
        around(mean).into_iter().enumerate().map(turned).collect()
    };
    results(
        "locks",
        &[
            ("hold", "pmake cpus-32", TIME, &around(2.64)),
            ("release", "pmake cpus-32", TIME, &around(2.524)),
            (
                "ticket+yield+own-line",
                "pmake cpus-32",
                TIME,
                &crossing(2.53),
            ),
            ("hold", "pmake cpus-32", WAIT, &around(1023.0)),
            ("release", "pmake cpus-32", WAIT, &around(255.0)),
            ("hold", "find cpus-32", TIME, &[1.059]),
            ("ticket+yield+own-line", "find cpus-32", TIME, &[]),
        ],
    )
}

const STEPS: TableOptions<'static> = TableOptions {
    against: Against::Before,
    deviation: Deviation::Shown,
    decimals: 3,
    label: &workload_first,
};

fn workload_first(workload: &str, metric: &str) -> String {
    match metric {
        "time" => workload.into(),
        _ => format!("  {metric}"),
    }
}

/// Labels `order-0 batch-64` and `alloc` as `order-0 alloc-64`, like the tables of 2013.
fn pagealloc_label(workload: &str, metric: &str) -> String {
    workload.replace("batch", metric)
}

fn golden(name: &str, results: &Results, format: Format, options: &TableOptions<'_>) {
    let got = results.text(format, options);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BRICKYARD_BLESS").is_some() {
        fs::write(&path, &got).expect("the golden folder can be written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file exists");
    assert_eq!(
        got, expected,
        "{name} has changed; BRICKYARD_BLESS=1 accepts the change"
    );
}

#[test]
fn table() {
    let options = TableOptions {
        label: &pagealloc_label,
        ..TableOptions::default()
    };
    golden("table.txt", &pagealloc(), Format::Table, &options);
}

#[test]
fn table_with_deviations() {
    let options = TableOptions {
        deviation: Deviation::Shown,
        label: &pagealloc_label,
        ..TableOptions::default()
    };
    golden("table-deviation.txt", &pagealloc(), Format::Table, &options);
}

#[test]
fn table_of_missing_rows_and_zeros() {
    let options = TableOptions {
        deviation: Deviation::Shown,
        decimals: 4,
        ..TableOptions::default()
    };
    golden("table-mixed.txt", &mixed(), Format::Table, &options);
}

#[test]
fn table_of_nothing() {
    golden(
        "table-empty.txt",
        &results("empty", &[]),
        Format::Table,
        &TableOptions::default(),
    );
}

#[test]
fn steps() {
    golden("steps.txt", &locks(6), Format::Table, &STEPS);
    golden("steps.csv.txt", &locks(6), Format::Csv, &STEPS);
    golden("steps.json.txt", &locks(6), Format::Json, &STEPS);
}

#[test]
fn steps_of_four_runs_say_that_no_star_is_possible() {
    let options = TableOptions {
        deviation: Deviation::Hidden,
        ..STEPS
    };
    golden("steps-four.txt", &locks(4), Format::Table, &options);
    let empty = results("empty", &[]);
    golden("table-empty.txt", &empty, Format::Table, &STEPS);
}

#[test]
fn csv() {
    golden("csv.txt", &mixed(), Format::Csv, &TableOptions::default());
}

#[test]
fn json() {
    golden("json.txt", &mixed(), Format::Json, &TableOptions::default());
}

#[test]
fn json_reads_back_as_what_it_was() {
    for (results, options) in [
        (pagealloc(), TableOptions::default()),
        (mixed(), TableOptions::default()),
        (locks(6), STEPS),
    ] {
        let text = results.text(Format::Json, &options);
        assert_eq!(parse_json(&text).expect("our own document"), results);
    }
}
