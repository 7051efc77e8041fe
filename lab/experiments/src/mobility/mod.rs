//! Cells of the mail of 2007: huge pages under load and at rest on five machines, with and without
//! the reclaim patches; builds on their CPUs; and the pictures.
//!
//! | cells | what is run |
//! |---|---|
//! | `mobility.MACHINE.RECLAIM.CONFIG.RUN` | the protocol, a run for each phase |
//! | `mobility.MACHINE.RECLAIM.CONFIG.VARIANT.RUN` | the same with what the mail does not say varied ([`variants`]) |
//! | `mobility.min-free` | the claim about `min_free_kbytes` (`min_free.rs`) |
//! | `mobility.MACHINE.kernbench.CONFIG.RUN` | kernbench on as many CPUs as the machine had (`builds.rs`) |
//! | `mobility.MACHINE.pictures` | the protocol of three configurations on one machine, filmed (`pictures.rs`) |

mod builds;
pub(crate) mod document;
mod min_free;
mod pictures;

use brickyard_designs::classics::Configuration;
use brickyard_results::Metric;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_workload::antifrag::{Profile, Reclaim, Result as Protocol};

use crate::raw::{Method, Raw};

use crate::antifrag::parameters;
use crate::antifrag::variants::{self, Variant};
use crate::antifrag::{AntifragRun, Filmed, Settings};
use crate::cell::{Cell, Scale};
use crate::cells::protocol;
use crate::cells::rows::RowTemplate;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "mobility",
    about: "Huge pages under load and at rest, grouping by mobility (2007)",
    forms: &[
        // Nothing in it is left to chance.
        Form::new(
            On::Replayed(&["bl6-13", "elm3b14", "elm3b245", "gekko-lp1", "gekko-lp4"]),
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
    // The rows of filmed runs come with the film; the other runs have cells of their own.
    let mut cells = pictures::cells();
    for of in all_runs() {
        let runs = if is_varied(&of) { variants::RUNS } else { 1 };
        let own = (1..=runs).filter(|&run| run > 1 || !pictures::has_rows_of(&of));
        cells.extend(own.map(|run| protocol_cell(of, run)));
    }
    cells.extend(sweep_cells());
    cells.extend(min_free::cells());
    cells.extend(builds::cells());
    cells
}

/// Returns a run for every machine, way of reclaim and configuration.
fn all_runs() -> impl Iterator<Item = AntifragRun> {
    let machines = Profile::OF_2007.into_iter();
    machines.flat_map(|profile| {
        Reclaim::ALL.into_iter().flat_map(move |reclaim| {
            Configuration::ALL
                .into_iter()
                .map(move |config| AntifragRun {
                    profile,
                    reclaim,
                    config,
                })
        })
    })
}

// ---- huge pages under load and at rest ----

/// The machines of the quick run: one of x86-64 and one of ppc64.
const QUICK: [&str; 2] = ["elm3b245", "gekko-lp4"];

/// The configurations of the quick run: the document's, and `brickyard`.
const QUICK_CONFIGS: [Configuration; 5] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// The machines whose memory is recorded over time.
const SERIES: [&str; 2] = ["elm3b245", "gekko-lp4"];

const HUGE_PAGES: Metric<'static> = Metric::higher("huge-pages", "%");

const POSSIBLE: Metric<'static> = Metric::higher("possible", HUGE_PAGES.unit);

const HUGE_FREE: Metric<'static> = Metric::higher("huge-free", "% of memory");

const MIXED: Metric<'static> = Metric::lower("mixed", "blocks");

fn protocol_cell(of: AntifragRun, run: u32) -> Cell {
    let AntifragRun {
        profile,
        reclaim,
        config,
    } = of;
    Cell {
        name: format!(
            "mobility.{}.{}.{config}.{run}",
            profile.name,
            reclaim.name()
        ),
        kind: Method::Replayed,
        scale: match run {
            1 => scale_of(&of),
            _ => Scale::Full,
        },
        seconds: seconds_of(&profile, reclaim),
        work: Box::new(move |context| {
            let settings = Settings::DEFAULT.of_run(run);
            let (result, _) = protocol::run(&of, &settings, Filmed::No, &context)?;
            Ok(protocol_rows(&of, run, &result).into())
        }),
    }
}

/// Returns true for the document's kernels and both kinds of reclaim, and `brickyard` beside them:
/// of these there are several runs, and variants.
fn is_varied(of: &AntifragRun) -> bool {
    of.reclaim != Reclaim::Compaction && variants::CONFIGS_2007.contains(&of.config)
}

/// Returns the cells of these, varied.
fn sweep_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for of in all_runs().filter(is_varied) {
        for variant in variants::OF_2007 {
            cells.extend((1..=Variant::RUNS).map(|run| sweep_cell(of, variant, run)));
        }
    }
    cells
}

