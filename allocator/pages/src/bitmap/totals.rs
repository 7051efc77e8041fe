//! The total number of free frames: a counter in parts, so that CPUs that work on different page
//! blocks do not write the same cache line.
//!
//! A change goes to the part of the block's neighbourhood. A part that would drift too far is
//! settled with the shared counter, as Linux does with the counters of its CPUs: by one CPU, which
//! claims the part first. What does not fit into a part meanwhile goes to the shared counter, and
//! so does what loses to another CPU's change. So the shared counter is off by at most a known
//! amount, however many CPUs are at work and wherever they stand still, which is enough to see that
//! plenty is free. A caller that must know exactly adds up the parts.
//!
//! Invariant `never-too-little`: at every moment the parts and the shared counter together say at
//! least what is free. So a settlement first adds, then subtracts.

use brickyard_sync::{AtomicU64, Ordering};

/// The number of page blocks whose states share a cache line.
pub(super) const NEIGHBOURS: usize = 8;

/// The number of parts. Neighbours belong to one part.
const PARTS: usize = 16;

/// The most that a part drifts.
const DRIFT_MOST: usize = 2048;

/// Zones with fewer frames have nothing to gain from parts: the shared counter counts everything.
const SMALL_ZONE: usize = 2048;

/// How often a change is tried in a part, which other CPUs change too.
const TRIES: usize = 4;

/// The most times that the parts are added up, to get a sum of one moment.
const READINGS: usize = 4;

/// The bits of a counter that count frames.
const FRAME_BITS: u32 = 34;

/// Above them, changes are counted, in steps of two. So a CPU that looks twice does not mistake two
/// changes for none. The number is odd while a CPU settles the part.
const CLAIM: u64 = 1 << FRAME_BITS;

/// A number of frames, signed, plus [`CLAIM`] times the number of changes.
#[derive(Debug)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    const fn frames(word: u64) -> i64 {
        (word << (64 - FRAME_BITS)) as i64 >> (64 - FRAME_BITS)
    }

    const fn changes(word: u64) -> u64 {
        word.wrapping_sub(Self::frames(word) as u64) >> FRAME_BITS
    }

    fn change(&self, frames: i64, order: Ordering) {
        let step = (2 * CLAIM).wrapping_add_signed(frames);
        self.0.fetch_add(step, order);
    }

    /// Adds `frames` and one claim, unless the word has changed since it was `seen`.
    fn change_from(&self, seen: u64, claims: u64, frames: i64, order: Ordering) -> bool {
        let new = seen
            .wrapping_add_signed(frames)
            .wrapping_add(claims * CLAIM);
        // Relaxed on failure: nothing is done then.
        self.0
            .compare_exchange(seen, new, order, Ordering::Relaxed)
            .is_ok()
    }
}

/// The sum of all parts and the shared counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    frames: i64,
    /// If false, the sum is put together from different moments.
    of_one_moment: bool,
}

/// Frames that are free, or in transit to or from the words.
#[derive(Debug)]
pub(super) struct Total {
    shared: Counter,
    parts: [Counter; PARTS],
    // 0 means that the parts are not used.
    drift_most: usize,
}

impl Total {
    /// Returns the total of a zone that spans `span` frames.
    pub(super) const fn new(span: usize) -> Self {
        let drift = span / 128;
        Self {
            shared: Counter::new(),
            parts: [const { Counter::new() }; PARTS],
            drift_most: match span {
                0..SMALL_ZONE => 0,
                _ if drift < DRIFT_MOST => drift,
                _ => DRIFT_MOST,
            },
        }
    }

    /// Counts frames near `block` that are about to become free.
    pub(super) fn add(&self, block: usize, frames: usize) {
        // Relaxed: before the frames are free. The release that frees them publishes it together
        // with them.
        self.count(block, frames as i64, Ordering::Relaxed);
    }

    /// Uncounts frames near `block` that have been taken.
    pub(super) fn remove(&self, block: usize, frames: usize) {
        // Release: pairs with the acquire of a CPU that is about to say that nothing is free.
        self.count(block, -(frames as i64), Ordering::Release);
    }

    fn count(&self, block: usize, frames: i64, order: Ordering) {
        let part = self.part(block);
        if !self.is_shared(frames.unsigned_abs() as usize) {
            for _ in 0..TRIES {
                // Relaxed: nothing happens to a word that is not as it was seen.
                if self.count_in(part, part.0.load(Ordering::Relaxed), frames, order) {
                    return;
                }
            }
        }
        self.shared.change(frames, order);
    }

    /// Counts in a part that was `seen` so. Returns false, and has done nothing, if it has changed
    /// since, or is being settled and has no room.
    fn count_in(&self, part: &Counter, seen: u64, frames: i64, order: Ordering) -> bool {
        let drift = Counter::frames(seen);
        if (drift + frames).unsigned_abs() as usize <= self.drift_most {
            return part.change_from(seen, 2, frames, order);
        }
        let claimed = Self::claim(part, seen);
        if claimed {
            self.settle(part, drift, frames);
        }
        claimed
    }

    /// Claims a part that was `seen` so, for [`Total::settle`]. Only one CPU has it at a time.
    fn claim(part: &Counter, seen: u64) -> bool {
        // `never-too-little`: a drift below 0 ends before the shared counter is lowered. Release:
        // as in `settle`.
        let added = (-Counter::frames(seen)).max(0);
        Counter::changes(seen).is_multiple_of(2)
            && part.change_from(seen, 1, added, Ordering::Release)
    }

