//! The machine of one run of a model, and what its threads know of the frames.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;

use brickyard::bitmap::{AT_ONCE, SetAside};
use brickyard::block::Census;
use brickyard::stash::StashSizes;
use brickyard::sync::{GuardedU32, SlotAccess};
use brickyard::{
    Frame, FrameRange, FreeError, MigrateType, Order, Platform, Request, Zone, ZoneKind, ZonePlan,
};

use super::machine::{Bare, Machine, request};
use super::platform::{Looks, look_anew};

/// What is free at first.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Free {
    All,
    /// These frames, of open blocks.
    Only(&'static [FrameRange]),
}

/// Is every invariant tested before and after?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    All,
    /// Not where a zone has too many words for it. The model touches what its threads share.
    None,
}

/// A machine of so many page blocks, and what is free in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) blocks: usize,
    pub(crate) block_order: u8,
    pub(crate) max_order: u8,
    // Only so many blocks, from the lowest on, are memory.
    pub(crate) memory: usize,
    // And these frames.
    pub(crate) far: &'static [FrameRange],
    // So many CPUs have stashes.
    pub(crate) cpus: usize,
    // So many page blocks lie in one.
    pub(crate) huge: usize,
    // So many page blocks may be set aside.
    pub(crate) aside: usize,
    pub(crate) free: Free,
    pub(crate) looks: Looks,
    pub(crate) checks: Checks,
}

impl Setting {
    /// Page blocks of one word each.
    pub(crate) const fn blocks(blocks: usize, free: Free) -> Self {
        Self {
            blocks,
            block_order: 6,
            max_order: 5 + blocks as u8,
            memory: blocks,
            far: &[],
            cpus: 2,
            huge: 1,
            aside: 0,
            free,
            looks: Looks::Cut(1),
            checks: Checks::All,
        }
    }

    /// The same, none of which makes a larger block with another.
    pub(crate) const fn apart(blocks: usize, free: Free) -> Self {
        Self {
            max_order: 6,
            ..Self::blocks(blocks, free)
        }
    }

    /// Many page blocks, of which no more is memory than what is said.
    pub(crate) const SPARSE: Self = Self {
        memory: 0,
        checks: Checks::None,
        ..Self::apart(1, Free::All)
    };

    /// One page block of one word.
    pub(crate) const fn word(free: &'static [FrameRange]) -> Self {
        Self::blocks(1, Free::Only(free))
    }

    /// One page block of four words.
    pub(crate) const fn four_words(free: Free) -> Self {
        Self {
            block_order: 8,
            max_order: 8,
            ..Self::blocks(1, free)
        }
    }

    pub(crate) const fn plan(self) -> ZonePlan {
        let frames = self.blocks << self.block_order;
        let span = FrameRange::new(0, frames);
        let mut plan = ZonePlan::new(ZoneKind::Normal, span, self.cpus);
        plan.max_order = Order::new(self.max_order);
        plan.page_block_order = Order::new(self.block_order);
        plan.stash = StashSizes {
            singles: 2,
            small: 4,
            huge: self.huge,
            ..StashSizes::LARGEST
        };
        plan.set_aside = SetAside {
            percent: 100,
            blocks: self.aside,
        };
        plan
    }
}

/// These frames.
pub(crate) const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// One frame.
pub(crate) const fn one(frame: usize) -> FrameRange {
    FrameRange::new(frame, frame + 1)
}

/// A frame as its users know it.
struct Page {
    // Has it an owner? Two at once are caught here. No word of the model, so that it orders nothing
    // and costs nothing.
    owned: AtomicBool,
    // What is written in it: an owner that does not see what the one before wrote is caught here.
    words: GuardedU32,
}

/// The machine of one run of a model, and what the threads know of its frames.
pub(crate) struct World<M> {
    pub(crate) machine: M,
    pages: BTreeMap<usize, Page>,
    checks: Checks,
}

impl<M: Machine> World<M> {
    pub(crate) fn new(setting: Setting, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let near = FrameRange::new(0, setting.memory << setting.block_order);
        let there = [near].into_iter().chain(setting.far.iter().copied());
        let pages = there.clone().flat_map(FrameRange::frames).map(|frame| {
            let page = Page {
                owned: AtomicBool::new(false),
                words: GuardedU32::new(0),
            };
            (frame.number(), page)
        });
        let world = Self {
            machine: M::build(&setting.plan(), memory),
            pages: pages.collect(),
            checks: setting.checks,
        };
        there
            .filter(|range| !range.is_empty())
            .for_each(|range| world.machine.add(range));
        if let Free::Only(free) = setting.free {
            let all = world.take_many(world.pages.len());
            assert_eq!(all.len(), world.pages.len());
            let mut given = Vec::new();
            for frame in all {
                if free.iter().any(|range| range.contains(frame)) {
                    world.disown(frame);
                    given.push(frame);
                }
            }
            world.machine.give_singles(&given);
        }
        if world.checks == Checks::All {
            world.machine.touch();
            world.machine.check();
        }
        world
    }

    fn page(&self, frame: Frame) -> &Page {
        let page = self.pages.get(&frame.number());
        page.expect("a frame that is memory")
    }