fn sweep_cell(of: AntifragRun, variant: Variant, run: u32) -> Cell {
    let AntifragRun {
        profile,
        reclaim,
        config,
    } = of;
    let Variant { name, settings } = variant;
    Cell {
        name: format!(
            "mobility.{}.{}.{config}.{name}.{run}",
            profile.name,
            reclaim.name()
        ),
        kind: Method::Replayed,
        scale: Scale::Full,
        seconds: seconds_of(&profile, reclaim) * settings.memory,
        work: Box::new(move |context| {
            let (result, _) = protocol::run(&of, &settings.of_run(run), Filmed::No, &context)?;
            let row = |when: &str, pages| {
                let workload = format!("{} {when} {name}", reclaim.name());
                let template = RowTemplate {
                    machine: profile.name,
                    workload: &workload,
                    config: config.name(),
                    run,
                };
                template.row(&HUGE_PAGES, result.percent(pages))
            };
            let rows = vec![
                row("under load", result.load.got),
                row("at rest", result.rest.got),
            ];
            Ok(rows.into())
        }),
    }
}

/// The quick run has both machines without the patches, and with them the one whose memory is few
/// huge pages, so that trying to allocate all of it is quick.
fn scale_of(run: &AntifragRun) -> Scale {
    let patches = match run.reclaim {
        Reclaim::Plain => true,
        Reclaim::Lumpy => run.profile.name != "elm3b245",
        Reclaim::Compaction => false,
    };
    let machine = QUICK.contains(&run.profile.name);
    Scale::quick_if(patches && machine && QUICK_CONFIGS.contains(&run.config))
}

/// Estimates the time of a run. Most of it goes into the tries, one every tenth of a simulated
/// second, as many as memory has huge pages. With compaction a try takes longer.
fn seconds_of(profile: &Profile, reclaim: Reclaim) -> f64 {
    let tries = profile.memory / FRAME_BYTES as u64 / profile.huge.frames() as u64;
    let plain = 0.6 + tries as f64 / 500.0;
    match reclaim {
        Reclaim::Plain | Reclaim::Lumpy => plain,
        Reclaim::Compaction => plain * 1.3,
    }
}

