//! Where the two scanners of compaction stood when it last succeeded, so that the next one goes on
//! there (as Linux does): what lies behind them was looked at, and gave what it could.

use brickyard_sync::{AtomicUsize, Ordering};

use crate::{Frame, FrameRange};

/// What is left between the scanners.
#[derive(Debug)]
pub(super) struct Scanners {
    // Guesses that only steer effort, so races between CPUs do no harm.
    from: AtomicUsize,
    to: AtomicUsize,
}

impl Scanners {
    /// Nothing has been looked at yet.
    pub(super) const fn new() -> Self {
        Self {
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(usize::MAX),
        }
    }

    /// What is left of `span`; all of it, if nothing is.
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

    /// They stand at the ends of `left`.
    pub(super) fn remember(&self, left: FrameRange) {
        self.from.store(left.start.number(), Ordering::Relaxed);
        self.to.store(left.end.number(), Ordering::Relaxed);
    }

    /// They have met: the next one begins anew.
    pub(super) fn forget(&self) {
        self.from.store(0, Ordering::Relaxed);
        self.to.store(usize::MAX, Ordering::Relaxed);
    }
}
