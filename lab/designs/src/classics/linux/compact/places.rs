//! The free places that a compacting task holds for the pages that it is about to move.

use brickyard::block::{State, Use};
use brickyard::{Frame, MigrateType, Order, Platform};

use crate::classics::bulk::Backing;
use crate::classics::linux::blocks::Blocks;
use crate::classics::lock::LabLock;
use crate::classics::store::Merged;
use crate::classics::store::frames::FrameList;

/// The type that places are recorded as while they are held.
pub(super) const HELD: MigrateType = MigrateType::Unmovable;

/// Free places that the compacting task has taken and not yet used, by order. They are blocks in
/// use that count as unmovable, so that nobody moves them; their links belong to the task. What is
/// left when a hook panics is freed.
pub(super) struct HeldPlaces<'r, 'm, L: LabLock, P: Platform> {
    backing: &'r Backing<'m, Blocks<'m>, L, P>,
    lists: [FrameList; Order::COUNT],
    pub(super) frames: usize,
}

impl<'r, 'm, L: LabLock, P: Platform> HeldPlaces<'r, 'm, L, P> {
    /// Holds nothing yet.
    pub(super) fn new(backing: &'r Backing<'m, Blocks<'m>, L, P>) -> Self {
        Self {
            backing,
            lists: Default::default(),
            frames: 0,
        }
    }

    /// Adds a place, behind the others of its order.
    pub(super) fn add(&mut self, frame: Frame, order: Order) {
        let table = self.backing.unlocked().table();
        self.lists[order.index()].push_back(table, frame);
        self.frames += order.frames();
    }

    /// Puts a place back that was not used: it is the next one.
    pub(super) fn put_back(&mut self, frame: Frame, order: Order) {
        let table = self.backing.unlocked().table();
        table.set_state(frame, State::new(Use::Allocated, order, HELD));
        self.lists[order.index()].push_front(table, frame);
        self.frames += order.frames();
    }

    /// Takes a place of exactly this order, from the smallest that is large enough, for a page that
    /// moves.
    pub(super) fn take(&mut self, order: Order) -> Option<Frame> {
        let table = self.backing.unlocked().table();
        let mut size = order
            .up_to(Order::MAX)
            .find(|size| !self.lists[size.index()].is_empty())?;
        let frame = self.lists[size.index()].pop_front(table)?;
        self.frames -= size.frames();
        if size > order {
            let cut = self.backing.lock().cut(frame, order);
            debug_assert!(cut.is_ok(), "a place that is held: {cut:?}");
        }
        while size > order
            && let Some(half) = size.down()
        {
            self.put_back(frame.plus(half.frames()), half);
            size = half;
        }
        table.set_state(
            frame,
            State::new(Use::Allocated, order, MigrateType::Movable),
        );
        Some(frame)
    }

    /// Frees all places. Returns the highest of them.
    pub(super) fn release(
        &mut self,
        keep: &impl Fn(Merged) -> Option<MigrateType>,
    ) -> Option<Frame> {
        let backing = self.backing;
        let mut highest = None;
        for (order, list) in Order::ZERO.up_to(Order::MAX).zip(&self.lists) {
            while let Some(frame) = list.pop_front(backing.unlocked().table()) {
                let given = backing.lock().give_or_keep(frame, order, keep);
                debug_assert!(given.is_ok(), "a place that is held: {given:?}");
                highest = highest.max(Some(frame));
            }
        }
        self.frames = 0;
        highest
    }
}

impl<L: LabLock, P: Platform> Drop for HeldPlaces<'_, '_, L, P> {
    fn drop(&mut self) {
        self.release(&|_| None);
    }
}
