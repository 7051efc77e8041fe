//! Single pages in batches of 1 to 16384, allocated and freed by one thread of this host. Each round is a cell: every configuration has a turn in it, in which it meets all batches.

use core::time::Duration;

use anyhow::{Context as _, bail};
use brickyard::Configuration;
use brickyard_report::{Better, Metric};
use brickyard_reproduce::raw::{Kind, Raw};

use crate::bench::conditions::Conditions;
use crate::bench::contestant::Contestant;
use crate::bench::machine::Level;
use crate::bench::rounds::{Rounds, Taken};
use crate::bench::schedule::Schedule;
use crate::reproduce::cell::{Cell, Context, Scale};
use crate::reproduce::cells::rows::{HOST, Of};

/// Who takes turns: all of them, the baseline of 2013 first.
const CONFIGURATIONS: [Configuration; 7] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Vanilla,
    Configuration::TwoKinds2005,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// Rounds, and how many of them are quick: the fewest by which a signed-rank test can call one of the document's 42 gains significant, corrected for all of them (2 / 2^11 x 42 < 0.05).
const ROUNDS: u32 = 15;
const QUICK_ROUNDS: u32 = 11;

/// The largest batch: 64 MiB of pages.
const MOST_BATCH: usize = 16384;

/// The least time that a sample's loop runs.
const SAMPLE: Duration = Duration::from_millis(4);

const METRICS: [Metric<'static>; 3] = [ns_a_page("alloc"), ns_a_page("free"), ns_a_page("total")];

const fn ns_a_page(name: &'static str) -> Metric<'static> {
    Metric {
        name,
        unit: "ns/page",
        better: Better::Lower,
    }
}

pub(super) fn cells() -> Vec<Cell> {
    (1..=ROUNDS).map(cell).collect()
}

fn cell(round: u32) -> Cell {
    Cell {
        name: format!("pagealloc.host.batches.{round}"),
        kind: Kind::Timed,
        scale: if round <= QUICK_ROUNDS {
            Scale::Quick
        } else {
            Scale::Full
        },
        seconds: 1.5,
        work: Box::new(move |context| Ok(rows(context, round)?.into())),
    }
}

/// Each configuration once; another one begins in each round.
fn rows(mut context: Context<'_>, round: u32) -> anyhow::Result<Vec<Raw>> {
    let schedule = Schedule {
        most_batch: MOST_BATCH,
        ..Schedule::plain(&[Level::Node])
    };
    let workloads = schedule.workloads();
    let rounds = Rounds {
        workloads: &workloads,
        least: SAMPLE,
        step: &|| {},
    };
    let warm_up = Rounds {
        workloads: &workloads[..1],
        ..rounds
    };
    let mut turn = |configuration, rounds: &Rounds<'_>| -> anyhow::Result<Taken> {
        let taken = Conditions::USUAL.turn(&Contestant::Configuration(configuration), rounds)?;
        if !context.follow.goes_on(0) {
            bail!("interrupted");
        }
        Ok(taken)
    };
    for configuration in CONFIGURATIONS {
        turn(configuration, &warm_up)?;
    }
    let mut rows = Vec::new();
    for place in 0..CONFIGURATIONS.len() {
        let configuration = CONFIGURATIONS[(place + round as usize) % CONFIGURATIONS.len()];
        let taken = turn(configuration, &rounds)?;
        for (workload, sample) in workloads.iter().zip(taken.0) {
            let sample = sample.with_context(|| {
                format!("{configuration} had too few free pages for {workload}")
            })?;
            let of = Of {
                machine: HOST,
                workload: &workload.to_string(),
                config: configuration.name(),
                run: round,
            };
            let values = [sample.alloc, sample.free, sample.total];
            let of_sample = METRICS.iter().zip(values);
            rows.extend(of_sample.map(|(metric, value)| of.row(metric, value)));
        }
    }
    Ok(rows)
}
