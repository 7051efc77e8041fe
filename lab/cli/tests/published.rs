//! Published figures are stored in two places: with the subcommands that compare their own tables
//! with them, and in the documents of the report. Both must agree.

use brickyard_designs::classics::Configuration;
use brickyard_experiments::document::{Document, Figure, Statistic, number};
use brickyard_experiments::documents;
use brickyard_workload::antifrag::{Profile, Reclaim, published, published_2005};

fn document(experiment: &str) -> Document {
    let mut all = documents::all().into_iter();
    all.find(|document| document.experiment == experiment)
        .unwrap()
}

/// Returns the figures of the document's own tables that are measured too.
fn printed(document: &Document) -> impl Iterator<Item = &Figure> {
    let lines = document.tables.iter().flat_map(|table| &table.lines);
    let figures = lines.flat_map(|line| line.cells.iter().flatten());
    figures.filter(|figure| figure.published.is_some() && !figure.of.is_empty())
}

#[test]
fn the_huge_pages_of_2007() {
    let mobility = document("mobility");
    let mut found = 0;
    for profile in Profile::OF_2007 {
        for reclaim in [Reclaim::Plain, Reclaim::Lumpy] {
            for configuration in Configuration::ALL {
                let Some(figures) = published(profile.name, reclaim, configuration) else {
                    continue;
                };
                for (when, percent) in [("under load", figures.load), ("at rest", figures.rest)] {
                    let workload = format!("{} {when}", reclaim.name());
                    let figure = printed(&mobility).find(|figure| {
                        let of = &figure.of[0];
                        (
                            of.machine.as_str(),
                            of.workload.as_str(),
                            of.config.as_str(),
                            of.metric.as_str(),
                        ) == (
                            profile.name,
                            workload.as_str(),
                            configuration.name(),
                            "huge-pages",
                        )
                    });
                    let text = figure.unwrap().published.unwrap().text;
                    assert_eq!(
                        number(text),
                        Some(f64::from(percent)),
                        "{} {workload} {configuration}",
                        profile.name
                    );
                    found += 1;
                }
            }
        }
    }
    assert_eq!(found, 2 * (3 + 4 * 4 + 4 * 4));
}

#[test]
fn the_huge_pages_of_2005() {
    let two_kinds = document("two-kinds");
    for configuration in Configuration::ALL {
        let Some((load, rest)) = published_2005(configuration) else {
            continue;
        };
        for (workload, blocks) in [("under load", load), ("at rest", rest)] {
            let mut figures = printed(&two_kinds).filter(|figure| {
                let of = &figure.of[0];
                (of.workload.as_str(), of.config.as_str(), figure.statistic)
                    == (workload, configuration.name(), Statistic::Mean)
            });
            let figure = figures.next().unwrap();
            let text = figure.published.unwrap().text;
            assert_eq!(
                number(text),
                Some(f64::from(blocks)),
                "{workload} {configuration}"
            );
        }
    }
}
