//! What nodes, pressure and statistics ask of a zone.
//!
//! [`Zone`](crate::zone::Zone) is one; a zone of another make implements [`AnyZone`] and takes part
//! in nodes, fallback, compaction, contiguous ranges and statistics like it. What it may build on
//! is public too: [`transit`](crate::transit), [`patience`](crate::patience),
//! [`isolation`](crate::isolation), [`Watermarks`].

use crate::block::{Census, FreeTable, State};
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::patience::Patience;
use crate::pressure::compact::{self, Compacted};
use crate::pressure::{Migrate, compact_for};
use crate::stats::{FreeCounts, ZoneSnapshot};
use crate::watermark::{Mark, Watermarks};
use crate::{
    AllocError, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, Platform, RangeError,
    Request, ZoneKind,
};

/// What never changes in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its kind.
    pub kind: ZoneKind,
    /// The frames that it has records for; not all of them need be memory.
    pub span: FrameRange,
    /// The highest order that it hands out.
    pub max_order: Order,
    /// The order of the unit in which mobility is grouped and huge pages are counted.
    pub page_block_order: Order,
}

/// A zone, of whatever make. Any number of CPUs call all of it at once.
pub trait AnyZone: Sync {
    /// What it is embedded in.
    type Platform: Platform;

    /// The platform it runs on.
    fn platform(&self) -> &Self::Platform;

    /// Its kind, span and orders.
    fn shape(&self) -> Shape;

    /// What it keeps free.
    fn watermarks(&self) -> &Watermarks;

    /// What compaction remembers of it.
    fn compaction(&self) -> &compact::Memory;

    /// A block for `request`, whatever stays free: for who has no other zone to ask.
    ///
    /// # Errors
    /// Why it could not be served. No frame has changed hands then, though caches may have been
    /// drained.
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError>;

    /// A block for `request` from the caches or the store, where enough stays free: see [`Mark`].
    fn alloc_above(&self, request: &Request, mark: Mark) -> Option<Frame>;

