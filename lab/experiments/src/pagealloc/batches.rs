//! Single pages in batches of 1 to 16384, allocated and freed by one thread of this host. Each
//! round is a cell: every configuration has a turn in it, in which it runs all batches, and the two
//! of the document another one, in which masks of interrupts cost nothing.

use core::time::Duration;

use anyhow::Context as _;
use brickyard_designs::classics::Configuration;
use brickyard_results::Metric;

use crate::raw::{Raw, SITTING};

use crate::cell::Cell;
use crate::cells::configs::MaskedConfiguration;
use crate::cells::timed::{Round, TimedExperiment};
use brickyard_bench::conditions::Conditions;
use brickyard_bench::contestant::Contestant;
use brickyard_bench::machine::Level;
use brickyard_bench::rounds::{Pace, Rounds};
use brickyard_bench::schedule::Schedule;

/// The configurations that take turns: all of them, the baseline of 2013 first.
const CONFIGURATIONS: [Configuration; 7] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Vanilla,
    Configuration::TwoKinds2005,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// Quick rounds: a sitting, which decides nothing by itself.
const QUICK_ROUNDS: u32 = SITTING;

/// The largest batch: 64 MiB of pages.
const MOST_BATCH: usize = 16384;

/// The least time that a sample's loop runs.
const SAMPLE: Duration = Duration::from_millis(4);

pub(super) const METRICS: [Metric<'static>; 3] =
    [ns_a_page("alloc"), ns_a_page("free"), ns_a_page("total")];

const fn ns_a_page(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "ns/page")
}

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "pagealloc.host.batches",
        quick: QUICK_ROUNDS,
        seconds: 2.2,
        work: rows,
    };
    timed.cells()
}

/// Runs each configuration once.
fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let schedule = Schedule {
        most_batch: MOST_BATCH,
        ..Schedule::plain(&[Level::Node])
    };
    let workloads = schedule.workloads();
    let batches = Rounds {
        workloads: &workloads,
        pace: Pace::Sample(SAMPLE),
        step: &|| {},
    };
    let compared = MaskedConfiguration::each(&CONFIGURATIONS);
    let taken = round.turns("batches", 1, &compared, |config| {
        let conditions = Conditions {
            masking: config.masking,
            ..Conditions::USUAL
        };
        conditions.turn(&Contestant::Configuration(config.configuration), &batches)
    })?;
    let mut rows = Vec::new();
    for (config, taken) in taken {
        for (workload, sample) in workloads.iter().zip(taken.0) {
            let sample = sample
                .with_context(|| format!("{config} had too few free pages for {workload}"))?;
            let workload = config.workload(&workload.to_string());
            let template = round.template(&workload, config.configuration.name());
            let values = [sample.alloc, sample.free, sample.total];
            let of_sample = METRICS.iter().zip(values);
            rows.extend(of_sample.map(|(metric, value)| template.row(metric, value)));
        }
    }
    Ok(rows)
}
