//! Summaries of small traces whose figures are known.

use crate::common;

use brickyard::{MigrateType, Order};
use brickyard_trace::summary::{Oddities, Options, Summary};
use brickyard_trace::{Event, NameId, PageState, PageUse, StateRun, Trace, What};
use proptest::prelude::*;

const ALLOC: What = What::Alloc {
    mobility: MigrateType::Movable,
    flags: 0,
};

fn at(time: u64, what: What, frame: u64, order: u8) -> Event {
    Event {
        time,
        frame,
        what,
        pid: 1,
        name: NameId(0),
        cpu: 0,
        order: Order::new(order),
    }
}

fn trace(events: Vec<Event>) -> Trace {
    Trace {
        names: vec!["cc1".to_owned()],
        events,
        ..Trace::default()
    }
}

fn summary(trace: &Trace) -> Summary {
    Summary::of(
        trace,
        &Options {
            processes: 3,
            spans: 4,
        },
    )
}

fn run(frame: u64, frames: u64, usage: PageUse, time: u64) -> StateRun {
    StateRun {
        time,
        frame,
        frames,
        order: 0,
        state: PageState::of(usage),
    }
}

#[test]
fn lifetimes_and_held_frames() {
    let summary = summary(&trace(vec![
        at(0, ALLOC, 8, 3),
        at(10, ALLOC, 16, 0),
        at(15, What::Free, 16, 0),
        at(20, What::Free, 8, 2),
        at(100, ALLOC, 32, 0),
    ]));
    assert_eq!(summary.duration, 100);
    assert_eq!((summary.kinds.allocs, summary.kinds.frees), (3, 2));
    assert_eq!(
        summary.held_frames, 5,
        "half of the block of 8, and frame 32"
    );
    let [small, large] = &summary.classes[..] else {
        panic!("{:?}", summary.classes)
    };
    assert_eq!(
        (small.allocs, small.held_frames, small.lifetimes.max()),
        (2, 1, Some(5))
    );
    assert_eq!(
        (large.frames(), large.held_frames, large.lifetimes.max()),
        (8, 4, Some(20))
    );
    assert_eq!(
        summary.oddities,
        Oddities {
            frees_in_part: 1,
            ..Oddities::default()
        }
    );
    assert_eq!(summary.processes[0].freed_frames, 5);
    assert_eq!(
        summary
            .spans
            .iter()
            .map(|span| span.all())
            .collect::<Vec<_>>(),
        [4, 0, 0, 1]
    );
}

#[test]
fn frames_taken_before_the_trace_are_distinguished() {
    let mut known = trace(vec![
        at(50, What::Free, 0, 0),   // in use
        at(51, What::Free, 0, 0),   // a second time
        at(52, What::Free, 10, 0),  // free at the start
        at(53, What::Free, 100, 0), // state not read
        at(54, ALLOC, 1, 0),        // in use
        at(55, ALLOC, 20, 0),       // perhaps in a cache
        at(56, What::Free, 30, 0),  // state read later
        at(57, ALLOC, 31, 0),       // state read later
        at(58, ALLOC, 20, 0),       // a second time
    ]);
    known.start = vec![
        run(0, 8, PageUse::Anonymous, 5),
        run(10, 8, PageUse::Free, 5),
        run(20, 8, PageUse::Untold, 5),
        run(30, 1, PageUse::Free, 90),
        run(31, 1, PageUse::File, 90),
        run(200, 1, PageUse::Free, 10), // by now the first had been read
    ];
    let odd = summary(&known).oddities;
    assert_eq!(odd.frees_of_before, 2);
    assert_eq!(odd.unknown_frees, 3);
    assert_eq!(odd.double_allocs, 2);

    let unknown = trace(vec![at(1, What::Free, 0, 0)]);
    let expected = Oddities {
        frees_of_before: 1,
        ..Oddities::default()
    };
    assert_eq!(
        summary(&unknown).oddities,
        expected,
        "without page states any frame may have been taken before"
    );
}

#[test]
fn fallbacks_by_pair_and_by_process() {
    let fallback = |claimed| What::Fallback {
        mobility: MigrateType::Unmovable,
        from_order: Order::new(4),
        from: MigrateType::Movable,
        claimed,
    };
    let mut events = vec![
        at(1, fallback(true), 0, 0),
        at(2, fallback(false), 64, 0),
        at(3, fallback(false), 65, 0),
    ];
    events[2].name = NameId(77);
    let summary = summary(&trace(events));
    let [pair] = &summary.fallbacks[..] else {
        panic!("{:?}", summary.fallbacks)
    };
    assert_eq!((pair.claimed, pair.mixed), (1, 2));
    let mixers: Vec<_> = summary
        .mixers
        .iter()
        .map(|mixer| (mixer.name.as_str(), mixer.mixed, mixer.claimed))
        .collect();
    assert_eq!(mixers, [("?", 1, 0), ("cc1", 1, 1)]);
}

proptest! {
    #[test]
    fn any_trace_can_be_summarized(trace in common::trace(), processes in 0..5usize, spans in 0..5usize) {
        let summary = Summary::of(&trace, &Options { processes, spans });
        prop_assert_eq!(summary.kinds.all(), trace.events.len() as u64);
        let by_span: u64 = summary.spans.iter().map(|span| span.all()).sum();
        prop_assert_eq!(by_span, summary.kinds.all());
        let held: u64 = summary.classes.iter().map(|class| class.held_frames).sum();
        prop_assert_eq!(held, summary.held_frames);
        prop_assert!(summary.processes.len() <= processes);
    }
}
