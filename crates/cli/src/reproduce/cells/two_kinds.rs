//! Cells of the posting of 2005: huge pages under load and at rest, a kernel unpacked and built, two tests of AIM9, and the effect on caches.
//!
//! | cells | what is run |
//! |---|---|
//! | `two-kinds.desktop-2005.protocol.CONFIG` | the protocol, once: nothing in it is left to chance |
//! | `two-kinds.desktop-2005.WORKLOAD.CONFIG.RUN` | `extract` or `build` on one CPU |
//! | `two-kinds.host.aim9.ROUND` | `page_test` and `brk_test`, on pages of this host's memory |
//! | `two-kinds.host.render.ROUND` | the renderer, on the same |

use core::time::Duration;

use anyhow::Context as _;
use brickyard::Configuration;
use brickyard_machine::Profile as Caches;
use brickyard_report::{Better, Metric};
use brickyard_reproduce::raw::{Kind, Raw};
use brickyard_simulate::kernbench::Kernbench;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration as Simulated, Setting};
use brickyard_workload::antifrag::{Profile, Reclaim};

use super::protocol;
use super::rows::{HOST, Of};
use crate::antifrag::{Filmed, Run};
use crate::bench::aim9::{self, Aim9, Test};
use crate::bench::pages::Ground;
use crate::bench::render::{self, Render};
use crate::reproduce::cell::{Cell, Context, Scale};

/// All cells.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells: Vec<Cell> = Configuration::ALL.into_iter().map(huge_pages).collect();
    for (job, jobs) in SIMULATED {
        for config in Simulated::ALL {
            cells.extend((1..=RUNS).map(|run| simulated(job, jobs, config, run)));
        }
    }
    for round in 1..=ROUNDS {
        cells.extend([aim9(round), render(round)]);
    }
    cells
}

/// Those of the quick run, which alone render: the posting's two kernels, Linux's later one, and today's.
const SOME: [Configuration; 4] = [
    Configuration::Vanilla,
    Configuration::TwoKinds2005,
    Configuration::List2007,
    Configuration::Brickyard,
];

fn scale_of(config: &str) -> Scale {
    if SOME.iter().any(|some| some.name() == config) {
        Scale::Quick
    } else {
        Scale::Full
    }
}

const SECONDS: Metric<'static> = Metric {
    name: "elapsed",
    unit: "s",
    better: Better::Lower,
};

// ---- huge pages under load and at rest ----

const HUGE_PAGES: Metric<'static> = Metric {
    name: "huge-pages",
    unit: "pages",
    better: Better::Higher,
};

fn huge_pages(config: Configuration) -> Cell {
    Cell {
        name: format!("two-kinds.{}.protocol.{config}", Profile::OF_2005.name),
        kind: Kind::Replayed,
        scale: scale_of(config.name()),
        seconds: 0.9,
        work: Box::new(move |context| {
            let run = Run {
                profile: Profile::OF_2005,
                reclaim: Reclaim::Plain,
                config,
            };
            let (result, _) = protocol::run(&run, Filmed::No, &context)?;
            let row = |workload, pages| {
                let of = Of {
                    machine: Profile::OF_2005.name,
                    workload,
                    config: config.name(),
                    run: 1,
                };
                of.row(&HUGE_PAGES, pages as f64)
            };
            let rows = vec![
                row("under load", result.load.got),
                row("at rest", result.rest.got),
            ];
            Ok(rows.into())
        }),
    }
}

// ---- extract and build ----

/// The recorded command, the workload's name, and how often the recorded jobs are done: 240 MB are unpacked, as much as a tree of 2005 had; each compile is done twice.
const SIMULATED: [(Recorded, usize); 2] = [(Recorded::Extract, 12), (Recorded::Build, 24)];

/// A recorded command.
#[derive(Debug, Clone, Copy)]
enum Recorded {
    Extract,
    Build,
}

impl Recorded {
    const fn workload(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Build => "build",
        }
    }

    const fn trace(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Build => "kernel",
        }
    }
}

/// Runs, whose caches miss a little differently.
const RUNS: u32 = 3;

/// Whose caches the CPU has: the posting tells nothing of its machine's own.
const CACHES: &str = "metatm-2007";

fn simulated(recorded: Recorded, jobs: usize, config: Simulated, run: u32) -> Cell {
    Cell {
        name: format!(
            "two-kinds.{}.{}.{config}.{run}",
            Profile::OF_2005.name,
            recorded.workload()
        ),
        kind: Kind::Simulated,
        scale: scale_of(config.name()),
        seconds: 0.2,
        work: Box::new(move |context| {
            let setting = Setting {
                profile: Caches::by_name(CACHES)?,
                cpus: 1,
                configuration: config,
                frames: Profile::OF_2005.memory as usize / FRAME_BYTES,
                seed: context.seed_of(run),
            };
            let build = Kernbench {
                recorded: &context.traces.jobs(recorded.trace())?,
                jobs,
                workers: 1,
            };
            let measured = build.run(&setting)?;
            let of = Of {
                machine: Profile::OF_2005.name,
                workload: recorded.workload(),
                config: config.name(),
                run,
            };
            let system = Metric {
                name: "system",
                ..SECONDS
            };
            let rows = vec![
                of.row(&SECONDS, measured.elapsed),
                of.row(&system, measured.system),
            ];
            Ok(rows.into())
        }),
    }
}

// ---- what is timed ----

const ROUNDS: u32 = 15;

/// Rounds of the quick run: as many as a signed-rank test needs to say anything.
const QUICK_ROUNDS: u32 = 6;

/// Turns of each configuration in a round.
const TURNS: usize = 3;

/// How long a turn of a test of AIM9 is.
const LEAST: Duration = Duration::from_millis(20);

