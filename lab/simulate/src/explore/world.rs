//! What all tasks of a run share: the allocator, the oracle, the page cache, and how blocks are
//! allocated and freed.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;

use brickyard::node::{Node, Nodes};
use brickyard::pressure::{Activity, Eviction, Migrate, Migration, Need, Reclaim};
use brickyard::sync::{AtomicU32, Ordering};
use brickyard::{Context, Frame, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Steps, WaitQueue, current};
use brickyard_run::Dice;

use super::bound::steps_most;
use super::cache::Cache;
use super::case::{Case, Marks, Pressure};
use super::covered::{Counts, Event};
use super::frames::{Frames, Owner, wrong};
use super::log::{About, Log, Who};
use super::supply::{Amount, Least, Supply, Which};
use crate::build::Slots;

/// The most pages that one call of a reclaim hook frees.
const RECLAIMED_MOST: usize = 3;

/// A refused request that has waited at least this often has looked as often as it may. Others
/// moved frames all the while, or one of them was stopped, so the free frames may have been in
/// transit.
const WAITS_OF_THE_LAST_LOOK: u64 = 48;

/// Frames that the message of a wrong refusal lists, at most.
const FRAMES_LISTED: usize = 8;

/// Words that CPUs share besides the allocator's and the frames'.
#[derive(Debug)]
pub(crate) struct SharedWords {
    /// Every CPU writes this before a quiet moment's checks, and reads it after them.
    pub(crate) passed: AtomicU32,
    /// Not 0 if background reclaim is to run.
    pub(crate) wanted: AtomicU32,
}

impl SharedWords {
    pub(crate) const fn new() -> Self {
        Self {
            passed: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
        }
    }
}

/// What all tasks share.
#[derive(Debug)]
pub(crate) struct World<'w, Z: LabZone> {
    pub(crate) node: &'w Node<'w, Z>,
    pub(crate) case: &'w Case,
    /// Which CPUs may enter a CPU's slot.
    slots: Slots,
    /// The order of a page block.
    pub(crate) page_block: Order,
    /// The usual limit.
    pub(crate) limit: Frame,
    /// The most steps that a request may take.
    pub(crate) steps_most: u64,
    /// Frames that are free when the tasks begin.
    pub(crate) to_share: Cell<usize>,
    /// How often a reclaim hook was called, by task.
    reclaims: RefCell<Vec<u64>>,
    pub(crate) log: &'w Log,
    pub(crate) words: &'w SharedWords,
    pub(crate) frames: Frames,
    pub(crate) cache: Cache,
    pub(crate) supply: Supply,
    pub(crate) counts: Counts,
    /// Blocks that one task handed over and none has fetched yet.
    pub(crate) handed_over: RefCell<VecDeque<(Frame, Order)>>,
    /// Blocks that interrupts have allocated, by CPU.
    pub(crate) of_interrupts: Vec<RefCell<Vec<(Frame, Order)>>>,
    /// The earliest time at which the next interrupt of a CPU may do something.
    rest_until: Vec<Cell<u64>>,
    /// Blocks that the migrate hook released while the task with this number ran: the allocator has
    /// them once the operation ends.
    unneeded: RefCell<Vec<(usize, Frame, Order)>>,
    dice: RefCell<Dice>,
    /// Tells interrupts and background reclaim to do nothing.
    pub(crate) quiet: Cell<bool>,
    /// How many of them are active.
    pub(crate) at_work: Cell<u32>,
    /// Ranges that a task is taking or has taken away from the allocator.
    pub(crate) away: RefCell<Vec<FrameRange>>,
    /// Background reclaim sleeps here.
    pub(crate) background: WaitQueue,
    pub(crate) over: Cell<bool>,
}

impl<'w, Z: LabZone> World<'w, Z> {
    pub(crate) fn new(
        node: &'w Node<'w, Z>,
        case: &'w Case,
        slots: Slots,
        log: &'w Log,
        words: &'w SharedWords,
    ) -> Self {
        let zones = node.zones();
        let (Some(first), Some(last)) = (zones.first(), zones.last()) else {
            panic!("an allocator has at least one zone");
        };
        let span = FrameRange {
            start: first.span().start,
            end: last.span().end,
        };
        let page_block = case.page_block();
        let world = Self {
            node,
            case,
            slots,
            page_block,
            limit: case.limit(span),
            steps_most: steps_most(case, span, page_block),
            to_share: Cell::new(span.len()),
            reclaims: RefCell::default(),
            log,
            words,
            frames: Frames::new(span),
            cache: Cache::default(),
            supply: Supply::default(),
            counts: Counts::new(),
            handed_over: RefCell::default(),
            of_interrupts: (0..case.cpus).map(|_| RefCell::default()).collect(),
            rest_until: vec![Cell::new(0); case.cpus],
            unneeded: RefCell::default(),
            dice: RefCell::new(case.dice(u64::MAX - 1)),
            quiet: Cell::new(false),
            at_work: Cell::new(0),
            away: RefCell::default(),
            background: WaitQueue::new(),
            over: Cell::new(false),
        };
        for zone in zones {
            world.supply.add(world.amount(zone.span()));
        }
        world
    }

