//! The films: three configurations of a machine under the protocol, on a page of their own.

use brickyard_designs::classics::Configuration;
use brickyard_pictures::pagetypes::{Film, html};
use brickyard_results::{Better, Metric};
use brickyard_workload::antifrag::Reclaim;

use crate::raw::Method;

use super::{all_runs, protocol_rows};
use crate::antifrag::{AntifragRun, Filmed, Settings};
use crate::cell::{Cell, Context, Done, Scale};
use crate::cells::protocol;
use crate::cells::rows::RowTemplate;

/// Returns both cells, the longer first.
pub(super) fn cells() -> Vec<Cell> {
    vec![
        cell(WITH_ROWS, Scale::Quick, 11.0),
        cell("gekko-lp4", Scale::Full, 3.0),
    ]
}

/// The machine whose film cell also returns the rows of its runs, so that nothing is run twice; the
/// runs of the other machine have cells of their own.
const WITH_ROWS: &str = "elm3b245";

/// The two configurations of the mail that differ most, and `brickyard`.
pub(super) const CONFIGS: [Configuration; 3] = [
    Configuration::Vanilla,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// A row of this metric shows the report that there is a page.
pub(super) const SHOTS: Metric<'static> = Metric::new("shots", "shots", Better::Neither);

/// Returns true if the rows of the run come with the film.
pub(super) fn has_rows_of(run: &AntifragRun) -> bool {
    run.profile.name == WITH_ROWS && is_filmed(run)
}

fn is_filmed(run: &AntifragRun) -> bool {
    run.reclaim == Reclaim::Plain && CONFIGS.contains(&run.config)
}

fn cell(machine: &'static str, scale: Scale, seconds: f64) -> Cell {
    Cell {
        name: format!("mobility.{machine}.pictures"),
        kind: Method::Replayed,
        scale,
        seconds,
        work: Box::new(move |context| filmed(machine, &context)),
    }
}

fn filmed(machine: &str, context: &Context<'_>) -> anyhow::Result<Done> {
    let (mut rows, mut films) = (Vec::new(), Vec::new());
    for run in all_runs().filter(|run| run.profile.name == machine && is_filmed(run)) {
        let (result, film) = protocol::run(&run, &Settings::DEFAULT, Filmed::Yes, context)?;
        if has_rows_of(&run) {
            rows.extend(protocol_rows(&run, 1, &result));
        }
        let template = RowTemplate {
            machine,
            workload: run.reclaim.name(),
            config: run.config.name(),
            run: 1,
        };
        rows.extend(
            film.iter()
                .map(|film| template.row(&SHOTS, film.len() as f64)),
        );
        films.extend(film);
    }
    let films: Vec<&Film> = films.iter().collect();
    let mut page = Vec::new();
    html::write(&films, &format!("{machine}, plain"), &mut page)?;
    Ok(Done {
        rows,
        pages: vec![(format!("{machine}.html"), page)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{done_of, found};

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn a_film_without_rows_has_only_its_shots_and_a_page_small_enough_for_the_report() {
        let done = done_of(found(&cells(), "mobility.gekko-lp4.pictures"));
        let configs: Vec<&str> = done.rows.iter().map(|row| &*row.config).collect();
        assert_eq!(configs, CONFIGS.map(Configuration::name));
        for row in &done.rows {
            assert_eq!(
                (&*row.machine, &*row.metric, row.at),
                ("gekko-lp4", "shots", None)
            );
            assert!(row.value > 10.0);
        }
        let [(name, page)] = &done.pages[..] else {
            panic!("{} pages", done.pages.len());
        };
        assert_eq!(name, "gekko-lp4.html");
        assert!(page.len() < 3 << 20, "{} bytes", page.len());
    }
}