    /// The same after a look everywhere: caches are drained, and what is on its way is waited for
    /// as long as there is `patience`, which is one for all zones and tries of a request.
    fn alloc_drained(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame>;

    /// The last means before a request is refused: of what the zone has set aside for others. By
    /// default nothing is.
    fn alloc_set_aside(
        &self,
        _request: &Request,
        _mark: Mark,
        _patience: &Patience,
    ) -> Option<Frame> {
        None
    }

    /// A block past the caches, from no isolated range.
    fn alloc_uncached(&self, request: &Request) -> Option<Frame>;

    /// Fills `out` with single frames, as many as are at hand, if the zone stays above its low mark
    /// with all of them gone. Returns how many.
    fn alloc_batch(&self, request: &Request, out: &mut [Frame]) -> usize;

    /// Takes exactly the block of `request`'s order at `frame`, if it is free in the store.
    ///
    /// # Errors
    /// [`RangeError::Busy`] where a part is in use, or lies in a cache; [`RangeError::Absent`] or
    /// [`RangeError::OutsideSpan`] where it is no memory of this zone; [`RangeError::Isolated`]
    /// where it is isolated; [`RangeError::Malformed`] for a misaligned frame or too high an order.
    /// Nothing has changed then.
    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;

    /// Why `request` cannot be served now: whether memory is full or in pieces.
    fn why_not(&self, request: &Request) -> AllocError;

    /// Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one.
    ///
    /// # Errors
    /// A free of anything else is refused and changes nothing.
    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError>;

    /// The same past the caches.
    ///
    /// # Errors
    /// As [`AnyZone::free`].
    fn free_uncached(&self, frame: Frame, order: Order) -> Result<(), FreeError>;

    /// Takes back single frames.
    ///
    /// # Errors
    /// At the first bad one; those before it are freed, it and those behind it are not.
    fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError>;

    /// Takes back a range of any size in use.
    ///
    /// # Errors
    /// What a free of the first frame would be refused with that is not in use; nothing has changed
    /// then.
    fn free_range(&self, range: FrameRange) -> Result<(), FreeError>;

    /// Gives the frames of every cache that can be reached back to the store. Returns how many.
    fn drain(&self) -> usize;

    /// From now on nothing is handed out from `range`, and what is freed there stays there.
    ///
    /// # Errors
    /// [`RangeError::Isolated`] where it overlaps an isolated range, or too many are isolated.
    fn isolate(&self, range: FrameRange) -> Result<(), RangeError>;

    /// Ends the isolation of exactly `range`. Does nothing if it is not isolated.
    fn unisolate(&self, range: FrameRange);

    /// Takes all of `range`, which is isolated and wholly free, as blocks in use.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free; then nothing has changed.
    fn take_isolated(&self, range: FrameRange, mobility: Mobility) -> Result<(), RangeError>;

    /// Makes `range` memory of the zone; what of it is memory already stays as it is. Returns how
    /// many frames are new.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    fn add(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Keeps all free frames of `range` from being handed out; reservations may overlap. Returns
    /// how many frames that were.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use; nothing has changed then.
    fn reserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Frees what is reserved of `range`. Returns how many frames that were.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Forgets all of `range`, which nobody may be using. Returns how many frames it had.
    ///
    /// # Errors
    /// [`RangeError::Busy`]; nothing has changed then.
    fn remove(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// The block that `frame` lies in, as the store sees it now: its first frame and what it is.
    fn block_of(&self, frame: Frame) -> Option<(Frame, State)>;

    /// The type of the page block that `frame` lies in, where blocks have types; `Isolate` in an
    /// isolated range.
    fn block_type(&self, frame: Frame) -> Option<MigrateType>;

    /// Can a block in use be moved, as far as the zone itself knows? Where it does not, the
    /// embedder's [`Migrate::can_move`] is asked.
    fn knows_to_move(&self, state: State) -> Option<bool> {
        Some(state.kind == MigrateType::Movable)
    }

    /// Frames free in the store. A hint while others use the zone.
    fn free_frames(&self) -> usize;

    /// Those of them that this request may have. A hint too.
    fn free_frames_for(&self, _request: &Request) -> usize {
        self.free_frames()
    }

    /// Frames under management: all that were added, less those reserved.
    fn managed_frames(&self) -> usize;

    /// Is there a free block of this order or more that the request may have?
    fn can_serve(&self, request: &Request) -> bool;

    /// Free blocks by order and type.
    fn free_table(&self) -> FreeTable;

    /// The fragmentation index at `order`, in thousandths; `None` where it costs a look at each
    /// page block.
    fn quick_index(&self, order: Order) -> Option<i32> {
        Some(self.free_counts().fragmentation_index(order))
    }

    /// Tests every invariant of the zone. Nobody else may be using it.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self) -> Result<Census, Violation>;

    // ---- what follows from these ----

    /// Its kind.
    #[inline]
    fn kind(&self) -> ZoneKind {
        self.shape().kind
    }

    /// The frames that it has records for; not all of them need be memory.
    #[inline]
    fn span(&self) -> FrameRange {
        self.shape().span
    }

    /// The highest order it hands out.
    #[inline]
    fn max_order(&self) -> Order {
        self.shape().max_order
    }

    /// Is `frame` memory of this zone? A look at its records, without a lock.
    fn has(&self, frame: Frame) -> bool {
        self.block_of(frame).is_some()
    }

    /// Compacts for `request`: see [`compact_for`].
    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted
    where
        Self: Sized,
    {
        compact_for(self, request, hooks, || false)
    }

    /// Free blocks by order that can be had: of all types but isolated ones.
    fn free_counts(&self) -> FreeCounts {
        let isolated = MigrateType::Isolate.index();
        FreeCounts {
            by_order: self
                .free_table()
                .map(|blocks| blocks.iter().sum::<usize>() - blocks[isolated]),
        }
    }

    /// Free blocks by order and type, and page blocks by type, for the texts of buddyinfo and
    /// pagetypeinfo. O(page blocks).
    fn snapshot(&self, node: u32) -> ZoneSnapshot {
        let Shape {
            kind,
            span,
            max_order,
            page_block_order,
        } = self.shape();
        let mut blocks = [0; MigrateType::COUNT];
        let mut at = span.start;
        while at < span.end {
            if let Some(kind) = self.block_type(at) {
                blocks[kind.index()] += 1;
            }
            at = at
                .align_down(page_block_order)
                .plus(page_block_order.frames());
        }
        ZoneSnapshot {
            node,
            zone: kind,
            max_order,
            page_block_order,
            free: self.free_table(),
            blocks,
        }
    }
}
