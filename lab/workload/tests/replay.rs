//! The counts of a replay: through every configuration, on the recorded host and on others, they
//! agree with a naive reference without an allocator, and everything reclaimed is counted.

use crate::support;
use core::ops::ControlFlow;

use std::collections::BTreeMap;

use brickyard::node::SlowPath;
use brickyard::{MigrateType, Order};
use brickyard_designs::classics::linux::Burst;
use brickyard_designs::classics::{Configuration, LabZone};
use brickyard_trace::{Event, PageUse, Step, Trace, What};
use brickyard_workload::outcome::Frees;
use brickyard_workload::{
    FrameUse, Machine, Options, Outcome, Rules, Script, Start, Swap, View, Watcher, decisions,
    replay,
};
use proptest::collection::vec;
use proptest::prelude::*;

use MigrateType::{Movable, Reclaimable, Unmovable};
use support::{BASE, FRAMES, failed, freed, host, run, taken, taken_with};

// ---- the reference ----

/// The blocks of a trace in use, by their first page.
#[derive(Debug, Default)]
struct Naive {
    blocks: BTreeMap<u64, u8>,
    frees: Frees,
    double: u64,
}

impl Naive {
    fn in_use(&self) -> u64 {
        self.blocks.values().map(|order| 1 << order).sum()
    }

    /// Returns the block that contains `page`.
    fn around(&self, page: u64) -> Option<(u64, u8)> {
        let (&first, &order) = self.blocks.range(..=page).next_back()?;
        (page < first + (1 << order)).then_some((first, order))
    }

    /// Returns true if any of the 2^order pages at `page` is in use.
    fn touches(&self, page: u64, order: u8) -> bool {
        let before = self.blocks.range(..page + (1 << order)).next_back();
        before.is_some_and(|(&first, &size)| first + (1 << size) > page)
    }

    /// Adds these pages as the largest aligned blocks.
    fn put(&mut self, mut from: u64, end: u64) {
        while from < end {
            let fits = (end - from).ilog2();
            let order = fits.min(from.trailing_zeros()) as u8;
            self.blocks.insert(from, order);
            from += 1 << order;
        }
    }

    /// Frees those of the 2^order pages at `page` that are in use. Returns true if there are any.
    fn clear(&mut self, page: u64, order: u8) -> bool {
        let end = page + (1 << order);
        let mut any = false;
        let mut at = page;
        while at < end {
            let Some((first, size)) = self.around(at) else {
                at += 1;
                continue;
            };
            any = true;
            self.blocks.remove(&first);
            self.put(first, at.max(first));
            let after = first + (1 << size);
            self.put(end.min(after), after);
            at = after;
        }
        any
    }

    fn free(&mut self, page: u64, order: u8) {
        let whole = self.blocks.get(&page) == Some(&order);
        match (whole, self.clear(page, order)) {
            (true, _) => self.frees.whole += 1,
            (false, true) => self.frees.parts += 1,
            (false, false) => self.frees.unknown += 1,
        }
    }

    fn take(&mut self, page: u64, order: u8) {
        self.double += u64::from(self.clear(page, order));
        self.blocks.insert(page, order);
    }
}

// ---- traces ----

/// The next operation, independent of what is in use; a number chooses among the blocks in use.
#[derive(Debug, Clone, Copy)]
enum Operation {
    /// Takes a block of this order and mobility from free pages.
    Take(u8, usize),
    /// Frees a block in use.
    Free,
    /// Frees a part of a block in use.
    FreePart(u8),
    /// Frees a larger block around a block in use.
    FreeSeveral,
    /// Frees a page that is not in use.
    FreeUnknown,
    /// Takes a block in use again.
    TakeAgain,
    /// Takes a block that overlaps blocks in use.
    TakeOver(u8, usize),
    /// A request that fails on the host.
    Fail(u8, usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let order = prop_oneof![8 => Just(0_u8), 4 => 1..=3_u8, 2 => 4..=6_u8, 1 => 9..=10_u8];
    let order2 = prop_oneof![8 => Just(0_u8), 2 => 1..=10_u8];
    prop_oneof![
        10 => (order, 0..3_usize).prop_map(|(order, kind)| Operation::Take(order, kind)),
        4 => Just(Operation::Free),
        2 => (0..9_u8).prop_map(Operation::FreePart),
        1 => Just(Operation::FreeSeveral),
        1 => Just(Operation::FreeUnknown),
        1 => Just(Operation::TakeAgain),
        1 => (0..=5_u8, 0..3_usize).prop_map(|(order, kind)| Operation::TakeOver(order, kind)),
        1 => (order2, 0..3_usize).prop_map(|(order, kind)| Operation::Fail(order, kind)),
    ]
}

/// An operation, the number that chooses, the CPU, and nanoseconds since the one before.
type Entry = (Operation, u64, u16, u64);

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let gap = prop_oneof![0..1000_u64, 0..1_000_000_000_u64];
    vec((operation(), any::<u64>(), 0..5_u16, gap), 1..120)
}

