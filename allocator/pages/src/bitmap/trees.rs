//! Sets of positions, each a tree of 64-bit words in which a bit says that something lies below it.
//!
//! A set is changed by atomic instructions on one word at a time. A CPU that has emptied a word
//! clears its bit above, looks again, and sets the bit again if the word has filled meanwhile. A
//! CPU that has filled one does the reverse. So no bit above is missing or left over while no CPU
//! is at work. A search that such a bit leads nowhere meanwhile goes on behind it.

use brickyard_sync::{AtomicU64, Ordering};

/// The end from which blocks are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The low end: for unmovable and reclaimable requests.
    Low,
    /// The high end: for movable requests.
    High,
}

/// A set, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set(pub(super) u16);

/// The most levels of a tree.
const LEVELS: usize = 4;

/// The branches of a node, and the logarithm of that number.
pub(super) const FANOUT: usize = 64;
const FANOUT_SHIFT: u32 = 6;

/// Where each level begins among the words. The words of one level lie together, set by set, so the
/// roots of all sets are neighbours: a request sees in a few cache lines which sets have anything.
/// An absent level has no words.
#[derive(Debug, Clone, Copy)]
struct Shape {
    starts: [usize; LEVELS + 1],
    widths: [usize; LEVELS],
    levels: usize,
}

impl Shape {
    const fn new(positions: usize, sets: usize) -> Self {
        let mut starts = [0; LEVELS + 1];
        let mut widths = [0; LEVELS];
        let mut levels = 0;
        let mut width = positions;
        while levels == 0 || width > 1 {
            assert!(levels < LEVELS, "a zone has at most 2^24 page blocks");
            width = width.div_ceil(FANOUT);
            widths[levels] = width;
            starts[levels + 1] = starts[levels] + sets * width;
            levels += 1;
        }
        Self {
            starts,
            widths,
            levels,
        }
    }

    const fn words(&self) -> usize {
        self.starts[self.levels]
    }
}

/// Sets of the same positions.
#[derive(Debug)]
pub(super) struct Trees<'m> {
    words: &'m [AtomicU64],
    shape: Shape,
    // The position of the first set's root.
    roots: usize,
}

impl<'m> Trees<'m> {
    /// Returns the number of words that `sets` sets of `positions` positions need.
    pub(super) const fn words_for(positions: usize, sets: usize) -> usize {
        Shape::new(positions, sets).words()
    }

    /// Returns empty sets over words that are all zero.
    pub(super) const fn new(positions: usize, sets: usize, words: &'m [AtomicU64]) -> Self {
        let shape = Shape::new(positions, sets);
        Self {
            words,
            shape,
            roots: shape.starts[shape.levels - 1],
        }
    }

    /// Returns the place of the last word of level 0.
    pub(super) const fn last_leaf(&self) -> usize {
        self.shape.widths[0] - 1
    }

    #[inline]
    pub(super) fn word(&self, set: Set, level: usize, place: usize) -> &AtomicU64 {
        let first = self.shape.starts[level] + set.0 as usize * self.shape.widths[level];
        &self.words[first + place]
    }

