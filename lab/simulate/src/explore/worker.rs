//! A task: it allocates and frees in every possible way, in random order.

use brickyard::node::Nodes;
use brickyard::{Context, Frame, FrameRange, FreeError, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::LabZone;
use brickyard_machine::current;
use brickyard_run::Dice;

use super::case::FreeMemory;
use super::covered::Event;
use super::frames::{Owner, wrong};
use super::log::{About, Who};
use super::world::World;
use crate::barrier::Barrier;

/// The most blocks in the page cache, for all tasks together.
const CACHE_MOST: usize = 48;

/// The most blocks that are handed over and not fetched yet.
const HANDED_OVER_MOST: usize = 16;

/// The longest pause, in cycles.
const PAUSE_CYCLES: u64 = 20_000;

/// The most frames of a usual bulk operation.
const FILL: usize = 40;

/// The fewest frames of a large one, which exceeds what a CPU caches.
const LARGE: usize = 256;

/// What a task holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeldBlock {
    Block(Frame, Order),
    /// What is left of a block that was freed in parts. To the allocator it may be part of a larger
    /// block.
    Part(Frame, Order),
    /// Adjacent frames, freed as a range.
    Range(FrameRange),
}

impl HeldBlock {
    const fn frames(&self) -> usize {
        match self {
            Self::Block(_, order) | Self::Part(_, order) => order.frames(),
            Self::Range(range) => range.len(),
        }
    }
}

/// A task.
#[derive(Debug)]
pub(crate) struct Worker<'v, 'w, Z: LabZone> {
    pub(super) world: &'v World<'w, Z>,
    pub(super) who: Who,
    pub(super) owner: Owner,
    pub(super) dice: Dice,
    pub(super) held: Vec<HeldBlock>,
    pub(super) held_frames: usize,
    held_most: usize,
    /// The frame that it freed last, around which most changes happen.
    last_freed: Option<Frame>,
}

impl<'v, 'w, Z: LabZone> Worker<'v, 'w, Z> {
    /// Task `number`, which holds nothing.
    pub(crate) fn new(world: &'v World<'w, Z>, number: u32) -> Self {
        let mut dice = world.case.dice(u64::from(number));
        // All tasks together want about as much memory as there is; where it is to run out, more.
        let share = world.to_share.get() / world.case.tasks;
        let quarters = match world.case.memory {
            FreeMemory::Plenty => 2 + dice.below(4),
            FreeMemory::Short => 5 + dice.below(12),
        };
        let held_most = share * quarters as usize / 4 + 4;
        Self {
            world,
            who: Who::Task(number),
            owner: Owner::Task(number),
            dice,
            held: Vec::new(),
            held_frames: 0,
            held_most,
            last_freed: None,
        }
    }

    /// Does all its operations, with quiet moments between them; then frees all that it has.
    pub(crate) fn work(&mut self, between: &[Barrier], end: &Barrier) {
        let operations = self.world.case.operations;
        if self.world.case.begins_full() {
            self.fill();
        }
        for operation in 0..operations {
            let moments = between.iter().enumerate();
            let due = |n: usize| operation == (n + 1) * operations / (between.len() + 1);
            for (_, moment) in moments.filter(|&(n, _)| due(n)) {
                moment.wait(|| {
                    self.world.quietly(|world| {
                        world.check();
                    });
                });
            }
            self.world.counts.count(Event::Operations);
            self.step();
        }
        while !self.held.is_empty() {
            self.free();
        }
        end.wait(|| {
            self.world.quietly(World::clear);
            self.world.over.set(true);
            self.world.background.wake_all();
        });
    }

    /// Allocates single frames until it has as many as it may.
    fn fill(&mut self) {
        let mobility = self.mobility();
        while self.held_frames < self.held_most {
            let room = self.held_most - self.held_frames;
            if self.alloc_frames(room.min(FILL), mobility) == 0 {
                break;
            }
        }
    }

    fn step(&mut self) {
        match self.dice.below(1000) {
            0..300 => self.alloc(),
            300..560 => self.free(),
            560..600 => self.alloc_bulk(),
            600..640 => self.free_bulk(),
            640..690 => self.free_part(),
            690..720 => self.hand_over(),
            720..750 => self.fetch(),
            750..800 => self.cache_one(),
            800..820 => self.use_cached(),
            820..845 => self.evict_one(),
            845..865 => self.alloc_at(),
            865..873 => self.contiguous(),
            873..883 => self.drain(),
            883..888 => self.compact(),
            888..896 => self.offline(),
            896..904 => self.reserve(),
            904..924 => self.look(),
            924..939 => self.free_badly(),
            939..955 => self.with_interrupts_masked(),
            955..960 => self.dedicate(),
            960..965 => self.change_marks(),
            965..970 => self.remove(),
            970..978 => self.take_over(),
            _ => self.pause(),
        }
    }

