//! Step by step beside a recorded host: at each decision that the trace shows, the state is the
//! host's, and the rules of Linux are asked what they would do.
//!
//! The free blocks of each zone are followed by the events of the zone: every block that comes off
//! its lists, goes back, or is fallen back on. So an answer is judged by itself, and an error does
//! not grow from step to step, as it does in a replay. What is not visible is followed by the rules
//! alone: how large a page set may grow, and what it has learnt.
//!
//! Asked is:
//!
//! - of each block taken from a list of its own type: the order of the free block that is split;
//! - of each fallback: the list, the order of the block found there, and whether the page block
//!   changes its type;
//! - of each refill and each drain of a page set: how much it moves.
//!
//! Of what a page set holds, the trace shows a little too much or too little: a free is shown when
//! it begins, up to 31 before the first of them acts, and what is requested in bulk is not shown at
//! all. So a drain after a free shows how full the set was, and is asked for its length alone; and
//! a set that would be full by now, but is not drained, is taken not to be.

mod drains;

use core::fmt;
use core::ops::ControlFlow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use brickyard::block::Use;
use brickyard::{Frame, FrameRange, MigrateType, Order};
use brickyard_designs::classics::linux::{Blocks, Burst, Choice, Course, Mode, Rights, Sizes, Way};
use brickyard_designs::classics::store::buddy::Buddy;
use brickyard_designs::classics::store::frames::{FrameRecord, FrameTable};
use brickyard_designs::classics::store::grouping::{BlockRecord, PageBlocks};
use brickyard_host::zoneinfo;
use brickyard_run::named;
use brickyard_trace::{Event, Events, Step, Trace, What};

use crate::machine::{Machine, ZonePlace};
use crate::pages::PageId;
use crate::replay::REPORT;
use crate::script::Beginning;
use crate::start::TICK;
use drains::{Due, WhyDrained};

named! {
    /// A kind of decision.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Decision {
        /// The order of the block that is split for a request of its type.
        Split => "order split",
        /// The list that a request falls back on.
        List => "list fallen back on",
        /// The order of the block that it finds there.
        Found => "order fallen back on",
        /// Whether the page block changes its type.
        Claim => "claim or steal",
        /// The number of blocks that a refill of a page set fetches.
        Refill => "refill",
        /// The number of frames that leave a page set at a time.
        Drain => "drain",
    }
}

/// The answers to one kind of question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Agreement {
    /// How often it was asked.
    pub asked: u64,
    /// How often the answer was what the host did.
    pub agreed: u64,
    /// The others: what the host did, what the answer was, and how often.
    pub differences: BTreeMap<(String, String), u64>,
}

impl Agreement {
    fn ask(&mut self, host: impl ToString, answer: impl ToString, agree: bool) {
        self.asked += 1;
        self.agreed += u64::from(agree);
        if !agree {
            let pair = (host.to_string(), answer.to_string());
            *self.differences.entry(pair).or_default() += 1;
        }
    }

    /// Returns the part of answers that agree; `None` if nothing was asked.
    #[must_use]
    pub fn part(&self) -> Option<f64> {
        (self.asked > 0).then(|| self.agreed as f64 / self.asked as f64)
    }
}

named! {
    /// An event that contradicts the state followed so far. The state is then set by the event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Contradiction {
        /// A block was taken that was in use.
        TakenInUse => "taken from a zone, but in use",
        /// A block was handed out that was free in its zone.
        HandedOutFree => "handed out, but free in its zone",
        /// A block came back that was free.
        BackButFree => "back in its zone, but free already",
        /// A free block that the host would have taken, but did not.
        NotOnList => "free by the events, but not on its list",
        /// The page block had another type.
        OtherType => "from a page block of another type",
        /// A page set was drained neither after a free on its CPU nor with time.
        OtherDrain => "drained for a reason that is not visible",
    }
}

/// All answers to the questions about one trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Decisions {
    /// By kind of decision, in the order of [`Decision::ALL`].
    pub agreements: Vec<Agreement>,
    /// How often events contradicted the state.
    pub contradictions: BTreeMap<Contradiction, u64>,
    /// Events that were followed.
    pub events: u64,
    /// By page block, counted from frame 0: the types that it does not have at the start, a bit for
    /// each.
    pub excluded: HashMap<usize, u8>,
    /// Whether the host reports its free page blocks to a host of its own, which makes them
    /// movable: page blocks that had become free were not on the list of their type any more.
    pub reports_free: bool,
}

