//! `storm`: all CPUs of a simulated machine allocate and free pages as fast as they can, and do
//! nothing else. No document has it.
//!
//! Throughput, latencies and cache traffic are those of the measured part, after a warm-up that is
//! half as long.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_simulate::setting::usual_frames;
use brickyard_simulate::storm::{Latency, Shape, Storm, StormRun};
use brickyard_simulate::{Configuration, Setting};

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::{CONFIG, CPUS, Frames, MEMORY, frames, sweep};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "storm",
    about: "All CPUs allocate and free as fast as they can: throughput, latencies, cache lines",
    forms: &[Form::new(
        On::Simulated("metatm-2007"),
        5,
        PARAMETERS,
        cells,
    )],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "shape",
        "hot,deep,remote",
        "bursts: hot, 1 to 24 pages, stays inside the per-CPU caches; deep, 1 to 2000, empties and overfills them; remote, 1 to 64, is freed by the next CPU, or by the same where there is one",
    ),
    CPUS,
    CONFIG,
    Parameter::new(
        "pages",
        "10000",
        "pages that each CPU allocates and frees in the measured part",
    ),
    Parameter::new(
        "unit",
        "cycles",
        "unit of latencies: cycles, or memory-latencies, the time of one fetch from the local memory",
    ),
    MEMORY,
];

/// The frames of a machine for each of its CPUs: 256 MiB, little for machines of so many CPUs. With
/// less, a design whose caches are a share of the memory is measured at the size of that share.
const FRAMES_A_CPU: usize = 1 << 16;

const THROUGHPUT: Metric<'static> = Metric::higher("throughput", "pages/s");

/// One run.
#[derive(Debug, Clone, Copy)]
struct Run {
    storm: Storm,
    profile: &'static Profile,
    cpus: usize,
    frames: usize,
    configuration: Configuration,
    /// The cycles of the unit of latencies, and its name.
    unit: (u64, &'static str),
    run: u32,
}

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let profile = settings.profile()?;
    let pages = settings.count("pages")?;
    let unit = match settings.text("unit") {
        "cycles" => (1, "cycles"),
        "memory-latencies" => (profile.memory_cycles, "memory latencies"),
        _ => return Err(wrong("unit", "it is cycles or memory-latencies")),
    };
    let shapes = settings.list::<Shape>("shape")?;
    let cpus = settings.cpus("cpus")?;
    let machines: Vec<Frames> = shapes
        .iter()
        .flat_map(|&shape| cpus.iter().map(move |&cpus| (Storm { shape, pages }, cpus)))
        .map(|(storm, cpus)| {
            let needed = storm.frames_needed(cpus);
            Frames {
                cpus,
                needed,
                usual: usual_frames(needed).max(cpus.saturating_mul(FRAMES_A_CPU)),
            }
        })
        .collect();
    let frames = frames(settings, &machines)?;
    let mut cells = Vec::new();
    for shape in shapes {
        cells.extend(sweep(settings, |cpus, configuration, run| {
            let run = Run {
                storm: Storm { shape, pages },
                profile,
                cpus,
                frames,
                configuration,
                unit,
                run,
            };
            run.cell()
        })?);
    }
    Ok(cells)
}

impl Run {
    fn cell(self) -> Cell {
        let (machine, cpus) = (self.profile.name, self.cpus);
        let (shape, config, run) = (self.storm.shape, self.configuration, self.run);
        Cell {
            name: format!("storm.{machine}.{shape}-{cpus}.{config}.{run}"),
            kind: Method::Simulated,
            scale: Scale::Full,
            // Waits are many simulated accesses.
            seconds: 6e-6 * (self.storm.pages * cpus) as f64,
            work: Box::new(move |context| Ok(self.rows(&context)?.into())),
        }
    }

    fn rows(&self, context: &Context<'_>) -> anyhow::Result<Vec<Raw>> {
        let measured = self.storm.run(&Setting {
            profile: self.profile,
            cpus: self.cpus,
            configuration: self.configuration,
            frames: self.frames,
            seed: context.seed_of(self.run),
            more_instructions: 0,
        })?;
        let workload = format!("{} cpus-{}", self.storm.shape, self.cpus);
        let template = RowTemplate {
            machine: self.profile.name,
            workload: &workload,
            config: self.configuration.name(),
            run: self.run,
        };
        let mut rows = vec![template.row(&THROUGHPUT, measured.pages_per_second)];
        for (side, latency) in [("alloc", measured.alloc), ("free", measured.free)] {
            for (percentile, cycles) in percentiles(&latency) {
                let (length, unit) = self.unit;
                let name = format!("{side}-{percentile}");
                let metric = Metric::lower(&name, unit);
                rows.push(template.row(&metric, cycles as f64 / length as f64));
            }
        }
        let traffic = traffic(&measured, self.cpus);
        rows.extend(traffic.map(|(metric, value)| template.row(&metric, value)));
        Ok(rows)
    }
}

fn percentiles(latency: &Latency) -> [(&'static str, u64); 4] {
    [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ]
}

fn traffic(run: &StormRun, cpus: usize) -> [(Metric<'static>, f64); 4] {
    let lower = Metric::lower;
    let accesses = run.accesses as f64 / run.pages as f64;
    let share = "% of CPU time";
    [
        (
            lower("accesses", "accesses to shared memory/page"),
            accesses,
        ),
        (
            lower("lines", "cache lines moved/page"),
            run.lines_per_page(),
        ),
        (lower("line-waits", share), run.line_waits_percent(cpus)),
        (lower("lock-waits", share), run.lock_waits_percent(cpus)),
    ]
}
