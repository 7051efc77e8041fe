//! What a frame was used for, as far as a host reports it (`/proc/kpageflags`).

use brickyard_run::named;

named! {
    /// A use of a frame.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum PageUse {
        /// There is no memory here, or none that the kernel uses: holes, offline and poisoned
        /// frames.
        Hole => "hole",
        /// Withheld from the allocator since boot.
        Reserved => "reserved",
        /// Free, in the allocator's lists.
        Free => "free",
        /// In use, or in a per-CPU cache: no flag distinguishes them. Includes kernel memory
        /// without a flag of its own, and memory given to a balloon.
        Untold => "untold",
        /// Anonymous memory of processes.
        Anonymous => "anonymous",
        /// Cached pages of files, and shared memory.
        File => "file",
        /// Slabs of kernel objects.
        Slab => "slab",
        /// Page tables.
        PageTable => "page-table",
        /// Explicit huge pages (hugetlb).
        Huge => "huge",
    }
}

/// The state of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageState {
    /// What the frame is used for.
    pub usage: PageUse,
    /// Used recently: on an active list.
    pub active: bool,
    /// Modified, and not yet written back.
    pub dirty: bool,
    /// Being written back, or isolated for reclaim.
    pub writeback: bool,
    /// Locked in memory, or otherwise not to be reclaimed.
    pub unevictable: bool,
    /// Of a file: shared memory, which has no place on a disk but swap.
    pub shared: bool,
    /// Of a file: a process has mapped it.
    pub mapped: bool,
}

impl PageState {
    /// Returns the state of a frame of this use, with every flag clear.
    #[must_use]
    pub const fn of(usage: PageUse) -> Self {
        Self {
            usage,
            active: false,
            dirty: false,
            writeback: false,
            unevictable: false,
            shared: false,
            mapped: false,
        }
    }
}

/// Adjacent frames in the same state.
///
/// The frames are `frames >> order` blocks of 2^order frames each: single pages for order 0,
/// compound pages above. For free memory, holes and the like the order is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRun {
    /// When these frames were read, in nanoseconds since the trace began. At the start, earlier
    /// events of them are left out of the trace; at the end, later ones.
    pub time: u64,
    /// The first frame.
    pub frame: u64,
    /// How many frames.
    pub frames: u64,
    /// The order of each block.
    pub order: u8,
    /// Their state.
    pub state: PageState,
}

/// How many threads read page states, at most. So when a read begins, at most so many others have
/// not ended.
pub const MOST_READERS: usize = 8;

/// When some frames were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTime {
    /// The first of them; they end where the next ones begin.
    pub frame: u64,
    /// When their read began, in nanoseconds since the trace began: the time of their runs.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
}

/// The states of all frames, read at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct States {
    /// The frames, in rising order.
    pub runs: Vec<StateRun>,
    /// When they were read, in rising order of frames.
    pub reads: Vec<ReadTime>,
}

impl From<Vec<StateRun>> for States {
    /// Takes the reads from the times of the runs: each ends at once.
    fn from(runs: Vec<StateRun>) -> Self {
        let mut reads: Vec<ReadTime> = Vec::new();
        for run in &runs {
            if reads.last().is_none_or(|read| read.began != run.time) {
                reads.push(ReadTime {
                    frame: run.frame,
                    began: run.time,
                    ended: run.time,
                });
            }
        }
        Self { runs, reads }
    }
}
