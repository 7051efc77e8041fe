//! What a trace shows of its start, of pages taken without an event, and of the host's decisions.

use brickyard::{MigrateType, Order};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::linux::Burst;
use brickyard_trace::{Event, HostTexts, NameId, PageUse, StateRun, Step, Trace, What};
use brickyard_workload::decisions::{self, Contradiction, Decision, Decisions};
use brickyard_workload::fidelity::{self, ZoneTable};
use brickyard_workload::pages::{PageId, Role};
use brickyard_workload::script::Action;
use brickyard_workload::start::Idle;
use brickyard_workload::{Machine, Options, Rules, Script, Start, replay};
use core::ops::ControlFlow;
use std::collections::HashMap;

use MigrateType::{HighAtomic, Movable, Reclaimable, Unmovable};

use crate::support::{BASE, FRAMES, event, failed, freed, host, run, taken, zoneinfo};

/// Frames of a page block.
const BLOCK: u64 = 512;

fn with(mut trace: Trace, events: impl IntoIterator<Item = Event>) -> Trace {
    trace.events.extend(events);
    trace
}

fn came(page: u64, order: u8, mobility: MigrateType) -> Event {
    let refill = true;
    event(page, order, What::Taken { mobility, refill })
}

fn went(page: u64, order: u8, mobility: MigrateType) -> Event {
    event(page, order, What::Drained { mobility })
}

fn by(cpu: u16, event: Event) -> Event {
    Event { cpu, ..event }
}

fn step(step: Step) -> Event {
    event(
        0,
        0,
        What::Step {
            step,
            numbers: [0; 3],
        },
    )
}

/// A host whose first page block has frames of unknown use, and the rest is free.
fn with_unknown(frames: u64) -> Vec<StateRun> {
    vec![
        run(0, frames, 0, PageUse::Untold),
        run(frames, FRAMES - frames, 0, PageUse::Free),
    ]
}

/// zoneinfo with these frames in the lists of CPUs 0, 1, ...
fn with_lists(counts: &[u64]) -> String {
    let mut text = zoneinfo(FRAMES).replace("  start_pfn", "  pagesets\n  start_pfn");
    let sets: String = counts
        .iter()
        .enumerate()
        .map(|(cpu, count)| {
            format!("    cpu: {cpu}\n              count: {count}\n              high:  900\n              batch: 7\n")
        })
        .collect();
    text = text.replace("  pagesets\n", &format!("  pagesets\n{sets}"));
    text
}

fn idle(page: u32, order: u8, cpu: u16) -> Idle {
    Idle {
        page: PageId(page),
        order: Order::new(order),
        cpu,
        kind: Movable,
    }
}

// ---- lists of CPUs ----

#[test]
fn what_leaves_a_list_first_lay_in_it() {
    let events = [
        by(1, taken(3, 0, Movable)),
        by(0, went(5, 0, Movable)),
        by(1, taken(8, 2, Movable)),
        by(0, went(6, 0, Movable)),
        // In use at the start, so it says nothing.
        by(2, freed(20, 0)),
        by(2, taken(20, 0, Movable)),
    ];
    let script = Script::new(&with(host(with_unknown(64)), events)).unwrap();
    // From the cold end to the hot one: what goes back first is coldest, what is handed out first
    // is hottest.
    let expected = [idle(5, 0, 0), idle(6, 0, 0), idle(8, 2, 1), idle(3, 0, 1)];
    assert_eq!(script.idle(), expected);
    assert_eq!(script.known().idle_shown, 7);
    let pinned: u32 = script
        .initial_blocks()
        .iter()
        .map(|block| 1 << block.order.get())
        .sum();
    assert_eq!(pinned, 64 - 7);
}

#[test]
fn a_list_that_was_empty_holds_nothing_else() {
    let trace = |events: Vec<Event>| {
        let mut trace = with(host(with_unknown(64)), events);
        trace.header.start.zoneinfo = with_lists(&[10, 4]);
        trace.header.start.pagetypeinfo = types(0, 0, [&[], &[]]);
        Script::new(&trace).unwrap()
    };
    // Neither list was seen empty: all that is counted is drawn, from frames of unknown use.
    let script = trace(vec![by(2, taken(100, 0, Movable))]);
    let of = |script: &Script, cpu| {
        let own = script.idle().iter().filter(|idle| idle.cpu == cpu);
        own.map(|idle| idle.order.frames()).sum::<usize>()
    };
    assert_eq!((of(&script, 0), of(&script, 1)), (10, 4));
    assert!(script.idle().iter().all(|idle| idle.page.0 < 64));
    assert_eq!(script.known().idle_drawn, 14);
    // CPU 0 hands out blocks that were free in the zone.
    let fresh = [(100, 0), (102, 1), (104, 2), (112, 3)];
    let fresh = fresh.map(|(page, order)| by(0, taken(page, order, Movable)));
    let script = trace(fresh.to_vec());
    assert_eq!((of(&script, 0), of(&script, 1)), (0, 4));
    // What is shown is not drawn again.
    let script = trace(vec![by(1, taken(7, 0, Movable))]);
    assert_eq!((of(&script, 0), of(&script, 1)), (10, 4));
    assert_eq!(script.known().idle_drawn, 13);
}

