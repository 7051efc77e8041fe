//! The bitmap store, rule by rule: where a request is served from, what it falls back on, every
//! order whole and in parts, given frames, ranges, isolation, contiguous ranges, what is refused,
//! what it costs in memory, and what it tells of itself.
//!
//! Most zones here have no stashes, so that what is free is in the store; some tests use the store
//! by itself.

#![cfg(not(loom))]

mod aside;
mod contiguous;
mod lengths;
mod orders;
mod ranges;
mod serving;
use crate::support;
mod zones;

use core::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use brickyard::bitmap::{AT_ONCE, Bitmap};
use brickyard::block::Use;
use brickyard::node::SlowPath;
use brickyard::pressure::compact::compact_all;
use brickyard::pressure::{
    ContiguousRequest, Migrate, Migration, Need, NoHooks, Reclaim, alloc_contiguous,
};
use brickyard::stats::{BuddyInfo, UnusableText};
use brickyard::sync::Exclusive;
use brickyard::{
    AllocError, AnyZone, BulkFreeError, Context, Frame, FrameRange, FreeError, MigrateType,
    Mobility, OneCpu, Order, RangeError, Request, Zone, ZoneKind, ZonePlan,
};

use MigrateType::{Movable, Reclaimable, Unmovable};
use support::{
    Bricks, Cpus, Dice, MOVABLE, Owned, RECLAIMABLE, UNMOVABLE, all_at, assert_in_use, blocks_of,
    by_order, contract, exhausted, fragmented, frame, free, free_of, give, give_all, hooked_node,
    linux, linux_at, one_node, request, seen, set_marks, small, sound, state, take, take_all,
    take_all_of, take_bulk, too_large,
};

type Plain = Bricks<Exclusive>;

contract::keeps_the_contract!(|plan| empty(plan, Cpus::new()));

/// A zone by `plan` without stashes and without memory.
fn empty(plan: &ZonePlan, cpus: &'static Cpus) -> Plain {
    support::empty(&ZonePlan { cpus: 0, ..*plan }, cpus)
}

/// The same with all of its span free.
fn full(plan: &ZonePlan, cpus: &'static Cpus) -> Plain {
    support::full(&ZonePlan { cpus: 0, ..*plan }, cpus)
}

/// Frames in a page block of the plan `linux`.
const BLOCK: usize = 512;

const fn range(start: usize, end: usize) -> FrameRange {
    FrameRange::new(start, end)
}

/// So many page blocks of order 9, all free.
fn blocks(count: usize) -> Plain {
    full(&linux(count * BLOCK), Cpus::new())
}

/// The same, each in use as one block of this mobility.
fn in_use(count: usize, mobility: Mobility) -> Plain {
    let zone = blocks(count);
    for block in 0..count {
        let taken = zone.alloc_at(frame(block * BLOCK), &request(9, mobility));
        assert_eq!(taken, Ok(()));
    }
    // Their kind is what a request for all of a block makes it.
    for block in 0..count {
        assert_eq!(state(&zone, frame(block * BLOCK)).kind, mobility.into());
    }
    zone
}

/// The same, with so many frames free at the start of some blocks.
fn in_use_but(count: usize, mobility: Mobility, free: &[(usize, usize)]) -> Plain {
    let zone = in_use(count, mobility);
    for &(block, frames) in free {
        let start = block * BLOCK;
        assert_eq!(zone.free_range(range(start, start + frames)), Ok(()));
    }
    sound(&zone);
    zone
}

/// The page blocks that frames lie in, as runs: the block, and how many frames in a row.
fn runs_of(frames: &[Frame]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in frames {
        let block = at.number() / BLOCK;
        match runs.last_mut() {
            Some((last, run)) if *last == block => *run += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

/// 3 GiB in frames of 4 KiB, orders up to 1 GiB: metadata only.
fn gigabytes() -> ZonePlan {
    ZonePlan {
        max_order: Order::MAX,
        ..linux(3 << 18)
    }
}

/// A store by itself.
fn bitmap(span: FrameRange, max_order: u8, block_order: u8) -> Bitmap<'static> {
    support::bitmap(span, Order::new(max_order), Order::new(block_order))
}