const RATE: Metric<'static> = Metric {
    name: "rate",
    unit: "ops/s",
    better: Better::Higher,
};

/// A cell of a round.
fn timed(
    name: &str,
    round: u32,
    seconds: f64,
    work: impl Fn(u32, Context<'_>) -> anyhow::Result<Vec<Raw>> + Send + Sync + 'static,
) -> Cell {
    Cell {
        name: format!("two-kinds.{HOST}.{name}.{round}"),
        kind: Kind::Timed,
        scale: if round <= QUICK_ROUNDS {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds,
        work: Box::new(move |context| Ok(work(round, context)?.into())),
    }
}

/// Lets each of `configs` take its turns, in an order that begins with another one each round. What came of the turns of each.
fn turns<T, const N: usize>(
    configs: [Configuration; N],
    round: u32,
    context: &mut Context<'_>,
    mut turn: impl FnMut(Configuration) -> anyhow::Result<T>,
) -> anyhow::Result<[Vec<T>; N]> {
    let mut taken = [const { Vec::new() }; N];
    for _ in 0..TURNS {
        for place in 0..N {
            let whose = (place + round as usize) % N;
            let done = turn(configs[whose]).with_context(|| configs[whose].name())?;
            taken[whose].push(done);
            if !context.follow.goes_on(0) {
                anyhow::bail!("interrupted");
            }
        }
    }
    Ok(taken)
}

fn of_host(workload: &'static str, config: Configuration, run: u32) -> Of<'static> {
    Of {
        machine: HOST,
        workload,
        config: config.name(),
        run,
    }
}

fn aim9(round: u32) -> Cell {
    timed("aim9", round, 0.9, |round, mut context| {
        let mut ground = Ground::new(aim9::PAGES)?;
        let mut rows = Vec::new();
        for test in [Test::Page, Test::Brk] {
            let taken = turns(Configuration::ALL, round, &mut context, |config| {
                let done = ground.with(config, Aim9 { test, least: LEAST })?;
                done.context("the memory has too few free pages")
            })?;
            for (config, taken) in Configuration::ALL.into_iter().zip(taken) {
                let all = taken.into_iter().reduce(aim9::Done::and);
                let rate = all.unwrap_or_default().rate();
                rows.push(of_host(test.name(), config, round).row(&RATE, rate));
            }
        }
        Ok(rows)
    })
}

fn render(round: u32) -> Cell {
    timed("render", round, 0.3, |round, mut context| {
        let mut ground = Ground::new(render::PAGES)?;
        let taken = turns(SOME, round, &mut context, |config| {
            let spent = ground.with(config, Render)?;
            spent.context("the memory has too few free pages")
        })?;
        let mut rows = Vec::new();
        for (config, taken) in SOME.into_iter().zip(taken) {
            let of = of_host("render", config, round);
            let mean = |time: fn(&render::Spent) -> Duration| {
                let times = taken.iter().map(time).map(|time| time.as_secs_f64());
                times.sum::<f64>() / taken.len() as f64
            };
            for (name, value) in [
                ("real", mean(|spent| spent.real)),
                ("user", mean(|spent| spent.user)),
                ("sys", mean(|spent| spent.sys)),
            ] {
                rows.push(of.row(&Metric { name, ..SECONDS }, value));
            }
        }
        Ok(rows)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{found, rows_of};
    use super::*;

    fn key(row: &Raw) -> (&str, &str) {
        (&row.workload, &row.metric)
    }

    fn keys(rows: &[Raw]) -> Vec<(&str, &str)> {
        let mut keys: Vec<_> = rows.iter().map(key).collect();
        keys.dedup();
        keys
    }

    #[test]
    fn huge_pages_are_those_of_the_documented_protocol() {
        let rows = rows_of(found(
            &cells(),
            "two-kinds.desktop-2005.protocol.two-kinds-2005",
        ));
        assert_eq!(
            keys(&rows),
            [("under load", "huge-pages"), ("at rest", "huge-pages")]
        );
        // As docs/results/antifrag.md has them.
        assert_eq!((rows[0].value, rows[1].value), (113.0, 275.0));
        assert!(
            rows.iter()
                .all(|row| row.machine == "desktop-2005" && row.run == 1)
        );
    }

    #[test]
    fn a_tree_is_unpacked_and_built_the_same_way_each_time() {
        let cells = cells();
        for workload in ["extract", "build"] {
            let name = format!("two-kinds.desktop-2005.{workload}.vanilla.1");
            let rows = rows_of(found(&cells, &name));
            assert_eq!(keys(&rows), [(workload, "elapsed"), (workload, "system")]);
            assert!(rows[0].value > 1.0 && rows[1].value > 0.0 && rows[1].value < rows[0].value);
            assert_eq!(rows, rows_of(found(&cells, &name)));
        }
    }

    #[test]
    fn a_round_has_a_row_of_each_configuration() {
        let cells = cells();
        let rows = rows_of(found(&cells, "two-kinds.host.aim9.2"));
        assert_eq!(keys(&rows), [("page_test", "rate"), ("brk_test", "rate")]);
        let configs: Vec<&str> = rows.iter().map(|row| &*row.config).collect();
        let names = Configuration::ALL.map(Configuration::name);
        assert_eq!(configs, [names, names].concat());
        assert!(
            rows.iter()
                .all(|row| row.run == 2 && row.machine == HOST && row.value > 0.0)
        );
        let rows = rows_of(found(&cells, "two-kinds.host.render.1"));
        assert_eq!(rows.len(), 3 * SOME.len());
        assert_eq!(
            keys(&rows)[..3],
            [("render", "real"), ("render", "user"), ("render", "sys")]
        );
    }
}
