//! The rules of a model kernel: swap, the slow path, the scheme of reclaim, the flusher.

use brickyard::Order;
use brickyard::node::{Lumpy, SlowPath};

/// Whether pages of processes can be swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swap {
    /// They cannot: they stay until they are freed.
    #[default]
    Off,
    /// They can.
    On,
}

/// How the model kernel handles memory pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The steps that a request takes when no free block is found.
    pub slow_path: SlowPath,
    /// Whether pages of processes can be reclaimed.
    pub swap: Swap,
    /// Whose reclaim it is.
    pub scheme: Scheme,
    /// Whether dirty pages are written before reclaim gets to them.
    pub flusher: Flusher,
}

/// Whose reclaim it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// Today's, in outline: lists for files and for processes, and the library's slow path.
    #[default]
    Today,
    /// That of Linux 2.6.20, with a slow path of its own.
    Of2007(Of2007),
}

/// What differs among kernels of 2005 to 2007.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of2007 {
    /// Whether direct reclaim is lumpy.
    pub lumpy: Lumpy,
    /// Per-CPU caches are drained after direct reclaim for requests above this order. `None`: they
    /// never are.
    pub drains_above: Option<Order>,
    /// Whether a zone is tested by its blocks of each order, see `of_2007::serves_above`.
    pub tests_each_order: bool,
    /// The nanoseconds that background reclaim sleeps after each pass below priority 10. Linux
    /// sleeps [`NAP`](crate::kernel::NAP), unless the disk's queue was long and gets short
    /// meanwhile, which is not modelled.
    pub nap: u64,
}

/// Whether dirty pages are written before reclaim gets to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flusher {
    /// They are not: reclaim writes them.
    #[default]
    Off,
    /// They are (Linux's `pdflush`).
    On,
}

impl Rules {
    /// Today's: compaction, no lumpy reclaim, no swap; reclaim writes what is dirty.
    pub const TODAY: Self = Self {
        slow_path: SlowPath::MODERN,
        swap: Swap::Off,
        scheme: Scheme::Today,
        flusher: Flusher::Off,
    };
}
