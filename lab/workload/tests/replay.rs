//! A replay keeps its books: through every configuration, on the host that was recorded and on
//! others, it agrees with a naive reference that knows nothing of allocators, and whatever is
//! reclaimed is counted.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use crate::support;

use std::collections::BTreeMap;

use brickyard::MigrateType;
use brickyard::node::SlowPath;
use brickyard_classics::Configuration;
use brickyard_classics::LabZone;
use brickyard_trace::{Event, PageUse, Trace, What};
use brickyard_workload::outcome::Frees;
use brickyard_workload::{
    FrameUse, Machine, Options, Outcome, Rules, Script, Start, Swap, View, Watcher, replay,
};
use proptest::collection::vec;
use proptest::prelude::*;

use MigrateType::{Movable, Reclaimable, Unmovable};
use support::{BASE, FRAMES, failed, freed, host, run, taken, taken_with};

// ---- the reference ----

/// Who has which page of the trace, and nothing else: blocks by their first page.
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

    /// The block that `page` lies in.
    fn around(&self, page: u64) -> Option<(u64, u8)> {
        let (&first, &order) = self.blocks.range(..=page).next_back()?;
        (page < first + (1 << order)).then_some((first, order))
    }

    /// Is any of 2^order pages at `page` in use?
    fn touches(&self, page: u64, order: u8) -> bool {
        let before = self.blocks.range(..page + (1 << order)).next_back();
        before.is_some_and(|(&first, &size)| first + (1 << size) > page)
    }

    /// Puts down these pages as blocks, each as large as it can be.
    fn put(&mut self, mut from: u64, end: u64) {
        while from < end {
            let fits = (end - from).ilog2();
            let order = fits.min(from.trailing_zeros()) as u8;
            self.blocks.insert(from, order);
            from += 1 << order;
        }
    }

    /// Frees all of 2^order pages at `page` that are in use. Are there any?
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

/// What happens next, told without knowing what is in use: numbers choose among what there is.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// A block of this order and mobility, at a free place.
    Take(u8, usize),
    /// A block in use, whole.
    Free,
    /// A part of a block in use.
    FreePart(u8),
    /// All around a block in use, in one.
    FreeSeveral,
    /// A page that nobody has.
    FreeUnknown,
    /// A block that is in use is taken again.
    TakeAgain,
    /// A block is taken where others lie, or where one lies that is larger.
    TakeOver(u8, usize),
    /// The host had no such block.
    Fail(u8, usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let order = prop_oneof![8 => Just(0_u8), 4 => 1..=3_u8, 2 => 4..=6_u8, 1 => 9..=10_u8];
    let order2 = prop_oneof![8 => Just(0_u8), 2 => 1..=10_u8];
    prop_oneof![
        10 => (order, 0..3_usize).prop_map(|(order, kind)| Deed::Take(order, kind)),
        4 => Just(Deed::Free),
        2 => (0..9_u8).prop_map(Deed::FreePart),
        1 => Just(Deed::FreeSeveral),
        1 => Just(Deed::FreeUnknown),
        1 => Just(Deed::TakeAgain),
        1 => (0..=5_u8, 0..3_usize).prop_map(|(order, kind)| Deed::TakeOver(order, kind)),
        1 => (order2, 0..3_usize).prop_map(|(order, kind)| Deed::Fail(order, kind)),
    ]
}

/// A deed, the number that chooses, the CPU, and nanoseconds since the one before.
type Told = (Deed, u64, u16, u64);

fn told() -> impl Strategy<Value = Vec<Told>> {
    let gap = prop_oneof![0..1000_u64, 0..1_000_000_000_u64];
    vec((deed(), any::<u64>(), 0..5_u16, gap), 1..120)
}

