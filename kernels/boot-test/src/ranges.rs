//! Changes of ranges while everybody uses the zone: memory that is removed and added again,
//! reserved and freed again, or taken as a whole.
//!
//! A range is isolated first, so that what is freed in it stays there. Then the change is tried
//! until nothing of the range is in use, or the caller's patience ends.

use brickyard::block::Use;
use brickyard::{AnyZone, Frame, FrameRange, Mobility, Order, RangeError, Request};

use crate::{By, Contents, Figures, Finding, Owner, Test};

/// What is done with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeChange {
    /// Removed from the zone, and added again.
    Remove,
    /// Reserved, and freed again.
    Reserve,
    /// Taken as one piece, and freed again.
    Take,
}

impl RangeChange {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Remove, Self::Reserve, Self::Take];
}

impl<Z: AnyZone, C: Contents> Test<'_, Z, C> {
    /// Does `change` with the first part of `range` that is memory, and undoes it. (What lies in
    /// holes of the zone is not the test's to add.) Until the range is free, `again` is called
    /// after each try, to let others run; when it returns false, the change is given up.
    ///
    /// While the range is away, its frames are owned, and `again` is called once more: nobody may
    /// get any of them.
    ///
    /// One task at a time may call this.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn change_range(
        &self,
        change: RangeChange,
        range: FrameRange,
        task: u16,
        again: impl FnMut() -> bool,
    ) -> Result<Figures, Finding> {
        let mut figures = Figures::default();
        if self.oracle.is_stopped() {
            return Ok(figures);
        }
        let range = self.memory_of(range);
        if range.is_empty() {
            figures.given_up += 1;
            return Ok(figures);
        }
        let owner = self.owner(Order::ZERO, By::Range, task);
        let done = self.change(change, range, owner, again, &mut figures);
        self.judge(done.map(|()| figures))
    }

    fn change(
        &self,
        change: RangeChange,
        range: FrameRange,
        owner: Owner,
        mut again: impl FnMut() -> bool,
        figures: &mut Figures,
    ) -> Result<(), Finding> {
        match self.zone.isolate(range) {
            Ok(()) => {}
            // Somebody else has isolated a part of it, or several others are at work.
            Err(RangeError::Isolated | RangeError::TooManyIsolated) => {
                figures.given_up += 1;
                return Ok(());
            }
            Err(error) => return Err(Finding::RangeRefused { range, error }),
        }
        let left = loop {
            match self.try_change(change, range) {
                Ok(frames) => break Some(frames),
                Err(RangeError::Busy { frame }) if range.contains(frame) => figures.busy += 1,
                Err(error) => return Err(Finding::RangeRefused { range, error }),
            }
            if self.oracle.is_stopped() || !again() {
                break None;
            }
        };
        if change != RangeChange::Take || left.is_none() {
            self.zone.unisolate(range);
        }
        match left {
            Some(frames) => self.while_away(change, range, frames, owner, again, figures),
            None => {
                figures.given_up += 1;
                Ok(())
            }
        }
    }

    fn try_change(&self, change: RangeChange, range: FrameRange) -> Result<usize, RangeError> {
        match change {
            RangeChange::Remove => self.zone.remove(range),
            RangeChange::Reserve => self.zone.reserve(range),
            RangeChange::Take => {
                self.zone.drain();
                self.zone
                    .take_isolated(range, Mobility::Unmovable)
                    .map(|()| range.len())
            }
        }
    }

    /// The range has left: nobody may own a frame of it, and nobody may get one.
    fn while_away(
        &self,
        change: RangeChange,
        range: FrameRange,
        left: usize,
        owner: Owner,
        mut again: impl FnMut() -> bool,
        figures: &mut Figures,
    ) -> Result<(), Finding> {
        let size = |found| match found == range.len() {
            true => Ok(()),
            false => Err(Finding::RangeSize {
                range,
                expected: range.len(),
                found,
            }),
        };
        size(left)?;
        for frame in range.frames() {
            if let Some(owner) = self.oracle.owner_of(frame) {
                return Err(Finding::RangeInUse {
                    range,
                    frame,
                    owner,
                });
            }
            self.oracle.claim_frame(frame, owner)?;
        }
        if change == RangeChange::Take {
            self.zone.unisolate(range);
        }
        again();
        range
            .frames()
            .try_for_each(|frame| self.oracle.release_frame(frame, owner))?;
        let refused = |error| Finding::RangeRefused { range, error };
        let found = match change {
            RangeChange::Remove => self.zone.add(range).map_err(refused)?,
            RangeChange::Reserve => self.zone.unreserve(range).map_err(refused)?,
            RangeChange::Take => match self.zone.free_range(range) {
                Ok(()) => range.len(),
                Err(error) => {
                    return Err(Finding::FreeRefused {
                        frame: range.start,
                        order: Order::ZERO,
                        error,
                    });
                }
            },
        };
        size(found)?;
        match change {
            RangeChange::Remove => figures.removed += 1,
            RangeChange::Reserve => figures.reserved += 1,
            RangeChange::Take => figures.contiguous += 1,
        }
        Ok(())
    }

    /// Returns the first part of `range` that is memory of the zone, and not reserved.
    fn memory_of(&self, range: FrameRange) -> FrameRange {
        let is_memory = |frame: &Frame| {
            let found = self.zone.block_of(*frame);
            found.is_some_and(|(_, state)| state.usage != Use::Reserved)
        };
        let mut frames = range.intersection(self.oracle.span()).frames();
        match frames.find(is_memory) {
            Some(start) => FrameRange::at(start, 1 + frames.take_while(is_memory).count()),
            None => FrameRange::default(),
        }
    }

    /// Takes a frame, and tries to remove and to reserve `around` frames about it, which must be
    /// refused.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn refuse_range(&self, around: Order, task: u16) -> Result<Figures, Finding> {
        let mut figures = Figures::default();
        if self.oracle.is_stopped() {
            return Ok(figures);
        }
        let done = self.refuse(around, task, &mut figures);
        self.judge(done.map(|()| figures))
    }

    fn refuse(&self, around: Order, task: u16, figures: &mut Figures) -> Result<(), Finding> {
        let request = Request::page(Mobility::Movable);
        let Some(frame) = self.take(&request, By::Task, task, figures)? else {
            return Ok(());
        };
        let block = FrameRange::of_block(frame.align_down(around), around);
        let range = block.intersection(self.oracle.span());
        for change in [RangeChange::Remove, RangeChange::Reserve] {
            match self.try_change(change, range) {
                Err(RangeError::Busy { .. }) => figures.busy += 1,
                Err(error) => return Err(Finding::RangeRefused { range, error }),
                Ok(_) => {
                    return Err(Finding::RangeInUse {
                        range,
                        frame,
                        owner: self.owner(Order::ZERO, By::Task, task),
                    });
                }
            }
        }
        self.give(frame, Order::ZERO, figures)
    }
}
