//! A block that the compacting task catches on its way to the free lists, so that no other request
//! can take it: one that becomes free by a free of that task itself.

use core::cell::Cell;

use brickyard::{Frame, MigrateType, Order};

use super::aim::Aim;
use crate::classics::store::Merged;

/// The block that the compacting task has caught for its request.
#[derive(Debug)]
pub(super) struct Catch {
    pub(super) aim: Aim,
    pub(super) block_order: Order,
    // Nothing is caught in the background.
    pub(super) catches: bool,
    // With the list that it would have gone to.
    pub(super) caught: Cell<Option<(Frame, MigrateType)>>,
}

impl Catch {
    /// Called in a free of the compacting task before each look at a buddy. Takes a block of
    /// exactly the wanted order, unless it is isolated, or a small part of a movable page block for
    /// a request that does not move.
    pub(super) fn take(&self, so_far: Merged) -> Option<MigrateType> {
        use MigrateType::{Isolate, Movable};
        let Aim { order, wanted, .. } = self.aim;
        let end = so_far.frame.plus(order.frames());
        let mixes = order < self.block_order && so_far.kind == Movable && wanted != Movable;
        let suits = self.catches
            && self.caught.get().is_none()
            && so_far.order == order
            && so_far.kind != Isolate
            && !mixes
            && self.aim.limit.is_none_or(|limit| end <= limit);
        suits.then(|| {
            self.caught.set(Some((so_far.frame, so_far.kind)));
            wanted
        })
    }
}
