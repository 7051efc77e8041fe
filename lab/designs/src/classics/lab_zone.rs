//! What the lab needs of a zone beyond what nodes need: to be measured, and to take over memory in
//! use.

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Need, Reclaim};
use brickyard::sync::SlotAccess;
use brickyard::{AllocError, AnyZone, Frame, Mobility, Order, Platform, RangeError, Request, Zone};

use crate::classics::bulk::MeterReading;
use crate::classics::gfp::GfpFlags;
use crate::classics::store::frames::FrameRecord;

/// A zone of any design that the lab measures.
pub trait LabZone: AnyZone {
    /// Whether [`AnyZone::block_of`] tells cached blocks from those in use.
    const DISTINGUISHES_CACHED: bool;

    /// Fills `out` with single frames of `request`'s mobility, context and limit, as many as
    /// possible. Returns how many.
    ///
    /// # Errors
    /// If not one could be allocated: why.
    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError>;

    /// Takes the block of `request`'s order that starts exactly at `frame`. If frames of it are
    /// busy, the caches, which may hold them, are drained as far as the request's context allows.
    ///
    /// # Errors
    /// The errors of [`AnyZone::take_at`].
    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;

    /// Gives the page block of `frame` to pages of this mobility: for a caller that takes over
    /// memory in use and has found what most of a block is used for. Does nothing where blocks have
    /// no types, or if the block is wholly free or kept for atomic requests.
    fn dedicate(&self, frame: Frame, mobility: Mobility);

    /// Returns how many frames came back from caches although they were free: double frees found
    /// late.
    fn refused_late(&self) -> usize;

    /// Returns the measurements at the zone lock, and the fallbacks. A zone without a lock has only
    /// the latter.
    fn meter(&self) -> MeterReading;

    /// Returns the records of the span's frames, in order; empty if the design has none.
    fn frame_records(&self) -> &[FrameRecord] {
        &[]
    }

    /// Takes a block from node `from` if possible, by the design's own way through zones and the
    /// slow path. By default that is [`Nodes::alloc`], and the flags make no difference.
    ///
    /// # Errors
    /// The errors of [`Nodes::alloc`].
    #[inline]
    fn alloc_from<H: Reclaim + Migrate>(
        nodes: &Nodes<'_, Self, H>,
        from: usize,
        request: &Request,
        _flags: GfpFlags,
    ) -> Result<Frame, AllocError>
    where
        Self: Sized,
    {
        nodes.alloc(from, request)
    }

    /// Lets time pass on this CPU: called about once a second. A design whose caches shrink with
    /// time does so. By default nothing happens.
    fn tick(&self) {}

    /// Reports free page blocks to the host of a virtual machine: called about every two seconds on
    /// a machine that does so. Returns how many frames have changed their type by that. By default
    /// nothing happens.
    fn report_free(&self) -> usize {
        0
    }

    /// Tells the zone that background reclaim begins or ends. By default that makes no difference.
    fn set_reclaiming(&self, _reclaiming: bool) {}

    /// Compacts in the background: called when background reclaim has ended, with the most that it
    /// was woken for. Returns the number of frames moved. By default nothing happens.
    fn compact_behind(&self, _need: &Need, _hooks: &impl Migrate) -> usize
    where
        Self: Sized,
    {
        0
    }

    /// Returns the number of free frames at which background reclaim has freed enough.
    fn high_mark(&self) -> usize {
        self.watermarks().marks().high
    }

    /// Frees a block that is in use to this CPU's cache, without any change of what the cache has
    /// learnt, for a caller that takes over the memory of a running machine. Returns false if the
    /// block is refused.
    fn stock(&self, frame: Frame, order: Order) -> bool {
        self.free(frame, order).is_ok()
    }

    /// Sets the number of frames that this CPU's cache may hold at first, where that changes with
    /// time.
    fn set_cache_limit(&self, _frames: usize) {}
}

impl<P: Platform, A: SlotAccess> LabZone for Zone<'_, P, A> {
    const DISTINGUISHES_CACHED: bool = false;

    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        Zone::alloc_bulk(self, request, out)
    }

    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        Zone::alloc_at(self, frame, request)
    }

    fn dedicate(&self, frame: Frame, mobility: Mobility) {
        Zone::dedicate(self, frame, mobility);
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
