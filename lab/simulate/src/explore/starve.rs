//! One task asks for what is not there, or not there as a whole, while all other CPUs allocate and
//! free for ever, so that there is always something on its way somewhere.
//!
//! The request must come to its end within a stated number of its own steps, whatever the others
//! do: served, or refused after memory was to be reclaimed for it, where it may sleep. The seed
//! chooses what is asked for, from which context, and what the others do in which rhythm.

use core::cell::{Cell, RefCell};

use brickyard::node::{Node, Nodes};
use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::watermark::Marks;
use brickyard::{Context, Frame, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_classics::LabZone;
use brickyard_machine::{Affinity, Dice, Setup, Timing, here};

use super::bound::steps_most_among;
use super::case::Case;
use super::covered::{Counts, Covered, Event};
use super::frames::wrong;
use super::log::{About, Log, Who};
use super::system::Fault;
use super::world::in_context;
use crate::build::SharedPages;
use crate::platform::Simulated;

/// CPUs at most, and tasks that a seed lets go on for ever.
pub(super) const CPUS_MOST: u64 = 32;
pub(super) const TASKS_MOST: u64 = 12;

/// Operations of a case that make one request.
const OPERATIONS_PER_REQUEST: usize = 64;

/// Cycles after which the others are at work.
const START_CYCLES: u64 = 20_000;

/// Shared accesses of all together after which there is no end, whatever the asker does. Far more
/// than what is common: 64 looks at twelve CPUs, each of which is asked to empty its stash in
/// between, are thousands of turns of all.
const ACCESSES_MOST: u64 = 3_000_000_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A page, while free memory is below the mark; the others may go further down.
    BelowTheMark,
    /// A page below a frame, below which nothing is free.
    Below,
    /// The largest block, while each half that is free has a neighbour in use.
    Pair,
    /// A page, while all are in use but those that the others take and free.
    Page,
}

const ASKED: [Asked; 4] = [Asked::BelowTheMark, Asked::Below, Asked::Pair, Asked::Page];

/// How the others go on.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    /// Cycles between two turns at most.
    pause: u64,
    /// Frames of a turn.
    batch: usize,
    request: Request,
}

/// Nothing can be reclaimed or moved; the number of requests for it is kept.
#[derive(Debug)]
struct Hooks<'h> {
    asker: &'h Cell<usize>,
    reclaims: &'h Cell<u64>,
}

impl Reclaim for Hooks<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        if here::task() == self.asker.get() {
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

/// The allocator, and what was taken before the machine runs.
#[derive(Debug)]
struct Scene<'s, Z: LabZone> {
    node: &'s Node<'s, Z>,
    span: FrameRange,
    taken: RefCell<Vec<(Frame, Order)>>,
}

impl<Z: LabZone> Scene<'_, Z> {
    /// Takes the block at `frame` if it is free and in one zone.
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

    /// Takes all frames up to `end`, but for one of `spared` each.
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

    /// Prepares what `asked` needs, and says what is asked for.
    fn prepare(&self, asked: Asked, case: &Case, dice: &mut Dice) -> Request {
        let page = Request::page(Mobility::Movable);
        match asked {
            Asked::BelowTheMark => {
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
            Asked::Below => {
                let limit = case.limit(self.span);
                self.fill(limit, None);
                page.below(limit)
            }
            Asked::Pair => {
                let order = self.node.zones()[0].max_order();
                let half = Order::new(order.get().saturating_sub(1));
                let mut frame = self.span.start.align_down(order);
                while frame < self.span.end {
                    // The edges are no whole blocks.
                    self.take(frame, half);
                    frame = frame.plus(order.frames());
                }
                Request::new(order, Mobility::Movable)
            }
            Asked::Page => {
                let each = 16 << dice.below(4);
                self.fill(self.span.end, Some(each));
                page
            }
        }
    }
}

/// Runs the scene that `case` chooses.
pub(super) fn starve<Z: LabZone<Platform = Simulated>>(
    node: &Node<'_, Z>,
    pieces: &[SharedPages],
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
    let asked = ASKED[dice.below(4) as usize];
    let request = scene.prepare(asked, case, &mut dice);
    let (asker, reclaims) = (Cell::new(usize::MAX), Cell::new(0));
    let hooks = || Hooks {
        asker: &asker,
        reclaims: &reclaims,
    };
    let nodes = &Nodes::with_hooks(core::slice::from_ref(node), hooks(), case.slow_path());
    nodes.drain();
    let others = Request::page(Mobility::Movable);
    let rhythm = Rhythm {
        // Many CPUs with a little to do each are as many obstacles as few with much.
        pause: [1, 100, 1_000, 10_000][dice.below(4) as usize] * (case.cpus as u64).div_ceil(4),
        batch: [1, 3, 20, 300][dice.below(4) as usize],
        request: match asked {
            Asked::BelowTheMark => others.atomic(),
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
        accesses_most: ACCESSES_MOST / case.hurry,
        ..case.setup()
    };
    let (counts, over) = (Counts::new(), Cell::new(false));
    let mut machine = SharedPages::machine(setup, pieces);
    let (asker, reclaims, counts, over) = (&asker, &reclaims, &counts, &over);
    for other in 0..case.tasks.min(case.cpus.saturating_sub(1)) {
        let mut dice = case.dice(other as u64);
        let place = Affinity::Cpu(1 + other % (case.cpus - 1));
        machine.task(format!("goes on {other}"), place, move || {
            let mut held = Vec::new();
            while !over.get() {
                for _ in 0..rhythm.batch {
                    held.extend(nodes.alloc(0, &rhythm.request));
                }
                here::compute(1 + dice.below(rhythm.pause));
                for frame in held.drain(..) {
                    if let Err(why) = nodes.free(frame, Order::ZERO) {
                        wrong(format!("the free of {frame} was refused: {why}"));
                    }
                }
                here::compute(1 + dice.below(rhythm.pause));
            }
        });
    }
    machine.task("asks", Affinity::Cpu(0), move || {
        asker.set(here::task());
        here::sleep(START_CYCLES);
        for _ in 0..case.operations.div_ceil(OPERATIONS_PER_REQUEST) {
            let contexts = [Context::MaySleep, Context::Atomic, Context::Interrupt];
            let request = request.in_context(contexts[dice.below(3) as usize]);
            log.note(Who::Task(1), "asks for", About::Order(request.order));
            let (before, reclaims_before) = (here::steps(), reclaims.get());
            let masked = (request.context == Context::Interrupt).then(here::mask);
            let answer = here::within(steps_most, || {
                in_context(request.context, || nodes.alloc(0, &request))
            });
            if let Some(found) = masked {
                here::restore(found);
            }
            counts.count(Event::Starved);
            counts.add(Event::StepsMost, here::steps().since(before).all());
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
                            "{request:?} was refused ({why}), and no memory was to be reclaimed for it"
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
            "{} frames should be free, and there are {census:?}",
            span.len()
        ))),
        Err(violation) => Err(Fault::After(violation.to_string())),
    }
}
