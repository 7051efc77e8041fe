//! The claim of 2007 about `min_free_kbytes`, on a ppc64 machine with the unpatched kernel: free
//! huge pages at five moments, with three settings; and a film of the two that matter.

use brickyard_designs::classics::Configuration;
use brickyard_pictures::pagetypes::{Film, html};
use brickyard_results::Metric;
use brickyard_workload::antifrag::{MOMENTS, MinFree, Profile, Reclaim};

use crate::raw::Method;

use super::pictures::SHOTS;
use crate::antifrag::{AntifragRun, Filmed, Settings};
use crate::cell::{Cell, Context, Done, Scale};
use crate::cells::protocol;
use crate::cells::rows::RowTemplate;

/// The machine: the document's video is of a ppc64 machine too.
const ON: &str = "gekko-lp4";

/// Its name in the rows, and that of the page.
const MACHINE: &str = "gekko-lp4-min-free";

const FREE: Metric<'static> = Metric::higher("huge-pages", "pages");

/// Returns the cell.
pub(super) fn cells() -> Vec<Cell> {
    vec![Cell {
        name: "mobility.min-free".to_owned(),
        kind: Method::Replayed,
        scale: Scale::Full,
        seconds: 4.0,
        work: Box::new(|context| work(&context)),
    }]
}

fn work(context: &Context<'_>) -> anyhow::Result<Done> {
    let Some(profile) = Profile::named(ON) else {
        anyhow::bail!("there is no machine {ON}");
    };
    let run = AntifragRun {
        profile,
        reclaim: Reclaim::Plain,
        config: Configuration::Vanilla,
    };
    let (mut rows, mut films) = (Vec::new(), Vec::new());
    for min_free in MinFree::ALL {
        let settings = Settings {
            min_free: Some(min_free),
            ..Settings::DEFAULT
        };
        let filmed = match min_free {
            MinFree::Low => Filmed::No,
            MinFree::HighFromBoot | MinFree::RaisedLater => Filmed::Yes,
        };
        let (result, film) = protocol::run(&run, &settings, filmed, context)?;
        let row = |workload: &str, metric: &Metric<'static>, value| {
            let template = RowTemplate {
                machine: MACHINE,
                workload,
                config: run.config.name(),
                run: 1,
            };
            template.row(metric, value)
        };
        for (moment, &free) in MOMENTS.iter().zip(&result.free) {
            let workload = format!("{}: {moment}", min_free.name());
            rows.push(row(&workload, &FREE, free as f64));
        }
        rows.extend(
            film.iter()
                .map(|film| row(min_free.name(), &SHOTS, film.len() as f64)),
        );
        films.extend(film);
    }
    let films: Vec<&Film> = films.iter().collect();
    let mut page = Vec::new();
    html::write(&films, "min_free_kbytes on gekko-lp4, vanilla", &mut page)?;
    Ok(Done {
        rows,
        pages: vec![(format!("{MACHINE}.html"), page)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{done_of, found};

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn three_settings_at_all_moments_and_two_films() {
        let done = done_of(found(&cells(), "mobility.min-free"));
        let free: Vec<f64> = done
            .rows
            .iter()
            .filter(|row| row.metric == FREE.name)
            .map(|row| row.value)
            .collect();
        assert_eq!(free.len(), MinFree::ALL.len() * MOMENTS.len());
        let [(name, page)] = &done.pages[..] else {
            panic!("{} pages", done.pages.len());
        };
        assert_eq!(name, "gekko-lp4-min-free.html");
        assert!(page.len() < 3 << 20, "{} bytes", page.len());
    }
}