/// Why decisions cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionsError {
    /// The trace has no events of zones.
    #[error(
        "the trace does not show what moves between zones and the lists of CPUs: record it with `--events zones`"
    )]
    NoZoneEvents,
    /// This host has too little memory for the records of all frames.
    #[error("this host cannot allocate {0} bytes for the records of the trace's frames")]
    TooLittleMemory(usize),
    /// The trace's events cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The caller has ended it.
    #[error("interrupted")]
    Stopped,
}

/// Follows a trace on its machine, from this state of memory on, and asks the rules of Linux at
/// each decision: those with each of these bursts, all in one pass. O(events), and 12 bytes a
/// frame, for each burst.
///
/// # Errors
/// [`DecisionsError`] if the trace does not show decisions.
pub fn follow(
    source: &impl Events,
    machine: &Machine,
    beginning: &Beginning,
    bursts: &[Burst],
    mut goes_on: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Vec<Decisions>, DecisionsError> {
    if !has_zone_events(source)? {
        return Err(DecisionsError::NoZoneEvents);
    }
    let trace = source.outline();
    let records = |zone: &ZonePlace| -> Result<_, DecisionsError> {
        let blocks = PageBlocks::blocks_in(zone.span, machine.page_block_order);
        let frames = made(zone.span.len(), FrameRecord::default)?;
        Ok((frames, made(blocks, BlockRecord::new)?))
    };
    let of_machine = || machine.zones.iter().map(records).collect();
    let of_bursts = bursts.iter().map(|_| of_machine());
    let records: Vec<Vec<(Vec<FrameRecord>, Vec<BlockRecord>)>> =
        of_bursts.collect::<Result<_, _>>()?;
    let mut following: Vec<Following<'_>> = bursts
        .iter()
        .zip(&records)
        .map(|(&burst, records)| {
            let zones = machine.zones.iter().zip(records);
            let zones = zones.map(|(place, (frames, blocks))| {
                Zone::new(trace, machine, place, frames, blocks, burst)
            });
            Following::new(machine, zones.collect(), beginning)
        })
        .collect();
    let mut ended = false;
    let read = source.pass(|events, names| {
        // One after another: each has much in the caches that the others do not use.
        for own in &mut following {
            for event in events {
                own.event(event, names);
            }
        }
        let next = goes_on(events.len() as u64);
        ended = next.is_break();
        next
    });
    read.map_err(|why| DecisionsError::Unreadable(why.to_string()))?;
    if ended {
        return Err(DecisionsError::Stopped);
    }
    let decisions = following.into_iter().map(|own| Decisions {
        events: source.count(),
        ..own.decisions
    });
    Ok(decisions.collect())
}

fn has_zone_events(source: &impl Events) -> Result<bool, DecisionsError> {
    let mut found = false;
    let read = source.pass(|events, _| {
        let mut events = events.iter();
        found = events.any(|event| matches!(event.what, What::Taken { .. }));
        match found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    read.map_err(|why| DecisionsError::Unreadable(why.to_string()))?;
    Ok(found)
}

/// Makes so many records.
fn made<T>(count: usize, one: impl Fn() -> T) -> Result<Vec<T>, DecisionsError> {
    let mut records = Vec::new();
    let reserved = records.try_reserve_exact(count);
    reserved.map_err(|_| DecisionsError::TooLittleMemory(count * size_of::<T>()))?;
    records.resize_with(count, one);
    Ok(records)
}

/// A zone of the host.
struct Zone<'a> {
    span: FrameRange,
    buddy: Buddy<'a, Blocks<'a>>,
    sizes: Sizes,
    high: usize,
    below_high: bool,
    // By CPU.
    courses: Vec<Course>,
    counts: Vec<i64>,
    // Page blocks, counted from frame 0, that events have shown to become free as a whole.
    freed_whole: HashSet<usize>,
    // What would leave by each of the last frees in a row, if it had filled the page set.
    announced: Vec<VecDeque<usize>>,
}

impl<'a> Zone<'a> {
    fn new(
        trace: &Trace,
        machine: &Machine,
        place: &ZonePlace,
        frames: &'a [FrameRecord],
        blocks: &'a [BlockRecord],
        burst: Burst,
    ) -> Self {
        let block_order = machine.page_block_order;
        let grouping = Blocks::new(place.span, block_order, blocks, 0);
        let table = FrameTable::new(place.span, frames);
        let buddy = Buddy::new(table, machine.max_order, grouping);
        for range in &machine.memory {
            let range = range.intersection(place.span);
            if !range.is_empty() {
                // The range is in the span.
                let _ = buddy.add(range);
            }
        }
        let texts = zoneinfo::parse(&trace.header.start.zoneinfo).unwrap_or_default();
        let own = texts
            .into_iter()
            .find(|zone| zone.node == place.node && zone.name == place.kind.name())
            .unwrap_or_default();
        let sizes = Sizes::of(own.managed as usize, own.low as usize, machine.cpus);
        let courses: Vec<Course> = (0..machine.cpus).map(|_| Course::new(burst)).collect();
        for set in &own.pagesets {
            if let Some(course) = courses.get(set.cpu as usize) {
                course.set_high(set.high as usize);
            }
        }
        Self {
            span: place.span,
            buddy,
            sizes,
            high: own.high as usize,
            below_high: false,
            courses,
            counts: vec![0; machine.cpus],
            freed_whole: HashSet::new(),
            announced: vec![VecDeque::new(); machine.cpus],
        }
    }

    /// Tells the course of a CPU's page set how many frames events show in it.
    fn sync(&self, cpu: usize) {
        self.courses[cpu].set_count(self.counts[cpu].max(0) as usize);
    }

    /// Returns true if a page set is full when it holds as many frames as it may, and not earlier.
    fn fills_up(&self, reclaiming: bool) -> bool {
        !self.below_high && !reclaiming
    }

    /// Takes a free block off the lists, as the host did. Returns false if it is not free.
    fn take(&self, frame: Frame, order: Order) -> bool {
        let request = brickyard::Request::new(order, brickyard::Mobility::Movable);
        self.buddy.take_at(frame, &request).is_ok()
    }

    /// Returns what a request of this type would get.
    fn search(&self, order: Order, wanted: MigrateType, mode: Mode) -> Option<Choice> {
        let blocks = self.buddy.grouping();
        blocks
            .search(&self.buddy, order, wanted, Rights::NONE, mode)
            .found
    }

    fn retype(&self, frame: Frame, kind: MigrateType) {
        self.buddy.grouping().retype(&self.buddy, frame, kind);
    }

    /// Gives all page blocks of a free block this type.
    fn retype_all(&self, first: Frame, order: Order, kind: MigrateType, block: Order) {
        let (mut at, end) = (first, first.plus(order.frames()));
        while at < end {
            self.retype(at, kind);
            at = at.align_down(block).plus(block.frames());
        }
    }

    fn free_block(&self, frame: Frame) -> Option<(Frame, Order, MigrateType)> {
        let (first, state) = self.buddy.block_of(frame)?;
        (state.usage == Use::Free).then_some((first, state.order, state.kind))
    }
}

/// What a run of events on one CPU moves at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Refill {
        zone: usize,
        order: Order,
        wanted: usize,
        taken: usize,
    },
    Drain {
        zone: usize,
        why: WhyDrained,
        left: usize,
        last: usize,
    },
}