    pub(crate) fn nodes(&self) -> Nodes<'_, Z, &Self> {
        let nodes = core::slice::from_ref(self.node);
        Nodes::with_hooks(nodes, self, self.case.slow_path())
    }

    pub(crate) fn span(&self) -> FrameRange {
        let zones = self.node.zones();
        FrameRange {
            start: zones[0].span().start,
            end: zones[zones.len() - 1].span().end,
        }
    }

    pub(crate) fn zone_of(&self, frame: Frame) -> &'w Z {
        let mut zones = self.node.zones().iter();
        match zones.find(|zone| zone.span().contains(frame)) {
            Some(zone) => zone,
            None => wrong(format!("{frame} is in no zone")),
        }
    }

    /// Returns the amount of the frames of `range`, which is in one zone.
    pub(crate) fn amount(&self, range: FrameRange) -> Amount {
        let all = range.len() as i64;
        let below = FrameRange {
            start: self.span().start,
            end: self.limit,
        };
        match self.zone_of(range.start).kind() {
            ZoneKind::Movable => [0, 0, all],
            _ => [below.intersection(range).len() as i64, all, all],
        }
    }

    /// Returns what is left of so many frames once `range` was allocated.
    pub(crate) fn left_of(&self, frames: usize, range: FrameRange) -> Amount {
        self.amount(range).map(|got| frames as i64 - got)
    }

    /// Draws a random number for interrupts, hooks and background reclaim.
    pub(crate) fn roll(&self, sides: u64) -> u64 {
        self.dice.borrow_mut().below(sides)
    }

    /// Requests a block, checks the answer, and makes the block `owner`'s.
    pub(crate) fn take(&self, request: &Request, who: Who, owner: Owner) -> Option<Frame> {
        let frames = request.order.frames();
        let search = self.supply.begin(frames);
        let compacts = request.order > Order::ZERO
            && request.context == Context::MaySleep
            && self.case.pressure == Pressure::Compaction;
        if compacts {
            self.supply.disturb();
        }
        self.log.note(who, "requests", About::Order(request.order));
        let (before, reclaims) = (current::steps(), self.reclaims());
        let answer = current::within(self.steps_most, || {
            in_context(request.context, || self.nodes().alloc(0, request))
        });
        let steps = current::steps().since(before);
        if self.case.configuration == Configuration::Brickyard {
            self.counts.add(Event::StepsMost, steps.all());
        }
        if compacts {
            self.settle();
        }
        match answer {
            Ok(frame) => {
                let block = FrameRange::of_block(frame, request.order);
                let _ = self.supply.end(search, self.left_of(frames, block));
                self.log
                    .note(who, "gets", About::Block(frame, request.order));
                self.check_answer(request, frame);
                self.frames.claim(block, Owner::Allocator, owner);
                self.counts.count(Event::Served);
                let is_page_block = request.order == self.page_block;
                self.counts.add(Event::PageBlocks, is_page_block.into());
                self.counts
                    .add(Event::Below, request.limit.is_some().into());
                Some(frame)
            }
            Err(why) => {
                let least = self.supply.end(search, [frames as i64; 3]);
                self.log
                    .note(who, "is refused", About::Order(request.order));
                self.counts.count(Event::Refused);
                let may_reclaim = request.context == Context::MaySleep
                    && request.order <= self.node.zones()[0].max_order()
                    && request.limit.is_none_or(|limit| limit > self.span().start);
                if may_reclaim && self.reclaims() == reclaims {
                    wrong(format!(
                        "{request:?} was refused ({why}), but the reclaim hook was not called for it"
                    ));
                }
                self.check_refusal(request, least, 0, steps);
                None
            }
        }
    }

    /// Returns how often a reclaim hook was called in this task.
    fn reclaims(&self) -> u64 {
        let reclaims = self.reclaims.borrow();
        reclaims.get(current::task()).copied().unwrap_or(0)
    }

    fn count_reclaim(&self) {
        let mut reclaims = self.reclaims.borrow_mut();
        let own = current::task();
        if reclaims.len() <= own {
            reclaims.resize(own + 1, 0);
        }
        reclaims[own] += 1;
    }

    /// Ends a [`Supply::disturb`]: blocks that the hooks released are now free.
    pub(crate) fn settle(&self) {
        let own = current::task();
        self.unneeded.borrow_mut().retain(|&(task, frame, order)| {
            if task == own {
                let block = FrameRange::of_block(frame, order);
                self.supply.add(self.amount(block));
            }
            task != own
        });
        self.supply.settle();
    }

    /// Checks that this block is what was requested.
    pub(crate) fn check_answer(&self, request: &Request, frame: Frame) {
        let block = FrameRange::of_block(frame, request.order);
        let zone = self.zone_of(frame);
        let movable_only = zone.kind() == ZoneKind::Movable;
        let right = frame.is_aligned(request.order)
            && zone.span().covers(block)
            && zone.kind() <= request.highest
            && (!movable_only || request.mobility == Mobility::Movable)
            && request.limit.is_none_or(|limit| block.end <= limit);
        if !right {
            wrong(format!("{block:?} does not satisfy {request:?}"));
        }
    }

    /// Checks that the refusal of a single frame is right. `least` is what was free at least while
    /// the request searched, including the `got` frames that it was given before the refusal.
    pub(crate) fn check_refusal(
        &self,
        request: &Request,
        least: Option<Least>,
        got: usize,
        steps: Steps,
    ) {
        let reaches_all = match request.context {
            Context::MaySleep => true,
            // It makes no remote calls.
            Context::Atomic => self.slots == Slots::Shared,
            Context::Interrupt => false,
        };
        if request.order > Order::ZERO || !reaches_all || self.case.marks == Marks::On {
            return;
        }
        let movable = request.mobility == Mobility::Movable && request.highest >= ZoneKind::Movable;
        let (which, rightly) = match request.limit {
            Some(limit) if limit == self.limit => (Which::Below, Event::RefusedBelowRightly),
            Some(limit) if limit < self.span().end => return,
            _ if movable => (Which::All, Event::RefusedRightly),
            _ => (Which::Unmovable, Event::RefusedRightly),
        };
        let there = least.and_then(|least| least.of(which));
        match there.map(|there| there - got as i64) {
            None => {}
            Some(..=0) => self.counts.count(rightly),
            Some(_) if steps.waits >= WAITS_OF_THE_LAST_LOOK => {
                self.counts.count(Event::RefusedAfterWaits);
            }
            Some(there) => wrong(format!(
                "{request:?} was refused after {got} frames and {steps:?}, but {there} more were free all the while; now {}",
                self.free_now(request)
            )),
        }
    }

    /// Lists some frames that are free and that `request` might get, with their state in the store.
    fn free_now(&self, request: &Request) -> String {
        let end = request.limit.unwrap_or(self.span().end);
        let unowned = self.frames.unowned(FrameRange {
            start: self.span().start,
            end,
        });
        let listed: Vec<String> = unowned
            .take(FRAMES_LISTED)
            .map(|frame| format!("{frame} is {:?}", self.zone_of(frame).block_of(frame)))
            .collect();
        listed.join(", ")
    }

    /// Frees a block of `owner`.
    pub(crate) fn give(&self, frame: Frame, order: Order, who: Who, owner: Owner) {
        let block = FrameRange::of_block(frame, order);
        self.frames.release(block, owner, Owner::Allocator);
        self.log.note(who, "frees", About::Block(frame, order));
        let answer = current::within(self.steps_most, || self.nodes().free(frame, order));
        if let Err(why) = answer {
            wrong(format!(
                "the free of frame {frame}, order {order}, was refused: {why}"
            ));
        }
        self.supply.add(self.amount(block));
        self.counts.count(Event::Freed);
    }

    /// Frees the block of the page cache at `frame`, unless it is locked. Returns how many frames
    /// it had.
    pub(crate) fn evict_page(&self, frame: Frame, who: Who) -> usize {
        let Some(order) = self.cache.try_lock(&self.frames, frame) else {
            return 0;
        };
        self.cache
            .take_locked(&self.frames, frame, order, Owner::Transient);
        self.give(frame, order, who, Owner::Transient);
        self.counts.add(Event::Reclaimed, order.frames() as u64);
        order.frames()
    }

    /// Handles an interrupt: allocates a little, or frees what an earlier one has allocated on this
    /// CPU.
    pub(crate) fn interrupt(&self) {
        let (cpu, began) = (current::cpu(), current::now());
        if began < self.rest_until[cpu].get() || self.quiet.get() || self.over.get() {
            return;
        }
        self.at_work.set(self.at_work.get() + 1);
        self.counts.count(Event::Interrupts);
        let (own, owner) = (&self.of_interrupts[cpu], Owner::Interrupt(cpu as u32));
        let held = own.borrow().len();
        if self.roll(8) < 4 && held < 6 {
            let order = Order::new([0, 0, 0, 1, 2][self.roll(5) as usize]);
            let mobility = Mobility::ALL[self.roll(3) as usize];
            let request = Request::new(order, mobility).in_context(Context::Interrupt);
            if let Some(frame) = self.take(&request, Who::Interrupt, owner) {
                own.borrow_mut().push((frame, order));
            }
        } else if held > 0 {
            let block = own
                .borrow_mut()
                .swap_remove(self.roll(held as u64) as usize);
            self.give(block.0, block.1, Who::Interrupt, owner);
        }
        // Interrupts that wait long for locks would leave the tasks no time.
        let now = current::now();
        self.rest_until[cpu].set(now + (now - began));
        self.at_work.set(self.at_work.get() - 1);
    }

    /// Runs background reclaim: sleeps until it is woken, frees some blocks of the page cache, and
    /// sleeps again.
    pub(crate) fn reclaim_in_background(&self) {
        let wanted = &self.words.wanted;
        loop {
            self.background.wait_until(|| {
                // Acquire: pairs with the release in `wake`.
                wanted.load(Ordering::Acquire) != 0 || self.over.get()
            });
            if self.over.get() {
                return;
            }
            // Relaxed: only this task resets it.
            wanted.store(0, Ordering::Relaxed);
            if self.quiet.get() {
                continue;
            }
            self.at_work.set(self.at_work.get() + 1);
            for _ in 0..1 + self.roll(RECLAIMED_MOST as u64) {
                if let Some((frame, _)) = self.cache.nth(0) {
                    self.evict_page(frame, Who::Background);
                }
            }
            self.at_work.set(self.at_work.get() - 1);
        }
    }
}

