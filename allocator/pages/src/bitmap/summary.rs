//! The summary: sets of page blocks, each a tree of 64-bit words in which a bit says that something
//! lies below it.
//!
//! A block is in the set of its mobility and fullness, and in that of its mobility and largest run.
//! A block that is free as a whole is in the set of whole blocks, whatever its mobility. So the
//! fullest block that serves a request is the first one of the first set that is not empty. Finding
//! it takes a look at the roots, and one step down per level. With 64 branches per node, four
//! levels hold 16 TiB of 4 KiB frames.
//!
//! A set is changed after the block's state, by atomic instructions on one word at a time
//! (`trees.rs`), so it may lag for a moment. A CPU that has taken a block out of a set looks at the
//! state again, and puts the block back if it belongs there. A CPU that has put one in does the
//! reverse (see `Bitmap::moved`). So every set is exact while no CPU is at work (`indexed`).
//!
//! **Groups.** A request for an aligned group of page blocks is not to read the set of whole blocks
//! word by word. So for each order of groups there is one more tree: a bit for each word (*leaf*)
//! of that set, which says that the leaf has such a group. That is a 64th of a bit for a page block
//! and order. A CPU that changes a leaf so that it has a group for the first time, or no longer,
//! makes the bit follow; most changes do neither, and write nothing here. Above 64 page blocks, a
//! group is a row of leaves that are full, and these are the bits of the largest order.
//!
//! A search for a group of up to 64 page blocks goes up such a tree and down again, and reads one
//! leaf: at most 6 words in all, 4 up to 512 GiB, 2 up to 8 GiB; where there is no group, at most
//! 3. It reads up to 6 more for each page block that another CPU is moving to or from the set at
//! that moment. A search for a larger group reads at most 2 words for each 4096 page blocks, and 3
//! in all to find the end. A CPU that stands still between a leaf and its bit hides all groups of
//! this order in the leaf.

use brickyard_sync::AtomicU64;

use super::state::BlockState;
pub(super) use super::trees::{End, Set};
use super::trees::{FANOUT, Trees};
use super::word;
use crate::{MigrateType, Mobility};

/// The number of grades of fullness.
pub(super) const GRADES: usize = 6;

/// The first grade of blocks that are sparse.
const FIRST_SPARSE: usize = 4;

/// The largest group that one leaf can have: all of it.
const LEAF_GROUP: u8 = 6;

