//! How many frames are certainly to be had: what makes a refusal of a single frame right or wrong.
//!
//! A frame counts as free from the moment at which its free is over until the moment at which a
//! request begins that may get it. So the number is never too high. A request for one frame may
//! fail only if there was a moment, while it looked, at which nothing was free
//! (`order-0-succeeds`); if this number never was 0 meanwhile, the allocator is wrong. It proves
//! nothing while compaction holds free frames as places to move to, or ranges are isolated.
//!
//! Frames below a limit are counted in no total of the allocator: it looks at one page block after
//! the other. So a refusal there is wrong only if such a frame was free all the while, and not now
//! this one and now that one: if the number never was 0 and nothing was freed meanwhile.

use core::cell::{Cell, RefCell};

/// Frames below the usual limit, frames that unmovable requests may have, and all frames.
pub(crate) type Amount = [i64; 3];

/// Of which frames an [`Amount`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those below the usual limit.
    Below,
    /// Those outside a zone for movable pages.
    Unmovable,
    /// All.
    All,
}

/// The least amount there was while a request looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Least {
    amount: Amount,
    // Was nothing freed meanwhile?
    only_fewer: bool,
}

impl Least {
    /// How many of these frames were certainly free all the while; `None` where nobody can tell.
    pub(crate) fn of(self, which: Which) -> Option<i64> {
        match which {
            Which::Below if !self.only_fewer => None,
            _ => Some(self.amount[which as usize]),
        }
    }
}

/// Frames that are certainly to be had.
#[derive(Debug, Default)]
pub(crate) struct Supply {
    free: Cell<Amount>,
    lookers: RefCell<Vec<Look>>,
    begun: Cell<u64>,
    // How often frames came.
    added: Cell<u64>,
    disturbed: Cell<u32>,
    disturbances: Cell<u64>,
}

/// Of a request that looks: its number, what it may get, and the least that others left since it
/// began.
#[derive(Debug)]
struct Look {
    number: u64,
    own: i64,
    least: Amount,
}

/// A request that looks.
#[derive(Debug)]
#[must_use = "it has to be told how it ended"]
pub(crate) struct Looker {
    number: u64,
    added: u64,
    // Disturbances so far, if there was none at that moment.
    quiet_since: Option<u64>,
}

impl Supply {
    /// So many more.
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

    /// So many fewer.
    pub(crate) fn remove(&self, frames: Amount) {
        self.change(frames.map(|frames| -frames));
        let now = self.free.get();
        for looker in self.lookers.borrow_mut().iter_mut() {
            for (least, now) in looker.least.iter_mut().zip(now) {
                // What it may get itself was taken off too.
                *least = (*least).min(now + looker.own);
            }
        }
    }

    /// A request begins that may get so many frames. They are no longer counted.
    pub(crate) fn look(&self, frames: usize) -> Looker {
        let (number, own) = (self.begun.get(), frames as i64);
        self.begun.set(number + 1);
        let least = self.free.get();
        self.remove([own; 3]);
        let look = Look { number, own, least };
        self.lookers.borrow_mut().push(look);
        let quiet = self.disturbed.get() == 0;
        Looker {
            number,
            added: self.added.get(),
            quiet_since: quiet.then(|| self.disturbances.get()),
        }
    }

    /// It has ended, and so many of the frames that it might have got are left. Returns the least
    /// amount there was while it looked, less what others might get; `None` where that proves
    /// nothing.
    pub(crate) fn looked(&self, looker: Looker, left: Amount) -> Option<Least> {
        self.change(left);
        let mut lookers = self.lookers.borrow_mut();
        let place = lookers
            .iter()
            .position(|look| look.number == looker.number)?;
        let least = Least {
            amount: lookers.swap_remove(place).least,
            only_fewer: looker.added == self.added.get(),
        };
        let undisturbed = looker.quiet_since == Some(self.disturbances.get());
        undisturbed.then_some(least)
    }

    /// From now on, until [`Supply::settle`], frames may be held by nobody who is known here.
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
    fn the_least_amount_is_that_while_it_looked() {
        let supply = Supply::default();
        supply.add([1, 2, 5]);
        let looker = supply.look(1);
        // Its own frame does not count against it; another request's does.
        let other = supply.look(3);
        assert_eq!(supply.looked(other, [3, 3, 3]), least([0, 1, 4]));
        assert_eq!(supply.looked(looker, [1, 1, 1]), least([-2, -1, 2]));
        let looker = supply.look(1);
        supply.remove([1, 1, 1]);
        supply.add([1, 1, 1]);
        let seen = supply.looked(looker, [0, 0, 0]).unwrap();
        assert_eq!(seen.of(Which::All), Some(4));
        assert_eq!(seen.of(Which::Unmovable), Some(1));
    }

    #[test]
    fn a_frame_that_came_is_not_one_that_was_there() {
        let supply = Supply::default();
        supply.add([5, 5, 5]);
        let looker = supply.look(1);
        supply.remove([1, 1, 1]);
        let seen = supply.looked(looker, [1, 1, 1]).unwrap();
        assert_eq!(seen.of(Which::Below), Some(4));
        let looker = supply.look(1);
        supply.add([1, 1, 1]);
        let seen = supply.looked(looker, [1, 1, 1]).unwrap();
        assert_eq!(seen.of(Which::Below), None);
        assert_eq!(seen.of(Which::All), Some(4));
    }

    #[test]
    fn nothing_is_proved_while_frames_may_be_elsewhere() {
        let supply = Supply::default();
        supply.add([9, 9, 9]);
        let before = supply.look(1);
        supply.disturb();
        let during = supply.look(1);
        supply.settle();
        let after = supply.look(1);
        assert_eq!(supply.looked(before, [1, 1, 1]), None);
        assert_eq!(supply.looked(during, [1, 1, 1]), None);
        assert!(supply.looked(after, [1, 1, 1]).is_some());
    }
}
