//! One task requests what is not free, or not free in one block, while all other CPUs allocate and
//! free without end, so that some frames are always in transit.
//!
//! The request must be served or refused within a stated number of its own steps, whatever the
//! others do; one that may sleep is refused only after an attempt to reclaim memory. The seed
//! chooses the request, its context, and the load of the other CPUs.

use core::cell::{Cell, RefCell};

use brickyard::node::{Node, Nodes};
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::watermark::Marks;
use brickyard::{Context, Frame, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Affinity, Setup, Timing, current};
use brickyard_run::Dice;

use super::bound::steps_most_among;
use super::case::Case;
use super::covered::{Counts, Covered, Event};
use super::frames::wrong;
use super::log::{About, Log, Who};
use super::system::Fault;
use super::world::in_context;
use crate::build::SharedPages;
use crate::platform::Simulated;

/// The most CPUs, and the most tasks, that a seed gives to such a case.
pub(super) const CPUS_MOST: u64 = 32;
pub(super) const TASKS_MOST: u64 = 12;

/// One request is made for this many operations of a case.
const OPERATIONS_PER_REQUEST: usize = 64;

/// Cycles after which the other CPUs are running.
const START_CYCLES: u64 = 20_000;

/// The run fails after this many shared accesses of all CPUs. Far more than usual: 64 looks at
/// twelve CPUs, each of which empties its stash for each look, are thousands of turns of all.
const ACCESSES_MOST: u64 = 3_000_000_000;

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// A page, while free memory is below the watermark; the others' requests may go further down.
    BelowTheMark,
    /// A page below a frame, below which nothing is free.
    Below,
    /// The largest block, while each free half has a buddy in use.
    Pair,
    /// A page, while all are in use except those that the others allocate and free.
    Page,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario::BelowTheMark,
    Scenario::Below,
    Scenario::Pair,
    Scenario::Page,
];

/// The load of the other CPUs.
#[derive(Debug, Clone, Copy)]
struct SteadyLoad {
    /// The longest pause between allocating and freeing, in cycles.
    pause: u64,
    /// Frames allocated in each turn.
    batch: usize,
    request: Request,
}

/// Hooks that reclaim and move nothing, and count the requester's calls of reclaim.
#[derive(Debug)]
struct Hooks<'h> {
    requester: &'h Cell<usize>,
    reclaims: &'h Cell<u64>,
}

impl Reclaim for Hooks<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        if current::task() == self.requester.get() {
            self.reclaims.set(self.reclaims.get() + 1);
        }
        0
    }
}

impl Migrate for Hooks<'_> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Never
    }
}

/// The allocator, and the blocks that were allocated before the machine runs.
#[derive(Debug)]
struct Scene<'s, Z: LabZone> {
    node: &'s Node<'s, Z>,
    span: FrameRange,
    taken: RefCell<Vec<(Frame, Order)>>,
}

impl<Z: LabZone> Scene<'_, Z> {
    /// Allocates the block at `frame` if it is free and in one zone.
    fn take(&self, frame: Frame, order: Order) {
        let zones = self.node.zones().iter();
        let block = FrameRange::of_block(frame, order);
        for zone in zones.filter(|zone| zone.span().covers(block)) {
            let request = Request::new(order, Mobility::Movable);
            if zone.alloc_at(frame, &request).is_ok() {
                self.taken.borrow_mut().push((frame, order));
            }
        }
    }

    /// Allocates all frames below `end`, except every `spared`-th.
    fn fill(&self, end: Frame, spared: Option<usize>) {
        let mut frame = self.span.start;
        while frame < end {
            let is_spared = spared.is_some_and(|each| frame.number().is_multiple_of(each));
            if !is_spared {
                self.take(frame, Order::ZERO);
            }
            frame = frame.plus(1);
        }
    }

    /// Prepares the memory for `scenario`, and returns the request to make.
    fn prepare(&self, scenario: Scenario, case: &Case, dice: &mut Dice) -> Request {
        let page = Request::page(Mobility::Movable);
        match scenario {
            Scenario::BelowTheMark => {
                for zone in self.node.zones() {
                    let frames = zone.span().len();
                    let marks = Marks {
                        min: frames / 2,
                        low: frames / 2,
                        high: frames / 2,
                    };
                    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
                }
                // Every third page is free.
                self.fill(self.span.end, Some(3));
                page
            }
            Scenario::Below => {
                let limit = case.limit(self.span);
                self.fill(limit, None);
                page.below(limit)
            }
            Scenario::Pair => {
                let order = self.node.zones()[0].max_order();
                let half = Order::new(order.get().saturating_sub(1));
                let mut frame = self.span.start.align_down(order);
                while frame < self.span.end {
                    // Does nothing at the edges, where no whole block is in the zone.
                    self.take(frame, half);
                    frame = frame.plus(order.frames());
                }
                Request::new(order, Mobility::Movable)
            }
            Scenario::Page => {
                let each = 16 << dice.below(4);
                self.fill(self.span.end, Some(each));
                page
            }
        }
    }
}

