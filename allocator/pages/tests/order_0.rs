//! A request for one frame is refused only if nothing is free that it may have: beside those who
//! move the last frames about, stop with them in hand or are preempted inside a stash, and in every
//! geometry that a plan can have.
#![cfg(not(loom))]

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard::pressure::{ContiguousRequest, Migrate, Migration, alloc_contiguous, offline};
use brickyard::sync::{Exclusive, PATIENCE, Shared, SlotAccess};
use brickyard::{
    AnyZone, Context, Frame, FrameRange, Mobility, Order, Request, Zone, ZoneKind, ZonePlan,
};

use crate::{support, threads};

use support::{Cpus, Dice, Hooks, empty, give, kept, lasting, linux, take_all};
use threads::{
    CPU, Comes, INSIDE_UNTIL, IS_SHUT, InInterrupt, Numbered, PAGE, TWELVE, Visited, WAITED,
    more_frames_than_users, waits_of_an_interrupt,
};

type Bricks<P, A> = Zone<'static, P, A>;

// ---- order 0 is refused though something is free all the while ----

/// Two frames are free below a limit, far apart. One thread holds at most one of them at a time: it
/// frees the one and only then takes the other. So nobody who holds none is refused. All CPUs are
/// without a slot, so frees go to the store one by one. No larger block is given up anywhere.
#[test]
fn a_page_below_a_limit_is_not_refused_while_one_is_free_all_the_time() {
    const BLOCKS: usize = 256;
    let zone = lasting::<_, Shared>(BLOCKS * 512, 0, Numbered);
    let below = PAGE.below(Frame::new((BLOCKS - 1) * 512));
    while zone.alloc(&below).is_ok() {}
    let [low, high] = [100, (BLOCKS - 2) * 512 + 5].map(Frame::new);
    zone.free(high, Order::ZERO).unwrap();
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut mine, mut other) = (low, high);
            while !stop.load(SeqCst) {
                zone.free(mine, Order::ZERO).unwrap();
                while zone.alloc_at(other, &PAGE).is_err() {
                    // The asker has it, so the one just freed is free, or about to be.
                    core::mem::swap(&mut mine, &mut other);
                }
                core::mem::swap(&mut mine, &mut other);
            }
        });
        let (mut served, mut refused) = (0, false);
        while start.elapsed() < Duration::from_secs(3) && !refused {
            match zone.alloc(&below) {
                Ok(frame) => {
                    served += 1;
                    assert!(frame == low || frame == high, "{frame}");
                    zone.free(frame, Order::ZERO).unwrap();
                }
                Err(_) => refused = true,
            }
        }
        stop.store(true, SeqCst);
        assert!(!refused, "after {served} that were served");
    });
    zone.check().unwrap();
}

// ---- every geometry, against a map ----

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Absent,
    Reserved,
    Free,
    Used,
}

/// A plan, and how many CPUs there are.
fn geometry(dice: &mut Dice) -> (ZonePlan, usize) {
    let block_order = dice.one_of(&[6, 6, 7, 8, 9, 9, 10, 11]);
    let block = 1 << block_order;
    // Up to two page blocks below or above the order of a page block; or no large orders at all.
    let max_order = dice.one_of(&[
        0,
        3,
        5,
        block_order - 1,
        block_order,
        block_order + 1,
        block_order + 2,
    ]);
    let start = dice.one_of(&[
        0,
        0,
        block,
        3 * block,
        1,
        block - 1,
        block / 2 + 3,
        7 * block + 5,
    ]);
    let blocks = dice.one_of(&[1, 1, 2, 3, 5, 9]);
    let len = match dice.below(3) {
        0 => blocks * block,
        1 => blocks * block - dice.below(block),
        _ => 1 + dice.below(blocks * block),
    };
    let span = FrameRange::new(start, start + len);
    let mut plan = ZonePlan::new(ZoneKind::Normal, span, dice.below(4));
    plan.max_order = Order::new(max_order as u8);
    plan.page_block_order = Order::new(block_order as u8);
    plan.stash.singles = dice.one_of(&[0, 1, 2, 5, 64, 1024]);
    plan.stash.small = dice.one_of(&[0, 1, 16]);
    plan.stash.huge = dice.one_of(&[0, 1, 2, 3, 8]);
    plan.stash.percent = dice.one_of(&[1, 2, 10, 100]);
    let cpus = plan.cpus + dice.below(2) + usize::from(plan.cpus == 0);
    (plan, cpus)
}

