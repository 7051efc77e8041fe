//! Where the two scanners of compaction stood when it last succeeded, so that the next compaction
//! continues there (as in Linux). What they have passed was searched, and gave what it could.

use brickyard_sync::{AtomicUsize, Ordering};

use crate::{Frame, FrameRange};

/// The range that is left between the scanners.
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
