//! How many frames are certainly free: decides whether a refusal of a single frame is right.
//!
//! A frame counts as free from the end of its free until the beginning of a request that may get
//! it. So the number is never too high. A request for one frame may fail only if nothing was free
//! at some moment while it searched (`order-0-succeeds`); if this number was never 0 meanwhile, the
//! allocator is wrong. The number proves nothing while compaction holds free frames as destinations
//! or ranges are isolated.
//!
//! The allocator has no total of the free frames below a limit: it looks at one page block after
//! the other. So a refusal there is wrong only if one and the same frame was free all the while,
//! not different ones in turn: if the number was never 0 and nothing was freed meanwhile.

use core::cell::{Cell, RefCell};

/// Numbers of frames, by [`Which`]: below the usual limit, for unmovable requests, and in all.
pub(crate) type Amount = [i64; 3];

/// The frames that an entry of an [`Amount`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those below the usual limit.
    Below,
    /// Those outside a zone for movable pages.
    Unmovable,
    /// All.
    All,
}

/// The least amount that was free while a request searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Least {
    amount: Amount,
    // Whether nothing was freed meanwhile.
    only_fewer: bool,
}

impl Least {
    /// Returns how many of these frames were certainly free all the while; `None` if unknown.
    pub(crate) fn of(self, which: Which) -> Option<i64> {
        match which {
            Which::Below if !self.only_fewer => None,
            _ => Some(self.amount[which as usize]),
        }
    }
}

/// Counts the frames that are certainly free.
#[derive(Debug, Default)]
pub(crate) struct Supply {
    free: Cell<Amount>,
    searches: RefCell<Vec<Pending>>,
    begun: Cell<u64>,
    // How often frames were added.
    added: Cell<u64>,
    disturbed: Cell<u32>,
    disturbances: Cell<u64>,
}

/// The record of a request that searches: its number, the frames it may get, and the least that
/// other requests left free since it began.
#[derive(Debug)]
struct Pending {
    number: u64,
    own: i64,
    least: Amount,
}

/// A search that has begun, to be passed to [`Supply::end`].
#[derive(Debug)]
#[must_use = "pass it to `end`"]
pub(crate) struct Search {
    number: u64,
    added: u64,
    // The number of disturbances so far, if none was in progress at that moment.
    quiet_since: Option<u64>,
}

impl Supply {
    /// Adds frames that became free.
    pub(crate) fn add(&self, frames: Amount) {
        self.added.set(self.added.get() + 1);
        self.change(frames);
    }

    fn change(&self, frames: Amount) {
        let mut free = self.free.get();
        for (free, more) in free.iter_mut().zip(frames) {
            *free += more;
        }
        self.free.set(free);
    }

    /// Removes frames that are no longer free.
    pub(crate) fn remove(&self, frames: Amount) {
        self.change(frames.map(|frames| -frames));
        let now = self.free.get();
        for pending in self.searches.borrow_mut().iter_mut() {
            for (least, now) in pending.least.iter_mut().zip(now) {
                // The frames that it may get itself were subtracted too.
                *least = (*least).min(now + pending.own);
            }
        }
    }

    /// Begins a request that may get so many frames, which are no longer counted.
    pub(crate) fn begin(&self, frames: usize) -> Search {
        let (number, own) = (self.begun.get(), frames as i64);
        self.begun.set(number + 1);
        let least = self.free.get();
        self.remove([own; 3]);
        let pending = Pending { number, own, least };
        self.searches.borrow_mut().push(pending);
        let quiet = self.disturbed.get() == 0;
        Search {
            number,
            added: self.added.get(),
            quiet_since: quiet.then(|| self.disturbances.get()),
        }
    }

    /// Ends a request that left so many of the frames that it might have got. Returns the least
    /// amount that was free while it searched, less what others might have got; `None` where that
    /// proves nothing.
    pub(crate) fn end(&self, search: Search, left: Amount) -> Option<Least> {
        self.change(left);
        let mut searches = self.searches.borrow_mut();
        let place = searches
            .iter()
            .position(|pending| pending.number == search.number)?;
        let least = Least {
            amount: searches.swap_remove(place).least,
            only_fewer: search.added == self.added.get(),
        };
        let undisturbed = search.quiet_since == Some(self.disturbances.get());
        undisturbed.then_some(least)
    }

    /// Begins a disturbance: until [`Supply::settle`], frames that count as free may be held as
    /// destinations of moves, or be isolated.
    pub(crate) fn disturb(&self) {
        self.disturbed.set(self.disturbed.get() + 1);
        self.disturbances.set(self.disturbances.get() + 1);
    }

    /// Ends a [`Supply::disturb`].
    pub(crate) fn settle(&self) {
        self.disturbed.set(self.disturbed.get() - 1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn least(amount: Amount) -> Option<Least> {
        let only_fewer = true;
        Some(Least { amount, only_fewer })
    }

    #[test]
    fn the_least_amount_is_that_during_the_search() {
        let supply = Supply::default();
        supply.add([1, 2, 5]);
        let search = supply.begin(1);
        // The frame that it may get itself is not subtracted; another request's is.
        let other = supply.begin(3);
        assert_eq!(supply.end(other, [3, 3, 3]), least([0, 1, 4]));
        assert_eq!(supply.end(search, [1, 1, 1]), least([-2, -1, 2]));
        let search = supply.begin(1);
        supply.remove([1, 1, 1]);
        supply.add([1, 1, 1]);
        let seen = supply.end(search, [0, 0, 0]).unwrap();
        assert_eq!(seen.of(Which::All), Some(4));
        assert_eq!(seen.of(Which::Unmovable), Some(1));
    }

    #[test]
    fn a_frame_freed_meanwhile_proves_nothing_below_a_limit() {
        let supply = Supply::default();
        supply.add([5, 5, 5]);
        let search = supply.begin(1);
        supply.remove([1, 1, 1]);
        let seen = supply.end(search, [1, 1, 1]).unwrap();
        assert_eq!(seen.of(Which::Below), Some(4));
        let search = supply.begin(1);
        supply.add([1, 1, 1]);
        let seen = supply.end(search, [1, 1, 1]).unwrap();
        assert_eq!(seen.of(Which::Below), None);
        assert_eq!(seen.of(Which::All), Some(4));
    }

    #[test]
    fn nothing_is_proved_during_a_disturbance() {
        let supply = Supply::default();
        supply.add([9, 9, 9]);
        let before = supply.begin(1);
        supply.disturb();
        let during = supply.begin(1);
        supply.settle();
        let after = supply.begin(1);
        assert_eq!(supply.end(before, [1, 1, 1]), None);
        assert_eq!(supply.end(during, [1, 1, 1]), None);
        assert!(supply.end(after, [1, 1, 1]).is_some());
    }
}
