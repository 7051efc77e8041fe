//! The state of one run of the two scanners.

use core::cell::Cell;

use brickyard::pressure::{Compacted, Migrate, Why};
use brickyard::sync::SlotAccess;
use brickyard::{AnyZone, Frame, FrameRange, Order, Platform};

use super::aim::{Aim, ROUND, Worker};
use super::capture::Catch;
use super::places::HeldPlaces;
use super::state::CompactionState;
use crate::classics::linux::pageset::BaseZone;
use crate::classics::lock::LabLock;

/// Where a linear search goes on when a search of the free lists has failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum LowestFound {
    None,
    At(Frame),
    /// The linear search has begun there: that happens once.
    Used,
}

/// The state of the scanner that walks up.
#[derive(Debug)]
pub(super) struct Sources {
    /// Everything below has been gathered or passed over.
    pub(super) at: Frame,
    /// Whether the page block is finished whatever happens.
    pub(super) finishing: bool,
    pub(super) lowest_found: LowestFound,
    // How often the free lists may still give a page block: once for each of the zone.
    pub(super) jumps_left: usize,
    // The pages of this round, upwards.
    pub(super) round: [(Frame, Order); ROUND],
    pub(super) len: usize,
    pub(super) frames: usize,
}

impl Sources {
    /// Returns a scanner that begins at `at`.
    pub(super) const fn new(at: Frame, span: FrameRange, block_order: Order) -> Self {
        Self {
            at,
            finishing: false,
            lowest_found: LowestFound::None,
            jumps_left: span.len() / block_order.frames() + 2,
            round: [(Frame::new(0), Order::ZERO); ROUND],
            len: 0,
            frames: 0,
        }
    }

    /// Returns the pages of this round.
    pub(super) fn round(&self) -> &[(Frame, Order)] {
        &self.round[..self.len]
    }

    /// Returns the number of their frames.
    pub(super) const fn frames(&self) -> usize {
        self.frames
    }

    /// Takes the last page of the round.
    pub(super) fn pop(&mut self) -> Option<(Frame, Order)> {
        let last = *self.round().last()?;
        self.len -= 1;
        Some(last)
    }

    /// Returns the last frame that was looked at.
    pub(super) const fn last_scanned(&self) -> Frame {
        Frame::new(self.at.number().saturating_sub(1))
    }

    pub(super) fn push(&mut self, frame: Frame, order: Order) {
        self.round[self.len] = (frame, order);
        self.len += 1;
        self.frames += order.frames();
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.frames = 0;
    }

    pub(super) const fn is_full(&self) -> bool {
        self.frames >= ROUND
    }
}

/// The state of the scanner that walks down.
#[derive(Debug)]
pub(super) struct Targets {
    /// The next place to look at. All page blocks above it have been searched.
    pub(super) at: Frame,
    /// The frames of this round that have no place yet.
    pub(super) needed: usize,
    // The order whose list gave a block last: the next search begins there.
    pub(super) search_from: Order,
}

impl Targets {
    /// Returns a scanner that begins at `at`, for a block of order `wanted`.
    pub(super) const fn new(at: Frame, wanted: Order) -> Self {
        Self {
            at,
            needed: 0,
            search_from: wanted,
        }
    }
}

/// One run of the two scanners.
pub(super) struct Run<'r, 'm, A, L: LabLock, P: Platform, H> {
    pub(super) inner: &'r BaseZone<'m, A, L, P>,
    pub(super) memory: &'r CompactionState<'m>,
    pub(super) hooks: &'r H,
    pub(super) worker: Worker,
    pub(super) aim: Aim,
    pub(super) block_order: Order,
    pub(super) sources: Sources,
    pub(super) targets: Targets,
    pub(super) held: HeldPlaces<'r, 'm, L, P>,
    // How often in a row a search of the free lists has found nothing: each halves the next one.
    pub(super) search_failures: u32,
    pub(super) catch: Catch,
    pub(super) result: Compacted,
}

impl<'r, 'm, A: SlotAccess, L: LabLock, P: Platform, H: Migrate> Run<'r, 'm, A, L, P, H> {
    pub(super) fn new(
        inner: &'r BaseZone<'m, A, L, P>,
        memory: &'r CompactionState<'m>,
        worker: Worker,
        aim: Aim,
        hooks: &'r H,
    ) -> Self {
        let span = inner.span();
        let block_order = inner.unlocked().grouping().order();
        if memory.deferral.restarts(aim.order) {
            memory.restart();
        }
        let (source, target) = match worker.is_full() {
            true => (span.start, memory.last_block()),
            false => (memory.source(worker.is_gentle()), memory.target()),
        };
        Self {
            inner,
            memory,
            hooks,
            worker,
            aim,
            block_order,
            sources: Sources::new(source, span, block_order),
            targets: Targets::new(target, aim.order),
            held: HeldPlaces::new(&inner.backing),
            search_failures: 0,
            catch: Catch {
                aim,
                block_order,
                catches: worker != Worker::Background,
                caught: Cell::new(None),
            },
            result: Compacted::new(Why::Complete),
        }
    }

    pub(super) fn block_of(&self, frame: Frame) -> Frame {
        frame.align_down(self.block_order)
    }
}
