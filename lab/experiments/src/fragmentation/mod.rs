//! `fragmentation`: how many huge blocks are left after random allocations and frees. No document
//! has it; `bench::fragmentation` has the load. Nothing is timed, so a seed gives the same number on
//! every machine.

use core::fmt;
use core::str::FromStr;

use brickyard_bench::fragmentation::{Churn, whole_huge};
use brickyard_bench::machine::FRAME_BYTES;
use brickyard_designs::classics::Configuration;
use brickyard_results::{Metric, bytes_text};

use crate::cell::{Cell, Scale};
use crate::cells::rows::{HOST, RowTemplate};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::raw::Method;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "fragmentation",
    about: "The share of free memory in whole huge blocks after random allocations and frees",
    forms: &[Form::new(On::Host, 5, PARAMETERS, cells)],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "auto",
        "designs, the first is the baseline; auto: all, see `brickyard help designs`",
    ),
    Parameter::new(
        "memory",
        "1G",
        "memory of the machine, of which only the metadata is real",
    ),
    Parameter::new(
        "rounds",
        "100",
        "rounds, each of which frees a tenth of the allocated pages and allocates as many",
    ),
    Parameter::new(
        "batch",
        "1,64,512,4096,round",
        "so many pages are freed before as many are allocated; round: all of a round",
    ),
    Parameter::new(
        "threads",
        "1,2",
        "threads with pages of their own, which take turns",
    ),
];

/// How many pages are freed in a row; `None`: all of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Batch(Option<usize>);

impl FromStr for Batch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("round", _) => Ok(Self(None)),
            (_, Ok(pages)) if pages > 0 => Ok(Self(Some(pages))),
            _ => Err(format!(
                "{text:?} is no number of pages above 0, and not `round`"
            )),
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pages) => pages.fmt(f),
            None => f.pad("round"),
        }
    }
}

/// Below this, half of the free memory of a zone for movable pages would not be two huge blocks.
const LEAST_MEMORY: usize = 16 << 20;

/// Fewer pages of a thread have no tenth.
const LEAST_PAGES: usize = 10;

const WHOLE_HUGE: Metric<'static> = Metric::higher("whole-huge", "percent");

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let configs = match settings.is_auto("config") {
        true => Configuration::ALL.to_vec(),
        false => settings.list("config")?,
    };
    let memory = settings.bytes("memory")?;
    if memory < LEAST_MEMORY {
        let least = bytes_text(LEAST_MEMORY);
        let memory = bytes_text(memory);
        let why = format_args!("{memory} has too few huge blocks; give at least {least}");
        return Err(wrong("memory", why));
    }
    let rounds = settings.count("rounds")?;
    let threads = settings.threads("threads", || vec![1])?;
    let most = threads.iter().max().copied().unwrap_or(1);
    if memory / FRAME_BYTES / 2 / most < LEAST_PAGES {
        let memory = bytes_text(memory);
        let why = format_args!("{memory} has too few pages for {most}; give fewer, or more memory");
        return Err(wrong("threads", why));
    }
    let mut cells = Vec::new();
    let size = bytes_text(memory);
    for batch in settings.list::<Batch>("batch")? {
        for &threads in &threads {
            let workload =
                format!("half-taken rounds-{rounds} memory-{size} batch-{batch} threads-{threads}");
            for run in 1..=settings.runs {
                cells.extend(configs.iter().map(|&config| {
                    let workload = workload.clone();
                    Cell {
                        name: format!(
                            "fragmentation.host.half-taken.{batch}.{threads}.{config}.{run}"
                        ),
                        kind: Method::Simulated,
                        scale: Scale::Full,
                        seconds: 6e-12 * memory as f64 * (rounds + 10) as f64,
                        work: Box::new(move |context| {
                            let churn = Churn {
                                rounds,
                                batch: batch.0,
                                threads,
                                seed: context.seed_of(run),
                            };
                            let share = whole_huge(config, memory, churn)?;
                            let template = RowTemplate {
                                machine: HOST,
                                workload: &workload,
                                config: config.name(),
                                run,
                            };
                            Ok(vec![template.row(&WHOLE_HUGE, share)].into())
                        }),
                    }
                }));
            }
        }
    }
    Ok(cells)
}