fn protocol_rows(of: &AntifragRun, run: u32, result: &Protocol) -> Vec<Raw> {
    let workload = |when: &str| format!("{} {when}", of.reclaim.name());
    let (load, rest) = (workload("under load"), workload("at rest"));
    let template = |workload| RowTemplate {
        machine: of.profile.name,
        workload,
        config: of.config.name(),
        run,
    };
    let percent = |pages| result.percent(pages);
    let mut rows = vec![
        template(&load).row(&HUGE_PAGES, percent(result.load.got)),
        template(&rest).row(&HUGE_PAGES, percent(result.rest.got)),
        template(&rest).row(&POSSIBLE, percent(result.rest_possible)),
    ];
    let series = run == 1 && SERIES.contains(&of.profile.name);
    if series && of.reclaim == Reclaim::Plain {
        let template = template(of.reclaim.name());
        for sample in &result.samples {
            let free = template.row(&HUGE_FREE, percent(sample.huge));
            let mixed = template.row(&MIXED, sample.mixed as f64);
            let at = Some(sample.time as f64 / 1e9);
            rows.extend([Raw { at, ..free }, Raw { at, ..mixed }]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use brickyard_workload::antifrag;
    use brickyard_workload::replay::Watcher;

    use super::*;
    use crate::cells::testing::{found, rows_of, traces};

    /// A watcher that ignores everything.
    struct Ignore;

    impl Watcher for Ignore {}

    fn run(machine: &str, reclaim: &str, config: &str) -> Vec<Raw> {
        let name = format!("mobility.{machine}.{reclaim}.{config}.1");
        rows_of(found(&cells(), &name))
    }

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn a_replay_gives_the_results_of_the_library_called_directly() {
        let config = Configuration::List2007;
        let rows = run("gekko-lp4", "plain", config.name());
        let profile = Profile::named("gekko-lp4").unwrap();
        let (compile, walk) = (
            traces().script("kernel").unwrap(),
            traces().script("walk").unwrap(),
        );
        let machine = antifrag::machine(&profile, 60).unwrap();
        let protocol = antifrag::Protocol {
            compile: &compile,
            walk: &walk,
            tree: 250 << 20,
            gap: 16_000_000_000,
            settle: 60_000_000_000,
            stretch: antifrag::stretch(machine.cpus),
            phase: 0,
            nap: 100_000_000,
            boot: profile.boot(),
            min_free: None,
            tries: None,
            reclaim: Reclaim::Plain,
            kernel_core: 60,
            sample_every: 2_000_000_000,
        };
        let result = antifrag::run(config, &machine, &protocol, Ignore).unwrap();
        let value = |workload: &str, metric: &str| {
            let mut all = rows.iter().filter(|row| row.at.is_none());
            let row = all.find(|row| (&*row.workload, &*row.metric) == (workload, metric));
            row.unwrap().value
        };
        let load = value("plain under load", "huge-pages");
        assert_eq!(load, result.percent(result.load.got));
        let rest = value("plain at rest", "huge-pages");
        assert_eq!(rest, result.percent(result.rest.got));
        let possible = value("plain at rest", "possible");
        assert!(possible >= rest && possible <= 100.0);
        // The first of the five phases whose mean is in docs/book/results.md.
        assert_eq!(format!("{load:.1} {rest:.1}"), "0.0 88.5");
        // Two series, whose times ascend.
        for metric in ["huge-free", "mixed"] {
            let of = |row: &&Raw| row.metric == metric && row.workload == "plain";
            let places: Vec<f64> = rows.iter().filter(of).map(|row| row.at.unwrap()).collect();
            assert_eq!(places.len(), result.samples.len());
            assert!(places.len() > 10 && places.is_sorted());
        }
        assert_eq!(rows.len(), 3 + 2 * result.samples.len());
        assert_eq!(rows, run("gekko-lp4", "plain", config.name()));
    }

    #[test]
    fn every_run_is_in_one_cell() {
        let cells = cells();
        assert_eq!(
            all_runs().filter(pictures::has_rows_of).count(),
            pictures::CONFIGS.len()
        );
        for of in all_runs() {
            let cell = protocol_cell(of, 1);
            let count = cells.iter().filter(|other| other.name == cell.name).count();
            assert_eq!(
                count,
                usize::from(!pictures::has_rows_of(&of)),
                "{}",
                cell.name
            );
        }
    }

    #[test]
    fn every_table_has_rows_in_the_quick_run() {
        let cells = cells();
        let quick: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.scale == Scale::Quick)
            .collect();
        for begin in [
            "mobility.elm3b245.plain.",
            "mobility.gekko-lp4.lumpy.",
            "mobility.elm3b245.kernbench.",
            "mobility.elm3b245.pictures",
        ] {
            assert!(
                quick.iter().any(|cell| cell.name.starts_with(begin)),
                "{begin}"
            );
        }
        assert!(!quick.iter().any(|cell| cell.name.contains(".compaction.")));
    }
}
