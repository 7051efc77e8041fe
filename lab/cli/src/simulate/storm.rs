//! `brickyard simulate storm`: all CPUs of a simulated machine allocate and free pages as fast as
//! they can.

use brickyard_machine::Profile;
use brickyard_report::{Metric, Results, Row};
use brickyard_simulate::setting::usual_frames;
use brickyard_simulate::storm::{Latency, Measured, Shape, Storm as Experiment};
use clap::{Args, ValueEnum};

use super::setup::{Line, Samples, Setup, profile, simulated};
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// The options of `brickyard simulate storm`.
///
/// Each CPU allocates bursts of pages and frees them in random order, and does nothing else.
/// Throughput, latencies and cache traffic are those of the measured part, after a warm-up that is
/// half as long. CSV and JSON have the 95 % interval of each mean. `speed-up` is the throughput
/// compared with one CPU, where --cpus includes 1; a single CPU sends `remote` pages to itself, so
/// they never leave its cache.
#[derive(Debug, Args)]
pub(crate) struct Storm {
    /// The bursts: `hot`, 1 to 24 pages, stays inside the per-CPU caches; `deep`, 1 to 2000,
    /// empties and overfills them; `remote`, 1 to 64, is freed by the next CPU.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "hot,deep,remote",
        value_name = "SHAPES"
    )]
    shape: Vec<Shape>,
    /// The machine: metatm-2007, xeon-x5355, bl460c-g1, i7-2013 or many-core.
    #[arg(long, default_value = "metatm-2007", value_parser = profile, value_name = "NAME")]
    profile: &'static Profile,
    /// Pages that each CPU allocates and frees in the measured part.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pages: usize,
    /// The unit of latencies: cycles, or the time of one fetch from the profile's memory.
    #[arg(long, value_enum, default_value_t = Unit::Cycles, value_name = "UNIT")]
    unit: Unit,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    output: Output,
}

/// The unit of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    Cycles,
    /// The time to fetch a line from the local memory.
    MemoryLatencies,
}

/// A storm on a number of CPUs.
#[derive(Debug, Clone, Copy)]
struct Case {
    storm: Experiment,
    cpus: usize,
}

const RATE: Metric<'static> = Metric::higher("pages/s", "pages/s");

const SPEED_UP: Metric<'static> = Metric::higher("speed-up", "times one CPU");

const LINES: Metric<'static> = Metric::lower("lines/page", "cache lines moved");

const ACCESSES: Metric<'static> = Metric::lower("accesses/page", "accesses to shared memory");

const LINE_WAITS: Metric<'static> = Metric::lower("line waits", "% of CPU time");

const LOCK_WAITS: Metric<'static> = Metric::lower("lock waits", LINE_WAITS.unit);

/// A percentile by its name.
type Percentile = (&'static str, fn(&Latency) -> u64);

/// The percentiles that are printed.
const PERCENTILES: [Percentile; 4] = [
    ("p50", |latency| latency.p50),
    ("p99", |latency| latency.p99),
    ("p99.9", |latency| latency.p999),
    ("max", |latency| latency.max),
];

/// The frames of a machine for each of its CPUs: 256 MiB, little for machines of so many CPUs. With
/// less, a design whose caches are a share of the memory is measured at the size of that share.
const FRAMES_A_CPU: usize = 1 << 16;

impl Storm {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        let cases: Vec<Case> = self.cases().collect();
        let line = |case: &Case| {
            let needed = case.storm.frames_needed(case.cpus);
            Line {
                cpus: case.cpus,
                needed,
                usual: usual_frames(needed).max(case.cpus.saturating_mul(FRAMES_A_CPU)),
            }
        };
        let lines: Vec<Line> = cases.iter().map(line).collect();
        let run = |place: usize, setting: &_| cases[place].storm.run(setting);
        let samples = self.setup.measure(self.profile, &lines, run)?;
        let results = self.results(&cases, &samples)?;
        self.output.emit(&results, &|workload, metric| {
            if metric == RATE.name {
                workload.to_owned()
            } else {
                format!("  {metric}")
            }
        })
    }

    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([("shape", has_twice(&self.shape))])?;
        at_least_one([("pages", Some(self.pages))])?;
        self.setup.validate()
    }

    fn cases(&self) -> impl Iterator<Item = Case> {
        self.shape.iter().flat_map(|&shape| {
            let pages = self.pages;
            self.setup.cpus().iter().map(move |&cpus| Case {
                storm: Experiment { shape, pages },
                cpus,
            })
        })
    }

    fn results(&self, cases: &[Case], samples: &[Samples<Measured>]) -> anyhow::Result<Results> {
        let title = format!("storm on {}", self.profile.name);
        let mut results = Results::new(title, simulated(self.profile));
        for (case, of_case) in cases.iter().zip(samples) {
            let alone = cases.iter().zip(samples).find_map(|(other, of_other)| {
                let same = other.storm == case.storm && other.cpus == 1;
                same.then_some(of_other)
            });
            for (column, runs) in of_case.iter().enumerate() {
                if runs.is_empty() {
                    continue;
                }
                let alone = alone.map_or(&[][..], |alone| &alone[column]);
                let config = self.setup.configs()[column].name();
                let workload = format!("{} cpus-{}", case.storm.shape, case.cpus);
                self.figures(case.cpus, runs, alone, |metric, values| {
                    let row = Row::new(config, &workload, metric, values)?;
                    Ok(results.push(row.exact())?)
                })?;
            }
        }
        Ok(results)
    }

    /// Pushes all figures of one configuration's runs, in the order of the table's lines; the
    /// speed-up compares each run with the one in `alone` with the same seed, if there is one.
    fn figures(
        &self,
        cpus: usize,
        runs: &[Measured],
        alone: &[Measured],
        mut push: impl FnMut(Metric<'_>, Vec<f64>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let each = |value: &dyn Fn(&Measured) -> f64| runs.iter().map(value).collect();
        push(RATE, each(&|run| run.pages_per_second))?;
        if !alone.is_empty() {
            let pairs = runs.iter().zip(alone);
            let times = pairs.map(|(run, one)| run.pages_per_second / one.pages_per_second);
            push(SPEED_UP, times.collect())?;
        }
        for (side, of) in [
            ("alloc", (|run| run.alloc) as fn(&Measured) -> Latency),
            ("free", |run| run.free),
        ] {
            for (percentile, figure) in PERCENTILES {
                let name = format!("{side} {percentile}");
                let values = each(&|run| self.in_unit(figure(&of(run))));
                push(Metric::lower(&name, self.unit.name()), values)?;
            }
        }
        let accesses = each(&|run| run.accesses as f64 / run.pages as f64);
        push(ACCESSES, accesses)?;
        push(LINES, each(&Measured::lines_per_page))?;
        push(LINE_WAITS, each(&|run| run.line_waits_percent(cpus)))?;
        push(LOCK_WAITS, each(&|run| run.lock_waits_percent(cpus)))
    }

    fn in_unit(&self, cycles: u64) -> f64 {
        match self.unit {
            Unit::Cycles => cycles as f64,
            Unit::MemoryLatencies => cycles as f64 / self.profile.memory_cycles as f64,
        }
    }
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::MemoryLatencies => "memory latencies",
        }
    }
}