/// The contents of memory at the start, in runs of 64 pages: position, order of each block, use.
fn start_states() -> impl Strategy<Value = Vec<(u64, u8, PageUse)>> {
    let usage = prop_oneof![
        Just(PageUse::Anonymous),
        Just(PageUse::File),
        Just(PageUse::Slab),
        Just(PageUse::PageTable),
        Just(PageUse::Untold),
    ];
    vec((0..FRAMES / 64, 0..=4_u8, usage), 0..12)
}

const KINDS: [MigrateType; 3] = [Unmovable, Movable, Reclaimable];

/// Returns the runs of a start without duplicates, by their first page.
fn places(start: &[(u64, u8, PageUse)]) -> BTreeMap<u64, (u8, PageUse)> {
    start
        .iter()
        .map(|&(place, order, usage)| (place * 64, (order, usage)))
        .collect()
}

/// Makes a trace of these operations on a host with this start.
fn trace_of(entries: &[Entry], start: &[(u64, u8, PageUse)]) -> Trace {
    // Every frame has a state: the machine's memory is derived from them.
    let mut runs = Vec::new();
    let mut next = 0;
    // The blocks in use on the host.
    let mut hosts = Naive::default();
    for (page, (order, usage)) in places(start) {
        if page > next {
            runs.push(run(next, page - next, 0, PageUse::Free));
        }
        runs.push(run(page, 64, order, usage));
        next = page + 64;
        for first in (page..next).step_by(1 << order) {
            hosts.blocks.insert(first, order);
        }
    }
    if next < FRAMES {
        runs.push(run(next, FRAMES - next, 0, PageUse::Free));
    }
    let mut trace = host(runs);
    let mut time = 0;
    for &(op, choice, cpu, gap) in entries {
        time += gap;
        let Some(mut event) = event_of(op, choice, &hosts) else {
            continue;
        };
        let (page, order) = (event.frame.wrapping_sub(BASE), event.order.get());
        match event.what {
            What::Alloc { .. } => hosts.take(page, order),
            What::Free => hosts.free(page, order),
            _ => {}
        }
        (event.time, event.cpu) = (time, cpu);
        trace.events.push(event);
    }
    trace
}

/// Returns the event of an operation; `None` if there are no pages for it.
fn event_of(op: Operation, choice: u64, hosts: &Naive) -> Option<Event> {
    let place = choice as usize % hosts.blocks.len().max(1);
    let chosen = || {
        hosts
            .blocks
            .iter()
            .nth(place)
            .map(|(&first, &order)| (first, order))
    };
    Some(match op {
        Operation::Take(order, kind) => {
            let slot = (choice % (FRAMES >> order)) << order;
            // At most a quarter of memory is in use, and nothing is taken twice.
            if hosts.in_use() > FRAMES / 4 || hosts.touches(slot, order) {
                return None;
            }
            taken(slot, order, KINDS[kind])
        }
        Operation::Free => {
            let (first, order) = chosen()?;
            freed(first, order)
        }
        Operation::FreePart(part) => {
            let (first, order) = chosen()?;
            let part = part.min(order);
            let pages = (choice.rotate_left(17) % (1 << (order - part))) << part;
            freed(first + pages, part)
        }
        Operation::FreeSeveral => {
            let (first, order) = chosen()?;
            let larger = (order + 2).min(10);
            freed(first >> larger << larger, larger)
        }
        Operation::FreeUnknown => {
            let page = choice % FRAMES;
            if hosts.around(page).is_some() {
                return None;
            }
            freed(page, 0)
        }
        Operation::TakeAgain => {
            let (first, order) = chosen()?;
            taken(first, order, Movable)
        }
        Operation::TakeOver(order, kind) => {
            let (first, size) = chosen()?;
            let inside = first + choice.rotate_left(31) % (1 << size);
            taken(inside >> order << order, order, KINDS[kind])
        }
        Operation::Fail(order, kind) => failed(order, KINDS[kind]),
    })
}

