//! The zone as nodes, pressure and statistics use it: through [`AnyZone`].

use core::cell::Cell;

use brickyard_sync::SlotAccess;

use super::{Zone, is_first};
use crate::block::{Census, FreeTable, State};
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::patience::{Patience, Reach};
use crate::pressure::{Compacted, CompactionState, Migrate, compact_for};
use crate::watermark::{Mark, Watermarks};
use crate::zones::{AnyZone, Shape};
use crate::{
    AllocError, Context, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, Platform,
    RangeError, Request, ZoneKind,
};

/// What a zone can by itself, without the trait.
macro_rules! by_itself {
    ($(fn $name:ident($($given:ident: $of:ty),*) -> $result:ty;)*) => {$(
        #[inline]
        fn $name(&self, $($given: $of),*) -> $result {
            Zone::$name(self, $($given),*)
        }
    )*};
}

impl<P: Platform, A: SlotAccess> AnyZone for Zone<'_, P, A> {
    type Platform = P;

    by_itself! {
        fn alloc(request: &Request) -> Result<Frame, AllocError>;
        fn free(frame: Frame, order: Order) -> Result<(), FreeError>;
        fn free_bulk(frames: &[Frame]) -> Result<(), BulkFreeError>;
        fn free_range(range: FrameRange) -> Result<(), FreeError>;
        fn add(range: FrameRange) -> Result<usize, RangeError>;
        fn reserve(range: FrameRange) -> Result<usize, RangeError>;
        fn unreserve(range: FrameRange) -> Result<usize, RangeError>;
        fn remove(range: FrameRange) -> Result<usize, RangeError>;
        fn free_frames() -> usize;
        fn cached_frames() -> usize;
        fn check() -> Result<Census, Violation>;
    }

    #[inline]
    fn platform(&self) -> &P {
        &self.backing.platform
    }

    #[inline]
    fn shape(&self) -> Shape {
        Shape {
            kind: self.kind,
            span: self.store().span(),
            max_order: self.store().max_order(),
            page_block_order: self.store().page_block_order(),
        }
    }

    // Hits ask for these, and the compiler does not leave the rest of the shape out.
    #[inline]
    fn kind(&self) -> ZoneKind {
        self.kind
    }

    #[inline]
    fn span(&self) -> FrameRange {
        self.store().span()
    }

    fn watermarks(&self) -> &Watermarks {
        &self.watermarks
    }

    fn compaction(&self) -> &CompactionState {
        &self.compaction
    }

    #[inline]
    fn alloc_above(&self, request: &Request, mark: Mark) -> Option<Frame> {
        // A single frame that is at hand was offered before, or is found when it would be fetched.
        if is_first(mark)
            && let Some(frame) = self.block_at_hand(request)
        {
            return Some(frame);
        }
        self.above_with_fetch(request, mark)
    }

    #[inline]
    fn alloc_at_hand(&self, request: &Request) -> Option<Frame> {
        self.at_hand(request)
    }

    fn alloc_drained(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.take_drained(request, self.watermarks.floor(request, mark), patience)
    }

    fn alloc_set_aside(&self, request: &Request, mark: Mark, patience: &Patience) -> Option<Frame> {
        self.take_given_up(request, self.watermarks.floor(request, mark), patience)
    }

    fn free_frames_for(&self, request: &Request) -> usize {
        let free = self.store().free_frames();
        free.saturating_sub(self.store().kept_from(request))
    }

    fn alloc_uncached(&self, request: &Request) -> Option<Frame> {
        self.pinned(|store| store.take(request))
    }

    fn alloc_batch(&self, request: &Request, out: &mut [Frame]) -> usize {
        let floor = self.watermarks.floor(request, Mark::Low);
        let wanted = out.len();
        match self.free_frames() > floor.saturating_add(wanted) {
            true => self.take_many(request, out, self.room(request, floor, wanted)),
            false => 0,
        }
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.pinned(|store| store.take_at(frame, request))
    }

    fn why_not(&self, request: &Request) -> AllocError {
        let (order, max) = (request.order, self.store().max_order());
        if order > max {
            return AllocError::OrderTooLarge { order, max };
        }
        if let Some(limit) = request.limit
            && self.is_limited(request)
        {
            return AllocError::LimitUnsatisfiable { limit };
        }
        // Counting all free blocks would cost a look at each. That enough is free, yet no block is
        // available, can be said at once. If one is, the request was stopped by a mark.
        let free = self.free_frames();
        if order > Order::ZERO && free >= order.frames() && !self.can_serve(request) {
            let index = None;
            return AllocError::Fragmented { order, free, index };
        }
        let cached = self.cached_frames();
        AllocError::Exhausted { free, cached }
    }

    #[inline]
    fn free_at_hand(&self, frame: Frame) -> bool {
        // A stash keeps only frames of page blocks that are memory of this zone as a whole.
        self.stash.push(&self.backing, frame)
    }

    fn free_uncached(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.pinned(|store| store.give(frame, order))
    }

    fn drain_with(&self, patience: &Patience) -> usize {
        let reach = Reach::of(Context::MaySleep, self.platform());
        self.stash.drain(&self.backing, reach, patience).frames
    }

    fn isolate(&self, range: FrameRange) -> Result<(), RangeError> {
        self.store().isolate(range, &|| self.step())
    }

    fn unisolate(&self, range: FrameRange) {
        self.store().unisolate(range, &|| self.step());
    }

    fn take_isolated(&self, range: FrameRange, mobility: Mobility) -> Result<(), RangeError> {
        self.store()
            .take_isolated(range, mobility.into(), &|| self.pin())
    }

    fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        self.store().block_of(frame)
    }

    fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        self.store().block_type(frame)
    }

    fn knows_to_move(&self, _state: State) -> Option<bool> {
        // The bitmap knows mobilities only roughly, by location.
        None
    }

    fn managed_frames(&self) -> usize {
        self.store().managed_frames()
    }

    fn can_serve(&self, request: &Request) -> bool {
        // Pinned: what a search finds out of place, it puts right.
        self.pinned(|store| store.can_serve(request))
    }

    fn may_serve(&self, request: &Request) -> bool {
        match request.order > self.shape().page_block_order {
            true => self.can_serve(request),
            false => self.store().may_have(request),
        }
    }

    /// Compacts for `request`, and takes a block for it as soon as the sets have one: after each
    /// block that is moved, so that no other request takes what was gathered for this one.
    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted {
        let caught = Cell::new(None);
        let catch = || {
            let is_there = caught.get().is_none() && self.store().may_have(request);
            if is_there && self.admits(request, self.watermarks.floor(request, Mark::Min)) {
                caught.set(self.pinned(|store| store.take(request)));
            }
            caught.get().is_some()
        };
        let mut result = compact_for(self, request, hooks, catch);
        result.caught = caught.get();
        result
    }

    fn activity(&self) -> usize {
        self.stash.arrivals().wrapping_add(self.store().changes())
    }

    fn free_table(&self) -> FreeTable {
        self.store().free_table()
    }

    fn quick_index(&self, _order: Order) -> Option<i32> {
        None
    }
}
