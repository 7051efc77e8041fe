//! `kernbench`, the build of 2013: `make -j16` on its machine of 8 CPUs, simulated; each run is a
//! cell.
//!
//! A pool of workers takes compile jobs until all are done. A job computes as long as the recorded
//! one did, and allocates and frees the same pages; what it leaves behind is page cache. User time is
//! all that comes between two requests of the recorded job, its system calls included; system time is
//! the allocator, switches and ticks.
//!
//! A build is 80 of the recorded compiles: a run then takes half a second, and each worker has five
//! of them. The end of a build, when some workers are already idle, is a larger part of it than
//! with thousands of files, for all configurations alike; it also varies more from run to run, so
//! there are four times the five runs of mmtests.

mod document;

use brickyard_machine::Profile;
use brickyard_results::{Metric, bytes_text, counted};
use brickyard_simulate::kernbench::{BuildRun, Kernbench};
use brickyard_simulate::{Configuration, Setting};
use brickyard_workload::jobs::{Cut, Workload};

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Context, Scale};
use crate::cells::configs::SIMULATED_OF_2013;
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::all_served;
use crate::cells::simulated::{CONFIG, CPUS, INSTRUCTIONS, MEMORY, OtherCount, sweep};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};
use brickyard_simulate::setting::{FRAME_BYTES, usual_frames, whole_mib};

/// The CPUs of the machine of 2013.
const CPUS_2013: usize = 8;

const RUNS: u32 = 20;

/// How many of them belong to the quick scale.
const QUICK_RUNS: u32 = 5;

/// The recorded build.
const RECORDED: &str = "kernel";

const COMPILES: usize = 80;

/// Compile jobs at once: make's -j.
const WORKERS: usize = 16;

/// A metric, and the function that computes its value for a run.
type Figure = (Metric<'static>, fn(&BuildRun) -> f64);

const FIGURES: [Figure; 4] = [
    (seconds("user"), |run| run.user),
    (seconds("system"), |run| run.system),
    (seconds("elapsed"), |run| run.elapsed),
    (Metric::higher("cpu", "%"), BuildRun::cpu_percent),
];

const fn seconds(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "s")
}

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "kernbench",
    about: "make -j on a recorded build: user, system, elapsed (2013)",
    forms: &[Form::new(On::Simulated("i7-2013"), 5, PARAMETERS, set)],
    reproduced: cells,
    document: Some(document::document),
    uses_traces: true,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new("workload", RECORDED, "what is compiled: kernel or pmake"),
    CPUS,
    CONFIG,
    Parameter::new(
        "compiles",
        "400",
        "compile jobs in all; those of the trace are repeated",
    ),
    Parameter::new(
        "workers",
        "2",
        "compile jobs at once for each CPU: make's -j divided by the number of CPUs",
    ),
    MEMORY,
];

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong.
fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let profile = settings.profile()?;
    let recorded = match Workload::by_name(settings.text("workload")) {
        Ok(workload) if matches!(workload.cut, Cut::ByProcess(_)) => workload.name,
        _ => return Err(wrong("workload", "give kernel or pmake")),
    };
    let (compiles, per_cpu) = (settings.count("compiles")?, settings.count("workers")?);
    let most_cpus = settings.cpus("cpus")?.into_iter().max().unwrap_or(1);
    let memory = match settings.is_auto("memory") {
        true => None,
        false => Some(settings.bytes("memory")?),
    };
    sweep(settings, |cpus, configuration, run| {
        let workers = per_cpu.saturating_mul(cpus);
        let build = Build {
            profile,
            recorded,
            compiles,
            workers,
            cpus,
            memory,
            most_cpus,
            most_workers: per_cpu.saturating_mul(most_cpus),
            configuration,
            run,
            other: None,
        };
        build.cell(format!("{recorded} -j{workers} cpus-{cpus}"), Scale::Full)
    })
}

fn cells() -> Vec<Cell> {
    let build = |configuration, run| Build {
        profile: Profile::I7_2013,
        recorded: RECORDED,
        compiles: COMPILES,
        workers: WORKERS,
        cpus: CPUS_2013,
        memory: None,
        most_cpus: CPUS_2013,
        most_workers: WORKERS,
        configuration,
        run,
        other: None,
    };
    let workload = format!("build cpus-{CPUS_2013}");
    let mut cells = Vec::new();
    for run in 1..=RUNS {
        for configuration in SIMULATED_OF_2013 {
            let scale = Scale::quick_if(run <= QUICK_RUNS);
            cells.push(build(configuration, run).cell(workload.clone(), scale));
        }
        for other in INSTRUCTIONS {
            let build = Build {
                other: Some(other),
                ..build(Configuration::Magazine2013, run)
            };
            cells.push(build.cell(format!("{workload} {}", other.0), Scale::Full));
        }
    }
    cells
}

/// One build.
#[derive(Debug, Clone, Copy)]
struct Build {
    profile: &'static Profile,
    recorded: &'static str,
    compiles: usize,
    workers: usize,
    cpus: usize,
    /// Bytes; `None` for what the largest machine of the run needs.
    memory: Option<usize>,
    /// The CPUs of the largest machine of the run: all have the same memory, so that designs whose
    /// caches are a share of it can be compared.
    most_cpus: usize,
    /// Compile jobs at once there.
    most_workers: usize,
    configuration: Configuration,
    run: u32,
    /// Of [`INSTRUCTIONS`]; `None` for what was counted.
    other: OtherCount,
}

impl Build {
    fn cell(self, workload: String, scale: Scale) -> Cell {
        let (machine, cpus) = (self.profile.name, self.cpus);
        let (configuration, run) = (self.configuration, self.run);
        let other = self.other.map(|(name, _)| format!(".{name}"));
        let other = other.unwrap_or_default();
        Cell {
            name: format!("kernbench.{machine}.build-{cpus}{other}.{configuration}.{run}"),
            kind: Method::Simulated,
            scale,
            seconds: 0.5 / COMPILES as f64 * self.compiles as f64,
            work: Box::new(move |context| Ok(self.rows(&workload, &context)?.into())),
        }
    }

    fn rows(&self, workload: &str, context: &Context<'_>) -> anyhow::Result<Vec<Raw>> {
        let recorded = context.traces.jobs(self.recorded)?;
        let build = Kernbench {
            recorded: &recorded,
            jobs: self.compiles,
            workers: self.workers,
        };
        let largest = Kernbench {
            workers: self.most_workers,
            ..build
        };
        let needed = largest.frames_needed(self.most_cpus);
        let frames = match self.memory {
            None => usual_frames(needed),
            Some(memory) => memory / FRAME_BYTES,
        };
        if frames < needed {
            let (cpus, least) = (self.most_cpus, bytes_text(whole_mib(needed)));
            let cpus = counted(cpus, "CPU", "CPUs");
            let why = format_args!("it is too small for {cpus}; give at least {least}");
            return Err(wrong("memory", why).into());
        }
        let measured = build.run(&Setting {
            profile: self.profile,
            cpus: self.cpus,
            configuration: self.configuration,
            frames,
            seed: context.seed_of(self.run),
            more_instructions: self.other.map_or(0, |(_, more)| more),
        })?;
        all_served(&measured.counts)?;
        let template = RowTemplate {
            machine: self.profile.name,
            workload,
            config: self.configuration.name(),
            run: self.run,
        };
        let figures = FIGURES.iter();
        Ok(figures
            .map(|(metric, value)| template.row(metric, value(&measured)))
            .collect())
    }
}
