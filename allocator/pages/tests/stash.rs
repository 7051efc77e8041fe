//! The stash, rule by rule: what a CPU finds in its own, how large it is, what goes back and when,
//! who else reaches a frame in it, that no interrupt ever meets it, and what it notices of a bad
//! free.

#![cfg(not(loom))]

mod at_hand;
mod class;
mod hits;
mod interrupts;
mod last_frame;
mod orders;
mod refused;
mod share;
use crate::support;

use core::cell::RefCell;

use brickyard::bitmap::SetAside;
use brickyard::block::Use;
use brickyard::node::Nodes;
use brickyard::pressure::{ContiguousRequest, NoHooks, alloc_contiguous};
use brickyard::stash::StashSizes;
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::watermark::{Mark, Marks};
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Context, Frame, FrameRange, FreeError, Mobility, Order,
    Request, ZoneKind, ZonePlan,
};

use support::{
    Bricks, Cpus, Dice, MOVABLE, Owned, RECLAIMABLE, UNMOVABLE, all_at, assert_in_use, count_free,
    empty, exhausted, frame, free, full, give, give_all, give_held, linux, linux_at, one_node,
    request, seen, set_marks, sound, take, take_all, take_bulk, take_of, usage, use_one,
};

/// Slots that only their owner reaches.
type Own = Bricks<Exclusive>;
/// Slots that anybody reaches.
type Lent = Bricks<Shared>;

/// Most single frames of a mobility.
const MOST: usize = StashSizes::DEFAULT.singles;

/// Most single frames of sparse page blocks.
const SPARSES: usize = 32;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// So many frames in page blocks of order 9, for four CPUs, all free.
fn zone_on<A: SlotAccess + 'static>(frames: usize, cpus: &'static Cpus) -> Bricks<A> {
    let plan = linux(frames);
    full(&ZonePlan { cpus: 4, ..plan }, cpus)
}

fn zone<A: SlotAccess + 'static>(frames: usize) -> Bricks<A> {
    zone_on(frames, Cpus::new())
}

/// A zone of `frames` frames, with stashes of these sizes.
fn sized<A: SlotAccess + 'static>(frames: usize, stash: StashSizes) -> Bricks<A> {
    let plan = linux(frames);
    full(&ZonePlan { stash, ..plan }, Cpus::new())
}

/// Straight to the store, as an interrupt does.
fn in_interrupt<R>(cpus: &Cpus, work: impl FnOnce() -> R) -> R {
    cpus.set_interrupt(true);
    let result = work();
    cpus.set_interrupt(false);
    result
}

/// Single frames that no stash has seen.
fn take_past<A: SlotAccess + 'static>(zone: &Bricks<A>, cpus: &Cpus, frames: usize) -> Vec<Frame> {
    let cached = zone.cached_frames();
    let held = in_interrupt(cpus, || take(zone, frames, Mobility::Movable));
    assert_eq!(zone.cached_frames(), cached);
    held
}
