//! The zones of Linux 6.12 and 6.18, rule by rule: sizes, page sets, page blocks, marks, the walk
//! over zones and the slow path.
//!
//! Numbers in comments, such as "Test 9", are those of the specification's own examples. Most of
//! these are about one zone of 262144 frames on 4 CPUs, called Z: its marks are 1024, 1286 and
//! 1548, a batch is 63 frames, a page set holds 321 to 8192, and moves 2016 at most at once.

mod blocks;
mod boost;
mod deferral;
mod ends;
mod lists;
mod marks;
mod pagesets;
mod past;
mod placement;
mod reserves;
mod sizes;
mod slow;
mod walk;

use brickyard::block::Use;
use brickyard::node::{Node, Nodes};
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::sync::{Exclusive, SlotAccess};
use brickyard::watermark::{Mark, Marks};
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Request, ZoneKind,
};
use brickyard_designs::classics::linux::{
    self, Burst, Choice, Course, Mode, Rights, Search, Sizes, V6_12, V6_18, Version, Way,
};
use brickyard_designs::classics::{GfpFlags, LabLock, LabPlan, LabZone, Planned, Retry};

use crate::classics::support::{
    Cpus, MOVABLE, UNMOVABLE, ZoneLock, blocks_of, frame, free_of, leaked, list_of, request, sound,
    usage,
};

use MigrateType::{HighAtomic as High, Movable as Mov, Reclaimable as Recl, Unmovable as Unmov};

/// The frames of a page block.
const BLOCK: usize = 512;

/// The marks of Z.
const MARKS: Marks = Marks {
    min: 1024,
    low: 1286,
    high: 1548,
};

/// The limits of the page sets of Z.
const SIZES: Sizes = Sizes {
    batch: 63,
    high_least: 321,
    high_most: 8192,
};

type Zone<V = V6_12, A = Exclusive, L = ZoneLock> = linux::Zone<'static, V, A, L, &'static Cpus>;

/// Returns a plan of so many page blocks for 4 CPUs, with the orders of Linux.
fn plan(blocks: usize) -> LabPlan {
    let span = FrameRange::new(0, blocks * BLOCK);
    LabPlan::new(ZoneKind::Normal, span, 4)
}

/// Makes a zone without memory.
fn made<V: Version, A: SlotAccess, L: LabLock>(
    plan: &LabPlan,
    cpus: &'static Cpus,
) -> Zone<V, A, L> {
    let bytes = Zone::<V, A, L>::checked_bytes_for(plan).expect("a plan within the limits");
    Zone::by(plan, cpus, leaked(bytes)).expect("as much memory as it needs")
}

/// Makes a zone of so many page blocks, all free.
fn free_zone(blocks: usize) -> Zone {
    free_zone_of(&plan(blocks), Cpus::new())
}

fn free_zone_of<V: Version, A: SlotAccess>(plan: &LabPlan, cpus: &'static Cpus) -> Zone<V, A> {
    let zone = made(plan, cpus);
    assert_eq!(zone.add(plan.span), Ok(plan.span.len()));
    zone
}

/// Makes a zone of so many page blocks, all in use by movable pages in blocks of the highest order.
fn full_zone(blocks: usize) -> Zone {
    let zone = free_zone(blocks);
    fill(&zone, Mobility::Movable);
    zone
}

fn set_marks<V: Version, A: SlotAccess>(zone: &Zone<V, A>, marks: Marks) {
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
}

/// Makes a zone that is full see its marks, of which it learns when a request tests them.
fn refuse_one(zone: &Zone) {
    assert_eq!(zone.alloc_above(&MOVABLE, Mark::Low), None);
}

/// Makes Z, all free.
fn z<V: Version>() -> (Zone<V>, &'static Cpus) {
    let cpus = Cpus::new();
    let zone = free_zone_of(&plan(512), cpus);
    set_marks(&zone, MARKS);
    (zone, cpus)
}