    /// Nobody else may own a frame of what was taken.
    pub(crate) fn own(&self, first: Frame, order: Order) {
        self.own_range(FrameRange::of_block(first, order));
    }

    pub(crate) fn own_range(&self, range: FrameRange) {
        for frame in range.frames() {
            let owned = self.page(frame).owned.swap(true, Ordering::Relaxed);
            assert!(!owned, "{frame} has two owners");
            self.write_to(frame);
        }
    }

    pub(crate) fn write_to(&self, frame: Frame) {
        self.page(frame).words.add(1);
    }

    pub(crate) fn disown(&self, frame: Frame) {
        self.write_to(frame);
        self.page(frame).owned.store(false, Ordering::Relaxed);
    }

    pub(crate) fn disown_range(&self, range: FrameRange) {
        range.frames().for_each(|frame| self.disown(frame));
    }

    /// A block, if there is one.
    pub(crate) fn take(&self, order: u8) -> Option<Frame> {
        self.take_for(&request(order))
    }

    /// A block for a request, if there is one.
    pub(crate) fn take_for(&self, request: &Request) -> Option<Frame> {
        look_anew();
        let first = self.machine.take(request)?;
        self.own(first, request.order);
        Some(first)
    }

    /// The block at `frame`, if it is free.
    pub(crate) fn take_at(&self, frame: usize, order: u8) -> Option<Frame> {
        look_anew();
        let first = Frame::new(frame);
        self.machine.take_at(first, &request(order)).ok()?;
        self.own(first, Order::new(order));
        Some(first)
    }

    /// Single frames, up to so many.
    pub(crate) fn take_many(&self, most: usize) -> Vec<Frame> {
        look_anew();
        let mut taken = vec![Frame::new(0); most];
        let count = self.machine.take_singles(&request(0), &mut taken);
        taken.truncate(count);
        for &frame in &taken {
            self.own(frame, Order::ZERO);
        }
        taken
    }

    pub(crate) fn give(&self, first: Frame, order: u8) {
        self.give_at(first.number(), order);
    }

    /// Gives a block, or a part of one, that the caller owns.
    pub(crate) fn give_at(&self, first: usize, order: u8) {
        look_anew();
        let (first, order) = (Frame::new(first), Order::new(order));
        self.disown_range(FrameRange::of_block(first, order));
        assert_eq!(self.machine.give(first, order), Ok(()));
    }

    /// Takes a block and gives it back. Was there one?
    pub(crate) fn use_one(&self, order: u8) -> bool {
        let taken = self.take(order);
        taken.map(|first| self.give(first, order)).is_some()
    }

    /// Frees a single frame, whoever owns it.
    pub(crate) fn free(&self, frame: Frame) -> Result<(), FreeError> {
        self.machine.give(frame, Order::ZERO)
    }

    pub(crate) fn check(&self) -> Census {
        self.machine.check()
    }

    /// How many frames nobody owns.
    pub(crate) fn unowned(&self) -> usize {
        let unowned = |page: &&Page| !page.owned.load(Ordering::Relaxed);
        self.pages.values().filter(unowned).count()
    }

    /// All threads have ended: what nobody owns is free, every invariant holds, and requests find
    /// each of those frames and no others, the last of them one by one.
    pub(crate) fn finish(&self) {
        let free = self.unowned();
        if self.checks == Checks::None {
            assert_eq!(self.machine.free_frames(), free);
            return;
        }
        self.machine.drain();
        let census = self.machine.check();
        assert_eq!(census.free, free, "{census:?}");
        assert_eq!(self.machine.free_frames(), free);
        let singly = free.min(8);
        let at_once = free - singly;
        assert_eq!(self.take_many(at_once).len(), at_once);
        for left in (0..singly).rev() {
            assert!(self.take(0).is_some(), "one more of {left} that are free");
        }
        assert_eq!(self.take(0), None);
    }
}

impl World<Bare> {
    pub(crate) fn isolate(&self, range: FrameRange) {
        self.machine.isolate(range, &AT_ONCE).unwrap();
    }

    pub(crate) fn unisolate(&self, range: FrameRange) {
        self.machine.unisolate(range, &AT_ONCE);
    }

    /// Isolates a range and ends it. Before threads start, this touches all words of isolation.
    pub(crate) fn isolate_for_a_while(&self, range: FrameRange) {
        self.isolate(range);
        self.unisolate(range);
    }

    /// Takes all of an isolated range. Was it free?
    pub(crate) fn take_isolated(&self, range: FrameRange) -> bool {
        let kind = MigrateType::Movable;
        let taken = self.machine.take_isolated(range, kind, &AT_ONCE);
        taken.is_ok().then(|| self.own_range(range)).is_some()
    }
}

/// Takes a range out of what is handed out, for a while.
pub(crate) fn reserve_for_a_while<P: Platform, A: SlotAccess>(
    world: &World<Zone<'static, P, A>>,
    range: FrameRange,
) where
    Zone<'static, P, A>: Machine,
{
    if world.machine.reserve(range).is_ok() {
        world.own_range(range);
        world.disown_range(range);
        world.machine.unreserve(range).unwrap();
    }
}
