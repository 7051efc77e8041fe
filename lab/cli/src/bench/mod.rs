//! `brickyard bench`: benchmarks on real threads.
//!
//! | file | what it holds |
//! |---|---|
//! | `pagealloc.rs`, `scarce.rs`, `fragmentation.rs`, `locks.rs`, `pft.rs` | one benchmark each: its options and its results |
//! | `subject.rs` | what the measured loops allocate from, as two traits |
//! | `design.rs`, `yardstick.rs`, `peer.rs` | who stands behind those: our designs, two yardsticks, other people's crates |
//! | `contestant.rs` | any of these by its name |
//! | `conditions.rs` | what `pagealloc` builds for a contestant, and its turn there |
//! | `zone2007.rs` | what `locks` builds for a column |
//! | `machine.rs` | the machine that a configuration is built on, and the options that choose it |
//! | `schedule.rs` | which workloads there are |
//! | `turns.rs`, `rounds.rs` | whose turn it is; what is done in a turn |
//! | `slab/` | the benchmark of heaps, with all that is its own |
//! | `bursts.rs`, `faults.rs` | the loads of `locks` and `pft` |
//! | `pages.rs`; `aim9.rs`, `render.rs` | pages with real bytes; the loops of 2005 on them, which `reproduce` runs |
//! | `batch.rs`, `remote.rs`, `fill.rs`, `clock.rs`, `random.rs` | the measured loops and what they need |

pub(crate) mod aim9;
mod batch;
pub(crate) mod bursts;
mod clock;
pub(crate) mod conditions;
pub(crate) mod contestant;
mod design;
#[allow(unsafe_code, reason = "it clears pages")]
pub(crate) mod faults;
mod fill;
mod fragmentation;
mod locks;
pub(crate) mod machine;
mod pagealloc;
#[allow(unsafe_code, reason = "pages have bytes")]
pub(crate) mod pages;
pub(crate) mod peer;
pub(crate) mod pft;
pub(crate) mod random;
mod remote;
pub(crate) mod render;
pub(crate) mod rounds;
mod scarce;
pub(crate) mod schedule;
pub(crate) mod slab;
pub(crate) mod subject;
mod turns;
mod yardstick;
pub(crate) mod zone2007;

use clap::Subcommand;
use peer::Peer;
use slab::turn::HeapPeer;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The 2013 table: ns per page to allocate and to free, by order and batch.
    Pagealloc(Box<pagealloc::PageAlloc>),
    /// Requests when memory is all but gone: ns for one that must fail, and for one that must find the only free block.
    Scarce(scarce::Scarce),
    /// How much of the free memory is whole huge blocks after random takes and frees, in percent.
    Fragmentation(fragmentation::Fragmentation),
    /// The 2007 experiment: how long to hold the zone lock for a bulk of pages; time, waiting, holding, fairness.
    Locks(Box<locks::Locks>),
    /// Page faults a second by the number of threads, as far as the page allocator goes; the memory is real.
    Pft(pft::Pft),
    /// Heaps for small objects: ours, the system's, preloaded ones and peers; time, memory, instructions.
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
            Self::Scarce(bench) => bench.run(),
            Self::Fragmentation(bench) => bench.run(),
            Self::Locks(bench) => bench.run(),
            Self::Pft(bench) => bench.run(),
            Self::Slab(bench) => bench.run(heaps),
            Self::SlabTurn(turn) => turn.run(heaps),
        }
    }
}
