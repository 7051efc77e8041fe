//! Short memory: before the machine runs, nearly all of it is allocated. Some hundred frames stay
//! free, a few page blocks as a whole and the rest in holes here and there.
//!
//! This takes no simulated time, so there can be many page blocks of which each one matters. Tasks
//! free parts of what was allocated now and then; the rest is freed when the machine has ended.

use brickyard::block::Census;
use brickyard::{Frame, FrameRange, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_run::Dice;

use super::case::FreeMemory;
use super::frames::{Owner, wrong};
use super::log::Who;
use super::world::World;

/// The most frames that are left free, apart from page blocks that are left as a whole.
const LEFT_MOST: u64 = 400;

impl<Z: LabZone> World<'_, Z> {
    /// Allocates nearly all of the memory, where it is to be short.
    pub(crate) fn prefill(&self) {
        if self.case.memory == FreeMemory::Plenty {
            return;
        }
        let mut dice = self.case.dice(u64::MAX - 4);
        let order = self.page_block;
        let mut blocks = Vec::new();
        for zone in self.node.zones() {
            let span = zone.span();
            let mut start = span.start;
            while start < span.end {
                let end = start.align_down(order).plus(order.frames()).min(span.end);
                blocks.push(FrameRange { start, end });
                start = end;
            }
        }
        let whole = dice.below(4) as usize;
        for _ in 0..whole.min(blocks.len() / 2) {
            blocks.swap_remove(dice.below(blocks.len() as u64) as usize);
        }
        for &range in &blocks {
            self.prefill_block(range, &mut dice);
        }
        let left = 1 + dice.below(LEFT_MOST) as usize;
        let mut freed = 0;
        while freed < left && !blocks.is_empty() {
            let range = blocks[dice.below(blocks.len() as u64) as usize];
            let hole = match range.len() == order.frames() {
                true => Order::new([0, 0, 0, 1, 2, 3][dice.below(6) as usize]),
                // At the edges of a zone there are only single frames.
                false => Order::ZERO,
            };
            let frame = range.start.plus(dice.below(range.len() as u64) as usize);
            let block = FrameRange::of_block(frame.align_down(hole), hole);
            if range.covers(block) && self.frames.has(Owner::Prefill, block) {
                self.give(block.start, hole, Who::Hook, Owner::Prefill);
            }
            // Counts frames that were freed already too, so that this ends.
            freed += hole.frames();
        }
        self.nodes().drain();
        let (allocated, _) = self.frames.in_use();
        self.to_share.set(self.span().len() - allocated);
    }

    /// Allocates a page block, or the zone's part of one.
    fn prefill_block(&self, range: FrameRange, dice: &mut Dice) {
        let order = self.page_block;
        let zone = self.zone_of(range.start);
        let mobility = Mobility::ALL[dice.below(3) as usize];
        let take = |frame: Frame, order: Order| {
            if let Err(why) = zone.alloc_at(frame, &Request::new(order, mobility)) {
                wrong(format!(
                    "{frame}, order {order}, is free, but was refused: {why}"
                ));
            }
        };
        if range.len() == order.frames() && order <= zone.max_order() {
            take(range.start, order);
        } else {
            range.frames().for_each(|frame| take(frame, Order::ZERO));
        }
        self.supply.remove(self.amount(range));
        self.frames.assign(range, Owner::Prefill);
    }

    /// Frees the rest of it once the machine has ended, and checks every invariant.
    pub(crate) fn free_prefill(&self) -> Result<Census, String> {
        for frame in self.span().frames() {
            if self.frames.has(Owner::Prefill, FrameRange::at(frame, 1)) {
                let answer = self.nodes().free(frame, Order::ZERO);
                answer.map_err(|why| format!("the free of {frame} was refused: {why}"))?;
            }
        }
        self.nodes().drain();
        self.nodes().check().map_err(|why| why.to_string())
    }
}
