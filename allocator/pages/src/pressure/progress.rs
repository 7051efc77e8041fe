//! How a compaction ended, and what its zone remembers of it for the next one.

use brickyard_sync::{AtomicU32, AtomicUsize, Ordering};

use crate::{Frame, FrameRange, Order};

/// How compaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// A block for the request was caught, or is free now.
    Succeeded,
    /// The scanners met.
    Complete,
    /// Not tried: there is too little free memory for the copies.
    TooLittleFree,
    /// Not tried: memory is lacking, not fragmented. Reclaim helps, moving does not.
    NotFragmented,
    /// Not tried: it failed recently.
    Deferred,
}

/// What compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// How it ended.
    pub why: Why,
    /// The number of frames moved.
    pub moved: usize,
    /// The number of frames that could not be moved.
    pub stuck: usize,
    /// The block for the request, if the zone has caught it on its way to the free blocks.
    pub caught: Option<Frame>,
}

impl Compacted {
    /// Returns the result of a compaction that ended so and has moved nothing yet: for a zone of
    /// another design, which sets the other fields.
    #[must_use]
    pub const fn new(why: Why) -> Self {
        Self {
            why,
            moved: 0,
            stuck: 0,
            caught: None,
        }
    }
}

/// What a zone remembers of its compactions: when one last failed, and where its scanners stopped.
#[derive(Debug)]
pub struct CompactionState {
    pub(super) scanners: Scanners,
    pub(super) deferral: Deferral,
}

impl CompactionState {
    /// Returns the state of a zone where nothing has been tried yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            scanners: Scanners::new(),
            deferral: Deferral::new(),
        }
    }
}

impl Default for CompactionState {
    fn default() -> Self {
        Self::new()
    }
}

/// The range between the two scanners of a compaction that succeeded: the next one continues there,
/// as in Linux. What the scanners have passed was searched, and gave what it could.
#[derive(Debug)]
pub(super) struct Scanners {
    // Guesses that only steer effort, so races between CPUs do no harm.
    from: AtomicUsize,
    to: AtomicUsize,
}

impl Scanners {
    /// Returns scanners that have not looked at anything yet.
    pub(super) const fn new() -> Self {
        Self {
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(usize::MAX),
        }
    }

    /// Returns what is left of `span`, or all of it if nothing is left.
    pub(super) fn left(&self, span: FrameRange) -> FrameRange {
        // Relaxed, here and below: see the fields.
        let start = Frame::new(self.from.load(Ordering::Relaxed)).max(span.start);
        let end = Frame::new(self.to.load(Ordering::Relaxed)).min(span.end);
        if start < end {
            FrameRange { start, end }
        } else {
            span
        }
    }

    /// Remembers that the scanners stand at the ends of `left`.
    pub(super) fn remember(&self, left: FrameRange) {
        self.from.store(left.start.number(), Ordering::Relaxed);
        self.to.store(left.end.number(), Ordering::Relaxed);
    }

    /// Forgets the positions, since the scanners have met: the next compaction starts anew.
    pub(super) fn forget(&self) {
        self.from.store(0, Ordering::Relaxed);
        self.to.store(usize::MAX, Ordering::Relaxed);
    }
}

/// The most attempts that are skipped after failures: 1 << 6.
const MOST_SHIFT: u32 = 6;

/// How many attempts a zone is spared after a failed compaction: twice as many after each failure
/// (Linux 6.1's rule).
#[derive(Debug)]
pub(super) struct Deferral {
    // Guesses that only steer effort, so races between CPUs do no harm.
    considered: AtomicU32,
    shift: AtomicU32,
    failed_order: AtomicU32,
}

impl Deferral {
    /// Returns the deferral of a zone where nothing has failed yet.
    pub(super) const fn new() -> Self {
        Self {
            considered: AtomicU32::new(0),
            shift: AtomicU32::new(0),
            failed_order: AtomicU32::new(Order::COUNT as u32),
        }
    }

    /// Counts this attempt. Returns true if it should be skipped.
    pub(super) fn skips(&self, order: Order) -> bool {
        // Relaxed, here and below: see the fields.
        if u32::from(order.get()) < self.failed_order.load(Ordering::Relaxed) {
            return false;
        }
        let limit = 1 << self.shift.load(Ordering::Relaxed);
        let considered = self.considered.load(Ordering::Relaxed) + 1;
        self.considered
            .store(considered.min(limit), Ordering::Relaxed);
        considered < limit
    }

    pub(super) fn failed(&self, order: Order) {
        let shift = self.shift.load(Ordering::Relaxed);
        self.shift
            .store((shift + 1).min(MOST_SHIFT), Ordering::Relaxed);
        self.considered.store(0, Ordering::Relaxed);
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.min(u32::from(order.get())), Ordering::Relaxed);
    }

    pub(super) fn succeeded(&self, order: Order) {
        self.considered.store(0, Ordering::Relaxed);
        self.shift.store(0, Ordering::Relaxed);
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.max(u32::from(order.get()) + 1), Ordering::Relaxed);
    }
}
