//! `kernbench`, the build of 2013: `make -j16` on its machine of 8 CPUs, simulated. A run is that
//! of `brickyard simulate kernbench`; each run is a cell.
//!
//! There are five runs, as in mmtests. A build is 80 of the recorded compiles: a run then takes
//! half a second, and each worker has five of them. The end of a build, when some workers are
//! already idle, is a larger part of it than with thousands of files, for all configurations alike.

mod document;

use brickyard_machine::Profile;
use brickyard_report::Metric;
use brickyard_simulate::kernbench::{Kernbench, Measured};
use brickyard_simulate::{Configuration, Setting};

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Context, Scale};
use crate::cells::configs::SIMULATED_OF_2013;
use crate::cells::rows::RowTemplate;
use crate::cells::served::all_served;
use crate::experiment::Experiment;
use brickyard_simulate::setting::usual_frames;

const MACHINE: &str = "i7-2013";
const CPUS: usize = 8;

const RUNS: u32 = 5;

/// The recorded build.
const RECORDED: &str = "kernel";

const COMPILES: usize = 80;

/// Compile jobs at once: make's -j.
const WORKERS: usize = 16;

/// A metric, and the function that computes its value for a run.
type Figure = (Metric<'static>, fn(&Measured) -> f64);

const FIGURES: [Figure; 4] = [
    (seconds("user"), |run| run.user),
    (seconds("system"), |run| run.system),
    (seconds("elapsed"), |run| run.elapsed),
    (Metric::higher("cpu", "%"), Measured::cpu_percent),
];

const fn seconds(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "s")
}

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "kernbench",
    about: "make -j on a recorded build: user, system, elapsed (2013)",
    forms: &[],
    reproduced: cells,
    document: document::document,
    uses_traces: true,
};

fn cells() -> Vec<Cell> {
    let runs = 1..=RUNS;
    runs.flat_map(|run| SIMULATED_OF_2013.map(|configuration| cell(configuration, run)))
        .collect()
}

fn cell(configuration: Configuration, run: u32) -> Cell {
    Cell {
        name: format!("kernbench.{MACHINE}.build-{CPUS}.{configuration}.{run}"),
        kind: Method::Simulated,
        scale: Scale::Quick,
        seconds: 0.5,
        work: Box::new(move |context| Ok(rows(&context, configuration, run)?.into())),
    }
}

fn rows(context: &Context<'_>, configuration: Configuration, run: u32) -> anyhow::Result<Vec<Raw>> {
    let recorded = context.traces.jobs(RECORDED)?;
    let build = Kernbench {
        recorded: &recorded,
        jobs: COMPILES,
        workers: WORKERS,
    };
    let measured = build.run(&Setting {
        profile: Profile::by_name(MACHINE)?,
        cpus: CPUS,
        configuration,
        frames: usual_frames(build.frames_needed(CPUS)),
        seed: context.seed_of(run),
    })?;
    all_served(&measured.counts)?;
    let template = RowTemplate {
        machine: MACHINE,
        workload: &format!("build cpus-{CPUS}"),
        config: configuration.name(),
        run,
    };
    let figures = FIGURES.iter();
    Ok(figures
        .map(|(metric, value)| template.row(metric, value(&measured)))
        .collect())
}
