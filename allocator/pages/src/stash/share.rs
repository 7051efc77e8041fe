//! How much the arrays of a CPU may hold: together, no more than its share of the zone's memory.
//!
//! Each CPU with a slot has an equal share, whether it uses its slot or not. So the shares of all
//! of them are bounded together, without a word that they all write. A share may be nothing: then
//! every request goes to the store.
//!
//! Invariant `within-share`: the limits of a CPU's arrays, in frames, add up to no more than its
//! share, as that was when the last of them was raised; and no array holds more than its limit.
//!
//! A limit is raised when its array has run empty or full, as far as there is room: that of single
//! frames by doubling it, since most CPUs need few; all others at once to the most. If others leave
//! it less than a fair part, a twenty-second but at least one frame, the largest of them is halved
//! until there is room. So every array that is used gets its part (if that is a block at all), in a
//! bounded number of steps. What is freed in sparse page blocks gets its few frames in the same way,
//! or nothing where they are more than a quarter of the share. A drain of the stash makes all of its
//! arrays small again. (The stash of another CPU is left alone if it holds nothing.)

use brickyard_sync::SlotAccess;

use super::cpu::{Array, CpuStash, KINDS, SMALL_ORDERS, SPARSES};
use super::stack::Stack;
use super::{Backing, Stash};
use crate::bitmap::{Bitmap, SPARSE};
use crate::{Order, Platform};

/// The limit that an array of single frames starts with.
const FIRST_LIMIT: usize = 64;

/// What is freed in sparse page blocks may be one part in so many of a share.
const SPARSE_PART: usize = 4;

/// The number of arrays of a CPU.
const ARRAYS: usize = KINDS * (2 + SMALL_ORDERS) + 1;

impl<A: SlotAccess> Stash<'_, A> {
    /// Returns how many blocks of `order` an array may hold at most; 0 if none are kept.
    #[inline]
    pub(super) fn most(&self, store: &Bitmap<'_>, order: Order) -> usize {
        if order > store.max_order() {
            0
        } else if order == Order::ZERO {
            self.sizes.singles
        } else if store.is_page_block(order) {
            self.sizes.huge
        } else if order.index() <= SMALL_ORDERS {
            self.sizes.small
        } else {
            0
        }
    }

    /// Returns how many frames the stash of one CPU may hold.
    fn share(&self, store: &Bitmap<'_>) -> usize {
        if self.sizes.percent >= 100 {
            return usize::MAX;
        }
        let percent = self.sizes.percent as u64;
        let all = store.managed_frames() as u64 * percent / 100;
        all as usize / self.slots.len().max(1)
    }

    /// Raises the limit of an array of blocks of `order`, as far as there is room.
    pub(super) fn raise<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        Array {
            order,
            place,
            stack,
        }: Array<'_>,
    ) {
        let is_sparse = place == SPARSE;
        let mut most = self.most(&backing.store, order);
        if is_sparse {
            most = most.min(SPARSES);
        }
        let limit = stack.limit() as usize;
        if limit >= most {
            return;
        }
        let share = self.share(&backing.store);
        if is_sparse && share / SPARSE_PART < SPARSES {
            return;
        }
        let fair = (share / ARRAYS).max(1);
        let wanted = match order {
            Order::ZERO => (limit * 2).max(FIRST_LIMIT).min(most),
            _ => most,
        };
        let huge = backing.store.page_block_order();
        let raised = || {
            let room = share.saturating_sub(own.frames_at_most(huge)) >> order.get();
            wanted.min(limit + room)
        };
        let part = if is_sparse {
            SPARSES
        } else {
            fair >> order.get()
        };
        let least = FIRST_LIMIT.min(part).min(most);
        let mut to = raised();
        // While this array has less than its part, the largest has more, and can be halved.
        while to < least && self.halve_largest(backing, own, fair, stack) {
            to = raised();
        }
        stack.set_limit(to as u32);
    }

    /// Halves the limit of the array that may hold most beside `raised`, if that is more than `fair`
    /// frames. Gives back what it then holds too much. Returns true if it was halved.
    #[inline(never)]
    fn halve_largest<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        fair: usize,
        raised: &Stack,
    ) -> bool {
        let (mut most, mut largest) = (fair, None);
        own.each(backing.store.page_block_order(), |array| {
            let frames = array.frames_at_most();
            if frames > most && !core::ptr::eq(array.stack, raised) {
                (most, largest) = (frames, Some(array));
            }
        });
        let Some(array) = largest else {
            return false;
        };
        let (len, half) = (array.stack.len(), array.stack.limit() / 2);
        if len > half {
            self.give_coldest(backing, own, array, len - half);
        }
        array.stack.set_limit(half);
        true
    }
}

impl CpuStash {
    /// Returns how many frames all arrays together may hold.
    #[inline(never)]
    fn frames_at_most(&self, huge: Order) -> usize {
        let mut frames = 0;
        self.each(huge, |array| frames += array.frames_at_most());
        frames
    }
}
