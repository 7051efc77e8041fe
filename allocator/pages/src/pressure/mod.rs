//! What happens when memory is short or in pieces: reclaim, compaction, contiguous ranges.
//!
//! The allocator cannot free or move a page by itself; the embedder can, through two hooks. Both
//! are called with no lock held and interrupts as the caller had them, and, but for
//! [`Reclaim::wake`], only for requests that may sleep. A hook may free; what it allocates it asks
//! for as [atomic](crate::Context::Atomic), so that it does not end up in itself. Progress rule: a
//! request calls [`Reclaim`] again only while the call before has freed something, and at most
//! [`RETRIES`] times; each compaction passes over a zone twice at most.

pub mod compact;
pub mod contiguous;
mod deferral;
pub mod reclaim;
mod scanners;

pub use compact::{Compacted, Why, compact_all, compact_for};
pub use contiguous::{ContiguousRequest, alloc_contiguous, offline};

use crate::zones::AnyZone;
use crate::{Frame, FrameRange, Order, ZoneKind};

/// How often a request calls for reclaim at most (Linux: 16).
pub const RETRIES: usize = 16;

/// What a request that found nothing would need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Frames to free, at least.
    pub frames: usize,
    /// The order that is asked for.
    pub order: Order,
    /// The highest kind of zone that helps.
    pub highest: ZoneKind,
}

/// A page's place in the order of age, as its owner keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Not used lately: to be freed.
    Inactive,
    /// Used lately: to be made inactive first.
    Active,
}

/// What became of a page that was to be taken away from its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Freed, through the allocator's own free.
    Freed,
    /// Was active, is inactive now.
    Deactivated,
    /// Cannot be done now.
    Busy,
    /// No such page, or not of that activity.
    Unsuitable,
    /// No memory at all: the lump ends here.
    Hole,
}

/// Takes pages away from their users.
pub trait Reclaim {
    /// Frees at least `need.frames` frames if it can, oldest first, by the allocator's own free.
    /// Returns how many it freed; 0 ends the attempt.
    fn reclaim(&self, need: &Need) -> usize;

    /// The page of `zone` that would be taken next, with its activity. None: lumpy reclaim is not
    /// offered.
    fn oldest(&self, _zone: FrameRange) -> Option<(Frame, Activity)> {
        None
    }

    /// Takes this page away if it has this activity, for lumpy reclaim round an old page. A part of
    /// a larger page counts as unsuitable.
    fn evict(&self, _frame: Frame, _activity: Activity) -> Eviction {
        Eviction::Unsuitable
    }

    /// Memory has fallen below the low mark of a zone: time for whatever frees pages in the
    /// background to wake up. Must not wait.
    fn wake(&self, _need: &Need) {}
}

/// The answer to a request to move a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migration {
    /// Its contents are in the new place, which is the owner's now; the old one is the allocator's.
    Moved,
    /// The owner needs neither: the old place is the allocator's, and so is the new one.
    NotNeeded,
    /// Not now: the page is under I/O, locked, or the like. Worth another try.
    Later,
    /// This block can never be moved.
    Never,
    /// Nobody here knows the block: it has just been freed, say. Neither place changes hands.
    Unknown,
}

/// Moves pages.
pub trait Migrate {
    /// Does it ever move anything? Where it does not, nothing is compacted.
    const MOVES: bool = true;

    /// Could the block of `order` at `frame` be moved, as far as can be told without trying? Asked
    /// of blocks in use before any of their neighbourhood is moved, where the store itself does not
    /// know; must be quick and may be wrong. [`Migrate::migrate`] is then asked for what was said
    /// to move, and for what has come since.
    fn can_move(&self, frame: Frame, order: Order) -> bool {
        let _ = (frame, order);
        true
    }

    /// Moves the contents of the block of `order` at `from` to the one at `to`, which is allocated
    /// already.
    ///
    /// Called without any lock, so the owner may be freeing the block at this moment, and since it
    /// was looked at it may have been freed and handed out again, at another order or mobility.
    /// Whoever implements this makes sure, by a lock of its own, that [`Migration::Moved`] and
    /// [`Migration::NotNeeded`] are said only of a block of this order that is still its own, and
    /// that it frees such a block no more. The allocator does not remember the address limit that a
    /// block was asked for with: where a page must stay below one, it is not moved. Where it panics
    /// nobody knows how far it came: both blocks stay in use, and all else is as before.
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration;
}

/// No hooks: nothing can be freed, nothing moved.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Reclaim for NoHooks {
    fn reclaim(&self, _need: &Need) -> usize {
        0
    }
}

impl Migrate for NoHooks {
    const MOVES: bool = false;

    fn migrate(&self, _from: Frame, _order: Order, _to: Frame) -> Migration {
        Migration::Unknown
    }
}

impl<H: Reclaim> Reclaim for &H {
    fn reclaim(&self, need: &Need) -> usize {
        (**self).reclaim(need)
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        (**self).oldest(zone)
    }

    fn evict(&self, frame: Frame, activity: Activity) -> Eviction {
        (**self).evict(frame, activity)
    }

    fn wake(&self, need: &Need) {
        (**self).wake(need);
    }
}

impl<H: Migrate> Migrate for &H {
    const MOVES: bool = H::MOVES;

    fn can_move(&self, frame: Frame, order: Order) -> bool {
        (**self).can_move(frame, order)
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        (**self).migrate(from, order, to)
    }
}

/// After a hook's answer: gives back what is the allocator's, `from` or `to` or both.
fn settle<Z: AnyZone>(zone: &Z, answer: Migration, from: Frame, order: Order, to: Frame) {
    let (old, new) = match answer {
        Migration::Moved => (true, false),
        Migration::NotNeeded => (true, true),
        Migration::Later | Migration::Never | Migration::Unknown => (false, true),
    };
    for (given_back, frame) in [(old, from), (new, to)] {
        if given_back {
            let given = zone.free_uncached(frame, order);
            debug_assert!(given.is_ok(), "a hook gave up a block that was not its own");
        }
    }
}
