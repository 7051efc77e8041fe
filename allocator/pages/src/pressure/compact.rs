//! Compaction (Gorman 2010, Linux 2.6.35): movable pages from the low end of a zone go to free places at its high end, until a block of
//! the wanted order is free.
//!
//! Places that something lies in which cannot be moved are left alone as a whole: moving the rest of them would gain nothing. (Linux moves what it can, in its
//! default mode.)
//!
//! Two scanners: one walks up and gathers what can be moved, 32 blocks at a time; one walks down and takes free places, from
//! movable page blocks only. They end where they meet. A zone is compacted only if that can help (enough free memory for the copies, and
//! fragmentation rather than lack of memory), and after a failure it is left alone for a while, twice as long each time.
//!
//! While it runs, the zone's [capture slot](crate::bulk) is armed: the first block that becomes free and is large enough goes straight to the
//! request, whoever freed its last page.

use super::{Migrate, Migration, settle};
use crate::bulk::Capture;
use crate::design::Design;
use crate::store::Store;
use crate::store::frames::{State, Use};
use crate::zone::watermark::above_mark;
use crate::zone::{Guard, Zone};
use crate::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

/// Blocks that the migration scanner gathers at a time (Linux's `COMPACT_CLUSTER_MAX`).
const CLUSTER: usize = 32;

/// Blocks that it looks at in one hold of the zone lock, at most.
const LOOKS: usize = 1024;

/// Up to this fragmentation index, in thousandths, it is memory that lacks (Linux's `extfrag_threshold`).
const LACK_UP_TO: i32 = 500;

/// Orders up to this one are asked for without end; compaction is choosy only above (Linux's costly order).
pub(crate) const COSTLY: Order = Order::new(3);

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
/// Goes on where the last one that succeeded stood; where that gives nothing, from the ends of the zone. Costs at most two passes over the zone, and one call of `hooks` for each
/// movable block in it.
pub fn compact_for<D: Design>(
    zone: &Zone<D>,
    request: &Request,
    hooks: &impl Migrate,
) -> Compacted {
    let order = request.order;
    if zone.deferral.skips(order) {
        return Compacted::not_tried(Why::Deferred);
    }
    if let Some(why) = cannot_help(zone, request) {
        return Compacted::not_tried(why);
    }
    let span = zone.span();
    let left = zone.scanners.left(span);
    let mut compaction = Compaction::new(zone, Some(request), left);
    let mut result = compaction.run(hooks);
    if result.why == Why::Complete && left != span {
        // Something may have changed behind the scanners.
        let before = result;
        compaction = Compaction::new(zone, Some(request), span);
        result = compaction.run(hooks);
        result.moved += before.moved;
        result.stuck += before.stuck;
    }
    match result.why {
        Why::Succeeded => zone.scanners.remember(compaction.left()),
        _ => zone.scanners.forget(),
    }
    match result.why {
        Why::Succeeded => zone.deferral.succeeded(order),
        _ => zone.deferral.failed(order),
    }
    result
}

/// Compacts all of `zone`, whatever may be asked for later (`/proc/sys/vm/compact_memory`).
pub fn compact_all<D: Design>(zone: &Zone<D>, hooks: &impl Migrate) -> Compacted {
    zone.drain();
    Compaction::new(zone, None, zone.span()).run(hooks)
}

/// Is there too little free memory to copy to, or is fragmentation not the trouble?
fn cannot_help<D: Design>(zone: &Zone<D>, request: &Request) -> Option<Why> {
    let order = request.order;
    let marks = zone.watermarks();
    let mark = if order > COSTLY { marks.low } else { marks.min };
    let copies = 2 << order.get();
    let set_aside = zone.backing().unlocked().set_aside_frames();
    let reserve = zone.reserve_against(request.highest);
    let single = request.single();
    if !above_mark(
        zone.free_frames(),
        set_aside,
        &single,
        mark.saturating_add(copies),
        reserve,
    ) {
        return Some(Why::TooLittleFree);
    }
    if order <= COSTLY || D::Store::LOCK_FREE {
        // Such a store would have to look at all blocks for the index; enough is free, so pieces it must be.
        return None;
    }
    let index = zone.free_counts().fragmentation_index(order);
    (0..=LACK_UP_TO)
        .contains(&index)
        .then_some(Why::NotFragmented)
}