/// Runs the scenario that `case` chooses.
pub(super) fn starve<Z: LabZone<Platform = Simulated>>(
    node: &Node<'_, Z>,
    shared: &[SharedPages],
    case: &Case,
    log: &Log,
) -> Result<Covered, Fault> {
    let mut dice = case.dice(u64::MAX - 5);
    let zones = node.zones();
    let span = FrameRange {
        start: zones[0].span().start,
        end: zones[zones.len() - 1].span().end,
    };
    let scene = Scene {
        node,
        span,
        taken: RefCell::default(),
    };
    let scenario = SCENARIOS[dice.below(4) as usize];
    let request = scene.prepare(scenario, case, &mut dice);
    let (requester, reclaims) = (Cell::new(usize::MAX), Cell::new(0));
    let hooks = || Hooks {
        requester: &requester,
        reclaims: &reclaims,
    };
    let nodes = &Nodes::with_hooks(core::slice::from_ref(node), hooks(), case.slow_path());
    nodes.drain();
    let others = Request::page(Mobility::Movable);
    let load = SteadyLoad {
        // Many CPUs with a light load each disturb as much as few with a heavy one.
        pause: [1, 100, 1_000, 10_000][dice.below(4) as usize] * (case.cpus as u64).div_ceil(4),
        batch: [1, 3, 20, 300][dice.below(4) as usize],
        request: match scenario {
            Scenario::BelowTheMark => others.atomic(),
            _ if dice.chance(2) => others.atomic(),
            _ => others,
        },
    };
    let steps_most = steps_most_among(case, span, case.page_block());
    let setup = Setup {
        timing: match dice.chance(2) {
            true => Timing::Caches,
            false => Timing::Random,
        },
        accesses_most: ACCESSES_MOST / case.limit_divisor,
        ..case.setup()
    };
    let (counts, over) = (Counts::new(), Cell::new(false));
    let mut machine = SharedPages::machine(setup, shared);
    let (requester, reclaims, counts, over) = (&requester, &reclaims, &counts, &over);
    for other in 0..case.tasks.min(case.cpus.saturating_sub(1)) {
        let mut dice = case.dice(other as u64);
        let place = Affinity::Cpu(1 + other % (case.cpus - 1));
        machine.task(format!("load {other}"), place, move || {
            let mut held = Vec::new();
            while !over.get() {
                for _ in 0..load.batch {
                    held.extend(nodes.alloc(0, &load.request));
                }
                current::compute(1 + dice.below(load.pause));
                for frame in held.drain(..) {
                    if let Err(why) = nodes.free(frame, Order::ZERO) {
                        wrong(format!("the free of {frame} was refused: {why}"));
                    }
                }
                current::compute(1 + dice.below(load.pause));
            }
        });
    }
    machine.task("requests", Affinity::Cpu(0), move || {
        requester.set(current::task());
        current::sleep(START_CYCLES);
        for _ in 0..case.operations.div_ceil(OPERATIONS_PER_REQUEST) {
            let contexts = [Context::MaySleep, Context::Atomic, Context::Interrupt];
            let request = request.in_context(contexts[dice.below(3) as usize]);
            log.note(Who::Task(1), "requests", About::Order(request.order));
            let (before, reclaims_before) = (current::steps(), reclaims.get());
            let masked = (request.context == Context::Interrupt).then(current::mask);
            let answer = current::within(steps_most, || {
                in_context(request.context, || nodes.alloc(0, &request))
            });
            if let Some(found) = masked {
                current::restore(found);
            }
            counts.count(Event::Starved);
            counts.add(Event::StepsMost, current::steps().since(before).all());
            match answer {
                Ok(frame) => {
                    counts.count(Event::Served);
                    if let Err(why) = nodes.free(frame, request.order) {
                        wrong(format!("the free of {frame} was refused: {why}"));
                    }
                }
                Err(why) => {
                    counts.count(Event::Refused);
                    let may_sleep = request.context == Context::MaySleep;
                    if may_sleep && reclaims.get() == reclaims_before {
                        wrong(format!(
                            "{request:?} was refused ({why}), but the reclaim hook was not called for it"
                        ));
                    }
                }
            }
        }
        over.set(true);
    });
    let ended = machine.run()?;
    counts.count(Event::Runs);
    counts.add(Event::Accesses, ended.accesses);
    counts.add(Event::Switches, ended.switches);
    for (frame, order) in scene.taken.take() {
        let answer = nodes.free(frame, order);
        answer.map_err(|why| Fault::After(format!("the free of {frame} was refused: {why}")))?;
    }
    nodes.drain();
    match nodes.check() {
        Ok(census) if census.free == span.len() => Ok(counts.covered()),
        Ok(census) => Err(Fault::After(format!(
            "{} frames should be free, but the census is {census:?}",
            span.len()
        ))),
        Err(violation) => Err(Fault::After(violation.to_string())),
    }
}
