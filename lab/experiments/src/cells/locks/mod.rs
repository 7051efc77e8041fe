//! `locks`, the experiment of 2007: how long to hold the zone lock for a bulk of pages.
//!
//! | file | what it holds |
//! |---|---|
//! | `simulated.rs` | the five columns on the two machines of the paper |
//! | `today.rs` | the same workloads under the configurations that came later |
//! | `threads.rs` | the five columns with real threads of this host |
//!
//! A run of the first two is that of `brickyard simulate locks`, a run of the last that of
//! `brickyard bench locks`.

mod simulated;
mod threads;
mod today;

use crate::cell::Cell;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = threads::cells();
    cells.extend(simulated::cells());
    cells.extend(today::cells());
    cells
}