/// Runs the reference on a trace, from that start or from an empty one.
fn reference(trace: &Trace, start: &[(u64, u8, PageUse)], begun: Start) -> Naive {
    let mut naive = Naive::default();
    // What is in use on the host by the events.
    let mut in_use = vec![false; FRAMES as usize];
    let set = |in_use: &mut Vec<bool>, page: u64, order: u8, is: bool| {
        let end = (page + (1 << order)).min(FRAMES) as usize;
        let part = &mut in_use[(page as usize).min(end)..end];
        let any = part.contains(&true);
        part.fill(is);
        any
    };
    {
        let taken_first = |page: u64| {
            let covers = |event: &&Event| {
                let first = event.frame.wrapping_sub(BASE);
                (first..first.wrapping_add(1 << event.order.get())).contains(&page)
            };
            let steps = trace.events.iter();
            let mut steps = steps.filter(|event| !matches!(event.what, What::Failure { .. }));
            matches!(
                steps.find(covers).map(|event| event.what),
                Some(What::Alloc { .. })
            )
        };
        for (page, (order, usage)) in places(start) {
            if usage == PageUse::Untold {
                // Pages that never move are in the largest aligned blocks. Pages that are taken
                // before they are freed were in a cache, and in no block.
                let mut from = page;
                for at in (page..=page + 64).filter(|&at| at == page + 64 || taken_first(at)) {
                    if begun == Start::Recorded {
                        naive.put(from, at);
                    }
                    in_use[from as usize..at as usize].fill(true);
                    from = at + 1;
                }
            } else {
                if begun == Start::Recorded {
                    let blocks = (page..page + 64).step_by(1 << order);
                    naive.blocks.extend(blocks.map(|first| (first, order)));
                }
                in_use[page as usize..page as usize + 64].fill(true);
            }
        }
    }
    for event in &trace.events {
        let (page, order) = (event.frame.wrapping_sub(BASE), event.order.get());
        match event.what {
            What::Alloc { .. } => {
                set(&mut in_use, page, order, true);
                naive.take(page, order);
            }
            What::Free => {
                if !set(&mut in_use, page, order, false) {
                    // It was taken without an event.
                    naive.take(page, order);
                }
                naive.free(page, order);
            }
            _ => {}
        }
    }
    naive
}

// ---- the counts of a replay ----

/// Frames in use at the last sample, in total and by role.
#[derive(Debug, Default)]
struct LastView {
    used: u64,
    rest: u64,
    by_role: BTreeMap<u8, u64>,
    samples: u64,
}

impl Watcher for &mut LastView {
    fn sample<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
        **self = LastView {
            samples: self.samples + 1,
            ..LastView::default()
        };
        view.runs(|frames, usage| match usage {
            FrameUse::Used(role, _) => {
                self.used += frames as u64;
                *self.by_role.entry(role as u8).or_default() += frames as u64;
            }
            _ => self.rest += frames as u64,
        });
    }
}

fn options(start: Start) -> Options {
    Options {
        start,
        rules: Rules::TODAY,
        sample_every: 500_000_000,
    }
}

