//! Every schedule of two or three threads in a tiny bitmap store, alone and behind a zone, as loom
//! explores them.
//!
//! What is proved, for these sizes, within the preemption bounds given below and for every outcome
//! that the memory orderings allow:
//!
//! - `one-owner`: a frame never has two owners, and an owner sees what the owner before wrote to
//!   the page, whether frames go by bits, by whole words or by the states of their blocks;
//! - nothing is lost: what nobody owns in the end is counted, lies in the right sets, can be taken,
//!   and merges;
//! - whoever is refused was so for a reason: what it wanted was not there, or the other had it;
//! - nobody waits for anybody in the store: a thread that could go on for ever while another stands
//!   still is reported by loom, as a model with too many branches;
//! - `order-0-succeeds`, through the zone, where frames are promised, opened or put back.
//!
//! Stashes, loans, ranges and nodes have files of their own beside this one. The last section
//! plants bugs in those who use the store, and expects to hear of them. Those planted in the store
//! itself need a copy of it.
#![cfg(loom)]

use crate::loom_support;

use brickyard::block::State;
use brickyard::{AnyZone, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, Request};
use loom::thread;
use loom_support::*;

/// What one of two threads asks for.
#[derive(Debug, Clone, Copy)]
enum Ask {
    For(Request),
    /// The block of this order at this frame.
    At(usize, u8),
}
use Ask::{At, For};

/// A block of this order, wherever it lies.
const fn any(order: u8) -> Ask {
    For(request(order))
}

/// Two ask at the same time: so many of them are served.
fn served<M: Machine>(
    count: usize,
    name: &str,
    bound: impl Into<Option<usize>>,
    setting: Setting,
    ours: Ask,
    theirs: Ask,
) {
    explore::<M>(name, bound, setting, move |world| {
        let take = move |ask| match ask {
            For(request) => world.take_for(&request),
            At(frame, order) => world.take_at(frame, order),
        };
        let (ours, theirs) = both(move || take(ours), move || take(theirs));
        let served = [ours, theirs].into_iter().flatten().count();
        assert_eq!(served, count, "{ours:?} {theirs:?}");
    });
}

// ---- words ----

/// Two singles for two: each gets one, though both see the same bit first. One for two: one gets
/// it.
#[test]
fn a_single_frame_goes_to_one() {
    const TWO: Setting = Setting::word(&[one(5), one(9)]);
    served::<Bare>(2, "two singles for two", 5, TWO, any(0), any(0));
    const ONE: Setting = Setting::word(&[one(5)]);
    served::<Bare>(1, "one single for two", 5, ONE, any(0), any(0));
}

/// A run of four and a single frame next to it: both are served. Only the run: it goes whole, or
/// loses one frame to the other.
#[test]
fn a_run_is_taken_whole_or_not_at_all() {
    const BESIDE: Setting = Setting::word(&[range(4, 8), one(9)]);
    served::<Bare>(2, "a run, a single beside it", 5, BESIDE, any(2), any(0));
    served::<Bare>(1, "a run, a single out of it", 3, BESIDE, any(2), At(5, 0));
    const RUN: Setting = Setting::word(&[range(4, 8)]);
    served::<Bare>(1, "a run or a single of it", 5, RUN, any(2), any(0));
    served::<Bare>(1, "a run for two", 5, RUN, any(2), any(2));
}

/// Several bits at once against one of them: a part of a promise is kept, the rest goes back.
#[test]
fn several_at_once_take_what_is_left() {
    const THREE: Setting = Setting::word(&[one(5), one(9), one(20)]);
    explore::<Bare>("three at once, one single", 2, THREE, |world| {
        let (many, single) = both(|| world.take_many(3), || world.take(0));
        assert!(single.is_some() || many.len() == 3);
        assert!(many.len() >= 2);
    });
}

/// What one gives is taken by the other, who sees what was written in the page.
#[test]
fn a_page_is_seen_as_it_was_given() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a frame from hand to hand", 5, NONE, |world| {
        both(|| world.give_at(9, 0), || world.take(0));
    });
    // A promise that another frame backs lets the taker have this one before its count is raised.
    const ANOTHER: Setting = Setting::word(&[one(20)]);
    explore::<Bare>("a frame before it is counted", 2, ANOTHER, |world| {
        let ((), taken) = both(|| world.give_at(9, 0), || world.take(0));
        assert!(taken.is_some());
    });
}

