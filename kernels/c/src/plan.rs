//! Zones as C describes them. Zeros are defaults, so that a plan can be written with a few members.

use brickyard::bitmap::SetAside;
use brickyard::stash::StashSizes;
use brickyard::{FrameRange, Order, ZoneKind, ZonePlan};

use crate::error::{BY_INVALID, BY_TOO_LARGE, BY_UNSORTED};
use crate::hooks::by_hooks;
use crate::kind::kind_of;
use crate::platform::by_platform;

/// Compaction, but no lumpy reclaim. The default.
pub const BY_COMPACT: u32 = 0;
/// Lumpy reclaim, but no compaction.
pub const BY_LUMPY: u32 = 1;
/// Neither.
pub const BY_PLAIN: u32 = 2;

/// A zone. Frames are numbers: a physical address divided by the size of a page.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_zone_plan {
    /// The first frame that the zone can ever hold.
    pub start: usize,
    /// The frame after the last one, at most PTRDIFF_MAX: results are frame numbers or negative
    /// codes.
    pub end: usize,
    /// The node, counted from 0.
    pub node: u32,
    /// BY_NORMAL, BY_DMA, BY_DMA32, BY_HIGHMEM or BY_ZONE_MOVABLE.
    pub kind: u32,
    /// The highest order that is handed out, at most 18. 0: 10.
    pub max_order: u32,
    /// The order of a page block, at most max_order. 0: 9, or max_order if that is less.
    pub page_block_order: u32,
    /// The share of the zone's memory that may wait in CPUs' stashes, in percent; each CPU has an
    /// equal part of it. 0: 2.
    pub stash_percent: u32,
    /// The share that may be set aside for atomic requests above order 0, in percent. 0: 1; above
    /// 100: nothing.
    pub set_aside_percent: u32,
}

/// All that a machine is built from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_plan {
    /// The zones, sorted by node, then by kind (BY_DMA, BY_DMA32, BY_NORMAL, BY_HIGHMEM,
    /// BY_ZONE_MOVABLE), then by start. Those of one node and kind must not overlap. The spans of
    /// others may, as where nodes interleave; each frame still belongs to one zone, by by_add.
    pub zones: *const by_zone_plan,
    /// The number of zones.
    pub zone_count: usize,
    /// The number of CPUs that have stashes of their own. 0: 1.
    pub cpus: usize,
    /// BY_COMPACT, BY_LUMPY or BY_PLAIN.
    pub slow_path: u32,
    /// The CPUs.
    pub platform: by_platform,
    /// What can be done when memory is short.
    pub hooks: by_hooks,
}

/// Returns the order that C's number means.
pub(crate) fn order_of(number: u32) -> Option<Order> {
    u8::try_from(number).ok().and_then(Order::try_new)
}

impl by_zone_plan {
    /// Returns the plan in the library's terms.
    pub(crate) fn plan(&self, cpus: usize) -> Result<ZonePlan, isize> {
        let kind = kind_of(self.kind).ok_or(BY_INVALID)?;
        let span = FrameRange::new(self.start, self.end);
        let max_order = match self.max_order {
            0 => Order::DEFAULT_MAX,
            order => order_of(order).ok_or(BY_INVALID)?,
        };
        let page_block_order = match self.page_block_order {
            0 => Order::HUGE.min(max_order),
            order => order_of(order)
                .filter(|order| *order <= max_order)
                .ok_or(BY_INVALID)?,
        };
        if span.is_empty() || self.stash_percent > 100 {
            return Err(BY_INVALID);
        }
        // A result that is a frame number is not negative.
        if isize::try_from(self.end).is_err() {
            return Err(BY_TOO_LARGE);
        }
        let mut stash = StashSizes::DEFAULT;
        if self.stash_percent > 0 {
            stash.percent = self.stash_percent as usize;
        }
        let set_aside = match self.set_aside_percent {
            0 => SetAside::DEFAULT,
            percent @ 1..=100 => SetAside {
                percent: percent as u8,
                ..SetAside::DEFAULT
            },
            _ => SetAside::NONE,
        };
        Ok(ZonePlan {
            max_order,
            page_block_order,
            stash,
            set_aside,
            ..ZonePlan::new(kind, span, cpus)
        })
    }

    /// Returns what zones are sorted by.
    fn place(&self) -> (u32, Option<ZoneKind>, usize) {
        (self.node, kind_of(self.kind), self.start)
    }
}

impl by_plan {
    /// Returns the zones.
    ///
    /// # Safety
    /// `zones` points to `zone_count` of them, or is null.
    pub(crate) unsafe fn zones<'p>(&self) -> Result<&'p [by_zone_plan], isize> {
        if self.zones.is_null() || self.zone_count == 0 || self.slow_path > BY_PLAIN {
            return Err(BY_INVALID);
        }
        if self.zone_count > isize::MAX as usize / size_of::<by_zone_plan>() {
            return Err(BY_TOO_LARGE);
        }
        // SAFETY: the caller's promise.
        let zones = unsafe { core::slice::from_raw_parts(self.zones, self.zone_count) };
        for (lower, upper) in zones.iter().zip(&zones[1..]) {
            // What is sorted is sorted by node.
            let sorted = lower.place() < upper.place() && upper.node - lower.node <= 1;
            let same = lower.node == upper.node && lower.kind == upper.kind;
            if !sorted || (same && lower.end > upper.start) {
                return Err(BY_UNSORTED);
            }
        }
        if zones[0].node != 0 {
            return Err(BY_UNSORTED);
        }
        Ok(zones)
    }

    /// Returns the number of CPUs with stashes.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGHEST: usize = isize::MAX as usize;

    /// Returns a zone of a node, with everything else as it is by default.
    fn zone(node: u32, start: usize, end: usize) -> by_zone_plan {
        by_zone_plan {
            start,
            end,
            node,
            kind: crate::kind::BY_NORMAL,
            max_order: 0,
            page_block_order: 0,
            stash_percent: 0,
            set_aside_percent: 0,
        }
    }

    #[test]
    fn no_frame_number_looks_like_a_code() {
        let planned = |start, end| zone(0, start, end).plan(1).map(|plan| plan.span.end);
        assert_eq!(
            planned(HIGHEST - 1024, HIGHEST),
            Ok(brickyard::Frame::new(HIGHEST))
        );
        assert_eq!(planned(HIGHEST - 1024, HIGHEST + 1), Err(BY_TOO_LARGE));
        let all = usize::MAX;
        assert_eq!(planned(all - 4096, all - 1), Err(BY_TOO_LARGE));
    }

    #[test]
    #[cfg(not(feature = "linked"))]
    fn any_number_of_zones_and_nodes_is_read_or_refused() {
        // SAFETY: a plan is numbers and null pointers.
        let mut plan: by_plan = unsafe { core::mem::zeroed() };
        let most = u32::MAX;
        for nodes in [[most, most], [0, most], [1, 1], [0, 2], [most, 0]] {
            let zones = nodes.map(|node| zone(node, node as usize, node as usize + 1));
            (plan.zones, plan.zone_count) = (zones.as_ptr(), 2);
            // SAFETY: there are two zones.
            let found = unsafe { plan.zones() }.map(<[_]>::len);
            assert_eq!(found, Err(BY_UNSORTED), "{nodes:?}");
        }
        plan.zone_count = usize::MAX;
        // SAFETY: refused before a zone is read.
        let found = unsafe { plan.zones() }.map(<[_]>::len);
        assert_eq!(found, Err(BY_TOO_LARGE));
    }
}
