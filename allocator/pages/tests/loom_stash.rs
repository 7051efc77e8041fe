//! Every schedule of two or three threads in a tiny zone behind stashes, as loom explores them:
//! singles and page blocks, refills, flushes and drains, slots that others enter and slots that
//! none but the owner does, interrupts, tasks that migrate.
//!
//! What is proved beside what `loom_bitmap` says: `cached-once`, and `order-0-succeeds` where
//! frames lie in stashes or are on their way; and that a request looks a bounded number of times,
//! whoever goes on or stands still meanwhile.
#![cfg(loom)]

use crate::loom_support;

use brickyard::Frame;
use brickyard::patience::LOOKS_MOST;
use loom::thread;
use loom_support::*;

/// Takes a frame, of which there is one at any time, and gives it back.
fn use_a_frame<M: Machine>(world: &World<M>) {
    assert!(world.use_one(0), "order-0-succeeds");
}

/// One frame.
const ONE: Setting = Setting::word(&[one(5)]);

/// One frame and two that want it: it lies in the stash of one of them.
fn the_last_one<M: Machine>(name: &str) {
    explore::<M>(name, 2, ONE, |world| {
        use_a_frame(world);
        let (ours, theirs) = both(|| world.take(0), || world.take(0));
        assert!(ours.is_some() != theirs.is_some(), "order-0-succeeds");
    });
}

/// Two frames for two users. In one stash lie both of them.
const TWO: Setting = Setting::word(&[one(5), one(20)]);

fn both_frames_in_one<M: Machine>(name: &str) {
    explore::<M>(name, 2, TWO, |world| {
        let frames = [world.take(0).unwrap(), world.take(0).unwrap()];
        frames.into_iter().for_each(|frame| world.give(frame, 0));
        both(|| use_a_frame(world), || use_a_frame(world));
    });
}

/// Two tasks of one CPU, each of which may be preempted wherever it is not pinned.
fn two_tasks<M: Machine>(name: &str) {
    explore::<M>(name, 3, TWO, |world| {
        both_on([0, 0], || use_a_frame(world), || use_a_frame(world));
    });
}

/// What a task frees while another one of the same CPU is about to fetch lies there still
/// afterwards.
fn two_tasks_and_blocks<M: Machine>(name: &str) {
    explore::<M>(name, 2, TWO_BLOCKS, |world| {
        let block = world.take(6).unwrap();
        world.machine.drain();
        both_on([0, 0], || world.take(6), move || world.give(block, 6));
    });
}

// ---- single frames ----

/// The only frame lies in a CPU's stash, or is given to it while another CPU looks for one: found,
/// or in use when the other looked.
#[test]
fn the_last_frame_is_found_in_a_stash() {
    the_last_one::<Stashed>("the last frame, in a stash");
    explore::<Stashed>("the last frame, given meanwhile", 5, ONE, |world| {
        let frame = world.take(0).unwrap();
        let ((), found) = both(move || world.give(frame, 0), || world.take(0));
        if found.is_none() {
            assert!(world.take(0).is_some());
        }
    });
}

/// Two frames, two CPUs with at most one each: nobody is refused, wherever the frames lie.
#[test]
fn a_frame_free_anywhere_is_found() {
    explore::<Stashed>("stashes, two users", 2, TWO, |world| {
        both(|| use_a_frame(world), || use_a_frame(world));
    });
    both_frames_in_one::<Stashed>("stashes, both frames in one");
}

/// A stash that is filled and flushed, against one that looks for its only frame in it: a frame is
/// free all the while, now in the store, now in the stash.
#[test]
fn a_frame_is_found_on_its_way() {
    const THREE: Setting = Setting::word(&[one(5), one(9), one(20)]);
    explore::<Stashed>("the last frame, flushed meanwhile", 2, THREE, |world| {
        let ours = [0; 3].map(|order| world.take(order).unwrap());
        // Two fill the stash; with the third it gives one back.
        world.give(ours[0], 0);
        world.give(ours[1], 0);
        both(move || world.give(ours[2], 0), || use_a_frame(world));
    });
    explore::<Stashed>("the last frame, fetched meanwhile", 2, TWO, |world| {
        // One CPU fetches one of two; the other is there for whoever comes.
        let (ours, theirs) = both(|| world.take(0), || world.take(0));
        assert!(ours.is_some() && theirs.is_some(), "order-0-succeeds");
    });
    explore::<Stashed>("the last frame, drained meanwhile", 2, TWO, |world| {
        use_a_frame(world);
        both(|| world.machine.drain(), || use_a_frame(world));
    });
}

