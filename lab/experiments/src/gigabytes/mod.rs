//! `gigabytes`: how many gigabytes kernel memory spoils while memory is full. No document has it;
//! `bench::gigabytes` has the load. Nothing is timed, so a seed gives the same numbers on every
//! machine.

use brickyard_bench::gigabytes::{Outcome, Spread, Swings, spoilt};
use brickyard_designs::classics::Configuration;
use brickyard_results::{Metric, bytes_text};
use brickyard_run::memory::available;

use crate::cell::{Cell, Scale};
use crate::cells::rows::{HOST, RowTemplate};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "gigabytes",
    about: "Gigabytes and page blocks that kernel memory spoils while memory is full",
    forms: &[Form::new(On::Host, 3, PARAMETERS, cells)],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "brickyard,linux-6.18,combined-2007,vanilla",
        "designs, the first is the baseline; see `brickyard help designs`",
    ),
    Parameter::new(
        "memory",
        "8G,64G",
        "memory of the machines; real are up to 1.5 % of it, for metadata and lists of what is in use",
    ),
    Parameter::new(
        "swings",
        "3",
        "times that kernel memory grows to its peak and shrinks again",
    ),
    Parameter::new("least", "7", "kernel memory at its least, in thousandths"),
    Parameter::new("peak", "47", "kernel memory at its peak, in thousandths"),
    Parameter::new("free", "15", "what is kept free, in thousandths"),
    Parameter::new("pinned", "1", "cache that is pinned, in thousandths"),
];

/// Fewer gigabytes say nothing.
const LEAST_MEMORY: usize = 4 << 30;

/// More frames have no number of 32 bits.
const MOST_MEMORY: usize = 8 << 40;

/// One byte in so many of a machine's memory is real.
const ONE_IN_REAL: usize = 64;

const TAINTED: Metric<'static> = Metric::lower("tainted", "gigabytes");
const TAINTED_TO_LEAST: Metric<'static> = Metric::lower("tainted-to-least", "ratio");
const MOVABLE: Metric<'static> = Metric::higher("movable", "gigabytes");
const BLOCKS: Metric<'static> = Metric::lower("tainted-blocks", "page blocks");
const BLOCKS_TO_LEAST: Metric<'static> = Metric::lower("tainted-blocks-to-least", "ratio");
const FAILED: Metric<'static> = Metric::lower("failed", "requests");

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let configs: Vec<Configuration> = settings.list("config")?;
    let memories = settings.all_bytes("memory")?;
    let swings = Swings {
        swings: settings.count("swings")?,
        least: settings.count("least")?,
        peak: settings.count("peak")?,
        free: settings.count("free")?,
        pinned: settings.count("pinned")?,
        seed: 0,
    };
    if swings.peak <= swings.least {
        return Err(wrong("peak", "it must be more than `least`"));
    }
    if swings.peak + swings.free + swings.pinned >= 500 {
        let why = "with `free` and `pinned` it must leave more than a half to the cache";
        return Err(wrong("peak", why));
    }
    let available = available().unwrap_or(usize::MAX);
    for &memory in &memories {
        if !(LEAST_MEMORY..=MOST_MEMORY).contains(&memory) {
            let why = format_args!(
                "{} is not from {} to {}",
                bytes_text(memory),
                bytes_text(LEAST_MEMORY),
                bytes_text(MOST_MEMORY)
            );
            return Err(wrong("memory", why));
        }
        if memory / ONE_IN_REAL > available {
            let why = format_args!(
                "{} would use {} MiB of this host's memory, and {} MiB are available; \
                 give at most {}M",
                bytes_text(memory),
                (memory / ONE_IN_REAL) >> 20,
                available >> 20,
                available.saturating_mul(ONE_IN_REAL) >> 20
            );
            return Err(wrong("memory", why));
        }
    }
    let suffix = settings.suffix(&["swings", "least", "peak", "free", "pinned"]);
    let mut cells = Vec::new();
    for &memory in &memories {
        let of = format!("memory-{}{suffix}", bytes_text(memory));
        for run in 1..=settings.runs {
            cells.extend(configs.iter().map(|&config| {
                let of = of.clone();
                Cell {
                    name: format!("gigabytes.host.{of}.{config}.{run}"),
                    kind: Method::Simulated,
                    scale: Scale::Full,
                    seconds: 1.5e-10 * memory as f64 * (1.0 + swings.swings as f64),
                    work: Box::new(move |context| {
                        let seed = context.seed_of(run);
                        let outcome = spoilt(config, memory, Swings { seed, ..swings })?;
                        Ok(rows(&outcome, &of, config, run).into())
                    }),
                }
            }));
        }
    }
    Ok(cells)
}

fn rows(outcome: &Outcome, of: &str, config: Configuration, run: u32) -> Vec<Raw> {
    let mut rows = Vec::new();
    for (when, spread) in ["peak", "end"].iter().zip(&outcome.spread) {
        let Spread {
            tainted,
            least,
            movable,
        } = *spread;
        let ratio = |i: usize| tainted[i] as f64 / least[i].max(1) as f64;
        let workload = format!("{when} {of}");
        let template = RowTemplate {
            machine: HOST,
            workload: &workload,
            config: config.name(),
            run,
        };
        rows.extend([
            template.row(&TAINTED, tainted[0] as f64),
            template.row(&TAINTED_TO_LEAST, ratio(0)),
            template.row(&MOVABLE, movable[0] as f64),
            template.row(&BLOCKS, tainted[1] as f64),
            template.row(&BLOCKS_TO_LEAST, ratio(1)),
        ]);
        if *when == "end" {
            rows.push(template.row(&FAILED, outcome.failed as f64));
        }
    }
    rows
}
