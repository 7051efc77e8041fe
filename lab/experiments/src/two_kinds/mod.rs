//! Cells of the posting of 2005: huge pages under load and at rest, a kernel unpacked and built,
//! two tests of AIM9, and the effect on caches.
//!
//! | cells | what is run |
//! |---|---|
//! | `two-kinds.desktop-2005.protocol.CONFIG.RUN` | the protocol, a run for each phase |
//! | `two-kinds.desktop-2005.protocol.CONFIG.VARIANT.RUN` | the same with what the posting does not say varied ([`variants`]) |
//! | `two-kinds.desktop-2005.WORKLOAD.CONFIG.RUN` | `extract` or `build` on one CPU (`commands.rs`) |
//! | `two-kinds.host.aim9.ROUND` | `page_test` and `brk_test`, on pages of this host's memory (`aim9.rs`) |
//! | `two-kinds.host.render.ROUND` | the renderer, on the same (`render.rs`) |

mod aim9;
mod commands;
mod document;
mod render;

use brickyard_designs::classics::Configuration;
use brickyard_results::Metric;
use brickyard_workload::antifrag::{Profile, Reclaim};

use crate::raw::Method;

use crate::antifrag::parameters;
use crate::antifrag::variants::{self, Variant};
use crate::antifrag::{AntifragRun, Filmed, Settings};
use crate::cell::{Cell, Scale};
use crate::cells::protocol;
use crate::cells::rows::RowTemplate;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "two-kinds",
    about: "Huge pages of a zone with two kinds of request; AIM9, caches (2005)",
    forms: &[
        // Nothing in it is left to chance.
        Form::new(
            On::Replayed(&["desktop-2005"]),
            1,
            parameters::PARAMETERS,
            parameters::cells,
        ),
    ],
    reproduced: cells,
    document: Some(document::document),
    uses_traces: true,
};

/// Returns all cells.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for config in Configuration::ALL {
        let runs = match variants::CONFIGS_2005.contains(&config) {
            true => variants::RUNS,
            false => 1,
        };
        cells.extend((1..=runs).map(|run| huge_pages(config, None, run)));
    }
    for config in variants::CONFIGS_2005 {
        for variant in variants::OF_2005 {
            let of_run = |run| huge_pages(config, Some(variant), run);
            cells.extend((1..=Variant::RUNS).map(of_run));
        }
    }
    cells.extend(commands::cells());
    cells.extend(aim9::cells());
    cells.extend(render::cells());
    cells
}

const HUGE_PAGES: Metric<'static> = Metric::higher("huge-pages", "pages");

/// Returns the cell of a run of the protocol, or of a variant.
fn huge_pages(config: Configuration, variant: Option<Variant>, run: u32) -> Cell {
    let of = |text: &str, between: &str| match variant {
        Some(variant) => format!("{text}{between}{}", variant.name),
        None => text.to_owned(),
    };
    let settings = variant.map_or(Settings::DEFAULT, |variant| variant.settings);
    let workloads = [of("under load", " "), of("at rest", " ")];
    Cell {
        name: format!(
            "{}.{run}",
            of(
                &format!("two-kinds.{}.protocol.{config}", Profile::OF_2005.name),
                "."
            )
        ),
        kind: Method::Replayed,
        scale: match variant {
            None if run == 1 => render::scale_of(config.name()),
            _ => Scale::Full,
        },
        seconds: 1.5,
        work: Box::new(move |context| {
            let of = AntifragRun {
                profile: Profile::OF_2005,
                reclaim: Reclaim::Plain,
                config,
            };
            let (result, _) = protocol::run(&of, &settings.of_run(run), Filmed::No, &context)?;
            let row = |workload: &str, pages: usize| {
                let template = RowTemplate {
                    machine: Profile::OF_2005.name,
                    workload,
                    config: config.name(),
                    run,
                };
                template.row(&HUGE_PAGES, pages as f64)
            };
            let rows = vec![
                row(&workloads[0], result.load.got),
                row(&workloads[1], result.rest.got),
            ];
            Ok(rows.into())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{found, keys, rows_of};

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn huge_pages_are_those_of_the_documented_protocol() {
        let rows = rows_of(found(
            &cells(),
            "two-kinds.desktop-2005.protocol.two-kinds-2005.1",
        ));
        assert_eq!(
            keys(&rows),
            [("under load", "huge-pages"), ("at rest", "huge-pages")]
        );
        // The first of the five phases whose mean is in docs/book/results.md.
        assert_eq!((rows[0].value, rows[1].value), (188.0, 345.0));
        assert!(
            rows.iter()
                .all(|row| row.machine == "desktop-2005" && row.run == 1)
        );
    }
}