// ---- blocks as a whole ----

/// All but one frame are free; the last comes back while the block is wanted as a whole: it is
/// taken with all its frames or not at all.
#[test]
fn a_block_is_claimed_when_its_last_frame_is_back() {
    const LAST: Setting = Setting::word(&[range(0, 63)]);
    explore::<Bare>("a block and its last frame", 5, LAST, |world| {
        let wanted = || world.take(6).or_else(|| world.take(6));
        let (block, ()) = both(wanted, || world.give_at(63, 0));
        if block.is_none() {
            let block = world.take(6);
            assert!(block.is_some(), "all of it is free by now");
        }
        world.give_at(0, 6);
        assert!(world.take(6).is_some());
        world.give_at(0, 6);
    });
}

/// A block that is free as a whole: one takes it whole, the other a frame of it. One of them gets
/// it; the other is refused at most because of that.
#[test]
fn a_block_goes_whole_or_in_pieces() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    served::<Bricks>(1, "a whole block or a frame", 3, WHOLE, any(6), any(0));
    // All free, but open.
    const OPEN: Setting = Setting::word(&[range(0, 64)]);
    served::<Bricks>(1, "an open block or a frame of it", 3, OPEN, any(6), any(0));
}

/// Two take a block that is free as a whole, whole: one gets it, and the other is told so at once.
#[test]
fn a_whole_block_goes_to_one() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    served::<Bare>(1, "a whole block for two", None, WHOLE, any(6), any(6));
}

/// Two open the same block: both get what they want of it.
#[test]
fn a_block_is_opened_once() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    served::<Bricks>(2, "a block opened by two", 2, WHOLE, any(0), any(0));
}

// ---- several words ----

/// Two whole words are wanted, and a frame of the second: each word goes one way, and what was
/// taken of the first comes back.
#[test]
fn words_that_were_taken_in_vain_come_back() {
    // With as much beside them, so that both are promised what they want.
    const WORDS: Setting = Setting::four_words(Free::Only(&[range(0, 128), range(192, 256)]));
    served::<Bare>(1, "two words, one frame", 2, WORDS, any(7), At(70, 0));
    served::<Bare>(1, "two words, the second", 2, WORDS, any(7), At(64, 6));
}

/// Who took the frame of an undone free asks for any other: there is one at any time.
#[test]
fn a_single_frame_is_found_behind_an_undo() {
    const WORDS: Setting = Setting::four_words(Free::Only(&[range(0, 128), one(192)]));
    explore::<Bricks>("two words, a frame of them, another", 1, WORDS, |world| {
        let singles = || [world.take_at(70, 0), world.take(0)];
        let (words, singles) = both(|| world.take(7), singles);
        let [exact, any] = singles.map(|single| single.is_some());
        assert!(any, "order-0-succeeds");
        assert!(words.is_some() != exact);
    });
}

// ---- groups ----

/// Two blocks are wanted as one, and one of them alone: both or one of them go, and what was taken
/// in vain comes back whole.
#[test]
fn blocks_that_were_taken_in_vain_come_back() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    explore::<Bare>("two blocks, one of them", 3, PAIR, |world| {
        let (pair, block) = both(|| world.take(7), || world.take(6));
        assert!(pair.is_some() != block.is_some());
        pair.into_iter().for_each(|pair| world.give(pair, 7));
        block.into_iter().for_each(|block| world.give(block, 6));
        assert!(world.use_one(7), "both are back");
    });
    served::<Bare>(1, "two blocks, the lower one", 3, PAIR, any(7), At(0, 6));
}

/// A frame of one of two blocks, asked for through the zone: it is to be had unless both
/// blocks went as one.
#[test]
fn a_group_goes_whole_or_in_pieces() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    served::<Bricks>(1, "two blocks, a frame of one", 2, PAIR, any(7), any(0));
}

// ---- the summary ----