impl<Z: LabZone> Reclaim for World<'_, Z> {
    fn reclaim(&self, need: &Need) -> usize {
        self.count_reclaim();
        let mut freed = 0;
        for place in 0..RECLAIMED_MOST {
            if freed >= need.frames {
                break;
            }
            if let Some((frame, _)) = self.cache.nth(place) {
                freed += self.evict_page(frame, Who::Hook);
            }
        }
        freed
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        self.count_reclaim();
        let mut places = 0..self.cache.len();
        let found = places.find_map(|n| self.cache.nth(n).filter(|page| zone.contains(page.0)));
        found.map(|(frame, _)| (frame, Activity::Inactive))
    }

    fn evict(&self, frame: Frame, activity: Activity) -> Eviction {
        match (self.cache.at(frame), activity) {
            (None, _) | (_, Activity::Active) => Eviction::Unsuitable,
            (Some(order), _) if order > Order::ZERO => Eviction::Unsuitable,
            _ => match self.evict_page(frame, Who::Hook) {
                0 => Eviction::Busy,
                _ => Eviction::Freed,
            },
        }
    }

    fn wake(&self, _need: &Need) {
        // Release: pairs with the acquire in background reclaim.
        self.words.wanted.store(1, Ordering::Release);
        self.background.wake_all();
    }
}

