//! The naive model: a map of frames, simple and slow.

use std::collections::BTreeMap;

use brickyard::{Frame, FrameRange, FreeError, Mobility, Order, Request, ZoneKind};

/// What a frame is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Absent,
    Free,
    Reserved,
    Taken,
}

/// A zone of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelZone {
    pub(crate) kind: ZoneKind,
    pub(crate) span: FrameRange,
}

/// A block in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) order: Order,
    pub(crate) mobility: Mobility,
}

/// Which frame is used for what.
#[derive(Debug)]
pub struct Model {
    first: usize,
    frames: Vec<Use>,
    zones: Vec<ModelZone>,
    max_order: Order,
    blocks: BTreeMap<Frame, Block>,
}

impl Model {
    pub(crate) fn new(zones: Vec<ModelZone>, max_order: Order) -> Self {
        let first = zones.iter().map(|zone| zone.span.start).min();
        let end = zones.iter().map(|zone| zone.span.end).max();
        let (Some(first), Some(end)) = (first, end) else {
            panic!("a machine has zones");
        };
        Self {
            first: first.number(),
            frames: vec![Use::Absent; end.number() - first.number()],
            zones,
            max_order,
            blocks: BTreeMap::new(),
        }
    }

    fn get(&self, frame: Frame) -> Use {
        frame
            .number()
            .checked_sub(self.first)
            .and_then(|index| self.frames.get(index).copied())
            .unwrap_or(Use::Absent)
    }

    fn set(&mut self, range: FrameRange, to: Use) {
        for frame in range.frames() {
            self.frames[frame.number() - self.first] = to;
        }
    }

    fn count(&self, wanted: Use) -> usize {
        self.frames.iter().filter(|&&usage| usage == wanted).count()
    }

    fn all(&self, range: FrameRange, wanted: Use) -> bool {
        range.frames().all(|frame| self.get(frame) == wanted)
    }

