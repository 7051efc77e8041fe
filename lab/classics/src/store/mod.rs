//! Where free frames are kept.
//!
//! A [`Store`] knows which frames are memory, which blocks are free, and what list each is on. It is
//! entered with the zone's lock held. The zone does that, so every method here takes `&self` and
//! locks nothing. What can be read without the lock is said to be a hint.

pub mod buddy;
pub mod frames;
pub mod grouping;

use brickyard::block::{Census, FreeTable, State};
use brickyard::check::Violation;
use brickyard::{Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError, Request};
use frames::FrameTable;

/// A block that a store has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its first frame.
    pub frame: Frame,
    /// Set when the request's own list was empty and another type's was broken into.
    pub fallback: Option<Fallback>,
}

/// How a request was served from a list of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// The order of the free block that was broken into.
    pub order: Order,
    /// The list that it was on.
    pub from: MigrateType,
    /// Whether its page block became the requester's.
    pub claimed: Claimed,
}

/// Whether a fallback changed the type of the page block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// The block keeps its type: from now on it is mixed.
    No,
    /// The block is the requester's from now on.
    Yes,
}

/// A free block after everything around it has merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Its first frame.
    pub frame: Frame,
    /// Its order.
    pub order: Order,
    /// The list it is on.
    pub kind: MigrateType,
}

/// A keeper of free frames.
pub trait Store: Sync {
    /// The frames that it has records for.
    fn span(&self) -> FrameRange;

    /// The highest order that it hands out.
    fn max_order(&self) -> Order;

    /// The order of the unit in which mobility is grouped and huge pages are counted.
    fn page_block_order(&self) -> Order;

    /// Frames free and to be had. Without the lock, a hint.
    fn free_frames(&self) -> usize;

    /// Frames that it manages: all that were added, less those reserved. Without the lock, a hint.
    fn managed_frames(&self) -> usize;

    /// Free blocks by order and type. O(lists), or O(span) where there are no lists.
    fn free_table(&self) -> FreeTable;

    /// Free frames set aside for atomic requests: ordinary ones have them only when a block is given back. Without the lock, a hint.
    fn set_aside_frames(&self) -> usize;

    /// The type of the page block that `frame` lies in, where blocks have types.
    fn block_type(&self, frame: Frame) -> Option<MigrateType>;

    /// The page block of `frame` is for pages of this mobility from now on. Does nothing where blocks have no types, where the block is free as a
    /// whole, and where it is kept for atomic requests.
    fn dedicate(&self, _frame: Frame, _kind: Mobility) {}

    /// The block that `frame` lies in: its first frame, use, order and type.
    fn block_of(&self, frame: Frame) -> Option<(Frame, State)>;

    /// Can a free block of this order serve this request, be it from another type's list?
    fn can_serve(&self, request: &Request) -> bool;

    /// Takes a block for `request`, whose limit is honoured. O(orders) without a limit; with one, O(free blocks) at worst.
    fn take(&self, request: &Request) -> Option<Taken>;

    /// Takes exactly the block of `request`'s order at `frame`.
    ///
    /// # Errors
    /// [`RangeError`] where a part of it is not free, or is isolated.
    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;

    /// Takes the start of a block that has just become free for `request`, if that mixes no page block and touches nothing that is set
    /// aside. The limit is the caller's to look at.
    fn take_merged(&self, merged: Merged, request: &Request) -> Option<Taken>;

    /// Are all frames of `range` in use?
    ///
    /// # Errors
    /// What a free of the first other frame would be refused with.
    fn check_in_use(&self, range: FrameRange) -> Result<(), FreeError>;

    /// Takes back any aligned part of a block in use, and merges.
    ///
    /// # Errors
    /// Anything but an aligned part of a block in use is refused and changes nothing.
    fn give(&self, frame: Frame, order: Order) -> Result<Merged, FreeError>;

    /// Makes all frames of `range` that are not yet memory of this store free. Returns how many there were.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    fn add(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Forgets all frames of `range`. Returns how many there were.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is neither free nor reserved; then nothing has changed.
    fn remove(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Keeps all free frames of `range` from being handed out. Frames that are absent or reserved already do not matter. Returns
    /// how many frames became reserved.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use; then nothing has changed.
    fn reserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Frees all reserved frames of `range`. Returns how many there were.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// From now on nothing is handed out from `range`, and what is freed there stays there.
    ///
    /// # Errors
    /// [`RangeError::Isolated`] where it overlaps an isolated range, or four ranges are isolated already.
    fn isolate(&self, range: FrameRange) -> Result<(), RangeError>;

    /// Ends the isolation of exactly `range`; its free frames can be had again. Does nothing if it is not isolated.
    fn unisolate(&self, range: FrameRange);

    /// Takes all of `range`, which is isolated and wholly free, as blocks in use.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free; then nothing has changed.
    fn take_isolated(&self, range: FrameRange, kind: MigrateType) -> Result<(), RangeError>;

    /// Is `frame` in an isolated range? Without the lock, a hint.
    fn is_isolated(&self, frame: Frame) -> bool;

    /// Keeps the page block of `frame` for atomic requests of order 1 and up, unless `most_frames` are kept already.
    fn reserve_high_atomic(&self, _frame: Frame, _most_frames: usize) {}

    /// Gives one page block that is kept for atomic requests back, so that `request` can be served from it. False where none would do.
    fn unreserve_high_atomic(&self, _request: &Request) -> bool {
        false
    }

    /// How often a page block that was kept for atomic requests was given back. Also without the lock.
    fn unreserved(&self) -> usize {
        0
    }

    /// Tests every invariant of the store. O(span).
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self) -> Result<Census, Violation>;
}

/// A store whose frames have records with links, so that a front can keep frames on lists of its own.
pub trait Linked: Store {
    /// The records.
    fn table(&self) -> &FrameTable<'_>;

    /// The type of list on which a front keeps a frame that was taken for `recorded`, or a request of that type looks for
    /// one. Without the lock, for a frame that the caller owns.
    fn list_on_free(&self, frame: Frame, recorded: MigrateType) -> MigrateType;

    /// The type of list that a request of type `wanted` is served from first.
    fn list_for(&self, wanted: MigrateType) -> MigrateType;

    /// Takes back one frame from a front, and merges. The frame is in state `Cached`.
    fn give_cached(&self, frame: Frame) -> Merged;

    /// Takes one frame for a front, which keeps it in state `Cached`.
    fn take_cached(&self, wanted: MigrateType) -> Option<Taken>;
}
