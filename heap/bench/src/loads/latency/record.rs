//! The times of one thread's operations.
//!
//! They are kept for a block of some hundred operations first. At its end the system tells whether
//! the thread has lost its CPU meanwhile. The largest times of blocks in which it has not are kept
//! beside those of all: they are the allocator's own.

use super::histogram::Histogram;
use super::usage::Usage;
use super::{BlockKind, Timed};
use brickyard_measure::ticks::Ticks;

/// The times of a block. A step has four at most.
const BLOCK: usize = 1024;
const OF_A_STEP: usize = 4;

/// What is timed: each step of each kind of block, and nothing at all.
pub(super) const TIMED: usize = BlockKind::ALL.len() * Timed::ALL.len() + 1;
pub(super) const NOTHING: usize = TIMED - 1;

/// Times of one thing.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// All, in ticks.
    pub(super) all: Histogram,
    /// The largest of those in blocks in which the thread kept its CPU, if there is one.
    pub(super) undisturbed: Option<u64>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Record {
    ticks: Ticks,
    block: Vec<(u8, u64)>,
    times: Vec<Times>,
    preempted: u64,
}

/// Returns the number of a step of a kind.
pub(super) const fn timed(kind: BlockKind, step: Timed) -> usize {
    kind as usize * Timed::ALL.len() + step as usize
}

impl Record {
    pub(super) fn new(ticks: Ticks) -> Self {
        let times = Times {
            all: Histogram::new(),
            undisturbed: None,
        };
        let mut block = vec![(1, 1); BLOCK];
        block.clear();
        Self {
            ticks,
            block,
            times: vec![times; TIMED],
            preempted: Usage::of_this_thread().preempted,
        }
    }

    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.ticks.now()
    }

    /// Notes that a step has ended now.
    #[inline(always)]
    pub(super) fn add(&mut self, kind: BlockKind, step: Timed, begun: u64) {
        let spent = self.ticks.now().wrapping_sub(begun);
        self.block.push((timed(kind, step) as u8, spent));
    }

    /// Times nothing: what the machine alone adds.
    #[inline(always)]
    pub(super) fn nothing(&mut self) {
        let begun = self.ticks.now();
        let spent = self.ticks.now().wrapping_sub(begun);
        self.block.push((NOTHING as u8, spent));
    }

    /// Ends the block, if there is no room for the times of another step. Returns true if it did.
    #[inline(always)]
    pub(super) fn commit_if_full(&mut self) -> bool {
        let is_full = self.block.len() + OF_A_STEP > BLOCK;
        if is_full {
            self.commit();
        }
        is_full
    }

    #[inline(never)]
    fn commit(&mut self) {
        let preempted = Usage::of_this_thread().preempted;
        let is_undisturbed = preempted == self.preempted;
        self.preempted = preempted;
        for &(of, spent) in &self.block {
            let spent = spent.saturating_sub(self.ticks.cost().into());
            let times = &mut self.times[usize::from(of)];
            times.all.add(spent);
            if is_undisturbed {
                times.undisturbed = times.undisturbed.max(Some(spent));
            }
        }
        self.block.clear();
    }

    /// Forgets all, to begin anew.
    pub(super) fn forget(&mut self) {
        let ticks = self.ticks;
        *self = Self::new(ticks);
    }

    /// Ends the last block, and returns all times.
    pub(super) fn into_times(mut self) -> Vec<Times> {
        self.commit();
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_told_by_its_kind_and_step() {
        let mut record = Record::new(Ticks::new().unwrap());
        for count in 0..BLOCK {
            record.nothing();
            let begun = record.now().wrapping_sub(1_000_000);
            record.add(BlockKind::Medium, Timed::Free, begun);
            assert_eq!(record.commit_if_full(), (count + 1) % 511 == 0, "{count}");
        }
        let times = record.into_times();
        let of = |which: usize| times[which].all.max();
        assert!(of(timed(BlockKind::Medium, Timed::Free)) >= Some(990_000));
        assert!(of(NOTHING).is_some() && of(timed(BlockKind::Small, Timed::Malloc)).is_none());
    }
}
