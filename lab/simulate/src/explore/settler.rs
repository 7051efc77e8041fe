//! Memory that is short: before the machine runs, somebody takes nearly all of it and leaves some
//! hundred frames, a few page blocks as a whole and the rest in holes here and there.
//!
//! That costs the run nothing, and so there can be many page blocks in it of which each counts.
//! Tasks free parts of what was taken now and then; the rest is freed when the machine has ended.

use brickyard::block::Census;
use brickyard::{Frame, FrameRange, Mobility, Order, Request};
use brickyard_classics::LabZone;
use brickyard_machine::Dice;

use super::case::Memory;
use super::frames::{Owner, wrong};
use super::log::Who;
use super::world::World;

/// Frames that are left at most, apart from page blocks that are left as a whole.
const LEFT_MOST: u64 = 400;

impl<Z: LabZone> World<'_, Z> {
    /// Takes nearly all of the memory, where it is to be short.
    pub(crate) fn settle_down(&self) {
        if self.case.memory == Memory::Plenty {
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
            self.settle_in(range, &mut dice);
        }
        let left = 1 + dice.below(LEFT_MOST) as usize;
        let mut freed = 0;
        while freed < left && !blocks.is_empty() {
            let range = blocks[dice.below(blocks.len() as u64) as usize];
            let hole = match range.len() == order.frames() {
                true => Order::new([0, 0, 0, 1, 2, 3][dice.below(6) as usize]),
                // At the edges of a zone it has single frames.
                false => Order::ZERO,
            };
            let frame = range.start.plus(dice.below(range.len() as u64) as usize);
            let block = FrameRange::of_block(frame.align_down(hole), hole);
            if range.covers(block) && self.frames.has(Owner::Settler, block) {
                self.give(block.start, hole, Who::Hook, Owner::Settler);
            }
            // What was freed already counts too, so that this ends.
            freed += hole.frames();
        }
        self.nodes().drain();
        let (allocated, _) = self.frames.in_use();
        self.to_share.set(self.span().len() - allocated);
    }

    /// Takes a page block, or what the zone has of one.
    fn settle_in(&self, range: FrameRange, dice: &mut Dice) {
        let order = self.page_block;
        let zone = self.zone_of(range.start);
        let mobility = Mobility::ALL[dice.below(3) as usize];
        let take = |frame: Frame, order: Order| {
            if let Err(why) = zone.alloc_at(frame, &Request::new(order, mobility)) {
                wrong(format!(
                    "{frame}, order {order}, is free, and was refused: {why}"
                ));
            }
        };
        if range.len() == order.frames() && order <= zone.max_order() {
            take(range.start, order);
        } else {
            range.frames().for_each(|frame| take(frame, Order::ZERO));
        }
        self.supply.remove(self.amount(range));
        self.frames.assign(range, Owner::Settler);
    }

    /// Frees what is left of that once the machine has ended, and looks at everything.
    pub(crate) fn leave(&self) -> Result<Census, String> {
        for frame in self.span().frames() {
            if self.frames.has(Owner::Settler, FrameRange::at(frame, 1)) {
                let answer = self.nodes().free(frame, Order::ZERO);
                answer.map_err(|why| format!("the free of {frame} was refused: {why}"))?;
            }
        }
        self.nodes().drain();
        self.nodes().check().map_err(|why| why.to_string())
    }
}
