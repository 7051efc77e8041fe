//! The command `brickyard-heap` with other people's heaps to compare in `slab`: each through its crate's `GlobalAlloc`, called
//! directly, so that it gets the layout, also at the free.
//!
//! | `--config` | what it is | feature |
//! |---|---|---|
//! | `mimalloc` | mimalloc 3, C | `mimalloc` |
//! | `snmalloc` | snmalloc as of the crate 0.3.8, C++ | `snmalloc` |
//! | `jemalloc` | jemalloc 5.3, C | `jemalloc` |
//! | `rpmalloc` | rpmalloc 1.4, C | `rpmalloc` |
//!
//! All features are on by default. None of the heaps replaces this program's own malloc.

use core::alloc::GlobalAlloc;
use std::process::ExitCode;

use brickyard_heap_bench::slab::turn::{HeapPeer, HeapTurn};
use brickyard_measure::objects::heap::Global;
use brickyard_measure::objects::taken::Taken;

/// A global allocator with its name.
struct Named<G>(&'static str, Global<G>);

impl<G: GlobalAlloc + Sync> HeapPeer for Named<G> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on(&self.1)
    }
}

/// The heaps that are compiled in.
static HEAPS: &[&dyn HeapPeer] = &[
    #[cfg(feature = "mimalloc")]
    &Named("mimalloc", Global(mimalloc::MiMalloc)),
    #[cfg(feature = "snmalloc")]
    &Named("snmalloc", Global(snmalloc_rs::SnMalloc)),
    #[cfg(feature = "jemalloc")]
    &Named("jemalloc", Global(tikv_jemallocator::Jemalloc)),
    #[cfg(feature = "rpmalloc")]
    &Named("rpmalloc", Global(rpmalloc::RpMalloc)),
];

fn main() -> ExitCode {
    brickyard_heap_bench::main(HEAPS)
}