/// Makes a zone as large as Z, but without a boost and all in use.
fn calm() -> Zone {
    let mut calm = plan(512);
    calm.linux.boost_factor = 0;
    let zone = free_zone_of(&calm, Cpus::new());
    fill(&zone, Mobility::Movable);
    zone
}

/// Takes all that is free, as blocks of the highest order.
fn fill<V: Version, A: SlotAccess>(zone: &Zone<V, A>, mobility: Mobility) {
    for (at, order) in zone.span().blocks(zone.max_order()) {
        take_at(zone, at.number(), order.get(), mobility);
    }
}

/// Takes the block at a frame, past the page sets.
fn take_at<V: Version, A: SlotAccess>(zone: &Zone<V, A>, at: usize, order: u8, mobility: Mobility) {
    let taken = zone.take_at(frame(at), &request(order, mobility));
    assert_eq!(taken, Ok(()), "{at} {order}");
}

/// Gives frames that are in use a new owner of this mobility, as few blocks.
fn hand_over<V: Version, A: SlotAccess>(
    zone: &Zone<V, A>,
    range: core::ops::Range<usize>,
    mobility: Mobility,
) {
    let range = FrameRange::new(range.start, range.end);
    for (at, order) in range.blocks(Order::HUGE) {
        release(zone, at.number(), order.get());
        take_at(zone, at.number(), order.get(), mobility);
    }
}

/// Frees a block, or a part of one, past the page sets.
fn release<V: Version, A: SlotAccess>(zone: &Zone<V, A>, at: usize, order: u8) {
    let freed = zone.free_uncached(frame(at), Order::new(order));
    assert_eq!(freed, Ok(()), "{at} {order}");
}

/// Frees a block.
fn give<V: Version, A: SlotAccess>(zone: &Zone<V, A>, at: usize, order: u8) {
    let freed = zone.free(frame(at), Order::new(order));
    assert_eq!(freed, Ok(()), "{at} {order}");
}

/// Takes a block past the page sets.
fn take_direct<V: Version, A: SlotAccess>(zone: &Zone<V, A>, request: &Request) -> usize {
    zone.alloc_uncached(request).expect("a block").number()
}

/// Takes a block through the page set.
fn take<V: Version, A: SlotAccess>(zone: &Zone<V, A>, request: &Request) -> usize {
    zone.alloc(request).expect("a block").number()
}

/// Returns true if a frame lies in a page set.
fn is_cached<V: Version, A: SlotAccess>(zone: &Zone<V, A>, at: usize) -> bool {
    usage(zone, frame(at)) == Use::Cached
}

/// Returns what a request would get from the ordinary lists.
fn search<V: Version, A: SlotAccess>(
    zone: &Zone<V, A>,
    order: u8,
    wanted: MigrateType,
    rights: Rights,
) -> Search {
    zone.with_store(|store, blocks| {
        blocks.search(store, Order::new(order), wanted, rights, Mode::Normal)
    })
}

/// Returns a search's way and frame.
fn way(search: &Search) -> Option<(Way, usize)> {
    let found = search.found?;
    Some((found.way, found.frame.number()))
}

/// Returns the numbers of free blocks of a type, by order from 0 to 10.
fn free_by_order<V: Version, A: SlotAccess>(zone: &Zone<V, A>, kind: MigrateType) -> [usize; 11] {
    let table = zone.free_table();
    core::array::from_fn(|order| table[order][kind.index()])
}

/// Takes a block as Linux does, in the usual flags.
fn alloc<V: Version, A: SlotAccess>(zones: &[Zone<V, A>], request: &Request) -> Option<usize> {
    alloc_in(zones, request, GfpFlags::of(request))
}

fn alloc_in<V: Version, A: SlotAccess>(
    zones: &[Zone<V, A>],
    request: &Request,
    flags: GfpFlags,
) -> Option<usize> {
    let nodes = [Node::new(0, zones)];
    let nodes = Nodes::new(&nodes);
    let taken = Zone::alloc_from(&nodes, 0, request, flags);
    taken.ok().map(Frame::number)
}
