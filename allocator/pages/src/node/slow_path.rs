//! The slow path: what happens when no zone has a block above its low watermark.
//!
//! 1. Background reclaim is woken.
//! 2. Zones are tried down to the min watermark, and below it for requests that may go there. An
//!    atomic request above order 0 takes from what is set aside for it first, and if that serves it
//!    not, the page block that does is set aside.
//! 3. The caches are drained, and the same is tried again. An atomic request skips the next step.
//! 4. Up to [`RETRIES`] times, while it helps: compaction (above order 0; above order 3 in the
//!    first quarter of the tries only), reclaim (lumpy if that is on and offered), the caches
//!    drained once more, and another try.
//! 5. What zones have set aside for others.

use super::Nodes;
use crate::patience::Patience;
use crate::pressure::Why;
use crate::pressure::compact::COSTLY;
use crate::pressure::reclaim::lump_round_oldest;
use crate::pressure::{Migrate, Need, RETRIES, Reclaim};
use crate::watermark::Mark;
use crate::zones::AnyZone;
use crate::{AllocError, Context, Frame, Order, Request};

/// The most times that a request for a single frame tries all zones one after the other, while
/// frames become free in some of them.
pub(crate) const PASSES: usize = 8;

/// Whether lumpy reclaim is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lumpy {
    /// Reclaim frees the oldest pages, wherever they are.
    Off,
    /// Above order 0, reclaim frees the block around the oldest page (2007 to 2012).
    On,
}

/// Whether compaction is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// Never.
    Off,
    /// Before reclaim, above order 0 (since 2010).
    On,
}

/// What the slow path tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPath {
    /// Lumpy reclaim.
    pub lumpy: Lumpy,
    /// Compaction.
    pub compaction: Compaction,
}

impl SlowPath {
    /// Compaction, but no lumpy reclaim.
    pub const MODERN: Self = Self {
        lumpy: Lumpy::Off,
        compaction: Compaction::On,
    };
    /// Lumpy reclaim, but no compaction: as with Whitcroft's patches of 2007.
    pub const LUMPY_2007: Self = Self {
        lumpy: Lumpy::On,
        compaction: Compaction::Off,
    };
    /// Neither: as before those patches.
    pub const PLAIN: Self = Self {
        lumpy: Lumpy::Off,
        compaction: Compaction::Off,
    };
}

