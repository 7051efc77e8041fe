//! The summary: sets of page blocks, each a tree of 64-bit words in which a bit says that something
//! lies below it.
//!
//! A block is in the set of its mobility and fullness, and in that of its mobility and largest run.
//! A block that is free as a whole is in the set of whole blocks, whatever its mobility. So the
//! fullest block that serves a request is the first one of the first set that is not empty. Finding
//! it takes a look at the roots, and one step down per level. With 64 branches per node, four
//! levels hold 16 TiB of 4 KiB frames.
//!
//! A set is changed after the block's state, by atomic instructions on one word at a time, so it
//! may lag for a moment. A CPU that has taken a block out of a set looks at the state again, and
//! puts the block back if it belongs there. A CPU that has put one in does the reverse (see
//! `Bitmap::moved`). A CPU that has emptied a word clears its bit above, looks again, and sets the
//! bit again if the word has filled meanwhile. So every set is exact while no CPU is at work
//! (`indexed`).

use brickyard_sync::{AtomicU64, Ordering};

use super::state::BlockState;
use crate::{MigrateType, Mobility};

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
pub(super) struct Set(u16);

/// The number of grades of fullness.
pub(super) const GRADES: usize = 6;

/// The most levels of a tree.
const LEVELS: usize = 4;

/// The branches of a node, and the logarithm of that number.
const FANOUT: usize = 64;
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

/// All sets.
#[derive(Debug)]
pub(super) struct Index<'m> {
    words: &'m [AtomicU64],
    shape: Shape,
    // The position of the first set's root.
    roots: usize,
    // The order of a page block.
    block_order: u8,
}

impl<'m> Index<'m> {
    /// The set of blocks that are free as a whole.
    pub(super) const WHOLE: Set = Set(0);

    const fn sets(block_order: u8) -> usize {
        // The runs of order 0 would be those of any block that has free frames.
        1 + Mobility::ALL.len() * (GRADES + block_order as usize - 1)
    }

    /// Returns the number of words that the sets of `positions` positions need.
    pub(super) const fn words_for(positions: usize, block_order: u8) -> usize {
        Shape::new(positions, Self::sets(block_order)).words()
    }

    /// Returns empty sets over words that are all zero.
    pub(super) const fn new(positions: usize, block_order: u8, words: &'m [AtomicU64]) -> Self {
        let shape = Shape::new(positions, Self::sets(block_order));
        Self {
            words,
            shape,
            roots: shape.starts[shape.levels - 1],
            block_order,
        }
    }

    /// Returns the set of blocks of a mobility by how much of them is free. Grade 0 is up to a
    /// 128th, then up to a 32nd, an 8th, 5 16ths, 5 8ths, all but whole.
    pub(super) const fn of_grade(&self, kind: MigrateType, grade: usize) -> Set {
        Set((1 + kind.index() * GRADES + grade) as u16)
    }

    /// Returns the set of blocks of a mobility whose largest run is of this order, 1 and up.
    pub(super) const fn of_run(&self, kind: MigrateType, order: u8) -> Set {
        let graded = 1 + Mobility::ALL.len() * GRADES;
        let runs = self.block_order as usize - 1;
        Set((graded + kind.index() * runs + order as usize - 1) as u16)
    }

    #[inline]
    const fn grade(&self, count: usize) -> usize {
        let full = 1 << self.block_order;
        // Added up: branches would be mispredicted.
        (count > full >> 7) as usize
            + (count > full >> 5) as usize
            + (count > full >> 3) as usize
            + (count > full / 16 * 5) as usize
            + (count > full / 8 * 5) as usize
    }

    /// Returns the sets that a block in this state belongs to.
    #[inline]
    pub(super) const fn sets_of(&self, state: BlockState) -> [Option<Set>; 2] {
        if state.is_whole(1 << self.block_order) {
            return [Some(Self::WHOLE), None];
        }
        if !state.is_open() || state.is_isolated() || state.is_lent() || state.count() == 0 {
            return [None, None];
        }
        let kind = state.kind();
        let graded = self.of_grade(kind, self.grade(state.count()));
        let run = match state.run() {
            0 => None,
            order => Some(self.of_run(kind, order)),
        };
        [Some(graded), run]
    }

    #[inline]
    fn word(&self, set: Set, level: usize, place: usize) -> &AtomicU64 {
        let first = self.shape.starts[level] + set.0 as usize * self.shape.widths[level];
        &self.words[first + place]
    }

