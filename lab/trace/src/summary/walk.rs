//! One pass over the events, in order of time.

use core::ops::ControlFlow;

use brickyard::{MigrateType, Order};

use super::ledger::{Holder, Ledger};
use super::{
    Class, Fallbacks, Kinds, Lifetimes, Oddities, Options, Process, Steps, Summary, Usage,
};
use crate::file::ReadError;
use crate::{Event, Events, MOST_READERS, PageUse, Reading, StateRun, Step, Trace, What};

const TYPES: usize = MigrateType::COUNT;
const CLASSES: usize = Order::COUNT * TYPES;

const fn class(order: Order, mobility: MigrateType) -> usize {
    order.index() * TYPES + mobility.index()
}

/// Counts for one order and mobility.
#[derive(Debug, Clone, Default)]
struct Counted {
    allocs: u64,
    failures: u64,
    held: u64,
    lifetimes: Lifetimes,
}

struct Walk<'a> {
    /// Header and page states.
    trace: &'a Trace,
    ledger: Ledger,
    reads: ReadTimes,
    classes: Vec<Counted>,
    /// Lifetimes that all classes keep.
    kept: usize,
    kept_most: usize,
    /// By name.
    processes: Vec<Process>,
    /// Of tasks whose name the trace does not have.
    unnamed: Process,
    fallbacks: [[Fallbacks; TYPES]; TYPES],
    oddities: Oddities,
    kinds: Kinds,
    steps: Vec<Steps>,
    spans: Vec<Kinds>,
    duration: u64,
}