struct Map<A: SlotAccess> {
    zone: &'static support::Bricks<A>,
    platform: &'static Cpus,
    plan: ZonePlan,
    cpus: usize,
    is: Vec<Is>,
    held: Vec<(Frame, u8)>,
    isolated: Vec<FrameRange>,
    refused: [usize; 3],
    served: usize,
}

impl<A: SlotAccess> Map<A> {
    fn new(dice: &mut Dice) -> Self {
        let (plan, cpus) = geometry(dice);
        let platform = Cpus::new();
        Self {
            zone: kept(empty(&plan, platform)),
            platform,
            plan,
            cpus,
            is: vec![Is::Absent; plan.span.len()],
            held: Vec::new(),
            isolated: Vec::new(),
            refused: [0; 3],
            served: 0,
        }
    }

    fn at(&mut self, frame: Frame) -> &mut Is {
        &mut self.is[frame.number() - self.plan.span.start.number()]
    }

    fn is(&self, frame: Frame) -> Is {
        let span = self.plan.span;
        if span.contains(frame) {
            self.is[frame.number() - span.start.number()]
        } else {
            Is::Absent
        }
    }

    fn count(&self, range: FrameRange, wanted: Is) -> usize {
        let frames = range.frames().filter(|&frame| self.is(frame) == wanted);
        frames.count()
    }

    fn may_have(&self, frame: Frame, limit: Option<Frame>) -> bool {
        self.is(frame) == Is::Free
            && limit.is_none_or(|limit| frame < limit)
            && !self.isolated.iter().any(|range| range.contains(frame))
    }

    /// Is there a block that the request may have?
    fn has(&self, request: &Request) -> Option<Frame> {
        if request.order > self.plan.max_order {
            return None;
        }
        let frames = request.order.frames();
        let span = self.plan.span;
        let mut start = span.start.number().next_multiple_of(frames);
        while start + frames <= span.end.number() {
            let bad = (start..start + frames)
                .rev()
                .find(|&n| !self.may_have(Frame::new(n), request.limit));
            match bad {
                None => return Some(Frame::new(start)),
                Some(_) => start += frames,
            }
        }
        None
    }

    /// It was refused, or would be.
    fn has_none(&self, request: &Request, why: impl core::fmt::Debug) {
        let (plan, isolated) = (self.plan, &self.isolated);
        let there = self.has(request);
        assert_eq!(
            there, None,
            "{request:?}: {why:?} in {plan:?}, isolated {isolated:?}"
        );
    }

    fn took(&mut self, frame: Frame, request: &Request) {
        for frame in FrameRange::of_block(frame, request.order).frames() {
            assert!(
                self.may_have(frame, request.limit),
                "{frame} for {request:?} in {:?}",
                self.plan
            );
            *self.at(frame) = Is::Used;
        }
        self.served += 1;
        self.held.push((frame, request.order.get()));
    }

    fn request(&self, dice: &mut Dice) -> Request {
        let block = self.plan.page_block_order.get();
        let order = match dice.below(8) {
            0..4 => 0,
            4 => dice.below(4) as u8,
            5 => block,
            _ => dice.below(usize::from(self.plan.max_order.get()) + 2) as u8,
        };
        let mobility = dice.one_of(&Mobility::ALL);
        let request = Request::new(Order::new(order), mobility);
        let span = self.plan.span;
        match dice.below(4) {
            0 => request.below(Frame::new(span.start.number() + dice.below(span.len() + 3))),
            1 if dice.below(20) == 0 => {
                request.below(Frame::new(dice.below(span.start.number() + 1)))
            }
            _ => request,
        }
    }

    fn some_range(&self, dice: &mut Dice) -> FrameRange {
        let span = self.plan.span;
        let start = span.start.number() + dice.below(span.len());
        let most = span.end.number() - start;
        let len = match dice.below(3) {
            0 => 1 + dice.below(most),
            1 => self.plan.page_block_order.frames().min(most),
            _ => 1 + dice.below(most.min(70)),
        };
        FrameRange::new(start, start + len)
    }

