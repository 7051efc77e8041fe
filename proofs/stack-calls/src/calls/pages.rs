// The calls of `brickyard` on zones. Included once for each kind of slots, `Access`.

use brickyard::bitmap;
use brickyard::block::{Census, FreeTable, State};
use brickyard::check::Violation;
use brickyard::node;
use brickyard::patience;
use brickyard::pressure::{Compacted, compact_all, compact_for};
use brickyard::pressure::{ContiguousRequest, alloc_contiguous, offline};
use brickyard::stash::{CpuStash, StashSizes};
use brickyard::stats::{FreeCounts, ZoneSnapshot};
use brickyard::sync::{Slot, Zeros};
use brickyard::watermark::Mark;
use brickyard::{
    AllocError, AnyZone as _, BulkFreeError, Frame, FrameRange, FreeError, MigrateType, Mobility,
    Order, PlanError, RangeError, Request, Shape, ZoneKind, ZonePlan,
};
use core::mem::MaybeUninit;

use crate::embedder::Embedder;

pub(crate) type TheZone<'m> = brickyard::Zone<'m, Embedder, Access>;
pub(crate) type TheNodes<'z> = node::Nodes<'z, TheZone<'z>, Embedder>;
pub(crate) type TheStash<'m> = brickyard::stash::Stash<'m, Access>;

