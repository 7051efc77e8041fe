//! The scanner that walks down and takes free places.
//!
//! Each search begins with the free lists: with a movable block in the top quarter of what is left
//! between the scanners, or else in the top half. Only if that gives nothing, page blocks are
//! searched downwards. A place that is taken stays whole, and is split when a page needs less.
//!
//! To take a place needs as much free memory as a request would: the min mark, and the place. One
//! of at least half a page block makes its page blocks movable.

use brickyard::block::Use;
use brickyard::pressure::Migrate;
use brickyard::sync::SlotAccess;
use brickyard::{AnyZone, Frame, MigrateType, Order, Platform};

use super::aim::{ROUND, Worker};
use super::places::HELD;
use super::run::Run;
use crate::classics::bulk::StoreGuard;
use crate::classics::linux::blocks::Blocks;
use crate::classics::lock::LabLock;
use crate::classics::store::grouping::{End, Grouping};

impl<'m, A: SlotAccess, L: LabLock, P: Platform, H: Migrate> Run<'_, 'm, A, L, P, H> {
    /// Returns a place of this order, after one search if none is held.
    pub(super) fn place_for(&mut self, order: Order) -> Option<Frame> {
        self.held.take(order).or_else(|| {
            self.find_places();
            self.held.take(order)
        })
    }

    fn has_enough(&self) -> bool {
        self.held.frames >= self.targets.needed
    }

    fn find_places(&mut self) {
        let before = self.held.frames;
        self.search_places();
        if self.held.frames == before {
            self.scan_places();
        }
    }

    /// Takes a free block for the pages that are to move, unless too little would stay free.
    fn isolate(
        &mut self,
        guard: &StoreGuard<'_, 'm, Blocks<'m>, L, P>,
        frame: Frame,
        order: Order,
        kind: MigrateType,
    ) -> bool {
        let usable = guard.free_frames().saturating_sub(guard.set_aside_frames());
        if usable <= self.inner.watermarks().marks().min + order.frames() {
            return false;
        }
        guard.break_into(frame, order, HELD, kind);
        guard.grouping().isolated_target(guard, frame, order);
        self.held.add(frame, order);
        true
    }

    /// Searches the movable free lists from their tails, for a block in the top quarter of what is
    /// left between the scanners, or the highest one in the top half. The list is turned so that
    /// the next search goes on behind it. At most one search of each list below the wanted order.
    fn search_places(&mut self) {
        let top = self.targets.at;
        let left = top.number().saturating_sub(self.sources.at.number());
        let above = |part: usize| self.block_of(Frame::new(top.number() - left / part));
        let (quarter, half) = (above(4), above(2));
        let begins = top >= self.memory.last_block();
        let mut limit = match begins {
            true => self.block_order.frames() / 2,
            false => (self.search_limit() / 2).max(1),
        };
        let Some(largest) = self.aim.order.down() else {
            return;
        };
        let first = self.targets.search_from.min(largest);
        self.targets.search_from = first;
        let inner = self.inner;
        let mut highest = None;
        let mut found = None;
        let mut next = Some(first);
        while let (Some(order), None) = (next, found) {
            let guard = inner.lock();
            let kind = guard.list_for(MigrateType::Movable);
            let (mut seen, mut best, mut last) = (0, None, None);
            for frame in guard.blocks_from_tail(order, kind) {
                seen += 1;
                highest = highest.max(Some(frame));
                last = Some(frame);
                if frame >= quarter {
                    self.search_failures = 0;
                    self.targets.search_from = order;
                    found = last;
                    break;
                }
                if frame >= half && best < last {
                    best = last;
                    limit /= 2;
                }
                if seen >= limit {
                    break;
                }
            }
            found = found.or(best);
            if let Some(frame) = found.or(last.filter(|_| seen >= limit)) {
                guard.turn(order, kind, frame, End::Head);
            }
            if let Some(frame) = found
                && !self.isolate(&guard, frame, order, kind)
            {
                // Too little is free.
                found = None;
                break;
            }
            drop(guard);
            if seen >= limit {
                limit = (limit / 2).max(1);
            }
            if found.is_none() {
                next = self.next_order(order, largest);
            }
        }
        self.after_search(found, highest, half, begins);
    }

    /// Returns the order that is searched after `order`: the next lower one, and after 0 the
    /// largest. After all, the next search begins one lower than this one.
    fn next_order(&mut self, order: Order, largest: Order) -> Option<Order> {
        let next = order.down().unwrap_or(largest);
        if next == self.targets.search_from {
            self.targets.search_from = next.down().unwrap_or(largest);
            return None;
        }
        Some(next)
    }

    /// Notes what a search of free lists has found; more of the page block around it is taken.
    fn after_search(
        &mut self,
        found: Option<Frame>,
        highest: Option<Frame>,
        half: Frame,
        begins: bool,
    ) {
        let start = self.inner.span().start;
        let highest = highest.map(|frame| self.block_of(frame).max(start));
        if found.is_none() {
            self.search_failures += 1;
            if begins {
                // The linear search begins at the highest block that was seen, or below the top
                // half.
                match highest {
                    Some(highest) if highest >= half => self.targets.at = highest,
                    _ if self.worker != Worker::Background => self.targets.at = half.max(start),
                    _ => {}
                }
            }
        }
        if let Some(highest) = highest
            && highest >= self.memory.target()
        {
            let below = highest.number().saturating_sub(self.block_order.frames());
            self.memory.set_target(Frame::new(below));
        }
        if let Some(found) = found {
            self.take_around(found);
        }
    }

    /// Takes more of the page block around a place, unless that is enough already or little work is
    /// wanted.
    fn take_around(&mut self, found: Frame) {
        if self.has_enough() || self.worker.is_gentle() {
            return;
        }
        let start = self.block_of(found).max(self.inner.span().start);
        let end = self.end_of(start);
        if self.scan_block(start, end, 1) == end {
            self.memory.set_skipped(start);
        }
    }

    /// Returns the end of the page block at `start`, within the zone.
    fn end_of(&self, start: Frame) -> Frame {
        let end = self.block_of(start).plus(self.block_order.frames());
        end.min(self.inner.span().end)
    }

    /// Searches page blocks downwards, as far as that of the other scanner, until there is enough.
    /// The first frames looked at are far apart if little work is wanted; the distance doubles with
    /// each block that gives nothing.
    fn scan_places(&mut self) {
        let block_frames = self.block_order.frames();
        let lowest = self.block_of(self.sources.at).plus(block_frames);
        let below = |block: Frame| Frame::new(block.number().saturating_sub(block_frames));
        let mut stride = if self.worker.is_gentle() { ROUND } else { 1 };
        let mut at = self.targets.at;
        let mut block = self.block_of(at);
        while block >= lowest {
            if self.is_target(block) && !self.is_skipped(block) {
                let before = self.held.frames;
                let end = self.end_of(block);
                at = self.scan_block(at, end, stride);
                let finished = at == end;
                if finished {
                    self.memory.set_skipped(block);
                    self.memory.target_passed(below(block));
                }
                if !finished {
                    // There is enough, or too little is free.
                    break;
                }
                if self.has_enough() {
                    at = below(block);
                    break;
                }
                stride = match self.held.frames > before {
                    true => 1,
                    false => (stride * 2).min(ROUND),
                };
            }
            block = below(block);
            at = block;
        }
        self.targets.at = at;
    }

    /// Returns true if places are taken from this page block: if it is movable, and its first page
    /// is not what the request wants.
    fn is_target(&self, block: Frame) -> bool {
        let store = self.inner.unlocked();
        let first = store.table().state(block);
        let is_aim = first.usage == Use::Free && first.order >= self.aim.order;
        let movable = || {
            let kind = store.grouping().block_type(block);
            matches!(kind, None | Some(MigrateType::Movable))
        };
        !is_aim && !store.is_isolated(block) && (self.worker.is_full() || movable())
    }

    /// Takes free blocks between `from` and `end`, the end of its page block, until there is enough
    /// or too little is free, in one hold of the zone lock. Returns how far it came.
    fn scan_block(&mut self, from: Frame, end: Frame, stride: usize) -> Frame {
        let inner = self.inner;
        let guard = inner.lock();
        let mut at = from;
        while at < end {
            let state = guard.table().state(at);
            let behind = at.plus(state.order.frames());
            match state.usage {
                Use::Free if state.kind != MigrateType::Isolate => {
                    if !self.isolate(&guard, at, state.order, state.kind) {
                        return at;
                    }
                    if self.has_enough() {
                        return behind.min(end);
                    }
                    at = behind.plus(stride - 1);
                }
                Use::Allocated if behind <= end => at = behind.plus(stride - 1),
                _ => at = at.plus(stride),
            }
        }
        end
    }
}