/// A CPU has a list for each order: that one of them was empty says nothing of the others.
#[test]
fn what_is_missing_lies_in_the_lists_that_were_not_empty() {
    let drawn = |events: Vec<Event>, seed| {
        let mut trace = with(host(with_unknown(32)), events);
        trace.header.start.zoneinfo = with_lists(&[22, 0]);
        trace.header.start.pagetypeinfo = types(0, 0, [&[], &[]]);
        Script::drawn(&trace, seed, &HashMap::new()).unwrap()
    };
    let trace = |events: Vec<Event>| drawn(events, 0);
    let of_order = |script: &Script| {
        let idle = script.idle().iter();
        let (mut counts, mut pages) = ([0; 4], std::collections::HashSet::new());
        for idle in idle {
            let own = idle.page.0..idle.page.0 + idle.order.frames() as u32;
            assert!(own.into_iter().all(|page| pages.insert(page)), "{idle:?}");
            assert_eq!((idle.cpu, idle.page.0 % idle.order.frames() as u32), (0, 0));
            counts[idle.order.index()] += 1;
        }
        counts
    };
    let single = by(0, taken(100, 0, Movable));
    let of_four = by(0, taken(200, 2, Movable));
    let of_eight = by(0, taken(304, 3, Movable));
    // No frame twice, whatever the seed.
    for seed in 0..20 {
        assert_eq!(of_order(&drawn(vec![single], seed)), [0, 1, 1, 2]);
    }
    // The largest first; then what is left.
    let script = trace(vec![single]);
    assert_eq!(of_order(&script), [0, 1, 1, 2]);
    assert_eq!(script.known().idle_drawn, 22);
    let script = trace(vec![single, of_four]);
    assert_eq!(of_order(&script), [0, 3, 0, 2]);
    let script = trace(vec![of_four, of_eight]);
    assert_eq!(of_order(&script), [0, 11, 0, 0]);
    // Of other types, or by another CPU, they are other lists.
    let others = [
        by(0, taken(304, 3, Unmovable)),
        by(1, taken(200, 2, Movable)),
    ];
    let script = trace([vec![single], others.to_vec()].concat());
    assert_eq!(of_order(&script), [0, 1, 1, 2]);
    // Where all were, the rest is not known.
    let of_two = by(0, taken(400, 1, Movable));
    let script = trace(vec![single, of_two, of_four, of_eight]);
    assert_eq!(of_order(&script), [0; 4]);
}

/// The texts are read after the page states: what the lists lost in between lay in them.
#[test]
fn lists_hold_what_they_lost_before_they_were_counted() {
    let counted = |time: u64| {
        let events = [
            by(0, taken(100, 1, Movable)),
            by(0, went(3, 0, Movable)),
            by(0, came(200, 2, Movable)),
            by(1, freed(300, 0)),
            // Page sets have no lists of this order.
            by(1, freed(320, 4)),
            // Later than the texts.
            Event {
                time: 9,
                ..by(0, taken(101, 0, Movable))
            },
        ];
        let mut trace = with(host(with_unknown(64)), events);
        trace.header.start.zoneinfo = with_lists(&[10, 4]);
        trace.header.start.time = time;
        Script::new(&trace).unwrap().known().idle_counted
    };
    assert_eq!(counted(5), 10 + 2 + 1 - 4 + 4 - 1);
    // Where the time is unknown.
    assert_eq!(counted(0), 10 + 4);
}

#[test]
fn draws_differ_by_their_seed_only() {
    let mut trace = with(host(with_unknown(64)), [by(2, taken(100, 0, Movable))]);
    trace.header.start.zoneinfo = with_lists(&[10, 4]);
    trace.header.start.pagetypeinfo = types(0, 0, [&[], &[]]);
    let draw = |seed| Script::drawn(&trace, seed, &HashMap::new()).unwrap();
    assert_eq!(draw(1).idle(), draw(1).idle());
    assert_ne!(draw(1).idle(), draw(2).idle());
}