    /// Moves the drift that a claimed part had to the shared counter, together with `frames` more.
    fn settle(&self, part: &Counter, drift: i64, frames: i64) {
        // `never-too-little`: a drift above 0 ends after the shared counter is raised. Release:
        // pairs with the acquires in `reading`. A CPU that sees the part lowered sees this, and a
        // CPU that sees this sees the part raised.
        self.shared.change(drift + frames, Ordering::Release);
        let subtracted = (-drift).min(0);
        part.0
            .fetch_add(CLAIM.wrapping_add_signed(subtracted), Ordering::Release);
    }

    /// Returns true if a change by `frames` goes to the shared counter at once, since it would soon
    /// be settled anyway.
    const fn is_shared(&self, frames: usize) -> bool {
        frames * 2 > self.drift_most
    }

    fn part(&self, block: usize) -> &Counter {
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
        let shared = Counter::frames(self.shared.0.load(Ordering::Acquire));
        if self.drift_most == 0 || shared > self.error_most() as i64 {
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
        let shared = Counter::frames(self.shared.0.load(Ordering::Acquire));
        let parts: i64 = before.iter().map(|&word| Counter::frames(word)).sum();
        Reading {
            frames: shared + parts,
            // The parts as they were while the shared counter was read, if none has changed since.
            of_one_moment: self.still(&before),
        }
    }

    /// Returns true if no part has changed since its word was as in `before`.
    fn still(&self, before: &[u64; PARTS]) -> bool {
        // Acquire: as in `words`. Without an early exit, so that several are compared at once.
        let differ = |all: u64, (part, before): (&Counter, &u64)| {
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
            return Counter::frames(self.shared.0.load(Ordering::Relaxed)) as usize;
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
        let shared = Counter::frames(self.shared.0.load(Ordering::Relaxed));
        let error = self.error_most() as i64;
        if shared > 2 * error {
            return (shared - error) as usize;
        }
        self.frames()
    }

    /// Returns a number that is unchanged if nothing has become free or been taken meanwhile.
    pub(super) fn changes(&self) -> u64 {
        let all = self.parts.iter().chain([&self.shared]);
        // Acquire: as in `words`.
        all.map(|counter| Counter::changes(counter.0.load(Ordering::Acquire)))
            .fold(0, u64::wrapping_add)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// How far the shared counter is off.
    fn error(total: &Total, frames: usize) -> usize {
        let shared = Counter::frames(total.shared.0.load(Ordering::Relaxed));
        (shared - frames as i64).unsigned_abs() as usize
    }

    fn word(total: &Total) -> u64 {
        total.part(0).0.load(Ordering::Relaxed)
    }

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
                assert!(error(&total, model) <= total.error_most());
            }
            total.remove(0, model);
            assert!(total.is_nothing() && total.frames() == 0);
        }
    }
    /// Many CPUs have read one part before any of them changes it; and one of them stands still
    /// while it settles the part.
    #[test]
    fn any_number_of_cpus_at_one_part_keep_the_error_within_its_bound() {
        let count = |total: &Total, seen: u64, frames: i64| {
            let part = total.part(0);
            if !total.count_in(part, seen, frames, Ordering::Release) {
                total.shared.change(frames, Ordering::Release);
            }
        };
        for sign in [1_i64, -1] {
            let total = Total::new(1 << 22);
            let mut model = 1_usize << 21;
            total.add(0, model);
            for frames in [1024_i64, 512, 700] {
                for seen_beyond in [false, true] {
                    // The part stands at its limit, or just below it.
                    let change = sign * frames;
                    while (Counter::frames(word(&total)) + change).unsigned_abs() <= 2048 {
                        count(&total, word(&total), change);
                        model = model.checked_add_signed(change as isize).unwrap();
                    }
                    let seen = word(&total);
                    let seen = match seen_beyond {
                        true => seen,
                        false => {
                            total.part(0).change(-change, Ordering::Release);
                            model = model.checked_add_signed(-change as isize).unwrap();
                            word(&total)
                        }
                    };
                    for _ in 0..200 {
                        count(&total, seen, change);
                        model = model.checked_add_signed(change as isize).unwrap();
                        assert_eq!(total.frames(), model);
                        assert!(error(&total, model) <= total.error_most());
                        assert!(Counter::frames(word(&total)).unsigned_abs() <= 2048);
                        assert!(total.frames_at_least() <= model);
                    }
                }
            }
            // One CPU claims it, and stands still before and after it has written what it moves.
            let change = sign * 1024;
            while (Counter::frames(word(&total)) + change).unsigned_abs() <= 2048 {
                count(&total, word(&total), change);
                model = model.checked_add_signed(change as isize).unwrap();
            }
            let seen = word(&total);
            assert!(Total::claim(total.part(0), seen));
            assert!(!Total::claim(total.part(0), seen));
            for _ in 0..200 {
                total.count(0, change, Ordering::Release);
                model = model.checked_add_signed(change as isize).unwrap();
                assert!(!Total::claim(total.part(0), word(&total)));
                assert!(total.frames() >= model, "never-too-little");
                assert!(error(&total, model) <= total.error_most());
            }
            total.settle(total.part(0), Counter::frames(seen), 0);
            assert_eq!(total.frames(), model);
            assert!(error(&total, model) <= total.error_most());
            let settled = word(&total);
            assert!(Total::claim(total.part(0), settled));
            total.settle(total.part(0), Counter::frames(settled), 0);
            assert_eq!(Counter::frames(word(&total)), 0);
        }
    }

    /// Two changes that undo each other are two changes, in a part and in the shared counter.
    #[test]
    fn changes_are_counted() {
        for span in [100, 1 << 20] {
            let total = Total::new(span);
            for frames in [1, 60, 5000] {
                let before = total.changes();
                total.add(3, frames);
                let between = total.changes();
                total.remove(3, frames);
                assert!(before != between && between != total.changes());
                assert_ne!(before, total.changes());
                assert_eq!(total.changes(), total.changes());
            }
        }
    }
}
