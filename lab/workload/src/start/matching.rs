//! The types of page blocks that no event shows: given so that the free blocks of each type are
//! those that the host counted.

use brickyard::{MigrateType, Order};
use brickyard_run::Dice;

/// The contents of a page block at the start, in frames.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Contents {
    pub(super) movable: u32,
    pub(super) slab: u32,
    pub(super) other: u32,
    // Free blocks by order, below the order of a page block.
    pub(super) chunks: [u16; CHUNK_ORDERS],
}

/// More orders than there are below that of a page block.
pub(super) const CHUNK_ORDERS: usize = 16;

impl Contents {
    /// How much it looks like a page block of unmovable pages.
    pub(super) fn unmovable(&self) -> i64 {
        i64::from(self.slab) + i64::from(self.other) - i64::from(self.movable)
    }
}

/// Gives types to page blocks so that their free blocks, summed up by type and order, are those
/// that pagetypeinfo counts. Many choices may do that; those with few movable pages in blocks of
/// other types come first.
pub(super) struct Matching<'a> {
    contents: &'a [Contents],
    // Page blocks whose type is not shown.
    open: Vec<usize>,
    // By place in `open`: the types that it does not have.
    excluded: Vec<u8>,
    // By place in `open`.
    types: Vec<MigrateType>,
    // By type and order: what is counted, less what is there.
    missing: [[i64; Order::COUNT]; MigrateType::COUNT],
}

/// What a free block too much or too few weighs, against a movable page in the wrong page block.
const CHUNK_WEIGHT: i64 = 32;

/// What a type weighs that a page block certainly does not have.
const EXCLUDED_WEIGHT: i64 = 100_000;

/// Exchanges that are tried for each page block of a zone.
const TRIES_EACH: usize = 200;

/// The most exchanges that are tried for a zone.
const TRIES_MOST: usize = 1 << 22;

impl<'a> Matching<'a> {
    pub(super) fn new(
        contents: &'a [Contents],
        open: Vec<usize>,
        excluded: Vec<u8>,
        missing: [[i64; Order::COUNT]; MigrateType::COUNT],
    ) -> Self {
        Self {
            contents,
            types: vec![MigrateType::Movable; open.len()],
            open,
            excluded,
            missing,
        }
    }

    /// Gives `count` page blocks this type: those whose contents are most like it.
    pub(super) fn begin(&mut self, kind: MigrateType, count: usize) {
        let contents = self.contents;
        let likeness = |block: usize| {
            let of: &Contents = &contents[block];
            match kind {
                MigrateType::Reclaimable => i64::from(of.slab) - i64::from(of.movable),
                _ => of.unmovable() + i64::from(of.other),
            }
        };
        let mut places: Vec<usize> = (0..self.open.len())
            .filter(|&place| self.types[place] == MigrateType::Movable)
            .collect();
        let is_excluded = |place: usize, kind: MigrateType| {
            i64::from(self.excluded[place] >> kind.index() & 1) * EXCLUDED_WEIGHT
        };
        places.sort_by_key(|&place| {
            let fits = likeness(self.open[place]) + is_excluded(place, MigrateType::Movable);
            (core::cmp::Reverse(fits - is_excluded(place, kind)), place)
        });
        for &place in places.iter().take(count) {
            self.set(place, kind);
        }
    }

    fn set(&mut self, place: usize, kind: MigrateType) {
        let was = core::mem::replace(&mut self.types[place], kind);
        let chunks = &self.contents[self.open[place]].chunks;
        for (order, &count) in chunks.iter().enumerate() {
            self.missing[was.index()][order] += i64::from(count);
            self.missing[kind.index()][order] -= i64::from(count);
        }
    }

    /// Returns how far the free blocks are from what is counted.
    fn cost(&self) -> i64 {
        let of = |kind: MigrateType| {
            let missing = self.missing[kind.index()].iter();
            missing.map(|count| count.abs()).sum::<i64>()
        };
        CHUNK_WEIGHT * (of(MigrateType::Unmovable) + of(MigrateType::Reclaimable))
    }

    /// Returns what speaks against a page block's having this type.
    fn cost_of(&self, place: usize, kind: MigrateType) -> i64 {
        if self.excluded[place] >> kind.index() & 1 == 1 {
            return EXCLUDED_WEIGHT;
        }
        let contents = &self.contents[self.open[place]];
        match kind {
            // Between equals, slabs decide.
            MigrateType::Movable => i64::from(contents.slab > 0),
            _ => i64::from(contents.movable),
        }
    }

    /// Exchanges the types of two page blocks as long as that helps.
    pub(super) fn improve(&mut self, dice: &mut Dice) {
        let members: Vec<usize> = (0..self.open.len())
            .filter(|&place| self.types[place] != MigrateType::Movable)
            .collect();
        if members.is_empty() {
            return;
        }
        let mut members = members;
        let mut cost = self.cost();
        for _ in 0..(self.open.len() * TRIES_EACH).min(TRIES_MOST) {
            let member = dice.below(members.len() as u64) as usize;
            let one = members[member];
            let other = dice.below(self.open.len() as u64) as usize;
            let (kind, other_kind) = (self.types[one], self.types[other]);
            if kind == other_kind {
                continue;
            }
            let movable = |own: &Self, kind: MigrateType, other_kind: MigrateType| {
                own.cost_of(one, kind) + own.cost_of(other, other_kind)
            };
            let before = movable(self, kind, other_kind);
            let after = movable(self, other_kind, kind);
            self.set(one, other_kind);
            self.set(other, kind);
            let new = self.cost();
            if new + after < cost + before {
                cost = new;
                if other_kind == MigrateType::Movable {
                    members[member] = other;
                }
            } else {
                self.set(one, kind);
                self.set(other, other_kind);
            }
        }
    }

    /// Returns the page blocks that are not movable, with their types.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, MigrateType)> + '_ {
        let all = self.open.iter().zip(&self.types);
        all.filter(|&(_, &kind)| kind != MigrateType::Movable)
            .map(|(&block, &kind)| (block, kind))
    }
}
