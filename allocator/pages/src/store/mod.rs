//! Where free frames are kept.
//!
//! A [`Store`] knows which frames are memory, which blocks are free, and what list each is on. There are two: the [`bitmap`] store, the default, which
//! many CPUs enter at once; and the [`buddy`] store, which is entered with the zone's lock held. The zone does that, so every method here takes `&self` and
//! locks nothing. What can be read without the lock is said to be a hint.

pub mod bitmap;
pub mod buddy;
pub mod frames;
pub mod grouping;
mod isolation;

use crate::check::Violation;
use crate::{Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError, Request};
use frames::{FrameTable, State};

/// The most frames that a store, and so a zone, can span: 16 TiB of 4 KiB frames, less two. Every place
/// in it, and one that means "none", fits into 32 bits. A node has room for any number of zones.
pub const FRAMES_MOST: usize = u32::MAX as usize - 1;

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

/// What the frames of a store are used for, counted by [`Store::check`].
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

/// A keeper of free frames.
pub trait Store: Sync {
    /// Can any number of CPUs enter it at once? Then the zone's lock is taken for administration alone.
    const LOCK_FREE: bool = false;

    /// Does it know which frames in use lie in a front? Else it counts them as allocated.
    const MARKS_CACHED: bool = true;

    /// The frames that it has records for.
    fn span(&self) -> FrameRange;

    /// The highest order that it hands out.
    fn max_order(&self) -> Order;

    /// The order of the unit in which mobility is grouped and huge pages are counted.
    fn page_block_order(&self) -> Order;

    /// Frames free and to be had. Without the lock, a hint.
    fn free_frames(&self) -> usize;

    /// As many, or somewhat fewer where counting would cost: what a watermark is held against.
    fn free_frames_at_least(&self) -> usize {
        self.free_frames()
    }

    /// Frames that it manages: all that were added, less those reserved. Without the lock, a hint.
    fn managed_frames(&self) -> usize;

    /// Free blocks by order and type. O(lists), or O(span) where there are no lists.
    fn free_table(&self) -> FreeTable;

    /// Requests that fell back on a block of another type without claiming it, and claiming it, where the store itself counts them.
    fn fallbacks(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Free frames set aside for atomic requests: ordinary ones have them only when a block is given back. Without the lock, a hint.
    fn set_aside_frames(&self) -> usize;

    /// The type of the page block that `frame` lies in, where blocks have types.
    fn block_type(&self, frame: Frame) -> Option<MigrateType>;

    /// The page block of `frame` is for pages of this mobility from now on. A store that knows the mobility of what is in use
    /// by its place (the bitmap store) goes on to take that for movable, unless it was asked for as something else. Does nothing where blocks have no types, where the block is free as a
    /// whole, and where it is kept for atomic requests.
    fn dedicate(&self, _frame: Frame, _kind: Mobility) {}

    /// The block that `frame` lies in: its first frame, use, order and type.
    fn block_of(&self, frame: Frame) -> Option<(Frame, State)>;

    /// Can a free block of this order serve this request, be it from another type's list?
    fn can_serve(&self, request: &Request) -> bool;

    /// Takes a block for `request`, whose limit is honoured. O(orders) without a limit; with one, O(free blocks) at worst.
    fn take(&self, request: &Request) -> Option<Taken>;

    /// Fills `out` with single frames, as many as can be had. Returns how many.
    fn take_frames(&self, request: &Request, out: &mut [Frame]) -> usize {
        let single = request.single();
        let mut taken = 0;
        for slot in out {
            let Some(one) = self.take(&single) else {
                break;
            };
            *slot = one.frame;
            taken += 1;
        }
        taken
    }

    /// May a request that found nothing be refused, or is something on its way that it may have?
    fn may_refuse(&self, _request: &Request) -> bool {
        true
    }

    /// How many frames came back from caches that were free already: double frees that could not be noticed at once.
    fn refused_late(&self) -> usize {
        0
    }

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

    /// Takes back single frames in use, up to the first that is refused. Returns how many, and why no more.
    fn give_frames(&self, frames: &[Frame]) -> (usize, Option<FreeError>) {
        for (given, &frame) in frames.iter().enumerate() {
            if let Err(error) = self.give(frame, Order::ZERO) {
                return (given, Some(error));
            }
        }
        (frames.len(), None)
    }

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