    fn ask(&mut self, dice: &mut Dice) {
        let request = self.request(dice);
        let request = if dice.below(4) == 0 {
            request.atomic()
        } else {
            request
        };
        let interrupt = dice.below(8) == 0;
        let asked = match interrupt {
            true => request.in_context(Context::Interrupt),
            false => request,
        };
        self.platform.set_interrupt(interrupt && dice.below(2) == 0);
        let answer = self.zone.alloc(&asked);
        self.platform.set_interrupt(false);
        match answer {
            Ok(frame) => self.took(frame, &asked),
            Err(why) => {
                // An atomic request reaches all slots that are shared.
                let everywhere = !interrupt && (A::LENDS || asked.context == Context::MaySleep);
                self.refused[usize::from(request.order > Order::ZERO)] += 1;
                self.refused[2] += usize::from(!everywhere);
                if everywhere {
                    self.has_none(&asked, why);
                }
            }
        }
    }

    fn ask_for_many(&mut self, dice: &mut Dice) {
        let request = self.request(dice).single();
        let count = dice.one_of(&[0, 1, 3, 255, 256, 257, 3000]);
        let mut out = vec![Frame::new(0); count];
        match self.zone.alloc_bulk(&request, &mut out) {
            Ok(taken) => {
                for &frame in &out[..taken] {
                    self.took(frame, &request);
                }
                if taken < count {
                    self.has_none(&request, taken);
                }
            }
            Err(why) => self.has_none(&request, why),
        }
    }

    fn ask_for_adjacent(&mut self, dice: &mut Dice) {
        let within = self.some_range(dice);
        let mut wanted = ContiguousRequest::new(1 + dice.below(within.len()), within);
        wanted.mobility = dice.one_of(&Mobility::ALL);
        let stuck = Hooks::new(None, Some(Migration::Never));
        if let Ok(range) = alloc_contiguous(self.zone, &wanted, &stuck) {
            for (frame, order) in range.blocks(self.plan.max_order) {
                self.took(frame, &Request::new(order, wanted.mobility));
            }
        }
    }

    fn give(&mut self, dice: &mut Dice) {
        if self.held.is_empty() {
            return;
        }
        let (mut frame, mut order) = self.held.swap_remove(dice.below(self.held.len()));
        while order > 0 && dice.below(4) == 0 {
            // One half of it.
            order -= 1;
            let upper = frame.plus(1 << order);
            if dice.below(2) == 0 {
                self.held.push((upper, order));
            } else {
                self.held.push((frame, order));
                frame = upper;
            }
        }
        for frame in FrameRange::of_block(frame, Order::new(order)).frames() {
            assert_eq!(*self.at(frame), Is::Used);
            *self.at(frame) = Is::Free;
        }
        self.platform.set_interrupt(dice.below(8) == 0);
        let given = self.zone.free(frame, Order::new(order));
        self.platform.set_interrupt(false);
        assert_eq!(given, Ok(()), "{frame} {order} in {:?}", self.plan);
    }

    fn give_many(&mut self, dice: &mut Dice) {
        let count = dice.below(self.held.len() + 1);
        let mut singles = Vec::new();
        for _ in 0..count {
            let (frame, order) = self.held.swap_remove(dice.below(self.held.len()));
            if order > 0 {
                self.held.push((frame, order));
                continue;
            }
            *self.at(frame) = Is::Free;
            singles.push(frame);
        }
        if dice.below(2) == 0 {
            singles.sort_unstable();
        }
        self.zone.free_bulk(&singles).unwrap();
    }

    fn administer(&mut self, dice: &mut Dice) {
        let range = self.some_range(dice);
        let (zone, plan) = (self.zone, self.plan);
        let [free, used, reserved, absent] =
            [Is::Free, Is::Used, Is::Reserved, Is::Absent].map(|is| self.count(range, is));
        let mut set = |from: &[Is], to: Is| {
            for frame in range.frames() {
                if from.contains(&self.is(frame)) {
                    *self.at(frame) = to;
                }
            }
        };
        match dice.below(5) {
            0 => {
                let done = zone.remove(range);
                assert_eq!(done.is_ok(), used == 0, "{range:?} {done:?} {plan:?}");
                if let Ok(gone) = done {
                    assert_eq!(gone, free + reserved);
                    set(&[Is::Free, Is::Reserved], Is::Absent);
                }
            }
            1 => {
                let done = zone.reserve(range);
                assert_eq!(done.is_ok(), used == 0, "{range:?} {done:?} {plan:?}");
                if done.is_ok() {
                    assert_eq!(done, Ok(free));
                    set(&[Is::Free], Is::Reserved);
                }
            }
            2 => {
                assert_eq!(zone.unreserve(range), Ok(reserved));
                set(&[Is::Reserved], Is::Free);
            }
            _ => {
                assert_eq!(zone.add(range), Ok(absent));
                set(&[Is::Absent], Is::Free);
            }
        }
    }

