//! Bulk: how long the zone lock is held while many pages move between a front and the store (Porter
//! 2007).
//!
//! Holding the lock for a whole batch makes others wait for all of it; releasing it after every
//! page pays for the lock each time. Three policies, as values, because only a miss reads them.
//! Every path ends with the lock released: a guard releases it, also where the store runs empty in
//! the middle of a batch, where the posted patch never did.

mod backing;
mod capture;
mod meter;

pub(crate) use backing::StoreGuard;
pub use backing::{Backing, Tuning};
pub use meter::{BulkReading, Histogram, LockReading, MeterReading, Moments, Timing};

use brickyard::transit::InTransit;

use crate::classics::lock::LabLock;
use crate::classics::store::grouping::Grouping;
use brickyard::platform::MaskGuard;
use brickyard::{Frame, FreeError, MigrateType, Order, Platform, Request};

/// How long the zone lock is held in a bulk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BulkPolicy {
    /// One hold for the whole batch (Linux, then and now).
    #[default]
    Hold,
    /// One hold for each page (Porter, October 2007).
    ReleaseEachPage,
    /// Released after a page if another CPU waits, which then goes first (Porter, with ticket
    /// locks, 2008).
    YieldWhenContended,
}

/// How many pages a bulk operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// After more pages than this it stops as soon as another CPU waits for the lock (the
    /// contention check of 2013).
    pub least: usize,
    /// After this many pages it stops.
    pub most: usize,
}

impl Batch {
    /// Returns a batch of exactly this many, whether others wait or not.
    #[must_use]
    pub const fn exactly(pages: usize) -> Self {
        Self {
            least: pages,
            most: pages,
        }
    }

    /// Returns true if the batch ends after `moved` pages.
    pub(crate) fn is_over(self, moved: usize, contended: impl FnOnce() -> bool) -> bool {
        moved >= self.most || (moved > self.least && contended())
    }
}

impl<'m, G: Grouping, L: LabLock, P: Platform> Backing<'m, G, L, P> {
    /// Fills `out` with single frames straight from the store, under the zone lock and by its
    /// policy. Returns how many.
    pub(crate) fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        let masked = MaskGuard::new(self.platform());
        let mut guard = self.lock_masked(&masked);
        let mut taken = 0;
        for slot in out {
            if taken > 0 {
                guard = self.between_pages(guard, &masked);
            }
            let Some(one) = guard.take_one(request) else {
                break;
            };
            *slot = one.frame;
            taken += 1;
        }
        guard.meter().took(taken, Order::ZERO);
        taken
    }

    /// Frees single frames in use straight to the store, in the same way, up to the first that is
    /// refused. Returns how many, and the error.
    pub(crate) fn give_singles(&self, frames: &[Frame]) -> (usize, Option<FreeError>) {
        let masked = MaskGuard::new(self.platform());
        let mut guard = self.lock_masked(&masked);
        let mut given = 0;
        let mut refused = None;
        for &frame in frames {
            if given > 0 {
                guard = self.between_pages(guard, &masked);
            }
            refused = guard.give_one(frame, Order::ZERO).err();
            if refused.is_some() {
                break;
            }
            given += 1;
        }
        guard.meter().gave(given, Order::ZERO);
        (given, refused)
    }

    /// Releases the lock and takes it again, if the policy demands it after a page.
    fn between_pages<'b>(
        &'b self,
        guard: StoreGuard<'b, 'm, G, L, P>,
        masked: &MaskGuard<'_, P>,
    ) -> StoreGuard<'b, 'm, G, L, P> {
        let release = match self.tuning().bulk {
            BulkPolicy::Hold => false,
            BulkPolicy::ReleaseEachPage => true,
            BulkPolicy::YieldWhenContended => guard.is_contended(),
        };
        if !release {
            return guard;
        }
        drop(guard);
        self.lock_masked(masked)
    }

    /// Takes up to `batch` frames of type `wanted` for a front and passes each to `into`, under the
    /// zone lock and by its policy. Returns how many, and a token that the caller drops when the
    /// frames are in the front.
    pub(crate) fn take_bulk(
        &self,
        batch: Batch,
        wanted: MigrateType,
        mut into: impl FnMut(Frame),
    ) -> (usize, Option<InTransit<'_>>) {
        let masked = MaskGuard::new(self.platform());
        let mut guard = self.lock_masked(&masked);
        let mut transit = None;
        let mut taken = 0;
        while let Some(one) = guard.take_cached(wanted) {
            transit.get_or_insert_with(|| self.moves().begin(0));
            into(one);
            taken += 1;
            if batch.is_over(taken, || guard.is_contended()) {
                break;
            }
            guard = self.between_pages(guard, &masked);
        }
        guard.meter().took(taken, Order::ZERO);
        (taken, transit)
    }

    /// Gives back the frames that `next` yields, under the zone lock and by its policy. Returns how
    /// many.
    pub(crate) fn give_bulk(&self, mut next: impl FnMut() -> Option<Frame>) -> usize {
        let masked = MaskGuard::new(self.platform());
        let mut guard = self.lock_masked(&masked);
        let mut given = 0;
        while let Some(frame) = next() {
            if given > 0 {
                guard = self.between_pages(guard, &masked);
            }
            guard.give_cached(frame);
            given += 1;
        }
        guard.meter().gave(given, Order::ZERO);
        given
    }
}