#[derive(Debug, Clone, Default)]
struct Cpu {
    run: Option<Run>,
    // A block that came off a list of another type: its page block is being claimed.
    claiming: Option<Event>,
    // A refill has counted the request that caused it.
    requested: bool,
    // A refill has stolen: the rest of it only steals.
    steals: bool,
    // Drains that the rules ask for and that have not been seen yet.
    due: VecDeque<Due>,
    // The last event was a free by this task.
    freed_by: Option<i32>,
    // When its page sets shrink next.
    next_tick: u64,
}

struct Following<'a> {
    zones: Vec<Zone<'a>>,
    huge: Order,
    cpus: Vec<Cpu>,
    reclaiming: bool,
    next_report: u64,
    decisions: Decisions,
}

impl<'a> Following<'a> {
    fn new(machine: &Machine, zones: Vec<Zone<'a>>, beginning: &Beginning) -> Self {
        let mut following = Self {
            zones,
            huge: machine.page_block_order,
            cpus: vec![Cpu::default(); machine.cpus],
            reclaiming: false,
            next_report: 0,
            decisions: Decisions {
                agreements: vec![Agreement::default(); Decision::ALL.len()],
                ..Decisions::default()
            },
        };
        following.begin(beginning);
        following
    }

    fn zone_of(&self, frame: Frame) -> Option<usize> {
        self.zones.iter().position(|zone| zone.span.contains(frame))
    }