/// Replays the trace, and checks that the counts agree with each other.
fn replayed(
    config: Configuration,
    machine: &Machine,
    trace: &Trace,
    options: &Options,
) -> (Outcome, LastView) {
    let script = Script::new(trace).unwrap();
    let mut last_view = LastView::default();
    let outcome = replay(config, machine, &script, options, &mut last_view).unwrap();
    let count = |what: fn(&What) -> bool| {
        trace
            .events
            .iter()
            .filter(|event| what(&event.what))
            .count() as u64
    };
    assert_eq!(outcome.census.allocated as u64, outcome.in_use, "{config}");
    assert_eq!(
        outcome.frees.all(),
        count(|what| matches!(what, What::Free)),
        "{config}"
    );
    assert_eq!(
        outcome.all_requests().asked,
        count(|what| matches!(what, What::Alloc { .. } | What::Failure { .. })) + script.hidden(),
        "{config}"
    );
    for (order, of) in outcome.requests.iter().enumerate() {
        assert!(of.failed <= of.asked, "{config}: order {order}");
    }
    let last = outcome.samples.last().unwrap();
    assert_eq!(last_view.samples, outcome.samples.len() as u64);
    // All frames that are not in use are free or cached.
    let total = machine.frames() as u64;
    assert_eq!(last_view.used + last_view.rest, total, "{config}");
    assert_eq!(
        last_view.used + (last.free + last.cached) as u64,
        total,
        "{config}: {last:?}"
    );
    let huge = outcome.huge;
    assert!(
        huge.now <= huge.drained && huge.drained <= huge.reclaimed,
        "{config}: {huge:?}"
    );
    assert!(huge.compacted <= huge.possible, "{config}: {huge:?}");
    (outcome, last_view)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_configuration_agrees_with_the_naive_reference_where_memory_suffices(
        entries in entries(), start in start_states(),
    ) {
        for begun in [Start::Recorded, Start::Empty] {
            let trace = trace_of(&entries, &start);
            let naive = reference(&trace, &start, begun);
            if Script::new(&trace).is_err() {
                // The trace has no allocation.
                continue;
            }
            let machine = match begun {
                Start::Recorded => Machine::recorded(&trace).unwrap(),
                Start::Empty => Machine::sized(128 << 20, 2, 4096).unwrap(),
            };
            for config in Configuration::ALL {
                let (outcome, last_view) = replayed(config, &machine, &trace, &options(begun));
                prop_assert_eq!(outcome.all_requests().failed, 0, "{}", config);
                prop_assert_eq!(outcome.frees, naive.frees, "{} {:?}", config, begun);
                prop_assert_eq!(outcome.double, naive.double, "{} {:?}", config, begun);
                prop_assert_eq!(last_view.used, naive.in_use(), "{} {:?}", config, begun);
                prop_assert_eq!(outcome.pressure.direct + outcome.pressure.background, 0);
                prop_assert_eq!(outcome.unplaced, 0);
                prop_assert!(!outcome.interrupted);
            }
        }
    }
}

// ---- events that contradict each other ----

