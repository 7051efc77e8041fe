//! The cells of each experiment, a file each.

use super::cell::{Cell, Experiment};

/// All cells of an experiment, of the full scale, in the order in which they are run.
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

mod kernbench;
mod locks;
mod mobility;
mod pagealloc;
mod pft;
mod protocol;
mod rows;
mod slab;
#[cfg(test)]
mod testing;
mod two_kinds;
