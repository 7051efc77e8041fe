//! The rare operations of a task: ranges, taking memory away, compaction, readings, invalid frees.

use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{ContiguousRequest, offline};
use brickyard::{Context, FrameRange, FreeError, Order, RangeError, Request};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::bulk::MeterReading;
use brickyard_machine::current;

use super::case::Marks;
use super::covered::Event;
use super::frames::{Owner, wrong};
use super::log::About;
use super::worker::{HeldBlock, Worker};
use super::world::{World, in_context};

/// The most frames of a range.
const RANGE_MOST: usize = 40;

/// Page blocks in which a contiguous range is searched: where pages cannot be moved each place is
/// tried, which takes long.
const CONTIGUOUS_BLOCKS: usize = 4;

/// The most frames of a contiguous range of whole page blocks.
const CONTIGUOUS_MOST: usize = 256;

/// The most cycles that memory is away for.
const AWAY_CYCLES: u64 = 30_000;

/// `min_free_kbytes` at most, in frames of 4 KiB: less than a tenth of the memory.
const MIN_FREE_KBYTES: usize = 200;

impl<Z: LabZone> Worker<'_, '_, Z> {
    pub(super) fn alloc_at(&mut self) {
        let order = match self.dice.below(4) {
            0 => self.world.page_block,
            _ => Order::new(self.dice.below(4) as u8),
        };
        let mut frame = self.frame();
        if !self.dice.chance(8) {
            frame = frame.align_down(order);
        }
        let world = self.world;
        if !world.span().contains(frame) {
            return;
        }
        let zone = world.zone_of(frame);
        let mobility = self.mobility();
        let contexts = [Context::MaySleep, Context::Atomic, Context::Interrupt];
        let context = contexts[self.roll(3)];
        let request = Request::new(order, mobility).in_context(context);
        self.note("requests exactly", About::Block(frame, order));
        let search = world.supply.begin(order.frames());
        let answer = in_context(context, || zone.alloc_at(frame, &request));
        let block = FrameRange::of_block(frame, order);
        let left = match answer {
            Ok(()) => world.left_of(order.frames(), block),
            Err(_) => [order.frames() as i64; 3],
        };
        let _ = world.supply.end(search, left);
        if context != Context::MaySleep {
            world.counts.count(Event::AtWithoutWaiting);
        }
        if answer.is_err() {
            return;
        }
        if !frame.is_aligned(order) || !zone.span().covers(block) {
            wrong(format!(
                "{block:?} was allocated, but is not a block of the zone"
            ));
        }
        world.frames.claim(block, Owner::Allocator, self.owner);
        world.counts.count(Event::At);
        self.hold(HeldBlock::Block(frame, order));
    }

    pub(super) fn contiguous(&mut self) {
        let world = self.world;
        let Some(zone) = world.node.zones().last() else {
            return;
        };
        let mut frames = 1 + self.roll(RANGE_MOST);
        let mut align = 1 << self.roll(5);
        let block = world.page_block.frames();
        let whole_blocks = self.dice.chance(3);
        if whole_blocks {
            let blocks = 1 + self.roll((CONTIGUOUS_MOST / block).clamp(1, 2));
            (frames, align) = (block * blocks, block);
        }
        let mut within = zone.span();
        if within.len() > CONTIGUOUS_BLOCKS * block {
            let start = within.start.plus(self.roll(within.len()));
            within = FrameRange::at(start, CONTIGUOUS_BLOCKS * block).intersection(within);
        }
        let mut request = ContiguousRequest::new(frames, within).aligned(align);
        request.mobility = self.mobility();
        if self.dice.chance(3) && !whole_blocks {
            request = request.not_across(64);
        }
        self.note("requests adjacent", About::Count(frames));
        world.supply.disturb();
        let answer = self.nodes().alloc_contiguous(0, &request);
        if let Ok(range) = answer {
            world.supply.remove(world.amount(range));
        }
        world.settle();
        let Ok(range) = answer else {
            return;
        };
        self.note("gets", About::Range(range));
        if range.len() != frames
            || !within.covers(range)
            || !range.start.number().is_multiple_of(align)
        {
            wrong(format!("{range:?} does not satisfy {request:?}"));
        }
        world.frames.claim(range, Owner::Allocator, self.owner);
        world.counts.count(Event::Contiguous);
        world
            .counts
            .add(Event::ContiguousBlocks, whole_blocks.into());
        self.hold(HeldBlock::Range(range));
    }

    pub(super) fn free_range(&self, range: FrameRange) {
        let world = self.world;
        world.frames.release(range, self.owner, Owner::Allocator);
        self.note("frees", About::Range(range));
        if let Err(why) = self.nodes().free_range(range) {
            wrong(format!("the free of {range:?} was refused: {why}"));
        }
        world.supply.add(world.amount(range));
        world.counts.count(Event::Freed);
    }

    pub(super) fn drain(&self) {
        self.note("drains", About::Nothing);
        self.world.counts.count(Event::Drains);
        self.nodes().drain();
    }

    pub(super) fn compact(&self) {
        self.note("compacts", About::Nothing);
        self.world.counts.count(Event::Compactions);
        self.world.supply.disturb();
        for zone in self.world.node.zones() {
            compact_all(zone, self.world);
        }
        self.world.settle();
    }

    /// Takes a range offline, and brings it back.
    pub(super) fn offline(&mut self) {
        self.administer(
            ("takes offline", Event::Offline),
            |world, range| offline(zone_at(world, range), range, world),
            |world, range| zone_at(world, range).add(range),
        );
    }

