//! Runs operations on an allocator and on the model, and compares every result and every counter.

use core::cell::{Cell, RefCell};
use core::slice;

use brickyard::AnyZone;
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{
    ContiguousRequest, Migrate, Migration, Need, Reclaim, alloc_contiguous, offline,
};
use brickyard::stats::ZoneSnapshot;
use brickyard::{
    Context, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError, Request,
};
use brickyard_designs::classics::{GfpFlags, LabZone};

use crate::model::{Model, ModelZone};
use crate::tally::tally;
use crate::{Bytes, ManyCpus, Operation};

tally! {
    /// What a run of operations did, so that a test can check that it was not vacuous.
    pub struct Driven: usize {
        /// Operations run.
        operations,
        /// Requests served.
        served,
        /// Requests refused.
        refused,
        /// Frees accepted.
        freed,
        /// Frees refused.
        bad_frees,
        /// Blocks moved by the hooks.
        moved,
    }
}

/// The embedder of the test: its blocks are the model's, and it moves and frees them at random.
struct Embedder<'n, 'z, Z: LabZone> {
    node: &'n Node<'z, Z>,
    model: RefCell<Model>,
    dice: Cell<u32>,
    moved: Cell<usize>,
}

impl<Z: LabZone> Embedder<'_, '_, Z> {
    fn roll(&self, sides: u32) -> u32 {
        // A linear congruence; its upper bits are random enough for dice.
        let next = self
            .dice
            .get()
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.dice.set(next);
        (next >> 16) % sides
    }

    fn zone_of(&self, frame: Frame) -> Option<&Z> {
        self.node
            .zones()
            .iter()
            .find(|zone| zone.span().contains(frame))
    }
}

impl<Z: LabZone> Migrate for Embedder<'_, '_, Z> {
    fn can_move(&self, frame: Frame, order: Order) -> bool {
        // A block that the model does not have is in a cache.
        let block = self.model.borrow().block_starting_at(frame);
        block.is_none_or(|block| block.order == order && block.mobility == Mobility::Movable)
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        let mut model = self.model.borrow_mut();
        let Some(block) = model.block_starting_at(from) else {
            assert!(
                !Z::DISTINGUISHES_CACHED,
                "request to move {from}, where no block starts"
            );
            // It is in a cache.
            return Migration::Unknown;
        };
        assert_eq!(block.mobility, Mobility::Movable, "{from} may not be moved");
        assert_eq!(block.order, order, "{from} has another order");
        match self.roll(8) {
            0 => Migration::Later,
            1 => Migration::Never,
            2 => Migration::Unknown,
            3 => {
                assert_eq!(model.free(from, order), Ok(()));
                Migration::NotNeeded
            }
            _ => {
                model.migrate(from, order, to);
                self.moved.set(self.moved.get() + 1);
                Migration::Moved
            }
        }
    }
}

impl<Z: LabZone> Reclaim for Embedder<'_, '_, Z> {
    /// Frees one movable block now and then, through the allocator: hooks may call it.
    fn reclaim(&self, _need: &Need) -> usize {
        if self.roll(3) > 0 {
            return 0;
        }
        let mut model = self.model.borrow_mut();
        let victim = model
            .blocks()
            .find(|(_, block)| block.mobility == Mobility::Movable);
        let Some((frame, block)) = victim else {
            return 0;
        };
        let zone = self.zone_of(frame);
        assert_eq!(zone.map(|zone| zone.free(frame, block.order)), Some(Ok(())));
        assert_eq!(model.free(frame, block.order), Ok(()));
        block.order.frames()
    }
}

/// Runs the operations encoded in `bytes` on the zones of `node`, whose memory is all free, and on
/// a model of them.
///
/// After each, every counter of the allocator is compared with the model and every invariant is
/// checked.
///
/// # Panics
/// When the allocator returns a wrong result.
pub fn drive<Z: LabZone>(node: &Node<'_, Z>, platform: &ManyCpus, bytes: &[u8]) -> Driven {
    let zones = node.zones().iter().map(|zone| ModelZone {
        kind: zone.kind(),
        span: zone.span(),
    });
    let Some(max) = node.zones().iter().map(AnyZone::max_order).max() else {
        return Driven::default();
    };
    let mut model = Model::new(zones.collect(), max);
    for zone in node.zones() {
        model.add(zone.span());
    }
    let embedder = Embedder {
        node,
        model: RefCell::new(model),
        dice: Cell::new(bytes.len() as u32),
        moved: Cell::new(0),
    };
    let mut driver = Driver {
        nodes: Nodes::with_hooks(slice::from_ref(node), &embedder, SlowPath::MODERN),
        embedder: &embedder,
        platform,
        max,
        driven: Driven::default(),
    };
    driver.run(Bytes::new(bytes));
    Driven {
        moved: embedder.moved.get(),
        ..driver.driven
    }
}

