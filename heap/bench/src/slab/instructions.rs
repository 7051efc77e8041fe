//! `--instructions`: how many instructions a hit takes.
//!
//! The instructions of the two functions of `hits.rs` themselves are counted with a heap that does
//! nothing, and subtracted.

use anyhow::bail;
use brickyard_results::{Host, Metric, Results, Row};

use super::contestant::{Contestant, NOTHING};
use super::hits::{SIDES, SIZES};
use super::process::command;
use super::work::{SlabWork, Workload};
use brickyard_measure::callgrind;
use brickyard_measure::objects::crowd::Clock;
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// Hits of the shorter run.
const HITS: usize = 20_000;

/// Counts the instructions of every contestant's hits; `None`, with a warning, if there is no
/// valgrind.
///
/// # Errors
/// Nothing could be counted.
pub fn count(
    contestants: &[Contestant],
    progress: &dyn Progress,
) -> anyhow::Result<Option<Results>> {
    if !callgrind::is_installed(progress) {
        return Ok(None);
    }
    let nothing = Contestant {
        name: NOTHING.into(),
        heap: NOTHING.into(),
        library: None,
    };
    let all: Vec<_> = [&nothing].into_iter().chain(contestants).collect();
    let units = all.len() * SIZES.len() * SIDES.len();
    progress.begin(units as u64);
    let mut results = Results::new("slab", Host::read());
    let mut failed = 0;
    'all: for size in SIZES {
        let work = |batch| SlabWork {
            workload: Workload::Hits,
            threads: 1,
            batch,
            size,
            live: 0,
            sample_us: 0,
            clock: Clock::Wall,
        };
        for (side, function) in SIDES {
            let launcher = callgrind::launcher(function);
            let mut by_itself = 0.0;
            for &contestant in &all {
                progress.at(&contestant.name);
                let hits = |batch| command(&launcher, contestant, &work(batch));
                let counted = callgrind::of_one(HITS, hits);
                if interrupt::asked() {
                    break 'all;
                }
                progress.advance(1);
                match counted {
                    Ok(each) => {
                        if contestant.name == NOTHING {
                            by_itself = each;
                            continue;
                        }
                        let name = work(HITS).to_string();
                        let value = vec![each - by_itself];
                        let metric = Metric::lower(side, "instructions");
                        let row = Row::new(&contestant.name, name, metric, value)?;
                        results.push(row.exact())?;
                    }
                    Err(error) => {
                        failed += 1;
                        progress.warn(&format!("{}: {error:#}", contestant.name));
                    }
                }
            }
        }
    }
    progress.end();
    if results.rows().is_empty() {
        bail!("nothing could be counted ({failed} runs failed)");
    }
    Ok(Some(results))
}
