//! What the embedder can do when memory is short: free pages of its own, and move them.

use core::ffi::c_void;

use brickyard::pressure::{Activity, Eviction, Migrate, Migration, Need, Reclaim};
use brickyard::{Frame, FrameRange, Order};

use crate::kind::kind_in_c;

/// What a request that found nothing would need.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_need {
    /// The least number of frames to free.
    pub frames: usize,
    /// The order requested.
    pub order: u32,
    /// The highest kind of zone that helps.
    pub highest: u32,
}

/// The contents are in the new place, which is the owner's now; the old place is the allocator's.
pub const BY_MOVED: u32 = 0;
/// The owner needs neither place: both are the allocator's.
pub const BY_NOT_NEEDED: u32 = 1;
/// Not now: another try is worthwhile.
pub const BY_LATER: u32 = 2;
/// This block can never be moved.
pub const BY_NEVER: u32 = 3;
/// The owner does not know the block. Neither place changes hands.
pub const BY_UNKNOWN: u32 = 4;

/// The page was freed, by `by_free`.
pub const BY_FREED: u32 = 0;
/// The page was active, and is inactive now.
pub const BY_DEACTIVATED: u32 = 1;
/// The page cannot be taken now.
pub const BY_PAGE_BUSY: u32 = 2;
/// There is no such page, or it is not of that activity.
pub const BY_UNSUITABLE: u32 = 3;
/// There is no memory here: the lump ends.
pub const BY_HOLE: u32 = 4;

/// What the embedder can do when memory is short. A function that is null is not offered. They are
/// called without any lock, for requests that may sleep (`wake`: for all). They may free. What they
/// allocate, they request as BY_ATOMIC. An answer that means nothing counts as BY_UNKNOWN,
/// of `evict` as BY_UNSUITABLE.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_hooks {
    /// Passed to every function.
    pub context: *mut c_void,
    /// Frees at least `need->frames` frames if it can, oldest first. Returns the number freed; 0
    /// ends the attempt.
    pub reclaim: Option<unsafe extern "C" fn(context: *mut c_void, need: *const by_need) -> usize>,
    /// Wakes what frees pages in the background, since a zone fell below its low watermark. Must
    /// not wait.
    pub wake: Option<unsafe extern "C" fn(context: *mut c_void, need: *const by_need)>,
    /// Returns true if the block could be moved, as far as can be told without trying. Null: all
    /// can.
    pub can_move:
        Option<unsafe extern "C" fn(context: *mut c_void, frame: usize, order: u32) -> bool>,
    /// Moves the contents of the block at `from` to the one at `to`. Returns BY_MOVED,
    /// BY_NOT_NEEDED, BY_LATER, BY_NEVER or BY_UNKNOWN. The owner may be freeing the block at this
    /// moment, so a lock of the owner's must make sure that BY_MOVED and BY_NOT_NEEDED are returned
    /// only for a block that is still its own and of this order, and that it is not freed any more.
    /// The limit of a request is not remembered: a page that must stay below one must not be moved.
    /// Null: nothing is compacted.
    pub migrate: Option<
        unsafe extern "C" fn(context: *mut c_void, from: usize, order: u32, to: usize) -> u32,
    >,
    /// Tells the page of the frames `start` to `end` that would be taken next, and whether it is
    /// active; returns false if there is none. For lumpy reclaim; null: not offered.
    pub oldest: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            start: usize,
            end: usize,
            frame: *mut usize,
            active: *mut bool,
        ) -> bool,
    >,
    /// Takes this page away if it is as active as told. Returns BY_FREED, BY_DEACTIVATED,
    /// BY_PAGE_BUSY, BY_UNSUITABLE or BY_HOLE. For lumpy reclaim.
    pub evict:
        Option<unsafe extern "C" fn(context: *mut c_void, frame: usize, active: bool) -> u32>,
}

// Invariant `hooks-in-c`: the functions may be called with `context` on every CPU, at any time as
// long as the machine lives, and answer as the header says.

// SAFETY: by `hooks-in-c`.
unsafe impl Sync for by_hooks {}
// SAFETY: as above.
unsafe impl Send for by_hooks {}

const fn in_c(need: &Need) -> by_need {
    by_need {
        frames: need.frames,
        order: need.order.get() as u32,
        highest: kind_in_c(need.highest),
    }
}

impl Reclaim for by_hooks {
    fn reclaims(&self) -> bool {
        self.reclaim.is_some() || self.evict.is_some()
    }

    fn reclaim(&self, need: &Need) -> usize {
        let need = in_c(need);
        // SAFETY: `hooks-in-c`, here and below.
        self.reclaim.map_or(0, |reclaim| unsafe {
            reclaim(self.context, &raw const need)
        })
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        let (oldest, _) = (self.oldest?, self.evict?);
        let (mut frame, mut active) = (0, false);
        let (start, end) = (zone.start.number(), zone.end.number());
        // SAFETY: as above; the two results live until it returns.
        let found = unsafe { oldest(self.context, start, end, &raw mut frame, &raw mut active) };
        let activity = if active {
            Activity::Active
        } else {
            Activity::Inactive
        };
        found.then_some((Frame::new(frame), activity))
    }

    fn evict(&self, frame: Frame, activity: Activity) -> Eviction {
        let active = activity == Activity::Active;
        let answer = match self.evict {
            // SAFETY: as above.
            Some(evict) => unsafe { evict(self.context, frame.number(), active) },
            None => BY_UNSUITABLE,
        };
        match answer {
            BY_FREED => Eviction::Freed,
            BY_DEACTIVATED => Eviction::Deactivated,
            BY_PAGE_BUSY => Eviction::Busy,
            BY_HOLE => Eviction::Hole,
            _ => Eviction::Unsuitable,
        }
    }

    fn wake(&self, need: &Need) {
        if let Some(wake) = self.wake {
            let need = in_c(need);
            // SAFETY: as above.
            unsafe { wake(self.context, &raw const need) }
        }
    }
}

impl Migrate for by_hooks {
    fn moves(&self) -> bool {
        self.migrate.is_some()
    }

    fn can_move(&self, frame: Frame, order: Order) -> bool {
        match (self.migrate, self.can_move) {
            (None, _) => false,
            (Some(_), None) => true,
            // SAFETY: as above.
            (Some(_), Some(can_move)) => unsafe {
                can_move(self.context, frame.number(), u32::from(order.get()))
            },
        }
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        let answer = match self.migrate {
            // SAFETY: as above.
            Some(migrate) => unsafe {
                migrate(
                    self.context,
                    from.number(),
                    u32::from(order.get()),
                    to.number(),
                )
            },
            None => BY_NEVER,
        };
        match answer {
            BY_MOVED => Migration::Moved,
            BY_NOT_NEEDED => Migration::NotNeeded,
            BY_LATER => Migration::Later,
            BY_NEVER => Migration::Never,
            _ => Migration::Unknown,
        }
    }
}
