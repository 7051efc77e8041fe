//! Schedules in which a request for one frame is told that nothing is there, though something is
//! all the while; and others that were suspected.
#![cfg(loom)]

use crate::loom_support;

use brickyard::{Frame, FrameRange, Mobility, Request};
use loom_support::*;

const PAGE: Request = Request::page(Mobility::Movable);

/// So many page blocks of one word each, all free.
const fn free(blocks: usize) -> Setting {
    Setting::apart(blocks, Free::All)
}

/// What a look everywhere asks of the store: a frame, else whether something is on its way.
fn falsely_refused(world: &World<Bare>) -> bool {
    world.take(0).is_none() && world.machine.may_refuse(&PAGE)
}

/// Two frames of a block are not isolated, and two requests ask for one each, while the block is
/// free as a whole. The one that finds the other opening it may not be told that nothing is there.
#[test]
fn a_block_that_is_isolated_in_part_and_being_opened_is_not_nothing() {
    explore::<Bare>("opened beside an isolated range", 3, free(1), |world| {
        world.isolate(FrameRange::new(0, 62));
        world.check();
        let refused = both(|| falsely_refused(world), || falsely_refused(world));
        assert_eq!(refused, (false, false), "two frames for two");
        world.unisolate(FrameRange::new(0, 62));
    });
}

/// In a store of so many blocks, one of two frames is free all the while: one thread frees its own,
/// in the first block, before it takes the other, in the second. Meanwhile the other asks whether
/// `request` may be refused.
fn beside_a_frame_that_moves(
    (name, bound): (&str, usize),
    blocks: usize,
    isolated: Option<FrameRange>,
    request: Request,
) {
    explore::<Bare>(name, bound, free(blocks), move |world| {
        for first in [0, 64] {
            world.take_at(first, 6).unwrap();
        }
        if let Some(range) = isolated {
            world.isolate(range);
            world.check();
        }
        world.give_at(64, 0);
        let moved = || {
            world.give_at(0, 0);
            world.take_at(64, 0).unwrap();
        };
        let (refused, ()) = both(move || world.machine.may_refuse(&request), moved);
        assert!(!refused, "at every moment one of two frames was free");
        isolated
            .into_iter()
            .for_each(|range| world.unisolate(range));
    });
}

/// Both lie below the limit.
#[test]
fn a_frame_below_a_limit_that_moves_is_not_nothing() {
    let limited = PAGE.below(Frame::new(128));
    beside_a_frame_that_moves(("moved below a limit", 3), 3, None, limited);
}

/// The same for requests without a limit while some other range is isolated.
#[test]
fn a_frame_that_moves_beside_an_isolated_range_is_not_nothing() {
    let other = FrameRange::new(128, 192);
    beside_a_frame_that_moves(("moved beside an isolated range", 3), 3, Some(other), PAGE);
}

/// Without either, the total is of one moment.
#[test]
fn a_frame_that_moves_is_not_nothing() {
    beside_a_frame_that_moves(("moved", 5), 2, None, PAGE);
}

/// Two CPUs fetch from the same block at once: whoever has it on loan afterwards knows of it,
/// whatever was taken in vain. Another block is free as a whole, so that loans are given.
#[test]
fn a_loan_is_somebodys_whoever_was_faster() {
    for frames in [&[5][..], &[5, 9]] {
        explore::<Stashed>("two fetch from one block", 3, free(2), move |world| {
            world.take_at(0, 6).unwrap();
            frames.iter().for_each(|&frame| world.give_at(frame, 0));
            // From here on the stashes are empty again.
            Machine::touch(&world.machine);
            world.check();
            let (ours, theirs) = both(|| world.take(0).unwrap(), || world.take(0).unwrap());
            world.check();
            world.give(ours, 0);
            move_to(1);
            world.give(theirs, 0);
            move_to(0);
        });
    }
}
