//! Loans: page blocks that a CPU's stash fetches from, and that are in no set meanwhile.
//!
//! A CPU that takes and frees many frames keeps moving its blocks from set to set. The sets' words
//! are written by all CPUs, and many CPUs would wait for each other there. A block on loan stays
//! out of the sets, so that this CPU's traffic with it writes only the block's own words.
//!
//! The block stays open to all. Its frames are counted, and a CPU that frees one of them notices no
//! difference. A CPU that finds nothing in the sets of its own mobility calls all loans in before
//! it takes from another mobility. Loans are given only while some blocks are free as a whole, so
//! there is no shortage then.
//!
//! A CPU opens blocks next to those that it already has, since the states of eight neighbours share
//! one cache line. One bit for each such line says that a block of it is lent. So whoever calls
//! loans in, or looks at lent blocks, reads for each line with a loan 8 states and at most 7 words
//! of these bits (`trees.rs`), however large the memory is, and 4 more words at the end. A CPU that
//! stands still between a change of a loan and of its bit, or of the bits above, keeps the loans of
//! that line, or below those bits, from others until it goes on, above order 0.

use brickyard_sync::Ordering;

use super::search::Wanted;
use super::state::BlockState;
use super::summary::{End, Index, Set};
use super::totals::NEIGHBOURS;
use super::trees::FANOUT;
use super::{Attempt, Bitmap, Luck};
use crate::MigrateType;

/// The set of lines with loans, which is the only one.
const LENT: Set = Set(0);

/// The most words of a set that are searched for neighbours that are all free.
const LEAVES_MOST: usize = 16;

/// Whether a block that frames are taken from goes on loan to the taker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loan {
    /// It does not.
    None,
    /// It does.
    Any,
    /// It does, and if a block has to be opened, a neighbour of this one is best.
    Near(usize),
}

/// Which CPU may reserve a block when frames are freed into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrower {
    /// No CPU.
    Nobody,
    /// A CPU that wants blocks of this mobility.
    Cpu(MigrateType),
}

impl Borrower {
    /// Returns the state of a block after a free, with the loan if it is to be lent.
    pub(super) fn take(self, state: BlockState) -> BlockState {
        match self {
            Self::Cpu(kind) if kind == state.kind() && state.may_be_lent() => state.with_lent(true),
            _ => state,
        }
    }
}

/// What a CPU has on loan, as the code that gives its frames back sees it.
pub(crate) trait Borrows {
    /// Returns who may borrow the next block.
    fn borrower(&self) -> Borrower;

    /// Reports that the CPU has borrowed this block.
    fn lent(&mut self, block: usize);
}

/// No CPU borrows.
impl Borrows for () {
    fn borrower(&self) -> Borrower {
        Borrower::Nobody
    }

    fn lent(&mut self, _block: usize) {}
}

