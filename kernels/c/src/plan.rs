//! Zones as C describes them. Zeros are defaults, so that a plan can be written with a few members.

use brickyard::bitmap::SetAside;
use brickyard::stash::StashSizes;
use brickyard::{FrameRange, Order, ZoneKind, ZonePlan};

use crate::error::{BY_INVALID, BY_UNSORTED};
use crate::hooks::by_hooks;
use crate::platform::by_platform;

/// All memory that the kernel maps.
pub const BY_NORMAL: u32 = 0;
/// Below 16 MiB on x86.
pub const BY_DMA: u32 = 1;
/// Below 4 GiB.
pub const BY_DMA32: u32 = 2;
/// Memory that the kernel does not map permanently.
pub const BY_HIGHMEM: u32 = 3;
/// Only for pages that can be moved.
pub const BY_ZONE_MOVABLE: u32 = 4;

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
    /// The frame after the last one.
    pub end: usize,
    /// The node, counted from 0.
    pub node: u32,
    /// BY_NORMAL, BY_DMA, BY_DMA32, BY_HIGHMEM or BY_ZONE_MOVABLE.
    pub kind: u32,
    /// The highest order that is handed out, at most 18. 0: 10.
    pub max_order: u32,
    /// The order of a page block, at most max_order. 0: 9, or max_order if that is less.
    pub page_block_order: u32,
    /// The share of the zone's memory that may wait in CPUs' stashes, in percent. 0: 2.
    pub stash_percent: u32,
    /// The share that may be set aside for atomic requests above order 0, in percent. 0: 1; above 100:
    /// nothing.
    pub set_aside_percent: u32,
}

/// All that a machine is built from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_plan {
    /// The zones, sorted by node, then by kind (BY_DMA, BY_DMA32, BY_NORMAL, BY_HIGHMEM,
    /// BY_ZONE_MOVABLE), then by start.
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

/// Returns the kind that C's number means.
pub(crate) const fn kind_of(number: u32) -> Option<ZoneKind> {
    Some(match number {
        BY_NORMAL => ZoneKind::Normal,
        BY_DMA => ZoneKind::Dma,
        BY_DMA32 => ZoneKind::Dma32,
        BY_HIGHMEM => ZoneKind::HighMem,
        BY_ZONE_MOVABLE => ZoneKind::Movable,
        _ => return None,
    })
}

/// Returns C's number of the kind.
pub(crate) const fn kind_in_c(kind: ZoneKind) -> u32 {
    match kind {
        ZoneKind::Normal => BY_NORMAL,
        ZoneKind::Dma => BY_DMA,
        ZoneKind::Dma32 => BY_DMA32,
        ZoneKind::HighMem => BY_HIGHMEM,
        ZoneKind::Movable => BY_ZONE_MOVABLE,
    }
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
        // SAFETY: the caller's promise.
        let zones = unsafe { core::slice::from_raw_parts(self.zones, self.zone_count) };
        for (lower, upper) in zones.iter().zip(&zones[1..]) {
            let sorted = lower.place() < upper.place() && upper.node <= lower.node + 1;
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