    fn agreement(&mut self, decision: Decision) -> &mut Agreement {
        &mut self.decisions.agreements[decision as usize]
    }

    fn contradicted(&mut self, how: Contradiction) {
        *self.decisions.contradictions.entry(how).or_default() += 1;
    }

    /// Returns true if page sets have lists for this order.
    fn is_listed(&self, order: Order) -> bool {
        order.get() <= 3 || order == self.huge
    }

    /// Takes everything that is in use or in a page set at the start, and gives page blocks their
    /// types.
    fn begin(&mut self, beginning: &Beginning) {
        let first = beginning.first() as usize;
        let frame_of = |page: PageId| Frame::new(first + page.0 as usize);
        for block in beginning.initial_blocks() {
            let frame = frame_of(block.page);
            if let Some(zone) = self.zone_of(frame) {
                self.take_all(zone, frame, block.order);
            }
        }
        for idle in beginning.idle() {
            let frame = frame_of(idle.page);
            if let Some(zone) = self.zone_of(frame) {
                self.take_all(zone, frame, idle.order);
                let cpu = usize::from(idle.cpu) % self.cpus.len();
                self.zones[zone].counts[cpu] += idle.order.frames() as i64;
            }
        }
        for (page, kind) in beginning.types() {
            let frame = frame_of(page);
            if let Some(zone) = self.zone_of(frame) {
                self.zones[zone].retype(frame, kind);
            }
        }
        for zone in &self.zones {
            for (course, &count) in zone.courses.iter().zip(&zone.counts) {
                course.set_count(count.max(0) as usize);
            }
        }
        for (place, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.next_tick = beginning.first_ticks().get(place).copied().unwrap_or(TICK);
        }
    }

    /// Takes a block, or as much of it as is free.
    fn take_all(&mut self, zone: usize, frame: Frame, order: Order) {
        if self.zones[zone].take(frame, order) {
            return;
        }
        for frame in FrameRange::of_block(frame, order).frames() {
            self.zones[zone].take(frame, Order::ZERO);
        }
    }

    fn event(&mut self, event: &Event, names: &[String]) {
        let cpu = usize::from(event.cpu) % self.cpus.len();
        let frame = Frame::new(event.frame as usize);
        self.end_run(cpu, event);
        self.pass_time(cpu, event.time);
        self.report(event.time);
        if let Some(taken) = self.cpus[cpu].claiming.take() {
            let resolves =
                matches!(event.what, What::Fallback { .. }) && event.frame == taken.frame;
            if !resolves {
                self.take_of_other_type(cpu, &taken);
            }
        }
        match event.what {
            What::Step {
                step: Step::KswapdWakes,
                ..
            } => self.reclaiming = true,
            What::Step {
                step: Step::KswapdSleeps,
                ..
            } => self.reclaiming = false,
            _ => {}
        }
        let Some(zone) = self.zone_of(frame).filter(|_| event.what.has_frames()) else {
            return;
        };
        self.in_zone(cpu, zone, event, frame, names);
        self.cpus[cpu].freed_by = (event.what == What::Free).then_some(event.pid);
    }

    fn in_zone(&mut self, cpu: usize, zone: usize, event: &Event, frame: Frame, names: &[String]) {
        match event.what {
            What::Taken { mobility, .. } => self.taken(cpu, zone, event, frame, mobility),
            What::Fallback {
                mobility,
                from_order,
                from,
                claimed,
            } => self.fell_back(
                cpu,
                zone,
                event,
                frame,
                (mobility, from_order, from, claimed),
            ),
            What::Drained { mobility } => {
                self.put_back(zone, frame, event.order, Some(mobility));
                self.drained(cpu, zone, event, names);
            }
            What::Alloc { .. } => self.handed_out(cpu, zone, event, frame),
            What::Free => self.freed(cpu, zone, event, frame),
            What::Failure { .. } | What::Batched | What::Step { .. } => {}
        }
    }

