//! Every schedule of two threads in a tiny zone of which ranges come, go, are reserved or isolated,
//! as loom explores them.
//!
//! What is proved beside what `loom_bitmap` says: a range that leaves has no owner; what is neither
//! isolated nor in use is found all the while, and afterwards all of it.
#![cfg(loom)]

use crate::loom_support;

use brickyard::pressure::{ContiguousRequest, NoHooks, alloc_contiguous, offline};
use brickyard::{Frame, FrameRange, Mobility, Order, Zone};
use loom_support::*;

const TWO: Setting = Setting {
    max_order: 7,
    // What a request that looks a second time finds is found in one schedule: there are too many.
    looks: Looks::Cut(0),
    ..Setting::blocks(2, Free::All)
};

/// Ranges, and the orders that are taken and given meanwhile.
const RANGES: [(&str, FrameRange, &[u8]); 3] = [
    ("a block", FrameRange::new(0, 64), &[0, 6]),
    ("the other block", FrameRange::new(64, 128), &[3, 7]),
    ("a few frames", FrameRange::new(96, 100), &[0, 7]),
];

/// What takes minutes: frames of two blocks.
const LONG: [(&str, FrameRange, &[u8]); 1] = [("across both", FrameRange::new(62, 66), &[0, 3, 6])];

fn ranges() -> impl Iterator<Item = (&'static str, FrameRange, &'static [u8])> {
    let long = if more() > 0 { &LONG[..] } else { &[] };
    RANGES.iter().chain(long).copied()
}

/// A range goes and comes back.
fn away(world: &World<Bricks>, range: FrameRange) {
    if world.machine.remove(range).is_ok() {
        world.own_range(range);
        world.disown_range(range);
        Zone::add(&world.machine, range).unwrap();
    }
}

// ---- ranges that come and go ----

#[test]
fn a_range_goes_and_comes_back() {
    for (name, range, orders) in ranges() {
        for &order in orders {
            let name = format!("{name} goes and comes, order {order}");
            explore::<Bricks>(&name, 1, TWO, move |world| {
                let ((), used) = both(move || away(world, range), move || world.use_one(order));
                assert!(used || order == 7, "there is enough beside the range");
            });
        }
    }
}

#[test]
fn a_range_is_reserved_for_a_while() {
    for (name, range, orders) in ranges() {
        for &order in &orders[..1] {
            let name = format!("{name} reserved for a while, order {order}");
            explore::<Bricks>(&name, 1, TWO, move |world| {
                let reserve = move || reserve_for_a_while(world, range);
                both(reserve, move || world.use_one(order));
            });
        }
    }
}

/// Frames of the range are in use, and come back while it is to leave.
#[test]
fn a_range_goes_whose_frames_come_back() {
    let goes = |name, range, first, order| {
        explore::<Bricks>(name, 2, TWO, move |world| {
            world.take_at(first, order).unwrap();
            let back = move || world.give_at(first, order);
            both(move || away(world, range), back);
        });
    };
    let (few, block, all) = (range(96, 100), range(64, 128), range(0, 128));
    goes("a range goes, its last frame comes back", few, 98, 0);
    goes("a block goes, its last frame comes back", block, 98, 0);
    goes("two blocks go, one comes back", all, 64, 6);
}

/// Behind stashes, which are drained where frames of the range are in the way.
#[test]
fn a_range_goes_that_stashes_have_frames_of() {
    const FEW: Setting = Setting::word(&[one(5), one(20)]);
    explore::<Stashed>("a range goes, a stash", 1, FEW, |world| {
        let range = one(20);
        let away = move || {
            let gone = world.machine.remove(range).is_ok();
            gone.then(|| world.own_range(range)).is_some()
        };
        let (gone, taken) = both(away, || world.take(0));
        assert!(taken.is_some(), "order-0-succeeds");
        if gone {
            world.disown_range(range);
            Zone::add(&world.machine, range).unwrap();
        }
    });
}

// ---- isolation ----

/// A frame is free, and isolated at no time; a range of another block, which has no memory, is
/// isolated for a while.
#[test]
fn a_frame_far_from_what_is_isolated_is_found() {
    const ONE: Setting = Setting {
        blocks: 2,
        ..Setting::word(&[one(5)])
    };
    let far = FrameRange::new(64, 128);
    let for_a_while = move |world: &World<Bricks>| {
        assert_eq!(offline(&world.machine, far, &NoHooks), Ok(0));
    };
    explore::<Bricks>("a frame far from what is isolated", 2, ONE, move |world| {
        // Touches all words of isolation.
        for_a_while(world);
        // The second request finds nothing, and looks at the other block too.
        let twice = || (world.take(0), world.take(0));
        let ((), (taken, more)) = both(move || for_a_while(world), twice);
        assert!(taken.is_some(), "order-0-succeeds");
        assert_eq!(more, None);
    });
}

/// Half of a block is isolated for a while, the other half is free: what is there is found,
/// afterwards at the latest. (It is the zone that looks again.)
#[test]
fn what_lies_beside_an_isolated_range_is_found() {
    const HALF: Setting = Setting::word(&[range(0, 8), range(32, 40)]);
    for order in [0, 1] {
        let name = format!("beside an isolated range, order {order}");
        explore::<Bare>(&name, 2, HALF, move |world| {
            let range = FrameRange::new(32, 64);
            world.isolate_for_a_while(range);
            let isolate = move || world.isolate_for_a_while(range);
            let ((), taken) = both(isolate, move || world.take(order));
            let taken = taken.or_else(|| world.take(order));
            assert!(taken.is_some(), "eight frames are free and never isolated");
        });
    }
}

