//! The way of a request in Linux 2.6.20, in place of the library's slow path.
//!
//! 1. Zones above the low mark, then background reclaim is woken, then zones above the min mark. A
//!    zone is above a mark by its design's test ([`serves_above`]). Then what is set aside.
//! 2. A request that may sleep calls direct reclaim, and tries again above the min mark. Above
//!    order 3 that is all: huge pages were not requested with `__GFP_REPEAT` in 2005 and 2007. Up
//!    to order 3 it goes on, where Linux retries for ever or kills a process; here, [`RETRIES`]
//!    times.
//! 3. Per-CPU caches are drained after direct reclaim only where the patches of the design did so
//!    ([`Of2007::drains_above`]). The kernels without them left frames there.

use brickyard::node::Nodes;
use brickyard::patience::Patience;
use brickyard::pressure::{Need, RETRIES};
use brickyard::watermark::Mark;
use brickyard::{AllocError, AnyZone, Context, Frame, Order, Request};
use brickyard_designs::classics::LabZone;

use super::of_2007::serves_above;
use super::{Kernel, Of2007};

/// Up to this order, a request is retried.
const COSTLY: Order = Order::new(3);

/// The time that a request sleeps between two tries.
const PAUSE: u64 = 20_000_000;

impl<'z, Z: LabZone> Kernel<'z, Z> {
    /// Allocates as described above.
    pub(super) fn alloc_as_2007<'k>(
        &'k self,
        rules: &Of2007,
        nodes: &Nodes<'z, Z, &'k Self>,
        from: usize,
        request: &Request,
    ) -> Result<Frame, AllocError> {
        let zones = || nodes.zonelist(from, request);
        let above = |mark| {
            zones()
                .filter(|zone| is_above(rules, *zone, request, mark))
                .find_map(|zone| zone.alloc_above(request, mark))
        };
        if let Some(frame) = above(Mark::Low) {
            return Ok(frame);
        }
        let need = Need {
            frames: request.order.frames(),
            order: request.order,
            highest: request.highest,
        };
        brickyard::pressure::Reclaim::wake(self, &need);
        let set_aside = || {
            let patience = Patience::new();
            zones().find_map(|zone| zone.alloc_set_aside(request, Mark::Min, &patience))
        };
        if let Some(frame) = above(Mark::Min).or_else(set_aside) {
            return Ok(frame);
        }
        let tries = match (request.context, request.order > COSTLY) {
            (Context::MaySleep, true) => 1,
            (Context::MaySleep, false) => RETRIES as u64,
            _ => 0,
        };
        let mut now = self.now.get();
        for tried in 1..=tries {
            (_, now) = self.try_to_free(rules, &need, now);
            if rules.drains_above.is_some_and(|most| request.order > most) {
                zones().for_each(|zone| {
                    zone.drain();
                });
            }
            if let Some(frame) = above(Mark::Min).or_else(set_aside) {
                return Ok(frame);
            }
            if tried < tries {
                self.sleep(now, now + PAUSE);
                now += PAUSE;
            }
        }
        let fullest = zones().max_by_key(|zone| zone.free_frames());
        Err(
            fullest.map_or(AllocError::Exhausted { free: 0, cached: 0 }, |zone| {
                zone.why_not(request)
            }),
        )
    }
}

/// The design's test of a zone. That of single frames is the zone's own.
pub(super) fn is_above<Z: AnyZone>(
    rules: &Of2007,
    zone: &Z,
    request: &Request,
    mark: Mark,
) -> bool {
    if request.order == Order::ZERO {
        return true;
    }
    let marks = zone.watermarks();
    let reserve = marks.reserve_against(request.highest);
    let min = marks.floor(request, mark).saturating_sub(reserve);
    serves_above(rules, zone, request.order, min, reserve)
}
