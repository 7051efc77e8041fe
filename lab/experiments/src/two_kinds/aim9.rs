//! Two tests of AIM9, on pages of this host's memory, with masks of interrupts that cost what they
//! cost a kernel. Each round is a cell.

use core::time::Duration;

use anyhow::Context as _;
use brickyard_designs::classics::Configuration;
use brickyard_results::Metric;

use crate::raw::Raw;

use crate::cell::Cell;
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};
use brickyard_bench::aim9::{Aim9, Done, PAGES, Test};
use brickyard_bench::masking::Masking;
use brickyard_bench::pages::PageMemory;

/// The least time that a turn of a test runs.
const LEAST: Duration = Duration::from_millis(20);

/// Turns of each configuration in a timed round.
pub(super) const TURNS: usize = 3;

const RATE: Metric<'static> = Metric::higher("rate", "ops/s");

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "two-kinds.host.aim9",
        quick: MIN_ROUNDS,
        seconds: 0.95,
        work: rows,
    };
    timed.cells()
}

fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let mut memory = PageMemory::new(PAGES)?;
    let mut rows = Vec::new();
    for test in [Test::Page, Test::Brk] {
        let taken = round.turns(test.name(), TURNS, &Configuration::ALL, |config| {
            let done = memory.with(config, Masking::Flags, Aim9 { test, least: LEAST })?;
            done.context("the memory has too few free pages")
        })?;
        for (config, taken) in taken.by_contestant() {
            let all = taken.into_iter().reduce(Done::and);
            let rate = all.unwrap_or_default().rate();
            rows.push(round.template(test.name(), config.name()).row(&RATE, rate));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::rows::HOST;
    use crate::cells::testing::{found, keys, rows_of};

    #[test]
    fn a_round_has_a_row_of_each_configuration() {
        let rows = rows_of(found(&cells(), "two-kinds.host.aim9.2"));
        assert_eq!(keys(&rows), [("page_test", "rate"), ("brk_test", "rate")]);
        for of_test in rows.chunks(Configuration::ALL.len()) {
            let mut configs: Vec<&str> = of_test.iter().map(|row| &*row.config).collect();
            configs.sort_unstable();
            let mut names = Configuration::ALL.map(Configuration::name);
            names.sort_unstable();
            assert_eq!(configs, names);
        }
        assert!(
            rows.iter()
                .all(|row| row.run == 2 && row.machine == HOST && row.value > 0.0)
        );
    }
}
