//! What the model kernel tells of itself: counts of reclaim and compaction, the outcome of a free
//! in a trace, and what became of blocks.

use brickyard::{Frame, Order};

/// Counts of reclaim and compaction, in frames unless noted otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Pressure {
    /// The number of calls of direct reclaim.
    pub direct_calls: u64,
    /// Freed by direct reclaim, and by `drop_caches`.
    pub direct: u64,
    /// Freed by background reclaim.
    pub background: u64,
    /// Freed by lumpy reclaim.
    pub lumpy: u64,
    /// Of all of them, pages of files.
    pub files: u64,
    /// Of all of them, pages of processes.
    pub anonymous: u64,
    /// Of all of them, slabs.
    pub slabs: u64,
    /// Written before they were freed.
    pub written: u64,
    /// Moved by compaction.
    pub moved: u64,
    /// Of these, moved in the background.
    pub moved_behind: u64,
    /// Nanoseconds that requests waited for writes, and between two tries.
    pub waited: u64,
}

/// The outcome of a free in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// It freed a block, as it was taken.
    Whole,
    /// It freed a part of a block, or several blocks at once.
    Parts,
    /// It freed nothing: the page had been reclaimed.
    WasReclaimed,
    /// It freed nothing: the page's allocation had failed.
    WasRefused,
    /// It freed nothing: the page is unknown.
    Unknown,
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It was taken by a request.
    Taken,
    /// It was freed: by its owner, or by reclaim.
    Freed,
    /// It was freed since compaction has moved its contents.
    Moved,
}

/// A block that was taken or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Its first frame.
    pub frame: Frame,
    /// Its order.
    pub order: Order,
    /// What became of it.
    pub became: Became,
}
