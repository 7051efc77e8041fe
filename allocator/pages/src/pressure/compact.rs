//! Compaction (Gorman 2010, Linux 2.6.35): moves movable pages from the low end of a zone to free
//! places at its high end, until a block of the wanted order is free.
//!
//! A place that contains something immovable is left alone as a whole: moving the rest would gain
//! nothing. (Linux moves what it can, in its default mode.)
//!
//! There are two scanners. One walks up and gathers blocks that can be moved, 32 at a time. The
//! other walks down and takes free places, only from movable page blocks. They end where they meet.
//! A zone is compacted only if that can help: there must be enough free memory for the copies, and
//! fragmentation rather than lack of memory. After a failure the zone is left alone for a while,
//! twice as long each time.
//!
//! No lock is held meanwhile. What is seen of a block may have changed a moment later, and the hook
//! that moves it finds out.

use super::hooks::{Migrate, Migration};
use super::progress::{Compacted, CompactionState, Why};
use crate::block::{State, Use};
use crate::watermark::above_mark;
use crate::zones::AnyZone;
use crate::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

/// The number of blocks that the migration scanner gathers at a time (Linux's
/// `COMPACT_CLUSTER_MAX`).
const CLUSTER: usize = 32;

/// Up to this fragmentation index, in thousandths, the cause is lack of memory (Linux's
/// `extfrag_threshold`).
const LACK_UP_TO: i32 = 500;

/// Up to this order a request keeps trying, and compaction is selective only above it (Linux's
/// costly order).
pub(crate) const COSTLY: Order = Order::new(3);

/// Compacts `zone` for `request`, unless that cannot help or has failed recently. Also ends as soon
/// as `is_caught` returns true: the zone has then put a block aside for the request.
///
/// Continues where the last successful compaction stopped. If that gives nothing, it starts again
/// from the ends of the zone. Costs at most two passes over the zone, each with one call of `hooks`
/// for each movable block.
pub fn compact_for<Z: AnyZone>(
    zone: &Z,
    request: &Request,
    hooks: &impl Migrate,
    is_caught: impl Fn() -> bool,
) -> Compacted {
    let CompactionState { scanners, deferral } = zone.compaction();
    let order = request.order;
    if deferral.skips(order) {
        return Compacted::new(Why::Deferred);
    }
    if let Some(why) = cannot_help(zone, request) {
        return Compacted::new(why);
    }
    let is_served = || is_caught() || zone.can_serve(request);
    let span = zone.span();
    let left = scanners.left(span);
    let mut compaction = Compaction::new(zone, order, left);
    let mut result = compaction.run(hooks, &is_caught, &is_served);
    if result.why == Why::Complete && left != span {
        // Something may have changed behind the scanners.
        let before = result;
        compaction = Compaction::new(zone, order, span);
        result = compaction.run(hooks, &is_caught, &is_served);
        result.moved += before.moved;
        result.stuck += before.stuck;
    }
    match result.why {
        Why::Succeeded => scanners.remember(compaction.left()),
        _ => scanners.forget(),
    }
    match result.why {
        Why::Succeeded => deferral.succeeded(order),
        _ => deferral.failed(order),
    }
    result
}

/// Compacts all of `zone`, whatever may be requested later (`/proc/sys/vm/compact_memory`).
pub fn compact_all<Z: AnyZone>(zone: &Z, hooks: &impl Migrate) -> Compacted {
    zone.drain();
    let wanted = zone.shape().page_block_order;
    Compaction::new(zone, wanted, zone.span()).run(hooks, &|| false, &|| false)
}

