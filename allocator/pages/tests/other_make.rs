//! A zone of another make that says what cannot be: whatever asks it comes to an end all the same.

#![cfg(not(loom))]

use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::block::{Census, FreeTable, State, Use};
use brickyard::check::Violation;
use brickyard::node::{Node, Nodes};
use brickyard::patience::Patience;
use brickyard::pressure::{
    Compacted, CompactionState, ContiguousRequest, Migrate, Migration, alloc_contiguous,
    compact_all, compact_for, offline,
};
use brickyard::watermark::{Mark, Watermarks};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Frame, FrameRange, FreeError, MigrateType, Mobility,
    OneCpu, Order, RangeError, Request, Shape, ZoneKind,
};

use crate::support::Hooks;

const SPAN: FrameRange = FrameRange::new(0, 256);

/// What a zone says of a frame, when it was asked so often before.
type Says = fn(Frame, usize) -> Option<(Frame, State)>;

/// More looks than anything here needs.
const LOOKS_MAX: usize = 1 << 20;

/// Says of every frame what `says` makes of it and of how often was asked before.
struct Odd {
    says: Says,
    asked: AtomicUsize,
    watermarks: Watermarks,
    compaction: CompactionState,
}

impl Odd {
    fn new(says: Says) -> Self {
        Self {
            says,
            asked: AtomicUsize::new(0),
            watermarks: Watermarks::new(),
            compaction: CompactionState::new(),
        }
    }
}

impl AnyZone for Odd {
    type Platform = OneCpu;

    fn platform(&self) -> &OneCpu {
        &OneCpu
    }

    fn shape(&self) -> Shape {
        Shape {
            kind: ZoneKind::Normal,
            span: SPAN,
            max_order: Order::new(6),
            page_block_order: Order::new(4),
        }
    }

    fn watermarks(&self) -> &Watermarks {
        &self.watermarks
    }

    fn compaction(&self) -> &CompactionState {
        &self.compaction
    }

    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        Err(self.why_not(request))
    }

    fn alloc_above(&self, _: &Request, _: Mark) -> Option<Frame> {
        None
    }

    fn alloc_drained(&self, _: &Request, _: Mark, _: &Patience) -> Option<Frame> {
        None
    }

    fn alloc_uncached(&self, _: &Request) -> Option<Frame> {
        Some(SPAN.start)
    }

    fn alloc_batch(&self, _: &Request, _: &mut [Frame]) -> usize {
        0
    }

    fn take_at(&self, _: Frame, _: &Request) -> Result<(), RangeError> {
        Ok(())
    }

    fn why_not(&self, _: &Request) -> AllocError {
        AllocError::Exhausted { free: 0, cached: 0 }
    }

    fn free(&self, _: Frame, _: Order) -> Result<(), FreeError> {
        Ok(())
    }

    fn free_uncached(&self, _: Frame, _: Order) -> Result<(), FreeError> {
        Ok(())
    }

    fn free_bulk(&self, _: &[Frame]) -> Result<(), BulkFreeError> {
        Ok(())
    }

    fn free_range(&self, _: FrameRange) -> Result<(), FreeError> {
        Ok(())
    }

    fn drain_with(&self, _patience: &Patience) -> usize {
        usize::MAX
    }

    fn isolate(&self, _: FrameRange) -> Result<(), RangeError> {
        Ok(())
    }

    fn unisolate(&self, _: FrameRange) {}

    fn take_isolated(&self, _: FrameRange, _: Mobility) -> Result<(), RangeError> {
        Err(RangeError::Busy { frame: SPAN.start })
    }

    fn add(&self, _: FrameRange) -> Result<usize, RangeError> {
        Ok(0)
    }

    fn reserve(&self, _: FrameRange) -> Result<usize, RangeError> {
        Ok(0)
    }

    fn unreserve(&self, _: FrameRange) -> Result<usize, RangeError> {
        Ok(0)
    }

    fn remove(&self, _: FrameRange) -> Result<usize, RangeError> {
        Ok(0)
    }

    fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < LOOKS_MAX, "looks without end, at {frame:?}");
        (self.says)(frame, asked)
    }

    fn block_type(&self, _: Frame) -> Option<MigrateType> {
        Some(MigrateType::Movable)
    }

    fn free_frames(&self) -> usize {
        usize::MAX
    }

    fn managed_frames(&self) -> usize {
        0
    }

    fn can_serve(&self, _: &Request) -> bool {
        false
    }

    fn free_table(&self) -> FreeTable {
        [[0; MigrateType::COUNT]; Order::COUNT]
    }

    fn compact(&self, request: &Request, hooks: &impl Migrate) -> Compacted {
        compact_for(self, request, hooks, || false)
    }

    fn check(&self) -> Result<Census, Violation> {
        Ok(Census::default())
    }
}

const ANSWERS: [Migration; 5] = [
    Migration::Moved,
    Migration::Never,
    Migration::Later,
    Migration::NotNeeded,
    Migration::Unknown,
];

/// What a zone may say of a block that lies elsewhere.
const SAYS: [Says; 6] = [
    |_, _| Some((SPAN.start, block(Use::Allocated, 0))),
    |_, _| Some((SPAN.start, block(Use::Free, 3))),
    |_, _| Some((SPAN.start, State::INNER)),
    |_, _| Some((SPAN.start, block(Use::Cached, 0))),
    |frame, asked| (asked % 2 == 0).then(|| (frame, block(Use::Allocated, 0))),
    |frame, asked| {
        let usage = [Use::Free, Use::Allocated, Use::Cached, Use::Reserved][asked % 4];
        Some((frame.align_down(Order::new(5)), block(usage, 2)))
    },
];

const fn block(usage: Use, order: u8) -> State {
    State::new(usage, Order::new(order), MigrateType::Movable)
}

fn each(work: impl Fn(&Odd, &Hooks)) {
    for says in SAYS {
        for answer in ANSWERS {
            work(&Odd::new(says), &Hooks::new(None, Some(answer)));
        }
    }
}

#[test]
fn contiguous_ranges_are_looked_for_to_an_end() {
    each(|zone, hooks| {
        let request = ContiguousRequest::new(48, SPAN);
        let _ = alloc_contiguous(zone, &request, hooks);
    });
}

#[test]
fn memory_is_taken_away_or_not() {
    each(|zone, hooks| {
        let _ = offline(zone, FrameRange::new(64, 128), hooks);
    });
}

#[test]
fn compaction_ends() {
    each(|zone, hooks| {
        for order in [0, 1, 4, 6] {
            let request = Request::new(Order::new(order), Mobility::Movable);
            let _ = zone.compact(&request, hooks);
        }
        let _ = compact_all(zone, hooks);
    });
}

#[test]
fn a_batch_goes_to_zones_that_do_not_know_what_is_theirs() {
    // One says at every other look that the frame is its own, the other always.
    let zones = [SAYS[4], SAYS[0]].map(Odd::new);
    let nodes = [Node::new(0, &zones)];
    let _ = Nodes::new(&nodes).free_bulk(&[Frame::new(3); 5]);
}
