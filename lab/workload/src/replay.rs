//! Replaying a trace through an allocator with the model kernel on top.
//!
//! On the recorded host, every page in use at the start is placed at its frame. On a machine of
//! another size memory is empty at first, and pages that do not fit are reclaimed as by a kernel:
//! the trace's later frees of them are dropped, and counted. Every request starts at the first
//! node: a trace does not record the nodes of its CPUs.

use std::io;
use std::time::Instant;

use brickyard::node::{Node, Nodes};
use brickyard::pressure::compact::compact_all;
use brickyard::{AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Request, Shape};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::LabZone;

use crate::build::{BuildError, Job, build};
use crate::kernel::{Background, Freed, Kernel, Logged, Rules};
use crate::machine::Machine;
use crate::outcome::{HugePages, Mixer, Outcome, ZoneEnd, mobility_name};
use crate::pages::{Block, Location, PageId, Pages, Role};
use crate::processor::Processor;
use crate::script::{Action, Script, ScriptStep};
use crate::start::{Known, TICK, TICKS_MOST};
use crate::view::{View, free_counts};

/// The contents of memory before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// All memory is free.
    Empty,
    /// The pages in use on the recorded host.
    Recorded,
}

/// The options of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The contents of memory at first.
    pub start: Start,
    /// How the model kernel handles memory pressure.
    pub rules: Rules,
    /// The time between two samples, in nanoseconds of the trace.
    pub sample_every: u64,
}

/// Observer of a replay: it follows the progress, may end the replay, and gets the state of memory
/// at each sample.
pub trait Watcher {
    /// Whether [`Watcher::step`] is called.
    const STEPS: bool = false;

    /// Called after each step, with its number and what it did to blocks.
    fn step(&mut self, place: usize, step: &ScriptStep, blocks: &[Logged]) {
        let _ = (place, step, blocks);
    }

    /// Called every few thousand steps with the number of steps done. Returning false ends the
    /// replay.
    fn progress(&mut self, steps: u64) -> bool {
        let _ = steps;
        true
    }

    /// Called with the state of memory at each sample, and at the end.
    fn sample<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
        let _ = view;
    }
}

/// A watcher that ignores everything.
impl Watcher for () {}

/// Replays `script` on `machine` with an allocator of this configuration.
///
/// Costs about 100 to 200 ns per step, and memory of 16 bytes for each frame of the machine and 4
/// for each page of the trace.
///
/// # Errors
/// [`BuildError`] where the machine cannot be built.
pub fn replay<W: Watcher>(
    configuration: Configuration,
    machine: &Machine,
    script: &Script,
    options: &Options,
    watcher: W,
) -> Result<Outcome, BuildError> {
    let replayed = build(
        configuration,
        machine,
        Replay {
            machine,
            script,
            options,
            watcher,
        },
    )?;
    replayed.map_err(BuildError::Steps)
}

/// Nanoseconds between two reports of free page blocks, on a machine where some become free all the
/// time (`PAGE_REPORTING_DELAY`).
pub(crate) const REPORT: u64 = 2_000_000_000;

struct Replay<'a, W> {
    machine: &'a Machine,
    script: &'a Script,
    options: &'a Options,
    watcher: W,
}

