//! What compaction could do with a run of frames.

use core::ops::Range;

use brickyard_trace::{PageUse, StateRun};

use crate::Unevictable;
use crate::unflagged::{contains, is_single_unflagged, long_stretches};

/// What compaction could do with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movability {
    /// They are free.
    Free,
    /// Their contents can be moved.
    Movable,
    /// Either free in a per-CPU list, until that is drained, or immovable: the flags do not
    /// distinguish them.
    Perhaps,
    /// Immovable until their owner frees them.
    Stuck,
    /// An explicit huge page, which compaction does not split.
    Huge,
    /// There is no memory.
    Absent,
}

/// Determines the movability of runs, all from one reading of page states.
#[derive(Debug, Clone)]
pub struct Judge {
    unevictable: Unevictable,
    kernel: Vec<Range<u64>>,
}

impl Judge {
    /// Creates a judge for these runs (in order of frames), page blocks of 2^`page_block_order`
    /// frames, and what compaction does with locked memory. Frames without a flag are taken for the
    /// kernel's own if at least as many as a page block has are adjacent, or if they are a compound
    /// page.
    #[must_use]
    pub fn new(runs: &[StateRun], page_block_order: u8, unevictable: Unevictable) -> Self {
        let least = 1_u64 << page_block_order.min(63);
        Self {
            unevictable,
            kernel: long_stretches(runs, least),
        }
    }

    /// Returns what compaction could do with the frames of `run`, which is one of the runs given to
    /// [`Judge::new`] or a part of one.
    #[must_use]
    pub fn of(&self, run: &StateRun) -> Movability {
        match run.state.usage {
            PageUse::Hole => Movability::Absent,
            PageUse::Free => Movability::Free,
            PageUse::Huge => Movability::Huge,
            PageUse::Reserved | PageUse::Slab | PageUse::PageTable => Movability::Stuck,
            PageUse::Anonymous | PageUse::File => {
                if run.state.unevictable && self.unevictable == Unevictable::Stays {
                    Movability::Stuck
                } else {
                    Movability::Movable
                }
            }
            PageUse::Untold => {
                if is_single_unflagged(run) && !contains(&self.kernel, run.frame) {
                    Movability::Perhaps
                } else {
                    Movability::Stuck
                }
            }
        }
    }
}