// ---- types of page blocks ----

/// pagetypeinfo of the host: page blocks that are unmovable and reclaimable, and how many free
/// blocks of each order they have.
fn types(unmovable: u64, reclaimable: u64, free: [&[u64]; 2]) -> String {
    let movable = FRAMES / BLOCK - unmovable - reclaimable;
    let row = |name: &str, counts: &[u64]| {
        let counts: String = (0..11)
            .map(|order| format!(" {:6}", counts.get(order).unwrap_or(&0)))
            .collect();
        format!("Node    0, zone   Normal, type {name:>12} {counts}\n")
    };
    let rows = [
        row("Unmovable", free[0]),
        row("Movable", &[]),
        row("Reclaimable", free[1]),
        row("HighAtomic", &[]),
    ];
    format!(
        "Page block order: 9\nPages per block:  512\n\n\
         Free pages count per migrate type at order       0      1      2\n{}\n\
         Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic\n\
         Node 0, zone   Normal {unmovable:12} {movable:12} {reclaimable:12} {:12}\n",
        rows.concat(),
        0
    )
}

fn types_of(script: &Script) -> Vec<(u32, MigrateType)> {
    script.types().map(|(page, kind)| (page.0, kind)).collect()
}

#[test]
fn events_show_types_until_the_page_block_is_claimed() {
    let claim = What::Fallback {
        mobility: Unmovable,
        from_order: Order::new(9),
        from: Movable,
        claimed: true,
    };
    let events = [
        came(0, 0, Unmovable),
        went(BLOCK, 0, Reclaimable),
        event(2 * BLOCK, 0, claim),
        came(2 * BLOCK + 1, 0, Unmovable),
        taken(0, 0, Unmovable),
    ];
    let runs = vec![run(0, FRAMES, 0, PageUse::Free)];
    let script = Script::new(&with(host(runs), events)).unwrap();
    let expected = [(0, Unmovable), (BLOCK as u32, Reclaimable)];
    assert_eq!(types_of(&script), expected);
    assert_eq!(script.known().types_shown, 3);
}

#[test]
fn types_are_given_so_that_the_free_blocks_of_each_type_come_out() {
    // Three page blocks of slabs: with 4 frames free together, with 4 single ones, with none. Two
    // of them are reclaimable, with single free frames and none.
    let mut runs = vec![run(0, 4, 0, PageUse::Free), run(4, 508, 0, PageUse::Slab)];
    for place in 0..4 {
        let at = BLOCK + place * 128;
        runs.push(run(at, 1, 0, PageUse::Free));
        runs.push(run(at + 1, 127, 0, PageUse::Slab));
    }
    runs.push(run(2 * BLOCK, 512, 0, PageUse::Slab));
    runs.push(run(3 * BLOCK, FRAMES - 3 * BLOCK, 0, PageUse::Free));
    let mut trace = with(host(runs), [taken(4 * BLOCK, 0, Movable)]);
    trace.header.start.pagetypeinfo = types(1, 2, [&[0, 0, 1], &[4]]);
    let script = Script::new(&trace).unwrap();
    let (one, two, three) = (0, BLOCK as u32, 2 * BLOCK as u32);
    let expected = [(one, Unmovable), (two, Reclaimable), (three, Reclaimable)];
    assert_eq!(types_of(&script), expected);
    // A type that a page block does not have is not given to it, whatever comes out.
    let block = (BASE / BLOCK) as usize;
    let excluded = HashMap::from([(block, 1 << Unmovable.index())]);
    let script = Script::drawn(&trace, 0, &excluded).unwrap();
    assert!(!types_of(&script).contains(&(one, Unmovable)));
}

#[test]
fn memory_that_is_not_managed_yet_is_no_memory() {
    let mut runs = vec![run(0, 2048, 0, PageUse::Free)];
    runs.push(run(2048, 1024, 0, PageUse::Untold));
    runs.push(run(3072, FRAMES - 3072, 0, PageUse::Free));
    let mut trace = with(host(runs), [taken(0, 0, Movable)]);
    let frames = |trace: &Trace| Machine::recorded(trace).unwrap().frames() as u64;
    assert_eq!(frames(&trace), FRAMES);
    let managed = format!("managed  {FRAMES}");
    let text = trace.header.start.zoneinfo.clone();
    trace.header.start.zoneinfo = text.replace(&managed, &format!("managed  {}", FRAMES - 1024));
    assert_eq!(frames(&trace), FRAMES - 1024);
    assert!(Script::new(&trace).unwrap().initial_blocks().is_empty());
    // Less than the run: then it is something else.
    trace.header.start.zoneinfo = text.replace(&managed, &format!("managed  {}", FRAMES - 1000));
    assert_eq!(frames(&trace), FRAMES);
}

