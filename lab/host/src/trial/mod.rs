//! Trials on the running Linux: asking it for huge pages, and making states of memory in which that
//! is hard. What is asked for is given back, and what is changed is put back.
//!
//! | module | contents |
//! |---|---|
//! | [`pool`] | asks through `nr_hugepages`, as root |
//! | [`memory`] | asks for memory of this process, as any user; mappings |
//! | [`states`] | fills memory so that few whole blocks are left |
//! | [`help`] | `sync`, `drop_caches`, `compact_memory` |

mod error;
pub mod help;
#[allow(unsafe_code, reason = "it maps memory, and registers it with io_uring")]
pub mod memory;
pub mod pool;
pub mod states;

pub use error::TrialError;

/// What came of asking for blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Blocks that were asked for.
    pub asked: u64,
    /// Blocks that came.
    pub came: u64,
    /// How long that took.
    pub took: core::time::Duration,
    /// It was stopped before it had asked for all of them.
    pub stopped: bool,
}