    /// Returns how many frames are free.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.count(Use::Free)
    }

    /// Returns how many frames are in use.
    #[must_use]
    pub fn frames_in_use(&self) -> usize {
        self.count(Use::Taken)
    }

    /// Returns how many frames are reserved.
    #[must_use]
    pub fn reserved_frames(&self) -> usize {
        self.count(Use::Reserved)
    }

    /// Iterates over the blocks in use.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (Frame, Block)> + '_ {
        self.blocks.iter().map(|(&frame, &block)| (frame, block))
    }

    pub(crate) fn nth_block(&self, n: usize) -> Option<(Frame, Block)> {
        let len = self.blocks.len().max(1);
        self.blocks().nth(n % len)
    }

    fn may_serve(zone: &ModelZone, request: &Request) -> bool {
        zone.kind <= request.highest
            && (zone.kind != ZoneKind::Movable || request.mobility == Mobility::Movable)
    }

    /// Returns true if the block at `frame` is a right result of `request`.
    #[must_use]
    pub fn is_right_answer(&self, request: &Request, frame: Frame) -> bool {
        let block = FrameRange::of_block(frame, request.order);
        self.zones
            .iter()
            .any(|zone| zone.span.covers(block) && Self::may_serve(zone, request))
            && request.limit.is_none_or(|limit| block.end <= limit)
            && frame.is_aligned(request.order)
            && self.all(block, Use::Free)
    }

    /// Returns true if any block is a right result of `request`.
    #[must_use]
    pub fn has_right_answer(&self, request: &Request) -> bool {
        let size = request.order.frames();
        let first = self.first.next_multiple_of(size);
        request.order <= self.max_order
            && (first..self.first + self.frames.len())
                .step_by(size)
                .any(|frame| self.is_right_answer(request, Frame::new(frame)))
    }

    /// Takes a block into use.
    pub(crate) fn take(&mut self, frame: Frame, order: Order, mobility: Mobility) {
        self.set(FrameRange::of_block(frame, order), Use::Taken);
        self.blocks.insert(frame, Block { order, mobility });
    }

    /// Takes all of the range into use, as aligned blocks.
    pub(crate) fn take_range(&mut self, range: FrameRange, mobility: Mobility) {
        for (frame, order) in range.blocks(self.max_order) {
            self.take(frame, order, mobility);
        }
    }

    pub(crate) fn is_free(&self, range: FrameRange) -> bool {
        self.all(range, Use::Free)
    }

    /// Returns the block that contains a frame in use.
    fn block_at(&self, frame: Frame) -> Option<(Frame, Block)> {
        let (&first, &block) = self.blocks.range(..=frame).next_back()?;
        FrameRange::of_block(first, block.order)
            .contains(frame)
            .then_some((first, block))
    }

    /// Frees an aligned part of a block, and returns the right result. On success the rest of the
    /// block becomes blocks of its own.
    pub(crate) fn free(&mut self, frame: Frame, order: Order) -> Result<(), FreeError> {
        match self.get(frame) {
            Use::Absent | Use::Reserved => return Err(FreeError::NotOwned),
            Use::Free => return Err(FreeError::DoubleFree),
            Use::Taken => {}
        }
        let Some((first, block)) = self.block_at(frame) else {
            panic!("a frame in use is in a block");
        };
        if order > block.order || !frame.is_aligned(order) {
            return Err(FreeError::WrongOrder {
                allocated: block.order,
            });
        }
        self.blocks.remove(&first);
        let whole = FrameRange::of_block(first, block.order);
        let part = FrameRange::of_block(frame, order);
        let below = FrameRange::new(whole.start.number(), part.start.number());
        let above = FrameRange::new(part.end.number(), whole.end.number());
        for rest in [below, above] {
            self.take_range(rest, block.mobility);
        }
        self.set(part, Use::Free);
        Ok(())
    }

    /// Frees a range of blocks; returns whether that has to succeed.
    pub(crate) fn free_range(&mut self, range: FrameRange) -> bool {
        if range.is_empty() || !self.all(range, Use::Taken) {
            return range.is_empty();
        }
        for frame in range.frames() {
            assert_eq!(self.free(frame, Order::ZERO), Ok(()));
        }
        // What is left of a block outside the range is in aligned blocks, as in the allocator.
        true
    }

    /// Moves the contents of a block in use.
    pub(crate) fn migrate(&mut self, from: Frame, order: Order, to: Frame) {
        let Some(block) = self.blocks.remove(&from) else {
            panic!("only blocks in use are moved");
        };
        assert_eq!(block.order, order);
        self.set(FrameRange::of_block(from, order), Use::Free);
        assert!(self.is_free(FrameRange::of_block(to, order)));
        self.take(to, order, block.mobility);
    }

    pub(crate) fn block_starting_at(&self, frame: Frame) -> Option<Block> {
        self.blocks.get(&frame).copied()
    }

    /// Makes all absent frames free. Returns how many there were.
    pub(crate) fn add(&mut self, range: FrameRange) -> usize {
        self.change(range, Use::Absent, Use::Free)
    }

    /// Makes all frames absent, if none is in use. Returns how many there were.
    pub(crate) fn remove(&mut self, range: FrameRange) -> Option<usize> {
        if range.frames().any(|frame| self.get(frame) == Use::Taken) {
            return None;
        }
        Some(
            self.change(range, Use::Free, Use::Absent)
                + self.change(range, Use::Reserved, Use::Absent),
        )
    }

    /// Reserves all free frames, if none is in use. Returns how many there were.
    pub(crate) fn reserve(&mut self, range: FrameRange) -> Option<usize> {
        if range.frames().any(|frame| self.get(frame) == Use::Taken) {
            return None;
        }
        Some(self.change(range, Use::Free, Use::Reserved))
    }

    /// Makes all reserved frames free. Returns how many there were.
    pub(crate) fn unreserve(&mut self, range: FrameRange) -> usize {
        self.change(range, Use::Reserved, Use::Free)
    }

    fn change(&mut self, range: FrameRange, from: Use, to: Use) -> usize {
        let mut changed = 0;
        for frame in range.frames() {
            if self.get(frame) == from {
                self.set(FrameRange::at(frame, 1), to);
                changed += 1;
            }
        }
        changed
    }
}