/// Returns the reason why compaction cannot help, if there is one: too little free memory to copy
/// to, or no fragmentation.
fn cannot_help<Z: AnyZone>(zone: &Z, request: &Request) -> Option<Why> {
    let order = request.order;
    let watermarks = zone.watermarks();
    let marks = watermarks.marks();
    let mark = if order > COSTLY { marks.low } else { marks.min };
    let copies = 2 << order.get();
    let reserve = watermarks.reserve_against(request.highest);
    let floor = mark.saturating_add(copies).saturating_add(reserve);
    let single = request.single();
    if !above_mark(zone.free_frames_for(&single), &single, floor) {
        return Some(Why::TooLittleFree);
    }
    if order <= COSTLY {
        return None;
    }
    // `None` means that the index would cost a look at all blocks. Enough is free, so the memory
    // must be fragmented.
    let index = zone.quick_index(order)?;
    (0..=LACK_UP_TO)
        .contains(&index)
        .then_some(Why::NotFragmented)
}

/// Blocks to be moved. Their orders lie apart from their frames, where there would be padding.
struct Cluster {
    frames: [Frame; CLUSTER],
    orders: [Order; CLUSTER],
}

/// One pass of the two scanners.
struct Compaction<'z, Z> {
    zone: &'z Z,
    // The size of the places that are to become free.
    wanted: Order,
    // Up to here, everything is known to be movable.
    judged_to: Frame,
    // Everything below has been gathered.
    migrate_from: Frame,
    // By order: everything from here on has been searched for free places. A place that is too
    // small for one block may serve another.
    free_below: [Frame; Order::COUNT],
    moved: usize,
    stuck: usize,
}

impl<'z, Z: AnyZone> Compaction<'z, Z> {
    /// Returns a pass between the ends of `left`.
    fn new(zone: &'z Z, wanted: Order, left: FrameRange) -> Self {
        let mut free_below = [zone.span().end; Order::COUNT];
        free_below[0] = left.end;
        Self {
            zone,
            wanted,
            judged_to: left.start,
            migrate_from: left.start,
            free_below,
            moved: 0,
            stuck: 0,
        }
    }

    /// Returns what is left between the scanners. The place that was being cleared counts as not
    /// yet searched.
    fn left(&self) -> FrameRange {
        FrameRange {
            start: self.migrate_from.align_down(self.wanted),
            end: self.free_below[0],
        }
    }

    fn run(
        &mut self,
        hooks: &impl Migrate,
        is_caught: &impl Fn() -> bool,
        is_served: &impl Fn() -> bool,
    ) -> Compacted {
        let served = self.pass(hooks, is_caught, is_served);
        Compacted {
            why: match served || is_served() {
                true => Why::Succeeded,
                false => Why::Complete,
            },
            moved: self.moved,
            stuck: self.stuck,
            caught: None,
        }
    }

    /// Moves what it can until the request is served or the scanners have met. Returns true if the
    /// request is served.
    fn pass(
        &mut self,
        hooks: &impl Migrate,
        is_caught: &impl Fn() -> bool,
        is_served: &impl Fn() -> bool,
    ) -> bool {
        let mut cluster = Cluster {
            frames: [Frame::new(0); CLUSTER],
            orders: [Order::ZERO; CLUSTER],
        };
        while !self.have_met() {
            let gathered = self.gather(hooks, &mut cluster);
            let blocks = cluster.frames.iter().zip(&cluster.orders);
            for (&from, &order) in blocks.take(gathered) {
                match self.free_place(from, order) {
                    Some(to) => self.move_one(hooks, from, order, to),
                    // There is no place above it at all, or none of its size.
                    None if self.have_met() || order == Order::ZERO => return false,
                    None => self.stuck += order.frames(),
                }
                if is_caught() {
                    return true;
                }
            }
            if is_served() {
                return true;
            }
        }
        false
    }

    /// Returns true if nothing is left between the scanners.
    fn have_met(&self) -> bool {
        self.migrate_from >= self.free_below[0]
    }

