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
    AllocError, AnyZone, Context, Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind,
};
use brickyard_designs::classics::front::{Direct, Front};
use brickyard_designs::classics::store::grouping::{Grouping, NoGrouping, TwoKinds};
use brickyard_designs::classics::{LabPlan, LabZone, Placed};

use support::owner::{Owner, assert_nothing_held};
use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, UNMOVABLE, ZoneLock, exhausted, frame, free, full,
    linux, request, seen, small, sound, state, take_all, usage,
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
