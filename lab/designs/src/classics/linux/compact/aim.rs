//! What a compaction is to make free, for whom, how thoroughly, and how it may end.

use brickyard::{Frame, MigrateType, Order, ZoneKind};

/// The highest order that compaction is not selective for.
pub(super) const COSTLY: Order = Order::new(3);

/// Frames that are gathered at a time.
pub(super) const ROUND: usize = 32;

/// How thorough compaction is, from the cheapest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Only page blocks of the request's own type, of which a part that cannot be cleared is left
    /// at its first page that does not move. A failure defers nothing.
    Async,
    /// Page blocks of any type.
    SyncLight,
    /// The whole zone from its ends, with places in page blocks of any type. Nothing is skipped,
    /// and it is not deferred.
    SyncFull,
}

/// Who compacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    /// A task that waits for a block.
    Request(Priority),
    /// The background task. It is as thorough as [`Priority::SyncLight`].
    Background,
}

impl Worker {
    pub(super) fn is_gentle(self) -> bool {
        self == Self::Request(Priority::Async)
    }

    pub(super) fn is_full(self) -> bool {
        self == Self::Request(Priority::SyncFull)
    }
}

/// What is to become free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) order: Order,
    pub(super) wanted: MigrateType,
    pub(super) highest: ZoneKind,
    /// The block must end here, if the zone does not.
    pub(super) limit: Option<Frame>,
}

/// How a run of the scanners ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// A block was caught, or is free.
    Succeeded,
    /// The scanners met.
    Met,
    /// There was no free place, though the scanners had not met.
    NoPlace,
}
