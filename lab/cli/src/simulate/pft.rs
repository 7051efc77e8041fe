//! `brickyard simulate pft`: page faults a second by the number of CPUs, on a simulated machine.
//! Its rows are those of `brickyard bench pft`, which uses real threads.

use brickyard_bench::pft::{FAULTS_CPU, FAULTS_SEC, FREES_CPU};
use brickyard_machine::Profile;
use brickyard_report::{Metric, Results, Row, counted};
use brickyard_simulate::pft::{Measured, Pft as Experiment};
use brickyard_simulate::setting::{FRAME_BYTES, usual_frames};
use clap::Args;

use super::setup::{Line, Samples, Setup, profile, simulated};
use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output::Output;

/// The options of `brickyard simulate pft`.
///
/// A process on each CPU faults in its share of the pages: the profile's time for trap and page
/// table, one allocation, the writes to the kernel's record of the frame, and the clearing of the
/// page. Then each exits and frees its pages in lists of 14. Both run once as a warm-up before they
/// are measured. `faults/cpu` are faults per second of CPU time, `faults/sec` faults per second,
/// `frees/cpu` pages freed by exits per second of CPU time, `lines/fault` the cache lines that a
/// CPU took from other CPUs' caches for a fault, or whose copies there it ended. The document of
/// 2013 has 1 to 8 CPUs on `i7-2013` and 20 runs; its `vanilla`, Linux 3.9, is `list-2007` here.
#[derive(Debug, Args)]
pub(crate) struct Pft {
    /// The machine: metatm-2007, xeon-x5355, bl460c-g1, i7-2013 or many-core. Each can have any
    /// number of CPUs, see --cpus.
    #[arg(long, default_value = "i7-2013", value_parser = profile, value_name = "NAME")]
    profile: &'static Profile,
    /// Memory that all processes fault in together; the document used a fifth of the memory.
    #[arg(long, default_value = "400M", value_parser = zone_bytes, value_name = "BYTES")]
    touched: usize,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    output: Output,
}

/// A metric, and its value for a run.
type Figure = (Metric<'static>, fn(&Measured) -> f64);

/// Cache lines taken from other CPUs, for each fault.
const LINES: Metric<'static> = Metric::lower("lines/fault", "lines");

/// The metrics in the order of their lines.
const METRICS: [Figure; 4] = [
    (FAULTS_CPU, Measured::faults_per_cpu_second),
    (FAULTS_SEC, Measured::faults_per_second),
    (FREES_CPU, Measured::frees_per_cpu_second),
    (LINES, Measured::lines_per_fault),
];

impl Pft {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.setup.validate()?;
        let experiment = self.experiment()?;
        self.output.check()?;
        let line = |&cpus: &usize| {
            let needed = experiment.frames_needed(cpus);
            Line {
                cpus,
                needed,
                usual: usual_frames(needed),
            }
        };
        let lines: Vec<Line> = self.setup.cpus().iter().map(line).collect();
        let run = |_: usize, setting: &_| experiment.run(setting);
        let samples = self.setup.measure(self.profile, &lines, run)?;
        let results = self.results(&samples)?;
        self.output.emit(&results, &|workload, metric| {
            workload.replacen("threads", metric, 1)
        })
    }

    fn experiment(&self) -> Result<Experiment, Misuse> {
        let pages = self.touched / FRAME_BYTES;
        let most = self.setup.cpus().iter().max().copied().unwrap_or(1);
        // With fewer pages, startup effects would dominate.
        let least = most.saturating_mul(64);
        if pages < least {
            let kib = least.saturating_mul(FRAME_BYTES) >> 10;
            return Err(Misuse::new(format!(
                "--touched is too little for {}; give at least {kib}K",
                counted(most, "CPU", "CPUs")
            )));
        }
        Ok(Experiment { pages })
    }

    fn results(&self, samples: &[Samples<Measured>]) -> anyhow::Result<Results> {
        let title = format!("pft on {}", self.profile.name);
        let mut results = Results::new(title, simulated(self.profile));
        for (metric, value) in METRICS {
            for (cpus, of_cpus) in self.setup.cpus().iter().zip(samples) {
                for (config, runs) in self.setup.configs().iter().zip(of_cpus) {
                    if !runs.is_empty() {
                        let values = runs.iter().map(value).collect();
                        // The name that `bench pft` gives its rows: one thread per CPU.
                        let workload = format!("threads-{cpus}");
                        let row = Row::new(config.name(), workload, metric, values)?;
                        results.push(row.exact())?;
                    }
                }
            }
        }
        Ok(results)
    }
}
