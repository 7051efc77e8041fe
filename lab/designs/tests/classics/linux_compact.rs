//! The compaction of Linux 6.12: what is moved and where to, when it ends, when it is put off.

mod deferral;
mod ends;
mod random;
mod sources;
mod targets;
use crate::classics::support;

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use brickyard::block::Use;
use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{Compacted, Migrate, Migration, Need, Reclaim, Why};
use brickyard::sync::Exclusive;
use brickyard::watermark::{Mark, Marks};
use brickyard::{AnyZone, Frame, FrameRange, MigrateType, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::linux::{self, Priority, V6_12};
use brickyard_designs::classics::{GfpFlags, LabPlan, LabZone, Planned, Retry};

use support::{
    Cpus, Dice, MOVABLE, UNMOVABLE, ZoneLock, assert_no_lock_held, frame, leaked, request, small,
    sound, state, usage,
};

type Linux = linux::Zone<'static, V6_12, Exclusive, ZoneLock, &'static Cpus>;

/// Frames of a page block in these tests.
const BLOCK: usize = 64;

/// Makes a zone of so many page blocks of 64 frames, all free, with orders up to 7.
fn zone_of(blocks: usize) -> Linux {
    let plan: LabPlan = small(blocks * BLOCK);
    let bytes = Linux::checked_bytes_for(&plan).unwrap();
    let zone = Linux::by(&plan, Cpus::new(), leaked(bytes)).unwrap();
    assert_eq!(zone.add(plan.span), Ok(plan.span.len()));
    zone
}

/// Puts single pages at these frames.
fn put(zone: &Linux, frames: impl IntoIterator<Item = usize>, page: &Request) {
    for at in frames {
        assert_eq!(zone.alloc_at(frame(at), page), Ok(()), "{at}");
    }
}

/// Puts a block of an order at a frame.
fn put_block(zone: &Linux, at: usize, order: u8, mobility: Mobility) {
    assert_eq!(zone.alloc_at(frame(at), &request(order, mobility)), Ok(()));
}

/// The frames of a page block at every second of which there is a page.
fn halves(block: usize) -> impl Iterator<Item = usize> + Clone {
    (block * BLOCK..(block + 1) * BLOCK).step_by(2)
}

/// Gives page blocks a type, by what is in them.
fn dedicate(zone: &Linux, block: usize, mobility: Mobility) {
    zone.dedicate(frame(block * BLOCK + 1), mobility);
    let kind = zone.block_type(frame(block * BLOCK));
    assert_eq!(kind, Some(mobility.into()));
}

/// What a hook was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    CanMove(usize),
    Move(usize, usize),
}

/// The owner of all movable blocks of a zone: it knows where the contents of each are.
struct Owner<'z> {
    zone: &'z Linux,
    // By place: the order, and the place at first, which stands for the contents.
    pages: RefCell<BTreeMap<Frame, (Order, Frame)>>,
    pinned: BTreeSet<Frame>,
    // The answer for blocks at these frames.
    answers: BTreeMap<Frame, Migration>,
    calls: RefCell<Vec<Call>>,
    // Frames of pages that it did not need.
    unneeded: Cell<usize>,
}

impl<'z> Owner<'z> {
    fn of(zone: &'z Linux) -> Self {
        Self {
            zone,
            pages: RefCell::new(movable_in(zone)),
            pinned: BTreeSet::new(),
            answers: BTreeMap::new(),
            calls: RefCell::default(),
            unneeded: Cell::new(0),
        }
    }

    fn pinning(zone: &'z Linux, pinned: impl IntoIterator<Item = usize>) -> Self {
        let pinned = pinned.into_iter().map(frame).collect();
        let all = Self::of(zone);
        Self { pinned, ..all }
    }

    fn answering(zone: &'z Linux, answers: impl IntoIterator<Item = (usize, Migration)>) -> Self {
        let answers = answers.into_iter().map(|(at, answer)| (frame(at), answer));
        let answers = answers.collect();
        let all = Self::of(zone);
        Self { answers, ..all }
    }