/// One frame free at any time, but not the same one: a user frees its frame where the other has
/// looked already, and takes, on another CPU, the one that the other has yet to find.
#[test]
fn a_frame_freed_behind_ones_back_is_found() {
    const TWO: Setting = Setting {
        cpus: CPUS,
        ..Setting::word(&[one(5), one(20)])
    };
    explore::<Stashed>("stashes, a user that migrates", 1, TWO, |world| {
        move_to(1);
        let (ours, cached) = (world.take(0).unwrap(), world.take(0).unwrap());
        world.give(cached, 0);
        let migrant = move || {
            world.give(ours, 0);
            move_to(1);
            world.take(0).expect("order-0-succeeds")
        };
        let (frame, ()) = both_on([0, 2], migrant, || use_a_frame(world));
        world.give(frame, 0);
    });
}

#[test]
fn two_tasks_share_a_stash() {
    two_tasks::<Stashed>("a stash, two tasks of its CPU");
}

// ---- page blocks ----

/// Two page blocks, of which a stash fetches one at a time and keeps two.
const TWO_BLOCKS: Setting = Setting {
    huge: 2,
    ..Setting::apart(2, Free::All)
};

/// Page blocks that go by the stash of each CPU: who wants one gets one, and who wants a frame, as
/// long as one is free.
#[test]
fn page_blocks_are_found_anywhere() {
    explore::<Stashed>("page blocks, two users", 2, TWO_BLOCKS, |world| {
        both(|| world.use_one(6), || world.use_one(6));
    });
    explore::<Stashed>("page blocks, a user and a frame", 2, TWO_BLOCKS, |world| {
        both(|| world.use_one(6), || use_a_frame(world));
    });
    let name = "page blocks, a cached one and a frame";
    explore::<Stashed>(name, 2, TWO_BLOCKS, |world| {
        // One is in use for good, the other lies in the stash.
        let _ = world.take(6).unwrap();
        assert!(world.use_one(6));
        let (block, frame) = both(|| world.take(6), || world.take(0));
        assert!(block.is_some() != frame.is_some(), "order-0-succeeds");
    });
}

/// A drain that meets the owner of what is drained.
#[test]
fn page_blocks_are_drained() {
    explore::<Stashed>("page blocks, a drain and a user", 2, TWO_BLOCKS, |world| {
        assert!(world.use_one(6));
        let (used, _) = both(|| world.use_one(6), || world.machine.drain());
        assert!(used, "nobody else wants any");
    });
}

/// With the third block a stash of two gives one back, while another CPU wants what there is.
#[test]
fn page_blocks_are_flushed() {
    const FOUR: Setting = Setting {
        huge: 2,
        ..Setting::apart(4, Free::All)
    };
    let flushed = |name, other: fn(&World<Stashed>)| {
        explore::<Stashed>(name, 2, FOUR, move |world| {
            let blocks = [6; 4].map(|order| world.take(order).unwrap());
            world.give(blocks[0], 6);
            world.give(blocks[1], 6);
            both(move || world.give(blocks[2], 6), move || other(world));
        });
    };
    flushed("page blocks, flushed, a frame", use_a_frame);
    flushed("page blocks, flushed, a block", |world| {
        world.use_one(6);
    });
}

#[test]
fn page_blocks_freed_by_another_task_stay() {
    two_tasks_and_blocks::<Stashed>("page blocks, two tasks");
    let name = "page blocks, a task that migrates";
    explore::<Stashed>(name, 2, TWO_BLOCKS, |world| {
        let block = world.take(6).unwrap();
        world.machine.drain();
        let migrant = move || {
            move_to(0);
            world.give(block, 6);
        };
        both(|| world.use_one(6), migrant);
    });
}

// ---- interrupts ----

/// An interrupt goes straight to the store, past the stash of its CPU, whose user may be in the
/// middle of it.
#[test]
fn interrupts_leave_stashes_alone() {
    explore::<Stashed>("a user, an interrupt that takes", 2, TWO, |world| {
        let take = || in_interrupt(|| world.use_one(0));
        both_on([0, 0], || use_a_frame(world), take);
    });
    explore::<Stashed>("a user, an interrupt that gives", 2, TWO, |world| {
        let frame = world.take(0).unwrap();
        let give = move || in_interrupt(|| world.give(frame, 0));
        both_on([0, 0], || use_a_frame(world), give);
    });
}

