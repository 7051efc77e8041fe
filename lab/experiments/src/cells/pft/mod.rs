//! `pft`, the page fault test of 2013: faults a second by the number of CPUs.
//!
//! | file | what it holds |
//! |---|---|
//! | `simulated.rs` | on simulated machines: what a run is, is that of `brickyard simulate pft` |
//! | `threads.rs` | with real threads that take and clear real pages: what a turn is, is that of `brickyard bench pft` |

mod simulated;
mod threads;

use brickyard_report::Metric;

use crate::cell::Cell;

/// For each second of CPU time, and for each second.
const FAULTS_CPU: Metric<'static> = faults("faults/cpu");
const FAULTS_SEC: Metric<'static> = faults("faults/sec");

const fn faults(name: &'static str) -> Metric<'static> {
    Metric::higher(name, "faults/s")
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = threads::cells();
    cells.extend(simulated::cells());
    cells
}
