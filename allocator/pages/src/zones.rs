//! The interface that nodes, pressure and statistics require of a zone.
//!
//! [`Zone`](crate::zone::Zone) implements it. A zone of another design implements [`AnyZone`], and
//! then takes part in nodes, fallback, compaction, contiguous ranges and statistics in the same
//! way. The parts that it may build on are public too: [`transit`](crate::transit),
//! [`patience`](crate::patience), [`isolation`](crate::isolation), [`Watermarks`].

use crate::block::{Census, FreeTable, State};
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::patience::Patience;
use crate::pressure::hooks::Migrate;
use crate::pressure::progress::{Compacted, CompactionState};
use crate::stats::{FreeCounts, ZoneSnapshot};
use crate::watermark::{Mark, Watermarks};
use crate::{
    AllocError, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, Platform, RangeError,
    Request, ZoneKind,
};

/// Takes exactly the frames of `range`, block by block, as `request` says (not of its order).
///
/// # Errors
/// The errors of [`AnyZone::take_at`], for the first block that could not be taken; those before it
/// are free again.
pub(crate) fn take_range_at<Z: AnyZone>(
    zone: &Z,
    range: FrameRange,
    request: &Request,
) -> Result<(), RangeError> {
    for (first, order) in range.blocks(zone.max_order()) {
        if let Err(why) = zone.take_at(first, &Request { order, ..*request }) {
            let taken = FrameRange {
                end: first,
                ..range
            };
            if !taken.is_empty() {
                let freed = zone.free_range(taken);
                debug_assert!(freed.is_ok(), "one-owner: {taken:?}: {freed:?}");
            }
            return Err(why);
        }
    }
    Ok(())
}

/// The properties of a zone that never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The zone's kind.
    pub kind: ZoneKind,
    /// The frames that the zone has records for. Not all of them need be memory.
    pub span: FrameRange,
    /// The highest order that the zone hands out.
    pub max_order: Order,
    /// The order of the unit in which mobility is grouped and huge pages are counted.
    pub page_block_order: Order,
}

/// A zone of any design. Any number of CPUs may call all of its methods at once.
pub trait AnyZone: Sync {
    /// The platform that the zone is embedded in.
    type Platform: Platform;

    /// Returns the platform that the zone runs on.
    fn platform(&self) -> &Self::Platform;

    /// Returns the zone's kind, span and orders.
    fn shape(&self) -> Shape;

    /// Returns the watermarks: how much the zone keeps free.
    fn watermarks(&self) -> &Watermarks;

    /// Returns what the zone remembers of its compactions.
    fn compaction(&self) -> &CompactionState;

    /// Takes a block for `request`, whatever stays free: for a caller that has no other zone to
    /// ask.
    ///
    /// # Errors
    /// The reason why the request could not be served. No frame has changed hands then, though
    /// caches may have been drained.
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError>;

    /// Takes a block for `request` from the caches or the store, if enough stays free: see
    /// [`Mark`].
    fn alloc_above(&self, request: &Request, mark: Mark) -> Option<Frame>;

    /// Takes a single frame that lies in a cache of this CPU and may serve `request`, if that takes
    /// no more than to remove it there. `None` says nothing: [`AnyZone::alloc_above`] is to be
    /// called. By default nothing is taken.
    #[inline]
    fn alloc_at_hand(&self, _request: &Request) -> Option<Frame> {
        None
    }

