//! Adjacent frames of any number: as many as are asked for, or those of a given range.
//!
//! Blocks are powers of two. What kernels ask for often is not: five pages of a segment, a stack of
//! three pages with its guard. Such a request takes the smallest block that holds it, and the rest
//! of the block is free again before the call returns. The frames are then freed by
//! [`Zone::free_range`], all at once or in parts, in any order. Every frame is freed once.

use brickyard_sync::SlotAccess;

use super::Zone;
use crate::zones::take_range_at;
use crate::{AllocError, Frame, FrameRange, FreeError, Order, Platform, RangeError, Request};

/// Returns `request` for the smallest block that holds `frames` frames, and is of its order at
/// least.
///
/// # Errors
/// [`AllocError::LengthUnsatisfiable`], if no block of `max_order` does.
pub(crate) const fn block_holding(
    request: &Request,
    frames: usize,
    max_order: Order,
) -> Result<Request, AllocError> {
    let most = max_order.frames();
    if frames == 0 || frames > most {
        return Err(AllocError::LengthUnsatisfiable { frames, most });
    }
    let mut block = *request;
    if let Some(order) = Order::holding(frames)
        && order.get() > block.order.get()
    {
        block.order = order;
    }
    Ok(block)
}

/// Frees all but the first `frames` frames of a block.
pub(crate) fn cut_to(
    frames: usize,
    first: Frame,
    order: Order,
    free: impl FnOnce(FrameRange) -> Result<(), FreeError>,
) -> FrameRange {
    let taken = FrameRange::at(first, frames);
    let rest = FrameRange::at(taken.end, order.frames() - frames);
    if !rest.is_empty() {
        let freed = free(rest);
        debug_assert!(freed.is_ok(), "one-owner: {rest:?} of a block: {freed:?}");
    }
    taken
}

impl<P: Platform, A: SlotAccess> Zone<'_, P, A> {
    /// Takes `frames` adjacent frames, whose start is aligned to the smallest power of two that is
    /// no less than `frames`, and to `request`'s order. They are freed by [`Zone::free_range`], all
    /// or in parts.
    ///
    /// Cost: that of a block of that power of two, and of a free of the rest of it to the store:
    /// for each aligned part, at most one for each order, one atomic instruction and one
    /// compare-and-swap. So much must be free in one block for a moment: 5 frames need a free block
    /// of 8, and fail without, even if 5 frames side by side are free elsewhere.
    /// [`alloc_contiguous`](crate::pressure::alloc_contiguous) would find those: it looks at all
    /// blocks, may move what is in the way, and serves more than the largest block.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// use brickyard::{FrameRange, Mobility, OneCpu, Request, Zone, ZoneKind, ZonePlan};
    ///
    /// # const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
    /// # let mut memory = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
    /// # let zone = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut memory)?;
    /// # zone.add(PLAN.span)?;
    /// let stack = zone.alloc_range(&Request::page(Mobility::Unmovable), 5)?;
    /// assert_eq!((stack.len(), stack.start.number() % 8), (5, 0));
    /// let guard = FrameRange::at(stack.start, 1);
    /// zone.free_range(guard)?;
    /// zone.free_range(FrameRange { start: guard.end, ..stack })?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::LengthUnsatisfiable`] for no frames, and for more than the largest block;
    /// otherwise as [`Zone::alloc`] of the block.
    pub fn alloc_range(&self, request: &Request, frames: usize) -> Result<FrameRange, AllocError> {
        let block = block_holding(request, frames, self.store().max_order())?;
        let first = self.alloc(&block)?;
        Ok(cut_to(frames, first, block.order, |rest| {
            self.free_range(rest)
        }))
    }

    /// Takes exactly the frames of `range`, of any length and alignment, as `request` says (not of
    /// its order). They are freed by [`Zone::free_range`], all or in parts.
    ///
    /// Cost: that of [`Zone::alloc_at`] for each aligned block of the range, but for one drain at
    /// most. Other callers may take and free frames of the range meanwhile.
    ///
    /// # Errors
    /// The errors of [`Zone::alloc_at`], for the first block that could not be taken; the blocks
    /// before it are free again. [`RangeError::Malformed`] for no frames.
    pub fn alloc_range_at(&self, range: FrameRange, request: &Request) -> Result<(), RangeError> {
        if range.is_empty() {
            return Err(RangeError::Malformed);
        }
        self.or_drained(request, || take_range_at(self, range, request))
    }
}
