//! How much the arrays of a CPU may hold: together, no more than its share of the zone's memory.
//!
//! All CPUs that use their stashes have equal shares. (There may be slots for many more: for all
//! threads that a process may ever have, say.)
//!
//! Invariant `within-share`: the limits of a CPU's arrays, in frames, add up to no more than its
//! share, as that was when the last of them was raised; and no array holds more than its limit.
//! An array of single frames may always hold one, since a free pushes after it has made room.
//!
//! A limit is raised when its array has run empty or full, as far as there is room: that of single
//! frames by doubling it, since most CPUs need few; all others at once to the most. If others leave
//! it less than a fair part, a twenty-first, the largest of them is halved until there is room. So
//! every array that is used gets its part (if that is a block at all), in a bounded number of
//! steps. A drain of the stash makes all of its arrays small again. (A stash that only its owner
//! can enter is left alone if it holds nothing.)
//!
//! A CPU that came when few used their stashes has more than its share until it next fetches or
//! gives back. So all together may hold more than the percentage, by a factor of 1 + 1/2 + ... +
//! 1/n at most, with n users.

use brickyard_sync::{Ordering, SlotAccess};

use super::cpu::{CpuStash, KINDS, SINGLES, SMALL_ORDERS};
use super::stack::Stack;
use super::{Backing, Stash};
use crate::bitmap::Bitmap;
use crate::{Order, Platform};

/// The limit that an array of single frames starts with.
const FIRST_LIMIT: usize = 64;

/// The number of arrays of a CPU.
const ARRAYS: usize = KINDS * (2 + SMALL_ORDERS);

/// An array of a CPU's stash.
#[derive(Debug, Clone, Copy)]
enum Array {
    Singles(usize),
    /// The order, less one, and the mobility.
    Small(usize, usize),
    Huge(usize),
}

impl<A: SlotAccess> Stash<'_, A> {
    /// Returns how many frames the stash of one CPU may hold now, if so many use theirs.
    fn share(&self, store: &Bitmap<'_>, users: usize) -> usize {
        if self.sizes.percent >= 100 {
            return usize::MAX;
        }
        let percent = self.sizes.percent as u64;
        let all = store.managed_frames() as u64 * percent / 100;
        all as usize / users.max(1)
    }

    /// Doubles the limit of an array of single frames, as far as there is room.
    pub(super) fn grow<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        stack: &Stack<SINGLES>,
    ) {
        self.raise(backing, own, stack, Order::ZERO, self.sizes.singles);
        if stack.limit() == 0 {
            stack.set_limit(1);
        }
    }

    /// Raises the limit of an array of blocks of `order`, up to `most`, as far as there is room.
    pub(super) fn raise<P: Platform, const N: usize>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        stack: &Stack<N>,
        order: Order,
        most: usize,
    ) {
        let huge = backing.store.page_block_order();
        let users = self.users_with(own);
        let more_or_fewer = own.users.load(Ordering::Relaxed) != users as u32;
        if stack.limit() as usize >= most && !more_or_fewer {
            return;
        }
        let share = self.share(&backing.store, users);
        if more_or_fewer {
            own.users.store(users as u32, Ordering::Relaxed);
            // There may be less for each.
            while own.frames_at_most(huge) > share && self.halve_largest(backing, own, share) {}
        }
        let limit = stack.limit() as usize;
        if limit >= most {
            return;
        }
        let wanted = match order {
            Order::ZERO => (limit * 2).max(FIRST_LIMIT).min(most),
            _ => most,
        };
        let raised = |own: &CpuStash| {
            let room = share.saturating_sub(own.frames_at_most(huge)) >> order.get();
            wanted.min(stack.limit() as usize + room)
        };
        let mut to = raised(own);
        // While this array has less than a fair part, the largest has more, and can be halved.
        while to < FIRST_LIMIT.min(most).min((share / ARRAYS) >> order.get())
            && self.halve_largest(backing, own, share)
        {
            to = raised(own);
        }
        stack.set_limit(to as u32);
    }

    /// Returns how many CPUs use their stashes, with this one, which is counted from now on.
    fn users_with(&self, own: &CpuStash) -> usize {
        if self.sizes.percent >= 100 {
            return 0;
        }
        // Relaxed, twice: a hint of how to share.
        match own.users.load(Ordering::Relaxed) {
            0 => self.users.fetch_add(1, Ordering::Relaxed) + 1,
            _ => self.users.load(Ordering::Relaxed),
        }
    }

    /// Forgets what a stash holds, and makes its arrays small again. Its CPU no longer counts as
    /// one that uses it.
    pub(super) fn make_small(&self, own: &CpuStash) {
        own.singles.iter().for_each(Stack::reset);
        own.small.iter().flatten().for_each(Stack::reset);
        own.huge.iter().for_each(Stack::reset);
        if own.users.load(Ordering::Relaxed) > 0 {
            own.users.store(0, Ordering::Relaxed);
            // Relaxed: as in `users_with`.
            self.users.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Halves the limit of the array that may hold most, if that is more than a fair part of the
    /// share. Gives back what it then holds too much. Returns true if it was halved.
    fn halve_largest<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        share: usize,
    ) -> bool {
        let store = &backing.store;
        let (largest, frames) = own.largest(store.page_block_order());
        if frames <= share / ARRAYS {
            return false;
        }
        match largest {
            Array::Singles(place) => {
                let stack = &own.singles[place];
                let half = stack.limit() / 2;
                if stack.len() > half {
                    self.give_coldest(backing, own, place, stack.len() - half);
                }
                stack.set_limit(half);
            }
            Array::Small(small, place) => {
                let (stack, order) = (&own.small[small][place], Order::new(small as u8 + 1));
                let half = stack.limit() / 2;
                if stack.len() > half {
                    self.give_coldest_small(backing, stack, order, stack.len() - half);
                }
                stack.set_limit(half);
            }
            Array::Huge(place) => {
                let stack = &own.huge[place];
                let half = stack.limit() / 2;
                if stack.len() > half {
                    self.give_coldest_blocks(backing, stack, stack.len() - half);
                }
                stack.set_limit(half);
            }
        }
        true
    }
}

impl CpuStash {
    /// Calls `see` with each array, how many blocks it may hold, and their order.
    fn each_limit(&self, huge: Order, mut see: impl FnMut(Array, u32, u8)) {
        for place in 0..KINDS {
            see(Array::Singles(place), self.singles[place].limit(), 0);
            for small in 0..SMALL_ORDERS {
                let limit = self.small[small][place].limit();
                see(Array::Small(small, place), limit, small as u8 + 1);
            }
            see(Array::Huge(place), self.huge[place].limit(), huge.get());
        }
    }

    /// Returns how many frames all arrays together may hold.
    pub(super) fn frames_at_most(&self, huge: Order) -> usize {
        let mut frames = 0;
        self.each_limit(huge, |_, limit, order| frames += (limit as usize) << order);
        frames
    }

    /// Returns the array that may hold most frames, and how many.
    fn largest(&self, huge: Order) -> (Array, usize) {
        let mut largest = (Array::Singles(0), 0);
        self.each_limit(huge, |array, limit, order| {
            let frames = (limit as usize) << order;
            if frames > largest.1 {
                largest = (array, frames);
            }
        });
        largest
    }
}
