//! `traceable`: every figure of the page is computed again from the rows that it names, with an
//! independent implementation of the statistics.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{Document, Points, Statistic};
use brickyard_experiments::documents;
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_results::Better;

use super::{Element, embedded, figures};
use crate::page_sample;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

/// Returns values as they count in a ratio: of huge pages, at least half a one.
fn in_ratios(metric: &str, values: &[f64]) -> Vec<f64> {
    let least = if metric == "huge-pages" {
        0.5
    } else {
        f64::NEG_INFINITY
    };
    values.iter().map(|value| value.max(least)).collect()
}

/// Computes the value of a figure from its rows alone.
fn computed(element: &Element<'_>, data: &Data) -> f64 {
    let rows = element.rows();
    let values: Vec<f64> = rows
        .iter()
        .map(|&place| data.row(place).unwrap().1.value)
        .collect();
    let better = data.row(rows[0]).unwrap().1.better;
    let statistic = element.get("data-statistic").unwrap();
    if statistic == "gmean-speedup" {
        return gmean(element, data);
    }
    let (of, against) = values.split_at(element.number("data-n") as usize);
    let metric = data.row(rows[0]).unwrap().1.metric.clone();
    let ratio_mean = |values: &[f64]| mean(&in_ratios(&metric, values));
    let times = |of: f64, against: f64| match better {
        Better::Higher => of / against,
        Better::Lower => against / of,
        Better::Neither => panic!("a speedup of {statistic}, where neither way is better"),
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match statistic {
        "value" | "mean" => mean(of),
        "median" => median(of),
        "min" => least(of),
        "max" => most(of),
        "range" => most(of) - least(of),
        "stddev" => deviation(of),
        "interval95" => 1.959_963_984_540_054 * deviation(of) / (of.len() as f64).sqrt(),
        "speedup" | "worst-speedup" => times(ratio_mean(of), ratio_mean(against)),
        "gain" => gain(better, mean(of), mean(against)),
        "gain-min" => gain(better, least(of), least(against)),
        "gain-max" => gain(better, most(of), most(against)),
        "gain-stddev" => gain(Better::Lower, deviation(of), deviation(against)),
        "gain-range" => gain(
            Better::Lower,
            most(of) - least(of),
            most(against) - least(against),
        ),
        "difference" => mean(of) - mean(against),
        "difference-percent" => (mean(of) - mean(against)) * 100.0 / mean(against).abs(),
        "share" => mean(of) * 100.0 / mean(against),
        other => panic!("{other} is no statistic"),
    }
}

fn gain(better: Better, of: f64, against: f64) -> f64 {
    match better {
        Better::Lower => 100.0 - of * 100.0 / against,
        Better::Higher => of * 100.0 / against - 100.0,
        Better::Neither => panic!("a gain where neither way is better"),
    }
}

/// Computes a geometric mean: its rows are pairs of groups, one of a key and one of its baseline.
fn gmean(element: &Element<'_>, data: &Data) -> f64 {
    let mut groups: Vec<(String, String, Better, Vec<f64>)> = Vec::new();
    for place in element.rows() {
        let (_, raw) = data.row(place).unwrap();
        let name = format!(
            "{}|{}|{}|{}",
            raw.machine, raw.workload, raw.config, raw.metric
        );
        match groups.last_mut() {
            Some((last, _, _, values)) if *last == name => values.push(raw.value),
            _ => groups.push((name, raw.metric.to_string(), raw.better, vec![raw.value])),
        }
    }
    let logarithms: Vec<f64> = groups
        .chunks(2)
        .map(|pair| {
            let [of, against] = [&pair[0], &pair[1]].map(|(_, metric, _, values)| {
                let counted = in_ratios(metric, values);
                mean(&counted)
            });
            match pair[0].2 {
                Better::Higher => (of / against).ln(),
                Better::Lower => (against / of).ln(),
                Better::Neither => panic!("a speedup where neither way is better"),
            }
        })
        .collect();
    assert_eq!(logarithms.len() as f64, element.number("data-n"));
    mean(&logarithms).exp()
}

/// Checks all figures; returns how many there are.
fn check_figures(page: &str, data: &Data) -> usize {
    let figures = figures(page);
    for element in &figures {
        let (given, computed) = (element.number("data-value"), computed(element, data));
        // A difference of zero leaves only rounding errors.
        let near = 1e-9 * computed.abs().max(1e-3);
        assert!(
            (given - computed).abs() <= near,
            "{} {}: the page has {given}, {computed} is computed",
            element.tag,
            element.text
        );
        assert_eq!(element.get("href"), Some("#raw"));
    }
    figures.len()
}

#[test]
fn every_figure_follows_from_its_rows() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let page = page_sample::page(&documents, &data, Vec::new());
    let count = check_figures(&page, &data);
    // Two tables of 12 by 8, one of 2 by 5 with the two ends of 8 sweeps and 5 ratios, 8 more ratios,
    // the winner, findings in the summary and the section, and every point of three plots.
    assert_eq!(
        count,
        2 * 96 + 10 + 2 * 8 + 5 + 8 + 1 + 2 + 3 + 5 * (8 + 5 + 120)
    );
    // What is shown is the value, scaled and rounded.
    let mut scales = BTreeSet::new();
    for element in figures(&page) {
        let shown: Result<f64, _> = element.text.replace([',', '%'], "").parse();
        if let Ok(shown) = shown {
            let scale = element.get("data-scale").unwrap_or("1");
            scales.insert(scale.to_owned());
            let scaled = element.number("data-value") * scale.parse::<f64>().unwrap();
            assert!(
                (shown - scaled).abs() <= 0.005_000_1_f64.max(scaled.abs() * 0.001),
                "{shown} is shown, the value is {scaled}"
            );
        }
    }
    assert!(scales.iter().eq(["-1", "0.01", "1", "1000"]), "{scales:?}");
}

