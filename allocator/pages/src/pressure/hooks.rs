//! The two hooks through which the embedder frees and moves pages, and their answers.
//!
//! Both are called with no lock held and with interrupts as the caller had them. Except for
//! [`Reclaim::wake`], they are called only for requests that may sleep. A hook may free. What it
//! allocates it must request as [atomic](crate::Context::Atomic), so that it does not call itself.

use crate::{Frame, FrameRange, Order, ZoneKind};

/// What a request that found nothing would need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The least number of frames to free.
    pub frames: usize,
    /// The order requested.
    pub order: Order,
    /// The highest kind of zone that helps.
    pub highest: ZoneKind,
}

/// A page's place in the order of age, as its owner keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Not used recently: free it.
    Inactive,
    /// Used recently: make it inactive first.
    Active,
}

/// What became of a page that was to be taken away from its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Freed, through the allocator's own free.
    Freed,
    /// It was active, and is inactive now.
    Deactivated,
    /// It cannot be taken now.
    Busy,
    /// There is no such page, or it is not of that activity.
    Unsuitable,
    /// There is no memory here: the lump ends here.
    Hole,
}

/// Takes pages away from their users.
pub trait Reclaim {
    /// Returns true if the hook ever frees anything. If it does not, and [moves](Migrate::moves)
    /// nothing either, a request that has found nothing is not tried again.
    #[inline]
    fn reclaims(&self) -> bool {
        true
    }

    /// Frees at least `need.frames` frames if it can, oldest first, through the allocator's own
    /// free. Returns the number freed; 0 ends the attempt.
    fn reclaim(&self, need: &Need) -> usize;

    /// Returns the page of `zone` that would be taken next, with its activity. `None` means that
    /// lumpy reclaim is not offered.
    fn oldest(&self, _zone: FrameRange) -> Option<(Frame, Activity)> {
        None
    }

    /// Takes this page away if it has this activity, for lumpy reclaim around an old page. A part
    /// of a larger page counts as unsuitable.
    fn evict(&self, _frame: Frame, _activity: Activity) -> Eviction {
        Eviction::Unsuitable
    }

    /// Called when memory has fallen below a zone's low watermark. Wakes whatever frees pages in
    /// the background. Must not wait.
    fn wake(&self, _need: &Need) {}
}

/// The answer to a request to move a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migration {
    /// The contents are in the new place, which is the owner's now. The old place is the
    /// allocator's.
    Moved,
    /// The owner needs neither: both the old and the new place are the allocator's.
    NotNeeded,
    /// Not now: the page is under I/O, locked, or similar. Another try is worthwhile.
    Later,
    /// This block can never be moved.
    Never,
    /// The owner does not know the block; it may have just been freed, for example. Neither place
    /// changes hands.
    Unknown,
}

/// Moves pages.
pub trait Migrate {
    /// Returns true if the hook ever moves anything. If not, nothing is compacted.
    #[inline]
    fn moves(&self) -> bool {
        true
    }

    /// Returns true if the block of `order` at `frame` could be moved, as far as can be told
    /// without trying. Called for blocks in use, before anything near them is moved, if the store
    /// itself does not know. Must be quick, and may be wrong. [`Migrate::migrate`] is then called
    /// for the blocks that were said to move, and for those that have come since.
    fn can_move(&self, frame: Frame, order: Order) -> bool {
        let _ = (frame, order);
        true
    }

    /// Moves the contents of the block of `order` at `from` to the block at `to`, which is already
    /// allocated.
    ///
    /// Called without any lock, so the owner may be freeing the block at this moment. Since the
    /// look at it, the block may also have been freed and handed out again, at another order or
    /// mobility. The implementer must use a lock of its own to make sure of two things. It returns
    /// [`Migration::Moved`] and [`Migration::NotNeeded`] only for a block of this order that is
    /// still its own. It does not free such a block any more.
    ///
    /// The allocator does not remember the address limit that a block was requested with. So a page
    /// that must stay below a limit must not be moved. If this call panics, its progress is
    /// unknown: both blocks stay in use, and everything else is as before.
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration;
}

/// No hooks: nothing can be freed or moved.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Reclaim for NoHooks {
    #[inline]
    fn reclaims(&self) -> bool {
        false
    }

    fn reclaim(&self, _need: &Need) -> usize {
        0
    }
}

impl Migrate for NoHooks {
    #[inline]
    fn moves(&self) -> bool {
        false
    }

    fn migrate(&self, _from: Frame, _order: Order, _to: Frame) -> Migration {
        Migration::Unknown
    }
}

impl<H: Reclaim> Reclaim for &H {
    #[inline]
    fn reclaims(&self) -> bool {
        (**self).reclaims()
    }

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
    #[inline]
    fn moves(&self) -> bool {
        (**self).moves()
    }

    fn can_move(&self, frame: Frame, order: Order) -> bool {
        (**self).can_move(frame, order)
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        (**self).migrate(from, order, to)
    }
}