pub(super) fn summarize(
    source: &impl Events,
    options: &Options,
    kept_most: usize,
    mut goes_on: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Summary, ReadError> {
    let mut walk = Walk::new(source, options, kept_most);
    source.pass(|events, names| {
        walk.name(names);
        for event in events {
            walk.event(event);
        }
        walk.keep_few();
        goes_on(events.len() as u64)
    })?;
    Ok(walk.finish(options))
}

impl<'a> Walk<'a> {
    fn new(source: &'a impl Events, options: &Options, kept_most: usize) -> Self {
        let trace = source.outline();
        let mut ledger = Ledger::default();
        // Recorders whose traces do not say how the states were read had one thread for it.
        let one = trace.header.start_states == Reading::default();
        let reads = ReadTimes::new(&trace.start, if one { 1 } else { MOST_READERS });
        for run in &trace.start {
            if !matches!(run.state.usage, PageUse::Free | PageUse::Hole) {
                let certain = run.state.usage != PageUse::Untold;
                let settled = reads.settled(run.time);
                let holder = Holder::Before { settled, certain };
                ledger.hold(run.frame, run.frame.saturating_add(run.frames), holder);
            }
        }
        Self {
            trace,
            ledger,
            reads,
            classes: vec![Counted::default(); CLASSES],
            kept: 0,
            kept_most,
            processes: Vec::new(),
            unnamed: Process::named("?"),
            fallbacks: MigrateType::ALL.map(|mobility| {
                MigrateType::ALL.map(|from| Fallbacks {
                    mobility,
                    from,
                    claimed: 0,
                    mixed: 0,
                })
            }),
            oddities: Oddities::default(),
            kinds: Kinds::default(),
            steps: Step::ALL.map(Steps::none).to_vec(),
            spans: vec![Kinds::default(); options.spans.max(1)],
            duration: trace.header.duration.max(source.last_time()),
        }
    }

    /// Takes the names so far.
    fn name(&mut self, names: &[String]) {
        let new = names.get(self.processes.len()..).unwrap_or_default();
        self.processes
            .extend(new.iter().map(|name| Process::named(name)));
    }

    fn process(&mut self, name: u32) -> &mut Process {
        let processes = &mut self.processes;
        processes
            .get_mut(name as usize)
            .unwrap_or(&mut self.unnamed)
    }

    /// Counts the lifetimes of the class that keeps most, until no more are kept than may be.
    fn keep_few(&mut self) {
        while self.kept > self.kept_most {
            let classes = self.classes.iter_mut();
            let most = classes.max_by_key(|class| class.lifetimes.kept());
            let Some(most) = most.filter(|class| class.lifetimes.kept() > 0) else {
                return;
            };
            self.kept -= most.lifetimes.kept();
            most.lifetimes.count_only();
        }
    }

    fn count(&mut self, event: &Event) {
        let spans = self.spans.len();
        let span = u128::from(event.time) * spans as u128 / (u128::from(self.duration) + 1);
        let span = usize::try_from(span).map_or(spans - 1, |span| span.min(spans - 1));
        self.kinds.count(&event.what);
        self.spans[span].count(&event.what);
        if let What::Step { step, numbers } = event.what {
            let steps = &mut self.steps[step as usize];
            steps.events += 1;
            for (sum, number) in steps.sums.iter_mut().zip(numbers) {
                *sum = sum.saturating_add(u64::from(number));
            }
        }
    }

    fn event(&mut self, event: &Event) {
        self.count(event);
        match event.what {
            What::Alloc { mobility, .. } => self.alloc(event, mobility),
            What::Failure { mobility, .. } => {
                self.classes[class(event.order, mobility)].failures += 1;
                self.process(event.name.0).failures += 1;
            }
            What::Free => self.free(event),
            What::Fallback {
                mobility,
                from,
                claimed,
                ..
            } => {
                let pair = &mut self.fallbacks[mobility.index()][from.index()];
                pair.claimed += u64::from(claimed);
                pair.mixed += u64::from(!claimed);
                let process = self.process(event.name.0);
                process.claimed += u64::from(claimed);
                process.mixed += u64::from(!claimed);
            }
            What::Taken { .. } | What::Drained { .. } | What::Batched | What::Step { .. } => {}
        }
    }

    fn alloc(&mut self, event: &Event, mobility: MigrateType) {
        let (start, end) = span(event);
        let mut double = false;
        self.ledger.release(start, end, |_, holder| {
            double |= match holder {
                Holder::Before { settled, certain } => certain && event.time >= settled,
                Holder::Block { .. } => true,
            };
        });
        self.oddities.double_allocs += u64::from(double);
        let class = class(event.order, mobility);
        let holder = Holder::Block {
            time: event.time,
            class: class as u16, // below 100
            name: event.name.0,
            order: event.order.get(),
        };
        self.ledger.hold(start, end, holder);
        self.classes[class].allocs += 1;
        let process = self.process(event.name.0);
        process.allocs += 1;
        process.frames += event.order.frames() as u64;
    }

    fn free(&mut self, event: &Event) {
        let (start, end) = span(event);
        let (mut known, mut before, mut part) = (0, false, false);
        let (classes, kept) = (&mut self.classes, &mut self.kept);
        self.ledger.release(start, end, |frames, holder| {
            known += frames;
            match holder {
                Holder::Before { .. } => before = true,
                Holder::Block {
                    time, class, order, ..
                } => {
                    let lifetimes = &mut classes[usize::from(class)].lifetimes;
                    lifetimes.push(event.time.saturating_sub(time));
                    *kept += usize::from(lifetimes.kept() > 0);
                    part |= frames < 1 << order;
                }
            }
        });
        let unknown = known < end - start;
        // Without page states at the start, or before those of these frames were read, it is not
        // known whether they were held.
        let unsettled =
            unknown && (self.trace.start.is_empty() || event.time < self.settled(start));
        self.oddities.frees_of_before += u64::from(before || (unsettled && known == 0));
        self.oddities.unknown_frees += u64::from(unknown && !unsettled);
        self.oddities.frees_in_part += u64::from(part);
        self.process(event.name.0).freed_frames += end - start;
    }

    /// Returns the time by which the state of this frame at the start had been read; 0 if it was
    /// not.
    fn settled(&self, frame: u64) -> u64 {
        let runs = &self.trace.start;
        let after = runs.partition_point(|run| run.frame <= frame);
        let run = after.checked_sub(1).and_then(|place| runs.get(place));
        let run = run.filter(|run| frame - run.frame < run.frames);
        run.map_or(0, |run| self.reads.settled(run.time))
    }

    fn finish(mut self, options: &Options) -> Summary {
        let mut held_frames = 0;
        let ledger = core::mem::take(&mut self.ledger);
        for (frames, holder) in ledger.held() {
            if let Holder::Block { class, name, .. } = holder {
                held_frames += frames;
                self.classes[usize::from(class)].held += frames;
                self.process(name).held_frames += frames;
            }
        }
        self.processes.push(self.unnamed);
        let (processes, mixers, process_names) = ranked(self.processes, options.processes);
        Summary {
            duration: self.duration,
            kinds: self.kinds,
            classes: classes(self.classes),
            processes,
            process_names,
            mixers,
            spans: self.spans,
            fallbacks: self
                .fallbacks
                .into_iter()
                .flatten()
                .filter(|pair| pair.claimed + pair.mixed > 0)
                .collect(),
            steps: self.steps.into_iter().filter(|s| s.events > 0).collect(),
            oddities: self.oddities,
            held_frames,
            usage: usage(&self.trace.start, &self.trace.end),
        }
    }
}

/// When page states were read: many at a time, and each run has the time at which its read began.
struct ReadTimes {
    /// When each read began, in rising order.
    times: Vec<u64>,
    /// A read has ended when as many others have begun after it: as many as there were readers.
    readers: usize,
    /// The longest time that this took.
    longest: u64,
}

impl ReadTimes {
    fn new(runs: &[StateRun], readers: usize) -> Self {
        let mut times: Vec<u64> = runs.iter().map(|run| run.time).collect();
        times.sort_unstable();
        times.dedup();
        let spans = times.windows(readers + 1);
        let longest = spans.map(|span| span[readers] - span[0]).max();
        Self {
            times,
            readers,
            longest: longest.unwrap_or(0),
        }
    }

    /// Returns when a read that began at `time` had ended, at the latest. The last are assumed to
    /// have taken as long as the longest.
    fn settled(&self, time: u64) -> u64 {
        let next = self.times.partition_point(|&other| other <= time);
        let next = self.times.get(next + self.readers - 1).copied();
        next.unwrap_or_else(|| time.saturating_add(self.longest))
    }
}

impl Process {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    const fn did_nothing(&self) -> bool {
        self.allocs + self.freed_frames + self.failures + self.claimed + self.mixed == 0
    }
}

fn span(event: &Event) -> (u64, u64) {
    let end = event.frame.saturating_add(event.order.frames() as u64);
    (event.frame, end)
}

fn classes(counted: Vec<Counted>) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut counted = counted.into_iter();
    for order in Order::ZERO.up_to(Order::MAX) {
        for mobility in MigrateType::ALL {
            let Some(counted) = counted.next() else {
                return classes;
            };
            if counted.allocs + counted.failures > 0 {
                classes.push(Class {
                    order,
                    mobility,
                    allocs: counted.allocs,
                    failures: counted.failures,
                    held_frames: counted.held,
                    lifetimes: counted.lifetimes.sorted(),
                });
            }
        }
    }
    classes
}

/// Returns the first `most` processes by frames, the first `most` by mixed blocks, and how many
/// there are in all. Ties are in order of name.
fn ranked(mut processes: Vec<Process>, most: usize) -> (Vec<Process>, Vec<Process>, usize) {
    processes.retain(|process| !process.did_nothing());
    let count = processes.len();
    processes.sort_by(|a, b| b.mixed.cmp(&a.mixed).then_with(|| a.name.cmp(&b.name)));
    let mixers = processes.iter().filter(|process| process.mixed > 0);
    let mixers = mixers.take(most).cloned().collect();
    processes.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.name.cmp(&b.name)));
    processes.truncate(most);
    (processes, mixers, count)
}

fn usage(start: &[StateRun], end: &[StateRun]) -> Vec<Usage> {
    if start.is_empty() && end.is_empty() {
        return Vec::new();
    }
    let frames = |runs: &[StateRun], usage: PageUse| {
        let runs = runs.iter().filter(|run| run.state.usage == usage);
        runs.fold(0u64, |sum, run| sum.saturating_add(run.frames))
    };
    let all = PageUse::ALL.into_iter();
    all.map(|usage| Usage {
        usage,
        start: frames(start, usage),
        end: frames(end, usage),
    })
    .collect()
}
