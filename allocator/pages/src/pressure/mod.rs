//! What happens when memory is short or fragmented: reclaim, compaction, contiguous ranges.
//!
//! The allocator cannot free or move a page by itself; the embedder can, through two hooks, of
//! which [`hooks`] has the rules.
//!
//! Progress rule: a request calls [`Reclaim`] again only while the previous call has freed
//! something, and at most [`RETRIES`] times. Each compaction passes over a zone at most twice.

pub mod compact;
pub mod contiguous;
pub mod hooks;
pub(crate) mod progress;
pub mod reclaim;

pub use compact::{compact_all, compact_for};
pub use contiguous::{ContiguousRequest, alloc_contiguous, offline};
pub use hooks::{Activity, Eviction, Migrate, Migration, Need, NoHooks, Reclaim};
pub use progress::{Compacted, CompactionState, Why};

/// The most times that a request calls for reclaim (Linux: 16).
pub const RETRIES: usize = 16;
