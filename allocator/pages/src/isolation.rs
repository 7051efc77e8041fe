//! Isolated ranges: nothing is handed out from them. There are at most four at a time.

use brickyard_sync::{AtomicU64, AtomicUsize, Ordering};

use crate::{Frame, FrameRange, RangeError};

/// The most ranges that can be isolated at a time.
pub const ISOLATED_MOST: usize = 4;

/// The ranges that are isolated now, at most four.
#[derive(Debug)]
pub struct Isolation {
    // The frame that positions are counted from.
    base: usize,
    // The number of slots in use: the only word that is read while nothing is isolated.
    active: AtomicUsize,
    // One range each: its start in the low half, its end in the high half. 0 means unused. A range
    // is one word, so that no CPU sees the start of one range with the end of another. Slots are
    // written under the zone's lock; CPUs without it read them as a hint.
    slots: [AtomicU64; ISOLATED_MOST],
}

impl Isolation {
    /// Returns an `Isolation` for ranges at or above `base`, less than 2^32 frames beyond it.
    #[must_use]
    pub const fn new(base: usize) -> Self {
        Self {
            base,
            active: AtomicUsize::new(0),
            slots: [const { AtomicU64::new(0) }; ISOLATED_MOST],
        }
    }

    /// Encodes a range as a word. Returns `None` for a range that cannot be isolated here.
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

    /// Decodes a word into its range; 0 gives an empty range.
    const fn unpacked(&self, word: u64) -> FrameRange {
        if word == 0 {
            return FrameRange::new(0, 0);
        }
        let (start, end) = (word as u32 as usize, (word >> 32) as usize);
        FrameRange::new(self.base + start, self.base + end)
    }

    /// Returns the ranges, including empty ones.
    pub fn ranges(&self) -> impl Iterator<Item = FrameRange> {
        // Relaxed: exact under the zone's lock. A front that reads an old value keeps a page of an
        // isolated range, and the next drain brings that page back.
        self.slots
            .iter()
            .map(|slot| self.unpacked(slot.load(Ordering::Relaxed)))
    }

    /// Returns true if any range is isolated.
    #[inline]
    pub fn any(&self) -> bool {
        // Relaxed: as above.
        self.active.load(Ordering::Relaxed) != 0
    }

    /// Returns true if `frame` lies in an isolated range.
    #[inline]
    pub fn contains(&self, frame: Frame) -> bool {
        self.any() && self.ranges().any(|range| range.contains(frame))
    }

    /// Returns true if exactly `range` is isolated.
    pub fn has(&self, range: FrameRange) -> bool {
        !range.is_empty() && self.any() && self.ranges().any(|isolated| isolated == range)
    }

    /// Returns true if an isolated range overlaps `range`.
    pub fn overlaps(&self, range: FrameRange) -> bool {
        self.any() && self.ranges().any(|r| !r.intersection(range).is_empty())
    }

    /// Returns true if the edge of an isolated range lies inside `range`.
    pub fn cuts(&self, range: FrameRange) -> bool {
        self.any()
            && self
                .ranges()
                .any(|isolated| !isolated.intersection(range).is_empty() && !isolated.covers(range))
    }

    /// Isolates `range` from now on. Called under the zone's lock.
    ///
    /// # Errors
    /// [`RangeError::Malformed`] for an empty range, and one that lies too low or too high;
    /// [`RangeError::Isolated`] if it overlaps an isolated range; [`RangeError::TooManyIsolated`]
    /// if four ranges are isolated already.
    pub fn begin(&self, range: FrameRange) -> Result<(), RangeError> {
        if range.is_empty() || self.packed(range).is_none() {
            return Err(RangeError::Malformed);
        }
        if self.overlaps(range) {
            return Err(RangeError::Isolated);
        }
        if !self.replace(FrameRange::default(), range) {
            return Err(RangeError::TooManyIsolated);
        }
        self.set_active(1);
        Ok(())
    }

    /// Ends the isolation of exactly `range`. Returns false if it was not isolated. Called under
    /// the zone's lock.
    pub fn end(&self, range: FrameRange) -> bool {
        let ended = !range.is_empty() && self.replace(range, FrameRange::default());
        if ended {
            self.set_active(-1);
        }
        ended
    }

    /// Writes `new` over the slot that holds `old`. Returns false if no slot does.
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
