//! Loans: page blocks that a CPU's stash fetches from, and that are in no set while it does.
//!
//! A CPU that takes and frees many frames moves its blocks from set to set all the time, and the
//! sets' words are written by all CPUs: with many of them they wait for each other there. A block
//! that is lent stays out of the sets, so that this CPU's traffic with it writes the block's own
//! words alone. Nobody is kept from it: its frames are counted, who frees one of them meets no
//! difference, and whoever finds nothing in the sets of its own mobility calls all loans in before
//! it takes from another's. Loans are given only while blocks are free as a whole, so that there is
//! no haste.
//!
//! A CPU opens blocks next to those that it has already, since eight of them have their states in
//! one cache line.

use brickyard_sync::Ordering;

use super::index::Index;
use super::state::BlockState;
use super::take::Wanted;
use super::{Attempt, Bitmap};
use crate::MigrateType;

/// Page blocks whose states share a cache line.
const NEIGHBOURS: usize = 8;

/// Words of a set that are looked through for neighbours that are all free.
const LEAVES_MOST: usize = 16;

/// Positions that share a word of a set.
const LEAF: usize = 64;

/// Does a block that frames are taken from become the taker's to fetch from?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loan {
    /// No.
    None,
    /// Yes.
    Any,
    /// Yes, and one that has to be opened is best a neighbour of this one.
    Near(usize),
}

/// Whom a block may be lent to that frames are freed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrower {
    /// Nobody.
    Nobody,
    /// A CPU that wants blocks of this mobility.
    Cpu(MigrateType),
}

impl Borrower {
    /// The state of a block, lent if it is to be.
    pub(super) fn take(self, state: BlockState) -> BlockState {
        match self {
            Self::Cpu(kind) if kind == state.kind() && state.is_open() => state.with_lent(true),
            _ => state,
        }
    }
}

/// What a CPU has on loan, as whoever gives its frames back sees it.
pub(crate) trait Borrows {
    /// Whom the next block may be lent to.
    fn borrower(&self) -> Borrower;

    /// The CPU has got this one.
    fn lent(&mut self, block: usize);
}

/// Nobody borrows.
impl Borrows for () {
    fn borrower(&self) -> Borrower {
        Borrower::Nobody
    }

    fn lent(&mut self, _block: usize) {}
}

impl Bitmap<'_> {
    /// May loans be given? Not where there is no block left that is free as a whole: then each is
    /// wanted by somebody.
    pub(crate) fn may_lend(&self) -> bool {
        !self.index.is_empty(Index::WHOLE) && !self.isolation.any()
    }

    /// How many frames the stash of a CPU can fetch from a block of this mobility that it has;
    /// `None` if it is no such block any more.
    pub(crate) fn at_hand(&self, block: usize, kind: MigrateType) -> Option<usize> {
        if block >= self.states.len() {
            return None;
        }
        let state = self.state(block);
        let good = state.is_open() && state.kind() == kind && !state.is_isolated();
        good.then_some(state.count())
    }

    /// A loan ends: the block is back in the sets.
    pub(crate) fn end_loan(&self, block: usize) {
        if block < self.states.len() {
            self.change(block, |state| {
                state.is_lent().then(|| state.with_lent(false))
            });
        }
    }

    /// All loans end. Were there any?
    pub(super) fn call_in_loans(&self) -> bool {
        let lent = self.lent_blocks();
        lent.map(|block| self.end_loan(block)).count() > 0
    }

    /// The blocks that are lent, as far as they are known to be.
    pub(crate) fn lent_blocks(&self) -> impl Iterator<Item = usize> + use<'_> {
        // Acquire: pairs with `count_loan`: who lent a block has counted it before.
        let any = self.totals.lent.load(Ordering::Acquire) > 0;
        let all = if any { self.states.len() } else { 0 };
        (0..all).filter(|&block| self.state(block).is_lent())
    }

    /// A block's state is to go from `old` to `new`. Counts it where it will be lent: before it is,
    /// so that whoever stops here hides none.
    pub(super) fn count_loan(&self, old: BlockState, new: BlockState) {
        if new.is_lent() && !old.is_lent() {
            // Release: pairs with the acquire in `lent_blocks`.
            self.totals.lent.fetch_add(1, Ordering::Release);
        }
    }

    /// A block's state has gone from `old` to `new`, or, the other way round, has not. Where it was
    /// lent it is counted no more: after it is back in its sets.
    pub(super) fn count_end_of_loan(&self, old: BlockState, new: BlockState) {
        if old.is_lent() && !new.is_lent() {
            // Release: as above.
            self.totals.lent.fetch_sub(1, Ordering::Release);
        }
    }

    /// Takes single frames from the best block, or, where a block that is free as a whole would be
    /// opened, from one near those that the CPU has.
    pub(super) fn take_near<T>(
        &self,
        loan: Loan,
        wanted: Wanted,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let Loan::Near(block) = loan else {
            return self.take_best(0, wanted, attempt);
        };
        let mut lost = false;
        for set in self.graded_sets(wanted.kind) {
            if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut lost) {
                return Some(got);
            }
        }
        let near = self.neighbour_of(block).or_else(|| self.fresh_neighbours());
        if let Some(near) = near
            && let Attempt::Got(got) = attempt(near)
        {
            return Some(got);
        }
        self.take_best(0, wanted, attempt)
    }

    /// A block that is free as a whole and has its state beside that of `block`.
    fn neighbour_of(&self, block: usize) -> Option<usize> {
        if block >= self.states.len() {
            return None;
        }
        let first = block / NEIGHBOURS * NEIGHBOURS;
        let last = (first + NEIGHBOURS).min(self.states.len());
        (first..last)
            .rev()
            .find(|&block| self.index.contains(Index::WHOLE, block + self.phase))
    }

    /// The highest block whose neighbours are all free as a whole, as it is.
    fn fresh_neighbours(&self) -> Option<usize> {
        let last = (self.states.len() + self.phase - 1) / LEAF;
        let lowest = last.saturating_sub(LEAVES_MOST - 1);
        (lowest..=last).rev().find_map(|place| {
            let leaf = self.index.leaf(Index::WHOLE, place);
            let bytes = leaf.to_le_bytes();
            let byte = bytes.iter().rposition(|&byte| byte == u8::MAX)?;
            let position = place * LEAF + byte * NEIGHBOURS + NEIGHBOURS - 1;
            position.checked_sub(self.phase)
        })
    }
}
