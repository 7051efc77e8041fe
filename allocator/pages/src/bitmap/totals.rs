//! The total number of free frames: a counter in parts, so that CPUs that work on different page
//! blocks do not write the same cache line.
//!
//! Every change goes to the part of the block's neighbourhood. A part that has drifted far is
//! settled with the shared counter, as Linux does with the counters of its CPUs. So the shared
//! counter is off by at most a known amount, which is enough to see that plenty is free. A caller
//! that must know exactly adds up the parts.
//!
//! Invariant `never-too-little`: at every moment the parts and the shared counter together say at
//! least what is free. So a settlement first adds, then subtracts.

use brickyard_sync::{AtomicU64, AtomicUsize, Ordering};

/// The number of parts, and the number of page blocks in a row that belong to one part: those whose
/// states share a cache line.
const PARTS: usize = 16;
const NEIGHBOURS: usize = 8;

/// A part that has drifted further is settled.
const DRIFT_MOST: usize = 2048;

/// Zones with fewer frames have nothing to gain from parts: the shared counter counts everything.
const SMALL_ZONE: usize = 2048;

/// The most times that the parts are added up, to get a sum of one moment.
const READINGS: usize = 4;

/// Counts changes in the high half of a part. So a CPU that looks twice does not mistake two
/// changes for none.
const CHANGE: u64 = 1 << 32;

/// A part: its drift, signed, in the low half; the number of changes in the high half.
#[derive(Debug)]
#[repr(align(128))]
struct Part(AtomicU64);

impl Part {
    fn drift(word: u64) -> isize {
        word as u32 as i32 as isize
    }

    /// Changes the drift by `frames`. Returns the new drift.
    fn change(&self, frames: isize, order: Ordering) -> isize {
        let step = CHANGE.wrapping_add(frames as i64 as u64);
        Self::drift(self.0.fetch_add(step, order).wrapping_add(step))
    }
}

/// The sum of all parts and the shared counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    frames: isize,
    /// If false, the sum is put together from different moments.
    of_one_moment: bool,
}

/// Frames that are free, or in transit to or from the words.
#[derive(Debug)]
pub(super) struct Total {
    shared: Shared,
    parts: [Part; PARTS],
    // 0 means that the parts are not used.
    drift_most: usize,
}

#[derive(Debug)]
#[repr(align(128))]
struct Shared(AtomicUsize);

impl Total {
    /// Returns the total of a zone that spans `span` frames.
    pub(super) const fn new(span: usize) -> Self {
        let drift = span / 128;
        Self {
            shared: Shared(AtomicUsize::new(0)),
            parts: [const { Part(AtomicU64::new(0)) }; PARTS],
            drift_most: match span {
                0..SMALL_ZONE => 0,
                _ if drift < DRIFT_MOST => drift,
                _ => DRIFT_MOST,
            },
        }
    }

    /// Counts frames near `block` that are about to become free.
    pub(super) fn add(&self, block: usize, frames: usize) {
        if self.is_shared(frames) {
            // Relaxed: before the frames are free. The release that frees them publishes it
            // together with them.
            self.shared.0.fetch_add(frames, Ordering::Relaxed);
            return;
        }
        let part = self.part(block);
        // Relaxed: as above.
        let drift = part.change(frames as isize, Ordering::Relaxed);
        if drift > self.drift_most as isize {
            // `never-too-little`. Release: pairs with the acquire in `is_nothing`. A CPU that sees
            // the part lowered sees this.
            self.shared.0.fetch_add(drift as usize, Ordering::Release);
            part.change(-drift, Ordering::Release);
        }
    }

    /// Uncounts frames near `block` that have been taken.
    pub(super) fn remove(&self, block: usize, frames: usize) {
        if self.is_shared(frames) {
            // Release: pairs with the acquire of a CPU that is about to say that nothing is free.
            self.shared.0.fetch_sub(frames, Ordering::Release);
            return;
        }
        let part = self.part(block);
        // Release: as above.
        let drift = part.change(-(frames as isize), Ordering::Release);
        if drift < -(self.drift_most as isize) {
            // `never-too-little`. Release: as above.
            part.change(-drift, Ordering::Release);
            self.shared
                .0
                .fetch_sub(drift.unsigned_abs(), Ordering::Release);
        }
    }

