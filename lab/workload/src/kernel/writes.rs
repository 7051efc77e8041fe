//! Writes that reclaim has begun. A block is freed when its write ends.
//!
//! A write belongs to frames, not to a page: in a damaged trace the page may be in use a second
//! time by then. It is told from a later write of the same frame by its end.

use std::collections::{HashMap, VecDeque};

use brickyard::{Frame, FrameRange, Order};
use brickyard_designs::classics::LabZone;

use super::reclaim::Reclaimer;
use super::{Kernel, WRITE_NANOSECONDS};
use crate::pages::{Block, mark};

/// Blocks being written.
#[derive(Debug, Default)]
pub(super) struct Writes {
    // In the order in which they end.
    queue: VecDeque<Write>,
    // The end of the last write of each first frame.
    ends: HashMap<Frame, u64>,
}

#[derive(Debug, Clone, Copy)]
struct Write {
    done: u64,
    frame: Frame,
    order: Order,
}

impl Writes {
    /// The number of blocks being written.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The time at which the next write ends, if any goes on.
    pub(super) fn next_done(&self) -> Option<u64> {
        self.queue.front().map(|write| write.done)
    }

    /// The time at which the last write ends; 0 if none goes on.
    pub(super) fn until(&self) -> u64 {
        self.queue.back().map_or(0, |write| write.done)
    }
}

impl<Z: LabZone> Kernel<'_, Z> {
    pub(super) fn is_writing(&self) -> bool {
        self.state.borrow().writes.len() > 0
    }

    /// Begins to write a block, once the disk is free and not before `from`.
    pub(super) fn begin_write(&self, block: &Block, from: u64) {
        let from = from.max(self.flushed_until());
        self.forget_dirty(block.frame);
        let mut state = self.state.borrow_mut();
        let takes = WRITE_NANOSECONDS * block.order.frames() as u64;
        let done = from.max(state.writes.until()).saturating_add(takes);
        let off = mark::DIRTY | mark::ISOLATED;
        state.pages.mark(block.frame, mark::WRITEBACK, off);
        state.writes.ends.insert(block.frame, done);
        state.writes.queue.push_back(Write {
            done,
            frame: block.frame,
            order: block.order,
        });
    }

    /// Completes all writes that end by `until`. Returns the number of frames freed.
    pub(super) fn finish_writes(&self, until: u64, reclaimer: Reclaimer) -> usize {
        let next = || self.state.borrow().writes.next_done();
        let mut freed = 0;
        while next().is_some_and(|done| done <= until) {
            freed += self.finish_write(reclaimer);
        }
        freed
    }

    /// Completes the oldest write and frees its block, or what is left of it. Returns the number of
    /// frames freed.
    pub(super) fn finish_write(&self, reclaimer: Reclaimer) -> usize {
        let mut state = self.state.borrow_mut();
        let Some(Write { done, frame, order }) = state.writes.queue.pop_front() else {
            return 0;
        };
        let mut ended = Vec::new();
        for part in FrameRange::of_block(frame, order).frames() {
            // A part that was not the first one has no end of its own.
            let is_this = state.writes.ends.get(&part).is_none_or(|&end| end == done);
            let block = state.pages.block(part);
            if is_this && block.is_some_and(|block| block.marks & mark::WRITEBACK != 0) {
                ended.push(part);
            }
        }
        if state.writes.ends.get(&frame) == Some(&done) {
            state.writes.ends.remove(&frame);
        }
        drop(state);
        let freed = ended
            .into_iter()
            .map(|part| self.take_away(part, reclaimer));
        let freed = freed.sum();
        self.state.borrow_mut().pressure.written += freed as u64;
        freed
    }
}
