//! `brickyard simulate`: experiments on a simulated multiprocessor. The same command gives exactly
//! the same results on any host.
//!
//! | file | what it holds |
//! |---|---|
//! | `storm.rs`, `pft.rs`, `kernbench.rs`, `explore.rs` | one experiment each: its options and its results |
//! | `setup.rs` | the options that the first three share, and their runs on several threads |

mod explore;
mod kernbench;
mod pft;
pub(crate) mod setup;
mod storm;

use clap::Subcommand;

/// The experiments.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulate {
    /// All CPUs allocate and free pages as fast as they can: throughput, speed-up, latencies, cache
    /// lines moved.
    Storm(storm::Storm),
    /// Page faults a second by the number of CPUs: the test of 2013.
    Pft(pft::Pft),
    /// make -j on a recorded build: user, system, elapsed, CPU percent.
    Kernbench(kernbench::Kernbench),
    /// Randomised schedules of the real allocator: every operation concurrently, every result
    /// checked; a seed that fails is shrunk.
    Explore(Box<explore::Explore>),
}

impl Simulate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Storm(experiment) => experiment.run(),
            Self::Pft(experiment) => experiment.run(),
            Self::Kernbench(experiment) => experiment.run(),
            Self::Explore(experiment) => experiment.run(),
        }
    }
}
