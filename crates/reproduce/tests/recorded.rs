//! The last recorded full run, which `docs/results/reproduce.md` tells of and CI holds quick runs against: it has every row that a document refers to.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::path::Path;

use brickyard_reproduce::data::Data;
use brickyard_reproduce::document::Statistic;
use brickyard_reproduce::documents;
use brickyard_reproduce::expect::Expected;
use brickyard_reproduce::judge::Judge;
use brickyard_reproduce::store::read_rows;

fn path() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/results/reproduce.parquet"
    ))
}

#[test]
fn it_has_all_rows_that_the_documents_refer_to() {
    let data = Data::new(read_rows(path()).unwrap());
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
    let data = Data::new(read_rows(path()).unwrap());
    let documents = documents::all();
    let judge = Judge::new(&documents, &data);
    for document in &documents {
        for figure in document.figures().filter(|figure| !figure.of.is_empty()) {
            let judgement = judge.judge(figure);
            let value = judgement.map(|judgement| judgement.value);
            // Of a baseline that is not above 0 there are no percent.
            let may_lack = is_percent(figure.statistic);
            assert!(value.map_or(may_lack, f64::is_finite), "{figure:?}");
        }
    }
}

const fn is_percent(statistic: Statistic) -> bool {
    matches!(
        statistic,
        Statistic::Gain
            | Statistic::GainMin
            | Statistic::GainMax
            | Statistic::GainStdDev
            | Statistic::GainRange
            | Statistic::DifferencePercent
            | Statistic::Share
    )
}

#[test]
fn it_is_as_itself() {
    let expected = Expected::read(path()).unwrap();
    let found = expected.differences(&Data::new(read_rows(path()).unwrap()));
    assert!(found.compared > 500, "{}", found.compared);
    assert_eq!(found.lines, [""; 0]);
}