    /// Removes a range if it is free, and adds it again.
    pub(super) fn remove(&mut self) {
        self.administer(
            ("removes", Event::Removed),
            |world, range| zone_at(world, range).remove(range),
            |world, range| zone_at(world, range).add(range),
        );
    }

    /// Reserves a range, and ends the reservation.
    pub(super) fn reserve(&mut self) {
        self.administer(
            ("reserves", Event::Reserved),
            |world, range| zone_at(world, range).reserve(range),
            |world, range| zone_at(world, range).unreserve(range),
        );
    }

    /// Returns a small range of any alignment, or one or two page blocks.
    fn range_to_take_away(&mut self) -> FrameRange {
        let world = self.world;
        let mut start = self.frame_of_interest();
        let zone = world.zone_of(start).span();
        let mut frames = 1 + self.roll(RANGE_MOST);
        if self.dice.chance(2) {
            start = start.align_down(world.page_block).max(zone.start);
            frames = world.page_block.frames() * (1 + self.roll(2));
        }
        FrameRange::at(start, frames).intersection(zone)
    }

    /// Takes a range away from the allocator, if possible, and returns it a little later.
    fn administer(
        &mut self,
        (did, event): (&'static str, Event),
        away: impl Fn(&World<'_, Z>, FrameRange) -> Result<usize, RangeError>,
        back: impl Fn(&World<'_, Z>, FrameRange) -> Result<usize, RangeError>,
    ) {
        let world = self.world;
        let range = self.range_to_take_away();
        let overlaps = |other: &FrameRange| !other.intersection(range).is_empty();
        if world.away.borrow().iter().any(overlaps) {
            return;
        }
        world.away.borrow_mut().push(range);
        self.note(did, About::Range(range));
        world.supply.disturb();
        let answer = away(world, range);
        let amount = world.amount(range);
        if answer.is_ok() {
            world.supply.remove(amount);
        }
        world.settle();
        match answer {
            Ok(frames) if frames == range.len() => {
                world.frames.claim(range, Owner::Allocator, Owner::Absent);
                world.counts.count(event);
                let block = world.page_block;
                let whole_blocks = range.len() >= block.frames() && range.start.is_aligned(block);
                world.counts.add(Event::BlocksAway, whole_blocks.into());
                current::sleep(1 + self.dice.below(AWAY_CYCLES));
                world.frames.release(range, Owner::Absent, Owner::Allocator);
                self.note("returns", About::Range(range));
                let answer = back(world, range);
                if answer != Ok(frames) {
                    wrong(format!("the return of {range:?} was answered {answer:?}"));
                }
                world.supply.add(amount);
            }
            Err(RangeError::Busy { .. } | RangeError::Isolated | RangeError::TooManyIsolated) => {}
            answer => wrong(format!("{did} {range:?}: {answer:?}")),
        }
        world.away.borrow_mut().retain(|other| *other != range);
    }

    /// Reads statistics while other tasks use the allocator.
    pub(super) fn look(&mut self) {
        let frame = self.frame();
        let zone = self.world.zone_of(frame);
        let request = Request::page(self.mobility());
        match self.roll(4) {
            0 => {
                let _ = zone.snapshot(0);
            }
            1 => {
                let _ = zone.why_not(&request);
                let _ = zone.free_counts();
            }
            2 => {
                let _ = zone.block_of(frame);
                // Concurrent operations may hide another task's frame for a moment, never the
                // caller's own.
                if let Some(&HeldBlock::Block(own, _)) = self.held.last()
                    && !self.world.zone_of(own).has(own)
                {
                    wrong(format!("{own} is in use, but `has` returned false"));
                }
            }
            _ => {
                let _: MeterReading = zone.meter();
                let _ = zone.watermarks().marks();
                let _ = zone.refused_late();
                // Only hints under concurrency: frames that merge may be counted twice.
                let _ = (zone.free_frames(), zone.cached_frames());
                if zone.managed_frames() > zone.span().len() {
                    wrong(format!(
                        "more frames are managed than {:?} has",
                        zone.span()
                    ));
                }
            }
        }
    }

    /// Frees a frame that does not exist, more than it has, or an unaligned part. Each is refused,
    /// whatever other tasks do.
    pub(super) fn free_badly(&mut self) {
        let held = self.held.last().copied();
        let behind = self.world.span().end.plus(self.roll(3));
        let (frame, order) = match held {
            Some(HeldBlock::Block(frame, order)) if self.dice.chance(2) => {
                (frame, Order::new(order.get() + 1))
            }
            Some(HeldBlock::Block(frame, order)) if order.get() > 1 => {
                (frame.plus(1), Order::new(order.get() - 1))
            }
            _ => (behind, Order::ZERO),
        };
        self.note("tries an invalid free of", About::Block(frame, order));
        match self.nodes().free(frame, order) {
            Err(FreeError::NotOwned | FreeError::WrongOrder { .. }) => {}
            answer => wrong(format!(
                "the invalid free of frame {frame}, order {order}, was answered {answer:?}"
            )),
        }
        self.world.counts.count(Event::BadFrees);
    }

    pub(super) fn dedicate(&mut self) {
        let (frame, mobility) = (self.frame(), self.mobility());
        self.world.zone_of(frame).dedicate(frame, mobility);
    }

    pub(super) fn change_marks(&mut self) {
        if self.world.case.marks == Marks::On {
            let kbytes = self.roll(MIN_FREE_KBYTES);
            self.nodes().set_min_free_kbytes(kbytes, 4096);
        }
    }
}

fn zone_at<'w, Z: LabZone>(world: &World<'w, Z>, range: FrameRange) -> &'w Z {
    world.zone_of(range.start)
}