    fn take_at(&mut self, dice: &mut Dice) {
        let order = dice.below(usize::from(self.plan.max_order.get()) + 1) as u8;
        let span = self.plan.span;
        let frame = Frame::new(span.start.number() + dice.below(span.len()));
        let frame = if dice.below(4) > 0 {
            frame.align_down(Order::new(order))
        } else {
            frame
        };
        let request = Request::new(Order::new(order), dice.one_of(&Mobility::ALL));
        let range = FrameRange::of_block(frame, request.order);
        let good = frame.is_aligned(request.order)
            && range.frames().all(|frame| self.may_have(frame, None));
        let answer = self.zone.alloc_at(frame, &request);
        let plan = self.plan;
        assert_eq!(
            answer.is_ok(),
            good,
            "{frame} {order} {answer:?} in {plan:?}"
        );
        if good {
            self.took(frame, &request);
        }
    }

    fn check(&self) {
        let census = self
            .zone
            .check()
            .unwrap_or_else(|why| panic!("{why:?} in {:?}", self.plan));
        let count = |is| self.count(self.plan.span, is);
        let inside = |&range: &FrameRange| self.count(range, Is::Free);
        let isolated: usize = self.isolated.iter().map(inside).sum();
        assert_eq!(census.allocated, count(Is::Used), "{census:?}");
        assert_eq!(census.reserved, count(Is::Reserved), "{census:?}");
        let free = census.free + census.cached + census.isolated;
        assert_eq!(free, count(Is::Free), "{census:?}");
        assert!(census.isolated <= isolated, "{census:?}");
        assert_eq!(self.zone.refused_late(), 0);
    }

    fn step(&mut self, dice: &mut Dice, depth: usize) {
        self.platform.switch_to(dice.below(self.cpus));
        match dice.below(64) {
            0..28 => self.ask(dice),
            28..44 => self.give(dice),
            44..48 => self.ask_for_many(dice),
            48..52 => self.give_many(dice),
            52..54 => self.take_at(dice),
            54..56 if depth == 0 => self.administer(dice),
            56 => {
                self.zone.drain();
            }
            57 => {
                let span = self.plan.span;
                let frame = Frame::new(span.start.number() + dice.below(span.len()));
                self.zone.dedicate(frame, dice.one_of(&Mobility::ALL));
            }
            58 if depth < 3 => self.isolate(dice, depth),
            59 => self.check(),
            60 => self.ask_for_adjacent(dice),
            _ => {
                // Until nothing is left.
                let request = self.request(dice).single();
                while let Ok(frame) = self.zone.alloc(&request) {
                    self.took(frame, &request);
                }
                self.has_none(&request, "until nothing is left");
            }
        }
    }

    /// Others go on while a range is isolated.
    fn isolate(&mut self, dice: &mut Dice, depth: usize) {
        let range = self.some_range(dice);
        let overlaps = |other: &FrameRange| !other.intersection(range).is_empty();
        if self.isolated.iter().any(overlaps) || self.count(range, Is::Used) == 0 {
            return;
        }
        let zone = self.zone;
        self.zone.drain();
        self.isolated.push(range);
        let hook = OthersGoOn(RefCell::new((self, dice, depth, 0)));
        let answer = offline(zone, range, &hook);
        let (map, ..) = hook.0.into_inner();
        map.isolated.pop();
        if answer.is_ok() {
            // All that was in use there has been freed meanwhile.
            for frame in range.frames() {
                assert_ne!(map.is(frame), Is::Used, "{frame}");
                *map.at(frame) = Is::Absent;
            }
        }
    }
}

struct OthersGoOn<'a, A: SlotAccess>(RefCell<(&'a mut Map<A>, &'a mut Dice, usize, usize)>);

