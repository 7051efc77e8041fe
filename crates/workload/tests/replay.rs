//! A replay keeps its books: through every configuration, on the host that was recorded and on others, it agrees with a naive reference that knows nothing of
//! allocators, and whatever is reclaimed is counted.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::collections::BTreeMap;

use brickyard::design::Design;
use brickyard::node::SlowPath;
use brickyard::{Configuration, MigrateType, Order};
use brickyard_trace::{Event, PageUse, Trace, What};
use brickyard_workload::kernel::Pressure;
use brickyard_workload::outcome::Frees;
use brickyard_workload::pages::Role;
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
    let chosen = || hosts.blocks.iter().nth(place).map(|(&first, &order)| (first, order));
    Some(match deed {
        Deed::Take(order, kind) => {
            let slot = choice % (FRAMES >> order) << order;
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
            let pages = choice.rotate_left(17) % (1 << (order - part)) << part;
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
            matches!(steps.find(covers).map(|event| event.what), Some(What::Alloc { .. }))
        };
        for (page, (order, usage)) in places(start) {
            if usage == PageUse::Untold {
                // What never moves stands in blocks as large as it lies. What is taken before it is freed lay in a cache, and stands for nothing.
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
    fn sees<D: Design>(&mut self, view: &View<'_, '_, D>) {
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
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

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
