//! What the lab asks of a zone of Linux: measurements, what passes with time, memory in use taken
//! over.

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Need, Reclaim};
use brickyard::sync::SlotAccess;
use brickyard::{AllocError, AnyZone, Frame, Mobility, Order, Platform, RangeError, Request};

use super::zone::{Version, Zone};
use super::{compact, walk};
use crate::classics::bulk::MeterReading;
use crate::classics::gfp::GfpFlags;
use crate::classics::lab_zone::LabZone;
use crate::classics::lock::LabLock;
use crate::classics::store::frames::FrameRecord;

/// The most free page blocks that are reported to the host of a virtual machine at once
/// (`PAGE_REPORTING_CAPACITY`).
const REPORTED_AT_ONCE: usize = 32;

impl<V: Version, A: SlotAccess, L: LabLock, P: Platform> LabZone for Zone<'_, V, A, L, P> {
    const DISTINGUISHES_CACHED: bool = true;

    fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        self.inner.alloc_bulk(request, out)
    }

    fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.inner.alloc_at(frame, request)
    }

    fn dedicate(&self, frame: Frame, mobility: Mobility) {
        self.inner.dedicate(frame, mobility);
    }

    fn refused_late(&self) -> usize {
        0
    }

    fn frame_records(&self) -> &[FrameRecord] {
        self.inner.frame_records()
    }

    fn meter(&self) -> MeterReading {
        self.inner.meter()
    }

    fn alloc_from<H: Reclaim + Migrate>(
        nodes: &Nodes<'_, Self, H>,
        from: usize,
        request: &Request,
        flags: GfpFlags,
    ) -> Result<Frame, AllocError> {
        walk::alloc(nodes, from, request, flags)
    }

    fn tick(&self) {
        self.inner.front.tick(&self.inner.backing);
    }

    /// Notes it. At its end, what compaction skips is cleared, if it had found nothing.
    fn set_reclaiming(&self, reclaiming: bool) {
        self.blocks().condition().set_reclaiming(reclaiming);
        if !reclaiming {
            self.compaction.reclaimed();
        }
    }

    /// Compacts for what was asked for; for a page block at least, if the marks were raised.
    fn compact_behind(&self, need: &Need, hooks: &impl Migrate) -> usize {
        let Self {
            inner, compaction, ..
        } = self;
        let boosted = self.blocks().condition().boost_at_wake() > 0;
        let order = match boosted {
            true => need.order.max(self.blocks().order()),
            false => need.order,
        };
        compact::in_background(inner, compaction, order, need.highest, hooks).moved
    }

    fn high_mark(&self) -> usize {
        self.watermarks().marks().high + self.boost()
    }

    fn stock(&self, frame: Frame, order: Order) -> bool {
        let kept = self.inner.front.stock(&self.inner.backing, frame, order);
        kept || self.inner.free_uncached(frame, order).is_ok()
    }

    /// Unless too little is free: more than the low mark and 32 page blocks.
    fn report_free(&self) -> usize {
        let guard = self.inner.lock();
        let blocks = guard.grouping();
        let marks = self.watermarks().marks();
        let low = marks.low + self.boost();
        let room = REPORTED_AT_ONCE * blocks.order().frames();
        match guard.free_frames() > low + room {
            true => blocks.report(&guard, marks.min),
            false => 0,
        }
    }

    fn set_cache_limit(&self, frames: usize) {
        self.inner.front.set_high(self.platform(), frames);
    }
}