impl Bitmap<'_> {
    /// Returns true if loans may be given. They may not while no block is free as a whole: then
    /// every block may be needed by some CPU.
    pub(crate) fn may_lend(&self) -> bool {
        !self.index.is_empty(Index::WHOLE) && !self.isolation.any()
    }

    /// Returns how many frames the stash of a CPU can fetch from a block of this mobility that it
    /// has; `None` if the block no longer serves.
    pub(crate) fn at_hand(&self, block: usize, kind: MigrateType) -> Option<usize> {
        if block >= self.states.len() {
            return None;
        }
        let state = self.state(block);
        let good = state.is_open() && state.kind() == kind && !state.is_kept();
        good.then_some(state.count())
    }

    /// Ends a loan: the block goes back to the sets.
    pub(crate) fn end_loan(&self, block: usize) {
        if block < self.states.len() {
            self.change(block, |state| {
                state.is_lent().then(|| state.with_lent(false))
            });
        }
    }

    /// Ends all loans. Returns true if there were any.
    #[inline(never)]
    pub(super) fn call_in_loans(&self) -> bool {
        let lent = self.lent_blocks();
        lent.map(|block| self.end_loan(block)).count() > 0
    }

    /// Returns the blocks on loan, as far as they are known.
    pub(crate) fn lent_blocks(&self) -> impl Iterator<Item = usize> + use<'_> {
        // Acquire: pairs with `count_loan`. A CPU that lends a block has counted it before.
        let any = self.totals.lent.load(Ordering::Acquire) > 0;
        let after = |line: usize| self.lent.find(LENT, line, End::Low);
        let first = if any { after(0) } else { None };
        let lines = core::iter::successors(first, move |&line| after(line + 1));
        lines.flat_map(|line| self.lent_in(line))
    }

    /// Returns the blocks on loan of a line.
    fn lent_in(&self, line: usize) -> impl Iterator<Item = usize> + use<'_> {
        let first = line * NEIGHBOURS;
        let all = first..(first + NEIGHBOURS).min(self.states.len());
        all.filter(|&block| self.state(block).is_lent())
    }

    /// Returns true if the bit of the block's line says what its states say. No other CPU may be at
    /// work.
    pub(super) fn is_known_as_lent(&self, block: usize) -> bool {
        let line = block / NEIGHBOURS;
        self.lent.contains(LENT, line) == self.lent_in(line).next().is_some()
    }

    /// Counts a loan, if a change of a block's state from `old` to `new` begins one. Called before
    /// the change, so that a CPU that stops in between hides no other CPU's loan.
    pub(super) fn count_loan(&self, old: BlockState, new: BlockState) {
        if new.is_lent() && !old.is_lent() {
            // Release: pairs with the acquire in `lent_blocks`.
            self.totals.lent.fetch_add(1, Ordering::Release);
        }
    }

    /// Undoes the count of a loan, if a change that would have begun one has failed.
    pub(super) fn uncount_loan(&self, old: BlockState, new: BlockState) {
        if new.is_lent() && !old.is_lent() {
            // Release: as above.
            self.totals.lent.fetch_sub(1, Ordering::Release);
        }
    }

    /// Follows a change of a block's state from `old` to `new`, if it has begun or ended a loan. At
    /// the end, the block is back in its sets.
    #[inline]
    pub(super) fn loan_changed(&self, block: usize, old: BlockState, new: BlockState) {
        match (old.is_lent(), new.is_lent()) {
            (false, true) => self.loan_begun(block),
            (true, false) => self.loan_ended(block),
            _ => {}
        }
    }

    fn loan_begun(&self, block: usize) {
        let line = block / NEIGHBOURS;
        self.lent.insert(LENT, line);
        if !self.state(block).is_lent() {
            // The CPU that ended the loan may have cleared the bit before it was set here.
            self.follow_loans(line);
        }
    }

    fn loan_ended(&self, block: usize) {
        // Release: pairs with the acquire in `lent_blocks`.
        self.totals.lent.fetch_sub(1, Ordering::Release);
        self.follow_loans(block / NEIGHBOURS);
    }

    fn follow_loans(&self, line: usize) {
        let any = || self.lent_in(line).next().is_some();
        self.lent.follow(LENT, line, any);
    }

    /// Takes single frames from the best block. If that would open a block that is free as a whole,
    /// tries one near those that the CPU has first.
    pub(super) fn take_near<T>(
        &self,
        loan: Loan,
        wanted: Wanted,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let Loan::Near(block) = loan else {
            return self.take_best(0, wanted, attempt);
        };
        let mut luck = Luck::default();
        for set in self.graded_sets(wanted.kind) {
            if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut luck) {
                return Some(got);
            }
        }
        let near = self.neighbour_of(block).or_else(|| self.fresh_neighbours());
        match near.map(&mut attempt) {
            Some(Attempt::Got(got)) => Some(got),
            Some(Attempt::More) => None,
            _ if luck.more => None,
            _ => self.take_best(0, wanted, attempt),
        }
    }

    /// Returns a block that is free as a whole and whose state shares the cache line of `block`'s.
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

    /// Returns the highest block that is free as a whole together with all its neighbours.
    fn fresh_neighbours(&self) -> Option<usize> {
        let last = (self.states.len() + self.phase - 1) / FANOUT;
        let lowest = last.saturating_sub(LEAVES_MOST - 1);
        (lowest..=last).rev().find_map(|place| {
            let leaf = self.index.leaf(Index::WHOLE, place);
            let bytes = leaf.to_le_bytes();
            let byte = bytes.iter().rposition(|&byte| byte == u8::MAX)?;
            let position = place * FANOUT + byte * NEIGHBOURS + NEIGHBOURS - 1;
            position.checked_sub(self.phase)
        })
    }
}