/// What memory holds at the start: pages, order of each block, use; of 64 pages each.
fn beginning() -> impl Strategy<Value = Vec<(u64, u8, PageUse)>> {
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

/// The places of a start, each once, by their first page.
fn places(start: &[(u64, u8, PageUse)]) -> BTreeMap<u64, (u8, PageUse)> {
    start
        .iter()
        .map(|&(place, order, usage)| (place * 64, (order, usage)))
        .collect()
}

/// A trace of these deeds on a host that begins so.
fn story(told: &[Told], start: &[(u64, u8, PageUse)]) -> Trace {
    // Every frame is told of: that is how the machine knows its memory.
    let mut runs = Vec::new();
    let mut next = 0;
    // Which pages the host has in use.
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
    for &(deed, choice, cpu, gap) in told {
        time += gap;
        let Some(mut event) = done(deed, choice, &hosts) else {
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

/// The event that a deed comes to; none where it finds nothing.
fn done(deed: Deed, choice: u64, hosts: &Naive) -> Option<Event> {
    let place = choice as usize % hosts.blocks.len().max(1);
    let chosen = || {
        hosts
            .blocks
            .iter()
            .nth(place)
            .map(|(&first, &order)| (first, order))
    };
    Some(match deed {
        Deed::Take(order, kind) => {
            let slot = (choice % (FRAMES >> order)) << order;
            // At most a quarter of memory is in use, and nothing is taken twice.
            if hosts.in_use() > FRAMES / 4 || hosts.touches(slot, order) {
                return None;
            }
            taken(slot, order, KINDS[kind])
        }
        Deed::Free => {
            let (first, order) = chosen()?;
            freed(first, order)
        }
        Deed::FreePart(part) => {
            let (first, order) = chosen()?;
            let part = part.min(order);
            let pages = (choice.rotate_left(17) % (1 << (order - part))) << part;
            freed(first + pages, part)
        }
        Deed::FreeSeveral => {
            let (first, order) = chosen()?;
            let larger = (order + 2).min(10);
            freed(first >> larger << larger, larger)
        }
        Deed::FreeUnknown => {
            let page = choice % FRAMES;
            if hosts.around(page).is_some() {
                return None;
            }
            freed(page, 0)
        }
        Deed::TakeAgain => {
            let (first, order) = chosen()?;
            taken(first, order, Movable)
        }
        Deed::TakeOver(order, kind) => {
            let (first, size) = chosen()?;
            let inside = first + choice.rotate_left(31) % (1 << size);
            taken(inside >> order << order, order, KINDS[kind])
        }
        Deed::Fail(order, kind) => failed(order, KINDS[kind]),
    })
}

/// What the reference says of a trace, from that start or from an empty one.
fn reference(trace: &Trace, start: &[(u64, u8, PageUse)], begun: Start) -> Naive {
    let mut naive = Naive::default();
    if begun == Start::Recorded {
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
                // What never moves stands in blocks as large as it lies. What is taken before it is
                // freed lay in a cache, and stands for nothing.
                let mut from = page;
                for at in (page..=page + 64).filter(|&at| at == page + 64 || taken_first(at)) {
                    naive.put(from, at);
                    from = at + 1;
                }
            } else {
                let blocks = (page..page + 64).step_by(1 << order);
                naive.blocks.extend(blocks.map(|first| (first, order)));
            }
        }
    }
    for event in &trace.events {
        let (page, order) = (event.frame.wrapping_sub(BASE), event.order.get());
        match event.what {
            What::Alloc { .. } => naive.take(page, order),
            What::Free => naive.free(page, order),
            _ => {}
        }
    }
    naive
}

// ---- what a replay shows ----

/// Frames in use at the last look, and by role.
#[derive(Debug, Default)]
struct Look {
    used: u64,
    rest: u64,
    by_role: BTreeMap<u8, u64>,
    looks: u64,
}

impl Watcher for &mut Look {
    fn sees<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
        **self = Look {
            looks: self.looks + 1,
            ..Look::default()
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
        rules: Rules::default(),
        sample_every: 500_000_000,
    }
}

/// Replays, and looks whether the books agree with each other.
fn replayed(
    config: Configuration,
    machine: &Machine,
    trace: &Trace,
    options: &Options,
) -> (Outcome, Look) {
    let script = Script::new(trace).unwrap();
    let mut look = Look::default();
    let outcome = replay(config, machine, &script, options, &mut look).unwrap();
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
        count(|what| matches!(what, What::Alloc { .. } | What::Failure { .. })),
        "{config}"
    );
    for (order, of) in outcome.requests.iter().enumerate() {
        assert!(of.failed <= of.asked, "{config}: order {order}");
    }
    let last = outcome.samples.last().unwrap();
    assert_eq!(look.looks, outcome.samples.len() as u64);
    // All that is not in use is free or cached.
    let total = machine.frames() as u64;
    assert_eq!(look.used + look.rest, total, "{config}");
    assert_eq!(
        look.used + (last.free + last.cached) as u64,
        total,
        "{config}: {last:?}"
    );
    let huge = outcome.huge;
    assert!(
        huge.now <= huge.drained && huge.drained <= huge.reclaimed,
        "{config}: {huge:?}"
    );
    assert!(huge.compacted <= huge.possible, "{config}: {huge:?}");
    (outcome, look)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_configuration_agrees_with_the_naive_reference_where_memory_suffices(
        told in told(), start in beginning(),
    ) {
        for begun in [Start::Recorded, Start::Empty] {
            let trace = story(&told, &start);
            let naive = reference(&trace, &start, begun);
            if Script::new(&trace).is_err() {
                // No allocation in it.
                continue;
            }
            let machine = match begun {
                Start::Recorded => Machine::recorded(&trace).unwrap(),
                Start::Empty => Machine::sized(128 << 20, 2, 4096).unwrap(),
            };
            for config in Configuration::ALL {
                let (outcome, look) = replayed(config, &machine, &trace, &options(begun));
                prop_assert_eq!(outcome.all_requests().failed, 0, "{}", config);
                prop_assert_eq!(outcome.frees, naive.frees, "{} {:?}", config, begun);
                prop_assert_eq!(outcome.double, naive.double, "{} {:?}", config, begun);
                prop_assert_eq!(look.used, naive.in_use(), "{} {:?}", config, begun);
                prop_assert_eq!(outcome.pressure.direct + outcome.pressure.background, 0);
                prop_assert_eq!(outcome.unplaced, 0);
                prop_assert!(!outcome.interrupted);
            }
        }
    }
}

// ---- events that contradict each other ----

/// Any frame, any size, any time: what a damaged trace may hold.
fn hostile() -> impl Strategy<Value = Vec<(u64, u8, usize, u16, u64)>> {
    let page = prop_oneof![0..64_u64, 0..4096_u64];
    let order = prop_oneof![6 => 0..=4_u8, 1 => 5..=10_u8];
    let gap = prop_oneof![8 => 0..1000_u64, 1 => Just(u64::MAX >> 3)];
    vec((page, order, 0..6_usize, any::<u16>(), gap), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_trace_asks_for_the_books_agree(told in hostile(), every in 1..u64::MAX) {
        let mut trace = host(vec![run(0, 64, 2, PageUse::File), run(64, FRAMES - 64, 0, PageUse::Free)]);
        let mut time = 0_u64;
        for (page, order, what, cpu, gap) in told {
            time = time.saturating_add(gap);
            let mut event = match what {
                0..3 => taken(page, order, KINDS[what]),
                3 => failed(order, Movable),
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
        for config in Configuration::ALL {
            for (machine, start) in [(&recorded, Start::Recorded), (&small, Start::Empty)] {
                let rules = Rules { swap: Swap::On, ..Rules::default() };
                // Few samples, however long it takes.
                let sample_every = every.max(time / 8 + 1);
                let options = Options { start, rules, sample_every };
                replayed(config, machine, &trace, &options);
            }
        }
    }
}

#[test]
fn no_time_is_too_late_to_be_sampled() {
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

/// What goes through memory: single pages of files for reading and writing, pages of processes,
/// slabs; a few stay, and all are freed at the end.
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
        // What is not for long.
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
fn what_is_reclaimed_is_counted_and_its_later_frees_are_dropped() {
    let machine = Machine::sized(8 << 20, 2, 4096).unwrap();
    for (pages, order) in [(6000, 0), (1500, 2)] {
        let trace = stream(pages, order);
        for slow_path in SLOW_PATHS {
            for swap in [Swap::Off, Swap::On] {
                for config in Configuration::ALL {
                    let rules = Rules { slow_path, swap };
                    let options = Options {
                        rules,
                        ..options(Start::Empty)
                    };
                    let why = format!("{config} {rules:?} order {order}");
                    let (outcome, look) = replayed(config, &machine, &trace, &options);
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
                    // Taken is what is in use, was freed, or was reclaimed.
                    let served = requests.asked - requests.failed;
                    assert_eq!(
                        served,
                        blocks(look.used) + frees.whole + blocks(reclaimed),
                        "{why}"
                    );
                    // The trace frees each block once.
                    assert_eq!(frees.reclaimed, blocks(reclaimed), "{why}");
                    assert_eq!(frees.refused, requests.failed, "{why}");
                    assert_eq!((frees.parts, frees.unknown), (0, 0), "{why}");
                    assert_eq!(look.used, 0, "{why}");
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