/// A frame comes and another goes, so that the block leaves its sets, enters others, or both in
/// turn: afterwards it is in exactly those it belongs to (`check`), and the one free frame is found
/// (`finish`).
#[test]
fn sets_follow_what_comes_and_goes() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("into the sets and out again", 5, NONE, |world| {
        both(|| world.give_at(9, 0), || world.take(0));
    });
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Bare>("out of the sets and in again", 5, ONE, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(9, 0));
        assert!(taken.is_some(), "one is free at any time");
    });
    // With the third frame it is in another grade, with its buddy in another set of runs.
    const TWO: Setting = Setting::word(&[one(4), one(20)]);
    explore::<Bare>("from set to set", 3, TWO, |world| {
        let give = || {
            world.give_at(5, 0);
            world.give_at(21, 0);
        };
        both(|| world.take_at(4, 0), give);
    });
}

/// A thread that gives and takes against one that takes and gives: the block goes in and out more
/// than once.
#[test]
fn sets_follow_what_goes_and_comes_back() {
    const ONE: Setting = Setting::word(&[one(5)]);
    explore::<Bricks>("in, out, in", 2, ONE, |world| {
        let (ours, theirs) = both(|| world.use_one(0), || world.use_one(0));
        assert!(ours || theirs);
    });
}

/// A summary of two levels, and two blocks that share a word of the lower one: the bit above is set
/// as long as one of them is in the set.
#[test]
fn a_bit_above_stays_as_long_as_one_below() {
    const TWO: Setting = Setting {
        blocks: 65,
        ..Setting::apart(2, Free::Only(&[one(5)]))
    };
    explore::<Bare>("two levels, one out and one in", 5, TWO, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(70, 0));
        assert!(taken.is_some(), "one is free at any time");
        // A request for one frame would look at the blocks themselves in the end.
        let found = world.machine.can_serve(&request(0));
        assert!(found, "a bit above is missing");
    });
}

/// The only block of a set comes and goes at the same time: the bit above its word is set no longer
/// than the block is there (`check`).
#[test]
fn a_bit_above_goes_with_the_last_one_below() {
    const NONE: Setting = Setting {
        blocks: 65,
        ..Setting::word(&[])
    };
    explore::<Bare>("two levels, one in and out again", 2, NONE, |world| {
        both(|| world.give_at(9, 0), || world.take(0));
        world.check();
    });
}

/// One block of a pair comes back while the other goes, and both go and come back: afterwards the
/// index says of the pair what is so (`check`), and a pair that is there is found.
#[test]
fn a_pair_is_known_while_its_blocks_come_and_go() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    explore::<Bare>("one half comes, the other goes", 3, PAIR, |world| {
        world.take_at(0, 6).unwrap();
        both(|| world.give_at(0, 6), || world.take_at(64, 6));
    });
    explore::<Bare>("both halves go and come back", 2, PAIR, |world| {
        let used = |half| world.take_at(half, 6).map(|at| world.give(at, 6));
        both(move || used(0), move || used(64));
        assert!(world.use_one(7), "both are back");
    });
}

// ---- partial frees ----

/// A block of an order in use, two parts of which, each of its order from a frame of it on, are
/// freed at the same time: both frees are accepted, and where the parts are all of it, it can be
/// taken again.
fn in_two_parts(name: &str, bound: usize, setting: Setting, whole: u8, parts: [(usize, u8); 2]) {
    explore::<Bare>(name, bound, setting, move |world| {
        let block = world.take(whole).unwrap().number();
        let [ours, theirs] = parts;
        let give = move |(first, order)| world.give_at(block + first, order);
        both(move || give(ours), move || give(theirs));
        if ours.1 == theirs.1 {
            let again = world.take(whole).expect("all of it is free");
            world.give(again, whole);
        }
    });
}

/// Inside a word: a block of four frames.
#[test]
fn a_small_block_is_freed_in_two_parts() {
    const FOUR: Setting = Setting::word(&[range(4, 8)]);
    in_two_parts("halves of four frames", 2, FOUR, 2, [(0, 1), (2, 1)]);
    in_two_parts("a half and the last frame", 2, FOUR, 2, [(0, 1), (3, 0)]);
    in_two_parts("the first frame and a half", 2, FOUR, 2, [(0, 0), (2, 1)]);
}

/// A page block, which has to be opened first.
#[test]
fn a_page_block_is_freed_in_two_parts() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    in_two_parts("halves of a page block", 1, WHOLE, 6, [(0, 5), (32, 5)]);
    in_two_parts("a half and a frame", 0, WHOLE, 6, [(0, 5), (63, 0)]);
}

