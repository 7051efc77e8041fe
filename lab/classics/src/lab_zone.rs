//! What the lab asks of a zone beyond what nodes do: to be built from a plan, to be measured, and
//! to take over memory in use.

use core::mem::MaybeUninit;

use brickyard::sync::SlotAccess;
use brickyard::{
    AllocError, AnyZone, Frame, Mobility, PlanError, Platform, RangeError, Request, Zone,
};

use crate::bulk::MeterReading;
use crate::plan::LabPlan;

/// A zone that the lab measures, of any make.
pub trait LabZone: AnyZone {
    /// Does it tell blocks that lie in its caches from those in use?
    const TELLS_CACHED: bool;

    /// Fills `out` with single frames of `request`'s mobility, context and limit, as many as can be
    /// had. Returns how many.
    ///
    /// # Errors
    /// Why none could be had.
    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError>;

    /// The block of `request`'s order that starts exactly at `frame`. Where it lies in a cache, the
    /// caches are drained as far as the request's context allows.
    ///
    /// # Errors
    /// As [`AnyZone::take_at`].
    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;

    /// The page block of `frame` is for pages of this mobility from now on: for who takes over
    /// memory in use, and knows what most of a block is. Does nothing where blocks have no types,
    /// where the block is free as a whole, and where it is kept for atomic requests.
    fn dedicate(&self, frame: Frame, mobility: Mobility);

    /// Frames free in caches. A hint while others use the zone.
    fn cached_frames(&self) -> usize;

    /// Frames that came back from caches although they were free.
    fn refused_late(&self) -> usize;

    /// What was measured at the zone lock, and fallbacks. A zone without a lock has the fallbacks
    /// alone.
    fn meter(&self) -> MeterReading;
}

/// A zone that can be built from a plan, with its metadata in memory that lives for `'m`.
pub trait Planned<'m>: LabZone + Sized {
    /// The bytes of metadata that a zone by `plan` needs.
    ///
    /// # Errors
    /// Which limit of a zone the plan passes.
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError>;

    /// A zone by `plan`. It has no memory to hand out yet.
    ///
    /// # Errors
    /// What [`Planned::checked_bytes_for`] is refused with; [`PlanError::TooLittleMemory`] where
    /// `memory` is shorter; what else there is no such zone for.
    fn by(
        plan: &LabPlan,
        platform: Self::Platform,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError>;
}

impl<P: Platform, A: SlotAccess> LabZone for Zone<'_, P, A> {
    const TELLS_CACHED: bool = false;

    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        Zone::alloc_bulk(self, request, out)
    }

    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        Zone::alloc_at(self, frame, request)
    }

    fn dedicate(&self, frame: Frame, mobility: Mobility) {
        Zone::dedicate(self, frame, mobility);
    }

    fn cached_frames(&self) -> usize {
        Zone::cached_frames(self)
    }

    fn refused_late(&self) -> usize {
        Zone::refused_late(self)
    }

    fn meter(&self) -> MeterReading {
        let (mixing, claims) = self.fallbacks();
        MeterReading {
            mixing,
            claims,
            fallbacks: mixing + claims,
            ..MeterReading::default()
        }
    }
}

impl<'m, P: Platform, A: SlotAccess> Planned<'m> for Zone<'m, P, A> {
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError> {
        Self::checked_bytes(&plan.zone)
    }

    fn by(
        plan: &LabPlan,
        platform: P,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError> {
        Self::new(&plan.zone, platform, memory)
    }
}