// ---- pages taken without an event ----

fn takes(script: &Script) -> Vec<(u32, Role)> {
    let is_take = |step: &&brickyard_workload::script::ScriptStep| {
        matches!(script.action(step), Action::Take(_))
    };
    let steps = script.steps().unwrap().iter().filter(is_take);
    steps.map(|step| (step.page.0, step.role)).collect()
}

#[test]
fn a_page_that_is_freed_though_it_was_free_was_taken() {
    let runs = vec![run(0, FRAMES, 0, PageUse::Free)];
    let events = [failed(0, Movable), freed(8, 2), freed(8, 2)];
    let script = Script::new(&with(host(runs), events)).unwrap();
    assert_eq!(takes(&script), [(8, Role::Kernel), (8, Role::Kernel)]);
    assert_eq!(script.hidden(), 2);
    // Without page states nothing is known.
    let script = Script::new(&with(Trace::default(), [taken(1, 0, Movable), freed(8, 0)]));
    assert_eq!(script.unwrap().hidden(), 0);
}

#[test]
fn compaction_takes_a_place_for_each_page_that_it_frees() {
    let runs = vec![
        run(0, 4, 0, PageUse::Anonymous),
        run(4, FRAMES - 4, 0, PageUse::Free),
    ];
    let mut trace = with(
        host(runs),
        [
            taken(100, 0, Movable),
            step(Step::CompactionBegins),
            freed(0, 0),
            // A place that was not needed after all.
            freed(4000, 0),
            freed(1, 0),
            step(Step::CompactionEnds),
            taken(101, 0, Movable),
        ],
    );
    trace.end = vec![
        run(2, 2, 0, PageUse::Anonymous),
        run(5000, 2, 0, PageUse::File),
    ];
    let script = Script::new(&trace).unwrap();
    // Each just before the page that was moved there is freed.
    let expected = [
        (100, Role::Anonymous),
        (5000, Role::File),
        (5001, Role::File),
        (101, Role::Anonymous),
    ];
    assert_eq!(takes(&script), expected);
    assert_eq!(script.hidden(), 2);
}

#[test]
fn background_reclaim_ends_before_kswapd_says_so() {
    let at = |time, event: Event| Event { time, ..event };
    let events = [
        at(0, taken(1, 0, Movable)),
        at(50_000_000, step(Step::KswapdWakes)),
        at(200_000_000, taken(2, 0, Movable)),
        at(400_000_000, taken(3, 0, Movable)),
        at(450_000_000, step(Step::KswapdSleeps)),
        at(500_000_000, taken(4, 0, Movable)),
    ];
    let runs = vec![run(0, FRAMES, 0, PageUse::Free)];
    let script = Script::new(&with(host(runs), events)).unwrap();
    let steps = script.steps().unwrap().iter();
    let reclaim: Vec<(u64, bool)> = steps
        .filter_map(|step| match script.action(step) {
            Action::Reclaim(begins) => Some((step.time, begins)),
            _ => None,
        })
        .collect();
    assert_eq!(reclaim, [(50_000_000, true), (350_000_000, false)]);
}

// ---- decisions ----

fn decided(events: impl IntoIterator<Item = Event>) -> Decisions {
    let runs = vec![run(0, FRAMES, 0, PageUse::Free)];
    followed(&with(host(runs), events), Burst::AfterHalfTheLeast)
}

fn followed(trace: &Trace, burst: Burst) -> Decisions {
    let machine = Machine::recorded(trace).unwrap();
    let script = Script::new(trace).unwrap();
    let goes_on = |_| ControlFlow::Continue(());
    let begun = script.beginning();
    let mut decided = decisions::follow(trace, &machine, begun, &[burst], goes_on).unwrap();
    decided.swap_remove(0)
}

fn answers(decisions: &Decisions, decision: Decision) -> (u64, u64) {
    let agreement = &decisions.agreements[decision as usize];
    (agreement.asked, agreement.agreed)
}

#[test]
fn without_events_of_zones_there_are_no_decisions() {
    let runs = vec![run(0, FRAMES, 0, PageUse::Free)];
    let trace = with(host(runs), [taken(1, 0, Movable)]);
    let machine = Machine::recorded(&trace).unwrap();
    let script = Script::new(&trace).unwrap();
    let (begun, goes_on) = (script.beginning(), |_| ControlFlow::Continue(()));
    let followed = decisions::follow(&trace, &machine, begun, &[Burst::AfterABatch], goes_on);
    let error = followed.unwrap_err();
    assert!(error.to_string().contains("--events zones"), "{error}");
}