/// Blocks of several words, in parts of a word and more.
#[test]
fn words_are_freed_in_two_parts() {
    const WHOLE: Setting = Setting::four_words(Free::All);
    in_two_parts("halves of two words", 2, WHOLE, 7, [(0, 6), (64, 6)]);
    in_two_parts("a half and a word", 1, WHOLE, 8, [(0, 7), (192, 6)]);
}

/// Groups of page blocks, in parts of a block and more, and less.
#[test]
fn a_group_is_freed_in_two_parts() {
    const PAIR: Setting = Setting::blocks(2, Free::All);
    const FOUR: Setting = Setting {
        max_order: 8,
        ..Setting::blocks(4, Free::All)
    };
    in_two_parts("halves of two blocks", 5, PAIR, 7, [(0, 6), (64, 6)]);
    in_two_parts("halves of four blocks", 3, FOUR, 8, [(0, 7), (128, 7)]);
    in_two_parts("two blocks and the last", 3, FOUR, 8, [(0, 7), (192, 6)]);
    in_two_parts("a block and half a block", 2, PAIR, 7, [(0, 6), (96, 5)]);
}

// ---- double frees ----

/// A frame that two free at the same time: one succeeds, the other is told, and it is free once.
#[test]
fn a_frame_is_freed_once() {
    const NONE: Setting = Setting::word(&[one(20)]);
    explore::<Bare>("a frame freed twice at once", None, NONE, |world| {
        let frame = Frame::new(9);
        world.disown(frame);
        let free = move || world.free(frame);
        let (ours, theirs) = both(free, free);
        assert!(ours.is_ok() != theirs.is_ok(), "{ours:?} {theirs:?}");
        assert_eq!(ours.and(theirs), Err(FreeError::DoubleFree));
    });
}

/// A frame of a block that is free as a whole, freed by who does not own it while another opens the
/// block: it is refused at every moment.
#[test]
fn a_block_that_is_opened_refuses_bad_frees() {
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    explore::<Bare>("a block opened, and a bad free", 3, WHOLE, |world| {
        let (taken, freed) = both(|| world.take(0), move || world.free(Frame::new(40)));
        assert!(taken.is_some());
        assert_eq!(freed, Err(FreeError::DoubleFree));
    });
}

// ---- over-estimated runs ----

/// A free that looks at bits promised already may call a run larger than it is: afterwards a
/// request for such a run is refused, and what remains is known exactly.
#[test]
fn a_run_that_is_none_is_found_out() {
    const BUDDY: Setting = Setting::word(&[one(8)]);
    explore::<Bare>("a run of a promised bit", 5, BUDDY, |world| {
        let (taken, ()) = both(|| world.take(0), || world.give_at(9, 0));
        assert!(taken.is_some(), "one is free at any time");
        world.check();
        assert_eq!(world.take(1), None, "one frame is no pair");
        world.check();
        assert_eq!(world.take(1), None);
        world.give(taken.unwrap(), 0);
        if world.unowned() == 2 && taken == Some(Frame::new(8)) {
            let pair = world.take(1).expect("both are free");
            world.give(pair, 1);
        }
    });
}

/// A block of this order is freed, and before it is counted it is taken in the place of another
/// one, of which then nobody tells.
fn what_is_free_is_known(name: &str, bound: usize, setting: Setting, order: u8) {
    explore::<Bare>(name, bound, setting, move |world| {
        let mine = world.take(order).unwrap();
        let ((), theirs) = both(move || world.give(mine, order), move || world.take(order));
        assert!(theirs.is_some(), "one is free at any time");
        let found = world.use_one(order);
        assert!(
            found,
            "one is in use, the other is free, and its block does not know"
        );
    });
}

#[test]
fn a_run_that_is_free_is_known() {
    const WORDS: Setting = Setting {
        block_order: 7,
        max_order: 7,
        ..Setting::blocks(1, Free::All)
    };
    what_is_free_is_known("a word freed, a word taken, a word left", 2, WORDS, 6);
}

#[test]
fn a_pair_that_is_free_is_known() {
    const RUNS: Setting = Setting::word(&[range(4, 8)]);
    what_is_free_is_known("a pair freed, a pair taken, a pair left", 3, RUNS, 1);
}

// ---- runs ----

