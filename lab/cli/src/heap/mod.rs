//! `brickyard heap`: what a program that uses the heap has allocated.

mod profile;
mod sites;

use clap::Subcommand;

/// The commands of `brickyard heap`.
#[derive(Debug, Subcommand)]
pub(crate) enum Heap {
    /// Shows a heap profile: who allocated most, as a table, a flame graph, or for `go tool pprof`.
    Profile(profile::Profile),
}

impl Heap {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Profile(profile) => profile.run(),
        }
    }
}