impl<W: Watcher> Job for Replay<'_, W> {
    type Output = io::Result<Outcome>;

    fn run<Z: LabZone>(mut self, nodes: &[Node<'_, Z>], processor: &Processor) -> Self::Output {
        let machine = self.machine;
        let plain = Nodes::new(nodes);
        plain.set_min_free_kbytes(machine.min_free_kbytes, machine.frame_bytes);
        let span = machine.span();
        let pages = Pages::new(
            span.start,
            span.len(),
            plain.zones().count(),
            self.script.pages(),
            machine.page_block_order,
        );
        let kernel = Kernel::new(Nodes::new(nodes), pages, self.options.rules);
        let kernel = kernel.with_background(match self.options.start {
            Start::Empty => Background::Frees,
            Start::Recorded if self.script.shows_reclaim() => Background::IsShown,
            Start::Recorded => Background::IsRecorded,
        });
        let kernel = match W::STEPS {
            true => kernel.with_log(),
            false => kernel,
        };
        let hooked = Nodes::with_hooks(nodes, &kernel, self.options.rules.slow_path);
        let mut run = Replaying {
            script: self.script,
            kernel: &kernel,
            nodes: &hooked,
            plain: &plain,
            processor,
            cpus: machine.cpus,
            huge: machine.huge_order,
            start: self.options.start,
            outcome: Outcome {
                requests: vec![Default::default(); Order::COUNT],
                ..Outcome::default()
            },
        };
        if self.options.start == Start::Recorded {
            run.place_initial_blocks();
        }
        run.steps(&mut self.watcher, self.options.sample_every)?;
        Ok(run.finish(&mut self.watcher))
    }
}

/// A running replay.
struct Replaying<'a, 'z, Z: LabZone> {
    script: &'a Script,
    kernel: &'a Kernel<'z, Z>,
    nodes: &'a Nodes<'z, Z, &'a Kernel<'z, Z>>,
    plain: &'a Nodes<'z, Z>,
    processor: &'a Processor,
    cpus: usize,
    huge: Order,
    start: Start,
    outcome: Outcome,
}

impl<Z: LabZone> Replaying<'_, '_, Z> {
    /// Places every block in use at the start at its frame.
    fn place_initial_blocks(&mut self) {
        for block in self.script.initial_blocks() {
            let frame = self.frame_of(block.page);
            let request = Request::new(block.order, block.role.mobility());
            let placed = self
                .plain
                .zone_of(frame)
                .is_some_and(|zone| zone.alloc_at(frame, &request).is_ok());
            if placed {
                let (order, role) = (block.order, block.role);
                self.kernel.own(frame, order, role, block.marks, block.page);
            } else {
                self.outcome.unplaced += 1;
            }
        }
        self.outcome.from_caches = self.script.from_caches();
        self.kernel.change(Pages::take_last_mixed);
        self.give_types();
        self.fill_caches();
    }

    /// Gives the page blocks their types. Where the trace does not tell them, a block has that of
    /// most of its frames in use.
    fn give_types(&self) {
        let dedicate = |frame: Frame, mobility: Mobility| {
            for zone in self.plain.zones() {
                // A zone may begin inside a page block, as the one from frame 1 on.
                let end = frame.plus(zone.shape().page_block_order.frames());
                let first = frame.max(zone.span().start);
                if first < end && zone.span().contains(first) {
                    zone.dedicate(first, mobility);
                }
            }
        };
        if self.script.known() != Known::default() {
            for (page, kind) in self.script.types() {
                let mobility = match kind {
                    MigrateType::Reclaimable => Mobility::Reclaimable,
                    _ => Mobility::Unmovable,
                };
                dedicate(self.frame_of(page), mobility);
            }
            return;
        }
        let most: Vec<(Frame, Mobility)> = self.kernel.look(|pages| {
            let blocks = pages.mixing().blocks();
            blocks
                .filter_map(|(frame, contents)| Some((frame, contents.majority()?)))
                .collect()
        });
        for (frame, mobility) in most {
            dedicate(frame, mobility);
        }
    }

