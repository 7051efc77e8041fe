//! The bitmap store returns the same results as the buddy store, for random operations on given
//! frames, parts of blocks, ranges and isolation.

use crate::classics::support;

use brickyard::bitmap::{AT_ONCE, Bitmap};
use brickyard::block::{FreeTable, State, Use};
use brickyard::sync::{AtomicU8, AtomicU64};
use brickyard::{Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError, Request};
use brickyard_designs::classics::store::buddy::Buddy;
use brickyard_designs::classics::store::frames::{FrameRecord, FrameTable};
use brickyard_designs::classics::store::grouping::NoGrouping;

use MigrateType::{Isolate, Unmovable};
use support::Dice;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// Makes the store under test.
fn bitmap(span: FrameRange, max_order: u8, block_order: u8) -> Bitmap<'static> {
    let (max, block) = (Order::new(max_order), Order::new(block_order));
    let words = 0..Bitmap::words(span, max, block);
    let words: Vec<_> = words.map(|_| AtomicU64::new(0)).collect();
    let classes = 0..Bitmap::classes(span, block);
    let classes: Vec<_> = classes.map(|_| AtomicU8::new(0)).collect();
    Bitmap::new(span, max, block, words.leak(), classes.leak())
}

/// Makes the store that it is compared with.
fn buddy(span: FrameRange, max_order: u8) -> Buddy<'static, NoGrouping> {
    let records: Vec<_> = span.frames().map(|_| FrameRecord::default()).collect();
    let table = FrameTable::new(span, records.leak());
    Buddy::new(table, Order::new(max_order), NoGrouping)
}

/// Returns the number of free blocks by order, isolated ones excluded.
fn allocatable(table: FreeTable) -> [usize; Order::COUNT] {
    table.map(|by| by.iter().sum::<usize>() - by[Isolate.index()])
}

/// An operation of administration, or on given frames.
#[derive(Debug, Clone, Copy)]
enum Step {
    Add(FrameRange),
    Remove(FrameRange),
    Reserve(FrameRange),
    Unreserve(FrameRange),
    TakeAt(Frame, Request),
    Give(Frame, Order),
    AllInUse(FrameRange),
    Isolate(FrameRange),
    Unisolate(FrameRange),
    TakeIsolated(FrameRange),
}

impl Step {
    /// Returns a random operation; `isolated` are the isolated ranges.
    fn random(span: FrameRange, max: Order, isolated: &[FrameRange], dice: &mut Dice) -> Self {
        let start = span.start.number() + dice.below(span.len());
        let most = dice.one_of(&[3, 40, 200, 700]);
        let mut part = range(start, start + 1 + dice.below(most));
        if dice.below(20) > 0 {
            part = part.intersection(span);
        }
        let highest = dice.below(max.index() + 1);
        let order = Order::new(dice.below(highest + 1) as u8);
        let mut at = Frame::new(start);
        if dice.below(8) > 0 {
            at = at.align_down(order);
        }
        let known = !isolated.is_empty();
        match dice.below(17) {
            0..=1 => Self::Add(part),
            2 => Self::Remove(part),
            3 => Self::Reserve(part),
            4 => Self::Unreserve(part),
            5..=8 => Self::TakeAt(at, Request::new(order, dice.one_of(&Mobility::ALL))),
            9..=12 => Self::Give(at, order),
            13 => Self::AllInUse(part.intersection(span)),
            14 => Self::Isolate(part),
            15 if known => Self::Unisolate(dice.one_of(isolated)),
            _ if known => Self::TakeIsolated(dice.one_of(isolated)),
            _ => Self::Add(part),
        }
    }
}

/// Runs a step on a store, and returns its result: both stores have methods of these names; those of
/// isolation may be told what to hold in each step.
macro_rules! answer {
    ($step:expr, $store:expr $(, $held:expr)?) => {{
        let range = |error: RangeError| format!("{error:?}");
        let free = |error: FreeError| format!("{error:?}");
        match $step {
            Step::Add(part) => $store.add(part).map_err(range),
            Step::Remove(part) => $store.remove(part).map_err(range),
            Step::Reserve(part) => $store.reserve(part).map_err(range),
            Step::Unreserve(part) => $store.unreserve(part).map_err(range),
            Step::TakeAt(at, wanted) => $store.take_at(at, &wanted).map(|()| 0).map_err(range),
            Step::Give(at, order) => $store.give(at, order).map(|_| 0).map_err(free),
            Step::AllInUse(part) => $store.check_in_use(part).map(|()| 0).map_err(free),
            Step::Isolate(part) => $store.isolate(part $(, $held)?).map(|()| 0).map_err(range),
            Step::Unisolate(part) => {
                $store.unisolate(part $(, $held)?);
                Ok(0)
            }
            Step::TakeIsolated(part) => {
                let taken = $store.take_isolated(part, Unmovable $(, $held)?);
                taken.map(|()| 0).map_err(range)
            }
        }
    }};
}

/// Runs random operations on both stores: each has the same result, and leaves the same memory
/// free.
fn answers_as_the_buddy_store_does(span: FrameRange, max_order: u8, block_order: u8, seeds: u64) {
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let (new, old) = (bitmap(span, max_order, block_order), buddy(span, max_order));
        let mut isolated = Vec::new();
        let mut done = Vec::new();
        for _ in 0..150 {
            let step = Step::random(span, old.max_order(), &isolated, &mut dice);
            done.push(step);
            let (answer, expected) = (answer!(step, new, &AT_ONCE), answer!(step, old));
            assert_eq!(answer, expected, "seed {seed}: {done:?}");
            match step {
                Step::Isolate(part) if answer.is_ok() => isolated.push(part),
                Step::Unisolate(part) => isolated.retain(|&other| other != part),
                _ => {}
            }
            assert_eq!(new.check(), old.check(), "seed {seed}: {done:?}");
            assert_eq!(
                allocatable(new.free_table()),
                allocatable(old.free_table()),
                "seed {seed}: {done:?}"
            );
            let counts = (new.free_frames(), new.managed_frames());
            assert_eq!(counts, (old.free_frames(), old.managed_frames()));
            for _ in 0..4 {
                let at = span.start.plus(dice.below(span.len()));
                // Free memory is compared page block by page block, reserved or isolated memory
                // frame by frame.
                let comparable = |found: Option<(Frame, State)>| {
                    found.map(|(first, state)| {
                        let order = state.order.min(new.page_block_order());
                        match state.usage {
                            Use::Reserved => (at, Use::Reserved, Order::ZERO),
                            Use::Free if new.is_isolated(at) => (at, Use::Free, Order::ZERO),
                            Use::Free => (at.align_down(order), Use::Free, order),
                            usage => (first, usage, state.order),
                        }
                    })
                };
                let (block, expected) =
                    (comparable(new.block_of(at)), comparable(old.block_of(at)));
                assert_eq!(block, expected, "seed {seed} {at}: {done:?}");
            }
        }
    }
}

#[test]
fn given_places_parts_ranges_and_isolation_are_those_of_the_buddy_store() {
    answers_as_the_buddy_store_does(range(3, 1003), 7, 6, 80);
    answers_as_the_buddy_store_does(range(700, 3700), 10, 9, 80);
}
