//! The page cache of the tasks: blocks that any task may take, free or move, each under the lock of
//! its first page.
//!
//! The list of blocks is outside the machine's memory. To use a block, a task looks it up in the
//! list, locks the page, and looks it up again: it may have been freed or moved meanwhile.

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

    /// Returns the n-th block.
    pub(crate) fn nth(&self, n: usize) -> Option<(Frame, Order)> {
        self.blocks.borrow().get(n).copied()
    }

    /// Returns the order of the block that starts at `frame`, if there is one.
    pub(crate) fn at(&self, frame: Frame) -> Option<Order> {
        let blocks = self.blocks.borrow();
        let found = blocks.iter().find(|block| block.0 == frame);
        found.map(|block| block.1)
    }

    /// Adds a block that belongs to `owner`.
    pub(crate) fn put(&self, frames: &Frames, frame: Frame, order: Order, owner: Owner) {
        // Lock first: another task may still hold the lock after it found an older page gone.
        frames.lock(frame);
        frames.release(FrameRange::of_block(frame, order), owner, Owner::Cache);
        self.blocks.borrow_mut().push((frame, order));
        frames.unlock(frame);
    }

    /// Locks the block at `frame`, if there is one and it is not locked. Returns its order.
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

    /// Removes the locked block at `frame` from the list, makes its frames `owner`'s, and unlocks
    /// it.
    pub(crate) fn take_locked(&self, frames: &Frames, frame: Frame, order: Order, owner: Owner) {
        self.blocks.borrow_mut().retain(|block| block.0 != frame);
        frames.claim(FrameRange::of_block(frame, order), Owner::Cache, owner);
        frames.unlock(frame);
    }

    /// Moves the locked block at `from` to `to`, which must be the allocator's and which the caller
    /// has locked too. `from` is then the allocator's. Unlocks both.
    pub(crate) fn move_locked(&self, frames: &Frames, from: Frame, order: Order, to: Frame) {
        let (old, new) = (
            FrameRange::of_block(from, order),
            FrameRange::of_block(to, order),
        );
        frames.claim(new, Owner::Allocator, Owner::Cache);
        frames.release(old, Owner::Cache, Owner::Allocator);
        for block in self.blocks.borrow_mut().iter_mut() {
            if block.0 == from {
                block.0 = to;
            }
        }
        frames.unlock(to);
        frames.unlock(from);
    }
}