/// A run is larger than what is wanted of it all the while, though it shrinks and grows: the block
/// goes from set to set meanwhile.
#[test]
fn a_run_is_found_while_its_block_goes_from_set_to_set() {
    const EIGHT: Setting = Setting::word(&[range(8, 16)]);
    explore::<Bare>("a pair, a run that shrinks", 2, EIGHT, |world| {
        let (pair, single) = both(|| world.take(1), || world.take(0));
        assert!(single.is_some());
        // A search that a block passes by on its way from set to set may miss it. It is not
        // promised above order 0 that somebody finds what others move about; but that it is there
        // afterwards.
        let pair = pair.or_else(|| world.take(1));
        assert!(pair.is_some(), "pairs are free at any time");
    });
}

/// The same where the run grows.
#[test]
fn a_run_is_found_while_it_grows() {
    const PAIR: Setting = Setting::word(&[range(8, 10)]);
    explore::<Bare>("a pair, a run that grows", 2, PAIR, |world| {
        let grow = || {
            world.give_at(10, 0);
            world.give_at(11, 0);
        };
        let (pair, ()) = both(|| world.take(1), grow);
        assert!(pair.is_some(), "a pair is free at any time");
    });
}

/// The same through a zone, which looks twice above order 0.
#[test]
fn a_run_is_found_through_a_zone() {
    const MANY: Setting = Setting::word(&[range(0, 32)]);
    explore::<Bricks>("a pair, a run that shrinks twice", 2, MANY, |world| {
        let shrink = || {
            world.take_at(0, 0);
            thread::yield_now();
            world.take_at(16, 0)
        };
        let (pair, _) = both(|| world.take(1), shrink);
        // As above.
        let pair = pair.or_else(|| world.take(1));
        assert!(pair.is_some(), "pairs are free at any time");
    });
}

// ---- mobilities ----

const UNMOVABLE: Request = Request::page(Mobility::Unmovable);

/// The block of a frame that cannot be moved is not for those that can.
fn kept_apart(state: Option<(Frame, State)>) {
    let (at, state) = state.expect("a block");
    assert_ne!(state.kind, MigrateType::Movable, "{at} cannot be moved");
}

/// Requests of two mobilities for one block that is movable: who cannot be moved makes it its own,
/// and what it gets is known as such.
#[test]
fn a_block_is_claimed_by_one() {
    const FEW: Setting = Setting::word(&[one(5), range(20, 24)]);
    const MANY: Setting = Setting::word(&[range(0, 40)]);
    for (name, setting) in [("few frames", FEW), ("half a block", MANY)] {
        let name = format!("two mobilities, {name}");
        explore::<Bare>(&name, 3, setting, |world| {
            let (fixed, movable) = both(|| world.take_for(&UNMOVABLE), || world.take(0));
            assert!(fixed.is_some() && movable.is_some());
            kept_apart(world.machine.block_of(fixed.unwrap()));
        });
    }
    explore::<Bare>("two mobilities, an unmovable one goes", 3, FEW, |world| {
        let fixed = world.take_for(&UNMOVABLE).unwrap();
        let (other, ()) = both(|| world.take_for(&UNMOVABLE), move || world.give(fixed, 0));
        kept_apart(world.machine.block_of(other.unwrap()));
    });
    const WHOLE: Setting = Setting::blocks(1, Free::All);
    let name = "two mobilities, a whole block";
    served::<Bricks>(2, name, 2, WHOLE, For(UNMOVABLE), any(0));
}

/// Requests of the two others for one block that is movable, through the zone: the store alone may
/// miss it while it changes hands.
#[test]
fn a_block_is_claimed_by_one_of_two_others() {
    const FEW: Setting = Setting::word(&[one(5), range(20, 24)]);
    const RECLAIMABLE: Request = Request::page(Mobility::Reclaimable);
    explore::<Bricks>("two mobilities, neither of the block's", 2, FEW, |world| {
        let reclaimable = || world.take_for(&RECLAIMABLE);
        let (fixed, other) = both(|| world.take_for(&UNMOVABLE), reclaimable);
        for frame in [fixed, other] {
            kept_apart(world.machine.block_of(frame.expect("order-0-succeeds")));
        }
    });
}

