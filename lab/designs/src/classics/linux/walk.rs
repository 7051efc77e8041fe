//! A request's way: the zones in order, first so that page blocks stay apart; then the slow path.
//!
//! 1. The low mark. If the best zone is a normal one, no zone breaks a page block for it; only if
//!    none has anything, they are asked once more without that.
//! 2. The slow path. Background reclaim is woken, and the min mark counts, or less for those with
//!    rights to more.
//! 3. A request for several frames that may wait compacts at once, cheaply.
//! 4. Then in turn, while it helps: reclaim; what is set aside and in page sets, if reclaim freed
//!    frames and others took them; compaction, more thorough each time that it failed.
//!
//! Bounds: 16 rounds of reclaim without progress, 16 compactions (4 above order 3) at each of three
//! priorities, and [`ROUNDS_MOST`] rounds in all; Linux has no last bound while reclaim makes
//! progress.

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Need, Reclaim, Why};
use brickyard::sync::SlotAccess;
use brickyard::{AllocError, AnyZone, Frame, Mobility, Order, Platform, Request, ZoneKind};

use super::compact::aim::Priority;
use super::marks::Level;
use super::rights::Rights;
use super::zone::{Version, Zone};
use crate::classics::gfp::{GfpFlags, Retry};
use crate::classics::lock::LabLock;

/// The highest order that is tried hard.
const COSTLY: Order = Order::new(3);

/// Frames that a round of reclaim is asked for.
const CLUSTER: usize = 32;

/// Rounds without progress after which reclaim is given up.
const IDLE_MOST: usize = 16;

/// The most rounds of one request.
const ROUNDS_MOST: usize = 128;

/// The result of compacting all zones of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compaction {
    /// This block was caught or found.
    Got(Frame),
    /// A block became free, and another request took it.
    InVain,
    /// It failed in all zones where it was tried.
    Failed,
    /// It was tried nowhere, since it failed recently.
    Deferred,
    /// It was tried nowhere, since it could not help.
    Skipped,
}

/// Takes a block as Linux does.
///
/// # Errors
/// The reason why the request could not be served.
pub(super) fn alloc<V, A, L, P, H>(
    nodes: &Nodes<'_, Zone<'_, V, A, L, P>, H>,
    from: usize,
    request: &Request,
    flags: GfpFlags,
) -> Result<Frame, AllocError>
where
    V: Version,
    A: SlotAccess,
    L: LabLock,
    P: Platform,
    H: Reclaim + Migrate,
{
    let walk = Walk {
        nodes,
        from,
        request,
        flags,
        defrag_mode: nodes.zones().any(Zone::defrag_mode),
    };
    walk.quickly()
        .or_else(|| walk.slowly())
        .ok_or_else(|| walk.why_not())
}

/// One request.
struct Walk<'a, 'z, 'm, V, A, L: LabLock, P, H> {
    nodes: &'a Nodes<'z, Zone<'m, V, A, L, P>, H>,
    from: usize,
    request: &'a Request,
    flags: GfpFlags,
    defrag_mode: bool,
}