calls! {
    Zone {
        new<'m>(plan: &ZonePlan, memory: &'m mut [MaybeUninit<u8>])
            -> Result<TheZone<'m>, PlanError> = TheZone::new(plan, Embedder, memory);
        new_in<'z, 'm>(place: &'z mut MaybeUninit<TheZone<'m>>, plan: &ZonePlan,
            memory: &'m mut [MaybeUninit<u8>]) -> Result<&'z mut TheZone<'m>, PlanError>
            = TheZone::new_in(place, plan, Embedder, memory);
        on_zeros<'m>(plan: &ZonePlan, memory: Zeros<'m>) -> Result<TheZone<'m>, PlanError>
            = TheZone::on_zeros(plan, Embedder, memory);
        of<'m>(parts: (bitmap::Bitmap<'m>, TheStash<'m>)) -> TheZone<'m>
            = TheZone::of(ZoneKind::Normal, Embedder, parts.0, parts.1);
        bytes(plan: &ZonePlan) -> usize = TheZone::bytes(plan);
        checked_bytes(plan: &ZonePlan) -> Result<usize, PlanError> = TheZone::checked_bytes(plan);
        alloc(zone: &TheZone<'_>, request: &Request) -> Result<Frame, AllocError>
            = zone.alloc(request);
        alloc_bulk(zone: &TheZone<'_>, request: &Request, out: &mut [Frame])
            -> Result<usize, AllocError> = zone.alloc_bulk(request, out);
        alloc_at(zone: &TheZone<'_>, frame: Frame, request: &Request) -> Result<(), RangeError>
            = zone.alloc_at(frame, request);
        alloc_range(zone: &TheZone<'_>, request: &Request, frames: usize)
            -> Result<FrameRange, AllocError> = zone.alloc_range(request, frames);
        alloc_range_at(zone: &TheZone<'_>, range: FrameRange, request: &Request)
            -> Result<(), RangeError> = zone.alloc_range_at(range, request);
        free(zone: &TheZone<'_>, frame: Frame, order: Order) -> Result<(), FreeError>
            = zone.free(frame, order);
        free_bulk(zone: &TheZone<'_>, frames: &[Frame]) -> Result<(), BulkFreeError>
            = zone.free_bulk(frames);
        free_range(zone: &TheZone<'_>, range: FrameRange) -> Result<(), FreeError>
            = zone.free_range(range);
        add(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError> = zone.add(range);
        remove(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = zone.remove(range);
        reserve(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = zone.reserve(range);
        unreserve(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = zone.unreserve(range);
        dedicate(zone: &TheZone<'_>, frame: Frame, mobility: Mobility) -> ()
            = zone.dedicate(frame, mobility);
        drain(zone: &TheZone<'_>) -> usize = zone.drain();
        free_frames(zone: &TheZone<'_>) -> usize = zone.free_frames();
        cached_frames(zone: &TheZone<'_>) -> usize = zone.cached_frames();
        refused_late(zone: &TheZone<'_>) -> usize = zone.refused_late();
        fallbacks(zone: &TheZone<'_>) -> (u64, u64) = zone.fallbacks();
        check(zone: &TheZone<'_>) -> Result<Census, Violation> = zone.check();
    }
    AnyZone {
        platform(zone: &TheZone<'_>) -> *const Embedder = zone.platform();
        shape(zone: &TheZone<'_>) -> Shape = zone.shape();
        kind(zone: &TheZone<'_>) -> ZoneKind = brickyard::AnyZone::kind(zone);
        span(zone: &TheZone<'_>) -> FrameRange = brickyard::AnyZone::span(zone);
        max_order(zone: &TheZone<'_>) -> Order = zone.max_order();
        watermarks(zone: &TheZone<'_>) -> *const brickyard::watermark::Watermarks
            = zone.watermarks();
        compaction(zone: &TheZone<'_>) -> *const brickyard::pressure::CompactionState
            = zone.compaction();
        alloc(zone: &TheZone<'_>, request: &Request) -> Result<Frame, AllocError>
            = brickyard::AnyZone::alloc(zone, request);
        alloc_above(zone: &TheZone<'_>, request: &Request, mark: Mark) -> Option<Frame>
            = zone.alloc_above(request, mark);
        alloc_at_hand(zone: &TheZone<'_>, request: &Request) -> Option<Frame>
            = zone.alloc_at_hand(request);
        alloc_drained(zone: &TheZone<'_>, request: &Request, mark: Mark,
            patience: &patience::Patience) -> Option<Frame>
            = zone.alloc_drained(request, mark, patience);
        alloc_set_aside(zone: &TheZone<'_>, request: &Request, mark: Mark,
            patience: &patience::Patience) -> Option<Frame>
            = zone.alloc_set_aside(request, mark, patience);
        alloc_uncached(zone: &TheZone<'_>, request: &Request) -> Option<Frame>
            = zone.alloc_uncached(request);
        alloc_batch(zone: &TheZone<'_>, request: &Request, out: &mut [Frame]) -> usize
            = zone.alloc_batch(request, out);
        take_at(zone: &TheZone<'_>, frame: Frame, request: &Request) -> Result<(), RangeError>
            = zone.take_at(frame, request);
        why_not(zone: &TheZone<'_>, request: &Request) -> AllocError = zone.why_not(request);
        free(zone: &TheZone<'_>, frame: Frame, order: Order) -> Result<(), FreeError>
            = brickyard::AnyZone::free(zone, frame, order);
        free_at_hand(zone: &TheZone<'_>, frame: Frame) -> bool = zone.free_at_hand(frame);
        free_uncached(zone: &TheZone<'_>, frame: Frame, order: Order) -> Result<(), FreeError>
            = zone.free_uncached(frame, order);
        free_bulk(zone: &TheZone<'_>, frames: &[Frame]) -> Result<(), BulkFreeError>
            = brickyard::AnyZone::free_bulk(zone, frames);
        free_range(zone: &TheZone<'_>, range: FrameRange) -> Result<(), FreeError>
            = brickyard::AnyZone::free_range(zone, range);
        drain(zone: &TheZone<'_>) -> usize = brickyard::AnyZone::drain(zone);
        isolate(zone: &TheZone<'_>, range: FrameRange) -> Result<(), RangeError>
            = zone.isolate(range);
        unisolate(zone: &TheZone<'_>, range: FrameRange) -> () = zone.unisolate(range);
        take_isolated(zone: &TheZone<'_>, range: FrameRange, mobility: Mobility)
            -> Result<(), RangeError> = zone.take_isolated(range, mobility);
        add(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = brickyard::AnyZone::add(zone, range);
        reserve(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = brickyard::AnyZone::reserve(zone, range);
        unreserve(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = brickyard::AnyZone::unreserve(zone, range);
        remove(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = brickyard::AnyZone::remove(zone, range);
        block_of(zone: &TheZone<'_>, frame: Frame) -> Option<(Frame, State)>
            = zone.block_of(frame);
        block_type(zone: &TheZone<'_>, frame: Frame) -> Option<MigrateType>
            = zone.block_type(frame);
        knows_to_move(zone: &TheZone<'_>, state: State) -> Option<bool>
            = zone.knows_to_move(state);
        free_frames(zone: &TheZone<'_>) -> usize = brickyard::AnyZone::free_frames(zone);
        free_frames_for(zone: &TheZone<'_>, request: &Request) -> usize
            = zone.free_frames_for(request);
        cached_frames(zone: &TheZone<'_>) -> usize = brickyard::AnyZone::cached_frames(zone);
        managed_frames(zone: &TheZone<'_>) -> usize = zone.managed_frames();
        can_serve(zone: &TheZone<'_>, request: &Request) -> bool = zone.can_serve(request);
        free_table(zone: &TheZone<'_>) -> FreeTable = zone.free_table();
        quick_index(zone: &TheZone<'_>, order: Order) -> Option<i32> = zone.quick_index(order);
        check(zone: &TheZone<'_>) -> Result<Census, Violation> = brickyard::AnyZone::check(zone);
        has(zone: &TheZone<'_>, frame: Frame) -> bool = zone.has(frame);
        compact(zone: &TheZone<'_>, request: &Request) -> Compacted
            = zone.compact(request, &Embedder);
        free_counts(zone: &TheZone<'_>) -> FreeCounts = zone.free_counts();
        snapshot(zone: &TheZone<'_>) -> ZoneSnapshot = zone.snapshot(0);
    }
    Node {
        new<'z>(zones: &'z [TheZone<'z>]) -> node::Node<'z, TheZone<'z>>
            = node::Node::new(0, zones);
    }
    Nodes {
        new<'z>(nodes: &'z [node::Node<'z, TheZone<'z>>]) -> node::Nodes<'z, TheZone<'z>>
            = node::Nodes::new(nodes);
        with_hooks<'z>(nodes: &'z [node::Node<'z, TheZone<'z>>]) -> TheNodes<'z>
            = TheNodes::with_hooks(nodes, Embedder, node::SlowPath::MODERN);
        zones(nodes: &TheNodes<'_>) -> usize = nodes.zones().count();
        zonelist(nodes: &TheNodes<'_>, from: usize, request: &Request) -> usize
            = nodes.zonelist(from, request).count();
        alloc(nodes: &TheNodes<'_>, from: usize, request: &Request) -> Result<Frame, AllocError>
            = nodes.alloc(from, request);
        alloc_bulk(nodes: &TheNodes<'_>, from: usize, request: &Request, out: &mut [Frame])
            -> Result<usize, AllocError> = nodes.alloc_bulk(from, request, out);
        alloc_range(nodes: &TheNodes<'_>, request: &Request, frames: usize)
            -> Result<FrameRange, AllocError> = nodes.alloc_range(0, request, frames);
        zone_of<'z>(nodes: &TheNodes<'z>, frame: Frame) -> Option<&'z TheZone<'z>>
            = nodes.zone_of(frame);
        free(nodes: &TheNodes<'_>, frame: Frame, order: Order) -> Result<(), FreeError>
            = nodes.free(frame, order);
        free_bulk(nodes: &TheNodes<'_>, frames: &[Frame]) -> Result<(), BulkFreeError>
            = nodes.free_bulk(frames);
        free_range(nodes: &TheNodes<'_>, range: FrameRange) -> Result<(), FreeError>
            = nodes.free_range(range);
        alloc_contiguous(nodes: &TheNodes<'_>, request: &ContiguousRequest)
            -> Result<FrameRange, RangeError> = nodes.alloc_contiguous(0, request);
        drain(nodes: &TheNodes<'_>) -> usize = nodes.drain();
        set_min_free_kbytes(nodes: &TheNodes<'_>, kbytes: usize) -> ()
            = nodes.set_min_free_kbytes(kbytes, 4096);
        snapshots(nodes: &TheNodes<'_>) -> Option<ZoneSnapshot> = nodes.snapshots().next();
        check(nodes: &TheNodes<'_>) -> Result<Census, Violation> = nodes.check();
    }
    pressure {
        compact_for(zone: &TheZone<'_>, request: &Request) -> Compacted
            = super::compact_for(zone, request, &Embedder, || false);
        compact_all(zone: &TheZone<'_>) -> Compacted = super::compact_all(zone, &Embedder);
        alloc_contiguous(zone: &TheZone<'_>, request: &ContiguousRequest)
            -> Result<FrameRange, RangeError>
            = super::alloc_contiguous(zone, request, &Embedder);
        offline(zone: &TheZone<'_>, range: FrameRange) -> Result<usize, RangeError>
            = super::offline(zone, range, &Embedder);
    }
    Stash {
        new<'m>(slots: &'m [Slot<Access, CpuStash>], sizes: StashSizes) -> TheStash<'m>
            = TheStash::new(slots, sizes);
    }
}
