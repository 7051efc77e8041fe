//! Every schedule of two threads at what a request asks about a zone as a whole, as loom explores
//! them: the total in parts, marks, limits, nodes of several zones.
//!
//! What is proved beside what `loom_bitmap` says: a total is never said to be nothing while
//! something is free, whichever parts it is counted in; a request that may not have what is there
//! is refused after a bounded number of looks, though others go on all the while.
#![cfg(loom)]

use crate::loom_support;

use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes};
use brickyard::watermark::Marks;
use brickyard::{
    AnyZone, Context, Frame, FrameRange, Mobility, Order, Request, ZoneKind, ZonePlan,
};
use loom::thread;
use loom_support::*;

// ---- the total in parts ----

/// Zones of so many frames count them in parts, eight page blocks each.
const PARTED: usize = 2048;

/// Page blocks of 64 frames, few of which are memory: `x` lies in the first part, `y` in the
/// fourth.
const PARTS: Setting = Setting {
    blocks: PARTED / 64,
    ..Setting::SPARSE
};
const X: usize = 5;
const Y: usize = 3 * 512 + 5;

/// One frame free at any time, in one part of the total or in another.
#[test]
fn a_frame_that_goes_from_part_to_part_is_found() {
    const BOTH: Setting = Setting {
        far: &[one(X), one(Y)],
        ..PARTS
    };
    for (what, comes_back) in [("said to be nothing", false), ("to and fro", true)] {
        let name = format!("a total in parts, {what}");
        explore::<Bare>(&name, 2, BOTH, move |world| {
            world.take_at(X, 0).unwrap();
            touch(world);
            never_nothing(world, move || {
                world.give_at(X, 0);
                world.take_at(Y, 0).expect("it is free");
                if comes_back {
                    world.give_at(Y, 0);
                    world.take_at(X, 0).expect("it is free");
                }
            });
        });
    }
}

/// One frame is free at any time, whatever is done meanwhile.
fn never_nothing(world: &'static World<Bare>, done: impl FnOnce() + Send + 'static) {
    let (nothing, ()) = both(|| world.machine.may_refuse(&request(0)), done);
    assert!(!nothing, "one is free at any time");
}

/// The same through a zone, which looks until the total says that nothing is free.
#[test]
fn a_frame_that_goes_from_part_to_part_is_taken() {
    const BOTH: Setting = Setting {
        far: &[one(X), one(Y)],
        looks: Looks::Cut(2),
        ..PARTS
    };
    explore::<Bricks>("a zone with parts", 2, BOTH, |world| {
        world.take_at(X, 0).unwrap();
        touch_zone(world);
        let moved = || {
            world.give_at(X, 0);
            // The other may have it already.
            world.take_at(Y, 0);
        };
        let (taken, ()) = both(|| world.take(0), moved);
        let left = world.take(0);
        assert!(taken.is_some() || left.is_none(), "order-0-succeeds");
        if let Some(frame) = left {
            world.give(frame, 0);
        }
    });
}

/// A part that has drifted far is settled with the counter that all share: one frame is free all
/// the while, in that part or in another.
#[test]
fn a_part_is_settled_while_a_frame_is_free() {
    // 17 frames are one more than a part of this zone may be off by.
    const FEW: Setting = Setting {
        far: &[range(0, 24), one(Y)],
        ..PARTS
    };
    explore::<Bare>("a part settled upwards", 2, FEW, |world| {
        // Eight frames at a time go to the part.
        let blocks = [0, 8, 16];
        for first in blocks {
            world.take_at(first, 3).unwrap();
        }
        let back = |first: &usize| world.give_at(*first, 3);
        blocks[..2].iter().for_each(back);
        touch(world);
        never_nothing(world, move || world.give_at(blocks[2], 3));
    });
    explore::<Bare>("a part settled downwards", 2, FEW, |world| {
        touch(world);
        let firsts = [0, 8, 16];
        never_nothing(world, move || {
            for first in firsts {
                world.take_at(first, 3).unwrap();
            }
        });
        firsts.iter().for_each(|&first| world.give_at(first, 3));
    });
}

/// Reads the words of the total.
fn touch(world: &World<Bare>) {
    let _ = world.machine.may_refuse(&request(0));
    for frame in [X, Y] {
        let _ = world.machine.block_of(Frame::new(frame));
    }
}

fn touch_zone(world: &World<Bricks>) {
    Machine::touch(&world.machine);
    for frame in [X, Y] {
        let _ = world.machine.block_of(Frame::new(frame));
    }
}

// ---- limits ----

