//! The flusher (Linux's `pdflush`): it writes dirty pages of files before reclaim gets to them.
//!
//! Linux 2.6 writes a page that has been dirty for 30 s, and, oldest first, all above a tenth of
//! memory (`dirty_expire_centisecs`, `dirty_background_ratio`). Direct reclaim that has scanned
//! more than it likes wakes it to write as many pages as were scanned, whatever their age. A page
//! that it has written is clean and stays. Writes take the disk's time, as those of reclaim do.
//!
//! Not modelled: several flushers at once, and that those who write wait above 40 % of memory
//! (`dirty_ratio`).

use std::collections::{BTreeSet, HashMap};

use brickyard::Frame;
use brickyard_designs::classics::LabZone;

use super::{Flusher, Kernel, WRITE_NANOSECONDS};
use crate::pages::mark;

/// A page is written when it has been dirty for so long.
const EXPIRES: u64 = 30_000_000_000;

/// Above one in so many frames of memory, dirty pages are written at once.
const BACKGROUND: usize = 10;

/// The dirty blocks of files that nobody writes yet, by their first frames.
///
/// Of a dirty block that is taken apart only the part at its first frame remains here. Reclaim
/// writes the others.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    // The time at which each became dirty, and the same the oldest first.
    since: HashMap<Frame, u64>,
    oldest: BTreeSet<(u64, Frame)>,
    // Pages to be written before they are due.
    wanted: usize,
    // When the disk has done what it was given.
    until: u64,
}

impl Dirty {
    fn add(&mut self, frame: Frame, since: u64) {
        self.remove(frame);
        self.since.insert(frame, since);
        self.oldest.insert((since, frame));
    }

    /// Removes a block. Returns since when it was dirty.
    fn remove(&mut self, frame: Frame) -> Option<u64> {
        let since = self.since.remove(&frame)?;
        self.oldest.remove(&(since, frame));
        Some(since)
    }

    /// The oldest block, if it is to be written by `now`.
    fn due(&self, now: u64, frames: usize) -> Option<Frame> {
        let &(since, frame) = self.oldest.first()?;
        let expired = since.saturating_add(EXPIRES) <= now;
        let many = self.since.len() > frames / BACKGROUND;
        (expired || many || self.wanted > 0).then_some(frame)
    }
}

impl<Z: LabZone> Kernel<'_, Z> {
    /// Notes that the block of a file at `frame` is dirty.
    pub(super) fn note_dirty(&self, frame: Frame) {
        if self.rules.flusher == Flusher::On {
            self.dirty.borrow_mut().add(frame, self.now.get());
        }
    }

    /// Notes that the block at `frame` is not the flusher's any more: it is free, or reclaim writes
    /// it.
    #[inline]
    pub(super) fn forget_dirty(&self, frame: Frame) {
        if self.rules.flusher == Flusher::On {
            self.dirty.borrow_mut().remove(frame);
        }
    }

    /// Notes that a block has moved.
    pub(super) fn move_dirty(&self, from: Frame, to: Frame) {
        if self.rules.flusher == Flusher::On {
            let mut dirty = self.dirty.borrow_mut();
            if let Some(since) = dirty.remove(from) {
                dirty.add(to, since);
            }
        }
    }

    /// Wakes the flusher to write this many pages, whatever their age.
    pub(super) fn wake_flusher(&self, pages: usize) {
        let mut dirty = self.dirty.borrow_mut();
        dirty.wanted = dirty.wanted.max(pages).min(dirty.since.len());
    }

    /// The time at which the disk has written what the flusher gave it.
    pub(super) fn flushed_until(&self) -> u64 {
        self.dirty.borrow().until
    }

    /// Writes what is due by `now`, as far as the disk gets.
    pub(super) fn flush(&self, now: u64) {
        let mut dirty = self.dirty.borrow_mut();
        let reclaims_until = self.state.borrow().writes.until();
        dirty.until = dirty.until.max(reclaims_until);
        let from = dirty.until;
        dirty.until = self.flush_between(&mut dirty, from, now);
        if dirty.due(now, self.frames()).is_none() {
            // Idle so far. Otherwise it is in the middle of a write.
            dirty.until = dirty.until.max(now);
        }
    }

    /// Writes what is due by `now` with the disk's time from `from` on, for somebody who sleeps
    /// while the time of the load stands still.
    pub(super) fn flush_asleep(&self, from: u64, now: u64) {
        if self.rules.flusher == Flusher::On {
            let mut dirty = self.dirty.borrow_mut();
            self.flush_between(&mut dirty, from, now);
        }
    }

    /// Returns the time at which the last write has ended.
    fn flush_between(&self, dirty: &mut Dirty, from: u64, now: u64) -> u64 {
        let mut state = self.state.borrow_mut();
        let mut until = from;
        while let Some(frame) = dirty.due(now, self.frames()) {
            let order = state.pages.block(frame).map(|block| block.order);
            let frames = order.map_or(0, |order| order.frames());
            let done = until + WRITE_NANOSECONDS * frames as u64;
            if done > now {
                break;
            }
            until = done;
            dirty.remove(frame);
            dirty.wanted = dirty.wanted.saturating_sub(frames);
            if frames > 0 {
                state.pages.mark(frame, 0, mark::DIRTY);
                state.pressure.written += frames as u64;
            }
        }
        until
    }
}
