//! How long one request waits for others in all, and how often it asks: whoever stands still costs
//! it that once, not at each of its looks.

use brickyard::node::SlowPath;
use brickyard::patience::WAITS_MOST;
use brickyard::pressure::{ContiguousRequest, Migration, alloc_contiguous};
use brickyard::sync::{Exclusive, PATIENCE, Shared};
use brickyard::{Frame, FrameRange, Mobility, Order, Request};

use crate::{meanwhile, support};

use meanwhile::{ALWAYS, ASKED, CPU, Here, LOOKS, OTHER, PAGE};
use support::{
    Hooks, all_at, give, hooked_node, lasting, one_node, set_marks, take_all, use_one, with_slots,
};

/// Waits for one who stands still, and a few thousand for looks that find something on its way.
const FEW: u64 = 2 * PATIENCE as u64;

#[test]
fn below_a_mark_what_was_freed_to_a_cache_meanwhile_is_not_asked() {
    let mut refused = Vec::new();
    for moment in 0..8 {
        let zone = lasting::<_, Shared>(1024, 3, Here);
        let nodes = one_node(core::slice::from_ref(zone));
        CPU.set(0);
        let all = take_all(zone, Mobility::Movable);
        give(zone, &all[..3]);
        zone.drain();
        CPU.set(2);
        zone.free(all[3], Order::ZERO).unwrap();
        CPU.set(0);
        assert_eq!((zone.free_frames(), zone.cached_frames()), (3, 1));
        // An atomic request must leave 3: one frame is its to have, all the time.
        set_marks(zone, all_at(8));
        let mine = all[4];
        OTHER.set(Some((
            moment,
            Box::new(move || {
                if zone.cached_frames() == 0 {
                    // The request has it in the store already, and must find it there.
                    return;
                }
                CPU.set(1);
                zone.free(mine, Order::ZERO).unwrap();
                CPU.set(2);
                assert_eq!(zone.cached_frames(), 2);
                zone.alloc(&PAGE).unwrap();
                assert_eq!((zone.free_frames(), zone.cached_frames()), (3, 1));
            }),
        )));
        let answer = nodes.alloc(0, &PAGE.atomic());
        let ran = OTHER.take().is_none();
        if ran && answer.is_err() {
            refused.push((moment, answer, LOOKS.get()));
            assert!(nodes.alloc(0, &PAGE.atomic()).is_ok());
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

// ---- hooks ----

/// What is to be moved stays for now, and reclaim says each time that it has freed something.
fn later() -> Hooks {
    Hooks::new(Some(1), Some(Migration::Later))
}

#[test]
fn a_page_that_stays_is_asked_about_in_one_range() {
    CPU.set(0);
    for frames in [1024, 2048, 4096] {
        let zone = lasting::<_, Shared>(frames, 1, Here);
        let all = take_all(zone, Mobility::Movable);
        let odd: Vec<Frame> = all.into_iter().filter(|at| at.number() % 2 == 1).collect();
        give(zone, &odd);
        zone.drain();
        let hooks = later();
        let request = ContiguousRequest::new(64, FrameRange::new(0, frames));
        let answer = alloc_contiguous(zone, &request, &hooks);
        let calls = hooks.asked();
        zone.check().unwrap();
        // Each of the pages in use stays, in each of five passes over the only range it is tried
        // in.
        let most = 5 * frames / 2;
        assert!(answer.is_err() && calls > 0);
        assert!(calls <= most, "{calls} calls for {frames} frames");
    }
}

#[test]
fn who_stands_still_is_waited_for_once() {
    let (zone, slots) = with_slots::<_, Shared>(1024, Here);
    let zones = [zone];
    let zone = &zones[0];
    CPU.set(0);
    let mut all = take_all(zone, Mobility::Movable);
    CPU.set(1);
    zone.free(all.pop().unwrap(), Order::ZERO).unwrap();
    // Somebody stands still in the slot of CPU 1.
    core::mem::forget(slots[1].visit(|| ()).unwrap());
    CPU.set(0);
    let waits = |most: u64, what: &str, work: &dyn Fn() -> bool| {
        LOOKS.set(0);
        assert!(work(), "{what}");
        assert!(LOOKS.get() <= most, "{} waits of {what}", LOOKS.get());
    };
    waits(FEW, "a zone", &|| zone.alloc(&PAGE).is_err());
    let nodes = hooked_node(&zones, later(), SlowPath::MODERN);
    let helped = || nodes.alloc(0, &PAGE).is_err();
    waits(u64::from(WAITS_MOST), "a node whose reclaim helps", &helped);
    CPU.set(1);
    let free = || zone.free_bulk(&all[..255]).is_ok();
    waits(FEW, "a bulk free on that CPU", &free);
    let some = || zone.alloc_bulk(&PAGE, &mut [Frame::new(0); 255]) == Ok(255);
    waits(FEW, "a bulk request there", &some);
}

#[test]
fn a_mark_near_the_largest_number() {
    CPU.set(0);
    let zone = lasting::<_, Exclusive>(1024, 1, Here);
    let nodes = hooked_node(core::slice::from_ref(zone), later(), SlowPath::MODERN);
    set_marks(zone, all_at(usize::MAX));
    let sixteen = Request::new(Order::new(4), Mobility::Movable);
    assert!(nodes.alloc(0, &sixteen).is_err());
}

// ---- others are asked again in each look ----

#[test]
fn a_cpu_that_does_not_answer_is_asked_once() {
    let zone = lasting::<_, Exclusive>(1024, 3, Here);
    CPU.set(0);
    let all = take_all(zone, Mobility::Movable);
    for cpu in [1, 2] {
        CPU.set(cpu);
        zone.free(all[cpu], Order::ZERO).unwrap();
    }
    CPU.set(0);
    ASKED.take();
    ALWAYS.set(Some(Box::new(|| {
        CPU.set(2);
        use_one(zone, &PAGE);
    })));
    let answer = zone.alloc(&PAGE);
    ALWAYS.set(None);
    assert!(answer.is_err());
    assert_eq!(ASKED.get()[1], 1);
}