#[test]
fn the_smallest_block_is_split() {
    let one_by_one = [0, 1, 2, 3].map(|page| came(page, 0, Movable));
    let decisions = decided(one_by_one.into_iter().chain([taken(0, 0, Movable)]));
    assert_eq!(answers(&decisions, Decision::Split), (4, 4));
    // Frame 1 is passed over twice: wrong once, and put aside.
    let passed_over = [0, 2, 3, 4].map(|page| came(page, 0, Movable));
    let decisions = decided(passed_over.into_iter().chain([taken(0, 0, Movable)]));
    assert_eq!(answers(&decisions, Decision::Split), (4, 3));
    let contradictions = &decisions.contradictions;
    assert_eq!(contradictions.get(&Contradiction::NotOnList), Some(&1));
    assert_eq!(decisions.excluded.len(), 1);
}

#[test]
fn a_refill_has_the_length_that_the_page_set_asks_for() {
    // 32768 frames: a batch of 7, doubled with the second miss in a row.
    let refill = |from: u64, blocks: u64| {
        let came = (from..from + blocks).map(|page| came(page, 0, Movable));
        came.chain([taken(from, 0, Movable)])
    };
    let decisions = decided(refill(0, 7).chain(refill(7, 14)));
    assert_eq!(answers(&decisions, Decision::Refill), (2, 2));
    let decisions = decided(refill(0, 8).chain(refill(8, 14)));
    assert_eq!(answers(&decisions, Decision::Refill), (2, 1));
}

#[test]
fn the_largest_foreign_block_is_claimed() {
    let fallback = |from_order, claimed| {
        let what = What::Fallback {
            mobility: Unmovable,
            from_order: Order::new(from_order),
            from: Movable,
            claimed,
        };
        // The second says that the trace has events of zones.
        [
            event(0, 0, what),
            came(3000, 0, Movable),
            taken(0, 0, Unmovable),
        ]
    };
    let all = [Decision::List, Decision::Found, Decision::Claim];
    let decisions = decided(fallback(10, true));
    assert_eq!(all.map(|kind| answers(&decisions, kind)), [(1, 1); 3]);
    let decisions = decided(fallback(4, false));
    let agreed = all.map(|kind| answers(&decisions, kind).1);
    assert_eq!(agreed, [1, 0, 0]);
    let claim = &decisions.agreements[Decision::Claim as usize];
    let pair = ("steal".to_owned(), "claim".to_owned());
    assert_eq!(claim.differences.get(&pair), Some(&1));
}

#[test]
fn after_a_theft_the_rest_of_a_refill_only_steals() {
    let steal = |page, from_order| {
        let what = What::Fallback {
            mobility: Unmovable,
            from_order: Order::new(from_order),
            from: Movable,
            claimed: false,
        };
        event(page, 0, what)
    };
    // The first should have claimed; the others take the smallest that is left.
    let refill = [steal(0, 10), steal(1, 0), steal(2, 1), steal(3, 0)];
    let rest = [taken(0, 0, Unmovable), came(3000, 0, Movable)];
    let decisions = decided(refill.into_iter().chain(rest));
    assert_eq!(answers(&decisions, Decision::Claim), (4, 3));
    assert_eq!(answers(&decisions, Decision::Found), (4, 4));
    // Another refill begins with its own list again.
    let again = [steal(0, 10), taken(0, 0, Unmovable), steal(1, 0)];
    let decisions = decided(again.into_iter().chain(rest));
    assert_eq!(answers(&decisions, Decision::Claim), (2, 0));
}

#[test]
fn a_drain_has_the_length_that_the_page_set_asks_for() {
    // Each CPU may hold max(80 / 3, 4 * 7) = 28 frames. All are in use at first.
    let runs = vec![
        run(0, 128, 0, PageUse::Anonymous),
        run(128, FRAMES - 128, 0, PageUse::Free),
    ];
    let drain = |left: u64| {
        let frees = (0..28).map(|page| freed(page, 0));
        let leave = (0..left).map(|page| went(page, 0, Movable));
        let rest = [came(2000, 0, Movable), taken(2000, 0, Movable)];
        let events: Vec<Event> = frees.chain(leave).chain(rest).collect();
        let trace = with(host(runs.clone()), events);
        answers(&followed(&trace, Burst::AfterABatch), Decision::Drain)
    };
    // 28 frames freed in a row, of which a batch stays: 21 leave.
    assert_eq!(drain(21), (1, 1));
    assert_eq!(drain(22), (1, 0));
    // The frees were shown before the first of them acted, and the set may have held more: then
    // fewer filled it. A batch is the least.
    assert_eq!(drain(20), (1, 1));
    assert_eq!(drain(6), (1, 0));
}