impl<'z, 'm, V, A, L, P, H> Walk<'_, 'z, 'm, V, A, L, P, H>
where
    V: Version,
    A: SlotAccess,
    L: LabLock,
    P: Platform,
    H: Reclaim + Migrate,
{
    fn zones(
        &self,
    ) -> impl Iterator<Item = &'z Zone<'m, V, A, L, P>> + use<'_, 'z, 'm, V, A, L, P, H> {
        self.nodes.zonelist(self.from, self.request)
    }

    /// The first try.
    fn quickly(&self) -> Option<Frame> {
        let rights = Rights::NONE
            .and_if(self.flags.wakes, Rights::WAKES)
            .and_if(self.keeps_apart(), Rights::KEEPS_APART);
        self.try_zones(Level::Low, rights)
    }

    /// Returns true if page blocks are to stay apart at first: if the best zone is a normal one,
    /// and there are other zones to turn to.
    fn keeps_apart(&self) -> bool {
        let Some(best) = self.zones().next() else {
            return false;
        };
        let nodes = self.nodes.nodes();
        let has_lower = || {
            let own = nodes.get(self.from).map_or(&[][..], |node| node.zones());
            let is_lower = |zone: &Zone<'_, V, A, L, P>| zone.kind() == ZoneKind::Dma32;
            own.iter()
                .any(|zone| is_lower(zone) && zone.managed_frames() > 0)
        };
        self.defrag_mode || best.kind() == ZoneKind::Normal && (nodes.len() == 1 || has_lower())
    }

    /// Tries the zones in order.
    fn try_zones(&self, level: Level, rights: Rights) -> Option<Frame> {
        let apart = rights.any(Rights::KEEPS_APART) && !self.defrag_mode;
        let own = self
            .nodes
            .nodes()
            .get(self.from)
            .map_or(&[][..], |node| node.zones());
        let is_own = |zone: &Zone<'m, V, A, L, P>| own.iter().any(|own| core::ptr::eq(own, zone));
        // Another node is worse than a page block broken on this one.
        let found = self
            .zones()
            .take_while(|zone| !apart || is_own(zone))
            .find_map(|zone| self.try_zone(zone, level, rights));
        found.or_else(|| {
            let rest = rights.without(Rights::KEEPS_APART);
            apart.then(|| self.try_zones(level, rest)).flatten()
        })
    }

    fn try_zone(&self, zone: &Zone<'m, V, A, L, P>, level: Level, rights: Rights) -> Option<Frame> {
        if !zone.admits(self.request, level, rights) {
            return None;
        }
        let frame = zone.take(self.request, rights)?;
        if rights.any(Rights::HIGH_ATOMIC) {
            zone.set_aside(frame, self.request.order);
        }
        if self.flags.wakes && zone.take_wake() {
            let single = Order::ZERO;
            self.nodes.hooks().wake(&self.need_of(single));
        }
        Some(frame)
    }

    fn need_of(&self, order: Order) -> Need {
        Need {
            frames: order.frames().max(CLUSTER),
            order,
            highest: self.request.highest,
        }
    }

    fn is_costly(&self) -> bool {
        self.request.order > COSTLY
    }

    fn slowly(&self) -> Option<Frame> {
        let (request, flags) = (self.request, self.flags);
        if !self.zones().any(|zone| zone.max_order() >= request.order) {
            return None;
        }
        let several = request.order > Order::ZERO;
        let waits_not = !flags.reclaims;
        let rights = Rights::NONE
            .and_if(flags.wakes, Rights::WAKES)
            .and_if(flags.high, Rights::MIN_RESERVE)
            .and_if(waits_not, Rights::NON_BLOCK)
            .and_if(waits_not && several && flags.high, Rights::HIGH_ATOMIC)
            .and_if(self.defrag_mode, Rights::KEEPS_APART);
        self.wake();
        if let Some(frame) = self.try_zones(Level::Min, rights) {
            return Some(frame);
        }
        if waits_not {
            return self.without_waiting(rights);
        }
        let mut priority = Priority::SyncLight;
        if several && (self.is_costly() || request.mobility != Mobility::Movable) {
            match self.compact(Priority::Async, rights) {
                Compaction::Got(frame) => return Some(frame),
                Compaction::Skipped | Compaction::Deferred
                    if self.is_costly() && flags.retry == Retry::Never =>
                {
                    return None;
                }
                _ if self.is_costly() && flags.retry == Retry::Never => {
                    priority = Priority::Async;
                }
                _ => {}
            }
        }
        self.under_pressure(priority, rights)
    }

    /// Ends a request that may not wait: the zones once more, as the retry of those that may.
    fn without_waiting(&self, rights: Rights) -> Option<Frame> {
        self.wake();
        self.try_zones(Level::Min, rights)
    }

    fn wake(&self) {
        if self.flags.wakes {
            self.nodes.hooks().wake(&self.need_of(self.request.order));
        }
    }

    /// Reclaims and compacts while that helps.
    fn under_pressure(&self, mut priority: Priority, rights: Rights) -> Option<Frame> {
        let costly = self.is_costly();
        let mut rights = rights;
        let (mut idle, mut compactions) = (0, 0);
        for _ in 0..ROUNDS_MOST {
            self.wake();
            if let Some(frame) = self.try_zones(Level::Min, rights) {
                return Some(frame);
            }
            let freed = self.reclaim(rights);
            let freed = match freed {
                Ok(frame) => return Some(frame),
                Err(freed) => freed,
            };
            let compacted = self.compact(priority, rights);
            if let Compaction::Got(frame) = compacted {
                return Some(frame);
            }
            let retry = self.flags.retry;
            if retry == Retry::Never || costly && retry == Retry::Usual {
                return None;
            }
            idle = match freed > 0 && !costly {
                true => 0,
                false => idle + 1,
            };
            // Each is asked for only if those before do not help. Reclaim helps as long as it frees
            // something; then what is set aside, in one zone after the other.
            let mobility = self.request.mobility;
            if freed > 0 && idle <= IDLE_MOST
                || self.zones().any(|zone| zone.unreserve(mobility, true))
                || self.compact_again(compacted, &mut priority, &mut compactions)
            {
                continue;
            }
            if !rights.any(Rights::KEEPS_APART) {
                break;
            }
            rights = rights.without(Rights::KEEPS_APART);
        }
        // As before a task is killed for its memory: perhaps another has just freed much.
        let found = self.try_zones(Level::High, Rights::NONE);
        found.or_else(|| {
            let always = self.flags.retry == Retry::Always;
            let rights = rights.and(Rights::MIN_RESERVE);
            always.then(|| self.try_zones(Level::Min, rights)).flatten()
        })
    }

    /// Returns true if compaction should be tried again, perhaps more thoroughly.
    fn compact_again(
        &self,
        compacted: Compaction,
        priority: &mut Priority,
        compactions: &mut usize,
    ) -> bool {
        let tries_most = if self.is_costly() { 4 } else { 16 };
        match compacted {
            _ if self.request.order == Order::ZERO => false,
            Compaction::Skipped => false,
            // Another request was faster.
            Compaction::InVain if *compactions < tries_most => {
                *compactions += 1;
                true
            }
            _ => {
                let raised = self.raised(*priority);
                *priority = raised.unwrap_or(*priority);
                *compactions = 0;
                raised.is_some()
            }
        }
    }

    /// Reclaims. Returns a block, or the number of frames that were freed.
    fn reclaim(&self, rights: Rights) -> Result<Frame, usize> {
        let freed = self
            .nodes
            .hooks()
            .reclaim(&self.need_of(self.request.order));
        if freed == 0 {
            // Linux drains page sets only after some progress. Here reclaim by hooks may have none
            // at all, and what lies in page sets is all there is.
            self.nodes.drain();
            return self.try_zones(Level::Min, rights).ok_or(0);
        }
        if let Some(frame) = self.try_zones(Level::Min, rights) {
            return Ok(frame);
        }
        // Others have taken what was freed, or it lies in their page sets.
        let mobility = self.request.mobility;
        let _ = self.zones().any(|zone| zone.unreserve(mobility, false));
        self.nodes.drain();
        self.try_zones(Level::Min, rights).ok_or(freed)
    }

    /// Returns the next priority of compaction, if the request may use it.
    fn raised(&self, priority: Priority) -> Option<Priority> {
        match priority {
            Priority::Async => Some(Priority::SyncLight),
            Priority::SyncLight if !self.is_costly() => Some(Priority::SyncFull),
            Priority::SyncLight | Priority::SyncFull => None,
        }
    }

    /// Compacts the zones in order, up to the first where that succeeds, and tries all of them.
    fn compact(&self, priority: Priority, rights: Rights) -> Compaction {
        if self.request.order == Order::ZERO || !self.nodes.hooks().moves() {
            return Compaction::Skipped;
        }
        let mut all = Compaction::Skipped;
        let mut caught = None;
        for zone in self.zones() {
            let result = zone.compact_as(self.request, priority, rights, self.nodes.hooks());
            caught = result.caught;
            all = match (result.why, all) {
                (Why::Succeeded, _) => Compaction::InVain,
                (Why::Complete, _) => Compaction::Failed,
                (Why::Deferred, Compaction::Skipped) => Compaction::Deferred,
                _ => all,
            };
            if all == Compaction::InVain {
                break;
            }
        }
        if all == Compaction::Skipped {
            return all;
        }
        let found = caught.or_else(|| self.try_zones(Level::Min, rights));
        if let Some(frame) = found {
            if let Some(zone) = self.zones().find(|zone| zone.has(frame)) {
                zone.was_compacted_for(self.request.order);
            }
            return Compaction::Got(frame);
        }
        all
    }

    /// Returns the reason why no zone could serve the request, judged in the zone with the most
    /// free memory.
    fn why_not(&self) -> AllocError {
        let fullest = self.zones().max_by_key(|zone| zone.free_frames());
        fullest.map_or(AllocError::Exhausted { free: 0, cached: 0 }, |zone| {
            zone.why_not(self.request)
        })
    }
}
