//! Traces for the tests: any valid one.

use brickyard::{MigrateType, Order};
use brickyard_trace::{
    Event, Flag, Flags, Header, HostTexts, Lost, NameId, PageState, PageUse, Reading, StateRun,
    Step, TextTimes, Trace, What,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn mobility() -> impl Strategy<Value = MigrateType> {
    (0..MigrateType::COUNT).prop_map(|index| MigrateType::ALL[index])
}

fn order() -> impl Strategy<Value = Order> {
    (0..=Order::MAX.get()).prop_map(Order::new)
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        (mobility(), any::<u64>()).prop_map(|(mobility, flags)| What::Alloc { mobility, flags }),
        (mobility(), any::<u64>()).prop_map(|(mobility, flags)| What::Failure { mobility, flags }),
        Just(What::Free),
        Just(What::Batched),
        (mobility(), any::<bool>()).prop_map(|(mobility, refill)| What::Taken { mobility, refill }),
        mobility().prop_map(|mobility| What::Drained { mobility }),
        (0..Step::ALL.len(), any::<[u32; 3]>()).prop_map(|(step, numbers)| {
            let step = Step::ALL[step];
            // A number that a step does not have is 0.
            let names = step.numbers();
            let number = |place: usize| {
                let has = !names[place].is_empty();
                if has { numbers[place] } else { 0 }
            };
            let numbers = [number(0), number(1), number(2)];
            What::Step { step, numbers }
        }),
        (mobility(), order(), mobility(), any::<bool>()).prop_map(
            |(mobility, from_order, from, claimed)| What::Fallback {
                mobility,
                from_order,
                from,
                claimed,
            }
        ),
    ]
}

prop_compose! {
    fn event()(
        gap in prop_oneof![0..2000u64, 0..u64::MAX >> 12],
        frame in 0..=u64::MAX - (1 << 18),
        what in what(),
        pid: i32,
        name in 0..4u32,
        cpu: u16,
        order in order(),
    ) -> Event {
        Event { time: gap, frame, what, pid, name: NameId(name), cpu, order }
    }
}

prop_compose! {
    fn runs()(parts in vec((0..9usize, any::<[bool; 6]>(), 0..=18u8, 1..100u64, 0..5000u64, any::<u64>()), 0..20))
        -> Vec<StateRun> {
        let mut next = 0;
        parts.into_iter().map(|(usage, flags, order, blocks, gap, time)| {
            let [active, dirty, writeback, unevictable, shared, mapped] = flags;
            let usage = PageUse::ALL[usage];
            let state = PageState { usage, active, dirty, writeback, unevictable, shared, mapped };
            let run = StateRun { time, frame: next + gap, frames: blocks << order, order, state };
            next = run.frame + run.frames;
            run
        }).collect()
    }
}

prop_compose! {
    fn header()(
        texts in vec(".{0,20}", 8), times: [[u64; 5]; 2], readings: [[u64; 4]; 2],
        words in vec("[a-z0-9. \n\"\\\\-]{0,20}", 4),
        began: u64, duration: u64, cpus: u16, frame_bytes: u32, page_block_order: u8,
        flags in vec((".{0,9}", any::<u64>()), 0..4),
        formats in vec(("[a-z_]{1,9}", ".{0,30}"), 0..4),
        lost in vec((any::<u16>(), any::<u64>()), 0..4),
    ) -> Header {
        let reading = |[began, ended, left_out, unsure]: [u64; 4]| Reading { began, ended, left_out, unsure };
        let texts_of = |texts: &[String], [time, zoneinfo, buddyinfo, pagetypeinfo, vmstat]: [u64; 5]| HostTexts {
            time,
            times: TextTimes { zoneinfo, buddyinfo, pagetypeinfo, vmstat },
            zoneinfo: texts[0].clone(),
            buddyinfo: texts[1].clone(),
            pagetypeinfo: texts[2].clone(),
            vmstat: texts[3].clone(),
        };
        Header {
            source: words[0].clone(),
            kernel: words[1].clone(),
            machine: words[2].clone(),
            command: words[3].clone(),
            began, duration, cpus, frame_bytes, page_block_order,
            flags: Flags(flags.into_iter().map(|(name, mask)| Flag { name, mask }).collect()),
            formats,
            start: texts_of(&texts[..4], times[0]),
            end: texts_of(&texts[4..], times[1]),
            start_states: reading(readings[0]),
            end_states: reading(readings[1]),
            lost: lost.into_iter().map(|(cpu, events)| Lost { cpu, events }).collect(),
        }
    }
}

prop_compose! {
    /// Any trace whose names are all used, in the order in which they first appear, as the reader
    /// numbers them.
    pub fn trace()(header in header(), start in runs(), mut events in vec(event(), 0..300), end in runs()) -> Trace {
        let mut time = 0u64;
        let mut names = Vec::new();
        for event in &mut events {
            time = time.saturating_add(event.time);
            event.time = time;
            let name = format!("task {}/ä", event.name.0);
            let place = names.iter().position(|known| *known == name);
            event.name = NameId(place.unwrap_or(names.len()) as u32);
            if place.is_none() {
                names.push(name);
            }
        }
        Trace { header, names, start, events, end }
    }
}
