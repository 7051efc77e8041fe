//! Experiments with the page allocator on a simulated multiprocessor: its own source, unchanged, with 1 to 256 CPUs, deterministic for a seed.
//!
//! | file | what it holds |
//! |---|---|
//! | `platform.rs` | [`Simulated`]: the machine as the allocator's platform |
//! | `ground.rs` | [`Ground`]: an allocator built in memory that a machine can be given |
//! | [`runs`] | many runs at once on the host's threads |

#![forbid(unsafe_code)]

pub mod ground;
mod platform;
pub mod runs;

pub use ground::{Apart, Ground, Job, Lock, Piece, Slots};
pub use platform::Simulated;
