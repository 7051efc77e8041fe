//! Isolated ranges: from these nothing is handed out. At most four at a time; both stores keep them so.

use brickyard_sync::{AtomicUsize, Ordering};

use crate::Frame;
use crate::FrameRange;

/// The ranges that are isolated now, at most four.
#[derive(Debug)]
pub(in crate::store) struct Isolation {
    // How many slots are in use: the only word that is read while nothing is isolated.
    active: AtomicUsize,
    // Start and end of each; equal while unused. Written under the zone's lock, read by fronts as a hint.
    slots: [(AtomicUsize, AtomicUsize); 4],
}

impl Isolation {
    pub(in crate::store) const fn new() -> Self {
        Self {
            active: AtomicUsize::new(0),
            slots: [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 4],
        }
    }

    pub(in crate::store) fn ranges(&self) -> impl Iterator<Item = FrameRange> {
        // Relaxed: exact under the zone's lock. A front that reads an old value keeps a page of an isolated range, which
        // the next drain brings back.
        self.slots.iter().map(|(start, end)| {
            FrameRange::new(start.load(Ordering::Relaxed), end.load(Ordering::Relaxed))
        })
    }

    #[inline]
    pub(in crate::store) fn any(&self) -> bool {
        // Relaxed: as above.
        self.active.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(in crate::store) fn contains(&self, frame: Frame) -> bool {
        self.any() && self.ranges().any(|range| range.contains(frame))
    }

    pub(in crate::store) fn overlaps(&self, range: FrameRange) -> bool {
        self.any() && self.ranges().any(|r| !r.intersection(range).is_empty())
    }

    /// Does the edge of an isolated range lie inside `range`?
    pub(in crate::store) fn cuts(&self, range: FrameRange) -> bool {
        self.any()
            && self
                .ranges()
                .any(|isolated| !isolated.intersection(range).is_empty() && !isolated.covers(range))
    }

    /// Writes `new` over the slot that holds `old`; false where there is none.
    pub(in crate::store) fn replace(&self, old: FrameRange, new: FrameRange) -> bool {
        let mut slots = self.slots.iter().zip(self.ranges());
        let Some(((start, end), _)) = slots.find(|(_, range)| *range == old) else {
            return false;
        };
        // Relaxed: as above.
        start.store(new.start.number(), Ordering::Relaxed);
        end.store(new.end.number(), Ordering::Relaxed);
        true
    }

    pub(in crate::store) fn set_active(&self, change: isize) {
        // Relaxed: only written under the zone's lock.
        let active = self.active.load(Ordering::Relaxed);
        self.active
            .store(active.wrapping_add_signed(change), Ordering::Relaxed);
    }
}