#[test]
fn every_statistic_has_a_name_and_words_of_its_own() {
    let page = page_sample::page(&[], &Data::default(), Vec::new());
    let statistics = &embedded(&page)["statistics"];
    let mut words = BTreeSet::new();
    for statistic in Statistic::ALL {
        let name = statistic.name();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert!(words.insert(statistic.words()), "{name}");
        assert_eq!(statistics[name][0], statistic.words());
        assert_eq!(statistics[name][1].as_str(), statistic.better());
        // No two variants share a name.
        let spelled = format!("{statistic:?}").to_lowercase();
        assert_eq!(name.replace('-', ""), spelled);
    }
    // A single row is not a statistic, but is described like one.
    assert_eq!(
        statistics.as_object().unwrap().len(),
        Statistic::ALL.len() + 1
    );
    assert_eq!(statistics["value"][0], "the value of one row");
}

/// Returns made-up rows for every key that the documents refer to.
fn rows_for(documents: &[Document]) -> Data {
    let mut samples: BTreeSet<Key> = BTreeSet::new();
    let mut series: BTreeSet<Key> = BTreeSet::new();
    for document in documents {
        for figure in document.figures() {
            samples.extend(figure.keys().cloned());
        }
        for curve in document.plots.iter().flat_map(|plot| &plot.curves) {
            match &curve.points {
                Points::Samples(places) => {
                    samples.extend(places.iter().map(|(_, key)| key.clone()))
                }
                Points::Series(key) => {
                    series.insert(key.clone());
                }
            }
        }
    }
    let raw = |key: &Key, run: u32, at: Option<f64>, number: usize| Raw {
        machine: key.machine.clone(),
        workload: key.workload.clone(),
        config: key.config.clone(),
        metric: key.metric.clone(),
        unit: "things".to_owned(),
        better: if key.metric.len().is_multiple_of(2) {
            Better::Lower
        } else {
            Better::Higher
        },
        run,
        at,
        value: 1.0 + (number * 7919 % 1009) as f64 / 97.0 + f64::from(run * run % 5) / 50.0,
    };
    let samples = samples.iter().enumerate().map(|(number, key)| {
        let rows = (1..=7).map(|run| raw(key, run, None, number)).collect();
        (key, number, rows)
    });
    let series = series.iter().enumerate().map(|(number, key)| {
        let rows = (0..20)
            .map(|i| raw(key, 1, Some(f64::from(i)), number + i as usize))
            .collect();
        (key, 1_000_000 + number, rows)
    });
    let cells = samples
        .chain(series)
        .map(|(key, number, rows): (_, _, Vec<Raw>)| CellRows {
            cell: format!("{}.made-up.{number}", key.experiment),
            kind: Method::Simulated,
            seed: 1,
            host: brickyard_results::Host::unknown(),
            program: String::new(),
            rows,
        });
    Data::new(cells.collect()).unwrap()
}

#[test]
fn every_figure_of_the_five_documents_follows_from_its_rows() {
    let documents = documents::all();
    let data = rows_for(&documents);
    let page = page_sample::page(&documents, &data, Vec::new());
    let count = check_figures(&page, &data);
    println!("{count} figures, {} rows, {} bytes", data.len(), page.len());
    // With rows for all keys nothing is left out.
    assert!(
        !page.contains("no rows<")
            && !page.contains("in this run.")
            && !page.contains("Not measured")
            && !page.contains("nothing was measured")
    );
    let figures: usize = documents
        .iter()
        .map(|document| {
            document
                .figures()
                .filter(|figure| !figure.of.is_empty())
                .count()
        })
        .sum();
    assert!(
        count >= figures,
        "{count} of {figures} figures are in the page"
    );
    for document in &documents {
        for plot in &document.plots {
            assert!(page.contains(&format!("id=\"{}-picture-title\"", plot.id)));
        }
    }
    if let Some(kept) = std::env::var_os("BRICKYARD_PAGES") {
        fs::write(PathBuf::from(kept).join("documents.html"), &page).unwrap();
    }
}
