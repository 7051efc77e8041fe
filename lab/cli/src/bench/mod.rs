//! `brickyard bench`: benchmarks on real threads.
//! One file a benchmark: its options, and how its results are told. What measures
//! is `brickyard-bench`.

mod fragmentation;
mod locks;
mod pagealloc;
mod pft;
mod scarce;
mod slab;

use brickyard_bench::peer::Peer;
use brickyard_bench::slab::turn::HeapPeer;
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The 2013 table: ns per page to allocate and to free, by order and batch.
    Pagealloc(Box<pagealloc::PageAlloc>),
    /// The rounds of `pagealloc` that are counted, as it starts them.
    #[command(hide = true)]
    PageallocTurn(pagealloc::PageAllocTurn),
    /// Requests when memory is all but gone: ns for one that must fail, and for one that must find
    /// the only free block.
    Scarce(scarce::Scarce),
    /// How much of the free memory is whole huge blocks after random takes and frees, in percent.
    Fragmentation(fragmentation::Fragmentation),
    /// The 2007 experiment: how long to hold the zone lock for a bulk of pages; time, waiting,
    /// holding, fairness.
    Locks(Box<locks::Locks>),
    /// Page faults a second by the number of threads, as far as the page allocator goes; the memory
    /// is real.
    Pft(pft::Pft),
    /// Heaps for small objects: ours, the system's, preloaded ones and peers; time, memory,
    /// instructions.
    Slab(Box<slab::Slab>),
    /// One turn of `slab`, as it starts it.
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
            Self::Scarce(bench) => bench.run(),
            Self::Fragmentation(bench) => bench.run(),
            Self::Locks(bench) => bench.run(),
            Self::Pft(bench) => bench.run(),
            Self::Slab(bench) => bench.run(heaps),
            Self::SlabTurn(turn) => turn.run(heaps),
        }
    }
}