/// All sets.
#[derive(Debug)]
pub(super) struct Index<'m> {
    sets: Trees<'m>,
    // Of the leaves of `WHOLE`: for each order of groups, those that have one.
    leaves: Trees<'m>,
    // The largest group that is looked for in a leaf.
    largest: u8,
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

    /// Returns the largest group that is looked for in a leaf, if there are groups of up to
    /// 2^`groups` page blocks.
    const fn largest(groups: u8) -> u8 {
        if groups < LEAF_GROUP {
            groups
        } else {
            LEAF_GROUP
        }
    }

    /// Returns the number of words for the sets of `positions` positions of page blocks, and for
    /// groups of up to 2^`groups` of them.
    pub(super) const fn words_for(positions: usize, block_order: u8, groups: u8) -> usize {
        let leaves = positions.div_ceil(FANOUT);
        Trees::words_for(positions, Self::sets(block_order))
            + match Self::largest(groups) {
                0 => 0,
                largest => Trees::words_for(leaves, largest as usize),
            }
    }

    /// Returns empty sets over words that are all zero.
    pub(super) const fn new(
        positions: usize,
        block_order: u8,
        groups: u8,
        words: &'m [AtomicU64],
    ) -> Self {
        let sets = Self::sets(block_order);
        let largest = Self::largest(groups);
        let (words, leaves) = words.split_at(Trees::words_for(positions, sets));
        Self {
            sets: Trees::new(positions, sets, words),
            leaves: Trees::new(positions.div_ceil(FANOUT), largest as usize, leaves),
            largest,
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

    /// Returns true if more than 5 16ths of a block are free.
    pub(super) const fn is_sparse(&self, state: BlockState) -> bool {
        self.grade(state.count()) >= FIRST_SPARSE
    }

    /// Returns the sets that a block in this state belongs to.
    #[inline]
    pub(super) const fn sets_of(&self, state: BlockState) -> [Option<Set>; 2] {
        if state.is_whole(1 << self.block_order) {
            return [Some(Self::WHOLE), None];
        }
        if !state.is_open() || state.is_unlisted() || state.count() == 0 {
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

    pub(super) fn insert(&self, set: Set, position: usize) {
        self.insert_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Inserts the positions of `bits`, of those from `64 * leaf` on.
    pub(super) fn insert_bits(&self, set: Set, leaf: usize, bits: u64) {
        let before = self.sets.insert_bits(set, leaf, bits);
        if set == Self::WHOLE {
            self.regroup(leaf, before, before | bits);
        }
    }

    pub(super) fn remove(&self, set: Set, position: usize) {
        self.remove_bits(set, position / FANOUT, 1 << (position % FANOUT));
    }

    /// Removes the positions of `bits`, of those from `64 * leaf` on.
    pub(super) fn remove_bits(&self, set: Set, leaf: usize, bits: u64) {
        let before = self.sets.remove_bits(set, leaf, bits);
        if set == Self::WHOLE {
            self.regroup(leaf, before, before & !bits);
        }
    }

    /// Returns true if a search of the set would find nothing. The roots of all sets are
    /// neighbours, so a request asks this before it searches.
    #[inline(always)]
    pub(super) fn is_empty(&self, set: Set) -> bool {
        self.sets.is_empty(set)
    }

    pub(super) fn contains(&self, set: Set, position: usize) -> bool {
        self.sets.contains(set, position)
    }

    /// Returns the word of level 0 that holds the bits of 64 positions from `64 * place` on.
    pub(super) fn leaf(&self, set: Set, place: usize) -> u64 {
        self.sets.leaf(set, place)
    }

    /// Returns the first word of level 0 with a bit set, at or after `place` in the direction of
    /// search.
    pub(super) fn next_leaf(&self, set: Set, place: usize, end: End) -> Option<usize> {
        self.sets.next_leaf(set, place, end)
    }

    /// Returns the first position of `set`, at or after `position` in the direction of search.
    #[inline]
    pub(super) fn find(&self, set: Set, position: usize, end: End) -> Option<usize> {
        self.sets.find(set, position, end)
    }

    // ---- groups ----

    /// Returns the set of leaves that have a group of 2^`group` whole blocks, 1 and up.
    const fn of_group(group: u8) -> Set {
        Set(group as u16 - 1)
    }

    /// Makes the sets of leaves follow a change of a leaf by this CPU, from `before` to `after`.
    #[inline]
    fn regroup(&self, leaf: usize, before: u64, after: u64) {
        let (mut had, mut has) = (before, after);
        for group in 1..=self.largest {
            (had, has) = (word::doubled(had, group - 1), word::doubled(has, group - 1));
            if had | has == 0 {
                // Nor any larger group.
                return;
            }
            if (had == 0) != (has == 0) {
                self.leaves.follow(Self::of_group(group), leaf, || {
                    word::starts(self.leaf(Self::WHOLE, leaf), group) != 0
                });
            }
        }
    }

    /// Returns true if the sets say of a leaf what it has.
    pub(super) fn is_grouped(&self, leaf: usize) -> bool {
        (1..=self.largest).all(|group| {
            let has = word::starts(self.leaf(Self::WHOLE, leaf), group) != 0;
            self.leaves.contains(Self::of_group(group), leaf) == has
        })
    }

    /// Returns true if every bit above level 0 says what lies below it. No other CPU may be at
    /// work.
    pub(super) fn is_linked(&self) -> bool {
        let sets = Self::sets(self.block_order);
        self.sets.is_linked(sets) && self.leaves.is_linked(self.largest as usize)
    }

    /// Returns the first position of the first aligned group of 2^`group` whole blocks, 1 and up,
    /// from this end. For the words that it reads, see the [module](self).
    pub(super) fn find_group(&self, group: u8, end: End) -> Option<usize> {
        // A group larger than a leaf is a row of full leaves.
        let rows = group > LEAF_GROUP;
        let set = Self::of_group(group.min(LEAF_GROUP));
        let (order, size, last) = match rows {
            false => (group, FANOUT, self.sets.last_leaf()),
            true => (group - LEAF_GROUP, FANOUT * FANOUT, self.leaves.last_leaf()),
        };
        let next = |from: usize| match rows {
            false => self.leaves.find(set, from, end),
            true => self.leaves.next_leaf(set, from, end),
        };
        let mut from = if end == End::Low { 0 } else { last };
        while let Some(place) = next(from) {
            let bits = match rows {
                false => self.leaf(Self::WHOLE, place),
                true => self.leaves.leaf(set, place),
            };
            let starts = word::starts(bits, order);
            let bit = match end {
                _ if starts == 0 => None,
                End::Low => Some(starts.trailing_zeros()),
                End::High => Some(starts.ilog2()),
            };
            if let Some(bit) = bit {
                return Some(place * size + ((bit as usize) << (group - order)));
            }
            // There are only full leaves that are not in a row, or another CPU has just changed the
            // leaf.
            from = match end {
                End::Low => place + 1,
                End::High => place.checked_sub(1)?,
            };
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::super::state::BlockMode;
    use super::*;

    fn zeros(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn finds_what_a_sorted_set_finds() {
        for positions in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let words = zeros(Index::words_for(positions, 9, 1));
            let index = Index::new(positions, 9, 1, &words);
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
        let words = zeros(Index::words_for(10_000, 9, 1));
        let index = Index::new(10_000, 9, 1, &words);
        index.insert(Index::WHOLE, 130);
        index.insert(Index::WHOLE, 9000);
        // As if the CPU that removed the last bit had stopped before it went up.
        index
            .sets
            .word(Index::WHOLE, 0, 2)
            .store(0, brickyard_sync::Ordering::Relaxed);
        assert_eq!(index.find(Index::WHOLE, 0, End::Low), Some(9000));
        assert_eq!(index.find(Index::WHOLE, 8999, End::High), None);
    }

    #[test]
    fn a_group_beside_one_that_is_not_yet_known_waits_for_it() {
        let words = zeros(Index::words_for(10_000, 9, 1));
        let index = Index::new(10_000, 9, 1, &words);
        let pair = |first: usize| 3 << (first % 64);
        // As if the CPU that freed the first pair had stopped before it wrote that down.
        index.sets.insert_bits(Index::WHOLE, 2, pair(130));
        index.insert_bits(Index::WHOLE, 2, pair(140));
        assert_eq!(index.find_group(1, End::Low), None);
        // It goes on.
        index.regroup(2, 0, pair(130));
        assert_eq!(index.find_group(1, End::Low), Some(130));
        assert!(index.is_grouped(2));
    }

    #[test]
    fn a_group_is_found_behind_what_is_none() {
        let words = zeros(Index::words_for(3 * 4096, 9, 9));
        let index = Index::new(3 * 4096, 9, 9, &words);
        // As if CPUs that emptied leaves had stopped before they wrote that down.
        for leaf in [0, 191] {
            index.leaves.insert(Index::of_group(1), leaf);
        }
        index.insert_bits(Index::WHOLE, 100, 0b1100);
        for end in [End::Low, End::High] {
            assert_eq!(index.find_group(1, end), Some(6402));
        }
        // Leaves that are full, but not an aligned pair; and a pair, in the middle.
        for leaf in [1, 2, 68, 69, 129] {
            index.insert_bits(Index::WHOLE, leaf, !0);
        }
        for end in [End::Low, End::High] {
            assert_eq!(index.find_group(7, end), Some(68 * 64));
        }
        // The last pair of all.
        index.insert_bits(Index::WHOLE, 190, !0);
        index.insert_bits(Index::WHOLE, 191, !0);
        assert_eq!(index.find_group(7, End::Low), Some(68 * 64));
        assert_eq!(index.find_group(7, End::High), Some(190 * 64));
    }

    #[test]
    fn every_state_has_its_sets() {
        let words = zeros(Index::words_for(1, 9, 1));
        let index = Index::new(1, 9, 1, &words);
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
        let free = open.with_mode(BlockMode::Free).with_free(512, 8);
        assert_eq!(index.sets_of(free), [Some(Index::WHOLE), None]);
        assert_eq!(index.sets_of(free.with_isolated(true)), [None, None]);
        assert_eq!(index.sets_of(open.with_mode(BlockMode::Huge)), [None, None]);
        for some in [100, 512] {
            let kept = open.with_free(some, 3).with_aside(true);
            assert_eq!(index.sets_of(kept), [None, None]);
        }
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