impl<A: SlotAccess> Migrate for OthersGoOn<'_, A> {
    fn migrate(&self, _: Frame, order: Order, to: Frame) -> Migration {
        let mut all = self.0.borrow_mut();
        let (map, dice, depth, called) = &mut *all;
        // The place for the copy is in use meanwhile.
        for frame in FrameRange::of_block(to, order).frames() {
            assert!(map.may_have(frame, None), "{frame}");
            *map.at(frame) = Is::Used;
        }
        if *called == 0 {
            for _ in 0..12 {
                map.step(dice, *depth + 1);
            }
        }
        *called += 1;
        for frame in FrameRange::of_block(to, order).frames() {
            *map.at(frame) = Is::Free;
        }
        Migration::Never
    }
}

fn random_runs<A: SlotAccess>(seeds: core::ops::Range<u64>) {
    let (mut served, mut refused) = (0, [0; 3]);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let mut map = Map::<A>::new(&mut dice);
        let span = map.plan.span;
        if dice.below(4) > 0 {
            map.zone.add(span).unwrap();
            map.is.fill(Is::Free);
        }
        for _ in 0..300 {
            map.step(&mut dice, 0);
            if seed % 8 == 0 {
                map.check();
            }
        }
        map.check();
        for (frame, order) in core::mem::take(&mut map.held) {
            map.zone.free(frame, Order::new(order)).unwrap();
        }
        map.zone.drain();
        let used = map.is.iter_mut().filter(|is| **is == Is::Used);
        used.for_each(|is| *is = Is::Free);
        map.check();
        // It has merged as if nothing had ever been taken.
        let mut at = span.start;
        let fresh: support::Bricks<A> = empty(&map.plan, map.platform);
        for run in map.is.chunk_by(|one, next| one == next) {
            let range = FrameRange::at(at, run.len());
            if run[0] == Is::Free {
                fresh.add(range).unwrap();
            }
            at = range.end;
        }
        let (found, expected) = (map.zone.free_counts(), fresh.free_counts());
        assert_eq!(found, expected, "{:?}", map.plan);
        served += map.served;
        (0..3).for_each(|i| refused[i] += map.refused[i]);
    }
    eprintln!("{served} served, {refused:?} refused");
}

#[test]
fn in_every_geometry_a_request_is_refused_only_if_nothing_is_there() {
    random_runs::<Exclusive>(1..400);
    random_runs::<Shared>(1000..1400);
}

// ---- somebody is inside a slot for longer than it is waited for, and goes on ----

/// All that is free lies in the stash of a CPU that is inside it a little longer than one look
/// waits: preempted, say. A request looks up to [`LOOKS_MOST`] times, so the second look finds it.
fn beside_an_owner_inside(inside_until: u32) -> (bool, u32) {
    let zone = lasting::<_, Visited>(512, 2, Numbered);
    CPU.set(0);
    let held = take_all(zone, Mobility::Movable);
    assert_eq!(held.len(), 512);
    give(zone, &held[..20]);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 20));
    CPU.set(1);
    WAITED.set(0);
    INSIDE_UNTIL.set(inside_until);
    IS_SHUT.set(|who, _| who == Comes::Visitor && WAITED.get() < INSIDE_UNTIL.get());
    let answer = zone.alloc(&PAGE);
    let waited = WAITED.get();
    INSIDE_UNTIL.set(0);
    (answer.is_ok(), waited)
}

#[test]
fn an_owner_that_is_inside_its_slot_for_a_while_is_looked_for_again() {
    assert!(beside_an_owner_inside(PATIENCE - 1).0);
    let (found, waited) = beside_an_owner_inside(PATIENCE + 100);
    assert!(
        found,
        "refused after {waited} waits, with 20 frames in a stash"
    );
}

#[test]
fn an_interrupt_waits_for_nobody_who_visits_the_stash_of_its_cpu() {
    let zone: Bricks<_, Visited> = empty(&linux(512), InInterrupt);
    zone.add(TWELVE).unwrap();
    assert_eq!(waits_of_an_interrupt(&zone), 0);
}

// ---- threads that the system stops where it likes ----

#[test]
fn nobody_is_refused_behind_shared_stashes_where_there_are_more_frames_than_users() {
    let plan = linux(512);
    let zone: Bricks<_, Shared> = empty(&ZonePlan { cpus: 4, ..plan }, Numbered);
    zone.add(TWELVE).unwrap();
    more_frames_than_users(&zone);
}
