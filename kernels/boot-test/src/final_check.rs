//! The end: everything is given back, every frame can be had, and every invariant holds.

use brickyard::{AnyZone, Mobility, Order, Request};

use crate::{By, Contents, Figures, Finding, Test};

impl<Z: AnyZone, C: Contents> Test<'_, Z, C> {
    /// Takes back what lies between workers, and checks that all of the `frames` that were added
    /// can be had one by one, that the zone's invariants hold, and that all is free after a drain.
    /// O(span).
    ///
    /// To be called by one task when all workers have finished and interrupts do nothing any more.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn conclude(&self, frames: usize) -> Result<Figures, Finding> {
        let mut figures = Figures::default();
        for (frame, order) in self.oracle.left_behind() {
            self.give(frame, order, &mut figures)?;
        }
        self.nobody_owns_anything()?;
        let (managed, found) = (self.zone.managed_frames(), self.exhaust(&mut figures)?);
        if managed != frames || found != frames {
            return Err(Finding::Lost {
                expected: frames,
                managed,
                found,
            });
        }
        self.zone.drain();
        let census = self.zone.check().map_err(Finding::Violation)?;
        if census.free != frames || census.allocated != 0 || census.cached != 0 {
            return Err(Finding::NotFree {
                expected: frames,
                free: census.free,
                allocated: census.allocated,
                cached: census.cached,
            });
        }
        Ok(figures)
    }

    fn nobody_owns_anything(&self) -> Result<(), Finding> {
        for frame in self.oracle.span().frames() {
            if let Some(owner) = self.oracle.owner_of(frame) {
                return Err(Finding::StillOwned { frame, owner });
            }
        }
        Ok(())
    }

    /// Takes single frames until there are none, also from the caches of other CPUs, and gives them
    /// back. Returns how many there were.
    fn exhaust(&self, figures: &mut Figures) -> Result<usize, Finding> {
        let owner = self.owner(Order::ZERO, By::Task, 0);
        let request = Request::page(Mobility::Movable);
        let mut found = 0;
        while let Ok(frame) = self.zone.alloc(&request) {
            self.got(frame, &request, owner)?;
            found += 1;
        }
        figures.takes += found as u64;
        for frame in self.oracle.span().frames() {
            if self.oracle.owner_of(frame) == Some(owner) {
                self.give(frame, Order::ZERO, figures)?;
            }
        }
        Ok(found)
    }
}
