//! Replays that are recorded as a host is.

use std::collections::HashSet;

use brickyard::MigrateType;
use brickyard_designs::classics::Configuration;
use brickyard_trace::{Event, PageUse, Trace, What};
use brickyard_workload::{Machine, Options, Outcome, Rules, Script, Start, replay, round_trip};

use crate::support::{FRAMES, event, failed, freed, host, run, taken};

const OPTIONS: Options = Options {
    start: Start::Recorded,
    rules: Rules {
        slow_path: brickyard::node::SlowPath::MODERN,
        swap: brickyard_workload::Swap::Off,
        ..Rules::TODAY
    },
    sample_every: u64::MAX,
};

/// Designs with lists of CPUs of each kind, and one without.
const CONFIGS: [Configuration; 4] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Linux618,
    Configuration::Brickyard,
];

fn recorded(config: Configuration, trace: &Trace) -> (Trace, Outcome) {
    let script = Script::new(trace).unwrap();
    let machine = Machine::recorded(trace).unwrap();
    round_trip::record(config, &machine, trace, &script, &OPTIONS, ()).unwrap()
}

/// A host whose memory is free but for some pages of an unknown use, and takes and frees pages of
/// all types on three CPUs.
fn busy(rounds: u64) -> Trace {
    let mut trace = host(vec![
        run(0, 1024, 0, PageUse::Untold),
        run(1024, FRAMES - 1024, 0, PageUse::Free),
    ]);
    let kinds = [
        MigrateType::Movable,
        MigrateType::Unmovable,
        MigrateType::Reclaimable,
    ];
    for round in 0..rounds {
        let order = (round % 4) as u8;
        let page = 1024 + (round * 8) % (FRAMES - 2048);
        trace
            .events
            .push(taken(page, order, kinds[round as usize % 3]));
        if round % 5 == 0 {
            trace.events.push(freed(page, order));
        }
        if round % 7 == 0 && order > 0 && round % 5 != 0 {
            // A part of a block.
            trace.events.push(freed(page, order - 1));
        }
    }
    trace.events.push(failed(9, MigrateType::Movable));
    trace.events.push(freed(17, 0));
    for (place, event) in trace.events.iter_mut().enumerate() {
        event.time = place as u64 * 1000;
        event.cpu = (place % 3) as u16;
    }
    trace
}

/// Asserts that every block is free when it is handed out, and in use when it is freed.
fn check(config: Configuration, trace: &Trace) {
    let mut used: HashSet<u64> = HashSet::new();
    for run in &trace.start {
        if run.state.usage != PageUse::Free {
            used.extend(run.frame..run.frame + run.frames);
        }
    }
    for event in &trace.events {
        let frames = event.frame..event.frame + event.order.frames() as u64;
        match event.what {
            What::Alloc { .. } => frames.for_each(|frame| assert!(used.insert(frame), "{config}")),
            What::Free => frames.for_each(|frame| assert!(used.remove(&frame), "{config}")),
            _ => {}
        }
    }
    // The states at the end agree with the events.
    let free = |run: &&brickyard_trace::StateRun| {
        matches!(run.state.usage, PageUse::Free | PageUse::Untold)
    };
    for run in trace.end.iter().filter(|run| !free(run)) {
        for frame in run.frame..run.frame + run.frames {
            assert!(used.contains(&frame), "{config}: {frame}");
        }
    }
}

fn of_kind(trace: &Trace, is: fn(&What) -> bool) -> usize {
    let is = |event: &&Event| is(&event.what);
    trace.events.iter().filter(is).count()
}

/// Where nothing is hidden, a replay of the recorded replay by the same rules is the same: its end,
/// and its own recording.
#[test]
fn a_trace_that_hides_nothing_is_replayed_without_error() {
    let host = busy(3000);
    for config in CONFIGS {
        let (once, outcome) = recorded(config, &host);
        check(config, &once);
        let free = once
            .end
            .iter()
            .filter(|run| run.state.usage == PageUse::Free);
        let counted = outcome.samples.last().unwrap().free as u64;
        assert_eq!(free.map(|run| run.frames).sum::<u64>(), counted, "{config}");
        assert_eq!(
            of_kind(&once, |what| matches!(what, What::Failure { .. })),
            0
        );
        // The request that failed on the host succeeds here, and is freed at once.
        let more = of_kind(&once, |what| matches!(what, What::Alloc { .. }))
            - of_kind(&host, |what| matches!(what, What::Alloc { .. }));
        assert_eq!(more, 1, "{config}");
        let (twice, again) = recorded(config, &once);
        assert_eq!(twice.events, once.events, "{config}");
        assert_eq!(twice.end, once.end, "{config}");
        assert_eq!(again.zones, outcome.zones, "{config}");
        // Recording changes nothing of a replay.
        let script = Script::new(&host).unwrap();
        let machine = Machine::recorded(&host).unwrap();
        let plain = replay(config, &machine, &script, &OPTIONS, ()).unwrap();
        assert_eq!(plain.zones, outcome.zones, "{config}");
    }
}