    /// Returns true if a change by `frames` goes to the shared counter at once, since it would soon
    /// be settled anyway.
    const fn is_shared(&self, frames: usize) -> bool {
        frames * 2 > self.drift_most
    }

    fn part(&self, block: usize) -> &Part {
        &self.parts[block / NEIGHBOURS % PARTS]
    }

    /// Returns how far the shared counter can be off. Each part adds what it may drift, and what is
    /// just being settled.
    const fn error_most(&self) -> usize {
        2 * PARTS * self.drift_most
    }

    /// Returns true if at some moment of this call nothing was free or in transit.
    pub(super) fn is_nothing(&self) -> bool {
        // Acquire: pairs with the releases in `remove`.
        let shared = self.shared.0.load(Ordering::Acquire) as isize;
        if self.drift_most == 0 || shared > self.error_most() as isize {
            return shared == 0;
        }
        self.reading()
            == Reading {
                frames: 0,
                of_one_moment: true,
            }
    }

    /// Returns the sum of all parts and the shared counter.
    fn reading(&self) -> Reading {
        let before: [u64; PARTS] = self.words();
        // Acquire: pairs with the releases in `remove` and of settlements.
        let shared = self.shared.0.load(Ordering::Acquire) as isize;
        let parts: isize = before.iter().map(|&word| Part::drift(word)).sum();
        Reading {
            frames: shared + parts,
            // The parts as they were while the shared counter was read, if none has changed since.
            of_one_moment: self.still(&before),
        }
    }

    /// Returns true if no part has changed since its word was as in `before`.
    fn still(&self, before: &[u64; PARTS]) -> bool {
        // Acquire: as in `words`. Without an early exit, so that several are compared at once.
        let differ = |all: u64, (part, before): (&Part, &u64)| {
            all | (part.0.load(Ordering::Acquire) ^ before)
        };
        self.parts.iter().zip(before).fold(0, differ) == 0
    }

    fn words(&self) -> [u64; PARTS] {
        // Acquire: pairs with the releases in `remove` and of settlements.
        core::array::from_fn(|part| self.parts[part].0.load(Ordering::Acquire))
    }

    /// Returns the total as it was at one moment, if no other CPU changed it during one of
    /// [`READINGS`] readings; else approximately.
    pub(super) fn frames(&self) -> usize {
        if self.drift_most == 0 {
            // Relaxed: a hint.
            return self.shared.0.load(Ordering::Relaxed);
        }
        let mut reading = self.reading();
        for _ in 1..READINGS {
            if reading.of_one_moment {
                break;
            }
            reading = self.reading();
        }
        reading.frames.max(0) as usize
    }

    /// Returns the total, or less by an amount that is small in comparison. Reads one word while
    /// plenty is free.
    pub(super) fn frames_at_least(&self) -> usize {
        // Relaxed: a hint.
        let shared = self.shared.0.load(Ordering::Relaxed) as isize;
        let error = self.error_most() as isize;
        if shared > 2 * error {
            return (shared - error) as usize;
        }
        self.frames()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_and_shared_counter_make_the_total() {
        for span in [100, 5000, 1 << 20] {
            let total = Total::new(span);
            let mut model = 0_usize;
            let mut dice = 3_u64;
            for _ in 0..20_000 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (block, frames) = ((dice >> 40) as usize % 300, (dice >> 20) as usize % 700);
                if dice >> 63 == 0 {
                    total.add(block, frames);
                    model += frames;
                } else {
                    let frames = frames.min(model);
                    total.remove(block, frames);
                    model -= frames;
                }
                assert_eq!(total.frames(), model);
                assert_eq!(total.is_nothing(), model == 0);
                assert!(total.frames_at_least() <= model);
                let shared = total.shared.0.load(Ordering::Relaxed) as isize;
                assert!((shared - model as isize).unsigned_abs() <= total.error_most());
            }
            total.remove(0, model);
            assert!(total.is_nothing() && total.frames() == 0);
        }
    }
}
