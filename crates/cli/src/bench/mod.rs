//! `brickyard bench`: benchmarks on real threads.

mod pagealloc;
mod schedule;

use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The 2013 table: ns per page to allocate and to free, by order and batch.
    Pagealloc(pagealloc::PageAlloc),
}

impl Bench {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Pagealloc(bench) => bench.run(),
        }
    }
}