/// What is isolated while it is free stays: neither taken whole nor in pieces, nor opened.
#[test]
fn what_is_isolated_is_not_handed_out() {
    let range = FrameRange::new(64, 128);
    for order in [0, 6, 7] {
        let name = format!("isolated and taken, order {order}");
        explore::<Bare>(&name, 2, TWO, move |world| {
            world.isolate_for_a_while(range);
            let taken = move || {
                world.isolate(range);
                let all = world.take_isolated(range);
                world.unisolate(range);
                all
            };
            let (isolated, other) = both(taken, move || world.take(order));
            assert!(isolated || other.is_some(), "one of them had it");
        });
    }
}

/// Two ranges are isolated one after the other: what lies between them is isolated at no time.
#[test]
fn nothing_between_two_isolated_ranges_is_isolated() {
    const ONE: Setting = Setting::blocks(1, Free::All);
    explore::<Bare>("between two isolated ranges", 2, ONE, |world| {
        let one_after_the_other = || {
            world.isolate_for_a_while(FrameRange::new(0, 8));
            world.isolate_for_a_while(FrameRange::new(16, 24));
        };
        one_after_the_other();
        let between = || world.machine.is_isolated(Frame::new(12));
        let ((), between) = both(one_after_the_other, between);
        assert!(!between, "no range has frame 12");
    });
}

/// Adjacent frames are taken while frames are taken and given.
#[test]
fn adjacent_frames_go_to_one() {
    let contiguous = |world: &World<Bricks>| {
        let mut wanted = ContiguousRequest::new(70, FrameRange::new(0, 128));
        wanted.mobility = Mobility::Movable;
        if let Ok(range) = alloc_contiguous(&world.machine, &wanted, &NoHooks) {
            world.own_range(range);
            world.disown_range(range);
            world.machine.free_range(range).unwrap();
        }
    };
    let orders = if more() > 0 { &[0, 3, 6][..] } else { &[6] };
    for &order in orders {
        let name = format!("adjacent frames, order {order}");
        explore::<Bricks>(&name, 1, TWO, move |world| {
            contiguous(world);
            let ((), used) = both(move || contiguous(world), move || world.use_one(order));
            assert!(order > 0 || used, "order-0-succeeds");
        });
    }
}

/// All that a stash could fetch from its block is isolated: it looks for another, and does not look
/// at this one for ever.
#[test]
fn a_refill_ends_where_its_block_is_isolated() {
    const FEW: Setting = Setting::apart(2, Free::Only(&[range(0, 4), range(64, 68)]));
    explore::<Stashed>("a refill from a block that is isolated", 1, FEW, |world| {
        let rest = FrameRange::new(65, 68);
        // Touches all words of isolation.
        assert_eq!(offline(&world.machine, rest, &NoHooks), Ok(3));
        Zone::add(&world.machine, rest).unwrap();
        // The stash has fetched from this block, and is empty.
        assert_eq!(world.take(0), Some(Frame::new(64)));
        let away = move || {
            let gone = offline(&world.machine, rest, &NoHooks).is_ok();
            gone.then(|| world.own_range(rest)).is_some()
        };
        let (taken, gone) = both(|| world.take(0), away);
        assert!(taken.is_some(), "order-0-succeeds");
        if gone {
            world.disown_range(rest);
            Zone::add(&world.machine, rest).unwrap();
        }
    });
}

/// An open page block, all of it free and isolated: whoever isolated it can take it, whatever
/// requests look for meanwhile, since none of them may have anything of it.
#[test]
fn what_is_isolated_is_its_owners_whatever_others_look_for() {
    const ONE: Setting = Setting {
        looks: Looks::Cut(0),
        ..Setting::blocks(1, Free::All)
    };
    for order in [0, 1] {
        let name = format!("isolated, open, and looked for, order {order}");
        explore::<Bare>(&name, 2, ONE, move |world| {
            let range = FrameRange::new(0, 64);
            // It is open.
            world.use_one(0);
            world.isolate_for_a_while(range);
            world.isolate(range);
            let taken = move || world.take_isolated(range);
            let (isolated, other) = both(taken, move || world.take(order));
            assert_eq!(other, None);
            assert!(isolated, "nobody else may have any of it");
            world.disown_range(range);
            world.machine.give(Frame::new(0), Order::new(6)).unwrap();
            world.unisolate(range);
        });
    }
}

/// What is freed, taken or promised while its page block is being isolated, or ceases to be, is
/// counted as the block's state says: the total is right afterwards, whether all is isolated still
/// or not. (`check` compares it with what the blocks hold.)
#[test]
fn what_moves_while_it_is_isolated_is_counted_once() {
    for (order, ends) in [(0, false), (6, false), (7, false), (0, true), (6, true)] {
        let what = if ends { "ends" } else { "begins" };
        let name = format!("isolation {what} while order {order} comes back and is taken");
        explore::<Bare>(&name, 2, TWO, move |world| {
            let range = FrameRange::new(0, 128);
            world.isolate_for_a_while(range);
            let mine = world.take(order).unwrap();
            if ends {
                world.isolate(range);
            }
            let isolation = move || match ends {
                false => world.isolate(range),
                true => world.unisolate(range),
            };
            let ((), other) = both(isolation, move || {
                world.give(mine, order);
                world.take(order)
            });
            let in_use = if other.is_some() { 1 << order } else { 0 };
            let census = world.check();
            assert_eq!(census.free + census.isolated, 128 - in_use);
            assert_eq!(world.machine.free_frames(), census.free);
            if let Some(frame) = other {
                world.give(frame, order);
            }
            assert_eq!(world.machine.free_frames(), if ends { 128 } else { 0 });
            world.unisolate(range);
        });
    }
}