/// Events with any frame, size and time, as in a damaged trace.
fn hostile() -> impl Strategy<Value = Vec<(u64, u8, usize, u16, u64)>> {
    let page = prop_oneof![0..64_u64, 0..4096_u64];
    let order = prop_oneof![6 => 0..=4_u8, 1 => 5..=10_u8];
    let gap = prop_oneof![8 => 0..1000_u64, 1 => Just(u64::MAX >> 3)];
    vec((page, order, 0..10_usize, any::<u16>(), gap), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_counts_agree_for_any_trace(entries in hostile(), every in 1..u64::MAX) {
        let mut trace = host(vec![run(0, 64, 2, PageUse::File), run(64, FRAMES - 64, 0, PageUse::Free)]);
        let mut time = 0_u64;
        for (page, order, what, cpu, gap) in entries {
            time = time.saturating_add(gap);
            let mut event = match what {
                0..3 => taken(page, order, KINDS[what]),
                3 => failed(order, Movable),
                6 => support::event(page, order, What::Taken { mobility: KINDS[what % 3], refill: true }),
                7 => support::event(page, order, What::Drained { mobility: KINDS[what % 3] }),
                8 => support::event(page, order, What::Fallback {
                    mobility: KINDS[usize::from(order) % 3],
                    from_order: Order::new(order),
                    from: KINDS[usize::from(order / 3) % 3],
                    claimed: page % 2 == 0,
                }),
                9 => support::event(page, order, What::Step {
                    step: Step::ALL[page as usize % Step::ALL.len()],
                    numbers: [0; 3],
                }),
                _ => freed(page, order),
            };
            (event.time, event.cpu) = (time, cpu);
            trace.events.push(event);
        }
        if Script::new(&trace).is_err() {
            return Ok(());
        }
        let small = Machine::sized(16 << 20, 2, 4096).unwrap();
        let recorded = Machine::recorded(&trace).unwrap();
        let script = Script::new(&trace).unwrap();
        let (begun, goes_on) = (script.beginning(), |_| ControlFlow::Continue(()));
        if let Ok(decided) = decisions::follow(&trace, &recorded, begun, &[Burst::AfterABatch], goes_on) {
            for agreement in &decided[0].agreements {
                let differ: u64 = agreement.differences.values().sum();
                prop_assert_eq!(agreement.asked, agreement.agreed + differ);
            }
        }
        for config in Configuration::ALL {
            for (machine, start) in [(&recorded, Start::Recorded), (&small, Start::Empty)] {
                let rules = Rules { swap: Swap::On, ..Rules::TODAY };
                // Few samples, however long the trace.
                let sample_every = every.max(time / 8 + 1);
                let options = Options { start, rules, sample_every };
                replayed(config, machine, &trace, &options);
            }
        }
    }
}

#[test]
fn the_latest_times_are_sampled() {
    let mut trace = host(vec![run(0, FRAMES, 0, PageUse::Free)]);
    for time in [0, 5, u64::MAX - 1, u64::MAX] {
        let mut event = taken(time % 7, 0, Movable);
        event.time = time;
        trace.events.push(event);
    }
    let machine = Machine::recorded(&trace).unwrap();
    for sample_every in [0, 1, 3, u64::MAX / 2, u64::MAX] {
        let options = Options {
            sample_every,
            ..options(Start::Recorded)
        };
        let (outcome, _) = replayed(Configuration::Brickyard, &machine, &trace, &options);
        let times: Vec<u64> = outcome.samples.iter().map(|sample| sample.time).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(times.last(), Some(&u64::MAX));
    }
}

// ---- little memory ----

const SLOW_PATHS: [SlowPath; 3] = [SlowPath::PLAIN, SlowPath::LUMPY_2007, SlowPath::MODERN];

/// Makes a trace of files read and written, processes, slabs and kernel memory. A few blocks are
/// freed at once, and all others at the end.
fn stream(pages: u64, order: u8) -> Trace {
    let step = 1 << order;
    let mut trace = host(vec![run(0, FRAMES, 0, PageUse::Free)]);
    for n in 0..pages {
        let page = n * step;
        let event = match n % 16 {
            0 => taken(page, order, Reclaimable),
            1 => taken(page, order, Unmovable),
            2 | 3 => taken(page, order, Movable),
            4..8 => taken_with(page, order, Movable, "GFP_HIGHUSER_MOVABLE|__GFP_WRITE"),
            _ => taken_with(page, order, Movable, "GFP_HIGHUSER_MOVABLE|__GFP_NORETRY"),
        };
        trace.events.push(event);
        // Short-lived blocks.
        if n % 16 == 1 || n % 32 == 2 {
            trace.events.push(freed(page, order));
        }
    }
    for n in (0..pages).filter(|n| n % 16 != 1 && n % 32 != 2) {
        trace.events.push(freed(n * step, order));
    }
    for (place, event) in trace.events.iter_mut().enumerate() {
        event.time = place as u64 * 10_000;
        event.cpu = (place / 7 % 3) as u16;
    }
    trace
}

#[test]
fn reclaimed_pages_are_counted_and_their_later_frees_are_dropped() {
    let machine = Machine::sized(8 << 20, 2, 4096).unwrap();
    for (pages, order) in [(6000, 0), (1500, 2)] {
        let trace = stream(pages, order);
        for slow_path in SLOW_PATHS {
            for swap in [Swap::Off, Swap::On] {
                for config in Configuration::ALL {
                    let rules = Rules {
                        slow_path,
                        swap,
                        ..Rules::TODAY
                    };
                    let options = Options {
                        rules,
                        ..options(Start::Empty)
                    };
                    let why = format!("{config} {rules:?} order {order}");
                    let (outcome, last_view) = replayed(config, &machine, &trace, &options);
                    let (frees, pressure) = (outcome.frees, outcome.pressure);
                    let requests = outcome.all_requests();
                    let blocks = |frames: u64| frames >> order;
                    let reclaimed = pressure.direct + pressure.background + pressure.lumpy;
                    assert!(reclaimed > 0, "{why}");
                    assert_eq!(
                        reclaimed,
                        pressure.files + pressure.anonymous + pressure.slabs,
                        "{why}"
                    );
                    // A served block is in use, was freed, or was reclaimed.
                    let served = requests.asked - requests.failed;
                    assert_eq!(
                        served,
                        blocks(last_view.used) + frees.whole + blocks(reclaimed),
                        "{why}"
                    );
                    // The trace frees each block once.
                    assert_eq!(frees.reclaimed, blocks(reclaimed), "{why}");
                    assert_eq!(frees.refused, requests.failed, "{why}");
                    assert_eq!((frees.parts, frees.unknown), (0, 0), "{why}");
                    assert_eq!(last_view.used, 0, "{why}");
                    if swap == Swap::Off {
                        assert_eq!(pressure.anonymous, 0, "{why}");
                    }
                    if slow_path != SlowPath::LUMPY_2007 {
                        assert_eq!(pressure.lumpy, 0, "{why}");
                    }
                    assert!(pressure.written <= reclaimed, "{why}");
                    assert!(pressure.direct_calls > 0 || pressure.direct == 0, "{why}");
                }
            }
        }
    }
}