// ---- slots that nobody else enters ----

/// The owner alone enters its slot, without an atomic instruction; who looks for a frame in it has
/// itself run there.
#[test]
fn the_last_frame_is_found_by_running_on_its_cpu() {
    the_last_one::<Alone>("exclusive slots, one frame");
    both_frames_in_one::<Alone>("exclusive slots, both frames in one");
    const TWO_LOOKS: Setting = Setting {
        looks: Looks::AtMost(2 * LOOKS_MOST as usize),
        ..TWO
    };
    let name = "exclusive slots, two that want both";
    explore::<Alone>(name, 0, TWO_LOOKS, |world| {
        // Each asks the other for the frame that it has not.
        let both_frames = || {
            let frames = [world.take(0), world.take(0)];
            let taken = frames.into_iter().flatten();
            taken.for_each(|frame| world.give(frame, 0));
        };
        both(both_frames, both_frames);
    });
}

/// Two tasks of one CPU, page blocks and single frames.
#[test]
fn two_tasks_share_an_exclusive_slot() {
    two_tasks::<Alone>("an exclusive slot, two tasks");
    two_tasks_and_blocks::<Alone>("an exclusive slot, page blocks");
}

// ---- how long a request looks ----

/// Others use their stashes all the while: a request that nothing can serve is refused all the
/// same.
#[test]
fn a_request_below_a_limit_ends() {
    const ROUNDS: usize = LOOKS_MOST as usize + 8;
    const TWO: Setting = Setting {
        looks: Looks::AtMost(2 * LOOKS_MOST as usize),
        ..Setting::word(&[one(5), one(20)])
    };
    explore::<Stashed>("a limit below all that is free, a user", 0, TWO, |world| {
        let limited = request(0).below(Frame::new(4));
        let user = || {
            for _ in 0..ROUNDS {
                world.use_one(0);
                thread::yield_now();
            }
        };
        let ((), taken) = both(user, move || world.take_for(&limited));
        assert_eq!(taken, None, "nothing lies so low");
    });
}

// ---- several at once ----

/// Two want two of four, both at once: each gets them.
#[test]
fn batches_go_by_the_stash_or_past_it() {
    const FOUR: Setting = Setting::word(&[range(4, 8)]);
    explore::<Stashed>("batches, two for each", 1, FOUR, |world| {
        let (ours, theirs) = both(|| world.take_many(2), || world.take_many(2));
        assert_eq!([ours.len(), theirs.len()], [2; 2], "order-0-succeeds");
    });
}

// ---- what lies in a stash beside frames that are being reserved ----

/// A single frame, or a pair, in a stash is drained while the frame after it is reserved: it is a
/// block in use of its order all the while, and comes back.
#[test]
fn what_lies_beside_a_reserved_frame_comes_back() {
    let drained = |name, setting, cached, fill: fn(&World<Stashed>)| {
        explore::<Stashed>(name, 1, setting, move |world| {
            fill(world);
            assert_eq!(world.machine.cached_frames(), cached);
            let reserve = || reserve_for_a_while(world, one(6));
            both(|| world.machine.drain(), reserve);
            assert_eq!(world.machine.refused_late(), 0, "a good free was refused");
        });
    };
    const SINGLE: Setting = Setting::word(&[one(6), one(40)]);
    let name = "a single drained, its neighbour reserved";
    drained(name, SINGLE, 1, |world| world.give_at(5, 0));
    const PAIR: Setting = Setting::word(&[range(4, 7), one(40)]);
    let name = "a pair drained, its neighbour reserved";
    drained(name, PAIR, 2, |world| assert!(world.use_one(1)));
}

/// Several pairs are fetched at once while single frames of the same word are taken and freed.
#[test]
fn small_blocks_are_fetched_beside_single_frames() {
    const PAIRS: Setting = Setting::word(&[range(4, 8)]);
    explore::<Stashed>("pairs and a single", 1, PAIRS, |world| {
        let (_, single) = both(|| world.use_one(1), || world.use_one(0));
        assert!(single, "order-0-succeeds");
    });
}