impl<Z: LabZone> Migrate for World<'_, Z> {
    fn can_move(&self, frame: Frame, order: Order) -> bool {
        // A page that is not in the page cache is in a cache of the allocator.
        self.cache.at(frame).is_none_or(|found| found == order)
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        let Some(found) = self.cache.try_lock(&self.frames, from) else {
            // It is a task's own, in a cache of the allocator, or just being freed.
            return match self.roll(3) {
                0 => Migration::Later,
                1 => Migration::Never,
                _ => Migration::Unknown,
            };
        };
        if found != order {
            self.frames.unlock(from);
            return Migration::Unknown;
        }
        match self.roll(8) {
            0 => {
                self.frames.unlock(from);
                Migration::Later
            }
            1 => {
                self.log.note(Who::Hook, "drops", About::Block(from, order));
                let owner = Owner::Transient;
                self.cache.take_locked(&self.frames, from, order, owner);
                let block = FrameRange::of_block(from, order);
                self.frames.release(block, owner, Owner::Allocator);
                self.unneeded
                    .borrow_mut()
                    .push((current::task(), from, order));
                Migration::NotNeeded
            }
            // A CPU that finds an older page there gone may be stopped while it holds the lock.
            _ if !self.frames.try_lock(to) => {
                self.frames.unlock(from);
                Migration::Later
            }
            _ => {
                self.log.note(Who::Hook, "moves", About::Block(from, order));
                self.cache.move_locked(&self.frames, from, order, to);
                self.log.note(Who::Hook, "to", About::Block(to, order));
                self.counts.count(Event::Moved);
                // As many frames are free as before, but other ones: the number below the limit may
                // have changed.
                self.supply
                    .remove(self.amount(FrameRange::of_block(to, order)));
                self.unneeded
                    .borrow_mut()
                    .push((current::task(), from, order));
                Migration::Moved
            }
        }
    }
}

/// Runs `work` as a caller in this context: the run fails if it sleeps where it may not.
pub(crate) fn in_context<R>(context: Context, work: impl FnOnce() -> R) -> R {
    match context {
        Context::MaySleep => work(),
        Context::Atomic | Context::Interrupt => current::atomically(work),
    }
}