/// Two frames below the limit, in a block each, and one above it.
const THREE: Setting = Setting::apart(3, Free::Only(&[one(5), one(70), one(140)]));
const LIMITED: Request = Request::page(Mobility::Movable).below(Frame::new(128));

/// One frame below the limit is free at any time, in one block or in another; above it lie others.
#[test]
fn a_frame_below_a_limit_is_found() {
    explore::<Bare>("a limit, said to have nothing below", 2, THREE, |world| {
        world.take_at(5, 0).unwrap();
        let moved = || {
            world.give_at(5, 0);
            world.take_at(70, 0).expect("it is free");
        };
        let (nothing, ()) = both(|| world.machine.may_refuse(&LIMITED), moved);
        assert!(!nothing, "one is free at any time");
    });
}

/// The same through a zone.
#[test]
fn a_frame_below_a_limit_is_taken() {
    let name = "a limit, a frame that goes from block to block";
    explore::<Bricks>(name, 2, THREE, |world| {
        world.take_at(5, 0).unwrap();
        let moved = || {
            world.give_at(5, 0);
            world.take_at(70, 0)
        };
        let (taken, _) = both(|| world.take_for(&LIMITED), moved);
        let low = taken.is_some_and(|frame| frame.number() < 128);
        assert!(low, "order-0-succeeds");
    });
}

/// A block that is free as a whole is opened by one, and another wants a frame of it below a limit;
/// runs and blocks below a limit too.
#[test]
fn what_lies_below_a_limit_is_shared() {
    const TWO: Setting = Setting::blocks(2, Free::All);
    for order in [0, 3, 6] {
        let limited = request(order).below(Frame::new(64));
        let name = format!("below a limit and anywhere, order {order}");
        explore::<Bricks>(&name, 1, TWO, move |world| {
            let (low, any) = both(move || world.take_for(&limited), move || world.take(order));
            let low = low.is_some_and(|low| low.number() < 64);
            assert!(low && any.is_some(), "one block for each");
        });
    }
}

// ---- nodes ----

/// A node with zones of these plans of which these ranges are memory, all of it free, leaked.
fn nodes_with<Z: Machine + AnyZone>(
    plans: &[(ZonePlan, &[FrameRange])],
) -> &'static Nodes<'static, Z> {
    let zones = plans.iter().map(|(plan, memory)| {
        let place = vec![MaybeUninit::uninit(); Z::bytes(plan)];
        let zone = Z::build(plan, Box::leak(place.into()));
        memory.iter().for_each(|&range| Machine::add(&zone, range));
        zone
    });
    let zones: &'static [Z] = Box::leak(zones.collect());
    zones.iter().for_each(Machine::touch);
    let node: &'static [Node<'static, _>; 1] = Box::leak(Box::new([Node::new(0, zones)]));
    let nodes: &'static Nodes<'static, _> = Box::leak(Box::new(Nodes::new(&node[..])));
    touch_marks(nodes);
    nodes
}

/// Zones of one page block behind stashes: these kinds of memory, from the lowest frames on.
fn nodes(kinds: &[ZoneKind]) -> &'static Nodes<'static, Stashed> {
    let spans = (0..kinds.len()).map(|at| [range(64 * at, 64 * at + 64)]);
    let spans: Vec<_> = spans.collect();
    let plans = kinds.iter().zip(&spans).map(|(&kind, span)| {
        let mut plan = Setting::word(&[]).plan();
        (plan.kind, plan.span) = (kind, span[0]);
        (plan, &span[..])
    });
    nodes_with(&plans.collect::<Vec<_>>())
}

/// Reads the marks of all zones, by a request that nothing can serve.
fn touch_marks(nodes: &Nodes<'_, impl AnyZone>) {
    assert!(nodes.alloc(0, &request(Order::MAX.get())).is_err());
}

/// Takes all of a zone but this many frames.
fn leave(zone: &Stashed, left: usize) -> Vec<Frame> {
    let mut taken = vec![Frame::new(0); 64 - left];
    assert_eq!(zone.alloc_bulk(&request(0), &mut taken), Ok(64 - left));
    zone.drain();
    taken
}

/// Keeps so many frames free.
fn keep(zone: &Stashed, min: usize) {
    let (low, high) = (min, min);
    let marks = Marks { min, low, high };
    zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
}

