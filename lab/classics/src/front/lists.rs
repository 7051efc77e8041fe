//! Three lists of cached frames, one a mobility: what a CPU's lists and a magazine have in common.
//!
//! Whoever holds the slot or the lock around them owns them, and with them the links of the frames on them.

use brickyard::sync::{AtomicU32, Ordering};

use crate::store::buddy::Buddy;
use crate::store::frames::FrameList;
use crate::store::grouping::Grouping;
use brickyard::block::{State, Use};
use brickyard::check::Violation;
use brickyard::{Frame, MigrateType, Order};

/// How many lists: unmovable, movable, reclaimable.
pub(super) const LISTS: usize = 3;

/// Three lists and the number of frames on them.
#[derive(Debug)]
pub(super) struct Lists {
    lists: [FrameList; LISTS],
    // Written by whoever owns the lists; others peek at it before they ask to own them.
    count: AtomicU32,
    // How many frames were ever freed to it (not refilled), modulo 2^32. Written by whoever owns the lists, read by who is about to say that
    // nothing is free.
    freed: AtomicU32,
}

impl Lists {
    pub(super) const fn new() -> Self {
        Self {
            lists: [const { FrameList::new() }; LISTS],
            count: AtomicU32::new(0),
            freed: AtomicU32::new(0),
        }
    }

    /// How many frames. Exact for the owner, a hint for others.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // Relaxed: a hint, or ordered by the lock that makes the caller the owner.
        self.count.load(Ordering::Relaxed) as usize
    }

    /// How many frames, for a drainer that goes on only if there are any: an empty slot that it passes by is as if it had been inside.
    pub(super) fn peek_len(&self) -> usize {
        // Acquire: pairs with the release in `set_len`. Who sees that frames have left sees that their move has begun.
        self.count.load(Ordering::Acquire) as usize
    }

    #[inline]
    fn set_len(&self, frames: usize) {
        // Release: pairs with the acquire in `peek_len`.
        self.count.store(frames as u32, Ordering::Release);
    }

    /// The list for a type. Pages of blocks kept for atomic requests pass as movable, as in 2013.
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
    pub(super) fn pop<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        list: usize,
        wanted: MigrateType,
    ) -> Option<Frame> {
        let frame = self.lists[list].pop_front(store.table())?;
        self.set_len(self.len() - 1);
        store
            .table()
            .set_state(frame, State::new(Use::Allocated, Order::ZERO, wanted));
        Some(frame)
    }

    /// Puts a frame that was in use, and whose state the caller has read, at the hot end.
    #[inline]
    pub(super) fn push<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        list: usize,
        frame: Frame,
        was: State,
    ) {
        let cached = State {
            usage: Use::Cached,
            ..was
        };
        store.table().set_state(frame, cached);
        self.lists[list].push_front(store.table(), frame);
        self.set_len(self.len() + 1);
        // Relaxed: only the owner writes it.
        let freed = self.freed.load(Ordering::Relaxed).wrapping_add(1);
        // Release: pairs with the acquire in `freed`; who sees the number sees the frame.
        self.freed.store(freed, Ordering::Release);
    }

    /// How many frames were ever freed to it, modulo 2^32.
    pub(super) fn freed(&self) -> usize {
        // Acquire: pairs with the release in `push`.
        self.freed.load(Ordering::Acquire) as usize
    }

    /// Puts a frame that the store gave for a refill at the cold end.
    #[inline]
    pub(super) fn push_refilled<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        list: usize,
        frame: Frame,
    ) {
        self.lists[list].push_back(store.table(), frame);
        self.set_len(self.len() + 1);
    }

    /// Takes a whole refill, at the hot end and in its order.
    pub(super) fn splice<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        list: usize,
        refill: &FrameList,
    ) {
        let frames = refill.len();
        self.lists[list].splice_front(store.table(), refill);
        self.set_len(self.len() + frames);
    }

    #[inline]
    pub(super) fn is_empty_at(&self, list: usize) -> bool {
        self.lists[list].is_empty()
    }

    fn pop_cold<G: Grouping>(&self, store: &Buddy<'_, G>, list: usize) -> Option<Frame> {
        let frame = self.lists[list].pop_back(store.table())?;
        self.set_len(self.len() - 1);
        Some(frame)
    }

    /// Moves cold frames to `to`, round robin over the lists. See [`ColdWalk`].
    pub(super) fn move_cold<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        mut walk: ColdWalk,
        to: &FrameList,
        contended: impl Fn() -> bool,
    ) {
        while let Some(frame) = walk.next(self, store, &contended) {
            to.push_back(store.table(), frame);
        }
    }

    /// Tests links, counts and states.
    pub(super) fn check<G: Grouping>(&self, store: &Buddy<'_, G>) -> Result<usize, Violation> {
        let table = store.table();
        let mut frames = 0;
        for list in &self.lists {
            if let Some(frame) = list.broken_at(table) {
                return Err(Violation::at(
                    "cached-once",
                    "links that do not meet",
                    frame,
                ));
            }
            let wrong = |&frame: &Frame| table.state(frame).usage != Use::Cached;
            if let Some(frame) = list.iter(table).find(wrong) {
                return Err(Violation::at(
                    "cached-once",
                    "a frame that is not cached",
                    frame,
                ));
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

/// The order in which cold frames leave: round robin over the lists, from the tails, more from a list the more empty ones were
/// passed on the way to it (Linux up to 6.1, and the magazines of 2013).
#[derive(Debug)]
pub(super) struct ColdWalk {
    list: usize,
    left: usize,
    // Frames still to be taken from the list where the walk stands.
    burst: usize,
    // How many may leave in a row where only one list has any.
    alone: usize,
    // After more than these, the walk ends at the next change of list if somebody waits.
    least: usize,
    moved: usize,
}

impl ColdWalk {
    /// Up to `most` frames, beginning with the list behind `after`; `alone` in a row where one list has all; no end before
    /// `least`, whoever waits.
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

    fn next<G: Grouping>(
        &mut self,
        lists: &Lists,
        store: &Buddy<'_, G>,
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
        lists.pop_cold(store, self.list)
    }
}
