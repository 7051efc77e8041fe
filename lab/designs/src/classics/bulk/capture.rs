//! Capture: a block that becomes free while a task compacts goes to that task, before any other
//! request can take it.
//!
//! Without it a block that compaction has just freed is often split again by the next small request
//! (Linux has capture since 5.1, for frees of the task itself, as the zones of
//! [`linux`](crate::classics::linux) have it; here it is for every free in the zone). One task at a time has
//! the slot of a zone; another that compacts meanwhile has none. A capture mixes no page block:
//! below the size of a page block it must come from a block of the request's own type, and blocks
//! set aside for atomic requests are left alone.

use brickyard::sync::{GuardedU32, GuardedU64};

use crate::classics::store::buddy::Buddy;
use crate::classics::store::grouping::Grouping;
use crate::classics::store::{Fallback, Merged};
use brickyard::{Frame, MigrateType, Mobility, Order, Request};

const OFF: u32 = 0;
const WAITING: u32 = 1;
const CAUGHT: u32 = 2;

/// No limit.
const NONE: u64 = u64::MAX;

/// The slot of one zone, guarded by its lock.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    state: GuardedU32,
    order: GuardedU32,
    mobility: GuardedU32,
    limit: GuardedU64,
    frame: GuardedU64,
}

impl Capture {
    /// Arms the slot for `request`; returns false if another task has armed it.
    pub(crate) fn arm(&self, request: &Request) -> bool {
        if self.state.get() != OFF {
            return false;
        }
        let limit = request.limit.map_or(NONE, |limit| limit.number() as u64);
        self.state.set(WAITING);
        self.order.set(u32::from(request.order.get()));
        self.mobility
            .set(MigrateType::from(request.mobility) as u32);
        self.limit.set(limit);
        true
    }

    /// Offers a block that has become free. Returns the fallback, if the block was caught and is of
    /// another type.
    #[inline]
    pub(super) fn offer<G: Grouping>(
        &self,
        store: &Buddy<'_, G>,
        merged: Merged,
    ) -> Option<Fallback> {
        if self.state.get() == WAITING {
            self.catch(store, merged)
        } else {
            None
        }
    }

    fn catch<G: Grouping>(&self, store: &Buddy<'_, G>, merged: Merged) -> Option<Fallback> {
        let order = Order::new(self.order.get() as u8);
        let mobility = match MigrateType::from_bits(self.mobility.get()) {
            MigrateType::Movable => Mobility::Movable,
            MigrateType::Reclaimable => Mobility::Reclaimable,
            _ => Mobility::Unmovable,
        };
        let end = merged.frame.plus(order.frames()).number() as u64;
        if merged.order < order || end > self.limit.get() {
            return None;
        }
        let caught = store.take_merged(merged, &Request::new(order, mobility))?;
        self.frame.set(caught.frame.number() as u64);
        self.state.set(CAUGHT);
        caught.fallback
    }

    /// Returns true if a block has been caught.
    pub(crate) fn has_caught(&self) -> bool {
        self.state.get() == CAUGHT
    }

    /// Disarms the slot; returns the block, if one was caught.
    pub(crate) fn disarm(&self) -> Option<Frame> {
        let caught = self.has_caught();
        self.state.set(OFF);
        caught.then(|| Frame::new(self.frame.get() as usize))
    }
}
