//! Loads of malloc that are known from papers and benchmark suites, written anew from their
//! descriptions. `brickyard-heap programs` starts a small program for each run of one; the program
//! calls the C library's `malloc`, so that `LD_PRELOAD` decides the allocator.
//!
//! | file | contents |
//! |---|---|
//! | `catalog.rs` | every load by name: its source, what it stands for, how many threads it has |
//! | `work.rs` | what a load is told, and what it tells |
//! | `block.rs` | a block of memory that is checked when it is freed |
//! | `threads.rs` | threads that work at the same time |
//! | `sizes.rs` | random sizes |
//! | `known/` | one file a load, or a pair of loads |
//! | `binding.rs` | which object `malloc` belongs to |
//! | `latency/` | how long single operations take |
//! | `measure.rs` | the time and the peak memory of a program |
//! | `program.rs` | the small program: its arguments, and what it prints |
//!
//! The seed of every load is fixed, so each run does the same operations, whatever the allocator.

#[allow(unsafe_code, reason = "it calls the loader")]
mod binding;
#[allow(unsafe_code, reason = "it is memory")]
mod block;
mod catalog;
mod known;
pub mod latency;
#[allow(
    unsafe_code,
    reason = "it waits for a process by a call of the C library"
)]
mod measure;
#[allow(unsafe_code, reason = "it ends the process at once")]
mod program;
mod sizes;
mod threads;
mod work;

pub use catalog::{CATALOG, Crowd, Load};
pub use measure::ProgramCost;
pub use program::main;
pub use work::{LoadResult, LoadTask};

/// The name of the small program.
pub const PROGRAM: &str = "brickyard-heap-loads";