    /// Returns the moves so far.
    fn moves(&self) -> Vec<(usize, usize)> {
        let calls = self.calls.borrow();
        let moves = calls.iter().filter_map(|call| match *call {
            Call::Move(from, to) => Some((from, to)),
            Call::CanMove(_) => None,
        });
        moves.collect()
    }

    /// Returns the frames that it was asked about, and forgets them.
    fn take_asked(&self) -> Vec<usize> {
        let calls = self.calls.take();
        let asked = calls.iter().filter_map(|call| match *call {
            Call::CanMove(at) => Some(at),
            Call::Move(..) => None,
        });
        asked.collect()
    }

    /// Checks the zone, and that each movable block in use is where its owner has it, but for
    /// `others`, which are not its own.
    fn has_all(&self, others: &[Frame]) {
        sound(self.zone);
        let mut in_use = movable_in(self.zone);
        for other in others {
            assert!(in_use.remove(other).is_some(), "{other} is in use");
        }
        let pages = self.pages.borrow();
        let places = |pages: &BTreeMap<Frame, (Order, Frame)>| -> Vec<(Frame, Order)> {
            pages.iter().map(|(&at, &(order, _))| (at, order)).collect()
        };
        assert_eq!(places(&pages), places(&in_use));
        let contents: BTreeSet<Frame> = pages.values().map(|&(_, first)| first).collect();
        assert_eq!(contents.len(), pages.len(), "each content once");
    }
}

/// Returns all movable blocks in use.
fn movable_in(zone: &Linux) -> BTreeMap<Frame, (Order, Frame)> {
    let mut pages = BTreeMap::new();
    for at in zone.span().frames() {
        let block = zone.block_of(at).filter(|(first, _)| *first == at);
        if let Some((first, state)) = block
            && state.usage == Use::Allocated
            && state.kind == MigrateType::Movable
        {
            pages.insert(first, (state.order, first));
        }
    }
    pages
}

impl Migrate for Owner<'_> {
    fn can_move(&self, at: Frame, _: Order) -> bool {
        assert_no_lock_held();
        self.calls.borrow_mut().push(Call::CanMove(at.number()));
        !self.pinned.contains(&at)
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        assert_no_lock_held();
        assert!(self.zone.platform().is_at_rest(), "masked or pinned");
        let call = Call::Move(from.number(), to.number());
        self.calls.borrow_mut().push(call);
        let place = state(self.zone, to);
        let expected = (Use::Allocated, order, MigrateType::Movable);
        assert_eq!((place.usage, place.order, place.kind), expected);
        assert_eq!(self.zone.block_of(to).map(|(first, _)| first), Some(to));
        let mut pages = self.pages.borrow_mut();
        assert!(!pages.contains_key(&to), "{to} is a page's");
        if !pages.contains_key(&from) {
            return Migration::Unknown;
        }
        if let Some(&answer) = self.answers.get(&from) {
            if answer == Migration::NotNeeded {
                pages.remove(&from);
                self.unneeded.set(self.unneeded.get() + order.frames());
            }
            return answer;
        }
        let own = pages.remove(&from).expect("as above");
        assert_eq!(own.0, order, "{from} to {to}");
        pages.insert(to, own);
        Migration::Moved
    }
}

impl Reclaim for Owner<'_> {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

/// Compacts for a block of this order.
fn compact(owner: &Owner<'_>, order: u8, mobility: Mobility, priority: Priority) -> Compacted {
    let request = request(order, mobility);
    owner.zone.compact_with(&request, priority, owner)
}

/// Does what follows background reclaim that was woken for a block of this order.
fn behind(owner: &Owner<'_>, order: u8) -> usize {
    let need = Need {
        frames: 32,
        order: Order::new(order),
        highest: ZoneKind::Movable,
    };
    owner.zone.set_reclaiming(false);
    owner.zone.compact_behind(&need, owner)
}
