//! How long an allocation takes when all CPUs of a simulated machine allocate and free at once, in
//! bursts that empty and overfill every per-CPU cache; each run a cell.
//!
//! With more CPUs each counts fewer pages: the percentiles are over the pages of all CPUs together.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_simulate::storm::{Latency, Shape, Storm};
use brickyard_simulate::{Configuration, Setting};

use crate::raw::Method;

use crate::cell::{Cell, Scale};
use crate::cells::rows::RowTemplate;
use brickyard_simulate::setting::usual_frames;

const MACHINE: &str = "metatm-2007";

/// The number of CPUs, and the pages that each allocates and frees while they are counted.
const MACHINES: [(usize, usize); 3] = [(1, 20_000), (8, 3000), (32, 2000)];

const CONFIGURATIONS: [Configuration; 4] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Brickyard,
];

const RUNS: u32 = 5;

const THROUGHPUT: Metric<'static> = Metric::higher("throughput", "pages/s");

/// A percentile of the allocations' latencies.
type Percentile = (Metric<'static>, fn(&Latency) -> u64);

const PERCENTILES: [Percentile; 4] = [
    (cycles("alloc-p50"), |latency| latency.p50),
    (cycles("alloc-p90"), |latency| latency.p90),
    (cycles("alloc-p99"), |latency| latency.p99),
    (cycles("alloc-p99.9"), |latency| latency.p999),
];

const fn cycles(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "cycles")
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (cpus, pages) in MACHINES {
        for run in 1..=RUNS {
            cells.extend(CONFIGURATIONS.map(|configuration| cell(cpus, pages, configuration, run)));
        }
    }
    cells
}

fn cell(cpus: usize, pages: usize, configuration: Configuration, run: u32) -> Cell {
    Cell {
        name: format!("pagealloc.{MACHINE}.storm-{cpus}.{configuration}.{run}"),
        kind: Method::Simulated,
        // The plot of latencies needs one; nothing is judged.
        scale: Scale::quick_if(run == 1),
        seconds: seconds(cpus, pages, configuration),
        work: Box::new(move |context| {
            let shape = Shape::Deep;
            let storm = Storm { shape, pages };
            let measured = storm.run(&Setting {
                profile: Profile::by_name(MACHINE)?,
                cpus,
                configuration,
                frames: usual_frames(storm.frames_needed(cpus)),
                seed: context.seed_of(run),
                more_instructions: 0,
            })?;
            let template = RowTemplate {
                machine: MACHINE,
                workload: &format!("storm cpus-{cpus}"),
                config: configuration.name(),
                run,
            };
            let mut rows = vec![template.row(&THROUGHPUT, measured.pages_per_second)];
            let latencies = PERCENTILES.iter();
            rows.extend(latencies.map(|(metric, percentile)| {
                template.row(metric, percentile(&measured.alloc) as f64)
            }));
            Ok(rows.into())
        }),
    }
}

/// Estimates how many seconds a core of today takes for it: waits are many simulated accesses.
fn seconds(cpus: usize, pages: usize, configuration: Configuration) -> f64 {
    let accesses = match configuration {
        Configuration::Brickyard => 1.0,
        Configuration::Magazine2013 => 20.0 + cpus as f64,
        _ => 15.0,
    };
    0.6e-6 * (pages * cpus) as f64 * accesses
}
