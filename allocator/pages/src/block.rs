//! Blocks as a zone describes them: what each is used for, and how many there are.

use crate::{Frame, MigrateType, Order};

/// The use of the block that starts at a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Use {
    /// No block starts here: the frame lies inside one, or is not memory of this zone.
    Inner = 0,
    /// Free, on a list of the store.
    Free = 1,
    /// In use by a caller outside the allocator.
    Allocated = 2,
    /// Free, on a list of a front (a per-CPU list, a magazine).
    Cached = 3,
    /// Memory of this zone that is never handed out.
    Reserved = 4,
}

/// A record's state word, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// What the block is used for.
    pub usage: Use,
    /// The block's order.
    pub order: Order,
    /// The list that a free block is on. For a block in use or cached: the type of its request.
    pub kind: MigrateType,
}

impl State {
    /// The state of a frame at which no block starts.
    pub const INNER: Self = Self {
        usage: Use::Inner,
        order: Order::ZERO,
        kind: MigrateType::Unmovable,
    };

    /// Returns the state of a block with this use, order and type.
    #[must_use]
    pub const fn new(usage: Use, order: Order, kind: MigrateType) -> Self {
        Self { usage, order, kind }
    }

    /// Returns the first frame after this block. The block starts at `first`, and the caller found
    /// it at frame `at`. The result is never below `at + 1`, since what a zone says may be out of
    /// date or wrong.
    pub(crate) fn behind(self, first: Frame, at: Frame) -> Frame {
        first.plus(self.order.frames()).max(at.plus(1))
    }
}

/// The number of frames of a store in each use, as counted by `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Census {
    /// Free and available.
    pub free: usize,
    /// Free, but inside an isolated range.
    pub isolated: usize,
    /// In use.
    pub allocated: usize,
    /// Free, in a front.
    pub cached: usize,
    /// Reserved.
    pub reserved: usize,
}

/// The number of free blocks by order and type.
pub type FreeTable = [[usize; MigrateType::COUNT]; Order::COUNT];