    /// Fills the caches of CPUs with what lay in the host's.
    fn fill_caches(&mut self) {
        for limit in self.script.limits() {
            if let Some(zone) = self.plain.zone_of(self.frame_of(limit.page)) {
                self.processor.switch_to(usize::from(limit.cpu) % self.cpus);
                zone.set_cache_limit(limit.frames as usize);
            }
        }
        for idle in self.script.idle() {
            let frame = self.frame_of(idle.page);
            let mobility = match idle.kind {
                MigrateType::Unmovable => Mobility::Unmovable,
                MigrateType::Reclaimable => Mobility::Reclaimable,
                _ => Mobility::Movable,
            };
            let request = Request::new(idle.order, mobility);
            let Some(zone) = self.plain.zone_of(frame) else {
                continue;
            };
            // Frees below may have brought the frame to a cache already.
            if zone.take_at(frame, &request).is_ok() {
                self.processor.switch_to(usize::from(idle.cpu) % self.cpus);
                self.outcome.unplaced += u64::from(!zone.stock(frame, idle.order));
            }
        }
    }

    fn frame_of(&self, page: PageId) -> Frame {
        Frame::new(self.script.first() as usize + page.0 as usize)
    }

    fn steps<W: Watcher>(&mut self, watcher: &mut W, sample_every: u64) -> io::Result<()> {
        let begun = Instant::now();
        let mut next_sample = 0;
        let mut ticks = self.ticks();
        let soonest = |ticks: &[u64]| ticks.iter().copied().min().unwrap_or(u64::MAX);
        let mut next_tick = soonest(&ticks);
        let mut next_report = match self.start == Start::Recorded && self.script.reports_free() {
            true => REPORT,
            false => u64::MAX,
        };
        let mut sampling = core::time::Duration::ZERO;
        self.kernel.take_log(|_| ());
        let script = self.script;
        let mut rounds = script.rounds();
        loop {
            let round = rounds.next()?;
            if round.is_empty() {
                break;
            }
            for (place, step) in round.iter().enumerate() {
                if step.time >= next_sample {
                    let paused = Instant::now();
                    self.sample(watcher, next_sample);
                    let every = sample_every.max(1);
                    let passed = (step.time - next_sample) / every;
                    next_sample =
                        next_sample.saturating_add(every.saturating_mul(passed.saturating_add(1)));
                    sampling += paused.elapsed();
                }
                if step.time > self.script.compared_at() && self.outcome.zones.is_empty() {
                    self.outcome.zones = self.zones();
                }
                if step.time >= next_tick {
                    let due = ticks.iter_mut().enumerate();
                    for (cpu, next) in due.filter(|(_, next)| step.time >= **next) {
                        let passed = (step.time - *next) / TICK;
                        // After so many, nothing changes any more.
                        (0..=passed.min(TICKS_MOST)).for_each(|_| self.tick(cpu));
                        *next = next.saturating_add((passed + 1).saturating_mul(TICK));
                    }
                    next_tick = soonest(&ticks);
                }
                if step.time >= next_report {
                    for zone in self.plain.zones() {
                        zone.report_free();
                    }
                    next_report = step.time.saturating_add(REPORT);
                }
                self.step(step);
                if W::STEPS {
                    let place = self.outcome.steps as usize + place;
                    let told = |blocks: &[Logged]| watcher.step(place, step, blocks);
                    self.kernel.take_log(told);
                }
            }
            self.outcome.steps += round.len() as u64;
            if !watcher.progress(self.outcome.steps) {
                self.outcome.interrupted = true;
                break;
            }
        }
        self.outcome.seconds = begun.elapsed().saturating_sub(sampling).as_secs_f64();
        Ok(())
    }

    /// Returns when each CPU notes for the first time that a second has passed.
    fn ticks(&self) -> Vec<u64> {
        let shown = match self.start {
            Start::Empty => &[],
            Start::Recorded => self.script.first_ticks(),
        };
        let of = |cpu| shown.get(cpu).copied().unwrap_or(TICK);
        (0..self.cpus).map(of).collect()
    }

    /// Lets a second pass on a CPU.
    fn tick(&self, cpu: usize) {
        self.processor.switch_to(cpu);
        self.plain.zones().for_each(LabZone::tick);
    }