    /// The migration scanner: gathers the next blocks that might be moved, at most a cluster of
    /// them. It passes over every place of the wanted size that contains something immovable.
    fn gather(&mut self, hooks: &impl Migrate, cluster: &mut Cluster) -> usize {
        let mut gathered = 0;
        while gathered < CLUSTER && !self.have_met() {
            let at = self.migrate_from;
            if at >= self.judged_to {
                let place = FrameRange::of_block(at.align_down(self.wanted), self.wanted);
                self.judged_to = place.end;
                if !self.is_clearable(hooks, at, place) {
                    self.migrate_from = place.end;
                    continue;
                }
            }
            let state = match self.zone.block_of(at) {
                Some((first, state)) if first == at => state,
                _ => State::INNER,
            };
            let small = state.order < self.wanted || state.order == Order::ZERO;
            // The hook is not asked about blocks that have come since the place was judged.
            let movable = self.zone.knows_to_move(state).unwrap_or(true);
            if state.usage == Use::Allocated && small && movable {
                cluster.frames[gathered] = at;
                cluster.orders[gathered] = state.order;
                gathered += 1;
            }
            self.migrate_from = match state.usage {
                Use::Inner => at.plus(1),
                _ => at.plus(state.order.frames()),
            };
        }
        gathered
    }

    /// Returns true if everything from `from` to the end of `place` can be moved, as far as can be
    /// known beforehand.
    fn is_clearable(&self, hooks: &impl Migrate, from: Frame, place: FrameRange) -> bool {
        if !self.zone.span().covers(place) {
            return false;
        }
        let mut at = from;
        while at < place.end {
            let Some((first, state)) = self.zone.block_of(at) else {
                // A block cannot lie across a hole. If more than single pages are wanted, nothing
                // can be gained here.
                return self.wanted == Order::ZERO;
            };
            let moves = match state.usage {
                Use::Allocated => self
                    .zone
                    .knows_to_move(state)
                    .unwrap_or_else(|| hooks.can_move(first, state.order)),
                Use::Reserved => false,
                Use::Free | Use::Cached | Use::Inner => true,
            };
            if !moves {
                return false;
            }
            at = state.behind(first, at);
        }
        true
    }

    /// The free scanner: takes the highest free place of `order` above `from` in a movable page
    /// block.
    fn free_place(&mut self, from: Frame, order: Order) -> Option<Frame> {
        let behind = from.plus(order.frames());
        let request = Request::new(order, Mobility::Movable);
        let below = &mut self.free_below[order.index()];
        loop {
            let end = below.align_down(order);
            let at = Frame::new(end.number().checked_sub(order.frames())?);
            if at < behind {
                return None;
            }
            let block = self.zone.block_of(at);
            let free = block.is_some_and(|(_, state)| state.usage == Use::Free);
            let movable = || {
                let kind = self.zone.block_type(at);
                matches!(kind, None | Some(MigrateType::Movable))
            };
            let suits = free && movable();
            *below = at;
            if suits && self.zone.take_at(at, &request).is_ok() {
                return Some(at);
            }
            // Skips an unsuitable block in one step.
            if let Some((first, state)) = block
                && !(suits && state.order >= order)
            {
                *below = at.min(first);
            }
        }
    }

    fn move_one(&mut self, hooks: &impl Migrate, from: Frame, order: Order, to: Frame) {
        let answer = hooks.migrate(from, order, to);
        settle(self.zone, answer, from, order, to);
        match answer {
            Migration::Moved => self.moved += order.frames(),
            Migration::NotNeeded => {}
            Migration::Later | Migration::Never | Migration::Unknown => {
                self.stuck += order.frames();
            }
        }
        if answer != Migration::Moved {
            // The place is free again, and is the next one to look at.
            self.free_below[order.index()] = to.plus(order.frames());
        }
    }
}

/// Acts on a hook's answer: frees what is now the allocator's, `from` or `to` or both.
pub(super) fn settle<Z: AnyZone>(
    zone: &Z,
    answer: Migration,
    from: Frame,
    order: Order,
    to: Frame,
) {
    let (old, new) = match answer {
        Migration::Moved => (true, false),
        Migration::NotNeeded => (true, true),
        Migration::Later | Migration::Never | Migration::Unknown => (false, true),
    };
    for (given_back, frame) in [(old, from), (new, to)] {
        if given_back {
            let given = zone.free_uncached(frame, order);
            debug_assert!(given.is_ok(), "a hook gave up a block that was not its own");
        }
    }
}