/// A request below the min mark is refused after a bounded number of looks, though another CPU
/// fills and empties its stash all the while.
#[test]
fn a_request_below_the_mark_ends() {
    const LOOKS_MOST: usize = brickyard::patience::LOOKS_MOST as usize;
    for context in [Context::MaySleep, Context::Atomic] {
        let name = format!("below the mark, a user of a stash, {context:?}");
        explore_in(&name, 0, Looks::AtMost(4 * LOOKS_MOST), move || {
            let nodes = nodes(&[ZoneKind::Normal]);
            let zone = nodes.zones().next().unwrap();
            let taken = leave(zone, 2);
            keep(zone, 40);
            let own = taken[0];
            let user = move || {
                let mut own = own;
                for _ in 0..5 * LOOKS_MOST {
                    zone.free(own, Order::ZERO).unwrap();
                    own = zone.alloc(&request(0)).unwrap();
                    thread::yield_now();
                }
            };
            let wanted = request(0).in_context(context);
            let ((), refused) = both(user, move || nodes.alloc(0, &wanted).err());
            assert!(refused.is_some(), "it would fall below the mark");
        });
    }
}

/// Down to the mark each of two requests is served, beyond it neither.
#[test]
fn marks_hold_to_within_who_asks_at_once() {
    let name = "a mark, two that want the last above it";
    explore_in(name, 2, Looks::Cut(1), || {
        let nodes = nodes(&[ZoneKind::Normal]);
        let zone = nodes.zones().next().unwrap();
        leave(zone, 4);
        keep(zone, 3);
        let wanted = || nodes.alloc(0, &request(0)).is_ok();
        let (ours, theirs) = both(wanted, wanted);
        assert!(ours || theirs, "four are more than three");
        nodes.check().unwrap();
    });
}

/// Two zones with a frame each, two that want one: both are served, from the best zone and from the
/// other.
#[test]
fn requests_fall_back_from_zone_to_zone() {
    explore_in("two zones, two frames", 2, Looks::Cut(1), || {
        let nodes = nodes(&[ZoneKind::Dma, ZoneKind::Normal]);
        nodes.zones().for_each(|zone| {
            leave(zone, 1);
        });
        let wanted = || nodes.alloc(0, &request(0)).ok();
        let (ours, theirs) = both(wanted, wanted);
        assert!(ours.is_some() && theirs.is_some(), "order-0-succeeds");
        assert_ne!(ours, theirs);
        nodes.check().unwrap();
    });
    explore_in("two zones, one limit", 2, Looks::Cut(1), || {
        let nodes = nodes(&[ZoneKind::Dma, ZoneKind::Normal]);
        for (zone, left) in nodes.zones().zip([2, 0]) {
            leave(zone, left);
        }
        let low = request(0).below(Frame::new(64));
        let limited = move || nodes.alloc(0, &low).ok();
        let (ours, theirs) = both(limited, || nodes.alloc(0, &request(0)).ok());
        assert!(ours.is_some() && theirs.is_some(), "order-0-succeeds");
    });
}

/// One frame is free at any time, in the one zone or in the other: a user frees it in the best,
/// then takes the one of the other.
#[test]
fn a_frame_that_goes_from_zone_to_zone_is_found() {
    explore_in("two zones, one frame at any time", 2, Looks::Cut(1), || {
        let nodes = nodes(&[ZoneKind::Dma, ZoneKind::Normal]);
        let mut zones = nodes.zones();
        let [low, high] = [zones.next().unwrap(), zones.next().unwrap()];
        leave(low, 1);
        let own = leave(high, 0)[0];
        let mover = move || {
            in_interrupt(|| {
                high.free(own, Order::ZERO).unwrap();
                low.alloc(&request(0)).ok()
            })
        };
        let (taken, _) = both(|| nodes.alloc(0, &request(0)).ok(), mover);
        assert!(taken.is_some(), "one is free at any time");
    });
}

/// The parts of a zone's total, as a node asks for them.
#[test]
fn a_node_sums_parts_of_one_moment() {
    explore_in("a node, a total in parts", 2, Looks::Cut(1), || {
        let mut plan = PARTS.plan();
        plan.cpus = 0;
        let nodes = nodes_with::<Bricks>(&[(plan, &[one(X), one(Y)])]);
        let zone = nodes.zones().next().unwrap();
        let (x, y) = (Frame::new(X), Frame::new(Y));
        zone.alloc_at(x, &request(0)).unwrap();
        Machine::touch(zone);
        touch_marks(nodes);
        let moved = move || {
            // It has x. First it frees x, then it takes y: at least one is free at any time.
            assert_eq!(zone.free(x, Order::ZERO), Ok(()));
            zone.alloc_at(y, &request(0)).is_ok()
        };
        let (ours, _) = both(|| nodes.alloc(0, &request(0)), moved);
        assert!(ours.is_ok(), "order-0-succeeds: {ours:?}");
    });
}