    #[inline]
    fn step(&mut self, step: &ScriptStep) {
        self.processor.switch_to(usize::from(step.cpu) % self.cpus);
        self.kernel.set_time(step.time);
        match self.script.action(step) {
            Action::Take(request) => self.take(step, &request),
            Action::Give => self.give(step),
            Action::Reclaim(begins) => {
                let zones = self.plain.zones();
                zones.for_each(|zone| zone.set_reclaiming(begins));
            }
            Action::Try(request) => self.try_one(&request),
        }
        if self.kernel.is_woken() {
            self.kernel.run_background();
        }
    }

    #[inline]
    fn take(&mut self, step: &ScriptStep, request: &Request) {
        let is_known = self.kernel.look(|pages| pages.location(step.page)) != Location::Unknown;
        if is_known || step.overlaps_used() {
            self.clear(step);
        }
        let of_order = &mut self.outcome.requests[request.order.index()];
        of_order.asked += 1;
        let taken = self
            .kernel
            .take(self.nodes, 0, request, step.role, step.marks, step.page);
        if taken.is_err() {
            of_order.failed += 1;
        }
        if let Some(mixed) = self.kernel.change(Pages::take_last_mixed) {
            let mixer = Mixer {
                name: self.script.name(step.name).to_owned(),
                mobility: mobility_name(mixed.newcomer),
                order: request.order,
            };
            *self.outcome.mixers.entry(mixer).or_default() += 1;
        }
    }

    /// Frees pages of the step that are still in use: the event of their free was lost.
    #[cold]
    fn clear(&mut self, step: &ScriptStep) {
        if let Freed::Whole | Freed::Parts = self.kernel.give(step.page, step.order) {
            self.outcome.double += 1;
        }
        self.kernel
            .change(|pages| pages.set_absent(step.page, Location::Unknown));
    }

    #[inline]
    fn give(&mut self, step: &ScriptStep) {
        let frees = &mut self.outcome.frees;
        match self.kernel.give(step.page, step.order) {
            Freed::Whole => frees.whole += 1,
            Freed::Parts => frees.parts += 1,
            Freed::WasReclaimed => frees.reclaimed += 1,
            Freed::WasRefused => frees.refused += 1,
            Freed::Unknown => frees.unknown += 1,
        }
    }

    /// Tries a request that failed on the host, and frees the block if there is one.
    #[cold]
    fn try_one(&mut self, request: &Request) {
        let of_order = &mut self.outcome.requests[request.order.index()];
        of_order.asked += 1;
        let role = Role::Kernel;
        let taken = self
            .kernel
            .take(self.nodes, 0, request, role, 0, PageId::NONE);
        match taken {
            Ok(frame) => {
                self.kernel.release(frame);
            }
            Err(_) => of_order.failed += 1,
        }
    }

    fn zones(&self) -> Vec<ZoneEnd> {
        self.plain.nodes().iter().flat_map(zones_of).collect()
    }

    fn sample(&mut self, watcher: &mut impl Watcher, time: u64) {
        let view = View::new(self.kernel, self.plain, time);
        self.outcome.samples.push(view.sample(self.huge));
        watcher.sample(&view);
    }

    /// Takes the results at the end: first of memory as it is, then after draining, reclaim and
    /// compaction.
    fn finish(mut self, watcher: &mut impl Watcher) -> Outcome {
        let end = match self.outcome.interrupted {
            true => self.outcome.samples.last().map_or(0, |sample| sample.time),
            false => self.script.duration(),
        };
        self.sample(watcher, end);
        if self.outcome.zones.is_empty() {
            self.outcome.zones = self.zones();
        }
        let mut outcome = self.outcome;
        for zone in self.plain.zones() {
            let meter = zone.meter();
            outcome.fallbacks += meter.fallbacks;
            outcome.mixing += meter.mixing;
            outcome.claims += meter.claims;
        }
        outcome.pressure = self.kernel.pressure();
        outcome.alloc_ns = self.kernel.stopwatch().allocs.quantiles();
        outcome.free_ns = self.kernel.stopwatch().frees.quantiles();
        outcome.free = free_counts(self.plain);
        outcome.idle = self.plain.zones().map(AnyZone::cached_frames).sum();
        outcome.huge = measure_huge(self.plain, self.kernel, self.huge);
        outcome.in_use = self.kernel.look(Pages::in_use);
        outcome.census = self
            .plain
            .check()
            .expect("every invariant holds, whatever a trace requests");
        outcome
    }
}

