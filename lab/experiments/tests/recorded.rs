//! The last recorded full run, which `docs/book/results.md` describes and CI compares quick runs
//! with: it has every row that a document refers to.

use std::path::Path;

use brickyard_experiments::data::Data;
use brickyard_experiments::document::Statistic;
use brickyard_experiments::documents;
use brickyard_experiments::expect::Expected;
use brickyard_experiments::figures;
use brickyard_experiments::judge::Judge;
use brickyard_experiments::store::read_rows;

fn path() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/results/reproduce.parquet"
    ))
}

#[test]
fn it_has_all_rows_that_the_documents_refer_to() {
    let data = Data::new(read_rows(path()).unwrap()).unwrap();
    let missing: Vec<String> = documents::keys()
        .iter()
        .filter(|key| data.samples(key).is_none() && data.series(key).is_none())
        .map(|key| format!("{key:?}"))
        .collect();
    assert!(
        missing.is_empty(),
        "{} keys: {:#?}",
        missing.len(),
        &missing[..missing.len().min(5)]
    );
}

#[test]
fn every_figure_of_every_table_has_a_number() {
    let data = Data::new(read_rows(path()).unwrap()).unwrap();
    let documents = documents::all();
    let judge = Judge::new(&documents, &data);
    for document in &documents {
        for figure in document.figures().filter(|figure| !figure.of.is_empty()) {
            let judgement = judge.judge(figure);
            let value = judgement.map(|judgement| judgement.value);
            // A percentage needs a baseline above 0, and a ratio needs both sides.
            let may_lack = is_ratio(figure.statistic);
            assert!(value.map_or(may_lack, f64::is_finite), "{figure:?}");
        }
    }
}

const fn is_ratio(statistic: Statistic) -> bool {
    matches!(
        statistic,
        Statistic::Speedup
            | Statistic::Gain
            | Statistic::GainMin
            | Statistic::GainMax
            | Statistic::GainStdDev
            | Statistic::GainRange
            | Statistic::DifferencePercent
            | Statistic::Share
    )
}

#[test]
fn it_does_not_differ_from_itself() {
    let expected = Expected::read(path()).unwrap();
    let found = expected.differences(&Data::new(read_rows(path()).unwrap()).unwrap());
    assert!(found.compared() > 500, "{}", found.compared());
    assert_eq!(found.lines, [""; 0]);
}

/// The file of figures has what the page shows beside each published figure, and every name of the
/// key that the figure is compared with.
#[test]
fn the_file_of_figures_has_all_that_a_comparison_needs() {
    let data = Data::new(read_rows(path()).unwrap()).unwrap();
    let documents = documents::all();
    let judge = Judge::new(&documents, &data);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.csv");
    figures::write_csv(&file, &documents, &judge).unwrap();
    let mut csv = csv::Reader::from_path(&file).unwrap();
    let head = csv.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|other| other == name).unwrap();
    let (mut shown, mut scaled, mut same_config) = (0, 0, 0);
    for record in csv.records() {
        let record = record.unwrap();
        let word = |name: &str| &record[column(name)];
        if let Ok(value) = word("value").parse::<f64>() {
            let scale: f64 = word("scale").parse().unwrap();
            let text = word("shown").trim_end_matches('%').replace(',', "");
            let decimals = text.split_once('.').map_or(0, |(_, rest)| rest.len());
            let near = 0.501 * 0.1_f64.powi(i32::try_from(decimals).unwrap());
            assert!(
                (value * scale - text.parse::<f64>().unwrap()).abs() <= near,
                "{record:?}"
            );
            shown += 1;
            scaled += usize::from(scale != 1.0);
        } else {
            assert_eq!((word("shown"), word("scale")), ("", ""), "{record:?}");
        }
        if !word("against").is_empty() && word("against") == word("config") {
            same_config += 1;
            let rest = |prefix: &str| {
                ["machine", "workload", "metric"].map(|name| word(&format!("{prefix}{name}")))
            };
            assert_ne!(rest(""), rest("against_"), "{record:?}");
        }
    }
    assert!(
        shown > 500 && scaled > 10 && same_config > 0,
        "{shown}, {scaled}, {same_config}"
    );
}
