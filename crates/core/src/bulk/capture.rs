//! Capture: a block that becomes free while a task compacts goes to that task, before anybody else sees it.
//!
//! Without it the pages that a compaction has just brought together are often taken apart again by the next small request (Linux
//! since 5.1, there for the frees of the task itself; here for every free in the zone). One task at a time has the
//! slot of a zone; another that compacts meanwhile goes without.

use brickyard_sync::{GuardedU32, GuardedU64};

use crate::store::{Merged, Store};
use crate::{Frame, MigrateType, Mobility, Order, Request};

const OFF: u32 = 0;
const WAITING: u32 = 1;
const CAUGHT: u32 = 2;

/// The slot of one zone, guarded by its lock.
#[derive(Debug)]
pub(crate) struct Capture {
    state: GuardedU32,
    order: GuardedU32,
    mobility: GuardedU32,
    frame: GuardedU64,
}

impl Capture {
    pub(super) const fn new() -> Self {
        Self {
            state: GuardedU32::new(OFF),
            order: GuardedU32::new(0),
            mobility: GuardedU32::new(0),
            frame: GuardedU64::new(0),
        }
    }

    /// Waits for a block for `request`; false where somebody else waits already.
    pub(crate) fn arm(&self, request: &Request) -> bool {
        if self.state.get() != OFF {
            return false;
        }
        self.state.set(WAITING);
        self.order.set(u32::from(request.order.get()));
        self.mobility
            .set(MigrateType::from(request.mobility) as u32);
        true
    }

    /// A block has become free.
    #[inline]
    pub(crate) fn offer<S: Store>(&self, store: &S, merged: Merged) {
        if self.state.get() == WAITING {
            self.catch(store, merged);
        }
    }

    fn catch<S: Store>(&self, store: &S, merged: Merged) {
        let order = Order::new(self.order.get() as u8);
        if merged.order < order || merged.kind == MigrateType::Isolate {
            return;
        }
        let mobility = match MigrateType::from_bits(self.mobility.get()) {
            MigrateType::Movable => Mobility::Movable,
            MigrateType::Reclaimable => Mobility::Reclaimable,
            _ => Mobility::Unmovable,
        };
        if store
            .take_at(merged.frame, &Request::new(order, mobility))
            .is_ok()
        {
            self.frame.set(merged.frame.number() as u64);
            self.state.set(CAUGHT);
        }
    }

    /// Has a block been caught?
    pub(crate) fn has_caught(&self) -> bool {
        self.state.get() == CAUGHT
    }

    /// Stops waiting; the block, if one was caught.
    pub(crate) fn disarm(&self) -> Option<Frame> {
        let caught = self.has_caught();
        self.state.set(OFF);
        caught.then(|| Frame::new(self.frame.get() as usize))
    }
}
