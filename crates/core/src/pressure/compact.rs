//! Compaction (Gorman 2010, Linux 2.6.35): movable pages from the low end of a zone go to free places at its high end, until a block of
//! the wanted order is free.
//!
//! Two scanners: one walks up and gathers what can be moved, 32 blocks at a time; one walks down and takes free places, from
//! movable page blocks only. They end where they meet. A zone is compacted only if that can help (enough free memory for the copies, and
//! fragmentation rather than lack of memory), and after a failure it is left alone for a while, twice as long each time.
//!
//! While it runs, the zone's [capture slot](crate::bulk) is armed: the first block that becomes free and is large enough goes straight to the
//! request, whoever freed its last page.

use super::{Migrate, Migration};
use crate::design::Design;
use crate::store::Store;
use crate::store::frames::{State, Use};
use crate::zone::{FRAGMENTED_FROM, Zone};
use crate::{Frame, MigrateType, Mobility, Order, Request};

/// Blocks that the migration scanner gathers at a time (Linux's `COMPACT_CLUSTER_MAX`).
const CLUSTER: usize = 32;

/// Blocks that it looks at in one hold of the zone lock, at most.
const LOOKS: usize = 1024;

/// Orders up to this one are asked for without end; compaction is choosy only above (Linux's costly order).
const COSTLY: Order = Order::new(3);

/// How compaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A block for the request was caught or is free now.
    Succeeded,
    /// The scanners met.
    Complete,
    /// Not tried: too little free memory for the copies.
    TooLittleFree,
    /// Not tried: memory is lacking, not fragmented; reclaim helps, moving does not.
    NotFragmented,
    /// Not tried: it failed lately.
    Deferred,
}

/// What compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// How it ended.
    pub why: Why,
    /// Frames moved.
    pub moved: usize,
    /// Frames that could not be moved.
    pub stuck: usize,
    /// The block for the request, taken already.
    pub caught: Option<Frame>,
}

impl Compacted {
    const fn not_tried(why: Why) -> Self {
        Self {
            why,
            moved: 0,
            stuck: 0,
            caught: None,
        }
    }
}

/// Compacts `zone` for `request`, unless that cannot help or it failed lately.
///
/// Costs at most one pass over the zone, and one call of `hooks` for each movable block in it.
pub fn compact_for<D: Design>(
    zone: &Zone<D>,
    request: &Request,
    hooks: &impl Migrate,
) -> Compacted {
    let order = request.order;
    if let Some(why) = cannot_help(zone, order) {
        return Compacted::not_tried(why);
    }
    if zone.deferral.skips(order) {
        return Compacted::not_tried(Why::Deferred);
    }
    let result = Compaction::new(zone, Some(request)).run(hooks);
    match result.why {
        Why::Succeeded => zone.deferral.succeeded(order),
        _ => zone.deferral.failed(order),
    }
    result
}

/// Compacts all of `zone`, whatever may be asked for later (`/proc/sys/vm/compact_memory`).
pub fn compact_all<D: Design>(zone: &Zone<D>, hooks: &impl Migrate) -> Compacted {
    zone.drain();
    Compaction::new(zone, None).run(hooks)
}

/// Is there too little free memory to copy to, or is fragmentation not the trouble?
fn cannot_help<D: Design>(zone: &Zone<D>, order: Order) -> Option<Why> {
    let marks = zone.watermarks();
    let mark = if order > COSTLY { marks.low } else { marks.min };
    if zone.free_frames() <= mark + (2 << order.get()) {
        return Some(Why::TooLittleFree);
    }
    let index = zone.free_counts().fragmentation_index(order);
    let lack = (0..=FRAGMENTED_FROM).contains(&index);
    (order > COSTLY && lack).then_some(Why::NotFragmented)
}

/// One pass of the two scanners.
struct Compaction<'z, D: Design> {
    zone: &'z Zone<D>,
    request: Option<&'z Request>,
    // Everything below has been gathered from.
    migrate_from: Frame,
    // Everything from here on has been looked at for free places.
    free_below: Frame,
    // A place that was taken and not used.
    spare: Option<(Frame, Order)>,
    armed: bool,
    moved: usize,
    stuck: usize,
}

impl<'z, D: Design> Compaction<'z, D> {
    fn new(zone: &'z Zone<D>, request: Option<&'z Request>) -> Self {
        let span = zone.span();
        Self {
            zone,
            request,
            migrate_from: span.start,
            free_below: span.end,
            spare: None,
            armed: false,
            moved: 0,
            stuck: 0,
        }
    }