    #[inline(never)]
    pub(super) fn insert(&self, set: Set, position: usize) {
        self.insert_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Inserts the positions of `bits`, of those from `64 * leaf` on. Returns what was there
    /// before.
    #[inline]
    pub(super) fn insert_bits(&self, set: Set, leaf: usize, bits: u64) -> u64 {
        // AcqRel: as in `lift`.
        let before = self.word(set, 0, leaf).fetch_or(bits, Ordering::AcqRel);
        if before == 0 {
            self.lift(set, leaf, true);
        }
        before
    }

    /// Makes the bit of `leaf` at level 1 follow the word below, which this CPU has just filled
    /// (`held`) or emptied. Then the bits above it, as far as this fills or empties words. When the
    /// first bit of a word was set, the bits above it come first, and then the word below is looked
    /// at again.
    ///
    /// For why the bit is exact when all CPUs have come so far, see [`Trees::follow`].
    fn lift(&self, set: Set, leaf: usize, held: bool) {
        let (mut level, mut held) = (1, held);
        // The levels whose word below is yet to be looked at again, one bit each.
        let mut unsure = 0_u32;
        // Acquire: pairs with the changes of the word below. If the bit is set and cleared, the
        // later CPU sees what the other saw there.
        let holds = |level: usize| {
            let child = leaf >> ((level as u32 - 1) * FANOUT_SHIFT);
            self.word(set, level - 1, child).load(Ordering::Acquire) != 0
        };
        loop {
            let mut settled = level >= self.shape.levels;
            if !settled {
                let child = leaf >> ((level as u32 - 1) * FANOUT_SHIFT);
                let (place, bit) = (child / FANOUT, 1 << (child % FANOUT));
                let word = self.word(set, level, place);
                // AcqRel, twice: a CPU that finds the bit sees the state for which it was set; also
                // as above.
                if held {
                    if word.fetch_or(bit, Ordering::AcqRel) == 0 {
                        // Else the CPU that set the first bit of this word sets the one above.
                        unsure |= 1 << level;
                        level += 1;
                        continue;
                    }
                    settled = holds(level);
                } else {
                    let before = word.fetch_and(!bit, Ordering::AcqRel);
                    settled = !holds(level);
                    if settled && before == bit {
                        level += 1;
                        continue;
                    }
                }
            }
            if !settled {
                held = !held;
                continue;
            }
            // What is above is as it should be. Back to the highest level that is not sure.
            loop {
                if unsure == 0 {
                    return;
                }
                level = unsure.ilog2() as usize;
                unsure &= !(1 << level);
                if !holds(level) {
                    held = false;
                    break;
                }
            }
        }
    }

    #[inline(never)]
    pub(super) fn remove(&self, set: Set, position: usize) {
        self.remove_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Removes the positions of `bits`, of those from `64 * leaf` on. Returns what was there
    /// before.
    #[inline]
    pub(super) fn remove_bits(&self, set: Set, leaf: usize, bits: u64) -> u64 {
        // AcqRel: as in `lift`.
        let before = self.word(set, 0, leaf).fetch_and(!bits, Ordering::AcqRel);
        if before & !bits == 0 && before != 0 {
            self.lift(set, leaf, false);
        }
        before
    }

    /// Makes a position of a set follow what `holds` says of something else. To be called by every
    /// CPU that has changed that, after the change.
    ///
    /// The set is exact again once all these CPUs have come so far: the last of them to change it
    /// has looked once more since, and its atomic instruction on the same word comes after those of
    /// the others, so it has seen what they saw. It tries again only if another CPU has changed
    /// what is followed.
    pub(super) fn follow(&self, set: Set, position: usize, holds: impl Fn() -> bool) {
        let mut held = holds();
        loop {
            match held {
                true => self.insert(set, position),
                false => self.remove(set, position),
            }
            let now = holds();
            if now == held {
                return;
            }
            held = now;
        }
    }

    /// Returns true if a search of the set would find nothing. The roots of all sets are
    /// neighbours, so a request asks this before it searches.
    #[inline(always)]
    pub(super) fn is_empty(&self, set: Set) -> bool {
        let root = &self.words[self.roots + set.0 as usize];
        // Acquire: as in `find_from`, which would read this word last.
        root.load(Ordering::Acquire) == 0
    }

    pub(super) fn contains(&self, set: Set, position: usize) -> bool {
        let word = self.word(set, 0, position / FANOUT);
        // Acquire: pairs with `lift`.
        word.load(Ordering::Acquire) >> (position % FANOUT) & 1 != 0
    }

    /// Returns true if every bit above level 0, in the first `sets` sets, says whether the word
    /// below it is empty. No other CPU may be at work.
    pub(super) fn is_linked(&self, sets: usize) -> bool {
        let holds = |set, level, place| {
            // Relaxed: no other CPU is at work.
            self.word(set, level, place).load(Ordering::Relaxed)
        };
        (0..sets as u16).map(Set).all(|set| {
            (1..self.shape.levels).all(|level| {
                (0..self.shape.widths[level - 1]).all(|child| {
                    let above = holds(set, level, child / FANOUT) >> (child % FANOUT) & 1;
                    above == u64::from(holds(set, level - 1, child) != 0)
                })
            })
        })
    }

    /// Returns the word of level 0 that holds the bits of 64 positions from `64 * place` on.
    pub(super) fn leaf(&self, set: Set, place: usize) -> u64 {
        // Acquire: pairs with `lift`.
        self.word(set, 0, place).load(Ordering::Acquire)
    }

    /// Returns the first word of level 0 with a bit set, at or after `place` in the direction of
    /// search.
    pub(super) fn next_leaf(&self, set: Set, place: usize, end: End) -> Option<usize> {
        if self.shape.levels == 1 {
            return (place == 0 && self.leaf(set, 0) != 0).then_some(0);
        }
        self.find_from(set, 1, place, end)
    }

    /// Returns the first position of `set`, at or after `position` in the direction of search.
    #[inline]
    pub(super) fn find(&self, set: Set, position: usize, end: End) -> Option<usize> {
        self.find_from(set, 0, position, end)
    }

    /// Returns the first bit at `level`, at or after that of `place`. Goes up while there is
    /// nothing, then down. If a bit led to an empty word, starts again from there.
    fn find_from(&self, set: Set, lowest: usize, place: usize, end: End) -> Option<usize> {
        let (mut level, mut place) = (lowest, place);
        loop {
            let (word, bit) = (place / FANOUT, place % FANOUT);
            if word >= self.shape.widths[level] {
                return None;
            }
            // Acquire: pairs with `lift`.
            let bits = self.word(set, level, word).load(Ordering::Acquire);
            let ahead = match end {
                End::Low => bits & (!0 << bit),
                End::High => bits & (!0 >> (FANOUT - 1 - bit)),
            };
            if ahead == 0 {
                level += 1;
                if level >= self.shape.levels {
                    return None;
                }
                // Past the word just seen.
                place = match end {
                    End::Low => word + 1,
                    End::High => word.checked_sub(1)?,
                };
                continue;
            }
            let found = match end {
                End::Low => ahead.trailing_zeros(),
                End::High => ahead.ilog2(),
            };
            place = (word << FANOUT_SHIFT) + found as usize;
            if level == lowest {
                return Some(place);
            }
            level -= 1;
            place = match end {
                End::Low => place << FANOUT_SHIFT,
                End::High => (place << FANOUT_SHIFT) + FANOUT - 1,
            };
        }
    }
}
