//! Memory shortage and fragmentation: how the hooks are called and how often, lumpy reclaim,
//! compaction with its deferral and its capture, contiguous ranges, and memory taken offline.
//! Failed operations are undone.

mod capture;
mod compaction;
mod contiguous;
mod hooks;
mod lumpy;
use crate::classics::support;

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use brickyard::block::Use;
use brickyard::node::{Compaction, Lumpy, Node, Nodes, SlowPath};
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{
    Activity, ContiguousRequest, Eviction, Migrate, Migration, Need, NoHooks, Reclaim, Why,
    alloc_contiguous, offline,
};
use brickyard::sync::{Exclusive, Shared};
use brickyard::watermark::Marks;
use brickyard::{
    AllocError, AnyZone, Context, Frame, FrameRange, FreeError, Mobility, Order, Platform,
    RangeError, Request, ZoneKind,
};
use brickyard_designs::classics::front::{Direct, Front};
use brickyard_designs::classics::store::grouping::{Grouping, NoGrouping, TwoKinds};
use brickyard_designs::classics::{LabZone, Placed};

use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, UNMOVABLE, ZoneLock, assert_no_lock_held, exhausted,
    frame, free, full, linux, request, seen, small, sound, state, take_all, usage,
};

type Plain = Parts<NoGrouping, Direct>;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// Makes a zone of `frames` frames with orders up to 7, all free.
fn plain(frames: usize) -> Plain {
    full(&small(frames), Cpus::new())
}

/// Makes such a zone, all in use as single movable pages.
fn in_use(frames: usize) -> Plain {
    let zone = plain(frames);
    assert_eq!(take_all(&zone, Mobility::Movable).len(), frames);
    zone
}

/// Makes such a zone in use, with every second page freed.
fn scattered(frames: usize) -> Plain {
    let zone = in_use(frames);
    for at in (1..frames).step_by(2) {
        free(&zone, frame(at), 0);
    }
    zone
}

/// The owner of all movable pages of a zone. It moves them, or returns another result where a test
/// sets one.
struct Owner<'z, Z: AnyZone> {
    zone: &'z Z,
    pages: RefCell<BTreeMap<Frame, Order>>,
    answer: Option<Migration>,
    moves: RefCell<Vec<(Frame, Frame)>>,
    reclaims: Cell<usize>,
}

impl<'z, Z: AnyZone<Platform = &'static Cpus>> Owner<'z, Z> {
    /// Makes the owner of every movable block in use.
    fn of(zone: &'z Z) -> Self {
        let mut pages = BTreeMap::new();
        for at in zone.span().frames() {
            let block = zone.block_of(at).filter(|(first, _)| *first == at);
            if let Some((first, state)) = block
                && state.usage == Use::Allocated
                && state.kind == Mobility::Movable.into()
            {
                pages.insert(first, state.order);
            }
        }
        Self {
            zone,
            pages: RefCell::new(pages),
            answer: None,
            moves: RefCell::new(Vec::new()),
            reclaims: Cell::new(0),
        }
    }

    /// Makes an owner that always returns `answer` and moves nothing.
    fn returning(zone: &'z Z, answer: Migration) -> Self {
        Self {
            answer: Some(answer),
            ..Self::of(zone)
        }
    }

    /// Returns how often `migrate` was called.
    fn asked(&self) -> usize {
        self.moves.borrow().len()
    }

    /// Checks that each of its pages is in use where it recorded it, and no other movable block is.
    fn owns_what_is_in_use(&self) {
        sound(self.zone);
        let now = Self::of(self.zone);
        assert_eq!(*self.pages.borrow(), *now.pages.borrow());
    }
}

/// Checks that the hook's caller holds no lock and has masked nothing.
fn assert_nothing_held<Z: AnyZone<Platform = &'static Cpus>>(zone: &Z) {
    assert_no_lock_held();
    assert!(zone.platform().is_at_rest(), "masked or pinned in a hook");
}

impl<Z: AnyZone<Platform = &'static Cpus>> Migrate for Owner<'_, Z> {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        assert_nothing_held(self.zone);
        self.moves.borrow_mut().push((from, to));
        // The new place is allocated already.
        let place = state(self.zone, to);
        assert_eq!((place.usage, place.order), (Use::Allocated, order));
        if let Some(answer) = self.answer {
            return answer;
        }
        let mut pages = self.pages.borrow_mut();
        match pages.remove(&from) {
            Some(own) => {
                assert_eq!(own, order);
                pages.insert(to, order);
                Migration::Moved
            }
            None => Migration::Unknown,
        }
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Reclaim for Owner<'_, Z> {
    fn reclaim(&self, _: &Need) -> usize {
        assert_nothing_held(self.zone);
        self.reclaims.set(self.reclaims.get() + 1);
        0
    }
}