    /// Ends the run of a CPU, unless the event continues it, and judges its length.
    fn end_run(&mut self, cpu: usize, event: &Event) {
        let goes_on = match (self.cpus[cpu].run, event.what) {
            (Some(Run::Refill { order, .. }), What::Taken { .. } | What::Fallback { .. }) => {
                order == event.order
            }
            (Some(Run::Drain { .. }), What::Drained { .. }) => true,
            (None, _) => true,
            _ => false,
        };
        if goes_on {
            return;
        }
        self.cpus[cpu].steals = false;
        match self.cpus[cpu].run.take() {
            Some(Run::Refill { wanted, taken, .. }) => {
                self.agreement(Decision::Refill)
                    .ask(taken, wanted, taken == wanted);
            }
            Some(Run::Drain {
                zone,
                why,
                left,
                last,
            }) => self.end_drain(cpu, zone, why, (left, last)),
            None => {}
        }
    }

    /// Counts a block of a refill, and asks how many it will be at the first.
    fn refilled(&mut self, cpu: usize, zone: usize, order: Order) {
        if !self.is_listed(order) {
            return;
        }
        let frames = order.frames() as i64;
        self.zones[zone].counts[cpu] += frames;
        if let Some(Run::Refill {
            zone: own, taken, ..
        }) = &mut self.cpus[cpu].run
            && *own == zone
        {
            *taken += 1;
            return;
        }
        let of = &self.zones[zone];
        let course = &of.courses[cpu];
        course.request();
        // What it holds before this block.
        course.set_count((of.counts[cpu] - frames).max(0) as usize);
        let wanted = course.refill(order, &of.sizes, of.below_high);
        self.cpus[cpu].requested = true;
        self.cpus[cpu].run = Some(Run::Refill {
            zone,
            order,
            wanted,
            taken: 1,
        });
    }

    fn taken(&mut self, cpu: usize, zone: usize, event: &Event, frame: Frame, list: MigrateType) {
        let Some((_, order, kind)) = self.zones[zone].free_block(frame) else {
            self.contradicted(Contradiction::TakenInUse);
            self.refilled(cpu, zone, event.order);
            return;
        };
        if kind != list {
            // Either the page block is being claimed, and the next event says so, or its type
            // changed without one.
            self.cpus[cpu].claiming = Some(*event);
            return;
        }
        let found = self.zones[zone].search(event.order, list, Mode::Normal);
        let answer = found.map(|found| (found.order, found.list));
        let agrees = answer == Some((order, list));
        let answer = Answer(answer.map(|(order, _)| order));
        self.agreement(Decision::Split).ask(order, answer, agrees);
        self.put_aside(zone, event.order, list, Some(order));
        self.zones[zone].take(frame, event.order);
        self.refilled(cpu, zone, event.order);
    }

    /// Takes all blocks off a list that are of at least `from` and smaller than `to`: the host
    /// would have taken one of them, so they are not on that list there. Their page blocks are not
    /// of that type, or they are in use for a reason that is not visible.
    fn put_aside(&mut self, zone: usize, from: Order, list: MigrateType, to: Option<Order>) {
        while let Some(found) = self.zones[zone].search(from, list, Mode::Normal)
            && found.way == Way::Own
            && to.is_none_or(|to| found.order < to)
        {
            if self.was_reported(zone, &found) {
                continue;
            }
            if !self.zones[zone].take(found.frame, found.order) {
                return;
            }
            self.contradicted(Contradiction::NotOnList);
            let block = found.frame.number() >> self.huge.get();
            *self.decisions.excluded.entry(block).or_default() |= 1 << list.index();
        }
    }

    /// Returns true if a free block that the host has passed over was reported to a host of its
    /// own, and is movable now: page blocks that became free by events have changed their type
    /// without one. From then on all are reported.
    fn was_reported(&mut self, zone: usize, found: &Choice) -> bool {
        let of = &self.zones[zone];
        let block = found.frame.number() >> self.huge.get();
        if found.list == MigrateType::Movable
            || found.order < self.huge
            || !of.freed_whole.contains(&block)
        {
            return false;
        }
        self.decisions.reports_free = true;
        of.retype_all(found.frame, found.order, MigrateType::Movable, self.huge);
        true
    }

    /// Reports free page blocks, as far as is known that the host does so.
    fn report(&mut self, time: u64) {
        if self.decisions.reports_free && time < self.next_report {
            return;
        }
        if self.decisions.reports_free {
            for zone in &self.zones {
                zone.buddy.grouping().report(&zone.buddy, 0);
            }
        }
        self.next_report = time.saturating_add(REPORT);
    }