/// One pass of the two scanners.
struct Compaction<'z, D: Design> {
    zone: &'z Zone<D>,
    request: Option<&'z Request>,
    // The size of the places that are to become free.
    wanted: Order,
    // Up to here it is known that everything can be moved.
    judged_to: Frame,
    // Everything below has been gathered from.
    migrate_from: Frame,
    // Everything from here on has been looked at for free places, by order: a place too small for one block serves another.
    free_below: [Frame; Order::COUNT],
    armed: bool,
    moved: usize,
    stuck: usize,
}

impl<'z, D: Design> Compaction<'z, D> {
    /// Between the ends of `left`.
    fn new(zone: &'z Zone<D>, request: Option<&'z Request>, left: FrameRange) -> Self {
        let mut free_below = [zone.span().end; Order::COUNT];
        free_below[0] = left.end;
        Self {
            zone,
            request,
            wanted: match request {
                Some(request) => request.order,
                None => zone.backing().unlocked().page_block_order(),
            },
            judged_to: left.start,
            migrate_from: left.start,
            free_below,
            armed: false,
            moved: 0,
            stuck: 0,
        }
    }

    /// What is left between the scanners; the place that was being made free counts as not yet looked at.
    fn left(&self) -> FrameRange {
        FrameRange {
            start: self.migrate_from.align_down(self.wanted),
            end: self.free_below[0],
        }
    }

    fn run(&mut self, hooks: &impl Migrate) -> Compacted {
        let armed = self
            .request
            .and_then(|request| Armed::new(self.zone, request));
        self.armed = armed.is_some();
        let why = self.pass(hooks);
        let caught = armed.and_then(Armed::disarm);
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
        while !self.have_met() {
            let gathered = self.gather(hooks, &mut cluster);
            for &(from, order) in &cluster[..gathered] {
                match self.free_place(from, order) {
                    Some(to) => self.move_one(hooks, from, order, to),
                    // No place above it at all, or none of its size.
                    None if self.have_met() || order == Order::ZERO => return self.ended(),
                    None => self.stuck += order.frames(),
                }
                if self.has_caught() {
                    return Why::Succeeded;
                }
            }
            if self.is_served() {
                return Why::Succeeded;
            }
        }
        self.ended()
    }

    /// The scanners have met.
    fn ended(&self) -> Why {
        if self.is_served() {
            Why::Succeeded
        } else {
            Why::Complete
        }
    }

    /// Is there nothing left between the scanners?
    fn have_met(&self) -> bool {
        self.migrate_from >= self.free_below[0]
    }

    /// Is there a block for the request now?
    fn is_served(&self) -> bool {
        self.request.is_some_and(|request| {
            let guard = self.zone.lock();
            let caught = self.armed && guard.capture().is_some_and(Capture::has_caught);
            caught || guard.can_serve(request)
        })
    }

    fn has_caught(&self) -> bool {
        self.armed && self.zone.lock().capture().is_some_and(Capture::has_caught)
    }