    fn run(mut self, hooks: &impl Migrate) -> Compacted {
        if let Some(request) = self.request {
            self.armed = self.zone.lock().capture().arm(request);
        }
        let why = self.pass(hooks);
        self.release_spare();
        let caught = if self.armed {
            self.zone.lock().capture().disarm()
        } else {
            None
        };
        Compacted {
            why: if caught.is_some() {
                Why::Succeeded
            } else {
                why
            },
            moved: self.moved,
            stuck: self.stuck,
            caught,
        }
    }

    fn pass(&mut self, hooks: &impl Migrate) -> Why {
        let mut cluster = [(Frame::new(0), Order::ZERO); CLUSTER];
        while self.migrate_from < self.free_below {
            let gathered = self.gather(&mut cluster);
            for &(from, order) in &cluster[..gathered] {
                let Some(to) = self.free_place(from, order) else {
                    // Nowhere above: the scanners have met.
                    self.migrate_from = self.free_below;
                    break;
                };
                self.move_one(hooks, from, order, to);
                if self.has_caught() {
                    return Why::Succeeded;
                }
            }
            if self.is_served() {
                return Why::Succeeded;
            }
        }
        Why::Complete
    }

    /// Is there a block for the request now?
    fn is_served(&self) -> bool {
        self.request.is_some_and(|request| {
            let guard = self.zone.lock();
            guard.capture().has_caught() && self.armed || guard.can_serve(request)
        })
    }

    fn has_caught(&self) -> bool {
        self.armed && self.zone.lock().capture().has_caught()
    }

    /// The migration scanner: the next blocks that might be moved, at most a cluster of them, in one lock hold.
    fn gather(&mut self, cluster: &mut [(Frame, Order); CLUSTER]) -> usize {
        let guard = self.zone.lock();
        let below = self.request.map_or(Order::HUGE, |request| request.order);
        let mut gathered = 0;
        for _ in 0..LOOKS {
            if gathered == CLUSTER || self.migrate_from >= self.free_below {
                break;
            }
            let at = self.migrate_from;
            let state = match guard.block_of(at) {
                Some((first, state)) if first == at => state,
                _ => State::INNER,
            };
            if state.usage == Use::Allocated
                && state.kind == MigrateType::Movable
                && (state.order < below || state.order == Order::ZERO)
            {
                cluster[gathered] = (at, state.order);
                gathered += 1;
            }
            self.migrate_from = match state.usage {
                Use::Inner => at.plus(1),
                _ => at.plus(state.order.frames()),
            };
        }
        gathered
    }

    /// The free scanner: takes the highest free place of `order` above `from` in a movable page block.
    fn free_place(&mut self, from: Frame, order: Order) -> Option<Frame> {
        if let Some((place, size)) = self.spare.take() {
            if size == order {
                return Some(place);
            }
            self.spare = Some((place, size));
            self.release_spare();
        }
        let guard = self.zone.lock();
        let request = Request::new(order, Mobility::Movable);
        let behind = from.plus(order.frames());
        let mut at = self.free_below.align_down(order);
        while at > behind {
            at = Frame::new(at.number() - order.frames());
            if at < behind {
                break;
            }
            let block = guard.block_of(at);
            let free = matches!(block, Some((_, state))
                if state.usage == Use::Free && state.kind != MigrateType::Isolate && state.order >= order);
            let movable = matches!(guard.block_type(at), None | Some(MigrateType::Movable));
            if free && movable && guard.take_at(at, &request).is_ok() {
                self.free_below = at;
                return Some(at);
            }
            // Over a block in use in one step.
            if let Some((first, state)) = block
                && state.order > order
                && !(free && movable)
            {
                at = at.min(first);
            }
        }
        // What lies above may still have places of a lower order; but none for this block, so the pass ends.
        None
    }

    fn move_one(&mut self, hooks: &impl Migrate, from: Frame, order: Order, to: Frame) {
        match hooks.migrate(from, order, to) {
            Migration::Moved => {
                self.take_back(from, order);
                self.moved += order.frames();
            }
            Migration::NotNeeded => {
                self.take_back(from, order);
                self.spare = Some((to, order));
            }
            Migration::Later | Migration::Never | Migration::Unknown => {
                self.stuck += order.frames();
                self.spare = Some((to, order));
            }
        }
    }

    fn take_back(&self, frame: Frame, order: Order) {
        let given = self.zone.lock().give(frame, order);
        debug_assert!(given.is_ok(), "a hook gave up a block that was not its own");
    }

    fn release_spare(&mut self) {
        if let Some((frame, order)) = self.spare.take() {
            self.take_back(frame, order);
        }
    }
}