/// Returns the free blocks and page blocks of a node's zones.
fn zones_of<Z: LabZone>(node: &Node<'_, Z>) -> Vec<ZoneEnd> {
    let of_zone = |zone: &Z| {
        let Shape {
            kind,
            span,
            page_block_order,
            ..
        } = zone.shape();
        let mut blocks = [0; MigrateType::COUNT];
        let mut at = span.start;
        while at < span.end {
            let end = at
                .align_down(page_block_order)
                .plus(page_block_order.frames());
            let populated = FrameRange { start: at, end }
                .frames()
                .any(|frame| zone.has(frame));
            if let Some(kind) = zone.block_type(at)
                && populated
            {
                blocks[kind.index()] += 1;
            }
            at = end;
        }
        ZoneEnd {
            node: node.id(),
            kind,
            free: zone.free_table(),
            blocks,
            cached: zone.cached_frames(),
        }
    };
    node.zones().iter().map(of_zone).collect()
}

/// Counts free huge pages: as memory is, then drained, reclaimed, compacted.
fn measure_huge<Z: LabZone>(
    nodes: &Nodes<'_, Z>,
    kernel: &Kernel<'_, Z>,
    huge: Order,
) -> HugePages {
    let free = || free_counts(nodes).suitable(huge);
    let mut pages = HugePages {
        now: free(),
        ..HugePages::default()
    };
    nodes.drain();
    pages.drained = free();
    kernel.drop_caches();
    nodes.drain();
    pages.reclaimed = free();
    for zone in nodes.zones() {
        let done = compact_all(zone, kernel);
        pages.moved += done.moved;
        pages.stuck += done.stuck;
    }
    nodes.drain();
    pages.compacted = free();
    pages.possible = possible(nodes, kernel, huge);
    pages
}

/// Returns the number of huge pages that compaction could reach at best: those without immovable
/// pages, less those needed to hold the movable pages.
pub(crate) fn possible<Z: LabZone>(
    nodes: &Nodes<'_, Z>,
    kernel: &Kernel<'_, Z>,
    huge: Order,
) -> usize {
    let mut clear = 0;
    let mut movable = 0;
    let mut room = 0;
    kernel.look(|pages| {
        let stays = |block: &Block| !block.role.moves() && block.role != Role::Held;
        let mut held = pages.blocks().filter(stays).peekable();
        for zone in nodes.zones() {
            let span = zone.span();
            room += zone.managed_frames();
            let first = span.start.number().next_multiple_of(huge.frames());
            let mut at = Frame::new(first);
            while at.plus(huge.frames()) <= span.end {
                let end = at.plus(huge.frames());
                while held
                    .peek()
                    .is_some_and(|block| block.frame.plus(block.order.frames()) <= at)
                {
                    held.next();
                }
                let blocked = held.peek().is_some_and(|block| block.frame < end);
                if !blocked && zone.has(at) && zone.has(Frame::new(end.number() - 1)) {
                    clear += 1;
                }
                at = end;
            }
        }
        movable = (pages.used(Role::Anonymous) + pages.used(Role::File)) as usize;
        let others = (pages.in_use() - pages.used(Role::Held)) as usize - movable;
        room -= others.min(room);
    });
    // The movable pages need frames: first those beside immovable pages, then huge pages of their
    // own.
    let beside = room.saturating_sub(clear * huge.frames());
    let over = movable.saturating_sub(beside);
    clear.saturating_sub(over.div_ceil(huge.frames()))
}
