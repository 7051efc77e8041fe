//! `brickyard simulate kernbench`: `make -j` on a simulated machine, from a recorded build.

use std::path::{Path, PathBuf};

use anyhow::Context;
use brickyard_machine::Profile;
use brickyard_report::{Metric, Results, Row, counted};
use brickyard_simulate::kernbench::{Kernbench as Experiment, Measured};
use brickyard_simulate::setting::usual_frames;
use brickyard_trace::file;
use brickyard_workload::jobs::{Cut, Job, Workload, cut};
use clap::Args;

use super::setup::{Line, Samples, Setup, profile, simulated};
use brickyard_measure::command::misuse::at_least_one;
use brickyard_measure::command::output::Output;

/// The options of `brickyard simulate kernbench`.
///
/// A pool of workers takes compile jobs until all are done. A job computes as long as the recorded
/// one did, and allocates and frees the same pages; what it leaves behind is page cache. User time
/// is all that comes between two requests of the recorded job, its system calls included; system
/// time is the allocator, switches and ticks. The rows are those of mmtests: minimum, mean (with
/// its deviation below), CoeffVar and maximum of all runs.
#[derive(Debug, Args)]
pub(crate) struct Kernbench {
    /// The machine: metatm-2007, xeon-x5355, bl460c-g1, i7-2013 or many-core. Each can have any
    /// number of CPUs, see --cpus.
    #[arg(long, default_value = "i7-2013", value_parser = profile, value_name = "NAME")]
    profile: &'static Profile,
    /// What is compiled: kernel or pmake.
    #[arg(long, default_value = "kernel", value_parser = workload, value_name = "NAME")]
    workload: Workload,
    /// Compile jobs in all; those of the trace are repeated.
    #[arg(long, default_value_t = 400, value_name = "N")]
    compiles: usize,
    /// Compile jobs at once per CPU: make's -j divided by the number of CPUs.
    #[arg(long, default_value_t = 2, value_name = "N")]
    workers: usize,
    /// Where the traces are: kernel.parquet and pmake.parquet.
    #[arg(long, default_value = "traces", value_name = "DIR")]
    traces: PathBuf,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    output: Output,
}

/// Parses the name of a workload that is a pool of jobs.
fn workload(name: &str) -> Result<Workload, String> {
    match Workload::by_name(name) {
        Ok(workload) if matches!(workload.cut, Cut::ByProcess(_)) => Ok(workload),
        _ => Err("the workloads are kernel and pmake".to_owned()),
    }
}

/// A metric, and its value for a build.
type Figure = (Metric<'static>, fn(&Measured) -> f64);

/// The figures of a build.
const FIGURES: [Figure; 4] = [
    (milliseconds("user"), |run| run.user * 1e3),
    (milliseconds("system"), |run| run.system * 1e3),
    (milliseconds("elapsed"), |run| run.elapsed * 1e3),
    (Metric::higher("CPU", "% of one CPU"), Measured::cpu_percent),
];

/// In milliseconds, because the allocator's time would not show in two decimals of a second.
const fn milliseconds(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "ms")
}

impl Kernbench {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.setup.validate()?;
        at_least_one([
            ("compiles", Some(self.compiles)),
            ("workers", Some(self.workers)),
        ])?;
        self.output.check()?;
        let recorded = self.recorded()?;
        let builds: Vec<Experiment<'_>> = self.builds(&recorded).collect();
        let line = |(&cpus, build): (&usize, &Experiment<'_>)| {
            let needed = build.frames_needed(cpus);
            Line {
                cpus,
                needed,
                usual: usual_frames(needed),
            }
        };
        let lines: Vec<Line> = self.setup.cpus().iter().zip(&builds).map(line).collect();
        let run = |place: usize, setting: &_| builds[place].run(setting);
        let samples = self.setup.measure(self.profile, &lines, run)?;
        warn_of_failures(&samples);
        self.output
            .emit(&self.results(&samples)?, &|workload, metric| {
                format!("{workload} {metric}")
            })
    }

    fn recorded(&self) -> anyhow::Result<Vec<Job>> {
        let name = Path::new(self.workload.trace).file_name();
        let path = self.traces.join(name.unwrap_or_default());
        let cannot = || {
            let path = path.display();
            format!("cannot read the build in {path}; give the traces' directory with --traces DIR")
        };
        let trace = file::read(&path).with_context(cannot)?;
        cut(&trace, &self.workload.how()).with_context(cannot)
    }

    fn builds<'j>(&self, recorded: &'j [Job]) -> impl Iterator<Item = Experiment<'j>> {
        self.setup.cpus().iter().map(move |&cpus| Experiment {
            recorded,
            jobs: self.compiles,
            workers: self.workers.saturating_mul(cpus),
        })
    }

    fn results(&self, samples: &[Samples<Measured>]) -> anyhow::Result<Results> {
        let title = format!(
            "kernbench on {}, {} compiles of {}",
            self.profile.name, self.compiles, self.workload.name
        );
        let mut results = Results::new(title, simulated(self.profile));
        for (cpus, of_cpus) in self.setup.cpus().iter().zip(samples) {
            for figure in &FIGURES {
                self.push(&mut results, *cpus, figure, of_cpus)?;
            }
        }
        Ok(results)
    }

    /// Pushes the rows of one figure as in mmtests: one per statistic.
    fn push(
        &self,
        results: &mut Results,
        cpus: usize,
        &(metric, of): &Figure,
        samples: &Samples<Measured>,
    ) -> anyhow::Result<()> {
        let workload = format!("-j{} cpus-{cpus}", self.workers.saturating_mul(cpus));
        for statistic in ["min", "mean", "CoeffVar", "max"] {
            for (config, runs) in self.setup.configs().iter().zip(samples) {
                let values: Vec<f64> = runs.iter().map(of).collect();
                let name = format!("{} {statistic}", metric.name);
                let metric = Metric::new(&name, metric.unit, metric.better);
                let all = Row::new(config.name(), &workload, metric, values)?.exact();
                let summary = all.summary();
                let of_all = |metric, value: Option<f64>| {
                    let values = value.into_iter().collect();
                    Row::new(config.name(), &workload, metric, values).map(Row::exact)
                };
                let row = match statistic {
                    "min" => of_all(metric, summary.min())?,
                    "max" => of_all(metric, summary.max())?,
                    "CoeffVar" => {
                        let metric = Metric::lower(&name, "% of the mean");
                        of_all(metric, summary.variation_percent())?
                    }
                    _ => all,
                };
                if row.summary().n() > 0 {
                    results.push(row)?;
                }
            }
        }
        Ok(())
    }
}

/// Warns of failed requests, which make a build look faster than it is.
fn warn_of_failures(samples: &[Samples<Measured>]) {
    let runs = samples.iter().flatten().flatten();
    let failed: u64 = runs.map(|run| run.counts.failed).sum();
    if failed > 0 {
        eprintln!(
            "brickyard: {} failed for lack of memory; give more --memory",
            counted(failed, "request", "requests")
        );
    }
}
