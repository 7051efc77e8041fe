//! What a document says around its figures: in CSV, in JSON, and read back.

use brickyard_results::{Against, Format, Host, Metric, Results, Row, TableOptions, parse_json};

const TIME: Metric<'static> = Metric::lower("time", "s");

/// A document with lines, names and a unit that mean something to a reader of CSV.
fn document() -> Results {
    let mut results = Results::new("test", Host::unknown());
    results.about_line("a trace named \"a,b\"");
    results.about_line("two\nlines\r\nand\ra third");
    results.about_line("");
    results.note("nothing was lost #1");
    results.mark_interrupted();
    for (config, workload) in [("#1", "load # 2"), ("2", "load # 2")] {
        results
            .push(Row::new(config, workload, TIME, vec![1.0, 2.0]).unwrap())
            .unwrap();
    }
    results
}

fn csv_of(results: &Results) -> String {
    results.text(Format::Csv, &TableOptions::default())
}

#[test]
fn a_reader_that_skips_comments_gets_the_head_and_every_row() {
    let csv = csv_of(&document());
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(csv.as_bytes());
    let head = reader.headers().unwrap().clone();
    assert_eq!(head.get(0), Some("config"), "{csv}");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let configs: Vec<&str> = rows.iter().map(|row| row.get(0).unwrap()).collect();
    assert_eq!(configs, ["#1", "2"], "{csv}");
    let workloads = rows.iter().all(|row| row.get(1) == Some("load # 2"));
    assert!(workloads, "{csv}");
    // Some readers end a line there.
    assert!(!csv.contains('\r'), "{csv}");
}

#[test]
fn a_comment_sign_in_a_field_is_quoted() {
    // Some readers skip the rest of a line behind such a sign wherever it stands, unless quoted.
    let csv = csv_of(&document());
    let rows = csv.lines().filter(|line| !line.starts_with("# "));
    for row in rows.skip(1) {
        let outside: String = row.split('"').step_by(2).collect();
        assert!(!outside.contains('#'), "{row}");
    }
}

#[test]
fn all_that_is_said_around_the_figures_is_read_back() {
    let results = document();
    for against in [Against::First, Against::Before] {
        let options = TableOptions {
            against,
            ..TableOptions::default()
        };
        let read = parse_json(&results.text(Format::Json, &options)).unwrap();
        assert_eq!(read, results);
        assert!(read.is_interrupted());
        assert_eq!((read.about().len(), read.notes().len()), (3, 1));
    }
}