    /// Takes a block while the zone stays above `mark`, after a look everywhere. Caches are
    /// drained, and frames in transit are waited for as long as there is `patience`. One serves all
    /// zones and tries of a request.
    fn alloc_drained(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame>;

    /// Takes a block from what the zone has set aside for others: the last resort before a request
    /// is refused. By default nothing is set aside.
    fn alloc_set_aside(
        &self,
        _request: &Request,
        _mark: Mark,
        _patience: &Patience,
    ) -> Option<Frame> {
        None
    }

    /// Takes a block without using the caches, from outside all isolated ranges.
    fn alloc_uncached(&self, request: &Request) -> Option<Frame>;

    /// Fills `out` with as many single frames as are at hand, if the zone stays above its low
    /// watermark without them. Returns the number of frames taken.
    fn alloc_batch(&self, request: &Request, out: &mut [Frame]) -> usize;

    /// Takes exactly the block of `request`'s order at `frame`, if it is free in the store.
    ///
    /// # Errors
    /// [`RangeError::Busy`] if a part is in use or lies in a cache; [`RangeError::Absent`] or
    /// [`RangeError::OutsideSpan`] if it is not memory of this zone; [`RangeError::Isolated`] if it
    /// is isolated; [`RangeError::Malformed`] for a misaligned frame or too high an order. Nothing
    /// has changed then.
    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;

    /// Returns the reason why `request` cannot be served now: memory is full, or in pieces.
    fn why_not(&self, request: &Request) -> AllocError;

    /// Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one.
    ///
    /// # Errors
    /// A free of anything else is refused and changes nothing.
    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError>;

    /// Takes back a single frame, if it certainly is a frame of this zone in use and that takes no
    /// more than to add it to a cache of this CPU. Returns true if it was taken back; else nothing
    /// has changed, and [`AnyZone::free`] is to be called. Any frame may be offered, also one of
    /// another zone. By default none is taken back.
    #[inline]
    fn free_at_hand(&self, _frame: Frame) -> bool {
        false
    }

    /// Takes back the 2^order frames at `frame` without using the caches.
    ///
    /// # Errors
    /// The errors of [`AnyZone::free`].
    fn free_uncached(&self, frame: Frame, order: Order) -> Result<(), FreeError>;

    /// Takes back single frames.
    ///
    /// # Errors
    /// The error of the first bad frame. Those before it are freed; it and those after it are not.
    fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError>;

    /// Takes back a range of any size that is in use.
    ///
    /// # Errors
    /// The error that a free of the first frame not in use would return. Nothing has changed then.
    fn free_range(&self, range: FrameRange) -> Result<(), FreeError>;

    /// Returns the frames of every reachable cache to the store, as far as the `patience` with
    /// other CPUs goes. Returns the number of frames.
    fn drain_with(&self, patience: &Patience) -> usize;

    /// Isolates `range`: from the return on the store hands nothing out from it, and what is freed
    /// there stays there. Frames that lie in caches are still handed out: [drain](AnyZone::drain)
    /// them afterwards. At most four ranges are isolated at a time. It is isolated until anybody
    /// ends that by [`AnyZone::unisolate`].
    ///
    /// # Errors
    /// [`RangeError::Isolated`] where it overlaps an isolated range;
    /// [`RangeError::TooManyIsolated`].
    fn isolate(&self, range: FrameRange) -> Result<(), RangeError>;

    /// Ends the isolation of exactly `range`. Does nothing if it is not isolated.
    fn unisolate(&self, range: FrameRange);

    /// Takes all of `range`, which must be isolated and wholly free, as blocks in use.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free; then nothing has changed.
    fn take_isolated(&self, range: FrameRange, mobility: Mobility) -> Result<(), RangeError>;

    /// Adds `range` to the memory of the zone. Memory that the zone already has stays as it is.
    /// Returns the number of new frames.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`]; [`RangeError::Busy`] with the first new frame that another
    /// caller is removing or reserving at this moment. What lies before its page block has been
    /// added then.
    fn add(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Keeps all free frames of `range` from being handed out. Reservations may overlap. Frames
    /// that are no memory yet are not reserved: add them first. Returns the number of frames
    /// reserved.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use, or that another caller is removing or
    /// reserving at this moment; [`RangeError::TooManyIsolated`] while four others are at that.
    /// Nothing has changed then.
    fn reserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Frees the reserved frames of `range`. Returns the number of frames freed.
    ///
    /// # Errors
    /// The errors of [`AnyZone::add`].
    fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Removes all of `range` from the zone; no caller may be using it. Returns the number of
    /// frames removed.
    ///
    /// # Errors
    /// The errors of [`AnyZone::reserve`].
    fn remove(&self, range: FrameRange) -> Result<usize, RangeError>;

    /// Returns the block that contains `frame`, as the store sees it now: its first frame and its
    /// state.
    fn block_of(&self, frame: Frame) -> Option<(Frame, State)>;

    /// Returns the type of the page block that contains `frame`; `Isolate` in an isolated range.
    /// `None` if blocks have no types, or nothing of this one is memory or reserved.
    fn block_type(&self, frame: Frame) -> Option<MigrateType>;

    /// Returns whether a block in use can be moved, if the zone itself knows. If it does not, the
    /// embedder's [`Migrate::can_move`] is asked.
    fn knows_to_move(&self, state: State) -> Option<bool> {
        Some(state.kind == MigrateType::Movable)
    }

    /// Returns the number of frames free in the store. A hint while others use the zone.
    fn free_frames(&self) -> usize;

    /// Returns the number of those that this request may have. Also a hint.
    fn free_frames_for(&self, _request: &Request) -> usize {
        self.free_frames()
    }

    /// Returns the number of frames free in caches in front of the store. Also a hint.
    fn cached_frames(&self) -> usize {
        0
    }

    /// Returns the number of managed frames: all that were added, less those reserved.
    fn managed_frames(&self) -> usize;

    /// Returns true if the request may have a free block of its order or more.
    fn can_serve(&self, request: &Request) -> bool;

    /// Returns true if the request may have a free block, as far as a look at totals tells: false
    /// may be wrong while a block is being put together, and true too. For callers that ask often.
    fn may_serve(&self, request: &Request) -> bool {
        self.can_serve(request)
    }

    /// Returns a number that is unchanged if no frame of the zone has become free, in a cache or in
    /// the store, and none was taken from the store. A request that has found nothing in any of
    /// several zones tries them all again if it has changed. By default it does not.
    fn activity(&self) -> usize {
        0
    }

    /// Returns the number of free blocks by order and type.
    fn free_table(&self) -> FreeTable;

    /// Returns the fragmentation index at `order`, in thousandths; `None` if that takes a look at
    /// each page block.
    fn quick_index(&self, order: Order) -> Option<i32> {
        Some(self.free_counts().fragmentation_index(order))
    }

    /// Moves movable pages until `request` can be served, or that is out of reach: for most zones
    /// by [`compact_for`](crate::pressure::compact_for).
    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted
    where
        Self: Sized;

    /// Tests every invariant of the zone. No other CPU may be using it.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self) -> Result<Census, Violation>;

    // ---- provided methods ----

    /// Returns the zone's kind.
    #[inline]
    fn kind(&self) -> ZoneKind {
        self.shape().kind
    }

    /// Returns the frames that the zone has records for. Not all of them need be memory.
    #[inline]
    fn span(&self) -> FrameRange {
        self.shape().span
    }

    /// Returns the highest order that the zone hands out.
    #[inline]
    fn max_order(&self) -> Order {
        self.shape().max_order
    }

    /// Returns the frames of every reachable cache to the store, with the patience of one request.
    /// Returns the number of frames.
    fn drain(&self) -> usize {
        self.drain_with(&Patience::new())
    }

    /// Returns true if `frame` is memory of this zone. Looks at the zone's records without a lock.
    fn has(&self, frame: Frame) -> bool {
        self.block_of(frame).is_some()
    }

    /// Returns the number of available free blocks by order: of all types but the isolated one.
    fn free_counts(&self) -> FreeCounts {
        FreeCounts::to_be_had(&self.free_table())
    }

    /// Returns the free blocks by order and type, and the page blocks by type, for the texts of
    /// buddyinfo and pagetypeinfo. O(span).
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
