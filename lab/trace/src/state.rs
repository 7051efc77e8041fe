//! What a frame was used for, as far as a host tells (`/proc/kpageflags`).

/// A use of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PageUse {
    /// There is no memory here, or none that the kernel uses: holes, offline and poisoned frames.
    Hole = 0,
    /// Kept from the allocator since boot.
    Reserved = 1,
    /// Free, in the allocator's lists.
    Free = 2,
    /// In use, or in a per-CPU cache: no flag says which. Kernel memory without a flag of its own, memory given to a balloon.
    Untold = 3,
    /// Anonymous memory of processes.
    Anonymous = 4,
    /// Cached pages of files, and shared memory.
    File = 5,
    /// Slabs of kernel objects.
    Slab = 6,
    /// Page tables.
    PageTable = 7,
    /// Explicit huge pages (hugetlb).
    Huge = 8,
}

impl PageUse {
    /// All of them, by number.
    pub const ALL: [Self; 9] = [
        Self::Hole,
        Self::Reserved,
        Self::Free,
        Self::Untold,
        Self::Anonymous,
        Self::File,
        Self::Slab,
        Self::PageTable,
        Self::Huge,
    ];

    /// The name in the trace file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hole => "hole",
            Self::Reserved => "reserved",
            Self::Free => "free",
            Self::Untold => "untold",
            Self::Anonymous => "anonymous",
            Self::File => "file",
            Self::Slab => "slab",
            Self::PageTable => "page-table",
            Self::Huge => "huge",
        }
    }
}

/// The state of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageState {
    /// What it is used for.
    pub usage: PageUse,
    /// Used lately: on an active list.
    pub active: bool,
    /// Changed, and not yet written.
    pub dirty: bool,
    /// Being written, or isolated for reclaim.
    pub writeback: bool,
    /// Locked in memory, or otherwise not to be reclaimed.
    pub unevictable: bool,
}

impl PageState {
    /// Of this use, and nothing else known.
    #[must_use]
    pub const fn of(usage: PageUse) -> Self {
        Self {
            usage,
            active: false,
            dirty: false,
            writeback: false,
            unevictable: false,
        }
    }
}

/// Adjacent frames in the same state.
///
/// The frames are `frames >> order` blocks of 2^order frames each: single pages for order 0, compound pages above. For free memory, holes and the like the order is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRun {
    /// Nanoseconds since the trace began when these frames were looked at. Earlier events of them are not in the trace at the start, later ones not at the end.
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
