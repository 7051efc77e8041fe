//! `scarce`: requests when memory is nearly exhausted, on machines of several sizes, with a thread
//! of this host. No document has it; `bench::scarce` has the tests.

use core::time::Duration;

use brickyard_bench::machine::Level;
use brickyard_bench::scarce::{Asking, QUESTIONS};
use brickyard_designs::classics::Configuration;
use brickyard_results::{Metric, bytes_text};
use brickyard_run::memory::available;

use crate::cell::Cell;
use crate::cells::timed::{Round, TimedExperiment};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "scarce",
    about: "Requests when memory is nearly exhausted: one that must fail, one that must find a block",
    forms: &[Form::new(On::Host, 5, PARAMETERS, cells)],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "brickyard,list-2007",
        "designs, the first is the baseline; see `brickyard help designs`",
    ),
    Parameter::new(
        "memory",
        "1G,4G,16G,64G",
        "memory of the machines; real are up to 0.3 % of it for metadata, and 0.2 % for a list of the allocated blocks",
    ),
    Parameter::new(
        "level",
        "node",
        "levels that requests enter at: node, as in a kernel with several zones, or zone",
    ),
    Parameter::new(
        "mobility",
        "unmovable",
        "mobility of the requests: unmovable, movable or reclaimable",
    ),
    Parameter::new("sample-us", "1000", "least time of a sample's loop, in us"),
];

/// Below this, half of a zone for movable pages would have no two huge blocks.
const LEAST_MEMORY: usize = 16 << 20;

/// One byte in so many of a machine's memory is real: metadata, and the list of allocated blocks.
const ONE_IN_REAL: usize = 200;

const REQUEST: Metric<'static> = Metric::lower("request", "ns/request");

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let configs: Vec<Configuration> = settings.list("config")?;
    let memories = settings.all_bytes("memory")?;
    if let Some(memory) = memories.iter().find(|&&memory| memory < LEAST_MEMORY) {
        let why = format_args!(
            "{} has too few huge blocks; give at least {}",
            bytes_text(*memory),
            bytes_text(LEAST_MEMORY)
        );
        return Err(wrong("memory", why));
    }
    let most = memories.iter().max().copied().unwrap_or(0);
    has_room_for(most, available().unwrap_or(usize::MAX))?;
    let levels: Vec<Level> = settings.list("level")?;
    let mobility = settings.mobility()?;
    let least = Duration::from_micros(settings.count("sample-us")? as u64);
    let suffix = settings.suffix(&["mobility"]);
    let machines = memories.len() * levels.len() * configs.len();
    let timed = TimedExperiment {
        name: "scarce.host.requests",
        quick: 0,
        // Five tests; and the memory is allocated page by page.
        seconds: machines as f64 * (6.25 * least.as_secs_f64() + 2e-10 * most as f64),
        work: move |mut round: Round<'_>| {
            let mut rows = Vec::new();
            for &level in &levels {
                let asking = Asking {
                    mobility,
                    level,
                    least,
                };
                for &memory in &memories {
                    let level = match level {
                        Level::Node => "",
                        Level::Zone => " level-zone",
                    };
                    let what = format!("memory-{}{level}", bytes_text(memory));
                    let taken = round.turns(&what, 1, &configs, |one| asking.of(one, memory))?;
                    for (config, answers) in taken.in_order_of(&configs) {
                        for (question, ns) in QUESTIONS.iter().zip(answers) {
                            let workload = format!("{question} {what}{suffix}");
                            let template = round.template(&workload, config.name());
                            rows.push(template.row(&REQUEST, ns));
                        }
                    }
                }
            }
            Ok(rows)
        },
    };
    Ok(timed.rounds(settings.runs))
}

/// Fails if what is real of a machine's memory is more than this host's available memory.
fn has_room_for(memory: usize, available: usize) -> Result<(), Refusal> {
    let needed = memory / ONE_IN_REAL;
    if needed <= available {
        return Ok(());
    }
    Err(wrong(
        "memory",
        format_args!(
            "{} would use {} MiB of this host's memory, and {} MiB are available; give at most {}M",
            bytes_text(memory),
            needed >> 20,
            available >> 20,
            available.saturating_mul(ONE_IN_REAL) >> 20
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_whose_metadata_this_host_cannot_hold_is_refused() {
        assert!(has_room_for(200 << 30, 1 << 30).is_ok());
        let refused = has_room_for(10 << 40, 1 << 30);
        let why = refused.map_err(|why| why.to_string()).unwrap_err();
        assert!(why.contains("at most 204800M"), "{why}");
        assert!(has_room_for(204_800 << 20, 1 << 30).is_ok());
    }
}