/// Decisions on a host whose first 128 frames are in use, each CPU of which may hold 28 frames.
fn decided_in_use(events: impl IntoIterator<Item = Event>, burst: Burst) -> Decisions {
    let runs = vec![
        run(0, 128, 0, PageUse::Anonymous),
        run(128, FRAMES - 128, 0, PageUse::Free),
    ];
    let rest = [came(2000, 0, Movable), taken(2000, 0, Movable)];
    let mut trace = with(host(runs), events.into_iter().chain(rest));
    trace.names.push("kworker/0:1".into());
    followed(&trace, burst)
}

fn drains(decisions: &Decisions) -> (u64, u64, u64) {
    let unseen = decisions.contradictions.get(&Contradiction::OtherDrain);
    let (asked, agreed) = answers(decisions, Decision::Drain);
    (asked, agreed, unseen.copied().unwrap_or(0))
}

/// The page set holds more than events show: it is full with fewer frees.
#[test]
fn a_drain_after_a_free_shows_that_the_page_set_was_full() {
    let frees = || (0..12).map(|page| freed(page, 0));
    let leave = |from: u64, frames: u64| (from..from + frames).map(|page| went(page, 0, Movable));
    let of = |left: u64| {
        let events = frees().chain(leave(0, left));
        drains(&decided_in_use(events, Burst::AfterHalfTheLeast))
    };
    // Twelve in a row, or one of the last of them, since all were shown before the first acted.
    assert_eq!(of(12), (1, 1, 0));
    assert_eq!(of(9), (1, 1, 0));
    assert_eq!(of(13), (1, 0, 0));
    // From then on it is known how full it is: as many frees fill it again, and all of those since
    // the first free leave.
    let again = (12..24).map(|page| freed(page, 0)).chain(leave(12, 21));
    let events = frees().chain(leave(0, 12)).chain(again);
    let decisions = decided_in_use(events, Burst::AfterHalfTheLeast);
    assert_eq!(drains(&decisions), (2, 2, 0));
    // By another task than the one that freed, it has another reason.
    let other = |event: Event| Event { pid: 8, ..event };
    let events = frees().chain(leave(0, 12).map(other));
    let decisions = decided_in_use(events, Burst::AfterHalfTheLeast);
    assert_eq!(drains(&decisions), (0, 0, 1));
}

/// The rules of 6.12 see a burst where the host, by those of 6.18, does not.
#[test]
fn a_burst_that_the_host_does_not_drain_for_is_a_wrong_answer() {
    let frees = || {
        (0..5)
            .map(|block| freed(4 * block, 2))
            .chain([taken(0, 2, Movable)])
    };
    let decisions = decided_in_use(frees(), Burst::AfterABatch);
    assert_eq!(drains(&decisions), (1, 0, 0));
    let decisions = decided_in_use(frees(), Burst::AfterHalfTheLeast);
    assert_eq!(drains(&decisions), (0, 0, 0));
}

#[test]
fn a_worker_drains_with_time() {
    let worker = |event: Event| Event {
        pid: 9,
        name: NameId(2),
        ..event
    };
    let frees = (0..12).map(|page| freed(page, 0));
    let leave = (0..9).map(|page| worker(went(page, 0, Movable)));
    let decisions = decided_in_use(frees.chain(leave), Burst::AfterHalfTheLeast);
    assert_eq!(drains(&decisions), (0, 0, 0));
    // Unless it has freed what filled the page set.
    let frees = (0..12).map(|page| worker(freed(page, 0)));
    let leave = (0..12).map(|page| worker(went(page, 0, Movable)));
    let decisions = decided_in_use(frees.chain(leave), Burst::AfterHalfTheLeast);
    assert_eq!(drains(&decisions), (1, 1, 0));
}