    /// Follows a block that came off a list of another type than its page block has by the events.
    fn take_of_other_type(&mut self, cpu: usize, taken: &Event) {
        let frame = Frame::new(taken.frame as usize);
        let (What::Taken { mobility, .. }, Some(zone)) = (taken.what, self.zone_of(frame)) else {
            return;
        };
        self.contradicted(Contradiction::OtherType);
        self.zones[zone].retype(frame, mobility);
        self.zones[zone].take(frame, taken.order);
        self.refilled(cpu, zone, taken.order);
    }

    fn fell_back(
        &mut self,
        cpu: usize,
        zone: usize,
        event: &Event,
        frame: Frame,
        (wanted, from_order, from, claimed): (MigrateType, Order, MigrateType, bool),
    ) {
        self.cpus[cpu].claiming = None;
        let mode = match self.cpus[cpu].steals {
            true => Mode::Steal,
            false => Mode::Normal,
        };
        let found = self.zones[zone].search(event.order, wanted, mode);
        let list = found.map_or("nothing", |found| kind_name(found.list));
        let order = found.map_or("nothing".to_owned(), |found| found.order.to_string());
        let way = match found.map(|found| found.way) {
            None => "nothing",
            Some(Way::Own | Way::SetAside) => "neither",
            Some(Way::ClaimWhole | Way::ClaimPart) => "claim",
            Some(Way::Steal) => "steal",
        };
        let real = if claimed { "claim" } else { "steal" };
        let host = kind_name(from);
        self.agreement(Decision::List).ask(host, list, host == list);
        let host = from_order.to_string();
        let same = host == order;
        self.agreement(Decision::Found).ask(host, order, same);
        self.agreement(Decision::Claim).ask(real, way, real == way);
        self.put_aside(zone, event.order, wanted, None);
        self.cpus[cpu].steals = !claimed;
        let of = &self.zones[zone];
        if claimed {
            let (first, order) = of
                .free_block(frame)
                .map_or((frame, event.order), |(first, order, _)| (first, order));
            of.retype_all(first, order, wanted, self.huge);
        }
        if !of.take(frame, event.order) {
            self.contradicted(Contradiction::TakenInUse);
        }
        self.refilled(cpu, zone, event.order);
    }

    /// Puts a block back on the lists of its zone.
    fn put_back(&mut self, zone: usize, frame: Frame, order: Order, list: Option<MigrateType>) {
        let of = &self.zones[zone];
        if let (Some(list), Some(kind)) = (list, of.buddy.block_type(frame))
            && list != kind
        {
            of.retype(frame, list);
            self.contradicted(Contradiction::OtherType);
        }
        let huge = self.huge;
        let of = &mut self.zones[zone];
        if of.buddy.give(frame, order).is_ok() {
            if let Some((first, order, _)) = of.free_block(frame)
                && order >= huge
            {
                let first = first.number() >> huge.get();
                of.freed_whole
                    .extend(first..first + (order.frames() >> huge.get()));
            }
            return;
        }
        // Its parts were taken one by one.
        let parts = FrameRange::of_block(frame, order).frames();
        let refused = parts.filter(|&frame| of.buddy.give(frame, Order::ZERO).is_err());
        if refused.count() > 0 {
            self.contradicted(Contradiction::BackButFree);
        }
    }

    fn handed_out(&mut self, cpu: usize, zone: usize, event: &Event, frame: Frame) {
        if self.zones[zone].free_block(frame).is_some() {
            self.contradicted(Contradiction::HandedOutFree);
            self.take_all(zone, frame, event.order);
            return;
        }
        if !self.is_listed(event.order) {
            return;
        }
        let requested = core::mem::take(&mut self.cpus[cpu].requested);
        self.end_due(cpu);
        let of = &mut self.zones[zone];
        of.counts[cpu] -= event.order.frames() as i64;
        let course = &of.courses[cpu];
        if !requested {
            course.request();
        }
        course.set_count(of.counts[cpu].max(0) as usize);
        of.below_high |= of.buddy.free_frames() <= of.high;
    }
}

/// The order of a block that is chosen, if one is.
struct Answer(Option<Order>);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(order) => order.fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

const fn kind_name(kind: MigrateType) -> &'static str {
    match kind {
        MigrateType::Unmovable => "unmovable",
        MigrateType::Movable => "movable",
        MigrateType::Reclaimable => "reclaimable",
        MigrateType::HighAtomic => "high-atomic",
        MigrateType::Isolate => "isolate",
    }
}