impl<Z: AnyZone, H: Reclaim + Migrate> Nodes<'_, Z, H> {
    #[cold]
    pub(super) fn alloc_by_slow_path(
        &self,
        from: usize,
        request: &Request,
    ) -> Result<Frame, AllocError> {
        if self.is_hopeless(from, request) {
            return Err(self.why_not(from, request));
        }
        let need = Need {
            frames: request.order.frames(),
            order: request.order,
            highest: request.highest,
        };
        self.hooks.wake(&need);
        let patience = &Patience::new();
        let drained = || self.try_drained(from, request, patience);
        self.try_to_min(from, request)
            .or_else(drained)
            .or_else(|| self.under_pressure(from, request, &need, patience))
            .or_else(|| self.try_set_aside(from, request, patience))
            .ok_or_else(|| self.why_not(from, request))
    }

    /// Tries the zones down to the min watermark, or as far below it as the request may go.
    #[inline(never)]
    fn try_to_min(&self, from: usize, request: &Request) -> Option<Frame> {
        self.zonelist(from, request)
            .find_map(|zone| zone.alloc_above(request, Mark::Min))
    }

    /// Returns true if no zone could ever serve the request. Then no other CPU need be disturbed.
    fn is_hopeless(&self, from: usize, request: &Request) -> bool {
        let mut zones = self.zonelist(from, request);
        !zones.any(|zone| zone.max_order() >= request.order)
    }

    /// Tries all zones down to the min mark, with every reachable cache drained. A single frame may
    /// have come to a zone after that had been searched, from one that was still to be searched. So
    /// all are tried again, at most [`PASSES`] times, until nothing has come anywhere during a
    /// pass.
    #[inline(never)]
    fn try_drained(&self, from: usize, request: &Request, patience: &Patience) -> Option<Frame> {
        let zones = || self.zonelist(from, request);
        let activity = || {
            let each = zones().map(AnyZone::activity);
            each.fold(0, usize::wrapping_add)
        };
        let is_sought = request.order == Order::ZERO && zones().nth(1).is_some();
        for _ in 0..PASSES {
            let before = activity();
            let found = zones().find_map(|zone| zone.alloc_drained(request, Mark::Min, patience));
            // A zone that was looked at as often as it may be is not looked at again.
            if found.is_some() || !is_sought || patience.gave_up() || activity() == before {
                return found;
            }
        }
        None
    }

    /// Tries all zones down to the min mark, with what they have set aside for others.
    #[inline(never)]
    fn try_set_aside(&self, from: usize, request: &Request, patience: &Patience) -> Option<Frame> {
        self.zonelist(from, request)
            .find_map(|zone| zone.alloc_set_aside(request, Mark::Min, patience))
    }

    /// Compacts and reclaims while that helps.
    #[inline(never)]
    fn under_pressure(
        &self,
        from: usize,
        request: &Request,
        need: &Need,
        patience: &Patience,
    ) -> Option<Frame> {
        if request.context != Context::MaySleep || !(self.hooks.reclaims() || self.hooks.moves()) {
            return None;
        }
        // Above Linux's costly order, a quarter of the tries.
        let compactions = if request.order > COSTLY {
            RETRIES / 4
        } else {
            RETRIES
        };
        for tried in 0..RETRIES {
            if tried < compactions
                && let Some(frame) = self.compact(from, request)
            {
                return Some(frame);
            }
            let freed = self.reclaim(from, request, need);
            let found = self
                .try_to_min(from, request)
                .or_else(|| self.try_drained(from, request, patience));
            if found.is_some() || freed == 0 {
                return found;
            }
        }
        None
    }

    #[inline(never)]
    fn compact(&self, from: usize, request: &Request) -> Option<Frame> {
        let off = self.slow_path.compaction == Compaction::Off || !self.hooks.moves();
        if request.order == Order::ZERO || off {
            return None;
        }
        self.zonelist(from, request).find_map(|zone| {
            let result = zone.compact(request, &self.hooks);
            let free = || zone.alloc_above(request, Mark::Min);
            let succeeded = result.why == Why::Succeeded;
            result.caught.or_else(|| succeeded.then(free).flatten())
        })
    }

    #[inline(never)]
    fn reclaim(&self, from: usize, request: &Request, need: &Need) -> usize {
        if request.order > Order::ZERO && self.slow_path.lumpy == Lumpy::On {
            let freed = self
                .zonelist(from, request)
                .filter_map(|zone| lump_round_oldest(&self.hooks, zone.span(), request.order))
                .map(|lump| lump.freed)
                .sum();
            if freed > 0 {
                return freed;
            }
        }
        self.hooks.reclaim(need)
    }

    /// Returns the reason why no zone could serve the request, judged in the zone with the most
    /// free memory.
    #[inline(never)]
    fn why_not(&self, from: usize, request: &Request) -> AllocError {
        let zones = || self.zonelist(from, request);
        let Some(max) = zones().map(AnyZone::max_order).max() else {
            return match request.limit {
                Some(limit) => AllocError::LimitUnsatisfiable { limit },
                None => AllocError::Exhausted { free: 0, cached: 0 },
            };
        };
        let order = request.order;
        if order > max {
            return AllocError::OrderTooLarge { order, max };
        }
        let cut = |limit: Frame| zones().any(|zone| zone.span().end > limit);
        if let Some(limit) = request.limit
            && cut(limit)
        {
            return AllocError::LimitUnsatisfiable { limit };
        }
        let fullest = zones().max_by_key(|zone| zone.free_frames());
        match fullest.map(|zone| zone.why_not(request)) {
            Some(why @ AllocError::Fragmented { .. }) => why,
            _ => AllocError::Exhausted {
                free: zones().map(AnyZone::free_frames).sum(),
                cached: zones().map(AnyZone::cached_frames).sum(),
            },
        }
    }
}
