//! Cells of the mail of 2007: huge pages under load and at rest on five machines, with and without the reclaim patches; builds on their CPUs; and the pictures.
//!
//! | cells | what is run |
//! |---|---|
//! | `mobility.replayed.MACHINE.RECLAIM.CONFIG` | the protocol, once: nothing in it is left to chance |
//! | `mobility.simulated.MACHINE.CONFIG.RUN` | kernbench on as many CPUs as the machine had |
//! | `mobility.pictures.MACHINE` | the protocol again, filmed |

use brickyard::Configuration;
use brickyard_machine::Profile as Caches;
use brickyard_report::pagetypes::{Film, html};
use brickyard_report::{Better, Metric};
use brickyard_reproduce::raw::{Kind, Raw};
use brickyard_simulate::kernbench::Kernbench;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration as Simulated, Setting};
use brickyard_workload::antifrag::{Profile, Reclaim, Result as Protocol};
use brickyard_workload::jobs::Job;

use super::protocol;
use super::rows::Of;
use crate::antifrag::{Filmed, Run};
use crate::reproduce::cell::{Cell, Context, Done, Scale};

/// All cells.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for profile in Profile::OF_2007 {
        for reclaim in Reclaim::ALL {
            for config in Configuration::ALL {
                cells.push(protocol_cell(Run {
                    profile,
                    reclaim,
                    config,
                }));
            }
        }
    }
    for profile in Profile::OF_2007 {
        for config in BUILT {
            cells.extend((1..=RUNS).map(|run| build_cell(profile, config, run)));
        }
    }
    cells.push(pictures());
    cells
}

// ---- huge pages under load and at rest ----

/// The machines of the quick run: one of x86-64 and two of ppc64.
const QUICK: [&str; 3] = ["elm3b245", "gekko-lp1", "gekko-lp4"];

/// The configurations of the quick run: the document's, and today's.
const QUICK_CONFIGS: [Configuration; 5] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// Machines whose memory is told over time.
const SERIES: [&str; 2] = ["elm3b245", "gekko-lp4"];

const HUGE_PAGES: Metric<'static> = Metric {
    name: "huge-pages",
    unit: "%",
    better: Better::Higher,
};

const POSSIBLE: Metric<'static> = Metric {
    name: "possible",
    ..HUGE_PAGES
};

const HUGE_FREE: Metric<'static> = Metric {
    name: "huge-free",
    unit: "% of memory",
    better: Better::Higher,
};

const MIXED: Metric<'static> = Metric {
    name: "mixed",
    unit: "blocks",
    better: Better::Lower,
};

fn protocol_cell(run: Run) -> Cell {
    let Run {
        profile,
        reclaim,
        config,
    } = run;
    Cell {
        name: format!(
            "mobility.replayed.{}.{}.{config}",
            profile.name,
            reclaim.name()
        ),
        kind: Kind::Replayed,
        scale: scale_of(&run),
        seconds: seconds_of(&profile, reclaim),
        work: Box::new(move |context| {
            let (result, _) = protocol::run(&run, Filmed::No, &context)?;
            Ok(protocol_rows(&run, &result).into())
        }),
    }
}

/// Quick: without the patches all three machines, with them those whose memory is in few huge pages and so is soon tried.
fn scale_of(run: &Run) -> Scale {
    let patches = match run.reclaim {
        Reclaim::Plain => true,
        Reclaim::Lumpy => run.profile.name != "elm3b245",
        Reclaim::Compaction => false,
    };
    if patches && QUICK.contains(&run.profile.name) && QUICK_CONFIGS.contains(&run.config) {
        Scale::Quick
    } else {
        Scale::Full
    }
}

/// Most of it are the tries, one every tenth of a second: as many as memory has huge pages. Compaction looks longer.
fn seconds_of(profile: &Profile, reclaim: Reclaim) -> f64 {
    let tries = profile.memory / FRAME_BYTES as u64 / profile.huge.frames() as u64;
    let plain = 0.3 + tries as f64 / 400.0;
    match reclaim {
        Reclaim::Plain | Reclaim::Lumpy => plain,
        Reclaim::Compaction => plain * 1.3,
    }
}

