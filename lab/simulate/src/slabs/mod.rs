//! Objects on a simulated multiprocessor: the designs of slabs of 2008 and the library's, under the
//! loads that Piggin's and Dumazet's mails are about.
//!
//! | file | what it holds |
//! |---|---|
//! | [`socket`] | `socketallocbench`: sockets opened and closed, alone and on all CPUs |
//! | [`remote`] | objects allocated on one CPU and freed on another |
//! | [`memory`] | what stays when nothing is in use, by the number of CPUs and nodes |
//! | `design.rs` | [`Design`]: slabs built in memory that a machine can map |
//! | `pages.rs` | their pages, and the lines of objects |
//!
//! All designs mask interrupts in every call. A number of instructions comes between two accesses
//! to shared memory, for all designs alike: [`INSTRUCTIONS`], an assumption. Compiled code of Linux
//! 2.6.28 is not at hand, and ours checks more than it did. [`OTHER_INSTRUCTIONS`] show what hangs
//! on it.

mod design;
pub mod memory;
mod pages;
pub mod remote;
pub mod socket;

use brickyard_machine::{Failure, Profile, Setup, Timing, Watch};
use thiserror::Error;

pub use design::{Design, SOCKET};

/// Instructions between two accesses: see the module.
pub const INSTRUCTIONS: u64 = 4;

/// Other numbers of them, from the fewest that are possible to twice as many.
pub const OTHER_INSTRUCTIONS: [u64; 3] = [1, 2, 8];

/// A machine for slabs.
#[derive(Debug, Clone, Copy)]
pub struct SlabSetting {
    /// Which machine.
    pub profile: &'static Profile,
    /// CPUs.
    pub cpus: usize,
    /// The design.
    pub design: Design,
    /// Instructions between two accesses: see the module.
    pub instructions: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// What the run is for.
    pub purpose: Purpose,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Its times: accesses cost what the machine's caches make them cost.
    Measure,
    /// To find faults: accesses take random times, so each seed gives another schedule; races on
    /// guarded words end the run, and so does an object that is not as its owner left it.
    Explore,
}

/// A run failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{design}, CPUs: {cpus}, seed {seed}: {failure}")]
pub struct SlabFailed {
    design: &'static str,
    cpus: usize,
    seed: u64,
    failure: Failure,
}

impl SlabSetting {
    const fn machine(&self) -> Setup {
        let (timing, watch) = match self.purpose {
            Purpose::Measure => (Timing::Caches, Watch::Off),
            Purpose::Explore => (Timing::Random, Watch::Races),
        };
        Setup {
            instructions_per_thousand: self.instructions * 1000,
            timing,
            watch,
            ..Setup::new(self.profile, self.cpus, self.seed)
        }
    }

    const fn failed(&self, failure: Failure) -> SlabFailed {
        SlabFailed {
            design: self.design.name(),
            cpus: self.cpus,
            seed: self.seed,
            failure,
        }
    }

    /// Converts cycles to nanoseconds of this machine.
    const fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 * 1000.0 / self.profile.megahertz as f64
    }
}
