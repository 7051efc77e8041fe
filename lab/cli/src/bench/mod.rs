//! `brickyard bench`: benchmarks on real threads. There is one file per benchmark: its options, and
//! how its results are printed. `brickyard-bench` measures.

mod forecast;
mod fragmentation;
mod locks;
mod pagealloc;
mod pft;
mod scarce;
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
    /// Requests when memory is nearly exhausted: ns for one that must fail, and for one that must
    /// find the only free block.
    Scarce(scarce::Scarce),
    /// The share of free memory in whole huge blocks after random allocations and frees.
    Fragmentation(fragmentation::Fragmentation),
    /// The experiment of 2007: how long to hold the zone lock for a bulk of pages; time, waiting,
    /// holding, fairness.
    Locks(Box<locks::Locks>),
    /// Page faults per second that the page allocator allows, by the number of threads; the memory
    /// is real.
    Pft(pft::Pft),
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
            Self::Scarce(bench) => bench.run(),
            Self::Fragmentation(bench) => bench.run(),
            Self::Locks(bench) => bench.run(),
            Self::Pft(bench) => bench.run(),
            Self::Forecast(bench) => bench.run(),
            Self::SlabTurn(turn) => turn.run(),
        }
    }
}
