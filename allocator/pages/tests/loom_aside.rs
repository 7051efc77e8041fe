//! Every schedule of two threads round blocks that are set aside for atomic requests, as loom
//! explores them: set aside, used, given up, taken by administration.
//!
//! What is proved beside what `loom_bitmap` says: whatever meets, a block that is aside is named by
//! a slot afterwards, so it can be given up, and the slots are counted; a single frame that is free
//! all the while is found, though its block is set aside or given up at that moment.
#![cfg(loom)]

use crate::loom_support;

use brickyard::watermark::Mark;
use brickyard::{AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Request};
use loom_support::*;

/// Two page blocks of one word, with eight free frames each.
const EIGHT: &[FrameRange] = &[range(0, 8), range(64, 72)];
/// Four free frames in one of them.
const FOUR: &[FrameRange] = &[range(0, 4)];

const fn setting(aside: usize, free: &'static [FrameRange]) -> Setting {
    Setting {
        aside,
        looks: Looks::Cut(2),
        ..Setting::apart(2, Free::Only(free))
    }
}

/// A pair of frames for who cannot wait, from below the low mark.
fn atomic(world: &World<Bricks>) -> Option<Frame> {
    look_anew();
    let pair = Request::new(Order::new(1), Mobility::Movable).atomic();
    let first = world.machine.alloc_above(&pair, Mark::Min)?;
    world.own(first, pair.order);
    Some(first)
}

/// Reads the marks, which no test of the invariants does.
fn touch(world: &World<Bricks>) {
    let pair = Request::new(Order::new(1), Mobility::Movable);
    let _ = world.machine.watermarks().floor(&pair, Mark::Min);
}

fn aside(world: &World<Bricks>) -> usize {
    let kinds = [0, 64, 128].map(|frame| world.machine.block_type(Frame::new(frame)));
    let aside = |kind: &Option<MigrateType>| *kind == Some(MigrateType::HighAtomic);
    kinds.iter().filter(|kind| aside(kind)).count()
}

/// No more is aside than may be, and what is can be given up: all frames are to be had.
fn settle(world: &World<Bricks>, most: usize) {
    world.check();
    assert!(aside(world) <= most);
}

#[test]
fn a_block_is_set_aside_by_two() {
    for most in [1, 2] {
        let name = format!("aside: two pairs, {most} may be");
        explore::<Bricks>(&name, 2, setting(most, EIGHT), move |world| {
            touch(world);
            let pairs = both(|| atomic(world), || atomic(world));
            assert!(pairs.0.is_some() && pairs.1.is_some());
            settle(world, most);
        });
    }
}

/// Two blocks that share a slot are set aside: one of them is, and stays known.
#[test]
fn a_slot_is_wanted_for_two_blocks() {
    const SHARED: Setting = Setting {
        blocks: 3,
        memory: 3,
        ..setting(2, &[range(0, 2), range(128, 130)])
    };
    explore::<Bricks>("aside: two blocks, one slot", 2, SHARED, |world| {
        touch(world);
        let pairs = both(|| atomic(world), || atomic(world));
        assert!(pairs.0.is_some() && pairs.1.is_some());
        settle(world, 1);
        assert_eq!(aside(world), 1);
    });
}

/// Four frames are free in the block, of which another takes two: whether it is being set aside or
/// not, there is a frame for who wants one.
#[test]
fn a_frame_is_found_while_its_block_is_set_aside() {
    explore::<Bricks>("aside: a frame, a pair", 2, setting(1, FOUR), |world| {
        touch(world);
        // Above order 0 nothing is promised while others are at work.
        let (frame, _) = both(|| world.take(0), || atomic(world));
        assert!(frame.is_some(), "order-0-succeeds");
        settle(world, 1);
    });
}

/// A block is set aside already, and two others have nothing else.
#[test]
fn a_block_is_given_up_by_two() {
    explore::<Bricks>("aside: two frames left", 2, setting(1, FOUR), |world| {
        atomic(world).unwrap();
        assert_eq!(aside(world), 1);
        let (one, other) = both(|| world.take(0), || world.take(0));
        assert!(one.is_some() && other.is_some(), "order-0-succeeds");
        settle(world, 0);
    });
}

/// It is given up by one, while another takes a pair and sets the block aside again.
#[test]
fn a_block_is_given_up_and_set_aside_again() {
    const ONE: &[FrameRange] = &[range(0, 8)];
    for most in [1, 2] {
        let name = format!("aside: given up, set aside again, {most} may be");
        explore::<Bricks>(&name, 2, setting(most, ONE), move |world| {
            atomic(world).unwrap();
            let (frame, _) = both(|| world.take(0), || atomic(world));
            assert!(frame.is_some(), "order-0-succeeds");
            settle(world, most);
        });
    }
}

/// A block comes free as a whole, and is taken as one, while it is set aside.
#[test]
fn all_of_a_block_is_taken_while_it_is_set_aside() {
    const BUT_TWO: &[FrameRange] = &[range(0, 62)];
    explore::<Bricks>("aside: all of it", 1, setting(1, BUT_TWO), |world| {
        touch(world);
        let whole = || {
            world.give_at(62, 0);
            world.give_at(63, 0);
            world.take_at(0, 6)
        };
        both(|| atomic(world), whole);
        settle(world, 1);
    });
}

/// A block is isolated while it is set aside, and while it is given up.
#[test]
fn a_block_is_isolated_while_it_is_set_aside() {
    let isolated = |world: &World<Bricks>| {
        world.machine.isolate(FrameRange::new(0, 64)).unwrap();
        world.machine.unisolate(FrameRange::new(0, 64));
    };
    explore::<Bricks>("aside: isolated", 2, setting(1, FOUR), move |world| {
        touch(world);
        isolated(world);
        both(|| atomic(world), move || isolated(world));
        settle(world, 1);
    });
    let name = "aside: isolated, given up";
    explore::<Bricks>(name, 1, setting(1, FOUR), move |world| {
        isolated(world);
        atomic(world).unwrap();
        both(|| world.take(0), move || isolated(world));
        settle(world, 1);
    });
}

/// A frame is freed into the block, the last that is free anywhere, while the block is set aside by
/// who took the others.
#[test]
fn a_frame_that_comes_back_to_a_block_aside_is_found() {
    const THREE: &[FrameRange] = &[range(0, 3)];
    explore::<Bricks>("aside: a frame comes back", 2, setting(1, THREE), |world| {
        world.take_at(2, 0).unwrap();
        let back = || {
            world.give_at(2, 0);
            world.take(0)
        };
        let (pair, frame) = both(|| atomic(world), back);
        assert!(pair.is_some() || frame.is_some(), "three are free");
        assert!(frame.is_some() || pair.is_none(), "order-0-succeeds");
        settle(world, 1);
    });
}
