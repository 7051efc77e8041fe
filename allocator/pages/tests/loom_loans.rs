//! Every schedule of two threads round blocks that are lent to stashes, as loom explores them:
//! lent, called in, adopted, let go.
//!
//! What is proved beside what `loom_bitmap` says: a block that is lent is counted as lent, comes
//! back to its sets when its loan ends, and is found by whoever finds nothing else.
#![cfg(loom)]

use crate::loom_support;

use brickyard::Frame;
use loom_support::*;

/// Three blocks, of which two make a pair.
const THREE: Setting = Setting {
    max_order: 7,
    ..Setting::blocks(3, Free::All)
};

/// A stash fetches from a block, which it has on loan then.
fn lend(world: &World<Stashed>) {
    assert!(world.use_one(0), "order-0-succeeds");
}

#[test]
fn a_lent_block_meets_another_stash() {
    explore::<Stashed>("loans: two stashes", 2, THREE, |world| {
        both(|| lend(world), || lend(world));
    });
    explore::<Stashed>("loans: a stash that is drained", 2, THREE, |world| {
        lend(world);
        both(|| lend(world), || world.machine.drain());
    });
}

/// Whole blocks are wanted while one of them is lent: the others are there.
#[test]
fn loans_are_called_in() {
    explore::<Stashed>("loans: a stash, blocks wanted", 1, THREE, |world| {
        let all = || {
            let held = [world.take(6), world.take(6)];
            assert!(held.iter().all(Option::is_some), "one of three is lent");
            let held = held.into_iter().flatten();
            held.for_each(|block| world.give(block, 6));
        };
        both(|| lend(world), all);
    });
    explore::<Stashed>("loans: a stash, a pair wanted", 2, THREE, |world| {
        both(|| lend(world), || world.use_one(7));
    });
    const TWO: Setting = Setting::apart(2, Free::All);
    explore::<Stashed>("loans: a stash flushed, blocks wanted", 2, TWO, |world| {
        let frames = [0; 3].map(|order| world.take(order).unwrap());
        world.give(frames[0], 0);
        world.give(frames[1], 0);
        let block = || in_interrupt(|| world.use_one(6));
        let ((), found) = both(move || world.give(frames[2], 0), block);
        assert!(found, "the other block is free all the while");
    });
}

/// Frames are freed into a block while it is lent, by somebody who has no stash.
#[test]
fn a_lent_block_takes_frames_back() {
    const LAST: Setting = Setting::apart(2, Free::Only(&[range(0, 63), range(64, 128)]));
    explore::<Stashed>("loans: a stash, the block's last frame", 2, LAST, |world| {
        both(|| lend(world), || in_interrupt(|| world.give_at(63, 0)));
    });
}

/// A pair is freed into a block while a stash takes a single frame of it and has it lent: who wants
/// a pair finds it, called in or not.
#[test]
fn a_pair_in_a_block_that_is_being_lent_is_found() {
    const PAIR: Setting = Setting::apart(2, Free::Only(&[one(5), range(8, 10), range(64, 128)]));
    explore::<Stashed>("loans: a pair freed, a pair wanted", 2, PAIR, |world| {
        world.take_at(8, 1).unwrap();
        // Nothing else is left to be lent, or to be had.
        world.take(6).expect("the other block is free");
        let pair = || {
            in_interrupt(|| {
                world.give_at(8, 1);
                world.take(1)
            })
        };
        let (single, pair) = both(|| world.take(0), pair);
        let split = single.is_some_and(|frame| [8, 9].map(Frame::new).contains(&frame));
        // Above order 0 it is not promised that somebody finds what others move about; but that it
        // is there afterwards.
        let pair = pair.or_else(|| world.take(1));
        assert!(pair.is_some() || split, "a pair is free");
    });
}
