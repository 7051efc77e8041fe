//! Blocks as a zone tells of them: what they are used for, and how many there are.

use crate::{Frame, MigrateType, Order};

/// What the block is that starts at a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Use {
    /// No block starts here: the frame is inside one, or is no memory of this zone.
    Inner = 0,
    /// Free, on a list of the store.
    Free = 1,
    /// In use by somebody outside the allocator.
    Allocated = 2,
    /// Free, on a list of a front (a per-CPU list, a magazine).
    Cached = 3,
    /// Memory of this zone that nobody is to have.
    Reserved = 4,
}

/// A record's state word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// What the block is.
    pub usage: Use,
    /// Its order.
    pub order: Order,
    /// Free: the list it is on. In use or cached: the type of the request that it was taken for.
    pub kind: MigrateType,
}

impl State {
    /// No block starts here.
    pub const INNER: Self = Self {
        usage: Use::Inner,
        order: Order::ZERO,
        kind: MigrateType::Unmovable,
    };

    /// A block of this order, used so.
    #[must_use]
    pub const fn new(usage: Use, order: Order, kind: MigrateType) -> Self {
        Self { usage, order, kind }
    }

    /// Where the frames behind this block begin, which starts at `first`, for who found it at `at`.
    /// Never before the next frame: what a zone says may be out of date, or wrong.
    pub(crate) fn behind(self, first: Frame, at: Frame) -> Frame {
        first.plus(self.order.frames()).max(at.plus(1))
    }
}

/// What the frames of a store are used for, counted by `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Free and to be had.
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

/// Free blocks by order and type.
pub type FreeTable = [[usize; MigrateType::COUNT]; Order::COUNT];