    pub(super) fn nodes(&self) -> Nodes<'v, Z, &'v World<'w, Z>> {
        self.world.nodes()
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.dice.below(sides as u64) as usize
    }

    pub(super) fn note(&self, did: &'static str, about: About) {
        self.world.log.note(self.who, did, about);
    }

    pub(super) fn mobility(&mut self) -> Mobility {
        Mobility::ALL[self.roll(3)]
    }

    pub(super) fn frame(&mut self) -> Frame {
        let span = self.world.span();
        span.start.plus(self.roll(span.len()))
    }

    /// Returns with even chances the frame that it freed last or a random one.
    pub(super) fn frame_of_interest(&mut self) -> Frame {
        let any = self.frame();
        match self.dice.chance(2) {
            true => self.last_freed.unwrap_or(any),
            false => any,
        }
    }

    pub(super) fn hold(&mut self, held: HeldBlock) {
        self.held_frames += held.frames();
        self.held.push(held);
    }

    pub(super) fn pick(&mut self) -> Option<HeldBlock> {
        if self.held.is_empty() {
            return None;
        }
        let place = self.roll(self.held.len());
        let held = self.held.swap_remove(place);
        self.held_frames -= held.frames();
        Some(held)
    }

    /// Takes a random block out of what it holds; returns `None` if it picked a range or has
    /// nothing.
    fn pick_block(&mut self) -> Option<(Frame, Order)> {
        match self.pick()? {
            HeldBlock::Block(frame, order) | HeldBlock::Part(frame, order) => Some((frame, order)),
            range @ HeldBlock::Range(_) => {
                self.hold(range);
                None
            }
        }
    }

    fn request(&mut self) -> Request {
        let max = self.world.node.zones()[0].max_order().get();
        // Mostly small orders, some larger ones, and now and then one that is too large.
        let prefers_blocks = self.world.case.prefers_blocks();
        let order = match self.dice.below(64) {
            16..48 if prefers_blocks => u64::from(self.world.page_block.get().min(max)),
            0 => u64::from(max) + 1,
            1..32 => 0,
            32..48 => self.dice.below(4),
            48..58 => u64::from(self.world.page_block.get().min(max)),
            _ => self.dice.below(u64::from(max) + 1),
        };
        let mobility = self.mobility();
        let context = match self.dice.below(16) {
            0 | 1 => Context::Atomic,
            2 => Context::Interrupt,
            _ => Context::MaySleep,
        };
        let order = Order::new(order as u8);
        let request = Request::new(order, mobility).in_context(context);
        match self.dice.below(16) {
            0 => request.below(self.frame()),
            1 | 2 => request.below(self.world.limit),
            3 => request.from_zones_up_to(ZoneKind::Normal),
            _ => request,
        }
    }

    fn alloc(&mut self) {
        let request = self.request();
        // Where memory is to run out, a request may exceed the task's share.
        let more = match self.world.case.memory {
            FreeMemory::Plenty => request.order.frames(),
            FreeMemory::Short => 0,
        };
        if self.held_frames + more > self.held_most {
            return self.free();
        }
        if let Some(frame) = self.world.take(&request, self.who, self.owner) {
            self.hold(HeldBlock::Block(frame, request.order));
        }
    }

    fn free(&mut self) {
        match self.pick() {
            Some(HeldBlock::Block(frame, order) | HeldBlock::Part(frame, order)) => {
                self.last_freed = Some(frame);
                self.world.give(frame, order, self.who, self.owner);
            }
            Some(HeldBlock::Range(range)) => self.free_range(range),
            None => {}
        }
    }

    /// Frees a part of a block or range, and keeps the rest.
    fn free_part(&mut self) {
        match self.pick() {
            Some(HeldBlock::Block(frame, order) | HeldBlock::Part(frame, order))
                if order > Order::ZERO =>
            {
                let smaller = 1 + self.roll(order.index());
                let part = Order::new(order.get() - smaller as u8);
                let which = self.roll(1 << smaller);
                for n in 0..1 << smaller {
                    let frame = frame.plus(n * part.frames());
                    if n == which {
                        self.world.give(frame, part, self.who, self.owner);
                    } else {
                        self.hold(HeldBlock::Part(frame, part));
                    }
                }
            }
            Some(HeldBlock::Range(range)) if range.len() > 1 => {
                let cut = range.start.plus(1 + self.roll(range.len() - 1));
                self.hold(HeldBlock::Range(FrameRange { end: cut, ..range }));
                self.free_range(FrameRange {
                    start: cut,
                    ..range
                });
            }
            Some(other) => self.hold(other),
            None => {}
        }
    }

    fn alloc_bulk(&mut self) {
        let room = self.held_most.saturating_sub(self.held_frames);
        let large = self.dice.chance(8);
        let count = match self.world.case.memory {
            FreeMemory::Short if large => LARGE + self.roll(FILL),
            FreeMemory::Plenty if large && room >= LARGE => (LARGE + self.roll(FILL)).min(room),
            _ => self.roll(FILL).min(room),
        };
        let mobility = self.mobility();
        self.alloc_frames(count, mobility);
    }

    /// Allocates up to `count` single frames at once. Returns how many it got.
    fn alloc_frames(&mut self, count: usize, mobility: Mobility) -> usize {
        let request = Request::page(mobility);
        let mut frames = vec![Frame::new(usize::MAX); count];
        let world = self.world;
        self.note("requests", About::Count(count));
        let search = world.supply.begin(count);
        // Where frames are scarce each is a separate request.
        let steps_most = world.steps_most.saturating_mul(count as u64 + 1);
        let before = current::steps();
        let got = current::within(steps_most, || {
            self.nodes().alloc_bulk(0, &request, &mut frames)
        });
        let got = &frames[..got.unwrap_or(0)];
        let mut left = [count as i64; 3];
        for &frame in got {
            let taken = world.amount(FrameRange::at(frame, 1));
            left = core::array::from_fn(|which| left[which] - taken[which]);
        }
        let least = world.supply.end(search, left);
        self.note("gets", About::Count(got.len()));
        if got.len() < count {
            let steps = current::steps().since(before);
            world.check_refusal(&request, least, got.len(), steps);
        }
        for &frame in got {
            world.check_answer(&request, frame);
            let block = FrameRange::at(frame, 1);
            world.frames.claim(block, Owner::Allocator, self.owner);
            self.hold(HeldBlock::Block(frame, Order::ZERO));
        }
        world.counts.count(Event::Bulk);
        world.counts.add(Event::LargeBulk, (count >= LARGE).into());
        got.len()
    }

    /// Frees all its single frames at once, sometimes with an invalid one at the end.
    fn free_bulk(&mut self) {
        let world = self.world;
        let is_single = |held: &HeldBlock| {
            matches!(
                held,
                HeldBlock::Block(_, Order::ZERO) | HeldBlock::Part(_, Order::ZERO)
            )
        };
        let (singles, rest): (Vec<HeldBlock>, Vec<HeldBlock>) =
            self.held.drain(..).partition(is_single);
        self.held = rest;
        self.held_frames -= singles.len();
        let frames = singles.iter().filter_map(|held| match held {
            HeldBlock::Block(frame, _) | HeldBlock::Part(frame, _) => Some(*frame),
            HeldBlock::Range(_) => None,
        });
        let mut frames: Vec<Frame> = frames.collect();
        let count = frames.len();
        let mut amount = [0; 3];
        for &frame in &frames {
            let one = world.amount(FrameRange::at(frame, 1));
            amount = core::array::from_fn(|which| amount[which] + one[which]);
            let block = FrameRange::at(frame, 1);
            world.frames.release(block, self.owner, Owner::Allocator);
        }
        let bad = self.dice.chance(4);
        if bad {
            frames.push(world.span().end.plus(1));
        }
        self.note("frees", About::Count(count));
        let answer = self.nodes().free_bulk(&frames);
        let right = match answer {
            Ok(()) => !bad,
            Err(why) => bad && why.freed == count && why.error == FreeError::NotOwned,
        };
        if !right {
            wrong(format!("a free of {count} frames was answered {answer:?}"));
        }
        world.supply.add(amount);
        world.counts.count(Event::Bulk);
        world.counts.add(Event::LargeBulk, (count >= LARGE).into());
        world.counts.add(Event::Freed, count as u64);
        world.counts.add(Event::BadFrees, u64::from(bad));
    }

    /// Hands a block over to the next task that fetches one.
    fn hand_over(&mut self) {
        if self.world.handed_over.borrow().len() >= HANDED_OVER_MOST {
            return;
        }
        let Some((frame, order)) = self.pick_block() else {
            return;
        };
        let block = FrameRange::of_block(frame, order);
        let frames = &self.world.frames;
        frames.lock(frame);
        frames.release(block, self.owner, Owner::Handover);
        frames.unlock(frame);
        self.note("hands over", About::Block(frame, order));
        self.world
            .handed_over
            .borrow_mut()
            .push_back((frame, order));
    }

    /// Fetches a block that another task handed over, and frees it or keeps it.
    fn fetch(&mut self) {
        let Some((frame, order)) = self.world.handed_over.borrow_mut().pop_front() else {
            return;
        };
        let block = FrameRange::of_block(frame, order);
        let frames = &self.world.frames;
        frames.lock(frame);
        frames.claim(block, Owner::Handover, self.owner);
        frames.unlock(frame);
        self.note("fetches", About::Block(frame, order));
        self.world.counts.count(Event::Passed);
        if self.dice.chance(2) {
            self.world.give(frame, order, self.who, self.owner);
        } else {
            self.hold(HeldBlock::Part(frame, order));
        }
    }

    /// Takes over a part of what was allocated before the run, if there is any.
    fn take_over(&mut self) {
        let orders = [0, 0, 1, 3, self.world.page_block.get()];
        let mut order = Order::new(orders[self.roll(orders.len())]);
        let mut frame = self.frame();
        let zone = self.world.zone_of(frame).span();
        let page_block = self.world.page_block;
        if !zone.covers(FrameRange::of_block(
            frame.align_down(page_block),
            page_block,
        )) {
            // At the edges of a zone frames were allocated one by one.
            order = Order::ZERO;
        }
        frame = frame.align_down(order);
        let block = FrameRange::of_block(frame, order);
        if self.world.frames.has(Owner::Prefill, block) {
            self.note("takes over", About::Block(frame, order));
            self.world.frames.claim(block, Owner::Prefill, self.owner);
            self.hold(HeldBlock::Part(frame, order));
        }
    }

    /// Allocates a small block and puts it into the page cache.
    fn cache_one(&mut self) {
        if self.world.cache.len() >= CACHE_MOST {
            return self.evict_one();
        }
        let order = Order::new(self.dice.below(3) as u8 * self.dice.below(2) as u8);
        let request = Request::new(order, Mobility::Movable);
        if let Some(frame) = self.world.take(&request, self.who, self.owner) {
            self.note("caches", About::Block(frame, order));
            let world = self.world;
            world.cache.put(&world.frames, frame, order, self.owner);
        }
    }

    fn any_cached(&mut self) -> Option<Frame> {
        let n = self.roll(self.world.cache.len());
        self.world.cache.nth(n).map(|page| page.0)
    }

    /// Writes into a block of the page cache, wherever it has been moved to.
    fn use_cached(&mut self) {
        let world = self.world;
        if let Some(frame) = self.any_cached()
            && let Some(order) = world.cache.try_lock(&world.frames, frame)
        {
            world.frames.touch(FrameRange::of_block(frame, order));
            world.frames.unlock(frame);
        }
    }

    fn evict_one(&mut self) {
        if let Some(frame) = self.any_cached() {
            self.world.evict_page(frame, self.who);
        }
    }

    /// Allocates and frees with interrupts masked.
    fn with_interrupts_masked(&mut self) {
        let found = current::mask();
        let order = Order::new(self.dice.below(3) as u8);
        let mobility = self.mobility();
        let request = Request::new(order, mobility).in_context(Context::Interrupt);
        let request = match self.dice.chance(4) {
            true => request.below(self.world.limit),
            false => request,
        };
        if let Some(frame) = self.world.take(&request, self.who, self.owner) {
            self.world.give(frame, order, self.who, self.owner);
        }
        current::restore(found);
    }

    /// Computes, sleeps or yields: afterwards it may be on another CPU.
    fn pause(&mut self) {
        let cycles = 1 + self.dice.below(PAUSE_CYCLES);
        match self.dice.below(4) {
            0 => current::yield_now(),
            1 => current::compute(cycles),
            _ => current::sleep(cycles),
        }
    }
}
