//! The flusher (Linux's `pdflush`): it writes dirty pages of files before reclaim gets to them.
//!
//! Linux 2.6 writes a page that has been dirty for 30 s, and, oldest first, all above a tenth of
//! memory (`dirty_expire_centisecs`, `dirty_background_ratio`). A page that it has written is clean
//! and stays. Writes take the disk's time, as those of reclaim do.

use std::collections::VecDeque;

use brickyard::Frame;
use brickyard_classics::LabZone;

use super::{Kernel, WRITE_NANOSECONDS};
use crate::pages::{PageId, mark};

/// A page is written when it has been dirty for so long.
const EXPIRES: u64 = 30_000_000_000;

/// Above one in so many frames of memory, dirty pages are written at once.
const BACKGROUND: usize = 10;

/// Dirty pages, the oldest first, with the time at which they became so.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    queue: VecDeque<(u64, Frame, PageId)>,
    // When the disk has done what it was given.
    until: u64,
    // The time of the call before.
    before: u64,
}

impl<Z: LabZone> Kernel<'_, Z> {
    /// Notes that a page of a file is dirty.
    pub(super) fn note_dirty(&self, frame: Frame, page: PageId) {
        let now = self.now.get();
        self.dirty.borrow_mut().queue.push_back((now, frame, page));
    }

    /// The time at which the disk has written what the flusher gave it.
    pub(super) fn flushed_until(&self) -> u64 {
        self.dirty.borrow().until
    }

    /// Writes what is due by `now`, as far as the disk gets.
    pub(super) fn flush(&self, now: u64) {
        let all: usize = self.zones.iter().map(|(span, _)| span.len()).sum();
        let mut dirty = self.dirty.borrow_mut();
        let mut state = self.state.borrow_mut();
        let reclaims_until = state.writing.back().map_or(0, |&(done, ..)| done);
        dirty.until = dirty.until.max(dirty.before).max(reclaims_until);
        dirty.before = now;
        while let Some(&(since, frame, page)) = dirty.queue.front() {
            let expired = since.saturating_add(EXPIRES) <= now;
            let many = dirty.queue.len() > all / BACKGROUND;
            let done = dirty.until + WRITE_NANOSECONDS;
            if !(expired || many) || done > now {
                break;
            }
            dirty.queue.pop_front();
            let off = mark::WRITEBACK | mark::ISOLATED;
            let still = state.pages.block(frame).is_some_and(|block| {
                block.page == page && block.marks & mark::DIRTY != 0 && block.marks & off == 0
            });
            if still {
                state.pages.mark(frame, 0, mark::DIRTY);
                state.pressure.written += 1;
                dirty.until = done;
            }
        }
    }
}
