//! Isolated ranges: from these nothing is handed out. At most four at a time.

use brickyard_sync::{AtomicU64, AtomicUsize, Ordering};

use crate::{Frame, FrameRange, RangeError};

/// Ranges that can be isolated at a time.
const SLOTS: usize = 4;

/// The ranges that are isolated now, at most four.
#[derive(Debug)]
pub struct Isolation {
    // What places are counted from.
    base: usize,
    // How many slots are in use: the only word that is read while nothing is isolated.
    active: AtomicUsize,
    // A range each: where it starts in the low half, where it ends in the high half; 0 while
    // unused. One word, so that nobody sees the start of one range with the end of another. Written
    // under the zone's lock, read by all as a hint.
    slots: [AtomicU64; SLOTS],
}

impl Isolation {
    /// Of ranges from `base` on, and less than 2^32 frames behind it.
    #[must_use]
    pub const fn new(base: usize) -> Self {
        Self {
            base,
            active: AtomicUsize::new(0),
            slots: [const { AtomicU64::new(0) }; SLOTS],
        }
    }

    /// A range as a word; `None` of one that cannot be isolated here.
    fn packed(&self, range: FrameRange) -> Option<u64> {
        if range.is_empty() {
            return Some(0);
        }
        let place = |frame: Frame| {
            let place = frame.number().checked_sub(self.base)?;
            Some(u64::from(u32::try_from(place).ok()?))
        };
        Some(place(range.end)? << 32 | place(range.start)?)
    }

    /// The range of a word; an empty one of 0.
    const fn unpacked(&self, word: u64) -> FrameRange {
        if word == 0 {
            return FrameRange::new(0, 0);
        }
        let (start, end) = (word as u32 as usize, (word >> 32) as usize);
        FrameRange::new(self.base + start, self.base + end)
    }

    /// The ranges, empty ones among them.
    pub fn ranges(&self) -> impl Iterator<Item = FrameRange> {
        // Relaxed: exact under the zone's lock. A front that reads an old value keeps a page of an
        // isolated range, which the next drain brings back.
        self.slots
            .iter()
            .map(|slot| self.unpacked(slot.load(Ordering::Relaxed)))
    }

    /// Is anything isolated at all?
    #[inline]
    pub fn any(&self) -> bool {
        // Relaxed: as above.
        self.active.load(Ordering::Relaxed) != 0
    }

    /// Is `frame` in an isolated range?
    #[inline]
    pub fn contains(&self, frame: Frame) -> bool {
        self.any() && self.ranges().any(|range| range.contains(frame))
    }

    /// Does an isolated range reach into `range`?
    pub fn overlaps(&self, range: FrameRange) -> bool {
        self.any() && self.ranges().any(|r| !r.intersection(range).is_empty())
    }

    /// Does the edge of an isolated range lie inside `range`?
    pub fn cuts(&self, range: FrameRange) -> bool {
        self.any()
            && self
                .ranges()
                .any(|isolated| !isolated.intersection(range).is_empty() && !isolated.covers(range))
    }

    /// From now on `range` is isolated. Called under the zone's lock.
    ///
    /// # Errors
    /// [`RangeError::Malformed`] of an empty range; [`RangeError::Isolated`] where it overlaps an
    /// isolated one, or four ranges are isolated already.
    pub fn begin(&self, range: FrameRange) -> Result<(), RangeError> {
        if range.is_empty() {
            return Err(RangeError::Malformed);
        }
        if self.overlaps(range) || !self.replace(FrameRange::default(), range) {
            return Err(RangeError::Isolated);
        }
        self.set_active(1);
        Ok(())
    }

    /// Exactly `range` is isolated no longer; false where it was not. Called under the zone's lock.
    pub fn end(&self, range: FrameRange) -> bool {
        let ended = !range.is_empty() && self.replace(range, FrameRange::default());
        if ended {
            self.set_active(-1);
        }
        ended
    }

    /// Writes `new` over the slot that holds `old`; false where there is none.
    fn replace(&self, old: FrameRange, new: FrameRange) -> bool {
        let (Some(old), Some(new)) = (self.packed(old), self.packed(new)) else {
            return false;
        };
        // Relaxed: as above.
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| slot.load(Ordering::Relaxed) == old);
        if let Some(slot) = slot {
            slot.store(new, Ordering::Relaxed);
        }
        slot.is_some()
    }

    fn set_active(&self, change: isize) {
        // Relaxed: only written under the zone's lock.
        let active = self.active.load(Ordering::Relaxed);
        self.active
            .store(active.wrapping_add_signed(change), Ordering::Relaxed);
    }
}