fn protocol_rows(run: &Run, result: &Protocol) -> Vec<Raw> {
    let workload = |when: &str| format!("{} {when}", run.reclaim.name());
    let (load, rest) = (workload("under load"), workload("at rest"));
    let of = |workload| Of {
        machine: run.profile.name,
        workload,
        config: run.config.name(),
        run: 1,
    };
    let percent = |pages| result.percent(pages);
    let mut rows = vec![
        of(&load).row(&HUGE_PAGES, percent(result.load.got)),
        of(&rest).row(&HUGE_PAGES, percent(result.rest.got)),
        of(&rest).row(&POSSIBLE, percent(result.rest_possible)),
    ];
    if run.reclaim == Reclaim::Plain && SERIES.contains(&run.profile.name) {
        let of = of(run.reclaim.name());
        for sample in &result.samples {
            let free = of.row(&HUGE_FREE, percent(sample.huge));
            let mixed = of.row(&MIXED, sample.mixed as f64);
            let at = Some(sample.time as f64 / 1e9);
            rows.extend([Raw { at, ..free }, Raw { at, ..mixed }]);
        }
    }
    rows
}

// ---- kernbench ----

/// Those whose builds were timed, and today's.
const BUILT: [Simulated; 5] = [
    Simulated::Vanilla,
    Simulated::List2007,
    Simulated::Zone2007,
    Simulated::Combined2007,
    Simulated::Brickyard,
];

/// The machines whose builds are in the quick run.
const QUICK_BUILT: [&str; 2] = ["elm3b245", "gekko-lp1"];

/// The mean is of three builds, as in the mail.
const RUNS: u32 = 3;

/// Compile jobs of a build: each of those recorded four times.
const COMPILES: usize = 48;

/// Compile jobs at once, for each CPU.
const WORKERS: usize = 2;

/// Per cent of memory that is for the kernel too, where there is a zone for movable pages.
const KERNEL_CORE: u8 = 60;

/// Whose caches the CPUs have: the mail tells nothing of those machines' own.
const CACHES: &str = "metatm-2007";

const CPU_TIME: Metric<'static> = Metric {
    name: "cpu-time",
    unit: "s",
    better: Better::Lower,
};

const ELAPSED: Metric<'static> = Metric {
    name: "elapsed",
    ..CPU_TIME
};