/// Nothing leaves it then, and no event shows it.
#[test]
fn a_page_set_shrinks_every_second() {
    let drained = |time: u64, left: u64| {
        let runs = vec![
            run(0, 1024, 0, PageUse::Anonymous),
            run(1024, FRAMES - 1024, 0, PageUse::Free),
        ];
        let frees = (0..60).map(|page| freed(page, 0));
        let leave = (0..left).map(|page| went(page, 0, Movable));
        let end = [came(2000, 0, Movable), taken(2000, 0, Movable)];
        let events = frees.chain(leave).chain(end);
        let mut trace = with(host(runs), events.map(|event| Event { time, ..event }));
        // It may hold 900 frames at first.
        trace.header.start.zoneinfo = with_lists(&[0]);
        let decisions = followed(&trace, Burst::AfterHalfTheLeast);
        answers(&decisions, Decision::Drain)
    };
    // As many as were freed in a row.
    assert_eq!(drained(0, 60), (1, 1));
    assert_eq!(drained(0, 21), (1, 0));
    // A minute later it is as small as it can be: 28 frames, and then 35. Twice, all but a batch.
    assert_eq!(drained(60_000_000_000, 60), (1, 0));
    assert_eq!(drained(60_000_000_000, 21 + 28), (1, 1));
}

/// At the time of a drain by a worker, though that is later; on another CPU, too.
#[test]
fn page_sets_shrink_when_the_hosts_did() {
    let drained = |cpu: u16, worker: &str, freed_first: bool, time: u64| {
        let runs = vec![
            run(0, 1024, 0, PageUse::Anonymous),
            run(1024, FRAMES - 1024, 0, PageUse::Free),
        ];
        let at = |time: u64| move |event: Event| Event { time, ..event };
        let frees = (0..60).map(|page| freed(page, 0));
        let leave = (0..60).map(|page| went(page, 0, Movable));
        let end = [came(2000, 0, Movable), taken(2000, 0, Movable)];
        // It shrinks from 900 frames to 74 in 19 seconds, and to 65 in 20.
        let early = frees.chain(leave).chain(end);
        let early = early.map(|event| by(cpu, event)).map(at(19_500_000_000));
        let own = |event: Event| Event {
            pid: 9,
            name: NameId(2),
            cpu: 1,
            ..event
        };
        let late = freed_first.then_some(freed(70, 0));
        let late = late.into_iter().chain([went(71, 0, Movable)]);
        let late = late.map(own).map(at(time));
        let mut trace = with(host(runs), early.chain(late));
        trace.header.start.zoneinfo = with_lists(&[0, 0]);
        trace.names.push(worker.into());
        answers(&followed(&trace, Burst::AfterHalfTheLeast), Decision::Drain)
    };
    for cpu in [0, 1] {
        // A batch stays: of 65 frames, 58 leave at most.
        assert_eq!(drained(cpu, "kworker/1:0", false, 25_300_000_000), (1, 0));
        assert_eq!(drained(cpu, "kworker/1:0", false, 25_900_000_000), (1, 1));
        // Not at that of another task, or of a worker that has just freed something. The time is
        // drawn.
        let drawn = drained(cpu, "make", false, 25_300_000_000);
        assert_eq!(drained(cpu, "make", false, 25_900_000_000), drawn);
        let drawn = drained(cpu, "kworker/1:0", true, 25_300_000_000).1;
        assert_eq!(drained(cpu, "kworker/1:0", true, 25_900_000_000).1, drawn);
    }
}

/// Page blocks that were free as a whole are movable again, without an event.
#[test]
fn a_host_that_reports_its_free_page_blocks_is_known_by_claims() {
    let claim = |page: u64, time: u64| {
        let what = What::Fallback {
            mobility: Unmovable,
            from_order: Order::new(10),
            from: Movable,
            claimed: true,
        };
        let unmovable = [event(page, 0, what), taken(page, 0, Unmovable)];
        unmovable.map(|event| Event { time, ..event })
    };
    let back = |page: u64, time: u64| {
        [freed(page, 0), went(page, 0, Unmovable)].map(|event| Event { time, ..event })
    };
    let end = [came(9000, 0, Movable), taken(9000, 0, Movable)];
    let first = || claim(0, 0).into_iter().chain(back(0, 1));
    let once = decided(first().chain(end));
    assert!(!once.reports_free);
    // The host has a page block of 1024 unmovable frames, and claims another.
    let twice = || first().chain(claim(1024, 10));
    let decisions = decided(twice().chain(end));
    assert!(decisions.reports_free);
    assert_eq!(answers(&decisions, Decision::Claim), (2, 1));
    assert!(decisions.excluded.is_empty());
    // From then on that is a rule.
    let thrice = twice()
        .chain(back(1024, 11))
        .chain(claim(2048, 3_000_000_000));
    let decisions = decided(thrice.chain(end));
    assert_eq!(answers(&decisions, Decision::Claim), (3, 2));
}

// ---- the end ----

