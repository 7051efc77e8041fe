//! Deferral: after a failed compaction a zone is left alone for a while, twice as long each time
//! (Linux 6.1's rule).

use brickyard_sync::{AtomicU32, Ordering};

use crate::Order;

/// The most attempts that are skipped after failures: 1 << 6.
const MOST_SHIFT: u32 = 6;

/// How long a zone is left alone after a failed compaction (Linux 6.1's rule).
#[derive(Debug)]
pub(super) struct Deferral {
    // Guesses that only steer effort, so races between CPUs do no harm.
    considered: AtomicU32,
    shift: AtomicU32,
    failed_order: AtomicU32,
}

impl Deferral {
    /// Returns the deferral of a zone where nothing has failed yet.
    pub(super) const fn new() -> Self {
        Self {
            considered: AtomicU32::new(0),
            shift: AtomicU32::new(0),
            failed_order: AtomicU32::new(Order::COUNT as u32),
        }
    }

    /// Counts this attempt. Returns true if it should be skipped.
    pub(super) fn skips(&self, order: Order) -> bool {
        // Relaxed, here and below: see the fields.
        if u32::from(order.get()) < self.failed_order.load(Ordering::Relaxed) {
            return false;
        }
        let limit = 1 << self.shift.load(Ordering::Relaxed);
        let considered = self.considered.load(Ordering::Relaxed) + 1;
        self.considered
            .store(considered.min(limit), Ordering::Relaxed);
        considered < limit
    }

    pub(super) fn failed(&self, order: Order) {
        let shift = self.shift.load(Ordering::Relaxed);
        self.shift
            .store((shift + 1).min(MOST_SHIFT), Ordering::Relaxed);
        self.considered.store(0, Ordering::Relaxed);
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.min(u32::from(order.get())), Ordering::Relaxed);
    }

    pub(super) fn succeeded(&self, order: Order) {
        self.considered.store(0, Ordering::Relaxed);
        self.shift.store(0, Ordering::Relaxed);
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.max(u32::from(order.get()) + 1), Ordering::Relaxed);
    }
}
