//! Linux's compaction: moves movable pages from the low end of a zone to free places at its high
//! end, until a block of the wanted order is free.
//!
//! | module | what it holds |
//! |---|---|
//! | `aim` | what is to become free, for whom, how thoroughly |
//! | `sources` | the scanner that walks up and gathers pages to move, 32 at a time |
//! | `targets` | the scanner that walks down and takes free places |
//! | `places` | those places, by order |
//! | `run` | the state of a run of both |
//! | `rounds` | its rounds: gather, find places, move; how it ends |
//! | `capture` | the block that is caught for the request |
//! | `state` | where both stood, and the page blocks that they skip |
//! | `deferral` | how long a zone is left alone after a failure |
//!
//! There are three [priorities](Priority), of which the cheapest comes first. Both scanners begin
//! with a short search of the free lists, which gives places far from each other, and turn these
//! lists so that the next search sees others.
//!
//! A compaction ends where the scanners meet, or when a block of the wanted order is free that a
//! request can have; the latter only at the start of a page block, so that what was begun is
//! finished. A block that becomes free by a free of the compacting task itself, and is then of
//! exactly the wanted order, is *caught* on its way to the lists: no other request can take it.
//!
//! What differs from Linux: a block that its owner cannot move now counts as failed at once,
//! without the ten tries of a page under I/O; a block of several pages for which there is no place
//! is left as it is, not split; and pages that are moved away go straight to the store, not through
//! this CPU's page set.
//!
//! **Bounds.** The linear search for pages looks at each frame of the zone at most twice. A search
//! of free lists looks at 33 blocks at most, or half a page block's frames at the beginning, and
//! finds each page block at most once. The search for places goes down only. Each round moves at
//! most 32 blocks, each with one call of the hook. No lock is held while a hook runs; the longest
//! hold of the zone lock is a look at one page block.

pub(super) mod aim;
mod capture;
mod deferral;
mod places;
mod rounds;
mod run;
mod sources;
mod state;
mod targets;

use brickyard::pressure::{Compacted, Migrate, Why};
use brickyard::sync::SlotAccess;
use brickyard::{AnyZone, MigrateType, Order, Platform, Request, ZoneKind};

pub(super) use state::CompactionState;

use super::marks::{self, Level};
use super::pageset::BaseZone;
use super::rights::Rights;
use crate::classics::lock::LabLock;
use aim::{Aim, COSTLY, Priority, RunEnd, Worker};
use run::Run;

/// Up to this fragmentation index, in thousandths, the cause is lack of memory.
const LACK_UP_TO: i32 = 500;

/// Compacts for a request with these rights, unless that is deferred or cannot help.
pub(super) fn for_request<'m, A: SlotAccess, L: LabLock, P: Platform>(
    inner: &BaseZone<'m, A, L, P>,
    memory: &CompactionState<'m>,
    request: &Request,
    rights: Rights,
    priority: Priority,
    hooks: &impl Migrate,
) -> Compacted {
    let limited = inner.is_limited(request);
    let aim = Aim {
        order: request.order,
        wanted: request.mobility.into(),
        highest: request.highest,
        limit: request.limit.filter(|_| limited),
    };
    if aim.order == Order::ZERO || aim.order > inner.max_order() {
        // Nothing that moves helps a single frame, or a block that the zone never has.
        return Compacted::new(Why::NotFragmented);
    }
    if priority != Priority::SyncFull && memory.deferral.skips(aim.order) {
        return Compacted::new(Why::Deferred);
    }
    let is_free = marks::is_above(&inner.backing, aim.order, aim.highest, Level::Min, rights);
    let (ended, result) = if is_free && aim.limit.is_none() {
        (RunEnd::Succeeded, Compacted::new(Why::Succeeded))
    } else if let Some(why) = cannot_help(inner, &aim) {
        return Compacted::new(why);
    } else {
        Run::new(inner, memory, Worker::Request(priority), aim, hooks).run()
    };
    match ended {
        RunEnd::Succeeded => memory.deferral.succeeded(aim.order),
        RunEnd::Met if priority != Priority::Async => memory.deferral.failed(aim.order),
        RunEnd::Met | RunEnd::NoPlace => {}
    }
    result
}

/// Compacts in the background, until a block of `order` is free that an unmovable request can have.
/// If that fails, all page sets are drained. Returns what was done.
pub(super) fn in_background<'m, A: SlotAccess, L: LabLock, P: Platform>(
    inner: &BaseZone<'m, A, L, P>,
    memory: &CompactionState<'m>,
    order: Order,
    highest: ZoneKind,
    hooks: &impl Migrate,
) -> Compacted {
    let aim = Aim {
        order,
        wanted: MigrateType::Unmovable,
        highest,
        limit: None,
    };
    if order == Order::ZERO || order > inner.max_order() {
        return Compacted::new(Why::NotFragmented);
    }
    if memory.deferral.skips(order) {
        return Compacted::new(Why::Deferred);
    }
    if marks::is_above(&inner.backing, order, highest, Level::Min, Rights::NONE) {
        return Compacted::new(Why::Succeeded);
    }
    if let Some(why) = cannot_help(inner, &aim) {
        return Compacted::new(why);
    }
    let (ended, result) = Run::new(inner, memory, Worker::Background, aim, hooks).run();
    match ended {
        RunEnd::Succeeded => memory.deferral.succeeded(order),
        RunEnd::Met => {
            inner.drain();
            memory.deferral.failed(order);
        }
        RunEnd::NoPlace => {}
    }
    result
}

/// Returns the reason why compaction cannot help, if there is one: too little free memory to copy
/// to, or no fragmentation.
fn cannot_help<A: SlotAccess, L: LabLock, P: Platform>(
    inner: &BaseZone<'_, A, L, P>,
    aim: &Aim,
) -> Option<Why> {
    let store = inner.unlocked();
    let watermarks = inner.watermarks();
    let marks = watermarks.marks();
    let mark = if aim.order > COSTLY {
        marks.low
    } else {
        marks.min
    };
    let floor = mark
        .saturating_add(store.grouping().condition().boost())
        .saturating_add(2 << aim.order.get())
        .saturating_add(watermarks.reserve_against(aim.highest));
    let free = store.free_frames().saturating_sub(store.set_aside_frames());
    if free <= floor {
        return Some(Why::TooLittleFree);
    }
    let lacks = || {
        let index = inner.free_counts().fragmentation_index(aim.order);
        (0..=LACK_UP_TO).contains(&index)
    };
    (aim.order > COSTLY && lacks()).then_some(Why::NotFragmented)
}