#[test]
fn the_error_is_in_parts_of_the_real_blocks() {
    let texts = |free: &[u64]| HostTexts {
        pagetypeinfo: types(1, 2, [&[], free]),
        ..HostTexts::default()
    };
    let table = |free: &[u64]| fidelity::of_host(&texts(free)).unwrap();
    let real = table(&[4, 0, 4]);
    assert_eq!(real.len(), 1);
    assert_eq!(real[0].blocks[Reclaimable.index()], 2);
    let same = fidelity::distance(&real, &real);
    assert_eq!(
        (same.by_order, same.by_type, same.wrong_blocks),
        (0.0, 0.0, 0)
    );
    let off = fidelity::distance(&table(&[2, 0, 5]), &real);
    assert_eq!((off.by_order, off.by_type), (3.0 / 8.0, 3.0 / 8.0));
    // Of the right order, but of another type.
    let mut other = real.clone();
    let free = &mut other[0].free[0];
    (free[Reclaimable.index()], free[HighAtomic.index()]) = (0, 4);
    let other = fidelity::distance(&other, &real);
    assert_eq!((other.by_order, other.by_type), (0.0, 1.0));
    // A zone that only one side has.
    let none: [ZoneTable; 0] = [];
    assert_eq!(fidelity::distance(&none, &real).by_zone, 1.0);
    assert!(fidelity::distance(&real, &none).by_zone.is_infinite());
}

#[test]
fn counts_that_no_memory_has_do_not_overflow() {
    let most = u64::MAX;
    let text = types(0, 0, [&[most; 11], &[most; 11]]).replacen(
        &format!("{:12} {:12}", 0, FRAMES / BLOCK),
        &format!("{most} {most}"),
        1,
    );
    assert!(text.contains(&format!("Normal {most} {most}")));
    // Every row twice, as a kernel never prints them.
    let texts = HostTexts {
        pagetypeinfo: text.repeat(2),
        ..HostTexts::default()
    };
    let host_end = fidelity::of_host(&texts).unwrap();
    assert_eq!(fidelity::distance(&host_end, &host_end).by_type, 0.0);
    let mut trace = with(host(with_unknown(64)), [taken(3, 0, Movable)]);
    trace.header.start.pagetypeinfo = texts.pagetypeinfo;
    trace.header.start.zoneinfo = with_lists(&[most, most]);
    let script = Script::new(&trace).unwrap();
    assert!(script.known().idle_counted <= 2 * FRAMES);
}

#[test]
fn types_of_kernels_that_group_otherwise_have_one_of_ours() {
    let old = types(1, 2, [&[], &[4]])
        .replace("HighAtomic", "   Reserve")
        .replace("Reclaimable", "        CMA");
    let texts = HostTexts {
        pagetypeinfo: old,
        ..HostTexts::default()
    };
    let table = &fidelity::of_host(&texts).unwrap()[0];
    assert_eq!(table.free[0][Movable.index()], 4);
    assert_eq!(table.blocks[Reclaimable.index()], 0);
    assert_eq!(table.blocks[Movable.index()] as u64, FRAMES / BLOCK - 1);
}

// ---- in a replay ----

/// A zone that begins inside a page block has that block's type, too.
#[test]
fn the_page_block_in_which_a_zone_begins_has_its_type() {
    let mut trace = with(
        host(vec![
            run(1, BLOCK - 1, 0, PageUse::Slab),
            run(BLOCK, FRAMES - BLOCK, 0, PageUse::Free),
        ]),
        [taken(BLOCK * 9, 0, Movable)],
    );
    let from_the_second_frame = format!("start_pfn:           {}", BASE + 1);
    let zoneinfo = zoneinfo(FRAMES - 1).replace(
        &format!("start_pfn:           {BASE}"),
        &from_the_second_frame,
    );
    trace.header.start.zoneinfo = zoneinfo;
    trace.header.start.pagetypeinfo = types(1, 0, [&[], &[]]);
    let script = Script::new(&trace).unwrap();
    assert_eq!(script.types().collect::<Vec<_>>(), [(PageId(0), Unmovable)]);
    let machine = Machine::recorded(&trace).unwrap();
    assert_eq!(machine.span().start.number() as u64, BASE + 1);
    let options = Options {
        start: Start::Recorded,
        rules: Rules::TODAY,
        sample_every: u64::MAX,
    };
    for config in [Configuration::Linux618, Configuration::Brickyard] {
        let outcome = replay(config, &machine, &script, &options, ()).unwrap();
        assert_eq!(outcome.zones[0].blocks[Unmovable.index()], 1, "{config}");
    }
}
