//! The cells of each experiment, in a file or a folder each; and what they share: `timed.rs` and
//! `order.rs` for timed cells, `protocol.rs`, `served.rs`, `configs.rs`, `rows.rs`.

use super::cell::{Cell, Experiment};

pub(super) use timed::by_rounds;

/// Returns all cells of an experiment, of every scale.
pub(super) fn of(experiment: Experiment) -> Vec<Cell> {
    match experiment {
        Experiment::Locks => locks::cells(),
        Experiment::PageAlloc => pagealloc::cells(),
        Experiment::Pft => pft::cells(),
        Experiment::Kernbench => kernbench::cells(),
        Experiment::TwoKinds => two_kinds::cells(),
        Experiment::Slab => slab::cells(),
        Experiment::Mobility => mobility::cells(),
    }
}

mod configs;
mod kernbench;
mod locks;
mod mobility;
mod order;
mod pagealloc;
mod pft;
mod protocol;
mod rows;
mod served;
mod slab;
#[cfg(test)]
mod testing;
mod timed;
mod two_kinds;