    pub(super) fn insert(&self, set: Set, position: usize) {
        self.insert_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Inserts the positions of `bits`, of those from `64 * leaf` on.
    pub(super) fn insert_bits(&self, set: Set, leaf: usize, bits: u64) {
        // AcqRel: as in `insert_from`.
        let before = self.word(set, 0, leaf).fetch_or(bits, Ordering::AcqRel);
        if before == 0 {
            self.insert_from(set, 1, leaf);
        }
    }

    /// Sets the bit of `place` at `level`, and the bits above it as far as they may be missing.
    fn insert_from(&self, set: Set, level: usize, place: usize) {
        let mut place = place;
        for level in level..self.shape.levels {
            let bit = 1 << (place % FANOUT);
            place /= FANOUT;
            // AcqRel: a CPU that finds the bit sees the state for which it was set; also see
            // `remove`.
            let before = self.word(set, level, place).fetch_or(bit, Ordering::AcqRel);
            if before != 0 {
                // The CPU that set the first bit of this word sets the one above.
                return;
            }
        }
    }

    pub(super) fn remove(&self, set: Set, position: usize) {
        self.remove_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Removes the positions of `bits`, of those from `64 * leaf` on.
    pub(super) fn remove_bits(&self, set: Set, leaf: usize, bits: u64) {
        let (mut place, mut bits) = (leaf, bits);
        for level in 0..self.shape.levels {
            // AcqRel: pairs with the `fetch_or` in `insert_bits` and `insert_from`. If bits of one
            // word are set and cleared, the later change sees the other.
            let before = self
                .word(set, level, place)
                .fetch_and(!bits, Ordering::AcqRel);
            if level > 0 {
                let child = (place << FANOUT_SHIFT) + bits.trailing_zeros() as usize;
                // Acquire: as above, for the word below, which may have filled since it was seen
                // empty.
                if self.word(set, level - 1, child).load(Ordering::Acquire) != 0 {
                    self.insert_from(set, level, child);
                    return;
                }
            }
            if before & !bits != 0 || before == 0 {
                return;
            }
            bits = 1 << (place % FANOUT);
            place /= FANOUT;
        }
    }

    /// Returns true if a search of the set would find nothing. The roots of all sets are neighbours,
    /// so a request asks this before it searches.
    #[inline(always)]
    pub(super) fn is_empty(&self, set: Set) -> bool {
        let root = &self.words[self.roots + set.0 as usize];
        // Acquire: as in `find_from`, which would read this word last.
        root.load(Ordering::Acquire) == 0
    }

    pub(super) fn contains(&self, set: Set, position: usize) -> bool {
        let word = self.word(set, 0, position / FANOUT);
        // Acquire: pairs with `insert_from`.
        word.load(Ordering::Acquire) >> (position % FANOUT) & 1 != 0
    }

    /// Returns the word of level 0 that holds the bits of 64 positions from `64 * place` on.
    pub(super) fn leaf(&self, set: Set, place: usize) -> u64 {
        // Acquire: pairs with `insert_from`.
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
            // Acquire: pairs with `insert_from`.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::super::state::Mode;
    use super::*;

    fn zeros(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn finds_what_a_sorted_set_finds() {
        for positions in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let words = zeros(Index::words_for(positions, 9));
            let index = Index::new(positions, 9, &words);
            let set = index.of_grade(MigrateType::Movable, 3);
            let mut model = BTreeSet::new();
            let mut dice = 7_u64;
            for step in 0..4000 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let position = (dice >> 33) as usize % positions;
                // The set is filled in the first half, emptied in the second.
                if (dice >> 20) % 4 == u64::from(step < 2000) {
                    index.remove(set, position);
                    model.remove(&position);
                } else if step < 2000 {
                    index.insert(set, position);
                    model.insert(position);
                } else if let Some(&first) = model.iter().next() {
                    index.remove(set, first);
                    model.remove(&first);
                }
                let up = model.range(position..).next().copied();
                let down = model.range(..=position).next_back().copied();
                assert_eq!(index.find(set, position, End::Low), up);
                assert_eq!(index.find(set, position, End::High), down);
                assert_eq!(index.contains(set, position), model.contains(&position));
                let leaf = index.next_leaf(set, position / 64, End::Low);
                let leaf_slowly = model.range(position / 64 * 64..).next();
                assert_eq!(leaf, leaf_slowly.map(|found| found / 64));
            }
            // Nothing was written into another set.
            let other = index.of_run(MigrateType::Movable, 8);
            assert_eq!(index.find(other, 0, End::Low), None);
        }
    }

    #[test]
    fn a_bit_that_leads_nowhere_is_passed() {
        let words = zeros(Index::words_for(10_000, 9));
        let index = Index::new(10_000, 9, &words);
        index.insert(Index::WHOLE, 130);
        index.insert(Index::WHOLE, 9000);
        // As if the CPU that removed the last bit had stopped before it went up.
        index.word(Index::WHOLE, 0, 2).store(0, Ordering::Relaxed);
        assert_eq!(index.find(Index::WHOLE, 0, End::Low), Some(9000));
        assert_eq!(index.find(Index::WHOLE, 8999, End::High), None);
    }

    #[test]
    fn every_state_has_its_sets() {
        let words = zeros(Index::words_for(1, 9));
        let index = Index::new(1, 9, &words);
        let open = BlockState::default().with_kind(MigrateType::Movable);
        let grades = [1, 4, 5, 16, 17, 64, 65, 160, 161, 320, 321, 511].map(|n| index.grade(n));
        assert_eq!(grades, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        let sets = index.sets_of(open.with_free(100, 3));
        let expected = [
            index.of_grade(MigrateType::Movable, 3),
            index.of_run(MigrateType::Movable, 3),
        ];
        assert_eq!(sets, expected.map(Some));
        assert_eq!(index.sets_of(open.with_free(100, 0))[1], None);
        assert_eq!(index.sets_of(open), [None, None]);
        assert_eq!(
            index.sets_of(open.with_free(512, 8)),
            [Some(Index::WHOLE), None]
        );
        let free = open.with_mode(Mode::Free).with_free(512, 8);
        assert_eq!(index.sets_of(free), [Some(Index::WHOLE), None]);
        assert_eq!(index.sets_of(free.with_isolated(true)), [None, None]);
        assert_eq!(index.sets_of(open.with_mode(Mode::Huge)), [None, None]);
        // All different, and none above the last.
        let mut all: Vec<u16> = std::vec![Index::WHOLE.0];
        for kind in Mobility::ALL.map(MigrateType::from) {
            all.extend((0..GRADES).map(|grade| index.of_grade(kind, grade).0));
            all.extend((1..9).map(|order| index.of_run(kind, order).0));
        }
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(i, &set)| i == set as usize));
        assert_eq!(all.len(), Index::sets(9));
    }
}
