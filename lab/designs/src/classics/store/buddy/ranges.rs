//! Administration of the buddy store: ranges are added, removed, reserved and isolated, at any time
//! and with any alignment.
//!
//! Everything here costs O(frames of the range), and runs under the zone's lock.
//!
//! Invariant `isolated-apart`: a free block is on an `Isolate` list exactly if all its frames are
//! in isolated ranges; no block is partly inside.

use super::Buddy;
use crate::classics::store::grouping::Grouping;
use brickyard::block::{State, Use};
use brickyard::{Frame, FrameRange, MigrateType, Order, RangeError};

/// A run of frames within one block, or of frames that are no memory.
pub(super) struct Extent {
    range: FrameRange,
    pub(super) block: Option<(Frame, State)>,
}

impl<G: Grouping> Buddy<'_, G> {
    fn within_span(&self, range: FrameRange) -> Result<(), RangeError> {
        let span = self.table.span();
        if span.covers(range) {
            Ok(())
        } else {
            Err(RangeError::OutsideSpan { span })
        }
    }

    /// Returns the part of `range` from `at` on that one block covers, or that no block covers.
    fn extent_at(&self, at: Frame, range: FrameRange) -> Extent {
        if let Some((first, state)) = self.block_of(at) {
            let block = FrameRange::of_block(first, state.order);
            let rest = FrameRange { start: at, ..range };
            return Extent {
                range: rest.intersection(block),
                block: Some((first, state)),
            };
        }
        let end = self.table.next_head(FrameRange { start: at, ..range });
        Extent {
            range: FrameRange { start: at, end },
            block: None,
        }
    }

    /// Calls `each` with every extent of `range`; it may change the extent's block. Stops at the
    /// first error.
    pub(super) fn for_extents<E>(
        &self,
        range: FrameRange,
        mut each: impl FnMut(Extent) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = range.start;
        while at < range.end {
            let extent = self.extent_at(at, range);
            at = extent.range.end;
            each(extent)?;
        }
        Ok(())
    }

    fn for_all_extents(&self, range: FrameRange, mut each: impl FnMut(Extent)) {
        let _: Result<(), core::convert::Infallible> = self.for_extents(range, |extent| {
            each(extent);
            Ok(())
        });
    }

    /// Checks that every frame of `range` that is memory is free, or in one of the uses `also`;
    /// else returns the first that is not.
    fn busy_in(&self, range: FrameRange, also: &[Use]) -> Result<(), RangeError> {
        self.for_extents(range, |extent| match extent.block {
            Some((_, state)) if state.usage != Use::Free && !also.contains(&state.usage) => {
                Err(RangeError::Busy {
                    frame: extent.range.start,
                })
            }
            _ => Ok(()),
        })
    }

    /// Cuts `part` out of the free or reserved block at `first`. The rest of the block stays free
    /// or reserved; the records of `part` are `Inner` afterwards.
    fn detach(&self, first: Frame, state: State, part: FrameRange) {
        if state.usage == Use::Free {
            self.unlink(first, state.order, state.kind);
        }
        self.table.set_state(first, State::INNER);
        let block = FrameRange::of_block(first, state.order);
        let below = FrameRange::new(block.start.number(), part.start.number());
        let above = FrameRange::new(part.end.number(), block.end.number());
        for (frame, order) in below
            .blocks(self.max_order)
            .chain(above.blocks(self.max_order))
        {
            if state.usage == Use::Free {
                self.insert(frame, order, state.kind);
            } else {
                self.table
                    .set_state(frame, State::new(state.usage, order, state.kind));
            }
        }
    }

    /// Makes the frames of `range`, whose records are `Inner`, free.
    fn release(&self, range: FrameRange) {
        for (frame, order) in range.blocks(self.max_order) {
            self.merge_to(frame, order, MigrateType::Movable, G::ADDS_TO);
        }
    }

    /// Adds all frames of `range` that are not yet memory of this store, as free. Returns how many
    /// there were.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    pub fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.within_span(range)?;
        let mut added = 0;
        self.for_all_extents(range, |extent| {
            if extent.block.is_none() {
                added += extent.range.len();
            }
        });
        // First the size, which decides what lists the frames go to.
        self.resize(self.managed_frames() + added);
        self.for_all_extents(range, |extent| {
            if extent.block.is_none() {
                self.release(extent.range);
            }
        });
        Ok(added)
    }

    /// Removes all frames of `range`. Returns how many there were.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is neither free nor reserved; then nothing
    /// has changed.
    pub fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.within_span(range)?;
        self.busy_in(range, &[Use::Reserved])?;
        let (mut removed, mut unmanaged) = (0, 0);
        self.for_all_extents(range, |extent| {
            if let Some((first, state)) = extent.block {
                self.detach(first, state, extent.range);
                removed += extent.range.len();
                unmanaged += usize::from(state.usage == Use::Free) * extent.range.len();
            }
        });
        self.resize(self.managed_frames() - unmanaged);
        Ok(removed)
    }

    /// Reserves all free frames of `range`, so that they are not handed out. Frames that are absent
    /// or already reserved are skipped. Returns how many frames became reserved.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame in use; then nothing has changed.
    pub fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.within_span(range)?;
        self.busy_in(range, &[Use::Reserved])?;
        let mut reserved = 0;
        self.for_all_extents(range, |extent| match extent.block {
            Some((first, state)) if state.usage == Use::Free => {
                self.detach(first, state, extent.range);
                self.mark(extent.range, Use::Reserved, MigrateType::Unmovable);
                reserved += extent.range.len();
            }
            _ => {}
        });
        self.resize(self.managed_frames() - reserved);
        Ok(reserved)
    }

    /// Frees all reserved frames of `range`. Returns how many there were.
    ///
    /// # Errors
    /// [`RangeError::OutsideSpan`].
    pub fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.within_span(range)?;
        let mut freed = 0;
        self.for_all_extents(range, |extent| match extent.block {
            Some((_, state)) if state.usage == Use::Reserved => freed += extent.range.len(),
            _ => {}
        });
        self.resize(self.managed_frames() + freed);
        self.for_all_extents(range, |extent| match extent.block {
            Some((first, state)) if state.usage == Use::Reserved => {
                self.detach(first, state, extent.range);
                self.release(extent.range);
            }
            _ => {}
        });
        Ok(freed)
    }

    /// Makes `range`, whose records are `Inner`, blocks of this use.
    fn mark(&self, range: FrameRange, usage: Use, kind: MigrateType) {
        for (frame, order) in range.blocks(self.max_order) {
            self.table.set_state(frame, State::new(usage, order, kind));
        }
    }

    /// Isolates `range`: nothing is handed out from it, and frames freed there stay there.
    ///
    /// # Errors
    /// [`RangeError::Isolated`], if it overlaps an isolated range; [`RangeError::TooManyIsolated`],
    /// if four ranges are isolated already.
    pub fn isolate(&self, range: FrameRange) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.isolation.begin(range)?;
        self.relist_free(range);
        Ok(())
    }

    /// Ends the isolation of exactly `range`; its free frames can be allocated again. Does nothing
    /// if it is not isolated.
    pub fn unisolate(&self, range: FrameRange) {
        if self.isolation.end(range) {
            self.relist_free(range);
        }
    }

    /// Takes every free frame of `range` off its list and frees it again, with the isolation now in
    /// force.
    fn relist_free(&self, range: FrameRange) {
        self.for_all_extents(range, |extent| match extent.block {
            Some((first, state)) if state.usage == Use::Free => {
                self.detach(first, state, extent.range);
                // The type of a frame before isolation is not kept: isolated memory is mostly
                // movable.
                let recorded = match state.kind {
                    MigrateType::Isolate => MigrateType::Movable,
                    kind => kind,
                };
                let end = match state.kind {
                    MigrateType::Isolate => G::ADDS_TO,
                    _ => None,
                };
                for (frame, order) in extent.range.blocks(self.max_order) {
                    self.merge_to(frame, order, recorded, end);
                }
            }
            _ => {}
        });
    }

    /// Takes all of `range`, which is free, off its lists; the records are `Inner` afterwards.
    pub(super) fn take_free(&self, range: FrameRange) -> Result<(), RangeError> {
        self.for_extents(range, |extent| {
            let frame = extent.range.start;
            match extent.block {
                None => Err(RangeError::Absent { frame }),
                Some((_, state)) if state.usage == Use::Free => Ok(()),
                Some(_) => Err(RangeError::Busy { frame }),
            }
        })?;
        self.for_all_extents(range, |extent| {
            if let Some((first, state)) = extent.block {
                self.detach(first, state, extent.range);
            }
        });
        Ok(())
    }

    /// Takes all of `range`, which is isolated and wholly free, as blocks in use.
    ///
    /// # Errors
    /// [`RangeError::Busy`] with the first frame that is not free; then nothing has changed.
    pub fn take_isolated(&self, range: FrameRange, kind: MigrateType) -> Result<(), RangeError> {
        self.within_span(range)?;
        self.take_free(range)?;
        self.mark(range, Use::Allocated, kind);
        Ok(())
    }

    /// Returns true if all frames of the block are in isolated ranges (`isolated`), or none is (not
    /// `isolated`).
    pub(super) fn isolated_as_a_whole(&self, frame: Frame, order: Order, isolated: bool) -> bool {
        FrameRange::of_block(frame, order)
            .frames()
            .all(|frame| self.isolation.contains(frame) == isolated)
    }

    pub(super) fn anything_isolated(&self) -> bool {
        self.isolation.any()
    }
}
