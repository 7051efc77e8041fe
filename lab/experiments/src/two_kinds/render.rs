//! The renderer, on pages of this host's memory: the effect of the allocator's choice of pages on a
//! program's caches. Each round is a cell.

use core::time::Duration;

use anyhow::Context as _;
use brickyard_designs::classics::Configuration;
use brickyard_results::Metric;

use crate::raw::Raw;

use super::aim9::TURNS;
use crate::cell::{Cell, Scale};
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};
use brickyard_bench::masking::Masking;
use brickyard_bench::pages::PageMemory;
use brickyard_bench::render::{PAGES, Render, Spent};

/// The configurations of the quick run, and the only ones to render: the posting's two kernels,
/// Linux's later one, and `brickyard`.
const SOME: [Configuration; 4] = [
    Configuration::Vanilla,
    Configuration::TwoKinds2005,
    Configuration::List2007,
    Configuration::Brickyard,
];

pub(super) fn scale_of(config: &str) -> Scale {
    Scale::quick_if(SOME.iter().any(|some| some.name() == config))
}

pub(super) const SECONDS: Metric<'static> = Metric::lower("elapsed", "s");

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "two-kinds.host.render",
        quick: MIN_ROUNDS,
        seconds: 0.35,
        work: rows,
    };
    timed.cells()
}

fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let mut memory = PageMemory::new(PAGES)?;
    let taken = round.turns("render", TURNS, &SOME, |config| {
        let spent = memory.with(config, Masking::Flags, Render)?;
        spent.context("the memory has too few free pages")
    })?;
    let mut rows = Vec::new();
    for (config, taken) in taken.by_contestant() {
        let template = round.template("render", config.name());
        let mean = |time: fn(&Spent) -> Duration| {
            let times = taken.iter().map(time).map(|time| time.as_secs_f64());
            times.sum::<f64>() / taken.len() as f64
        };
        for (name, value) in [
            ("real", mean(|spent| spent.real)),
            ("user", mean(|spent| spent.user)),
            ("sys", mean(|spent| spent.sys)),
        ] {
            rows.push(template.row(&Metric { name, ..SECONDS }, value));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{found, keys, rows_of};

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn a_round_has_the_times_of_some_configurations() {
        let rows = rows_of(found(&cells(), "two-kinds.host.render.1"));
        assert_eq!(rows.len(), 3 * SOME.len());
        assert_eq!(
            keys(&rows)[..3],
            [("render", "real"), ("render", "user"), ("render", "sys")]
        );
    }
}