    /// The migration scanner: the next blocks that might be moved, at most a cluster of them, in one lock hold. It passes over every place of the wanted
    /// size that something lies in which cannot be moved.
    fn gather(&mut self, hooks: &impl Migrate, cluster: &mut [(Frame, Order); CLUSTER]) -> usize {
        let guard = self.zone.lock();
        let mut gathered = 0;
        let mut looks = LOOKS;
        while looks > 0 && gathered < CLUSTER && !self.have_met() {
            let at = self.migrate_from;
            if at >= self.judged_to {
                let place = FrameRange::of_block(at.align_down(self.wanted), self.wanted);
                let (clearable, looked) = self.is_clearable(&guard, hooks, at, place);
                looks = looks.saturating_sub(looked);
                self.judged_to = place.end;
                if !clearable {
                    self.migrate_from = place.end;
                    continue;
                }
            }
            looks = looks.saturating_sub(1);
            let state = match guard.block_of(at) {
                Some((first, state)) if first == at => state,
                _ => State::INNER,
            };
            let small = state.order < self.wanted || state.order == Order::ZERO;
            // Where the store knows, what has come since the place was judged is not asked for either.
            let movable = D::Store::LOCK_FREE || state.kind == MigrateType::Movable;
            if state.usage == Use::Allocated && small && movable {
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

    /// Can everything from `from` to the end of `place` be moved, as far as can be known beforehand? With how many blocks were looked at: up to a place more than [`LOOKS`] in one
    /// hold of the lock.
    fn is_clearable(
        &self,
        guard: &Guard<'_, D>,
        hooks: &impl Migrate,
        from: Frame,
        place: FrameRange,
    ) -> (bool, usize) {
        if !self.zone.span().covers(place) {
            return (false, 1);
        }
        let mut at = from;
        let mut looked = 0;
        while at < place.end {
            looked += 1;
            let Some((first, state)) = guard.block_of(at) else {
                // A hole is no place for a block; above the wanted size of single pages, nothing is to be had here.
                return (self.wanted == Order::ZERO, looked);
            };
            let moves = match state.usage {
                Use::Allocated if D::Store::LOCK_FREE => {
                    // Such a store knows mobilities only roughly; no lock is held here.
                    hooks.can_move(first, state.order)
                }
                Use::Allocated => state.kind == MigrateType::Movable,
                Use::Reserved => false,
                Use::Free | Use::Cached | Use::Inner => true,
            };
            if !moves {
                return (false, looked);
            }
            at = first.plus(state.order.frames()).max(at.plus(1));
        }
        (true, looked)
    }

    /// The free scanner: takes the highest free place of `order` above `from` in a movable page block.
    fn free_place(&mut self, from: Frame, order: Order) -> Option<Frame> {
        let behind = from.plus(order.frames());
        loop {
            match self.look_for_place(behind, order) {
                Looked::Found(place) => return Some(place),
                Looked::NotYet => {}
                Looked::Nowhere => return None,
            }
        }
    }

    /// One hold of the zone lock of the free scanner.
    fn look_for_place(&mut self, behind: Frame, order: Order) -> Looked {
        let guard = self.zone.lock();
        let request = Request::new(order, Mobility::Movable);
        let below = &mut self.free_below[order.index()];
        for _ in 0..LOOKS {
            let end = below.align_down(order);
            let Some(at) = end.number().checked_sub(order.frames()).map(Frame::new) else {
                return Looked::Nowhere;
            };
            if at < behind {
                return Looked::Nowhere;
            }
            let block = guard.block_of(at);
            let free = block.is_some_and(|(_, state)| state.usage == Use::Free);
            let movable = matches!(guard.block_type(at), None | Some(MigrateType::Movable));
            *below = at;
            if free && movable && guard.take_at(at, &request).is_ok() {
                return Looked::Found(at);
            }
            // Over a block that will not do in one step.
            if let Some((first, state)) = block
                && !(free && movable && state.order >= order)
            {
                *below = at.min(first);
            }
        }
        Looked::NotYet
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
            // The place is free again, and the next one to look at.
            self.free_below[order.index()] = to.plus(order.frames());
        }
    }
}

/// The zone's capture slot waits for a block as long as this lives. Where a hook panics, what it has caught is freed.
struct Armed<'z, D: Design> {
    zone: &'z Zone<D>,
    order: Order,
}

impl<'z, D: Design> Armed<'z, D> {
    /// `None` where there is no slot, or somebody else has it.
    fn new(zone: &'z Zone<D>, request: &Request) -> Option<Self> {
        let armed = zone.lock().capture().is_some_and(|slot| slot.arm(request));
        armed
            .then_some(request.order)
            .map(|order| Self { zone, order })
    }

    /// The block, if one was caught.
    fn disarm(self) -> Option<Frame> {
        let caught = self.zone.lock().capture().and_then(Capture::disarm);
        core::mem::forget(self);
        caught
    }
}

impl<D: Design> Drop for Armed<'_, D> {
    fn drop(&mut self) {
        let caught = self.zone.lock().capture().and_then(Capture::disarm);
        if let Some(frame) = caught {
            let given = self.zone.free(frame, self.order);
            debug_assert!(given.is_ok(), "a block that was caught: {given:?}");
        }
    }
}

/// How far one hold of the lock brought the free scanner.
enum Looked {
    Found(Frame),
    NotYet,
    Nowhere,
}