/// A request that fails is recorded as one, and what reclaim frees for others is.
#[test]
fn what_is_reclaimed_and_what_fails_is_recorded() {
    let mut host = host(vec![run(0, FRAMES, 0, PageUse::Free)]);
    // Twice the pages that there are, of files.
    let flags = "GFP_HIGHUSER_MOVABLE|__GFP_WRITE";
    for page in 0..FRAMES * 2 {
        let mut event = crate::support::taken_with(page % FRAMES, 0, MigrateType::Movable, flags);
        event.time = page * 100_000;
        host.events.push(event);
    }
    let (recorded, outcome) = recorded(Configuration::List2007, &host);
    check(Configuration::List2007, &recorded);
    let pressure = outcome.pressure;
    let frees = of_kind(&recorded, |what| matches!(what, What::Free)) as u64;
    let failures = of_kind(&recorded, |what| matches!(what, What::Failure { .. })) as u64;
    assert!(frees > 0, "{pressure:?}");
    assert_eq!(failures, outcome.all_requests().failed);
    assert_eq!(
        frees,
        pressure.direct + pressure.background + pressure.lumpy + outcome.double
    );
}

/// Pages that were taken without an event have none in the recording either: they are hidden again.
#[test]
fn what_no_event_shows_stays_hidden() {
    let mut host = busy(300);
    // Two in the middle, and one at the end.
    for (place, page) in [(100, 20_000), (200, 20_008), (host.events.len(), 20_016)] {
        let mut hidden = freed(page, 0);
        hidden.time = host.events[place - 1].time;
        host.events.insert(place, hidden);
    }
    assert_eq!(Script::new(&host).unwrap().hidden(), 3);
    for config in CONFIGS {
        let (recorded, _) = recorded(config, &host);
        let kinds = |trace: &Trace| {
            (
                of_kind(trace, |what| matches!(what, What::Alloc { .. })),
                of_kind(trace, |what| matches!(what, What::Free)),
            )
        };
        let (hosts, own) = (kinds(&host), kinds(&recorded));
        // One more of both: the failed request.
        assert_eq!((hosts.0 + 1, hosts.1 + 1), own, "{config}");
        assert_eq!(Script::new(&recorded).unwrap().hidden(), 3, "{config}");
    }
}

/// What compaction moves is recorded as a host's is: its old place is freed by a task that
/// compacts, and its new one is taken without an event.
#[test]
fn what_is_moved_is_recorded_as_freed_only() {
    let mut host = host(vec![run(0, FRAMES, 0, PageUse::Free)]);
    let mut time = 0;
    let mut push = |mut event: Event| {
        time += 1000;
        event.time = time;
        host.events.push(event);
    };
    (0..FRAMES).for_each(|page| push(taken(page, 0, MigrateType::Movable)));
    // Three of four frames are free, but no two page blocks.
    let freed_ones = (0..FRAMES).filter(|page| page % 4 != 0);
    freed_ones.for_each(|page| push(freed(page, 0)));
    push(taken(0, 9, MigrateType::Movable));
    let (recorded, outcome) = recorded(Configuration::Brickyard, &host);
    assert!(
        outcome.pressure.moved > 0,
        "{:?} {:?}",
        outcome.pressure,
        outcome.requests[9]
    );
    let of_step = |step| {
        let events = recorded.events.iter().enumerate();
        let own = events.filter(
            move |(_, event)| matches!(event.what, What::Step { step: own, .. } if own == step),
        );
        own.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let begins = of_step(brickyard_trace::Step::CompactionBegins);
    let ends = of_step(brickyard_trace::Step::CompactionEnds);
    assert_eq!(begins.len() as u64, outcome.pressure.moved);
    for (begin, end) in begins.iter().zip(&ends) {
        assert_eq!(end - begin, 2);
        assert_eq!(recorded.events[begin + 1].what, What::Free);
    }
    assert!(Script::new(&recorded).unwrap().hidden() > 0);
}

/// Steps of compaction and reclaim are recorded where they were.
#[test]
fn steps_of_the_host_are_kept() {
    let mut host = busy(60);
    let step = |step| What::Step {
        step,
        numbers: [1, 2, 3],
    };
    for (place, kind) in [
        (50, brickyard_trace::Step::KswapdSleeps),
        (40, brickyard_trace::Step::CompactionEnds),
        (30, brickyard_trace::Step::KswapdWakes),
        (20, brickyard_trace::Step::CompactionBegins),
    ] {
        let time = host.events[place].time;
        let mut kept = event(0, 0, step(kind));
        kept.time = time;
        host.events.insert(place, kept);
    }
    // The last one is after all other events.
    let mut last = event(0, 0, step(brickyard_trace::Step::KcompactdSleeps));
    last.time = host.events.last().unwrap().time + 1;
    host.events.push(last);
    let steps = |trace: &Trace| {
        let steps = trace.events.iter().filter_map(|event| match event.what {
            What::Step { step, numbers } => Some((event.time, step, numbers)),
            _ => None,
        });
        steps.collect::<Vec<_>>()
    };
    for config in CONFIGS {
        let (recorded, _) = recorded(config, &host);
        assert_eq!(steps(&recorded), steps(&host), "{config}");
        assert!(recorded.events.is_sorted_by_key(|event| event.time));
    }
}