fn build_cell(profile: Profile, config: Simulated, run: u32) -> Cell {
    Cell {
        name: format!("mobility.simulated.{}.{config}.{run}", profile.name),
        kind: Kind::Simulated,
        scale: if QUICK_BUILT.contains(&profile.name) {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds: 0.3,
        work: Box::new(move |context| {
            let setting = Setting {
                profile: Caches::by_name(CACHES)?,
                cpus: profile.cpus,
                configuration: config,
                frames: profile.memory as usize / FRAME_BYTES,
                seed: context.seed_of(run),
            };
            Ok(build(&profile, &setting, run, &context)?.into())
        }),
    }
}

fn build(
    profile: &Profile,
    setting: &Setting,
    run: u32,
    context: &Context<'_>,
) -> anyhow::Result<Vec<Raw>> {
    let recorded = rotated(&context.traces.jobs("kernel")?, setting.seed);
    let build = Kernbench {
        recorded: &recorded,
        jobs: COMPILES,
        workers: WORKERS * setting.cpus,
    };
    let measured = build.run_on(setting, &setting.ground_of(KERNEL_CORE))?;
    let of = Of {
        machine: profile.name,
        workload: "kernbench",
        config: setting.configuration.name(),
        run,
    };
    Ok(vec![
        of.row(&CPU_TIME, measured.user + measured.system),
        of.row(&ELAPSED, measured.elapsed),
    ])
}

/// The build, begun with another of its compile jobs in each run. Which job is the last, with the other CPUs idle, decides more of the elapsed time than any allocator does, and so it is
/// chance here, the same for all that are compared.
fn rotated(recorded: &[Job], seed: u64) -> Vec<Job> {
    let mut jobs = recorded.to_vec();
    if !jobs.is_empty() {
        let first = seed % jobs.len() as u64;
        jobs.rotate_left(first as usize);
    }
    jobs
}

// ---- pictures ----

/// The machine that is filmed.
const FILMED: &str = "elm3b245";

/// Those of the mail at their furthest apart, and today's.
const FILMED_CONFIGS: [Configuration; 3] = [
    Configuration::Vanilla,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// How many pictures a film has: the page beside the rows holds them.
const SHOTS: Metric<'static> = Metric {
    name: "shots",
    unit: "pictures",
    better: Better::Higher,
};

fn pictures() -> Cell {
    Cell {
        name: format!("mobility.pictures.{FILMED}"),
        kind: Kind::Replayed,
        scale: Scale::Quick,
        seconds: 7.0,
        work: Box::new(|context| {
            let profile = Profile::OF_2007
                .into_iter()
                .find(|profile| profile.name == FILMED)
                .expect("the filmed machine is one of those of 2007");
            let films = FILMED_CONFIGS
                .iter()
                .map(|&config| film(profile, config, &context));
            let films = films.collect::<anyhow::Result<Vec<Film>>>()?;
            let mut page = Vec::new();
            let films: Vec<&Film> = films.iter().collect();
            html::write(&films, &format!("{FILMED}, plain"), &mut page)?;
            let shots = films.iter().map(|film| {
                let of = Of {
                    machine: FILMED,
                    workload: "pictures",
                    config: film.name(),
                    run: 1,
                };
                of.row(&SHOTS, film.len() as f64)
            });
            Ok(Done {
                rows: shots.collect(),
                pages: vec![(format!("{FILMED}.html"), page)],
            })
        }),
    }
}

fn film(profile: Profile, config: Configuration, context: &Context<'_>) -> anyhow::Result<Film> {
    let run = Run {
        profile,
        reclaim: Reclaim::Plain,
        config,
    };
    let (_, film) = protocol::run(&run, Filmed::Yes, context)?;
    film.ok_or_else(|| anyhow::anyhow!("the run was not filmed"))
}

#[cfg(test)]
mod tests {
    use brickyard_workload::antifrag;
    use brickyard_workload::replay::Watcher;

    use super::super::testing::{found, rows_of, traces};
    use super::*;

    struct Nobody;

    impl Watcher for Nobody {}

    fn run(machine: &str, reclaim: &str, config: &str) -> Vec<Raw> {
        let name = format!("mobility.replayed.{machine}.{reclaim}.{config}");
        rows_of(found(&cells(), &name))
    }

    #[test]
    fn a_replay_is_what_the_library_says_by_itself() {
        let config = Configuration::List2007;
        let rows = run("gekko-lp4", "plain", config.name());
        let profile = Profile::named("gekko-lp4").unwrap();
        let (compile, walk) = (
            traces().script("compile").unwrap(),
            traces().script("walk").unwrap(),
        );
        let machine = antifrag::machine(&profile, 60).unwrap();
        let protocol = antifrag::Protocol {
            compile: &compile.script,
            walk: &walk.script,
            tree: 250 << 20,
            gap: 3_000_000_000,
            settle: 10_000_000_000,
            stretch: antifrag::stretch(compile.cpus, machine.cpus),
            tries: None,
            reclaim: Reclaim::Plain,
            kernel_core: 60,
            sample_every: 2_000_000_000,
        };
        let result = antifrag::run(config, &machine, &protocol, Nobody).unwrap();
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
        // As docs/results/antifrag.md has them.
        assert_eq!(format!("{load:.1} {rest:.1}"), "68.0 95.3");
        // Two series, whose places ascend.
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
    fn a_build_gives_the_same_rows_each_time_and_others_with_another_seed() {
        let cells = cells();
        let cell = |run| format!("mobility.simulated.gekko-lp1.zone-2007.{run}");
        let once = rows_of(found(&cells, &cell(1)));
        let keys: Vec<&str> = once.iter().map(|row| &*row.metric).collect();
        assert_eq!(keys, ["cpu-time", "elapsed"]);
        for row in &once {
            assert_eq!(
                (&*row.machine, &*row.workload, row.run),
                ("gekko-lp1", "kernbench", 1)
            );
            assert!(row.value > 1.0);
        }
        // Two CPUs.
        assert!(once[0].value > 1.8 * once[1].value && once[0].value <= 2.0 * once[1].value);
        assert_eq!(once, rows_of(found(&cells, &cell(1))));
        assert_ne!(once[1].value, rows_of(found(&cells, &cell(2)))[1].value);
    }

    #[test]
    fn a_rotated_build_has_all_its_jobs() {
        let jobs = traces().jobs("kernel").unwrap();
        let turned = rotated(&jobs, 5);
        assert_eq!(turned[0], jobs[5]);
        assert_eq!(turned[turned.len() - 1], jobs[4]);
        assert_eq!(rotated(&jobs, jobs.len() as u64), *jobs);
        assert_eq!(rotated(&[], 3), []);
    }

    #[test]
    fn every_table_has_rows_in_the_quick_run() {
        let cells = cells();
        let quick: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.scale == Scale::Quick)
            .collect();
        for begin in [
            "mobility.replayed.elm3b245.plain.",
            "mobility.replayed.gekko-lp1.lumpy.",
            "mobility.simulated.elm3b245.",
            "mobility.pictures.",
        ] {
            assert!(
                quick.iter().any(|cell| cell.name.starts_with(begin)),
                "{begin}"
            );
        }
        assert!(!quick.iter().any(|cell| cell.name.contains(".compaction.")));
    }
}