struct Driver<'e, 'n, 'z, Z: LabZone> {
    nodes: Nodes<'n, Z, &'e Embedder<'n, 'z, Z>>,
    embedder: &'e Embedder<'n, 'z, Z>,
    platform: &'e ManyCpus,
    max: Order,
    driven: Driven,
}

impl<Z: LabZone> Driver<'_, '_, '_, Z> {
    fn run(&mut self, mut bytes: Bytes<'_>) {
        let spans: Vec<FrameRange> = self.nodes.zones().map(AnyZone::span).collect();
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return;
        };
        let span = FrameRange {
            start: first.start,
            end: last.end,
        };
        self.compare(&Operation::Drain);
        while !bytes.is_empty() {
            let operation = Operation::read(&mut bytes, span, self.max);
            self.platform.begin_operation();
            self.step(&operation);
            self.driven.operations += 1;
            self.compare(&operation);
        }
    }

    fn step(&mut self, operation: &Operation) {
        match *operation {
            Operation::SwitchTo(cpu) => {
                // An interrupt ends on the CPU where it began.
                self.platform.set_interrupt(false);
                self.platform.switch_to(cpu);
            }
            Operation::Interrupt(on) => self.platform.set_interrupt(on),
            Operation::Alloc(request) => self.alloc(&self.in_this_context(request)),
            Operation::AllocBulk(request, count) => {
                self.alloc_bulk(&self.in_this_context(request), count);
            }
            Operation::AllocAt(frame, request) => self.alloc_at(frame, &request),
            Operation::Free {
                block,
                smaller,
                part,
            } => self.free_part(block, smaller, part),
            Operation::FreeAnything(frame, order) => self.free(frame, order),
            Operation::FreeBulk(from, count, bad) => self.free_bulk(from, count, bad),
            Operation::FreeRange(range) => self.free_range(range),
            Operation::AllocContiguous(frames, align, boundary, mobility) => {
                self.alloc_contiguous(frames, align, boundary, mobility);
            }
            Operation::AllocFrom(request, flags) => {
                self.alloc_from(&self.in_this_context(request), flags);
            }
            Operation::Drain => {
                self.nodes.drain();
            }
            Operation::Tick => self.nodes.zones().for_each(LabZone::tick),
            Operation::Reclaiming(reclaiming) => {
                for zone in self.nodes.zones() {
                    zone.set_reclaiming(reclaiming);
                }
            }
            Operation::Compact => self.without_interrupts(|this| {
                for zone in this.nodes.zones() {
                    compact_all(zone, this.embedder);
                }
            }),
            Operation::Add(range)
            | Operation::Remove(range)
            | Operation::Reserve(range)
            | Operation::Unreserve(range)
            | Operation::Offline(range) => self.administer(operation, range),
        }
    }

    /// Runs `work` outside any interrupt: the hooks are for callers that may sleep.
    fn without_interrupts(&mut self, work: impl FnOnce(&mut Self)) {
        self.platform.set_interrupt(false);
        work(self);
    }

    /// Returns the request as made in an interrupt, if there is one, where sleeping is not allowed.
    fn in_this_context(&self, request: Request) -> Request {
        if self.platform.is_in_interrupt() {
            request.in_context(Context::Interrupt)
        } else {
            request
        }
    }

    /// Returns true if a request may fail although it could be served: in an interrupt; for an
    /// atomic request, if caches hold frames; and above the size of a page block, if blocks are set
    /// aside, which do not merge with others.
    fn may_miss(&self, request: &Request) -> bool {
        let cached = || self.nodes.zones().any(|zone| zone.cached_frames() > 0);
        let set_aside = |snapshot: ZoneSnapshot| {
            request.order > snapshot.page_block_order
                && snapshot.blocks[MigrateType::HighAtomic.index()] > 0
        };
        match request.context {
            _ if self.platform.is_in_interrupt() => true,
            Context::Interrupt => true,
            Context::Atomic if cached() => true,
            _ => self.nodes.snapshots().any(set_aside),
        }
    }

    fn alloc(&mut self, request: &Request) {
        match self.nodes.alloc(0, request) {
            Ok(frame) => self.got(request, frame),
            Err(why) => {
                self.driven.refused += 1;
                let model = self.embedder.model.borrow();
                assert!(
                    self.may_miss(request) || !model.has_right_answer(request),
                    "{request:?} was refused ({why}), but could have been served"
                );
            }
        }
    }

    /// The design may refuse what could be served: it may leave caches alone, and care for page
    /// blocks.
    fn alloc_from(&mut self, request: &Request, flags: GfpFlags) {
        let flags = GfpFlags {
            reclaims: flags.reclaims && request.context == Context::MaySleep,
            ..flags
        };
        match Z::alloc_from(&self.nodes, 0, request, flags) {
            Ok(frame) => self.got(request, frame),
            Err(_) => self.driven.refused += 1,
        }
    }

    fn got(&mut self, request: &Request, frame: Frame) {
        let mut model = self.embedder.model.borrow_mut();
        assert!(
            model.is_right_answer(request, frame),
            "{frame} does not fit {request:?}"
        );
        model.take(frame, request.order, request.mobility);
        self.driven.served += 1;
    }

    fn alloc_bulk(&mut self, request: &Request, count: usize) {
        let single = request.single();
        let mut out = vec![Frame::new(usize::MAX); count];
        let got = self.nodes.alloc_bulk(0, request, &mut out).unwrap_or(0);
        for &frame in &out[..got] {
            self.got(&single, frame);
        }
        let model = self.embedder.model.borrow();
        assert!(
            got == count || self.may_miss(request) || !model.has_right_answer(&single),
            "{got} of {count} frames, but more could have been allocated"
        );
    }

    fn alloc_at(&mut self, frame: Frame, request: &Request) {
        let block = FrameRange::of_block(frame, request.order);
        let Some(zone) = self.nodes.zone_of(frame) else {
            return;
        };
        let mut model = self.embedder.model.borrow_mut();
        let possible =
            zone.span().covers(block) && frame.is_aligned(request.order) && model.is_free(block);
        match zone.alloc_at(frame, request) {
            Ok(()) => {
                assert!(possible, "{block:?} was allocated, but is not free");
                model.take(frame, request.order, request.mobility);
                self.driven.served += 1;
            }
            Err(why) => {
                // It is in a cache that a caller that may not sleep does not reach.
                let out_of_reach = request.context != Context::MaySleep && zone.cached_frames() > 0;
                assert!(
                    !possible || out_of_reach || self.platform.is_in_interrupt(),
                    "{block:?} is free, but was refused: {why}"
                );
            }
        }
    }

    fn free_part(&mut self, block: usize, smaller: u8, part: usize) {
        let Some((first, block)) = self.embedder.model.borrow().nth_block(block) else {
            return;
        };
        let order = Order::new(block.order.get().saturating_sub(smaller));
        let parts = block.order.frames() / order.frames();
        self.free(first.plus(part % parts * order.frames()), order);
    }

    /// Drains all caches if the store does not distinguish cached frames: else a double free of
    /// such a frame would not be detected at once.
    fn drain_if_indistinct(&self) {
        if !Z::DISTINGUISHES_CACHED {
            self.platform.set_interrupt(false);
            self.nodes.drain();
        }
    }

    fn free(&mut self, frame: Frame, order: Order) {
        let is_free = self
            .embedder
            .model
            .borrow()
            .is_free(FrameRange::at(frame, 1));
        if is_free {
            self.drain_if_indistinct();
        }
        let answer = self.nodes.free(frame, order);
        let right = self.embedder.model.borrow_mut().free(frame, order);
        assert_eq!(answer, right, "the free of {frame}, order {order}");
        match right {
            Ok(()) => self.driven.freed += 1,
            Err(_) => self.driven.bad_frees += 1,
        }
    }

    fn free_bulk(&mut self, from: usize, count: usize, bad: Option<Frame>) {
        let mut model = self.embedder.model.borrow_mut();
        let singles = model
            .blocks()
            .filter(|(_, block)| block.order == Order::ZERO);
        let singles: Vec<Frame> = singles.map(|(frame, _)| frame).collect();
        let skip = from % singles.len().max(1);
        let frames = singles.into_iter().skip(skip).take(count);
        let mut frames: Vec<Frame> = frames.collect();
        self.drain_if_indistinct();
        if let Some(bad) = bad
            && (Z::DISTINGUISHES_CACHED || !frames.contains(&bad))
        {
            frames.push(bad);
        }
        let answer = self.nodes.free_bulk(&frames);
        let mut freed = 0;
        let mut error = None;
        for &frame in &frames {
            error = model.free(frame, Order::ZERO).err();
            if error.is_some() {
                break;
            }
            freed += 1;
        }
        self.driven.freed += freed;
        assert_eq!(
            answer.err().map(|bad| (bad.freed, bad.error)),
            error.map(|e| (freed, e))
        );
    }

    fn free_range(&mut self, range: FrameRange) {
        let Some(zone) = self.nodes.zone_of(range.start) else {
            return;
        };
        let range = range.intersection(zone.span());
        self.drain_if_indistinct();
        let answer = zone.free_range(range);
        let right = self.embedder.model.borrow_mut().free_range(range);
        assert_eq!(answer.is_ok(), right, "the free of {range:?}: {answer:?}");
        assert!(!matches!(answer, Err(FreeError::WrongOrder { .. })));
    }

    fn alloc_contiguous(&mut self, frames: usize, align: u8, boundary: u8, mobility: Mobility) {
        self.platform.set_interrupt(false);
        let Some(zone) = self.nodes.zones().last() else {
            return;
        };
        let mut request = ContiguousRequest::new(frames, zone.span()).aligned(1 << align);
        request.mobility = mobility;
        if boundary > 0 {
            request = request.not_across(1 << boundary);
        }
        let possible = self.has_contiguous(&request, boundary);
        match alloc_contiguous(zone, &request, self.embedder) {
            Ok(range) => {
                assert_eq!(range.len(), frames);
                assert_eq!(range.start.number() % request.align, 0);
                let last = range.end.number() - 1;
                assert!(boundary == 0 || range.start.number() >> boundary == last >> boundary);
                let mut model = self.embedder.model.borrow_mut();
                assert!(model.is_free(range), "{range:?} is not free");
                model.take_range(range, mobility);
                self.driven.served += 1;
            }
            Err(why) => {
                self.driven.refused += 1;
                assert!(!possible, "{request:?} was refused: {why}");
            }
        }
    }

    /// Returns true if there is a wholly free place for `request`.
    fn has_contiguous(&self, request: &ContiguousRequest, boundary: u8) -> bool {
        let model = self.embedder.model.borrow();
        let whole = request.within;
        let first = whole.start.number().next_multiple_of(request.align);
        let crosses = |range: FrameRange| {
            boundary > 0 && range.start.number() >> boundary != (range.end.number() - 1) >> boundary
        };
        (boundary == 0 || 1 << boundary >= request.frames)
            && (first..whole.end.number())
                .step_by(request.align)
                .map(|start| FrameRange::at(Frame::new(start), request.frames))
                .any(|range| whole.covers(range) && !crosses(range) && model.is_free(range))
    }

    fn administer(&mut self, operation: &Operation, range: FrameRange) {
        let Some(zone) = self.nodes.zone_of(range.start) else {
            return;
        };
        if !zone.span().covers(range) {
            let span = zone.span();
            assert_eq!(zone.add(range), Err(RangeError::OutsideSpan { span }));
            return;
        }
        // In an interrupt some caches are out of reach; administration is done outside of
        // interrupts.
        self.platform.set_interrupt(false);
        let model = &self.embedder.model;
        match operation {
            Operation::Add(_) => assert_eq!(zone.add(range), Ok(model.borrow_mut().add(range))),
            Operation::Unreserve(_) => {
                assert_eq!(
                    zone.unreserve(range),
                    Ok(model.borrow_mut().unreserve(range))
                );
            }
            Operation::Remove(_) => {
                assert_eq!(zone.remove(range).ok(), model.borrow_mut().remove(range));
            }
            Operation::Reserve(_) => {
                assert_eq!(zone.reserve(range).ok(), model.borrow_mut().reserve(range));
            }
            _ => match offline(zone, range, self.embedder) {
                Ok(frames) => assert_eq!(Some(frames), model.borrow_mut().remove(range)),
                Err(why) => {
                    let in_use = !model.borrow().is_free(range);
                    assert!(
                        in_use || range.is_empty(),
                        "{range:?} is free, but was refused: {why}"
                    );
                }
            },
        }
    }

    /// Compares every counter, and checks every invariant.
    fn compare(&self, after: &Operation) {
        assert!(
            self.platform.is_at_rest(),
            "masked or pinned after {after:?}"
        );
        let census = match self.nodes.check() {
            Ok(census) => census,
            Err(violation) => panic!("after {after:?}: {violation}"),
        };
        let model = self.embedder.model.borrow();
        assert_eq!(census.isolated, 0, "isolated frames after {after:?}");
        assert_eq!(
            census.free + census.cached,
            model.free_frames(),
            "free after {after:?}"
        );
        assert_eq!(
            census.allocated,
            model.frames_in_use(),
            "in use after {after:?}"
        );
        assert_eq!(
            census.reserved,
            model.reserved_frames(),
            "reserved after {after:?}"
        );
        let free: usize = self.nodes.zones().map(AnyZone::free_frames).sum();
        let cached: usize = self.nodes.zones().map(AnyZone::cached_frames).sum();
        assert_eq!(
            (free, cached),
            (census.free, census.cached),
            "hints after {after:?}"
        );
    }
}
