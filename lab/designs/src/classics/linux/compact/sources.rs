//! The scanner that walks up and gathers pages to move.
//!
//! It stays within one page block at a time. Larger requests for movable memory begin with a search
//! of the free lists for a block in the lower part of what is left, since the page block around it
//! may need few moves; the found ones go to the tail of their list.

use brickyard::block::Use;
use brickyard::pressure::Migrate;
use brickyard::sync::SlotAccess;
use brickyard::{AnyZone, Frame, MigrateType, Order, Platform};

use super::aim::{COSTLY, ROUND, Worker};
use super::run::{LowestFound, Run};
use crate::classics::lock::LabLock;
use crate::classics::store::grouping::{End, Grouping};

impl<A: SlotAccess, L: LabLock, P: Platform, H: Migrate> Run<'_, '_, A, L, P, H> {
    /// Gathers the pages of the next round, from the first suitable page block; none if that block
    /// has none, or no block is left below the other scanner.
    pub(super) fn gather(&mut self) {
        self.sources.clear();
        let (mut from, mut is_found) = self.choose_source();
        let block_frames = self.block_order.frames();
        loop {
            let end = self.block_of(from).plus(block_frames);
            if end > self.targets.at {
                return;
            }
            let skipped = !is_found && self.begins_block(from) && self.is_skipped(from);
            if !skipped && self.is_source(from) {
                self.scan_sources(from, end);
                return;
            }
            if !skipped {
                let gently = self.worker.is_gentle();
                self.memory.source_passed(end, gently);
            }
            self.sources.at = end;
            from = end;
            is_found = false;
        }
    }

    /// Returns true if a scan from here sees all of its page block.
    fn begins_block(&self, from: Frame) -> bool {
        from.is_aligned(self.block_order) || from == self.inner.span().start
    }

    pub(super) fn is_skipped(&self, frame: Frame) -> bool {
        !self.worker.is_full() && self.memory.is_skipped(frame)
    }

    /// Returns true if pages are moved away from this page block: not if it is one block in use. A
    /// gentle request leaves those of other types alone.
    fn is_source(&self, from: Frame) -> bool {
        let first = self.block_of(from).max(self.inner.span().start);
        let store = self.inner.unlocked();
        let state = store.table().state(first);
        if state.usage == Use::Allocated && state.order >= self.block_order {
            return false;
        }
        let own = || {
            let kind = store.grouping().block_type(first);
            kind.is_none_or(|kind| kind == self.aim.wanted)
        };
        !self.worker.is_gentle() || own()
    }

    /// Gathers pages from `from` up to `end`, the end of its page block.
    fn scan_sources(&mut self, from: Frame, end: Frame) {
        let begins = self.begins_block(from);
        let leaves = self.worker.is_gentle();
        let wanted = self.aim.order.frames();
        let next_place = |at: Frame| at.align_down(self.aim.order).plus(wanted);
        let mut place_end = next_place(from);
        let mut at = from;
        while at < end && !self.sources.is_full() {
            if leaves && at >= place_end {
                if self.has_round() {
                    // All that moves in the place before: it may become free now.
                    break;
                }
                place_end = next_place(at);
            }
            let (behind, found) = self.look_at(at);
            at = behind;
            match found {
                Found::Free => {}
                Found::Movable(first, order) => {
                    if !self.has_round() && begins && !self.worker.is_full() {
                        self.memory.set_skipped(from);
                    }
                    self.sources.push(first, order);
                }
                Found::Stuck if leaves => {
                    // The place cannot become free.
                    self.sources.clear();
                    if at <= place_end {
                        at = place_end;
                        place_end = place_end.plus(wanted);
                    }
                }
                Found::Stuck => {}
            }
        }
        let at = at.min(end);
        if at == end && (!self.has_round() || self.sources.finishing) {
            if begins {
                self.memory.set_skipped(from);
            }
            let gently = self.worker.is_gentle();
            self.memory.source_passed(end, gently);
        }
        self.sources.at = at;
    }

    fn has_round(&self) -> bool {
        !self.sources.round().is_empty()
    }

    /// Looks at the block that contains `at`, without a lock. Returns the frame behind it too.
    fn look_at(&self, at: Frame) -> (Frame, Found) {
        let Some((first, state)) = self.inner.unlocked().block_of(at) else {
            // No memory.
            return (at.plus(1), Found::Stuck);
        };
        let behind = first.plus(state.order.frames()).max(at.plus(1));
        let small = state.order < self.aim.order && state.order < self.block_order;
        let found = match state.usage {
            Use::Free => Found::Free,
            Use::Allocated
                if first == at
                    && small
                    && state.kind == MigrateType::Movable
                    && self.hooks.can_move(first, state.order) =>
            {
                Found::Movable(first, state.order)
            }
            _ => Found::Stuck,
        };
        (behind, found)
    }

    /// Returns where the next round begins, and whether the free lists gave that page block.
    fn choose_source(&mut self) -> (Frame, bool) {
        let from = self.sources.at;
        let restricted = self.worker != Worker::Background
            && self.aim.wanted != MigrateType::Movable
            || self.worker.is_full();
        let continues = self.sources.finishing || !self.begins_block(from);
        if restricted || continues || self.aim.order <= COSTLY || self.sources.jumps_left == 0 {
            return (from, false);
        }
        if let Some(frame) = self.search_source() {
            self.search_failures = 0;
            self.sources.jumps_left -= 1;
            let start = self.block_of(frame).max(self.inner.span().start);
            return (start, start != from);
        }
        self.search_failures += 1;
        if let LowestFound::At(lowest) = self.sources.lowest_found {
            self.sources.lowest_found = LowestFound::Used;
            self.sources.at = lowest;
        }
        (self.sources.at, false)
    }

    /// Searches the movable free lists, largest blocks first, for one in the lower half of what is
    /// left between the scanners; once the scanner is on its way, in the lower eighth. That block
    /// goes to the tail of its list, with all before it.
    fn search_source(&mut self) -> Option<Frame> {
        let from = self.sources.at;
        let left = self.targets.at.number().saturating_sub(from.number());
        let part = if from == self.inner.span().start {
            2
        } else {
            8
        };
        let below = self.block_of(from.plus(left / part));
        let limit = self.search_limit();
        let guard = self.inner.lock();
        let kind = guard.list_for(MigrateType::Movable);
        let mut seen = 0;
        let largest = self.aim.order.down()?;
        for order in COSTLY.up_to(largest).rev() {
            if seen >= limit {
                break;
            }
            let mut last = None;
            let mut found = None;
            for frame in guard.blocks_on(order, kind) {
                seen += 1;
                if seen > limit {
                    last = Some(frame);
                    break;
                }
                if frame < below && !self.memory.is_skipped(frame) {
                    last = Some(frame);
                    found = last;
                    break;
                }
            }
            if let Some(last) = last {
                guard.turn(order, kind, last, End::Tail);
            }
            if let Some(found) = found {
                self.sources.lowest_found = match self.sources.lowest_found {
                    LowestFound::None => LowestFound::At(found),
                    LowestFound::At(lowest) => LowestFound::At(lowest.min(found)),
                    LowestFound::Used => LowestFound::Used,
                };
                return Some(found);
            }
        }
        None
    }

    /// Returns how many blocks a search of free lists looks at.
    pub(super) fn search_limit(&self) -> usize {
        (ROUND >> self.search_failures.min(usize::BITS - 1)) + 1
    }
}

/// What the scanner has found at a frame.
#[derive(Debug, Clone, Copy)]
enum Found {
    Free,
    Movable(Frame, Order),
    /// It cannot be moved, or is not to be.
    Stuck,
}
