//! `brickyard bench`: benchmarks on real threads. There is one file per benchmark: its options, and
//! how its results are printed. `brickyard-bench` measures.

mod forecast;
mod latency;
mod libraries;
mod pagealloc;
mod programs;
mod slab;

use brickyard_bench::peer::Peer;
use brickyard_bench::slab::turn::HeapPeer;
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The table of 2013: ns per page for an allocation and a free, by order and batch.
    Pagealloc(Box<pagealloc::PageAlloc>),
    /// The rounds of `pagealloc --instructions`, in a process that it starts.
    #[command(hide = true)]
    PageallocTurn(pagealloc::PageAllocTurn),
    /// Heaps for small objects: ours, the system's, preloaded ones and peers; time, memory,
    /// instructions.
    Slab(Box<slab::Slab>),
    /// Known loads of malloc and real programs under several malloc libraries; time and memory.
    Programs(Box<programs::Programs>),
    /// How long single allocations and frees take under several malloc libraries: percentiles and
    /// the worst of a mixed load, with page faults.
    Latency(latency::Latency),
    /// Forecasts of huge pages beside what this host gives, in four states of its memory; as root.
    Forecast(forecast::ForecastBench),
    /// One turn of `slab`, in a process that it starts.
    #[command(hide = true)]
    SlabTurn(slab::SlabTurn),
}

impl Bench {
    pub(crate) fn run(
        &self,
        peers: &[&'static dyn Peer],
        heaps: &[&'static dyn HeapPeer],
    ) -> anyhow::Result<()> {
        match self {
            Self::Pagealloc(bench) => bench.run(peers),
            Self::PageallocTurn(turn) => turn.run(peers),
            Self::Slab(bench) => bench.run(heaps),
            Self::Programs(bench) => bench.run(),
            Self::Latency(bench) => bench.run(),
            Self::Forecast(bench) => bench.run(),
            Self::SlabTurn(turn) => turn.run(heaps),
        }
    }
}
