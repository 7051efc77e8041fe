// The calls of `brickyard` that have nothing to do with slots.

use core::fmt::Write as _;

use brickyard::bitmap::{self, AT_ONCE, SetAside};
use brickyard::block::{Census, FreeTable, State};
use brickyard::check::Violation as Broken;
use brickyard::node::movable;
use brickyard::patience::{self, Drained, Look, Looks, Reach};
use brickyard::pressure::reclaim::{Lump, lump_round_oldest};
use brickyard::stats;
use brickyard::sync::{AtomicU8, AtomicU64};
use brickyard::watermark::{self, Mark, Marks};
use brickyard::{
    Context, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, PlanError, RangeError,
    Request, ZoneKind,
};

use crate::embedder::Embedder;

pub(crate) type Store<'m> = bitmap::Bitmap<'m>;

/// Takes a text, and drops it.
struct Nowhere;

impl core::fmt::Write for Nowhere {
    #[inline(never)]
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        embedder_prints(text)
    }
}

#[inline(never)]
fn embedder_prints(text: &str) -> core::fmt::Result {
    core::hint::black_box(text);
    core::hint::black_box(Ok(()))
}

calls! {
    Bitmap {
        checked_words(span: FrameRange, max: Order, block: Order) -> Result<usize, PlanError>
            = Store::checked_words(span, max, block);
        words(span: FrameRange, max: Order, block: Order) -> usize = Store::words(span, max, block);
        classes(span: FrameRange, block: Order) -> usize = Store::classes(span, block);
        block_order(wanted: Order) -> Order = Store::block_order(wanted);
        new<'m>(span: FrameRange, orders: (Order, Order), words: &'m [AtomicU64],
            classes: &'m [AtomicU8]) -> Store<'m>
            = Store::new(span, orders.0, orders.1, words, classes);
        with_set_aside<'m>(store: Store<'m>, plan: SetAside) -> Store<'m>
            = store.with_set_aside(plan);
        free_frames(store: &Store<'_>) -> usize = store.free_frames();
        free_frames_at_least(store: &Store<'_>) -> usize = store.free_frames_at_least();
        managed_frames(store: &Store<'_>) -> usize = store.managed_frames();
        fallbacks(store: &Store<'_>) -> (u64, u64) = store.fallbacks();
        refused_late(store: &Store<'_>) -> usize = store.refused_late();
        block_type(store: &Store<'_>, frame: Frame) -> Option<MigrateType>
            = store.block_type(frame);
        dedicate(store: &Store<'_>, frame: Frame, mobility: Mobility) -> ()
            = store.dedicate(frame, mobility);
        is_isolated(store: &Store<'_>, frame: Frame) -> bool = store.is_isolated(frame);
        take(store: &Store<'_>, request: &Request) -> Option<Frame> = store.take(request);
        take_frames(store: &Store<'_>, request: &Request, out: &mut [Frame]) -> usize
            = store.take_frames(request, out);
        take_at(store: &Store<'_>, frame: Frame, request: &Request) -> Result<(), RangeError>
            = store.take_at(frame, request);
        give(store: &Store<'_>, frame: Frame, order: Order) -> Result<(), FreeError>
            = store.give(frame, order);
        give_frames(store: &Store<'_>, frames: &[Frame]) -> (usize, Option<FreeError>)
            = store.give_frames(frames);
        give_range(store: &Store<'_>, range: FrameRange) -> Result<(), FreeError>
            = store.give_range(range, &AT_ONCE);
        add(store: &Store<'_>, range: FrameRange) -> Result<usize, RangeError> = store.add(range);
        unreserve(store: &Store<'_>, range: FrameRange) -> Result<usize, RangeError>
            = store.unreserve(range);
        remove(store: &Store<'_>, range: FrameRange) -> Result<usize, RangeError>
            = store.remove(range);
        reserve(store: &Store<'_>, range: FrameRange) -> Result<usize, RangeError>
            = store.reserve(range);
        isolate(store: &Store<'_>, range: FrameRange) -> Result<(), RangeError>
            = store.isolate(range, &AT_ONCE);
        unisolate(store: &Store<'_>, range: FrameRange) -> ()
            = store.unisolate(range, &AT_ONCE);
        take_isolated(store: &Store<'_>, range: FrameRange, kind: MigrateType)
            -> Result<(), RangeError> = store.take_isolated(range, kind, &AT_ONCE);
        may_refuse(store: &Store<'_>, request: &Request) -> bool = store.may_refuse(request);
        can_serve(store: &Store<'_>, request: &Request) -> bool = store.can_serve(request);
        check(store: &Store<'_>) -> Result<Census, Broken> = store.check();
        block_of(store: &Store<'_>, frame: Frame) -> Option<(Frame, State)> = store.block_of(frame);
        check_in_use(store: &Store<'_>, range: FrameRange) -> Result<(), FreeError>
            = store.check_in_use(range);
        free_table(store: &Store<'_>) -> FreeTable = store.free_table();
    }
    Sizing {
        starts(nodes: &[&[FrameRange]], sizing: movable::Sizing, out: &mut [Option<Frame>]) -> ()
            = movable::starts(nodes, Frame::new(0), sizing, Order::DEFAULT_MAX, out);
    }
    Reclaim {
        lump_round_oldest(zone: FrameRange, order: Order) -> Option<Lump>
            = super::lump_round_oldest(&Embedder, zone, order);
    }
    Watermarks {
        zone_marks(kind: ZoneKind, managed: usize, low: usize, min: usize) -> Marks
            = watermark::zone_marks(kind, managed, low, min, 10);
        lowmem_reserve(managed: &[usize; ZoneKind::COUNT])
            -> [[usize; ZoneKind::COUNT]; ZoneKind::COUNT]
            = watermark::lowmem_reserve(managed, &watermark::LOWMEM_RESERVE_RATIO);
        set(marks: &watermark::Watermarks, to: Marks, reserve: [usize; ZoneKind::COUNT]) -> ()
            = marks.set(to, reserve);
        marks(marks: &watermark::Watermarks) -> Marks = marks.marks();
        reserve_against(marks: &watermark::Watermarks, kind: ZoneKind) -> usize
            = marks.reserve_against(kind);
        hold_back_from(marks: &watermark::Watermarks, request: &Request) -> bool
            = marks.hold_back_from(request);
        floor(marks: &watermark::Watermarks, request: &Request, mark: Mark) -> usize
            = marks.floor(request, mark);
        reserved_mark(mark: usize, context: Context) -> usize
            = watermark::reserved_mark(mark, context);
    }
    Isolation {
        ranges(isolation: &brickyard::isolation::Isolation) -> usize = isolation.ranges().count();
        any(isolation: &brickyard::isolation::Isolation) -> bool = isolation.any();
        contains(isolation: &brickyard::isolation::Isolation, frame: Frame) -> bool
            = isolation.contains(frame);
        overlaps(isolation: &brickyard::isolation::Isolation, range: FrameRange) -> bool
            = isolation.overlaps(range);
        has(isolation: &brickyard::isolation::Isolation, range: FrameRange) -> bool
            = isolation.has(range);
        cuts(isolation: &brickyard::isolation::Isolation, range: FrameRange) -> bool
            = isolation.cuts(range);
        begin(isolation: &brickyard::isolation::Isolation, range: FrameRange)
            -> Result<(), RangeError> = isolation.begin(range);
        end(isolation: &brickyard::isolation::Isolation, range: FrameRange) -> bool
            = isolation.end(range);
    }
    Moves {
        begin(moves: &brickyard::transit::Moves, cpu: usize) -> ()
            = drop(moves.begin(cpu));
        settled(moves: &brickyard::transit::Moves) -> Option<usize> = moves.settled();
        still(moves: &brickyard::transit::Moves, started: usize) -> bool = moves.still(started);
        started(moves: &brickyard::transit::Moves) -> usize = moves.started();
    }
    Patience {
        of(context: Context) -> Reach = Reach::of(context, &Embedder);
        wait_for(patience: &patience::Patience, cpu: usize) -> Option<u32>
            = patience.wait_for(cpu, &Embedder, |waits, _| Some(waits));
        run_on(patience: &patience::Patience, cpu: usize) -> ()
            = patience.run_on(cpu, &Embedder, &mut || ());
        wait_for_moves(patience: &patience::Patience, least: u32) -> ()
            = patience.wait_for_moves(least, &Embedder, || false);
        again(patience: &patience::Patience, order: Order, reach: Reach) -> Option<u32>
            = Looks::new(order, reach, patience).again(Look::Unsettled);
        drained(drained: &[Drained]) -> Drained = drained.iter().copied().sum();
    }
    FreeCounts {
        free_frames(counts: &stats::FreeCounts) -> usize = counts.free_frames();
        blocks(counts: &stats::FreeCounts) -> usize = counts.blocks();
        suitable(counts: &stats::FreeCounts, order: Order) -> usize = counts.suitable(order);
        unusable_index(counts: &stats::FreeCounts, order: Order) -> u32
            = counts.unusable_index(order);
        fragmentation_index(counts: &stats::FreeCounts, order: Order) -> i32
            = counts.fragmentation_index(order);
        extfrag_percent(counts: &stats::FreeCounts, order: Order) -> u32
            = counts.extfrag_percent(order);
    }
    ZoneSnapshot {
        counts(snapshot: &stats::ZoneSnapshot) -> stats::FreeCounts = snapshot.counts();
        counts_to_be_had(snapshot: &stats::ZoneSnapshot) -> stats::FreeCounts
            = snapshot.counts_to_be_had();
    }
    Range {
        blocks(range: FrameRange, max: Order) -> usize = range.blocks(max).count();
        frames(range: FrameRange) -> usize = range.frames().count();
        up_to(order: Order, last: Order) -> usize = order.up_to(last).count();
    }
    Violation {
        unless_equal(ours: usize, theirs: usize) -> Result<(), Broken>
            = Broken::unless_equal("a", "b", ours, theirs);
    }
    texts {
        buddyinfo(zones: &[stats::ZoneSnapshot]) -> bool
            = write!(Nowhere, "{}", stats::BuddyInfo(zones)).is_ok();
        pagetypeinfo(zones: &[stats::ZoneSnapshot]) -> bool
            = write!(Nowhere, "{}", stats::PageTypeInfo(zones)).is_ok();
        unusable_index(zones: &[stats::ZoneSnapshot]) -> bool
            = write!(Nowhere, "{}", stats::UnusableIndex(zones)).is_ok();
        extfrag_index(zones: &[stats::ZoneSnapshot]) -> bool
            = write!(Nowhere, "{}", stats::ExtfragIndex(zones)).is_ok();
        error(error: &brickyard::AllocError) -> bool = write!(Nowhere, "{error}").is_ok();
    }
}

calls! {
    Rows {
        new<'m>(words: &'m mut [brickyard::sync::AtomicUsize])
            -> Result<brickyard_slab::Rows<'m>, brickyard_slab::BuildError>
            = brickyard_slab::Rows::new(words, 12);
    }
    PageCaches {
        page_of(pages: &brickyard_slab::PageCaches<'_>, address: core::ptr::NonNull<u8>)
            -> Option<usize> = pages.page_of(address);
        cache_of(pages: &brickyard_slab::PageCaches<'_>, address: core::ptr::NonNull<u8>)
            -> brickyard_slab::CacheId = pages.cache_of(address);
    }
    Rules {
        parse(text: &'static str)
            -> Result<brickyard_slab::RuleText, brickyard_slab::debug::RuleError>
            = brickyard_slab::RuleText::parse(text);
        checks_of(rules: &brickyard_slab::Rules, name: &str) -> brickyard_slab::Checks
            = rules.checks_of(name);
    }
    Geometry {
        new(size: usize, align: usize)
            -> Result<brickyard_slab::geometry::Geometry, brickyard_slab::geometry::ShapeError>
            = brickyard_slab::geometry::Geometry::new(size, align, 4096);
    }
}
