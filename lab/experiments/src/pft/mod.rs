//! `pft`, the page fault test of 2013: faults a second by the number of CPUs.
//!
//! | file | what it holds |
//! |---|---|
//! | `assumed.rs` | on the simulated machine of 2013, under other assumptions about it |
//! | `sizes.rs` | on the simulated machine of 2013, by the pages of a process |
//! | `simulated.rs` | on simulated machines: a run is that of `brickyard simulate pft` |
//! | `threads.rs` | with real threads that allocate and clear real pages: a turn is that of `brickyard bench pft` |

mod assumed;
pub(crate) mod document;
mod simulated;
mod sizes;
mod threads;

use brickyard_report::Metric;

use crate::cell::Cell;
use crate::experiment::Experiment;

/// Faults per second of CPU time, and per second of elapsed time.
const FAULTS_CPU: Metric<'static> = faults("faults/cpu");
const FAULTS_SEC: Metric<'static> = faults("faults/sec");

/// Cache lines that a CPU took from other CPUs' caches, or whose copies there it ended, for each
/// fault.
const LINES_FAULT: Metric<'static> = Metric::lower("lines/fault", "lines");

const fn faults(name: &'static str) -> Metric<'static> {
    Metric::higher(name, "faults/s")
}

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pft",
    about: "Page faults a second, by the number of CPUs (2013)",
    forms: &[],
    reproduced: cells,
    document: document::document,
    uses_traces: false,
};

fn cells() -> Vec<Cell> {
    let mut cells = threads::cells();
    cells.extend(simulated::cells());
    cells.extend(sizes::cells());
    cells.extend(assumed::cells());
    cells
}
