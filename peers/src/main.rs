//! `brickyard-peers`: the command `brickyard` with other people's allocators to compare: page
//! allocators, one file per peer.
//!
//! | `--config` | what it is | the lock |
//! |---|---|---|
//! | `buddy_system_allocator` | its `LockedFrameAllocator`: a buddy of frame numbers in B-trees | the one it provides, `spin::Mutex` |
//! | `frame-alloc` | its `DepotAllocator` over its `SummaryBuddyAllocator`: per-CPU magazines over a lock-free buddy of bitmaps | its own, internal |
//! | `bitmap-allocator` | its `BitAlloc1M` or `BitAlloc16M`: a tree of 16-bit words | `spin::Mutex` |
//! | `talc` | its `TalcLock`: a heap that writes tags beside its allocations, used for aligned pages | `spin::Mutex` through `lock_api` |
//!
//! None of them has mobilities, watermarks or zones. `slots`, `lock`, `bulk`, `mobility`
//! and `level` do not affect them; they do batches in one call (`api=bulk`) one by one.

mod bitmap;
mod buddy;
mod depot;
mod heap;
mod region;

use std::process::ExitCode;

use brickyard_bench::peer::Peer;

static PEERS: [&dyn Peer; 4] = [&buddy::Buddy, &depot::Depot, &bitmap::Bitmap, &heap::Heap];

fn main() -> ExitCode {
    brickyard_cli::main(&PEERS)
}
