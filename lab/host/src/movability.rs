//! What compaction could do with a run of frames.

use core::ops::Range;

use brickyard_trace::{PageUse, StateRun};

use crate::Unevictable;
use crate::untold::{is_single_untold, lies_in, long_stretches};

/// What compaction could do with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movability {
    /// Nothing to do: they are free.
    Free,
    /// Their content could be moved.
    Movable,
    /// Perhaps idle in a per-CPU list, and then free once that is drained; perhaps not to be moved.
    Perhaps,
    /// They stay until their owner frees them.
    Stuck,
    /// An explicit huge page: as large as can be already, and not broken up.
    Huge,
    /// There is no memory.
    Absent,
}

/// Judges runs of one reading of page states.
#[derive(Debug, Clone)]
pub struct Judge {
    unevictable: Unevictable,
    kernel: Vec<Range<u64>>,
}

impl Judge {
    /// For these runs (in order of frames), page blocks of 2^`page_block_order` frames, and what
    /// compaction does with locked memory. Frames without a flag are the kernel's own if they are a
    /// whole page block of them in a row, or a compound page.
    #[must_use]
    pub fn new(runs: &[StateRun], page_block_order: u8, unevictable: Unevictable) -> Self {
        let least = 1_u64 << page_block_order.min(63);
        Self {
            unevictable,
            kernel: long_stretches(runs, least),
        }
    }

    /// What compaction could do with the frames of `run`, which is one of those given, or a part of
    /// one.
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
                if is_single_untold(run) && !lies_in(&self.kernel, run.frame) {
                    Movability::Perhaps
                } else {
                    Movability::Stuck
                }
            }
        }
    }
}
