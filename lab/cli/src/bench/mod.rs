//! `brickyard bench`: benchmarks on real threads. There is one file per benchmark: its options, and
//! how its results are printed. `brickyard-bench` measures.

mod forecast;
mod pagealloc;
mod slab;

use brickyard_bench::peer::Peer;
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The table of 2013: ns per page for an allocation and a free, by order and batch.
    Pagealloc(Box<pagealloc::PageAlloc>),
    /// The rounds of `pagealloc --instructions`, in a process that it starts.
    #[command(hide = true)]
    PageallocTurn(pagealloc::PageAllocTurn),
    /// Forecasts of huge pages beside what this host gives, in four states of its memory; as root.
    Forecast(forecast::ForecastBench),
    /// A loop on a heap for the experiment of 2008, in a process that it starts.
    #[command(hide = true)]
    SlabTurn(slab::SlabTurn),
}

impl Bench {
    pub(crate) fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        match self {
            Self::Pagealloc(bench) => bench.run(peers),
            Self::PageallocTurn(turn) => turn.run(peers),
            Self::Forecast(bench) => bench.run(),
            Self::SlabTurn(turn) => turn.run(),
        }
    }
}