/// A block that is all but free, and frames of which come back, while one that cannot be moved is
/// taken there.
#[test]
fn a_mixed_block_stays_mixed() {
    const LAST: Setting = Setting::word(&[range(0, 63)]);
    explore::<Bare>("mixed, as the last frame comes back", 3, LAST, |world| {
        let (fixed, ()) = both(|| world.take_for(&UNMOVABLE), || world.give_at(63, 0));
        kept_apart(world.machine.block_of(fixed.unwrap()));
    });
}

// ---- what cannot be served in full ----

/// Two want several each, and there are fewer: all are handed out, and counted.
#[test]
fn two_that_want_more_than_there_is_share_it() {
    const FOUR: Setting = Setting::apart(2, Free::Only(&[one(5), one(9), one(70), one(75)]));
    explore::<Bricks>("four frames, two that want three", 1, FOUR, |world| {
        let (ours, theirs) = both(|| world.take_many(3), || world.take_many(3));
        assert_eq!(ours.len() + theirs.len(), 4, "order-0-succeeds");
    });
    const PAIR: Setting = Setting::blocks(2, Free::All);
    explore::<Bare>("two pairs of blocks wanted, one there", 3, PAIR, |world| {
        let (ours, theirs) = both(|| world.take(7), || world.take(7));
        assert!(ours.is_none() || theirs.is_none());
        for pair in [ours, theirs].into_iter().flatten() {
            world.give(pair, 7);
        }
        assert!(world.use_one(7), "both blocks are free");
    });
}

// ---- three levels ----

/// Page blocks enough for three levels in the summary, three of which are memory: two share a
/// word of the lowest level or one of the second.
#[test]
fn bits_two_levels_above_stay_as_long_as_one_below() {
    const DEEP: Setting = Setting {
        blocks: 64 * 64 + 1,
        ..Setting::SPARSE
    };
    const MEMORY: [(&str, &[FrameRange]); 3] = [
        ("in one word", &[one(5), one(64 + 5)]),
        ("in a word of the second level", &[one(5), one(64 * 64 + 5)]),
        ("under the root", &[one(5), one(64 * 64 * 64 + 5)]),
    ];
    for (name, far) in MEMORY {
        let setting = Setting { far, ..DEEP };
        let other = far[1].start.number();
        let name = format!("three levels, {name}");
        explore::<Bare>(&name, 3, setting, move |world| {
            for frame in [other, 5] {
                world.take_at(frame, 0).unwrap();
            }
            world.give_at(5, 0);
            let ((), taken) = both(move || world.give_at(other, 0), || world.take_at(5, 0));
            assert!(taken.is_some());
            // The last resort would look at all blocks; this does not.
            let found = world.machine.can_serve(&request(0));
            assert!(found, "a bit above is missing");
        });
    }
}

// ---- what must be found ----

/// A thread that frees what it no longer owns while another takes it: the frame that both think
/// theirs has two owners.
#[test]
#[should_panic(expected = "has two owners")]
fn a_frame_used_after_its_free_is_found() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a frame kept after its free", 2, NONE, |world| {
        let give = || {
            // The mistake: it is given first and disowned later.
            world.free(Frame::new(9)).unwrap();
            thread::yield_now();
            world.disown(Frame::new(9));
        };
        both(give, || world.take(0));
    });
}

/// A page written after its free.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_page_written_after_its_free_is_found() {
    const NONE: Setting = Setting::word(&[]);
    explore::<Bare>("a page written after its free", 2, NONE, |world| {
        let give = || {
            world.give_at(9, 0);
            // The mistake.
            world.write_to(Frame::new(9));
        };
        both(give, || world.take(0));
    });
}

/// A group of page blocks comes back while its first block is taken again: whoever has that block
/// has no more, whatever the rest of the group still says.
#[test]
fn a_page_block_of_a_group_that_comes_back_is_no_group() {
    const GROUP: Setting = Setting {
        max_order: 7,
        looks: Looks::Cut(0),
        ..Setting::blocks(2, Free::All)
    };
    explore::<Bare>("a group comes back", 2, GROUP, |world| {
        let group = world.take(7).unwrap();
        let first = || {
            if let Some(at) = world.take(6) {
                let all = world.machine.give(at, Order::new(7));
                assert!(all.is_err(), "more was freed than was taken");
                world.give(at, 6);
            }
        };
        both(move || world.give(group, 7), first);
    });
}
