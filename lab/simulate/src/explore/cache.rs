//! The page cache of the tasks: blocks that anybody may take, free or move, each under the lock of
//! its page.
//!
//! Which blocks there are is a list that no simulated CPU sees. Who wants one looks at the list,
//! locks the page, and looks again: it may have been freed or moved meanwhile.

use core::cell::RefCell;

use brickyard::{Frame, FrameRange, Order};

use super::frames::{Frames, Owner};

/// Blocks by first frame, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    blocks: RefCell<Vec<(Frame, Order)>>,
}

impl Cache {
    pub(crate) fn len(&self) -> usize {
        self.blocks.borrow().len()
    }

    /// The n-th block.
    pub(crate) fn nth(&self, n: usize) -> Option<(Frame, Order)> {
        self.blocks.borrow().get(n).copied()
    }

    /// The order of the block that starts at `frame`.
    pub(crate) fn at(&self, frame: Frame) -> Option<Order> {
        let blocks = self.blocks.borrow();
        let found = blocks.iter().find(|block| block.0 == frame);
        found.map(|block| block.1)
    }

    /// A block that `owner` gives up.
    pub(crate) fn put(&self, frames: &Frames, frame: Frame, order: Order, owner: Owner) {
        // The lock first: somebody may just be finding out that an older page here is gone.
        frames.lock(frame);
        frames.release(FrameRange::of_block(frame, order), owner, Owner::Cache);
        self.blocks.borrow_mut().push((frame, order));
        frames.unlock(frame);
    }

    /// Locks the block at `frame`, if there is one and nobody has locked it. Returns its order.
    pub(crate) fn try_lock(&self, frames: &Frames, frame: Frame) -> Option<Order> {
        self.at(frame)?;
        if !frames.try_lock(frame) {
            return None;
        }
        let order = self.at(frame);
        if order.is_none() {
            frames.unlock(frame);
        }
        order
    }

    /// Takes the locked block at `frame` off the list and unlocks it. Its frames are `owner`'s.
    pub(crate) fn take_locked(&self, frames: &Frames, frame: Frame, order: Order, owner: Owner) {
        self.blocks.borrow_mut().retain(|block| block.0 != frame);
        frames.claim(FrameRange::of_block(frame, order), Owner::Cache, owner);
        frames.unlock(frame);
    }

    /// The locked block at `from` is at `to` from now on, which nobody has and the caller has
    /// locked too; `from` is nobody's. Both are unlocked.
    pub(crate) fn move_locked(&self, frames: &Frames, from: Frame, order: Order, to: Frame) {
        let (old, new) = (
            FrameRange::of_block(from, order),
            FrameRange::of_block(to, order),
        );
        frames.claim(new, Owner::Nobody, Owner::Cache);
        frames.release(old, Owner::Cache, Owner::Nobody);
        for block in self.blocks.borrow_mut().iter_mut() {
            if block.0 == from {
                block.0 = to;
            }
        }
        frames.unlock(to);
        frames.unlock(from);
    }
}
