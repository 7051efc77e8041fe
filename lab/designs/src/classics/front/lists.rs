//! Three lists of cached frames, one per mobility: the common part of a CPU's lists and a magazine.
//!
//! The holder of the slot or lock around them owns them, and the links of the frames on them.

use brickyard::sync::{AtomicU32, Ordering};

use crate::classics::store::buddy::Buddy;
use crate::classics::store::frames::{FrameList, FrameTable};
use crate::classics::store::grouping::Grouping;
use crate::classics::store::wrong;
use brickyard::block::{State, Use};
use brickyard::check::Violation;
use brickyard::{Frame, MigrateType, Order};

/// Number of lists: unmovable, movable, reclaimable.
pub(super) const LISTS: usize = 3;

/// Three lists and the number of frames on them.
#[derive(Debug, Default)]
pub(super) struct Lists {
    lists: [FrameList; LISTS],
    // Written by the owner of the lists; others read it before they take them over.
    count: AtomicU32,
    // Number of frames ever freed to it (not refilled), modulo 2^32. Written by the owner of the
    // lists; read before a request fails because nothing is free.
    freed: AtomicU32,
}

impl Lists {
    /// Returns the number of frames. Exact for the owner, a hint for others.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // Relaxed: a hint, or ordered by the lock that makes the caller the owner.
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of frames, for a drainer that skips an empty slot: skipping it must order
    /// the drainer as if it had been inside.
    pub(super) fn peek_len(&self) -> usize {
        // Acquire: pairs with the release in `set_len`. A CPU that reads the count after frames
        // have left also reads that their move has begun.
        self.count.load(Ordering::Acquire) as usize
    }

    #[inline]
    fn set_len(&self, frames: usize) {
        // Release: pairs with the acquire in `peek_len`.
        self.count.store(frames as u32, Ordering::Release);
    }

    /// Returns the index of the list for a type. Pages of blocks kept for atomic requests count as
    /// movable, as in 2013.
    #[inline]
    pub(super) fn index(kind: MigrateType) -> usize {
        match kind {
            MigrateType::Unmovable => 0,
            MigrateType::Reclaimable => 2,
            MigrateType::Movable | MigrateType::HighAtomic | MigrateType::Isolate => 1,
        }
    }

    /// Takes the hottest frame of a list, for a request of type `wanted`.
    #[inline]
    pub(super) fn pop(
        &self,
        table: &FrameTable<'_>,
        list: usize,
        wanted: MigrateType,
    ) -> Option<Frame> {
        let frame = self.lists[list].pop_front(table)?;
        self.set_len(self.len() - 1);
        table.set_state(frame, State::new(Use::Allocated, Order::ZERO, wanted));
        Some(frame)
    }

    /// Puts a freed frame at the hot end, if the front may keep it: a single frame in use, not
    /// isolated. Returns the list it went to.
    #[inline]
    pub(super) fn keep<G: Grouping>(&self, store: &Buddy<'_, G>, frame: Frame) -> Option<usize> {
        let state = store.table().state(frame);
        let single = state.usage == Use::Allocated && state.order == Order::ZERO;
        if !single || store.is_isolated(frame) {
            return None;
        }
        let list = Self::index(store.list_on_free(frame, state.kind));
        let cached = State {
            usage: Use::Cached,
            ..state
        };
        store.table().set_state(frame, cached);
        self.lists[list].push_front(store.table(), frame);
        self.set_len(self.len() + 1);
        // Relaxed: only the owner writes it.
        let freed = self.freed.load(Ordering::Relaxed).wrapping_add(1);
        // Release: pairs with the acquire in `freed`; a CPU that reads the number also finds the
        // frame.
        self.freed.store(freed, Ordering::Release);
        Some(list)
    }

    /// Returns how many frames were ever freed to it, modulo 2^32.
    pub(super) fn freed(&self) -> usize {
        // Acquire: pairs with the release in `keep`.
        self.freed.load(Ordering::Acquire) as usize
    }

    /// Puts a frame that the store gave for a refill at the cold end.
    #[inline]
    pub(super) fn push_refilled(&self, table: &FrameTable<'_>, list: usize, frame: Frame) {
        self.lists[list].push_back(table, frame);
        self.set_len(self.len() + 1);
    }

    /// Adds a whole refill at the hot end, in order.
    pub(super) fn splice(&self, table: &FrameTable<'_>, list: usize, refill: &FrameList) {
        let frames = refill.len();
        self.lists[list].splice_front(table, refill);
        self.set_len(self.len() + frames);
    }

    #[inline]
    pub(super) fn is_empty_at(&self, list: usize) -> bool {
        self.lists[list].is_empty()
    }

    fn pop_cold(&self, table: &FrameTable<'_>, list: usize) -> Option<Frame> {
        let frame = self.lists[list].pop_back(table)?;
        self.set_len(self.len() - 1);
        Some(frame)
    }

    /// Moves cold frames to `to`, round robin over the lists. See [`ColdWalk`].
    pub(super) fn move_cold(
        &self,
        table: &FrameTable<'_>,
        mut walk: ColdWalk,
        to: &FrameList,
        contended: impl Fn() -> bool,
    ) {
        while let Some(frame) = walk.next(self, table, &contended) {
            to.push_back(table, frame);
        }
    }

    /// Checks links, counts and states. Returns the number of frames.
    pub(super) fn check(&self, table: &FrameTable<'_>) -> Result<usize, Violation> {
        let mut frames = 0;
        for list in &self.lists {
            if let Some(frame) = list.broken_at(table) {
                return wrong("cached-once", "links that do not meet", frame);
            }
            let uncached = |&frame: &Frame| table.state(frame).usage != Use::Cached;
            if let Some(frame) = list.iter(table).find(uncached) {
                return wrong("cached-once", "a frame that is not cached", frame);
            }
            frames += list.len();
        }
        Violation::unless_equal(
            "cached-once",
            "frames on a front's lists",
            frames,
            self.len(),
        )?;
        Ok(frames)
    }
}

/// The order in which cold frames leave: round robin over the lists, from the tails, more from a
/// list the more empty ones were passed on the way to it (Linux up to 6.1, and the magazines of
/// 2013).
#[derive(Debug)]
pub(super) struct ColdWalk {
    list: usize,
    left: usize,
    // Frames still to be taken from the current list.
    burst: usize,
    // How many may leave in a row if only one list has any.
    alone: usize,
    // After more than this, the walk ends at the next change of list if another CPU waits.
    least: usize,
    moved: usize,
}

impl ColdWalk {
    /// Makes a walk of up to `most` frames, beginning with the list after `after`; `alone` in a row
    /// if one list has all; it does not end early before more than `least`.
    pub(super) const fn new(after: usize, most: usize, alone: usize, least: usize) -> Self {
        Self {
            list: after,
            left: most,
            burst: 0,
            alone,
            least,
            moved: 0,
        }
    }

    fn next(
        &mut self,
        lists: &Lists,
        table: &FrameTable<'_>,
        contended: &impl Fn() -> bool,
    ) -> Option<Frame> {
        if self.left == 0 || lists.len() == 0 {
            return None;
        }
        if self.burst == 0 || lists.is_empty_at(self.list) {
            if self.moved > self.least && contended() {
                return None;
            }
            let mut visited = 0;
            loop {
                visited += 1;
                self.list = (self.list + 1) % LISTS;
                if !lists.is_empty_at(self.list) {
                    break;
                }
            }
            self.burst = if visited == LISTS {
                self.alone
            } else {
                visited
            };
        }
        self.burst -= 1;
        self.left -= 1;
        self.moved += 1;
        lists.pop_cold(table, self.list)
    }
}
